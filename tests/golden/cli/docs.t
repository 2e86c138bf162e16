$ heddle help
heddle - plans, simulates and verifies distributed training and inference

  heddle show MODEL             what is in a model: inputs, parameters, FLOPs, blocks, operators
  heddle import MODEL           a model as program text, which every command reads
  heddle eval MODEL             the reference answer: what the model computes
  heddle plan MODEL             the fastest ways of spreading a model over a machine, ranked
  heddle merge PART...          the result of a search whose parts were evaluated one by one
  heddle sim MODEL              time and memory of every rank, under a plan
  heddle verify MODEL           do the numbers of a plan equal the model's?
  heddle lower MODEL            what one rank runs, under a plan
  heddle schedule SCHEDULE      a pipeline schedule as CSV or as a picture, by name or from FILE.csv
  heddle choices                what a strategy chooses: names, values, defaults
  heddle ops [OPERATOR]         the operators, or the manual page of one
  heddle explain [CODE]         what a diagnostic means
  heddle machines [MACHINE]     the machine presets, or one machine
  heddle help [COMMAND]         this list, or the options of a command
  heddle version                the version of Heddle

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
    {"name": "show", "operand": "MODEL", "about": "what is in a model: inputs, parameters, FLOPs, blocks, operators"},
    {"name": "import", "operand": "MODEL", "about": "a model as program text, which every command reads"},
    {"name": "eval", "operand": "MODEL", "about": "the reference answer: what the model computes"},
    {"name": "plan", "operand": "MODEL", "about": "the fastest ways of spreading a model over a machine, ranked"},
    {"name": "merge", "operand": "PART...", "about": "the result of a search whose parts were evaluated one by one"},
    {"name": "sim", "operand": "MODEL", "about": "time and memory of every rank, under a plan"},
    {"name": "verify", "operand": "MODEL", "about": "do the numbers of a plan equal the model's?"},
    {"name": "lower", "operand": "MODEL", "about": "what one rank runs, under a plan"},
    {"name": "schedule", "operand": "SCHEDULE", "about": "a pipeline schedule as CSV or as a picture, by name or from FILE.csv"},
    {"name": "choices", "operand": "", "about": "what a strategy chooses: names, values, defaults"},
    {"name": "ops", "operand": "[OPERATOR]", "about": "the operators, or the manual page of one"},
    {"name": "explain", "operand": "[CODE]", "about": "what a diagnostic means"},
    {"name": "machines", "operand": "[MACHINE]", "about": "the machine presets, or one machine"},
    {"name": "help", "operand": "[COMMAND]", "about": "this list, or the options of a command"},
    {"name": "version", "operand": "", "about": "the version of Heddle"}
  ]
}
$ heddle help machines --json
{
  "name": "machines",
  "operand": "[MACHINE]",
  "about": "the machine presets, or one machine",
  "options": [
    {"name": "--output", "argument": "FILE", "about": "also -o: where to write; the arrays of eval: a folder"},
    {"name": "--json", "argument": "", "about": "print one JSON object (docs/json.md)"},
    {"name": "--help", "argument": "", "about": "this text"}
  ]
}
$ heddle show --help
heddle show MODEL - what is in a model: inputs, parameters, FLOPs, blocks, operators

MODEL is an .onnx file, a .heddle file, or a built-in model such as gpt3-175b or
llama2-7b:layers=2,hidden=256 (`heddle show --list` lists them).

the model
  --batch N              samples in one step
  --seq N                tokens in a sequence, or pixels of an image's side
  --vocab N              words, or classes
  --dtype TYPE           f16, bf16, f32 or f64 (of a built-in model)
  --headless             without the projection to the vocabulary
  --dim NAME=N           extent of a symbolic dimension of an ONNX model
  --fix NAME=VALUES      an input of an ONNX model is constant: 1,2,3, or a .npy file
  --list                 list the built-in models

training
  --train                a training step: loss, gradients, update
  --optimizer NAME       sgd, momentum, adam or adamw
  --lr X                 learning rate
  --momentum X           of momentum
  --beta1 X              of adam and adamw
  --beta2 X              of adam and adamw
  --eps X                of adam and adamw
  --weight-decay X       decay of the parameters
  --no-master-weights    f16 and bf16 weights without a copy in f32 that is updated

output
  --json                 print one JSON object (docs/json.md)
  --help                 this text

example
  heddle show gpt2 --batch 4 --seq 256
$ heddle choices
choice     option               values                                          default  needs                             about
dp         --data               N from 1                                        1                                          ways of data parallelism
tp         --tensor             N from 1                                        1                                          ways of tensor parallelism
pp         --pipeline           N from 1                                        1                                          pipeline stages
mb         --microbatches       N from 1                                        1                                          microbatches: parts of the batch, one after the other
mbs        --microbatch-size    N from 1                                                                                   samples in a microbatch on one data rank, instead of mb
v          --chunks             N from 1                                        1        pp > 1                            pipeline stages on each place
schedule   --schedule           gpipe, 1f1b, interleaved, bfs, zb-h1, FILE.csv  1f1b     pp > 1                            order of forwards and backwards: gpipe, 1f1b, interleaved, bfs, zb-h1, or FILE.csv
group      --group              N from 1                                        0        v > 1 and a schedule with groups  microbatches that pass a chunk before the next one runs; 0: pp
zero       --zero               N from 0 to 3                                   0        training and dp > 1               ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 weights too
recompute  --recompute          none, selective, full                           none     training                          what backward computes again: none, selective or full
sp         --sequence-parallel  off, on                                         off      tp > 1                            shard activations by sequence outside tensor-parallel layers
overlap    --overlap            none, pp                                        pp       pp > 1                            communication that runs beside computation: pp, sends between stages; or none
channels   --channels           peer, pass, one                                 peer     pp > 1 and overlap=pp             streams of sends: one for each peer, pass and direction, for each pass, or one
tables     --tables             split, whole                                    split    tp > 1                            embeddings: split by rows over tp, or whole on every rank
layers     --layers             cost, equal, N/N/..                             cost     pp > 1                            layers of each stage: balanced by cost, equal, or numbers such as 10/12/12/6
bn         --batchnorm          local, sync                                     local    training                          batch norm: statistics of each data rank and microbatch (local), or of all data ranks (sync)

A strategy is a line of them, "dp=2 tp=4 pp=2 mb=32 zero=1". `heddle plan` takes several values,
"tp=1,2,4 zero=*", and searches what is not said of dp tp pp mb zero recompute. docs/strategy.md has the rules.
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
all_reduce: partial to replicated
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
cast              1               1  another element type
neg               1               1  -x
abs               1               1  |x|
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
machine      devices  nodes    memory  about
a10-4x4           16      4  24.0 GiB  4 nodes of 4 x A10 on PCIe
a40-4x4           16      4  48.0 GiB  4 nodes of 4 x A40, joined in pairs by NVLink bridges
dgx-2             16      1  32.0 GiB  NVIDIA DGX-2, 16 x V100-32GB behind NVSwitch
dgx-a100-80        8      1  80.0 GiB  NVIDIA DGX A100 640GB, 8 x A100-SXM-80GB behind NVSwitch
dgx-h100           8      1  80.0 GiB  NVIDIA DGX H100, 8 x H100-SXM-80GB behind NVSwitch
laptop             4      1  4.00 GiB  4 processor cores, one rank each
$ heddle machines dgx-h100
machine  dgx-h100
about    NVIDIA DGX H100, 8 x H100-SXM-80GB behind NVSwitch
devices  8

nodes  devices  link    each way  NICs       each
    1        8  switch  450 GB/s     8  50.0 GB/s

device  count    memory    usable  bandwidth          f16         bf16           f32           f64
h100        8  80.0 GiB  72.0 GiB  3.35 TB/s  989 TFLOP/s  989 TFLOP/s  66.9 TFLOP/s  66.9 TFLOP/s
$ heddle machines "2x8 h100 ib=8x400Gb/s + 1x4 a40" --json
{
  "machine": "2x8 h100 ib=8x400Gb/s + 1x4 a40",
  "about": "",
  "ranks": 20,
  "nodes": [
    {"nodes": 2, "devices": 8, "link": "switch", "link_bytes_per_s": 450000000000, "nics": 8, "nic_bytes_per_s": 50000000000},
    {"nodes": 1, "devices": 4, "link": "pairs", "link_bytes_per_s": 56250000000, "nics": 0, "nic_bytes_per_s": null}
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
    {"name": "mlp-xs", "kind": "mlp", "layers": 8, "hidden": 512, "heads": null, "kv_heads": null, "head_dim": null, "ffn": null, "vocab": null, "positions": null, "experts": null, "topk": null, "source": "DistIR examples: 8 x 512"},
