$ heddle lower mlp-xs:layers=4,hidden=64 --batch 32 --train --data 2 --tensor 2 --pipeline 2 --microbatches 2 --rank 3
rank 3 of 8: @m pp=0, dp=1, tp=1

func @main(%x: f32[16,64], %h.0.w: f32[64,32] weight, %h.1.w: f32[32,64] weight) {
  %7 = pack %h.0.w, %h.1.w : (f32[64,32], f32[32,64])
  %8 = pack %h.1.w : (f32[32,64])
  %9 = full {shape=[64, 32], dtype=f32} : f32[64,32]
  %10 = full {shape=[32, 64], dtype=f32} : f32[32,64]
  %11 = pack %9, %10 : (f32[64,32], f32[32,64])
  %17 = part %x {at=0} @mb=0 : f32[8,64]
  %18, %19 = call @stage.fwd(%7, %17) @mb=0 : f32[8,64], (f32[8,32], f32[8,64])
  %20 = shard %18 with 2, 3 @mb=0 : f32[4,64]
  send %20 to 7 @mb=0
  %23 = part %x {at=1} @mb=1 : f32[8,64]
  %24, %25 = call @stage.fwd(%7, %23) @mb=1 : f32[8,64], (f32[8,32], f32[8,64])
  %29 = shard %24 with 2, 3 @mb=1 : f32[4,64]
  send %29 to 7 @mb=1
  %36 = recv from 7 @mb=0 : f32[4,64]
  %37 = all_gather %36 with 2, 3 @mb=0 : f32[8,64]
  %38 = call @stage.bwd(%8, %17, %19, %37, !%11) @mb=0 : (f32[64,32], f32[32,64])
  %46 = recv from 7 @mb=1 : f32[4,64]
  %47 = all_gather %46 with 2, 3 @mb=1 : f32[8,64]
  %48 = call @stage.bwd(%8, %23, %25, %47, !%38) @mb=1 : (f32[64,32], f32[32,64])
  %51, %52 = unpack %48 : f32[64,32], f32[32,64]
  %h.0.w.new, %h.1.w.new = call @update(!%h.0.w, !%h.1.w, !%51, !%52) : f32[64,32], f32[32,64]
  return %h.0.w.new, %h.1.w.new
}

func @stage.fwd(%1: (f32[64,32], f32[32,64]) weight, %x: f32[8,64]) {
  %h.0.w, %h.1.w = unpack %1 : f32[64,32], f32[32,64]
  %5, %6 = call @layer.fwd.1(%x, %h.0.w) : f32[8,32], f32[8,32]
  %7, %8 = call @layer.fwd(%5, %h.1.w) : f32[8,64], f32[8,64]
  %9 = pack %5, %7 : (f32[8,32], f32[8,64])
  return %7, %9
}

func @stage.bwd(%1: (f32[32,64]) weight, %x: f32[8,64], %3: (f32[8,32], f32[8,64]), %4: f32[8,64], %5: (f32[64,32], f32[32,64]) state) {
  %h.1.w = unpack %1 : f32[32,64]
  %7, %8 = unpack %3 : f32[8,32], f32[8,64]
  %9, %10 = unpack %5 : f32[64,32], f32[32,64]
  %11, %12 = call @layer.bwd(%7, %h.1.w, %8, %4, !%10) : f32[8,32], f32[32,64]
  %13 = call @layer.bwd.1.1(%x, %7, %11, !%9) : f32[64,32]
  %14 = pack %13, %12 : (f32[64,32], f32[32,64])
  return %14
}

func @update(%h.0.w: f32[64,32] weight, %h.1.w: f32[32,64] weight, %3: f32[64,32], %4: f32[32,64]) {
  %5 = join %3 : f32[64,32]
  %6 = all_reduce %5 with 1, 3 : f32[64,32]
  %7 = sgd !%h.0.w, %6 {lr=0.01, weight_decay=0} : f32[64,32]
  %8 = join %4 : f32[32,64]
  %9 = all_reduce %8 with 1, 3 : f32[32,64]
  %10 = sgd !%h.1.w, %9 {lr=0.01, weight_decay=0} : f32[32,64]
  return %7, %10
}

func @layer.fwd.1(%x: f32[8,64], %w: f32[64,32] weight) {
  %3 = matmul %x, %w : f32[8,32]
  %4 = relu %3 : f32[8,32]
  return %4, %4
}

func @layer.fwd(%x: f32[8,32], %w: f32[32,64] weight) {
  %3 = matmul %x, %w : f32[8,64]
  %4 = all_reduce %3 with 2, 3 : f32[8,64]
  %5 = relu %4 : f32[8,64]
  return %5, %5
}

func @layer.bwd(%x: f32[8,32], %w: f32[32,64] weight, %3: f32[8,64], %4: f32[8,64], %5: f32[32,64] state) {
  %6 = relu_dx %4, %3 : f32[8,64]
  %7 = einsum %6, %w {law="mn,kn->mk"} : f32[8,32]
  %8 = einsum %x, %6 {law="mk,mn->kn"} : f32[32,64]
  %9 = add !%5, %8 : f32[32,64]
  return %7, %9
}

func @layer.bwd.1.1(%x: f32[8,64], %2: f32[8,32], %3: f32[8,32], %4: f32[64,32] state) {
  %5 = relu_dx %3, %2 : f32[8,32]
  %6 = einsum %x, %5 {law="mk,mn->kn"} : f32[64,32]
  %7 = add !%4, %6 : f32[64,32]
  return %7
}
## Uneven pieces, rooted collectives, several meshes.
$ heddle lower examples/uneven_data.heddle --rank 1
rank 1 of 2: @m dp=1

func @main(%w: f32[64,64] weight, %x: f32[32,64], %y: f32[32,64] label) {
  %p = matmul %x, %w : f32[32,64]
  %e = sub %p, %y : f32[32,64]
  %ee = mul %e, %e : f32[32,64]
  %sum = reduce_mean %ee {axes=[0, 1], keepdims=0} : f32[]
  %loss = all_reduce !%sum with 0, 1 : f32[]
  %dp = scale %e {alpha=0.000244140625} : f32[32,64]
  %g = einsum %x, %dp {law="bi,bo->io"} : f32[64,64]
  %g1 = all_reduce !%g with 0, 1 : f32[64,64]
  %w1 = sgd %w, %g1 {lr=0.1} : f32[64,64]
  return %loss, %w1
}
$ heddle lower examples/distir/fig9_zero.heddle --rank 0 | head -20
rank 0 of 2: @devices d=0

func @main(%A1: f32[256,256] weight, %b1: f32[256] weight, %x_1: f32[64,256], %y_1: f32[64,256] label) {
  %as_1 = call @dense(%A1, %b1, %x_1) : f32[64,256]
  send %A1 to 1
  send %b1 to 1
  %A2_f = recv from 1 : f32[256,256]
  %b2_f = recv from 1 : f32[256]
  %p_1 = call @dense(%A2_f, %b2_f, %as_1) : f32[64,256]
  %dp_1 = call @lossGrad(%p_1, %y_1) : f32[64,256]
  %A2_b = recv from 1 : f32[256,256]
  %b2_b = recv from 1 : f32[256]
  %dA2_1, %db2_1, %das_1 = call @denseGrad(%A2_b, %b2_b, %as_1, %dp_1) : f32[256,256], f32[256], f32[64,256]
  %dA1_1, %db1_1, %29 = call @denseGrad(%A1, %b1, %x_1, %das_1) : f32[256,256], f32[256], f32[64,256]
  send %A1 to 1
  send %b1 to 1
  %dA1s = join %dA1_1 : f32[256,256]
  %db1s = join %db1_1 : f32[256]
  %dA1 = reduce %dA1s {root=0} with 0, 1 : f32[256,256]
  %db1 = reduce %db1s {root=0} with 0, 1 : f32[256]
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --rank 1 --json | head -6 | cut -c1-60
{
  "rank": 1,
  "ranks": 2,
  "functions": 3,
  "instructions": 7,
  "text": "rank 1 of 2: @m pp=0, dp=1, tp=0\n\nfunc @main(%x
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --data 2 --rank 2
error[E0801]: rank 2 does not exist: the program runs on 2
[2]
$ heddle lower mlp-xs:layers=2,hidden=8 --batch 4 --rank 0
error[E0801]: the program is not distributed: it has no mesh
  hint: give it a plan, such as --plan best.plan or --data 2
[2]
$ heddle lower mlp-xs:layers=2,hidden=8
error[E0801]: `heddle lower` wants --rank
  hint: --rank 0
[2]
