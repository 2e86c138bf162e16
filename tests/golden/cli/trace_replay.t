## long: .ci/run has it without sanitizers
## A small job of two ranks, replayed: durations and dependencies give back what was recorded.
$ heddle trace replay examples/traces/ddp
recorded                9.236 ms
replayed                9.230 ms
operations              80
error of their ends     2.320 us
  99 of 100 below       5.867 us
  largest               5.867 us
launch latency          2.250 us
between queued kernels  1.500 us
between streams         266.7 ns
return of a wait        2.000 us
path: host              1.175 ms
path: device            5.920 ms
path: communication     2.082 ms
path: latencies         53.13 us
ends apart              500.0 ns on average in a communication: shorter waits say nothing

verdict  device-bound on all ranks: they take longer without hosts than without devices
late     rank 1 arrives last: at 2 of 8 communications
         with the host times of rank 1 as the other's the job is 8.4 % shorter
         with the median host times of all ranks it is 1.04 times faster: 8.841 ms
bounds   8.055 ms if hosts took no time, 1.860 ms if devices took none

rank  host alone  device alone  host on path  arrives last  gain if repaired
   0    1.841 ms      8.055 ms             0             0             0.0 %
   1    1.860 ms      8.055 ms      1.175 ms             2             8.4 %
$ heddle trace replay examples/traces/ddp --steps 11 --json
{
  "recorded_ps": 2138750000,
  "replayed_ps": 2137250000,
  "operations": 20,
  "error_ps": 200000,
  "error99_ps": 1500000,
  "error_most_ps": 1500000,
  "launch_ps": 2250000,
  "queue_ps": 1500000,
  "cross_ps": 250000,
  "sync_ps": 2000000,
  "path_begin_ps": 0,
  "path_host_ps": 125000000,
  "path_device_ps": 1480000000,
  "path_transfer_ps": 520500000,
  "path_latency_ps": 11750000,
  "both_ps": 2137250000,
  "all_ps": 2137250000,
  "no_host_ps": 2012250000,
  "no_device_ps": 282250000,
  "files_left_out": 0,
  "communications_alone": 0,
  "operations_left_out": 0,
  "communications_partial": 0,
  "communications_violated": 0,
  "clocks_corrected_ps": 0,
  "ends_apart_ps": 500000,
  "clocks_doubt_ps": 0,
  "bound": "device",
  "ranks": [
    {"rank": 0, "host_ps": 282250000, "device_ps": 2011750000, "path_ps": 0, "last_read": 0, "last": 0, "repaired_ps": 2137250000, "gain": 0},
    {"rank": 1, "host_ps": 282250000, "device_ps": 2012250000, "path_ps": 125000000, "last_read": 0, "last": 0, "repaired_ps": 2137250000, "gain": 0}
  ]
}
## Who is late, and what waits.
$ heddle trace blame examples/traces/ddp
recorded    9.236 ms
ends apart  500.0 ns on average in a communication: shorter waits say nothing
replay      operations end 2.320 us off on average, 99 of 100 at most 5.867 us
verdict     device-bound on all ranks: they take longer without hosts than without devices
late        rank 1 arrives last: at 2 of 8 communications
            with the host times of rank 1 as the other's the job is 8.4 % shorter
            with the median host times of all ranks it is 1.04 times faster: 8.841 ms
bounds      8.055 ms if hosts took no time, 1.860 ms if devices took none

rank  host alone  device alone  host on path  arrives last  gain if repaired
   0    1.841 ms      8.055 ms             0             0             0.0 %
   1    1.860 ms      8.055 ms      1.175 ms             2             8.4 %

communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  3.120 ms           560.8 us      780.0 us                1      2
## What would be different. Everything that is not there is refused.
$ heddle trace whatif examples/traces/ddp --set 'rank 1 = median' --set 'host = 0' --set 'all_reduce x 0.5' --set '*sgemm* = 0'
ranks       2
job         9.230 ms
ends apart  500.0 ns on average in a communication: shorter waits say nothing
replay      operations end 2.320 us off on average, 99 of 100 at most 5.867 us

change                      durations       job     change  faster
rank 1 = median                    84  8.840 ms  -390.2 us   1.04x
host = 0                           88  8.055 ms  -1.175 ms   1.15x
all_reduce x 0.5                   16  8.190 ms  -1.040 ms   1.13x
*sgemm* = 0                        48  4.981 ms  -4.249 ms   1.85x
all of them, in this order             2.128 ms  -7.102 ms   4.34x
## A median is of what the changes before it have left: it brings nothing back.
$ heddle trace whatif examples/traces/ddp --set 'all_reduce = 0' --set 'rank 1 = median'
ranks       2
job         9.230 ms
ends apart  500.0 ns on average in a communication: shorter waits say nothing
replay      operations end 2.320 us off on average, 99 of 100 at most 5.867 us

change                      durations       job     change  faster
all_reduce = 0                     16  7.152 ms  -2.078 ms   1.29x
rank 1 = median                    84  8.840 ms  -390.2 us   1.04x
all of them, in this order             6.763 ms  -2.467 ms   1.36x
$ heddle trace whatif examples/traces/ddp --set 'rank 1 = median' --json
{
  "ranks": 2,
  "replayed_ps": 9230133328,
  "files_left_out": 0,
  "communications_alone": 0,
  "operations_left_out": 0,
  "communications_partial": 0,
  "communications_violated": 0,
  "clocks_corrected_ps": 0,
  "ends_apart_ps": 500000,
  "error_ps": 2320002,
  "changes": [
    {"change": "rank 1 = median", "operations": 84, "changed_ps": 8839883328, "change_ps": -390250000, "times_faster": 1.044146510255842}
  ],
  "changed_ps": 8839883328
}
$ heddle trace whatif examples/traces/ddp
error[E0801]: nothing is changed
  hint: say what would be different, such as --set 'rank 3 = median', or of a pipelined job 'worker 0 = ideal'
[2]
$ heddle trace whatif examples/traces/ddp --set 'rank 7 = median'
error[E0801]: no such rank is in the recordings
  --> --set:1:1
   1 | rank 7 = median
     | ^
  hint: `heddle trace info` lists them; the name of a file may say its rank: rank1.json
[2]
$ heddle trace whatif examples/traces/ddp --set 'stage 1 = median'
error[E0801]: recordings of kernels know ranks, not workers, stages, data ranks or microbatches
  --> --set:1:1
   1 | stage 1 = median
     | ^
  hint: say rank N, host, or the name of a kernel or communication
[2]
$ heddle trace whatif examples/traces/ddp --set 'dgemm x 2'
error[E0801]: nothing is changed by 'dgemm x 2': no kernel or communication has that name
  --> --set:1:1
   1 | dgemm x 2
     | ^
  hint: `heddle trace summary` lists kernels; '*' stands for anything: '*gemm* x 0.5'
[2]
$ heddle trace whatif examples/traces/ddp --set 'rank 0 = ideal'
error[E0801]: `ideal` is for pipelined jobs, which repeat an operation for every microbatch
  --> --set:1:1
   1 | rank 0 = ideal
     | ^
  hint: use median: over the ranks that do the same
[2]
$ heddle trace whatif examples/traces/ddp/rank0.json --set 'rank 0 = median'
error[E0801]: no other rank does the same: there is no median
  --> --set:1:1
   1 | rank 0 = median
     | ^
[2]
$ heddle trace whatif examples/traces/ddp --set 'host = 1000000s'
error[E0901]: times become too long to be added up: at most 6822 s each here
  --> --set:1:1
   1 | host = 1000000s
     | ^
[1]
## A rank twice, a step that is not there, a question that takes no such option.
$ heddle trace replay examples/traces/ddp examples/traces/ddp/rank0.json
error[E0106]: examples/traces/ddp/rank0.json and examples/traces/ddp/rank0.json are both of rank 0
  hint: name one file of every rank, all of one run and of the same recorded steps
[1]
$ heddle trace replay examples/traces/ddp --steps 4
error[E0801]: none of the steps 4 was recorded: there are 10 to 13
  --> examples/traces/ddp/rank0.json
  hint: --steps 10-13
[2]
$ heddle trace replay examples/traces/ddp --steps x
error[E0801]: 'x' where a number is expected
  --> --steps:1:1
   1 | x
     | ^
  hint: numbers are such as 3, or 3-5,8
[2]
$ heddle trace replay examples/traces/ddp --top 3
error[E0801]: `heddle trace replay` has no option --top
  hint: leave it out; questions that take it: summary, diff, compare, blame, whatif, optimize, rescale, hang, align
[2]
$ heddle trace blaim examples/traces/ddp
error[E0801]: unknown question 'blaim'
  hint: did you mean `heddle trace blame`?
[2]
$ heddle trace replay examples/gpt_block.heddle
error[E0106]: this is no trace that Heddle can read
  --> examples/gpt_block.heddle
  hint: formats: Nsight Systems, Chakra, Heddle, execution trace, Horovod, operation timeline, gTrace, BytePS, MXNet, TensorFlow, NCCL Inspector, Kineto; of a job that hangs dumps and RAS output: heddle trace hang
[1]
$ heddle trace replay examples/traces/none
error[E0101]: cannot open examples/traces/none: No such file or directory
[1]
$ heddle trace replay examples/traces/ddp --steps 10,12
error[E0801]: --steps 10,12 leaves out step 11: a replay takes one stretch of steps
  hint: --steps 10-12
[2]
## Clocks that differ are corrected, also by less than a communication takes; one that jumps cannot be. Clocks that count from another moment; a rank that is not there.
$ mkdir s; cp examples/traces/ddp/rank0.json s; sed 's/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' examples/traces/ddp/rank1.json > s/rank1.json; heddle trace blame s | head -n 5
recorded  9.236 ms
clocks    of hosts are up to 5.000 ms apart: corrected by ends of communications, to within 15.00 us
replay    operations end 2.320 us off on average, 99 of 100 at most 5.867 us
verdict   device-bound on all ranks: they take longer without hosts than without devices
late      rank 1 arrives last: at 2 of 8 communications, 2 beyond the clocks' doubt, 15.00 us
## They may be further apart than a step takes.
$ heddle trace blame s --steps 12 | head -n 6; heddle trace optimize s | sed -n 1,4p
recorded  2.919 ms
clocks    of hosts are up to 5.000 ms apart: corrected by ends of communications, to within 15.00 us
replay    operations end 200.0 ns off on average, 99 of 100 at most 1.333 us
verdict   device-bound on all ranks: they take longer without hosts than without devices
late      rank 1 arrives last: at 2 of 2 communications, 2 beyond the clocks' doubt, 15.00 us
          with the host times of rank 1 as the other's the job is 26.7 % shorter
rank             0
step             11
workers          2
recorded         2.137 ms
## What counts is how far clocks are apart from each other, not from the first rank's: 20 us behind it and 20 us before it.
$ mkdir between; for r in 0 1 2; do sed "s/\"rank\": [01]/\"rank\": $r/; s/\"Group size\": 2/\"Group size\": 3/; s/\"baseTimeNanoseconds\": 1735689600000000000/\"baseTimeNanoseconds\": $(echo 1735689600000000000 1735689600000020000 1735689599999980000 | cut -d ' ' -f $((r + 1)))/" examples/traces/ddp/rank$((r > 0)).json >between/rank$r.json; done; heddle trace blame between | sed -n '1,3p'
recorded  9.236 ms
clocks    of hosts are up to 40.00 us apart: corrected by ends of communications, to within 15.00 us
replay    operations end 2.339 us off on average, 99 of 100 at most 5.913 us
## A step that begins with slow data: what its host does before the first launch counts as the host's.
$ heddle trace blame examples/traces/ddp --steps 12 | grep -A 1 late
late        rank 1 arrives last: at 2 of 2 communications
            with the host times of rank 1 as the other's the job is 26.7 % shorter
$ sed 's/"baseTimeNanoseconds": 1735689600000000/"baseTimeNanoseconds": 1735689600000060/' examples/traces/ddp/rank1.json > s/rank1.json; heddle trace blame s | sed -n '1,3p;/^rank/,$p'
recorded  9.236 ms
clocks    of hosts are up to 60.50 us apart: corrected by ends of communications, to within 15.00 us
replay    operations end 2.320 us off on average, 99 of 100 at most 5.867 us
rank  host alone  device alone  host on path  arrives last  beyond doubt  gain if repaired
   0    1.840 ms      8.054 ms      266.0 us             6             0             0.0 %
   1    1.860 ms      8.054 ms      910.0 us             2             2             8.4 %

communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  3.121 ms           561.8 us      779.5 us                1      2
$ heddle trace replay s | head -n 2
recorded                9.236 ms
replayed                9.230 ms
$ awk '{ if (match($0, /"ts": [0-9.]+/)) { t = substr($0, RSTART + 6, RLENGTH - 6); if (t > 5000) t += 3000; $0 = substr($0, 1, RSTART + 5) t substr($0, RSTART + RLENGTH) } print }' examples/traces/ddp/rank1.json > s/rank1.json; heddle trace blame s | head -n 2
recorded  12.14 ms
clocks    4 of 8 communications end before their last member begins, by up to 2.740 ms: clocks differ, and who is late cannot be told; heddle trace align says by how much
$ sed 's/"baseTimeNanoseconds": 1735689600000000000/"baseTimeNanoseconds": 0/' examples/traces/ddp/rank1.json > s/rank1.json; heddle trace blame s
error[E0106]: its clock cannot be compared with that of s/rank0.json: one counts from another moment, or days lie between them
  --> s/rank1.json
  hint: `heddle trace info` says what the clocks are; one file alone can be replayed
[1]
$ mkdir o; for r in 0 1; do sed 's/"Group size": 2/"Group size": 4/; s/"\[0, 1\]"/"[0, 1, 2, 3]"/' examples/traces/ddp/rank$r.json > o/rank$r.json; done; heddle trace blame o | head -n 2
recorded    9.236 ms
members     8 communications have members that were not recorded: they may be the late ones
$ heddle trace diff examples/traces/ddp examples/traces/ddp/rank0.json --top 1 | sed -n 4,7p
ranks  1 of 2 recorded after: the slowest may be missing

verdict  no difference: 0.0 % faster, and steps vary so that up to 42.5 % mean nothing

## Before and after.
$ heddle trace diff examples/traces/ddp examples/traces/ddp --top 2
        files  ranks  steps      step   scatter
before      2      2      3  2.403 ms  450.3 us
after       2      2      3  2.403 ms  450.3 us

verdict  no difference: 0.0 % faster, and steps vary so that up to 42.5 % mean nothing

of a rank in a step             before     after  change
computation                   1.440 ms  1.440 ms       0  0.0 %
exposed communication         651.8 us  651.8 us       0  0.0 %
copies                        40.00 us  40.00 us       0  0.0 %
idle, waiting for the host    219.7 us  219.7 us       0  0.0 %
between kernels               9.500 us  9.500 us       0  0.0 %
idle, other                          0         0       0
before and after device work  41.83 us  41.83 us       0  0.0 %

kernel                          before  after      time  time after  change  waiting  transfer
Memcpy HtoD (Pinned -> Device)       1      1  40.00 us    40.00 us       0
sgemm_128x128_tn                     3      3  450.0 us    450.0 us       0
... and 3 more
$ heddle trace diff examples/traces/ddp examples/traces/ddp --steps 11 --json
{
  "sides": [
    {"side": "before", "files": 2, "ranks": 2, "steps": 1, "step_ps": 2142750000, "sd_ps": null},
    {"side": "after", "files": 2, "ranks": 2, "steps": 1, "step_ps": 2142750000, "sd_ps": null}
  ],
  "verdict": "unknown",
  "change_ps": 0,
  "noise_ps": null,
  "waiting_change_ps": 0,
  "transfer_change_ps": 0,
  "waits_for_rank": null,
  "parts": [
    {"part": "computation", "before_ps": 1440000000, "after_ps": 1440000000, "change_ps": 0},
    {"part": "exposed communication", "before_ps": 521750000, "after_ps": 521750000, "change_ps": 0},
    {"part": "copies", "before_ps": 40000000, "after_ps": 40000000, "change_ps": 0},
    {"part": "idle, waiting for the host", "before_ps": 0, "after_ps": 0, "change_ps": 0},
    {"part": "between kernels", "before_ps": 9500000, "after_ps": 9500000, "change_ps": 0},
    {"part": "idle, other", "before_ps": 0, "after_ps": 0, "change_ps": 0},
    {"part": "before and after device work", "before_ps": 131500000, "after_ps": 131500000, "change_ps": 0}
  ],
  "kernels": [
    {"kernel": "Memcpy HtoD (Pinned -> Device)", "before_count": 1, "after_count": 1, "before_ps": 40000000, "after_ps": 40000000, "change_ps": 0, "wait_change_ps": null, "transfer_change_ps": null},
    {"kernel": "sgemm_128x128_tn", "before_count": 3, "after_count": 3, "before_ps": 450000000, "after_ps": 450000000, "change_ps": 0, "wait_change_ps": null, "transfer_change_ps": null},
    {"kernel": "sgemm_128x128_nt", "before_count": 3, "after_count": 3, "before_ps": 900000000, "after_ps": 900000000, "change_ps": 0, "wait_change_ps": null, "transfer_change_ps": null},
    {"kernel": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "before_count": 2, "after_count": 2, "before_ps": 780500000, "after_ps": 780500000, "change_ps": 0, "wait_change_ps": 0, "transfer_change_ps": 0},
    {"kernel": "multi_tensor_apply_kernel", "before_count": 1, "after_count": 1, "before_ps": 90000000, "after_ps": 90000000, "change_ps": 0, "wait_change_ps": null, "transfer_change_ps": null}
  ]
}
$ heddle trace diff examples/traces/ddp
error[E0801]: a comparison needs two paths: before and after; got 1
  hint: heddle trace diff BEFORE AFTER; the files of one job are in one folder
[2]
$ heddle trace diff examples/traces/ddp examples/traces/hang/missing
error[E0106]: no traces in examples/traces/hang/missing
  hint: name the trace files, or the folder that they are in (folders inside it are not searched); dumps of a job that hangs are for heddle trace hang
[1]
## A job of another number of ranks is no job of which ranks are missing.
$ mkdir four; for r in 0 1; do sed 's/"world_size": 2/"world_size": 4/' examples/traces/ddp/rank$r.json >four/rank$r.json; done; heddle trace diff examples/traces/ddp four --steps 11 | sed -n 1,6p
        files  ranks  steps      step  scatter
before      2      2      1  2.143 ms
after       2      2      1  2.143 ms
ranks  2 of 4 recorded after: the slowest may be missing
ranks  the job had 2 before and has 4 after

## Communications that take longer: one rank comes later, links are slower; a rank is missing, clocks cannot be compared.
$ grow() { awk -v later="$1" -v longer="$2" -v CONVFMT=%.12g '/"kernel".*nccl/ { match($0, /"ts": [0-9.]+/); $0 = substr($0, 1, RSTART + 5) (substr($0, RSTART + 6, RLENGTH - 6) + later) substr($0, RSTART + RLENGTH); match($0, /"dur": [0-9.]+/); $0 = substr($0, 1, RSTART + 6) (substr($0, RSTART + 7, RLENGTH - 7) + longer) substr($0, RSTART + RLENGTH) } /ProfilerStep/ { match($0, /"dur": [0-9.]+/); $0 = substr($0, 1, RSTART + 6) (substr($0, RSTART + 7, RLENGTH - 7) + 400) substr($0, RSTART + RLENGTH) } 1' examples/traces/ddp/rank$3.json; }; mkdir w l c; grow 0 28 0 >c/rank0.json; grow 28 0 1 | sed 's/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' >c/rank1.json; grow 0 200 0 >w/rank0.json; grow 200 0 1 >w/rank1.json; grow 0 200 0 >l/rank0.json; grow 0 200 1 >l/rank1.json; for d in w l c; do heddle trace diff examples/traces/ddp $d --steps 11 --top 2 | sed -n '/^verdict/,/^$/p;/^kernel/,$p'; done
verdict  18.7 % slower; one step on a side: how much steps vary is not known
         communications take 200.0 us longer: waiting +200.0 us, transfer 0; waits for rank 1, not slower links

kernel                                                        before  after      time  time after     change    waiting  transfer
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..       2      2  780.5 us    980.5 us  +200.0 us  +200.0 us         0
Memcpy HtoD (Pinned -> Device)                                     1      1  40.00 us    40.00 us          0
... and 3 more
verdict  18.7 % slower; one step on a side: how much steps vary is not known
         communications take 400.0 us longer: waiting 0, transfer +400.0 us; slower links, not late ranks

kernel                                                        before  after      time  time after     change  waiting   transfer
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..       2      2  780.5 us    1.181 ms  +400.0 us        0  +400.0 us
Memcpy HtoD (Pinned -> Device)                                     1      1  40.00 us    40.00 us          0
... and 3 more
verdict  18.7 % slower; one step on a side: how much steps vary is not known
         communications take 28.00 us longer: waiting +27.50 us, transfer +500.0 ns; which of both, clocks leave in doubt

kernel                                                        before  after      time  time after     change    waiting   transfer
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..       2      2  780.5 us    808.5 us  +28.00 us  +27.50 us  +500.0 ns
Memcpy HtoD (Pinned -> Device)                                     1      1  40.00 us    40.00 us          0
... and 3 more
$ mkdir x y; for r in 0 1; do for d in examples/traces/ddp:x w:y; do sed 's/"rank": [01], //; s/"Rank": [01], //' ${d%:*}/rank$r.json >${d#*:}/node${r}_4711.1690000000.pt.trace.json; done; done; heddle trace diff x y --steps 11 | grep -e verdict -e waits; heddle trace whatif x --set 'rank 1 = median'
verdict  18.7 % slower; one step on a side: how much steps vary is not known
         communications take 200.0 us longer: waiting +200.0 us, transfer 0; waits for ranks that no file names, not slower links; rank0.json, .. would name them
error[E0801]: no such rank is in the recordings
  --> --set:1:1
   1 | rank 1 = median
     | ^
  hint: `heddle trace info` lists them; the name of a file may say its rank: rank1.json
[2]
$ heddle trace diff w examples/traces/ddp --steps 11 --top 2 | sed -n '/^verdict/,/^$/p'; heddle trace diff examples/traces/ddp w --steps 11 --json | grep -e '^  "w' -e '^  "tr' -e nccl
verdict  15.7 % faster; one step on a side: how much steps vary is not known
         communications take 200.0 us less: waiting -200.0 us, transfer 0; ranks come together more closely; links are not faster

  "waiting_change_ps": 200000000,
  "transfer_change_ps": 0,
  "waits_for_rank": 1,
    {"kernel": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "before_count": 2, "after_count": 2, "before_ps": 780500000, "after_ps": 980500000, "change_ps": 200000000, "wait_change_ps": 200000000, "transfer_change_ps": 0},
$ heddle trace diff examples/traces/ddp/rank0.json w --steps 11 --top 2 | sed -n '/^verdict/,/^$/p;/^kernel/,$p'
verdict  18.7 % slower; one step on a side: how much steps vary is not known

kernel                                                        before  after      time  time after     change
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..       2      2  780.0 us    980.5 us  +200.5 us
Memcpy HtoD (Pinned -> Device)                                     1      1  40.00 us    40.00 us          0
... and 3 more
$ sed 's/"baseTimeNanoseconds": 1735689600000000000/"baseTimeNanoseconds": 0/' w/rank1.json >l/rank1.json; cp w/rank0.json l; heddle trace diff examples/traces/ddp l --steps 11 --top 2 --json | grep -e '^  "w' -e '^  "tr'; sed 's/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' w/rank1.json >l/rank1.json; heddle trace diff examples/traces/ddp l --steps 11 --top 2 | sed -n '/^verdict/,/^$/p'
  "waiting_change_ps": null,
  "transfer_change_ps": null,
  "waits_for_rank": null,
verdict  18.7 % slower; one step on a side: how much steps vary is not known
         communications take 200.0 us longer: waiting +199.5 us, transfer +500.0 ns; waits for rank 1, not slower links

## A step that is annotated twice is one step; events of two processes are told.
$ mkdir d; for r in 0 1; do sed 's/^\({.*ProfilerStep#.*},\)$/\1 \1/' examples/traces/ddp/rank$r.json > d/rank$r.json; done; heddle trace diff examples/traces/ddp d --json | grep -A 9 '"parts"'
  "parts": [
    {"part": "computation", "before_ps": 1440000000, "after_ps": 1440000000, "change_ps": 0},
    {"part": "exposed communication", "before_ps": 651750000, "after_ps": 651750000, "change_ps": 0},
    {"part": "copies", "before_ps": 40000000, "after_ps": 40000000, "change_ps": 0},
    {"part": "idle, waiting for the host", "before_ps": 219666667, "after_ps": 219666667, "change_ps": 0},
    {"part": "between kernels", "before_ps": 9500000, "after_ps": 9500000, "change_ps": 0},
    {"part": "idle, other", "before_ps": 0, "after_ps": 0, "change_ps": 0},
    {"part": "before and after device work", "before_ps": 41833333, "after_ps": 41833333, "change_ps": 0}
  ],
  "kernels": [
$ sed 's/"cat": "cpu_op", "name": "aten::linear", "pid": 4000/"cat": "cpu_op", "name": "aten::linear", "pid": 4001/' examples/traces/ddp/rank0.json > d/rank0.json; heddle trace info d/rank0.json 2>&1 >/dev/null
warning[W0103]: it has host events of several processes, which are read as one rank
  --> d/rank0.json
## A name of two groups: a communication with more members than its group has is none.
$ mkdir g; for r in 0 1; do sed 's/"Group size": 2/"Group size": 1/' examples/traces/ddp/rank$r.json > g/rank$r.json; done; heddle trace replay g | grep -e alone -e operations
operations              80
alone                   16 communications without their peers count as computation
rank  host alone  device alone  host on path  arrives last  gain if repaired
## Ranks that come at once: nobody is late. Clocks that a drift takes apart, though they agree in the middle.
$ cp examples/traces/ddp/rank0.json s; sed 's/"rank": 0/"rank": 1/' s/rank0.json > s/rank1.json; heddle trace blame s | sed -n '/^late/p;/^communication/,$p'
communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  4.242 ms                  0             0                       0
$ for r in 0 1; do awk -v r=$r -v CONVFMT=%.12g '/DataLoader/ { k++ } match($0, /"ts": [0-9.]+/) { $0 = substr($0, 1, RSTART + 5) (substr($0, RSTART + 6, RLENGTH - 6) + k * 1000000 + r * (k - 2.5) * 100) substr($0, RSTART + RLENGTH) } 1' examples/traces/ddp/rank$r.json > s/rank$r.json; done; heddle trace blame s | sed -n '2p;/^late/p;/^communication/,$p'
clocks      of hosts are up to 150.5 us apart: corrected by ends of communications, to within 15.00 us
late        rank 1 arrives last: at 2 of 8 communications, 2 beyond the clocks' doubt, 15.00 us
communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  3.121 ms           561.6 us      779.5 us                1      2
## Who comes last by less than clocks of two hosts are in doubt is counted and not named; files that name two hosts.
$ cp examples/traces/ddp/rank0.json s; sed 's/"rank": 0/"rank": 1/; s/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' s/rank0.json | awk -v CONVFMT=%.12g '/"kernel".*nccl/ { match($0, /"ts": [0-9.]+/); t = substr($0, RSTART + 6, RLENGTH - 6) + 3; $0 = substr($0, 1, RSTART + 5) t substr($0, RSTART + RLENGTH); match($0, /"dur": [0-9.]+/); d = substr($0, RSTART + 7, RLENGTH - 7) - 3; $0 = substr($0, 1, RSTART + 6) d substr($0, RSTART + RLENGTH) } 1' >s/rank1.json; heddle trace blame s | sed -n '2p;/^late/p;/^rank/,$p'
clocks    of hosts are up to 5.000 ms apart: corrected by ends of communications, to within 15.00 us
late      cannot be told: who comes last to a communication does so by less than the clocks' doubt, 15.00 us
rank  host alone  device alone  host on path  arrives last  beyond doubt  gain if repaired
   0    1.082 ms      8.832 ms      130.5 us             0             0             0.0 %
   1    1.082 ms      8.832 ms      266.0 us             8             0             0.0 %

communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  4.218 ms           12.00 us      3.000 us                       0
$ heddle trace convert examples/traces/ddp --to heddle -o one.json >a; sed 's/"rank":0,"dated"/"rank":0,"host":"a","dated"/; s/"rank":1,"dated"/"rank":1,"host":"b","dated"/' one.json >two.json; heddle trace blame two.json | sed -n '/^late/p;/^rank/,$p'; heddle trace blame two.json --json | grep -e doubt -e last_read
late        rank 1 arrives last: at 2 of 8 communications, 2 beyond the clocks' doubt, 500.0 ns
rank  host alone  device alone  host on path  arrives last  beyond doubt  gain if repaired
   0    1.841 ms      8.055 ms             0             0             0             0.0 %
   1    1.860 ms      8.055 ms      1.175 ms             2             2             8.4 %

communication  count  transfer  waiting of a rank  longest wait  last most often  times
all_reduce         8  3.120 ms           560.8 us      780.0 us                1      2
  "clocks_doubt_ps": 500000,
    {"rank": 0, "host_ps": 1840516666, "device_ps": 8054633328, "path_ps": 0, "last_read": 0, "last": 0, "repaired_ps": 9230133328, "gain": 0},
    {"rank": 1, "host_ps": 1860250000, "device_ps": 8055133328, "path_ps": 1175000000, "last_read": 2, "last": 2, "repaired_ps": 8451633328, "gain": 0.084343310365668}
## One step of a device that is never idle, so that launches tell no latency: what its host did before the first one counts.
$ heddle trace blame examples/traces/ddp --steps 12 | grep -e shorter -e bounds
ends apart  500.0 ns on average in a communication: shorter waits say nothing
            with the host times of rank 1 as the other's the job is 26.7 % shorter
bounds      2.012 ms if hosts took no time, 1.062 ms if devices took none
