## long: .ci/run has it without sanitizers
## What ranks of `heddle run --trace` have recorded (tests/rare/run: two ranks of a pipeline, three steps).
$ heddle trace info tests/rare/run
rank  file                       format  host  device  steps  streams  threads  events      span  clock starts at
   0  tests/rare/run/rank0.json  Heddle  node  cpu     0-2          3        0      72  374.8 us  2026-11-25 21:13:09.818659075 UTC
   1  tests/rare/run/rank1.json  Heddle  node  cpu     0-2          3        0     141  291.5 us  2026-11-25 21:13:09.818705776 UTC
$ heddle trace summary tests/rare/run --top 3
rank  steps      time  computes   exposed  copies      idle  for host  between  other  hidden  computing
   0  0-2    368.3 us  106.0 us  117.8 us       0  144.4 us  144.4 us        0      0   0.0 %     28.8 %
   1  0-2    284.6 us  98.81 us  119.6 us       0  66.14 us  66.14 us        0      0   0.0 %     34.7 %

rank  steps      time  computes   exposed  copies      idle  for host  between  other  hidden  computing
   0  0      203.3 us  76.03 us  56.63 us       0  70.64 us  70.64 us        0      0   0.0 %     37.4 %
   0  1      49.23 us  15.87 us  14.97 us       0  18.39 us  18.39 us        0      0   0.0 %     32.2 %
   0  2      76.43 us  14.15 us  46.18 us       0  16.11 us  16.11 us        0      0   0.0 %     18.5 %
   1  0      116.3 us  54.76 us  30.00 us       0  31.57 us  31.57 us        0      0   0.0 %     47.1 %
... and 2 more

rank  communication  count      runs   exposed
   0  send               6  21.61 us  21.61 us
   0  recv               6  96.17 us  96.17 us
   1  send               6  7.658 us  7.658 us
   1  recv               6  112.0 us  112.0 us

rank  device  stream  events      busy  for host  between  other  queue  median  longest
   0       0       0      45  106.0 us  262.2 us        0      0    0.5     0.5        1
   0       0       1       6  21.61 us  218.5 us        0      0    0.5     0.5        1
   0       0       2       6  96.17 us  163.4 us        0      0    0.5     0.5        1
   1       0       0     114  98.81 us  185.7 us        0      0    0.5     0.5        1
   1       0       1       6  112.0 us  127.7 us        0      0    0.5     0.5        1
   1       0       2       6  7.658 us  190.5 us        0      0    0.5     0.5        1

kernel  kind           count     total   share      mean  shortest   longest
send    communication     24  237.4 us  53.7 %  9.891 us  398.0 ns  75.89 us
part    compute           12  46.32 us  10.5 %  3.860 us  270.0 ns  40.37 us
matmul  compute           12  29.85 us   6.7 %  2.487 us  1.025 us  8.527 us
... and 13 more

operation  group  type   size  count  shortest    median  algorithm       bus  median bus
recv                    256 B     12  747.0 ns  9.339 us   343 MB/s  343 MB/s   27.4 MB/s
send                    256 B     12  398.0 ns  627.0 ns   643 MB/s  643 MB/s    408 MB/s
## Ranks run one instruction after the other, and what is sent leaves: the replay gives back what was recorded.
$ heddle trace replay tests/rare/run
recorded                368.3 us
replayed                368.3 us
operations              183
error of their ends     0
  99 of 100 below       0
  largest               0
launch latency          0
between queued kernels  0
between streams         0
return of a wait        0
path: until it begins   46.84 us
path: host              138.6 us
path: device            104.3 us
path: communication     78.53 us
path: latencies         0

verdict  device-bound on all ranks: they take longer without hosts than without devices
late     rank 1 and rank 0 arrive last: at 8 and 4 of 12 communications
bounds   230.5 us if hosts took no time, 189.5 us if devices took none

rank  host alone  device alone  host on path  arrives last  gain if repaired
   0    189.5 us      230.5 us      103.6 us             4
   1    140.4 us      148.3 us      34.97 us             8
$ heddle trace whatif tests/rare/run --set 'rank 1 matmul x 0.5'
ranks   2
job     368.3 us
replay  operations end 0 off on average, 99 of 100 at most 0

change               durations       job     change  faster
rank 1 matmul x 0.5          6  362.4 us  -5.811 us   1.02x
## Beside computation (tests/rare/beside, made by hand): a thread sums three gradients. It wakes in 3 or 5 us and goes on to the next in 1, its host wakes in 4; no other event takes that.
$ heddle trace replay tests/rare/beside | grep -v -e '^ ' -e '^rank' -e '^$'
recorded                122.0 us
replayed                122.0 us
operations              22
error of their ends     0
launch latency          0
between queued kernels  0
between streams         0
return of a wait        0
path: host              7.000 us
path: device            92.00 us
path: communication     20.00 us
path: latencies         3.000 us
verdict  device-bound on all ranks: they take longer without hosts than without devices
late     rank 1 arrives last: at 5 of 6 communications
bounds   118.0 us if hosts took no time, 14.00 us if devices took none
$ heddle trace whatif tests/rare/beside --set 'all_reduce = 0'
ranks   2
job     122.0 us
replay  operations end 0 off on average, 99 of 100 at most 0

change          durations       job     change  faster
all_reduce = 0         12  110.0 us  -12.00 us   1.11x
$ heddle trace convert tests/rare/beside --to heddle -o beside.json >out.txt; heddle trace replay tests/rare/beside >a; heddle trace replay beside.json | diff a -
## Both ends of every message and all members of a collective are tied by numbers.
$ heddle trace align tests/rare/run --set clocks=process
processes    2
clocks       2
collectives  0
messages     12
method       floors
form         offsets
slack        1.032 us
violated     0 of 12 as recorded (by up to 0), 0 once aligned

rank     offset  drift ppm    +-   at least    at most  used
   0          0                                           12
   1  -44.50 ns             3 ps  -1.077 us  +988.0 ns    12

from  to  by             at      takes
   0   1  message  234.1 us  +1.032 us
   1   0  message  215.4 us  +1.032 us
## Nothing is lost in another file: the same answers.
$ heddle trace convert tests/rare/run --to heddle -o job.json >out.txt; heddle trace replay tests/rare/run >a; heddle trace replay job.json | diff a -; heddle trace summary tests/rare/run >a; heddle trace summary job.json | diff a -
$ grep -m1 '"recv"' job.json | grep -o '"args".*'
"args":{ "step":0,"microbatch":0,"waited":0,"task":"1B0","function":"main","node":"mlp-xs","op":"recv","peer":1,"seq":1,"bytes":256}},
## Rank 1 on another host whose clock is 100 us ahead: found, and corrected before ranks are compared.
$ mkdir far; cp tests/rare/run/rank0.json far; sed 's/"host":"node"/"host":"other"/; s/818705776/818805776/' tests/rare/run/rank1.json >far/rank1.json; heddle trace align far | tail -6; heddle trace replay far | grep -E 'replayed|clocks'; heddle trace replay far --json | grep clocks_corrected
   0          0                                           12
   1  +99.96 us             3 ps  +98.92 us  +101.0 us    12

from  to  by             at      takes
   0   1  message  234.1 us  +1.032 us
   1   0  message  215.4 us  +1.032 us
replayed                368.3 us
clocks                  of hosts are up to 99.96 us apart: corrected by ends of communications, to within 15.00 us
late     rank 0 and rank 1 arrive last: at 4 and 8 of 12 communications, 2 and 2 beyond the clocks' doubt, 15.00 us
  "clocks_corrected_ps": 99955500,
## Beside the simulation of the same plan, and both as one timeline.
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --machine laptop --from tests/rare/run --top 4 -o both.json
model      mlp-xs:layers=2,hidden=16
plan       dp=1 tp=1 pp=2 mb=2
weights    f32
machine    laptop
ranks      2
measured   81.75 us, the median of 2 steps from 81.75 us to 83.20 us
predicted  46.62 us
error bar  unknown: no measured spread for 100.0 % of the step
gap        +35.13 us
ratio      1.75x
activity   52 of 61 instructions start and end 11.7 % of the step away from the prediction, on average; median of the worst stage 40.6 %

of a rank                                    measured  predicted        gap  of the gap
computation            matmul                6.109 us   5.960 us  +149.0 ns       0.4 %
computation            optimizer             1.734 us   1.384 us  +350.0 ns       1.0 %
computation            reduction             370.0 ns   1.032 us  -662.5 ns      -1.9 %
computation            data movement         1.952 us   3.161 us  -1.208 us      -3.4 %
computation            element-wise          6.878 us   13.44 us  -6.564 us     -18.7 %
exposed communication  send, recv            21.18 us   5.834 us  +15.35 us      43.7 %
idle                   pipeline bubble       26.10 us   15.81 us  +10.29 us      29.3 %
idle                   waiting for the host  17.42 us          0  +17.42 us      49.6 %

stage  computes  predicted   exposed  predicted  copies  predicted      idle  predicted
    0  14.15 us   14.37 us  39.58 us   7.949 us       0          0  28.03 us   24.30 us
    1  19.94 us   35.59 us  2.788 us   3.718 us       0          0  59.03 us   7.312 us

event       kind                   measured  predicted      mean  predicted     in all
send, recv  exposed communication         4          4  5.296 us   2.551 us  +10.98 us
scale       computation                   3          3  255.2 ns   1.022 us  -2.300 us
mul         computation                   2          2  498.5 ns   1.096 us  -1.195 us
full        computation                   2          2  495.8 ns   1.064 us  -1.137 us
... and 13 more

instruction  function     of the model  measured  predicted      mean  predicted     in all
send         main         mlp-xs               4          4  5.296 us   2.551 us  +10.98 us
scale        stage.1.bwd  mlp-xs               2          2  267.5 ns   1.032 us  -1.530 us
full         main         mlp-xs               2          2  495.8 ns   1.064 us  -1.137 us
join         update       mlp-xs               1          0  841.0 ns             +841.0 ns
... and 20 more
$ grep -c '"name":"pipeline bubble"' both.json; grep -m1 '"ph":"s"' both.json | cut -c1-60; grep -o '"rank [0-9], [a-z]*"' both.json; grep -m1 '"ph":"B"' both.json | cut -c1-50
9
{"ph":"s","name":"meet","cat":"meet","id":1,"pid":2,"tid":2,
"rank 0, measured"
"rank 0, predicted"
"rank 1, measured"
"rank 1, predicted"
{"ph":"B","name":"0F0","cat":"task","pid":0,"tid":
$ grep -o '"ph":"C","name":"[^,]*,"pid":[0-9]*' both.json | sort | uniq -c; grep '"pid":3,' both.json | grep -o '"layer":[0-9]*' | sort | uniq -c
      6 "ph":"C","name":"memory","pid":1
      8 "ph":"C","name":"memory","pid":3
     13 "layer":1
## A recording's layers stay in what is made of it.
$ mkdir layers; for r in 0 1; do sed 's/"function":"layer[^"]*"/"layer":7,&/; s/"function":"stage[^"]*"/"layer":7,&/' tests/rare/run/rank$r.json >layers/rank$r.json; done; heddle trace convert layers --to heddle -o layers.json >out.txt; cat layers/*.json | grep -c '"layer":7'; grep -c '"layer":7' layers.json
120
120
## Refused
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --from tests/rare/run
error[E0801]: --machine is missing
  hint: --machine dgx-2; `heddle machines` lists the presets
[2]
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --machine laptop --from tests/rare/run --steps 3
error[E0801]: --steps cannot be combined with --from: nothing is run
  hint: leave it out
[2]
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --machine laptop --from nothing
error[E0101]: cannot open nothing: No such file or directory
[1]
$ mkdir old; touch old/rank7.json; heddle run mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --trace old
error: old has rank7.json, and the plan has 2 ranks: it is of another job
  hint: name another folder
[1]
## A blank behind a colon is JSON as well; a pipeline is no data parallelism.
$ mkdir spaced; for r in 0 1; do sed 's/"schema":/"schema" : /' tests/rare/run/rank$r.json >spaced/rank$r.json; done; heddle trace summary spaced | diff - a
$ heddle trace rescale tests/rare/run --ranks 8
error[E0106]: a message (send) goes from one rank to another: ranks are no copies of each other
  hint: rescale takes pipelined timelines, and jobs whose ranks all communicate with all
[1]
## A recording says what was run, and another program is told before its figures are read.
$ mkdir named; for k in 0 1; do sed 's/"serial":1/"serial":1,"model":"mlp-xs:layers=2,hidden=16","plan":"dp=1 tp=1 pp=2 mb=2","digest":"1"/' tests/rare/run/rank$k.json >named/rank$k.json; done; heddle compare mlp-xs:layers=4,hidden=16 --batch 8 --strategy 'dp=2' --machine laptop --from named 2>&1 >out.txt
warning[W0104]: recorded was 'mlp-xs:layers=2,hidden=16' under dp=1 tp=1 pp=2 mb=2, predicted is 'mlp-xs:layers=4,hidden=16' under dp=2 tp=1 pp=1
  --> named/rank0.json
  hint: compare with the model, the sizes and the plan that were run; for training, with --train
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 16 --strategy 'pp=2 mb=2' --machine laptop --from named 2>&1 >out.txt
warning[W0104]: recorded was 'mlp-xs:layers=2,hidden=16' under dp=1 tp=1 pp=2 mb=2, as predicted, but with other sizes, another optimizer, or another file of that name
  --> named/rank0.json
  hint: compare with the model, the sizes and the plan that were run; for training, with --train
$ for k in 0 1; do sed -i 's/"plan":/"machine":"here --profiles events.db","plan":/' named/rank$k.json; done; heddle compare mlp-xs:layers=2,hidden=16 --batch 16 --strategy 'pp=2 mb=2' --machine laptop --from named 2>&1 >out.txt
warning[W0104]: recorded was 'mlp-xs:layers=2,hidden=16' under dp=1 tp=1 pp=2 mb=2, as predicted, but with other sizes, another optimizer, or another file of that name
  --> named/rank0.json
  hint: compare with the model, the sizes and the plan that were run, and as the run with --machine here --profiles events.db
## A plan from a file is the strategy that wrote it.
$ m='mlp-xs:layers=2,hidden=16 --batch 8'; heddle plan $m --train --machine '1x1 cpu-core' --strategy 'dp=1 mb=2' -o two.plan >out.txt; heddle run $m --plan two.plan --steps 2 --trace same >out.txt; for n in 2 4; do heddle compare $m --strategy "dp=1 mb=$n" --machine '1x1 cpu-core' --from same 2>&1 | grep W0104; done
warning[W0104]: recorded was 'mlp-xs:layers=2,hidden=16' under dp=1 tp=1 pp=1 mb=2, predicted is 'mlp-xs:layers=2,hidden=16' under dp=1 tp=1 pp=1 mb=4
## Files of one name are not one model.
$ mkdir A B; for n in 16 32; do heddle import mlp-xs:layers=2,hidden=$n --batch 8 -o $n.heddle >out.txt; done; mv 16.heddle A/m.heddle; mv 32.heddle B/m.heddle; cp A/m.heddle .; heddle run m.heddle --strategy 'dp=1 mb=2' --steps 1 --trace of >out.txt 2>&1; for n in A B; do cp $n/m.heddle m.heddle; heddle compare m.heddle --strategy 'dp=1 mb=2' --machine '1x1 cpu-core' --from of 2>&1 | grep W0104; done
warning[W0104]: recorded was 'm.heddle' under dp=1 tp=1 pp=1 mb=2, as predicted, but with other sizes, another optimizer, or another file of that name
## Another way of moving collectives than is predicted; files of two runs.
$ mkdir mpi; for k in 0 1; do sed 's/"serial":1/"serial":1,"collectives":"mpi","run":"1"/' tests/rare/run/rank$k.json >mpi/rank$k.json; done; heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --machine laptop --from mpi 2>&1 >out.txt
$ sed -i 's/"run":"1"/"run":"2"/' mpi/rank1.json; heddle compare mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'pp=2 mb=2' --machine laptop --from mpi
error[E0106]: rank 1 was recorded in another run than rank 0
  --> mpi/rank1.json
  note: rank 0
    --> mpi/rank0.json
  hint: record all ranks in one run, into an empty folder: heddle run ... --trace DIR
[1]
## Names of streams and what computations are for stay in another file.
$ cat tests/rare/run/rank*.json | grep -o '"cat":"[fbuc][a-z]*"' | sort | uniq -c; grep -o '"thread_name".*"pid":0.*' job.json | grep -o '"name":"[^"]*"'; grep -o '"cat":"[fbuc][a-z]*"' job.json | sort | uniq -c
     78 "cat":"backward"
     24 "cat":"communication"
     69 "cat":"forward"
     12 "cat":"update"
"name":"compute"
"name":"pp.f0"
"name":"pp.b0"
"name":"steps"
     78 "cat":"backward"
     24 "cat":"communication"
     69 "cat":"forward"
     12 "cat":"update"
