// Stable ranks of a tile's elements by a digit of 8 bits, after sort_keys.cuh. The host defines ELEMENT, THREADS (at least 256) and
// ITEMS (elements of a thread). A tile is striped over warps: item k of lane l of warp w is its element (w * ITEMS + k) * 32 + l.

namespace cuprum {

constexpr int RADIX = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = THREADS * ITEMS;
static_assert(THREADS >= RADIX, "a thread for each digit");

// Lanes of this warp that have the same digit; ballots are faster than __match_any_sync, which takes the values one by one.
__device__ inline u32 same_digit(u32 digit) {
    u32 same = 0xffffffffu;
    #pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        const bool set = digit >> bit & 1;
        const u32 those = __ballot_sync(0xffffffffu, set);
        same &= set ? those : ~those;
    }
    return same;
}

// What ranking needs of shared memory.
struct Counts {
    u32 of[WARPS][RADIX];
};

// A rank and a digit share a word: registers are what limits the size of tiles.
constexpr u32 DIGIT = 16, RANK = (1u << DIGIT) - 1;
static_assert(TILE <= static_cast<int>(RANK), "ranks of 16 bits");

// codes[k], a digit above 0, gets the number of elements of this warp before item k that have this digit. counts.of[warp] becomes
// how many have each.
__device__ inline void rank_in_warp(Counts& counts, u32 (&codes)[ITEMS]) {
    const int lane = threadIdx.x % 32;
    u32* own = counts.of[threadIdx.x / 32];
    #pragma unroll
    for (int k = 0; k < RADIX / 32; k++) own[k * 32 + lane] = 0;
    __syncwarp();
    const u32 below = (1u << lane) - 1;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const u32 digit = codes[k] >> DIGIT, same = same_digit(digit), before = own[digit];
        __syncwarp();
        if ((same & below) == 0) own[digit] = before + __popc(same);
        codes[k] += before + __popc(same & below);
        __syncwarp();
    }
}

// The tile's number of elements with digit threadIdx.x; all warps have counted.
__device__ inline u32 tile_total(const Counts& counts) {
    u32 total = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; w++) total += counts.of[w][threadIdx.x];
    return total;
}

// The sum of `count` over the threads below, of the first RADIX threads. All threads call; `sums` are RADIX / 32 words.
template <class Count> __device__ inline Count sum_below(Count* sums, Count count) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Count inclusive = count;
    #pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const Count other = __shfl_up_sync(0xffffffffu, inclusive, d);
        if (lane >= d) inclusive += other;
    }
    if (lane == 31 && warp < RADIX / 32) sums[warp] = inclusive;
    __syncthreads();
    Count below = inclusive - count;
    #pragma unroll
    for (int w = 0; w < RADIX / 32; w++) below += w < warp ? sums[w] : 0;
    return below;
}

// Turns the counts of digit threadIdx.x into the ranks at which each warp's elements begin, in a tile where the digit begins at
// `start`.
__device__ inline void spread(Counts& counts, u32 start) {
    #pragma unroll
    for (int w = 0; w < WARPS; w++) {
        const u32 count = counts.of[w][threadIdx.x];
        counts.of[w][threadIdx.x] = start;
        start += count;
    }
}

// From ranks in warps, all of them known, to ranks in the tile. `total` is the tile's of digit threadIdx.x, whose rank of the first
// element it returns. All threads call; counts are of no use after it.
__device__ inline u32 rank_in_tile(Counts& counts, u32* sums, u32 total, u32 (&codes)[ITEMS]) {
    const u32 start = sum_below(sums, total);
    if (threadIdx.x < RADIX) spread(counts, start);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) codes[k] += counts.of[threadIdx.x / 32][codes[k] >> DIGIT];
    __syncthreads();
    return start;
}

__device__ inline int first_item() { return threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32; }

// Shared memory for counting, then for moving elements of up to SIZE bytes.
template <int SIZE> union Room {
    Counts counts;
    alignas(16) unsigned char moved[TILE * SIZE];
    // Raw bytes, because complex numbers have a constructor and shared memory may not.
    template <class X> __device__ X& at(int i) { return reinterpret_cast<X*>(moved)[i]; }

    // Puts this thread's items where their ranks are.
    template <class X> __device__ void put(const u32 (&codes)[ITEMS], const X (&items)[ITEMS]) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) at<X>(codes[k] & RANK) = items[k];
    }
    // Brings the tile's items into the order of their ranks; all threads call.
    template <class X> __device__ void sort(const u32 (&codes)[ITEMS], X (&items)[ITEMS]) {
        put(codes, items);
        __syncthreads();
        const int first = first_item();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) items[k] = at<X>(first + k * 32);
        __syncthreads();
    }
};

}  // namespace cuprum
