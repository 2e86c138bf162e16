## What heddle run refuses before it starts a rank. Ranks themselves: tests/golden/training.
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume ckpt --weights w.npz
error[E0801]: --resume cannot be combined with --weights: a checkpoint has its own
  hint: give one of them
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --save-every 5
error[E0801]: --save-every needs --save DIR
  hint: --save ckpt
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --keep 5
error[E0801]: --keep needs --save DIR
  hint: --save ckpt
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --shuffle
error[E0801]: --shuffle needs --data
  hint: --data tokens.u16
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --data-type u16
error[E0801]: --data-type needs --data
  hint: --data tokens.bin
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --hang-timeout -1
error[E0801]: --hang-timeout must not be negative
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --data 2
error[E0509]: dp is given twice
  --> --strategy:1:6
   1 | dp=2 dp=2
     |      ^
  note: here first
    --> --strategy:1:1
     1 | dp=2 dp=2
       | ^
  hint: leave one out; to search several values, write tp=1,2
[2]
## collectives
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --collectives tree
error[E0801]: --collectives takes auto, direct, ring or mpi; got 'tree'
  hint: --collectives ring
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --chunk 64kB
error[E0801]: --chunk needs --collectives ring
  hint: --collectives ring
[2]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --collectives ring --chunk big
error[E0602]: --chunk: 'big' is not a quantity
  hint: write 1 GiB or GB
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --collectives ring --chunk 0B
error[E0602]: --chunk: 0B is not between 1 byte and 4 EB
[1]
$ heddle compare mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --machine laptop --from tests/rare/run --collectives ring
error[E0801]: --collectives cannot be combined with --from: nothing is run
  hint: leave it out
[2]
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --machine laptop --collectives ring
error[E0801]: --collectives does not apply to `heddle sim`
  hint: `heddle sim --help` lists the options
[2]
## data
$ heddle run --help | grep -- '--data '
  --data PATH            training data: a file of tokens (.u16, .npy, ...), or a folder with a file for every input (default: random, the same in every step). A number is the data-parallel degree, as --data N of other commands
  heddle run gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32 --strategy "pp=2 mb=2" --data examples/tokens.u16 --shuffle --save ckpt --save-every 2 --steps 5
  heddle run gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32 --strategy "dp=2 zero=3" --data examples/tokens.u16 --resume ckpt --steps 8
$ heddle help run --json | grep -c '"--data"'
1
$ heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data nowhere.u16
error[E0101]: cannot read 'nowhere.u16': No such file or directory
[1]
## Of a folder it is said what is not read; two files of one name are refused, and weights of two checkpoints.
$ mkdir dd && cp examples/tokens.u16 dd && cp examples/tokens.u16 dd/tagets.u16 && heddle run gpt2:layers=1,hidden=32,heads=2,vocab=256 --batch 4 --seq 8 --strategy dp=2 --steps 1 --data dd 2>&1 | grep -c W0101
1
$ cp dd/tokens.u16 dd/tokens.i32; heddle run gpt2:layers=1,hidden=32,heads=2,vocab=256 --batch 4 --seq 8 --strategy dp=2 --data dd
error[E0122]: dd/tokens.u16 is there, too: which of them is meant is not known
  --> dd/tokens.i32: tokens
  hint: keep one of them in the folder
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=1 --steps 2 --save two --save-every 1 >two.txt; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=1 --weights two
error[E0121]: 'two' has 2 checkpoints, and weights are of one
  hint: --weights 'two/step-000002.safetensors', or --resume 'two', which goes on from the last
[1]
## Before ranks are started, and once: what joins them, and where output goes.
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --transport ./nowhere/x.so
error: ./nowhere/x.so: ranks cannot be joined: cannot open shared object file: No such file or directory
[1]
$ heddle machines probe -o nowhere/x.yaml
error[E0102]: cannot write 'nowhere/x.yaml': No such file or directory
  hint: mkdir -p nowhere
[1]
$ printf 'abcde' >odd.u16; heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data odd.u16
error[E0122]: 5 bytes are no whole number of u16 tokens
  --> odd.u16: tokens
[1]
$ printf 'abcdef' >short.u16; heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data short.u16
error[E0122]: 3 tokens are fewer than one sequence of 8 and the token after it
  --> short.u16: tokens
[1]
$ printf 'abcdef' >tokens.bin; heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data tokens.bin
error[E0122]: the name does not tell the type of the tokens
  --> tokens.bin: tokens
  hint: --data-type u16, or a file name that ends in .u8, .u16, .u32, .i32, .i64 or .npy
[1]
$ heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data tokens.bin --data-type u17
error[E0801]: 'u17' is no type of tokens
  hint: u8, u16, u32, i32 or i64
[2]
$ heddle run bert-large:layers=1,hidden=32,heads=2,vocab=256 --batch 4 --seq 8 --strategy dp=2 --data examples/tokens.u16
error[E0122]: there are no data for the model's input segments, i64 [N,8]
  --> examples/tokens.u16: segments
  hint: --data FOLDER with segments.npy or segments.u16
[1]
$ mkdir folder; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --data folder
error[E0122]: there are no data for the model's input x, f32 [N,16]
  --> folder: x
  hint: --data FOLDER with x.npy
error[E0122]: there are no data for the model's label z, f32 [N,16]
  --> folder: z
  hint: --data FOLDER with z.npy
[1]
$ heddle eval mlp-xs:layers=2,hidden=32 --batch 4 --random 7 -o folder >out; mv folder/*.npy folder/x.npy; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --data folder
error[E0122]: the array is [4,32]; the model takes samples of [N,16]
  --> folder/x.npy: x
[1]
$ heddle eval mlp-xs:layers=2,hidden=10 --batch 4 --random 7 -o wide >out; mkdir short; sed 's/<f4/<i4/' wide/*.npy >short/tokens.npy; heddle run gpt2:layers=1,hidden=32,heads=2,vocab=64 --batch 4 --seq 8 --strategy dp=2 --data short
error[E0122]: the array is [4,10]; the model takes samples of [N,8]
  --> short/tokens.npy: tokens
  hint: [N,8], or [N,9] where labels are the next tokens of these
[1]
## weights
$ heddle eval mlp-xs:layers=2,hidden=32 --batch 4 --random 7 -o answer.safetensors
name  type  shape   least      mean     most  not finite
0     f32   4 x 32      0  0.311412  3.00761           0
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --weights answer.safetensors
error[E0121]: the model has no '0'
  --> answer.safetensors: 0
error[E0121]: there is no array 'h.0.w'
  --> answer.safetensors: h.0.w
error[E0121]: there is no array 'h.1.w'
  --> answer.safetensors: h.1.w
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --weights odd.u16
error[E0120]: not a safetensors file: it does not begin with the length of a header
  --> odd.u16
[1]
$ head -c 200 answer.safetensors >cut.safetensors; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --weights cut.safetensors
error[E0120]: the file is cut off: elements end at byte 512, and 72 bytes are there
  --> cut.safetensors: 0
[1]
$ mkdir none; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --weights none
error[E0121]: 'none' has no .npy and no .safetensors file
[1]
## checkpoints
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume none
error[E0101]: 'none' has no checkpoint step-NNNNNN.safetensors
  hint: --save none --save-every 100 writes them
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume nowhere
error[E0101]: cannot read 'nowhere': No such file or directory
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume answer.safetensors
error[E0120]: not a checkpoint of `heddle run --save`
  --> answer.safetensors
  hint: --weights answer.safetensors takes its weights alone
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --optimizer adafactor --resume tests/training/step-000002.safetensors
error[E0121]: the optimizer has other states than the checkpoint; it has not the 4 of the model: h.0.w.r, h.1.w.r, h.0.w.c, ..
  --> tests/training/step-000002.safetensors
  hint: --optimizer sgd as it was written with, or --weights tests/training/step-000002.safetensors: its weights, and states from zero
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume tests/training/step-000002.safetensors --steps 2
error: the checkpoint is of step 2; nothing is left of --steps 2
  hint: --steps 12
[1]
$ (cat tests/training/step-000002.safetensors | head -c 2000; printf x; tail -c +2002 tests/training/step-000002.safetensors) >bad.safetensors; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume bad.safetensors
error[E0120]: the tensor is not what was written: its checksum differs
  --> bad.safetensors: h.1.w
[1]
## A bit of the header has changed: what is no text is shown as numbers.
$ (head -c 14 tests/training/step-000002.safetensors; printf '\344\033'; tail -c +17 tests/training/step-000002.safetensors) >bit.safetensors; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --resume bit.safetensors
error[E0103]: byte 0xe4 is not UTF-8
  --> bit.safetensors:1:7
   1 | {"__me\xe4\x1bdata__":{"heddle.step":"2","heddle.sample":"0","heddle.seed":"0","heddle.shuffle":"0","h...
     |       ^
[1]
$ sed 's/h\.0\.w/h.\xb0.w/' tests/training/step-000002.safetensors >name.safetensors; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --weights name.safetensors
error[E0103]: byte 0xb0 is not UTF-8
  --> name.safetensors:1:195
   1 | ..."heddle.crc32":"cd8969ae f44cd4e7 891f332d"},"h.\xb0.w":{"dtype":"F32","shape":[16,16],"data_offset...
     |                                                    ^
[1]
## hosts
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=4 --hostfile nowhere
error[E0101]: cannot read 'nowhere': No such file or directory
[1]
$ printf 'localhost slots=2 # here\n\nother slots=1\n' >hosts; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=4 --hostfile hosts
error: hosts has 3 slots on 2 hosts, and the plan has 4 ranks
  hint: more slots=N, or a plan for at most 3 ranks
[1]
## Tasks of srun that were not told their ranks
$ SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2
error: srun has started 2 tasks that do not know each other: it gave them no PMI
  hint: srun --mpi=pmix (`srun --mpi=list` shows what there is), or the command without srun
[1]
## What a launcher says is told: at once what is not known, what Open MPI says of every failed job where nobody else says why.
$ r=$(printf '%070d' 0 | tr 0 -); printf '#!/bin/sh\nprintf "%%s\\n" %s "something else" %s %s "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD" "with errorcode 1." %s "[h:1] [[1,0],0] ORTE_ERROR_LOG: Out of resource in file x.c at line 3" last >&2\nexit 1\n' $r $r $r $r >fake; chmod +x fake; heddle run mlp-xs --batch 8 --strategy dp=2 --steps 1 --launcher ./fake
----------------------------------------------------------------------
something else
----------------------------------------------------------------------
last
----------------------------------------------------------------------
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 1.
----------------------------------------------------------------------
[h:1] [[1,0],0] ORTE_ERROR_LOG: Out of resource in file x.c at line 3
error: the job has ended before its last step
[1]
## What starts ranks itself is no rank of another launcher.
$ OMPI_COMM_WORLD_SIZE=2 heddle compare mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --machine laptop
error[E0801]: `heddle compare` starts its ranks itself: not under mpirun or srun
  hint: heddle run ... --trace DIR under the launcher, then heddle compare ... --from DIR
[2]
$ OMPI_COMM_WORLD_SIZE=2 heddle plan mlp-xs:layers=2,hidden=16 --batch 4 --train --machine '1x2 cpu-core' --measure 2
error[E0801]: --measure starts ranks itself: not under mpirun or srun
  hint: the command without the launcher
[2]
## What cannot be written is told before anything runs.
$ touch file; heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 -o file
error[E0102]: cannot write 'file': Not a directory
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 --trace file
error[E0102]: cannot write 'file': Not a directory
[1]
$ heddle run mlp-xs:layers=2,hidden=16 --batch 4 --strategy dp=2 -o no/such/x.safetensors
error[E0102]: cannot write 'no/such/x.safetensors': No such file or directory
  hint: mkdir -p no/such
[1]
