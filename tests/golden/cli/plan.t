$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         1,024
memory limit  3.60 GiB

   D  T  P  K    ZeRO  recompute      time          samples    memory  limited by
1  4  1  1  1       2  none       48.69 ms  1.00x  21,033/s  18.0 MiB  computation 94 %
2  4  1  1  1       2  selective  48.69 ms  1.00x  21,033/s  18.0 MiB  computation 94 %
3  4  1  1  1       3  none       49.28 ms  1.01x  20,780/s  12.0 MiB  computation 92 %
4  4  1  1  1       3  selective  49.28 ms  1.01x  20,780/s  12.0 MiB  computation 92 %
5  4  1  1  1       0  none       49.43 ms  1.02x  20,715/s  22.5 MiB  computation 95 %

winner          data 4, ZeRO 2
                computes 93.6 % of the time, communicates 6.4 %; needs 18.0 MiB of 3.60 GiB
next            data 4, ZeRO 2, recompute selective
                1.00x the time, limited by computation
tensor alone    1.14x the time, limited by computation
pipeline alone  1.51x the time, limited by computation
certificate     273 plans: 252 simulated, of which 252 fit;
                0 ruled out by memory, 21 by time; 0 impossible
$ cat best.plan
# heddle plan mlp-xs --batch 1024 --train --machine laptop --top 5 -o best.plan
heddle-plan: 1
name: "D4 T1 P1 K1 zero2"
train: {optimiser: sgd, lr: 0.01, momentum: 0, beta1: 0, beta2: 0, eps: 0, weight-decay: 0}
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
plan           D4 T1 P1 K1 zero2
weights        f32
machine        laptop
ranks          4
time per step  48.69 ms
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
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": "1f1b", "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": "1f1b", "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": "1f1b", "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "bubble"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": "1f1b", "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"},
    {"rank": N, "data": N, "tensor": N, "pipeline": N, "microbatches": N, "schedule": null, "zero": N, "recompute": "none", "state": "simulated", "time_ps": N, "times_best": N, "samples_per_s": N, "peak_bytes": N, "utilisation": N, "communication": N, "limit": "computation"}
  ],
  "space": N,
  "fit": N,
  "simulated": N,
  "ruled_out_by_memory": N,
  "ruled_out_by_time": N,
  "impossible": N
}
$ heddle plan mlp-xs --batch 256 --machine laptop --microbatches 1 --powers-of-two
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         256
memory limit  3.60 GiB

   D  T  P  K    ZeRO  recompute      time          samples    memory  limited by
1  4  1  1  1       0  none       3.773 ms  1.00x  67,843/s  8.50 MiB  computation 100 %
2  2  2  1  1       0  none       4.126 ms  1.09x  62,043/s  4.88 MiB  computation 95 %
3  1  4  1  1       0  none       4.816 ms  1.28x  53,159/s  3.62 MiB  computation 87 %
4  2  1  2  1       0  none       7.586 ms  2.01x  33,748/s  5.00 MiB  bubble 50 %
5  1  2  2  1       0  none       8.332 ms  2.21x  30,726/s  3.75 MiB  bubble 49 %
6  1  1  4  1       0  none       15.37 ms  4.07x  16,658/s  4.00 MiB  bubble 74 %

winner          data 4
                computes 100.0 % of the time, communicates 0.0 %; needs 8.50 MiB of 3.60 GiB
next            data 2, tensor 2
                1.09x the time, limited by computation
tensor alone    1.28x the time, limited by computation
pipeline alone  4.07x the time, limited by bubble
certificate     6 plans: 6 simulated, of which 6 fit;
                0 ruled out by memory, 0 by time; 0 impossible
## Too small to be worth four devices.
$ heddle plan examples/batchnorm.heddle --train --machine laptop --top 1 | tail -9
                computes 51.2 % of the time, communicates 48.8 %; needs 31.8 KiB of 3.60 GiB
batch norm      statistics over 6 of 24 samples
next            data 4, recompute selective
                1.00x the time, limited by communication
tensor alone    1.22x the time, limited by computation
pipeline alone  1.27x the time, limited by bubble
one device      0.93x the time, 125.8 us: --devices 1
certificate     237 plans: 201 simulated, of which 201 fit;
                0 ruled out by memory, 0 by time; 36 impossible
$ heddle plan examples/batchnorm.heddle --train --machine laptop --top 1 --json | grep -e batchnorm_samples -e one_device_ps
  "batchnorm_samples": 6,
  "one_device_ps": 125753500,
