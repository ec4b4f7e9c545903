// Kernels of the family `Linalg` for batches of matrices in C order, one team for each matrix. Requires types.cuh and linalg.cuh.
//
// A team is the group of threads that share a matrix. OPERATION is one of the operation constants, such as SOLVE, and OPTION a combination
// of flags, such as UPPER. The inputs are matrices `a` (m, n) and, for linear systems, `b` (n, k). If TEAM is 1, ROWS, COLUMNS and RIGHT
// are the extents, and ARENA is the size of a team's memory in bytes. If TEAM is greater than 1, SHARED is 1 if the team's memory is shared
// memory, and 0 if it is in the workspace.

using namespace cuprum;
using namespace cuprum::linalg;

// An allocator over the memory of a team. It returns consecutive blocks of this memory and never frees them.
struct TeamArena {
    char* next;
    template <class U> __device__ U* allocate(i64 count) {
        U* start = reinterpret_cast<U*>(next);
        next += (count * sizeof(U) + 15) / 16 * 16;
        return start;
    }
    // Allocates a matrix with contiguous rows. An odd distance between rows avoids bank conflicts in shared memory.
    __device__ Matrix allocate_matrix(int rows, int columns) {
        const int pitch = TEAM == 1 ? columns : columns | 1;
        return Matrix{allocate<T>(i64(rows) * pitch), rows, columns, pitch, 1};
    }
    // Allocates a matrix with contiguous columns, for Jacobi rotations in which several threads share a pair of columns.
    __device__ Matrix allocate_column_major(int rows, int columns) {
        const int pitch = TEAM == 1 ? rows : rows | 1;
        return Matrix{allocate<T>(i64(columns) * pitch), rows, columns, 1, pitch};
    }
};

__device__ inline void load_matrix(Matrix to, const T* from) {
    for_each_element(0, to.rows, 0, to.columns, [&](int i, int j) { to(i, j) = from[i64(i) * to.columns + j]; });
    sync();
}

__device__ inline void store_matrix(T* to, Matrix from) {
    for_each_element(0, from.rows, 0, from.columns, [&](int i, int j) { to[i64(i) * from.columns + j] = from(i, j); });
}

template <class U> __device__ inline void fill_array(U* to, i64 count, U value) {
    for (i64 n = team_rank(); n < count; n += TEAM) to[n] = value;
}

// Returns the position of element `n` in the sorted `values`, in descending or ascending order. Equal values keep their order.
__device__ inline int sorted_position(const R* values, int count, int n, bool descending) {
    int before = 0;
    for (int other = 0; other < count; other++) {
        const R x = values[other], y = values[n];
        before += (descending ? x > y : x < y) || (x == y && other < n);
    }
    return before;
}

// Computes the results for matrix `index` of the batch. Returns false if the matrix has no result.
__device__ inline bool compute(void* out0, void* out1, void* out2, const T* a, const T* b, i64 index, int m, int n, int k, TeamArena arena,
                               TeamReductionScratch& shared) {
    const T* source = a + index * m * n;
#if OPERATION == LU || OPERATION == QR || OPERATION == SVD
    const int least = m < n ? m : n;
#endif

#if OPERATION == SOLVE || OPERATION == INVERSE
    Matrix factors = arena.allocate_matrix(n, n);
    Matrix x = arena.allocate_matrix(n, k);
    int* pivots = arena.allocate<int>(n);
    T* out = static_cast<T*>(out0) + index * n * k;
    load_matrix(factors, source);
#if OPERATION == SOLVE
    load_matrix(x, b + index * n * k);
#else
    for_each_element(0, n, 0, n, [&](int i, int j) { x(i, j) = number(i == j ? 1 : 0); });
    sync();
#endif
    lu_decompose(factors, pivots, shared);
    if (has_zero_on_diagonal(factors)) {
        fill_array(out, i64(n) * k, number(not_a_number()));
        return false;
    }
    interchange_rows(x, pivots, n);
    solve_lower_triangular(factors, x, true);
    solve_upper_triangular(factors, x, false);
    store_matrix(out, x);
    return true;

#elif OPERATION == DETERMINANT
    Matrix factors = arena.allocate_matrix(n, n);
    int* pivots = arena.allocate<int>(n);
    load_matrix(factors, source);
    lu_decompose(factors, pivots, shared);
    if (team_rank() == 0) {
        T sign = number(1);
        ScaledProduct product{number(1), 0};
        R log = 0;
        bool odd = false, vanishes = false;
        for (int i = 0; i < n; i++) {
            const T x = factors(i, i);
            const R size = magnitude(x);
            odd ^= pivots[i] != i;
            vanishes |= size == 0;
            ScaledProduct factor{x, 0};
            factor.normalize_mantissa();
            product.multiply_by(factor.mantissa, factor.exponent);
            sign = multiply(sign, phase(x, size));
            log += ::log(size);
        }
        if (odd) {
            sign = scale(sign, R(-1));
            product.mantissa = scale(product.mantissa, R(-1));
        }
        if (vanishes) {
            sign = product.mantissa = number(0);
            log = -infinity();
        }
#if OPTION & LOG
        static_cast<T*>(out0)[index] = sign;
        static_cast<R*>(out1)[index] = log;
#else
        static_cast<T*>(out0)[index] = product.to_number();
#endif
    }
    return true;

#elif OPERATION == CHOLESKY
    Matrix factor = arena.allocate_matrix(n, n);
    T* out = static_cast<T*>(out0) + index * n * n;
    for_each_element(0, n, 0, n, [&](int i, int j) {
#if OPTION & UPPER
        factor(i, j) = conj(source[i64(j) * n + i]);
#else
        factor(i, j) = source[i64(i) * n + j];
#endif
    });
    sync();
    if (!cholesky(factor)) {
        fill_array(out, i64(n) * n, number(not_a_number()));
        return false;
    }
    for_each_element(0, n, 0, n, [&](int i, int j) {
#if OPTION & UPPER
        out[i64(i) * n + j] = i <= j ? conj(factor(j, i)) : number(0);
#else
        out[i64(i) * n + j] = i >= j ? factor(i, j) : number(0);
#endif
    });
    return true;

#elif OPERATION == LU
    Matrix factors = arena.allocate_matrix(m, n);
    int* pivots = arena.allocate<int>(least);
    load_matrix(factors, source);
    lu_decompose(factors, pivots, shared);
    store_matrix(static_cast<T*>(out0) + index * m * n, factors);
    for (int i = team_rank(); i < least; i += TEAM) static_cast<int*>(out1)[index * least + i] = pivots[i];
    return true;

#elif OPERATION == TRIANGULAR
    Matrix factor = arena.allocate_matrix(n, n);
    Matrix x = arena.allocate_matrix(n, k);
    T* out = static_cast<T*>(out0) + index * n * k;
    for_each_element(0, n, 0, n, [&](int i, int j) {
        T value = OPTION & TRANSPOSED ? source[i64(j) * n + i] : source[i64(i) * n + j];
#if OPTION & CONJUGATED
        value = conj(value);
#endif
        factor(i, j) = value;
    });
    load_matrix(x, b + index * n * k);
    if (!(OPTION & UNIT) && has_zero_on_diagonal(factor)) {
        fill_array(out, i64(n) * k, number(not_a_number()));
        return false;
    }
    // A transposed upper triangle is solved as a lower triangle, and vice versa.
    if (((OPTION & UPPER) != 0) == ((OPTION & TRANSPOSED) != 0)) solve_lower_triangular(factor, x, OPTION & UNIT);
    else solve_upper_triangular(factor, x, OPTION & UNIT);
    store_matrix(out, x);
    return true;

#elif OPERATION == QR
    // OPTION & VECTORS requests the factor q of a = q @ r. OPTION & FULL requests all m columns of q and all m rows of r.
    Matrix factors = arena.allocate_matrix(m, n);
    T* taus = arena.allocate<T>(least);
    load_matrix(factors, source);
    householder_qr(factors, taus, shared);
    const int height = OPTION & FULL ? m : least;
    T* r = static_cast<T*>(OPTION & VECTORS ? out1 : out0) + index * height * n;
    for_each_element(0, height, 0, n, [&](int i, int j) { r[i64(i) * n + j] = i <= j ? factors(i, j) : number(0); });
#if OPTION & VECTORS
    Matrix q = arena.allocate_matrix(m, height);
    for_each_element(0, m, 0, height, [&](int i, int j) { q(i, j) = number(i == j ? 1 : 0); });
    sync();
    form_q(factors, taus, q);
    store_matrix(static_cast<T*>(out0) + index * m * height, q);
#endif
    return true;

#elif OPERATION == SVD
    // The adjoint of a wide matrix is tall, and is decomposed in its place.
    const bool wide = m < n;
    const int rows = wide ? n : m, columns = least;
    Matrix w = arena.allocate_column_major(rows, columns);
    Matrix v = arena.allocate_column_major(columns, OPTION & VECTORS ? columns : 0);
    R* values = arena.allocate<R>(columns);
    for_each_element(0, rows, 0, columns, [&](int i, int j) { w(i, j) = wide ? conj(source[i64(j) * n + i]) : source[i64(i) * n + j]; });
    for_each_element(0, columns, 0, v.columns, [&](int i, int j) { v(i, j) = number(i == j ? 1 : 0); });
    sync();
    bool finite;
    const int exponent = scale_to_safe_range(w, shared, finite);
    Matrix rotated = v;
    rotated.rows = OPTION & VECTORS ? columns : 0;
    R* s = static_cast<R*>(OPTION & VECTORS ? out1 : out0) + index * columns;
    const R negligible = finite ? epsilon() * frobenius_norm(w, shared) : R(0);
    const bool converged = finite && orthogonalize_columns(w, rotated, negligible, shared);
    sync();
    for (int j = team_rank(); j < columns; j += TEAM) {
        R sum = 0;
        for (int i = 0; i < rows; i++) sum += square(w(i, j));
        values[j] = converged ? sqrt(sum) : not_a_number();
    }
    sync();
    for (int j = team_rank(); j < columns; j += TEAM) s[converged ? sorted_position(values, columns, j, true) : j] = scalbn(values[j], -exponent);
#if OPTION & VECTORS
    // The left singular vectors of the tall matrix: the normalised columns of `w` in the order of the singular values, then columns that
    // complete the basis.
    const int width = OPTION & FULL ? rows : columns;
    Matrix u = arena.allocate_matrix(rows, width);
    T* dots = arena.allocate<T>(width);
    int rank = 0;
    for (int j = 0; j < columns; j++) rank += values[j] > negligible;
    if (converged) {
        for_each_element(0, rows, 0, columns, [&](int i, int j) {
            if (values[j] > negligible) u(i, sorted_position(values, columns, j, true)) = scale(w(i, j), 1 / values[j]);
        });
        sync();
        complete_orthonormal_basis(u, rank, dots, shared);
        sync();
    }
    const int height_left = OPTION & FULL ? m : least, height_right = OPTION & FULL ? n : least;
    T* left = static_cast<T*>(out0) + index * m * height_left;
    T* right = static_cast<T*>(out2) + index * height_right * n;
    const T none = number(not_a_number());
    // For a wide matrix, the columns of `v` are the left singular vectors, and the columns of `u` the right ones.
    for_each_element(0, rows, 0, width, [&](int i, int j) {
        const T x = converged ? u(i, j) : none;
        if (wide) right[i64(j) * n + i] = conj(x);
        else left[i64(i) * height_left + j] = x;
    });
    for_each_element(0, columns, 0, columns, [&](int i, int j) {
        const int to = converged ? sorted_position(values, columns, j, true) : j;
        const T x = converged ? v(i, j) : none;
        if (wide) left[i64(i) * height_left + to] = x;
        else right[i64(to) * n + i] = conj(x);
    });
#endif
    return converged;

#elif OPERATION == EIGH
    Matrix w = arena.allocate_matrix(n, n);
    Matrix v = arena.allocate_matrix(n, OPTION & VECTORS ? n : 0);
    JacobiRotation* rotations = arena.allocate<JacobiRotation>((n + 1) / 2);
    R* values = arena.allocate<R>(n);
    // Only one triangle is read: the upper one if OPTION & FULL, else the lower one.
    for_each_element(0, n, 0, n, [&](int i, int j) {
        const bool stored = OPTION & FULL ? i <= j : i >= j;
        const T x = stored ? source[i64(i) * n + j] : conj(source[i64(j) * n + i]);
        w(i, j) = i == j ? number(real(x)) : x;
        if (OPTION & VECTORS) v(i, j) = number(i == j ? 1 : 0);
    });
    sync();
    bool finite;
    const int exponent = scale_to_safe_range(w, shared, finite);
    const bool converged = finite && diagonalize_hermitian(w, v, rotations, shared);
    sync();
    for (int j = team_rank(); j < n; j += TEAM) values[j] = converged ? real(w(j, j)) : not_a_number();
    sync();
    R* eigenvalues = static_cast<R*>(out0) + index * n;
    for (int j = team_rank(); j < n; j += TEAM) eigenvalues[converged ? sorted_position(values, n, j, false) : j] = scalbn(values[j], -exponent);
#if OPTION & VECTORS
    T* vectors = static_cast<T*>(out1) + index * n * n;
    for_each_element(0, n, 0, n, [&](int i, int j) {
        vectors[i64(i) * n + (converged ? sorted_position(values, n, j, false) : j)] = converged ? v(i, j) : number(not_a_number());
    });
#endif
    return converged;
#endif
}

extern "C" __global__ void decompose(void* out0, void* out1, void* out2, const T* a, const T* b, char* workspace, i64 count, int m, int n,
                                     int k, i64 arena, Fault* fault, u64 code, u64 op) {
#if TEAM == 1
    alignas(16) char memory[ARENA];
    TeamReductionScratch shared;
    i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    const i64 step = i64(gridDim.x) * blockDim.x;
#else
#if SHARED
    extern __shared__ int4 dynamic_memory[];
    char* memory = reinterpret_cast<char*>(dynamic_memory);
#else
    char* memory = workspace + i64(blockIdx.x) * arena;
#endif
    __shared__ TeamReductionScratch shared;
    i64 index = blockIdx.x;
    const i64 step = gridDim.x;
#endif
    for (; index < count; index += step) {
#if TEAM == 1
        const bool done = compute(out0, out1, out2, a, b, index, ROWS, COLUMNS, RIGHT, TeamArena{memory}, shared);
#else
        const bool done = compute(out0, out1, out2, a, b, index, m, n, k, TeamArena{memory}, shared);
#endif
        if (!done && team_rank() == 0) report_fault(fault, code, op, index, count);
        sync();
    }
}
