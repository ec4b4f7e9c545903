// An elementwise expression over inputs whose elements are adjacent or repeated along the last axis, such as a row or a column that is
// broadcast over a matrix. Each thread computes WIDTH adjacent elements of the output, which it stores with accesses of up to 16 bytes. If
// the extent of the last axis is not a multiple of WIDTH (IS_MULTIPLE), the elements may belong to two rows.
//
// Requires: Index, WIDTH, RANK, IS_MULTIPLE; the generated code of an element; Outputs, store(), store_pack().

namespace cuprum {

extern "C" __global__ void __launch_bounds__(256)
KERNEL(const Params p, const Axes<Index, RANK, INPUTS> axes, const Outputs out, const u64 count) {
    const Index size = static_cast<Index>(count), extent = static_cast<Index>(axes.extents[RANK - 1].value);
    const Index step = static_cast<Index>(gridDim.x) * blockDim.x * WIDTH;
    for (Index i = (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) * WIDTH; i < size; i += step) {
        Values values[WIDTH];
        const Index column = i - static_cast<Index>(axes.extents[RANK - 1].quotient(i)) * extent;
        if (IS_MULTIPLE || column + WIDTH <= extent) {
            load_pack(p, axes.offsets(i), Index(0), values);
        } else {
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) values[k] = load(p, axes.offsets(i + k < size ? i + k : i));
        }
        Results results[WIDTH];
        BadIndex bad_index = {};
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) results[k] = evaluate(p, values[k], bad_index);
        if (IS_MULTIPLE || i + WIDTH <= size) {
            store_pack(out, i, results);
        } else {
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                if (i + k < size) store(out, i + k, results[k]);
            }
        }
        report(p, bad_index);
    }
}

}  // namespace cuprum
