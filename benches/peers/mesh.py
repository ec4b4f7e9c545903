"""The suite `mesh` of `workloads` in JAX, with arrays sharded over GPUs by jit: one JSON line per workload.

    python3 mesh.py --peer jax --ranks 2 [--only sum,matmul] [--seconds 0.5] [--list]

The work per GPU is constant. `us` is the median time from the call until all devices are idle, after two warm-up calls.
"""
import os
import time

import lines

parser = lines.options(__doc__, ["jax"])
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--seconds", type=float, default=0.5)
args = parser.parse_args()

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.8")
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

G = args.ranks
mesh = Mesh(jax.devices()[:G], ("x",))
ROWS, COLUMNS, WHOLE = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x", None), (None, "x"), ()))
LINE = NamedSharding(mesh, PartitionSpec("x"))


def uniform(*shape, sharding, dtype=jnp.float32):
    make = jax.jit(lambda key: jax.random.uniform(key, shape).astype(dtype), out_shardings=sharding)
    return lambda: make(jax.random.PRNGKey(0))


def chain10(a):
    x = ((a + 1) * 2 - 3) * a + a
    return ((x * 0.5 - a) * a + 1) * 2


vector = uniform((1 << 28) * G, sharding=LINE)
matrix = uniform(16384 * G, 16384, sharding=ROWS)
transposed = jax.jit(lambda a: a.T, out_shardings=ROWS)
WORKS = [
    ("chain10_f32_256M", jax.jit(chain10), [vector]),
    ("sum_f32_256M", jax.jit(jnp.sum), [vector]),
    ("sum_axis0_f32_16k", jax.jit(lambda a: a.sum(0)), [matrix]),
    ("softmax_rows_f32_16k", jax.jit(lambda a: jax.nn.softmax(a, -1)), [matrix]),
    ("stencil_f32_256M", jax.jit(lambda a: a[2:] + a[:-2] - a[1:-1] * 2), [vector]),
    ("matmul_rows_f32_8k", jax.jit(jnp.matmul), [uniform(8192 * G, 8192, sharding=ROWS), uniform(8192, 8192, sharding=WHOLE)]),
    ("matmul_k_f32_8k", jax.jit(jnp.matmul), [uniform(8192, 8192 * G, sharding=COLUMNS), uniform(8192 * G, 8192, sharding=ROWS)]),
    ("transpose_f32_16k", transposed, [matrix]),
    ("fft2_c64_8k", jax.jit(jnp.fft.fft2), [uniform(8192 * G, 8192, sharding=ROWS, dtype=jnp.complex64)]),
    ("sort_f32_64M", jax.jit(jnp.sort), [uniform((1 << 26) * G, sharding=LINE)]),
]


def measure(function, inputs):
    arrays = [make() for make in inputs]
    for _ in range(2):
        jax.block_until_ready(function(*arrays))
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(function(*arrays))
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    return {"us": round(times[len(times) // 2]), "min_us": round(times[0]), "ranks": G}


lines.show(args, "jax", [(f"{name}_x{G}", *work) for name, *work in WORKS], measure)
