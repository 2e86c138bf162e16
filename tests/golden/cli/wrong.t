## Wrong usage: status 2.
$ heddle
error[E0801]: no command given
  hint: `heddle help` lists the commands
[2]
$ heddle shwo gpt2
error[E0801]: unknown command 'shwo'
  hint: did you mean `heddle show`?
[2]
$ heddle frobnicate
error[E0801]: unknown command 'frobnicate'
  hint: `heddle help` lists the commands
[2]
$ heddle show
error[E0801]: `heddle show` needs MODEL
  hint: `heddle show --list` lists the built-in models
[2]
$ heddle show gpt2 gpt3
error[E0801]: `heddle show`: unexpected argument 'gpt3'
  hint: `heddle show --help` explains it
[2]
$ heddle show gpt2 --bacth 3
error[E0801]: `heddle show` has no option --bacth
  hint: did you mean --batch?
[2]
$ heddle show gpt2 --batch
error[E0801]: --batch needs a value: --batch N
[2]
$ heddle show gpt2 --batch=0
error[E0801]: --batch must be an integer, 1 or more; got '0'
[2]
$ heddle show gpt2 --batch 1e6
error[E0801]: --batch must be an integer, 1 or more; got '1e6'
[2]
$ heddle show gpt2 --json=yes
error[E0801]: --json takes no value
[2]
$ heddle show gpt2 --machine dgx-2
error[E0801]: --machine does not apply to `heddle show`
  hint: `heddle show --help` lists the options
[2]
$ heddle show gpt2 -x
error[E0801]: `heddle show` has no option -x
  hint: `heddle show --help` explains it
[2]
$ heddle show gpt2 --dim batch
error[E0801]: --dim: 'batch' is not NAME=N
  hint: --dim batch=8
[2]
$ heddle import gpt2 --lr fast --train
error[E0801]: --lr must be a number; got 'fast'
[2]
$ heddle help shw
error[E0801]: unknown command 'shw'
  hint: did you mean `heddle show`?
[2]
## Wrong input: status 1.
$ heddle show gpt3-17b
error[E0115]: `gpt3-17b` is neither a file nor a built-in model
  hint: did you mean `gpt3-13b`?
[1]
$ heddle show gpt2:layers=two
error[E0115]: `gpt2:layers=two`: cannot use `layers=two`
  note: gpt2 has layers, hidden, heads, head_dim, ffn, vocab, positions
  hint: give each field an integer above 0, such as `gpt2:layers=2,hidden=256`
[1]
$ heddle show gpt2:hidden=100
error[E0502]: gpt2: hidden=100, but heads 12 x head_dim 8 = 96
  hint: a multiple of the heads: gpt2:hidden=96
[1]
$ heddle show nothing.heddle
error[E0101]: cannot read 'nothing.heddle': No such file or directory
[1]
$ heddle show gpt2 --dtype f12
error[E0801]: --dtype: 'f12' is not a floating-point type
  hint: f16, bf16, f32 or f64
[2]
$ heddle import gpt2 --train --optimizer adamm
error[E0801]: unknown optimizer 'adamm'
  hint: sgd, momentum, adam, adamw or adafactor
[2]
$ heddle import mlp-xs -o no/such/folder/x.heddle
error[E0102]: cannot write 'no/such/folder/x.heddle': No such file or directory
  hint: mkdir -p no/such/folder
[1]
$ heddle ops mamtul
error[E0801]: unknown operator 'mamtul'
  hint: did you mean 'matmul'?
  hint: `heddle ops` lists them
[2]
$ heddle explain E9999
error[E0801]: unknown diagnostic code 'E9999'
  hint: `heddle explain` lists them
[2]
$ heddle machines dgx-3
error[E0601]: 'dgx-3' is neither a file nor a preset
  --> --machine:1:1
   1 | dgx-3
     | ^
  hint: did you mean dgx-1? `heddle machines` lists the presets
[1]
$ heddle machines DGX_H100
error[E0601]: 'DGX_H100' is neither a file nor a preset
  --> --machine:1:1
   1 | DGX_H100
     | ^
  hint: did you mean dgx-h100? `heddle machines` lists the presets
[1]
$ heddle plan gpt2 --machine dgx_a100
error[E0601]: 'dgx_a100' is neither a file nor a preset
  --> --machine:1:1
   1 | dgx_a100
     | ^
  hint: did you mean dgx-a100-80? `heddle machines` lists the presets
[1]
$ heddle sim gpt2 --machine A100-80GB
error[E0601]: 'A100-80GB' is neither a file nor a preset
  --> --machine:1:1
   1 | A100-80GB
     | ^
  hint: a100-80gb is a kind of device; a machine of them is '1x8 a100-80gb'
[1]
$ heddle machines "v100-16gb*2"
error[E0601]: 'v100-16gb' is neither a file nor a preset
  --> --machine:1:1
   1 | v100-16gb*2
     | ^
  hint: v100-16gb is a kind of device; a machine of them is '1x2 v100-16gb'
[1]
$ heddle machines dgx-v100
error[E0601]: 'dgx-v100' is neither a file nor a preset
  --> --machine:1:1
   1 | dgx-v100
     | ^
  hint: v100 is a kind of device; a machine of them is '1x8 v100', or the preset v100-32-50g-eth
[1]
$ heddle machines "2x8xH100-SXM usable=70GB"
error[E0601]: '2x8xH100-SXM' is neither a file nor a preset
  --> --machine:1:1
   1 | 2x8xH100-SXM usable=70GB
     | ^
  hint: h100 is a kind of device; a machine of them is '2x8 h100', or the preset dgx-h100
[1]
$ heddle machines "2x8 A100-PCIE-40GB"
error[E0601]: unknown device 'A100-PCIE-40GB'
  --> --machine:1:5
   1 | 2x8 A100-PCIE-40GB
     |     ^
  hint: did you mean 'a100-40gb'?
  hint: define it under devices:, or use one of v100 v100-16gb v100-32gb p100 t4 a40 a10 a100 a100-80gb a100-40gb h100 h100-80gb h200 b200 mi300x cpu-core
[1]
$ heddle machines tpu-v5
error[E0601]: 'tpu-v5' is neither a file nor a preset
  --> --machine:1:1
   1 | tpu-v5
     | ^
  hint: presets: a10-4x4 a40-4x4 dgx-1 dgx-2 dgx-a100-80 dgx-h100 laptop p100-16-50g-eth v100-32-50g-eth; or in one line, as in '2x8 h100 ib=8x400Gb/s'
[1]
## What does not divide: where it is said, with the nearest that does.
$ heddle plan gpt2 --train --batch 40 --machine "1x8 v100 + 1x1 a100 ib=1Gb/s" --strategy "dp=9 dp.shares=5x8/4"
error[E0506]: no plan can run: dp.shares=5x8/4: batch 40 is not divisible by 44, their sum
  --> --strategy:1:6
   1 | dp=9 dp.shares=5x8/4
     |      ^
  hint: dp.shares=5x4/4x5 is nearest to them; or --batch 44, or dp.shares=auto
[1]
$ heddle plan gpt2 --train --batch 32 --machine "1x8 v100" --strategy "dp=8 dp.shares=5x4/4x4"
error[E0506]: no plan can run: dp.shares=5x4/4x4: batch 32 is not divisible by 36, their sum
  --> --strategy:1:6
   1 | dp=8 dp.shares=5x4/4x4
     |      ^
  hint: dp.shares=equal is nearest to them; or --batch 36, or dp.shares=auto
[1]
$ heddle plan gpt2 --train --batch 4 --machine "1x8 v100" --strategy "dp=8 dp.shares=5x4/4x4"
error[E0506]: no plan can run: dp.shares=5x4/4x4: batch 4 is not divisible by 36, their sum
  --> --strategy:1:6
   1 | dp=8 dp.shares=5x4/4x4
     |      ^
  hint: --batch 36, or dp.shares=auto
[1]
$ heddle plan gpt2 --train --batch 32 --machine "1x16 v100" --strategy "pp=3 tp=7"
error[E0509]: tp=7 is impossible on 16 devices: dp x tp x pp must be 16
  --> --strategy:1:6
   1 | pp=3 tp=7
     |      ^
  hint: leave it out, or use more devices
[2]
$ heddle plan gpt2 --train --batch 32 --machine "1x16 v100" --strategy "dp=8 skip=9"
error[E0509]: skip=9 leaves 7 of the machine's 16 devices: dp=8 is impossible on them
  --> --strategy:1:6
   1 | dp=8 skip=9
     |      ^
  hint: skip=8 leaves 8; or other degrees
[2]
$ heddle plan gpt2 --train --batch 32 --machine "1x16 v100" --strategy "dp=3 pp=1 tp=1 skip=11"
error[E0509]: skip=11 leaves 5 of the machine's 16 devices: dp=3 is impossible on them
  --> --strategy:1:16
   1 | dp=3 pp=1 tp=1 skip=11
     |                ^
  hint: skip=13 leaves 3; or other degrees
[2]
$ heddle plan gpt2 --train --batch 32 --machine "1x16 v100" --devices 4 --strategy "dp=8 skip=9"
error[E0509]: dp=8 is impossible on 4 devices: dp x tp x pp must be 4
  --> --strategy:1:1
   1 | dp=8 skip=9
     | ^
  hint: leave it out, or use more devices
[2]
## Presets of one's own are listed, and meant, as those of the library are. One that cannot be read says so and hides no others.
$ mkdir -p own machines; printf 'about: ours\nnodes: {count: 2, devices: 4 a100, nics: 100 Gb/s}\n' > own/team-a100.yaml; echo 'nodes: {devices: 4 a10}' > machines/attic.yaml; echo 'nodes: {devices: 4 a10' > machines/broken.yaml; cp machines/broken.yaml machines/devices.yml; HEDDLE_MACHINES=none:own heddle machines
machine          devices  nodes    memory  about
a10-4x4               16      4  24.0 GiB  4 nodes of 4 x A10 on PCIe
a40-4x4               16      4  48.0 GiB  4 nodes of 4 x A40, joined in pairs by NVLink bridges
attic                  4      1  24.0 GiB
broken                                     error: did not find expected ',' or '}'
dgx-1                  8      1  32.0 GiB  NVIDIA DGX-1, 8 x V100-32GB on a hybrid cube mesh of NVLink
dgx-2                 16      1  32.0 GiB  NVIDIA DGX-2, 16 x V100-32GB behind NVSwitch
dgx-a100-80            8      1  80.0 GiB  NVIDIA DGX A100 640GB, 8 x A100-SXM-80GB behind NVSwitch
dgx-h100               8      1  80.0 GiB  NVIDIA DGX H100, 8 x H100-SXM-80GB behind NVSwitch
laptop                 4      1  4.00 GiB  4 processor cores, one rank each
p100-16-50g-eth        8      1  16.0 GiB  8 x P100-16GB on PCIe, 50 Gb/s Ethernet
team-a100              8      2  80.0 GiB  ours
v100-32-50g-eth        8      1  32.0 GiB  8 x V100-32GB on NVLink, 50 Gb/s Ethernet
$ HEDDLE_MACHINES=own heddle machines tema-a100
error[E0601]: 'tema-a100' is neither a file nor a preset
  --> --machine:1:1
   1 | tema-a100
     | ^
  hint: a100 is a kind of device; a machine of them is '1x8 a100', or the preset dgx-a100-80 or team-a100
[1]
$ HEDDLE_MACHINES=own heddle machines a100
error[E0601]: 'a100' is neither a file nor a preset
  --> --machine:1:1
   1 | a100
     | ^
  hint: a100 is a kind of device; a machine of them is '1x8 a100', or the preset dgx-a100-80 or team-a100
[1]
$ HEDDLE_MACHINES=own heddle machines tpu-v5; rm -r own machines
error[E0601]: 'tpu-v5' is neither a file nor a preset
  --> --machine:1:1
   1 | tpu-v5
     | ^
  hint: presets: a10-4x4 a40-4x4 attic broken dgx-1 dgx-2 dgx-a100-80 dgx-h100 laptop p100-16-50g-eth team-a100 v100-32-50g-eth; or in one line, as in '2x8 h100 ib=8x400Gb/s'
$ heddle machines "2x8 h100 nvlink=450GB"
error[E0602]: link: '450GB' is an amount of bytes; a bandwidth is needed
  --> --machine:1:17
   1 | 2x8 h100 nvlink=450GB
     |                 ^
  hint: write 450 GB/s (bytes) or Gb/s (bits)
[1]
## What begins with the name comes before what is fewer letters away.
$ heddle machines '1x8 a100-80'
error[E0601]: unknown device 'a100-80'
  --> --machine:1:5
   1 | 1x8 a100-80
     |     ^
  hint: did you mean 'a100-80gb'?
  hint: define it under devices:, or use one of v100 v100-16gb v100-32gb p100 t4 a40 a10 a100 a100-80gb a100-40gb h100 h100-80gb h200 b200 mi300x cpu-core
[1]
$ heddle machines '1x8 v100-1'
error[E0601]: unknown device 'v100-1'
  --> --machine:1:5
   1 | 1x8 v100-1
     |     ^
  hint: did you mean 'v100-16gb'?
  hint: define it under devices:, or use one of v100 v100-16gb v100-32gb p100 t4 a40 a10 a100 a100-80gb a100-40gb h100 h100-80gb h200 b200 mi300x cpu-core
[1]
$ heddle machines "2x8 h101"
error[E0601]: unknown device 'h101'
  --> --machine:1:5
   1 | 2x8 h101
     |     ^
  hint: did you mean 'h100'?
  hint: define it under devices:, or use one of v100 v100-16gb v100-32gb p100 t4 a40 a10 a100 a100-80gb a100-40gb h100 h100-80gb h200 b200 mi300x cpu-core
[1]
$ printf 'func @main(%%x: f32[4,8], %%y: f32[4,8]) -> (f32[4,8]) {\n  %%z = matmul %%x, %%y : f32[4,8]\n  return %%z\n}\n' > bad.heddle; heddle show bad.heddle
error[E0301]: matmul: inner extents differ: 8 against 4
  --> bad.heddle:2:8
   2 |   %z = matmul %x, %y : f32[4,8]
     |        ^
  hint: operand 2 has 8 as its last dimension: transpose it first
[1]
$ printf 'func @main(%%x: f32[4,8]) -> (f32[4,8]) {\n  %%z = rleu %%x\n  return %%z\n}\n' > bad.heddle; heddle show bad.heddle
error[E0202]: unknown operator 'rleu'
  --> bad.heddle:2:8
   2 |   %z = rleu %x
     |        ^
  hint: did you mean 'relu'?
[1]
$ heddle show resnet50:heads=2
error[E0115]: `resnet50:heads=2`: cannot use `heads=2`
  note: models of kind resnet have no heads
  note: resnet50 has layers, hidden, vocab, positions
  hint: give each field an integer above 0, such as `resnet50:hidden=64`
[1]
$ heddle show lenet
error[E0115]: `lenet` is neither a file nor a built-in model
  hint: `heddle show --list` lists the built-in models; files end in .onnx or .heddle
[1]
$ heddle show llama
error[E0115]: `llama` is neither a file nor a built-in model
  hint: built-in models whose names begin so: llama2-7b, llama2-13b, llama2-70b, llama3-8b, llama3-70b, llama3-405b
[1]
$ heddle show gpt2:layers=2,layers=3
error[E0115]: `gpt2:layers=2,layers=3`: layers is given twice
[1]
$ heddle lower mlp-xs --data 2 --rank 99999999999
error[E0801]: --rank must be at most 1048576; got 99999999999
[2]
$ heddle show mlp-xs --seq 4
error[E0801]: models of kind mlp do not take --seq: they have no sequence
[2]
$ heddle show resnet50 --headless
error[E0801]: models of kind resnet do not take --headless: they have no projection to a vocabulary
[2]
$ heddle show gpt2 --dtype i64
error[E0801]: --dtype: 'i64' is not a floating-point type
  hint: f16, bf16, f32 or f64
[2]
$ heddle plan gpt2 --machine dgx-2 --zero 1
warning[W0503]: no --batch given: gpt2 has a batch of 8, for 16 devices
  --> gpt2
  hint: --batch 16, or what you train with
error[E0509]: zero=1 applies to training only; this is inference
  --> --strategy:1:1
   1 | zero=1
     | ^
  hint: add --train, or leave out zero
[2]
$ heddle plan gpt2 --machine dgx-2 --train --zero 4
error[E0509]: zero=4 is out of range
  --> --strategy:1:6
   1 | zero=4
     |      ^
  hint: zero takes an integer, 0 to 3
[2]
$ heddle sim gpt2 --machine dgx-2 --optimizer adam
error[E0801]: --optimizer applies to training only; this is inference
  hint: add --train
[2]
$ heddle eval gpt2 --random 1 --gradients
error[E0801]: --gradients applies to training only; this is inference
  hint: add --train
[2]
$ heddle sim gpt2 --machine dgx-2 --train --optimizer adafactor --beta1 0.9
error[E0801]: --beta1 does not apply to the optimizer adafactor
  hint: --optimizer adam or adamw
[2]
$ heddle sim gpt2 --machine dgx-2 --train --momentum 0.9
error[E0801]: --momentum does not apply to the optimizer sgd
  hint: --optimizer momentum
[2]
$ heddle verify gpt2 --data 2 --tolerance 0
error[E0801]: --tolerance must be a number above 0; got '0'
[2]
$ heddle verify gpt2 --data 8 --batch 8 --memory 1kB
error[E0901]: even at the smallest extents that the plan allows, running the model takes 8.0 MB; 0.0 MB are allowed
  --> gpt2
  hint: --memory 9MB, or a model with fewer layers or a smaller batch
[1]
$ heddle explain e0801
E0801 (error): wrong usage of the command line

`heddle COMMAND --help` lists the options of a command.
$ heddle show gpt2 > /dev/full
error[E0102]: cannot write standard output
[1]
$ heddle eval mlp-xs
error[E0801]: `heddle eval` needs inputs
  hint: --random 7, or --inputs DIR with a file NAME.npy for every input
[2]
$ heddle eval mlp-xs --inputs nowhere
error[E0101]: 9 of 9 inputs are not in 'nowhere': x, h.0.w, h.1.w, h.2.w, h.3.w, h.4.w, h.5.w, h.6.w, ...
  hint: each input is a file of its name, such as nowhere/NAME.npy
[1]
$ heddle show examples/distir/fig2_pipeline.heddle --batch 4
error[E0801]: --batch applies to built-in models only; a file has its own
[2]
$ heddle sim gpt2
error[E0801]: --machine is missing
  hint: --machine dgx-2; `heddle machines` lists the presets
[2]
$ heddle sim gpt2 --machine dgx-2 --data 2,4
error[E0509]: dp: one value is needed here, not 2
  --> --strategy:1:1
   1 | data=2,4
     | ^
  hint: several values are for the --strategy of `heddle plan`
[2]
$ heddle sim gpt2 --machine dgx-2 --schedule 2f1b
error[E0509]: schedule: unknown value '2f1b'
  --> --strategy:1:10
   1 | schedule=2f1b
     |          ^
  hint: did you mean schedule=1f1b? It takes gpipe, 1f1b, interleaved, bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, zb-v-half, zb-v-min, dualpipev, chimera, chimera-double, dualpipe, gems, interlaced, interlaced-block, 3f1b, pipedream or pipedream-2bw, or a file whose name ends in .csv
[2]
$ heddle sim gpt2 --machine dgx-2 --data 3
error[E0502]: batch 8 is not divisible by dp=3
  --> gpt2
  hint: choose a batch that is a multiple of 3, or dp.shares=3/3/2
[1]
$ heddle sim gpt2-xl --machine dgx-h100 --batch 8 --tensor 8
error[E0502]: attn.qkv of 1600 x 4800 cannot be split 8 ways: 4800 = 3 x 25 x 64, and 25 is not divisible by 8
  --> gpt2-xl: layer/attention
  hint: tp=5
[1]
$ heddle sim gpt3-xl --machine dgx-2 --train --coshard 3
error[E0502]: coshard=3: 16 heads (attn.out of layer) do not split in 3 parts
  --> --strategy:1:1
   1 | coshard=3
     | ^
  note: they are here
    --> gpt3-xl: layer/attention
  hint: coshard=2
[1]
$ heddle import gpt2:layers=2,hidden=64,heads=8,vocab=64 --batch 4 --seq 8 | sed 's/%attn.out\([^.]\)/%6\1/' >nameless.heddle; heddle sim nameless.heddle --machine dgx-2 --coshard 3
error[E0502]: coshard=3: 8 heads (layer) do not split in 3 parts
  --> --strategy:1:1
   1 | coshard=3
     | ^
  note: they are here
    --> gpt2: layer/attention
  hint: coshard=2
[1]
$ heddle sim gpt3-xl --machine dgx-2 --train --strategy "tp=4 coshard=8"
error[E0502]: coshard=8: 16 heads (attn.out of layer) / tp 4 = 4, which do not split in 8 parts
  --> --strategy:1:6
   1 | tp=4 coshard=8
     |      ^
  note: they are here
    --> gpt3-xl: layer/attention
  hint: coshard=4
[1]
$ heddle sim mlp-xs --machine dgx-2 --train --coshard 2
error[E0501]: coshard=2: no function that main calls has heads or hidden units to split
  --> --strategy:1:1
   1 | coshard=2
     | ^
  hint: leave out coshard; `heddle import` shows the functions of the model
[1]
$ heddle sim gpt2 --machine dgx-2 --tensor 2 --seq 15 --sequence-parallel
error[E0502]: sequence length 15 is not divisible by tp=2
  --> gpt2
  hint: --seq 16, or leave out sp
[1]
$ heddle sim vit-base --machine dgx-2 --tensor 2 --sequence-parallel
error[E0502]: no input has a sequence dimension that every layer keeps; sp cannot split it 2 ways
  --> vit-base
  hint: leave out sp
[1]
$ heddle sim gpt2 --machine dgx-2 --data 32
error[E0502]: batch 8 is not divisible by dp=32
  --> gpt2
  hint: choose a batch that is a multiple of 32
[1]
$ heddle sim gpt2 --machine dgx-2 --pipeline 64
error[E0502]: 64 pipeline stages, but the model has only 13 blocks and matmuls
  --> gpt2
  hint: pp=13 at most
[1]
$ heddle sim gpt2 --machine dgx-2 --data 2 --zero 4
error[E0509]: zero=4 is out of range
  --> --strategy:1:13
   1 | data=2 zero=4
     |             ^
  hint: zero takes an integer, 0 to 3
[2]
$ heddle sim gpt2 --machine dgx-2 --plan nowhere.plan
error[E0101]: cannot read 'nowhere.plan': No such file or directory
[1]
$ printf 'heddle-plan: 1\naxes: {dp: 2}\nmeshes:\n  m: {axes: [dp]}\nsegments:\n  - {from: 1, to: 99, on: m}\norder:\n  - "F0.0"\n' > bad.plan; heddle sim gpt2 --machine dgx-2 --plan bad.plan
error[E0501]: expected a number from 1 to 18, found `99`
  --> bad.plan:6:19
   6 |   - {from: 1, to: 99, on: m}
     |                   ^
[1]
$ printf 'heddle-plan: 1\naxis: {dp: 2}\n' > bad.plan; heddle sim gpt2 --machine dgx-2 --plan bad.plan
error[E0501]: unknown key `axis`
  --> bad.plan:2:1
   2 | axis: {dp: 2}
     | ^
  hint: known keys: heddle-plan name model train axes time meshes segments replicas trans rest batchnorm-groups coshard attention offload prefetch gradient-type recompute input-gradients keep-gradients send-stream send-channels sum-stream buffers schedule group order materialise update
error[E0501]: `axes` is missing
  --> bad.plan:1:1
   1 | heddle-plan: 1
     | ^
[1]
$ heddle plan gpt3-175b --machine laptop --train
error[E0506]: no plan can run: of 132, 108 too large for 3.60 GiB of memory, 24 equal to another
  note: the smallest needs at least 325 GiB on a rank
  hint: use more devices, zero=3, recompute=full, attention=fused or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves activations
[1]
$ heddle plan gpt2 --machine dgx-2 --memory-limit 28GB/s
error[E0602]: --memory-limit: '28GB/s' is a bandwidth; an amount of bytes is needed
  hint: write 28 GiB or GB
[1]
$ heddle plan gpt2 --machine dgx-2 --devices 64
warning[W0503]: no --batch given: gpt2 has a batch of 8, for 64 devices
  --> gpt2
  hint: --batch 64, or what you train with
error[E0501]: --devices 64, but the machine has 16
  hint: --devices 16, or a larger machine
[1]
$ heddle plan gpt2 --machine dgx-2 --costs guess
warning[W0503]: no --batch given: gpt2 has a batch of 8, for 16 devices
  --> gpt2
  hint: --batch 16, or what you train with
error[E0801]: unknown cost model 'guess'
[2]
$ heddle verify mlp-xs
error[E0801]: `heddle verify` needs a plan
  hint: --plan best.plan, or --strategy 'dp=2 tp=2'
[2]
$ head -c 300 /dev/zero > bad.onnx; heddle show bad.onnx
error[E0110]: field number 0
  --> bad.onnx: byte 0
  hint: is it an ONNX file, and whole?
[1]
## Strategies: every mistake has its place.
$ heddle plan mlp-xs --machine laptop --why 'tp=2 pipelien=2'
error[E0509]: unknown choice 'pipelien'
  --> --why:1:6
   1 | tp=2 pipelien=2
     |      ^
  hint: did you mean 'pipeline'?
[2]
$ heddle plan mlp-xs --machine laptop --why 'tp=1,2'
error[E0509]: tp: one value is needed here, not 2
  --> --why:1:1
   1 | tp=1,2
     | ^
  hint: several values are for the --strategy of `heddle plan`
[2]
$ heddle plan mlp-xs --machine laptop --memory-limit 5000000
error[E0602]: --memory-limit: '5000000' has no unit; an amount of bytes is needed
  hint: write 5000000 B
[1]
$ heddle plan mlp-xs --machine laptop --memory-limit 28
error[E0602]: --memory-limit: '28' has no unit; an amount of bytes is needed
  hint: write 28 GiB or GB
[1]
$ heddle plan mlp-xs --machine laptop --memory-limit -1B
error[E0602]: --memory-limit: '-1B' is negative
  hint: write 1B
[1]
$ heddle plan gpt2:layers=4 --batch 16 --seq 128 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=1 replicas=*'
error[E0509]: replicas=* is tried on devices of several kinds; the 4 here are of one
  --> --strategy:1:16
   1 | dp=1 tp=1 pp=1 replicas=*
     |                ^
  hint: leave it out, or say which replicas: replicas=1x1+1x1
[2]
## A strategy says how many devices it has.
$ heddle sim mlp-xs:hidden=8 --batch 8 --strategy dp=4 --machine dgx-2 --devices 2
error[E0509]: --devices 2, but the strategy has 4 ranks
  hint: --devices 4, or a strategy with dp x tp x pp = 2
[2]
$ heddle verify mlp-xs:hidden=8 --batch 8 --strategy dp=4 --machine '1x4 v100' --devices 99
error[E0501]: --devices 99, but the machine has 4
  hint: --devices 4, or a larger machine
[1]
$ heddle sim mlp-xs:hidden=8 --batch 8 --machine dgx-2 --devices 2
error[E0509]: --devices 2, but the strategy has 1 rank
  hint: --devices 1, or a strategy with dp x tp x pp = 2
[2]
$ heddle sim mlp-xs:hidden=8 --batch 8 --strategy dp=4 --machine dgx-2 --devices 4 | sed -n 2p
plan           dp=4 tp=1 pp=1
$ heddle plan mlp-xs --strategy dp=4 --machine '1x4 v100' -o p.yaml >other.txt; heddle sim mlp-xs --plan p.yaml --machine '1x4 v100' --devices 2
error[E0801]: --devices cannot be combined with --plan: the plan file decides it
  hint: leave it out, or edit the plan file (docs/plans.md)
[2]
$ heddle plan mlp-xs --machine laptop --why 'dp=2 tp=3'
error[E0509]: tp=3 is impossible on 4 devices: dp x tp x pp must be 4
  --> --why:1:6
   1 | dp=2 tp=3
     |      ^
  hint: leave it out, or use more devices
[2]
$ heddle plan mlp-xs --machine laptop --why 'tp=4 zero=1'
error[E0509]: zero=1 applies to training only; this is inference
  --> --why:1:6
   1 | tp=4 zero=1
     |      ^
  hint: add --train, or leave out zero
[2]
$ heddle plan mlp-xs --machine laptop --why 'tp=1 sp'
error[E0509]: sp needs tp > 1; no plan of this search has that
  --> --why:1:6
   1 | tp=1 sp
     |      ^
  hint: leave out sp
[2]
$ heddle plan mlp-xs --machine laptop --why ''
error[E0509]: --why: no choices given
  hint: --why 'tp=8 pp=8'
[2]
$ heddle sim mlp-xs --machine laptop --why tp=2
error[E0801]: --why does not apply to `heddle sim`
  hint: `heddle sim --help` lists the options
[2]
$ heddle sim mlp-xs --machine laptop --strategy "dp=2 pipelien=2"
error[E0509]: unknown choice 'pipelien'
  --> --strategy:1:6
   1 | dp=2 pipelien=2
     |      ^
  hint: did you mean 'pipeline'?
[2]
$ heddle sim mlp-xs --machine laptop --strategy "tp=2,pp=2"
error[E0509]: terms have spaces between them, not ','
  --> --strategy:1:5
   1 | tp=2,pp=2
     |     ^
  hint: tp=2 pp=2
[2]
$ heddle plan mlp-xs --machine laptop --strategy "tp=1,2,pp=2; mb=2 , sp"
error[E0509]: terms have spaces between them, not ','
  --> --strategy:1:7
   1 | tp=1,2,pp=2; mb=2 , sp
     |       ^
  hint: tp=1,2 pp=2 mb=2 sp
[2]
$ heddle plan mlp-xs --machine laptop --why "sp,tp=4,,pp=1"
error[E0509]: terms have spaces between them, not ','
  --> --why:1:3
   1 | sp,tp=4,,pp=1
     |   ^
  hint: sp tp=4 pp=1
[2]
$ heddle sim mlp-xs --machine laptop --tensor 2,pipeline=2
error[E0509]: terms have spaces between them, not ','
  --> --strategy:1:9
   1 | tensor=2,pipeline=2
     |         ^
  hint: tensor=2 pipeline=2
[2]
$ printf 'dp=2 # ways\ntp=2,mb=2\n' > two.txt; heddle sim mlp-xs --machine laptop --strategy "$(cat two.txt)"
error[E0509]: terms have spaces between them, not ','
  --> --strategy:2:5
   2 | tp=2,mb=2
     |     ^
  hint: tp=2 mb=2
[2]
$ heddle sim mlp-xs --machine laptop --strategy "dp=2 dp=4"
error[E0509]: dp is given twice
  --> --strategy:1:6
   1 | dp=2 dp=4
     |      ^
  note: here first
    --> --strategy:1:1
     1 | dp=2 dp=4
       | ^
  hint: leave one out; to search several values, write tp=1,2
[2]
$ heddle sim mlp-xs --machine laptop --strategy "dp=2" --data 4
error[E0509]: dp is given twice
  --> --strategy:1:6
   1 | dp=2 data=4
     |      ^
  note: here first
    --> --strategy:1:1
     1 | dp=2 data=4
       | ^
  hint: leave one out; to search several values, write tp=1,2
[2]
$ heddle sim mlp-xs --machine laptop --strategy "dp=2 tp="
error[E0509]: tp: a value is missing
  --> --strategy:1:9
   1 | dp=2 tp=
     |         ^
  hint: tp takes an integer, 1 or more
[2]
$ heddle sim mlp-xs --machine laptop --strategy "tp=two"
error[E0509]: tp: unknown value 'two'
  --> --strategy:1:4
   1 | tp=two
     |    ^
  hint: tp takes an integer, 1 or more
[2]
$ heddle sim mlp-xs --machine laptop --strategy "=2"
error[E0509]: a name is missing before '='
  --> --strategy:1:1
   1 | =2
     | ^
  hint: `heddle choices` lists them, such as dp=2 tp=4
[2]
$ heddle sim mlp-xs --machine laptop --strategy "tp"
error[E0509]: tp: a value is missing
  --> --strategy:1:1
   1 | tp
     | ^
  hint: tp takes an integer, 1 or more
[2]
$ heddle sim mlp-xs --machine laptop --strategy "tp=*"
error[E0509]: tp=*: one value is needed here
  --> --strategy:1:1
   1 | tp=*
     | ^
  hint: several values are for the --strategy of `heddle plan`
[2]
## What convolutions sum over is no sequence.
$ heddle verify resnet50:hidden=8 --batch 4 --seq 32 --train --strategy "tp=2 sp" | sed -n "/^plan/p;/^verdict/p"
plan       dp=1 tp=2 pp=1 sp
verdict    equal: the plan computes what the model computes
$ heddle sim mlp-xs --machine laptop --strategy "sp"
error[E0509]: sp needs tp > 1; got tp=1
  --> --strategy:1:1
   1 | sp
     | ^
  hint: add tp=2, or leave out sp
[2]
$ heddle sim mlp-xs --machine laptop --strategy "pp=2 sp=maybe"
error[E0509]: sp: unknown value 'maybe'
  --> --strategy:1:9
   1 | pp=2 sp=maybe
     |         ^
  hint: sp takes off or on
[2]
$ heddle sim mlp-xs --machine laptop --strategy "tp=2 schedule=gpipe"
error[E0509]: schedule=gpipe needs pp > 1; got pp=1
  --> --strategy:1:6
   1 | tp=2 schedule=gpipe
     |      ^
  hint: add pp=2, or leave out schedule
[2]
$ heddle sim mlp-xs --machine laptop --strategy "overlap=pp"
model          mlp-xs
plan           dp=1 tp=1 pp=1
weights        f32
machine        laptop
ranks          1; the machine's other 3 are not used
time per step  30.08 ms
error bar      unknown: no measured spread for 100.0 % of the step
samples        17,024/s
arithmetic     71.5 GFLOP/s a device, 74.5 % of the f32 peak (MFU)
computes       100.0 %
communicates   0.0 %
idle           0.0 %
peak memory    11.0 MiB of 3.60 GiB on rank 0
instructions   16

place  ranks  computes  communicates   idle  peak memory
    0  0       100.0 %         0.0 %  0.0 %     11.0 MiB

device    ranks  computes  communicates   idle
cpu-core      1   100.0 %         0.0 %  0.0 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0        8.00 MiB        0 B        0 B     1.00 MiB   2.00 MiB            0 B  11.0 MiB

at the peak  function  kind         count     bytes
x            main      activations      1  1.00 MiB
h.0.w        main      parameters       1  1.00 MiB
h.1.w        main      parameters       1  1.00 MiB
h.2.w        main      parameters       1  1.00 MiB
h.3.w        main      parameters       1  1.00 MiB
h.4.w        main      parameters       1  1.00 MiB
... and 4 more

critical path  kind         count      time   share
matmul         computation      8  27.97 ms  93.0 %
relu           computation      8  2.105 ms   7.0 %

what would help   on the path  10 % better
matmul rate          27.96 ms       -9.3 %
memory bandwidth     2.097 ms       -0.7 %
launch latency       16.00 us       -0.0 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)

cost source  count      time    share  spread known
roofline        16  30.08 ms  100.0 %         0.0 %
$ heddle sim mlp-xs --machine laptop --train --strategy "zero=2 tp=2"
error[E0509]: zero=2 needs dp > 1; got dp=1
  --> --strategy:1:1
   1 | zero=2 tp=2
     | ^
  hint: add dp=2, or leave out zero
[2]
$ heddle sim mlp-xs --machine laptop --strategy "pp=2 v=2"
error[E0501]: 1f1b runs one chunk on each place; got 2
  --> --strategy:1:6
   1 | pp=2 v=2
     |      ^
  hint: v=1, or schedule=interleaved
[1]
$ heddle sim mlp-xs --machine laptop --batch 64 --strategy "dp=4 mbs=3"
error[E0502]: batch 64 / dp=4 is not divisible by mbs=3
  --> --strategy:1:6
   1 | dp=4 mbs=3
     |      ^
  hint: mbs=1
[1]
$ heddle sim mlp-xs --machine laptop --batch 64 --strategy "dp=4 mb=8 mbs=4"
error[E0509]: mb=8 and mbs=4 disagree: batch 64 / dp=4 / mbs=4 is mb=4
  --> --strategy:1:11
   1 | dp=4 mb=8 mbs=4
     |           ^
  hint: leave one of them out
[2]
$ heddle sim mlp-xs --machine laptop --strategy "pp=2 layers=3/4"
error[E0502]: layers adds up to 7, but the model has 8 layers
  --> --strategy:1:6
   1 | pp=2 layers=3/4
     |      ^
  hint: use numbers that add up to 8, or layers=equal
[1]
$ heddle sim mlp-xs --machine laptop --strategy "pp=2 layers=3/3/2"
error[E0502]: layers has 3 numbers, but there are 2 stages (pp=2)
  --> --strategy:1:6
   1 | pp=2 layers=3/3/2
     |      ^
  hint: one number for each stage, or pp=3
[1]
$ heddle sim mlp-xs --machine laptop --strategy "pp=2 layers=0/8"
error[E0502]: layers: stage 0 would be empty: nothing of a stage stands before the first layer
  --> --strategy:1:6
   1 | pp=2 layers=0/8
     |      ^
  hint: a number from 1 for stage 0, or layers=cost, which distributes single matmuls too
[1]
$ heddle sim mlp-xs:layers=2 --machine laptop --strategy "pp=3 layers=equal"
error[E0502]: layers=equal: 3 stages, but the model has 2 repeated layers
  --> --strategy:1:6
   1 | pp=3 layers=equal
     |      ^
  hint: layers=cost distributes single matmuls too, or use fewer stages
[1]
$ heddle sim mlp-xs --machine laptop --data "2 tp=2"
error[E0801]: --data: '2 tp=2' must not contain a space
[2]
$ heddle plan mlp-xs --machine laptop --strategy "tp=3"
error[E0509]: tp=3 is impossible on 4 devices: dp x tp x pp must be 4
  --> --strategy:1:1
   1 | tp=3
     | ^
  hint: leave it out, or --devices 3
[2]
$ heddle plan mlp-xs --machine laptop --strategy "tp=1 sp"
error[E0509]: sp needs tp > 1; no plan of this search has that
  --> --strategy:1:6
   1 | tp=1 sp
     |      ^
  hint: leave out sp
[2]
$ heddle plan mlp-xs --machine laptop --strategy "tp=2,2"
error[E0509]: tp=2 is given twice
  --> --strategy:1:6
   1 | tp=2,2
     |      ^
  hint: leave one of them out
[2]
$ heddle plan mlp-xs --machine laptop --strategy "dp=4 tp=2"
error[E0506]: dp=4 tp=2 needs a multiple of 8 devices; there are 4
  hint: leave one of dp, tp and pp to the search, or set --devices N
[1]
$ heddle plan mlp-xs --machine laptop --strategy "dp=2 tp=1 pp=1"
error[E0506]: dp=2 tp=1 pp=1 needs 2 devices; there are 4
  hint: --devices 2, or leave one of dp, tp and pp to the search
[1]
$ heddle plan mlp-xs --machine laptop --strategy "dp=4 tp=2 pp=1"
error[E0506]: dp=4 tp=2 pp=1 needs 8 devices; there are 4
  hint: leave one of dp, tp and pp to the search, or set --devices N
[1]
$ heddle plan mlp-xs --machine laptop --strategy "dp=1,2 tp=1 pp=1"
error[E0506]: no dp x tp x pp makes 4 devices
  hint: leave one of dp, tp and pp to the search, or set --devices N
[1]
$ heddle plan mlp-xs --machine '1x8 cpu-core' --devices 6 --powers-of-two --strategy 'dp=2 tp=2'
error[E0506]: dp=2 tp=2 needs a multiple of 4 devices; there are 6
  hint: leave one of dp, tp and pp to the search, or set --devices N
[1]
$ heddle plan mlp-xs --machine laptop -o /proc/plan.txt
error[E0102]: cannot write '/proc/plan.txt': No such file or directory
[1]
$ heddle plan mlp-xs --machine laptop -o "it's not here/plan.txt"
error[E0102]: cannot write 'it's not here/plan.txt': No such file or directory
  hint: mkdir -p 'it'\''s not here'
[1]
$ heddle plan mlp-xs --batch 6 --machine laptop --strategy "dp=4 dp.shares=equal"
error[E0506]: the plan is impossible
  note: batch 6 is not divisible by dp=4
  hint: choose a batch that is a multiple of 4, or dp.shares=2/2/1/1
[1]
## What does not fit is shown all the same.
$ heddle sim gpt3-2.7b --batch 16 --train --optimizer adam --data 2 --machine dgx-2 > /dev/null
error[E0505]: rank 0 needs 245 GiB; its device has 28.8 GiB
  --> gpt3-2.7b
  note: 32 values of softmax in @layer.fwd: 128 GiB of activations
    --> gpt3-2.7b: layer/attention
  note: 31 values of add in @layer.fwd: 19.4 GiB of activations
    --> gpt3-2.7b: layer/mlp
  note: 31 values of gelu in @layer.fwd: 19.4 GiB of activations
    --> gpt3-2.7b: layer/mlp
  hint: a larger pp, tp or mb; in training recompute=full, or zero=3 with dp > 1; `heddle plan` finds what fits; the machine has host memory: offload
[1]
## One sample is not split.
$ heddle sim gpt3-6.7b --batch 1 --train --machine "1x2 v100" --strategy tp=2 2>&1 >/dev/null | grep "error\|hint"
error[E0505]: rank 0 needs 31.4 GiB; its device has 28.8 GiB
  hint: a larger pp or tp, as dp, mb and zero=3 split nothing of one sample; in training recompute=full; `heddle plan` finds what fits
$ heddle plan gpt3-175b --batch 1 --train --dtype f16 --machine "1x2 v100"
error[E0506]: no plan can run: of 18, 12 impossible, 6 too large for 28.8 GiB of memory
  note: 12 impossible, such as dp=2 tp=1 pp=1: the batch (the first extent of input tokens) is 1: it cannot be split 2 ways over dp
  note: the smallest needs at least 650 GiB on a rank
  hint: use more devices or recompute=full, as dp and mb split nothing of one sample
[1]
## An order in which the stages wait for each other.
$ heddle plan mlp-xs:layers=2,hidden=8 --batch 4 --train --data 1 --tensor 1 --pipeline 2 --microbatches 2 --zero 0 --recompute none --devices 2 --machine laptop -o ok.plan > /dev/null; sed 's/F0.0\*2 B0.0\*2/B0.0*2 F0.0*2/' ok.plan > bad.plan; tail -3 bad.plan; heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan bad.plan --machine laptop
order:
  - "B0.0*2 F0.0*2"
  - "(F1.0 B1.0)*2"
warning[W0504]: the order is not that of schedule 1f1b: place 0 runs B0.0 as its task 1, not F0.0
  --> bad.plan:20:5
  20 |   - "B0.0*2 F0.0*2"
     |     ^
  note: the plan says so here
    --> bad.plan:18:11
    18 | schedule: 1f1b
       |           ^
  hint: leave out `schedule` if the order is the plan's own
error[E0503]: deadlock: no place can run its next task
  --> bad.plan:20:3
  20 |   - "B0.0*2 F0.0*2"
     |   ^
  note: place 0 waits at 0B0 (task 1 of 4) for 0F0, task 3 of place 0
  note: place 1 waits at 1F0 (task 1 of 4) for 0F0, task 3 of place 0
  hint: put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run with any pp and mb
[1]
## A stage that is not there; another batch, model or machine than the plan's; a task that is missing.
$ sed 's/at: {pp: 1}/at: {pp: 2}/' ok.plan > bad.plan; heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan bad.plan --machine laptop
error[E0501]: expected a number from 0 to 1, found `2`
  --> bad.plan:12:38
  12 |   - {from: 2, to: 6, on: m, at: {pp: 2}}
     |                                      ^
[1]
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 6 --plan ok.plan --machine laptop
error[E0511]: the plan was made for mlp-xs:layers=2,hidden=8 with a batch of 4; this is mlp-xs:layers=2,hidden=8 with 6
  --> ok.plan:4:8
   4 | model: {name: "mlp-xs:layers=2,hidden=8", instructions: 6, weights: "f32", input: "f32[4,8]", pr...
     |        ^
  hint: --batch 4
[1]
$ heddle sim mlp-xs:layers=3,hidden=8 --batch 4 --plan ok.plan --machine laptop
error[E0511]: the plan was made for mlp-xs:layers=2,hidden=8 with 6 instructions in main; this is mlp-xs:layers=3,hidden=8 with 7
  --> ok.plan:4:8
   4 | model: {name: "mlp-xs:layers=2,hidden=8", instructions: 6, weights: "f32", input: "f32[4,8]", pr...
     |        ^
  hint: use the model and options of the command that made it: heddle plan mlp-xs:layers=2,hidden=8 --batch 4 --train --data 1 --tensor 1 --pipeline 2 --microbatches 2 --zero 0 --recompute none --devices 2 --machine laptop -o ok.plan
[1]
$ heddle verify mlp-xs:layers=2,hidden=8 --batch 4 --dtype f16 --plan ok.plan
error[E0511]: the plan was made for mlp-xs:layers=2,hidden=8 with weights in f32; this is mlp-xs:layers=2,hidden=8 with f16
  --> ok.plan:4:8
   4 | model: {name: "mlp-xs:layers=2,hidden=8", instructions: 6, weights: "f32", input: "f32[4,8]", pr...
     |        ^
  hint: --dtype f32
[1]
$ heddle lower gpt2:layers=2 --batch 4 --plan ok.plan --rank 0
error[E0511]: the plan was made for mlp-xs:layers=2,hidden=8 with 6 instructions in main, a first input of f32[4,8]; this is gpt2:layers=2 with 9, i64[4,1024]
  --> ok.plan:4:8
   4 | model: {name: "mlp-xs:layers=2,hidden=8", instructions: 6, weights: "f32", input: "f32[4,8]", pr...
     |        ^
  hint: use the model and options of the command that made it: heddle plan mlp-xs:layers=2,hidden=8 --batch 4 --train --data 1 --tensor 1 --pipeline 2 --microbatches 2 --zero 0 --recompute none --devices 2 --machine laptop -o ok.plan
[1]
$ sed 's/^# .*/# mine/' ok.plan > mine.plan; heddle verify mlp-xs:layers=2,hidden=16 --batch 4 --plan mine.plan
error[E0511]: the plan was made for mlp-xs:layers=2,hidden=8 with a first input of f32[4,8]; this is mlp-xs:layers=2,hidden=16 with f32[4,16]
  --> mine.plan:4:8
   4 | model: {name: "mlp-xs:layers=2,hidden=8", instructions: 6, weights: "f32", input: "f32[4,8]", pr...
     |        ^
  hint: `heddle plan mlp-xs:layers=2,hidden=16 -o FILE` makes a plan for this one
[1]
## The same program under another name is the same model; without the line any model is.
$ heddle import gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 4 --seq 8 -o g.heddle > /dev/null; heddle plan gpt2:layers=2,hidden=32,heads=4,vocab=64 --batch 4 --seq 8 --machine laptop --strategy "dp=2 tp=2" -o g.plan > /dev/null; heddle verify g.heddle --plan g.plan | head -2
model      g.heddle
plan       dp=2 tp=2 pp=1
$ grep -v '^model:' ok.plan > any.plan; heddle sim mlp-xs:layers=2,hidden=8 --batch 6 --plan any.plan --machine laptop
error[E0502]: input x: dimension 0 of extent 6 cannot be split 2 ways over axis mb at stride 2
  --> any.plan:13:5
  13 |   - {input: "x", dim: 0, axis: mb, stride: 2}
     |     ^
  hint: choose a batch that is a multiple of dp x mb
[1]
$ heddle sim mlp-xs:layers=3,hidden=8 --batch 4 --plan any.plan --machine laptop
error[E0501]: segment 1 covers instructions 2 to 6 of main, which has 7: scale, main:7, is in no segment
  --> any.plan:11:5
  11 |   - {from: 2, to: 6, on: m, at: {pp: 1}}
     |     ^
  hint: from: 2, to: 7; or use the model and the options that the plan was made for, which its first line names if `heddle plan -o` wrote it
[1]
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan ok.plan --machine '1x1 a10'
error[E0605]: rank 1 is used; the machine 1x1 a10 has ranks 0 to 0
  --> ok.plan:9:3
   9 |   m: {axes: [pp, dp, tp]}
     |   ^
  hint: plan for this machine, or use a larger one
[1]
$ heddle plan mlp-xs --batch 64 --machine dgx-2 -o 16.plan > 16.txt; heddle sim mlp-xs --batch 64 --plan 16.plan --machine laptop
error[E0605]: rank 15 is used; the machine laptop has ranks 0 to 3
  --> 16.plan:7:3
   7 |   m: {axes: [pp, dp, tp]}
     |   ^
  hint: plan for this machine, or use more of them: --machine 'laptop*4'
[1]
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan ok.plan --machine laptop --train --optimizer adam
error[E0801]: --optimizer cannot be combined with --plan: the plan file decides it
  hint: leave it out, or edit the plan file (docs/plans.md)
[2]
$ heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan ok.plan --machine laptop --data 2
error[E0801]: --data cannot be combined with --plan: the plan file decides it
  hint: leave it out, or edit the plan file (docs/plans.md)
[2]
$ sed 's/(F1.0 B1.0)/F1.0/' ok.plan > bad.plan; heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan bad.plan --machine laptop
warning[W0504]: the order is not that of schedule 1f1b: place 1 runs F1.1 as its task 2, not B1.0
  --> bad.plan:21:5
  21 |   - "F1.0*2"
     |     ^
  note: the plan says so here
    --> bad.plan:18:11
    18 | schedule: 1f1b
       |           ^
  hint: leave out `schedule` if the order is the plan's own
error[E0501]: task 1B0 is in no sequence
  --> bad.plan:21:5
  21 |   - "F1.0*2"
     |     ^
  hint: every stage runs every microbatch, 0 to 1, forward (F) and backward (B, or I and W) once
[1]
$ sed 's/heddle-plan: 1/heddle-plan: 2/' ok.plan > bad.plan; heddle sim mlp-xs:layers=2,hidden=8 --batch 4 --plan bad.plan --machine laptop
error[E0501]: this version reads `heddle-plan: 1`
  --> bad.plan:2:14
   2 | heddle-plan: 2
     |              ^
[1]
$ heddle sim gpt2 --batch 1 --machine laptop --data 2
error[E0502]: the batch (the first extent of input tokens) is 1: it cannot be split 2 ways over dp
  --> gpt2
  hint: a larger --batch, or tp instead
[1]
## What is distributed already.
$ heddle plan examples/distir/fig2_pipeline.heddle --machine dgx-2
error[E0501]: the program is distributed already: only models are planned and trained
  --> examples/distir/fig2_pipeline.heddle:60:6
  60 | func @main(
     |      ^
  hint: `heddle sim` and `heddle eval` take it as it is, without a plan
[1]
$ heddle show examples/distir/fig2_pipeline.heddle --train
error[E0501]: the program is distributed already: only models are planned and trained
  --> examples/distir/fig2_pipeline.heddle:60:6
  60 | func @main(
     |      ^
  hint: `heddle sim` and `heddle eval` take it as it is, without a plan
[1]
$ heddle verify examples/distir/fig2_pipeline.heddle --data 2
error[E0501]: the program is distributed already: only models are planned and trained
  --> examples/distir/fig2_pipeline.heddle:60:6
  60 | func @main(
     |      ^
  hint: `heddle sim` and `heddle eval` take it as it is, without a plan
[1]
$ heddle sim examples/distir/fig2_pipeline.heddle --machine dgx-2 --plan ok.plan
error[E0501]: the program is distributed already: only models are planned and trained
  --> examples/distir/fig2_pipeline.heddle:60:6
  60 | func @main(
     |      ^
  hint: `heddle sim` and `heddle eval` take it as it is, without a plan
[1]
$ heddle plan mlp-xs --machine laptop --devices 5
error[E0501]: --devices 5, but the machine has 4
  hint: --devices 4, or a larger machine
[1]
$ heddle eval mlp-xs --random 1 -o -
error[E0801]: `heddle eval` writes a folder of arrays; it cannot write to standard output
  hint: -o answer
[2]
$ heddle show gpt2 --dim batch=8
error[E0801]: --dim binds open extents of ONNX models; this model has none
  hint: a built-in model takes --batch, --seq and --vocab
[2]
$ heddle eval gpt3-175b --random 1 2>&1 | sed 's/has [0-9.]* GiB/has N GiB/'
error[E0901]: inputs and results take 1.28 TiB in float64; this computer has N GiB
  --> gpt3-175b
  hint: a smaller --batch, or fewer and smaller layers, as in gpt2:layers=2,hidden=128,heads=2
$ heddle show examples/gpt2.onnx --dim sequence=64 --dim bacth=8
error[E0801]: --dim: no input has a dimension `bacth`
  --> examples/gpt2.onnx
  note: `batch` is not bound: input_ids:0
  note: `sequence` is 64: input_ids:1
  hint: name a dimension by its position: input_ids:0 is the first of `input_ids`
[2]
$ heddle show examples/gpt2.onnx --dim batch=8 --dim batch=16
error[E0801]: --dim batch: given twice
[2]
$ heddle show examples/gpt2.onnx --dim batch=8 --batch 16 --dim sequence=64
error[E0801]: --batch: no input leaves its first extent unbound
  --> examples/gpt2.onnx
  note: `batch` is 8: input_ids:0
  note: `sequence` is 64: input_ids:1
  hint: to replace an extent that the file fixes: --dim input_ids:0=16
[2]
$ heddle show examples/gpt2.onnx --dim batch
error[E0801]: --dim: 'batch' is not NAME=N
  hint: --dim batch=8
[2]
$ heddle show examples/gpt2.onnx --dim batch=many
error[E0801]: --dim must be an integer, 1 or more; got 'many'
[2]
$ heddle show examples/gpt2.onnx --batch 8 --dim sequence=4 --fix ids=7
error[E0801]: --fix: unknown input `ids`
  --> examples/gpt2.onnx
  hint: the inputs are `input_ids`
[2]
$ heddle show examples/gpt2.onnx --batch 2 --dim sequence=4 --fix input_ids=1,2,3
error[E0801]: --fix: `input_ids` is i64[2,4]; '1,2,3' is not 8 such numbers
  --> examples/gpt2.onnx: input_ids
  hint: numbers with commas between them, one for all, or the name of a .npy file: --fix input_ids=1
[2]
$ heddle show examples/gpt2.onnx --batch 2 --dim sequence=4 --fix input_ids=nowhere.npy
error[E0101]: cannot read 'nowhere.npy': No such file or directory
[1]
$ heddle show mlp-xs --fix x=1
error[E0801]: --fix makes inputs of ONNX models constant; this is not one
  hint: a built-in model takes --batch, --seq and --vocab
[2]
$ heddle show examples/gpt2.onnx
error[E0113]: extents are not bound: `batch`, `sequence`
  --> examples/gpt2.onnx
  note: `batch` is not bound: input_ids:0
  note: `sequence` is not bound: input_ids:1
  hint: --batch 8 --dim sequence=8
[1]
$ head -c 100000 examples/gpt2.onnx > cut.onnx; heddle show cut.onnx
error[E0110]: a part of 1397940 bytes where its message has 99977 left
  --> cut.onnx: byte 19
  hint: is it an ONNX file, and whole?
[1]
$ heddle import cut.onnx -o kept.heddle; ls
error[E0110]: a part of 1397940 bytes where its message has 99977 left
  --> cut.onnx: byte 19
  hint: is it an ONNX file, and whole?
16.plan
16.txt
any.plan
bad.heddle
bad.onnx
bad.plan
cut.onnx
examples
g.heddle
g.plan
mine.plan
nameless.heddle
ok.plan
operators.so
operators_wrong.so
other.txt
p.yaml
tests
two.txt
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=1001 --seq 16 --batch 4 --machine dgx-2 --devices 5 --strategy "dp=1 tp=5 pp=1 mb=1"
error[E0506]: the plan is impossible
  note: attn.qkv of 64 x 192 cannot be split 5 ways: 192 = 3 x 4 x 16, and 4 is not divisible by 5
  hint: tp=4
[1]
$ heddle plan gpt3-13b --machine laptop --devices 1 --batch 4 --microbatches 1
error[E0506]: the plan cannot run: it needs more than 3.60 GiB of memory
  note: it needs at least 47.9 GiB on a rank
  hint: use more devices, attention=fused or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves its memory
[1]
## Text without a program.
$ : > empty.heddle; heddle show empty.heddle
error[E0202]: the program has no function @main
  --> empty.heddle
  hint: what is run begins with `func @main(%x: f32[8,4]) -> (f32[8,4]) {`
[1]
$ heddle sim empty.heddle --machine dgx-2 --data 2
error[E0202]: the program has no function @main
  --> empty.heddle
  hint: what is run begins with `func @main(%x: f32[8,4]) -> (f32[8,4]) {`
[1]
$ heddle eval empty.heddle --random 1
error[E0202]: the program has no function @main
  --> empty.heddle
  hint: what is run begins with `func @main(%x: f32[8,4]) -> (f32[8,4]) {`
[1]
$ printf 'func @f(%%x: f32[8]) -> (f32[8]) {\n  return %%x\n}\n' > f.heddle; heddle verify f.heddle --data 2
error[E0202]: the program has no function @main
  --> f.heddle
  note: the last function is @f
    --> f.heddle:1:6
     1 | func @f(%x: f32[8]) -> (f32[8]) {
       |      ^
  hint: what is run begins with `func @main(%x: f32[8,4]) -> (f32[8,4]) {`
[1]
$ heddle show mlp-xs:layers=1000000000
error[E0901]: layers=1000000000, but layers is at most 10000
  --> mlp-xs
  hint: mlp-xs:layers=10000
[1]
## Nothing to plan, nothing to shard, nothing to deal out.
$ heddle plan mlp-xs:layers=4 --batch 64 --train --machine dgx-2 --data 1 --zero 3
error[E0509]: zero=3 needs training and dp > 1; no plan of this search has that
  --> --strategy:1:8
   1 | data=1 zero=3
     |        ^
  hint: leave out zero
[2]
$ heddle sim mlp-xs:layers=4 --batch 64 --train --machine dgx-2 --data 1 --zero 3
error[E0509]: zero=3 needs dp > 1; got dp=1
  --> --strategy:1:8
   1 | data=1 zero=3
     |        ^
  hint: add dp=2, or leave out zero
[2]
$ printf 'func @main(%%x: f32[8,4]) -> (f32[8,4]) {\n  return %%x\n}\n' > id.heddle; heddle plan id.heddle --machine dgx-2
error[E0501]: @main computes nothing: there is nothing to plan
  --> id.heddle:1:6
   1 | func @main(%x: f32[8,4]) -> (f32[8,4]) {
     |      ^
[1]
$ heddle sim id.heddle --machine dgx-2
error[E0501]: @main computes nothing: there is nothing to plan
  --> id.heddle:1:6
   1 | func @main(%x: f32[8,4]) -> (f32[8,4]) {
     |      ^
[1]
$ printf 'func @main(%%x: f32[8,4]) -> (f32[8,4]) {\n  %%y = relu %%x\n  return %%y\n}\n' > relu.heddle; heddle plan relu.heddle --machine dgx-2 --devices 2 | tail -5
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* layers=*' has them, --what-if tries each
impossible   4 such as dp=1 tp=1 pp=2:
             2 pipeline stages, but the model has only 0 blocks and matmuls
             4 such as dp=1 tp=2 pp=1:
             no matmul with a weight can be split over tp=2
$ heddle sim relu.heddle --machine dgx-2 --data 2 --pipeline 2
error[E0502]: 2 pipeline stages, but the model has only 0 blocks and matmuls
  --> relu.heddle:1:6
   1 | func @main(%x: f32[8,4]) -> (f32[8,4]) {
     |      ^
  hint: pp=1
[1]
$ heddle verify relu.heddle --data 2 | head -7
model      relu.heddle
plan       dp=2 tp=1 pp=1
results    1
elements   32
worst      0
tolerance  1e-09
verdict    equal: the plan computes what the model computes
$ printf 'func @main(%%x: f32[0,4], %%w: f32[4,4] weight) -> (f32[0,4]) {\n  %%y = matmul %%x, %%w\n  return %%y\n}\n' > none.heddle; heddle plan none.heddle --machine dgx-2
error[E0301]: input x is empty: f32[0,4]
  --> none.heddle:1:6
   1 | func @main(%x: f32[0,4], %w: f32[4,4] weight) -> (f32[0,4]) {
     |      ^
  hint: every extent must be 1 or more; bind open extents with --batch 8 or --dim NAME=8
[1]
$ heddle verify none.heddle --data 2
error[E0301]: input x is empty: f32[0,4]
  --> none.heddle:1:6
   1 | func @main(%x: f32[0,4], %w: f32[4,4] weight) -> (f32[0,4]) {
     |      ^
  hint: every extent must be 1 or more; bind open extents with --batch 8 or --dim NAME=8
[1]
## Choices that would do nothing.
$ heddle sim gpt2:layers=8 --batch 16 --train --machine '1x4 v100' --strategy "pp=4 v=2 mb=8 schedule=bfs group=2"
error[E0509]: group=2 needs a schedule with groups of microbatches; bfs has none
  --> --strategy:1:28
   1 | pp=4 v=2 mb=8 schedule=bfs group=2
     |                            ^
  hint: use schedule=interleaved, or leave out group
[2]
$ heddle plan mlp-xs --batch 64 --machine laptop --strategy 'overlap=none channels=pass'
error[E0509]: channels=pass needs pp > 1 and overlap=pp; no plan of this search has that
  --> --strategy:1:14
   1 | overlap=none channels=pass
     |              ^
  hint: leave out channels
[2]
$ heddle sim mlp-xs --batch 64 --machine laptop --strategy 'pp=2 mb=2 overlap=none channels=pass'
error[E0509]: channels=pass needs overlap=pp; got overlap=none
  --> --strategy:1:24
   1 | pp=2 mb=2 overlap=none channels=pass
     |                        ^
  hint: set overlap=pp, or leave out channels
[2]
$ heddle schedule 1f1b --pp 4 --mb 4 --group 2
error[E0501]: 1f1b has no groups of microbatches; got group=2
  hint: leave out group
[1]
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy 'pp=4 mb=8 schedule=ZB1P' | grep -E '^plan|^time per'
plan            dp=1 tp=1 pp=4 mb=8 schedule=zb-1p
time per step   14.76 ms
$ heddle sim mlp-xs:layers=8 --batch 64 --train --machine laptop --strategy 'pp=4 mb=8 schedule=zb-h3'
error[E0509]: schedule: unknown value 'zb-h3'
  --> --strategy:1:20
   1 | pp=4 mb=8 schedule=zb-h3
     |                    ^
  hint: did you mean schedule=zb-h1? It takes gpipe, 1f1b, interleaved, bfs, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, zb-v-half, zb-v-min, dualpipev, chimera, chimera-double, dualpipe, gems, interlaced, interlaced-block, 3f1b, pipedream or pipedream-2bw, or a file whose name ends in .csv
[2]
$ printf 'func @main(%%w: f32[8, 4] weight, %%c: f32[4] const = [1, 2, 1, 0.5], %%x: f32[16, 8], %%y: i32[16] label) -> (f32[]) {\n  %%z = matmul %%x, %%w : f32[16, 4]\n  %%l = log_softmax %%z {axis=1} : f32[16, 4]\n  %%r = nll %%l, %%y, %%c {reduce="mean"} : f32[]\n  return %%r\n}\n' > weighted.heddle; heddle verify weighted.heddle --train --strategy "dp=2 mb=2"
error[E0303]: nll needs operand 1 of all 2 microbatches at once, but they run one after the other
  --> weighted.heddle:4:8
   4 |   %r = nll %l, %y, %c {reduce="mean"} : f32[]
     |        ^
  note: a mean over labels that are weighted or ignored is divided by a sum over all labels, which no microbatch knows
  hint: mb=1, or a loss with reduce="sum"
[1]
$ heddle verify weighted.heddle --train --strategy "dp=2" | tail -5 | grep -c new
1
$ sed 's/ const = .1, 2, 1, 0.5.//' weighted.heddle > given.heddle; heddle verify given.heddle --train --microbatches 2
error[E0303]: nll needs operand 3 of all 2 microbatches at once, but they run one after the other
  --> given.heddle:4:8
   4 |   %r = nll %l, %y, %c {reduce="mean"} : f32[]
     |        ^
  hint: make class weights a constant parameter of main (const): inputs are split as the batch is
[1]
$ heddle plan gpt2 --tensor_model_parallel_size 8
error[E0801]: `heddle plan` has no option --tensor_model_parallel_size
  hint: in Heddle: --tensor N
[2]
$ heddle plan gpt2 --machine dgx-2 --strategy 'vpp=2'
error[E0509]: unknown choice 'vpp'
  --> --strategy:1:1
   1 | vpp=2
     | ^
  hint: in Heddle: v=N schedule=interleaved
[2]
$ heddle plan gpt2 --machine dgx-2 --dtype fp16
error[E0801]: --dtype: 'fp16' is not a floating-point type
  hint: in Heddle: f16
[2]
$ heddle plan gpt2 --batch 8 --machine '2x1 a100' --train --strategy 'dp=2 mb=1 zero=0 recompute=none'
warning[W0602]: 2 of 2 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:1
   1 | 2x1 a100
     | ^
  hint: '2x1 a100 ib=100Gb/s', with the rate of your network
error[E0506]: the plan is impossible
  note: all_reduce over 2 ranks: the machine has no link between its nodes
  hint: connect the nodes: --machine '... ib=8x200Gb/s'; devices of a node: '... link=300GB/s' or '... host=16GB/s'
[1]
$ heddle ops matmull --patterns
error[E0801]: unknown operator 'matmull'
  hint: did you mean 'matmul'?
  hint: `heddle ops` lists them
[2]
$ heddle ops --patterns
error[E0801]: --patterns needs an operator
  hint: heddle ops matmul --patterns
[2]
$ heddle ops matmul --shapes 4x4
error[E0801]: --shapes needs --patterns
  hint: add --patterns
[2]
$ heddle ops matmul --patterns --ways 4
error[E0801]: --ways needs --machine
  hint: --machine dgx-2; `heddle machines` lists the presets
[2]
$ heddle ops matmul --patterns --attributes axis=1
error[E0801]: --attributes needs --shapes
  hint: --shapes 4096x1024
[2]
$ heddle ops matmul --patterns --shapes 4096x1024,1000x4096
error[E0301]: matmul: inner extents differ: 1024 against 1000
  --> --shapes:1:1
   1 | 4096x1024,1000x4096
     | ^
[1]
$ heddle ops matmul --patterns --shapes 4096x1024
error[E0402]: matmul: 1 operand, 2 are needed
  --> --shapes:1:1
   1 | 4096x1024
     | ^
[1]
$ heddle ops matmul --patterns --shapes 4096x,1024x4096
error[E0801]: expected an extent, an integer above 0
  --> --shapes:1:6
   1 | 4096x,1024x4096
     |      ^
  hint: --shapes 4096x1024,i64:4096: operands with commas between, extents with x between; a type before a colon; `scalar` has no extents
[2]
$ heddle ops matmul --patterns --shapes 4096x1024,f12:1024x4096
error[E0302]: unknown element type 'f12'
  --> --shapes:1:11
   1 | 4096x1024,f12:1024x4096
     |           ^
  hint: f16, bf16, f32, f64, i32, i64, bool, ...
[1]
$ heddle ops matmul --patterns --shapes 4096x1024,1024x4096,
error[E0801]: expected the shape of an operand
  --> --shapes:1:21
   1 | 4096x1024,1024x4096,
     |                     ^
  hint: --shapes 4096x1024,i64:4096: operands with commas between, extents with x between; a type before a colon; `scalar` has no extents
[2]
$ heddle ops matmul --patterns --shapes '4096*1024,1024x4096'
error[E0801]: expected ',' or the end
  --> --shapes:1:5
   1 | 4096*1024,1024x4096
     |     ^
  hint: --shapes 4096x1024,i64:4096: operands with commas between, extents with x between; a type before a colon; `scalar` has no extents
[2]
$ heddle ops matmul --patterns --shapes 99999999999x99999999999,1024x4096
error[E0901]: a tensor of more than 2^60 bytes
  --> --shapes:1:13
   1 | 99999999999x99999999999,1024x4096
     |             ^
[1]
$ heddle ops matmul --patterns --shapes 1x1x1x1x1x1x1x1x2,2x2
error[E0901]: more than 8 dimensions
  --> --shapes:1:17
   1 | 1x1x1x1x1x1x1x1x2,2x2
     |                 ^
[1]
$ heddle ops matmul --patterns --type f12
error[E0801]: --type: 'f12' is not an element type
  hint: f16, bf16, f32 or f64
[2]
$ heddle ops softmax --patterns --shapes i64:64x64
error[E0302]: softmax: operand 1 is i64, a float is needed
  --> --shapes:1:1
   1 | i64:64x64
     | ^
[1]
$ heddle ops transpose --patterns --shapes 64x128
error[E0401]: transpose: the attribute perm is missing (order of dimensions)
  --> --shapes:1:1
   1 | 64x128
     | ^
  hint: such as --attributes 'perm=[1,0]', with --shapes 64x128
[1]
$ heddle ops transpose --patterns --shapes 64x128 --attributes 'prem=[1,0]'
error[E0401]: unknown attribute 'prem'
  --> --attributes:1:1
   1 | prem=[1,0]
     | ^
  hint: did you mean 'perm'?
[1]
$ heddle ops transpose --patterns --shapes 64x128 --attributes 'perm=[1,0] x'
error[E0201]: expected ',' or the end, found 'x'
  --> --attributes:1:12
   1 | perm=[1,0] x
     |            ^
[1]
$ heddle ops transpose --patterns --shapes 64x128 --attributes 'perm=[1,1]'
error[E0401]: transpose: perm: entry 1 is 1; 0 to 1 must occur once each
  --> --attributes:1:1
   1 | perm=[1,1]
     | ^
[1]
$ heddle ops matmul --patterns --shapes 6x10,10x15 --machine dgx-2 --ways 7
error[E0502]: matmul: no letter can be split 7 ways
  --> --ways:1:1
   1 | 7
     | ^
  note: n=15 can be split 3, 5 or 15 ways
  note: k=10 can be split 2, 5 or 10 ways
  note: m=6 can be split 2, 3 or 6 ways
[1]
$ heddle ops matmul --patterns --shapes 6x10,10x19 --machine dgx-2
error[E0502]: matmul: no letter can be split 16 ways
  note: n=19 cannot be split over up to 16 devices
  note: k=10 can be split 2, 5 or 10 ways
  note: m=6 can be split 2, 3 or 6 ways
[1]
$ heddle ops matmul --patterns --shapes 6x10,10x15 --machine dgx-2 --ways 1
error[E0605]: 1 way is no split
  --> --ways:1:1
   1 | 1
     | ^
  hint: --ways 2, or more
[1]
$ heddle ops matmul --patterns --shapes 64x64,64x64 --machine dgx-2 --ways 32
error[E0605]: 32 ways need 32 devices; dgx-2 has 16
  --> --ways:1:1
   1 | 32
     | ^
  hint: --ways 16, or a larger machine
[1]
$ heddle ops matmul --patterns --machine '1x1 v100'
error[E0605]: 1 way is no split
  hint: a machine with several devices
[1]
$ heddle ops matmul --patterns --machine '2x8 v100'
warning[W0602]: 2 of 2 nodes have no NICs: no rate is assumed, and nothing is sent from one node to another
  --> --machine:1:1
   1 | 2x8 v100
     | ^
  hint: '2x8 v100 ib=100Gb/s', with the rate of your network
error[E0603]: all_reduce over 16 ranks: the machine has no link between its nodes
  hint: add `nics: 8 x 400 Gb/s` to its nodes, or `ib=8x400Gb/s` in one line
[1]
$ heddle ops matmul --patterns --machine dgx-2 --type bf16
error[E0604]: matmul in bf16: the device v100 has no rate for bf16
  --> --shapes:1:1
   1 | 64x128,128x256
     | ^
  hint: add `bf16: ... TFLOP/s` to `rate` of v100 in the machine file, or use another element type
[1]
$ heddle ops matmul --patterns --machine dgx-2 --costs best
error[E0801]: unknown cost model 'best'
  hint: --costs heddle or distir
[2]
$ heddle ops argmax --patterns --shapes 64 --machine dgx-2
error[E0502]: argmax: no letter may be split
[1]
$ heddle ops all_reduce --patterns --machine dgx-2
error[E0801]: all_reduce is communication: what it costs depends on the layouts around it
  hint: `heddle sim` prices it in a program
[2]
$ heddle ops call --patterns --shapes 64
error[E0801]: call has no law of its own: it has no shapes and no costs
[2]
$ printf 'heddle-plan: 1\naxes: {a: 3}\nmeshes:\n  m: {axes: [a]}\nsegments:\n  - {from: 1, to: 8, on: m, at: {a: 0}}\norder:\n  - "F0.0"\n' > unused.plan; heddle sim mlp-xs:layers=8,hidden=32 --batch 8 --plan unused.plan --machine '1x2 v100'
error[E0605]: rank 2 is used; the machine 1x2 v100 has ranks 0 to 1
  --> unused.plan:4:3
   4 |   m: {axes: [a]}
     |   ^
  hint: plan for this machine, or use a larger one
[1]
$ heddle sim gpt2 --batch 1048576 --train --machine laptop --strategy pp=2
error[E0901]: the durations add up to more than 2^63 ps (106 days)
  --> gpt2
[1]
$ heddle sim resnet50 --batch 16 --train --machine '1x2 v100' --strategy "dp=2 bn=sync" >/dev/null
warning[W0101]: bn=sync changes nothing: no batch norm of the model takes statistics over the batch
  --> --strategy:1:6
   1 | dp=2 bn=sync
     |      ^
$ heddle sim gpt2:layers=2 --train --batch 8 --machine "2 v100" --strategy "dp=2 zero=1 grads=f32 recompute=selective" 2>&1 >/dev/null
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:6
   1 | dp=2 zero=1 grads=f32 recompute=selective
     |      ^
warning[W0101]: grads=f32 changes nothing: the plan is the same without it
  --> --strategy:1:13
   1 | dp=2 zero=1 grads=f32 recompute=selective
     |             ^
$ heddle verify resnet50:hidden=8 --batch 4 --seq 32 --train --strategy "tp=2 tables=whole recompute=selective" 2>&1 >/dev/null
warning[W0101]: recompute=selective changes nothing: the plan is the same without it
  --> --strategy:1:19
   1 | tp=2 tables=whole recompute=selective
     |                   ^
warning[W0101]: tables=whole changes nothing: the plan is the same without it
  --> --strategy:1:6
   1 | tp=2 tables=whole recompute=selective
     |      ^
$ heddle sim gpt2:layers=2 --train --dtype f16 --batch 8 --machine "2 v100" --strategy "dp=2 zero=1 grads=f32" 2>&1 >/dev/null
warning[W0508]: wte of gpt2:layers=2 has an extent of 50257 in f16: its matmuls are slower on v100 than simulated, as 50257 is not a multiple of 8
  --> gpt2
  hint: --vocab 50264
$ heddle plan mlp-xs:layers=4,hidden=64 --batch 8 --train --machine laptop --strategy 'zero=0,3' --why dp=1 | sed -n '/^why not/,$p'
why not  dp=1
winner   dp=1 tp=4 pp=1
asked    dp=1 tp=4 pp=1
         the best of 36 plans with dp=1
         which is the winner

what would help         on the path  10 % better
launch latency             32.00 us       -4.5 %
memory bandwidth           21.83 us       -3.1 %
network latency            15.00 us       -2.1 %
bandwidth inside nodes     1.843 us       -0.3 %
(first-order estimate: 10 % of the time on the critical path, while that path stays the longest)
$ heddle sim mlp-xs --batch 8 --machine laptop --batch 16
error[E0801]: --batch is given twice
[2]
$ heddle sim mlp-xs --batch 9223372036854775807 --machine laptop
error[E0801]: --batch must be at most 2^62; got 9223372036854775807
[2]
## A schedule's file says all that the strategy lacks
$ heddle sim gpt2:layers=8 --train --batch 8 --machine '1x4 a100' --strategy schedule=examples/zbv.csv
error[E0509]: schedule=examples/zbv.csv needs pp > 1; got pp=1
  --> --strategy:1:1
   1 | schedule=examples/zbv.csv
     | ^
  hint: add pp=4 mb=8 v=2, or leave out schedule
[2]
$ heddle sim gpt2:layers=8 --train --batch 8 --machine '1x4 a100' --strategy 'pp=2 mb=2 schedule=examples/zbv.csv'
error[E0501]: examples/zbv.csv has 4 places, but pp=2
  --> --strategy:1:11
   1 | pp=2 mb=2 schedule=examples/zbv.csv
     |           ^
  hint: pp=4 mb=8 v=2
[1]
## What a type of elements applies to
$ heddle plan examples/gpt2.onnx --dtype f16 --train --machine '1x2 a100'
error[E0801]: --dtype applies to built-in models only; a file has its own
  hint: leave out --dtype; export the model in the type that it is to be trained in
[2]
## What makes all plans of a search impossible for one reason keeps its hint.
$ heddle plan alphafold2 --batch 128 --train --dtype f16 --machine '1x8 a100' --strategy 'pp=8 schedule=3f1b'
error[E0506]: no plan can run: all 24 are impossible
  note: 24 impossible, such as dp=1 tp=1 pp=8 v=3 schedule=3f1b: schedule=3f1b: the model does not pass three times through the same layers
  hint: schedule=1f1b, or a model that recycles, such as alphafold2:recycle=3
[1]
## figures of an optimizer: 0 is meant where it is given, and what cannot train is refused
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --lr 0 --strategy dp=1 --machine '1x1 v100' -o - | grep -o 'optimizer: sgd, lr: [^,]*'
optimizer: sgd, lr: 0
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --optimizer adam --beta1 1 --machine '1x1 v100'
error[E0801]: the optimizer's beta1 = 1 is not in the range from 0 to below 1
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 8 --strategy dp=1 --lr -1
error[E0801]: the optimizer's lr = -1 must be 0 or more, and finite
[2]
$ heddle plan mlp-xs:layers=2,hidden=16 --batch 8 --train --optimizer momentum --strategy dp=1 --machine '1x1 v100' -o - | sed 's/momentum: 0.9/momentum: 1.5/' >wild.plan; heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --plan wild.plan --machine '1x1 v100'
error[E0501]: momentum = 1.5 is not in the range from 0 to below 1
  --> wild.plan:5:8
   5 | train: {optimizer: momentum, lr: 0.01, momentum: 1.50000000000000002, beta1: 0, beta2: 0, eps: 0...
     |        ^
[1]
## A limit on the size of files.
$ (ulimit -f 1; heddle import gpt2:layers=1 -o large.heddle)
error[E0102]: cannot write 'large.heddle': File too large
[1]
## Of a plan whose order and whose stages are both impossible the order is said.
$ heddle plan gpt2:layers=6,hidden=64,heads=4 --batch 24 --train --machine dgx-2 --devices 4 --strategy 'dp=1 tp=1 pp=4 v=2 schedule=interleaved mb=4 group=0,2 zero=0 recompute=none'
error[E0506]: no plan can run: all 2 are impossible
  note: 1 impossible, such as dp=1 tp=1 pp=4 mb=4 v=2 schedule=interleaved: 8 pipeline stages, but the model has only 7 blocks and matmuls
  note: 1 impossible, such as dp=1 tp=1 pp=4 mb=4 v=2 schedule=interleaved group=2: interleaved: groups of 2 microbatches, fewer than the 4 places, deadlock with 4
  hint: choose degrees and microbatches that divide the batch, the heads and the layers
[1]
## Numbers that nothing holds.
$ heddle plan mlp-xs --machine '1x2 v100' --batch 8 --train --memory-limit 1e400GiB
error[E0602]: --memory-limit: '1e400GiB' is too large
  hint: write 1 GiB or GB
[1]
$ heddle plan gpt2 --machine '1x4 v100' --batch 8 --train --strategy 'pp=4 layers=10/1000000000/1/1'
error[E0509]: layers: 1000000000 is above the limit of 1048576
  --> --strategy:1:16
   1 | pp=4 layers=10/1000000000/1/1
     |                ^
  hint: layers takes cost, equal, auto, whale, or integers from 0 such as 10/12/12/6
[2]
$ heddle plan gpt2 --machine '1x4 v100' --batch 8 --train --strategy 'pp=4 layers=1x10000000'
error[E0509]: layers: 10000000 is above the limit of 1048576
  --> --strategy:1:15
   1 | pp=4 layers=1x10000000
     |               ^
  hint: layers takes cost, equal, auto, whale, or integers from 0 such as 10/12/12/6
[2]
## A longer sequence than a model has positions for.
$ heddle show gpt2 --seq 5000 --batch 1 | head -2
warning[W0105]: gpt2 has 1024 positions; for a sequence of 5000 its table has as many
  --> gpt2
  hint: gpt2:positions=5000 says that it is meant; --seq 1024 is the longest that the model has
model         gpt2
parameters    127 million in 148 tensors, f32, 486 MiB
$ heddle show t5-small --seq 5000 --batch 1 | head -2
model         t5-small
parameters    60.5 million in 131 tensors, f32, 231 MiB
$ heddle show gpt2:positions=5000 --seq 5000 --batch 1 | head -2
model         gpt2:positions=5000
parameters    127 million in 148 tensors, f32, 486 MiB
## A limit that a plan misses by a byte reads as no other figure does.
$ heddle plan gpt2:layers=4 --batch 8 --seq 64 --train --machine '1x2 v100' --strategy 'dp=1 tp=2 mb=1,2' --memory-limit 424055295B | grep '^with more' -A1
with more memory  dp=1 tp=2 pp=1
                  0.74x the time, with 424055296 B
$ heddle plan gpt2:layers=4 --batch 8 --seq 64 --train --machine '1x2 v100' --strategy 'dp=1 tp=2 mb=1 recompute=none' --memory-limit 424055295B
error[E0506]: the plan cannot run: it needs more than 404 MiB of memory
  note: it needs at least 424055296 B on a rank
  hint: use more devices, zero=3, attention=fused or a smaller batch
  hint: the model is in f32; --dtype f16 or bf16 halves activations
[1]
$ heddle plan gpt2:layers=4 --batch 8 --seq 64 --train --machine '1x2 v100' --strategy 'dp=1 tp=2 mb=1 recompute=none' --memory-limit 424055296B | sed -n '/^winner/,/^cert/p'
winner       dp=1 tp=2 pp=1
             computes 96.5 % of the time, communicates 3.5 %, idles 0.0 %; MFU 46.4 %; needs 404 MiB of 404 MiB
certificate  1 plan: 1 fit, 0 too large, 0 too slow, 0 impossible, 0 equal to another;
