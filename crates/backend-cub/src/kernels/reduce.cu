// Reductions along a contiguous axis: of all elements, of a few long rows, or of many rows. Requires block.cuh.
//
// The host defines `Index`, `Fold`, `Out`, `WIDTH` (elements that a thread loads at once) and `RANK` (number of axes of the rows).
//
// The order in which elements are combined depends only on the row length and WIDTH, which is 1 if loads are not aligned. It does not
// depend on the number of blocks, the device or timing. There are no float atomics.

namespace cuprum {

using Acc = Fold::Acc;
constexpr int THREADS = 256;
// Vector loads in flight per thread and input: 64 bytes for one or two inputs, 32 for more.
constexpr int UNROLL = INPUTS > 2 ? 2 : 4;

using RowOffsets = Offsets<Index, INPUTS>;
using RowAxes = Axes<Index, RANK, INPUTS>;

// Folds elements of N rows, from index `begin` of each row on, into the accumulators `totals` of this thread. Each of `Count` threads folds
// `Unroll` vectors per row.
template <int Count, int Unroll, int N>
__device__ inline void fold_vectors(const Params& p, const RowOffsets (&rows)[N], Index begin, int thread, Acc (&totals)[N]) {
    Values values[N][Unroll][WIDTH];
    #pragma unroll
    for (int r = 0; r < N; r++) {
        #pragma unroll
        for (int u = 0; u < Unroll; u++) load_pack<WIDTH>(p, rows[r], begin + (u * Count + thread) * WIDTH, values[r][u]);
    }
    BadIndex bad_index = {};
    #pragma unroll
    for (int r = 0; r < N; r++) {
        Result results[Unroll * WIDTH];
        Index indices[Unroll * WIDTH];
        #pragma unroll
        for (int k = 0; k < Unroll * WIDTH; k++) {
            results[k] = evaluate(p, values[r][k / WIDTH][k % WIDTH], bad_index).r0;
            indices[k] = begin + (k / WIDTH * Count + thread) * WIDTH + k % WIDTH;
        }
        fold_elements<Fold>(totals[r], results, indices);
    }
    report(p, bad_index);
}

// Reduces this thread's share of the elements begin..end of N rows. `Count` threads share a row, and `thread` is the index of this thread
// among them.
template <int Count, int Unroll, int N>
__device__ inline void reduce_thread_shares(const Params& p, const RowOffsets (&rows)[N], Index begin, Index end, int thread, Acc (&totals)[N]) {
    #pragma unroll
    for (int r = 0; r < N; r++) totals[r] = Fold::identity();
    for (; begin + Count * Unroll * WIDTH <= end; begin += Count * Unroll * WIDTH) fold_vectors<Count, Unroll>(p, rows, begin, thread, totals);
    for (; begin + Count * WIDTH <= end; begin += Count * WIDTH) fold_vectors<Count, 1>(p, rows, begin, thread, totals);
    for (Index i = begin + thread; i < end; i += Count) {
        #pragma unroll
        for (int r = 0; r < N; r++) {
            const Result last[] = {element(p, rows[r], i)};
            const Index index[] = {i};
            fold_elements<Fold>(totals[r], last, index);
        }
    }
}

// Reduces this thread's share of the elements begin..end of one row. `Count` threads share the row, and `thread` is the index of this
// thread among them.
template <int Count, int Unroll>
__device__ inline Acc reduce_thread_share(const Params& p, const RowOffsets& row, Index begin, Index end, int thread) {
    const RowOffsets rows[] = {row};
    Acc totals[1];
    reduce_thread_shares<Count, Unroll>(p, rows, begin, end, thread, totals);
    return totals[0];
}

// Loads a value from the L2 cache. The L1 cache is not coherent with other multiprocessors.
template <class T> __device__ inline T load_from_l2(const T* from) {
    using W = typename AccessWord<alignof(T)>::type;
    T out;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(T) / sizeof(W)); k++) {
        const W word = __ldcg(reinterpret_cast<const W*>(from) + k);
        memcpy(reinterpret_cast<char*>(&out) + k * sizeof(W), &word, sizeof(W));
    }
    return out;
}

// Reduces rows in chunks of `chunk` elements. The block that finishes the last chunk of a row combines the partial results of all chunks,
// in order. The counters in `tickets`, one per row, are 0 before and after the kernel. With one chunk per row, `tickets` and `partials` are
// not used.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_chunks(Params p, RowAxes axes, Out* out, Acc* partials, u32* tickets, u32 rows, u32 chunks, Index columns, Index chunk) {
    __shared__ Acc warp_totals[THREADS / 32];
    __shared__ bool last;
    const Fold fold;
    for (u64 work = blockIdx.x; work < u64(rows) * chunks; work += gridDim.x) {
        const u32 row = static_cast<u32>(work / chunks), chunk_number = static_cast<u32>(work % chunks);
        const RowOffsets at = axes.offsets(static_cast<Index>(row));
        const Index begin = static_cast<Index>(chunk_number) * chunk;
        const Index end = columns - begin < chunk ? columns : begin + chunk;
        Acc total = reduce_block<THREADS>(warp_totals, reduce_thread_share<THREADS, UNROLL>(p, at, begin, end, threadIdx.x), fold);
        if (chunks == 1) {
            if (threadIdx.x == 0) out[row] = Fold::to_result<Out>(total);
            __syncthreads();
            continue;
        }
        if (threadIdx.x == 0) {
            partials[work] = total;
            __threadfence();
            last = atomicAdd(tickets + row, 1u) == chunks - 1;
        }
        __syncthreads();
        if (last) {
            __threadfence();
            const Acc* row_partials = partials + u64(row) * chunks;
            total = Fold::identity();
            for (u32 i = threadIdx.x; i < chunks; i += THREADS) total = fold(total, load_from_l2(row_partials + i));
            total = reduce_block<THREADS>(warp_totals, total, fold);
            if (threadIdx.x == 0) {
                out[row] = Fold::to_result<Out>(total);
                tickets[row] = 0;
            }
        }
        __syncthreads();
    }
}

#ifdef CUPRUM_ROWS

// Reduces each row by one block.
extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_block(Params p, RowAxes axes, Out* out, Index rows, Index columns) {
    __shared__ Acc warp_totals[THREADS / 32];
    for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
        const Acc share = reduce_thread_share<THREADS, UNROLL>(p, axes.offsets(row), 0, columns, threadIdx.x);
        const Acc total = reduce_block<THREADS>(warp_totals, share, Fold());
        if (threadIdx.x == 0) out[row] = Fold::to_result<Out>(total);
        __syncthreads();
    }
}

// A group of lanes often reduces a short row in one loop iteration. Each group therefore reduces two rows at a time, so that more loads are
// in flight.
constexpr int UNROLL_LANES = WIDTH > 1 ? 1 : UNROLL, ROWS_PER_LANE_GROUP = 2;

// Reduces each row by `Lanes` lanes of a warp. Lanes past the last row repeat the last row, because all lanes take part in shuffles.
template <int Lanes> __device__ inline void reduce_rows(const Params& p, const RowAxes& axes, Out* out, Index rows, Index columns) {
    constexpr int GROUPS_PER_WARP = 32 / Lanes, ROWS_PER_WARP = GROUPS_PER_WARP * ROWS_PER_LANE_GROUP;
    constexpr int ROWS_PER_BLOCK = THREADS / 32 * ROWS_PER_WARP;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / Lanes, lane = threadIdx.x % Lanes;
    for (Index first = static_cast<Index>(blockIdx.x) * ROWS_PER_BLOCK + warp * ROWS_PER_WARP; first < rows; first += static_cast<Index>(gridDim.x) * ROWS_PER_BLOCK) {
        RowOffsets at[ROWS_PER_LANE_GROUP];
        Acc totals[ROWS_PER_LANE_GROUP];
        #pragma unroll
        for (int r = 0; r < ROWS_PER_LANE_GROUP; r++) {
            const Index row = first + r * GROUPS_PER_WARP + group;
            at[r] = axes.offsets(row < rows ? row : rows - 1);
        }
        reduce_thread_shares<Lanes, UNROLL_LANES>(p, at, 0, columns, lane, totals);
        #pragma unroll
        for (int r = 0; r < ROWS_PER_LANE_GROUP; r++) {
            const Index row = first + r * GROUPS_PER_WARP + group;
            const Acc total = reduce_lanes<Lanes>(totals[r], Fold());
            if (lane == 0 && row < rows) out[row] = Fold::to_result<Out>(total);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_warp(Params p, RowAxes axes, Out* out, Index rows, Index columns) {
    reduce_rows<32>(p, axes, out, rows, columns);
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_8(Params p, RowAxes axes, Out* out, Index rows, Index columns) {
    reduce_rows<8>(p, axes, out, rows, columns);
}

#endif

}  // namespace cuprum
