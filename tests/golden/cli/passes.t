## long: .ci/run has it without sanitizers
## 3F1B: three passes forward through the same places, the last of which keeps its values, and one backward.
$ heddle schedule 3f1b --pp 2 --mb 3
0F0,0F1,0F2,0F0p1,0F1p1,0F2p1,0F0p2,0F1p2,0B0,0F2p2,0B1,0B2
1F0,1F1,1F2,1F0p1,1F1p1,1F2p1,1F0p2,1B0,1F1p2,1B1,1F2p2,1B2
$ heddle schedule 3f1b --pp 4 --mb 6 --picture
schedule      3f1b
places        4
stages        4
microbatches  6
time          39, where a forward of a stage takes 1 and a backward 2

place 0  0 1 2 3 4 0'5 1'2'3'4'0"5'1"2"3". . . . . a A 4". b B 5"c C . d D . e E . f F
place 1  . 0 1 2 3 4 0'5 1'2'3'4'0"5'1"2". . . a A 3". b B 4"c C 5"d D . e E . f F . .
place 2  . . 0 1 2 3 4 0'5 1'2'3'4'0"5'1". a A 2". b B 3"c C 4"d D 5"e E . f F . . . .
place 3  . . . 0 1 2 3 4 0'5 1'2'3'4'0"a A 5'1"b B 2"c C 3"d D 4"e E 5"f F . . . . . .

place  stages  tasks  idle  bubble  activations
    0  0          24     9  23.1 %            4
    1  1          24     9  23.1 %            3
    2  2          24     9  23.1 %            2
    3  3          24     9  23.1 %            1
$ heddle verify alphafold2:layers=4,msa=4,hidden=16,heads=2,head_dim=8,pair=16,recycle=3 --batch 4 --seq 6 --train --strategy "pp=2 dp=2 mb=2 schedule=3f1b zero=2" 2>&1 | grep -e ^plan -e ^verdict
plan       dp=2 tp=1 pp=2 mb=2 v=3 schedule=3f1b zero=2
verdict    equal: the plan computes what the model computes
$ heddle verify alphafold2:layers=4,msa=4,hidden=16,heads=2,head_dim=8,pair=16,recycle=3 --batch 4 --seq 6 --strategy "pp=4 mb=4 schedule=3f1b" 2>&1 | grep -e ^plan -e ^verdict
plan       dp=1 tp=1 pp=4 mb=4 v=3 schedule=3f1b
verdict    equal: the plan computes what the model computes
$ heddle plan alphafold2:layers=4,msa=4,hidden=16,heads=2,head_dim=8,pair=16,recycle=3 --batch 4 --seq 8 --train --strategy "pp=2 mb=4 schedule=3f1b layers=3/1 recompute=none" --machine '1x2 v100' -o t.plan >plan.txt; sed -n '/^segments/,/^trans/p;/^schedule/p;/^order/,$p' t.plan
segments:
  - {from: 1, to: 27, on: m, at: {pp: 0}}
  - {from: 28, to: 29, on: m, at: {pp: 1}}
  - {from: 30, to: 39, on: m, at: {pp: 0}}
  - {from: 40, to: 41, on: m, at: {pp: 1}}
  - {from: 42, to: 51, on: m, at: {pp: 0}}
  - {from: 52, to: 57, on: m, at: {pp: 1}}
trans:
schedule: 3f1b
order:
  - "F0.0*3 F2.0 F0.3 F2.1*2 F4.0 F2.3 (F4.1 B4.0 B2.0 B0.0)*3 B4.3 B2.3 B0.3"
  - "F1.0*3 F3.0 F1.3 F3.1*2 F5.0 B5.0 B3.0 B1.0 F3.3 (F5.1 B5.1 B3.1 B1.1)*3"
$ heddle sim alphafold2:layers=4,msa=4,hidden=16,heads=2,head_dim=8,pair=16,recycle=3 --batch 4 --seq 8 --train --plan t.plan --machine '1x2 v100' | sed -n '/^plan/p;/^layers/p;/^schedule/p;/^time/p'
plan            dp=1 tp=1 pp=2 mb=4 v=3 schedule=3f1b layers=3/1
layers          3/1/3/1/3/1
schedule        3f1b
time per step   50.20 ms
$ for s in 1f1b "interleaved v=3 layers=equal" 3f1b; do heddle sim alphafold2:recycle=3 --batch 32 --train --dtype bf16 --machine '1x8 a100-80gb' --strategy "pp=8 mb=32 recompute=full schedule=$s" | grep "^time per"; done
time per step   14.09 s
time per step   9.267 s
time per step   7.493 s
## Refused: other models, gradients through all passes, layers that differ by pass, too many places, chunks, replicas.
$ heddle sim gpt2:layers=3 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=3f1b"
error[E0501]: schedule=3f1b: the model does not pass three times through the same layers
  --> gpt2
  hint: schedule=1f1b, or a model that recycles, such as alphafold2:recycle=3
[1]
$ heddle sim alphafold2:layers=4,recycle=2 --batch 4 --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=3f1b"
error[E0501]: schedule=3f1b: the model does not pass three times through the same layers
  --> alphafold2
  hint: schedule=1f1b, or a model that recycles, such as alphafold2:recycle=3
[1]
$ heddle import alphafold2:layers=2,msa=4,hidden=16,heads=2,head_dim=8,pair=16,recycle=3 --batch 4 --seq 8 -o a.heddle && sed -i 's/stop_gradient/cast/; /= cast/s/ : \(f32[^ ]*\)/ {dtype=f32} : \1/' a.heddle && heddle sim a.heddle --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=3f1b"
error[E0501]: schedule=3f1b: gradients go through all passes of the model, not through the last alone
  --> a.heddle:261:6
 261 | func @main(
     |      ^
  hint: schedule=1f1b, or a model that recycles, such as alphafold2:recycle=3
[1]
$ heddle sim alphafold2:layers=4,recycle=3 --batch 4 --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=3f1b layers=3/2"
error[E0502]: layers has 2 numbers that add up to 5, but a pass has 4 layers on 2 places
  --> --strategy:1:25
   1 | pp=2 mb=4 schedule=3f1b layers=3/2
     |                         ^
  hint: one number for each place that add up to 4, or layers=equal
[1]
$ heddle sim alphafold2:layers=4,recycle=3 --batch 4 --train --machine '1x8 v100' --strategy "pp=8 mb=4 schedule=3f1b"
error[E0502]: 8 places, but a pass through the model has only 4 layers
  --> alphafold2
  hint: pp=4 at most
[1]
$ heddle sim alphafold2:layers=4,recycle=3 --batch 4 --train --machine '1x2 v100' --strategy "pp=2 v=2 mb=4 schedule=3f1b"
error[E0509]: v=2: schedule=3f1b has 3 chunks on each place
  --> --strategy:1:6
   1 | pp=2 v=2 mb=4 schedule=3f1b
     |      ^
  hint: v=3, or leave out v
[2]
$ heddle sim alphafold2:layers=4,recycle=3 --batch 4 --train --machine '1x3 v100' --strategy "replicas=2x1+1x1 mb=4 schedule=3f1b"
error[E0509]: replicas=2x1+1x1 does not go with schedule=3f1b: only one pipeline can have passes
  --> --strategy:1:1
   1 | replicas=2x1+1x1 mb=4 schedule=3f1b
     | ^
  hint: replicas=none, or schedule=1f1b
[2]
$ heddle sim alphafold2:layers=4,recycle=3 --batch 4 --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=3f1b layers=whale"
error[E0509]: layers=whale does not go with schedule=3f1b: every pass has the same layers on a place
  --> --strategy:1:25
   1 | pp=2 mb=4 schedule=3f1b layers=whale
     |                         ^
  hint: layers=equal
[2]
