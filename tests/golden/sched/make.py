#!/usr/bin/env python3
"""make.py - writes the schedules of this folder: ZB-V and DualPipeV, from their published definitions.

Both place the model in a V: place r has stages r and 2p-1-r. Usage: make.py, in this folder.
"""


class Place:
    """The tasks of one place: F, B, I and W of its two chunks, microbatches in order."""

    def __init__(self, p, r, micro):
        self.stage = (r, 2 * p - 1 - r)
        self.micro = micro
        self.count = {(kind, c): 0 for kind in "FB" for c in (0, 1)}
        self.pending = []  # input gradients whose weight gradients are due, (chunk, microbatch)
        self.cells = []

    def take(self, kind, chunk):
        n = self.count[kind, chunk]
        self.count[kind, chunk] += 1
        return n

    def put(self, kind, chunk, mb):
        if mb < self.micro:
            self.cells.append(f"{self.stage[chunk]}{kind}{mb}")

    def f(self, chunk):
        self.put("F", chunk, self.take("F", chunk))

    def b(self, chunk, split=False):
        mb = self.take("B", chunk)
        self.put("I" if split else "B", chunk, mb)
        if split:
            self.pending.append((chunk, mb))

    def w(self, chunk=None):
        """The oldest one that is due, of a chunk or of both."""
        k = next(i for i, x in enumerate(self.pending) if chunk in (None, x[0]))
        self.put("W", *self.pending.pop(k))

    def pair(self, f, b):
        mf, mb = self.take("F", f), self.take("B", b)
        self.cells.append(f"({self.stage[f]}F{mf};{self.stage[b]}B{mb})OVERLAP_F_B")


def zbv(p, r, micro):
    """As if there were 2p-1 microbatches at least; what is too many is left out."""
    x, n = Place(p, r, micro), max(2 * p - 1, micro)
    for _ in range(2 * (p - r) - 1):
        x.f(0)
    for _ in range(r):
        x.f(1), x.f(0)
    for _ in range(p - r):
        x.f(1), x.b(1, True), x.w(1)
    while x.count["F", 1] < x.count["F", 0] or x.count["F", 0] < n:
        if x.count["F", 0] < n:
            x.f(0)
        x.b(0, True), x.w(0)
        x.f(1), x.b(1, True), x.w(1)
    for _ in range(r):
        x.b(0, True), x.b(1, True)
    for _ in range(p - r):
        x.b(0, True), x.w(0)
    for chunk in (1, 0):
        while any(c == chunk for c, _ in x.pending):
            x.w(chunk)
    return x.cells


def dualpipev(p, r, micro):
    """micro >= 2p."""
    x = Place(p, r, micro)
    for _ in range(2 * (p - r - 1)):
        x.f(0)
    for _ in range(r + 1):
        x.f(0), x.f(1)
    for _ in range(p - r - 1):
        x.b(1, True), x.w(), x.f(1)
    for i in range(micro - 2 * p + r + 1):
        if i == 0 and r == p - 1:
            x.f(0), x.b(1)
        else:
            x.pair(0, 1)
        x.pair(1, 0)
    for _ in range(p - r - 1):
        x.b(1), x.pair(1, 0)
    split = False
    for i in range(r + 1):
        half = i == (r + 1) // 2
        split |= half and r % 2 == 1
        x.b(1, split)
        split |= half and r % 2 == 0
        x.b(0, split)
    for _ in range(p - r - 1):
        x.w(), x.b(0, True)
    while x.pending:
        x.w()
    return x.cells


for name, place in ("zbv", zbv), ("dualpipev", dualpipev):
    for p, micro in (4, 8), (4, 16), (8, 32):
        with open(f"{name}_p{p}_m{micro}.csv", "w") as out:
            for r in range(p):
                print(",".join(place(p, r, micro)), file=out)
