// Selects the elements at which a condition holds, and their indices, in C order and in one pass over memory. Requires the prelude, the
// generated code of an element (the condition) and count_look_back.cuh.
//
// The host defines ITEM (an element type of 1 to 16 bytes), ITEMS (elements per thread), and VALUES and INDICES (1 if values or indices
// are outputs, else 0).

namespace cuprum {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = THREADS * ITEMS;

// Selects from `count` elements in `tiles` tiles. `length` receives the number of selected elements. If `values` and `indices` are null,
// the kernel only counts. `ticket`, which numbers the tiles, and the look-back states `states` must be zeroed.
extern "C" __global__ void __launch_bounds__(THREADS)
select_flat(const __grid_constant__ Params p, const ITEM* __restrict__ from, ITEM* __restrict__ values, i64* __restrict__ indices,
            i64 count, i64 tiles, u64* length, u32* ticket, u64* states) {
    __shared__ u32 shared_tile, shared_counts[WARPS];
    __shared__ u64 shared_before;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (threadIdx.x == 0) shared_tile = atomicAdd(ticket, 1u);
    __syncthreads();
    const i64 tile = shared_tile, base = tile * TILE + warp * 32 * ITEMS + lane;
    const bool full = (tile + 1) * TILE <= count;
    const i64 later = (tile + prefetch_distance_in_tiles(TILE * (sizeof(Values) + VALUES * sizeof(ITEM)))) * TILE;
    const i64 end = later + TILE < count ? later + TILE : count;
    prefetch_along<THREADS>(p, Offsets<i64, INPUTS>{}, later, end);
#if VALUES
    prefetch_lines<THREADS>(from, later, end);
#endif

    u32 chosen[ITEMS];  // ballot of the selected lanes of this warp
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const i64 i = base + k * 32;
        chosen[k] = __ballot_sync(0xffffffffu, (full || i < count) && element(p, i));
    }
#if VALUES
    ITEM mine[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (chosen[k] >> lane & 1) mine[k] = from[base + k * 32];
    }
#endif
    u32 in_warp = 0;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) in_warp += __popc(chosen[k]);
    if (lane == 0) shared_counts[warp] = in_warp;
    __syncthreads();
    if (warp == 0) {
        u32 total = 0;
        #pragma unroll
        for (int w = 0; w < WARPS; w++) total += shared_counts[w];
        const u64 before = count_in_earlier_tiles(states, tiles, tile, total);
        if (lane == 0) {
            if (tile == tiles - 1) *length = before + total;
            shared_before = before;
        }
    }
    __syncthreads();
    u64 at = shared_before;
    #pragma unroll
    for (int w = 0; w < WARPS; w++) at += w < warp ? shared_counts[w] : 0;
    const u32 below = (1u << lane) - 1;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (chosen[k] >> lane & 1) {
            const u64 to = at + __popc(chosen[k] & below);
#if VALUES
            if (values != nullptr) values[to] = mine[k];
#endif
#if INDICES
            if (indices != nullptr) indices[to] = base + k * 32;
#endif
        }
        at += __popc(chosen[k]);
    }
}

}  // namespace cuprum
