//! Options of functions along axes, such as reductions, scans and sorts.

use crate::arguments::Axes;
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::layout::Dims;
use crate::op::Op;
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;

/// Options of a function along axes, such as a reduction: the axes, whether to keep them with extent 1, the dtype, and others.
#[derive(Clone, Debug, Default)]
pub struct AxisOptions {
    pub(super) axes: Axes,
    pub(super) keepdims: bool,
    pub(super) dtype: Option<DType>,
    pub(super) correction: Option<f64>,
    pub(super) descending: bool,
    pub(super) selection: Option<Box<InitialValueAndMask>>,
}

/// The options [`AxisOptions::initial`] and [`AxisOptions::only_where`]. They are boxed in [`AxisOptions`], because few calls have them.
#[derive(Clone, Debug, Default)]
pub(super) struct InitialValueAndMask {
    pub(super) initial: Option<Scalar>,
    pub(super) mask: Option<NdArray>,
}

/// An option of [`AxisOptions`]. Each function takes some of them, and returns an error for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisOption {
    /// [`AxisOptions::keepdims`].
    KeepDims,
    /// [`AxisOptions::dtype`].
    DType,
    /// [`AxisOptions::correction`].
    Correction,
    /// [`AxisOptions::descending`].
    Descending,
    /// [`AxisOptions::initial`].
    Initial,
    /// [`AxisOptions::only_where`].
    Where,
}
use AxisOption::{Correction, DType as DTypeOption, Initial, KeepDims, Where};

/// Returns the options [`AxisOptions`] of a reduction over `axes`, to be extended by methods such as [`AxisOptions::keepdims`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, axis};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(a.sum(axis(0).keepdims())?.shape(), [1, 2]);
/// # Ok(())
/// # }
/// ```
pub fn axis(axes: impl Into<AxisOptions>) -> AxisOptions {
    axes.into()
}

impl AxisOptions {
    /// Keeps reduced axes with extent 1 (`keepdims=True`), so that the result broadcasts: `a - a.mean(axis(-1).keepdims())?`.
    pub fn keepdims(mut self) -> AxisOptions {
        self.keepdims = true;
        self
    }
    /// Sets the dtype of computation and result (`dtype=`), for `sum`, `prod`, `mean`, `var`, `std`, `cumsum` and `cumprod`.
    pub fn dtype(mut self, dtype: DType) -> AxisOptions {
        self.dtype = Some(dtype);
        self
    }
    /// Sets the number that `var` and `std` subtract from the number of elements to get the divisor (`correction=`, `ddof=`).
    pub fn correction(mut self, correction: impl Into<f64>) -> AxisOptions {
        self.correction = Some(correction.into());
        self
    }
    /// Sorts in descending order (`descending=True`), for sorts and partitions.
    pub fn descending(mut self) -> AxisOptions {
        self.descending = true;
        self
    }
    /// Sets the value with which a reduction begins (`initial=`). A reduction of no elements returns it.
    pub fn initial(mut self, initial: impl Into<Scalar>) -> AxisOptions {
        self.selection.get_or_insert_default().initial = Some(initial.into());
        self
    }
    /// Reduces only the elements at which `mask` is true (`where=`). The mask broadcasts to the array.
    ///
    /// The mask is fused into the reduction. Minima and maxima need [`AxisOptions::initial`] too.
    pub fn only_where(mut self, mask: &NdArray) -> AxisOptions {
        self.selection.get_or_insert_default().mask = Some(mask.clone());
        self
    }
    /// Checks that the function `op` takes every option that is set, and returns the options unchanged. `options` lists the options that
    /// the function takes.
    ///
    /// # Errors
    /// [`Error::Value`] for an option that is not in `options`.
    pub fn check_accepted_options(self, op: &'static str, options: &[AxisOption]) -> Result<AxisOptions> {
        let set = [
            (self.keepdims, KeepDims, "keepdims"),
            (self.dtype.is_some(), DTypeOption, "dtype"),
            (self.correction.is_some(), Correction, "correction"),
            (self.descending, AxisOption::Descending, "descending"),
            (self.requested_initial().is_some(), Initial, "initial"),
            (self.mask().is_some(), Where, "where"),
        ];
        match set.iter().find(|(is_set, option, _)| *is_set && !options.contains(option)) {
            None => Ok(self),
            Some((_, _, name)) => Err(Error::value(op, format!("takes no option '{name}'"))),
        }
    }
    /// Returns the axes as passed, or `None` for all axes.
    pub fn axes(&self) -> Option<&[isize]> {
        self.axes.as_slice()
    }
    /// Returns the reduced axes, counted from the front. As in NumPy, a 0-d array takes the numbers 0 and -1 as its axis.
    ///
    /// # Errors
    /// The errors of [`Axes::resolve`].
    pub fn resolve_axes(&self, op: &'static str, ndim: usize) -> Result<Dims> {
        self.axes.resolve_axes_allowing_scalar(op, ndim)
    }
    /// Returns whether reduced axes are kept with extent 1.
    pub fn keeps_dims(&self) -> bool {
        self.keepdims
    }
    /// Returns the dtype that [`AxisOptions::dtype`] has set, if any.
    pub fn requested_dtype(&self) -> Option<DType> {
        self.dtype
    }
    /// Returns the correction that [`AxisOptions::correction`] has set; 0 by default.
    pub fn requested_correction(&self) -> f64 {
        self.correction.unwrap_or(0.0)
    }
    /// Returns the value that [`AxisOptions::initial`] has set, if any.
    pub fn requested_initial(&self) -> Option<Scalar> {
        self.selection.as_ref()?.initial
    }
    /// Returns the mask that [`AxisOptions::only_where`] has set, if any.
    pub fn mask(&self) -> Option<&NdArray> {
        self.selection.as_ref()?.mask.as_ref()
    }
    /// Removes the dtype that [`AxisOptions::dtype`] has set, for functions that have already converted their argument.
    pub fn clear_dtype(mut self) -> AxisOptions {
        self.dtype = None;
        self
    }
    /// Returns only the axes and [`AxisOptions::keepdims`], for functions that take no other options.
    pub fn only_axes_and_keepdims(&self) -> AxisOptions {
        AxisOptions { axes: self.axes.clone(), keepdims: self.keepdims, ..AxisOptions::default() }
    }
    /// Returns whether [`AxisOptions::descending`] was set.
    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }
    /// Returns the only axis, counted from the front, or `None` for the flattened array.
    pub(crate) fn resolve_one_axis(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.resolve_one_axis(op.name(), ndim)
    }
    /// Like [`AxisOptions::resolve_one_axis`], for functions that treat axis 0 or -1 of a 0-d array as the flattened array.
    pub(crate) fn resolve_one_axis_allowing_scalar(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.resolve_one_axis_allowing_scalar(op.name(), ndim)
    }
    /// Returns an error if one of the requested axes is out of bounds. A 0-d array has no valid axis.
    pub(super) fn check_axes(&self, op: Op, ndim: usize) -> Result<()> {
        self.axes.resolve(op.name(), ndim).map(|_| ())
    }
}

/// Converts axes to `AxisOptions` without other options.
impl<T: Into<Axes>> From<T> for AxisOptions {
    #[inline]
    fn from(axes: T) -> AxisOptions {
        AxisOptions { axes: axes.into(), ..AxisOptions::default() }
    }
}

impl FromArgs for AxisOptions {
    /// Reads those of the parameters `axis`, `keepdims`, `dtype`, `correction`, `ddof`, `descending`, `kind`, `initial` and `where` that
    /// the signature of the function has.
    fn from_args(args: &Args, _name: &str) -> Result<AxisOptions> {
        let known = ["quicksort", "mergesort", "heapsort", "stable"];
        match args.get("kind") {
            Some(Value::Str(kind)) if known.contains(&kind.as_str()) => {} // every sort is stable
            None => {}
            Some(_) => return Err(Error::value(args.op(), "kind is one of 'quicksort', 'mergesort', 'heapsort' and 'stable'")),
        }
        if args.get("kind").is_some() && args.get("stable").is_some() {
            return Err(Error::value(args.op(), "`kind` and keyword parameters can't be provided at the same time. Use only one of them."));
        }
        let correction = args.get("correction").map(|_| args.scalar("correction")).transpose()?;
        args.reject_none("ddof")?;
        let ddof = args.get("ddof").map(|_| args.scalar("ddof")).transpose()?;
        if correction.is_some() && ddof.is_some_and(|ddof| ddof.as_bool()) {
            return Err(Error::value(args.op(), "ddof and correction can't be provided simultaneously."));
        }
        Ok(AxisOptions {
            axes: Axes::from_args(args, "axis")?,
            keepdims: args.bool_or("keepdims", false)?,
            dtype: args.dtype("dtype")?,
            correction: correction.or(ddof).map(|number| number.as_f64()),
            descending: args.bool_or("descending", false)?,
            selection: InitialValueAndMask::from_args(args)?.map(Box::new),
        })
    }
}

impl InitialValueAndMask {
    fn from_args(args: &Args) -> Result<Option<InitialValueAndMask>> {
        let initial = args.get("initial").map(|_| args.scalar("initial")).transpose()?;
        let mask = match args.get("where") {
            // As in NumPy, the argument `where=None` counts as false.
            None if args.is_none("where") => Some(NdArray::scalar(false)?),
            None | Some(Value::Scalar(Scalar::Bool(true))) => None,
            Some(mask) => Some(mask.array(args.op())?.astype(DType::Bool)?),
        };
        Ok((initial.is_some() || mask.is_some()).then_some(InitialValueAndMask { initial, mask }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_function_lacks_are_errors() {
        let why = |over: AxisOptions, options: &[AxisOption]| over.check_accepted_options("f", options).unwrap_err().to_string();
        assert_eq!(why(axis(0).correction(1), &[KeepDims, DTypeOption]), "[f] takes no option 'correction'");
        assert_eq!(why(axis(0).keepdims().dtype(DType::F32), &[KeepDims]), "[f] takes no option 'dtype'");
        assert_eq!(why(axis(0).descending(), &[]), "[f] takes no option 'descending'");
        assert!(axis(0).keepdims().correction(0.5).check_accepted_options("f", &[Correction, KeepDims]).is_ok());
    }
}
