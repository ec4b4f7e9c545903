//! Products of vectors and matrices, matrix powers and matrix chains (`numpy.linalg`).

use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::linalg::inv;
use cuprum_core::{DType, Error, NdArray, Result, any, axis as over_axis, copy, matmul, multiply, numpy, stack, subtract};

use super::{identity_matrices, is_16_bit_float};

/// Returns the cross products of vectors of three elements along an axis (`numpy.linalg.cross`). The other axes broadcast.
///
/// Passes over memory: one for each of three components, and one that stacks them.
///
/// # Errors
/// An axis whose extent is not 3, shapes that do not broadcast, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let z = cuprum::linalg::cross(&array![1, 0, 0], &array![0, 1, 0], -1)?;
/// assert_eq!(z, array![0, 0, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.cross(x1, x2, /, *, axis=-1)")]
pub fn cross(x1: &NdArray, x2: &NdArray, axis: isize) -> Result<NdArray> {
    let parts = |x: &NdArray| -> Result<[NdArray; 3]> {
        let axis = normalize_axis("cross", axis, x.ndim())?;
        if x.shape()[axis] != 3 {
            let message = "Both input arrays must be (arrays of) 3-dimensional vectors";
            return Err(Error::shape("cross", message, &[x1.shape(), x2.shape()]));
        }
        let first = x.moveaxis(axis, 0)?;
        Ok([first.index(cuprum_core::s![0])?, first.index(cuprum_core::s![1])?, first.index(cuprum_core::s![2])?])
    };
    let ([a0, a1, a2], [b0, b1, b2]) = (parts(x1)?, parts(x2)?);
    let minor = |p: &NdArray, q: &NdArray, r: &NdArray, s: &NdArray| subtract(multiply(p, q)?, multiply(r, s)?);
    stack(&[minor(&a1, &b2, &a2, &b1)?, minor(&a2, &b0, &a0, &b2)?, minor(&a0, &b1, &a1, &b0)?], axis)
}

/// Returns the sums of `conj(x1) * x2` along an axis, in the promoted dtype (`numpy.vecdot`). The other axes broadcast.
///
/// 16-bit floats are multiplied and summed in float32, and the sums are rounded.
///
/// Passes over memory: one fused reduction.
///
/// # Errors
/// Axes of different extents, shapes that do not broadcast, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// assert_eq!(cuprum::linalg::vecdot(&a, &array![1, 1], -1)?, array![3, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.vecdot(x1, x2, /, *, axis=-1)", aliases("vecdot"))]
pub fn vecdot(x1: &NdArray, x2: &NdArray, axis: isize) -> Result<NdArray> {
    let extent = |x: &NdArray| Ok(x.shape()[normalize_axis("vecdot", axis, x.ndim())?]);
    if extent(x1)? != extent(x2)? {
        return Err(Error::shape("vecdot", "the summed extents differ", &[x1.shape(), x2.shape()]));
    }
    let dtype = x1.dtype().promote(x2.dtype());
    let is_16_bit = is_16_bit_float(dtype);
    let last = |x: &NdArray| {
        let x = x.moveaxis(axis, -1)?;
        if is_16_bit { x.astype(dtype)?.astype(DType::F32) } else { Ok(x) }
    };
    let left = if x1.dtype().is_complex() { last(x1)?.conj()? } else { last(x1)? };
    let products = multiply(left, last(x2)?)?;
    match dtype {
        DType::Bool => any(&products, -1),
        _ if is_16_bit => products.sum(-1)?.astype(dtype),
        _ => products.sum(over_axis(-1).dtype(dtype)),
    }
}

/// Returns square matrices raised to an integer power (`numpy.linalg.matrix_power`). A negative power inverts them first.
///
/// # Errors
/// Matrices that are not square, or a singular matrix with a negative power.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 1], [0, 1]];
/// assert_eq!(cuprum::linalg::matrix_power(&a, 5)?, array![[1, 5], [0, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.matrix_power(a, n)")]
pub fn matrix_power(a: &NdArray, n: i64) -> Result<NdArray> {
    let op = "matrix_power";
    let [batch @ .., rows, columns] = a.shape() else {
        let message = format!("{}-dimensional array given. Array must be at least two-dimensional", a.ndim());
        return Err(Error::shape(op, message, &[a.shape()]));
    };
    if rows != columns {
        return Err(Error::shape(op, "Last 2 dimensions of the array must be square", &[a.shape()]));
    }
    if n == 0 {
        return copy(&identity_matrices(a, batch, *rows, a.dtype())?);
    }
    let mut square = if n < 0 { inv(a)? } else { a.clone() };
    if n.unsigned_abs() == 3 {
        return matmul(&matmul(&square, &square)?, &square);
    }
    let (mut rest, mut power) = (n.unsigned_abs(), None);
    loop {
        if rest % 2 == 1 {
            power = Some(match power {
                None => square.clone(),
                Some(power) => matmul(&power, &square)?,
            });
        }
        rest /= 2;
        if rest == 0 {
            return Ok(power.unwrap_or(square));
        }
        square = matmul(&square, &square)?;
    }
}

/// Returns the product of two or more matrices, in the order of fewest multiplications (`numpy.linalg.multi_dot`).
///
/// If the first array is 1-D, it is a row. If the last array is 1-D, it is a column. The result has no axis for such an array.
///
/// # Errors
/// Fewer than two arrays, other arrays that are not 2-D, extents that do not match, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, ones};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b, c) = (ones((2, 9), DType::F64)?, ones((9, 3), DType::F64)?, ones((3, 2), DType::F64)?);
/// assert_eq!(cuprum::linalg::multi_dot([&a, &b, &c])?.to_vec::<f64>()?, [27.0; 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.multi_dot(arrays, *, out=None)")]
pub fn multi_dot(arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let op = "multi_dot";
    let mut arrays: Vec<NdArray> = arrays.into_iter().map(|a| a.as_ref().clone()).collect();
    let count = arrays.len();
    if count < 2 {
        return Err(Error::value(op, "Expecting at least two arrays."));
    }
    if count == 2 {
        return arrays[0].dot(&arrays[1]);
    }
    let (is_row, is_column) = (arrays[0].ndim() == 1, arrays[count - 1].ndim() == 1);
    if is_row {
        arrays[0] = arrays[0].expand_dims(0)?;
    }
    if is_column {
        arrays[count - 1] = arrays[count - 1].expand_dims(1)?;
    }
    if let Some(other) = arrays.iter().find(|a| a.ndim() != 2) {
        return Err(Error::shape(op, format!("{}-dimensional array given. Array must be two-dimensional", other.ndim()), &[other.shape()]));
    }
    let splits = MatrixChainSplits::find_cheapest_splits(&arrays);
    let product = splits.multiply_chain(&arrays, 0, count - 1)?;
    match (is_row, is_column) {
        (true, true) => product.reshape(()),
        (false, false) => Ok(product),
        _ => product.ravel(),
    }
}

/// The optimal parenthesisation of a matrix chain (Cormen et al., Introduction to Algorithms, 15.2). Element `[i][j]` is the index of the
/// factor after which the product of the factors i to j is split.
struct MatrixChainSplits(Vec<Vec<usize>>);

impl MatrixChainSplits {
    fn find_cheapest_splits(arrays: &[NdArray]) -> MatrixChainSplits {
        let count = arrays.len();
        let extents: Vec<f64> = arrays.iter().map(|a| a.shape()[0]).chain([arrays[count - 1].shape()[1]]).map(|n| n as f64).collect();
        let (mut costs, mut splits) = (vec![vec![0.0; count]; count], vec![vec![0; count]; count]);
        for length in 1..count {
            for first in 0..count - length {
                let last = first + length;
                let cost = |k: usize| costs[first][k] + costs[k + 1][last] + extents[first] * extents[k + 1] * extents[last + 1];
                let best = (first..last).min_by(|&x, &y| cost(x).total_cmp(&cost(y))).unwrap_or(first);
                (costs[first][last], splits[first][last]) = (cost(best), best);
            }
        }
        MatrixChainSplits(splits)
    }

    fn multiply_chain(&self, arrays: &[NdArray], first: usize, last: usize) -> Result<NdArray> {
        if first == last {
            return Ok(arrays[first].clone());
        }
        let split = self.0[first][last];
        matmul(&self.multiply_chain(arrays, first, split)?, &self.multiply_chain(arrays, split + 1, last)?)
    }
}
