//! Elementwise operations on sparse arrays. The second operand is a sparse array, a dense array or a number.

use cuprum_core::expr::elementwise;
use cuprum_core::ops::elementwise::{DIVIDE, MULTIPLY, NOT_EQUAL, SUBTRACT};
use cuprum_core::{Array, DType, Error, NdArray, Op, Operand, Result, Scalar, concat, flatnonzero, s, where_};

use crate::compressed::CompressedMatrix;
use crate::format_conversion::to_compressed_rows;
use crate::index_and_value_arrays::{
    arange_on_device, argsort_by_position, evaluate_contiguous, full_on_device, indptr_from_row_indices, run_start_mask,
};
use crate::{BsrArray, CscArray, CsrArray, SparseArray};

/// Returns the shape to which two shapes broadcast.
fn broadcast_two_shapes(op: &'static str, a: [usize; 2], b: [usize; 2]) -> Result<[usize; 2]> {
    let extent = |axis: usize| match (a[axis], b[axis]) {
        (n, m) if n == m => Some(n),
        (1, n) | (n, 1) => Some(n),
        _ => None,
    };
    match (extent(0), extent(1)) {
        (Some(rows), Some(columns)) => Ok([rows, columns]),
        _ => Err(Error::shape(op, "shapes cannot be broadcast together", &[&a, &b])),
    }
}

/// Returns `op` of the operands, with a dtype that sparse arrays support: float32 if NumPy's rules give float16 or bfloat16.
fn elementwise_with_sparse_dtype(op: Op, operands: &[Operand]) -> Result<NdArray> {
    let result = elementwise(op, operands)?;
    if !matches!(result.dtype(), DType::F16 | DType::BF16) {
        return Ok(result);
    }
    let widened = operands.iter().map(|operand| match operand {
        Operand::Array(a) => a.astype(DType::F32).map(Operand::Array),
        scalar => Ok(scalar.clone()),
    });
    elementwise(op, &widened.collect::<Result<Vec<_>>>()?)
}

/// Returns the matrix broadcast to the given shape: axes of extent 1 are repeated.
pub(crate) fn broadcast_compressed_to(a: &CompressedMatrix, [rows, columns]: [usize; 2]) -> Result<CompressedMatrix> {
    let mut a = a.clone();
    for (axis, extent) in [(0, rows), (1, columns)] {
        if a.shape()[axis] == extent {
            continue;
        }
        // Axis 0 is broadcast by repeating the elements of the only row. Axis 1 is broadcast in the same way, on the swapped matrix.
        let line = if axis == 0 { a.clone() } else { a.compressed_along_other_axis()? };
        let count = line.nnz();
        let total = count.checked_mul(extent).ok_or_else(|| Error::shape("broadcast_to", "too many elements", &[&[rows, columns]]))?;
        let from = arange_on_device(a.device(), total)?.remainder(count.max(1) as i64)?;
        let indptr = arange_on_device(a.device(), extent + 1)?.multiply(count as i64)?;
        let (data, indices) = (line.data.take(&from, 0)?, line.indices.take(&from, 0)?.astype(DType::I64)?);
        let repeated = CompressedMatrix::from_parts_unchecked(data, indices, indptr, [extent, line.minor], line.is_canonical()?)?;
        a = if axis == 0 { repeated } else { repeated.compressed_along_other_axis()? };
    }
    Ok(a)
}

/// Returns `op(a, b)` of two sparse arrays. Positions without elements count as zeros. Zero results are not stored.
///
/// The result is in CSC format if both are, else in CSR format.
pub(crate) fn apply_binary_with_sparse(op: Op, a: &SparseArray, b: &SparseArray) -> Result<SparseArray> {
    let name = op.name();
    if a.device() != b.device() {
        return Err(Error::Device { op: name, message: format!("arrays are on {} and {}; use to_device", a.device(), b.device()) });
    }
    // SciPy subtracts bool sparse arrays, unlike NumPy.
    let op = if op == SUBTRACT && a.dtype() == DType::Bool && b.dtype() == DType::Bool { NOT_EQUAL } else { op };
    let zero = |dtype| NdArray::scalar_as(0, dtype);
    let at_zero = elementwise(op, &[zero(a.dtype())?.into(), zero(b.dtype())?.into()])?;
    if !(at_zero.item()?.as_bool()) {
        let shape = broadcast_two_shapes(name, a.extents(), b.extents())?;
        return Ok(match (a, b) {
            (SparseArray::Csc(a), SparseArray::Csc(b)) => {
                CscArray::from_compressed(combine_compressed(op, &a.inner, &b.inner, [shape[1], shape[0]])?).into()
            }
            _ => CsrArray::from_compressed(combine_compressed(op, &to_compressed_rows(a)?, &to_compressed_rows(b)?, shape)?).into(),
        });
    }
    Err(Error::value(name, "the result of two zeros is not zero, so the result is not sparse; use to_dense"))
}

/// Combines two matrices that are compressed along the same axis.
fn combine_compressed(op: Op, a: &CompressedMatrix, b: &CompressedMatrix, shape: [usize; 2]) -> Result<CompressedMatrix> {
    let (a, b) = (broadcast_compressed_to(a, shape)?.to_canonical()?, broadcast_compressed_to(b, shape)?.to_canonical()?);
    let (count_a, count_b, device) = (a.nnz(), b.nnz(), a.device());
    let extended = |m: &CompressedMatrix| concat([&m.data, &full_on_device(device, &[1], 0, m.data.dtype())?], 0);
    let (data_a, data_b) = (extended(&a)?, extended(&b)?);
    let index = if [&a, &b].iter().any(|m| m.indices.dtype() == DType::I64) { DType::I64 } else { DType::I32 };
    if count_a + count_b == 0 {
        let dtype = elementwise_with_sparse_dtype(op, &[(&data_a).into(), (&data_b).into()])?.dtype();
        return CompressedMatrix::zeros(device, shape, dtype, index);
    }
    // Sorts the elements of both matrices by position. The sort is stable, so that an element of `a` precedes an element of `b` at the same
    // position.
    let row = concat([&a.major_indices()?, &b.major_indices()?], 0)?;
    let column = concat([&a.indices.astype(index)?, &b.indices.astype(index)?], 0)?;
    let order = argsort_by_position(&row, &column, shape)?;
    let (row, column) = (evaluate_contiguous(&row.take(&order, 0)?)?, evaluate_contiguous(&column.take(&order, 0)?)?);
    let begins = flatnonzero(&run_start_mask(&row, &column)?)?;
    let first = evaluate_contiguous(&order.take(&begins, 0)?)?;
    let end = full_on_device(device, &[1], (count_a + count_b) as i64, DType::I64)?;
    let ends = concat([&begins.index(s![1..])?, &end], 0)?;
    let last = order.take(&ends.subtract(1)?, 0)?;
    let of_a = where_(first.less(count_a as i64)?, &first, count_a as i64)?;
    let of_b = where_(last.greater_equal(count_a as i64)?, last.subtract(count_a as i64)?, count_b as i64)?;
    let values = evaluate_contiguous(&elementwise_with_sparse_dtype(op, &[data_a.take(&of_a, 0)?.into(), data_b.take(&of_b, 0)?.into()])?)?;
    let kept = flatnonzero(&values.not_equal(0)?)?;
    let places = begins.take(&kept, 0)?;
    let (row, column) = (row.take(&places, 0)?, column.take(&places, 0)?);
    CompressedMatrix::from_parts_unchecked(values.take(&kept, 0)?, column, indptr_from_row_indices(&row, shape[0], index)?, shape, true)
}

/// Returns a dense array of at most two axes as a 2-D view. A 1-D array becomes one row.
fn as_2d_view(op: &'static str, b: &NdArray) -> Result<NdArray> {
    match b.ndim() {
        0 => b.reshape((1, 1)),
        1 => b.reshape((1, -1)),
        2 => Ok(b.clone()),
        _ => Err(Error::shape(op, "a sparse array combines with dense arrays of at most two axes", &[b.shape()])),
    }
}

/// Returns `op(a, b)` for a dense `b`, as a dense array.
pub(crate) fn apply_binary_with_dense(op: Op, a: &SparseArray, b: &NdArray) -> Result<NdArray> {
    let b = as_2d_view(op.name(), b)?;
    broadcast_two_shapes(op.name(), a.extents(), [b.shape()[0], b.shape()[1]])?;
    elementwise(op, &[crate::format_conversion::to_dense(a)?.into(), b.into()])
}

/// Returns `op(a, b)` for a dense `b`, computed only at the stored elements of `a`. All other results count as zero. `op` must be
/// `MULTIPLY` or `DIVIDE`.
pub(crate) fn multiply_or_divide_by_dense(op: Op, a: &SparseArray, b: &NdArray) -> Result<SparseArray> {
    debug_assert!(op == MULTIPLY || op == DIVIDE);
    let b = as_2d_view(op.name(), b)?;
    if a.device() != b.device() {
        return Err(Error::Device { op: op.name(), message: format!("arrays are on {} and {}; use to_device", a.device(), b.device()) });
    }
    let shape = broadcast_two_shapes(op.name(), a.extents(), [b.shape()[0], b.shape()[1]])?;
    let is_csc = matches!(a, SparseArray::Csc(_));
    // The components of a CSC array are those of its transpose in CSR format, so both operands are transposed if `a` is CSC.
    let (inner, b, shape) = match a {
        SparseArray::Csc(a) => (a.inner.clone(), b.t()?, [shape[1], shape[0]]),
        other => (to_compressed_rows(other)?.to_canonical()?, b, shape),
    };
    let inner = broadcast_compressed_to(&inner, shape)?.to_canonical()?;
    let extents = [b.shape()[0], b.shape()[1]];
    let pick = |places: NdArray, extent: usize| if extent == 1 { places.multiply(0) } else { Ok(places) };
    let place =
        pick(inner.major_indices()?, extents[0])?.multiply(extents[1] as i64)?.add(pick(inner.indices.astype(DType::I64)?, extents[1])?)?;
    let factors =
        if inner.nnz() == 0 { full_on_device(b.device(), &[0], 0, b.dtype())? } else { b.contiguous()?.ravel()?.take(&place, 0)? };
    let values = elementwise_with_sparse_dtype(op, &[(&inner.data).into(), factors.into()])?;
    let result = inner.with_data(values)?;
    Ok(if is_csc { CscArray::from_compressed(result).into() } else { CsrArray::from_compressed(result).into() })
}

/// Returns `op(a, scalar)`, or `op(scalar, a)` if `is_reflected`, computed only at the stored elements of `a`.
///
/// # Errors
/// `op(0, scalar)`, or `op(scalar, 0)` if `is_reflected`, is not zero. Products and quotients by `scalar` are exempt.
pub(crate) fn apply_binary_with_scalar(op: Op, a: &SparseArray, scalar: Scalar, is_reflected: bool) -> Result<SparseArray> {
    let apply = |values: NdArray| {
        let (values, scalar) = (Operand::Array(values), Operand::Scalar(scalar));
        elementwise_with_sparse_dtype(op, &if is_reflected { [scalar, values] } else { [values, scalar] })
    };
    let at_zero = apply(NdArray::scalar_as(0, a.dtype())?)?.item()?;
    // As in SciPy, zeros that are not stored remain zero, even for products with infinity or NaN and quotients by zero.
    let keeps_zeros = op == MULTIPLY || (op == DIVIDE && !is_reflected);
    if at_zero.as_bool() && !keeps_zeros {
        let message = format!("the result of a zero is {at_zero:?}, so the result is not sparse; use to_dense");
        return Err(Error::value(op.name(), message));
    }
    a.with_data(apply(a.data().clone())?)
}

/// Returns `a ** exponent`, computed only at the stored elements of `a`. Repeated elements are added first.
///
/// # Errors
/// The exponent 0, because every element of the result would be one, and the errors of [`NdArray::power`].
pub(crate) fn power_of_stored_elements(a: &SparseArray, exponent: Scalar) -> Result<SparseArray> {
    if !exponent.as_bool() {
        return Err(Error::value("power", "zeros to the power of zero are one, so the result is not sparse; use to_dense"));
    }
    let a = sum_repeated_elements(a)?;
    a.with_data(a.data().power(exponent)?)
}

/// Returns the complex conjugate of a sparse array.
pub(crate) fn conjugate(a: &SparseArray) -> Result<SparseArray> {
    a.with_data(a.data().conj()?)
}

/// Returns `op(a)` for an operation of one argument that maps 0 to 0. Repeated elements are added first.
pub(crate) fn apply_unary(op: Op, a: &SparseArray) -> Result<SparseArray> {
    let apply = |values: NdArray| elementwise_with_sparse_dtype(op, &[values.into()]);
    if apply(NdArray::scalar_as(0, a.dtype())?)?.item()?.as_bool() {
        return Err(Error::value(op.name(), "the result of a zero is not zero, so the result is not sparse; use to_dense"));
    }
    let a = sum_repeated_elements(a)?;
    a.with_data(apply(a.data().clone())?)
}

/// Returns the array with repeated elements added.
pub(crate) fn sum_repeated_elements(a: &SparseArray) -> Result<SparseArray> {
    Ok(match a {
        SparseArray::Csr(a) => CsrArray::from_compressed(a.inner.to_canonical()?).into(),
        SparseArray::Csc(a) => CscArray::from_compressed(a.inner.to_canonical()?).into(),
        SparseArray::Coo(a) => {
            let rows = a.to_compressed(0)?;
            if rows.nnz() == a.size() {
                a.clone().into()
            } else {
                crate::format_conversion::to_coo(&CsrArray::from_compressed(rows).into())?.into()
            }
        }
        SparseArray::Bsr(a) => {
            let rows = a.to_compressed()?;
            let unique = rows.to_canonical()?;
            if unique.nnz() == rows.nnz() { a.clone().into() } else { BsrArray::from_compressed(&unique, a.block_shape())?.into() }
        }
        SparseArray::Dia(a) => a.clone().into(),
    })
}

/// Returns the array without stored zeros.
pub(crate) fn eliminate_zeros(a: &SparseArray) -> Result<SparseArray> {
    let filtered = |inner: &CompressedMatrix| inner.select_by_mask(&inner.data.not_equal(0)?);
    Ok(match a {
        SparseArray::Csc(a) => CscArray::from_compressed(filtered(&a.inner)?).into(),
        SparseArray::Coo(a) => {
            let kept = flatnonzero(&a.data().not_equal(0)?)?;
            let [data, row, column] = [a.data(), a.row(), a.column()].map(|x| x.take(&kept, 0));
            crate::CooArray::from_parts_unchecked(data?, row?, column?, [a.shape()[0], a.shape()[1]])?.into()
        }
        other => CsrArray::from_compressed(filtered(&to_compressed_rows(other)?)?).into(),
    })
}
