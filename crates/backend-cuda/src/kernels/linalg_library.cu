// Kernels that prepare the inputs and check the results of cuSOLVER and cuBLAS, for `count` matrices at equal distances in memory. Requires
// types.cuh and linalg.cuh, with a TEAM of 1.
//
// FIELD is the element type. Blocks along x share a matrix. The block index along y is the index of the matrix.

using namespace cuprum;
using namespace cuprum::linalg;

#define THREADS 256
#define FOR_EACH_MATRIX(index, count) for (i64 index = blockIdx.y; index < count; index += gridDim.y)
#define FOR_EACH_ELEMENT(n, size) \
    for (i64 n = i64(blockIdx.x) * THREADS + threadIdx.x; n < size; n += i64(gridDim.x) * THREADS)

// Returns the bits of a magnitude as an integer. Integers compare as the magnitudes do, and NaN is above infinity.
__device__ inline u64 magnitude_bits(float x) { return __float_as_uint(fabsf(x)); }
__device__ inline u64 magnitude_bits(double x) { return __double_as_longlong(fabs(x)); }
__device__ inline R magnitude_from_bits(u64 bits) {
    if constexpr (sizeof(R) == 4) return __uint_as_float(static_cast<unsigned>(bits));
    else return __longlong_as_double(bits);
}
// Returns whether a matrix is free of NaN and infinities. `largest` is the largest magnitude in the matrix, as bits.
__device__ inline bool has_finite_elements(u64 largest) { return is_finite(magnitude_from_bits(largest)); }

// Returns the exponent e of the power of two by which a matrix is divided, so that products of its elements neither overflow nor underflow.
// For most matrices e is 0.
__device__ inline int scale_exponent(u64 largest) {
    const int limit = sizeof(R) == 4 ? 30 : 300;
    const R size = magnitude_from_bits(largest);
    if (size == 0 || !is_finite(size)) return 0;
    const int exponent = ilogb(size);
    return exponent > limit || exponent < -limit ? exponent : 0;
}

// For each column-major matrix, raises the number in `largest` to the largest magnitude of a real or imaginary part, as bits. `part`
// selects the elements: all (0), the lower (1) or the upper (2) triangle. For triangles, the imaginary part of the diagonal is ignored.
extern "C" __global__ void __launch_bounds__(THREADS)
find_largest_magnitudes(u64* largest, const T* a, i64 count, i64 rows, i64 columns, int part) {
    FOR_EACH_MATRIX(index, count) {
        const T* matrix = a + index * rows * columns;
        u64 most = 0;
        FOR_EACH_ELEMENT(n, rows * columns) {
            const i64 i = n % rows, j = n / rows;
            if ((part == 1 && i < j) || (part == 2 && i > j)) continue;
            const T x = part != 0 && i == j ? number(real(matrix[n])) : matrix[n];
            const u64 re = magnitude_bits(real(x)), im = magnitude_bits(imaginary(x));
            most = max(most, max(re, im));
        }
        for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(~0u, most, step));
        if (threadIdx.x % 32 == 0 && most != 0) atomicMax(reinterpret_cast<unsigned long long*>(largest + index), most);
    }
}

// Scales matrices into the range that the library routines support. A matrix with NaN or infinities becomes the identity, for which every
// routine terminates.
extern "C" __global__ void __launch_bounds__(THREADS)
scale_to_library_range(const u64* largest, T* a, i64 count, i64 rows, i64 columns) {
    FOR_EACH_MATRIX(index, count) {
        T* matrix = a + index * rows * columns;
        const bool finite = has_finite_elements(largest[index]);
        const int exponent = scale_exponent(largest[index]);
        if (finite && exponent == 0) continue;
        FOR_EACH_ELEMENT(n, rows * columns) matrix[n] = finite ? shift(matrix[n], -exponent) : number(n % rows == n / rows ? 1 : 0);
    }
}

// Multiplies the `length` values of each matrix by the factor that `scale_to_library_range` divided the matrix by.
extern "C" __global__ void __launch_bounds__(THREADS)
restore_scale(const u64* largest, R* values, i64 count, i64 length) {
    FOR_EACH_MATRIX(index, count) {
        const int exponent = scale_exponent(largest[index]);
        if (exponent == 0) continue;
        FOR_EACH_ELEMENT(n, length) values[index * length + n] = scalbn(values[index * length + n], exponent);
    }
}

// Reports the first matrix that has no result. `largest` holds the maxima of the inputs, `info` the routine's results, and `diagonal` the
// factors, (n, n). Each of these addresses may be null. A matrix has no result if an element is not finite (fault code `input_code`) or its
// `info` is not 0. If `checks` is 1, a matrix with a zero on the diagonal of its factor has no result either. If `checks` is 2, every
// number on this diagonal must be positive. The grid has one block.
extern "C" __global__ void __launch_bounds__(THREADS)
report_failures(const u64* largest, const int* info, const T* diagonal, i64 count, i64 n, int checks, Fault* fault, u64 input_code,
                u64 code, u64 op) {
    __shared__ unsigned long long first;
    if (threadIdx.x == 0) first = ~0ull;
    __syncthreads();
    for (i64 index = threadIdx.x; index < count; index += THREADS) {
        const bool finite = !largest || has_finite_elements(largest[index]);
        if (!finite || (info && info[index] != 0)) atomicMin(&first, static_cast<unsigned long long>(index));
    }
    if (checks != 0) {
        for (i64 at = threadIdx.x; at < count * n; at += THREADS) {
            const T x = diagonal[at / n * n * n + at % n * (n + 1)];
            if (checks == 1 ? is_zero(x) : !(real(x) > 0) || !is_finite(real(x))) atomicMin(&first, static_cast<unsigned long long>(at / n));
        }
    }
    __syncthreads();
    if (threadIdx.x != 0 || first == ~0ull) return;
    const bool finite = !largest || has_finite_elements(largest[first]);
    report_fault(fault, finite ? code : input_code, op, static_cast<i64>(first), count);
}

// Writes the addresses of matrices that are at equal distances.
extern "C" __global__ void __launch_bounds__(THREADS)
list_matrix_addresses(u64* out, u64 start, u64 step, i64 count) {
    FOR_EACH_ELEMENT(n, count) out[n] = start + u64(n) * step;
}

// Converts pivots (row indices, counted from 1) from 32 to 64 bits.
extern "C" __global__ void __launch_bounds__(THREADS)
widen_pivots(i64* out, const int* pivots, i64 total) {
    FOR_EACH_ELEMENT(n, total) out[n] = pivots[n];
}

extern "C" __global__ void __launch_bounds__(THREADS)
fill_identity_matrices(T* a, i64 count, i64 n) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(at, n * n) a[index * n * n + at] = number(at % n == at / n ? 1 : 0);
}

// Computes the position of each row after the row interchanges of LU decompositions. `pivots` are row numbers, counted from 1. Other
// numbers, which a matrix with NaN may have, interchange nothing.
extern "C" __global__ void __launch_bounds__(THREADS)
find_row_positions(int* positions, const i64* pivots, i64 count, i64 n) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(row, n) {
        i64 position = row;
        for (i64 k = 0; k < n; k++) {
            const i64 pivot = pivots[index * n + k] - 1;
            if (pivot < 0 || pivot >= n) continue;
            position = position == k ? pivot : position == pivot ? k : position;
        }
        positions[index * n + row] = static_cast<int>(position);
    }
}

// Copies column positions[j] of each column-major matrix (n, n) in `in` to column j of the matrix in `out`.
extern "C" __global__ void __launch_bounds__(THREADS)
permute_columns(T* out, const T* in, const int* positions, i64 count, i64 n) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(at, n * n) {
        out[index * n * n + at] = in[index * n * n + positions[index * n + at / n] * n + at % n];
    }
}

// Copies row positions[i] of each column-major matrix (n, k) in `in` to row i of the row-major matrix in `out`.
extern "C" __global__ void __launch_bounds__(THREADS)
store_permuted_rows(T* out, const T* in, const int* positions, i64 count, i64 n, i64 k) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(at, n * k) {
        out[index * n * k + at] = in[index * n * k + at % k * n + positions[index * n + at / k]];
    }
}

// Sets the elements above (`above`) or below the diagonal of row-major matrices to 0.
extern "C" __global__ void __launch_bounds__(THREADS)
clear_triangle(T* a, i64 count, i64 rows, i64 columns, int above) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(at, rows * columns) {
        const i64 i = at / columns, j = at % columns;
        if (above ? j > i : j < i) a[index * rows * columns + at] = number(0);
    }
}

// Copies the lower triangles of column-major matrices (n, n) to row-major ones, and sets the elements above the diagonal to 0. A block
// interchanges the rows and columns of a tile in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS)
store_lower_triangle(T* out, const T* factors, i64 count, i64 n) {
    constexpr int SIDE = 32, STEP = THREADS / SIDE;
    __shared__ T tile[SIDE][SIDE + 1];
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const i64 tiles = (n + SIDE - 1) / SIDE;
    FOR_EACH_MATRIX(index, count) for (i64 at = blockIdx.x; at < tiles * tiles; at += gridDim.x) {
        const i64 row = at / tiles * SIDE, column = at % tiles * SIDE;
        const T* from = factors + index * n * n;
        T* to = out + index * n * n;
        for (int j = y; j < SIDE; j += STEP) {
            if (row >= column && row + x < n && column + j < n) tile[j][x] = from[(column + j) * n + row + x];
        }
        __syncthreads();
        for (int i = y; i < SIDE; i += STEP) {
            if (row + i >= n || column + x >= n) continue;
            to[(row + i) * n + column + x] = row + i >= column + x ? tile[x][i] : number(0);
        }
        __syncthreads();
    }
}

// Clears the imaginary parts on the diagonal of square matrices.
extern "C" __global__ void __launch_bounds__(THREADS)
make_diagonal_real(T* a, i64 count, i64 n) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(i, n) {
        T& x = a[index * n * n + i * (n + 1)];
        x = number(real(x));
    }
}

// Converts pivots (row indices) from 64 bits, counted from 1, to 32 bits, counted from 0.
extern "C" __global__ void __launch_bounds__(THREADS)
narrow_pivots(int* out, const i64* pivots, i64 total) {
    FOR_EACH_ELEMENT(n, total) out[n] = static_cast<int>(pivots[n] - 1);
}

// Converts float32 numbers, such as the parts of complex numbers, to float64.
extern "C" __global__ void __launch_bounds__(THREADS)
widen_to_double(double* out, const float* in, i64 total) {
    FOR_EACH_ELEMENT(n, total) out[n] = in[n];
}
// Converts float64 numbers, such as the parts of complex numbers, to float32.
extern "C" __global__ void __launch_bounds__(THREADS)
narrow_to_float(float* out, const double* in, i64 total) {
    FOR_EACH_ELEMENT(n, total) out[n] = static_cast<float>(in[n]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
conjugate_elements(T* a, i64 total) {
    FOR_EACH_ELEMENT(n, total) a[n] = conj(a[n]);
}

// Computes determinants from LU factors (n, n) and their pivots, counted from 1. With `log`, computes sign and logarithm. `info` is not 0
// for a factor with a zero on its diagonal.
extern "C" __global__ void __launch_bounds__(THREADS)
compute_determinants(T* out0, R* out1, const T* factors, const i64* pivots, const int* info, i64 count, i64 n, int log) {
    __shared__ T mantissas[THREADS];
    __shared__ i64 exponents[THREADS];
    __shared__ int odd[THREADS];
    const int rank = threadIdx.x;
    FOR_EACH_MATRIX(index, count) {
        ScaledProduct product{number(1), 0};
        int interchanges = 0;
        for (i64 i = rank; i < n; i += THREADS) {
            ScaledProduct factor{factors[index * n * n + i * (n + 1)], 0};
            factor.normalize_mantissa();
            product.multiply_by(factor.mantissa, factor.exponent);
            interchanges ^= pivots[index * n + i] != i + 1;
        }
        mantissas[rank] = product.mantissa;
        exponents[rank] = product.exponent;
        odd[rank] = interchanges;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (rank >= half) continue;
            ScaledProduct both{mantissas[rank], exponents[rank]};
            both.multiply_by(mantissas[rank + half], exponents[rank + half]);
            mantissas[rank] = both.mantissa;
            exponents[rank] = both.exponent;
            odd[rank] ^= odd[rank + half];
        }
        if (rank == 0) {
            const T mantissa = info[index] != 0 ? number(0) : scale(mantissas[0], R(odd[0] ? -1 : 1));
            const R size = magnitude(mantissa);
            if (log) {
                out0[index] = size == 0 ? number(0) : phase(mantissa, size);
                out1[index] = size == 0 ? -infinity() : R(::log(double(size)) + double(exponents[0]) * 0.693147180559945309417232121458);
            } else {
                out0[index] = ScaledProduct{mantissa, exponents[0]}.to_number();
            }
        }
        __syncthreads();
    }
}

// Writes the complex eigenvectors of a real matrix as the columns of an (n, n) matrix in C order. `values` holds the eigenvalues, `packed`
// the eigenvectors as contiguous columns in LAPACK's format. For a pair of conjugate eigenvectors, two adjacent columns hold the real and
// the imaginary part of the first one.
extern "C" __global__ void __launch_bounds__(THREADS)
unpack_eigenvectors(complex<R>* out, const R* packed, const complex<R>* values, i64 count, i64 n) {
    FOR_EACH_MATRIX(index, count) FOR_EACH_ELEMENT(at, n * n) {
        const i64 i = at / n, j = at % n;
        const R* column = packed + index * n * n + j * n;
        const R im = values[index * n + j].im;
        complex<R> x(column[i], R(0));
        if (im > 0 && j + 1 < n) x = complex<R>(column[i], column[n + i]);
        else if (im < 0 && j > 0) x = complex<R>(column[i - n], -column[i]);
        out[index * n * n + at] = x;
    }
}
