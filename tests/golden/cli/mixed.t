## long: .ci/run has it without sanitizers
$ heddle plan bert-large --machine "1x4 v100 + 1x4 a100 ib=100Gb/s" --batch 256 --train --top 3 --threads 1
model         bert-large
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x4 v100 + 1x4 a100 ib=100Gb/s
ranks         8
batch         256
memory limit  per device, 28.8 GiB to 72.0 GiB
step          training

   dp  mb  ZeRO  recompute  dp.shares     time         samples    memory  limited by
1   8   1     0  selective  7x4/9x4    2.940 s  1.00x  87.09/s  31.1 GiB  computation 95 %
2   8   2     0  none       7x4/9x4    2.960 s  1.01x  86.49/s  25.0 GiB  computation 95 %
3   8   1     2  selective  7x4/9x4    3.003 s  1.02x  85.26/s  31.3 GiB  computation 93 %

winner         dp=8 tp=1 pp=1 recompute=selective dp.shares=auto
auto resolved  dp=8 tp=1 pp=1 recompute=selective dp.shares=7x4/9x4
               computes 94.8 % of the time, communicates 4.3 %, idles 0.9 %; MFU 68.5 %; needs 31.1 GiB on the fullest device
next           dp=8 tp=1 pp=1 mb=2 dp.shares=auto
               1.01x the time, limited by computation
certificate    2511 plans: 3 fit, 40 too large, 1460 too slow, 0 impossible, 1008 equal to another;
               3 simulated, 40 ruled out by bounds on memory, 1460 on time
               on ranks: all, 0 to 3, 4 to 7
               no plan can be faster than 2.390 s, its matmuls on all devices at their best rates: the winner takes 23.0 % more
               other values of some choices are not in it; --strategy 'v=* schedule=* attention=*' or 'sp=* overlap=*' has them, --what-if tries each

device  ranks  each gets   share of work  computes  communicates   idle  peak memory    usable  gain of one more, at most
v100        4  28 samples         43.8 %    95.7 %         4.3 %  0.0 %     24.5 GiB  28.8 GiB                     10.9 %
a100        4  36 samples         56.2 %    93.9 %         4.3 %  1.8 %     31.1 GiB  72.0 GiB                     14.1 %

equal shares   1.13x the time at best on all 8 devices: dp=8 tp=1 pp=1 recompute=selective
without waits  2.785 s, if no device ever waited for another one: the winner takes 5.6 % more
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle sim bert-large --machine "1x4 v100 + 1x4 a100 ib=100Gb/s" --batch 256 --train --strategy "dp=8 mb=2 dp.shares=auto" | head -23
model           bert-large
plan            dp=8 tp=1 pp=1 mb=2 dp.shares=7x4/9x4
weights         f32
dropout         none; with it more activations are kept (docs/commands.md)
machine         1x4 v100 + 1x4 a100 ib=100Gb/s
ranks           8
time per step   2.960 s
one step alone  2.960 s
error bar       at least +-472.7 ms; no measured spread for 95.8 % of the step
samples         86.49/s
arithmetic      12.0 TFLOP/s a device, 68.0 % of the f32 peak (MFU)
computes        94.8 %
communicates    4.2 %
idle            0.9 %
peak memory     25.0 GiB of 72.0 GiB on rank 4
instructions    30,152

place  ranks  computes  communicates   idle  peak memory
    0  0-7      94.8 %         4.2 %  0.9 %     25.0 GiB

device  ranks  each gets   share of work  computes  communicates   idle  peak memory    usable
v100        4  28 samples         43.8 %    95.8 %         4.2 %  0.0 %     20.0 GiB  28.8 GiB
a100        4  36 samples         56.2 %    93.9 %         4.2 %  1.9 %     25.0 GiB  72.0 GiB
$ heddle sim gpt2-xl --machine "1x4 v100 + 1x4 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=8 mb=8 layers=auto" | sed -n 2p
plan            dp=1 tp=1 pp=8 mb=8 layers=7/7/5/6/6/7/7/3 places=5/6/1/2/3/7/8/4
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=8 layers=whale" | sed -n 2p
plan            dp=1 tp=1 pp=4 mb=8 layers=5/4/2/1 places=3/4/1/2
$ heddle verify gpt2:layers=4 --memory 50MB --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 8 --train --strategy "dp=2 pp=2 mb=4 layers=whale" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=1 pp=2 mb=4 layers=3/1 places=2/1
worst      9.13123e-13
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=8 layers=whale schedule=zb-v"
error[E0509]: schedule=zb-v does not go with layers=whale: Whale's policy has one stage on each place, in one direction
  --> --strategy:1:24
   1 | pp=4 mb=8 layers=whale schedule=zb-v
     |                        ^
  hint: schedule=1f1b, or layers=auto
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=8 layers=whale schedule=chimera"
error[E0509]: schedule=chimera does not go with layers=whale: Whale's policy has one stage on each place, in one direction
  --> --strategy:1:24
   1 | pp=4 mb=8 layers=whale schedule=chimera
     |                        ^
  hint: schedule=1f1b, or layers=auto
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=8 layers=whale v=2"
error[E0509]: v=2 does not go with layers=whale: Whale's policy has one stage on each place
  --> --strategy:1:24
   1 | pp=4 mb=8 layers=whale v=2
     |                        ^
  hint: v=1, or layers=auto
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=8 places=3/4/1/2 layers=whale"
error[E0509]: places=3/4/1/2 does not go with layers=whale: Whale's policy orders the places itself, by memory
  --> --strategy:1:11
   1 | pp=4 mb=8 places=3/4/1/2 layers=whale
     |           ^
  hint: leave it out, or layers=auto
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "dp=1 tp=2 pp=2 mb=8 tp.stages=2/1 layers=whale"
error[E0509]: tp.stages=2/1 does not go with layers=whale: Whale's policy orders the places itself, by memory
  --> --strategy:1:21
   1 | dp=1 tp=2 pp=2 mb=8 tp.stages=2/1 layers=whale
     |                     ^
  hint: tp.stages=equal, or layers=auto
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "replicas=2x1+2x1 mb=8 layers=whale"
error[E0509]: layers=whale does not go with replicas: it orders the places of one pipeline, and each replica has ranks of its own
  --> --strategy:1:23
   1 | replicas=2x1+2x1 mb=8 layers=whale
     |                       ^
  hint: layers=equal, or leave it out: by time
[2]
$ heddle sim gpt2 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=1 layers=whale"
error[E0509]: layers=whale needs pp > 1; got pp=1
  --> --strategy:1:6
   1 | pp=1 layers=whale
     |      ^
  hint: add pp=2, or leave out layers
[2]
$ heddle sim mlp-xs:layers=3 --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "pp=4 mb=2 layers=whale"
error[E0502]: layers=whale: 4 stages, but the model has 3 repeated layers
  --> --strategy:1:11
   1 | pp=4 mb=2 layers=whale
     |           ^
  hint: layers=cost distributes single matmuls too, or use fewer stages
[1]
$ heddle verify mlp-xs --batch 32 --train --strategy "pp=4 mb=2 layers=whale"
error[E0509]: layers=whale needs a machine
  --> --strategy:1:11
   1 | pp=4 mb=2 layers=whale
     |           ^
  hint: add --machine, or say the parts: layers=equal
[2]
$ heddle verify bert-large:layers=2 --memory 50MB --batch 16 --train --strategy "dp=2 mb=2 dp.shares=5/3" | head -10
model      bert-large:layers=2
plan       dp=2 tp=1 pp=1 mb=2 dp.shares=5/3
shrunk     512 -> 8 (tokens[1]), 1024 -> 48 (word[1]), 4096 -> 128 (h.0.mlp.up[1]),
           30522 -> 206 (word[0])
results    69
elements   924,157
worst      1.10448e-12
tolerance  1e-09
verdict    equal: the plan computes what the model computes, at the extents given above

$ heddle verify gpt2-xl:layers=2 --batch 4 --train --strategy "tp=2 tp.shares=3/2" | head -8
model      gpt2-xl:layers=2
plan       dp=1 tp=2 pp=1 tp.shares=3/2
shrunk     1024 -> 8 (tokens[1]), 1600 -> 10 (wte[1])
results    57
elements   1,838,701
worst      3.45133e-11
tolerance  1e-09
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=2 mb=2 dp.shares=auto"
error[E0509]: dp.shares=auto needs a machine
  --> --strategy:1:11
   1 | dp=2 mb=2 dp.shares=auto
     |           ^
  hint: add --machine, or say the parts: dp.shares=3/1
[2]
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=2 mb=2 dp.shares=2/1"
error[E0502]: batch 16 / mb 2 = 8 is not divisible by 3, the sum of dp.shares
  --> bert-large
  hint: use shares whose sum divides 8, dp.shares=auto, or a batch that is a multiple of 6
[1]
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=2 mb=2 dp.shares=2/1/1"
error[E0502]: dp.shares has 3 numbers, but dp=2
  --> --strategy:1:11
   1 | dp=2 mb=2 dp.shares=2/1/1
     |           ^
  hint: one number for each of the ranks, or dp=3
[1]
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=1 dp.shares=2/1"
error[E0509]: dp.shares=2/1 needs dp > 1 or replicas; got dp=1
  --> --strategy:1:6
   1 | dp=1 dp.shares=2/1
     |      ^
  hint: add dp=2, or leave out dp.shares
[2]
$ heddle verify gpt2:layers=2 --batch 4 --train --strategy "tp=2 tp.shares=4/3"
error[E0502]: attn.qkv of 768 x 2304 cannot be split 7 ways: 2304 = 3 x 12 x 64, and 12 is not divisible by 7
  --> gpt2: layer/attention
  hint: use tp.shares whose sum divides 12
[1]
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=2 dp.shares=3x/2"
error[E0509]: dp.shares: unknown value '3x/2'
  --> --strategy:1:16
   1 | dp=2 dp.shares=3x/2
     |                ^
  hint: dp.shares takes equal, auto, whale, or integers from 1 such as 3/1
[2]
$ heddle sim bert-large --batch 256 --train --strategy "dp=8 mb=2 dp.shares=auto" --machine "1x4 v100 usable=20GB ib=100Gb/s + 1x4 a100 ib=100Gb/s" | sed -n 2p
plan            dp=8 tp=1 pp=1 mb=2 dp.shares=3x4/5x4
$ heddle sim bert-large --batch 256 --train --strategy "dp=8 mb=2 dp.shares=auto" --machine "1x4 v100 usable=16GB ib=100Gb/s + 1x4 a100 ib=100Gb/s" | sed -n 2p
plan            dp=8 tp=1 pp=1 mb=2 dp.shares=9x4/23x4
$ heddle verify llama2-7b:layers=4 --memory 50MB --batch 16 --train --strategy "dp=2 tp=2 pp=2 mb=4 zero=2 tp.stages=4/1" | head -10
model      llama2-7b:layers=4
plan       dp=2 tp=2 pp=2 mb=4 tp.stages=4/1 zero=2
shrunk     4096 -> 8 (tokens[1]), 4096 -> 8 (embedding[1]), 64 -> 8 (h.0.attn.q[1]),
           128 -> 12 (h.0.attn.v[1]), 11008 -> 128 (h.0.mlp.gate[1]), 32000 -> 160 (head[1])
results    79
elements   653,969
worst      1.25589e-11
tolerance  1e-09
verdict    equal: the plan computes what the model computes, at the extents given above

$ heddle verify gpt2:layers=4 --memory 50MB --batch 16 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=4/1" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=2 pp=2 mb=4 tp.stages=4/1
worst      3.15369e-12
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify llama2-7b:layers=4 --batch 16 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=3/1"
error[E0502]: tp.stages: a place has dp x tp = 4 ranks, which 3 does not divide
  --> --strategy:1:21
   1 | dp=2 tp=2 pp=2 mb=4 tp.stages=3/1
     |                     ^
  hint: use divisors of 4
[1]
$ heddle verify llama2-7b:layers=4 --batch 16 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=4/1/1"
error[E0502]: tp.stages has 3 numbers, but pp=2
  --> --strategy:1:21
   1 | dp=2 tp=2 pp=2 mb=4 tp.stages=4/1/1
     |                     ^
  hint: one number for each place of the pipeline, or pp=3
[1]
$ heddle verify llama2-7b:layers=4 --memory 50MB --batch 16 --train --strategy "dp=2 tp=2 pp=2 mb=4 sp tp.stages=4/1" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=2 pp=2 mb=4 tp.stages=4/1 sp
worst      7.65689e-12
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify bert-large:layers=4 --memory 50MB --batch 32 --train --strategy "dp=2 tp=2 pp=2 mb=4 sp tp.stages=2/1 dp.shares=1/1/3/3" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=2 pp=2 mb=4 tp.stages=2/1 sp dp.shares=1/1/3/3
worst      2.97979e-12
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify bert-large:layers=4 --memory 50MB --batch 32 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 dp.shares=1/3 tp.shares=1/1/3/3" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 dp.shares=1/3 tp.shares=1/1/3/3
worst      3.73221e-12
verdict    equal: the plan computes what the model computes, at the extents given above
## What needs several data or tensor ranks needs them at one place.
$ heddle verify bert-large:layers=4 --memory 50MB --batch 32 --train --strategy "dp=1 tp=2 pp=2 mb=4 tp.stages=2/1 zero=3 sp dp.shares=1/3" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=1 tp=2 pp=2 mb=4 tp.stages=2/1 zero=3 sp dp.shares=1/3
worst      1.95315e-12
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify bert-large:layers=4 --memory 50MB --batch 32 --train --strategy "dp=2 tp=1 pp=2 mb=4 tp.stages=1/2 zero=2 sp tables=whole tp.shares=1/3" | sed -n "/^plan/p;/^worst/p;/^verdict/p"
plan       dp=2 tp=1 pp=2 mb=4 tp.stages=1/2 zero=2 sp tables=whole tp.shares=1/3
worst      3.48102e-12
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=2 tp=1 pp=2 mb=4 tp.stages=1/1 sp"
error[E0509]: sp needs tp > 1; got tp=1
  --> --strategy:1:35
   1 | dp=2 tp=1 pp=2 mb=4 tp.stages=1/1 sp
     |                                   ^
  hint: add tp=2, or leave out sp
[2]
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=1 tp=2 pp=2 mb=4 tp.stages=2/2 zero=1"
error[E0509]: zero=1 needs dp > 1; got dp=1
  --> --strategy:1:35
   1 | dp=1 tp=2 pp=2 mb=4 tp.stages=2/2 zero=1
     |                                   ^
  hint: add dp=2, or leave out zero
[2]
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=3 tp=2 pp=2 mb=4 tp.stages=3/2 dp.shares=1/3"
error[E0509]: dp.shares: place 1 has 2 data ranks and another one 3, which is no multiple of it
  --> --strategy:1:35
   1 | dp=3 tp=2 pp=2 mb=4 tp.stages=3/2 dp.shares=1/3
     |                                   ^
  hint: use degrees in tp.stages that divide one another, or dp.shares=equal
[2]
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 tp.shares=1/1/3"
error[E0502]: tp.shares has 3 numbers, but a place of tp.stages has 4 tensor ranks
  --> --strategy:1:35
   1 | dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 tp.shares=1/1/3
     |                                   ^
  hint: one number for each of the 4; places with fewer put them together
[1]
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=2/1 dp.shares=1/1/3/4"
error[E0502]: batch 32 / mb 4 = 8 is not divisible by 9, the sum of the shares of axis dp2
  --> bert-large
  hint: use shares whose sum divides 8, or a batch that is a multiple of 36
[1]
$ heddle verify bert-large:layers=4 --batch 32 --train --strategy "dp=2 dp.shares=1048576/1"
error[E0901]: dp.shares adds up to 1048577; at most 1048576 are possible
  --> --strategy:1:6
   1 | dp=2 dp.shares=1048576/1
     |      ^
[1]
$ heddle sim bert-large --batch 256 --seq 128 --train --dtype f16 --machine "1x2 v100 + 1x2 a100 + 1x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=2/1 dp.shares=auto" | sed -n "2p;9p"
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
plan            dp=2 tp=2 pp=2 mb=4 tp.stages=2/1 dp.shares=9/9/23/23
time per step   183.7 ms
$ heddle sim bert-large --batch 256 --seq 128 --train --dtype f16 --machine "1x2 v100 + 1x2 a100 + 1x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=2/1" | sed -n "2p;9p"
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
plan            dp=2 tp=2 pp=2 mb=4 tp.stages=2/1
time per step   261.0 ms
$ heddle sim bert-large --batch 256 --seq 128 --train --dtype f16 --machine "1x2 v100 + 1x2 a100 + 1x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 tp.shares=auto" | sed -n "2p;9p"
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
plan            dp=2 tp=2 pp=2 mb=4 tp.stages=4/2 tp.shares=3/3/5/5
time per step   477.0 ms
$ heddle sim llama2-7b --dtype f16 --batch 64 --train --strategy "pp=2 dp=2 tp=2 mb=32 zero=1 layers=16/16 places=2/1" --machine "1x4 v100 + 1x4 a100 ib=100Gb/s" | sed -n "2p;6p;8p;17p"
plan            dp=2 tp=2 pp=2 mb=32 zero=1 layers=16/16 places=2/1
layers          16/16
time per step   22.09 s
peak memory     37.6 GiB of 72.0 GiB on rank 4
$ heddle verify llama2-7b:layers=4 --batch 16 --train --strategy "pp=2 dp=2 tp=2 mb=4 places=2/2"
error[E0509]: places: 2 is given twice
  --> --strategy:1:21
   1 | pp=2 dp=2 tp=2 mb=4 places=2/2
     |                     ^
  hint: use every number from 1 to 2 once
[2]
$ heddle verify llama2-7b:layers=4 --batch 16 --train --strategy "pp=2 dp=2 tp=2 mb=4 places=1/3"
error[E0509]: places: there is no block 3 of 2
  --> --strategy:1:21
   1 | pp=2 dp=2 tp=2 mb=4 places=1/3
     |                     ^
  hint: use every number from 1 to 2 once
[2]
$ heddle plan bert-large:layers=4 --machine "1x2 v100 + 1x2 a100 + 1x2 t4 ib=50Gb/s" --batch 96 --train --strategy "recompute=none mb=1,2,4 zero=0" --what-if --top 1 --threads 1 | sed -n "/^what if/,$ p"
what if             best plan                                          time  faster    memory
as it is            dp=3 tp=2 pp=1 dp.shares=auto                  533.4 ms   1.00x  8.67 GiB
v=* schedule=*      dp=3 tp=2 pp=1 dp.shares=auto                  533.4 ms   1.00x  8.67 GiB
attention=*         dp=3 tp=2 pp=1 attention=fused dp.shares=auto  529.2 ms   1.01x  7.17 GiB
sp=*                dp=3 tp=2 pp=1 sp dp.shares=auto               526.0 ms   1.01x  7.69 GiB
overlap=*           dp=6 tp=1 pp=1 overlap=pp+dp dp.shares=auto    470.5 ms   1.13x  7.84 GiB
memory limit +25 %  dp=3 tp=2 pp=1 dp.shares=auto                  533.4 ms   1.00x  8.67 GiB
memory limit +50 %  dp=3 tp=2 pp=1 dp.shares=auto                  533.4 ms   1.00x  8.67 GiB
twice the devices   dp=6 tp=2 pp=1 dp.shares=auto                  335.0 ms   1.59x  4.41 GiB
without v100        dp=4 tp=1 pp=1 dp.shares=auto                  742.0 ms   0.72x  12.2 GiB
without a100        dp=4 tp=1 pp=1 dp.shares=auto                  871.6 ms   0.61x  11.3 GiB
without t4          dp=4 tp=1 pp=1 dp.shares=auto                  548.2 ms   0.97x  8.78 GiB
$ heddle verify examples/batchnorm.heddle --train --strategy "dp=2 dp.shares=3/1"
error[E0509]: dp.shares: batch norm would take its statistics over unequal parts of the batch
  --> --strategy:1:6
   1 | dp=2 dp.shares=3/1
     |      ^
  hint: bn=sync takes them over all data ranks
[2]
$ heddle verify examples/batchnorm.heddle --train --strategy "dp=2 dp.shares=3/1 bn=sync" | sed -n "/verdict/p"
verdict     equal: the plan computes what the model computes
$ heddle verify bert-large:layers=2 --batch 16 --train --strategy "dp=2 mbs=2 dp.shares=3/1"
error[E0509]: mbs=2: data ranks do not have microbatches of one size (dp.shares)
  --> --strategy:1:6
   1 | dp=2 mbs=2 dp.shares=3/1
     |      ^
  hint: give the number of microbatches instead: mb
[2]
$ heddle verify bert-large:layers=4 --batch 16 --train --strategy "dp=2 tp=2 pp=2 mbs=2 tp.stages=4/2"
error[E0509]: mbs=2: data ranks do not have microbatches of one size (tp.stages)
  --> --strategy:1:16
   1 | dp=2 tp=2 pp=2 mbs=2 tp.stages=4/2
     |                ^
  hint: give the number of microbatches instead: mb
[2]
$ heddle verify gpt2:layers=2 --batch 4 --seq 4 --train --strategy "tp=2 sp tp.shares=2/1"
error[E0502]: sequence length 4 is not divisible by 3, the sum of tp.shares
  --> gpt2
  hint: --seq 6, or leave out sp
[1]
$ heddle plan tests/two_types.heddle --machine tests/two_types.yaml --top 2 --threads 1 | sed -n "/^   dp/,$ p"
   dp  pp  mb      time              samples    memory  limited by
1   4   2  16  402.3 us  1.00x  10,182,254/s  81.0 MiB  computation 92 %
2   4   2   8  409.4 us  1.02x  10,004,370/s  82.0 MiB  computation 87 %

winner       dp=4 tp=1 pp=2 mb=16
             computes 91.7 % of the time, communicates 0.0 %, idles 8.3 %; needs 81.0 MiB of 72.0 GiB
layers       1/1
next         dp=4 tp=1 pp=2 mb=8
             1.02x the time, limited by computation
certificate  445 plans: 3 fit, 0 too large, 201 too slow, 126 impossible, 115 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 201 on time
             on ranks: all, 0 to 3, 4 to 7
             no plan can be faster than 343.6 us, its matmuls on all devices at their best rates: the winner takes 17.1 % more
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=*' has them, --what-if tries each
impossible   126 such as dp=1 tp=1 pp=4:
             4 pipeline stages, but the model has only 2 blocks and matmuls

device  ranks  each gets              share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
x           4  1024 samples, 1 layer         50.0 %    89.4 %         0.0 %  10.6 %     40.5 MiB  72.0 GiB                     12.5 %
y           4  1024 samples, 1 layer         50.0 %    94.0 %         0.0 %   6.0 %     81.0 MiB  72.0 GiB                     12.5 %

one more  of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle sim gpt2 --batch 262144 --seq 16 --train --machine "1x4 a100 ib=8x200Gb/s + 1x4 v100 ib=8x200Gb/s" --strategy "dp=8 mb=4096 dp.shares=auto" | sed -n 2p
plan            dp=8 tp=1 pp=1 mb=4096 dp.shares=9x4/7x4
$ heddle sim mlp-xs --machine dgx-a100-80 --strategy "dp=65536 tp=65536 pp=2 tp.stages=1/1"
error[E0901]: tp.stages: a place has dp x tp = 4294967296 ranks; at most 1048576 are possible
  --> --strategy:1:24
   1 | dp=65536 tp=65536 pp=2 tp.stages=1/1
     |                        ^
[1]
$ heddle plan bert-large --machine "1x4 v100 + 1x4 a100" --batch 256 --train --top 1
warning[W0602]: 2 of 2 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:1
   1 | 1x4 v100 + 1x4 a100
     | ^
  hint: '1x4 v100 + 1x4 a100 ib=100Gb/s', with the rate of your network
model         bert-large
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x4 v100 + 1x4 a100
ranks         8
batch         256
memory limit  per device, 28.8 GiB to 72.0 GiB
step          training

   dp  mb  skip     time         samples    memory  limited by
1   4   2     4  4.805 s  1.00x  53.28/s  42.5 GiB  computation 100 %

winner       dp=4 tp=1 pp=1 mb=2 skip=4
             computes 99.7 % of the time, communicates 0.3 %, idles 0.0 %; MFU 75.7 %; needs 42.5 GiB on the fullest device
certificate  2511 plans: 1 fit, 40 too large, 812 too slow, 650 impossible, 1008 equal to another;
             1 simulated, 40 ruled out by bounds on memory, 812 on time
             on ranks: all, 0 to 3, 4 to 7
             no plan can be faster than 2.390 s, its matmuls on all devices at their best rates: the winner takes 2.01 times that
             other values of some choices are not in it; --strategy 'v=* schedule=* attention=*' or 'sp=* overlap=*' has them, --what-if tries each
impossible   351 such as dp=1 tp=1 pp=8 mb=8:
             send over 2 ranks: the machine has no link between its nodes
             107 such as dp=1 tp=8 pp=1 recompute=selective:
             all_reduce over 8 ranks: the machine has no link between its nodes
             99 such as dp=2 tp=4 pp=1 zero=2:
             reduce_scatter over 2 ranks: the machine has no link between its nodes
             93 such as dp=2 tp=4 pp=1 zero=3:
             all_gather over 2 ranks: the machine has no link between its nodes

device  ranks  each gets   share of work  computes  communicates   idle  peak memory    usable
v100        4  nothing             0.0 %                                         0 B  28.8 GiB
a100        4  64 samples        100.0 %    99.7 %         0.3 %  0.0 %     42.5 GiB  72.0 GiB

left out       4 of 8 devices: the winner is on ranks 4 to 7
               v100: a node of them has no `nics`, so that nothing is sent there
equal shares   no plan that gives every device the same is possible and fits
without waits  2.697 s, if no device ever waited for another one: the winner takes 78.2 % more
## Devices that had better be left out, and a plan that leaves them out.
$ heddle plan gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --top 2 --threads 1
model         gpt2
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s
ranks         6
batch         32
memory limit  per device, 14.4 GiB to 72.0 GiB
step          training

   dp  ZeRO  skip      time         samples    memory  limited by
1   4     0     2  525.1 ms  1.00x  60.94/s  12.6 GiB  computation 99 %
2   4     2     2  528.3 ms  1.01x  60.57/s  12.7 GiB  computation 98 %

winner       dp=4 tp=1 pp=1 skip=2
             computes 98.9 % of the time, communicates 1.1 %, idles 0.0 %; MFU 68.7 %; needs 12.6 GiB on the fullest device
next         dp=4 tp=1 pp=1 zero=2 skip=2
             1.01x the time, limited by computation
certificate  1164 plans: 2 fit, 0 too large, 691 too slow, 180 impossible, 291 equal to another;
             2 simulated, 0 ruled out by bounds on memory, 691 on time
             on ranks: all, 0 to 1, 2 to 5
             no plan can be faster than 345.0 ms, its matmuls on all devices at their best rates: the winner takes 52.2 % more
             other values of some choices are not in it; --strategy 'v=* schedule=* attention=* sp=*' or 'overlap=*' has them, --what-if tries each
impossible   180 such as dp=3 tp=1 pp=2:
             batch 32 is not divisible by dp=3

device  ranks  each gets  share of work  computes  communicates   idle  peak memory    usable  gain of one more, at most
p100        2  nothing            0.0 %                                         0 B  14.4 GiB
a100        4  8 samples        100.0 %    98.9 %         1.1 %  0.0 %     12.6 GiB  72.0 GiB                     20.3 %

left out       2 of 6 devices: the winner is on ranks 2 to 5
equal shares   1.78x the time at best on all 6 devices: dp=1 tp=1 pp=6 mb=32
               the batch of 32 is not divisible by 6 devices: dp=6 has no equal shares
without waits  421.8 ms, if no device ever waited for another one: the winner takes 24.5 % more
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle sim gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy "dp=4 skip=2" --json | head -14
{
  "model": "gpt2",
  "plan": "dp=4 tp=1 pp=1 skip=2",
  "parameter_dtypes": "f32",
  "state_dtypes": null,
  "machine": "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s",
  "ranks": 4,
  "layers_by_stage": null,
  "schedule": null,
  "period_ps": 525132211959,
  "time_ps": 525132211959,
  "time_error_ps": null,
  "known_error_ps": 3036055074,
  "known_error_share": 0.010554792118585074,
$ heddle verify mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy "dp=2 pp=2 mb=2 places=2/1 skip=3"
model      mlp-xs:layers=2,hidden=16
plan       dp=2 tp=1 pp=2 mb=2 places=2/1 skip=3
results    5
elements   1,025
worst      2.44249e-15
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result      elements  largest difference     relative
h.1.w.grad       256         4.44089e-16  2.44249e-15
h.0.w.grad       256         4.44089e-16  1.50111e-15
h.1.w.new        256         6.93889e-18   4.0474e-16
h.0.w.new        256         5.55112e-17  3.77239e-16
result 0           1                   0            0
$ heddle plan gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy skip=6
error[E0509]: skip=6 leaves 0 of the machine's 6 devices
  --> --strategy:1:1
   1 | skip=6
     | ^
  hint: a smaller skip
[2]
$ heddle sim gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy "dp=4 skip=4"
error[E0605]: rank 7 is used; the machine 1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s has ranks 0 to 5
  hint: plan for this machine, or use a larger one
[1]
## Devices of a node that nothing joins: warned of where they are said, and named where they are left out.
$ printf 'devices:\n  old: {rate: {f32: 9 TFLOP/s}, memory: 16 GiB, bandwidth: 700 GB/s}\nnodes:\n  - {devices: 4 old, nics: 100 Gb/s}\n  - {devices: 4 v100, nics: 100 Gb/s}\n' > apart.yaml; heddle machines apart.yaml
warning[W0602]: the 4 devices of a node (old) have neither `link` nor `host`: nothing is sent between them
  --> apart.yaml:4:5
   4 |   - {devices: 4 old, nics: 100 Gb/s}
     |     ^
  hint: `link: switch 100 GB/s` or `host: 16 GB/s`, with the rate of yours, in the node or in the kind old; in one line link=100GB/s or host=16GB/s
machine  apart.yaml
about
devices  8

nodes  devices  link                      each way       host  host memory  bandwidth  NICs       each
    1        4  none: cannot communicate                                                  1  12.5 GB/s
    1        4  switch                    150 GB/s  15.8 GB/s                             1  12.5 GB/s

device  count    memory    usable  bandwidth          f16  bf16           f32           f64
old         4  16.0 GiB  14.4 GiB   700 GB/s                     9.00 TFLOP/s
v100        4  32.0 GiB  28.8 GiB   981 GB/s  125 TFLOP/s        15.7 TFLOP/s  7.80 TFLOP/s
$ heddle plan gpt2 --machine apart.yaml --batch 32 --train 2>/dev/null | sed -n '/^device /,$p'
device  ranks  each gets  share of work  computes  communicates   idle  peak memory    usable  gain of one more, at most
old         4  nothing            0.0 %                                         0 B  14.4 GiB
v100        4  8 samples        100.0 %    98.7 %         1.3 %  0.0 %     12.6 GiB  28.8 GiB                     14.1 %

left out       4 of 8 devices: the winner is on ranks 4 to 7
               old: a node of them has neither `link` nor `host`, so that nothing is sent there
equal shares   no plan that gives every device the same is possible and fits
without waits  387.4 ms, if no device ever waited for another one: the winner takes 79.4 % more
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle plan gpt2 --machine apart.yaml --batch 32 --train --devices 4 2>&1 | sed -n '/E0506/,$p'
error[E0506]: no plan can run: of 222, 180 impossible, 42 equal to another
  note: 78 impossible, such as dp=1 tp=2 pp=2: all_reduce over 2 ranks: the machine has no link between the devices of a node
  note: 48 impossible, such as dp=1 tp=1 pp=4: send over 2 ranks: the machine has no link between the devices of a node
  note: 42 impossible, such as dp=2 tp=1 pp=2 zero=3: all_gather over 2 ranks: the machine has no link between the devices of a node
  note: 12 impossible, such as dp=4 tp=1 pp=1 zero=2: reduce_scatter over 4 ranks: the machine has no link between the devices of a node
  hint: connect the nodes: --machine '... ib=8x200Gb/s'; devices of a node: '... link=300GB/s' or '... host=16GB/s'
$ heddle machines "1x4 v100 host=16GB/s + 1x4 p100 ib=1Gb/s" | sed -n '/^nodes/,/^$/p'
nodes  devices  link              each way       host  host memory  bandwidth  NICs      each
    1        4  switch            150 GB/s  16.0 GB/s                             1  125 MB/s
    1        4  through the host            15.8 GB/s                             1  125 MB/s

## With --top 1 all others may be ruled out by their bounds: which one is next is known only if none of them is faster.
$ heddle plan gpt2 --machine "1x4 v100" --batch 32 --train --top 1 | grep '^winner\|^next\|^cert'
winner       dp=4 tp=1 pp=1
certificate  222 plans: 1 fit, 0 too large, 179 too slow, 0 impossible, 42 equal to another;
$ heddle plan gpt2 --machine "1x4 v100" --batch 32 --train --top 2 | grep '^winner\|^next\|^cert'
winner       dp=4 tp=1 pp=1
next         dp=4 tp=1 pp=1 zero=2
certificate  222 plans: 2 fit, 0 too large, 178 too slow, 0 impossible, 42 equal to another;
## One device more of a kind: of those that work, the bound; of others nothing. Ranks that get nothing are counted.
$ heddle plan gpt2 --machine "1x3 v100 + 1x2 a100 ib=100Gb/s" --batch 32 --train --strategy "dp=4 tp=1 pp=1" | sed -n '/^device /,$p'
device  ranks  each gets             share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
v100        3  7 samples; 1 nothing         43.8 %    61.9 %         4.8 %  33.3 %     11.1 GiB  28.8 GiB
a100        2  9 samples                    56.2 %    88.6 %         7.2 %   4.2 %     14.1 GiB  72.0 GiB                     23.4 %

left out       1 of 5 devices: the winner is on ranks 1 to 4
equal shares   1.12x the time at best: dp=4 tp=1 pp=1 skip=1
               the batch of 32 is not divisible by 5 devices: dp=5 has no equal shares
without waits  486.5 ms, if no device ever waited for another one: the winner takes 34.3 % more
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
## Nodes are joined, whole machines are not.
$ heddle machines "dgx-2 + dgx-h100"
error[E0601]: '+' is not KEY=VALUE
  --> --machine:1:7
   1 | dgx-2 + dgx-h100
     |       ^
  hint: a preset or a file is a whole machine and is not joined with others; nodes are joined in one line: '1x8 v100 ib=50Gb/s + 1x8 a100 ib=50Gb/s'
[1]
$ heddle machines "1x4 v100+1x4 a100 ib=100Gb/s"
error[E0601]: spaces are missing around '+' between nodes
  --> --machine:1:9
   1 | 1x4 v100+1x4 a100 ib=100Gb/s
     |         ^
  hint: '2x8 h100 + 4x4 a40'; without spaces, devices of one node: '1x8 h100+a40'
[1]
## What if: other machines may leave devices out, too.
$ heddle plan gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --top 1 --threads 1 --what-if | tail -7
sp=*                dp=4 tp=1 pp=1 skip=2                  525.1 ms   1.00x  12.6 GiB
overlap=*           dp=4 tp=1 pp=1 overlap=pp+dp skip=2    520.7 ms   1.01x  12.6 GiB
memory limit +25 %  dp=4 tp=1 pp=1 skip=2                  525.1 ms   1.00x  12.6 GiB
memory limit +50 %  dp=4 tp=1 pp=1 skip=2                  525.1 ms   1.00x  12.6 GiB
twice the devices   dp=4 tp=1 pp=1 skip=2                  525.1 ms   1.00x  12.6 GiB
without p100        dp=4 tp=1 pp=1                         525.1 ms   1.00x  12.6 GiB
without a100        dp=2 tp=1 pp=1 mb=2                     2.296 s   0.23x  13.0 GiB
## Which devices are left out is not guessed from data sheets: T4 are slower in f32 than P100, and many slow ones beat one fast one.
$ heddle plan bert-base:layers=4 --train --batch 16 --machine "1x2 t4 eth=1Gb/s + 1x2 p100 eth=1Gb/s" --top 1 --threads 1 | grep "winner\|^1"
1   2     2  238.5 ms  1.00x  67.08/s  2.31 GiB  computation 91 %
winner       dp=2 tp=1 pp=1 skip=2
             no plan can be faster than 107.6 ms, its matmuls on all devices at their best rates: the winner takes 2.22 times that
left out       2 of 4 devices: the winner is on ranks 2 to 3
without waits  130.6 ms, if no device ever waited for another one: the winner takes 82.6 % more
$ heddle plan bert-base:layers=4 --train --batch 16 --machine "1x1 a100 eth=100Mb/s + 1x4 v100 eth=100Mb/s" --top 1 --threads 1 | grep "winner\|^1"
1   4     1  75.24 ms  1.00x  212.7/s  1.25 GiB  computation 95 %
winner       dp=4 tp=1 pp=1 skip=1
             no plan can be faster than 39.45 ms, its matmuls on all devices at their best rates: the winner takes 90.7 % more
left out       1 of 5 devices: the winner is on ranks 1 to 4
without waits  53.90 ms, if no device ever waited for another one: the winner takes 39.6 % more
## Equal shares are those of the devices that were said, or that the degrees leave.
$ heddle plan gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy skip=2 --top 1 --threads 1 | grep "winner \|equal shares"
winner       dp=4 tp=1 pp=1 skip=2
left out       2 of 6 devices: the winner is on ranks 2 to 5
without waits  421.8 ms, if no device ever waited for another one: the winner takes 24.5 % more
$ heddle plan gpt2 --batch 32 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy "dp=2 tp=2 pp=1 zero=3" --top 1 --threads 1 | grep "winner \|equal shares"
winner       dp=2 tp=2 pp=1 zero=3 skip=2
             no plan can be faster than 345.0 ms, its matmuls on all devices at their best rates: the winner takes 58.7 % more
left out       2 of 6 devices: the winner is on ranks 2 to 5
without waits  452.9 ms, if no device ever waited for another one: the winner takes 20.9 % more
$ heddle plan gpt2 --train --machine "1x2 p100 ib=10Gb/s + 1x4 a100 ib=10Gb/s" --strategy "dp=3 tp=1 pp=2 mb=1 zero=0 recompute=none" --batch 96 --top 1 --threads 1 | grep "winner \|equal shares"
winner         dp=3 tp=1 pp=2 layers=auto
               no plan can be faster than 1.035 s, its matmuls on all devices at their best rates: the winner takes 2.35 times that
equal shares   no plan that gives every device the same is possible and fits
without waits  1.183 s, if no device ever waited for another one: the winner takes 2.05 times that
## Degrees of places are searched where that is asked for; neighbours of one kind have one degree.
$ heddle plan llama2-7b:layers=8 --batch 16 --dtype f16 --train --machine '1x4 v100 ib=100Gb/s + 1x4 h100 ib=8x400Gb/s' --powers-of-two --strategy 'pp=2 mb=4 tp.stages=* recompute=none zero=0 dp.shares=equal layers=auto' | grep '^ *[0-9]'
 1   1   4   2   4  4/1        0/8        0  514.7 ms  1.00x  31.09/s  27.4 GiB  bubble 50 %
 2   2   2   2   4  2/1        0/8        0  514.7 ms  1.00x  31.09/s  27.4 GiB  bubble 50 %
 3   4   1   2   4  equal      0/8        0  517.9 ms  1.01x  30.89/s  27.4 GiB  bubble 50 %
 4   1   4   2   4  4/2        0/8        0  550.3 ms  1.07x  29.08/s  21.8 GiB  bubble 50 %
 5   2   2   2   4  equal      0/8        0  550.5 ms  1.07x  29.06/s  21.8 GiB  bubble 51 %
 6   2   2   2   4  1/2        0/8        0  554.0 ms  1.08x  28.88/s  21.8 GiB  bubble 51 %
 7   2   1   2   4  equal      4/4        4  620.2 ms  1.20x  25.80/s  35.6 GiB  bubble 22 %
 8   1   4   2   4  equal      0/8        0  627.2 ms  1.22x  25.51/s  20.5 GiB  bubble 51 %
 9   1   4   2   4  2/4        0/8        0  627.5 ms  1.22x  25.50/s  20.5 GiB  bubble 51 %
10   1   4   2   4  1/4        0/8        0  630.9 ms  1.23x  25.36/s  20.5 GiB  bubble 51 %
               1.00x the time, limited by bubble
               11 simulated, 0 ruled out by bounds on memory, 2 on time
## Replicas of different make-up: microbatches by speed, the result of one device, and a search.
$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --strategy "replicas=2x2+1x2 mb=12 dp.shares=auto" | sed -n "2p;7,8p;/^place/,/^a100/ p"
plan            dp=1 tp=1 pp=1 replicas=2x2+1x2 mb=12 dp.shares=7/5
layers          13/11
time per step   2.077 s
place  ranks  computes  communicates    idle  peak memory
    0  0-1      78.3 %         3.8 %  17.9 %     6.49 GiB
    1  2-3      78.2 %         3.4 %  18.5 %     3.58 GiB
    2  4-5      85.6 %         2.1 %  12.4 %     7.11 GiB

device  ranks  each gets                    share of work  computes  communicates    idle  peak memory    usable
v100        4  56 samples, 11 to 13 layers         58.3 %    78.2 %         3.6 %  18.2 %     6.49 GiB  28.8 GiB
a100        2  40 samples, 24 layers               41.7 %    85.6 %         2.1 %  12.4 %     7.11 GiB  72.0 GiB
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x1+1x2+2x1 mb=4 dp.shares=1/2/1" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=2x1+1x2+2x1 mb=4 dp.shares=1/2/1
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2 --batch 48 --train --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=1 replicas=* recompute=none mb=6,12" --top 5 --threads 1
model         gpt2
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       2x2 v100 + 1x2 a100 ib=100Gb/s
ranks         6
batch         48
memory limit  per device, 28.8 GiB to 72.0 GiB
step          training

   replicas           mb  ZeRO      time         samples    memory  limited by
1  1x1x2+1x1x2+1x1x2   6     0  797.4 ms  1.00x  60.20/s  6.98 GiB  computation 84 %
2  1x1x2+1x1x2+1x1x2   6     2  802.5 ms  1.01x  59.81/s  6.75 GiB  computation 83 %
3  1x1x2+1x1x2+1x1x2   6     3  810.5 ms  1.02x  59.22/s  6.52 GiB  computation 82 %
4  1x2+1x2+1x2         6        833.7 ms  1.05x  57.57/s  7.11 GiB  computation 82 %
5  1x1x2+1x1x2+1x1x2  12     0  856.1 ms  1.07x  56.07/s  3.96 GiB  computation 85 %

winner       dp=1 tp=1 pp=1 replicas=1x1x2+1x1x2+1x1x2 mb=6
             computes 84.1 % of the time, communicates 8.5 %, idles 7.4 %; MFU 52.0 %; needs 6.98 GiB on the fullest device
next         dp=1 tp=1 pp=1 replicas=1x1x2+1x1x2+1x1x2 mb=6 zero=2
             1.01x the time, limited by computation
certificate  68 plans: 13 fit, 0 too large, 28 too slow, 0 impossible, 27 equal to another;
             13 simulated, 0 ruled out by bounds on memory, 28 on time
             on ranks: all, 0 to 3, 4 to 5
             no plan can be faster than 491.1 ms, its matmuls on all devices at their best rates: the winner takes 62.4 % more
             other values of some choices are not in it; --strategy 'attention=*' has them, --what-if tries each

replicas tried     plans  simulated      best  at least  why not
1x1x2+1x1x2+1x1x2     16          5  797.4 ms  797.4 ms
1x2+1x2+1x2            4          1  833.7 ms  833.7 ms
1x1x4+1x1x2           16          4  886.7 ms  811.2 ms
2x2+1x2                4          1  888.7 ms  839.5 ms
1x2x2+1x2             16          1  911.3 ms  839.1 ms
... and 3 more

device  ranks  each gets  share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
v100        4  8 samples         66.7 %    91.5 %         8.5 %   0.0 %     6.98 GiB  28.8 GiB                     15.1 %
a100        2  8 samples         33.3 %    69.2 %         8.5 %  22.3 %     6.98 GiB  72.0 GiB                     19.9 %

without waits  655.4 ms, if no device ever waited for another one: the winner takes 21.7 % more
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x1 mb=5"
error[E0502]: mb=5 microbatches cannot be dealt out to 2 replicas in equal parts
  --> --strategy:1:1
   1 | replicas=1x2+1x1 mb=5
     | ^
  hint: mb=4, or dp.shares=auto
[1]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x1 mb=1"
error[E0502]: mb=1 microbatches cannot be dealt out to 2 replicas in equal parts
  --> --strategy:1:1
   1 | replicas=1x2+1x1 mb=1
     | ^
  hint: mb=2
[1]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x1 mb=10 dp.shares=3/1"
error[E0502]: mb=10 microbatches cannot be dealt out to 2 replicas in parts of 4
  --> --strategy:1:24
   1 | replicas=1x2+1x1 mb=10 dp.shares=3/1
     |                        ^
  hint: mb=8, or dp.shares=auto
[1]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x1 mb=6 dp.shares=3/1/1"
error[E0502]: dp.shares has 3 numbers, but there are 2 replicas
  --> --strategy:1:23
   1 | replicas=1x2+1x1 mb=6 dp.shares=3/1/1
     |                       ^
  hint: one number for each replica
[1]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x1 mb=6 dp.shares=whale"
error[E0509]: dp.shares=whale does not go with replicas: it deals out samples to data ranks, and replicas get whole microbatches
  --> --strategy:1:23
   1 | replicas=1x2+1x1 mb=6 dp.shares=whale
     |                       ^
  hint: dp.shares=auto
[2]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "dp=2 replicas=1x2+1x1 mb=6"
error[E0509]: dp=2: each replica of replicas has degrees of its own
  --> --strategy:1:1
   1 | dp=2 replicas=1x2+1x1 mb=6
     | ^
  hint: dp=1, and degrees in replicas: stages x tensor ranks x data ranks
[2]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2 mb=6"
error[E0509]: replicas: unknown value '1x2'
  --> --strategy:1:10
   1 | replicas=1x2 mb=6
     |          ^
  hint: replicas takes none, or stages x tensor ranks of two replicas or more, such as 2x2+1x2
[2]
$ heddle sim gpt2 --batch 30 --train --machine laptop --strategy "replicas=1x2+1x3 mb=6"
error[E0605]: rank 4 is used; the machine laptop has ranks 0 to 3
  hint: plan for this machine, or use more of them: --machine 'laptop*2'
[1]
$ heddle plan gpt2 --batch 30 --train --machine laptop --strategy "replicas=2x2+1x1 mb=6"
error[E0509]: replicas=2x2+1x1 has 5 ranks, with dp, tp and pp 1; there are 4 devices
  --> --strategy:1:1
   1 | replicas=2x2+1x1 mb=6
     | ^
  hint: replicas of 4 ranks together at most
[2]
## Limits, kinds and bounds are of the ranks that the plans lie on, not of the first ones of the machine.
$ heddle plan gpt2-xl --dtype f16 --batch 12 --train --machine "1x4 p100 + 1x4 a100 ib=100Gb/s" --devices 4 --strategy "skip=4 dp=4" --top 2 --threads 1 | grep "memory limit\|^1\|^2\|needs\|too large\|100  "
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
memory limit  72.0 GiB
1   4     1     4  281.0 ms  1.00x  42.71/s  19.6 GiB  computation 86 %
2   4     0     4  285.1 ms  1.01x  42.09/s  23.9 GiB  computation 90 %
             computes 86.5 % of the time, communicates 13.5 %, idles 0.0 %; MFU 36.1 %; needs 19.6 GiB of 72.0 GiB
certificate  24 plans: 2 fit, 0 too large, 22 too slow, 0 impossible, 0 equal to another;
$ heddle plan gpt2-xl --dtype f16 --batch 12 --train --machine "1x4 p100 + 1x4 a100 ib=100Gb/s" --devices 6 --strategy "skip=2 dp=6" --top 1 --threads 1 | grep "00  \|ranks\|without waits"
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
ranks         6
device  ranks  each gets       share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
p100        2  1 sample               16.7 %    62.2 %        37.8 %   0.0 %     8.95 GiB  14.4 GiB                      2.5 %
a100        4  2 to 3 samples         83.3 %    14.4 %        37.6 %  48.0 %     19.1 GiB  72.0 GiB                     23.8 %
without waits  245.7 ms, if no device ever waited for another one: the winner takes 5.83 times that
$ heddle plan gpt2-xl --dtype f16 --batch 12 --train --machine "1x4 p100 + 1x4 a100 ib=100Gb/s" --devices 4 --strategy "skip=4 dp=4" --what-if --top 1 --threads 1 | sed -n '/^what if/,$p'
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
what if             best plan                                         time  faster    memory
as it is            dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
v=* schedule=*      dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
attention=*         dp=4 tp=1 pp=1 zero=1 attention=fused skip=4  217.9 ms   1.29x  12.6 GiB
sp=*                dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
overlap=*           dp=4 tp=1 pp=1 overlap=pp+dp skip=4           256.5 ms   1.10x  23.9 GiB
layers=*            dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
memory limit +25 %  dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
memory limit +50 %  dp=4 tp=1 pp=1 zero=1 skip=4                  281.0 ms   1.00x  19.6 GiB
## A plan that fits the larger devices only does not fit.
$ heddle sim gpt2-xl --dtype f16 --batch 16 --train --machine "1x4 a100 + 1x4 p100 ib=100Gb/s" --strategy "dp=8" 2>&1 | grep "peak memory  \|E0505"
peak memory     18.9 GiB, does not fit in 14.4 GiB on rank 4
device  ranks  each gets  share of work  computes  communicates    idle  peak memory    usable
error[E0505]: rank 4 needs 18.9 GiB; its device has 14.4 GiB
$ heddle sim gpt2-xl --dtype f16 --batch 16 --train --machine "1x4 a100 + 1x4 p100 ib=100Gb/s" --strategy "dp=8" --json 2>&1 | grep '^  "\(peak_bytes\|usable_bytes\|fits\)'
  "peak_bytes": 20248753152,
  "usable_bytes": 15461253120,
  "fits": false,
$ heddle plan gpt2-xl --dtype f16 --batch 16 --train --machine "1x4 a100 + 1x4 p100 ib=100Gb/s" --strategy "dp=8 mb=1 recompute=none zero=3 dp.shares=equal skip=0" --why "zero=0" --threads 1 | sed -n '/^why not/,/^space/p'
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
why not    zero=0
winner     dp=8 tp=1 pp=1 zero=3
asked      dp=8 tp=1 pp=1
too large  18.9 GiB of 14.4 GiB: 4.46 GiB more than there is, most of it activations (9.77 GiB)
time       0.90x the winner's, if it fit
saves      all_gather over dp -553.6 ms, reduce_scatter over dp -293.7 ms
space      the search did not try it; --strategy 'zero=0' would
## As many values of skip as of any other choice.
$ heddle plan mlp-xs --batch 64 --machine "1x20 v100" --strategy "dp=2 tp=1 pp=1 mb=1 skip=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17" --devices 2 --top 1 --threads 1 | grep "plan"
step          inference; --train plans a training step
certificate  18 plans: 18 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
$ heddle plan mlp-xs --batch 64 --train --machine "1x4 a100" --strategy "skip=0,1 dp=4"
error[E0509]: no plan of this search has skip=1
  --> --strategy:1:1
   1 | skip=0,1 dp=4
     | ^
  hint: leave out skip
[2]
## A kind that is left out has a speed all the same.
$ heddle plan gpt2:layers=2 --batch 24 --seq 128 --dtype f16 --train --machine '1x4 a100 + 1x1 h100 ib=1Gb/s' | sed -n '/^device/,$p'
warning[W0508]: wte of gpt2:layers=2 has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
device  ranks  each gets   share of work  computes  communicates   idle  peak memory    usable  gain of one more, at most
a100        4  24 samples        100.0 %    86.4 %        13.6 %  0.0 %      448 MiB  72.0 GiB                     12.5 %
h100        1  nothing             0.0 %                                         0 B  72.0 GiB

left out       1 of 5 devices: the winner is on ranks 0 to 3
equal shares   no plan that gives every device the same is possible and fits
               the batch of 24 is not divisible by 5 devices: dp=5 has no equal shares
without waits  1.782 ms, if no device ever waited for another one: the winner takes 2.22 times that
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
## Tensor ranks by place leave no data ranks.
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=96 --batch 8 --seq 16 --train --machine '2x2 v100 ib=100Gb/s' --strategy 'pp=2 dp=2 tp.stages=2/2 zero=1'
error[E0509]: zero=1 needs a place with dp > 1; tp.stages leaves dp=1 at every place
  --> --strategy:1:25
   1 | pp=2 dp=2 tp.stages=2/2 zero=1
     |                         ^
  hint: use smaller numbers in tp.stages, or leave out zero
[2]
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=96 --batch 8 --seq 16 --train --machine '2x2 v100 ib=100Gb/s' --strategy 'pp=2 tp=2 tp.stages=1/1 sp'
error[E0509]: sp needs a place with tp > 1; tp.stages leaves tp=1 at every place
  --> --strategy:1:25
   1 | pp=2 tp=2 tp.stages=1/1 sp
     |                         ^
  hint: use larger numbers in tp.stages, or leave out sp
[2]
## layers=auto measures layers as the plan has them: with rows and columns over tp, and in parts.
$ for s in auto cost; do heddle sim alphafold2 --batch 16 --train --dtype f16 --machine "2x8 v100 + 2x8 t4 ib=100Gb/s" --strategy "tp=16 pp=2 mb=16 axial recompute=full layers=$s" | grep -E "^(layers|time per step)"; done
layers          28/20
time per step   12.19 s
layers          24/24
time per step   14.88 s
$ heddle sim gpt3-xl --batch 16 --train --dtype f16 --machine "1x1 v100 + 1x1 t4 eth=50Gb/s" --strategy "pp=2 mb=16 layers=auto coshard=8" | grep -E "^(layers|time per step)"
warning[W0508]: wte of gpt3-xl has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt3-xl
  hint: --vocab 50264
layers          18/6
time per step   6.374 s
## Layers are cut where little is sent, if links are slow: by computation alone 2/11 took 970 ms.
$ heddle sim vgg16 --batch 32 --seq 224 --train --machine "1x1 p100 + 1x1 v100 ib=10Gb/s" --strategy "pp=2 layers=auto" | grep -E "^(plan|time per step)"
plan            dp=1 tp=1 pp=2 layers=4/9
time per step   400.2 ms
## Where the fastest cuts do not fit, others that do come before another order of the places.
$ printf 'devices:\n  a: {like: t4, usable: 151520507 B}\n  b: {like: p100, usable: 244867014 B}\nnodes:\n  - {count: 1, devices: 1 a, nics: 100 Gb/s}\n  - {count: 1, devices: 1 b, nics: 100 Gb/s}\n' > short.yaml
$ heddle sim bert-base:layers=6,hidden=256,heads=4,vocab=30000 --seq 128 --batch 8 --train --machine short.yaml --strategy "pp=2 mb=4 layers=auto" | grep -E "^(plan|time per step)"
plan            dp=1 tp=1 pp=2 mb=4 layers=4/2
time per step   23.51 ms
$ heddle plan bert-base:layers=6,hidden=256,heads=4,vocab=30000 --seq 128 --batch 32 --train --machine short.yaml --strategy "dp=1 tp=1 pp=2 mb=1 recompute=none"
error[E0506]: no plan can run: of 2, 2 too large for 145 MiB to 234 MiB of memory
  note: the smallest needs at least 496 MiB on a rank
  hint: use more devices, zero=3, attention=fused or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves activations
[1]
## The fastest cuts need 5990400 bytes, and are taken where there are so many.
$ heddle plan t5-small:layers=6,hidden=64,heads=4,vocab=2000 --seq 32 --batch 16 --train --optimizer adam --machine "1x2 p100 + 1x2 v100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=4 mb=8 layers=auto recompute=full" --memory-limit 16MiB | sed -n '/^1 /p; /^layers/p'
1   4   8  full       5/4/3/2  20.56 ms  1.00x  778.2/s  5.71 MiB  bubble 32 %
layers         5/4/3/2
$ heddle plan t5-small:layers=6,hidden=64,heads=4,vocab=2000 --seq 32 --batch 16 --train --optimizer adam --machine "1x2 p100 + 1x2 v100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=4 mb=8 layers=auto recompute=full" --memory-limit 5990400B | sed -n '/^1 /p; /^layers/p'
1   4   8  full       5/4/3/2  20.56 ms  1.00x  778.2/s  5.71 MiB  bubble 32 %
layers         5/4/3/2
## One more card: 5 old and 5 new ones are no slower than 5 and 4.
$ heddle plan bert-large --batch 256 --train --machine "1x5 v100 + 1x4 p100 ib=50Gb/s" --threads 1 | grep -E '^winner|^ 1|on ranks|left out'
 1   9   2     0  selective  18/18/18/17/17/10x4     0  3.996 s  1.00x  64.06/s  17.4 GiB  computation 90 %
winner            dp=9 tp=1 pp=1 mb=2 recompute=selective dp.shares=auto
                  on ranks: all, 0 to 4, 5 to 8, 1 to 8, 0 to 3
$ heddle plan bert-large --batch 256 --train --machine "1x5 v100 + 1x5 p100 ib=50Gb/s" --threads 1 | grep -E '^winner|^ 1|on ranks|left out'
 1  10   2     0  none       17/17/17/16/16/9x5      0  3.679 s  1.00x  69.59/s  23.8 GiB  computation 87 %
winner            dp=10 tp=1 pp=1 mb=2 dp.shares=auto
                  on ranks: all, 0 to 4, 5 to 9, 0 to 8, 1 to 9, 1 to 8, 0 to 3, 5 to 8
## Sums of up to 64 parts are tried.
$ heddle sim mlp-xs:hidden=4608,layers=2 --batch 8 --train --machine "9x4 v100 + 9x4 a100 ib=10Gb/s" --strategy "tp=72 tp.shares=auto" | grep "^plan"
warning[W0101]: tp.shares=auto changes nothing: it deals out 64 parts at most, and there are 72 tensor ranks
  --> --strategy:1:7
   1 | tp=72 tp.shares=auto
     |       ^
plan            dp=1 tp=72 pp=1
## Nodes that nothing connects.
$ heddle plan bert-large:layers=2 --batch 16 --train --machine '1x2 v100 + 1x2 a100' | grep -A2 '^winner'
warning[W0602]: 2 of 2 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:1
   1 | 1x2 v100 + 1x2 a100
     | ^
  hint: '1x2 v100 + 1x2 a100 ib=100Gb/s', with the rate of your network
winner       dp=2 tp=1 pp=1 skip=2
             computes 98.6 % of the time, communicates 1.4 %, idles 0.0 %; MFU 72.6 %; needs 1.98 GiB on the fullest device
next         dp=2 tp=1 pp=1 zero=2 skip=2
$ heddle sim bert-large:layers=2 --batch 16 --train --machine '1x2 v100 + 1x2 a100 ib=100Gb/s' --strategy dp=4 | sed -n 5p
machine         1x2 v100 + 1x2 a100 ib=100Gb/s
$ heddle machines 'laptop*2' | sed -n 5,6p
warning[W0602]: 2 of 2 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:1
   1 | laptop*2
     | ^
  hint: 'laptop*2 ib=100Gb/s', with the rate of your network
nodes  devices  link     each way       host  host memory  bandwidth  NICs  each
    2        4  switch  5.00 GB/s  10.0 GB/s                             0
$ heddle explain W0602
W0602 (warning): nodes or devices that nothing connects

The text of a machine has several nodes and does not say what is between them (ib=, eth=, roce=, nics=), or a node has several devices and neither a link between them nor a way through the host (link, host). No rate is assumed: plans that would send there are refused, and a search leaves nodes or devices out.
## Among devices of one kind samples are dealt out where they do not divide: of a machine, of a part of one, of microbatches.
$ heddle plan gpt2 --batch 32 --train --machine "1x5 v100" --threads 1 | grep -E '^ 1|^winner|^auto|^certificate|^impossible'
 1   5   1   1     0  none       7/7/6/6/6  616.3 ms  1.00x  51.92/s  11.1 GiB  computation 91 %
winner         dp=5 tp=1 pp=1 dp.shares=auto
auto resolved  dp=5 tp=1 pp=1 dp.shares=7/7/6/6/6
certificate    72 plans: 13 fit, 0 too large, 32 too slow, 18 impossible, 9 equal to another;
impossible     18 such as dp=1 tp=5 pp=1:
$ heddle plan bert-large --batch 64 --train --dtype f16 --machine "1x6 v100 + 1x2 p100 ib=10Gb/s" --strategy "recompute=none" --threads 1 | grep -E '^ 1|^winner|^auto|^certificate|left out'
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
 1   6   1   1     1  11x4/10/10  227.0 ms  1.00x  281.9/s  8.35 GiB  computation 89 %
winner         dp=6 tp=1 pp=1 zero=1 dp.shares=auto
auto resolved  dp=6 tp=1 pp=1 zero=1 dp.shares=11x4/10/10
certificate    1045 plans: 26 fit, 0 too large, 676 too slow, 183 impossible, 160 equal to another;
left out       2 of 8 devices: the winner is on ranks 0 to 5
$ heddle plan gpt2 --batch 32 --train --machine "1x5 v100" --strategy "dp=5 dp.shares=equal" --threads 1
error[E0506]: no plan can run: all 36 are impossible
  note: 36 impossible, such as dp=5 tp=1 pp=1: batch 32 is not divisible by dp=5
  hint: choose a batch that is a multiple of 5, or dp.shares=7/7/6/6/6
[1]
$ heddle sim bert-large --batch 64 --train --dtype f16 --machine "1x6 v100" --strategy "dp=6 mb=2 dp.shares=auto" | grep -E "^plan|per step"
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
plan            dp=6 tp=1 pp=1 mb=2 dp.shares=6/6/5x4
time per step   272.8 ms
$ heddle sim gpt2 --batch 32 --train --machine "1x3 v100" --strategy "dp=3 dp.shares=whale" | grep -E "^plan|per step"
plan            dp=3 tp=1 pp=1 dp.shares=11/11/10
time per step   930.3 ms
$ heddle sim gpt2 --batch 33 --train --machine "1x3 v100" --strategy "dp=3 dp.shares=auto" | grep "^plan"
plan            dp=3 tp=1 pp=1
$ heddle sim gpt2 --batch 32 --train --machine "1x3 v100" --strategy "dp=3 mb=16 dp.shares=auto"
error[E0502]: dp.shares=auto: a microbatch has 2 samples, fewer than 3 data ranks
  --> --strategy:1:12
   1 | dp=3 mb=16 dp.shares=auto
     |            ^
  hint: mb=8 at most
[1]
$ heddle verify mlp-xs --batch 7 --train --machine "1x3 v100" --strategy "dp=3 dp.shares=auto" | head -3
model      mlp-xs
plan       dp=3 tp=1 pp=1 dp.shares=3/2/2
results    17
$ heddle sim gpt2 --batch 32 --train --machine "1x5 v100" --strategy "dp=5 mb=2"
error[E0502]: batch 32 is not divisible by dp=5
  --> gpt2
  hint: choose a batch that is a multiple of 5, or dp.shares=4/3x4
[1]
## What dp.shares=whale and dp.shares=auto cannot deal out is refused in figures.
$ heddle sim gpt2 --batch 10 --train --machine "1x4 h100 + 1x4 t4 ib=100Gb/s" --strategy "dp=8 dp.shares=whale"
error[E0502]: dp.shares=whale: data rank 4 gets none of the 10 samples of a microbatch; by speed it has 0.23
  --> --strategy:1:6
   1 | dp=8 dp.shares=whale
     |      ^
  hint: dp.shares=auto, which gives each rank one, or larger microbatches
[1]
$ heddle sim bert-large --batch 1024 --train --machine "1x2 v100 + 1x2 p100 ib=100Gb/s" --strategy "dp=4 dp.shares=whale"
error[E0505]: dp.shares=whale: 4 data ranks have memory for 64 samples of a microbatch, at 1.25 GiB each; it has 1024
  --> --strategy:1:6
   1 | dp=4 dp.shares=whale
     |      ^
  hint: more microbatches than mb=1, or recompute=full
[1]
$ heddle sim gpt2 --batch 2 --train --machine "1x2 h100 + 1x2 t4 ib=100Gb/s" --strategy "dp=4 dp.shares=whale"
error[E0502]: dp.shares=whale: a microbatch has 2 samples, fewer than 4 data ranks
  --> --strategy:1:6
   1 | dp=4 dp.shares=whale
     |      ^
  hint: dp=2 at most, or a larger --batch
[1]
$ heddle plan gpt2 --batch 10 --train --machine "1x4 h100 + 1x4 t4 ib=100Gb/s" --strategy "dp=8 dp.shares=whale,auto zero=0 recompute=none" --threads 1 | grep -A6 "^winner\|^impossible"
winner         dp=8 tp=1 pp=1 dp.shares=auto
auto resolved  dp=8 tp=1 pp=1 dp.shares=2/2/1x6
               computes 41.2 % of the time, communicates 28.0 %, idles 30.8 %; MFU 9.0 %; needs 3.49 GiB on the fullest device
one device     0.63x the time, 203.2 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node       0.18x the time, 59.48 ms: --devices 4 --strategy 'dp=2 tp=2 pp=1'
certificate    2 plans: 1 fit, 0 too large, 0 too slow, 1 impossible, 0 equal to another;
               1 simulated, 0 ruled out by bounds on memory, 0 on time
--
impossible     1 such as dp=8 tp=1 pp=1 dp.shares=whale:
               dp.shares=whale: data rank 4 gets none of the 10 samples of a microbatch; by speed it has 0.23

device  ranks  each gets       share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
h100        4  1 to 2 samples         60.0 %    10.4 %        28.0 %  61.6 %     3.49 GiB  72.0 GiB                     22.7 %
t4          4  1 sample               40.0 %    72.0 %        28.0 %   0.0 %     1.98 GiB  14.4 GiB                      2.3 %

## A stage without layers has the embedding or the head; what is printed reads back. layers=auto finds such cuts.
$ for l in cost 4/4/4/0 5/5/2/0 auto 0/4/4/4; do heddle sim gpt2 --batch 48 --train --machine "4x1 v100 + 4x1 p100 ib=50Gb/s" --strategy "dp=2 pp=4 mb=8 layers=$l" | grep -E "^layers|^plan|per step"; done
plan            dp=2 tp=1 pp=4 mb=8
layers          4/4/4/0
time per step   1.257 s
plan            dp=2 tp=1 pp=4 mb=8 layers=4/4/4/0
layers          4/4/4/0
time per step   1.257 s
plan            dp=2 tp=1 pp=4 mb=8 layers=5/5/2/0
layers          5/5/2/0
time per step   1.095 s
plan            dp=2 tp=1 pp=4 mb=8 layers=5/5/2/0
layers          5/5/2/0
time per step   1.095 s
plan            dp=2 tp=1 pp=4 mb=8 layers=0/4/4/4
layers          0/4/4/4
time per step   1.974 s
$ heddle sim gpt2 --batch 48 --train --machine "4x1 v100 + 4x1 p100 ib=50Gb/s" --strategy "dp=2 pp=4 mb=8 layers=4/0/4/4"
error[E0502]: layers: stage 1 would be empty: nothing of a stage stands between the layers around it
  --> --strategy:1:16
   1 | dp=2 pp=4 mb=8 layers=4/0/4/4
     |                ^
  hint: a number from 1 for stage 1, or layers=cost, which distributes single matmuls too
[1]
$ heddle sim gpt2 --batch 48 --train --machine "4x1 v100 + 4x1 p100 ib=50Gb/s" --strategy "dp=2 pp=4 mb=8 layers=4/8/0/0"
error[E0502]: layers: stages 2 and 3 would have no layers: what stands after the last layer is one stage at most
  --> --strategy:1:16
   1 | dp=2 pp=4 mb=8 layers=4/8/0/0
     |                ^
  hint: a number from 1 for stage 3, or layers=cost, which distributes single matmuls too
[1]
$ heddle verify gpt2:layers=4 --memory 60MB --batch 8 --train --strategy "pp=4 mb=2 layers=0/2/2/0" | grep -E "^plan|verdict|largest"
plan       dp=1 tp=1 pp=4 mb=2 layers=0/2/2/0
verdict    equal: the plan computes what the model computes, at the extents given above
result                elements  largest difference     relative
## Shares are weighed with the cuts that they have: here equal ones are better.
$ for s in auto equal; do heddle sim bert-large:layers=6 --batch 16 --train --machine "1x2 p100 + 1x6 h100 + 1x8 a100 ib=100Gb/s" --strategy "dp=8 pp=2 mb=1 layers=auto dp.shares=$s" | grep -E "^plan|per step"; done
plan            dp=8 tp=1 pp=2 layers=0/6
time per step   89.21 ms
plan            dp=8 tp=1 pp=2 layers=0/6
time per step   89.21 ms
## Plans of several microbatches have accumulators besides: what a sample takes is told without them.
$ heddle sim bert-base:layers=4 --seq 128 --batch 48 --train --machine "1x1 a100 + 1x1 t4 ib=50Gb/s usable=2180374016B" --strategy "dp=2 dp.shares=auto" | grep -E "^plan|^peak memory"
plan            dp=2 tp=1 pp=1 dp.shares=2/1
peak memory     2.03 GiB of 2.03 GiB on rank 0
## Numbers of auto that are long stay a word in the table.
$ heddle plan gpt2:layers=45,hidden=64,heads=4,vocab=512 --seq 64 --batch 32 --train --machine "1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 + 1x1 v100 + 1x1 a100 ib=100Gb/s" --strategy 'dp=1 tp=1 pp=18 mb=8 layers=auto skip=0' --top 1 | grep -E '^1|^auto|layers  '
   pp  mb  layers      time         samples    memory  limited by
1  18   8  auto    23.18 ms  1.00x  1,381/s  31.5 MiB  bubble 69 %
auto resolved  dp=1 tp=1 pp=18 mb=8 layers=2/3/2/3/2/3/2/3/2/3/2/3/2/3/2/3/2/3
layers         2/3/2/3/2/3/2/3/2/3/2/3/2/3/2/3/2/3
v100        9  32 samples, 2 layers         39.5 %    28.8 %         0.0 %  71.2 %     21.9 MiB  28.8 GiB                      4.8 %
a100        9  32 samples, 3 layers         60.5 %    32.6 %         0.0 %  67.4 %     31.5 MiB  72.0 GiB                      6.3 %
