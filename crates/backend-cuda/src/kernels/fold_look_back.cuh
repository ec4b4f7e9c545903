// What a tile of a scan continues from, after warp.cuh and relaxed.cuh: decoupled look-back (Merrill and Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016) among the tiles of a row.
//
// Unlike the paper's, this look-back has one result whatever the timing, for floats too. Tiles lie in spans of 32. What is before a tile
// in its span is folded by shuffles, in an order that its place there says. Spans are folded from left to right: whoever needs the prefix
// P(s) of a span starts from the nearest that is finished and adds the totals of the spans after it one by one. That one was made the
// same way, so by induction every prefix is (((S0 + S1) + S2) + ...), rounded at the same places, whatever was met. A fold over single
// tiles from left to right would be a chain of as many additions as there are tiles, which takes longer than the memory.

namespace cuprum {

// What a tile or a span has told: nothing yet (memory is zeroed before), its own total, or that of its row up to its end.
enum TileStatus : u32 { EMPTY, TOTAL, PREFIX };

// A state for each tile, in words of 32 bits of status and 32 of value, so that none is ever met half written.
template <class T> struct TileStates {
    static constexpr int WORDS = Words<T>::COUNT;
    u64* words;
    u64 tiles;  // of all rows: how far a state's words lie apart

    __device__ void put(u64 tile, TileStatus status, const T& value) const {
        const Words<T> parts(value);
        #pragma unroll
        for (int w = 0; w < WORDS; w++) store_relaxed(words + w * tiles + tile, static_cast<u64>(status) << 32 | parts.at[w]);
    }
    // The status: EMPTY as long as words of different statuses are met.
    __device__ u32 get(u64 tile, T& value) const {
        u32 parts[WORDS], status = EMPTY;
        bool whole = true;
        #pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const u64 word = load_relaxed(words + w * tiles + tile);
            parts[w] = static_cast<u32>(word);
            const u32 here = static_cast<u32>(word >> 32);
            whole = whole && (w == 0 || here == status);
            status = here;
        }
        memcpy(&value, parts, sizeof(T));
        return whole ? status : EMPTY;
    }
};

// Tiles of a span, one for each lane of a warp.
constexpr int SPAN = 32;

// States of a row: those of its tiles, then those of its spans.
__device__ inline u64 states_of_row(u64 tiles) { return tiles + (tiles + SPAN - 1) / SPAN; }

// Tells the `total` of a tile; gives the fold of what is before it in its row, if it is not the first. `row` is the row's first state. A
// whole warp calls.
template <class T, class Combine>
__device__ inline T fold_back(const TileStates<T>& states, u64 row, u64 tiles, u64 tile, const T& total, const Combine& combine) {
    constexpr u32 ALL = 0xffffffffu;
    const int lane = threadIdx.x % SPAN, place = static_cast<int>(tile % SPAN);
    const u64 span = tile / SPAN, spans = row + tiles;
    const bool ends = place == SPAN - 1;
    if (lane == 0 && !ends) states.put(row + tile, TOTAL, total);

    // Totals of the span's tiles up to this one.
    T value = total;
    while (!__all_sync(ALL, lane >= place || states.get(row + span * SPAN + lane, value) != EMPTY)) __nanosleep(20);
    #pragma unroll
    for (int d = 1; d < SPAN; d *= 2) {
        const T below = shuffle_up(value, d);
        if (lane >= d) value = combine(below, value);
    }
    const T before = shuffle(value, place > 0 ? place - 1 : 0), of_span = shuffle(value, place);
    if (lane == 0 && ends) states.put(spans + span, span == 0 ? PREFIX : TOTAL, of_span);
    if (span == 0) return before;

    // In the order of spans; those that are negative belong to none.
    const i64 near = static_cast<i64>(span) - SPAN + lane;
    T found = total;
    int from;
    while (true) {
        const u32 status = near >= 0 ? states.get(spans + near, found) : EMPTY;
        const u32 finished = __ballot_sync(ALL, status == PREFIX), known = __ballot_sync(ALL, status != EMPTY);
        // The last prefix that was met; all that follows it must be known.
        from = 31 - __clz(finished);
        if (finished != 0 && ~known >> from == 0) break;
        __nanosleep(20);
    }
    T prefix = shuffle(found, from);
    while (++from < SPAN) prefix = combine(prefix, shuffle(found, from));
    if (lane == 0 && ends) states.put(spans + span, PREFIX, combine(prefix, of_span));
    return place > 0 ? combine(prefix, before) : prefix;
}

}  // namespace cuprum
