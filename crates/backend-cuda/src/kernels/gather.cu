// Gathers elements at indices along one axis (NumPy's take). Requires resolve_index.cuh.
//
// ITEM is an element type of 1 to 16 bytes. INDEX_ELEMENT, the element type of the index array, and INDEX, the type of offsets, are i32 or
// i64. RANK is the number of axes of the output.

using namespace cuprum;

// Writes the `count` elements of `out`. `axes` holds the strides of `in` without its indexed axis, then those of `indices`. `size` and
// `step` are the extent and stride of the indexed axis. An index out of bounds is recorded in `fault`, and its element of `out` is 0.
extern "C" __global__ void __launch_bounds__(256)
gather_take(ITEM* out, const ITEM* in, const INDEX_ELEMENT* indices, INDEX count, i64 size, i64 step, Fault* fault, u64 op,
            const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 2> at = axes.offsets(i);
        const i64 index = indices[at.at[1]], position = resolve_index(index, size);
        if (position < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(size));
            out[i] = ITEM{};
        } else {
            out[i] = in[at.at[0] + position * step];
        }
    }
}
