// The additions of scatter_sum.cu with fewer random accesses to global memory, for rows of one real element. Requires atomic_update.cuh,
// resolve_index.cuh and scatter_sum.cuh. ELEMENT is a float type, and INDEX_ELEMENT, the element type of the index array, is i32 or i64.
//
// Random additions to the L2 cache of an H200 take the same time for 32-bit and 64-bit types: 0.37 ms for 32M values. The kernels
// therefore sort tiles of consecutive values by bucket, a range of BUCKET_ROWS consecutive rows. Blocks then add the values of a
// bucket in shared memory, and these sums to those in global memory.

using namespace cuprum;

constexpr u32 BUCKET_BITS = 13, BUCKET_ROWS = 1u << BUCKET_BITS;
// The number of threads of a block that sorts a tile, the number of values per thread, and the number of values of a tile.
constexpr u32 THREADS_PER_TILE = 512, VALUES_PER_THREAD = 16, TILE_LENGTH = THREADS_PER_TILE * VALUES_PER_THREAD;
// Number of partial counts of the values of a bucket. With several counts, fewer tiles add to the same number at once.
constexpr u32 PARTIAL_COUNTS_PER_BUCKET = 16;
// The number of threads of a block that adds values in shared memory.
constexpr u32 THREADS_PER_BUCKET_BLOCK = 1024;
// Number of groups of threads by which scatter_add_buckets rotates the assignment of tiles in each round. The number is odd, so that the
// tile at one position of each round goes to every group in turn.
constexpr u32 ROTATION = 5;

// The values sorted by bucket within each tile. The number of buckets is less than THREADS_PER_TILE.
struct SortedTiles {
    // For each value, the index of its row within the bucket.
    u16* rows;
    ELEMENT* values;
    // The position within its tile at which the values of each bucket start, as an array [bucket][tile]. A last row of the array, after all
    // buckets, holds the ends of the valid values.
    u16* starts;
    // The number of values of each bucket as a sum of PARTIAL_COUNTS_PER_BUCKET numbers, which must be zeroed: an array [copy][bucket].
    u32* sizes;
    u32 tiles, buckets;
};

__device__ inline bool adds_by_bucket_in_common_units(const ExponentRange* range, u64 bits) {
    return range->adds_by_bucket != 0 && range->has_common_units(bits);
}

// Sets `adds_by_bucket` unless many neighboring indices select rows in the same 32 bytes of the sums. For such indices, sorting by bucket
// is slower than atomic additions to global memory, because the device combines the atomic additions of a warp to the same 32 bytes. The
// grid has one block.
extern "C" __global__ void __launch_bounds__(1024)
scatter_choose_buckets(ExponentRange* range, const INDEX_ELEMENT* indices, i64 count) {
    const i64 at = threadIdx.x * ((count - 1) / 1024);
    const i64 distance = static_cast<i64>(indices[at + 1]) - static_cast<i64>(indices[at]);
    const int near = __syncthreads_count(distance > -4 && distance < 4);
    if (threadIdx.x == 0 && near < 256) range->adds_by_bucket = 1;
}

// Returns the sum of `count` over the threads of the block with lower numbers. `sums` is shared memory for 32 numbers.
__device__ inline u32 sum_of_lower_threads(u32* sums, u32 count) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 inclusive = count;
    #pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, inclusive, distance);
        if (lane >= distance) inclusive += other;
    }
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    u32 below = inclusive - count;
    for (u32 w = 0; w < warp; w++) below += sums[w];
    return below;
}

// Records those of a thread's indices in `fault` that are out of bounds. Not inlined, so that it needs no registers of the caller.
__device__ __noinline__ void report_invalid_indices(const INDEX_ELEMENT* indices, u32 valid, i64 extent, Fault* fault, u64 op) {
    for (u32 i = threadIdx.x; i < valid; i += THREADS_PER_TILE, indices += THREADS_PER_TILE) {
        if (resolve_index(*indices, extent) < 0) report_fault(fault, 1, op, *indices, static_cast<u64>(extent));
    }
}

// Shared memory of a block that sorts a tile.
struct TileSharedMemory {
    // The TILE_LENGTH values of the tile, followed by the TILE_LENGTH row numbers.
    uint4* values_and_rows;
    // For each bucket, first the number of its values in the tile, later the position of its first value. The array has THREADS_PER_TILE
    // elements.
    u32* starts;
    // For sum_of_lower_threads.
    u32* sums;
};

// Sorts a tile of values by bucket, in any order within a bucket. `in` points to the first value, and `indices` to the first index, of this
// thread; the thread's next value is `distance` elements away. `valid` is the number of values of the tile, TILE_LENGTH if it is `Full`. An
// index out of bounds is recorded in `fault`.
template <bool Full>
__device__ inline void sort_tile(const TileSharedMemory& memory, const SortedTiles& out, const ELEMENT* __restrict__ in,
                                 const INDEX_ELEMENT* __restrict__ indices, u32 valid, i64 extent, i64 distance, Fault* fault, u64 op) {
    ELEMENT* const values = reinterpret_cast<ELEMENT*>(memory.values_and_rows);
    u16* const rows_in_bucket = reinterpret_cast<u16*>(values + TILE_LENGTH);
    u32* const starts = memory.starts;
    starts[threadIdx.x] = 0;
    __syncthreads();

    // Values past the end and values with an index out of bounds go to an additional bucket after the last one, which is not read. Branches
    // for them would delay the loads of the thread's other values.
    const auto exists = [&](u32 k) { return Full || k * THREADS_PER_TILE + threadIdx.x < valid; };
    u32 rows[VALUES_PER_THREAD], ranks[VALUES_PER_THREAD];
    bool all_valid = true;
    #pragma unroll
    for (u32 k = 0; k < VALUES_PER_THREAD; k++) {
        const i64 row = resolve_index(indices[exists(k) ? k * THREADS_PER_TILE : 0], extent);
        all_valid &= row >= 0;
        rows[k] = !exists(k) || row < 0 ? out.buckets << BUCKET_BITS : static_cast<u32>(row);
    }
    #pragma unroll
    for (u32 k = 0; k < VALUES_PER_THREAD; k++) ranks[k] = atomicAdd(starts + (rows[k] >> BUCKET_BITS), 1u);
    __syncthreads();
    const u32 size = starts[threadIdx.x], start = sum_of_lower_threads(memory.sums, size);
    starts[threadIdx.x] = start;
    if (threadIdx.x <= out.buckets) out.starts[static_cast<i64>(threadIdx.x) * out.tiles + blockIdx.x] = static_cast<u16>(start);
    if (size != 0 && threadIdx.x < out.buckets) atomic_add(out.sizes + blockIdx.x % PARTIAL_COUNTS_PER_BUCKET * out.buckets + threadIdx.x, size);
    __syncthreads();
    #pragma unroll
    for (u32 k = 0; k < VALUES_PER_THREAD; k++) {
        const ELEMENT value = in[exists(k) ? k * distance : 0];
        const u32 position = starts[rows[k] >> BUCKET_BITS] + ranks[k];
        rows_in_bucket[position] = static_cast<u16>(rows[k] % BUCKET_ROWS);
        values[position] = value;
    }
    __syncthreads();
    const i64 begin = static_cast<i64>(blockIdx.x) * TILE_LENGTH;
    u32* const row_pairs = reinterpret_cast<u32*>(out.rows + begin);
    for (u32 i = threadIdx.x; i < TILE_LENGTH / 2; i += THREADS_PER_TILE) row_pairs[i] = reinterpret_cast<const u32*>(rows_in_bucket)[i];
    for (u32 i = threadIdx.x; i < TILE_LENGTH; i += THREADS_PER_TILE) out.values[begin + i] = values[i];

    if (!all_valid) report_invalid_indices(indices, valid, extent, fault, op);
}

// Sorts each tile by `sort_tile`. There is one block per tile, with dynamic shared memory for its values and rows. `value_step` is the
// distance between consecutive values in elements.
extern "C" __global__ void __launch_bounds__(THREADS_PER_TILE, 2)
scatter_sort_tiles(const __grid_constant__ SortedTiles out, const ELEMENT* in, const INDEX_ELEMENT* indices, i64 count, i64 extent,
                   i64 value_step, const ExponentRange* range, u64 bits, Fault* fault, u64 op) {
    if (!adds_by_bucket_in_common_units(range, bits)) return;
    extern __shared__ uint4 shared[];
    __shared__ u32 starts[THREADS_PER_TILE];
    __shared__ u32 sums[32];
    const TileSharedMemory memory = {shared, starts, sums};
    const i64 begin = static_cast<i64>(blockIdx.x) * TILE_LENGTH, first = begin + threadIdx.x < count ? begin + threadIdx.x : begin;
    const i64 distance = THREADS_PER_TILE * value_step;
    const ELEMENT* const values = in + first * value_step;
    if (count - begin >= TILE_LENGTH) sort_tile<true>(memory, out, values, indices + first, TILE_LENGTH, extent, distance, fault, op);
    else sort_tile<false>(memory, out, values, indices + first, static_cast<u32>(count - begin), extent, distance, fault, op);
}

// Adds the values of the sorted tiles, as integers, to `sums` and `rests`. Each bucket has one block for every `block_size` of its values.
// Each of these blocks adds the values of some tiles. Blocks that no bucket needs return early. `lanes`, a power of two, is the number of
// threads that read the values of one tile.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BUCKET_BLOCK)
scatter_add_buckets(u64* sums, u64* rests, const __grid_constant__ SortedTiles in, u32 block_size, u32 lanes, ExponentRange* range,
                    u64 bits) {
    // Other blocks may record an inexact value meanwhile. All threads of the block must decide alike.
    if (!__syncthreads_and(adds_by_bucket_in_common_units(range, bits))) return;
    extern __shared__ uint4 shared[];
    // The low and high 32-bit words of each row's sum, because shared memory has no 64-bit additions.
    u32* const low_words = reinterpret_cast<u32*>(shared);
    u32* const high_words = low_words + BUCKET_ROWS;
    __shared__ u32 warp_sums[32];
    // The bucket of this block, the index of the block among the blocks of this bucket, and the number of these blocks.
    __shared__ u32 bucket, part, parts;
    if (threadIdx.x == 0) parts = 0;
    for (u32 r = threadIdx.x; r < 2 * BUCKET_ROWS; r += THREADS_PER_BUCKET_BLOCK) low_words[r] = 0;
    u32 size = 0;
    if (threadIdx.x < in.buckets) {
        for (u32 copy = 0; copy < PARTIAL_COUNTS_PER_BUCKET; copy++) size += in.sizes[copy * in.buckets + threadIdx.x];
    }
    const u32 blocks = size == 0 ? 0 : (size - 1) / block_size + 1;
    const u32 first_block = sum_of_lower_threads(warp_sums, blocks);
    if (blockIdx.x >= first_block && blockIdx.x < first_block + blocks) {
        bucket = threadIdx.x;
        part = blockIdx.x - first_block;
        parts = blocks;
    }
    __syncthreads();
    if (parts == 0) return;

    const int exponent = range->common_exponent();
    bool all_exact = true;
    const u16* const starts = in.starts + static_cast<i64>(bucket) * in.tiles;
    const u16* const ends = starts + in.tiles;
    // In each round, every group of threads adds the values of one tile. The assignment of tiles to groups rotates by ROTATION per round.
    // Otherwise one group might get all tiles with many values of the bucket, if such tiles follow each other at a regular distance.
    const u32 groups = THREADS_PER_BUCKET_BLOCK / lanes, group = threadIdx.x / lanes;
    for (u32 round = 0; part + parts * groups * round < in.tiles; round++) {
        const u32 tile = part + parts * (groups * round + (group + ROTATION * round) % groups);
        if (tile >= in.tiles) continue;
        for (u32 i = starts[tile] + threadIdx.x % lanes; i < ends[tile]; i += lanes) {
            const i64 at = static_cast<i64>(tile) * TILE_LENGTH + i;
            const u32 row = in.rows[at];
            const ScaledValue scaled = scale_to_integers(to_double(reinterpret_cast<const Real*>(in.values)[at]), bits, exponent);
            all_exact &= scaled.is_exact;
            if (scaled.whole != 0) {
                const u32 low = static_cast<u32>(scaled.whole), old = atomicAdd(low_words + row, low);
                const u32 high = static_cast<u32>(scaled.whole >> 32) + (old + low < old ? 1 : 0);
                if (high != 0) atomicAdd(high_words + row, high);
            }
            if (scaled.rest != 0) atomic_add(rests + static_cast<i64>(bucket) * BUCKET_ROWS + row, static_cast<u64>(scaled.rest));
        }
    }
    if (!all_exact) range->has_inexact_value = 1;
    __syncthreads();
    u64* const first_row = sums + static_cast<i64>(bucket) * BUCKET_ROWS;
    for (u32 r = threadIdx.x; r < BUCKET_ROWS; r += THREADS_PER_BUCKET_BLOCK) {
        const u64 sum = static_cast<u64>(high_words[r]) << 32 | low_words[r];
        if (sum != 0) atomic_add(first_row + r, sum);
    }
}
