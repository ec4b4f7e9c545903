// The histogram bin of a value. Follows the prelude. With edges, bin i holds edges[i] <= x < edges[i + 1], and the last bin
// includes its right edge. A negative result means no bin. All threads of a block construct `Bins` together.

namespace cuprum {

// Binning rules: values that are bin indices, bins between even edges, or bins between any edges.
enum class BinRule { NUMBER, EVEN, EDGES };

// Returns the last bin whose edge is not above a value, which is between the first edge and the last.
template <class T> __device__ inline i64 bisect(const T* edges, i64 bins, T value) {
    i64 low = 0, high = bins;
    while (high - low > 1) {
        const i64 middle = low + (high - low) / 2;
        if (edges[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// `Shared`: the bins fit in shared memory (and their indices in i32). `storage` is shared memory for the edges, which only
// BinRule::EDGES uses.
template <BinRule, bool Shared, class T> struct Bins;

template <bool Shared, class T> struct Bins<BinRule::NUMBER, Shared, T> {
    i64 bins;
    __device__ Bins(const T*, i64 count, T*) : bins(count) {}
    __device__ i64 operator()(T value) const { return value < bins ? value : -1; }
};

// Bins of equal width. The quotient (value - first edge) / width estimates the bin by a multiplication, which is monotonic. The
// quotient of each edge is within `margin` of the edge's index. So a quotient that is
// further than `margin` from every integer determines the bin, and other values need the edges. If the difference of the
// edges overflows, the margin sends every value to the edges. The quotient must not be contracted, so that it is rounded the
// same everywhere.
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
        return bisect(edges, bins, value);
    }
};

// Bisection, in a copy of the edges in shared memory if the counts are there.
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
        return bisect(edges, bins, value);
    }
};

}  // namespace cuprum
