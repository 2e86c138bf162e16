#!/usr/bin/env python3
"""Makes tests/golden/front/pytorch.txt: what PyTorch computes of small Swin, mBART and AlphaFold 2 models.

Of each the loss, and of the gradient of every parameter two sums: of its products with fixed numbers, and of its
squares. Elements of inputs and weights follow from their names (`numbers`); tests/unit/test_models.c fills the built-in
models in the same way. Modules are written after the papers and their released code, not after Heddle's: windows are
moved by torch.roll, masks are -100, tables are permuted before they are attended along. Needs torch 1.13; the result is
part of the tree.
"""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F


def mixed(x):
    """SplitMix64's output for every state in x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits(name, n):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        return mixed(np.uint64(h) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def numbers(name, shape):
    u = (bits(name, math.prod(shape)) >> np.uint64(11)).astype(np.float64) / 2**53 - 0.5
    return torch.tensor(u.reshape(shape)) + (1 if name.endswith(".g") else 0)


def indices(name, shape, below):
    return torch.tensor((bits(name, math.prod(shape)) % np.uint64(below)).astype(np.int64).reshape(shape))


class Weights:
    def __init__(self, prefix="", kept=None):
        self.prefix, self.kept = prefix, {} if kept is None else kept

    def __call__(self, name, *shape):
        name = self.prefix + name
        if name not in self.kept:
            self.kept[name] = numbers(name, shape).requires_grad_()
        assert self.kept[name].shape == shape, name
        return self.kept[name]

    def under(self, prefix):
        return Weights(self.prefix + prefix + ".", self.kept)

    def norm(self, name, x):
        d = x.shape[-1]
        return F.layer_norm(x, (d,), self(name + ".g", d), self(name + ".b", d), 1e-5)

    def linear(self, name, x, to, bias=True):
        y = x @ self(name, x.shape[-1], to)
        return y + self(name + ".bias", to) if bias else y


def attention(q, k, v, heads, bias=None):
    """Of q [..,s,d], k and v [..,t,d]; bias [..,heads,s,t]."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(-2, -3) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    return (torch.softmax(scores, -1) @ v).transpose(-2, -3).flatten(-2)


# ---- Swin ----------------------------------------------------------------------------------------------------
def swin_block(w, x, heads, ffn, window, shift):
    n, side, _, d = x.shape
    k = side // window
    y = w.norm("ln1", x)
    mask = torch.zeros(side, side, dtype=x.dtype)
    if shift:
        y = torch.roll(y, (-shift, -shift), (1, 2))
        parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        for i, rows in enumerate(parts):
            for j, columns in enumerate(parts):
                mask[rows, columns] = 3 * i + j

    def windows(t):
        return t.view(-1, k, window, k, window, t.shape[-1]).permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(1, 2)

    y = w.linear("attn.qkv", windows(y), 3 * d)
    at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
    far = at[:, :, None] - at[:, None, :] + window - 1
    table = w("attn.position", (2 * window - 1) ** 2, heads)
    bias = table[far[0] * (2 * window - 1) + far[1]].permute(2, 0, 1)
    ids = windows(mask[None, :, :, None])[0, :, :, 0]
    bias = bias + (ids[:, None, :] != ids[:, :, None]).to(x.dtype)[:, None] * -100.0
    y = w.linear("attn.out", attention(*y.chunk(3, -1), heads, bias), d)
    y = y.view(n, k, k, window, window, d).permute(0, 1, 3, 2, 4, 5).reshape(n, side, side, d)
    if shift:
        y = torch.roll(y, (shift, shift), (1, 2))
    x = x + y
    return x + w.linear("mlp.down", F.gelu(w.linear("mlp.up", w.norm("ln2", x), ffn)), d)


def swin(w, layers, hidden, heads, ffn, vocab, window, batch, side):
    image, labels = numbers("image", (batch, 3, side, side)), indices("labels", (batch,), vocab)
    x = F.conv2d(image, w("patch", hidden, 3, 4, 4), w("patch.bias", hidden), stride=4).permute(0, 2, 3, 1)
    x = w.norm("patch.ln", x)
    for stage, blocks in enumerate((2, 2, layers - 6, 2), 1):
        here = min(window, x.shape[1])
        for i in range(blocks):
            shift = here // 2 if i % 2 and here < x.shape[1] else 0
            scale = 2 ** (stage - 1)
            x = swin_block(w.under(f"stage{stage}.{i}"), x, heads * scale, ffn * scale, here, shift)
        if stage < 4:
            x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
            x = w.linear(f"merge{stage}", w.norm(f"merge{stage}.ln", x), x.shape[-1] // 2, False)
    return F.cross_entropy(w.linear("head", w.norm("ln", x).mean((1, 2)), vocab), labels)


# ---- mBART ---------------------------------------------------------------------------------------------------
def mbart(w, layers, hidden, heads, ffn, vocab, batch, seq):
    words = w("word", vocab, hidden)

    def embed(side, ids):
        x = words[ids] * math.sqrt(hidden) + w(side + ".position", seq + 2, hidden)[2:]
        return w.norm(side + ".words.ln", x)

    def itself(u, x, mask):
        y = u.linear("attn.qkv", u.norm("ln1", x), 3 * hidden)
        return x + u.linear("attn.out", attention(*y.chunk(3, -1), heads, mask), hidden)

    def feed(u, norm, x):
        return x + u.linear("mlp.down", F.gelu(u.linear("mlp.up", u.norm(norm, x), ffn)), hidden)

    x = embed("encoder", indices("source", (batch, seq), vocab))
    for i in range(layers):
        u = w.under(f"encoder.{i}")
        x = feed(u, "ln2", itself(u, x, None))
    memory = w.norm("encoder.ln", x)
    x = embed("decoder", indices("target", (batch, seq), vocab))
    ahead = torch.full((seq, seq), -1e9, dtype=x.dtype).triu(1)
    for i in range(layers):
        u = w.under(f"decoder.{i}")
        x = itself(u, x, ahead)
        y = u.linear("cross.q", u.norm("ln2", x), hidden)
        k, v = u.linear("cross.k", memory, hidden), u.linear("cross.v", memory, hidden)
        x = x + u.linear("cross.out", attention(y, k, v, heads), hidden)
        x = feed(u, "ln3", x)
    logits = w.norm("decoder.ln", x) @ words.T
    return F.cross_entropy(logits.flatten(0, 1), indices("labels", (batch, seq), vocab).flatten())


# ---- AlphaFold 2: algorithms of its supplement -----------------------------------------------------------------
def gated(w, name, x, dim, pairs=None):
    """Algorithms 7, 8, 13: x [b,rows,columns,c] is attended along its columns; pairs [b,columns,columns,c]."""
    c = x.shape[-1]
    y = [w.linear(f"{name}.{part}", x, c, False) for part in "qkv"]
    bias = None
    if pairs is not None:
        bias = w.linear(f"{name}.pair", pairs, c // dim, False).permute(0, 3, 1, 2)[:, None]
    o = torch.sigmoid(w.linear(f"{name}.gate", x, c)) * attention(*y, c // dim, bias)
    return w.linear(f"{name}.out", o, c)


def triangle(w, name, z, letters):
    """Algorithms 11 and 12."""
    p, x = z.shape[-1], w.norm(f"{name}.ln", z)
    a, b = (torch.sigmoid(w.linear(f"{name}.{s}.gate", x, p)) * w.linear(f"{name}.{s}", x, p) for s in ("left", "right"))
    y = w.norm(f"{name}.mid.ln", torch.einsum(letters, a, b))
    return torch.sigmoid(w.linear(f"{name}.gate", x, p)) * w.linear(f"{name}.out", y, p)


def transition(w, name, x, n):
    c = x.shape[-1]
    return w.linear(f"{name}.down", F.relu(w.linear(f"{name}.up", w.norm(f"{name}.ln", x), n * c)), c)


def evoformer(w, m, z, dim, n):
    m = m + gated(w, "row", w.norm("row.ln", m), dim, w.norm("row.pair.ln", z))
    m = m + gated(w, "column", w.norm("column.ln", m.transpose(1, 2)), dim).transpose(1, 2)
    m = m + transition(w, "transition", m, n)
    x = w.norm("outer.ln", m)
    a, b = w.linear("outer.left", x, dim), w.linear("outer.right", x, dim)
    o = (a[:, :, :, None, :, None] * b[:, :, None, :, None, :]).mean(1)
    z = z + w.linear("outer.out", o.flatten(-2), z.shape[-1])
    z = z + triangle(w, "outgoing", z, "bikc,bjkc->bijc")
    z = z + triangle(w, "incoming", z, "bkic,bkjc->bijc")
    x = w.norm("start.ln", z)
    z = z + gated(w, "start", x, dim, x)
    x = w.norm("end.ln", z.transpose(1, 2))
    z = z + gated(w, "end", x, dim, x).transpose(1, 2)
    return m, z + transition(w, "pair.transition", z, n)


def alphafold(w, layers, hidden, dim, ffn, vocab, msa, pair, recycle, batch, seq):
    target = numbers("target", (batch, seq, 22))
    m0 = w.linear("embed.msa", numbers("msa", (batch, msa, seq, 49)), hidden)
    m0 = m0 + w.linear("embed.target", target, hidden)[:, None]
    far = (torch.arange(seq)[:, None] - torch.arange(seq)).clamp(-32, 32) + 32
    z0 = w.linear("embed.left", target, pair)[:, :, None] + w.linear("embed.right", target, pair)[:, None]
    z0 = z0 + F.one_hot(far, 65).to(z0.dtype) @ w("embed.distance", 65, pair)
    m, z = m0, z0
    for i in range(recycle):
        if i:
            first = w.norm("recycle.msa.ln", m[:, 0].detach())
            m = torch.cat([(m0[:, 0] + first)[:, None], m0[:, 1:]], 1)
            z = z0 + w.norm("recycle.pair.ln", z.detach())
        for k in range(layers):
            m, z = evoformer(w.under(f"h.{k}"), m, z, dim, ffn // hidden)
    y = w.linear("head", z, vocab)
    y = y + y.transpose(1, 2)
    return F.cross_entropy(y.flatten(0, 2), indices("labels", (batch, seq, seq), vocab).flatten())


FOLD = dict(layers=2, hidden=16, dim=8, ffn=32, vocab=6, msa=3, pair=16, batch=2, seq=5)
MODELS = [  # of Heddle's name, batch, length, and here
    ("swin-t:layers=7,hidden=8,heads=2,head_dim=4,window=4,vocab=5", 2, 64,
     lambda w: swin(w, 7, 8, 2, 32, 5, 4, 2, 64)),
    ("swin-t:layers=9,hidden=8,heads=2,head_dim=4,window=3,ffn=12,vocab=5", 1, 96,
     lambda w: swin(w, 9, 8, 2, 12, 5, 3, 1, 96)),
    ("mbart-large:layers=2,hidden=16,heads=4,ffn=24,vocab=11,positions=6", 2, 6,
     lambda w: mbart(w, 2, 16, 4, 24, 11, 2, 6)),
    ("alphafold2:layers=2,hidden=16,heads=2,ffn=32,vocab=6,msa=3,pair=16,positions=5", 2, 5,
     lambda w: alphafold(w, recycle=1, **FOLD)),
    ("alphafold2:layers=2,hidden=16,heads=2,ffn=32,vocab=6,msa=3,pair=16,positions=5,recycle=3", 2, 5,
     lambda w: alphafold(w, recycle=3, **FOLD)),
]

with open(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/front/pytorch.txt", "w") as out:
    for name, batch, seq, model in MODELS:
        w = Weights()
        loss = model(w)
        loss.backward()
        print(f"model {name} {batch} {seq} {loss.item():.17g} {len(w.kept)}", file=out)
        for key, x in w.kept.items():
            along = (x.grad * numbers(key + " along", tuple(x.shape))).sum()
            print(f"{key} {along.item():.17g} {(x.grad ** 2).sum().item():.17g}", file=out)
