#!/usr/bin/python3
"""What should other numbers of samples take, when a layer was measured at one only? Three rules, held against layers that
Sailor and Metis measured at several: the measured time plus the difference that the cost model sees, times the model's
proportion, and in proportion to samples. Prints the table of docs/design/reproduction.md.

Usage: HEDDLE_DATA=DIR tools/compare-profile-rules.py [DTYPE]   (build/heddle is asked; f32 by default)
"""

import csv
import functools
import json
import os
import re
import statistics
import subprocess
import sys

HEDDLE = os.environ.get("HEDDLE", "build/heddle")
DTYPE = sys.argv[1] if len(sys.argv) > 1 else "f32"
MODELS = {  # as built in: a layer of these is theirs
    "OPT-350": ("gpt2:hidden=1024,heads=16,vocab=512,positions=2048", 2048),
    "OPT-30": ("gpt2:hidden=7168,heads=56,vocab=512,positions=2048", 2048),
    "Metis": ("gpt2:hidden=4096,heads=32,vocab=512,positions=1024", 1024),
}
DEVICES = {
    "V100-16": "v100-16gb",
    "A100-40": "a100-40gb",
    "A100-80": "a100",
    "GH-96": "h100",
    "RTX-3090": "v100",  # not described by Heddle
    "RTX-2080": "v100",
    "Titan-RTX": "v100",
}
DESCRIBED = ("V100-16", "A100-40", "A100-80", "GH-96")


@functools.lru_cache(None)
def simulated(model, device, tensor, samples, layers):
    text, seq = MODELS[model]
    said = subprocess.run(
        [HEDDLE, "sim", f"{text},layers={layers}", "--batch", str(samples), "--seq", str(seq), "--dtype", DTYPE]
        + ["--machine", f"1x{tensor} {DEVICES[device]}", "--strategy", f"tp={tensor}", "--json"],
        capture_output=True, text=True, check=False)
    return json.loads(said.stdout)["time_ps"] / 1e12 if said.returncode == 0 else None


def modelled(model, device, tensor, samples):
    """Seconds of one layer, forward: two layers less one."""
    two, one = (simulated(model, device, tensor, samples, n) for n in (2, 1))
    return two - one if two is not None and one is not None else None


def measured(folder):
    """{(model, device, tensor degree): {samples: seconds}}"""
    layers = {}
    with open(os.path.join(folder, "hetero/sailor_layer_profiles.csv")) as f:
        for row in csv.DictReader(f):
            if row["first_layer"] == "2" and row["model"] in MODELS:
                key = row["model"], row["device"], int(row["tp"])
                layers.setdefault(key, {})[int(row["micro_batch"])] = float(row["fwd_s"])
    with open(os.path.join(folder, "hetero/metis_profiles_A100.json")) as f:
        for name, profile in json.load(f).items():
            tensor, samples = map(int, re.match(r"DeviceType.A100_tp(\d)_bs(\d)", name).groups())
            ms = profile["execution_time"]["layer_compute_total_ms"][1]
            layers.setdefault(("Metis", "A100-80", tensor), {})[samples] = ms / 1e3
    return layers


def predictions(layers):
    """(key, "up" or "down", errors of the three rules)"""
    for key, times in sorted(layers.items()):
        model = {samples: modelled(*key, samples) for samples in times}
        if None in model.values():
            continue
        for way, known in (("up", min(times)), ("down", max(times))):
            for samples in times:
                if samples == known:
                    continue
                added = times[known] + model[samples] - model[known]
                added = max(added, times[known] * min(samples / known, 1))
                rules = added, times[known] * model[samples] / model[known], times[known] * samples / known
                yield key, way, [abs(t / times[samples] - 1) for t in rules]


def main():
    rows = list(predictions(measured(os.environ["HEDDLE_DATA"])))
    kinds = {
        "all": lambda key: True,
        "devices that Heddle describes": lambda key: key[1] in DESCRIBED,
        "of these not split": lambda key: key[1] in DESCRIBED and key[2] == 1,
        "Metis": lambda key: key[0] == "Metis",
        "OPT-30B": lambda key: key[0] == "OPT-30",
    }
    print(f"{'mean error (median), %':38}  n  {'adding':>12}  {'proportion':>12}  {'samples':>12}")
    for way in ("up", "down"):
        for name, of in kinds.items():
            errors = [e for key, w, e in rows if w == way and of(key)]
            cells = [f"{100 * statistics.mean(e):.1f} ({100 * statistics.median(e):.1f})" for e in zip(*errors)]
            print(f"{way + ', ' + name:36} {len(errors):4}  " + "  ".join(f"{c:>12}" for c in cells))


if __name__ == "__main__":
    main()
