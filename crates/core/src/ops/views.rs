//! Views: arrays over the same buffer with another layout.

use crate::arguments::{Axes, IntegerArgument, IntoReshape, IntoShape};
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::layout::{check_ndim, checked_size, normalize_axis, normalize_axis_of_scalar};
use crate::ops::creation_options::reverse_axes_for_order;
use crate::ops::python_value::{Args, Value};
use cuprum_macros::{free_functions, numpy};
use smallvec::SmallVec;

fn reshape_from_args(args: &Args) -> Result<Value> {
    let mut shape: Vec<isize> = FromArgs::from_args(args, "shape")?;
    let (a, is_reversed) = reverse_axes_for_order(args, args.array("a")?)?;
    if is_reversed {
        shape.reverse();
    }
    let is_copied = args.get("copy").map(|_| args.bool_or("copy", false)).transpose()?;
    if is_copied == Some(false) && a.stored()?.layout().reshape(&resolve_reshape_extents(&shape, a.shape())?).is_none() {
        return Err(Error::value(args.op(), "Unable to avoid creating a copy while reshaping."));
    }
    let reshaped = a.reshape(shape)?;
    let reshaped = if is_copied == Some(true) { reshaped.copy()? } else { reshaped };
    Ok(Value::Array(if is_reversed { reshaped.t()? } else { reshaped }))
}

/// Returns the axes by descending size of their strides, as NumPy's iterators order them. An axis that is broadcast or has one element
/// keeps its position relative to the axes around it.
fn axes_in_memory_order(a: &NdArray) -> Result<SmallVec<[isize; 6]>> {
    let stored = a.stored()?;
    let stride = |axis: usize| if a.shape()[axis] == 1 { 0 } else { stored.layout().strides()[axis].unsigned_abs() };
    let mut axes: SmallVec<[isize; 6]> = SmallVec::new(); // ascending
    for axis in (0..a.ndim()).rev() {
        let mut position = axes.len();
        for (n, &inner) in axes.iter().enumerate().rev() {
            match (stride(inner as usize), stride(axis)) {
                (0, _) | (_, 0) => {}
                (inner, outer) if inner <= outer => break,
                _ => position = n,
            }
        }
        axes.insert(position, axis as isize);
    }
    axes.reverse();
    Ok(axes)
}

fn ravel_from_args(args: &Args) -> Result<Value> {
    if matches!(args.get("order"), Some(Value::Str(order)) if order == "K") {
        let a = args.array("a")?;
        let axes = axes_in_memory_order(&a)?;
        return a.transpose(&axes[..])?.ravel().map(Value::Array);
    }
    reverse_axes_for_order(args, args.array("a")?)?.0.ravel().map(Value::Array)
}

/// Returns the shape: one extent per axis (`numpy.shape`).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::ops::views::shape(&array![[1, 2, 3]]), [1, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("shape(a)", call = |args| Ok(Value::tuple(args.array("a")?.shape().iter().map(|&n| n.into()))))]
pub fn shape(a: &NdArray) -> &[usize] {
    a.shape()
}

/// Returns the number of axes (`numpy.ndim`).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::ops::views::ndim(&array![[1, 2, 3]]), 2);
/// # Ok(())
/// # }
/// ```
#[numpy("ndim(a)", call = |args| Ok(args.array("a")?.ndim().into()))]
pub fn ndim(a: &NdArray) -> usize {
    a.ndim()
}

fn size_from_args(args: &Args) -> Result<Value> {
    let (a, axes) = (args.array("a")?, Axes::from_args(args, "axis")?);
    let axes = axes.resolve(args.op(), a.ndim())?;
    Ok(axes.iter().map(|&axis| a.shape()[axis]).product::<usize>().into())
}

/// Returns the number of elements (`numpy.size`).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::ops::views::size(&array![[1, 2, 3]]), 3);
/// # Ok(())
/// # }
/// ```
#[numpy("size(a, axis=None)", call = size_from_args)]
pub fn size(a: &NdArray) -> usize {
    a.size()
}

/// # Shapes and views
///
/// A view shares the memory of the array.
#[free_functions]
impl NdArray {
    /// Returns the elements in C order with another shape, as a view where possible, else a copy (`numpy.reshape`).
    ///
    /// One extent may be -1 and is then computed.
    ///
    /// # Errors
    /// [`Error::Value`] if the sizes differ or more than one extent is -1.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// # fn main() -> cuprum::Result<()> {
    /// let (a, rows) = (cuprum::arange(0, 6, 1)?, 3usize);
    /// assert_eq!(a.reshape((2, 3))?.shape(), [2, 3]);
    /// assert_eq!(a.reshape((rows, -1))?.shape(), [3, 2]); // the integer types of a tuple may differ
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("reshape(a, /, shape, order='C', *, copy=None)", method, call = reshape_from_args)]
    pub fn reshape(&self, #[read(Vec<isize>)] shape: impl IntoReshape) -> Result<NdArray> {
        let shape = resolve_reshape_extents(&shape.into_reshape(), self.shape())?;
        if shape[..] == *self.shape() {
            return Ok(self.clone());
        }
        let stored = self.stored()?;
        match stored.layout().reshape(&shape) {
            Some(layout) => Ok(NdArray::from(stored.with_layout(layout)?)),
            None => self.contiguous()?.reshape(shape),
        }
    }

    /// Returns the elements in C order as a 1-D array, as a view where possible, else a copy (`numpy.ravel`).
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(a.t()?.ravel()?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ravel(a, order='C')", method, call = ravel_from_args)]
    pub fn ravel(&self) -> Result<NdArray> {
        self.reshape([-1])
    }

    /// Returns the elements in C order as a 1-D array (`numpy.ndarray.flatten`). Values are immutable, so this is [`NdArray::ravel`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.flatten()?.shape(), [6]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ndarray.flatten(a, order='C')", call = ravel_from_args)]
    pub fn flatten(&self) -> Result<NdArray> {
        self.ravel()
    }

    /// Reverses the order of the axes: a view (`numpy.ndarray.T`).
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.t()?.shape(), [3, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn t(&self) -> Result<NdArray> {
        self.view_with_layout(|l| Ok(l.transpose()))
    }

    /// Exchanges the last two axes: a view (`numpy.ndarray.mT`).
    ///
    /// # Errors
    /// An array of fewer than two dimensions.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([4, 2, 3], DType::F32)?.mt()?.shape(), [4, 3, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn mt(&self) -> Result<NdArray> {
        if self.ndim() < 2 {
            let message = format!("the matrix transpose of an array of {} dimensions is not defined", self.ndim());
            return Err(Error::value("mt", message));
        }
        self.swapaxes(-2, -1)
    }

    /// Permutes the axes: a view (`numpy.transpose`, `numpy.permute_dims`). `()` reverses them, as [`NdArray::t`] does.
    ///
    /// # Errors
    /// Axes that are not a permutation of the array's axes.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = cuprum::ones((2, 3, 4), cuprum::DType::F32)?;
    /// assert_eq!(a.transpose((1, 0, 2))?.shape(), [3, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "permute_dims")]
    #[numpy("transpose(a, axes=None)", aliases("permute_dims"), method)]
    pub fn transpose(&self, axes: impl Into<Axes>) -> Result<NdArray> {
        match axes.into().as_slice() {
            None => self.t(),
            Some(axes) => self.view_with_layout(|l| l.permute(axes)),
        }
    }

    /// Exchanges two axes: a view (`numpy.swapaxes`).
    ///
    /// # Errors
    /// An axis out of bounds.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3, 4], DType::F32)?.swapaxes(0, 2)?.shape(), [4, 3, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("swapaxes(a, axis1, axis2)", method)]
    pub fn swapaxes(&self, #[read(isize)] axis1: impl IntegerArgument, #[read(isize)] axis2: impl IntegerArgument) -> Result<NdArray> {
        let a = normalize_axis("swapaxes", axis1.saturating_isize(), self.ndim())?;
        let b = normalize_axis("swapaxes", axis2.saturating_isize(), self.ndim())?;
        let mut order: Vec<isize> = (0..self.ndim() as isize).collect();
        order.swap(a, b);
        self.transpose(&order)
    }

    /// Removes axes of extent 1: all of them for `()`, or the given ones. A view (`numpy.squeeze`).
    ///
    /// # Errors
    /// An axis that is out of bounds or has an extent other than 1.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([1, 3, 1], DType::F32)?.squeeze(())?.shape(), [3]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("squeeze(a, axis=None)", method)]
    pub fn squeeze(&self, #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
        match axes.into() {
            // NumPy accepts the integers 0 and -1 as axes of a 0-d array, but not if they are in a tuple.
            Axes::One(axis) if self.ndim() == 0 => normalize_axis_of_scalar("squeeze", axis, 0).map(|_| self.clone()),
            axes => self.view_with_layout(|l| l.squeeze(axes.as_slice())),
        }
    }

    /// Returns the diagonals of two axes as the last axis: a view (`numpy.diagonal`).
    ///
    /// # Errors
    /// Axes that are out of bounds or equal.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(a.diagonal(0, 0, 1)?.to_vec::<i32>()?, [1, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("diagonal(a, offset=0, axis1=0, axis2=1)", method)]
    pub fn diagonal(
        &self,
        offset: isize,
        #[read(isize)] axis1: impl IntegerArgument,
        #[read(isize)] axis2: impl IntegerArgument,
    ) -> Result<NdArray> {
        if self.ndim() < 2 {
            return Err(Error::shape("diagonal", "an array of at least two dimensions is needed", &[self.shape()]));
        }
        self.view_with_layout(|l| l.diagonal(offset, axis1.saturating_isize(), axis2.saturating_isize()))
    }

    /// Moves axes to other positions, the remaining axes keeping their order: a view (`numpy.moveaxis`).
    ///
    /// # Errors
    /// Axes that are out of bounds or repeated, or lists of different lengths.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, moveaxis, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(moveaxis(&zeros([2, 3, 4], DType::F32)?, 0, -1)?.shape(), [3, 4, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("moveaxis(a, source, destination)")]
    pub fn moveaxis(&self, source: impl Into<Axes>, destination: impl Into<Axes>) -> Result<NdArray> {
        let from = source.into().resolve("moveaxis", self.ndim())?;
        let to = destination.into().resolve("moveaxis", self.ndim())?;
        if from.len() != to.len() {
            return Err(Error::value("moveaxis", "source and destination must have the same number of axes"));
        }
        let mut rest = (0..self.ndim()).filter(|a| !from.contains(a));
        let order: SmallVec<[usize; 6]> =
            (0..self.ndim()).filter_map(|place| to.iter().position(|&t| t == place).map(|i| from[i]).or_else(|| rest.next())).collect();
        self.transpose(order)
    }

    /// Inserts axes of extent 1 at the given positions of the result: a view (`numpy.expand_dims`).
    ///
    /// # Errors
    /// Positions that are out of bounds or repeated, or too many axes.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// # fn main() -> cuprum::Result<()> {
    /// let column = cuprum::arange(0, 3, 1)?.expand_dims(1)?;
    /// assert_eq!(column.shape(), [3, 1]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("expand_dims(a, axis)")]
    pub fn expand_dims(&self, #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
        match axes.into().as_slice() {
            None => Err(Error::value("expand_dims", "takes the position of each new axis, such as 0 or (0, 2)")),
            Some(axes) => self.view_with_layout(|l| l.expand_dims(axes)),
        }
    }

    /// Reverses the elements along the given axes, or along all for `()`: a view (`numpy.flip`).
    ///
    /// # Errors
    /// Axes that are out of bounds or repeated.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, flip};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(flip(&NdArray::from_slice(&[1, 2, 3])?, ())?.to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("flip(a, axis=None)")]
    pub fn flip(&self, #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
        let axes = axes.into().resolve("flip", self.ndim())?;
        self.view_with_layout(|l| Ok(l.flip(&axes)))
    }

    /// Broadcasts to a shape by repeating axes of extent 1: a view (`numpy.broadcast_to`).
    ///
    /// # Errors
    /// A shape that the array does not broadcast to.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, broadcast_to};
    /// # fn main() -> cuprum::Result<()> {
    /// let row = NdArray::from_slice(&[1, 2])?;
    /// assert_eq!(broadcast_to(&row, [2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("broadcast_to(a, shape)")]
    pub fn broadcast_to(&self, #[read(Vec<usize>)] shape: impl IntoShape) -> Result<NdArray> {
        let shape = shape.into_shape();
        self.view_with_layout(|l| l.broadcast_to(&shape))
    }
}

fn resolve_reshape_extents(wanted: &[isize], shape: &[usize]) -> Result<crate::layout::Dims> {
    check_ndim("reshape", wanted.len())?;
    let size: usize = shape.iter().product();
    let text = || wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fail = |new: String| {
        let (old, comma) = (crate::error::shape_text(shape), if wanted.len() == 1 { "," } else { "" });
        Error::value("reshape", format!("cannot reshape array of shape {old} and size {size} into ({}{comma}){new}", text()))
    };
    let holes = wanted.iter().filter(|n| **n == -1).count();
    if holes > 1 || wanted.iter().any(|&n| n < -1) {
        return Err(Error::value("reshape", format!("({}): extents are non-negative, and at most one may be -1", text())));
    }
    let product = wanted.iter().filter(|n| **n != -1).try_fold(1usize, |p, &n| p.checked_mul(n as usize));
    let known = product.ok_or_else(|| fail(", which is too large".into()))?;
    let hole = match (holes, known) {
        (0, _) => 0,
        (_, 0) => return Err(fail(": any extent of the axis -1 gives size 0".into())),
        (_, k) if size.is_multiple_of(k) => size / k,
        _ => return Err(fail(format!(": {size} is not a multiple of {known}"))),
    };
    if holes == 0 && known != size {
        return Err(fail(format!(" of size {known}")));
    }
    let shape = wanted.iter().map(|&n| if n == -1 { hole } else { n as usize }).collect::<crate::layout::Dims>();
    checked_size("reshape", &shape)?;
    Ok(shape)
}
