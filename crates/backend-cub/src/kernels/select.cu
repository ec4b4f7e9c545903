// Selects the elements at which a condition holds, and their indices, in C order and a single pass over memory. Requires
// count_look_back.cuh.
//
// Ranks within a warp come from ballots, so elements stay in the order of coalesced loads. The selected elements of a tile are compacted in
// shared memory and written by coalesced stores.
//
// The host defines:
//   Value            unsigned type with the size of the values
//   value_of         function that returns the value at an index
//   VALUES, INDICES  whether the call returns values and indices
//   SEPARATE_VALUES  whether the values are not an input of the condition
//   ITEMS            elements per thread
//   MIN_BLOCKS       minimum number of resident blocks per multiprocessor

namespace cuprum {

constexpr int THREADS = 384;
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr int TILE = THREADS * ITEMS;
constexpr u32 ALL = 0xffffffffu;

// Selects from `count` elements. `states` holds the look-back states of all tiles; blocks take tile numbers from the counter `ticket`.
// `states` and `ticket` must be zeroed. With one tile, both are unused. `length` receives the number of selected elements.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
select_elements(Params p, const Value* from, Value* values, i64* indices, i64 count, u32* ticket, u64* states, u32 tiles, u64* length) {
    __shared__ Value selected_values[VALUES ? TILE : 1];
    __shared__ u16 selected_indices[INDICES ? TILE : 1];
    __shared__ u32 warp_counts[WARPS];
    __shared__ u64 shared_before;
    __shared__ u32 shared_tile;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    // Blocks take tile numbers in increasing order. A block therefore waits only for tiles of blocks that have started, so the wait ends.
    u32 tile = 0;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_tile = atomicAdd(ticket, 1u);
        __syncthreads();
        tile = shared_tile;
        const u32 prefetched = tile + prefetch_distance_in_tiles(TILE * (sizeof(Values) + SEPARATE_VALUES * sizeof(Value)));
        const i64 begin = static_cast<i64>(prefetched) * TILE, end = begin + TILE < count ? begin + TILE : count;
        prefetch_along<THREADS>(p, Offsets<i64, INPUTS>{}, begin, end);
        if constexpr (SEPARATE_VALUES) prefetch_lines<THREADS>(from, begin, end);
    }
    const i64 base = static_cast<i64>(tile) * TILE, left = count - base;
    const int end = left < TILE ? static_cast<int>(left) : TILE, first = warp * WARP * ITEMS + lane;

    Values inputs[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * WARP;
        if (i < end) inputs[k] = load_along(p, Offsets<i64, INPUTS>{}, base + i);
    }
    u32 selected = 0;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * WARP < end && compute(p, inputs[k]).r0) selected |= 1u << k;
    }
    Value items[ITEMS];
    if constexpr (VALUES) {
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if (selected >> k & 1) items[k] = value_of(inputs[k], from, base + first + k * WARP);
        }
    }
    u32 ranks[ITEMS], in_warp = 0;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const u32 ballot = __ballot_sync(ALL, selected >> k & 1);
        ranks[k] = in_warp + __popc(ballot & ((1u << lane) - 1));
        in_warp += __popc(ballot);
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
        if (selected >> k & 1) {
            if constexpr (VALUES) selected_values[start + ranks[k]] = items[k];
            if constexpr (INDICES) selected_indices[start + ranks[k]] = static_cast<u16>(first + k * WARP);
        }
    }
    if (warp == 0) {
        const u64 before = tiles > 1 ? count_in_earlier_tiles(states, tiles, tile, in_tile) : 0;
        if (lane == 0) {
            if (tile == tiles - 1) *length = before + in_tile;
            shared_before = before;
        }
    }
    __syncthreads();
    const u64 before = shared_before;
    for (u32 i = threadIdx.x; i < in_tile; i += THREADS) {
        if constexpr (VALUES) values[before + i] = selected_values[i];
        if constexpr (INDICES) indices[before + i] = base + selected_indices[i];
    }
}

}  // namespace cuprum
