$ heddle show gpt2
model         gpt2
parameters    124 million in 148 tensors, f32, 475 MiB
work          2.35 TFLOP, 7.03 TFLOP with loss, gradients and update
instructions  330

input   tokens  i64  8 x 1024          64.0 KiB
output  0       f32  8 x 1024 x 50257  1.53 GiB

block  calls  instructions    parameters  FLOPs each  share of FLOPs
layer     12            27  7.09 million   143 GFLOP          73.0 %

operator   count       FLOPs   share
matmul        48  1.39 TFLOP  59.3 %
einsum        25   942 GFLOP  40.1 %
softmax       12  6.04 GFLOP   0.3 %
gelu          12  3.02 GFLOP   0.1 %
layernorm     25  1.26 GFLOP   0.1 %
where         12  1.21 GFLOP   0.1 %
add           73   837 MFLOP   0.0 %
scale         12  75.5 MFLOP   0.0 %
ge            12  12.6 MFLOP   0.0 %
reshape       48
iota          25
split         12
... and 2 more
$ heddle show gpt2 --json
{
  "model": "gpt2",
  "parameters": 124439808,
  "parameter_tensors": 148,
  "parameter_tensors_without_data": 148,
  "parameter_bytes": 497759232,
  "parameter_dtypes": "f32",
  "state_bytes": 0,
  "flops": 2345637249024,
  "training_flops": 7031740697856,
  "instructions": 330,
  "extents": [],
  "inputs": [
    {"name": "tokens", "dtype": "i64", "shape": [8, 1024], "bytes": 65536}
  ],
  "outputs": [
    {"name": "0", "dtype": "f32", "shape": [8, 1024, 50257], "bytes": 1646821376}
  ],
  "blocks": [
    {"block": "layer", "calls": 12, "instructions": 27, "parameters": 7087872, "flops": 142766768128, "share": 0.7303777334917616}
  ],
  "operators": [
    {"op": "matmul", "count": 48, "flops": 1391569403904, "share": 0.5932585716239884},
    {"op": "einsum", "count": 25, "flops": 941617053696, "share": 0.4014333648938253},
    {"op": "softmax", "count": 12, "flops": 6039797760, "share": 0.0025749069948957834},
    {"op": "gelu", "count": 12, "flops": 3019898880, "share": 0.0012874534974478917},
    {"op": "layernorm", "count": 25, "flops": 1258291200, "share": 0.0005364389572699549},
    {"op": "where", "count": 12, "flops": 1207959552, "share": 0.0005149813989791566},
    {"op": "add", "count": 73, "flops": 836763648, "share": 0.00035673190658451996},
    {"op": "scale", "count": 12, "flops": 75497472, "share": 3.218633743619729e-05},
    {"op": "ge", "count": 12, "flops": 12582912, "share": 5.364389572699549e-06},
    {"op": "reshape", "count": 48, "flops": null, "share": null},
    {"op": "iota", "count": 25, "flops": null, "share": null},
    {"op": "split", "count": 12, "flops": null, "share": null},
    {"op": "full", "count": 12, "flops": null, "share": null},
    {"op": "gather", "count": 2, "flops": null, "share": null}
  ]
}
## Of a matrix of 512 x 512 Adafactor keeps 1,024 numbers.
$ heddle show mlp-xs:layers=2 --train --optimizer adafactor | sed -n '/^parameters/p;/optimizer state/p;/new  /p'
parameters       524 thousand in 2 tensors, f32, 2.00 MiB
optimizer state  8.00 KiB
        h.0.w.new    f32  512 x 512  1.00 MiB
        h.1.w.new    f32  512 x 512  1.00 MiB
        h.0.w.r.new  f32  512        2.00 KiB
        h.0.w.c.new  f32  512        2.00 KiB
        h.1.w.r.new  f32  512        2.00 KiB
        h.1.w.c.new  f32  512        2.00 KiB
$ heddle show mlp-xs:layers=2 --train --optimizer adam
model            mlp-xs:layers=2
parameters       524 thousand in 2 tensors, f32, 2.00 MiB
optimizer state  4.00 MiB
work             1.35 GFLOP
instructions     21

input   x            f32  512 x 512  1.00 MiB
label   z            f32  512 x 512  1.00 MiB
output  loss         f32  scalar          4 B
        h.0.w.new    f32  512 x 512  1.00 MiB
        h.1.w.new    f32  512 x 512  1.00 MiB
        h.0.w.m.new  f32  512 x 512  1.00 MiB
        h.0.w.v.new  f32  512 x 512  1.00 MiB
        h.1.w.m.new  f32  512 x 512  1.00 MiB
        h.1.w.v.new  f32  512 x 512  1.00 MiB

block        calls  instructions    parameters  FLOPs each  share of FLOPs
layer.bwd        1             3  262 thousand   537 MFLOP          39.8 %
layer.fwd        1             2  262 thousand   269 MFLOP          19.9 %
layer.bwd.1      1             2             0   269 MFLOP          19.9 %
layer.fwd.1      1             2  262 thousand   269 MFLOP          19.9 %

operator    count       FLOPs   share
einsum          3   805 MFLOP  59.6 %
matmul          2   537 MFLOP  39.7 %
adam            2  6.29 MFLOP   0.5 %
relu            2   524 kFLOP   0.0 %
mul             2   524 kFLOP   0.0 %
relu_dx         2   524 kFLOP   0.0 %
scale           3   262 kFLOP   0.0 %
sub             1   262 kFLOP   0.0 %
reduce_sum      1   262 kFLOP   0.0 %
reshape         1
expand          1
full            1
$ heddle show examples/distir/fig2_pipeline.heddle
model         examples/distir/fig2_pipeline.heddle
parameters    132 thousand in 4 tensors, f32, 514 KiB
work          135 MFLOP
instructions  88
ranks         2

input   x       f32  128 x 256   128 KiB
label   y       f32  128 x 256   128 KiB
output  A1_new  f32  256 x 256   256 KiB
        b1_new  f32  256        1.00 KiB
        A2_new  f32  256 x 256   256 KiB
        b2_new  f32  256        1.00 KiB

block      calls  instructions  parameters  FLOPs each  share of FLOPs
denseGrad      4            10           0  25.2 MFLOP          74.8 %
dense          4             4           0  8.42 MFLOP          25.0 %
optimizer      2             4           0   132 kFLOP           0.2 %
lossGrad       2             2           0  32.8 kFLOP           0.0 %
sum            2             5           0                       0.0 %

operator    count       FLOPs   share
matmul          8  67.1 MFLOP  49.7 %
einsum          8  67.1 MFLOP  49.7 %
sgd             4   263 kFLOP   0.2 %
add             8   131 kFLOP   0.1 %
relu            4  65.5 kFLOP   0.0 %
gt              4  65.5 kFLOP   0.0 %
where           4  65.5 kFLOP   0.0 %
reduce_sum      4  65.5 kFLOP   0.0 %
sub             2  32.8 kFLOP   0.0 %
scale           2  32.8 kFLOP   0.0 %
unpack         16
pack            8
... and 4 more
$ heddle show mlp-xs:layers=2,hidden=64 --batch=8 --dtype f16
model         mlp-xs:layers=2,hidden=64
parameters    8,192 in 2 tensors, f16, 16.0 KiB
work          132 kFLOP, 349 kFLOP with loss, gradients and update
instructions  4

input   x  f16  8 x 64  1.00 KiB
output  0  f16  8 x 64  1.00 KiB

block  calls  instructions  parameters  FLOPs each  share of FLOPs
layer      2             2       4,096  66.0 kFLOP         100.0 %

operator  count       FLOPs   share
matmul        2   131 kFLOP  99.2 %
relu          2  1.02 kFLOP   0.8 %
## Counts beyond 2^63: 70 functions, each of which calls the one before twice.
$ awk 'BEGIN { t = "(%x: f32[8]) -> (f32[8]) {\n"; print "func @f0" t "  %y = relu %x\n  return %y\n}"; for (i = 1; i < 70; i++) print "func @f" i t "  %y = call @f" i-1 "(%x)\n  %z = call @f" i-1 "(%y)\n  return %z\n}"; print "func @main" t "  %y = call @f69(%x)\n  return %y\n}" }' > deep.heddle; heddle show deep.heddle
model         deep.heddle
parameters    0
work          4.72 ZFLOP, 4.72 ZFLOP with loss, gradients and update
instructions  > 9.2e18

input   x  f32  8  32 B
output  y  f32  8  32 B

block                      calls  instructions  parameters  FLOPs each  share of FLOPs
f0                      > 9.2e18             1           0      8 FLOP         100.0 %
f1                      > 9.2e18             2           0     16 FLOP         100.0 %
f2                      > 9.2e18             2           0     32 FLOP         100.0 %
f3                      > 9.2e18             2           0     64 FLOP         100.0 %
f4                      > 9.2e18             2           0    128 FLOP         100.0 %
f5                      > 9.2e18             2           0    256 FLOP         100.0 %
f6                      > 9.2e18             2           0    512 FLOP         100.0 %
f7     4,611,686,018,427,387,904             2           0  1.02 kFLOP         100.0 %
f8     2,305,843,009,213,693,952             2           0  2.05 kFLOP         100.0 %
f9     1,152,921,504,606,846,976             2           0  4.10 kFLOP         100.0 %
f10      576,460,752,303,423,488             2           0  8.19 kFLOP         100.0 %
f11      288,230,376,151,711,744             2           0  16.4 kFLOP         100.0 %
f12      144,115,188,075,855,872             2           0  32.8 kFLOP         100.0 %
f13       72,057,594,037,927,936             2           0  65.5 kFLOP         100.0 %
f14       36,028,797,018,963,968             2           0   131 kFLOP         100.0 %
f15       18,014,398,509,481,984             2           0   262 kFLOP         100.0 %
... and 54 more

operator     count       FLOPs    share
relu      > 9.2e18  4.72 ZFLOP  100.0 %
$ heddle show --list | grep -E '^(model|m6|gnmt) *'
model         kind       layers  hidden  heads     ffn    vocab  positions  experts
m6-10b        m6             24   3,840     32  15,360   21,128        512
m6-moe-100b   m6moe          12   1,024     16   4,096   21,128        512      512
m6-moe-1t     m6moe          12   1,024     16  21,248   21,128        512      960
m6-moe-10t    m6moe          24   1,024     16   9,984   21,128        512   10,240
gnmt          gnmt            8   1,024                  32,000         50
$ heddle show m6-10b --dtype f16 | head -4
model         m6-10b
parameters    10.0 billion in 801 tensors, f16, 18.6 GiB
work          85.6 TFLOP, 257 TFLOP with loss, gradients and update
instructions  1,598
$ heddle show m6-moe-1t --dtype f16 | head -4
model         m6-moe-1t
parameters    1.00 trillion in 381 tensors, f16, 1.82 TiB
work          34.1 TFLOP, 104 TFLOP with loss, gradients and update
instructions  878
$ heddle show gnmt | sed '/^operator/,$d'
model         gnmt
parameters    281 million in 65 tensors, f32, 1.05 GiB
work          173 GFLOP, 521 GFLOP with loss, gradients and update
instructions  12,517

input   source  i64  8 x 50          3.12 KiB
        target  i64  8 x 50          3.12 KiB
output  0       f32  8 x 50 x 32000  48.8 MiB

block             calls  instructions    parameters  FLOPs each  share of FLOPs
decoder               6           158  12.6 million  10.1 GFLOP          35.0 %
step                800            12  4.19 million  67.4 MFLOP          31.2 %
encoder               6           156  8.39 million  6.73 GFLOP          23.4 %
decoder.first         1           207  14.7 million  12.0 GFLOP           6.9 %
decoder.second        1           157  12.6 million  10.1 GFLOP           5.8 %
encoder.second        1           155  12.6 million  10.1 GFLOP           5.8 %
attention            50            21  9.44 million   156 MFLOP           4.5 %
encoder.forward       1           155  8.39 million  6.73 GFLOP           3.9 %
encoder.backward      1           155  8.39 million  6.73 GFLOP           3.9 %

$ heddle show m6
error[E0115]: `m6` is neither a file nor a built-in model
  hint: built-in models whose names begin so: m6-10b, m6-moe-100b, m6-moe-1t, m6-moe-10t
[1]
