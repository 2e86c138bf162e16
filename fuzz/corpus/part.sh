#!/bin/sh
# part.sh - makes the seeds of fuzz/fuzz_part.c anew, which a new form of the file (`heddle_part`) needs.
# Usage: fuzz/corpus/part.sh; HEDDLE is the program.
set -eu
heddle=${HEDDLE:-build/heddle} to=$(dirname "$0")/part
small=gpt2:layers=4,hidden=64,heads=4,vocab=128
part() {
  name=$1
  shift
  "$heddle" plan "$@" -o "$to/$name" >/dev/null 2>&1
}
part families mlp-xs:layers=4 --machine '1x2 v100' --batch 8 --train --optimizer sgd --top 1 \
  --strategy 'dp=1 mb=2 schedule=1f1b,gpipe recompute=none coshard=1,2' --part 1/1
part inference mlp-xs:layers=3 --machine '1x4 v100' --batch 8 --top 1 --part 1/1
part nothing $small --machine '1x2 v100' --batch 8 --seq 16 --memory-limit '100000 B' --part 1/1 || [ -s "$to/nothing" ]
part train mlp-xs:layers=3 --machine '1x2 v100' --batch 8 --train --optimizer adam --memory-limit '9 MB' --strategy 'mb=1,3 zero=*' --part 1/1
part replicas $small --machine '1x4 v100' --batch 8 --seq 16 --train --optimizer sgd --strategy 'replicas=* mb=2' --top 2 --part 1/2
part cuts $small --machine '1x4 v100 host=16GB/s hostmem=8MiB' --batch 8 --seq 16 --train --optimizer adam --top 1 \
  --memory-limit '1512449 B' --strategy 'offload=none,acts layers=* mb=2' --part 1/2
