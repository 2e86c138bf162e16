## Wrong usage: status 2.
$ heddle
error[E0801]: a command is missing
  hint: `heddle help` lists the commands
[2]
$ heddle shwo gpt2
error[E0801]: no command is called 'shwo'
  hint: did you mean `heddle show`?
[2]
$ heddle frobnicate
error[E0801]: no command is called 'frobnicate'
  hint: `heddle help` lists the commands
[2]
$ heddle show
error[E0801]: `heddle show` wants MODEL
  hint: `heddle show --list` lists the built-in models
[2]
$ heddle show gpt2 gpt3
error[E0801]: `heddle show`: 'gpt3' is one operand too many
  hint: `heddle show --help` explains it
[2]
$ heddle show gpt2 --bacth 3
error[E0801]: `heddle show` has no option --bacth
  hint: did you mean --batch?
[2]
$ heddle show gpt2 --batch
error[E0801]: --batch wants a value: --batch N
[2]
$ heddle show gpt2 --batch=0
error[E0801]: --batch: '0' is not a whole number from 1
[2]
$ heddle show gpt2 --batch 1e6
error[E0801]: --batch: '1e6' is not a whole number from 1
[2]
$ heddle show gpt2 --json=yes
error[E0801]: --json takes no value
[2]
$ heddle show gpt2 --machine dgx-2
error[E0801]: `heddle show` has no use for --machine
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
error[E0801]: --lr: 'fast' is not a number
[2]
$ heddle help shw
error[E0801]: no command is called 'shw'
  hint: did you mean `heddle show`?
[2]
## Wrong input: status 1.
$ heddle show gpt3-17b
error[E0115]: no file and no built-in model is called `gpt3-17b`
  hint: did you mean `gpt3-13b`?
[1]
$ heddle show gpt2:layers=two
error[E0115]: `gpt2:layers=two`: cannot use `layers=two`
  hint: columns with whole numbers above 0, such as `gpt2:layers=2,hidden=256`
[1]
$ heddle show gpt2:hidden=100
error[E0502]: gpt2: 12 heads of 8 are not a hidden extent of 100
[1]
$ heddle show nothing.heddle
error[E0101]: cannot read 'nothing.heddle': No such file or directory
[1]
$ heddle show gpt2 --dtype f12
error[E0801]: no element type is called 'f12'
  hint: f16, bf16, f32 or f64
[2]
$ heddle import gpt2 --train --optimizer adamm
error[E0801]: no optimiser is called 'adamm'
  hint: sgd, momentum, adam or adamw
[2]
$ heddle import mlp-xs -o no/such/folder/x.heddle
error[E0102]: cannot write 'no/such/folder/x.heddle': No such file or directory
  hint: mkdir -p 'no/such/folder'
[1]
$ heddle ops mamtul
error[E0801]: no operator is called 'mamtul'
  hint: did you mean 'matmul'?
  hint: `heddle ops` lists them
[2]
$ heddle explain E9999
error[E0801]: no diagnostic has the code 'E9999'
  hint: `heddle explain` lists them
[2]
$ heddle machines dgx-3
error[E0601]: 'dgx-3' is neither a file nor a preset
  --> --machine:1:1
   1 | dgx-3
     | ^
  hint: presets: a10-4x4 a40-4x4 dgx-2 dgx-a100-80 dgx-h100 laptop; or in one line, as in '2x8 h100 ib=8x400Gb/s'
[1]
$ heddle machines "2x8 h100 nvlink=450GB"
error[E0602]: link: '450GB' is an amount of bytes; a bandwidth is needed
  --> --machine:1:17
   1 | 2x8 h100 nvlink=450GB
     |                 ^
  hint: write 450 GB/s (bytes) or Gb/s (bits)
[1]
$ heddle machines "2x8 h101"
error[E0601]: 'h101' is not a kind of device
  --> --machine:1:5
   1 | 2x8 h101
     |     ^
  hint: define it under devices:, or use one of v100 v100-16gb t4 a40 a10 a100 a100-40gb h100 h200 b200 mi300x cpu-core
[1]
$ printf 'func @main(%%x: f32[4,8], %%y: f32[4,8]) -> (f32[4,8]) {\n  %%z = matmul %%x, %%y : f32[4,8]\n  return %%z\n}\n' > bad.heddle; heddle show bad.heddle
error[E0301]: matmul: inner extents differ: 8 against 4
  --> bad.heddle:2:8
   2 |   %z = matmul %x, %y : f32[4,8]
     |        ^
  hint: operand 2 has 8 as its last dimension: transpose it first
[1]
$ printf 'func @main(%%x: f32[4,8]) -> (f32[4,8]) {\n  %%z = rleu %%x\n  return %%z\n}\n' > bad.heddle; heddle show bad.heddle
error[E0202]: no operator is called 'rleu'
  --> bad.heddle:2:8
   2 |   %z = rleu %x
     |        ^
  hint: did you mean 'relu'?
[1]
$ heddle show gpt2 > /dev/full
error[E0102]: cannot write standard output
[1]
