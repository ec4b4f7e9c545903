// An elementwise expression over contiguous inputs and inputs that repeat one element. Each thread computes WIDTH adjacent elements, with
// accesses of up to 16 bytes.
//
// Requires: Index, WIDTH; the generated code of an element; Outputs, store(), store_pack().

namespace cuprum {

extern "C" __global__ void __launch_bounds__(256)
KERNEL(const Params p, const Outputs out, const u64 count) {
    const Index size = static_cast<Index>(count);
    const Offsets<Index, INPUTS> start = {};
    const Index step = static_cast<Index>(gridDim.x) * blockDim.x * WIDTH;
    Index i = (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) * WIDTH;
    for (; i + WIDTH <= size; i += step) {
        Values values[WIDTH];
        load_pack(p, start, i, values);
        Results results[WIDTH];
        BadIndex bad_index = {};
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) results[k] = evaluate(p, values[k], bad_index);
        store_pack(out, i, results);
        report(p, bad_index);
    }
    // One thread computes the last elements, which do not fill a pack of WIDTH elements.
    for (; i < size; i++) store(out, i, compute(p, load_along(p, start, i)));
}

}  // namespace cuprum
