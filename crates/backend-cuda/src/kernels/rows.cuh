// Functions by which a team of threads holds a row in registers and reduces the row. Requires the prelude, warp.cuh and type_limits.cuh.
//
// The host defines:
//   Index     i32 or i64, the type of offsets
//   RANK      number of axes that enumerate the rows
//   OPERANDS  number of inputs and outputs
//   TEAM      threads per row, a power of 2
//   BLOCK     threads per block
//   WIDTH     elements per pack, which is loaded at once
//   PACKS     maximum number of packs per thread
//   FULL      number of packs that every thread of a team has
//   FOLDS     number of reductions in the expression
//   RESIDENT  minimum number of resident blocks per multiprocessor
//
// Thread `rank` of a team holds the packs rank, rank + TEAM, ... of its row. The length of the row alone determines this assignment, and
// therefore the order of combination.

namespace cuprum {

static_assert(TEAM <= 32 || TEAM == BLOCK, "teams of several warps meet at the block's barrier");
constexpr int ELEMENTS = PACKS * WIDTH, WARPS = TEAM > 32 ? TEAM / 32 : 1;
using OperandOffsets = Offsets<Index, OPERANDS>;

// For each reduction of the expression, shared memory for one total per warp of a team, the threads that share a row. The memory is raw
// bytes, because accumulators may have a constructor, which shared memory does not allow.
struct TeamScratch {
    struct WarpTotals {
        alignas(16) unsigned char bytes[WARPS * 16];
    };
    WarpTotals at[FOLDS];
};

// Loads WIDTH elements with `ld.global.nc`, which the compiler may move before stores. `Aligned` is whether `from` is aligned for accesses
// of up to 16 bytes. Otherwise the elements are loaded one by one.
template <bool Aligned, class T> __device__ inline Pack<T, WIDTH> load_read_only(const T* from) {
    constexpr int COUNT = Aligned ? 1 : WIDTH;
    using P = Pack<T, WIDTH / COUNT>;
    using W = typename AccessWord<alignof(P)>::type;
    Pack<T, WIDTH> out;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(out) / sizeof(W)); k++) {
        const W word = __ldg(reinterpret_cast<const W*>(from) + k);
        memcpy(reinterpret_cast<char*>(&out) + k * sizeof(W), &word, sizeof(W));
    }
    return out;
}

// Loads this thread's elements of the row `from[0..length]` into `out`. `rank` is the thread's index among the threads that share the row
// (its team).
template <bool Aligned, class T> __device__ inline void load_row(const T* from, int rank, int length, T (&out)[ELEMENTS]) {
    #pragma unroll
    for (int n = 0; n < PACKS; n++) {
        const int i = (n * TEAM + rank) * WIDTH;
        if (n < FULL || i < length) {
            const Pack<T, WIDTH> pack = load_read_only<Aligned>(from + i);
            #pragma unroll
            for (int k = 0; k < WIDTH; k++) out[n * WIDTH + k] = pack.at[k];
        }
    }
}

// A thread's partial results of one reduction: several independent accumulators, so that their latencies overlap.
template <class Fold> struct AccumulatorChains {
    using Acc = typename Fold::Acc;
    static constexpr int COUNT = ELEMENTS < 4 ? ELEMENTS : 4;
    Acc at[COUNT];
    __device__ AccumulatorChains() {
        #pragma unroll
        for (int c = 0; c < COUNT; c++) at[c] = Fold::identity();
    }
    template <class T> __device__ void accumulate(int e, const T& x) { at[e % COUNT] = Fold::combine(at[e % COUNT], Fold::value(x)); }
    __device__ Acc combine_chains() const {
        Acc acc = at[0];
        #pragma unroll
        for (int c = 1; c < COUNT; c++) acc = Fold::combine(acc, at[c]);
        return acc;
    }
};

// Returns the combination of the partial results `acc` of the threads that share a row (a team), in every thread of the team. All threads
// of the block must call this function.
template <class Fold> __device__ inline typename Fold::Acc combine_in_team(typename Fold::Acc acc, TeamScratch::WarpTotals& totals) {
    using Acc = typename Fold::Acc;
    constexpr int LANES = TEAM < 32 ? TEAM : 32;
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2) acc = Fold::combine(acc, shuffle_down(acc, d));
    if constexpr (TEAM > 32) {
        Acc* of_warps = reinterpret_cast<Acc*>(totals.bytes);
        if (lane == 0) of_warps[threadIdx.x / 32] = acc;
        __syncthreads();
        acc = of_warps[lane % WARPS];
        #pragma unroll
        for (int d = WARPS / 2; d > 0; d /= 2) acc = Fold::combine(acc, shuffle_down(acc, d));
    }
    return shuffle(acc, lane / LANES * LANES);
}

}  // namespace cuprum
