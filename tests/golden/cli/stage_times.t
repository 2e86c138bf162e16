## long: .ci/run has it without sanitizers
## the stages of a plan as a table, and as a file that `heddle schedule --stages` reads; then a plan with the order that was made for them
$ heddle sim gpt2 --seq 512 --batch 64 --train --optimizer adam --machine "4x1 v100 ib=10Gb/s" --strategy "pp=4 mb=8 recompute=full schedule=zb-h2" --stage-times stages.csv | grep -A 5 -e "^one step" -e ^stage
one step alone  1.185 s
error bar       at least +-167.1 ms; no measured spread for 83.1 % of the step
samples         54.00/s
arithmetic      6.85 TFLOP/s a device, 43.6 % of the f32 peak (HFU), 35.3 % without recomputation (MFU)
computes        70.0 %
communicates    5.7 %
--
stage  place   forward     input    weight      send  activations
    0      0  29.17 ms         0  84.02 ms  10.96 ms     48.0 MiB
    1      1  29.07 ms  60.30 ms  22.84 ms  10.96 ms     48.0 MiB
    2      2  29.11 ms  60.36 ms  22.92 ms  10.96 ms     48.0 MiB
    3      3  25.23 ms  26.25 ms  24.78 ms         0      797 MiB

$ cat stages.csv
stage,forward_us,input_us,weight_us,memory,places,after,send_us
0,29170.580759,0,84022.127067,48,0,,10957.662609
1,29069.299296,60296.13638,22844.814468,48,1,0,10957.662609
2,29110.87821,60355.041488,22920.758666,48,2,1,10957.662609
3,25225.595102,26251.196438,24783.861089,797.266113,3,2,0
$ heddle schedule zb-h2 --stages stages.csv --mb 8 | head -n 5
schedule      zb-h2 for stages.csv
places        4
stages        4
microbatches  8
time          1.048 s
$ heddle schedule zb-2p --stages stages.csv --mb 8 -o zb2p.csv
schedule      zb-2p for stages.csv
places        4
stages        4
microbatches  8
time          1.007 s

place  stages  tasks      idle  bubble  memory  activations
    0  0          24  101.9 ms  10.1 %     384            8
    1  1          24  109.8 ms  10.9 %     384            8
    2  2          24  108.4 ms  10.8 %     384            8
    3  3          24  397.4 ms  39.4 %  2391.8            3
$ heddle sim gpt2 --seq 512 --batch 64 --train --optimizer adam --machine "4x1 v100 ib=10Gb/s" --strategy "pp=4 mb=8 recompute=full schedule=zb2p.csv" | grep -e "^one step" -e ^schedule
one step alone  1.139 s
$ heddle schedule --stages stages.csv --mb 8 --memory 1600 -o found.csv | head -n 8
schedule      found for stages.csv
places        4
stages        4
microbatches  8
memory        1600
time          1.001 s
bound         1.001 s: the search left no order out
gap           none: no schedule of these stages within this memory is faster
$ heddle sim gpt2 --seq 512 --batch 64 --train --optimizer adam --machine "4x1 v100 ib=10Gb/s" --strategy "pp=4 mb=8 recompute=full schedule=found.csv" | grep -e "^one step" -e ^schedule
one step alone  1.139 s
## as JSON, and on standard output; stages in a V, whose neighbours on one place send nothing; a plan file
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "dp=1 tp=1 pp=2 v=2 mb=4 schedule=zb-v" --stage-times v.csv --json | grep -A 5 stage_times
  "stage_times": [
    {"stage": 0, "place": 0, "forward_ps": 298912000, "input_ps": 0, "weight_ps": 1235800000, "send_ps": 9053600, "activation_bytes": 65536},
    {"stage": 1, "place": 1, "forward_ps": 298912000, "input_ps": 307104000, "weight_ps": 1068960000, "send_ps": 0, "activation_bytes": 98304},
    {"stage": 2, "place": 1, "forward_ps": 298912000, "input_ps": 307104000, "weight_ps": 1068960000, "send_ps": 9053600, "activation_bytes": 65536},
    {"stage": 3, "place": 0, "forward_ps": 331585500, "input_ps": 336682000, "weight_ps": 1068960000, "send_ps": 0, "activation_bytes": 131136}
  ],
$ heddle plan mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "dp=1 tp=1 pp=2 v=2 mb=4 schedule=zb-v" --devices 2 -o v.plan > plans.txt
$ heddle sim mlp-xs:layers=8 --batch 64 --machine laptop --plan v.plan --stage-times - | cmp - v.csv
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=4 schedule=1f1b" --stage-times -
stage,forward_us,input_us,weight_us,memory,places,after,send_us
0,597.824,2611.864,0,0.125,0,,9.0536
1,630.4975,2781.706,0,0.187561,1,0,0
## what is refused
$ heddle sim mlp-xs:layers=8 --batch 64 --machine laptop --strategy "pp=2 mb=4" --stage-times -
error[E0118]: no times of stages: the plan has no backward
  hint: add --train
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --machine laptop --stage-times -
error[E0801]: --stage-times needs a plan: this program says nothing of stages
  hint: add --strategy, or a plan file
[2]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=4 schedule=pipedream" --stage-times -
error[E0118]: no times of stages: weights are updated between tasks
  hint: schedule=1f1b
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=4 overlap=none" --stage-times -
error[E0118]: no times of stages: a send occupies the places at both ends (overlap=none), which a schedule for given stages does not know
  hint: overlap=pp
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine "1x4 v100" --strategy "pp=2 dp=2 mb=4 overlap=pp+dp schedule=zb-h1" --stage-times -
error[E0118]: no times of stages: gradients are summed beside the last backward of a stage (overlap=dp)
  hint: overlap=pp
[1]
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --seq 16 --batch 64 --train --machine "1x4 v100" --strategy "pp=2 mb=4 schedule=interlaced" --stage-times -
error[E0118]: no times of stages: some stages lie on several places, and hold up all of them
  hint: schedule=zb-h1
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --optimizer adam --machine "1x4 v100 hostmem=64GiB" --strategy "pp=2 dp=2 mb=4 offload=states" --stage-times -
error[E0118]: no times of stages: copies from host memory run beside the tasks of other microbatches (offload)
  hint: offload=none
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine "1x4 v100" --strategy "pp=2 dp=2 mb=4 sync=ps" --stage-times -
error[E0118]: no times of stages: servers gather gradients and send weights (sync=ps)
  hint: sync=allreduce
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine "1x4 v100" --strategy "mb=4 replicas=2x1+1x1" --stage-times -
error[E0118]: no times of stages: each replica has stages of its own (replicas)
  hint: pp=2 in place of replicas
[1]
$ heddle sim examples/distir/fig2_pipeline.heddle --machine dgx-2 --stage-times -
error[E0801]: --stage-times needs a plan: this program says nothing of stages
  hint: add --strategy, or a plan file
[2]
## the order of a row for given stages
$ heddle schedule zb-1p --stages examples/stages.csv --mb 8 --json | head -n 8
{
  "schedule": "zb-1p for examples/stages.csv",
  "places": 4,
  "stages": 4,
  "microbatches": 8,
  "memory_limit": null,
  "time_ps": 313000000,
  "by_place": [
$ heddle schedule zb-1p --stages examples/stages.csv --mb 8 -o - | head -n 2
# edges 0-2 1-2 2-3
0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7
$ heddle schedule 1f1b --stages stages.csv --mb 8 --picture | head -n 12
schedule      1f1b for stages.csv
places        4
stages        4
microbatches  8
time          1.341 s

not to scale: a forward takes 1 column, a backward 2
place 0  0123......aA4bB5cC6dD7eE.fF.gG.hH
place 1  .012....aA3bB4cC5dD6eE7fF.gG.hH..
place 2  ..01..aA2bB3cC4dD5eE6fF7gG.hH....
place 3  ...0aA1bB2cC3dD4eE5fF6gG7hH......

$ heddle schedule zb-v --stages examples/stages.csv --mb 8
error[E0118]: no zb-v of these 4 stages on 4 places: two stages on every place
  --> examples/stages.csv:2:1
   2 | 0,10,11,9,1,0,,1
     | ^
[1]
$ heddle schedule pipedream --stages examples/stages.csv --mb 8
error[E0118]: no pipedream of these 4 stages on 4 places: it updates weights between tasks
  --> examples/stages.csv:2:1
   2 | 0,10,11,9,1,0,,1
     | ^
[1]
$ heddle schedule zb-1q --stages examples/stages.csv --mb 8
error[E0501]: unknown schedule 'zb-1q'
  hint: did you mean schedule=zb-1p? There are gpipe, 1f1b, interleaved, bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, zb-v-half, zb-v-min, dualpipev, chimera, chimera-double, dualpipe, gems, interlaced, interlaced-block, 3f1b, pipedream, pipedream-2bw
[1]
$ heddle schedule zb-1p --stages examples/stages.csv --mb 8 --memory 3
error[E0801]: --memory is for a search; zb-1p is not looked for
  hint: leave it out, or the name
[2]
$ heddle schedule examples/zbv.csv --stages examples/stages.csv
error[E0118]: examples/zbv.csv is no schedule of these 4 stages on 4 places: it has 8
  --> examples/stages.csv:2:1
   2 | 0,10,11,9,1,0,,1
     | ^
[1]
$ printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > mine.csv; printf 'stage,forward_us,input_us,weight_us,memory,send_us\n0,1,2,0,1,5\n1,1,2,0,1,0\n' > two.csv; heddle schedule mine.csv --stages two.csv | grep -e ^micro -e ^time; heddle schedule mine.csv --stages two.csv --mb 3; cp mine.csv mine.out; heddle schedule mine.out
microbatches  2
time          19.00 us
error[E0501]: mine.csv has 2 microbatches, but mb=3
  hint: pp=2 mb=2
error[E0801]: mine.out is a file, but its name does not end in .csv
  hint: rename it so
[2]
## an empty I at which the file's order waits, and the plan does not
$ printf '0F0,0I0,0F1,0I1,0W0,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n' > waits.csv; heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=2 schedule=waits.csv" 2>&1 | head -n 5
warning[W0507]: place 0 waits at 0I0, which is empty, before 0F1; the plan does not, and may be simulated shorter than it runs
  --> waits.csv:1:5
   1 | 0F0,0I0,0F1,0I1,0W0,0W1
     |     ^
  hint: put 0W0 right behind it, or ask `heddle schedule waits.csv --stages FILE` for the time with that wait
$ printf '0F0,0F1,0I0,0W0,0I1\n1F0,1I0,1W0,1F1,1I1,1W1\n' > lacks.csv; heddle schedule lacks.csv
error[E0501]: task 0W1 is in no sequence
  --> lacks.csv:1:1
  note: the highest stage is 1
    --> lacks.csv:2:1
     2 | 1F0,1I0,1W0,1F1,1I1,1W1
       | ^
  note: the highest microbatch is 1
    --> lacks.csv:1:5
     1 | 0F0,0F1,0I0,0W0,0I1
       |     ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) and backward (B, or I and W) once
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=2 zb-v"
error[E0509]: unknown choice 'zb-v'
  --> --strategy:1:11
   1 | pp=2 mb=2 zb-v
     |           ^
  hint: did you mean 'schedule=zb-v'?
[2]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy "pp=2 mb=2 schedule=zb-auto" 2>&1 | tail -n 1 | cut -c 1-110
  hint: did you mean schedule=zb-h1 or zb-h2 or zb-1p or zb-2p or zb-v or zb-v-half or zb-v-min? It takes gpip
## earlier passes have no backward, and no gradient comes back to them: the order that is found is shorter in the plan, too
$ heddle sim alphafold2:layers=4,recycle=3 --batch 8 --train --machine "4x1 a100-80gb ib=100Gb/s" --strategy "pp=4 mb=8 v=3 schedule=interleaved layers=equal" --stage-times passes.csv | grep "^one step"; cat passes.csv
one step alone  1.307 s
stage,forward_us,input_us,weight_us,memory,places,after,send_us,no_gradient
0,24165.464302,367.372478,0,64,0,,5867.553392,
1,23795.170024,0,0,0,1,0,5867.553392,0
2,23795.170024,0,0,0,2,1,5867.553392,1
3,23804.802502,0,0,0,3,2,2972.571826,2
4,24015.034481,0,0,0,0,0+3,5867.553392,0+3
5,23795.170024,0,0,0,1,4,5867.553392,4
6,23795.170024,0,0,0,2,5,5867.553392,5
7,24024.666959,106.718129,0,32.25,3,0+6,5867.553392,6
8,23795.170024,44736.437204,0,3464,0,7,5867.553392,
9,23795.170024,44736.437204,0,3464,1,8,5867.553392,
10,23795.170024,44736.437204,0,3464,2,9,5867.553392,
11,24002.28828,44982.462244,0,3512.000488,3,10,0,
$ heddle schedule --stages passes.csv --mb 8 --time 1 -o found.csv | grep -E "^(time|bound|interleaved)"; head -n 1 found.csv
time          1.190 s
bound         1.189 s: the work of place 3
interleaved       1.342 s  30.5 %   14304  yes
# edges 0>1 0>4 0-7 1>2 2>3 3>4 4>5 5>6 6>7 7-8 8-9 9-10 10-11
$ heddle sim alphafold2:layers=4,recycle=3 --batch 8 --train --machine "4x1 a100-80gb ib=100Gb/s" --strategy "pp=4 mb=8 v=3 schedule=found.csv layers=equal" | grep "^one step"
one step alone  1.182 s
## a send as long as the longer one of value and gradient, whichever that is
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --seq 16 --batch 64 --train --machine "1x8 v100" --strategy "pp=2 tp=4 mb=4 tp.stages=4/2" --stage-times - | cut -d , -f 1,8
stage,send_us
0,9.606815
1,0
$ heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=256 --seq 16 --batch 64 --train --machine "1x8 v100" --strategy "pp=2 tp=4 mb=4 tp.stages=2/4" --stage-times - | cut -d , -f 1,8
stage,send_us
0,9.606815
1,0
