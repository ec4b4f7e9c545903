//! Coordinates of grids and joined ranges: `numpy.mgrid`, `ogrid`, `r_` and `c_`. In Python, their ranges are written as indices:
//! `mgrid[0:3]`.

use cuprum_core::op::{ArgumentType, result_type};
use cuprum_core::{DType, Error, NdArray, Operand, Result, Scalar, add, arange, arange_as, concat, linspace, multiply, stack};

use crate::manipulation::broadcast_arrays;
use crate::operand_and_slice_helpers::{promotion_arguments, with_at_least_ndim};

/// The values of one axis of a grid: Python's slice `start:stop:step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridRange {
    start: Scalar,
    stop: Scalar,
    step: RangeStep,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RangeStep {
    Distance(Scalar),
    Count(usize),
}

impl<A: Into<Scalar>, B: Into<Scalar>> From<(A, B)> for GridRange {
    /// Returns the range `start:stop` with steps of 1.
    fn from((start, stop): (A, B)) -> GridRange {
        GridRange::new(start, stop, 1)
    }
}

impl<A: Into<Scalar>, B: Into<Scalar>, C: Into<Scalar>> From<(A, B, C)> for GridRange {
    /// Returns the range `start:stop:step`.
    fn from((start, stop, step): (A, B, C)) -> GridRange {
        GridRange::new(start, stop, step)
    }
}

impl GridRange {
    /// Returns the range from `start` to `stop`. `stop` is excluded.
    ///
    /// As in NumPy, an imaginary step is the number of values from `start` to `stop`. `stop` is then included.
    pub fn new(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>) -> GridRange {
        let step = match step.into() {
            Scalar::Complex(c) => RangeStep::Count(c.norm() as usize),
            step => RangeStep::Distance(step),
        };
        GridRange { start: start.into(), stop: stop.into(), step }
    }

    /// Returns the range of `count` values from `start` to `stop`. `stop` is included.
    pub fn samples(start: impl Into<Scalar>, stop: impl Into<Scalar>, count: usize) -> GridRange {
        GridRange { start: start.into(), stop: stop.into(), step: RangeStep::Count(count) }
    }

    /// Returns the number of values of the range, and the distance between neighbouring values. The number is negative if `stop` is a step
    /// or more before `start`.
    fn count_and_step(&self) -> Result<(isize, Scalar)> {
        // As in Python, the difference of two ints is exact.
        let span = match [self.start, self.stop] {
            [Scalar::Bool(_) | Scalar::Int(_), Scalar::Bool(_) | Scalar::Int(_)] => {
                self.stop.as_int().zip(self.start.as_int()).map_or(f64::NAN, |(stop, start)| stop.saturating_sub(start) as f64)
            }
            [start, stop] => stop.as_f64() - start.as_f64(),
        };
        match self.step {
            RangeStep::Count(count) => {
                let step = if count < 2 { 1.0 } else { span / (count - 1) as f64 };
                Ok((isize::try_from(count).unwrap_or(isize::MAX), Scalar::Float(step)))
            }
            RangeStep::Distance(step) => {
                let count = (span / step.as_f64()).ceil();
                if !count.is_finite() || count > isize::MAX as f64 {
                    return Err(Error::value("mgrid", "the number of values of a range is not finite"));
                }
                Ok((count as isize, step))
            }
        }
    }

    /// Returns the dtype of the values of the range.
    fn dtype(&self) -> DType {
        let step = match self.step {
            RangeStep::Distance(step) => step,
            RangeStep::Count(_) => Scalar::Float(0.0),
        };
        result_type(&[self.start, self.stop, step].map(ArgumentType::Weak))
    }

    /// Returns the values of the range as a 1-D array (`numpy.mgrid` and `numpy.ogrid` of one range).
    ///
    /// As in NumPy, the values are those of [`arange`], which may differ in the last digit from those of a grid of several ranges.
    ///
    /// # Errors
    /// The errors of [`arange`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
    /// use cuprum::{GridRange, arange};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(GridRange::new(1, 2, 0.1).values()?, arange(1, 2, 0.1)?);
    /// assert_eq!(GridRange::samples(0, 1, 3).values()?.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values(&self) -> Result<NdArray> {
        match self.step {
            RangeStep::Distance(step) => arange(self.start, self.stop, step).map_err(|e| e.with_function_name("mgrid")),
            RangeStep::Count(_) => self.grid_values(self.dtype()),
        }
    }

    /// Returns the values of the range along an axis of a grid, as an array of `dtype`.
    fn grid_values(&self, dtype: DType) -> Result<NdArray> {
        let (count, step) = self.count_and_step()?;
        add(multiply(arange_as(0, count.max(0), 1, dtype)?, step)?, self.start)?.astype(dtype)
    }
}

/// Returns, for each axis of a grid, the coordinates along this axis, with extent 1 along the other axes (`numpy.ogrid`).
///
/// The dtype is int64 if all bounds and steps are integers, else float64.
///
/// # Errors
/// A step of 0, too many axes, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let axes = cuprum::ogrid(&[(0, 2).into(), (0, 3).into()])?;
/// assert_eq!((axes[0].shape(), axes[1].shape()), (&[2, 1][..], &[1, 3][..]));
/// # Ok(())
/// # }
/// ```
pub fn ogrid(ranges: &[GridRange]) -> Result<Vec<NdArray>> {
    let dtype = DType::promote_all(ranges.iter().map(GridRange::dtype)).unwrap_or(DType::I64);
    let along = |(axis, range): (usize, &GridRange)| {
        let values = range.grid_values(dtype)?;
        let mut shape = vec![1; ranges.len()];
        shape[axis] = values.size();
        values.reshape(shape)
    };
    ranges.iter().enumerate().map(along).collect()
}

/// Returns the coordinates of a grid (`numpy.mgrid`): element `i` along the first axis of the result holds the coordinates along axis `i`
/// of the grid.
///
/// The dtype is int64 if all bounds and steps are integers, else float64. [`ogrid`] returns one small array for each axis instead.
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// A step of 0, a range whose `stop` is a step or more before its `start`, too many axes, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{GridRange, array, mgrid};
/// # fn main() -> cuprum::Result<()> {
/// let grid = mgrid(&[(0, 2).into(), (0, 2).into()])?;
/// assert_eq!(grid, array![[[0i64, 0], [1, 1]], [[0, 1], [0, 1]]]);
/// let samples = mgrid(&[GridRange::samples(0, 1, 3)])?;
/// assert_eq!(samples, array![[0.0, 0.5, 1.0]]);
/// # Ok(())
/// # }
/// ```
pub fn mgrid(ranges: &[GridRange]) -> Result<NdArray> {
    for range in ranges {
        if range.count_and_step()?.0 < 0 {
            return Err(Error::value("mgrid", "negative dimensions are not allowed"));
        }
    }
    stack(broadcast_arrays(&ogrid(ranges)?)?, 0)
}

/// An operand of [`r_`] and [`c_`]: an array, a number, or a range.
#[derive(Clone)]
pub enum GridPart {
    /// An array or a number.
    Operand(Operand),
    /// A range.
    Range(GridRange),
}

impl From<GridRange> for GridPart {
    fn from(range: GridRange) -> GridPart {
        GridPart::Range(range)
    }
}
impl From<&NdArray> for GridPart {
    fn from(a: &NdArray) -> GridPart {
        GridPart::Operand(a.into())
    }
}
impl From<NdArray> for GridPart {
    fn from(a: NdArray) -> GridPart {
        GridPart::Operand(a.into())
    }
}
impl From<Scalar> for GridPart {
    fn from(number: Scalar) -> GridPart {
        GridPart::Operand(number.into())
    }
}

/// Converts the operands of [`r_`] and [`c_`] to arrays of their common dtype. Numbers are weak scalars.
fn grid_parts_to_arrays(name: &'static str, parts: &[GridPart]) -> Result<Vec<NdArray>> {
    let mut operands = Vec::new();
    for part in parts {
        operands.push(match part {
            GridPart::Operand(operand) => operand.clone(),
            // NumPy computes `mgrid` and `r_` differently: the last value of `r_` is exactly `stop`.
            GridPart::Range(GridRange { start, stop, step: RangeStep::Count(count) }) => linspace(*start, *stop, *count)?.into(),
            GridPart::Range(range) => range.values().map_err(|e| e.with_function_name(name))?.into(),
        });
    }
    let dtype = result_type(&promotion_arguments(&operands));
    let convert = |operand: &Operand| match operand {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(s) => NdArray::scalar_as(s.check_fits_dtype(name, dtype)?, dtype),
    };
    operands.iter().map(convert).collect()
}

/// Joins arrays, numbers and ranges along the first axis (`numpy.r_`). A number is an array of one element.
///
/// # Errors
/// No parts, extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{GridRange, Scalar, array, r_};
/// # fn main() -> cuprum::Result<()> {
/// let joined = r_(&[GridRange::from((1, 4)).into(), Scalar::from(0).into(), array![7i64, 8].into()])?;
/// assert_eq!(joined, array![1i64, 2, 3, 0, 7, 8]);
/// # Ok(())
/// # }
/// ```
pub fn r_(parts: &[GridPart]) -> Result<NdArray> {
    let arrays = grid_parts_to_arrays("r_", parts)?.iter().map(|a| with_at_least_ndim(a, 1)).collect::<Result<Vec<_>>>()?;
    concat(&arrays, 0).map_err(|e| e.with_function_name("r_"))
}

/// Joins arrays, numbers and ranges as columns (`numpy.c_`): along the last axis, 1-D arrays as one column each.
///
/// # Errors
/// No parts, extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let columns = cuprum::c_(&[array![1, 2].into(), array![3, 4].into()])?;
/// assert_eq!(columns, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
pub fn c_(parts: &[GridPart]) -> Result<NdArray> {
    let column = |a: &NdArray| if a.ndim() < 2 { a.reshape((-1, 1)) } else { Ok(a.clone()) };
    let arrays = grid_parts_to_arrays("c_", parts)?.iter().map(column).collect::<Result<Vec<_>>>()?;
    concat(&arrays, -1).map_err(|e| e.with_function_name("c_"))
}
