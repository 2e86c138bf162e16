## long: .ci/run has it without sanitizers
## What is measured: every event of the plan once.
$ heddle export mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --to profile-pytorch -o measure.py; sed -n '1,/^$/p; /^machine/p; /^events/p; /^EVENTS/,/^NOT/p' measure.py
#!/usr/bin/env python3
"""Measures what the instructions of a plan take in PyTorch.

machine  1x2 cpu-core
events   13 of computation, each on one device; 2 of communication, each among its members or as many as there are
EVENTS = [
    Event("matmul f32[4,64] f32[64,64] -> f32[4,64] on cpu-core",
          lambda a, b: a @ b),
    Event("relu f32[4,64] -> f32[4,64] on cpu-core",
          lambda a: F.relu(a)),
    Event("sub f32[4,64] f32[4,64] -> f32[4,64] on cpu-core",
          lambda a, b: a - b),
    Event("mul f32[4,64] f32[4,64] -> f32[4,64] on cpu-core",
          lambda a, b: a * a),
    Event("reduce_sum f32[4,64] -> f32[] {keepdims=0} on cpu-core",
          lambda a: a.sum((0, 1), keepdim=False)),
    Event("scale f32[] -> f32[] {alpha=0.125} on cpu-core",
          lambda a: a * 0.125),
    Event("full -> f32[] {shape=[], dtype=f32, value=1} on cpu-core",
          lambda: torch.full((), 1.0, dtype=f32, device=DEVICE)),
    Event("expand f32[1,1] -> f32[4,64] {shape=[8,64]} on cpu-core",
          lambda a: a.expand((4, 64))),
    Event("scale f32[4,64] -> f32[4,64] {alpha=2} on cpu-core",
          lambda a: a * 2.0),
    Event("relu_dx f32[4,64] f32[4,64] -> f32[4,64] on cpu-core",
          lambda a, b: torch.ops.aten.threshold_backward(a, b, 0)),
    Event('einsum f32[4,64] f32[64,64] -> f32[4,64] {law="mn,kn->mk"} on cpu-core',
          lambda a, b: torch.einsum("mn,kn->mk", a, b)),
    Event('einsum f32[4,64] f32[4,64] -> f32[64,64] {law="mk,mn->kn"} on cpu-core',
          lambda a, b: torch.einsum("mk,mn->kn", a, b)),
    Event("sgd f32[64,64] f32[64,64] -> f32[64,64] {lr=0.01, weight_decay=0} on cpu-core",
          lambda a, b: sgd(a, b, 0.01, 0.0)),
    Event("all_reduce f32 4 B among 2 on 1 node, 2 each"),
    Event("all_reduce f32 16384 B among 2 on 1 node, 2 each"),
]
NOT_MEASURED = {}
$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=33 --batch 4 --seq 8 --train --optimizer adamw --strategy 'tp=2 sp' --machine '1x2 cpu-core' --to profile-pytorch | grep -A1 -E '^PIECES|\("(gather|gather_add|shard|pick|cross_entropy_dx|split|adamw f32\[32|layernorm) ' | grep -v '^--'
    Event("gather f32[512,16] i64[8] -> f32[8,16] on cpu-core",
          lambda a, b: gather_part(a, b, 0, 1024, [(0, 2, 512)]), below=1024),
    Event("shard i64[4,8] -> i64[4,4] on cpu-core",
          lambda a: shard(a, Part(0, 2), 1)),
    Event("gather f32[33,16] i64[4,4] -> f32[4,4,16] on cpu-core",
          lambda a, b: a[b], below=33),
    Event("layernorm f32[4,4,16] f32[16] f32[16] -> f32[4,4,16] {eps=1e-05} on cpu-core",
          lambda a, b, c: F.layer_norm(a, a.shape[-1:], b, c, 1e-05)),
    Event("split f32[4,8,24] -> f32[4,8,8] f32[4,8,8] f32[4,8,8] {axis=2, sizes=[16,16,16]} on cpu-core",
          lambda a: a.split([8, 8, 8], 2)),
    Event("shard f32[33,16] -> f32[33,8] on cpu-core",
          lambda a: shard(a, Part(0, 2), 1)),
    Event("gather_add f32[4,4,16] i64[4,4] -> f32[33,16] {shape=[33,16]} on cpu-core",
          lambda a, b: gather_add(a, b, 0, (33, 16)), below=33),
    Event("gather_add f32[8,16] i64[8] -> f32[512,16] {shape=[1024,16]} on cpu-core",
          lambda a, b: gather_add(a, b, 0, (512, 16), 1024, [(0, 2, 512)]), below=1024),
    Event("shard f32[16] -> f32[8] on cpu-core",
          lambda a: shard(a, Part(0, 2), 0)),
$ heddle export examples/distir/fig2_pipeline.heddle --machine dgx-2 --to profile-pytorch | sed -n '/^EVENTS/,/^NOT/p'
EVENTS = [
    Event("matmul f32[64,256] f32[256,256] -> f32[64,256] on v100",
          lambda a, b: a @ b),
    Event("add f32[64,256] f32[256] -> f32[64,256] on v100",
          lambda a, b: a + b),
    Event("relu f32[64,256] -> f32[64,256] on v100",
          lambda a: F.relu(a)),
    Event("sub f32[64,256] f32[64,256] -> f32[64,256] on v100",
          lambda a, b: a - b),
    Event("scale f32[64,256] -> f32[64,256] {alpha=6.103515625e-05} on v100",
          lambda a: a * 6.103515625e-05),
    Event("full -> f32[1] {shape=[1], dtype=f32} on v100",
          lambda: torch.full((1,), 0.0, dtype=f32, device=DEVICE)),
    Event("gt f32[64,256] f32[1] -> bool[64,256] on v100",
          lambda a, b: a > b),
    Event("where bool[64,256] f32[64,256] f32[1] -> f32[64,256] on v100",
          lambda a, b, c: torch.where(a, b, c)),
    Event('einsum f32[64,256] f32[64,256] -> f32[256,256] {law="bi,bo->io"} on v100',
          lambda a, b: torch.einsum("bi,bo->io", a, b)),
    Event("reduce_sum f32[64,256] -> f32[256] {axes=[0], keepdims=0} on v100",
          lambda a: a.sum((0,), keepdim=False)),
    Event('einsum f32[64,256] f32[256,256] -> f32[64,256] {law="bo,io->bi"} on v100',
          lambda a, b: torch.einsum("bo,io->bi", a, b)),
    Event("sgd f32[256,256] f32[256,256] -> f32[256,256] {lr=0.1} on v100",
          lambda a, b: sgd(a, b, 0.1, 0.0)),
    Event("sgd f32[256] f32[256] -> f32[256] {lr=0.1} on v100",
          lambda a, b: sgd(a, b, 0.1, 0.0)),
    Event("send f32 65536 B among 2 on 1 node, 2 each"),
]
NOT_MEASURED = {}
## Operators that PyTorch has not, or not so, are named.
$ printf 'mesh @m [x=2]\nmain @f on @m(%%x: f32[8{x},8] input) -> (f32[8{x},8]) {\n  %%y, %%m = dropout %%x {ratio=0.5}\n  %%z = relu %%y\n  return %%z\n}\n' >odd.heddle; heddle export odd.heddle --machine '1x2 v100' --to profile-pytorch | sed -n '/^events/p; /^EVENTS/,/^}/p'
warning[W0101]: 1 of 2 events cannot be measured in PyTorch (dropout): the machine prices them
events   1 of computation, each on one device; 0 of communication, each among its members or as many as there are; 1 that PyTorch cannot do
EVENTS = [
    Event("relu f32[4,8] -> f32[4,8] on v100",
          lambda a: F.relu(a)),
]
NOT_MEASURED = {
    "dropout f32[4,8] -> f32[4,8] bool[4,8] {ratio=0.5} on v100": "dropout cannot be written in PyTorch",
}
## What cannot be exported.
$ heddle export mlp-xs --train --strategy dp=2 --to profile-pytorch
error[E0514]: mlp-xs: events are of a machine, and none is named
  hint: --machine M, as `heddle sim` has it
[1]
$ heddle export mlp-xs --machine '1x2 cpu-core' --to profile-pytorch
error[E0514]: mlp-xs runs on one device without a plan: it has no events
  hint: --train --strategy dp=1
[1]
$ heddle export mlp-xs --train --strategy dp=4 --machine '1x2 cpu-core' --to profile-pytorch
error[E0605]: rank 3 is used; the machine 1x2 cpu-core has ranks 0 to 1
  hint: plan for this machine, or use a larger one
[1]
$ heddle export mlp-xs --train --strategy dp=2 --machine '1x2 cpu-core' --to profile-torch
error[E0801]: unknown format 'profile-torch'
  hint: pytorch, profile-pytorch
[2]
$ heddle export mlp-xs --train --strategy dp=2 --machine '1x2 cpu-core' --to profile-pytorch --arrays here
error[E0801]: --arrays does not apply to --to profile-pytorch
  hint: --to pytorch
[2]
## What it has measured, and what a simulation makes of it.
$ heddle profile --import examples/profiles/mlp-torch.jsonl -o times.db
machine       1x2 cpu-core
versions      torch 1.13.0a0, gloo, threads 1
events        15
measured      15
scaled        0
not measured  0
from          examples/profiles/mlp-torch.jsonl
in            times.db
$ heddle profile mlp-xs:layers=2,hidden=64 --batch 8 --strategy 'dp=2 zero=1' --optimizer adam --machine '1x2 cpu-core' --import examples/profiles/mlp-torch.jsonl -o times.db --json
{
  "machine": "1x2 cpu-core",
  "versions": "torch 1.13.0a0, gloo, threads 1",
  "events": 15,
  "measured": 15,
  "scaled": 0,
  "failed": 0,
  "plan_events": 17,
  "left": 4,
  "from": "examples/profiles/mlp-torch.jsonl",
  "file": "times.db"
}
$ heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --profiles times.db | sed -n '/^time per/p; /^machine/p; /^cost source/,/^$/p'
machine         1x2 cpu-core, measured times from times.db
time per step   391.2 us
cost source  count      time    share  spread known
measured        23  391.2 us  100.0 %       100.0 %

## Times of a GPU, behind which launches hide or do not.
$ m='gpt2:vocab=50304 --batch 8 --seq 1024 --dtype bf16 --optimizer adam --train --attention fused'; heddle profile $m --machine '1x1 h100' --import examples/profiles/gpt2-h100.jsonl -o gpu.db | sed -n '/^events/p; /^ *without/p; /^launches/p'; heddle sim $m --machine '1x1 h100' --profiles gpu.db | grep '^time per'
events           63
  without times  0
time per step   38.20 ms
$ for launch in 1000000 5000000000; do sed "/ among /!s/}$/, \"launch_ps\": $launch}/" examples/profiles/mlp-torch.jsonl >x; heddle profile mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --import x -o launch$launch.db | sed -n '/^launches/,/^from/p'; done
launches a step  20.00 us
  on the device  92.14 us
from             x
launches a step  100.0 ms
  on the device  92.14 us
                 the device waits for launches: steps take longer than `heddle sim` says
from             x
$ for launch in -1 '"1"' 1.5; do sed "s/}$/, \"launch_ps\": $launch}/" examples/profiles/mlp-torch.jsonl | head -n 1 >x; heddle profile --import x -o none.db; done
error[E0117]: launch_ps must be whole picoseconds, 0 or more and at most 1e12; got -1
  --> x:1:229
   1 | ...", "median_ps": 2714129, "spread": 0.008766, "count": 42, "source": "measured", "launch_ps": -1}
     |                                                                                                 ^
error[E0117]: launch_ps must be a number
  --> x:1:229
   1 | ..., "median_ps": 2714129, "spread": 0.008766, "count": 42, "source": "measured", "launch_ps": "1"}
     |                                                                                                ^
error[E0117]: launch_ps must be whole picoseconds, 0 or more and at most 1e12; got 1.5
  --> x:1:229
   1 | ..., "median_ps": 2714129, "spread": 0.008766, "count": 42, "source": "measured", "launch_ps": 1.5}
     |                                                                                                ^
[1]
## A writer whose commit fails leaves the rows of before.
$ head -n 15 examples/profiles/mlp-torch.jsonl >x; heddle profile --import x -o b.db | grep '^measured'; for k in $(seq 400); do echo '{"key": "relu f32['$k'] -> f32['$k'] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch 1.13.0a0, gloo, threads 1", "median_ps": 1, "spread": 0, "count": 1, "source": "measured"}'; done >y; bash -c 'ulimit -f 20; heddle profile --import y -o b.db' 2>/dev/null >&2 || echo failed; heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --profiles b.db | grep '^time per'
measured      15
failed
time per step   391.2 us
## A writer that is killed in its commit leaves a journal: what it wrote is taken back. (Python writes a table of its own.)
$ python3 -c 'import os, sqlite3; d = sqlite3.connect("b.db", isolation_level=None); d.execute("PRAGMA cache_size=1"); d.execute("BEGIN"); d.execute("CREATE TABLE x(t)"); [d.execute("INSERT INTO x VALUES(zeroblob(5000))") for k in range(50)]; os.kill(os.getpid(), 9)' 2>/dev/null >&2 || ls b.db-journal; heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --profiles b.db | grep '^time per'; ls b.db*
b.db-journal
time per step   391.2 us
b.db
## Pieces of other sizes on other ranks: what one rank launches.
$ heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine '1x2 cpu-core' --profiles examples/profiles/mlp-torch.jsonl
error[E0117]: times of events, one a line, are not what --profiles takes
  --> examples/profiles/mlp-torch.jsonl:1:1
  hint: heddle profile --import examples/profiles/mlp-torch.jsonl -o times.db, then --profiles times.db
[1]
$ for n in 2 4 8; do m='mlp-xs:layers=2,hidden=32 --batch 8 --train'; s="dp=$((n / 2)) tp=2 tp.shares=3/1"; heddle export $m --strategy "$s" --machine "1x$n cpu-core" --to profile-pytorch | grep -o '^ *Event(["'"'"'][^@]* on cpu-core' | sed "s/^ *Event(.//; s/\"/\\\\\"/g; s/.*/{\"key\": \"&\", \"machine\": \"1x$n cpu-core\", \"versions\": \"v\", \"median_ps\": 1, \"spread\": 0, \"count\": 1, \"source\": \"measured\", \"launch_ps\": 1000000}/" >x; heddle profile $m --strategy "$s" --machine "1x$n cpu-core" --import x -o of$n.db | grep '^launches'; done
launches a step  20.00 us
launches a step  20.00 us
launches a step  20.00 us
## Keys that no event has.
$ for k in 'all_reduce f32 4096 B among 5 on 2 nodes, 2 each' 'all_reduce f32 4096 B among 3 on 2 nodes, 2 each' 'all_reduce f32 4095 B among 4 on 1 node, 4 each' 'layernorm f32[4,8] f32[8] f32[8] -> f32[4,8] {eps=1e-05, eps=2} on cpu-core'; do echo "{\"key\": \"$k\", \"machine\": \"m\", \"versions\": \"v\", \"median_ps\": 1, \"spread\": 0, \"count\": 1, \"source\": \"measured\"}" >x; heddle profile --import x -o none.db; done 2>&1 | grep error
error[E0117]: the key is not that of an event: all_reduce f32 4096 B among 5 on 2 nodes, 2 each
error[E0117]: the key is not that of an event: all_reduce f32 4096 B among 3 on 2 nodes, 2 each
error[E0117]: the key contradicts itself: 4095 bytes are no whole number of f32
error[E0117]: the key is not that of an event: layernorm f32[4,8] f32[8] f32[8] -> f32[4,8] {eps=1e-05, eps=2} on cpu-core
## Lines of events that failed are told, and are no times.
$ head -n 2 examples/profiles/mlp-torch.jsonl >x; echo '{"key": "relu f32[8] -> f32[8] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch 2.4.0", "failed": "CUDA out of memory"}' >>x; heddle profile --import x -o some.db
machine       1x2 cpu-core
versions      torch 1.13.0a0, gloo, threads 1
events        3
measured      2
scaled        0
not measured  1
from          x
in            some.db

not measured                       why
relu f32[8] -> f32[8] on cpu-core  CUDA out of memory
## Bad files. Nothing of them is in the database.
$ f=examples/profiles/mlp-torch.jsonl; head -n 3 $f | sed '2s/relu/rellu/; 3s/1077668/-5/' >x; heddle profile --import x -o none.db; test -e none.db || echo none
error[E0117]: unknown operator 'rellu' in the key
  --> x:2:9
   2 | {"key": "rellu f32[4,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torc...
     |         ^
  hint: did you mean relu?
error[E0117]: median_ps must be whole picoseconds, 0 or more; got -5
  --> x:3:148
   3 | ..."torch 1.13.0a0, gloo, threads 1", "median_ps": -5, "spread": 0.035139, "count": 48, "source": "...
     |                                                    ^
none
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"median_ps"/"medianps"/' >x; heddle profile --import x -o none.db
error[E0117]: a time has no 'medianps'
  --> x:2:1
   2 | {"key": "relu f32[4,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch...
     | ^
  hint: did you mean median_ps?
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/, "spread": [0-9.]*//' >x; heddle profile --import x -o none.db
error[E0117]: spread is missing
  --> x:2:1
   2 | {"key": "relu f32[4,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch...
     | ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"count": [0-9]*/"count": "many"/' >x; heddle profile --import x -o none.db
error[E0117]: count must be a number
  --> x:2:177
   2 | ...oo, threads 1", "median_ps": 1028877, "spread": 0.009145, "count": "many", "source": "measured"}
     |                                                                       ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"measured"/"guessed"/' >x; heddle profile --import x -o none.db
error[E0117]: source must be measured or scaled; got guessed
  --> x:2:191
   2 | ...0, gloo, threads 1", "median_ps": 1028877, "spread": 0.009145, "count": 47, "source": "guessed"}
     |                                                                                          ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"measured"/"fitted"/' >x; heddle profile --import x -o none.db
error[E0117]: source must be measured or scaled; got fitted
  --> x:2:191
   2 | ...a0, gloo, threads 1", "median_ps": 1028877, "spread": 0.009145, "count": 47, "source": "fitted"}
     |                                                                                           ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"median_ps": [0-9]*/"median_ps": 1.5/' >x; heddle profile --import x -o none.db
error[E0117]: median_ps must be whole picoseconds, 0 or more; got 1.5
  --> x:2:139
   2 | ..."torch 1.13.0a0, gloo, threads 1", "median_ps": 1.5, "spread": 0.009145, "count": 47, "source": ...
     |                                                    ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"spread": [0-9.]*/"spread": -1/' >x; heddle profile --import x -o none.db
error[E0117]: spread must be 0 or more, and below 1000000; got -1
  --> x:2:158
   2 | ...13.0a0, gloo, threads 1", "median_ps": 1028877, "spread": -1, "count": 47, "source": "measured"}
     |                                                              ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/"count": [0-9]*/"count": 0.5/' >x; heddle profile --import x -o none.db
error[E0117]: count must be a whole number of repeats, 1 or more; got 0.5
  --> x:2:177
   2 | ... gloo, threads 1", "median_ps": 1028877, "spread": 0.009145, "count": 0.5, "source": "measured"}
     |                                                                          ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/f32\[4,64\]/f32[4,64/' >x; heddle profile --import x -o none.db
error[E0117]: the key is not that of an event: relu f32[4,64 -> f32[4,64] on cpu-core
  --> x:2:9
   2 | {"key": "relu f32[4,64 -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch ...
     |         ^
  hint: the form is that of docs/profiles.md: matmul f32[8,4] f32[4,2] -> f32[8,2] on h100
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/-> f32\[4,64\]/-> f32[4,65]/' >x; heddle profile --import x -o none.db
error[E0117]: the key contradicts itself: its operands do not give these results
  --> x:2:9
   2 | {"key": "relu f32[4,64] -> f32[4,65] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch...
     |         ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/f32\[4,64\]/f32[04,64]/' >x; heddle profile --import x -o none.db
error[E0117]: the key is not written as Heddle writes it: relu f32[04,64] -> f32[4,64] on cpu-core
  --> x:2:9
   2 | {"key": "relu f32[04,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torc...
     |         ^
  hint: relu f32[4,64] -> f32[4,64] on cpu-core
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | sed '2s/1x2 cpu-core/1x4 cpu-core/' >x; heddle profile --import x -o none.db
error[E0117]: 1 of 2 times are not of the machine of the first, '1x2 cpu-core'; the first of them is of '1x4 cpu-core'
  --> x:2:63
   2 | {"key": "relu f32[4,64] -> f32[4,64] on cpu-core", "machine": "1x4 cpu-core", "versions": "torch...
     |                                                               ^
  hint: a file has the times of one machine
[1]
$ head -n 1 examples/profiles/mlp-torch.jsonl >x; heddle profile --import x --machine '1x4 cpu-core' -o none.db
error[E0117]: 1 of 1 times are not of the machine, '1x4 cpu-core'; the first of them is of '1x2 cpu-core'
  --> x:1:76
   1 | ...32[64,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch 1.13.0a0, glo...
     |                                                    ^
  hint: --machine '1x2 cpu-core', as the program that measured was exported for
[1]
$ heddle profile --import examples/profiles/mlp-torch.jsonl --machine '1x4 cpu-core' -o none.db
error[E0117]: 15 of 15 times are not of the machine, '1x4 cpu-core'; the first of them is of '1x2 cpu-core'
  --> examples/profiles/mlp-torch.jsonl:1:76
   1 | ...32[64,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": "torch 1.13.0a0, glo...
     |                                                    ^
  hint: --machine '1x2 cpu-core', as the program that measured was exported for
[1]
$ f=examples/profiles/mlp-torch.jsonl; { head -n 2 $f; head -n 1 $f; } >x; heddle profile --import x -o none.db
error[E0117]: the event is there twice: matmul f32[4,64] f32[64,64] -> f32[4,64] on cpu-core
  --> x:3:9
   3 | {"key": "matmul f32[4,64] f32[64,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "vers...
     |         ^
  note: the first time
    --> x:1:1
     1 | {"key": "matmul f32[4,64] f32[64,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "vers...
       | ^
[1]
$ head -n 2 examples/profiles/mlp-torch.jsonl | cut -c1-90 >x; heddle profile --import x -o none.db
error[E0103]: the text ends where a string is expected
  --> x:1:91
   1 | {"key": "matmul f32[4,64] f32[64,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core",
     |                                                                                           ^
error[E0103]: the text ends where a value is expected
  --> x:2:91
   2 | {"key": "relu f32[4,64] -> f32[4,64] on cpu-core", "machine": "1x2 cpu-core", "versions": 
     |                                                                                           ^
[1]
$ echo '[1]' >x; heddle profile --import x -o none.db
error[E0117]: a line is not an object
  --> x:1:1
   1 | [1]
     | ^
  hint: {"key": .., "machine": .., "versions": .., "median_ps": .., ..}
[1]
$ : >x; heddle profile --import x -o none.db
error[E0117]: the file has no times
  --> x
  hint: heddle export MODEL --plan best.plan --machine M --to profile-pytorch writes the program that measures them
[1]
$ heddle profile --import no-such-file -o none.db
error[E0101]: cannot read 'no-such-file': No such file or directory
[1]
$ heddle profile mlp-xs --import examples/profiles/mlp-torch.jsonl
error[E0801]: --import of a plan's times needs --machine
  hint: add --machine, as the program was exported for
[2]
$ heddle profile
error[E0801]: `heddle profile` needs MODEL
  hint: heddle profile MODEL --plan best.plan, or --import FILE
[2]
