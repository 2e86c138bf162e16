#!/usr/bin/env python3
# make.py - writes the examples beside it: dumps of PyTorch's flight recorder and NCCL's RAS output of jobs that hang.
# The jobs are made up; the files have the fields and the order of fields that PyTorch 2.10 and NCCL 2.28 write.
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
START = 1_760_000_000_000_000_000
MS = 1_000_000


class Rank:
    """What one rank records. groups: name -> (description, ranks)."""

    def __init__(self, rank, groups):
        self.rank, self.groups = rank, groups
        self.own = [g for g in groups if rank in groups[g][1]]
        self.seq, self.p2p, self.entries, self.now = {}, {}, [], START

    def call(self, group, op, size, state, line, dtype="Float", out=None, p2p=False, file="train.py", func="train_step"):
        if p2p:
            self.p2p[group] = self.p2p.get(group, 0) + 1
        else:
            self.seq[group] = self.seq.get(group, 0) + 1
        self.now += 5 * MS
        started = self.now + MS if state != "scheduled" else None
        self.entries.append({
            "frames": [
                {"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/"
                 "distributed_c10d.py", "line": 2810},
                {"name": func, "filename": file, "line": line},
                {"name": "main", "filename": file, "line": 118}],
            "record_id": len(self.entries),
            "pg_id": self.own.index(group),
            "process_group": (group, self.groups[group][0]),
            "thread_name": "python",
            "thread_id": "7",
            "collective_seq_id": self.seq.get(group, 0),
            "p2p_seq_id": self.p2p.get(group, 0),
            "op_id": len(self.entries),
            "profiling_name": "nccl:" + op,
            "time_created_ns": self.now,
            "input_sizes": [size],
            "input_dtypes": [dtype],
            "output_sizes": [out or size],
            "output_dtypes": [dtype],
            "state": state,
            "time_discovered_started_ns": started,
            "time_discovered_completed_ns": self.now + 2 * MS if state == "completed" else None,
            "retired": state == "completed",
            "timeout_ms": 600000,
            "is_p2p": p2p})

    def dump(self):
        status = {}
        for group in self.own:
            of = [e for e in self.entries if e["process_group"][0] == group and not e["is_p2p"]]
            last = lambda states: max([e["collective_seq_id"] for e in of if e["state"] in states], default=-1)
            status[str(self.own.index(group))] = {
                "last_enqueued_collective": last(("scheduled", "started", "completed")),
                "last_started_collective": last(("started", "completed")),
                "last_completed_collective": last(("completed",))}
        config = {g: {"name": g, "desc": self.groups[g][0], "ranks": str(self.groups[g][1])} for g in self.own}
        return {"version": "2.10", "pg_config": config, "comm_lib_version": "2.28.3", "pg_status": status,
                "entries": self.entries}


class Pickle:
    """A pickle as PyTorch's own writer makes it: protocol 2, text and shared containers in the memo."""

    def __init__(self):
        self.out, self.memo, self.text = b"\x80\x02", 0, {}

    def put(self):
        k, self.memo = self.memo, self.memo + 1
        self.out += b"q" + bytes([k]) if k < 256 else b"r" + struct.pack("<I", k)
        return k

    def add(self, x):
        if x is None:
            self.out += b"N"
        elif isinstance(x, bool):
            self.out += b"\x88" if x else b"\x89"
        elif isinstance(x, int):
            if 0 <= x < 256:
                self.out += b"K" + bytes([x])
            elif 0 <= x < 65536:
                self.out += b"M" + struct.pack("<H", x)
            elif -2**31 <= x < 2**31:
                self.out += b"J" + struct.pack("<i", x)
            else:
                self.out += b"\x8a\x08" + struct.pack("<q", x)
        elif isinstance(x, str):
            if x in self.text:
                k = self.text[x]
                self.out += b"h" + bytes([k]) if k < 256 else b"j" + struct.pack("<I", k)
            else:
                s = x.encode()
                self.out += b"X" + struct.pack("<I", len(s)) + s
                self.text[x] = self.put()
        elif isinstance(x, tuple):
            for v in x:
                self.add(v)
            self.out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(x)]
        elif isinstance(x, list):
            self.out += b"]("
            for v in x:
                self.add(v)
            self.out += b"e"
        else:
            self.out += b"}("
            for k, v in x.items():
                self.add(k)
                self.add(v)
            self.out += b"u"
        return self


def write(folder, ranks, pickled=False):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    for r in ranks:
        path = os.path.join(HERE, folder, f"nccl_trace_rank_{r.rank}")
        if pickled:
            with open(path, "wb") as f:
                f.write(Pickle().add(r.dump()).out + b".")
        else:
            with open(path, "w") as f:
                json.dump(r.dump(), f)
                f.write("\n")


def missing():
    """Rank 1 leaves the loop (evaluates) before the 7th all_reduce. As pickles."""
    groups = {"0": ("default_pg", [0, 1, 2, 3])}
    ranks = [Rank(r, groups) for r in range(4)]
    for step in range(7):
        for r in ranks:
            if step == 6 and r.rank == 1:
                continue
            r.call("0", "all_reduce", [1024, 4096], "completed" if step < 6 else "started", 41 + step % 2)
    write("missing", ranks, pickled=True)


def order():
    """Rank 1 has two gradients in the other order."""
    groups = {"0": ("default_pg", [0, 1])}
    ranks = [Rank(r, groups) for r in range(2)]
    for r in ranks:
        r.call("0", "broadcast", [1], "completed", 20)
        sizes = [[512, 512], [2048, 512]]
        for k in (0, 1) if r.rank == 0 else (1, 0):
            r.call("0", "all_reduce", sizes[k], "started" if r.rank == 0 else "scheduled", 55, func="reduce_gradients")
    write("order", ranks)


def cycle():
    """2 tensor x 2 data parallel: ranks 0 and 1 take the two groups that they share with others in turn."""
    groups = {"0": ("default_pg", [0, 1, 2, 3]), "1": ("tp", [0, 1]), "2": ("tp", [2, 3]), "3": ("dp", [0, 2]),
              "4": ("dp", [1, 3])}
    ranks = [Rank(r, groups) for r in range(4)]
    for r in ranks:
        r.call("0", "broadcast", [16], "completed", 12)
    ranks[0].call("1", "all_reduce", [8, 1024], "started", 61, "BFloat16", func="forward")
    ranks[1].call("4", "all_gather", [4096], "started", 83, "BFloat16", [8192], func="gather_weights")
    ranks[3].call("2", "all_reduce", [8, 1024], "started", 61, "BFloat16", func="forward")
    ranks[2].call("3", "all_gather", [4096], "started", 83, "BFloat16", [8192], func="gather_weights")
    write("cycle", ranks)


def pipeline():
    """Two stages that both send before they receive."""
    groups = {"0": ("default_pg", [0, 1])}
    ranks = [Rank(r, groups) for r in range(2)]
    ranks[0].call("0", "send 0->1", [4, 512], "completed", 30, "BFloat16", p2p=True, func="send_forward")
    ranks[1].call("0", "recv 1<-0", [4, 512], "completed", 36, "BFloat16", p2p=True, func="recv_forward")
    ranks[0].call("0", "send 0->1", [4, 512], "scheduled", 30, "BFloat16", p2p=True, func="send_forward")
    ranks[1].call("0", "send 1->0", [4, 512], "scheduled", 48, "BFloat16", p2p=True, func="send_backward")
    write("pipeline", ranks)


def ras():
    """Rank 3 is dead, rank 1 is behind. NCCL leaves out the comma before the status of missing ranks."""
    def rank(r):
        x = {"rank": r, "host": f"10.0.0.{1 + r // 2}", "pid": 4000 + r, "cuda_dev": r % 2, "nvml_dev": r % 2}
        if r == 3:
            return x | {"status": {"unresponsive": True, "considered_dead": True}}
        counts = {"Broadcast": 1, "Reduce": 0, "AllGather": 120, "ReduceScatter": 120, "AllReduce": 881 - (r == 1)}
        return x | {"status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                               "abort_flag": False}, "collective_counts": counts}
    comm = {"hash": "0x9c2f11d0a7e35b46", "secondary_hash": "0x51ab:0x77", "size": 4, "ranks_count": 3,
            "missing_ranks_count": 1, "ranks": [rank(r) for r in range(3)], "missing_ranks": [rank(3)]}
    whole = {"nccl_version": "2.28.3", "cuda_runtime_version": 12080, "cuda_driver_version": 12080,
             "timestamp": "2026-01-05 11:02:40", "communicators_count": 1, "communicators": [comm],
             "ras": {"collection_time_sec": 0.002, "timeouts_count": 0}}
    text = json.dumps(whole, indent=2)
    at = text.index('"missing_ranks":')
    text = text[:at] + text[at:].replace('"nvml_dev": 1,', '"nvml_dev": 1')
    with open(os.path.join(HERE, "ras.json"), "w") as f:
        f.write(text + "\n")


missing(), order(), cycle(), pipeline(), ras()
