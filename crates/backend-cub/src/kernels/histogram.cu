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

// By division; by the edges where rounding could have missed the bin. The quotient has the roundings of two differences, a
// quotient and a product, each half a unit in the last place of at most `bins`; an edge is off by at most three halves of
// one of its own. `margin` is twice as much.
template <> struct Bins<1> {
    const Result* edges;
    i64 bins;
    Result low, high, scale, margin;
    __device__ Bins(const Result* e, u32 count, unsigned char*) : edges(e), bins(count), low(e[0]), high(e[count]) {
        constexpr bool NARROW = sizeof(Result) == 4;
        const Result a = low < 0 ? -low : low, b = high < 0 ? -high : high;
        scale = cast<Result>(bins) / (high - low);
        margin = cast<Result>(NARROW ? 0x1p-21 : 0x1p-50) * (cast<Result>(bins) + (a < b ? b : a) * scale);
        // A range so wide or narrow that the quotient has no digits to trust.
        if (!(scale > cast<Result>(NARROW ? 0x1p-96 : 0x1p-992) && margin < 1)) margin = 1;
    }
    __device__ i64 operator()(Result value) const {
        if (!(value >= low && value <= high)) return -1;
        const Result quotient = (value - low) * scale;
        const i32 bin = static_cast<i32>(quotient);
        const Result part = quotient - cast<Result>(bin);
        return part > margin && part < 1 - margin ? bin : bisect(edges, bins, value);
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
