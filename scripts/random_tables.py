#!/usr/bin/env python3
"""Writes the distribution functions that crates/backend-cpu/tests/kernels/distributions.rs compares random numbers with.

    .venv/bin/pip install scipy && .venv/bin/python scripts/random_tables.py

A line has a call without size and seed, the bound of the chi-square statistic at a probability of 1e-6, mean and variance (NaN if
infinite), the upper edges of the bins, and their probabilities. The last bin has no edge. SciPy computes them.
"""

from pathlib import Path

import numpy as np
from scipy import stats

TABLE = Path(__file__).resolve().parent.parent / "crates/backend-cpu/tests/kernels/distributions.txt"
BINS = 50
COUNT = 100_000

CASES = [
    ("random()", stats.uniform()),
    ("uniform(-2.0, 3.0)", stats.uniform(-2, 5)),
    ("normal(1.0, 2.0)", stats.norm(1, 2)),
    ("standard_normal()", stats.norm()),
    ("standard_exponential()", stats.expon()),
    ("exponential(2.5)", stats.expon(scale=2.5)),
    ("laplace(1.0, 2.0)", stats.laplace(1, 2)),
    ("logistic(1.0, 2.0)", stats.logistic(1, 2)),
    ("gumbel(1.0, 2.0)", stats.gumbel_r(1, 2)),
    ("lognormal(0.5, 0.75)", stats.lognorm(0.75, scale=np.exp(0.5))),
    ("rayleigh(2.0)", stats.rayleigh(scale=2)),
    ("pareto(3.5)", stats.lomax(3.5)),
    ("pareto(0.5)", stats.lomax(0.5)),
    ("weibull(1.5)", stats.weibull_min(1.5)),
    ("power(2.5)", stats.powerlaw(2.5)),
    ("triangular(-1.0, 0.5, 4.0)", stats.triang(0.3, -1, 5)),
    ("triangular(0.0, 0.0, 1.0)", stats.triang(0, 0, 1)),
    ("standard_cauchy()", stats.cauchy()),
    *[(f"standard_gamma({a})", stats.gamma(a)) for a in (0.05, 0.5, 1.0, 1.5, 10.0, 1000.0)],
    ("gamma(2.0, 3.0)", stats.gamma(2, scale=3)),
    *[(f"beta({a}, {b})", stats.beta(a, b)) for a, b in ((0.1, 0.2), (0.5, 0.5), (2.0, 3.0), (20.0, 0.7))],
    *[(f"chisquare({a})", stats.chi2(a)) for a in (0.5, 1.0, 7.0)],
    ("noncentral_chisquare(3.0, 2.0)", stats.ncx2(3, 2)),
    ("noncentral_chisquare(0.5, 30.0)", stats.ncx2(0.5, 30)),
    ("f(5.0, 12.0)", stats.f(5, 12)),
    ("noncentral_f(5.0, 12.0, 3.0)", stats.ncf(5, 12, 3)),
    ("standard_t(1.5)", stats.t(1.5)),
    ("standard_t(9.0)", stats.t(9)),
    ("wald(2.0, 4.0)", stats.invgauss(0.5, scale=4)),
    ("wald(100.0, 1.0)", stats.invgauss(100, scale=1)),
    *[(f"vonmises(0.0, {k})", stats.vonmises(k)) for k in (0.0, 1e-6, 0.5, 4.0, 300.0)],
    *[(f"vonmises(0.0, {k})", stats.norm(scale=k**-0.5)) for k in (1e7,)],
    *[(f"poisson({m})", stats.poisson(m)) for m in (0.01, 0.7, 9.99, 10.0, 33.3, 1e4, 1e9)],
    *[
        (f"binomial({n}, {p})", stats.binom(n, p))
        for n, p in ((1, 0.3), (20, 0.4), (20, 0.9), (100, 0.1), (100, 0.5), (1000, 0.7), (10**6, 1e-6), (10**6, 0.999), (10**9, 0.3))
    ],
    ("negative_binomial(4.5, 0.4)", stats.nbinom(4.5, 0.4)),
    ("negative_binomial(0.3, 0.05)", stats.nbinom(0.3, 0.05)),
    *[(f"geometric({p})", stats.geom(p)) for p in (1.0, 0.6, 0.1, 1e-4)],
    *[(f"logseries({p})", stats.logser(p)) for p in (0.1, 0.7, 0.99)],
    *[(f"zipf({a})", stats.zipf(a)) for a in (2.0, 4.0)],
    *[
        (f"hypergeometric({g}, {b}, {n})", stats.hypergeom(g + b, g, n))
        for g, b, n in ((5, 7, 4), (7, 5, 11), (30, 70, 20), (70, 30, 90), (1000, 3000, 500), (500_000, 400_000, 100_000))
    ],
]


def bins(distribution, discrete):
    """Returns the upper edges of bins of about equal probability, without empty ones, and the probabilities."""
    edges = np.unique(distribution.ppf(np.arange(1, BINS) / BINS))
    if not discrete:
        return edges, np.diff(distribution.cdf(edges), prepend=0, append=1)
    # A bin that would have fewer than 20 numbers joins the next one.
    kept, below = [], 0.0
    for edge in edges:
        here = distribution.cdf(edge)
        if (here - below) * COUNT >= 20 and (1 - here) * COUNT >= 20:
            kept.append(edge)
            below = here
    return np.array(kept), np.diff(distribution.cdf(kept), prepend=0, append=1)


lines = []
for text, distribution in CASES:
    edges, probabilities = bins(distribution, isinstance(distribution.dist, stats.rv_discrete))
    bound = stats.chi2(max(len(edges), 1)).isf(1e-6)
    mean, variance = (x if np.isfinite(x) else float("nan") for x in map(float, distribution.stats("mv")))
    numbers = [bound, mean, variance, len(edges), *edges, *probabilities]
    lines.append("\t".join([text, *(repr(float(x)) for x in numbers)]))
TABLE.write_text("\n".join(lines) + "\n")
