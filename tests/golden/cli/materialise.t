## long: .ci/run has it without sanitizers
## How values get where they are needed: every way computes the same.
$ for m in inter intra p2p; do heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 8 --train --strategy "dp=2 tp=2 pp=2 mb=2 zero=3 sp materialise=$m" | head -5; done
model      gpt2:layers=2,hidden=32,heads=4,vocab=64
plan       dp=2 tp=2 pp=2 mb=2 zero=3 sp
results    57
elements   120,577
worst      1.22794e-12
model      gpt2:layers=2,hidden=32,heads=4,vocab=64
plan       dp=2 tp=2 pp=2 mb=2 zero=3 sp materialise=intra
results    57
elements   120,577
worst      1.22794e-12
model      gpt2:layers=2,hidden=32,heads=4,vocab=64
plan       dp=2 tp=2 pp=2 mb=2 zero=3 sp materialise=p2p
results    57
elements   120,577
worst      1.22794e-12
## What one rank does: between stages pieces that are gathered there, then whole tensors, then no collective at all.
$ for m in inter intra p2p; do echo $m; heddle lower gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 64 --seq 512 --strategy "tp=2 pp=2 materialise=$m" --machine '2x2 v100 ib=100Gb/s' --rank 0 | grep -o ' = \(all_[a-z]*\|reduce_scatter\|exchange\|send\) .*\|^  send .*' | sed 's/%[a-z0-9.]*/%x/' | sort | uniq -c; done
inter
      1   send %x {gives="2 [0-32,*,*]"} !pp.f0 plan
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^19 : f32[64,512,32] loc("layer/attention")
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^26 : f32[64,512,32] loc("layer/mlp")
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^31 : f32[512,32] loc("embedding")
intra
      1   send %x {gives="2 [*,*,*]"} !pp.f0 plan
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^19 : f32[64,512,32] loc("layer/attention")
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^26 : f32[64,512,32] loc("layer/mlp")
      1  = all_reduce %x {peers=[0, 1]} over tp plan ^31 : f32[512,32] loc("embedding")
p2p
      1   send %x {gives="2 [*,*,*]"} !pp.f0 plan
      1  = exchange %x {peers=[0, 1]} over tp plan ^19 : f32[64,512,32] loc("layer/attention")
      1  = exchange %x {peers=[0, 1]} over tp plan ^26 : f32[64,512,32] loc("layer/mlp")
      1  = exchange %x {peers=[0, 1]} over tp plan ^31 : f32[512,32] loc("embedding")
## A plan file says it, and is read back.
$ heddle plan gpt2:layers=2,hidden=32,heads=4,vocab=64 --machine '1x4 v100' --batch 8 --seq 8 --train --strategy "tp=4 materialise=p2p" -o plan.yaml >/dev/null; grep materialise plan.yaml; heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 8 --plan plan.yaml | head -3
# heddle plan gpt2:layers=2,hidden=32,heads=4,vocab=64 --machine '1x4 v100' --batch 8 --seq 8 --train --strategy 'tp=4 materialise=p2p' -o plan.yaml
name: "dp=1 tp=4 pp=1 materialise=p2p"
materialise: p2p
model      gpt2:layers=2,hidden=32,heads=4,vocab=64
plan       dp=1 tp=4 pp=1 materialise=p2p
results    57
$ sed 's/^materialise: p2p/materialise: nccl/' plan.yaml > other.yaml; heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 8 --plan other.yaml
error[E0501]: `materialise` is inter, intra or p2p
  --> other.yaml:16:14
  16 | materialise: nccl
     |              ^
[1]
$ heddle verify mlp-xs --batch 8 --strategy "tp=2 materialise=nccl"
error[E0509]: materialise: unknown value 'nccl'
  --> --strategy:1:18
   1 | tp=2 materialise=nccl
     |                  ^
  hint: materialise takes inter, intra or p2p
[2]
## Summands that are sent one by one have no function in torch; pieces have.
$ heddle export mlp-xs --batch 8 --strategy "tp=2 materialise=p2p" -o prog
error[E0514]: summands that are sent one by one cannot be exported
  --> mlp-xs
  hint: materialise=intra sums by collectives
[1]
## In a search where it is named alone.
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --machine '2x2 v100 ib=100Gb/s' --batch 8 --seq 32 --train --strategy "dp=1 tp=2 pp=2 mb=4 materialise=*" | sed -n '/^rank/,/^ *3/p' | cut -c1-100
ranks         4
batch         8
memory limit  28.8 GiB
step          training

   tp  pp  mb  recompute  materialise      time         samples    memory  limited by
1   2   2   4  none       p2p          5.020 ms  1.00x  1,594/s  1.47 MiB  bubble 22 %
2   2   2   4  none       inter        5.091 ms  1.01x  1,571/s  1.47 MiB  bubble 22 %
3   2   2   4  none       intra        5.091 ms  1.01x  1,571/s  1.47 MiB  bubble 22 %
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --machine '1x2 v100' --batch 8 --seq 32 --strategy "tp=2 materialise=p2p" | grep exchange
exchange       communication      9  86.46 us  13.4 %
