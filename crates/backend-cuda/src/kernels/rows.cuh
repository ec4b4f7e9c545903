// Rows that a team of threads holds in registers. After the prelude, warp.cuh and extremes.cuh; before the code of a row. The host defines Index (i32 or
// i64), RANK (axes that number rows), OPERANDS, TEAM (threads of a row: a power of 2), BLOCK, WIDTH (elements loaded together), PACKS (of a
// thread), FULL (of those, how many every thread has), FOLDS, and RESIDENT (blocks of a multiprocessor).
//
// Thread `rank` of a team holds the packs rank, rank + TEAM, ... of its row. Which elements these are follows from the row's length alone, so that the
// order of combination does too.

namespace cuprum {

static_assert(TEAM <= 32 || TEAM == BLOCK, "teams of several warps meet at the block's barrier");
constexpr int ELEMENTS = PACKS * WIDTH, WARPS = TEAM > 32 ? TEAM / 32 : 1;
using Place = Offsets<Index, OPERANDS>;

// Totals of the warps of a team, for each reduction. Raw bytes, because numbers may have a constructor and shared memory may not.
struct Scratch {
    struct Totals {
        alignas(16) unsigned char bytes[WARPS * 16];
    };
    Totals at[FOLDS];
};

// A pack of what no thread writes meanwhile, so that the load may pass stores before it.
template <bool Aligned, class T> __device__ inline Pack<T, WIDTH> load_read_only(const T* from) {
    constexpr int COUNT = Aligned ? 1 : WIDTH;
    using P = Pack<T, WIDTH / COUNT>;
    using W = typename Word<alignof(P)>::type;
    Pack<T, WIDTH> out;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(out) / sizeof(W)); k++) {
        const W word = __ldg(reinterpret_cast<const W*>(from) + k);
        memcpy(reinterpret_cast<char*>(&out) + k * sizeof(W), &word, sizeof(W));
    }
    return out;
}

// A thread's elements of the row at `from`.
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

// A thread's share of a reduction, in several chains, so that one does not wait for the other.
template <class Fold> struct Chains {
    using Acc = typename Fold::Acc;
    static constexpr int COUNT = ELEMENTS < 4 ? ELEMENTS : 4;
    Acc at[COUNT];
    __device__ Chains() {
        #pragma unroll
        for (int c = 0; c < COUNT; c++) at[c] = Fold::identity();
    }
    template <class T> __device__ void take(int e, const T& x) { at[e % COUNT] = Fold::combine(at[e % COUNT], Fold::value(x)); }
    __device__ Acc total() const {
        Acc acc = at[0];
        #pragma unroll
        for (int c = 1; c < COUNT; c++) acc = Fold::combine(acc, at[c]);
        return acc;
    }
};

// The team's shares together, in each of its threads. All threads of the block call.
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
