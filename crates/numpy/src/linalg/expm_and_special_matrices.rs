//! Functions of matrices, and special matrices, as in `scipy.linalg`.

use cuprum_core::ops::linalg::solve;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, NdArray, Result, abs, add, any, concat, copy, divide, equal, exp, exp2, expm1, greater, greater_equal, less, less_equal,
    logical_and, logical_not, logical_or, matmul, multiply, negative, not_equal, numpy, subtract, take, where_, with_device,
};

use super::{identity_matrices, integers_to_float64, matrix_transpose, norms::matrix_norm, to_f64_vec};
use crate::operand_and_slice_helpers::{index_range_along, new_filled_array, slice_axis};

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
/// Largest 1-norm of a matrix for which the approximant with [`PADE_13_COEFFICIENTS`] is exact to double precision (Higham 2005).
const PADE_13_MAX_NORM: f64 = 5.371920351148152;
/// Largest estimate from norms of powers for which the approximant with [`PADE_13_COEFFICIENTS`] is exact to double precision (A. H.
/// Al-Mohy and N. J. Higham, "A new scaling and squaring algorithm for the matrix exponential", SIAM J. Matrix Anal. Appl. 31, 2009).
const PADE_13_MAX_NORM_ESTIMATE: f64 = 4.25;
/// Reciprocal of the leading coefficient of the backward error of the approximant with [`PADE_13_COEFFICIENTS`]. This coefficient belongs
/// to the power 27 of the matrix (Al-Mohy and Higham).
const PADE_13_ERROR_DIVISOR: f64 = 113250775606021113483283660800000000.0;
/// Maximum number of halvings that [`expm`] takes from the 1-norm of the matrix alone, without norms of powers. Squaring the result as
/// often loses at most three bits.
const MAX_HALVINGS_FROM_NORM: f64 = 3.0;

/// The positions of zeros in the matrices of a batch.
struct TriangularStructure {
    /// Whether each matrix is diagonal.
    diagonal: NdArray,
    /// Whether each matrix is upper or lower triangular.
    diagonal_or_triangular: NdArray,
    /// Whether each element of a triangular matrix is on the diagonal, next to the diagonal, or in the triangle of zeros.
    near_diagonal: NdArray,
    /// Column index minus row index of each element.
    offset: NdArray,
}

impl TriangularStructure {
    fn of(a: &NdArray) -> Result<TriangularStructure> {
        let n = a.shape()[a.ndim() - 1];
        let offset = subtract(index_range_along(a.device(), n, 1, 2)?, index_range_along(a.device(), n, 0, 2)?)?;
        let nonzero = not_equal(a, 0)?;
        let lacks = |triangle: NdArray| logical_not(any(&logical_and(&nonzero, triangle)?, [-2, -1])?);
        let (upper, lower) = (lacks(less(&offset, 0)?)?.eval()?.clone(), lacks(greater(&offset, 0)?)?.eval()?.clone());
        let per_matrix = |a: &NdArray| a.expand_dims([-2, -1]);
        let near_diagonal = logical_or(
            logical_and(per_matrix(&upper)?, less_equal(&offset, 1)?)?,
            logical_and(per_matrix(&lower)?, greater_equal(&offset, -1)?)?,
        )?;
        Ok(TriangularStructure {
            diagonal: logical_and(&upper, &lower)?,
            diagonal_or_triangular: logical_or(upper, lower)?,
            near_diagonal,
            offset,
        })
    }

    /// Returns the exponentials of the triangular matrices `a / 2^halvings`, computed only on the diagonal and the diagonals next to it.
    /// Other elements are 0.
    fn exponentials_near_diagonal(&self, a: &NdArray, halvings: &NdArray) -> Result<NdArray> {
        let scale = exp2(negative(halvings)?)?.astype(a.dtype().real())?;
        let a = multiply(a, scale)?;
        let diagonal = a.diagonal(0, -2, -1)?;
        let (row, column) = (diagonal.expand_dims(-1)?, diagonal.expand_dims(-2)?);
        // The divided difference of exp at two diagonal elements. The larger exponential is a factor, so that the other factor cannot
        // overflow.
        let is_larger = |x: &NdArray, y: &NdArray| if a.dtype().is_complex() { greater(x.real()?, y.real()?) } else { greater(x, y) };
        let larger = where_(is_larger(&row, &column)?, &row, &column)?;
        let distance = subtract(where_(is_larger(&row, &column)?, &column, &row)?, &larger)?;
        let quotient = where_(equal(&distance, 0)?, 1, divide(expm1(&distance)?, &distance)?)?;
        let beside = multiply(&a, multiply(exp(larger)?, quotient)?)?;
        let is_beside = logical_and(equal(abs(&self.offset)?, 1)?, not_equal(&a, 0)?)?;
        where_(equal(&self.offset, 0)?, exp(&row)?, where_(is_beside, beside, 0)?)
    }
}

/// Returns how often each matrix is halved before the Padé approximant. Diagonal matrices are not halved.
///
/// For matrices that are far from normal, norms of powers give fewer halvings than the norm of the matrix (Al-Mohy and Higham 2009).
fn halving_counts(a: &NdArray, diagonal: &[bool]) -> Result<Vec<f64>> {
    // The matrices are divided by `2^PRESCALE_EXPONENT`, so that their norms do not overflow.
    const PRESCALE_EXPONENT: i32 = 32;
    let norms = to_f64_vec(&matrix_norm(&multiply(a, 2f64.powi(-PRESCALE_EXPONENT))?, false, 1)?)?;
    let norms: Vec<f64> = norms.into_iter().map(|norm| norm.log2() + f64::from(PRESCALE_EXPONENT)).collect();
    let is_halved = |norm: f64| norm.is_finite() && norm > PADE_13_MAX_NORM.log2();
    let simple = norms.iter().zip(diagonal).map(|(&norm, &diagonal)| match is_halved(norm) && !diagonal {
        true => (norm - PADE_13_MAX_NORM.log2()).ceil(),
        false => 0.0,
    });
    let simple: Vec<f64> = simple.collect();
    if simple.iter().all(|&count| count <= MAX_HALVINGS_FROM_NORM) {
        return Ok(simple);
    }
    let scaled = |exponents: &[f64]| -> Result<NdArray> {
        let scales = exponents.iter().map(|exponent| (-exponent).exp2()).collect::<Vec<f64>>();
        let scales = with_device(a.device(), || NdArray::from_vec(scales, &a.shape()[..a.ndim() - 2]))?;
        multiply(a, scales.expand_dims([-2, -1])?.astype(a.dtype().real())?)
    };
    // The matrices are divided by `2^excess`, so that their tenth powers do not overflow.
    let largest = if a.dtype().real() == DType::F32 { 12.0 } else { 100.0 };
    let excess: Vec<f64> = norms.iter().map(|&norm| if is_halved(norm) { (norm - largest).ceil().max(0.0) } else { 0.0 }).collect();
    let x = scaled(&excess)?;
    let x2 = matmul(&x, &x)?;
    let x4 = matmul(&x2, &x2)?;
    let x6 = matmul(&x2, &x4)?;
    let root = |power: &NdArray, degree: f64| -> Result<Vec<f64>> {
        let norms = to_f64_vec(&matrix_norm(power, false, 1)?)?;
        Ok(norms.iter().zip(&excess).map(|(norm, excess)| norm.log2() / degree + excess).collect())
    };
    let (sixth, eighth, tenth) = (root(&x6, 6.0)?, root(&matmul(&x4, &x4)?, 8.0)?, root(&matmul(&x4, &x6)?, 10.0)?);
    // The 1-norm (the largest sum of a column) of |x|^27, for the matrix x scaled to a 1-norm near 1.
    let units: Vec<f64> = norms.iter().map(|&norm| if is_halved(norm) { norm.ceil() } else { 0.0 }).collect();
    let columns = matrix_transpose(&abs(scaled(&units)?)?)?;
    let mut sums = new_filled_array(a, &[&a.shape()[..a.ndim() - 1], &[1]].concat(), 1, columns.dtype())?;
    for _ in 0..27 {
        sums = matmul(&columns, &sums)?;
    }
    let sums = to_f64_vec(&sums.max([-2, -1])?)?;
    let count = |k: usize| {
        let estimate = sixth[k].max(eighth[k]).min(eighth[k].max(tenth[k]));
        let count = (estimate - PADE_13_MAX_NORM_ESTIMATE.log2()).ceil().max(0.0);
        // Base-2 logarithm of the relative backward error of the Padé approximant, in units of 2^-53. The estimate assumes that no terms
        // cancel.
        let error = sums[k].log2() + 27.0 * (units[k] - count) - (norms[k] - count) - PADE_13_ERROR_DIVISOR.log2() + 53.0;
        (count + (error / 26.0).ceil().max(0.0)).min(simple[k])
    };
    Ok((0..simple.len()).map(|k| if simple[k] <= MAX_HALVINGS_FROM_NORM { simple[k] } else { count(k) }).collect())
}

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
    let a = integers_to_float64(a)?;
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
    // Each matrix is halved until the Padé approximant is exact. The result is squared once for each halving.
    let structure = TriangularStructure::of(&a)?;
    let (diagonal, has_triangular) = (structure.diagonal.to_vec::<bool>()?, structure.diagonal_or_triangular.any(())?.item()?.as_bool());
    if diagonal.iter().all(|&d| d) {
        return structure.exponentials_near_diagonal(&a, &new_filled_array(&a, &[], 0, DType::F64)?);
    }
    let counts = halving_counts(&a, &diagonal)?;
    let most = counts.iter().fold(0.0f64, |most, &count| most.max(count)) as usize;
    let per_matrix = |values: Vec<f64>| with_device(a.device(), || NdArray::from_vec(values, structure.diagonal.shape()));
    let scale = per_matrix(counts.iter().map(|count| (-count).exp2()).collect())?.astype(a.dtype().real())?;
    let counts = per_matrix(counts)?.expand_dims([-2, -1])?;
    // The approximant of a diagonal matrix is not used and may overflow, so its matrix is replaced by 0.
    let x = where_(structure.diagonal.expand_dims([-2, -1])?, 0, multiply(&a, scale.expand_dims([-2, -1])?)?)?;
    let identity = identity_matrices(&x, batch, *n, x.dtype())?;
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
    // Squaring loses the digits of small elements of triangular matrices. The elements on the diagonal and next to it are therefore
    // computed by a formula.
    let with_diagonals = |result: NdArray, halvings: &NdArray| match has_triangular {
        true => where_(&structure.near_diagonal, structure.exponentials_near_diagonal(&a, halvings)?, result),
        false => Ok(result),
    };
    result = with_diagonals(result, &counts)?;
    for step in 0..most {
        let squared = with_diagonals(matmul(&result, &result)?, &subtract(&counts, step as i64 + 1)?)?;
        result = where_(greater(&counts, step as i64)?, squared, &result)?;
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
        return new_filled_array(c, &[rows, columns], 0, column.dtype().promote(row.dtype()));
    }
    let values = concat(&[column.flip(0)?, slice_axis(&row, 0, 1, None, 1)?], 0)?;
    let (i, j) = (index_range_along(c.device(), rows, 0, 2)?, index_range_along(c.device(), columns, 1, 2)?);
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
    let blocks =
        arrays.into_iter().map(|a| crate::operand_and_slice_helpers::with_at_least_ndim(a.as_ref(), 2)).collect::<Result<Vec<_>>>()?;
    if let Some(other) = blocks.iter().find(|a| a.ndim() > 2) {
        return Err(Error::shape("block_diag", "takes arrays of at most two dimensions", &[other.shape()]));
    }
    let Some(first) = blocks.first() else { return cuprum_core::zeros((1, 0), cuprum_core::DType::F64) };
    let columns: usize = blocks.iter().map(|a| a.shape()[1]).sum();
    let (mut before, mut rows) = (0, Vec::new());
    for block in &blocks {
        let [height, width] = [block.shape()[0], block.shape()[1]];
        let zeros = |width: usize| new_filled_array(first, &[height, width], 0, block.dtype());
        rows.push(concat(&[zeros(before)?, block.clone(), zeros(columns - before - width)?], 1)?);
        before += width;
    }
    concat(&rows, 0)
}
