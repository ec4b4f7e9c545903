"""Reference functions of conformance cases besides NumPy: functions that NumPy lacks, and cuprum's deliberate differences."""

import ast

import numpy as np

OPERATORS = {ast.MatMult: np.matmul, ast.Pow: np.power, ast.Div: np.divide, ast.Mult: np.multiply, ast.Add: np.add}


class Refused(Exception):
    """An input that NumPy accepts and cuprum rejects."""


def saturate(x, dtype):
    """Converts floats to integers as cuprum does: truncates and saturates, NaN becomes 0."""
    info = np.iinfo(dtype)
    values = [0 if v != v else max(info.min, min(info.max, _trunc(v))) for v in np.asarray(x).real.astype(float).ravel().tolist()]
    return np.array(values, dtype).reshape(np.shape(x))


def _trunc(v):
    return int(v) if np.isfinite(v) else (1 << 70 if v > 0 else -(1 << 70))


def int_power(x, y):
    """Computes integer powers as cuprum does: negative exponents give `1 / x**|y|`, truncated, with 1 / 0 = 0."""
    dtype = np.result_type(x, y)
    bits = 8 * dtype.itemsize

    def one(base, exponent):
        base, exponent = int(base), int(exponent)
        if exponent < 0:
            return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
        value = base**exponent % (1 << bits)
        return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value

    x, y = np.broadcast_arrays(x, y)
    return np.array([one(*pair) for pair in zip(x.ravel(), y.ravel())], dtype).reshape(x.shape)


def _segment_reduce(ufunc, a, offsets, wide, magnitudes):
    a = np.asarray(a)
    dtype = ufunc.reduce(np.zeros(0, a.dtype)).dtype
    if wide and dtype.kind in "fcV":
        a = a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)
    a = np.abs(a) if magnitudes else a
    result = [ufunc.reduce(a[i:j]) for i, j in zip(offsets[:-1], offsets[1:])]
    return np.array(result, None if wide or magnitudes else dtype)


def _along_axis(of_rows):
    """Extends a function of a 1-D array and offsets to an axis of n-d arrays."""

    def function(a, offsets, axis=0, **keywords):
        a = np.asarray(a)
        if a.ndim == 1:
            return of_rows(a, offsets, **keywords)
        rows = np.moveaxis(a, axis, -1)
        outer = rows.shape[:-1]
        model = of_rows(np.zeros(rows.shape[-1], a.dtype), offsets, **keywords)  # length and dtype of results, if there are no rows
        results = [of_rows(row, offsets, **keywords) for row in rows.reshape(int(np.prod(outer)), rows.shape[-1])]
        return np.moveaxis(np.array(results, model.dtype).reshape(*outer, len(model)), -1, axis)

    function.__name__ = of_rows.__name__
    return function


@_along_axis
def segment_sum(a, offsets, wide=False, magnitudes=False):
    return _segment_reduce(np.add, a, offsets, wide, magnitudes)


@_along_axis
def segment_prod(a, offsets, wide=False, magnitudes=False):
    return _segment_reduce(np.multiply, a, offsets, wide, magnitudes)


segment_sum.scaled = lambda a, offsets, axis=0: segment_sum(a, offsets, axis, wide=True, magnitudes=True)
segment_prod.scaled = lambda a, offsets, axis=0: segment_prod(a, offsets, axis, wide=True, magnitudes=True)


def _extremes(a, offsets, extreme, none):
    a = np.asarray(a)
    return np.array([extreme(a[i:j]) if i < j else none for i, j in zip(offsets[:-1], offsets[1:])], a.dtype)


def _limits(dtype):
    """Returns the minimum and the maximum of a dtype, infinities included."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (complex(-np.inf, -np.inf), complex(np.inf, np.inf)) if dtype.kind == "c" else (-np.inf, np.inf)


@_along_axis
def segment_min(a, offsets):
    return _extremes(a, offsets, np.min, _limits(np.asarray(a).dtype)[1])


@_along_axis
def segment_max(a, offsets):
    return _extremes(a, offsets, np.max, _limits(np.asarray(a).dtype)[0])


@_along_axis
def segment_argsort(a, offsets):
    """Returns the indices that sort each segment stably."""
    a = np.asarray(a)
    sorted_places = [i + np.argsort(a[i:j], kind="stable") for i, j in zip(offsets[:-1], offsets[1:])]
    return np.concatenate(sorted_places or [np.zeros(0, np.int64)])


@_along_axis
def segment_sort(a, offsets):
    return np.asarray(a)[segment_argsort(a, offsets)]


# ---- functions that NumPy lacks or names differently ----


def descending_places(a, axis=-1):
    """Returns the indices of a stable descending sort. NaN counts as the largest."""
    a = np.asarray(a)
    places = np.argsort(np.flip(a, axis), axis, kind="stable")
    return a.shape[axis] - 1 - np.flip(places, axis)


def topk(a, k, axis=-1, largest=True):
    if not 0 <= k <= a.shape[axis]:
        raise ValueError("k")
    places = descending_places(a, axis) if largest else np.argsort(a, axis, kind="stable")
    places = np.take(places, range(k), axis)
    return np.take_along_axis(a, places, axis), places


def weighted_bincount(x, weights, minlength=0, wide=False, magnitudes=False):
    weights = np.asarray(weights, np.longdouble if wide else np.float64)
    weights = np.abs(weights) if magnitudes else weights
    bins = max(int(np.max(x)) + 1, minlength)
    return np.array([weights[x == n].sum() for n in range(bins)], weights.dtype)


weighted_bincount.scaled = lambda x, weights, minlength=0: weighted_bincount(x, weights, minlength, wide=True, magnitudes=True)


def even_edges(a, bins):
    """Returns numpy.linspace over the range of `a`, with each step rounded to the dtype of `a`, as for float16 bin edges."""
    low, high = a.min(), a.max()
    return np.append(np.arange(bins).astype(a.dtype) * ((high - low) / a.dtype.type(bins)) + low, high)


def cummax(a, axis=None):
    return np.maximum.accumulate(np.ravel(a) if axis is None else a, 0 if axis is None else axis)


def cummin(a, axis=None):
    return np.minimum.accumulate(np.ravel(a) if axis is None else a, 0 if axis is None else axis)


# ---- random numbers: Philox 4x32-10 (Salmon et al., SC 2011), in the layout of core's `call::Random` ----

MASK = 0xFFFFFFFF


def philox(block, key):
    """Returns four words for a 64-bit counter and a 64-bit key."""
    c = [block & MASK, block >> 32 & MASK, 0, 0]
    k = [key & MASK, key >> 32 & MASK]
    for _ in range(10):
        x, y = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [y >> 32 ^ c[1] ^ k[0], y & MASK, x >> 32 ^ c[3] ^ k[1], x & MASK]
        k = [k[0] + 0x9E3779B9 & MASK, k[1] + 0xBB67AE85 & MASK]
    return c


# Known answer of Random123, the authors' library.
assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox((1 << 64) - 1, (1 << 64) - 1) != philox(0, 0)


def _words(count, per_block, seed):
    blocks = -(-count // per_block)
    return [w for b in range(blocks) for w in philox(b, seed & (1 << 64) - 1)]


def _pairs(words):
    return [lo | hi << 32 for lo, hi in zip(words[::2], words[1::2])]


def _count(size):
    return int(np.prod(size, dtype=np.int64)) if size is not None else 1


def _units(count, dtype, seed):
    """Returns uniform numbers in [0, 1): float64, or float32 for narrower dtypes."""
    if dtype == np.float64:
        return np.array([(w >> 11) * 2.0**-53 for w in _pairs(_words(count, 2, seed))])[:count]
    return np.array([(w >> 8) * 2.0**-24 for w in _words(count, 4, seed)], np.float32)[:count]


def _shaped(values, size):
    return values.reshape(() if size is None else size)


def random(size=None, dtype="float64", seed=0):
    dtype = np.dtype(dtype)
    return _shaped(_units(_count(size), dtype, seed).astype(dtype), size)


def uniform(low=0.0, high=1.0, size=None, dtype="float64", seed=0):
    dtype = np.dtype(dtype)
    u = _units(_count(size), dtype, seed)
    scaled = u.dtype.type(low) + u * u.dtype.type(high - low)
    return _shaped(scaled.astype(dtype), size)


def integers(low, high=None, size=None, dtype="int64", endpoint=False, seed=0):
    low, high = (0, low) if high is None else (low, high)
    span = high - low + bool(endpoint)
    values = [low + (w * span >> 64) for w in _pairs(_words(_count(size), 2, seed))]
    return _shaped(np.array(values[: _count(size)], dtype), size)


def _polar(loc, scale, size, dtype, seed):
    """Returns radius and direction of the Box-Muller transform per element, in extended precision."""
    dtype = np.dtype(dtype)
    count = _count(size)
    u = _units(count + count % 2, dtype, seed).astype(np.longdouble)
    radius, angle = np.sqrt(-2 * np.log(1 - u[::2])), 2 * np.longdouble(np.pi) * u[1::2]
    return radius.repeat(2)[:count], np.stack([np.cos(angle), np.sin(angle)], 1).ravel()[:count]


def normal(loc=0.0, scale=1.0, size=None, dtype="float64", seed=0, wide=False):
    radius, direction = _polar(loc, scale, size, dtype, seed)
    result = _shaped(loc + scale * radius * direction, size)
    return result if wide else result.astype(dtype)


# The error scale includes the angle of up to 2 pi, which is rounded before its sine.
normal.scaled = lambda loc=0.0, scale=1.0, size=None, dtype="float64", seed=0: _shaped(
    abs(loc) + scale * 2 * np.pi * _polar(loc, scale, size, dtype, seed)[0], size
)


def standard_normal(size=None, dtype="float64", seed=0, wide=False):
    return normal(0.0, 1.0, size, dtype, seed, wide)


standard_normal.scaled = lambda size=None, dtype="float64", seed=0: normal.scaled(0.0, 1.0, size, dtype, seed)

OURS = (saturate, int_power, segment_sum, segment_prod, segment_min, segment_max, segment_sort, segment_argsort, descending_places, topk, weighted_bincount, even_edges, cummax, cummin)
FUNCTIONS = {f.__name__: f for f in (*OURS, random, uniform, integers, normal, standard_normal)}
