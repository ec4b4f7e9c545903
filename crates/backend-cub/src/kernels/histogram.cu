// How many values fall in each bin. Blocks count in shared memory, in several copies of the bins where they are few, so that
// lanes of a warp seldom meet at one counter; many bins are counted in device memory. Counts are integers: no order matters.
//
// The host defines `WIDTH` (elements that a thread loads together), `SHARED` (counters in shared memory) and `BINNING`:
// 0, the value is the bin's number; 1, between even edges; 2, between any edges.

namespace cuprum {

constexpr int THREADS = 512;
// Loads in flight per thread, of 16 bytes for one or two inputs.
constexpr int UNROLL = INPUTS > 2 ? 2 : 4;
constexpr int CHUNK = THREADS * WIDTH * UNROLL;

// Finds the bin of a value; a negative one if there is none.
template <int> struct Bins;

template <> struct Bins<0> {
    i64 bins;
    __device__ Bins(const Result*, u32 count, unsigned char*) : bins(count) {}
    __device__ i64 operator()(i64 value) const { return value < bins ? value : -1; }
};

// The last bin whose edge is not above a value that lies between the first edge and the last.
__device__ inline i64 bisect(const Result* edges, i64 bins, Result value) {
    i64 low = 0, high = bins;
    while (high - low > 1) {
        const i64 middle = (low + high) / 2;
        if (edges[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// By multiplication, which gives no smaller a quotient for a greater value. So where each edge's quotient lies within `margin`
// of the edge's number, one that is further than that from whole numbers names its bin; others need the edges.
template <> struct Bins<1> {
    const Result* edges;
    i64 bins;
    Result low, high, scale, margin;
    __device__ Bins(const Result* e, u32 count, unsigned char*) : edges(e), bins(count), low(e[0]), high(e[count]) {
        scale = cast<Result>(bins) / (high - low);
        if constexpr (SHARED) {
            constexpr f32 UNITS = 1 << 20;
            __shared__ u32 furthest;
            if (threadIdx.x == 0) furthest = 0;
            __syncthreads();
            for (u32 i = threadIdx.x; i <= count; i += THREADS) {
                const f32 distance = fabsf(cast<f32>(quotient(edges[i]) - cast<Result>(i)));
                atomicMax(&furthest, distance < 1.0f ? static_cast<u32>(distance * UNITS) : static_cast<u32>(UNITS));
            }
            __syncthreads();
            margin = cast<Result>((static_cast<f32>(furthest) + 2.0f) / UNITS);
        }
    }
    __device__ Result quotient(Result value) const { return (value - low) * scale; }
    __device__ i64 operator()(Result value) const {
        if (!(value >= low && value <= high)) return -1;
        const Result exact = quotient(value);
        const i64 bin = static_cast<i32>(exact);
        if constexpr (SHARED) {
            const Result part = exact - cast<Result>(bin);
            if (part > margin && part < 1 - margin) return bin;
        } else {
            if (bin >= 0 && bin < bins && edges[bin] <= value && value < edges[bin + 1]) return bin;
        }
        return bisect(edges, bins, value);
    }
};

// By bisection, in a copy of the edges that lies in shared memory where the counters do.
template <> struct Bins<2> {
    const Result* edges;
    i64 bins;
    __device__ Bins(const Result* e, u32 count, unsigned char* storage) : edges(e), bins(count) {
        if constexpr (SHARED) {
            Result* copy = reinterpret_cast<Result*>(storage);
            for (u32 i = threadIdx.x; i <= count; i += THREADS) copy[i] = e[i];
            edges = copy;
            __syncthreads();
        }
    }
    __device__ i64 operator()(Result value) const {
        if (!(value >= edges[0] && value <= edges[bins])) return -1;
        return bisect(edges, bins, value);
    }
};

// `out` is 0 before. Counters stand behind `edge_bytes` of shared memory, 2^`copies` of each bin side by side.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram(Params p, const Result* edges, i64 count, u32 bins, u64* out, u32 edge_bytes, u32 copies) {
    extern __shared__ uint4 words[];
    unsigned char* storage = reinterpret_cast<unsigned char*>(words);
    u32* counters = reinterpret_cast<u32*>(storage + edge_bytes);
    const u32 copy = threadIdx.x & ((1u << copies) - 1);
    if constexpr (SHARED) {
        for (u32 i = threadIdx.x; i < bins << copies; i += THREADS) counters[i] = 0;
        __syncthreads();
    }
    const Bins<BINNING> bin_of(edges, bins, storage);
    const auto tally = [&](const Result& value) {
        const i64 bin = bin_of(value);
        if (bin < 0) return;
        if constexpr (SHARED) atomicAdd(counters + (static_cast<u32>(bin) << copies | copy), 1u);
        else atomicAdd(out + bin, u64(1));
    };

    const Offsets<i64, INPUTS> at{};
    for (i64 begin = static_cast<i64>(blockIdx.x) * CHUNK; begin < count; begin += static_cast<i64>(gridDim.x) * CHUNK) {
        if (begin + CHUNK <= count) {
            Values values[UNROLL][WIDTH];
            #pragma unroll
            for (int u = 0; u < UNROLL; u++) load_pack<WIDTH>(p, at, begin + (u * THREADS + static_cast<int>(threadIdx.x)) * WIDTH, values[u]);
            #pragma unroll
            for (int k = 0; k < UNROLL * WIDTH; k++) tally(compute(p, values[k / WIDTH][k % WIDTH]).r0);
        } else {
            for (i64 i = begin + threadIdx.x; i < count; i += THREADS) tally(element(p, i));
        }
    }

    if constexpr (SHARED) {
        __syncthreads();
        for (u32 bin = threadIdx.x; bin < bins; bin += THREADS) {
            u64 sum = 0;
            for (u32 c = 0; c < 1u << copies; c++) sum += counters[bin << copies | c];
            if (sum > 0) atomicAdd(out + bin, sum);
        }
    }
}

}  // namespace cuprum
