## long: .ci/run has it without sanitizers
## heddle plan --auto: a split for every operator, and the best hybrid beside it.
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x4 v100' --strategy 'tp=4 mb=1 recompute=none' --auto -o auto.plan
model    gpt2:layers=2
weights  f32
dropout  none; with it more activations are kept (docs/commands.md)
machine  1x4 v100
ranks    4
batch    8
step     training

function  instr  operator       node             weights         split                        extent
layer         1  layernorm      layer/attention  ln1.g, ln1.b    a, dimension 0 of operand 0       8
layer         2  matmul         layer/attention  attn.qkv        a, dimension 0 of operand 0       8
layer         3  add            layer/attention  attn.qkv.bias   a, dimension 0 of operand 0       8
layer         4  split          layer/attention                  b, dimension 0 of operand 0       8
layer         5  reshape        layer/attention                  a, dimension 0 of operand 0       8
layer         6  reshape        layer/attention                  a, dimension 0 of operand 0       8
layer         7  reshape        layer/attention                  a, dimension 0 of operand 0       8
layer         8  scale          layer/attention                  a, dimension 0 of operand 0       8
layer         9  einsum         layer/attention                  b, dimension 0 of operand 0       8
layer        14  where          layer/attention                  a, dimension 0 of operand 1       8
layer        15  softmax        layer/attention                  a, dimension 0 of operand 0       8
layer        16  einsum         layer/attention                  b, dimension 0 of operand 0       8
layer        17  reshape        layer/attention                  a, dimension 0 of operand 0       8
layer        18  matmul         layer/attention  attn.out        a, dimension 0 of operand 0       8
layer        19  add            layer/attention  attn.out.bias   a, dimension 0 of operand 0       8
layer        20  add            layer/attention                  a, dimension 0 of operand 0       8
layer        21  layernorm      layer/mlp        ln2.g, ln2.b    a, dimension 0 of operand 0       8
layer        22  matmul         layer/mlp        mlp.up          a, dimension 0 of operand 0       8
layer        23  add            layer/mlp        mlp.up.bias     a, dimension 0 of operand 0       8
layer        24  gelu           layer/mlp                        a, dimension 0 of operand 0       8
layer        25  matmul         layer/mlp        mlp.down        a, dimension 0 of operand 0       8
layer        26  add            layer/mlp        mlp.down.bias   a, dimension 0 of operand 0       8
layer        27  add            layer/mlp                        a, dimension 0 of operand 0       8
main          2  gather         embedding        wpe             b, dimension 1 of operand 0     768
main          3  gather         embedding        wte             a, dimension 0 of operand 0  50,257
main          4  add            embedding                        a, dimension 0 of operand 0       8
main          7  layernorm      norm             ln_f.g, ln_f.b  a, dimension 0 of operand 0       8
main          8  einsum         head             wte             v, dimension 0 of operand 1  50,257
main          9  cross_entropy  head                             as its operand

                      strategy               time         samples    memory
automatic             dp=1 tp=4 pp=1     68.87 ms  1.00x  116.2/s  1.24 GiB
hybrid, same degrees  dp=1 tp=4 pp=1 sp  71.45 ms  1.04x  112.0/s  1.20 GiB
hybrid, any degrees   dp=1 tp=4 pp=1 sp  71.45 ms  1.04x  112.0/s  1.20 GiB

             computes 96.8 % of the time, communicates 3.2 %, idles 0.0 %
certificate  hybrids searched: 4; degrees split by dynamic programming: 1; of them simulated, by their estimates: 1
$ grep -c 'whole: true' auto.plan; head -2 auto.plan | tail -1; grep '^name' auto.plan
0
heddle-plan: 1
name: "auto dp=1 tp=4 pp=1"
$ heddle verify gpt2:layers=2 --batch 8 --train --plan auto.plan | grep verdict
verdict    equal: the plan computes what the model computes, at the extents given above
$ heddle sim gpt2:layers=2 --batch 8 --train --plan auto.plan --machine '1x4 v100' | grep 'time per step'
time per step   68.87 ms
$ heddle plan mlp-xs:layers=2 --batch 64 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --json
{
  "model": "mlp-xs:layers=2",
  "parameter_dtypes": "f32",
  "machine": "1x2 v100",
  "ranks": 2,
  "batch": 64,
  "train": true,
  "automatic": false,
  "plans": [
    {"plan": "answer", "strategy": "dp=1 tp=2 pp=1", "time_ps": 140163488, "period_ps": 140163488, "times_best": 1, "samples_per_s": 456609.6414495621, "peak_bytes": 2425344},
    {"plan": "hybrid, same degrees", "strategy": "dp=1 tp=2 pp=1", "time_ps": 140163488, "period_ps": 140163488, "times_best": 1, "samples_per_s": 456609.6414495621, "peak_bytes": 2425344},
    {"plan": "hybrid, any degrees", "strategy": "dp=1 tp=2 pp=1", "time_ps": 140163488, "period_ps": 140163488, "times_best": 1, "samples_per_s": 456609.6414495621, "peak_bytes": 2425344}
  ],
  "split_by": null,
  "hybrids": 12,
  "degrees": 3,
  "degrees_equal": 1,
  "simulated": 2,
  "too_large": 0,
  "host_too_large": 0,
  "ruled_out": 0,
  "inexact": 0,
  "method": "both",
  "chains": 0,
  "chains_better": 0
}
## The better one is the answer.
$ heddle plan gpt2 --batch 8 --train --machine '1x4 v100' --strategy 'mb=1 zero=0 recompute=none' --auto | tail -8

                      strategy               time         samples    memory
automatic             dp=1 tp=4 pp=1     204.5 ms  1.00x  39.12/s  3.38 GiB
hybrid, same degrees  dp=1 tp=4 pp=1 sp  220.0 ms  1.08x  36.36/s  3.14 GiB
hybrid, any degrees   dp=4 tp=1 pp=1     205.0 ms  1.00x  39.02/s  3.49 GiB

             computes 96.2 % of the time, communicates 3.8 %, idles 0.0 %
certificate  hybrids searched: 15; degrees split by dynamic programming: 2; of them simulated, by their estimates: 2
## Constraints.
$ printf 'rules:\n  - {op: matmul, letters: [n, k], whole: never}\n  - {op: layernorm, whole: only}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --constraints r.yaml | grep 'matmul\|layernorm'
layer         1  layernorm      layer/attention  ln1.g, ln1.b    whole
layer         2  matmul         layer/attention  attn.qkv        n, dimension 1 of operand 1       4
layer        18  matmul         layer/attention  attn.out        k, dimension 2 of operand 0       4
layer        21  layernorm      layer/mlp        ln2.g, ln2.b    whole
layer        22  matmul         layer/mlp        mlp.up          n, dimension 1 of operand 1     256
layer        25  matmul         layer/mlp        mlp.down        k, dimension 2 of operand 0     256
main          7  layernorm      norm             ln_f.g, ln_f.b  whole
$ printf 'rules:\n  - {node: "*", degrees: [4]}\n  - {node: "layer:15", recompute: true}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'dp=2 tp=2 mb=1 recompute=none' --auto --constraints r.yaml -o auto.plan | grep -c whole
29
$ grep -A1 recompute: auto.plan
recompute:
  - {in: layer, instr: 15, op: softmax}
## Markov chains: with as many threads as there are, the same seed gives the same plan.
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 zero=0' --auto --method mcmc --proposals 2000 --seed 5 -o p.plan | tail -8
automatic             dp=1 tp=2 pp=1  879.6 us  1.00x  9,095/s  2.08 MiB
hybrid, same degrees  dp=1 tp=2 pp=1  1.062 ms  1.21x  7,532/s  1.20 MiB
hybrid, any degrees   dp=1 tp=2 pp=1  1.062 ms  1.21x  7,532/s  1.20 MiB

answer       its split is of Markov chains
             nothing is split over tp=2: its ranks all do the same work, so --devices 1 does as much
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %
certificate  hybrids searched: 12; degrees split by Markov chains: 3 (2,000 proposals a function, seed 5); of them simulated, by their estimates: 3
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 zero=0' --auto --method mcmc --proposals 2000 --seed 5 --threads 1 -o q.plan | tail -1
certificate  hybrids searched: 12; degrees split by Markov chains: 3 (2,000 proposals a function, seed 5); of them simulated, by their estimates: 3
$ sed 1d p.plan >p; sed 1d q.plan | cmp p -
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 zero=0' --auto --method exact -o q.plan | tail -8
                      strategy            time         samples    memory
automatic             dp=1 tp=2 pp=1  879.6 us  1.00x  9,095/s  2.08 MiB
hybrid, same degrees  dp=1 tp=2 pp=1  1.062 ms  1.21x  7,532/s  1.20 MiB
hybrid, any degrees   dp=1 tp=2 pp=1  1.062 ms  1.21x  7,532/s  1.20 MiB

             nothing is split over tp=2: its ranks all do the same work, so --devices 1 does as much
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %
certificate  hybrids searched: 12; degrees split by dynamic programming: 3; of them simulated, by their estimates: 3
$ heddle verify gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan p.plan | grep verdict
verdict    equal: the plan computes what the model computes
## They join in where the dynamic program gives up states, and keep to rules.
$ heddle plan alphafold2:layers=1,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=8 --batch 4 --seq 8 --train --machine '1x2 v100' --strategy 'dp=1 tp=2 pp=1 mb=1 zero=0 recompute=none' --auto --proposals 3000 | tail -4
answer       its split is of the dynamic program: Markov chains found none that is better
             nothing is split over tp=2: its ranks all do the same work, so --devices 1 does as much
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %
certificate  hybrids searched: 4; degrees split by dynamic programming: 1 (not exact, for too many states: 1; by Markov chains too: 1, better: 0, 3,000 proposals a function, seed 0); of them simulated, by their estimates: 1
$ heddle plan alphafold2:layers=1,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=8 --batch 4 --seq 8 --train --machine '1x2 v100' --strategy 'dp=1 tp=2 pp=1 mb=1 zero=0 recompute=none' --auto --method exact | tail -1
certificate  hybrids searched: 4; degrees split by dynamic programming: 1 (not exact, for too many states: 1); of them simulated, by their estimates: 1
$ printf 'rules:\n  - {op: matmul, letters: [n, k], whole: never}\n  - {op: layernorm, whole: only}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --method mcmc --proposals 2000 --constraints r.yaml | grep 'matmul\|layernorm'
layer         1  layernorm      layer/attention  ln1.g, ln1.b    whole
layer         2  matmul         layer/attention  attn.qkv        n, dimension 1 of operand 1       4
layer        18  matmul         layer/attention  attn.out        k, dimension 2 of operand 0       4
layer        21  layernorm      layer/mlp        ln2.g, ln2.b    whole
layer        22  matmul         layer/mlp        mlp.up          n, dimension 1 of operand 1     256
layer        25  matmul         layer/mlp        mlp.down        k, dimension 2 of operand 0     256
main          7  layernorm      norm             ln_f.g, ln_f.b  whole
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --method mcmc --proposals 2000 --json | tail -15
  "split_by": "mcmc",
  "hybrids": 12,
  "degrees": 3,
  "degrees_equal": 0,
  "simulated": 3,
  "too_large": 0,
  "host_too_large": 0,
  "ruled_out": 0,
  "inexact": 3,
  "method": "mcmc",
  "chains": 3,
  "chains_better": 0,
  "proposals": 2000,
  "seed": 0
}
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 zero=0 recompute=none' --auto --method mcmc --proposals 20000 --memory-limit 2MB | grep '^automatic'
automatic             dp=1 tp=2 pp=1  922.9 us  1.00x  8,668/s  1.58 MiB
$ heddle plan mlp-xs --batch 64 --train --machine '1x2 v100' --auto --method mcm
error[E0801]: unknown method `mcm`: exact, mcmc or both
  hint: did you mean `mcmc`?
[2]
$ heddle plan mlp-xs --batch 64 --train --machine '1x2 v100' --auto --method exact --seed 3
error[E0801]: --seed is of Markov chains, which --method exact does without
  hint: --method mcmc
[2]
$ heddle plan mlp-xs --batch 64 --train --machine '1x2 v100' --proposals 3
error[E0801]: --proposals is for --auto
  hint: add --auto
[2]
$ heddle plan mlp-xs --batch 64 --train --machine '1x2 v100' --auto --proposals 0
error[E0801]: --proposals must be an integer, 1 or more; got '0'
[2]
## Choices that are about something else than splits: automatic plans have them, too.
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100 pcie=16GB/s hostmem=64GiB' --strategy 'zero=0 recompute=none mb=2 dp=2 tp=2 offload=params+grads+states+acts' --auto -o a.plan | grep '^automatic'
automatic             dp=2 tp=2 pp=1 mb=2 offload=params+grads+states+acts  4.482 ms  1.00x  1,785/s  3.06 MiB
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan a.plan | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100 pcie=16GB/s hostmem=64GiB' --strategy 'zero=0 recompute=none mb=2 dp=2 tp=2 materialise=p2p' --auto -o a.plan | grep '^automatic'
automatic             dp=2 tp=2 pp=1 mb=2 materialise=p2p  4.145 ms  1.00x  1,930/s  4.98 MiB
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan a.plan | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100 pcie=16GB/s hostmem=64GiB' --strategy 'zero=0 recompute=none mb=2 dp=2 tp=2 sync=ps' --auto -o a.plan | grep '^automatic'
automatic             dp=2 tp=2 pp=1 mb=2 sync=ps  3.638 ms  1.00x  2,199/s  3.90 MiB
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan a.plan | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100 pcie=16GB/s hostmem=64GiB' --strategy 'zero=0 recompute=none mb=2 pp=2 tp=2 schedule=zb-v overlap=none' --auto -o a.plan | grep '^automatic'
automatic             dp=1 tp=2 pp=2 mb=2 v=2 schedule=zb-v overlap=none  2.259 ms  1.00x  3,541/s  3.91 MiB
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan a.plan | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine '1x4 v100 pcie=16GB/s hostmem=64GiB' --strategy 'zero=0 recompute=none mb=2 pp=2 tp=2 v=2 schedule=interleaved' --auto -o a.plan | grep '^automatic'
automatic             dp=1 tp=2 pp=2 mb=2 v=2 schedule=interleaved  2.378 ms  1.00x  3,364/s  3.99 MiB
$ heddle verify gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --plan a.plan | grep verdict
verdict    equal: the plan computes what the model computes
## What hybrids split over the axis is theirs alone; what no automatic plan has is refused.
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'tp=4 zero=0 recompute=none mb=1 sp' --auto | grep '^automatic\|^hybrid'
automatic             dp=1 tp=4 pp=1     1.630 ms  1.00x  4,907/s  3.52 MiB
hybrid, same degrees  dp=1 tp=4 pp=1 sp  2.546 ms  1.56x  3,142/s   956 KiB
hybrid, any degrees   dp=1 tp=4 pp=1 sp  2.546 ms  1.56x  3,142/s   956 KiB
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'tp=4 coshard=2' --auto
error[E0509]: coshard=2 does not go with --auto: parts are cut before operators are split
  --> --strategy:1:6
   1 | tp=4 coshard=2
     |      ^
  hint: coshard=1, or leave out --auto
[2]
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'tp.stages=2/4 pp=2' --auto
error[E0509]: tp.stages=2/4 does not go with --auto: splits are of operators, over one axis of one degree
  --> --strategy:1:1
   1 | tp.stages=2/4 pp=2
     | ^
  hint: tp.stages=equal, or leave out --auto
[2]
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'replicas=2x1+2x1' --auto
error[E0509]: replicas=2x1+2x1 does not go with --auto: splits are of operators, over one axis of one degree
  --> --strategy:1:1
   1 | replicas=2x1+2x1
     | ^
  hint: replicas=none, or leave out --auto
[2]
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'tp=4 mb=1 coshard=1,2 zero=0 recompute=none' --auto | grep '^automatic\|^hybrid'
automatic             dp=1 tp=4 pp=1  1.630 ms  1.00x  4,907/s  3.52 MiB
hybrid, same degrees  dp=1 tp=4 pp=1  1.940 ms  1.19x  4,124/s  1.33 MiB
hybrid, any degrees   dp=1 tp=4 pp=1  1.940 ms  1.19x  4,124/s  1.33 MiB
## What is wrong with them.
$ printf 'rules:\n  - {op: matmull, letters: [n]}\n  - {node: atn.qkv, whole: only}\n  - {op: matmul, letters: [q]}\n  - {op: softmax, letters: [c, d]}\n' >bad.yaml
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100' --auto --constraints bad.yaml
error[E0513]: unknown operator `matmull`
  --> bad.yaml:2:10
   2 |   - {op: matmull, letters: [n]}
     |          ^
  hint: did you mean `matmul`?
error[E0513]: no operator of the model is called `atn.qkv`
  --> bad.yaml:3:12
   3 |   - {node: atn.qkv, whole: only}
     |            ^
  hint: the nearest is `attn.qkv`
error[E0513]: matmul has no letter `q`
  --> bad.yaml:4:28
   4 |   - {op: matmul, letters: [q]}
     |                            ^
  hint: letters that may be split: a m k n
error[E0513]: softmax must have d whole
  --> bad.yaml:5:32
   5 |   - {op: softmax, letters: [c, d]}
     |                                ^
  hint: letters that may be split: a b c
[1]
$ printf 'rules:\n  - {op: matmul, dims: [[1, 5]]}\n  - {op: matmul, dims: [[4, 0]]}\n  - {op: matmul, dims: [1]}\n  - {op: matmul, whole: neve}\n  - {op: matmul, letter: [n]}\n  - {op: matmul}\n  - {whole: only}\n  - {op: conv, whole: only}\n' >bad.yaml
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100' --auto --constraints bad.yaml
error[E0513]: dimension 5: operand 1 of matmul has 2 dimensions, from 0
  --> bad.yaml:2:29
   2 |   - {op: matmul, dims: [[1, 5]]}
     |                             ^
error[E0513]: operand 4: matmul has 2 operands, from 0
  --> bad.yaml:3:26
   3 |   - {op: matmul, dims: [[4, 0]]}
     |                          ^
error[E0513]: a dimension is [OPERAND, DIMENSION], both from 0
  --> bad.yaml:4:25
   4 |   - {op: matmul, dims: [1]}
     |                         ^
  hint: dims: [[1, 0], [1, 1]]
error[E0513]: `whole` is one of: may, never, only
  --> bad.yaml:5:25
   5 |   - {op: matmul, whole: neve}
     |                         ^
  hint: did you mean `never`?
error[E0513]: unknown key `letter`
  --> bad.yaml:6:18
   6 |   - {op: matmul, letter: [n]}
     |                  ^
  hint: did you mean `letters`?
error[E0513]: the rule allows everything: it says neither letters, dims, degrees, whole nor recompute
  --> bad.yaml:7:5
   7 |   - {op: matmul}
     |     ^
error[E0513]: a rule says what it is about: `op` or `node`
  --> bad.yaml:8:5
   8 |   - {whole: only}
     |     ^
error[E0513]: the model has no conv
  --> bad.yaml:9:10
   9 |   - {op: conv, whole: only}
     |          ^
  hint: `heddle plan --auto` without --constraints lists the operators with their functions, nodes and weights; * stands for anything
[1]
$ printf 'rule: 1\n' >bad.yaml
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100' --auto --constraints bad.yaml
error[E0513]: unknown key `rule`
  --> bad.yaml:1:1
   1 | rule: 1
     | ^
  hint: did you mean `rules`?
[1]
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100' --auto --constraints none.yaml
error[E0101]: cannot read 'none.yaml': No such file or directory
[1]
$ printf 'rules:\n  - {op: matmul, letters: [], whole: never}\n' >r.yaml
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100' --auto --constraints r.yaml
error[E0513]: matmul, layer:2: `whole: never` says that it is split, but no letter is left to split it over
  --> r.yaml:2:38
   2 |   - {op: matmul, letters: [], whole: never}
     |                                      ^
  note: the other one
    --> r.yaml:2:27
     2 |   - {op: matmul, letters: [], whole: never}
       |                           ^
  hint: whole: may
[1]
## degrees that no plan of these devices has
$ printf 'rules:\n  - {op: matmul, degrees: [3]}\n  - {op: softmax, degrees: []}\n  - {op: gelu, degrees: [3, 4]}\n' >r.yaml
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x4 v100' --auto --constraints r.yaml
error[E0513]: no plan of 4 devices has a tensor degree of 3
  --> r.yaml:2:27
   2 |   - {op: matmul, degrees: [3]}
     |                           ^
  hint: degrees: [2, 4], or to leave it unsplit whole: only
error[E0513]: `degrees` lists none, so nothing may be split
  --> r.yaml:3:28
   3 |   - {op: softmax, degrees: []}
     |                            ^
  hint: degrees: [2, 4], or to leave it unsplit whole: only
[1]
$ heddle plan gpt2:layers=2 --batch 8 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 1
error[E0513]: no plan of 1 device has a tensor degree of 3
  --> r.yaml:2:27
   2 |   - {op: matmul, degrees: [3]}
     |                           ^
  hint: whole: only
error[E0513]: `degrees` lists none, so nothing may be split
  --> r.yaml:3:28
   3 |   - {op: softmax, degrees: []}
     |                            ^
  hint: whole: only
error[E0513]: no plan of 1 device has a tensor degree of 3, 4
  --> r.yaml:4:25
   4 |   - {op: gelu, degrees: [3, 4]}
     |                         ^
  hint: whole: only
[1]
$ echo 'rules: [{op: matmul, degrees: [8]}]' >r.yaml; heddle plan gpt2:layers=2 --batch 8 --train --machine '1x2 v100 ib=100Gb/s + 1x2 a100 ib=100Gb/s' --auto --constraints r.yaml
error[E0513]: no plan of 4 devices has a tensor degree of 8
  --> r.yaml:1:31
   1 | rules: [{op: matmul, degrees: [8]}]
     |                               ^
  hint: degrees: any from 2 to 4, or to leave it unsplit whole: only
[1]
$ heddle plan gpt2 --machine '1x2 v100' --constraints r.yaml
error[E0801]: --constraints is for --auto
  hint: add --auto
[2]
$ heddle plan mlp-xs --batch 64 --train --machine '1x2 v100' --auto --part 1/2 -o part1.json
error[E0801]: --auto is not dealt out in parts: it needs the best hybrid of the whole search
  hint: leave out --part; machines may have a degree each: --strategy 'tp=2', --strategy 'tp=4'
[2]
$ heddle plan gpt2 --machine '1x2 v100' --auto --why tp=2
error[E0801]: --why does not go with --auto
  hint: leave out one of them
[2]
## Which dimensions, at which degrees, what is computed again: each rule alone.
$ printf 'rules:\n  - {op: matmul, dims: [[1, 1]], whole: never}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' | grep matmul
layer         2  matmul         layer/attention  attn.qkv        n, dimension 1 of operand 1       4
layer        18  matmul         layer/attention  attn.out        n, dimension 1 of operand 1      64
layer        22  matmul         layer/mlp        mlp.up          n, dimension 1 of operand 1     256
layer        25  matmul         layer/mlp        mlp.down        n, dimension 1 of operand 1      64
$ printf 'rules:\n  - {op: matmul, dims: [[1, 0]], whole: never}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' | grep matmul
layer         2  matmul         layer/attention  attn.qkv        k, dimension 2 of operand 0      64
layer        18  matmul         layer/attention  attn.out        k, dimension 2 of operand 0       4
layer        22  matmul         layer/mlp        mlp.up          k, dimension 2 of operand 0      64
layer        25  matmul         layer/mlp        mlp.down        k, dimension 2 of operand 0     256
$ printf 'rules:\n  - {op: matmul, degrees: [2], letters: [n]}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' | grep matmul
layer         2  matmul         layer/attention  attn.qkv        whole
layer        18  matmul         layer/attention  attn.out        whole
layer        22  matmul         layer/mlp        mlp.up          whole
layer        25  matmul         layer/mlp        mlp.down        whole
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'tp=4 mb=1 recompute=none' | grep matmul
layer         2  matmul         layer/attention  attn.qkv        whole
layer        18  matmul         layer/attention  attn.out        whole
layer        22  matmul         layer/mlp        mlp.up          whole
layer        25  matmul         layer/mlp        mlp.down        whole
## gelu keeps 8 x 16 x 256 numbers of 4 bytes a layer, of two layers: 256 KiB less where it is computed again.
$ printf 'rules:\n  - {op: gelu, whole: only}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' --json | grep -o '"plan": "automatic".*peak_bytes": [0-9]*' | grep -o '[0-9]*$'
2177024
$ printf 'rules:\n  - {op: gelu, whole: only, recompute: true}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' --json | grep -o '"plan": "automatic".*peak_bytes": [0-9]*' | grep -o '[0-9]*$'
2014208
## What can be met by nothing, and the nearest that works.
$ printf 'rules:\n  - {op: matmul, letters: [m], whole: never}\n  - {op: matmul, letters: [n], whole: never}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none'
error[E0513]: matmul, layer:2: `whole: never` says that it is split, but no letter is left to split it over
  --> r.yaml:3:27
   3 |   - {op: matmul, letters: [n], whole: never}
     |                           ^
  note: the other one
    --> r.yaml:2:27
     2 |   - {op: matmul, letters: [m], whole: never}
       |                           ^
  hint: whole: may
[1]
$ sed -i 's/\[n\]/[m]/' r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --devices 2 --strategy 'tp=2 mb=1 recompute=none' | grep matmul
layer         2  matmul         layer/attention  attn.qkv        m, dimension 1 of operand 0      16
layer        18  matmul         layer/attention  attn.out        m, dimension 1 of operand 0      16
layer        22  matmul         layer/mlp        mlp.up          m, dimension 1 of operand 0      16
layer        25  matmul         layer/mlp        mlp.down        m, dimension 1 of operand 0      16
$ printf 'rules:\n  - {op: gelu, letters: [a], whole: never}\n' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'tp=4 mb=8 recompute=none'
error[E0513]: the rules leave gelu, layer:24, no way to be computed by 4 ranks
  --> r.yaml:2:5
   2 |   - {op: gelu, letters: [a], whole: never}
     |     ^
  hint: letters: [b, c], or whole: may
[1]
## whole and sum in plan files.
$ heddle plan mlp-xs:layers=2 --batch 64 --train --machine '1x2 v100' --strategy 'tp=2 mb=1 dp=1' -o p.plan | head -1
model         mlp-xs:layers=2
$ sed 's/^trans:/trans:\n  - {in: layer, instr: 2, axis: tp, sum: true}/' p.plan >q.plan; heddle sim mlp-xs:layers=2 --batch 64 --train --plan q.plan --machine '1x2 v100' | grep error; heddle show mlp-xs:layers=2 | tail -5
error[E0501]: relu is not linear: no sum over tp passes through it
  --> q.plan:12:5
  12 |   - {in: layer, instr: 2, axis: tp, sum: true}
     |     ^
  hint: `whole: true` takes the sum before it
layer      2             2  262 thousand   269 MFLOP         100.0 %

operator  count      FLOPs   share
matmul        2  537 MFLOP  99.9 %
relu          2  524 kFLOP   0.1 %
$ sed 's/^trans:/trans:\n  - {in: layer, instr: 2, axis: tp, whole: true, sum: true}/' p.plan >q.plan; heddle sim mlp-xs:layers=2 --batch 64 --train --plan q.plan --machine '1x2 v100'
error[E0501]: an instruction is `whole` over an axis or passes a `sum`
  --> q.plan:12:55
  12 |   - {in: layer, instr: 2, axis: tp, whole: true, sum: true}
     |                                                       ^
[1]
$ sed 's/^trans:/trans:\n  - {in: layer, instr: 2, axis: tp, whole: true, dim: 1}/' p.plan >q.plan; heddle sim mlp-xs:layers=2 --batch 64 --train --plan q.plan --machine '1x2 v100'
error[E0501]: `whole` splits no dimension: it takes no `dim`
  --> q.plan:12:55
  12 |   - {in: layer, instr: 2, axis: tp, whole: true, dim: 1}
     |                                                       ^
[1]
$ sed 's/^trans:/trans:\n  - {in: layer, instr: 2, axis: tp, whole: true}/' p.plan >q.plan; heddle verify mlp-xs:layers=2 --batch 64 --train --plan q.plan | grep verdict
verdict    equal: the plan computes what the model computes
## A product of two sums is not the sum of products: one of both passes.
$ printf 'func @main(%%x: f32[64,256], %%w0: f32[256,64] weight, %%w1: f32[256,64] weight) -> (f32[64,64]) {\n  %%v1 = matmul %%x, %%w0\n  %%v2 = matmul %%x, %%w1\n  %%v3 = mul %%v1, %%v2\n  return %%v3\n}\n' >two.heddle; heddle plan two.heddle --machine '1x2 v100' --strategy 'tp=2 dp=1 mb=1' -o two.plan | head -1
model         two.heddle
$ sed '/^  - {in: main/d; s/^trans:/trans:\n  - {in: main, instr: 1, axis: tp, operand: 0, dim: 1}\n  - {in: main, instr: 2, axis: tp, operand: 0, dim: 1}\n  - {in: main, instr: 3, axis: tp, sum: true}/' two.plan >q.plan; heddle verify two.heddle --plan q.plan | grep verdict
verdict    equal: the plan computes what the model computes
## States of the optimizer are counted as it has them: four times the weights with Adam in f32, hardly any with Adafactor.
$ echo 'rules: [{op: matmul, whole: may}]' >may.yaml; heddle plan gpt3-xl --batch 2 --seq 128 --train --machine '1x2 a100' --auto --strategy "dp=1 tp=2 pp=1 mb=1 zero=0 recompute=none" --optimizer adam --memory-limit 12.5GiB --constraints may.yaml | grep ^automatic
warning[W0506]: no --dtype given: gpt3-xl is trained in f32, in which a100 has 19.5 TFLOP/s; in bf16 it has 312
  --> gpt3-xl
  hint: --dtype bf16
automatic             dp=1 tp=2 pp=1  105.2 ms  1.00x  19.01/s  10.2 GiB
$ heddle plan gpt3-xl --batch 2 --seq 128 --train --machine '1x2 a100' --auto --strategy "dp=1 tp=2 pp=1 mb=1 zero=0 recompute=none" --optimizer adafactor --memory-limit 8GiB --constraints may.yaml | grep ^automatic
warning[W0506]: no --dtype given: gpt3-xl is trained in f32, in which a100 has 19.5 TFLOP/s; in bf16 it has 312
  --> gpt3-xl
  hint: --dtype bf16
automatic             dp=1 tp=2 pp=1  111.5 ms  1.00x  17.93/s  5.28 GiB
## Rules that cannot both hold: each pair once, with both lines.
$ printf 'rules:\n  - op: matmul\n    degrees: [2]\n    whole: never\n  - {op: layernorm, whole: only}\n  - {node: "layer:1", whole: never}\n  - {node: "layer:18", letters: [k]}\n  - {node: "layer:18", dims: [[1, 1]]}\n  - {node: "layer:20", letters: [], whole: never}\n  - {op: softmax, recompute: true}\n  - {node: "layer:15", recompute: false}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --constraints r.yaml
error[E0513]: layernorm, layer:1: `whole: never` and `whole: only` cannot both hold
  --> r.yaml:6:30
   6 |   - {node: "layer:1", whole: never}
     |                              ^
  note: the other one
    --> r.yaml:5:28
     5 |   - {op: layernorm, whole: only}
       |                            ^
  hint: leave out one of both
error[E0513]: matmul, layer:2: `degrees` leaves it whole at other degrees, but `whole: never` says that it is split
  --> r.yaml:4:12
   4 |     whole: never
     |            ^
  note: the other one
    --> r.yaml:3:14
     3 |     degrees: [2]
       |              ^
  hint: whole: may
error[E0513]: softmax, layer:15: one rule has it computed again, another one not
  --> r.yaml:11:35
  11 |   - {node: "layer:15", recompute: false}
     |                                   ^
  note: the other one
    --> r.yaml:10:30
    10 |   - {op: softmax, recompute: true}
       |                              ^
  hint: leave out one of both
error[E0513]: matmul, layer:18: `whole: never` says that it is split, but no letter is left to split it over
  --> r.yaml:8:30
   8 |   - {node: "layer:18", dims: [[1, 1]]}
     |                              ^
  note: the other one
    --> r.yaml:7:33
     7 |   - {node: "layer:18", letters: [k]}
       |                                 ^
  hint: whole: may
error[E0513]: add, layer:20: `whole: never` says that it is split, but no letter is left to split it over
  --> r.yaml:9:44
   9 |   - {node: "layer:20", letters: [], whole: never}
     |                                            ^
  note: the other one
    --> r.yaml:9:33
     9 |   - {node: "layer:20", letters: [], whole: never}
       |                                 ^
  hint: whole: may
[1]
## What can hold with anything: letters, dims and degrees that leave nothing, where nothing says that it is split.
$ printf 'rules:\n  - {op: matmul, letters: [m], degrees: [4]}\n  - {op: matmul, letters: [n], dims: [[1, 0]]}\n  - {op: matmul, whole: only, recompute: false}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy 'dp=2 tp=2 mb=1' --auto --constraints r.yaml | grep matmul
layer         2  matmul         layer/attention  attn.qkv        whole
layer        18  matmul         layer/attention  attn.out        whole
layer        22  matmul         layer/mlp        mlp.up          whole
layer        25  matmul         layer/mlp        mlp.down        whole
## An operator between others of its kind has a way of its own.
$ printf 'rules:\n  - {op: gelu, whole: only}\n  - {node: "layer:23", letters: [b], whole: never}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'tp=2 mb=1' --auto --constraints r.yaml | grep 'layer  *2[34]'
layer        23  add            layer/mlp        mlp.up.bias     b, dimension 1 of operand 0      16
layer        24  gelu           layer/mlp                        whole
## Where rules allow that nothing is split, plans without a tensor axis keep them.
$ printf 'rules:\n  - {op: softmax, whole: only}\n  - {op: gelu, recompute: true}\n' >r.yaml
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x2 v100' --strategy 'mb=1' --auto --constraints r.yaml -o auto.plan | tail -9
                      strategy            time         samples    memory
automatic             dp=1 tp=1 pp=2  842.0 us  1.00x  9,501/s  1.26 MiB
hybrid, same degrees  dp=1 tp=1 pp=2  829.8 us  0.99x  9,640/s  1.26 MiB
hybrid, any degrees   dp=1 tp=1 pp=2  829.8 us  0.99x  9,640/s  1.26 MiB

answer       without a tensor axis: the rules allow that nothing is split, and no split is faster
             rules are of automatic plans: hybrids do not ask them, and are shown to compare with
             computes 52.8 % of the time, communicates 1.3 %, idles 46.0 %
certificate  hybrids searched: 27; degrees split by dynamic programming: 3; of them simulated, by their estimates: 4
$ grep -A2 recompute: auto.plan
recompute:
  - {in: layer, instr: 24, op: gelu}
send-stream: pp
## Stages as they were said.
$ for l in equal cost whale auto 1/3; do heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --strategy "dp=1 tp=2 pp=2 mb=2 zero=0 recompute=none layers=$l" --auto | grep '^automatic'; done
automatic             dp=1 tp=2 pp=2 mb=2 layers=equal  2.679 ms  1.00x  2,986/s  2.60 MiB
automatic             dp=1 tp=2 pp=2 mb=2  2.679 ms  1.00x  2,986/s  2.60 MiB
automatic             dp=1 tp=2 pp=2 mb=2 layers=whale  2.679 ms  1.00x  2,986/s  2.60 MiB
automatic             dp=1 tp=2 pp=2 mb=2 layers=2/2   2.679 ms  1.00x  2,986/s  2.60 MiB
automatic             dp=1 tp=2 pp=2 mb=2 layers=1/3  3.021 ms  1.00x  2,649/s  2.27 MiB
## One key, one meaning: `time_ps` is of one step alone and `period_ps` of steps that follow each other, in every table as `sim` has them.
$ set -- gpt2:layers=4,hidden=256,heads=8,vocab=1000 --batch 8 --seq 64 --train --optimizer adam --machine '1x4 v100' --json; step() { grep -oE '"(time|period)_ps": [0-9]+' | paste -sd ' ' | grep -oE '"time_ps": [0-9]+ "period_ps": [0-9]+|"period_ps": [0-9]+ "time_ps": [0-9]+' | sort | uniq -c; }; heddle sim "$@" --strategy 'dp=2 pp=2 mb=4' | step; heddle plan "$@" --auto --strategy 'dp=2 pp=2 mb=4' | step; heddle plan "$@" --what-if --strategy 'dp=2 pp=2 mb=4 schedule=1f1b,gems recompute=none zero=0' | step
      1 "period_ps": 5476692741 "time_ps": 5489924683
      3 "time_ps": 5489924683 "period_ps": 5476692741
      1 "time_ps": 4606881563 "period_ps": 4593649621
      1 "time_ps": 5178192007 "period_ps": 5178192007
      8 "time_ps": 5489924683 "period_ps": 5476692741
      2 "time_ps": 8378400301 "period_ps": 8378400301
## Hosts that have no room for what an automatic plan offloads: with 4 MiB a hybrid is the answer, with 2 MiB there is none.
$ for h in 64 4 2; do heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --optimizer adam --machine "1x4 v100 pcie=16GB/s hostmem=${h}MiB" --auto --strategy 'dp=1 tp=2 pp=2 mb=2 offload=states recompute=none zero=0' 2>&1 | grep -E '^(automatic|answer  ) .*dp=|^error'; done
automatic             dp=1 tp=2 pp=2 mb=2 offload=states layers=2/2  2.752 ms  1.00x  2,907/s  2.60 MiB
answer                dp=1 tp=2 pp=2 mb=2 offload=states  3.136 ms  1.00x  2,551/s  1.44 MiB
error[E0506]: no plan can run: of 4, 4 too large for 1.00 MiB of host memory
## What ZeRO 3 shards counts by the shard where degrees are left out for their weights.
$ heddle plan gpt2-large --batch 4 --seq 128 --train --optimizer adam --machine '1x4 v100' --strategy 'dp=2 tp=2 pp=1 mb=1 zero=3 recompute=full' --memory-limit 3.5GB --auto | grep '^certificate'
certificate  hybrids searched: 4; degrees split by dynamic programming: 1; of them simulated, by their estimates: 1
## Degrees whose plan is that of others take no place among the twelve that are simulated; before, the best of these was not.
$ heddle plan tests/convs.heddle --train --optimizer adam --machine '1x4 v100' --auto | sed -n '/^  *strategy/,$p'
                      strategy            time          samples    memory
automatic             dp=1 tp=4 pp=1  185.3 us  1.00x  86,327/s  1.41 MiB
hybrid, same degrees  dp=1 tp=4 pp=1  224.6 us  1.21x  71,249/s  1.14 MiB
hybrid, any degrees   dp=1 tp=1 pp=4  222.8 us  1.20x  71,802/s  1.28 MiB

             nothing is split over tp=4: its ranks all do the same work, so --devices 1 does as much
             computes 100.0 % of the time, communicates 0.0 %, idles 0.0 %
certificate  hybrids searched: 411; degrees split by dynamic programming: 51, of them equal to another: 34, ruled out as slower by the estimate: 27; of them simulated, by their estimates: 12
## Devices that the answer leaves out are named, and of how many plans the report speaks.
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 12 --seq 16 --train --machine '1x3 v100 + 1x2 a100 ib=1Gb/s' --auto --strategy 'mb=1 zero=0 recompute=none' | sed -n '/^  *strategy/,$p'
                      strategy                   time          samples    memory
answer                dp=1 tp=1 pp=2 skip=3  653.1 us  1.00x  18,375/s  1.60 MiB
hybrid, same degrees  dp=1 tp=1 pp=2 skip=3  653.1 us  1.00x  18,375/s  1.60 MiB
hybrid, any degrees   dp=1 tp=1 pp=2 skip=3  653.1 us  1.00x  18,375/s  1.60 MiB

answer       a hybrid: none of the 8 automatic plans that were simulated is faster
             uses 2 of the machine's 5 ranks: 0-2 are not used
             computes 52.3 % of the time, communicates 1.6 %, idles 46.1 %
certificate  hybrids searched: 54; degrees split by dynamic programming: 9, of them equal to another: 1; of them simulated, by their estimates: 8
