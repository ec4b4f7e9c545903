//! Logarithm and exponential as fixed sequences of IEEE float64 operations.
//!
//! `random_samplers.cu` has the same sequences with explicitly rounded instructions. Rejection sampling compares the results of these
//! functions with random numbers. Equal bits therefore make every device accept the same candidates. No operation is a fused multiply-add.

/// Leading 40 bits of ln 2. The product of this constant and the exponent of a float64 number is exact.
const LN_2_HIGH: f64 = 0.6931471805592082;
/// ln 2 minus [`LN_2_HIGH`].
const LN_2_LOW: f64 = 7.371002565167799e-13;
/// Bit pattern of the square root of 1/2, the lower end of the reduced arguments of [`log`].
const BITS_OF_SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
const BITS_OF_ONE: u64 = 0x3ff0_0000_0000_0000;
const MANTISSA_MASK: u64 = 0x000f_ffff_ffff_ffff;

/// Returns the natural logarithm, within 2 ulp.
///
/// With `x = 2^e m` and `s = (m - 1) / (m + 1)`, the series `2 (s + s^3 / 3 + s^5 / 5 + ...)` gives `ln m`. `m` is from sqrt(1/2) to
/// sqrt(2), so the terms after `s^21` are below 2^-60.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    let is_subnormal = x < f64::MIN_POSITIVE;
    let normal = if is_subnormal { x * 18014398509481984.0 } else { x };
    let shifted = normal.to_bits() + (BITS_OF_ONE - BITS_OF_SQRT_HALF);
    let exponent = ((shifted >> 52) as i64 - if is_subnormal { 1077 } else { 1023 }) as f64;
    let m = f64::from_bits((shifted & MANTISSA_MASK) + BITS_OF_SQRT_HALF);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 0.047619047619047616;
    for coefficient in [
        0.05263157894736842,
        0.058823529411764705,
        0.06666666666666667,
        0.07692307692307693,
        0.09090909090909091,
        0.1111111111111111,
        0.14285714285714285,
        0.2,
        0.3333333333333333,
    ] {
        series = series * z + coefficient;
    }
    let twice = s + s;
    exponent * LN_2_HIGH + (twice + (twice * (z * series) + exponent * LN_2_LOW))
}

/// Returns `e^x`, within 2 ulp.
///
/// With `x = turns ln 2 + r`, the Taylor series gives `e^r`, which is multiplied by `2^turns`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.79 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let turns = (x * std::f64::consts::LOG2_E + 0.5).floor();
    let r = (x - turns * LN_2_HIGH) - turns * LN_2_LOW;
    let mut series = 1.6059043836821613e-10;
    for coefficient in [
        2.08767569878681e-09,
        2.505210838544172e-08,
        2.755731922398589e-07,
        2.7557319223985893e-06,
        2.48015873015873e-05,
        0.0001984126984126984,
        0.001388888888888889,
        0.008333333333333333,
        0.041666666666666664,
        0.16666666666666666,
        0.5,
        1.0,
        1.0,
    ] {
        series = series * r + coefficient;
    }
    // Scales by two factors, because 2^turns itself can overflow or be subnormal.
    let half = (turns as i64) >> 1;
    series * power_of_two(half) * power_of_two(turns as i64 - half)
}

/// Returns `2^n` for `n` from -1022 to 1023.
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// Returns `ln(1 + x)`, accurate near 0.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    if sum == 1.0 { x } else { log(sum) * (x / (sum - 1.0)) }
}

/// Returns `e^x - 1` for `x <= 0`, accurate near 0.
#[inline(always)]
pub fn expm1_of_negative(x: f64) -> f64 {
    let power = exp(x);
    if power == 1.0 {
        return x;
    }
    let difference = power - 1.0;
    if difference == -1.0 { -1.0 } else { difference * (x / log(power)) }
}

/// Returns the Stirling correction `ln k! - ((k + 1/2) ln(k + 1) - (k + 1) + ln(2 pi) / 2)`, with an error below 1e-10.
#[inline(always)]
pub fn stirling_correction(k: f64) -> f64 {
    const STIRLING_CORRECTIONS_BELOW_10: [f64; 10] = [
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
    ];
    if k < 10.0 {
        return STIRLING_CORRECTIONS_BELOW_10[k as usize];
    }
    let next = k + 1.0;
    let square = next * next;
    (0.08333333333333333 - (0.002777777777777778 - 0.0007936507936507937 / square) / square) / next
}

/// Returns `ln k!` for a whole number `k >= 0`.
#[inline(always)]
pub fn log_factorial(k: f64) -> f64 {
    if k < 2.0 {
        return 0.0;
    }
    let next = k + 1.0;
    (k + 0.5) * log(next) - next + 0.9189385332046728 + stirling_correction(k)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(got: f64, want: f64, ulps: f64, x: f64) {
        let unit = want.abs().max(f64::MIN_POSITIVE) * f64::EPSILON;
        assert!(got == want || (got - want).abs() <= ulps * unit, "{x:e}: {got:e} is not {want:e}");
    }

    #[test]
    fn functions_are_near_the_standard_librarys() {
        let mut x = 1e-320;
        while x < 1e308 {
            assert_near(log(x), x.ln(), 2.0, x);
            x *= 1.0 + 1.0 / 7.0 + 1e-5;
        }
        for i in -100_000i32..100_000 {
            let x = 1.0 + f64::from(i) * 4e-6;
            assert_near(log(x), x.ln(), 2.0, x);
            let x = f64::from(i) * 0.00709;
            if x > -708.0 {
                assert_near(exp(x), x.exp(), 3.0, x);
            }
            let x = -f64::from(i.abs()) * 1e-5;
            assert_near(expm1_of_negative(x), x.exp_m1(), 6.0, x);
            assert_near(log1p(x * 0.999), (x * 0.999).ln_1p(), 4.0, x);
        }
        assert!(log(-1.0).is_nan() && log(0.0) == f64::NEG_INFINITY && log(f64::INFINITY) == f64::INFINITY && log(1.0) == 0.0);
        assert!(exp(f64::NAN).is_nan() && exp(1000.0) == f64::INFINITY && exp(-1000.0) == 0.0 && exp(0.0) == 1.0);
    }

    #[test]
    fn log_factorials_are_sums_of_logarithms() {
        let mut want = 0.0;
        for k in 0..2000 {
            want += f64::from(k.max(1)).ln();
            assert!((log_factorial(f64::from(k)) - want).abs() <= 1e-10 + 1e-13 * want, "{k}");
        }
    }
}
