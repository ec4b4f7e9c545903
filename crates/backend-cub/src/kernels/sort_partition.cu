// Partitions rows into the elements that come before a pivot, those equal to it, and those after it, each in their original order. The
// pivot is the element that `select_digit` found. Requires sort_top.cu.

namespace cuprum {

// Loads in flight per thread.
constexpr int ITEMS = 8;
constexpr int WARPS = THREADS / 32;

// Counts the elements of each chunk that come before the pivot (low 32 bits of a count) and those equal to it (high 32 bits).
extern "C" __global__ void __launch_bounds__(THREADS)
count_partition_elements(const Key* __restrict__ from, const SelectState* rows, u64* counts, i64 columns, i64 chunk, u32 chunks) {
    __shared__ u64 sums[WARPS];
    const u32 row = blockIdx.x / chunks;
    const u64 pivot = rows[row].key;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    u64 count = 0;
    for_each_in_block_range<THREADS>(from + row * columns, begin, end, [&](Key bits, i64) {
        const u64 key = sort_key_of(bits);
        count += key < pivot ? u64(1) : key == pivot ? u64(1) << 32 : u64(0);
    });
    count = reduce_block<THREADS>(sums, count, [](u64 a, u64 b) { return a + b; });
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Writes the elements of a chunk, and their indices, into the three parts of their row: before, equal to and after the pivot.
// `values` or `indices` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
write_partitions(const Key* __restrict__ from, const SelectState* rows, const u64* counts, Key* __restrict__ values, i64* __restrict__ indices,
                 i64 columns, i64 chunk, u32 chunks) {
    struct PartitionCounts {
        u64 less, equal;  // elements of earlier chunks
        u64 all_equal;    // elements of all chunks
    };
    __shared__ PartitionCounts sums[WARPS], before;
    __shared__ u32 warp_counts[WARPS];
    const u32 row = blockIdx.x / chunks, own_chunk = blockIdx.x % chunks;
    const u64 pivot = rows[row].key;
    PartitionCounts part = {0, 0, 0};
    for (u32 c = threadIdx.x; c < chunks; c += THREADS) {
        const u64 count = counts[static_cast<u64>(row) * chunks + c];
        const u64 less = static_cast<u32>(count), equal = count >> 32;
        if (c < own_chunk) part.less += less, part.equal += equal;
        part.all_equal += equal;
    }
    part = reduce_block<THREADS>(sums, part, [](const PartitionCounts& a, const PartitionCounts& b) {
        return PartitionCounts{a.less + b.less, a.equal + b.equal, a.all_equal + b.all_equal};
    });
    if (threadIdx.x == 0) before = part;
    __syncthreads();

    const i64 begin = static_cast<i64>(own_chunk) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    const u64 all_less = rows[row].before, base = static_cast<u64>(row) * columns;
    // For each of the row's three parts (before, equal to and after the pivot), the output index of the part's next element.
    u64 to_less = before.less, to_equal = all_less + before.equal;
    u64 to_greater = all_less + before.all_equal + (static_cast<u64>(begin) - before.less - before.equal);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 below = (1u << lane) - 1;
    for (i64 tile = begin; tile < end; tile += THREADS * ITEMS) {
        // Item k of a lane is element 32 * k + lane of the warp's part of the tile.
        const i64 first = tile + warp * 32 * ITEMS + lane;
        Key x[ITEMS];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if (first + k * 32 < end) x[k] = from[base + first + k * 32];
        }
        // Counts of the warp's elements before each item: those less than the pivot in the low 16 bits, equal ones in the high 16 bits.
        u32 ranks[ITEMS], count = 0, less_bits = 0, equal_bits = 0;
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const bool in_row = first + k * 32 < end;
            const u64 key = in_row ? sort_key_of(x[k]) : 0;
            const bool is_less = in_row && key < pivot, is_equal = in_row && key == pivot;
            const u32 less = __ballot_sync(0xffffffffu, is_less), equal = __ballot_sync(0xffffffffu, is_equal);
            ranks[k] = count + __popc(less & below) + (__popc(equal & below) << 16);
            count += __popc(less) + (__popc(equal) << 16);
            less_bits |= static_cast<u32>(is_less) << k;
            equal_bits |= static_cast<u32>(is_equal) << k;
        }
        if (lane == 0) warp_counts[warp] = count;
        __syncthreads();
        u32 in_tile = 0, earlier = 0;
        #pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w == warp) earlier = in_tile;
            in_tile += warp_counts[w];
        }
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const i64 at = first + k * 32;
            if (at >= end) continue;
            const u32 rank = earlier + ranks[k], less = rank & 0xffff, equal = rank >> 16;
            const u64 to = less_bits >> k & 1    ? to_less + less
                           : equal_bits >> k & 1 ? to_equal + equal
                                                 : to_greater + static_cast<u64>(at - tile) - less - equal;
            if (values != nullptr) values[base + to] = x[k];
            if (indices != nullptr) indices[base + to] = at;
        }
        const u64 size = end - tile < THREADS * ITEMS ? end - tile : THREADS * ITEMS;
        to_less += in_tile & 0xffff;
        to_equal += in_tile >> 16;
        to_greater += size - (in_tile & 0xffff) - (in_tile >> 16);
        __syncthreads();
    }
}

}  // namespace cuprum
