## The sharding patterns of a product, from its law alone
$ heddle ops matmul --patterns
matmul: matrix product of the last two dimensions, numpy's rules

law           ...mk,...kn->...mn
may be split  all; a split k leaves partial sums
example       f32[64,128], f32[128,256] -> f32[64,256]
letters       [m,k], [k,n] -> [m,n]: m=64 k=128 n=256

pattern  letter  operands                results     results need                  gradients need
SP1      n       [m,k], [k,n/ways]       [m,n/ways]  nothing                       all_reduce of operand 1
SP2      k       [m,k/ways], [k/ways,n]  [m,n] sum   all_reduce or reduce_scatter  nothing
SP3      m       [m/ways,k], [k,n]       [m/ways,n]  nothing                       all_reduce of operand 2

n/ways: split so many ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks
## What they cost on a machine, and the same for programs
$ heddle ops matmul --patterns --shapes 4096x1024,1024x4096 --type f16 --machine dgx-2 --ways 4
matmul: matrix product of the last two dimensions, numpy's rules

law           ...mk,...kn->...mn
may be split  all; a split k leaves partial sums
applied to    f16[4096,1024], f16[1024,4096] -> f16[4096,4096]
letters       [m,k], [k,n] -> [m,n]: m=4096 k=1024 n=4096
machine       dgx-2
ways          4: ranks 0 to 3

pattern  letter  operands          results    results need                  gradients need
SP1      n       [m,k], [k,n/4]    [m,n/4]    nothing                       all_reduce of operand 1
SP2      k       [m,k/4], [k/4,n]  [m,n] sum  all_reduce or reduce_scatter  nothing
SP3      m       [m/4,k], [k,n]    [m/4,n]    nothing                       all_reduce of operand 2

n/4: split 4 ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

pattern  letter  arithmetic  memory traffic  computes      sums  all_reduce  (reduce_scatter)     total  speedup  gradient sums    in all
whole            34.4 GFLOP        48.0 MiB  362.1 us       0 B           0                    362.1 us    1.00x              0  362.1 us
SP1      n       8.59 GFLOP        18.0 MiB  111.0 us       0 B           0                    111.0 us    3.26x       130.5 us  241.5 us  cheapest
SP2      k       8.59 GFLOP        36.0 MiB  111.0 us  32.0 MiB    480.0 us          244.0 us  591.0 us    0.61x              0  591.0 us
SP3      m       8.59 GFLOP        18.0 MiB  111.0 us       0 B           0                    111.0 us    3.26x       130.5 us  241.5 us  cheapest
$ heddle ops matmul --patterns --shapes 4096x1024,1024x4096 --type f16 --machine dgx-2 --ways 4 --json
{
  "name": "matmul",
  "about": "matrix product of the last two dimensions, numpy's rules",
  "law_text": "...mk,...kn->...mn",
  "split": "all; a split k leaves partial sums",
  "application": "f16[4096,1024], f16[1024,4096] -> f16[4096,4096]",
  "letters": "[m,k], [k,n] -> [m,n]: m=4096 k=1024 n=4096",
  "machine": "dgx-2",
  "ways": 4,
  "patterns": [
    {"pattern": "SP1", "letter": "n", "extent": 4096, "operands": "[m,k], [k,n/4]", "results": "[m,n/4]", "reduction": null},
    {"pattern": "SP2", "letter": "k", "extent": 1024, "operands": "[m,k/4], [k/4,n]", "results": "[m,n] sum", "reduction": "sum"},
    {"pattern": "SP3", "letter": "m", "extent": 4096, "operands": "[m/4,k], [k,n]", "results": "[m/4,n]", "reduction": null}
  ],
  "tensors": [
    {"pattern": "SP1", "tensor": "operand 1", "piece": "whole", "split_dimension": null, "gradient": "partial"},
    {"pattern": "SP1", "tensor": "operand 2", "piece": "split", "split_dimension": 1, "gradient": "split"},
    {"pattern": "SP1", "tensor": "result 1", "piece": "split", "split_dimension": 1, "gradient": null},
    {"pattern": "SP2", "tensor": "operand 1", "piece": "split", "split_dimension": 1, "gradient": "split"},
    {"pattern": "SP2", "tensor": "operand 2", "piece": "split", "split_dimension": 0, "gradient": "split"},
    {"pattern": "SP2", "tensor": "result 1", "piece": "partial", "split_dimension": null, "gradient": null},
    {"pattern": "SP3", "tensor": "operand 1", "piece": "split", "split_dimension": 0, "gradient": "split"},
    {"pattern": "SP3", "tensor": "operand 2", "piece": "whole", "split_dimension": null, "gradient": "partial"},
    {"pattern": "SP3", "tensor": "result 1", "piece": "split", "split_dimension": 0, "gradient": null}
  ],
  "whole": [],
  "pattern_costs": [
    {"pattern": "whole", "letter": null, "flops": 34359738368, "traffic_bytes": 50331648, "compute_ps": 362086692, "sum_bytes": 0, "communication_ps": 0, "reduce_scatter_ps": null, "total_ps": 362086692, "speedup": 1, "gradients_ps": 0, "total_with_gradients_ps": 362086692, "cheapest": false, "cheapest_with_gradients": false, "reason": null},
    {"pattern": "SP1", "letter": "n", "flops": 8589934592, "traffic_bytes": 18874368, "compute_ps": 110954997, "sum_bytes": 0, "communication_ps": 0, "reduce_scatter_ps": null, "total_ps": 110954997, "speedup": 3.263365344419774, "gradients_ps": 130508444, "total_with_gradients_ps": 241463441, "cheapest": true, "cheapest_with_gradients": true, "reason": null},
    {"pattern": "SP2", "letter": "k", "flops": 8589934592, "traffic_bytes": 37748736, "compute_ps": 110954997, "sum_bytes": 33554432, "communication_ps": 480033778, "reduce_scatter_ps": 244016889, "total_ps": 590988775, "speedup": 0.6126794743267332, "gradients_ps": 0, "total_with_gradients_ps": 590988775, "cheapest": false, "cheapest_with_gradients": false, "reason": null},
    {"pattern": "SP3", "letter": "m", "flops": 8589934592, "traffic_bytes": 18874368, "compute_ps": 110954997, "sum_bytes": 0, "communication_ps": 0, "reduce_scatter_ps": null, "total_ps": 110954997, "speedup": 3.263365344419774, "gradients_ps": 130508444, "total_with_gradients_ps": 241463441, "cheapest": true, "cheapest_with_gradients": true, "reason": null}
  ]
}
## SP2 as a program: the same time
$ printf 'mesh @m [w=4]\nfunc @main(%%x: f16[4096,1024{w}] @m, %%y: f16[1024{w},4096] @m) -> (f16[4096,4096] @m) {\n  %%s = matmul %%x, %%y @m : f16[4096,4096]+w @m\n  %%z = all_reduce %%s {over=[w]} @m : f16[4096,4096] @m\n  return %%z\n}\n' > sp2.heddle; heddle sim sp2.heddle --machine dgx-2 --json | grep '"time_ps"' | head -1
  "time_ps": 590988775,
## Letters that do not divide, and a batch
$ heddle ops matmul --patterns --shapes 8x4096x1000,1000x4096 --type f16 --machine dgx-2
matmul: matrix product of the last two dimensions, numpy's rules

law           ...mk,...kn->...mn
may be split  all; a split k leaves partial sums
applied to    f16[8,4096,1000], f16[1000,4096] -> f16[8,4096,4096]
letters       [a,m,k], [k,n] -> [a,m,n]: a=8 m=4096 k=1000 n=4096
machine       dgx-2
ways          16: ranks 0 to 15

pattern  letter  operands              results      results need                  gradients need
SP1      n       [a,m,k], [k,n/16]     [a,m,n/16]   nothing                       all_reduce of operand 1
SP2      k       [a,m,k/16], [k/16,n]  [a,m,n] sum  all_reduce or reduce_scatter  nothing
SP3      a       [a/16,m,k], [k,n]     [a/16,m,n]   nothing                       all_reduce of operand 2
SP4      m       [a,m/16,k], [k,n]     [a,m/16,n]   nothing                       all_reduce of operand 2

n/16: split 16 ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

pattern  letter  arithmetic  memory traffic  computes  sums  all_reduce  (reduce_scatter)     total  speedup  gradient sums    in all
whole             268 GFLOP         326 MiB  2.590 ms   0 B           0                    2.590 ms    1.00x              0  2.590 ms
SP1      n       16.8 GFLOP        79.0 MiB  193.2 us   0 B           0                    193.2 us    13.4x       1.176 ms  1.369 ms  cheapest forward
SP2      k                                                                                                                             k=1000 is not divisible by 16
SP3      a                                                                                                                             a=8 is not divisible by 16
SP4      m       16.8 GFLOP        27.7 MiB  193.2 us   0 B           0                    193.2 us    13.4x       180.2 us  373.4 us  cheapest
## Several letters of one dimension, letters that stay whole
$ heddle ops conv --patterns
conv: convolution: x[n,c,space], w[f,c/group,window], bias[f]; groups are c / (c/group) of the extents at hand; with a bias inside (an add is better) c stays whole

law           n(g c)X,(g f)cW,(g f)->n(g f)Y
may be split  n, f, groups; without a bias c, leaving partial sums; space if the window is 1
example       f32[8,64,28,28], f32[128,32,3,3] -> f32[8,128,28,28]
letters       [n,(g c),A,E], [(g f),c,B,H] -> [n,(g f),D,I]: n=8 g=2 f=64 c=32 A=28 B=3 D=28 E=28 H=3 I=28

pattern  letter  operands                                results             results need                  gradients need
SP1      f       [n,(g c),A,E], [(g f/ways),c,B,H]       [n,(g f/ways),D,I]  nothing                       all_reduce of operand 1
SP2      c       [n,(g c/ways),A,E], [(g f),c/ways,B,H]  [n,(g f),D,I] sum   all_reduce or reduce_scatter  nothing
SP3      n       [n/ways,(g c),A,E], [(g f),c,B,H]       [n/ways,(g f),D,I]  nothing                       all_reduce of operand 2
SP4      g       [n,(g/ways c),A,E], [(g/ways f),c,B,H]  [n,(g/ways f),D,I]  nothing                       nothing

f/ways: split so many ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

stays whole  extent  because
A                28  its index follows from those of other letters
B                 3  its extent is tied to an attribute or to other extents
D                28  its extent is tied to an attribute or to other extents
E                28  its index follows from those of other letters
H                 3  its extent is tied to an attribute or to other extents
I                28  its extent is tied to an attribute or to other extents
$ heddle ops softmax --patterns --json
{
  "name": "softmax",
  "about": "exponentials normalised along a dimension",
  "law_text": "...A...->...A...",
  "split": "all but the dimension `axis`",
  "application": "f32[64,128] -> f32[64,128]",
  "letters": "[a,B] -> [a,B]: a=64 B=128",
  "patterns": [
    {"pattern": "SP1", "letter": "a", "extent": 64, "operands": "[a/ways,B]", "results": "[a/ways,B]", "reduction": null}
  ],
  "tensors": [
    {"pattern": "SP1", "tensor": "operand 1", "piece": "split", "split_dimension": 0, "gradient": "split"},
    {"pattern": "SP1", "tensor": "result 1", "piece": "split", "split_dimension": 0, "gradient": null}
  ],
  "whole": [
    {"letter": "B", "extent": 128, "reason": "elements of the result along it depend on each other"}
  ]
}
$ heddle ops batchnorm_train --patterns
batchnorm_train: batchnorm with the statistics of the batch, or of each of its bn_groups equal parts: y; mean and var of the first

law           (gN)cX,c,c->(gN)cX,c,c
may be split  c, and the groups g (bn_groups); the statistics need the rest whole
example       f32[8,64,28,28], f32[64], f32[64] -> f32[8,64,28,28], f32[64], f32[64]
letters       [(g N),c,A,B], [c], [c] -> [(g N),c,A,B], [c], [c]: g=4 N=2 c=64 A=28 B=28

pattern  letter  operands                                results                                 results need                  gradients need
SP1      g       [(g/ways N),c,A,B], [c], [c]            [(g/ways N),c,A,B], [c] sum, [c] sum    all_reduce or reduce_scatter  all_reduce of operands 2, 3
SP2      c       [(g N),c/ways,A,B], [c/ways], [c/ways]  [(g N),c/ways,A,B], [c/ways], [c/ways]  nothing                       nothing

g/ways: split so many ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

stays whole  extent  because
N                 2  elements of the result along it depend on each other
A                28  elements of the result along it depend on each other
B                28  elements of the result along it depend on each other
## Picked by value; partial results that are not sums; many operands and no gradient
$ heddle ops gather --patterns
gather: slices along a dimension picked by index (embedding)

law           ...[v]d,i->...id
may be split  all; a split v leaves partial sums
example       f32[1024,128], i64[64] -> f32[64,128]
letters       [a,b], [c] -> [c,b]: a=1024 b=128 c=64

pattern  letter  operands         results     results need                  gradients need
SP1      c       [a,b], [c/ways]  [c/ways,b]  nothing                       all_reduce of operand 1
SP2      a       [a/ways,b], [c]  [c,b] sum   all_reduce or reduce_scatter  nothing
SP3      b       [a,b/ways], [c]  [c,b/ways]  nothing                       nothing

c/ways: split so many ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks
$ heddle ops reduce_max --patterns
reduce_max: largest over dimensions

law           ...r->...
may be split  kept dimensions; reduced ones leave a partial result
example       f32[64,128] -> f32[64,1]
letters       [a,b] -> [a,1]: a=64 b=128

pattern  letter  operands    results     results need                          gradients need
SP1      b       [a,b/ways]  [a,1] max   all_reduce or reduce_scatter, by max  nothing
SP2      a       [a/ways,b]  [a/ways,1]  nothing                               nothing

b/ways: split so many ways
max: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
$ heddle ops adam --patterns
adam: Adam; state may be f32 beside a half-precision parameter

law           ...,...->...
may be split  every dimension; all operands have equal extents
example       f32[64,128], f32[64,128], f32[64,128], f32[64,128] -> f32[64,128], f32[64,128], f32[64,128]
letters       [a,b], [a,b], [a,b], [a,b] -> [a,b], [a,b], [a,b]: a=64 b=128

pattern  letter  operands                                        results                             results need  gradients need
SP1      a       [a/ways,b], [a/ways,b], [a/ways,b], [a/ways,b]  [a/ways,b], [a/ways,b], [a/ways,b]  nothing       no gradient
SP2      b       [a,b/ways], [a,b/ways], [a,b/ways], [a,b/ways]  [a,b/ways], [a,b/ways], [a,b/ways]  nothing       no gradient

a/ways: split so many ways
## Attributes; nothing to split; communication; no law
$ heddle ops einsum --patterns --shapes 64x32x16,64x16x8 --attributes 'law="bij,bjk->bik"' --machine laptop --costs distir
einsum: product of two tensors along named letters

law           as the attribute says
may be split  all; a split letter that the result lacks leaves partial sums
applied to    f32[64,32,16], f32[64,16,8] -> f32[64,32,8]
letters       [b,i,j], [b,j,k] -> [b,i,k]: b=64 i=32 j=16 k=8
machine       laptop
ways          4: ranks 0 to 3

pattern  letter  operands              results      results need                  gradients need
SP1      k       [b,i,j], [b,j,k/4]    [b,i,k/4]    nothing                       all_reduce of operand 1
SP2      j       [b,i,j/4], [b,j/4,k]  [b,i,k] sum  all_reduce or reduce_scatter  nothing
SP3      b       [b/4,i,j], [b/4,j,k]  [b/4,i,k]    nothing                       nothing
SP4      i       [b,i/4,j], [b,j,k]    [b,i/4,k]    nothing                       all_reduce of operand 2

k/4: split 4 ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

pattern  letter  arithmetic  memory traffic  computes      sums  all_reduce  (reduce_scatter)     total  speedup  gradient sums    in all
whole             524 kFLOP         224 KiB  10.22 us       0 B           0                    10.22 us    1.00x              0  10.22 us
SP1      k        131 kFLOP         152 KiB  10.16 us       0 B           0                    10.16 us    1.01x       62.91 us  73.08 us
SP2      j        131 kFLOP         104 KiB  10.05 us  64.0 KiB    31.46 us          31.46 us  41.51 us    0.25x              0  41.51 us
SP3      b        131 kFLOP        56.0 KiB  10.05 us       0 B           0                    10.05 us    1.02x              0  10.05 us  cheapest
SP4      i        131 kFLOP        80.0 KiB  10.08 us       0 B           0                    10.08 us    1.01x       15.73 us  25.81 us
$ heddle ops argmax --patterns --shapes 64
argmax: index of the largest

law           ...R->...
may be split  all but the searched dimension
applied to    f32[64] -> i64[1]
letters       [A] -> [1]: A=64

no letter may be split

stays whole  extent  because
A                64  a result lacks it, and its parts cannot be combined
$ heddle ops full --patterns
full: one value everywhere

law           ->abc
may be split  every dimension
example       -> f32[64,128]
letters       -> [a,b]: a=64 b=128

pattern  letter  operands  results     results need  gradients need
SP1      a                 [a/ways,b]  nothing       no gradient
SP2      b                 [a,b/ways]  nothing       no gradient

a/ways: split so many ways
$ heddle ops all_reduce --patterns
all_reduce: combine partial sums on every rank (partial to replicated)

law           ...,***->...,***
may be split  every dimension; result k has the extents of operand k
example       f32[64,128] -> f32[64,128]
letters       [a,b] -> [a,b]: a=64 b=128

pattern  letter  operands    results     results need  gradients need
SP1      a       [a/ways,b]  [a/ways,b]  nothing       no gradient
SP2      b       [a,b/ways]  [a,b/ways]  nothing       no gradient

a/ways: split so many ways
$ heddle ops call --patterns
call: a function

It has no law of its own: what it holds is split, instruction by instruction.
$ heddle ops call --patterns --json
{
  "name": "call",
  "about": "a function"
}
## Unlike devices: the slower one decides
$ heddle ops matmul --patterns --shapes 4096x4096,4096x4096 --machine "1x1 v100 + 1x1 p100 eth=50Gb/s" | sed -n '/arithmetic/,$p'
pattern  letter  arithmetic  memory traffic  computes      sums  all_reduce  (reduce_scatter)     total  speedup  gradient sums    in all
whole             137 GFLOP         192 MiB  10.70 ms       0 B           0                    10.70 ms    1.00x              0  10.70 ms
SP1      n       68.7 GFLOP         128 MiB  9.241 ms       0 B           0                    9.241 ms    1.16x       11.69 ms  20.93 ms  cheapest
SP2      k       68.7 GFLOP         128 MiB  9.241 ms  64.0 MiB    11.69 ms          5.852 ms  20.93 ms    0.51x              0  20.93 ms  cheapest with gradients
SP3      m       68.7 GFLOP         128 MiB  9.241 ms       0 B           0                    9.241 ms    1.16x       11.69 ms  20.93 ms  cheapest
