## Uneven pieces are priced by size. Members are alike where all values say so; then by their largest piece: 4 and 3 rows over tp.
$ printf 'mesh @m [tp=4, dp=2]\nfunc @main(%%x: f32[11{tp:0-1|1-3|3-7|7-11},1000000{dp}] @m, %%y: f32[9{tp:0-3|3-5|5-6|6-9},1000000{dp}] @m) -> (f32[11{tp:0-1|1-3|3-7|7-11},1000000] @m, f32[9{tp:0-3|3-5|5-6|6-9},1000000] @m) {\n  %%a, %%b = all_gather %%x, %%y over dp @m\n  return %%a, %%b\n}\n' > two.heddle; for f in '' --flat; do heddle sim two.heddle --machine '1x8 v100' $f | grep '^time'; done
time per step  138.6 us
time per step  138.6 us
## Of 20 sizes each has its own price.
$ printf 'mesh @m [tp=20]\nfunc @main(%%x: f32[210{tp:0-1|1-3|3-6|6-10|10-15|15-21|21-28|28-36|36-45|45-55|55-66|66-78|78-91|91-105|105-120|120-136|136-153|153-171|171-190|190-210},100000] @m) -> (f32[210{tp:0-1|1-3|3-6|6-10|10-15|15-21|21-28|28-36|36-45|45-55|55-66|66-78|78-91|91-105|105-120|120-136|136-153|153-171|171-190|190-210},100000] @m) {\n  %%y = gelu %%x @m\n  return %%y\n}\n' > many.heddle; for f in '' --flat; do heddle sim many.heddle --machine '3x8 v100 ib=100Gb/s' $f | grep '^time'; done
time per step  28.95 us
time per step  28.95 us
## Microbatches of different size have their own prices.
$ printf 'mesh @m [d=1]\ntime [mb=2]\nfunc @main(%%x: f32[70000,400] @m) -> (f32[70000,400] @m) {\n  %%p = part %%x {at=0} over mb @m : f32[70000{mb:0-60000|60000-70000},400]\n  %%q = part %%x {at=1} over mb @m : f32[70000{mb:0-60000|60000-70000},400]\n  %%a = gelu %%p @m @mb=0\n  %%b = gelu %%q @m @mb=1\n  %%c = join %%a, %%b over mb @m : f32[70000,400]\n  return %%c\n}\n' > time.heddle; heddle sim time.heddle --machine '1x8 v100' | grep '^time'
time per step  308.4 us
## A group that has some coordinates of an axis has as many pieces.
$ printf 'mesh @m [pp=400]\nfunc @f(%%x: f32[7{pp:0-5|5-7},4]) -> (f32[7{pp:0-5|5-7},4]) {\n  %%y = gelu %%x\n  return %%y\n}\nfunc @main(%%x: f32[7{pp:0-5|5-7},4] @m[pp={0,3}]) -> (f32[7{pp:0-5|5-7},4] @m[pp={0,3}]) {\n  %%a = call @f(%%x) @m[pp={0,3}]\n  return %%a\n}\n' > sub.heddle; heddle sim sub.heddle --machine '50x8 v100 ib=100Gb/s' | grep '^time'
time per step  5.001 us
## A vocabulary that no degree divides, heads by shares, replicas with unlike shares, pieces sent one by one, copies in steps.
$ heddle sim gpt2 --seq 128 --batch 24 --train --optimizer adam --machine '1x6 v100 + 1x3 a100 ib=1Gb/s' --strategy 'replicas=3x2+1x3 mb=6 dp.shares=2/1 layers=equal' | grep '^time'
time per step   11.39 s
$ heddle sim gpt2 --seq 128 --batch 16 --train --optimizer adam --machine '2x4 v100 ib=10Gb/s' --strategy 'dp=4 tp=2 mb=2 zero=3 materialise=p2p' | grep '^time\|^communicates'
time per step   2.919 s
communicates    98.8 %
$ printf 'devices:\n  d: {like: v100}\nnodes:\n  - {count: 1, devices: 2 d, link: switch 300 GB/s, host: {bandwidth: 32 GB/s, step: 50 us, memory: 512 GiB}}\n' > host.yaml; heddle sim gpt2:layers=4 --seq 128 --batch 8 --train --machine host.yaml --strategy 'dp=2 offload=acts' | grep '^time'
time per step   26.00 ms
