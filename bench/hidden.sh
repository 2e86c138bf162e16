#!/bin/sh
# hidden.sh - how much of the sums of gradients `overlap=dp` hides behind the backward of two ranks on a shaped link (network
# namespaces, veth, tbf), measured and as simulated with what `heddle profile` has measured there. Needs root and Open MPI.
# Usage: bench/hidden.sh [MBIT/S [MODEL [BATCH]]]; HEDDLE is the program. Nothing else may run meanwhile.
set -u
cd "$(dirname "$0")/.." || exit 1
mbit=${1:-250} job="${2:-mlp-xs:layers=6,hidden=512} --batch ${3:-4096}"
heddle=$PWD/${HEDDLE:-build/heddle} dir=$(mktemp -d) a=hidden$$a b=hidden$$b
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# NAMESPACE DEVICE ADDRESS
attach() {
  ip link set "$2" netns "$1" && ip -n "$1" addr add "$3/24" dev "$2" && ip -n "$1" link set "$2" up &&
    ip -n "$1" link set lo up &&
    ip netns exec "$1" tc qdisc replace dev "$2" root tbf rate "${mbit}mbit" burst 256kb latency 200ms
}
ip netns add $a && ip netns add $b && ip link add hd$$a type veth peer name hd$$b &&
  attach $a hd$$a 10.78.0.1 && attach $b hd$$b 10.78.0.2 || exit 1
printf '10.78.0.1 slots=1\n10.78.0.2 slots=1\n' >"$dir/hosts"
printf '#!/bin/sh\ncase $1 in *.1) at=%s ;; *) at=%s ;; esac\nshift\nexec ip netns exec $at sh -c "$*"\n' $a $b >"$dir/agent"
chmod +x "$dir/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launcher="mpirun --hostfile $dir/hosts --mca plm_rsh_agent $dir/agent --mca btl tcp,self"
launcher="$launcher --mca btl_tcp_if_include 10.78.0.0/24 --mca oob_tcp_if_include 10.78.0.0/24"
machine="2x1 cpu-core ib=${mbit}Mb/s"
ip netns exec $a "$heddle" profile $job --strategy dp=2 --machine "$machine" -o "$dir/times.db" --launcher "$launcher" >/dev/null || exit 1
for overlap in pp pp+dp; do
  ip netns exec $a "$heddle" run $job --strategy "dp=2 overlap=$overlap" --steps 12 --json --launcher "$launcher" |
    sed -n 's/.*"step_ms": \([0-9.]*\).*/\1/p'
  "$heddle" sim $job --train --machine "$machine" --profiles "$dir/times.db" --strategy "dp=2 overlap=$overlap" --json |
    sed -n 's/.*"time_ps": \([0-9]*\).*/\1/p' | head -n 1
done | awk '{ v[NR] = NR % 2 ? $1 : $1 / 1e9 } END {
  printf "without: %.1f ms measured, %.1f simulated; beside: %.1f and %.1f\n", v[1], v[2], v[3], v[4]
  printf "hidden: %.1f ms of %.1f simulated, %.0f %%\n", v[1] - v[3], v[2] - v[4], (v[1] - v[3]) / (v[2] - v[4]) * 100
}'
