## long: .ci/run has it without sanitizers
## Asynchronous pipelines: updates between tasks, several versions of weights.
$ heddle schedule pipedream --pp 3 --mb 6
# updates 1
0F0,0F1,0F2,0B0,0F3v1,0B1,0F4v2,0B2,0F5,0B3v1,0B4v2,0B5
1F0,1F1,1B0,1F2v1,1B1,1F3,1B2v1,1F4v1,1B3,1F5,1B4v1,1B5
2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,2F4,2B4,2F5,2B5
$ heddle schedule 2bw --pp 3 --mb 9 --picture
schedule      2bw
places        3
stages        3
microbatches  9
time          33, where a forward of a stage takes 1 and a backward 2

place 0  012....aA3bB4cC5dD6eE7fF8gG.hH.iI
place 1  .01..aA2bB3cC4dD5eE6fF7gG8hH.iI..
place 2  ..0aA1bB2cC3dD4eE5fF6gG7hH8iI....

place  stages  tasks  idle  bubble  activations
    0  0          18     6  18.2 %            3
    1  1          18     6  18.2 %            2
    2  2          18     6  18.2 %            1
$ heddle schedule 2bw --pp 3 --mb 8
error[E0501]: pipedream-2bw: 8 microbatches are not divisible by group=3, those of an update
  hint: mb=9
[1]
$ heddle schedule 2bw --pp 3 --mb 8 --group 2
error[E0501]: pipedream-2bw: an update of 2 microbatches comes too late for 3 places
  hint: group=3
[1]
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --train --optimizer adam --strategy "dp=2 pp=2 mb=8 schedule=pipedream" | grep -e ^plan -e ^verdict
plan       dp=2 tp=1 pp=2 mb=8 schedule=pipedream
verdict    equal: the plan computes what one device does with the same staleness
$ heddle verify mlp-xs:layers=4,hidden=32 --batch 16 --train --strategy "pp=2 mb=8 schedule=2bw group=4 zero=0" | grep -e ^plan -e ^verdict
plan       dp=1 tp=1 pp=2 mb=8 schedule=pipedream-2bw group=4
verdict    equal: the plan computes what one device does with the same staleness
$ heddle sim mlp-xs --batch 16 --train --optimizer adam --machine dgx-2 --strategy "pp=4 mb=16 schedule=pipedream" | sed -n -e '/^time/p' -e '/^one step/p' -e '/^ranks  para/,/^$/p'
time per step   2.344 ms
one step alone  2.593 ms
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0        5.00 MiB   2.00 MiB   4.00 MiB     38.0 KiB   6.00 KiB            0 B  11.0 MiB
1        6.00 MiB   2.00 MiB   4.00 MiB     10.0 KiB   4.00 KiB            0 B  12.0 MiB
2        4.00 MiB   2.00 MiB   4.00 MiB     6.00 KiB   2.00 KiB            0 B  10.0 MiB
3        2.00 MiB   2.00 MiB   4.00 MiB     34.0 KiB   12.0 KiB            0 B  8.04 MiB

$ heddle sim mlp-xs --batch 16 --train --optimizer adam --machine dgx-2 --strategy "pp=4 mb=16 schedule=2bw" | sed -n -e '/^time/p' -e '/^one step/p' -e '/^ranks  para/,/^$/p'
time per step   2.426 ms
one step alone  2.722 ms
ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0        3.00 MiB   2.00 MiB   4.00 MiB     40.0 KiB   1.01 MiB            0 B  10.0 MiB
1        4.00 MiB   2.00 MiB   4.00 MiB     12.0 KiB   1.01 MiB            0 B  11.0 MiB
2        4.00 MiB   2.00 MiB   4.00 MiB     8.00 KiB   1.01 MiB            0 B  11.0 MiB
3        4.00 MiB   2.00 MiB   4.00 MiB     36.0 KiB   1.01 MiB            0 B  11.0 MiB

## A weight that the first and the last stage read: both have its versions.
$ heddle sim gpt2:layers=4 --seq 64 --batch 8 --train --machine dgx-2 --strategy "pp=4 mb=8 schedule=pipedream" | sed -n -e '/^time/p' -e '/^one step/p' -e '/^ranks  para/,/^$/p'
time per step   33.00 ms
one step alone  33.00 ms
ranks  parameters  gradients  optimizer  activations  temporary  communication     peak
0         258 MiB    177 MiB        0 B     9.57 MiB        0 B            0 B  445 MiB
1        81.0 MiB   27.0 MiB        0 B     6.56 MiB        0 B            0 B  115 MiB
2         108 MiB   54.1 MiB        0 B     6.75 MiB        0 B            0 B  169 MiB
3         442 MiB    294 MiB        0 B     12.5 MiB   3.50 KiB            0 B  749 MiB

$ heddle verify gpt2:layers=4,hidden=32,heads=4,vocab=64 --seq 16 --batch 16 --train --optimizer adam --strategy "dp=2 pp=4 mb=8 schedule=pipedream" | grep -e ^plan -e ^verdict
plan       dp=2 tp=1 pp=4 mb=8 schedule=pipedream
verdict    equal: the plan computes what one device does with the same staleness
$ heddle verify bert-base:layers=4,hidden=32,heads=4,vocab=64 --seq 16 --batch 16 --train --strategy "pp=2 mb=8 tp=2 tp.stages=2/1 schedule=2bw" | grep -e ^plan -e ^verdict
plan       dp=1 tp=2 pp=2 mb=8 schedule=pipedream-2bw tp.stages=2/1
verdict    equal: the plan computes what one device does with the same staleness
## As text and back.
$ heddle schedule pipedream --pp 3 --mb 6 >pd.csv; heddle schedule 2bw --pp 2 --mb 8 --group 4 >2bw.csv; head -n 1 pd.csv 2bw.csv
==> pd.csv <==
# updates 1

==> 2bw.csv <==
# updates 4
$ heddle verify gpt2:layers=3,hidden=32,heads=4,vocab=64 --seq 16 --batch 6 --train --strategy "pp=3 mb=6 schedule=pd.csv" | grep -e ^plan -e ^verdict
plan       dp=1 tp=1 pp=3 mb=6 schedule=pd.csv
verdict    equal: the plan computes what one device does with the same staleness
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "pp=2 mb=8 schedule=2bw.csv" | grep -e ^plan -e ^schedule -e ^time -e '^one step'
plan            dp=1 tp=1 pp=2 mb=8 schedule=2bw.csv
schedule        pipedream-2bw
time per step   2.021 ms
one step alone  2.173 ms
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "pp=2 mb=8 schedule=2bw group=4" | grep -e ^plan -e ^schedule -e ^time -e '^one step'
plan            dp=1 tp=1 pp=2 mb=8 schedule=pipedream-2bw group=4
schedule        pipedream-2bw
time per step   2.021 ms
one step alone  2.173 ms
$ sed 's/1B2v1/1B2/' pd.csv >wrong.csv; heddle sim mlp-xs --batch 6 --train --machine dgx-2 --strategy "pp=3 mb=6 schedule=wrong.csv"
error[E0501]: task 1B2 of place 1 reads version 0 of weights, but its forward, 1F2v1, version 1
  --> wrong.csv:3:27
   3 | 1F0,1F1,1B0,1F2v1,1B1,1F3,1B2,1F4v1,1B3,1F5,1B4v1,1B5
     |                           ^
[1]
$ sed 's/1F2v1/1F2/;s/1B2v1/1B2/' pd.csv >other.csv; heddle sim mlp-xs --batch 6 --train --machine dgx-2 --strategy "pp=3 mb=6 schedule=other.csv"
error[E0501]: other.csv updates weights after every 1 microbatch, and is not pipedream: place 1 runs 1F2 as its task 4, not 1F2v1
  --> --strategy:1:11
   1 | pp=3 mb=6 schedule=other.csv
     |           ^
  hint: schedule=pipedream
[1]
$ sed 1d pd.csv >silent.csv; heddle sim mlp-xs --batch 6 --train --machine dgx-2 --strategy "pp=3 mb=6 schedule=silent.csv"
error[E0501]: task 0F3v1 of place 0 reads another version of weights, but nothing says when they are updated
  --> silent.csv:1:17
   1 | 0F0,0F1,0F2,0B0,0F3v1,0B1,0F4v2,0B2,0F5,0B3v1,0B4v2,0B5
     |                 ^
  hint: a first line such as `# updates 1`: after so many microbatches
[1]
$ heddle schedule silent.csv
error[E0501]: task 0F3v1 of place 0 reads another version of weights, but nothing says when they are updated
  --> silent.csv:1:17
   1 | 0F0,0F1,0F2,0B0,0F3v1,0B1,0F4v2,0B2,0F5,0B3v1,0B4v2,0B5
     |                 ^
  hint: a first line such as `# updates 1`: after so many microbatches
[1]
$ sed 's/1B1,1F3,1B2v1/1B1,1F3,1B2/' pd.csv >two.csv; heddle schedule two.csv
error[E0501]: task 1B2 of place 1 reads version 0 of weights, but its forward, 1F2v1, version 1
  --> two.csv:3:27
   3 | 1F0,1F1,1B0,1F2v1,1B1,1F3,1B2,1F4v1,1B3,1F5,1B4v1,1B5
     |                           ^
[1]
$ printf '0F0,0F1v1,0B0,0B1\n1F0,1B0v3,1F1,1B1\n' >contradicts.csv; heddle schedule contradicts.csv
error[E0501]: task 0F1v1 of place 0 reads another version of weights, but nothing says when they are updated
  --> contradicts.csv:1:5
   1 | 0F0,0F1v1,0B0,0B1
     |     ^
  hint: a first line such as `# updates 1`: after so many microbatches
[1]
$ sed 's/# updates/# updatIes/' pd.csv >typo.csv; heddle schedule typo.csv
warning[W0101]: '# updatIes 1' is taken for a comment
  --> typo.csv:1:1
   1 | # updatIes 1
     | ^
  hint: did you mean `# updates 1`?
error[E0501]: task 0F3v1 of place 0 reads another version of weights, but nothing says when they are updated
  --> typo.csv:2:17
   2 | 0F0,0F1,0F2,0B0,0F3v1,0B1,0F4v2,0B2,0F5,0B3v1,0B4v2,0B5
     |                 ^
  hint: a first line such as `# updates 1`: after so many microbatches
[1]
$ printf '#edges 0-1\n# edited 3 times\n# of 2 places\n0F0,0B0\n1F0,1B0\n' >close.csv; heddle schedule close.csv | head -1
warning[W0101]: '#edges 0-1' is taken for a comment
  --> close.csv:1:1
   1 | #edges 0-1
     | ^
  hint: did you mean `# edges 0-1`?
schedule      close.csv
$ sed 's/updates 1/updates/' pd.csv >bare.csv; heddle schedule bare.csv
error[E0501]: updates come after a number of microbatches: 4
  --> bare.csv:1:10
   1 | # updates
     |          ^
[1]
$ sed 's/updates 1/updates none/' pd.csv >bad.csv; heddle schedule bad.csv
error[E0501]: updates come after a number of microbatches: 4
  --> bad.csv:1:11
   1 | # updates none
     |           ^
[1]
$ heddle sim mlp-xs --batch 12 --train --machine dgx-2 --strategy "dp=2 pp=3 mb=6 zero=3 schedule=pd.csv"
error[E0509]: zero=3 does not go with pd.csv: each update needs the whole gradient of its microbatches, and tasks whole versions
  hint: zero=1, or schedule=1f1b
[2]
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "dp=2 pp=2 mb=4 zero=2 schedule=2bw"
error[E0509]: zero=2 does not go with schedule=pipedream-2bw: each update needs the whole gradient of its microbatches, and tasks whole versions
  --> --strategy:1:16
   1 | dp=2 pp=2 mb=4 zero=2 schedule=2bw
     |                ^
  hint: zero=1, or schedule=1f1b
[2]
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "dp=2 pp=2 mb=4 sync=ps schedule=2bw"
error[E0509]: sync=ps does not go with schedule=pipedream-2bw: servers are asked when a step's tasks have ended
  --> --strategy:1:16
   1 | dp=2 pp=2 mb=4 sync=ps schedule=2bw
     |                ^
  hint: sync=allreduce, or schedule=1f1b
[2]
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "replicas=2x1+1x1 mb=4 schedule=2bw"
error[E0509]: replicas=2x1+1x1 does not go with schedule=pipedream-2bw: replicas would have to update at the same times
  --> --strategy:1:1
   1 | replicas=2x1+1x1 mb=4 schedule=2bw
     | ^
  hint: replicas=none, or schedule=1f1b
[2]
$ heddle sim mlp-xs --batch 16 --train --machine dgx-2 --strategy "pp=2 mb=4 overlap=none buffers=rendezvous schedule=pipedream"
error[E0509]: buffers=rendezvous does not go with schedule=pipedream: an update would wait for what was sent to be taken
  --> --strategy:1:24
   1 | pp=2 mb=4 overlap=none buffers=rendezvous schedule=pipedream
     |                        ^
  hint: buffers=unbounded, or schedule=1f1b
[2]
$ heddle plan mlp-xs --batch 16 --train --machine dgx-2 --devices 4 --strategy "pp=4 dp=1 tp=1 mb=16 recompute=none schedule=*" --top 3 | grep -c pipedream
0
[1]
$ heddle plan mlp-xs --batch 16 --train --machine dgx-2 --devices 4 --strategy "pp=4 dp=1 tp=1 mb=16 recompute=none schedule=1f1b,pipedream,2bw" | grep -e pipedream -e 1f1b -e asynchronous
1   4  16  pipedream      2.153 ms  1.00x  7,432/s  8.01 MiB  bubble 27 %
2   4  16  pipedream-2bw  2.378 ms  1.10x  6,727/s  7.05 MiB  bubble 33 %
3   4  16  1f1b           2.505 ms  1.16x  6,388/s  5.05 MiB  bubble 35 %
schedule=pipedream          1  dp=1 tp=1 pp=4 mb=16 schedule=pipedream      2.153 ms  1.00x
schedule=pipedream-2bw      1  dp=1 tp=1 pp=4 mb=16 schedule=pipedream-2bw  2.378 ms  1.10x
schedule=1f1b               1  dp=1 tp=1 pp=4 mb=16                         2.505 ms  1.16x
winner       dp=1 tp=1 pp=4 mb=16 schedule=pipedream
             asynchronous: weights are updated between tasks, so it computes something else than the others
next         dp=1 tp=1 pp=4 mb=16 schedule=pipedream-2bw
$ heddle sim mlp-xs --batch 16 --machine dgx-2 --strategy "pp=2 mb=4 schedule=pipedream"
error[E0509]: schedule=pipedream updates weights; this is inference
  --> --strategy:1:11
   1 | pp=2 mb=4 schedule=pipedream
     |           ^
  hint: add --train, or schedule=1f1b
[2]
$ heddle plan mlp-xs --batch 8 --train --machine dgx-2 --devices 2 --strategy "pp=2 dp=1 tp=1 mb=4 recompute=none schedule=pipedream" -o plan.yaml >plan.txt && grep -A 3 ^schedule plan.yaml && heddle verify mlp-xs --batch 8 --train --plan plan.yaml | grep ^verdict
schedule: pipedream
order:
  - "F0.0*2 (B0.0 F0.2)*2 B0.2*2"
  - "(F1.0 B1.0)*4"
verdict    equal: the plan computes what one device does with the same staleness
$ sed 's/(F1.0 B1.0)\*4/F1.0 F1.1 B1.0 B1.1 (F1.2 B1.2)*2/' plan.yaml >other.yaml; heddle verify mlp-xs --batch 8 --train --plan other.yaml
error[E0501]: the order is not that of schedule pipedream, which says when weights are updated: place 1 runs F1.1 as its task 2, not B1.0
  --> other.yaml:21:5
  21 |   - "F1.0 F1.1 B1.0 B1.1 (F1.2 B1.2)*2"
     |     ^
  hint: leave out `schedule` to update them when all tasks have ended
[1]
## Adam corrects its moments by the number of the update: a call says which of its step it is, a program of PyTorch too.
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --train --optimizer adam --strategy "pp=2 mb=4 schedule=2bw" --rank 1 | grep -o -e 'call @update(.*update ' -e '= adam .*'
= adam !%1, %2, !%3, !%4 {eps=1e-08, lr=0.001, beta1=0.9, beta2=0.999, weight_decay=0} update : f32[8,8], f32[8,8], f32[8,8]
call @update(!%h.1.w, !%25, !%h.1.w.m, !%h.1.w.v) {update=1} update 
call @update(!%27, !%48, !%h.1.w.m.new, !%h.1.w.v.new) {update=2} update 
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --train --optimizer adam --strategy "pp=2 mb=4" --rank 1 | grep -o 'call @update(.*update '
call @update(!%h.1.w, !%38, !%h.1.w.m, !%h.1.w.v) update 
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --optimizer adamw --strategy "pp=2 mb=4 schedule=2bw" | grep -e UPDATES -e begin_update -e FIRST -e STEP
UPDATES = 2  # of every weight in a step
STEP = 1  # update of Adam's corrections: as in the program, until main counts
FIRST = 1  # update of the step
    begin_update(1)
    begin_update(2)
    begin_update(1)
    begin_update(2)
def begin_update(k):
    global STEP
    STEP = FIRST + k - 1
    step = torch.full((), STEP, dtype=torch.float32, device=x.device)
    root = (v / (1 - beta2**STEP)).sqrt_().add_(eps)
    return torch.addcdiv(x, m, root, value=-lr / (1 - beta1**STEP)).to(w.dtype), m, v
    global STEP, FIRST
        STEP = FIRST = 1 if args.fixed_step else k * UPDATES + 1
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --strategy "pp=2 mb=4 schedule=2bw" | grep -c begin_update
0
[1]
## A first stage that only chooses rows by a weight has no backward, which would hold it up until the second has updated that weight.
$ heddle verify tests/chooses.heddle --train --strategy "pp=2 mb=4 schedule=pipedream"
error[E0501]: schedule pipedream: stages 0 and 1 both read w, and stage 0 has no backward: it would run ahead of the updates
  --> tests/chooses.heddle:14:8
  14 |   %5 = call @pick(%x, %w)
     |        ^
  hint: use schedule=1f1b, or cuts that put both into one stage
[1]
$ heddle verify tests/chooses.heddle --train --strategy "pp=2 mb=4" | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle verify tests/chooses.heddle --train --strategy "pp=2 mb=4 schedule=pipedream layers=2/0" | grep verdict
verdict    equal: the plan computes what one device does with the same staleness
