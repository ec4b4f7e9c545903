// Sums of segments of 1-D values, after the prelude and an element's code. The host defines A, the accumulator (integers unsigned: they
// wrap), TEAM, the threads (a power of 2 up to 32) that share a segment, by the mean length, and BLOCKS that a multiprocessor shall hold
// at once. The order of additions follows from TEAM and the segment's length alone.

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

// An offset that does not fit, to be reported when a thread has nothing else left to keep in registers.
struct BadOffset {
    bool met;
    i64 value;
};

// A segment's range; one that is not inside the values counts as empty.
__device__ inline Range range_of(const i64* offsets, u64 segment, i64 length, BadOffset& bad) {
    const i64 begin = offsets[segment], end = offsets[segment + 1];
    if (begin >= 0 && begin <= end && end <= length) return {begin, end};
    bad = {true, begin < 0 || begin > length ? begin : end};
    return {0, 0};
}

// Every Width-th value from `first`, in runs of 4 whose loads are under way together, and which are added up one by one.
template <int Width> __device__ inline Sum<A> sum_every(const Params& p, Range range, int first, Noticed& noticed) {
    constexpr int RUN = 4;
    Sum<A> total = Sum<A>::empty();
    for (i64 start = range.begin + first; start < range.end; start += RUN * Width) {
        const i64 left = range.end - start;
        const int count = left > (RUN - 1) * Width ? RUN : (static_cast<int>(left) + Width - 1) / Width;
        Values values[RUN];
        #pragma unroll
        for (int k = 0; k < RUN; k++) {
            if (k < count) values[k] = load_along(p, Offsets<i64, INPUTS>{}, start + k * Width);
        }
        Results results[RUN];
        #pragma unroll
        for (int k = 0; k < RUN; k++) {
            if (k < count) results[k] = evaluate(p, values[k], noticed);
        }
        Sum<A> run = Sum<A>::empty();
        #pragma unroll
        for (int k = 0; k < RUN; k++) {
            if (k < count) run.add({cast<A>(results[k].r0)});
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

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
segment_sum(const __grid_constant__ Params p, Result* out, i64 length, const i64* offsets, u64 segments, Fault* fault, u64 op) {
    __shared__ Range long_ranges[TEAMS];
    __shared__ alignas(16) unsigned char storage[WARPS * sizeof(Sum<A>)];
    Sum<A>* partial = reinterpret_cast<Sum<A>*>(storage);
    const int rank = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const u64 stride = static_cast<u64>(gridDim.x) * TEAMS;
    Noticed noticed = {};
    BadOffset bad = {};
    for (u64 first = static_cast<u64>(blockIdx.x) * TEAMS; first < segments; first += stride) {
        const u64 segment = first + team;
        Range range = {0, 0};
        if (segment < segments) range = range_of(offsets, segment, length, bad);
        const bool is_long = range.end - range.begin > LONG;
        // Threads of long segments add nothing, but take part in the warp's shuffles.
        const Sum<A> sum = sum_lanes<TEAM>(sum_every<TEAM>(p, is_long ? Range{0, 0} : range, rank, noticed));
        if (rank == 0 && segment < segments && !is_long) out[segment] = range.begin == range.end ? Result() : cast<Result>(sum.value);
        if (!__syncthreads_or(is_long)) continue;
        if (rank == 0) long_ranges[team] = is_long ? range : Range{0, 0};
        __syncthreads();
        for (int t = 0; t < TEAMS; t++) {
            const Range shared = long_ranges[t];
            if (shared.begin == shared.end) continue;
            Sum<A> total = sum_lanes<32>(sum_every<THREADS>(p, shared, threadIdx.x, noticed));
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
    report(p, noticed);
    if (bad.met) report_fault(fault, 2, op, bad.value, static_cast<u64>(length));
}

}  // namespace cuprum
