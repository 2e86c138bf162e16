## long: .ci/run has it without sanitizers
## Constraints of automatic plans: the example of docs/auto.md, and names in models whose layers are calls of one function.
$ sed -n '/^```yaml/,/^```/p' tests/../docs/auto.md | grep -v '```' >rules.yaml; heddle plan gpt3-xl --batch 32 --train --dtype f16 --machine '1x4 a100' --auto --constraints rules.yaml -o auto.plan | grep 'softmax\|einsum\|mlp\|qkv \|^automatic'
warning[W0508]: wte of gpt3-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt3-xl
  hint: --vocab 50264
layer         2  matmul         layer/attention  attn.qkv        n, dimension 1 of operand 1      16
layer         9  einsum         layer/attention                  whole
layer        15  softmax        layer/attention                  whole
layer        16  einsum         layer/attention                  whole
layer        21  layernorm      layer/mlp        ln2.g, ln2.b    b, dimension 1 of operand 0   2,048
layer        22  matmul         layer/mlp        mlp.up          k, dimension 2 of operand 0   2,048
layer        23  add            layer/mlp        mlp.up.bias     sum passes
layer        24  gelu           layer/mlp                        c, dimension 2 of operand 0   8,192
layer        25  matmul         layer/mlp        mlp.down        k, dimension 2 of operand 0   8,192
layer        26  add            layer/mlp        mlp.down.bias   sum passes
layer        27  add            layer/mlp                        b, dimension 1 of operand 0   2,048
main         30  einsum         head             wte             s, dimension 1 of operand 0   2,048
automatic             dp=2 tp=2 pp=1 mb=2     1.331 s  1.00x  24.04/s  43.3 GiB
$ heddle plan gpt3-xl --batch 32 --train --dtype f16 --machine '1x4 a100' --auto --constraints rules.yaml --strategy 'dp=1 tp=4 pp=1 mb=1' | grep 'softmax\|einsum\|mlp\|qkv \|^automatic'
warning[W0508]: wte of gpt3-xl has an extent of 50257 in f16: its matmuls are slower on a100 than simulated, as 50257 is not a multiple of 8
  --> gpt3-xl
  hint: --vocab 50264
layer         2  matmul         layer/attention  attn.qkv        n, dimension 1 of operand 1      16
layer         9  einsum         layer/attention                  h, dimension 2 of operand 0      16
layer        15  softmax        layer/attention                  whole
layer        16  einsum         layer/attention                  whole
layer        21  layernorm      layer/mlp        ln2.g, ln2.b    b, dimension 1 of operand 0   2,048
layer        22  matmul         layer/mlp        mlp.up          k, dimension 2 of operand 0   2,048
layer        23  add            layer/mlp        mlp.up.bias     sum passes
layer        24  gelu           layer/mlp                        c, dimension 2 of operand 0   8,192
layer        25  matmul         layer/mlp        mlp.down        k, dimension 2 of operand 0   8,192
layer        26  add            layer/mlp        mlp.down.bias   sum passes
layer        27  add            layer/mlp                        b, dimension 1 of operand 0   2,048
main         30  einsum         head             wte             s, dimension 1 of operand 0   2,048
automatic             dp=1 tp=4 pp=1 recompute=selective  2.658 s  1.00x  12.04/s  31.3 GiB
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
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         whole
block        43  matmul         torch_jit//h.*/mlp/c_proj/Gemm          mlp.c_proj.weight       whole
*h.**
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         whole
block        43  matmul         torch_jit//h.*/mlp/c_proj/Gemm          mlp.c_proj.weight       whole
h.*.mlp.c_fc.weight
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         whole
block        43  matmul         torch_jit//h.*/mlp/c_proj/Gemm          mlp.c_proj.weight       k, dimension 1 of operand 0   3,072
*h.*/mlp/c_f?/*
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         whole
block        43  matmul         torch_jit//h.*/mlp/c_proj/Gemm          mlp.c_proj.weight       k, dimension 1 of operand 0   3,072
## Degrees, and nodes of a built-in model.
$ printf 'rules: [{op: softmax, degrees: [2]}]' >r.yaml; for d in 2 4; do heddle plan gpt2:layers=2 --batch 8 --train --machine '1x4 v100' --auto --constraints r.yaml --devices $d --strategy "tp=$d mb=1 recompute=none" | grep softmax; done
layer        15  softmax        layer/attention                  a, dimension 0 of operand 0       8
layer        15  softmax        layer/attention                  whole
$ printf 'rules: [{op: matmul, node: layer/mlp, letters: [m], whole: never}]' >r.yaml; heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 16 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy "tp=4 mb=1 recompute=none" | grep matmul
layer         2  matmul         layer/attention  attn.qkv        whole
layer        18  matmul         layer/attention  attn.out        whole
layer        22  matmul         layer/mlp        mlp.up          m, dimension 1 of operand 0      16
layer        25  matmul         layer/mlp        mlp.down        m, dimension 1 of operand 0      16
## Names in the table, nodes of all calls, and what is nearest to a pattern that matches nothing.
$ printf "rules: [{op: softmax, whole: only}]\n" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'dp=1 tp=4 pp=1 mb=1' 2>&1 | grep 'matmul'
block         3  matmul         torch_jit//h.*/attn/c_attn/Gemm         attn.c_attn.weight      n, dimension 1 of operand 1      64
block        13  matmul         torch_jit//h.*/attn/MatMul                                      k, dimension 3 of operand 0      64
block        20  matmul         torch_jit//h.*/attn/MatMul_1                                    n, dimension 3 of operand 1      64
block        24  matmul         torch_jit//h.*/attn/c_proj/Gemm         attn.c_proj.weight      k, dimension 1 of operand 0      64
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         n, dimension 1 of operand 1   3,072
block        43  matmul         torch_jit//h.*/mlp/c_proj/Gemm          mlp.c_proj.weight       k, dimension 1 of operand 0   3,072
$ for n in '*/c_fx/Gemm' '*h.*/nlp/*' c_fc block/c_fc h.12.ln_1.weight '*h.77/mlp/c_fc*' zzzzzzzz; do echo "$n"; printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'dp=1 tp=4 pp=1 mb=1' 2>&1 | grep 'error\|hint'; done
*/c_fx/Gemm
error[E0513]: no operator of the model is called `*/c_fx/Gemm`
  hint: the nearest is `torch_jit//h.*/mlp/c_fc/Gemm`
*h.*/nlp/*
error[E0513]: no operator of the model is called `*h.*/nlp/*`
  hint: the nearest is `torch_jit//h.*/mlp/c_fc/Reshape`
c_fc
error[E0513]: no operator of the model is called `c_fc`
  hint: the nearest is `torch_jit//h.*/mlp/c_fc/Reshape`
block/c_fc
error[E0513]: no operator of the model is called `block/c_fc`
  hint: the nearest is `torch_jit//h.*/mlp/c_fc/Reshape`
h.12.ln_1.weight
error[E0513]: no operator of the model is called `h.12.ln_1.weight`
  hint: the nearest is `ln_1.weight`
*h.77/mlp/c_fc*
error[E0513]: no operator of the model is called `*h.77/mlp/c_fc*`
  hint: the nearest is `torch_jit//h.*/mlp/c_fc/Reshape`
zzzzzzzz
error[E0513]: no operator of the model is called `zzzzzzzz`
  hint: `heddle plan --auto` without --constraints lists the operators with their functions, nodes and weights; * stands for anything
$ printf "rules: [{op: matmul, replicas: [2]}, {op: matmul, wide: x}, {op: matmul, letter: [n]}]" >r.yaml; heddle plan examples/gpt2.onnx --batch 4 --dim sequence=8 --train --machine '1x4 v100' --auto --constraints r.yaml
warning[W0101]: external data: 1 file is not there, `examples/gpt2.bin` first: weights have no elements
  --> examples/gpt2.onnx: wte.weight
error[E0513]: unknown key `replicas`
  --> r.yaml:1:22
   1 | rules: [{op: matmul, replicas: [2]}, {op: matmul, wide: x}, {op: matmul, letter: [n]}]
     |                      ^
  hint: did you mean `degrees`?
error[E0513]: unknown key `wide`
  --> r.yaml:1:51
   1 | rules: [{op: matmul, replicas: [2]}, {op: matmul, wide: x}, {op: matmul, letter: [n]}]
     |                                                   ^
  hint: did you mean `node`?
error[E0513]: unknown key `letter`
  --> r.yaml:1:74
   1 | rules: [{op: matmul, replicas: [2]}, {op: matmul, wide: x}, {op: matmul, letter: [n]}]
     |                                                                          ^
  hint: did you mean `letters`?
[1]
## The text of an import keeps the names of all calls.
$ heddle import examples/gpt2.onnx --dim batch=4 --dim sequence=8 -o gpt2.heddle; for n in '*h.0/mlp*' '*h.7/mlp*' '*h.*/mlp*'; do printf "rules: [{node: '$n', whole: only}]\n" >r.yaml; heddle plan gpt2.heddle --train --machine '1x4 v100' --auto --constraints r.yaml --strategy 'dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none' 2>&1 | grep 'error\|hint\|c_fc/Gemm'; done
warning[W0101]: external data: 1 file is not there, `examples/gpt2.bin` first: weights have no elements
  --> examples/gpt2.onnx: wte.weight
error[E0513]: `*h.0/mlp*` matches reshape in 1 of 12 calls of block, which are split alike: a rule holds for all of them
  hint: node: "*h.*/mlp*"
error[E0513]: `*h.7/mlp*` matches reshape in 1 of 12 calls of block, which are split alike: a rule holds for all of them
  hint: node: "*h.*/mlp*"
block        30  matmul         torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.weight         whole
block        31  add            torch_jit//h.*/mlp/c_fc/Gemm            mlp.c_fc.bias           whole
