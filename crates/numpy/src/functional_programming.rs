//! Functional programming: functions that take closures.

use cuprum_core::function::{FromArgs, Function, IntoValue};
use cuprum_core::host_buffer::{try_collect, try_reserve};
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{Axes, DType, Error, IntoShape, Item, NdArray, Result, numpy, stack};

use crate::indexing::indices;

/// Returns the function that the argument `name` names, such as `linalg.norm`.
fn function_named_by_argument(args: &Args, name: &str) -> Result<&'static Function> {
    let path = args.str(name)?;
    Function::find(path).ok_or_else(|| Error::value(args.op(), format!("there is no function '{path}'")))
}

fn apply_along_axis_from_args(args: &Args) -> Result<Value> {
    let (function, op) = (function_named_by_argument(args, "func1d")?, args.op());
    let apply = |slice: &NdArray| {
        let arguments = std::iter::once(Value::from(slice)).chain(args.rest().iter().cloned()).collect();
        function.call(arguments, Vec::new())?.array(op)
    };
    apply_along_axis(apply, args.int_or("axis", 0)?, &args.array("arr")?).map(Value::Array)
}

fn apply_over_axes_from_args(args: &Args) -> Result<Value> {
    let (function, op) = (function_named_by_argument(args, "func")?, args.op());
    let apply = |a: &NdArray, axis: isize| function.call(vec![a.into(), (axis as i64).into()], Vec::new())?.array(op);
    apply_over_axes(apply, &args.array("a")?, Axes::from_args(args, "axes")?).map(Value::Array)
}

fn fromfunction_from_args(args: &Args) -> Result<Value> {
    let (function, op) = (function_named_by_argument(args, "function")?, args.op());
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    let apply = |indices: &[NdArray]| function.call(indices.iter().map(Value::from).collect(), Vec::new())?.array(op);
    fromfunction(apply, args.shape("shape")?, dtype).map(Value::Array)
}

fn mask_indices_from_args(args: &Args) -> Result<Value> {
    let (function, op) = (function_named_by_argument(args, "mask_func")?, args.op());
    let n: usize = FromArgs::from_args(args, "n")?;
    let k = args.value("k").cloned().unwrap_or(0.into());
    mask_indices(n, |a| function.call(vec![a.into(), k.clone()], Vec::new())?.array(op)).map(IntoValue::into_value)
}

/// Applies a function to each 1-D slice along an axis (`numpy.apply_along_axis`). The axes of the results of `f` replace `axis`.
///
/// `f` is called once for each slice, with a view. A function that takes an axis itself, such as [`NdArray::sum`], is faster.
///
/// # Errors
/// No slices, an axis out of bounds, results of different shapes, and errors of `f`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1, 2, 3, 4, 5, 6], [2, 3])?;
/// let reversed = cuprum::apply_along_axis(|row| row.flip(0), 1, &a)?;
/// assert_eq!(reversed.to_vec::<i32>()?, [3, 2, 1, 6, 5, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("apply_along_axis(func1d, axis, arr, *args)", differs = "names of functions in `eval`", call = apply_along_axis_from_args)]
pub fn apply_along_axis(mut f: impl FnMut(&NdArray) -> Result<NdArray>, axis: isize, a: &NdArray) -> Result<NdArray> {
    let name = "apply_along_axis";
    let axis = normalize_axis(name, axis, a.ndim())?;
    let rows = a.moveaxis(axis as isize, -1)?;
    let outer = rows.shape()[..rows.ndim() - 1].to_vec();
    let count: usize = outer.iter().product();
    if count == 0 {
        return Err(Error::shape(name, "cannot apply a function along an axis when other axes are empty", &[a.shape()]));
    }
    let mut results = Vec::new();
    try_reserve(name, &mut results, count)?;
    for n in 0..count {
        let mut rest = n;
        let mut at = vec![Item::At(0); outer.len()];
        for (item, &extent) in at.iter_mut().zip(&outer).rev() {
            *item = Item::At((rest % extent) as isize);
            rest /= extent;
        }
        results.push(f(&rows.index(&at)?)?);
    }
    let inner = results[0].ndim() as isize;
    let shape: Vec<isize> = outer.iter().chain(results[0].shape()).map(|&n| n as isize).collect();
    let joined = stack(&results, 0)?.reshape(shape)?;
    let first = outer.len() as isize;
    joined.moveaxis(first..first + inner, axis as isize..axis as isize + inner)
}

/// Applies a function with an axis argument over several axes in turn (`numpy.apply_over_axes`). If a result of `f` has one axis
/// less than its argument, the reduced axis is inserted again with extent 1.
///
/// # Errors
/// An axis out of bounds, a result with more axes than `a` or with more than one axis less, and errors of `f`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, NdArray, ones};
/// # fn main() -> cuprum::Result<()> {
/// let a = ones([2, 3, 4], DType::F64)?;
/// let sums = cuprum::apply_over_axes(|a, axis| a.sum(axis), &a, [0, 2])?;
/// assert_eq!((sums.shape(), sums.to_vec::<f64>()?), (&[1, 3, 1][..], vec![8.0; 3]));
/// # Ok(())
/// # }
/// ```
#[numpy("apply_over_axes(func, a, axes)", differs = "names of functions in `eval`", call = apply_over_axes_from_args)]
pub fn apply_over_axes(mut f: impl FnMut(&NdArray, isize) -> Result<NdArray>, a: &NdArray, axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "apply_over_axes";
    let (mut value, axes) = (a.clone(), axes.into());
    // As in NumPy, the argument `axes` may contain an axis several times.
    let axes: Vec<usize> = match axes.as_slice() {
        None => (0..a.ndim()).collect(),
        Some(axes) => axes.iter().map(|&axis| normalize_axis(name, axis, a.ndim())).collect::<Result<_>>()?,
    };
    for axis in axes {
        let result = f(&value, axis as isize)?;
        value = match value.ndim() {
            ndim if ndim == result.ndim() => result,
            ndim if ndim == result.ndim() + 1 => result.expand_dims(axis as isize)?,
            _ => return Err(Error::shape(name, "the function returned an array of another number of axes", &[result.shape()])),
        };
    }
    Ok(value)
}

/// Calls a function once, with one array of indices for each axis (`numpy.fromfunction`). These arrays have `dtype` and the given shape.
///
/// # Errors
/// A shape whose size overflows, and errors of `f`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, add};
/// # fn main() -> cuprum::Result<()> {
/// let sums = cuprum::fromfunction(|i| add(&i[0], &i[1]), [2, 2], DType::I64)?;
/// assert_eq!(sums.to_vec::<i64>()?, [0, 1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("fromfunction(function, shape, *, dtype=None)", differs = "names of functions in `eval`", call = fromfunction_from_args)]
pub fn fromfunction(f: impl FnOnce(&[NdArray]) -> Result<NdArray>, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    let shape = shape.into_shape();
    let all = indices(shape.clone(), dtype)?;
    let each = (0..shape.len()).map(|axis| all.index(axis)).collect::<Result<Vec<_>>>()?;
    f(&each)
}

/// Returns the indices of the elements of an `n` by `n` matrix that `mask`, a function such as [`triu`](crate::triu), does not set
/// to zero (`numpy.mask_indices`).
///
/// # Errors
/// Errors of `mask`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{mask_indices, triu};
/// # fn main() -> cuprum::Result<()> {
/// let indices = mask_indices(2, |a| triu(a, 0))?;
/// assert_eq!(indices[1].to_vec::<i64>()?, [0, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("mask_indices(n, mask_func, k=0)", differs = "names of functions in `eval`", call = mask_indices_from_args)]
pub fn mask_indices(n: usize, mask: impl FnOnce(&NdArray) -> Result<NdArray>) -> Result<Vec<NdArray>> {
    mask(&cuprum_core::ones([n, n], DType::I64)?)?.nonzero()
}

/// Returns a function of arrays that applies `f` to each pair of broadcast elements in float64 (`numpy.vectorize`). `f` runs on the host.
///
/// `cuprum::kernel!` compiles an elementwise function for every device.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let larger = cuprum::vectorize(|a, b| if a > b { a } else { b });
/// let a = NdArray::from_slice(&[1.0, 5.0])?;
/// assert_eq!(larger(&a, &NdArray::scalar(3.0)?)?.to_vec::<f64>()?, [3.0, 5.0]);
/// # Ok(())
/// # }
/// ```
pub fn vectorize(f: impl Fn(f64, f64) -> f64) -> impl Fn(&NdArray, &NdArray) -> Result<NdArray> {
    move |a, b| {
        let arrays = crate::manipulation::broadcast_arrays([a, b])?;
        let (a, b) = (arrays[0].astype(DType::F64)?.to_vec::<f64>()?, arrays[1].astype(DType::F64)?.to_vec::<f64>()?);
        let results: Vec<f64> = try_collect("vectorize", a.into_iter().zip(b).map(|(a, b)| f(a, b)))?;
        NdArray::from_vec(results, arrays[0].shape())?.to_device(arrays[0].device())
    }
}
