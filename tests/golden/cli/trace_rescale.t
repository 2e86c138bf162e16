## More data ranks of a pipelined job; without a machine, and with one.
$ heddle trace rescale examples/traces/pipeline --ranks 64
machine         none: transfers grow as the traffic of rings does
job             8 ranks, 2 of data parallelism
becomes         64 ranks, 16 of data parallelism, each with as much work as now
step recorded   517.1 ms
step predicted  535.6 ms

                                  time     change
replayed as recorded          517.1 ms          0   0.0 %
transfers among more members  534.8 ms  +17.71 ms  +3.4 %
later last members            517.8 ms  +739.4 us  +0.1 %
both                          535.6 ms  +18.45 ms  +3.6 %

grows                     count  members  then  transfer      then  last comes later
params-all-gather             1        2    16  7.992 ms  14.99 ms                 0
grads-reduce-scatter          1        2    16  12.00 ms  22.51 ms          945.6 us
optimizer-clip-main-grad      1        8    64  901.2 us  1.014 ms          12.31 us
$ heddle trace rescale examples/traces/pipeline --ranks 64 --machine 'dgx-2*4'
machine         dgx-2*4
job             8 ranks, 2 of data parallelism
becomes         64 ranks, 16 of data parallelism, each with as much work as now
step recorded   517.1 ms
step predicted  535.8 ms

                                  time     change
replayed as recorded          517.1 ms          0   0.0 %
transfers among more members  535.1 ms  +17.95 ms  +3.5 %
later last members            517.8 ms  +739.4 us  +0.1 %
both                          535.8 ms  +18.69 ms  +3.6 %

grows                     count  members  then  transfer      then  last comes later
params-all-gather             1        2    16  7.992 ms  14.99 ms                 0
grads-reduce-scatter          1        2    16  12.00 ms  22.51 ms          945.6 us
optimizer-clip-main-grad      1        8    64  901.2 us  1.244 ms          12.31 us
## Of kernels, with the machine that extrapolates
$ heddle trace rescale examples/traces/ddp --ranks 16 --machine dgx-2
machine    dgx-2
job        2 ranks, 2 of data parallelism
becomes    16 ranks, 16 of data parallelism, each with as much work as now
recorded   9.236 ms
predicted  12.63 ms
taken for  data parallelism: every rank a copy of the model. Of tensor parallelism this says nothing

                                  time     change
replayed as recorded          9.230 ms          0    0.0 %
transfers among more members  11.13 ms  +1.899 ms  +20.6 %
later last members            10.19 ms  +955.0 us  +10.3 %
both                          12.63 ms  +3.397 ms  +36.8 %

grows                                               count  members  then  transfer      then  last comes later
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevK..      8        2    16  390.0 us  750.5 us          222.4 us
$ heddle trace rescale examples/traces/ddp --ranks 16 --json
{
  "machine": null,
  "ranks": 2,
  "new_ranks": 16,
  "data_ranks": 2,
  "new_data_ranks": 16,
  "steps": null,
  "recorded_ps": 9236000000,
  "predicted_ps": 12492179381,
  "scenarios": [
    {"scenario": "replayed", "time_ps": 9230133328, "change_ps": 0, "change": 0},
    {"scenario": "transfers", "time_ps": 11051883328, "change_ps": 1821750000, "change": 0.1973698467034755},
    {"scenario": "late", "time_ps": 10185087374, "change_ps": 954954046, "change": 0.10346048232078149},
    {"scenario": "both", "time_ps": 12492179381, "change_ps": 3262046053, "change": 0.3534126688186015}
  ],
  "communications": [
    {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "count": 8, "from": 2, "to": 16, "before_ps": 390000000, "after_ps": 731250000, "late_ps": 222435444}
  ]
}
## wrong
$ heddle trace rescale examples/traces/ddp
error[E0801]: how many ranks the job is to have is not said
  hint: --ranks 64
[2]
$ heddle trace rescale examples/traces/pipeline --ranks 30
error[E0801]: --ranks 30 is no multiple of 4: 4 stages x 1 tensor ranks
  hint: --ranks 28
[2]
$ heddle trace rescale examples/traces/pipeline --ranks 4
error[E0801]: --ranks 4: the job has 8 ranks already
  hint: --ranks 8
[2]
$ heddle trace rescale examples/traces/ddp --ranks 64 --machine dgx-2
error[E0605]: rank 16 is used; the machine dgx-2 has ranks 0 to 15
  hint: plan for this machine, or use more of them: --machine 'dgx-2*2'
[1]
$ heddle trace rescale examples/traces/ddp/rank0.json --ranks 64
error[E0106]: no communication between recorded ranks: how they wait for each other is not known
  hint: name the recordings of all ranks
[1]
$ heddle trace rescale examples/traces/ddp --ranks 64 --costs distir
error[E0801]: `heddle trace rescale` has no option --costs
  hint: leave it out; questions that take it: compare
[2]
