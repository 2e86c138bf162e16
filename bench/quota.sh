#!/bin/sh
# quota.sh - one of two ranks has a part of a core (a quota of the CPU controller): steps with equal shares of the batch and with
# shares that fit the ranks' speeds, measured beside what `heddle sim` says from a profile of both. Needs root, Open MPI and control
# groups (version 1). Usage: bench/quota.sh [PERCENT [MODEL [BATCH]]]; HEDDLE is the program. Nothing else may run meanwhile.
set -u
cd "$(dirname "$0")/.." || exit 1
percent=${1:-50} job="${2:-mlp-xs:layers=6,hidden=512} --batch ${3:-1536}"
heddle=$PWD/${HEDDLE:-build/heddle} dir=$(mktemp -d) group=/sys/fs/cgroup/cpu/heddle$$
trap 'rmdir $group 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
# A period of 2 ms, so that a step has many.
mkdir $group && echo 2000 >$group/cpu.cfs_period_us && echo $((percent * 20)) >$group/cpu.cfs_quota_us || exit 1

# mpirun, whose second process enters the group: before the program, or `env` that starts it.
cat >"$dir/rank" <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" != 1 ] || echo \$\$ >$group/cgroup.procs
exec "\$@"
END
cat >"$dir/launch" <<END
#!/bin/sh
n=\$# entered=
for word; do
  case \$word in env | */heddle) [ \$entered ] || { set -- "\$@" $dir/rank; entered=1; } ;; esac
  set -- "\$@" "\$word"
done
shift \$n
exec mpirun "\$@"
END
chmod +x "$dir/rank" "$dir/launch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# What this machine has, once more for the slower kind.
"$heddle" machines probe -o "$dir/here.yaml" >/dev/null || exit 1
awk -v part="$percent" '
  function slower() {
    print "  slow:\n    like: core\n    rate: {f32: " rate * part / 100 " GFLOP/s}\n    vector: " vector * part / 100 " GFLOP/s"
  }
  /^nodes:/ { slower(); print "nodes: {devices: 1 core + 1 slow}"; next }
  / f32: / { rate = $2 }
  / vector: / { vector = $2 }
  { print }' "$dir/here.yaml" >"$dir/both.yaml"

for shares in equal auto; do
  "$heddle" plan $job --train --strategy "dp=2 tp=1 pp=1 mb=1 zero=0 recompute=none dp.shares=$shares" \
    --machine "$dir/both.yaml" -o "$dir/$shares.plan" >/dev/null || exit 1
done
# Of each figure the least of three rounds: what else runs on the machine only adds.
for round in 1 2 3; do
  for shares in equal auto; do
    set -- $job --plan "$dir/$shares.plan" --machine "$dir/both.yaml"
    "$heddle" profile "$@" -o "$dir/times$round.db" --launcher "$dir/launch" >/dev/null || exit 1
    "$heddle" run "$@" --steps 30 --json --launcher "$dir/launch" | sed -n 's/.*"step_ms": \([0-9.]*\).*/\1/p'
    "$heddle" sim "$@" --profiles "$dir/times$round.db" --json | sed -n 's/.*"time_ps": \([0-9]*\).*/\1/p' | head -n 1
  done
done | awk '{ k = (NR - 1) % 4 + 1; x = NR % 2 ? $1 : $1 / 1e9; if (NR <= 4 || x < v[k]) v[k] = x } END {
  printf "equal shares: %.1f ms measured, %.1f simulated; shares by speed: %.1f and %.1f\n", v[1], v[2], v[3], v[4]
  printf "times as fast: %.3f measured, %.3f simulated, %+.1f %%\n", v[1] / v[3], v[2] / v[4], (v[2] / v[4]) / (v[1] / v[3]) * 100 - 100
}'
