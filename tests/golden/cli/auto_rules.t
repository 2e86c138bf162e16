## Constraints of automatic plans: the example of docs/auto.md, and names in models whose layers are calls of one function.
$ sed -n '/^```yaml/,/^```/p' tests/../docs/auto.md | grep -v '```' >rules.yaml; heddle plan gpt3-xl --batch 32 --train --dtype f16 --machine '1x4 a100' --auto --constraints rules.yaml -o auto.plan | grep 'softmax\|einsum\|mlp\|qkv \|^automatic'
layer         2  matmul         attn.qkv        n, dimension 1 of operand 1      16
layer         9  einsum                         whole
layer        15  softmax                        whole
layer        16  einsum                         whole
layer        22  matmul         mlp.up          k, dimension 2 of operand 0   2,048
layer        23  add            mlp.up.bias     sum passes
layer        25  matmul         mlp.down        k, dimension 2 of operand 0   8,192
layer        26  add            mlp.down.bias   sum passes
main         30  einsum         wte             s, dimension 1 of operand 0   2,048
automatic             dp=2 tp=2 pp=1 mb=2     1.331 s  1.00x  24.04/s  44.1 GiB
$ heddle plan gpt3-xl --batch 32 --train --dtype f16 --machine '1x4 a100' --auto --constraints rules.yaml --strategy 'dp=1 tp=4 pp=1 mb=1' | grep 'softmax\|einsum\|mlp\|qkv \|^automatic'
layer         2  matmul         attn.qkv        n, dimension 1 of operand 1      16
layer         9  einsum                         h, dimension 2 of operand 0      16
layer        15  softmax                        whole
layer        16  einsum                         whole
layer        22  matmul         mlp.up          k, dimension 2 of operand 0   2,048
layer        23  add            mlp.up.bias     sum passes
layer        25  matmul         mlp.down        k, dimension 2 of operand 0   8,192
layer        26  add            mlp.down.bias   sum passes
main         30  einsum         wte             s, dimension 1 of operand 0   2,048
automatic             dp=1 tp=4 pp=1 recompute=selective  2.658 s  1.00x  12.04/s  35.7 GiB
$ grep -A1 recompute: auto.plan
recompute:
  - {in: layer, instr: 24, op: gelu}
## A name that one layer has binds it alone, but layers are split alike.
$ for n in '*h.0/*' '*h.7/mlp*' '*h.1*' 'h.2.mlp.c_fc.weight' 'torch_jit//h.1?/ln_1*'; do printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --strategy 'tp=4 mb=1 recompute=none' --auto --constraints r.yaml 2>&1 | sed 1,2d; done
error[E0513]: `*h.0/*` matches layernorm in 1 of 12 calls of block, which are split alike: a rule holds for all of them
  --> r.yaml:1:16
   1 | rules: [{node: '*h.0/*', whole: only}]
     |                ^
  hint: node: "*h.*/*"
error[E0513]: `*h.7/mlp*` matches reshape in 1 of 12 calls of block, which are split alike: a rule holds for all of them
  --> r.yaml:1:16
   1 | rules: [{node: '*h.7/mlp*', whole: only}]
     |                ^
  hint: node: "*h.*/mlp*"
error[E0513]: `*h.1*` matches layernorm in 3 of 12 calls of block, which are split alike: a rule holds for all of them
  --> r.yaml:1:16
   1 | rules: [{node: '*h.1*', whole: only}]
     |                ^
  hint: node: "*h.**"
error[E0513]: `h.2.mlp.c_fc.weight` matches matmul in 1 of 12 calls of block, which are split alike: a rule holds for all of them
  --> r.yaml:1:16
   1 | rules: [{node: 'h.2.mlp.c_fc.weight', whole: only}]
     |                ^
  hint: node: "h.*.mlp.c_fc.weight"
error[E0513]: `torch_jit//h.1?/ln_1*` matches layernorm in 2 of 12 calls of block, which are split alike: a rule holds for all of them
  --> r.yaml:1:16
   1 | rules: [{node: 'torch_jit//h.1?/ln_1*', whole: only}]
     |                ^
  hint: node: "block:1"
$ for n in '*h.*/mlp*' '*h.**' 'h.*.mlp.c_fc.weight' '*h.*/mlp/c_f?/*'; do echo "$n"; printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --strategy 'tp=4 mb=1 recompute=none' --auto --constraints r.yaml 2>&1 | grep 'block.*matmul.*mlp\|^error'; done
*h.*/mlp*
block        30  matmul         mlp.c_fc.weight         whole
block        43  matmul         mlp.c_proj.weight       whole
*h.**
block        30  matmul         mlp.c_fc.weight         whole
block        43  matmul         mlp.c_proj.weight       whole
h.*.mlp.c_fc.weight
block        30  matmul         mlp.c_fc.weight         whole
block        43  matmul         mlp.c_proj.weight       k, dimension 1 of operand 0   3,072
*h.*/mlp/c_f?/*
block        30  matmul         mlp.c_fc.weight         whole
block        43  matmul         mlp.c_proj.weight       k, dimension 1 of operand 0   3,072
## Degrees, and nodes of a built-in model.
$ printf 'rules: [{op: softmax, degrees: [2]}]' >r.yaml; for d in 2 4; do heddle plan gpt2:layers=2 --batch 8 --train --machine '1x4 v100' --auto --constraints r.yaml --devices $d --strategy "tp=$d mb=1 recompute=none" | grep softmax; done
layer        15  softmax                        a, dimension 0 of operand 0       8
layer        15  softmax                        whole
$ printf 'rules: [{op: matmul, node: layer/mlp, letters: [m], whole: never}]' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy "tp=4 mb=1 recompute=none" | grep matmul
layer         2  matmul         attn.qkv        whole
layer        18  matmul         attn.out        whole
layer        22  matmul         mlp.up          m, dimension 1 of operand 0      16
layer        25  matmul         mlp.down        m, dimension 1 of operand 0      16
## Names in the table, nodes of all calls, and what is nearest to a pattern that matches nothing.
$ heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --strategy 'dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none' | grep 'matmul'
$ for n in '*/c_fx/MatMul' '*h.*/nlp/*' c_fc block/c_fc h.12.ln_1.weight '*h.77/mlp/c_fc*' zzzzzzzz; do echo "$n"; printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'dp=1 tp=4 pp=1 mb=1' 2>&1 | grep 'error\|hint'; done
$ printf "rules: [{op: matmul, replicas: [2]}, {op: matmul, wide: x}, {op: matmul, letter: [n]}]" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --constraints r.yaml
## The text of an import keeps the names of all calls.
$ heddle import examples/gpt2.onnx --dim batch=4 --dim sequence=8 -o gpt2.heddle; for n in '*h.0/mlp*' '*h.7/mlp*' '*h.*/mlp*'; do printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan gpt2.heddle --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none' 2>&1 | grep 'error\|hint\|c_fc'; done
