"""Runs exported programs that measure events. Usage: measure.py FOLDER...

A folder has program.py and a file `ranks`: how many processes, on how many nodes. The first line is "torch" where there is one; then one line for
each: "ok" or what is wrong. The times are in FOLDER/times.jsonl.
"""

import json
import re
import statistics
import sys
import time
import warnings

import ranks
import torch

print("torch", flush=True)

SECONDS = 120  # for one program


def run(folder, n, nodes):
    return ranks.run(folder, n, ["--seconds", "0.01", "-o", f"{folder}/times.jsonl"], SECONDS, nodes)


def matmul_is_right(rows):
    """Is the time of the largest product within a factor of 3 of torch's? Something else may run: one try of three counts."""
    shapes = [(row, [tuple(map(int, s.split(","))) for s in re.findall(r"\[([\d,]+)\]", row["key"])]) for row in rows if row["key"].startswith("matmul")]
    if not shapes:
        return True
    row, (a, b, _) = max(shapes, key=lambda shape: shape[1][0][-1] * shape[1][1][-1])
    kind = torch.bfloat16 if " bf16[" in row["key"] else torch.float32
    a, b = torch.randn(a).to(kind), torch.randn(b).to(kind)
    for _ in range(3):
        taken = []
        for _ in range(50):
            begin = time.perf_counter()
            for _ in range(10):
                torch.matmul(a, b)
            taken.append((time.perf_counter() - begin) / 10 * 1e12)
        if 1 / 3 < row["median_ps"] / statistics.median(taken) < 3:
            return True
    return False


def check(folder):
    with open(f"{folder}/ranks") as f:
        n, nodes = map(int, f.read().split())
    torch.set_num_threads(1)
    if not run(folder, n, nodes):
        with open(f"{folder}/out.0") as f:
            return f"it failed: {f.read().strip().splitlines()[-1:]}"
    with open(f"{folder}/times.jsonl") as f:
        text = f.read()
    rows = [json.loads(line) for line in text.splitlines()]
    wrong = [row for row in rows if "failed" in row]
    if wrong:
        return f"{wrong[0]['key']}: {wrong[0]['failed']}"
    if not matmul_is_right(rows):
        return "a matmul takes another time"
    return goes_on(folder, n, nodes, text, rows) if n == 1 else "ok"


def goes_on(folder, n, nodes, text, rows):
    """A line that was cut off, and one that is not there, are measured again, and no other."""
    with open(f"{folder}/times.jsonl", "w") as f:
        f.write("".join(line + "\n" for line in text.splitlines()[:-2]) + text.splitlines()[-2][:20])
    if not run(folder, n, nodes):
        return "it failed the second time"
    with open(f"{folder}/out.0") as f:
        said = f.read()
    with open(f"{folder}/times.jsonl") as f:
        again = f.read()
    if "2 events measured" not in said or sorted(json.loads(line)["key"] for line in again.splitlines()) != sorted(row["key"] for row in rows):
        return f"it did not go on: {said.splitlines()[-1:]}"
    return "ok"


warnings.simplefilter("ignore")
for folder in sys.argv[1:]:
    print(check(folder), flush=True)
