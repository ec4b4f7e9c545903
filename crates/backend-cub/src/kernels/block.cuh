// Block-wide reductions and scans by warp shuffles (CUB's BLOCK_REDUCE_WARP_REDUCTIONS and BLOCK_SCAN_WARP_SCANS), and a warp-wide
// exchange. Requires warp.cuh.
//
// These functions replace CUB's, because NVRTC needs half a second to parse CUB's headers. The first call of a reduction or scan waits for
// its kernel. Such kernels are not compiled in the background: the accelerator `cuda` would run the calls meanwhile, and it combines floats
// in another order. Sorts are compiled in the background, so they use CUB's headers.

namespace cuprum {

// Folds the values of `Lanes` adjacent lanes (a power of 2). Only the first of these lanes gets the result. All lanes of the warp must call
// this function.
template <int Lanes, class T, class Fold> __device__ inline T reduce_lanes(T value, const Fold& fold) {
    #pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) value = fold(value, shuffle_down(value, d));
    return value;
}

// Folds the values of all threads. Only thread 0 gets the result. All threads must call this function. `partials` may be reused after a
// barrier.
template <int Threads, class T, class Fold> __device__ inline T reduce_block(T (&partials)[Threads / 32], T value, const Fold& fold) {
    value = reduce_lanes<32>(value, fold);
    if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        #pragma unroll
        for (int w = 1; w < Threads / 32; w++) value = fold(value, partials[w]);
    }
    return value;
}

// Replaces the items of all threads, in thread order, by their inclusive scan. Returns the fold of all items. All threads must call this
// function. `partials` may be reused after a barrier.
template <int Threads, int Items, class T, class Fold>
__device__ inline T scan_block(T (&partials)[Threads / 32], T (&items)[Items], const Fold& fold) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T running = items[0];
    #pragma unroll
    for (int k = 1; k < Items; k++) running = fold(running, items[k]);
    #pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const T below = shuffle_up(running, d);
        if (lane >= d) running = fold(below, running);
    }
    if (lane == 31) partials[warp] = running;
    T before = shuffle_up(running, 1);
    __syncthreads();
    T total = partials[0], earlier_warps = total;
    #pragma unroll
    for (int w = 1; w < Threads / 32; w++) {
        if (w == warp) earlier_warps = total;
        total = fold(total, partials[w]);
    }
    if (warp > 0) before = lane > 0 ? fold(earlier_warps, before) : earlier_warps;
    if (threadIdx.x > 0) items[0] = fold(before, items[0]);
    #pragma unroll
    for (int k = 1; k < Items; k++) items[k] = fold(items[k - 1], items[k]);
    return total;
}

// Converts the items of a warp between two arrangements. In the striped one, item k of a lane has index 32 * k + lane. In the blocked one,
// a lane has successive items. Each warp has its own struct in shared memory. Padding reduces bank conflicts.
template <class T, int Items> struct WarpExchange {
    static_assert(32 % Items == 0, "padding must not separate the items of a thread");
    T items[33 * Items];

    __device__ T* striped() { return items + threadIdx.x % 32; }
    __device__ T* blocked() { return items + threadIdx.x % 32 * Items + threadIdx.x % 32 * Items / 32; }
    __device__ void striped_to_blocked(T (&own)[Items]) { exchange_items<33, 1>(own, striped(), blocked()); }
    __device__ void blocked_to_striped(T (&own)[Items]) { exchange_items<1, 33>(own, blocked(), striped()); }

    template <int WriteStride, int ReadStride> __device__ static void exchange_items(T (&own)[Items], T* write, const T* read) {
        #pragma unroll
        for (int k = 0; k < Items; k++) write[k * WriteStride] = own[k];
        __syncwarp();
        #pragma unroll
        for (int k = 0; k < Items; k++) own[k] = read[k * ReadStride];
    }
};

}  // namespace cuprum
