## A rank that did not come: dumps as pickles, of PyTorch's names.
$ heddle trace hang examples/traces/hang/missing
group 0 (default_pg): rank 1 did not come to all_reduce number 7, which ranks 0, 2, 3 wait in; its last one there is number 6

dumps     4 of 4 ranks
recorded  7 collectives in 1 group, 6 of them alike on all ranks

finding       group           what        number  ranks  others       size  last at
missing_rank  0 (default_pg)  all_reduce       7  1      0, 2, 3  16.0 MiB  train.py:42 train_step

ranks    group           completed  started  scheduled  in          state          size  at
0, 2, 3  0 (default_pg)          6        7          7  all_reduce  started    16.0 MiB  train.py:41 train_step
1        0 (default_pg)          6        6          6  all_reduce  completed  16.0 MiB  train.py:42 train_step
$ heddle trace hang examples/traces/hang/missing --json
{
  "verdict": "group 0 (default_pg): rank 1 did not come to all_reduce number 7, which ranks 0, 2, 3 wait in; its last one there is number 6",
  "dumps": 4,
  "ranks": 4,
  "ranks_without_dump": [],
  "groups": 1,
  "collectives": 7,
  "collectives_matched": 6,
  "messages": 0,
  "entries_skipped": 0,
  "findings": [
    {"kind": "missing_rank", "group": "0", "description": "default_pg", "collective": "all_reduce", "number": 7, "ranks": [1], "others": [0, 2, 3], "size_bytes": 16777216, "at": "train.py:42 train_step", "follows": false, "known_as": null, "text": "group 0 (default_pg): rank 1 did not come to all_reduce number 7, which ranks 0, 2, 3 wait in; its last one there is number 6"}
  ],
  "stands": [
    {"ranks": [0, 2, 3], "group": "0", "description": "default_pg", "completed": 6, "started": 7, "scheduled": 7, "collective": "all_reduce", "number": 7, "state": "started", "size_bytes": 16777216, "at": "train.py:41 train_step"},
    {"ranks": [1], "group": "0", "description": "default_pg", "completed": 6, "started": 6, "scheduled": 6, "collective": "all_reduce", "number": 6, "state": "completed", "size_bytes": 16777216, "at": "train.py:42 train_step"}
  ],
  "communicators": []
}
## Three of the four dumps.
$ heddle trace hang examples/traces/hang/missing/nccl_trace_rank_0 examples/traces/hang/missing/nccl_trace_rank_2 examples/traces/hang/missing/nccl_trace_rank_3
group 0 (default_pg): ranks 0, 2, 3 wait in all_reduce number 7; of rank 1, which must come to it, there is no dump

dumps     3 of 4 ranks; none of rank 1
recorded  7 collectives in 1 group, 7 of them alike on all ranks

finding  group           what        number  ranks  others       size  last at
no_dump  0 (default_pg)  all_reduce       7  1      0, 2, 3  16.0 MiB

ranks    group           completed  started  scheduled  in          state        size  at
0, 2, 3  0 (default_pg)          6        7          7  all_reduce  started  16.0 MiB  train.py:41 train_step
## Two gradients in different orders.
$ heddle trace hang examples/traces/hang/order
group 0 (default_pg): rank 1 has input [2048, 512] for all_reduce number 2, where rank 0 has [512, 512]; the order differs: it calls all_reduce [512, 512] and all_reduce [2048, 512] in the other order

dumps     2 of 2 ranks
recorded  3 collectives in 1 group, 1 of them alike on all ranks

finding         group           what        number  ranks  others      size  last at
order_mismatch  0 (default_pg)  all_reduce       2  1      0       1.00 MiB  train.py:55 reduce_gradients

ranks  group           completed  started  scheduled  in          state          size  at
0      0 (default_pg)          1        3          3  all_reduce  started    1.00 MiB  train.py:55 reduce_gradients
1      0 (default_pg)          1        1          3  all_reduce  scheduled  4.00 MiB  train.py:55 reduce_gradients
## Four ranks in a cycle.
$ heddle trace hang examples/traces/hang/cycle --top 2
ranks 0-3 wait for each other: rank 1 in all_gather number 1 of group 4 (dp), which waits for rank 3 in all_reduce number 1 of group 2 (tp), which waits for rank 2 in all_gather number 1 of group 3 (dp), which waits for rank 0 in all_reduce number 1 of group 1 (tp), which waits for rank 1

dumps     4 of 4 ranks
recorded  5 collectives in 5 groups, 1 of them alike on all ranks
also      group 1 (tp): rank 1 did not come to all_reduce number 1, which rank 0 waits in; its dump has no collective of this group (follows)
          group 3 (dp): rank 0 did not come to all_gather number 1, which rank 2 waits in; its dump has no collective of this group (follows)
          group 4 (dp): rank 3 did not come to all_gather number 1, which rank 1 waits in; its dump has no collective of this group (follows)
          group 2 (tp): rank 2 did not come to all_reduce number 1, which rank 3 waits in; its dump has no collective of this group (follows)

finding       group   what        number  ranks  others      size  last at
cycle                                     0-3    0-3               train.py:83 gather_weights
missing_rank  1 (tp)  all_reduce       1  1      0       16.0 KiB  train.py:83 gather_weights
... and 3 more

ranks  group           completed  started  scheduled  in          state          size  at
0-3    0 (default_pg)          1        1          1  broadcast   completed      64 B  train.py:12 train_step
0      1 (tp)                           1          1  all_reduce  started    16.0 KiB  train.py:61 forward
... and 7 more
## Two stages that both send.
$ heddle trace hang examples/traces/hang/pipeline
ranks 0, 1 wait for each other: rank 1 in send number 1 of group 0 (default_pg), which waits for rank 0 in send number 2 of group 0 (default_pg), which waits for rank 1

dumps     2 of 2 ranks
recorded  0 collectives in 1 group, 0 of them alike on all ranks; 3 messages
also      group 0 (default_pg): rank 0 did not come to recv number 1 from rank 1, which waits in send (follows)
          group 0 (default_pg): rank 1 did not come to recv number 2 from rank 0, which waits in send (follows)

finding       group           what  number  ranks  others      size  last at
cycle                                       0, 1   0, 1              train.py:48 send_backward
missing_rank  0 (default_pg)  send       1  0      1       4.00 KiB  train.py:30 send_forward
missing_rank  0 (default_pg)  send       2  1      0       4.00 KiB  train.py:48 send_backward

ranks  group           completed  started  scheduled  in         state          size  at
0      0 (default_pg)                                 send to 1  scheduled  4.00 KiB  train.py:30 send_forward
1      0 (default_pg)                                 send to 0  scheduled  4.00 KiB  train.py:48 send_backward
$ heddle trace hang examples/traces/hang/pipeline --json
{
  "verdict": "ranks 0, 1 wait for each other: rank 1 in send number 1 of group 0 (default_pg), which waits for rank 0 in send number 2 of group 0 (default_pg), which waits for rank 1",
  "dumps": 2,
  "ranks": 2,
  "ranks_without_dump": [],
  "groups": 1,
  "collectives": 0,
  "collectives_matched": 0,
  "messages": 3,
  "entries_skipped": 0,
  "findings": [
    {"kind": "cycle", "group": null, "description": null, "collective": null, "number": null, "ranks": [0, 1], "others": [0, 1], "size_bytes": null, "at": "train.py:48 send_backward", "follows": false, "known_as": null, "text": "ranks 0, 1 wait for each other: rank 1 in send number 1 of group 0 (default_pg), which waits for rank 0 in send number 2 of group 0 (default_pg), which waits for rank 1"},
    {"kind": "missing_rank", "group": "0", "description": "default_pg", "collective": "send", "number": 1, "ranks": [0], "others": [1], "size_bytes": 4096, "at": "train.py:30 send_forward", "follows": true, "known_as": null, "text": "group 0 (default_pg): rank 0 did not come to recv number 1 from rank 1, which waits in send"},
    {"kind": "missing_rank", "group": "0", "description": "default_pg", "collective": "send", "number": 2, "ranks": [1], "others": [0], "size_bytes": 4096, "at": "train.py:48 send_backward", "follows": true, "known_as": null, "text": "group 0 (default_pg): rank 1 did not come to recv number 2 from rank 0, which waits in send"}
  ],
  "stands": [
    {"ranks": [0], "group": "0", "description": "default_pg", "completed": null, "started": null, "scheduled": null, "collective": "send to 1", "number": 2, "state": "scheduled", "size_bytes": 4096, "at": "train.py:30 send_forward"},
    {"ranks": [1], "group": "0", "description": "default_pg", "completed": null, "started": null, "scheduled": null, "collective": "send to 0", "number": 2, "state": "scheduled", "size_bytes": 4096, "at": "train.py:48 send_backward"}
  ],
  "communicators": []
}
## RAS output, in which NCCL leaves out a comma.
$ heddle trace hang examples/traces/hang/ras.json
communicator 0x9c2f11d0a7e35b46: rank 3 of 10.0.0.2 (process 4003, GPU 1) is dead

RAS   1 communicator
also  communicator 0x9c2f11d0a7e35b46: rank 1 of 10.0.0.1 (process 4001, GPU 1) is behind: AllReduce called 880 times, by ranks 0, 2 881 times

finding  group               what       number  ranks  others  size  last at
dead     0x9c2f11d0a7e35b46                     3
behind   0x9c2f11d0a7e35b46  AllReduce          1      0, 2

communicator        ranks  answered  missing  state
0x9c2f11d0a7e35b46      4         3        1  INCOMPLETE,MISMATCH
$ heddle trace hang examples/traces/hang/ras.json --json
{
  "verdict": "communicator 0x9c2f11d0a7e35b46: rank 3 of 10.0.0.2 (process 4003, GPU 1) is dead",
  "dumps": 0,
  "ranks": 0,
  "ranks_without_dump": [],
  "groups": 0,
  "collectives": 0,
  "collectives_matched": 0,
  "messages": 0,
  "entries_skipped": 0,
  "findings": [
    {"kind": "dead", "group": "0x9c2f11d0a7e35b46", "description": null, "collective": null, "number": null, "ranks": [3], "others": [], "size_bytes": null, "at": null, "follows": false, "known_as": "INCOMPLETE", "text": "communicator 0x9c2f11d0a7e35b46: rank 3 of 10.0.0.2 (process 4003, GPU 1) is dead"},
    {"kind": "behind", "group": "0x9c2f11d0a7e35b46", "description": null, "collective": "AllReduce", "number": null, "ranks": [1], "others": [0, 2], "size_bytes": null, "at": null, "follows": false, "known_as": "MISMATCH", "text": "communicator 0x9c2f11d0a7e35b46: rank 1 of 10.0.0.1 (process 4001, GPU 1) is behind: AllReduce called 880 times, by ranks 0, 2 881 times"}
  ],
  "stands": [],
  "communicators": [
    {"communicator": "0x9c2f11d0a7e35b46", "size": 4, "answered": 3, "missing": 1, "state": "INCOMPLETE,MISMATCH", "file": "examples/traces/hang/ras.json"}
  ]
}
## A job in which nothing is wrong.
$ sed 's/"state": "[a-z]*"/"state": "completed"/g' examples/traces/hang/pipeline/nccl_trace_rank_0 | gzip >dump_rank_0.gz; heddle trace hang dump_rank_0.gz
nothing is wrong in what the ranks recorded

dumps     1 of 2 ranks; none of rank 1
recorded  0 collectives in 1 group, 0 of them alike on all ranks; 2 messages

ranks  group           completed  started  scheduled  in         state          size  at
0      0 (default_pg)                                 send to 1  completed  4.00 KiB  train.py:30 send_forward
## Input that is refused.
$ heddle trace hang tests/golden/pickle/bad_inside.pkl
error[E0108]: refused: this names or runs code of a program, and Heddle reads data only
  --> tests/golden/pickle/bad_inside.pkl: offset 67, opcode GLOBAL
  hint: write the dump as JSON, or with Python, from a file that you trust:
        json.dump(pickle.load(open("IN", "rb")), open("OUT.json", "w"))
[1]
$ heddle trace hang tests/golden/pickle/data4.pkl
error[E0106]: this is no dump of PyTorch's flight recorder: it has no pg_config and no entries
  --> tests/golden/pickle/data4.pkl
[1]
$ heddle trace hang examples/annotations
error[E0106]: no dumps of the flight recorder and no RAS output in examples/annotations
  hint: PyTorch writes them to the prefix in TORCH_FR_DUMP_TEMP_FILE and the rank, by default /tmp/nccl_trace_rank_0 or ~/.cache/torch/comm_lib_trace_rank_0
[1]
$ heddle trace hang nowhere
error[E0101]: cannot open nowhere: No such file or directory
[1]
$ echo '{"pg_config": {}}' >dump; heddle trace hang dump
error[E0106]: neither the dump nor the name of its file says which rank it is of
  --> dump
  hint: rename it so that the rank is the last number of its name: nccl_trace_rank_3
[1]
$ cp examples/traces/hang/order/nccl_trace_rank_1 copy_rank_0; heddle trace hang copy_rank_0 copy_rank_0
error[E0106]: a second dump of rank 0
  --> copy_rank_0
  note: the first one
    --> copy_rank_0
  hint: name the dumps of one run; a file without a rank in it has it in its name: nccl_trace_rank_3
[1]
$ head -c 900 examples/traces/hang/order/nccl_trace_rank_1 >cut_rank_1; heddle trace hang cut_rank_1
error[E0103]: the text ends where a value is expected
  --> cut_rank_1:1:901
   1 | ...t_sizes": [[1]], "output_dtypes": ["Float"], "state": "completed", "time_discovered_started_ns":
     |                                                                                                    ^
[1]
$ heddle trace hang cut_rank_1 examples/traces/hang/order/nccl_trace_rank_0
warning[W0101]: this file is left out: the text ends where a value is expected
  --> cut_rank_1:1:901
   1 | ...t_sizes": [[1]], "output_dtypes": ["Float"], "state": "completed", "time_discovered_started_ns":
     |                                                                                                    ^
group 0 (default_pg): rank 0 waits in all_reduce number 2; of rank 1, which must come to it, there is no dump

dumps     1 of 2 ranks; none of rank 1
recorded  3 collectives in 1 group, 3 of them alike on all ranks

finding  group           what        number  ranks  others      size  last at
no_dump  0 (default_pg)  all_reduce       2  1      0       1.00 MiB

ranks  group           completed  started  scheduled  in          state        size  at
0      0 (default_pg)          1        3          3  all_reduce  started  1.00 MiB  train.py:55 reduce_gradients
$ heddle trace hang examples/traces/hang/order --steps 3
error[E0801]: `heddle trace hang` has no option --steps
  hint: leave it out; questions that take it: replay, summary, diff, compare, blame, whatif, optimize, rescale
[2]
$ heddle trace hang
error[E0801]: `heddle trace hang` needs PATH...
  hint: `heddle trace hang --help` explains it
[2]
