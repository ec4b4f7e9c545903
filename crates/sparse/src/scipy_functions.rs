//! Functions under SciPy's names: constructors, triangles, norms and triangular solves.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::layout::normalize_axes;
use cuprum_core::ops::linalg::Triangle;
use cuprum_core::{Args, Array, DType, Error, NdArray, Result, Value, numpy};

use crate::eval_arguments::{
    call_with_named_errors, convert_to_requested_format, read_block_argument, read_shape_argument, require_two_extents,
};
use crate::eval_value::sparse_from_value;
use crate::index_and_value_arrays::narrowest_index_dtype;
use crate::reductions::{self, NormOrder};
use crate::{
    BsrArray, CooArray, CscArray, CsrArray, DiaArray, Format, SparseArray, format_conversion, products_and_triangular_solve, slicing,
};

/// The first argument of a constructor such as `csr_array`.
enum ConstructorArgument {
    Sparse(SparseArray),
    Dense(NdArray),
    Shape([usize; 2]),
    /// `(data, (row, column))`
    Coordinates([NdArray; 3]),
    /// `(data, indices, indptr)`
    CompressedMatrix([NdArray; 3]),
    /// `(data, offsets)`
    Diagonals([NdArray; 2]),
}

impl ConstructorArgument {
    fn from_constructor_args(args: &Args) -> Result<ConstructorArgument> {
        let op = args.op();
        let Some(value) = args.get("arg1") else { return Err(Error::value(op, "argument 'arg1' is missing")) };
        if let Some(a) = sparse_from_value(value) {
            return Ok(ConstructorArgument::Sparse(a.clone()));
        }
        let indices = |value: &Value| {
            let a = value.array(op)?;
            if a.size() == 0 { a.astype(DType::I64) } else { Ok(a) }
        };
        Ok(match value {
            Value::Tuple(items) => match &items[..] {
                [Value::Scalar(_), Value::Scalar(_)] => ConstructorArgument::Shape(require_two_extents(op, &args.shape("arg1")?)?),
                [data, pair] if pair.items().is_some_and(|pair| pair.len() == 2) && op != "dia_array" => {
                    let pair = pair.items().unwrap_or_default();
                    ConstructorArgument::Coordinates([data.array(op)?, indices(&pair[0])?, indices(&pair[1])?])
                }
                [data, offsets] => ConstructorArgument::Diagonals([data.array(op)?, indices(offsets)?.reshape(-1)?]),
                [data, first, second] => ConstructorArgument::CompressedMatrix([data.array(op)?, indices(first)?, indices(second)?]),
                _ => return Err(Error::value(op, "arg1 must be an array, a shape, or a tuple of components")),
            },
            value => ConstructorArgument::Dense(value.array(op)?),
        })
    }
}

/// Returns the smallest extent of an axis that contains all `indices`: the largest index plus 1.
fn smallest_extent_for(op: &'static str, indices: &NdArray) -> Result<usize> {
    if indices.size() == 0 {
        return Ok(0);
    }
    let largest = indices.max(())?.item()?.as_int().unwrap_or(-1);
    usize::try_from(largest + 1).map_err(|_| Error::value(op, format!("index {largest} is negative or too large")))
}

/// Creates an array from the arguments of a SciPy constructor such as `csr_array`. Indices become int32 if they fit, as in SciPy.
fn construct_from_args(args: &Args, format: Format) -> Result<Value> {
    let op = args.op();
    let (shape, dtype) = (read_shape_argument(args)?, args.dtype("dtype")?);
    let narrow = |a: &NdArray| {
        let fits = a.dtype().is_int() && narrowest_index_dtype(a)? == DType::I32;
        if fits { a.astype(DType::I32) } else { Ok(a.clone()) }
    };
    let block = read_block_argument(args)?;
    let to_format = |a: &SparseArray| match block {
        Some(block) => Ok(format_conversion::to_bsr(a, Some(block))?.into()),
        None => format_conversion::to_format(a, format),
    };
    let made: SparseArray = match ConstructorArgument::from_constructor_args(args)? {
        ConstructorArgument::Sparse(a) => to_format(&a)?,
        ConstructorArgument::Dense(a) => to_format(&CooArray::from_dense(&a)?.into())?,
        ConstructorArgument::Shape(shape) => to_format(&CsrArray::zeros(shape, dtype.unwrap_or(DType::F64))?.into())?,
        ConstructorArgument::Coordinates([data, row, column]) => {
            let shape = match shape {
                Some(shape) => shape,
                None => [smallest_extent_for(op, &row)?, smallest_extent_for(op, &column)?],
            };
            to_format(&CooArray::new(&data, &narrow(&row)?, &narrow(&column)?, shape)?.into())?
        }
        ConstructorArgument::CompressedMatrix([data, indices, indptr]) => {
            let (indices, indptr) = (narrow(&indices)?, narrow(&indptr)?);
            let data_block = if format == Format::Bsr { data.shape().get(1..3).unwrap_or(&[1, 1]).to_vec() } else { vec![1, 1] };
            if let Some(block) = block
                && data_block != block
            {
                return Err(Error::shape(op, "blocksize differs from the shape of the blocks of data", &[&block, &data_block]));
            }
            let lines = indptr.size().saturating_sub(1);
            let inferred =
                |along: usize, across: usize| Ok([lines.saturating_mul(along), smallest_extent_for(op, &indices)?.saturating_mul(across)]);
            let shape = |swap: bool| match shape {
                Some(shape) => Ok(shape),
                None if swap => inferred(1, 1).map(|[lines, others]| [others, lines]),
                None => inferred(data_block[0], data_block[1]),
            };
            match format {
                Format::Csr => CsrArray::new(&data, &indices, &indptr, shape(false)?)?.into(),
                Format::Csc => CscArray::new(&data, &indices, &indptr, shape(true)?)?.into(),
                Format::Bsr => BsrArray::new(&data, &indices, &indptr, shape(false)?)?.into(),
                _ => return Err(Error::value(op, "three components are those of csr_array, csc_array and bsr_array")),
            }
        }
        ConstructorArgument::Diagonals([data, offsets]) if format == Format::Dia => {
            let shape = shape.ok_or_else(|| Error::value(op, "diagonals need a shape"))?;
            let data = if data.ndim() < 2 { data.reshape((1, -1))? } else { data };
            let offsets = if offsets.dtype().is_int() { offsets } else { offsets.astype(DType::I64)? };
            DiaArray::new(&data, &narrow(&offsets)?, shape)?.into()
        }
        ConstructorArgument::Diagonals(_) => return Err(Error::value(op, "expected (data, (row, column)) or (data, indices, indptr)")),
    };
    match shape {
        Some(shape) if shape != made.extents() => {
            Err(Error::shape(op, "the array has another shape than 'shape'", &[made.shape(), &shape]))
        }
        _ => Ok(dtype.map_or(Ok(made.clone()), |dtype| format_conversion::astype(&made, dtype))?.into_value()),
    }
}

/// Returns the nonzero elements of a dense array of at most two axes in CSR format (`scipy.sparse.csr_array`).
///
/// In `eval`, the argument may also be a sparse array, a shape, or a tuple of components, as in SciPy.
///
/// # Errors
/// An array of more than two axes, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, csr_array};
/// assert_eq!(csr_array(&array![[0.0, 2.0]])?.to_dense()?, array![[0.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.csr_array(arg1, shape=None, dtype=None, copy=False)", call = |args: &Args| call_with_named_errors(args, |args| construct_from_args(args, Format::Csr)))]
pub fn csr_array(a: &NdArray) -> Result<CsrArray> {
    format_conversion::to_csr(&CooArray::from_dense(a)?.into())
}

/// Returns the nonzero elements of a dense array of at most two axes in CSC format (`scipy.sparse.csc_array`).
///
/// In `eval`, the argument may also be a sparse array, a shape, or a tuple of components, as in SciPy.
///
/// # Errors
/// An array of more than two axes, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, csc_array};
/// assert_eq!(csc_array(&array![[0.0, 2.0]])?.to_dense()?, array![[0.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.csc_array(arg1, shape=None, dtype=None, copy=False)", call = |args: &Args| call_with_named_errors(args, |args| construct_from_args(args, Format::Csc)))]
pub fn csc_array(a: &NdArray) -> Result<CscArray> {
    format_conversion::to_csc(&CooArray::from_dense(a)?.into())
}

/// Returns the nonzero elements of a dense array of at most two axes in COO format (`scipy.sparse.coo_array`).
///
/// In `eval`, the argument may also be a sparse array, a shape, or a tuple of components, as in SciPy.
///
/// # Errors
/// An array of more than two axes, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, coo_array};
/// assert_eq!(coo_array(&array![[0.0, 2.0]])?.to_dense()?, array![[0.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.coo_array(arg1, shape=None, dtype=None, copy=False)", call = |args: &Args| call_with_named_errors(args, |args| construct_from_args(args, Format::Coo)))]
pub fn coo_array(a: &NdArray) -> Result<CooArray> {
    CooArray::from_dense(a)
}

/// Returns the nonzero elements of a dense array of at most two axes in BSR format (`scipy.sparse.bsr_array`). Blocks are single elements.
/// [`Sparse::to_bsr`](crate::Sparse::to_bsr) makes larger blocks.
///
/// In `eval`, the argument may also be a sparse array, a shape, or a tuple of components, as in SciPy. `blocksize` is the shape of the
/// blocks.
///
/// # Errors
/// An array of more than two axes, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, bsr_array};
/// assert_eq!(bsr_array(&array![[0.0, 2.0]])?.to_dense()?, array![[0.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.bsr_array(arg1, shape=None, dtype=None, copy=False, blocksize=None)", call = |args: &Args| call_with_named_errors(args, |args| construct_from_args(args, Format::Bsr)))]
pub fn bsr_array(a: &NdArray) -> Result<BsrArray> {
    format_conversion::to_bsr(&CooArray::from_dense(a)?.into(), None)
}

/// Returns the nonzero elements of a dense array of at most two axes in DIA format (`scipy.sparse.dia_array`).
///
/// In `eval`, the argument may also be a sparse array, a shape, or a tuple of components, as in SciPy.
///
/// # Errors
/// An array of more than two axes, float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, dia_array};
/// assert_eq!(dia_array(&array![[0.0, 2.0]])?.to_dense()?, array![[0.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.dia_array(arg1, shape=None, dtype=None, copy=False)", call = |args: &Args| call_with_named_errors(args, |args| construct_from_args(args, Format::Dia)))]
pub fn dia_array(a: &NdArray) -> Result<DiaArray> {
    format_conversion::to_dia(&CooArray::from_dense(a)?.into())
}

/// Returns whether a value of `eval` is a sparse array (`scipy.sparse.issparse`).
///
/// # Errors
/// None.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// assert!(!cuprum::sparse::issparse(&cuprum::Value::None)?);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.issparse(x)", call = |args: &Args| call_with_named_errors(args, |args| Ok(args.value("x").is_some_and(|x| sparse_from_value(x).is_some()).into())))]
pub fn issparse(x: &Value) -> Result<bool> {
    Ok(sparse_from_value(x).is_some())
}

/// Returns the elements on and below diagonal `k` (`scipy.sparse.tril`), in CSR format.
///
/// # Errors
/// Errors of the device, such as too little memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, csr_array, tril};
/// let a = csr_array(&array![[1.0, 2.0], [3.0, 4.0]])?.into();
/// assert_eq!(tril(&a, 0)?.to_dense()?, array![[1.0, 0.0], [3.0, 4.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.tril(A, k=0, format=None)", call = |args: &Args| call_with_named_errors(args, |args| triangle_from_args(args, true)))]
pub fn tril(a: &SparseArray, k: i64) -> Result<SparseArray> {
    slicing::extract_triangle(a, k, true)
}

/// Returns the elements on and above diagonal `k` (`scipy.sparse.triu`), in CSR format.
///
/// # Errors
/// Errors of the device, such as too little memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, csr_array, triu};
/// let a = csr_array(&array![[1.0, 2.0], [3.0, 4.0]])?.into();
/// assert_eq!(triu(&a, 1)?.to_dense()?, array![[0.0, 2.0], [0.0, 0.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.triu(A, k=0, format=None)", call = |args: &Args| call_with_named_errors(args, |args| triangle_from_args(args, false)))]
pub fn triu(a: &SparseArray, k: i64) -> Result<SparseArray> {
    slicing::extract_triangle(a, k, false)
}

fn triangle_from_args(args: &Args, is_lower: bool) -> Result<Value> {
    let k = args.int_or("k", 0)? as i64;
    convert_to_requested_format(args, slicing::extract_triangle(&SparseArray::from_args(args, "A")?, k, is_lower)?)
}

/// Returns a norm of a sparse array, or of each row or column (`scipy.sparse.linalg.norm`).
///
/// # Errors
/// An axis out of bounds.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{NormOrder, csr_array, linalg};
/// let a = csr_array(&array![[3.0, 4.0]])?.into();
/// assert_eq!(linalg::norm(&a, NormOrder::Frobenius, None)?.item()?, 5.0);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.norm(x, ord=None, axis=None)", call = |args: &Args| call_with_named_errors(args, norm_from_args))]
pub fn norm(a: &SparseArray, order: NormOrder, axis: Option<isize>) -> Result<NdArray> {
    reductions::norm(a, order, axis)
}

/// Returns the solution `x` of `a @ x = b` for a triangular array (`scipy.sparse.linalg.spsolve_triangular`). See
/// [`Sparse::solve_triangular`](crate::Sparse::solve_triangular).
///
/// # Errors
/// The errors of [`Sparse::solve_triangular`](crate::Sparse::solve_triangular).
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::ops::linalg::Triangle;
/// use cuprum::sparse::{csr_array, linalg};
/// let a = csr_array(&array![[2.0, 0.0], [1.0, 1.0]])?.into();
/// assert_eq!(linalg::spsolve_triangular(&a, &array![2.0, 3.0], Triangle::Lower, false)?, array![1.0, 2.0]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.spsolve_triangular(A, b, lower=True, overwrite_A=False, overwrite_b=False, unit_diagonal=False)", call = |args: &Args| call_with_named_errors(args, spsolve_triangular_from_args))]
pub fn spsolve_triangular(a: &SparseArray, b: &NdArray, triangle: Triangle, unit_diagonal: bool) -> Result<NdArray> {
    products_and_triangular_solve::solve_triangular(a, b, triangle, unit_diagonal)
}

fn norm_from_args(args: &Args) -> Result<Value> {
    let mut a = SparseArray::from_args(args, "x")?;
    let axis = match args.ints("axis")?.as_deref() {
        None => None,
        Some(&[axis]) => Some(axis),
        Some(axes) => {
            match normalize_axes(args.op(), axes, 2)?[..] {
                [0, 1] => {}
                [1, 0] => a = format_conversion::transpose(&a)?,
                _ => return Err(Error::value(args.op(), "axis must be None, an axis or two axes")),
            }
            None
        }
    };
    let order = match args.get("ord") {
        None => NormOrder::Frobenius,
        Some(Value::Str(name)) if name == "fro" || name == "f" => match axis {
            None => NormOrder::Frobenius,
            Some(_) => return Err(Error::value(args.op(), "Invalid norm order for vectors.")),
        },
        Some(_) => match args.scalar("ord")?.as_f64() {
            1.0 => NormOrder::One,
            -1.0 => NormOrder::MinusOne,
            f64::INFINITY => NormOrder::Infinity,
            f64::NEG_INFINITY => NormOrder::MinusInfinity,
            2.0 if axis.is_some() => NormOrder::Frobenius,
            _ => return Err(Error::value(args.op(), "ord must be None, 'fro', 1, -1, inf or -inf")),
        },
    };
    Ok(reductions::norm(&a, order, axis)?.into())
}

fn spsolve_triangular_from_args(args: &Args) -> Result<Value> {
    let triangle = if args.bool_or("lower", true)? { Triangle::Lower } else { Triangle::Upper };
    let a = SparseArray::from_args(args, "A")?;
    Ok(products_and_triangular_solve::solve_triangular(&a, &args.array("b")?, triangle, args.bool_or("unit_diagonal", false)?)?.into())
}
