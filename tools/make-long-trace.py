#!/usr/bin/env python3
"""Writes a Kineto recording of many steps, as large as is asked for, by repeating one step of a recorded one.

To try what a file takes that is larger than the memory:

    tools/make-long-trace.py recorded.json.gz 20GB long.json
    prlimit --as=536870912 heddle trace summary long.json --steps 3

What the host did in a step and what it launched is repeated at the distance that the longer of both takes; ids (correlations, arrows,
numbers of events) are new in every step. Events stand as profilers write them: those of the host of all steps, then
those of devices; --order step puts each step together. A name that ends in .gz is packed; the size is the unpacked one.
"""
import argparse
import gzip
import json
import math
import re
import subprocess

IDS = {"correlation", "External id", "external id", "Ev Idx", "Python id", "Python parent id", "Record function id", "id"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "Kernel", "Memcpy", "Memset"}
MARK = re.compile(r'"@([TI])(-?\d+)(\.\d+)?@"')


def size_of(text):
    number, unit = re.fullmatch(r"([\d.]+)\s*([kMGT]?)B?", text).groups()
    return int(float(number) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}[unit])


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return json.load(f)


def chosen_step(events, number):
    steps = {}
    for e in events:
        name = str(e.get("name"))
        if name.startswith("ProfilerStep#") and e.get("cat") not in DEVICE:
            steps[int(name[13:])] = (e["ts"], e["ts"] + e["dur"])
    number = sorted(steps)[len(steps) // 2] if number is None else number
    return (number, *steps[number])


def step_events(events, start, end):
    """What the host did in the step, and what that launched; arrows between them are left out unless both ends are there."""
    host = [e for e in events if e.get("ph") != "M" and e.get("cat") not in DEVICE and start <= e.get("ts", -1) < end]
    calls = {e["args"]["correlation"] for e in host if "correlation" in e.get("args", {})}
    device = [e for e in events if e.get("cat") in DEVICE and e.get("args", {}).get("correlation") in calls]
    arrows = {}
    for e in host:
        if e.get("ph") in "sf":
            arrows[e["cat"], e["id"]] = arrows.get((e["cat"], e["id"]), 0) + 1
    return [e for e in host if e.get("ph") not in "sf" or arrows[e["cat"], e["id"]] == 2], device


class Template:
    """Text of the events of a step, with places for what differs between steps."""

    def __init__(self, events, number):
        self.values, self.kinds = [], []
        texts = [json.dumps(self.marked(e, number)).replace("%", "%%") for e in events]
        self.text = ",\n".join(MARK.sub(self.place, t) for t in texts)
        self.text = self.text.replace("ProfilerStep#%d" % number, "ProfilerStep#{step}")

    def marked(self, e, number):
        e = dict(e, ts="@T%s@" % e["ts"])
        if "id" in e:
            e["id"] = "@I%d@" % e["id"]
        e["args"] = {k: "@I%d@" % v if k in IDS and isinstance(v, int) else v for k, v in e.get("args", {}).items()}
        return e

    def place(self, m):
        self.values.append(int(m[2]))
        self.kinds.append(m[1] == "T")
        return "%d" + (m[3] or "")

    def fill(self, ts, ids, step):
        values = tuple(v + (ts if k else ids) for v, k in zip(self.values, self.kinds))
        return (self.text % values).replace("{step}", str(step))


class Output:
    """A file, packed beside this process where its name says so."""

    def __init__(self, path):
        self.file, self.gzip = open(path, "wb"), None
        if path.endswith(".gz"):
            self.gzip = subprocess.Popen(["gzip", "-1"], stdin=subprocess.PIPE, stdout=self.file)
        self.to = self.gzip.stdin if self.gzip else self.file

    def put(self, text):
        self.to.write(text.encode())

    def close(self):
        self.to.close()
        if self.gzip and self.gzip.wait():
            raise SystemExit("gzip failed")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recording")
    p.add_argument("size")
    p.add_argument("output")
    p.add_argument("--step", type=int, help="the step that is repeated (default: the middle one)")
    p.add_argument("--order", choices=("kind", "step"), default="kind")
    o = p.parse_args()
    data = read(o.recording)
    events = data.pop("traceEvents")
    number, start, end = chosen_step(events, o.step)
    host, device = step_events(events, start, end)
    period = max(end - start, *(max(e["ts"] + e["dur"] for e in v) - min(e["ts"] for e in v) for v in (host, device)
                                if v and all("dur" in e for e in v)))
    period = math.ceil(period)
    ids = 1 + max(v for e in host + device for k, v in [*e.get("args", {}).items(), ("id", e.get("id"))]
                  if k in IDS and isinstance(v, int))
    parts = [Template(v, number) for v in ((host, device) if o.order == "kind" else (host + device,))]
    steps = max(3, size_of(o.size) // sum(len(x.fill(0, 0, number)) for x in parts))
    out = Output(o.output)
    out.put(json.dumps(data)[:-1] + ', "traceEvents": [\n')
    out.put("".join(json.dumps(e) + ",\n" for e in events if e.get("ph") == "M"))
    for x in parts:
        for k in range(steps):
            last = x is parts[-1] and k == steps - 1
            out.put(x.fill(k * period, k * ids, k + 1) + ("\n" if last else ",\n"))
    out.put("]}\n")
    out.close()
    print("%d steps of %d us, %d events each" % (steps, period, len(host) + len(device)))


main()
