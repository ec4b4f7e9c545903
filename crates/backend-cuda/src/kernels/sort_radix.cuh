// Stable ranking of the elements of a tile by one 8-bit digit of their keys, the step that radix sorts repeat. Requires sort_keys.cuh.
//
// The host defines ELEMENT (the element type), THREADS (at least 256) and ITEMS (elements per thread). Item k of lane l of warp w is
// element (w * ITEMS + k) * 32 + l of the tile.

namespace cuprum {

constexpr int RADIX = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = THREADS * ITEMS;
static_assert(THREADS >= RADIX, "a thread for each digit");

// Returns the mask of the lanes of this warp whose digit equals this lane's `digit`. Ballots per bit are faster than __match_any_sync,
// which handles one distinct value at a time.
__device__ inline u32 lanes_with_digit(u32 digit) {
    u32 same = 0xffffffffu;
    #pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        const bool set = digit >> bit & 1;
        const u32 those = __ballot_sync(0xffffffffu, set);
        same &= set ? those : ~those;
    }
    return same;
}

// For each warp of a block, the number of its elements with each digit.
struct DigitCounts {
    u32 of_warp[WARPS][RADIX];
};

// A code is one 32-bit word with an element's digit in the upper 16 bits and its rank in the lower 16 bits. Sharing a word saves registers,
// which limit the tile size.
constexpr u32 DIGIT_SHIFT = 16, RANK_MASK = (1u << DIGIT_SHIFT) - 1;
static_assert(TILE <= static_cast<int>(RANK_MASK), "ranks of 16 bits");

// Adds the number of earlier items of this warp with the same digit to the rank bits of `codes[k]`, for each item k. Writes the number of
// the warp's items with each digit to `counts.of_warp[warp]`.
__device__ inline void rank_in_warp(DigitCounts& counts, u32 (&codes)[ITEMS]) {
    const int lane = threadIdx.x % 32;
    u32* own = counts.of_warp[threadIdx.x / 32];
    #pragma unroll
    for (int k = 0; k < RADIX / 32; k++) own[k * 32 + lane] = 0;
    __syncwarp();
    const u32 below = (1u << lane) - 1;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const u32 digit = codes[k] >> DIGIT_SHIFT, same = lanes_with_digit(digit), before = own[digit];
        __syncwarp();
        if ((same & below) == 0) own[digit] = before + __popc(same);
        codes[k] += before + __popc(same & below);
        __syncwarp();
    }
}

// Returns the number of elements of the tile with digit threadIdx.x. All warps must have called `rank_in_warp` before.
__device__ inline u32 tile_digit_count(const DigitCounts& counts) {
    u32 total = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; w++) total += counts.of_warp[w][threadIdx.x];
    return total;
}

// Returns the sum of `count` over all threads with lower indices. The result is valid only in the first RADIX threads, but all threads of
// the block must call this function. `sums` is shared memory for RADIX / 32 numbers.
template <class Count> __device__ inline Count sum_lower_threads(Count* sums, Count count) {
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

// Replaces each warp's count of digit threadIdx.x with the rank of the warp's first element with this digit. `start` is the rank of the
// tile's first element with this digit.
__device__ inline void counts_to_starts(DigitCounts& counts, u32 start) {
    #pragma unroll
    for (int w = 0; w < WARPS; w++) {
        const u32 count = counts.of_warp[w][threadIdx.x];
        counts.of_warp[w][threadIdx.x] = start;
        start += count;
    }
}

// Converts the rank bits of `codes` from ranks within a warp to ranks within the tile. Returns the rank of the tile's first element with
// digit threadIdx.x. `total` is the tile's number of elements with this digit. All threads of the block must call this function after all
// warps have called `rank_in_warp`. `counts` is invalid afterwards.
__device__ inline u32 rank_in_tile(DigitCounts& counts, u32* sums, u32 total, u32 (&codes)[ITEMS]) {
    const u32 start = sum_lower_threads(sums, total);
    if (threadIdx.x < RADIX) counts_to_starts(counts, start);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) codes[k] += counts.of_warp[threadIdx.x / 32][codes[k] >> DIGIT_SHIFT];
    __syncthreads();
    return start;
}

// Returns the index in the tile of this thread's item 0. The thread's other items follow at distances of 32.
__device__ inline int first_item() { return threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32; }

// Shared memory for counting digits, then for moving elements of up to SIZE bytes to their ranks.
template <int SIZE> union RankingStorage {
    DigitCounts counts;
    alignas(16) unsigned char moved[TILE * SIZE];
    // Returns item i of `moved`. The memory is raw bytes, because shared memory does not allow types with a constructor, such as complex.
    template <class X> __device__ X& at(int i) { return reinterpret_cast<X*>(moved)[i]; }

    // Stores each of this thread's `items` at its rank, which the lower bits of `codes` hold.
    template <class X> __device__ void store_by_rank(const u32 (&codes)[ITEMS], const X (&items)[ITEMS]) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) at<X>(codes[k] & RANK_MASK) = items[k];
    }
    // Reorders the items of the tile by their ranks in `codes`. All threads of the block must call this function.
    template <class X> __device__ void reorder_by_rank(const u32 (&codes)[ITEMS], X (&items)[ITEMS]) {
        store_by_rank(codes, items);
        __syncthreads();
        const int first = first_item();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) items[k] = at<X>(first + k * 32);
        __syncthreads();
    }
};

}  // namespace cuprum
