## long: .ci/run has it without sanitizers
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         1,024
memory limit  3.60 GiB
step          training

   dp  tp  ZeRO      time          samples    memory  limited by
1   4   1     2  48.69 ms  1.00x  21,033/s  16.5 MiB  computation 94 %
2   4   1     3  49.28 ms  1.01x  20,780/s  10.5 MiB  computation 92 %
3   4   1     0  49.43 ms  1.02x  20,715/s  17.5 MiB  computation 95 %
4   2   2     0  49.82 ms  1.02x  20,556/s  15.0 MiB  computation 95 %
5   2   2     3  50.47 ms  1.04x  20,289/s  15.0 MiB  computation 93 %

winner       dp=4 tp=1 pp=1 zero=2
             computes 93.6 % of the time, communicates 6.4 %, idles 0.0 %; MFU 66.1 %; needs 16.5 MiB of 3.60 GiB
next         dp=4 tp=1 pp=1 zero=3
             1.01x the time, limited by computation
certificate  447 plans: 5 fit, 0 too large, 235 too slow, 0 impossible, 207 equal to another;
             5 simulated, 0 ruled out by bounds on memory, 235 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
$ cat best.plan
# heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
heddle-plan: 1
name: "dp=4 tp=1 pp=1 zero=2"
model: {name: "mlp-xs", instructions: 12, weights: "f32", input: "f32[1024,512]", program: "20a1ef88b26e8a93"}
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
model           mlp-xs
plan            dp=4 tp=1 pp=1 zero=2
weights         f32
machine         laptop
ranks           4
time per step   48.69 ms
one step alone  48.69 ms
error bar       unknown: no measured spread for 100.0 % of the step
samples         21,033/s
arithmetic      63.5 GFLOP/s a device, 66.1 % of the f32 peak (MFU)
computes        93.6 %
communicates    6.4 %
idle            0.0 %
peak memory     16.5 MiB of 3.60 GiB on rank 0
instructions    388

place  ranks  computes  communicates   idle  peak memory
    0  0-3      93.6 %         6.4 %  0.0 %     16.5 MiB

device    ranks  computes  communicates   idle
cpu-core      4    93.6 %         6.4 %  0.0 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      8.00 MiB   2.00 MiB        0 B     5.50 MiB   1.00 MiB            0 B  16.5 MiB

at the peak  function   kind         count     bytes
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

what would help         on the path  10 % better
matmul rate                40.20 ms       -8.3 %
memory bandwidth           5.833 ms       -1.2 %
bandwidth inside nodes     2.517 ms       -0.5 %
launch latency             80.00 us       -0.0 %
network latency            61.00 us       -0.0 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time   share  spread known
roofline        77  46.11 ms  94.7 %         0.0 %
link model      17  2.578 ms   5.3 %         0.0 %
launch time      3  3.002 us   0.0 %         0.0 %
## So is its MFU, also where something is computed again.
$ heddle plan gpt2:layers=4,hidden=256,heads=4,vocab=512 --batch 16 --seq 64 --dtype f16 --train --machine dgx-2 --devices 4 --strategy "dp=2 tp=1 pp=2 mb=4 zero=1 recompute=full" --json -o full.plan | sed -n '/"mfu"/p' > mfu; heddle sim gpt2:layers=4,hidden=256,heads=4,vocab=512 --batch 16 --seq 64 --dtype f16 --plan full.plan --machine dgx-2 --json | sed -n 's/^  "period_mfu"/  "mfu"/p' | cmp - mfu && cat mfu
  "mfu": 0.006015214168607801,
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
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": null, "schedule": null, "group": null, "tp.stages": null, "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": false, "axial": false, "overlap": "pp", "channels": null, "buffers": null, "tables": "split", "layers": null, "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": "equal", "places": null, "skip": N, "strategy": "dp=2 tp=2 pp=1", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": null, "schedule": null, "group": null, "tp.stages": null, "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": false, "axial": false, "overlap": "pp", "channels": null, "buffers": null, "tables": "split", "layers": null, "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": "equal", "places": null, "skip": N, "strategy": "dp=2 tp=2 pp=1 mb=2", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": null, "schedule": null, "group": null, "tp.stages": null, "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": false, "axial": false, "overlap": "pp", "channels": null, "buffers": null, "tables": "split", "layers": null, "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": "equal", "places": null, "skip": N, "strategy": "dp=2 tp=2 pp=1 mb=4", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": null, "schedule": null, "group": null, "tp.stages": null, "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": false, "axial": false, "overlap": "pp", "channels": null, "buffers": null, "tables": "split", "layers": null, "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": "equal", "places": null, "skip": N, "strategy": "dp=2 tp=2 pp=1 mb=8", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": N, "schedule": "1f1b", "group": null, "tp.stages": "equal", "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": null, "axial": null, "overlap": "pp", "channels": "peer", "buffers": null, "tables": null, "layers": "cost", "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": null, "places": "inorder", "skip": N, "strategy": "dp=2 tp=1 pp=2 mb=4", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": N, "schedule": "1f1b", "group": null, "tp.stages": "equal", "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": null, "axial": null, "overlap": "pp", "channels": "peer", "buffers": null, "tables": null, "layers": "cost", "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": null, "places": "inorder", "skip": N, "strategy": "dp=2 tp=1 pp=2 mb=8", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": N, "schedule": "1f1b", "group": null, "tp.stages": "equal", "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": null, "axial": null, "overlap": "pp", "channels": "peer", "buffers": null, "tables": null, "layers": "cost", "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": null, "places": "inorder", "skip": N, "strategy": "dp=2 tp=1 pp=2 mb=2", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": null, "schedule": null, "group": null, "tp.stages": null, "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": false, "axial": false, "overlap": "pp", "channels": null, "buffers": null, "tables": "split", "layers": null, "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": "equal", "places": null, "skip": N, "strategy": "dp=2 tp=2 pp=1 mb=16", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": N, "schedule": "1f1b", "group": null, "tp.stages": "equal", "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": null, "axial": null, "overlap": "pp", "channels": "peer", "buffers": null, "tables": null, "layers": "cost", "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": null, "places": "inorder", "skip": N, "strategy": "dp=2 tp=1 pp=2 mb=16", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "dp": N, "tp": N, "pp": N, "replicas": "none", "mb": N, "v": N, "schedule": "1f1b", "group": null, "tp.stages": "equal", "zero": N, "sync": "allreduce", "recompute": "none", "coshard": N, "attention": "scores", "offload": "none", "prefetch": null, "update": null, "sp": null, "axial": null, "overlap": "pp", "channels": "peer", "buffers": null, "tables": null, "layers": "cost", "materialise": "inter", "bn": "local", "grads": "own", "dp.shares": "equal", "tp.shares": null, "places": "inorder", "skip": N, "strategy": "dp=2 tp=1 pp=2", "resolved": null, "state": "simulated", "time_ps": N, "period_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"}
  ],
  "families": [],
  "resolved": null,
  "mfu": N,
  "layers_by_stage": null,
  "bound_failed": false,
  "devices_tried": null,
  "bound_ps": null,
  "not_searched": "v=* schedule=* sp=* overlap=* layers=*",
  "replicas_not_tried": null,
  "replicas_tried": [],
  "space": N,
  "fit": N,
  "simulated": N,
  "ruled_out_by_memory": N,
  "too_large_for_host": N,
  "ruled_out_by_time": N,
  "impossible": N,
  "equal": N,
  "most_microbatches": null,
  "impossible_reasons": []
}
$ heddle plan mlp-xs --batch 256 --machine laptop --microbatches 1 --powers-of-two
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         256
memory limit  3.60 GiB
step          inference; --train plans a training step

   dp  tp  pp      time          samples    memory  limited by
1   4   1   1  3.773 ms  1.00x  67,843/s  8.38 MiB  computation 100 %
2   2   2   1  4.126 ms  1.09x  62,043/s  4.75 MiB  computation 95 %
3   1   4   1  4.816 ms  1.28x  53,159/s  3.50 MiB  computation 87 %
4   2   1   2  7.586 ms  2.01x  33,748/s  4.75 MiB  bubble 50 %
5   1   2   2  8.332 ms  2.21x  30,726/s  3.50 MiB  bubble 51 %
6   1   1   4  15.37 ms  4.07x  16,658/s  3.50 MiB  bubble 76 %

winner       dp=4 tp=1 pp=1
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %; MFU 74.2 %; needs 8.38 MiB of 3.60 GiB
next         dp=2 tp=2 pp=1
             1.09x the time, limited by computation
tp alone     1.28x the time, limited by computation
pp alone     4.07x the time, limited by bubble
certificate  6 plans: 6 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             6 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
## One microbatch on two stages is a plan too, here the only one; every class of impossible plans has its reason.
$ heddle plan mlp-xs:layers=8,hidden=1009 --batch 1 --machine '1x2 v100' --memory-limit 20MB
model         mlp-xs:layers=8,hidden=1009
weights       f32
machine       1x2 v100
ranks         2
batch         1
memory limit  19.1 MiB
step          inference; --train plans a training step

   pp      time         samples    memory  limited by
1   2  147.3 us  1.00x  6,788/s  15.5 MiB  bubble 53 %

winner       dp=1 tp=1 pp=2
             computes 46.9 % of the time, communicates 0.0 %, idles 53.1 %; MFU 0.4 %; needs 15.5 MiB of 19.1 MiB
layers       4/4
certificate  3 plans: 1 fit, 0 too large, 0 too slow, 2 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
impossible   1 such as dp=2 tp=1 pp=1:
             the batch (the first extent of input x) is 1: it cannot be split 2 ways over dp
             1 such as dp=1 tp=2 pp=1:
             w of 1009 x 1009 cannot be split 2 ways: 1009 is not divisible by 2
$ heddle plan mlp-xs:layers=8,hidden=1009 --batch 1 --machine '1x2 v100' --memory-limit 20MB --json | sed -n '/space/,$p'
  "space": 3,
  "fit": 1,
  "simulated": 1,
  "ruled_out_by_memory": 0,
  "too_large_for_host": 0,
  "ruled_out_by_time": 0,
  "impossible": 2,
  "equal": 0,
  "most_microbatches": null,
  "impossible_reasons": [
    {"count": 1, "reason": "the batch (the first extent of input x) is 1: it cannot be split 2 ways over dp", "example": "dp=2 tp=1 pp=1"},
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
step          training

    pp  mb  v  schedule        overlap      time         samples    memory  limited by
 1   4   8  1  zb-h2           pp       14.38 ms  1.00x  4,452/s  5.58 MiB  computation 91 %
 2   4   8  2  dualpipev       pp       14.41 ms  1.00x  4,442/s  5.44 MiB  computation 95 %
 3   4   8  1  zb-h1           pp       14.76 ms  1.03x  4,336/s  5.38 MiB  computation 91 %
 4   4   8  2  zb-v            pp       15.01 ms  1.04x  4,263/s  5.41 MiB  computation 90 %
 5   4   8  2  zb-v-half       pp       15.44 ms  1.07x  4,146/s  5.39 MiB  computation 90 %
 6   4   8  2  zb-v-min        pp       15.61 ms  1.09x  4,099/s  5.33 MiB  computation 89 %
 7   4   8  1  dualpipe        pp       16.04 ms  1.12x  3,991/s  9.47 MiB  computation 92 %
 8   4   8  2  dualpipev       none     16.95 ms  1.18x  3,776/s  5.44 MiB  computation 80 %
 9   4   8  1  dualpipe        none     17.80 ms  1.24x  3,596/s  9.47 MiB  computation 83 %
10   4   8  1  chimera-double  pp       18.09 ms  1.26x  3,537/s  9.56 MiB  computation 83 %

value                      plans  best known                                       time  behind
schedule=zb-h2                 2  dp=1 tp=1 pp=4 mb=8 schedule=zb-h2           14.38 ms  1.00x
schedule=zb-2p                 2  dp=1 tp=1 pp=4 mb=8 schedule=zb-h2           14.38 ms  1.00x
schedule=dualpipev             2  dp=1 tp=1 pp=4 mb=8 v=2 schedule=dualpipev   14.41 ms  1.00x
schedule=zb-h1                 2  dp=1 tp=1 pp=4 mb=8 schedule=zb-h1           14.76 ms  1.03x
schedule=zb-1p                 2  dp=1 tp=1 pp=4 mb=8 schedule=zb-h1           14.76 ms  1.03x
schedule=zb-v                  2  dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v        15.01 ms  1.04x
schedule=zb-v-half             2  dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v-half   15.44 ms  1.07x
schedule=zb-v-min              2  dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v-min    15.61 ms  1.09x
schedule=dualpipe              2  dp=1 tp=1 pp=4 mb=8 schedule=dualpipe        16.04 ms  1.12x
schedule=chimera-double        2  dp=1 tp=1 pp=4 mb=8 schedule=chimera-double  18.09 ms  1.26x
schedule=gpipe                 2  dp=1 tp=1 pp=4 mb=8 schedule=gpipe           19.17 ms  1.33x
schedule=1f1b                  2  dp=1 tp=1 pp=4 mb=8                          19.17 ms  1.33x
schedule=interleaved           2  dp=1 tp=1 pp=4 mb=8 schedule=interleaved     19.17 ms  1.33x
schedule=bfs                   2  dp=1 tp=1 pp=4 mb=8 schedule=bfs             19.17 ms  1.33x
schedule=chimera               2  dp=1 tp=1 pp=4 mb=8 schedule=chimera         20.69 ms  1.44x
schedule=gems                  2  dp=1 tp=1 pp=4 mb=8 schedule=gems            48.54 ms  3.38x
schedule=interlaced            0                                                         impossible
schedule=interlaced-block      0                                                         impossible
schedule=3f1b                  0                                                         impossible

winner       dp=1 tp=1 pp=4 mb=8 schedule=zb-h2
             computes 91.1 % of the time, communicates 0.0 %, idles 8.9 %; MFU 14.4 %; needs 5.58 MiB of 3.60 GiB
             of one step alone, which takes 15.24 ms; the next one begins beside its end
layers       2x4
next         dp=1 tp=1 pp=4 mb=8 v=2 schedule=dualpipev
             1.00x the time, limited by computation
one device   0.98x the time, 14.12 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  114 plans: 28 fit, 0 too large, 0 too slow, 26 impossible, 60 equal to another;
             28 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* sp=*' has them, --what-if tries each
impossible   12 such as dp=1 tp=1 pp=4 mb=8 schedule=interlaced overlap=none:
             schedule=interlaced: the model has nothing before its first layer that could lie on all places
             8 such as dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v overlap=none layers=2x4:
             layers has 4 numbers, but there are 8 stages (pp=4 x v=2)
             6 such as dp=1 tp=1 pp=4 mb=8 v=3 schedule=3f1b overlap=none:
             schedule=3f1b: the model does not pass three times through the same layers
## Why not, and what if.
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --why 'tp=2 pp=4' --what-if
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
model         gpt2:layers=4
weights       f16
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x8 v100
ranks         8
batch         16
memory limit  28.8 GiB
step          training

   dp  tp  recompute      time         samples   memory  limited by
1   2   4  none       6.569 ms  1.00x  2,436/s  243 MiB  communication 24 %
2   2   4  selective  6.728 ms  1.02x  2,378/s  239 MiB  communication 23 %

winner       dp=2 tp=4 pp=1
             computes 76.3 % of the time, communicates 23.7 %, idles 0.0 %; MFU 12.7 %; needs 243 MiB of 28.8 GiB
next         dp=2 tp=4 pp=1 recompute=selective
             1.02x the time, limited by communication
certificate  300 plans: 30 fit, 0 too large, 240 too slow, 30 impossible, 0 equal to another;
             30 simulated, 0 ruled out by bounds on memory, 240 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* attention=* sp=* overlap=*' or 'layers=*' has them, --what-if tries each
impossible   15 such as dp=1 tp=1 pp=8:
             8 pipeline stages, but the model has only 5 blocks and matmuls
             15 such as dp=1 tp=8 pp=1:
             attn.qkv of 768 x 2304 cannot be split 8 ways: 2304 = 3 x 12 x 64, and 12 is not divisible by 8

why not  tp=2 pp=4
winner   dp=2 tp=4 pp=1
asked    dp=1 tp=2 pp=4 mb=4
         the best of 15 plans with tp=2 pp=4
time     1.68x the winner's
costs    idle +5.406 ms, elementwise +571.8 us
bound    ruled out by its lower bound, 7.342 ms: 7.342 ms of work on the busiest place

time on a rank                winner     asked  difference  of the step
matmul                      1.503 ms  1.497 ms   -5.601 us       -0.1 %
batched matmul (attention)  207.6 us  207.6 us           0        0.0 %
reductions and norms        975.0 us  906.9 us   -68.09 us       -1.0 %
elementwise                 1.123 ms  1.694 ms   +571.8 us       +8.7 %
moving data                 185.5 us  293.0 us   +107.5 us       +1.6 %
recomputing                 65.51 us  65.51 us           0        0.0 %
update                      952.7 us  434.5 us   -518.2 us       -7.9 %
all_reduce over dp          842.1 us         0   -842.1 us      -12.8 %
all_reduce over pp                 0  183.7 us   +183.7 us       +2.8 %
all_reduce over tp          715.5 us  361.2 us   -354.3 us       -5.4 %
idle                        100.8 ns  5.406 ms   +5.406 ms      +82.3 %
step                        6.569 ms  11.05 ms   +4.481 ms      +68.2 %
beside it: send                    0  195.4 us   +195.4 us       +3.0 %

memory at the peak    winner     asked  difference
parameters          32.3 MiB  36.8 MiB   +4.48 MiB
gradients                0 B  36.8 MiB   +36.8 MiB
optimizer state     64.7 MiB  73.6 MiB   +8.96 MiB
activations         97.1 MiB  50.6 MiB   -46.5 MiB
temporary           49.1 MiB  49.1 MiB   -4.00 KiB
fullest rank         243 MiB   247 MiB   +3.74 MiB

what would help         on the path  10 % better
memory bandwidth           2.025 ms       -3.1 %
launch latency             1.795 ms       -2.7 %
matmul rate                1.192 ms       -1.8 %
network latency            852.0 us       -1.3 %
bandwidth inside nodes     705.6 us       -1.1 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

what if             best plan                                                               time  faster   memory
as it is            dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
v=* schedule=*      dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
attention=*         dp=2 tp=4 pp=1 attention=fused                                      6.136 ms   1.07x  240 MiB
sp=*                dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
overlap=*           dp=2 tp=4 pp=1 overlap=pp+dp                                        5.904 ms   1.11x  243 MiB
layers=*            dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
memory limit +25 %  dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
memory limit +50 %  dp=2 tp=4 pp=1                                                      6.569 ms   1.00x  243 MiB
twice the devices   none: send over 2 ranks: the machine has no link between its nodes
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --memory-limit 300MB --why 'dp=8 pp=1 zero=0' | sed -n '/^why not/,/^time on/p'
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
why not    dp=8 pp=1 zero=0
winner     dp=2 tp=4 pp=1
asked      dp=8 tp=1 pp=1
           none of 6 plans with dp=8 pp=1 zero=0 fits; this one is the smallest
too large  663 MiB of 286 MiB: 377 MiB more than there is, most of it optimizer state (258 MiB)
time       1.40x the winner's, if it fit
costs      all_reduce over dp +2.497 ms, update +1.067 ms

time on a rank                winner     asked  difference  of the step
$ heddle plan gpt2 --batch 64 --train --machine dgx-2 --top 1 --powers-of-two --why 'dp=2 tp=2 pp=4 mb=2' | sed -n '/^why not/,/^time on/p'
why not  dp=2 tp=2 pp=4 mb=2
winner   dp=16 tp=1 pp=1
asked    dp=2 tp=2 pp=4 mb=2
         the best of 12 plans with dp=2 tp=2 pp=4 mb=2
time     2.37x the winner's
costs    idle +525.9 ms
bound    ruled out by its lower bound, 566.1 ms: 265.4 ms of matmuls at every device's peak rate
         and 300.8 ms to fill and drain 4 stages with 2 microbatches

time on a rank                winner     asked  difference  of the step
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --why pp=8 | sed -n '/^why not/,/^what would/p'
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
why not     pp=8
winner      dp=2 tp=4 pp=1
asked       dp=1 tp=1 pp=8
            none of 15 plans with pp=8 is possible; this is one of them
impossible  8 pipeline stages, but the model has only 5 blocks and matmuls

what would help         on the path  10 % better
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --why 'tp=2 sp' | sed -n '/^why not/,/^time on/p'
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
why not  tp=2 sp=on
winner   dp=2 tp=4 pp=1
asked    dp=4 tp=2 pp=1 sp
         the best of 99 plans with tp=2 sp=on
time     1.18x the winner's
costs    all_reduce over dp,tp +572.6 us, all_reduce over dp +466.9 us, update +362.7 us
space    the search did not try it; --strategy 'sp' would

time on a rank                winner     asked  difference  of the step
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --why mb=1 | sed -n '/^why not/,/^what would/p'
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
why not  mb=1
winner   dp=2 tp=4 pp=1
asked    dp=2 tp=4 pp=1
         the best of 84 plans with mb=1
         which is the winner

what would help         on the path  10 % better
## The rows above the step add up to it.
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --dtype f16 --train --machine '1x8 v100' --top 2 --why 'tp=2 pp=4' --json | sed -n '/"why_time"/,/\]/p' | sed -nE 's/.*"what": "([^"]*)", "winner_ps": ([0-9]+), "asked_ps": ([0-9]+).*/\1;\2;\3/p' | awk -F';' '$1 == "step" {print s - $2, t - $3; exit} {s += $2; t += $3}'
warning[W0508]: wte of gpt2:layers=4 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
0 0
## What cannot be together is the answer, not a refusal.
$ heddle plan gpt2:layers=2,hidden=64,heads=4 --batch 8 --seq 16 --train --machine '1x4 v100' --top 1 --strategy zero=1 --why tp=4 | sed -n '/^why not/,/^what would/p'
why not  tp=4
winner   dp=1 tp=4 pp=1
asked    dp=1 tp=4 pp=1
         the best of 12 plans with tp=4
         which is the winner

what would help         on the path  10 % better
$ heddle plan gpt2:layers=2,hidden=64,heads=4 --batch 8 --seq 16 --train --machine '1x4 v100' --top 1 --strategy sp --why dp=4 | sed -n '/^why not/,/^what would/p'
why not  dp=4
winner   dp=2 tp=1 pp=2
asked    dp=4 tp=1 pp=1
         the best of 24 plans with dp=4
time     1.05x the winner's
costs    all_reduce over dp +448.4 us, elementwise +138.3 us, reductions and norms +104.6 us
bound    ruled out by its lower bound, 1.667 ms: 1.667 ms of work on the busiest place

time on a rank                winner     asked  difference  of the step
matmul                      143.2 us  233.5 us   +90.30 us       +5.7 %
batched matmul (attention)  32.00 us  62.00 us   +30.00 us       +1.9 %
reductions and norms        135.2 us  239.9 us   +104.6 us       +6.6 %
elementwise                 83.40 us  221.7 us   +138.3 us       +8.7 %
moving data                 41.48 us  81.51 us   +40.03 us       +2.5 %
recomputing                 17.50 us  35.01 us   +17.50 us       +1.1 %
update                      131.8 us  203.4 us   +71.68 us       +4.5 %
all_reduce over dp          141.9 us  590.3 us   +448.4 us      +28.1 %
all_reduce over pp,dp       192.7 us         0   -192.7 us      -12.1 %
idle                        674.7 us         0   -674.7 us      -42.3 %
step                        1.594 ms  1.667 ms   +73.48 us       +4.6 %
beside it: send             18.30 us         0   -18.30 us       -1.1 %

memory at the peak    winner     asked  difference
parameters          12.3 MiB  12.9 MiB    +651 KiB
gradients           12.3 MiB  12.7 MiB    +395 KiB
activations         16.5 KiB  1.00 KiB   -15.5 KiB
temporary           12.3 MiB  24.5 MiB   +12.3 MiB
fullest rank        36.8 MiB  50.1 MiB   +13.3 MiB

what would help         on the path  10 % better
$ heddle plan gpt2:layers=2,hidden=64,heads=4 --batch 8 --seq 16 --train --machine '1x4 v100' --top 1 --strategy tp=4 --why 'zero=1 recompute=full' | sed -n '/^why not/,/^what would/p'
why not     zero=1 recompute=full
winner      dp=1 tp=4 pp=1
asked       dp=1 tp=4 pp=1 zero=1 recompute=full
impossible  zero=1 needs dp > 1; got dp=1

what would help         on the path  10 % better
$ heddle plan mlp-xs:layers=4 --batch 64 --train --machine laptop --top 1 --why 'dp=4 mb=1 zero=1' | sed -n '/^why not/,/^time on/p'
why not  dp=4 mb=1 zero=1
winner   dp=1 tp=4 pp=1
asked    dp=4 tp=1 pp=1 zero=1
         the best of 3 plans with dp=4 mb=1 zero=1
time     2.09x the winner's
costs    all_reduce over dp +1.283 ms, update +1.180 ms, matmul +330.4 us
equal    the same program as dp=4 tp=1 pp=1: the optimizer has no states

time on a rank          winner     asked  difference  of the step
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 1 --why 'pp=2' --what-if --json | sed -E 's/: [0-9.e+-]+/: N/g' | sed -n '/"asked"/,$p'
  "asked": "pp=2",
  "asked_strategy": "dp=2 tp=1 pp=2 mb=8 zero=2",
  "agree": N,
  "verdict": "slower",
  "asked_reason": null,
  "why_rank": null,
  "why_time": [
    {"what": "matmul", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "reductions and norms", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "elementwise", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "moving data", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "update", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "all_gather over dp", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "all_reduce over dp", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "reduce_scatter over dp", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "shard over dp", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "idle", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "step", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N},
    {"what": "beside it: send", "winner_ps": N, "asked_ps": N, "difference_ps": N, "share": N}
  ],
  "why_memory": [
    {"what": "parameters", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N},
    {"what": "gradients", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N},
    {"what": "activations", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N},
    {"what": "temporary", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N},
    {"what": "communication", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N},
    {"what": "fullest rank", "winner_bytes": N, "asked_bytes": N, "difference_bytes": N}
  ],
  "help": [
    {"what": "matmul rate", "time_ps": N, "slope": N},
    {"what": "memory bandwidth", "time_ps": N, "slope": N},
    {"what": "bandwidth inside nodes", "time_ps": N, "slope": N},
    {"what": "launch latency", "time_ps": N, "slope": N},
    {"what": "network latency", "time_ps": N, "slope": N}
  ],
  "what_if": [
    {"what": "as it is", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "v=* schedule=*", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "sp=*", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "overlap=*", "strategy": "dp=4 tp=1 pp=1 overlap=pp+dp", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "layers=*", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "memory limit +25 %", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "memory limit +50 %", "strategy": "dp=4 tp=1 pp=1 zero=2", "reason": null, "time_ps": N, "period_ps": N, "speedup": N, "peak_bytes": N, "memory_limit_bytes": N, "ranks": N},
    {"what": "twice the devices", "strategy": null, "reason": "send over 2 ranks: the machine has no link between its nodes", "time_ps": null, "period_ps": null, "speedup": null, "peak_bytes": null, "memory_limit_bytes": N, "ranks": N}
  ]
}
$ heddle plan tests/lookup.heddle --train --optimizer sgd --machine laptop --devices 1 --microbatches 1 --memory-limit 100MB | tail -3
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %; MFU 59.9 %; needs 70.0 MiB of 95.4 MiB
certificate  3 plans: 1 fit, 0 too large, 0 too slow, 0 impossible, 2 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
$ heddle plan tests/unused.heddle --train --optimizer sgd --machine "1x2 v100" --strategy "dp=1 tp=1 pp=2 mb=4 schedule=gpipe" --memory-limit 208896B | grep -A1 samples
   pp  mb  schedule      time           samples   memory  limited by
1   2   4  gpipe     475.6 us  1.00x  134,578/s  196 KiB  bubble 32 %
$ heddle plan tests/alikes.heddle --train --machine "1x3 v100" --strategy "dp=1 tp=1 pp=3 v=2 schedule=zb-h1 mb=2" | grep -A1 samples
   pp  mb  v  schedule  recompute      time          samples    memory  limited by
1   3   2  2  zb-h1     none       285.1 us  1.00x  28,059/s  7.50 KiB  bubble 54 %
$ for t in twoways frozen; do heddle plan tests/$t.heddle --train --machine "1x1 v100" --strategy "dp=1 tp=1 pp=1 mb=1 recompute=none" | tail -4; heddle sim tests/$t.heddle --train --machine "1x1 v100" | grep -E "^one step|^peak"; done
winner       dp=1 tp=1 pp=1
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %; MFU 0.0 %; needs 43.5 KiB of 28.8 GiB
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
one step alone  586.4 us
peak memory     43.5 KiB of 28.8 GiB on rank 0
winner       dp=1 tp=1 pp=1
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %; MFU 0.0 %; needs 16.5 KiB of 28.8 GiB
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
one step alone  270.4 us
peak memory     16.5 KiB of 28.8 GiB on rank 0
## what no backward would compute again for it is not in a plan: selective is none here
$ heddle plan tests/aside.heddle --train --machine "1x2 v100" --strategy "dp=1 tp=1 pp=2 mb=2 recompute=*" -o aside.plan | grep -E "none|selective|full|^cert|equal"
certificate  3 plans: 1 fit, 0 too large, 0 too slow, 0 impossible, 2 equal to another;
$ for r in none selective full; do heddle plan tests/aside.heddle --train --machine "1x2 v100" --strategy "dp=1 tp=1 pp=2 mb=2 recompute=$r" -o $r.plan >$r.out; grep -c "^recompute:" $r.plan; done
0
0
0
[1]
$ heddle plan gpt2 --batch 8 --dtype bf16 --train --machine "1x2 v100" --top 1
error[E0506]: no plan can run: all 60 are impossible
  note: 60 impossible, such as dp=1 tp=1 pp=2: matmul in bf16: the device v100 has no rate for bf16
  hint: use another --dtype, or add the rate to the machine file
[1]
## A large model in f32, unless that is what was said; and one that is small
$ heddle plan gpt2-xl:layers=40 --batch 8 --seq 256 --train --machine '1x2 a100' --powers-of-two --strategy 'dp=2 mb=1 zero=3 recompute=none' --top 1 2>&1 >out
warning[W0506]: no --dtype given: gpt2-xl:layers=40 is trained in f32, in which a100 has 19.5 TFLOP/s; in bf16 it has 312
  --> gpt2-xl
  hint: --dtype bf16
$ heddle plan gpt2-xl:layers=40 --batch 8 --seq 256 --train --machine '1x2 a100' --powers-of-two --strategy 'dp=2 mb=1 zero=3 recompute=none' --top 1 --dtype f32 2>&1 >out
$ heddle plan gpt2 --batch 8 --seq 256 --train --machine '1x2 a100' --strategy 'dp=2 mb=1 zero=0 recompute=none' --top 1 2>&1 >out
$ heddle plan gnmt:layers=2,hidden=64,vocab=96 --batch 4 --seq 16 --machine '1x2 v100' --strategy 'dp=1 tp=2 pp=1 mb=4' | sed -n '/certificate/p'
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
$ heddle plan mlp-xs --batch 8 --train --optimizer adam --machine '2x8 v100 ib=100Gb/s' --strategy 'dp=8 tp=1 pp=2 mb=1 v=4 schedule=interleaved zero=1 overlap=pp+dp recompute=none' --memory-limit 7MB | sed -n '/needs/p;/certificate/p'
             computes 26.3 % of the time, communicates 18.5 %, idles 55.2 %; MFU 0.1 %; needs 6.50 MiB of 6.68 MiB
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
## One node is faster than two where the network is slow, with what is found there.
$ heddle plan gpt2-medium --batch 32 --seq 512 --dtype f16 --train --optimizer adam --machine "2x8 v100 eth=1Gb/s" --powers-of-two --top 1 --strategy 'tp=1,2 zero=0,1 recompute=none' --threads 1 2>/dev/null | grep -E '^1 |^one '
1   4   2   2   8     1  1.339 s  1.00x  23.91/s  1.14 GiB  communication 68 %
one device   0.49x the time, 660.1 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 mb=2'
one node     0.09x the time, 119.0 ms: --devices 8 --strategy 'dp=8 tp=1 pp=1 zero=1'
$ heddle plan gpt2-medium --batch 32 --seq 512 --dtype f16 --train --optimizer adam --machine "2x8 v100 eth=1Gb/s" --devices 8 --strategy 'dp=8 tp=1 pp=1 zero=1' 2>/dev/null | grep '^1 '
1   8   1     1  none       119.0 ms  1.00x  268.9/s  4.18 GiB  computation 81 %
## More stages than blocks.
$ heddle sim gpt2 --batch 32 --train --machine '1x4 a100-80gb' --strategy 'pp=4 v=8 mb=8 schedule=interleaved'
error[E0502]: 32 pipeline stages, but the model has only 13 blocks and matmuls
  --> gpt2
  hint: a smaller v, or pp=1
[1]
$ heddle sim gpt2:layers=14 --batch 32 --train --machine '1x4 a100-80gb' --strategy 'pp=4 v=4 mb=8 schedule=interleaved'
error[E0502]: 16 pipeline stages, but the model has only 15 blocks and matmuls
  --> gpt2
  hint: layers=auto, which may leave the first and the last stage without a block, or a smaller v
[1]
$ heddle sim gpt2 --batch 32 --train --machine '1x4 a100-80gb' --strategy 'pp=4 v=8 mb=8 schedule=interleaved layers=0/1x12/0'
error[E0502]: layers has 14 numbers, but there are 32 stages (pp=4 x v=8)
  --> --strategy:1:36
   1 | pp=4 v=8 mb=8 schedule=interleaved layers=0/1x12/0
     |                                    ^
  hint: one number for each stage
[1]
