#!/usr/bin/env python3
"""Writes examples/gpt2.onnx: GPT-2 (124M) as PyTorch exports it, without the elements of its weights.

The graph is the real one, with batch and sequence left open and every shape computed by chains of Shape, Gather,
Slice, Unsqueeze, Concat and Reshape. The weights refer to a file that is not there, as in any ONNX model whose
external data were not downloaded, so the file is small. Needs torch 1.13 and onnx; the result is part of the
repository, so nobody else does.
"""
import math
import sys
import tempfile

import onnx
import torch
from onnx import TensorProto, external_data_helper
from torch import nn


class Conv1D(nn.Module):  # a linear layer with the weight stored the other way round
    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.empty(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return x.view(size_out)


class Attention(nn.Module):
    def __init__(self, hidden, heads, positions):
        super().__init__()
        mask = torch.tril(torch.ones((positions, positions), dtype=torch.bool))
        self.register_buffer("bias", mask.view(1, 1, positions, positions))
        self.register_buffer("masked", torch.tensor(-1e4))
        self.heads, self.head_dim, self.hidden = heads, hidden // heads, hidden
        self.c_attn = Conv1D(3 * hidden, hidden)
        self.c_proj = Conv1D(hidden, hidden)

    def split_heads(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.head_dim)).permute(0, 2, 1, 3)

    def forward(self, x):
        query, key, value = (self.split_heads(t) for t in self.c_attn(x).split(self.hidden, dim=2))
        weights = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_dim)
        nq, nk = query.size(-2), key.size(-2)
        causal = self.bias[:, :, nk - nq : nk, :nk]
        weights = torch.where(causal, weights, self.masked)
        weights = nn.functional.softmax(weights, dim=-1)
        out = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return self.c_proj(out.view(out.size()[:-2] + (self.hidden,)))


class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.c_fc = Conv1D(4 * hidden, hidden)
        self.c_proj = Conv1D(hidden, 4 * hidden)

    def forward(self, x):
        h = self.c_fc(x)
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return self.c_proj(h)


class Block(nn.Module):
    def __init__(self, hidden, heads, positions):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden)
        self.attn = Attention(hidden, heads, positions)
        self.ln_2 = nn.LayerNorm(hidden)
        self.mlp = MLP(hidden)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, vocab=50257, positions=1024, layers=12, hidden=768, heads=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(positions, hidden)
        self.h = nn.ModuleList(Block(hidden, heads, positions) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids):
        shape = input_ids.size()
        position_ids = torch.arange(0, shape[-1], dtype=torch.long).unsqueeze(0).view(-1, shape[-1])
        x = self.wte(input_ids) + self.wpe(position_ids)
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        return self.lm_head(x.view(shape + (x.size(-1),)))


def main(path):
    torch.manual_seed(0)
    model = GPT2().eval()
    for weight in model.parameters():  # equal ones would become one in the file
        nn.init.normal_(weight, std=0.02)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as full:
        torch.onnx.export(
            model,
            (torch.zeros(2, 8, dtype=torch.long),),
            full.name,
            opset_version=17,
            do_constant_folding=False,  # would make a copy of the tied embedding
            input_names=["input_ids"],
            output_names=["logits"],
            dynamic_axes={"input_ids": {0: "batch", 1: "sequence"}, "logits": {0: "batch", 1: "sequence"}},
        )
        graph = onnx.load(full.name)
    offset = 0
    for tensor in graph.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.raw_data) < 1024:
            continue
        size = len(tensor.raw_data)
        external_data_helper.set_external_data(tensor, "gpt2.bin", offset, size)
        tensor.ClearField("raw_data")
        offset += size
    for node in graph.graph.node:
        node.ClearField("doc_string")
    onnx.save(graph, path)


main(sys.argv[1] if len(sys.argv) > 1 else "examples/gpt2.onnx")
