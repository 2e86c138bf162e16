## long: .ci/run has it without sanitizers
## A made-up job of 2 data ranks x 4 stages (tools/make-pipeline-trace.py): worker 3 computes 40 % slower.
$ heddle trace blame examples/traces/pipeline
timeline   examples/traces/pipeline/timeline.json.gz
job        2 x 4 workers (data ranks x stages), 4 microbatches, 3 steps of 212 operations
step       517.1 ms; 487.7 ms if every operation took what it does on average: 1.06x
verdict    worker 3 (rank 3: stage 1, data rank 1) costs 8 % of the step; repairing it gains 6 % (484.3 ms instead of 517.1 ms)
explained  by the slowest 3 % of workers (1) 111.3 % of what is lost, by the last stage 12.6 %

per step and worker, and what each operation does to the step:
operation                      takes     waits  waiting  slowdown     costs      gains  explains
forward-compute             85.91 ms                        1.02x  9.202 ms   9.202 ms    31.2 %
backward-compute            172.2 ms                        1.04x  20.10 ms   20.10 ms    68.2 %
forward-pp-comm             2.386 ms  82.23 ms   97.2 %     1.00x  46.31 us  -39.20 us    -0.1 %
backward-pp-comm            2.402 ms  135.1 ms   98.3 %     1.00x  19.98 us  -8.227 us    -0.0 %
params-all-gather           7.992 ms         0    0.0 %     1.00x  63.25 us   21.84 us     0.1 %
grads-reduce-scatter        12.00 ms  17.68 ms   59.6 %     1.00x  99.98 us   58.09 us     0.2 %
layernorm-grads-all-reduce  40.36 us         0    0.0 %     1.00x  2.409 us  -367.2 ns    -0.0 %
embedding-grads-all-reduce  2.494 ms  32.44 ms   92.9 %     1.00x  52.69 us   75.00 ns     0.0 %
optimizer-clip-main-grad    901.2 us  37.03 ms   97.6 %     1.00x  28.88 us   7.176 us     0.0 %
optimizer                   6.008 ms                        1.00x  69.81 us   48.11 us     0.2 %
gc                                 0                        1.00x         0          0     0.0 %

who                                      slowdown      costs      gains  explains
stage 1                                     1.08x   38.79 ms   32.76 ms   111.2 %
stage 3                                     1.01x   5.738 ms   3.725 ms    12.6 %
stage 0                                     0.99x  -4.048 ms  -4.654 ms   -15.8 %
stage 2                                     0.99x  -5.622 ms  -8.472 ms   -28.8 %
data rank 1                                 1.06x   29.43 ms   29.38 ms    99.8 %
data rank 0                                 1.00x   71.06 us   20.52 us     0.1 %
worker 3 (rank 3: stage 1, data rank 1)     1.08x   38.79 ms   32.79 ms   111.3 %
worker 7 (rank 7: stage 3, data rank 1)     1.01x   5.717 ms   3.702 ms    12.6 %
worker 6 (rank 6: stage 3, data rank 0)     1.01x   3.425 ms   20.52 us     0.1 %
... and 5 more
microbatch 0                                1.03x   14.85 ms   14.85 ms    50.4 %
microbatch 3                                1.03x   14.40 ms   14.40 ms    48.9 %
microbatch 2                                1.00x   496.3 us          0     0.0 %
microbatch 1                                1.00x   151.4 us          0     0.0 %

slowdown by each worker alone: a line for every stage, a column for every data rank
    0  1.00 1.00
    1  1.00 1.08
    2  1.00 1.00
    3  1.01 1.01

step  recorded  replayed     ideal  slowdown
  10  518.8 ms  518.8 ms  487.7 ms     1.06x
  12  516.4 ms  516.4 ms  487.7 ms     1.06x
  11  516.1 ms  516.1 ms  487.7 ms     1.06x
$ heddle trace blame examples/traces/pipeline --steps 10,12 --top 2 | tail -n 4

step  recorded  replayed     ideal  slowdown
  10  518.8 ms  518.8 ms  487.9 ms     1.06x
  12  516.4 ms  516.4 ms  487.9 ms     1.06x
$ heddle trace blame examples/traces/pipeline --steps 11 --json
{
  "timeline": "examples/traces/pipeline/timeline.json.gz",
  "workers": 8,
  "data_ranks": 2,
  "stages": 4,
  "microbatches": 4,
  "steps": 1,
  "steps_left_out": 0,
  "operations_per_step": 212,
  "recorded_ps": 516088027000,
  "replayed_ps": 516088027000,
  "ideal_ps": 487258746125,
  "slowdown": 1.0591662665970991,
  "verdict": "worker 3 (rank 3: stage 1, data rank 1) costs 8 % of the step; repairing it gains 6 % (482.9 ms instead of 516.1 ms)",
  "slowest_workers": 1,
  "slowest_workers_explain": 1.151111378528272,
  "last_stage_explains": 0.13880386116290874,
  "operations": [
    {"operation": "forward-compute", "took_ps": 85737392500, "waited_ps": null, "waiting": null, "slowdown": 1.017815477288063, "costs_ps": 8680747125, "gains_ps": 8680747125, "explains": 0.30110869440825067},
    {"operation": "backward-compute", "took_ps": 172198020500, "waited_ps": null, "waiting": null, "slowdown": 1.0409490938514243, "costs_ps": 19952804125, "gains_ps": 19952804125, "explains": 0.6921020406826225},
    {"operation": "forward-pp-comm", "took_ps": 2399664000, "waited_ps": 82354422125, "waiting": 0.9716867456223781, "slowdown": 0.9999520213845602, "costs_ps": -23378000, "gains_ps": -23378000, "explains": -0.0008109116596200911},
    {"operation": "backward-pp-comm", "took_ps": 2386081250, "waited_ps": 135144896125, "waiting": 0.9826505904666556, "slowdown": 1.0000134107392673, "costs_ps": 6534500, "gains_ps": 6534500, "explains": 0.00022666191461149306},
    {"operation": "params-all-gather", "took_ps": 8022211875, "waited_ps": 0, "waiting": 0, "slowdown": 1.0001296015730907, "costs_ps": 63149500, "gains_ps": -61089500, "explains": -0.002119008804446982},
    {"operation": "grads-reduce-scatter", "took_ps": 11950206125, "waited_ps": 16667373375, "waiting": 0.582417299653173, "slowdown": 1.0003349626893268, "costs_ps": 163213500, "gains_ps": 163213500, "explains": 0.005661379508828973},
    {"operation": "layernorm-grads-all-reduce", "took_ps": 39908375, "waited_ps": 0, "waiting": 0, "slowdown": 1.000005040443131, "costs_ps": 2456000, "gains_ps": 2456000, "explains": 8.519116417259576e-05},
    {"operation": "embedding-grads-all-reduce", "took_ps": 2487226375, "waited_ps": 32359340000, "waiting": 0.9286234876563215, "slowdown": 1.0000785691386855, "costs_ps": 38283500, "gains_ps": 38283500, "explains": 0.0013279380837139941},
    {"operation": "optimizer-clip-main-grad", "took_ps": 904286875, "waited_ps": 37138552125, "waiting": 0.9762297741501363, "slowdown": 1.0000417221859261, "costs_ps": 20329500, "gains_ps": -10344500, "explains": -0.00035881921733852475},
    {"operation": "optimizer", "took_ps": 5998783875, "waited_ps": null, "waiting": null, "slowdown": 1.0001642948959595, "costs_ps": 80054125, "gains_ps": 49380125, "explains": 0.001712846227906474},
    {"operation": "gc", "took_ps": 0, "waited_ps": null, "waiting": null, "slowdown": 1, "costs_ps": 0, "gains_ps": 0, "explains": 0}
  ],
  "by_stage": [
    {"name": "stage 1", "number": 1, "rank": null, "data": null, "stage": 1, "slowdown": 1.0808956769652074, "costs_ps": 39417126125, "gains_ps": 33100980250, "explains": 1.1481722486773613},
    {"name": "stage 3", "number": 3, "rank": null, "data": null, "stage": 3, "slowdown": 1.01183684986851, "costs_ps": 5767608625, "gains_ps": 4001615500, "explains": 0.13880386116290874},
    {"name": "stage 0", "number": 0, "rank": null, "data": null, "stage": 0, "slowdown": 0.991381453317366, "costs_ps": -4199462250, "gains_ps": -4781241250, "explains": -0.16584670532473003},
    {"name": "stage 2", "number": 2, "rank": null, "data": null, "stage": 2, "slowdown": 0.9875713977980676, "costs_ps": -6055945125, "gains_ps": -9808219500, "explains": -0.34021727917970485}
  ],
  "by_data": [
    {"name": "data rank 1", "number": 1, "rank": null, "data": 1, "stage": null, "slowdown": 1.0590399415172735, "costs_ps": 28767727875, "gains_ps": 28666067375, "explains": 0.994338620491171},
    {"name": "data rank 0", "number": 0, "rank": null, "data": 0, "stage": null, "slowdown": 1.0003349626893268, "costs_ps": 163213500, "gains_ps": 61553000, "explains": 0.002135086208597633}
  ],
  "by_worker": [
    {"name": "worker 3 (rank 3: stage 1, data rank 1)", "number": 3, "rank": 3, "data": 1, "stage": 1, "slowdown": 1.0808956769652074, "costs_ps": 39417126125, "gains_ps": 33185713250, "explains": 1.151111378528272},
    {"name": "worker 7 (rank 7: stage 3, data rank 1)", "number": 7, "rank": 7, "data": 1, "stage": 3, "slowdown": 1.0117105247886842, "costs_ps": 5706055625, "gains_ps": 3838402000, "explains": 0.13314248165407977},
    {"name": "worker 6 (rank 6: stage 3, data rank 0)", "number": 6, "rank": 6, "data": 0, "stage": 3, "slowdown": 1.0088536902298995, "costs_ps": 4314038000, "gains_ps": 61553000, "explains": 0.002135086208597633},
    {"name": "worker 5 (rank 5: stage 2, data rank 1)", "number": 5, "rank": 5, "data": 1, "stage": 2, "slowdown": 1.000004249538908, "costs_ps": 2070625, "gains_ps": -9808219500, "explains": -0.34021727917970485},
    {"name": "worker 0 (rank 0: stage 0, data rank 0)", "number": 0, "rank": 0, "data": 0, "stage": 0, "slowdown": 1, "costs_ps": 0, "gains_ps": 0, "explains": 0},
    {"name": "worker 1 (rank 1: stage 0, data rank 1)", "number": 1, "rank": 1, "data": 1, "stage": 0, "slowdown": 1, "costs_ps": 0, "gains_ps": -4781241250, "explains": -0.16584670532473003},
    {"name": "worker 2 (rank 2: stage 1, data rank 0)", "number": 2, "rank": 2, "data": 0, "stage": 1, "slowdown": 1, "costs_ps": 0, "gains_ps": 0, "explains": 0},
    {"name": "worker 4 (rank 4: stage 2, data rank 0)", "number": 4, "rank": 4, "data": 0, "stage": 2, "slowdown": 1, "costs_ps": 0, "gains_ps": 0, "explains": 0}
  ],
  "by_microbatch": [
    {"name": "microbatch 0", "number": 0, "rank": null, "data": null, "stage": null, "slowdown": 1.0302797050690908, "costs_ps": 14754051125, "gains_ps": 14754051125, "explains": 0.511773123615939},
    {"name": "microbatch 3", "number": 3, "rank": null, "data": null, "stage": null, "slowdown": 1.028450298194224, "costs_ps": 13862656625, "gains_ps": 13862656625, "explains": 0.48085336172992554},
    {"name": "microbatch 2", "number": 2, "rank": null, "data": null, "stage": null, "slowdown": 1.0006869486749328, "costs_ps": 334721750, "gains_ps": 0, "explains": 0},
    {"name": "microbatch 1", "number": 1, "rank": null, "data": null, "stage": null, "slowdown": 1, "costs_ps": 0, "gains_ps": 0, "explains": 0}
  ],
  "by_step": [
    {"step": 11, "recorded_ps": 516088027000, "replayed_ps": 516088027000, "ideal_ps": 487258746125, "slowdown": 1.0591662665970991}
  ]
}
$ heddle trace blame tests/interleaved/timeline.json.gz | head -n 5
timeline   tests/interleaved/timeline.json.gz
job        2 x 4 workers (data ranks x stages), 4 microbatches, 1 step of 452 operations
step       439.6 ms; 387.9 ms if every operation took what it does on average: 1.13x
verdict    worker 3 (rank 3: stage 1, data rank 1) costs 12 % of the step; repairing it gains 12 % (389.0 ms instead of 439.6 ms)
explained  by the slowest 3 % of workers (1) 97.9 % of what is lost, by the last stage 11.0 %
$ heddle trace whatif examples/traces/pipeline --set 'worker 3 = ideal' --set 'stage 1 forward-compute x 0.5' --set 'backward-send = 0'
timeline  examples/traces/pipeline/timeline.json.gz
job       2 x 4 workers (data ranks x stages), 4 microbatches, 3 steps of 212 operations
step      517.1 ms

change                         operations a step      step     change  faster
worker 3 = ideal                              30  484.3 ms  -32.79 ms   1.07x
stage 1 forward-compute x 0.5                  8  490.0 ms  -27.06 ms   1.06x
backward-send = 0                             24  517.1 ms          0   1.00x
all of them, in this order                    54  473.6 ms  -43.53 ms   1.09x

step       now      then     change
  10  518.8 ms  473.9 ms  -44.92 ms
  11  516.1 ms  472.2 ms  -43.88 ms
  12  516.4 ms  474.6 ms  -41.78 ms
$ heddle trace whatif examples/traces/pipeline --set 'data 1 = median' --steps 11 --json
{
  "timeline": "examples/traces/pipeline/timeline.json.gz",
  "workers": 8,
  "data_ranks": 2,
  "stages": 4,
  "microbatches": 4,
  "steps": 1,
  "steps_left_out": 0,
  "operations_per_step": 212,
  "recorded_ps": 516088027000,
  "replayed_ps": 516088027000,
  "changes": [
    {"change": "data 1 = median", "operations": 106, "changed_ps": 478722338500, "change_ps": -37365688500, "times_faster": 1.0780529452982692}
  ],
  "changed_ps": 478722338500,
  "by_step": [
    {"step": 11, "replayed_ps": 516088027000, "changed_ps": 478722338500, "change_ps": -37365688500}
  ]
}
## What cannot be answered.
$ heddle trace whatif examples/traces/pipeline
error[E0801]: nothing is changed
  hint: say what would be different, such as --set 'rank 3 = median', or of a pipelined job 'worker 0 = ideal'
[2]
$ heddle trace whatif examples/traces/pipeline --set 'worker 3 = ideel'
error[E0801]: 'ideel' is no value
  --> --set:1:12
   1 | worker 3 = ideel
     |            ^
  hint: did you mean ideal?
[2]
$ heddle trace whatif examples/traces/pipeline --set 'worker 3 = 5' --set 'stage x 2'
error[E0801]: '5' is not a time
  --> --set:1:12
   1 | worker 3 = 5
     |            ^
  hint: a time has a unit, such as 3ms: ps, ns, us, ms or s
error[E0801]: 'x' where a number is expected
  --> --set:1:7
   1 | stage x 2
     |       ^
  hint: numbers are such as 3, or 3-5,8
[2]
$ heddle trace whatif examples/traces/pipeline --set 'worker 3-5,8 = ideal'
error[E0801]: this job has no worker 8
  --> --set:1:1
   1 | worker 3-5,8 = ideal
     | ^
  hint: they go from 0 to 7
[2]
$ heddle trace whatif examples/traces/pipeline --set 'forward-compte x 0.5'
error[E0801]: no operation of this job is called 'forward-compte'
  --> --set:1:1
   1 | forward-compte x 0.5
     | ^
  hint: did you mean forward-compute?
[2]
$ heddle trace whatif examples/traces/pipeline --set 'stage 1 embedding* = 0'
error[E0801]: no operation of this job is all of that
  --> --set:1:1
   1 | stage 1 embedding* = 0
     | ^
  hint: leave out a part of 'stage 1 embedding* = 0'
[2]
$ heddle trace blame examples/traces/pipeline --steps 10-
error[E0801]: the text ends where a number is expected
  --> --steps:1:4
   1 | 10-
     |    ^
  hint: numbers are such as 3, or 3-5,8
[2]
$ heddle trace blame examples/traces/pipeline --steps 77
error[E0106]: it has no operation of these steps
  --> examples/traces/pipeline/timeline.json.gz
  hint: its steps go from 10 to 12
[1]
$ heddle trace blame examples/traces/pipeline --set 'worker 3 = ideal'
error[E0801]: `heddle trace blame` has no option --set
  hint: leave it out; questions that take it: whatif, align
[2]
$ heddle trace blame examples/traces/pipeline tests/interleaved
error[E0106]: 2 timelines: one has all workers of a job
  --> tests/interleaved/timeline.json.gz
  hint: name one of them, such as examples/traces/pipeline/timeline.json.gz
[1]
$ heddle trace blame README.md
error[E0101]: cannot open README.md: No such file or directory
[1]
$ zcat examples/traces/pipeline/timeline.json.gz | head -c 60000 > timeline.json; heddle trace blame timeline.json 2>&1 >/dev/null
warning[W0102]: the file ends early: 365 events before that are used
  --> timeline.json
$ heddle trace blame timeline.json 2>/dev/null | head -n 4
timeline   timeline.json
job        2 x 4 workers (data ranks x stages), 4 microbatches, 1 step of 212 operations
           1 step left out: other operations, or another order of computation
step       518.8 ms; 488.6 ms if every operation took what it does on average: 1.06x
$ sed -i 's/"ts"/"at"/' timeline.json; heddle trace blame timeline.json
error[E0106]: the timeline has no operation that can be read
  --> timeline.json
[1]
$ cp examples/traces/pipeline/timeline.json.gz timeline-x.json.gz; printf 'dp_size: 4\npp_size: 4\n' > meta-x.yaml; heddle trace blame timeline-x.json.gz 2>&1 >/dev/null
warning[W0101]: dp_size is 4, but the timeline has 2: that is used
  --> meta-x.yaml: dp_size
## The first two steps of the same job as a table (tools/make-parquet-trace.py).
$ heddle trace blame tests/table/v2.parquet | head -n 5
timeline   tests/table/v2.parquet
job        2 x 4 workers (data ranks x stages), 4 microbatches, 2 steps of 212 operations
step       517.4 ms; 488.0 ms if every operation took what it does on average: 1.06x
verdict    worker 3 (rank 3: stage 1, data rank 1) costs 8 % of the step; repairing it gains 6 % (483.8 ms instead of 517.4 ms)
explained  by the slowest 3 % of workers (1) 114.1 % of what is lost, by the last stage 12.8 %
$ heddle trace blame tests/table/dictionary.parquet | tail -n 3
step  recorded  replayed     ideal  slowdown
  10  518.8 ms  518.8 ms  488.0 ms     1.06x
  11  516.1 ms  516.1 ms  488.0 ms     1.06x
$ heddle trace info tests/table/plain.parquet
rank  file                       format              host  device  steps  streams  threads  events     span  clock starts at
   0  tests/table/plain.parquet  operation timeline                            24        0     424  1.035 s  of its own

rank  missing
   0  no launches: why a device is idle cannot be told
   0  no steps: nothing says where one begins, such as calls of the profiler's step()
   0  the sizes of 264 of 264 communications: bandwidths cannot be told
$ heddle trace blame tests/table/zstd.parquet
error[E0109]: the pages are packed with Zstandard, which is not read
  --> tests/table/zstd.parquet: dp_rank
  hint: write the table with compression snappy, gzip or none
[1]
$ head -c 5000 tests/table/v2.parquet > cut.parquet; heddle trace blame cut.parquet
error[E0109]: the Parquet file ends early: the index that should be at its end is missing
  --> cut.parquet
[1]
$ sed 's/start_ts/started_/' tests/table/plain.parquet > other.parquet; heddle trace info other.parquet
error[E0109]: the table has no such column
  --> other.parquet: start_ts
  hint: its columns are dp_rank, stage, rank, step, optype, started_, duration, seq_id, mc, mb_id
[1]
$ (head -c 3000 tests/table/v2.parquet; head -c 9 /dev/zero; tail -c +3010 tests/table/v2.parquet) > bad.parquet; heddle trace info bad.parquet
error[E0109]: a page of 127 bytes does not unpack (gzip) to 106
  --> bad.parquet: start_ts
[1]
## A timeline of a pipelined job beside recordings of kernels, whichever comes first.
$ heddle trace blame examples/traces/pipeline/timeline.json.gz examples/traces/ddp
error[E0106]: this is the timeline of a whole pipelined job, and examples/traces/ddp/rank0.json is of Kineto: no question takes both
  --> examples/traces/pipeline/timeline.json.gz
  hint: name files of one kind, such as examples/traces/pipeline/timeline.json.gz alone
[1]
$ mkdir mixed; cp examples/traces/pipeline/timeline.json.gz mixed/a.json.gz; cp examples/traces/ddp/rank0.json mixed/b.json; heddle trace whatif mixed --set 'rank 0 = median'
error[E0106]: this is the timeline of a whole pipelined job, and mixed/b.json is of Kineto: no question takes both
  --> mixed/a.json.gz
  hint: name files of one kind, such as mixed/a.json.gz alone
[1]
$ mv mixed/a.json.gz mixed/c.json.gz; heddle trace whatif mixed --set 'rank 0 = median'
error[E0106]: this is the timeline of a whole pipelined job, and mixed/b.json is of Kineto: no question takes both
  --> mixed/c.json.gz
  hint: name files of one kind, such as mixed/c.json.gz alone
[1]
$ heddle trace rescale mixed --ranks 64
error[E0106]: this is the timeline of a whole pipelined job, and mixed/b.json is of Kineto: no question takes both
  --> mixed/c.json.gz
  hint: name files of one kind, such as mixed/c.json.gz alone
[1]
