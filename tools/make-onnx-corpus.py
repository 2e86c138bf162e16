#!/usr/bin/env python3
"""Writes fuzz/corpus/onnx/unet and fuzz/corpus/onnx/export: what the fuzzer of the importer starts from.

unet: a network of images to images (transposed convolution, group and instance norm, resizing, padding, a loss with
class weights), with its nodes back to front. export: a training graph with gradient operators, as exporters write it.
Needs the Python package onnx; the results are part of the repository, so nobody else does.
"""
import os

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

node = helper.make_node


def value(name, dims, t=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, t, dims)


def weights(shapes):
    rng = np.random.default_rng(1)
    return [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]


def ints(name, v):
    return numpy_helper.from_array(np.array(v, dtype=np.int64), name)


def write(name, nodes, inputs, outputs, inits, opsets, check=True):
    graph = helper.make_graph(nodes, name, inputs, outputs, inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets], ir_version=8)
    if check:
        checker.check_model(model, full_check=True)
    graph.node.sort(key=lambda n: n.name)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus", "onnx", name)
    with open(path, "wb") as f:
        f.write(model.SerializeToString())


def unet():
    nodes = [
        node("Pad", ["x", "border"], ["p"], mode="reflect"),
        node("Conv", ["p", "w1"], ["c"], kernel_shape=[3, 3]),
        node("InstanceNormalization", ["c", "g1", "b1"], ["n"]),
        node("LeakyRelu", ["n"], ["r"], alpha=0.1),
        node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("LRN", ["m"], ["l"], size=3),
        node("ConvTranspose", ["l", "up", "ub"], ["t"], strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1],
             group=2),
        node("Resize", ["l", "", "scales"], ["z"], mode="linear"),
        node("DepthToSpace", ["l"], ["d"], blocksize=2),
        node("Concat", ["r", "t", "z", "d"], ["k"], axis=1),
        node("Conv", ["k", "w2"], ["s"]),
        node("SoftmaxCrossEntropyLoss", ["s", "label", "cw"], ["loss"], ignore_index=-1),
    ]
    for i, n in enumerate(nodes):
        n.name = "n%02d" % (len(nodes) - i)
    inits = weights({"w1": (4, 2, 3, 3), "g1": (4,), "b1": (4,), "up": (4, 2, 3, 3), "ub": (4,), "w2": (3, 13, 1, 1),
                     "cw": (3,)})
    inits += [ints("border", [0, 0, 1, 1, 0, 0, 1, 1]),
              numpy_helper.from_array(np.array([1, 1, 2, 2], dtype=np.float32), "scales")]
    write("unet", nodes, [value("x", ["N", 2, 6, 6]), value("label", ["N", 6, 6], TensorProto.INT64)],
          [value("loss", [])], inits, [("", 13)])


def export():
    ms = {"domain": "com.microsoft"}
    nodes = [
        node("Gather", ["table", "ids"], ["x"]),
        node("LayerNormalization", ["x", "g", "b"], ["y", "mean", "inv"], axis=-1, epsilon=1e-5),
        node("MatMul", ["y", "w"], ["h"]),
        node("BiasGelu", ["h", "hb"], ["a"], **ms),
        node("Softmax", ["a"], ["s"], axis=-1),
        node("SoftmaxGrad_13", ["dy", "s"], ["ds"], axis=-1, **ms),
        node("BiasGeluGrad_dX", ["ds", "h", "hb"], ["dh"], **ms),
        node("FusedMatMul", ["dh", "w"], ["d"], transB=1, **ms),
        node("LayerNormalizationGrad", ["d", "x", "g", "mean", "inv"], ["dx", "dg", "db"], axis=-1, **ms),
        node("Shape", ["table"], ["extents"]),
        node("GatherGrad", ["extents", "ids", "dx"], ["dtable"], **ms),
        node("Size", ["ids"], ["count"]),
        node("Scale", ["dtable", "count"], ["scaled"], scale_down=1, **ms),
        node("SGDOptimizer", ["rate", "table", "scaled"], ["table.new"], **ms),
    ]
    for i, n in enumerate(nodes):
        n.name = "n%02d" % i
    inits = weights({"table": (9, 4), "g": (4,), "b": (4,), "w": (4, 6), "hb": (6,)})
    write("export", nodes, [value("ids", [2, 3], TensorProto.INT64), value("dy", [2, 3, 6]), value("rate", [1])],
          [value("s", [2, 3, 6]), value("dg", [4]), value("db", [4])], inits, [("", 14), ("com.microsoft", 1)],
          check=False)  # onnx does not know onnxruntime's operators


unet()
export()
