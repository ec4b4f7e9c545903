// `Bins`, a function object that returns the histogram bin of a value, or a negative number if the value is in no bin. Requires the
// prelude.
//
// Bin i contains the values x with edges[i] <= x < edges[i + 1], and the last bin also its right edge. All threads of a block must
// construct `Bins` together.

namespace cuprum {

// Binning rules. NUMBER: values are bin indices. EVEN: all bins have the same width. EDGES: bins have arbitrary ascending edges.
enum class BinRule { NUMBER, EVEN, EDGES };

// Returns the last bin whose left edge is at most `value`, by bisection. `value` is between the first and the last edge.
template <class T> __device__ inline i64 bisect_edges(const T* edges, i64 bins, T value) {
    i64 low = 0, high = bins;
    while (high - low > 1) {
        const i64 middle = low + (high - low) / 2;
        if (edges[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// The bins of a binning rule. `Shared` is whether the bins fit in shared memory; bin indices then fit in i32. The last constructor
// argument is shared memory for a copy of the edges, which only BinRule::EDGES uses.
template <BinRule, bool Shared, class T> struct Bins;

template <bool Shared, class T> struct Bins<BinRule::NUMBER, Shared, T> {
    i64 bins;
    __device__ Bins(const T*, i64 count, T*) : bins(count) {}
    __device__ i64 operator()(T value) const { return value < bins ? value : -1; }
};

// Bins of equal width. The quotient (value - first edge) / width estimates the bin. It is monotonic in `value`.
//
// The quotient of each edge is within `margin` of the edge's index. A quotient further than `margin` from every integer therefore
// determines the bin. All other values are compared with the edges, as are all values if the difference of the edges overflows. The
// quotient must not be contracted to a fused multiply-add, so that host and device round it in the same way.
template <bool Shared, class T> struct Bins<BinRule::EVEN, Shared, T> {
    const T* edges;
    i64 bins;
    T low, high, scale, margin;
    __device__ Bins(const T* e, i64 count, T*) : edges(e), bins(count), low(e[0]), high(e[count]) {
        scale = cast<T>(bins) / (high - low);
        if constexpr (Shared) {
            constexpr f32 UNITS = 1 << 20;
            __shared__ u32 furthest;
            if (threadIdx.x == 0) furthest = 0;
            __syncthreads();
            for (u32 i = threadIdx.x; i <= static_cast<u32>(count); i += blockDim.x) {
                const f32 distance = fabsf(cast<f32>(sub_rn(quotient(edges[i]), cast<T>(i))));
                atomicMax(&furthest, distance < 1.0f ? static_cast<u32>(distance * UNITS) : static_cast<u32>(UNITS));
            }
            __syncthreads();
            margin = cast<T>((static_cast<f32>(furthest) + 2.0f) / UNITS);
        }
    }
    __device__ T quotient(T value) const { return mul_rn(sub_rn(value, low), scale); }
    __device__ i64 operator()(T value) const {
        if (!(value >= low && value <= high)) return -1;
        const T exact = quotient(value);
        if constexpr (Shared) {
            const i32 bin = static_cast<i32>(exact);
            const T part = sub_rn(exact, cast<T>(bin));
            if (part > margin && part < 1 - margin) return bin;
        } else {
            const i64 bin = cast<i64>(exact);
            if (bin >= 0 && bin < bins && edges[bin] <= value && value < edges[bin + 1]) return bin;
        }
        return bisect_edges(edges, bins, value);
    }
};

// Bins between arbitrary edges, found by bisection. If `Shared`, the edges are copied to shared memory.
template <bool Shared, class T> struct Bins<BinRule::EDGES, Shared, T> {
    const T* edges;
    i64 bins;
    __device__ Bins(const T* e, i64 count, T* storage) : edges(e), bins(count) {
        if constexpr (Shared) {
            for (i32 i = threadIdx.x; i <= count; i += blockDim.x) storage[i] = e[i];
            edges = storage;
            __syncthreads();
        }
    }
    __device__ i64 operator()(T value) const {
        if (!(value >= edges[0] && value <= edges[bins])) return -1;
        return bisect_edges(edges, bins, value);
    }
};

}  // namespace cuprum
