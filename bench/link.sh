#!/bin/sh
# link.sh - a command of `heddle` whose two ranks stand at the two ends of a link of a given rate: network namespaces, veth, tbf.
# Needs root and Open MPI. Usage: bench/link.sh MBIT/S WORD...; HEDDLE is the program.
set -u
mbit=$1 heddle=${HEDDLE:-build/heddle} dir=$(mktemp -d) a=heddle$$a b=heddle$$b
shift
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# NAMESPACE DEVICE ADDRESS. A smaller bucket has packets cut by the processor; of a larger one more passes at once after a pause.
attach() {
  ip link set "$2" netns "$1" && ip -n "$1" addr add "$3/24" dev "$2" && ip -n "$1" link set "$2" up &&
    ip -n "$1" link set lo up &&
    ip netns exec "$1" tc qdisc replace dev "$2" root tbf rate "${mbit}mbit" burst 70kb latency 200ms
}
ip netns add $a && ip netns add $b && ip link add hd$$a type veth peer name hd$$b &&
  attach $a hd$$a 10.78.0.1 && attach $b hd$$b 10.78.0.2 || exit 1
printf '10.78.0.1 slots=1\n10.78.0.2 slots=1\n' >"$dir/hosts"
printf '#!/bin/sh\ncase $1 in *.1) at=%s ;; *) at=%s ;; esac\nshift\nexec ip netns exec $at sh -c "$*"\n' $a $b >"$dir/agent"
chmod +x "$dir/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launcher="mpirun --hostfile $dir/hosts --mca plm_rsh_agent $dir/agent --mca btl tcp,self"
launcher="$launcher --mca btl_tcp_if_include 10.78.0.0/24 --mca oob_tcp_if_include 10.78.0.0/24"
ip netns exec $a "$heddle" "$@" --launcher "$launcher"
