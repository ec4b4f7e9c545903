// Running totals over tiles in one pass over memory, after relaxed.cuh: decoupled look-back (Merrill and Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016). A tile's state is one word, its status in the upper 2 bits and a count in
// the others, so that it is never met half written. Tiles are numbered by tickets in the order in which they start: those that a
// tile waits for are running or done.

namespace cuprum {

template <class Word> struct State {
    static constexpr int SHIFT = 8 * sizeof(Word) - 2;
    static constexpr Word COUNT = (Word(1) << SHIFT) - 1;
    // Nothing yet (memory is zeroed before), the tile's own count, or that of all tiles up to it.
    static constexpr Word TOTAL = Word(1) << SHIFT, PREFIX = Word(2) << SHIFT;
    __device__ static bool is_empty(Word w) { return w >> SHIFT == 0; }
    __device__ static bool is_prefix(Word w) { return w >> SHIFT == 2; }
};

// The count of all tiles before `tile`, which is not the first; a whole warp calls.
__device__ inline u64 look_back(const u64* states, i64 tile) {
    using S = State<u64>;
    constexpr int LOOK = 2;
    const int lane = threadIdx.x % 32;
    u64 before = 0;
    // Lane 0 stands nearest, each lane over LOOK tiles.
    for (i64 nearest = tile - 1 - lane * LOOK;; nearest -= 32 * LOOK) {
        u64 count;
        bool ends;
        while (true) {
            count = 0;
            ends = false;
            bool whole = true;
            #pragma unroll
            for (int k = 0; k < LOOK; k++) {
                // Before the first tile there is nothing, all of it known.
                const u64 word = nearest - k >= 0 ? load_relaxed(states + (nearest - k)) : S::PREFIX;
                if (!ends) {
                    whole = whole && !S::is_empty(word);
                    count += word & S::COUNT;
                    ends = S::is_prefix(word);
                }
            }
            // What lies beyond the nearest lane that ends the search does not matter.
            const u32 ending = __ballot_sync(0xffffffffu, whole && ends), missing = __ballot_sync(0xffffffffu, !whole);
            const u32 needed = ending != 0 ? (ending ^ (ending - 1)) : 0xffffffffu;
            if ((missing & needed) == 0) {
                if ((needed >> lane & 1) == 0) count = 0;
                ends = ending != 0;
                break;
            }
            __nanosleep(40);
        }
        #pragma unroll
        for (int d = 16; d > 0; d /= 2) count += __shfl_xor_sync(0xffffffffu, count, d);
        before += count;
        if (ends) return before;
    }
}

}  // namespace cuprum
