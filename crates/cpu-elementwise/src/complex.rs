//! Complex arithmetic as in NumPy 2, and complex functions with the special values (infinities, signed zeros) of C99 Annex G.
//!
//! Functions and powers are computed in complex128, also for complex64. The inverse functions use Kahan's formulas ("Branch cuts for
//! complex elementary functions", 1987).

use std::f64::consts::{FRAC_PI_2, LN_2};

use cuprum_core::Complex;
use cuprum_cpu_base::simd::BaselineIsa;
use cuprum_cpu_math as vmath;

type C = Complex<f64>;

/// Complex arithmetic and comparison, in either precision.
pub trait ComplexArithmetic: Copy {
    /// Returns `self / b` by Smith's method.
    fn divide(self, b: Self) -> Self;
    /// Returns `1 / self` by Smith's method.
    fn reciprocal(self) -> Self;
    /// Returns `self ** b`. Small integer powers are computed by multiplication.
    fn power(self, b: Self) -> Self;
    /// Returns `e^self - 1` by NumPy's formula, computed in float64.
    ///
    /// As in NumPy, an exponential above the maximum of the dtype becomes infinite, even if its product with the sine or cosine is finite.
    fn exponential_minus_1(self) -> Self;
    /// Returns `self / |self|`, or 0 for 0.
    fn sign(self) -> Self;
    /// Returns whether `self < b` (or `self <= b` if `or_equal`), by real part, then imaginary part. False if any part is NaN.
    fn is_ordered_before(self, b: Self, or_equal: bool) -> bool;
    /// Returns the maximum, or the first operand with a NaN if there is one.
    fn larger(self, b: Self) -> Self;
    /// Returns the minimum, or the first operand with a NaN if there is one.
    fn smaller(self, b: Self) -> Self;
    /// Converts `self` to complex128, applies `f`, and converts the result back to this type.
    fn apply_in_complex128(self, f: impl Fn(C) -> C) -> Self;
}

macro_rules! arithmetic {
    ($($t:ty),*) => {$(
        impl ComplexArithmetic for Complex<$t> {
            #[inline(always)]
            fn divide(self, b: Self) -> Self {
                let (a, re, im) = (self, b.re.abs(), b.im.abs());
                if re >= im {
                    if re == 0.0 && im == 0.0 {
                        return Complex::new(a.re / re, a.im / re);
                    }
                    let ratio = b.im / b.re;
                    let scale = 1.0 / (b.re + b.im * ratio);
                    Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
                } else {
                    let ratio = b.re / b.im;
                    let scale = 1.0 / (b.im + b.re * ratio);
                    Complex::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
                }
            }
            #[inline(always)]
            fn reciprocal(self) -> Self {
                if self.im.abs() <= self.re.abs() {
                    let ratio = self.im / self.re;
                    let d = self.re + self.im * ratio;
                    Complex::new(1.0 / d, -ratio / d)
                } else {
                    let ratio = self.re / self.im;
                    let d = self.re * ratio + self.im;
                    Complex::new(ratio / d, -1.0 / d)
                }
            }
            fn power(self, b: Self) -> Self {
                let narrow = |z: C| Complex::new(z.re as $t, z.im as $t);
                narrow(power(C::new(self.re as f64, self.im as f64), C::new(b.re as f64, b.im as f64)))
            }
            fn exponential_minus_1(self) -> Self {
                let (x, y) = (self.re as f64, self.im as f64);
                let within = |v: f64| if (v as $t).is_infinite() { f64::INFINITY } else { v };
                let s = (y / 2.0).sin();
                Complex::new((within(x.exp_m1()) * y.cos() - 2.0 * s * s) as $t, (within(x.exp()) * y.sin()) as $t)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let size = self.re.hypot(self.im);
                if size.is_nan() {
                    return Complex::new(<$t>::NAN, <$t>::NAN);
                }
                if size.is_infinite() {
                    return match (self.re.is_infinite(), self.im.is_infinite()) {
                        (true, true) => Complex::new(<$t>::NAN, <$t>::NAN),
                        (true, false) => Complex::new((1.0 as $t).copysign(self.re), 0.0),
                        (false, true) => Complex::new(0.0, (1.0 as $t).copysign(self.im)),
                        (false, false) => self.map_parts(|x| x / 4.0).sign(), // only the magnitude overflowed
                    };
                }
                if size == 0.0 { Complex::new(0.0, 0.0) } else { Complex::new(self.re / size, self.im / size) }
            }
            #[inline(always)]
            fn is_ordered_before(self, b: Self, or_equal: bool) -> bool {
                let by_imaginary = if or_equal { self.im <= b.im } else { self.im < b.im };
                (self.re < b.re && !self.im.is_nan() && !b.im.is_nan()) || (self.re == b.re && by_imaginary)
            }
            #[inline(always)]
            fn larger(self, b: Self) -> Self {
                if self.re.is_nan() || self.im.is_nan() || b.is_ordered_before(self, true) { self } else { b }
            }
            #[inline(always)]
            fn smaller(self, b: Self) -> Self {
                if self.re.is_nan() || self.im.is_nan() || self.is_ordered_before(b, true) { self } else { b }
            }
            #[inline(always)]
            fn apply_in_complex128(self, f: impl Fn(C) -> C) -> Self {
                let z = f(C::new(self.re as f64, self.im as f64));
                Complex::new(z.re as $t, z.im as $t)
            }
        }
    )*};
}
arithmetic!(f32, f64);

trait MapParts<T> {
    fn map_parts(self, f: impl Fn(T) -> T) -> Self;
}
impl<T> MapParts<T> for Complex<T> {
    fn map_parts(self, f: impl Fn(T) -> T) -> Self {
        Complex::new(f(self.re), f(self.im))
    }
}

/// Real and imaginary parts above this limit are scaled down before they are squared, so that the square does not overflow.
const MAX_UNSCALED_PART: f64 = f64::MAX / 4.0;

/// Largest argument for which an exponential is computed directly, so that the result is finite.
const MAX_DIRECT_EXP_ARGUMENT: f64 = 709.0;

/// Returns the inverse hyperbolic sine of `x`. The standard library's formula loses digits.
fn arsinh(x: f64) -> f64 {
    vmath::asinh::<BaselineIsa, f64>(x)
}

/// Returns `a ** b`: by NumPy's rules if `a` or `b` is zero, by multiplications for integer `b` of magnitude below 100, and otherwise by
/// the exponential of `b log a`.
///
/// For integer exponents other than 1, 2 and 3 the product starts with 1, as in NumPy. For infinite `a`, the multiplication by 1 may
/// introduce a NaN.
fn power(a: C, b: C) -> C {
    if b.re == 0.0 && b.im == 0.0 {
        return C::new(1.0, 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { C::new(0.0, 0.0) } else { C::new(f64::NAN, f64::NAN) };
    }
    if b.im == 0.0 && b.re == b.re.trunc() && b.re.abs() < 100.0 {
        let (mut result, mut square, mut rest) = (C::new(1.0, 0.0), a, b.re.abs() as u32);
        let mut is_empty = [1.0, 2.0, 3.0].contains(&b.re);
        while rest != 0 {
            if rest & 1 == 1 {
                result = if is_empty { square } else { result * square };
                is_empty = false;
            }
            rest >>= 1;
            if rest != 0 {
                square *= square;
            }
        }
        return if b.re < 0.0 { C::new(1.0, 0.0).divide(result) } else { result };
    }
    ComplexMath::exponential(multiply_with_infinities(b, ComplexMath::logarithm(a)))
}

/// Returns `a * b` by Annex G of C99, as NumPy multiplies in `power`. If both parts of the plain product are NaN although a factor or a
/// partial product is infinite, the result is infinite.
fn multiply_with_infinities(a: C, b: C) -> C {
    let product = a * b;
    if !(product.re.is_nan() && product.im.is_nan()) {
        return product;
    }
    let is_infinite = |z: C| z.re.is_infinite() || z.im.is_infinite();
    let direction = |z: C| z.map_parts(|x| (x.is_infinite() as u8 as f64).copysign(x));
    let without_nan = |z: C| z.map_parts(|x| if x.is_nan() { 0f64.copysign(x) } else { x });
    let (a, b) = match (is_infinite(a), is_infinite(b)) {
        (true, true) => (direction(a), direction(b)),
        (true, false) => (direction(a), without_nan(b)),
        (false, true) => (without_nan(a), direction(b)),
        (false, false) if [a.re * b.re, a.im * b.im, a.re * b.im, a.im * b.re].iter().any(|x| x.is_infinite()) => {
            (without_nan(a), without_nan(b))
        }
        (false, false) => return product,
    };
    (a * b).map_parts(|x| f64::INFINITY * x)
}

/// Returns `a * a` rounded, and the rounding error of that square.
fn two_square(a: f64) -> (f64, f64) {
    let p = a * a;
    (p, a.mul_add(a, -p))
}

/// Returns `ln |z|`, accurate also where |z| is close to 1.
fn log_abs(z: C) -> f64 {
    let (x, y) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let size = z.re.hypot(z.im);
    if (0.5..=2.0).contains(&size) {
        // Near |z| = 1, log |z| is 0.5 log1p(x^2 + y^2 - 1), with the sum in double-double precision so that cancellation loses no digits.
        let ((x2, dx), (y2, dy)) = (two_square(x), two_square(y));
        let (head, e1) = vmath::two_sum(x2, -1.0);
        let (sum, e2) = vmath::two_sum(head, y2);
        return 0.5 * (sum + (e1 + e2 + dx + dy)).ln_1p();
    }
    if x > MAX_UNSCALED_PART && x.is_finite() {
        return (z.re / 4.0).hypot(z.im / 4.0).ln() + 2.0 * LN_2;
    }
    if size < f64::MIN_POSITIVE && size > 0.0 {
        let up = 2f64.powi(54);
        return (z.re * up).hypot(z.im * up).ln() - 54.0 * LN_2;
    }
    size.ln()
}

/// Returns `factor * e^x * (re + i im)`. Intermediate values overflow only if a part of the result overflows. Requires `|re|` and `|im|` of
/// at most 1, and a `factor` of 1 or 0.5.
fn scaled_exp(mut x: f64, mut factor: f64, mut re: f64, mut im: f64) -> C {
    // If e^x alone would overflow, multiplies `re` and `im` by `e^MAX_DIRECT_EXP_ARGUMENT` first, at most twice. The result can be finite
    // although e^x is not, because `re` or `im` may be as small as the least subnormal number.
    for _ in 0..2 {
        if x > MAX_DIRECT_EXP_ARGUMENT {
            let e = factor * MAX_DIRECT_EXP_ARGUMENT.exp();
            (x, factor, re, im) = (x - MAX_DIRECT_EXP_ARGUMENT, 1.0, e * re, e * im);
        }
    }
    let e = factor * x.exp();
    C::new(e * re, e * im)
}

/// Namespace of the complex functions of one argument `z = x + iy`.
pub(crate) struct ComplexMath;

impl ComplexMath {
    pub(crate) fn square_root(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if x == 0.0 && y == 0.0 {
            return C::new(0.0, y);
        }
        if y.is_infinite() {
            return C::new(f64::INFINITY, y);
        }
        if x.is_nan() {
            return C::new(x, f64::NAN);
        }
        if x.is_infinite() {
            return if x > 0.0 { C::new(x, y * 0.0) } else { C::new(if y.is_finite() { 0.0 } else { f64::NAN }, x.copysign(y)) };
        }
        // Scales by an even power of two, so that squares neither overflow nor underflow.
        let size = x.abs().max(y.abs());
        let (scale, back) = match size {
            s if s > MAX_UNSCALED_PART => (0.0625, 4.0),
            s if s < 1e-290 => (2f64.powi(108), 2f64.powi(-54)),
            _ => (1.0, 1.0),
        };
        let (x, y) = (x * scale, y * scale);
        let t = ((x.abs() + x.hypot(y)) * 0.5).sqrt();
        let root = if x >= 0.0 { C::new(t, y / (2.0 * t)) } else { C::new(y.abs() / (2.0 * t), t.copysign(y)) };
        root * back
    }

    pub(crate) fn exponential(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if y == 0.0 {
            return C::new(x.exp(), y);
        }
        if !y.is_finite() {
            return match x {
                x if x == f64::NEG_INFINITY => C::new(0.0, 0f64.copysign(y)),
                x if x == f64::INFINITY => C::new(x, f64::NAN),
                _ => C::new(f64::NAN, f64::NAN),
            };
        }
        scaled_exp(x, 1.0, y.cos(), y.sin())
    }

    pub(crate) fn logarithm(z: C) -> C {
        C::new(log_abs(z), z.im.atan2(z.re))
    }

    pub(crate) fn logarithm_of_1_plus(z: C) -> C {
        let (x, y) = (z.re, z.im);
        let angle = y.atan2(1.0 + x);
        let size = (1.0 + x).hypot(y);
        if !(0.5..=2.0).contains(&size) {
            return C::new(log_abs(C::new(1.0 + x, y)), angle);
        }
        // Near |1 + z| = 1, log |1 + z| is 0.5 log1p(2x + x^2 + y^2), with the sum in double-double precision.
        let ((x2, dx), (y2, dy)) = (two_square(x), two_square(y));
        let (head, e1) = vmath::two_sum(2.0 * x, x2);
        let (sum, e2) = vmath::two_sum(head, y2);
        C::new(0.5 * (sum + (e1 + e2 + dx + dy)).ln_1p(), angle)
    }

    pub(crate) fn hyperbolic_sine(z: C) -> C {
        let (x, y) = (z.re, z.im);
        match (x.is_finite(), y.is_finite()) {
            (_, _) if y == 0.0 => C::new(x.sinh(), y),
            (true, true) if x.abs() < 22.0 => C::new(x.sinh() * y.cos(), x.cosh() * y.sin()),
            // For |x| > 22, sinh and cosh equal half of e^|x| in float64.
            (true, true) => scaled_exp(x.abs(), 0.5, 1f64.copysign(x) * y.cos(), y.sin()),
            (true, false) if x == 0.0 => C::new(x, f64::NAN),
            (true, false) => C::new(f64::NAN, f64::NAN),
            _ if x.is_nan() => C::new(f64::NAN, f64::NAN),
            (_, true) => C::new(x * y.cos(), f64::INFINITY * y.sin()),
            _ => C::new(f64::INFINITY, f64::NAN),
        }
    }

    pub(crate) fn hyperbolic_cosine(z: C) -> C {
        let (x, y) = (z.re, z.im);
        match (x.is_finite(), y.is_finite()) {
            (_, _) if y == 0.0 => C::new(x.cosh(), if x.is_nan() { y } else { 0f64.copysign(x) * 1f64.copysign(y) }),
            (true, true) if x.abs() < 22.0 => C::new(x.cosh() * y.cos(), x.sinh() * y.sin()),
            (true, true) => scaled_exp(x.abs(), 0.5, y.cos(), 1f64.copysign(x) * y.sin()),
            (true, false) if x == 0.0 => C::new(f64::NAN, 0.0),
            (true, false) => C::new(f64::NAN, f64::NAN),
            _ if x.is_nan() => C::new(f64::NAN, f64::NAN),
            (_, true) => C::new(f64::INFINITY * y.cos(), x * y.sin()),
            _ => C::new(f64::INFINITY, f64::NAN),
        }
    }

    pub(crate) fn hyperbolic_tangent(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if x.is_nan() {
            return C::new(x, if y == 0.0 { y } else { f64::NAN });
        }
        if x.is_infinite() {
            return C::new(1f64.copysign(x), 0f64.copysign(if y.is_finite() { y.sin() * y.cos() } else { y }));
        }
        if !y.is_finite() {
            return C::new(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
        }
        if x.abs() >= 22.0 {
            let e = (-x.abs()).exp();
            return C::new(1f64.copysign(x), 4.0 * y.sin() * y.cos() * e * e);
        }
        // With t = tan y and s = sinh x, the result is (cosh x sinh x (1 + t^2) + i t) / (1 + (1 + t^2) s^2).
        let (t, s) = (y.tan(), x.sinh());
        let (b, c) = (1.0 + t * t, (1.0 + s * s).sqrt());
        let d = 1.0 + b * s * s;
        C::new(b * c * s / d, t / d)
    }

    pub(crate) fn sine(z: C) -> C {
        circular_from_hyperbolic(Self::hyperbolic_sine, z)
    }

    pub(crate) fn cosine(z: C) -> C {
        Self::hyperbolic_cosine(C::new(-z.im, z.re))
    }

    pub(crate) fn tangent(z: C) -> C {
        circular_from_hyperbolic(Self::hyperbolic_tangent, z)
    }

    pub(crate) fn arc_sine(z: C) -> C {
        circular_from_hyperbolic(Self::inverse_hyperbolic_sine, z)
    }

    pub(crate) fn arc_tangent(z: C) -> C {
        circular_from_hyperbolic(Self::inverse_hyperbolic_tangent, z)
    }

    pub(crate) fn arc_cosine(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if has_part_above_unscaled_limit(z) {
            return C::new(y.abs().atan2(x), log_abs_doubled(z).copysign(-y));
        }
        if x == 0.0 && y.is_nan() {
            return C::new(FRAC_PI_2, y);
        }
        let (below, above) = (Self::square_root(C::new(1.0 - x, -y)), Self::square_root(C::new(1.0 + x, y)));
        C::new(2.0 * below.re.atan2(above.re), arsinh(above.re * below.im - above.im * below.re))
    }

    pub(crate) fn inverse_hyperbolic_sine(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if has_part_above_unscaled_limit(z) {
            return C::new(log_abs_doubled(z).copysign(x), y.atan2(x.abs()));
        }
        if y == 0.0 {
            return C::new(arsinh(x), y);
        }
        let (below, above) = (Self::square_root(C::new(1.0 + y, -x)), Self::square_root(C::new(1.0 - y, x)));
        C::new(arsinh(below.re * above.im - above.re * below.im), y.atan2(below.re * above.re - below.im * above.im))
    }

    pub(crate) fn inverse_hyperbolic_cosine(z: C) -> C {
        let (x, y) = (z.re, z.im);
        if has_part_above_unscaled_limit(z) {
            return C::new(log_abs_doubled(z), y.atan2(x));
        }
        if x == 0.0 && y.is_nan() {
            return C::new(y, FRAC_PI_2);
        }
        let (below, above) = (Self::square_root(C::new(x - 1.0, y)), Self::square_root(C::new(x + 1.0, y)));
        C::new(arsinh(below.re * above.re + below.im * above.im), 2.0 * below.im.atan2(above.re))
    }

    pub(crate) fn inverse_hyperbolic_tangent(z: C) -> C {
        if z.re.is_sign_negative() {
            let w = Self::inverse_hyperbolic_tangent(-z);
            return -w;
        }
        let (x, y) = (z.re, z.im);
        let right_angle = FRAC_PI_2.copysign(y);
        if x.is_infinite() || y.is_infinite() {
            return C::new(0.0, if y.is_nan() { y } else { right_angle });
        }
        if x == 0.0 {
            return C::new(x, y.atan());
        }
        if x.is_nan() || y.is_nan() {
            return C::new(f64::NAN, f64::NAN);
        }
        let tiny = f64::MIN_POSITIVE.sqrt();
        if x > MAX_UNSCALED_PART.sqrt() || y.abs() > MAX_UNSCALED_PART.sqrt() {
            let h = (x / 2.0).hypot(y / 2.0);
            return C::new(x / 4.0 / h / h, right_angle);
        }
        if x == 1.0 && y.abs() <= tiny {
            if y == 0.0 {
                return C::new(f64::INFINITY, y);
            }
            return C::new(-(y.abs().sqrt() / y.hypot(2.0).sqrt()).ln(), (2f64.atan2(-y.abs()) / 2.0).copysign(y));
        }
        let re = (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p() / 4.0;
        C::new(re, -(-2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
    }
}

/// Returns the circular counterpart of the hyperbolic function `f`, computed as `f(iz) / i` by swapping real and imaginary parts.
fn circular_from_hyperbolic(f: fn(C) -> C, z: C) -> C {
    let w = f(C::new(z.im, z.re));
    C::new(w.im, w.re)
}

fn has_part_above_unscaled_limit(z: C) -> bool {
    z.re.abs() > MAX_UNSCALED_PART || z.im.abs() > MAX_UNSCALED_PART
}

/// Returns `ln |2z|` without overflow.
fn log_abs_doubled(z: C) -> f64 {
    (z.re / 2.0).hypot(z.im / 2.0).ln() + 2.0 * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_tangents_of_nan_and_a_large_part_are_nan() {
        let large = MAX_UNSCALED_PART;
        for z in [C::new(f64::NAN, large), C::new(f64::NAN, -1.0), C::new(-large, f64::NAN)] {
            for w in [ComplexMath::inverse_hyperbolic_tangent(z), ComplexMath::arc_tangent(z)] {
                assert!(w.re.is_nan() && w.im.is_nan(), "{z}: {w}");
            }
        }
    }
}
