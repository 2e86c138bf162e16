#!/usr/bin/env python3
"""Writes examples/traces/pipeline: the timeline of a made-up job of 2 data ranks x 4 stages whose worker 3 is slow.

Usage: tools/make-pipeline-trace.py FOLDER [CHUNKS [STEPS]]. One event for every operation of every worker and step, as
recorders of Megatron-like jobs write them. Times follow from the rules of docs/diagnosis.md, worked out here by
themselves: a replay of the timeline must give its own times again. With several chunks the pipeline is interleaved, and
the sends and receives at its ends, which move nothing, are recorded too: tests/interleaved is `2 1`.
"""
import gzip
import json
import sys

DATA, STAGES, MICROBATCHES = 2, 4, 4
SLOW = (1, 1)  # stage, data rank
KINDS = ["compute", "pp-comm", "tp-comm", "dp-comm", "misc"]


class Noise:  # the same numbers everywhere
    def __init__(self):
        self.x = 12345

    def __call__(self):  # -1 .. 1
        self.x = (self.x * 1103515245 + 12345) % 2**31
        return self.x / 2**30 - 1


def compute_order(stage, chunks):
    """(type, chunk, microbatch) in the order of 1F1B, or of interleaved 1F1B."""
    n = MICROBATCHES * chunks

    def item(i, back):
        chunk = i % (STAGES * chunks) // STAGES
        mb = i // (STAGES * chunks) * STAGES + i % STAGES
        return ("backward", chunks - 1 - chunk, mb) if back else ("forward", chunk, mb)

    warm = STAGES - 1 - stage if chunks == 1 else (STAGES - 1 - stage) * 2 + (chunks - 1) * STAGES
    warm = min(warm, n)
    order = [item(i, False) for i in range(warm)]
    for i in range(n - warm):
        order += [item(warm + i, False), item(i, True)]
    return order + [item(i, True) for i in range(n - warm, n)]


def step_of(noise, chunks):
    """{(data, stage, type, number): [start, transfer or time, chunk, microbatch]} and their ends, microseconds."""
    ops, deps, groups = {}, {}, {}

    def op(key, time, *after, chunk=-1, mb=-1, group=None):
        ops[key] = [0, round(time, 3), chunk, mb]
        deps[key] = [k for k in after if k]
        groups.setdefault(group or key, []).append(key)

    last_gmc = STAGES * chunks - 1
    for d in range(DATA):
        for s in range(STAGES):
            slow = 1.4 if (s, d) == SLOW else 1
            order, count, before = compute_order(s, chunks), {"forward": 0, "backward": 0}, []
            for c in range(chunks):
                op((d, s, "params-all-gather", c), 8000 + 200 * noise(),
                   (d, s, "params-all-gather", c - 1) if c else None, chunk=c, group=("gather", s, c))
            first_back = next(i for i, o in enumerate(order) if o[0] == "backward")
            seen = {}
            valid = {}
            for i, (what, c, mb) in enumerate(order):
                n, key = count[what], (d, s, f"{what}-compute", count[what])
                count[what] += 1
                gmc, up = c * STAGES + s, 1 if what == "forward" else -1
                wait = [before[-1] if before else None]
                if what == "forward" and c not in seen:
                    seen[c] = True
                    wait.append((d, s, "params-all-gather", c))
                for way in ("recv", "send"):
                    end = gmc == (0 if up == (1 if way == "recv" else -1) else last_gmc)
                    if end and chunks == 1:
                        continue
                    msg = (d, s, f"{what}-{way}", n)
                    prev = (d, s, f"{what}-{way}", n - 1) if n else None
                    warmup = before_of(d, s, order, first_back - 2) if what == "backward" and n == 0 and first_back > 1 else None
                    mine = (d, s, f"{what}-compute", n - 1) if way == "recv" and n else key if way == "send" else None
                    k = valid.setdefault((what, way), 0)
                    valid[what, way] += not end
                    sender = s if way == "send" else (s - up) % STAGES
                    op(msg, 400 + 50 * noise(), prev, mine, warmup, group=None if end else (what, d, sender, k))
                    if way == "recv":
                        wait.append(msg)
                time = (20000 if what == "forward" else 40000) / chunks * (1.1 if gmc == last_gmc else 1)
                op(key, time * slow * (1 + 0.02 * noise()), *wait, chunk=c, mb=mb)
                before.append(key)
            tail = [before[-1]]

            def then(name, time, n=0, group=None, chunk=-1):
                op((d, s, name, n), time, tail[-1], group=group, chunk=chunk)
                tail.append((d, s, name, n))

            then("gc", 0)
            then("layernorm-grads-all-reduce", 40 + 5 * noise())
            if s in (0, STAGES - 1):
                then("embedding-grads-all-reduce", 5000 + 100 * noise(), group=("embedding", d))
            for c in range(chunks):
                then("grads-reduce-scatter", 12000 / chunks + 200 * noise(), c, ("reduce", s, c), chunk=c)
                deps[tail[-1]].append((d, s, "params-all-gather", chunks - 1) if c == 0 else None)
            then("optimizer-clip-main-grad", 900 + 30 * noise(), group=("clip",))
            then("optimizer", 6000 + 100 * noise())
    return ops, deps, groups


def before_of(d, s, order, i):
    what = order[i][0]
    return (d, s, f"{what}-compute", sum(o[0] == what for o in order[:i]))


def run(ops, deps, groups):
    """Starts and ends: a member of a group ends its own time after the last member has started."""
    group_of = {k: g for g, keys in groups.items() for k in keys}
    end, start = {}, {}
    while len(end) < len(ops):
        progress = len(end)
        for g, keys in groups.items():
            if keys[0] in end or any(d and d not in end for k in keys for d in deps[k]):
                continue
            for k in keys:
                start[k] = max([end[d] for d in deps[k] if d], default=0)
            there = max(start[k] for k in keys)
            for k in keys:
                end[k] = round(there + ops[k][1], 3)
        assert len(end) > progress, "operations wait for each other"
    assert group_of
    return start, end


def main():
    folder, chunks, steps = sys.argv[1], *(int(x) for x in (sys.argv[2:] + ["1", "3"][len(sys.argv) - 2:]))
    noise, origin, events = Noise(), 0, []
    for step in range(10, 10 + steps):
        ops, deps, groups = step_of(noise, chunks)
        start, end = run(ops, deps, groups)
        for (d, s, name, n), (_, _, chunk, mb) in ops.items():
            kind = 0 if name.endswith("compute") or name in ("gc", "optimizer") else 1 if name[-4:] in ("send", "recv") else 3
            t = start[d, s, name, n]
            events.append({"name": name, "cat": name, "pid": d, "tid": (s * DATA + d) * 5 + kind,
                           "ts": round(origin + t, 3), "dur": round(end[d, s, name, n] - t, 3), "ph": "X",
                           "args": {"step": step, "model_chunk": chunk, "mb_id": mb, "seq_id": n}})
        origin = round((origin + max(end.values())) * 1.01)
    for d in range(DATA):
        for s in range(STAGES):
            for k, kind in enumerate(KINDS):
                events.append({"name": "thread_name", "pid": d, "tid": (s * DATA + d) * 5 + k, "ph": "M",
                               "args": {"name": f"PP rank {s}, TP rank 0, {kind}"}})
    text = "[" + ",\n".join(json.dumps(e, separators=(",", ":")) for e in events) + "]\n"
    with open(f"{folder}/timeline.json.gz", "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        z.write(text.encode())
    with open(f"{folder}/meta.yaml", "w") as f:
        f.write(f"trial_name: made up\ndp_size: {DATA}\npp_size: {STAGES}\ntp_size: 1\nvpp_size: {chunks}\n"
                f"world_size: {DATA * STAGES}\n")


main()
