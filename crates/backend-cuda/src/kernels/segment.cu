// Sums of segments of 1-D values, after the prelude and an element's code. The host defines A, the accumulator (integers unsigned: they
// wrap), and TEAM, the threads (a power of 2 up to 32) that share a segment, by the mean length. The order of additions follows from
// TEAM and the segment's length alone.

namespace cuprum {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TEAMS = THREADS / TEAM;
// Segments longer than this are summed by a whole block.
constexpr i64 LONG = 4096;

template <class X> struct Sum {
    X value;
    // -0, so that a sum of negative zeros stays one.
    __device__ static Sum empty() { return {static_cast<X>(is_float<X> ? X(-0.0) : X(0))}; }
    __device__ void add(Sum other) { value += other.value; }
    __device__ Sum below(int distance) const { return {__shfl_down_sync(~0u, value, distance)}; }
};
template <class X> struct Sum<complex<X>> {
    complex<X> value;
    __device__ static Sum empty() { return {complex<X>(X(-0.0), X(-0.0))}; }
    __device__ void add(Sum other) { value = complex<X>(value.re + other.value.re, value.im + other.value.im); }
    __device__ Sum below(int distance) const {
        return {complex<X>(__shfl_down_sync(~0u, value.re, distance), __shfl_down_sync(~0u, value.im, distance))};
    }
};

struct Range {
    i64 begin, end;
};

// A segment's range; one that is not inside the values is reported and counts as empty.
__device__ inline Range range_of(const i64* offsets, u64 segment, i64 length, int lane, Fault* fault, u64 op) {
    const i64 begin = offsets[segment], end = offsets[segment + 1];
    if (begin >= 0 && begin <= end && end <= length) return {begin, end};
    if (lane == 0) report_fault(fault, 2, op, begin < 0 || begin > length ? begin : end, static_cast<u64>(length));
    return {0, 0};
}

// Every width-th value from `first`, in runs of 4 that are added up one by one.
__device__ inline Sum<A> sum_every(const Params& p, Range range, int first, int width) {
    Sum<A> total = Sum<A>::empty();
    for (i64 start = range.begin + first; start < range.end; start += 4 * width) {
        Sum<A> run = Sum<A>::empty();
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            const i64 i = start + k * width;
            if (i < range.end) run.add({cast<A>(element(p, i))});
        }
        total.add(run);
    }
    return total;
}

template <int Lanes> __device__ inline Sum<A> sum_lanes(Sum<A> sum) {
    #pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) sum.add(sum.below(distance));
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
segment_sum(const __grid_constant__ Params p, Result* out, i64 length, const i64* offsets, u64 segments, Fault* fault, u64 op) {
    __shared__ Range long_ranges[TEAMS];
    __shared__ alignas(16) unsigned char storage[WARPS * sizeof(Sum<A>)];
    Sum<A>* partial = reinterpret_cast<Sum<A>*>(storage);
    const int rank = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const u64 stride = static_cast<u64>(gridDim.x) * TEAMS;
    for (u64 first = static_cast<u64>(blockIdx.x) * TEAMS; first < segments; first += stride) {
        const u64 segment = first + team;
        Range range = {0, 0};
        if (segment < segments) range = range_of(offsets, segment, length, rank, fault, op);
        const bool is_long = range.end - range.begin > LONG;
        // Threads of long segments add nothing, but take part in the warp's shuffles.
        const Sum<A> sum = sum_lanes<TEAM>(sum_every(p, is_long ? Range{0, 0} : range, rank, TEAM));
        if (rank == 0 && segment < segments && !is_long) out[segment] = range.begin == range.end ? Result() : cast<Result>(sum.value);
        if (!__syncthreads_or(is_long)) continue;
        if (rank == 0) long_ranges[team] = is_long ? range : Range{0, 0};
        __syncthreads();
        for (int t = 0; t < TEAMS; t++) {
            const Range shared = long_ranges[t];
            if (shared.begin == shared.end) continue;
            Sum<A> total = sum_lanes<32>(sum_every(p, shared, threadIdx.x, THREADS));
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
            __syncthreads();
            if (threadIdx.x == 0) {
                total = partial[0];
                for (int other = 1; other < WARPS; other++) total.add(partial[other]);
                out[first + t] = cast<Result>(total.value);
            }
            __syncthreads();
        }
        __syncthreads();
    }
}

}  // namespace cuprum
