//! Window functions. Each is computed on the current device in one pass over the result.

use cuprum_core::{DType, NdArray, Result, add, arange_as, cos, divide, less_equal, multiply, numpy, ones, subtract, where_};

/// Returns `1 - m, 3 - m, .. , m - 1` in float64, or `None` if the window has fewer than two points.
fn points(m: i64) -> Result<Option<NdArray>> {
    Ok(if m > 1 { Some(arange_as(1 - m, m, 2, DType::F64)?) } else { None })
}

/// Returns the window of fewer than two points.
fn short(m: i64) -> Result<NdArray> {
    ones(usize::from(m == 1), DType::F64)
}

/// Returns `cos(factor * pi * n / (m - 1))`.
fn cosine(n: &NdArray, m: i64, factor: f64) -> Result<NdArray> {
    cos(divide(multiply(n, factor * std::f64::consts::PI)?, m - 1)?)
}

/// Returns the Bartlett window of `m` points, a triangle that is 0 at both ends (`numpy.bartlett`).
///
/// The result is float64. No points if `m` is less than 1.
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum_numpy::bartlett(5)?.to_vec::<f64>()?, [0.0, 0.5, 1.0, 0.5, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("bartlett(M)")]
pub fn bartlett(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = points(m)? else { return short(m) };
    let slope = divide(&n, m - 1)?;
    where_(less_equal(&n, 0)?, add(1.0, &slope)?, subtract(1.0, &slope)?)
}

/// Returns the Blackman window of `m` points, a sum of two cosines (`numpy.blackman`).
///
/// # Errors
/// Too little memory.
#[numpy("blackman(M)")]
pub fn blackman(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = points(m)? else { return short(m) };
    add(add(0.42, multiply(0.5, cosine(&n, m, 1.0)?)?)?, multiply(0.08, cosine(&n, m, 2.0)?)?)
}

/// Returns the Hamming window of `m` points, a raised cosine of 0.08 at both ends (`numpy.hamming`).
///
/// # Errors
/// Too little memory.
#[numpy("hamming(M)")]
pub fn hamming(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = points(m)? else { return short(m) };
    add(0.54, multiply(0.46, cosine(&n, m, 1.0)?)?)
}

/// Returns the Hann window of `m` points, a raised cosine that is 0 at both ends (`numpy.hanning`).
///
/// # Errors
/// Too little memory.
#[numpy("hanning(M)")]
pub fn hanning(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = points(m)? else { return short(m) };
    add(0.5, multiply(0.5, cosine(&n, m, 1.0)?)?)
}
