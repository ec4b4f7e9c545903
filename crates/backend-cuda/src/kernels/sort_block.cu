// A stable LSD radix sort, in shared memory, of rows of at most TILE elements. One block sorts each row. Requires sort_radix.cuh. The host
// also defines INDICES (1 if indices are an output, else 0). To sort the segments in a list instead of rows, the host defines SEGMENTS.

using namespace cuprum;

using Key = decltype(sort_key(*static_cast<const ELEMENT*>(nullptr)));
constexpr int SIZE = INDICES && sizeof(ELEMENT) < 4 ? 4 : sizeof(ELEMENT);

// Sorts the `length` elements at `row`, and writes the first `limit` of them to `values` and their indices plus `base` to `indices`.
// Either output may be null. `flip` is XORed with each digit: 255 for descending order, else 0.
__device__ inline void sort_row(const ELEMENT* __restrict__ row, i32 length, i32 limit, u32 flip, ELEMENT* __restrict__ values,
                                i64* __restrict__ indices, i64 base) {
    __shared__ RankingStorage<SIZE> storage;
    __shared__ u32 sums[RADIX / 32];
    const int first = first_item();
    ELEMENT x[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * 32 < length) x[k] = row[first + k * 32];
    }
#if INDICES
    u32 index[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) index[k] = first + k * 32;
#endif
    #pragma unroll 1
    for (u32 shift = 0; shift < 8 * sizeof(Key); shift += 8) {
        u32 codes[ITEMS];
        // Padding after the end of the row has the largest digit. The sort is stable, so the padding stays after all elements.
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            codes[k] = (first + k * 32 < length ? byte_at(sort_key(x[k]), shift) ^ flip : RADIX - 1) << DIGIT_SHIFT;
        }
        rank_in_warp(storage.counts, codes);
        __syncthreads();
        u32 total = 0;
        if (threadIdx.x < RADIX) total = tile_digit_count(storage.counts);
        const u32 padding = threadIdx.x == RADIX - 1 ? TILE - length : 0;
        const bool constant = __syncthreads_or(threadIdx.x < RADIX && total - padding == static_cast<u32>(length));
        if (constant) continue;
        rank_in_tile(storage.counts, sums, total, codes);
        storage.reorder_by_rank(codes, x);
#if INDICES
        storage.reorder_by_rank(codes, index);
#endif
    }
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = first + k * 32;
        if (i >= limit) continue;
        if (values != nullptr) values[i] = x[k];
#if INDICES
        indices[i] = base + index[k];
#endif
    }
}

template <class T> __device__ inline T* offset_if_not_null(T* first, i64 count) { return first == nullptr ? nullptr : first + count; }

#ifdef SEGMENTS
// Sorts the segments in a list: for each of the first `*count` entries s of `list`, the elements `in[offsets[s]..offsets[s + 1]]`.
extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS)
sort_segments(const ELEMENT* __restrict__ in, ELEMENT* __restrict__ values, i64* __restrict__ indices, const i64* __restrict__ offsets,
              const i64* __restrict__ list, const u32* __restrict__ count) {
    for (u32 n = blockIdx.x; n < *count; n += gridDim.x) {
        const i64 begin = offsets[list[n]];
        const i32 length = static_cast<i32>(offsets[list[n] + 1] - begin);
        sort_row(in + begin, length, length, 0, offset_if_not_null(values, begin), offset_if_not_null(indices, begin), begin);
    }
}
#else
extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS)
sort_block(const ELEMENT* __restrict__ in, ELEMENT* __restrict__ values, i64* __restrict__ indices, i64 rows, i32 length, i32 limit, u32 flip) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        sort_row(in + row * length, length, limit, flip, offset_if_not_null(values, row * limit), offset_if_not_null(indices, row * limit),
                 0);
    }
}
#endif
