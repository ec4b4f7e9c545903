// Stores values of up to 16 bytes in rows that have one element each, for targets larger than the L2 cache. If several values go to a row,
// the last one remains. Requires digit_look_back.cuh, block_range.cuh and resolve_index.cuh.
//
// A stable radix sort groups the values by bucket, a range of BUCKET_ROWS consecutive rows. One block then stores the values of a bucket,
// and finds the last value of each row in shared memory. All random accesses are thus to a small part of the target. The last values of
// rows in buckets of many values are found in global memory.
//
// The host also defines ITEM (an unsigned type with the size of an element) and INDEX_ELEMENT (the element type of the index array).

using namespace cuprum;

constexpr u32 BUCKET_BITS = 13, BUCKET_ROWS = 1u << BUCKET_BITS;
constexpr u32 MAX_PASSES = 3;
// Maximum number of values of a bucket that one block stores. Larger buckets are stored by several blocks.
constexpr u32 LARGE_BUCKET_THRESHOLD = 1u << 14;
// Number of copies of a block's digit counts, so that lanes of a warp rarely increment the same counter.
constexpr int COUNTER_COPIES = 4;

// Returns the row that `index` selects, or the first row after the last of the `buckets` buckets if `index` is out of bounds.
__device__ inline u32 row_or_past_last_bucket(i64 index, i64 extent, u32 buckets) {
    const i64 row = resolve_index(index, extent);
    return row < 0 ? buckets << BUCKET_BITS : static_cast<u32>(row);
}
// Returns the position of the lowest bit of the digit of radix pass `pass` in a row number.
__device__ inline u32 digit_shift(u32 pass) { return BUCKET_BITS + 8 * pass; }

// Counts the digits of the rows that `indices` select in `counts`, an array [pass][digit] that must be zeroed. Each block counts `chunk`
// indices. An index out of bounds is recorded in `fault`.
extern "C" __global__ void __launch_bounds__(THREADS)
scatter_count_digits(const INDEX_ELEMENT* __restrict__ indices, u32* __restrict__ counts, i64 count, i64 extent, u32 buckets, u32 passes,
                     i64 chunk, Fault* fault, u64 op) {
    __shared__ u32 own[MAX_PASSES * RADIX * COUNTER_COPIES];
    for (int i = threadIdx.x; i < MAX_PASSES * RADIX * COUNTER_COPIES; i += THREADS) own[i] = 0;
    __syncthreads();
    const i64 begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
    u32* mine = own + threadIdx.x % COUNTER_COPIES;
    for_each_in_block_range<THREADS>(indices, begin, end, [&](INDEX_ELEMENT index, i64) {
        const u32 row = row_or_past_last_bucket(index, extent, buckets);
        if (row >= extent) report_fault(fault, 1, op, index, static_cast<u64>(extent));
        for (u32 p = 0; p < passes; p++) atomicAdd(mine + (p * RADIX + byte_at(row, digit_shift(p))) * COUNTER_COPIES, 1u);
    });
    __syncthreads();
    for (u32 d = threadIdx.x; d < passes * RADIX; d += THREADS) {
        u32 sum = 0;
        #pragma unroll
        for (int c = 0; c < COUNTER_COPIES; c++) sum += own[d * COUNTER_COPIES + c];
        if (sum != 0) atomicAdd(counts + d, sum);
    }
}

// Replaces the count of each digit by the position in the sorted values at which the values with this radix digit start. The grid has one
// block per pass.
extern "C" __global__ void __launch_bounds__(RADIX)
scatter_digit_starts(u32* counts) {
    __shared__ u32 sums[RADIX / 32];
    u32* at = counts + blockIdx.x * RADIX + threadIdx.x;
    *at = sum_lower_threads(sums, *at);
}

// Input of a radix pass: values, and the rows in which they are stored. The first pass reads `indices` and the values of the call. Later
// passes read the output of the previous pass.
struct RadixPassInput {
    // The index array in the first pass, null in later passes.
    const INDEX_ELEMENT* indices;
    const u32* rows;
    const ITEM* items;
    // Distance between consecutive elements of `items`, in elements.
    i64 step;
};

// Sorts the values by the radix digit of pass number `pass`, with one block per tile. `ticket`, which numbers the tiles, and the look-back
// states in `states` (RADIX words per tile) must be zeroed. The kernel zeroes `next_states`, the states of the next pass.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
scatter_partition(const __grid_constant__ RadixPassInput in, u32* __restrict__ out_rows, ITEM* __restrict__ out_items, const u32* __restrict__ starts,
                  u32* ticket, u32* states, u32* next_states, i64 count, i64 extent, u32 buckets, u32 pass) {
    __shared__ RankingStorage<sizeof(ITEM) < sizeof(u32) ? sizeof(u32) : sizeof(ITEM)> storage;
    __shared__ u32 where[RADIX];
    __shared__ u32 sums[RADIX / 32];
    __shared__ u32 shared_ticket;
    using S = LookBackState<u32>;

    if (threadIdx.x == 0) shared_ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    const i64 tile = shared_ticket, begin = tile * TILE;
    if (threadIdx.x < RADIX) next_states[tile * RADIX + threadIdx.x] = 0;
    const int valid = count - begin < TILE ? static_cast<int>(count - begin) : TILE;
    const int first = first_item();
    const u32 shift = digit_shift(pass);

    u32 rows[ITEMS], codes[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const i64 i = begin + first + k * 32;
        if (first + k * 32 < valid) rows[k] = in.indices != nullptr ? row_or_past_last_bucket(in.indices[i], extent, buckets) : in.rows[i];
    }
    // Padding after the last value has the largest digit. The sort is stable, so the padding stays after all values.
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) codes[k] = (first + k * 32 < valid ? byte_at(rows[k], shift) : RADIX - 1) << DIGIT_SHIFT;
    rank_in_warp(storage.counts, codes);
    __syncthreads();
    u32 total = 0;
    if (threadIdx.x < RADIX) {
        total = tile_digit_count(storage.counts);
        store_relaxed(states + tile * RADIX + threadIdx.x, (tile == 0 ? S::PREFIX : S::TOTAL) | total);
    }
    const u32 start = rank_in_tile(storage.counts, sums, total, codes);
    storage.store_by_rank(codes, rows);
    ITEM items[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * 32 < valid) items[k] = in.items[(begin + first + k * 32) * in.step];
    }
    if (threadIdx.x < RADIX) {
        u32 before = 0;
        if (tile > 0) {
            before = digit_count_in_earlier_tiles(states, tile);
            store_relaxed(states + tile * RADIX + threadIdx.x, S::PREFIX | (before + total));
        }
        // The difference `starts + before - start` may wrap around. The sum of the difference and a rank of at least `start` does not wrap.
        where[threadIdx.x] = starts[pass * RADIX + threadIdx.x] + before - start;
    }
    __syncthreads();

    u8 digits[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < valid) {
            const u32 row = storage.template at<u32>(i);
            digits[k] = static_cast<u8>(byte_at(row, shift));
            out_rows[where[digits[k]] + i] = row;
        }
    }
    __syncthreads();
    storage.store_by_rank(codes, items);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < valid) out_items[where[digits[k]] + i] = storage.template at<ITEM>(i);
    }
}

// Writes the position of the first value of each of the `buckets` buckets to `starts`, followed by the end of the last bucket. `rows` has
// the `count` rows of the values, sorted by bucket.
extern "C" __global__ void __launch_bounds__(256)
scatter_bucket_starts(u32* starts, const u32* __restrict__ rows, i64 count, u32 buckets) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i <= count; i += stride) {
        const u32 bucket = i < count ? rows[i] >> BUCKET_BITS : buckets;
        for (u32 b = i > 0 ? (rows[i - 1] >> BUCKET_BITS) + 1 : 0; b <= bucket; b++) starts[b] = static_cast<u32>(i);
    }
}

// Stores the last value of each row, in buckets (ranges of rows) that have at most LARGE_BUCKET_THRESHOLD values. The grid has one block
// per bucket. `step` is the distance between rows of `out`, in elements.
extern "C" __global__ void __launch_bounds__(256)
scatter_store_buckets(ITEM* out, const u32* __restrict__ rows, const ITEM* __restrict__ items, const u32* __restrict__ starts, i64 step) {
    // For each row of the bucket, the position of its last value in the bucket plus 1, or 0.
    __shared__ u32 last[BUCKET_ROWS];
    const u32 begin = starts[blockIdx.x], size = starts[blockIdx.x + 1] - begin;
    if (size == 0 || size > LARGE_BUCKET_THRESHOLD) return;
    for (u32 r = threadIdx.x; r < BUCKET_ROWS; r += blockDim.x) last[r] = 0;
    __syncthreads();
    // Processes the values from last to first. Most values that are not the last of their row then need no atomic operation.
    for (u32 n = threadIdx.x; n < size; n += blockDim.x) {
        const u32 position = size - n, row = rows[begin + position - 1] % BUCKET_ROWS;
        if (last[row] < position) atomicMax(last + row, position);
    }
    __syncthreads();
    ITEM* const first_row = out + static_cast<i64>(blockIdx.x) * BUCKET_ROWS * step;
    for (u32 r = threadIdx.x; r < BUCKET_ROWS; r += blockDim.x) {
        if (last[r] != 0) first_row[r * step] = items[begin + last[r] - 1];
    }
}

// Calls `use(position, row, last)` for each value of a large bucket among the LARGE_BUCKET_THRESHOLD values of this block, from last to
// first. `last` points to the element of `lasts` for the row. `lasts` has BUCKET_ROWS elements for each large bucket.
template <class Use>
__device__ inline void for_each_large_bucket_value(const u32* rows, const u32* starts, u32* lasts, i64 count, u32 buckets, const Use& use) {
    const i64 begin = static_cast<i64>(gridDim.x - 1 - blockIdx.x) * LARGE_BUCKET_THRESHOLD;
    const u32 size = count - begin < LARGE_BUCKET_THRESHOLD ? static_cast<u32>(count - begin) : LARGE_BUCKET_THRESHOLD;
    // A large bucket has more values than a block. If it has values in this block, it has the block's first or last value.
    const u32 ends[2] = {rows[begin] >> BUCKET_BITS, rows[begin + size - 1] >> BUCKET_BITS};
    for (u32 e = 0; e < (ends[0] == ends[1] ? 1 : 2); e++) {
        if (ends[e] >= buckets) continue;
        const u32 first = starts[ends[e]], end = starts[ends[e] + 1];
        if (end - first <= LARGE_BUCKET_THRESHOLD) continue;
        // Large buckets start more than LARGE_BUCKET_THRESHOLD values apart, so each has its own part of `lasts`.
        u32* const of_bucket = lasts + static_cast<i64>(first / LARGE_BUCKET_THRESHOLD) * BUCKET_ROWS;
        for (u32 n = threadIdx.x; n < size; n += blockDim.x) {
            const u32 i = static_cast<u32>(begin) + size - 1 - n;
            if (i >= first && i < end) use(i, rows[i], of_bucket + rows[i] % BUCKET_ROWS);
        }
    }
}

// For each row of a bucket of more than LARGE_BUCKET_THRESHOLD values, writes 1 plus the position of its last value to `lasts`, which must be zeroed.
extern "C" __global__ void __launch_bounds__(256)
scatter_find_last_in_large_buckets(u32* lasts, const u32* __restrict__ rows, const u32* __restrict__ starts, i64 count, u32 buckets) {
    for_each_large_bucket_value(rows, starts, lasts, count, buckets, [](u32 i, u32, u32* last) {
        if (*last < i + 1) atomicMax(last, i + 1);
    });
}

// Stores the value at position `lasts[...] - 1` in each row of the large buckets. `step` is the distance between rows of `out`, in
// elements.
extern "C" __global__ void __launch_bounds__(256)
scatter_store_large_buckets(ITEM* out, u32* lasts, const u32* __restrict__ rows, const ITEM* __restrict__ items,
                            const u32* __restrict__ starts, i64 count, u32 buckets, i64 step) {
    for_each_large_bucket_value(rows, starts, lasts, count, buckets, [&](u32 i, u32 row, const u32* last) {
        if (*last == i + 1) out[row * step] = items[i];
    });
}
