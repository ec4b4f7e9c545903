// Reductions over any axes. Follows the prelude, an element's code and warp.cuh. reduce_rows.cu or reduce_columns.cu follows.
// The host defines Index (i32 or i64), KEPT_RANK and REDUCED_RANK, WIDTH (elements per load), Out, and `struct Reduction`:
// Acc, idempotent, identity(), value(x, index), accumulate(a, x, index) for a later element, combine(a, b), finish(a). With HAS_ACC_OF_SEVERAL
// there is also acc_of_several(values), an Acc of several elements at once, which is cheaper.
//
// The order of combination follows from the shape alone, so results depend neither on timing nor on alignment. The last block
// of a shared result combines the parts in block order.

namespace cuprum {

using Acc = Reduction::Acc;
using KeptAxes = Axes<Index, KEPT_RANK, INPUTS>;
using ReducedAxes = Axes<Index, REDUCED_RANK, INPUTS>;
using InputOffsets = Offsets<Index, INPUTS>;

constexpr int THREADS = 256;
// Number of loads that a thread has in flight. A leaf has the same length for every WIDTH, because alignment may decide
// WIDTH but must not change the result.
#ifdef HAS_ACC_OF_SEVERAL
[[maybe_unused]] constexpr int UNROLL = INPUTS > 2 ? 2 : 4;
#else
[[maybe_unused]] constexpr int UNROLL = (INPUTS > 2 ? 2 : 4) * (WIDTH > 1 ? 1 : 2);
#endif

// Returns whether this block is the last of `splits` blocks to finish its part. All threads call this after the parts are
// written. The ticket is 0 before the first block and after the last.
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
