#!/usr/bin/env python3
"""Writes tests/golden/onnx/encoder.onnx: a small vision transformer of nn.TransformerEncoderLayer as PyTorch
exports it for training: normalisations in single steps, queries, keys and values cut from one product by slices,
heads merged with the batch. Without the elements of its weights. Needs torch 1.13 and onnx; the result is part of
the repository, so nobody else does.
"""
import sys
import tempfile

import onnx
import torch
from onnx import TensorProto, external_data_helper
from torch import nn


class Encoder(nn.Module):
    def __init__(self, hidden=64, heads=8, ffn=256, layers=3, patch=8, image=32, classes=40):
        super().__init__()
        tokens = (image // patch) ** 2
        self.patch = nn.Conv2d(3, hidden, patch, patch)
        self.position = nn.Parameter(torch.empty(1, tokens, hidden))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(hidden, heads, ffn, 0.0, "gelu", batch_first=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def main(path):
    torch.manual_seed(0)
    model = Encoder().train()
    for weight in model.parameters():  # equal ones would become one in the file
        nn.init.normal_(weight, std=0.02)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as full:
        torch.onnx.export(
            model,
            (torch.zeros(2, 3, 32, 32),),
            full.name,
            opset_version=14,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=True,  # turns weights round, as the linear layers have them
            input_names=["image"],
            output_names=["logits"],
            dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
        )
        graph = onnx.load(full.name)
    offset = 0
    for tensor in graph.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.raw_data) < 64:
            continue
        size = len(tensor.raw_data)
        external_data_helper.set_external_data(tensor, "encoder.bin", offset, size)
        tensor.ClearField("raw_data")
        offset += size
    for node in graph.graph.node:
        node.ClearField("doc_string")
    onnx.save(graph, path)


main(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/onnx/encoder.onnx")
