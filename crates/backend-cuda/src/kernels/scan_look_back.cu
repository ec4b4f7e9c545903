// Inclusive scans of long lines in one pass over memory, with one block per tile. Requires scan.cuh and fold_look_back.cuh.

// Number of adjacent elements per thread: as many as fit in 128 bytes, but at most 32.
constexpr int ITEMS = sizeof(Acc) < 4 ? 32 : 128 / sizeof(Acc);
constexpr int TILE = THREADS * ITEMS;

// Scans lines (1-D slices along the scanned axis), with one block per tile of a line. `tiles` is the number of tiles per line, `all_tiles`
// the number of tiles in all lines. `ticket`, which numbers the tiles, and the look-back states in `words` must be zeroed.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_sweep(const __grid_constant__ Params p, const __grid_constant__ Lines lines, const __grid_constant__ LineOffsets step,
           Result* __restrict__ out, u64 length, u64 tiles, u64 all_tiles, u32* ticket, u64* words) {
    __shared__ TileStorage<TILE> s;
    __shared__ u32 shared_ticket;
    alignas(16) __shared__ unsigned char shared_prefix[sizeof(Acc)];
    if (threadIdx.x == 0) shared_ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    const u64 number = shared_ticket, tile = number % tiles, begin = tile * TILE;
    const LineOffsets line = lines.offsets(static_cast<Index>(number / tiles));
    const int count = length - begin < TILE ? static_cast<int>(length - begin) : TILE;

    Acc x[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < count) x[k] = input_value(p, line, step, static_cast<Index>(begin + i));
    }
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) s.item(k * THREADS + threadIdx.x) = x[k];
    __syncthreads();
    // This thread's elements start at `first`, and `mine` is the number of elements from there to the end of the tile. `mine` is not
    // positive for threads past the end of the line.
    const int first = threadIdx.x * ITEMS, mine = count - first;
    Acc running = Acc();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < mine) x[k] = running = k == 0 ? s.item(first) : combine(running, s.item(first + k));
    }
    bool has;
    const Acc below = combine_lower_threads(s, running, has);
    if (threadIdx.x < 32) {
        const u64 of_line = look_back_state_count(tiles);
        const TileStates<Acc> states{words, all_tiles / tiles * of_line};
        const auto add = [](const Acc& a, const Acc& b) { return combine(a, b); };
        const Acc prefix = fold_earlier_tiles(states, number / tiles * of_line, tiles, tile, s.block_total(), add);
        if (threadIdx.x == 0) *reinterpret_cast<Acc*>(shared_prefix) = prefix;
    }
    __syncthreads();
    const Acc prefix = *reinterpret_cast<const Acc*>(shared_prefix);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (k < mine) {
            Acc y = has ? combine(below, x[k]) : x[k];
            s.item(first + k) = tile > 0 ? combine(prefix, y) : y;
        }
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (i < count) out[output_offset(line, step, static_cast<Index>(begin + i))] = cast<Result>(s.item(i));
    }
}
