"""The CPU suite of `workloads` in NumPy, numexpr, PyTorch or JAX (jitted): one JSON line per workload, on all cores.

    python3 cpu.py --peer numpy|numexpr|torch|jax [--suite cpu|scale] [--only add,sum] [--seconds 0.5] [--list]

`us` is the median and `min_us` the minimum time of a call including its evaluation. Creating the inputs is not timed.
A workload that a peer does not support prints a line with an `error`.
"""
import functools
import os
import time

import lines
import numpy as np

parser = lines.options(__doc__, ["numpy", "numexpr", "torch", "jax"])
parser.add_argument("--suite", default="cpu", choices=["cpu", "scale"])
parser.add_argument("--seconds", type=float, default=0.5)
args = parser.parse_args()

N = 1 << 24
random = np.random.default_rng(0)


def uniform(*shape, dtype=np.float32):
    return lambda: random.random(shape, dtype=dtype)


f32 = uniform
f64 = functools.partial(uniform, dtype=np.float64)


def complexes(*shape, dtype=np.complex128):
    return lambda: (random.random(shape) + 1j * random.random(shape)).astype(dtype)


def integers(high, count, dtype=np.int64):
    return lambda: random.integers(0, high, count).astype(dtype)


def with_nans(*shape):
    def make():
        a = random.random(shape, dtype=np.float32)
        a[a < 0.1] = np.nan
        return a

    return make


def mask():
    """A mask of half of N elements."""
    return np.random.default_rng(1).random(N, dtype=np.float32) > 0.5


class Peer:
    """The operations of NumPy, which the other peers override."""

    xp = np

    def array(self, values):
        return values

    def call(self, function):
        return function

    def wait(self, result):
        return result

    def special(self):
        import scipy.special

        return scipy.special

    def bessel_j0(self, a):
        return self.special().j0(a)

    def total(self, a, axis=None):
        return a.sum(axis=axis)

    def largest(self, a, axis=None):
        return a.max(axis=axis)

    def variance(self, a, axis):
        return a.var(axis=axis)

    def layer_norm(self, a, gamma, beta):
        return (a - a.mean(-1, keepdims=True)) / self.xp.sqrt(a.var(-1, keepdims=True) + 1e-5) * gamma + beta

    def transposed_copy(self, a):
        return self.xp.ascontiguousarray(a.T)

    def histogram(self, a):
        return self.xp.histogram(a, bins=256, range=(0, 1))[0]

    def sort(self, a):
        return self.xp.sort(a)

    def concatenate(self, a, b):
        return self.xp.concatenate([a, b])

    def in_place(self, function):
        """Makes a call of a function that writes to its first argument."""
        return function

    def assign_inner(self, a, values):
        a[1:-1, 1:-1] = values

    def assign_every_other(self, a, values):
        a[::2] = values

    def assign_masked(self, a, chosen):
        a[chosen] = 0

    def assign_masked_values(self, a, chosen, values):
        a[chosen] = values

    def scatter_add(self, a, indices, values):
        np.add.at(a, indices, values)

    def put(self, a, indices, values):
        np.put(a, indices, values)

    def pad(self, a):
        return self.xp.pad(a, 1)

    def pad_reflected(self, a):
        return self.xp.pad(a, 3, mode="reflect")

    def repeat(self, a):
        return self.xp.repeat(a, 4)

    def median(self, a, axis=None):
        return self.xp.median(a, axis=axis)

    def percentile(self, a):
        return self.xp.percentile(a, self.xp.asarray([5.0, 50.0, 95.0]))

    def nanmean(self, a, axis=None):
        return self.xp.nanmean(a, axis=axis)

    def convolve(self, a, window):
        return self.xp.convolve(a, window)

    def take_along_axis(self, a, indices):
        return self.xp.take_along_axis(a, indices, axis=1)

    def select(self, a):
        return self.xp.select([a < 0.25, a < 0.5], [a, a * 2], a * 3)

    def isin(self, a, b):
        return self.xp.isin(a, b)

    interp = property(lambda self: self.xp.interp)
    intersect1d = property(lambda self: self.xp.intersect1d)

    def random(self):
        return random.random(N // 2)

    def normal(self):
        return random.standard_normal(N // 2)


class Torch(Peer):
    def __init__(self):
        import torch

        torch.set_num_threads(os.cpu_count())
        torch.set_grad_enabled(False)
        self.xp = torch

    def array(self, values):
        return self.xp.from_numpy(values)

    def special(self):
        return self.xp.special

    def bessel_j0(self, a):
        return self.xp.special.bessel_j0(a)

    def total(self, a, axis=None):
        return a.sum() if axis is None else a.sum(dim=axis)

    def largest(self, a, axis=None):
        return a.amax() if axis is None else a.amax(dim=axis)

    def variance(self, a, axis):
        return a.var(dim=axis, correction=0)

    def layer_norm(self, a, gamma, beta):
        return self.xp.nn.functional.layer_norm(a, gamma.shape, gamma, beta)

    def transposed_copy(self, a):
        return a.T.contiguous()

    def histogram(self, a):
        return self.xp.histc(a, 256, 0, 1)

    def sort(self, a):
        return self.xp.sort(a)[0]

    def concatenate(self, a, b):
        return self.xp.cat([a, b])

    def assign_masked(self, a, chosen):
        a.masked_fill_(chosen, 0)

    def assign_masked_values(self, a, chosen, values):
        a.masked_scatter_(chosen, values)

    def scatter_add(self, a, indices, values):
        a.index_add_(0, indices, values)

    def put(self, a, indices, values):
        a.put_(indices, values)

    def pad(self, a):
        return self.xp.nn.functional.pad(a, (1, 1, 1, 1))

    def pad_reflected(self, a):
        return self.xp.nn.functional.pad(a[None], (3, 3, 3, 3), mode="reflect")[0]

    def repeat(self, a):
        return self.xp.repeat_interleave(a, 4)

    def median(self, a, axis=None):
        return self.xp.median(a) if axis is None else self.xp.median(a, dim=axis)[0]  # the lower of two middle elements

    def percentile(self, a):
        return self.xp.quantile(a, self.xp.tensor([0.05, 0.5, 0.95]))

    def nanmean(self, a, axis=None):
        return self.xp.nanmean(a, dim=axis)

    def convolve(self, a, window):
        return self.xp.nn.functional.conv1d(a[None, None], window.flip(0)[None, None], padding=len(window) - 1)[0, 0]

    def take_along_axis(self, a, indices):
        return self.xp.gather(a, 1, indices)

    def select(self, a):
        return self.xp.where(a < 0.25, a, self.xp.where(a < 0.5, a * 2, a * 3))

    interp = intersect1d = None

    def random(self):
        return self.xp.rand(N // 2, dtype=self.xp.float64)

    def normal(self):
        return self.xp.randn(N // 2, dtype=self.xp.float64)


class Jax(Peer):
    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp = jax, jax.numpy

    def special(self):
        import jax.scipy.special

        return jax.scipy.special

    # JAX has no J0.
    bessel_j0 = None

    def array(self, values):
        return self.xp.asarray(values)

    def call(self, function):
        return function if hasattr(function, "is_jitted") else self.jax.jit(function)

    def wait(self, result):
        return self.jax.block_until_ready(result)

    def transposed_copy(self, a):
        return self.xp.copy(a.T)

    def in_place(self, function):
        donating, state = self.jax.jit(function, donate_argnums=0), []

        def call(a, *values):
            state[:] = [donating(*(state or [a]), *values)]
            return state[0]

        call.is_jitted = True
        return call

    def assign_inner(self, a, values):
        return a.at[1:-1, 1:-1].set(values)

    def assign_every_other(self, a, values):
        return a.at[::2].set(values)

    def assign_masked(self, a, chosen):
        return self.xp.where(chosen, 0, a)

    assign_masked_values = None

    def isin(self, a, b):
        return self.xp.isin(a, b, method="binary_search")  # the default needs memory for each pair

    def scatter_add(self, a, indices, values):
        return a.at[indices].add(values)

    def put(self, a, indices, values):
        return a.at[indices].set(values)

    intersect1d = None

    def random(self):
        return self.jax.random.uniform(self.jax.random.key(0), (N // 2,), dtype="float64")

    def normal(self):
        return self.jax.random.normal(self.jax.random.key(0), (N // 2,), dtype="float64")


def chain10(a):
    return ((((((((((a + 1) * 2) - 3) * a) + a) * 0.5) - a) * a) + 1) * 2)


def softmax(p):
    def rows(a):
        e = p.xp.exp(a - p.largest(a, -1)[:, None])
        return e / p.total(e, -1)[:, None]

    return rows


def norms(p):
    return lambda a: p.xp.sqrt(p.total(a**2, -1))


def table(p):
    """Rows: name, call, inputs, and the bytes or floating-point operations that limit the call."""
    xp, square, half = p.xp, f32(4096, 4096), N // 2

    def gb(count):
        return {"bytes": count}

    def flop(count):
        return {"flops": count}

    def in_place(function):
        return function and p.in_place(function)

    add = lambda a, b: a + b
    product = lambda a, b: a @ b
    return [
        ("add_small_f32_1k", add, [f32(1024), f32(1024)], {}),
        ("chain10_small_f32_1k", chain10, [f32(1024)], {}),
        ("add_f32_16M", add, [f32(N), f32(N)], gb(12 * N)),
        ("add_i32_16M", add, [integers(99, N, np.int32), integers(99, N, np.int32)], gb(12 * N)),
        ("sin_f64_1M", lambda a: xp.sin(a), [f64(10**6)], {}),
        ("sin_f32_16M", lambda a: xp.sin(a), [f32(N)], gb(8 * N)),
        ("exp_f32_16M", lambda a: xp.exp(a), [f32(N)], gb(8 * N)),
        ("log_f64_8M", lambda a: xp.log(a + 1), [f64(half)], gb(8 * N)),
        ("tanh_f32_16M", lambda a: xp.tanh(a), [f32(N)], gb(8 * N)),
        ("erf_f64_8M", lambda a: p.special().erf(a), [f64(half)], gb(8 * N)),
        ("gammaln_f64_1M", lambda a: p.special().gammaln(a), [f64(10**6)], {}),
        ("j0_f64_1M", p.bessel_j0, [f64(10**6)], {}),
        ("pow_f64_8M", lambda a, b: a**b, [f64(half), f64(half)], gb(12 * N)),
        ("sqrt_f32_16M", lambda a: xp.sqrt(a), [f32(N)], gb(8 * N)),
        ("chain10_f32_16M", chain10, [f32(N)], gb(8 * N)),
        ("gauss_f64_8M", lambda a: xp.exp(-(a * a) / 2) / 2.5066282746, [f64(half)], gb(8 * N)),
        ("where_f32_16M", lambda a, b: xp.where(a > b, a, b * 2), [f32(N), f32(N)], gb(12 * N)),
        ("bcast_add_f32_4k", add, [f32(4096, 1), f32(1, 4096)], gb(4 * N)),
        ("add_transposed_f32_4k", lambda a, b: a + b.T, [square, square], gb(12 * N)),
        ("transpose_copy_f32_4k", p.transposed_copy, [square], gb(8 * N)),
        ("sum_256cube_f32", lambda a: p.total(a), [f32(256, 256, 256)], gb(4 * N)),
        ("sum_axis0_f32_4k", lambda a: p.total(a, 0), [square], gb(4 * N)),
        ("sum_axis1_f32_4k", lambda a: p.total(a, 1), [square], gb(4 * N)),
        ("max_f32_16M", lambda a: p.largest(a), [f32(N)], gb(4 * N)),
        ("argmax_f32_16M", lambda a: xp.argmax(a), [f32(N)], gb(4 * N)),
        ("var_axis1_f32_4k", lambda a: p.variance(a, 1), [square], gb(4 * N)),
        ("norm_rows_f64_256x1024", norms(p), [f64(256, 1024)], {}),
        ("norm_rows_f32_4k", norms(p), [square], gb(4 * N)),
        ("softmax_rows_f32_4k", softmax(p), [square], gb(8 * N)),
        ("layer_norm_f32_4k", p.layer_norm, [square, f32(4096), f32(4096)], gb(8 * N)),
        ("cumsum_f32_16M", lambda a: xp.cumsum(a, 0), [f32(N)], gb(8 * N)),
        ("cumsum_axis0_f32_4k", lambda a: xp.cumsum(a, 0), [square], gb(8 * N)),
        ("histogram_f32_16M_256", p.histogram, [f32(N)], gb(4 * N)),
        ("sort_f32_16M", p.sort, [f32(N)], {}),
        ("argsort_f32_4M", lambda a: xp.argsort(a), [f32(N // 4)], {}),
        ("unique_i64_4M", lambda a: xp.unique(a), [integers(1 << 20, N // 4)], {}),
        ("take_random_f32_8M", lambda a, i: a[i], [f32(N), integers(N, half)], {}),
        ("mask_f32_16M", lambda a: a[a > 0.5], [f32(N)], {}),
        ("concat_f32_2x8M", p.concatenate, [f32(half), f32(half)], gb(8 * N)),
        ("matmul_f64_1000", product, [f64(1000, 1000), f64(1000, 1000)], flop(2 * 1000**3)),
        ("matmul_f32_2048", product, [f32(2048, 2048), f32(2048, 2048)], flop(2 * 2048**3)),
        ("matmul_batched_f32_64x128", product, [f32(64, 128, 128), f32(64, 128, 128)], flop(2 * 64 * 128**3)),
        ("matvec_f32_8k", product, [f32(8192, 8192), f32(8192)], gb(4 * 8192**2)),
        ("einsum_bij_bjk_f32", lambda a, b: xp.einsum("abcd,dcef->abef", a, b), [f32(32, 32, 32, 32)] * 2, flop(2 * 32**6)),
        ("fft_f64_1M", lambda a: xp.fft.fft(a), [f64(1 << 20)], {}),
        ("fft_c128_1M", lambda a: xp.fft.fft(a), [complexes(1 << 20)], {}),
        ("fft_f64_1e6", lambda a: xp.fft.fft(a), [f64(1_000_000)], {}),
        ("fft_f64_prime_999983", lambda a: xp.fft.fft(a), [f64(999_983)], {}),
        ("fft2_c128_1k", lambda a: xp.fft.fft2(a), [f64(1024, 1024)], {}),
        ("rfft_f32_batch_4k", lambda a: xp.fft.rfft(a), [square], {}),
        ("fft_axis0_c64_4k", lambda a: xp.fft.fft(a, None, 0), [complexes(4096, 4096, dtype="complex64")], {}),
        ("fftn_c128_128cube", lambda a: xp.fft.fftn(a), [complexes(128, 128, 128)], {}),
        ("argmax_axis0_f32_4k", lambda a: xp.argmax(a, 0), [square], gb(4 * N)),
        ("assign_slice_f32_4k", in_place(p.assign_inner), [square, f32(4094, 4094)], gb(8 * 4094**2)),
        ("assign_strided_f32_16M", in_place(p.assign_every_other), [f32(N), f32(half)], gb(6 * N)),
        ("assign_mask_f32_16M", in_place(p.assign_masked), [f32(N), mask], gb(9 * N)),
        ("assign_mask_values_f32_16M", in_place(p.assign_masked_values), [f32(N), mask, lambda: uniform(int(mask().sum()))()], gb(11 * N)),
        ("scatter_add_f32_4M_into_1M", in_place(p.scatter_add), [f32(1 << 20), integers(1 << 20, N // 4), f32(N // 4)], {}),
        ("scatter_add_rows_f32_64kx128", in_place(p.scatter_add), [f32(1 << 14, 128), integers(1 << 14, 1 << 16), f32(1 << 16, 128)], {}),
        ("put_f32_4M_into_16M", in_place(p.put), [f32(N), integers(N, N // 4), f32(N // 4)], {}),
        ("pad_f32_4k", p.pad, [square], gb(8 * N)),
        ("pad_reflect_f32_4k", p.pad_reflected, [square], gb(8 * N)),
        ("roll_f32_4k", lambda a: xp.roll(a, (1, 1), (0, 1)), [square], gb(8 * N)),
        ("repeat_f32_4M_4", p.repeat, [f32(N // 4)], gb(5 * N)),
        ("tile_f32_2k_2x2", lambda a: xp.tile(a, (2, 2)), [f32(2048, 2048)], gb(5 * N)),
        ("median_f32_16M", p.median, [f32(N)], {}),
        ("median_axis1_f32_4k", lambda a: p.median(a, 1), [square], {}),
        ("percentile_f32_16M", p.percentile, [f32(N)], {}),
        ("nanmean_f32_16M", p.nanmean, [with_nans(N)], gb(4 * N)),
        ("nanmean_axis1_f32_4k", lambda a: p.nanmean(a, 1), [with_nans(4096, 4096)], gb(4 * N)),
        ("diff_f32_16M", lambda a: xp.diff(a), [f32(N)], gb(8 * N)),
        ("convolve_f32_4M_64", p.convolve, [f32(N // 4), f32(64)], flop(32 * N)),
        ("interp_f64_4M_1000", p.interp, [f64(N // 4), lambda: np.linspace(0, 1, 1000), f64(1000)], {}),
        ("isin_i64_4M_10k", p.isin, [integers(1 << 20, N // 4), integers(1 << 20, 10_000)], {}),
        ("take_along_axis_f32_4k", p.take_along_axis, [square, integers(4096, (4096, 4096))], gb(16 * N)),
        ("select_f32_16M", p.select, [f32(N)], gb(8 * N)),
        ("cov_f64_64x128k", lambda a: xp.cov(a), [f64(64, N // 128)], flop(2 * 64 * 64 * N // 128)),
        ("intersect1d_i64_2x1M", p.intersect1d, [integers(1 << 20, N // 16), integers(1 << 20, N // 16)], {}),
        ("random_f64_8M", p.random, [], {}),
        ("normal_f64_8M", p.normal, [], {}),
        ("solve_f64_1000", lambda a, b: xp.linalg.solve(a, b), [f64(1000, 1000), f64(1000, 8)], {}),
        ("svd_f64_500", lambda a: xp.linalg.svd(a), [f64(500, 500)], {}),
        ("eigh_f64_500", lambda a: xp.linalg.eigh(a @ a.T), [f64(500, 500)], {}),
    ]


def scale_table(p):
    """Rows of the suite `scale`: ten functions at sizes from 2^8 to 2^30."""
    rows = []
    for power in range(8, 31, 2):
        n, square = 1 << power, f32(1 << power // 2, 1 << power // 2)
        rows += [
            (f"add_f32_2^{power}", lambda a, b: a + b, [f32(n), f32(n)], {"bytes": 12 * n}),
            (f"exp_f32_2^{power}", lambda a: p.xp.exp(a), [f32(n)], {"bytes": 8 * n}),
            (f"chain10_f32_2^{power}", chain10, [f32(n)], {"bytes": 8 * n}),
            (f"sum_f32_2^{power}", lambda a: p.total(a), [f32(n)], {"bytes": 4 * n}),
            (f"cumsum_f32_2^{power}", lambda a: p.xp.cumsum(a, 0), [f32(n)], {"bytes": 8 * n}),
            (f"sort_f32_2^{power}", p.sort, [f32(n)], {}),
            # Sizes that depend on values cannot be compiled by JAX.
            (f"mask_f32_2^{power}", None if args.peer == "jax" else lambda a: a[a > 0.5], [f32(n)], {}),
            (f"take_f32_2^{power}", lambda a, i: a[i], [f32(n), integers(n, n)], {}),
            (f"transpose_f32_2^{power}", p.transposed_copy, [square], {"bytes": 8 * n}),
            (f"matmul_f32_2^{power}", lambda a, b: a @ b, [square, square], {"flops": 2 * (1 << power // 2) ** 3}),
        ]
    return rows


def numexpr_table():
    """Rows for numexpr, which has only elementwise expressions. For the suite `cpu`."""
    import numexpr

    numexpr.set_num_threads(os.cpu_count())

    def row(name, expression, inputs, moved):
        return name, (lambda *x: numexpr.evaluate(expression, dict(zip("ab", x)))), inputs, {"bytes": moved}

    return [
        row("add_f32_16M", "a + b", [f32(N), f32(N)], 12 * N),
        row("sin_f32_16M", "sin(a)", [f32(N)], 8 * N),
        row("exp_f32_16M", "exp(a)", [f32(N)], 8 * N),
        row("chain10_f32_16M", "((((((((((a + 1) * 2) - 3) * a) + a) * 0.5) - a) * a) + 1) * 2)", [f32(N)], 8 * N),
        row("gauss_f64_8M", "exp(-(a * a) / 2) / 2.5066282746", [f64(N // 2)], 8 * N),
        row("where_f32_16M", "where(a > b, a, b * 2)", [f32(N), f32(N)], 12 * N),
    ]


def measure(function, inputs, limits):
    arrays = [peer.array(make()) for make in inputs]
    call = peer.call(function)
    peer.wait(call(*arrays))
    peer.wait(call(*arrays))
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        peer.wait(call(*arrays))
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    median = times[len(times) // 2]
    return {"us": round(median, 2), "min_us": round(times[0], 2)} | lines.rates(median, **limits)


peer = {"torch": Torch, "jax": Jax}.get(args.peer, Peer)()
tables = {"cpu": table, "scale": scale_table}
workloads = numexpr_table() if args.peer == "numexpr" else tables[args.suite](peer)
lines.show(args, args.peer, [row for row in workloads if row[1]], measure)  # rows without a call are functions that the peer lacks
