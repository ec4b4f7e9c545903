"""The functions that scripts/special_coefficients.py approximates, in mpmath.

A piece is (function, a, b, centre): the polynomial in x - centre for a <= x <= b. A table is a piece, or a list of them.
"""

from fractions import Fraction

from mpmath import mp, mpf


def erfcx(x):
    x = mpf(x)
    if x > 60:
        return sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(30)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def at_zero(f, limit):
    """Returns f, with its limit at 0."""
    return lambda x: f(x) if x != 0 else limit


def erfinv_over_x(z):
    x = mp.sqrt(z)
    return mp.erfinv(x) / x


def erfcinv(y):
    """Inverse of erfc for small y, by Newton's method on log(erfc)."""
    s = mp.sqrt(-mp.log(y))
    x = s if s > 2 else mp.erfinv(1 - y)
    for _ in range(80):
        e = mp.erfc(x)
        step = (mp.log(e) - mp.log(y)) * e / (2 / mp.sqrt(mp.pi) * mp.exp(-x * x))
        x += step
        if abs(step) < mpf(10) ** -45 * x:
            break
    return x


def erfcinv_over_s(s):
    return erfcinv(mp.exp(-s * s)) / s


ERFCX_SCALE = 4

TABLES = {
    "ERF_COEFFICIENTS": (at_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1), 0, 1, 0),
    "ERFCX_COEFFICIENTS": (lambda t: (1 + 2 * ERFCX_SCALE * (1 + t) / (1 - t)) * erfcx(ERFCX_SCALE * (1 + t) / (1 - t)) if t < 1 else 2 / mp.sqrt(mp.pi), -1, 1, 0),
    "ERFCX_NEAR_0_COEFFICIENTS": (erfcx, 0, mpf(1) / 8, 0),
    "ATANH_COEFFICIENTS": (at_zero(lambda y: (mp.atanh(mp.sqrt(y)) / mp.sqrt(y) - 1) / y, mpf(1) / 3), 0, mpf(1) / 8, 0),
    "ERFINV_COEFFICIENTS": (at_zero(erfinv_over_x, mp.sqrt(mp.pi) / 2), 0, mpf(5) ** 2 / 64, 0),
    "ERFCINV_COEFFICIENTS": [(erfcinv_over_s, a, b, c) for a, b, c in ((0.96, 1.5, 1.25), (1.5, 2.5, 2), (2.5, 4.5, 3.5), (4.5, 8.5, 6.5), (8.5, 16, 12), (16, 28, 22))],
}


def gamma_star(w):
    """Gamma function divided by Stirling's formula, at 1 / w."""
    if w == 0:
        return mpf(1)
    return mp.exp(stirling_rest(1 / w))


def stirling_rest(x):
    """log(gamma(x)) minus the logarithm of Stirling's formula."""
    x = mpf(x)
    if x > 200:
        return sum(mp.bernoulli(2 * k) / (2 * k * (2 * k - 1) * x ** (2 * k - 1)) for k in range(1, 30))
    with mp.workdps(80):
        return mp.loggamma(x) - ((x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)


def digamma_rest(z):
    """(log(x) - 1 / (2 x) - digamma(x)) * x^2, in z = 1 / x^2."""
    if z == 0:
        return mpf(1) / 12
    x = 1 / mp.sqrt(z)
    with mp.workdps(90):
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x


def digamma_zero():
    with mp.workdps(80):
        return mp.findroot(mp.digamma, mpf("1.46163214496836234126"))


def zeta_regular(u):
    """u * zeta(1 + u), which is entire."""
    return mpf(1) if u == 0 else u * mp.zeta(1 + u)


TABLES |= {
    "SIN_PI_COEFFICIENTS": (at_zero(lambda z: mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z), mp.pi), 0, mpf(1) / 4, 0),
    "RECIPROCAL_GAMMA_COEFFICIENTS": (mp.rgamma, 1, 2, mpf(3) / 2),
    "STIRLING_RATIO_COEFFICIENTS": (gamma_star, 0, mpf(1) / 12, 0),
    "LOG_GAMMA_NEAR_1_COEFFICIENTS": (at_zero(lambda u: mp.loggamma(1 + u) / u, -mp.euler), -0.25, 0.5, 0),
    "LOG_GAMMA_NEAR_2_COEFFICIENTS": (at_zero(lambda u: mp.loggamma(2 + u) / u, 1 - mp.euler), -0.5, 0.5, 0),
    "STIRLING_REMAINDER_COEFFICIENTS": (lambda z: stirling_rest(1 / mp.sqrt(z)) / mp.sqrt(z) if z > 0 else mpf(1) / 12, 0, mpf(1) / 100, 0),
    "DIGAMMA_BELOW_2_COEFFICIENTS": (lambda x: mp.digamma(x) / (x - digamma_zero()), 1, 2, mpf(3) / 2),
    "DIGAMMA_ABOVE_2_COEFFICIENTS": (mp.digamma, 2, 3, mpf(5) / 2),
    "DIGAMMA_REMAINDER_COEFFICIENTS": (digamma_rest, 0, mpf(1) / 100, 0),
    "ZETA_COEFFICIENTS": (zeta_regular, -1.25, 1.5, 0),
}


# ---- Bessel functions and integrals ----


def wide(f, digits=80):
    """Returns the function in higher precision, against cancellation."""

    def function(*args):
        with mp.workdps(digits):
            return f(*args)

    return function


def without_zero(f, zero):
    """Returns f(x) / (x - zero), where `zero` is near a zero of f."""
    with mp.workdps(80):
        root = mp.findroot(f, mpf(zero))

    def quotient(x):
        with mp.workdps(80):
            h = mpf(10) ** -30
            return f(x) / (x - root) if abs(x - root) > h else (f(root + h) - f(root - h)) / (2 * h)

    return quotient


def even(f):
    """Returns f as a function of the square of its argument."""
    return lambda z: f(mp.sqrt(z))


def i1_rest(z):
    """(2 I1(x) / x - 1) / z with z = x^2 / 4."""
    if z == 0:
        return mpf(1) / 2
    x = 2 * mp.sqrt(z)
    return (2 * mp.besseli(1, x) / x - 1) / z


def k0_rest(z):
    """K0(x) + (log(x / 2) + gamma) I0(x), in z = x^2 / 4."""
    if z == 0:
        return mpf(0)
    x = 2 * mp.sqrt(z)
    return mp.besselk(0, x) + (mp.log(x / 2) + mp.euler) * mp.besseli(0, x)


def k1_rest(z):
    """(K1(x) - 1 / x - log(x / 2) I1(x)) / x, in z = x^2 / 4."""
    if z == 0:
        return (2 * mp.euler - 1) / 4
    x = 2 * mp.sqrt(z)
    return (mp.besselk(1, x) - 1 / x - mp.log(x / 2) * mp.besseli(1, x)) / x


def modulus(n, part):
    """The factor of sin (part 0) or cos (part 1) in Hankel's expansion of Jn, as a function of 1 / x^2."""

    def function(z):
        if z == 0:
            return mpf(1) if part == 0 else mpf(4 * n * n - 1) / 8
        x = 1 / mp.sqrt(z)
        with mp.workdps(60):
            angle = x - mp.pi / 4 - n * mp.pi / 2
            scale = mp.sqrt(mp.pi * x / 2)
            j, y = mp.besselj(n, x), mp.bessely(n, x)
            return scale * (j * mp.cos(angle) + y * mp.sin(angle)) if part == 0 else scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x

    return function


def e1_scaled(x):
    """x exp(x) E1(x) as a function of x."""
    return x * mp.exp(x) * mp.e1(x)


def ei_scaled(x):
    """x exp(-x) Ei(x)."""
    return x * mp.exp(-x) * mp.ei(x)


def at_infinity(f, limit=1):
    """Returns f(1 / w), with its limit at w = 0."""
    return lambda w: mpf(limit) if w == 0 else f(1 / w)


def sine_auxiliary(part):
    """x f(x) or x^2 g(x) of the sine and cosine integrals, as functions of 1 / x^2."""

    def function(z):
        if z == 0:
            return mpf(1)
        x = 1 / mp.sqrt(z)
        with mp.workdps(80):
            si, ci = mp.si(x) - mp.pi / 2, mp.ci(x)
            f = ci * mp.sin(x) - si * mp.cos(x)
            g = -ci * mp.cos(x) - si * mp.sin(x)
            return x * f if part == 0 else x * x * g

    return function


def cin_rest(z):
    """(Ci(x) - log(x) - gamma) / x^2 in z = x^2."""
    if z == 0:
        return -mpf(1) / 4
    x = mp.sqrt(z)
    return (mp.ci(x) - mp.log(x) - mp.euler) / z


def bessel_y_rest(n, z):
    """Yn(x) - 2 / pi log(x / 2) Jn(x) (+ 2 / (pi x)) over x^n, in z = x^2."""
    if z == 0:
        return 2 * mp.euler / mp.pi if n == 0 else (2 * mp.euler - 1) / (2 * mp.pi)
    x = mp.sqrt(z)
    rest = mp.bessely(n, x) - 2 / mp.pi * mp.log(x / 2) * mp.besselj(n, x)
    return rest if n == 0 else (rest + 2 / (mp.pi * x)) / x


TABLES |= {
    # (-1 / gamma(x) - 1) / ((x - a) (x - b)) with the zeros a and b between -3 and -2.
    "RECIPROCAL_GAMMA_QUOTIENT_COEFFICIENTS": (without_zero(without_zero(lambda x: -mp.rgamma(x) - 1, -2.457), -2.748), -2.8, -2.2, -2.5),
    "I0": (even(lambda y: mp.besseli(0, 2 * y)), 0, 16, 0),
    "I1": (i1_rest, 0, 16, 0),
    "I0E_LARGE_COEFFICIENTS": (at_infinity(lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x), 1 / mp.sqrt(2 * mp.pi)), 0, mpf(1) / 8, mpf(1) / 16),
    "I1E_LARGE_COEFFICIENTS": (at_infinity(lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x), 1 / mp.sqrt(2 * mp.pi)), 0, mpf(1) / 8, mpf(1) / 16),
    "K0": (wide(lambda z: k0_rest(z) / z if z else mpf(1)), 0, 0.25, 0),
    "K1": (wide(k1_rest), 0, 0.25, 0),
    "K0E_LARGE_COEFFICIENTS": [(at_infinity(lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x), mp.sqrt(mp.pi / 2)), a, b, (a + b) / 2) for a, b in ((0, 0.125), (0.125, 0.375), (0.375, 1.0))],
    "K1E_LARGE_COEFFICIENTS": [(at_infinity(lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x), mp.sqrt(mp.pi / 2)), a, b, (a + b) / 2) for a, b in ((0, 0.125), (0.125, 0.375), (0.375, 1.0))],
    "P0": (modulus(0, 0), 0, mpf(1) / 64, mpf(1) / 128), "Q0": (modulus(0, 1), 0, mpf(1) / 64, mpf(1) / 128),
    "P1": (modulus(1, 0), 0, mpf(1) / 64, mpf(1) / 128), "Q1": (modulus(1, 1), 0, mpf(1) / 64, mpf(1) / 128),
    "J0": [(without_zero(mp.j0, 2.404825557695773), 1, 4, 2.5), (without_zero(mp.j0, 5.520078110286311), 4, 7, 5.5), (without_zero(mp.j0, 8.653727912911012), 7, 8, 7.5)],
    "J0_NEAR_0_COEFFICIENTS": (even(mp.j0), 0, 1, 0),
    "J1": [(lambda x: mp.j1(x) / x, 1, 3, 2.0), (without_zero(mp.j1, 3.831705970207512), 3, 5.5, 4.25), (without_zero(mp.j1, 7.015586669815619), 5.5, 8, 6.75)],
    "J1_NEAR_0_COEFFICIENTS": (at_zero(even(lambda x: mp.j1(x) / x), mpf(1) / 2), 0, 1, 0),
    "Y0": [(without_zero(lambda x: mp.bessely(0, x), 0.8935769662791675), 0.625, 0.9375, 0.78125), (without_zero(lambda x: mp.bessely(0, x), 0.8935769662791675), 0.9375, 1.5, 1.21875), (lambda x: mp.bessely(0, x), 1.5, 2.5, 2.0), (without_zero(lambda x: mp.bessely(0, x), 3.957678419314858), 2.5, 4.0, 3.25), (without_zero(lambda x: mp.bessely(0, x), 3.957678419314858), 4.0, 5.5, 4.75), (without_zero(lambda x: mp.bessely(0, x), 7.086051060301773), 5.5, 8, 6.75)],
    "Y0_NEAR_0_COEFFICIENTS": (wide(lambda z: bessel_y_rest(0, z)), 0, mpf(25) / 64, 0),
    "Y1": [(lambda x: mp.bessely(1, x), 0.625, 1.0, 0.8125), (lambda x: mp.bessely(1, x), 1.0, 1.5, 1.25), (without_zero(lambda x: mp.bessely(1, x), 2.197141326031017), 1.5, 2.5, 2.0), (without_zero(lambda x: mp.bessely(1, x), 2.197141326031017), 2.5, 4.0, 3.25), (without_zero(lambda x: mp.bessely(1, x), 5.429681040794135), 4.0, 5.5, 4.75), (without_zero(lambda x: mp.bessely(1, x), 5.429681040794135), 5.5, 8, 6.75)],
    "Y1_NEAR_0_COEFFICIENTS": (wide(lambda z: bessel_y_rest(1, z)), 0, mpf(25) / 64, 0),
    "E1_NEAR_0_COEFFICIENTS": (at_zero(wide(lambda x: (mp.e1(x) + mp.log(x) + mp.euler) / x), 1), 0, 1, 0),
    "E1": [(at_infinity(e1_scaled), a, b, (a + b) / 2) for a, b in ((0, 0.0625), (0.0625, 0.1875), (0.1875, 0.4375), (0.4375, 1.0), (1.0, 1.5))],
    "EI_NEAR_0_COEFFICIENTS": (at_zero(wide(lambda x: (mp.ei(x) - mp.log(x) - mp.euler) / x), 1), 0, 0.25, 0),
    "EI": [(without_zero(mp.ei, 0.37250741078136663), 0.25, 0.375, 0.3125), (without_zero(mp.ei, 0.37250741078136663), 0.375, 0.625, 0.5), (without_zero(mp.ei, 0.37250741078136663), 0.625, 1.0, 0.8125)],
    "EI_LARGE_COEFFICIENTS": [(ei_scaled, a, b, (mpf(a) + b) / 2) for a, b in ((1, 1.75), (1.75, 3), (3, 5), (5, 8), (8, 13), (13, 21), (21, 34), (34, 56))] ,
    "EI_ASYMPTOTIC_COEFFICIENTS": (at_infinity(ei_scaled), 0, mpf(1) / 56, 0),
    "SI_NEAR_0_COEFFICIENTS": (at_zero(even(lambda x: mp.si(x) / x), 1), 0, 16, 0),
    "CI_NEAR_0_COEFFICIENTS": (wide(cin_rest), 0, 0.25, 0),
    "CI": [(without_zero(mp.ci, 0.6165054856207162), 0.5, 0.75, 0.625), (without_zero(mp.ci, 0.6165054856207162), 0.75, 1.25, 1.0), (without_zero(mp.ci, 0.6165054856207162), 1.25, 2.0, 1.625), (without_zero(mp.ci, 3.384180422551186), 2.0, 3.0, 2.5), (without_zero(mp.ci, 3.384180422551186), 3.0, 4.0, 3.5)],
    "SICI_AUXILIARY_F_COEFFICIENTS": [(sine_auxiliary(0), a, b, (mpf(a) + b) / 2) for a, b in ((0, 0.015625), (0.015625, 0.0625))],
    "SICI_AUXILIARY_G_COEFFICIENTS": [(sine_auxiliary(1), a, b, (mpf(a) + b) / 2) for a, b in ((0, 0.015625), (0.015625, 0.0625))],
}


# ---- incomplete gamma function ----


def temme(rows, columns):
    """Coefficients d(k, n) of Temme's expansion (NIST Digital Library of Mathematical Functions, 8.12.12)."""
    size = columns + 2 * rows + 3
    # mu = sum of alpha[n] eta^n, from mu mu' = eta (1 + mu).
    alpha = [mpf(0), mpf(1)]
    for n in range(2, size):
        known = sum(j * alpha[j] * alpha[n + 1 - j] for j in range(2, n))
        alpha.append((alpha[n - 1] - known) / (n + 1))
    # Stirling's series of the gamma function, from that of its logarithm.
    logs = [mpf(0)] * (rows + 2)
    for k in range(1, rows + 2):
        logs[k] = mp.bernoulli(k + 1) / (k * (k + 1)) if k % 2 else mpf(0)
    stirling = [mpf(1)]
    for k in range(1, rows + 1):
        stirling.append(sum(j * logs[j] * stirling[k - j] for j in range(1, k + 1)) / k)
    first = [-mpf(1) / 3] + [(n + 2) * alpha[n + 2] for n in range(1, size - 2)]
    table = [first]
    for k in range(1, rows):
        before = table[-1]
        table.append([(-1) ** k * stirling[k] * first[n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    return [[float(c) for c in row[:columns]] for row in table]


def debye(rows):
    """Coefficients of Debye's polynomials u_k(t) / t^k in t^2 (NIST Digital Library of Mathematical Functions, 10.41.9)."""
    table, u = [], [Fraction(1)]
    for k in range(1, rows + 1):
        after = [Fraction(0)] * (len(u) + 3)
        for power, c in enumerate(u):
            after[power + 1] += power * c / 2 + c / 8 / (power + 1)
            after[power + 3] -= power * c / 2 + 5 * c / 8 / (power + 3)
        u = after
        table.append([float(u[power]) if power < len(u) else 0.0 for power in range(k, k + 2 * rows + 1, 2)])
    return table


# Coefficients that are no fits.
SERIES = {"TEMME_COEFFICIENTS": lambda: temme(8, 21), "DEBYE_COEFFICIENTS": lambda: debye(12)}


def gamma_quantile_start(a, p):
    """A first value for the quantile p of the gamma distribution."""
    small = mp.exp((mp.log(p) + mp.loggamma(a + 1)) / a)
    if a < 1:
        return small
    root = 1 - 1 / (9 * a) + mp.sqrt(2) * (mp.erfinv(2 * p - 1) if p > mpf("1e-10") else -erfcinv(2 * p)) / (3 * mp.sqrt(a))
    return a * root**3 if root > mpf("0.3") else small
