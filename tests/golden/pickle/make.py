#!/usr/bin/env python3
# make.py - writes the pickles beside it: plain data in every protocol, and what must be refused. None of them is a dump
# that PyTorch wrote.
import os
import pickle
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, data):
    with open(os.path.join(HERE, name + ".pkl"), "wb") as f:
        f.write(data)


class Runs:
    def __reduce__(self):
        return os.system, ("echo this must never be run",)


def data():
    shared = ["one list", "twice"]
    return {
        "text": "caf\u00e9 \u4e16 \U0001f600 'quoted' \"twice\" back\\slash\ttab\nline",
        "empty": ["", [], (), {}],
        "small": [0, 1, 255, 256, 65535, 65536, -1, -129],
        "large": [2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63, 2**64, -2**64, 10**40, -(10**40)],
        "real": [0.5, -1e300, 3.141592653589793],
        "words": [None, True, False],
        "tuples": ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "shared": [shared, shared],
        "keys": {1: "int", 2.5: "float", True: "1 again", None: "none"},
        "long": "x" * 300,
    }


for protocol in range(6):
    write(f"data{protocol}", pickle.dumps(data(), protocol))
write("bytes3", pickle.dumps({"b": b"\x00ab\xff", "long": b"y" * 300}, 3))
write("sets4", pickle.dumps([{7}, frozenset([8, 8])], 4))
write("bytearray5", pickle.dumps(bytearray(b"abc"), 5))
write("python2", b"(dp0\nS'it\\'s\\x41\\n'\np1\nL12345678901234567890L\nsS'b'\n(I01\nU\x03abcT\x02\x00\x00\x00deI-7\n"
      b"N0lp2\ns.")
write("framework", b"\x80\x02}(X\x04\x00\x00\x00rankq\x00K\x03X\x02\x00\x00\x00tsq\x01\x8a\x08" +
      struct.pack("<q", 1_760_000_000_000_000_000) + b"X\x01\x00\x00\x00lq\x02](h\x00h\x00eX\x01\x00\x00\x00eq\x03](eu.")

# what would run code
for protocol in (0, 2, 4):
    write(f"bad_reduce{protocol}", pickle.dumps(Runs(), protocol))
write("bad_inst", b"(S'echo no'\nios\nsystem\n.")
write("bad_inside", pickle.dumps({"entries": [{"state": "completed", "frames": Runs()}]}, 2))
# what is too large, too deep, or endless
write("bad_deep", b"]" * 1000 + b"a" * 999 + b".")
write("bad_text", b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"abc.")
write("bad_int", b"\x80\x02\x8b" + struct.pack("<I", 1_000_000_000) + b".")
write("bad_negative", b"\x80\x02\x8b" + struct.pack("<i", -1) + b".")
write("bad_frame", b"\x80\x04\x95" + struct.pack("<Q", 1_000_000_000) + b"N.")
write("bad_memo", b"\x80\x02Nr\xff\xff\xff\xff.")
laugh = ["ha"] * 10
for _ in range(9):
    laugh = [laugh] * 10
write("bad_shared", pickle.dumps(laugh, 4))
own = []
own.append(own)
write("bad_own", pickle.dumps(own, 2))
# what is broken
whole = pickle.dumps(data(), 4)
write("bad_cut", whole[: len(whole) // 2])
write("bad_end", b"\x80\x02N")
write("bad_nothing", b"\x80\x02.")
write("bad_mark", b"\x80\x02t.")
write("bad_key", b"\x80\x02}(]K\x01u.")
write("bad_pair", b"\x80\x02}(K\x01u.")
write("bad_get", b"\x80\x02h\x05.")
write("bad_gap", b"\x80\x02Nq\x03h\x01.")
write("bad_list", b"\x80\x02K\x01K\x02a.")
write("bad_opcode", b"\x80\x02\xff.")
write("bad_protocol", b"\x80\x06N.")
write("bad_line", b"I12")
