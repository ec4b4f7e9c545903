// Reductions of segments of a 1-D array. Requires the prelude, the generated code of an element, warp.cuh and fold.cuh.
//
// The host defines `Fold`, TEAM and BLOCKS. The identity of `Fold` is the result of an empty segment. TEAM is the number of threads per
// segment, a power of 2 up to 32 that the host chooses by the mean length. BLOCKS is the minimum number of resident blocks per
// multiprocessor. The order of combination depends only on TEAM and on the length of the segment.

namespace cuprum {

using Acc = Fold::Acc;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TEAMS = THREADS / TEAM;
// Maximum length of a segment that one team of up to 32 threads reduces. A whole block reduces each longer segment.
constexpr i64 MAX_TEAM_LENGTH = 4096;

struct SegmentRange {
    i64 begin, end;
};

// An invalid segment offset that a thread has found. Reporting the offset only after the loops saves registers in the loops.
struct InvalidSegmentOffset {
    bool met;
    i64 value;
};

// Returns the range of elements of segment `segment`. If its offsets are invalid, sets `bad` and returns an empty range.
__device__ inline SegmentRange segment_range(const i64* offsets, u64 segment, i64 length, InvalidSegmentOffset& bad) {
    const i64 begin = offsets[segment], end = offsets[segment + 1];
    if (begin >= 0 && begin <= end && end <= length) return {begin, end};
    bad = {true, begin < 0 || begin > length ? begin : end};
    return {0, 0};
}

// Folds elements first, first + Width, first + 2 * Width, ... of `range`, in order. The loads of 4 elements are in flight at once.
template <int Width> __device__ inline Acc fold_with_stride(const Params& p, SegmentRange range, int first, BadIndex& bad_index) {
    constexpr int RUN_LENGTH = 4;
    const Fold fold;
    Acc total = Fold::identity();
    for (i64 start = range.begin + first; start < range.end; start += RUN_LENGTH * Width) {
        const i64 left = range.end - start;
        const int count = left > (RUN_LENGTH - 1) * Width ? RUN_LENGTH : (static_cast<int>(left) + Width - 1) / Width;
        Values values[RUN_LENGTH];
        #pragma unroll
        for (int k = 0; k < RUN_LENGTH; k++) {
            if (k < count) values[k] = load_along(p, Offsets<i64, INPUTS>{}, start + k * Width);
        }
        Results results[RUN_LENGTH];
        #pragma unroll
        for (int k = 0; k < RUN_LENGTH; k++) {
            if (k < count) results[k] = evaluate(p, values[k], bad_index);
        }
        Acc run = Fold::identity();
        #pragma unroll
        for (int k = 0; k < RUN_LENGTH; k++) {
            if (k < count) run = fold(run, Fold::from_element(results[k].r0, 0));
        }
        total = fold(total, run);
    }
    return total;
}

template <int Lanes> __device__ inline Acc fold_lanes(Acc acc) {
    #pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) acc = Fold()(acc, shuffle_down(acc, distance));
    return acc;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
fold_segments(const __grid_constant__ Params p, Result* out, i64 length, const i64* offsets, u64 segments, Fault* fault, u64 op) {
    __shared__ SegmentRange long_ranges[TEAMS];
    __shared__ alignas(16) unsigned char storage[WARPS * sizeof(Acc)];
    Acc* const partial = reinterpret_cast<Acc*>(storage);
    const Fold fold;
    const int rank = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const u64 stride = static_cast<u64>(gridDim.x) * TEAMS;
    BadIndex bad_index = {};
    InvalidSegmentOffset bad = {};
    for (u64 first = static_cast<u64>(blockIdx.x) * TEAMS; first < segments; first += stride) {
        const u64 segment = first + team;
        SegmentRange range = {0, 0};
        if (segment < segments) range = segment_range(offsets, segment, length, bad);
        const bool is_long = range.end - range.begin > MAX_TEAM_LENGTH;
        // The whole block folds a long segment below. The segment's team folds an empty range here, because all lanes of a warp must take
        // part in the shuffles.
        const Acc acc = fold_lanes<TEAM>(fold_with_stride<TEAM>(p, is_long ? SegmentRange{0, 0} : range, rank, bad_index));
        if (rank == 0 && segment < segments && !is_long) {
            out[segment] = Fold::to_result<Result>(acc);
        }
        if (!__syncthreads_or(is_long)) continue;
        if (rank == 0) long_ranges[team] = is_long ? range : SegmentRange{0, 0};
        __syncthreads();
        for (int t = 0; t < TEAMS; t++) {
            const SegmentRange shared = long_ranges[t];
            if (shared.begin == shared.end) continue;
            Acc total = fold_lanes<32>(fold_with_stride<THREADS>(p, shared, threadIdx.x, bad_index));
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
            __syncthreads();
            if (threadIdx.x == 0) {
                total = partial[0];
                for (int other = 1; other < WARPS; other++) total = fold(total, partial[other]);
                out[first + t] = Fold::to_result<Result>(total);
            }
            __syncthreads();
        }
        __syncthreads();
    }
    report(p, bad_index);
    if (bad.met) report_fault(fault, 2, op, bad.value, static_cast<u64>(length));
}

}  // namespace cuprum
