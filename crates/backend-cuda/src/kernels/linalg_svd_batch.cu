// The last step of singular value decompositions by eigenvectors (svd_batch.rs), one block for each matrix. Requires types.cuh and
// linalg.cuh. FIELD is the type of the computation, in double precision. TEAM is the number of threads per block.

using namespace cuprum;
using namespace cuprum::linalg;

__device__ inline float narrow(double x) { return static_cast<float>(x); }
__device__ inline complex<f32> narrow(complex<f64> x) { return complex<f32>(static_cast<f32>(x.re), static_cast<f32>(x.im)); }
using Narrow = decltype(narrow(T()));

__device__ inline R warp_sum(R x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
__device__ inline complex<R> warp_sum(complex<R> x) { return complex<R>(warp_sum(x.re), warp_sum(x.im)); }

// Sets dots[c] to the scalar product of columns `c` and `j` of `u`, for each c < j.
__device__ inline void dot_with_earlier_columns(Matrix u, int j, T* dots) {
    for (int c = team_rank() / 32; c < j; c += TEAM / 32) {
        T sum = number(0);
        for (int i = team_rank() % 32; i < u.rows; i += 32) sum = add(sum, multiply(conj(u(i, c)), u(i, j)));
        sum = warp_sum(sum);
        if (team_rank() % 32 == 0) dots[c] = sum;
    }
    sync();
}

// Subtracts the projection onto the columns before column `j` from this column. Returns the norm of the remainder.
__device__ inline R subtract_projection(Matrix u, int j, T* dots, TeamReductionScratch& shared) {
    dot_with_earlier_columns(u, j, dots);
    R sum = 0;
    for (int i = team_rank(); i < u.rows; i += TEAM) {
        T x = u(i, j);
        for (int c = 0; c < j; c++) x = subtract(x, multiply(dots[c], u(i, c)));
        u(i, j) = x;
        sum += square(x);
    }
    return sqrt(team_sum(sum, shared));
}

__device__ inline void scale_column(Matrix u, int j, R factor) {
    for (int i = team_rank(); i < u.rows; i += TEAM) u(i, j) = scale(u(i, j), factor);
    sync();
}

// Makes the unit columns of `u` from `first` on orthogonal to all columns before them. Multiplies `lengths` by the norms of the remainders.
// A column without a remainder is replaced by an orthogonalised unit vector, and its length becomes 0.
__device__ inline void orthogonalize_last_columns(Matrix u, int first, R* lengths, T* dots, TeamReductionScratch& shared) {
    int candidate = 0;
    for (int j = first; j < u.columns; j++) {
        R length = lengths[j];
        bool done = false;
        if (length > 0) {
            // A column is orthogonal once a subtraction leaves most of it. If four subtractions do not suffice, the column consists of
            // rounding errors.
            for (int pass = 0; pass < 4 && !done; pass++) {
                const R rest = subtract_projection(u, j, dots, shared);
                if (!(rest > 1e-8)) break;
                scale_column(u, j, 1 / rest);
                length *= rest;
                done = rest > R(0.7);
            }
        }
        for (; !done && candidate < u.rows; candidate++) {
            length = 0;
            for (int i = team_rank(); i < u.rows; i += TEAM) u(i, j) = number(i == candidate ? 1 : 0);
            sync();
            // `u` has at most as many columns as rows, so the squared remainder of some unit vector is at least 1 / rows.
            const R rest = subtract_projection(u, j, dots, shared);
            if (rest * rest * 2 * u.rows < 1) continue;
            scale_column(u, j, 1 / rest);
            scale_column(u, j, 1 / subtract_projection(u, j, dots, shared));
            done = true;
        }
        sync();
        if (team_rank() == 0) lengths[j] = length;
        sync();
    }
}

// Returns the position of element `n` in the sorted `values`, in descending order. Equal values keep their order.
__device__ inline int descending_position(const R* values, int count, int n) {
    int before = 0;
    for (int other = 0; other < count; other++) before += values[other] > values[n] || (values[other] == values[n] && other < n);
    return before;
}

// Computes singular values in descending order, and singular vectors, from `rotated`, whose columns are the products of the matrix and its
// right singular vectors `v`. All matrices are column-major. `u`, (rows, columns), and `vh` may be null. `vh` receives the conjugates of
// the columns of `v` in the order of the singular values; read as row-major, it is the conjugate transpose. `work` has the size of
// `rotated`.
extern "C" __global__ void __launch_bounds__(TEAM)
singular_vectors(Narrow* u, float* s, Narrow* vh, const T* rotated, T* work, const T* v, i64 count, int rows, int columns) {
    __shared__ R norms[MAX_COLUMNS], lengths[MAX_COLUMNS];
    __shared__ int source[MAX_COLUMNS], target[MAX_COLUMNS];
    __shared__ T dots[MAX_COLUMNS];
    __shared__ TeamReductionScratch shared;
    for (i64 index = blockIdx.x; index < count; index += gridDim.x) {
        const T* from = rotated + index * rows * columns;
        for (int j = team_rank() / 32; j < columns; j += TEAM / 32) {
            R sum = 0;
            for (int i = team_rank() % 32; i < rows; i += 32) sum += square(from[i64(j) * rows + i]);
            sum = warp_sum(sum);
            if (team_rank() % 32 == 0) norms[j] = sqrt(sum);
        }
        sync();
        for (int j = team_rank(); j < columns; j += TEAM) {
            const int to = descending_position(norms, columns, j);
            source[to] = j;
            lengths[to] = norms[j];
        }
        sync();
        if (u) {
            Matrix left{work + index * rows * columns, rows, columns, 1, rows};
            for (i64 n = team_rank(); n < i64(rows) * columns; n += TEAM) {
                const int j = static_cast<int>(n / rows);
                left.data[n] = lengths[j] > 0 ? scale(from[i64(source[j]) * rows + n % rows], 1 / lengths[j]) : number(0);
            }
            sync();
            // The scalar product of two unit columns has an error of about 2e-16 times the squared largest norm, divided by the norms of
            // both columns. If both norms are above 1e-4 of the largest norm, the error is below 2e-8. Only the other columns are
            // orthogonalised again.
            int first = 0;
            while (first < columns && lengths[first] > R(1e-4) * lengths[0]) first++;
            sync();
            orthogonalize_last_columns(left, first, lengths, dots, shared);
        }
        for (int j = team_rank(); j < columns; j += TEAM) {
            target[j] = descending_position(lengths, columns, j);
            s[index * columns + target[j]] = narrow(lengths[j]);
        }
        sync();
        if (u) {
            for (i64 n = team_rank(); n < i64(rows) * columns; n += TEAM) {
                const int to = target[n / rows];
                u[index * rows * columns + i64(to) * rows + n % rows] = narrow(work[index * rows * columns + n]);
            }
            for (i64 n = team_rank(); n < i64(columns) * columns; n += TEAM) {
                const int j = static_cast<int>(n / columns), to = target[j];
                const T x = v[index * columns * columns + i64(source[j]) * columns + n % columns];
                vh[index * columns * columns + i64(to) * columns + n % columns] = narrow(conj(x));
            }
        }
        sync();
    }
}
