## needs MPI, long: .ci/run has it without sanitizers
## Times of events. What was measured is masked.
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=2' -o times.db | sed -E 's/^(versions|time) .*/\1 ~/'
machine          1x2 cpu-core
versions ~
distinct events  15
known before     0
measured now     15
time ~
in               times.db
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=2' -o times.db --json | grep -vE '"(versions|time_ps)"'
{
  "machine": "1x2 cpu-core",
  "events": 15,
  "known": 15,
  "measured": 0,
  "scaled": 0,
  "left": 0,
  "file": "times.db"
}
## Other plans share events: only what is new is measured.
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=2 zero=2' --machine '1x2 cpu-core' -o times.db | grep -E 'events|before'
distinct events  19
known before     13
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=2' --machine '1x2 cpu-core' --profiles times.db | grep -E '^(machine|measured  )' | sed -E 's/ +[0-9.]+ [um]?s.*/ ~/'
machine         1x2 cpu-core, measured times from times.db
measured        23 ~
## Not of another machine.
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=2' --machine '1x4 v100' --profiles times.db
error[E0117]: no measured times of the machine '1x4 v100'
  --> times.db
  hint: it has times of '1x2 cpu-core'
[1]
## It is a database: a damaged one says so, one of something else too.
$ head -c 5000 times.db >half.db; heddle sim mlp-xs --train --strategy 'dp=2' --machine '1x2 cpu-core' --profiles half.db
error[E0117]: the database of measured times is cut short: 5000 of 12288 bytes
  --> half.db
  hint: rm half.db; `heddle profile` measures anew
[1]
$ (head -c 100 times.db; head -c 30000 /dev/zero) >zero.db; heddle sim mlp-xs --train --strategy 'dp=2' --machine '1x2 cpu-core' --profiles zero.db
error[E0117]: the database of measured times is damaged: database disk image is malformed
  --> zero.db
  hint: rm zero.db; `heddle profile` measures anew
[1]
$ printf x >one.db; heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=1' -o one.db; cat one.db; echo
error[E0117]: the file is no database of measured times
  --> one.db
  hint: name another one; `heddle profile ... -o FILE.db` makes it
x
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=1' -o examples/profiles/gpt2.csv
error[E0117]: the file is no database of measured times
  --> examples/profiles/gpt2.csv
  hint: name another one; `heddle profile ... -o FILE.db` makes it
[1]
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=1' -o no/such/folder/times.db
error[E0102]: cannot write 'no/such/folder/times.db': No such file or directory
  hint: mkdir -p no/such/folder
[1]
$ heddle profile gpt2 --batch 8 --strategy 'dp=3'
error[E0502]: batch 8 is not divisible by dp=3
  --> gpt2
  hint: choose a batch that is a multiple of 3, or dp.shares=3/3/2
[1]
$ heddle profile gpt2 --batch 8 --profiles times.db
error[E0801]: --profiles needs --machine
  hint: add --machine, as `heddle sim` has it
[2]
## Sizes that nobody has measured, from those that somebody has. Two sizes of a kind are too few.
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --strategy 'dp=2' -o times.db --fit | grep -E '^(kinds|of too)'
kinds fitted      0
of too few sizes  17
$ for n in 4 16 32 64 128; do heddle profile mlp-xs:layers=2,hidden=$n --batch 8 --strategy 'dp=1' --machine '1x2 cpu-core' -o times.db >/dev/null || exit; done; heddle profile mlp-xs:layers=2,hidden=24 --batch 8 --strategy 'dp=1' --machine '1x2 cpu-core' -o times.db --fit | sed -nE 's/^held-out error .*/held-out error ~/p; /^(matmul|relu) /s/ f32 on cpu-core  +[0-9]+( +[0-9.]+ %){3}$/ ~/p' | sort
held-out error ~
matmul ~
relu ~
$ heddle profile mlp-xs:layers=2,hidden=24 --batch 8 --strategy 'dp=1' --machine '1x2 cpu-core' -o times.db --fit --json | grep -oE '"((fitted|thin)_kinds": .*|kind": "(matmul|relu) [^:]*)' | sort
"fitted_kinds": 11,
"kind": "matmul f32 on cpu-core", "count"
"kind": "relu f32 on cpu-core", "count"
"thin_kinds": 6,
$ heddle sim mlp-xs:layers=2,hidden=48 --batch 8 --train --strategy 'dp=1' --machine '1x2 cpu-core' --profiles times.db --json | grep -oE '"fitted: (matmul|relu) [^"]*"' | sort
"fitted: matmul f32 on cpu-core"
"fitted: relu f32 on cpu-core"
## This machine: a file that is a machine.
$ heddle machines probe -o here.yaml && heddle machines here.yaml | sed -E 's/^machine .*/machine ~/; s/^about .*/about ~/' | grep -E '~|^device '
machine ~
about ~
device  count    memory    usable  bandwidth           f16          bf16           f32           f64
$ heddle machines probe --json -o again.yaml | grep -oE '"(output|device)": "[^"]*"'; heddle machines probe --json | grep -oE '"(output|device)": "[^"]*"'; grep -c '# measured: ' again.yaml
"output": "again.yaml"
"device": "core"
"device": "core"
13
$ grep -c '# measured: ' here.yaml
13
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=1' --machine here.yaml | grep -c 'time per step'
1
$ heddle machines dgx-2 --launcher mpirun
error[E0801]: --launcher applies to `heddle machines probe` only
  hint: leave it out, or heddle machines probe
[2]
## The best plans of a search, run and ranked again by what they took. The plan that is written is the fastest of them.
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --measure 2 -o measured.plan >ranked.txt; sed -nE '/^measured plans/,/^$/s/ +[0-9.]+ [mu]?s +[0-9.]+ [mu]?s +[-+]?[0-9.,]+ % +/ ~ /p' ranked.txt | sort; grep -c '^heddle-plan' measured.plan
dp=1 tp=1 pp=2 ~ 2
dp=1 tp=2 pp=1 ~ 1
1
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --measure 2 --json | sed -nE 's/.*"predicted_rank": ([0-9]+).*/\1/p' | sort
1
2
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --machine '1x2 cpu-core' --measure 2
error[E0801]: --measure runs training steps
  hint: add --train
[2]
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --measure 2 -o -
error[E0801]: --measure prints what it has measured: the plan cannot go to standard output
  hint: -o best.plan
[2]
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --measure 2 --auto
error[E0801]: --measure does not go with --auto
  hint: leave out one of them
[2]
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --measure 0
error[E0801]: --measure must be an integer, 1 or more; got '0'
[2]
## a device that is one core of a processor: its rank computes with one thread, however many cores there are
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=1 --machine '1x2 cpu-core' --steps 1 --json | grep -o '"threads": [0-9]*'
"threads": 1
## the events of several plans in one job: of the best ones of a search, until all of the best are known
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=1 tp=1 pp=1' --machine '1x2 cpu-core' -o top.db >/dev/null; cp top.db one.db; heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=2 tp=1 pp=1 mb=1 zero=0 recompute=none' --machine '1x2 cpu-core' --profiles top.db >/dev/null
warning[W0603]: 12 of the 15 distinct events of the best plan were not measured
  hint: heddle profile MODEL --train --machine FILE --top 10 -o top.db measures the best plans, and searches again, until all are
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --top 3 -o top.db | grep -cE '^(plans|searches) '
2
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --top 3 --profiles top.db 2>&1 | grep -c 'not measured'
0
[1]
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --train --machine '1x2 cpu-core' --top 3 -o top.db --json | grep -E '"(searches|measured)"'
  "searches": 1,
  "measured": 0,
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy 'dp=1,2 tp=*' --machine '1x2 cpu-core' --top 99 -o top.db --json | grep -E '"(plans|searches)"'
  "plans": 34,
  "searches": 1,
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --top 3
error[E0801]: --top needs --machine
  hint: --machine here.yaml
[2]
$ heddle profile mlp-xs:layers=2,hidden=16 --batch 8 --top 3 --plan best.plan --machine '1x2 cpu-core'
error[E0801]: --top searches: it does not go with --plan
  hint: leave out one of them
[2]
## a database of another model
$ heddle sim gpt2:layers=1,hidden=24,heads=2,vocab=32 --batch 5 --seq 7 --train --strategy dp=1 --machine '1x2 cpu-core' --profiles one.db >/dev/null
warning[W0603]: 61 of the 62 distinct events of the program are not in one.db
