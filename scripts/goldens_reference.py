"""Reference functions of conformance cases besides NumPy: functions that NumPy lacks, and cuprum's deliberate differences."""

import ast
import types

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

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


def scatter(a, indices, values, axis=0, mode="assign"):
    """Values stored or combined at indices along an axis of a copy."""
    functions = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    out, indices = np.array(a), np.asarray(indices)
    if mode != "assign" and mode not in functions or indices.size and indices.dtype.kind not in "iu":
        raise ValueError(mode)
    if not -out.ndim <= axis < out.ndim:
        raise ValueError(axis)
    index = (slice(None),) * (axis % out.ndim) + (indices if indices.size else indices.astype(int),)
    if mode == "assign":
        out[index] = values
    else:
        # `at` converts the values by any rule.
        if np.result_type(out, values) != out.dtype:
            raise TypeError(values)
        functions[mode].at(out, index, values)
    return out


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


def _words(count, per_block, seed, first_block=0):
    blocks = -(-count // per_block)
    return [w for b in range(blocks) for w in philox(first_block + b, seed & (1 << 64) - 1)]


def _pairs(words):
    return [lo | hi << 32 for lo, hi in zip(words[::2], words[1::2])]


def _count(size):
    return int(np.prod(size, dtype=np.int64)) if size is not None else 1


def _units(count, dtype, seed, digits=24):
    """Returns uniform numbers in [0, 1): float64, or float32 with a number of random bits for narrower dtypes."""
    if dtype == np.float64:
        return np.array([(w >> 11) * 2.0**-53 for w in _pairs(_words(count, 2, seed))])[:count]
    return np.array([(w >> 32 - digits) * 2.0**-digits for w in _words(count, 4, seed)], np.float32)[:count]


def _digits(dtype):
    """Returns the number of random bits of a uniform number that is not float64: the digits of the dtype."""
    return {"float16": 11, "bfloat16": 8}.get(dtype.name, 24)


def _below(high, dtype):
    """Returns the largest number of `dtype` below `high`."""
    if dtype.name != "bfloat16":
        return np.nextafter(dtype.type(high), dtype.type(-np.inf))
    bits = int(np.array(high, dtype).view(np.uint16))
    below = 0x8001 if bits in (0, 0x8000) else bits - 1 if bits < 0x8000 else bits + 1
    return np.array(below, np.uint16).view(dtype)[()]


def _shaped(values, size):
    return values.reshape(() if size is None else size)


def random(size=None, dtype="float64", seed=0):
    dtype = np.dtype(dtype)
    return _shaped(_units(_count(size), dtype, seed, _digits(dtype)).astype(dtype), size)


def uniform(low=0.0, high=1.0, size=None, dtype="float64", seed=0):
    dtype = np.dtype(dtype)
    u = _units(_count(size), dtype, seed, _digits(dtype))
    scaled = u.dtype.type(low) + u * u.dtype.type(high - low)
    return _shaped(np.minimum(scaled, u.dtype.type(_below(high, dtype))).astype(dtype), size)


def integers(low, high=None, size=None, dtype="int64", endpoint=False, seed=0):
    low, high = (0, low) if high is None else (low, high)
    span = high - low + bool(endpoint)
    digits = [w << 64 for w in _pairs(_words(_count(size), 2, seed))]
    if span > 1 << 32:
        digits = [w | further for w, further in zip(digits, _pairs(_words(_count(size), 2, seed, 1 << 63)))]
    values = [low + (w * span >> 128) for w in digits]
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

# ---- linear algebra: NumPy in double precision, with the scale of the error of each result ----


def _double(x):
    if not isinstance(x, (np.ndarray, np.generic, list)):
        return x
    if isinstance(x, list):
        return [_double(item) for item in x]
    return np.asarray(x).astype(np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64)


def _in_double(function, scale):
    """Returns `function` in double precision. `scale` returns the scale of the error, from the arguments."""

    def wide(*args, wide=False, **keywords):
        return function(*map(_double, args), **keywords)

    wide.__name__ = function.__name__
    wide.scaled = lambda *args, **keywords: scale(*map(_double, args), **keywords)
    return wide


def _magnitude(a):
    """Returns the largest singular value of each matrix, with axes to broadcast."""
    return np.linalg.norm(a, 2, (-2, -1), keepdims=True)


def _solve_scale(a, b):
    """The componentwise bound of Skeel."""
    x = np.abs(np.linalg.solve(a, b))
    column = b.ndim == 1
    x, b = (x[..., None], np.abs(b)[..., None]) if column else (x, np.abs(b))
    scale = np.abs(np.linalg.inv(a)) @ (np.abs(a) @ x + b)
    return scale[..., 0] if column else scale


def _inv_scale(a):
    inverse = np.abs(np.linalg.inv(a))
    return inverse @ np.abs(a) @ inverse


def _det_scale(a):
    """Hadamard's bound."""
    return a.shape[-1] * np.prod(np.linalg.norm(a, axis=-1), axis=-1)


def _condition(a, *_, **__):
    return np.linalg.cond(a)


def _times_condition(function):
    def scale(a, *args, **keywords):
        result = function(a, *args, **keywords)
        first = np.asarray(result[0] if isinstance(result, tuple) else result)
        condition = np.asarray(np.linalg.cond(a))
        largest = np.max(np.abs(first)) * np.max(condition) ** 2 if first.size else 0.0
        one = lambda r: np.full(np.shape(r), largest)  # noqa: E731
        return tuple(map(one, result)) if isinstance(result, tuple) else one(result)

    return scale


def _norm_scale(function):
    def scale(*args, **keywords):
        result = function(*args, **keywords)
        largest = max(np.max(np.abs(x)) * np.sqrt(np.size(x)) for x in args if isinstance(x, np.ndarray))
        one = lambda r: np.full(np.shape(r), largest)  # noqa: E731
        return tuple(map(one, result)) if isinstance(result, tuple) else one(result)

    return scale


def _product_scale(function):
    def scale(*args, **keywords):
        positive = [[np.abs(x) for x in a] if isinstance(a, list) else np.abs(a) if isinstance(a, np.ndarray) else a for a in args]
        return function(*positive, **keywords)

    return scale


def _lstsq_scale(a, b):
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    x_scale = np.full(x.shape, np.max(np.abs(x)) * np.linalg.cond(a) ** 2)
    return x_scale, np.full(residuals.shape, np.sum(np.abs(b) ** 2)), 0.0, np.full(s.shape, s[0])


def _power_scale(a, n):
    return np.linalg.matrix_power(np.abs(a if n >= 0 else np.linalg.inv(a)), abs(n)) * (1 if n >= 0 else np.max(np.linalg.cond(a)))


def _tensor_scale(function):
    def scale(a, *args, **keywords):
        result = function(a, *args, **keywords)
        return np.full(np.shape(result), np.max(np.abs(result)) * np.linalg.cond(a.reshape(4, 4)) * 4)

    return scale


LINALG = {
    "linalg.solve": _in_double(np.linalg.solve, _solve_scale),
    "linalg.inv": _in_double(np.linalg.inv, _inv_scale),
    "linalg.det": _in_double(np.linalg.det, _det_scale),
    "linalg.slogdet": _in_double(np.linalg.slogdet, lambda a: (_condition(a), _condition(a))),
    "linalg.svd": _in_double(np.linalg.svd, _norm_scale(np.linalg.svd)),
    "linalg.pinv": _in_double(np.linalg.pinv, _times_condition(np.linalg.pinv)),
    "linalg.lstsq": _in_double(np.linalg.lstsq, _lstsq_scale),
    "linalg.cond": _in_double(np.linalg.cond, lambda a, *_: _condition(a) ** 2 * np.sqrt(a.shape[-1])),
    "linalg.cholesky": _in_double(np.linalg.cholesky, lambda a, **_: np.sqrt(_magnitude(a)) * np.ones(a.shape) * np.max(np.linalg.cond(a))),
    "linalg.matrix_power": _in_double(np.linalg.matrix_power, _power_scale),
    "linalg.multi_dot": _in_double(np.linalg.multi_dot, _product_scale(np.linalg.multi_dot)),
    "linalg.tensorinv": _in_double(np.linalg.tensorinv, _tensor_scale(np.linalg.tensorinv)),
    "linalg.tensorsolve": _in_double(np.linalg.tensorsolve, _tensor_scale(np.linalg.tensorsolve)),
    **{
        f"linalg.{f.__name__}": _in_double(f, _norm_scale(f))
        for f in (np.linalg.svdvals, np.linalg.eigvalsh, np.linalg.eigh, np.linalg.norm, np.linalg.matrix_norm)
    },
}


def _exponential(a):
    """Returns exp of square matrices: the Taylor series after 20 halvings, squared as often, in extended precision."""
    a = np.asarray(a).astype(np.clongdouble if np.asarray(a).dtype.kind == "c" else np.longdouble) / 2**20
    term = total = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for n in range(1, 25):
        term = term @ a / n
        total = total + term
    for _ in range(20):
        total = total @ total
    return total


def expm(a, wide=False):
    return _exponential(a) if wide else _exponential(a).astype(np.asarray(a).dtype)


expm.scaled = lambda a: np.ones(np.shape(a)) * _magnitude(_double(_exponential(a))) * (1 + _magnitude(_double(a)))


def _matrix_function(function):
    """Returns a function of square matrices, computed in double precision, and its scale of errors."""

    def apply(a, wide=False):
        result = function(_double(a))
        is_single = np.asarray(a).dtype in (np.float32, np.complex64)
        narrow = np.complex64 if result.dtype.kind == "c" else np.float32
        return result.astype(narrow) if is_single and not wide else result

    def scaled(a):
        result = np.abs(function(_double(a)))
        return np.ones(result.shape) * np.max(result) * np.max(np.linalg.cond(_double(a)))

    apply.scaled = scaled
    return apply


sqrtm, logm = _matrix_function(scipy.linalg.sqrtm), _matrix_function(scipy.linalg.logm)
sqrtm.__name__, logm.__name__ = "sqrtm", "logm"


def cross_product(a, b, wide=False):
    return np.linalg.cross(_double(a), _double(b)) if wide else np.linalg.cross(a, b)


cross_product.scaled = lambda a, b: np.full(3, np.max(np.abs(a)) * np.max(np.abs(b)) * 2)


class _Transform:
    """A Fourier transform, with an extended precision and a bound of the magnitudes of its results."""

    def __init__(self, function):
        self.function = function

    def __call__(self, a, *args, wide=False, **keywords):
        # NumPy rounds the factor of float16 arrays to float16.
        is_wide = wide and np.asarray(a).dtype != np.float16
        return self.function(self.widest(a) if is_wide else a, *args, **keywords)

    @staticmethod
    def widest(a):
        a = np.asarray(a)
        return a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)

    def scaled(self, a, *args, **keywords):
        result = np.abs(self.function(np.abs(self.widest(a)), *args, **keywords))
        return np.full(result.shape, result.max(initial=0))


def _trigonometric(kind, inverse):
    """Returns the discrete cosine or sine transform as a product with its matrix (`scipy.fft.dct`)."""

    def function(x, type=2, n=None, axis=-1, norm=None):
        x = np.asarray(x)
        real = np.float32 if x.dtype in (np.float16, np.float32, np.complex64) or x.dtype.kind == "V" else np.float64
        real = np.longdouble if x.dtype in (np.longdouble, np.clongdouble) else real
        rows = np.moveaxis(_Transform.widest(x), axis, -1)
        n = rows.shape[-1] if n is None else n
        rows = np.concatenate([rows[..., :n], np.zeros((*rows.shape[:-1], max(0, n - rows.shape[-1])))], -1)
        if n < 1 or (kind == "cos" and type == 1 and n < 2) or norm not in (None, "backward", "ortho", "forward"):
            raise ValueError("length or norm")
        pi, one = np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16), np.longdouble(1)
        k, j = np.arange(n, dtype=np.longdouble)[:, None], np.arange(n, dtype=np.longdouble)
        wave = np.cos if kind == "cos" else np.sin
        shift = 0 if kind == "cos" else 1
        type = {2: 3, 3: 2}.get(type, type) if inverse else type
        length = 2 * (n - 1 + 2 * shift) if type == 1 else 2 * n
        phase = {
            1: lambda: (k + shift) * (j + shift) * 2 / length,
            2: lambda: (k + shift) * (2 * j + 1) / length,
            3: lambda: (2 * k + 1) * (j + shift) / length,
            4: lambda: (2 * k + 1) * (2 * j + 1) / (2 * length),
        }[type]()
        matrix = 2 * wave(pi * phase)
        ends = [0, -1] if type == 1 else [-shift]
        before = type == 3 or (type == 1 and kind == "cos")
        after = type == 2 or (type == 1 and kind == "cos")
        if before:
            for end in ends:
                matrix[:, end] /= 2
        if norm == "ortho":
            matrix /= np.sqrt(length * one)
            if before:
                matrix[:, ends] *= np.sqrt(2 * one)
            if after:
                matrix[ends] /= np.sqrt(2 * one)
        elif (norm == "forward") != inverse:
            matrix /= length
        result = np.moveaxis(rows @ matrix.T, -1, axis)
        return result.astype(np.result_type(real, np.complex64) if result.dtype.kind == "c" else real)

    return function


def _fftconvolve(a, b, mode="full", axes=None, wide=False):
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != b.ndim:
        raise ValueError("numbers of axes")
    axes = range(a.ndim) if axes is None else [x % a.ndim for x in np.atleast_1d(axes)]
    shape = [m + n - 1 if x in axes else max(m, n) for x, (m, n) in enumerate(zip(a.shape, b.shape))]
    if 0 in (a.size, b.size):
        return np.array([])
    number = np.clongdouble if "c" in (a.dtype.kind, b.dtype.kind) else np.longdouble
    result = np.zeros(shape, number)
    for index in np.ndindex(*[n if x in axes else 1 for x, n in enumerate(b.shape)]):
        place = tuple(slice(i, i + a.shape[x]) if x in axes else slice(None) for x, i in enumerate(index))
        part = tuple(slice(i, i + 1) if x in axes else slice(None) for x, i in enumerate(index))
        result[place] += a.astype(number) * b[part].astype(number)
    swapped = mode == "valid" and any(a.shape[x] < b.shape[x] for x in axes)
    if swapped and any(a.shape[x] > b.shape[x] for x in axes):
        raise ValueError("for 'valid', one array must be at least as large as the other along every axis")
    if swapped:
        a, b = b, a
    size = {"full": lambda m, n: m + n - 1, "same": lambda m, n: m, "valid": lambda m, n: m - n + 1}[mode]
    for x in axes:
        length = size(a.shape[x], b.shape[x])
        start = (result.shape[x] - length) // 2
        result = result[(slice(None),) * x + (slice(start, start + length),)]
    small = {"float16", "bfloat16", "float32", "complex64"}
    narrow = {a.dtype.name, b.dtype.name} <= small
    kind = result.dtype.kind
    return result if wide else result.astype({"f": np.float32, "c": np.complex64}[kind] if narrow else {"f": np.float64, "c": np.complex128}[kind])


# The error of a product of transforms follows the norms of both arrays, not the single sums.
_fftconvolve.scaled = lambda a, b, *args, **keywords: np.full(
    _fftconvolve(a, b, *args, **keywords).shape, np.linalg.norm(np.ravel(_Transform.widest(a))) * np.linalg.norm(np.ravel(_Transform.widest(b)))
)


def _next_fast_len(target, real=False):
    if target < 1:
        raise ValueError("target length must be positive")
    primes = (2, 3, 5) if real else (2, 3, 5, 7, 11)
    while True:
        rest = target
        for p in primes:
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return target
        target += 1


_TRANSFORMS = {name: getattr(np.fft, name) for name in np.fft.__all__ if "fft" in name and "freq" not in name and "shift" not in name}
_TRANSFORMS |= {"dct": _trigonometric("cos", False), "idct": _trigonometric("cos", True)}
_TRANSFORMS |= {"dst": _trigonometric("sin", False), "idst": _trigonometric("sin", True)}
FFT = types.SimpleNamespace(
    **{**vars(np.fft), **{name: _Transform(f) for name, f in _TRANSFORMS.items()}},
    next_fast_len=_next_fast_len,
    fftconvolve=_fftconvolve,
)

OURS = (expm, sqrtm, logm, cross_product, saturate, int_power, segment_sum, segment_prod, segment_min, segment_max, segment_sort, segment_argsort, descending_places, topk, weighted_bincount, even_edges, cummax, cummin, scatter)
FUNCTIONS = {f.__name__: f for f in (*OURS, random, uniform, integers, normal, standard_normal)} | {"fft": FFT, "sparse": scipy.sparse}
