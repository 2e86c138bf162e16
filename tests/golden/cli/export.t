## What the plan says, between the processes and the helpers.
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --strategy 'dp=2 tp=2' | sed -n '/^RANK, DEVICE/,/^# ---- what/p' | sed '$d'
RANK, DEVICE = process()
MESH = Mesh(range(0, 4), pp=1, dp=2, tp=2)
TP = Axes(MESH, "tp")
DP = Axes(MESH, "dp")


def layer_fwd_1(x, w):
    # Whole extents, and {axes} that split them: x [4{dp},8], w [8,8{tp}].
    product = x @ w
    relu = F.relu(product)
    return relu, relu


def layer_fwd(x, w):
    # Whole extents, and {axes} that split them: x [4{dp},8{tp}], w [8{tp},8].
    product = x @ w
    # the plan: sum what the ranks over tp have parts of
    product = all_reduce(product, TP)
    relu = F.relu(product)
    return relu, relu


def stage_fwd(weights, x, z):
    # Whole extents, and {axes} that split them: x [4{dp},8], z [4{dp},8].
    h_0_w, h_1_w = weights
    relu, relu_2 = layer_fwd_1(x, h_0_w)
    del relu_2
    relu_3, relu_4 = layer_fwd(relu, h_1_w)
    del relu_4
    sub = relu_3 - z
    mul = sub * sub
    reduce_sum = mul.sum((0, 1), keepdim=False)
    scale = reduce_sum * 0.25
    saved = (relu, relu_3, sub)
    return scale, saved


def layer_bwd(x, w, relu, mul):
    d_relu = torch.ops.aten.threshold_backward(mul, relu, 0)
    product = torch.einsum("mn,kn->mk", d_relu, w)
    product_2 = torch.einsum("mk,mn->kn", x, d_relu)
    return product, product_2


def layer_bwd_1(x, relu, product):
    d_relu = torch.ops.aten.threshold_backward(product, relu, 0)
    product_2 = torch.einsum("mk,mn->kn", x, d_relu)
    return product_2


def stage_bwd(weights, x, saved, full):
    h_1_w = weights[0]
    relu, relu_2, sub = saved
    scale = full * 0.25
    scale_2 = scale.reshape((1, 1))
    expand = scale_2.expand((2, 8))
    scale_3 = sub * 2.0
    mul = expand * scale_3
    product, product_2 = layer_bwd(relu, h_1_w, relu_2, mul)
    del scale, scale_2, expand, scale_3, mul
    product_3 = layer_bwd_1(x, relu, product)
    del product
    gradients = (product_3, product_2)
    return gradients


def update(h_0_w, h_1_w, d_h_0_w, d_h_1_w):
    # the plan: sum what the ranks over dp have parts of
    d_h_0_w = all_reduce(d_h_0_w.clone(), DP)
    h_0_w = sgd(h_0_w, d_h_0_w, 0.01, 0.0)
    # the plan: sum what the ranks over dp have parts of
    d_h_1_w = all_reduce(d_h_1_w.clone(), DP)
    h_1_w = sgd(h_1_w, d_h_1_w, 0.01, 0.0)
    return h_0_w, h_1_w


def step_0(w, data):
    """One step of ranks 0 to 3."""
    weights = (w["h.0.w"], w["h.1.w"])
    weights_2 = (w["h.1.w"],)
    scale, saved = stage_fwd(weights, data["x"], data["z"])
    full = torch.full((), 1.0, dtype=f32, device=DEVICE)
    gradients = stage_bwd(weights_2, data["x"], saved, full)
    del saved
    # the plan: sum what the ranks over dp have parts of
    scale = all_reduce(scale.clone(), DP)
    d_h_0_w, d_h_1_w = gradients
    del gradients
    w["h.0.w"], w["h.1.w"] = update(w["h.0.w"], w["h.1.w"], d_h_0_w, d_h_1_w)
    return {"loss": scale}


step = step_0


def parameters():
    """What this rank stores, by name: whole extents, type, role, and (axes, dimension, stride) of every cut."""
    p = {}
    if MESH.has(RANK, pp=0):
        p["x"] = Stored((4, 8), f32, "input", (DP, 0, 2))
        p["z"] = Stored((4, 8), f32, "label", (DP, 0, 2))
        p["h.0.w"] = Stored((8, 8), f32, "weight", (TP, 1, 4))
        p["h.1.w"] = Stored((8, 8), f32, "weight", (TP, 0, 4))
    return p


$ heddle export mlp-xs:layers=4,hidden=8 --batch 8 --train --strategy 'pp=2 mb=4' --machine '1x2 v100' | sed -n '2,/^"""$/p;/^def step_0/,/^def parameters/p' | sed '$d'
"""mlp-xs:layers=4,hidden=8 under the plan dp=1 tp=1 pp=2 mb=4: a PyTorch program of 2 processes.

The same program that Heddle simulates, verifies and runs: every split, sum and send below is the plan's.

machine  1x2 v100
ranks    pp=2, dp=1, tp=1; the last counts fastest
start    torchrun --nproc_per_node 2 THIS_FILE --steps 10
         on N nodes, on each: torchrun --nnodes N --nproc_per_node (ranks / N) --rdzv_backend c10d \
           --rdzv_endpoint HOST:29500 THIS_FILE --steps 10
         by other means: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in the environment
GPUs are joined by NCCL; without one, processes by gloo. --help lists the options.
"""
def step_0(w, data):
    """One step of rank 0."""
    weights = (w["h.0.w"], w["h.1.w"])
    weights_2 = (w["h.1.w"],)
    d_h_0_w = torch.full((8, 8), 0.0, dtype=f32, device=DEVICE)
    d_h_1_w = torch.full((8, 8), 0.0, dtype=f32, device=DEVICE)
    gradients = (d_h_0_w, d_h_1_w)
    x = {}
    saved = {}
    order = "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3"
    for task, mb in tasks(order):
        if task == "F0":  # forward of stage 0
            x[mb] = cut(data["x"], 0, mb, 4)
            relu, saved[mb] = stage_fwd(weights, x[mb])
            send(relu, PP.peer(1), PP_F0)
        elif task == "B0":  # backward of stage 0
            product = receive((2, 8), f32, PP.peer(1), PP_B0)
            gradients = stage_bwd(weights_2, x[mb], saved[mb], product, gradients)
            del x[mb], saved[mb]
    d_h_0_w_2, d_h_1_w_2 = gradients
    w["h.0.w"], w["h.1.w"] = update(w["h.0.w"], w["h.1.w"], d_h_0_w_2, d_h_1_w_2)
    finish_sends()
    return {}


def step_1(w, data):
    """One step of rank 1."""
    weights = (w["h.2.w"], w["h.3.w"])
    weights_2 = (w["h.2.w"], w["h.3.w"])
    d_h_2_w = torch.full((8, 8), 0.0, dtype=f32, device=DEVICE)
    d_h_3_w = torch.full((8, 8), 0.0, dtype=f32, device=DEVICE)
    gradients = (d_h_2_w, d_h_3_w)
    relu = {}
    scale = {}
    saved = {}
    product = {}
    order = "F0>.0 F1.0 F0>.1 B1.0 B1>.0 F1.1 B1.1 F0>.2 B1>.1 F1.2 B1.2 F0>.3 B1>.2 F1.3 B1.3 B1>.3"
    for task, mb in tasks(order):
        if task == "F0>":  # what is sent of the forward of stage 0
            relu[mb] = receive((2, 8), f32, PP.peer(0), PP_F0)
        elif task == "F1":  # forward of stage 1
            z = cut(data["z"], 0, mb, 4)
            scale[mb], saved[mb] = stage_1_fwd(weights, relu[mb], z)
        elif task == "B1":  # backward of stage 1
            full = torch.full((), 1.0, dtype=f32, device=DEVICE)
            product[mb], gradients = stage_1_bwd(weights_2, relu[mb], saved[mb], full, gradients)
            del relu[mb], saved[mb]
        elif task == "B1>":  # what is sent of the backward of stage 1
            send(product[mb], PP.peer(0), PP_B0)
            del product[mb]
    scale_2 = sum([scale[0], scale[1], scale[2], scale[3]])
    d_h_2_w_2, d_h_3_w_2 = gradients
    w["h.2.w"], w["h.3.w"] = update(w["h.2.w"], w["h.3.w"], d_h_2_w_2, d_h_3_w_2)
    finish_sends()
    return {"loss": scale_2}


step = [step_0, step_1][[0, 1][RANK]]


$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=33 --batch 4 --seq 8 --train --strategy 'tp=2 sp' | sed -n '/^MESH/,/^def stage_fwd/p;/^def parameters/,/^# ----/p' | sed '$d'
MESH = Mesh(range(0, 2), pp=1, dp=1, tp=2)
TP = Axes(MESH, "tp")


def layer_fwd(
    x, ln1_g, ln1_b, attn_qkv, attn_qkv_bias, attn_out, attn_out_bias, ln2_g, ln2_b, mlp_up, mlp_up_bias,
    mlp_down, mlp_down_bias,
):
    # Whole extents, and {axes} that split them: x [4,8{tp},16], attn_qkv [16,48{tp:8}], attn_qkv_bias
    # [48{tp:8}], attn_out [16{tp},16], mlp_up [16,64{tp}], mlp_up_bias [64{tp}], mlp_down [64{tp},16].
    # layer/attention
    layernorm = F.layer_norm(x, x.shape[-1:], ln1_g, ln1_b, 1e-05)
    # the plan: put the pieces over tp together
    layernorm_2 = all_gather(layernorm, TP, 1)
    product = layernorm_2 @ attn_qkv
    add = product + attn_qkv_bias
    split, split_2, split_3 = add.split([8, 8, 8], 2)
    split_4 = split.reshape((4, 8, 1, 8))
    split_5 = split_2.reshape((4, 8, 1, 8))
    split_6 = split_3.reshape((4, 8, 1, 8))
    scale = split_4 * 0.35355339059327373
    product_2 = torch.einsum("bshd,bthd->bhst", scale, split_5)
    index = iota((8, 1), 0, i32)
    index_2 = iota((1, 8), 1, i32)
    ge = index >= index_2
    full = torch.full((), -1e+04, dtype=f32, device=DEVICE)
    where = torch.where(ge, product_2, full)
    softmax = F.softmax(where, -1)
    product_3 = torch.einsum("bhst,bthd->bshd", softmax, split_6)
    product_4 = product_3.reshape((4, 8, 8))
    product_5 = product_4 @ attn_out
    # the plan: sum over tp, each rank keeps its piece
    product_5 = reduce_scatter(product_5, TP, 1)
    add_2 = product_5 + attn_out_bias
    add_3 = x + add_2
    # layer/mlp
    layernorm_3 = F.layer_norm(add_3, add_3.shape[-1:], ln2_g, ln2_b, 1e-05)
    # the plan: put the pieces over tp together
    layernorm_4 = all_gather(layernorm_3, TP, 1)
    product_6 = layernorm_4 @ mlp_up
    add_4 = product_6 + mlp_up_bias
    gelu = F.gelu(add_4, approximate="tanh")
    product_7 = gelu @ mlp_down
    # the plan: sum over tp, each rank keeps its piece
    product_7 = reduce_scatter(product_7, TP, 1)
    add_5 = product_7 + mlp_down_bias
    add_6 = add_3 + add_5
    return add_6, layernorm, split_2, split_3, scale, softmax, product_3, add_3, layernorm_3, add_4, gelu


def stage_fwd(weights, tokens, labels):
def parameters():
    """What this rank stores, by name: whole extents, type, role, and (axes, dimension, stride) of every cut."""
    p = {}
    if MESH.has(RANK, pp=0):
        p["tokens"] = Stored((4, 8), i64, "input", below=33)
        p["labels"] = Stored((4, 8), i64, "label", below=33)
        p["wte"] = Stored((33, 16), f32, "weight")
        p["wpe"] = Stored((1024, 16), f32, "weight", (TP, 0, 512))
        for i in range(0, 2):
            p[f"h.{i}.ln1.g"] = Stored((16,), f32, "weight")
            p[f"h.{i}.ln1.b"] = Stored((16,), f32, "weight")
            p[f"h.{i}.attn.qkv"] = Stored((16, 48), f32, "weight", (TP, 1, 8))
            p[f"h.{i}.attn.qkv.bias"] = Stored((48,), f32, "weight", (TP, 0, 8))
            p[f"h.{i}.attn.out"] = Stored((16, 16), f32, "weight", (TP, 0, 8))
            p[f"h.{i}.attn.out.bias"] = Stored((16,), f32, "weight")
            p[f"h.{i}.ln2.g"] = Stored((16,), f32, "weight")
            p[f"h.{i}.ln2.b"] = Stored((16,), f32, "weight")
            p[f"h.{i}.mlp.up"] = Stored((16, 64), f32, "weight", (TP, 1, 32))
            p[f"h.{i}.mlp.up.bias"] = Stored((64,), f32, "weight", (TP, 0, 32))
            p[f"h.{i}.mlp.down"] = Stored((64, 16), f32, "weight", (TP, 0, 32))
            p[f"h.{i}.mlp.down.bias"] = Stored((16,), f32, "weight")
        p["ln_f.g"] = Stored((16,), f32, "weight")
        p["ln_f.b"] = Stored((16,), f32, "weight")
    return p


$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=32 --batch 4 --seq 8 --train --optimizer adam --strategy 'dp=2 zero=3' | sed -n '/^def update/,/return/p'
def update(wte, wpe, d_wte, d_wpe, wte_m, wpe_m, wte_v, wpe_v):
    wte, wte_m, wte_v = adam(wte, d_wte, wte_m, wte_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    wpe, wpe_m, wpe_v = adam(wpe, d_wpe, wpe_m, wpe_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    return wte, wpe, wte_m, wpe_m, wte_v, wpe_v
def update_1(
    ln1_g, ln1_b, attn_qkv, attn_qkv_bias, attn_out, attn_out_bias, ln2_g, ln2_b, mlp_up, mlp_up_bias,
    mlp_down, mlp_down_bias, d_ln1_g, d_ln1_b, d_attn_qkv, d_attn_qkv_bias, d_attn_out, d_attn_out_bias,
    d_ln2_g, d_ln2_b, d_mlp_up, d_mlp_up_bias, d_mlp_down, d_mlp_down_bias, ln1_g_m, ln1_b_m, attn_qkv_m,
    attn_qkv_bias_m, attn_out_m, attn_out_bias_m, ln2_g_m, ln2_b_m, mlp_up_m, mlp_up_bias_m, mlp_down_m,
    mlp_down_bias_m, ln1_g_v, ln1_b_v, attn_qkv_v, attn_qkv_bias_v, attn_out_v, attn_out_bias_v, ln2_g_v,
    ln2_b_v, mlp_up_v, mlp_up_bias_v, mlp_down_v, mlp_down_bias_v,
):
    ln1_g, ln1_g_m, ln1_g_v = adam(ln1_g, d_ln1_g, ln1_g_m, ln1_g_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    ln1_b, ln1_b_m, ln1_b_v = adam(ln1_b, d_ln1_b, ln1_b_m, ln1_b_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    attn_qkv, attn_qkv_m, attn_qkv_v = adam(
        attn_qkv, d_attn_qkv, attn_qkv_m, attn_qkv_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    attn_qkv_bias, attn_qkv_bias_m, attn_qkv_bias_v = adam(
        attn_qkv_bias, d_attn_qkv_bias, attn_qkv_bias_m, attn_qkv_bias_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    attn_out, attn_out_m, attn_out_v = adam(
        attn_out, d_attn_out, attn_out_m, attn_out_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    attn_out_bias, attn_out_bias_m, attn_out_bias_v = adam(
        attn_out_bias, d_attn_out_bias, attn_out_bias_m, attn_out_bias_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    ln2_g, ln2_g_m, ln2_g_v = adam(ln2_g, d_ln2_g, ln2_g_m, ln2_g_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    ln2_b, ln2_b_m, ln2_b_v = adam(ln2_b, d_ln2_b, ln2_b_m, ln2_b_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    mlp_up, mlp_up_m, mlp_up_v = adam(mlp_up, d_mlp_up, mlp_up_m, mlp_up_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    mlp_up_bias, mlp_up_bias_m, mlp_up_bias_v = adam(
        mlp_up_bias, d_mlp_up_bias, mlp_up_bias_m, mlp_up_bias_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    mlp_down, mlp_down_m, mlp_down_v = adam(
        mlp_down, d_mlp_down, mlp_down_m, mlp_down_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    mlp_down_bias, mlp_down_bias_m, mlp_down_bias_v = adam(
        mlp_down_bias, d_mlp_down_bias, mlp_down_bias_m, mlp_down_bias_v, 0.001, 0.9, 0.999, 1e-08, 0.0,
    )
    return (
def update_2(ln_f_g, ln_f_b, d_ln_f_g, d_ln_f_b, ln_f_g_m, ln_f_b_m, ln_f_g_v, ln_f_b_v):
    ln_f_g, ln_f_g_m, ln_f_g_v = adam(ln_f_g, d_ln_f_g, ln_f_g_m, ln_f_g_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    ln_f_b, ln_f_b_m, ln_f_b_v = adam(ln_f_b, d_ln_f_b, ln_f_b_m, ln_f_b_v, 0.001, 0.9, 0.999, 1e-08, 0.0)
    return ln_f_g, ln_f_b, ln_f_g_m, ln_f_b_m, ln_f_g_v, ln_f_b_v
## An attribute that is a number with a fraction chooses its row: the slope of LeakyReLU is in its gradient.
$ for a in 0 0.1; do echo "func @main(%x: f32[4,8], %w: f32[8,8] weight) -> (f32[4,8]) { %h = matmul %x, %w : f32[4,8] %r = relu_dx %h, %x {alpha=$a} : f32[4,8] return %r }" | sed 's/ { %h/ {\n  %h/; s/ %r = /\n  %r = /; s/ return/\n  return/; s/ }$/\n}/' >leaky.heddle; heddle export leaky.heddle --strategy dp=1 --to pytorch | grep 'd_relu ='; done
    d_relu = torch.ops.aten.threshold_backward(product, x, 0)
    d_relu = torch.where(x > 0, product, product * 0.1)
## Arrays with which a run of the same seed starts.
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --strategy dp=2 --arrays first -o train.py; ls first; head -2 train.py
h.0.w.npy
h.1.w.npy
x.npy
z.npy
#!/usr/bin/env python3
"""mlp-xs:layers=2,hidden=8 under the plan dp=2 tp=1 pp=1: a PyTorch program of 2 processes.
## What cannot be written.
$ heddle export mlp-xs --to jax
error[E0801]: unknown format 'jax'
  hint: pytorch, profile-pytorch
[2]
$ printf 'func @main(%%x: f32[4,8,6,6]) -> (i64[4,8,5,5]) {\n  %%y = maxpool_arg %%x {window=[2,2]}\n  return %%y\n}\n' > pool.heddle; heddle export pool.heddle
error[E0514]: maxpool_arg cannot be written in PyTorch
  --> pool.heddle:2:8
   2 |   %y = maxpool_arg %x {window=[2,2]}
     |        ^
  hint: operators that can: docs/export.md
[1]
$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=32 --batch 8 --seq 8 --train --strategy 'dp=2 dp.shares=3/1 mb=2'
error[E0514]: uneven pieces in several intervals, or cut again, cannot be exported: [8{mb,dp:0-3+4-7|3-4+7-8},8,16]
  --> gpt2: layer/attention
  hint: dp.shares=equal tp.shares=equal, or mb=1
[1]
## What only some choices put into a program is refused by their name.
$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=32 --batch 8 --seq 8 --train --strategy 'dp=2 sync=ps'
error[E0514]: gradients that one rank sums (sync=ps) cannot be exported
  --> gpt2
  hint: sync=allreduce
[1]
$ heddle export gpt2:layers=2,hidden=16,heads=2,vocab=32 --batch 8 --seq 8 --train --strategy 'dp=2 tp=2 materialise=p2p'
error[E0514]: summands that are sent one by one cannot be exported
  --> gpt2: layer/attention
  hint: materialise=intra sums by collectives
[1]
## The old weight is read after its update: the new one takes its place at the end.
$ printf 'mesh @m [x=2]\nmain @f on @m(%%x: f32[8{x},8], %%g: f32[8,8], %%w: f32[8,8] weight) -> (f32[8{x},8], f32[8,8]) {\n  %%w.new = sgd %%w, %%g {lr=0.125} update : f32[8,8]\n  %%y = matmul %%x, %%w : f32[8{x},8]\n  return %%y, %%w.new\n}\n' >late.heddle; heddle export late.heddle | sed -n '/^def step_0/,/return/p'
def step_0(w, data):
    """One step of ranks 0 to 1."""
    w_new = sgd(w["w"], data["g"], 0.125, 0.0)
    y = data["x"] @ w["w"]
    w["w"] = w_new
    return {"y": y}
## Of an axis that counts from the end the ranks' parts are named.
$ printf 'mesh @m [x=2]\nmain @f on @m(%%i: i64[4]) -> (f32[4,8{x}]) {\n  %%y = one_hot %%i {size=8, dtype=f32} : f32[4,8{x}]\n  return %%y\n}\n' >hot.heddle; heddle export hot.heddle | sed -n '/^def step_0/,/return/p'
def step_0(w, data):
    """One step of ranks 0 to 1."""
    y = one_hot_part(data["i"], 8, -1, f32, [(X.at, 2, 4)])
    return {"y": y}
## A weight of the first and the last stage: its gradients are summed by these two of four alone.
$ heddle export gpt2:layers=4,hidden=16,heads=2,vocab=32 --batch 8 --seq 8 --train --strategy 'pp=4 mb=8 schedule=pipedream' | grep -e '= Axes(' -e 'all_reduce(d_wte'
PP_0_3 = Axes(MESH, "pp", pp=(0, 3))
PP = Axes(MESH, "pp")
    d_wte = all_reduce(d_wte.clone(), PP_0_3)
$ printf 'mesh @m [pp=4]\nfunc @sum(%%x: f32[4]+pp) -> (f32[4]) {\n  %%y = all_reduce %%x over pp\n  return %%y\n}\nfunc @main(%%x: f32[4]+pp @m[pp={0,3}], %%y: f32[4]+pp @m[pp={1,2}]) -> (f32[4] @m[pp={0,3}], f32[4] @m[pp={1,2}]) {\n  %%a = call @sum(%%x) @m[pp={0,3}]\n  %%b = call @sum(%%y) @m[pp={1,2}]\n  return %%a, %%b\n}\n' > parts.heddle; heddle export parts.heddle
error[E0514]: all_reduce over a part of an axis, another from call to call, cannot be exported
  --> parts.heddle:3:8
   3 |   %y = all_reduce %x over pp
     |        ^
  hint: a function for each group that it is called on
[1]
$ heddle export examples/distir/fig9_zero.heddle
error[E0514]: reduce cannot be written in PyTorch
  --> examples/distir/fig9_zero.heddle:65:10
  65 |   %dA1 = reduce %dA1s {root=0} over d @devices                                                  ...
     |          ^
  hint: operators that can: docs/export.md
[1]
$ heddle export mlp-xs --strategy 'dp=2' --plan best.plan
error[E0801]: --strategy cannot be combined with --plan: the plan file decides it
  hint: leave it out, or edit the plan file (docs/plans.md)
[2]
## What lies in host memory is copied where it is used.
$ heddle export mlp-xs:layers=6,hidden=8 --batch 4 --train --optimizer momentum --strategy 'dp=2 offload=states+acts' | grep -E '^def (stage|update)|to_host\(|to_device\(|host=True'
def update(w, w_2, d_w, d_w_2, w_m, w_m_2):
    relu_5 = to_host(relu)
    relu_8 = to_host(relu_3)
    relu_11 = to_host(relu_6)
    relu_14 = to_host(relu_9)
    relu_17 = to_device(relu_14)
    relu_18 = to_device(relu_11)
    relu_19 = to_device(relu_8)
    relu_20 = to_device(relu_5)
    h_0_w_m = to_device(w["h.0.w.m"])
    h_1_w_m = to_device(w["h.1.w.m"])
    h_2_w_m = to_device(w["h.2.w.m"])
    h_3_w_m = to_device(w["h.3.w.m"])
    h_4_w_m = to_device(w["h.4.w.m"])
    h_5_w_m = to_device(w["h.5.w.m"])
    w["h.0.w.m"] = to_host(momentum_2)
    w["h.1.w.m"] = to_host(momentum_3)
    w["h.2.w.m"] = to_host(momentum_4)
    w["h.3.w.m"] = to_host(momentum_5)
    w["h.4.w.m"] = to_host(momentum_6)
    w["h.5.w.m"] = to_host(momentum_7)
            p[f"h.{i}.w.m"] = Stored((8, 8), f32, "state", host=True)
def to_host(x):
def to_device(x):
## Recomputed activations are dropped with each layer.
$ heddle export gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32 --train --strategy recompute=full --to pytorch | sed -n '/^def stage_bwd/,/^def update/p' | grep -A3 '^    del'
    del d_cross_entropy
    # norm
    d_layernorm = layernorm_dx(product_2, add_3, ln_f_g, -1, 1e-05)
    d_layernorm_g = layernorm_dg(product_2, add_3, -1, 1e-05)
--
    del (
        product_2, add_3, layernorm_2, split, split_2, scale, softmax, product_4, add_4, layernorm_3, add_5,
        gelu, d_layernorm,
    )
--
    del add_7
    (
        add_10, d_layernorm_g_4, reduce_sum_8, product_10, reduce_sum_9, product_11, reduce_sum_10,
        d_layernorm_g_5, reduce_sum_11, product_12, reduce_sum_12, product_13, reduce_sum_13,
--
    del (
        add_6, layernorm_4, split_3, split_4, scale_2, softmax_2, product_9, add_8, layernorm_5, add_9,
        gelu_2,
    )
## What was written, as JSON; without a file the program is in it.
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --strategy 'dp=2 tp=2' --machine dgx-2 --json -o step.py --arrays first; head -1 step.py; ls first | head -1
{
  "model": "mlp-xs:layers=2,hidden=8",
  "plan": "dp=2 tp=2 pp=1",
  "machine": "dgx-2",
  "ranks": 4,
  "format": "pytorch",
  "output": "step.py",
  "arrays": "first",
  "text": null
}
#!/usr/bin/env python3
h.0.w.npy
$ heddle export mlp-xs:layers=2,hidden=8 --batch 4 --train --strategy 'dp=2' --to profile-pytorch --machine dgx-2 --json | cut -c1-60
{
  "model": "mlp-xs:layers=2,hidden=8",
  "plan": "dp=2 tp=1 pp=1",
  "machine": "dgx-2",
  "ranks": 2,
  "format": "profile-pytorch",
  "output": null,
  "arrays": null,
  "text": "#!/usr/bin/env python3\n\"\"\"Measures what the i
}
$ heddle machines laptop --json -o laptop.yaml | head -4; grep -c . laptop.yaml
{
  "output": "laptop.yaml",
  "machine": "laptop",
  "about": "4 processor cores, one rank each",
30
## Integers that are scaled stay integers.
$ heddle export swin-t:hidden=6,vocab=10 --batch 2 --seq 224 --train --to pytorch -o swin.py; grep -c 'double() \* 13.0).to(i64)' swin.py
14
