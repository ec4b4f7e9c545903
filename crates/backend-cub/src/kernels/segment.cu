// Reduces each segment of 1-D values to one value, for segments of any lengths. Requires block.cuh and fold.cuh.
//
// The values and the ends of the segments are merged into one sequence, in which an end precedes the first value after it. Tiles of equal
// size divide the sequence, so that the load per block does not depend on segment lengths. Source ("merge path"): Merrill and Garland,
// "Merge-based parallel sparse matrix-vector multiplication", SC 2016.
//
// The tile boundaries, and with them the order of combination, depend only on the offsets. There are no atomics.
//
// The host defines:
//   Fold   the combining operation
//   Out    element type of the output
//   ITEMS  items of the merged sequence per thread

namespace cuprum {

using Acc = Fold::Acc;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = THREADS * ITEMS;
static_assert(ITEMS < 32, "`ended` has a bit for each item");

// The values that the segments cover: `count` values, the first at index `base` of the input. The range is empty if the first or last
// offset is invalid. The tile that contains the end of the first or last segment then reports the fault.
struct ValuesInSegments {
    i64 base, count;
    __device__ ValuesInSegments(const i64* offsets, i64 segments, i64 length) : base(offsets[0]), count(0) {
        const i64 end = offsets[segments];
        // `end - base` is computed only after these checks, so it cannot overflow.
        if (base < 0 || end < base || end > length) base = 0;
        else count = end - base;
    }
};

__device__ inline i64 clamp_to_range(i64 x, i64 low, i64 high) { return x < low ? low : x < high ? x : high; }

// Returns the number of segment ends among the first `diagonal` items of the sequence that merges values and segment ends. `end_of(s)` is
// the number of values before the end of segment s.
template <class Index, class End> __device__ inline Index count_segment_ends_before(Index diagonal, Index ends, Index values, const End& end_of) {
    Index low = diagonal > values ? diagonal - values : 0, high = diagonal < ends ? diagonal : ends;
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (end_of(middle) < diagonal - middle) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Writes to `cuts` the first segment of each tile: the first one whose end is not in an earlier tile. `cuts` has `tiles` + 1 elements.
extern "C" __global__ void __launch_bounds__(THREADS) find_tile_segments(const i64* offsets, i64 segments, i64 length, i64* cuts, i64 tiles) {
    const i64 tile = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    if (tile > tiles) return;
    const ValuesInSegments covered(offsets, segments, length);
    const i64 diagonal = clamp_to_range(tile * TILE, 0, segments + covered.count);
    cuts[tile] = count_segment_ends_before(diagonal, segments, covered.count, [&](i64 s) { return offsets[s + 1] - covered.base; });
}

// The part of the merged sequence of values and segment ends that one tile contains.
struct SegmentTile {
    // Two ranges with exclusive upper bounds: the segments that end in the tile, and the values of the tile. Value 0 is the first value
    // that any segment covers.
    i64 segment, last_segment, value, last_value;
    __device__ SegmentTile(i64 tile, const i64* cuts, i64 items) {
        segment = cuts[tile], last_segment = cuts[tile + 1];
        value = clamp_to_range(tile * TILE, 0, items) - segment, last_value = clamp_to_range((tile + 1) * TILE, 0, items) - last_segment;
    }
    // If segment offsets decrease, a range may end before it starts.
    __device__ bool is_sound() const { return segment <= last_segment && value <= last_value; }
};

// Partial result of the segment that continues past the last item of a thread or warp. `has_end` tells whether a segment ended among these
// items.
struct OpenSegment {
    Acc value;
    u32 has_end;
};

struct FoldOpenSegments {
    __device__ OpenSegment operator()(const OpenSegment& a, const OpenSegment& b) const {
        return b.has_end ? b : OpenSegment{Fold()(a.value, b.value), a.has_end};
    }
};

// Reduces each tile by one block. Complete segments are written to `out`. `heads` gets the partial result of the segment that begins before
// the tile and ends in it. `tails` gets the partial result of the segment that continues after the tile.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_segment_tiles(const __grid_constant__ Params p, Out* out, i64 length, const i64* offsets, i64 segments, const i64* cuts, Acc* heads,
                     Acc* tails, Fault* fault, u64 op) {
    // `slots` holds the values of the tile, then its segment ends, and finally its results. A segment end is stored as the number of values
    // that precede the end.
    __shared__ alignas(16) unsigned char slots[TILE * (sizeof(Acc) < 4 ? 4 : sizeof(Acc))];
    __shared__ OpenSegment of_warps[WARPS], ends_of_warps[WARPS];
    __shared__ Acc totals[WARPS];
    const Fold fold;
    const ValuesInSegments covered(offsets, segments, length);
    const SegmentTile tile(blockIdx.x, cuts, segments + covered.count);

    // A tile with an invalid range reads nothing. The values of all other tiles are in bounds, even if offsets of other tiles are invalid.
    bool is_sound = tile.is_sound();
    const int ends = is_sound ? static_cast<int>(tile.last_segment - tile.segment) : 0;
    const int values = is_sound ? static_cast<int>(tile.last_value - tile.value) : 0;
    const i64 first_value = covered.base + tile.value;
    // Separate loops keep the loads of all items in flight. Streaming loads keep the caches free for the arrays that a fused `take` reads.
    Values inputs[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < values) inputs[k] = load_once(p, Offsets<i64, INPUTS>{}, first_value + i);
    }
    Acc items[ITEMS];
    BadIndex bad_index = {};
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        items[k] = Fold::identity();
        if (k * THREADS + threadIdx.x < values) items[k] = Fold::from_element(evaluate(p, inputs[k], bad_index).r0, 0);
    }

    // Each segment end is in exactly one tile, which reports a fault if the offsets of the segment are invalid.
    for (i64 s = tile.segment + threadIdx.x; s < tile.last_segment; s += THREADS) {
        const i64 begin = offsets[s], end = offsets[s + 1];
        if (begin >= 0 && begin <= end && end <= length) continue;
        report_fault(fault, 2, op, begin < 0 || begin > length ? begin : end, static_cast<u64>(length));
        is_sound = false;
    }
    if (!__syncthreads_and(is_sound)) {
        for (i64 s = tile.segment + threadIdx.x; s < tile.last_segment; s += THREADS) out[s] = Out();
        report(p, bad_index);
        return;
    }
    if (ends == 0) {  // the tile is inside one segment
        Acc total = items[0];
        #pragma unroll
        for (int k = 1; k < ITEMS; k++) total = fold(total, items[k]);
        total = reduce_block<THREADS>(totals, total, fold);
        if (threadIdx.x == 0) tails[blockIdx.x] = total;
        report(p, bad_index);
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
        ends_here[s] = static_cast<u32>(clamp_to_range(offsets[tile.segment + s + 1] - first_value, 0, values));
    }
    __syncthreads();

    // Each thread combines its items in order. If item k of the thread is the end of a segment, `items[k]` becomes the partial result of
    // that segment.
    const int diagonal = threadIdx.x * ITEMS < ends + values ? threadIdx.x * ITEMS : ends + values;
    int segment = count_segment_ends_before(diagonal, ends, values, [&](int s) { return static_cast<int>(ends_here[s]); });
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
    OpenSegment open[] = {OpenSegment{running, ended != 0}};
    scan_block<THREADS>(of_warps, open, FoldOpenSegments());
    OpenSegment before{shuffle_up(open[0].value, 1), 0};
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
        else out[tile.segment + s] = Fold::to_result<Out>(begin == end ? Fold::identity() : results[s]);
    }
    report(p, bad_index);
}

// Maximum number of tiles of a segment whose partial results one warp combines. A block combines the partial results of longer segments.
constexpr i64 MAX_WARP_TILES = 64;

// The tiles `begin..=last` that one segment spans. The segment starts in the first tile and ends in the last. The tiles in between contain
// only values of the segment.
struct SegmentTileRange {
    i64 begin, last;
    __device__ Acc fold_every_nth_tile(const Acc* tails, const Acc* heads, int first, int width) const {
        Acc total = Fold::identity();
        for (i64 t = begin + first; t <= last; t += width) total = Fold()(total, t < last ? tails[t] : heads[t]);
        return total;
    }
};

// Combines the partial results of segments that span several tiles. There is a warp for each tile. The warp handles the segment that begins
// before the tile and ends in it, if there is one.
extern "C" __global__ void __launch_bounds__(THREADS)
combine_segment_partials(Out* out, i64 length, const i64* offsets, i64 segments, const i64* cuts, const Acc* heads, const Acc* tails, i64 tiles) {
    __shared__ SegmentTileRange long_segments[WARPS];
    __shared__ Acc totals[WARPS];
    const Fold fold;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const ValuesInSegments covered(offsets, segments, length);
    for (i64 first = static_cast<i64>(blockIdx.x) * WARPS; first < tiles; first += static_cast<i64>(gridDim.x) * WARPS) {
        const i64 last = first + warp;
        SegmentTileRange chain{last, last};
        if (last < tiles) {
            const SegmentTile tile(last, cuts, segments + covered.count);
            if (tile.is_sound() && tile.segment < tile.last_segment) {
                const i64 begin = offsets[tile.segment] - covered.base;
                if (begin < tile.value) chain.begin = clamp_to_range((tile.segment + begin) / TILE, 0, last);
            }
        }
        const bool is_long = chain.last - chain.begin > MAX_WARP_TILES;
        if (chain.begin < chain.last && !is_long) {
            const Acc total = reduce_lanes<32>(chain.fold_every_nth_tile(tails, heads, lane, 32), fold);
            if (lane == 0) out[cuts[last]] = Fold::to_result<Out>(total);
        }
        if (lane == 0) long_segments[warp] = chain;
        if (!__syncthreads_or(is_long)) continue;
        for (int w = 0; w < WARPS; w++) {
            const SegmentTileRange shared = long_segments[w];
            if (shared.last - shared.begin <= MAX_WARP_TILES) continue;
            const Acc total = reduce_block<THREADS>(totals, shared.fold_every_nth_tile(tails, heads, threadIdx.x, THREADS), fold);
            if (threadIdx.x == 0) out[cuts[shared.last]] = Fold::to_result<Out>(total);
            __syncthreads();
        }
        // This barrier lets all warps read `long_segments` before the next iteration overwrites it.
        __syncthreads();
    }
}

}  // namespace cuprum
