// Stable sorts of the short segments of a 1-D array by comparing all pairs, and lists of the longer segments for other kernels. Requires
// sort_keys.cuh. The host defines ELEMENT, the element type.

using namespace cuprum;

using Key = decltype(sort_key(*static_cast<const ELEMENT*>(nullptr)));

constexpr int THREADS = 256;
// Elements per tile. A block sorts the segments that start in its tile.
constexpr int TILE = 1024;
// Maximum length of segments that are sorted by comparing all pairs.
constexpr int MAX_SHORT = 128;
// Number of lists of segments longer than MAX_SHORT. Each list has the segments of one range of lengths.
constexpr int LISTS = 3;

struct LongSegmentLists {
    i64* segments[LISTS];
    i64 longest[LISTS];  // maximum segment length of each list
};

// For each tile, writes the index of the first segment that starts in or after the tile to `cuts`, which has `tiles` + 1 elements. Appends
// each segment longer than MAX_SHORT to the list for its length.
extern "C" __global__ void __launch_bounds__(THREADS)
assign_segments_to_tiles(const i64* offsets, i64 segments, i64* cuts, i64 tiles, LongSegmentLists lists, u32* counts) {
    const i64 n = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    if (n <= tiles) {
        i64 low = 0, high = segments;
        while (low < high) {
            const i64 middle = (low + high) / 2;
            if (offsets[middle] < n * TILE) low = middle + 1;
            else high = middle;
        }
        cuts[n] = low;
    }
    const i64 length = n < segments ? offsets[n + 1] - offsets[n] : 0;
    const u32 below = (1u << threadIdx.x % 32) - 1;
    i64 shorter = MAX_SHORT;
    #pragma unroll
    for (int k = 0; k < LISTS; k++) {
        const bool is_here = length > shorter && length <= lists.longest[k];
        const u32 those = __ballot_sync(0xffffffffu, is_here);
        shorter = lists.longest[k];
        if (those == 0) continue;
        u32 first = 0;
        if (threadIdx.x % 32 == 0) first = atomicAdd(counts + k, static_cast<u32>(__popc(those)));
        first = __shfl_sync(0xffffffffu, first, 0);
        if (is_here) lists.segments[k][first + __popc(those & below)] = n;
    }
}

// Sorts the short segments, with one block per tile. For each element, a thread counts the elements that precede it in the sorted segment.
// `values` or `indices` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_segments_short(const ELEMENT* __restrict__ in, ELEMENT* __restrict__ values, i64* __restrict__ indices, i64 length,
                    const i64* __restrict__ offsets, const i64* __restrict__ cuts) {
    // A segment that starts in the tile may end after the tile.
    constexpr int CAPACITY = TILE + MAX_SHORT, EACH = (CAPACITY + THREADS - 1) / THREADS, TEAM = 8;
    __shared__ Key keys[CAPACITY];
    // For each element, the segment that contains it: the segment's length in the upper 16 bits, and its start relative to the tile in the
    // lower 16 bits. The value is 0 for elements that this block does not sort.
    __shared__ u32 spans[CAPACITY];
    const i64 base = static_cast<i64>(blockIdx.x) * TILE;
    const int count = length - base < CAPACITY ? static_cast<int>(length - base) : CAPACITY;
    ELEMENT x[EACH];
    #pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i >= count) continue;
        x[k] = in[base + i];
        keys[i] = sort_key(x[k]);
        spans[i] = 0;
    }
    __syncthreads();
    const i64 last = cuts[blockIdx.x + 1];
    for (i64 s = cuts[blockIdx.x] + threadIdx.x / TEAM; s < last; s += THREADS / TEAM) {
        const i64 begin = offsets[s] - base, size = offsets[s + 1] - offsets[s];
        if (size > MAX_SHORT) continue;
        for (int i = threadIdx.x % TEAM; i < size; i += TEAM) spans[begin + i] = static_cast<u32>(size << 16 | begin);
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = k * THREADS + threadIdx.x;
        const u32 span = i < count ? spans[i] : 0;
        if (span == 0) continue;
        const int begin = span & 0xffff, end = begin + (span >> 16);
        const Key key = keys[i];
        int rank = begin;
        for (int j = begin; j < end; j++) {
            const Key other = keys[j];
            rank += j < i ? other <= key : other < key;
        }
        if (values != nullptr) values[base + rank] = x[k];
        if (indices != nullptr) indices[base + rank] = base + i;
    }
}
