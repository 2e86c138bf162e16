## long: .ci/run has it without sanitizers
## Weights that the host updates: 2 bytes of each parameter go down and come up, and the host has 14; with updates on the device 12 go each way (offload.t).
$ heddle sim gpt3-1.3b --batch 4 --seq 1024 --dtype f16 --train --optimizer adam --machine 'dgx-2' --devices 1 --strategy 'recompute=full offload=states update=host' | grep -E 'plan |time per|peak mem|host mem|^0 |^host |what would|adam'
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
plan            dp=1 tp=1 pp=1 recompute=full offload=states update=host
time per step   2.135 s
peak memory     4.38 GiB of 28.8 GiB on rank 0
host memory     17.2 GiB of 1.35 TiB on node 0; the busier way of its link is in use 39.1 %
place  ranks  computes  communicates    idle  peak memory
0      compute  612.4 ms  28.7 %
0      h2d      835.6 ms  39.1 %
0      d2h      835.7 ms  39.1 %
0      host     335.6 ms  15.7 %
0        2.45 GiB        0 B        0 B     1.16 GiB    785 MiB            0 B  4.38 GiB
what would help         on the path  10 % better
$ heddle sim gpt3-1.3b --batch 16 --seq 1024 --dtype f16 --train --optimizer adam --machine 'dgx-2' --devices 16 --strategy 'dp=16 zero=2 recompute=full offload=grads+states update=host' | grep -E 'plan |time per|peak mem|host mem|^0-15 '
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
plan            dp=16 tp=1 pp=1 zero=2 recompute=full offload=grads+states update=host
time per step   403.1 ms
peak memory     2.93 GiB of 28.8 GiB on rank 0
host memory     17.2 GiB of 1.35 TiB on node 0; the busier way of its link is in use 13.0 %
place  ranks  computes  communicates    idle  peak memory
0-15   compute  238.9 ms  59.3 %
0-15   h2d      52.47 ms  13.0 %
0-15   d2h      52.49 ms  13.0 %
0-15   host     335.6 ms  83.3 %
0-15     2.45 GiB        0 B        0 B      296 MiB    196 MiB            0 B  2.93 GiB
## It computes what the device does.
$ for m in 'gpt2:layers=3,hidden=64,heads=4,vocab=64' 't5-small:layers=2,hidden=64,heads=4,vocab=64' 'moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64'; do for s in offload=states 'offload=grads+states mb=2' 'dp=2 zero=1 offload=states' 'dp=2 zero=2 mb=2 offload=grads+states' 'dp=2 zero=3 offload=params+grads+states' 'pp=2 mb=4 offload=states schedule=zb-h1' 'tp=2 offload=params+states'; do for o in 'adam' 'adamw --dtype f16' 'momentum' 'adafactor --dtype bf16'; do heddle verify $m --batch 8 --seq 16 --train --optimizer $o --strategy "$s update=host" >out 2>&1 || { echo "$m $s $o"; cat out; }; done; done; done
## What rank 0 runs: sums of gradients and gathers of weights stay on the device.
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --rank 0 --dtype f16 --train --optimizer momentum --strategy 'dp=2 zero=1 offload=states update=host' | sed -n '/^func @main/,$p' | grep -E ' update'
  %18 = reduce_scatter %16 {peers=[0, 1]} over dp update plan : f16[4,8]
  %19 = reduce_scatter %17 {peers=[0, 1]} over dp update plan : f16[4,8]
  %20 = shard !%h.0.w {peers=[0, 1]} over dp update plan : f16[4,8]
  %21 = shard !%h.1.w {peers=[0, 1]} over dp update plan : f16[4,8]
  %22, %23 = copy %18, %19 {to="host"} !d2h update plan : f16[4,8], f16[4,8]
  %h.0.w.master.new, %h.0.w.m.new = momentum !%h.0.w.master, %22, !%h.0.w.m {momentum=0.9, lr=0.01, weight_decay=0} !host update host : f32[4,8], f32[4,8]
  %26 = cast %h.0.w.master.new {dtype=f16} !host update host : f16[4,8]
  %h.1.w.master.new, %h.1.w.m.new = momentum !%h.1.w.master, %23, !%h.1.w.m {momentum=0.9, lr=0.01, weight_decay=0} !host update host : f32[4,8], f32[4,8]
  %29 = cast %h.1.w.master.new {dtype=f16} !host update host : f16[4,8]
  %30, %31 = copy %26, %29 after %21, %22 {to="device"} !h2d update plan : f16[4,8], f16[4,8]
  %32 = assign !%20, %30 after %22 update : f16[4,8]
  %h.0.w.new = all_gather %32 {peers=[0, 1]} over dp update plan : f16[8,8]
  %34 = assign !%21, %31 update : f16[4,8]
  %h.1.w.new = all_gather %34 {peers=[0, 1]} over dp update plan : f16[8,8]
## In a plan file.
$ heddle plan mlp-xs --batch 64 --train --optimizer adam --machine 'dgx-1' --devices 2 --strategy 'dp=2 zero=1 mb=1 recompute=none offload=states update=host' -o a.plan >out; grep -E '^(offload|prefetch|update|name)' a.plan; heddle verify mlp-xs --batch 64 --plan a.plan | grep results; for e in 's/update: host/update: cpu/' 's/offload: states/offload: acts/'; do sed "$e" a.plan >b.plan; heddle verify mlp-xs --batch 64 --plan b.plan; done
name: "dp=2 tp=1 pp=1 zero=1 offload=states update=host"
offload: states
prefetch: 1
update: host
results    33
error[E0501]: `update` is device or host
  --> b.plan:17:9
  17 | update: cpu
     |         ^
error[E0501]: the host updates weights whose states lie there: `update: host` goes with `offload: states`
  --> b.plan:17:9
  17 | update: host
     |         ^
[1]
## A search has both where it is asked. Eight devices of a node share the host's memory; one has it alone.
$ for n in '1 dp=1' '8 dp=8 zero=2'; do set -- $n; heddle plan gpt3-1.3b --batch 8 --seq 1024 --dtype f16 --train --optimizer adam --machine dgx-1 --devices $1 --strategy "$2 $3 tp=1 pp=1 mb=1 recompute=full offload=grads+states update=*" | sed -n '/time  /,/^$/p'; done
warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
   recompute  offload       update     time         samples    memory  limited by
1  full       grads+states  host    1.752 s  1.00x  4.567/s  6.30 GiB  waiting 31 %
2  full       grads+states  device  4.126 s  2.36x  1.939/s  6.30 GiB  waiting 70 %

warning[W0508]: wte of gpt3-1.3b has an extent of 50257 in f16: its matmuls are slower on v100-32gb than simulated, as 50257 is not a multiple of 8
  --> gpt3-1.3b
  hint: --vocab 50264
   dp  ZeRO  recompute  offload       update      time         samples    memory  limited by
1   8     2  full       grads+states  device  563.0 ms  1.00x  14.21/s  2.93 GiB  waiting 57 %
2   8     2  full       grads+states  host    698.2 ms  1.24x  11.46/s  2.93 GiB  waiting 66 %

$ heddle plan mlp-xs --batch 64 --train --optimizer adam --machine dgx-1 --devices 2 --strategy 'dp=2 mb=1 recompute=none zero=1 offload=none,acts,states update=*' | sed -n '/certificate/,$p'
certificate  5 plans: 4 fit, 0 too large, 0 too slow, 1 impossible, 0 equal to another;
             4 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
impossible   1 such as dp=2 tp=1 pp=1 zero=1 offload=acts update=host:
             update=host: the host updates weights whose optimizer states lie there
## As JSON.
$ heddle plan mlp-xs --batch 64 --train --optimizer adam --machine dgx-1 --devices 1 --strategy 'mb=1 recompute=none offload=states update=host' --json | grep -oE '"(update|offload)": [^,]*' | sort -u
"offload": "states"
"update": "host"
## In PyTorch, too.
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --dtype f16 --optimizer adam --strategy 'offload=states update=host' | sed -n '/^def step_0/,/^    return/p' | grep -E 'to_host|to_device|adam'
    product_4 = to_host(product_2)
    product_5 = to_host(product_3)
    w["h.0.w.master"], w["h.0.w.m"], w["h.0.w.v"] = adam(
    w["h.1.w.master"], w["h.1.w.m"], w["h.1.w.v"] = adam(
    h_0_w_master_2 = to_device(h_0_w_master)
    h_1_w_master_2 = to_device(h_1_w_master)
## What cannot be.
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine '1x2 v100 pcie=16GB/s hostmem=64GiB' --strategy 'dp=2 offload=states update=host'
error[E0509]: update=host: the machine 1x2 v100 pcie=16GB/s hostmem=64GiB does not say the bandwidth of host memory (node 0)
  --> --strategy:1:21
   1 | dp=2 offload=states update=host
     |                     ^
  hint: add `host: {memory-bandwidth: 200 GB/s}` to its nodes, or `hostbw=200GB/s` to --machine
[2]
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine dgx-1 --strategy 'dp=8 offload=grads update=host'
error[E0509]: update=host: the host updates weights whose optimizer states lie there
  --> --strategy:1:20
   1 | dp=8 offload=grads update=host
     |                    ^
  hint: add states to offload, or leave out update
[2]
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine dgx-1 --strategy 'dp=8 update=host'
error[E0509]: update=host needs offload; got offload=none
  --> --strategy:1:6
   1 | dp=8 update=host
     |      ^
  hint: set offload=states, or leave out update
[2]
$ heddle sim mlp-xs --batch 64 --machine dgx-1 --strategy 'dp=8 offload=params update=host'
error[E0509]: update=host applies to training only; this is inference
  --> --strategy:1:21
   1 | dp=8 offload=params update=host
     |                     ^
  hint: add --train, or leave out update
[2]
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine dgx-1 --strategy 'dp=8 offload=states update=cpu'
error[E0509]: update: unknown value 'cpu'
  --> --strategy:1:28
   1 | dp=8 offload=states update=cpu
     |                            ^
  hint: update takes device or host
[2]
$ heddle machines '1x2 v100 hostbw=64GiB'
error[E0602]: hostbw: '64GiB' is an amount of bytes; a bandwidth is needed
  --> --machine:1:17
   1 | 1x2 v100 hostbw=64GiB
     |                 ^
  hint: write 64 GB/s (bytes) or Gb/s (bits)
[1]
## The host is full, the device is not: each says its own.
$ heddle sim gpt3-1.3b --batch 1 --seq 256 --dtype f16 --train --optimizer adam --machine '1x1 v100 hostmem=16GiB hostbw=100GB/s' --strategy 'offload=states update=host' 2>&1 | grep 'memory  \|^error'
error bar       unknown: no measured spread for 100.0 % of the step
peak memory     3.22 GiB of 28.8 GiB on rank 0
host memory     17.2 GiB, does not fit in 14.4 GiB on node 0; the busier way of its link is in use 45.2 %
error[E0505]: node 0 needs 17.2 GiB of host memory for 1 rank; it has 14.4 GiB
$ heddle sim gpt3-1.3b --batch 1 --seq 256 --dtype f16 --train --optimizer adam --machine '1x1 v100 hostmem=16GiB hostbw=100GB/s' --strategy 'offload=states update=host' --json 2>/dev/null | grep '"fits"'
  "fits": false,
