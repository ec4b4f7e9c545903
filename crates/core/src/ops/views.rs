//! Views: arrays over the same buffer with another layout.

use crate::array::{Array, NdArray};
use crate::error::{Error, Result};
use crate::expr::IntoShape;
use crate::function::FromArgs;
use crate::layout::{check_ndim, checked_size, normalize_axes, normalize_axis_of_scalar};
use crate::ops::value::{Args, Value};
use cuprum_macros::numpy;

/// Returns the shape: one extent per axis.
#[numpy("shape(a)")]
fn shape(a: &NdArray) -> Result<Value> {
    Ok(Value::tuple(a.shape().iter().map(|&n| n.into())))
}

/// Returns the number of axes.
#[numpy("ndim(a)")]
fn ndim(a: &NdArray) -> Result<usize> {
    Ok(a.ndim())
}

/// Returns the number of elements.
#[numpy("size(a)")]
fn size(a: &NdArray) -> Result<usize> {
    Ok(a.size())
}

fn squeeze_by_name(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    match args.get("axis") {
        // NumPy accepts the integers 0 and -1 as axes of a 0-d array, but not inside a tuple.
        Some(axis) if a.ndim() == 0 && axis.items().is_none() => normalize_axis_of_scalar("squeeze", axis.index("squeeze")?, 0).map(|_| a),
        _ => a.squeeze(args.ints("axis")?.as_deref()),
    }
    .map(Value::Array)
}

fn permute_dims_by_name(args: &Args) -> Result<Value> {
    let axes: Option<Vec<isize>> = FromArgs::from_args(args, "axes")?;
    let a = args.array("a")?;
    axes.map_or_else(|| a.t(), |axes| a.permute_dims(&axes)).map(Value::Array)
}

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
    #[numpy("ravel(a)", aliases("flatten"), method)]
    pub fn ravel(&self) -> Result<NdArray> {
        self.reshape([-1])
    }

    /// Reverses the order of the axes: a view (`numpy.ndarray.T`).
    pub fn t(&self) -> Result<NdArray> {
        self.view(|l| Ok(l.transpose()))
    }

    /// Permutes the axes: a view (`numpy.permute_dims`, `numpy.transpose`).
    #[numpy("permute_dims(a, axes=None)", aliases("transpose"), method, call = permute_dims_by_name)]
    pub fn permute_dims(&self, axes: &[isize]) -> Result<NdArray> {
        self.view(|l| l.permute(axes))
    }

    /// Exchanges two axes: a view (`numpy.swapaxes`).
    #[numpy("swapaxes(a, axis1, axis2)", method)]
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<NdArray> {
        let a = crate::layout::normalize_axis("swapaxes", axis1, self.ndim())?;
        let b = crate::layout::normalize_axis("swapaxes", axis2, self.ndim())?;
        let mut order: Vec<isize> = (0..self.ndim() as isize).collect();
        order.swap(a, b);
        self.permute_dims(&order)
    }

    /// Moves axes to other positions, the remaining axes keeping their order: a view (`numpy.moveaxis`).
    #[numpy("moveaxis(a, source, destination)")]
    pub fn moveaxis(&self, source: &[isize], destination: &[isize]) -> Result<NdArray> {
        let from = normalize_axes("moveaxis", source, self.ndim())?;
        let to = normalize_axes("moveaxis", destination, self.ndim())?;
        if from.len() != to.len() {
            return Err(Error::value("moveaxis", "source and destination must have the same number of axes"));
        }
        let mut rest = (0..self.ndim()).filter(|a| !from.contains(a));
        let order: Vec<isize> = (0..self.ndim())
            .filter_map(|place| to.iter().position(|&t| t == place).map(|i| from[i]).or_else(|| rest.next()))
            .map(|a| a as isize)
            .collect();
        self.permute_dims(&order)
    }

    /// Removes axes of extent 1: all of them (`None`) or the given ones. A view (`numpy.squeeze`).
    #[numpy("squeeze(a, axis=None)", method, call = squeeze_by_name)]
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<NdArray> {
        self.view(|l| l.squeeze(axes))
    }

    /// Inserts axes of extent 1 at the given positions of the result: a view (`numpy.expand_dims`).
    #[numpy("expand_dims(a, axis)")]
    pub fn expand_dims(&self, #[name("axis")] axes: &[isize]) -> Result<NdArray> {
        self.view(|l| l.expand_dims(axes))
    }

    /// Reverses the elements along the given axes (`None`: all): a view (`numpy.flip`).
    #[numpy("flip(a, axis=None)")]
    pub fn flip(&self, #[name("axis")] axes: Option<&[isize]>) -> Result<NdArray> {
        let axes = match axes {
            None => (0..self.ndim()).collect(),
            Some(axes) => normalize_axes("flip", axes, self.ndim())?,
        };
        self.view(|l| Ok(l.flip(&axes)))
    }

    /// Broadcasts to a shape by repeating axes of extent 1: a view (`numpy.broadcast_to`).
    #[numpy("broadcast_to(a, shape)")]
    pub fn broadcast_to(&self, #[read(Vec<usize>)] shape: impl IntoShape) -> Result<NdArray> {
        let shape = shape.into_shape();
        self.view(|l| l.broadcast_to(&shape))
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
