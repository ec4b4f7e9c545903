// Rows in the registers of a team of threads. Follows the prelude, warp.cuh and extremes.cuh. The code of a row follows. The
// host defines Index (i32 or i64), RANK (axes of the row index), OPERANDS, TEAM (threads per row, a power of 2), BLOCK, WIDTH
// (elements per load), PACKS (per thread), FULL (packs that every thread has), FOLDS, and RESIDENT (blocks per
// multiprocessor).
//
// Thread `rank` of a team holds the packs rank, rank + TEAM, ... of its row. The row's length alone determines the
// assignment, and so the order of combination.

namespace cuprum {

static_assert(TEAM <= 32 || TEAM == BLOCK, "teams of several warps meet at the block's barrier");
constexpr int ELEMENTS = PACKS * WIDTH, WARPS = TEAM > 32 ? TEAM / 32 : 1;
using OperandOffsets = Offsets<Index, OPERANDS>;

// Totals of the warps of a team, for each reduction. Raw bytes, because numbers may have a constructor, which shared memory
// does not allow.
struct Scratch {
    struct Totals {
        alignas(16) unsigned char bytes[WARPS * 16];
    };
    Totals at[FOLDS];
};

// Loads a pack of read-only data, so that the load may be moved before stores.
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

// Loads this thread's elements of the row at `from`.
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

// This thread's partial results of a reduction, in several independent chains to hide latency.
template <class Fold> struct AccumulatorChains {
    using Acc = typename Fold::Acc;
    static constexpr int COUNT = ELEMENTS < 4 ? ELEMENTS : 4;
    Acc at[COUNT];
    __device__ AccumulatorChains() {
        #pragma unroll
        for (int c = 0; c < COUNT; c++) at[c] = Fold::identity();
    }
    template <class T> __device__ void accumulate(int e, const T& x) { at[e % COUNT] = Fold::combine(at[e % COUNT], Fold::value(x)); }
    __device__ Acc total() const {
        Acc acc = at[0];
        #pragma unroll
        for (int c = 1; c < COUNT; c++) acc = Fold::combine(acc, at[c]);
        return acc;
    }
};

// Combines the partial results of a team, in each of its threads. All threads of the block call this.
template <class Fold> __device__ inline typename Fold::Acc team_total(typename Fold::Acc acc, Scratch::Totals& totals) {
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
