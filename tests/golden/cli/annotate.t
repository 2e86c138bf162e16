## long: .ci/run has it without sanitizers
## The examples of Whale's paper, each over the model as it is. Example 1: a pipeline of two task graphs, and nested data
## parallelism where there are more devices.
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate examples/annotations/pipeline.yaml
model      mlp-xs:layers=4,hidden=32
plan       layers 0-1: replicate(1), layers 2-3: replicate(1); 8 microbatches
results    9
elements   8,193
worst      4.38742e-14
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result      elements  largest difference     relative
h.1.w.grad     1,024         1.66533e-16  4.38742e-14
h.0.w.grad     1,024         1.11022e-16  2.07653e-14
h.3.w.grad     1,024         4.44089e-16  1.12214e-14
h.2.w.grad     1,024         3.33067e-16  3.97477e-15
h.2.w.new      1,024         1.38778e-17  1.11491e-15
h.1.w.new      1,024         1.38778e-17  6.13255e-16
h.0.w.new      1,024         2.77556e-17  5.27939e-16
h.3.w.new      1,024         2.77556e-17   2.7745e-16
result 0           1                   0            0
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate examples/annotations/pipeline.yaml --devices 8 | head -6
model      mlp-xs:layers=4,hidden=32
plan       layers 0-1: replicate(1), layers 2-3: replicate(1); 4 replicas; 8 microbatches
results    9
elements   8,193
worst      6.35975e-14
tolerance  1e-09
$ heddle sim mlp-xs:layers=4 --batch 64 --train --annotate examples/annotations/pipeline.yaml --machine '1x8 a100' | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model           mlp-xs:layers=4
plan            layers 0-1: replicate(1), layers 2-3: replicate(1); 4 replicas; 8 microbatches
task graph  strategy      covers                                          virtual devices
layers 0-1  replicate(1)  instructions 1-2, layers 0-1                    {0} {2} {4} {6}
layers 2-3  replicate(1)  instructions 3-8 (5-8 in no scope), layers 2-3  {1} {3} {5} {7}

bridge from  to          forward  backward  fused
layers 0-1   layers 2-3  128 KiB   128 KiB  no

$ heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate examples/annotations/pipeline.yaml --devices 3
error[E0512]: 3 devices cannot be divided into replicas of the model of 2 (1 of `layers 0-1` + 1 of `layers 2-3`)
  --> examples/annotations/pipeline.yaml:1:1
   1 | heddle-annotate: 1
     | ^
  hint: use 2 devices, or 4
[1]
## Example 2: features replicated, classes split, on the same devices.
$ heddle verify resnet50:vocab=64 --memory 50MB --batch 8 --seq 32 --train --annotate examples/annotations/classes.yaml --devices 4
model      resnet50:vocab=64
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
verdict    equal: the plan computes what the model computes, at the extents given above

result                 elements  largest difference     relative
stage1.2.conv2.grad      36,864         1.73472e-18  1.95608e-12
stage1.1.conv2.grad      36,864          1.6263e-18    1.669e-12
stem.grad                 9,408          2.1684e-18  1.59951e-12
stage1.1.conv1.grad         512         1.51788e-18  1.37035e-12
stage1.0.conv2.grad      36,864         2.60209e-18  1.15226e-12
stage1.0.conv1.grad       4,096         1.30104e-18  1.06228e-12
stage3.0.conv2.grad      18,432         6.07153e-18  9.47728e-13
stage2.3.conv2.g.grad       128         5.42101e-19  4.28368e-13
stage2.3.conv2.grad       9,216         6.07153e-18  4.07495e-13
stage3.2.conv2.grad      18,432         1.30104e-18  3.87794e-13
... and 313 more
$ heddle sim resnet50:vocab=100000 --batch 256 --train --annotate examples/annotations/classes.yaml --machine dgx-a100-80 | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model           resnet50:vocab=100000
plan            features: replicate(8), head: split(8)
task graph  strategy      covers                                            virtual devices
features    replicate(8)  instructions 1-20 (1-4 in no scope), layers 0-15  {0-7}
head        split(8)      instructions 21-24                                {0-7}

bridge from  to    forward  backward  fused
features     head  686 MiB       0 B  no

## The same with the mean over the pixels among the features.
$ sed 's/match: head/name: head, instructions: 22-24/' examples/annotations/classes.yaml > a.yaml; heddle verify resnet50:vocab=64 --memory 50MB --batch 8 --seq 32 --train --annotate a.yaml --devices 4 | head -11; heddle sim resnet50:vocab=100000 --batch 256 --train --annotate a.yaml --machine dgx-a100-80 | sed -n '/^bridge/,/^$/p'
model      resnet50:vocab=64
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
bridge from  to     forward  backward  fused
features     head  14.0 MiB       0 B  no

$ sed 's/match: head/name: head, instructions: 22-240/' examples/annotations/classes.yaml > a.yaml; heddle verify resnet50:vocab=64 --batch 8 --seq 32 --train --annotate a.yaml --devices 4
error[E0512]: instruction 240 does not exist: main has 24
  --> a.yaml:2:87
   2 | ...name: features, layers: "0-15", replicate: all}, {name: head, instructions: 22-240, split: all}]
     |                                                                                ^
  hint: instructions: "22-24"
[1]
$ sed 's/match: head/name: head, instructions: 0-24/' examples/annotations/classes.yaml > a.yaml; heddle verify resnet50:vocab=64 --batch 8 --seq 32 --train --annotate a.yaml --devices 4
error[E0512]: instructions takes numbers of instructions of main from 1, such as "1-11"; got '0-24'
  --> a.yaml:2:87
   2 | ...[{name: features, layers: "0-15", replicate: all}, {name: head, instructions: 0-24, split: all}]
     |                                                                                  ^
[1]
## Example 3: task graphs that the planner draws.
$ heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate examples/annotations/auto.yaml --devices 4
model      gpt2:layers=4,hidden=32,heads=2,vocab=64
plan       stage 0: replicate(1), stage 1: replicate(1); 2 replicas; 4 microbatches
results    105
elements   171,393
worst      4.8429e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result             elements  largest difference     relative
h.0.attn.qkv.grad     3,072         4.16334e-17   4.8429e-13
h.1.mlp.up.grad       4,096         1.04083e-17  3.69842e-13
h.0.mlp.down.grad     4,096         2.77556e-17  3.61063e-13
h.0.mlp.up.grad       4,096         2.77556e-17  3.22745e-13
wte.grad              2,048         4.16334e-17  2.45603e-13
h.3.mlp.down.grad     4,096         1.73472e-17  2.37698e-13
h.1.mlp.down.grad     4,096          1.9082e-17   2.1663e-13
h.2.mlp.up.grad       4,096         1.38778e-17  1.83382e-13
h.2.mlp.down.grad     4,096         2.08167e-17  1.73136e-13
h.3.mlp.up.grad       4,096         1.38778e-17  1.71625e-13
... and 95 more
$ heddle sim gpt2:layers=4 --batch 16 --seq 128 --train --annotate examples/annotations/auto.yaml --machine '1x4 a100' --strategy layers=whale
error[E0509]: layers=whale cannot be combined with annotations: it orders places by memory
  --> --strategy:1:1
   1 | layers=whale
     | ^
  note: the annotations
    --> examples/annotations/auto.yaml:1:1
     1 | heddle-annotate: 1
       | ^
  hint: layers=auto, or a strategy with pp
[2]
$ heddle sim gpt2:layers=4 --batch 16 --seq 128 --train --annotate examples/annotations/auto.yaml --machine '1x4 a100' | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model           gpt2:layers=4
plan            stage 0: replicate(1), stage 1: replicate(1); 2 replicas; 4 microbatches
task graph  strategy      covers                        virtual devices
stage 0     replicate(1)  instructions 1-7, layers 0-2  {0} {2}
stage 1     replicate(1)  instructions 8-11, layer 3    {1} {3}

bridge from  to        forward  backward  fused
stage 0      stage 1  6.00 MiB  6.00 MiB  no

## Example 4: M6-10B in eight stages and 35 microbatches.
$ heddle verify m6-10b:layers=4,hidden=32,heads=2,vocab=64 --batch 35 --seq 8 --train --optimizer adafactor --annotate examples/annotations/m6.yaml
model      m6-10b:layers=4,hidden=32,heads=2,vocab=64
plan       stage 0: replicate(1), stage 1: replicate(1), stage 2: replicate(1), stage 3: replicate(1), stage 4: replicate(1), stage 5: replicate(1), ... (8 task graphs); 35 microbatches
results    476
elements   451,889
worst      1.73188e-12
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result                   elements  largest difference     relative
encoder.1.attn.out.grad     1,024         5.55112e-17  1.73188e-12
patch.grad                 65,536         4.16334e-17  1.45676e-12
encoder.0.attn.qkv.grad     3,072         6.93889e-17  1.36909e-12
decoder.3.ln3.b.grad           32         3.03577e-18  8.24495e-13
encoder.2.mlp.down.grad     4,096         3.46945e-17  7.24699e-13
encoder.3.mlp.up.grad       4,096         2.08167e-17  6.78749e-13
decoder.3.mlp.up.grad       4,096         6.93889e-18  6.56804e-13
encoder.0.attn.out.grad     1,024         4.51028e-17  4.87977e-13
encoder.2.attn.qkv.grad     3,072         5.55112e-17  4.84884e-13
decoder.3.attn.qkv.grad     3,072         1.73472e-17  4.72397e-13
... and 466 more
$ heddle sim m6-10b --batch 70 --train --optimizer adafactor --annotate examples/annotations/m6.yaml --machine dgx-2 | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model           m6-10b
plan            stage 0: replicate(1), stage 1: replicate(1), stage 2: replicate(1), stage 3: replicate(1), stage 4: replicate(1), stage 5: replicate(1), ... (8 task graphs); 2 replicas; 35 microbatches
task graph  strategy      covers                            virtual devices
stage 0     replicate(1)  instructions 1-13, layers 0-5     {0} {8}
stage 1     replicate(1)  instructions 14-21, layers 6-13   {1} {9}
stage 2     replicate(1)  instructions 22-29, layers 14-21  {2} {10}
stage 3     replicate(1)  instructions 30-40, layers 22-27  {3} {11}
stage 4     replicate(1)  instructions 41-45, layers 28-32  {4} {12}
stage 5     replicate(1)  instructions 46-50, layers 33-37  {5} {13}
stage 6     replicate(1)  instructions 51-55, layers 38-42  {6} {14}
stage 7     replicate(1)  instructions 56-63, layers 43-47  {7} {15}

bridge from  to        forward  backward  fused
stage 0      stage 1   541 MiB   541 MiB  no
stage 1      stage 2   541 MiB   541 MiB  no
stage 2      stage 3   541 MiB   541 MiB  no
stage 3      stage 4  1.04 GiB  1.04 GiB  no
stage 4      stage 5   525 MiB   525 MiB  no
stage 3      stage 5   541 MiB   541 MiB  no
stage 5      stage 6   525 MiB   525 MiB  no
stage 3      stage 6   541 MiB   541 MiB  no
stage 6      stage 7   525 MiB   525 MiB  no
stage 3      stage 7   541 MiB   541 MiB  no

## Example 5: experts split over the devices that share the batch.
$ heddle verify moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64 --batch 8 --seq 8 --train --annotate examples/annotations/experts.yaml --devices 4
model      moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64
plan       default: replicate(4), *experts: split inside
results    53
elements   218,753
worst      4.45266e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result                  elements  largest difference     relative
wte.grad                   2,048         2.77556e-17  4.45266e-13
h.1.attn.qkv.grad          3,072         4.16334e-17  3.48371e-13
h.0.attn.qkv.grad          3,072         4.16334e-17  2.51911e-13
h.0.attn.out.grad          1,024         4.16334e-17   6.1314e-14
h.1.attn.out.grad          1,024         2.42861e-17  5.64555e-14
h.1.ln1.b.grad                32         1.38778e-17  5.34438e-14
h.0.moe.gate.grad            128         3.25261e-19  3.23256e-14
ln_f.b.grad                   32         1.38778e-17  2.24315e-14
h.1.attn.qkv.bias.grad        96         1.56125e-17  1.48268e-14
h.1.ln2.g.grad                32          1.6263e-19   1.0347e-14
... and 43 more
$ heddle sim moe-8x125m --batch 64 --seq 128 --train --annotate examples/annotations/experts.yaml --machine dgx-a100-80 | sed -n '1,2p;/^task graph/,/^$/p;/^bridge/,/^$/p;/all_to_all/p'
model           moe-8x125m
plan            default: replicate(8), *experts: split inside
task graph  strategy      covers                                         virtual devices
default     replicate(8)  instructions 1-19, layers 0-11                 {0-7}
*experts    split(8)      instructions 21-30 of layer, inside `default`  {0-7}

all_to_all     communication     72  3.374 ms   2.9 %
link of a100: all_to_all from 1 MiB to 16 MiB  devices.yaml:84     72  3.374 ms   2.9 %  101.0 %            12
$ heddle lower moe-8x125m:layers=1,hidden=32,heads=2,experts=4,vocab=64 --batch 8 --seq 8 --annotate examples/annotations/experts.yaml --devices 4 --rank 0 | grep -o '= .*over dp4'
= all_to_all %40 {peers=[0, 1, 2, 3]} over dp4
= all_to_all %44 {peers=[0, 1, 2, 3]} over dp4
## What a plan file says of annotations reads back as the same plan.
## The router stays split over the batch on more devices, too, where a sum over the hidden units would divide it.
$ heddle lower moe-8x125m:layers=1,hidden=64,heads=2,experts=16,vocab=64 --batch 16 --seq 8 --annotate examples/annotations/experts.yaml --devices 16 --rank 0 | grep -o '= [a-z_]* .*over dp16'
= all_to_all %40 {peers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]} over dp16
= all_to_all %44 {peers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]} over dp16
$ heddle sim m6-moe-10t --batch 512 --dtype f16 --train --optimizer adafactor --annotate examples/annotations/experts.yaml --machine '64x8 v100-32gb eth=50Gb/s' 2>&1 >/dev/null | head -4
error[E0505]: rank 0 needs 153 GiB; its device has 28.8 GiB
  --> m6-moe-10t
  note: 24 values of einsum in @decoder.bwd: 9.14 GiB of gradients
    --> m6-moe-10t: decoder/experts
$ heddle plan mlp-xs:layers=4 --batch 64 --train --annotate examples/annotations/pipeline.yaml --machine '1x4 a100' -o a.plan | sed -n '8p'; heddle sim mlp-xs:layers=4 --batch 64 --plan a.plan --machine '1x4 a100' | sed -n '8p'; sed '1,2d;/^model/d' a.plan
time per step   919.1 us
time per step   919.1 us
name: "layers 0-1: replicate(1), layers 2-3: replicate(1); 2 replicas; 8 microbatches"
train: {optimizer: sgd, lr: 0.01, momentum: 0, beta1: 0, beta2: 0, eps: 0, weight-decay: 0}
axes: {rep: 2, dp1: 1, tg: 2}
time: {mb: 8}
meshes:
  m: {axes: [rep, tg, dp1]}
segments:
  - {from: 1, to: 2, on: m, at: {tg: 0}}
  - {from: 3, to: 8, on: m, at: {tg: 1}}
trans:
  - {input: "x", dim: 0, axis: mb, stride: 8}
  - {input: "z", dim: 0, axis: mb, stride: 8}
  - {input: "x", dim: 0, axis: rep, stride: 4}
  - {input: "z", dim: 0, axis: rep, stride: 4}
send-stream: pp
send-channels: 4
schedule: 1f1b
order:
  - "F0.0*2 (B0.0 F0.2)*6 B0.6*2"
  - "(F1.0 B1.0)*8"
$ heddle sim mlp-xs:layers=4 --batch 64 --train --annotate examples/annotations/pipeline.yaml --machine '1x2 a100' --json | sed -n '/"task_graphs"/,/\]/p;/"bridges"/,/\]/p'
  "task_graphs": [
    {"name": "layers 0-1", "strategy": "replicate(1)", "covers": "instructions 1-2, layers 0-1", "virtual_devices": "{0}"},
    {"name": "layers 2-3", "strategy": "replicate(1)", "covers": "instructions 3-8 (5-8 in no scope), layers 2-3", "virtual_devices": "{1}"}
  ],
  "bridges": [
    {"from": "layers 0-1", "to": "layers 2-3", "forward_bytes": 131072, "backward_bytes": 131072, "fused": false}
  ],
## Virtual devices. One task graph of one device: as many replicas as devices.
$ echo 'heddle-annotate: 1\ndefault: {replicate: 1}' > a.yaml; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x4 a100' | sed -n '2p;/^task graph/,/^$/p'
plan            default: replicate(1); 4 replicas
task graph  strategy      covers                        virtual devices
default     replicate(1)  instructions 1-8, layers 0-3  {0} {1} {2} {3}

## Two of two on eight devices, and with replicas of a task graph beside each other.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 2}, {layers: 2-3, replicate: 2}]\nconfig: {num_micro_batch: 4}' > a.yaml; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x8 a100' | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
plan            layers 0-1: replicate(2), layers 2-3: replicate(2); 2 replicas; 4 microbatches
task graph  strategy      covers                                          virtual devices
layers 0-1  replicate(2)  instructions 1-2, layers 0-1                    {0,1} {4,5}
layers 2-3  replicate(2)  instructions 3-8 (5-8 in no scope), layers 2-3  {2,3} {6,7}

bridge from  to          forward  backward  fused
layers 0-1   layers 2-3  128 KiB   128 KiB  no

$ sed 's/4}/4, cluster.device_place_prefer_intra_node: false}/' a.yaml > b.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate b.yaml --devices 8 | head -2; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate b.yaml --machine '1x8 a100' | sed -n '/^task graph/,/^$/p'
model      mlp-xs:layers=4,hidden=32
plan       layers 0-1: replicate(2), layers 2-3: replicate(2); 2 replicas; 4 microbatches
task graph  strategy      covers                                          virtual devices
layers 0-1  replicate(2)  instructions 1-2, layers 0-1                    {0,1} {2,3}
layers 2-3  replicate(2)  instructions 3-8 (5-8 in no scope), layers 2-3  {4,5} {6,7}

## Four of one: a pipeline of four, in both orders; and one that is replicated behind one that is split.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0, replicate: 1}, {layers: 1, replicate: 1}, {layers: 2, replicate: 1}, {layers: 3, replicate: 1}]\nconfig: {num_micro_batch: 4}' > a.yaml; heddle plan mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x4 a100' -o - | sed -n '/^order/,$p'
order:
  - "F0.0*4 B0.0*4"
  - "F1.0*3 B1.0 F1.3 B1.1*3"
  - "F2.0*2 (B2.0 F2.2)*2 B2.2*2"
  - "(F3.0 B3.0)*4"
$ sed 's/4}/4, pipeline.strategy: PreferForward}/' a.yaml > b.yaml; heddle plan mlp-xs:layers=4 --batch 64 --train --annotate b.yaml --machine '1x4 a100' -o - | sed -n '/^order/,$p'
order:
  - "F0.0*4 B0.0*4"
  - "F1.0*4 B1.0*4"
  - "F2.0*4 B2.0*4"
  - "F3.0*4 B3.0*4"
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, split: 4}, {layers: 2-3, replicate: 2}]\nconfig: {num_micro_batch: 2, zero.level: v0}' > a.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --optimizer adam --annotate a.yaml --devices 12 | head -6; heddle sim mlp-xs:layers=4 --batch 48 --train --annotate a.yaml --machine '1x6 a100' | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model      mlp-xs:layers=4,hidden=32
plan       layers 0-1: split(4), layers 2-3: replicate(2); 2 replicas; 2 microbatches
results    17
elements   16,385
worst      2.4068e-13
tolerance  1e-09
plan            layers 0-1: split(4), layers 2-3: replicate(2); 2 microbatches
task graph  strategy      covers                                          virtual devices
layers 0-1  split(4)      instructions 1-2, layers 0-1                    {0-3}
layers 2-3  replicate(2)  instructions 3-8 (5-8 in no scope), layers 2-3  {4,5}

bridge from  to           forward  backward  fused
layers 0-1   layers 2-3  96.0 KiB   384 KiB  no

## What no scope covers joins the last replicate, never a split; scopes of one name are one task graph.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 1, replicate: 2}, {layers: 2, split: 2}]' > a.yaml; heddle verify mlp-xs:layers=6,hidden=32 --batch 64 --train --annotate a.yaml 2>&1 >/dev/null | head -3; heddle verify mlp-xs:layers=6,hidden=32 --batch 64 --train --annotate a.yaml 2>/dev/null | head -6; heddle sim mlp-xs:layers=6 --batch 64 --train --annotate a.yaml --machine '1x4 a100' 2>/dev/null | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
warning[W0505]: `layer 1` also takes blocks among 0-5, which no scope names
  --> a.yaml:2:19
   2 | scopes: [{layers: 1, replicate: 2}, {layers: 2, split: 2}]
model      mlp-xs:layers=6,hidden=32
plan       layer 1: replicate(2), layer 2: split(2)
results    13
elements   12,289
worst      1.91133e-13
tolerance  1e-09
plan            layer 1: replicate(2), layer 2: split(2)
task graph  strategy      covers                                                        virtual devices
layer 1     replicate(2)  instructions 1-2,4-10 (1,4-10 in no scope), layers among 0-5  {0,1}
layer 2     split(2)      instructions 3, layer 2                                       {2,3}

bridge from  to       forward  backward  fused
layer 1      layer 2  256 KiB   128 KiB  no
layer 2      layer 1  128 KiB   128 KiB  no

$ echo 'heddle-annotate: 1\nscopes: [{name: a, layers: 0, replicate: 1}, {name: b, layers: 1, replicate: 1}, {name: a, layers: 2-3, replicate: 1}]\nconfig: {num_micro_batch: 2}' > a.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate a.yaml --devices 4 | head -6; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x2 a100' | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model      mlp-xs:layers=4,hidden=32
plan       a: replicate(1), b: replicate(1); 2 replicas; 2 microbatches
results    9
elements   8,193
worst      5.0878e-14
tolerance  1e-09
plan            a: replicate(1), b: replicate(1); 2 microbatches
task graph  strategy      covers                                                  virtual devices
a           replicate(1)  instructions 1,3-8 (5-8 in no scope), layers among 0-3  {0}
b           replicate(1)  instructions 2, layer 1                                 {1}

bridge from  to  forward  backward  fused
a            b   128 KiB   128 KiB  no
b            a   128 KiB   128 KiB  no

## A split of whole blocks inside a replicate lies on its devices.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 4, scopes: [{layers: 1-2, split: 4}]}]' > a.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate a.yaml --devices 8 | head -6; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x4 a100' | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model      mlp-xs:layers=4,hidden=32
plan       layers 0-3: replicate(4), layers 1-2: split(4); 2 replicas
results    9
elements   8,193
worst      8.11735e-14
tolerance  1e-09
plan            layers 0-3: replicate(4), layers 1-2: split(4)
task graph  strategy      covers                                                  virtual devices
layers 0-3  replicate(4)  instructions 1,4-8 (5-8 in no scope), layers among 0-3  {0-3}
layers 1-2  split(4)      instructions 2-3, layers 1-2                            {0-3}

bridge from  to          forward  backward  fused
layers 0-3   layers 1-2  384 KiB       0 B  no
layers 1-2   layers 0-3      0 B   384 KiB  no

## Task graphs of one kind on the same devices: their bridge is fused.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: all}, {layers: 2-3, replicate: all}]\nconfig: {cluster.colocate_split_and_replicate: true, num_micro_batch: 2}' > a.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate a.yaml --devices 4 | head -6; heddle sim mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x4 a100' | sed -n '2p;/^task graph/,/^$/p;/^bridge/,/^$/p'
model      mlp-xs:layers=4,hidden=32
plan       layers 0-1: replicate(4), layers 2-3: replicate(4); 2 microbatches
results    9
elements   8,193
worst      5.0878e-14
tolerance  1e-09
plan            layers 0-1: replicate(4), layers 2-3: replicate(4); 2 microbatches
task graph  strategy      covers                                          virtual devices
layers 0-1  replicate(4)  instructions 1-2, layers 0-1                    {0-3}
layers 2-3  replicate(4)  instructions 3-8 (5-8 in no scope), layers 2-3  {0-3}

bridge from  to          forward  backward  fused
layers 0-1   layers 2-3      0 B       0 B  yes

## By operator: the matmuls of every layer are split over the devices of the task graph around them.
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{op: matmul, split: 2}]' > a.yaml; heddle verify gpt2:layers=2,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 4 | head -6
model      gpt2:layers=2,hidden=32,heads=2,vocab=64
plan       default: replicate(2), matmul: split inside; 2 replicas
results    57
elements   120,577
worst      1.29433e-12
tolerance  1e-09
## Task graphs drawn: blocks in pairs, in threes, by work.
$ echo 'heddle-annotate: 1\nconfig: {auto.auto_parallel: true, pipeline.num_stages: 4}' > a.yaml; for n in 8 12 6; do heddle plan mlp-xs:layers=$n,hidden=4096 --batch 4096 --train --annotate a.yaml --machine '1x4 a100' | sed -n '/^task graph/,/^$/p'; done
task graph  strategy      covers                         virtual devices
stage 0     replicate(1)  instructions 1-2, layers 0-1   {0}
stage 1     replicate(1)  instructions 3-4, layers 2-3   {1}
stage 2     replicate(1)  instructions 5-6, layers 4-5   {2}
stage 3     replicate(1)  instructions 7-12, layers 6-7  {3}

task graph  strategy      covers                           virtual devices
stage 0     replicate(1)  instructions 1-3, layers 0-2     {0}
stage 1     replicate(1)  instructions 4-6, layers 3-5     {1}
stage 2     replicate(1)  instructions 7-9, layers 6-8     {2}
stage 3     replicate(1)  instructions 10-16, layers 9-11  {3}

task graph  strategy      covers                         virtual devices
stage 0     replicate(1)  instructions 1, layer 0        {0}
stage 1     replicate(1)  instructions 2, layer 1        {1}
stage 2     replicate(1)  instructions 3-4, layers 2-3   {2}
stage 3     replicate(1)  instructions 5-10, layers 4-5  {3}

## The environment has what the file does not say.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}, {layers: 2-3, replicate: 1}]' > a.yaml; EPL_PIPELINE_NUM_MICRO_BATCH=2 heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate a.yaml | sed -n '2p'
plan       layers 0-1: replicate(1), layers 2-3: replicate(1); 2 microbatches
$ sed '$s/$/\nconfig: {num_micro_batch: 4}/' a.yaml > b.yaml; EPL_PIPELINE_NUM_MICRO_BATCH=2 heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate b.yaml | sed -n '2p'
plan       layers 0-1: replicate(1), layers 2-3: replicate(1); 4 microbatches
$ EPL_PIPELINE_NUM_MICRO_BATCH=two heddle verify mlp-xs:layers=4,hidden=32 --batch 64 --train --annotate a.yaml
error[E0512]: EPL_PIPELINE_NUM_MICRO_BATCH (environment) takes an integer, 1 or more; got 'two'
[1]
## Every refusal points into the file.
$ echo 'heddle-annotate: 1\nscopes: [{match: "clasifier*", split: 4}]' > a.yaml; heddle verify resnet50:vocab=64 --annotate a.yaml --devices 4
error[E0512]: `clasifier*` matches nothing in the model
  --> a.yaml:2:18
   2 | scopes: [{match: "clasifier*", split: 4}]
     |                  ^
  hint: `heddle import MODEL` shows functions, weights and places in the model (loc)
[1]
$ echo 'heddle-annotate: 1\nscopes: [{match: heed, split: 4}]' > a.yaml; heddle verify resnet50:vocab=64 --annotate a.yaml --devices 4
error[E0512]: `heed` matches nothing in the model
  --> a.yaml:2:18
   2 | scopes: [{match: heed, split: 4}]
     |                  ^
  hint: did you mean `head`?
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 2-9, replicate: 2}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: layer 9 does not exist: the model has 4 repeated blocks
  --> a.yaml:2:19
   2 | scopes: [{layers: 2-9, replicate: 2}]
     |                   ^
  note: the calls of main are its repeated blocks
    --> mlp-xs
  hint: layers: "2-3"
[1]
$ echo 'heddle-annotate: 1\nscopes:\n  - {layers: 0-2, replicate: 2}\n  - {name: rest, layers: 2-3, replicate: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: scopes `layers 0-2` and `rest` overlap: both cover instruction 3 of main (call)
  --> a.yaml:4:26
   4 |   - {name: rest, layers: 2-3, replicate: 2}
     |                          ^
  note: the other scope
    --> a.yaml:3:14
     3 |   - {layers: 0-2, replicate: 2}
       |              ^
  note: here in the model
    --> mlp-xs
  hint: task graphs are disjoint; nest a split in a replicate with `scopes`
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, split: 2, scopes: [{layers: 1, split: 2}]}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: split inside split cannot be nested
  --> a.yaml:2:43
   2 | scopes: [{layers: 0-3, split: 2, scopes: [{layers: 1, split: 2}]}]
     |                                           ^
  note: the scope around it
    --> a.yaml:2:10
     2 | scopes: [{layers: 0-3, split: 2, scopes: [{layers: 1, split: 2}]}]
       |          ^
  hint: only a split may be inside a replicate; nested data parallelism follows from the number of devices
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 2, scopes: [{layers: 1, replicate: 2}]}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: replicate inside replicate cannot be nested
  --> a.yaml:2:47
   2 | scopes: [{layers: 0-3, replicate: 2, scopes: [{layers: 1, replicate: 2}]}]
     |                                               ^
  note: the scope around it
    --> a.yaml:2:10
     2 | scopes: [{layers: 0-3, replicate: 2, scopes: [{layers: 1, replicate: 2}]}]
       |          ^
  hint: only a split may be inside a replicate; nested data parallelism follows from the number of devices
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1-2, split: 2}]}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: `layers 1-2` is not inside the scope around it: instruction 3 of main is not in `layers 0-1`
  --> a.yaml:2:56
   2 | scopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1-2, split: 2}]}]
     |                                                        ^
  note: the scope around it
    --> a.yaml:2:10
     2 | scopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1-2, split: 2}]}]
       |          ^
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1, split: 4}]}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
warning[W0505]: `layers 0-1` also takes blocks 2-3, which no scope names
  --> a.yaml:2:19
   2 | scopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1, split: 4}]}]
     |                   ^
  hint: name them in a scope, or say what is in none: default: {replicate: 2}
error[E0512]: `layer 1` takes 4 devices, but `layers 0-1`, whose devices it shares, has 2
  --> a.yaml:2:66
   2 | scopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1, split: 4}]}]
     |                                                                  ^
  note: on these devices
    --> a.yaml:2:10
     2 | scopes: [{layers: 0-1, replicate: 2, scopes: [{layers: 1, split: 4}]}]
       |          ^
  hint: split: 2
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 2, scopes: [{op: layernorm, split: 2}]}]' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --annotate a.yaml
error[E0502]: split of `layernorm`: no matmul with a weight can be split over tp=2
  --> a.yaml:2:70
   2 | scopes: [{layers: 0-3, replicate: 2, scopes: [{op: layernorm, split: 2}]}]
     |                                                                      ^
  note: here in the model
    --> gpt2
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, split: 3}]' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --annotate a.yaml
error[E0502]: split of `layers 0-1`: attn.qkv of 32 x 96 cannot be split 3 ways: 96 = 3 x 2 x 16, and 2 is not divisible by 3
  --> a.yaml:2:31
   2 | scopes: [{layers: 0-1, split: 3}]
     |                               ^
  note: here in the model
    --> gpt2: layer/attention
  hint: split: 2
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 3}]' > a.yaml; heddle verify mlp-xs:layers=4 --batch 64 --annotate a.yaml
error[E0502]: batch 64 is not divisible by 3 (3 devices of `layers 0-3`)
  --> a.yaml:2:35
   2 | scopes: [{layers: 0-3, replicate: 3}]
     |                                   ^
  note: the batch is the first extent of the first input
    --> mlp-xs
  hint: choose a batch that is a multiple of 3
[1]
$ echo 'heddle-annotate: 1\nscopes: [{match: "*experts", split: 4}]' > a.yaml; heddle verify moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64 --batch 8 --seq 8 --annotate a.yaml --devices 4
error[E0512]: `*experts` is part of blocks that `default` computes on 1 device; it cannot be split 4 ways
  --> a.yaml:2:37
   2 | scopes: [{match: "*experts", split: 4}]
     |                                     ^
  note: the task graph around it
    --> a.yaml:1:1
     1 | heddle-annotate: 1
       | ^
  hint: default: {replicate: 4}
[1]
$ echo 'heddle-annotate: 1\nscopes: [{match: "*experts", replicate: 4}]' > a.yaml; heddle verify moe-8x125m:layers=2,hidden=32,heads=2,experts=4,vocab=64 --batch 8 --seq 8 --annotate a.yaml --devices 4
error[E0512]: `*experts` is part of a repeated block, and only a split can be
  --> a.yaml:2:18
   2 | scopes: [{match: "*experts", replicate: 4}]
     |                  ^
  hint: replicate whole blocks: by `layers`, by the name of a function, or by `default`
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: all}, {layers: 2-3, split: all}]' > a.yaml; heddle verify mlp-xs:layers=4 --batch 64 --annotate a.yaml --devices 4; heddle verify mlp-xs:layers=4 --batch 64 --annotate a.yaml
error[E0512]: 4 devices cannot be divided into replicas of the model of 8 (4 of `layers 0-1` + 4 of `layers 2-3`)
  --> a.yaml:2:62
   2 | scopes: [{layers: 0-1, replicate: all}, {layers: 2-3, split: all}]
     |                                                              ^
  hint: 8 devices, or cluster.colocate_split_and_replicate: true for task graphs on the same devices
error[E0512]: `all` needs the number of devices
  --> a.yaml:2:35
   2 | scopes: [{layers: 0-1, replicate: all}, {layers: 2-3, split: all}]
     |                                   ^
  hint: add --machine or --devices; a file of annotations may have devices: 8
[1]
$ echo 'heddle-annotate: 1\ndefault: {split: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: the default cannot be split: what no scope covers is replicated
  --> a.yaml:2:18
   2 | default: {split: 2}
     |                  ^
  hint: default: {replicate: 2}
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}]\nconfig: {auto_parallel: true, num_stages: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: config: unknown key `num_stages`
  --> a.yaml:3:31
   3 | config: {auto_parallel: true, num_stages: 2}
     |                               ^
  hint: did you mean `pipeline.num_stages`?
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}]\nconfig: {auto_parallel: true, pipeline.num_stages: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: a scope cannot be combined with automatic task graphs
  --> a.yaml:2:10
   2 | scopes: [{layers: 0-1, replicate: 1}]
     |          ^
  note: auto.auto_parallel is true
    --> a.yaml:3:25
     3 | config: {auto_parallel: true, pipeline.num_stages: 2}
       |                         ^
  hint: leave out the scopes, or auto.auto_parallel
[1]
$ echo 'heddle-annotate: 1\nconfig: {auto_parallel: true}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: auto.auto_parallel needs pipeline.num_stages, the number of task graphs
  --> a.yaml:2:25
   2 | config: {auto_parallel: true}
     |                         ^
  hint: pipeline.num_stages: 4
[1]
$ echo 'heddle-annotate: 1\nconfig: {auto_parallel: true, pipeline.num_stages: 40}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0502]: automatic task graphs: 40 pipeline stages, but the model has only 4 blocks and matmuls
  --> a.yaml:2:52
   2 | config: {auto_parallel: true, pipeline.num_stages: 40}
     |                                                    ^
  note: here in the model
    --> mlp-xs
  hint: pipeline.num_stages: 4
[1]
$ echo 'heddle-annotate: 1\nconfig: {pipeline.num_micro_batches: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: config: unknown key `pipeline.num_micro_batches`
  --> a.yaml:2:10
   2 | config: {pipeline.num_micro_batches: 2}
     |          ^
  hint: did you mean `pipeline.num_micro_batch`?
[1]
$ echo 'heddle-annotate: 1\nconfig: {pipeline.num_micro_batch: true}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: pipeline.num_micro_batch takes an integer, 1 or more; got 'true'
  --> a.yaml:2:36
   2 | config: {pipeline.num_micro_batch: true}
     |                                    ^
[1]
$ echo 'heddle-annotate: 1\nconfig: {pipeline: {strategy: PreferBackwards}}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: pipeline.strategy takes PreferForward, PreferBackward or PreferBackwardOptimizer; got 'PreferBackwards'
  --> a.yaml:2:31
   2 | config: {pipeline: {strategy: PreferBackwards}}
     |                               ^
  hint: did you mean `PreferBackward`?
[1]
$ echo 'heddle-annotate: 1\nconfig: {amp.level: O1}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: amp.level is not supported: element types belong to the model: --dtype bf16
  --> a.yaml:2:21
   2 | config: {amp.level: O1}
     |                     ^
  hint: leave it out, or use its default, the empty text
[1]
$ echo 'heddle-annotate: 1\nconfig: {communication.max_splits: 5, amp.level: O1}' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: amp.level is not supported: element types belong to the model: --dtype bf16
  --> a.yaml:2:50
   2 | config: {communication.max_splits: 5, amp.level: O1}
     |                                                  ^
  hint: leave it out, or use its default, the empty text
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layer: 0-1, replicate: 1}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: a scope: unknown key `layer`
  --> a.yaml:2:11
   2 | scopes: [{layer: 0-1, replicate: 1}]
     |           ^
  hint: did you mean `layers`?
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: a scope has one of `replicate` and `split`
  --> a.yaml:2:10
   2 | scopes: [{layers: 0-1}]
     |          ^
  hint: such as replicate: 2, or split: 4
[1]
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: many}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: replicate takes a number of devices, 1 to 65535, or `all`; got 'many'
  --> a.yaml:2:35
   2 | scopes: [{layers: 0-1, replicate: many}]
     |                                   ^
[1]
$ echo 'heddle-annotate: 1\nscopes: [{op: matmull, split: 2}]' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: unknown operator `matmull`
  --> a.yaml:2:15
   2 | scopes: [{op: matmull, split: 2}]
     |               ^
  hint: did you mean `matmul`?
[1]
$ echo 'heddle-annotate: 2' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: this version reads `heddle-annotate: 1`
  --> a.yaml:1:18
   1 | heddle-annotate: 2
     |                  ^
[1]
$ echo 'scopes: []' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0512]: annotations are a map that starts with `heddle-annotate: 1`
  --> a.yaml:1:1
   1 | scopes: []
     | ^
[1]
$ echo '[1' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0104]: did not find expected ',' or ']'
  --> a.yaml:2:1
   2 |
     | ^
  note: while parsing a flow sequence
    --> a.yaml:1:1
     1 | [1
       | ^
[1]
$ heddle verify mlp-xs:layers=4 --annotate none.yaml
error[E0101]: cannot read 'none.yaml': No such file or directory
[1]
$ heddle verify mlp-xs:layers=4 --annotate a.yaml --plan b.plan
error[E0801]: --plan cannot be combined with --annotate
  hint: give one of them
[2]
$ heddle plan mlp-xs:layers=4 --annotate a.yaml --machine laptop --top 3
error[E0801]: --top does not apply to --annotate: nothing is searched
  hint: leave it out
[2]
$ echo 'heddle-annotate: 1\nscopes: [{match: head, split: 4}, {layers: 0-1, replicate: 1}]' > a.yaml; heddle verify gpt2:layers=2,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml | sed -n "2p;5p;7p"
plan       layers 0-1: replicate(1), head: split(4)
worst      1.6091e-12
verdict    equal: the plan computes what the model computes
$ echo 'heddle-annotate: 1\ndefault: {replicate: all}\nconfig: {pipeline.num_stages: 4}' > a.yaml; heddle verify mlp-xs --batch 64 --train --annotate a.yaml --devices 2; heddle verify mlp-xs --batch 64 --train --annotate a.yaml --devices 8 | head -2
error[E0512]: 2 devices cannot be divided into replicas of the model of 4 (1 of `stage 0` + 1 of `stage 1` + 1 of `stage 2` + 1 of `stage 3`)
  --> a.yaml:3:31
   3 | config: {pipeline.num_stages: 4}
     |                               ^
  hint: pipeline.num_stages: 2
model      mlp-xs
plan       stage 0: replicate(2), stage 1: replicate(2), stage 2: replicate(2), stage 3: replicate(2)
$ printf 'heddle-annotate: 1\nscopes: [{layers: 0-1, split: 4}]\ndefault: {replicate: 1}\nconfig: {zero.level: v1}\n' > zero.yaml; heddle sim mlp-xs:layers=4,hidden=64 --batch 48 --train --annotate zero.yaml --machine '1x5 a100' 2>&1 >/dev/null
warning[W0101]: zero.level changes nothing: no states are on several data ranks
  --> zero.yaml:4:22
   4 | config: {zero.level: v1}
     |                      ^
$ printf 'heddle-annotate: 1\ndefault: {replicate: all}\nconfig: {zero.level: v1}\n' > zero.yaml; heddle sim mlp-xs:layers=4,hidden=64 --batch 48 --annotate zero.yaml --machine '1x4 a100' 2>&1 >/dev/null; heddle sim mlp-xs:layers=4,hidden=64 --batch 48 --train --annotate zero.yaml --machine '1x4 a100' 2>&1 >/dev/null
warning[W0101]: zero.level changes nothing: without --train there are no states
  --> zero.yaml:3:22
   3 | config: {zero.level: v1}
     |                      ^
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-11, replicate: 2}, {layers: 12-23, replicate: 2}]\nconfig: {num_micro_batch: 4}' > a.yaml; heddle plan bert-large --batch 256 --train --machine '1x4 v100 + 1x4 a100 ib=100Gb/s' --annotate a.yaml | sed -n '/^device/,/^without waits/p'
device  ranks  each gets              share of work  computes  communicates    idle  peak memory    usable  gain of one more, at most
v100        4  56 samples, 12 layers         43.8 %    75.0 %         1.8 %  23.2 %     17.3 GiB  28.8 GiB                     10.9 %
a100        4  72 samples, 12 layers         56.2 %    73.6 %         1.8 %  24.6 %     21.9 GiB  72.0 GiB                     14.1 %

without waits  2.795 s, if no device ever waited for another one: the plan takes 35.0 % more
$ heddle plan resnet50:vocab=100000 --batch 256 --train --annotate examples/annotations/classes.yaml --machine "1x4 v100 + 1x4 a100 ib=100Gb/s" | sed -n '/^device/,/^$/p'
device  ranks  each gets          share of work  computes  communicates   idle  peak memory    usable  gain of one more, at most
v100        4  26 to 256 samples         40.6 %    82.3 %        14.6 %  3.0 %     2.39 GiB  28.8 GiB                     10.4 %
a100        4  38 to 256 samples         59.4 %    82.3 %        14.6 %  3.0 %     3.41 GiB  72.0 GiB                     14.6 %

## Choices beside annotations: those that annotations do not say are added, others are refused with both places.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 2}, {layers: 2-3, replicate: 2}]' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=4,vocab=64 --dtype f16 --batch 32 --seq 8 --train --optimizer adam --annotate a.yaml --devices 8 --strategy "zero=1 recompute=full grads=f32 mb=8" | sed -n "2p;5p;7p"
plan       layers 0-1: replicate(2), layers 2-3: replicate(2); 2 replicas; 8 microbatches; zero=1 recompute=full grads=f32
worst      7.58083e-13
verdict    equal: the plan computes what the model computes
$ heddle plan mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x8 a100' --zero 1 --microbatches 4 --schedule zb-h1 -o - | grep -v '^ \|^$'
# heddle plan mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --machine '1x8 a100' --zero 1 --microbatches 4 --schedule zb-h1 -o -
heddle-plan: 1
name: "layers 0-1: replicate(2), layers 2-3: replicate(2); 2 replicas; 4 microbatches; schedule=zb-h1 zero=1"
model: {name: "mlp-xs:layers=4", instructions: 8, weights: "f32", input: "f32[64,512]", program: "d96abc206a1e45c1"}
train: {optimizer: sgd, lr: 0.01, momentum: 0, beta1: 0, beta2: 0, eps: 0, weight-decay: 0}
axes: {rep: 2, dp2: 2, tg: 2}
time: {mb: 4}
meshes:
segments:
trans:
rest: {states: [rep, dp2]}
send-stream: pp
send-channels: 4
schedule: zb-h1
order:
$ echo 'config: {num_micro_batch: 4}' >> a.yaml; heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "mb=8"
error[E0509]: mb=8 contradicts the annotations, which say mb=4
  --> --strategy:1:1
   1 | mb=8
     | ^
  note: pipeline.num_micro_batch of the configuration
    --> a.yaml:3:27
     3 | config: {num_micro_batch: 4}
       |                           ^
  hint: leave out one of them
[2]
$ heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "mb=4 zero=1" | sed -n "2p"
plan       layers 0-1: replicate(2), layers 2-3: replicate(2); 4 microbatches; zero=1
$ for c in 'tp=2' 'mbs=2' 'sp' 'bn=sync' 'coshard=2' 'axial' 'sync=ps' 'layers=equal' 'dp.shares=3/1' 'skip=2' 'overlap=none channels=one' 'overlap=none buffers=rendezvous' 'schedule=interleaved v=2'; do heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "$c" 2>&1 | sed -n '1p;$p'; done
error[E0509]: tp=2 cannot be combined with annotations: annotations say the devices of every part of the model
  hint: leave it out; `split: N` says it of a part of the model
error[E0509]: mbs=2 cannot be combined with annotations: task graphs have data ranks of their own
  hint: say the number of microbatches instead: mb
error[E0509]: sp cannot be combined with annotations: splits of annotations leave the sequence whole
  hint: leave it out; a strategy with tp has it
error[E0509]: bn=sync cannot be combined with annotations: annotated plans take the statistics of batch norm on every device alone
  hint: leave it out
error[E0509]: coshard=2 cannot be combined with annotations: parts of heads and hidden units are of plans by degrees
  hint: leave it out; a strategy with dp, tp and pp has it
error[E0509]: axial cannot be combined with annotations: annotations say what is split over devices
  hint: leave it out; a strategy with tp has it
error[E0509]: sync=ps cannot be combined with annotations: annotated plans sum gradients on all data ranks
  hint: leave it out; a strategy with dp has it
error[E0509]: layers=equal: only automatic task graphs are cut by it
  hint: leave it out; the layers of a scope say it
error[E0509]: dp.shares=3/1 cannot be combined with annotations: annotations say what devices get
  hint: `shares: [3, 1]` of a scope, or `replicas: [3, 1]`
error[E0509]: skip=2 cannot be combined with annotations: annotations are of devices from the first one on
  hint: leave it out, or name these devices last
error[E0509]: channels=one needs overlap=pp; got overlap=none
  hint: leave out one of them
error[E0509]: buffers=rendezvous cannot be combined with annotations: sends of task graphs never wait
  hint: leave it out; a strategy with pp has it
error[E0509]: v=2 cannot be combined with annotations: a task graph is one stage, on its own place
  hint: leave it out
$ heddle verify mlp-xs:layers=4 --batch 64 --annotate a.yaml --strategy "recompute=full"
error[E0509]: recompute=full applies to training only; this is inference
  --> --strategy:1:1
   1 | recompute=full
     | ^
  hint: add --train, or leave out recompute
[2]
$ EPL_ZERO_LEVEL=v0 heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "zero=2"
error[E0509]: zero=2 contradicts the annotations, which say zero=1
  --> --strategy:1:1
   1 | zero=2
     | ^
  note: zero.level of the configuration, from the environment: EPL_ZERO_LEVEL
  hint: leave out one of them
[2]
$ heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "tables=whole" 2>&1 >/dev/null
warning[W0101]: tables=whole changes nothing: no task graph is split
  --> --strategy:1:1
   1 | tables=whole
     | ^
$ echo 'heddle-annotate: 1\nconfig: {pipeline.num_stages: 2, num_micro_batch: 2}' > a.yaml; heddle verify mlp-xs:layers=4 --batch 64 --train --annotate a.yaml --strategy "layers=1/3 recompute=selective" | sed -n "2p;5p;7p"
plan       stage 0: replicate(1), stage 1: replicate(1); 2 microbatches; recompute=selective layers=1/3
worst      5.30732e-13
verdict    equal: the plan computes what the model computes
$ echo 'heddle-annotate: 1\nscopes: [{match: "*.mlp.*", split: 4}]' > a.yaml; heddle verify gpt2:layers=2,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 2
error[E0512]: `*.mlp.*` is part of blocks that `default` computes on 1 device; it cannot be split 4 ways
  --> a.yaml:2:36
   2 | scopes: [{match: "*.mlp.*", split: 4}]
     |                                    ^
  note: the task graph around it
    --> a.yaml:1:1
     1 | heddle-annotate: 1
       | ^
  hint: default: {replicate: 4}
[1]
$ echo 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: "*.mlp.*", split: 4}]' > a.yaml; heddle verify gpt2:layers=2,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 4
error[E0512]: `*.mlp.*` is part of blocks that `default` computes on 2 devices; it cannot be split 4 ways
  --> a.yaml:3:36
   3 | scopes: [{match: "*.mlp.*", split: 4}]
     |                                    ^
  note: the task graph around it
    --> a.yaml:2:10
     2 | default: {replicate: 2}
       |          ^
  hint: default: {replicate: 4}
[1]
## What scopes of some layers take besides: what no scope covers is in the report, blocks among it are a warning.
$ echo 'heddle-annotate: 1\nscopes: [{layers: 2-3, replicate: 1}, {layers: 6-7, replicate: 1}]\nconfig: {num_micro_batch: 4}' > a.yaml; heddle sim mlp-xs:layers=10 --batch 48 --train --annotate a.yaml --machine '1x2 a100' | sed -n '/^task graph/,/^$/p'
warning[W0505]: `layers 2-3` also takes blocks among 0-5, which no scope names
  --> a.yaml:2:19
   2 | scopes: [{layers: 2-3, replicate: 1}, {layers: 6-7, replicate: 1}]
     |                   ^
  hint: name them in a scope, or say what is in none: default: {replicate: 1}
warning[W0505]: `layers 6-7` also takes blocks 8-9, which no scope names
  --> a.yaml:2:48
   2 | scopes: [{layers: 2-3, replicate: 1}, {layers: 6-7, replicate: 1}]
     |                                                ^
  hint: name them in a scope, or say what is in none: default: {replicate: 1}
task graph  strategy      covers                                              virtual devices
layers 2-3  replicate(1)  instructions 1-6 (1-2,5-6 in no scope), layers 0-5  {0}
layers 6-7  replicate(1)  instructions 7-14 (9-14 in no scope), layers 6-9    {1}

$ echo 'heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 1}, {name: rest, layers: 6-7, replicate: 1}]\ndefault: {replicate: 1}\nconfig: {num_micro_batch: 4}' > a.yaml; heddle sim mlp-xs:layers=10 --batch 48 --train --annotate a.yaml --machine '1x3 a100' | sed -n '/^task graph/,/^$/p'
task graph  strategy      covers                                   virtual devices
layers 0-3  replicate(1)  instructions 1-4, layers 0-3             {0}
default     replicate(1)  instructions 5-6,9-14, layers among 4-9  {1}
rest        replicate(1)  instructions 7-8, layers 6-7             {2}

