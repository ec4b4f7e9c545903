// The loop by which the threads of a block visit a range of a row's elements.

namespace cuprum {

// Calls `use(element, index)` for the elements `row[begin..end]`. The block has `Threads` threads, each with `Unroll` loads in flight.
template <int Threads, int Unroll = 8, class T, class Use>
__device__ inline void for_each_in_block_range(const T* row, i64 begin, i64 end, const Use& use) {
    i64 i = begin + threadIdx.x;
    for (; i + (Unroll - 1) * Threads < end; i += Unroll * Threads) {
        T x[Unroll];
        #pragma unroll
        for (int k = 0; k < Unroll; k++) x[k] = row[i + k * Threads];
        #pragma unroll
        for (int k = 0; k < Unroll; k++) use(x[k], i + k * Threads);
    }
    for (; i < end; i += Threads) use(row[i], i);
}

}  // namespace cuprum
