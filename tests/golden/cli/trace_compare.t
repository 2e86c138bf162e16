## A simulated job as the recording: with its own plan and machine there is no gap in any row.
$ heddle sim mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 pp=2 mb=2' --machine dgx-2 --timeline own.json >sim.txt; heddle trace compare own.json mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 pp=2 mb=2' --machine dgx-2
model      mlp-xs:layers=2
plan       dp=2 tp=1 pp=2 mb=2
weights    f32
machine    dgx-2
ranks      4
measured   275.0 us
predicted  275.0 us
error bar  unknown: no measured spread for 100.0 % of the step
gap        0
ratio      1.00x
step       no step before it was recorded, so it is compared with one step alone
activity   110 of 110 instructions start and end 0.0 % of the step away from the prediction, on average; median of the worst stage 0.0 %

of a rank                               measured  predicted  gap  of the gap
computation            matmul           39.62 us   39.62 us    0
computation            optimizer        10.90 us   10.90 us    0
computation            reduction        5.056 us   5.056 us    0
computation            data movement    17.96 us   17.96 us    0
computation            element-wise     72.96 us   72.96 us    0
exposed communication  all_reduce       24.71 us   24.71 us    0
exposed communication  send, recv       18.15 us   18.15 us    0
idle                   pipeline bubble  85.67 us   85.67 us    0

stage  computes  predicted   exposed  predicted  copies  predicted      idle  predicted
    0  92.84 us   92.84 us  46.94 us   46.94 us       0          0  135.2 us   135.2 us
    1  200.1 us   200.1 us  38.78 us   38.78 us       0          0  36.10 us   36.10 us

event       kind         measured  predicted      mean  predicted  in all
einsum      computation         3          3  7.924 us   7.924 us       0
matmul      computation         2          2  7.924 us   7.924 us       0
sgd         computation         1          1  10.90 us   10.90 us       0
reduce_sum  computation         1          1  5.056 us   5.056 us       0
expand      computation         1          1  5.056 us   5.056 us       0
full        computation         2          2  6.450 us   6.450 us       0
add         computation         2          2  10.90 us   10.90 us       0
mul         computation         2          2  5.167 us   5.167 us       0
relu        computation         2          2  5.111 us   5.111 us       0
relu_dx     computation         2          2  5.167 us   5.167 us       0
... and 4 more

instruction  of the model  measured  predicted      mean  predicted  in all
add          mlp-xs               2          2  10.90 us   10.90 us       0
all_reduce   mlp-xs             1.5        1.5  16.47 us   16.47 us       0
einsum       mlp-xs               3          3  7.924 us   7.924 us       0
expand       mlp-xs               1          1  5.056 us   5.056 us       0
full         mlp-xs               2          2  6.450 us   6.450 us       0
matmul       mlp-xs               2          2  7.924 us   7.924 us       0
mul          mlp-xs               2          2  5.167 us   5.167 us       0
reduce_sum   mlp-xs               1          1  5.056 us   5.056 us       0
relu         mlp-xs               2          2  5.111 us   5.111 us       0
relu_dx      mlp-xs               2          2  5.167 us   5.167 us       0
... and 4 more
## Links that are slower than the machine's: the gap is all in communication.
$ heddle trace compare examples/traces/simulated/slow.json mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 tp=2' --machine dgx-2 --top 3 --timeline both.json
model      mlp-xs:layers=2
plan       dp=2 tp=2 pp=1
weights    f32
machine    dgx-2
ranks      4
measured   454.2 us
predicted  168.2 us
error bar  unknown: no measured spread for 100.0 % of the step
gap        +286.0 us
ratio      2.70x
step       no step before it was recorded, so it is compared with one step alone
activity   96 of 96 instructions start and end 7.3 % of the step away from the prediction, on average; median 1.0 %

of a rank                             measured  predicted        gap  of the gap
computation            matmul         33.76 us   33.76 us          0
computation            optimizer      17.30 us   17.30 us          0
computation            reduction      5.111 us   5.111 us          0
computation            data movement  10.11 us   10.11 us          0
computation            element-wise   52.06 us   52.06 us          0
exposed communication  all_reduce     335.8 us   49.86 us  +286.0 us     100.0 %

rank  computes  predicted   exposed  predicted  copies  predicted  idle  predicted
   0  118.3 us   118.3 us  335.8 us   49.86 us       0          0     0          0
   1  118.3 us   118.3 us  335.8 us   49.86 us       0          0     0          0
   2  118.3 us   118.3 us  335.8 us   49.86 us       0          0     0          0
   3  118.3 us   118.3 us  335.8 us   49.86 us       0          0     0          0

event       kind                   measured  predicted      mean  predicted     in all
all_reduce  exposed communication         4          4  83.96 us   12.47 us  +286.0 us
einsum      computation                   3          3  6.753 us   6.753 us          0
matmul      computation                   2          2  6.753 us   6.753 us          0
... and 9 more

instruction  of the model  measured  predicted      mean  predicted     in all
all_reduce   mlp-xs               4          4  83.96 us   12.47 us  +286.0 us
einsum       mlp-xs               3          3  6.753 us   6.753 us          0
expand       mlp-xs               1          1  5.111 us   5.111 us          0
... and 9 more
$ head -4 both.json; grep -c '"ph":"X"' both.json
{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0, measured"}},
{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"compute"}},
192
$ heddle trace compare examples/traces/simulated/slow.json mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 tp=2' --machine dgx-2 --top 3 --json
{
  "model": "mlp-xs:layers=2",
  "plan": "dp=2 tp=2 pp=1",
  "parameter_dtypes": "f32",
  "machine": "dgx-2",
  "ranks": 4,
  "measured_ps": 454169476,
  "steps": 1,
  "step": 0,
  "least_ps": 454169476,
  "most_ps": 454169476,
  "sd_ps": null,
  "alone": true,
  "predicted_ps": 168206921,
  "time_error_ps": null,
  "known_error_ps": 0,
  "known_error_share": 0,
  "gap_ps": 285962555,
  "ratio": 2.700064143020607,
  "clocks_corrected_ps": 0,
  "lone": 0,
  "paired": 96,
  "instructions_measured": 96,
  "activity": 0.07285256417327643,
  "activity_median": 0.009686707787469186,
  "parts": [
    {"group": "computation", "part": "matmul", "measured_ps": 33764310, "predicted_ps": 33764310, "gap_ps": 0, "share": null},
    {"group": "computation", "part": "optimizer", "measured_ps": 17299128, "predicted_ps": 17299128, "gap_ps": 0, "share": null},
    {"group": "computation", "part": "reduction", "measured_ps": 5111369, "predicted_ps": 5111369, "gap_ps": 0, "share": null},
    {"group": "computation", "part": "data movement", "measured_ps": 10111396, "predicted_ps": 10111396, "gap_ps": 0, "share": null},
    {"group": "computation", "part": "element-wise", "measured_ps": 52059939, "predicted_ps": 52059939, "gap_ps": 0, "share": null},
    {"group": "exposed communication", "part": "all_reduce", "measured_ps": 335823334, "predicted_ps": 49860779, "gap_ps": 285962555, "share": 1}
  ],
  "by_rank": [
    {"rank": 0, "ranks": 1, "compute_ps": 118346142, "predicted_compute_ps": 118346142, "exposed_ps": 335823334, "predicted_exposed_ps": 49860779, "copy_ps": 0, "predicted_copy_ps": 0, "idle_ps": 0, "predicted_idle_ps": 0},
    {"rank": 1, "ranks": 1, "compute_ps": 118346142, "predicted_compute_ps": 118346142, "exposed_ps": 335823334, "predicted_exposed_ps": 49860779, "copy_ps": 0, "predicted_copy_ps": 0, "idle_ps": 0, "predicted_idle_ps": 0},
    {"rank": 2, "ranks": 1, "compute_ps": 118346142, "predicted_compute_ps": 118346142, "exposed_ps": 335823334, "predicted_exposed_ps": 49860779, "copy_ps": 0, "predicted_copy_ps": 0, "idle_ps": 0, "predicted_idle_ps": 0},
    {"rank": 3, "ranks": 1, "compute_ps": 118346142, "predicted_compute_ps": 118346142, "exposed_ps": 335823334, "predicted_exposed_ps": 49860779, "copy_ps": 0, "predicted_copy_ps": 0, "idle_ps": 0, "predicted_idle_ps": 0}
  ],
  "events": [
    {"event": "all_reduce", "group": "exposed communication", "measured_count": 4, "predicted_count": 4, "measured_mean_ps": 83955833, "predicted_mean_ps": 12465194, "difference_ps": 285962555},
    {"event": "einsum", "group": "computation", "measured_count": 3, "predicted_count": 3, "measured_mean_ps": 6752862, "predicted_mean_ps": 6752862, "difference_ps": 0},
    {"event": "matmul", "group": "computation", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 6752862, "predicted_mean_ps": 6752862, "difference_ps": 0},
    {"event": "sgd", "group": "computation", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 8649564, "predicted_mean_ps": 8649564, "difference_ps": 0},
    {"event": "reduce_sum", "group": "computation", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5111369, "predicted_mean_ps": 5111369, "difference_ps": 0},
    {"event": "expand", "group": "computation", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5111369, "predicted_mean_ps": 5111369, "difference_ps": 0},
    {"event": "full", "group": "computation", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5000027, "predicted_mean_ps": 5000027, "difference_ps": 0},
    {"event": "mul", "group": "computation", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5334027, "predicted_mean_ps": 5334027, "difference_ps": 0},
    {"event": "relu", "group": "computation", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5167013, "predicted_mean_ps": 5167013, "difference_ps": 0},
    {"event": "relu_dx", "group": "computation", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5250520, "predicted_mean_ps": 5250520, "difference_ps": 0},
    {"event": "scale", "group": "computation", "measured_count": 3, "predicted_count": 3, "measured_mean_ps": 5074264, "predicted_mean_ps": 5074264, "difference_ps": 0},
    {"event": "sub", "group": "computation", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5334027, "predicted_mean_ps": 5334027, "difference_ps": 0}
  ],
  "instructions": [
    {"instruction": "all_reduce", "function": null, "node": "mlp-xs", "measured_count": 4, "predicted_count": 4, "measured_mean_ps": 83955833, "predicted_mean_ps": 12465194, "difference_ps": 285962555},
    {"instruction": "einsum", "function": null, "node": "mlp-xs", "measured_count": 3, "predicted_count": 3, "measured_mean_ps": 6752862, "predicted_mean_ps": 6752862, "difference_ps": 0},
    {"instruction": "expand", "function": null, "node": "mlp-xs", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5111369, "predicted_mean_ps": 5111369, "difference_ps": 0},
    {"instruction": "full", "function": null, "node": "mlp-xs", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5000027, "predicted_mean_ps": 5000027, "difference_ps": 0},
    {"instruction": "matmul", "function": null, "node": "mlp-xs", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 6752862, "predicted_mean_ps": 6752862, "difference_ps": 0},
    {"instruction": "mul", "function": null, "node": "mlp-xs", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5334027, "predicted_mean_ps": 5334027, "difference_ps": 0},
    {"instruction": "reduce_sum", "function": null, "node": "mlp-xs", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5111369, "predicted_mean_ps": 5111369, "difference_ps": 0},
    {"instruction": "relu", "function": null, "node": "mlp-xs", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5167013, "predicted_mean_ps": 5167013, "difference_ps": 0},
    {"instruction": "relu_dx", "function": null, "node": "mlp-xs", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 5250520, "predicted_mean_ps": 5250520, "difference_ps": 0},
    {"instruction": "scale", "function": null, "node": "mlp-xs", "measured_count": 3, "predicted_count": 3, "measured_mean_ps": 5074264, "predicted_mean_ps": 5074264, "difference_ps": 0},
    {"instruction": "sgd", "function": null, "node": "mlp-xs", "measured_count": 2, "predicted_count": 2, "measured_mean_ps": 8649564, "predicted_mean_ps": 8649564, "difference_ps": 0},
    {"instruction": "sub", "function": null, "node": "mlp-xs", "measured_count": 1, "predicted_count": 1, "measured_mean_ps": 5334027, "predicted_mean_ps": 5334027, "difference_ps": 0}
  ]
}
## Kernels of a real profiler by class; the plan is no longer that of the job.
$ heddle trace compare examples/traces/ddp mlp-xs:layers=3,hidden=2048 --batch 64 --train --strategy dp=2 --machine dgx-2
model      mlp-xs:layers=3,hidden=2048
plan       dp=2 tp=1 pp=1
weights    f32
machine    dgx-2
ranks      2
measured   2.146 ms, the median of 2 steps from 2.146 ms to 2.926 ms
predicted  1.108 ms
error bar  unknown: no measured spread for 100.0 % of the step
gap        +1.037 ms
ratio      1.94x

of a rank                                    measured  predicted        gap  of the gap
computation            matmul                1.350 ms   275.8 us  +1.074 ms     103.5 %
computation            optimizer             90.00 us   228.7 us  -138.7 us     -13.4 %
computation            reduction                    0   6.067 us  -6.067 us      -0.6 %
computation            data movement                0   11.07 us  -11.07 us      -1.1 %
computation            element-wise                 0   80.70 us  -80.70 us      -7.8 %
exposed communication  all_reduce            521.8 us   506.0 us  +15.72 us       1.5 %
copies                 copies                40.00 us          0  +40.00 us       3.9 %
idle                   waiting for peers     250.0 ns          0  +250.0 ns       0.0 %
idle                   waiting for the host  134.2 us          0  +134.2 us      12.9 %
idle                   between kernels       9.500 us          0  +9.500 us       0.9 %

rank  computes  predicted   exposed  predicted    copies  predicted      idle  predicted
   0  1.440 ms   602.4 us  521.5 us   506.0 us  40.00 us          0  144.2 us          0
   1  1.440 ms   602.4 us  522.0 us   506.0 us  40.00 us          0  143.8 us          0

event          kind                   measured  predicted      mean  predicted     in all
matmul         computation                   6          8  225.0 us   34.48 us  +1.074 ms
all_reduce     exposed communication         2          4  390.2 us   126.5 us  +274.5 us
optimizer      computation                   1          3  90.00 us   76.23 us  -138.7 us
element-wise   computation                   0         12             6.725 us  -80.70 us
copies         copies                        1          0  40.00 us             +40.00 us
data movement  computation                   0          2             5.534 us  -11.07 us
reduction      computation                   0          1             6.067 us  -6.067 us
## One rank of two
$ heddle trace compare examples/traces/ddp/rank1.json mlp-xs:layers=3,hidden=2048 --batch 64 --train --strategy dp=2 --machine dgx-2 --steps 12 | head -10
model      mlp-xs:layers=3,hidden=2048
plan       dp=2 tp=1 pp=1
weights    f32
machine    dgx-2
ranks      1 recorded of the plan's 2: those are compared
measured   2.926 ms
predicted  1.108 ms
error bar  unknown: no measured spread for 100.0 % of the step
gap        +1.817 ms
ratio      2.64x
## Clocks of hosts that are apart change little.
$ mkdir far; cp examples/traces/ddp/rank0.json far; sed 's/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' examples/traces/ddp/rank1.json >far/rank1.json; heddle trace compare far mlp-xs:layers=3,hidden=2048 --batch 64 --train --strategy dp=2 --machine dgx-2 >a; sed -n 5,11p a; heddle trace compare examples/traces/ddp mlp-xs:layers=3,hidden=2048 --batch 64 --train --strategy dp=2 --machine dgx-2 | diff - a
ranks      2
measured   2.146 ms, the median of 2 steps from 2.146 ms to 2.926 ms
predicted  1.108 ms
error bar  unknown: no measured spread for 100.0 % of the step
gap        +1.037 ms
ratio      1.94x
clocks     of hosts are up to 5.000 ms apart: put on that of the first
10a11
> clocks     of hosts are up to 5.000 ms apart: put on that of the first
18c19
< exposed communication  all_reduce            521.8 us   506.0 us  +15.72 us       1.5 %
---
> exposed communication  all_reduce            521.2 us   506.0 us  +15.22 us       1.5 %
20,21c21,22
< idle                   waiting for peers     250.0 ns          0  +250.0 ns       0.0 %
< idle                   waiting for the host  134.2 us          0  +134.2 us      12.9 %
---
> idle                   waiting for peers     500.0 ns          0  +500.0 ns       0.0 %
> idle                   waiting for the host  134.5 us          0  +134.5 us      13.0 %
26c27
<    1  1.440 ms   602.4 us  522.0 us   506.0 us  40.00 us          0  143.8 us          0
---
>    1  1.440 ms   602.4 us  521.0 us   506.0 us  40.00 us          0  144.8 us          0
30c31
< all_reduce     exposed communication         2          4  390.2 us   126.5 us  +274.5 us
---
> all_reduce     exposed communication         2          4  390.0 us   126.5 us  +274.0 us
[1]
## wrong
$ heddle trace compare examples/traces/ddp
error[E0801]: the model is missing
  hint: heddle trace compare DIR MODEL --plan FILE --machine M
[2]
$ heddle trace compare examples/traces/ddp mlp-xs
error[E0801]: --machine is missing
  hint: --machine dgx-2; `heddle machines` lists the presets
[2]
$ heddle trace compare examples/traces/ddp mlp-xs --train --machine dgx-2 --strategy dp=1
error[E0106]: rank 1 was recorded, but the plan has 1 rank
  --> examples/traces/ddp/rank1.json
  hint: compare with the plan that the job ran: its dp, tp and pp multiply to the job's ranks
[1]
$ heddle trace compare examples/traces/pipeline mlp-xs --train --machine dgx-2 --strategy dp=2
error[E0106]: nothing runs on a device here
  --> examples/traces/pipeline/timeline.json.gz
[1]
$ heddle trace compare examples/traces/ddp mlp-xs:layers=3 --train --machine dgx-2 --strategy dp=2 --set 'rank 1 = median'
error[E0801]: `heddle trace compare` has no option --set
  hint: leave it out; questions that take it: whatif, align
[2]
$ heddle trace summary examples/traces/ddp --machine dgx-2
error[E0801]: `heddle trace summary` has no option --machine
  hint: leave it out; questions that take it: compare, rescale
[2]
$ heddle trace compare own.json mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 pp=2 mb=2' --machine dgx-2 --timeline ./own.json
error[E0102]: ./own.json is one of the recordings: it would be overwritten
  --> own.json
  hint: name another file
[1]
$ mkdir twice; cp examples/traces/ddp/rank1.json twice/a.json; cp examples/traces/ddp/rank1.json twice/b.json; heddle trace compare twice mlp-xs:layers=3 --train --machine dgx-2 --strategy dp=2
error[E0106]: rank 1 is there twice: also in twice/a.json
  --> twice/b.json
[1]
## A slice is of the task whose microbatch it is.
$ heddle sim mlp-xs:layers=4 --batch 16 --train --strategy 'pp=2 mb=4' --machine dgx-2 --timeline tasks.json >/dev/null; heddle trace compare tasks.json mlp-xs:layers=4 --batch 16 --train --strategy 'pp=2 mb=4' --machine dgx-2 --timeline named.json >/dev/null; grep -oE '"microbatch":[0-9]+,"task":"[0-9]+[A-Z][0-9]+"' named.json | sed 's/.*:\([0-9]*\),.*[A-Z]\([0-9]*\)"/\1 \2/' | awk '{ same += $1 == $2; other += $1 != $2 } END { print (same > 0), other + 0 }'
1 0
