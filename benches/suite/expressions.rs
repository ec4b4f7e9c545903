//! Expressions that several suites time.

use cuprum::{NdArray, Result, axis};

/// Ten chained operations.
pub fn chain10(a: &NdArray) -> Result<NdArray> {
    let x = ((a + 1) * 2 - 3) * a + a;
    Ok(((x * 0.5 - a) * a + 1) * 2)
}

/// Softmax of each row, as a user of NumPy writes it.
pub fn softmax_rows(a: &NdArray) -> Result<NdArray> {
    let e = (a - a.max(axis(-1).keepdims())?).exp()?;
    let sums = e.sum(axis(-1).keepdims())?;
    Ok(e / sums)
}

/// Euclidean norm of each row.
pub fn norm_rows(a: &NdArray) -> Result<NdArray> {
    a.power(2)?.sum(-1)?.sqrt()
}
