#!/usr/bin/env python3
"""Finds the polynomials of src/kernel/loops_body.h for the normal distribution and the error function.

Usage: tools/fit-erf.py. Needs mpmath (Debian: python3-mpmath). Prints them from the highest power down, as that file has them,
with their largest relative error.
"""
import mpmath as mp

mp.mp.dps = 60


def chebyshev(f, low, high, degree):
    """Monomials in s, -1 to 1, of f's interpolation at Chebyshev's points from low to high."""
    n = degree + 1
    middle, half = (low + high) / 2, (high - low) / 2
    points = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]
    values = [f(middle + half * s) for s in points]
    of = [[mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]]  # Chebyshev's polynomials
    while len(of) < n:
        longer = [mp.mpf(0)] + [2 * x for x in of[-1]]
        of.append([x - y for x, y in zip(longer, of[-2] + [mp.mpf(0)] * 2)])
    found = [mp.mpf(0)] * n
    for j in range(n):
        c = sum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / n) for k, v in enumerate(values)) * (2 if j else 1) / n
        for i, x in enumerate(of[j]):
            found[i] += c * x
    return found


def in_x(found, middle, half):
    """The same in x = middle + half s."""
    out, power = [mp.mpf(0)] * len(found), [mp.mpf(1)]
    for c in found:
        for i, x in enumerate(power):
            out[i] += c * x
        shifted = [mp.mpf(0)] + [x / half for x in power]
        power = [x - y * middle / half for x, y in zip(shifted, power + [mp.mpf(0)])]
    return out


def worst(p, f, low, high, to):
    at = [low + (high - low) * mp.mpf(k) / 400 for k in range(401)]
    return max(abs(mp.polyval(p[::-1], to(x)) / f(x) - 1) for x in at)


def tail(by, most, degree, digits):
    """P(-a) e^(a^2/2) / t for a from 0 to most, t = 1 / (1 + by a)."""
    by = mp.mpf(by)
    a = lambda t: (1 / t - 1) / by
    f = lambda t: mp.erfc(a(t) / mp.sqrt(2)) * mp.exp(a(t) ** 2 / 2) / 2 / t
    low, high = 1 / (1 + by * most), mp.mpf(1)
    middle, half = (low + high) / 2, (high - low) / 2
    p = chebyshev(f, low, high, degree)
    print(f"tail: s = t * {mp.nstr(1 / half, digits)} - {mp.nstr(middle / half, digits)}, off by",
          mp.nstr(worst(p, f, low, high, lambda t: (t - middle) / half), 2))
    print("  ", *[f"T({mp.nstr(x, digits)})" for x in reversed(p)])


def around_0(degree, digits):
    """erf(x) / x in x^2, for x from 0 to 1."""
    f = lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) if u else 2 / mp.sqrt(mp.pi)
    p = in_x(chebyshev(f, mp.mpf(0), mp.mpf(1), degree), mp.mpf(1) / 2, mp.mpf(1) / 2)
    print("middle: off by", mp.nstr(worst(p, f, mp.mpf(0), mp.mpf(1), lambda u: u), 2))
    print("  ", *[f"T({mp.nstr(x, digits)})" for x in reversed(p)])


print("f32")
tail("0.3", mp.mpf("14.5"), 9, 11)
around_0(6, 11)
print("f64")
tail("0.25", mp.mpf(39), 22, 21)
around_0(11, 21)
