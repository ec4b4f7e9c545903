// Stable radix sort of rows, from the least significant digit of 8 bits to the most ("onesweep": Adinets and Merrill,
// "Onesweep: a faster least significant digit radix sort for GPUs", 2022). The digits of all passes are counted in one pass;
// then each pass reads and writes every element once, and a tile learns where its elements of a digit go by looking back at
// the tiles of its row before it. A pass over a digit that is the same in all elements of a row is left out, row by row. Elements of two
// words are sorted by one, then by the other.
//
// Stands after relaxed.cuh, share.cuh and keys.cuh; the host defines what the last names, `Place` (unsigned, of an element in its
// row), `THREADS`, `ITEMS`, and `BLOCKS` that a multiprocessor shall hold at once.

namespace cuprum {

constexpr int WARP = 32;
constexpr int TILE = THREADS * ITEMS;
constexpr int DIGITS = 256;
constexpr int PASSES = sizeof(Key);
static_assert(THREADS >= DIGITS, "a thread for each digit");

// How often each digit of a word occurs in each pass: counts[row][pass][digit], 0 before. A block counts one of the `chunks` of a row.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_count(const Bits* __restrict__ from, Place* counts, i64 columns, i64 chunk, u32 chunks, u32 which) {
    __shared__ u32 bins[PASSES][DIGITS];
    for (u32 i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) bins[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();
    const u32 row = blockIdx.x / chunks;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in<THREADS>(from + row * columns, begin, end, [&](const Bits& bits, i64) {
        const Key key = key_of(bits, which);
        #pragma unroll
        for (int pass = 0; pass < PASSES; pass++) atomicAdd(&bins[pass][key >> 8 * pass & 0xff], 1u);
    });
    __syncthreads();
    for (u32 d = threadIdx.x; d < PASSES * DIGITS; d += THREADS) {
        const u32 sum = bins[d / DIGITS][d % DIGITS];
        if (sum > 0) atomicAdd(counts + static_cast<u64>(row) * (PASSES * DIGITS) + d, static_cast<Place>(sum));
    }
}

// Counts become the places in the row where each digit's elements begin. A block a row and pass. `masks`, 0 before, get a bit for
// each pass whose digits are not all alike: the first word those of any row, the words after it those of each.
extern "C" __global__ void __launch_bounds__(DIGITS) sort_begin(Place* counts, u32* masks, i64 columns) {
    using Scan = BlockScan<Place, DIGITS>;
    __shared__ typename Scan::TempStorage storage;
    Place* mine = counts + static_cast<u64>(blockIdx.x) * DIGITS + threadIdx.x;
    const Place count = *mine;
    const bool alike = __syncthreads_or(count == static_cast<Place>(columns));
    if (!alike && threadIdx.x == 0) {
        const u32 bit = 1u << blockIdx.x % PASSES;
        atomicOr(masks, bit);
        atomicOr(masks + 1 + blockIdx.x / PASSES, bit);
    }
    Place begin;
    Scan(storage).ExclusiveSum(count, begin);
    *mine = begin;
}

// A tile's state for a digit is one word: in its top bits which pass wrote it, and whether it is the tile's count or that of
// all tiles of the row up to it. So passes need no clean words before them.
constexpr int TAG_SHIFT = sizeof(Place) == 4 ? 28 : 56;
constexpr Place COUNT = (Place(1) << TAG_SHIFT) - 1;

struct DigitOf {
    u32 shift;
    __device__ u32 Digit(Key key) const { return static_cast<u32>(key >> shift) & 0xff; }
};

// Publishes the tile's counts as soon as they are known, before its elements are ranked.
struct Publish {
    Place* word;
    Place tag;
    u32& count;
    __device__ void operator()(int (&bins)[1]) const {
        count = static_cast<u32>(bins[0]);
        if (word != nullptr) store_relaxed(word, tag << TAG_SHIFT | count);
    }
};

// Where keys and places are between the passes of a row, in turn: the last pass of a row reads from the former. How far the rows of
// places lie apart is told because those in the output's memory lie where nobody else's results go.
struct Between {
    Key* keys[2];
    Place* places[2];
    i64 pitches[2];
};

// One pass over all rows whose masks have it; a row whose digits are all alike has the first. A row's first pass makes the keys (and
// places) itself; its last one leaves what was asked for. `states` has a word for each digit of each tile; `tag` and `tag + 1` are
// this pass's; `ticket` is 0 before. Of two words, `which` is this pass's: the last pass over the first leaves places in `chained`, with
// which the first pass over the second begins.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sort_pass(const Bits* __restrict__ from, const __grid_constant__ Between between, Bits* values, i64* places, const Place* begins,
          const u32* masks, Place* states, u32* ticket, i64 columns, i64 limit, u32 tiles, u32 pass, u32 tag, Place* chained, u32 which) {
    using Ranks = RadixRanks<THREADS>;
    __shared__ union Storage {
        typename Ranks::TempStorage ranks;
        Key keys[TILE];
        Place places[PAIRS ? TILE : 1];  // wide ones of a tile of keys alone would not fit
    } storage;
    __shared__ Place targets[DIGITS];
    __shared__ u32 shared_block;
    if (pass > 0 && (masks[0] >> pass & 1) == 0) return;

    // Tiles are taken in order, so those that a tile waits for are running or done.
    if (threadIdx.x == 0) shared_block = atomicAdd(ticket, 1u);
    __syncthreads();
    const u32 row = shared_block / tiles, tile = shared_block % tiles;
    const u32 passes = masks[1 + row] == 0 ? 1 : masks[1 + row];
    if ((passes >> pass & 1) == 0) return;
    const bool is_first = (passes & ((1u << pass) - 1)) == 0, is_last = passes >> pass == 1;
    const int in = __popc(passes >> pass) & 1 ? 0 : 1, out = 1 - in;
    const i64 row_begin = row * columns, base = static_cast<i64>(tile) * TILE;
    if constexpr (!PAIRS) {  // which gain nothing by it
        const i64 later = base + static_cast<i64>(tiles_ahead(sizeof(Key) * TILE)) * TILE;
        const Key* keys_in = (is_first ? reinterpret_cast<const Key*>(from) : between.keys[in]) + row_begin;
        prefetch_lines<THREADS>(keys_in, later, later + TILE < columns ? later + TILE : columns);
    }
    const int count = columns - base < TILE ? static_cast<int>(columns - base) : TILE;
    const int first = static_cast<int>(threadIdx.x) / WARP * WARP * ITEMS + static_cast<int>(threadIdx.x) % WARP;

    const bool is_begun = WORDS == 2 && which > 0, is_chained = WORDS == 2 && which == 0;
    const auto place_at_first = [&](int i) { return is_begun ? chained[row_begin + base + i] : static_cast<Place>(base + i); };

    // A short tile is the row's last: its keys beyond the end rank behind all others of the largest digit.
    Key keys[ITEMS];
    const Key* source = (is_first && WORDS == 1 ? reinterpret_cast<const Key*>(from) : between.keys[in]) + (row_begin + base + first);
    if (is_first && WORDS == 2) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * WARP;
            keys[k] = i < count ? key_of(from[row_begin + place_at_first(i)], which) : LAST_KEY;
        }
    } else if (count == TILE) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) keys[k] = source[k * WARP];
        if (is_first) {
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) keys[k] = key_of(keys[k]);
        }
    } else {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            keys[k] = LAST_KEY;
            if (first + k * WARP < count) keys[k] = is_first ? key_of(source[k * WARP]) : source[k * WARP];
        }
    }

    const DigitOf extractor{8 * pass};
    const bool has_digit = threadIdx.x < DIGITS;
    Place* word = states + (static_cast<u64>(shared_block) * DIGITS + threadIdx.x);
    u32 in_tile = 0;
    int ranks[ITEMS], rank_of_digit;
    // The first tile's counts are those of all tiles up to it.
    const Publish publish{has_digit && tiles > 1 ? word : nullptr, static_cast<Place>(tile == 0 ? tag + 1 : tag), in_tile};
    Ranks::rank(storage.ranks, keys, ranks, extractor, rank_of_digit, publish);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) storage.keys[ranks[k]] = keys[k];

    if (has_digit) {
        Place before = 0;
        if (tile > 0) {
            for (const Place* earlier = word - DIGITS;; earlier -= DIGITS) {
                Place state;
                do state = load_relaxed(earlier);
                while ((state >> TAG_SHIFT) - tag > 1);
                before += state & COUNT;
                if ((state >> TAG_SHIFT) != tag) break;
            }
            store_relaxed(word, static_cast<Place>(tag + 1) << TAG_SHIFT | (before + in_tile));
        }
        const u64 of_row = (static_cast<u64>(row) * PASSES + pass) * DIGITS;
        // Less the rank of the digit's first element in the tile; this may wrap around.
        targets[threadIdx.x] = begins[of_row + threadIdx.x] + before - static_cast<Place>(rank_of_digit);
    }
    __syncthreads();

    Place to[ITEMS];
    Key* keys_out = between.keys[out] + row_begin;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        const Key key = storage.keys[i];
        to[k] = static_cast<Place>(i) + targets[extractor.Digit(key)];
        if (i < count) {
            if (!is_last) keys_out[to[k]] = key;
            else if (!PAIRS && to[k] < limit) values[row * limit + to[k]] = Bits{bits_of(key)};
        }
        __syncwarp();  // or all items would be in registers at once
    }
    if constexpr (PAIRS) {
        Place at[ITEMS];
        const Place* places_in = between.places[in] + (row * between.pitches[in] + base);
        Place* places_out = between.places[out] + row * between.pitches[out];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = first + k * WARP;
            if (i < count) at[k] = is_first ? place_at_first(i) : places_in[i];
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) storage.places[ranks[k]] = at[k];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            const Place place = storage.places[i];
            if (i < count) {
                if (!is_last) {
                    places_out[to[k]] = place;
                } else if (is_chained) {
                    chained[row_begin + to[k]] = place;
                } else if (to[k] < limit) {
                    if (places != nullptr) places[row * limit + to[k]] = static_cast<i64>(place);
                    if (values != nullptr) values[row * limit + to[k]] = from[row_begin + place];
                }
            }
            __syncwarp();
        }
    }
}

}  // namespace cuprum
