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
use crate::index::Item;
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
pub struct AxisOptions {
    axes: Axes,
    keepdims: bool,
    dtype: Option<DType>,
    correction: Option<f64>,
    descending: bool,
    selection: Option<Box<Selection>>,
}

/// The options [`AxisOptions::initial`] and [`AxisOptions::only_where`], which few calls have.
#[derive(Clone, Debug, Default)]
struct Selection {
    initial: Option<Scalar>,
    mask: Option<NdArray>,
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
    /// Sets the dtype of computation and result (`dtype=`), for reductions and for `cumsum` and `cumprod`.
    pub fn dtype(mut self, dtype: DType) -> AxisOptions {
        self.dtype = Some(dtype);
        self
    }
    /// Sets the degrees of freedom subtracted from the divisor of `var` and `std` (`correction=`, `ddof=`).
    pub fn correction(mut self, correction: impl Into<f64>) -> AxisOptions {
        self.correction = Some(correction.into());
        self
    }
    /// Sorts in descending order (`descending=True`), for `sort` and `argsort`.
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
    /// Returns these options if the function `op` takes all that are set.
    ///
    /// # Errors
    /// [`Error::Value`] for an option that is not in `options`.
    pub fn accepting_only(self, op: &'static str, options: &[AxisOption]) -> Result<AxisOptions> {
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
    /// Returns the options without [`AxisOptions::dtype`], for functions that have converted their argument.
    pub fn without_dtype(mut self) -> AxisOptions {
        self.dtype = None;
        self
    }
    /// Returns the axes and [`AxisOptions::keepdims`] without the other options, as arguments of functions that take fewer options.
    pub fn without_options(&self) -> AxisOptions {
        AxisOptions { axes: self.axes.clone(), keepdims: self.keepdims, ..AxisOptions::default() }
    }
    /// Returns whether [`AxisOptions::descending`] was set.
    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }
    /// Returns the only axis, counted from the front, or `None` for the flattened array.
    pub(crate) fn one_axis(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.one_axis(op.name(), ndim)
    }
    /// [`AxisOptions::one_axis`] for functions that treat axis 0 or -1 of a 0-d array as the flattened array.
    pub(crate) fn one_axis_allowing_scalar(&self, op: Op, ndim: usize) -> Result<Option<usize>> {
        self.axes.one_axis_allowing_scalar(op.name(), ndim)
    }
    /// Returns an error if an axis is out of bounds, including axes of a 0-d array.
    fn check_axes(&self, op: Op, ndim: usize) -> Result<()> {
        self.axes.resolve(op.name(), ndim).map(|_| ())
    }
}

/// Everything that converts to [`Axes`] is an `AxisOptions` without options.
impl<T: Into<Axes>> From<T> for AxisOptions {
    #[inline]
    fn from(axes: T) -> AxisOptions {
        AxisOptions { axes: axes.into(), ..AxisOptions::default() }
    }
}

impl FromArgs for AxisOptions {
    /// Reads the parameters of the signature among `axis`, `keepdims`, `dtype`, `correction`, `ddof`, `descending`, `kind`, `initial` and
    /// `where`.
    fn from_args(args: &Args, _name: &str) -> Result<AxisOptions> {
        let known = ["quicksort", "mergesort", "heapsort", "stable"];
        match args.get("kind") {
            Some(Value::Str(kind)) if known.contains(&kind.as_str()) => {} // every sort is stable
            None => {}
            Some(_) => return Err(Error::value(args.op(), "kind is one of 'quicksort', 'mergesort', 'heapsort' and 'stable'")),
        }
        Ok(AxisOptions {
            axes: Axes::from_args(args, "axis")?,
            keepdims: args.bool_or("keepdims", false)?,
            dtype: args.dtype("dtype")?,
            correction: match args.get("correction").or(args.get("ddof")) {
                None => None,
                Some(_) => Some(args.scalar_or("correction", args.scalar_or("ddof", 0)?)?.as_f64()),
            },
            descending: args.bool_or("descending", false)?,
            selection: Selection::from_args(args)?.map(Box::new),
        })
    }
}

impl Selection {
    fn from_args(args: &Args) -> Result<Option<Selection>> {
        let initial = args.get("initial").map(|_| args.scalar("initial")).transpose()?;
        let mask = match args.get("where") {
            None | Some(Value::Scalar(Scalar::Bool(true))) => None,
            Some(mask) => Some(mask.array(args.op())?.astype(DType::Bool)?),
        };
        Ok((initial.is_some() || mask.is_some()).then_some(Selection { initial, mask }))
    }
}

/// Sums; 16-bit floats are added in float32.
pub(super) static SUM_REDUCTION: ReductionDef = ReductionDef::new(ADD, Scalar::Int(0)).accumulating_wide();
/// Products; 16-bit floats are multiplied in float32.
pub(super) static PRODUCT_REDUCTION: ReductionDef = ReductionDef::new(MULTIPLY, Scalar::Int(1)).accumulating_wide();
/// Minima; NaN if any element is NaN.
pub(super) static MIN_REDUCTION: ReductionDef = ReductionDef::selecting(MINIMUM, Identity::Highest);
/// Maxima; NaN if any element is NaN.
pub(super) static MAX_REDUCTION: ReductionDef = ReductionDef::selecting(MAXIMUM, Identity::Lowest);

super::ops! { Reduce after elementwise:
    SUM "sum" 1 by &SUM_REDUCTION;
    PROD "prod" 1 by &PRODUCT_REDUCTION;
    MEAN "mean" 1;
    MIN "min" 1 by &MIN_REDUCTION;
    MAX "max" 1 by &MAX_REDUCTION;
    ANY "any" 1 by &ReductionDef::new(LOGICAL_OR, Scalar::Bool(false));
    ALL "all" 1 by &ReductionDef::new(LOGICAL_AND, Scalar::Bool(true));
    ARGMIN "argmin" 1 by &ReductionDef::selecting(MINIMUM, Identity::Highest).index();
    ARGMAX "argmax" 1 by &ReductionDef::selecting(MAXIMUM, Identity::Lowest).index();
    NANMIN "nanmin" 1 by &ReductionDef::selecting(FMIN, Identity::NanOrHighest).excluded_from_row_programs();
    NANMAX "nanmax" 1 by &ReductionDef::selecting(FMAX, Identity::NanOrLowest).excluded_from_row_programs();
    COUNT_NONZERO "count_nonzero" 1 by &ReductionDef::new(ADD, Scalar::Int(0)).accumulating_in(DType::I64);
    VAR "var" 1 by &ReductionDef::MOMENTS;
    STD "std" 1;
    SEGMENT_SUM "segment_sum" 2 by &SUM_REDUCTION;
    SEGMENT_PROD "segment_prod" 2 by &PRODUCT_REDUCTION;
    SEGMENT_MIN "segment_min" 2 by &MIN_REDUCTION;
    SEGMENT_MAX "segment_max" 2 by &MAX_REDUCTION;
}

/// Returns the description of a reduction.
///
/// # Errors
/// An operation that is not a reduction.
pub(crate) fn reduction_definition(op: Op) -> Result<&'static ReductionDef> {
    op.reduction().ok_or_else(|| Error::value(op.name(), "the operation is not a reduction"))
}

/// Checks axes, handles empty inputs, plans and dispatches. `value` is the dtype of elements, `out` that of results.
pub(crate) fn reduce(op: Op, a: &NdArray, over: &AxisOptions, value: DType, out: DType) -> Result<NdArray> {
    let (name, reduction) = (op.name(), reduction_definition(op)?);
    if let Some(selection) = &over.selection {
        return reduce_selection(op, a, over, selection, (value, out));
    }
    let axes = over.axes.resolve_allowing_scalar(name, a.ndim())?;
    if reduction.returns_index {
        over.one_axis_allowing_scalar(op, a.ndim())?;
    }
    // A broadcast axis may have more elements than memory could hold.
    let view = if is_idempotent(reduction) { without_repeats(a, &axes)? } else { None };
    let a = view.as_ref().unwrap_or(a);
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
        let kind = if reduction.combine == Combine::Moments { &VARIANCE_FOLD } else { &SINGLE_STEP_FOLD };
        return Ok(Fold { op, argument: a.clone(), axes, value, kind }.into_deferred_array(shape, out));
    }
    dispatch_reduction(op, a, &axes, value, OutputSpec::contiguous(out, &shape)?)
}

/// Reduces the elements at which a mask is true, and combines the result with an initial value. Elements elsewhere are replaced by the
/// identity, in the same pass.
#[cold]
fn reduce_selection(op: Op, a: &NdArray, over: &AxisOptions, selection: &Selection, (value, out): (DType, DType)) -> Result<NdArray> {
    let (name, reduction) = (op.name(), reduction_definition(op)?);
    let plain = AxisOptions { selection: None, ..over.clone() };
    let combine = reduction.elementwise_combination().filter(|_| !reduction.returns_index);
    let combine = combine.ok_or_else(|| Error::value(name, "takes no `initial` and no `where`"))?;
    let selected = match &selection.mask {
        None => a.clone(),
        Some(_) if !reduction.allows_empty && selection.initial.is_none() => {
            return Err(Error::value(name, "the reduction has no identity, so `where` needs `initial`"));
        }
        Some(mask) => masked(name, a, value, mask, reduction.identity.of(value))?,
    };
    let Some(initial) = selection.initial else { return reduce(op, &selected, &plain, value, out) };
    let initial = initial.checked_for(name, out)?;
    if a.size() > 0 || reduction.allows_empty {
        let initial = super::creation::full_on_device(a.device(), &[], initial, out)?;
        return crate::expr::elementwise(combine, &[reduce(op, &selected, &plain, value, out)?.into(), initial.into()]);
    }
    // Reductions without identity are errors for no elements.
    let shape = reduce(SUM, &selected, &plain, value, value)?;
    super::creation::full_on_device(a.device(), shape.shape(), initial, out)
}

/// Returns the elements in `dtype`, with `otherwise` where the mask is false.
fn masked(op: &'static str, a: &NdArray, dtype: DType, mask: &NdArray, otherwise: Scalar) -> Result<NdArray> {
    let otherwise = super::creation::full_on_device(a.device(), &[], otherwise, dtype)?;
    let masked = super::elementwise::where_(mask, a.astype(dtype)?, otherwise)?;
    if masked.shape() == a.shape() {
        return Ok(masked);
    }
    Err(Error::shape(op, "the mask `where` does not broadcast to the array", &[a.shape(), mask.shape()]))
}

impl AxisOptions {
    /// Returns the number of elements for each result, at which the mask is true.
    fn count_where(&self, a: &NdArray, mask: &NdArray) -> Result<NdArray> {
        let mask = mask.broadcast_to(a.shape())?;
        reduce(COUNT_NONZERO, &mask, &self.without_options(), DType::Bool, DType::I64)
    }
}

/// Returns whether elements that are equal reduce to any one of them.
fn is_idempotent(reduction: &ReductionDef) -> bool {
    let is_logical = || reduction.elementwise_combination().is_some_and(|op| op == LOGICAL_AND || op == LOGICAL_OR);
    !reduction.returns_index && (reduction.selects || is_logical())
}

/// Returns a view of `a` with one element along each of `axes` whose elements are the same memory. `None` if there is no such axis.
fn without_repeats(a: &NdArray, axes: &[usize]) -> Result<Option<NdArray>> {
    if a.is_deferred() {
        return Ok(None);
    }
    let layout = a.stored_value()?.layout();
    let repeats = |axis: usize| layout.strides()[axis] == 0 && layout.shape()[axis] > 1;
    if !axes.iter().any(|&axis| repeats(axis)) {
        return Ok(None);
    }
    let item = |axis| Item::range(None, (axes.contains(&axis) && repeats(axis)).then_some(1), 1);
    let items: SmallVec<[Item; 6]> = (0..a.ndim()).map(item).collect();
    a.index(&items[..]).map(Some)
}

/// Returns the identity for each result of a reduction over no elements. A reduction without identity is an error even if the result has no
/// elements.
#[cold]
fn reduce_empty(op: Op, reduction: &ReductionDef, a: &NdArray, shape: &[usize], out: DType) -> Result<NdArray> {
    match reduction.allows_empty {
        true => super::creation::full_on_device(a.device(), shape, reduction.identity.of(out), out),
        false => Err(Error::shape(op.name(), "zero-size array to a reduction which has no identity", &[a.shape()])),
    }
}

/// Plans and dispatches a reduction whose axes are checked.
pub(crate) fn dispatch_reduction(op: Op, a: &NdArray, axes: &[usize], value: DType, output: OutputSpec) -> Result<NdArray> {
    let reduction = reduction_definition(op)?;
    a.with_fused_input(Family::Reduce, value, |program, inputs| {
        let mut layouts = SmallVec::<[&Layout; 4]>::new();
        inputs.iter().for_each(|input| layouts.push(input.layout()));
        let plan = ReducePlan::new(a.shape(), &layouts, axes, reduction.returns_index);
        let work = Work::Reduce(call::Reduce { program, reduction, axes, plan: &plan, acc: reduction.accumulator.of(value) });
        super::dispatch_single_output(op, a.device(), inputs, output, work)
    })
}

/// A deferred reduction other than a variance. It is one step of a row program, the fused kernel of an expression with reductions along
/// rows.
static SINGLE_STEP_FOLD: FoldKind = FoldKind {
    nodes: 3,
    push: |fold, program, values, _| {
        let acc = fold.op.reduction().map_or(fold.value, |reduction| reduction.accumulator.of(fold.value));
        program.push_unless_present(StepKind::Fold(fold.op), acc, &[values])
    },
    run: run_fold,
};

/// A deferred variance, which is several steps of a row program.
static VARIANCE_FOLD: FoldKind =
    FoldKind { nodes: 8, push: |_, program, values, length| program.push_squared_distances(values, length), run: run_fold };

fn run_fold(fold: &Fold, output: OutputSpec) -> Result<StoredArray> {
    dispatch_reduction(fold.op, &fold.argument, &fold.axes, fold.value, output)?.stored()
}

/// Returns whether a reduction with `keepdims` is deferred. The device must run row programs, and a row must have between
/// 2 and [`rows::MAX_DEFERRED_ROW_LENGTH`] elements.
fn should_defer(reduction: &ReductionDef, a: &NdArray, axes: &[usize], length: usize) -> Result<bool> {
    let is_over_last_axes = axes.len() <= a.ndim() && (a.ndim() - axes.len()..a.ndim()).all(|axis| axes.contains(&axis));
    let is_row_reduction =
        reduction.in_rows && is_over_last_axes && (2..=rows::MAX_DEFERRED_ROW_LENGTH).contains(&length) && a.size() > 0 && fusion_enabled();
    Ok(is_row_reduction && dispatch::any_kernel_declares(Capability::RowPrograms, Family::Rows, a.device())?)
}

/// Returns the dtype in which a mean or variance of `a` is computed, and the dtype of the result.
///
/// The result has the `requested` dtype. By default it has that of `a`, or float64 for integers. A 16-bit result is computed in float32.
fn mean_dtypes(a: &NdArray, requested: Option<DType>) -> (DType, DType) {
    let out = requested.unwrap_or(if a.dtype().is_inexact() { a.dtype() } else { DType::F64 });
    let work = if matches!(out, DType::F16 | DType::BF16) { DType::F32 } else { out };
    (work, out)
}

/// Returns the sum of squared distances from the mean, in two passes.
fn squared_distances(x: &NdArray, over: &AxisOptions) -> Result<NdArray> {
    let mean = x.mean(AxisOptions { keepdims: true, dtype: None, correction: None, ..over.clone() })?;
    let d = super::elementwise::subtract(x, &mean)?;
    let over = &AxisOptions { dtype: None, ..over.clone() };
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
        let sum = self.push_unless_present(StepKind::Fold(SUM), dtype, &[x]);
        let count = self.push_param(Scalar::Float(count as f64), dtype);
        let mean = self.push_unless_present(StepKind::Apply(DIVIDE), dtype, &[sum, count]);
        let distance = self.push_unless_present(StepKind::Apply(SUBTRACT), dtype, &[x, mean]);
        let squares = if dtype.is_complex() {
            let [re, im] = [REAL, IMAG].map(|part| self.push_unless_present(StepKind::Apply(part), real, &[distance]));
            let [re, im] = [re, im].map(|part| self.push_unless_present(StepKind::Apply(SQUARE), real, &[part]));
            self.push_unless_present(StepKind::Apply(ADD), real, &[re, im])
        } else {
            self.push_unless_present(StepKind::Apply(SQUARE), real, &[distance])
        };
        self.push_unless_present(StepKind::Fold(SUM), real, &[squares])
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
#[numpy("nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nanmin(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(NANMIN, a, &over.into().accepting_only(NANMIN.name(), &[KeepDims, Initial, Where])?, a.dtype(), a.dtype())
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
#[numpy("nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nanmax(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(NANMAX, a, &over.into().accepting_only(NANMAX.name(), &[KeepDims, Initial, Where])?, a.dtype(), a.dtype())
}

/// # Reductions
///
/// Each method takes the axes as `()`, a number, a list, or [`axis(..)`](axis()) with options.
#[free_functions]
impl NdArray {
    /// Returns the sum over the axes `over` (`numpy.sum`); 0 for no elements.
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
    #[numpy("sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)", method)]
    pub fn sum(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().accepting_only(SUM.name(), &[KeepDims, DTypeOption, Initial, Where])?;
        match over.dtype.unwrap_or(self.dtype().sum_dtype()) {
            DType::Bool => reduce(ANY, self, &over, DType::Bool, DType::Bool), // `add` of bool is "or"
            dtype => reduce(SUM, self, &over, dtype, dtype),
        }
    }

    /// Returns the product over the axes `over` (`numpy.prod`); 1 for no elements. The dtypes are those of [`NdArray::sum`].
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
    #[numpy("prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)", method)]
    pub fn prod(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().accepting_only(PROD.name(), &[KeepDims, DTypeOption, Initial, Where])?;
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
    #[numpy("mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn mean(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().accepting_only(MEAN.name(), &[KeepDims, DTypeOption, Where])?;
        over.check_axes(MEAN, self.ndim())?;
        let (work, out) = mean_dtypes(self, over.dtype);
        let sum = reduce(SUM, self, &over, work, work)?;
        if let Some(mask) = over.mask() {
            return super::elementwise::divide(&sum, over.count_where(self, mask)?.astype(work)?)?.astype(out);
        }
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
    #[numpy("var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None)", method)]
    pub fn var(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().accepting_only(VAR.name(), &[KeepDims, DTypeOption, Correction, Where])?;
        over.check_axes(VAR, self.ndim())?;
        let (work, out) = mean_dtypes(self, over.dtype);
        let x = self.astype(work)?;
        if let Some(mask) = over.mask() {
            let sum = squared_distances(&x, &over)?;
            let divisor = over.count_where(self, mask)?.astype(work.real())?.subtract(over.correction.unwrap_or(0.0))?;
            return super::elementwise::divide(&sum, super::elementwise::maximum(divisor, 0)?)?.astype(out.real());
        }
        let sum = match dispatch::any_kernel_declares(Capability::Variance, Family::Reduce, self.device())? && self.size() > 0 {
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
    #[numpy("std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None)", method)]
    pub fn std(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().accepting_only(STD.name(), &[KeepDims, DTypeOption, Correction, Where])?;
        let (work, out) = mean_dtypes(self, over.dtype);
        self.var(AxisOptions { dtype: Some(work), ..over })?.sqrt()?.astype(out.real())
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
    #[numpy("min(a, axis=None, out=None, keepdims=False, initial=None, where=True)", aliases("amin"), method)]
    pub fn min(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(MIN, self, &over.into().accepting_only(MIN.name(), &[KeepDims, Initial, Where])?, self.dtype(), self.dtype())
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
    #[numpy("max(a, axis=None, out=None, keepdims=False, initial=None, where=True)", aliases("amax"), method)]
    pub fn max(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(MAX, self, &over.into().accepting_only(MAX.name(), &[KeepDims, Initial, Where])?, self.dtype(), self.dtype())
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
    #[numpy("any(a, axis=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn any(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ANY, self, &over.into().accepting_only(ANY.name(), &[KeepDims, Where])?, DType::Bool, DType::Bool)
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
    #[numpy("all(a, axis=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn all(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ALL, self, &over.into().accepting_only(ALL.name(), &[KeepDims, Where])?, DType::Bool, DType::Bool)
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
    pub fn argmin(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ARGMIN, self, &over.into().accepting_only(ARGMIN.name(), &[KeepDims])?, self.dtype(), DType::I64)
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
    pub fn argmax(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ARGMAX, self, &over.into().accepting_only(ARGMAX.name(), &[KeepDims])?, self.dtype(), DType::I64)
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
pub fn count_nonzero(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(COUNT_NONZERO, a, &over.into().accepting_only(COUNT_NONZERO.name(), &[KeepDims])?, DType::Bool, DType::I64)
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
        assert_ne!(max.elementwise_combination(), MIN.reduction().unwrap().elementwise_combination());
        assert_eq!(MEAN.reduction(), None);
    }

    #[test]
    fn options_that_a_function_lacks_are_errors() {
        let why = |over: AxisOptions, options: &[AxisOption]| over.accepting_only("f", options).unwrap_err().to_string();
        assert_eq!(why(axis(0).correction(1), &[KeepDims, DTypeOption]), "[f] takes no option 'correction'");
        assert_eq!(why(axis(0).keepdims().dtype(DType::F32), &[KeepDims]), "[f] takes no option 'dtype'");
        assert_eq!(why(axis(0).descending(), &[]), "[f] takes no option 'descending'");
        assert!(axis(0).keepdims().correction(0.5).accepting_only("f", &[Correction, KeepDims]).is_ok());
    }

    #[test]
    fn accumulators_follow_the_rule() {
        let accumulator = |op: Op, value| op.reduction().unwrap().accumulator.of(value);
        assert_eq!(accumulator(SUM, DType::BF16), DType::F32);
        assert_eq!(accumulator(MAX, DType::BF16), DType::BF16);
        assert_eq!(accumulator(COUNT_NONZERO, DType::Bool), DType::I64);
    }
}
