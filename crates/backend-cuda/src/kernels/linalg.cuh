// Decompositions of small matrices by a team of threads: one thread, or all threads of a block. A team works on one matrix at a
// time, in its own memory: registers, shared memory or a workspace. Requires types.cuh.
//
// TEAM is the number of threads of a team: 1, or the block's. FIELD is the element type.

// Values of OPERATION.
#define SOLVE 0
#define INVERSE 1
#define DETERMINANT 2
#define CHOLESKY 3
#define LU 4
#define TRIANGULAR 5
#define QR 6
#define SVD 7
#define EIGH 8

// Bits of OPTION.
#define UPPER 1
#define LOG 1
#define TRANSPOSED 2
#define CONJUGATED 4
#define UNIT 8
#define VECTORS 1
#define FULL 2

namespace cuprum {
namespace linalg {

using T = FIELD;
using R = real_of<T>;

// ---- numbers ----

__device__ inline R conj(R x) { return x; }
__device__ inline complex<R> conj(complex<R> x) { return complex<R>(x.re, -x.im); }
__device__ inline R real(R x) { return x; }
__device__ inline R real(complex<R> x) { return x.re; }
__device__ inline R imaginary(R) { return 0; }
__device__ inline R imaginary(complex<R> x) { return x.im; }
__device__ inline R add(R x, R y) { return x + y; }
__device__ inline complex<R> add(complex<R> x, complex<R> y) { return complex<R>(x.re + y.re, x.im + y.im); }
__device__ inline R subtract(R x, R y) { return x - y; }
__device__ inline complex<R> subtract(complex<R> x, complex<R> y) { return complex<R>(x.re - y.re, x.im - y.im); }
__device__ inline R multiply(R x, R y) { return x * y; }
__device__ inline complex<R> multiply(complex<R> x, complex<R> y) {
    return complex<R>(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
__device__ inline R scale(R x, R factor) { return x * factor; }
__device__ inline complex<R> scale(complex<R> x, R factor) { return complex<R>(x.re * factor, x.im * factor); }
__device__ inline R divide(R x, R y) { return x / y; }
// Divides by Smith's algorithm, which avoids the overflow of |y|^2.
__device__ inline complex<R> divide(complex<R> x, complex<R> y) {
    if (fabs(y.re) >= fabs(y.im)) {
        const R q = y.im / y.re, d = y.re + y.im * q;
        return complex<R>((x.re + x.im * q) / d, (x.im - x.re * q) / d);
    }
    const R q = y.re / y.im, d = y.re * q + y.im;
    return complex<R>((x.re * q + x.im) / d, (x.im * q - x.re) / d);
}
// Returns |re| + |im|. LAPACK selects the pivot with the largest such sum.
__device__ inline R magnitude_of_parts(R x) { return fabs(x); }
__device__ inline R magnitude_of_parts(complex<R> x) { return fabs(x.re) + fabs(x.im); }
// Returns the larger of |re| and |im|, or NaN if one of them is NaN.
__device__ inline R max_part_magnitude(R x) { return fabs(x); }
__device__ inline R max_part_magnitude(complex<R> x) {
    const R a = fabs(x.re), b = fabs(x.im);
    return a != a || a > b ? a : b;
}
__device__ inline R shift(R x, int exponent) { return scalbn(x, exponent); }
__device__ inline complex<R> shift(complex<R> x, int exponent) { return complex<R>(scalbn(x.re, exponent), scalbn(x.im, exponent)); }
__device__ inline R square(R x) { return x * x; }
__device__ inline R square(complex<R> x) { return x.re * x.re + x.im * x.im; }
__device__ inline R magnitude(R x) { return fabs(x); }
__device__ inline R magnitude(complex<R> x) { return hypot(x.re, x.im); }
// Returns x / |x|. The phase of a real number is its sign, also for an infinite one. As in NumPy, NaN has the sign 1.
__device__ inline R phase(R x, R) { return x < 0 ? R(-1) : R(1); }
__device__ inline complex<R> phase(complex<R> x, R size) { return complex<R>(x.re / size, x.im / size); }
__device__ inline bool is_zero(R x) { return x == 0; }
__device__ inline bool is_zero(complex<R> x) { return x.re == 0 && x.im == 0; }
template <class To> __device__ inline To from_real(R x) {
    if constexpr (is_complex<To>) return To(x, R(0));
    else return x;
}
__device__ inline T number(R x) { return from_real<T>(x); }

__device__ inline R epsilon() { return sizeof(R) == 4 ? R(1.1920929e-7) : R(2.220446049250313e-16); }
__device__ inline R not_a_number() { return R(bits_to_f64(0x7ff8000000000000)); }
__device__ inline R infinity() { return R(bits_to_f64(0x7ff0000000000000)); }
__device__ inline bool is_finite(R x) { return x - x == 0; }

// A product as mantissa and binary exponent, which neither overflows nor underflows.
struct ScaledProduct {
    T mantissa;
    i64 exponent;
    __device__ void normalize_mantissa() {
        const R size = max_part_magnitude(mantissa);
        if (size == 0 || !is_finite(size)) return;
        const int by = ilogb(size);
        mantissa = shift(mantissa, -by);
        exponent += by;
    }
    // Multiplies the product by `factor` times 2^`by`. The exponent of a NaN, infinite or zero product has no effect, so such a product is
    // not normalised.
    __device__ void multiply_by(T factor, i64 by) {
        mantissa = multiply(mantissa, factor);
        exponent += by;
        normalize_mantissa();
    }
    __device__ T to_number() const {
        // Clamps the exponent. Beyond this range, the product is 0 or infinite in every dtype.
        return shift(mantissa, static_cast<int>(max(i64(-5000), min(i64(5000), exponent))));
    }
};

// ---- teams ----

#if TEAM == 1
__device__ inline int team_rank() { return 0; }
__device__ inline void sync() {}
// Scratch memory for reductions over a team, the threads that share a matrix. It is in shared memory if the team is a block.
struct TeamReductionScratch {
    R values[1];
};
__device__ inline R team_max(R x, TeamReductionScratch&) { return x; }
__device__ inline R team_sum(R x, TeamReductionScratch&) { return x; }
#else
__device__ inline int team_rank() { return threadIdx.x; }
__device__ inline void sync() { __syncthreads(); }
struct TeamReductionScratch {
    R values[32];
};
template <class Combine> __device__ inline R team_reduce(R x, TeamReductionScratch& shared, Combine combine) {
    for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(~0u, x, step));
    if constexpr (TEAM > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared.values[threadIdx.x / 32] = x;
        __syncthreads();
        x = shared.values[0];
        for (int warp = 1; warp < TEAM / 32; warp++) x = combine(x, shared.values[warp]);
    }
    return x;
}
// Returns the maximum of the values of all threads that share the matrix (the team), or NaN if a value is NaN.
__device__ inline R team_max(R x, TeamReductionScratch& shared) {
    return team_reduce(x, shared, [](R a, R b) { return a != a || a > b ? a : b; });
}
__device__ inline R team_sum(R x, TeamReductionScratch& shared) {
    return team_reduce(x, shared, [](R a, R b) { return a + b; });
}
#endif

// ---- matrices: `down` and `across` are the strides between rows and between columns ----

struct Matrix {
    T* data;
    int rows, columns;
    i64 down, across;
    __device__ T& operator()(int i, int j) const { return data[i * down + j * across]; }
};

// Calls `body(i, j)` for each element in rows first..rows and columns left..columns. The threads that share the matrix (the team) divide
// the calls among themselves.
template <class Body> __device__ inline void for_each_element(int first, int rows, int left, int columns, Body body) {
    const int width = columns - left, height = rows - first;
    if (width <= 0 || height <= 0) return;
    for (int n = team_rank(); n < width * height; n += TEAM) body(first + n / width, left + n % width);
}

// Returns the largest magnitude of a real or imaginary part of an element. The result is NaN if a part is NaN, and infinite if a part is
// infinite.
__device__ inline R largest_magnitude(Matrix a, TeamReductionScratch& shared) {
    R most = 0;
    for_each_element(0, a.rows, 0, a.columns, [&](int i, int j) {
        const R x = max_part_magnitude(a(i, j));
        most = most != most || most > x ? most : x;
    });
    return team_max(most, shared);
}

// Multiplies the matrix by a power of two so that squares of its elements neither overflow nor underflow. Returns the exponent of the
// factor. Results must be divided by this factor. Sets `finite` to false if the matrix has NaN or infinities.
__device__ inline int scale_to_safe_range(Matrix a, TeamReductionScratch& shared, bool& finite) {
    const R most = largest_magnitude(a, shared);
    finite = is_finite(most);
    if (!finite || most == 0) return 0;
    const int exponent = -ilogb(most);
    for_each_element(0, a.rows, 0, a.columns, [&](int i, int j) {
        a(i, j) = shift(a(i, j), exponent);
    });
    sync();
    return exponent;
}

// ---- LU with partial pivoting ----

// Computes the LU decomposition of `a` in place. Step i interchanges row i with row pivots[i]. A column without a non-zero pivot is not
// eliminated.
__device__ inline void lu_decompose(Matrix a, int* pivots, TeamReductionScratch& shared) {
    const int k = a.rows < a.columns ? a.rows : a.columns;
    for (int j = 0; j < k; j++) {
        R most = R(-1);
        for (int i = j + team_rank(); i < a.rows; i += TEAM) {
            const R x = magnitude_of_parts(a(i, j));
            most = x > most ? x : most;
        }
        most = team_max(most, shared);
        // Every thread searches for the first row with the maximum. As in LAPACK, NaN is never selected, because `NaN == most` is false.
        int pivot = j;
        for (int i = j; i < a.rows; i++) {
            if (magnitude_of_parts(a(i, j)) == most) {
                pivot = i;
                break;
            }
        }
        sync();
        if (team_rank() == 0) pivots[j] = pivot;
        if (pivot != j) {
            for (int c = team_rank(); c < a.columns; c += TEAM) {
                const T x = a(j, c);
                a(j, c) = a(pivot, c);
                a(pivot, c) = x;
            }
        }
        sync();
        const T diagonal = a(j, j);
        if (is_zero(diagonal)) continue;
        for (int i = j + 1 + team_rank(); i < a.rows; i += TEAM) a(i, j) = divide(a(i, j), diagonal);
        sync();
        for_each_element(j + 1, a.rows, j + 1, a.columns, [&](int i, int c) { a(i, c) = subtract(a(i, c), multiply(a(i, j), a(j, c))); });
        sync();
    }
}

__device__ inline bool has_zero_on_diagonal(Matrix a) {
    for (int j = 0; j < a.rows; j++) {
        if (is_zero(a(j, j))) return true;
    }
    return false;
}

// Replaces `x` with the solution y of `l @ y = x`. The matrix l is the lower triangle of `a`, with ones on the diagonal if `unit` is true.
__device__ inline void solve_lower_triangular(Matrix a, Matrix x, bool unit) {
    for (int j = 0; j < a.rows; j++) {
        if (!unit) {
            for (int c = team_rank(); c < x.columns; c += TEAM) x(j, c) = divide(x(j, c), a(j, j));
            sync();
        }
        for_each_element(j + 1, a.rows, 0, x.columns, [&](int i, int c) { x(i, c) = subtract(x(i, c), multiply(a(i, j), x(j, c))); });
        sync();
    }
}

// Replaces `x` with the solution y of `u @ y = x`. The matrix u is the upper triangle of `a`, with ones on the diagonal if `unit` is true.
__device__ inline void solve_upper_triangular(Matrix a, Matrix x, bool unit) {
    for (int j = a.rows - 1; j >= 0; j--) {
        if (!unit) {
            for (int c = team_rank(); c < x.columns; c += TEAM) x(j, c) = divide(x(j, c), a(j, j));
            sync();
        }
        for_each_element(0, j, 0, x.columns, [&](int i, int c) { x(i, c) = subtract(x(i, c), multiply(a(i, j), x(j, c))); });
        sync();
    }
}

__device__ inline void interchange_rows(Matrix x, const int* pivots, int count) {
    for (int c = team_rank(); c < x.columns; c += TEAM) {
        for (int i = 0; i < count; i++) {
            const int p = pivots[i];
            const T y = x(i, c);
            x(i, c) = x(p, c);
            x(p, c) = y;
        }
    }
    sync();
}

// ---- Cholesky ----

// Replaces the lower triangle of the Hermitian matrix `a` with the Cholesky factor of `a`. Returns whether `a` is positive definite.
__device__ inline bool cholesky(Matrix a) {
    for (int j = 0; j < a.rows; j++) {
        const R pivot = real(a(j, j));
        if (!(pivot > 0) || !is_finite(pivot)) return false;
        const R root = sqrt(pivot);
        sync();
        if (team_rank() == 0) a(j, j) = number(root);
        for (int i = j + 1 + team_rank(); i < a.rows; i += TEAM) a(i, j) = scale(a(i, j), R(1) / root);
        sync();
        for_each_element(j + 1, a.rows, j + 1, a.rows, [&](int i, int c) {
            if (c <= i) a(i, c) = subtract(a(i, c), multiply(a(i, j), conj(a(c, j))));
        });
        sync();
    }
    return true;
}

// ---- QR by Householder reflections: I - tau v vᴴ with v[j] = 1 ----

// Applies reflection j, stored below the diagonal of `a`, to the columns of `x` from `left` on. One thread takes one column.
__device__ inline void apply_reflection(Matrix a, int j, T tau, Matrix x, int left) {
    for (int c = left + team_rank(); c < x.columns; c += TEAM) {
        T dot = x(j, c);
        for (int i = j + 1; i < a.rows; i++) dot = add(dot, multiply(conj(a(i, j)), x(i, c)));
        dot = multiply(tau, dot);
        x(j, c) = subtract(x(j, c), dot);
        for (int i = j + 1; i < a.rows; i++) x(i, c) = subtract(x(i, c), multiply(a(i, j), dot));
    }
}

// Computes the QR decomposition of `a` in place: r on and above the diagonal, the reflections below the diagonal and in `taus`.
__device__ inline void householder_qr(Matrix a, T* taus, TeamReductionScratch& shared) {
    const int k = a.rows < a.columns ? a.rows : a.columns;
    for (int j = 0; j < k; j++) {
        // Computes the reflection of the column times a power of two, so that squares do not overflow and subnormal elements keep their
        // precision.
        R most_below = 0;
        for (int i = j + 1 + team_rank(); i < a.rows; i += TEAM) {
            const R x = max_part_magnitude(a(i, j));
            most_below = most_below != most_below || most_below > x ? most_below : x;
        }
        most_below = team_max(most_below, shared);
        const R head_part = max_part_magnitude(a(j, j));
        const R most = most_below != most_below || most_below > head_part ? most_below : head_part;
        int exponent = 0;
        R below = 0;
        if (most > 0 && is_finite(most)) {
            exponent = -ilogb(most);
            for (int i = j + 1 + team_rank(); i < a.rows; i += TEAM) below += square(shift(a(i, j), exponent));
            below = team_sum(below, shared);
        }
        const T head = shift(a(j, j), exponent);
        T tau = number(0);
        if (!is_finite(most)) {
            tau = number(not_a_number());
        } else if (most_below > 0 || imaginary(head) != 0) {
            // `below` may be 0 although an element below the diagonal is not, because squares may underflow.
            const R norm = sqrt(square(head) + below);
            const R beta = -copysign(norm, real(head));
            // As in LAPACK's larfg, with `head` as alpha: beta has the opposite sign of alpha's real part, so it is negative if that part
            // is +0. Then tau = (beta - alpha) / beta and v = x / (alpha - beta). The stored tau is the conjugate, because the adjoint of
            // the reflection is applied.
            const T difference = subtract(head, number(beta));
            tau = conj(scale(difference, R(-1) / beta));
            sync();
            for (int i = j + 1 + team_rank(); i < a.rows; i += TEAM) a(i, j) = divide(shift(a(i, j), exponent), difference);
            if (team_rank() == 0) a(j, j) = number(shift(beta, -exponent));
        }
        sync();
        if (team_rank() == 0) taus[j] = tau;
        if (!is_zero(tau)) apply_reflection(a, j, tau, a, j + 1);
        sync();
    }
}

// Computes the columns of q from the reflections in `a` and `taus`. The caller has set `q` to an identity matrix.
__device__ inline void form_q(Matrix a, const T* taus, Matrix q) {
    const int k = a.rows < a.columns ? a.rows : a.columns;
    for (int j = k - 1; j >= 0; j--) {
        // Applies the adjoint of the reflection that `householder_qr` has applied to compute r.
        if (!is_zero(taus[j])) apply_reflection(a, j, conj(taus[j]), q, 0);
        sync();
    }
}

// ---- Jacobi rotations of pairs of columns, in the order of a round-robin tournament ----

// Sets `p` < `q` to the columns of pair number `game` in round `round`. With an even number of `players` (columns), there are players - 1
// rounds of players / 2 disjoint pairs. Each pair occurs once.
__device__ inline void round_robin_pair(int round, int game, int players, int& p, int& q) {
    const int others = players - 1;
    p = game == 0 ? others : (round + game) % others;
    q = (round + others - game) % others;
    if (p > q) {
        const int x = p;
        p = q;
        q = x;
    }
}

constexpr int MAX_SWEEPS = 40;

// The rotation of a pair: [p, q] becomes [c p - s conj(phase) q, s phase p + c q].
struct JacobiRotation {
    R c, s;
    T phase;
};

// Returns the rotation that diagonalises [[p, x], [conj(x), q]].
__device__ inline JacobiRotation jacobi_rotation(R p, R q, T x) {
    const R size = magnitude(x);
    const R theta = (q - p) / (2 * size);
    const R t = (theta >= 0 ? R(1) : R(-1)) / (fabs(theta) + sqrt(1 + theta * theta));
    JacobiRotation r;
    r.c = 1 / sqrt(1 + t * t);
    r.s = t * r.c;
    r.phase = scale(x, 1 / size);
    return r;
}

__device__ inline void apply_rotation(const JacobiRotation& r, T& p, T& q) {
    const T x = p, y = q;
    p = subtract(scale(x, r.c), scale(multiply(conj(r.phase), y), r.s));
    q = add(scale(multiply(r.phase, x), r.s), scale(y, r.c));
}

// Returns the Frobenius norm of a matrix that `scale_to_safe_range` has scaled, so that the squares neither overflow nor underflow.
__device__ inline R frobenius_norm(Matrix a, TeamReductionScratch& shared) {
    R sum = 0;
    for_each_element(0, a.rows, 0, a.columns, [&](int i, int j) { sum += square(a(i, j)); });
    return sqrt(team_sum(sum, shared));
}

// Diagonalises a Hermitian matrix in place, and multiplies `v` by the rotations unless it has no columns. `rotations` holds one
// rotation for each pair. Returns whether the off-diagonal elements vanished.
__device__ inline bool diagonalize_hermitian(Matrix a, Matrix v, JacobiRotation* rotations, TeamReductionScratch& shared) {
    const int n = a.rows, players = n + n % 2, games = players / 2;
    const R norm = frobenius_norm(a, shared);
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        R off = 0;
        for (int round = 0; round < players - 1; round++) {
            for (int game = team_rank(); game < games; game += TEAM) {
                int p, q;
                round_robin_pair(round, game, players, p, q);
                JacobiRotation& r = rotations[game];
                r.s = 0;
                if (q >= n) continue;
                const T x = a(p, q);
                const R size = magnitude(x);
                // Elements below the rounding error of the matrix count as zero.
                if (size > epsilon() * norm * R(0.1)) {
                    r = jacobi_rotation(real(a(p, p)), real(a(q, q)), x);
                    off = off > size ? off : size;
                }
            }
            sync();
            for_each_element(0, games, 0, n, [&](int game, int i) {
                if (rotations[game].s == 0) return;
                int p, q;
                round_robin_pair(round, game, players, p, q);
                apply_rotation(rotations[game], a(i, p), a(i, q));
                if (v.columns > 0) apply_rotation(rotations[game], v(i, p), v(i, q));
            });
            sync();
            for_each_element(0, games, 0, n, [&](int game, int i) {
                if (rotations[game].s == 0) return;
                int p, q;
                round_robin_pair(round, game, players, p, q);
                JacobiRotation r = rotations[game];
                r.phase = conj(r.phase);
                apply_rotation(r, a(p, i), a(q, i));
            });
            sync();
            // Sets the elements that the rotation eliminates to exactly 0, and makes the diagonal elements of the pair real, so that
            // rounding errors do not prevent convergence.
            for (int game = team_rank(); game < games; game += TEAM) {
                if (rotations[game].s == 0) continue;
                int p, q;
                round_robin_pair(round, game, players, p, q);
                a(p, q) = a(q, p) = number(0);
                a(p, p) = number(real(a(p, p)));
                a(q, q) = number(real(a(q, q)));
            }
            sync();
        }
        if (team_max(off, shared) == 0) return true;
    }
    return false;
}

// Number of threads that share a pair of columns: a power of two, at most 32.
__device__ inline int threads_per_column_pair(int games) {
    int size = 1;
    while (size < 32 && size * 2 * games <= TEAM) size *= 2;
    return size;
}

__device__ inline R sum_in_group(R x, int size) {
#if TEAM > 1
    for (int step = size / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
#endif
    return x;
}
__device__ inline complex<R> sum_in_group(complex<R> x, int size) { return complex<R>(sum_in_group(x.re, size), sum_in_group(x.im, size)); }

// Makes the columns of `w` orthogonal by rotations, and multiplies `v` by them unless it has no rows. Columns whose norm is at most
// `negligible`, the rounding error of the matrix, are not rotated. Returns whether all other columns are orthogonal.
__device__ inline bool orthogonalize_columns(Matrix w, Matrix v, R negligible, TeamReductionScratch& shared) {
    const int n = w.columns, players = n + n % 2, games = players / 2;
    const int size = threads_per_column_pair(games), member = team_rank() % size, groups = TEAM / size;
    const R tolerance = epsilon() * sqrt(R(w.rows));
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        R changed = 0;
        for (int round = 0; round < players - 1; round++) {
            // All groups run the same number of iterations, because all threads of a warp must take part in the shuffles.
            for (int first = 0; first < games; first += groups) {
                const int game = first + team_rank() / size;
                int p = 0, q = n;
                if (game < games) round_robin_pair(round, game, players, p, q);
                const bool plays = game < games && q < n;
                R pp = 0, qq = 0;
                T pq = number(0);
                if (plays) {
                    for (int i = member; i < w.rows; i += size) {
                        const T x = w(i, p), y = w(i, q);
                        pp += square(x);
                        qq += square(y);
                        pq = add(pq, multiply(conj(x), y));
                    }
                }
                pp = sum_in_group(pp, size);
                qq = sum_in_group(qq, size);
                pq = sum_in_group(pq, size);
                const R x = sqrt(pp), y = sqrt(qq);
                if (plays && x > negligible && y > negligible && magnitude(pq) > tolerance * x * y) {
                    changed = 1;
                    const JacobiRotation r = jacobi_rotation(pp, qq, pq);
                    for (int i = member; i < w.rows; i += size) apply_rotation(r, w(i, p), w(i, q));
                    for (int i = member; i < v.rows; i += size) apply_rotation(r, v(i, p), v(i, q));
                }
            }
            sync();
        }
        if (team_max(changed, shared) == 0) return true;
    }
    return false;
}

// Fills the columns of `u` from `first` on with vectors of norm 1 that are orthogonal to all other columns. Each new column is a unit
// vector minus its projection onto the earlier columns. The projection is subtracted twice, because one subtraction leaves rounding errors.
__device__ inline void complete_orthonormal_basis(Matrix u, int first, T* dots, TeamReductionScratch& shared) {
    int candidate = 0;
    for (int j = first; j < u.columns; j++) {
        for (; candidate < u.rows; candidate++) {
            for (int i = team_rank(); i < u.rows; i += TEAM) u(i, j) = number(i == candidate ? 1 : 0);
            sync();
            R norm = 0;
            for (int pass = 0; pass < 2; pass++) {
                for (int c = team_rank(); c < j; c += TEAM) {
                    T dot = number(0);
                    for (int i = 0; i < u.rows; i++) dot = add(dot, multiply(conj(u(i, c)), u(i, j)));
                    dots[c] = dot;
                }
                sync();
                for (int i = team_rank(); i < u.rows; i += TEAM) {
                    T x = u(i, j);
                    for (int c = 0; c < j; c++) x = subtract(x, multiply(dots[c], u(i, c)));
                    u(i, j) = x;
                }
                sync();
                R sum = 0;
                for (int i = team_rank(); i < u.rows; i += TEAM) sum += square(u(i, j));
                norm = sqrt(team_sum(sum, shared));
                // A unit vector minus its projection leaves a remainder. `u` has fewer earlier columns than rows, so for some unit vector
                // the squared norm of the remainder is at least 1 / rows.
                if (norm * norm * 2 * u.rows < 1) break;
            }
            if (norm * norm * 2 * u.rows < 1) continue;
            for (int i = team_rank(); i < u.rows; i += TEAM) u(i, j) = scale(u(i, j), 1 / norm);
            sync();
            candidate++;
            break;
        }
    }
}

}  // namespace linalg
}  // namespace cuprum
