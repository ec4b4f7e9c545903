//! Array expressions shared by several suites.

use cuprum::{NdArray, Result, axis};

/// Computes a chain of ten elementwise operations.
pub fn chain10(a: &NdArray) -> Result<NdArray> {
    let x = ((a + 1) * 2 - 3) * a + a;
    Ok(((x * 0.5 - a) * a + 1) * 2)
}

/// Computes the softmax of each row, composed of array operations.
pub fn softmax_rows(a: &NdArray) -> Result<NdArray> {
    let e = (a - a.max(axis(-1).keepdims())?).exp()?;
    let sums = e.sum(axis(-1).keepdims())?;
    Ok(e / sums)
}

/// Computes the layer norm of each row, with a weight and a bias per column.
pub fn layer_norm(a: &NdArray, gamma: &NdArray, beta: &NdArray) -> Result<NdArray> {
    let (mean, variance) = (a.mean(axis(-1).keepdims())?, a.var(axis(-1).keepdims())?);
    Ok((a - mean) / (variance + 1e-5).sqrt()? * gamma + beta)
}

/// Computes the Euclidean norm of each row.
pub fn norm_rows(a: &NdArray) -> Result<NdArray> {
    a.power(2)?.sum(-1)?.sqrt()
}
