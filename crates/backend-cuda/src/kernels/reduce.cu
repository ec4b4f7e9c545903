// Reductions over any axes, after the prelude, an element's code and warp.cuh. The host defines Index (i32 or i64),
// KEPT_RANK and REDUCED_RANK, TEAM (threads that share a row: 1, 8, 32 or 256), WIDTH (elements loaded together; 0 if the
// reduced axis is not flat), Out, and `struct Reduction`: Acc, idempotent, identity(), value(x, index), combine(a, b), finish(a).
//
// Every order of combination follows from the shape alone, so results do not depend on timing. What several blocks share
// is finished by the last of them, in the blocks' order.

using namespace cuprum;

using Acc = Reduction::Acc;
using Kept = Axes<Index, KEPT_RANK, INPUTS>;
using Reduced = Axes<Index, REDUCED_RANK, INPUTS>;
using Place = Offsets<Index, INPUTS>;

constexpr int THREADS = 256;

__device__ inline Acc at_offsets(const Params& p, const Place& place, u64 index) {
    return Reduction::value(compute(p, load(p, place)).r0, static_cast<i64>(index));
}

// Element `j` of the row at `row`.
__device__ inline Acc element_of(const Params& p, const Place& row, const Reduced& reduced, u64 j) {
#if WIDTH > 0
    return Reduction::value(compute(p, load_along(p, row, static_cast<Index>(j))).r0, static_cast<i64>(j));
#else
    return at_offsets(p, row + reduced.offsets(static_cast<Index>(j)), j);
#endif
}

// What a thread begins with: the identity, or an element where combining it twice changes nothing.
__device__ inline Acc begin_with(const Params& p, const Place& row, const Reduced& reduced, u64 j) {
    if constexpr (Reduction::idempotent) return element_of(p, row, reduced, j);
    else return Reduction::identity();
}

// A thread's share of elements begin..end of a row.
__device__ inline Acc share(const Params& p, const Place& row, const Reduced& reduced, u64 begin, u64 end, int rank) {
#if WIDTH > 1
    // Several chains of combination, so that one does not wait for the other.
    constexpr int CHAINS = WIDTH < 4 ? WIDTH : 4;
    Acc chain[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; c++) chain[c] = begin_with(p, row, reduced, begin);
    const u64 whole = begin + (end - begin) / WIDTH * WIDTH;
    #pragma unroll 2
    for (u64 j = begin + rank * WIDTH; j < whole; j += TEAM * WIDTH) {
        Values values[WIDTH];
        load_pack<WIDTH>(p, row, static_cast<Index>(j), values);
        #pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            const Acc x = Reduction::value(compute(p, values[k]).r0, static_cast<i64>(j + k));
            chain[k % CHAINS] = Reduction::combine(chain[k % CHAINS], x);
        }
    }
    #pragma unroll
    for (int c = CHAINS / 2; c > 0; c /= 2) {
        #pragma unroll
        for (int k = 0; k < c; k++) chain[k] = Reduction::combine(chain[k], chain[k + c]);
    }
    Acc acc = chain[0];
    for (u64 j = whole + rank; j < end; j += TEAM) acc = Reduction::combine(acc, element_of(p, row, reduced, j));
#else
    Acc acc = begin_with(p, row, reduced, begin);
    #pragma unroll 4
    for (u64 j = begin + rank; j < end; j += TEAM) acc = Reduction::combine(acc, element_of(p, row, reduced, j));
#endif
    return acc;
}

// Raw bytes, because Acc may have a constructor and shared memory may not.
struct Shared {
    alignas(32) unsigned char bytes[THREADS * sizeof(Acc)];
    u32 ticket;
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

// Whether this block is the last of `splits` to arrive with its part. All threads call, after the parts are written.
__device__ inline bool is_last(Shared& s, u32* ticket, u32 splits) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) s.ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    __threadfence();
    return s.ticket == splits - 1;
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
        const u64 row = item / splits, split = item % splits, units = length / UNIT;
        const u64 begin = units * split / splits * UNIT, end = split + 1 == splits ? length : units * (split + 1) / splits * UNIT;
        const Acc total = team_total(s, share(p, kept.offsets(static_cast<Index>(row)), reduced, begin, end, rank));
        if (splits == 1) {
            if (rank == 0 && mine < items) out[row] = Reduction::finish(total);
            continue;
        }
        if (threadIdx.x == 0) parts[item].put(total);
        if (is_last(s, tickets + row, splits)) {
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

// Columns: 32 neighbours of the kept axes a block, 8 threads down each, `splits` blocks down the reduced axes.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_columns(const __grid_constant__ Params p, const __grid_constant__ Kept kept, const __grid_constant__ Reduced reduced,
               Out* __restrict__ out, Slot<Acc>* parts, u32* tickets, u64 columns, u64 length, u32 splits) {
    __shared__ Shared s;
    constexpr int DOWN = THREADS / 32;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const u64 groups = (columns + 31) / 32;
    for (u64 item = blockIdx.x; item < groups * splits; item += gridDim.x) {
        const u64 group = item / splits, split = item % splits;
        const u64 mine = group * 32 + x, column = mine < columns ? mine : columns - 1;
        const u64 begin = length * split / splits, end = length * (split + 1) / splits;
        const Place place = kept.offsets(static_cast<Index>(column));
        Acc acc = Acc();
        if constexpr (Reduction::idempotent) acc = at_offsets(p, place + reduced.offsets(static_cast<Index>(begin)), begin);
        else acc = Reduction::identity();
        #pragma unroll 4
        for (u64 j = begin + y; j < end; j += DOWN) {
            acc = Reduction::combine(acc, at_offsets(p, place + reduced.offsets(static_cast<Index>(j)), j));
        }
        s.at(threadIdx.x) = acc;
        __syncthreads();
        if (y == 0) {
            for (int k = 1; k < DOWN; k++) acc = Reduction::combine(acc, s.at(k * 32 + x));
            if (splits > 1) parts[(group * splits + split) * 32 + x].put(acc);
            else if (mine < columns) out[column] = Reduction::finish(acc);
        }
        if (splits > 1 && is_last(s, tickets + group, splits)) {
            const Slot<Acc>* of_group = parts + group * splits * 32;
            if (y == 0) {
                acc = of_group[x].get();
                for (u32 k = 1; k < splits; k++) acc = Reduction::combine(acc, of_group[static_cast<u64>(k) * 32 + x].get());
                if (mine < columns) out[column] = Reduction::finish(acc);
            }
        }
        __syncthreads();
    }
}
