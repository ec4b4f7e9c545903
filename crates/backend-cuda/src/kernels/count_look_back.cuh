// Exclusive prefix sum of the tiles' counts: the number of selected elements in all tiles before a tile. Requires relaxed.cuh.
//
// The sum uses decoupled look-back (Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016). It adds the
// counts of the earlier tiles in the tile's span of 32 tiles, then the counts of the earlier spans. The state of a tile or span is one
// word, with a status in the upper 2 bits and a count in the lower bits. Reads of a state are therefore never torn. Blocks take tile
// numbers from a counter (the ticket) when they start, so a tile waits only for tiles that are running or done.

namespace cuprum {

// Encoding of a look-back state in a word of type `Word`, u32 or u64.
template <class Word> struct LookBackState {
    static constexpr int SHIFT = 8 * sizeof(Word) - 2;
    static constexpr Word COUNT = (Word(1) << SHIFT) - 1;
    // The status bits of a state. A zeroed state is empty. TOTAL marks the count of one tile or span alone. PREFIX marks the sum
    // of all counts up to and including the tile or span.
    static constexpr Word TOTAL = Word(1) << SHIFT, PREFIX = Word(2) << SHIFT;
    __device__ static bool is_empty(Word w) { return w >> SHIFT == 0; }
    __device__ static bool is_prefix(Word w) { return w >> SHIFT == 2; }
};

// Publishes `count` as the count of tile `tile`, and returns the sum of the counts of all earlier tiles. `states` holds one look-back state
// for each of the `tiles` tiles, then one for each span of 32 tiles. All 32 lanes of one warp must call this function.
__device__ inline u64 count_in_earlier_tiles(u64* states, i64 tiles, i64 tile, u32 count) {
    using S = LookBackState<u64>;
    constexpr u32 ALL_LANES = 0xffffffffu;
    constexpr int SPAN = 32;
    const int lane = threadIdx.x % SPAN, position = static_cast<int>(tile % SPAN);
    const i64 span = tile / SPAN;
    u64* const spans = states + tiles;
    const bool ends = position == SPAN - 1;
    if (lane == 0 && !ends) store_relaxed(states + tile, S::TOTAL | count);

    u64 word = S::TOTAL;
    do {
        if (lane < position) word = load_relaxed(states + span * SPAN + lane);
    } while (__any_sync(ALL_LANES, S::is_empty(word)));
    u32 in_span = static_cast<u32>(word & S::COUNT);
    #pragma unroll
    for (int d = SPAN / 2; d > 0; d /= 2) in_span += __shfl_xor_sync(ALL_LANES, in_span, d);
    const u64 of_span = u64(in_span) + count;
    if (lane == 0 && ends) store_relaxed(spans + span, (span == 0 ? S::PREFIX : S::TOTAL) | of_span);

    u64 before = 0;
    bool ended = span == 0;
    // Lane 0 reads the state of the nearest earlier span (32 tiles), lane 1 that of the span before, and so on. A lane without a span uses
    // the count 0.
    for (i64 near = span - 1 - lane; !ended; near -= SPAN) {
        u32 needed;
        do {
            word = near >= 0 ? load_relaxed(spans + near) : S::PREFIX;
            // The nearest published prefix includes all earlier spans, so the states of those spans are not needed.
            const u32 ending = __ballot_sync(ALL_LANES, S::is_prefix(word));
            ended = ending != 0;
            needed = ended ? ending ^ (ending - 1) : ALL_LANES;
        } while ((__ballot_sync(ALL_LANES, S::is_empty(word)) & needed) != 0);
        u64 counted = needed >> lane & 1 ? word & S::COUNT : 0;
        #pragma unroll
        for (int d = SPAN / 2; d > 0; d /= 2) counted += __shfl_xor_sync(ALL_LANES, counted, d);
        before += counted;
    }
    if (lane == 0 && ends && span > 0) store_relaxed(spans + span, S::PREFIX | (before + of_span));
    return before + in_span;
}

}  // namespace cuprum
