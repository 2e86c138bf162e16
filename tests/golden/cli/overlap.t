## long: .ci/run has it without sanitizers
## Sums of gradients beside the last backward: what two nodes of 8 spend in communication is hidden, in the same memory.
$ for o in pp pp+dp; do heddle sim gpt2-xl --batch 64 --dtype f16 --train --optimizer adam --machine '2x8 a100 ib=100Gb/s' --strategy "dp=16 mb=2 overlap=$o" | grep -E '^(time|computes|communicates|beside|peak)'; done
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   677.3 ms
computes        56.9 %
communicates    43.1 %
peak memory     33.4 GiB of 72.0 GiB on rank 0
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   570.7 ms
computes        67.6 %
communicates    0.0 %
beside them     51.1 % of the time in communication, all other streams together
peak memory     33.4 GiB of 72.0 GiB on rank 0
## Updated weights are gathered as before; gradients are held until the task ends.
$ for o in pp pp+dp; do heddle sim gpt2-xl --batch 64 --dtype f16 --train --optimizer adam --machine '2x8 a100 ib=100Gb/s' --strategy "dp=16 mb=1 zero=1 overlap=$o" | grep -E '^(time|computes|communicates|beside|peak)'; done
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   636.8 ms
computes        48.9 %
communicates    51.1 %
peak memory     24.3 GiB of 72.0 GiB on rank 0
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   483.2 ms
computes        64.4 %
communicates    34.0 %
beside them     33.4 % of the time in communication, all other streams together
peak memory     24.3 GiB of 72.0 GiB on rank 0
## A pipeline: what leaves for the stage before does not wait for sums.
$ for o in pp pp+dp; do heddle sim gpt2-xl --batch 64 --dtype f16 --train --optimizer adam --machine '2x8 a100 ib=10Gb/s' --strategy "dp=8 pp=2 mb=4 v=2 schedule=interleaved overlap=$o places=1/2" | grep -E '^(time|computes|communicates|beside|peak)'; done
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   950.6 ms
computes        38.5 %
communicates    16.6 %
beside them     115.1 % of the time in communication, all other streams together
peak memory     24.9 GiB of 72.0 GiB on rank 0
warning[W0508]: wte of gpt2-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt2-xl
  hint: --vocab 50264
time per step   931.5 ms
computes        39.3 %
communicates    15.0 %
beside them     119.5 % of the time in communication, all other streams together
peak memory     24.9 GiB of 72.0 GiB on rank 0
## It computes what the model computes, in every order of tasks.
$ for s in 'dp=4 mb=2' 'dp=2 mb=1 tp=2 sp' 'dp=2 pp=2 mb=4 schedule=zb-h1' 'dp=2 pp=2 mb=4 v=2 schedule=interleaved zero=1 recompute=full' 'dp=2 pp=2 mb=4 schedule=interlaced'; do heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 16 --seq 16 --train --optimizer adam --strategy "$s overlap=pp+dp" | grep -E '^(plan|verdict)'; done
plan       dp=4 tp=1 pp=1 mb=2 overlap=pp+dp
verdict    equal: the plan computes what the model computes
plan       dp=2 tp=2 pp=1 sp overlap=pp+dp
verdict    equal: the plan computes what the model computes
plan       dp=2 tp=1 pp=2 mb=4 schedule=zb-h1 overlap=pp+dp
verdict    equal: the plan computes what the model computes
plan       dp=2 tp=1 pp=2 mb=4 v=2 schedule=interleaved zero=1 recompute=full overlap=pp+dp
verdict    equal: the plan computes what the model computes
plan       dp=2 tp=1 pp=2 mb=4 schedule=interlaced overlap=pp+dp
verdict    equal: the plan computes what the model computes
## The plan's text says so, and is read.
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'dp=2 mb=2 overlap=dp zero=0' -o p.plan | grep -E '^1|^certificate'; grep -E '^(name|sum|send)' p.plan; heddle sim gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x2 v100' --plan p.plan | grep -E '^(plan|time)'
1   2   2  none       pp+dp    1.992 ms  1.00x  4,015/s  1.70 MiB  computation 98 %
certificate  3 plans: 3 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
name: "dp=2 tp=1 pp=1 mb=2 overlap=pp+dp"
sum-stream: dp
plan            dp=2 tp=1 pp=1 mb=2 overlap=pp+dp
time per step   1.992 ms
## In each of them: all sums of a layer stand behind its backward.
$ heddle lower gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --plan p.plan --rank 0 | sed -n '/^func @stage.bwd.1/,/^}/p' | grep -E 'call|all_reduce.*!dp' | sed 's/ = call \(@[a-z.]*\).*/ = call \1/; s/.* = \([a-z_]*\) .*\(!dp\).*/\1 \2/; s/.* = call/call/' | uniq -c
      2 all_reduce !dp
      1 call @layer.bwd
     12 all_reduce !dp
      1 call @layer.bwd
     13 all_reduce !dp
## A search tries it where it is asked for; what cannot be chosen makes no points: with dp=1 what was said of `dp` is dropped, as what
## was said of `pp` is with pp=1, so the winner is the one of a search without it.
$ for o in pp pp+dp; do heddle plan gpt2:layers=4,hidden=256,heads=8,vocab=1000 --batch 8 --seq 64 --train --optimizer adam --machine "8x1 v100 ib=1Gb/s" --top 1 --strategy "overlap=$o" | grep -E '^winner|needs dp'; done
winner       dp=1 tp=2 pp=4 mb=8
winner       dp=1 tp=2 pp=4 mb=8
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'dp=1,2 tp=1 pp=2,4 mb=4 zero=0 recompute=none overlap=pp+dp,pp,dp,none' | grep -E '^[0-9]|^certificate' | cut -c1-40
1   2   2   4  pp+dp    2.288 ms  1.00x 
2   2   2   4  dp       2.331 ms  1.02x 
3   2   2   4  pp       2.410 ms  1.05x 
4   2   2   4  none     2.453 ms  1.07x 
certificate  6 plans: 4 fit, 0 too large
$ heddle plan mlp-xs --batch 8 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 overlap=pp,pp+dp'
error[E0509]: overlap=pp+dp needs training and dp > 1 (dp); no plan of this search has that
  --> --strategy:1:11
   1 | dp=1 tp=1 overlap=pp,pp+dp
     |           ^
  hint: leave out overlap
[2]
$ heddle plan mlp-xs --batch 8 --machine '1x4 v100' --strategy 'overlap=dp'
error[E0509]: overlap=dp needs training and dp > 1 (dp); no plan of this search has that
  --> --strategy:1:1
   1 | overlap=dp
     | ^
  hint: leave out overlap
[2]
$ heddle plan gpt2 --batch 64 --train --machine '2x4 v100 ib=25Gb/s' --strategy 'dp=8 tp=1 pp=1 mb=1 recompute=none zero=0,1 overlap=*' | grep -E '^ *zero|^ *ZeRO|^[0-9]|^certificate'
1   8  pp+dp    741.2 ms  1.00x  86.35/s  12.6 GiB  computation 93 %
2   8  pp       863.4 ms  1.16x  74.12/s  12.6 GiB  communication 21 %
certificate  4 plans: 2 fit, 0 too large, 0 too slow, 0 impossible, 2 equal to another;
## Refused: what has no such sums.
$ for s in 'dp=1 pp=2 overlap=dp' 'dp=2 zero=2 overlap=dp' 'dp=2 sync=ps overlap=dp' 'dp=2 pp=2 mb=4 schedule=chimera overlap=pp+dp' 'dp=2 pp=2 mb=4 schedule=pipedream overlap=dp' 'dp=2 overlap=tp' 'dp=2 pp=2 mb=2 overlap=dp channels=one'; do heddle sim gpt2 --batch 8 --train --machine '1x4 v100' --strategy "$s"; done
error[E0509]: overlap=dp needs dp > 1; got dp=1
  --> --strategy:1:11
   1 | dp=1 pp=2 overlap=dp
     |           ^
  hint: add dp=2, or leave out overlap
error[E0509]: zero=2 does not go with overlap=dp: ZeRO 2 and 3 sum gradients in the backward of every microbatch
  --> --strategy:1:6
   1 | dp=2 zero=2 overlap=dp
     |      ^
  hint: zero=1, or overlap=pp
error[E0509]: sync=ps does not go with overlap=dp: gradients go to their servers when the tasks have ended
  --> --strategy:1:6
   1 | dp=2 sync=ps overlap=dp
     |      ^
  hint: sync=allreduce, or overlap=pp
error[E0509]: schedule=chimera does not go with overlap=dp: gradients of several stages are put together, or updates stand between tasks
  --> --strategy:1:16
   1 | dp=2 pp=2 mb=4 schedule=chimera overlap=pp+dp
     |                ^
  hint: schedule=1f1b, or overlap=pp
error[E0509]: schedule=pipedream does not go with overlap=dp: gradients of several stages are put together, or updates stand between tasks
  --> --strategy:1:16
   1 | dp=2 pp=2 mb=4 schedule=pipedream overlap=dp
     |                ^
  hint: schedule=1f1b, or overlap=pp
error[E0509]: overlap: unknown value 'tp'
  --> --strategy:1:14
   1 | dp=2 overlap=tp
     |              ^
  hint: did you mean overlap=pp? It takes pp, dp, with + between them, or none
error[E0509]: channels=one needs overlap=pp; got overlap=dp
  --> --strategy:1:27
   1 | dp=2 pp=2 mb=2 overlap=dp channels=one
     |                           ^
  hint: set overlap=pp, or leave out channels
[2]
$ heddle sim gpt2 --batch 8 --machine '1x4 v100' --strategy "dp=2 overlap=dp"
error[E0509]: overlap=dp applies to training only; this is inference
  --> --strategy:1:6
   1 | dp=2 overlap=dp
     |      ^
  hint: add --train, or leave out overlap
[2]
$ heddle sim mlp-xs --batch 8 --train --machine '1x4 v100 hostmem=64GiB' --strategy "dp=2 offload=params overlap=dp"
error[E0509]: offload=params does not go with overlap=dp: what copies wait for is on the compute stream
  --> --strategy:1:6
   1 | dp=2 offload=params overlap=dp
     |      ^
  hint: offload=none, or overlap=pp
[2]
$ printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > a.csv; heddle sim mlp-xs --batch 8 --train --machine '1x4 v100' --strategy "dp=2 pp=2 mb=2 schedule=a.csv overlap=dp" | grep ^plan
plan            dp=2 tp=1 pp=2 mb=2 schedule=a.csv overlap=dp
$ sed 's/^sum-stream.*/sum-stream: [1]/' p.plan > q.plan; heddle sim gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x2 v100' --plan q.plan
error[E0501]: `sum-stream` must be a scalar
  --> q.plan:17:13
  17 | sum-stream: [1]
     |             ^
[1]
$ sed '/^train/d' p.plan > q.plan; heddle sim gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --machine '1x2 v100' --plan q.plan
error[E0511]: the plan was made for gpt2:layers=2,hidden=64,heads=4,vocab=128 with 9 instructions in main; this is gpt2:layers=2,hidden=64,heads=4,vocab=128 with 8
  --> q.plan:4:8
   4 | model: {name: "gpt2:layers=2,hidden=64,heads=4,vocab=128", instructions: 9, weights: "f32", inpu...
     |        ^
  hint: use the model and options of the command that made it: heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'dp=2 mb=2 overlap=dp zero=0' -o p.plan
[1]
$ sed 's/^sum-stream.*/sum-stream: compute/' p.plan > q.plan; heddle sim gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 8 --seq 16 --train --machine '1x2 v100' --plan q.plan
error[E0501]: `sum-stream: compute`: sums cannot run beside the backward on the stream of the backward
  --> q.plan:17:13
  17 | sum-stream: compute
     |             ^
  hint: sum-stream: dp, or leave it out: updates sum the gradients
[1]
## A search that was not told of it says so, where it can be chosen: in training with data ranks.
$ for s in '' 'dp=1' 'overlap=pp' 'zero=1'; do heddle plan mlp-xs --batch 8 --train --machine '1x2 v100' --strategy "$s" | grep 'other values'; done; heddle plan mlp-xs --batch 8 --machine '1x2 v100' | grep 'other values'
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
## Bounds of plans whose sums are hidden are not those of plans whose sums are not: none of them is broken. (The second stage has most of the work and of the sums.)
$ for o in pp+dp pp,pp+dp; do heddle plan gpt2 --batch 64 --seq 256 --train --machine '8x1 v100 ib=100Gb/s' --strategy "dp=4 tp=1 pp=2 mb=4,2 layers=1/11 recompute=none zero=0 overlap=$o" --top 4 --json | grep -E '^  "(bound_failed|simulated)"'; done
  "bound_failed": false,
  "simulated": 2,
  "bound_failed": false,
  "simulated": 4,
$ heddle plan gpt2 --batch 32 --seq 128 --train --machine '2x4 v100 ib=10Gb/s' --strategy 'dp=* tp=1 mb=1,2,4 overlap=pp,dp,pp+dp zero=0,1 recompute=none' --top 5 | sed -n '/^ *dp/,/^$/p;/certificate/,/on time/p'
   dp  pp  mb  overlap      time         samples    memory  limited by
1   4   2   2  pp+dp    217.1 ms  1.00x  147.4/s  1.26 GiB  communication 62 %
2   4   2   2  pp       222.2 ms  1.02x  144.0/s  1.26 GiB  communication 62 %
3   4   2   4  pp+dp    224.3 ms  1.03x  142.6/s  1.03 GiB  communication 60 %
4   4   2   4  pp       229.4 ms  1.06x  139.5/s  1.03 GiB  communication 60 %
5   4   2   2  dp       230.9 ms  1.06x  138.6/s  1.26 GiB  communication 68 %

certificate  54 plans: 25 fit, 0 too large, 5 too slow, 0 impossible, 24 equal to another;
             25 simulated, 0 ruled out by bounds on memory, 5 on time
## On devices of two kinds no bound takes sums beside the backward for work of the stage: the plan is simulated, and is as fast as `sim` says.
$ set -- m6-10b:layers=4,hidden=64,heads=4,vocab=96 --seq 32 --batch 8 --train --dtype f16 --machine '1x4 v100-32gb + 1x4 p100 eth=50Gb/s' --json --strategy 'dp=4 tp=1 pp=2 mb=2 v=2 schedule=zb-h1 overlap=pp+dp'; for c in plan sim; do heddle $c "$@" 2>/dev/null | grep -oE '"period_ps": [0-9]+' | head -1; done; heddle plan "$@" 2>/dev/null | grep bound_failed
"period_ps": 5466306808
"period_ps": 5466306808
  "bound_failed": false,
## ... and the winner is one, for any --top and of parts.
$ set -- m6-10b:layers=4,hidden=64,heads=4,vocab=96 --batch 16 --train --seq 128 --optimizer momentum --machine '2x2 a100 + 2x2 v100 ib=25Gb/s' --strategy 'dp=2,4 tp=1 pp=2 mb=1,2 schedule=interlaced,zb-h1 zero=0 overlap=* layers=auto'; for t in 1 2; do heddle plan "$@" --top $t --threads 1 2>/dev/null | grep -E "^winner|^cert"; done; for p in 1 2; do heddle plan "$@" --top 1 --part $p/2 -o p$p.json >/dev/null 2>&1; done; heddle merge p1.json p2.json | grep -E "^winner|^cert"
winner         dp=2 tp=1 pp=2 schedule=zb-h1 overlap=pp+dp layers=auto
certificate    192 plans: 47 fit, 0 too large, 97 too slow, 0 impossible, 48 equal to another;
winner         dp=2 tp=1 pp=2 schedule=zb-h1 overlap=pp+dp layers=auto
certificate    192 plans: 50 fit, 0 too large, 94 too slow, 0 impossible, 48 equal to another;
winner         dp=2 tp=1 pp=2 schedule=zb-h1 overlap=pp+dp layers=auto
certificate    192 plans: 47 fit, 0 too large, 97 too slow, 0 impossible, 48 equal to another;
