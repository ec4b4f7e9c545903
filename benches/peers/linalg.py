"""Linear algebra and Fourier transforms in other libraries: one JSON line per workload.

    python3 linalg.py --peer numpy|scipy|torch|cupy|jax [--device cuda|cpu] [--only qr,svd] [--seconds 0.3] [--limit 2] [--list]

`--device cuda` has the rows of the suite `linalg`, `--device cpu` those of `linalg_cpu`. NumPy and SciPy have the CPU only, CuPy a GPU only.
`gpu_us` (`us` on the CPU) is the median time of a call that is waited for, since decompositions wait for the device in most libraries.
A row whose call takes longer than `--limit` seconds is not repeated: its line has the time of that call.
"""
import os
import sys
import time

import lines

parser = lines.options(__doc__, ["numpy", "scipy", "torch", "cupy", "jax"])
parser.add_argument("--device", choices=["cuda", "cpu"])
parser.add_argument("--seconds", type=float, default=0.3)
parser.add_argument("--limit", type=float, default=2.0, help="seconds of one call")
args = parser.parse_args()
args.device = args.device or ("cpu" if args.peer in ("numpy", "scipy") else "cuda")
if (args.peer, args.device) in [("numpy", "cuda"), ("scipy", "cuda"), ("cupy", "cpu")]:
    sys.exit(f"{args.peer} has no device {args.device}")


class NumPy:
    """NumPy."""

    def __init__(self):
        import numpy

        self.xp, self.wait = numpy, lambda result: None
        self.linalg, self.fft = numpy.linalg, numpy.fft

    def array(self, values):
        return values

    def call(self, function):
        return function

    def free(self):
        pass

    def qr(self, a):
        return self.linalg.qr(a)

    def cholesky(self, a):
        return self.linalg.cholesky(a)

    def svd(self, a):
        return self.linalg.svd(a, full_matrices=False)

    def lstsq(self, a, b):
        return self.linalg.lstsq(a, b)

    def fft_axis0(self, a):
        return self.fft.fft(a, None, 0)


class SciPy(NumPy):
    """SciPy, whose functions take batches as NumPy's do."""

    def __init__(self):
        super().__init__()
        import scipy.fft
        import scipy.linalg

        self.linalg, self.fft = scipy.linalg, scipy.fft

    def qr(self, a):
        return self.linalg.qr(a, mode="economic")

    def cholesky(self, a):
        return self.linalg.cholesky(a, lower=True)


class CuPy(NumPy):
    """CuPy."""

    def __init__(self):
        import cupy

        self.xp, self.linalg, self.fft = cupy, cupy.linalg, cupy.fft
        self.wait = lambda result: cupy.cuda.Device().synchronize()

    def array(self, values):
        return self.xp.asarray(values)

    def free(self):
        self.xp.get_default_memory_pool().free_all_blocks()


class Torch(NumPy):
    """PyTorch."""

    def __init__(self):
        import torch

        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = False
        self.xp, self.linalg, self.fft = torch, torch.linalg, torch.fft
        self.wait = (lambda result: torch.cuda.synchronize()) if args.device == "cuda" else (lambda result: None)

    def array(self, values):
        return self.xp.from_numpy(values).to(args.device)

    def free(self):
        if args.device == "cuda":
            self.xp.cuda.empty_cache()


class Jax(NumPy):
    """JAX, with compiled calls."""

    def __init__(self):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        if args.device == "cpu":
            os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp, self.linalg, self.fft = jax, jax.numpy, jax.numpy.linalg, jax.numpy.fft
        self.wait = jax.block_until_ready

    def array(self, values):
        return self.xp.asarray(values)

    def call(self, function):
        return self.jax.jit(function)


peer = None if args.list else {"numpy": NumPy, "scipy": SciPy, "torch": Torch, "cupy": CuPy, "jax": Jax}[args.peer]()
BATCHES = [(100000, 3), (20000, 8), (4096, 32), (512, 64), (64, 256)]
CALLS = {
    "solve": lambda a, b: peer.linalg.solve(a, b),
    "inv": lambda a: peer.linalg.inv(a),
    "cholesky": lambda a: peer.cholesky(a),
    "det": lambda a: peer.linalg.det(a),
    "qr": lambda a: peer.qr(a),
    "eigh": lambda a: peer.linalg.eigh(a),
    "svd": lambda a: peer.svd(a),
    "eig": lambda a: peer.linalg.eig(a),
    "lstsq": lambda a, b: peer.lstsq(a, b),
}


def normals(*shapes, dtype):
    import numpy

    generator = numpy.random.default_rng(0)
    return [generator.standard_normal(shape, dtype="float64" if dtype == "float64" else "float32") for shape in shapes]


def complexes(*shape):
    real, imaginary = normals(shape, shape, dtype="float32")
    return [(real + 1j * imaginary).astype("complex64")]


def matrices(kind, batch, n, dtype):
    """Returns the inputs of a workload: general or positive definite matrices, and for `solve` 16 right-hand sides."""
    lead = (batch,) if batch > 1 else ()
    if kind == "solve":
        return normals((*lead, n, n), (*lead, n, 16), dtype=dtype)
    [a] = normals((*lead, n, n), dtype=dtype)
    if kind in ("cholesky", "eigh"):
        import numpy

        a = (a @ a.swapaxes(-1, -2) / n + numpy.eye(n)).astype(a.dtype)
    return [a]


def row(kind, batch, n, dtype):
    name = f"{kind}_{dtype}_batch{batch}x{n}" if batch > 1 else f"{kind}_{dtype}_{n}"
    full = {"f32": "float32", "f64": "float64"}[dtype]
    return name, (lambda: matrices(kind, batch, n, full)), CALLS[kind]


def gpu_rows():
    tasks = ["solve", "inv", "cholesky", "det", "qr", "eigh", "svd"]
    rows = [row(kind, batch, n, "f32") for batch, n in BATCHES for kind in tasks]
    for dtype in ("f32", "f64"):
        rows += [row(kind, 1, n, dtype) for n in (1024, 2048, 4096) for kind in tasks if (kind, n) != ("svd", 4096)]
        rows += [row("svd", 1, 512, dtype), row("eig", 1, 512, dtype)]
    return rows + [
        ("fft_c64_4096x16384", lambda: complexes(4096, 16384), lambda a: peer.fft.fft(a)),
        ("fft_c64_2p26", lambda: complexes(1 << 26), lambda a: peer.fft.fft(a)),
        ("fft2_c64_8192", lambda: complexes(8192, 8192), lambda a: peer.fft.fft2(a)),
        ("fftn_c64_512", lambda: complexes(512, 512, 512), lambda a: peer.fft.fftn(a)),
        ("rfft_f32_4096x16384", lambda: normals((4096, 16384), dtype="float32"), lambda a: peer.fft.rfft(a)),
        ("fft_c64_1000x99991", lambda: complexes(1000, 99_991), lambda a: peer.fft.fft(a)),
        ("fft_axis0_c64_4096x16384", lambda: complexes(4096, 16384), lambda a: peer.fft_axis0(a)),
    ]


def cpu_rows():
    single = [("solve", 1000), ("inv", 1000), ("det", 1000), ("cholesky", 2000), ("qr", 1000), ("svd", 500), ("eigh", 500), ("eigh", 1000), ("eig", 300)]
    rows = [row(kind, 1, n, "f64") for kind, n in single]
    rows.append(("lstsq_f64_2000x200", lambda: normals((2000, 200), (2000, 8), dtype="float64"), CALLS["lstsq"]))
    return rows + [row(kind, batch, n, "f64") for batch, n in ((10000, 4), (1000, 32), (100, 128)) for kind in ("solve", "eigh", "svd")]


def measure(make, function):
    try:
        return timed(make, function)
    finally:
        peer.free()


def timed(make, function):
    arrays = [peer.array(values) for values in make()]
    call = peer.call(function)
    peer.wait(arrays)

    def once():
        start = time.perf_counter()
        peer.wait(call(*arrays))
        return (time.perf_counter() - start) * 1e6

    key, limit = "gpu_us" if args.device == "cuda" else "us", args.limit * 1e6
    first = once()
    # The first call in JAX includes the compilation.
    if first > limit and (args.peer != "jax" or (first := once()) > limit):
        return {key: round(first, 2), "min_us": round(first, 2), "calls": 1}
    once()
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(once())
    times.sort()
    return {key: round(times[len(times) // 2], 2), "min_us": round(times[0], 2), "calls": len(times)}


if not args.list:
    # The libraries are loaded at the first call.
    peer.wait(CALLS["solve"](*[peer.array(values) for values in matrices("solve", 1, 8, "float32")]))
lines.show(args, args.peer, gpu_rows() if args.device == "cuda" else cpu_rows(), measure)
