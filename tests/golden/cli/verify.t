$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --train --optimizer adam --data 2 --tensor 2 --pipeline 2 --microbatches 2 --zero 2
model      mlp-xs:layers=4,hidden=32
plan       D2 T2 P2 K2 1f1b zero2
results    17
elements   16,385
worst      2.62301e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result       elements  largest difference     relative
h.1.w.grad      1,024         1.66533e-16  2.62301e-13
h.2.w.m.new     1,024         2.77556e-17  1.40064e-13
h.3.w.grad      1,024         6.66134e-16  1.39817e-13
h.0.w.grad      1,024         2.22045e-16  1.32638e-13
h.2.w.grad      1,024           2.498e-16  1.29266e-13
h.0.w.m.new     1,024         2.77556e-17   6.4375e-14
h.3.w.m.new     1,024         5.55112e-17  5.09955e-14
h.1.w.m.new     1,024         2.08167e-17  4.44496e-14
h.2.w.v.new     1,024         1.73472e-18  1.24729e-15
result 0            1         2.84217e-14  8.43191e-16
... and 7 more
$ heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 4 --seq 8 --tensor 4 --json | head -12
{
  "model": "gpt2:layers=2,hidden=32,heads=4,vocab=64",
  "plan": "D1 T4 P1 K1",
  "shrunk": null,
  "results": 1,
  "elements": 2048,
  "worst": 1.5666608010868118e-13,
  "tolerance": 1e-09,
  "passed": true,
  "told": true,
  "differences": [
    {"name": "result 0", "elements": 2048, "max_abs": 1.3322676295501878e-15, "max_rel": 1.5666608010868118e-13, "told": 2048, "not_finite": 0}
$ heddle verify mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --tolerance 1e-30
model      mlp-xs:layers=2,hidden=8
plan       D2 T1 P1 K1
results    1
elements   32
worst      0
tolerance  1e-30
verdict    equal: the plan computes what the model computes

result    elements  largest difference  relative
result 0        32                   0         0
## A plan that splits nothing, on a model that must be shrunk.
$ heddle verify gpt2 --train --memory 20MB | head -12
model      gpt2
plan       D1 T1 P1 K1
shrunk     1024 -> 8 (tokens[1]), 768 -> 8 (wte[1]), 64 -> 8 (h.0.attn.qkv[1]),
           3072 -> 8 (h.0.mlp.up[1]), 50257 -> 8 (wte[0])
results    297
elements   101,601
worst      0
tolerance  1e-09
verdict    equal: the plan computes what the model computes, at the extents given above

result                  elements  largest difference  relative
h.0.attn.out.bias.grad         8                   0         0
## A plan for more devices than there are.
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --data 8 --machine laptop
error[E0605]: rank 7 is used; the machine laptop has ranks 0 to 3
  hint: plan for this machine, or use more of them: --machine 'laptop*2'
[1]
$ heddle verify tests/golden/plan/two_stages.heddle --plan tests/golden/plan/two_stages.plan --machine '1x2 a10'
error[E0605]: rank 3 is used; the machine 1x2 a10 has ranks 0 to 1
  --> tests/golden/plan/two_stages.plan:10:5
  10 |   - {from: 2, to: 4, on: m, at: {pp: 1}}
     |     ^
  hint: plan for this machine, or use a larger one
[1]
## Results that do not depend on the inputs prove nothing.
$ heddle verify tests/golden/plan/two_stages.heddle --plan tests/golden/plan/two_stages.plan
model      tests/golden/plan/two_stages.heddle
plan       two stages
results    1
elements   1
worst      8.88178e-16
tolerance  1e-09
verdict    NOT TOLD: equal, but so would a wrong plan be

result    elements  largest difference     relative
result 0         1         7.10543e-15  8.88178e-16
error[E0702]: nothing is proved: no result depends on the inputs: result 0 (8)
  --> tests/golden/plan/two_stages.heddle:6:6
   6 | func @main(%x: f32[8,16], %a: f32[16,16] weight, %b: f32[16,16] weight) -> (f32[]) {
     |      ^
  hint: another --seed, or a part of the model whose results are not constant
[1]
