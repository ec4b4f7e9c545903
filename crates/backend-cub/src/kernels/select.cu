// The elements at which a condition holds, and their places, in C order: one pass over memory with decoupled look-back, as
// in scan.cu. Ranks come from ballots, so that elements stay where coalesced loads put them; a tile's chosen elements are put
// side by side in shared memory and leave in coalesced stores.
//
// The host defines `Value` (a word of the values' size), `value_of`, `VALUES`, `PLACES` (what is asked for), `ITEMS`, and
// `BLOCKS` that a multiprocessor shall hold at once.

namespace cuprum {

constexpr int THREADS = 384;
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr int TILE = THREADS * ITEMS;
constexpr u32 ALL = 0xffffffffu;

// A tile's state is one word: in its top bits whether it holds the tile's count, or that of all tiles up to it.
constexpr u64 TOTAL = u64(1) << 62, PREFIX = u64(2) << 62, COUNT = TOTAL - 1;

// Chosen elements in the tiles before `tile`, by a whole warp. Integers: any order of adding gives the same.
__device__ inline u64 count_before(const u64* states, i64 tile, int lane) {
    u64 count = 0;
    for (i64 nearest = tile - 1;; nearest -= WARP) {
        const i64 mine = nearest - lane;
        u64 word;
        int last;
        while (true) {
            word = mine < 0 ? PREFIX : load_relaxed(states + mine);
            const u32 ready = __ballot_sync(ALL, word >= TOTAL), finished = __ballot_sync(ALL, word >= PREFIX);
            // What lies before the nearest finished tile need not be there.
            last = finished == 0 ? WARP - 1 : __ffs(finished) - 1;
            if ((~ready & (ALL >> (WARP - 1 - last))) == 0) break;
            __nanosleep(40);
        }
        u64 share = lane <= last ? word & COUNT : 0;
        #pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) share += __shfl_xor_sync(ALL, share, step);
        count += share;
        if (__shfl_sync(ALL, word, last) >= PREFIX) return count;
    }
}

// `ticket` and `states` are 0 before; with one tile neither is used. `length` receives the number of chosen elements.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
select_flat(Params p, const Value* from, Value* values, i64* places, i64 count, u32* ticket, u64* states, u32 tiles, u64* length) {
    __shared__ Value chosen_values[VALUES ? TILE : 1];
    __shared__ u16 chosen_places[PLACES ? TILE : 1];
    __shared__ u32 warp_counts[WARPS];
    __shared__ u64 shared_before;
    __shared__ u32 shared_tile;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    // Tiles are taken in order, so those that a tile waits for are running or done.
    u32 tile = 0;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_tile = atomicAdd(ticket, 1u);
        __syncthreads();
        tile = shared_tile;
    }
    const i64 base = static_cast<i64>(tile) * TILE, left = count - base;
    const int end = left < TILE ? static_cast<int>(left) : TILE, first = warp * WARP * ITEMS + lane;

    Values inputs[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * WARP;
        if (i < end) inputs[k] = load_along(p, Offsets<i64, INPUTS>{}, base + i);
    }
    u32 held = 0;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * WARP < end && compute(p, inputs[k]).r0) held |= 1u << k;
    }
    Value items[ITEMS];
    if constexpr (VALUES) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if (held >> k & 1) items[k] = value_of(inputs[k], from, base + first + k * WARP);
        }
    }
    u32 ranks[ITEMS], in_warp = 0;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const u32 chosen = __ballot_sync(ALL, held >> k & 1);
        ranks[k] = in_warp + __popc(chosen & ((1u << lane) - 1));
        in_warp += __popc(chosen);
    }
    if (lane == 0) warp_counts[warp] = in_warp;
    __syncthreads();
    u32 start = 0, in_tile = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) start = in_tile;
        in_tile += warp_counts[w];
    }

    if (tiles > 1 && threadIdx.x == 0) store_relaxed(states + tile, (tile == 0 ? PREFIX : TOTAL) | in_tile);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (held >> k & 1) {
            if constexpr (VALUES) chosen_values[start + ranks[k]] = items[k];
            if constexpr (PLACES) chosen_places[start + ranks[k]] = static_cast<u16>(first + k * WARP);
        }
    }
    if (warp == 0) {
        const u64 before = tile == 0 ? 0 : count_before(states, tile, lane);
        if (lane == 0) {
            if (tile > 0) store_relaxed(states + tile, PREFIX | (before + in_tile));
            if (tile == tiles - 1) *length = before + in_tile;
            shared_before = before;
        }
    }
    __syncthreads();
    const u64 before = shared_before;
    for (u32 i = threadIdx.x; i < in_tile; i += THREADS) {
        if constexpr (VALUES) values[before + i] = chosen_values[i];
        if constexpr (PLACES) places[before + i] = base + chosen_places[i];
    }
}

}  // namespace cuprum
