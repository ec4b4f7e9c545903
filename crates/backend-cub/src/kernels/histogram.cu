// Counts values per bin. Requires histogram_bins.cuh.
//
// If the bins fit in shared memory, blocks count there. If there are few bins, each has several counters, so that lanes of a warp rarely
// increment the same counter. Otherwise blocks count in global memory. Counts are integers, so the order of additions does not matter.
//
// The host defines `WIDTH` (elements that a thread loads at once), `SHARED` (whether counters are in shared memory) and `RULE` (a `BinRule`
// of histogram_bins.cuh).

namespace cuprum {

constexpr int THREADS = 512;
// Vector loads in flight per thread and input.
constexpr int UNROLL = INPUTS > 2 ? 1 : 2;
constexpr int CHUNK = THREADS * WIDTH * UNROLL;

// Counts `count` values. `out` must be zeroed. Dynamic shared memory holds `edge_bytes` of edges, then 2^log2_copies adjacent counters for
// each bin.
extern "C" __global__ void __launch_bounds__(THREADS)
histogram(Params p, const Result* edges, i64 count, u32 bins, u64* out, u32 edge_bytes, u32 log2_copies) {
    extern __shared__ uint4 words[];
    u32* counters = reinterpret_cast<u32*>(reinterpret_cast<unsigned char*>(words) + edge_bytes);
    const u32 copy = threadIdx.x & ((1u << log2_copies) - 1);
    if constexpr (SHARED) {
        for (u32 i = threadIdx.x; i < bins << log2_copies; i += THREADS) counters[i] = 0;
        __syncthreads();
    }
    const Bins<RULE, SHARED, Result> bin_of(edges, bins, reinterpret_cast<Result*>(words));
    const auto count_value = [&](const Result& value) {
        const i64 bin = bin_of(value);
        if (bin < 0) return;
        if constexpr (SHARED) atomicAdd(counters + (static_cast<u32>(bin) << log2_copies | copy), 1u);
        else atomicAdd(out + bin, u64(1));
    };

    const Offsets<i64, INPUTS> at{};
    for (i64 begin = static_cast<i64>(blockIdx.x) * CHUNK; begin < count; begin += static_cast<i64>(gridDim.x) * CHUNK) {
        if (begin + CHUNK <= count) {
            Values values[UNROLL][WIDTH];
            #pragma unroll
            for (int u = 0; u < UNROLL; u++) load_pack<WIDTH>(p, at, begin + (u * THREADS + static_cast<int>(threadIdx.x)) * WIDTH, values[u]);
            #pragma unroll
            for (int k = 0; k < UNROLL * WIDTH; k++) count_value(compute(p, values[k / WIDTH][k % WIDTH]).r0);
        } else {
            for (i64 i = begin + threadIdx.x; i < count; i += THREADS) count_value(element(p, i));
        }
    }

    if constexpr (SHARED) {
        __syncthreads();
        for (u32 bin = threadIdx.x; bin < bins; bin += THREADS) {
            u64 sum = 0;
            for (u32 c = 0; c < 1u << log2_copies; c++) sum += counters[bin << log2_copies | c];
            if (sum > 0) atomicAdd(out + bin, sum);
        }
    }
}

}  // namespace cuprum
