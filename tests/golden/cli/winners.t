## Winners that once were lost, or did not run. Schedules for which `auto` cuts differently have bounds of their own.
$ heddle plan vit-base:layers=4,hidden=64,heads=4 --batch 24 --machine '2x1 v100 ib=1Gb/s' --train --strategy 'dp=1 tp=1 pp=2 mb=8 schedule=zb-h1,zb-2p layers=auto' | grep '^winner\|^auto\|faster than its bound' -A1
winner         dp=1 tp=1 pp=2 mb=8 schedule=zb-2p layers=auto
auto resolved  dp=1 tp=1 pp=2 mb=8 schedule=zb-2p layers=1/3
               computes 55.7 % of the time, communicates 0.1 %, idles 44.2 %; MFU 2.3 %; needs 35.4 MiB of 28.8 GiB
$ m='bert-base:layers=8,hidden=128,heads=4,vocab=96 --train --batch 48 --seq 256 --machine'; for n in 1 100000; do heddle plan $m '2x1 t4 ib=700Mb/s' --top $n --strategy 'dp=1 tp=1 pp=2 mb=12 schedule=* recompute=none,full overlap=* layers=cost,auto' | grep '^winner\|faster than its bound'; done
winner         dp=1 tp=1 pp=2 mb=12 schedule=zb-2p layers=auto
winner         dp=1 tp=1 pp=2 mb=12 schedule=zb-2p layers=auto
## Which layers in parts are made again depends on the stage.
$ for n in 1 1000; do heddle plan tests/residual.heddle --machine '1x2 h100 nvlink=8GB/s' --train --strategy 'dp=1,2 tp=1 pp=1,2 mbs=6 schedule=zb-h2 recompute=full coshard=2 zero=*' --top $n | grep '^winner\|faster than its bound'; done
winner       dp=1 tp=1 pp=2 mb=4 schedule=zb-h2 recompute=full coshard=2
winner       dp=1 tp=1 pp=2 mb=4 schedule=zb-h2 recompute=full coshard=2
## What is sent to stages on all places is held for longer where senders wait.
$ for m in inter intra p2p; do s="pp=2 schedule=interlaced overlap=none buffers=rendezvous materialise=$m"; heddle plan tests/skips.heddle --train --machine '1x2 v100' --strategy "dp=1 tp=1 $s" --json | grep -o '"peak_bytes": *[0-9]*' | head -1; heddle sim tests/skips.heddle --train --machine '1x2 v100' --strategy "$s" --json | grep -o '"peak_bytes": *[0-9]*' | head -1; done
"peak_bytes": 14336
"peak_bytes": 14336
"peak_bytes": 14848
"peak_bytes": 14848
"peak_bytes": 14848
"peak_bytes": 14848
## Statistics over all data ranks ask only that a microbatch has as many samples as the others.
$ heddle verify examples/batchnorm.heddle --train --strategy 'dp=3 mb=1 dp.shares=3/3/2 bn=sync' | grep '^verdict'
verdict     equal: the plan computes what the model computes
$ heddle verify examples/batchnorm.heddle --train --strategy 'dp=3 mb=2 dp.shares=2/1/1 bn=sync' | grep '^verdict'
verdict     equal: the plan computes what the model computes
## An order with buffers is another order: with senders that wait this one deadlocks.
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100' --strategy 'dp=2 tp=1 pp=2 mb=4 v=2 zero=0 recompute=none schedule=interleaved overlap=none buffers=*' | grep '^certificate'
certificate  2 plans: 1 fit, 0 too large, 0 too slow, 1 impossible, 0 equal to another;
## Bounds that fill a pipeline are of one chunk and whole backwards.
$ heddle plan gpt3-175b:layers=48 --batch 8 --dtype f16 --train --machine '1x8 a100-80gb' --memory-limit 10000GB --strategy 'tp=1 dp=1 pp=8 mb=8 v=1,2,6 schedule=1f1b,interleaved,zb-v,zb-h2,zb-2p,interlaced,chimera,dualpipev recompute=none' | grep '^winner\|faster than its bound'
warning[W0509]: a memory limit of 9.09 TiB is more than the 80.0 GiB of a100-80gb
winner       dp=1 tp=1 pp=8 mb=8 v=6 schedule=interleaved
## Groups are `pp` or more; chunks may leave the first and the last stage without layers.
$ heddle plan gpt2:layers=16 --batch 16 --seq 64 --train --machine '1x4 v100' --strategy 'tp=1 dp=1 pp=4 mb=16 v=2 schedule=interleaved group=* recompute=none' | grep '^certificate'
certificate  3 plans: 3 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
$ heddle plan gpt2:layers=14 --batch 8 --seq 64 --train --machine '1x4 a100-80gb' --strategy 'pp=4 tp=1 dp=1 mb=8 v=* schedule=interleaved recompute=none layers=auto' | grep '^winner\|^auto\|^layers\|v=\*'
winner         dp=1 tp=1 pp=4 mb=8 v=4 schedule=interleaved layers=auto
auto resolved  dp=1 tp=1 pp=4 mb=8 v=4 schedule=interleaved layers=0/1x14/0
layers         0/1x14/0
               v=* has the numbers that deal out the layers evenly; others are tried when they are named, as in v=5
## What one of the choices that were said rules out is not said to be left out.
$ heddle plan gpt2:layers=4 --batch 8 --seq 64 --train --machine '1x2 v100' --strategy 'tp=1' | grep 'other values'
             other values of some choices are not in it; --strategy 'v=* schedule=* attention=* overlap=* layers=*' has them, --what-if tries each
## A file beside all the rows; `*` beside other values.
$ heddle plan gpt2:layers=8 --batch 16 --seq 64 --train --machine '1x4 v100' --strategy 'pp=4 tp=1 dp=1 mb=8 recompute=none v=2 schedule=*,examples/zbv.csv' | grep 'zbv\|^schedule=dual'
schedule=dualpipev             1  dp=1 tp=1 pp=4 mb=8 v=2 schedule=dualpipev    47.72 ms  1.10x
schedule=examples/zbv.csv      1  dp=1 tp=1 pp=4 mb=8 v=2 schedule=zb-v         47.72 ms  1.10x
schedule=dualpipe              0                                                          impossible
$ heddle plan gpt2 --machine '1x4 v100' --strategy 'pp=*,4'
error[E0509]: pp: '*' stands for all values, and goes with no others
  --> --strategy:1:4
   1 | pp=*,4
     |    ^
[2]
