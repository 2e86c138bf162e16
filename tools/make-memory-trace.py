#!/usr/bin/env python3
"""Writes tests/memory: what PyTorch's profiler records of a data-parallel job with profile_memory=True.

No such job ran. Two ranks of nine layers: a matmul, whose result is kept for the backward, with workspace; an element-wise
kernel, whose result is kept and read by the next layer; and one whose result the next layer gives back. Layers give back what they kept in the order
of the backward. Events "[memory]" are as torch/csrc/autograd/profiler_kineto.cpp and libkineto write them: instants of the
thread, with totals and addresses. Usage: make-memory-trace.py [FOLDER]
"""
import json
import os
import sys

LAYERS = 9
MIB = 1 << 20
MATMUL, WORKSPACE, RESULT, PASSING = 8 * MIB, 2 * MIB, 4 * MIB, MIB
GRADIENT_ELEMENTS = 262144  # of a layer: 1 MiB in f32
WEIGHTS = 100 * MIB  # taken before the recording begins
STEPS = range(4, 7)


class Rank:
    def __init__(self, rank):
        self.rank, self.pid, self.at, self.free = rank, 500 + rank, 1000.0, {7: 0.0, 20: 0.0}
        self.events, self.ids, self.total, self.next, self.taken, self.seq = [], 100, WEIGHTS, 0x7F0000000000, {}, 0

    def add(self, cat, name, tid, ts, dur, pid=None, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": self.pid if pid is None else pid, "tid": tid,
                            "ts": round(ts, 3), "dur": round(dur, 3), "args": args})

    def memory(self, tid, size, address):
        self.total += size
        self.at += 1
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": self.pid, "tid": tid,
                            "ts": round(self.at, 3),
                            "args": {"Ev Idx": len(self.events), "Device Type": 1, "Device Id": self.rank,
                                     "Addr": address, "Bytes": size, "Total Allocated": self.total,
                                     "Total Reserved": 400 * MIB}})

    def take(self, tid, what, size):
        self.next += size
        self.taken[what] = (self.next, size)
        self.memory(tid, size, self.next)

    def give(self, tid, what):
        address, size = self.taken.pop(what)
        self.memory(tid, -size, address)

    def launch(self, tid, name, dur, stream=7, ready=0.0, **args):
        self.ids += 1
        self.at += 2
        self.add("cuda_runtime", "cudaLaunchKernel", tid, self.at, 4, correlation=self.ids)
        start = max(self.at + 6, self.free[stream] + 1, ready)
        self.add("kernel", name, stream, start, dur, pid=self.rank, device=self.rank, context=1, stream=stream,
                 correlation=self.ids, **args)
        self.free[stream] = start + dur
        self.at += 5

    def step(self, number):
        main, back, begin = self.pid, self.pid + 1, self.at
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": self.pid, "tid": main,
                            "ts": round(self.at, 3), "args": {"Ev Idx": 0, "Device Type": 0, "Device Id": -1, "Addr": 4096,
                                                              "Bytes": 1 << 40, "Total Allocated": 1 << 40}})
        for layer in range(LAYERS):
            self.take(main, ("matmul", layer), MATMUL)
            self.take(main, "workspace", WORKSPACE)
            self.launch(main, "sgemm_128x128_tn", 60)
            self.give(main, "workspace")
            self.take(main, ("result", layer), RESULT)
            self.launch(main, "vectorized_elementwise_kernel<relu>", 20)
            self.take(main, ("passing", layer), PASSING)
            self.launch(main, "vectorized_elementwise_kernel<add>", 10)
            if layer:
                self.give(main, ("passing", layer - 1))
        for layer in reversed(range(LAYERS)):
            self.add("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", back, self.at, 30)
            self.launch(back, "vectorized_elementwise_kernel<relu_backward>", 20)
            self.give(back, ("result", layer))
            self.take(back, ("gradient", layer), 4 * GRADIENT_ELEMENTS)
            self.launch(back, "sgemm_128x128_nt", 120)
            self.give(back, ("matmul", layer))
            if layer % 3 == 0:
                self.seq += 1
                n = 3 * GRADIENT_ELEMENTS
                args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": n, "Out msg nelems": n,
                        "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": self.seq}
                self.add("cpu_op", "record_param_comms", back, self.at, 12, **args)
                self.launch(back, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 100, 20,
                            self.free[7], **args)
        self.launch(main, "multi_tensor_apply_kernel", 50, ready=self.free[20])
        for layer in range(LAYERS):
            self.give(main, ("gradient", layer))
        self.give(main, ("passing", LAYERS - 1))
        self.add("cuda_runtime", "cudaDeviceSynchronize", main, self.at, max(5, self.free[7] - self.at + 3), correlation=self.ids + 9000)
        self.at = max(self.at + 6, self.free[7] + 4)
        self.add("user_annotation", "ProfilerStep#%d" % number, main, begin, self.at - begin)
        self.at += 2


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/memory")
    os.makedirs(folder, exist_ok=True)
    for r in (Rank(0), Rank(1)):
        for number in STEPS:
            r.step(number)
        head = {"schemaVersion": 1, "deviceProperties": [{"id": k, "name": "NVIDIA A100-SXM4-80GB"} for k in range(2)],
                "distributedInfo": {"backend": "nccl", "rank": r.rank, "world_size": 2}, "profile_memory": 1,
                "baseTimeNanoseconds": 1735689600000000000}
        lines = ",\n".join(json.dumps(e) for e in r.events)
        with open(os.path.join(folder, "rank%d.json" % r.rank), "w") as f:
            f.write(json.dumps(head)[:-1] + ',\n"traceEvents": [\n' + lines + "\n]}\n")


main()
