"""Sparse products in other libraries: one JSON line per workload.

    python3 sparse.py --peer scipy|cupy|torch [--device cuda|cpu] [--only spmv] [--seconds 0.3] [--list]

`--device cuda` has the rows of the suite `sparse`, `--device cpu` those of `sparse_cpu`. SciPy has the CPU only, CuPy a GPU only.
`gpu_us` (`us` on the CPU) is the median time of a call that is waited for.
"""
import sys
import time

import lines
import numpy as np

parser = lines.options(__doc__, ["scipy", "cupy", "torch"])
parser.add_argument("--device", choices=["cuda", "cpu"])
parser.add_argument("--seconds", type=float, default=0.3)
args = parser.parse_args()
args.device = args.device or ("cpu" if args.peer == "scipy" else "cuda")
if (args.peer, args.device) in [("scipy", "cuda"), ("cupy", "cpu")]:
    sys.exit(f"{args.peer} has no device {args.device}")
M = 1 << 20


class SciPy:
    """SciPy."""

    def __init__(self):
        import scipy.sparse

        self.sparse, self.wait = scipy.sparse, lambda: None

    def matrix(self, values, columns, offsets, rows):
        return self.sparse.csr_array((values, columns, offsets), shape=(rows, rows))

    def dense(self, a):
        return a


class CuPy(SciPy):
    """CuPy."""

    def __init__(self):
        import cupy
        import cupyx.scipy.sparse

        self.xp, self.sparse = cupy, cupyx.scipy.sparse
        self.wait = cupy.cuda.Device().synchronize

    def matrix(self, values, columns, offsets, rows):
        return self.sparse.csr_matrix(tuple(map(self.xp.asarray, (values, columns, offsets))), shape=(rows, rows))

    def dense(self, a):
        return self.xp.asarray(a)


class Torch:
    """PyTorch."""

    def __init__(self):
        import torch

        self.xp = torch
        self.wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None

    def matrix(self, values, columns, offsets, rows):
        columns, offsets, values = (self.xp.as_tensor(a, device=args.device) for a in (columns, offsets, values))
        return self.xp.sparse_csr_tensor(offsets, columns, values, size=(rows, rows))

    def dense(self, a):
        return self.xp.as_tensor(a, device=args.device)


peer = None if args.list else {"scipy": SciPy, "cupy": CuPy, "torch": Torch}[args.peer]()


def matrix(kind, rows, per, dtype, width):
    """Returns a matrix with the distribution of the Rust suite, and a dense factor."""
    random = np.random.default_rng(7)
    offsets = np.arange(0, rows * per + 1, per)
    if kind == "banded":
        columns = np.clip(np.arange(rows)[:, None] + np.arange(per) - per // 2, 0, rows - 1).ravel()
    elif kind == "power":
        weight = np.minimum(1 / (random.random(rows) + 1e-9), rows / 1000)
        lengths = (weight * (rows * per / weight.sum())).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
    if kind != "banded":
        columns = random.integers(0, rows, offsets[-1])
    values = random.random(columns.size).astype(dtype)
    dense = random.random((rows, width) if width else rows).astype(dtype)
    return peer.matrix(values, columns.astype(np.int32), offsets.astype(np.int32), rows), peer.dense(dense)


def row(name, kind, rows, per, dtype, width=0):
    def make():
        a, b = matrix(kind, rows, per, dtype, width)
        return (lambda: a @ a) if name.startswith("spgemm") else (lambda: a @ b)

    return name, make


GPU = [
    row("spmv_regular_f32_16Kx8", "regular", M >> 6, 8, "float32"),
    row("spmv_regular_f32_1Mx16", "regular", M, 16, "float32"),
    row("spmv_regular_f32_4Mx32", "regular", 4 * M, 32, "float32"),
    row("spmv_regular_f64_1Mx16", "regular", M, 16, "float64"),
    row("spmv_power_f32_1Mx16", "power", M, 16, "float32"),
    row("spmv_power_f32_4Mx24", "power", 4 * M, 24, "float32"),
    row("spmv_banded_f32_4Mx24", "banded", 4 * M, 24, "float32"),
    row("spmm_regular_f32_1Mx16_32", "regular", M, 16, "float32", 32),
    row("spmm_regular_f32_256Kx32_128", "regular", M // 4, 32, "float32", 128),
    row("spmm_power_f32_256Kx32_64", "power", M // 4, 32, "float32", 64),
    row("spmm_banded_f32_1Mx16_32", "banded", M, 16, "float32", 32),
    row("spgemm_regular_f32_64Kx16", "regular", M // 16, 16, "float32"),
    row("spgemm_power_f32_64Kx16", "power", M // 16, 16, "float32"),
    row("spgemm_banded_f32_256Kx16", "banded", M // 4, 16, "float32"),
]
CPU = [
    row("spmv_regular_f64_16Kx8", "regular", M >> 6, 8, "float64"),
    row("spmv_regular_f64_1Mx10", "regular", M, 10, "float64"),
    row("spmv_regular_f32_1Mx10", "regular", M, 10, "float32"),
    row("spmv_power_f64_1Mx10", "power", M, 10, "float64"),
    row("spmv_banded_f64_1Mx10", "banded", M, 10, "float64"),
    row("spmm_regular_f64_256Kx10_32", "regular", M // 4, 10, "float64", 32),
    row("spmm_power_f32_256Kx10_32", "power", M // 4, 10, "float32", 32),
    row("spmm_banded_f64_256Kx10_32", "banded", M // 4, 10, "float64", 32),
    row("spgemm_regular_f64_64Kx10", "regular", M // 16, 10, "float64"),
    row("spgemm_banded_f64_256Kx10", "banded", M // 4, 10, "float64"),
]


def measure(make):
    run = make()
    for _ in range(3):
        run()
    peer.wait()
    times, began = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - began < args.seconds:
        start = time.perf_counter()
        run()
        peer.wait()
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    return {"gpu_us" if args.device == "cuda" else "us": round(times[len(times) // 2], 2), "min_us": round(times[0], 2)}


lines.show(args, args.peer, GPU if args.device == "cuda" else CPU, measure)
