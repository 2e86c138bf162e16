$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --train --optimizer adam --data 2 --tensor 2 --pipeline 2 --microbatches 2 --zero 2
model      mlp-xs:layers=4,hidden=32
plan       dp=2 tp=2 pp=2 mb=2 zero=2
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
h.3.w.v.new     1,024         1.73472e-18  5.23082e-16
... and 7 more
$ heddle verify gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 4 --seq 8 --tensor 4 --json | head -12
{
  "model": "gpt2:layers=2,hidden=32,heads=4,vocab=64",
  "plan": "dp=1 tp=4 pp=1",
  "shrunk": null,
  "results": 1,
  "elements": 2048,
  "worst": 1.8816582158688604e-13,
  "tolerance": 1e-09,
  "passed": true,
  "told": true,
  "differences": [
    {"name": "result 0", "elements": 2048, "max_abs": 1.7208456881689926e-15, "max_rel": 1.8816582158688604e-13, "told": 2048, "not_finite": 0, "rounding": false}
$ heddle verify mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --tolerance 1e-30
model      mlp-xs:layers=2,hidden=8
plan       dp=2 tp=1 pp=1
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
plan       dp=1 tp=1 pp=1
shrunk     1024 -> 15 (tokens[1]), 768 -> 10 (wte[1]), 64 -> 8 (h.0.attn.qkv[1]),
           3072 -> 11 (h.0.mlp.up[1]), 50257 -> 29 (wte[0])
results    297
elements   127,157
worst      0
tolerance  1e-09
verdict    equal: the plan computes what the model computes, at the extents given above

result                  elements  largest difference  relative
h.0.attn.out.bias.grad        10                   0         0
## Batch norm: over a rank's microbatch, over all ranks of it, and as a plan file says it.
$ heddle verify examples/batchnorm.heddle --train --data 4 --microbatches 2 | head -7
model       examples/batchnorm.heddle
plan        dp=4 tp=1 pp=1 mb=2
batch norm  statistics over 3 of 24 samples
results     23
elements    1,849
worst       2.08686e-13
tolerance   1e-09
$ heddle verify examples/batchnorm.heddle --train --data 4 --microbatches 2 --batchnorm sync --json | head -8
{
  "model": "examples/batchnorm.heddle",
  "plan": "dp=4 tp=1 pp=1 mb=2 bn=sync",
  "batchnorm_samples": 12,
  "shrunk": null,
  "results": 23,
  "elements": 1849,
  "worst": 4.451912818061055e-13,
$ heddle plan examples/batchnorm.heddle --train --data 4 --microbatches 2 --machine laptop --zero 0 --recompute none -o bn.plan | tail -5
batch norm   statistics over 3 of 24 samples
one device   0.56x the time, 125.8 us: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
$ grep batchnorm-groups bn.plan
batchnorm-groups: 8
$ heddle verify examples/batchnorm.heddle --plan bn.plan | head -4
model       examples/batchnorm.heddle
plan        dp=4 tp=1 pp=1 mb=2
batch norm  statistics over 3 of 24 samples
results     23
$ sed 's/batchnorm-groups: 8/batchnorm-groups: 9/' bn.plan > nine.plan; heddle verify examples/batchnorm.heddle --plan nine.plan
error[E0502]: 9 groups of batch norm statistics, but batchnorm_train has a batch of 24
  --> nine.plan:17:19
  17 | batchnorm-groups: 9
     |                   ^
  note: 24 / 9 is not a whole number
    --> examples/batchnorm.heddle:5:21
     5 |   %z, %mean, %var = batchnorm_train %y, %g, %b
       |                     ^
  hint: `batchnorm-groups` is the number of data ranks times that of microbatches
[1]
$ sed 's/batchnorm-groups: 8/batchnorm-groups: 4/' bn.plan > four.plan; heddle verify examples/batchnorm.heddle --plan four.plan
error[E0303]: batchnorm_train needs operand 1 of all 2 microbatches at once, but they run one after the other
  --> examples/batchnorm.heddle:19:16
  19 |   %1, %m, %v = batchnorm_train %0, %stem.g, %stem.b {eps=0.001}
     |                ^
  hint: mb=1, or split a dimension that every instruction keeps
  note: the plan asks for it here
    --> four.plan:2:1
     2 | heddle-plan: 1
       | ^
[1]
$ heddle plan mlp-xs --batch 16 --data 2 --machine laptop --devices 2 -o mlp.plan > /dev/null; echo 'batchnorm-groups: 2' >> mlp.plan; heddle verify mlp-xs --batch 16 --plan mlp.plan
error[E0501]: 2 groups of batch norm statistics, but no batch norm of the model takes any
  --> mlp.plan:14:19
  14 | batchnorm-groups: 2
     |                   ^
  hint: leave `batchnorm-groups` out
[1]
## A plan for more devices than there are.
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --data 8 --machine laptop
error[E0605]: rank 7 is used; the machine laptop has ranks 0 to 3
  hint: plan for this machine, or use more of them: --machine 'laptop*2'
[1]
$ heddle verify tests/golden/plan/two_stages.heddle --plan tests/golden/plan/two_stages.plan --machine '1x2 a10'
error[E0605]: rank 3 is used; the machine 1x2 a10 has ranks 0 to 1
  --> tests/golden/plan/two_stages.plan:7:3
   7 |   m: {axes: [pp, dp]}
     |   ^
  hint: plan for this machine, or use a larger one
[1]
## Results that do not depend on the inputs prove nothing.
$ heddle verify tests/golden/plan/two_stages.heddle --plan tests/golden/plan/two_stages.plan
model      tests/golden/plan/two_stages.heddle
plan       two stages
results    1
elements   1
worst      0
tolerance  1e-09
verdict    INCONCLUSIVE: the results are equal, but a wrong plan could give the same

result    elements  largest difference  relative
result 0         1                   0         0
error[E0702]: no result depends on the inputs, so nothing is proved: result 0 (8)
  --> tests/golden/plan/two_stages.heddle:6:6
   6 | func @main(%x: f32[8,16], %a: f32[16,16] weight, %b: f32[16,16] weight) -> (f32[]) {
     |      ^
  hint: another --seed, or a part of the model whose results are not constant
[1]
$ heddle verify bert-base:layers=2,hidden=24,heads=4,vocab=30 --batch 16 --seq 8 --train --optimizer adafactor --data 2 --tensor 2 --pipeline 2 --microbatches 2 --zero 3
model      bert-base:layers=2,hidden=24,heads=4,vocab=30
plan       dp=2 tp=2 pp=2 mb=2 zero=3
results    115
elements   58,667
worst      1.23042e-12
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result                elements  largest difference     relative
h.0.mlp.down.grad        2,304         3.62124e-17  1.23042e-12
h.1.mlp.up.grad          2,304         4.85723e-17  1.12061e-12
h.1.mlp.down.grad        2,304         4.85723e-17  7.65822e-13
word.grad                  720         8.32667e-17  4.13427e-13
head.grad                  576         9.71445e-17  3.80503e-13
h.0.mlp.up.grad          2,304         4.16334e-17  3.54029e-13
h.1.attn.qkv.grad        1,728         6.93889e-17  3.10218e-13
h.0.attn.qkv.grad        1,728         9.02056e-17  2.28565e-13
h.0.mlp.up.bias.grad        96         1.73472e-17  1.87299e-13
h.0.ln1.b.grad              24         5.61617e-17  1.55711e-13
... and 105 more
