// A stable LSD radix sort of long rows (Adinets and Merrill, "Onesweep: a faster least significant digit radix sort for GPUs", 2022).
// Requires digit_look_back.cuh, block_range.cuh and sort_radix.cuh.
//
// One pass over memory counts all digits. Then one pass per digit moves the elements, with decoupled look-back between tiles. A row skips a
// pass if all its elements have the same digit in this pass. The row's mask has a bit for each pass that is not skipped.
//
// The host also defines INDICES (1 if indices are an output, else 0) and Word (u32 or u64). A Word holds an index within a row, or a count
// and two status bits.

using namespace cuprum;

using Key = decltype(sort_key(*static_cast<const ELEMENT*>(nullptr)));
constexpr int PASSES = sizeof(Key);
// Number of copies of a block's digit counts, so that lanes of a warp rarely increment the same counter.
constexpr int COUNTER_COPIES = PASSES <= 2 ? 8 : 16 / PASSES;
// Size in bytes of the larger of an element and, if indices are sorted too, an index.
constexpr int MOVED_BYTES = INDICES && sizeof(ELEMENT) < sizeof(Word) ? sizeof(Word) : sizeof(ELEMENT);

// Counts the digits of all passes in `counts`, an array [row][pass][digit] that must be zeroed. Each block counts one chunk of a row.
// `flip` is XORed with each digit: 255 for descending order, else 0.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_count_digits(const ELEMENT* __restrict__ in, Word* __restrict__ counts, i64 length, i64 chunk, i64 chunks, u32 flip) {
    __shared__ u32 own[PASSES * RADIX * COUNTER_COPIES];
    for (int i = threadIdx.x; i < PASSES * RADIX * COUNTER_COPIES; i += THREADS) own[i] = 0;
    __syncthreads();
    const i64 row = blockIdx.x / chunks, begin = blockIdx.x % chunks * chunk, end = begin + chunk < length ? begin + chunk : length;
    u32* mine = own + threadIdx.x % COUNTER_COPIES;
    for_each_in_block_range<THREADS>(in + row * length, begin, end, [&](const ELEMENT& x, i64) {
        const Key key = sort_key(x);
        #pragma unroll
        for (int p = 0; p < PASSES; p++) atomicAdd(mine + (p * RADIX + byte_at(key, 8 * p)) * COUNTER_COPIES, 1u);
    });
    __syncthreads();
    for (int d = threadIdx.x; d < PASSES * RADIX; d += THREADS) {
        u32 sum = 0;
        #pragma unroll
        for (int c = 0; c < COUNTER_COPIES; c++) sum += own[d * COUNTER_COPIES + c];
        if (sum != 0) atomicAdd(counts + row * PASSES * RADIX + (static_cast<u32>(d) ^ flip), static_cast<Word>(sum));
    }
}

// Replaces the count of each digit by the index in the sorted row at which the elements with this digit start. The grid has one block per
// row and pass. If the elements of a row have different digits, sets the bit of the pass in the row's mask in `masks`, which must be
// zeroed.
extern "C" __global__ void __launch_bounds__(RADIX)
sort_digit_starts(Word* __restrict__ counts, u32* __restrict__ masks, i64 length) {
    __shared__ Word sums[RADIX / 32];
    Word* at = counts + static_cast<i64>(blockIdx.x) * RADIX + threadIdx.x;
    const Word count = *at;
    const bool constant = __syncthreads_or(count == static_cast<Word>(length));
    if (!constant && threadIdx.x == 0) atomicOr(masks + blockIdx.x / PASSES, 1u << blockIdx.x % PASSES);
    *at = sum_lower_threads(sums, count);
}

// Device memory of a sort: the input, the buffers between passes, and the outputs.
struct SortPassBuffers {
    const ELEMENT* in;
    // Elements and indices between passes. Each array has two buffers, to which the passes write alternately.
    ELEMENT* values[2];
    Word* indices[2];
    // Row stride of each buffer in `indices`, in elements.
    i64 pitches[2];
    // Outputs, with `limit` elements per row. `out_values` may be null.
    ELEMENT* out_values;
    i64* out_indices;
};

// Sorts the elements of each row by the radix digit of pass number `pass`, with one block per tile. `ticket`, which numbers the tiles, and
// the look-back states in `states` (RADIX words per tile) must be zeroed. The kernel zeroes `next_states`, the states of the next pass.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sort_pass(const __grid_constant__ SortPassBuffers buffers, const Word* __restrict__ starts, const u32* __restrict__ masks, u32* ticket,
          Word* states, Word* next_states, i64 length, i64 limit, i64 tiles, u32 pass, u32 flip) {
    __shared__ RankingStorage<MOVED_BYTES> storage;
    __shared__ i64 where[RADIX];
    __shared__ u32 sums[RADIX / 32];
    __shared__ u32 shared_ticket;
    using S = LookBackState<Word>;

    if (threadIdx.x == 0) shared_ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    const i64 row = shared_ticket / tiles, tile = shared_ticket % tiles;
    if (threadIdx.x < RADIX) next_states[static_cast<i64>(shared_ticket) * RADIX + threadIdx.x] = 0;
    u32 mask = masks[row];
    if (mask == 0) mask = 1;  // a row of equal elements needs one pass, which writes the result
    if ((mask >> pass & 1) == 0) return;
    // Passes alternate between the two buffers. The pass before the last one writes to buffer 1.
    const u32 turn = __popc(mask & ((1u << pass) - 1)), turns = __popc(mask);
    const bool from_input = turn == 0, last = turn == turns - 1;
    const u32 source = turns - turn & 1, target = source ^ 1;

    const ELEMENT* from = (from_input ? buffers.in : buffers.values[source]) + row * length + tile * TILE;
    const i64 left = length - tile * TILE;
    const int valid = left < TILE ? static_cast<int>(left) : TILE;
    const int first = first_item();
    const u32 shift = 8 * pass;

    ELEMENT x[ITEMS];
    u32 codes[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * 32 < valid) x[k] = from[first + k * 32];
    }
    // Padding after the end of the row has the largest digit. The sort is stable, so the padding stays after all elements.
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) codes[k] = (first + k * 32 < valid ? byte_at(sort_key(x[k]), shift) ^ flip : RADIX - 1) << DIGIT_SHIFT;
    rank_in_warp(storage.counts, codes);
    __syncthreads();
    u32 total = 0;
    if (threadIdx.x < RADIX) {
        total = tile_digit_count(storage.counts);
        store_relaxed(states + static_cast<i64>(shared_ticket) * RADIX + threadIdx.x, (tile == 0 ? S::PREFIX : S::TOTAL) | total);
    }
    const u32 start = rank_in_tile(storage.counts, sums, total, codes);
    storage.store_by_rank(codes, x);
#if INDICES
    const Word* indices = buffers.indices[source] + row * buffers.pitches[source] + tile * TILE;
    Word index[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * 32;
        index[k] = from_input || i >= valid ? static_cast<Word>(tile * TILE + i) : indices[i];
    }
#endif
    if (threadIdx.x < RADIX) {
        Word before = 0;
        if (tile > 0) {
            before = digit_count_in_earlier_tiles(states + row * tiles * RADIX, tile);
            store_relaxed(states + static_cast<i64>(shared_ticket) * RADIX + threadIdx.x, S::PREFIX | (before + total));
        }
        const Word digit_start = starts[(row * PASSES + pass) * RADIX + threadIdx.x];
        where[threadIdx.x] = static_cast<i64>(digit_start + before) - start;
    }
    __syncthreads();

    ELEMENT* values = last ? buffers.out_values : buffers.values[target];
    const i64 end = last ? limit : length;
#if INDICES
    u8 digits[ITEMS];
#endif
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < valid) {
            const ELEMENT moved = storage.template at<ELEMENT>(i);
            const u32 digit = byte_at(sort_key(moved), shift) ^ flip;
            const i64 to = where[digit] + i;
#if INDICES
            digits[k] = static_cast<u8>(digit);
#endif
            if (values != nullptr && to < end) values[row * end + to] = moved;
        }
    }
#if INDICES
    __syncthreads();
    storage.store_by_rank(codes, index);
    __syncthreads();
    Word* next_indices = buffers.indices[target] + row * buffers.pitches[target];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < valid) {
            const i64 to = where[digits[k]] + i;
            const Word moved = storage.template at<Word>(i);
            if (!last) next_indices[to] = moved;
            else if (to < limit) buffers.out_indices[row * limit + to] = moved;
        }
    }
#endif
}
