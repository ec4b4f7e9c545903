// Reductions row by row. The host defines TEAM: threads that share a row, a power of 2 up to 32, or 256. WIDTH is 0 where the
// reduced axis is not flat.

namespace cuprum {

// Element `j` of the row at `row`.
__device__ inline Result element_of(const Params& p, const Place& row, const Reduced& reduced, Index j) {
#if WIDTH > 0
    return compute(p, load_along(p, row, j)).r0;
#else
    return compute(p, load(p, row + reduced.offsets(j))).r0;
#endif
}

// A thread's share of elements begin..end of a row.
__device__ inline Acc share(const Params& p, const Place& row, const Reduced& reduced, Index begin, Index end, int rank) {
    // What a thread begins with: the identity, or an element where combining it twice changes nothing.
    Acc first;
    if constexpr (Reduction::idempotent) first = Reduction::value(element_of(p, row, reduced, begin), begin);
    else first = Reduction::identity();
#if WIDTH > 1
    // Several chains of combination, so that one does not wait for the other.
    constexpr int CHAINS = WIDTH < 4 ? WIDTH : 4;
    constexpr Index STEP = TEAM * WIDTH;
    Acc chain[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; c++) chain[c] = first;
    const Index whole = begin + (end - begin) / WIDTH * WIDTH;
    Index j = begin + rank * WIDTH;
    for (; j + (UNROLL - 1) * STEP < whole; j += UNROLL * STEP) {
        Values values[UNROLL][WIDTH];
        #pragma unroll
        for (int u = 0; u < UNROLL; u++) load_pack<WIDTH>(p, row, j + u * STEP, values[u]);
        Noticed noticed = {};
#ifdef LEAVES
        Result together[UNROLL * WIDTH];
        #pragma unroll
        for (int k = 0; k < UNROLL * WIDTH; k++) together[k] = evaluate(p, values[k / WIDTH][k % WIDTH], noticed).r0;
        chain[0] = Reduction::combine(chain[0], leaf(together));
#else
        #pragma unroll
        for (int k = 0; k < UNROLL * WIDTH; k++) {
            Reduction::take(chain[k % CHAINS], evaluate(p, values[k / WIDTH][k % WIDTH], noticed).r0, j + k / WIDTH * STEP + k % WIDTH);
        }
#endif
        report(p, noticed);
    }
    for (; j < whole; j += STEP) {
        Values values[WIDTH];
        load_pack<WIDTH>(p, row, j, values);
#ifdef LEAVES
        Result together[WIDTH];
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) together[k] = compute(p, values[k]).r0;
        chain[0] = Reduction::combine(chain[0], leaf(together));
#else
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) Reduction::take(chain[k % CHAINS], compute(p, values[k]).r0, j + k);
#endif
    }
    #pragma unroll
    for (int c = CHAINS / 2; c > 0; c /= 2) {
        #pragma unroll
        for (int k = 0; k < c; k++) chain[k] = Reduction::combine(chain[k], chain[k + c]);
    }
    Acc acc = chain[0];
    for (j = whole + rank; j < end; j += TEAM) Reduction::take(acc, element_of(p, row, reduced, j), j);
#else
    Acc acc = first;
    #pragma unroll 4
    for (Index j = begin + rank; j < end; j += TEAM) Reduction::take(acc, element_of(p, row, reduced, j), j);
#endif
    return acc;
}

// Raw bytes, because Acc may have a constructor and shared memory may not.
struct Shared {
    alignas(32) unsigned char bytes[THREADS * sizeof(Acc)];
    __device__ Acc& at(int i) { return reinterpret_cast<Acc*>(bytes)[i]; }
};

// The team's shares together, in its first thread. All threads of the block call.
__device__ inline Acc team_total(Shared& s, Acc acc) {
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

// Rows: a team each, or `splits` blocks each (then TEAM is a block and `parts` has rows * splits slots).
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_rows(const __grid_constant__ Params p, const __grid_constant__ Kept kept, const __grid_constant__ Reduced reduced,
            Out* __restrict__ out, Slot<Acc>* parts, u32* tickets, u64 rows, u64 length, u32 splits) {
    __shared__ Shared s;
    constexpr int TEAMS = THREADS / TEAM;
    constexpr u64 UNIT = WIDTH > 1 ? WIDTH : 1;
    const int rank = threadIdx.x % TEAM;
    const u64 items = rows * splits;
    for (u64 base = static_cast<u64>(blockIdx.x) * TEAMS; base < items; base += static_cast<u64>(gridDim.x) * TEAMS) {
        // Teams past the end repeat the last item, for all threads of a warp take part in shuffles.
        const u64 mine = base + threadIdx.x / TEAM, item = mine < items ? mine : items - 1;
        // Only blocks share rows; a long division would cost a short row more than its elements.
        u64 row = item, begin = 0, end = length;
        if (TEAM == THREADS && splits > 1) {
            row = item / splits;
            const u64 split = item % splits, units = length / UNIT;
            begin = units * split / splits * UNIT;
            if (split + 1 < splits) end = units * (split + 1) / splits * UNIT;
        }
        const Place place = kept.offsets(static_cast<Index>(row));
        const Acc total = team_total(s, share(p, place, reduced, static_cast<Index>(begin), static_cast<Index>(end), rank));
        if (splits == 1) {
            if (rank == 0 && mine < items) out[row] = Reduction::finish(total);
            continue;
        }
        if (threadIdx.x == 0) parts[item].put(total);
        if (is_last(tickets + row, splits)) {
            const Slot<Acc>* of_row = parts + row * splits;
            Acc acc = of_row[threadIdx.x < splits ? threadIdx.x : 0].get();
            for (u32 i = threadIdx.x + THREADS; i < splits; i += THREADS) acc = Reduction::combine(acc, of_row[i].get());
            // Threads without a part stay out: an identity would do for some operations only.
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
