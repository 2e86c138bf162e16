## long: .ci/run has it without sanitizers
## The examples of Whale's paper as program text: at most four lines more than the model. Example 1: a pipeline.
$ heddle import mlp-xs:layers=4,hidden=32 --batch 64 -o plain.heddle; sed -e '1i config num_micro_batch = 8' -e '/%6 = call/i replicate 1 {' -e '/%8 = call/i } replicate 1 {' -e '/return %9/i }' plain.heddle > a.heddle; diff plain.heddle a.heddle | grep '^[<>]'
> config num_micro_batch = 8
> replicate 1 {
> } replicate 1 {
> }
$ heddle verify a.heddle --train --devices 8 | head -7
model      a.heddle
plan       scope 1: replicate(1), scope 2: replicate(1); 4 replicas; 8 microbatches
results    9
elements   8,193
worst      6.35975e-14
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ heddle sim a.heddle --train --machine '1x8 a100' | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model           a.heddle
plan            scope 1: replicate(1), scope 2: replicate(1); 4 replicas; 8 microbatches
task graph  strategy      covers                                          virtual devices
scope 1     replicate(1)  instructions 1-2, layers 0-1                    {0} {2} {4} {6}
scope 2     replicate(1)  instructions 3-7 (5-7 in no scope), layers 2-3  {1} {3} {5} {7}

bridge from  to        forward  backward  fused
scope 1      scope 2  8.00 KiB  8.00 KiB  no

$ heddle plan a.heddle --train --machine '1x8 a100' -o - > a.plan; heddle verify a.heddle --plan a.plan | sed -n 7p
verdict    equal: the plan computes what the model computes
$ heddle lower a.heddle --train --devices 2 --rank 1 | sed -n 1p
# rank 1 of 2: @m[rep=0,tg=1,dp1=0]
## Printed with every brace on a line of its own, which reads back the same.
$ heddle import a.heddle -o b.heddle; sed -n '1,2p;/main/,$p' b.heddle; heddle import b.heddle -o - | cmp - b.heddle
config num_micro_batch = 8

func @main(
  %x: f32[64,32],
  %h.0.w: f32[32,32] weight,
  %h.1.w: f32[32,32] weight,
  %h.2.w: f32[32,32] weight,
  %h.3.w: f32[32,32] weight
) -> (f32[64,32]) {
  replicate 1 {
    %6 = call @layer(%x, %h.0.w) : f32[64,32]
    %7 = call @layer(%6, %h.1.w) : f32[64,32]
  }
  replicate 1 {
    %8 = call @layer(%7, %h.2.w) : f32[64,32]
    %9 = call @layer(%8, %h.3.w) : f32[64,32]
  }
  return %9
}
## A training step is another program, and has no annotations.
$ heddle import a.heddle --train -o - | grep -c replicate
0
[1]
## Example 2: features replicated, classes split, on the same devices.
$ heddle import resnet50:vocab=64 --batch 8 --seq 32 -o plain.heddle; sed -e '1i config cluster.colocate_split_and_replicate = true' -e '0,/%269 = /s//replicate all as features {\n  %269 = /' -e 's/^  %290 = matmul/} split all as head {\n&/' -e '/return %291/i }' plain.heddle > a.heddle; diff plain.heddle a.heddle | grep -c '^>'
4
$ heddle verify a.heddle --memory 50MB --train --devices 4 | head -11
model      a.heddle
plan       features: replicate(4), head: split(4)
shrunk     256 -> 8 (stage1.0.conv3[0]), 128 -> 8 (stage2.0.conv1[0]),
           512 -> 8 (stage2.0.conv3[0]), 128 -> 8 (stage2.1.conv1[0]),
           256 -> 8 (stage3.0.conv1[0]), 1024 -> 16 (stage3.0.conv3[0]),
           256 -> 8 (stage3.1.conv1[0]), 512 -> 12 (stage4.0.conv1[0]),
           2048 -> 16 (stage4.0.conv3[0]), 512 -> 16 (stage4.1.conv1[0])
results    323
elements   1,085,265
worst      1.95608e-12
tolerance  1e-09
## Example 3: task graphs that the planner draws.
$ heddle import gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 -o plain.heddle; sed -e '1i config num_task_graph = 2, num_micro_batch = 4, auto_parallel = true' plain.heddle > a.heddle; heddle verify a.heddle --train --devices 4 | head -7
model      a.heddle
plan       stage 0: replicate(1), stage 1: replicate(1); 2 replicas; 4 microbatches
results    105
elements   171,393
worst      4.8429e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes
## Example 4: M6-10B.
$ heddle import m6-10b:layers=4,hidden=32,heads=2,vocab=64 --batch 35 --seq 8 -o plain.heddle; sed -e '1i config num_task_graph = 8, num_micro_batch = 35' plain.heddle > a.heddle; heddle verify a.heddle --train --optimizer adafactor | head -7
model      a.heddle
plan       stage 0: replicate(1), stage 1: replicate(1), stage 2: replicate(1), stage 3: replicate(1), stage 4: replicate(1), stage 5: replicate(1), ... (8 task graphs); 35 microbatches
results    476
elements   451,889
worst      1.73188e-12
tolerance  1e-09
verdict    equal: the plan computes what the model computes
## Example 5: experts, inside a block.
$ heddle import moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64 --batch 8 --seq 8 -o plain.heddle; sed -e '1i default replicate all' -e '/= moe_dispatch/i split all as experts {' -e '/= moe_combine/a }' plain.heddle > a.heddle; diff plain.heddle a.heddle | grep '^[<>]'
> default replicate all
> split all as experts {
> }
$ heddle verify a.heddle --memory 50MB --train --devices 4 | head -11
model      a.heddle
plan       default: replicate(4), experts: split inside
results    53
elements   218,753
worst      4.45266e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result                  elements  largest difference     relative
wte.grad                   2,048         2.77556e-17  4.45266e-13
h.1.attn.qkv.grad          3,072         4.16334e-17  3.48371e-13
$ heddle lower a.heddle --devices 4 --rank 0 | grep -o '= .*over dp4'
= all_to_all %40 {peers=[0, 1, 2, 3]} over dp4
= all_to_all %44 {peers=[0, 1, 2, 3]} over dp4
## The same words in a file as in the text: the file's settings and its default are stronger, and its scopes are more scopes.
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2}' > a.yaml; heddle verify a.heddle --annotate a.yaml --devices 4 2>&1 | head -3
error[E0512]: `experts` is part of blocks that `default` computes on 2 devices; it cannot be split 4 ways
  --> a.heddle:42:1
  42 | split all as experts {
$ echo 'heddle-annotate: 1\nscopes: [{match: "*experts", split: all}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml --devices 4 2>&1 | head -3
error[E0512]: `*experts` is part of blocks that `default` computes on 1 device; it cannot be split 4 ways
  --> a.yaml:2:37
   2 | scopes: [{match: "*experts", split: all}]
$ sed -e '1i config num_micro_batch = 2' plain.heddle > c.heddle; echo 'heddle-annotate: 1\nconfig: {num_micro_batch: 4}' > a.yaml; heddle verify c.heddle --annotate a.yaml --devices 2 | sed -n 2p; heddle verify c.heddle --devices 2 | sed -n 2p
plan       default: replicate(1); 2 replicas; 4 microbatches
plan       default: replicate(1); 2 replicas; 2 microbatches
## A strategy leaves them out, and says so. Otherwise nothing is searched.
$ heddle import mlp-xs:layers=2,hidden=32 --batch 64 -o plain.heddle; sed -e '/%4 = call/i split all {' -e '/%5 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle --strategy dp=2 2>&1 | grep 'warning\|^plan'
warning[W0101]: the annotations of the program are left out: the strategy decides
plan       dp=2 tp=1 pp=1
$ heddle plan a.heddle --machine '1x2 a100' --top 3
error[E0801]: --top does not apply to a model with annotations: nothing is searched
  hint: leave it out, or search without the annotations: --strategy ''
[2]
$ heddle plan a.heddle --machine '1x2 a100' --strategy 'tp=1 pp=1' 2>&1 | grep 'warning\|winner'
warning[W0101]: the annotations of the program are left out: the strategy decides
winner       dp=2 tp=1 pp=1
$ heddle plan a.heddle --machine '1x2 a100' | sed -n '1,2p;/^task graph/,/^$/p'
model          a.heddle
plan           scope 1: split(2)
task graph  strategy  covers                        virtual devices
scope 1     split(2)  instructions 1-2, layers 0-1  {0,1}

## A function that stands in a scope as a whole is a task graph wherever it is called.
$ heddle import mlp-xs:layers=2,hidden=32 --batch 64 -o plain.heddle; sed -e '/%3 = matmul/i split all {' -e '/%4 = relu/a }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2 | head -2
model      a.heddle
plan       scope 1: split(2)
$ sed -e '/%4 = relu/i replicate 2 {' -e '/%4 = relu/a }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: `scope 1` is part of a repeated block, and only a split can be
  --> a.heddle:3:1
   3 | replicate 2 {
     | ^
  hint: replicate whole blocks: by `layers`, by the name of a function, or by `default`
[1]
$ sed -e '/%4 = call/i replicate 2 { split 2 {' -e '/%4 = call/a } }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2 2>&1 | grep -E '^(warning|model|plan)'
warning[W0505]: `scope 1` also takes block 1, which no scope names
model      a.heddle
plan       scope 2: split(2), scope 1: replicate(2)
## Mistakes.
$ sed -e '/%4 = call/i split 2 { replicate 2 {' -e '/%4 = call/a } }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: replicate inside split cannot be nested
  --> a.heddle:8:11
   8 | split 2 { replicate 2 {
     |           ^
  note: the scope around it
    --> a.heddle:8:1
     8 | split 2 { replicate 2 {
       | ^
  hint: only a split may be inside a replicate; nested data parallelism follows from the number of devices
[1]
$ sed -e '/%4 = call/i split 2 {' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: the function has no end: its '}' is missing
  --> a.heddle:7:98
   7 | ...nc @main(%x: f32[64,32], %h.0.w: f32[32,32] weight, %h.1.w: f32[32,32] weight) -> (f32[64,32]) {
     |                                                                                                   ^
[1]
$ sed -e '/%4 = call/i split 2 { }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: a scope without instructions
  --> a.heddle:8:1
   8 | split 2 { }
     | ^
[1]
$ sed -e '/%4 = call/i split 0 {' -e '/%4 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: 0 is outside 1 to 65535
  --> a.heddle:8:7
   8 | split 0 {
     |       ^
[1]
$ sed -e '/%4 = call/i split many {' -e '/%4 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: expected a number of devices, `all`, or '{', found 'many'
  --> a.heddle:8:7
   8 | split many {
     |       ^
[1]
$ sed -e '/%4 = call/i replicate 3 {' -e '/%4 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle --devices 4
warning[W0505]: `scope 1` also takes block 1, which no scope names
  --> a.heddle:8:1
   8 | replicate 3 {
     | ^
  hint: name them in a scope, or say what is in none: default: {replicate: 3}
error[E0512]: 4 devices cannot be divided into replicas of the model of 3
  --> a.heddle:8:1
   8 | replicate 3 {
     | ^
  hint: use 3 devices, or 6
[1]
$ sed -e '1i config num_micro_batches = 8' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: config: unknown key `num_micro_batches`
  --> a.heddle:1:8
   1 | config num_micro_batches = 8
     |        ^
  hint: did you mean `num_micro_batch`?
[1]
$ sed -e '1i config num_micro_batch = many' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: pipeline.num_micro_batch takes an integer, 1 or more; got 'many'
  --> a.heddle:1:8
   1 | config num_micro_batch = many
     |        ^
[1]
$ sed -e '1i config num_micro_batch = 2, pipeline.num_micro_batch = 4' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: pipeline.num_micro_batch is given twice
  --> a.heddle:1:29
   1 | config num_micro_batch = 2, pipeline.num_micro_batch = 4
     |                             ^
[1]
$ sed -e '1i default split all' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: expected `replicate`: what stands in no scope is replicated, found 'split'
  --> a.heddle:1:9
   1 | default split all
     |         ^
[1]
$ sed -e '1i default replicate all\ndefault replicate 2' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0202]: a second default
  --> a.heddle:2:9
   2 | default replicate 2
     |         ^
[1]
$ sed -e '1i default replicate all' plain.heddle > a.heddle; heddle verify a.heddle
error[E0512]: `all` needs the number of devices
  --> a.heddle:1:9
   1 | default replicate all
     |         ^
  hint: add --machine or --devices; a file of annotations may have devices: 8
[1]
$ sed -e '/%4 = call/i split 2 {' -e '/%4 = call/a }' plain.heddle > a.heddle; echo 'heddle-annotate: 1\nscopes: [{layers: "0", replicate: 2}]' > a.yaml; heddle verify a.heddle --annotate a.yaml --devices 2
error[E0512]: scopes `scope 1` and `layer 0` overlap: both cover instruction 1 of main (call)
  --> a.yaml:2:19
   2 | scopes: [{layers: "0", replicate: 2}]
     |                   ^
  note: the other scope
    --> a.heddle:8:1
     8 | split 2 {
       | ^
  note: here in the model
    --> a.heddle:9:8
     9 |   %4 = call @layer(%x, %h.0.w) : f32[64,32]
       |        ^
  hint: task graphs are disjoint; nest a split in a replicate with `scopes`
[1]
$ sed -e '1i func @unused(%x: f32[2]) -> (f32[2]) {\nsplit 2 {\n  %y = neg %x\n}\n  return %y\n}' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0512]: `scope 1` matches nothing in the model
  --> a.heddle:2:1
   2 | split 2 {
     | ^
[1]
## Shares that are said; the same in a file.
$ heddle import mlp-xs:layers=2,hidden=32 --batch 64 -o plain.heddle; sed -e '1i replicas [3, 1]' -e '/%4 = call/i replicate 1 {' -e '/%5 = call/i } split 2 shares [5, 3] {' -e '/%5 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle --train --devices 6 | sed -n '2p;7p'; heddle import a.heddle -o - | grep 'replicas\|split'
plan       scope 1: replicate(1), scope 2: split(2) 5/3; 2 replicas 3/1
verdict    equal: the plan computes what the model computes
replicas [3, 1]
  split 2 shares [5, 3] {
$ echo 'heddle-annotate: 1\nreplicas: [3, 1]\nscopes: [{layers: "0", replicate: 1}, {layers: "1", split: 2, shares: [5, 3]}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml --train --devices 6 | sed -n '2p;7p'
plan       layer 0: replicate(1), layer 1: split(2) 5/3; 2 replicas 3/1
verdict    equal: the plan computes what the model computes
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0", replicate: 2, shares: [5, 3]}, {layers: "1", replicate: 2}]' > a.yaml; heddle plan plain.heddle --annotate a.yaml --train --machine '1x4 a100' -o - | grep '^axes'
axes: {rep: 1, dp2: [5, 3], dp2.1: 2}
## On devices of several kinds they are found; equal ones are slower.
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0-11", replicate: 2}, {layers: "12-23", replicate: 2}]\nconfig: {num_micro_batch: 4, gradient_checkpoint.type: auto}' > a.yaml; heddle sim bert-large --batch 512 --seq 128 --train --annotate a.yaml --machine '1x8 v100 + 1x8 p100 ib=50Gb/s' | sed -n '2p;/time per step/p'; sed 's/^config/replicas: equal\nconfig/' a.yaml > b.yaml; heddle sim bert-large --batch 512 --seq 128 --train --annotate b.yaml --machine '1x8 v100 + 1x8 p100 ib=50Gb/s' | sed -n '2p;/time per step/p'
plan            layers 0-11: replicate(2), layers 12-23: replicate(2); 4 replicas 5/5/3/3; 4 microbatches
time per step   2.003 s
plan            layers 0-11: replicate(2), layers 12-23: replicate(2); 4 replicas; 4 microbatches
time per step   2.515 s
$ echo 'heddle-annotate: 1\ndefault: {replicate: 1}' > a.yaml; heddle sim bert-large --batch 512 --seq 128 --train --annotate a.yaml --machine '1x8 v100 + 1x8 p100 ib=50Gb/s' | sed -n '2p;/time per step/p'; heddle sim bert-large --batch 512 --seq 128 --train --strategy 'dp=16 dp.shares=auto' --machine '1x8 v100 + 1x8 p100 ib=50Gb/s' | sed -n '2p;/time per step/p'
plan            default: replicate(1); 16 replicas 41/41/41/41/41/41/41/41/23/23/23/23/23/23/23/23
time per step   1.258 s
plan            dp=16 tp=1 pp=1 dp.shares=41x8/23x8
time per step   1.258 s
$ heddle sim resnet50:vocab=100000 --batch 256 --train --annotate examples/annotations/classes.yaml --machine '1x8 v100 + 1x8 p100 ib=50Gb/s' | sed -n '2p;/time per step/p'
plan            features: replicate(16) 5/5/5/5/5/5/5/5/3/3/3/3/3/3/3/3, head: split(16) 3/3/3/3/3/3/3/3/2/2/2/2/2/2/2/2
time per step   125.5 ms
## Shares that do not go together.
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0-1", split: 2, shares: [5, 3, 1]}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0512]: shares of `layers 0-1`: 3 parts, but there are 2 devices
  --> a.yaml:2:44
   2 | scopes: [{layers: "0-1", split: 2, shares: [5, 3, 1]}]
     |                                            ^
  hint: one part for each
[1]
$ echo 'heddle-annotate: 1\nreplicas: [1, 2]\nscopes: [{layers: "0-1", split: 2}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml --devices 2
error[E0512]: replicas: 2 parts, but there is 1 replica of the model
  --> a.yaml:2:11
   2 | replicas: [1, 2]
     |           ^
  hint: one part for each
[1]
$ echo 'heddle-annotate: 1\nreplicas: [1, 2]\nscopes: [{layers: "0-1", replicate: 2, shares: [1, 3]}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml --devices 4
error[E0512]: shares of `layers 0-1`: replicas have unequal shares of the batch already
  --> a.yaml:3:48
   3 | scopes: [{layers: "0-1", replicate: 2, shares: [1, 3]}]
     |                                                ^
  note: these
    --> a.yaml:2:11
     2 | replicas: [1, 2]
       |           ^
  hint: equal shares of the one or of the other
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2, shares: auto}' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0512]: shares of `default`: `auto` needs a machine
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: auto}
     |                                 ^
  hint: add --machine, or say the parts, such as [3, 1]
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2, shares: [4, 3]}' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0502]: batch 64 is not divisible by 7 (7 shares of `default`)
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: [4, 3]}
     |                                 ^
  note: the batch is the first extent of the first input
    --> plain.heddle:7:6
     7 | func @main(%x: f32[64,32], %h.0.w: f32[32,32] weight, %h.1.w: f32[32,32] weight) -> (f32[64,32])...
       |      ^
  hint: shares: [37, 27], or a batch that is a multiple of 7
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2, shares: [4, 0]}' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0512]: a share is an integer, 1 to 65535
  --> a.yaml:2:37
   2 | default: {replicate: 2, shares: [4, 0]}
     |                                     ^
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2, shares: most}' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0512]: shares are `auto`, `equal`, or parts such as [5, 3]
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: most}
     |                                 ^
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0-1", split: 2, shares: [4, 3]}]' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0502]: split of `layers 0-1`: w of 32 x 32 cannot be split 7 ways: 32 is not divisible by 7
  --> a.yaml:2:44
   2 | scopes: [{layers: "0-1", split: 2, shares: [4, 3]}]
     |                                            ^
  note: here in the model
    --> plain.heddle:2:8
     2 |   %3 = matmul %x, %w : f32[64,32]
       |        ^
  hint: shares: equal
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2, shares: [3, 1]}' > a.yaml; heddle verify examples/batchnorm.heddle --train --annotate a.yaml
error[E0512]: shares of `default`: batch norm would take its statistics over unequal parts of the batch
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: [3, 1]}
     |                                 ^
  hint: equal shares
[1]
$ sed -e '1i replicas many' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: expected `auto`, `equal`, or shares such as [5, 3], found 'many'
  --> a.heddle:1:10
   1 | replicas many
     |          ^
[1]
$ sed -e '1i default replicate 2 shares [1, 0]' plain.heddle > a.heddle; heddle verify a.heddle --devices 2
error[E0201]: 0 is outside 1 to 65535
  --> a.heddle:1:32
   1 | default replicate 2 shares [1, 0]
     |                                ^
[1]
## Scopes of one name in scopes of other names are other task graphs, on the devices around them.
$ heddle import mlp-xs:layers=4,hidden=32 --batch 64 -o plain.heddle; sed -e '/%6 = call/i replicate 2 as a { split 2 as s {' -e '/%6 = call/a }' -e '/%7 = call/a } replicate 2 as b { split 2 as s {' -e '/%8 = call/a }' -e '/%9 = call/a }' plain.heddle > a.heddle; heddle sim a.heddle --machine '1x4 a100' | sed -n '/^task graph/,/^$/p'; heddle verify a.heddle --train --devices 8 | grep verdict
task graph  strategy      covers                   virtual devices
s           split(2)      instructions 1, layer 0  {0,1}
a           replicate(2)  instructions 2, layer 1  {0,1}
s           split(2)      instructions 3, layer 2  {2,3}
b           replicate(2)  instructions 4, layer 3  {2,3}

verdict    equal: the plan computes what the model computes
## A scope that has nothing of its own gives its devices to what lies inside.
$ sed -e '/%6 = call/i replicate 4 as a { split as s {' -e '/%9 = call/a } }' plain.heddle > a.heddle; heddle verify a.heddle | sed -n '2p;7p'
plan       s: split(4)
verdict    equal: the plan computes what the model computes
$ sed -e '/%6 = call/i replicate 4 as a { split 2 as s {' -e '/%9 = call/a } }' plain.heddle > a.heddle; heddle verify a.heddle
error[E0512]: `s` takes 2 devices, but `a`, whose devices it shares, has 4
  --> a.heddle:14:20
  14 | replicate 4 as a { split 2 as s {
     |                    ^
  note: on these devices
    --> a.heddle:14:1
    14 | replicate 4 as a { split 2 as s {
       | ^
  hint: split: 4
[1]
$ sed -e '/%6 = call/i replicate 2 shares [3, 1] as a {' -e '/%6 = call/a } replicate 1 as b {' -e '/%8 = call/i } replicate 2 shares [1, 3] as a {' -e '/%9 = call/a }' plain.heddle > a.heddle; heddle verify a.heddle
error[E0512]: scopes named `a` are one task graph, and have other shares
  --> a.heddle:18:22
  18 | } replicate 2 shares [1, 3] as a {
     |                      ^
  note: the first of them
    --> a.heddle:14:20
    14 | replicate 2 shares [3, 1] as a {
       |                    ^
  hint: the same shares, or another name
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: all}\nscopes: [{match: "*experts", split: all, shares: [7, 1]}]' > a.yaml; heddle verify moe-8x125m:layers=1 --annotate a.yaml --devices 2
error[E0512]: shares of `*experts`: a split inside a block has those of the task graph around it
  --> a.yaml:3:50
   3 | scopes: [{match: "*experts", split: all, shares: [7, 1]}]
     |                                                  ^
  hint: leave them out; they are equal
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0-1", replicate: 1}]\nconfig: {num_task_graph: 2}' > a.yaml; heddle verify plain.heddle --annotate a.yaml
error[E0512]: a scope cannot be combined with automatic task graphs
  --> a.yaml:2:10
   2 | scopes: [{layers: "0-1", replicate: 1}]
     |          ^
  note: pipeline.num_stages is 2
    --> a.yaml:3:26
     3 | config: {num_task_graph: 2}
       |                          ^
  hint: leave out the scopes, or pipeline.num_stages
[1]
$ sed -e '1i replicas [3, 1]\nreplicas auto' plain.heddle > a.heddle; heddle verify a.heddle
error[E0202]: a second line of replicas
  --> a.heddle:2:10
   2 | replicas auto
     |          ^
[1]
$ sed -e '1i replicas [3, 1]' plain.heddle > a.heddle; heddle verify a.heddle --strategy dp=2 2>&1 | head -4
warning[W0101]: the annotations of the program are left out: the strategy decides
  --> a.heddle:1:10
   1 | replicas [3, 1]
     |          ^
$ sed -e '/%6 = call/i split 2 {' -e '/return %9/a }' plain.heddle > a.heddle; heddle verify a.heddle
error[E0201]: a scope is open here: its '}' is missing
  --> a.heddle:19:3
  19 |   return %9
     |   ^
  note: it begins here
    --> a.heddle:14:1
    14 | split 2 {
       | ^
[1]
## A later stage has its part of the batch on devices that the stage before has not.
$ echo 'heddle-annotate: 1\nscopes: [{layers: "0-1", replicate: 1}, {layers: "2-3", replicate: 4}]\nconfig: {num_micro_batch: 2}' > a.yaml; heddle lower plain.heddle --annotate a.yaml --devices 5 --rank 4 | grep '= matmul'; heddle verify plain.heddle --train --annotate a.yaml --devices 10 | grep verdict
  %3 = matmul %x, %w ^1 : f32[16{mb},32]
verdict    equal: the plan computes what the model computes
$ heddle lower llama2-7b:layers=4,hidden=64,heads=4,kv_heads=4,head_dim=16 --batch 32 --seq 8 --strategy 'dp=4 tp=1 pp=2 mb=2 tp.stages=4/1 layers=2/2' --rank 4 | grep '= matmul.*%attn.q'
  %18 = matmul %17, %attn.q ^8 : f32[8{mb},8,64] loc("layer/attention")
## What was found by measuring can be verified at smaller extents, too.
$ heddle verify gpt2 --memory 50MB --batch 8 --train --machine '1x4 v100' --strategy 'pp=2 layers=auto' | grep verdict
verdict    equal: the plan computes what the model computes, at the extents given above
$ echo 'heddle-annotate: 1\ndefault: {replicate: all}' > a.yaml; heddle verify gpt2 --memory 50MB --batch 24 --train --machine '1x1 v100 + 1x1 p100 ib=50Gb/s' --annotate a.yaml | grep 'plan\|verdict'
plan       default: replicate(2) 5/3
verdict    equal: the plan computes what the model computes, at the extents given above
## Devices of one kind have nearly equal parts of a batch that they do not divide.
$ echo 'heddle-annotate: 1\ndefault: {replicate: all}' > a.yaml; heddle sim bert-large --batch 64 --train --dtype f16 --machine "1x6 v100" --annotate a.yaml | grep -E "^plan|per step"; heddle sim bert-large --batch 4 --train --machine "1x6 v100" --annotate a.yaml
warning[W0508]: word of bert-large has an extent of 30522 in f16: its matmuls are slower on v100 than simulated, as 30522 is not a multiple of 8
  --> bert-large
  hint: --vocab 30528
plan            default: replicate(6) 11/11/11/11/10/10
time per step   228.9 ms
error[E0502]: batch 4 is not divisible by 6 (6 devices of `default`)
  --> a.yaml:2:22
   2 | default: {replicate: all}
     |                      ^
  note: the batch is the first extent of the first input
    --> bert-large
  hint: choose a batch that is a multiple of 6
[1]
