// An elementwise expression over inputs with any strides. Outputs are contiguous in loop order, so the loop index is the output's element
// index. Each thread computes WIDTH elements that are one block size apart, so that their loads are in flight at once.
//
// Requires: Index, WIDTH, RANK; the generated code of an element; Outputs, store().

namespace cuprum {

extern "C" __global__ void __launch_bounds__(256)
KERNEL(const Params p, const Axes<Index, RANK, INPUTS> axes, const Outputs out, const u64 count) {
    const Index size = static_cast<Index>(count);
    const Index block = blockDim.x, step = static_cast<Index>(gridDim.x) * block * WIDTH;
    for (Index first = static_cast<Index>(blockIdx.x) * block * WIDTH + threadIdx.x; first < size; first += step) {
        Values values[WIDTH];
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (first + k * block < size) values[k] = load(p, axes.offsets(first + k * block));
        }
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (first + k * block < size) store(out, first + k * block, compute(p, values[k]));
        }
    }
}

}  // namespace cuprum
