//! Arrays of indices and values on a device, and checks of their dtypes and bounds, for all sparse formats.

use cuprum_core::ops::sparse::row_indices;
use cuprum_core::{DType, Device, Error, NdArray, Result, Scalar, arange, concat, full, not_equal, s, with_device};

/// Returns an array on `device` that is filled with one number.
pub(crate) fn full_on_device(device: Device, shape: &[usize], value: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
    let value = value.into();
    with_device(device, || full(shape, value, dtype))
}

/// Returns the 1-D int64 array of the integers from 0 to `count - 1`, on `device`.
pub(crate) fn arange_on_device(device: Device, count: usize) -> Result<NdArray> {
    with_device(device, || arange(0, count, 1))
}

/// Evaluates an array and returns its elements in contiguous memory.
pub(crate) fn evaluate_contiguous(a: &NdArray) -> Result<NdArray> {
    a.contiguous()?.eval().cloned()
}

/// Returns an error for dtypes that sparse arrays do not support.
pub(crate) fn check_value_dtype(op: &'static str, dtype: DType) -> Result<()> {
    match dtype {
        DType::F16 | DType::BF16 => Err(Error::dtype(op, "sparse arrays have no values of this dtype; use astype('float32')", &[dtype])),
        _ => Ok(()),
    }
}

/// Returns the index dtype of new arrays: int32 if every extent in `extents` fits, else int64.
pub(crate) fn index_dtype_for_extents(extents: &[usize]) -> DType {
    if extents.iter().all(|&n| n <= i32::MAX as usize) { DType::I32 } else { DType::I64 }
}

/// Converts index arrays to one dtype, int32 or int64. If all are int32 or all are int64, they keep their dtype.
///
/// # Errors
/// An array that is not 1-D or not of integers, or an extent that int64 cannot hold.
pub(crate) fn convert_index_arrays<const N: usize>(op: &'static str, arrays: [&NdArray; N], extents: &[usize]) -> Result<[NdArray; N]> {
    if extents.iter().any(|n| i64::try_from(*n).is_err()) {
        return Err(Error::shape(op, "an extent is too large", &[extents]));
    }
    let dtypes = arrays.map(NdArray::dtype);
    for a in arrays {
        if a.ndim() != 1 {
            return Err(Error::shape(op, "indices must be 1-D", &[a.shape()]));
        }
        if !a.dtype().is_int() {
            return Err(Error::dtype(op, "indices must be integers", &[a.dtype()]));
        }
    }
    let dtype = match dtypes.iter().all(|d| *d == dtypes[0]) {
        true if matches!(dtypes[0], DType::I32 | DType::I64) => dtypes[0],
        _ => index_dtype_for_extents(extents),
    };
    let mut converted = arrays.map(NdArray::clone);
    for (slot, a) in converted.iter_mut().zip(arrays) {
        let wide = clamp_uint64_to_int64(a)?;
        *slot = evaluate_contiguous(&wide.astype(if dtype == DType::I32 { narrowest_index_dtype(&wide)? } else { DType::I64 })?)?;
    }
    if dtype == DType::I32 && converted.iter().any(|a| a.dtype() == DType::I64) {
        for slot in &mut converted {
            *slot = evaluate_contiguous(&slot.astype(DType::I64)?)?;
        }
    }
    Ok(converted)
}

/// Clamps uint64 indices to int64, and returns other indices unchanged. Bounds are checked after the conversion to int64. Clamping keeps an
/// index that is out of bounds from wrapping to a valid index.
pub(crate) fn clamp_uint64_to_int64(indices: &NdArray) -> Result<NdArray> {
    if indices.dtype() == DType::U64 { cuprum_core::minimum(indices, i64::MAX) } else { Ok(indices.clone()) }
}

/// Returns int32 if all elements of `a` fit in int32, else int64.
pub(crate) fn narrowest_index_dtype(a: &NdArray) -> Result<DType> {
    if a.dtype().can_cast_safe(DType::I32) || a.size() == 0 {
        return Ok(DType::I32);
    }
    let fits = |extreme: NdArray| Ok(extreme.item()?.as_int().is_some_and(|n| i32::try_from(n).is_ok()));
    Ok(if fits(a.min(())?)? && fits(a.max(())?)? { DType::I32 } else { DType::I64 })
}

/// Checks that indices are from 0 to `size - 1`. Waits for the device.
pub(crate) fn check_index_bounds(op: &'static str, indices: &NdArray, axis: usize, size: usize) -> Result<()> {
    if indices.size() == 0 {
        return Ok(());
    }
    for extreme in [indices.min(())?, indices.max(())?] {
        let index = extreme.item()?.as_int().unwrap_or(-1);
        if index < 0 || index >= size as i128 {
            return Err(Error::Index { op, index: index as i64, axis, size });
        }
    }
    Ok(())
}

/// Checks `indptr`: `extent + 1` numbers that do not decrease, from 0 to `count`.
pub(crate) fn check_indptr(op: &'static str, indptr: &NdArray, extent: usize, count: usize) -> Result<()> {
    if Some(indptr.size()) != extent.checked_add(1) {
        let message = format!("indptr has {} elements, not {extent} + 1", indptr.size());
        return Err(Error::value(op, message));
    }
    let ends = [0, -1].map(|end| indptr.index(end).and_then(|a| a.item()).map(|n| n.as_int().unwrap_or(-1)));
    let [first, last] = ends;
    if first? != 0 {
        return Err(Error::value(op, "indptr must begin with 0"));
    }
    let last = last?;
    if last != count as i128 {
        return Err(Error::value(op, format!("indptr must end with the number of elements, {count}, not {last}")));
    }
    if extent > 0 && !indptr.index(s![..-1])?.less_equal(indptr.index(s![1..])?)?.all(())?.item()?.as_bool() {
        return Err(Error::value(op, "indptr must not decrease"));
    }
    Ok(())
}

/// Returns the number of elements of a dense array of this shape.
///
/// # Errors
/// A size that is too large for the address space.
pub(crate) fn checked_dense_size(op: &'static str, shape: [usize; 2]) -> Result<usize> {
    let size = shape[0].checked_mul(shape[1]).filter(|n| isize::try_from(*n).is_ok());
    size.ok_or_else(|| Error::shape(op, "a dense array of this shape is too large", &[&shape]))
}

/// Returns the array `indptr` of compressed storage, in the dtype `index`. `counts` holds the number of elements in each row.
pub(crate) fn indptr_from_row_counts(counts: &NdArray, index: DType) -> Result<NdArray> {
    let zero = full_on_device(counts.device(), &[1], 0, DType::I64)?;
    let joined = if counts.size() == 0 { zero } else { concat([&zero, &counts.astype(DType::I64)?.cumsum(0)?], 0)? };
    evaluate_contiguous(&joined.astype(index)?)
}

/// Returns `indptr` in the dtype `index` for a matrix of `extent` rows, or in int64 if the number of elements does not fit. `rows` holds
/// the row index of each element.
pub(crate) fn indptr_from_row_indices(rows: &NdArray, extent: usize, index: DType) -> Result<NdArray> {
    indptr_from_row_counts(&cuprum_core::bincount(rows, None, extent)?, index.promote(index_dtype_for_extents(&[rows.size()])))
}

/// Returns a mask of the elements whose position `(row, column)` differs from that of the preceding element. The mask is always true for
/// the first element.
pub(crate) fn run_start_mask(row: &NdArray, column: &NdArray) -> Result<NdArray> {
    let differs = |a: &NdArray| not_equal(a.index(s![1..])?, a.index(s![..-1])?);
    let first = full_on_device(row.device(), &[row.size().min(1)], true, DType::Bool)?;
    if row.size() < 2 {
        return Ok(first);
    }
    concat([&first, &differs(row)?.bitwise_or(differs(column)?)?], 0)
}

/// Returns the indices that sort elements by row, then by column. Equal positions keep their order.
pub(crate) fn argsort_by_position(row: &NdArray, column: &NdArray, shape: [usize; 2]) -> Result<NdArray> {
    let fits = |n: usize| n <= i32::MAX as usize;
    match shape[0].checked_mul(shape[1]) {
        // An int32 key takes half as many radix passes as an int64 key. The columns are checked too, because an array without rows may have
        // more columns than int32 can hold.
        Some(size) if fits(size) && fits(shape[1]) => {
            row.astype(DType::I32)?.multiply(shape[1] as i64)?.add(column.astype(DType::I32)?)?.argsort(0)
        }
        Some(size) if i64::try_from(size).is_ok() => {
            row.astype(DType::I64)?.multiply(shape[1] as i64)?.add(column.astype(DType::I64)?)?.argsort(0)
        }
        _ => {
            let by_column = column.argsort(0)?;
            by_column.take(&row.take(&by_column, 0)?.argsort(0)?, 0)
        }
    }
}

/// Returns the int64 row index of each element of a matrix with this `indptr` and `count` elements.
pub(crate) fn row_indices_from_indptr(indptr: &NdArray, count: usize) -> Result<NdArray> {
    row_indices(indptr, count)
}
