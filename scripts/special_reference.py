"""The special functions in mpmath, with the points at which scripts/special_tables.py computes them.

An entry is (function, points, scale). `points` returns arguments for a random generator. `scale` returns the size that
counts for errors near zeros of the function, or is None.
"""

import math
import struct

from mpmath import mp, mpf

import special_functions as functions

INF, NAN = math.inf, math.nan
TINY, SUBNORMAL, HUGE = 2.0**-1022, 5e-324, 1.7976931348623157e308


def single(x):
    """Returns the nearest float32, so that the point counts for float32 too."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return x


def halved(points):
    """Returns the points, every second one rounded to float32."""
    return [single(x) or x if n % 2 else x for n, x in enumerate(points)]


def log_spaced(seed, low, high, count):
    """Returns numbers whose decimal logarithms are uniform."""
    return halved([10 ** seed.uniform(low, high) for _ in range(count)])


def uniform(seed, low, high, count):
    return halved([seed.uniform(low, high) for _ in range(count)])


def signed(points):
    return list(points) + [-x for x in points]


def near(*centres):
    """Returns the centres and their neighbours at distances from one unit in the last place."""
    points = []
    for c in centres:
        points += [c, math.nextafter(c, INF), math.nextafter(c, -INF)]
        size = abs(c) or 1.0
        points += [c + s * size * 10.0**-k for k in (2, 5, 9, 13) for s in (1, -1)] + [single(c * (1 + 1e-6)), single(c * (1 - 1e-6))]
    return points


def usual(seed, count=40):
    """Returns special values, and both signs of all magnitudes."""
    return [NAN, INF, -INF, 0.0, 1.0, -1.0, 0.5, SUBNORMAL, TINY, HUGE, -HUGE] + signed(log_spaced(seed, -320, 308, count))


def exactly(function, digits=400):
    """Returns the function with so many digits that cancellation does no harm."""

    def wide(*args):
        with mp.workdps(digits):
            return function(*args)

    return wide


def infinite(function, low=mp.nan, high=mp.nan):
    """Returns the function of one argument with its values at NaN and the infinities."""

    def complete(x):
        if mp.isnan(x):
            return mp.nan
        if mp.isinf(x):
            return mpf(high) if x > 0 else mpf(low)
        return function(x)

    return complete


# ---- error functions ----


def erfc(x):
    return mp.erfc(x) if x < 30 else mpf(0)


def erfcx(x):
    return functions.erfcx(x) if x > -30 else mpf(mp.inf)


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2 if x > -40 else mpf(0)


def log_ndtr(x):
    if x > 40:
        return -mpf(0)
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    return -x * x / 2 + mp.log(functions.erfcx(-x / mp.sqrt(2)) / 2)


def erfinv(y):
    if abs(y) > 1:
        return mp.nan
    if abs(y) == 1:
        return mp.sign(y) * mp.inf
    return mp.erfinv(y) if abs(y) < 0.6 else mp.sign(y) * functions.erfcinv(1 - abs(y))


def erfcinv(y):
    if not 0 < y < 2:
        return mpf(mp.inf) if y == 0 else -mpf(mp.inf) if y == 2 else mp.nan
    return functions.erfcinv(y) if y < 0.4 else erfinv(1 - y)


def ndtri(p):
    return -mp.sqrt(2) * erfcinv(2 * p) if p < 0.4 else mp.sqrt(2) * erfinv(2 * p - 1)


def logit(p):
    if not 0 < p < 1:
        return -mpf(mp.inf) if p == 0 else mpf(mp.inf) if p == 1 else mp.nan
    return mp.log(p) - mp.log1p(-p)


def exponential(x):
    """exp(x), 0 far below, and infinite far above."""
    return mpf(0) if x < -800 else mpf(mp.inf) if x > 800 else mp.exp(x)


def log_expit(x):
    return x - mp.log1p(mp.exp(x)) if x < 0 else -mp.log1p(exponential(-x))


def exprel(x):
    if x == 0:
        return mpf(1)
    return (mpf(mp.inf) if x > 800 else mp.expm1(x) if x > -800 else mpf(-1)) / x


def wave_points(low, high):
    return lambda r: usual(r) + uniform(r, low, high, 120) + signed(log_spaced(r, -9, 0, 30)) + near(0.5, 1.0, -1.0)


# ---- products with logarithms ----


def entr(x):
    return -x * mp.log(x) if x > 0 else mpf(0) if x == 0 else -mpf(mp.inf)


def entropies(function, at_zero):
    def complete(x, y):
        if mp.isnan(x) or mp.isnan(y):
            return mp.nan
        if x > 0 and y > 0:
            return function(x, y)
        return at_zero(y) if x == 0 and y >= 0 else mpf(mp.inf)

    return exactly(complete)


def pairs_near(r):
    """Returns positive pairs, many of them nearly equal."""
    sizes = log_spaced(r, -5, 5, 60)
    close = [(x, x * (1 + r.choice([-1, 1]) * 10 ** r.uniform(-15, 0.3))) for x in sizes]
    far = list(zip(log_spaced(r, -300, 300, 40), log_spaced(r, -300, 300, 40), strict=True))
    edges = [(0, 0), (0, 2), (2, 0), (-1, 2), (1, -2), (NAN, 1), (1, NAN), (1, 1), (3, 1.5), (1.5, 3)]
    return edges + [p for p in close if p[1] > 0] + [p for p in far if min(p) > 0 and p[0] / p[1] < 1e250]


def product(function):
    def complete(x, y):
        if mp.isnan(x) or mp.isnan(y):
            return mp.nan
        return mpf(0) if x == 0 else x * function(y)

    return complete


def huber(delta, r):
    if mp.isnan(delta) or mp.isnan(r):
        return mp.nan
    if delta < 0:
        return mpf(mp.inf)
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


# ---- gamma, beta and zeta functions ----


def gamma(x):
    if x == 0:
        return mpf(mp.inf)
    if x < 0 and x == mp.floor(x):
        return mp.nan
    return mpf(mp.inf) if x > 200 else mpf(0) if x < -200 else mp.gamma(x)


def gammaln(x):
    if x <= 0 and x == mp.floor(x):
        return mpf(mp.inf)
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(x * mp.sin(mp.pi * x))) - mp.loggamma(-x)


def gammaln_scale(x):
    return abs(mp.loggamma(-x)) if -1e300 < x < 0 else 0


def digamma(x):
    if x == 0:
        return -mpf(mp.inf)
    if x < 0 and x == mp.floor(x):
        return mp.nan
    return mp.digamma(x) if x > 0 else mp.digamma(-x) - 1 / x - mp.pi / mp.tan(mp.pi * x)


def digamma_scale(x):
    return abs(mp.pi / mp.tan(mp.pi * mpf(x))) if -1e300 < x < 0 and x != math.floor(x) else 0


def betaln_exact(a, b):
    if mp.isinf(a) or mp.isinf(b):
        return mp.nan if a == b else -mpf(mp.inf)
    # log(gamma(a) gamma(b) / gamma(a + b)) loses as many digits as the larger argument has.
    with mp.workdps(400):
        return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta(a, b):
    if mp.isnan(a) or mp.isnan(b):
        return mp.nan
    if a > 0 and b > 0:
        return mp.exp(betaln_exact(a, b)) if a + b > 20 else mp.gamma(a) * mp.gamma(b) / mp.gamma(a + b)
    with mp.workdps(200):
        return mp.gamma(a) * mp.gamma(b) * mp.rgamma(a + b)


def positive_pairs(r):
    sizes = log_spaced(r, -5, 2.5, 160)
    return list(zip(sizes[::2], sizes[1::2], strict=True)) + [(1, 1), (NAN, 1), (10, 10), (9.999, 10.001), (20, 0.5), (1e-12, 3)]


def beta_points(r):
    below = uniform(r, -20, 20, 60)
    return positive_pairs(r) + [p for p in zip(below[::2], below[1::2], strict=True) if min(p) < 0]


def betaln_points(r):
    sizes = log_spaced(r, -5, 100, 120)
    return positive_pairs(r) + list(zip(sizes[::2], sizes[1::2], strict=True))


def riemann(x):
    if x == 1:
        return mpf(mp.inf)
    if x < 0 and x == 2 * mp.floor(x / 2):
        return mpf(0)
    return mpf(1) if x > 200 else mp.zeta(x)


def riemann_points(r):
    usual_points = [NAN, INF, -INF, 0.0, 1.0, -1.0, 0.5, SUBNORMAL, TINY, HUGE] + log_spaced(r, -320, 308, 40)
    return usual_points + near(1.0, 2.5, -0.25, -1.5) + uniform(r, -1, 60, 100) + uniform(r, -170, -1, 80) + [-x for x in log_spaced(r, -20, 0, 20)] + [-9.05281637862505, -9.295366359684422]


def hurwitz(s, q):
    if mp.isnan(s) or mp.isnan(q) or s < 1:
        return mp.nan
    if s == 1 or (q <= 0 and q == mp.floor(q)):
        return mpf(mp.inf)
    if q < 0:
        if s != mp.floor(s):
            return mp.nan
        steps = int(-mp.floor(q))
        return sum(1 / (q + k) ** int(s) for k in range(steps)) + mp.zeta(s, q + steps)
    # The precision of mpmath's function is absolute.
    with mp.workdps(500):
        return mp.zeta(s, q)


def hurwitz_points(r):
    points = list(zip(uniform(r, 1, 30, 60), uniform(r, 0, 30, 60), strict=True))
    points += list(zip([1 + x for x in log_spaced(r, -10, 0, 30)], log_spaced(r, -3, 6, 30), strict=True))
    points += [(s, q) for s in (2, 3, 8) for q in uniform(r, -9, 0, 8)]
    return points + [(1, 2), (0.5, 2), (2, 0), (2, -1), (2.5, -1.5), (NAN, 1), (2, NAN), (2, 1), (50, 3), (150, 40)]


def polygamma(n, x):
    if mp.isnan(x) or n != mp.floor(n) or n < 0:
        return mp.nan
    if n == 0:
        return digamma(x)
    return (-1) ** (int(n) + 1) * mp.gamma(n + 1) * hurwitz(n + 1, x)


def polygamma_points(r):
    points = [(n, x) for n in (0, 1, 2, 3, 7, 20, 100) for x in uniform(r, 0, 30, 8) + log_spaced(r, -2, 4, 8)]
    return points + [(n, x) for n in (1, 2, 5) for x in uniform(r, -9, 0, 8)] + [(1, 0), (1, -1), (-1, 2), (1.5, 2), (150, 3), (200, 300), (1, NAN)]


# ---- Bessel functions ----


def modified(function, far):
    """Returns a modified Bessel function: 0 or infinite beyond the range, and outside its domain as SciPy has it."""

    def complete(x):
        return mpf(far) if abs(x) > 800 else function(x)

    return complete


def second_kind(function, far, at_zero):
    def complete(x):
        if x <= 0:
            return mpf(at_zero) if x == 0 else mp.nan
        return mpf(far) if x > 1e6 and far is not None else function(x)

    return complete


def scaled_i(n):
    def function(x):
        y = abs(x)
        sign = -1 if n == 1 and x < 0 else 1
        if y > 1000:
            return sign * sum(hankel_term(n, k) * (-1) ** k / y**k for k in range(12)) / mp.sqrt(2 * mp.pi * y)
        return sign * mp.exp(-y) * mp.besseli(n, y)

    return function


def scaled_k(n):
    def function(x):
        if x > 1000:
            return sum(hankel_term(n, k) / x**k for k in range(12)) * mp.sqrt(mp.pi / (2 * x))
        return mp.exp(x) * mp.besselk(n, x)

    return function


def hankel_term(n, k):
    product = mpf(1)
    for j in range(1, k + 1):
        product *= mpf(4 * n * n - (2 * j - 1) ** 2) / (8 * j)
    return product


def hankel(n, second):
    """Jn or Yn, for large x by Hankel's expansion in as many digits as x needs."""

    def function(x):
        y = abs(x)
        if y < 1e4:
            return (mp.bessely if second else mp.besselj)(n, x)
        if mp.isinf(y):
            return mpf(0)
        with mp.workdps(400):
            angle = y - (2 * n + 1) * mp.pi / 4
            p = sum((-1) ** k * hankel_term(n, 2 * k) / y ** (2 * k) for k in range(8))
            q = sum((-1) ** k * hankel_term(n, 2 * k + 1) / y ** (2 * k + 1) for k in range(8))
            wave = p * mp.sin(angle) + q * mp.cos(angle) if second else p * mp.cos(angle) - q * mp.sin(angle)
            return wave * mp.sqrt(2 / (mp.pi * y)) * (-1 if x < 0 and n == 1 else 1)

    return function


def envelope(x):
    return math.sqrt(2 / math.pi / abs(x)) if 8 <= abs(x) < INF else 0


def bessel_points(low, high, *centres):
    return lambda r: usual(r, 20) + uniform(r, low, high, 120) + log_spaced(r, -5, 1, 40) + log_spaced(r, 0, 6, 20) + near(*centres)


def modified_points(r):
    return usual(r, 20) + uniform(r, 0, 12, 80) + uniform(r, 600, 745, 40) + log_spaced(r, -9, 2, 40) + near(1.0, 8.0, 8 / 3)


# ---- integrals ----


def cosine_integral(x):
    y = abs(x)
    if y == 0:
        return -mpf(mp.inf)
    if y < 1e4:
        return mp.re(mp.ci(y))
    with mp.workdps(400):
        f = sum((-1) ** k * mp.factorial(2 * k) / y ** (2 * k) for k in range(9)) / y
        g = sum((-1) ** k * mp.factorial(2 * k + 1) / y ** (2 * k) for k in range(9)) / y**2
        return f * mp.sin(y) - g * mp.cos(y)


def sine_integral(x):
    return mp.sign(x) * mp.pi / 2 if abs(x) > 1e60 else mp.si(x)


def exp1(x):
    if x <= 0:
        return mpf(mp.inf) if x == 0 else mp.nan
    return mpf(0) if x > 800 else mp.e1(x)


def expi(x):
    if x == 0:
        return -mpf(mp.inf)
    return -exp1(-x) if x < 0 else mpf(mp.inf) if x > 800 else mp.ei(x)


def integral_points(*centres):
    return lambda r: usual(r) + uniform(r, -12, 12, 120) + log_spaced(r, -5, 2, 40) + uniform(r, 600, 745, 30) + near(*centres)


def elliptic_points(r):
    return usual(r) + uniform(r, -3, 1, 80) + [1 - x for x in log_spaced(r, -16, 0, 60)] + near(0.5, 1.0)


def below_one(function):
    def complete(m):
        if m > 1:
            return mp.nan
        # The functions of mpmath lose digits near 1 and far below 0.
        with mp.workdps(400):
            return function(m)

    return complete


def ellipe(m):
    return mp.sqrt(-m) if m < -mpf(10) ** 100 else mp.ellipe(m)


def ellipk(m):
    if m < -mpf(10) ** 100:
        return mp.log(16 * -m) / (2 * mp.sqrt(-m))
    return mpf(mp.inf) if m == 1 else mp.ellipk(m)


# ---- incomplete gamma and beta functions, and Bessel functions of any order ----


def incomplete_gamma(lower):
    def function(a, x):
        if not (a >= 0 and x >= 0) or (a == 0 and x == 0):
            return mp.nan
        if a == 0 or x == 0 or mp.isinf(x):
            return mpf(1) if lower == (a == 0 or x > 0) else mpf(0)
        with mp.workdps(120):
            return mp.gammainc(a, 0, x, regularized=True) if lower else mp.gammainc(a, x, mp.inf, regularized=True)

    return function


def largest_exponent(function, points, limit):
    """Returns the points at which the function is above 10^-limit."""

    def chosen(r):
        kept = []
        for args in points(r):
            value = function(*map(mpf, args))
            if mp.isnan(value) or value == 0 or abs(value) > mpf(10) ** -limit:
                kept.append(args)
        return kept

    return chosen


def gamma_points(r):
    points = [(a, a * q) for a, q in zip(log_spaced(r, -3, 3, 60), log_spaced(r, -1, 0.7, 60), strict=True)]
    points += [(a, abs(a * (1 + r.gauss(0, 3) / math.sqrt(a)))) for a in log_spaced(r, 0.5, 5, 60)]
    points += list(zip(log_spaced(r, -8, 1, 40), log_spaced(r, -8, 1, 40), strict=True))
    return points + [(64, 60), (64, 38.4), (64, 89.6), (1, 1.1), (10, 10), (0, 1), (0, 0), (1, 0), (-1, 1), (1, -1), (NAN, 1), (1, NAN), (1, INF)]


def gamma_quantile(lower):
    def function(a, p):
        if not (a > 0 and 0 <= p <= 1):
            return mp.nan
        if p == 0 or p == 1:
            return mpf(0) if (p == 0) == lower else mpf(mp.inf)
        start = functions.gamma_quantile_start(a, p if lower else 1 - p)
        with mp.workdps(60):
            low, high = (p, 1 - p) if lower else (1 - p, p)
            x = start
            for _ in range(200):
                slope = mp.exp(a * mp.log(x) - x - mp.loggamma(a))
                if low < high:
                    value = mp.gammainc(a, 0, x, regularized=True)
                    step = mp.log(value / low) * value / slope
                else:
                    value = mp.gammainc(a, x, mp.inf, regularized=True)
                    step = -mp.log(value / high) * value / slope
                x = x * mp.exp(-max(min(step, mpf(20)), mpf(-20)))
                if abs(step) < mpf(10) ** -35:
                    return x
            raise ValueError(f"no quantile of {a}, {p}")

    return function


def gamma_quantile_points(r):
    points = [(a, r.choice([r.random(), 10 ** r.uniform(-30, -1)])) for a in log_spaced(r, -1, 3, 60)]
    return points + [(1, 0), (1, 1), (1, 0.5), (1, 1.5), (-1, 0.5), (2, NAN)] + [(single(a), single(p)) for a, p in points[:30]]


def incomplete_beta(a, b, x):
    if not (a >= 0 and b >= 0 and 0 <= x <= 1) or a == b == 0:
        return mp.nan
    if x == 0 or x == 1:
        return x
    if a == 0 or b == 0:
        return mpf(1) if a == 0 else mpf(0)
    with mp.workdps(50):
        return mp.betainc(a, b, 0, x, regularized=True)


def beta_triples(r):
    points = []
    for a, b in zip(log_spaced(r, -2, 2.7, 140), log_spaced(r, -2, 2.7, 140), strict=True):
        middle = a / (a + b)
        width = math.sqrt(a * b / (a + b + 1)) / (a + b)
        x = middle + r.gauss(0, 3) * width if r.random() < 0.7 else r.random()
        points.append((a, b, single(min(max(x, 1e-9), 1 - 1e-6))))
    return points + [(0, 1, 0.5), (1, 0, 0.5), (0, 0, 0.5), (1, 1, 0), (1, 1, 1), (-1, 1, 0.5), (1, 1, 1.5), (1, 1, NAN), (1, 1, 0.25)]


def bessel_of_order(function):
    def complete(v, x):
        if mp.isnan(v) or mp.isnan(x) or (x < 0 and v != mp.floor(v)):
            return mp.nan
        if x == 0:
            return mpf(1) if v == 0 else mpf(0)
        with mp.workdps(50):
            return mp.re(function(v, x))

    return complete


def order_points(r):
    points = list(zip(uniform(r, 0, 5, 30), uniform(r, 0, 30, 30), strict=True))
    points += [(math.floor(v), x) for v, x in zip(uniform(r, -30, 50, 30), uniform(r, -60, 60, 30), strict=True)]
    points += list(zip(uniform(r, 0, 100, 30), log_spaced(r, -1, 2.8, 30), strict=True))
    points += list(zip(log_spaced(r, 2, 2.9, 15), log_spaced(r, 1, 2.8, 15), strict=True))
    points += list(zip(uniform(r, -20, 0, 30), uniform(r, 0, 60, 30), strict=True))
    points += list(zip(uniform(r, -160, 0, 20), uniform(r, 10, 700, 20), strict=True))
    return points + [(0, 0), (1, 0), (0.5, 0), (0.5, -1), (NAN, 1), (1, NAN), (3, -2), (-3, 2)]


def growing_order_points(r):
    """Returns the points of `order_points`, and orders for which factors of I_v(x) overflow or underflow."""
    points = order_points(r)
    points += [(v, v * z) for v, z in zip(uniform(r, 170, 1400, 40), uniform(r, 0.2, 1, 40), strict=True)]
    return points + [(800, 260), (1300, 820), (1399, 960)]


def order_envelope(v, x):
    return math.sqrt(2 / math.pi / abs(x)) if abs(x) > abs(v) else 0


REFERENCE = {
    "erf": (infinite(mp.erf, -1, 1), wave_points(-7, 7), None),
    "erfc": (infinite(erfc, 2, 0), wave_points(-7, 28), None),
    "erfcx": (infinite(erfcx, mp.inf, 0), lambda r: wave_points(-27, 30)(r) + [5.179740165654104e-05] + near(0.125) + log_spaced(r, -5, -0.5, 60), None),
    "ndtr": (infinite(ndtr, 0, 1), wave_points(-39, 9), None),
    "log_ndtr": (infinite(log_ndtr, -mp.inf, 0), lambda r: wave_points(-40, 39)(r) + uniform(r, -1, 0, 100), None),
    "erfinv": (infinite(erfinv), lambda r: usual(r, 20) + uniform(r, -1, 1, 100) + near(0.625, 1.0) + [1 - x for x in log_spaced(r, -16, -1, 60)], None),
    "erfcinv": (infinite(erfcinv), lambda r: usual(r, 30) + uniform(r, 0, 2, 100) + log_spaced(r, -320, 0, 60) + near(0.375, 1.0), None),
    "ndtri": (infinite(ndtri), lambda r: usual(r, 30) + uniform(r, 0, 1, 100) + log_spaced(r, -320, 0, 60) + near(0.1875, 0.5), None),
    "expit": (infinite(lambda x: exponential(x) if x < -800 else 1 / (1 + exponential(-x)), 0, 1), wave_points(-40, 40), None),
    "logit": (exactly(infinite(logit)), lambda r: usual(r, 30) + uniform(r, 0, 1, 100) + log_spaced(r, -320, 0, 60) + near(0.25, 0.5, 0.75, 1.0), None),
    "log_expit": (infinite(log_expit, -mp.inf, 0), wave_points(-40, 40), None),
    "exprel": (exactly(infinite(exprel, 0, mp.inf)), lambda r: wave_points(-40, 40)(r) + uniform(r, 690, 717, 20), None),
    "xlogy": (product(lambda y: mp.log(y) if y > 0 else -mpf(mp.inf) if y == 0 else mp.nan), pairs_near, None),
    "xlog1py": (product(lambda y: mp.log1p(y) if y > -1 else mp.nan), pairs_near, None),
    "entr": (infinite(entr, -mp.inf, -mp.inf), lambda r: usual(r) + uniform(r, 0, 3, 60) + near(1.0), None),
    "rel_entr": (entropies(lambda x, y: x * mp.log(x / y), lambda y: mpf(0)), pairs_near, None),
    "kl_div": (entropies(lambda x, y: x * mp.log(x / y) - x + y, lambda y: y), pairs_near, None),
    "huber": (huber, pairs_near, None),
    "gamma": (infinite(gamma, mp.nan, mp.inf), lambda r: usual(r) + uniform(r, -184, 172, 150) + uniform(r, -5, 5, 60) + near(1.0, 20.0, 140.0, -1.0, -7.0), None),
    "gammaln": (infinite(gammaln, -mp.inf, mp.inf), lambda r: usual(r) + uniform(r, -20, 12, 150) + near(1.0, 2.0, 0.5, 0.75, 2.5, 10.0, -1.0, -7.0) + uniform(r, -3, -2, 100), gammaln_scale),
    "digamma": (infinite(digamma, mp.nan, mp.inf), lambda r: usual(r) + uniform(r, -20, 12, 150) + near(1.0, 1.4616321449683623, 2.0, 3.0, 10.0, -1.0, -0.504083008264455), digamma_scale),
    "beta": (beta, beta_points, None),
    "betaln": (lambda a, b: mp.nan if mp.isnan(a) else betaln_exact(a, b), betaln_points, lambda a, b: 1),
    "zeta": (hurwitz, hurwitz_points, None),
    "zeta-1": (infinite(riemann, mp.nan, 1), riemann_points, None),
    "polygamma": (polygamma, polygamma_points, None),
    "i0": (infinite(modified(lambda x: mp.besseli(0, x), mp.inf), mp.inf, mp.inf), lambda r: [x for x in modified_points(r) if x > -800], None),
    "i0e": (infinite(scaled_i(0), 0, 0), modified_points, None),
    "k0": (infinite(second_kind(lambda x: mp.besselk(0, x) if x < 800 else mpf(0), 0, mp.inf), mp.nan, 0), modified_points, None),
    "k0e": (infinite(second_kind(scaled_k(0), None, mp.inf), mp.nan, 0), modified_points, None),
    "j0": (infinite(hankel(0, False), 0, 0), bessel_points(-12, 12, 2.404825557695773, 5.520078110286311, 1.0, 8.0), envelope),
    "y0": (infinite(second_kind(hankel(0, True), None, -mp.inf), mp.nan, 0), bessel_points(0, 12, 0.8935769662791675, 3.957678419314858, 7.086051060301773, 0.625, 8.0), envelope),
    "i1": (infinite(modified(lambda x: mp.besseli(1, x), mp.inf), -mp.inf, mp.inf), lambda r: [x for x in modified_points(r) if x > -800], None),
    "i1e": (infinite(scaled_i(1), 0, 0), modified_points, None),
    "k1": (infinite(second_kind(lambda x: mp.besselk(1, x) if x < 800 else mpf(0), 0, mp.inf), mp.nan, 0), modified_points, None),
    "k1e": (infinite(second_kind(scaled_k(1), None, mp.inf), mp.nan, 0), modified_points, None),
    "j1": (infinite(hankel(1, False), 0, 0), bessel_points(-12, 12, 3.831705970207512, 7.015586669815619, 1.0, 8.0), envelope),
    "y1": (infinite(second_kind(hankel(1, True), None, -mp.inf), mp.nan, 0), bessel_points(0, 12, 2.197141326031017, 5.429681040794135, 0.625, 8.0), envelope),
    "exp1": (infinite(exp1, mp.nan, 0), integral_points(0.6875, 1.0), None),
    "expi": (infinite(expi, 0, mp.inf), integral_points(0.37250741078136663, 0.25, 1.0, 56.0), None),
    "sici-0": (infinite(sine_integral, -mp.pi / 2, mp.pi / 2), integral_points(4.0), None),
    "sici-1": (infinite(cosine_integral, mp.nan, 0), integral_points(0.6165054856207162, 3.384180422551186, 0.5, 4.0), lambda x: 1 / abs(x) if 4 < abs(x) < INF else 0),
    "ellipk": (infinite(below_one(ellipk), 0), elliptic_points, None),
    "ellipe": (infinite(below_one(ellipe), mp.inf), elliptic_points, None),
    "gammainc": (incomplete_gamma(True), largest_exponent(incomplete_gamma(True), gamma_points, 120), None),
    "gammaincc": (incomplete_gamma(False), largest_exponent(incomplete_gamma(False), gamma_points, 120), None),
    "gammaincinv": (gamma_quantile(True), gamma_quantile_points, None),
    "gammainccinv": (gamma_quantile(False), gamma_quantile_points, None),
    "betainc": (incomplete_beta, largest_exponent(incomplete_beta, beta_triples, 120), None),
    "jv": (bessel_of_order(mp.besselj), order_points, order_envelope),
    "iv": (bessel_of_order(mp.besseli), growing_order_points, None),
}
