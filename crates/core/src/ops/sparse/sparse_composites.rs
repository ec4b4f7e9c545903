//! Operations on sparse matrices as compositions of other operations, for devices without kernels of the family `Sparse`.

use super::{CsrParts, SPARSE_MULTIPLY, SPARSE_PRODUCT, SPARSE_SAMPLE, SPARSE_SOLVE_TRIANGULAR, indptr_from_row_counts, row_indices};
use crate::array::{NdArray, Outputs, StoredArray};
use crate::call::{Sparse, Triangle};
use crate::dtype::DType;
use crate::error::{Error, LinAlgFailure, Result};
use crate::op::{Op, Parameters};
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{add, bitwise_or, multiply as times, not_equal, subtract, where_};
use crate::ops::histogram::bincount;
use crate::ops::manipulation::{concat, stack};
use crate::ops::reduce::axis;
use crate::ops::segments::segment_sum;
use crate::ops::select::flatnonzero;
use crate::s;

/// Maximum number of products of elements that [`compose_sampled_dense_product`] stores at a time.
const MAX_STORED_PRODUCTS_OF_SAMPLE: usize = 1 << 24;
/// Number of iterations of a sparse triangular solve between two tests for convergence. A test waits for the device.
const ITERATIONS_PER_CONVERGENCE_TEST: usize = 8;

fn inputs_to_arrays<const N: usize>(op: Op, inputs: &[StoredArray]) -> Result<[NdArray; N]> {
    let arrays: Vec<NdArray> = inputs.iter().map(|a| a.clone().into()).collect();
    arrays.try_into().map_err(|_| Error::value(op.name(), format!("takes {N} arrays")))
}

fn arrays_to_outputs(arrays: impl IntoIterator<Item = NdArray>) -> Result<Outputs> {
    arrays.into_iter().map(|a| a.contiguous()?.stored()).collect()
}

fn downcast_sparse_request(op: Op, parameters: Option<&Parameters>) -> Result<Sparse> {
    let request = parameters.and_then(|p| p.downcast_ref::<Sparse>()).copied();
    request.ok_or_else(|| Error::value(op.name(), "the request has no parameters"))
}

/// Computes the product of a sparse matrix with a vector, or with each column of a dense matrix, as sums of segments.
pub(super) fn compose_sparse_dense_product(inputs: &[StoredArray], _: Option<&Parameters>) -> Result<Outputs> {
    let [indptr, indices, values, b] = inputs_to_arrays(SPARSE_MULTIPLY, inputs)?;
    arrays_to_outputs([compose_csr_dense_product(&indptr, &indices, &values, &b)?])
}

fn compose_csr_dense_product(indptr: &NdArray, indices: &NdArray, values: &NdArray, b: &NdArray) -> Result<NdArray> {
    let column = |x: &NdArray| segment_sum(&times(values, x.take(indices, 0)?)?, indptr)?.astype(values.dtype());
    if b.ndim() == 1 {
        return column(b);
    }
    let columns = b.t()?.contiguous()?;
    let products: Result<Vec<NdArray>> = (0..b.shape()[1]).map(|k| column(&columns.index(k)?)?.eval().cloned()).collect();
    stack(products?, 1)
}

/// Computes the product of two sparse matrices: forms all products of elements, sorts them by row and column, and adds those at equal
/// positions.
pub(super) fn compose_sparse_sparse_product(inputs: &[StoredArray], parameters: Option<&Parameters>) -> Result<Outputs> {
    let [a_indptr, a_indices, a_values, b_indptr, b_indices, b_values] = inputs_to_arrays(SPARSE_PRODUCT, inputs)?;
    let Sparse::Product { columns } = downcast_sparse_request(SPARSE_PRODUCT, parameters)? else {
        return Err(Error::value(SPARSE_PRODUCT.name(), "not a product"));
    };
    let (rows, device, index) = (a_indptr.size() - 1, a_indptr.device(), a_indices.dtype());
    let a_rows = row_indices(&a_indptr, a_indices.size())?;
    // Element n of `a`, which is in column j, is multiplied by each element of row j of `b`. This row has `counts[n]` elements, which begin
    // at position `starts[n]`.
    let starts = b_indptr.astype(DType::I64)?.take(&a_indices, 0)?;
    let counts = subtract(b_indptr.index(s![1..])?, b_indptr.index(s![..-1])?)?.astype(DType::I64)?.take(&a_indices, 0)?;
    let ends = counts.cumsum(0)?;
    let total = ends.index(-1)?.item()?.as_int().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    if total == 0 {
        let empty = |dtype| full_on_device(device, &[0], 0.into(), dtype);
        return arrays_to_outputs([full_on_device(device, &[rows + 1], 0.into(), index)?, empty(index)?, empty(a_values.dtype())?]);
    }
    let from = row_indices(&indptr_from_row_counts(&counts)?, total)?;
    let number = full_on_device(device, &[total], 1.into(), DType::I64)?.cumsum(0)?.subtract(1)?;
    let first = subtract(&ends, &counts)?;
    let at = add(subtract(&number, first.take(&from, 0)?)?, starts.take(&from, 0)?)?;
    let products = times(a_values.take(&from, 0)?, b_values.take(&at, 0)?)?;
    let (row, column) = (a_rows.take(&from, 0)?, b_indices.astype(DType::I64)?.take(&at, 0)?);
    let order = argsort_by_row_and_column(&row, &column, rows, columns)?;
    let (row, column, products) = (row.take(&order, 0)?, column.take(&order, 0)?, products.take(&order, 0)?);
    let (row, column) = (row.contiguous()?, column.contiguous()?);
    let differs = |a: &NdArray| not_equal(a.index(s![1..])?, a.index(s![..-1])?);
    let is_first = concat([&full_on_device(device, &[1], true.into(), DType::Bool)?, &bitwise_or(differs(&row)?, differs(&column)?)?], 0)?;
    let begins = flatnonzero(&is_first)?;
    if index == DType::I32 && begins.size() > i32::MAX as usize {
        return Err(Error::value(SPARSE_PRODUCT.name(), format!("{} elements need int64 indices", begins.size())));
    }
    let bounds = concat([&begins, &full_on_device(device, &[1], (total as i64).into(), DType::I64)?], 0)?;
    let sums = segment_sum(&products, &bounds)?.astype(a_values.dtype())?;
    let counts = bincount(&row.take(&begins, 0)?, None, rows)?;
    arrays_to_outputs([indptr_from_row_counts(&counts.astype(DType::I64)?)?.astype(index)?, column.take(&begins, 0)?.astype(index)?, sums])
}

/// Returns the indices that sort elements by row, then by column. Elements at the same position keep their order.
fn argsort_by_row_and_column(row: &NdArray, column: &NdArray, rows: usize, columns: usize) -> Result<NdArray> {
    if rows.checked_mul(columns).is_some_and(|size| i64::try_from(size).is_ok()) {
        return add(row.multiply(columns as i64)?, column)?.argsort(0);
    }
    let by_column = column.argsort(0)?;
    by_column.take(&row.take(&by_column, 0)?.argsort(0)?, 0)
}

/// Computes the elements of `a @ b.T` at the positions of a sparse matrix as dot products of pairs of rows. Works on blocks of positions to
/// limit the memory.
pub(super) fn compose_sampled_dense_product(inputs: &[StoredArray], _: Option<&Parameters>) -> Result<Outputs> {
    let [indptr, indices, a, b] = inputs_to_arrays(SPARSE_SAMPLE, inputs)?;
    let count = indices.size();
    let rows = row_indices(&indptr, count)?;
    let block = (MAX_STORED_PRODUCTS_OF_SAMPLE / a.shape()[1].max(1)).max(1);
    let part = |start: usize| {
        let part = s![start..count.min(start.saturating_add(block))];
        let products = times(a.take(&rows.index(part)?, 0)?, b.take(&indices.index(part)?, 0)?)?;
        products.sum(axis(1))?.astype(a.dtype())?.eval().cloned()
    };
    let parts: Result<Vec<NdArray>> = (0..count).step_by(block).map(part).collect();
    arrays_to_outputs([concat(parts?, 0)?])
}

/// Iterates `x = (b - t @ x) / d` to its fixed point, for the diagonal `d` and the strict triangle `t`. After each step, the rows that
/// depend only on rows with final values also have their final values, so n steps solve every system of n rows.
pub(super) fn compose_triangular_solve(inputs: &[StoredArray], parameters: Option<&Parameters>) -> Result<Outputs> {
    let name = SPARSE_SOLVE_TRIANGULAR.name();
    let Sparse::SolveTriangular { triangle, unit_diagonal } = downcast_sparse_request(SPARSE_SOLVE_TRIANGULAR, parameters)? else {
        return Err(Error::value(name, "not a triangular solution"));
    };
    let [indptr, indices, values, b] = inputs_to_arrays(SPARSE_SOLVE_TRIANGULAR, inputs)?;
    let n = indptr.size() - 1;
    let rows = row_indices(&indptr, indices.size())?;
    let is_strict = if triangle == Triangle::Lower { indices.less(&rows)? } else { indices.greater(&rows)? };
    let kept = flatnonzero(&is_strict)?;
    let counts = bincount(&rows.take(&kept, 0)?, None, n)?;
    let strict = CsrParts {
        indptr: &indptr_from_row_counts(&counts.astype(DType::I64)?)?,
        indices: &indices.take(&kept, 0)?.astype(DType::I64)?,
        values: &values.take(&kept, 0)?,
        columns: n,
    };
    let divisor = if unit_diagonal {
        None
    } else {
        let diagonal = segment_sum(&where_(indices.equal(&rows)?, &values, 0)?, &indptr)?.astype(values.dtype())?;
        if diagonal.equal(0)?.any(())?.item()?.as_bool() {
            return Err(Error::LinAlg { op: name, failure: LinAlgFailure::Singular, matrix: 0, batch: 1 });
        }
        Some(if b.ndim() == 1 { diagonal } else { diagonal.reshape((-1, 1))? })
    };
    let step = |x: &NdArray| {
        let rest = subtract(&b, super::multiply_by_dense(strict, x)?)?;
        divisor.as_ref().map_or(Ok(rest.clone()), |d| rest.divide(d))?.eval().cloned()
    };
    let mut x = full_on_device(b.device(), b.shape(), 0.into(), b.dtype())?;
    for done in 1..=n.saturating_add(1) {
        let next = step(&x)?;
        // NaN differs from itself. If the solution contains NaN, the test for convergence fails and the loop takes all steps.
        let is_test = done.is_multiple_of(ITERATIONS_PER_CONVERGENCE_TEST) || done > n;
        if is_test && x.equal(&next)?.all(())?.item()?.as_bool() {
            break;
        }
        x = next;
    }
    arrays_to_outputs([x])
}
