// Segments of 1-D values, whatever their lengths, each reduced to one value; after block.cuh and fold.cuh. The ends of the segments and
// the values are merged into one sequence, an end before the first value behind it, and that is cut into equal tiles ("merge path":
// Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016): a block's work does not depend on lengths.
//
// Where tiles are cut follows from the offsets, and the order of combination from that; there are no atomics. The host defines `Fold`,
// `Out` and `ITEMS` (of the merged sequence, for a thread).

namespace cuprum {

using Acc = Fold::Acc;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = THREADS * ITEMS;
static_assert(ITEMS < 32, "a bit for each item");

// The values that segments cover: `count` from `base` on. None, if offsets are such that a tile finds an error among them.
struct Covered {
    i64 base, count;
    __device__ Covered(const i64* offsets, i64 segments, i64 length) : base(offsets[0]), count(offsets[segments] - base) {
        if (base < 0 || count < 0 || base + count > length) base = count = 0;
    }
};

__device__ inline i64 clamped(i64 x, i64 low, i64 high) { return x < low ? low : x < high ? x : high; }

// How many of the first `diagonal` items of the merged sequence are ends. `end_of(s)` is the number of values before the end of segment s.
template <class Index, class End> __device__ inline Index ends_before(Index diagonal, Index ends, Index values, const End& end_of) {
    Index low = diagonal > values ? diagonal - values : 0, high = diagonal < ends ? diagonal : ends;
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (end_of(middle) < diagonal - middle) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Where tiles begin: the first segment whose end is not in an earlier one. `cuts` has one more than there are tiles.
extern "C" __global__ void __launch_bounds__(THREADS) segment_cut(const i64* offsets, i64 segments, i64 length, i64* cuts, i64 tiles) {
    const i64 tile = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    if (tile > tiles) return;
    const Covered covered(offsets, segments, length);
    const i64 diagonal = clamped(tile * TILE, 0, segments + covered.count);
    cuts[tile] = ends_before(diagonal, segments, covered.count, [&](i64 s) { return offsets[s + 1] - covered.base; });
}

// A tile's part of the merged sequence.
struct Tile {
    i64 segment, last_segment, value, last_value;  // whose ends, and which of the covered values are in it
    __device__ Tile(i64 tile, const i64* cuts, i64 items) {
        segment = cuts[tile], last_segment = cuts[tile + 1];
        value = clamped(tile * TILE, 0, items) - segment, last_value = clamped((tile + 1) * TILE, 0, items) - last_segment;
    }
    // Offsets that fall may make it otherwise.
    __device__ bool is_sound() const { return segment <= last_segment && value <= last_value; }
};

// What a thread, or a warp, has of the segment that is open behind it, and whether one ended in it.
struct Open {
    Acc value;
    u32 has_end;
};

struct FoldOpen {
    __device__ Open operator()(const Open& a, const Open& b) const {
        return b.has_end ? b : Open{Fold()(a.value, b.value), a.has_end};
    }
};

// A block a tile. `heads` gets what the tile has of a segment that ends in it and begins before it, `tails` what it has of the
// segment that is open behind it.
extern "C" __global__ void __launch_bounds__(THREADS)
segment_tile(const __grid_constant__ Params p, Out* out, i64 length, const i64* offsets, i64 segments, const i64* cuts, Acc* heads, Acc* tails,
             Fault* fault, u64 op) {
    // The tile's values, then its ends, by the number of values before them; after that its results.
    __shared__ alignas(16) unsigned char slots[TILE * (sizeof(Acc) < 4 ? 4 : sizeof(Acc))];
    __shared__ Open of_warps[WARPS], ends_of_warps[WARPS];
    __shared__ Acc totals[WARPS];
    const Fold fold;
    const Covered covered(offsets, segments, length);
    const Tile tile(blockIdx.x, cuts, segments + covered.count);

    // What a tile that is sound covers lies among the values, whatever else is wrong with the offsets.
    bool is_sound = tile.is_sound();
    const int ends = is_sound ? static_cast<int>(tile.last_segment - tile.segment) : 0;
    const int values = is_sound ? static_cast<int>(tile.last_value - tile.value) : 0;
    const i64 first_value = covered.base + tile.value;
    // In turns, so that the loads of all items are under way together; what expressions take elements of stays in the caches.
    Values inputs[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < values) inputs[k] = load_once(p, Offsets<i64, INPUTS>{}, first_value + i);
    }
    Acc items[ITEMS];
    Noticed noticed = {};
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        items[k] = Fold::identity();
        if (k * THREADS + threadIdx.x < values) items[k] = Fold::enter(evaluate(p, inputs[k], noticed).r0, 0);
    }

    // Every segment's end is in a tile, which tells of a range that is none.
    for (i64 s = tile.segment + threadIdx.x; s < tile.last_segment; s += THREADS) {
        const i64 begin = offsets[s], end = offsets[s + 1];
        if (begin >= 0 && begin <= end && end <= length) continue;
        report_fault(fault, 2, op, begin < 0 || begin > length ? begin : end, static_cast<u64>(length));
        is_sound = false;
    }
    if (!__syncthreads_and(is_sound)) {
        for (i64 s = tile.segment + threadIdx.x; s < tile.last_segment; s += THREADS) out[s] = Out();
        report(p, noticed);
        return;
    }
    if (ends == 0) {  // amid one segment
        Acc total = items[0];
        #pragma unroll
        for (int k = 1; k < ITEMS; k++) total = fold(total, items[k]);
        total = reduce_block<THREADS>(totals, total, fold);
        if (threadIdx.x == 0) tails[blockIdx.x] = total;
        report(p, noticed);
        return;
    }
    Acc* const values_here = reinterpret_cast<Acc*>(slots);
    u32* const ends_here = reinterpret_cast<u32*>(slots) + (values * sizeof(Acc) + 3) / 4;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < values) values_here[i] = items[k];
    }
    for (int s = threadIdx.x; s < ends; s += THREADS) {
        ends_here[s] = static_cast<u32>(clamped(offsets[tile.segment + s + 1] - first_value, 0, values));
    }
    __syncthreads();

    // Each thread walks its items in their order. `items` are now what segments have at their ends, from the thread's first item on.
    const int diagonal = threadIdx.x * ITEMS < ends + values ? threadIdx.x * ITEMS : ends + values;
    int segment = ends_before(diagonal, ends, values, [&](int s) { return static_cast<int>(ends_here[s]); });
    int value = diagonal - segment, result = segment;
    u32 ended = 0;
    Acc running = Fold::identity();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (diagonal + k < ends + values) {
            if (segment == ends || value < ends_here[segment]) {
                running = fold(running, values_here[value++]);
            } else {
                items[k] = running;
                ended |= 1u << k;
                running = Fold::identity();
                segment++;
            }
        }
    }
    Open open[] = {Open{running, ended != 0}};
    scan_block<THREADS>(of_warps, open, FoldOpen());
    Open before{shuffle_up(open[0].value, 1), 0};
    if (threadIdx.x % 32 == 31) ends_of_warps[threadIdx.x / 32] = open[0];
    __syncthreads();
    if (threadIdx.x % 32 == 0) before.value = threadIdx.x > 0 ? ends_of_warps[threadIdx.x / 32 - 1].value : Fold::identity();
    if (threadIdx.x == THREADS - 1) tails[blockIdx.x] = open[0].value;

    Acc* const results = values_here;
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (ended >> k & 1) {
            const bool is_first = (ended & ((1u << k) - 1)) == 0;
            results[result++] = is_first ? fold(before.value, items[k]) : items[k];
        }
    }
    __syncthreads();
    for (int s = threadIdx.x; s < ends; s += THREADS) {
        const i64 begin = offsets[tile.segment + s], end = offsets[tile.segment + s + 1];
        if (begin < first_value) heads[blockIdx.x] = results[s];
        else out[tile.segment + s] = Fold::leave<Out>(begin == end ? Fold::identity() : results[s]);
    }
    report(p, noticed);
}

// Segments that are longer than this many tiles are joined by a block.
constexpr i64 MANY = 64;

// Some tiles in a row, of which the last has a segment's end and the others nothing but its values, but for the first.
struct Chain {
    i64 begin, last;
    __device__ Acc fold_every(const Acc* tails, const Acc* heads, int first, int width) const {
        Acc total = Fold::identity();
        for (i64 t = begin + first; t <= last; t += width) total = Fold()(total, t < last ? tails[t] : heads[t]);
        return total;
    }
};

// The results of segments that lie in several tiles: a warp for each tile in which such a one ends.
extern "C" __global__ void __launch_bounds__(THREADS)
segment_join(Out* out, i64 length, const i64* offsets, i64 segments, const i64* cuts, const Acc* heads, const Acc* tails, i64 tiles) {
    __shared__ Chain long_chains[WARPS];
    __shared__ Acc totals[WARPS];
    const Fold fold;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Covered covered(offsets, segments, length);
    for (i64 first = static_cast<i64>(blockIdx.x) * WARPS; first < tiles; first += static_cast<i64>(gridDim.x) * WARPS) {
        const i64 last = first + warp;
        Chain chain{last, last};
        if (last < tiles) {
            const Tile tile(last, cuts, segments + covered.count);
            if (tile.is_sound() && tile.segment < tile.last_segment) {
                const i64 begin = offsets[tile.segment] - covered.base;
                if (begin < tile.value) chain.begin = clamped((tile.segment + begin) / TILE, 0, last);
            }
        }
        const bool is_long = chain.last - chain.begin > MANY;
        if (chain.begin < chain.last && !is_long) {
            const Acc total = reduce_lanes<32>(chain.fold_every(tails, heads, lane, 32), fold);
            if (lane == 0) out[cuts[last]] = Fold::leave<Out>(total);
        }
        if (lane == 0) long_chains[warp] = chain;
        if (!__syncthreads_or(is_long)) continue;
        for (int w = 0; w < WARPS; w++) {
            const Chain shared = long_chains[w];
            if (shared.last - shared.begin <= MANY) continue;
            const Acc total = reduce_block<THREADS>(totals, shared.fold_every(tails, heads, threadIdx.x, THREADS), fold);
            if (threadIdx.x == 0) out[cuts[shared.last]] = Fold::leave<Out>(total);
            __syncthreads();
        }
        // All warps have read `long_chains` before the next round overwrites it.
        __syncthreads();
    }
}

}  // namespace cuprum
