// Functions that the code of user-defined operations (`kernel!`) may call, besides those in namespace `op`. The corresponding functions of
// the CPU backend give equal results. Integers wrap, and integer division by zero gives zero. User-defined code converts values by `cast`.

namespace cuprum {
namespace user_defined {

// Returns a literal of the user's source in type T. `a` is the literal as float, `b` the literal as double. `b` is used only if T is
// double.
template <class T> __device__ inline T literal(f32 a, f64 b) {
    if constexpr (is_same<T, f64>) return b;
    else return static_cast<T>(a);
}
template <class T> __device__ inline T infinity() {
    if constexpr (is_same<T, f64>) return bits_to_f64(0x7ff0000000000000ull);
    else return bits_to_f32(0x7f800000u);
}
template <class T> __device__ inline T nan() {
    if constexpr (is_same<T, f64>) return bits_to_f64(0x7ff8000000000000ull);
    else return bits_to_f32(0x7fc00000u);
}

template <class T> __device__ inline T div(T a, T b) {
    if constexpr (!is_int<T>) return a / b;
    else if (b == 0) return T(0);
    else if constexpr (is_signed<T>) return b == static_cast<T>(-1) ? op::negative(a) : static_cast<T>(a / b);
    else return static_cast<T>(a / b);
}
template <class T> __device__ inline T rem(T a, T b) {
    if constexpr (is_same<T, f32>) return ::fmodf(a, b);
    else if constexpr (is_same<T, f64>) return ::fmod(a, b);
    else if (b == 0) return T(0);
    else if constexpr (is_signed<T>) return b == static_cast<T>(-1) ? T(0) : static_cast<T>(a % b);
    else return static_cast<T>(a % b);
}
template <class T> __device__ inline T abs(T x) {
    if constexpr (is_same<T, f32>) return ::fabsf(x);
    else if constexpr (is_same<T, f64>) return ::fabs(x);
    else if constexpr (is_signed<T>) return x < 0 ? op::negative(x) : x;
    else return x;
}
template <class T> __device__ inline T max(T a, T b) {
    if constexpr (is_same<T, f32>) return ::fmaxf(a, b);
    else if constexpr (is_same<T, f64>) return ::fmax(a, b);
    else return a < b ? b : a;
}
template <class T> __device__ inline T min(T a, T b) {
    if constexpr (is_same<T, f32>) return ::fminf(a, b);
    else if constexpr (is_same<T, f64>) return ::fmin(a, b);
    else return b < a ? b : a;
}
__device__ inline f32 mul_add(f32 x, f32 a, f32 b) { return __fmaf_rn(x, a, b); }
__device__ inline f64 mul_add(f64 x, f64 a, f64 b) { return __fma_rn(x, a, b); }
__device__ inline f32 copysign(f32 x, f32 sign) { return ::copysignf(x, sign); }
__device__ inline f64 copysign(f64 x, f64 sign) { return ::copysign(x, sign); }

template <class T> __device__ inline T shl(T a, T b) {
    return static_cast<T>(static_cast<wrap_of<T>>(a) << (static_cast<u32>(b) & (8 * sizeof(T) - 1)));
}
template <class T> __device__ inline T shr(T a, T b) { return static_cast<T>(a >> (static_cast<u32>(b) & (8 * sizeof(T) - 1))); }

// Returns `array[index]`, with `index` clamped to 0..=len - 1. Indices of at most 32 bits use 32-bit arithmetic, which is faster.
template <class T, class Index> __device__ inline T at(const T* array, i64 len, Index index) {
    if constexpr (sizeof(Index) < 4 || is_same<Index, i32>) {
        const i32 last = len > 0x7fffffff ? 0x7fffffff : static_cast<i32>(len - 1), i = static_cast<i32>(index);
        return array[::max(::min(i, last), 0)];
    } else if constexpr (is_same<Index, u64>) {
        const u64 last = static_cast<u64>(len - 1);
        return array[index < last ? index : last];
    } else {
        const i64 i = static_cast<i64>(index);
        return array[i < 0 ? 0 : i < len ? i : len - 1];
    }
}

// Returns the address of row `index` of `table`. An index out of bounds is clamped.
template <int Columns, class T, class Index> __device__ inline const T* row_address(const T* table, i64 rows, Index index) {
    if constexpr (is_same<Index, u64>) {
        const u64 last = static_cast<u64>(rows - 1);
        return table + Columns * (index < last ? index : last);
    } else {
        const i64 i = static_cast<i64>(index);
        return table + Columns * (i < 0 ? 0 : i < rows ? i : rows - 1);
    }
}

// Returns the polynomial with `N` coefficients, lowest first, at `x` by Horner's scheme.
template <int N, class T> __device__ inline T polynomial(T x, const T* coefficients) {
    T sum = coefficients[N - 1];
#pragma unroll
    for (int k = N - 2; k >= 0; k--) sum = mul_add(sum, x, coefficients[k]);
    return sum;
}

// Returns whether each i in begin..end is a non-negative 32-bit number, and `Factor * i + Offset` is a 32-bit index below `len`. `Factor`
// and `Offset` are not negative.
template <i64 Factor, i64 Offset, class Index> __device__ inline bool is_affine_range_in_bounds(Index begin, Index end, i64 len) {
    const i64 last = len > 0x7fffffff ? 0x7fffffff : len;
    return begin >= 0 && end <= 0x7fffffff && (Factor == 0 || Factor * (static_cast<i64>(end) - 1) + Offset < last) && Offset < last;
}

}  // namespace user_defined
}  // namespace cuprum
