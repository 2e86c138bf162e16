#!/usr/bin/env python3
"""Reads a Perfetto trace as its documentation says and prints its slices and counters, one a line.

Usage: perfetto.py FILE [--bytes | --layers | --against FILE.json]. It decodes protobuf itself, keeps each sequence's clock and
strings, and nests slices by their ends. --bytes: bytes a slice, and the most of every counter. --layers: those of
every process. --against: the slices of the same timeline as JSON must all be there, at the same time, of the same name,
category and place, and of the same layer where one is said; counters must have the same values; and every flow must have
two ends or more. Independent of Heddle's own readers.
"""
import json
import sys
from decimal import Decimal


def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def fields(b):
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        elif tag & 7 == 1:
            v, i = int.from_bytes(b[i:i + 8], "little"), i + 8
        elif tag & 7 == 2:
            n, i = varint(b, i)
            if i + n > len(b):
                sys.exit("a field runs past the end of its message")
            v, i = b[i:i + n], i + n
        else:
            sys.exit("wire type %d" % (tag & 7))
        yield tag >> 3, v


def first(b, field, default=None):
    for f, v in fields(b):
        if f == field:
            return v
    return default


class Sequence:
    def __init__(self):
        self.now = {}
        self.text = {1: {}, 2: {}, 3: {}, 4: {}}
        self.track = None
        self.clock = 6


def against(path, slices, values, process, thread):
    """Slices of the JSON, each with its task, against those of this file, as multisets."""
    name, lane, want, layers, held = {}, {}, {}, {}, []
    ns = lambda us: int(Decimal(str(us)) * 1000)
    events = json.load(open(path), parse_float=Decimal)["traceEvents"]
    zero = min([0] + [Decimal(str(e["ts"])) for e in events if e["ph"] in "BX"])  # clocks have no times below 0
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name":
            name[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "M" and e["name"] == "thread_name":
            lane[e["pid"], e["tid"]] = e["args"]["name"]
        elif e["ph"] in "BX":
            start = Decimal(str(e["ts"])) - zero
            a = e.get("args", {})
            key = (name[e["pid"]], lane[e["pid"], e["tid"]], ns(start), e["name"])
            if e["ph"] == "X":
                key += (ns(start + Decimal(str(e["dur"]))), e["cat"], a.get("node", ""))
                layers.setdefault(key, set()).add(a.get("layer"))
            want[key] = want.get(key, 0) + 1
        elif e["ph"] == "C":
            held.append((name[e["pid"]], ns(Decimal(str(e["ts"])) - zero), e["args"]["bytes"]))
    seen, flows = {}, {}
    for track, at, text, category, node, parent, flow, notes, depth, end in slices:
        pid, stream = thread[track]
        key = (process[pid][0], stream, at, text) + ((end, category, node) if category else ())
        seen[key] = seen.get(key, 0) + 1
        if "layer" in notes and notes["layer"] not in layers.get(key, ()):
            sys.exit("layer %d of %s is not in the JSON" % (notes["layer"], key))
        for f in flow:
            flows[f] = flows.get(f, 0) + 1
    if sorted(held) != sorted((process[owner][0], at, value) for (owner, what), at, value in values):
        sys.exit("counters differ")
    missing = [k for k in want if seen.get(k, 0) != want[k]]
    more = [k for k in seen if k not in want and len(k) > 4]
    for k in missing[:5]:
        print("only in %s: %s" % (path, k))
    for k in more[:5]:
        print("not in %s: %s" % (path, k))
    alone = [f for f in flows if flows[f] < 2]
    if missing or more or alone:
        sys.exit("%d slices missing, %d more, %d flows with one end" % (len(missing), len(more), len(alone)))
    print("%d slices as in JSON, %d flows" % (sum(want.values()), len(flows)))


def main():
    data = open(sys.argv[1], "rb").read()
    sequences, process, thread, counters = {}, {}, {}, {}
    open_slices, slices, values = {}, [], []
    for field, packet in fields(data):
        if field != 1:
            sys.exit("field %d in a trace" % field)
        p = {}
        for f, v in fields(packet):
            p.setdefault(f, v)
        if 60 in p:
            d = dict(fields(p[60]))
            if 3 in d:
                process[first(d[3], 1)] = (first(d[3], 6).decode(), first(d[3], 3))
            elif 4 in d:
                thread[d[1]] = (first(d[4], 1), first(d[4], 5).decode())
            elif 8 in d:
                counters[d[1]] = (d[5], d[2].decode())
            continue
        s = sequences.setdefault(p[10], Sequence())
        if p.get(13, 0) & 1:
            s.__init__()
        for f, v in fields(p.get(12, b"")):
            number = first(v, 1)
            if number in s.text[f]:
                sys.exit("string %d is sent twice" % number)
            s.text[f][number] = v
        for f, clock in fields(p.get(6, b"")):
            c = dict(fields(clock))
            s.now[c[1]] = c[2]
        if 59 in p:
            s.clock = first(p[59], 58, s.clock)
            s.track = first(first(p[59], 11, b""), 11, s.track)
        if 11 not in p:
            continue
        s.now[s.clock] += p[8]
        at = s.now[s.clock]
        e, flows, notes = {}, [], {}
        for f, v in fields(p[11]):
            if f == 47:
                flows.append(v)
            elif f == 4:
                notes[first(s.text[3][first(v, 1)], 2).decode()] = first(v, 3)
            else:
                e[f] = v
        track = e.get(11, s.track)
        stack = open_slices.setdefault(track, [])
        if e[9] == 1:
            name = e[23] if 23 in e else first(s.text[2][e[10]], 2)
            category = first(s.text[1][e[3]], 2).decode() if 3 in e else ""
            node = first(s.text[4][e[34]], 2, b"").decode() if 34 in e else ""
            parent = stack[-1][2] if stack else ""
            one = [track, at, name.decode(), category, node, parent, flows, notes, len(stack), None]
            stack.append(one)
            slices.append(one)
        elif e[9] == 2:
            stack.pop()[-1] = at
        elif e[9] == 4:
            values.append((counters[track], at, e[30]))
    if any(open_slices.values()):
        sys.exit("slices that do not end")
    if "--against" in sys.argv:
        against(sys.argv[sys.argv.index("--against") + 1], slices, values, process, thread)
        return
    if "--layers" in sys.argv:
        for pid in sorted(process):
            of = sorted(set(s[7]["layer"] for s in slices if thread[s[0]][0] == pid and "layer" in s[7]))
            print("%s: layers %s" % (process[pid][0], " ".join(map(str, of))))
        return
    if "--bytes" in sys.argv:
        print("%d slices, %.1f bytes a slice" % (len(slices), len(data) / max(len(slices), 1)))
        for counter in sorted(set(v[0] for v in values)):
            print("%s: %s at most %d" % (process[counter[0]][0], counter[1], max(v[2] for v in values if v[0] == counter)))
        return
    for track, at, name, category, node, parent, flows, notes, depth, end in sorted(slices, key=lambda x: (thread[x[0]][0], x[0], x[1], x[8])):
        pid, stream = thread[track]
        print("%s|%s|%d|%d|%s|%s|%s|%s|%s" % (process[pid][0], stream, at, end, name, category, node, parent,
                                             ",".join("%s=%d" % x for x in sorted(notes.items()))
                                             + "".join(" flow %d" % f for f in flows)))
    for (owner, name), at, value in values:
        print("%s|%s|%d|%d" % (process[owner][0], name, at, value))


main()
