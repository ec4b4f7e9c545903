// Counts of values in bins, after the prelude and an element's code. The host defines RULE (0: the value is the number of its bin,
// 1: even edges, 2: any edges), SHARED (1: counts lie in shared memory until a block is done) and ITEMS (elements of a thread).
//
// Counts are whole numbers, so their sums do not depend on the order.

namespace cuprum {

constexpr int THREADS = 512;

#if RULE == 0
struct Binning {
    __device__ Binning(const Result*, i64) {}
    __device__ i64 bin(Result x) const { return x; }
};
#else
// Bin i holds edges[i] <= x < edges[i + 1], the last one its right edge too; -1 is none.
struct Binning {
    const Result* edges;
    i64 bins;
    Result first, last;
#if RULE == 1
    Result scale;
#endif

    __device__ Binning(const Result* edges, i64 bins) : edges(edges), bins(bins), first(edges[0]), last(edges[bins]) {
#if RULE == 1
        // Of halves, whose difference does not overflow.
        scale = static_cast<Result>(bins) / (last * Result(0.5) - first * Result(0.5));
#endif
    }
    __device__ bool holds(i64 bin, Result x) const { return edges[bin] <= x && (x < edges[bin + 1] || bin == bins - 1); }
    // The last bin that begins at or before x, by halving.
    __device__ i64 search(Result x) const {
        i64 low = 0, high = bins;
        while (high - low > 1) {
            const i64 middle = low + (high - low) / 2;
            if (edges[middle] <= x) low = middle;
            else high = middle;
        }
        return low;
    }
    __device__ i64 bin(Result x) const {
        if (!(first <= x && x <= last)) return -1;
#if RULE == 1
        i64 guess = cast<i64>((x * Result(0.5) - first * Result(0.5)) * scale);
        guess = guess < 0 ? 0 : guess >= bins ? bins - 1 : guess;
        if (holds(guess, x)) return guess;
        guess += edges[guess] <= x ? 1 : -1;
        if (guess >= 0 && guess < bins && holds(guess, x)) return guess;
#endif
        return search(x);
    }
};
#endif

#if SHARED
constexpr i64 TILE = THREADS * ITEMS;

// `counts` is 0 before. In shared memory stand `copies` counts of each bin, for as many lanes, then the edges.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram_shared(const __grid_constant__ Params p, const Result* __restrict__ edges, u64* __restrict__ counts, i64 bins, i64 count, i32 copies) {
    extern __shared__ uint4 shared[];
    const i32 cells = static_cast<i32>(bins) * copies;
    u32* own = reinterpret_cast<u32*>(shared);
    for (i32 i = threadIdx.x; i < cells; i += THREADS) own[i] = 0;
#if RULE > 0
    Result* near = reinterpret_cast<Result*>(shared + (cells + 3) / 4);
    for (i32 i = threadIdx.x; i <= bins; i += THREADS) near[i] = edges[i];
#else
    const Result* near = edges;
#endif
    __syncthreads();
    const Binning binning(near, bins);
    u32* mine = own + (threadIdx.x & (copies - 1));
    for (i64 tile = blockIdx.x * TILE; tile < count; tile += gridDim.x * TILE) {
        const i64 base = tile + threadIdx.x;
        if (tile + TILE <= count) {
            Result x[ITEMS];
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) x[k] = element(p, base + k * THREADS);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const i32 bin = static_cast<i32>(binning.bin(x[k]));
                if (bin >= 0) atomicAdd(mine + bin * copies, 1u);
            }
        } else {
            for (i64 i = base; i < count; i += THREADS) {
                const i32 bin = static_cast<i32>(binning.bin(element(p, i)));
                if (bin >= 0) atomicAdd(mine + bin * copies, 1u);
            }
        }
    }
    __syncthreads();
    for (i32 bin = threadIdx.x; bin < bins; bin += THREADS) {
        u64 sum = 0;
        for (i32 c = 0; c < copies; c++) sum += own[bin * copies + ((c + bin) & (copies - 1))];  // in different banks
        if (sum != 0) atomicAdd(counts + bin, sum);
    }
}
#else
// `counts` is 0 before.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram_global(const __grid_constant__ Params p, const Result* __restrict__ edges, u64* __restrict__ counts, i64 bins, i64 count) {
    const Binning binning(edges, bins);
    const i64 stride = static_cast<i64>(gridDim.x) * THREADS;
    for (i64 i = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x; i < count; i += stride) {
        const i64 bin = binning.bin(element(p, i));
        if (bin >= 0) atomicAdd(counts + bin, u64(1));
    }
}
#endif

}  // namespace cuprum
