// Kernels of full, arange and linspace. T is the output's element type. Element i is the i-th element in C order.

using namespace cuprum;

// Sets the `count` elements at offsets 0, step, 2 * step, ... of `out` to `value`.
extern "C" __global__ void __launch_bounds__(256)
fill_constant(T* out, u64 count, i64 step, T value) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        out[static_cast<i64>(i) * step] = value;
    }
}

// The type in which `arange` is computed: u64 for integers and bool, float32 for 16-bit floats, else T. The conversion from u64 to T
// wraps around.
using Wide = choose<is_complex<T>, T, choose<is_float<T>, wide_of<T>, u64>::type>::type;

template <class X> __device__ inline X arange_element(u64 i, X start, X step) {
    if constexpr (is_complex<X>) {
        const auto n = static_cast<real_of<X>>(i);
        return X(add_rn(start.re, mul_rn(n, step.re)), add_rn(start.im, mul_rn(n, step.im)));
    } else if constexpr (is_float<X>) {
        return add_rn(start, mul_rn(static_cast<X>(i), step));
    } else {
        return start + i * step;
    }
}

// Writes `start` to element 0, `second` to element 1 and start + i * step to each further element i.
extern "C" __global__ void __launch_bounds__(256)
fill_arange(T* out, u64 count, Wide start, Wide second, Wide step) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        out[i] = cast<T>(i == 0 ? start : i == 1 ? second : arange_element(i, start, step));
    }
}

// Returns start + i * step as type X, computed in float64, or in complex128 if X is complex.
template <class X> __device__ inline X linspace_element(u64 i, c128 start, c128 step) {
    const f64 n = static_cast<f64>(i), re = add_rn(start.re, mul_rn(n, step.re));
    if constexpr (is_complex<X>) return cast<X>(c128(re, add_rn(start.im, mul_rn(n, step.im))));
    else return cast<X>(re);
}

// Writes start + i * step to element i. Element `last` is exactly `stop`, despite rounding.
extern "C" __global__ void __launch_bounds__(256)
fill_linspace(T* out, u64 count, u64 last, c128 start, c128 step, c128 stop) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        out[i] = i == last ? cast<T>(stop) : linspace_element<T>(i, start, step);
    }
}
