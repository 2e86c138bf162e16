## long: .ci/run has it without sanitizers
## A small job of two ranks: its buckets are launched too late, smaller ones overlap.
$ heddle trace optimize examples/traces/ddp
rank             0
step             11
workers          2
recorded         2.137 ms
device alone     2.012 ms
kernels          8
all-reduces      2
  start          0
  bandwidth      61.5 GB/s
  error of both  0
gradients        their sizes are not recorded: each all-reduce is spread over the kernels before it

plan                  step     change  faster  what it does
found             1.752 ms  -260.0 us   1.15x  best
as recorded       2.012 ms          0   1.00x  buckets of the recording
as it is          1.752 ms  -260.0 us   1.15x  every gradient alone, no fusion
fuse all          1.752 ms  -260.0 us   1.15x  XLA: all operations of a phase that may, every gradient alone
one bucket        2.272 ms  +260.0 us   0.89x  all gradients together, after the backward
PyTorch DDP       2.012 ms          0   1.00x  buckets of 25 MiB, the first of 1 MiB
Horovod           5.872 ms  +3.860 ms   0.34x  what is there every 5 ms, up to 64 MiB
Horovod Autotune  2.611 ms  +599.5 us   0.77x  Horovod with the best of its cycle times and sizes
BytePS            1.752 ms  -260.0 us   1.15x  every gradient alone, in pieces of 4 MB

PyTorch DDP  bucket_cap_mb=15: 1.752 ms
Horovod      no setting is faster than the recording; the best is HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_CYCLE_TIME=1

pass           proposals kept  what it does
op_fusion                   0  fuse neighbouring operations of a phase into one kernel
tensor_fusion               0  communicate neighbouring gradients together
partition                   0  cut a gradient into pieces that follow each other

bucket     bytes  pieces     ready     start       end
     1  15.3 MiB       1  797.5 us  797.5 us  1.058 ms
     2  15.3 MiB       1  1.099 ms  1.099 ms  1.359 ms
     3  15.3 MiB       1  1.401 ms  1.401 ms  1.661 ms
$ heddle trace optimize examples/traces/ddp --steps 12 --top 1 --json
{
  "rank": 0,
  "steps": "12",
  "workers": 2,
  "recorded_ps": 2917416666,
  "modelled_ps": 2012000000,
  "kernels": 8,
  "all_reduces": 2,
  "start_ps": 0,
  "bandwidth": 61538461538.46154,
  "fit_error_ps": 0,
  "communications_partial": 0,
  "memory_peak_bytes": null,
  "plans": [
    {"plan": "found", "step_ps": 1752000000, "change_ps": -260000000, "times_faster": 1.1484018264840183, "about": "best"},
    {"plan": "as recorded", "step_ps": 2012000000, "change_ps": 0, "times_faster": 1, "about": "buckets of the recording"},
    {"plan": "as it is", "step_ps": 1752000000, "change_ps": -260000000, "times_faster": 1.1484018264840183, "about": "every gradient alone, no fusion"},
    {"plan": "fuse all", "step_ps": 1752000000, "change_ps": -260000000, "times_faster": 1.1484018264840183, "about": "XLA: all operations of a phase that may, every gradient alone"},
    {"plan": "one bucket", "step_ps": 2272000000, "change_ps": 260000000, "times_faster": 0.8855633802816901, "about": "all gradients together, after the backward"},
    {"plan": "PyTorch DDP", "step_ps": 2012000000, "change_ps": 0, "times_faster": 1, "about": "buckets of 25 MiB, the first of 1 MiB"},
    {"plan": "Horovod", "step_ps": 5871500000, "change_ps": 3859500000, "times_faster": 0.3426722302648386, "about": "what is there every 5 ms, up to 64 MiB"},
    {"plan": "Horovod Autotune", "step_ps": 2611500000, "change_ps": 599500000, "times_faster": 0.7704384453379284, "about": "Horovod with the best of its cycle times and sizes"},
    {"plan": "BytePS", "step_ps": 1752000000, "change_ps": -260000000, "times_faster": 1.1484018264840183, "about": "every gradient alone, in pieces of 4 MB"}
  ],
  "found_buckets": 3,
  "found_fused": 0,
  "ddp_cap_bytes": 15728640,
  "ddp_ps": 1752000000,
  "horovod_threshold_bytes": 33554432,
  "horovod_cycle_ps": 1000000000,
  "horovod_ps": 2611500000,
  "passes": [
    {"pass": "op_fusion", "kept": 0, "about": "fuse neighbouring operations of a phase into one kernel"},
    {"pass": "tensor_fusion", "kept": 0, "about": "communicate neighbouring gradients together"},
    {"pass": "partition", "kept": 0, "about": "cut a gradient into pieces that follow each other"}
  ],
  "buckets": [
    {"bucket": 1, "bytes": 16000000, "pieces": 1, "ready_ps": 797500000, "start_ps": 797500000, "end_ps": 1057500000},
    {"bucket": 2, "bytes": 16000000, "pieces": 1, "ready_ps": 1099000000, "start_ps": 1099000000, "end_ps": 1359000000},
    {"bucket": 3, "bytes": 16000000, "pieces": 1, "ready_ps": 1400500000, "start_ps": 1400500000, "end_ps": 1660500000}
  ]
}
## What cannot be planned.
$ heddle trace optimize examples/traces/ddp --memory 16GB
error[E0106]: --memory: the recording does not say how much the job takes: it has no events of an allocator
  hint: record with PyTorch's profile_memory=True
[1]
$ heddle trace optimize examples/traces/ddp --memory lots
error[E0602]: --memory: 'lots' is not a quantity
  hint: write 1 GiB or GB
[1]
$ sed 's/"tid": 4001/"tid": 4000/' examples/traces/ddp/rank0.json > one.json; heddle trace optimize one.json
error[E0106]: forward and backward of this recording cannot be told apart: one thread launches everything
  --> one.json
  hint: PyTorch's autograd launches the backward from a thread of its own; a forward alone has no gradients
[1]
$ sed 's/allreduce/allgather/g; s/AllReduce/AllGather/g' examples/traces/ddp/rank0.json > gather.json; heddle trace optimize gather.json
error[E0106]: no all-reduce in its backward that the backward does not wait for: it is not a data-parallel job
  --> gather.json
  hint: `heddle trace summary` says what it communicates
[1]
$ heddle trace optimize examples/traces/pipeline
error[E0106]: no operation on a device whose launch is in the trace
  hint: record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler
[1]
## Several backwards; sizes that are missing or too large; a thread that copies ahead; peers that were not recorded.
$ heddle trace optimize examples/traces/ddp --steps 10-12
error[E0106]: it has several backwards, as accumulation of gradients or several steps have: which one communicates is not planned
  --> examples/traces/ddp/rank0.json
  hint: --steps N, of a step with one backward
[1]
$ sed 's/"In msg nelems": 4000000, "Out msg nelems": 4000000, //' examples/traces/ddp/rank0.json > some.json; heddle trace optimize some.json
error[E0106]: all-reduces in its backward do not say how many bytes they have, or say too many
  --> some.json
  hint: PyTorch's profiler of 2023 and later records the elements of a communication
[1]
$ sed 's/"In msg nelems": 4000000/"In msg nelems": 4611686018427387904/' examples/traces/ddp/rank0.json > huge.json; heddle trace optimize huge.json
error[E0106]: all-reduces in its backward do not say how many bytes they have, or say too many
  --> huge.json
  hint: PyTorch's profiler of 2023 and later records the elements of a communication
[1]
$ sed 's/"name": "cudaMemcpyAsync", "pid": 4000, "tid": 4000/"name": "cudaMemcpyAsync", "pid": 4000, "tid": 4007/' examples/traces/ddp/rank0.json > ahead.json; heddle trace optimize ahead.json --top 1 | head -n 17
rank             0
step             11
workers          2
recorded         2.137 ms
device alone     1.970 ms
kernels          7
all-reduces      2
  start          0
  bandwidth      61.5 GB/s
  error of both  0
gradients        their sizes are not recorded: each all-reduce is spread over the kernels before it
peers            members of 2 communications were not recorded: times include waiting for them, and starts come out too long
beside           1 operations of other threads, such as copies ahead, run beside and are left out

plan                  step     change  faster  what it does
found             1.710 ms  -260.0 us   1.15x  best
as recorded       1.970 ms          0   1.00x  buckets of the recording
$ heddle trace optimize examples/traces/ddp/rank0.json --top 1 | grep "^gradients\|^peers"
gradients        their sizes are not recorded: each all-reduce is spread over the kernels before it
peers            members of 2 communications were not recorded: times include waiting for them, and starts come out too long
$ sed 's/, "Process Group Ranks": "\[0, 1\]"//' examples/traces/ddp/rank0.json > unnamed.json; heddle trace optimize unnamed.json --json | grep partial
  "communications_partial": 2,
$ heddle trace optimize examples/traces/ddp --json | grep partial
  "communications_partial": 0,
## Memory that the recording tells: what fits, what does not, what cannot be judged.
$ heddle trace optimize tests/memory --memory 190MB --top 1 | sed -n 12,29p
start            all have the same size: what starting one takes is not known, and taken for 0
memory           210 MiB at the most, over all ranks and steps recorded: on rank 0 in step 4
                 in the step that is tuned 100 MiB before it, of these 9.00 MiB weights, as large as their gradients; 108 MiB kept by the forward for the backward
limit            181 MiB: the plans below take the fastest way that fits

to fit                   step     peak  fits
as it is             2.196 ms  210 MiB  no
recompute cheap ops  2.485 ms  184 MiB  no
recompute blocks     2.568 ms  163 MiB  yes
accumulate over 2    2.196 ms  163 MiB  yes
accumulate over 4    2.196 ms  136 MiB  yes
accumulate over 8    2.321 ms  122 MiB  yes

plan                  step     change  faster  what it does
found             2.142 ms  -125.4 us   1.06x  best
as recorded       2.268 ms          0   1.00x  buckets of the recording
as it is          2.196 ms  -71.60 us   1.03x  every gradient alone, no fusion
fuse all          2.142 ms  -125.4 us   1.06x  XLA: all operations of a phase that may, every gradient alone
## The peak of another rank and step than those that are tuned.
$ mkdir peak; cp tests/memory/rank0.json peak; awk 'match($0, /"ts": [0-9.]+/) { last = substr($0, RSTART + 6, RLENGTH - 6) >= 5560 } last && /"Total Allocated": / && /"Device Type": 1/ { match($0, /"Total Allocated": [0-9]+/); $0 = substr($0, 1, RSTART + 18) (substr($0, RSTART + 19, RLENGTH - 19) + 33554432) substr($0, RSTART + RLENGTH) } 1' tests/memory/rank1.json >peak/rank1.json; heddle trace optimize peak --memory 190MB --top 1 | sed -n '1,2p;/^memory/,/^$/p;/^as it is/p;/^recompute/p'; heddle trace optimize peak --memory 190MB --steps 4 --json | grep -e memory_peak
rank             0
step             4
memory           242 MiB at the most, over all ranks and steps recorded: on rank 1 in step 6
                 in the step that is tuned 100 MiB before it, of these 9.00 MiB weights, as large as their gradients; 108 MiB kept by the forward for the backward
limit            181 MiB: the plans below take the fastest way that fits

as it is             2.196 ms  242 MiB  no
recompute cheap ops  2.485 ms  216 MiB  no
recompute blocks     2.848 ms  174 MiB  yes
as it is          2.196 ms  -71.60 us   1.03x  every gradient alone, no fusion
  "memory_peak_bytes": 253755392,
  "memory_peak_rank": 1,
  "memory_peak_step": 6,
$ heddle trace optimize tests/memory --memory 100MB --top 1 | grep limit
limit            95.4 MiB: nothing that was tried fits
$ heddle trace optimize tests/memory --memory 1GB --top 1 | grep limit
limit            954 MiB: it fits as it is
$ mkdir bare; for k in 0 1; do sed 's/"Addr": [0-9]*, //' tests/memory/rank$k.json > bare/rank$k.json; done; heddle trace optimize bare --memory 150MB --top 1 | sed -n 13,21p
memory           210 MiB at the most, over all ranks and steps recorded: on rank 0 in step 4
                 in the step that is tuned 100 MiB before it, of these 9.00 MiB weights, as large as their gradients; 109 MiB kept by the forward for the backward
recompute        not tried: its allocator told no addresses, so nobody knows which kernel keeps what
limit            143 MiB: the plans below take the fastest way that fits

to fit                 step     peak  fits
as it is           2.196 ms  210 MiB  no
accumulate over 2  2.196 ms  156 MiB  no
accumulate over 4  2.196 ms  128 MiB  yes
$ for k in 0 1; do sed 's/"Total Allocated": [0-9]*, //' tests/memory/rank$k.json > bare/rank$k.json; done; heddle trace optimize bare --memory 150MB
error[E0106]: --memory: the recording does not say how much the job takes: its allocator did not tell what was taken in all, as PyTorch does since 2022
  hint: record with PyTorch's profile_memory=True
[1]
$ for k in 0 1; do sed 's/"Device Type": 1/"Device Type": 0/' tests/memory/rank$k.json > bare/rank$k.json; done; heddle trace optimize bare --memory 150MB
error[E0106]: --memory: the recording does not say how much the job takes: it has no events of an allocator
  hint: record with PyTorch's profile_memory=True
[1]
$ for k in 0 1; do sed 's/"Device Id": [01]/"Device Id": 3/' tests/memory/rank$k.json > bare/rank$k.json; done; heddle trace optimize bare --memory 150MB
error[E0106]: --memory: the recording does not say how much the job takes: its allocator told nothing of its device in the step
  hint: record with PyTorch's profile_memory=True
[1]
$ heddle trace optimize tests/memory --memory 190MB --top 1 --json | sed -n '/"memory/p;/"way"/p'
  "memory_peak_bytes": 220200960,
  "memory_peak_rank": 0,
  "memory_peak_step": 4,
  "memory_before_bytes": 104857600,
  "memory_kept_bytes": 113246208,
  "memory_weights_bytes": 9437184,
  "memory": [
    {"way": "as it is", "step_ps": 2195966272, "bytes": 220200960, "fits": "no"},
    {"way": "recompute cheap ops", "step_ps": 2484579892, "bytes": 192937984, "fits": "no"},
    {"way": "recompute blocks", "step_ps": 2568375352, "bytes": 170917888, "fits": "yes"},
    {"way": "accumulate over 2", "step_ps": 2195966272, "bytes": 170917888, "fits": "yes"},
    {"way": "accumulate over 4", "step_ps": 2195966362, "bytes": 142606336, "fits": "yes"},
    {"way": "accumulate over 8", "step_ps": 2320565022, "bytes": 128450560, "fits": "yes"}
## Passes by name: half precision, compression, priorities; what is no pass; where gradients have 16 bits or nobody knows.
$ heddle trace optimize examples/traces/ddp --passes op_fusion,tensor_fusion,half --top 1 | sed -n '13,15p;25,32p'
plan                  step     change  faster  what it does
found             942.5 us  -1.069 ms   2.13x  best
as recorded       2.012 ms          0   1.00x  buckets of the recording
Horovod      no setting is faster than the recording; the best is HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_CYCLE_TIME=1
half         6 matmuls and the like are taken to need 50 % of their time in half precision

pass           proposals kept  what it does
op_fusion                   0  fuse neighbouring operations of a phase into one kernel
tensor_fusion               0  communicate neighbouring gradients together
half                        1  matmuls, convolutions and gradients in half precision

$ heddle trace optimize examples/traces/ddp --passes compress --top 3 --json | sed -n '/found/p;/"pass/p;/"bucket"/p'
    {"plan": "found", "step_ps": 1718000000, "change_ps": -294000000, "times_faster": 1.1711292200232828, "about": "best"},
  "found_buckets": 3,
  "found_fused": 0,
  "found_compressed": 1,
  "passes": [
    {"pass": "compress", "kept": 1, "about": "compress gradients"}
    {"bucket": 1, "bytes": 16000000, "pieces": 1, "ready_ps": 797500000, "start_ps": 797500000, "end_ps": 1057500000},
    {"bucket": 2, "bytes": 16000000, "pieces": 1, "ready_ps": 1099000000, "start_ps": 1099000000, "end_ps": 1359000000},
    {"bucket": 3, "bytes": 8000000, "pieces": 1, "ready_ps": 1448500000, "start_ps": 1448500000, "end_ps": 1578500000}
$ heddle trace optimize examples/traces/ddp --passes op_fusion,tensor_fusion,partition,priority --top 3 | sed -n '13,15p;24,38p'
plan                  step     change  faster  what it does
found             1.710 ms  -301.5 us   1.18x  best
as recorded       2.012 ms          0   1.00x  buckets of the recording
PyTorch DDP  bucket_cap_mb=15: 1.752 ms
Horovod      no setting is faster than the recording; the best is HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_CYCLE_TIME=1
priority     the next forward begins when what it reads first is there (BytePS, ByteScheduler); the step and its times count from the start of the backward

pass           proposals kept  what it does
op_fusion                   0  fuse neighbouring operations of a phase into one kernel
tensor_fusion               0  communicate neighbouring gradients together
partition                   0  cut a gradient into pieces that follow each other
priority                    8  send first what the next forward reads first, and wait for no more than that

bucket     bytes  pieces     ready     start       end
     1  15.3 MiB       1  301.5 us  301.5 us  561.5 us
     2  15.3 MiB       1  603.0 us  603.0 us  863.0 us
     3  15.3 MiB       1  904.5 us  904.5 us  1.165 ms
$ heddle trace optimize examples/traces/ddp --passes op_fuson
error[E0801]: --passes: there is no graph pass 'op_fuson'
  hint: did you mean 'op_fusion'?
[2]
$ heddle trace optimize examples/traces/ddp --passes op_fusion,
error[E0801]: --passes: there is no graph pass ''
  hint: a list such as op_fusion,tensor_fusion; docs/diagnosis.md has them all
[2]
$ heddle trace summary examples/traces/ddp --passes op_fusion
error[E0801]: `heddle trace summary` has no option --passes
  hint: leave it out; questions that take it: optimize
[2]
$ sed 's/"Float"/"BFloat16"/' examples/traces/ddp/rank0.json > short.json; heddle trace optimize short.json --passes half,compress
error[E0106]: --passes: half has no use: gradients are not of 32 bits
  hint: leave it out
[1]
$ heddle trace convert examples/traces/ddp --to heddle -o all.json > log; sed 's/"type": *"f32",* *//' all.json > untyped.json; heddle trace optimize untyped.json --steps 11 --passes compress
error[E0106]: --passes: compress has no use: the recording does not say of which type gradients are
  hint: leave it out
[1]
## Files of different runs: no instant that both have, a step that one of them lacks. Amounts that there cannot be.
$ mkdir runs; cp examples/traces/ddp/rank0.json runs; sed 's/"baseTimeNanoseconds": 1735689600/"baseTimeNanoseconds": 1735689700/' examples/traces/ddp/rank1.json > runs/rank1.json; heddle trace optimize runs
error[E0106]: it has no instant in common with runs/rank0.json: they are of different runs, or clocks differ by more than the recording
  --> runs/rank1.json
  hint: name the files of one run; `heddle trace align` says how far clocks are apart
[1]
$ heddle trace replay runs
error[E0106]: it has no instant in common with runs/rank0.json: they are of different runs, or clocks differ by more than the recording
  --> runs/rank1.json
  hint: name the files of one run; `heddle trace align` says how far clocks are apart
[1]
$ sed 's/ProfilerStep#1/ProfilerStep#3/' examples/traces/ddp/rank1.json > runs/rank1.json; heddle trace optimize runs
error[E0801]: none of the steps 11 was recorded: there are 30 to 33
  --> runs/rank1.json
  hint: --steps 30-33
[2]
$ sed 's/"Bytes": [0-9]*/"Bytes": 1125899906842624/' tests/memory/rank0.json > much.json; heddle trace optimize much.json --memory 150MB
error[E0106]: --memory: the recording does not say how much the job takes: its allocator contradicts itself: more is kept than was taken in all
  hint: record with PyTorch's profile_memory=True
[1]
## Gradients of less than any bucket: no setting is better than PyTorch's own, which is told.
$ mkdir small; for r in 0 1; do sed 's/000000, "Out msg nelems"/000, "Out msg nelems"/; s/000000, "Group size"/000, "Group size"/' examples/traces/ddp/rank$r.json >small/rank$r.json; done; heddle trace optimize small | grep -e '^PyTorch'
PyTorch DDP       2.272 ms  +260.0 us   0.89x  buckets of 25 MiB, the first of 1 MiB
PyTorch DDP  no setting is faster than the recording; the best is bucket_cap_mb=25
