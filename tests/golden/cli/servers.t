## How gradients of data ranks meet: parameter servers.
$ heddle verify gpt2:layers=4,hidden=64,heads=4 --vocab 128 --seq 16 --batch 8 --train --optimizer adam --strategy "dp=2 tp=2 pp=2 mb=2 sync=ps" | grep -e ^plan -e ^verdict
plan       dp=2 tp=2 pp=2 mb=2 sync=ps
verdict    equal: the plan computes what the model computes
$ heddle sim mlp-xs --batch 16 --train --optimizer adam --machine dgx-h100 --devices 4 --strategy "dp=4 sync=ps"
model           mlp-xs
plan            dp=4 tp=1 pp=1 sync=ps
weights         f32, the optimizer's states f32
machine         dgx-h100
ranks           4; the machine's other 4 are not used
time per step   225.3 us
one step alone  225.3 us
error bar       at least +-48.54 us; no measured spread for 70.8 % of the step
samples         71,011/s
arithmetic      242 GFLOP/s a device, 0.4 % of the f32 peak (MFU)
computes        76.1 %
communicates    4.2 %
idle            19.6 %
beside them     116.6 % of the time in communication, all other streams together
peak memory     21.0 MiB of 72.0 GiB on rank 0
instructions    268

place  ranks  computes  communicates    idle  peak memory
    0  0        76.1 %         4.2 %  19.6 %     21.0 MiB
    1  1        76.1 %         4.2 %  19.6 %     20.0 MiB
    2  2        76.1 %         4.2 %  19.6 %     20.0 MiB
    3  3        76.1 %         4.2 %  19.6 %     20.0 MiB

device  ranks  computes  communicates    idle
h100        4    76.1 %         4.2 %  19.6 %

ranks  stream       busy   share
0-3    compute  181.0 us  80.4 %
0-3    server0  65.68 us  29.2 %
0-3    server1  65.68 us  29.2 %
0-3    server2  65.68 us  29.2 %
0-3    server3  65.68 us  29.2 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0        8.00 MiB   9.00 MiB   4.00 MiB     16.0 KiB        0 B          512 B  21.0 MiB
1        8.00 MiB   8.00 MiB   4.00 MiB     16.0 KiB   8.50 KiB            0 B  20.0 MiB
2        8.00 MiB   8.00 MiB   4.00 MiB     16.0 KiB   8.50 KiB            0 B  20.0 MiB
3        8.00 MiB   8.00 MiB   4.00 MiB     16.0 KiB   8.50 KiB            0 B  20.0 MiB

at the peak  function   kind        count     bytes
einsum       layer.bwd  gradients       7  7.00 MiB
h.0.w        main       parameters      1  1.00 MiB
h.1.w        main       parameters      1  1.00 MiB
h.2.w        main       parameters      1  1.00 MiB
h.3.w        main       parameters      1  1.00 MiB
h.4.w        main       parameters      1  1.00 MiB
... and 4 more

critical path  kind           count      time   share
einsum         computation       15  54.88 us  24.4 %
broadcast      communication      2  32.84 us  14.6 %
reduce         communication      2  32.84 us  14.6 %
matmul         computation        8  29.27 us  13.0 %
relu_dx        computation        8  24.22 us  10.7 %
relu           computation        8  24.14 us  10.7 %
scale          computation        3  9.018 us   4.0 %
mul            computation        2  6.054 us   2.7 %
... and 4 more

what would help         on the path  10 % better
launch latency             144.0 us       -6.4 %
bandwidth inside nodes     49.71 us       -2.2 %
network latency            25.20 us       -1.1 %
memory bandwidth           15.63 us       -0.7 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time   share  spread known
launch time     48  159.6 us  70.8 %         0.0 %
link model       4  65.68 us  29.2 %        29.2 %

figure                                         stated in         count      time   share  spread  measurements
h100: launch of f32 gemm                       devices.yaml:114     23  84.15 us  37.3 %
h100: launch of elementwise                    devices.yaml:114     22  66.46 us  29.5 %
link of h100: all_to_all from 1 MiB to 16 MiB  devices.yaml:119      4  65.68 us  29.2 %  73.9 %            12
h100: launch of move                           devices.yaml:114      2  6.009 us   2.7 %
h100: launch of reduction                      devices.yaml:114      1  3.009 us   1.3 %
$ heddle sim gpt2 --seq 64 --batch 8 --train --machine dgx-2 --strategy "dp=4 zero=1 sync=ps"
error[E0509]: zero=1 does not go with sync=ps: a weight's optimizer states are on its server alone already
  --> --strategy:1:6
   1 | dp=4 zero=1 sync=ps
     |      ^
  hint: zero=0, or sync=allreduce
[2]
$ heddle sim gpt2 --seq 64 --batch 8 --train --machine dgx-2 --strategy "dp=4 zero=3 sync=ps"
error[E0509]: zero=3 does not go with sync=ps: a server needs weights and gradients whole
  --> --strategy:1:6
   1 | dp=4 zero=3 sync=ps
     |      ^
  hint: zero=0, or sync=allreduce
[2]
$ heddle sim gpt2 --seq 64 --batch 8 --train --machine dgx-2 --strategy "sync=ps pp=2 mb=2"
error[E0509]: sync=ps needs dp > 1; got dp=1
  --> --strategy:1:1
   1 | sync=ps pp=2 mb=2
     | ^
  hint: add dp=2, or leave out sync
[2]
$ heddle sim gpt2 --seq 64 --batch 8 --train --machine dgx-2 --strategy "replicas=1x1x2+1x2x1 sync=ps"
error[E0509]: replicas=1x1x2+1x2 does not go with sync=ps: replicas of different make-up have no data ranks in common
  --> --strategy:1:1
   1 | replicas=1x1x2+1x2x1 sync=ps
     | ^
  hint: replicas=none, or sync=allreduce
[2]
$ heddle sim gpt2 --seq 64 --batch 8 --train --machine dgx-2 --strategy "dp=2 sync=p"
error[E0509]: sync: unknown value 'p'
  --> --strategy:1:11
   1 | dp=2 sync=p
     |           ^
  hint: did you mean sync=ps? It takes allreduce or ps
[2]
$ heddle plan mlp-xs --batch 16 --train --optimizer adam --machine dgx-h100 --strategy "dp=* mb=1 zero=0 recompute=none pp=1 sync=*" | sed -n '/^ *rank/,/^$/p'
ranks         8
batch         16
memory limit  72.0 GiB
step          training

