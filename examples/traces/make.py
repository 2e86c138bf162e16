#!/usr/bin/env python3
"""Writes examples/traces/ddp: what PyTorch's profiler records of two ranks that train data-parallel for four steps.

No such job ran: durations are chosen so that the figures of `heddle trace summary` can be followed by hand. Rank 1
loads its data slowly in the third step (number 12), so rank 0 waits for it in an all-reduce. Usage: make.py [FOLDER]
"""
import json
import os
import sys

BASE_NS = 1735689600_000000000  # 2025-01-01
STEPS = range(10, 14)
LAYERS = 3
BUCKETS = {2: 1, 0: 2}  # after the backward of this layer: layers in the bucket
ELEMENTS = 4_000_000  # of one layer
ALLREDUCE_US = 260  # of one layer


class Rank:
    def __init__(self, rank):
        self.rank, self.pid = rank, 4000 + rank
        self.events, self.free, self.correlation, self.external, self.seq = [], {7: 0.0, 20: 0.0}, 100, 0, 0
        self.reduced = 0.0  # when the latest all-reduce was over

    def add(self, cat, name, tid, ts, dur, pid=None, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": self.pid if pid is None else pid, "tid": tid,
                            "ts": round(ts, 3), "dur": round(dur, 3), "args": args})

    def launch(self, tid, at, call, cat, name, stream, dur, ready=0.0, **args):
        """Returns when the call is over and where its device event is; the event starts when its stream is free."""
        self.correlation += 1
        ids = {"External id": self.external, "correlation": self.correlation}
        self.add("cuda_runtime", call, tid, at, 5, **ids)
        start = max(at + 7.25, self.free[stream] + 1.5, ready)
        self.add(cat, name, stream, start, dur, pid=self.rank, device=self.rank, context=1, stream=stream, **ids, **args)
        self.free[stream] = start + dur
        return at + 6, len(self.events) - 1

    def wait(self, tid, at):
        """A stream is told to wait for what the others have been given."""
        self.correlation += 1
        self.add("cuda_runtime", "cudaStreamWaitEvent", tid, at, 1, correlation=self.correlation)

    def op(self, name, tid, start, end, **args):
        self.external += 1
        self.add("cpu_op", name, tid, start, end - start, **{"External id": self.external}, **args)


def comm_args(rank, layers, seq):
    return {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": layers * ELEMENTS,
            "Out msg nelems": layers * ELEMENTS, "Group size": 2, "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Rank": rank, "Seq": seq}


def step(ranks, number, start):
    now, begin = [start, start], start
    pending = []  # all-reduces start together
    for r in ranks:
        main, back = r.pid, r.pid + 1
        t = begin + (900 if (r.rank, number) == (1, 12) else 120)  # the data loader
        r.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", main, begin, t)
        t, _ = r.launch(main, t, "cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 40,
                        bytes=1 << 20)
        for layer in range(LAYERS):
            r.op("aten::linear", main, t, t + 12)
            t, _ = r.launch(main, t + 3, "cudaLaunchKernel", "kernel", "sgemm_128x128_tn", 7, 150)
            t += 6
        waits = []
        for layer in reversed(range(LAYERS)):
            r.op("autograd::engine::evaluate_function: AddmmBackward0", back, t, t + 20)
            t, _ = r.launch(back, t + 3, "cudaLaunchKernel", "kernel", "sgemm_128x128_nt", 7, 300)
            t += 11
            if layer in BUCKETS:
                r.seq += 1
                args = comm_args(r.rank, BUCKETS[layer], r.seq)
                r.op("record_param_comms", back, t, t + 14, **args)
                r.wait(back, t + 2)
                t, k = r.launch(back, t + 4, "cudaLaunchKernelExC", "kernel",
                                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, 0,
                                ready=r.free[7], **args)
                waits.append((k, ALLREDUCE_US * BUCKETS[layer]))
                t += 10
        pending.append(waits)
        now[r.rank] = t
    for c in range(len(BUCKETS)):
        ends = 0
        for r in ranks:  # each starts on its own, after the one before, and ends with the last
            e = r.events[pending[r.rank][c][0]]
            e["ts"] = max(e["ts"], r.reduced + 1.5)
            ends = max(ends, e["ts"] + pending[r.rank][c][1])
        for r in ranks:
            e = r.events[pending[r.rank][c][0]]
            r.reduced = ends + r.rank * 0.5
            e["ts"], e["dur"] = round(e["ts"], 3), round(r.reduced - e["ts"], 3)
    end = 0
    for r in ranks:
        main = r.pid
        r.op("Optimizer.step#SGD.step", main, now[r.rank], now[r.rank] + 20)
        r.wait(main, now[r.rank] + 2)
        t, _ = r.launch(main, now[r.rank] + 4, "cudaLaunchKernel", "kernel", "multi_tensor_apply_kernel", 7, 90,
                        ready=r.reduced + 2)
        r.add("cuda_runtime", "cudaDeviceSynchronize", main, t + 20, r.free[7] - t - 18, correlation=r.correlation + 5000)
        end = max(end, r.free[7] + 4)
    for r in ranks:
        r.add("user_annotation", "ProfilerStep#%d" % number, r.pid, begin, end - begin)
    return end + 3


def document(r):
    names = [{"ph": "M", "name": "thread_name", "pid": r.pid, "tid": r.pid, "ts": 0, "args": {"name": "python"}},
             {"ph": "M", "name": "thread_name", "pid": r.pid, "tid": r.pid + 1, "ts": 0, "args": {"name": "pt_autograd_0"}},
             {"ph": "M", "name": "thread_name", "pid": r.rank, "tid": 7, "ts": 0, "args": {"name": "stream 7"}},
             {"ph": "M", "name": "thread_name", "pid": r.rank, "tid": 20, "ts": 0, "args": {"name": "stream 20"}}]
    head = {"schemaVersion": 1,
            "deviceProperties": [{"id": k, "name": "NVIDIA A100-SXM4-80GB"} for k in range(2)],
            "distributedInfo": {"backend": "nccl", "rank": r.rank, "world_size": 2, "pg_count": 1,
                                "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                                               "pg_size": 2, "ranks": [0, 1]}], "nccl_version": "2.21.5"},
            "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS}
    lines = ",\n".join(json.dumps(e) for e in sorted(r.events, key=lambda e: e["ts"]) + names)
    return json.dumps(head)[:-1] + ',\n"traceEvents": [\n' + lines + "\n]}\n"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp")
    os.makedirs(folder, exist_ok=True)
    ranks, at = [Rank(0), Rank(1)], 1000.0
    for number in STEPS:
        at = step(ranks, number, at)
    for r in ranks:
        with open(os.path.join(folder, "rank%d.json" % r.rank), "w") as f:
            f.write(document(r))


main()
