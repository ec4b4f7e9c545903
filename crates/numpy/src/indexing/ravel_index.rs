//! Conversion between indices along axes and into the flattened array: `ravel_multi_index` and `unravel_index`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, IntoShape, NdArray, Result, add, clip, floor_divide, greater_equal, less, logical_and, multiply, numpy, remainder,
};

use crate::indexing::index_bounds::Bounds;

/// The order in which elements are counted (`order=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last axis varies fastest.
    #[default]
    C,
    /// The first axis varies fastest.
    F,
}

impl FromArgs for Order {
    fn from_args(args: &Args, name: &str) -> Result<Order> {
        match args.value(name) {
            None => Ok(Order::C),
            Some(Value::Str(text)) if text == "C" => Ok(Order::C),
            Some(Value::Str(text)) if text == "F" => Ok(Order::F),
            Some(_) => Err(Error::value(args.op(), "only 'C' or 'F' order is permitted")),
        }
    }
}

/// Returns the number of elements of `shape`, whose array need not fit into memory. Zero extents do not count in the check for overflow.
fn checked_element_count(name: &'static str, shape: &[usize]) -> Result<usize> {
    let mut nonzero = shape.iter().filter(|&&n| n != 0);
    let product = nonzero.try_fold(1i64, |product, &n| product.checked_mul(i64::try_from(n).ok()?));
    match product {
        None => Err(Error::shape(name, "the shape has too many elements for int64 indices", &[shape])),
        Some(_) if shape.contains(&0) => Ok(0),
        Some(product) => Ok(product as usize),
    }
}

/// Returns the index along each axis of `shape` for indices into the flattened array (`numpy.unravel_index`).
///
/// The results are deferred int64 arrays. The call waits for the device to check the bounds.
///
/// # Errors
/// Indices that are not integers or are outside the array, or a shape whose size exceeds int64.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, Order, unravel_index};
/// # fn main() -> cuprum::Result<()> {
/// let indices = unravel_index(&NdArray::from_slice(&[1, 5])?, [2, 3], Order::C)?;
/// assert_eq!(indices[0].to_vec::<i64>()?, [0, 1]);
/// assert_eq!(indices[1].to_vec::<i64>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("unravel_index(indices, shape, order='C')")]
pub fn unravel_index(indices: &NdArray, #[read(Vec<usize>)] shape: impl IntoShape, order: Order) -> Result<Vec<NdArray>> {
    let (name, shape) = ("unravel_index", shape.into_shape());
    let size = checked_element_count(name, &shape)?;
    if !indices.dtype().is_int() && indices.dtype() != DType::Bool {
        return Err(Error::dtype(name, "only int indices permitted", &[indices.dtype()]));
    }
    if shape.is_empty() && indices.ndim() > 0 {
        return Err(Error::value(name, "multiple indices are not supported for 0d array"));
    }
    if indices.size() > 0 {
        for extreme in [indices.min(())?, indices.max(())?] {
            let index = extreme.item()?.as_int().unwrap_or(-1);
            if !(0..size as i128).contains(&index) {
                return Err(Error::value(name, format!("index {index} is out of bounds for array with size {size}")));
            }
        }
    }
    let indices = indices.astype(DType::I64)?;
    let mut inner = 1usize;
    let mut axes = Vec::with_capacity(shape.len());
    let along = |&extent: &usize| {
        let index = remainder(floor_divide(&indices, inner)?, extent.max(1))?;
        inner *= extent.max(1);
        Ok(index)
    };
    match order {
        Order::C => {
            axes.extend(shape.iter().rev().map(along).collect::<Result<Vec<_>>>()?);
            axes.reverse();
        }
        Order::F => axes.extend(shape.iter().map(along).collect::<Result<Vec<_>>>()?),
    }
    Ok(axes)
}

fn ravel_multi_index_from_args(args: &Args) -> Result<Value> {
    let indices = args.arrays("multi_index")?;
    let modes = match args.value("mode") {
        None => vec![Bounds::Raise],
        Some(value) => match value.items() {
            Some(items) => items.iter().map(|mode| Bounds::parse(args.op(), mode)).collect::<Result<_>>()?,
            None => vec![Bounds::parse(args.op(), value)?],
        },
    };
    ravel_multi_index(indices, args.shape("dims")?, &modes, Order::from_args(args, "order")?).map(Value::Array)
}

/// Returns indices into the flattened array for an index along each axis (`numpy.ravel_multi_index`).
///
/// `modes` has one treatment of indices out of bounds for all axes, or one for each. With [`Bounds::Raise`] the call waits for the device
/// to check the bounds. The result is a deferred int64 array.
///
/// # Errors
/// A number of arrays other than the number of axes, a number of modes that is neither 1 nor the number of axes, indices that are not
/// integers or out of bounds (for an extent of 0, every index is), or a shape whose size exceeds int64.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Bounds, NdArray, Order, ravel_multi_index};
/// # fn main() -> cuprum::Result<()> {
/// let (row, column) = (NdArray::from_slice(&[0, 1])?, NdArray::from_slice(&[1, 2])?);
/// let flat = ravel_multi_index([&row, &column], [2, 3], &[Bounds::Raise], Order::C)?;
/// assert_eq!(flat.to_vec::<i64>()?, [1, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("ravel_multi_index(multi_index, dims, mode='raise', order='C')", call = ravel_multi_index_from_args)]
pub fn ravel_multi_index(
    multi_index: impl IntoIterator<Item: AsRef<NdArray>>,
    dims: impl IntoShape,
    modes: &[Bounds],
    order: Order,
) -> Result<NdArray> {
    let multi_index: Vec<NdArray> = multi_index.into_iter().map(|index| index.as_ref().clone()).collect();
    let (name, dims) = ("ravel_multi_index", dims.into_shape());
    checked_element_count(name, &dims)?;
    if multi_index.len() != dims.len() || dims.is_empty() {
        return Err(Error::value(name, format!("parameter multi_index must be a sequence of length {}", dims.len())));
    }
    if modes.len() != 1 && modes.len() != dims.len() {
        return Err(Error::value(name, format!("{} modes for {} axes", modes.len(), dims.len())));
    }
    // If one of the index arrays is empty, so is their broadcast, and no index needs a check.
    let is_empty = multi_index.iter().any(|index| index.size() == 0);
    if dims.contains(&0) && !is_empty {
        return Err(Error::value(name, "cannot unravel if shape has zero entries (is empty)."));
    }
    let mut flat: Option<NdArray> = None;
    let axes: Vec<usize> = if order == Order::C { (0..dims.len()).collect() } else { (0..dims.len()).rev().collect() };
    for axis in axes {
        let (index, extent) = (&multi_index[axis], dims[axis]);
        if !index.dtype().is_int() && index.dtype() != DType::Bool {
            return Err(Error::dtype(name, "only int indices permitted", &[index.dtype()]));
        }
        let index = index.astype(DType::I64)?;
        let index = match modes[axis.min(modes.len() - 1)] {
            Bounds::Wrap => remainder(&index, extent.max(1))?,
            Bounds::Clip => clip(&index, Some(0.into()), Some(extent.saturating_sub(1).into()))?,
            Bounds::Raise => {
                let inside = logical_and(greater_equal(&index, 0)?, less(&index, extent)?)?;
                if !is_empty && !inside.all(())?.item()?.as_bool() {
                    return Err(Error::value(name, "invalid entry in coordinates array"));
                }
                index
            }
        };
        flat = Some(match flat {
            None => index,
            Some(flat) => add(multiply(&flat, extent)?, &index)?,
        });
    }
    flat.ok_or_else(|| Error::value(name, "need at least one axis"))
}
