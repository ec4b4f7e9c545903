// Definitions shared by the kernels of inclusive scans along one axis. A line is a 1-D slice along the scanned axis. Requires the prelude,
// the generated code of an element, and warp.cuh.
//
// The host defines Index (i32 or i64, the type of offsets), RANK (number of axes besides the scanned axis) and COMBINE (a macro that
// combines two values).
//
// The order of combination depends on the shape alone, so results do not depend on timing.

using namespace cuprum;

// Accumulator type: float for 16-bit floats, else the element type.
using Acc = wide_of<Result>;
using Lines = Axes<Index, RANK, INPUTS + 1>;
using LineOffsets = Offsets<Index, INPUTS + 1>;

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__device__ inline Acc combine(Acc a, Acc b) { return COMBINE(a, b); }

// Returns the input offsets of element i of the line that starts at the offsets `line`. `step` holds the strides along the line.
__device__ inline Offsets<Index, INPUTS> input_offsets(const LineOffsets& line, const LineOffsets& step, Index i) {
    Offsets<Index, INPUTS> at;
    at.at[0] = 0;
    #pragma unroll
    for (int k = 0; k < INPUTS; k++) at.at[k] = line.at[k] + i * step.at[k];
    return at;
}
__device__ inline Acc input_value(const Params& p, const LineOffsets& line, const LineOffsets& step, Index i) {
    return widen(compute(p, load(p, input_offsets(line, step, i))).r0);
}
__device__ inline Index output_offset(const LineOffsets& line, const LineOffsets& step, Index i) {
    return line.at[INPUTS] + i * step.at[INPUTS];
}

// Shared memory for the elements of a tile, the totals of the warps and the total of the block. The memory is raw bytes, because Acc may
// have a constructor, which shared memory does not allow.
template <int TILE> struct TileStorage {
    alignas(16) unsigned char items[(TILE + TILE / 32) * sizeof(Acc)];
    alignas(16) unsigned char warps[WARPS * sizeof(Acc)];
    alignas(16) unsigned char total[sizeof(Acc)];
    // Returns item i of the tile. One item of padding follows every 32 items, so that threads that read adjacent groups of items access
    // different banks.
    __device__ Acc& item(int i) { return reinterpret_cast<Acc*>(items)[i + i / 32]; }
    __device__ Acc& warp(int i) { return reinterpret_cast<Acc*>(warps)[i]; }
    __device__ Acc& block_total() { return *reinterpret_cast<Acc*>(total); }
};

// Returns the combination of the values `mine` of all threads with lower indices. Sets `has` to false in thread 0, whose return value is
// undefined, and to true in all other threads. All threads of the block must call this function. Afterwards `s.block_total()` holds the
// block's total.
template <class S> __device__ inline Acc combine_lower_threads(S& s, Acc mine, bool& has) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Acc inclusive = mine;
    #pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        Acc below = shuffle_up(inclusive, d);
        if (lane >= d) inclusive = combine(below, inclusive);
    }
    Acc exclusive = shuffle_up(inclusive, 1);
    if (lane == 31) s.warp(warp) = inclusive;
    __syncthreads();
    if (threadIdx.x == 0) {
        Acc running = s.warp(0);
        for (int w = 1; w < WARPS; w++) {
            Acc total = combine(running, s.warp(w));
            s.warp(w) = running;  // total of the warps before w
            running = total;
        }
        s.block_total() = running;
    }
    __syncthreads();
    has = threadIdx.x > 0;
    if (warp == 0) return exclusive;
    return lane == 0 ? s.warp(warp) : combine(s.warp(warp), exclusive);
}
