// Inclusive scans along one axis, after the prelude, an element's code and warp.cuh. The host defines Index (i32 or i64), RANK (axes
// around the scanned one) and COMBINE (an operation of namespace op).
//
// Every order of combination follows from the shape alone, so results do not depend on timing.

using namespace cuprum;

// The 16-bit floats accumulate in float.
using Sum = wide_of<Result>;
using Lanes = Axes<Index, RANK, INPUTS + 1>;
using Place = Offsets<Index, INPUTS + 1>;

constexpr int THREADS = 256;
constexpr int ITEMS = 8;
constexpr int TILE = THREADS * ITEMS;
constexpr int WARPS = THREADS / 32;

__device__ inline Sum combine(Sum a, Sum b) { return op::COMBINE(a, b); }

// Element i of the lane at `lane`; inputs first, the output last.
__device__ inline Offsets<Index, INPUTS> inputs_at(const Place& lane, const Place& step, Index i) {
    Offsets<Index, INPUTS> at;
    at.at[0] = 0;
    #pragma unroll
    for (int k = 0; k < INPUTS; k++) at.at[k] = lane.at[k] + i * step.at[k];
    return at;
}
__device__ inline Sum value(const Params& p, const Place& lane, const Place& step, Index i) {
    return widen(compute(p, load(p, inputs_at(lane, step, i))).r0);
}
__device__ inline Index output_at(const Place& lane, const Place& step, Index i) {
    return lane.at[INPUTS] + i * step.at[INPUTS];
}

// Raw bytes, because Sum may have a constructor and shared memory may not.
struct Shared {
    alignas(16) unsigned char items[(TILE + TILE / 32) * sizeof(Sum)];
    alignas(16) unsigned char warps[WARPS * sizeof(Sum)];
    alignas(16) unsigned char total[sizeof(Sum)];
    // One item of padding in 32 keeps the threads' runs of ITEMS in different banks.
    __device__ Sum& item(int i) { return reinterpret_cast<Sum*>(items)[i + i / 32]; }
    __device__ Sum& warp(int i) { return reinterpret_cast<Sum*>(warps)[i]; }
    __device__ Sum& sum() { return *reinterpret_cast<Sum*>(total); }
};

// Combines a value of each thread below this one. `has` is false for thread 0, which has none below. All threads call it;
// `s.sum()` then holds the block's total.
__device__ inline Sum combine_below(Shared& s, Sum mine, bool& has) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Sum inclusive = mine;
    #pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        Sum below = shuffle_up(inclusive, d);
        if (lane >= d) inclusive = combine(below, inclusive);
    }
    Sum exclusive = shuffle_up(inclusive, 1);
    if (lane == 31) s.warp(warp) = inclusive;
    __syncthreads();
    if (threadIdx.x == 0) {
        Sum running = s.warp(0);
        for (int w = 1; w < WARPS; w++) {
            Sum total = combine(running, s.warp(w));
            s.warp(w) = running;  // what lies below warp w
            running = total;
        }
        s.sum() = running;
    }
    __syncthreads();
    has = threadIdx.x > 0;
    if (warp == 0) return exclusive;
    return lane == 0 ? s.warp(warp) : combine(s.warp(warp), exclusive);
}

// One thread a lane, step by step: for many lanes, side by side in memory, and for short ones.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_serial(const __grid_constant__ Params p, const __grid_constant__ Lanes lanes, const __grid_constant__ Place step,
            Result* __restrict__ out, u64 lane_count, u64 length) {
    const u64 stride = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 n = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; n < lane_count; n += stride) {
        const Place lane = lanes.offsets(static_cast<Index>(n));
        Sum running = value(p, lane, step, 0);
        out[output_at(lane, step, 0)] = cast<Result>(running);
        for (Index i = 1; i < static_cast<Index>(length); i++) {
            running = combine(running, value(p, lane, step, i));
            out[output_at(lane, step, i)] = cast<Result>(running);
        }
    }
}

// One block a chunk of a lane. With `carries`, chunk c > 0 continues from carries[c - 1] of its lane.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_chunks(const __grid_constant__ Params p, const __grid_constant__ Lanes lanes, const __grid_constant__ Place step,
            Result* __restrict__ out, const Sum* __restrict__ carries, u64 lane_count, u64 length, u64 chunk_length, u64 chunks) {
    __shared__ Shared s;
    for (u64 block = blockIdx.x; block < lane_count * chunks; block += gridDim.x) {
        const u64 n = block / chunks, chunk = block % chunks;
        const Place lane = lanes.offsets(static_cast<Index>(n));
        const u64 begin = chunk * chunk_length, end = begin + chunk_length < length ? begin + chunk_length : length;
        bool carried = carries != nullptr && chunk > 0;
        Sum carry = carried ? carries[block - 1] : Sum();
        for (u64 tile = begin; tile < end; tile += TILE) {
            const int count = end - tile < TILE ? static_cast<int>(end - tile) : TILE;
            for (int i = threadIdx.x; i < count; i += THREADS) s.item(i) = value(p, lane, step, static_cast<Index>(tile + i));
            __syncthreads();
            // Each thread scans ITEMS neighbours; a thread past the end repeats its last valid neighbour's duties with none.
            const int first = threadIdx.x * ITEMS, mine = count - first < 0 ? 0 : count - first < ITEMS ? count - first : ITEMS;
            Sum running = Sum();
            for (int k = 0; k < mine; k++) {
                running = k == 0 ? s.item(first) : combine(running, s.item(first + k));
                s.item(first + k) = running;
            }
            bool has;
            const Sum below = combine_below(s, running, has);
            for (int k = 0; k < mine; k++) {
                Sum x = s.item(first + k);
                if (has) x = combine(below, x);
                if (carried) x = combine(carry, x);
                s.item(first + k) = x;
            }
            __syncthreads();
            for (int i = threadIdx.x; i < count; i += THREADS) out[output_at(lane, step, static_cast<Index>(tile + i))] = cast<Result>(s.item(i));
            carry = s.item(count - 1);
            carried = true;
            __syncthreads();
        }
    }
}

// The total of each chunk, one block a chunk.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_totals(const __grid_constant__ Params p, const __grid_constant__ Lanes lanes, const __grid_constant__ Place step,
            Sum* __restrict__ totals, u64 lane_count, u64 length, u64 chunk_length, u64 chunks) {
    __shared__ Shared s;
    for (u64 block = blockIdx.x; block < lane_count * chunks; block += gridDim.x) {
        const u64 n = block / chunks, chunk = block % chunks;
        const Place lane = lanes.offsets(static_cast<Index>(n));
        const u64 begin = chunk * chunk_length, end = begin + chunk_length < length ? begin + chunk_length : length;
        Sum running = Sum();
        bool any = false;
        for (u64 i = begin + threadIdx.x; i < end; i += THREADS) {
            const Sum x = value(p, lane, step, static_cast<Index>(i));
            running = any ? combine(running, x) : x;
            any = true;
        }
        s.item(threadIdx.x) = running;
        __syncthreads();
        const u64 live = end - begin < THREADS ? end - begin : THREADS;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half && threadIdx.x + half < live) s.item(threadIdx.x) = combine(s.item(threadIdx.x), s.item(threadIdx.x + half));
            __syncthreads();
        }
        if (threadIdx.x == 0) totals[block] = s.item(0);
        __syncthreads();
    }
}

// Running totals over the chunks of each lane, in place, one thread a lane.
extern "C" __global__ void __launch_bounds__(THREADS) scan_carries(Sum* __restrict__ totals, u64 lane_count, u64 chunks) {
    for (u64 n = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; n < lane_count; n += static_cast<u64>(gridDim.x) * THREADS) {
        Sum running = totals[n * chunks];
        for (u64 c = 1; c < chunks; c++) {
            running = combine(running, totals[n * chunks + c]);
            totals[n * chunks + c] = running;
        }
    }
}
