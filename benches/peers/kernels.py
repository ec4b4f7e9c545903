"""The suite `kernels` of `workloads` in NumPy or CuPy: one JSON line per workload.

    python3 kernels.py --peer numpy|cupy [--only mandelbrot] [--seconds 0.5] [--list]

CuPy uses an ElementwiseKernel for elementwise parts and its own reductions. `us` is the median host time of a call, `gpu_us` the
median time between two events, both after warm-up calls.
"""
import time

import lines

parser = lines.options(__doc__, ["numpy", "cupy"])
parser.add_argument("--seconds", type=float, default=0.5)
args = parser.parse_args()
on_gpu = args.peer == "cupy"
if on_gpu:
    import cupy as xp
else:
    import numpy as xp

M = 1 << 20


def uniform(*shape):
    return xp.random.random(shape).astype("float32")


def plane():
    re = xp.linspace(-2, 0.5, 2000).astype("float32")
    return re, xp.linspace(-1.2, 1.2, 1500).astype("float32")[:, None]


def mandelbrot(re, im):
    x, y = (a.copy() for a in xp.broadcast_arrays(re, im))
    steps = xp.zeros(x.shape, "int32")
    live = xp.ones(x.shape, bool)
    with xp.errstate(all="ignore"):
        for _ in range(200):
            xx, yy = x * x, y * y
            live &= xx + yy <= 4
            y = 2 * x * y + im
            x = xx - yy + re
            steps += live
    return steps


def heat_step(f):
    here = f[1:-1, 1:-1]
    return here + xp.float32(0.2) * (f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:] - 4 * here)


def normal_cdf(x):
    k = 1 / (1 + 0.2316419 * abs(x))
    poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = xp.exp(-0.5 * x * x) * poly / 2.5066282746310002
    return xp.where(x < 0, tail, 1 - tail)


def black_scholes(spot, years):
    spread = 0.2 * xp.sqrt(years)
    d = (xp.log(spot / 100) + 0.07 * years) / spread
    return spot * normal_cdf(d) - 100 * xp.exp(-0.05 * years) * normal_cdf(d - spread)


def nearest_centre(x, y, centres):
    return xp.argmin((x[:, None] - centres[:, 0]) ** 2 + (y[:, None] - centres[:, 1]) ** 2, axis=1)


def softmax(a):
    e = xp.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


if on_gpu:
    _mandelbrot = xp.ElementwiseKernel(
        "T re, T im, int32 limit", "int32 steps",
        """T x = re, y = im; int n = 0;
        for (; n < limit; n++) {
            const T xx = x * x, yy = y * y;
            if (xx + yy > 4) break;
            y = 2 * x * y + im;
            x = xx - yy + re;
        }
        steps = n;""", "mandelbrot")
    _heat = xp.ElementwiseKernel(
        "T here, T north, T south, T west, T east, T rate", "T out",
        "out = here + rate * (north + south + west + east - 4 * here)", "heat")
    _black_scholes = xp.ElementwiseKernel(
        "T spot, T strike, T years, T interest, T volatility", "T price",
        """const T spread = volatility * sqrt(years);
        const T d = (log(spot / strike) + (interest + T(0.5) * volatility * volatility) * years) / spread;
        price = spot * cdf(d) - strike * exp(-interest * years) * cdf(d - spread);""", "black_scholes",
        preamble="""template <class T> __device__ T cdf(T x) {
            const T k = T(1) / (T(1) + T(0.2316419) * abs(x));
            const T poly = k * (T(0.31938153) + k * (T(-0.356563782) + k * (T(1.781477937) + k * (T(-1.821255978) + k * T(1.330274429)))));
            const T tail = exp(T(-0.5) * x * x) * poly / T(2.5066282746310002);
            return x < 0 ? tail : 1 - tail;
        }""")
    _nearest = xp.ElementwiseKernel(
        "T x, T y, raw T centres, int32 n", "int32 nearest",
        """T least = 3.4e38f; nearest = 0;
        for (int c = 0; c < n; c++) {
            const T dx = x - centres[2 * c], dy = y - centres[2 * c + 1];
            const T d = dx * dx + dy * dy;
            if (d < least) { least = d; nearest = c; }
        }""", "nearest")
    _exp_from = xp.ElementwiseKernel("T x, T top", "T e", "e = exp(x - top)", "exp_from")

    def mandelbrot(re, im):
        return _mandelbrot(re, im, 200)

    def heat_step(f):
        return _heat(f[1:-1, 1:-1], f[:-2, 1:-1], f[2:, 1:-1], f[1:-1, :-2], f[1:-1, 2:], xp.float32(0.2))

    def black_scholes(spot, years):
        number = xp.float32
        return _black_scholes(spot, number(100), years, number(0.05), number(0.2))

    def nearest_centre(x, y, centres):
        return _nearest(x, y, centres, len(centres))

    def softmax(a):
        e = _exp_from(a, a.max(-1, keepdims=True))
        return xp.divide(e, e.sum(-1, keepdims=True), out=e)


WORKLOADS = [
    ("mandelbrot_f32_3M_200", mandelbrot, plane, 0),
    ("heat_step_f32_4k", heat_step, lambda: (uniform(4096, 4096),), 8 << 24),
    ("black_scholes_f32_8M", black_scholes, lambda: (uniform(8 * M) * 100 + 50, uniform(8 * M) + xp.float32(0.1)), 96 * M),
    ("nearest_centre_f32_4M_16", nearest_centre, lambda: (uniform(4 * M), uniform(4 * M), uniform(16, 2)), 48 * M),
    ("softmax_own_f32_4k", softmax, lambda: (uniform(4096, 4096),), 8 << 24),
]


def measure(function, inputs, moved):
    inputs, host, device = inputs(), [], []
    for _ in range(3 if on_gpu else 1):
        function(*inputs)
    end = time.perf_counter() + args.seconds
    while len(host) < 3 or (time.perf_counter() < end and len(host) < 1000):
        if on_gpu:
            xp.cuda.Device().synchronize()
            before, after = xp.cuda.Event(), xp.cuda.Event()
            before.record()
        start = time.perf_counter()
        function(*inputs)
        host.append((time.perf_counter() - start) * 1e6)
        if on_gpu:
            after.record()
            after.synchronize()
            device.append(xp.cuda.get_elapsed_time(before, after) * 1e3)
    middle = lambda times: sorted(times)[len(times) // 2]
    if on_gpu:
        return {"gpu_us": round(middle(device), 2), "cpu_us": round(middle(host), 2)} | lines.rates(middle(device), moved)
    return {"us": round(middle(host), 2), "min_us": round(min(host), 2)} | lines.rates(middle(host), moved)


lines.show(args, args.peer, WORKLOADS, measure)
