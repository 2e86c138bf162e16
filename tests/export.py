"""Runs exported programs. Usage: export.py FOLDER...

A folder has program.py, a file `ranks` (how many, how close weights and losses must be, relative), arrays/ with what it reads, `losses` of each step and want/ with weights and
states after the last one. The first line is "torch" where there is one; then one line for each: "ok" or what is wrong.
"""

import os
import re
import runpy
import sys
import warnings

import numpy
import ranks
import torch

print("torch", flush=True)

SECONDS = 60  # for one program


def run(folder, n, steps):
    arguments = ["--fixed-step", "--steps", str(steps), "--arrays", f"{folder}/arrays", "--save", f"{folder}/got"]
    return ranks.run(folder, n, arguments, SECONDS)


def text(folder, rank):
    with open(f"{folder}/out.{rank}") as f:
        return f.read()


def weights_differ(folder, moments):
    """The parameter that is furthest from what is wanted, and by how much of the root of its mean square."""
    worst, which = 0, ""
    for name in sorted(os.listdir(f"{folder}/want")):
        if not moments and name.endswith((".m.npy", ".v.npy")):
            continue
        want = numpy.load(f"{folder}/want/{name}").astype(float)
        if not os.path.exists(f"{folder}/got/{name}"):
            continue  # data
        got = numpy.load(f"{folder}/got/{name}").astype(float)
        far = numpy.abs(got - want).max(initial=0) / (numpy.sqrt((want * want).mean()) + 1e-30) if want.size else 0
        if not far <= worst:
            worst, which = far, name
    return worst, which


def check(folder):
    with open(f"{folder}/ranks") as f:
        n, within, within_loss = f.read().split()
    with open(f"{folder}/losses") as f:
        want = [float(x) for x in f.read().split()]
    if not run(folder, int(n), len(want)):
        ends = [text(folder, rank).strip().splitlines()[-1:] for rank in range(int(n))]
        return f"it failed: {ends}"
    said = "".join(text(folder, rank) for rank in range(int(n)))
    got = [float(x) for x in re.findall(r"^step \d+: loss (\S+),", said, re.M)]
    if len(got) != len(want) or not all(abs(x - y) <= float(within_loss) * abs(y) for x, y in zip(got, want)):
        return f"losses {got}, not {want}"
    # Gradients that cancel are mostly rounding in bf16: two plans of Heddle's own differ by 0.4 in the average of one.
    far, name = weights_differ(folder, moments=float(within) < 1e-3)
    return "ok" if far <= float(within) else f"{name} differs by {far:.2g} of its root mean square"


def result_of(folder):
    """A program of one process, run in this one: do its results lie where they should?"""
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT=str(ranks.free_port()))
    sys.argv = ["program.py", "--fixed-step", "--steps", "1", "--arrays", f"{folder}/arrays", "--results", f"{folder}/got"]
    out, sys.stdout = sys.stdout, open(os.devnull, "w")
    try:
        runpy.run_path(f"{folder}/program.py", run_name="__main__")
    except BaseException as error:
        return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    finally:
        sys.stdout = out
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    for name in sorted(os.listdir(f"{folder}/want")):
        want, got = numpy.load(f"{folder}/want/{name}"), numpy.load(f"{folder}/got/{name}")
        if want.shape != got.shape:
            return f"result {name} has shape {got.shape}, not {want.shape}"
        want, got = want.astype(float), got.astype(float)
        root = numpy.sqrt(numpy.square(want[numpy.isfinite(want)]).mean()) if want.size else 0
        if not numpy.allclose(got, want, rtol=1e-4, atol=1e-5 * root, equal_nan=True):
            return f"result {name} differs by {numpy.abs(got - want).max():.3g}, of {root:.3g}"
    return "ok"


warnings.simplefilter("ignore")
single = sys.argv[1:2] == ["--single"]
for folder in sys.argv[2:] if single else sys.argv[1:]:
    print(result_of(folder) if single else check(folder), flush=True)
