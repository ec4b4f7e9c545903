// Definitions shared by reduce_rows.cu and reduce_columns.cu, the kernels of reductions over any axes. Requires the prelude, the
// generated code of an element, and warp.cuh.
//
// The host defines:
//   Index                    i32 or i64, the type of offsets
//   KEPT_RANK, REDUCED_RANK  numbers of kept and of reduced axes
//   WIDTH                    elements per load
//   Out                      element type of the output
//   Reduction                struct with the accumulator type Acc and the functions identity(), value(x, index) for the accumulator of
//                            an element, accumulate(a, x, index) to add a later element, combine(a, b) and finish(a). The constant
//                            `idempotent` is true if combining an element twice has no effect
//   acc_of_several(values)   optional, together with the macro HAS_ACC_OF_SEVERAL: returns the accumulator of several elements at once,
//                            which is cheaper than combining them
//
// The order of combination depends on the shape alone, not on timing or alignment. If several blocks reduce one row or column, the
// last block to finish combines their partial results in block order.

namespace cuprum {

using Acc = Reduction::Acc;
using KeptAxes = Axes<Index, KEPT_RANK, INPUTS>;
using ReducedAxes = Axes<Index, REDUCED_RANK, INPUTS>;
using InputOffsets = Offsets<Index, INPUTS>;

constexpr int THREADS = 256;
// Number of loads that a thread has in flight. In column reductions, `acc_of_several` gets this number of elements. With `acc_of_several`,
// the number must not depend on WIDTH: alignment may decide WIDTH, but must not change the result.
#ifdef HAS_ACC_OF_SEVERAL
[[maybe_unused]] constexpr int UNROLL = INPUTS > 2 ? 2 : 4;
#else
[[maybe_unused]] constexpr int UNROLL = (INPUTS > 2 ? 2 : 4) * (WIDTH > 1 ? 1 : 2);
#endif

// Returns whether this block is the last to finish among the `splits` blocks that share a result. All threads of the block must call this
// function after the partial result is written. `*ticket` is 0 before the first block arrives, and is 0 again after the last.
__device__ inline bool is_last_block(u32* ticket, u32 splits) {
    __shared__ u32 arrived;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicAdd(ticket, 1u);
    if (threadIdx.x == 0 && arrived == splits - 1) *ticket = 0;
    __syncthreads();
    __threadfence();
    return arrived == splits - 1;
}

}  // namespace cuprum
