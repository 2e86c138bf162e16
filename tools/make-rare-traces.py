#!/usr/bin/env python3
"""Writes tests/rare: small traces in formats of which no recorded file is at hand, as their writers format them; and
what the fuzzer of all readers starts from, fuzz/corpus/trace.

The figures are made up and the same every time. Run it from anywhere; it takes no arguments.
  tensorflow/  trace.json.gz of the profiler (tensorflow/core/profiler/convert/trace_events_to_json.cc), a GPU with
               streams, and RunMetadata's timeline (tensorflow/python/client/timeline.py)
  mxnet/       profile.json (src/profiler/profiler.cc)
  byteps/      0/comm.json and 1/comm.json of a worker, server_profile.json (byteps/common/global.cc, server.cc)
  gtrace/      bps_trace_final.json of four workers, a worker's own file, BytePS messages (dPRO's collect.py)
  inspector/   a file of each of two processes with times, and one without (plugins/profiler/inspector)
"""
import gzip
import json
import os
import sqlite3
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "rare")


def put(name, text):
    path = os.path.join(ROOT, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    with open(path, "wb") as f:
        f.write(data)


# ---- TensorFlow -----------------------------------------------------------------------------------------
def tensorflow():
    meta, events = [], []

    def track(pid, process, tid, thread):
        if not any(m["pid"] == pid and m["name"] == "process_name" for m in meta):
            meta.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}})
        meta.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}})

    def event(pid, tid, name, ts, dur, **args):
        events.append({"pid": pid, "tid": tid, "ts": ts, "name": name, "ph": "X", "dur": dur})
        if args:
            events[-1]["args"] = {k: str(v) for k, v in args.items()}

    for d in (0, 1):
        track(d, "/device:GPU:%d" % d, 13, "Stream #13(Compute)")
        track(d, "/device:GPU:%d" % d, 20, "Stream #20(MemcpyH2D)")
        track(d, "/device:GPU:%d" % d, 1, "Steps")
        track(d, "/device:GPU:%d" % d, 2, "TensorFlow Ops")
    track(49, "/host:CPU", 7, "python3")
    for step in range(3):
        at = 1000 * step
        event(49, 7, "train", at, 900.25, step_num=step, group_id=step)
        event(49, 7, "MatMul", at + 10.5, 40)
        for d in (0, 1):
            event(d, 1, str(step), at + 20, 870)
            event(d, 20, "MemcpyH2D", at + 20, 30.125)
            event(d, 13, "volta_sgemm_128x64_nn", at + 60, 300)
            event(d, 13, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", at + 400, 200 + 50 * d)
            event(d, 2, "dense/MatMul:MatMul", at + 60, 300)
    put("tensorflow/worker.trace.json.gz",
        '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[' +
        "".join(json.dumps(e) + "," for e in meta + events) + "{}]}")

    names = ["/job:worker/replica:0/task:0/device:GPU:0 Compute", "/job:worker/replica:0/task:0/device:GPU:0 Tensors",
             "/device:GPU:0/stream:all Compute", "/device:GPU:0/stream:22 Compute"]
    old = [{"name": "process_name", "ph": "M", "pid": i, "args": {"name": n}} for i, n in enumerate(names)]
    for k, (node, op) in enumerate((("dense/MatMul", "MatMul"), ("dense/Relu", "Relu"))):
        for pid, ts, dur in ((0, 500, 12), (2, 520, 90), (3, 520, 90)):
            old.append({"name": op, "cat": "Op", "ph": "X", "pid": pid, "tid": 0, "ts": 1600000000000000 + ts + 100 * k,
                        "dur": dur, "args": {"name": node, "op": op}})
        old.append({"name": node, "cat": "Tensor", "ph": "N", "id": k, "pid": 1, "tid": 0, "ts": 1600000000000500})
        old.append({"name": node, "cat": "DataFlow", "ph": "s", "id": k, "pid": 0, "tid": 0, "ts": 1600000000000512})
    put("tensorflow/timeline.json", json.dumps({"traceEvents": old}, indent=1))


# ---- MXNet ----------------------------------------------------------------------------------------------
def mxnet():
    out = ['{\n    "traceEvents": [\n']
    devices = ["cpu/0", "cpu/1", "gpu/0", "gpu/1", "cpu pinned/", "cpu shared/"]
    for pid, name in enumerate(devices):
        out.append("%s        {\n            \"ph\": \"M\",\n            \"args\": {\n                \"name\": \"%s\"\n"
                   "            },\n            \"pid\": %d,\n            \"name\": \"process_name\"\n        }"
                   % (",\n" if pid else "", name, pid))

    def sub(name, cat, ph, ts, pid, tid, extra=""):
        out.append(",\n    {\n        \"name\": \"%s\",\n        \"cat\": \"%s\",\n        \"ph\": \"%s\",\n"
                   "        \"ts\": %d,\n%s        \"pid\": %d,\n        \"tid\": %d\n    }\n" % (name, cat, ph, ts, extra, pid, tid))

    base, tid = 1523399668368495, 3005078972234936124
    for k in range(4):
        for gpu in (0, 1):
            at = base + 1000 * k
            for name, start, dur in (("CopyCPU2GPU", 0, 50), ("Convolution", 60, 400), ("[Activation,Pooling]", 470, 120)):
                sub(name, "operator", "B", at + start, 2 + gpu, tid + gpu)
                sub(name, "operator", "E", at + start + dur, 2 + gpu, tid + gpu)
                sub(name, "operator", "b", at + start, 2 + gpu, tid + gpu, '        "id": %d,\n' % (tid + gpu))
                sub(name, "operator", "e", at + start + dur, 2 + gpu, tid + gpu, '        "id": %d,\n' % (tid + gpu))
        sub("SetupExec", "operator", "B", base + 1000 * k, 0, 99)
        sub("SetupExec", "operator", "E", base + 1000 * k + 5, 0, 99)
    big = 17295223434234321511  # of a category: a hash
    out.append(",        {\n            \"ph\": \"M\",\n            \"args\": {\n                \"name\": \"MXNET_C_API\"\n"
               "            },\n            \"pid\": %d,\n            \"name\": \"process_name\"\n        }" % big)
    sub("MXNDArrayWaitAll", "MXNET_C_API", "B", base + 3000, big, 99)
    sub("MXNDArrayWaitAll", "MXNET_C_API", "E", base + 3900, big, 99)
    sub("Memory: gpu/0", "Device Storage", "C", base + 10, big, 99, '        "args": { "Memory: gpu/0": 4096 },\n')
    sub("epoch", "mine", "i", base + 3950, big, 99, '        "s": "p",\n')
    out.append('\n\n    ],\n    "displayTimeUnit": "ms"\n}\n')
    put("mxnet/profile.json", "".join(out))


# ---- BytePS ---------------------------------------------------------------------------------------------
def byteps():
    queues = ["COORDINATE_REDUCE", "REDUCE", "COPYD2H", "PCIE_REDUCE", "COORDINATE_PUSH", "PUSH", "PULL", "COPYH2D",
              "COORDINATE_BROADCAST", "BROADCAST"]
    for rank in (0, 1):
        events = []

        def event(tensor, ts, dur, key=None, queue=None):
            name = "Comm.byteps.gradient_%d" % tensor
            events.append('        {\n            "ph": "X",\n            "args": {\n                "name": "%s"\n            },\n'
                          '            "pid": "%s",\n            "name": "%s",\n            "ts": %d,\n            "dur": %d,\n'
                          '            "tid": "%s",\n            "cat": "Comm"\n        }'
                          % (name, name, name + ("." + queue if queue else ""), ts, dur, "total" if key is None else key))

        for tensor in (1, 0):
            start = 1574685984662375 + 5000 * (1 - tensor)
            event(tensor, start, 3000)
            for part in range(tensor + 1):
                at = start + 40 * part
                for q in queues if rank == 1 else ["REDUCE", "BROADCAST"]:  # the root of the GPUs is the last one
                    dur = {"PUSH": 400, "PULL": 600, "REDUCE": 150, "BROADCAST": 120}.get(q, 30)
                    event(tensor, at, dur, (tensor << 16) + part, q)
                    at += dur
        put("byteps/%d/comm.json" % rank,
            '{\n    "traceEvents": [\n' + ",\n".join(events) + '\n\n    ],\n    "displayTimeUnit": "ms"\n}\n')
    lines = []
    for k, (name, start, dur) in enumerate((("push-9", 0, 36), ("pull-9", 136, 10), ("push-11", 156, 33))):
        for ph, ts in (("B", start), ("E", start + dur)):
            lines.append('{"name": "%s", "ph": "%s", "pid": %d, "tid": %d, "ts": %d},\n'
                         % (name, ph, 27000832, 27000832, 1569331999234742 + ts))
    put("byteps/server_profile.json", "[\n" + "".join(lines)[:-2] + "\n]\n")


# ---- dPRO -----------------------------------------------------------------------------------------------
def gtrace():
    workers = ["host%d.rank%d" % (h, r) for h in (0, 1) for r in (0, 1)]
    traces = []

    def event(pid, tid, cat, name, ts, dur, step, cnt, suffix=None, **args):
        long_name = name + ("~>" + suffix if suffix else "")
        traces.append({"name": name, "ts": ts, "dur": dur, "ph": "X", "pid": pid, "tid": tid, "cat": cat,
                       "args": dict(args, name=long_name, cnt=cnt, step=step)})

    for w, pid in enumerate(workers):
        for step in range(3):
            at = 1612345678000000 + 20000 * step + 7 * w
            event(pid, "I/O", "I/O", "I/O_0", at, 100, step, step)
            event(pid, "operator0", "operator", "FW.conv0", at + 150, 900, step, step)
            event(pid, "operator0", "operator", "OUTPUT0", at + 1100, 50, step, step)
            event(pid, "operator0", "operator", "BW.conv0", at + 1200, 1700, step, step)
            event(pid, "Comm", "Comm", "Comm.3+4.Sync", at + 2950, 100, step, step)
            event(pid, "Comm", "Comm", "Comm.3+4.MEMCPY_IN_FUSION_BUFFER", at + 3050, 40, step, step)
            event(pid, "Comm", "Comm", "Comm.3+4.NCCL_ALLREDUCE", at + 3100, 800, step, step)
            for chunk in range(3):
                for k, op in enumerate(("SEND", "RECV")):
                    ids = {"loopId": "0", "channelId": "1", "chunkId": str(chunk), "sliceId": "0"}
                    event(pid, "comm_detail_r%d_lr%d" % (w, w % 2), "Comm", "Comm.3+4." + op,
                          at + 3110 + 200 * chunk + 90 * k, 80, step, step, "0_1_%d_0" % chunk, **ids)
            event(pid, "operator0", "operator", "UPDATE_CAL", at + 4000, 30, step, step)
            event(pid, "operator0", "operator", "UPDATE_0", at + 4040, 210, step, step)
    put("gtrace/bps_trace_final.json", json.dumps(sorted(traces, key=lambda e: (e["pid"], e["tid"]))))
    put("gtrace/worker1.json.gz", json.dumps({"traceEvents": [e for e in traces if e["pid"] == workers[1]]}))
    messages = [{"name": "process_name", "ph": "M", "pid": k, "tid": 0, "args": {"name": n}}
                for k, n in enumerate(("worker_0 -> server_1", "server_1 -> worker_0"))]
    for step in range(2):
        for part in range(2):
            for pid, op, at in ((0, "PUSH", 0), (1, "PUSH", 300), (0, "PULL", 400), (1, "PULL", 450)):
                for ph, ts in (("B", at), ("E", at + 250 if op == "PUSH" else at + 40)):
                    messages.append({"name": "byteps.gradient_0~PART%d.%s" % (part, op), "ph": ph,
                                     "ts": 1612345678000000 + 2000 * step + 900 * part + ts, "pid": pid, "tid": 0})
    put("gtrace/comm_timeline.json", json.dumps(messages, indent=4))

    # Two workers whose clocks are 5 ms apart: a ring of two, whose every step is received 30 us after it was sent, and
    # BytePS' messages of them with one server, as dPRO names them in the whole trace.
    del traces[:]
    pair = ["host0.rank0", "host1.rank0"]
    for step in range(4):
        for w, pid in enumerate(pair):
            at = 1612345678000000 + 20000 * step + 5000 * w
            event(pid, "operator0", "operator", "BW.conv0", at, 900, step, step)
            for chunk in range(2):
                ids = {"loopId": "0", "channelId": "0", "chunkId": str(chunk), "sliceId": "0"}
                event(pid, "comm_detail_r%d_lr0" % w, "Comm", "Comm.3.SEND", at + 1000 + 200 * chunk + 7 * step, 80, step,
                      step, "0_0_%d_0" % chunk, **ids)
                event(pid, "comm_detail_r%d_lr0" % w, "Comm", "Comm.3.RECV", at + 1000 + 200 * chunk + 7 * step, 110, step,
                      step, "0_0_%d_0" % chunk, **ids)
        for w in (0, 1):
            for op, way, start, dur in (("PUSH_REQ", 0, 0, 250), ("PUSH_RES", 1, 260, 20), ("PULL_REQ", 0, 300, 30),
                                        ("PULL_RES", 1, 700, 240)):
                ends = ("server_0", "worker_%d" % w)[::1 if way else -1]
                event("::".join(ends), "0", "Comm", "Comm.g." + op, 1612345678000000 + 20000 * step + 3000 + 150 * w + start,
                      dur, step, step, "%s::%s::0" % ends)
    put("gtrace/pair.json", json.dumps(traces))

    # Four workers in a ring 0 -> 2 -> 1 -> 3 -> 0 of NCCL's, with its graphs: in one file, and in one each as NCCL writes them.
    # Clocks of the second host are 3 ms ahead. What is sent arrives 40 us after it was sent, 25 us of the smaller tensor.
    del traces[:]
    after = {0: 2, 2: 1, 1: 3, 3: 0}
    own = {}
    for w in range(4):
        pid = "host%d.rank%d" % (w // 2, w % 2)
        before = [k for k in after if after[k] == w][0]
        put("gtrace/ring/host%d/%d/nccl_rank_graph.json" % (w // 2, w % 2), json.dumps(
            {"RealRing": {"0": "%d[%d000] -> %d[%d000] [receive] via NET/Socket/0,%d[%d000] -> %d[%d000] [send] via NET/Socket/0"
                               % (before, before % 2, w, w % 2, w, w % 2, after[w], after[w] % 2)},
             "displayTimeUnit": "ms"}))
        own[w] = []
        for step in range(3):
            at = 1612345678000000 + 5000 * step + 3000 * (w // 2)
            event(pid, "operator0", "operator", "FW.conv0", at, 300, step, step)
            event(pid, "operator0", "operator", "BW.conv1", at + 300, 350, step, step)
            event(pid, "operator0", "operator", "BW.conv0", at + 650, 350 + 50 * w, step, step)
            for tensor, begin, took in ((4, 650, 40), (3, 1160, 25)):
                for chunk in range(6):
                    for op, dur in (("SEND", 20), ("RECV", took)):
                        ts = at + begin + (took + 20 + step) * chunk
                        event(pid, "comm_detail_r%d_lr%d" % (w, w % 2), "Comm", "Comm.%d.%s" % (tensor, op), ts, dur, step, step,
                              "0_0_%d_0" % chunk)
                        own[w].append({"ph": "X", "args": {"name": "%d->Comm.%d.%s" % (step, tensor, op), "chunkId": chunk,
                                                           "sliceId": 0, "channelId": 0, "loopId": 0},
                                       "pid": "comm_detail_r%d_lr%d" % (w, w % 2), "name": "%d->Comm.%d.%s" % (step, tensor, op),
                                       "ts": ts, "dur": dur, "tid": "none", "cat": "Comm"})
            event(pid, "operator0", "operator", "UPDATE_0", at + 1600, 200, step, step)
        put("gtrace/ring/host%d/%d/comm_detail.json" % (w // 2, w % 2),
            json.dumps({"traceEvents": own[w], "displayTimeUnit": "ms"}))
    put("gtrace/ring/bps_trace_final.json", json.dumps(traces))
    put("gtrace/ring/host0/0/gradient_name_list.json", json.dumps({"gradient_name_list": [
        "bias;shape=(64,);dtype=float32", "gamma;shape=(64,);dtype=float32", "beta;shape=(64,);dtype=float32",
        "conv0_weight;shape=(512, 512, 1);dtype=float32", "conv1_weight;shape=(512, 1024);dtype=float32"]}))

    # Two workers on two hosts with one server, as dPRO joins them.
    del traces[:]
    for step in range(3):
        for w, pid in enumerate(pair):
            at = 1612345678000000 + 4000 * step
            event(pid, "operator0", "operator", "FW.fc", at, 400, step, step)
            event(pid, "operator0", "operator", "BW.fc1", at + 405, 300, step, step)
            event(pid, "operator0", "operator", "BW.fc0", at + 710, 300 + 100 * w, step, step)
            for tensor, begin, pulled in ((1, 715, 955), (0, 1015 + 100 * w, 1345)):
                for op, way, start, dur in (("PUSH_REQ", 0, 0, 200), ("PUSH_RES", 1, 205, 10), ("PULL_REQ", 0, 220, 10),
                                            ("PULL_RES", 1, pulled - begin, 200)):
                    ends = ("server_0", "worker_%d" % w)[::1 if way else -1]
                    event("::".join(ends), "0", "Comm", "Comm.g%d.%s" % (tensor, op), at + begin + start, dur, step, step,
                          "%s::%s::%d" % (ends + (tensor,)))
            event(pid, "operator0", "operator", "UPDATE_0", at + 1600, 100, step, step)
    put("gtrace/servers.json", json.dumps(traces))


# ---- NCCL Inspector -------------------------------------------------------------------------------------
def inspector():
    base = 1752867229235000
    for rank in (0, 1):
        lines = []

        def head(comm, size, stamp):
            return {"header": {"id": comm, "comm_name": "unknown", "rank": rank, "n_ranks": size, "nnodes": 1},
                    "metadata": {"inspector_output_format_version": "v4.2", "git_rev": "", "rec_mechanism":
                                 "nccl_profiler_interface", "dump_timestamp_us": stamp, "hostname": "node0",
                                 "pid": 4242 + rank}}

        def times(kind, start, us):
            return {"%s_start_ts" % kind: start - 100, "%s_stop_ts" % kind: start - 95,
                    "kernel_events": [{"channel_id": c, "kernel_start_ts": start + c, "kernel_stop_ts": start + us,
                                       "kernel_record_ts": start + us} for c in (0, 1)]}

        for k in range(6):
            start = base + 2000 * k + (300 if rank == 0 and k == 4 else 0)
            end = base + 2000 * k + 900
            fn, nbytes, algo = (("AllReduce", 1 << 26, 1), ("ReduceScatter", 1 << 25, 2))[k % 2]
            us = end - start
            lines.append(dict(head("0x7f8c496ae9f661", 2, base + 20000), coll_perf={
                "coll": fn, "coll_algo": "RING", "coll_proto": "SIMPLE", "coll_sn": k // 2, "coll_msg_size_bytes": nbytes,
                "coll_exec_time_us": us, "coll_timing_source": "kernel_gpu",
                "coll_algobw_gbs": round(nbytes * algo / us / 1e3, 6), "coll_busbw_gbs": 0.0,
                "event_trace_sn": {"coll_start_sn": 1, "coll_stop_sn": 2, "kernel_events": []},
                "event_trace_ts": times("coll", start, us)}))
        lines.append(dict(head("0x7f8c496ae9f661", 2, base + 20000), p2p_perf={
            "p2p": ("Send", "Recv")[rank], "p2p_sn": 0, "p2p_peer": 1 - rank, "p2p_msg_size_bytes": 65536,
            "p2p_exec_time_us": 40, "p2p_timing_source": "kernel_gpu", "p2p_algobw_gbs": 1.6384, "p2p_busbw_gbs": 1.6384,
            "event_trace_ts": times("p2p", base + 12500, 40)}))
        put("inspector/node0-pid%d.log" % (4242 + rank),
            "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    marker = {"header": {"id": "0xaa", "comm_name": "DP Group 0", "rank": 3, "n_ranks": 8, "nnodes": 2},
              "metadata": {"inspector_output_format_version": "v4.3", "dump_timestamp_us": base, "hostname": "node1",
                           "pid": 77},
              "dump_stats": {"coll_records": 2, "coll_dropped_total": 5, "coll_dropped_since_last_dump": 5,
                             "p2p_records": 0, "p2p_dropped_total": 0, "p2p_dropped_since_last_dump": 0}}
    sub = {"header": {"id": "0xbb", "comm_name": "TP Group 1", "rank": 1, "n_ranks": 2, "nnodes": 1},
           "metadata": marker["metadata"], "dump_stats": dict(marker["dump_stats"], coll_dropped_since_last_dump=0)}
    perf = [{"coll_perf": {"coll": "AllGather", "coll_sn": 40 + k, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us":
                           100 + k}} for k in range(2)]
    send = {"p2p_perf": {"p2p": "Send", "p2p_sn": 3, "p2p_peer": 0, "p2p_msg_size_bytes": 4096, "p2p_exec_time_us": 12}}
    proxy = {"proxy_trace": {"record_type": "proxy_op", "record_sn": 42, "parent_type": "coll", "parent_sn": 40}}
    put("inspector/untimed.jsonl.gz",
        "".join(json.dumps(x) + "\n" for x in [marker] + perf + [proxy, sub, send]))


# ---- what the fuzzer starts from ------------------------------------------------------------------------
def corpus():
    def seed(name, data):
        path = os.path.join(ROOT, "..", "..", "fuzz", "corpus", "trace", name)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())

    def fixture(name):
        with open(os.path.join(ROOT, name), "rb") as f:
            data = f.read()
        return gzip.decompress(data) if name.endswith(".gz") else data

    for name, path in (("tensorflow", "tensorflow/worker.trace.json.gz"), ("timeline", "tensorflow/timeline.json"),
                       ("byteps", "byteps/0/comm.json"), ("server", "byteps/server_profile.json"),
                       ("gtrace", "gtrace/worker1.json.gz"), ("messages", "gtrace/comm_timeline.json"),
                       ("inspector", "inspector/node0-pid4242.log"), ("markers", "inspector/untimed.jsonl.gz")):
        seed(name, fixture(path))
    seed("mxnet", fixture("mxnet/profile.json")[:6000])  # cut off
    with open(os.path.join(ROOT, "inspector/untimed.jsonl.gz"), "rb") as f:
        seed("packed.gz", f.read())
    seed("smdebug", """[
{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1594662605425850}},
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "NcclManager"}},
{"name": "Step:ModeKeys.TRAIN", "pid": 2, "ph": "X", "ts": 2664345, "dur": 9020, "args": {"step_num": "0"}},
{"ph": "X", "name": "kAllReduce", "ts": 2665000, "pid": 1, "dur": 130}
]
""")
    seed("horovod", """[
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "grad/w"}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1},
{"ph": "X", "name": "4", "ts": 103, "pid": 1, "dur": 0},
{"ph": "E", "ts": 110, "pid": 1},
{"ph": "B", "name": "ALLREDUCE", "ts": 111, "pid": 1},
{"ph": "B", "name": "NCCL_ALLREDUCE", "ts": 112.5, "pid": 1},
{"ph": "E", "ts": 130, "pid": 1},
{"ph": "i", "name": "CYCLE_START", "ts": 140, "s": "g"},
""")
    seed("nodes", json.dumps({"schema": "1.1.0-chakra.0.0.4", "pid": 3, "nodes": [
        {"id": 2, "name": "[root]", "ctrl_deps": 1, "attrs": [{"name": "tid", "type": "uint64", "value": 7}]},
        {"id": 5, "name": "nccl:all_reduce", "ctrl_deps": [2], "data_deps": [2, 9], "runtime": 12}]}))

    def field(number, value):  # of a message: a number, or what has a length
        def varint(v):
            out = b""
            while v > 127:
                out, v = out + bytes([v & 127 | 128]), v >> 7
            return out + bytes([v])
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    def attr(name, value):
        return field(10, field(1, name.encode()) + field(13, value))

    nodes = [field(1, b"0.0.4"),
             field(1, 10) + field(2, b"gemm") + field(3, 4) + field(6, 100) + field(7, 30) + attr("is_cpu_op", 0) +
             attr("stream", 7),
             field(1, 11) + field(2, b"nccl") + field(3, 7) + field(4, 10) + field(5, bytes([10, 99])) + field(6, 130) +
             field(7, 5) + attr("comm_type", 2) + attr("comm_size", 4096)]
    seed("chakra", b"".join(field(0, n)[1:] for n in nodes))

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nsight.sqlite")
        db = sqlite3.connect(path)
        db.execute("PRAGMA page_size = 512")
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)",
                       [(1, "cudaLaunchKernel"), (2, "sgemm"), (3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")])
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT)")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
                   "correlationId INT, globalPid INT, demangledName INT, shortName INT)")
        db.execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT)")
        for k in range(3):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 16777217, ?, 1)", (1000 * k, 1000 * k + 50, k))
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, 16777216, ?, ?)",
                       (1000 * k + 60, 1000 * k + 400, k, 2 + k % 2, 2 + k % 2))
        db.execute("INSERT INTO NVTX_EVENTS VALUES (0, 3000, 59, 'step', NULL, 16777217)")
        db.commit()
        db.close()
        with open(path, "rb") as f:
            seed("nsight", f.read())


for make in (tensorflow, mxnet, byteps, gtrace, inspector, corpus):
    make()
