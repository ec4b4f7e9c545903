"""The tour's works in NumPy, CuPy or PyTorch: one JSON line per workload.

    python3 works.py --peer numpy|cupy|torch [--only NAME,...] [--repeat N] [--seconds S] [--list]

`gpu_us` is the median device time between two events (CuPy and PyTorch), `cpu_us` the median host time of the call.
`us` is the median time of a NumPy call.
"""
import time

import lines

parser = lines.options(__doc__, ["numpy", "cupy", "torch"])
parser.add_argument("--repeat", type=int, default=20)
parser.add_argument("--seconds", type=float, default=2.0)
args = parser.parse_args()

if args.peer == "numpy":
    import numpy as xp
elif args.peer == "cupy":
    import cupy as xp
else:
    import torch as xp


def uniform(*shape, dtype="float64"):
    if args.peer == "torch":
        return xp.rand(*shape, device="cuda", dtype=getattr(xp, dtype))
    return xp.random.random(shape).astype(dtype)


def csr(rows, density):
    per = int(rows * density)
    if args.peer == "torch":
        values = xp.rand(rows * per, device="cuda")
        columns = xp.randint(0, rows, (rows * per,), device="cuda", dtype=xp.int32)
        offsets = xp.arange(0, rows * per + 1, per, device="cuda", dtype=xp.int32)
        matrix = xp.sparse_csr_tensor(offsets, columns, values, size=(rows, rows))
        return lambda x: matrix @ x
    columns = xp.random.randint(0, rows, rows * per).astype("int32")
    values = xp.random.random(rows * per).astype("float32")
    offsets = xp.arange(0, rows * per + 1, per).astype("int32")
    if args.peer == "cupy":
        import cupyx.scipy.sparse as sparse
        matrix = sparse.csr_matrix((values, columns, offsets), shape=(rows, rows))
        return lambda x: matrix.dot(x)
    return lambda x: xp.add.reduceat(values * x[columns], offsets[:-1])


def norms(a):
    return xp.sqrt(xp.sum(a**2, -1) if args.peer == "torch" else xp.sum(a**2, axis=-1))


def call(function, *inputs):
    return lambda: function(*inputs)


WORKS = {
    "sin_f32_1M": lambda: call(xp.sin, uniform(10**6, dtype="float32")),
    "sin_f64_1M": lambda: call(xp.sin, uniform(10**6)),
    "sin_f32_100M": lambda: call(xp.sin, uniform(10**8, dtype="float32")),
    "sin_f64_100M": lambda: call(xp.sin, uniform(10**8)),
    "matmul_f64_1000": lambda: call(xp.matmul, uniform(1000, 1000), uniform(1000, 1000)),
    "matmul_f32_1000": lambda: call(xp.matmul, uniform(1000, 1000, dtype="float32"), uniform(1000, 1000, dtype="float32")),
    "add_f64_10M": lambda: call(lambda a, b: a + b, uniform(10**7), uniform(10**7)),
    "sqrt_i64_10M": lambda: call(xp.sqrt, (uniform(10**7) * 1e6).astype("int64") if args.peer != "torch" else (uniform(10**7) * 1e6).long()),
    "norm_rows_f64_256x1024": lambda: call(norms, uniform(256, 1024)),
    "sum_f32_256cube": lambda: call(lambda a: a.sum(), uniform(256, 256, 256, dtype="float32")),
    "spmv_f32_10000": lambda: call(csr(10000, 0.05), uniform(10000, dtype="float32")),
}


def median(values):
    return sorted(values)[len(values) // 2]


def on_host(run):
    times, began = [], time.perf_counter()
    while len(times) < args.repeat and (len(times) < 3 or time.perf_counter() - began < args.seconds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"us": round(median(times) * 1e6, 2), "min_us": round(min(times) * 1e6, 2)}


def on_device(run):
    host, device = [], []
    if args.peer == "cupy":
        new, sync, elapsed = xp.cuda.Event, xp.cuda.Device().synchronize, xp.cuda.get_elapsed_time
    else:
        new, sync, elapsed = (lambda: xp.cuda.Event(enable_timing=True)), xp.cuda.synchronize, (lambda a, b: a.elapsed_time(b))
    for _ in range(args.repeat):
        first, last = new(), new()
        sync()
        first.record()
        start = time.perf_counter()
        run()
        host.append(time.perf_counter() - start)
        last.record()
        sync()
        device.append(elapsed(first, last))
    return {"gpu_us": round(median(device) * 1e3, 2), "cpu_us": round(median(host) * 1e6, 2)}


def measure(make):
    run = make()
    for _ in range(3):
        run()
    return on_host(run) if args.peer == "numpy" else on_device(run)


lines.show(args, args.peer, WORKS.items(), measure)
