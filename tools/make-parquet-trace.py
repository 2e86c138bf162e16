#!/usr/bin/env python3
"""Writes tests/table: the first steps of examples/traces/pipeline as Parquet tables, each in another way.

Usage: tools/make-parquet-trace.py TIMELINE FOLDER. A writer of its own, without a library, so that the reader can be
tested on every way of writing that it knows: plain and dictionary encoding, pages of version 1 and 2, packed by snappy,
by gzip and not at all, columns with and without absent values, several groups of rows and pages.
"""
import gzip
import json
import os
import struct
import sys
import zlib

INT32, INT64, FLOAT, DOUBLE, BYTES = 1, 2, 4, 5, 6
NONE, SNAPPY, GZIP, ZSTD = 0, 1, 2, 6
PLAIN, RLE, DICT = 0, 3, 8
STEPS = 2

# name: (codec, version of pages, dictionary, optional, rows of a group, rows of a page)
TABLES = {
    "plain": (NONE, 1, False, False, 10**9, 10**9),
    "dictionary": (SNAPPY, 1, True, True, 250, 60),
    "v2": (GZIP, 2, True, True, 300, 100),
    "v2-plain": (SNAPPY, 2, False, False, 10**9, 77),
    "zstd": (ZSTD, 1, False, False, 10**9, 10**9),  # bytes that are said to be packed with Zstandard, and are not
}
COLUMNS = {"dp_rank": INT32, "stage": INT32, "rank": INT32, "step": INT64, "optype": BYTES, "start_ts": DOUBLE,
           "duration": DOUBLE, "seq_id": INT32, "mc": INT32, "mb_id": INT32}


# ---- Thrift's compact protocol ------------------------------------------------------------------------------------
def varint(x):
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def number(x):
    return varint(x * 2 if x >= 0 else -2 * x - 1)


class Struct:
    def __init__(self):
        self.bytes, self.last = b"", 0

    def field(self, key, kind, value=b""):
        self.bytes += bytes([(key - self.last) << 4 | kind]) + value
        self.last = key
        return self

    def i32(self, key, x):
        return self.field(key, 5, number(x))

    def i64(self, key, x):
        return self.field(key, 6, number(x))

    def text(self, key, x):
        return self.field(key, 8, varint(len(x)) + x.encode())

    def flag(self, key, x):
        return self.field(key, 1 if x else 2)

    def struct(self, key, x):
        return self.field(key, 12, x.done())

    def list(self, key, kind, items):
        head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
        return self.field(key, 9, head + b"".join(items))

    def done(self):
        return self.bytes + b"\0"


# ---- packing ------------------------------------------------------------------------------------------------------
def snappy(data):
    """Copies of at most 64 bytes where four bytes have been there before, the rest as it is."""
    out, seen, start, at = varint(len(data)), {}, 0, 0

    def literal(piece):
        n = len(piece) - 1
        if not piece:
            return b""
        return (bytes([n << 2]) if n < 60 else bytes([60 << 2, n]) if n < 256 else bytes([61 << 2, n & 255, n >> 8])) + piece

    while at + 4 <= len(data):
        key = data[at:at + 4]
        back = at - seen.get(key, at)
        seen[key] = at
        if not 0 < back < 65536:
            at += 1
            continue
        n = 4
        while n < 64 and at + n < len(data) and data[at + n] == data[at + n - back]:
            n += 1
        out += literal(data[start:at])
        if n < 12 and back < 2048:
            out += bytes([1 | (n - 4) << 2 | back >> 8 << 5, back & 255])
        else:
            out += bytes([2 | (n - 1) << 2, back & 255, back >> 8])
        at += n
        start = at
    return out + literal(data[start:])


def pack(codec, data):
    if codec == GZIP:
        z = zlib.compressobj(9, zlib.DEFLATED, 31)
        return z.compress(data) + z.flush()
    return snappy(data) if codec == SNAPPY else data


# ---- values -------------------------------------------------------------------------------------------------------
def runs(values, bits):
    """Runs of eight or more of one number, and rows of eight packed ones."""
    out, at, waiting = b"", 0, []

    def flush():
        nonlocal out
        if waiting:
            full = waiting + [0] * (-len(waiting) % 8)
            whole = sum(x << (k * bits) for k, x in enumerate(full))
            out += varint(len(full) // 8 << 1 | 1) + whole.to_bytes(len(full) * bits // 8, "little")
            waiting.clear()

    while at < len(values):
        end = at
        while end < len(values) and values[end] == values[at]:
            end += 1
        if end - at >= 8 and len(waiting) % 8 == 0:
            flush()
            out += varint(end - at << 1) + values[at].to_bytes((bits + 7) // 8, "little")
            at = end
        else:
            waiting.append(values[at])
            at += 1
    flush()
    return out


def plain(kind, values):
    if kind == BYTES:
        return b"".join(struct.pack("<I", len(x)) + x.encode() for x in values)
    return struct.pack("<%d%s" % (len(values), {INT32: "i", INT64: "q", FLOAT: "f", DOUBLE: "d"}[kind]), *values)


def page(codec, version, optional, encoding, levels, body):
    """A data page of rows: levels say which have a value, body has the values."""
    rows, raw = len(levels), runs(levels, 1) if optional else b""
    if version == 1:
        whole = (struct.pack("<I", len(raw)) + raw if optional else b"") + body
        packed = pack(codec, whole)
        head = Struct().i32(1, rows).i32(2, encoding).i32(3, RLE).i32(4, RLE)
        return Struct().i32(1, 0).i32(2, len(whole)).i32(3, len(packed)).struct(5, head).done() + packed
    packed = pack(codec, body)
    head = (Struct().i32(1, rows).i32(2, rows - sum(levels)).i32(3, rows).i32(4, encoding).i32(5, len(raw)).i32(6, 0)
            .flag(7, True))
    return (Struct().i32(1, 3).i32(2, len(raw) + len(body)).i32(3, len(raw) + len(packed)).struct(8, head).done()
            + raw + packed)


def chunk(name, kind, rows, start, codec, version, use_dict, optional, per_page):
    """Bytes of one column of a group, which begin at `start` of the file, and the ColumnChunk that tells of them."""
    values = [None if optional and name in ("mc", "mb_id") and x < 0 else x for x in rows]
    known = sorted({x for x in values if x is not None}) if use_dict else []
    out, bits = b"", max(len(known) - 1, 0).bit_length()
    if use_dict:
        body = plain(kind, known)
        packed = pack(codec, body)
        out += Struct().i32(1, 2).i32(2, len(body)).i32(3, len(packed)).struct(
            7, Struct().i32(1, len(known)).i32(2, PLAIN)).done() + packed
    first_data = start + len(out)
    place = {x: k for k, x in enumerate(known)}
    for at in range(0, len(values), per_page):
        some = values[at:at + per_page]
        there = [x for x in some if x is not None]
        body = bytes([bits]) + runs([place[x] for x in there], bits) if use_dict else plain(kind, there)
        out += page(codec, version, optional, DICT if use_dict else PLAIN, [int(x is not None) for x in some], body)
    meta = (Struct().i32(1, kind).list(2, 5, [number(DICT if use_dict else PLAIN), number(RLE)])
            .list(3, 8, [varint(len(name)) + name.encode()]).i32(4, codec).i64(5, len(values)).i64(6, len(out))
            .i64(7, len(out)).i64(9, first_data))
    if use_dict:
        meta.i64(11, start)
    return out, Struct().i64(2, start).struct(3, meta).done()


def table(rows, codec, version, use_dict, optional, per_group, per_page):
    out, groups = b"PAR1", []
    for at in range(0, len(rows), per_group):
        some, chunks, begin = rows[at:at + per_group], [], len(out)
        for k, (name, kind) in enumerate(COLUMNS.items()):
            data, meta = chunk(name, kind, [r[k] for r in some], len(out), codec, version, use_dict, optional, per_page)
            out += data
            chunks.append(meta)
        groups.append(Struct().list(1, 12, chunks).i64(2, len(out) - begin).i64(3, len(some)).done())
    schema = [Struct().text(4, "schema").i32(5, len(COLUMNS)).done()]
    schema += [Struct().i32(1, kind).i32(3, int(optional)).text(4, name).done() for name, kind in COLUMNS.items()]
    index = Struct().i32(1, 1).list(2, 12, schema).i64(3, len(rows)).list(4, 12, groups).done()
    return out + index + struct.pack("<I", len(index)) + b"PAR1"


def rows_of(path):
    events = json.load(gzip.open(path))
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    events = [e for e in events if e["ph"] == "X"]
    steps = sorted({e["args"]["step"] for e in events})[:STEPS]
    start = {s: min(e["ts"] for e in events if e["args"]["step"] == s) for s in steps}
    known = lambda x: -1 if x is None else x
    return [(e["pid"], int(threads[e["pid"], e["tid"]].split()[2].strip(",")), e["tid"] // 5, e["args"]["step"],
             e["name"], (e["ts"] - start[e["args"]["step"]]) / 1e6, e["dur"] / 1e6, e["args"]["seq_id"],
             known(e["args"]["model_chunk"]), known(e["args"]["mb_id"]))
            for e in events if e["args"]["step"] in start]


def main():
    rows = rows_of(sys.argv[1])
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, how in TABLES.items():
        with open(os.path.join(sys.argv[2], name + ".parquet"), "wb") as f:
            f.write(table(rows[:8] if name == "zstd" else rows, *how))


main()
