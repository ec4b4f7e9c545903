//! Construction of sparse arrays: identities, diagonals, random elements, joins and Kronecker products.

use cuprum_core::function::FromArgs;
use cuprum_core::random::Generator;
use cuprum_core::{Args, Array, DType, Device, Error, NdArray, Result, Value, concat, numpy, ones, with_device, zeros};

use crate::eval_arguments::{call_with_named_errors, convert_to_requested_format, read_shape_argument};
use crate::eval_value::sparse_from_value;
use crate::format_conversion::{astype, to_coo};
use crate::index_and_value_arrays::{arange_on_device, check_value_dtype, index_dtype_for_extents};
use crate::{CooArray, DiaArray, Sparse, SparseArray};

/// Returns an array with ones on diagonal `k` (`scipy.sparse.eye_array`), in DIA format on the current device.
///
/// # Errors
/// A diagonal outside the array, float16 and bfloat16, or too little memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{Sparse, eye_array};
/// assert_eq!(eye_array(2, 3, 1, DType::F64)?.to_dense()?, array![[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.eye_array(m, n=None, *, k=0, dtype=None, format=None)", call = |args: &Args| call_with_named_errors(args, eye_from_args))]
pub fn eye_array(rows: usize, columns: usize, k: i64, dtype: DType) -> Result<DiaArray> {
    check_value_dtype("eye_array", dtype)?;
    check_diagonal_offsets("eye_array", &[k], [rows, columns])?;
    DiaArray::new(&ones([1, columns], dtype)?, &diagonal_offset_array(&[k], [rows, columns])?, [rows, columns])
}

/// Returns an error if a diagonal is outside an array of `shape`. As in SciPy, the empty diagonals just outside are valid.
fn check_diagonal_offsets(op: &'static str, offsets: &[i64], shape: [usize; 2]) -> Result<()> {
    let limit = |offset: i64| if offset < 0 { shape[0] } else { shape[1] } as u64;
    match offsets.iter().position(|&offset| offset.unsigned_abs() > limit(offset)) {
        Some(index) => Err(Error::value(op, format!("Offset {} (index {index}) out of bounds", offsets[index]))),
        None => Ok(()),
    }
}

/// Returns the offsets of diagonals in the index dtype of `shape`, or in int64 if an offset does not fit.
fn diagonal_offset_array(offsets: &[i64], shape: [usize; 2]) -> Result<NdArray> {
    let fits = offsets.iter().all(|&k| i32::try_from(k).is_ok());
    NdArray::from_slice(offsets)?.astype(if fits { index_dtype_for_extents(&shape) } else { DType::I64 })
}

/// Returns an array with the given diagonals (`scipy.sparse.diags_array`), in DIA format.
///
/// `diagonals[n]` holds the elements of the diagonal `offsets[n]`, or one element that fills this diagonal. Without a shape, the array is
/// square and as small as the first diagonal allows.
///
/// # Errors
/// Different numbers of diagonals and offsets, repeated offsets, a diagonal outside the array, of the wrong length or of more than one
/// axis, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{Sparse, diags_array};
/// let a = diags_array(&[array![1.0, 2.0, 3.0], array![-1.0]], &[0, 1], None, DType::F64)?;
/// assert_eq!(a.to_dense()?, array![[1.0, -1.0, 0.0], [0.0, 2.0, -1.0], [0.0, 0.0, 3.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.diags_array(diagonals, /, *, offsets=0, shape=None, format=None, dtype=None)", call = |args: &Args| call_with_named_errors(args, diags_from_args))]
pub fn diags_array(diagonals: &[NdArray], offsets: &[i64], shape: Option<[usize; 2]>, dtype: DType) -> Result<DiaArray> {
    const OP: &str = "diags_array";
    check_value_dtype(OP, dtype)?;
    if diagonals.len() != offsets.len() || diagonals.is_empty() {
        return Err(Error::value(OP, format!("{} diagonals and {} offsets; as many of both are needed", diagonals.len(), offsets.len())));
    }
    let shape = match shape {
        Some(shape) => shape,
        None => {
            let extent = usize::try_from(offsets[0].unsigned_abs()).ok().and_then(|k| k.checked_add(diagonals[0].size()));
            let extent = extent.ok_or_else(|| Error::value(OP, "the offset is too large"))?;
            [extent, extent]
        }
    };
    check_diagonal_offsets(OP, offsets, shape)?;
    let device = diagonals[0].device();
    let mut rows = Vec::new();
    for (diagonal, &offset) in diagonals.iter().zip(offsets) {
        let above = usize::try_from(offset).unwrap_or(0);
        let below = usize::try_from(offset.saturating_neg()).unwrap_or(0);
        let length = shape[0].saturating_sub(below).min(shape[1].saturating_sub(above));
        let is_repeated = diagonal.size() == 1 && length != 1;
        if diagonal.ndim() > 1 || (diagonal.size() != length && !is_repeated) {
            let message = format!("diagonal {offset} has {length} elements in an array of this shape, not {}", diagonal.size());
            return Err(Error::shape(OP, message, &[&shape, diagonal.shape()]));
        }
        let values = diagonal.reshape(-1)?.astype(dtype)?.broadcast_to([length])?;
        let fill = |count: usize| with_device(device, || zeros(count, dtype));
        // Row n of `data` holds diagonal n. An element in column j of the matrix is stored at index j.
        rows.push(concat([&fill(above)?, &values, &fill(shape[1] - above - length)?], 0)?);
    }
    let offsets = with_device(device, || diagonal_offset_array(offsets, shape))?;
    DiaArray::new(&cuprum_core::stack(&rows, 0)?, &offsets, shape)
}

/// Returns an array with random elements at random positions (`scipy.sparse.random_array`), in COO format on the current device.
///
/// `density` is the fraction of elements that are stored, from 0 to 1. Positions do not repeat. Floating-point values and the real parts of
/// complex values are uniform in [0, 1). Integers are 1, bools true.
///
/// # Errors
/// A density out of range, a shape of 2^63 elements or more, float16 and bfloat16, or too little memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, random};
/// use cuprum::sparse::{Sparse, random_array};
/// let a = random_array([100, 50], 0.1, DType::F32, &random::default_rng(1))?;
/// assert_eq!(a.nnz(), 500);
/// # Ok::<(), cuprum::Error>(())
/// ```
pub fn random_array(shape: [usize; 2], density: f64, dtype: DType, generator: &Generator) -> Result<CooArray> {
    const OP: &str = "random_array";
    check_value_dtype(OP, dtype)?;
    let size = shape[0].checked_mul(shape[1]).and_then(|n| i64::try_from(n).ok());
    let size = size.ok_or_else(|| Error::shape(OP, "the shape has too many elements", &[&shape]))?;
    if !(0.0..=1.0).contains(&density) {
        return Err(Error::value(OP, format!("density must be from 0 to 1, not {density}")));
    }
    let count = ((size as f64 * density).round() as i64).min(size);
    let places = random_distinct_integers(size, count, generator)?;
    let columns = shape[1].max(1) as i64;
    let index = index_dtype_for_extents(&shape);
    let (row, column) = (places.floor_divide(columns)?.astype(index)?, places.remainder(columns)?.astype(index)?);
    let data = match dtype.is_inexact() {
        true => generator.random(count as usize, dtype.real())?.astype(dtype)?,
        false => ones(count as usize, dtype)?,
    };
    CooArray::from_parts_unchecked(data, row, column, shape)
}

/// Returns `count` distinct random integers in `0..size`, in ascending order.
fn random_distinct_integers(size: i64, count: i64, generator: &Generator) -> Result<NdArray> {
    if count >= size - count {
        // If at least half of the integers are needed, takes the first ones of a random permutation.
        let order = generator.permutation(arange_on_device(Device::current()?, size as usize)?, 0)?;
        return order.index(cuprum_core::s![..count])?.sort(0);
    }
    let mut numbers = zeros(0, DType::I64)?;
    while (numbers.size() as i64) < count {
        let missing = count - numbers.size() as i64;
        let drawn = generator.integers(0, size, (missing + missing / 4 + 8) as usize, DType::I64)?;
        // The draws stay unsorted, because keeping the first `count` of sorted integers would favour small ones.
        let all = concat([&numbers, &drawn], 0)?;
        numbers = distinct_in_first_order(&all)?;
        if numbers.size() as i64 > count {
            numbers = numbers.index(cuprum_core::s![..count])?;
        }
    }
    numbers.sort(0)
}

/// Returns the distinct elements in the order of their first occurrence.
fn distinct_in_first_order(a: &NdArray) -> Result<NdArray> {
    let order = a.argsort(0)?;
    let sorted = a.take(&order, 0)?.contiguous()?;
    let starts = crate::index_and_value_arrays::run_start_mask(&sorted, &sorted)?;
    a.take(&order.extract(&starts)?.sort(0)?, 0)
}

/// Returns sparse arrays above each other (`scipy.sparse.vstack`), in CSR format.
///
/// # Errors
/// No arrays, numbers of columns that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{Sparse, eye_array, vstack};
/// let a = eye_array(1, 2, 0, DType::F64)?;
/// assert_eq!(vstack(&[a.to_sparse(), a.to_sparse()])?.to_dense()?, array![[1.0, 0.0], [1.0, 0.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.vstack(blocks, format=None, dtype=None)", call = |args: &Args| call_with_named_errors(args, |args| stack_from_args(args, vstack)))]
pub fn vstack(arrays: &[SparseArray]) -> Result<SparseArray> {
    Ok(concatenate_along_axis("vstack", arrays, 0)?.to_csr()?.into())
}

/// Returns sparse arrays beside each other (`scipy.sparse.hstack`), in CSR format.
///
/// # Errors
/// No arrays, numbers of rows that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{Sparse, eye_array, hstack};
/// let a = eye_array(1, 2, 0, DType::F64)?;
/// assert_eq!(hstack(&[a.to_sparse(), a.to_sparse()])?.to_dense()?, array![[1.0, 0.0, 1.0, 0.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.hstack(blocks, format=None, dtype=None)", call = |args: &Args| call_with_named_errors(args, |args| stack_from_args(args, hstack)))]
pub fn hstack(arrays: &[SparseArray]) -> Result<SparseArray> {
    Ok(concatenate_along_axis("hstack", arrays, 1)?.to_csr()?.into())
}

fn concatenate_along_axis(op: &'static str, arrays: &[SparseArray], axis: usize) -> Result<CooArray> {
    let Some(first) = arrays.first() else { return Err(Error::value(op, "at least one array is needed")) };
    let mut shape = first.extents();
    shape[axis] = 0;
    let (mut starts, mut parts) = (Vec::new(), Vec::new());
    for a in arrays {
        if a.shape()[1 - axis] != shape[1 - axis] {
            return Err(Error::shape(op, "the extents of the other axis differ", &[first.shape(), a.shape()]));
        }
        if a.device() != first.device() {
            return Err(Error::Device { op, message: format!("arrays are on {} and {}; use to_device", first.device(), a.device()) });
        }
        starts.push(shape[axis] as i64);
        let extent = shape[axis].checked_add(a.shape()[axis]).filter(|n| i64::try_from(*n).is_ok());
        shape[axis] = extent.ok_or_else(|| Error::shape(op, "the result is too large", &[a.shape()]))?;
        parts.push(to_coo(a)?);
    }
    let index = index_dtype_for_extents(&shape);
    let indices = |along: usize| {
        let shifted = parts.iter().zip(&starts).map(|(a, &start)| {
            let indices = if along == 0 { a.row() } else { a.column() }.astype(DType::I64)?;
            if along == axis { indices.add(start)?.astype(index) } else { indices.astype(index) }
        });
        concat(shifted.collect::<Result<Vec<_>>>()?, 0)
    };
    let data = concat(parts.iter().map(CooArray::data), 0)?;
    CooArray::from_parts_unchecked(data, indices(0)?, indices(1)?, shape)
}

/// Returns the Kronecker product (`scipy.sparse.kron`), in COO format: `b` multiplied by each element of `a`.
///
/// # Errors
/// A result that is too large, or arrays on different devices.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{CsrArray, Sparse, eye_array, kron};
/// let b = CsrArray::from_dense(&array![[1.0, 2.0]])?;
/// assert_eq!(kron(&eye_array(2, 2, 0, DType::F64)?, &b)?.to_dense()?, array![[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.kron(A, B, format=None)", call = |args: &Args| call_with_named_errors(args, kron_from_args))]
pub fn kron(a: &impl Sparse, b: &impl Sparse) -> Result<CooArray> {
    const OP: &str = "kron";
    let (a, b) = (a.to_coo()?, b.to_coo()?);
    if a.device() != b.device() {
        return Err(Error::Device { op: OP, message: format!("arrays are on {} and {}; use to_device", a.device(), b.device()) });
    }
    let too_large = || Error::shape(OP, "the result is too large", &[a.shape(), b.shape()]);
    let extent = |axis: usize| a.shape()[axis].checked_mul(b.shape()[axis]).filter(|n| i64::try_from(*n).is_ok()).ok_or_else(too_large);
    let shape = [extent(0)?, extent(1)?];
    let index = index_dtype_for_extents(&shape);
    let outer = |x: &NdArray, y: &NdArray, extent: usize| {
        let x = x.astype(DType::I64)?.multiply(extent as i64)?.reshape((-1, 1))?;
        x.add(y.astype(DType::I64)?.reshape((1, -1))?)?.ravel()?.astype(index)
    };
    let (row, column) = (outer(a.row(), b.row(), b.shape()[0])?, outer(a.column(), b.column(), b.shape()[1])?);
    let data = a.data().reshape((a.data().size(), 1))?.multiply(b.data().reshape((1, b.data().size()))?)?.ravel()?;
    CooArray::from_parts_unchecked(data, row, column, shape)
}

// Functions that read the arguments of `eval` by SciPy's names.

fn eye_from_args(args: &Args) -> Result<Value> {
    let rows = usize::from_args(args, "m")?;
    let columns = if args.get("n").is_some() { usize::from_args(args, "n")? } else { rows };
    let a = eye_array(rows, columns, args.int_or("k", 0)? as i64, args.dtype("dtype")?.unwrap_or(DType::F64))?;
    convert_to_requested_format(args, a.into())
}

fn diags_from_args(args: &Args) -> Result<Value> {
    let op = args.op();
    let Some(diagonals) = args.get("diagonals") else { return Err(Error::value(op, "argument 'diagonals' is missing")) };
    let offsets: Vec<i64> = args.ints("offsets")?.unwrap_or_else(|| vec![0]).into_iter().map(|k| k as i64).collect();
    let diagonals = match diagonals.items() {
        // The argument `diagonals` may be a single list of numbers.
        Some(items) if items.iter().all(|item| matches!(item, Value::Scalar(_))) && offsets.len() == 1 => vec![diagonals.array(op)?],
        Some(items) => items.iter().map(|item| item.array(op)?.reshape(-1)).collect::<Result<_>>()?,
        None => {
            let array = diagonals.array(op)?;
            // If the argument `diagonals` is a 2-D array, each row holds the elements of one diagonal.
            if array.ndim() == 2 { array.rows()?.collect() } else { vec![array] }
        }
    };
    // Without a dtype, SciPy converts integers and bools to float64.
    let common = || DType::promote_all(diagonals.iter().map(NdArray::dtype).collect::<Vec<_>>()).filter(|dtype| dtype.is_inexact());
    let dtype = args.dtype("dtype")?.or_else(common).unwrap_or(DType::F64);
    convert_to_requested_format(args, diags_array(&diagonals, &offsets, read_shape_argument(args)?, dtype)?.into())
}

fn read_sparse_arrays_argument(args: &Args) -> Result<Vec<SparseArray>> {
    let items = args.get("blocks").and_then(Value::items).unwrap_or_default();
    let read = |item: &Value| match sparse_from_value(item) {
        Some(a) => Ok(a.clone()),
        None => Ok(CooArray::from_dense(&item.array(args.op())?)?.into()),
    };
    items.iter().map(read).collect()
}

fn stack_from_args(args: &Args, stack: fn(&[SparseArray]) -> Result<SparseArray>) -> Result<Value> {
    let joined = stack(&read_sparse_arrays_argument(args)?)?;
    let joined = args.dtype("dtype")?.map_or(Ok(joined.clone()), |dtype| astype(&joined, dtype))?;
    convert_to_requested_format(args, joined)
}

fn kron_from_args(args: &Args) -> Result<Value> {
    convert_to_requested_format(args, kron(&SparseArray::from_args(args, "A")?, &SparseArray::from_args(args, "B")?)?.into())
}
