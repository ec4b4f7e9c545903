// Kernels of the family `Linalg` for batches of square matrices with at most 32 rows, in C order. A group of GROUP lanes of a warp works on
// one matrix, whose elements are in registers. A block has THREADS threads. Requires types.cuh, warp.cuh and linalg.cuh with TEAM = 1.
//
// GROUP is 8, 16 or 32, and at least the number of rows. OPERATION is INVERSE, DETERMINANT or EIGH, and OPTION a combination of flags of
// linalg.cuh.

using namespace cuprum;
using namespace cuprum::linalg;

// The matrix that a thread's group (GROUP adjacent threads) decomposes, and the rank of the thread in the group.
struct MatrixLane {
    i64 matrix;
    int lane;
    __device__ MatrixLane() {
        const i64 thread = i64(blockIdx.x) * THREADS + threadIdx.x;
        matrix = thread / GROUP;
        lane = static_cast<int>(thread % GROUP);
    }
};

// Returns the value of `x` in lane `lane` of the group. All lanes of the warp must call this function.
template <class U> __device__ inline U shuffle_from_lane(const U& x, int lane) {
    return map_words(x, [=](u32 word) { return __shfl_sync(0xffffffffu, word, lane, GROUP); });
}
// Returns the value of `x` in the lane whose number differs in the bits of `mask`.
template <class U> __device__ inline U shuffle_xor_lane(const U& x, int mask) {
    return map_words(x, [=](u32 word) { return __shfl_xor_sync(0xffffffffu, word, mask, GROUP); });
}
template <class U, class Combine> __device__ inline U group_reduce(U x, Combine combine) {
    #pragma unroll
    for (int step = GROUP / 2; step > 0; step /= 2) x = combine(x, shuffle_xor_lane(x, step));
    return x;
}

// Returns z - x * y.
__device__ inline R subtract_product(R z, R x, R y) { return fma(-x, y, z); }
__device__ inline complex<R> subtract_product(complex<R> z, complex<R> x, complex<R> y) {
    return complex<R>(fma(x.im, y.im, fma(-x.re, y.re, z.re)), fma(-x.im, y.re, fma(-x.re, y.im, z.im)));
}

#if OPERATION == INVERSE || OPERATION == DETERMINANT

// Inverses and determinants by LU decomposition with partial pivoting. Each lane holds a row of the matrix in `a`, and for inverses a row
// of the right-hand sides, at first the identity, in `x`. Rows stay in their lanes: `step` is the elimination step whose pivot is the
// lane's row, or GROUP before that step. Each step rotates the registers of `a`, so that the current column is in register 0.
extern "C" __global__ void __launch_bounds__(THREADS)
decompose(void* out0, void* out1, const T* in, i64 count, int n, Fault* fault, u64 code, u64 op) {
    const MatrixLane member;
    const int lane = member.lane;
    const bool holds_row = member.matrix < count && lane < n;
    const i64 start = member.matrix * n * n + i64(lane) * n;
    T a[GROUP];
    #pragma unroll
    for (int j = 0; j < GROUP; j++) a[j] = holds_row && j < n ? in[start + j] : number(j == lane ? 1 : 0);
#if OPERATION == INVERSE
    T x[GROUP];
    #pragma unroll
    for (int j = 0; j < GROUP; j++) x[j] = number(j == lane ? 1 : 0);
#endif
    int step = lane < n ? GROUP : lane;
    bool singular = false;
    // The element of the factor U on the diagonal, in the row of this lane.
    T own_diagonal = number(1);
    for (int k = 0; k < n; k++) {
        // The pivot is the first of the largest elements. As in LAPACK, NaN is never selected unless no other row is left.
        const R size = magnitude_of_parts(a[0]);
        R most = step < GROUP ? R(-2) : size != size ? R(-1) : size;
        int pivot = lane;
        #pragma unroll
        for (int distance = GROUP / 2; distance > 0; distance /= 2) {
            const R other = shuffle_xor_lane(most, distance);
            const int other_lane = shuffle_xor_lane(pivot, distance);
            if (other > most || (other == most && other_lane < pivot)) {
                most = other;
                pivot = other_lane;
            }
        }
        const T diagonal = shuffle_from_lane(a[0], pivot), column = a[0];
        singular |= is_zero(diagonal);
        if (lane == pivot) {
            step = k;
            own_diagonal = diagonal;
        }
        // Rows that were pivots in earlier steps keep their elements.
        const T factor = step < GROUP || is_zero(diagonal) ? number(0) : divide(column, diagonal);
        #pragma unroll
        for (int j = 1; j < GROUP; j++) {
            const T from_pivot = shuffle_from_lane(a[j], pivot);
            a[j - 1] = step < GROUP ? a[j] : subtract_product(a[j], factor, from_pivot);
        }
        a[GROUP - 1] = column;
#if OPERATION == INVERSE
        #pragma unroll
        for (int j = 0; j < GROUP; j++) {
            const T from_pivot = shuffle_from_lane(x[j], pivot);
            if (step == GROUP) x[j] = subtract_product(x[j], factor, from_pivot);
        }
#endif
    }
#if OPERATION == INVERSE
    // Back substitution starts with the column of the last elimination step, which is in the last register of `a`.
    for (int k = n - 1; k >= 0; k--) {
        const unsigned holders = __ballot_sync(0xffffffffu, step == k);
        const int pivot = __ffs(holders >> (threadIdx.x % 32 / GROUP * GROUP)) - 1;
        const T column = a[GROUP - 1];
        const T diagonal = shuffle_from_lane(column, pivot), reciprocal = divide(number(1), diagonal);
        // The reciprocal of a subnormal number can be infinite.
        const bool has_reciprocal = is_finite(max_part_magnitude(reciprocal));
        #pragma unroll
        for (int j = 0; j < GROUP; j++) {
            if (step == k) x[j] = has_reciprocal ? multiply(x[j], reciprocal) : divide(x[j], diagonal);
            const T solution = shuffle_from_lane(x[j], pivot);
            if (step < k) x[j] = subtract_product(x[j], column, solution);
        }
        #pragma unroll
        for (int j = GROUP - 1; j > 0; j--) a[j] = a[j - 1];
    }
    if (!holds_row) return;
    // The lane whose row was the pivot of step k now holds row k of the inverse.
    T* to = static_cast<T*>(out0) + member.matrix * n * n + i64(step) * n;
    #pragma unroll
    for (int j = 0; j < GROUP; j++) {
        if (j < n) to[j] = singular ? number(not_a_number()) : x[j];
    }
    if (singular && lane == 0) report_fault(fault, code, op, member.matrix, count);
#else
    // The sign of the permutation is that of its number of inversions.
    int inversions = 0;
    #pragma unroll
    for (int other = 0; other < GROUP; other++) {
        const int other_step = shuffle_from_lane(step, other);
        inversions += other < lane && other_step > step;
    }
    inversions = group_reduce(inversions, [](int x, int y) { return x + y; });
    const R size = magnitude(own_diagonal);
#if OPTION & LOG
    const T sign = group_reduce(phase(own_diagonal, size), [](T x, T y) { return multiply(x, y); });
    const R log = group_reduce(R(::log(size)), [](R x, R y) { return x + y; });
    if (!holds_row || lane != 0) return;
    static_cast<T*>(out0)[member.matrix] = singular ? number(0) : scale(sign, inversions % 2 ? R(-1) : R(1));
    static_cast<R*>(out1)[member.matrix] = singular ? -infinity() : log;
#else
    ScaledProduct factor{own_diagonal, 0};
    factor.normalize_mantissa();
    ScaledProduct product = group_reduce(factor, [](ScaledProduct x, const ScaledProduct& y) {
        x.multiply_by(y.mantissa, y.exponent);
        return x;
    });
    if (!holds_row || lane != 0) return;
    product.mantissa = scale(product.mantissa, inversions % 2 ? R(-1) : R(1));
    static_cast<T*>(out0)[member.matrix] = singular ? number(0) : product.to_number();
#endif
#endif
}

#else

// A linear map on the numbers below GROUP, read as polynomials over GF(2): multiplication by x modulo a primitive polynomial. Its powers
// map 1 to every number except 0.
constexpr int POLYNOMIAL = GROUP == 32 ? 0b100101 : GROUP == 16 ? 0b10011 : 0b1011;
__host__ __device__ constexpr int next_number(int number) { return 2 * number >= GROUP ? 2 * number ^ POLYNOMIAL : 2 * number; }
__host__ __device__ constexpr int previous_number(int number) { return (number % 2 ? number ^ POLYNOMIAL : number) / 2; }

// Moves a lane's elements from their slots in this round to their slots in the next round (see `diagonalize_in_registers`).
template <class U> __device__ inline void move_to_next_round_slots(U (&values)[GROUP]) {
    U old[GROUP];
    #pragma unroll
    for (int slot = 0; slot < GROUP; slot++) old[slot] = values[slot];
    #pragma unroll
    for (int slot = 0; slot < GROUP; slot++) values[slot] = old[next_number(slot)];
}

// The rotation of a pair: [p, q] becomes [c p - conj(w) q, c q + w p].
struct PairRotation {
    R c;
    T w;
    // Returns this rotation for the pair in reverse order, [q, p].
    __device__ PairRotation interchanged() const { return PairRotation{c, scale(conj(w), R(-1))}; }
    __device__ void rotate_elements(T& p, T& q) const {
        const T x = p, y = q;
        p = subtract_product(scale(x, c), conj(w), y);
        q = subtract_product(scale(y, c), scale(w, R(-1)), x);
    }
};

// The part of a matrix and of its eigenvectors that a lane holds: see `diagonalize_in_registers`. The diagonal element of the lane's column
// is in `diagonal`, and is 0 in `a`.
struct LaneMatrixPart {
    T a[GROUP];
#if OPTION & VECTORS
    T v[GROUP];
#endif
    R diagonal;
};

// Diagonalises a Hermitian matrix by Jacobi rotations, each for a pair of rows and columns. Returns whether the off-diagonal elements of
// all matrices of the warp are at most `negligible`.
//
// In each round, rows (and columns) p and p ^ `mask` form a pair. A sweep has GROUP - 1 rounds, one for each mask. `mask` starts with 1,
// and next_number returns the next mask.
//
// Lane l holds column l of `a` and row l of `v`. In round k, slot s of a lane holds the element of row (in `v`: column) l ^ M^k s, where
// M is the linear function next_number. So a lane's own row is in slot 0 and that of its partner in slot 1, all pairs are neighbouring
// slots, and the same permutation of slots leads from each round to the next one.
//
// `rotations` has one element for each pair. In round k, pair i consists of rows M^k (2 i) and M^k (2 i + 1).
__device__ inline bool diagonalize_in_registers(LaneMatrixPart& m, PairRotation* rotations, int lane, R negligible) {
    // In round k, M^k maps `position` to the lane number.
    int mask = 1, position = lane;
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        bool rotated = false;
        for (int round = 0; round < GROUP - 1; round++) {
            const R partner_diagonal = shuffle_xor_lane(m.diagonal, mask);
            const T x = m.a[1];
            const bool rotates = magnitude(x) > negligible;
            if (__any_sync(0xffffffffu, rotates)) {
                rotated = true;
                const bool first = position % 2 == 0;
                const int pair = position / 2;
                // `x` is the element of this lane's column in the partner's row. Its conjugate is the element of the partner's column in
                // this lane's row.
                if (first) {
                    PairRotation r{R(1), number(0)};
                    if (rotates) {
                        const JacobiRotation jacobi = jacobi_rotation(m.diagonal, partner_diagonal, conj(x));
                        r = PairRotation{jacobi.c, scale(jacobi.phase, jacobi.s)};
                    }
                    rotations[pair] = r;
                }
                __syncwarp();
                const PairRotation own = first ? rotations[pair] : rotations[pair].interchanged();
                // The pair's own elements are set directly, because the rotation makes their off-diagonal element exactly 0.
                m.diagonal -= real(multiply(own.w, x)) / own.c;
                m.a[1] = number(0);
                // Rotates the columns of the pair. The element of the partner's column in the same row is in the neighbouring slot of the
                // partner's lane.
                T partner[GROUP];
                #pragma unroll
                for (int slot = 0; slot < GROUP; slot++) partner[slot] = shuffle_xor_lane(m.a[slot ^ 1], mask);
                #pragma unroll
                for (int slot = 0; slot < GROUP; slot++) m.a[slot] = subtract_product(scale(m.a[slot], own.c), conj(own.w), partner[slot]);
                // Rotates the rows of `a` and the columns of `v`.
                #pragma unroll
                for (int i = 0; i < GROUP / 2; i++) {
                    const PairRotation stored = rotations[pair ^ i];
                    PairRotation r = first ? stored : stored.interchanged();
#if OPTION & VECTORS
                    r.rotate_elements(m.v[2 * i], m.v[2 * i + 1]);
#endif
                    r.w = conj(r.w);
                    r.rotate_elements(m.a[2 * i], m.a[2 * i + 1]);
                }
                m.a[1] = rotates ? number(0) : x;
                __syncwarp();
            }
            move_to_next_round_slots(m.a);
#if OPTION & VECTORS
            move_to_next_round_slots(m.v);
#endif
            mask = next_number(mask);
            position = previous_number(position);
        }
        if (!rotated) return true;
    }
    return false;
}

extern "C" __global__ void __launch_bounds__(THREADS)
decompose(void* out0, void* out1, const T* in, i64 count, int n, Fault* fault, u64 code, u64 op) {
    __shared__ PairRotation rotations[THREADS / 2];
    const MatrixLane member;
    const int lane = member.lane;
    const bool holds_column = member.matrix < count && lane < n;
    R* values = static_cast<R*>(out0);
    const T* source = in + member.matrix * n * n;
    LaneMatrixPart m;
    R most = 0;
    #pragma unroll
    for (int slot = 0; slot < GROUP; slot++) {
        const int row = lane ^ slot;
        // Only one triangle is read: the upper one if OPTION & FULL, else the lower one.
        T x = number(0);
        if (holds_column && row < n) {
            const bool stored = OPTION & FULL ? row <= lane : row >= lane;
            x = stored ? source[i64(row) * n + lane] : conj(source[i64(lane) * n + row]);
            if (slot == 0) x = number(real(x));
        }
        m.a[slot] = x;
        const R size = max_part_magnitude(x);
        most = most != most || most > size ? most : size;
#if OPTION & VECTORS
        m.v[slot] = number(slot == 0 ? 1 : 0);
#endif
    }
    most = group_reduce(most, [](R x, R y) { return x != x || x > y ? x : y; });
    // Scales the matrix by a power of two as `scale_to_safe_range` does, so that squares of its elements neither overflow nor underflow.
    const bool finite = is_finite(most);
    const int exponent = finite && most > 0 ? -ilogb(most) : 0;
    R squares = 0;
    #pragma unroll
    for (int slot = 0; slot < GROUP; slot++) {
        m.a[slot] = finite ? shift(m.a[slot], exponent) : number(0);
        squares += square(m.a[slot]);
    }
    m.diagonal = real(m.a[0]);
    m.a[0] = number(0);
    const R norm = sqrt(group_reduce(squares, [](R x, R y) { return x + y; }));
    // Elements below the rounding error of the matrix count as zero.
    const R negligible = epsilon() * norm * R(0.1);
    const bool converged = diagonalize_in_registers(m, rotations + threadIdx.x / GROUP * (GROUP / 2), lane, negligible) && finite;
    // The position of the lane's eigenvalue in ascending order. Equal values keep their order.
    int position = 0;
    #pragma unroll
    for (int other = 0; other < GROUP; other++) {
        const R value = shuffle_from_lane(m.diagonal, other);
        position += other < n && (value < m.diagonal || (value == m.diagonal && other < lane));
    }
    if (!converged) position = lane;
    if (holds_column) values[member.matrix * n + position] = converged ? scalbn(m.diagonal, -exponent) : not_a_number();
#if OPTION & VECTORS
    #pragma unroll
    for (int slot = 0; slot < GROUP; slot++) {
        const int to = shuffle_xor_lane(position, slot);
        if (holds_column && (lane ^ slot) < n) {
            static_cast<T*>(out1)[member.matrix * n * n + i64(lane) * n + to] = converged ? m.v[slot] : number(not_a_number());
        }
    }
#endif
    if (!converged && holds_column && lane == 0) report_fault(fault, code, op, member.matrix, count);
}

#endif
