// Reductions, scans and exchanges within a block by shuffles, after warp.cuh: CUB's BLOCK_REDUCE_WARP_REDUCTIONS and
// BLOCK_SCAN_WARP_SCANS. They are written out because NVRTC reads CUB's headers for half a second, and whoever asks for the first sum
// of floats waits for it (the base, which adds in another order, may not serve meanwhile). Sorts are compiled aside and take CUB's own.

namespace cuprum {

// The fold of `Lanes` neighbours (a power of 2) for the first of them; all lanes of the warp call.
template <int Lanes, class T, class Fold> __device__ inline T reduce_lanes(T value, const Fold& fold) {
    #pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) value = fold(value, shuffle_down(value, d));
    return value;
}

// The fold of all threads' values for thread 0; all threads call. `partials` may be used again after a barrier.
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

// Running folds over all threads' items in the order of threads, and the fold of all; all threads call. `partials` as above.
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
    T total = partials[0], of_warps = total;
    #pragma unroll
    for (int w = 1; w < Threads / 32; w++) {
        if (w == warp) of_warps = total;
        total = fold(total, partials[w]);
    }
    if (warp > 0) before = lane > 0 ? fold(of_warps, before) : of_warps;
    if (threadIdx.x > 0) items[0] = fold(before, items[0]);
    #pragma unroll
    for (int k = 1; k < Items; k++) items[k] = fold(items[k - 1], items[k]);
    return total;
}

// Items between the order of memory, in which item k of a lane is number 32 * k + lane of its warp's, and that of threads. A warp's
// own part of shared memory, padded so that lanes seldom meet in a bank.
template <class T, int Items> struct WarpExchange {
    static_assert(32 % Items == 0, "a thread's items are not cut by padding");
    T items[33 * Items];

    __device__ T* in_memory() { return items + threadIdx.x % 32; }
    __device__ T* in_thread() { return items + threadIdx.x % 32 * Items + threadIdx.x % 32 * Items / 32; }
    __device__ void to_threads(T (&mine)[Items]) { move<33, 1>(mine, in_memory(), in_thread()); }
    __device__ void to_memory(T (&mine)[Items]) { move<1, 33>(mine, in_thread(), in_memory()); }

    template <int From, int To> __device__ static void move(T (&mine)[Items], T* from, const T* to) {
        #pragma unroll
        for (int k = 0; k < Items; k++) from[k * From] = mine[k];
        __syncwarp();
        #pragma unroll
        for (int k = 0; k < Items; k++) mine[k] = to[k * To];
    }
};

}  // namespace cuprum
