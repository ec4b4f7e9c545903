// Operations that NumPy 2 defines separately for bool, integers, floats and complex numbers. Integer results wrap. 16-bit
// floats are computed in float.

namespace cuprum {
namespace op {

// ---- tests ----

template <class T> __device__ inline bool isnan(T x) {
    if constexpr (is_complex<T>) return isnan(x.re) || isnan(x.im);
    else if constexpr (is_half<T>) return isnan(widen(x));
    else if constexpr (is_float<T>) return x != x;
    else return false;
}
template <class T> __device__ inline bool isfinite(T x) {
    if constexpr (is_complex<T>) return isfinite(x.re) && isfinite(x.im);
    else if constexpr (is_half<T>) return isfinite(widen(x));
    else if constexpr (is_float<T>) return sub_rn(x, x) == 0;
    else return true;
}
template <class T> __device__ inline bool isinf(T x) {
    if constexpr (is_complex<T>) return isinf(x.re) || isinf(x.im);
    else return !isfinite(x) && !isnan(x);
}

// ---- + - * ----

template <class T> __device__ inline T add(T a, T b) {
    if constexpr (is_same<T, bool>) return a || b;
    else if constexpr (is_int<T>) return static_cast<T>(static_cast<wrap_of<T>>(a) + static_cast<wrap_of<T>>(b));
    else if constexpr (is_half<T>) return T(add_rn(widen(a), widen(b)));
    else if constexpr (is_complex<T>) return T(add_rn(a.re, b.re), add_rn(a.im, b.im));
    else return add_rn(a, b);
}
template <class T> __device__ inline T subtract(T a, T b) {
    if constexpr (is_int<T>) return static_cast<T>(static_cast<wrap_of<T>>(a) - static_cast<wrap_of<T>>(b));
    else if constexpr (is_half<T>) return T(sub_rn(widen(a), widen(b)));
    else if constexpr (is_complex<T>) return T(sub_rn(a.re, b.re), sub_rn(a.im, b.im));
    else return sub_rn(a, b);
}
template <class T> __device__ inline T multiply(T a, T b) {
    if constexpr (is_same<T, bool>) return a && b;
    else if constexpr (is_int<T>) return static_cast<T>(static_cast<wrap_of<T>>(a) * static_cast<wrap_of<T>>(b));
    else if constexpr (is_half<T>) return T(mul_rn(widen(a), widen(b)));
    else if constexpr (is_complex<T>) {
        return T(sub_rn(mul_rn(a.re, b.re), mul_rn(a.im, b.im)), add_rn(mul_rn(a.re, b.im), mul_rn(a.im, b.re)));
    }
    else return mul_rn(a, b);
}
template <class T> __device__ inline T negative(T x) {
    if constexpr (is_int<T>) return static_cast<T>(wrap_of<T>(0) - static_cast<wrap_of<T>>(x));
    else if constexpr (is_half<T>) return T(-widen(x));
    else if constexpr (is_complex<T>) return T(-x.re, -x.im);
    else return -x;
}

// ---- division ----

// Complex division by Smith's algorithm (CACM 5, 1962), as in NumPy.
template <class T> __device__ inline complex<T> divide_complex(complex<T> a, complex<T> b) {
    const T re = fabs(b.re), im = fabs(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return complex<T>(a.re / re, a.im / re);
        const T ratio = b.im / b.re, scale = T(1) / add_rn(b.re, mul_rn(b.im, ratio));
        return complex<T>(mul_rn(add_rn(a.re, mul_rn(a.im, ratio)), scale), mul_rn(sub_rn(a.im, mul_rn(a.re, ratio)), scale));
    }
    const T ratio = b.re / b.im, scale = T(1) / add_rn(b.im, mul_rn(b.re, ratio));
    return complex<T>(mul_rn(add_rn(mul_rn(a.re, ratio), a.im), scale), mul_rn(sub_rn(mul_rn(a.im, ratio), a.re), scale));
}
template <class T> __device__ inline T divide(T a, T b) {
    if constexpr (is_half<T>) return T(widen(a) / widen(b));
    else if constexpr (is_complex<T>) return divide_complex(a, b);
    else return a / b;
}
template <class T> __device__ inline T reciprocal(T x) {
    if constexpr (is_int<T>) return x == 0 ? T(0) : static_cast<T>(T(1) / x);
    else if constexpr (is_half<T>) return T(1.0f / widen(x));
    else if constexpr (is_complex<T>) {
        // Divides by the part of `x` with the larger absolute value, as NumPy's loop does.
        using R = real_of<T>;
        if (fabs(x.im) <= fabs(x.re)) {
            const R ratio = x.im / x.re, scale = add_rn(x.re, mul_rn(x.im, ratio));
            return T(R(1) / scale, -ratio / scale);
        }
        const R ratio = x.re / x.im, scale = add_rn(mul_rn(x.re, ratio), x.im);
        return T(ratio / scale, R(-1) / scale);
    }
    else return T(1) / x;
}

// Returns the floor division of floats a and b, and stores their remainder, as NumPy's npy_divmod does. Requires b != 0.
template <class T> __device__ inline T float_divmod(T a, T b, T& remainder) {
    T mod = fmod(a, b), quotient = sub_rn(a, mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod = add_rn(mod, b);
            quotient = sub_rn(quotient, T(1));
        }
    } else {
        mod = copysign(T(0), b);
    }
    remainder = mod;
    if (quotient == 0) return copysign(T(0), a / b);
    T rounded = ::floor(quotient);
    if (quotient - rounded > T(0.5)) rounded += T(1);
    return rounded;
}
template <class T> __device__ inline T floor_divide(T a, T b) {
    if constexpr (is_half<T>) return T(floor_divide(widen(a), widen(b)));
    else if constexpr (is_float<T>) {
        if (b == 0) return a / b;
        T remainder;
        return float_divmod(a, b, remainder);
    }
    else if constexpr (is_signed<T>) {
        if (b == 0) return T(0);
        if (b == T(-1)) return negative(a);
        const T quotient = static_cast<T>(a / b), rest = static_cast<T>(a % b);
        return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient);
    }
    else return b == 0 ? T(0) : static_cast<T>(a / b);
}
template <class T> __device__ inline T remainder(T a, T b) {
    if constexpr (is_half<T>) return T(remainder(widen(a), widen(b)));
    else if constexpr (is_float<T>) {
        if (b == 0) return fmod(a, b);
        T rest;
        float_divmod(a, b, rest);
        return rest;
    }
    else if constexpr (is_signed<T>) {
        if (b == 0 || b == T(-1)) return T(0);
        const T rest = static_cast<T>(a % b);
        return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
    else return b == 0 ? T(0) : static_cast<T>(a % b);
}
// Returns the remainder of a / b where the quotient is truncated. The remainder has the sign of a.
template <class T> __device__ inline T truncated_remainder(T a, T b) {
    if constexpr (is_half<T>) return T(truncated_remainder(widen(a), widen(b)));
    else if constexpr (is_float<T>) return ::fmod(a, b);
    else return b == 0 || (is_signed<T> && b == static_cast<T>(-1)) ? T(0) : static_cast<T>(a % b);
}
template <class T> __device__ inline wrap_of<T> unsigned_magnitude(T x) {
    return is_signed<T> && x < 0 ? wrap_of<T>(0) - static_cast<wrap_of<T>>(x) : static_cast<wrap_of<T>>(x);
}
// Greatest common divisor of the magnitudes, by Euclid's algorithm.
template <class T> __device__ inline wrap_of<T> greatest_common_divisor(T a, T b) {
    wrap_of<T> divisor = unsigned_magnitude(a), rest = unsigned_magnitude(b);
    while (rest != 0) {
        const wrap_of<T> next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return divisor;
}
template <class T> __device__ inline T gcd(T a, T b) { return static_cast<T>(greatest_common_divisor(a, b)); }
template <class T> __device__ inline T lcm(T a, T b) {
    const wrap_of<T> divisor = greatest_common_divisor(a, b);
    return divisor == 0 ? T(0) : static_cast<T>(unsigned_magnitude(a) / divisor * unsigned_magnitude(b));
}

// ---- comparisons: complex numbers compare the real part, then the imaginary part; comparisons with NaN are false ----

template <class T> __device__ inline bool equal(T a, T b) {
    if constexpr (is_complex<T>) return a.re == b.re && a.im == b.im;
    else return widen(a) == widen(b);
}
template <class T> __device__ inline bool less(T a, T b) {
    if constexpr (is_complex<T>) return (a.re < b.re && !isnan(a.im) && !isnan(b.im)) || (a.re == b.re && a.im < b.im);
    else return widen(a) < widen(b);
}
template <class T> __device__ inline bool less_equal(T a, T b) {
    if constexpr (is_complex<T>) return (a.re < b.re && !isnan(a.im) && !isnan(b.im)) || (a.re == b.re && a.im <= b.im);
    else return widen(a) <= widen(b);
}
// Minimum and maximum. If an argument is NaN, the result is the first argument that is NaN.
template <class T> __device__ inline T minimum(T a, T b) { return less_equal(a, b) || isnan(a) ? a : b; }
template <class T> __device__ inline T maximum(T a, T b) { return less_equal(b, a) || isnan(a) ? a : b; }
// Minimum and maximum, as C's `fmin` and `fmax`. If exactly one argument is NaN, the result is the other argument.
template <class T> __device__ inline T minimum_number(T a, T b) { return less_equal(a, b) || isnan(b) ? a : b; }
template <class T> __device__ inline T maximum_number(T a, T b) { return less_equal(b, a) || isnan(b) ? a : b; }

// ---- parts and signs ----

template <class T> __device__ inline real_of<T> real(T x) {
    if constexpr (is_complex<T>) return x.re;
    else return x;
}
template <class T> __device__ inline real_of<T> imag(T x) {
    if constexpr (is_complex<T>) return x.im;
    else return cast<T>(0.0f);
}
template <class T> __device__ inline T conj(T x) {
    if constexpr (is_complex<T>) return T(x.re, -x.im);
    else return x;
}
__device__ inline f32 hypot(f32 a, f32 b) { return ::hypotf(a, b); }
__device__ inline f64 hypot(f64 a, f64 b) {
    const f64 large = fmax(fabs(a), fabs(b)), small = fmin(fabs(a), fabs(b));
    // If `small` is less than 2^-28 * `large`, the result is `large`. CUDA's `hypot` would round the largest finite `large` up to infinity.
    return small < large * 0x1p-28 ? large : ::hypot(a, b);
}
template <class T> __device__ inline real_of<T> abs(T x) {
    if constexpr (is_complex<T>) return hypot(x.re, x.im);
    else if constexpr (is_half<T>) return T(fabs(widen(x)));
    else if constexpr (is_float<T>) return fabs(x);
    else if constexpr (is_signed<T>) return x < 0 ? negative(x) : x;
    else return x;
}
template <class T> __device__ inline T sign(T x) {
    if constexpr (is_half<T>) return T(sign(widen(x)));
    else if constexpr (is_complex<T>) {
        using R = real_of<T>;
        const R size = abs(x);
        const bool re = isinf(x.re), im = isinf(x.im);
        if (isnan(size) || (re && im)) return T(size - size, size - size);
        if (re) return T(copysign(R(1), x.re), R(0));
        if (im) return T(R(0), copysign(R(1), x.im));
        if (isinf(size)) return sign(T(mul_rn(x.re, R(0.25)), mul_rn(x.im, R(0.25))));  // the parts are finite, so the absolute value overflowed
        return size == 0 ? T(R(0), R(0)) : T(x.re / size, x.im / size);
    }
    else if constexpr (is_float<T>) return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
    else if constexpr (is_signed<T>) return static_cast<T>((x > 0) - (x < 0));
    else return static_cast<T>(x != 0);
}

// ---- bits ----

template <class T> __device__ inline T bitwise_invert(T x) {
    if constexpr (is_same<T, bool>) return !x;
    else return static_cast<T>(~x);
}
// Returns whether a shift by `count` removes all bits, because `count` is negative or at least the number of bits.
template <class T> __device__ inline bool shift_removes_all_bits(T count) {
    return static_cast<u64>(count) >= 8 * sizeof(T);
}
template <class T> __device__ inline T left_shift(T x, T count) {
    return shift_removes_all_bits(count) ? T(0) : static_cast<T>(static_cast<wrap_of<T>>(x) << static_cast<u32>(count));
}
template <class T> __device__ inline T right_shift(T x, T count) {
    if (shift_removes_all_bits(count)) return is_signed<T> && x < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(x >> static_cast<u32>(count));
}

// ---- power ----

// Integer power by repeated squaring. For a negative exponent, the result is base^exponent rounded toward zero, which is 0 unless base is 1
// or -1.
template <class T> __device__ inline T integer_power(T base, T exponent) {
    if (is_signed<T> && exponent < 0) {
        if (base == T(1)) return T(1);
        if (is_signed<T> && base == static_cast<T>(-1)) return exponent & 1 ? static_cast<T>(-1) : T(1);
        return T(0);
    }
    using W = wrap_of<T>;
    W square = static_cast<W>(base), result = 1;
    for (u64 n = static_cast<u64>(exponent); n != 0; n >>= 1) {
        if (n & 1) result *= square;
        square *= square;
    }
    return static_cast<T>(result);
}

}  // namespace op
}  // namespace cuprum
