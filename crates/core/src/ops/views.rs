//! Views: arrays over the same buffer with another layout.

use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::expr::IntoShape;
use crate::function::FromArgs;
use crate::layout::{check_ndim, checked_size, normalize_axes, normalize_axis_of_scalar};
use crate::ops::value::{Args, Value};
use cuprum_macros::{free_functions, numpy};

/// Returns the shape: one extent per axis (`numpy.shape`).
#[numpy("shape(a)", call = |args| Ok(Value::tuple(args.array("a")?.shape().iter().map(|&n| n.into()))))]
pub fn shape(a: &NdArray) -> &[usize] {
    a.shape()
}

/// Returns the number of axes (`numpy.ndim`).
#[numpy("ndim(a)", call = |args| Ok(args.array("a")?.ndim().into()))]
pub fn ndim(a: &NdArray) -> usize {
    a.ndim()
}

/// Returns the number of elements (`numpy.size`).
#[numpy("size(a)", call = |args| Ok(args.array("a")?.size().into()))]
pub fn size(a: &NdArray) -> usize {
    a.size()
}

fn squeeze_by_name(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    match args.get("axis") {
        // NumPy accepts the integers 0 and -1 as axes of a 0-d array, but not inside a tuple, so only integers are accepted here.
        Some(axis) if a.ndim() == 0 && axis.items().is_none() => normalize_axis_of_scalar("squeeze", axis.index("squeeze")?, 0).map(|_| a),
        _ => a.squeeze(args.ints("axis")?.as_deref()),
    }
    .map(Value::Array)
}

fn transpose_by_name(args: &Args) -> Result<Value> {
    let axes: Option<Vec<isize>> = FromArgs::from_args(args, "axes")?;
    let a = args.array("a")?;
    axes.map_or_else(|| a.t(), |axes| a.transpose(&axes)).map(Value::Array)
}

#[free_functions]
impl NdArray {
    /// Returns the elements in C order with another shape, as a view where possible, else a copy (`numpy.reshape`).
    ///
    /// One extent may be -1 and is then computed.
    ///
    /// # Errors
    /// [`Error::Value`] if the sizes differ or more than one extent is -1.
    #[numpy("reshape(a, shape)", method)]
    pub fn reshape(&self, #[read(Vec<isize>)] shape: impl IntoReshape) -> Result<NdArray> {
        let shape = resolve_reshape(&shape.into_reshape(), self.shape())?;
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
    #[numpy("ravel(a)", method)]
    pub fn ravel(&self) -> Result<NdArray> {
        self.reshape([-1])
    }

    /// Returns the elements in C order as a 1-D array (`numpy.ndarray.flatten`). Values are immutable, so this is [`NdArray::ravel`].
    #[numpy("ndarray.flatten(a)")]
    pub fn flatten(&self) -> Result<NdArray> {
        self.ravel()
    }

    /// Reverses the order of the axes: a view (`numpy.ndarray.T`).
    pub fn t(&self) -> Result<NdArray> {
        self.view(|l| Ok(l.transpose()))
    }

    /// Exchanges the last two axes: a view (`numpy.ndarray.mT`).
    ///
    /// # Errors
    /// An array of fewer than two dimensions.
    pub fn mt(&self) -> Result<NdArray> {
        if self.ndim() < 2 {
            let message = format!("the matrix transpose of an array of {} dimensions is not defined", self.ndim());
            return Err(Error::value("mt", message));
        }
        self.swapaxes(-2, -1)
    }

    /// Permutes the axes: a view (`numpy.transpose`, `numpy.permute_dims`). [`NdArray::t`] reverses them.
    ///
    /// # Errors
    /// Axes that are not a permutation of the array's axes.
    #[doc(alias = "permute_dims")]
    #[numpy("transpose(a, axes=None)", aliases("permute_dims"), method, call = transpose_by_name)]
    pub fn transpose(&self, axes: &[isize]) -> Result<NdArray> {
        self.view(|l| l.permute(axes))
    }

    /// Exchanges two axes: a view (`numpy.swapaxes`).
    #[numpy("swapaxes(a, axis1, axis2)", method)]
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<NdArray> {
        let a = crate::layout::normalize_axis("swapaxes", axis1, self.ndim())?;
        let b = crate::layout::normalize_axis("swapaxes", axis2, self.ndim())?;
        let mut order: Vec<isize> = (0..self.ndim() as isize).collect();
        order.swap(a, b);
        self.transpose(&order)
    }

    /// Removes axes of extent 1: all of them (`None`) or the given ones. A view (`numpy.squeeze`).
    #[numpy("squeeze(a, axis=None)", method, call = squeeze_by_name)]
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<NdArray> {
        self.view(|l| l.squeeze(axes))
    }

    /// Returns the diagonals of two axes as the last axis: a view (`numpy.diagonal`).
    #[numpy("diagonal(a, offset=0, axis1=0, axis2=1)", method)]
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<NdArray> {
        if self.ndim() < 2 {
            return Err(Error::shape("diagonal", "an array of at least two dimensions is needed", &[self.shape()]));
        }
        self.view(|l| l.diagonal(offset, axis1, axis2))
    }
}

/// Moves axes to other positions, the remaining axes keeping their order: a view (`numpy.moveaxis`).
#[numpy("moveaxis(a, source, destination)")]
pub fn moveaxis(a: &NdArray, source: &[isize], destination: &[isize]) -> Result<NdArray> {
    let from = normalize_axes("moveaxis", source, a.ndim())?;
    let to = normalize_axes("moveaxis", destination, a.ndim())?;
    if from.len() != to.len() {
        return Err(Error::value("moveaxis", "source and destination must have the same number of axes"));
    }
    let mut rest = (0..a.ndim()).filter(|a| !from.contains(a));
    let order: Vec<isize> = (0..a.ndim())
        .filter_map(|place| to.iter().position(|&t| t == place).map(|i| from[i]).or_else(|| rest.next()))
        .map(|a| a as isize)
        .collect();
    a.transpose(&order)
}

/// Inserts axes of extent 1 at the given positions of the result: a view (`numpy.expand_dims`).
#[numpy("expand_dims(a, axis)")]
pub fn expand_dims(a: &NdArray, #[name("axis")] axes: &[isize]) -> Result<NdArray> {
    a.view(|l| l.expand_dims(axes))
}

/// Reverses the elements along the given axes (`None`: all): a view (`numpy.flip`).
#[numpy("flip(a, axis=None)")]
pub fn flip(a: &NdArray, #[name("axis")] axes: Option<&[isize]>) -> Result<NdArray> {
    let axes = match axes {
        None => (0..a.ndim()).collect(),
        Some(axes) => normalize_axes("flip", axes, a.ndim())?,
    };
    a.view(|l| Ok(l.flip(&axes)))
}

/// Broadcasts to a shape by repeating axes of extent 1: a view (`numpy.broadcast_to`).
#[numpy("broadcast_to(a, shape)")]
pub fn broadcast_to(a: &NdArray, #[read(Vec<usize>)] shape: impl IntoShape) -> Result<NdArray> {
    let shape = shape.into_shape();
    a.view(|l| l.broadcast_to(&shape))
}

/// Shape arguments of [`NdArray::reshape`]: extents, one of which may be -1.
pub trait IntoReshape {
    /// Returns the extents as given.
    fn into_reshape(self) -> Vec<isize>;
}
macro_rules! reshape_from {
    ($($t:ty),*) => {$(
        impl IntoReshape for $t {
            fn into_reshape(self) -> Vec<isize> { vec![self as isize] }
        }
        impl<const N: usize> IntoReshape for [$t; N] {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
        impl IntoReshape for &[$t] {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
        impl IntoReshape for Vec<$t> {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
    )*};
}
reshape_from!(i32, isize, usize);
impl IntoReshape for crate::layout::Dims {
    fn into_reshape(self) -> Vec<isize> {
        self.iter().map(|&n| n as isize).collect()
    }
}
impl IntoReshape for () {
    fn into_reshape(self) -> Vec<isize> {
        vec![]
    }
}

fn resolve_reshape(wanted: &[isize], shape: &[usize]) -> Result<crate::layout::Dims> {
    check_ndim("reshape", wanted.len())?;
    let size: usize = shape.iter().product();
    let text = || wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fail = || Error::value("reshape", format!("cannot reshape array of shape {} into ({})", crate::error::shape_text(shape), text()));
    let holes = wanted.iter().filter(|n| **n == -1).count();
    if holes > 1 || wanted.iter().any(|&n| n < -1) {
        return Err(Error::value("reshape", format!("({}): extents are non-negative, and at most one may be -1", text())));
    }
    let known = wanted.iter().filter(|n| **n != -1).try_fold(1usize, |p, &n| p.checked_mul(n as usize)).ok_or_else(fail)?;
    let hole = match (holes, known) {
        (0, _) => 0,
        (_, 0) => return Err(fail()),
        (_, k) if size.is_multiple_of(k) => size / k,
        _ => return Err(fail()),
    };
    if holes == 0 && known != size {
        return Err(fail());
    }
    let shape = wanted.iter().map(|&n| if n == -1 { hole } else { n as usize }).collect::<crate::layout::Dims>();
    checked_size("reshape", &shape)?;
    Ok(shape)
}
