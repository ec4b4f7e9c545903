// Column reductions: each column is reduced over all rows. Requires reduce.cuh.
//
// A block has LANES threads (defined by the host) along the columns, and each thread takes WIDTH adjacent columns. The number of columns
// is a multiple of WIDTH. The rows are shared by THREADS / LANES threads of a block and by `splits` blocks.

namespace cuprum {

constexpr int THREAD_ROWS = THREADS / LANES;

struct BlockAccumulators {
    alignas(32) unsigned char bytes[THREADS * WIDTH * sizeof(Acc)];
    __device__ Acc& at(int k, int x, int y) { return reinterpret_cast<Acc*>(bytes)[(k * THREAD_ROWS + y) * LANES + x]; }
};

// Combines the partial results of all threads that reduce the same columns, which have equal `x`. The threads with `y` == 0 receive the
// totals in `acc`.
__device__ inline void combine_thread_rows(BlockAccumulators& s, Acc (&acc)[WIDTH], int x, int y) {
    #pragma unroll
    for (int half = THREAD_ROWS / 2; half > 0; half /= 2) {
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (y >= half && y < 2 * half) s.at(k, x, y) = acc[k];
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (y < half) acc[k] = Reduction::combine(acc[k], s.at(k, x, y + half));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_columns(const __grid_constant__ Params p, const __grid_constant__ KeptAxes kept, const __grid_constant__ ReducedAxes reduced,
               Out* __restrict__ out, Slot<Acc>* parts, u32* tickets, u64 columns, u64 length, u32 splits) {
    __shared__ BlockAccumulators s;
    const int x = threadIdx.x % LANES, y = threadIdx.x / LANES;
    const u64 groups = (columns + LANES * WIDTH - 1) / (LANES * WIDTH);
    for (u64 item = blockIdx.x; item < groups * splits; item += gridDim.x) {
        const u64 group = item / splits, split = item % splits;
        const u64 mine = (group * LANES + x) * WIDTH, column = mine < columns ? mine : columns - WIDTH;
        const Index begin = static_cast<Index>(length * split / splits), end = static_cast<Index>(length * (split + 1) / splits);
        const InputOffsets column_offsets = kept.offsets(static_cast<Index>(column));
        Acc acc[WIDTH];
        if constexpr (Reduction::idempotent) {
            Values values[WIDTH];
            load_pack<WIDTH>(p, column_offsets + reduced.offsets(begin), Index(0), values);
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) acc[k] = Reduction::value(compute(p, values[k]).r0, begin);
        } else {
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) acc[k] = Reduction::identity();
        }
        Index j = begin + y;
        for (; j + (UNROLL - 1) * THREAD_ROWS < end; j += UNROLL * THREAD_ROWS) {
            Values values[UNROLL][WIDTH];
            #pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                load_pack<WIDTH>(p, column_offsets + reduced.offsets(j + u * THREAD_ROWS), Index(0), values[u]);
            }
            BadIndex bad_index = {};
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) {
#ifdef HAS_ACC_OF_SEVERAL
                Result together[UNROLL];
                #pragma unroll
                for (int u = 0; u < UNROLL; u++) together[u] = evaluate(p, values[u][k], bad_index).r0;
                acc[k] = Reduction::combine(acc[k], acc_of_several(together));
#else
                #pragma unroll
                for (int u = 0; u < UNROLL; u++) {
                    Reduction::accumulate(acc[k], evaluate(p, values[u][k], bad_index).r0, j + u * THREAD_ROWS);
                }
#endif
            }
            report(p, bad_index);
        }
        for (; j < end; j += THREAD_ROWS) {
            Values values[WIDTH];
            load_pack<WIDTH>(p, column_offsets + reduced.offsets(j), Index(0), values);
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) Reduction::accumulate(acc[k], compute(p, values[k]).r0, j);
        }
        combine_thread_rows(s, acc, x, y);
        if (splits > 1) {
            Slot<Acc>* of_group = parts + group * splits * (LANES * WIDTH) + x;
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                if (y == 0) of_group[(split * WIDTH + k) * LANES].store_volatile(acc[k]);
            }
            if (!is_last_block(tickets + group, splits)) continue;
            const u32 first = y < splits ? y : 0;
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                acc[k] = of_group[(static_cast<u64>(first) * WIDTH + k) * LANES].load_volatile();
                if constexpr (!Reduction::idempotent) {
                    if (y >= splits) acc[k] = Reduction::identity();
                }
                for (u32 part = y + THREAD_ROWS; part < splits; part += THREAD_ROWS) {
                    acc[k] = Reduction::combine(acc[k], of_group[(static_cast<u64>(part) * WIDTH + k) * LANES].load_volatile());
                }
            }
            combine_thread_rows(s, acc, x, y);
        }
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (y == 0 && mine < columns) out[mine + k] = Reduction::finish(acc[k]);
        }
    }
}

}  // namespace cuprum
