//! Polynomials as arrays of coefficients, the highest power first.

use cuprum_core::ops::linalg::eigvals;
use cuprum_core::{
    DType, Error, Item, NdArray, Operand, Result, add, arange, concat, divide, equal, multiply, negative, numpy, subtract, with_device,
};

use crate::manipulation::{trim_zeros, unstack};
use crate::mathematics::{ConvolutionMode, convolve};
use crate::operand_and_slice_helpers::{new_filled_array, operand_to_array, slice_axis, with_at_least_ndim};

/// Returns the polynomial with coefficients `p` at each element of `x`, by Horner's rule (`numpy.polyval`). The result is deferred.
///
/// Passes over memory: one over `x` for each group of coefficients. A group has as many coefficients as fit into one fused expression.
///
/// # Errors
/// 0-d coefficients, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (p, x) = (NdArray::from_slice(&[3, 0, 1])?, NdArray::from_slice(&[5, 1])?);
/// assert_eq!(cuprum::polyval(&p, &x)?.to_vec::<i32>()?, [76, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("polyval(p, x)")]
pub fn polyval(p: &NdArray, x: &NdArray) -> Result<NdArray> {
    if p.ndim() == 0 {
        return Err(Error::shape("polyval", "the coefficients must be an array of at least one dimension", &[p.shape()]));
    }
    let mut y = new_filled_array(x, x.shape(), 0, x.dtype())?;
    for coefficient in unstack(p, 0)? {
        y = add(multiply(y, x)?, coefficient)?;
    }
    Ok(y)
}

/// Returns the coefficients of the polynomial with the given roots and the leading coefficient 1 (`numpy.poly`).
///
/// A square matrix gives its characteristic polynomial, whose roots are the eigenvalues.
///
/// Integers, bool and 16-bit floats are computed in float64. Conjugate pairs of complex roots give real coefficients.
///
/// # Errors
/// An array that is neither 1-D nor a square matrix.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, poly};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(poly(&array![1.0, 2.0])?, array![1.0, -3.0, 2.0]); // (x - 1) (x - 2)
/// assert_eq!(poly(&array![[1.0, 0.0], [0.0, 2.0]])?.shape(), &[3]);
/// # Ok(())
/// # }
/// ```
#[numpy("poly(seq_of_zeros)")]
pub fn poly(seq_of_zeros: &NdArray) -> Result<NdArray> {
    let name = "poly";
    let roots = match *seq_of_zeros.shape() {
        [] | [_] => with_at_least_ndim(seq_of_zeros, 1)?,
        [n, columns] if n == columns && n > 0 => eigvals(seq_of_zeros)?,
        _ => return Err(Error::shape(name, "input must be 1d or non-empty square 2d array.", &[seq_of_zeros.shape()])),
    };
    let dtype = match roots.dtype() {
        dtype @ (DType::F32 | DType::C64 | DType::C128) => dtype,
        _ => DType::F64,
    };
    let roots = roots.astype(dtype)?;
    let one = new_filled_array(&roots, &[1], 1, dtype)?;
    if roots.size() == 0 {
        return new_filled_array(&roots, &[], 1, DType::F64);
    }
    let mut coefficients = one.clone();
    for n in 0..roots.size() {
        let root = slice_axis(&roots, 0, n as isize, n as isize + 1, 1)?;
        coefficients = convolve(&coefficients, &concat(&[one.clone(), negative(root)?], 0)?, ConvolutionMode::Full)?;
    }
    if dtype.is_complex() {
        let conjugate = roots.conj()?;
        if equal(roots.sort(0)?, conjugate.sort(0)?)?.all(())?.item()?.as_bool() {
            return coefficients.real();
        }
    }
    Ok(coefficients)
}

/// Prepends zeros to the shorter array, so that both arrays have the same length.
fn pad_to_equal_lengths(a1: &NdArray, a2: &NdArray) -> Result<(NdArray, NdArray)> {
    let (a1, a2) = (with_at_least_ndim(a1, 1)?, with_at_least_ndim(a2, 1)?);
    let (n1, n2) = (a1.shape()[0], a2.shape()[0]);
    let widened = |a: &NdArray, n: usize| concat(&[new_filled_array(a, &[n], 0, a.dtype())?, a.clone()], 0);
    Ok(match n1.cmp(&n2) {
        std::cmp::Ordering::Less => (widened(&a1, n2 - n1)?, a2),
        std::cmp::Ordering::Equal => (a1, a2),
        std::cmp::Ordering::Greater => {
            let a2 = widened(&a2, n1 - n2)?;
            (a1, a2)
        }
    })
}

/// Returns the sum of two polynomials (`numpy.polyadd`).
///
/// # Errors
/// Arrays of more than one dimension whose shapes do not match, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, polyadd};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(polyadd(&array![1, 2], &array![1, 0, 0])?, array![1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("polyadd(a1, a2)")]
pub fn polyadd(a1: &NdArray, a2: &NdArray) -> Result<NdArray> {
    let (a1, a2) = pad_to_equal_lengths(a1, a2)?;
    add(a1, a2)
}

/// Returns the difference of two polynomials (`numpy.polysub`).
///
/// # Errors
/// bool, arrays of more than one dimension whose shapes do not match, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, polysub};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(polysub(&array![1, 2], &array![1, 0, 0])?, array![-1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("polysub(a1, a2)")]
pub fn polysub(a1: &NdArray, a2: &NdArray) -> Result<NdArray> {
    let (a1, a2) = pad_to_equal_lengths(a1, a2)?;
    subtract(a1, a2)
}

/// Returns the coefficients without leading zeros, but at least one coefficient. Waits for the device.
fn trim_leading_zeros(op: &'static str, a: &NdArray) -> Result<NdArray> {
    let a = with_at_least_ndim(a, 1)?;
    if a.ndim() != 1 {
        return Err(Error::shape(op, "Polynomial must be 1d only.", &[a.shape()]));
    }
    let trimmed = trim_zeros(&a, "f", ())?;
    if trimmed.size() == 0 { new_filled_array(&a, &[1], 0, a.dtype()) } else { Ok(trimmed) }
}

/// Returns the product of two polynomials without leading zeros (`numpy.polymul`), the convolution of their coefficients.
///
/// The call waits for the device, which finds the leading zeros.
///
/// # Errors
/// Arrays of more than one dimension, or on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, polymul};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(polymul(&array![1, -1], &array![1, 1])?, array![1, 0, -1]);
/// # Ok(())
/// # }
/// ```
#[numpy("polymul(a1, a2)")]
pub fn polymul(a1: &NdArray, a2: &NdArray) -> Result<NdArray> {
    convolve(&trim_leading_zeros("polymul", a1)?, &trim_leading_zeros("polymul", a2)?, ConvolutionMode::Full)
}

/// Maximum number of integrations or derivatives in one call. The work grows with the square of this number. NumPy has a limit of about
/// 1000, that of Python's recursion.
const MAX_DERIVATIVE_OR_INTEGRAL_ORDER: usize = 1 << 12;

/// Returns the `m`-th derivative of a polynomial (`numpy.polyder`).
///
/// # Errors
/// A negative order, an order above 4096 of a longer polynomial, or a 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, polyder};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(polyder(&array![3.0, 2.0, 1.0], 1)?, array![6.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("polyder(p, m=1)")]
pub fn polyder(p: &NdArray, m: isize) -> Result<NdArray> {
    let name = "polyder";
    let Ok(m) = usize::try_from(m) else {
        return Err(Error::value(name, "Order of derivative must be positive (see polyint)"));
    };
    if p.ndim() != 1 {
        return Err(Error::shape(name, "the coefficients must be 1-D", &[p.shape()]));
    }
    // Derivatives of an empty array are empty too.
    let steps = m.min(p.size() + 1);
    if steps > MAX_DERIVATIVE_OR_INTEGRAL_ORDER {
        return Err(Error::value(name, format!("the order of a derivative must be at most {MAX_DERIVATIVE_OR_INTEGRAL_ORDER}")));
    }
    let mut p = p.clone();
    for _ in 0..steps {
        let powers = with_device(p.device(), || arange(p.size() as i64 - 1, 0, -1))?;
        p = multiply(slice_axis(&p, 0, None, -1, 1)?, powers)?;
    }
    Ok(p)
}

/// Returns the `m`-th antiderivative of a polynomial, with the integration constants `k` (`numpy.polyint`).
///
/// `k` is 0 by default, one number for all integrations, or one for each.
///
/// # Errors
/// An order that is negative or above 4096, a 0-d array, or too few constants.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, polyint};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(polyint(&array![6.0, 2.0], 1, Some(1.0.into()))?, array![3.0, 2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("polyint(p, m=1, k=None)", call = polyint_from_args)]
pub fn polyint(p: &NdArray, m: isize, k: Option<Operand>) -> Result<NdArray> {
    let name = "polyint";
    let Ok(m) = usize::try_from(m) else {
        return Err(Error::value(name, "Order of integral must be positive (see polyder)"));
    };
    if m > MAX_DERIVATIVE_OR_INTEGRAL_ORDER {
        return Err(Error::value(name, format!("the order of an integral must be at most {MAX_DERIVATIVE_OR_INTEGRAL_ORDER}")));
    }
    let k = match k {
        None => new_filled_array(p, &[m], 0, DType::F64)?,
        Some(k) => with_at_least_ndim(&operand_to_array(name, p.device(), &k)?, 1)?,
    };
    // As in NumPy, a single integration constant is repeated for all integrations and converted to float64.
    let k = match k.size() {
        1 if m > 1 => multiply(new_filled_array(p, &[m], 1, DType::F64)?, k)?,
        _ => k,
    };
    if k.ndim() != 1 || k.size() < m {
        return Err(Error::shape(name, "k must be a scalar or a rank-1 array of length 1 or >m.", &[k.shape()]));
    }
    if m > 0 && p.ndim() != 1 {
        return Err(Error::shape(name, "the coefficients must be 1-D", &[p.shape()]));
    }
    let mut p = p.clone();
    for n in 0..m {
        let powers = with_device(p.device(), || arange(p.size(), 0, -1))?;
        p = concat(&[divide(&p, powers)?, slice_axis(&k, 0, n as isize, n as isize + 1, 1)?], 0)?;
    }
    Ok(p)
}

fn polyint_from_args(args: &cuprum_core::Args) -> Result<cuprum_core::Value> {
    polyint(&args.array("p")?, args.int_or("m", 1)?, args.operand_or_none("k")?).map(cuprum_core::Value::Array)
}

/// Returns the quotient and the remainder of two polynomials (`numpy.polydiv`).
///
/// The remainder has no leading coefficients that are close to 0. The call waits for the device.
///
/// # Errors
/// Empty arrays, arrays of more than one dimension, or on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (u, v) = (NdArray::from_slice(&[3.0, 5.0, 2.0])?, NdArray::from_slice(&[2.0, 1.0])?);
/// let (quotient, remainder) = cuprum::polydiv(&u, &v)?;
/// assert_eq!(quotient.to_vec::<f64>()?, [1.5, 1.75]);
/// assert_eq!(remainder.to_vec::<f64>()?, [0.25]);
/// # Ok(())
/// # }
/// ```
#[numpy("polydiv(u, v)")]
pub fn polydiv(u: &NdArray, v: &NdArray) -> Result<(NdArray, NdArray)> {
    let name = "polydiv";
    let (u, v) = (add(with_at_least_ndim(u, 1)?, 0.0)?, add(with_at_least_ndim(v, 1)?, 0.0)?);
    if u.ndim() != 1 || v.ndim() != 1 || u.size() == 0 || v.size() == 0 {
        return Err(Error::shape(name, "the polynomials must be 1-D and not empty", &[u.shape(), v.shape()]));
    }
    let dtype = u.dtype().promote(v.dtype());
    let scale = divide(1.0, v.index(&[Item::At(0)])?)?;
    let mut rest = u.astype(dtype)?;
    let mut quotient = Vec::new();
    for k in 0..(u.size() + 1).saturating_sub(v.size()) {
        let factor = multiply(&scale, rest.index(&[Item::from(k)])?)?.astype(dtype)?;
        let end = (k + v.size()) as isize;
        let changed = subtract(slice_axis(&rest, 0, k as isize, end, 1)?, multiply(&factor, &v)?)?.astype(dtype)?;
        rest = concat(&[slice_axis(&rest, 0, None, k as isize, 1)?, changed, slice_axis(&rest, 0, end, None, 1)?], 0)?;
        quotient.push(factor.reshape([1])?);
    }
    let quotient = if quotient.is_empty() { new_filled_array(&rest, &[1], 0, dtype)? } else { concat(&quotient, 0)? };
    // As in NumPy, a leading coefficient is dropped if `allclose(coefficient, 0)`, whose absolute tolerance is 1e-8.
    let sizes = rest.abs()?.astype(DType::F64)?.to_vec::<f64>()?;
    let first = sizes.iter().position(|size| size.is_nan() || *size > 1e-8).unwrap_or(sizes.len() - 1);
    Ok((quotient, slice_axis(&rest, 0, first as isize, None, 1)?))
}
