#!/usr/bin/env python3
# make.py - writes the traces beside it, and those of tests/clocks: what four processes on four hosts record of 96
# steps, each on a clock of its own. The same files every time.
#
# A step is an all-reduce, in which ranks wait for the last one, and sends both ways along the line of ranks. Rank 1 is
# 15 ms ahead, rank 2 is 8 ms behind and gains 80 ppm, rank 3 is 31 ms ahead and loses 45 ppm. In tests/clocks/jump rank
# 2 is set back by 3 ms in the middle; in tests/clocks/apart ranks 2 and 3 have nothing to do with 0 and 1, and
# all-reduces are missing.
import gzip
import json
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "..", "..", "tests", "clocks")
BASE = 1760000000000000000  # ns
STEPS, STEP = 96, 20000.0  # us
OFFSET, DRIFT = [0, 15000.0, -8000.0, 31000.0], [0, 0, 80e-6, -45e-6]


def kernel(rank, name, op, start, end, nelems, group, ranks, more):
    args = {"device": rank % 8, "stream": 20, "Collective name": op, "In msg nelems": nelems,
            "Out msg nelems": nelems, "dtype": "BFloat16", "Group size": len(ranks), "Process Group Name": group,
            "Process Group Ranks": str(ranks)}
    args.update(more)
    return {"ph": "X", "cat": "kernel", "name": name, "pid": rank % 8, "tid": 20, "ts": start, "dur": end - start,
            "args": args}


def job(folder, jump=False, apart=False):
    rng = random.Random(1)
    events = [[] for _ in range(4)]
    groups = [[0, 1], [2, 3]] if apart else [[0, 1, 2, 3]]
    for step in range(STEPS):
        at = step * STEP
        for group in groups:
            ready = [at + rng.uniform(0, 6000) for _ in group]
            done = max(ready) + 900 + rng.uniform(0, 60)
            for rank, start in zip(group, ready):
                if apart and rank == 1 and step in (40, 41):
                    continue
                events[rank].append((start, done + rng.uniform(0, 20), "AllReduce_Sum_bf16_RING_LL", "allreduce",
                                     8388608, "dp", group, {}))
        for left in range(3):
            for sender, receiver in ((left, left + 1), (left + 1, left)):
                if apart and {sender, receiver} == {1, 2}:
                    continue
                start = at + 9000 + 2000 * left + rng.uniform(0, 100) + (800 if sender > receiver else 0)
                arrived = start + 130 + rng.expovariate(1 / 25.0)
                events[sender].append((start, start + 120, "SendRecv", "send", 262144, "pp", [0, 1, 2, 3],
                                       {"Dst Rank": receiver}))
                events[receiver].append((start - rng.uniform(0, 300), arrived, "SendRecv", "recv", 262144, "pp",
                                         [0, 1, 2, 3], {"Src Rank": sender}))
    os.makedirs(folder, exist_ok=True)
    for rank in range(4):
        def clock(t):
            back = 3000.0 if jump and rank == 2 and t > STEPS / 2 * STEP + 8000 else 0
            return round(1000.0 + t + OFFSET[rank] + DRIFT[rank] * t - back, 3)
        rows = [kernel(rank, f"ncclDevKernel_{name}(ncclDevKernelArgsStorage<4096ul>)", op, clock(start), clock(end),
                       nelems, group, ranks, more)
                for start, end, name, op, nelems, group, ranks, more in sorted(events[rank], key=lambda e: e[0])]
        for row in rows:
            row["dur"] = round(row["dur"], 3)
        trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4},
                 "baseTimeNanoseconds": BASE, "traceEvents": rows}
        with open(os.path.join(folder, f"rank{rank}.json.gz"), "wb") as f:
            with gzip.GzipFile(filename="", fileobj=f, mode="wb", mtime=0) as z:
                z.write(json.dumps(trace, separators=(",", ":")).encode())


job(HERE)
job(os.path.join(TESTS, "jump"), jump=True)
job(os.path.join(TESTS, "apart"), apart=True)
