//! Lambert's W function.

use cuprum_core::{Complex, DType, NdArray, Operand, Result, Scalar, numpy};
use cuprum_macros::kernel;

kernel! {
    // Coefficients of branch 0 of W in powers of p = sqrt(2 (e z + 1)) (Corless et al., "On the Lambert W function", 1996, equation 4.22).
    const BRANCH_POINT_COEFFICIENTS: [f64; 14] = [
        -1.0, 1.0, -0.3333333333333333, 0.1527777777777778, -0.07962962962962963, 0.044502314814814814, -0.02598471487360376,
        0.01563563253233392, -0.009616892024299432, 0.006014543252956118, -0.0038112980348919993, 0.0024408779911439826,
        -0.0015769303446867841, 0.0010262633205076071
    ];

    /// Returns the real part of (ar + i ai) / (br + i bi).
    #[helper]
    fn complex_quotient_re(ar: f64, ai: f64, br: f64, bi: f64) -> f64 {
        let size = br.abs().max(bi.abs());
        let cr = br / size;
        let ci = bi / size;
        (ar * cr + ai * ci) / (cr * cr + ci * ci) / size
    }

    #[helper]
    fn complex_quotient_im(ar: f64, ai: f64, br: f64, bi: f64) -> f64 {
        let size = br.abs().max(bi.abs());
        let cr = br / size;
        let ci = bi / size;
        (ai * cr - ar * ci) / (cr * cr + ci * ci) / size
    }

    /// Returns the real part (if `real`) or the imaginary part of branch k of Lambert's W function at zr + i zi. Halley's method solves w -
    /// z exp(-w) = 0.
    #[helper]
    fn lambertw_part(zr: f64, zi: f64, k: f64, real: bool) -> f64 {
        if zr.is_nan() || zi.is_nan() {
            return if real { zr } else { zi };
        }
        let size = zr.hypot(zi);
        if size == 0.0 {
            return if k == 0.0 { if real { zr } else { zi } } else if real { -INFINITY } else { 0.0 };
        }
        let turn = 6.28318530717958647693 * k;
        if zr.abs() == INFINITY || zi.abs() == INFINITY {
            return if real { INFINITY } else { zi.atan2(zr) + turn };
        }
        // Computes e z + 1 without the rounding error of 1 / e.
        let er = 2.71828182845904523536 * ((zr + 0.36787944117144233) - 1.2428753672788363e-17);
        let ei = 2.71828182845904523536 * zi;
        let distance = er.hypot(ei);
        // Branch 0 meets branch -1 or 1 at z = -1 / e, on one side of the branch cut.
        let meets = k == 0.0 || k == -1.0 && zi >= 0.0 || k == 1.0 && zi < 0.0;
        let mut wr = 0.0;
        let mut wi = 0.0;
        if meets && distance < 0.35 {
            // The square root of 2 (e z + 1), with the sign of the branch.
            let root = (distance + er.abs()).sqrt();
            let other = if root > 0.0 { ei.abs() / root } else { 0.0 };
            let sheet = if k == 0.0 { 1.0 } else { -1.0 };
            let pr = sheet * if er >= 0.0 { root } else { other };
            let pi = sheet * if er >= 0.0 { other } else { root } * 1.0f64.copysign(zi);
            wr = BRANCH_POINT_COEFFICIENTS[13];
            for n in 1..14 {
                let next = wr * pr - wi * pi + BRANCH_POINT_COEFFICIENTS[13 - n];
                wi = wr * pi + wi * pr;
                wr = next;
            }
            if distance < 0.004 {
                return if real { wr } else { wi };
            }
        } else {
            let angle = zi.atan2(zr) + turn;
            if k == 0.0 && size < 1.5 && zr > -0.45 {
                // Starts with z / (1 + z), whose series agrees with that of branch 0 in the terms z - z^2. For real z below -1 / e, this
                // start is real, so it must not be used there.
                wr = complex_quotient_re(zr, zi, 1.0 + zr, zi);
                wi = complex_quotient_im(zr, zi, 1.0 + zr, zi);
            } else if k == -1.0 && zi == 0.0 && zr < 0.0 && zr > -0.36787944117144233 {
                let log = (-zr).ln();
                wr = log - (-log).ln();
            } else {
                // Starts with log(z) - log(log(z)). If the magnitude of z overflows, its logarithm is computed from z / 2.
                let log = if size == INFINITY { (0.5 * zr).hypot(0.5 * zi).ln() + 0.693147180559945309417 } else { size.ln() };
                wr = log - log.hypot(angle).ln();
                wi = angle - angle.atan2(log);
            }
        }
        for _ in 0..40 {
            // Solves f(w) = w - z exp(-w) = 0, where f'(w) = 1 + z exp(-w) = 1 + w - f. exp(-w) overflows for |z| below 1e-307, so z is
            // multiplied twice by exp(-w / 2).
            let root = (-0.5 * wr).exp();
            let c = wi.cos() * root;
            let s = -wi.sin() * root;
            let fr = wr - (zr * root * c - zi * root * s);
            let fi = wi - (zr * root * s + zi * root * c);
            // Halley's step for w exp(w) - z, with numerator and denominator divided by exp(w): f / (w + 1 - f (w + 2) / (2 w + 2)).
            let hr = complex_quotient_re(wr + 2.0, wi, 2.0 * wr + 2.0, 2.0 * wi);
            let hi = complex_quotient_im(wr + 2.0, wi, 2.0 * wr + 2.0, 2.0 * wi);
            let dr = wr + 1.0 - (fr * hr - fi * hi);
            let di = wi - (fr * hi + fi * hr);
            let stepr = complex_quotient_re(fr, fi, dr, di);
            let stepi = complex_quotient_im(fr, fi, dr, di);
            if !(stepr.is_finite() && stepi.is_finite()) {
                break;
            }
            wr = wr - stepr;
            wi = wi - stepi;
            if stepr.abs() + stepi.abs() < 1e-10 * (wr.abs() + wi.abs()) {
                break;
            }
        }
        if real { wr } else { wi }
    }

    /// Returns the real part of Lambert's W function.
    #[rust_only]
    fn lambertw_real_part(zr: f64, zi: f64, k: f64) -> f64 {
        lambertw_part(zr, zi, k, true)
    }

    /// Returns the imaginary part of Lambert's W function.
    #[rust_only]
    fn lambertw_imaginary_part(zr: f64, zi: f64, k: f64) -> f64 {
        lambertw_part(zr, zi, k, false)
    }
}

/// Returns branch k of Lambert's W function, the inverse of `w * exp(w)` (`scipy.special.lambertw`), elementwise, in complex128.
///
/// `k` is an integer or an array of integers. Branch 0 is real for z >= -1/e, and branch -1 is real for -1/e <= z < 0. `tol` has no effect,
/// because the iteration always continues to the precision of float64.
///
/// # Errors
/// Shapes that do not broadcast, and a k that is no integer.
///
/// # Examples
/// ```
/// # use cuprum_core::Complex;
/// # fn main() -> cuprum_core::Result<()> {
/// assert_eq!(cuprum_special::lambertw(0.0, 0, 1e-8)?.item_as::<Complex<f64>>()?, Complex::new(0.0, 0.0));
/// # Ok(())
/// # }
/// ```
#[numpy("special.lambertw(z, k=0, tol=1e-08)")]
pub fn lambertw(z: impl Into<Operand>, k: impl Into<Operand>, #[name("tol")] _tol: f64) -> Result<NdArray> {
    let (z, k) = (z.into(), k.into());
    let dtype = match &k {
        Operand::Array(k) => k.dtype(),
        Operand::Scalar(k) => k.default_dtype(),
    };
    if dtype.is_inexact() {
        return Err(cuprum_core::Error::dtype("lambertw", "k must be an integer", &[dtype]));
    }
    let (re, im) = (cuprum_core::real(z.clone())?.astype(DType::F64)?, cuprum_core::imag(z)?.astype(DType::F64)?);
    let k = match k {
        Operand::Array(k) => Operand::Array(k.astype(DType::F64)?),
        k => k,
    };
    let i = Scalar::Complex(Complex::new(0.0, 1.0));
    cuprum_core::add(lambertw_real_part(&re, &im, k.clone())?, cuprum_core::multiply(lambertw_imaginary_part(&re, &im, k)?, i)?)
}
