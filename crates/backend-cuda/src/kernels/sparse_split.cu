// Product of a matrix in compressed row format (CSR) with a vector, split into tiles of equally many elements. Requires sparse.cuh.
//
// A tile belongs to one block, so that rows of any length share the work evenly. A row belongs to the tile in which it begins. The first
// elements of a tile may belong to a row of an earlier tile; their sum is the carry of the tile. The order of each sum depends only on
// `indptr`.

using namespace cuprum;

constexpr int THREADS = 256, PER = 8, TILE = THREADS * PER;

// Checks `indptr`, sets `irregular` to 1 if a row has more than `max_length` elements, and writes for each tile the first row that begins in
// it or later, then the number of rows.
extern "C" __global__ void __launch_bounds__(THREADS)
find_tile_rows(i64* tile_rows, u32* irregular, const __grid_constant__ Matrix m, i64 tiles, i64 max_length, Fault* fault, u64 op) {
    const i64 thread = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x, threads = static_cast<i64>(gridDim.x) * THREADS;
    const int lane = threadIdx.x % 32;
    BadNumber bad = {};
    for (i64 row = thread; row < m.rows; row += threads) {
        const RowRange range = m.row(row, bad);
        if (range.end - range.begin > max_length) *irregular = 1;
    }
    m.report(bad, fault, op);
    for (i64 tile = thread / 32; tile <= tiles; tile += threads / 32) {
        // The lanes probe the ends of 32 parts of the range, so that a step reduces the range to one part.
        i64 low = 0, high = m.rows;
        while (low < high) {
            const i64 step = (high - low + 31) / 32, end = low + (lane + 1) * step, probe = (end < high ? end : high) - 1;
            const int before = __popc(__ballot_sync(~0u, m.indptr[probe] < tile * TILE));
            const i64 next = low + before * step;
            if (before < 32) high = next + step < high ? next + step - 1 : high - 1;
            low = next < high ? next : high;
        }
        if (lane == 0) tile_rows[tile] = tile == tiles ? m.rows : low;
    }
}

// One unused element after every 32 avoids bank conflicts between threads that read rows of equal lengths.
__device__ inline int skewed(int i) { return i + (i >> 5); }

// Computes the products of each tile, the sums of the rows that begin in it as far as they are in the tile, and its carry. Returns at once
// if `irregular` is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
split_times_vector(T* __restrict__ out, Acc* __restrict__ carries, const __grid_constant__ Matrix m, const T* __restrict__ x,
                   const i64* __restrict__ tile_rows, const u32* irregular, Fault* fault, u64 op) {
    __shared__ alignas(16) unsigned char storage[(TILE + TILE / 32) * sizeof(Acc)];
    Acc* const products = reinterpret_cast<Acc*>(storage);
    if (*irregular == 0) return;
    const i64 begin = static_cast<i64>(blockIdx.x) * TILE, end = begin + TILE < m.count ? begin + TILE : m.count;
    BadNumber bad = {};
    i64 columns[PER];
    Acc values[PER];
    #pragma unroll
    for (int k = 0; k < PER; k++) {
        const i64 at = begin + k * THREADS + threadIdx.x;
        columns[k] = at < end ? m.column(at, bad) : 0;
        values[k] = at < end ? cast<Acc>(m.values[at]) : zero();
    }
    #pragma unroll
    for (int k = 0; k < PER; k++) {
        const i64 at = begin + k * THREADS + threadIdx.x;
        if (at < end) products[skewed(k * THREADS + threadIdx.x)] = multiply_add(values[k], cast<Acc>(x[columns[k]]), zero());
    }
    m.report(bad, fault, op);
    __syncthreads();
    // Segment 0 is the carry. Segment n is row `first_row + n - 1`. A team of threads sums a segment.
    const i64 first_row = tile_rows[blockIdx.x], segments = tile_rows[blockIdx.x + 1] - first_row + 1;
    int team = 1;
    while (team < 32 && 2 * team * segments <= THREADS) team *= 2;
    const int rank = threadIdx.x % team;
    for (i64 first = 0; first < segments; first += THREADS / team) {
        const i64 segment = first + threadIdx.x / team, row = first_row + segment - 1;
        RowRange range = {0, 0};
        if (segment == 0) {
            range = {begin, first_row < m.rows ? static_cast<i64>(m.indptr[first_row]) : m.count};
        } else if (segment < segments) {
            range = m.row(row, bad);
        }
        // The part of the row that is in the tile. Invalid numbers in `indptr` must not lead to other elements.
        const auto inside = [&](i64 at) { return static_cast<int>((at < begin ? begin : at < end ? at : end) - begin); };
        const int from = inside(range.begin), to = inside(range.end);
        Acc sum = zero();
        for (int i = from + rank; i < to; i += team) sum = add(sum, products[skewed(i)]);
        for (int distance = team / 2; distance > 0; distance /= 2) sum = add(sum, shuffle_down(sum, distance));
        if (rank != 0) continue;
        if (segment == 0) carries[blockIdx.x] = sum;
        else if (segment < segments) out[row] = cast<T>(sum);
    }
}

// Adds the carries of later tiles to the rows that begin in each tile and end in a later one. A warp computes a tile. Returns at once if
// `irregular` is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
add_carries(T* out, const Acc* carries, const __grid_constant__ Matrix m, const i64* tile_rows, i64 tiles, const u32* irregular) {
    if (*irregular == 0) return;
    const i64 tile = (static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x) / 32;
    if (tile >= tiles) return;
    const i64 row = tile_rows[tile + 1] - 1;
    if (row < tile_rows[tile]) return;
    BadNumber bad = {};
    const RowRange range = m.row(row, bad);
    const i64 last = (range.end - 1) / TILE;
    if (range.begin == range.end || last <= tile) return;
    Acc sum = zero();
    for (i64 at = tile + 1 + threadIdx.x % 32; at <= last; at += 32) sum = add(sum, carries[at]);
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum = add(sum, shuffle_down(sum, distance));
    if (threadIdx.x % 32 == 0) out[row] = cast<T>(add(cast<Acc>(out[row]), sum));
}
