// Products of a matrix in compressed row format (CSR) with dense vectors and matrices. Requires sparse.cuh.
//
// TEAM is the number of threads that share a row, a power of 2 up to 32. In products with matrices, each thread computes PER columns. The
// order of each sum depends only on TEAM, the length of the row and, in products with matrices, `max_row_length_per_team`.

using namespace cuprum;

constexpr int THREADS = 256;
constexpr int TEAMS = THREADS / TEAM;
// In products with a vector, a team of up to 32 threads computes each row of at most MAX_TEAM_LENGTH elements. A warp computes longer rows
// of at most MAX_WARP_LENGTH elements, and a block computes all others.
constexpr i64 MAX_TEAM_LENGTH = 32 * TEAM, MAX_WARP_LENGTH = 2048;

// Returns the sum of the products of the elements first, first + Width, first + 2 * Width, ... of a row with elements of `x`.
template <int Width> __device__ inline Acc sum_products_with_stride(const CsrMatrix& m, const T* x, RowRange range, int first, InvalidCsrNumber& bad) {
    Acc sum = zero();
    #pragma unroll 4
    for (i64 at = range.begin + first; at < range.end; at += Width) {
        sum = multiply_add(cast<Acc>(m.values[at]), cast<Acc>(x[m.column_of_element(at, bad)]), sum);
    }
    return sum;
}

template <int Lanes> __device__ inline Acc sum_lanes(Acc sum) {
    #pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) sum = add(sum, shuffle_down(sum, distance));
    return sum;
}

// Writes the product of the matrix with the vector `x` to `out`.
extern "C" __global__ void __launch_bounds__(THREADS)
csr_times_vector(T* __restrict__ out, const I* __restrict__ indptr, const I* __restrict__ indices, const T* __restrict__ values,
                 const T* __restrict__ x, i64 rows, i64 columns, i64 count, Fault* fault, u64 op) {
    __shared__ RowRange long_rows[TEAMS];
    __shared__ alignas(16) unsigned char storage[THREADS / 32 * sizeof(Acc)];
    Acc* const partial = reinterpret_cast<Acc*>(storage);
    const CsrMatrix m = {indptr, indices, values, rows, columns, count};
    const int rank = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const i64 stride = static_cast<i64>(gridDim.x) * TEAMS;
    InvalidCsrNumber bad = {};
    for (i64 first = static_cast<i64>(blockIdx.x) * TEAMS; first < rows; first += stride) {
        const i64 row = first + team;
        const RowRange range = m.row_range(row, bad);
        const i64 length = range.end - range.begin;
        const bool is_long = length > MAX_TEAM_LENGTH, is_very_long = length > MAX_WARP_LENGTH;
        // The team of a longer row adds an empty range here, because all lanes of a warp must take part in the shuffles.
        const Acc sum = sum_lanes<TEAM>(sum_products_with_stride<TEAM>(m, x, is_long ? RowRange{0, 0} : range, rank, bad));
        if (rank == 0 && row < rows && !is_long) out[row] = cast<T>(sum);
        // Reads the range of a long row again. Keeping the range would take more than 32 registers, and fewer blocks would run at a time.
        for (u32 left = __ballot_sync(~0u, rank == 0 && is_long && !is_very_long); left != 0; left &= left - 1) {
            const i64 long_row = first + (threadIdx.x / 32 * 32 + __ffs(static_cast<int>(left)) - 1) / TEAM;
            const Acc total = sum_lanes<32>(sum_products_with_stride<32>(m, x, m.row_range(long_row, bad), threadIdx.x % 32, bad));
            if (threadIdx.x % 32 == 0) out[long_row] = cast<T>(total);
        }
        if (!__syncthreads_or(is_very_long)) continue;
        if (rank == 0) long_rows[team] = is_very_long ? m.row_range(row, bad) : RowRange{0, 0};
        __syncthreads();
        for (int t = 0; t < TEAMS; t++) {
            const RowRange shared = long_rows[t];
            if (shared.begin == shared.end) continue;
            Acc total = sum_lanes<32>(sum_products_with_stride<THREADS>(m, x, shared, threadIdx.x, bad));
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
            __syncthreads();
            if (threadIdx.x == 0) {
                total = partial[0];
                for (int warp = 1; warp < THREADS / 32; warp++) total = add(total, partial[warp]);
                out[first + t] = cast<T>(total);
            }
            __syncthreads();
        }
        __syncthreads();
    }
    m.report_invalid_number(bad, fault, op);
}

// Adds products of a row with PER columns of `b`, from `column` on, to `sums`. The elements are first, first + step, first + 2 * step, ...
__device__ inline void add_products(const CsrMatrix& m, const T* b, i64 width, i64 column, RowRange range, i64 first, i64 step, Acc (&sums)[PER],
                                    InvalidCsrNumber& bad) {
    #pragma unroll 4
    for (i64 at = range.begin + first; at < range.end; at += step) {
        const Acc value = cast<Acc>(m.values[at]);
        const T* const dense = b + m.column_of_element(at, bad) * width + column;
        #pragma unroll
        for (int k = 0; k < PER; k++) {
            if (column + k * TEAM < width) sums[k] = multiply_add(value, cast<Acc>(dense[k * TEAM]), sums[k]);
        }
    }
}

// Writes the product of the matrix with the dense matrix `b` of `width` columns in C order to `out`. The threads of a team compute adjacent
// columns. Blocks along y compute TEAM * PER columns each. A team computes each row of at most `max_row_length_per_team` elements, and a
// block each longer row.
extern "C" __global__ void __launch_bounds__(THREADS)
csr_times_matrix(T* __restrict__ out, const I* __restrict__ indptr, const I* __restrict__ indices, const T* __restrict__ values,
                 const T* __restrict__ b, i64 rows, i64 columns, i64 count, i64 width, i64 max_row_length_per_team, Fault* fault, u64 op) {
    __shared__ RowRange long_rows[TEAMS];
    __shared__ alignas(16) unsigned char storage[THREADS * sizeof(Acc)];
    Acc* const partial = reinterpret_cast<Acc*>(storage);
    const CsrMatrix m = {indptr, indices, values, rows, columns, count};
    const int rank = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const i64 stride = static_cast<i64>(gridDim.x) * TEAMS;
    InvalidCsrNumber bad = {};
    for (i64 tile = static_cast<i64>(blockIdx.y) * (TEAM * PER); tile < width; tile += static_cast<i64>(gridDim.y) * (TEAM * PER)) {
        const i64 column = tile + rank;
        for (i64 first = static_cast<i64>(blockIdx.x) * TEAMS; first < rows; first += stride) {
            const i64 row = first + team;
            const RowRange range = m.row_range(row, bad);
            const bool is_long = range.end - range.begin > max_row_length_per_team;
            Acc sums[PER];
            #pragma unroll
            for (int k = 0; k < PER; k++) sums[k] = zero();
            if (!is_long) {
                add_products(m, b, width, column, range, 0, 1, sums, bad);
                #pragma unroll
                for (int k = 0; k < PER; k++) {
                    if (row < rows && column + k * TEAM < width) out[row * width + column + k * TEAM] = cast<T>(sums[k]);
                }
            }
            if (!__syncthreads_or(is_long)) continue;
            if (rank == 0) long_rows[team] = is_long ? range : RowRange{0, 0};
            __syncthreads();
            for (int t = 0; t < TEAMS; t++) {
                const RowRange shared = long_rows[t];
                if (shared.begin == shared.end) continue;
                #pragma unroll
                for (int k = 0; k < PER; k++) sums[k] = zero();
                add_products(m, b, width, column, shared, team, TEAMS, sums, bad);
                #pragma unroll
                for (int k = 0; k < PER; k++) {
                    partial[threadIdx.x] = sums[k];
                    __syncthreads();
                    if (team == 0 && column + k * TEAM < width) {
                        Acc total = partial[rank];
                        for (int other = 1; other < TEAMS; other++) total = add(total, partial[other * TEAM + rank]);
                        out[(first + t) * width + column + k * TEAM] = cast<T>(total);
                    }
                    __syncthreads();
                }
            }
            __syncthreads();
        }
    }
    m.report_invalid_number(bad, fault, op);
}
