// Inclusive scan of many columns that lie side by side, in a single pass over memory: the lanes of a warp are neighbours, each thread
// takes `ITEMS` rows, and a block `TILE` of them. The host defines what scan.cu names.
//
// A tile's prefix is the left fold of the totals of the tiles above it, as that of spans is in fold_back.cuh, wherever looking back began.

namespace cuprum {

using Acc = Fold::Acc;
using Index = i64;
constexpr int THREADS = 256;
constexpr int LANES = 32;
constexpr int WARPS = THREADS / LANES;
constexpr int TILE = WARPS * ITEMS;

// The fold of the tiles above a lane's tile, of which there are `above` (> 0), their states `apart`. Lanes need not agree.
template <class Combine>
__device__ inline Acc fold_above(const TileStates<Acc>& states, u64 mine, u64 apart, u32 above, const Combine& combine) {
    constexpr int WORDS = TileStates<Acc>::WORDS, LOOK = 16 / WORDS;
    Acc values[LOOK];  // of the nearest last
    int newest;
    while (true) {
        bool whole = false;
        newest = -1;
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const u32 status = LOOK - k <= above ? states.get(mine - (LOOK - k) * apart, values[k]) : EMPTY;
            whole = status == PREFIX || (whole && status != EMPTY);
            if (status == PREFIX) newest = k;
        }
        if (whole) break;
        __nanosleep(40);
    }
    Acc prefix = values[LOOK - 1];
    #pragma unroll
    for (int k = 0; k < LOOK; k++) {
        if (k == newest) prefix = values[k];
        else if (k > newest) prefix = combine(prefix, values[k]);
    }
    return prefix;
}

// `columns` in groups of as many as a warp has lanes, `tiles` of rows each. In the output, `pitch` columns lie side by side. `ticket`
// and the words of `states` (one for each lane of each tile) are 0 before; with one tile neither is used.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_columns(Params p, Axes<Index, RANK, INPUTS> axes, Offsets<Index, INPUTS> step, Out* out, i64 rows, i64 columns, i64 pitch,
             u32* ticket, u64* words, u32 groups, u32 tiles) {
    __shared__ Acc totals[WARPS][LANES];
    __shared__ Acc prefixes[LANES];
    __shared__ u32 shared_number;
    const Fold fold;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

    // Tiles are taken in order, so those that a tile waits for are running or done.
    u32 number = blockIdx.x;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_number = atomicAdd(ticket, 1u);
        __syncthreads();
        number = shared_number;
    }
    const u32 group = number % groups, tile = number / groups;
    const u32 later = number + tiles_ahead(TILE * LANES * sizeof(Values));
    if (later < gridDim.x) {
        Offsets<Index, INPUTS> there = axes.offsets(later % groups * LANES);
        const i64 first = static_cast<i64>(later / groups) * TILE, end = first + TILE < rows ? first + TILE : rows;
        for (i64 row = first + threadIdx.x; row < end; row += THREADS) {
            Offsets<Index, INPUTS> at = there;
            #pragma unroll
            for (int k = 0; k < INPUTS; k++) at.at[k] += row * step.at[k];
            prefetch(p, at);
        }
    }
    // Lanes past the last column do as the last one does, and write nothing.
    const i64 wanted = static_cast<i64>(group) * LANES + lane;
    const i64 column = wanted < columns ? wanted : columns - 1;
    Offsets<Index, INPUTS> at = axes.offsets(column);
    const i64 first = static_cast<i64>(tile) * TILE + warp * ITEMS, left = rows - first;
    #pragma unroll
    for (int k = 0; k < INPUTS; k++) at.at[k] += first * step.at[k];

    Acc items[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        items[k] = k < left ? Fold::enter(element(p, at, Index(0)), 0) : Fold::identity();
        #pragma unroll
        for (int n = 0; n < INPUTS; n++) at.at[n] += step.at[n];
    }
    #pragma unroll
    for (int k = 1; k < ITEMS; k++) items[k] = fold(items[k - 1], items[k]);
    totals[warp][lane] = items[ITEMS - 1];
    __syncthreads();
    Acc total = totals[0][lane], before = total;
    #pragma unroll
    for (int w = 1; w < WARPS; w++) {
        if (w == warp) before = total;
        total = fold(total, totals[w][lane]);
    }

    bool follows = warp > 0;
    if (tiles > 1) {
        const u64 apart = static_cast<u64>(groups) * LANES, mine = static_cast<u64>(number) * LANES + lane;
        const TileStates<Acc> states{words, apart * tiles};
        if (tile == 0) {
            if (warp == 0) states.put(mine, PREFIX, total);
        } else {
            if (warp == 0) {
                states.put(mine, TOTAL, total);
                const Acc prefix = fold_above(states, mine, apart, tile, fold);
                states.put(mine, PREFIX, fold(prefix, total));
                prefixes[lane] = prefix;
            }
            __syncthreads();
            before = follows ? fold(prefixes[lane], before) : prefixes[lane];
            follows = true;
        }
    }
    if (wanted >= columns) return;
    Out* to = out + (column / pitch * rows * pitch + column % pitch + first * pitch);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < left) to[k * pitch] = Fold::leave<Out>(follows ? fold(before, items[k]) : items[k]);
    }
}

}  // namespace cuprum
