//! Functions of matrices, and special matrices, as in `scipy.linalg`.

use cuprum_core::ops::linalg::solve;
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{Error, NdArray, Result, add, concat, copy, greater, matmul, multiply, numpy, subtract, take, where_, with_device};

use super::{as_inexact, identities, norms::matrix_norm, to_f64};
use crate::common::{filled, range_along, slice_axis};

/// Numerator coefficients of the [13/13] Padé approximant of exp (N. J. Higham, "The scaling and squaring method for the matrix
/// exponential revisited", SIAM J. Matrix Anal. Appl. 26, 2005).
const PADE_13_COEFFICIENTS: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];
/// Largest 1-norm of a matrix for which [`PADE_13_COEFFICIENTS`] is exact to double precision (Higham 2005).
const PADE_13_MAX_NORM: f64 = 5.371920351148152;

/// Returns the exponentials of square matrices (`scipy.linalg.expm`), by scaling and squaring.
///
/// The call waits for the device to read the norms.
///
/// # Errors
/// Matrices that are not square, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let rotation = cuprum::linalg::expm(&array![[0.0, -1.0], [1.0, 0.0]])?.to_vec::<f64>()?;
/// assert!((rotation[0] - 1f64.cos()).abs() < 1e-14 && (rotation[2] - 1f64.sin()).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.expm(A)")]
pub fn expm(#[name("A")] a: &NdArray) -> Result<NdArray> {
    let a = as_inexact(a)?;
    let [batch @ .., n, columns] = a.shape() else {
        let message = format!("{}-dimensional array given. Array must be at least two-dimensional", a.ndim());
        return Err(Error::shape("expm", message, &[a.shape()]));
    };
    if n != columns {
        return Err(Error::shape("expm", "Last 2 dimensions of the array must be square", &[a.shape()]));
    }
    if a.size() == 0 {
        return copy(&a);
    }
    // Each matrix is halved until its norm is small enough for the Padé approximant. The result is squared once for each halving.
    let norms = matrix_norm(&a, false, 1)?;
    let halvings = |norm: f64| if norm.is_finite() && norm > PADE_13_MAX_NORM { (norm / PADE_13_MAX_NORM).log2().ceil() } else { 0.0 };
    let counts: Vec<f64> = to_f64(&norms)?.into_iter().map(halvings).collect();
    let most = counts.iter().fold(0.0f64, |most, &count| most.max(count)) as usize;
    let counts = with_device(a.device(), || NdArray::from_vec(counts, norms.shape()))?.expand_dims([-2, -1])?;
    let scale = cuprum_core::exp2(&counts)?.astype(a.dtype().real())?;
    let x = cuprum_core::divide(&a, scale)?;
    let identity = identities(&x, batch, *n, x.dtype())?;
    let x2 = matmul(&x, &x)?;
    let x4 = matmul(&x2, &x2)?;
    let x6 = matmul(&x2, &x4)?;
    // Terms in x⁸, x¹⁰ and x¹² are computed as x⁶ times a polynomial in x², x⁴ and x⁶, which saves products.
    let combined = |first: usize| -> Result<NdArray> {
        let b = |i: usize| PADE_13_COEFFICIENTS[first + 2 * i];
        let high = add(add(multiply(&x2, b(4))?, multiply(&x4, b(5))?)?, multiply(&x6, b(6))?)?;
        let low = add(add(multiply(&identity, b(0))?, multiply(&x2, b(1))?)?, add(multiply(&x4, b(2))?, multiply(&x6, b(3))?)?)?;
        add(matmul(&x6, &high)?, low)
    };
    let (odd, even) = (matmul(&x, &combined(1)?)?, combined(0)?);
    let mut result = solve(&subtract(&even, &odd)?, &add(&even, &odd)?)?;
    for step in 0..most {
        result = where_(greater(&counts, step as i64)?, matmul(&result, &result)?, &result)?;
    }
    Ok(result)
}

/// Returns the Toeplitz matrix with the first column `c` and the first row `r` (`scipy.linalg.toeplitz`). The first element of `r`
/// is not read.
///
/// Without `r`, the matrix is Hermitian. Arrays of several dimensions are flattened.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let t = cuprum::linalg::toeplitz(&array![1, 2, 3], Some(&array![1, 4]))?;
/// assert_eq!(t, array![[1, 4], [2, 1], [3, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.toeplitz(c, r=None)")]
pub fn toeplitz(c: &NdArray, r: Option<&NdArray>) -> Result<NdArray> {
    let column = c.ravel()?;
    let row = match r {
        Some(r) => r.ravel()?,
        None if c.dtype().is_complex() => column.conj()?,
        None => column.clone(),
    };
    let (rows, columns) = (column.size(), row.size());
    if rows == 0 || columns == 0 {
        return filled(c, &[rows, columns], 0, column.dtype().promote(row.dtype()));
    }
    let values = concat(&[column.flip(0)?, slice_axis(&row, 0, 1, None, 1)?], 0)?;
    let (i, j) = (range_along(c.device(), rows, 0, 2)?, range_along(c.device(), columns, 1, 2)?);
    take(&values, &add(subtract(j, i)?, rows as i64 - 1)?, 0)
}

fn block_diag_from_args(args: &Args) -> Result<Value> {
    let arrays = args.rest().iter().map(|v| v.array(args.op())).collect::<Result<Vec<_>>>()?;
    block_diag(&arrays).map(Value::Array)
}

/// Returns a matrix with the given matrices on its diagonal and zeros elsewhere (`scipy.linalg.block_diag`).
///
/// A 1-D array is a row. Without arrays, the result has shape (1, 0).
///
/// Passes over memory: two: one that joins the columns of each block with zeros, and one that joins the rows.
///
/// # Errors
/// An array of more than two dimensions, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let blocks = cuprum::linalg::block_diag([&array![[1, 2]], &array![[3]]])?;
/// assert_eq!(blocks, array![[1, 2, 0], [0, 0, 3]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.block_diag(*arrs)", call = block_diag_from_args)]
pub fn block_diag(arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let blocks = arrays.into_iter().map(|a| crate::common::at_least(a.as_ref(), 2)).collect::<Result<Vec<_>>>()?;
    if let Some(other) = blocks.iter().find(|a| a.ndim() > 2) {
        return Err(Error::shape("block_diag", "takes arrays of at most two dimensions", &[other.shape()]));
    }
    let Some(first) = blocks.first() else { return cuprum_core::zeros((1, 0), cuprum_core::DType::F64) };
    let columns: usize = blocks.iter().map(|a| a.shape()[1]).sum();
    let (mut before, mut rows) = (0, Vec::new());
    for block in &blocks {
        let [height, width] = [block.shape()[0], block.shape()[1]];
        let zeros = |width: usize| filled(first, &[height, width], 0, block.dtype());
        rows.push(concat(&[zeros(before)?, block.clone(), zeros(columns - before - width)?], 1)?);
        before += width;
    }
    concat(&rows, 0)
}
