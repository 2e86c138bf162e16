## Annotations that do not fit devices, batch, weights or memory: where, both numbers, the nearest that works.
$ printf 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 2}, {layers: 2-3, replicate: 4}]\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --annotate a.yaml --devices 2
error[E0512]: 2 devices cannot be divided into replicas of the model of 6 (2 of `layers 0-1` + 4 of `layers 2-3`)
  --> a.yaml:2:64
   2 | scopes: [{layers: 0-1, replicate: 2}, {layers: 2-3, replicate: 4}]
     |                                                                ^
  hint: 6 devices, or cluster.colocate_split_and_replicate: true for task graphs on the same devices
[1]
$ printf 'heddle-annotate: 1\nscopes: [{layers: 1-3, split: 7}]\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --annotate a.yaml --devices 7
error[E0512]: 7 devices cannot be divided into replicas of the model of 8 (1 for what no scope covers + 7 of `layers 1-3`)
  --> a.yaml:2:31
   2 | scopes: [{layers: 1-3, split: 7}]
     |                               ^
  hint: split: 6, or 8 devices, or cluster.colocate_split_and_replicate: true for task graphs on the same devices
[1]
$ printf 'heddle-annotate: 1\ndefault: {replicate: 1}\nconfig: {pipeline.num_stages: 4}\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --annotate a.yaml --devices 2
error[E0512]: 2 devices cannot be divided into replicas of the model of 4 (1 of `stage 0` + 1 of `stage 1` + 1 of `stage 2` + 1 of `stage 3`)
  --> a.yaml:3:31
   3 | config: {pipeline.num_stages: 4}
     |                               ^
  hint: pipeline.num_stages: 2
[1]
## Shares of the batch, of replicas, and of a split.
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2, shares: [5, 2]}\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --annotate a.yaml
error[E0502]: batch 32 is not divisible by 7 (7 shares of `default`)
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: [5, 2]}
     |                                 ^
  note: the batch is the first extent of the first input
    --> mlp-xs
  hint: shares: [23, 9], or a batch that is a multiple of 7
[1]
$ sed -i 's/5, 2/23, 9/' a.yaml; heddle verify mlp-xs:layers=4,hidden=32 --batch 32 --annotate a.yaml | sed -n '2p;7p'
plan       default: replicate(2) 23/9
verdict    equal: the plan computes what the model computes
$ printf 'heddle-annotate: 1\nreplicas: [5, 2]\ndefault: {replicate: 1}\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --annotate a.yaml --devices 2
error[E0502]: batch 32 is not divisible by 7 (7 shares of replicas of the model)
  --> a.yaml:2:11
   2 | replicas: [5, 2]
     |           ^
  note: the batch is the first extent of the first input
    --> mlp-xs
  hint: replicas: [23, 9], or a batch that is a multiple of 7
[1]
$ printf 'heddle-annotate: 1\nscopes: [{layers: 0-1, split: 2, shares: [3, 2]}]\ndefault: {replicate: 1}\n' > a.yaml; heddle verify gpt2:layers=2,hidden=24,heads=6,vocab=64 --seq 8 --batch 8 --annotate a.yaml
error[E0502]: split of `layers 0-1`: attn.qkv of 24 x 72 cannot be split 5 ways: 72 = 3 x 6 x 4, and 6 is not divisible by 5
  --> a.yaml:2:42
   2 | scopes: [{layers: 0-1, split: 2, shares: [3, 2]}]
     |                                          ^
  note: here in the model
    --> gpt2: layer/attention
  hint: shares: [2, 1]
[1]
$ sed -i 's/3, 2/2, 1/' a.yaml; heddle verify gpt2:layers=2,hidden=24,heads=6,vocab=64 --seq 8 --batch 8 --annotate a.yaml | sed -n '2p;7p'
plan       default: replicate(1), layers 0-1: split(2) 2/1
verdict    equal: the plan computes what the model computes
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2, shares: [3, 2]}\nscopes: [{match: "*.mlp.*", split: 2}]\n' > a.yaml; heddle verify gpt2:layers=2,hidden=24,heads=6,vocab=64 --seq 8 --batch 8 --annotate a.yaml
error[E0512]: shares of `default`: `*.mlp.*` is split inside it over the same devices, which needs equal shares
  --> a.yaml:2:33
   2 | default: {replicate: 2, shares: [3, 2]}
     |                                 ^
  note: the split
    --> a.yaml:3:10
     3 | scopes: [{match: "*.mlp.*", split: 2}]
       |          ^
  hint: shares: equal; replicas of the model may have others
[1]
## Microbatches.
$ printf 'heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}, {layers: 2-3, replicate: 1}]\nconfig: {num_micro_batch: 5}\n' > a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --train --annotate a.yaml
error[E0502]: batch 32 is not divisible by 5 (5 microbatches)
  --> a.yaml:3:27
   3 | config: {num_micro_batch: 5}
     |                           ^
  note: the batch is the first extent of the first input
    --> mlp-xs
  hint: num_micro_batch: 4, or 8
[1]
$ sed -i 3d a.yaml; heddle verify mlp-xs:layers=4 --batch 32 --train --annotate a.yaml --strategy mb=5
error[E0502]: batch 32 is not divisible by 5 (5 microbatches)
  --> --strategy:1:1
   1 | mb=5
     | ^
  note: the batch is the first extent of the first input
    --> mlp-xs
  hint: mb=4, or 8
[1]
## Memory.
$ printf 'heddle-annotate: 1\nscopes: [{layers: 0-15, replicate: 2}, {layers: 16-31, split: 2}]\n' > a.yaml; heddle sim llama2-7b --batch 8 --train --annotate a.yaml --machine '1x4 v100' 2>&1 >/dev/null
error[E0505]: rank 2 needs 238 GiB; its device has 28.8 GiB
  --> llama2-7b
  note: 16 values of softmax in @layer.fwd.1: 128 GiB of activations
    --> llama2-7b: layer/attention
  note: 15 values of matmul in @layer.fwd.1: 10.1 GiB of activations
    --> llama2-7b: layer/mlp
  note: 15 values of matmul in @layer.fwd.1: 10.1 GiB of activations
    --> llama2-7b: layer/mlp
  note: rank 2 has `layers 16-31`
    --> a.yaml:2:63
     2 | scopes: [{layers: 0-15, replicate: 2}, {layers: 16-31, split: 2}]
       |                                                               ^
  hint: gradient_checkpoint.type: auto, zero.level: v1, a larger pipeline.num_micro_batch, more devices in `split`, or more task graphs
[1]
$ printf 'config: {gradient_checkpoint.type: auto, zero.level: v1}\n' >> a.yaml; heddle sim llama2-7b --batch 8 --train --annotate a.yaml --machine '1x4 v100' 2>&1 >/dev/null | tail -1
  hint: a larger pipeline.num_micro_batch, more devices in `split`, or more task graphs
## Names of the environment, and a pattern without quotes.
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\n' > a.yaml; EPL_PIPELINE_FOO=8 heddle verify mlp-xs:layers=4,hidden=32 --batch 32 --annotate a.yaml
error[E0512]: EPL_PIPELINE_FOO (environment) is not a setting
  hint: unset it; there are EPL_PIPELINE_NUM_STAGES, EPL_PIPELINE_NUM_MICRO_BATCH, EPL_PIPELINE_STRATEGY
[1]
$ EPL_PIPELINE_NUM_MICRO_BATCHES=8 heddle verify mlp-xs:layers=4,hidden=32 --batch 32 --annotate a.yaml
error[E0512]: EPL_PIPELINE_NUM_MICRO_BATCHES (environment) is not a setting
  hint: did you mean EPL_PIPELINE_NUM_MICRO_BATCH?
[1]
$ EPL_FOO=8 heddle verify mlp-xs:layers=4,hidden=32 --batch 32 --annotate a.yaml | sed -n '2p;7p'
plan       default: replicate(2)
verdict    equal: the plan computes what the model computes
$ printf 'heddle-annotate: 1\nscopes: [{match: *up, split: 2}]\n' > a.yaml; heddle verify mlp-xs:layers=4 --annotate a.yaml
error[E0104]: aliases are not supported: write the text out, or put it in quotes
  --> a.yaml:2:18
   2 | scopes: [{match: *up, split: 2}]
     |                  ^
[1]
