## long: .ci/run has it without sanitizers
$ heddle sim examples/distir/fig2_pipeline.heddle --machine dgx-2
model          examples/distir/fig2_pipeline.heddle
weights        f32
machine        dgx-2
ranks          2; the machine's other 14 are not used
time per step  267.9 us
error bar      unknown: no measured spread for 100.0 % of the step
samples        477,840/s
arithmetic     252 GFLOP/s a device, 1.6 % of the f32 peak (MFU)
computes       57.2 %
communicates   14.3 %
idle           28.5 %
peak memory    1.13 MiB of 28.8 GiB on rank 0
instructions   60

place  ranks  computes  communicates    idle  peak memory
    0  0        52.8 %        14.3 %  32.8 %     1.13 MiB
    1  1        61.5 %        14.3 %  24.1 %     1.13 MiB

device  ranks  computes  communicates    idle
v100        2    57.2 %        14.3 %  28.5 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0         514 KiB        0 B        0 B      128 KiB    514 KiB            0 B  1.13 MiB
1         514 KiB        0 B        0 B      128 KiB    514 KiB            0 B  1.13 MiB

at the peak  function   kind         count     bytes
dA           denseGrad  temporary        2   512 KiB
A_new        optimizer  parameters       1   256 KiB
A1           main       parameters       1   256 KiB
x            main       activations      1   128 KiB
db           denseGrad  temporary        2  2.00 KiB
b_new        optimizer  parameters       1  1.00 KiB
b1           main       parameters       1  1.00 KiB

critical path  kind           count      time   share
send           communication      4  38.43 us  14.3 %
matmul         computation        6  38.28 us  14.3 %
einsum         computation        6  38.28 us  14.3 %
add            computation        6  34.54 us  12.9 %
where          computation        3  17.38 us   6.5 %
relu           computation        3  17.26 us   6.4 %
gt             computation        3  16.67 us   6.2 %
reduce_sum     computation        3  16.36 us   6.1 %
... and 4 more

what would help         on the path  10 % better
launch latency             195.0 us       -7.3 %
network latency            36.00 us       -1.3 %
memory bandwidth           34.45 us       -1.3 %
bandwidth inside nodes     2.427 us       -0.1 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time   share  spread known
launch time     39  229.4 us  85.7 %         0.0 %
link model       4  38.43 us  14.3 %         0.0 %
## With measured spreads the time has an error bar: rows add up as squares.
$ printf 'devices: {d: {like: cpu-core, spread: {source: my own runs, gemm: 10 %% of 40, elementwise: 30 %% of 15}}}\nnodes: {devices: 4 d}\n' > m.yaml
$ heddle sim mlp-xs --machine m.yaml
model          mlp-xs
weights        f32
machine        m.yaml
ranks          1; the machine's other 3 are not used
time per step  30.08 ms
error bar      +-2.867 ms, 9.5 %
samples        17,024/s
arithmetic     71.5 GFLOP/s a device, 74.5 % of the f32 peak (MFU)
computes       100.0 %
communicates   0.0 %
idle           0.0 %
peak memory    11.0 MiB of 3.60 GiB on rank 0
instructions   16

place  ranks  computes  communicates   idle  peak memory
    0  0       100.0 %         0.0 %  0.0 %     11.0 MiB

device  ranks  computes  communicates   idle
d           1   100.0 %         0.0 %  0.0 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0        8.00 MiB        0 B        0 B     1.00 MiB   2.00 MiB            0 B  11.0 MiB

at the peak  function  kind         count     bytes
x            main      activations      1  1.00 MiB
h.0.w        main      parameters       1  1.00 MiB
h.1.w        main      parameters       1  1.00 MiB
h.2.w        main      parameters       1  1.00 MiB
h.3.w        main      parameters       1  1.00 MiB
h.4.w        main      parameters       1  1.00 MiB
... and 4 more

critical path  kind         count      time   share
matmul         computation      8  27.97 ms  93.0 %
relu           computation      8  2.105 ms   7.0 %

what would help   on the path  10 % better
matmul rate          27.96 ms       -9.3 %
memory bandwidth     2.097 ms       -0.7 %
launch latency       16.00 us       -0.0 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time    share  spread known
roofline        16  30.08 ms  100.0 %       100.0 %

figure          stated in         count      time   share  spread  measurements
d: f32 gemm     devices.yaml:206      8  27.97 ms  93.0 %  10.0 %            40
d: elementwise  devices.yaml:206      8  2.105 ms   7.0 %  30.0 %            15
$ heddle sim mlp-xs --machine m.yaml --json | sed -n '/error/p; /sources/,$p'
  "time_error_ps": 2867415868,
  "known_error_ps": 2867415868,
  "known_error_share": 1,
  "sources": [
    {"source": "roofline", "count": 16, "time_ps": 30075178664, "share": 1, "known_error_share": 1}
    {"source": "roofline", "count": 16, "time_ps": 30075178664, "share": 1, "known_error_share": 1}
  ],
  "figures": [
    {"figure": "d: f32 gemm", "stated": "devices.yaml:206", "source": "roofline", "count": 8, "time_ps": 27970026664, "share": 0.9300036743415969, "spread": 0.1, "measurements": 40, "measured": "my own runs"},
    {"figure": "d: elementwise", "stated": "devices.yaml:206", "source": "roofline", "count": 8, "time_ps": 2105152000, "share": 0.06999632565840308, "spread": 0.3, "measurements": 15, "measured": "my own runs"}
  ]
}
## Line 11 before line 10: the second stage waits.
$ heddle sim examples/distir/fig2_swapped.heddle --machine dgx-2
model          examples/distir/fig2_swapped.heddle
weights        f32
machine        dgx-2
ranks          2; the machine's other 14 are not used
time per step  285.8 us
error bar      unknown: no measured spread for 100.0 % of the step
samples        447,923/s
arithmetic     236 GFLOP/s a device, 1.5 % of the f32 peak (MFU)
computes       53.6 %
communicates   13.4 %
idle           32.9 %
peak memory    1.13 MiB of 28.8 GiB on rank 0
instructions   60

place  ranks  computes  communicates    idle  peak memory
    0  0        49.5 %        13.4 %  37.0 %     1.13 MiB
    1  1        57.7 %        13.4 %  28.9 %     1.13 MiB

device  ranks  computes  communicates    idle
v100        2    53.6 %        13.4 %  32.9 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0         514 KiB        0 B        0 B      128 KiB    514 KiB            0 B  1.13 MiB
1         514 KiB        0 B        0 B      128 KiB    514 KiB            0 B  1.13 MiB

at the peak  function   kind         count     bytes
dA           denseGrad  temporary        2   512 KiB
A_new        optimizer  parameters       1   256 KiB
A1           main       parameters       1   256 KiB
x            main       activations      1   128 KiB
db           denseGrad  temporary        2  2.00 KiB
b_new        optimizer  parameters       1  1.00 KiB
b1           main       parameters       1  1.00 KiB

critical path  kind           count      time   share
matmul         computation        7  44.66 us  15.6 %
add            computation        7  40.29 us  14.1 %
send           communication      4  38.43 us  13.4 %
einsum         computation        6  38.28 us  13.4 %
relu           computation        4  23.02 us   8.1 %
where          computation        3  17.38 us   6.1 %
gt             computation        3  16.67 us   5.8 %
reduce_sum     computation        3  16.36 us   5.7 %
... and 4 more

what would help         on the path  10 % better
launch latency             210.0 us       -7.3 %
memory bandwidth           37.34 us       -1.3 %
network latency            36.00 us       -1.3 %
bandwidth inside nodes     2.427 us       -0.1 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time   share  spread known
launch time     42  247.3 us  86.6 %         0.0 %
link model       4  38.43 us  13.4 %         0.0 %
$ heddle sim gpt2 --batch 64 --train --data 4 --tensor 2 --pipeline 2 --microbatches 8 --optimizer adam --machine dgx-2
model           gpt2
plan            dp=4 tp=2 pp=2 mb=8
weights         f32, the optimizer's states f32
dropout         none; with it more activations are kept (docs/commands.md)
machine         dgx-2
ranks           16
layers          8/4
schedule        1f1b
time per step   519.7 ms
one step alone  519.7 ms
error bar       unknown: no measured spread for 100.0 % of the step
samples         123.2/s
arithmetic      6.77 TFLOP/s a device, 43.1 % of the f32 peak (MFU)
computes        81.7 %
communicates    3.3 %
idle            15.0 %
beside them     0.2 % of the time in communication, all other streams together
peak memory     2.47 GiB of 28.8 GiB on rank 0
instructions    61,696

place  ranks  computes  communicates    idle  peak memory
    0  0-7      87.7 %         4.3 %   8.0 %     2.47 GiB
    1  8-15     75.6 %         2.4 %  22.0 %     1.32 GiB

device  ranks  computes  communicates    idle
v100       16    81.7 %         3.3 %  15.0 %

ranks       stream       busy   share
0,2,4,6     compute  478.0 ms  92.0 %
0,2,4,6     pp.f0    538.0 us   0.1 %
0,2,4,6     pp.b0    538.0 us   0.1 %
1,3,5,7     compute  478.0 ms  92.0 %
1,3,5,7     pp.f0    538.0 us   0.1 %
1,3,5,7     pp.b0    538.0 us   0.1 %
8,10,12,14  compute  405.6 ms  78.0 %
8,10,12,14  pp.f0    538.0 us   0.1 %
8,10,12,14  pp.b0    538.0 us   0.1 %
9,11,13,15  compute  405.6 ms  78.0 %
9,11,13,15  pp.f0    538.0 us   0.1 %
9,11,13,15  pp.b0    538.0 us   0.1 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-7       183 MiB    183 MiB    367 MiB     1.65 GiB    105 MiB            0 B  2.47 GiB
8-15      128 MiB    128 MiB    255 MiB      646 MiB    196 MiB            0 B  1.32 GiB

at the peak  function   kind         count     bytes
softmax      layer.fwd  activations     16   768 MiB
add          layer.fwd  activations     15   180 MiB
gelu         layer.fwd  activations     15   180 MiB
layernorm    layer.fwd  activations     16  96.0 MiB
add          layer.fwd  activations     15  90.0 MiB
layernorm    layer.fwd  activations     15  90.0 MiB
... and 4 more

critical path  kind           count      time   share
einsum         computation      902  293.0 ms  56.4 %
matmul         computation      256  94.33 ms  18.2 %
add            computation    1,311  27.47 ms   5.3 %
all_reduce     communication    373  22.42 ms   4.3 %
where          computation      128  18.78 ms   3.6 %
softmax_dx     computation       64  13.26 ms   2.6 %
softmax        computation       64  9.309 ms   1.8 %
reduce_sum     computation      393  6.935 ms   1.3 %
... and 22 more

what would help         on the path  10 % better
matmul rate                381.6 ms       -7.3 %
memory bandwidth           92.11 ms       -1.8 %
launch latency             23.32 ms       -0.4 %
bandwidth inside nodes     18.52 ms       -0.4 %
network latency            4.166 ms       -0.1 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source       count      time   share  spread known
efficiency curve  3,469  490.6 ms  94.4 %         0.0 %
link model          377  22.69 ms   4.4 %         0.0 %
launch time       1,195  6.437 ms   1.2 %         0.0 %
$ heddle sim mlp-xs --machine laptop --json | sed -E 's/: [0-9.e+-]+/: N/g'
{
  "model": "mlp-xs",
  "plan": null,
  "parameter_dtypes": "f32",
  "state_dtypes": null,
  "machine": "laptop",
  "ranks": N,
  "layers_by_stage": null,
  "schedule": null,
  "period_ps": null,
  "time_ps": N,
  "time_error_ps": null,
  "known_error_ps": N,
  "known_error_share": N,
  "batch": N,
  "samples_per_s": N,
  "period_samples_per_s": null,
  "flops": N,
  "flop_per_s_per_device": N,
  "peak_share": N,
  "mfu": N,
  "period_flop_per_s_per_device": null,
  "period_peak_share": null,
  "period_mfu": null,
  "utilisation": N,
  "communication": N,
  "bubble": N,
  "communication_beside": N,
  "peak_bytes": N,
  "usable_bytes": N,
  "host_bytes": null,
  "host_usable_bytes": null,
  "host_link_share": null,
  "fits": true,
  "instructions": N,
  "stages": [
    {"stage": N, "ranks": N, "utilisation": N, "communication": N, "bubble": N, "peak_bytes": N}
  ],
  "devices": [
    {"device": "cpu-core", "ranks": N, "gets": null, "work": null, "utilisation": N, "communication": N, "bubble": N, "peak_bytes": N, "usable_bytes": N, "one_more": null}
  ],
  "spread_ps": null,
  "memory": [
    {"first_rank": N, "ranks": N, "stage": N, "parameter_bytes": N, "gradient_bytes": N, "state_bytes": N, "activation_bytes": N, "temporary_bytes": N, "communication_bytes": N, "peak_bytes": N}
  ],
  "peak": [
    {"value": "x", "function": "main", "kind": "activations", "count": N, "bytes": N},
    {"value": "h.0.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.1.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.2.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.3.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.4.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.5.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.6.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.7.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "matmul", "function": "layer", "kind": "temporary", "count": N, "bytes": N}
  ],
  "critical_communication_share": N,
  "critical_path": [
    {"op": "matmul", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "relu", "kind": "computation", "count": N, "time_ps": N, "share": N}
  ],
  "help": [
    {"what": "matmul rate", "time_ps": N, "slope": N},
    {"what": "memory bandwidth", "time_ps": N, "slope": N},
    {"what": "launch latency", "time_ps": N, "slope": N}
  ],
  "sources": [
    {"source": "roofline", "count": N, "time_ps": N, "share": N, "known_error_share": N}
  ],
  "figures": [
    {"figure": "cpu-core: f32 gemm", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: Nlementwise", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null}
  ]
}
## Every rank and instruction one by one: the same result.
$ for how in "" --flat; do heddle sim mlp-xs --train --data 2 --pipeline 2 --microbatches 4 --machine laptop $how --json | grep -E '^  "(time_ps|peak_bytes|utilisation|instructions)"' | cksum | cut -c1-3; done | uniq | grep -c .
1
$ heddle sim mlp-xs --train --data 2 --pipeline 2 --microbatches 4 --machine laptop --json | sed -E 's/: [0-9.e+-]+/: N/g'
{
  "model": "mlp-xs",
  "plan": "dp=2 tp=1 pp=2 mb=4",
  "parameter_dtypes": "f32",
  "state_dtypes": null,
  "machine": "laptop",
  "ranks": N,
  "layers_by_stage": "4/4",
  "schedule": "1f1b",
  "period_ps": N,
  "time_ps": N,
  "time_error_ps": null,
  "known_error_ps": N,
  "known_error_share": N,
  "batch": N,
  "samples_per_s": N,
  "period_samples_per_s": N,
  "flops": N,
  "flop_per_s_per_device": N,
  "peak_share": N,
  "mfu": N,
  "period_flop_per_s_per_device": N,
  "period_peak_share": N,
  "period_mfu": N,
  "utilisation": N,
  "communication": N,
  "bubble": N,
  "communication_beside": N,
  "peak_bytes": N,
  "usable_bytes": N,
  "host_bytes": null,
  "host_usable_bytes": null,
  "host_link_share": null,
  "fits": true,
  "instructions": N,
  "stages": [
    {"stage": N, "ranks": N, "utilisation": N, "communication": N, "bubble": N, "peak_bytes": N},
    {"stage": N, "ranks": N, "utilisation": N, "communication": N, "bubble": N, "peak_bytes": N}
  ],
  "devices": [
    {"device": "cpu-core", "ranks": N, "gets": null, "work": null, "utilisation": N, "communication": N, "bubble": N, "peak_bytes": N, "usable_bytes": N, "one_more": null}
  ],
  "spread_ps": null,
  "streams": [
    {"first_rank": N, "ranks": N, "stream": "compute", "busy_ps": N, "share": N},
    {"first_rank": N, "ranks": N, "stream": "pp.f0", "busy_ps": N, "share": N},
    {"first_rank": N, "ranks": N, "stream": "pp.b0", "busy_ps": N, "share": N},
    {"first_rank": N, "ranks": N, "stream": "compute", "busy_ps": N, "share": N},
    {"first_rank": N, "ranks": N, "stream": "pp.f0", "busy_ps": N, "share": N},
    {"first_rank": N, "ranks": N, "stream": "pp.b0", "busy_ps": N, "share": N}
  ],
  "memory": [
    {"first_rank": N, "ranks": N, "stage": N, "parameter_bytes": N, "gradient_bytes": N, "state_bytes": N, "activation_bytes": N, "temporary_bytes": N, "communication_bytes": N, "peak_bytes": N},
    {"first_rank": N, "ranks": N, "stage": N, "parameter_bytes": N, "gradient_bytes": N, "state_bytes": N, "activation_bytes": N, "temporary_bytes": N, "communication_bytes": N, "peak_bytes": N}
  ],
  "peak": [
    {"value": "h.0.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.1.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.2.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "h.3.w", "function": "main", "kind": "parameters", "count": N, "bytes": N},
    {"value": "full", "function": "main", "kind": "gradients", "count": N, "bytes": N},
    {"value": "full", "function": "main", "kind": "gradients", "count": N, "bytes": N},
    {"value": "full", "function": "main", "kind": "gradients", "count": N, "bytes": N},
    {"value": "full", "function": "main", "kind": "gradients", "count": N, "bytes": N},
    {"value": "einsum", "function": "layer.bwd", "kind": "temporary", "count": N, "bytes": N},
    {"value": "x", "function": "main", "kind": "activations", "count": N, "bytes": N}
  ],
  "critical_communication_share": N,
  "critical_path": [
    {"op": "einsum", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "matmul", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "add", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "sgd", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "relu_dx", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "all_reduce", "kind": "communication", "count": N, "time_ps": N, "share": N},
    {"op": "relu", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "full", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "mul", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "sub", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "scale", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "reduce_sum", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "expand", "kind": "computation", "count": N, "time_ps": N, "share": N},
    {"op": "send", "kind": "communication", "count": N, "time_ps": N, "share": N}
  ],
  "help": [
    {"what": "matmul rate", "time_ps": N, "slope": N},
    {"what": "memory bandwidth", "time_ps": N, "slope": N},
    {"what": "bandwidth inside nodes", "time_ps": N, "slope": N},
    {"what": "launch latency", "time_ps": N, "slope": N},
    {"what": "network latency", "time_ps": N, "slope": N}
  ],
  "sources": [
    {"source": "roofline", "count": N, "time_ps": N, "share": N, "known_error_share": N},
    {"source": "link model", "count": N, "time_ps": N, "share": N, "known_error_share": N},
    {"source": "launch time", "count": N, "time_ps": N, "share": N, "known_error_share": N}
  ],
  "figures": [
    {"figure": "cpu-core: f32 gemm", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: Nlementwise", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "link of cpu-core: all_reduce", "stated": "devices.yaml:207", "source": "link model", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: move", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: reduction", "stated": "devices.yaml:206", "source": "roofline", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "link of cpu-core: send", "stated": "devices.yaml:207", "source": "link model", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: launch of elementwise", "stated": "devices.yaml:203", "source": "launch time", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null},
    {"figure": "cpu-core: launch of move", "stated": "devices.yaml:203", "source": "launch time", "count": N, "time_ps": N, "share": N, "spread": null, "measurements": null, "measured": null}
  ]
}
## A timeline: one slice for every instruction on every rank.
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --pipeline 2 --microbatches 2 --machine laptop --timeline - | head -12
{"displayTimeUnit":"ms","schema":"heddle timeline 1","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0"}},
{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":0,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"pp.f0"}},
{"ph":"M","name":"thread_sort_index","pid":0,"tid":1,"args":{"sort_index":1}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 1"}},
{"ph":"M","name":"process_sort_index","pid":1,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"pp.f0"}},
## Around what a task runs is a slice with its name: 0F1 is the forward of stage 0 for microbatch 1. Its sends say it too.
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --train --pipeline 2 --microbatches 2 --machine laptop --timeline - | grep '"0F1"'
{"ph":"B","name":"0F1","cat":"task","pid":0,"tid":0,"ts":3.096},
{"ph":"X","name":"matmul","cat":"forward","pid":0,"tid":0,"ts":3.096,"dur":1.048,"args":{"step":1,"microbatch":1,"task":"0F1","layer":0,"node":"mlp-xs"}},
{"ph":"X","name":"relu","cat":"forward","pid":0,"tid":0,"ts":4.144,"dur":1.016,"args":{"step":1,"microbatch":1,"task":"0F1","layer":0,"node":"mlp-xs"}},
{"ph":"E","name":"0F1","cat":"task","pid":0,"tid":0,"ts":5.16},
{"ph":"X","name":"send","cat":"communication","pid":0,"tid":1,"ts":5.6088,"dur":2.5128,"args":{"step":1,"microbatch":1,"task":"0F1","bytes":64,"match":2,"node":"mlp-xs"}},
{"ph":"X","name":"send","cat":"communication","pid":1,"tid":1,"ts":5.6088,"dur":2.5128,"args":{"step":1,"microbatch":1,"task":"0F1","bytes":64,"match":2,"node":"mlp-xs"}},
## Slices say the layer, counted through the model whatever stage it is in: as the weights' names have it, else as main calls them.
$ heddle import mlp-xs:layers=4,hidden=8 --batch 4 | sed 's/h\.\([0-9]\)\.w/w\1x/g' >nameless.heddle; printf '%s\n' 's/.*"cat":"\([a-z]*\)","pid":\([0-9]*\).*"layer":\([0-9]*\).*/rank \2 layer \3 \1/p' >layers.sed
$ heddle sim mlp-xs:layers=4,hidden=8 --batch 4 --train --strategy 'pp=2 mb=2 v=2 schedule=interleaved' --machine laptop --timeline - | sed -n -f layers.sed | sort -u
rank 0 layer 0 backward
rank 0 layer 0 forward
rank 0 layer 0 update
rank 0 layer 2 backward
rank 0 layer 2 forward
rank 0 layer 2 update
rank 1 layer 1 backward
rank 1 layer 1 forward
rank 1 layer 1 update
rank 1 layer 3 backward
rank 1 layer 3 forward
rank 1 layer 3 update
$ heddle import mlp-xs:layers=4,hidden=8 --batch 4 | sed 's/h\.\([0-9]\)\.w/h.1\1.w/g' >named.heddle; for m in nameless named; do heddle sim $m.heddle --strategy 'pp=4 mb=2' --machine laptop --timeline - | sed -n -f layers.sed | sort -u; done
rank 0 layer 0 forward
rank 1 layer 1 forward
rank 2 layer 2 forward
rank 3 layer 3 forward
rank 0 layer 10 forward
rank 1 layer 11 forward
rank 2 layer 12 forward
rank 3 layer 13 forward
$ heddle sim mlp-xs:layers=4,hidden=8 --batch 4 --train --strategy 'pp=4 mb=2 schedule=zb-h1' --machine laptop --timeline t.json >t.txt; grep '"task":"2W' t.json | sed -n -f layers.sed | sort -u
rank 2 layer 2 backward
$ heddle sim gpt2:layers=2,hidden=16,heads=2,vocab=32,positions=8 --batch 4 --seq 8 --train --strategy 'dp=2 zero=3 coshard=2 recompute=full' --machine laptop --timeline - | sed -n -f layers.sed | sort -u
rank 0 layer 0 backward
rank 0 layer 0 communication
rank 0 layer 0 forward
rank 0 layer 0 recompute
rank 0 layer 0 update
rank 0 layer 1 backward
rank 0 layer 1 communication
rank 0 layer 1 forward
rank 0 layer 1 recompute
rank 0 layer 1 update
rank 1 layer 0 backward
rank 1 layer 0 communication
rank 1 layer 0 forward
rank 1 layer 0 recompute
rank 1 layer 0 update
rank 1 layer 1 backward
rank 1 layer 1 communication
rank 1 layer 1 forward
rank 1 layer 1 recompute
rank 1 layer 1 update
## What a rank holds is a counter, highest at its peak.
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --train --pipeline 2 --machine laptop --timeline t.json | grep -A 3 '^ranks  p'; grep -c '"ph":"C"' t.json; grep -m1 '"ph":"C"' t.json; grep -o '"bytes":[0-9]*}}' t.json | sort -u -t: -k2 -n | tail -1
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0           256 B        0 B        0 B        128 B      256 B          128 B     768 B
1           256 B        0 B        0 B        512 B      320 B            0 B  1.06 KiB

7
{"ph":"C","name":"memory","pid":0,"ts":0,"args":{"bytes":640}},
"bytes":1088}}
## A timeline of more events than viewers open: one rank of those that are alike.
$ heddle sim mlp-xs --batch 1048576 --data 4096 --microbatches 64 --machine 'dgx-h100*512' --timeline t.json > t.txt; grep -o '"rank [^"]*"' t.json
warning[W0501]: the timeline shows 1 of 4096 ranks, one for all that are alike; together they have 4.19e+06 events
  --> mlp-xs
"rank 0 of 4096 alike"
## Half precision: the optimizer updates a copy of the weights in f32, unless told not to.
$ heddle show mlp-xs --dtype f16 --train --optimizer adam | sed -n '/optimizer/p'
optimizer state  24.0 MiB
$ heddle show mlp-xs --dtype f16 --train --optimizer adam --no-master-weights | sed -n '/optimizer/p'
optimizer state  16.0 MiB
$ heddle sim mlp-xs --dtype f16 --batch 1024 --train --optimizer adam --data 4 --zero 1 --machine dgx-2 | sed -n '/^weights/p;/^ranks  p/,/^$/p'
weights         f16, the optimizer's states f32
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      4.00 MiB   3.50 MiB   6.00 MiB      768 KiB    512 KiB            0 B  14.8 MiB

$ heddle sim mlp-xs --dtype f16 --batch 1024 --train --optimizer adam --data 4 --zero 1 --no-master-weights --machine dgx-2 | sed -n '/^weights/p;/^ranks  p/,/^$/p'
weights         f16, the optimizer's states f32
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      4.00 MiB   3.50 MiB   4.00 MiB      768 KiB    512 KiB            0 B  12.8 MiB

$ heddle plan mlp-xs --dtype f16 --batch 1024 --train --data 4 --machine dgx-2 -o half.plan > out.txt; sed -n '/^train/p' half.plan
train: {optimizer: sgd, lr: 0.01, momentum: 0, beta1: 0, beta2: 0, eps: 0, weight-decay: 0, master-weights: true}
$ heddle sim mlp-xs --dtype f16 --batch 1024 --plan half.plan --no-master-weights --machine dgx-2
error[E0801]: --no-master-weights cannot be combined with --plan: the plan file decides it
  hint: leave it out, or edit the plan file (docs/plans.md)
[2]
$ heddle sim mlp-xs --dtype f16 --batch 1024 --no-master-weights --machine dgx-2
error[E0801]: --no-master-weights applies to training only; this is inference
  hint: add --train
[2]
$ heddle verify mlp-xs:layers=1,hidden=8 --dtype bf16 --batch 8 --train --data 2 --zero 1 | sed -n '/master/p'
h.0.w.master.new        64                   0         0
$ heddle sim examples/batchnorm.heddle --train --data 2 --machine laptop | head -4
model           examples/batchnorm.heddle
plan            dp=2 tp=1 pp=1
batch norm      statistics over 12 of 24 samples
weights         f32
$ heddle sim examples/batchnorm.heddle --machine laptop | head -3
model          examples/batchnorm.heddle
batch norm     statistics over all 24 samples
weights        f32
## Stages that share a function and a weight: every one adds its own part of the gradient.
$ for s in "pp=4 mb=2" "pp=2 v=2 mb=2 schedule=interleaved" "dp=2 pp=2 mb=2 zero=2"; do heddle sim tests/shared.heddle --train --machine '1x4 v100' --strategy "$s" | grep '^time per'; done
time per step   303.4 us
time per step   309.4 us
time per step   361.3 us
## A stage reads weights, and values of other stages, for what the loss does not depend on; sums with a microbatch twice.
$ for s in "mb=2" "pp=2 mb=2" "pp=2 mb=2 schedule=zb-h1" "dp=2 tp=2 pp=2 mb=2 zero=3"; do for c in sim verify; do heddle $c tests/aside.heddle --train --machine '1x8 v100' --strategy "$s" | grep -E '^(time per|verdict)'; done; done
time per step   320.8 us
verdict    equal: the plan computes what the model computes
time per step   303.7 us
verdict    equal: the plan computes what the model computes
time per step   284.7 us
verdict    equal: the plan computes what the model computes
time per step   523.4 us
verdict    equal: the plan computes what the model computes
$ heddle sim t5-small:layers=3 --batch 8 --train --machine '1x8 v100' --strategy 'pp=6 mb=4' | grep '^time per'
time per step   62.79 ms
## what a search and a simulation say of one plan is the same to the last digit
$ for s in "dp=4 tp=2 pp=2 mb=8" "dp=2 tp=2 pp=4 mb=4 zero=1" "dp=8 pp=2 mb=3 recompute=full"; do for c in "plan --top 1" sim; do heddle $c gpt2:layers=5,hidden=64,heads=4,vocab=200 --batch 96 --train --strategy "$s" --machine dgx-2 --json | tr -d ' ' | tr ',' '\n' | grep -m 2 -E '^"(utilisation|communication)":' >"${c%% *}.shares"; done; wc -l <plan.shares; cmp plan.shares sim.shares; done
2
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:21
   1 | dp=2 tp=2 pp=4 mb=4 zero=1
     |                     ^
2
2
## Unlike devices, and a network that is said once
$ heddle sim bert-large --machine "1x8 v100 + 1x8 p100 ib=50Gb/s" --batch 512 --train --strategy "dp=16 mb=4" | sed -n '5,22p'
machine         1x8 v100 + 1x8 p100 ib=50Gb/s
ranks           16
time per step   5.831 s
one step alone  5.831 s
error bar       at least +-1.056 s; no measured spread for 95.3 % of the step
samples         87.81/s
arithmetic      6.08 TFLOP/s a device, 48.6 % of the f32 peak (MFU)
computes        76.5 %
communicates    4.7 %
idle            18.7 %
peak memory     12.5 GiB of 28.8 GiB on rank 0
instructions    106,288

place  ranks  computes  communicates    idle  peak memory
    0  0-15     76.5 %         4.7 %  18.7 %     12.5 GiB

device  ranks  each gets   share of work  computes  communicates    idle  peak memory    usable
v100        8  32 samples         50.0 %    57.8 %         4.7 %  37.4 %     12.5 GiB  28.8 GiB
$ for s in "mb=4" "mb=4 recompute=full" "pp=4 mb=4 layers=equal" "pp=4 mb=4 layers=equal recompute=full"; do heddle sim gpt2:layers=8 --batch 8 --train --machine '1x4 a100' --strategy "$s" --json | sed -n 's/^  "time_ps": //p'; done | tr -d ',' | paste -sd ' ' | awk '{printf "%.1f ms for (K + P - 1) of the %.1f ms that a stage computes again\n", ($4 - $3) / 1e9, ($2 - $1) / 16e9}'
47.1 ms for (K + P - 1) of the 6.7 ms that a stage computes again
## A vocabulary that tensor cores take badly; nothing is said where they are not used.
$ heddle sim gpt2:layers=1 --batch 2 --dtype bf16 --machine '1x1 h100' 2>&1 >out.txt
warning[W0508]: wte of gpt2:layers=1 has an extent of 50257 in bf16: its matmuls are slower on h100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
$ heddle sim gpt2:layers=1 --batch 2 --dtype bf16 --train --strategy dp=2 --machine '1x2 h100' 2>&1 >out.txt
warning[W0508]: wte of gpt2:layers=1 has an extent of 50257 in bf16: its matmuls are slower on h100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
$ heddle plan gpt2:layers=1 --batch 2 --dtype f16 --train --machine '1x2 v100' -o best.plan 2>&1 >out.txt
warning[W0508]: wte of gpt2:layers=1 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
$ heddle sim gpt2:layers=1 --batch 2 --dtype bf16 --vocab 50264 --machine '1x1 h100' 2>&1 >out.txt; heddle sim gpt2:layers=1 --batch 2 --machine '1x1 h100' 2>&1 >out.txt; heddle sim gpt2:layers=1 --batch 2 --dtype f16 --machine '1x1 p100' 2>&1 >out.txt
