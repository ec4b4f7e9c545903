// Prefix of a tile of a scan: the fold of all earlier tiles of its row. Requires warp.cuh and relaxed.cuh.
//
// The prefix comes from decoupled look-back (Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016).
// Unlike the paper's version, the result does not depend on timing, even for floats. Tiles are grouped in spans of 32.
// Shuffles fold the earlier tiles of a tile's span, in an order that depends only on the tile's position in the span.
//
// Spans are folded from left to right. The prefix of a span starts from the nearest finished prefix and adds the totals of later spans one
// by one. By induction every prefix is (((S0 + S1) + S2) + ...), always rounded in this order, where Si is the total of span i. A
// left-to-right fold over single tiles would be a dependency chain as long as the number of tiles, which takes longer than the memory
// accesses.

namespace cuprum {

// Status of a tile or span. EMPTY: nothing is published yet, as in zeroed memory. TOTAL: the fold of the elements of this tile or span is
// published. PREFIX: the fold of all elements of the row up to the end of this tile or span is published.
enum TileStatus : u32 { EMPTY, TOTAL, PREFIX };

// Published look-back states of tiles and spans (groups of tiles): a status and a value of type T. Each 64-bit word holds the status and 32
// bits of the value, so that reads of a word are never torn.
template <class T> struct TileStates {
    static constexpr int WORDS = WordArray<T>::COUNT;
    u64* words;
    u64 state_count;  // number of states of all rows, which is the stride between the words of a state

    __device__ void publish_state(u64 index, TileStatus status, const T& value) const {
        const WordArray<T> parts(value);
        #pragma unroll
        for (int w = 0; w < WORDS; w++) store_relaxed(words + w * state_count + index, static_cast<u64>(status) << 32 | parts.at[w]);
    }
    // Returns the status in the look-back state `index` and sets `value` to the published value. If the words have different statuses,
    // because another block is writing them, the returned status is EMPTY.
    __device__ u32 read_state(u64 index, T& value) const {
        u32 parts[WORDS], status = EMPTY;
        bool whole = true;
        #pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const u64 word = load_relaxed(words + w * state_count + index);
            parts[w] = static_cast<u32>(word);
            const u32 here = static_cast<u32>(word >> 32);
            whole = whole && (w == 0 || here == status);
            status = here;
        }
        memcpy(&value, parts, sizeof(T));
        return whole ? status : EMPTY;
    }
};

// Number of tiles in a span, a group of adjacent tiles. Each lane of a warp reads the published state of one tile of the span.
constexpr int SPAN = 32;

// Returns the number of look-back states of a row of `tiles` tiles: one for each tile, then one for each span.
__device__ inline u64 look_back_state_count(u64 tiles) { return tiles + (tiles + SPAN - 1) / SPAN; }

// Publishes the fold `total` of tile `tile` of a row, and returns the fold of all earlier tiles of the row. The return value is
// undefined for tile 0. `row` is the index of the row's first look-back state. All 32 lanes of one warp must call this function.
template <class T, class Combine>
__device__ inline T fold_earlier_tiles(const TileStates<T>& states, u64 row, u64 tiles, u64 tile, const T& total, const Combine& combine) {
    constexpr u32 ALL_LANES = 0xffffffffu;
    const int lane = threadIdx.x % SPAN, position = static_cast<int>(tile % SPAN);
    const u64 span = tile / SPAN, spans = row + tiles;
    const bool ends = position == SPAN - 1;
    if (lane == 0 && !ends) states.publish_state(row + tile, TOTAL, total);

    // After the two loops, `value` is the fold of the span's tiles up to and including the tile whose state this lane has read.
    T value = total;
    while (!__all_sync(ALL_LANES, lane >= position || states.read_state(row + span * SPAN + lane, value) != EMPTY)) __nanosleep(20);
    #pragma unroll
    for (int d = 1; d < SPAN; d *= 2) {
        const T below = shuffle_up(value, d);
        if (lane >= d) value = combine(below, value);
    }
    const T before = shuffle(value, position > 0 ? position - 1 : 0), of_span = shuffle(value, position);
    if (lane == 0 && ends) states.publish_state(spans + span, span == 0 ? PREFIX : TOTAL, of_span);
    if (span == 0) return before;

    // Combines spans (groups of 32 tiles) from left to right. Each lane reads the state of one of the 32 nearest earlier spans. Negative
    // span indices mean that there is no such span.
    const i64 near = static_cast<i64>(span) - SPAN + lane;
    T found = total;
    int from;
    while (true) {
        const u32 status = near >= 0 ? states.read_state(spans + near, found) : EMPTY;
        const u32 finished = __ballot_sync(ALL_LANES, status == PREFIX), known = __ballot_sync(ALL_LANES, status != EMPTY);
        // `from` is the lane of the latest span with a published prefix. The loop waits until the totals of all later spans are published.
        from = 31 - __clz(finished);
        if (finished != 0 && ~known >> from == 0) break;
        __nanosleep(20);
    }
    T prefix = shuffle(found, from);
    while (++from < SPAN) prefix = combine(prefix, shuffle(found, from));
    if (lane == 0 && ends) states.publish_state(spans + span, PREFIX, combine(prefix, of_span));
    return position > 0 ? combine(prefix, before) : prefix;
}

}  // namespace cuprum
