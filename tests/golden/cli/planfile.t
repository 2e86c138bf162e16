## long: .ci/run has it without sanitizers
## Every refusal of a plan file points into it.
$ sed 's/dp: 2/dp: 70000/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: expected a number from 1 to 65535, found `70000`
  --> t.plan:4:19
   4 | axes: {pp: 2, dp: 70000}
     |                   ^
[1]
$ sed 's/dp: 2/dp: 3/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0502]: input x: dimension 0 of extent 8 cannot be split 3 ways over axis dp
  --> t.plan:12:5
  12 |   - {input: "x", dim: 0, axis: dp}
     |     ^
  hint: choose a batch that is a multiple of dp x mb
[1]
$ sed 's/\[pp, dp\]/[pp, pp]/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0202]: mesh @m has axis 'pp' twice
  --> t.plan:7:3
   7 |   m: {axes: [pp, pp]}
     |   ^
[1]
$ sed 's/\[pp, dp\]/[dp]/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0305]: mesh @m has no axis 'pp'
  --> t.plan:9:5
   9 |   - {from: 1, to: 1, on: m, at: {pp: 0}}
     |     ^
[1]
$ sed 's/\[pp, dp\]}/[pp, dp], ranks: [0, 1, 1, 2]}/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0305]: mesh @m: rank 1 is at position 1 and at position 2
  --> t.plan:7:3
   7 |   m: {axes: [pp, dp], ranks: [0, 1, 1, 2]}
     |   ^
[1]
$ sed 's/at: {pp: 0}/at: {mb: 0}/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0305]: mesh @m has no axis 'mb'
  --> t.plan:9:5
   9 |   - {from: 1, to: 1, on: m, at: {mb: 0}}
     |     ^
[1]
$ sed 's/from: 2/from: 3/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: segment 1 covers instructions 3 to 4 of main, which has 4: layer, main:2, is in no segment
  --> t.plan:10:5
  10 |   - {from: 3, to: 4, on: m, at: {pp: 1}}
     |     ^
  hint: from: 2, to: 4; or use the model and the options that the plan was made for, which its first line names if `heddle plan -o` wrote it
[1]
$ sed 's/input: "x", dim: 0, axis: dp/input: "x", dim: 2, axis: dp/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: dim: 2, but input x has 2 dimensions
  --> t.plan:12:23
  12 |   - {input: "x", dim: 2, axis: dp}
     |                       ^
[1]
$ sed 's/input: "x", dim: 0, axis: dp/input: "x", dim: 0, axis: dp, stride: 3/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0502]: input x: dimension 0 of extent 8 cannot be split 2 ways over axis dp at stride 3
  --> t.plan:12:5
  12 |   - {input: "x", dim: 0, axis: dp, stride: 3}
     |     ^
  hint: choose a batch that is a multiple of dp x mb
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: layer, instr: 1, op: matmul, operand: 7, dim: 0, axis: dp/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: operand: 7, but matmul has 2 (from 0)
  --> t.plan:12:48
  12 |   - {in: layer, instr: 1, op: matmul, operand: 7, dim: 0, axis: dp}
     |                                                ^
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: layer, instr: 1, op: matmul, result: 0, dim: 5, axis: dp/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: dim: 5, but result 0 of matmul has 2 dimensions
  --> t.plan:12:55
  12 |   - {in: layer, instr: 1, op: matmul, result: 0, dim: 5, axis: dp}
     |                                                       ^
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: main, instr: 1, operand: 0, dim: 1, axis: dp/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: call itself cannot be split: name instructions of the function it calls
  --> t.plan:12:35
  12 |   - {in: main, instr: 1, operand: 0, dim: 1, axis: dp}
     |                                   ^
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: main, instr: 3, operand: 0, dim: 1, axis: dp/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: softmax needs dimension 1 whole; it cannot be split over dp
  --> t.plan:12:5
  12 |   - {in: main, instr: 3, operand: 0, dim: 1, axis: dp}
     |     ^
  hint: what 2 ranks can split here: operand 0, dim 0
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: layer, instr: 1, operand: 0, dim: 1, axis: dp, stride: 7/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0502]: matmul: extent 16 is not divisible by 2 (axis dp)
  --> t.plan:12:5
  12 |   - {in: layer, instr: 1, operand: 0, dim: 1, axis: dp, stride: 7}
     |     ^
  hint: what 2 ranks can split here: operand 0, dim 0, 1; operand 1, dim 0, 1
[1]
$ sed 's/input: "x", dim: 0, axis: dp/in: layer, instr: 2, operand: 0, dim: 1, axis: mb/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0502]: relu: extent 16 is not divisible by 2 (axis mb)
  --> tests/golden/plan/two_stages.heddle:3:8
   3 |   %z = relu %y
     |        ^
  note: mb splits an extent of 8 at stride 4
    --> tests/golden/plan/two_stages.heddle:3:8
     3 |   %z = relu %y
       |        ^
  note: the plan asks for it here
    --> t.plan:12:5
    12 |   - {in: layer, instr: 2, operand: 0, dim: 1, axis: mb}
       |     ^
[1]
$ sed 's/F0.0\*2/F0.0/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: task 0F1 is in no sequence
  --> t.plan:15:5
  15 |   - "F0.0"
     |     ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) once
[1]
$ sed 's/F0.0\*2/F0.0*2 F1.0/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: task 1F0 of place 0: its stage is not on that place
  --> t.plan:15:5
  15 |   - "F0.0*2 F1.0"
     |     ^
[1]
$ sed 's/F1.0\*2/F1.0*3/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: task 1F2 of place 1: there is no such microbatch
  --> t.plan:16:5
  16 |   - "F1.0*3"
     |     ^
[1]
$ sed '/F1.0/d' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: the plan has 1 sequence for 2 places
  --> t.plan:15:3
  15 |   - "F0.0*2"
     |   ^
[1]
$ sed 's/^order:/rest: {weights: [dp, dp]}\norder:/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: axis `dp` is listed twice
  --> t.plan:14:22
  14 | rest: {weights: [dp, dp]}
     |                      ^
[1]
$ sed 's/^order:/rest: {states: [mb]}\norder:/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: axis `mb` is in time (microbatches): storage cannot be sharded over it
  --> t.plan:14:17
  14 | rest: {states: [mb]}
     |                 ^
[1]
$ sed 's/^order:/rest: [dp]\norder:/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: `rest` must be a map from weights, gradients, states and servers to lists of axes
  --> t.plan:14:7
  14 | rest: [dp]
     |       ^
[1]
$ sed 's/^order:/send-stream: [dp]\norder:/' tests/golden/plan/two_stages.plan > t.plan; heddle verify tests/golden/plan/two_stages.heddle --plan t.plan
error[E0501]: `send-stream` must be a scalar
  --> t.plan:14:14
  14 | send-stream: [dp]
     |              ^
[1]
## The name of a schedule is kept as long as the order is that schedule's.
$ heddle plan mlp-xs:layers=4 --batch 16 --train --machine '1x2 v100' --strategy 'dp=1 tp=1 pp=2 mb=4 v=2 schedule=interleaved group=4' -o ok.plan >plan.out; grep -E '^(name|schedule|group)' ok.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan ok.plan --machine '1x2 v100' | grep -E '^(plan|schedule)'
name: "dp=1 tp=1 pp=2 mb=4 v=2 schedule=interleaved group=4"
schedule: interleaved
group: 4
plan            dp=1 tp=1 pp=2 mb=4 v=2 schedule=interleaved group=4
schedule        interleaved
$ heddle plan mlp-xs:layers=4 --batch 16 --train --machine '1x2 v100' --strategy 'dp=1 tp=1 pp=2 mb=4 schedule=gpipe' -o ok.plan >plan.out; sed 's/F1.0\*4 B1.0\*4/(F1.0 B1.0)*4/' ok.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100' | grep -E '^(plan|schedule)'
warning[W0504]: the order is not that of schedule gpipe: place 1 runs B1.0 as its task 2, not F1.1
  --> t.plan:21:5
  21 |   - "(F1.0 B1.0)*4"
     |     ^
  note: the plan says so here
    --> t.plan:18:11
    18 | schedule: gpipe
       |           ^
  hint: leave out `schedule` if the order is the plan's own
plan            dp=1 tp=1 pp=2 mb=4 schedule=gpipe
$ sed '/^schedule/d' ok.plan >old.plan; sed '/^schedule/d' t.plan >own.plan; for f in old own; do heddle sim mlp-xs:layers=4 --batch 16 --plan $f.plan --machine '1x2 v100' | grep -E '^(plan|schedule)'; done
plan            dp=1 tp=1 pp=2 mb=4 schedule=gpipe
plan            dp=1 tp=1 pp=2 mb=4 schedule=gpipe
$ sed 's/^schedule: gpipe/schedule: bfs\ngroup: 2/' ok.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100' | grep -E '^(plan|schedule)'
warning[W0504]: the order is not that of schedule bfs: it has none of 2 segments on 2 places and 4 microbatches in such groups
  --> t.plan:18:11
  18 | schedule: bfs
     |           ^
  hint: leave out `schedule` if the order is the plan's own
plan            dp=1 tp=1 pp=2 mb=4 schedule=gpipe
$ sed 's/^schedule: gpipe/schedule: 2f2b/' ok.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100'
error[E0501]: unknown schedule `2f2b`
  --> t.plan:18:11
  18 | schedule: 2f2b
     |           ^
  hint: did you mean `schedule: 1f1b`?
  hint: known schedules: gpipe 1f1b interleaved bfs zb-h1 zb-h2 zb-1p zb-2p zb-v zb-v-half zb-v-min dualpipev chimera chimera-double dualpipe gems interlaced interlaced-block 3f1b pipedream pipedream-2bw
[1]
$ sed 's/^schedule: gpipe/group: 2/' ok.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100'
error[E0501]: `group` is for a `schedule`
  --> t.plan:18:8
  18 | group: 2
     |        ^
[1]
## Whether a plan is asynchronous is said by `schedule`, never by its name.
$ heddle plan mlp-xs:layers=4 --batch 16 --train --machine '1x2 v100' --strategy 'pp=2 mb=8 schedule=pipedream' -o stale.plan >plan.out; grep -E '^(name|schedule)' stale.plan; sed 's/^name: .*/name: "anything"/' stale.plan >t.plan; heddle verify mlp-xs:layers=4 --batch 16 --plan t.plan | grep -e ^plan -e ^against -e ^verdict
name: "dp=1 tp=1 pp=2 mb=8 schedule=pipedream"
schedule: pipedream
plan       anything
verdict    equal: the plan computes what one device does with the same staleness
$ sed '/^schedule/d' stale.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100' | grep -E '^(plan|schedule|time per)'; sed 's/^name: .*/name: "anything"/' t.plan >u.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan u.plan --machine '1x2 v100' | grep -E '^(plan|schedule|time per)'; heddle sim mlp-xs:layers=4 --batch 16 --plan stale.plan --machine '1x2 v100' | grep -E '^(plan|schedule|time per)'
warning[W0504]: the plan has no `schedule`, so weights are updated when all tasks have ended, whatever its name says
  --> t.plan:3:7
   3 | name: "dp=1 tp=1 pp=2 mb=8 schedule=pipedream"
     |       ^
  hint: schedule: pipedream
plan            dp=1 tp=1 pp=2 mb=8 schedule=pipedream
time per step   1.217 ms
plan            anything
time per step   1.217 ms
plan            dp=1 tp=1 pp=2 mb=8 schedule=pipedream
schedule        pipedream
time per step   1.079 ms
## Warnings about what was said come before the answer.
$ heddle verify mlp-xs:layers=4 --batch 16 --plan t.plan 2>&1 | head -8
warning[W0504]: the plan has no `schedule`, so weights are updated when all tasks have ended, whatever its name says
  --> t.plan:3:7
   3 | name: "dp=1 tp=1 pp=2 mb=8 schedule=pipedream"
     |       ^
  hint: schedule: pipedream
model      mlp-xs:layers=4
plan       dp=1 tp=1 pp=2 mb=8 schedule=pipedream
results    9
$ sed 's/^name: .*/name: "dp=1 tp=1 pp=2 mb=8 schedule=pipedream"/;s/^schedule: .*/schedule: 1f1b/' stale.plan >t.plan; heddle sim mlp-xs:layers=4 --batch 16 --plan t.plan --machine '1x2 v100' | grep -E '^(plan|schedule|time per)'
plan            dp=1 tp=1 pp=2 mb=8 schedule=pipedream
schedule        1f1b
time per step   1.217 ms
## A segment may lie on several places: here the embedding and the head, on all four, between the tasks of the layers.
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --plan tests/golden/plan/interlaced.plan | grep -e ^results -e ^verdict
results    105
verdict    equal: the plan computes what the model computes
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --plan tests/golden/plan/interlaced.plan --machine '1x4 v100' | sed -n '/^place/,/^ *3/p'
place  ranks  computes  communicates    idle  peak memory
    0  0        57.4 %         2.6 %  39.9 %     1.35 MiB
    1  1        57.4 %         2.6 %  39.9 %     1.23 MiB
    2  2        57.4 %         2.6 %  39.9 %     1.09 MiB
    3  3        57.4 %         2.6 %  39.9 %      984 KiB
$ sed 's/^  - "F0.0 F0.1 F2.0/  - "F0.1 F0.0 F2.0/' tests/golden/plan/interlaced.plan > t.plan; heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --plan t.plan
error[E0503]: deadlock: no place can run its next task
  --> t.plan:21:3
  21 |   - "F0.0 F1.0 F0.1 F1.1 F0.2 F1.2 F0.3 F1.3 F5.0 B5.0 F5.1 B5.1 B1.0 F5.2 B5.2 B0.0 B1.1 F5.3 B...
     |   ^
  note: place 0 waits at 0F0 (task 1 of 24) for place 1, which runs it too
  note: place 1 waits at 0F1 (task 1 of 24) for place 0, which runs it too
  note: place 2 waits at 0F0 (task 1 of 24) for place 1, which runs it too
  note: place 3 waits at 0F0 (task 1 of 24) for place 1, which runs it too
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
$ sed 's/^  - "F0.0 F0.1 F2.0/  - "F0.1 F2.0/' tests/golden/plan/interlaced.plan > t.plan; heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --plan t.plan
error[E0501]: task 0F0 is on 3 of the 4 places of its stage
  --> t.plan:22:5
  22 |   - "F0.1 F2.0 F0.2 F2.1 F0.3 F2.2 F5.0 B5.0 F5.1 B5.1 B2.0 F2.3 F5.2 B5.2 B0.0 B2.1 F5.3 B5.3 B...
     |     ^
[1]
## Two places that overlap have as many ranks together as the mesh, but not all of them: the mesh is a place of its own.
$ heddle verify mlp-xs --memory 50MB --batch 32 --plan tests/golden/plan/overlapping.plan | grep verdict
verdict    equal: the plan computes what the model computes, at the extents given above
