// Inclusive scans with one thread or one block per line (a 1-D slice along the scanned axis). Requires scan.cuh.

constexpr int ITEMS = 8;
constexpr int TILE = THREADS * ITEMS;

// Scans each line (a 1-D slice along the scanned axis) with one thread. Fast for short lines and for many adjacent lines.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_serial(const __grid_constant__ Params p, const __grid_constant__ Lines lines, const __grid_constant__ LineOffsets step,
            Result* __restrict__ out, u64 line_count, u64 length) {
    const u64 stride = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 n = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; n < line_count; n += stride) {
        const LineOffsets line = lines.offsets(static_cast<Index>(n));
        Acc running = input_value(p, line, step, 0);
        out[output_offset(line, step, 0)] = cast<Result>(running);
        for (Index i = 1; i < static_cast<Index>(length); i++) {
            running = combine(running, input_value(p, line, step, i));
            out[output_offset(line, step, i)] = cast<Result>(running);
        }
    }
}

// Scans each line (a 1-D slice along the scanned axis) with one block, which scans the tiles of the line one after another.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_blocks(const __grid_constant__ Params p, const __grid_constant__ Lines lines, const __grid_constant__ LineOffsets step,
            Result* __restrict__ out, u64 line_count, u64 length) {
    __shared__ TileStorage<TILE> s;
    for (u64 n = blockIdx.x; n < line_count; n += gridDim.x) {
        const LineOffsets line = lines.offsets(static_cast<Index>(n));
        Acc carry = Acc();
        for (u64 tile = 0; tile < length; tile += TILE) {
            const int count = length - tile < TILE ? static_cast<int>(length - tile) : TILE;
            for (int i = threadIdx.x; i < count; i += THREADS) s.item(i) = input_value(p, line, step, static_cast<Index>(tile + i));
            __syncthreads();
            // Each thread scans `mine` adjacent elements: ITEMS, or fewer at the end of the line.
            const int first = threadIdx.x * ITEMS, mine = count - first < 0 ? 0 : count - first < ITEMS ? count - first : ITEMS;
            Acc running = Acc();
            for (int k = 0; k < mine; k++) {
                running = k == 0 ? s.item(first) : combine(running, s.item(first + k));
                s.item(first + k) = running;
            }
            bool has;
            const Acc below = combine_lower_threads(s, running, has);
            for (int k = 0; k < mine; k++) {
                Acc x = s.item(first + k);
                if (has) x = combine(below, x);
                if (tile > 0) x = combine(carry, x);
                s.item(first + k) = x;
            }
            __syncthreads();
            for (int i = threadIdx.x; i < count; i += THREADS) out[output_offset(line, step, static_cast<Index>(tile + i))] = cast<Result>(s.item(i));
            carry = s.item(count - 1);
            __syncthreads();
        }
    }
}
