//! Array creation routines.

use std::sync::Arc;

use cuprum_core::function::{FromArgs, IntoValue, create_with_device_and_order};
use cuprum_core::layout::{MAX_NDIM, checked_size};
use cuprum_core::ops::linspace::linspace_of_arrays;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Device, Error, Item, NdArray, Operand, Result, add, axis, broadcast_to, concat, divide, equal, expand_dims, eye, flip,
    greater_equal, moveaxis, multiply, numpy, power, where_,
};

use crate::manipulation::broadcast_arrays;
use crate::operand_and_slice_helpers::{
    index_range_along, new_filled_array, operand_to_array, operand_to_inexact_array, result_dtype, slice_axis, with_at_least_ndim,
};

/// Converts a number or an array to an array, with a dtype if one is given (`numpy.asarray`).
///
/// An array that already has the dtype is returned unchanged. When `eval` calls this function by its name, nested lists of numbers are
/// accepted too.
///
/// # Errors
/// A number that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::asarray(3, DType::F32)?;
/// assert_eq!((a.dtype(), a.ndim()), (DType::F32, 0));
/// # Ok(())
/// # }
/// ```
#[numpy("asarray(a, dtype=None, order=None, *, device=None, copy=None)", aliases("asanyarray"), call = asarray_from_args)]
pub fn asarray(a: impl Into<Operand>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
    let dtype = dtype.into();
    match a.into() {
        Operand::Array(a) => dtype.map_or(Ok(a.clone()), |dtype| a.astype(dtype)),
        Operand::Scalar(s) => {
            let dtype = dtype.unwrap_or(s.default_dtype());
            NdArray::scalar_as(s.to_checked_element("asarray", dtype)?, dtype)
        }
    }
}

fn asarray_from_args(args: &Args) -> Result<Value> {
    let created = create_with_device_and_order(args, || argument_as_array(args, "a"))?;
    reject_copy_if_forbidden(args, "a", created)
}

/// Returns `created`. If the argument `copy` is `False`, `created` must share the memory of the argument `name`; otherwise returns an
/// error.
pub(crate) fn reject_copy_if_forbidden(args: &Args, name: &str, created: Value) -> Result<Value> {
    if args.is_none("copy") || args.bool_or("copy", true)? {
        return Ok(created);
    }
    match (args.get(name), &created) {
        (Some(Value::Array(a)), Value::Array(b)) if Arc::ptr_eq(a.stored()?.buffer(), b.stored()?.buffer()) => Ok(created),
        _ => Err(Error::value(args.op(), "Unable to avoid copy while creating an array as requested.")),
    }
}

/// Returns the argument `name` as an array, converted to the dtype that the argument `dtype` names, if that argument is given.
pub(crate) fn argument_as_array(args: &Args, name: &str) -> Result<NdArray> {
    match args.get(name) {
        Some(value) => value.array_as(args.op(), args.dtype("dtype")?),
        None => Err(Error::value(args.op(), "None is not an array")),
    }
}

fn array_from_args(args: &Args) -> Result<Value> {
    let ndmin = usize::try_from(args.int_or("ndmin", 0)?).map_err(|_| Error::value(args.op(), "ndmin must be >= 0"))?;
    let ndmax = args.get("ndmax").map(|ndmax| ndmax.int(args.op())).transpose()?;
    if let Some(ndmax) = ndmax {
        check_ndmax(args, ndmin, ndmax)?;
    }
    let created = create_with_device_and_order(args, || {
        let array = argument_as_array(args, "object")?;
        // As in NumPy, `ndmax` limits the dimensions of a sequence, but not those of an array.
        let is_limited = !matches!(args.get("object"), Some(Value::Array(_)));
        match ndmax {
            Some(ndmax) if is_limited && array.ndim() as i128 > ndmax => {
                Err(Error::shape(args.op(), format!("a sequence has more dimensions than ndmax = {ndmax}"), &[array.shape()]))
            }
            _ => array_(&array, None, ndmin),
        }
    })?;
    reject_copy_if_forbidden(args, "object", created)
}

/// Returns an error if the argument `ndmax` of `array` is out of range or below `ndmin`.
fn check_ndmax(args: &Args, ndmin: usize, ndmax: i128) -> Result<()> {
    if !(0..=MAX_NDIM as i128).contains(&ndmax) {
        return Err(Error::value(args.op(), format!("ndmax must be in the range [0, {MAX_NDIM}]")));
    }
    if ndmin as i128 > ndmax {
        return Err(Error::value(args.op(), format!("ndmin must be <= ndmax ({ndmax})")));
    }
    Ok(())
}

/// Converts a number or an array to an array of at least `ndmin` dimensions, with a dtype if one is given (`numpy.array`).
///
/// Leading axes of extent 1 are added. When `eval` calls this function by its name, nested lists of numbers are accepted too. The macro
/// [`array!`](macro@cuprum_core::array) is for literals in Rust.
///
/// # Errors
/// An integer that the dtype cannot hold, or too many dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, array};
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::array_(&array![1, 2, 3], DType::F32, 2)?;
/// assert_eq!((a.dtype(), a.shape()), (DType::F32, &[1, 3][..]));
/// # Ok(())
/// # }
/// ```
#[numpy("array(object, dtype=None, *, copy=True, order='K', ndmin=0, ndmax=0)", call = array_from_args)]
pub fn array_(object: impl Into<Operand>, dtype: impl Into<Option<DType>>, ndmin: usize) -> Result<NdArray> {
    if ndmin > MAX_NDIM {
        return Err(Error::value("array", format!("ndmin bigger than allowable number of dimensions ({MAX_NDIM})")));
    }
    with_at_least_ndim(&asarray(object, dtype)?, ndmin)
}

/// Copies the array to host memory (CuPy's `asnumpy`).
///
/// # Errors
/// The error of the evaluation or of the copy.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, asnumpy};
/// # fn main() -> cuprum::Result<()> {
/// let a = asnumpy(&array![1.0, 2.0])?;
/// assert_eq!(a.device(), cuprum::Device::CPU);
/// # Ok(())
/// # }
/// ```
#[numpy("asnumpy(a)")]
pub fn asnumpy(a: &NdArray) -> Result<NdArray> {
    a.to_device(Device::CPU)
}

/// Returns the square identity matrix (`numpy.identity`).
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, array, identity};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(identity(2, DType::F64)?, array![[1.0, 0.0], [0.0, 1.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "identity(n, dtype=None)",
    call = |args| identity(FromArgs::from_args(args, "n")?, dtype_argument_or_default(args, DType::F64)?).map(Value::Array)
)]
pub fn identity(n: usize, dtype: DType) -> Result<NdArray> {
    eye(n, n, 0, dtype)
}

/// Returns the argument `dtype`, or `default` if it is missing.
fn dtype_argument_or_default(args: &Args, default: DType) -> Result<DType> {
    Ok(args.dtype("dtype")?.unwrap_or(default))
}

/// Returns the deferred bool matrix that is true where column <= row + `k`.
pub(crate) fn lower_triangle_mask(device: Device, rows: usize, columns: usize, k: isize) -> Result<NdArray> {
    let k = k.clamp(-(rows as isize), columns as isize);
    greater_equal(add(index_range_along(device, rows, 0, 2)?, k as i64)?, index_range_along(device, columns, 1, 2)?)
}

fn tri_from_args(args: &Args) -> Result<Value> {
    let rows: isize = FromArgs::from_args(args, "N")?;
    let columns = args.int_or("M", rows)?;
    // As in NumPy, a negative extent counts as 0.
    tri(rows.max(0) as usize, columns.max(0) as usize, args.int_or("k", 0)?, dtype_argument_or_default(args, DType::F64)?).map(Value::Array)
}

/// Returns a `rows` x `columns` matrix with ones where column <= row + `k`, and zeros elsewhere (`numpy.tri`).
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::tri(2, 3, 0, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[numpy("tri(N, M=None, k=0, dtype=None)", call = tri_from_args)]
pub fn tri(rows: usize, columns: usize, k: isize, dtype: DType) -> Result<NdArray> {
    checked_size("tri", &[rows, columns])?;
    lower_triangle_mask(Device::current()?, rows, columns, k)?.astype(dtype)
}

/// Returns `m` with zeros above diagonal `k` of its last two axes if `lower`, and below that diagonal otherwise.
fn keep_triangle(op: &'static str, m: &NdArray, k: isize, lower: bool) -> Result<NdArray> {
    let (rows, columns) = match *m.shape() {
        [] => return Err(Error::shape(op, "needs an array of at least one dimension", &[m.shape()])),
        [n] => (n, n),
        [.., rows, columns] => (rows, columns),
    };
    // `false` is a weak scalar: it adopts the dtype of `m`.
    match lower {
        true => where_(lower_triangle_mask(m.device(), rows, columns, k)?, m, false),
        false => where_(lower_triangle_mask(m.device(), rows, columns, k.saturating_sub(1))?, false, m),
    }
}

/// Returns the array with zeros above diagonal `k` of the last two axes (`numpy.tril`).
///
/// A 1-D array is broadcast to the rows of a square matrix. The result is deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// A 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
/// assert_eq!(cuprum::tril(&a, 0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
/// assert_eq!(cuprum::triu(&a, 1)?.to_vec::<i32>()?, [0, 2, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[numpy("tril(m, k=0)")]
pub fn tril(m: &NdArray, k: isize) -> Result<NdArray> {
    keep_triangle("tril", m, k, true)
}

/// Returns the array with zeros below diagonal `k` of the last two axes (`numpy.triu`).
///
/// A 1-D array is broadcast to the rows of a square matrix. The result is deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// A 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, triu};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(triu(&array![[1, 2], [3, 4]], 0)?, array![[1, 2], [0, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("triu(m, k=0)")]
pub fn triu(m: &NdArray, k: isize) -> Result<NdArray> {
    keep_triangle("triu", m, k, false)
}

/// Returns diagonal `k` of a matrix as a view, or, for a 1-D array, the matrix with the array on diagonal `k` (`numpy.diag`).
///
/// Passes over memory for a 1-D array: one fill of the result, and a copy of the diagonal.
///
/// # Errors
/// An array that is neither 1-D nor 2-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::diag(&NdArray::from_slice(&[1, 2])?, 1)?;
/// assert_eq!(a.to_vec::<i32>()?, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
/// assert_eq!(cuprum::diag(&a, 1)?.to_vec::<i32>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("diag(v, k=0)")]
pub fn diag(v: &NdArray, k: isize) -> Result<NdArray> {
    match v.ndim() {
        1 => diagflat(v, k),
        2 => v.diagonal(k, 0, 1),
        _ => Err(Error::shape("diag", "Input must be 1- or 2-d.", &[v.shape()])),
    }
}

/// Returns a square matrix with the elements of `v` on diagonal `k`, and zeros elsewhere (`numpy.diagflat`).
///
/// Passes over memory: one fill of the result, and a copy of the diagonal.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, diagflat};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(diagflat(&array![1, 2], 0)?, array![[1, 0], [0, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("diagflat(v, k=0)")]
pub fn diagflat(v: &NdArray, k: isize) -> Result<NdArray> {
    let too_large = || Error::value("diagflat", format!("diagonal {k} of {} elements is too large", v.size()));
    let n = v.size().checked_add(k.unsigned_abs()).ok_or_else(too_large)?;
    let size = checked_size("diagflat", &[n, n])?;
    let first = if k >= 0 { k.unsigned_abs() } else { k.unsigned_abs() * n };
    let mut flat = new_filled_array(v, &[size], 0, v.dtype())?;
    // In a flattened matrix of n columns, the distance between neighbours on a diagonal is n + 1 elements.
    let diagonal = Item::slice(first as isize, (first + v.size() * (n + 1)).min(size) as isize, n as isize + 1);
    flat.assign(&[diagonal], &v.ravel()?)?;
    flat.reshape([n, n])
}

fn vander_from_args(args: &Args) -> Result<Value> {
    let columns: Option<usize> = FromArgs::from_args(args, "N")?;
    vander(&args.array("x")?, columns, args.bool_or("increasing", false)?).map(Value::Array)
}

/// Returns a Vandermonde matrix: column `i` holds `x**(columns - 1 - i)`, or `x**i` if `increasing` (`numpy.vander`).
///
/// By default, there are as many columns as `x` has elements. The dtype is that of `x` promoted with int64.
///
/// Passes over memory: two, a running product and a join with the column of ones.
///
/// # Errors
/// An array that is not 1-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let x = NdArray::from_slice(&[2i64, 3])?;
/// assert_eq!(cuprum::vander(&x, 3, false)?.to_vec::<i64>()?, [4, 2, 1, 9, 3, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("vander(x, N=None, increasing=False)", call = vander_from_args)]
pub fn vander(x: &NdArray, columns: impl Into<Option<usize>>, increasing: bool) -> Result<NdArray> {
    let [rows] = *x.shape() else { return Err(Error::shape("vander", "x must be a one-dimensional array or sequence.", &[x.shape()])) };
    let columns = columns.into().unwrap_or(rows);
    let dtype = x.dtype().promote(DType::I64);
    checked_size("vander", &[rows, columns])?;
    let ones = new_filled_array(x, &[rows, columns.min(1)], 1, dtype)?;
    let powers = match columns {
        0 | 1 => ones,
        _ => {
            let repeated = broadcast_to(&x.astype(dtype)?.reshape([-1, 1])?, [rows, columns - 1])?;
            concat(&[ones, repeated.cumprod(axis(1).dtype(dtype))?], 1)?
        }
    };
    if increasing { Ok(powers) } else { flip(&powers, 1) }
}

/// The spacing of samples: their number, whether the end is included, the dtype and the axis of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Samples {
    /// Number of samples; 50 by default.
    pub num: usize,
    /// Whether `stop` is the last sample; true by default.
    pub endpoint: bool,
    /// Dtype of the result. The default is the dtype in which the samples are computed.
    pub dtype: Option<DType>,
    /// Axis of the samples in the result; 0 by default.
    pub axis: isize,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples { num: 50, endpoint: true, dtype: None, axis: 0 }
    }
}

impl From<usize> for Samples {
    fn from(num: usize) -> Samples {
        Samples { num, ..Samples::default() }
    }
}

impl FromArgs for Samples {
    /// Reads the arguments `num`, `endpoint`, `dtype` and `axis`.
    fn from_args(args: &Args, _name: &str) -> Result<Samples> {
        let num = args.int_or("num", 50)?;
        let num = usize::try_from(num).map_err(|_| Error::value(args.op(), format!("Number of samples, {num}, must be non-negative.")))?;
        Ok(Samples { num, endpoint: args.bool_or("endpoint", true)?, dtype: args.dtype("dtype")?, axis: args.int_or("axis", 0)? })
    }
}

/// Returns the device of the first array, or the current device if all operands are numbers.
fn device_of_operands(operands: &[&Operand]) -> Result<Device> {
    let arrays = operands.iter().find_map(|operand| if let Operand::Array(a) = operand { Some(a.device()) } else { None });
    arrays.map_or_else(Device::current, Ok)
}

/// Returns samples that are evenly spaced on a logarithmic scale: powers of `base` with evenly spaced exponents (`numpy.logspace`).
///
/// `start` and `stop` are exponents: numbers, or arrays that broadcast. The samples are along `samples.axis`.
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// Shapes that do not broadcast, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::logspace(0, 3, 4, 10)?.to_vec::<f64>()?, [1.0, 10.0, 100.0, 1000.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0)")]
pub fn logspace(
    start: impl Into<Operand>,
    stop: impl Into<Operand>,
    #[name("num")] samples: impl Into<Samples>,
    base: impl Into<Operand>,
) -> Result<NdArray> {
    let name = "logspace";
    let (mut start, mut stop, spacing, mut base) = (start.into(), stop.into(), samples.into(), base.into());
    let device = device_of_operands(&[&start, &stop, &base])?;
    if let Operand::Array(array) = &base
        && array.ndim() > 0
    {
        let mut ends = [operand_to_array(name, device, &start)?, operand_to_array(name, device, &stop)?, array.clone()];
        let ndim = ends.iter().map(NdArray::ndim).max().unwrap_or(0);
        for end in &mut ends {
            *end = with_at_least_ndim(end, ndim)?;
        }
        let [first, last, array] = ends;
        (start, stop, base) = (first.into(), last.into(), expand_dims(&array, [spacing.axis])?.into());
    }
    let dtype = result_dtype(&[start.clone(), stop.clone(), Operand::from(0.0)]);
    let (start, stop) = (operand_to_inexact_array(device, &start, dtype)?, operand_to_inexact_array(device, &stop, dtype)?);
    let exponents = linspace_of_arrays(&start, &stop, spacing.num, spacing.endpoint)?;
    let values = power(base, moveaxis(&exponents, [0], [spacing.axis])?)?;
    spacing.dtype.map_or(Ok(values.clone()), |dtype| values.astype(dtype))
}

/// Returns samples that are evenly spaced on a logarithmic scale, a geometric progression (`numpy.geomspace`).
///
/// `start` and `stop` are the ends: numbers, or arrays that broadcast. If both ends are negative, so are the samples. Complex ends give a
/// progression through the complex plane. The default dtype is float64, or complex128 for complex ends.
///
/// Passes over memory: one, which writes the result. The call waits for the device, which compares the ends with 0.
///
/// # Errors
/// An end that is 0, shapes that do not broadcast, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, geomspace};
/// # fn main() -> cuprum::Result<()> {
/// let a = geomspace(1.0, 1000.0, 4)?;
/// assert!((a - array![1.0, 10.0, 100.0, 1000.0]).abs()?.max(())?.item()? < 1e-9);
/// # Ok(())
/// # }
/// ```
#[numpy("geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0)")]
pub fn geomspace(start: impl Into<Operand>, stop: impl Into<Operand>, #[name("num")] samples: impl Into<Samples>) -> Result<NdArray> {
    let (start, stop, spacing) = (start.into(), stop.into(), samples.into());
    let device = device_of_operands(&[&start, &stop])?;
    let (start, stop) = (operand_to_array("geomspace", device, &start)?, operand_to_array("geomspace", device, &stop)?);
    for end in [&start, &stop] {
        if equal(end, 0)?.any(())?.item()?.as_bool() {
            return Err(Error::value("geomspace", "Geometric sequence cannot include zero"));
        }
    }
    let ends = [Operand::from(&start), Operand::from(&stop), Operand::from(0.0)];
    let dtype = result_dtype(&ends).promote(spacing.dtype.unwrap_or(DType::F64));
    let (start, stop) = (start.astype(dtype)?, stop.astype(dtype)?);
    let sign = start.sign()?;
    let (first, last) = (divide(&start, &sign)?, divide(&stop, &sign)?);
    let values = power(10.0, linspace_of_arrays(&first.log10()?, &last.log10()?, spacing.num, spacing.endpoint)?)?.astype(dtype)?;
    // The first and last sample are replaced by the exact ends, because computing them by logarithm and power rounds.
    let number = index_range_along(device, spacing.num, 0, values.ndim())?;
    let mut exact = where_(equal(&number, 0)?, &first, &values)?;
    if spacing.num > 1 && spacing.endpoint {
        exact = where_(equal(&number, spacing.num - 1)?, &last, &exact)?;
    }
    let values = moveaxis(&multiply(exact, &sign)?, [0], [spacing.axis])?;
    values.astype(spacing.dtype.unwrap_or(dtype))
}

/// The order of the axes of a grid (`indexing=` of `numpy.meshgrid`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Cartesian: the first array varies along the second axis.
    #[default]
    Xy,
    /// Matrix: array `i` varies along axis `i`.
    Ij,
}

fn meshgrid_from_args(args: &Args) -> Result<Value> {
    let indexing = match args.value("indexing") {
        Some(Value::Str(text)) if text == "xy" => Indexing::Xy,
        Some(Value::Str(text)) if text == "ij" => Indexing::Ij,
        _ => return Err(Error::value("meshgrid", "Valid values for `indexing` are 'xy' and 'ij'.")),
    };
    let axes = args.rest().iter().map(|axis| axis.array(args.op())).collect::<Result<Vec<_>>>()?;
    meshgrid(&axes, indexing, args.bool_or("sparse", false)?).map(IntoValue::into_value)
}

/// Returns the coordinates of a grid with the given 1-D arrays as axes (`numpy.meshgrid`), as views.
///
/// With `sparse`, each result has extent 1 along all other axes. Without `sparse`, the results are broadcast to the shape of the grid.
///
/// Passes over memory: none.
///
/// # Errors
/// Too many arrays, or a grid whose size overflows.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Indexing, NdArray, meshgrid};
/// # fn main() -> cuprum::Result<()> {
/// let (x, y) = (NdArray::from_slice(&[1, 2, 3])?, NdArray::from_slice(&[4, 5])?);
/// let grid = meshgrid([&x, &y], Indexing::Xy, false)?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 2, 3, 1, 2, 3]);
/// assert_eq!(grid[1].to_vec::<i32>()?, [4, 4, 4, 5, 5, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("meshgrid(*xi, copy=True, sparse=False, indexing='xy')", call = meshgrid_from_args)]
pub fn meshgrid(xi: impl IntoIterator<Item: AsRef<NdArray>>, indexing: Indexing, sparse: bool) -> Result<Vec<NdArray>> {
    let arrays: Vec<NdArray> = xi.into_iter().map(|x| x.as_ref().clone()).collect();
    let along = |(n, x): (usize, &NdArray)| {
        let axis = match (indexing, n) {
            (Indexing::Xy, 0 | 1) if arrays.len() > 1 => 1 - n,
            _ => n,
        };
        let mut shape = vec![1isize; arrays.len()];
        shape[axis] = -1;
        x.reshape(shape)
    };
    let axes = arrays.iter().enumerate().map(along).collect::<Result<Vec<_>>>()?;
    if sparse { Ok(axes) } else { broadcast_arrays(&axes) }
}

fn asarray_chkfinite_from_args(args: &Args) -> Result<Value> {
    create_with_device_and_order(args, || asarray_chkfinite(&argument_as_array(args, "a")?))
}

/// Returns the array if all its elements are finite (`numpy.asarray_chkfinite`). The call waits for the device.
///
/// # Errors
/// An infinity or NaN.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert!(cuprum::asarray_chkfinite(&NdArray::from_slice(&[1.0, f64::NAN])?).is_err());
/// # Ok(())
/// # }
/// ```
#[numpy("asarray_chkfinite(a, dtype=None, order=None)", call = asarray_chkfinite_from_args)]
pub fn asarray_chkfinite(a: &NdArray) -> Result<NdArray> {
    if a.dtype().is_inexact() && !cuprum_core::isfinite(a)?.all(())?.item()?.as_bool() {
        return Err(Error::value("asarray_chkfinite", "array must not contain infs or NaNs"));
    }
    Ok(a.clone())
}

/// Returns the array in Fortran order without gaps (`numpy.asfortranarray`): the same array if it has this layout, else a copy. A
/// 0-d array becomes 1-D.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, ones};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::asfortranarray(&ones([2, 3], DType::F64)?)?.strides()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("asfortranarray(a, dtype=None)", call = |args| asfortranarray(&argument_as_array(args, "a")?).map(Value::Array))]
pub fn asfortranarray(a: &NdArray) -> Result<NdArray> {
    if a.ndim() == 0 { a.reshape(1) } else { a.t()?.contiguous()?.t() }
}

/// Returns whether the array is in Fortran order and not in C order (`numpy.isfortran`).
///
/// # Errors
/// Errors of evaluation.
#[numpy("isfortran(a)")]
pub fn isfortran(a: &NdArray) -> Result<bool> {
    let stored = a.stored()?;
    Ok(stored.layout().is_f_contiguous() && !stored.layout().is_c_contiguous())
}

/// Calls [`fromiter`] with Python-like arguments. The numbers of a list must fit `dtype`.
fn fromiter_from_args(args: &Args) -> Result<Value> {
    let dtype = DType::from_args(args, "dtype")?;
    let sequence = match args.get("iter") {
        Some(sequence) => sequence.array_as(args.op(), Some(dtype))?,
        None => args.array("iter")?,
    };
    fromiter(&sequence, dtype, args.int_or("count", -1)?).map(Value::Array)
}

/// Returns the first `count` elements of a 1-D sequence as an array of `dtype` (`numpy.fromiter`). A negative `count` takes all elements.
///
/// # Errors
/// A sequence that is not 1-D or has fewer elements than `count`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::fromiter(&NdArray::from_slice(&[1, 2, 3])?, DType::F64, 2)?;
/// assert_eq!(a.to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("fromiter(iter, dtype, count=-1)", call = fromiter_from_args)]
pub fn fromiter(sequence: &NdArray, dtype: DType, count: isize) -> Result<NdArray> {
    let name = "fromiter";
    if sequence.ndim() != 1 {
        return Err(Error::shape(name, "takes a sequence of numbers", &[sequence.shape()]));
    }
    let all = sequence.astype(dtype)?;
    match usize::try_from(count) {
        Err(_) => Ok(all),
        Ok(count) if count <= all.size() => slice_axis(&all, 0, None, count as isize, 1),
        Ok(count) => Err(Error::value(name, format!("iterator too short: expected {count} but iterator had only {} items", all.size()))),
    }
}
