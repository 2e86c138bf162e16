# torch_adam.py - what PyTorch's Adam makes of the same weights and samples as `heddle run`.
# python3 torch_adam.py begin DIR: writes DIR/w.npz and samples DIR/x.npy, DIR/z.npy.
# python3 torch_adam.py compare DIR STEPS: trains and compares with DIR/ckpt/step-NNNNNN.safetensors, read here by its format.
import json
import struct
import sys
import zlib

import numpy
import torch

BATCH, HIDDEN, SAMPLES = 4, 16, 20
folder = sys.argv[2]


def begin():
    rng = numpy.random.default_rng(1)
    w = {f"h.{k}.w": rng.normal(0, HIDDEN**-0.5, (HIDDEN, HIDDEN)).astype("f4") for k in range(2)}
    numpy.savez(f"{folder}/w.npz", **w)
    for name in "xz":
        numpy.save(f"{folder}/{name}.npy", rng.normal(0, 1, (SAMPLES, HIDDEN)).astype("f4"))


def read_safetensors(path):
    data = open(path, "rb").read()
    (n,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + n]), data[8 + n :]
    notes = header.pop("__metadata__")
    sums = [int(x, 16) for x in notes["heddle.crc32"].split()]
    assert zlib.crc32(data[8 : 8 + n].replace(b"%08x " % sums[0], b"00000000 ", 1)) == sums[0]
    out = {}
    for crc, (name, t) in zip(sums[1:], header.items()):
        a, b = t["data_offsets"]
        assert t["dtype"] == "F32" and zlib.crc32(body[a:b]) == crc
        out[name] = numpy.frombuffer(body[a:b], "f4").reshape(t["shape"])
    return notes, out


def compare(steps):
    w = [torch.tensor(numpy.load(f"{folder}/w.npz")[f"h.{k}.w"], requires_grad=True) for k in range(2)]
    x, z = (torch.tensor(numpy.load(f"{folder}/{name}.npy")) for name in "xz")
    optimizer = torch.optim.Adam(w, lr=0.001)
    for step in range(steps):
        rows = [(step * BATCH + b) % SAMPLES for b in range(BATCH)]
        y = torch.relu(torch.relu(x[rows] @ w[0]) @ w[1])
        optimizer.zero_grad()
        (((y - z[rows]) ** 2).sum() / BATCH).backward()
        optimizer.step()
    notes, ours = read_safetensors(f"{folder}/ckpt/step-{steps:06d}.safetensors")
    assert notes["heddle.step"] == str(steps) and notes["heddle.sample"] == str(steps * BATCH)
    for k in range(2):
        state = optimizer.state[w[k]]
        for name, theirs in ((f"h.{k}.w", w[k]), (f"h.{k}.w.m", state["exp_avg"]), (f"h.{k}.w.v", state["exp_avg_sq"])):
            theirs = theirs.detach().numpy()
            off = abs(ours[name] - theirs).max() / abs(theirs).max()
            print(f"{name} {off:.2g}")
            assert off <= (1e-5 if steps == 1 else 1e-3)


begin() if sys.argv[1] == "begin" else compare(int(sys.argv[3]))
