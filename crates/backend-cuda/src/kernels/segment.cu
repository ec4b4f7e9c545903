// Sums of segments of a 1-D array. T is the element and result type (integers unsigned: they wrap), A the accumulator.
// The order of additions depends on a segment's length alone.

using namespace cuprum;

constexpr int WARPS = 8;
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

// Every width-th value from `first`, in runs of 16 that are added up one by one.
__device__ inline Sum<A> sum_every(const T* values, i64 step, Range range, int first, int width) {
    Sum<A> total = Sum<A>::empty();
    for (i64 start = range.begin + first; start < range.end; start += 16 * width) {
        Sum<A> run = Sum<A>::empty();
        #pragma unroll
        for (int k = 0; k < 16; k++) {
            const i64 i = start + k * width;
            if (i < range.end) run.add({cast<A>(values[i * step])});
        }
        total.add(run);
    }
    return total;
}

__device__ inline Sum<A> sum_warp(Sum<A> sum) {
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum.add(sum.below(distance));
    return sum;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
segment_sum(T* out, const T* values, i64 step, i64 length, const i64* offsets, u64 segments, Fault* fault, u64 op) {
    __shared__ Range long_ranges[WARPS];
    __shared__ alignas(16) unsigned char storage[WARPS * sizeof(Sum<A>)];
    Sum<A>* partial = reinterpret_cast<Sum<A>*>(storage);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 stride = static_cast<u64>(gridDim.x) * WARPS;
    for (u64 first = static_cast<u64>(blockIdx.x) * WARPS; first < segments; first += stride) {
        const u64 segment = first + warp;
        Range range = {0, 0};
        if (segment < segments) range = range_of(offsets, segment, length, lane, fault, op);
        const bool is_long = range.end - range.begin > LONG;
        if (segment < segments && !is_long) {
            const Sum<A> sum = sum_warp(sum_every(values, step, range, lane, 32));
            if (lane == 0) out[segment] = range.begin == range.end ? T() : cast<T>(sum.value);
        }
        if (lane == 0) long_ranges[warp] = is_long ? range : Range{0, 0};
        __syncthreads();
        for (int w = 0; w < WARPS; w++) {
            const Range shared = long_ranges[w];
            if (shared.begin == shared.end) continue;
            Sum<A> sum = sum_warp(sum_every(values, step, shared, threadIdx.x, 32 * WARPS));
            if (lane == 0) partial[warp] = sum;
            __syncthreads();
            if (threadIdx.x == 0) {
                sum = partial[0];
                for (int other = 1; other < WARPS; other++) sum.add(partial[other]);
                out[first + w] = cast<T>(sum.value);
            }
            __syncthreads();
        }
        __syncthreads();
    }
}
