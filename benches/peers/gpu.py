"""The GPU suite of `workloads` in CuPy or PyTorch: one JSON line per workload.

    python3 gpu.py --peer cupy|torch [--suite gpu|scale] [--name cupy-cub] [--only add,sum] [--repeat 20] [--seconds 2] [--list]

`gpu_us` is the median device time between two events, `cpu_us` the median host time of the call, after 5 warm-up calls. Both stop early
after `--seconds`.
CuPy reads CUPY_ACCELERATORS; `--name` labels its settings. A workload that a peer does not support prints a line with an `error`.
"""
import statistics
import time

import lines

parser = lines.options(__doc__, ["cupy", "torch"])
parser.add_argument("--suite", default="gpu", choices=["gpu", "scale", "products"])
parser.add_argument("--compile", action="store_true", help="torch.compile, for the suite `products`")
parser.add_argument("--name", default="")
parser.add_argument("--repeat", type=int, default=20)
parser.add_argument("--seconds", type=float, default=2.0, help="time after which a workload has no further calls, if there was one")
args = parser.parse_args()

N, SIDE = 1 << 27, 11584
SQUARE = SIDE * SIDE


class CuPy:
    """CuPy."""

    def __init__(self):
        import cupy

        self.xp = cupy
        self.norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "own_norm")

    def uniform(self, *shape, dtype="float32"):
        made = self.xp.random.random(shape, dtype="float64" if dtype == "float64" else "float32")
        return made.astype(dtype, copy=False)

    def integers(self, high, count, dtype="int64"):
        return self.xp.random.randint(0, high, count).astype(dtype)

    def event(self):
        event = self.xp.cuda.Event()
        event.record()
        return event

    def elapsed_us(self, before, after):
        after.synchronize()
        return self.xp.cuda.get_elapsed_time(before, after) * 1e3

    def free(self):
        self.xp.get_default_memory_pool().free_all_blocks()

    def extra_bytes(self, call):
        """The memory that one call adds to the pool: result and temporary arrays."""
        pool = self.xp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        call()
        return pool.total_bytes() - before

    erf = None

    def softmax(self, a):
        e = self.xp.exp(a - a.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def relu(self, a):
        return self.xp.maximum(a, 0)

    def sum(self, a, axis=None):
        return a.sum(axis=axis)

    def max(self, a, axis, keepdims=False):
        return a.max(axis=axis, keepdims=keepdims)

    def argmax(self, a, axis=None):
        return a.argmax(axis=axis)

    def var(self, a, axis):
        return a.var(axis=axis)

    def cumsum(self, a, axis):
        return self.xp.cumsum(a, axis=axis)

    def contiguous(self, a):
        return self.xp.ascontiguousarray(a)

    def copy(self, a):
        return a.copy()

    def concat(self, arrays):
        return self.xp.concatenate(arrays)

    def tensordot(self, a, b, axes):
        return self.xp.tensordot(a, b, axes=axes)

    def softmax(self, a):
        e = self.xp.exp(a - a.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def layer_norm(self, a, gamma, beta):
        return (a - a.mean(-1, keepdims=True)) / self.xp.sqrt(a.var(-1, keepdims=True) + 1e-5) * gamma + beta

    def csr(self, rows, per):
        import cupyx.scipy.sparse as sparse

        offsets = self.xp.arange(0, rows * per + 1, per, dtype="int32")
        matrix = sparse.csr_matrix((self.uniform(rows * per), self.integers(rows, rows * per, "int32"), offsets), shape=(rows, rows))
        return matrix.dot

    def topk(self, a, count):
        return self.xp.partition(a, a.size - count)[-count:]

    def segments(self, a, offsets):
        import cupyx.scipy.sparse as sparse

        # Row sums as a product with a vector of ones. Columns are distinct within a row, because equal columns would be merged beforehand.
        columns = self.xp.arange(a.size, dtype="int32") % (1 << 22)
        matrix = sparse.csr_matrix((a, columns, offsets.astype("int32")), shape=(offsets.size - 1, 1 << 22))
        ones = self.xp.ones(1 << 22, dtype=a.dtype)
        return lambda: matrix.dot(ones)

    def normal(self, count):
        return self.xp.random.standard_normal(count, dtype="float32")

    def sort(self, a):
        return self.xp.sort(a)

    def histogram(self, a):
        return self.xp.histogram(a, bins=256, range=(0, 1))[0]

    def fft(self, a):
        return self.xp.fft.fft(a)

    def array(self, values):
        return self.xp.asarray(values)

    def assign_inner(self, a, values):
        a[1:-1, 1:-1] = values

    def assign_every_other(self, a, values):
        a[::2] = values

    def assign_masked(self, a, chosen):
        a[chosen] = 0

    assign_masked_values = None  # CuPy's masks take a single value

    def scatter_add(self, a, indices, values):
        self.xp.add.at(a, indices, values)

    def put(self, a, indices, values):
        self.xp.put(a, indices, values)

    def pad(self, a):
        return self.xp.pad(a, 1)

    def pad_reflected(self, a):
        return self.xp.pad(a, 3, mode="reflect")

    def repeat(self, a):
        return self.xp.repeat(a, 4)

    def median(self, a, axis=None):
        return self.xp.median(a, axis=axis)

    def percentile(self, a, q):
        return self.xp.percentile(a, q)

    def nanmean(self, a, axis=None):
        return self.xp.nanmean(a, axis=axis)

    def convolve(self, a, window):
        return self.xp.convolve(a, window)

    def take_along_axis(self, a, indices):
        return self.xp.take_along_axis(a, indices, axis=1)

    def select(self, a):
        return self.xp.select([a < 0.25, a < 0.5], [a, a * 2], a * 3)

    def interp(self, x, points, values):
        return self.xp.interp(x, points, values)

    def intersect1d(self, a, b):
        return self.xp.intersect1d(a, b)


class Torch(CuPy):
    """PyTorch."""

    def __init__(self):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        self.xp = torch

    def uniform(self, *shape, dtype="float32"):
        made = self.xp.rand(*shape, device="cuda", dtype=self.xp.float64 if dtype == "float64" else self.xp.float32)
        return made.to(getattr(self.xp, dtype))

    def integers(self, high, count, dtype="int64"):
        return self.xp.randint(0, high, count if isinstance(count, tuple) else (count,), device="cuda", dtype=getattr(self.xp, dtype))

    def event(self):
        event = self.xp.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_us(self, before, after):
        after.synchronize()
        return before.elapsed_time(after) * 1e3

    def free(self):
        self.xp.cuda.empty_cache()

    def extra_bytes(self, call):
        self.xp.cuda.synchronize()
        self.xp.cuda.reset_peak_memory_stats()
        before = self.xp.cuda.memory_allocated()
        call()
        self.xp.cuda.synchronize()
        return self.xp.cuda.max_memory_allocated() - before

    def erf(self, a):
        return self.xp.special.erf(a)

    def softmax(self, a):
        return self.xp.softmax(a, dim=-1)

    def relu(self, a):
        return self.xp.relu(a)

    def sum(self, a, axis=None):
        return a.sum() if axis is None else a.sum(dim=axis)

    def max(self, a, axis, keepdims=False):
        return a.amax(dim=axis, keepdim=keepdims)

    def argmax(self, a, axis=None):
        return self.xp.argmax(a, dim=axis)

    def var(self, a, axis):
        return a.var(dim=axis, correction=0)

    def cumsum(self, a, axis):
        return self.xp.cumsum(a, dim=axis)

    def contiguous(self, a):
        return a.contiguous()

    def copy(self, a):
        return a.clone()

    def concat(self, arrays):
        return self.xp.cat(arrays)

    def tensordot(self, a, b, axes):
        return self.xp.tensordot(a, b, dims=axes)

    def softmax(self, a):
        e = self.xp.exp(a - a.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)

    def layer_norm(self, a, gamma, beta):
        return self.xp.nn.functional.layer_norm(a, gamma.shape, gamma, beta)

    def csr(self, rows, per):
        offsets = self.xp.arange(0, rows * per + 1, per, device="cuda", dtype=self.xp.int32)
        columns = self.integers(rows, rows * per, "int32")
        matrix = self.xp.sparse_csr_tensor(offsets, columns, self.uniform(rows * per), size=(rows, rows))
        return lambda x: matrix @ x

    def topk(self, a, count):
        return self.xp.topk(a, count)[0]

    def segments(self, a, offsets):
        return lambda reduction="sum": self.xp.segment_reduce(a, reduction, offsets=offsets)

    def normal(self, count):
        return self.xp.randn(count, device="cuda")

    def sort(self, a):
        return self.xp.sort(a)[0]

    def histogram(self, a):
        return self.xp.histc(a, 256, 0, 1)

    def array(self, values):
        return self.xp.tensor(values, device="cuda")

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

    percentile = None  # torch.quantile takes at most 16 million elements

    def nanmean(self, a, axis=None):
        return self.xp.nanmean(a, dim=axis)

    def convolve(self, a, window):
        return self.xp.nn.functional.conv1d(a[None, None], window.flip(0)[None, None], padding=len(window) - 1)[0, 0]

    def take_along_axis(self, a, indices):
        return self.xp.gather(a, 1, indices)

    def select(self, a):
        return self.xp.where(a < 0.25, a, self.xp.where(a < 0.5, a * 2, a * 3))

    interp = intersect1d = None


peer = {"cupy": CuPy, "torch": Torch}[args.peer]()
xp, R = peer.xp, peer.uniform


def skewed():
    """A million segments: 16 of 4 Mi values, which are half of all, the others of 64 values."""
    segments = 1 << 20
    every = segments // 16
    number = xp.arange(segments + 1, device="cuda") if args.peer == "torch" else xp.arange(segments + 1)
    return (peer.segments(R(N - 1024), number * 64 + (number + every - 1) // every * ((1 << 22) - 64)),)


def complex_numbers(count):
    return (peer.integers(1 << 20, count) + 1j * R(count, dtype="float64"),)


def C(*shape):
    """Complex numbers of 64 bits."""
    return R(*shape) + 1j * R(*shape)


def with_nans(*shape):
    a = R(*shape)
    a[a < 0.1] = float("nan")
    return (a,)


def masked(count, with_values=False):
    """An array, a mask of half of its elements, and a value for each of these."""
    a, chosen = R(count), R(count) > 0.5
    return (a, chosen, a[chosen]) if with_values else (a, chosen)


def scattered(extent, count, *row):
    """An array of `extent` elements or rows, and `count` random indices and values or rows to store in it."""
    return R(extent, *row), peer.integers(extent, count), R(count, *row)


def chain10(a):
    x = ((a + 1) * 2 - 3) * a + a
    return ((x * 0.5 - a) * a + 1) * 2


# Name: function that creates the inputs (not timed), call, bytes, floating-point operations.
WORKS = {
    "add_small_f32_1k": (lambda: (R(1024), R(1024)), lambda a, b: a + b, 0, 0),
    "sum_small_f32_1k": (lambda: (R(1024),), lambda a: peer.sum(a), 0, 0),
    "chain10_small_f32_1k": (lambda: (R(1024),), chain10, 0, 0),
    "copy_f32_128M": (lambda: (R(N),), peer.copy, 8 * N, 0),
    "add_f32_128M": (lambda: (R(N), R(N)), lambda a, b: a + b, 12 * N, 0),
    "add_scalar_f32_128M": (lambda: (R(N),), lambda a: a + 1, 8 * N, 0),
    "sin_f32_128M": (lambda: (R(N),), lambda a: xp.sin(a), 8 * N, 0),
    "sin_f64_64M": (lambda: (R(N // 2, dtype="float64"),), lambda a: xp.sin(a), 8 * N, 0),
    "exp_f16_128M": (lambda: (R(N, dtype="float16"),), lambda a: xp.exp(a), 4 * N, 0),
    "sqrt_f64_64M": (lambda: (R(N // 2, dtype="float64"),), lambda a: xp.sqrt(a), 8 * N, 0),
    "chain10_f32_128M": (lambda: (R(N),), chain10, 8 * N, 0),
    "bcast_add_col_row_f32_11k": (lambda: (R(11585, 1), R(1, 11585)), lambda a, b: a + b, 4 * 11585**2, 0),
    "add_transposed_f32_11k": (lambda: (R(SIDE, SIDE), R(SIDE, SIDE)), lambda a, b: a + b.T, 12 * SQUARE, 0),
    "transpose_copy_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.contiguous(a.T), 8 * SQUARE, 0),
    "sum_256cube_f32": (lambda: (R(256, 256, 256),), lambda a: peer.sum(a), 4 << 24, 0),
    "sum_f32_128M": (lambda: (R(N),), lambda a: peer.sum(a), 4 * N, 0),
    "sum_axis0_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.sum(a, 0), 4 * SQUARE, 0),
    "sum_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.sum(a, 1), 4 * SQUARE, 0),
    "sum_mid_512cube_f32": (lambda: (R(512, 512, 512),), lambda a: peer.sum(a, 1), 4 * N, 0),
    "sum_axis1_thin_4Mx32_f32": (lambda: (R(1 << 22, 32),), lambda a: peer.sum(a, 1), 4 * N, 0),
    "max_axis0_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.max(a, 0), 4 * SQUARE, 0),
    "argmax_f32_128M": (lambda: (R(N),), lambda a: peer.argmax(a), 4 * N, 0),
    "argmax_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.argmax(a, 1), 4 * SQUARE, 0),
    "var_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.var(a, 1), 4 * SQUARE, 0),
    "norm_rows_f64_256x1024": (lambda: (R(256, 1024, dtype="float64"),), lambda a: xp.sqrt(peer.sum(a**2, -1)), 0, 0),
    "norm_rows_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: xp.sqrt(peer.sum(a**2, -1)), 4 * SQUARE, 0),
    "softmax_rows_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.softmax(a), 8 * SQUARE, 0),
    "layer_norm_f32_11k": (lambda: (R(SIDE, SIDE), R(SIDE), R(SIDE)), lambda a, g, b: peer.layer_norm(a, g, b), 8 * SQUARE, 0),
    "cumsum_f32_128M": (lambda: (R(N),), lambda a: peer.cumsum(a, 0), 8 * N, 0),
    "cumsum_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.cumsum(a, 1), 8 * SQUARE, 0),
    "cumsum_axis0_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.cumsum(a, 0), 8 * SQUARE, 0),
    "segment_sum_skewed_f32_128M": (skewed, lambda reduced: reduced(), 4 * N, 0),
    "segment_max_skewed_f32_128M": (skewed, lambda reduced: reduced("max"), 4 * N, 0),
    "own_norm_f32_128M": (lambda: (R(N),), lambda a: peer.norm(a), 4 * N, 0),
    "own_norm_axis0_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.norm(a, axis=0), 4 * SQUARE, 0),
    "own_norm_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.norm(a, axis=1), 4 * SQUARE, 0),
    "take_random_f32_64M": (lambda: (R(N), peer.integers(N, N // 2)), lambda a, i: a[i], 0, 0),
    "concat_f32_2x64M": (lambda: (R(N // 2), R(N // 2)), lambda a, b: peer.concat([a, b]), 8 * N, 0),
    "matmul_f32_4096": (lambda: (R(4096, 4096), R(4096, 4096)), lambda a, b: a @ b, 0, 2 * 4096**3),
    "matmul_f64_1000": (lambda: (R(1000, 1000, dtype="float64"), R(1000, 1000, dtype="float64")), lambda a, b: a @ b, 0, 2 * 1000**3),
    "matmul_f64_4096": (lambda: (R(4096, 4096, dtype="float64"), R(4096, 4096, dtype="float64")), lambda a, b: a @ b, 0, 2 * 4096**3),
    "matmul_f16_8192": (lambda: (R(8192, 8192, dtype="float16"), R(8192, 8192, dtype="float16")), lambda a, b: a @ b, 0, 2 * 8192**3),
    "matmul_batched_f32_512x256": (lambda: (R(512, 256, 256), R(512, 256, 256)), lambda a, b: a @ b, 0, 1024 * 256**3),
    "tensordot_f32_96": (lambda: (R(96, 96, 96, 96), R(96, 96, 96, 96)), lambda a, b: peer.tensordot(a, b, ([2, 3], [1, 0])), 0, 2 * 96**6),
    "einsum_abcd_cdef_f32_64": (lambda: (R(64, 64, 64, 64), R(64, 64, 64, 64)), lambda a, b: xp.einsum("acbd,defc->abef", a, b), 0, 2 * 64**6),
    "spmv_csr_f32_4Mx32": (lambda: (peer.csr(1 << 22, 32), R(1 << 22)), lambda product, x: product(x), (8 * 32 + 12) << 22, 0),
    "normal_f32_128M": (lambda: (), lambda: peer.normal(N), 4 * N, 0),
    "histogram_f32_128M_256": (lambda: (R(N),), lambda a: peer.histogram(a), 4 * N, 0),
    "sort_f32_64M": (lambda: (R(N // 2),), lambda a: peer.sort(a), 0, 0),
    "argsort_f32_64M": (lambda: (R(N // 2),), lambda a: xp.argsort(a), 0, 0),
    "sort_c128_4M": (lambda: complex_numbers(1 << 22), lambda a: peer.sort(a), 0, 0),
    "topk_f32_64M_100": (lambda: (R(N // 2),), lambda a: peer.topk(a, 100), 0, 0),
    "unique_i64_16M": (lambda: (peer.integers(1 << 20, N // 8),), lambda a: xp.unique(a), 0, 0),
    "mask_f32_128M": (lambda: (R(N),), lambda a: a[a > 0.5], 0, 0),
    "fft_c64_batch_4096x16384": (lambda: (R(4096, 16384),), lambda a: peer.fft(a), 0, 0),
    "fft_c64_4096x16384": (lambda: (C(4096, 16384),), lambda a: peer.fft(a), 16 << 26, 0),
    "fft_axis0_c64_4096x16384": (lambda: (C(4096, 16384),), lambda a: xp.fft.fft(a, None, 0), 16 << 26, 0),
    "fft_c64_2p26": (lambda: (C(1 << 26),), lambda a: peer.fft(a), 16 << 26, 0),
    "fft_c64_1000x99991": (lambda: (C(1000, 99_991),), lambda a: peer.fft(a), 0, 0),
    "fft2_c64_8192": (lambda: (C(8192, 8192),), lambda a: xp.fft.fft2(a), 16 << 26, 0),
    "fftn_c64_512": (lambda: (C(512, 512, 512),), lambda a: xp.fft.fftn(a), 16 * N, 0),
    "rfft_f32_4096x16384": (lambda: (R(4096, 16384),), lambda a: xp.fft.rfft(a), 8 << 26, 0),
    "fft_window_f32_4096x16384": (lambda: (R(4096, 16384), R(16384)), lambda a, b: xp.fft.rfft(a * b), 0, 0),
    "argmax_axis0_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.argmax(a, 0), 4 * SQUARE, 0),
    "assign_slice_f32_11k": (lambda: (R(SIDE, SIDE), R(SIDE - 2, SIDE - 2)), peer.assign_inner, 8 * (SIDE - 2) ** 2, 0),
    "assign_strided_f32_128M": (lambda: (R(N), R(N // 2)), peer.assign_every_other, 6 * N, 0),
    "assign_mask_f32_128M": (lambda: masked(N), peer.assign_masked, 9 * N, 0),
    "assign_mask_values_f32_128M": (lambda: masked(N, True), peer.assign_masked_values, 11 * N, 0),
    "scatter_add_f32_32M_into_1M": (lambda: scattered(1 << 20, N // 4), peer.scatter_add, 0, 0),
    "scatter_add_unordered_f32_32M_into_1M": (lambda: scattered(1 << 20, N // 4), peer.scatter_add, 0, 0),
    "scatter_add_unordered_rows_f32_1Mx128": (lambda: scattered(1 << 17, 1 << 20, 128), peer.scatter_add, 0, 0),
    "scatter_add_rows_f32_1Mx128": (lambda: scattered(1 << 17, 1 << 20, 128), peer.scatter_add, 0, 0),
    "put_f32_32M_into_128M": (lambda: scattered(N, N // 4), peer.put, 0, 0),
    "pad_f32_11k": (lambda: (R(SIDE, SIDE),), peer.pad, 8 * SQUARE, 0),
    "pad_reflect_f32_11k": (lambda: (R(SIDE, SIDE),), peer.pad_reflected, 8 * SQUARE, 0),
    "roll_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: xp.roll(a, (1, 1), (0, 1)), 8 * SQUARE, 0),
    "repeat_f32_32M_4": (lambda: (R(N // 4),), peer.repeat, 5 * N, 0),
    "tile_f32_5k_2x2": (lambda: (R(SIDE // 2, SIDE // 2),), lambda a: xp.tile(a, (2, 2)), 5 * SQUARE, 0),
    "median_f32_64M": (lambda: (R(N // 2),), peer.median, 0, 0),
    "median_axis1_f32_11k": (lambda: (R(SIDE, SIDE),), lambda a: peer.median(a, 1), 0, 0),
    "percentile_f32_64M": (lambda: (R(N // 2), peer.array([5.0, 50.0, 95.0])), peer.percentile, 0, 0),
    "nanmean_f32_128M": (lambda: with_nans(N), peer.nanmean, 4 * N, 0),
    "nanmean_axis1_f32_11k": (lambda: with_nans(SIDE, SIDE), lambda a: peer.nanmean(a, 1), 4 * SQUARE, 0),
    "diff_f32_128M": (lambda: (R(N),), lambda a: xp.diff(a), 8 * N, 0),
    "convolve_f32_64M_64": (lambda: (R(N // 2), R(64)), peer.convolve, 0, 64 * N),
    "interp_f64_64M_1000": (lambda: (R(N // 2, dtype="float64"), xp.linspace(0, 1, 1000), R(1000, dtype="float64")), peer.interp, 8 * N, 0),
    "isin_i64_32M_10k": (lambda: (peer.integers(1 << 20, N // 4), peer.integers(1 << 20, 10_000)), lambda a, b: xp.isin(a, b), 0, 0),
    "take_along_axis_f32_11k": (lambda: (R(SIDE, SIDE), peer.integers(SIDE, (SIDE, SIDE))), peer.take_along_axis, 16 * SQUARE, 0),
    "select_f32_128M": (lambda: (R(N),), peer.select, 8 * N, 0),
    "cov_f64_64x1M": (lambda: (R(64, N // 128, dtype="float64"),), lambda a: xp.cov(a), 0, 2 * 64 * 64 * (N // 128)),
    "intersect1d_i64_2x8M": (lambda: (peer.integers(1 << 23, N // 16), peer.integers(1 << 23, N // 16)), peer.intersect1d, 0, 0),
    "solve_f64_4096": (lambda: (R(4096, 4096, dtype="float64"), R(4096, 16, dtype="float64")), lambda a, b: xp.linalg.solve(a, b), 0, 0),
    "svd_f32_1024": (lambda: (R(1024, 1024),), lambda a: xp.linalg.svd(a), 0, 0),
}


def scale_works():
    """Rows of the suite `scale`: ten functions at sizes from 2^8 to 2^30."""
    works = {}
    for power in range(8, 31, 2):
        n, side = 1 << power, 1 << power // 2
        one, two = (lambda n=n: (R(n),)), (lambda n=n: (R(n), R(n)))
        matrix, matrices = (lambda s=side: (R(s, s),)), (lambda s=side: (R(s, s), R(s, s)))
        works |= {
            f"add_f32_2^{power}": (two, lambda a, b: a + b, 12 * n, 0),
            f"exp_f32_2^{power}": (one, lambda a: xp.exp(a), 8 * n, 0),
            f"chain10_f32_2^{power}": (one, chain10, 8 * n, 0),
            f"sum_f32_2^{power}": (one, lambda a: peer.sum(a), 4 * n, 0),
            f"cumsum_f32_2^{power}": (one, lambda a: peer.cumsum(a, 0), 8 * n, 0),
            f"sort_f32_2^{power}": (one, lambda a: peer.sort(a), 0, 0),
            f"mask_f32_2^{power}": (one, lambda a: a[a > 0.5], 0, 0),
            f"take_f32_2^{power}": (lambda n=n: (R(n), peer.integers(n, n)), lambda a, i: a[i], 0, 0),
            f"transpose_f32_2^{power}": (matrix, lambda a: peer.contiguous(a.T), 8 * n, 0),
            f"matmul_f32_2^{power}": (matrices, lambda a, b: a @ b, 0, 2 * side**3),
        }
    return works


def measure(work):
    try:
        return timed(*work)
    finally:
        peer.free()


def timed(make, call, moved, flops):
    inputs, end = make(), time.perf_counter() + args.seconds
    for n in range(5):
        if n == 0 or time.perf_counter() < end:
            call(*inputs)
            peer.elapsed_us(peer.event(), peer.event())  # waits
    host, device, end = [], [], time.perf_counter() + args.seconds
    while len(host) < args.repeat and (not host or time.perf_counter() < end):
        before = peer.event()
        start = time.perf_counter()
        call(*inputs)
        host.append((time.perf_counter() - start) * 1e6)
        device.append(peer.elapsed_us(before, peer.event()))
    us = statistics.median(device)
    extra = round(peer.extra_bytes(lambda: call(*inputs)) / 1e6, 2)
    line = {"extra_MB": extra, "gpu_us": round(us, 2), "min_us": round(min(device), 2), "cpu_us": round(statistics.median(host), 2)}
    return line | lines.rates(us, moved, flops)


def product_works():
    """Products followed by elementwise operations."""

    def made(side, dtype, *shapes):
        return lambda: tuple(R(*(side if n == 0 else n for n in shape), dtype=dtype) for shape in shapes)

    def bias_relu(x, w, b):
        return peer.relu(x @ w + b - 1024)

    def tf32(x, w, b):
        xp.backends.cuda.matmul.allow_tf32 = True
        try:
            return bias_relu(x, w, b)
        finally:
            xp.backends.cuda.matmul.allow_tf32 = False

    def gelu(x, w, b):
        h = x @ w / 1024 + b
        return h * 0.5 * (peer.erf(h * 0.5**0.5) + 1)

    def residual(x, w, r):
        return x @ w + r

    def scores(q, k, _):
        return peer.softmax(q @ k.T / 64)

    def row(call, side, dtype, last):
        known = call and (xp.compile(call) if args.compile else call)
        return (made(side, dtype, (0, 0), (0, 0), last), known, 0, 2 * side**3)

    works = {}
    for name, call, side, dtype, last in [
        ("bias_relu_f32_4096", bias_relu, 4096, "float32", (0,)),
        ("bias_relu_tf32_4096", tf32 if args.peer == "torch" and not args.compile else None, 4096, "float32", (0,)),
        ("bias_relu_f16_4096", bias_relu, 4096, "float16", (0,)),
        ("gelu_f32_4096", gelu if peer.erf else None, 4096, "float32", (0,)),
        ("gelu_f16_4096", gelu if peer.erf else None, 4096, "float16", (0,)),
        ("residual_f32_4096", residual, 4096, "float32", (0, 0)),
        ("residual_f16_8192", residual, 8192, "float16", (0, 0)),
        ("scores_f32_4096", scores, 4096, "float32", (0,)),
        ("scores_f16_8192", scores, 8192, "float16", (0,)),
    ]:
        works[name] = row(call, side, dtype, last)
    return works


works = {"gpu": WORKS, "scale": scale_works(), "products": product_works()}[args.suite]
# Rows without a call are functions that the peer lacks.
lines.show(args, args.name or args.peer, [(name, work) for name, work in works.items() if work[1]], measure)
