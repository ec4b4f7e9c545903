// Inclusive scan of many adjacent columns in a single pass over memory. The lanes of a warp scan adjacent columns. Each thread scans
// `ITEMS` successive rows of its column, and a block `TILE` rows. Requires the same headers and definitions as scan_rows.cu.
//
// The prefix of a tile is the left fold of the totals of the tiles above it. The prefix does not depend on the number of tiles that
// look-back inspects; fold_look_back.cuh explains why.

namespace cuprum {

using Acc = Fold::Acc;
using Index = i64;
constexpr int THREADS = 256;
constexpr int LANES = 32;
constexpr int WARPS = THREADS / LANES;
constexpr int TILE = WARPS * ITEMS;

// Waits until the `above` > 0 tiles above a tile have published their totals, and returns these totals combined. The state of the tile
// itself has index `own`. The states of successive tiles are `stride` apart. Lanes may wait for different times.
template <class Combine>
__device__ inline Acc fold_tiles_above(const TileStates<Acc>& states, u64 own, u64 stride, u32 above, const Combine& combine) {
    constexpr int WORDS = TileStates<Acc>::WORDS, WINDOW = 16 / WORDS;
    Acc values[WINDOW];  // the nearest tile comes last
    int newest;
    while (true) {
        bool complete = false;
        newest = -1;
        #pragma unroll
        for (int k = 0; k < WINDOW; k++) {
            const u32 status = WINDOW - k <= above ? states.read_state(own - (WINDOW - k) * stride, values[k]) : EMPTY;
            complete = status == PREFIX || (complete && status != EMPTY);
            if (status == PREFIX) newest = k;
        }
        if (complete) break;
        __nanosleep(40);
    }
    Acc prefix = values[WINDOW - 1];
    #pragma unroll
    for (int k = 0; k < WINDOW; k++) {
        if (k == newest) prefix = values[k];
        else if (k > newest) prefix = combine(prefix, values[k]);
    }
    return prefix;
}

// Scans `columns` columns of `rows` elements. A group is the columns of one warp, and has `tiles` tiles. `step` holds the input strides
// along a column, `out_stride` the output stride. `words` holds a look-back state for each lane of each tile, and blocks take tile numbers
// from the counter `ticket`. `words` and `ticket` must be zeroed. With one tile per group, both are unused.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_columns(Params p, Axes<Index, RANK, INPUTS> axes, Offsets<Index, INPUTS> step, Out* out, i64 rows, i64 columns, i64 out_stride,
             u32* ticket, u64* words, u32 groups, u32 tiles) {
    __shared__ Acc totals[WARPS][LANES];
    __shared__ Acc prefixes[LANES];
    __shared__ u32 shared_number;
    const Fold fold;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

    // Blocks take tile numbers in increasing order. A block therefore waits only for tiles of blocks that have started, so the wait ends.
    u32 number = blockIdx.x;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_number = atomicAdd(ticket, 1u);
        __syncthreads();
        number = shared_number;
    }
    const u32 group = number % groups, tile = number / groups;
    const u32 prefetched = number + prefetch_distance_in_tiles(TILE * LANES * sizeof(Values));
    if (prefetched < gridDim.x) {
        Offsets<Index, INPUTS> start = axes.offsets(prefetched % groups * LANES);
        const i64 first = static_cast<i64>(prefetched / groups) * TILE, end = first + TILE < rows ? first + TILE : rows;
        for (i64 row = first + threadIdx.x; row < end; row += THREADS) {
            Offsets<Index, INPUTS> at = start;
            #pragma unroll
            for (int k = 0; k < INPUTS; k++) at.at[k] += row * step.at[k];
            prefetch(p, at);
        }
    }
    // Lanes past the last column repeat the last column and write nothing.
    const i64 wanted = static_cast<i64>(group) * LANES + lane;
    const i64 column = wanted < columns ? wanted : columns - 1;
    Offsets<Index, INPUTS> at = axes.offsets(column);
    const i64 first = static_cast<i64>(tile) * TILE + warp * ITEMS, left = rows - first;
    #pragma unroll
    for (int k = 0; k < INPUTS; k++) at.at[k] += first * step.at[k];

    Acc items[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        items[k] = k < left ? Fold::from_element(element(p, at, Index(0)), 0) : Fold::identity();
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

    bool has_prefix = warp > 0;
    if (tiles > 1) {
        const u64 stride = static_cast<u64>(groups) * LANES, own = static_cast<u64>(number) * LANES + lane;
        const TileStates<Acc> states{words, stride * tiles};
        if (tile == 0) {
            if (warp == 0) states.publish_state(own, PREFIX, total);
        } else {
            if (warp == 0) {
                states.publish_state(own, TOTAL, total);
                const Acc prefix = fold_tiles_above(states, own, stride, tile, fold);
                states.publish_state(own, PREFIX, fold(prefix, total));
                prefixes[lane] = prefix;
            }
            __syncthreads();
            before = has_prefix ? fold(prefixes[lane], before) : prefixes[lane];
            has_prefix = true;
        }
    }
    if (wanted >= columns) return;
    Out* to = out + (column / out_stride * rows * out_stride + column % out_stride + first * out_stride);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < left) to[k * out_stride] = Fold::to_result<Out>(has_prefix ? fold(before, items[k]) : items[k]);
    }
}

}  // namespace cuprum
