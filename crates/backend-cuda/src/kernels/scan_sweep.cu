// Scans of long lanes in one pass over memory, after scan.cuh and look_back.cuh. A tile's prefix is a left fold: it starts from the
// nearest finished prefix P(j) and adds the totals of tiles j + 1, j + 2, ... in this order. P(j) was made the same way, so every
// prefix is (((T0 + T1) + T2) + ...), rounded at the same places, whatever was met when.

// Neighbours that a thread scans: 128 bytes, or 32.
constexpr int ITEMS = sizeof(Sum) < 4 ? 32 : 128 / sizeof(Sum);
constexpr int TILE = THREADS * ITEMS;
// Tiles that a thread of the first warp looks back at.
constexpr int LOOK = 2;
constexpr u32 EMPTY = 0, TOTAL = 1, PREFIX = 2;

// A state for each tile, in words of 32 bits of status and 32 of value, so that none is ever met half written.
struct States {
    static constexpr int WORDS = Words<Sum>::COUNT;
    u64* words;
    u64 tiles;

    __device__ void put(u64 tile, u32 status, const Sum& value) const {
        const Words<Sum> parts(value);
        #pragma unroll
        for (int w = 0; w < WORDS; w++) store_relaxed(words + w * tiles + tile, static_cast<u64>(status) << 32 | parts.at[w]);
    }
    // The status: EMPTY as long as its words differ.
    __device__ u32 get(u64 tile, Sum& value) const {
        Words<Sum> parts(value);
        u32 status = EMPTY;
        bool whole = true;
        #pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const u64 word = load_relaxed(words + w * tiles + tile);
            parts.at[w] = static_cast<u32>(word);
            const u32 here = static_cast<u32>(word >> 32);
            whole = whole && (w == 0 || here == status);
            status = here;
        }
        value = parts;
        return whole ? status : EMPTY;
    }
};

// The fold of the `before` tiles of this lane that come right before `tile`; the whole first warp calls.
__device__ inline Sum fold_back(const States& states, u64 tile, u64 before) {
    const int lane = threadIdx.x;
    // In the order of tiles, LOOK neighbours a thread; those that are negative belong to no tile.
    const i64 first = static_cast<i64>(before) - 32 * LOOK + lane * LOOK;
    Sum values[LOOK] = {};
    int from;
    while (true) {
        int newest = -1;
        bool whole = true;
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const u32 status = first + k >= 0 ? states.get(tile - before + (first + k), values[k]) : EMPTY;
            if (status == PREFIX) {
                newest = k;
                whole = true;
            }
            whole = whole && status != EMPTY;
        }
        // The last thread that met a prefix: what follows it there, and all that the threads after it look at, must be known.
        const u32 finished = __ballot_sync(0xffffffffu, newest >= 0), known = __ballot_sync(0xffffffffu, whole);
        if (finished != 0) {
            const int start = 31 - __clz(finished);
            if ((~known >> start) == 0) {
                from = start * LOOK + __shfl_sync(0xffffffffu, newest, start);
                break;
            }
        }
        __nanosleep(40);
    }
    Sum prefix = Sum();
    for (int i = from / LOOK; i < 32; i++) {
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const Sum total = shuffle(values[k], i);
            if (i * LOOK + k == from) prefix = total;
            else if (i * LOOK + k > from) prefix = combine(prefix, total);
        }
    }
    return prefix;
}

// `ticket` and the words of states are 0 before; `tiles` are those of a lane, `all_tiles` of all.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_sweep(const __grid_constant__ Params p, const __grid_constant__ Lanes lanes, const __grid_constant__ Place step,
           Result* __restrict__ out, u64 length, u64 tiles, u64 all_tiles, u32* ticket, u64* words) {
    __shared__ Shared<TILE> s;
    __shared__ u32 shared_ticket;
    alignas(16) __shared__ unsigned char shared_prefix[sizeof(Sum)];
    if (threadIdx.x == 0) shared_ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    const u64 number = shared_ticket, tile = number % tiles, begin = tile * TILE;
    const Place lane = lanes.offsets(static_cast<Index>(number / tiles));
    const int count = length - begin < TILE ? static_cast<int>(length - begin) : TILE;

    Sum x[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < count) x[k] = value(p, lane, step, static_cast<Index>(begin + i));
    }
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) s.item(k * THREADS + threadIdx.x) = x[k];
    __syncthreads();
    // A thread past the end has none.
    const int first = threadIdx.x * ITEMS, mine = count - first;
    Sum running = Sum();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < mine) x[k] = running = k == 0 ? s.item(first) : combine(running, s.item(first + k));
    }
    bool has;
    const Sum below = combine_below(s, running, has);
    if (threadIdx.x < 32) {
        const States states{words, all_tiles};
        const Sum total = s.sum();
        if (threadIdx.x == 0) states.put(number, tile == 0 ? PREFIX : TOTAL, total);
        if (tile > 0) {
            const Sum prefix = fold_back(states, number, tile);
            if (threadIdx.x == 0) {
                states.put(number, PREFIX, combine(prefix, total));
                *reinterpret_cast<Sum*>(shared_prefix) = prefix;
            }
        }
    }
    __syncthreads();
    const Sum prefix = *reinterpret_cast<const Sum*>(shared_prefix);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < mine) {
            Sum y = has ? combine(below, x[k]) : x[k];
            s.item(first + k) = tile > 0 ? combine(prefix, y) : y;
        }
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < count) out[output_at(lane, step, static_cast<Index>(begin + i))] = cast<Result>(s.item(i));
    }
}
