//! Window functions. Each window is computed on the current device in one pass over the result.

use cuprum_core::{
    DType, NdArray, Result, add, arange_as, cos, divide, less_equal, maximum, multiply, numpy, ones, sqrt, subtract, where_,
};

use crate::float_spacing_and_i0::i0;

/// Returns `1 - m, 3 - m, .. , m - 1` in float64, or `None` if the window has fewer than two points.
fn centred_points(m: i64) -> Result<Option<NdArray>> {
    Ok(if m > 1 { Some(arange_as(1 - m, m, 2, DType::F64)?) } else { None })
}

/// Returns the window of `m` < 2 points: one point with the value 1, or no points.
fn window_with_at_most_one_point(m: i64) -> Result<NdArray> {
    ones(usize::from(m == 1), DType::F64)
}

/// Returns `cos(factor * pi * n / (m - 1))`.
fn scaled_cosine(n: &NdArray, m: i64, factor: f64) -> Result<NdArray> {
    cos(divide(multiply(n, factor * std::f64::consts::PI)?, m - 1)?)
}

/// Returns the Bartlett window of `m` points, a triangle that is 0 at both ends (`numpy.bartlett`).
///
/// The result is float64, and empty if `m` is less than 1.
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::bartlett(5)?.to_vec::<f64>()?, [0.0, 0.5, 1.0, 0.5, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("bartlett(M)")]
pub fn bartlett(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = centred_points(m)? else { return window_with_at_most_one_point(m) };
    let slope = divide(&n, m - 1)?;
    where_(less_equal(&n, 0)?, add(1.0, &slope)?, subtract(1.0, &slope)?)
}

/// Returns the Blackman window of `m` points, a sum of two cosines (`numpy.blackman`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::blackman;
/// # fn main() -> cuprum::Result<()> {
/// let window = blackman(5)?.to_vec::<f64>()?;
/// assert!((window[2] - 1.0).abs() < 1e-15 && (window[1] - 0.34).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
#[numpy("blackman(M)")]
pub fn blackman(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = centred_points(m)? else { return window_with_at_most_one_point(m) };
    add(add(0.42, multiply(0.5, scaled_cosine(&n, m, 1.0)?)?)?, multiply(0.08, scaled_cosine(&n, m, 2.0)?)?)
}

/// Returns the Hamming window of `m` points, a raised cosine with the value 0.08 at both ends (`numpy.hamming`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::hamming;
/// # fn main() -> cuprum::Result<()> {
/// assert!((hamming(3)?.index(0)?.item_as::<f64>()? - 0.08).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[numpy("hamming(M)")]
pub fn hamming(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = centred_points(m)? else { return window_with_at_most_one_point(m) };
    add(0.54, multiply(0.46, scaled_cosine(&n, m, 1.0)?)?)
}

/// Returns the Hann window of `m` points, a raised cosine that is 0 at both ends (`numpy.hanning`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, hanning};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(hanning(3)?, array![0.0, 1.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("hanning(M)")]
pub fn hanning(#[name("M")] m: i64) -> Result<NdArray> {
    let Some(n) = centred_points(m)? else { return window_with_at_most_one_point(m) };
    add(0.5, multiply(0.5, scaled_cosine(&n, m, 1.0)?)?)
}

/// Returns the Kaiser window of `m` points, by the Bessel function [`i0`](crate::i0) (`numpy.kaiser`). `beta` is the shape parameter.
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::kaiser(3, 0.0)?.to_vec::<f64>()?, [1.0, 1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("kaiser(M, beta)")]
pub fn kaiser(#[name("M")] m: i64, beta: f64) -> Result<NdArray> {
    let Some(n) = centred_points(m)? else { return window_with_at_most_one_point(m) };
    let ratio = divide(&n, m - 1)?;
    let inside = sqrt(maximum(subtract(1.0, multiply(&ratio, &ratio)?)?, 0)?)?;
    divide(i0(multiply(inside, beta)?)?, i0(beta)?)
}
