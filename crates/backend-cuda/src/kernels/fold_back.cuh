// What a tile of a scan continues from, after warp.cuh and relaxed.cuh: decoupled look-back (Merrill and Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016) among the tiles of a row.
//
// Unlike the paper's, this look-back has one result whatever the timing, for floats too. A tile's prefix is a left fold: it starts
// from the nearest finished prefix P(j) and adds the totals of tiles j + 1, j + 2, ... in this order. P(j) was made the same way, so
// by induction every prefix is (((T0 + T1) + T2) + ...), rounded at the same places, whatever j was met.

namespace cuprum {

// What a tile has told: nothing yet (memory is zeroed before), its own total, or that of all tiles of its row up to it.
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

// The fold of the `before` (> 0) tiles that come right before `tile` in its row; a whole warp calls.
template <class T, class Combine>
__device__ inline T fold_back(const TileStates<T>& states, u64 tile, u64 before, const Combine& combine) {
    constexpr int LOOK = 2;
    const int lane = threadIdx.x % 32;
    // In the order of tiles, LOOK neighbours a lane; those that are negative belong to no tile.
    const i64 first = static_cast<i64>(before) - 32 * LOOK + lane * LOOK;
    T values[LOOK] = {};
    int from;
    while (true) {
        int newest = -1;
        bool whole = true;
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const u32 status = first + k >= 0 ? states.get(tile - before + (first + k), values[k]) : EMPTY;
            if (status == PREFIX) {
                newest = k;
                whole = true;
            }
            whole = whole && status != EMPTY;
        }
        // The last lane that met a prefix: what follows it there, and all that the lanes after it look at, must be known.
        const u32 finished = __ballot_sync(0xffffffffu, newest >= 0), known = __ballot_sync(0xffffffffu, whole);
        if (finished != 0) {
            const int start = 31 - __clz(finished);
            if ((~known >> start) == 0) {
                from = start * LOOK + __shfl_sync(0xffffffffu, newest, start);
                break;
            }
        }
        __nanosleep(40);
    }
    T prefix = values[0];
    #pragma unroll
    for (int k = 0; k < LOOK; k++) {
        const T found = shuffle(values[k], from / LOOK);
        if (from % LOOK == k) prefix = found;
    }
    for (int i = from / LOOK; i < 32; i++) {
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const T total = shuffle(values[k], i);
            if (i * LOOK + k > from) prefix = combine(prefix, total);
        }
    }
    return prefix;
}

}  // namespace cuprum
