// Inclusive scan of contiguous rows in a single pass over memory. Requires block.cuh and fold_look_back.cuh. The order of combination does
// not depend on timing; fold_look_back.cuh explains why.
//
// The host defines `Fold`, `Out`, `ITEMS` (elements per thread) and `RANK` (number of axes that are not
// scanned).

namespace cuprum {

using Acc = Fold::Acc;
using Index = i64;
constexpr int THREADS = 256;
constexpr int WARP = 32;
constexpr int TILE = THREADS * ITEMS;

// Scans `rows` rows of `count` elements. `words` holds the look-back states of all tiles; blocks take tile numbers from the counter
// `ticket`. `words` and `ticket` must be zeroed. With one tile per row, both are unused.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
scan_rows(Params p, Axes<Index, RANK, INPUTS> axes, Out* out, i64 count, u32* ticket, u64* words, u32 tiles, u32 rows) {
    __shared__ WarpExchange<Acc, ITEMS> exchanges[THREADS / WARP];
    __shared__ Acc totals[THREADS / WARP];
    __shared__ u32 shared_tile;
    __shared__ Acc shared_prefix;
    const Fold fold;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    // Blocks take tile numbers in increasing order. A block therefore waits only for tiles of blocks that have started, so the wait ends.
    u32 row = blockIdx.x, tile = 0;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_tile = atomicAdd(ticket, 1u);
        __syncthreads();
        row = shared_tile / tiles;
        tile = shared_tile % tiles;
        const u32 prefetched = shared_tile + prefetch_distance_in_tiles(TILE * sizeof(Values));
        if (prefetched < gridDim.x) {
            const i64 begin = static_cast<i64>(prefetched % tiles) * TILE, end = begin + TILE < count ? begin + TILE : count;
            prefetch_along<THREADS>(p, axes.offsets(prefetched / tiles), begin, end);
        }
    }
    const Offsets<Index, INPUTS> at = axes.offsets(row);
    Out* const to = out + row * count;
    const i64 base = static_cast<i64>(tile) * TILE, left = count - base;
    const int first = warp * WARP * ITEMS + lane;
    const bool full = left >= TILE;

    Acc items[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * WARP;
        items[k] = full || i < left ? Fold::from_element(element(p, at, base + i), 0) : Fold::identity();
    }
    exchanges[warp].striped_to_blocked(items);
    const Acc total = scan_block<THREADS>(totals, items, fold);

    if (tiles > 1) {
        if (warp == 0) {
            const u64 row_states = look_back_state_count(tiles);
            const Acc prefix = fold_earlier_tiles(TileStates<Acc>{words, rows * row_states}, row * row_states, tiles, tile, total, fold);
            if (lane == 0) shared_prefix = prefix;
        }
        __syncthreads();
        if (tile > 0) {
            const Acc prefix = shared_prefix;
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) items[k] = fold(prefix, items[k]);
        }
    }
    __syncwarp();
    exchanges[warp].blocked_to_striped(items);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * WARP;
        if (full || i < left) to[base + i] = Fold::to_result<Out>(items[k]);
    }
}

}  // namespace cuprum
