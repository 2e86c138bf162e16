## long: .ci/run has it without sanitizers
## Attention that keeps no scores: memory and time of a step, the plan, and what is refused.
$ heddle sim gpt3-1.3b --batch 1 --dtype f16 --train --optimizer adam --machine '1x1 v100-32gb' --strategy attention=scores 2>&1 | grep -E "^(plan|time per|peak|einsum|softmax|attention)|^0 "
plan            dp=1 tp=1 pp=1
time per step   338.4 ms
peak memory     23.9 GiB of 28.8 GiB on rank 0
0        2.45 GiB        0 B   14.7 GiB     6.40 GiB    393 MiB            0 B  23.9 GiB
softmax      layer.fwd  activations         24  3.00 GiB
einsum         computation    339  145.8 ms  43.1 %
softmax_dx     computation     24  13.48 ms   4.0 %
softmax        computation     24  9.176 ms   2.7 %
$ heddle sim gpt3-1.3b --batch 1 --dtype f16 --train --optimizer adam --machine '1x1 v100-32gb' --strategy attention=fused 2>&1 | grep -E "^(plan|time per|peak|einsum|softmax|attention)|^0 "
plan            dp=1 tp=1 pp=1 attention=fused
time per step   292.8 ms
peak memory     20.9 GiB of 28.8 GiB on rank 0
0        2.45 GiB        0 B   14.7 GiB     3.40 GiB    393 MiB            0 B  20.9 GiB
einsum         computation    195  113.3 ms  38.7 %
attention_dx   computation     24  20.70 ms   7.1 %
attention      computation     24  8.767 ms   3.0 %
$ heddle plan gpt2 --batch 32 --seq 512 --train --machine '1x4 v100' --strategy 'attention=* zero=0 recompute=none,selective' --top 4 | sed -n '/time  /,/^$/p'
   dp  tp  recompute  attention      time         samples    memory  limited by
1   4   1  none       fused      322.6 ms  1.00x  99.18/s  4.27 GiB  computation 97 %
2   4   1  none       scores     335.8 ms  1.04x  95.29/s  5.40 GiB  computation 97 %
3   2   2  none       fused      338.7 ms  1.05x  94.47/s  4.63 GiB  computation 95 %
4   4   1  selective  scores     350.2 ms  1.09x  91.36/s  4.13 GiB  computation 97 %

$ heddle plan gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 attention=fused' -o t.plan >/dev/null; grep -A1 '^attention' t.plan | grep -v '^$'
attention: fused
order:
$ heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --plan t.plan | grep -e ^plan -e ^verdict
plan       dp=1 tp=2 pp=1 attention=fused
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --attention fused --tensor 2 --sequence-parallel --coshard 2 | grep -e ^plan -e ^verdict
plan       dp=1 tp=2 pp=1 coshard=2 attention=fused sp
verdict    equal: the plan computes what the model computes
$ heddle verify llama2-70b:layers=2,hidden=32,heads=4,kv_heads=2,ffn=64,vocab=64 --batch 8 --seq 16 --train --optimizer adam --strategy "dp=2 tp=2 pp=2 mb=2 zero=1 attention=fused" | grep -e ^plan -e ^verdict
plan       dp=2 tp=2 pp=2 mb=2 zero=1 attention=fused
verdict    equal: the plan computes what the model computes
$ heddle verify moe-8x125m:layers=2,hidden=32,heads=4,ffn=64,vocab=64 --batch 8 --seq 16 --train --annotate examples/annotations/experts.yaml --devices 4 --strategy attention=fused | grep -e ^plan -e ^verdict
plan       default: replicate(4), *experts: split inside; attention=fused
verdict    equal: the plan computes what the model computes
## A rank has a part of the queries, and all keys.
$ heddle plan gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'dp=2 mb=1 zero=0 recompute=none attention=fused' -o dp.plan >/dev/null; sed 's/tp: 1}/tp: 2}/;/input: "labels"/a\  - {in: layer, instr: 8, operand: 0, dim: 1, axis: tp, stride: 8}' dp.plan >queries.plan; heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --plan queries.plan | grep -e ^plan -e ^verdict
plan       dp=2 tp=1 pp=1 attention=fused
verdict    equal: the plan computes what the model computes
$ heddle lower gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --plan queries.plan --rank 1 | grep -E "= attention " | sed 's/.*whole=//;s/}  *:.*//;s/ loc(.*//' | head -1
"[8{dp},16{tp},4,8], [8{dp},16,4,8], [8{dp},16,4,8] -> [8{dp},16{tp},4,8], [8{dp},16{tp},4]"} ^37 : f32[4,8,4,8], f32[4,8,4]
$ heddle export gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --plan queries.plan --to pytorch -o t.py
error[E0514]: attention cannot be written in PyTorch along a dimension that is split
  --> gpt2: layer/attention
[1]
## Nothing is left to compute again.
$ heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --strategy "recompute=selective attention=fused" 2>&1 | grep -e ^plan -e ^verdict -e ^warning
warning[W0101]: recompute=selective changes nothing: the plan is the same without it
plan       dp=1 tp=1 pp=1 recompute=selective attention=fused
verdict    equal: the plan computes what the model computes
## Where some of it is found, and where none is.
$ heddle verify tests/golden/plan/two_attentions.heddle --strategy "dp=2 attention=fused" 2>&1 | head -9
warning[W0101]: attention=fused: 1 of 2 products of a softmax keep scores
  --> --strategy:1:6
   1 | dp=2 attention=fused
     |      ^
  note: scores that are read elsewhere, or made in another way than by scales, a bias and a mask
    --> tests/golden/plan/two_attentions.heddle:9:8
     9 |   %z = matmul %u, %k
       |        ^
model      tests/golden/plan/two_attentions.heddle
$ heddle sim resnet50 --batch 8 --train --machine '1x1 v100' --strategy attention=fused
error[E0501]: attention=fused finds no attention in this model
  --> --strategy:1:1
   1 | attention=fused
     | ^
  hint: attention=scores, or leave it out
[1]
$ heddle plan resnet50 --batch 8 --train --machine '1x1 v100' --strategy attention=fused
error[E0506]: no plan can run: all 12 are impossible
  note: 12 impossible, such as dp=1 tp=1 pp=1 attention=fused: attention=fused finds no attention in this model
  hint: attention=scores, or leave it out
[1]
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'tp=4 attention=fused' --auto
error[E0509]: attention=fused does not go with --auto: operators are split as the model has them
  --> --strategy:1:6
   1 | tp=4 attention=fused
     |      ^
  hint: attention=scores, or leave out --auto
[2]
$ sed 's/^attention: fused/attention: flash/' t.plan >bad.plan; heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --plan bad.plan
error[E0501]: `attention` is scores or fused
  --> bad.plan:16:12
  16 | attention: flash
     |            ^
[1]
$ heddle sim gpt2 --attention flash --machine '1x1 v100'
error[E0509]: attention: unknown value 'flash'
  --> --strategy:1:11
   1 | attention=flash
     |           ^
  hint: attention takes scores or fused
[2]
$ heddle lower gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 8 --seq 16 --train --strategy "tp=2 attention=fused" --rank 0 | grep -E "= (attention|softmax)" | sed 's/ loc(.*//'
  %24, %25 = attention %23, %21, %22 {law="bshd,bthd,bthe->bshe", causal="s", value=-1e+04, whole="[8,16,4{tp},8], [8,16,4{tp},8], [8,16,4{tp},8] -> [8,16,4{tp},8], [8,16,4{tp}]"} ^37 : f32[8,16,2,8], f32[8,16,2]
  %38, %39, %40 = attention_dx %35, %12, %13, %11, %36, %37 {law="bshd,bthd,bthe->bshe", causal="s", value=-1e+04, whole="[8,16,4{tp},8], [8,16,4{tp},8], [8,16,4{tp}], [8,16,4{tp},8], [8,16,4{tp},8], [8,16,4{tp},8] -> [8,16,4{tp},8], [8,16,4{tp},8], [8,16,4{tp},8]"} backward ^37 : f32[8,16,2,8], f32[8,16,2,8], f32[8,16,2,8]
$ heddle ops attention
attention: softmax(alpha q k^T + bias) v along the letters of its law, scores never stored; and the log-sum-exp of each row of scores. Where the mask is false, or, given causal=LETTER, the key lies after the query, scores are `value` (-inf)
  operands    3 to 5
  results     2
  law         as the attribute says
  types       F,F,F,T,U->F,wide
  split       all letters but those of keys and of the inner extents of both products
  linearity   every operand: not linear
  attributes  law          the law of an einsum, "mk,kn->mn", or of attention, "bshd,bthd,bthe->bshe" (a word, required)
              alpha        operator-specific factor (a number, default 1)
              causal       the letter of queries that see keys up to their own index: "s" (a word, optional)
              value        a scalar (a number, optional)
  flops       2 (d + e) + 5 for each score
$ heddle plan gpt2 --batch 32 --seq 512 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=8 attention=scores,fused zero=0 recompute=none' --top 9 | sed -n '/^ *pp/,/^$/p'
   pp  mb  attention      time         samples    memory  limited by
1   4   8  fused      480.1 ms  1.00x  66.65/s  2.04 GiB  bubble 28 %
2   4   8  scores     501.3 ms  1.04x  63.84/s  2.79 GiB  bubble 29 %

