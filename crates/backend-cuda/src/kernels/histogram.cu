// Counts the values in each bin of a histogram. Requires the prelude, the generated code of an element and histogram_bins.cuh.
//
// The host defines RULE (a `BinRule`), SHARED (1 if blocks count in shared memory, else 0) and ITEMS (elements per thread). Counts are
// integers, so the order of additions does not matter.

namespace cuprum {

constexpr int THREADS = 512;
using Binning = Bins<BinRule::RULE, SHARED, Result>;

#if SHARED
constexpr i64 TILE = THREADS * ITEMS;

// Counts in shared memory, then adds the counts to `counts`, which must be zeroed. Each bin has `copies` counters (a power of 2) in shared
// memory, so that lanes of a warp rarely increment the same counter. If RULE is EDGES, a copy of the edges follows the counters.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram_shared(const __grid_constant__ Params p, const Result* __restrict__ edges, u64* __restrict__ counts, i64 bins, i64 count, i32 copies) {
    extern __shared__ uint4 shared[];
    const i32 cells = static_cast<i32>(bins) * copies;
    u32* own = reinterpret_cast<u32*>(shared);
    for (i32 i = threadIdx.x; i < cells; i += THREADS) own[i] = 0;
    __syncthreads();
    const Binning binning(edges, bins, reinterpret_cast<Result*>(shared + (cells + 3) / 4));
    u32* mine = own + (threadIdx.x & (copies - 1));
    for (i64 tile = blockIdx.x * TILE; tile < count; tile += gridDim.x * TILE) {
        const i64 base = tile + threadIdx.x;
        if (tile + TILE <= count) {
            Result x[ITEMS];
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) x[k] = element(p, base + k * THREADS);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const i32 bin = static_cast<i32>(binning(x[k]));
                if (bin >= 0) atomicAdd(mine + bin * copies, 1u);
            }
        } else {
            for (i64 i = base; i < count; i += THREADS) {
                const i32 bin = static_cast<i32>(binning(element(p, i)));
                if (bin >= 0) atomicAdd(mine + bin * copies, 1u);
            }
        }
    }
    __syncthreads();
    for (i32 bin = threadIdx.x; bin < bins; bin += THREADS) {
        u64 sum = 0;
        for (i32 c = 0; c < copies; c++) sum += own[bin * copies + ((c + bin) & (copies - 1))];  // the rotation avoids bank conflicts
        if (sum != 0) atomicAdd(counts + bin, sum);
    }
}
#else
// Counts directly in `counts`, which must be zeroed. Used if the counters of all bins do not fit in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram_global(const __grid_constant__ Params p, const Result* __restrict__ edges, u64* __restrict__ counts, i64 bins, i64 count) {
    const Binning binning(edges, bins, nullptr);
    const i64 stride = static_cast<i64>(gridDim.x) * THREADS;
    for (i64 i = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x; i < count; i += stride) {
        const i64 bin = binning(element(p, i));
        if (bin >= 0) atomicAdd(counts + bin, u64(1));
    }
}
#endif

}  // namespace cuprum
