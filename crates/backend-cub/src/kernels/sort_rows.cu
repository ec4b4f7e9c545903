// Stable radix sort of short rows, one block per row. Requires sort_keys.cuh. The host defines the names that sort_keys.cuh requires,
// `THREADS` and `ITEMS` (elements per thread).

namespace cuprum {

// Sorts rows of `columns` elements, and writes the first `limit` of each. `values` or `indices` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_rows(const Bits* __restrict__ from, Bits* __restrict__ values, i64* __restrict__ indices, i64 rows, u32 columns, u32 limit) {
    using Sort = BlockRadixSort<Key, THREADS, ITEMS, choose<PAIRS, u16, NoValue>::type>;
    using Exchange = BlockExchange<Key, THREADS, ITEMS>;
    __shared__ union Storage {
        typename Exchange::TempStorage exchange;
        typename Sort::TempStorage sort;
    } storage;
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const Bits* elements = from + row * columns;
        Key keys[ITEMS];
        // Threads past the end of the row have the largest key. The sort is stable, so these keys come after all elements.
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const u32 i = k * THREADS + threadIdx.x;
            keys[k] = i < columns ? sort_key_of(elements[i]) : LAST_KEY;
        }
        Exchange(storage.exchange).StripedToBlocked(keys, keys);
        __syncthreads();
        if constexpr (PAIRS) {
            u16 index[ITEMS];
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) index[k] = static_cast<u16>(threadIdx.x * ITEMS + k);
            if constexpr (WORDS == 2) {
                Sort(storage.sort).Sort(keys, index);
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < ITEMS; k++) keys[k] = index[k] < columns ? sort_key_of(elements[index[k]], 1) : LAST_KEY;
            }
            Sort(storage.sort).SortBlockedToStriped(keys, index);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const u32 i = k * THREADS + threadIdx.x;
                if (i < limit) {
                    if (indices != nullptr) indices[row * limit + i] = index[k];
                    if (values != nullptr) values[row * limit + i] = elements[index[k]];
                }
            }
        } else {
            Sort(storage.sort).SortBlockedToStriped(keys);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const u32 i = k * THREADS + threadIdx.x;
                if (i < limit) values[row * limit + i] = Bits{bits_of(keys[k])};
            }
        }
        __syncthreads();
    }
}

}  // namespace cuprum
