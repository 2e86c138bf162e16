"""Attention of exported programs by a GPU's kernel, with a kernel of this test in its place: are dimensions where it wants
them, and results and gradients where the program does? Usage: flash.py src/export/pytorch.py. Prints "torch" where there is one,
then a line for each law: "ok" or what is wrong.
"""

import math
import sys

import torch
import torch.nn.functional as F

print("torch", flush=True)
CALLS = []


def scores(q, k, causal, scale):
    s = q @ k.transpose(-2, -1) * scale
    later = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
    return s.masked_fill(later, -math.inf) if causal else s


def forward(q, k, v, dropout, causal, scale):
    """[batch, heads, tokens, width], and [batch, heads, tokens]."""
    CALLS.append(causal)
    s = scores(q, k, causal, scale)
    return F.softmax(s, -1) @ v, torch.logsumexp(s, -1), None


def backward(dy, q, k, v, y, lse, _, __, tokens, keys, dropout, causal, seed, offset, scale):
    CALLS.append(causal)
    assert (tokens, keys) == (q.shape[2], k.shape[2]) and lse.shape == q.shape[:3] and lse.is_contiguous()
    p = (scores(q, k, causal, scale) - lse.unsqueeze(-1)).exp()
    ds = p * (dy @ v.transpose(-2, -1) - (dy * y).sum(-1, keepdim=True))
    return ds @ k * scale, ds.transpose(-2, -1) @ q * scale, p.transpose(-2, -1) @ dy


with open(sys.argv[1]) as f:
    text = f.read()
program = {"torch": torch, "F": F, "math": math, "DEVICE": torch.device("cpu")}
first, last = text.index("def has_flash"), text.index("\ndef cross_entropy(")
blocks = text.index("class Attention:")
exec(text[blocks:last], program)
torch.ops.aten._scaled_dot_product_flash_attention = forward
torch.ops.aten._scaled_dot_product_flash_attention_backward = backward

SIZES = dict(b=2, h=3, s=5, t=7, d=8, e=8)
LAWS = [
    # law, causal, value of what is masked, does the kernel apply
    ("bshd,bthd,bthe->bshe", None, None, True),
    ("bshd, bthd, bthe->bshe", "s", -1e4, True),
    ("bshd,bthd,bthe->bshe", "s", None, True),
    ("bshd,bthd,bthe->bshe", "s", -3.0, False),
    ("hsbd,tbhd,ebht->shbe", None, None, True),
    ("bhsd,bhtd,bhte->bhse", "s", None, True),
    ("shd,thd,the->she", None, None, False),
    ("bshd,bthd,bthe->bshe", None, "bias", False),
]


def both_ways(law, causal, value, wanted):
    size = dict(SIZES, t=SIZES["s"]) if causal else SIZES
    terms = law.replace(" ", "").replace("->", ",").split(",")
    g = torch.Generator().manual_seed(1)
    q, k, v, dy = (torch.randn([size[c] for c in term], generator=g, dtype=torch.float64) for term in terms)
    beside = []
    if value == "bias":
        law, value = law.replace("->", ",hst->"), None
        beside = [torch.randn([size[c] for c in "hst"], generator=g, dtype=torch.float64)]
    got = []
    for kernel in (False, True):
        program["has_flash"] = lambda x: kernel
        CALLS.clear()
        y, lse = program["attention"](law, q, k, v, *beside, alpha=0.3, causal=causal, value=value)
        dx = program["attention_dx"](law, dy, y, lse, q, k, v, *beside, alpha=0.3, causal=causal, value=value)
        got.append([y, lse, *dx])
    if CALLS != ([bool(causal)] * 2 if wanted else []):
        return f"{law}: the kernel was called {CALLS}"
    for name, x, z in zip(("y", "lse", "dq", "dk", "dv"), *got):
        if x.shape != z.shape or not torch.allclose(x, z, rtol=1e-9, atol=1e-9):
            return f"{law}: {name} differs"
    return "ok"


for one in LAWS:
    print(both_ways(*one), flush=True)
