## long: .ci/run has it without sanitizers
## Pipelines with an embedding and a head on all places, between the tasks of the layers.
$ heddle schedule interlaced --pp 2 --mb 3
0F0,1F0,0F1,1F1,3F0,3B0,0F2,1F2,3F1,3B1,1B0,3F2,3B2,0B0,1B1,0B1,1B2,0B2
0F0,0F1,2F0,3F0,3B0,0F2,2B0,2F1,3F1,3B1,2B1,2F2,3F2,3B2,0B0,2B2,0B1,0B2
$ heddle schedule interlaced-block --pp 4 --mb 8 --picture
schedule      interlaced-block
places        4
stages        6
microbatches  8
time          88, where a forward of a stage takes 1 and a backward 2

place 0  0 0'. 1 1'. 0"a"A"2 2'. . . 1"b"B"3 3'. a'A'2"c"C"a A 4 4'. b'B'3"d"D"b B 5 5'. c'C'4"e"E"c C 6 6'. d'D'5"f"F"d D 7 7'. e'E'6"g"G"e E . . f'F'7"h"H"f F . . g'G'g G . . h'H'h H
place 1  0 . 0'1 . 1'0"a"A"2 . 2'. . 1"b"B"3 a'A'3'. 2"c"C"a A 4 b'B'4'. 3"d"D"b B 5 c'C'5'. 4"e"E"c C 6 d'D'6'. 5"f"F"d D 7 e'E'7'. 6"g"G"e E f'F'. . 7"h"H"f F g'G'. . g G h'H'. . h H
place 2  0 . . 1 0'. 0"a"A"2 1'. a'A'1"b"B"3 2'. b'B'2"c"C"a A 4 3'. c'C'3"d"D"b B 5 4'. d'D'4"e"E"c C 6 5'. e'E'5"f"F"d D 7 6'. f'F'6"g"G"e E 7'. g'G'7"h"H"f F . . h'H'g G . . . . h H
place 3  0 . . 1 . 0'0"a"A"2 a'A'1'. 1"b"B"3 b'B'2'. 2"c"C"a A 4 c'C'3'. 3"d"D"b B 5 d'D'4'. 4"e"E"c C 6 e'E'5'. 5"f"F"d D 7 f'F'6'. 6"g"G"e E g'G'7'. 7"h"H"f F h'H'. . g G . . . . h H

place  stages  tasks  idle  bubble  activations
    0  0 1 5      48    16  18.2 %            8
    1  0 2 5      48    16  18.2 %            8
    2  0 3 5      48    16  18.2 %            6
    3  0 4 5      48    16  18.2 %            6
$ heddle schedule interlaced --pp 4 --mb 8 --inference --picture | sed -n '/^place 0/,/^$/p'
place 0  0 0'1 1'2 2'3 3'0"4 4'1"5 5'2"6 6'3"7 7'4". 5". 6". 7"
place 1  0 . 1 0'2 1'3 2'0"4 3'1"5 4'2"6 5'3"7 6'4"7'5". 6". 7"
place 2  0 . 1 . 2 0'3 1'0"4 2'1"5 3'2"6 4'3"7 5'4"6'5"7'6". 7"
place 3  0 . 1 . 2 . 3 0'0"4 1'1"5 2'2"6 3'3"7 4'4"5'5"6'6"7'7"

$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --strategy "pp=4 mb=8 schedule=interlaced" | grep -e ^plan -e ^verdict
plan       dp=1 tp=1 pp=4 mb=8 schedule=interlaced
verdict    equal: the plan computes what the model computes
$ heddle verify mbart-large:layers=3,hidden=64,heads=4,vocab=256 --batch 8 --seq 8 --train --strategy "dp=2 pp=4 mb=4 schedule=interlaced-block zero=1" | grep -e ^plan -e ^verdict
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:42
   1 | dp=2 pp=4 mb=4 schedule=interlaced-block zero=1
     |                                          ^
warning[W0701]: results that say nothing about the plan: decoder.0.cross.k.bias.grad (the same on other inputs), decoder.1.cross.k.bias.grad (the same on other inputs), decoder.2.cross.k.bias.grad (the same on other inputs)
  --> mbart-large
plan       dp=2 tp=1 pp=4 mb=4 schedule=interlaced-block zero=1
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=2,hidden=64,heads=4,vocab=257 --batch 4 --seq 8 --train --strategy "tp=2 pp=2 mb=2 schedule=interlaced" | grep -e ^plan -e ^verdict
plan       dp=1 tp=2 pp=2 mb=2 schedule=interlaced
verdict    equal: the plan computes what the model computes
## The words of encoder and decoder, and the scores, lie on all four places; the second one has layers of both.
$ heddle plan mbart-large:layers=3,hidden=64,heads=4,vocab=512 --batch 8 --seq 16 --train --strategy "pp=4 mb=4 schedule=interlaced recompute=none" --machine '1x4 v100' -o t.plan >plan.txt; sed -n '/^segments/,/^send/p;/^schedule/p' t.plan
segments:
  - {from: 1, to: 8, on: m}
  - {from: 9, to: 10, on: m, at: {pp: 0}}
  - {from: 11, to: 12, on: m, at: {pp: 1}}
  - {from: 13, to: 20, on: m}
  - {from: 21, to: 21, on: m, at: {pp: 1}}
  - {from: 22, to: 22, on: m, at: {pp: 2}}
  - {from: 23, to: 23, on: m, at: {pp: 3}}
  - {from: 24, to: 26, on: m}
trans:
  - {input: "source", dim: 0, axis: mb, stride: 2}
  - {input: "target", dim: 0, axis: mb, stride: 2}
  - {input: "labels", dim: 0, axis: mb, stride: 2}
  - {in: main, instr: 1, op: gather, operand: 0, dim: 0, axis: pp, stride: 128, weak: true}
  - {in: main, instr: 6, op: gather, operand: 0, dim: 0, axis: pp, uneven: true, weak: true}
  - {in: main, instr: 13, op: gather, operand: 0, dim: 0, axis: pp, stride: 128, weak: true}
  - {in: main, instr: 18, op: gather, operand: 0, dim: 0, axis: pp, uneven: true, weak: true}
  - {in: main, instr: 25, op: einsum, operand: 1, dim: 0, axis: pp, stride: 128, weak: true}
send-stream: pp
schedule: interlaced
$ heddle sim mbart-large:layers=3,hidden=64,heads=4,vocab=512 --batch 8 --seq 16 --train --plan t.plan --machine '1x4 v100' | sed -n '/^plan/p;/^layers/p;/^schedule/p;/^time/p;/^place/,/^ *3/p'
plan            dp=1 tp=1 pp=4 mb=4 schedule=interlaced
layers          0/2/1/0/1/1/1/0
schedule        interlaced
time per step   7.620 ms
place  ranks  computes  communicates    idle  peak memory
    0  0        55.0 %         8.2 %  36.9 %     2.39 MiB
    1  1        74.1 %         8.2 %  17.8 %     2.82 MiB
    2  2        54.0 %         8.2 %  37.9 %     1.67 MiB
    3  3        54.0 %         8.2 %  37.9 %     1.28 MiB
$ for s in 1f1b interlaced-block interlaced; do heddle sim mbart-4.7b --batch 32 --seq 1024 --train --dtype f16 --machine '1x8 h100-80gb' --strategy "pp=8 mb=32 recompute=full schedule=$s" | grep "^time per"; done
time per step   752.6 ms
time per step   759.0 ms
time per step   580.8 ms
$ heddle plan mbart-large:layers=2,hidden=64,heads=4,vocab=65536 --batch 8 --seq 64 --train --machine '1x4 v100' --strategy "pp=4 mb=8 recompute=none schedule=1f1b,interlaced,interlaced-block"
model         mbart-large:layers=2,hidden=64,heads=4,vocab=65536
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x4 v100
ranks         4
batch         8
memory limit  28.8 GiB
step          training

   pp  mb  schedule              time         samples    memory  limited by
1   4   8  1f1b              8.782 ms  1.00x  911.0/s  64.1 MiB  bubble 33 %
2   4   8  interlaced        11.53 ms  1.31x  693.6/s  27.2 MiB  computation 71 %
3   4   8  interlaced-block  13.27 ms  1.51x  602.8/s  25.9 MiB  bubble 29 %

value                      plans  best known                                         time  behind
schedule=1f1b                  1  dp=1 tp=1 pp=4 mb=8                            8.782 ms  1.00x
schedule=interlaced            1  dp=1 tp=1 pp=4 mb=8 schedule=interlaced        11.53 ms  1.31x
schedule=interlaced-block      1  dp=1 tp=1 pp=4 mb=8 schedule=interlaced-block  13.27 ms  1.51x

winner       dp=1 tp=1 pp=4 mb=8
             computes 65.0 % of the time, communicates 1.9 %, idles 33.1 %; MFU 2.6 %; needs 64.1 MiB of 28.8 GiB
layers       2/1/1/0
next         dp=1 tp=1 pp=4 mb=8 schedule=interlaced
             1.31x the time, limited by computation
one device   0.53x the time, 4.619 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  3 plans: 3 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* attention=* sp=* overlap=* layers=*' has them, --what-if tries each
## Refused: nothing before the layers, no layers, degrees and replicas that differ, chunks.
$ heddle sim mlp-xs --batch 8 --train --machine '1x2 v100' --strategy "pp=2 mb=4 schedule=interlaced"
error[E0501]: schedule=interlaced: the model has nothing before its first layer that could lie on all places
  --> --strategy:1:11
   1 | pp=2 mb=4 schedule=interlaced
     |           ^
  hint: schedule=1f1b
[1]
$ heddle sim gpt2:layers=4 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy "pp=2 tp=2 tp.stages=2/1 mb=4 schedule=interlaced"
error[E0509]: tp.stages=2/1 does not go with schedule=interlaced: what lies on all places is split alike on each
  --> --strategy:1:11
   1 | pp=2 tp=2 tp.stages=2/1 mb=4 schedule=interlaced
     |           ^
  hint: tp.stages=equal
[2]
$ heddle sim gpt2:layers=4 --batch 8 --seq 16 --train --machine '1x3 v100' --strategy "replicas=2x1+1x1 mb=4 schedule=interlaced"
error[E0509]: replicas=2x1+1x1 does not go with schedule=interlaced: only one pipeline can be interlaced
  --> --strategy:1:1
   1 | replicas=2x1+1x1 mb=4 schedule=interlaced
     | ^
  hint: replicas=none, or schedule=1f1b
[2]
$ heddle sim gpt2:layers=4 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy "pp=2 v=2 mb=4 schedule=interlaced"
error[E0501]: interlaced runs one chunk on each place; got 2
  --> --strategy:1:6
   1 | pp=2 v=2 mb=4 schedule=interlaced
     |      ^
  hint: v=1, or schedule=interleaved
[1]
$ heddle sim gpt2:layers=4 --batch 8 --seq 16 --train --machine '1x8 v100' --strategy "pp=8 mb=4 schedule=interlaced"
error[E0502]: 8 pipeline stages, but the model has only 4 blocks and matmuls
  --> gpt2
  hint: pp=4 at most
[1]
## A schedule of that shape that was found, or is in a file: places in any order, backwards in two parts. The same order as the row's is the same plan.
$ heddle schedule interlaced --pp 4 --mb 4 >row.csv; for s in interlaced row.csv; do heddle sim mbart-large:layers=3,hidden=64,heads=4,vocab=512 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy "pp=4 mb=4 recompute=none schedule=$s" | grep '^time per'; done
time per step   7.620 ms
time per step   7.620 ms
$ printf 'stage,forward_us,input_us,weight_us,memory,places\n0,2,1,1,0,0+1+2+3\n1,5,5,5,1,2\n2,5,5,4,1,0\n3,5,5,5,1,3\n4,5,5,5,1,1\n5,2,1,1,0,0+1+2+3\n' >stages.csv; heddle schedule --stages stages.csv --mb 8 --memory 7 -o found.csv | grep ^time
time          199.0 us
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --strategy "pp=4 mb=8 schedule=found.csv" | grep -e ^plan -e ^verdict
plan       dp=1 tp=1 pp=4 mb=8 schedule=found.csv
verdict    equal: the plan computes what the model computes
$ heddle verify mbart-large:layers=3,hidden=64,heads=4,vocab=256 --batch 16 --seq 8 --train --strategy "dp=2 pp=4 mb=8 schedule=found.csv zero=2" | grep -e ^plan -e ^verdict
warning[W0701]: results that say nothing about the plan: decoder.0.cross.k.bias.grad (the same on other inputs), decoder.1.cross.k.bias.grad (the same on other inputs), decoder.2.cross.k.bias.grad (the same on other inputs)
  --> mbart-large
plan       dp=2 tp=1 pp=4 mb=8 schedule=found.csv zero=2
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=4096 --batch 8 --seq 64 --train --machine '1x4 v100' --strategy "pp=4 mb=8 recompute=none schedule=1f1b,interlaced,found.csv layers=equal" -o f.plan | sed -n '/^   *pp/,/^$/p;/^certificate/p'
   pp  mb  schedule    layers      time         samples    memory  limited by
1   4   8  1f1b        equal   5.078 ms  1.00x  1,576/s  4.86 MiB  bubble 33 %
2   4   8  found.csv   equal   5.975 ms  1.18x  1,339/s  4.63 MiB  computation 77 %
3   4   8  interlaced  equal   6.721 ms  1.32x  1,190/s  4.04 MiB  computation 69 %

certificate  3 plans: 3 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=4096 --batch 8 --seq 64 --train --machine '1x4 v100' --strategy "pp=4 mb=8 schedule=found.csv layers=auto" -o f.plan | sed -n '/^   *pp/,/^$/p'; heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=4096 --batch 8 --seq 64 --train --machine '1x4 v100' --plan f.plan | grep '^time per'
   pp  mb  schedule   recompute  layers      time         samples    memory  limited by
1   4   8  found.csv  none       1x4     5.975 ms  1.00x  1,339/s  4.63 MiB  computation 77 %
2   4   8  found.csv  selective  1x4     6.261 ms  1.05x  1,278/s  4.65 MiB  computation 77 %
3   4   8  found.csv  full       1x4     7.580 ms  1.27x  1,055/s  4.27 MiB  computation 74 %

time per step   5.975 ms
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy "pp=4 v=2 mb=8 schedule=found.csv"
error[E0501]: found.csv has one stage on every place between those on all places, but v=2
  --> --strategy:1:15
   1 | pp=4 v=2 mb=8 schedule=found.csv
     |               ^
  hint: v=1
[1]
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy "pp=2 mb=8 schedule=found.csv"
error[E0501]: found.csv has 4 places, but pp=2
  --> --strategy:1:11
   1 | pp=2 mb=8 schedule=found.csv
     |           ^
  hint: pp=4 mb=8
[1]
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x8 v100' --strategy "pp=4 tp=2 tp.stages=1/1/2/2 mb=8 schedule=found.csv"
error[E0509]: tp.stages=1/1/2/2 does not go with schedule=found.csv: what lies on all places is split alike on each
  --> --strategy:1:11
   1 | pp=4 tp=2 tp.stages=1/1/2/2 mb=8 schedule=found.csv
     |           ^
  hint: tp.stages=equal
[2]
$ heddle sim mlp-xs --batch 8 --train --machine '1x4 v100' --strategy "pp=4 mb=8 schedule=found.csv"
error[E0501]: schedule=found.csv: the model has nothing before its first layer that could lie on all places
  --> --strategy:1:11
   1 | pp=4 mb=8 schedule=found.csv
     |           ^
  hint: schedule=1f1b
[1]
$ printf '0F0,1F0,1B0,0B0\n0F0,2F0,2B0,0B0\n' >some.csv; heddle sim gpt2 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy "pp=2 mb=1 schedule=some.csv"
error[E0501]: some.csv: stage 0 of 3 lies on 2 of 2 places; plans have a stage on one, or the first and the last on all and one more on each
  --> --strategy:1:11
   1 | pp=2 mb=1 schedule=some.csv
     |           ^
  hint: 4 stages, of which 0 and 3 lie on all places and the others on one each
[1]
