## long: .ci/run has it without sanitizers
## An operator from outside is in the tables.
$ heddle ops swiglu_matmul --operators operators.so
swiglu_matmul: (silu(gate) up) w
  operands    3
  results     1
  law         bsk,bsk,kn->bsn
  types       F->F
  split       every dimension
  linearity   operand 1: not linear; operands 2 to 3: linear in it alone
  flops       2 per point of the iteration space
  gradient    %h = swiglu %gate, %up
              %d_w = einsum %h, %d_y {law="bsk,bsn->kn"}
              %g = einsum %d_y, %w {law="bsn,kn->bsk"}
              %s = silu %gate
              %d_up = mul %g, %s
              %t = mul %g, %up
              %d_gate = silu_dx %t, %gate
  kernel      registered
  PyTorch     (F.silu($0) * $1) @ $2
$ heddle ops swiglu --operators operators.so --json
{
  "name": "swiglu",
  "about": "silu(gate) up",
  "operands_min": 2,
  "operands_max": 2,
  "results": 1,
  "law": "bsh,bsh->bsh",
  "linear": "-e",
  "types": "F->F",
  "attributes": "",
  "flops_per_point": 7
}
$ heddle ops --operators operators.so | tail -n 3
opaque            0..           any  an abstract operation of stated cost (profiled layers)
swiglu            2               1  silu(gate) up
swiglu_matmul     3               1  (silu(gate) up) w
$ heddle ops swiglu_matmul --patterns --shapes 16x128x4096,16x128x4096,4096x1024 --machine dgx-2 --ways 4 --operators operators.so
swiglu_matmul: (silu(gate) up) w

law         bsk,bsk,kn->bsn
applied to  f32[16,128,4096], f32[16,128,4096], f32[4096,1024] -> f32[16,128,1024]
letters     [b,s,k], [b,s,k], [k,n] -> [b,s,n]: b=16 s=128 k=4096 n=1024
machine     dgx-2
ways        4: ranks 0 to 3

pattern  letter  operands                       results      results need                  gradients need
SP1      n       [b,s,k], [b,s,k], [k,n/4]      [b,s,n/4]    nothing                       all_reduce of operands 1, 2
SP2      k       [b,s,k/4], [b,s,k/4], [k/4,n]  [b,s,n] sum  all_reduce or reduce_scatter  nothing
SP3      b       [b/4,s,k], [b/4,s,k], [k,n]    [b/4,s,n]    nothing                       all_reduce of operand 3
SP4      s       [b,s/4,k], [b,s/4,k], [k,n]    [b,s/4,n]    nothing                       all_reduce of operand 3

n/4: split 4 ways
sum: every rank has that of its part; all_reduce makes it whole, reduce_scatter split
the gradient of an operand that lacks the letter is a sum over the ranks

pattern  letter  arithmetic  memory traffic  computes      sums  all_reduce  (reduce_scatter)     total  speedup  gradient sums    in all
whole            17.2 GFLOP        88.0 MiB  1.534 ms       0 B           0                    1.534 ms    1.00x              0  1.534 ms
SP1      n       4.29 GFLOP        70.0 MiB  433.4 us       0 B           0                    433.4 us    3.54x       960.1 us  1.393 ms  cheapest forward
SP2      k       4.29 GFLOP        28.0 MiB  433.4 us  8.00 MiB    130.5 us          69.25 us  563.9 us    2.72x              0  563.9 us  cheapest with gradients
SP3      b       4.29 GFLOP        34.0 MiB  433.4 us       0 B           0                    433.4 us    3.54x       247.0 us  680.4 us  cheapest forward
SP4      s       4.29 GFLOP        34.0 MiB  433.4 us       0 B           0                    433.4 us    3.54x       247.0 us  680.4 us  cheapest forward
## It is parsed, inferred and printed; what does not fit is told where it stands.
$ heddle import examples/operators/model.heddle --operators operators.so -o printed.heddle; heddle import printed.heddle --operators operators.so | cmp - printed.heddle && grep swiglu printed.heddle
  %c = swiglu %a, %b : f32[8,32,1024]
  %g = swiglu_matmul %e, %f, %down2 : f32[8,32,256]
$ printf 'main @main(%%x: f32[4,2,8], %%y: f32[4,2,6]) -> () {\n  %%a = swiglu %%x, %%y\n  %%b = swiglu %%x\n  %%c = swigl %%x, %%x\n  %%d = swiglu %%x, %%x {eps=1}\n}\n' >bad.heddle; heddle import bad.heddle --operators operators.so
error[E0301]: swiglu: extents of h differ: 8 against 6
  --> bad.heddle:2:8
   2 |   %a = swiglu %x, %y
     |        ^
error[E0402]: swiglu: 1 operand, 2 are needed
  --> bad.heddle:3:8
   3 |   %b = swiglu %x
     |        ^
error[E0202]: unknown operator 'swigl'
  --> bad.heddle:4:8
   4 |   %c = swigl %x, %x
     |        ^
  hint: did you mean 'swiglu'?
error[E0401]: swiglu: there is no attribute eps
  --> bad.heddle:5:8
   5 |   %d = swiglu %x, %x {eps=1}
     |        ^
  hint: it takes none
[1]
$ printf 'main @main(%%x: f32[4,8]) -> () {\n  %%a = swiglu %%x, %%x\n}\n' >bad.heddle; heddle import bad.heddle --operators operators.so
error[E0301]: swiglu: operand 1 has 2 dimensions, not 3
  --> bad.heddle:2:8
   2 |   %a = swiglu %x, %x
     |        ^
[1]
$ heddle show examples/operators/model.heddle
error[E0202]: unknown operator 'swiglu'
  --> examples/operators/model.heddle:14:8
  14 |   %c = swiglu %a, %b
     |        ^
  hint: did you mean 'silu'?
error[E0202]: unknown operator 'swiglu_matmul'
  --> examples/operators/model.heddle:18:8
  18 |   %g = swiglu_matmul %e, %f, %down2
     |        ^
  hint: `heddle ops` lists the operators
[1]
## Planned, priced, verified and written.
$ heddle plan examples/operators/model.heddle --operators operators.so --train --machine dgx-2 --devices 4
model         examples/operators/model.heddle
weights       f32
machine       dgx-2
ranks         4
batch         8
memory limit  28.8 GiB
step          training

    dp  tp  pp  mb  ZeRO      time          samples    memory  limited by
 1   1   4   1   1        358.6 us  1.00x  22,312/s  4.25 MiB  computation 85 %
 2   1   2   2   1        419.8 us  1.17x  19,057/s  4.75 MiB  bubble 50 %
 3   2   1   2   1     0  441.9 us  1.23x  18,105/s  6.88 MiB  bubble 41 %
 4   2   2   1   1     0  442.3 us  1.23x  18,087/s  6.38 MiB  communication 30 %
 5   4   1   1   1     0  506.1 us  1.41x  15,807/s  12.3 MiB  communication 37 %
 6   1   1   4   1        558.3 us  1.56x  14,330/s  8.25 MiB  bubble 76 %
 7   2   1   2   1     2  596.4 us  1.66x  13,414/s  8.13 MiB  bubble 42 %
 8   2   2   1   1     2  602.8 us  1.68x  13,271/s  7.25 MiB  communication 37 %
 9   2   2   1   1     3  608.4 us  1.70x  13,150/s  5.88 MiB  communication 37 %
10   1   2   2   2        618.9 us  1.73x  12,927/s  5.62 MiB  bubble 37 %

winner       dp=1 tp=4 pp=1
             computes 85.2 % of the time, communicates 14.8 %, idles 0.0 %; MFU 9.6 %; needs 4.25 MiB of 28.8 GiB
next         dp=1 tp=2 pp=2
             1.17x the time, limited by bubble
dp alone     1.41x the time, limited by communication
pp alone     1.56x the time, limited by bubble
certificate  132 plans: 14 fit, 0 too large, 22 too slow, 0 impossible, 96 equal to another;
             14 simulated, 0 ruled out by bounds on memory, 22 on time
             other values of some choices are not in it; --strategy 'v=* schedule=* sp=* overlap=* layers=*' has them, --what-if tries each
$ heddle plan examples/operators/model.heddle --operators operators.so --train --machine dgx-2 --devices 4 -o best.plan >/dev/null; heddle verify examples/operators/model.heddle --operators operators.so --plan best.plan | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle verify examples/operators/model.heddle --operators operators.so --train --strategy 'dp=2 tp=2 zero=3 mb=2' | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle verify examples/operators/model.heddle --operators operators.so --train --strategy 'tp=4 sp=on' | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle verify examples/operators/model.heddle --operators operators.so --train --strategy 'dp=2 pp=2 mb=2' | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle sim examples/operators/model.heddle --operators operators.so --train --strategy tp=4 --machine dgx-2 --json | grep -o '"op": "swiglu[^}]*'
"op": "swiglu", "kind": "computation", "count": 2, "time_ps": 14641826, "share": 0.040835866972589945
"op": "swiglu_matmul", "kind": "computation", "count": 1, "time_ps": 8684871, "share": 0.024221995045570422
$ heddle lower examples/operators/model.heddle --operators operators.so --train --strategy tp=4 --rank 1 | grep swiglu
  %11 = swiglu %9, %10 ^3 : f32[8,32,256]
  %16 = swiglu_matmul %14, %15, %down2 ^7 : f32[8,32,256]
  %21 = swiglu %e, %f backward ^7 : f32[8,32,256]
$ heddle export examples/operators/model.heddle --operators operators.so --train --strategy tp=4 --to pytorch | grep 'F.silu'
    swiglu = F.silu(product) * product_2
    swiglu_matmul = (F.silu(product_4) * product_5) @ down2
    swiglu = F.silu(e) * f
    silu = F.silu(e)
    silu_2 = F.silu(a)
## What an operator lacks is told where it is needed.
$ for op in no_kernel no_gradient failing free_of_cost bad_law good_law bad_gradient bad_line; do printf "main @main(%%x: f32[4,8], %%w: f32[8,8] weight) -> (f32[]) {\n  %%a = matmul %%x, %%w\n  %%b = $op %%a\n  %%loss = reduce_mean %%b {keepdims=0}\n  return %%loss\n}\n" >$op.heddle; done
$ heddle plan no_kernel.heddle --operators operators_wrong.so --train --machine dgx-2 --devices 2 | grep winner
winner       dp=1 tp=2 pp=1
$ heddle verify no_kernel.heddle --operators operators_wrong.so --train --strategy dp=2
error[E0406]: no_kernel has no kernel, so its numbers cannot be computed
  --> no_kernel.heddle:3:8
   3 |   %b = no_kernel %a
     |        ^
  hint: register it with one: its member `kernel` (docs/operators.md)
[1]
$ heddle eval no_kernel.heddle --operators operators_wrong.so --random 1
error[E0406]: no_kernel has no kernel, so its numbers cannot be computed
  --> no_kernel.heddle:3:8
   3 |   %b = no_kernel %a
     |        ^
  hint: register it with one: its member `kernel` (docs/operators.md)
[1]
$ heddle import no_gradient.heddle --operators operators_wrong.so --train
error[E0403]: no_gradient has no gradient
  --> no_gradient.heddle:3:8
   3 |   %b = no_gradient %a
     |        ^
  hint: register it with one: its member `gradient` (docs/operators.md)
[1]
$ heddle verify no_gradient.heddle --operators operators_wrong.so --strategy dp=2 | grep verdict
verdict    equal: the plan computes what the model computes
$ heddle eval failing.heddle --operators operators_wrong.so --random 1
error[E0404]: failing: its kernel failed
  --> failing.heddle:3:8
   3 |   %b = failing %a
     |        ^
[1]
$ heddle sim free_of_cost.heddle --operators operators_wrong.so --machine dgx-2
error[E0404]: free_of_cost: its cost is 0 floating-point operations and -1 bytes
  --> free_of_cost.heddle:3:8
   3 |   %b = free_of_cost %a
     |        ^
[1]
$ heddle import bad_gradient.heddle --operators operators_wrong.so --train
error[E0301]: bad_gradient: the gradient of x is f32[1,1], x is f32[4,8]
  --> bad_gradient.heddle:3:8
   3 |   %b = bad_gradient %a
     |        ^
[1]
$ heddle import bad_line.heddle --operators operators_wrong.so --train
error[E0401]: transpose: perm has 1 entry for 2 dimensions
  --> bad_line.heddle:3:8
   3 |   %b = bad_line %a
     |        ^
  note: in the gradient of bad_line
    --> bad_line.gradient:1:1
     1 | %a = transpose %d_y {perm=[0]}
       | ^
[1]
$ heddle export no_kernel.heddle --operators operators_wrong.so --strategy dp=2 --to pytorch
error[E0514]: no_kernel cannot be written in PyTorch
  --> no_kernel.heddle:3:8
   3 |   %b = no_kernel %a
     |        ^
  hint: register it with an expression: its member `pytorch` (docs/operators.md)
[1]
## The law is held against the kernel.
$ heddle verify bad_law.heddle --operators operators_wrong.so --strategy tp=2
model      bad_law.heddle
plan       dp=1 tp=2 pp=1
results    1
elements   1
worst      0.864432
tolerance  1e-09
verdict    DIFFERENT

result  elements  largest difference  relative
loss           1          0.00405446  0.864432
error[E0701]: loss differs by 0.00405 (relative 0.864) at element 0 of 1; the tolerance is 1e-09
  note: bad_law is not of Heddle's table: is its kernel split by its law, ...d->...d?
    --> bad_law.heddle:3:8
     3 |   %b = bad_law %a
       |        ^
[1]
## Every operator that may be the wrong one is named, with how its parts combine.
$ printf 'main @main(%%x: f32[4,8], %%w: f32[8,8] weight) -> (f32[]) {\n  %%a = matmul %%x, %%w\n  %%b = no_gradient %%a\n  %%c = bad_reduction %%b\n  %%loss = reduce_mean %%c {keepdims=0}\n  return %%loss\n}\n' >two.heddle; heddle verify two.heddle --operators operators_wrong.so --strategy tp=2 2>&1 | sed -n '/^verdict/p;/^error/,$p'
verdict    DIFFERENT
error[E0701]: loss differs by 3.46 (relative 0.998) at element 0 of 1; the tolerance is 1e-09
  note: no_gradient is not of Heddle's table: is its kernel split by its law, ...->...?
    --> two.heddle:3:8
     3 |   %b = no_gradient %a
       |        ^
  note: bad_reduction is not of Heddle's table: is its kernel split by its law, ...d->..., and do parts combine by max?
    --> two.heddle:4:8
     4 |   %c = bad_reduction %b
       |        ^
$ heddle verify good_law.heddle --operators operators_wrong.so --strategy tp=2
model      good_law.heddle
plan       dp=1 tp=2 pp=1
results    1
elements   1
worst      0
tolerance  1e-09
verdict    equal: the plan computes what the model computes

result  elements  largest difference  relative
loss           1                   0         0
$ heddle verify bad_law.heddle --operators operators_wrong.so --strategy dp=2 | grep verdict
verdict    equal: the plan computes what the model computes
## Shared objects that are none.
$ heddle ops --operators nowhere.so
error[E0405]: nowhere.so: ./nowhere.so: cannot open shared object file: No such file or directory
  hint: a shared object with operators: cc -shared -fPIC -DROWS_ONLY examples/operators.c -o operators.so
[1]
$ heddle ops --operators bad.heddle
error[E0405]: bad.heddle: ./bad.heddle: file too short
  hint: a shared object with operators: cc -shared -fPIC -DROWS_ONLY examples/operators.c -o operators.so
[1]
