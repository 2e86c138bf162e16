## long: .ci/run has it without sanitizers
## What scopes cover inside repeated blocks, and what they cannot (docs/annotations.md).
## One layer of several that share a function: the whole layer can be covered, a part of it cannot.
$ printf 'heddle-annotate: 1\ndefault: {replicate: all}\nscopes: [{match: "h.2.attn.*", split: all}]\n' > a.yaml; heddle sim gpt2:layers=4 --batch 16 --annotate a.yaml --machine '1x2 v100'
error[E0512]: `h.2.attn.*` does not cover the same of layers 0 and 2, which share function `layer` with 2 more
  --> a.yaml:3:18
   3 | scopes: [{match: "h.2.attn.*", split: all}]
     |                  ^
  note: here in the model
    --> gpt2: layer
  hint: a split inside a function is of all its calls: match: 'h.*.attn.*'
[1]
$ sed -i 's/h.2.attn/h.*.attn/' a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 2 | sed -n '2p;7p'
plan       default: replicate(2), h.*.attn.*: split inside
verdict    equal: the plan computes what the model computes
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{layers: 0-1, replicate: 2, scopes: [{match: "*.mlp.*", split: 2}]}]\n' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 4
error[E0512]: `*.mlp.*` does not cover the same of layers 0 and 2, which share function `layer` with 2 more
  --> a.yaml:3:55
   3 | scopes: [{layers: 0-1, replicate: 2, scopes: [{match: "*.mlp.*", split: 2}]}]
     |                                                       ^
  note: here in the model
    --> gpt2: layer
  hint: a split inside a function is of all its calls: match: '*.mlp.*', outside `layers 0-1`
[1]
## Layers on other devices are apart: the split is of the layers around it alone.
$ sed -i 's/default: {replicate: 2}/default: {replicate: 1}/' a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --train --annotate a.yaml --devices 3 | sed -n '2p;7p'
plan       default: replicate(1), layers 0-1: replicate(2), *.mlp.*: split inside
verdict    equal: the plan computes what the model computes
## Functions that call functions.
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: "*.a.*", split: 2}]\n' > a.yaml; heddle verify tests/pairs.heddle --train --annotate a.yaml --devices 2
error[E0512]: `*.a.*` does not cover the same in all calls of function `layer`
  --> a.yaml:3:18
   3 | scopes: [{match: "*.a.*", split: 2}]
     |                  ^
  note: here in the model
    --> tests/pairs.heddle:14:9
    14 |   %10 = call @pair(%x, %p.0.a.w, %p.0.a.u, %p.0.b.w, %p.0.b.u) : f32[8,16]
       |         ^
  hint: a split inside a function is of all its calls; whole layers: layers: "0"
[1]
$ sed -i 's/\*\.a\.\*/*.u/' a.yaml; heddle verify tests/pairs.heddle --train --annotate a.yaml --devices 2 | sed -n '2p;7p'
plan       default: replicate(2), *.u: split inside
verdict    equal: the plan computes what the model computes
## Scopes that overlap inside a block.
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: h.0.attn.*, split: all}, {match: h.1.attn.*, split: all}]\n' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --annotate a.yaml --devices 2
error[E0512]: scopes `h.0.attn.*` and `h.1.attn.*` overlap: both cover instruction 2 of function `layer`, which its calls share (matmul)
  --> a.yaml:3:51
   3 | scopes: [{match: h.0.attn.*, split: all}, {match: h.1.attn.*, split: all}]
     |                                                   ^
  note: the other scope
    --> a.yaml:3:18
     3 | scopes: [{match: h.0.attn.*, split: all}, {match: h.1.attn.*, split: all}]
       |                  ^
  note: here in the model
    --> gpt2: layer/attention
  hint: one scope for all: match: 'h.*.attn.*'
[1]
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: "*up*", split: 2}, {op: matmul, split: 2}]\n' > a.yaml; heddle verify gpt2:layers=4,hidden=32,heads=2,vocab=64 --batch 8 --seq 8 --annotate a.yaml --devices 2
error[E0512]: scopes `*up*` and `matmul` overlap: both cover instruction 22 of function `layer`, which its calls share (matmul)
  --> a.yaml:3:42
   3 | scopes: [{match: "*up*", split: 2}, {op: matmul, split: 2}]
     |                                          ^
  note: the other scope
    --> a.yaml:3:18
     3 | scopes: [{match: "*up*", split: 2}, {op: matmul, split: 2}]
       |                  ^
  note: here in the model
    --> gpt2: layer/mlp
  hint: leave out one of them, or name in it what the other does not cover
[1]
## Imported blocks: each layer has the places of its own nodes, and a call is not covered by that of its first one.
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: "*/mlp/*", split: 2}]\n' > a.yaml; heddle sim examples/gpt2.onnx --batch 4 --dim sequence=8 --annotate a.yaml --machine '1x2 v100' 2>/dev/null | sed -n '2p;/^task graph/,/^$/p'
plan           default: replicate(2), */mlp/*: split inside
task graph  strategy      covers                                         virtual devices
default     replicate(2)  instructions 1-18, layers 0-11                 {0,1}
*/mlp/*     split(2)      instructions 29-45 of block, inside `default`  {0,1}

$ sed -i 's#\*/mlp/#*h.3/mlp/#' a.yaml; heddle sim examples/gpt2.onnx --batch 4 --dim sequence=8 --annotate a.yaml --machine '1x2 v100' 2>&1 | sed 1,2d
error[E0512]: `*h.3/mlp/*` does not cover the same of layers 0 and 3, which share function `block` with 10 more
  --> a.yaml:3:18
   3 | scopes: [{match: "*h.3/mlp/*", split: 2}]
     |                  ^
  note: here in the model
    --> examples/gpt2.onnx: torch_jit//h.0/ln_1/LayerNormalization
  hint: a split inside a function is of all its calls: match: '*h.*/mlp/*'
$ printf 'heddle-annotate: 1\ndefault: {replicate: 2}\nscopes: [{match: "*h.1/*", split: 2}]\n' > a.yaml; heddle sim examples/gpt2.onnx --batch 4 --dim sequence=8 --annotate a.yaml --machine '1x4 v100' 2>/dev/null | sed -n '2p;/^task graph/,/^$/p'
plan           default: replicate(2), *h.1/*: split(2)
task graph  strategy      covers                                    virtual devices
default     replicate(2)  instructions 1-5,7-18, layers among 0-11  {0,1}
*h.1/*      split(2)      instructions 6, layer 1                   {2,3}

$ sed -i 's#\*h.1/#*ln_#' a.yaml; heddle sim examples/gpt2.onnx --batch 4 --dim sequence=8 --annotate a.yaml --machine '1x4 v100' 2>&1 | sed 1,2d
error[E0502]: split of `*ln_*`: no matmul with a weight can be split over tp=2
  --> a.yaml:3:34
   3 | scopes: [{match: "*ln_*", split: 2}]
     |                                  ^
  note: here in the model
    --> examples/gpt2.onnx
