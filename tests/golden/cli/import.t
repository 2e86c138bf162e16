$ heddle import mlp-xs:layers=2,hidden=8 --batch 4
func @layer(%x: f32[4,8], %w: f32[8,8] weight) -> (f32[4,8]) {
  %3 = matmul %x, %w : f32[4,8]
  %4 = relu %3 : f32[4,8]
  return %4
}

func @main(%x: f32[4,8], %h.0.w: f32[8,8] weight, %h.1.w: f32[8,8] weight) -> (f32[4,8]) {
  %4 = call @layer(%x, %h.0.w) : f32[4,8]
  %5 = call @layer(%4, %h.1.w) : f32[4,8]
  return %5
}
## The text reads back the same.
$ heddle import llama2-7b:layers=1,hidden=64,heads=4,vocab=100 --seq 8 -o a.heddle
$ heddle import a.heddle -o b.heddle
$ cmp a.heddle b.heddle
$ heddle import mlp-xs:layers=1,hidden=4 --batch 2 --train --optimizer momentum --lr 0.5
func @main(%x: f32[2,4], %z: f32[2,4] label, %h.0.w: f32[4,4] weight, %h.0.w.m: f32[4,4] state) -> (f32[], f32[4,4], f32[4,4]) {
  %5, %6 = call @layer.fwd(%x, %h.0.w) ^1 : f32[2,4], f32[2,4]
  %7 = sub %5, %z ^2 : f32[2,4]
  %8 = mul %7, %7 ^3 : f32[2,4]
  %9 = reduce_sum %8 {keepdims=0} ^4 : f32[]
  %loss = scale %9 {alpha=0.5} ^5 : f32[]
  %11 = full {shape=[], dtype=f32, value=1} backward : f32[]
  %12 = scale %11 {alpha=0.5} backward ^5 : f32[]
  %13 = reshape %12 {shape=[1, 1]} backward ^4 : f32[1,1]
  %14 = expand %13 {shape=[2, 4]} backward ^4 : f32[2,4]
  %15 = scale %7 {alpha=2} backward ^3 : f32[2,4]
  %16 = mul %14, %15 backward ^3 : f32[2,4]
  %17 = call @layer.bwd(%x, %5, %16) backward ^1 : f32[4,4]
  %h.0.w.new, %h.0.w.m.new = momentum !%h.0.w, %17, !%h.0.w.m {momentum=0.9, lr=0.5, weight_decay=0} update : f32[4,4], f32[4,4]
  return %loss, %h.0.w.new, %h.0.w.m.new
}

func @layer.bwd(%x: f32[2,4], %2: f32[2,4], %3: f32[2,4]) -> (f32[4,4]) {
  %4 = relu_dx %3, %2 backward ^7 : f32[2,4]
  %5 = einsum %x, %4 {law="mk,mn->kn"} backward ^6 : f32[4,4]
  return %5
}

func @layer.fwd(%x: f32[2,4], %w: f32[4,4] weight) -> (f32[2,4], f32[2,4]) {
  %3 = matmul %x, %w ^6 : f32[2,4]
  %4 = relu %3 ^7 : f32[2,4]
  return %4, %4
}
## Nothing half-written: a failure leaves what was there.
$ heddle import mlp-xs:layers=0 -o a.heddle; cmp a.heddle b.heddle
error[E0115]: `mlp-xs:layers=0`: cannot use `layers=0`
  note: mlp-xs has layers, hidden
  hint: give each field an integer above 0, such as `mlp-xs:layers=2,hidden=64`
