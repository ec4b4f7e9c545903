// Matrices in compressed row format (CSR), and the arithmetic of their elements.
//
// T is the element type. For signed integers, however, T is the unsigned type of the same size, whose products and sums have the same bits.
// I is the type of indices, i32 or i64.

namespace cuprum {

// Accumulator type: an unsigned type of at least 32 bits for integers and bool, else T.
using Acc = choose<is_complex<T> || is_float<T>, T, wrap_of<T>>::type;

__device__ inline Acc zero() { return cast<Acc>(T()); }

__device__ inline f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
__device__ inline f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }
template <class X> __device__ inline complex<X> multiply_add(complex<X> a, complex<X> b, complex<X> c) {
    return complex<X>(multiply_add(-a.im, b.im, multiply_add(a.re, b.re, c.re)), multiply_add(a.im, b.re, multiply_add(a.re, b.im, c.im)));
}
__device__ inline u32 multiply_add(u32 a, u32 b, u32 c) {
    if constexpr (is_same<T, bool>) return c | (a & b);
    else return c + a * b;
}
__device__ inline u64 multiply_add(u64 a, u64 b, u64 c) { return c + a * b; }

template <class X> __device__ inline X add(X a, X b) {
    if constexpr (is_same<T, bool>) return a | b;
    else if constexpr (is_complex<X>) return X(a.re + b.re, a.im + b.im);
    else return a + b;
}
template <class X> __device__ inline X shuffle_down(X x, int distance) {
    if constexpr (is_complex<X>) return X(__shfl_down_sync(~0u, x.re, distance), __shfl_down_sync(~0u, x.im, distance));
    else return __shfl_down_sync(~0u, x, distance);
}

// The range of the stored elements of one row.
struct RowRange {
    i64 begin, end;
};

// An invalid number in `indptr` or `indices` that a thread has found. `code` is 0 if there is none.
struct InvalidCsrNumber {
    u64 code;
    i64 value;
};

// A matrix in compressed row format.
struct CsrMatrix {
    const I* indptr;
    const I* indices;
    const T* values;
    i64 rows, columns, count;

    // Returns the range of elements of row `number`. If the bounds of the row are invalid, sets `bad` and returns an empty range. A matrix
    // without columns has no valid column, so an element of the row is an error too.
    __device__ RowRange row_range(i64 number, InvalidCsrNumber& bad) const {
        if (number >= rows) return {0, 0};
        const i64 begin = indptr[number], end = indptr[number + 1];
        const bool is_valid = begin >= 0 && begin <= end && end <= count;
        if (is_valid && (columns > 0 || begin == end)) return {begin, end};
        if (is_valid) bad = {1, indices[begin]};
        else bad = {2, begin < 0 || begin > count ? begin : end};
        return {0, 0};
    }

    // Returns the column of an element. The matrix has at least one column. If the element's column is out of bounds, sets `bad` and
    // returns 0.
    __device__ i64 column_of_element(i64 at, InvalidCsrNumber& bad) const {
        const i64 index = indices[at];
        if (index >= 0 && index < columns) return index;
        bad = {1, index};
        return 0;
    }

    __device__ void report_invalid_number(const InvalidCsrNumber& bad, Fault* fault, u64 op) const {
        if (bad.code == 1) report_fault(fault, 1, op, bad.value, static_cast<u64>(columns));
        if (bad.code == 2) report_fault(fault, 2, op, bad.value, static_cast<u64>(count));
    }
};

}  // namespace cuprum
