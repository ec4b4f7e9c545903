#!/usr/bin/env python3
"""Writes the coefficients of crates/special: the values of the constants `NAME` in its kernels.

    pip install mpmath
    scripts/special_coefficients.py            # all constants
    scripts/special_coefficients.py ERF I0     # constants whose names begin so

Each constant is a polynomial, or one polynomial per interval. A polynomial interpolates its function at Chebyshev nodes
(Trefethen, "Approximation Theory and Approximation Practice", ch. 4), with the least number of terms that meets the
target. All intervals of a constant have the same number of terms. The functions are computed by mpmath with 50 digits.
"""

import pathlib
import re
import sys

from mpmath import mp, mpf

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import special_functions as functions  # noqa: E402

mp.dps = 50
ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates/special/src"
TARGET = mpf(2) ** -56


def chebyshev(f, a, b, n):
    """Returns the coefficients of the Chebyshev series of the interpolant of `f` at `n` nodes of [a, b]."""
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    values = [f((a + b) / 2 + (b - a) / 2 * x) for x in nodes]
    series = [2 * sum(v * mp.cos(mp.pi * j * (2 * k + 1) / (2 * n)) for k, v in enumerate(values)) / n for j in range(n)]
    series[0] /= 2
    return series


def monomials(series, a, b, centre):
    """Converts a Chebyshev series on [a, b] to powers of x - centre."""
    # x = middle + half * t, and t = (u + shift) / half with u = x - centre.
    half, shift = (b - a) / 2, centre - (a + b) / 2
    first, second = [mpf(1)], [shift / half, 1 / half]
    total = [mpf(0)] * len(series)

    def add(polynomial, factor):
        for power, c in enumerate(polynomial):
            total[power] += factor * c

    add(first, series[0])
    if len(series) > 1:
        add(second, series[1])
    for c in series[2:]:
        third = [mpf(0)] * (len(second) + 1)
        for power, value in enumerate(second):
            third[power] += 2 * shift / half * value
            third[power + 1] += 2 / half * value
        for power, value in enumerate(first):
            third[power] -= value
        add(third, c)
        first, second = second, third
    return total


def fit(piece, terms=None, target=TARGET):
    """Returns the coefficients of a piece (function, a, b, centre), with `terms` terms or as many as it needs."""
    f, a, b, centre = piece
    a, b, centre = mpf(a), mpf(b), mpf(centre)
    many = chebyshev(f, a, b, 48)
    scale = min(abs(f(a + (b - a) * k / 16)) for k in range(17))
    assert scale > 0, "the function has a zero"
    if terms is None:
        terms = next(n for n in range(1, 48) if sum(map(abs, many[n:])) < target * scale)
    # The series of 48 terms, cut off, is as good as the interpolant of `terms` nodes.
    return [float(c) for c in monomials(many[:terms], a, b, centre)]


def rust(name, pieces):
    """Returns the declaration of a constant."""
    single = not isinstance(pieces, list)
    rows = [fit(piece) for piece in ([pieces] if single else pieces)]
    terms = max(map(len, rows))
    if not single:
        rows = [row if len(row) == terms else fit(piece, terms) for row, piece in zip(rows, pieces)]
    text = [", ".join(repr(c) for c in row) for row in rows]
    print(f"{name}: {len(rows)} of {terms} terms", file=sys.stderr)
    if single:
        return f"const {name}: [f64; {terms}] = [{text[0]}];"
    return f"const {name}: [[f64; {terms}]; {len(rows)}] = [{', '.join(f'[{row}]' for row in text)}];"


def main():
    wanted = tuple(sys.argv[1:])
    for path in sorted(SOURCES.rglob("*.rs")):
        before = text = path.read_text()
        for name in re.findall(r"const ([A-Z0-9_]+): \[+f64;", before):
            if name in functions.SERIES and (not wanted or name.startswith(wanted)):
                rows = functions.SERIES[name]()
                values = ", ".join(f"[{', '.join(map(repr, row))}]" for row in rows)
                constant = f"const {name}: [[f64; {len(rows[0])}]; {len(rows)}] = [{values}];"
                text = re.sub(rf"const {name}: \[+f64; \d+\](?:; \d+\])? = [^;]*;", constant, text)
            if name in functions.TABLES and (not wanted or name.startswith(wanted)):
                constant = rust(name, functions.TABLES[name])
                text = re.sub(rf"const {name}: \[+f64; \d+\](?:; \d+\])? = [^;]*;", constant, text)
        if text != before:
            path.write_text(text)


if __name__ == "__main__":
    main()
