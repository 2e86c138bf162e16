## long: .ci/run has it without sanitizers
$ heddle sim gpt2 --batch 8 --train --machine '1x4 v100' --strategy 'dp=2 tp=2 mb=2' --profiles examples/profiles/gpt2.csv
model           gpt2
plan            dp=2 tp=2 pp=1 mb=2
weights         f32
dropout         none; with it more activations are kept (docs/commands.md)
machine         1x4 v100, times of layers from examples/profiles/gpt2.csv
ranks           4
time per step   327.7 ms
one step alone  327.7 ms
error bar       unknown: no measured spread for 100.0 % of the step
samples         24.41/s
arithmetic      5.37 TFLOP/s a device, 34.2 % of the f32 peak (MFU)
computes        95.8 %
communicates    4.2 %
idle            0.0 %
peak memory     2.12 GiB of 28.8 GiB on rank 0
instructions    9,012

place  ranks  computes  communicates   idle  peak memory
    0  0-3      95.8 %         4.2 %  0.0 %     2.12 GiB

device  ranks  computes  communicates   idle
v100        4    95.8 %         4.2 %  0.0 %

ranks  parameters  gradients  optimizer  activations  temporary  communication      peak
0-3       237 MiB    237 MiB        0 B     1.47 GiB    196 MiB            0 B  2.12 GiB

at the peak       function                kind         count     bytes
softmax           layer.fwd               activations     12   576 MiB
einsum            stage.fwd               activations      1   196 MiB
cross_entropy_dx  cross_entropy_dx.split  temporary        1   196 MiB
add               layer.fwd               activations     12   144 MiB
gelu              layer.fwd               activations     12   144 MiB
wte               main                    parameters       1  73.6 MiB
... and 4 more

critical path  kind           count      time   share
einsum         computation      342  195.8 ms  59.7 %
matmul         computation       96  47.63 ms  14.5 %
add            computation      496  15.41 ms   4.7 %
all_reduce     communication    259  13.65 ms   4.2 %
where          computation       48  10.03 ms   3.1 %
sgd            computation      148  8.030 ms   2.5 %
softmax_dx     computation       24  7.472 ms   2.3 %
softmax        computation       24  4.700 ms   1.4 %
... and 21 more

cost source       count      time   share  spread known
measured layers   1,954  322.7 ms  98.5 %         0.0 %
link model          149  3.796 ms   1.2 %         0.0 %
launch time         113  608.1 us   0.2 %         0.0 %
efficiency curve     37  566.1 us   0.2 %         0.0 %
$ heddle plan gpt2 --batch 8 --train --machine '1x4 v100' --profiles examples/profiles/gpt2.csv --top 3 --threads 1
model         gpt2
weights       f32
dropout       none; with it more activations are kept (docs/commands.md)
machine       1x4 v100, times of layers from examples/profiles/gpt2.csv
ranks         4
batch         8
memory limit  28.8 GiB
step          training

   dp  ZeRO      time         samples    memory  limited by
1   4     3  304.1 ms  1.00x  26.31/s  3.26 GiB  computation 95 %
2   4     0  304.1 ms  1.00x  26.31/s  3.49 GiB  computation 97 %
3   4     2  306.3 ms  1.01x  26.12/s  3.61 GiB  computation 94 %

winner       dp=4 tp=1 pp=1 zero=3
             computes 94.9 % of the time, communicates 5.1 %, idles 0.0 %; MFU 36.8 %; needs 3.26 GiB of 28.8 GiB
next         dp=4 tp=1 pp=1
             1.00x the time, limited by computation
certificate  132 plans: 6 fit, 0 too large, 90 too slow, 12 impossible, 24 equal to another;
             6 simulated, 0 ruled out by bounds on memory, 90 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* attention=* sp=* overlap=* layers=*' has them, --what-if tries each
impossible   12 such as dp=1 tp=4 pp=1:
             examples/profiles/gpt2.csv has no times of layer 'first' on 4 v100 together
## A part of a search and the whole say the same.
$ p() { heddle plan gpt2 --batch 8 --train --machine '1x4 v100' --profiles examples/profiles/gpt2.csv --top 3 --threads 1 "$@"; }; p --json >whole; p --part 1/2 -o p1 >/dev/null; p --part 2/2 -o p2 >/dev/null; heddle merge p1 p2 --json >merged; test -s whole && cmp whole merged && echo same
same
## Bad files.
$ echo layer,device,sample,tensor,forward_us >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: unknown column 'sample'
  --> x:1:14
   1 | layer,device,sample,tensor,forward_us
     |              ^
  hint: did you mean samples? The first line names the columns: layer,device,samples,tensor,forward_us[,backward_us][,update_us]
[1]
$ echo layer,device,tensor,forward_us >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: column 'samples' is missing
  --> x:1:1
   1 | layer,device,tensor,forward_us
     | ^
  hint: the first line names the columns: layer,device,samples,tensor,forward_us[,backward_us][,update_us]
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1,1,ten\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: 'ten' is not a time in microseconds
  --> x:2:16
   2 | first,v100,1,1,ten
     |                ^
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1.5,1,10\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: '1.5' is not a number of samples
  --> x:2:12
   2 | first,v100,1.5,1,10
     |            ^
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1,1\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: fewer cells than the 5 columns of the first line
  --> x:2:1
   2 | first,v100,1,1
     | ^
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1,1,10\n# again\nfirst,v100,1,1,11\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: layer first on v100 with 1 sample and tensor 1 is there twice
  --> x:4:1
   4 | first,v100,1,1,11
     | ^
  note: the first time
    --> x:2:1
     2 | first,v100,1,1,10
       | ^
[1]
$ printf 'layer,device,samples,tensor,forward_us,update_us\nfirst,v100,1,1,10,\nlast,v100,1,1,11,3\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: update_us is said here, but not before for v100
  --> x:3:1
   3 | last,v100,1,1,11,3
     | ^
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,a100,1,1,10\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: no times of a v100, of which the machine has some
  --> x
  hint: the column `device` has names of the machine's kinds: v100
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,a100,1,1,10\nlast,a100,1,1,10\nfirst,V100,1,1,10\nlast,V100,1,1,10\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: no times of a v100, of which the machine has some; 'V100' is none of its kinds
  --> x:4:1
   4 | first,V100,1,1,10
     | ^
  hint: did you mean 'v100'?
  hint: the column `device` has names of the machine's kinds: v100
[1]
$ printf 'layr,device,samples,tensor,forward_us\nfirst,v100,1,1,10\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: unknown column 'layr'
  --> x:1:1
   1 | layr,device,samples,tensor,forward_us
     | ^
  hint: did you mean layer? The first line names the columns: layer,device,samples,tensor,forward_us[,backward_us][,update_us]
[1]
$ : >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: the file is empty
  --> x
[1]
$ heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles nowhere.csv
error[E0101]: cannot read 'nowhere.csv': No such file or directory
[1]
## Files that say too little of the model or of the plan.
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1,1,10\nlayr,v100,1,1,10\nlast,v100,1,1,10\n' >x; heddle sim gpt2 --batch 1 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: x:3 has times of 'layr', which the model has not; did you mean 'layer'?
  hint: the layers of this model are first, layer, last
[1]
$ heddle plan gpt2 --batch 4 --train --machine '1x4 v100' --profiles x
error[E0117]: x:3 has times of 'layr', which the model has not; did you mean 'layer'?
[1]
$ heddle sim gpt2 --batch 4 --machine '1x4 v100' --strategy tp=4 --profiles examples/profiles/gpt2.csv
error[E0117]: examples/profiles/gpt2.csv has no times of layer 'first' on 4 v100 together
  hint: column tensor has 1, 2
[1]
$ heddle sim gpt2 --batch 32 --machine '1x4 v100' --strategy dp=1 --profiles examples/profiles/gpt2.csv
error[E0117]: examples/profiles/gpt2.csv has no times of layer 'first' near 32 samples on 1 v100
  hint: column samples has 1 to 4 for it
[1]
$ heddle sim examples/distir/fig2_pipeline.heddle --machine '1x4 v100' --profiles examples/profiles/gpt2.csv
error[E0117]: measured times of layers need a model and a plan: this program does not say what its layers are
  hint: give a model and --strategy 'dp=1', or a plan file
[1]
$ printf 'layer,device,samples,tensor,forward_us\nfirst,v100,1,1,0x10\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: '0x10' is not a time in microseconds
  --> x:2:16
   2 | first,v100,1,1,0x10
     |                ^
[1]
## Communication of a tensor group is part of its time, wherever the group lies.
$ printf 'layer,device,samples,tensor,forward_us\nfirst,p100,4,2,60\nlayer,p100,4,2,700\nlast,p100,4,2,300\n' >x; for m in "1x2 p100" "1x1 p100 ib=10Gb/s + 1x2 p100 ib=10Gb/s" "1x2 p100 ib=10Gb/s + 2x1 p100 ib=10Gb/s"; do for s in 0 1 2; do heddle sim gpt2:layers=3,hidden=256,heads=4,vocab=4096 --batch 4 --machine "$m" --strategy "tp=2 skip=$s" --profiles x 2>&1 | grep "^time per\|^error"; done; done
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
error[E0605]: rank 2 is used; the machine 1x2 p100 has ranks 0 to 1
error[E0605]: rank 3 is used; the machine 1x2 p100 has ranks 0 to 1
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
error[E0605]: rank 3 is used; the machine 1x1 p100 ib=10Gb/s + 1x2 p100 ib=10Gb/s has ranks 0 to 2
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
time per step  2.460 ms
error bar      unknown: no measured spread for 100.0 % of the step
## Layers that the model has not are the file's fault, whatever the plan.
$ printf 'layer,device,samples,tensor,forward_us,backward_us,update_us\nfirst,v100,1,1,10,20,5\nlayerr,v100,1,1,100,200,10\nlast,v100,1,1,10,20,5\n' > wrong.csv; heddle plan gpt2 --batch 8 --train --machine "1x2 v100" --profiles wrong.csv
error[E0117]: wrong.csv:3 has times of 'layerr', which the model has not; did you mean 'layer'?
[1]
## All columns, and one of them again.
$ printf 'layer,device,samples,tensor,forward_us,backward_us,update_us,layer\nfirst,v100,1,1,1,1,1,first\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: repeated column 'layer'
  --> x:1:62
   1 | layer,device,samples,tensor,forward_us,backward_us,update_us,layer
     |                                                              ^
  hint: the first line names the columns: layer,device,samples,tensor,forward_us[,backward_us][,update_us]
[1]
$ printf 'layer,device,samples,tensor,forward_us,backward_us,update_us,layer,more\nfirst,v100,1,1,1,1,1,first,1\n' >x; heddle sim gpt2 --machine '1x4 v100' --strategy dp=1 --profiles x
error[E0117]: repeated column 'layer'
  --> x:1:62
   1 | layer,device,samples,tensor,forward_us,backward_us,update_us,layer,more
     |                                                              ^
  hint: the first line names the columns: layer,device,samples,tensor,forward_us[,backward_us][,update_us]
[1]
