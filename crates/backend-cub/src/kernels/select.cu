// The elements at which a condition holds, and their places, in C order: one pass over memory, after
// look_back.cuh. Ranks come from ballots, so that elements stay where coalesced loads put them; a tile's chosen elements are put
// side by side in shared memory and leave in coalesced stores.
//
// The host defines `Value` (a word of the values' size), `value_of`, `VALUES`, `PLACES` (what is asked for), `SEPARATE` (whether the
// values are none of the condition's inputs), `ITEMS`, and `BLOCKS` that a multiprocessor shall hold at once.

namespace cuprum {

constexpr int THREADS = 384;
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr int TILE = THREADS * ITEMS;
constexpr u32 ALL = 0xffffffffu;

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
        const u32 later = tile + tiles_ahead(TILE * (sizeof(Values) + SEPARATE * sizeof(Value)));
        const i64 begin = static_cast<i64>(later) * TILE, end = begin + TILE < count ? begin + TILE : count;
        prefetch_along<THREADS>(p, Offsets<i64, INPUTS>{}, begin, end);
        if constexpr (SEPARATE) prefetch_lines<THREADS>(from, begin, end);
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

    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (held >> k & 1) {
            if constexpr (VALUES) chosen_values[start + ranks[k]] = items[k];
            if constexpr (PLACES) chosen_places[start + ranks[k]] = static_cast<u16>(first + k * WARP);
        }
    }
    if (warp == 0) {
        const u64 before = tiles > 1 ? look_back(states, tiles, tile, in_tile) : 0;
        if (lane == 0) {
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
