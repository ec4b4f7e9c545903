// Functions of complex numbers, with the special values of C99's Annex G, as NumPy takes them from the C library. The
// functions are written for double. complex64 is computed in complex128, whose range avoids overflow and cancellation.
// Longer functions are not inlined. This saves compile time, and keeps the compiler from contracting operations of the
// function with those of the caller.
//
// Inverse functions: W. Kahan, "Branch cuts for complex elementary functions", 1987.

namespace cuprum {
namespace op {

__device__ inline f64 infinity() { return bits_to_f64(0x7ff0000000000000); }
__device__ inline f64 not_a_number() { return bits_to_f64(0x7ff8000000000000); }
constexpr f64 PI = 3.14159265358979323846;
constexpr f64 LN2 = 0.693147180559945309417;
constexpr f64 LOG2_E = 1.44269504088896340736;
constexpr f64 LOG10_E = 0.434294481903251827651;
// Largest real argument (rounded down) whose exponential is finite in float64.
constexpr f64 EXP_LIMIT = 709.0;

__device__ inline c128 times_i(c128 z) { return c128(-z.im, z.re); }

__device__ __noinline__ inline c128 sqrt(c128 z) {
    if (z.re == 0 && z.im == 0) return c128(0, z.im);
    if (isinf(z.im)) return c128(infinity(), z.im);
    if (isnan(z.re)) return c128(z.re, not_a_number());
    if (isinf(z.re)) {
        const f64 none = z.im - z.im;
        return z.re > 0 ? c128(z.re, copysign(none, z.im)) : c128(fabs(none), copysign(z.re, z.im));
    }
    // `z` is scaled by a power of 4, so that |z.re| + |z| does not overflow and subnormal numbers lose no digits.
    f64 scale = 1, back = 1;
    const f64 size = fmax(fabs(z.re), fabs(z.im));
    if (size > 0x1p1020) { scale = 0x1p-4; back = 0x1p2; }
    if (size < 0x1p-1000) { scale = 0x1p200; back = 0x1p-100; }
    const f64 re = z.re * scale, im = z.im * scale;
    const f64 root = ::sqrt((fabs(re) + ::hypot(re, im)) * 0.5);
    const f64 other = fabs(im) / (2 * root);
    return re >= 0 ? c128(root * back, copysign(other * back, z.im)) : c128(other * back, copysign(root * back, z.im));
}

// Returns factor * e^re * (cos im, sin im), without intermediate overflow. `factor` is 1 or 1/2.
__device__ __noinline__ inline c128 scaled_exp(f64 re, f64 im, f64 factor) {
    f64 s, c;
    ::sincos(im, &s, &c);
    // Multiplies by e^re in up to three factors, because e^re may overflow while its product with a tiny sine or cosine is finite.
    // `re - EXP_LIMIT` is exact.
    for (int n = 0; n < 2; n++) {
        if (re > EXP_LIMIT) {
            const f64 e = factor * ::exp(EXP_LIMIT);
            re -= EXP_LIMIT;
            factor = 1;
            c *= e;
            s *= e;
        }
    }
    const f64 e = factor * ::exp(re);
    return c128(e * c, e * s);
}
__device__ __noinline__ inline c128 exp(c128 z) {
    if (z.im == 0) return c128(::exp(z.re), z.im);
    if (!isfinite(z.im)) {
        if (isinf(z.re)) return z.re > 0 ? c128(z.re, not_a_number()) : c128(0, copysign(0.0, z.im));
        return c128(not_a_number(), not_a_number());
    }
    return scaled_exp(z.re, z.im, 1);
}
__device__ inline c128 exp2(c128 z) { return exp(c128(mul_rn(z.re, LN2), mul_rn(z.im, LN2))); }
// Complex expm1 by NumPy's formula. An exponential above `largest`, the dtype's maximum, becomes infinite.
__device__ __noinline__ inline c128 expm1_with_limit(c128 z, f64 largest) {
    f64 s, c;
    ::sincos(z.im, &s, &c);
    const f64 half = ::sin(0.5 * z.im), e = ::exp(z.re), e1 = ::expm1(z.re);
    return c128((e1 > largest ? infinity() : e1) * c - 2 * half * half, (e > largest ? infinity() : e) * s);
}
__device__ inline c128 expm1(c128 z) { return expm1_with_limit(z, 0x1.fffffffffffffp1023); }
__device__ inline c64 expm1(c64 z) { return cast<c64>(expm1_with_limit(cast<c128>(z), 0x1.fffffefffffffp127)); }

// Returns 0.5 log1p(a + x^2 + y^2). The sum has twice the precision (Knuth's two-sum), because its terms may cancel.
__device__ inline f64 half_log1p_of_square_sum(f64 a, f64 x, f64 y) {
    const f64 x2 = mul_rn(x, x), y2 = mul_rn(y, y), x2_error = __fma_rn(x, x, -x2), y2_error = __fma_rn(y, y, -y2);
    const f64 head = add_rn(a, x2), t = sub_rn(head, a), head_error = add_rn(sub_rn(a, sub_rn(head, t)), sub_rn(x2, t));
    const f64 sum = add_rn(head, y2), u = sub_rn(sum, head), sum_error = add_rn(sub_rn(head, sub_rn(sum, u)), sub_rn(y2, u));
    return 0.5 * ::log1p(sum + (head_error + sum_error + x2_error + y2_error));
}
// Returns log |z|.
__device__ inline f64 log_abs(c128 z) {
    const f64 a = fabs(z.re), b = fabs(z.im), large = fmax(a, b), small = fmin(a, b), size = ::hypot(a, b);
    if (size >= 0.5 && size <= 2) return half_log1p_of_square_sum(-1, large, small);
    if (large > 0x1p1020) return ::log(::hypot(a * 0.25, b * 0.25)) + 2 * LN2;
    if (large < 0x1p-1000 && large > 0) return ::log(::hypot(a * 0x1p100, b * 0x1p100)) - 100 * LN2;
    return ::log(size);
}
__device__ __noinline__ inline c128 log(c128 z) { return c128(log_abs(z), ::atan2(z.im, z.re)); }
__device__ inline c128 log2(c128 z) {
    const c128 l = log(z);
    return c128(mul_rn(l.re, LOG2_E), mul_rn(l.im, LOG2_E));
}
__device__ inline c128 log10(c128 z) {
    const c128 l = log(z);
    return c128(mul_rn(l.re, LOG10_E), mul_rn(l.im, LOG10_E));
}
__device__ __noinline__ inline c128 log1p(c128 z) {
    const f64 size = ::hypot(z.re + 1, z.im);
    const bool near = size >= 0.5 && size <= 2;
    return c128(near ? half_log1p_of_square_sum(2 * z.re, z.re, z.im) : log_abs(c128(z.re + 1, z.im)), ::atan2(z.im, z.re + 1));
}

__device__ __noinline__ inline c128 sinh(c128 z) {
    if (z.im == 0) return c128(::sinh(z.re), z.im);
    if (!isfinite(z.im)) return c128(z.re == 0 ? z.re : isinf(z.re) ? infinity() : not_a_number(), not_a_number());
    if (fabs(z.re) < EXP_LIMIT) {
        f64 s, c;
        ::sincos(z.im, &s, &c);
        return c128(::sinh(z.re) * c, ::cosh(z.re) * s);
    }
    const c128 e = scaled_exp(fabs(z.re), z.im, 0.5);
    return c128(isnan(z.re) ? z.re : copysign(1.0, z.re) * e.re, e.im);
}
__device__ __noinline__ inline c128 cosh(c128 z) {
    if (z.im == 0) return c128(::cosh(z.re), isnan(z.re) ? z.im : copysign(0.0, z.re) * z.im);
    if (!isfinite(z.im)) {
        if (z.re == 0) return c128(not_a_number(), 0);
        return c128(isinf(z.re) ? infinity() : not_a_number(), not_a_number());
    }
    if (fabs(z.re) < EXP_LIMIT) {
        f64 s, c;
        ::sincos(z.im, &s, &c);
        return c128(::cosh(z.re) * c, ::sinh(z.re) * s);
    }
    const c128 e = scaled_exp(fabs(z.re), z.im, 0.5);
    return c128(e.re, copysign(1.0, z.re) * e.im);
}
__device__ __noinline__ inline c128 tanh(c128 z) {
    if (isinf(z.re)) {
        const f64 sign = isfinite(z.im) ? ::sin(z.im) * ::cos(z.im) : z.im;
        return c128(copysign(1.0, z.re), copysign(0.0, sign));
    }
    if (!isfinite(z.im)) return c128(z.re == 0 ? z.re : not_a_number(), not_a_number());
    if (isnan(z.re)) return c128(z.re, z.im == 0 ? z.im : z.re);
    if (fabs(z.re) > 22) {
        // For |re| > 22, the real part of tanh rounds to 1 or -1. The imaginary part is 4 sin(im) cos(im) e^(-2 |re|).
        const f64 e = ::exp(-fabs(z.re));
        return c128(copysign(1.0, z.re), 4 * ::sin(z.im) * ::cos(z.im) * e * e);
    }
    const f64 t = ::tan(z.im), s = ::sinh(z.re), beta = 1 + t * t, rho = ::sqrt(1 + s * s), below = 1 + beta * s * s;
    return c128(beta * rho * s / below, t / below);
}
// Swaps the real and imaginary parts of `z`. The functions sin, tan, asinh and atan equal sinh, tanh, asin and atanh with this swap applied
// to argument and result.
__device__ inline c128 swapped_parts(c128 z) { return c128(z.im, z.re); }
__device__ inline c128 sin(c128 z) { return swapped_parts(sinh(swapped_parts(z))); }
__device__ inline c128 cos(c128 z) { return cosh(times_i(z)); }
__device__ inline c128 tan(c128 z) { return swapped_parts(tanh(swapped_parts(z))); }

// Largest real or imaginary part of an argument of asin and acos. With larger parts, the product of the square roots in their formulas
// could overflow.
constexpr f64 MAX_UNSCALED_PART = 0x1p1021;
__device__ inline bool is_large(c128 z) { return fabs(z.re) > MAX_UNSCALED_PART || fabs(z.im) > MAX_UNSCALED_PART; }
// Returns log |2 z| without overflow.
__device__ inline f64 log_abs_doubled(c128 z) { return ::log(::hypot(z.re / 2, z.im / 2)) + 2 * LN2; }
__device__ __noinline__ inline c128 asin(c128 z) {
    if (isinf(z.re) || isinf(z.im)) {
        return c128(copysign(::atan2(fabs(z.re), fabs(z.im)), z.re), copysign(infinity(), z.im));
    }
    if (isnan(z.re) || isnan(z.im)) return c128(z.re == 0 ? z.re : not_a_number(), not_a_number());
    if (is_large(z)) return c128(::atan2(z.re, fabs(z.im)), copysign(log_abs_doubled(z), z.im));
    const c128 a = sqrt(c128(1 - z.re, -z.im)), b = sqrt(c128(1 + z.re, z.im));
    return c128(::atan2(z.re, a.re * b.re - a.im * b.im), ::asinh(a.re * b.im - a.im * b.re));
}
__device__ __noinline__ inline c128 acos(c128 z) {
    if (isinf(z.re) || isinf(z.im)) return c128(::atan2(fabs(z.im), z.re), copysign(infinity(), -z.im));
    if (isnan(z.re) || isnan(z.im)) return c128(z.re == 0 ? 0.5 * PI : not_a_number(), not_a_number());
    if (is_large(z)) return c128(::atan2(fabs(z.im), z.re), copysign(log_abs_doubled(z), -z.im));
    const c128 a = sqrt(c128(1 - z.re, -z.im)), b = sqrt(c128(1 + z.re, z.im));
    return c128(2 * ::atan2(a.re, b.re), ::asinh(b.re * a.im - b.im * a.re));
}
__device__ __noinline__ inline c128 atanh(c128 z) {
    if (isinf(z.re) || isinf(z.im)) return c128(copysign(0.0, z.re), isnan(z.im) ? z.im : copysign(0.5 * PI, z.im));
    if (isnan(z.re) || isnan(z.im)) return c128(z.re == 0 ? z.re : not_a_number(), not_a_number());
    const f64 x = fabs(z.re), y = fabs(z.im);
    if (x > 0x1p500 || y > 0x1p500) {
        const f64 half = ::hypot(z.re / 2, z.im / 2);
        return c128(z.re / 4 / half / half, copysign(0.5 * PI, z.im));
    }
    // If x is 1 and y is small, the square of y would underflow, so this case has its own formula.
    const f64 re = x == 1 && y < 0x1p-500 ? 0.5 * (LN2 - ::log(y)) : 0.25 * ::log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    return c128(copysign(re, z.re), 0.5 * ::atan2(2 * z.im, (1 - x) * (1 + x) - y * y));
}
__device__ inline c128 asinh(c128 z) { return swapped_parts(asin(swapped_parts(z))); }
__device__ inline c128 acosh(c128 z) {
    const c128 w = acos(z);
    return c128(fabs(w.im), copysign(w.re, z.im));
}
__device__ inline c128 atan(c128 z) { return swapped_parts(atanh(swapped_parts(z))); }
__device__ inline c128 rint(c128 z) { return c128(::rint(z.re), ::rint(z.im)); }

// The product of Annex G of C99: where both parts of the plain product are NaN although a factor or a partial product is infinite, the
// result is infinite.
__device__ inline c128 multiply_with_infinities(c128 a, c128 b) {
    const c128 product = multiply(a, b);
    if (!(isnan(product.re) && isnan(product.im))) return product;
    const bool of_a = isinf(a), of_b = isinf(b);
    if (!of_a && !of_b && !isinf(a.re * b.re) && !isinf(a.im * b.im) && !isinf(a.re * b.im) && !isinf(a.im * b.re)) return product;
    // Replaces each infinite factor by its direction: infinite parts become 1, finite parts 0, with their signs. Replaces NaN in a finite
    // factor by 0.
    auto part = [](f64 x, bool infinite) { return infinite ? copysign(isinf(x) ? 1.0 : 0.0, x) : isnan(x) ? copysign(0.0, x) : x; };
    const c128 p = multiply(c128(part(a.re, of_a), part(a.im, of_a)), c128(part(b.re, of_b), part(b.im, of_b)));
    return c128(infinity() * p.re, infinity() * p.im);
}

// Complex power as in NumPy's npy_cpow: e^(b log a), with special cases for powers of 0 and for small integer exponents. The product of an
// integer power starts with 1 unless the exponent is 1, 2 or 3, because 1 times an infinite number may contain a NaN.
__device__ __noinline__ inline c128 power(c128 a, c128 b) {
    if (b.re == 0 && b.im == 0) return c128(1, 0);
    if (a.re == 0 && a.im == 0) return b.re > 0 ? c128(0, 0) : c128(not_a_number(), not_a_number());
    const f64 size = fabs(b.re);
    if (b.im == 0 && size < 100 && size == ::floor(size)) {
        c128 result(1, 0), square = a;
        bool is_empty = b.re == 1 || b.re == 2 || b.re == 3;
        for (int n = static_cast<int>(size);;) {
            if (n & 1) {
                result = is_empty ? square : multiply(result, square);
                is_empty = false;
            }
            n >>= 1;
            if (n == 0) break;
            square = multiply(square, square);
        }
        return b.re < 0 ? divide(c128(1, 0), result) : result;
    }
    return exp(multiply_with_infinities(b, log(a)));
}

#define CUPRUM_THROUGH_C128(name) \
    __device__ inline c64 name(c64 z) { return cast<c64>(name(cast<c128>(z))); }
CUPRUM_THROUGH_C128(sqrt)
CUPRUM_THROUGH_C128(exp)
CUPRUM_THROUGH_C128(exp2)
CUPRUM_THROUGH_C128(log)
CUPRUM_THROUGH_C128(log2)
CUPRUM_THROUGH_C128(log10)
CUPRUM_THROUGH_C128(log1p)
CUPRUM_THROUGH_C128(sin)
CUPRUM_THROUGH_C128(cos)
CUPRUM_THROUGH_C128(tan)
CUPRUM_THROUGH_C128(asin)
CUPRUM_THROUGH_C128(acos)
CUPRUM_THROUGH_C128(atan)
CUPRUM_THROUGH_C128(sinh)
CUPRUM_THROUGH_C128(cosh)
CUPRUM_THROUGH_C128(tanh)
CUPRUM_THROUGH_C128(asinh)
CUPRUM_THROUGH_C128(acosh)
CUPRUM_THROUGH_C128(atanh)
#undef CUPRUM_THROUGH_C128
__device__ inline c64 rint(c64 z) { return c64(::rintf(z.re), ::rintf(z.im)); }
__device__ inline c64 power(c64 a, c64 b) { return cast<c64>(power(cast<c128>(a), cast<c128>(b))); }

}  // namespace op
}  // namespace cuprum
