// Prepares spectra for cuFFT's complex-to-real transforms. T is the type of the real and imaginary parts.

using namespace cuprum;

// Shape of a C-ordered complex array: the extents before, along and after the transformed axis. Along this axis, NumPy ignores the
// imaginary parts at index 0 and at index `second`.
struct SpectrumShape {
    i64 outer, extent, inner, second;
};

// Sets to 0 the imaginary parts that NumPy ignores.
extern "C" __global__ void __launch_bounds__(256)
clear_ignored_imaginary_parts(T* parts, const __grid_constant__ SpectrumShape s) {
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < s.outer * s.inner; i += step) {
        const i64 first = i / s.inner * s.extent * s.inner + i % s.inner;
        parts[2 * first + 1] = 0;
        parts[2 * (first + s.second * s.inner) + 1] = 0;
    }
}
