//! Reductions of sparse arrays: sums, means, extremes, counts, norms and diagonals.

use cuprum_core::{Array, Axes, DType, Error, NdArray, Result, count_nonzero, maximum, minimum, s, segment_max, segment_min, segment_sum};

use crate::SparseArray;
use crate::compressed::CompressedMatrix;
use crate::elementwise::sum_repeated_elements;
use crate::format_conversion::{to_compressed_rows, to_csc};
use crate::index_and_value_arrays::{evaluate_contiguous, full_on_device};

/// The norm of a sparse array (`ord=` of `scipy.sparse.linalg.norm`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum NormOrder {
    /// The square root of the sum of the squared magnitudes of all elements, or of those along an axis (`'fro'`, `None`).
    #[default]
    Frobenius,
    /// Without an axis, `max(sum(abs(a), axis=0))`. With an axis, the sum of the magnitudes along it.
    One,
    /// Without an axis, `min(sum(abs(a), axis=0))`. With an axis, the reciprocal of the sum of the reciprocal magnitudes along it; elements
    /// that are not stored do not count.
    MinusOne,
    /// Without an axis, `max(sum(abs(a), axis=1))`. With an axis, the largest magnitude along it.
    Infinity,
    /// Without an axis, `min(sum(abs(a), axis=1))`. With an axis, the smallest magnitude along it.
    MinusInfinity,
}

/// The axes that a reduction removes.
enum ReducedAxes {
    All,
    /// Axis 0 (rows) is reduced: one result per column.
    Rows,
    /// Axis 1 (columns) is reduced: one result per row.
    Columns,
}

fn resolve_reduced_axes(op: &'static str, axes: impl Into<Axes>) -> Result<ReducedAxes> {
    let axes = axes.into().resolve(op, 2)?;
    match &axes[..] {
        [0, 1] | [1, 0] => Ok(ReducedAxes::All),
        [0] => Ok(ReducedAxes::Rows),
        [1] => Ok(ReducedAxes::Columns),
        _ => Err(Error::value(op, "a reduction needs an axis, both axes, or None")),
    }
}

/// Returns the array in CSC storage for [`ReducedAxes::Rows`], else in CSR storage. For a reduction along one axis, each result then
/// belongs to one compressed row.
fn compress_along_kept_axis(a: &SparseArray, over: &ReducedAxes) -> Result<CompressedMatrix> {
    if matches!(over, ReducedAxes::Rows) { Ok(to_csc(a)?.inner) } else { to_compressed_rows(a) }
}

pub(crate) fn sum(a: &SparseArray, axes: impl Into<Axes>) -> Result<NdArray> {
    let a = &combine_repeated_integers(a)?;
    match resolve_reduced_axes("sum", axes)? {
        ReducedAxes::All => match a {
            SparseArray::Dia(_) => to_compressed_rows(a)?.data.sum(()),
            other => other.data().sum(()),
        },
        axis => compress_along_kept_axis(a, &axis)?.row_sums(),
    }
}

/// Returns the array with repeated elements added if its dtype is bool or an integer. In these dtypes, the sum of repeated elements may
/// wrap around.
fn combine_repeated_integers(a: &SparseArray) -> Result<SparseArray> {
    if a.dtype().is_inexact() { Ok(a.clone()) } else { sum_repeated_elements(a) }
}

pub(crate) fn mean(a: &SparseArray, axes: impl Into<Axes>) -> Result<NdArray> {
    let axes = axes.into();
    let a = &combine_repeated_integers(a)?;
    let [rows, columns] = a.extents();
    let count = match resolve_reduced_axes("mean", axes.clone())? {
        ReducedAxes::All => rows as f64 * columns as f64,
        ReducedAxes::Rows => rows as f64,
        ReducedAxes::Columns => columns as f64,
    };
    let wide = if a.dtype().is_inexact() { a.clone() } else { crate::format_conversion::astype(a, DType::F64)? };
    let dtype = wide.dtype();
    sum(&wide, axes)?.divide(count)?.astype(dtype)
}

/// Returns the maximum (if `is_max`) or minimum, of all elements or along an axis. Elements that are not stored count as zeros.
pub(crate) fn minimum_or_maximum(a: &SparseArray, axes: impl Into<Axes>, is_max: bool) -> Result<NdArray> {
    let op = if is_max { "max" } else { "min" };
    let over = resolve_reduced_axes(op, axes)?;
    let inner = compress_along_kept_axis(a, &over)?.to_canonical()?;
    let empty = || Err(Error::value(op, "zero-size array to reduction operation"));
    let combine = |a: NdArray, b: NdArray| if is_max { maximum(a, b) } else { minimum(a, b) };
    let zero = |shape: &[usize]| full_on_device(a.device(), shape, 0, a.dtype());
    if let ReducedAxes::All = over {
        if inner.major == 0 || inner.minor == 0 {
            return empty();
        }
        if inner.nnz() == 0 {
            return zero(&[]);
        }
        let stored = if is_max { inner.data.max(())? } else { inner.data.min(())? };
        let is_full = inner.major.checked_mul(inner.minor) == Some(inner.nnz());
        return if is_full { Ok(stored) } else { combine(stored, zero(&[])?) };
    }
    if inner.minor == 0 {
        return empty();
    }
    let stored_extreme = if is_max { segment_max(&inner.data, &inner.indptr)? } else { segment_min(&inner.data, &inner.indptr)? };
    let is_full = stored_elements_per_row(&inner)?.equal(inner.minor as i64)?;
    let with_zero = combine(stored_extreme.clone(), zero(&[])?)?;
    cuprum_core::where_(is_full, stored_extreme, with_zero)?.astype(a.dtype())
}

/// Returns the int64 number of stored elements of each compressed row.
pub(crate) fn stored_elements_per_row(inner: &CompressedMatrix) -> Result<NdArray> {
    inner.indptr.index(s![1..])?.subtract(inner.indptr.index(s![..-1])?)?.astype(DType::I64)
}

/// Returns the number of nonzero elements, in total or along an axis.
pub(crate) fn nonzero_count(a: &SparseArray, axes: impl Into<Axes>) -> Result<NdArray> {
    let over = resolve_reduced_axes("count_nonzero", axes)?;
    let inner = compress_along_kept_axis(a, &over)?.to_canonical()?;
    match over {
        ReducedAxes::All => count_nonzero(&inner.data, ()),
        _ => segment_sum(&inner.data.not_equal(0)?.astype(DType::I64)?, &inner.indptr),
    }
}

/// Returns the diagonal `k`, which begins at (0, k), or at (-k, 0) for negative `k`.
pub(crate) fn diagonal(a: &SparseArray, k: i64) -> Result<NdArray> {
    let [rows, columns] = a.extents();
    let (first_row, first_column) = (usize::try_from(k.saturating_neg()).unwrap_or(0), usize::try_from(k).unwrap_or(0));
    let length = rows.saturating_sub(first_row).min(columns.saturating_sub(first_column));
    if length == 0 {
        return full_on_device(a.device(), &[0], 0, a.dtype());
    }
    let inner = to_compressed_rows(a)?;
    let is_on = inner.indices.astype(DType::I64)?.equal(inner.major_indices()?.add(k)?)?;
    let sums = segment_sum(&cuprum_core::where_(is_on, &inner.data, 0)?, &inner.indptr)?.astype(a.dtype())?;
    evaluate_contiguous(&sums.index(s![first_row..first_row + length])?)
}

pub(crate) fn norm(a: &SparseArray, order: NormOrder, axis: Option<isize>) -> Result<NdArray> {
    const OP: &str = "norm";
    if order == NormOrder::MinusOne && axis.is_some() && !a.dtype().is_inexact() {
        return Err(Error::value(OP, "integers to negative integer powers are not allowed"));
    }
    let dtype = match (order, axis) {
        (NormOrder::Frobenius, _) if !a.dtype().is_inexact() => DType::F64,
        (NormOrder::Infinity | NormOrder::MinusInfinity, Some(_)) => a.dtype(),
        _ => a.dtype().sum_dtype(),
    };
    let wide = crate::format_conversion::astype(&combine_repeated_integers(a)?, dtype)?;
    let magnitudes = |inner: CompressedMatrix| inner.with_data(inner.data.abs()?);
    let length = |inner: CompressedMatrix| inner.with_data(inner.data.multiply(&inner.data)?)?.row_sums()?.sqrt();
    let Some(axis) = axis else {
        let rows = to_compressed_rows(&wide)?.to_canonical()?;
        let sums = |inner: CompressedMatrix| magnitudes(inner.to_canonical()?)?.row_sums();
        return match order {
            NormOrder::Frobenius => {
                let size = rows.data.abs()?;
                size.multiply(&size)?.sum(())?.sqrt()
            }
            NormOrder::One => sums(rows.compressed_along_other_axis()?)?.max(()),
            NormOrder::MinusOne => sums(rows.compressed_along_other_axis()?)?.min(()),
            NormOrder::Infinity => sums(rows)?.max(()),
            NormOrder::MinusInfinity => sums(rows)?.min(()),
        };
    };
    let over = resolve_reduced_axes(OP, axis)?;
    let inner = magnitudes(compress_along_kept_axis(&wide, &over)?.to_canonical()?)?;
    match order {
        NormOrder::Frobenius => length(inner),
        NormOrder::One => inner.row_sums(),
        NormOrder::MinusOne => inner.with_data(inner.data.reciprocal()?)?.row_sums()?.reciprocal(),
        NormOrder::Infinity | NormOrder::MinusInfinity => {
            let lines = crate::CsrArray::from_compressed(inner).into();
            minimum_or_maximum(&lines, 1, order == NormOrder::Infinity)
        }
    }
}
