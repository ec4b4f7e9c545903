// An elementwise expression over inputs whose elements are adjacent or repeated along the last axis, such as a row or a column that is
// broadcast over a matrix. Each thread computes WIDTH adjacent elements of one row, with accesses of up to 16 bytes. The extent of the last
// axis is a multiple of WIDTH.
//
// Requires: Index, WIDTH, RANK; the generated code of an element; Outputs, store_pack().

namespace cuprum {

extern "C" __global__ void __launch_bounds__(256)
KERNEL(const Params p, const Axes<Index, RANK, INPUTS> axes, const Outputs out, const u64 count) {
    const Index size = static_cast<Index>(count);
    const Index step = static_cast<Index>(gridDim.x) * blockDim.x * WIDTH;
    for (Index i = (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) * WIDTH; i < size; i += step) {
        Values values[WIDTH];
        load_pack(p, axes.offsets(i), Index(0), values);
        Results results[WIDTH];
        BadIndex bad_index = {};
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) results[k] = evaluate(p, values[k], bad_index);
        store_pack(out, i, results);
        report(p, bad_index);
    }
}

}  // namespace cuprum
