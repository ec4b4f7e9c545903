// Reductions along a contiguous axis: of one row (everything), of a few long rows, of many rows; after block.cuh. The host defines `Index`,
// `Fold`, `Out`, `WIDTH` (elements that a thread loads together) and `RANK` (axes of the rows).
//
// The order in which elements are combined follows from the row's length and WIDTH, which is 1 where packs are not aligned:
// never from the number of blocks, the device or timing. There are no float atomics.

namespace cuprum {

using Acc = Fold::Acc;
constexpr int THREADS = 256;
// Loads in flight per thread: 64 bytes of one or two inputs, half of that for more.
constexpr int UNROLL = INPUTS > 2 ? 2 : 4;

using At = Offsets<Index, INPUTS>;
using Rows = Axes<Index, RANK, INPUTS>;

// Unroll packs of each of `Count` threads, from element `begin` of each row, on top of its total.
template <int Count, int Unroll, int N>
__device__ inline void take_packs(const Params& p, const At (&rows)[N], Index begin, int thread, Acc (&totals)[N]) {
    Values values[N][Unroll][WIDTH];
    #pragma unroll
    for (int r = 0; r < N; r++) {
        #pragma unroll
        for (int u = 0; u < Unroll; u++) load_pack<WIDTH>(p, rows[r], begin + (u * Count + thread) * WIDTH, values[r][u]);
    }
    Noticed noticed = {};
    #pragma unroll
    for (int r = 0; r < N; r++) {
        Result results[Unroll * WIDTH];
        Index places[Unroll * WIDTH];
        #pragma unroll
        for (int k = 0; k < Unroll * WIDTH; k++) {
            results[k] = evaluate(p, values[r][k / WIDTH][k % WIDTH], noticed).r0;
            places[k] = begin + (k / WIDTH * Count + thread) * WIDTH + k % WIDTH;
        }
        take<Fold>(totals[r], results, places);
    }
    report(p, noticed);
}

// This thread's share of elements begin..end of each row, by `Count` threads of which it is number `thread`.
template <int Count, int Unroll, int N>
__device__ inline void reduce_shares(const Params& p, const At (&rows)[N], Index begin, Index end, int thread, Acc (&totals)[N]) {
    #pragma unroll
    for (int r = 0; r < N; r++) totals[r] = Fold::identity();
    for (; begin + Count * Unroll * WIDTH <= end; begin += Count * Unroll * WIDTH) take_packs<Count, Unroll>(p, rows, begin, thread, totals);
    for (; begin + Count * WIDTH <= end; begin += Count * WIDTH) take_packs<Count, 1>(p, rows, begin, thread, totals);
    for (Index i = begin + thread; i < end; i += Count) {
        #pragma unroll
        for (int r = 0; r < N; r++) {
            const Result last[] = {element(p, rows[r], i)};
            const Index place[] = {i};
            take<Fold>(totals[r], last, place);
        }
    }
}

template <int Count, int Unroll> __device__ inline Acc reduce_share(const Params& p, const At& row, Index begin, Index end, int thread) {
    const At rows[] = {row};
    Acc totals[1];
    reduce_shares<Count, Unroll>(p, rows, begin, end, thread, totals);
    return totals[0];
}

// Past the caches that other multiprocessors do not see.
template <class T> __device__ inline T load_shared_by_all(const T* from) {
    using W = typename Word<alignof(T)>::type;
    T out;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(T) / sizeof(W)); k++) {
        const W word = __ldcg(reinterpret_cast<const W*>(from) + k);
        memcpy(reinterpret_cast<char*>(&out) + k * sizeof(W), &word, sizeof(W));
    }
    return out;
}

// Rows in chunks of `chunk` elements; whichever block finishes the last chunk of a row combines the row's partial results
// in their order. `tickets` are 0 before and after; with one chunk a row neither they nor `partials` are used.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_split(Params p, Rows axes, Out* out, Acc* partials, u32* tickets, u32 rows, u32 chunks, Index columns, Index chunk) {
    __shared__ Acc of_warps[THREADS / 32];
    __shared__ bool last;
    const Fold fold;
    for (u64 work = blockIdx.x; work < u64(rows) * chunks; work += gridDim.x) {
        const u32 row = static_cast<u32>(work / chunks), part = static_cast<u32>(work % chunks);
        const At at = axes.offsets(static_cast<Index>(row));
        const Index begin = static_cast<Index>(part) * chunk;
        const Index end = columns - begin < chunk ? columns : begin + chunk;
        Acc total = reduce_block<THREADS>(of_warps, reduce_share<THREADS, UNROLL>(p, at, begin, end, threadIdx.x), fold);
        if (chunks == 1) {
            if (threadIdx.x == 0) out[row] = Fold::leave<Out>(total);
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
            const Acc* of_row = partials + u64(row) * chunks;
            total = Fold::identity();
            for (u32 i = threadIdx.x; i < chunks; i += THREADS) total = fold(total, load_shared_by_all(of_row + i));
            total = reduce_block<THREADS>(of_warps, total, fold);
            if (threadIdx.x == 0) {
                out[row] = Fold::leave<Out>(total);
                tickets[row] = 0;
            }
        }
        __syncthreads();
    }
}

#ifdef CUPRUM_ROWS

// A block a row.
extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_block(Params p, Rows axes, Out* out, Index rows, Index columns) {
    __shared__ Acc of_warps[THREADS / 32];
    for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
        const Acc share = reduce_share<THREADS, UNROLL>(p, axes.offsets(row), 0, columns, threadIdx.x);
        const Acc total = reduce_block<THREADS>(of_warps, share, Fold());
        if (threadIdx.x == 0) out[row] = Fold::leave<Out>(total);
        __syncthreads();
    }
}

// A few lanes a row already have short steps; rows together have loads in flight where one has a single step.
constexpr int UNROLL_LANES = WIDTH > 1 ? 1 : UNROLL, ROWS_TOGETHER = 2;

// `Lanes` threads of a warp a row. The lanes of a warp stay together: those past the end repeat the last row.
template <int Lanes> __device__ inline void reduce_rows(const Params& p, const Rows& axes, Out* out, Index rows, Index columns) {
    constexpr int PER_WARP = 32 / Lanes, OF_WARP = PER_WARP * ROWS_TOGETHER, OF_BLOCK = THREADS / 32 * OF_WARP;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / Lanes, lane = threadIdx.x % Lanes;
    for (Index first = static_cast<Index>(blockIdx.x) * OF_BLOCK + warp * OF_WARP; first < rows; first += gridDim.x * OF_BLOCK) {
        At at[ROWS_TOGETHER];
        Acc totals[ROWS_TOGETHER];
        #pragma unroll
        for (int r = 0; r < ROWS_TOGETHER; r++) {
            const Index row = first + r * PER_WARP + group;
            at[r] = axes.offsets(row < rows ? row : rows - 1);
        }
        reduce_shares<Lanes, UNROLL_LANES>(p, at, 0, columns, lane, totals);
        #pragma unroll
        for (int r = 0; r < ROWS_TOGETHER; r++) {
            const Index row = first + r * PER_WARP + group;
            const Acc total = reduce_lanes<Lanes>(totals[r], Fold());
            if (lane == 0 && row < rows) out[row] = Fold::leave<Out>(total);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_warp(Params p, Rows axes, Out* out, Index rows, Index columns) {
    reduce_rows<32>(p, axes, out, rows, columns);
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce_rows_8(Params p, Rows axes, Out* out, Index rows, Index columns) {
    reduce_rows<8>(p, axes, out, rows, columns);
}

#endif

}  // namespace cuprum
