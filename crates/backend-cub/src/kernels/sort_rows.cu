// Stable radix sort of short rows: a block each. After keys.cuh; the host defines what that names, `THREADS` and `ITEMS`.

namespace cuprum {

// Rows of `columns` elements, of which the first `limit` are asked for: a block a row. `values` or `places` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_rows(const Bits* __restrict__ from, Bits* __restrict__ values, i64* __restrict__ places, i64 rows, u32 columns, u32 limit) {
    using Sort = BlockRadixSort<Key, THREADS, ITEMS, choose<PAIRS, u16, NoValue>::type>;
    using Exchange = BlockExchange<Key, THREADS, ITEMS>;
    __shared__ union Storage {
        typename Exchange::TempStorage exchange;
        typename Sort::TempStorage sort;
    } storage;
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const Bits* elements = from + row * columns;
        Key keys[ITEMS];
        // The keys after the row's last are equal to its largest at the least, and stand behind it.
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const u32 i = k * THREADS + threadIdx.x;
            keys[k] = i < columns ? key_of(elements[i]) : LAST_KEY;
        }
        Exchange(storage.exchange).StripedToBlocked(keys, keys);
        __syncthreads();
        if constexpr (PAIRS) {
            u16 at[ITEMS];
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) at[k] = static_cast<u16>(threadIdx.x * ITEMS + k);
            if constexpr (WORDS == 2) {
                Sort(storage.sort).Sort(keys, at);
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < ITEMS; k++) keys[k] = at[k] < columns ? key_of(elements[at[k]], 1) : LAST_KEY;
            }
            Sort(storage.sort).SortBlockedToStriped(keys, at);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const u32 i = k * THREADS + threadIdx.x;
                if (i < limit) {
                    if (places != nullptr) places[row * limit + i] = at[k];
                    if (values != nullptr) values[row * limit + i] = elements[at[k]];
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
