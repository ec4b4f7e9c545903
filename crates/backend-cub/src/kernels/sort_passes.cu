// Stable radix sort of rows, starting with the least significant 8-bit digit. Source: Adinets and Merrill, "Onesweep: a faster least
// significant digit radix sort for GPUs", 2022.
//
// One kernel counts the digits of all passes. Then each pass reads and writes every element once. Decoupled look-back over the earlier
// tiles of a row gives a tile the output index of each of its digits. A row skips passes in which all of its digits are equal. Elements
// with two keys (complex128) are sorted by the less significant key, key 0, and then by key 1.
//
// Requires relaxed.cuh, block_range.cuh and sort_keys.cuh. The host defines the names that the last requires, and:
//   RowIndex    unsigned type for indices within a row
//   THREADS     threads per block
//   ITEMS       elements per thread
//   MIN_BLOCKS  minimum number of resident blocks per multiprocessor

namespace cuprum {

constexpr int WARP = 32;
constexpr int TILE = THREADS * ITEMS;
constexpr int DIGITS = 256;
constexpr int PASSES = sizeof(Key);
static_assert(THREADS >= DIGITS, "each digit needs a thread");

// Counts the digits of key number `word` for each pass, into counts[row][pass][digit], which must be zeroed. A block counts one chunk of a
// row.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_count_digits(const Bits* __restrict__ from, RowIndex* counts, i64 columns, i64 chunk, u32 chunks, u32 word) {
    __shared__ u32 bins[PASSES][DIGITS];
    for (u32 i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) bins[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();
    const u32 row = blockIdx.x / chunks;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in_block_range<THREADS>(from + row * columns, begin, end, [&](const Bits& bits, i64) {
        const Key key = sort_key_of(bits, word);
        #pragma unroll
        for (int pass = 0; pass < PASSES; pass++) atomicAdd(&bins[pass][key >> 8 * pass & 0xff], 1u);
    });
    __syncthreads();
    for (u32 d = threadIdx.x; d < PASSES * DIGITS; d += THREADS) {
        const u32 sum = bins[d / DIGITS][d % DIGITS];
        if (sum > 0) atomicAdd(counts + static_cast<u64>(row) * (PASSES * DIGITS) + d, static_cast<RowIndex>(sum));
    }
}

// Replaces the count of each digit by the index in the row at which the elements with this digit begin. There is a block for each row and
// pass.
//
// `masks` must be zeroed. masks[1 + r] gets a bit for each pass in which row r has different digits. masks[0] gets the bits of all rows.
extern "C" __global__ void __launch_bounds__(DIGITS) sort_digit_offsets(RowIndex* counts, u32* masks, i64 columns) {
    using Scan = BlockScan<RowIndex, DIGITS>;
    __shared__ typename Scan::TempStorage storage;
    RowIndex* own = counts + static_cast<u64>(blockIdx.x) * DIGITS + threadIdx.x;
    const RowIndex count = *own;
    const bool all_equal = __syncthreads_or(count == static_cast<RowIndex>(columns));
    if (!all_equal && threadIdx.x == 0) {
        const u32 bit = 1u << blockIdx.x % PASSES;
        atomicOr(masks, bit);
        atomicOr(masks + 1 + blockIdx.x / PASSES, bit);
    }
    RowIndex begin;
    Scan(storage).ExclusiveSum(count, begin);
    *own = begin;
}

// The look-back state of a tile for a digit is one word: a tag in the upper 4 of 32 bits, or 8 of 64 bits, and a count in the lower bits.
// The tag identifies the pass, and whether the count is that of the tile alone or includes all earlier tiles of the row. Because of the
// tags, states are not zeroed between passes.
constexpr int TAG_SHIFT = sizeof(RowIndex) == 4 ? 28 : 56;
constexpr RowIndex COUNT = (RowIndex(1) << TAG_SHIFT) - 1;

struct DigitExtractor {
    u32 shift;
    __device__ u32 Digit(Key key) const { return static_cast<u32>(key >> shift) & 0xff; }
};

// Publishes the counts of a tile before its elements are ranked, so that later tiles wait less.
struct PublishDigitCounts {
    RowIndex* word;
    RowIndex tag;
    u32& count;
    __device__ void operator()(int (&bins)[1]) const {
        count = static_cast<u32>(bins[0]);
        if (word != nullptr) store_relaxed(word, tag << TAG_SHIFT | count);
    }
};

// Keys and indices between passes. Passes alternate between two buffers, and the last pass of a row reads buffer 0. Buffer 1 may be the
// memory of an output. `index_strides` are the row strides of the indices, so that no row overwrites results of other rows.
struct RadixPassBuffers {
    Key* keys[2];
    RowIndex* indices[2];
    i64 index_strides[2];
};

// One pass of the radix sort, by digit number `pass`. A row is skipped if bit `pass` of its mask is 0. A row whose keys are all equal runs
// pass 0 only, which copies the row.
//
// The first pass of a row computes the keys and indices. The last pass writes the first `limit` elements to `values` and `indices`, each of
// which may be null. `states` has a word for each digit of each tile. In this pass, the tag `tag` marks the count of a tile alone, and `tag
// + 1` marks a count that includes all earlier tiles of the row. Blocks take tile numbers from the counter `ticket`, which must be zeroed.
//
// If elements have two keys, `word` is the number of the key by which this pass sorts. The last pass for key 0 then writes the order of the
// elements, as indices, to `word_order`. The first pass for key 1 reads the elements in this order.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
sort_pass(const Bits* __restrict__ from, const __grid_constant__ RadixPassBuffers buffers, Bits* values, i64* indices, const RowIndex* digit_offsets,
          const u32* masks, RowIndex* states, u32* ticket, i64 columns, i64 limit, u32 tiles, u32 pass, u32 tag, RowIndex* word_order, u32 word) {
    using Ranks = RadixRanks<THREADS>;
    __shared__ union Storage {
        typename Ranks::TempStorage ranks;
        Key keys[TILE];
        RowIndex indices[PAIRS ? TILE : 1];  // without pairs a tile has more items, for which 64-bit indices would not fit
    } storage;
    __shared__ RowIndex targets[DIGITS];
    __shared__ u32 shared_block;
    if (pass > 0 && (masks[0] >> pass & 1) == 0) return;

    // Blocks take tile numbers in increasing order. A block therefore waits only for tiles of blocks that have started, so the wait ends.
    if (threadIdx.x == 0) shared_block = atomicAdd(ticket, 1u);
    __syncthreads();
    const u32 row = shared_block / tiles, tile = shared_block % tiles;
    const u32 passes = masks[1 + row] == 0 ? 1 : masks[1 + row];
    if ((passes >> pass & 1) == 0) return;
    const bool is_first = (passes & ((1u << pass) - 1)) == 0, is_last = passes >> pass == 1;
    const int in = __popc(passes >> pass) & 1 ? 0 : 1, out = 1 - in;
    const i64 row_begin = row * columns, base = static_cast<i64>(tile) * TILE;
    if constexpr (!PAIRS) {  // pairs gain nothing from prefetching
        const i64 prefetched = base + static_cast<i64>(prefetch_distance_in_tiles(sizeof(Key) * TILE)) * TILE;
        const Key* keys_in = (is_first ? reinterpret_cast<const Key*>(from) : buffers.keys[in]) + row_begin;
        prefetch_lines<THREADS>(keys_in, prefetched, prefetched + TILE < columns ? prefetched + TILE : columns);
    }
    const int count = columns - base < TILE ? static_cast<int>(columns - base) : TILE;
    const int first = static_cast<int>(threadIdx.x) / WARP * WARP * ITEMS + static_cast<int>(threadIdx.x) % WARP;

    const bool is_second_word = WORDS == 2 && word > 0, is_first_word = WORDS == 2 && word == 0;
    const auto initial_index = [&](int i) { return is_second_word ? word_order[row_begin + base + i] : static_cast<RowIndex>(base + i); };

    // Only the last tile of a row may be short. Items past the end of the row have the largest key, which ranks after all elements.
    Key keys[ITEMS];
    const Key* source = (is_first && WORDS == 1 ? reinterpret_cast<const Key*>(from) : buffers.keys[in]) + (row_begin + base + first);
    if (is_first && WORDS == 2) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * WARP;
            keys[k] = i < count ? sort_key_of(from[row_begin + initial_index(i)], word) : LAST_KEY;
        }
    } else if (count == TILE) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) keys[k] = source[k * WARP];
        if (is_first) {
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) keys[k] = sort_key_of(keys[k]);
        }
    } else {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            keys[k] = LAST_KEY;
            if (first + k * WARP < count) keys[k] = is_first ? sort_key_of(source[k * WARP]) : source[k * WARP];
        }
    }

    const DigitExtractor extractor{8 * pass};
    const bool has_digit = threadIdx.x < DIGITS;
    RowIndex* state_word = states + (static_cast<u64>(shared_block) * DIGITS + threadIdx.x);
    u32 in_tile = 0;
    int ranks[ITEMS], digit_begin;
    // The counts of a row's first tile get the tag of inclusive counts, because there are no earlier tiles to include.
    const PublishDigitCounts publish{has_digit && tiles > 1 ? state_word : nullptr, static_cast<RowIndex>(tile == 0 ? tag + 1 : tag), in_tile};
    Ranks::rank_keys(storage.ranks, keys, ranks, extractor, digit_begin, publish);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) storage.keys[ranks[k]] = keys[k];

    if (has_digit) {
        RowIndex before = 0;
        if (tile > 0) {
            for (const RowIndex* earlier = state_word - DIGITS;; earlier -= DIGITS) {
                RowIndex state;
                do state = load_relaxed(earlier);
                while ((state >> TAG_SHIFT) - tag > 1);
                before += state & COUNT;
                if ((state >> TAG_SHIFT) != tag) break;
            }
            store_relaxed(state_word, static_cast<RowIndex>(tag + 1) << TAG_SHIFT | (before + in_tile));
        }
        const u64 row_pass = (static_cast<u64>(row) * PASSES + pass) * DIGITS;
        // `targets[digit]` plus the rank of an element with this digit in the tile is the element's output index. The subtraction may wrap
        // around.
        targets[threadIdx.x] = digit_offsets[row_pass + threadIdx.x] + before - static_cast<RowIndex>(digit_begin);
    }
    __syncthreads();

    RowIndex to[ITEMS];
    Key* keys_out = buffers.keys[out] + row_begin;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        const Key key = storage.keys[i];
        to[k] = static_cast<RowIndex>(i) + targets[extractor.Digit(key)];
        if (i < count) {
            if (!is_last) keys_out[to[k]] = key;
            else if (!PAIRS && to[k] < limit) values[row * limit + to[k]] = Bits{bits_of(key)};
        }
        __syncwarp();  // keeps the compiler from holding all items in registers
    }
    if constexpr (PAIRS) {
        RowIndex own_indices[ITEMS];
        const RowIndex* indices_in = buffers.indices[in] + (row * buffers.index_strides[in] + base);
        RowIndex* indices_out = buffers.indices[out] + row * buffers.index_strides[out];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * WARP;
            if (i < count) own_indices[k] = is_first ? initial_index(i) : indices_in[i];
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) storage.indices[ranks[k]] = own_indices[k];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            const RowIndex index = storage.indices[i];
            if (i < count) {
                if (!is_last) {
                    indices_out[to[k]] = index;
                } else if (is_first_word) {
                    word_order[row_begin + to[k]] = index;
                } else if (to[k] < limit) {
                    if (indices != nullptr) indices[row * limit + to[k]] = static_cast<i64>(index);
                    if (values != nullptr) values[row * limit + to[k]] = from[row_begin + index];
                }
            }
            __syncwarp();
        }
    }
}

}  // namespace cuprum
