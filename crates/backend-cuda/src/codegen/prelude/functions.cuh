// Functions of real numbers: CUDA's accurate versions (no fast-math). 16-bit floats are computed in float. Rounding functions
// leave integers unchanged.

namespace cuprum {
namespace op {

// Defines the function `name` for float, double and the 16-bit floats.
#define CUPRUM_UNARY(name, of_f32, of_f64)                                              \
    __device__ inline f32 name(f32 x) { return of_f32(x); }                             \
    __device__ inline f64 name(f64 x) { return of_f64(x); }                             \
    __device__ inline f16 name(f16 x) { return f16(of_f32(static_cast<f32>(x))); }      \
    __device__ inline bf16 name(bf16 x) { return bf16(of_f32(static_cast<f32>(x))); }
#define CUPRUM_BINARY(name, of_f32, of_f64)                                                                     \
    __device__ inline f32 name(f32 a, f32 b) { return of_f32(a, b); }                                           \
    __device__ inline f64 name(f64 a, f64 b) { return of_f64(a, b); }                                           \
    __device__ inline f16 name(f16 a, f16 b) { return f16(of_f32(static_cast<f32>(a), static_cast<f32>(b))); }  \
    __device__ inline bf16 name(bf16 a, bf16 b) { return bf16(of_f32(static_cast<f32>(a), static_cast<f32>(b))); }

CUPRUM_UNARY(sqrt, ::sqrtf, ::sqrt)
CUPRUM_UNARY(cbrt, ::cbrtf, ::cbrt)
CUPRUM_UNARY(exp, ::expf, ::exp)
CUPRUM_UNARY(exp2, ::exp2f, ::exp2)
CUPRUM_UNARY(expm1, ::expm1f, ::expm1)
CUPRUM_UNARY(log, ::logf, ::log)
CUPRUM_UNARY(log2, ::log2f, ::log2)
CUPRUM_UNARY(log10, ::log10f, ::log10)
CUPRUM_UNARY(log1p, ::log1pf, ::log1p)
CUPRUM_UNARY(sin, ::sinf, ::sin)
CUPRUM_UNARY(cos, ::cosf, ::cos)
CUPRUM_UNARY(tan, ::tanf, ::tan)
CUPRUM_UNARY(asin, ::asinf, ::asin)
CUPRUM_UNARY(acos, ::acosf, ::acos)
CUPRUM_UNARY(atan, ::atanf, ::atan)
CUPRUM_UNARY(sinh, ::sinhf, ::sinh)
CUPRUM_UNARY(cosh, ::coshf, ::cosh)
CUPRUM_UNARY(tanh, ::tanhf, ::tanh)
CUPRUM_UNARY(asinh, ::asinhf, ::asinh)
CUPRUM_UNARY(acosh, ::acoshf, ::acosh)
CUPRUM_UNARY(atanh, ::atanhf, ::atanh)
CUPRUM_BINARY(atan2, ::atan2f, ::atan2)
__device__ inline f16 hypot(f16 a, f16 b) { return f16(hypot(widen(a), widen(b))); }
__device__ inline bf16 hypot(bf16 a, bf16 b) { return bf16(hypot(widen(a), widen(b))); }

// NumPy divides the constants in the argument's dtype: the float quotient 180 / pi is one ulp below the nearest float.
__device__ inline f32 deg2rad_f32(f32 x) { return mul_rn(x, 3.14159265358979323846f / 180.0f); }
__device__ inline f64 deg2rad_f64(f64 x) { return mul_rn(x, 3.14159265358979323846 / 180.0); }
__device__ inline f32 rad2deg_f32(f32 x) { return mul_rn(x, 180.0f / 3.14159265358979323846f); }
__device__ inline f64 rad2deg_f64(f64 x) { return mul_rn(x, 180.0 / 3.14159265358979323846); }
CUPRUM_UNARY(deg2rad, deg2rad_f32, deg2rad_f64)
CUPRUM_UNARY(rad2deg, rad2deg_f32, rad2deg_f64)

// Defines the rounding function `name`, which returns integers and bool unchanged.
#define CUPRUM_ROUNDING(name, of_f32, of_f64)                               \
    CUPRUM_UNARY(name, of_f32, of_f64)                                      \
    template <class T> __device__ inline T name(T x) {                      \
        static_assert(is_int<T> || is_same<T, bool>, #name " of a number"); \
        return x;                                                           \
    }
CUPRUM_ROUNDING(floor, ::floorf, ::floor)
CUPRUM_ROUNDING(ceil, ::ceilf, ::ceil)
CUPRUM_ROUNDING(trunc, ::truncf, ::trunc)
CUPRUM_ROUNDING(rint, ::rintf, ::rint)

// Returns the fractional part of `x` with the sign of `x`, or 0 for infinities, as NumPy's modf does.
template <class T> __device__ inline T modf_fraction(T x) {
    if constexpr (is_half<T>) return T(modf_fraction(widen(x)));
    else return copysign(isinf(x) ? T(0) : sub_rn(x, trunc(x)), x);
}
// NumPy's frexp: x = mantissa * 2^exponent with a mantissa in [0.5, 1). The exponent of infinities and NaN is 0.
__device__ inline f32 frexp_parts(f32 x, int& exponent) { return ::frexpf(x, &exponent); }
__device__ inline f64 frexp_parts(f64 x, int& exponent) { return ::frexp(x, &exponent); }
template <class T> __device__ inline T frexp_mantissa(T x) {
    if constexpr (is_half<T>) return T(frexp_mantissa(widen(x)));
    else {
        int exponent;
        return frexp_parts(x, exponent);
    }
}
template <class T> __device__ inline i32 frexp_exponent(T x) {
    if constexpr (is_half<T>) return frexp_exponent(widen(x));
    else {
        int exponent = 0;
        if (isfinite(x)) frexp_parts(x, exponent);
        return exponent;
    }
}

// Returns x * 2^n. `n` is an integral value or an infinity. Outside the range to which `n` is clamped, the result is 0 or infinite.
__device__ inline f32 times_power_of_2(f32 x, f32 n) { return ::ldexpf(x, static_cast<int>(fmin(fmax(n, -1000.0f), 1000.0f))); }
__device__ inline f64 times_power_of_2(f64 x, f64 n) { return ::ldexp(x, static_cast<int>(fmin(fmax(n, -5000.0), 5000.0))); }
__device__ inline f16 times_power_of_2(f16 x, f16 n) { return f16(times_power_of_2(widen(x), widen(n))); }
__device__ inline bf16 times_power_of_2(bf16 x, bf16 n) { return bf16(times_power_of_2(widen(x), widen(n))); }

// Returns `x` with the sign of `y`, also if `x` or `y` is NaN.
template <class T> __device__ inline T copy_sign(T x, T y) {
    if constexpr (is_half<T>) return T(copysign(widen(x), widen(y)));
    else return copysign(x, y);
}

// The exponents 1 and 2 are special cases: they are frequent, and a product gives the correctly rounded power.
__device__ inline f32 power(f32 x, f32 y) { return y == 2 ? mul_rn(x, x) : y == 1 ? x : ::powf(x, y); }
__device__ inline f64 power(f64 x, f64 y) { return y == 2 ? mul_rn(x, x) : y == 1 ? x : ::pow(x, y); }
__device__ inline f16 power(f16 x, f16 y) { return f16(power(widen(x), widen(y))); }
__device__ inline bf16 power(bf16 x, bf16 y) { return bf16(power(widen(x), widen(y))); }
template <class T> __device__ inline T power(T x, T y) {
    static_assert(is_int<T>, "power of a number");
    return integer_power(x, y);
}

#undef CUPRUM_UNARY
#undef CUPRUM_BINARY
#undef CUPRUM_ROUNDING

}  // namespace op
}  // namespace cuprum
