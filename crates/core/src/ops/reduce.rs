//! Reductions over any axes: result shapes and dtypes, empty inputs, and composed reductions.
//!
//! A reduction with `keepdims` may be deferred like an elementwise operation. Devices with row programs then compute several
//! reductions of an expression in one pass over its rows.
//!
//! # Examples
//! ```
//! # use cuprum_backend_cpu as _;
//! # extern crate cuprum_core as cuprum;
//! use cuprum::{DType, NdArray, axis};
//! # fn main() -> cuprum::Result<()> {
//! let a = NdArray::from_vec([1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
//! assert_eq!(a.sum(())?.item()?, 10.0);                              // a.sum()
//! assert_eq!(a.sum((0, 1))?.item_as::<f32>()?, 10.0);                // a.sum(axis=(0, 1))
//! assert_eq!(a.sum(-1)?.to_vec::<f32>()?, [3.0, 7.0]);               // a.sum(axis=-1)
//! assert_eq!(a.mean(axis(0).keepdims())?.shape(), &[1, 2]);          // a.mean(axis=0, keepdims=True)
//! assert_eq!(a.sum(axis([0, 1]).dtype(DType::F64))?.dtype(), DType::F64);
//! # Ok(())
//! # }
//! ```

use crate::call;
use smallvec::SmallVec;

use crate::arguments::Axes;
use crate::array::{NdArray, StoredArray};
use crate::call::{OutputSpec, Work};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Fold, FoldKind, fusion_enabled};
use crate::function::FromArgs;
use crate::layout::{Dims, Layout};
use crate::op::{Capability, Combine, Family, Identity, Op, ReductionDef};
use crate::ops::elementwise::{ADD, DIVIDE, FMAX, FMIN, IMAG, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY, REAL, SQUARE, SUBTRACT};
use crate::ops::value::{Args, Value};
use crate::plan::reduce::ReducePlan;
use crate::plan::rows;
use crate::program::{Program, StepKind};
use crate::scalar::Scalar;
use cuprum_macros::{free_functions, numpy};

/// Options of a function along axes, such as a reduction: the axes, whether to keep them with extent 1, and the dtype.
#[derive(Clone, Debug, Default)]
pub struct Over {
    axes: Axes,
    keepdims: bool,
    dtype: Option<DType>,
    correction: Option<f64>,
    descending: bool,
}

/// An option of [`Over`]. Each function takes some of them, and returns an error for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverOption {
    /// [`Over::keepdims`].
    KeepDims,
    /// [`Over::dtype`].
    DType,
    /// [`Over::correction`].
    Correction,
    /// [`Over::descending`].
    Descending,
}
use OverOption::{Correction, DType as DTypeOption, KeepDims};

/// Returns the options [`Over`] of a reduction over `axes`, to be extended by methods such as [`Over::keepdims`].
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
pub fn axis(axes: impl Into<Over>) -> Over {
    axes.into()
}

impl Over {
    /// Keeps reduced axes with extent 1 (`keepdims=True`), so that the result broadcasts: `a - a.mean(axis(-1).keepdims())?`.
    pub fn keepdims(mut self) -> Over {
        self.keepdims = true;
        self
    }
    /// Sets the dtype of computation and result (`dtype=`), for reductions and for `cumsum` and `cumprod`.
    pub fn dtype(mut self, dtype: DType) -> Over {
        self.dtype = Some(dtype);
        self
    }
    /// Sets the degrees of freedom subtracted from the divisor of `var` and `std` (`correction=`, `ddof=`).
    pub fn correction(mut self, correction: impl Into<f64>) -> Over {
        self.correction = Some(correction.into());
        self
    }
    /// Sorts in descending order (`descending=True`), for `sort` and `argsort`.
    pub fn descending(mut self) -> Over {
        self.descending = true;
        self
    }
    /// Returns these options if the function `op` takes all that are set.
    ///
    /// # Errors
    /// [`Error::Value`] for an option that is not in `options`.
    pub fn taking(self, op: &'static str, options: &[OverOption]) -> Result<Over> {
        let set = [
            (self.keepdims, KeepDims, "keepdims"),
            (self.dtype.is_some(), DTypeOption, "dtype"),
            (self.correction.is_some(), Correction, "correction"),
            (self.descending, OverOption::Descending, "descending"),
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
    /// Returns whether reduced axes are kept with extent 1.
    pub fn keeps_dims(&self) -> bool {
        self.keepdims
    }
    /// Returns the dtype that [`Over::dtype`] has set, if any.
    pub fn requested_dtype(&self) -> Option<DType> {
        self.dtype
    }
    /// Returns the correction that [`Over::correction`] has set; 0 by default.
    pub fn requested_correction(&self) -> f64 {
        self.correction.unwrap_or(0.0)
    }
    /// Returns the axes and [`Over::keepdims`] without other options, for a composition of functions that take fewer options.
    pub fn without_options(&self) -> Over {
        Over { axes: self.axes.clone(), keepdims: self.keepdims, ..Over::default() }
    }
    /// Returns whether [`Over::descending`] was set.
    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }
    /// Returns the only axis, counted from the front, or `None` for the flattened array.
    pub(crate) fn one_axis(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.one_axis(op.name(), ndim)
    }
    /// [`Over::one_axis`] for functions that treat axis 0 or -1 of a 0-d array as the flattened array.
    pub(crate) fn one_axis_of_scalar(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.one_axis_of_scalar(op.name(), ndim)
    }
    /// Returns an error if an axis is out of bounds, including axes of a 0-d array.
    fn check_axes(&self, op: Op, ndim: usize) -> Result<()> {
        self.axes.resolve(op.name(), ndim).map(|_| ())
    }
}

/// Everything that converts to [`Axes`] is an `Over` without options.
impl<T: Into<Axes>> From<T> for Over {
    #[inline]
    fn from(axes: T) -> Over {
        Over { axes: axes.into(), ..Over::default() }
    }
}

impl FromArgs for Over {
    /// Reads the parameters of the signature among `axis`, `keepdims`, `dtype`, `correction`, `ddof`, `descending` and `kind`.
    fn from_args(args: &Args, _name: &str) -> Result<Over> {
        let known = ["quicksort", "mergesort", "heapsort", "stable"];
        match args.get("kind") {
            Some(Value::Str(kind)) if known.contains(&kind.as_str()) => {} // every sort is stable
            None => {}
            Some(_) => return Err(Error::value(args.op(), "kind is one of 'quicksort', 'mergesort', 'heapsort' and 'stable'")),
        }
        Ok(Over {
            axes: Axes::from_args(args, "axis")?,
            keepdims: args.bool_or("keepdims", false)?,
            dtype: args.dtype("dtype")?,
            correction: match args.get("correction").or(args.get("ddof")) {
                None => None,
                Some(_) => Some(args.scalar_or("correction", args.scalar_or("ddof", 0)?)?.as_f64()),
            },
            descending: args.bool_or("descending", false)?,
        })
    }
}

/// Sums; 16-bit floats are added in float32.
pub(super) static SUMS: ReductionDef = ReductionDef::new(ADD, Scalar::Int(0)).wide();
/// Products; 16-bit floats are multiplied in float32.
pub(super) static PRODUCTS: ReductionDef = ReductionDef::new(MULTIPLY, Scalar::Int(1)).wide();
/// Minima; NaN if any element is NaN.
pub(super) static MINIMA: ReductionDef = ReductionDef::selecting(MINIMUM, Identity::Highest);
/// Maxima; NaN if any element is NaN.
pub(super) static MAXIMA: ReductionDef = ReductionDef::selecting(MAXIMUM, Identity::Lowest);

super::ops! { Reduce after elementwise:
    SUM "sum" 1 by &SUMS;
    PROD "prod" 1 by &PRODUCTS;
    MEAN "mean" 1;
    MIN "min" 1 by &MINIMA;
    MAX "max" 1 by &MAXIMA;
    ANY "any" 1 by &ReductionDef::new(LOGICAL_OR, Scalar::Bool(false));
    ALL "all" 1 by &ReductionDef::new(LOGICAL_AND, Scalar::Bool(true));
    ARGMIN "argmin" 1 by &ReductionDef::selecting(MINIMUM, Identity::Highest).index();
    ARGMAX "argmax" 1 by &ReductionDef::selecting(MAXIMUM, Identity::Lowest).index();
    NANMIN "nanmin" 1 by &ReductionDef::selecting(FMIN, Identity::NanOrHighest).outside_rows();
    NANMAX "nanmax" 1 by &ReductionDef::selecting(FMAX, Identity::NanOrLowest).outside_rows();
    COUNT_NONZERO "count_nonzero" 1 by &ReductionDef::new(ADD, Scalar::Int(0)).in_dtype(DType::I64);
    VAR "var" 1 by &ReductionDef::MOMENTS;
    STD "std" 1;
    SEGMENT_SUM "segment_sum" 2 by &SUMS;
    SEGMENT_PROD "segment_prod" 2 by &PRODUCTS;
    SEGMENT_MIN "segment_min" 2 by &MINIMA;
    SEGMENT_MAX "segment_max" 2 by &MAXIMA;
}

/// Returns the description of a reduction.
///
/// # Errors
/// An operation that is not a reduction.
pub(crate) fn definition(op: Op) -> Result<&'static ReductionDef> {
    op.reduction().ok_or_else(|| Error::value(op.name(), "the operation is not a reduction"))
}

/// Checks axes, handles empty inputs, plans and dispatches. `value` is the dtype of elements, `out` that of results.
pub(crate) fn reduce(op: Op, a: &NdArray, over: &Over, value: DType, out: DType) -> Result<NdArray> {
    let (name, reduction) = (op.name(), definition(op)?);
    let axes = over.axes.resolve_of_scalar(name, a.ndim())?;
    if reduction.returns_index {
        over.one_axis_of_scalar(op, a.ndim())?;
    }
    let (mut shape, mut reduced) = (Dims::new(), 1usize);
    for (axis, &n) in a.shape().iter().enumerate() {
        if !axes.contains(&axis) {
            shape.push(n);
            continue;
        }
        reduced *= n;
        if over.keepdims {
            shape.push(1);
        }
    }
    if reduced == 0 {
        return reduce_empty(op, reduction, a, &shape, out);
    }
    if over.keepdims && should_defer(reduction, a, &axes, reduced)? {
        let kind = if reduction.combine == Combine::Moments { &VARIANCE } else { &PLAIN };
        return Ok(Fold { op, argument: a.clone(), axes, value, kind }.deferred(shape, out));
    }
    run(op, a, &axes, value, OutputSpec::contiguous(out, &shape)?)
}

/// Returns the identity for each result of a reduction over no elements. An op without identity is an error even if there is no result.
#[cold]
fn reduce_empty(op: Op, reduction: &ReductionDef, a: &NdArray, shape: &[usize], out: DType) -> Result<NdArray> {
    match reduction.allows_empty {
        true => super::creation::full_on(a.device(), shape, reduction.identity.of(out), out),
        false => Err(Error::shape(op.name(), "zero-size array to a reduction which has no identity", &[a.shape()])),
    }
}

/// Plans and dispatches a reduction whose axes are checked.
pub(crate) fn run(op: Op, a: &NdArray, axes: &[usize], value: DType, output: OutputSpec) -> Result<NdArray> {
    let reduction = definition(op)?;
    a.with_prologue(Family::Reduce, value, |program, inputs| {
        let mut layouts = SmallVec::<[&Layout; 4]>::new();
        inputs.iter().for_each(|input| layouts.push(input.layout()));
        let plan = ReducePlan::new(a.shape(), &layouts, axes, reduction.returns_index);
        let work = Work::Reduce(call::Reduce { program, reduction, axes, plan: &plan, acc: reduction.accumulator.of(value) });
        super::run_one(op, a.device(), inputs, output, work)
    })
}

/// A deferred reduction other than a variance. It is one step of a row program, the fused kernel of an expression with reductions along
/// rows.
static PLAIN: FoldKind = FoldKind {
    nodes: 3,
    push: |fold, program, values, _| {
        let acc = fold.op.reduction().map_or(fold.value, |reduction| reduction.accumulator.of(fold.value));
        program.push_once(StepKind::Fold(fold.op), acc, &[values])
    },
    run: run_fold,
};

/// A deferred variance, which is several steps of a row program.
static VARIANCE: FoldKind =
    FoldKind { nodes: 8, push: |_, program, values, length| program.push_squared_distances(values, length), run: run_fold };

fn run_fold(fold: &Fold, output: OutputSpec) -> Result<StoredArray> {
    run(fold.op, &fold.argument, &fold.axes, fold.value, output)?.stored()
}

/// Returns whether a reduction with `keepdims` is deferred. The device must run row programs, and a row must fit into a kernel.
fn should_defer(reduction: &ReductionDef, a: &NdArray, axes: &[usize], length: usize) -> Result<bool> {
    let is_over_last_axes = axes.len() <= a.ndim() && (a.ndim() - axes.len()..a.ndim()).all(|axis| axes.contains(&axis));
    let is_row_reduction =
        reduction.in_rows && is_over_last_axes && (2..=rows::MAX_LENGTH).contains(&length) && a.size() > 0 && fusion_enabled();
    Ok(is_row_reduction && dispatch::declares(Capability::RowPrograms, Family::Rows, a.device())?)
}

/// Returns the dtypes in which means and variances are computed and returned.
///
/// Integers give float64. 16-bit floats are computed in float32.
fn mean_dtypes(a: &NdArray, requested: Option<DType>) -> (DType, DType) {
    let out = requested.unwrap_or(if a.dtype().is_inexact() { a.dtype() } else { DType::F64 });
    let work = if matches!(out, DType::F16 | DType::BF16) { DType::F32 } else { out };
    (work, out)
}

/// Returns the sum of squared distances from the mean, in two passes.
fn squared_distances(x: &NdArray, over: &Over) -> Result<NdArray> {
    let mean = x.mean(Over { keepdims: true, dtype: None, correction: None, ..over.clone() })?;
    let d = super::elementwise::subtract(x, &mean)?;
    let squares = if x.dtype().is_complex() {
        let (re, im) = (d.real()?, d.imag()?);
        super::elementwise::add(re.square()?, im.square()?)?
    } else {
        d.square()?
    };
    reduce(SUM, &squares, over, squares.dtype(), squares.dtype())
}

impl Program {
    /// Appends the sum of squared distances from the mean along a row of `count` elements, as `var` needs it.
    ///
    /// The result has the real dtype. Two passes lose no digits if the mean is large.
    pub fn push_squared_distances(&mut self, x: u16, count: usize) -> u16 {
        let dtype = self.steps[x as usize].dtype;
        let real = dtype.real();
        let sum = self.push_once(StepKind::Fold(SUM), dtype, &[x]);
        let count = self.push_param(Scalar::Float(count as f64), dtype);
        let mean = self.push_once(StepKind::Apply(DIVIDE), dtype, &[sum, count]);
        let distance = self.push_once(StepKind::Apply(SUBTRACT), dtype, &[x, mean]);
        let squares = if dtype.is_complex() {
            let [re, im] = [REAL, IMAG].map(|part| self.push_once(StepKind::Apply(part), real, &[distance]));
            let [re, im] = [re, im].map(|part| self.push_once(StepKind::Apply(SQUARE), real, &[part]));
            self.push_once(StepKind::Apply(ADD), real, &[re, im])
        } else {
            self.push_once(StepKind::Apply(SQUARE), real, &[distance])
        };
        self.push_once(StepKind::Fold(SUM), real, &[squares])
    }
}

/// Returns the smallest element that is not NaN (`numpy.nanmin`); NaN if there is none.
///
/// Complex numbers compare by real part, then imaginary part.
///
/// # Errors
/// No elements, and the errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, nanmin};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[2.0, f64::NAN, 1.0])?;
/// assert_eq!(nanmin(&a, ())?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmin(a, axis=None, *, keepdims=False)")]
pub fn nanmin(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    reduce(NANMIN, a, &over.into().taking(NANMIN.name(), &[KeepDims])?, a.dtype(), a.dtype())
}

/// Returns the largest element that is not NaN (`numpy.nanmax`); NaN if there is none.
///
/// Complex numbers compare by real part, then imaginary part.
///
/// # Errors
/// No elements, and the errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, nanmax};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[2.0, f64::NAN, 1.0])?;
/// assert_eq!(nanmax(&a, ())?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmax(a, axis=None, *, keepdims=False)")]
pub fn nanmax(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    reduce(NANMAX, a, &over.into().taking(NANMAX.name(), &[KeepDims])?, a.dtype(), a.dtype())
}

/// # Reductions
///
/// Each takes the axes as `()`, a number, a list, or [`axis(..)`](axis()) with options.
#[free_functions]
impl NdArray {
    /// Returns the sum over `over` (`numpy.sum`); 0 for no elements.
    ///
    /// Bool and integers are summed in int64 or uint64 and wrap. float16 is summed in float32.
    ///
    /// # Errors
    /// Axes that are out of bounds or repeated, or errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.sum(())?.item()?, 10.0);
    /// assert_eq!(a.sum(-1)?.to_vec::<f64>()?, [3.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("sum(a, axis=None, dtype=None, out=None, *, keepdims=False)", method)]
    pub fn sum(&self, over: impl Into<Over>) -> Result<NdArray> {
        let over = over.into().taking(SUM.name(), &[KeepDims, DTypeOption])?;
        match over.dtype.unwrap_or(self.dtype().sum_dtype()) {
            DType::Bool => reduce(ANY, self, &over, DType::Bool, DType::Bool), // `add` of bool is "or"
            dtype => reduce(SUM, self, &over, dtype, dtype),
        }
    }

    /// Returns the product over `over` (`numpy.prod`); 1 for no elements. The dtypes are those of [`NdArray::sum`].
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.prod(0)?.to_vec::<f64>()?, [3.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("prod(a, axis=None, dtype=None, out=None, *, keepdims=False)", method)]
    pub fn prod(&self, over: impl Into<Over>) -> Result<NdArray> {
        let over = over.into().taking(PROD.name(), &[KeepDims, DTypeOption])?;
        match over.dtype.unwrap_or(self.dtype().sum_dtype()) {
            DType::Bool => reduce(ALL, self, &over, DType::Bool, DType::Bool), // `multiply` of bool is "and"
            dtype => reduce(PROD, self, &over, dtype, dtype),
        }
    }

    /// Returns the arithmetic mean (`numpy.mean`), in float64 for integers; NaN for no elements.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.mean(0)?.to_vec::<f64>()?, [2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("mean(a, axis=None, dtype=None, out=None, *, keepdims=False)", method)]
    pub fn mean(&self, over: impl Into<Over>) -> Result<NdArray> {
        let over = over.into().taking(MEAN.name(), &[KeepDims, DTypeOption])?;
        over.check_axes(MEAN, self.ndim())?;
        let (work, out) = mean_dtypes(self, over.dtype);
        let sum = reduce(SUM, self, &over, work, work)?;
        let count = if sum.size() == 0 { 1.0 } else { self.size() as f64 / sum.size() as f64 };
        super::elementwise::divide(&sum, count)?.astype(out)
    }

    /// Returns the variance: the sum of squared distances from the mean, divided by `n - correction` (`numpy.var`).
    ///
    /// The algorithm, and so the last bits, may differ between a variance computed alone and one in a fused expression.
    /// [`with_fusion`](crate::with_fusion) disables fusion. On the CPU, rows of up to 8 KiB use NumPy's two passes in both cases. Longer
    /// rows alone use one pass (Chan, Golub and LeVeque, 1983).
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, axis};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.var(1)?.to_vec::<f64>()?, [0.25, 0.25]);
    /// assert_eq!(a.var(axis(1).correction(1.0))?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("var(a, axis=None, dtype=None, out=None, *, ddof=0, correction=None, keepdims=False)", method)]
    pub fn var(&self, over: impl Into<Over>) -> Result<NdArray> {
        let over = over.into().taking(VAR.name(), &[KeepDims, DTypeOption, Correction])?;
        over.check_axes(VAR, self.ndim())?;
        let (work, out) = mean_dtypes(self, over.dtype);
        let x = self.astype(work)?;
        let sum = match dispatch::declares(Capability::Variance, Family::Reduce, self.device())? && self.size() > 0 {
            true => reduce(VAR, &x, &over, work, work.real())?,
            false => squared_distances(&x, &over)?,
        };
        let count = if sum.size() == 0 { 1.0 } else { self.size() as f64 / sum.size() as f64 };
        super::elementwise::divide(&sum, (count - over.correction.unwrap_or(0.0)).max(0.0))?.astype(out.real())
    }

    /// Returns the standard deviation, the square root of [`NdArray::var`] (`numpy.std`).
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.std(1)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("std(a, axis=None, dtype=None, out=None, *, ddof=0, correction=None, keepdims=False)", method)]
    pub fn std(&self, over: impl Into<Over>) -> Result<NdArray> {
        let over = over.into().taking(STD.name(), &[KeepDims, DTypeOption, Correction])?;
        let (work, out) = mean_dtypes(self, over.dtype);
        self.var(Over { dtype: Some(work), ..over })?.sqrt()?.astype(out.real())
    }

    /// Returns the smallest element (`numpy.min`).
    ///
    /// NaN if any element is NaN. Complex numbers compare by real part, then imaginary part.
    ///
    /// # Errors
    /// No elements, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.min(0)?.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("min(a, axis=None, out=None, *, keepdims=False)", aliases("amin"), method)]
    pub fn min(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(MIN, self, &over.into().taking(MIN.name(), &[KeepDims])?, self.dtype(), self.dtype())
    }

    /// Returns the largest element (`numpy.max`).
    ///
    /// NaN if any element is NaN. Complex numbers compare by real part, then imaginary part.
    ///
    /// # Errors
    /// No elements, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.max(())?.item()?, 4.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("max(a, axis=None, out=None, *, keepdims=False)", aliases("amax"), method)]
    pub fn max(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(MAX, self, &over.into().taking(MAX.name(), &[KeepDims])?, self.dtype(), self.dtype())
    }

    /// Returns whether any element is non-zero (`numpy.any`); NaN is non-zero.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.greater(3)?.any(1)?.to_vec::<bool>()?, [false, true]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("any(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn any(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(ANY, self, &over.into().taking(ANY.name(), &[KeepDims])?, DType::Bool, DType::Bool)
    }

    /// Returns whether all elements are non-zero (`numpy.all`); NaN is non-zero.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.greater(2)?.all(1)?.to_vec::<bool>()?, [false, true]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("all(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn all(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(ALL, self, &over.into().taking(ALL.name(), &[KeepDims])?, DType::Bool, DType::Bool)
    }

    /// Returns the int64 index of the first smallest element, along one axis or in the flattened array (`numpy.argmin`).
    ///
    /// The first NaN counts as smallest.
    ///
    /// # Errors
    /// No elements, more than one axis, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.argmin(1)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argmin(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn argmin(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(ARGMIN, self, &over.into().taking(ARGMIN.name(), &[KeepDims])?, self.dtype(), DType::I64)
    }

    /// Returns the int64 index of the first largest element, along one axis or in the flattened array (`numpy.argmax`).
    ///
    /// The first NaN counts as largest.
    ///
    /// # Errors
    /// No elements, more than one axis, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.argmax(())?.item()?, 3);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argmax(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn argmax(&self, over: impl Into<Over>) -> Result<NdArray> {
        reduce(ARGMAX, self, &over.into().taking(ARGMAX.name(), &[KeepDims])?, self.dtype(), DType::I64)
    }
}

/// Returns the int64 number of non-zero elements (`numpy.count_nonzero`).
///
/// # Errors
/// The errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, count_nonzero};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[0, 3, 0, 5])?;
/// assert_eq!(count_nonzero(&a, ())?.item()?, 2);
/// # Ok(())
/// # }
/// ```
#[numpy("count_nonzero(a, axis=None, *, keepdims=False)")]
pub fn count_nonzero(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    reduce(COUNT_NONZERO, a, &over.into().taking(COUNT_NONZERO.name(), &[KeepDims])?, DType::Bool, DType::I64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::scan::CUMMAX;

    #[test]
    fn segments_and_scans_share_the_description() {
        let max = MAX.reduction().unwrap();
        assert!([SEGMENT_MAX, CUMMAX].iter().all(|op| std::ptr::eq(op.reduction().unwrap(), max)));
        assert!(max.depends_on_order(DType::C64) && !max.depends_on_order(DType::F32) && !max.allows_empty);
        assert_ne!(max.elementwise(), MIN.reduction().unwrap().elementwise());
        assert_eq!(MEAN.reduction(), None);
    }

    #[test]
    fn options_that_a_function_lacks_are_errors() {
        let why = |over: Over, options: &[OverOption]| over.taking("f", options).unwrap_err().to_string();
        assert_eq!(why(axis(0).correction(1), &[KeepDims, DTypeOption]), "[f] takes no option 'correction'");
        assert_eq!(why(axis(0).keepdims().dtype(DType::F32), &[KeepDims]), "[f] takes no option 'dtype'");
        assert_eq!(why(axis(0).descending(), &[]), "[f] takes no option 'descending'");
        assert!(axis(0).keepdims().correction(0.5).taking("f", &[Correction, KeepDims]).is_ok());
    }

    #[test]
    fn accumulators_follow_the_rule() {
        let accumulator = |op: Op, value| op.reduction().unwrap().accumulator.of(value);
        assert_eq!(accumulator(SUM, DType::BF16), DType::F32);
        assert_eq!(accumulator(MAX, DType::BF16), DType::BF16);
        assert_eq!(accumulator(COUNT_NONZERO, DType::Bool), DType::I64);
    }
}
