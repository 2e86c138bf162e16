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
## A file that runs backwards in parts does not lend its stages to rows.
$ for s in 0 1; do echo ${s}F0,${s}F1,${s}F2,${s}F3,${s}I0,${s}W0,${s}I1,${s}W1,${s}I2,${s}W2,${s}I3,${s}W3; done > slow2.csv; heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --seq 32 --batch 16 --train --optimizer momentum --machine '2x1 v100 eth=1Gb/s' --threads 1 --strategy 'dp=1 tp=1 pp=2 mb=4 schedule=slow2.csv,1f1b,gpipe recompute=none' --json | grep -o '"strategy": "[^"]*"\|"peak_bytes": *[0-9]*' | head -6; for s in slow2.csv 1f1b gpipe; do heddle sim gpt2:layers=4,hidden=64,heads=4,vocab=128 --seq 32 --batch 16 --train --optimizer momentum --machine '2x1 v100 eth=1Gb/s' --strategy "pp=2 mb=4 schedule=$s" --json | grep -o '"peak_bytes": *[0-9]*' | head -1; done
"strategy": "dp=1 tp=1 pp=2 mb=4 schedule=slow2.csv"
"peak_bytes": 7112704
"strategy": "dp=1 tp=1 pp=2 mb=4 schedule=gpipe"
"peak_bytes": 7047168
"strategy": "dp=1 tp=1 pp=2 mb=4"
"peak_bytes": 4687872
"peak_bytes": 7112704
"peak_bytes": 4687872
"peak_bytes": 7047168
## One data rank with more microbatches sends other pieces than several ranks do: no bound on several kinds.
$ heddle plan gnmt:layers=2,hidden=32,vocab=60 --batch 8 --machine '1x4 v100 + 1x4 p100 eth=1Gb/s' --seq 8 --strategy 'dp=2 tp=4 pp=1 mb=1 materialise=p2p dp.shares=equal' | grep '^ 1\|^1 \|please report'
1   2   4  p2p          5.031 ms  1.00x  1,590/s  123 KiB  communication 37 %
## Many replicas, and many values of a row.
$ heddle plan mlp-xs:layers=4 --batch 16 --train --machine '2x4 v100 + 2x4 a100 + 2x4 t4 ib=10Gb/s' --strategy 'replicas=* mb=1 zero=0 recompute=none' | grep '^winner\|^certificate'
winner       dp=4 tp=1 pp=2 skip=8
certificate  273 plans: 27 fit, 0 too large, 48 too slow, 153 impossible, 45 equal to another;
$ heddle plan gpt3:heads=48,ffn=3072 --batch 48 --train --machine '1x1 v100' --strategy "coshard=$(seq -s, 1 32)" | grep '^winner\|^certificate'
winner       dp=1 tp=1 pp=1 mb=24
certificate  960 plans: 10 fit, 33 too large, 227 too slow, 690 impossible, 0 equal to another;
## A winner that leaves out devices at both ends can be asked for again.
$ m='mlp-xs:layers=4,hidden=4096 --batch 31 --train --machine'; for s in 'mb=1' 'mb=1 skip=1' 'dp=1 tp=1 pp=2 mb=1 skip=1'; do heddle plan $m '1x1 v100 + 1x2 a100 + 1x1 t4 ib=100Mb/s' --strategy "$s" | grep '^winner\|on ranks'; done; heddle plan $m '1x1 v100 + 1x2 a100 + 1x1 t4 ib=100Mb/s' --strategy mb=1 --why skip=1 | sed -n '/^asked/,/^ *which/p'
winner       dp=1 tp=2 pp=1 skip=1
             on ranks: all, 0 to 2, 0 to 0, 1 to 3, 1 to 2, 3 to 3
left out       2 of 4 devices: the winner is on ranks 1 to 2
winner       dp=1 tp=2 pp=1 skip=1
             on ranks: 1 to 3, 1 to 2
left out       2 of 4 devices: the winner is on ranks 1 to 2
winner       dp=1 tp=1 pp=2 skip=1
             on ranks: 1 to 3, 1 to 2
left out       2 of 4 devices: the winner is on ranks 1 to 2
asked    dp=1 tp=2 pp=1 skip=1
         the best of 51 plans with skip=1
         which is the winner
## Shares for memory, of a batch that data ranks do not divide.
$ for n in 24 25 31; do heddle plan gpt2-medium --batch $n --dtype f16 --train --machine '1x1 h100 usable=30GB + 2x1 v100 eth=100Gb/s' --strategy 'dp=3 tp=1 pp=1 mb=1 zero=0 recompute=none dp.shares=auto' 2>&1 | grep '^1 \|^error'; done
1   3  13/6/5     389.4 ms  1.00x  61.63/s  26.5 GiB  communication 24 %
1   3  13/6/6     389.4 ms  1.00x  64.20/s  26.5 GiB  communication 24 %
1   3  13/9/9     521.4 ms  1.00x  59.45/s  26.5 GiB  computation 63 %
## Heads that do not divide, dealt out on devices of one kind.
$ heddle sim gpt2-xl --batch 8 --train --machine '1x8 a100' --strategy 'tp=2 tp.shares=auto' | grep '^plan\|^time'
plan            dp=1 tp=2 pp=1 tp.shares=13/12
time per step   3.133 s
## A deadlock says what helps.
$ heddle plan gpt2:layers=2,hidden=16,heads=2,vocab=16 --seq 4 --batch 8 --train --machine '1x2 v100' --strategy 'schedule=1f1b pp=2 dp=1 tp=1 mb=4 overlap=none buffers=rendezvous'
error[E0506]: no plan can run: all 3 are impossible
  note: 3 impossible, such as dp=1 tp=1 pp=2 mb=4 overlap=none buffers=rendezvous: deadlock: no place can run its next task
  hint: buffers=unbounded lets senders go on; room for 1 message in every buffer is enough
[1]
## The reason of a question is that of the table above it.
$ heddle plan mlp-xs --batch 13 --train --machine '1x2 v100' --strategy mbs=1 --why dp=2 | grep '^impossible' | tail -1
impossible  batch 13 / dp=2 is not divisible by mbs=1
## DistIR's costs know one step, in searches and alone.
$ s='dp=1 tp=1 pp=2 mb=8 schedule=zb-h2'; m='mlp-xs:layers=4 --batch 16 --train --optimizer adamw --costs distir --machine'; heddle plan $m '2x1 t4 eth=1Gb/s' --strategy "$s" | grep '^1 '; heddle sim $m '2x1 t4 eth=1Gb/s' --strategy "$s" | grep '^time per'
1   2   8  zb-h2     none       1.848 ms  1.00x  8,659/s  10.1 MiB  bubble 24 %
time per step  1.848 ms
## Times of layers on one place are not those of layers on all places.
$ cp examples/profiles/gpt2.csv .; heddle sim gpt2 --batch 8 --train --machine '2x1 v100 eth=100Gb/s' --profiles gpt2.csv --strategy 'pp=2 mb=8 schedule=interlaced'
error[E0117]: gpt2.csv has times of layers on one place; this schedule has some on all places
  hint: a schedule of stages on one place each, such as schedule=1f1b
[1]
$ { printf '\357\273\277'; grep -v '^#' gpt2.csv; } > mark.csv; heddle sim gpt2 --batch 8 --train --machine '1x4 v100' --strategy 'dp=2 tp=2 mb=2' --profiles mark.csv
error[E0117]: a byte order mark (BOM) before the first column
  --> mark.csv:1:1
   1 | layer,device,samples,tensor,forward_us,backward_us,update_us
     | ^
  hint: save the file as UTF-8 without one
[1]
$ grep -v '^#' gpt2.csv | sed '2s/,[0-9.]*,\([0-9.]*\)$/,1Q0,\1/' | tr Q '\000' > nul.csv; heddle sim gpt2 --batch 8 --train --machine '1x4 v100' --strategy 'dp=2 tp=2 mb=2' --profiles nul.csv 2>&1 | head -2 | tr -d '\000'
error[E0117]: '1' is not a time in microseconds
  --> nul.csv:2:20
## Degrees beside replicas, heads that share keys where the model has none.
$ heddle plan mlp-xs --batch 8 --train --machine '1x2 v100' --strategy 'replicas=1x1+1x1 dp=2'
error[E0509]: dp=2 does not go with replicas=1x1+1x1, which has degrees of its own
  --> --strategy:1:18
   1 | replicas=1x1+1x1 dp=2
     |                  ^
  hint: leave one of them out
[2]
$ heddle show gpt3-175b:layers=80,hidden=14848,heads=232,kv_heads=8
error[E0115]: `gpt3-175b:layers=80,hidden=14848,heads=232,kv_heads=8`: cannot use `kv_heads=8`
  note: models of kind gpt have no kv_heads
  note: gpt3-175b has layers, hidden, heads, head_dim, ffn, vocab, positions
  hint: give each field an integer above 0, such as `gpt3-175b:layers=2,hidden=256`
[1]
## A memory limit that one of the kinds cannot have.
$ heddle plan gpt2-xl --vocab 50264 --batch 32 --train --dtype f16 --optimizer adam --machine '1x2 t4 + 1x2 a100-80gb ib=100Gb/s' --memory-limit 60GiB --strategy 'dp=2 pp=2 layers=equal mb=2 zero=0 recompute=none' 2>&1 | grep -A2 '^warning'
warning[W0509]: a memory limit of 60.0 GiB is more than the 16.0 GiB of t4
model         gpt2-xl
weights       f16
## Bounds of interlaced rows, of windows, of ranks behind a slow switch; memory of what lies on all places.
$ heddle plan gpt2:vocab=200000,hidden=128,heads=4,layers=4 --seq 512 --batch 16 --train --machine '1x4 v100' --strategy 'pp=4 dp=1 tp=1 mb=1,2,4,8 schedule=interlaced' --top 100 | grep '^winner\|please report'
winner       dp=1 tp=1 pp=4 mb=2 schedule=interlaced
$ heddle plan gpt2 --dtype f16 --batch 16 --train --machine '1x4 h100 + 1x4 t4 ib=100Mb/s' --top 1 2>/dev/null | grep '^winner\|please report'
winner       dp=4 tp=1 pp=1
$ heddle plan gpt2:layers=12,hidden=1024,heads=16,vocab=1024 --seq 128 --batch 16 --train --machine '1x4 a100 + 5x4 v100 ib=10Gb/s leaf=2 oversubscription=8' --strategy 'tp=8 mb=1,2,4 pp=*' | grep '^winner\|please report'
winner       dp=1 tp=8 pp=3 mb=4
$ m='gpt2:layers=4,hidden=256,heads=8,vocab=60000 --seq 64 --batch 16 --train --machine'; s='pp=4 mb=8 schedule=interlaced'; b=$(heddle sim $m '1x4 v100' --strategy "$s" --json | grep -o '"peak_bytes": *[0-9]*' | head -1 | grep -o '[0-9]*'); heddle plan $m '1x4 v100' --strategy "dp=1 tp=1 $s" --memory-limit ${b}B | grep '^winner'
winner       dp=1 tp=1 pp=4 mb=8 schedule=interlaced
