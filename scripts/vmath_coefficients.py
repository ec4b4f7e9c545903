#!/usr/bin/env python3
"""Makes crates/cpu-math/src/coefficients.rs: polynomial coefficients and tables of the vector math.

    pip install mpmath
    scripts/vmath_coefficients.py > crates/cpu-math/src/coefficients.rs && cargo fmt

Each polynomial is a weighted least-squares fit at Chebyshev nodes (within a bit of the minimax polynomial; see Trefethen,
"Approximation Theory and Approximation Practice", ch. 16). Coefficients are rounded to the format one at a time, lowest
first, and those that are left are fitted again, so that rounding costs nothing (Brisebarre & Chevillard, 2007, do it better).
The degree is the least that meets the target.
"""

import struct

from mpmath import mp, mpf

mp.prec = 300

F64, F32 = "f64", "f32"


def rounded(x, format):
    """Rounds to the nearest value of a format, as a Python float."""
    x = float(x)
    return x if format == F64 else struct.unpack("f", struct.pack("f", x))[0]


def fit(f, a, b, weight, format, target):
    """Coefficients of the shortest p with |weight(x) (f(x) - p(x))| < target on [a, b]; f and weight in mp."""
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / 160) for i in range(80)]
    values = [(x, f(x), weight(x)) for x in nodes]
    for terms in range(2, 30):
        done, error = [], None
        while len(done) < terms:
            k, n = len(done), terms - len(done)
            rows = mp.matrix(len(values), n)
            rest = mp.matrix(len(values), 1)
            for i, (x, y, w) in enumerate(values):
                fixed = sum(mpf(c) * x**j for j, c in enumerate(done))
                rest[i] = w * (y - fixed)
                for j in range(n):
                    rows[i, j] = w * x ** (k + j)
            # Normal equations square the condition number; 300 bits are enough for that.
            solution = mp.lu_solve(rows.T * rows, rows.T * rest)
            if k == 0:
                error = max(abs(e) for e in rows * solution - rest)
                if error > target:
                    break
            done.append(rounded(solution[0], format))
        if len(done) == terms:
            error = max(abs(w * (sum(mpf(c) * x**j for j, c in enumerate(done)) - y)) for x, y, w in values)
            return done, error
    raise ValueError("no fit")


def series(f, order, at_zero):
    """Returns f, with its limit near 0, where the formula cancels."""
    return lambda x: f(x) if abs(x) > mpf(2) ** -60 else mpf(at_zero)


LN2, PI = mp.log(2), mp.pi
HALF_LN2 = LN2 / 2 * mpf("1.01")
OCTANT = PI / 4
root = lambda f: lambda z: f(mp.sqrt(z))  # f as a function of the square of its argument

# Name, description, f, a, b, weight that makes the error relative to the result.
POLYNOMIALS = [
    ("EXP", "(e^r - 1 - r) / r^2, |r| <= ln 2 / 2", lambda r: (mp.exp(r) - 1 - r) / r**2, -HALF_LN2, HALF_LN2, lambda r: r**2),
    ("EXP2", "(2^r - 1) / r, |r| <= 1/2", lambda r: (2**r - 1) / r, mpf("-0.51"), mpf("0.51"), lambda r: r),
    ("SINH", "(sinh r - r) / r^3 in r^2, |r| <= ln 2 / 2", root(lambda r: (mp.sinh(r) - r) / r**3), mpf(0), HALF_LN2**2, lambda z: z),
    ("COSH", "(cosh r - 1) / r^2 in r^2, |r| <= ln 2 / 2", root(lambda r: (mp.cosh(r) - 1) / r**2), mpf(0), HALF_LN2**2, lambda z: z),
    ("SIN", "(sin r - r) / r^3 in r^2, |r| <= pi/4", root(lambda r: (mp.sin(r) - r) / r**3), mpf(0), (OCTANT * mpf("1.01")) ** 2, lambda z: z),
    ("COS", "(cos r - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi/4", root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), mpf(0), (OCTANT * mpf("1.01")) ** 2, lambda z: z**2),
    ("ATAN", "(atan t - t) / t^3 in t^2, |t| <= 1", root(lambda t: (mp.atan(t) - t) / t**3), mpf(0), mpf(1), lambda z: z),
    ("ASIN", "(asin t - t) / t^3 in t^2, |t| <= 1/2", root(lambda t: (mp.asin(t) - t) / t**3), mpf(0), mpf("0.2501"), lambda z: z),
]
TARGETS = {F64: mpf(2) ** -57, F32: mpf(2) ** -27.5}
# The error of the tangent is within an ulp only with one term more.
SINE_TARGETS = {F64: mpf(2) ** -57, F32: mpf(2) ** -29}

# For one format only: name, format, description, f, a, b, weight, target.
LOG_POLY = lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3
SPECIAL = [
    ("LOG_COEFFICIENTS_F32", F32, "(log(1 + f) - f + f^2 / 2) / f^3, sqrt(1/2) <= 1 + f <= sqrt 2", LOG_POLY, 1 / mp.sqrt(2) - 1, mp.sqrt(2) - 1, lambda f: f**2, mpf(2) ** -26.5),
    ("LOG_COEFFICIENTS_F64", F64, "(2 atanh s - 2 s) / s^3 in s^2, s = f / (2 + f) for `f` as in `LOG_COEFFICIENTS_F32`", root(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3), mpf(2) ** -60, mpf("0.0295"), lambda z: z / 2, mpf(2) ** -58),
    ("LOG_WITH_TABLE_COEFFICIENTS_F64", F64, "(log(1 + f) - f + f^2 / 2) / f^3 for the residue `f` that `LOG_TABLE` leaves, |f| <= 1/126", LOG_POLY, -1 / mpf(126), 1 / mpf(126), lambda f: f**2, mpf(2) ** -66),
    ("LOG_COEFFICIENTS_IN_F64_FOR_F32", F64, "(log(1 + f) - f + f^2 / 2) / f^3 for the residue `f` that `LOG_TABLE` leaves, |f| <= 1/126, for results in float32", LOG_POLY, -1 / mpf(126), 1 / mpf(126), lambda f: f**2, mpf(2) ** -38),
    ("EXP_COEFFICIENTS_IN_F64_FOR_F32", F64, "(e^r - 1) / r, |r| <= ln 2 / 2, for results in float32", lambda r: (mp.exp(r) - 1) / r, -HALF_LN2, HALF_LN2, lambda r: r, mpf(2) ** -31),
    ("INVERSE_CBRT_COEFFICIENTS", F64, "m^(-1/3), sqrt(1/2) <= m <= sqrt 2", lambda m: m ** (-mpf(1) / 3), mpf("0.706"), mpf("1.416"), lambda m: m ** (mpf(1) / 3), mpf(2) ** -13),
]


def show(name, description, coefficients, error=None, type="f64"):
    if isinstance(coefficients, float):
        print(f"/// {description}.\npub const {name}: f64 = {coefficients!r};")
        return
    if error:
        description = f"Coefficients, lowest degree first, of a polynomial for {description}; relative error 2^{float(mp.log(error, 2)):.1f}"
    lines, line = [], "   "
    for c in coefficients:
        text = f" {c!r}," if type == "f64" else f" {c:#018x},"
        if len(line) + len(text) > 138:
            lines.append(line)
            line = "   "
        line += text
    body = "\n".join(lines + [line])
    one = f"pub const {name}: [{type}; {len(coefficients)}] = [{body.strip().rstrip(',')}];"
    print(f"/// {description}.")
    print(one if "\n" not in body and len(one) <= 140 else f"pub const {name}: [{type}; {len(coefficients)}] = [\n{body}\n];")


def head(x, bits):
    """Truncates the mantissa of x to `bits` bits."""
    m, e = mp.frexp(x)
    return mp.ldexp(mp.floor(mp.ldexp(m, bits)), e - bits)


def constants():
    for format, bits in ((F32, 15), (F64, 40)):
        high = head(LN2, bits)
        show(f"LN_2_PARTS_{format.upper()}", f"`ln 2` as a sum: its first {bits} bits, and the remainder", [float(high), rounded(LN2 - high, format)])
        low = mp.log10(2) - head(mp.log10(2), bits)
        show(f"LOG10_2_PARTS_{format.upper()}", f"`log10 2` as a sum: its first {bits} bits, and the remainder", [float(head(mp.log10(2), bits)), rounded(low, format)])
        for base in (2, 10):
            value = 1 / mp.log(base)
            first = rounded(value, format)
            show(f"LOG{base}_E_PARTS_{format.upper()}", f"`log{base} e` as an unevaluated sum of two numbers", [first, rounded(value - first, format)])
    show("CBRT_2", "The cube root of 2", float(mp.cbrt(2)))
    show("CBRT_HALF", "The cube root of 1/2", float(1 / mp.cbrt(2)))
    for format in (F32, F64):
        parts = []
        for _ in range(3):
            parts.append(rounded(PI / 2 - sum(map(mpf, parts)), format))
        show(f"HALF_PI_PARTS_{format.upper()}", "`pi/2` as an unevaluated sum of three numbers", parts)


    with mp.workprec(1400):
        bits = int(mp.floor(mp.ldexp(2 / +mp.pi, 64 * 20)))
    words = [0] + [bits >> 64 * (19 - i) & (1 << 64) - 1 for i in range(20)]
    show("TWO_OVER_PI_BITS", "The bits of `2/pi` after the binary point, most significant first, preceded by 64 zeros", words, type="u64")


# Mantissas of the table of logarithms start here; 1 begins the interval TABLE_ONE.
TABLE_FIRST, TABLE_BITS = 0x3FE6A00000000000, 7
TABLE_ONE = (0x3FF0000000000000 - TABLE_FIRST) >> 52 - TABLE_BITS


def float64(bits):
    return struct.unpack("d", struct.pack("Q", bits))[0]


def log_table():
    """For each interval of mantissas, c near its middle's inverse with -log(c) within 2^-12 ulp of a float64."""
    rows = []
    for i in range(1 << TABLE_BITS):
        edges = [float64(TABLE_FIRST + (j << 52 - TABLE_BITS)) for j in (i, i + 1)]
        middle, log, tries = 2 / (edges[0] + edges[1]), 0.0, 0
        inverse = middle
        if i in (TABLE_ONE - 1, TABLE_ONE):
            inverse = 1.0  # exact, so that logarithms near 0 keep full precision
        while inverse != 1.0:
            tries += 1
            inverse = middle + tries * 1.23456789e-9
            with mp.workprec(150):
                exact = -mp.log(mpf(inverse))
                log = float(exact)
                if abs(exact - log) < mp.ldexp(1, mp.frexp(log)[1] - 53 - 12):
                    break
        rows.append((inverse, log))
    print(f"/// Bit pattern of the least mantissa (a float64 in [1/2, 1)) that `LOG_TABLE` covers.\npub const LOG_TABLE_FIRST_MANTISSA: u64 = {TABLE_FIRST:#x};")
    print("/// Approximate inverses of mantissas, and the negated logarithms of the inverses, indexed by the leading bits of the mantissa.")
    print(f"pub static LOG_TABLE: [[f64; 2]; {len(rows)}] = [")
    for a, b in zip(rows[::2], rows[1::2]):
        print(f"    [{a[0]!r}, {a[1]!r}], [{b[0]!r}, {b[1]!r}],")
    print("];")


def main():
    print("//! Polynomial coefficients and tables of the vector math. Generated by scripts/vmath_coefficients.py; change them there.")
    print("#![allow(clippy::approx_constant, clippy::excessive_precision)]\n")
    constants()
    for name, description, f, a, b, weight in POLYNOMIALS:
        for format in (F32, F64):
            target = (SINE_TARGETS if name == "SIN" else TARGETS)[format]
            coefficients, error = fit(f, a, b, weight, format, target)
            show(f"{name}_COEFFICIENTS_{format.upper()}", f"{description}", coefficients, error)
    for name, format, description, f, a, b, weight, target in SPECIAL:
        show(name, description, *fit(f, a, b, weight, format, target))
    log_table()


main()
