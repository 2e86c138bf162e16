## long: .ci/run has it without sanitizers
## Parameters, gradients, optimizer states and activations in host memory.
$ heddle sim gpt3-1.3b --batch 4 --seq 1024 --dtype f16 --train --optimizer adam --machine '1x1 v100-32gb hostmem=192GiB' --strategy 'recompute=full offload=states' | grep -E 'plan |time per|peak mem|host mem|h2d|d2h'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
plan            dp=1 tp=1 pp=1 recompute=full offload=states
time per step   1.830 s
peak memory     7.49 GiB of 28.8 GiB on rank 0
host memory     14.7 GiB of 173 GiB on node 0; the busier way of its link is in use 66.8 %
place  ranks  computes  communicates    idle  peak memory
0      h2d       1.254 s  66.8 %
0      d2h       1.254 s  66.8 %
$ heddle sim gpt3-1.3b --batch 4 --seq 1024 --dtype f16 --train --optimizer adam --machine '1x1 v100-32gb hostmem=192GiB' --strategy 'recompute=full offload=params+grads+states+acts prefetch=2' | grep -E 'plan |time per|peak mem|host mem|h2d|d2h'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
plan            dp=1 tp=1 pp=1 recompute=full offload=params+grads+states+acts prefetch=2
time per step   2.335 s
peak memory     4.96 GiB of 28.8 GiB on rank 0
host memory     19.1 GiB of 173 GiB on node 0; the busier way of its link is in use 89.0 %
place  ranks  computes  communicates    idle  peak memory
0      h2d       2.121 s  89.0 %
0      d2h       1.679 s  70.4 %
$ heddle sim gpt3-1.3b --batch 4 --seq 1024 --dtype f16 --train --optimizer adam --machine dgx-1 --devices 1 --strategy 'offload=states' --json | grep -oE '"host[a-z_]*": [^,]*'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
"host_bytes": 15788679168
"host_usable_bytes": 494780022784
"host_link_share": 0.8428249166000562
$ heddle sim gpt3-1.3b --batch 8 --seq 1024 --dtype f16 --train --optimizer adam --machine dgx-1 --devices 1 --strategy 'dp=1' --json | grep -oE '"host[a-z_]*": [^,]*'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
error[E0505]: rank 0 needs 38.3 GiB; its device has 28.8 GiB
  --> gpt3-1.3b
  note: 24 values of softmax in @layer.fwd: 6.00 GiB of activations
    --> gpt3-1.3b: layer/attention
  note: 24 values of add in @layer.fwd: 3.00 GiB of activations
    --> gpt3-1.3b: layer/mlp
  note: 24 values of gelu in @layer.fwd: 3.00 GiB of activations
    --> gpt3-1.3b: layer/mlp
  hint: a larger pp, tp or mb; in training recompute=full, or zero=3 with dp > 1; `heddle plan` finds what fits; the machine has host memory: offload
"host_bytes": null
"host_usable_bytes": null
"host_link_share": null
## Two devices of a DGX-1 share the way to host memory, so states take twice as long as with a way of their own.
$ heddle sim gpt3-1.3b --batch 8 --seq 1024 --dtype f16 --train --optimizer adam --machine dgx-1 --devices 8 --strategy 'dp=8 zero=3 recompute=full offload=params+grads+states' | grep -E 'plan |time per|peak mem|host mem|h2d|d2h'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
plan            dp=8 tp=1 pp=1 zero=3 recompute=full offload=params+grads+states
time per step   691.2 ms
peak memory     529 MiB of 28.8 GiB on rank 0
host memory     19.2 GiB of 461 GiB on node 0; the busier way of its link is in use 73.6 %
place  ranks  computes  communicates    idle  peak memory
0-7    h2d      518.7 ms  73.6 %
0-7    d2h      412.2 ms  58.5 %
## Copies compute nothing: what is verified is the same.
$ for m in 'gpt2:layers=3,hidden=64,heads=4,vocab=64' 't5-small:layers=2,hidden=64,heads=4,vocab=64' 'moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64' 'resnet50:hidden=8'; do for s in offload=params offload=grads offload=states offload=acts 'dp=2 mb=2 zero=1 offload=states' 'dp=2 zero=2 mb=2 offload=grads+states' 'dp=2 zero=3 recompute=full offload=params+grads+states+acts' 'pp=2 mb=2 recompute=full offload=params+grads+states+acts prefetch=0' 'pp=2 mb=4 schedule=zb-h1 offload=params+grads+states+acts prefetch=3'; do case $m$s in resnet*+acts*) seq=32 ;; resnet*) continue ;; *) seq=16 ;; esac; heddle verify "$m" --batch 8 --seq $seq --train --optimizer adam --strategy "$s" >out || { echo "$m $s"; cat out; }; done; done; tail -n 0 out
$ heddle verify gpt2:layers=2,hidden=64,heads=4,vocab=64 --batch 4 --seq 16 --strategy 'tp=2 offload=params' | head -3
model      gpt2:layers=2,hidden=64,heads=4,vocab=64
plan       dp=1 tp=2 pp=1 offload=params
results    1
## Layers that share all weights, or one: each adds to the same sum.
$ for m in albert norm; do for s in 'mb=2 offload=grads' 'mb=4 offload=params+acts' 'dp=2 zero=2 mb=2 recompute=full offload=grads' 'pp=2 mb=4 schedule=interleaved v=2 offload=params+grads+acts' 'pp=2 mb=4 schedule=zb-h1 offload=grads+acts'; do heddle sim tests/$m.heddle --train --machine '1x2 v100 hostmem=64GiB' --strategy "$s" | grep '^time per'; heddle verify tests/$m.heddle --train --strategy "$s" | grep verdict; done; done
time per step   501.8 us
verdict    equal: the plan computes what the model computes
time per step   993.8 us
verdict    equal: the plan computes what the model computes
time per step   803.7 us
verdict    equal: the plan computes what the model computes
time per step   738.7 us
verdict    equal: the plan computes what the model computes
time per step   716.5 us
verdict    equal: the plan computes what the model computes
time per step   480.7 us
verdict    equal: the plan computes what the model computes
time per step   926.2 us
verdict    equal: the plan computes what the model computes
time per step   776.6 us
verdict    equal: the plan computes what the model computes
time per step   677.9 us
verdict    equal: the plan computes what the model computes
time per step   639.6 us
verdict    equal: the plan computes what the model computes
$ heddle plan tests/albert.heddle --train --machine '1x1 v100 hostmem=64GiB' --strategy 'mb=1,2,4 recompute=none offload=*' | grep certificate
certificate  48 plans: 16 fit, 0 too large, 8 too slow, 24 impossible, 0 equal to another;
$ for m in albert norm; do for s in 'mb=2' 'mb=2 offload=params+grads+acts'; do heddle run tests/$m.heddle --train --steps 3 --strategy "dp=2 $s" | awk '/^ +[0-9]+ /{print $2}' >"${s%%+*}"; done; cmp 'mb=2' 'mb=2 offload=params' && wc -l <mb=2; done
3
3
## In a plan file.
$ heddle plan mlp-xs --batch 64 --train --optimizer adam --machine 'dgx-1' --devices 2 --strategy 'dp=2 zero=1 mb=1 recompute=none offload=states prefetch=3' -o a.plan >out; grep -E '^(offload|prefetch|name)' a.plan; heddle verify mlp-xs --batch 64 --plan a.plan | head -3 | tail -1; sed 's/^prefetch: 3/prefetch: 17/' a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan; sed 's/^offload: states/offload: gradients/' a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan; sed '/^offload/d' a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan
name: "dp=2 tp=1 pp=1 zero=1 offload=states prefetch=3"
offload: states
prefetch: 3
results    33
error[E0501]: expected a number from 0 to 16, found `17`
  --> b.plan:16:11
  16 | prefetch: 17
     |           ^
error[E0501]: `offload` is any of params+grads+states+acts
  --> b.plan:15:10
  15 | offload: gradients
     |          ^
error[E0501]: `prefetch` is of what is in host memory: without `offload` there is none
  --> b.plan:15:11
  15 | prefetch: 3
     |           ^
[1]
## Of what there is none, nothing can be in host memory.
$ heddle plan mlp-xs --batch 64 --train --optimizer adam --machine 'dgx-1' --devices 2 --strategy 'dp=2 zero=1 mb=1 recompute=none offload=states update=host' -o a.plan >out; sed 's/^train: .*/train: {optimizer: sgd}/' a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan; heddle plan mlp-xs --batch 64 --machine 'dgx-1' --devices 2 --strategy 'tp=2 offload=params' -o a.plan >out; sed 's/^offload.*/offload: params+grads/' a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan
error[E0501]: `offload` of states: the optimizer, sgd, has none
  --> b.plan:15:10
  15 | offload: states
     |          ^
  hint: leave out states
error[E0501]: `offload` of grads: this is inference
  --> b.plan:12:10
  12 | offload: params+grads
     |          ^
  hint: leave out grads
[1]
## What rank 0 runs.
$ heddle lower mlp-xs:layers=3,hidden=8 --batch 4 --rank 0 --strategy 'offload=params'
# rank 0 of 1: @m[pp=0,dp=0,tp=0]
# 8 instructions in 2 functions; one run executes 6 of computation, 3 of communication, 0 of structure
mesh @m [pp=1, dp=1, tp=1]
stream h2d, d2h

func @layer(%x: f32[4,8], %w: f32[8,8] weight) -> (f32[4,8]) {
  %3 = matmul %x, %w ^1 : f32[4,8]
  %4 = relu %3 ^2 : f32[4,8]
  return %4
}

func @main on @m[pp=0,dp=0,tp=0](
  %x: f32[4,8],
  %h.0.w: f32[8,8] weight host,
  %h.1.w: f32[8,8] weight host,
  %h.2.w: f32[8,8] weight host
) -> (f32[4,8]) {
  %5 = copy %h.0.w {to="device"} !h2d plan : f32[8,8]
  %6 = copy %h.1.w {to="device"} !h2d plan : f32[8,8]
  %7 = call @layer(%x, %5) ^3 : f32[4,8]
  %8 = copy %h.2.w after %7 {to="device"} !h2d plan : f32[8,8]
  %9 = call @layer(%7, %6) ^4 : f32[4,8]
  %10 = call @layer(%9, %8) ^5 : f32[4,8]
  return %10
}
## A search has it where it is asked.
$ heddle plan gpt3-1.3b --batch 1 --seq 8192 --dtype f16 --train --optimizer adam --machine '1x1 v100-32gb hostmem=192GiB' --strategy 'mb=1 recompute=none,full coshard=1,16 offload=none,states,acts,states+acts' | sed -n '/time  /,/certificate/p'
warning[W0105]: gpt3-1.3b has 2048 positions; for a sequence of 8192 its table has as many
  --> gpt3-1.3b
  hint: gpt3-1.3b:positions=8192 says that it is meant; --seq 2048 is the longest that the model has
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
    recompute  coshard  offload         time         samples    memory  limited by
 1  full             1  none         2.559 s  1.00x  0.391/s  25.9 GiB  computation 100 %
 2  full             1  acts         2.559 s  1.00x  0.391/s  25.9 GiB  computation 100 %
 3  none            16  acts         3.209 s  1.25x  0.312/s  20.7 GiB  computation 100 %
 4  none            16  none         3.209 s  1.25x  0.312/s  23.4 GiB  computation 100 %
 5  full             1  states       3.719 s  1.45x  0.269/s  12.4 GiB  waiting 32 %
 6  full             1  states+acts  3.808 s  1.49x  0.263/s  12.4 GiB  waiting 33 %
 7  full            16  acts         4.125 s  1.61x  0.242/s  20.4 GiB  computation 100 %
 8  full            16  none         4.125 s  1.61x  0.242/s  21.2 GiB  computation 100 %
 9  none            16  states       4.368 s  1.71x  0.229/s  9.94 GiB  waiting 27 %
10  none            16  states+acts  4.403 s  1.72x  0.227/s  7.66 GiB  waiting 28 %

value       plans  best known                                 time  behind
coshard=1       8  dp=1 tp=1 pp=1 recompute=full           2.559 s  1.00x
coshard=16      8  dp=1 tp=1 pp=1 coshard=16 offload=acts  3.209 s  1.25x

winner       dp=1 tp=1 pp=1 recompute=full
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %; MFU 32.6 %; needs 25.9 GiB of 28.8 GiB
next         dp=1 tp=1 pp=1 recompute=full offload=acts
             1.00x the time, limited by computation
certificate  16 plans: 14 fit, 2 too large, 0 too slow, 0 impossible, 0 equal to another;
$ heddle plan mlp-xs --batch 64 --train --machine dgx-1 --devices 2 --strategy 'dp=2 mb=1 recompute=none zero=0,3 offload=*' | sed -n '/certificate/,$p'
certificate  32 plans: 16 fit, 0 too large, 0 too slow, 16 impossible, 0 equal to another;
             16 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
impossible   16 such as dp=2 tp=1 pp=1 offload=states:
             offload=states: the optimizer, sgd, has none
## M6-MoE-10T on 512 V100 (sizes: the built-in model's; adafactor): 20 TB of weights in f16 are more than the devices have together.
$ heddle sim m6-moe-10t --batch 512 --dtype f16 --train --optimizer adafactor --annotate examples/annotations/experts.yaml --machine '64x8 v100-32gb eth=50Gb/s hostmem=1.5TiB' --strategy 'recompute=full offload=params+grads+states' | grep -E 'plan |time per|samples|peak mem|host mem|h2d|d2h'
plan            default: replicate(512), *experts: split inside; recompute=full offload=params+grads+states
time per step   26.03 s
samples         19.67/s
peak memory     11.2 GiB of 28.8 GiB on rank 0
host memory     1.18 TiB of 1.35 TiB on node 0; the busier way of its link is in use 75.2 %
place  ranks  computes  communicates    idle  peak memory
0-511  h2d      19.57 s  75.2 %
0-511  d2h      12.93 s  49.7 %
$ heddle plan m6-moe-10t --batch 512 --dtype f16 --train --optimizer adafactor --machine '64x8 v100-32gb eth=50Gb/s hostmem=1.5TiB' --strategy 'pp=1,2 tp=8,16 zero=3 recompute=full mb=1 offload=none,params+grads+states' | sed -n '/time  /,/certificate/p'
   dp  tp  pp  ZeRO  recompute  offload                 time         samples    memory  limited by
1  16  16   2     3  full       params+grads+states   6585 s  1.00x  0.078/s  21.3 GiB  bubble 50 %
2  32  16   1     3  full       params+grads+states   6799 s  1.03x  0.075/s  16.2 GiB  communication 100 %
3  64   8   1     3  full       params+grads+states  13794 s  2.09x  0.037/s  27.8 GiB  communication 100 %
4  32   8   2     3  full       params+grads+states  13576 s  2.06x  0.038/s  30.7 GiB  memory

winner       dp=16 tp=16 pp=2 zero=3 recompute=full offload=params+grads+states
             computes 0.1 % of the time, communicates 49.8 %, idles 50.1 %; MFU 0.0 %; needs 21.3 GiB of 28.8 GiB
layers       24/24
next         dp=32 tp=16 pp=1 zero=3 recompute=full offload=params+grads+states
             1.03x the time, limited by communication
certificate  8 plans: 3 fit, 5 too large, 0 too slow, 0 impossible, 0 equal to another;
## What cannot be.
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine '1x2 v100' --strategy 'dp=2 offload=states'
error[E0509]: offload: the machine 1x2 v100 does not say how much host memory its nodes have (node 0, 2 x v100)
  --> --strategy:1:6
   1 | dp=2 offload=states
     |      ^
  hint: add `host: {bandwidth: 16 GB/s, memory: 512 GiB}` to its nodes, or `pcie=16GB/s hostmem=512GiB` to --machine
[2]
$ heddle sim mlp-xs --batch 64 --machine dgx-1 --strategy 'dp=8 offload=states'
error[E0509]: offload=states: this is inference
  --> --strategy:1:6
   1 | dp=8 offload=states
     |      ^
  hint: leave out states, or use --train
[2]
$ heddle sim mlp-xs --batch 64 --train --machine dgx-1 --strategy 'dp=8 offload=params+states'
error[E0509]: offload=states: the optimizer, sgd, has none
  --> --strategy:1:6
   1 | dp=8 offload=params+states
     |      ^
  hint: leave out states, or use --optimizer adam
[2]
$ heddle sim mlp-xs --batch 64 --train --machine dgx-1 --strategy 'dp=8 prefetch=2'
error[E0509]: prefetch=2 needs offload; got offload=none
  --> --strategy:1:6
   1 | dp=8 prefetch=2
     |      ^
  hint: set offload=params, or leave out prefetch
[2]
$ heddle sim mlp-xs --batch 64 --train --machine dgx-1 --strategy 'dp=8 offload=weights'
error[E0509]: offload: unknown value 'weights'
  --> --strategy:1:14
   1 | dp=8 offload=weights
     |              ^
  hint: offload takes params, grads, states, acts, with + between them, or none
[2]
$ heddle sim gpt3-13b --batch 8 --dtype f16 --train --optimizer adam --machine 'dgx-1 hostmem=100GiB' --strategy 'dp=8 zero=1 offload=states' 2>&1 >/dev/null | head -4
error[E0505]: node 0 needs 144 GiB of host memory for 8 ranks; it has 90.0 GiB
  --> gpt3-13b
  hint: offload less, or more of the storage sharded: zero=3 with dp > 1
$ heddle machines 'dgx-1 hostmem=0'
error[E0602]: hostmem: '0' has no unit; an amount of bytes is needed
  --> --machine:1:15
   1 | dgx-1 hostmem=0
     |               ^
  hint: write 1 GiB or GB
[1]
## A search says which memory it was.
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'offload=states+params tp=2'
error[E0506]: no plan can run: of 18, 18 too large for 921 MiB of host memory
  note: the smallest needs at least 1.39 GiB of host memory on a node
  hint: use nodes with more host memory: --machine '... hostmem=2GiB', or offload less (offload=none) if devices have room for it
[1]
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'tp=2 mb=1 recompute=none offload=states'
error[E0506]: the plan cannot run: it needs more than 921 MiB of host memory on a node
  note: it needs at least 950 MiB of host memory on a node
  hint: use nodes with more host memory: --machine '... hostmem=2GiB', or offload less (offload=none) if devices have room for it
[1]
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'offload=none,states+params tp=2 mb=1' --top 1 --why 'offload=states' | grep -E '^certificate|host memory'
certificate  6 plans: 1 fit, 1 too large, 4 too slow, 0 impossible, 0 equal to another;
             1 of the too large ones fit the devices, but not the 921 MiB of host memory of a node
too large  950 MiB of the 921 MiB of host memory of a node: 28.8 MiB more than there is
## What a machine does not say, in a search.
$ heddle plan mlp-xs:layers=2,hidden=8 --batch 4 --train --machine '1x2 v100' --strategy 'dp=2 pp=1 tp=1 mb=1 recompute=none zero=0 offload=params'
error[E0506]: the plan is impossible
  note: offload: the machine 1x2 v100 does not say how much host memory its nodes have (node 0, 2 x v100)
  hint: add `host: {bandwidth: 16 GB/s, memory: 512 GiB}` to its nodes, or `pcie=16GB/s hostmem=512GiB` to --machine
[1]
$ heddle plan mlp-xs:layers=2,hidden=8 --batch 4 --train --machine '1x2 v100' --strategy 'dp=2 pp=1 tp=1 mb=1 offload=none' --why offload=params | grep '^impossible'
impossible  offload: the machine 1x2 v100 does not say how much host memory its nodes have (node 0, 2 x v100)
## Activations in host memory are no gradients, though one copy brings both.
$ for o in grads grads+acts; do heddle sim gpt2 --batch 16 --train --machine '1x4 v100 pcie=12GB/s hostmem=64GiB' --strategy "pp=4 mb=8 offload=$o" | grep '^ranks\|^0  '; done
ranks           4
ranks  stream       busy   share
0      compute  427.1 ms  61.5 %
0      h2d      209.8 ms  30.2 %
0      d2h      209.8 ms  30.2 %
0      pp.f0    538.0 us   0.1 %
0      pp.b0    538.0 us   0.1 %
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0         258 MiB   54.1 MiB        0 B     2.93 GiB    204 MiB            0 B  3.43 GiB
ranks           4
ranks  stream       busy   share
0      compute  427.1 ms  23.9 %
0      h2d      881.0 ms  49.3 %
0      d2h      881.3 ms  49.4 %
0      pp.f0    538.0 us   0.0 %
0      pp.b0    538.0 us   0.0 %
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0         258 MiB   54.1 MiB        0 B      128 KiB    384 MiB        384 MiB  1.06 GiB
## Which nodes lack host memory; `heddle machines` shows it.
$ heddle sim gpt2 --batch 16 --train --machine '1x2 v100 + 1x2 t4 eth=25Gb/s pcie=12GB/s hostmem=64GiB' --strategy 'pp=4 mb=8 offload=acts'
error[E0509]: offload: the machine 1x2 v100 + 1x2 t4 eth=25Gb/s pcie=12GB/s hostmem=64GiB does not say how much host memory its nodes have (node 0, 2 x v100)
  --> --strategy:1:11
   1 | pp=4 mb=8 offload=acts
     |           ^
  hint: add `host: {bandwidth: 16 GB/s, memory: 512 GiB}` to its nodes, or `pcie=16GB/s hostmem=512GiB` to --machine
[2]
$ heddle machines '1x2 v100 + 1x2 t4 eth=25Gb/s pcie=12GB/s hostmem=64GiB' | sed -n '/^nodes/,/^$/p'
nodes  devices  link              each way       host  host memory  bandwidth  NICs       each
    1        2  switch            150 GB/s  15.8 GB/s                             1  3.12 GB/s
    1        2  through the host            12.0 GB/s     64.0 GiB                1  3.12 GB/s

## Too large for devices whose nodes have host memory: the hint names it, unless it is used.
$ heddle plan gpt2:layers=2 --batch 8 --train --optimizer adam --machine '1x1 v100 hostmem=64GiB' --memory-limit 300MiB
error[E0506]: no plan can run: of 12, 12 too large for 300 MiB of memory
  note: the smallest needs at least 1023 MiB on a rank
  hint: use more devices, zero=3, recompute=full, attention=fused or a smaller batch; the machine has host memory: offload=*
  hint: the model is in f32; --dtype f16 or bf16 halves activations
[1]
$ heddle plan gpt2:layers=2 --batch 8 --train --optimizer adam --machine '1x1 v100 hostmem=64GiB' --memory-limit 900MiB --strategy 'offload=*' | sed -n '/^ *mb/,/^ 1/p'
    mb  recompute  offload                  time         samples   memory  limited by
 1   8  selective  grads+states         457.2 ms  1.00x  17.50/s  862 MiB  waiting 37 %
$ heddle plan gpt2:layers=2 --batch 8 --train --optimizer adam --machine '1x1 v100 hostmem=64GiB hostbw=100GB/s' --memory-limit 300MiB 2>&1 | grep devices
  hint: use more devices, zero=3, recompute=full, attention=fused or a smaller batch; the machine has host memory: offload=* update=*
$ heddle plan gpt2:layers=2 --batch 8 --machine '1x1 v100 hostmem=64GiB' --memory-limit 100MiB 2>&1 | grep hint
  hint: use more devices, more microbatches (mb), attention=fused or a smaller batch; the machine has host memory: offload=params
  hint: the model is in f32; --dtype f16 or bf16 halves its memory
$ heddle plan gpt2:layers=2 --batch 8 --train --optimizer adam --machine '1x1 v100' --memory-limit 300MiB 2>&1 | grep devices
  hint: use more devices, zero=3, recompute=full, attention=fused or a smaller batch
$ heddle plan gpt2:layers=2 --batch 8 --train --optimizer adam --machine '1x1 v100 hostmem=64GiB' --memory-limit 100MiB --strategy 'offload=states,acts' 2>&1 | grep devices
  hint: use more devices, zero=3, recompute=full, attention=fused or a smaller batch
$ heddle plan mlp-xs --batch 1024 --train --optimizer adam --machine '1x2 v100 hostmem=1MiB host=16GB/s' --auto --memory-limit 8GiB --strategy offload=states
error[E0506]: no plan can run: of 285, 66 impossible, 124 too large for 922 KiB of host memory, 95 equal to another
  note: 66 impossible, such as dp=1 tp=2 pp=1 offload=states sp: no input has a sequence dimension that every layer keeps; sp cannot split it 2 ways
  note: the smallest needs at least 16.0 MiB of host memory on a node
  hint: use nodes with more host memory: --machine '... hostmem=1GiB', or offload less (offload=none) if devices have room for it
[1]
