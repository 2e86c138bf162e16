$ heddle help
heddle - plans, simulates and verifies distributed training and inference

  heddle show MODEL             show what is in a model: inputs, parameters, FLOPs, blocks, operators
  heddle import MODEL           write a model as program text, which every command reads
  heddle eval MODEL             compute the outputs of a model, unsplit (the reference)
  heddle plan MODEL             find and rank the fastest parallel plans for a machine
  heddle merge PART...          combine the parts of a search that were evaluated separately
  heddle sim MODEL              simulate time and memory of every rank under a plan
  heddle verify MODEL           check that a plan computes what the model computes
  heddle run MODEL              train under a plan for real, one process a rank (docs/running.md)
  heddle profile [MODEL]        measure the events of a plan here, once each, for --profiles (docs/profiles.md)
  heddle compare MODEL          run a plan and compare what was measured with what is predicted
  heddle lower MODEL            print the program of one rank under a plan
  heddle export MODEL           write a plan as a program of another framework (docs/export.md)
  heddle schedule [SCHEDULE]    print a pipeline schedule, or find the fastest one for given stages
  heddle trace QUESTION PATH... ask the traces of a job: what is slow, who is late, what would help
  heddle choices                list what a strategy chooses: names, values, defaults
  heddle ops [OPERATOR]         list the operators, or show the manual page or the sharding patterns of one
  heddle explain [CODE]         list the diagnostics, or explain one
  heddle machines [MACHINE]     list the machine presets, show one machine, or measure this one (`probe`)
  heddle help [COMMAND]         list the commands, or the options of one
  heddle version                print the version of Heddle

`heddle COMMAND --help` lists the options of a command, with an example.
$ heddle version
heddle 0.1.0
$ heddle version --json
{
  "version": "0.1.0"
}
$ heddle help --json
{
  "commands": [
    {"name": "show", "operand": "MODEL", "about": "show what is in a model: inputs, parameters, FLOPs, blocks, operators"},
    {"name": "import", "operand": "MODEL", "about": "write a model as program text, which every command reads"},
    {"name": "eval", "operand": "MODEL", "about": "compute the outputs of a model, unsplit (the reference)"},
    {"name": "plan", "operand": "MODEL", "about": "find and rank the fastest parallel plans for a machine"},
    {"name": "merge", "operand": "PART...", "about": "combine the parts of a search that were evaluated separately"},
    {"name": "sim", "operand": "MODEL", "about": "simulate time and memory of every rank under a plan"},
    {"name": "verify", "operand": "MODEL", "about": "check that a plan computes what the model computes"},
    {"name": "run", "operand": "MODEL", "about": "train under a plan for real, one process a rank (docs/running.md)"},
    {"name": "profile", "operand": "[MODEL]", "about": "measure the events of a plan here, once each, for --profiles (docs/profiles.md)"},
    {"name": "compare", "operand": "MODEL", "about": "run a plan and compare what was measured with what is predicted"},
    {"name": "lower", "operand": "MODEL", "about": "print the program of one rank under a plan"},
    {"name": "export", "operand": "MODEL", "about": "write a plan as a program of another framework (docs/export.md)"},
    {"name": "schedule", "operand": "[SCHEDULE]", "about": "print a pipeline schedule, or find the fastest one for given stages"},
    {"name": "trace", "operand": "QUESTION PATH...", "about": "ask the traces of a job: what is slow, who is late, what would help"},
    {"name": "choices", "operand": "", "about": "list what a strategy chooses: names, values, defaults"},
    {"name": "ops", "operand": "[OPERATOR]", "about": "list the operators, or show the manual page or the sharding patterns of one"},
    {"name": "explain", "operand": "[CODE]", "about": "list the diagnostics, or explain one"},
    {"name": "machines", "operand": "[MACHINE]", "about": "list the machine presets, show one machine, or measure this one (`probe`)"},
    {"name": "help", "operand": "[COMMAND]", "about": "list the commands, or the options of one"},
    {"name": "version", "operand": "", "about": "print the version of Heddle"}
  ]
}
$ heddle help machines --json
{
  "name": "machines",
  "operand": "[MACHINE]",
  "about": "list the machine presets, show one machine, or measure this one (`probe`)",
  "options": [
    {"name": "--launcher", "argument": "LINE", "about": "what starts the ranks, with its options (default: mpirun), such as 'mpirun --map-by node'"},
    {"name": "--transport", "argument": "FILE", "about": "shared object that joins the ranks (default: heddle-mpi.so)"},
    {"name": "--output", "argument": "FILE", "about": "also -o: file to write, as program text; of `machines`, the machine file"},
    {"name": "--json", "argument": "", "about": "print one JSON object (docs/json.md)"},
    {"name": "--help", "argument": "", "about": "print this text"}
  ]
}
$ heddle show --help
heddle show MODEL - show what is in a model: inputs, parameters, FLOPs, blocks, operators

MODEL is an .onnx file, a .heddle file, or a built-in model such as gpt3-175b or
llama2-7b:layers=2,hidden=256 (`heddle show --list` lists them).

the model
  --batch N              samples per step
  --seq N                tokens per sequence, or pixels per side of an image
  --vocab N              vocabulary size, or number of classes
  --dtype TYPE           element type of a built-in model: f16, bf16, f32 or f64
  --headless             leave out the projection to the vocabulary
  --dim NAME=N           bind a symbolic dimension of an ONNX model
  --fix NAME=VALUES      make an input of an ONNX model constant: 1,2,3, or a .npy file
  --operators FILE       operators of your own: a shared object that has them (docs/operators.md)
  --list                 list the built-in models

training
  --train                a training step: loss, gradients, optimizer update
  --optimizer NAME       sgd, momentum, adam, adamw or adafactor
  --lr X                 learning rate
  --momentum X           momentum factor (of the momentum optimizer)
  --beta1 X              decay of the first moment (of adam and adamw)
  --beta2 X              decay of the second moment (of adam, adamw and adafactor)
  --eps X                added to the denominator (of adam and adamw), or to squares (of adafactor)
  --weight-decay X       weight decay
  --no-master-weights    no f32 master weights for f16 and bf16

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

example
  heddle show gpt2 --batch 4 --seq 256
$ heddle choices
choice       option               values                    default    needs            about
dp           --data               N, 1 or more              1                           data-parallel degree
tp           --tensor             N, 1 or more              1                           tensor-parallel degree
pp           --pipeline           N, 1 or more              1                           pipeline-parallel degree
replicas     --replicas           none, NxN+NxN..           none                        replicas of the model of different make-up on
                                                                                        ranks in order, with dp, tp and pp 1: stages x
                                                                                        tensor ranks, or x data ranks too, of each, such
                                                                                        as 2x2+1x2
mb           --microbatches       N, 1 or more              1                           microbatches per step
mbs          --microbatch-size    N, 1 or more                                          samples per microbatch on one data rank, instead
                                                                                        of mb
v            --chunks             N, 1 or more              1          pp > 1           pipeline stages on each place
schedule     --schedule           gpipe, 1f1b,              1f1b       pp > 1           pipeline schedule: gpipe, 1f1b, interleaved,
                                  interleaved, bfs, zb-h1,                              bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v,
                                  zb-h2, zb-1p, zb-2p,                                  zb-v-half, zb-v-min, dualpipev, chimera,
                                  zb-v, zb-v-half,                                      chimera-double, dualpipe, gems, interlaced,
                                  zb-v-min, dualpipev,                                  interlaced-block, 3f1b, pipedream,
                                  chimera, chimera-double,                              pipedream-2bw, or FILE.csv
                                  dualpipe, gems,
                                  interlaced,
                                  interlaced-block, 3f1b,
                                  pipedream,
                                  pipedream-2bw, FILE.csv
group        --group              N, 0 or more              0          v > 1 and a      microbatches that a chunk takes before the next
                                                                       schedule with    chunk; 0: pp
                                                                       groups
tp.stages    --tensor-stages      equal, N/N/..             equal      pp > 1 and       tensor-parallel degree of each place of the
                                                                       replicas=none    pipeline: equal (tp), or numbers such as
                                                                                        8/4/4/2; a place has dp x tp ranks
zero         --zero               N, 0 to 3                 0          training and dp  ZeRO stage: 1 shards optimizer states, 2
                                                                       > 1              gradients too, 3 weights too
sync         --sync               allreduce, ps             allreduce  training and dp  how gradients of data ranks meet: allreduce (all
                                                                       > 1              ranks sum and update), or ps (each weight has a
                                                                                        rank as its parameter server, which gets
                                                                                        gradients, updates and sends weights)
recompute    --recompute          none, selective, full     none       training         activation recomputation: none, selective or
                                                                                        full
coshard      --coshard            N, 1 to 64                1                           parts in which attention heads and hidden units
                                                                                        are computed, one after the other on the same
                                                                                        ranks, each again in the backward
attention    --attention          scores, fused             scores                      attention with its scores in memory (scores), or
                                                                                        in blocks that keep none and make them again in
                                                                                        the backward, as FlashAttention does (fused)
offload      --offload            none, params, grads,      none                        what lies in host memory between its uses:
                                  states, acts                                          params, grads, states (of the optimizer) and
                                                                                        acts (activations kept for the backward), with +
                                                                                        between them, or none
prefetch     --prefetch           N, 0 to 16                1          offload          layers that copies from host memory run ahead of
                                                                                        computation
update       --update             device, host              device     training and     where weights are updated whose optimizer states
                                                                       offload          lie in host memory: on the device, or by the
                                                                                        host's processor (ZeRO-Offload's CPU Adam),
                                                                                        which gets gradients and sends weights
sp           --sequence-parallel  off, on                   off        tp > 1           shard activations by sequence outside
                                                                                        tensor-parallel layers
axial        --axial              off, on                   off        tp > 1           split rows and columns of tables (alignments,
                                                                                        residue pairs) over tp, not heads and hidden
                                                                                        units
overlap      --overlap            none, pp, dp              pp         pp > 1 (pp), or  communication that overlaps computation: pp
                                                                       training and dp  (sends between stages), dp (sums of gradients,
                                                                       > 1 (dp)         beside the last backward), pp+dp, or none
channels     --channels           peer, pass, one           peer       pp > 1 and       send streams: one per peer, pass and direction
                                                                       overlap=pp       (peer), one per pass (pass), or one
buffers      --buffers            unbounded, rendezvous     unbounded  pp > 1 and       when a place goes on after a send: at once
                                                                       overlap=none     (unbounded), or when the receiver has taken it
                                                                                        (rendezvous)
tables       --tables             split, whole              split      tp > 1           embedding tables: split by rows over tp, or
                                                                                        whole on every rank
layers       --layers             cost, equal, auto,        cost       pp > 1           layers per stage: balanced by FLOPs (cost), by
                                  whale, N/N/..                                         time on the devices (auto), by Whale's policy
                                                                                        (whale: places of more memory first), equal, or
                                                                                        numbers such as 10/12/12/6
materialise  --materialise        inter, intra, p2p         inter                       how values get where they are needed: by
                                                                                        collectives found inside and between groups
                                                                                        (inter), inside groups alone (intra), or by
                                                                                        plain sends and receives of pieces (p2p)
bn           --batchnorm          local, sync               local      training         batch norm statistics: per data rank and
                                                                                        microbatch (local), or over all data ranks
                                                                                        (sync)
grads        --gradient-type      own, f32                  own        training         type in which gradients are accumulated and
                                                                                        summed over data ranks: the weight's (own), or
                                                                                        f32
dp.shares    --data-shares        equal, auto, whale,       equal      dp > 1 or        how much of the batch each data rank, or
                                  N/N/..                               replicas         replica, gets: equal, by the speed and memory of
                                                                                        devices (auto: the least time; whale: by Whale's
                                                                                        Algorithm 1), or parts such as 3/3/1/1
tp.shares    --tensor-shares      equal, auto, N/N/..       equal      tp > 1 and       how much of each split each tensor rank gets:
                                                                       replicas=none    equal, by the speed of devices (auto), or parts
                                                                                        such as 5/4/4/3
places       --places             inorder, N/N/..           inorder    pp > 1 and       which ranks each place of the pipeline has: the
                                                                       replicas=none    next dp x tp ranks of the machine (inorder), or
                                                                                        numbers of such blocks from 1, such as 2/1
skip         --skip               N, 0 or more              0                           ranks of the machine, from the first, that the
                                                                                        plan leaves out

A strategy is a line of them, "dp=2 tp=4 pp=2 mb=32 zero=1". `heddle plan` takes several values,
"tp=1,2,4 zero=*", and searches those that are not given of dp tp pp mb zero recompute. docs/strategy.md has the rules.
$ heddle ops matmul
matmul: matrix product of the last two dimensions, numpy's rules
  operands    2
  results     1
  law         ...mk,...kn->...mn
  types       N->N
  split       all; a split k leaves partial sums
  linearity   every operand: linear in it alone
  flops       2 per point of the iteration space
$ heddle ops all_reduce
all_reduce: combine partial sums on every rank (partial to replicated)
  operands    1 or more
  results     any number
  law         ...,***->...,***
  types       each
  axes        from V to R: partial results combined, the result everywhere
  linearity   every operand: linear in it alone
  attributes  over         mesh axes of a communication, major first (mesh axes, required)
  note        the result may take over the storage of a donated first operand
$ heddle ops layernorm --json
{
  "name": "layernorm",
  "about": "(x-mean)/sqrt(var+eps) g + b over the dimensions from axis on",
  "operands_min": 3,
  "operands_max": 3,
  "results": 1,
  "law": "=norm",
  "linear": "-jj",
  "types": "F->F",
  "attributes": "axis=-1 eps=1e-5",
  "flops_per_point": 8
}
$ heddle ops | head -5
operator          operands  results  about
identity          1               1  the operand itself
stop_gradient     1               1  the operand itself, as a constant to gradients
cast              1               1  conversion to another element type
neg               1               1  -x
$ heddle explain E0502
E0502 (error): a split does not divide

The number of ways does not divide the extent, the number of blocks or the number of devices. Nothing is rounded silently.
$ heddle explain E0502 --json
{
  "code": "E0502",
  "severity": "error",
  "title": "a split does not divide",
  "explanation": "The number of ways does not divide the extent, the number of blocks or the number of devices. Nothing is rounded silently."
}
$ heddle machines
machine          devices  nodes    memory  about
a10-4x4               16      4  24.0 GiB  4 nodes of 4 x A10 on PCIe
a40-4x4               16      4  48.0 GiB  4 nodes of 4 x A40, joined in pairs by NVLink bridges
dgx-1                  8      1  32.0 GiB  NVIDIA DGX-1, 8 x V100-32GB on a hybrid cube mesh of NVLink
dgx-2                 16      1  32.0 GiB  NVIDIA DGX-2, 16 x V100-32GB behind NVSwitch
dgx-a100-80            8      1  80.0 GiB  NVIDIA DGX A100 640GB, 8 x A100-SXM-80GB behind NVSwitch
dgx-h100               8      1  80.0 GiB  NVIDIA DGX H100, 8 x H100-SXM-80GB behind NVSwitch
laptop                 4      1  4.00 GiB  4 processor cores, one rank each
p100-16-50g-eth        8      1  16.0 GiB  8 x P100-16GB on PCIe, 50 Gb/s Ethernet
v100-32-50g-eth        8      1  32.0 GiB  8 x V100-32GB on NVLink, 50 Gb/s Ethernet
$ heddle machines dgx-h100
machine  dgx-h100
about    NVIDIA DGX H100, 8 x H100-SXM-80GB behind NVSwitch
devices  8

nodes  devices  link    each way       host  host memory  bandwidth  NICs       each
    1        8  switch  450 GB/s  63.0 GB/s     2.00 TiB   614 GB/s     8  50.0 GB/s

device  count    memory    usable  bandwidth          f16         bf16           f32           f64
h100        8  80.0 GiB  72.0 GiB  3.35 TB/s  989 TFLOP/s  989 TFLOP/s  66.9 TFLOP/s  66.9 TFLOP/s
$ heddle machines "2x8 h100 ib=8x400Gb/s + 1x4 a40" --json
warning[W0602]: 1 of 3 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:25
   1 | 2x8 h100 ib=8x400Gb/s + 1x4 a40
     |                         ^
  hint: '2x8 h100 ib=8x400Gb/s + 1x4 a40 ib=100Gb/s', with the rate of your network
{
  "machine": "2x8 h100 ib=8x400Gb/s + 1x4 a40",
  "about": "",
  "ranks": 20,
  "nodes": [
    {"nodes": 2, "devices": 8, "link": "switch", "link_bytes_per_s": 450000000000, "host_bytes_per_s": 63000000000, "host_memory_bytes": null, "host_memory_bytes_per_s": null, "nics": 8, "nic_bytes_per_s": 50000000000},
    {"nodes": 1, "devices": 4, "link": "pairs", "link_bytes_per_s": 56250000000, "host_bytes_per_s": 31500000000, "host_memory_bytes": null, "host_memory_bytes_per_s": null, "nics": 0, "nic_bytes_per_s": null}
  ],
  "devices": [
    {"device": "h100", "count": 16, "memory_bytes": 85899345920, "usable_bytes": 77309411328, "memory_bytes_per_s": 3350000000000, "f16_flop_per_s": 989400000000000, "bf16_flop_per_s": 989400000000000, "f32_flop_per_s": 66900000000000.01, "f64_flop_per_s": 66900000000000.01},
    {"device": "a40", "count": 4, "memory_bytes": 51539607552, "usable_bytes": 46384807936, "memory_bytes_per_s": 696000000000, "f16_flop_per_s": 149700000000000, "bf16_flop_per_s": 149700000000000, "f32_flop_per_s": 37400000000000, "f64_flop_per_s": null}
  ]
}
$ heddle machines --json | head -3
{
  "machines": [
    {"name": "a10-4x4", "ranks": 16, "nodes": 4, "device": "a10", "memory_bytes": 25769803776, "about": "4 nodes of 4 x A10 on PCIe"},
$ heddle ops --json | head -3
{
  "operators": [
    {"name": "identity", "operands_min": 1, "operands_max": 1, "results": 1, "kind": "compute", "about": "the operand itself"},
$ heddle explain --json | head -3
{
  "diagnostics": [
    {"code": "E0101", "severity": "error", "title": "a file cannot be opened", "explanation": "The path does not exist, is a folder, or may not be read. Check the spelling and the permissions."},
$ heddle show --list | head -5
model         kind       layers  hidden  heads     ffn    vocab  positions  experts
mlp-xs        mlp             8     512
mlp-small     mlp            16   8,192
mlp-medium    mlp            64  16,384
mlp-large     mlp            96  32,768
$ heddle show --list --json | head -3
{
  "models": [
    {"name": "mlp-xs", "kind": "mlp", "layers": 8, "hidden": 512, "heads": null, "kv_heads": null, "head_dim": null, "ffn": null, "vocab": null, "positions": null, "experts": null, "topk": null, "window": null, "msa": null, "pair": null, "recycle": null, "source": "DistIR examples: 8 x 512"},
