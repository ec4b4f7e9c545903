//! Bessel functions of any real order.

use cuprum_core::numpy;

with_gamma! {
    // Coefficients of Debye's polynomials `u_k(t) / t^k` in powers of `t^2`, for k = 1, 2, ...
    const DEBYE_COEFFICIENTS: [[f64; 13]; 12] = [[0.125, -0.20833333333333334, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0703125, -0.4010416666666667, 0.3342013888888889, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0732421875, -0.8912109375, 1.8464626736111112, -1.0258125964506173, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.112152099609375, -2.3640869140625, 8.78912353515625, -11.207002616222994, 4.669584423426247, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.22710800170898438, -7.368794359479632, 42.53499874538846, -91.81824154324002, 84.63621767460073, -28.212072558200244, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.5725014209747314, -26.491430486951554, 218.1905117442116, -699.5796273761325, 1059.9904525279999, -765.2524681411817, 212.57013003921713, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.7277275025844574, -108.09091978839466, 1200.9029132163525, -5305.646978613403, 11655.393336864534, -13586.550006434138, 8061.722181737309, -1919.457662318407, 0.0, 0.0, 0.0, 0.0, 0.0], [6.074042001273483, -493.915304773088, 7109.514302489364, -41192.65496889755, 122200.46498301746, -203400.17728041555, 192547.00123253153, -96980.59838863752, 20204.29133096615, 0.0, 0.0, 0.0, 0.0], [24.380529699556064, -2499.8304818112097, 45218.76898136273, -331645.1724845636, 1268365.2733216248, -2813563.226586534, 3763271.297656404, -2998015.9185381066, 1311763.6146629772, -242919.18790055133, 0.0, 0.0, 0.0], [110.01714026924674, -13886.08975371704, 308186.4046126624, -2785618.1280864547, 13288767.166421818, -37567176.66076335, 66344512.27472903, -74105148.21153265, 50952602.49266464, -19706819.118432228, 3284469.853072038, 0.0, 0.0], [551.3358961220206, -84005.43360302408, 2243768.1779224495, -24474062.72573873, 142062907.7975331, -495889784.2750303, 1106842816.8230145, -1621080552.1083372, 1553596899.57058, -939462359.6815784, 325573074.18576574, -49329253.66450996, 0.0], [3038.090510922384, -549842.3275722887, 17395107.553978164, -225105661.88941526, 1559279864.8792574, -6563293792.619285, 17954213731.1556, -33026599749.800724, 41280185579.753975, -34632043388.158775, 18688207509.295826, -5866481492.051847, 814789096.1183121]];

    #[helper]
    fn is_integer(v: f64) -> bool {
        v == v.floor()
    }

    /// Returns the power series of I_v(x) (`sign` = 1) or J_v(x) (`sign` = -1), without the factor `(x / 2)^v / gamma(v + 1)`. `square` is
    /// `(x / 2)^2`.
    #[helper]
    fn bessel_series(v: f64, square: f64, sign: f64) -> f64 {
        let mut sum: f64 = 1.0;
        let mut term: f64 = 1.0;
        let mut k = 0.0;
        for _ in 0..2000 {
            k = k + 1.0;
            term = term * (sign * square / (k * (k + v)));
            sum = sum + term;
            // For negative orders near an integer, small terms may precede large ones at `k` near -v. The first condition keeps the loop
            // running until the terms decrease.
            if k * (k + v) > square && term.abs() < 1e-17 * sum.abs() {
                break;
            }
        }
        sum
    }

    /// Returns `half^v / gamma(v + 1) * factor`, for v > -171 and `half` = x / 2.
    #[helper]
    fn bessel_prefactor(v: f64, half: f64, factor: f64) -> f64 {
        if v < 169.0 {
            let power = half.powf(0.5 * v);
            return power / gamma_f64(v + 1.0) * factor * power;
        }
        if v > 1400.0 {
            let exponent = v * log1p_minus_x((half - v) / v) + (half - stirling_remainder(v));
            return exp_of_sum_times_factor(exponent, 0.0, factor * 0.398942280401432677940 / v.sqrt());
        }
        // Stirling's formula, with corrections for the rounding errors of the quotient and of `e * half / v`.
        let quotient = half / v;
        if quotient == 0.0 {
            return 0.0;
        }
        let base = 2.71828182845904523536 * quotient;
        let product_rest = quotient.mul_add(2.71828182845904523536, -base) + 1.4456468917292502e-16 * quotient;
        let rest = v * (quotient.mul_add(-v, half) / half + product_rest / base) - stirling_remainder(v);
        // `base^v` may overflow or underflow although the result does not. The result is therefore multiplied twice by the square root of
        // `base^v`.
        let power = base.powf(0.5 * v);
        power * (rest.exp() * factor * 0.398942280401432677940 / v.sqrt()) * power
    }

    /// Returns the sum of Debye's terms `u_k(t) / v^k` for `w` = t / v, or of `u_k(t) / (-v)^k` for `w` = -t / v (NIST Digital Library of
    /// Mathematical Functions, 10.41.9).
    #[helper]
    fn debye_sum(t: f64, w: f64) -> f64 {
        let square = t * t;
        let mut sum = 0.0;
        for k in 0..12 {
            sum = (sum + square.polynomial(DEBYE_COEFFICIENTS[11 - k])) * w;
        }
        1.0 + sum
    }

    /// Returns the exponent of the uniform expansions of I_v(v z) and K_v(v z) for large v (NIST Digital Library of Mathematical Functions,
    /// 10.41.3 and 10.41.4). `root` is `sqrt(1 + z^2)`.
    #[helper]
    fn uniform_expansion_exponent(v: f64, z: f64, root: f64) -> f64 {
        v * (root - (1.0 / z).asinh())
    }

    #[helper]
    fn sqrt_one_plus_square(z: f64) -> f64 {
        if z > 1e8 { z } else { z.mul_add(z, 1.0).sqrt() }
    }

    #[helper]
    fn iv_uniform_expansion(v: f64, x: f64) -> f64 {
        let z = x / v;
        let root = sqrt_one_plus_square(z);
        let t = 1.0 / root;
        let factor = debye_sum(t, t / v) * 0.398942280401432677940 / (v * root).sqrt();
        exp_of_sum_times_factor(uniform_expansion_exponent(v, z, root), 0.0, factor)
    }

    #[helper]
    fn kv_uniform_expansion(v: f64, x: f64) -> f64 {
        let z = x / v;
        let root = sqrt_one_plus_square(z);
        let t = 1.0 / root;
        let factor = debye_sum(t, -t / v) * 1.25331413731550025121 / (v * root).sqrt();
        exp_of_sum_times_factor(-uniform_expansion_exponent(v, z, root), 0.0, factor)
    }

    /// Returns I_v(x) for x > 0 and any order v except negative integers.
    #[helper]
    fn iv_positive(v: f64, x: f64) -> f64 {
        if v >= 1400.0 || v > 169.0 && x > 3000.0 {
            return iv_uniform_expansion(v, x);
        }
        if v < -170.0 {
            return NAN;
        }
        if v < 169.0 && x > 750.0 {
            return INFINITY;
        }
        // I_v and I_-v differ by `2 / pi * sin(pi * v) * K_v`, which is below half a unit in the last place for large x.
        let order = if x > 40.0 && x >= -v { v.abs() } else { v };
        if order < -40.0 && x > 10.0 {
            return iv_uniform_expansion(-v, x) - 0.636619772367581343076 * sin_pi(v) * kv_uniform_expansion(-v, x);
        }
        let half = 0.5 * x;
        bessel_prefactor(order, half, bessel_series(order, half * half, 1.0))
    }

    #[helper]
    fn iv_f64(v: f64, z: f64) -> f64 {
        if v.is_nan() || z.is_nan() {
            return NAN;
        }
        // An infinite order counts as an integer, so its result is not NaN for a negative z.
        if v.abs() == INFINITY {
            return if z.abs() == INFINITY { NAN } else { 0.0 };
        }
        let order = if is_integer(v) { v.abs() } else { v };
        if z == 0.0 {
            return if order == 0.0 { 1.0 } else if order > 0.0 { 0.0 } else { INFINITY };
        }
        if z < 0.0 && !is_integer(v) {
            return NAN;
        }
        let sign = if z < 0.0 { parity_sign(v) } else { 1.0 };
        if z.abs() == INFINITY { sign * INFINITY } else { sign * iv_positive(order, z.abs()) }
    }

    /// Returns J_v(x) by Hankel's expansion, for x above 25 + v^2 / 2.
    #[helper]
    fn jv_hankel_expansion(v: f64, x: f64) -> f64 {
        let w = 0.125 / x;
        let mu = 4.0 * v * v;
        let mut p: f64 = 1.0;
        let mut q: f64 = 0.0;
        let mut term: f64 = 1.0;
        let mut k = 0.0;
        for n in 0..60 {
            k = k + 1.0;
            let odd = 2.0 * k - 1.0;
            term = term * ((mu - odd * odd) * w / k);
            // In Hankel's expansion, the signs of consecutive terms are + + - -, which repeats.
            let signed = if n % 4 < 2 { term } else { -term };
            if n % 2 == 0 {
                q = q + signed;
            } else {
                p = p - signed;
            }
            if term.abs() < 1e-17 {
                break;
            }
        }
        let turn = 0.5 * v + 0.25;
        let cosine = cos_pi(turn);
        let sine = sin_pi(turn);
        let c = x.cos();
        let s = x.sin();
        (0.636619772367581343076 / x).sqrt() * (p * (c * cosine + s * sine) - q * (s * cosine - c * sine))
    }

    /// Returns J_v(x) for v >= 0 and x > 0 by downward recurrence from high orders. Neumann's expansion of `(x / 2)^v` normalises the
    /// result (NIST Digital Library of Mathematical Functions, 10.23.15).
    #[helper]
    fn jv_downward_recurrence(v: f64, x: f64) -> f64 {
        let first = v - v.floor();
        let wanted = v.floor() as i64;
        let top = v.max(x);
        let pairs = (0.5 * (top + 12.0 * top.cbrt() + 24.0)) as i64;
        // `weight` is a factor of the coefficients of Neumann's expansion. It starts with its value for the highest order,
        // `gamma(first + pairs) / pairs!`.
        let mut weight = gamma_f64(first + 1.0);
        for k in 1..pairs {
            weight = weight * ((first + k as f64) / (k as f64 + 1.0));
        }
        let mut after: f64 = 0.0;
        let mut value: f64 = 1e-280;
        let mut sum: f64 = 0.0;
        let mut found: f64 = 0.0;
        let mut shrinks: f64 = 0.0;
        let twice = 2.0 / x;
        for step in 0..2 * pairs {
            let n = 2 * pairs - step;
            if n == wanted {
                found = value;
                shrinks = 0.0;
            }
            if n % 2 == 0 {
                sum = sum + value * (weight * (first + n as f64));
                let half = (n / 2) as f64;
                if half > 1.0 {
                    weight = weight * (half / (first + half - 1.0));
                }
            }
            let before = (first + n as f64) * twice * value - after;
            after = value;
            value = before;
            if value.abs() > 1e200 {
                value = value * 1e-200;
                after = after * 1e-200;
                sum = sum * 1e-200;
                shrinks = shrinks + 1.0;
            }
        }
        if wanted == 0 {
            found = value;
            shrinks = 0.0;
        }
        sum = sum + value * gamma_f64(first + 1.0);
        let scale = (0.5 * x).powf(first) / sum;
        if shrinks > 3.0 {
            return 0.0;
        }
        let mut result = found * scale;
        for _ in 0..shrinks as i64 {
            result = result * 1e-200;
        }
        result
    }

    /// Returns J_v(x) for v >= 0 and x > 0.
    #[helper]
    fn jv_positive(v: f64, x: f64) -> f64 {
        let half = 0.5 * x;
        if half * half <= v + 1.0 {
            return bessel_prefactor(v, half, bessel_series(v, half * half, -1.0));
        }
        if x > 25.0 + 0.5 * v * v {
            return jv_hankel_expansion(v, x);
        }
        // Both recurrences below take at least v steps, which is too slow for larger orders.
        if v > 40000.0 {
            return NAN;
        }
        if v > x || x < 60.0 {
            return jv_downward_recurrence(v, x);
        }
        // For orders below x, the upward recurrence of the Bessel functions J is stable.
        let first = v - v.floor();
        let mut before = jv_hankel_expansion(first, x);
        let mut value = jv_hankel_expansion(first + 1.0, x);
        let mut order = first + 1.0;
        for _ in 1..v.floor() as i64 {
            let next = 2.0 * order / x * value - before;
            before = value;
            value = next;
            order = order + 1.0;
        }
        value
    }

    #[helper]
    fn jv_f64(v: f64, z: f64) -> f64 {
        if v.is_nan() || z.is_nan() {
            return NAN;
        }
        if v.abs() == INFINITY {
            return if z.abs() == INFINITY { NAN } else { 0.0 };
        }
        if z < 0.0 && !is_integer(v) {
            return NAN;
        }
        if z.abs() == INFINITY {
            return 0.0;
        }
        let x = z.abs();
        if is_integer(v) {
            let order = v.abs();
            let sign = if (z < 0.0) != (v < 0.0) { parity_sign(v) } else { 1.0 };
            if x == 0.0 {
                return if order == 0.0 { 1.0 } else { 0.0 };
            }
            return sign * jv_positive(order, x);
        }
        if v > 0.0 {
            return if x == 0.0 { 0.0 } else { jv_positive(v, x) };
        }
        if x == 0.0 {
            return INFINITY * gamma_f64(v + 1.0).max(-1.0).min(1.0);
        }
        if x < 4.0 {
            return if v < -170.0 { NAN } else { bessel_prefactor(v, 0.5 * x, bessel_series(v, 0.25 * x * x, -1.0)) };
        }
        if v < -40000.0 {
            return NAN;
        }
        let first = v - v.floor();
        let mut after = jv_positive(first + 1.0, x);
        let mut value = jv_positive(first, x);
        let mut order = first;
        for _ in 0..(-v.floor()) as i64 {
            let before = 2.0 * order / x * value - after;
            after = value;
            value = before;
            order = order - 1.0;
        }
        value
    }

    /// Returns the Bessel function of the first kind of real order v (`scipy.special.jv`), elementwise.
    ///
    /// If v is not an integer, the result is NaN for negative z, and for 0 < z < 4 if v is below -170. It is also NaN for some v above
    /// 40,000 in magnitude. `docs/special.md` lists these limits.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::jv(0.0, 0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.jv(v, z, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn jv<T: Single>(v: T, z: T) -> T {
        jv_f64(v as f64, z as f64) as T
    }

    /// Returns the modified Bessel function of the first kind of real order v (`scipy.special.iv`), elementwise.
    ///
    /// If v is not an integer, the result is NaN for negative z, and for positive finite z if v is below -170.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::iv(0.0, 0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.iv(v, z, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn iv<T: Single>(v: T, z: T) -> T {
        iv_f64(v as f64, z as f64) as T
    }
}
