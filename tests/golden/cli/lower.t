## long: .ci/run has it without sanitizers
$ heddle lower mlp-xs:layers=4,hidden=64 --batch 32 --train --data 2 --tensor 2 --pipeline 2 --microbatches 2 --rank 3
# rank 3 of 8: @m[pp=0,dp=1,tp=1]
# 47 instructions in 8 functions; one run executes 26 of computation, 10 of communication, 20 of structure
mesh @m [pp=2, dp=2, tp=2]
time [mb=2]
stream pp.f0, pp.b0

func @layer.fwd.1(%x: f32[16{mb},64], %w: f32[64,32] weight) -> (f32[16{mb},32], f32[16{mb},32]) {
  %3 = matmul %x, %w ^1 : f32[16{mb},32]
  %4 = relu %3 ^2 : f32[16{mb},32]
  return %4, %4
}

func @layer.fwd(%x: f32[16{mb},32], %w: f32[32,64] weight) -> (f32[16{mb},64], f32[16{mb},64]) {
  %3 = matmul %x, %w ^1 : f32[16{mb},64]
  %4 = all_reduce %3 {peers=[2, 3]} over tp plan ^2 : f32[16{mb},64]
  %5 = relu %4 ^2 : f32[16{mb},64]
  return %5, %5
}

func @stage.fwd(%1: (f32[64,32], f32[32,64]) weight, %2: f32[16{mb},64]) -> (f32[16{mb},64], (f32[16{mb},32], f32[16{mb},64])) {
  %3, %4 = unpack %1 : f32[64,32], f32[32,64]
  %5, %6 = call @layer.fwd.1(%2, %3) ^3 : f32[16{mb},32], f32[16{mb},32]
  %7, %8 = call @layer.fwd(%5, %4) ^4 : f32[16{mb},64], f32[16{mb},64]
  %9 = pack %5, %7 ^4 : (f32[16{mb},32], f32[16{mb},64])
  return %7, %9
}

func @layer.bwd(
  %x: f32[16{mb},32],
  %w: f32[32,64] weight,
  %3: f32[16{mb},64],
  %4: f32[16{mb},64],
  %5: f32[32,64]+mb state
) -> (f32[16{mb},32], f32[32,64]+mb) {
  %6 = relu_dx %4, %3 backward ^2 : f32[16{mb},64]
  %7 = einsum %6, %w {law="mn,kn->mk"} backward ^1 : f32[16{mb},32]
  %8 = einsum %x, %6 {law="mk,mn->kn"} backward ^1 : f32[32,64]+mb
  %9 = add !%5, %8 backward ^1 : f32[32,64]+mb
  return %7, %9
}

func @layer.bwd.1.1(%x: f32[16{mb},64], %2: f32[16{mb},32], %3: f32[16{mb},32], %4: f32[64,32]+mb state) -> (f32[64,32]+mb) {
  %5 = relu_dx %3, %2 backward ^2 : f32[16{mb},32]
  %6 = einsum %x, %5 {law="mk,mn->kn"} backward ^1 : f32[64,32]+mb
  %7 = add !%4, %6 backward ^1 : f32[64,32]+mb
  return %7
}

func @stage.bwd(
  %1: (f32[32,64]) weight,
  %2: f32[16{mb},64],
  %3: (f32[16{mb},32], f32[16{mb},64]),
  %4: f32[16{mb},64],
  %5: (f32[64,32]+mb, f32[32,64]+mb) state
) -> ((f32[64,32]+mb, f32[32,64]+mb)) {
  %6 = unpack %1 : f32[32,64]
  %7, %8 = unpack %3 : f32[16{mb},32], f32[16{mb},64]
  %9, %10 = unpack %5 : f32[64,32]+mb, f32[32,64]+mb
  %11, %12 = call @layer.bwd(%7, %6, %8, %4, !%10) backward ^4 : f32[16{mb},32], f32[32,64]+mb
  %13 = call @layer.bwd.1.1(%2, %7, %11, !%9) backward ^3 : f32[64,32]+mb
  %14 = pack %13, %12 backward ^3 : (f32[64,32]+mb, f32[32,64]+mb)
  return %14
}

func @update(%1: f32[64,32] weight, %2: f32[32,64] weight, %3: f32[64,32]+mb, %4: f32[32,64]+mb) -> (f32[64,32], f32[32,64]) {
  %5 = join %3 over mb update : f32[64,32]
  %6 = all_reduce %5 {peers=[1, 3]} over dp update plan : f32[64,32]
  %7 = sgd !%1, %6 {lr=0.01, weight_decay=0} update : f32[64,32]
  %8 = join %4 over mb update : f32[32,64]
  %9 = all_reduce %8 {peers=[1, 3]} over dp update plan : f32[32,64]
  %10 = sgd !%2, %9 {lr=0.01, weight_decay=0} update : f32[32,64]
  return %7, %10
}

func @main on @m[pp=0,dp=1,tp=1](%x: f32[16,64], %h.0.w: f32[64,32] weight, %h.1.w: f32[32,64] weight) -> (f32[64,32], f32[32,64]) {
  %4 = pack %h.0.w, %h.1.w : (f32[64,32], f32[32,64])
  %5 = pack %h.1.w : (f32[32,64])
  %6 = full {shape=[64, 32], dtype=f32} backward : f32[64,32]+mb
  %7 = full {shape=[32, 64], dtype=f32} backward : f32[32,64]+mb
  %8 = pack %6, %7 backward : (f32[64,32]+mb, f32[32,64]+mb)
  %9 = part %x {at=0} over mb @mb=0 : f32[16{mb},64]
  %10, %11 = call @stage.fwd(%4, %9) @mb=0 : f32[16{mb},64], (f32[16{mb},32], f32[16{mb},64])
  send %10 {gives="7 [12-16,*]"} @mb=0 !pp.f0 plan
  %12 = part %x {at=1} over mb @mb=1 : f32[16{mb},64]
  %13, %14 = call @stage.fwd(%4, %12) @mb=1 : f32[16{mb},64], (f32[16{mb},32], f32[16{mb},64])
  send %13 {gives="7 [12-16,*]"} @mb=1 !pp.f0 plan
  %15 = send {gets="7 [12-16,*]"} @mb=0 !pp.b0 backward plan : f32[8{mb},64]
  %16 = all_gather %15 {peers=[2, 3]} over tp @mb=0 backward plan : f32[16{mb},64]
  %17 = call @stage.bwd(%5, %9, %11, %16, !%8) @mb=0 backward : (f32[64,32]+mb, f32[32,64]+mb)
  %18 = send {gets="7 [12-16,*]"} @mb=1 !pp.b0 backward plan : f32[8{mb},64]
  %19 = all_gather %18 {peers=[2, 3]} over tp @mb=1 backward plan : f32[16{mb},64]
  %20 = call @stage.bwd(%5, %12, %14, %19, !%17) @mb=1 backward : (f32[64,32]+mb, f32[32,64]+mb)
  %21, %22 = unpack %20 : f32[64,32]+mb, f32[32,64]+mb
  %h.0.w.new, %h.1.w.new = call @update(!%h.0.w, !%h.1.w, !%21, !%22) update : f32[64,32], f32[32,64]
  return %h.0.w.new, %h.1.w.new
}
## Uneven pieces, rooted collectives, several meshes.
$ heddle lower examples/uneven_data.heddle --rank 1
# rank 1 of 2: @m[dp=1]
# 9 instructions in 1 function; one run executes 7 of computation, 2 of communication, 0 of structure
mesh @m [dp=2]

func @main on @m[dp=1](%w: f32[64,64] weight, %x: f32[32,64], %y: f32[32,64] label) -> (f32[], f32[64,64]) {
  %p = matmul %x, %w : f32[32,64]
  %e = sub %p, %y : f32[32,64]
  %ee = mul %e, %e : f32[32,64]
  %sum = reduce_mean %ee {axes=[0, 1], keepdims=0, whole="[128{dp:0-96|96-128},64] -> []+dp"} : f32[]
  %loss = all_reduce !%sum {peers=[0, 1]} over dp : f32[]
  %dp = scale %e {alpha=0.000244140625} : f32[32,64]
  %g = einsum %x, %dp {law="bi,bo->io"} backward : f32[64,64]
  %g1 = all_reduce !%g {peers=[0, 1]} over dp backward : f32[64,64]
  %w1 = sgd %w, %g1 {lr=0.1} update : f32[64,64]
  return %loss, %w1
}
$ heddle lower examples/distir/fig9_zero.heddle --rank 0 | head -40
# rank 0 of 2: @devices[d=0]
# 36 instructions in 4 functions; one run executes 30 of computation, 12 of communication, 0 of structure
mesh @devices [d=2]

func @dense(%A: f32[256,256], %b: f32[256], %x: f32[64,256]) -> (f32[64,256]) {
  %h = matmul %x, %A : f32[64,256]
  %i = add %h, %b : f32[64,256]
  %a = relu %i : f32[64,256]
  return %a
}

func @lossGrad(%p: f32[64,256], %y: f32[64,256]) -> (f32[64,256]) {
  %e = sub %p, %y : f32[64,256]
  %dp = scale %e {alpha=6.103515625e-05} : f32[64,256]
  return %dp
}

func @denseGrad(%A: f32[256,256], %b: f32[256], %x: f32[64,256], %da: f32[64,256]) -> (f32[256,256], f32[256], f32[64,256]) {
  %h = matmul %x, %A : f32[64,256]
  %i = add %h, %b : f32[64,256]
  %zero = full {shape=[1], dtype=f32} : f32[1]
  %on = gt %i, %zero : bool[64,256]
  %di = where %on, %da, %zero : f32[64,256]
  %dA = einsum %x, %di {law="bi,bo->io"} : f32[256,256]
  %db = reduce_sum %di {axes=[0], keepdims=0} : f32[256]
  %dx = einsum %di, %A {law="bo,io->bi"} : f32[64,256]
  return %dA, %db, %dx
}

func @main on @devices[d=0](%A1: f32[256,256] weight, %b1: f32[256] weight, %x_1: f32[64,256], %y_1: f32[64,256] label) -> (f32[256,256], f32[256]) {
  %as_1 = call @dense(%A1, %b1, %x_1) : f32[64,256]
  send %A1 {gives="1 [*,*]"}
  send %b1 {gives="1 [*]"}
  %A2_f = send {gets="1 [*,*]"} : f32[256,256]
  %b2_f = send {gets="1 [*]"} : f32[256]
  %p_1 = call @dense(%A2_f, %b2_f, %as_1) : f32[64,256]
  %dp_1 = call @lossGrad(%p_1, %y_1) : f32[64,256]
  %A2_b = send {gets="1 [*,*]"} backward : f32[256,256]
  %b2_b = send {gets="1 [*]"} backward : f32[256]
  %dA2_1, %db2_1, %das_1 = call @denseGrad(%A2_b, %b2_b, %as_1, %dp_1) backward : f32[256,256], f32[256], f32[64,256]
## It reads back, and cannot run without the others.
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --tensor 2 --rank 1 -o one.heddle
$ heddle import one.heddle -o again.heddle && grep -v '^#' one.heddle | diff - again.heddle
$ heddle eval one.heddle --random 1
error[E0508]: the program of one rank cannot be evaluated alone
  hint: use the distributed program that it was lowered from
[1]
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --rank 1 --json | cut -c1-60
{
  "rank": 1,
  "ranks": 2,
  "place": "@m[pp=0,dp=1,tp=0]",
  "functions": 3,
  "instructions": 7,
  "computations": 4,
  "communications": 0,
  "structural": 2,
  "text": "# rank 1 of 2: @m[pp=0,dp=1,tp=0]\n# 7 instructio
}
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --rank 2
error[E0508]: rank 2 takes no part: the program runs on ranks up to 1
  --> mlp-xs
  hint: --rank 1
[1]
$ heddle lower examples/distir/fig9_zero.heddle --rank 5
error[E0508]: rank 5 takes no part: the program runs on ranks up to 1
  --> examples/distir/fig9_zero.heddle:33:6
  33 | func @main(
     |      ^
  hint: --rank 1
[1]
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --rank 0
error[E0801]: the program is not distributed: it has no mesh
  hint: give it a plan, such as --plan best.plan or --strategy dp=2
[2]
$ heddle lower mlp-xs:layers=2,hidden=8
error[E0801]: `heddle lower` needs --rank
  hint: --rank 0
[2]
## grads=f32: no gradient of a weight is summed over data ranks in less, whatever it passes on its way.
$ for g in own f32; do for s in 'mb=1' 'mb=2' 'zero=2'; do for m in gpt2:layers=2,hidden=64,heads=4,vocab=64 t5-small:layers=2,hidden=64,vocab=64 resnet50; do heddle lower $m --dtype bf16 --batch 8 --seq 32 --train --strategy "dp=2 $s grads=$g" --rank 0 | grep 'over dp \(backward\|update\).*: bf16' | grep -c 'all_reduce\|reduce_scatter'; done; done | xargs echo $g:; done
own: 16 24 87 16 24 86 17 28 89
f32: 0 0 0 0 0 0 0 0 0
## What is summed over data ranks does not depend on the number of microbatches, where positions are as many as the sequence has; a short sequence's rows are summed by themselves.
$ for m in gpt2:layers=2,hidden=64,heads=4,vocab=64,positions=32 gpt2:layers=2,hidden=64,heads=4,vocab=64 bert-large:layers=2,hidden=64,heads=4,vocab=64,positions=32; do for s in mb=1 mb=2 mb=4 'mb=4 zero=1'; do heddle lower $m --batch 16 --seq 32 --train --strategy "dp=2 $s" --rank 0 | grep 'over dp backward' | grep -c 'all_reduce\|reduce_scatter'; done; done | xargs
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:11
   1 | dp=2 mb=4 zero=1
     |           ^
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:11
   1 | dp=2 mb=4 zero=1
     |           ^
warning[W0101]: zero=1 changes nothing: the optimizer has no states
  --> --strategy:1:11
   1 | dp=2 mb=4 zero=1
     |           ^
1 0 0 0 1 1 1 1 1 0 0 0
