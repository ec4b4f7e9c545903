// Binary search for insertion points in a sorted array (NumPy's searchsorted). Requires sort_keys.cuh. ELEMENT is the element type. AFTER
// is 1 for insertion after equal elements (side='right'), else 0.

using namespace cuprum;

extern "C" __global__ void __launch_bounds__(256)
search_sorted(i64* __restrict__ out, const ELEMENT* __restrict__ sorted, i64 size, const ELEMENT* __restrict__ values, i64 count) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const auto key = sort_key(values[i]);
        i64 low = 0, length = size;
        while (length > 0) {
            const i64 half = length / 2;
            const auto here = sort_key(sorted[low + half]);
            const bool passes = AFTER ? here <= key : here < key;
            low = passes ? low + half + 1 : low;
            length = passes ? length - half - 1 : half;
        }
        out[i] = low;
    }
}
