#!/bin/sh
# hidden.sh - how much of the sums of gradients `overlap=dp` hides behind the backward of two ranks on a shaped link
# (bench/link.sh), measured and as simulated with what `heddle profile` has measured there. Needs root and Open MPI.
# Usage: bench/hidden.sh [MBIT/S [MODEL [BATCH]]]; HEDDLE is the program. Nothing else may run meanwhile.
set -u
cd "$(dirname "$0")/.." || exit 1
mbit=${1:-250} job="${2:-mlp-xs:layers=6,hidden=512} --batch ${3:-4096}"
export HEDDLE="$PWD/${HEDDLE:-build/heddle}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
machine="2x1 cpu-core ib=${mbit}Mb/s"
bench/link.sh "$mbit" profile $job --strategy dp=2 --machine "$machine" -o "$dir/times.db" >/dev/null || exit 1
for overlap in pp pp+dp; do
  bench/link.sh "$mbit" run $job --strategy "dp=2 overlap=$overlap" --steps 12 --json |
    sed -n 's/.*"step_ms": \([0-9.]*\).*/\1/p'
  "$HEDDLE" sim $job --train --machine "$machine" --profiles "$dir/times.db" --strategy "dp=2 overlap=$overlap" --json |
    sed -n 's/.*"time_ps": \([0-9]*\).*/\1/p' | head -n 1
done | awk '{ v[NR] = NR % 2 ? $1 : $1 / 1e9 } END {
  printf "without: %.1f ms measured, %.1f simulated; beside: %.1f and %.1f\n", v[1], v[2], v[3], v[4]
  printf "hidden: %.1f ms of %.1f simulated, %.0f %%\n", v[1] - v[3], v[2] - v[4], (v[1] - v[3]) / (v[2] - v[4]) * 100
}'
