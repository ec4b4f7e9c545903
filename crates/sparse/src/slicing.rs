//! Selection of rows, columns and single elements.

use cuprum_core::layout::broadcast_shapes;
use cuprum_core::{Array, DType, Error, IndexItem, Item, NdArray, Result, Scalar, Side, minimum, s, where_};

use crate::compressed::CompressedMatrix;
use crate::format_conversion::to_compressed_rows;
use crate::index_and_value_arrays::{
    arange_on_device, check_index_bounds, clamp_uint64_to_int64, evaluate_contiguous, full_on_device, indptr_from_row_counts,
};
use crate::reductions::stored_elements_per_row;
use crate::{CscArray, CsrArray, SparseArray};

const OP: &str = "index";

/// The rows or columns that an index selects.
enum AxisSelection {
    All,
    /// `count` consecutive indices from `start` on.
    Range {
        start: usize,
        count: usize,
    },
    /// int64 indices, in any order.
    List(NdArray),
}

impl AxisSelection {
    /// Returns the indices that `item` selects from an axis of `extent` elements. An integer selects a range of one index.
    fn from_index_item(item: &IndexItem, axis: usize, extent: usize, like: &NdArray) -> Result<AxisSelection> {
        match item {
            IndexItem::Basic(Item::At(at)) => {
                let index = *at as i128 + if *at < 0 { extent as i128 } else { 0 };
                match usize::try_from(index) {
                    Ok(start) if start < extent => Ok(AxisSelection::Range { start, count: 1 }),
                    _ => Err(Error::Index { op: OP, index: *at as i64, axis, size: extent }),
                }
            }
            IndexItem::Basic(Item::Slice { start, stop, step }) => AxisSelection::from_slice_bounds(*start, *stop, *step, extent, like),
            IndexItem::Basic(Item::NewAxis | Item::Ellipsis) => {
                Err(Error::value(OP, "a sparse array takes integers, slices, arrays and one `...`, and has two axes"))
            }
            IndexItem::List(list) => match list.as_ref() {
                Ok(array) => AxisSelection::from_index_array(&array.to_device(like.device())?, axis, extent),
                Err(error) => Err(error.clone()),
            },
            IndexItem::Array(array) => AxisSelection::from_index_array(array, axis, extent),
        }
    }

    /// Returns the indices that a slice selects, by Python's rules.
    fn from_slice_bounds(start: Option<isize>, stop: Option<isize>, step: isize, extent: usize, like: &NdArray) -> Result<AxisSelection> {
        if step == 0 {
            return Err(Error::value(OP, "slice step cannot be zero"));
        }
        let (n, step) = (extent as i128, step as i128);
        let bound = |bound: isize| {
            let bound = bound as i128 + if bound < 0 { n } else { 0 };
            if step > 0 { bound.clamp(0, n) } else { bound.clamp(-1, n - 1) }
        };
        let (first, end) = if step > 0 { (0, n) } else { (n - 1, -1) };
        let (start, stop) = (start.map_or(first, bound), stop.map_or(end, bound));
        let count = if step > 0 { (stop - start + step - 1) / step } else { (stop - start + step + 1) / step };
        let count = usize::try_from(count).unwrap_or(0);
        if step == 1 {
            let start = usize::try_from(start).unwrap_or(0);
            return Ok(if count == extent { AxisSelection::All } else { AxisSelection::Range { start, count } });
        }
        let numbers = arange_on_device(like.device(), count)?;
        // If the step does not fit in int64, at most the index `start` is selected, so the step does not matter.
        let step = i64::try_from(step).unwrap_or(0);
        Ok(AxisSelection::List(numbers.multiply(step)?.add(start as i64)?))
    }

    /// Returns the indices that an array of integers or a mask selects.
    fn from_index_array(array: &NdArray, axis: usize, extent: usize) -> Result<AxisSelection> {
        if array.ndim() != 1 {
            return Err(Error::shape(OP, "an index array of a sparse array must be 1-D", &[array.shape()]));
        }
        match array.dtype() {
            DType::Bool if array.size() == extent => Ok(AxisSelection::List(cuprum_core::flatnonzero(array)?)),
            DType::Bool => Err(Error::shape(OP, format!("a mask of axis {axis} has {extent} elements"), &[array.shape()])),
            dtype if dtype.is_int() || array.size() == 0 => {
                let wide = clamp_uint64_to_int64(array)?.astype(DType::I64)?;
                let indices = evaluate_contiguous(&where_(wide.less(0)?, wide.add(extent as i64)?, &wide)?)?;
                check_index_bounds(OP, &indices, axis, extent)?;
                Ok(AxisSelection::List(indices))
            }
            dtype => Err(Error::dtype(OP, "indices must be integers or bools", &[dtype])),
        }
    }
}

/// Selects rows of the compressed matrix (indices along the major axis).
fn select_along_major_axis(a: &CompressedMatrix, selection: &AxisSelection) -> Result<CompressedMatrix> {
    match selection {
        AxisSelection::All => Ok(a.clone()),
        AxisSelection::Range { start, count } => {
            let bounds = evaluate_contiguous(&a.indptr.index(s![*start..*start + *count + 1])?)?;
            let position = |at: isize| -> Result<usize> {
                let position = bounds.index(at)?.item()?.as_int();
                Ok(position.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
            };
            let (first, last) = (position(0)?, position(-1)?);
            let part = |values: &NdArray| values.index(s![first..last]);
            let indptr = bounds.subtract(bounds.index(0)?)?;
            CompressedMatrix::from_parts_unchecked(part(&a.data)?, part(&a.indices)?, indptr, [*count, a.minor], a.is_canonical()?)
        }
        AxisSelection::List(list) => {
            let index = a.indptr.dtype();
            let selected_counts = evaluate_contiguous(&stored_elements_per_row(a)?.take(list, 0)?)?;
            let indptr = indptr_from_row_counts(&selected_counts, DType::I64)?;
            let total = indptr.index(-1)?.item()?.as_int().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
            let rows = evaluate_contiguous(&cuprum_core::ops::sparse::row_indices(&indptr, total)?)?;
            let first = a.indptr.astype(DType::I64)?.take(list, 0)?.subtract(indptr.index(s![..-1])?)?;
            let place = if total == 0 { rows } else { arange_on_device(a.device(), total)?.add(first.take(&rows, 0)?)? };
            let indptr = if total <= i32::MAX as usize { indptr.astype(index)? } else { indptr };
            let shape = [list.size(), a.minor];
            CompressedMatrix::from_parts_unchecked(a.data.take(&place, 0)?, a.indices.take(&place, 0)?, indptr, shape, a.is_canonical()?)
        }
    }
}

/// Selects columns of the compressed matrix (indices along the minor axis).
fn select_along_minor_axis(a: &CompressedMatrix, selection: &AxisSelection) -> Result<CompressedMatrix> {
    match selection {
        AxisSelection::All => Ok(a.clone()),
        AxisSelection::Range { start, count } => {
            let end = start + count;
            // If the end of the range does not fit in int32, the indices are compared with it in int64.
            let index = a.indices.dtype();
            let comparable = |indices: &NdArray| indices.astype(if end <= i32::MAX as usize { index } else { DType::I64 });
            let indices = comparable(&a.indices)?;
            let is_inside = indices.greater_equal(*start as i64)?.bitwise_and(indices.less(end as i64)?)?;
            let kept = a.select_by_mask(&is_inside)?;
            let indices = comparable(&kept.indices)?.subtract(*start as i64)?.astype(index)?;
            CompressedMatrix::from_parts_unchecked(kept.data.clone(), indices, kept.indptr.clone(), [a.major, *count], kept.is_canonical()?)
        }
        list => select_along_major_axis(&a.compressed_along_other_axis()?, list)?.compressed_along_other_axis(),
    }
}

/// Returns the rows and columns of a sparse array that an index selects, always 2-D.
pub(crate) fn select_rows_and_columns(a: &SparseArray, items: &[IndexItem]) -> Result<SparseArray> {
    let is_ellipsis = |item: &&IndexItem| matches!(item, IndexItem::Basic(Item::Ellipsis));
    let all = IndexItem::from(..);
    let (rows, columns) = match items {
        [] => (&all, &all),
        [only] if is_ellipsis(&only) => (&all, &all),
        [rows] => (rows, &all),
        [dots, columns] if is_ellipsis(&dots) => (&all, columns),
        [rows, dots] if is_ellipsis(&dots) => (rows, &all),
        [rows, columns] => (rows, columns),
        more => return Err(Error::value(OP, format!("too many indices: a sparse array has 2 axes, {} were indexed", more.len()))),
    };
    let is_array = |item: &IndexItem| !matches!(item, IndexItem::Basic(_));
    if is_array(rows) && is_array(columns) {
        let message = "one index array at a time: use values_at for single elements, or index rows and columns in turn";
        return Err(Error::value(OP, message));
    }
    let [row_extent, column_extent] = a.extents();
    let (rows, columns) = (
        AxisSelection::from_index_item(rows, 0, row_extent, a.data())?,
        AxisSelection::from_index_item(columns, 1, column_extent, a.data())?,
    );
    Ok(match a {
        SparseArray::Csc(a) => {
            CscArray::from_compressed(select_along_minor_axis(&select_along_major_axis(&a.inner, &columns)?, &rows)?).into()
        }
        other => {
            CsrArray::from_compressed(select_along_minor_axis(&select_along_major_axis(&to_compressed_rows(other)?, &rows)?, &columns)?)
                .into()
        }
    })
}

/// Returns the elements at `(rows[n], columns[n])`, as a dense array of the shape to which `rows` and `columns` broadcast.
pub(crate) fn values_at(a: &SparseArray, rows: &NdArray, columns: &NdArray) -> Result<NdArray> {
    let [row_extent, column_extent] = a.extents();
    if row_extent.checked_mul(column_extent).is_none_or(|n| i64::try_from(n).is_err()) {
        return Err(Error::shape("values_at", "the positions of this shape do not fit in int64", &[a.shape()]));
    }
    let list = |indices: &NdArray, axis, extent| match AxisSelection::from_index_array(&indices.ravel()?, axis, extent)? {
        AxisSelection::List(list) if indices.dtype() == DType::Bool => Ok(list),
        AxisSelection::List(list) => list.reshape(indices.shape()),
        _ => Err(Error::value("values_at", "indices must be an array")),
    };
    let (row, column) = (list(rows, 0, row_extent)?, list(columns, 1, column_extent)?);
    let shape = &broadcast_shapes("values_at", &[row.shape(), column.shape()])?[..];
    let (row, column) = (row.broadcast_to(shape)?.ravel()?, column.broadcast_to(shape)?.ravel()?);
    let inner = to_compressed_rows(a)?.to_canonical()?;
    if inner.nnz() == 0 || row.size() == 0 {
        return full_on_device(a.device(), shape, 0, a.dtype());
    }
    let key = |row: &NdArray, column: &NdArray| row.multiply(column_extent as i64)?.add(column.astype(DType::I64)?);
    let (keys, wanted) = (evaluate_contiguous(&key(&inner.major_indices()?, &inner.indices)?)?, key(&row, &column)?);
    let place = minimum(keys.searchsorted(&wanted, Side::Left)?, inner.nnz() as i64 - 1)?;
    let is_stored = keys.take(&place, 0)?.equal(&wanted)?;
    where_(is_stored, inner.data.take(&place, 0)?, 0)?.astype(a.dtype())?.reshape(shape)
}

/// Returns one element.
pub(crate) fn element_as_scalar(a: &SparseArray, row: isize, column: isize) -> Result<Scalar> {
    element_as_array(a, row, column)?.item()
}

/// Returns one element as a 0-d array.
pub(crate) fn element_as_array(a: &SparseArray, row: isize, column: isize) -> Result<NdArray> {
    select_rows_and_columns(a, &[IndexItem::from(row), IndexItem::from(column)])?.data().sum(())?.astype(a.dtype())
}

/// Returns the elements on and below diagonal `k` if `is_lower`, else those on and above it.
pub(crate) fn extract_triangle(a: &SparseArray, k: i64, is_lower: bool) -> Result<SparseArray> {
    let inner = to_compressed_rows(a)?;
    let diagonal = inner.indices.astype(DType::I64)?.subtract(inner.major_indices()?)?;
    let mask = if is_lower { diagonal.less_equal(k)? } else { diagonal.greater_equal(k)? };
    Ok(CsrArray::from_compressed(inner.select_by_mask(&mask)?).into())
}
