$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         1,024
memory limit  3.60 GiB

   dp  tp  ZeRO      time          samples    memory  limited by
1   4   1     2  48.69 ms  1.00x  21,033/s  18.0 MiB  computation 94 %
2   4   1     3  49.28 ms  1.01x  20,780/s  12.0 MiB  computation 92 %
3   4   1     0  49.43 ms  1.02x  20,715/s  22.5 MiB  computation 95 %
4   2   2     0  49.82 ms  1.02x  20,556/s  19.0 MiB  computation 95 %
5   2   2     3  50.47 ms  1.04x  20,289/s  16.0 MiB  computation 93 %

winner       dp=4 tp=1 pp=1 zero=2
             computes 93.6 % of the time, communicates 6.4 %; needs 18.0 MiB of 3.60 GiB
next         dp=4 tp=1 pp=1 zero=3
             1.01x the time, limited by computation
tp alone     1.14x the time, limited by computation
pp alone     1.51x the time, limited by computation
certificate  360 plans: 168 fit, 0 too large, 24 too slow, 0 impossible, 168 equal to another;
             168 simulated, 0 ruled out by bounds on memory, 24 on time
$ cat best.plan
# heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
heddle-plan: 1
name: "dp=4 tp=1 pp=1 zero=2"
train: {optimizer: sgd, lr: 0.01, momentum: 0, beta1: 0, beta2: 0, eps: 0, weight-decay: 0}
axes: {pp: 1, dp: 4, tp: 1}
meshes:
  m: {axes: [pp, dp, tp]}
segments:
  - {from: 1, to: 12, on: m, at: {pp: 0}}
trans:
  - {input: "x", dim: 0, axis: dp, stride: 256}
  - {input: "z", dim: 0, axis: dp, stride: 256}
rest: {gradients: [dp], states: [dp]}
order:
  - "F0.0 B0.0"
## The time of a plan in the search is that of its simulation.
$ heddle sim mlp-xs --batch 1024 --plan best.plan --machine laptop
model          mlp-xs
plan           dp=4 tp=1 pp=1 zero=2
weights        f32
machine        laptop
ranks          4
time per step  48.69 ms
error bar      none: 100.0 % of the step has no measured spread
samples        21,033/s
arithmetic     63.5 GFLOP/s a device, 66.1 % of the f32 peak
computes       93.6 %
communicates   6.4 %
idle           0.0 %
peak memory    18.0 MiB of 3.60 GiB on rank 0
instructions   388

stage  ranks  computes  communicates   idle  peak memory
    0  0-3      93.6 %         6.4 %  0.0 %     18.0 MiB
device    ranks  computes  communicates   idle
cpu-core      4    93.6 %         6.4 %  0.0 %

ranks  parameters  gradients  optimiser  activations  temporary  communication      peak
0-3      8.00 MiB   2.00 MiB        0 B     5.50 MiB   2.50 MiB            0 B  18.0 MiB

at the peak  of         kind         count     bytes
relu         layer.fwd  activations      7  3.50 MiB
h.0.w        main       parameters       1  1.00 MiB
h.1.w        main       parameters       1  1.00 MiB
h.2.w        main       parameters       1  1.00 MiB
h.3.w        main       parameters       1  1.00 MiB
h.4.w        main       parameters       1  1.00 MiB
... and 4 more

critical path   kind           count      time   share
einsum          computation       15  26.23 ms  53.9 %
matmul          computation        8  13.99 ms  28.7 %
relu_dx         computation        8  1.581 ms   3.2 %
reduce_scatter  communication      8  1.286 ms   2.6 %
all_gather      communication      8  1.286 ms   2.6 %
relu            computation        8  1.057 ms   2.2 %
add             computation        8  794.4 us   1.6 %
sgd             computation        8  794.4 us   1.6 %
... and 8 more

figures from  count      time   share  with an error
roofline         77  46.11 ms  94.7 %          0.0 %
link model       17  2.578 ms   5.3 %          0.0 %
launch time       3  3.002 us   0.0 %          0.0 %

figure                            stated in         count      time   share  spread  measurements
cpu-core: f32 gemm                devices.yaml:187     23  40.22 ms  82.6 %
cpu-core: elementwise             devices.yaml:187     36  4.951 ms  10.2 %
link of cpu-core: all_gather      devices.yaml:188      8  1.286 ms   2.6 %
link of cpu-core: reduce_scatter  devices.yaml:188      8  1.286 ms   2.6 %
cpu-core: move                    devices.yaml:187     17  869.0 us   1.8 %
cpu-core: reduction               devices.yaml:187      1  66.54 us   0.1 %
link of cpu-core: all_reduce      devices.yaml:188      1  5.001 us   0.0 %
cpu-core: launch of elementwise   devices.yaml:185      2  2.002 us   0.0 %
cpu-core: launch of move          devices.yaml:185      1  1.000 us   0.0 %
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --data 2 --tensor 1,2 --zero 0,1 --recompute none --json | sed -E 's/: [0-9.e+-]+/: N/g'
{
  "model": "mlp-xs",
  "parameter_dtypes": "f32",
  "machine": "laptop",
  "ranks": N,
  "batch": N,
  "memory_limit_bytes": N,
  "train": true,
  "plans": [
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": null, "group": null, "schedule": null, "zero": N, "recompute": "none", "sp": false, "overlap": null, "tables": "split", "layers": null, "bn": "local", "strategy": "dp=2 tp=2 pp=1", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": null, "group": null, "schedule": null, "zero": N, "recompute": "none", "sp": false, "overlap": null, "tables": "split", "layers": null, "bn": "local", "strategy": "dp=2 tp=2 pp=1 mb=2", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": null, "group": null, "schedule": null, "zero": N, "recompute": "none", "sp": false, "overlap": null, "tables": "split", "layers": null, "bn": "local", "strategy": "dp=2 tp=2 pp=1 mb=4", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": null, "group": null, "schedule": null, "zero": N, "recompute": "none", "sp": false, "overlap": null, "tables": "split", "layers": null, "bn": "local", "strategy": "dp=2 tp=2 pp=1 mb=8", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": N, "group": null, "schedule": "1f1b", "zero": N, "recompute": "none", "sp": null, "overlap": "none", "tables": null, "layers": "cost", "bn": "local", "strategy": "dp=2 tp=1 pp=2 mb=4", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": N, "group": null, "schedule": "1f1b", "zero": N, "recompute": "none", "sp": null, "overlap": "none", "tables": null, "layers": "cost", "bn": "local", "strategy": "dp=2 tp=1 pp=2 mb=8", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": N, "group": null, "schedule": "1f1b", "zero": N, "recompute": "none", "sp": null, "overlap": "none", "tables": null, "layers": "cost", "bn": "local", "strategy": "dp=2 tp=1 pp=2 mb=2", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": null, "group": null, "schedule": null, "zero": N, "recompute": "none", "sp": false, "overlap": null, "tables": "split", "layers": null, "bn": "local", "strategy": "dp=2 tp=2 pp=1 mb=16", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": N, "group": null, "schedule": "1f1b", "zero": N, "recompute": "none", "sp": null, "overlap": "none", "tables": null, "layers": "cost", "bn": "local", "strategy": "dp=2 tp=1 pp=2 mb=16", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "mb": N, "v": N, "group": null, "schedule": "1f1b", "zero": N, "recompute": "none", "sp": null, "overlap": "none", "tables": null, "layers": "cost", "bn": "local", "strategy": "dp=2 tp=1 pp=2", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"}
  ],
  "space": N,
  "fit": N,
  "simulated": N,
  "ruled_out_by_memory": N,
  "ruled_out_by_time": N,
  "impossible": N,
  "equal": N,
  "impossible_reasons": []
}
$ heddle plan mlp-xs --batch 256 --machine laptop --microbatches 1 --powers-of-two
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         256
memory limit  3.60 GiB

   dp  tp  pp      time          samples    memory  limited by
1   4   1   1  3.773 ms  1.00x  67,843/s  8.50 MiB  computation 100 %
2   2   2   1  4.126 ms  1.09x  62,043/s  4.88 MiB  computation 95 %
3   1   4   1  4.816 ms  1.28x  53,159/s  3.62 MiB  computation 87 %
4   2   1   2  7.586 ms  2.01x  33,748/s  5.00 MiB  bubble 50 %
5   1   2   2  8.332 ms  2.21x  30,726/s  3.75 MiB  bubble 49 %
6   1   1   4  15.37 ms  4.07x  16,658/s  4.00 MiB  bubble 74 %

winner       dp=4 tp=1 pp=1
             computes 100.0 % of the time, communicates 0.0 %; needs 8.50 MiB of 3.60 GiB
next         dp=2 tp=2 pp=1
             1.09x the time, limited by computation
tp alone     1.28x the time, limited by computation
pp alone     4.07x the time, limited by bubble
certificate  6 plans: 6 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             6 simulated, 0 ruled out by bounds on memory, 0 on time
## One microbatch on two stages is a plan too, here the only one; every class of impossible plans has its reason.
$ heddle plan mlp-xs:layers=8,hidden=1009 --batch 1 --machine '1x2 v100' --memory-limit 20MB
model         mlp-xs:layers=8,hidden=1009
weights       f32
machine       1x2 v100
ranks         2
batch         1
memory limit  19.1 MiB

   pp      time         samples    memory  limited by
1   2  147.3 us  1.00x  6,788/s  15.6 MiB  bubble 47 %

winner       dp=1 tp=1 pp=2
             computes 46.9 % of the time, communicates 6.1 %; needs 15.6 MiB of 19.1 MiB
certificate  3 plans: 1 fit, 0 too large, 0 too slow, 2 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
impossible   1 such as dp=2 tp=1 pp=1:
             the batch, the first extent of input x, is 1: it cannot be split 2 ways over dp
             1 such as dp=1 tp=2 pp=1:
             w of 1009 x 1009 cannot be split 2 ways: 1009 is not divisible by 2
$ heddle plan mlp-xs:layers=8,hidden=1009 --batch 1 --machine '1x2 v100' --memory-limit 20MB --json | sed -n '/space/,$p'
  "space": 3,
  "fit": 1,
  "simulated": 1,
  "ruled_out_by_memory": 0,
  "ruled_out_by_time": 0,
  "impossible": 2,
  "equal": 0,
  "impossible_reasons": [
    {"count": 1, "reason": "the batch, the first extent of input x, is 1: it cannot be split 2 ways over dp", "example": "dp=2 tp=1 pp=1"},
    {"count": 1, "reason": "w of 1009 x 1009 cannot be split 2 ways: 1009 is not divisible by 2", "example": "dp=1 tp=2 pp=1"}
  ]
}
## Choices that a search is told: a column for each that is not at its default.
$ heddle plan mlp-xs --batch 64 --train --machine laptop --strategy "dp=1 pp=4 mb=8 schedule=* recompute=none layers=equal,2/2/2/2,cost overlap=*"
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         64
memory limit  3.60 GiB

    pp  mb  schedule     overlap      time         samples    memory  limited by
 1   4   8  zb-h1        pp       15.24 ms  1.00x  4,199/s  5.38 MiB  computation 91 %
 2   4   8  1f1b         pp       17.57 ms  1.15x  3,642/s  5.30 MiB  bubble 21 %
 3   4   8  interleaved  pp       17.57 ms  1.15x  3,642/s  5.39 MiB  bubble 21 %
 4   4   8  gpipe        pp       17.57 ms  1.15x  3,642/s  5.67 MiB  bubble 21 %
 5   4   8  bfs          pp       17.57 ms  1.15x  3,642/s  5.67 MiB  bubble 21 %
 6   4   8  1f1b         none     19.26 ms  1.26x  3,322/s  5.30 MiB  bubble 27 %
 7   4   8  interleaved  none     19.26 ms  1.26x  3,322/s  5.39 MiB  bubble 27 %
 8   4   8  gpipe        none     19.26 ms  1.26x  3,322/s  5.67 MiB  bubble 27 %
 9   4   8  bfs          none     19.26 ms  1.26x  3,322/s  5.67 MiB  bubble 27 %
10   4   8  zb-h1        none     20.46 ms  1.34x  3,128/s  5.38 MiB  bubble 31 %

winner       dp=1 tp=1 pp=4 mb=8 schedule=zb-h1 overlap=pp
             computes 91.1 % of the time, communicates 0.0 %; needs 5.38 MiB of 3.60 GiB
next         dp=1 tp=1 pp=4 mb=8 overlap=pp
             1.15x the time, limited by bubble
one device   0.93x the time, 14.12 ms: --devices 1
certificate  30 plans: 10 fit, 0 too large, 0 too slow, 0 impossible, 20 equal to another;
             10 simulated, 0 ruled out by bounds on memory, 0 on time
