## long: .ci/run has it without sanitizers
## The parts of a search, merged, are the search.
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 --part 1/2 -o part1.json
model    mlp-xs
machine  laptop
space    447 plans; 240 are left to look at, the others impossible, too large or equal to another
part     1 of 2 has 120 of the 240: 3 simulated, 117 ruled out by bounds on time
best     dp=2 tp=2 pp=1 mb=2, 53.58 ms
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 --part 2/2 -o part2.json --threads 1
model    mlp-xs
machine  laptop
space    447 plans; 240 are left to look at, the others impossible, too large or equal to another
part     2 of 2 has 120 of the 240: 3 simulated, 117 ruled out by bounds on time
best     dp=4 tp=1 pp=1 zero=2, 48.69 ms
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 > whole.txt; heddle merge part2.json part1.json | diff whole.txt -
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 --json > whole.json; heddle merge part1.json part2.json --json | diff whole.json -
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 1 > whole.txt; heddle merge part1.json part2.json --top 1 | diff whole.txt -
$ heddle merge part1.json part2.json
model         mlp-xs
weights       f32
machine       laptop
ranks         4
batch         1,024
memory limit  3.60 GiB
step          training

   dp  ZeRO      time          samples    memory  limited by
1   4     2  48.69 ms  1.00x  21,033/s  16.5 MiB  computation 94 %
2   4     3  49.28 ms  1.01x  20,780/s  10.5 MiB  computation 92 %
3   4     0  49.43 ms  1.02x  20,715/s  17.5 MiB  computation 95 %

winner       dp=4 tp=1 pp=1 zero=2
             computes 93.6 % of the time, communicates 6.4 %, idles 0.0 %; MFU 66.1 %; needs 16.5 MiB of 3.60 GiB
next         dp=4 tp=1 pp=1 zero=3
             1.01x the time, limited by computation
certificate  447 plans: 3 fit, 0 too large, 237 too slow, 0 impossible, 207 equal to another;
             3 simulated, 0 ruled out by bounds on memory, 237 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 --part 2/2 -o - | cmp - part2.json
$ heddle plan mlp-xs:layers=3 --batch 8 --train --machine '1x2 v100' --strategy 'mb=1,3 zero=*' --optimizer adam --memory-limit 9MB --part 1/1 -o one.json --json
{
  "model": "mlp-xs:layers=3",
  "machine": "1x2 v100",
  "part": 1,
  "parts": 1,
  "space": 36,
  "left": 8,
  "dealt": 8,
  "simulated": 8,
  "ruled_out_by_time": 0
}
$ sed -E 's/("(program|description|screened|checksum)": ")[0-9a-f]+/\1.../' one.json
{
  "heddle_part": 6,
  "part": 1,
  "parts": 1,
  "version": "0.1.0",
  "model": "mlp-xs:layers=3",
  "parameter_dtypes": "f32",
  "machine": "1x2 v100",
  "costs": "heddle",
  "ranks": 2,
  "batch": 8,
  "memory_limit_bytes": 9000000,
  "memory_least_bytes": 9000000,
  "train": true,
  "optimizer": "adam lr=0.001 momentum=0 beta1=0.90000000000000002 beta2=0.999 eps=1e-08 weight-decay=0 master-weights=on",
  "strategy": "mb=1,3 zero=*",
  "powers_of_two": false,
  "top": 10,
  "program": "...",
  "description": "...",
  "space": 36,
  "screened": "...",
  "equal": 6,
  "ruled_out_by_memory": 4,
  "most_microbatches": 0,
  "least_bytes": 9437184,
  "host_memory": 0,
  "replicas_not_tried": null,
  "impossible_reasons": [
    {"count": 6, "example": "dp=1 tp=1 pp=2 mb=3", "varies": 0, "code": "E0502", "reason": "batch 8 is not divisible by mb=3"},
    {"count": 12, "example": "dp=2 tp=1 pp=1 mb=3", "varies": 0, "code": "E0502", "reason": "batch 8 / dp 2 = 4 is not divisible by mb=3"}
  ],
  "dealt": 8,
  "dealt_besides": 0,
  "ruled_out_by_time": 0,
  "batchnorm_samples": 0,
  "batchnorm_groups": 0,
  "mfu": 0.0077484001076447004,
  "layers_by_stage": "1/2",
  "spread_ps": 0,
  "equal_ps": 0,
  "equal_strategy": "",
  "devices": [],
  "families": [],
  "replicas_tried": [],
  "asked": "mb=1,3 zero=*",
  "points": [
    {"strategy": "dp=1 tp=1 pp=2", "bound_ps": 149016316, "work_ps": 110247290, "state": "fits", "period_ps": 176887447, "time_ps": 176887447, "peak_bytes": 8454656, "utilisation": 0.54371559503597788, "bubble": 0.45628440496402212, "communication": 0},
    {"strategy": "dp=1 tp=2 pp=1", "bound_ps": 201207214, "work_ps": 151274800, "state": "fits", "period_ps": 201207214, "time_ps": 201207214, "peak_bytes": 6332928, "utilisation": 0.82398848283839365, "bubble": 0, "communication": 0.17601151716160635},
    {"strategy": "dp=1 tp=1 pp=2 recompute=full", "bound_ps": 162186728, "work_ps": 123417689, "state": "fits", "period_ps": 203228271, "time_ps": 203228271, "peak_bytes": 8454656, "utilisation": 0.53804952904411607, "bubble": 0.46195047095588387, "communication": 0},
    {"strategy": "dp=1 tp=2 pp=1 recompute=full", "bound_ps": 224935622, "work_ps": 175003184, "state": "fits", "period_ps": 224935622, "time_ps": 224935622, "peak_bytes": 6332928, "utilisation": 0.84255589806046816, "bubble": 0, "communication": 0.15744410193953184},
    {"strategy": "dp=2 tp=1 pp=1 zero=3", "bound_ps": 341753014, "work_ps": 134953479, "state": "fits", "period_ps": 341753014, "time_ps": 341753014, "peak_bytes": 7905792, "utilisation": 0.64642246286085425, "bubble": 0, "communication": 0.35357753713914575},
    {"strategy": "dp=2 tp=1 pp=1 zero=3 recompute=full", "bound_ps": 395533402, "work_ps": 161024802, "state": "fits", "period_ps": 395533402, "time_ps": 395533402, "peak_bytes": 7897600, "utilisation": 0.62444328026688378, "bubble": 0, "communication": 0.37555671973311622},
    {"strategy": "dp=2 tp=1 pp=1 zero=2", "bound_ps": 337746793, "work_ps": 134953479, "state": "too large", "period_ps": 337746793, "time_ps": 337746793, "peak_bytes": 9478656, "utilisation": 0.65409007451330559, "bubble": 0, "communication": 0.34590992548669441},
    {"strategy": "dp=2 tp=1 pp=1 zero=2 recompute=full", "bound_ps": 363818143, "work_ps": 161024802, "state": "too large", "period_ps": 363818143, "time_ps": 363818143, "peak_bytes": 9470464, "utilisation": 0.67887811466290726, "bubble": 0, "communication": 0.32112188533709274}
  ],
  "checksum": "..."
}
## Nothing fits in any part: the diagnostic is that of the whole.
$ for i in 1 2; do heddle plan mlp-xs --batch 8 --machine '1x2 v100' --memory-limit 1MB --part $i/2 -o no$i.json; done; heddle merge no1.json no2.json
model    mlp-xs
machine  1x2 v100
space    11 plans; 0 are left to look at, the others impossible, too large or equal to another
part     1 of 2 has 0 of the 0: 0 simulated, 0 ruled out by bounds on time
best     no plan fits
model    mlp-xs
machine  1x2 v100
space    11 plans; 0 are left to look at, the others impossible, too large or equal to another
part     2 of 2 has 0 of the 0: 0 simulated, 0 ruled out by bounds on time
best     no plan fits
error[E0506]: no plan can run: of 11, 11 too large for 977 KiB of memory
  note: the smallest needs at least 4.00 MiB on a rank
  hint: use more devices, more microbatches (mb) or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves its memory
[1]
$ heddle plan mlp-xs --batch 8 --machine '1x2 v100' --memory-limit 1MB
error[E0506]: no plan can run: of 11, 11 too large for 977 KiB of memory
  note: the smallest needs at least 4.00 MiB on a rank
  hint: use more devices, more microbatches (mb) or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves its memory
[1]
## What is not all parts of one search.
$ heddle merge part1.json
error[E0510]: part 2 of 2 is missing
  --> part1.json:4:12
   4 |   "parts": 2,
     |            ^
  hint: `heddle plan ... --part 2/2 -o FILE`, with the options of the others, evaluates it
[1]
$ heddle plan mlp-xs --machine laptop --part 3/9 -o third.json >other.txt; heddle merge third.json
error[E0510]: parts 1, 2, 4, 5, 6 and 3 more of 9 are missing
  --> third.json:4:12
   4 |   "parts": 9,
     |            ^
  hint: `heddle plan ... --part 1/9 -o FILE`, with the options of the others, evaluates it
[1]
$ heddle merge part1.json part2.json part1.json
error[E0510]: part 1 of 2 is given twice
  --> part1.json:3:11
   3 |   "part": 1,
     |           ^
  note: first here
    --> part1.json:3:11
     3 |   "part": 1,
       |           ^
[1]
$ heddle plan mlp-xs --batch 512 --train --machine laptop --top 3 --part 2/2 -o other.json >other.txt; heddle merge part1.json other.json
error[E0510]: this part is of another search: the batch is 512 here and 1024 in part1.json
  --> other.json:11:12
  11 |   "batch": 512,
     |            ^
  note: the other search
    --> part1.json:11:12
    11 |   "batch": 1024,
       |            ^
[1]
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --top 3 --part 3/3 -o third.json >other.txt; heddle merge part1.json third.json
error[E0510]: one of 3 parts, but part1.json is one of 2
  --> third.json:4:12
   4 |   "parts": 3,
     |            ^
  note: the other number of parts
    --> part1.json:4:12
     4 |   "parts": 2,
       |            ^
[1]
$ heddle import mlp-xs -o m.heddle; for i in 1 2; do heddle plan m.heddle --machine laptop --part $i/2 -o m$i.json >other.txt; sed -i s/relu/gelu/ m.heddle; done; heddle merge m1.json m2.json 2>&1 | sed -E 's/[0-9a-f]{16}/.../g'
error[E0510]: this part is of another search: the program of the model is ... here and ... in m1.json
  --> m2.json:19:14
  19 |   "program": "...",
     |              ^
  note: the other search
    --> m1.json:19:14
    19 |   "program": "...",
       |              ^
$ heddle merge part1.json part2.json --top 4
error[E0801]: --top 4, but these parts kept the best 3
  --> part1.json:18:10
  18 |   "top": 3,
     |          ^
  hint: use --top 3, or search again with a larger --top
[2]
$ heddle plan mlp-xs --batch 1024 --train --machine laptop --devices 2 --top 3 --part 2/2 -o other.json >other.txt; heddle merge part1.json other.json
error[E0510]: this part is of another search: the number of devices is 2 here and 4 in part1.json
  --> other.json:10:12
  10 |   "ranks": 2,
     |            ^
  note: the other search
    --> part1.json:10:12
    10 |   "ranks": 4,
       |            ^
[1]
$ head -c 900 part2.json > cut.json; heddle merge part1.json cut.json
error[E0116]: the part is cut off here, or was changed before
  --> cut.json:37
  hint: copy the file again, or evaluate the part again
[1]
$ sed s/fits/fats/ part2.json > changed.json; heddle merge part1.json changed.json
error[E0116]: the part is cut off here, or was changed before
  --> changed.json:49
  hint: copy the file again, or evaluate the part again
[1]
$ heddle merge part1.json best.plan whole.txt
error[E0101]: cannot read 'best.plan': No such file or directory
[1]
$ heddle merge whole.txt
error[E0116]: this is not a part of a search
  --> whole.txt:1
  hint: `heddle plan ... --part 1/2 -o FILE` writes one
[1]
$ heddle merge nowhere.json
error[E0101]: cannot read 'nowhere.json': No such file or directory
[1]
$ heddle merge
error[E0801]: `heddle merge` needs PART...
  hint: `heddle merge --help` explains it
[2]
$ heddle merge part1.json part2.json -o best.plan
error[E0801]: --output does not apply to `heddle merge`
  hint: `heddle merge --help` lists the options
[2]
$ heddle plan mlp-xs --machine laptop --part 3/2 -o part.json
error[E0801]: --part must be at most 2/2; got 3/2
[2]
$ heddle plan mlp-xs --machine laptop --part 0/2 -o part.json
error[E0801]: --part must be I/N, part I of N; got '0/2'
  hint: --part 1/2
[2]
$ heddle plan mlp-xs --machine laptop --part 2 -o part.json
error[E0801]: --part must be I/N, part I of N; got '2'
  hint: --part 1/2
[2]
$ heddle plan mlp-xs --machine laptop --part 1/2
error[E0801]: --part needs -o FILE
  hint: -o part1.json
[2]
$ heddle plan mlp-xs --machine laptop --part 1/2 --why tp=2 -o part.json
error[E0801]: --why needs a whole search, but --part evaluates a part of one
  hint: leave out one of them
[2]
$ heddle plan mlp-xs --machine laptop --part 1/2 --what-if -o part.json
error[E0801]: --what-if needs a whole search, but --part evaluates a part of one
  hint: leave out one of them
[2]
## What equal shares take is asked by the first part, even if nothing in it fits.
$ for i in 1 2 3 4 5; do heddle plan mlp-xs --batch 2048 --train --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=4 mb=1 recompute=none skip=0 zero=*" --memory-limit 20MB --threads 1 --part $i/5 -o fit$i.json | tail -1; done
best     no plan fits
best     no plan fits
best     no plan fits
best     no plan fits
best     dp=4 tp=1 pp=1 zero=3, 2.769 ms
$ heddle plan mlp-xs --batch 2048 --train --machine "1x2 v100 + 1x2 a100 ib=100Gb/s" --strategy "dp=4 mb=1 recompute=none skip=0 zero=*" --memory-limit 20MB --threads 1 --json > fitwhole.json; heddle merge fit1.json fit2.json fit3.json fit4.json fit5.json --json | diff - fitwhole.json && echo same
same
## Which memory it was that did not suffice, as the search says it.
$ for k in 1 2; do heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'offload=states+params tp=2' --part $k/2 -o host$k.json >part.txt; done
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'offload=states+params tp=2' >whole.txt 2>&1; heddle merge host1.json host2.json
error[E0506]: no plan can run: of 18, 18 too large for 921 MiB of host memory
  note: the smallest needs at least 1.39 GiB of host memory on a node
  hint: use nodes with more host memory: --machine '... hostmem=2GiB', or offload less (offload=none) if devices have room for it
[1]
$ heddle merge host1.json host2.json 2>&1 | diff whole.txt -
$ for k in 1 2; do heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1GiB' --strategy 'offload=none,states+params tp=2 mb=1' --part $k/2 -o host$k.json >part.txt; done; heddle merge host1.json host2.json | grep 'host memory'
             3 of the too large ones fit the devices, but not the 921 MiB of host memory of a node
## A program that several values make is of all of them, whichever is named first, in parts too.
$ for s in zb-h1,zb-1p zb-1p,zb-h1; do heddle plan gpt2 --seq 512 --batch 32 --train --optimizer adam --machine '1x8 v100' --strategy "dp=2,4 pp=2,4 tp=1 mb=4 schedule=$s recompute=none zero=0" | sed -n '/^value/,/^$/p'; done
value           plans  best known                              time  behind
schedule=zb-h1      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-h1  225.7 ms  1.00x
schedule=zb-1p      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-h1  225.7 ms  1.00x

value           plans  best known                              time  behind
schedule=zb-h1      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-1p  225.7 ms  1.00x
schedule=zb-1p      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-1p  225.7 ms  1.00x

$ for k in 1 2 3; do heddle plan gpt2 --seq 512 --batch 32 --train --optimizer adam --machine '1x8 v100' --strategy "dp=2,4 pp=2,4 tp=1 mb=4 schedule=zb-1p,zb-h1 recompute=none zero=0" --part $k/3 -o p$k.json >/dev/null; done; grep -h also p?.json | cut -c1-140; heddle merge p?.json | sed -n '/^value/,/^$/p'
    {"strategy": "dp=2 tp=1 pp=4 mb=4 schedule=zb-1p", "bound_ps": 194988636253, "work_ps": 190361953652, "state": "fits", "also": [0], "per
    {"strategy": "dp=4 tp=1 pp=2 mb=4 schedule=zb-1p", "bound_ps": 211773914732, "work_ps": 204830101734, "state": "fits", "also": [0], "per
value           plans  best known                              time  behind
schedule=zb-h1      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-1p  225.7 ms  1.00x
schedule=zb-1p      2  dp=4 tp=1 pp=2 mb=4 schedule=zb-1p  225.7 ms  1.00x

$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --seq 16 --batch 8 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=1,2 schedule=gpipe,1f1b recompute=none' --top 1 | sed -n '/^value/,/^$/p'
value           plans  best known          time  behind
schedule=gpipe      2  dp=1 tp=1 pp=4  1.490 ms  1.00x
schedule=1f1b       2  dp=1 tp=1 pp=4  1.490 ms  1.00x

## Plans that are too large by their bounds are counted of their value, and so they are in parts.
$ set -- gpt2:layers=4,hidden=64,heads=4,vocab=128 --seq 64 --batch 32 --train --machine '1x4 v100' --memory-limit 12MB --strategy 'dp=1 tp=1 pp=4 mb=8,16,32 schedule=gpipe,1f1b recompute=none'; heddle plan "$@" | sed -n '/^value/,/^$/p; /ruled out/p'; for k in 1 2; do heddle plan "$@" --part $k/2 -o q$k.json >/dev/null; done; heddle merge q1.json q2.json | sed -n '/^value/,/^$/p'
value           plans  best known               time  behind
schedule=1f1b       3  dp=1 tp=1 pp=4 mb=8  5.240 ms  1.00x
schedule=gpipe      3                                 too large

             3 simulated, 3 ruled out by bounds on memory, 0 on time
value           plans  best known               time  behind
schedule=1f1b       3  dp=1 tp=1 pp=4 mb=8  5.240 ms  1.00x
schedule=gpipe      3                                 too large

## Other cuts of what is too large and too slow are as slow, whichever part looked at them.
$ set -- gpt2:layers=4,hidden=64,heads=4,vocab=128 --machine '1x4 v100 host=16GB/s hostmem=8MiB' --batch 8 --seq 16 --train --optimizer adam --top 4 --memory-limit '1512449 B' --strategy 'offload=* layers=* mb=2'; heddle plan "$@" >whole.txt; for k in 1 2 3; do heddle plan "$@" --part $k/3 -o c$k.json >part.txt; done; heddle merge c?.json | diff whole.txt - && grep -A1 certificate whole.txt
certificate       1584 plans: 66 fit, 528 too large, 371 too slow, 0 impossible, 619 equal to another;
                  418 simulated, 176 ruled out by bounds on memory, 371 on time
## Seeds of the fuzzer are files of this form (fuzz/corpus/part.sh makes them anew).
$ for f in tests/../fuzz/corpus/part/*; do heddle merge $f 2>&1 | grep 'this version reads'; done
[1]
