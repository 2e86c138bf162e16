## long: .ci/run has it without sanitizers
$ heddle schedule 1f1b --pp 2 --mb 3
0F0,0F1,0B0,0F2,0B1,0B2
1F0,1B0,1F1,1B1,1F2,1B2
$ heddle schedule 1f1b --pp 2 --mb 3 -o mine.csv
schedule      1f1b
places        2
stages        2
microbatches  3
time          12, where a forward of a stage takes 1 and a backward 2

place  stages  tasks  idle  bubble  activations
    0  0           6     3  25.0 %            2
    1  1           6     3  25.0 %            1
$ cat mine.csv
0F0,0F1,0B0,0F2,0B1,0B2
1F0,1B0,1F1,1B1,1F2,1B2
$ heddle schedule ZB1P --pp 4 --mb 6 --picture
schedule      ZB1P
places        4
stages        4
microbatches  6
time          21, where a forward of a stage takes 1 and a backward 2

place 0  0123...aA4bB5cCdDeEfF
place 1  .012..a3bA4cB5dCeDfEF
place 2  ..01.a2b3cA4dB5eCfDEF
place 3  ...0a1b2c3dA4eB5fCDEF

place  stages  tasks  idle  bubble  activations
    0  0          18     3  14.3 %            4
    1  1          18     3  14.3 %            4
    2  2          18     3  14.3 %            4
    3  3          18     3  14.3 %            4
$ heddle schedule interleaved --pp 2 --v 3 --mb 4 --group 2 --picture
schedule      interleaved
places        2
stages        6
microbatches  4
time          39, where a forward of a stage takes 1 and a backward 2

place 0  0 1 0'1'0"1"2 . a"A"3 b"B"2'a'A'3'b'B'2"a A 3"b B . c"C". d"D"c'C'd'D'c C d D
place 1  . 0 1 0'1'0"a"A"1"b"B"2 a'A'3 b'B'2'a A 3'b B 2"c"C"3"d"D"c'C'd'D'c C d D . .

place  stages  tasks  idle  bubble  activations
    0  0 2 4      24     3   7.7 %            7
    1  1 3 5      24     3   7.7 %            5
$ heddle schedule bfs --pp 2 --v 2 --mb 12 --inference --picture
schedule      bfs
places        2
stages        4
microbatches  12
time          25, where a forward of a stage takes 1

place 0  0 1 2 3 4 5 6 7 8 9 0 1 0'1'2'3'4'5'6'7'8'9'0'1'.
place 1  . 0 1 2 3 4 5 6 7 8 9 0 1 0'1'2'3'4'5'6'7'8'9'0'1'

place  stages  tasks  idle  bubble  activations
    0  0 2        24     1   4.0 %
    1  1 3        24     1   4.0 %
$ heddle schedule 1f1b --pp 1 --mb 400 --picture | sed -n 6,8p | sed 's/^\(.\{40\}\).*\(.\{16\}\)$/\1 and so on \2/'

place 0  0aA1bB2cC3dD4eE5fF6gG7hH8iI9jJ0 and so on jJ0aA1bB2cC3 ...

## a file, and all that is wrong with one
$ heddle schedule 1f1b --pp 2 --mb 3 -o made.csv > made; heddle schedule mine.csv | diff made -
1c1
< schedule      1f1b
---
> schedule      mine.csv
[1]
$ heddle schedule examples/zbv.csv --picture
schedule      examples/zbv.csv
places        4
stages        8
microbatches  8
time          51, where a forward of a stage takes 1 and a backward 2

place 0  0 1 2 3 4 5 6 0'a'A'1'b'B'2'c'C'3'd'D'7 a A 4'e'E'b B 5'f'F'c C 6'g'G'd D 7'h'H'e E f F g G h H . . .
place 1  . 0 1 2 3 4 0'5 1'a'A'2'b'B'3'c'C'6 a A 4'd'D'7 b B 5'e'E'c C 6'f'F'd D 7'g'G'e h'f E g F h G H'H . .
place 2  . . 0 1 2 0'3 1'4 2'a'A'3'b'B'5 a A 4'c'C'6 b B 5'd'D'7 c C 6'e'E'd D 7'f'F'e g'f h'g E h F G'H'G H .
place 3  . . . 0 0'1 1'2 2'3 3'a'A'4 a A 4'b'B'5 b B 5'c'C'6 c C 6'd'D'7 d D 7'e'E'e f'f g'g h'h E F'G'H'F G H

place  stages  tasks  idle  bubble  activations
    0  0 7        48     3   5.9 %            8
    1  1 6        48     3   5.9 %            8
    2  2 5        48     3   5.9 %            8
    3  3 4        48     3   5.9 %            8
$ heddle schedule examples/zbv.csv --pp 4 --v 2 --mb 8 --json
{
  "schedule": "examples/zbv.csv",
  "places": 4,
  "stages": 8,
  "microbatches": 8,
  "time": 51,
  "by_place": [
    {"place": 0, "stages": "0 7", "tasks": 48, "idle": 3, "bubble": 0.058823529411764705, "activations": 8},
    {"place": 1, "stages": "1 6", "tasks": 48, "idle": 3, "bubble": 0.058823529411764705, "activations": 8},
    {"place": 2, "stages": "2 5", "tasks": 48, "idle": 3, "bubble": 0.058823529411764705, "activations": 8},
    {"place": 3, "stages": "3 4", "tasks": 48, "idle": 3, "bubble": 0.058823529411764705, "activations": 8}
  ]
}
$ heddle schedule tests/golden/sched/dualpipev_p4_m8.csv -o same.csv && cmp same.csv tests/golden/sched/dualpipev_p4_m8.csv
schedule      tests/golden/sched/dualpipev_p4_m8.csv
places        4
stages        8
microbatches  8
time          51, where a forward of a stage takes 1 and a backward 2
held          54, where the tasks of a pair start together and end together

place  stages  tasks  idle  bubble  activations
    0  0 7        39     3   5.9 %            9
    1  1 6        38     3   5.9 %            9
    2  2 5        37     3   5.9 %            9
    3  3 4        36     3   5.9 %            9
## pairs: one task after the other, and held together
$ printf '0F0,0F1,0F2,0B0,0B1,0B2\n1F0,(1F1;1B0)OVERLAP_F_B,(1F2;1B1)OVERLAP_F_B,1B2\n' > pairs.csv; heddle schedule pairs.csv --picture | sed -n '/^time/,/^place 1/p'
time          12, where a forward of a stage takes 1 and a backward 2
held          12, where the tasks of a pair start together and end together

place 0  012..aA.bBcC
place 1  .01aA2bBcC..
$ printf '0F0,(0F1;0B0)OVERLAP_F_B,0B1\n' > pairs.csv; heddle schedule pairs.csv --json | grep time
  "time": 6,
  "time_held": 6,
$ printf '(0F0;0B0)OVERLAP_F_B,0F1,0B1\n' > pairs.csv; heddle schedule pairs.csv
error[E0503]: deadlock: no place can run its next task
  --> pairs.csv:1:2
   1 | (0F0;0B0)OVERLAP_F_B,0F1,0B1
     |  ^
  note: place 0 waits at (0F0;0B0) (task 1 of 4) for 0F0, task 1 of place 0
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
$ heddle schedule mine.csv --pp 3
error[E0501]: mine.csv has 2 places, but pp=3
  hint: pp=2 mb=3
[1]
$ heddle schedule mine.csv --inference
error[E0501]: mine.csv runs backward, but this is inference
  hint: leave out --inference, or write a schedule of forwards (F) only
[1]
$ heddle schedule mine.csv --v 1 --group 2
error[E0501]: mine.csv has its own order, without groups; got group=2
  hint: leave out group
[1]
$ heddle schedule none.csv
error[E0101]: cannot read 'none.csv': No such file or directory
[1]
$ printf '0F0,0B0,0F1\n1F0,1B0,1F1,1B1\n' > bad.csv; heddle schedule bad.csv
error[E0501]: task 0B1 is in no sequence
  --> bad.csv:1:1
  note: the highest stage is 1
    --> bad.csv:2:1
     2 | 1F0,1B0,1F1,1B1
       | ^
  note: the highest microbatch is 1
    --> bad.csv:1:9
     1 | 0F0,0B0,0F1
       |         ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) and backward (B, or I and W) once
[1]
$ printf '0F0,0B1,0F1,0B0\n1F0,1B0,1F1,1B1\n' > dead.csv; heddle schedule dead.csv
error[E0503]: deadlock: no place can run its next task
  --> dead.csv:1:5
   1 | 0F0,0B1,0F1,0B0
     |     ^
  note: place 0 waits at 0B1 (task 2 of 4) for 0F1, task 3 of place 0
  note: place 1 waits at 1F1 (task 3 of 4) for 0F1, task 3 of place 0
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
$ printf '\357\273\2770F0,0B0\n' > bom.csv; heddle schedule bom.csv
error[E0501]: a byte order mark (BOM) before the first cell
  --> bom.csv:1:1
  hint: save the file as UTF-8 without BOM, or as ASCII
[1]
$ printf '\n0F0,0B0\n' > late.csv; heddle schedule late.csv
error[E0501]: an empty line: place 0 runs no task
  --> late.csv:1:1
  hint: each line is one place, comments (#) aside: remove the empty line
[1]
$ printf '0F0r65535\n' > far.csv; heddle schedule far.csv
error[E0901]: replica 65535; at most 254
  --> far.csv:1:5
   1 | 0F0r65535
     |     ^
[1]
$ heddle schedule gpipe
error[E0801]: `heddle schedule gpipe` needs --pp and --mb
  hint: --pp 4 --mb 8
[2]
$ heddle schedule gpipe --pp 2 --mb 2 --v 2
error[E0501]: gpipe runs one chunk on each place; got 2
  hint: v=1, or schedule=interleaved
[1]
$ heddle schedule zbw --pp 2 --mb 2
error[E0501]: unknown schedule 'zbw'
  hint: did you mean schedule=zbv? There are gpipe, 1f1b, interleaved, bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, zb-v-half, zb-v-min, dualpipev, chimera, chimera-double, dualpipe, gems, interlaced, interlaced-block, 3f1b, pipedream, pipedream-2bw
[1]
## stages in a V, and pairs
$ heddle schedule zb-v --pp 4 --mb 8 | diff - examples/zbv.csv
$ heddle schedule dualpipev --pp 4 --mb 8 | diff - tests/golden/sched/dualpipev_p4_m8.csv
$ heddle schedule dualpipe --pp 4 --mb 8 > rows.csv; heddle schedule rows.csv -o again.csv > row; diff rows.csv again.csv
$ heddle schedule ScheduleDualPipeV --pp 3 --mb 6 --picture
schedule      ScheduleDualPipeV
places        3
stages        6
microbatches  6
time          38, where a forward of a stage takes 1 and a backward 2
held          40, where the tasks of a pair start together and end together

place 0  0 1 2 3 4 0'a'A'1'b'B'2'5 c'C'3'a A d'D'4'. b B e'E'5'. c C f'F'd D e E f F
place 1  . 0 1 2 0'3 1'a'A'2'4 b'B'3'a A 5 c'C'4'b B d'D'5'. c C e'E'd D f'e F'f E F
place 2  . . 0 0'1 1'2 2'3 a'A'3'a A 4 b'B'4'b B 5 c'C'5'c C d'D'd D e'E'e f'f E F'F

place  stages  tasks  idle  bubble  activations
    0  0 5        29     2   5.3 %            7
    1  1 4        28     2   5.3 %            7
    2  2 3        27     2   5.3 %            7
$ heddle schedule dualpipe --pp 4 --mb 8 --picture
schedule      dualpipe
places        4
stages        4
microbatches  8
time          25, where a forward of a stage takes 1 and a backward 2
held          26, where the tasks of a pair start together and end together

place 0  0 1 2 0'a'A'1'3 b'B'2'a A c'C'3'. b B d'D'c C d D
place 1  . 0 0'1 1'2 a'A'2'a A 3 b'B'3'b B c'C'c C d'd D'D
place 2  . 0'0 1'1 2'a A 2 a'A'3'b B 3 b'B'c C c'C'd d'D D'
place 3  0'1'2'0 a A 1 3'b B 2 a'A'c C 3 . b'B'd D c'C'd'D'

place  stages  tasks  idle  bubble  activations
    0  0 3        19     1   4.0 %            5
    1  1 2        18     1   4.0 %            5
    2  1 2        18     1   4.0 %            5
    3  0 3        19     1   4.0 %            5
$ heddle schedule zb-v-half --pp 3 --mb 6 --inference --picture
schedule      zb-v-half
places        3
stages        6
microbatches  6
time          26, where a forward of a stage takes 1

place 0  0 1 . . . 0'2 . . 1'3 . . 2'4 . . 3'5 . . 4'. . . 5'
place 1  . 0 . . 0'1 . . 1'2 . . 2'3 . . 3'4 . . 4'5 . . 5'.
place 2  . . 0 0'. . 1 1'. . 2 2'. . 3 3'. . 4 4'. . 5 5'. .

place  stages  tasks  idle  bubble  activations
    0  0 5        12    14  53.8 %
    1  1 4        12    14  53.8 %
    2  2 3        12    14  53.8 %
$ heddle schedule dualpipe --pp 4 --mb 6
error[E0501]: dualpipe needs 2 microbatches for each place; got 6 for 4 places
  hint: mb=8
[1]
$ heddle schedule zb-v --pp 4 --mb 8 --v 3
error[E0501]: zb-v runs 2 chunks on each place; got 3
  hint: v=2, or schedule=interleaved
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=8 v=1 schedule=zb-v"
error[E0509]: v=1: schedule=zb-v has 2 chunks on each place
  --> --strategy:1:11
   1 | pp=4 mb=8 v=1 schedule=zb-v
     |           ^
  hint: v=2, or leave out v
[2]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=4 schedule=dualpipev"
error[E0501]: dualpipev needs 2 microbatches for each place; got 4 for 4 places
  hint: mb=8
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=8 schedule=zb-v" | sed -n '2p;6,8p'
plan            dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v
layers          1x8
schedule        zb-v
time per step   15.01 ms
$ heddle verify gpt2:layers=8,hidden=32,heads=4,vocab=64 --batch 16 --seq 8 --train --strategy "dp=2 pp=4 mb=8 schedule=zb-v zero=2" | grep "^plan\|^verdict"
plan       dp=2 tp=1 pp=4 mb=8 v=2 schedule=zb-v zero=2
verdict    equal: the plan computes what the model computes
$ heddle verify llama2-7b:layers=8,hidden=48,heads=8,kv_heads=4,head_dim=6,ffn=96,vocab=64 --batch 16 --seq 8 --train --strategy "pp=4 tp=2 mb=8 schedule=dualpipev" | grep "^plan\|^verdict"
plan       dp=1 tp=2 pp=4 mb=8 v=2 schedule=dualpipev
verdict    equal: the plan computes what the model computes
$ heddle verify bert-large:layers=8,hidden=64,heads=4,vocab=96 --batch 16 --seq 8 --train --strategy "pp=4 mb=8 schedule=dualpipe" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=4 mb=8 schedule=dualpipe
verdict    equal: the plan computes what the model computes
$ heddle verify t5-small:layers=8,hidden=48,heads=8,head_dim=6,ffn=96,vocab=64 --batch 16 --seq 8 --train --strategy "pp=4 mb=8 schedule=zb-v-min" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v-min
verdict    equal: the plan computes what the model computes
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=8 v=1,2 recompute=none schedule=zb-v,dualpipev,gems"
model         mlp-xs:layers=8
weights       f32
machine       laptop
ranks         4
batch         64
memory limit  3.60 GiB
step          training

   pp  mb  v  schedule       time         samples    memory  limited by
1   4   8  2  dualpipev  14.41 ms  1.00x  4,442/s  5.44 MiB  computation 95 %
2   4   8  2  zb-v       15.01 ms  1.04x  4,263/s  5.41 MiB  computation 90 %
3   4   8  1  gems       48.54 ms  3.37x  1,319/s  9.31 MiB  bubble 67 %

value               plans  best known                                      time  behind
schedule=dualpipev      1  dp=1 tp=1 pp=4 mb=8 v=2 schedule=dualpipev  14.41 ms  1.00x
schedule=zb-v           1  dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v       15.01 ms  1.04x
schedule=gems           1  dp=1 tp=1 pp=4 mb=8 schedule=gems           48.54 ms  3.37x

winner       dp=1 tp=1 pp=4 mb=8 v=2 schedule=dualpipev
             computes 95.4 % of the time, communicates 0.0 %, idles 4.6 %; MFU 14.3 %; needs 5.44 MiB of 3.60 GiB
             of one step alone, which takes 14.56 ms; the next one begins beside its end
layers       1x8
next         dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v
             1.04x the time, limited by computation
one device   0.98x the time, 14.12 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  6 plans: 3 fit, 0 too large, 0 too slow, 3 impossible, 0 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'sp=* overlap=* layers=*' has them, --what-if tries each
impossible   1 such as dp=1 tp=1 pp=4 mb=8 v=2 schedule=gems:
             gems runs one chunk on each place; got 2
             1 such as dp=1 tp=1 pp=4 mb=8 schedule=dualpipev:
             v=1: schedule=dualpipev has 2 chunks on each place
             1 such as dp=1 tp=1 pp=4 mb=8 schedule=zb-v:
             v=1: schedule=zb-v has 2 chunks on each place
## plans of a file
$ heddle verify mlp-xs:layers=8,hidden=16 --batch 8 --train --strategy "pp=4 v=2 mb=8 schedule=examples/zbv.csv" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=4 mb=8 v=2 schedule=examples/zbv.csv
verdict    equal: the plan computes what the model computes
$ heddle verify mlp-xs:layers=8,hidden=16 --batch 8 --train --strategy "pp=4 v=2 mb=8 schedule=tests/golden/sched/dualpipev_p4_m8.csv" | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=4 mb=8 v=2 schedule=tests/golden/sched/dualpipev_p4_m8.csv
verdict    equal: the plan computes what the model computes
$ heddle verify gpt2:layers=8,hidden=32,heads=4,vocab=64 --batch 16 --seq 8 --train --strategy "dp=2 tp=2 pp=4 v=2 mb=8 zero=2" --schedule examples/zbv.csv | grep "^plan\|^verdict"
plan       dp=2 tp=2 pp=4 mb=8 v=2 schedule=examples/zbv.csv zero=2
verdict    equal: the plan computes what the model computes
$ heddle sim mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 v=2 mb=8 schedule=examples/zbv.csv" --machine laptop | tee folded | sed -n 2,18p
plan            dp=1 tp=1 pp=4 mb=8 v=2 schedule=examples/zbv.csv
weights         f32
machine         laptop
ranks           4
layers          1x8
time per step   15.01 ms
one step alone  15.45 ms
error bar       unknown: no measured spread for 100.0 % of the step
samples         4,263/s
arithmetic      13.2 GFLOP/s a device, 13.8 % of the f32 peak (MFU)
computes        89.9 %
communicates    0.0 %
idle            10.1 %
beside them     1.8 % of the time in communication, all other streams together
peak memory     5.41 MiB of 3.60 GiB on rank 0
instructions    656

## Samples and arithmetic are by the time per step; JSON has them by both times.
$ heddle sim mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 v=2 mb=8 schedule=examples/zbv.csv" --machine laptop --json | grep -e '_ps": [0-9]*,$' -e per_s -e mfu -e peak_share -e '"flops"'
  "period_ps": 15013767300,
  "time_ps": 15454889700,
  "known_error_ps": 0,
  "samples_per_s": 4141.084229154997,
  "period_samples_per_s": 4262.754225583342,
  "flops": 793411600,
  "flop_per_s_per_device": 12834313531.205597,
  "peak_share": 0.1336907659500583,
  "mfu": 0.1336907659500583,
  "period_flop_per_s_per_device": 13211400978.62047,
  "period_peak_share": 0.13761876019396324,
  "period_mfu": 0.13761876019396324,
$ heddle sim mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 v=2 mb=8 schedule=examples/zbv.csv" --machine laptop --flat | cmp - folded
## the places of a file are those of the machine: here the first stage lies on the last one
$ printf '1F0,1B0,1F1,1B1\n0F0,0F1,0B0,0B1\n' > swapped.csv; heddle verify mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy "pp=2 mb=2 schedule=swapped.csv" | sed -n 2,7p
plan       dp=1 tp=1 pp=2 mb=2 schedule=swapped.csv
results    5
elements   1,025
worst      2.44249e-15
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine laptop --devices 2 --strategy "pp=2 mb=2 recompute=none schedule=swapped.csv" -o swapped.plan; sed -n '/^segments/,/^trans/p; /^order/,$p' swapped.plan
model         mlp-xs:layers=2,hidden=16
weights       f32
machine       laptop
ranks         2
batch         8
memory limit  3.60 GiB
step          training

   pp  mb  schedule         time           samples    memory  limited by
1   2   2  swapped.csv  46.62 us  1.00x  171,595/s  4.56 KiB  bubble 46 %

winner       dp=1 tp=1 pp=2 mb=2 schedule=swapped.csv
             computes 53.6 % of the time, communicates 0.0 %, idles 46.4 %; MFU 0.3 %; needs 4.56 KiB of 3.60 GiB
layers       1/1
one device   0.50x the time, 23.52 us: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
             1 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* sp=* overlap=* layers=*' has them, --what-if tries each
segments:
  - {from: 1, to: 1, on: m, at: {pp: 1}}
  - {from: 2, to: 6, on: m, at: {pp: 0}}
trans:
order:
  - "F0.0*2 B0.0*2"
  - "(F1.0 B1.0)*2"
$ heddle verify mlp-xs:layers=2,hidden=16 --batch 8 --plan swapped.plan | grep "^plan\|^verdict"
plan       dp=1 tp=1 pp=2 mb=2 schedule=swapped.csv
verdict    equal: the plan computes what the model computes
## a file in a search is one value of several; its plan may be another's
$ heddle schedule 1f1b --pp 4 --mb 8 -o same.csv; heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=4,8 v=1,2 recompute=none schedule=1f1b,same.csv,examples/zbv.csv"
schedule      1f1b
places        4
stages        4
microbatches  8
time          33, where a forward of a stage takes 1 and a backward 2

place  stages  tasks  idle  bubble  activations
    0  0          16     9  27.3 %            4
    1  1          16     9  27.3 %            3
    2  2          16     9  27.3 %            2
    3  3          16     9  27.3 %            1
model         mlp-xs:layers=8
weights       f32
machine       laptop
ranks         4
batch         64
memory limit  3.60 GiB
step          training

   pp  mb  v  schedule              time         samples    memory  limited by
1   4   4  1  1f1b              12.94 ms  1.00x  4,946/s  5.41 MiB  bubble 41 %
2   4   8  2  examples/zbv.csv  15.01 ms  1.16x  4,263/s  5.41 MiB  computation 90 %
3   4   8  1  1f1b              19.17 ms  1.48x  3,339/s  5.27 MiB  bubble 28 %

value                      plans  best known                                             time  behind
schedule=1f1b                  2  dp=1 tp=1 pp=4 mb=4                                12.94 ms  1.00x
schedule=examples/zbv.csv      1  dp=1 tp=1 pp=4 mb=8 v=2 schedule=examples/zbv.csv  15.01 ms  1.16x
schedule=same.csv              1  dp=1 tp=1 pp=4 mb=8                                19.17 ms  1.48x

winner       dp=1 tp=1 pp=4 mb=4
             computes 59.3 % of the time, communicates 0.0 %, idles 40.7 %; MFU 15.8 %; needs 5.41 MiB of 3.60 GiB
layers       2x4
next         dp=1 tp=1 pp=4 mb=8 v=2 schedule=examples/zbv.csv
             1.16x the time, limited by computation
certificate  12 plans: 3 fit, 0 too large, 0 too slow, 8 impossible, 1 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'sp=* overlap=* layers=*' has them, --what-if tries each
impossible   2 such as dp=1 tp=1 pp=4 mb=4 v=2:
             1f1b runs one chunk on each place; got 2
             2 such as dp=1 tp=1 pp=4 mb=4 schedule=examples/zbv.csv:
             examples/zbv.csv has 8 microbatches, but mb=4
             2 such as dp=1 tp=1 pp=4 mb=4 schedule=same.csv:
             same.csv has 8 microbatches, but mb=4
             1 such as dp=1 tp=1 pp=4 mb=8 schedule=examples/zbv.csv:
             examples/zbv.csv has 8 stages, but 4 places x v=1 are 4
             1 such as dp=1 tp=1 pp=4 mb=8 v=2 schedule=same.csv:
             same.csv has 4 stages, but 4 places x v=2 are 8
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "schedule=1f1b,none.csv"
error[E0101]: cannot read 'none.csv': No such file or directory
  note: named here
    --> --strategy:1:1
     1 | schedule=1f1b,none.csv
       | ^
[1]
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "schedule=1f1b,bad.csv"
error[E0501]: task 0B1 is in no sequence
  --> bad.csv:1:1
  note: the highest stage is 1
    --> bad.csv:2:1
     2 | 1F0,1B0,1F1,1B1
       | ^
  note: the highest microbatch is 1
    --> bad.csv:1:9
     1 | 0F0,0B0,0F1
       |         ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) and backward (B, or I and W) once
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --pipeline 2 --schedule none.csv
error[E0101]: cannot read 'none.csv': No such file or directory
  note: named here
    --> --strategy:1:12
     1 | pipeline=2 schedule=none.csv
       |            ^
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --pipeline 2 --microbatches 8 --schedule examples/zbv.csv
error[E0501]: examples/zbv.csv has 4 places, but pp=2
  --> --strategy:1:27
   1 | pipeline=2 microbatches=8 schedule=examples/zbv.csv
     |                           ^
  hint: pp=4 mb=8 v=2
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --pipeline 4 --microbatches 4 --schedule examples/zbv.csv
error[E0501]: examples/zbv.csv has 8 microbatches, but mb=4
  --> --strategy:1:27
   1 | pipeline=4 microbatches=4 schedule=examples/zbv.csv
     |                           ^
  hint: pp=4 mb=8 v=2
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --pipeline 4 --microbatches 8 --schedule examples/zbv.csv
error[E0501]: examples/zbv.csv has 8 stages, but 4 places x v=1 are 4
  --> --strategy:1:27
   1 | pipeline=4 microbatches=8 schedule=examples/zbv.csv
     |                           ^
  hint: v=2
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --machine laptop --strategy "pp=4 v=2 mb=8 schedule=examples/zbv.csv"
error[E0501]: examples/zbv.csv runs backward, but this is inference
  --> --strategy:1:15
   1 | pp=4 v=2 mb=8 schedule=examples/zbv.csv
     |               ^
  hint: add --train, or use a schedule of forwards (F) only
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 v=2 mb=8 group=4 schedule=examples/zbv.csv"
error[E0501]: examples/zbv.csv has its own order, without groups; got group=4
  --> --strategy:1:23
   1 | pp=4 v=2 mb=8 group=4 schedule=examples/zbv.csv
     |                       ^
  hint: leave out group
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=2 schedule=dead.csv"
error[E0503]: deadlock: no place can run its next task
  --> dead.csv:1:5
   1 | 0F0,0B1,0F1,0B0
     |     ^
  note: place 0 waits at 0B1 (task 2 of 4) for 0F1, task 3 of place 0
  note: place 1 waits at 1F1 (task 3 of 4) for 0F1, task 3 of place 0
  note: named here
    --> --strategy:1:11
     1 | pp=2 mb=2 schedule=dead.csv
       |           ^
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
## a search reads a file once, and says at once that nothing runs it
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --schedule 1f1b,dead.csv
error[E0503]: deadlock: no place can run its next task
  --> dead.csv:1:5
   1 | 0F0,0B1,0F1,0B0
     |     ^
  note: place 0 waits at 0B1 (task 2 of 4) for 0F1, task 3 of place 0
  note: place 1 waits at 1F1 (task 3 of 4) for 0F1, task 3 of place 0
  note: named here
    --> --strategy:1:1
     1 | schedule=1f1b,dead.csv
       | ^
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
$ printf '0F0,0F1\n1F0,1F1\n' > forward.csv; heddle sim mlp-xs:layers=8 --batch 64 --machine laptop --strategy "pp=2 mb=2 schedule=forward.csv" | sed -n 2,7p
plan           dp=1 tp=1 pp=2 mb=2 schedule=forward.csv
weights        f32
machine        laptop
ranks          2; the machine's other 2 are not used
layers         4/4
time per step  2.858 ms
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=2 schedule=forward.csv"
error[E0501]: forward.csv runs no backward, but this is training
  --> --strategy:1:11
   1 | pp=2 mb=2 schedule=forward.csv
     |           ^
  hint: use a schedule with backwards (B, or I and W)
[1]
## Replicas: in both directions, and of a file where one has more microbatches than the other.
$ heddle schedule chimera --pp 4 --mb 4
0F0,0F1,3F0r1,3B0r1,3F1r1,3B1r1,0B0,0B1
1F0,2F0r1,1F1,2F1r1,2B0r1,1B0,2B1r1,1B1
1F0r1,2F0,1F1r1,2F1,2B0,1B0r1,2B1,1B1r1
0F0r1,0F1r1,3F0,3B0,3F1,3B1,0B0r1,0B1r1
$ heddle schedule chimera --pp 3 --mb 4
error[E0501]: chimera needs an even number of places; got 3
  hint: pp=4 or pp=2
[1]
$ heddle schedule chimera --pp 4 --mb 5
error[E0501]: chimera deals microbatches to 2 directions, 1 at a time; got 5, not a multiple of 2
  hint: mb=4 or mb=6
[1]
$ heddle schedule backward-halving --pp 4 --mb 8 --picture
schedule      backward-halving
places        4
stages        4
microbatches  8
time          27, where a forward of a stage takes 1 and a backward 2

place 0  0 1 2 3 0'1'a'A'2'3'b'B'. a A c'C'b B d'D'c C . . d D
place 1  . 0 1 0'1'2 3 2'3'a'A'a A b'B'b B c'C'c C d'D'd D . .
place 2  . 0'1'0 1 2'3'2 3 a A a'A'b B b'B'c C c'C'd D d'D'. .
place 3  0'1'2'3'0 1 a A 2 3 b B . a'A'c C b'B'd D c'C'. . d'D'

place  stages  tasks  idle  bubble  activations
    0  0 3        16     3  11.1 %            7
    1  1 2        16     3  11.1 %            8
    2  1 2        16     3  11.1 %            8
    3  0 3        16     3  11.1 %            7
$ heddle schedule chimera-double --pp 4 --mb 10
error[E0501]: chimera-double deals microbatches to 2 directions, 2 at a time; got 10, not a multiple of 4
  hint: mb=8 or mb=12
[1]
$ heddle sim mlp-xs:layers=8 --batch 48 --train --machine laptop --strategy "pp=2 mb=2 schedule=chimera-double"
error[E0501]: chimera-double deals microbatches to 2 directions, 2 at a time; got 2, not a multiple of 4
  --> --strategy:1:11
   1 | pp=2 mb=2 schedule=chimera-double
     |           ^
  hint: mb=4
[1]
$ heddle verify mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 mb=8 schedule=chimera-double" | head -7
model      mlp-xs:layers=8
plan       dp=1 tp=1 pp=4 mb=8 schedule=chimera-double
results    17
elements   4,194,305
worst      9.48639e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ heddle verify mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 mb=8 schedule=zb-2p" | head -7
model      mlp-xs:layers=8
plan       dp=1 tp=1 pp=4 mb=8 schedule=zb-2p
results    17
elements   4,194,305
worst      7.83658e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=4 v=2 schedule=chimera"
error[E0501]: chimera runs one chunk on each place; got 2
  --> --strategy:1:11
   1 | pp=2 mb=4 v=2 schedule=chimera
     |           ^
  hint: v=1, or schedule=interleaved
[1]
$ heddle sim mlp-xs:layers=8 --batch 48 --train --machine laptop --strategy "pp=2 mb=3 schedule=chimera"
error[E0501]: chimera deals microbatches to 2 directions, 1 at a time; got 3, not a multiple of 2
  --> --strategy:1:11
   1 | pp=2 mb=3 schedule=chimera
     |           ^
  hint: mb=2 or mb=4
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=8 schedule=chimera" | head -13
model           mlp-xs:layers=8
plan            dp=1 tp=1 pp=4 mb=8 schedule=chimera
weights         f32
machine         laptop
ranks           4
layers          2x4
schedule        chimera
time per step   20.69 ms
one step alone  20.69 ms
error bar       unknown: no measured spread for 100.0 % of the step
samples         3,094/s
arithmetic      9.59 GFLOP/s a device, 10.0 % of the f32 peak (MFU)
computes        72.2 %
$ heddle verify mlp-xs:layers=8 --batch 64 --train --strategy "pp=4 mb=8 schedule=chimera" | head -7
model      mlp-xs:layers=8
plan       dp=1 tp=1 pp=4 mb=8 schedule=chimera
results    17
elements   4,194,305
worst      9.48639e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ printf '0F0,1F0r1,1B0r1,0F1,0B0,0F2,0B1,0B2\n0F0r1,1F0,1B0,0B0r1,1F1,1B1,1F2,1B2\n' > replicas.csv; heddle schedule replicas.csv --picture; heddle verify mlp-xs:layers=8 --batch 64 --train --strategy "pp=2 mb=4 schedule=replicas.csv" | head -7
schedule      replicas.csv
places        2
stages        2
microbatches  4
time          14, where a forward of a stage takes 1 and a backward 2

place 0  0 0'a'A'1 a A 2 . b B . c C
place 1  0'0 a A a'A'1 b B 2 c C . .

place  stages  tasks  idle  bubble  activations
    0  0 1         8     2  14.3 %            2
    1  0 1         8     2  14.3 %            2
model      mlp-xs:layers=8
plan       dp=1 tp=1 pp=2 mb=4 schedule=replicas.csv
results    17
elements   4,194,305
worst      7.83658e-13
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ heddle verify mlp-xs:layers=8 --batch 48 --train --strategy "pp=2 mb=3 schedule=replicas.csv"
error[E0501]: replicas.csv has 4 microbatches, but mb=3
  --> --strategy:1:11
   1 | pp=2 mb=3 schedule=replicas.csv
     |           ^
  hint: pp=2 mb=4
[1]
$ printf '0F0,0F0r2,0B0,0B0r2\n' > replicas.csv; heddle schedule replicas.csv
error[E0501]: replica 1 runs no microbatch
  --> replicas.csv
[1]
$ printf '0F0,0F1r1,0B0,0B1r1\n' > replicas.csv; heddle schedule replicas.csv
error[E0501]: task 0F0r1 is in no sequence
  --> replicas.csv:1:1
  note: the highest stage is 0
    --> replicas.csv:1:1
     1 | 0F0,0F1r1,0B0,0B1r1
       | ^
  note: the highest microbatch is 1
    --> replicas.csv:1:5
     1 | 0F0,0F1r1,0B0,0B1r1
       |     ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) and backward (B, or I and W) once
[1]
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=4 mb=8 schedule=1f1b,gpipe,chimera"
model         mlp-xs:layers=8
weights       f32
machine       laptop
ranks         4
batch         64
memory limit  3.60 GiB
step          training

   pp  mb  schedule  recompute      time         samples    memory  limited by
1   4   8  1f1b      none       19.17 ms  1.00x  3,339/s  5.27 MiB  bubble 28 %
2   4   8  gpipe     none       19.17 ms  1.00x  3,339/s  5.63 MiB  bubble 28 %
3   4   8  chimera   none       20.69 ms  1.08x  3,094/s  9.38 MiB  bubble 24 %
4   4   8  1f1b      full       20.72 ms  1.08x  3,089/s  5.22 MiB  bubble 28 %
5   4   8  gpipe     full       20.72 ms  1.08x  3,089/s  5.52 MiB  bubble 28 %
6   4   8  chimera   full       22.38 ms  1.17x  2,860/s  9.34 MiB  bubble 24 %

value             plans  best known                                time  behind
schedule=gpipe        2  dp=1 tp=1 pp=4 mb=8 schedule=gpipe    19.17 ms  1.00x
schedule=1f1b         2  dp=1 tp=1 pp=4 mb=8                   19.17 ms  1.00x
schedule=chimera      2  dp=1 tp=1 pp=4 mb=8 schedule=chimera  20.69 ms  1.08x

winner       dp=1 tp=1 pp=4 mb=8
             computes 72.5 % of the time, communicates 0.0 %, idles 27.5 %; MFU 10.8 %; needs 5.27 MiB of 3.60 GiB
layers       2x4
next         dp=1 tp=1 pp=4 mb=8 schedule=gpipe
             1.00x the time, limited by bubble
one device   0.74x the time, 14.12 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
certificate  9 plans: 6 fit, 0 too large, 0 too slow, 0 impossible, 3 equal to another;
             6 simulated, 0 ruled out by bounds on memory, 0 on time
             other values of some choices are not in it; --strategy 'v=* sp=* overlap=* layers=*' has them, --what-if tries each
$ printf '0F0,0F0p1,0B0\n' > passes.csv; heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 schedule=passes.csv"
error[E0501]: passes.csv has several passes of the forward (p1), which plans do not support
  --> --strategy:1:6
   1 | pp=2 schedule=passes.csv
     |      ^
  hint: use a schedule with one pass, or schedule=3f1b
[1]
$ printf '0F0v1,0B0\n' > versions.csv; heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 schedule=versions.csv"
error[E0501]: task 0F0v1 of place 0 reads another version of weights, but nothing says when they are updated
  --> versions.csv:1:1
   1 | 0F0v1,0B0
     | ^
  hint: a first line such as `# updates 1`: after so many microbatches
[1]
$ printf '0F0,1F0,1B0,0B0\n0F0,2F0,2B0,0B0\n' > several.csv; heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 schedule=several.csv"
error[E0501]: several.csv: stage 0 of 3 lies on 2 of 2 places; plans have a stage on one, or the first and the last on all and one more on each
  --> --strategy:1:6
   1 | pp=2 schedule=several.csv
     |      ^
  hint: 4 stages, of which 0 and 3 lie on all places and the others on one each
[1]
$ printf '0F0,1F0,2F0,2B0,1B0,0B0\n3F0,3B0\n' > uneven.csv; heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 v=2 schedule=uneven.csv"
error[E0501]: uneven.csv has 3 stages on place 0, but v=2
  --> --strategy:1:10
   1 | pp=2 v=2 schedule=uneven.csv
     |          ^
  hint: a schedule with as many stages on every place as on any other
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 schedule=mine.cvs"
error[E0509]: schedule: unknown value 'mine.cvs'
  --> --strategy:1:15
   1 | pp=2 schedule=mine.cvs
     |               ^
  hint: schedule takes gpipe, 1f1b, interleaved, bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, zb-v-half, zb-v-min, dualpipev, chimera, chimera-double, dualpipe, gems, interlaced, interlaced-block, 3f1b, pipedream or pipedream-2bw, or a file whose name ends in .csv
[2]
$ for b in 1B0 1I0,1W0; do printf "0F0,0F1,0B0,0B1\n1F0,1F1,$b,1I1,1W1\n" > mixed.csv; heddle sim mlp-xs:layers=4,hidden=512 --batch 64 --train --machine "1x2 v100" --strategy "pp=2 mb=2 schedule=mixed.csv" | grep "time per step"; heddle plan mlp-xs:layers=4,hidden=512 --batch 64 --train --machine "1x2 v100" --strategy "dp=1 tp=1 pp=2 mb=2 recompute=none schedule=mixed.csv" | grep "^1"; done
time per step   393.2 us
1   2   2  mixed.csv  393.2 us  1.00x  162,759/s  5.69 MiB  bubble 32 %
time per step   390.4 us
1   2   2  mixed.csv  390.4 us  1.00x  163,914/s  5.63 MiB  bubble 32 %
## Sends that end when they are received.
$ for b in "" " buffers=rendezvous"; do heddle sim gpt2 --batch 8 --machine "1x4 v100" --strategy "pp=4 mb=8 layers=1/5/1/5 overlap=none$b" | sed -n "2p;/time per step/p"; done
plan           dp=1 tp=1 pp=4 mb=8 overlap=none layers=1/5/1/5
time per step  173.3 ms
plan           dp=1 tp=1 pp=4 mb=8 overlap=none buffers=rendezvous layers=1/5/1/5
time per step  163.6 ms
$ heddle verify gpt2:layers=4 --batch 8 --train --strategy "pp=4 mb=4 schedule=gpipe overlap=none buffers=rendezvous" | sed -n "2p;8p"
plan       dp=1 tp=1 pp=4 mb=4 schedule=gpipe overlap=none buffers=rendezvous
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle sim gpt2 --batch 8 --train --machine "1x4 v100" --strategy "pp=2 mb=4 overlap=none buffers=rendezvous"
error[E0503]: deadlock: no place can run its next task
  note: place 0 waits after 0F1 (task 2 of 8) to be received by 1F1, task 3 of place 1
  note: place 1 waits after 1B0 (task 2 of 8) to be received by 0B0, task 3 of place 0
  hint: buffers=unbounded lets senders go on; room for 1 message in every buffer is enough
[1]
$ heddle sim gpt2 --batch 8 --train --machine "1x4 v100" --strategy "pp=2 v=2 mb=4 schedule=interleaved overlap=none buffers=rendezvous" 2>&1 | head -3
error[E0503]: deadlock: no place can run its next task
  note: place 0 waits after 0F1 (task 2 of 16) to be received by 1F1, task 2 of place 1
  note: place 1 waits after 1F0 (task 1 of 16) to be received by 2F0, task 3 of place 0
$ heddle sim gpt2 --batch 8 --train --machine "1x4 v100" --strategy "pp=4 mb=4 schedule=gpipe buffers=rendezvous"
error[E0509]: buffers=rendezvous needs overlap=none; got overlap=pp
  --> --strategy:1:26
   1 | pp=4 mb=4 schedule=gpipe buffers=rendezvous
     |                          ^
  hint: set overlap=none, or leave out buffers
[2]
$ heddle sim gpt2 --batch 8 --train --machine "1x4 v100" --strategy "pp=4 mb=4 schedule=gpipe overlap=none buffers=2"
error[E0509]: buffers: unknown value '2'
  --> --strategy:1:47
   1 | pp=4 mb=4 schedule=gpipe overlap=none buffers=2
     |                                               ^
  hint: buffers takes unbounded or rendezvous
[2]
$ heddle plan gpt2:layers=4 --batch 8 --train --machine "1x4 v100" --strategy "pp=2 tp=1 dp=2 mb=4 schedule=gpipe,1f1b overlap=none buffers=unbounded,rendezvous zero=0 recompute=none" | grep -A1 "^imposs\|^certif"
certificate  4 plans: 3 fit, 0 too large, 0 too slow, 1 impossible, 0 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 0 on time
--
impossible   1 such as dp=2 tp=1 pp=2 mb=4 overlap=none buffers=rendezvous:
             deadlock: no place can run its next task
$ heddle plan gpt2:layers=4 --batch 8 --machine "1x4 v100" --devices 2 --strategy "pp=2 mb=4 overlap=none buffers=rendezvous" -o r.plan > /dev/null && grep -n "^buffers\|^schedule" r.plan && heddle sim gpt2:layers=4 --batch 8 --machine "1x4 v100" --plan r.plan | sed -n "2p;/time per step/p"
14:buffers: rendezvous
15:schedule: 1f1b
plan           dp=1 tp=1 pp=2 mb=4 overlap=none buffers=rendezvous
time per step  85.78 ms
$ sed "s/^buffers: .*/buffers: 2/" r.plan > w.plan && heddle sim gpt2:layers=4 --batch 8 --machine "1x4 v100" --plan w.plan
error[E0501]: `buffers` is rendezvous; without it no sender waits
  --> w.plan:14:10
  14 | buffers: 2
     |          ^
[1]
$ sed "s/^buffers/send-stream: pp\nbuffers/" r.plan > w.plan && heddle sim gpt2:layers=4 --batch 8 --machine "1x4 v100" --plan w.plan
error[E0501]: `buffers: rendezvous` is of sends that block: without `send-stream`
  --> w.plan:15:10
  15 | buffers: rendezvous
     |          ^
[1]
## The first stage's I is empty, so its W is the whole backward: what it computes again waits for the gradient, as in any other.
$ printf '0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n' >first.csv; heddle lower mlp-xs:layers=3,hidden=8 --batch 2 --train --strategy "pp=2 mb=2 layers=1/2 schedule=first.csv recompute=full" --rank 0 | grep -e send -e 'call @.*after'
  send %8 {gives="1 [*,*]"} @mb=0 !pp.f0 plan
  send %10 {gives="1 [*,*]"} @mb=1 !pp.f0 plan
  %11 = send {gets="1 [*,*]"} @mb=0 !pp.b0 backward plan : f32[2{mb},8]
  %12 = call @stage.bwd(%11) after %11 @mb=0 backward : (f32[2{mb},8])
  %13 = call @stage.wgt(%4, %7, %12, !%6) after %11 @mb=0 backward : (f32[8,8]+mb)
  %14 = send {gets="1 [*,*]"} @mb=1 !pp.b0 backward plan : f32[2{mb},8]
  %15 = call @stage.bwd(%14) after %14 @mb=1 backward : (f32[2{mb},8])
  %16 = call @stage.wgt(%4, %9, %15, !%13) after %14 @mb=1 backward : (f32[8,8]+mb)
$ heddle lower mlp-xs:layers=3,hidden=8 --batch 2 --train --strategy "pp=2 mb=2 layers=1/2 schedule=first.csv" --rank 0 | grep -c 'call @.*after'
0
[1]
## A whole backward has one name, also where its stage has others in two parts.
$ heddle sim mlp-xs:layers=3,hidden=8 --batch 2 --train --machine dgx-2 --strategy "pp=2 mb=2 layers=1/2 schedule=first.csv" --timeline t.json >/dev/null; grep -o '"task":"[^"]*"' t.json | sort -u | tr '\n' ' '
"task":"0B1" "task":"0F0" "task":"0F1" "task":"0W0" "task":"1B0" "task":"1B1" "task":"1F0" "task":"1F1" 
$ heddle schedule 1f1b --pp 2 --mb 2 --buffers 1
0F0,0F1,0B0,0B1
1F0,1B0,1F1,1B1
$ heddle schedule 1f1b --pp 2 --mb 2 --buffers rendezvous
error[E0503]: deadlock: no place can run its next task
  note: place 0 waits after 0F1 (task 2 of 4) to be received by 1F1, task 3 of place 1
  note: place 1 waits after 1B0 (task 2 of 4) to be received by 0B0, task 3 of place 0
  hint: buffers=unbounded lets senders go on; room for 1 message in every buffer is enough
[1]
$ printf '0F0,0F1,0F2\n1F2,1F1,1F0\n' > swapped.csv; heddle schedule swapped.csv --buffers 1
error[E0503]: deadlock: no place can run its next task
  --> swapped.csv:1:5
   1 | 0F0,0F1,0F2
     |     ^
  note: place 0 waits after 0F1 (task 2 of 3) for room to send, until a message is used by 1F0, task 3 of place 1
  note: place 1 waits at 1F2 (task 1 of 3) for 0F2, task 3 of place 0
  hint: it runs with room for 3 messages in every buffer
[1]
$ heddle schedule 1f1b --pp 2 --mb 2 --buffers none
error[E0501]: buffers: 'none' is not a number of messages
  hint: 1 to 4294967295, unbounded, or rendezvous
[1]
