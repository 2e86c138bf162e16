#!/usr/bin/env python3
"""A predictor for `heddle sim --predictor` (docs/profiles.md): one event a line in, microseconds out.

    heddle sim gpt2 --batch 8 --train --strategy dp=2 --machine dgx-2 --predictor "python3 examples/predictor.py"

This one knows products alone, at 50 TFLOP/s and 2 us each, and answers - for all else, which leaves it to the machine.
"""
import re
import sys

for line in sys.stdin:
    event = re.match(r"matmul \w+\[([\d,]*)\] \w+\[([\d,]*)\] -> ", line)
    if event:
        x, y = ([int(n) for n in dims.split(",")] for dims in event.groups())
        flop = 2 * y[-1]
        for n in x:
            flop *= n
        print(2 + flop / 50e12 * 1e6, flush=True)
    else:
        print("-", flush=True)
