#!/usr/bin/env python3
"""Writes crates/special/tests/reference/NAME.txt: values of special functions, computed by mpmath.

    pip install mpmath scipy
    scripts/special_tables.py            # all functions
    scripts/special_tables.py erf gamma  # some

A line has the arguments, the correctly rounded result, and the exact result minus the rounded one in units in the last
place, to two decimals. `NAME-N` is result number N, or the form with N arguments. Numbers are the hexadecimal bits of float64. A fourth part, where present, is the scale: near
zeros of the function, the error counts in units in the last place of the scale. The first line states the largest error
of SciPy at the same points, in the same units, and the number of points at which SciPy is off by more than 1e6 of them.
"""

import math
import pathlib
import random
import struct
import sys
import warnings

import numpy as np
import scipy.special
from mpmath import mp, mpf

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from special_reference import REFERENCE, single  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/special/tests/reference"
LARGEST = mpf(2) ** 1024


def bits(x):
    return struct.pack(">d", x).hex()


def unit(x):
    """Returns the unit in the last place of a finite number."""
    return mpf(math.ulp(x))


def rounded(value):
    """Returns the nearest float64, and the rest in units in the last place."""
    if mp.isnan(value):
        return math.nan, mpf(0)
    if mp.isinf(value) or abs(value) >= LARGEST * (1 - mpf(2) ** -54):
        return math.copysign(math.inf, value), mpf(0)
    near = float(value)
    return near, (value - near) / unit(near)


def error(got, near, rest, scale):
    """Returns the error of `got` in units in the last place of the result or the scale."""
    if math.isnan(near) or math.isnan(got):
        return 0.0 if math.isnan(near) and math.isnan(got) else math.inf
    if math.isinf(near) or math.isinf(got):
        return 0.0 if got == near else math.inf
    exact = mpf(near) + rest * unit(near)
    return float(abs(mpf(got) - exact) / max(unit(near), unit(scale)))


def write(name):
    function, points, scale = REFERENCE[name]
    seed = random.Random(name)
    lines, worst, far = [], 0.0, 0
    chosen = [args if isinstance(args, tuple) else (args,) for args in points(seed)]
    # Points of several arguments that count for float32 too.
    chosen += [tuple(map(single, args)) for args in chosen[::2] if len(args) > 1]
    for args in chosen:
        args = tuple(float(a) for a in args)
        with mp.workdps(60):
            value = function(*[mpf(a) for a in args])
            value = mpf(value) if not isinstance(value, mpf) else value
            near, rest = rounded(value)
            size = float(scale(*args)) if scale else 0.0
        parts = [" ".join(bits(a) for a in args), bits(near), f"{float(rest):.2f}"] + ([bits(size)] if size > abs(near) else [])
        lines.append(" | ".join(parts))
        with np.errstate(all="ignore"):
            theirs = getattr(scipy.special, name.split("-")[0])(*args)
            theirs = theirs[int(name.split("-")[1])] if isinstance(theirs, tuple) else theirs
        with mp.workdps(60):
            off = error(float(theirs), near, rest, size)
        far += off > 1e6
        worst = max(worst, off if off <= 1e6 else 0.0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = f"# {len(lines)} points, SciPy {scipy.__version__}: {worst:.3g} {far}\n" + "\n".join(lines) + "\n"
    (FOLDER / f"{name}.txt").write_text(text)
    print(f"{name}: {len(lines)} points, SciPy errs by {worst:.3g}, at {far} points by more than 1e6", file=sys.stderr)


def main():
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or REFERENCE:
        write(name)


if __name__ == "__main__":
    main()
