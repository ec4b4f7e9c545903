// Row reductions: each row is reduced along its elements. Requires reduce.cuh. The host defines TEAM, the number of threads that share a
// row: a power of 2 up to 32, or 256. WIDTH, the number of elements per load, is 0 if the reduced axis is not contiguous.

namespace cuprum {

// Returns the value of the expression at element `j` of the row whose first element has the input offsets `row`.
__device__ inline Result row_element(const Params& p, const InputOffsets& row, const ReducedAxes& reduced, Index j) {
#if WIDTH > 0
    return compute(p, load_along(p, row, j)).r0;
#else
    return compute(p, load(p, row + reduced.offsets(j))).r0;
#endif
}

// Number of rows that a team reduces at once. Teams (threads that share a row) of up to 8 threads take two rows, so that more loads are in
// flight.
#ifdef HAS_ACC_OF_SEVERAL
constexpr int ROWS_PER_TEAM = 1;
#else
constexpr int ROWS_PER_TEAM = TEAM <= 8 ? 2 : 1;
#endif

// For each of the `rows` of a team (the threads that share rows), reduces this thread's share of the elements begin..end to an accumulator
// in `acc`. `rank` is the thread's index in its team.
__device__ inline void reduce_thread_share(const Params& p, const InputOffsets (&rows)[ROWS_PER_TEAM], const ReducedAxes& reduced, Index begin, Index end, int rank, Acc (&acc)[ROWS_PER_TEAM]) {
    // Starts with the identity. Idempotent reductions may have no identity, so they start with an element of the row. Combining this
    // element again has no effect.
    #pragma unroll
    for (int r = 0; r < ROWS_PER_TEAM; r++) {
        if constexpr (Reduction::idempotent) acc[r] = Reduction::value(row_element(p, rows[r], reduced, begin), begin);
        else acc[r] = Reduction::identity();
    }
#if WIDTH > 1
    // Several independent accumulators hide the latency of the combination.
    constexpr int CHAINS = WIDTH < 4 ? WIDTH : 4, STEPS = UNROLL / ROWS_PER_TEAM;
    constexpr Index STEP = TEAM * WIDTH;
    Acc chains[ROWS_PER_TEAM][CHAINS];
    #pragma unroll
    for (int k = 0; k < ROWS_PER_TEAM * CHAINS; k++) chains[k / CHAINS][k % CHAINS] = acc[k / CHAINS];
    const Index whole = begin + (end - begin) / WIDTH * WIDTH;
    Index j = begin + rank * WIDTH;
    for (; j + (STEPS - 1) * STEP < whole; j += STEPS * STEP) {
        Values values[ROWS_PER_TEAM][STEPS][WIDTH];
        #pragma unroll
        for (int k = 0; k < ROWS_PER_TEAM * STEPS; k++) load_pack<WIDTH>(p, rows[k / STEPS], j + k % STEPS * STEP, values[k / STEPS][k % STEPS]);
        BadIndex bad_index = {};
#ifdef HAS_ACC_OF_SEVERAL
        Result together[STEPS * WIDTH];
        #pragma unroll
        for (int k = 0; k < STEPS * WIDTH; k++) together[k] = evaluate(p, values[0][k / WIDTH][k % WIDTH], bad_index).r0;
        chains[0][0] = Reduction::combine(chains[0][0], acc_of_several(together));
#else
        #pragma unroll
        for (int r = 0; r < ROWS_PER_TEAM; r++) {
            #pragma unroll
            for (int k = 0; k < STEPS * WIDTH; k++) {
                const Result x = evaluate(p, values[r][k / WIDTH][k % WIDTH], bad_index).r0;
                Reduction::accumulate(chains[r][k % CHAINS], x, j + k / WIDTH * STEP + k % WIDTH);
            }
        }
#endif
        report(p, bad_index);
    }
    for (; j < whole; j += STEP) {
        Values values[ROWS_PER_TEAM][WIDTH];
        #pragma unroll
        for (int r = 0; r < ROWS_PER_TEAM; r++) load_pack<WIDTH>(p, rows[r], j, values[r]);
#ifdef HAS_ACC_OF_SEVERAL
        Result together[WIDTH];
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) together[k] = compute(p, values[0][k]).r0;
        chains[0][0] = Reduction::combine(chains[0][0], acc_of_several(together));
#else
        #pragma unroll
        for (int k = 0; k < ROWS_PER_TEAM * WIDTH; k++) {
            Reduction::accumulate(chains[k / WIDTH][k % WIDTH % CHAINS], compute(p, values[k / WIDTH][k % WIDTH]).r0, j + k % WIDTH);
        }
#endif
    }
    #pragma unroll
    for (int r = 0; r < ROWS_PER_TEAM; r++) {
        #pragma unroll
        for (int c = CHAINS / 2; c > 0; c /= 2) {
            #pragma unroll
            for (int k = 0; k < c; k++) chains[r][k] = Reduction::combine(chains[r][k], chains[r][k + c]);
        }
        acc[r] = chains[r][0];
    }
    begin = whole;
#endif
    #pragma unroll 4
    for (Index i = begin + rank; i < end; i += TEAM) {
        #pragma unroll
        for (int r = 0; r < ROWS_PER_TEAM; r++) Reduction::accumulate(acc[r], row_element(p, rows[r], reduced, i), i);
    }
}

// Shared memory for one accumulator per thread. The memory is raw bytes, because Acc may have a constructor, which shared memory does not
// allow.
struct BlockAccumulators {
    alignas(32) unsigned char bytes[THREADS * sizeof(Acc)];
    __device__ Acc& at(int i) { return reinterpret_cast<Acc*>(bytes)[i]; }
};

// Combines the partial results `acc` of the threads that share a row (a team). Only the team's first thread receives the total. All threads
// of the block must call this function.
__device__ inline Acc combine_in_team(BlockAccumulators& s, Acc acc) {
    #pragma unroll
    for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) acc = Reduction::combine(acc, shuffle_down(acc, d));
    if constexpr (TEAM > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) s.at(threadIdx.x / 32) = acc;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < THREADS / 32; w++) acc = Reduction::combine(acc, s.at(w));
        }
    }
    return acc;
}

// Reduces each row with one team of threads, or with `splits` blocks. With several blocks per row, a team is a whole block, and `parts` has
// rows * splits slots for partial results.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_rows(const __grid_constant__ Params p, const __grid_constant__ KeptAxes kept, const __grid_constant__ ReducedAxes reduced,
            Out* __restrict__ out, Slot<Acc>* parts, u32* tickets, u64 rows, u64 length, u32 splits) {
    __shared__ BlockAccumulators s;
    constexpr int TEAMS = THREADS / TEAM;
    constexpr u64 UNIT = WIDTH > 1 ? WIDTH : 1;
    const int rank = threadIdx.x % TEAM;
    const u64 items = rows * splits;
    for (u64 base = static_cast<u64>(blockIdx.x) * TEAMS * ROWS_PER_TEAM; base < items; base += static_cast<u64>(gridDim.x) * TEAMS * ROWS_PER_TEAM) {
        InputOffsets row_offsets[ROWS_PER_TEAM];
        Acc totals[ROWS_PER_TEAM];
        // A row is split among blocks only if the team, the threads that share a row, is a whole block. The constant condition on TEAM lets
        // smaller teams skip the slow 64-bit integer divisions below.
        u64 row = base, begin = 0, end = length;
        if (TEAM == THREADS && splits > 1) {
            row = base / splits;
            const u64 split = base % splits, units = length / UNIT;
            begin = units * split / splits * UNIT;
            if (split + 1 < splits) end = units * (split + 1) / splits * UNIT;
        }
        #pragma unroll
        for (int r = 0; r < ROWS_PER_TEAM; r++) {
            // Teams past the last row repeat the last row, because all threads of a warp must take part in the shuffles.
            const u64 mine = row + r * TEAMS + threadIdx.x / TEAM;
            row_offsets[r] = kept.offsets(static_cast<Index>(mine < rows ? mine : rows - 1));
        }
        reduce_thread_share(p, row_offsets, reduced, static_cast<Index>(begin), static_cast<Index>(end), rank, totals);
        #pragma unroll
        for (int r = 0; r < ROWS_PER_TEAM; r++) {
            totals[r] = combine_in_team(s, totals[r]);
            const u64 mine = row + r * TEAMS + threadIdx.x / TEAM;
            if (splits == 1 && rank == 0 && mine < rows) out[mine] = Reduction::finish(totals[r]);
        }
        if (splits == 1) continue;
        if (threadIdx.x == 0) parts[base].store_volatile(totals[0]);
        if (is_last_block(tickets + row, splits)) {
            const Slot<Acc>* of_row = parts + row * splits;
            Acc acc = of_row[threadIdx.x < splits ? threadIdx.x : 0].load_volatile();
            for (u32 i = threadIdx.x + THREADS; i < splits; i += THREADS) acc = Reduction::combine(acc, of_row[i].load_volatile());
            // The tree reduction combines only threads that have a partial result, because not every reduction has an identity.
            s.at(threadIdx.x) = acc;
            __syncthreads();
            const int live = splits < THREADS ? splits : THREADS;
            for (int half = THREADS / 2; half > 0; half /= 2) {
                if (threadIdx.x < half && threadIdx.x + half < live) s.at(threadIdx.x) = Reduction::combine(s.at(threadIdx.x), s.at(threadIdx.x + half));
                __syncthreads();
            }
            if (threadIdx.x == 0) out[row] = Reduction::finish(s.at(0));
        }
        __syncthreads();
    }
}

}  // namespace cuprum
