## long: .ci/run has it without sanitizers
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x1+1x2 mb=8 v=2 schedule=interleaved" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=2x1+1x2 mb=8 v=2 schedule=interleaved
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x1+1x2 mb=4 schedule=zb-h1" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=2x1+1x2 mb=4 schedule=zb-h1
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x2+1x2 mb=4 schedule=gpipe overlap=none buffers=rendezvous" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=2x2+1x2 mb=4 schedule=gpipe overlap=none buffers=rendezvous
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x2x2+1x2 mb=4 sp zero=3 tables=whole" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=2x2x2+1x2 mb=4 zero=3 sp tables=whole
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=1x1x2+2x1+1x1x2 mb=6 zero=2 layers=equal recompute=full" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=1 replicas=1x1x2+2x1+1x1x2 mb=6 zero=2 recompute=full layers=equal
verdict    equal: the plan computes what the model computes
$ heddle verify examples/batchnorm.heddle --train --strategy "replicas=1x1x2+1x1x2 mb=2" | grep "^plan\|^verdict"
plan        dp=1 tp=1 pp=1 replicas=1x1x2+1x1x2 mb=2
verdict     equal: the plan computes what the model computes
$ heddle verify examples/batchnorm.heddle --train --strategy "replicas=1x1+1x1x2 mb=2 bn=sync" | grep "^plan\|^verdict"
plan        dp=1 tp=1 pp=1 replicas=1x1+1x1x2 mb=2 bn=sync
verdict     equal: the plan computes what the model computes
## Chunks of the one that has stages, layers by time; microbatches of one size.
$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --strategy "replicas=2x2+1x2 mb=12 v=2 schedule=interleaved dp.shares=auto" | sed -n "2p;7,8p"
plan            dp=1 tp=1 pp=1 replicas=2x2+1x2 mb=12 v=2 schedule=interleaved dp.shares=2/1
layers          6/6/7/5
time per step   2.073 s
$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --strategy "replicas=2x2+1x2 mbs=8 dp.shares=7/5" | sed -n "2p;7,8p"
plan            dp=1 tp=1 pp=1 replicas=2x2+1x2 mb=12 dp.shares=7/5
layers          13/11
time per step   2.077 s
## States lie on the first replica; gradients, and copies of weights, in pieces on the data ranks of each.
$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --optimizer adam --strategy "replicas=1x1x4+1x1x2 mb=6 zero=0" | sed -n "/^ranks  param/,/^$/ p"
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      1.25 GiB   1.25 GiB   2.50 GiB     4.77 GiB    238 MiB            0 B  10.0 GiB
4-5           0 B   1.25 GiB        0 B     10.8 GiB    477 MiB       3.17 MiB  12.5 GiB

$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --optimizer adam --strategy "replicas=1x1x4+1x1x2 mb=6 zero=1" | sed -n "/^ranks  param/,/^$/ p"
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      1.25 GiB   1.25 GiB    639 MiB     4.77 GiB    238 MiB            0 B  8.13 GiB
4-5           0 B   1.25 GiB        0 B     10.8 GiB    477 MiB       3.17 MiB  12.5 GiB

$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --optimizer adam --strategy "replicas=1x1x4+1x1x2 mb=6 zero=2" | sed -n "/^ranks  param/,/^$/ p"
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3      1.25 GiB    320 MiB    639 MiB     4.77 GiB    238 MiB            0 B  7.19 GiB
4-5           0 B    639 MiB        0 B     10.8 GiB    477 MiB       3.17 MiB  11.9 GiB

$ heddle sim bert-large --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --batch 96 --train --optimizer adam --strategy "replicas=1x1x4+1x1x2 mb=6 zero=3" | sed -n "/^ranks  param/,/^$/ p"
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3       320 MiB    320 MiB    639 MiB     4.77 GiB    238 MiB        120 KiB  6.25 GiB
4-5           0 B    639 MiB        0 B     10.2 GiB    477 MiB       1.70 MiB  11.3 GiB

## What does not go with them, and why.
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=4 schedule=chimera"
error[E0509]: schedule=chimera does not go with replicas: it runs two replicas of its own on the same places
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=4 schedule=chimera
     |                       ^
  hint: schedule=1f1b, or leave out replicas
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=4 schedule=x.csv"
error[E0509]: schedule=x.csv does not go with replicas: a file says the places of one pipeline, and each replica has places of its own
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=4 schedule=x.csv
     |                       ^
  hint: the name of a schedule, such as schedule=1f1b
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=4 tp.stages=2/1"
error[E0509]: tp.stages=2/1 does not go with replicas: each replica says its tensor ranks itself
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=4 tp.stages=2/1
     |                       ^
  hint: leave it out, and say them in replicas: stages x tensor ranks
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x2 mb=4 tp.shares=2/1"
error[E0509]: tp.shares=2/1 does not go with replicas: it is one list of tensor ranks, and each replica has tensor ranks of its own
  --> --strategy:1:23
   1 | replicas=2x1+1x2 mb=4 tp.shares=2/1
     |                       ^
  hint: tp.shares=equal
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=4 places=2/1"
error[E0509]: places=2/1 does not go with replicas: replicas have the ranks of the machine in their order
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=4 places=2/1
     |                       ^
  hint: leave it out, or name the replicas in another order
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=4 layers=4/2"
error[E0509]: layers=4/2 does not go with replicas: each replica has stages of its own, which its layers are dealt out over
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=4 layers=4/2
     |                       ^
  hint: layers=equal, or leave it out: by time
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=1x1+1x1 mb=4 sp"
error[E0509]: sp needs a replica of several tensor ranks; got one in each
  --> --strategy:1:23
   1 | replicas=1x1+1x1 mb=4 sp
     |                       ^
  hint: use a replica of two tensor ranks, such as 1x2, or leave out sp
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=1x1+1x1 mb=4 zero=1"
error[E0509]: zero=1 needs a replica of several data ranks; got one in each
  --> --strategy:1:23
   1 | replicas=1x1+1x1 mb=4 zero=1
     |                       ^
  hint: use a replica of two data ranks, such as 1x1x2, or leave out zero
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=1x2+1x1 mb=4 schedule=gpipe"
error[E0509]: schedule=gpipe needs a replica of several stages; got one in each
  --> --strategy:1:23
   1 | replicas=1x2+1x1 mb=4 schedule=gpipe
     |                       ^
  hint: use a replica of two stages, such as 2x1, or leave out schedule
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=1x2+1x1x2 mbs=3"
error[E0509]: mbs=3: data ranks do not have microbatches of one size (replicas)
  --> --strategy:1:20
   1 | replicas=1x2+1x1x2 mbs=3
     |                    ^
  hint: give the number of microbatches instead: mb
[2]
$ heddle verify gpt2 --batch 24 --train --strategy "replicas=2x1+1x1 mb=2 v=2"
error[E0501]: 1f1b runs one chunk on each place; got 2
  --> --strategy:1:23
   1 | replicas=2x1+1x1 mb=2 v=2
     |                       ^
  hint: v=1, or schedule=interleaved
[1]
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 15 --train --strategy "replicas=2x2+1x2 mb=4 sp"
error[E0502]: sequence length 15 is not divisible by 2, a degree of tp.stages or replicas
  --> gpt2
  hint: --seq 16, or leave out sp
[1]
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=1x1x4+1x1 mb=24"
error[E0502]: mb=24: a microbatch of 1 sample is not divisible by the 4 data ranks of replica 1
  --> --strategy:1:1
   1 | replicas=1x1x4+1x1 mb=24
     | ^
  hint: mb=6
[1]
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=1x1x5+1x1 mb=4"
error[E0502]: mb=4: a microbatch of 6 samples is not divisible by the 5 data ranks of replica 1
  --> --strategy:1:1
   1 | replicas=1x1x5+1x1 mb=4
     | ^
  hint: choose a batch that is a multiple of 20
[1]
$ heddle verify gpt2:layers=6,hidden=64,heads=4,vocab=256 --batch 24 --seq 16 --train --strategy "replicas=2x1+9x1 mb=4"
error[E0502]: 9 pipeline stages, but the model has only 7 blocks and matmuls
  --> gpt2
  hint: pp=7 at most
  note: this is replica 2 of replicas
    --> --strategy:1:1
     1 | replicas=2x1+9x1 mb=4
       | ^
[1]
$ heddle verify examples/batchnorm.heddle --train --strategy "replicas=1x1+1x1x2 mb=2"
error[E0509]: replicas: batch norm would take its statistics over larger parts of the batch in replicas of fewer data ranks
  --> --strategy:1:1
   1 | replicas=1x1+1x1x2 mb=2
     | ^
  hint: bn=sync takes them over whole microbatches; or give all replicas as many data ranks
[2]
$ heddle verify mlp-xs:layers=2,hidden=16 --batch 16 --train --strategy "replicas=$(seq -f 1x%g -s+ 16) mb=16" 2>&1 | head -1
error[E0901]: replicas are of 16 make-ups; at most 15 are possible
$ heddle verify mlp-xs:layers=2,hidden=16 --batch 255 --train --strategy "replicas=$(yes 1x1 | head -255 | paste -sd+) mb=255" 2>&1 | head -1
error[E0901]: 255 replicas; at most 254 are possible
## Which of them a search tried, and what became of each.
$ heddle plan gpt2 --batch 48 --train --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=1 replicas=* recompute=none mb=6" --top 1 --threads 1 | sed -n "/^certif/,/^$/ p;/^replicas tried/,/^$/ p"
certificate  34 plans: 1 fit, 0 too large, 15 too slow, 0 impossible, 18 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 15 on time
             on ranks: all, 0 to 3, 4 to 5
             no plan can be faster than 491.1 ms, its matmuls on all devices at their best rates: the winner takes 62.4 % more
             other values of some choices are not in it; --strategy 'attention=*' has them, --what-if tries each

replicas tried     plans  simulated      best  at least  why not
1x1x2+1x1x2+1x1x2      8          1  797.4 ms  797.4 ms
1x1x4+1x1x2            8          0            806.8 ms  its bound is above the last plan that is kept: 797.4 ms
1x2x2+1x2              8          0            825.1 ms  its bound is above the last plan that is kept: 797.4 ms
1x4+1x2                2          0            951.8 ms  its bound is above the last plan that is kept: 797.4 ms
2x2+1x2                2          0            852.5 ms  its bound is above the last plan that is kept: 797.4 ms
... and 3 more

$ heddle plan gpt2 --batch 48 --train --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=1 replicas=1x4+1x2,1x5+1x1,2x2+1x2,1x1+1x1 recompute=none mb=6 zero=0" --top 1 --threads 1 | sed -n "/^certif/,/^$/ p;/^replicas tried/,/^$/ p"
certificate  9 plans: 2 fit, 0 too large, 2 too slow, 2 impossible, 3 equal to another;
             2 simulated, 0 ruled out by bounds on memory, 2 on time
             on ranks: all, 0 to 3, 4 to 5
             no plan can be faster than 491.1 ms, its matmuls on all devices at their best rates: the winner takes 94.6 % more
             other values of some choices are not in it; --strategy 'attention=*' has them, --what-if tries each
impossible   2 such as dp=1 tp=1 pp=1 replicas=1x5+1x1 mb=6:
             attn.qkv of 768 x 2304 cannot be split 5 ways: 2304 = 3 x 12 x 64, and 12 is not divisible by 5

replicas tried  plans  simulated      best  at least  why not
1x4+1x2             2          1  955.9 ms  955.9 ms
2x2+1x2             2          1  963.8 ms  857.4 ms
1x1+1x1             3          0             1.282 s  its bound is above the last plan that is kept: 955.9 ms
1x5+1x1             2          0                      attn.qkv of 768 x 2304 cannot be split 5 ways: 2304 = 3 x 12 x 64, and 12 is not divisible by 5

$ heddle plan gpt2 --batch 48 --train --machine "2x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=1 replicas=1x4+1x2,1x5+1x1,1x1+1x1 recompute=none mb=6 zero=0" --top 1 --threads 1 --json | sed -n "/replicas_tried/,/\]/ p"
  "replicas_tried": [
    {"replicas": "1x4+1x2", "plans": 2, "simulated": 1, "time_ps": 955890533100, "period_ps": 955890533100, "bound_ps": 955890533100, "reason": null},
    {"replicas": "1x1+1x1", "plans": 3, "simulated": 0, "time_ps": null, "period_ps": null, "bound_ps": 1281969299128, "reason": "its bound is above the last plan that is kept: 955.9 ms"},
    {"replicas": "1x5+1x1", "plans": 2, "simulated": 0, "time_ps": null, "period_ps": null, "bound_ps": null, "reason": "attn.qkv of 768 x 2304 cannot be split 5 ways: 2304 = 3 x 12 x 64, and 12 is not divisible by 5"}
  ],
$ heddle plan gpt2 --batch 8 --train --machine laptop --strategy "mb=1 replicas=*" --top 1 --threads 1 | grep "^replicas"
replicas     none tried: * is one of each node or kind of device, of 2 to 8, on devices of several kinds
$ heddle plan mlp-xs:layers=2 --batch 18 --train --machine "1x1 v100 + 8x1 a100 ib=100Gb/s" --strategy "dp=1 tp=1 pp=1 replicas=* mb=9" --top 1 --threads 1 | sed -n "/^not tried/ p;/^replicas tried/,/^$/ p"
not tried      one for each of 9 nodes: at most 8 replicas are tried
replicas tried  plans  simulated      best  at least  why not
1x1+2x4             6          1  826.4 us  826.4 us
1x1+1x8             6          1  882.5 us  826.4 us
1x1+1x4x2          24          1  894.2 us  826.4 us
1x1+1x1x8          24          0                      mb=9: a microbatch of 2 samples is not divisible by the 8 data ranks of replica 2
1x1+1x2x4          24          0                      mb=9: a microbatch of 2 samples is not divisible by the 4 data ranks of replica 2
... and 2 more

## States lie with the weights, here on the two stages of the first replica: over no data ranks.
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine "1x2 v100 + 1x2 a100 ib=10Gb/s" --strategy "replicas=2x1+1x1x2 mb=8 zero=1" | grep "^plan"
warning[W0101]: zero=1 changes nothing: the plan is the same without it
  --> --strategy:1:25
   1 | replicas=2x1+1x1x2 mb=8 zero=1
     |                         ^
plan            dp=1 tp=1 pp=1 replicas=2x1+1x1x2 mb=8 zero=1
$ heddle sim mlp-xs --batch 64 --train --optimizer adam --machine "1x2 v100 + 1x2 a100 ib=10Gb/s" --strategy "replicas=1x1x2+1x1x2 mb=8 zero=1" | grep "^plan"
plan            dp=1 tp=1 pp=1 replicas=1x1x2+1x1x2 mb=8 zero=1
