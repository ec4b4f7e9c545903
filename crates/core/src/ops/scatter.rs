//! Scatter: writes values to elements that index arrays select, or combines them with the old elements.

use cuprum_macros::numpy;

use crate::arguments::IntegerArgument;
use crate::array::{Array, NdArray, StoredArray};
use crate::call;
use crate::call::{OutputSpec, RowAssignment, Work};
use crate::device::{Stream, with_device};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Operand, elementwise};
use crate::function::{FromArgs, Indices};
use crate::index::Item;
use crate::layout::{Dims, Layout, normalize_axis};
use crate::op::{ArgumentType, Capability, Family, Op};
use crate::ops::assignment::broadcast_value_layout;
use crate::ops::creation::{arange_as, full_on_device};
use crate::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY, SUBTRACT, negative, where_};
use crate::ops::index::{AdvancedIndex, IndexItem, IntoIndex, SelectedRows, as_basic_items};
use crate::ops::manipulation::concat;
use crate::ops::python_value::Args;
use crate::ops::scan::cummax;
use crate::ops::segments::{segment_max, segment_min, segment_prod, segment_sum_keeping_negative_zero};
use crate::ops::select::flatnonzero;
use crate::ops::sort::differs_from_previous;
use crate::ops::take::{cast_to_kernel_index_dtype, check_index_bounds};
use crate::s;
use crate::scalar::Scalar;
use crate::settings::reproducible_sums::reproducible_sums;

super::ops! { Scatter after take::fused_take_op_index:
    SCATTER "scatter" 3;
}

/// Maximum ratio of array elements to scattered values at which floats are summed without first grouping the values by row.
const MAX_UNGROUPED_ELEMENTS_PER_VALUE: usize = 4;
/// Maximum ratio of scattered values to array elements at which floats are summed without first grouping the values by row.
const MAX_UNGROUPED_VALUES_PER_ELEMENT: usize = 4096;
/// Minimum number of elements in a row at which a scatter sum takes less time with values grouped by row than as an ungrouped reproducible
/// sum (`docs/notes/scatter-sums.md`).
const MIN_GROUPED_ROW_LENGTH: usize = 64;
/// Maximum number of values of one row at which grouping by row is preferred to an ungrouped reproducible sum. With grouping, one thread
/// adds all values of an element.
const MAX_PREFERRED_GROUP_SIZE: i128 = 1024;
/// Operations by which kernels of the family `Scatter` can combine an element with a value.
const COMBINING_OPERATIONS: [Op; 4] = [ADD, MULTIPLY, MINIMUM, MAXIMUM];

/// Values grouped by the row that they update. The values of group `g` are at the positions `order[offsets[g]..offsets[g + 1]]`.
struct ValuesGroupedByRow {
    /// The row that each group updates: 1-D, without repetitions.
    rows: NdArray,
    order: NdArray,
    offsets: NdArray,
}

/// Returns whether combining several values by `combine` gives the same result in any order, as it does for integers and bools.
fn is_order_independent(combine: Op, dtype: DType) -> bool {
    !dtype.is_inexact() && COMBINING_OPERATIONS.contains(&combine)
}

/// The rows of an array that a scatter writes to, and the values for these rows. The axes of the values are in the order of the axes of the
/// rows.
struct ScatterInputs {
    /// A view of the updated array. The indices address the first axis of the view. The other axes have no negative strides.
    rows: Layout,
    /// The indices of the rows to update: 1-D, contiguous, int32 or int64. Element i is the row of `rows` that the values at index i of
    /// their first axis update.
    indices: NdArray,
    /// The values that the scatter writes, in the dtype of the array that it updates. The first axis has the extent of `indices`.
    values: StoredArray,
    /// The axis of the updated array that the indices address, for error messages.
    source_axis: usize,
    is_distinct: bool,
}

impl ScatterInputs {
    /// Broadcasts `value` to the shape of the selection, and moves the axes of the index arrays to the front.
    fn from_selected_rows(op: &'static str, selected: SelectedRows, value: &StoredArray) -> Result<ScatterInputs> {
        let SelectedRows { rows, indices, source_axis, position, is_distinct } = selected;
        let index_axes = indices.ndim();
        let mut shape: Dims = rows.shape()[1..].into();
        shape.insert_many(position, indices.shape().iter().copied());
        let value = NdArray::from(value.with_layout(broadcast_value_layout(op, value.layout(), &shape)?)?);
        // The axes of the indices are moved to the front and merged into one axis.
        let moved = if position == 0 { value } else { value.moveaxis(position..position + index_axes, 0..index_axes)? };
        let mut flat: Dims = rows.shape().into();
        flat[0] = indices.size();
        let value = if index_axes == 1 { moved } else { moved.reshape(&flat[..])? };
        let values = value.stored()?;
        let reversed: Vec<usize> = (1..rows.ndim()).filter(|&axis| rows.strides()[axis] < 0).collect();
        let values = values.with_layout(values.layout().flip(&reversed))?;
        let indices = cast_to_kernel_index_dtype(&indices)?.ravel()?.contiguous()?;
        indices.eval()?;
        Ok(ScatterInputs { rows: rows.flip(&reversed), indices, values, source_axis, is_distinct })
    }

    /// Combines the values with rows of `target` by `combine`, or stores them if `combine` is `None`. No other array uses the memory of
    /// `target`. `needs` is the capability that determines the order in which several values of a row are combined.
    fn dispatch_ungrouped_scatter(&self, target: &NdArray, combine: Option<Op>, needs: Option<Capability>) -> Result<NdArray> {
        let rows = if self.is_distinct { RowAssignment::Distinct } else { RowAssignment::Indexed };
        let inputs = [self.indices.stored()?, self.values.clone()];
        dispatch_scatter(target, &inputs, call::Scatter { region: &self.rows, combine, rows, needs })
    }

    /// Combines floating-point or complex values with rows of `target`, by the first of four methods that the device and the settings
    /// allow: in the order of the values, as a sum in any order, as a reproducible sum, or grouped by row.
    fn combine_float_values(self, target: &NdArray, combine: Op) -> Result<NdArray> {
        let declared = dispatch::kernel_capabilities(Family::Scatter, target.device())?;
        let (elements, values) = (self.rows.size(), self.values.layout().size());
        let is_unordered = !reproducible_sums()? && matches!(self.values.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128);
        // Kernels for sums are slow if most values belong to a few elements. Kernels for reproducible sums need scratch memory for every
        // element, which is too much for few values.
        let is_contended = values / MAX_UNGROUPED_VALUES_PER_ELEMENT > elements;
        let suits_sum = elements / MAX_UNGROUPED_ELEMENTS_PER_VALUE <= values && !is_contended;
        if declared.contains(Capability::OrderedScatter) {
            self.dispatch_ungrouped_scatter(target, Some(combine), Some(Capability::OrderedScatter))
        } else if combine == ADD && is_unordered && !is_contended && declared.contains(Capability::UnorderedScatterSum) {
            self.dispatch_ungrouped_scatter(target, Some(combine), Some(Capability::UnorderedScatterSum))
        } else if combine == ADD && suits_sum && declared.contains(Capability::ReproducibleScatterSum) {
            // Grouping values by row reads results on the host, which a stream capture does not allow.
            let is_long_row =
                elements / self.rows.shape()[0].max(1) >= MIN_GROUPED_ROW_LENGTH && self.values.dtype().real().itemsize() >= 4;
            if is_long_row && !Stream::current(target.device()).is_capturing() {
                let groups = self.group_values_by_row(target)?;
                let lengths = groups.offsets.index(s![1..])?.subtract(&groups.offsets.index(s![..-1])?)?;
                if lengths.max(())?.item()?.as_int().is_some_and(|longest| longest <= MAX_PREFERRED_GROUP_SIZE) {
                    return self.dispatch_grouped_scatter(target, combine, groups);
                }
            }
            self.dispatch_ungrouped_scatter(target, Some(combine), Some(Capability::ReproducibleScatterSum))
        } else {
            let groups = self.group_values_by_row(target)?;
            self.dispatch_grouped_scatter(target, combine, groups)
        }
    }

    /// Groups the values by row, by sorting the indices. There must be at least one index.
    fn group_values_by_row(&self, target: &NdArray) -> Result<ValuesGroupedByRow> {
        let op = SCATTER.name();
        let extent = self.rows.shape()[0];
        check_index_bounds(op, &self.indices, self.source_axis, extent)?;
        let wide = self.indices.astype(DType::I64)?;
        let indices = where_(wide.less(0)?, wide.add(extent as i64)?, &wide)?;
        // A radix sort of int32 takes half as many passes as one of int64.
        let indices = if i32::try_from(extent).is_ok() { indices.astype(DType::I32)? } else { indices };
        let order = indices.argsort(0)?;
        let sorted = indices.take(&order, 0)?;
        let starts = flatnonzero(&equal_run_start_mask(&sorted)?)?;
        let end = full_on_device(target.device(), &[1], Scalar::Int(sorted.size() as i128), DType::I64)?;
        let offsets = concat([&starts, &end], 0)?;
        Ok(ValuesGroupedByRow { rows: sorted.take(&starts, 0)?.contiguous()?, order, offsets })
    }

    /// Combines floating-point or complex values by row. Rows of several elements are combined with their values in order. For rows of one
    /// element, the values are first combined with each other.
    fn dispatch_grouped_scatter(mut self, target: &NdArray, combine: Op, groups: ValuesGroupedByRow) -> Result<NdArray> {
        let ValuesGroupedByRow { rows, order, offsets } = groups;
        (self.indices, self.is_distinct) = (rows, true);
        type SegmentReduction = fn(&NdArray, &NdArray) -> Result<NdArray>;
        let reductions: [(Op, SegmentReduction); 4] = [
            (ADD, |a, offsets| segment_sum_keeping_negative_zero(a, offsets)),
            (MULTIPLY, |a, offsets| segment_prod(a, offsets)),
            (MINIMUM, |a, offsets| segment_min(a, offsets)),
            (MAXIMUM, |a, offsets| segment_max(a, offsets)),
        ];
        let reduce = reductions.into_iter().find(|(op, _)| *op == combine).map(|(_, reduce)| reduce);
        // A reduction of segments divides a long group of values among threads. It is used for rows of one element only, because the
        // scatter kernel uses only one thread for each element of a row.
        if let (Some(reduce), 1) = (reduce, self.rows.ndim()) {
            self.values = reduce(&NdArray::from(self.values.clone()).take(&order, 0)?, &offsets)?.stored()?;
            return self.dispatch_ungrouped_scatter(target, Some(combine), None);
        }
        let inputs = [self.indices.stored()?, self.values.clone(), order.contiguous()?.stored()?, offsets.stored()?];
        dispatch_scatter(
            target,
            &inputs,
            call::Scatter { region: &self.rows, combine: Some(combine), rows: RowAssignment::Grouped, needs: None },
        )
    }
}

/// Runs `request`, which combines floating-point or complex values with rows of `target`, by any method that the device of `target`
/// supports. No other array uses the memory of `target`.
pub(super) fn run_float_scatter(target: &NdArray, indices: &StoredArray, values: &StoredArray, request: &call::Scatter) -> Result<NdArray> {
    let combine = request.combine.ok_or_else(|| Error::value(SCATTER.name(), "no operation combines the values"))?;
    let inputs = ScatterInputs {
        rows: request.region.clone(),
        indices: NdArray::from(indices.clone()),
        values: values.clone(),
        source_axis: 0,
        is_distinct: request.rows == RowAssignment::Distinct,
    };
    inputs.combine_float_values(target, combine)
}

/// Returns whether each element of a sorted 1-D array is the first of a run of equal elements.
fn equal_run_start_mask(sorted: &NdArray) -> Result<NdArray> {
    let first = full_on_device(sorted.device(), &[1], Scalar::Bool(true), DType::Bool)?;
    concat([first, differs_from_previous(sorted)?], 0)
}

/// Dispatches a scatter to `target`.
fn dispatch_scatter(target: &NdArray, inputs: &[StoredArray], work: call::Scatter) -> Result<NdArray> {
    let stored = target.stored()?;
    let output = OutputSpec::new(stored.dtype(), stored.layout().clone()).with_target_buffer(stored.buffer().clone());
    super::dispatch_single_output(SCATTER, target.device(), inputs, output, Work::Scatter(work))
}

/// Returns the rows that a mask over the first axes of `a` selects. Returns `None` if these axes do not merge into one axis of a view, or
/// if `items` is not one valid mask.
fn try_select_rows_by_mask(a: &NdArray, items: &[IndexItem]) -> Result<Option<SelectedRows>> {
    let [IndexItem::Array(mask)] = items else { return Ok(None) };
    if mask.dtype() != DType::Bool || mask.ndim() == 0 || !a.shape().starts_with(mask.shape()) || mask.device() != a.device() {
        return Ok(None);
    }
    let merged: Dims = std::iter::once(mask.size()).chain(a.shape()[mask.ndim()..].iter().copied()).collect();
    let Some(rows) = a.stored()?.layout().reshape(&merged) else { return Ok(None) };
    Ok(Some(SelectedRows { rows, indices: flatnonzero(mask)?, source_axis: 0, position: 0, is_distinct: true }))
}

/// Returns an error if a value to combine has more axes than the selected elements. Assignments ignore additional axes of extent 1.
fn check_scattered_value_axes(op: &'static str, value: &[usize], target: &[usize]) -> Result<()> {
    if value.len() <= target.len() {
        return Ok(());
    }
    Err(Error::shape(op, "the value has more axes than the selected elements (value, target)", &[value, target]))
}

impl NdArray {
    /// Combines `value` by the operation `combine` with the elements that an index with arrays selects. If `combine` is `None`, stores
    /// `value`. `value` has the dtype of the array.
    pub(super) fn scatter_at_index(&mut self, op: &'static str, items: &[IndexItem], combine: Option<Op>, value: NdArray) -> Result<()> {
        let source = value.stored()?;
        drop(value);
        for item in items {
            if let IndexItem::Array(array) = item {
                array.eval()?; // a deferred index array may read the elements that this call overwrites
            }
        }
        self.make_writable()?;
        let selected = match try_select_rows_by_mask(self, items)? {
            Some(selected) => {
                if combine.is_some() {
                    check_scattered_value_axes(op, source.layout().shape(), selected.rows.shape())?;
                }
                selected
            }
            None => {
                let index = AdvancedIndex::from_index_items(self, items)?;
                let shape = index.result_shape();
                broadcast_value_layout(op, source.layout(), &shape)?;
                if combine.is_some() {
                    check_scattered_value_axes(op, source.layout().shape(), &shape)?;
                }
                if shape.contains(&0) || self.size() == 0 {
                    // No elements are selected, so nothing is written. The gather checks that the indices are in bounds.
                    return index.gather_selected_elements().map(|_| ()).map_err(|error| match error {
                        Error::Index { index, axis, size, .. } => Error::Index { op, index, axis, size },
                        error => error,
                    });
                }
                index.into_selected_rows(op)?
            }
        };
        let inputs = ScatterInputs::from_selected_rows(op, selected, &source)?;
        drop(source);
        if inputs.indices.size() == 0 || inputs.values.layout().size() == 0 {
            return Ok(());
        }
        let source_axis = inputs.source_axis;
        let needs_order = combine.is_some_and(|combine| !inputs.is_distinct && !is_order_independent(combine, self.dtype()));
        let written = match combine {
            Some(combine) if needs_order => inputs.combine_float_values(self, combine),
            combine => inputs.dispatch_ungrouped_scatter(self, combine, None),
        };
        *self = written.map_err(|error| match error {
            Error::Index { index, size, .. } => Error::Index { op, index, axis: source_axis, size },
            error => error,
        })?;
        Ok(())
    }

    /// Combines a value with the elements that an index selects, by an elementwise operation (`numpy.ufunc.at`). An element whose index is
    /// repeated is combined several times.
    ///
    /// `a.update_at(ADD, &i, 1)` is `numpy.add.at(a, i, 1)`. The result of the operation is converted to the array's dtype, as NumPy's
    /// casting rule `same_kind` allows. The elements are written in place if nothing else uses them, otherwise in a copy.
    ///
    /// If an element receives several values, they apply in order. There are exceptions for floats and complex numbers on a GPU: sums and
    /// differences, and at indices that select single elements also products, minima and maxima. In these cases, the values of an element
    /// are first combined with each other, float16 and bfloat16 in at least float32. Such a result may differ in the last bits from that on
    /// the CPU. Integers are exact, and each device gives the same bits on every run, unless
    /// [`set_reproducible_sums`](crate::set_reproducible_sums) allows sums of floats in any order.
    ///
    /// Sums, differences, products, minima and maxima take one pass over the values. Other operations sort the indices, and then
    /// take as many passes as the most frequent index has occurrences; together the passes read each value once. On a GPU, sums of floats
    /// usually take one pass, and up to three if the magnitudes of the values differ much; products, minima and maxima of floats are first
    /// sorted by index.
    ///
    /// # Errors
    /// An operation of other than two arguments, a result that the dtype cannot hold, an index out of bounds, a value that does not
    /// broadcast to the selection or has more axes, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::ops::elementwise::ADD; // `cuprum::ufunc::ADD` in applications
    /// use cuprum::{DType, NdArray, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut counts = zeros(3, DType::I64)?;
    /// counts.update_at(ADD, &NdArray::from_slice(&[0, 2, 2])?, 1)?;
    /// assert_eq!(counts.to_vec::<i64>()?, [1, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_at(&mut self, op: Op, index: impl IntoIndex, value: impl Into<Operand>) -> Result<()> {
        let value = value.into();
        index.with_index_items(|items| self.combine_at_index(op, items, Some(value)))
    }

    /// Applies an elementwise operation of one argument to the elements that an index selects (`numpy.negative.at(a, i)`).
    ///
    /// # Errors
    /// The errors of [`NdArray::update_at`].
    pub fn apply_at(&mut self, op: Op, index: impl IntoIndex) -> Result<()> {
        index.with_index_items(|items| self.combine_at_index(op, items, None))
    }

    /// Applies an elementwise operation to the elements that an index selects, and to `value` if the operation has two arguments.
    fn combine_at_index(&mut self, op: Op, items: &[IndexItem], value: Option<Operand>) -> Result<()> {
        let name = op.name();
        let (Some(rule), count) = (op.0.rule, 1 + usize::from(value.is_some())) else {
            return Err(Error::value(name, "is not elementwise"));
        };
        if op.arity() != count {
            return Err(Error::value(name, format!("takes {} arguments, not {count}", op.arity())));
        }
        let kind = |value: &Operand| match value {
            Operand::Array(a) => ArgumentType::Array(a.dtype()),
            Operand::Scalar(s) => ArgumentType::Weak(*s),
        };
        let kinds: Vec<ArgumentType> = std::iter::once(ArgumentType::Array(self.dtype())).chain(value.as_ref().map(kind)).collect();
        let signature = rule.resolve_dtypes(name, &kinds)?;
        let (dtype, computed) = (self.dtype(), signature.args[0]);
        if !signature.result.can_cast_same_kind(dtype) {
            let message = format!("cannot store {} in an array of {dtype}; use astype", signature.result);
            return Err(Error::dtype(name, message, &[signature.result, dtype]));
        }
        let value = match value {
            Some(Operand::Scalar(s)) => Some(full_on_device(self.device(), &[], s, signature.args[1])?),
            Some(Operand::Array(a)) => {
                self.check_value_device(name, &a)?;
                Some(a.astype(signature.args[1])?)
            }
            None => None,
        };
        if let Some(basic) = as_basic_items(items) {
            let old = self.index(&basic[..])?;
            let shape = old.shape().to_vec();
            let new = elementwise(op, &[Some(old), value].into_iter().flatten().map(Operand::from).collect::<Vec<_>>())?;
            if new.shape() != shape {
                return Err(Error::shape(
                    name,
                    "the value cannot be broadcast to the selected elements (result, target)",
                    &[new.shape(), &shape],
                ));
            }
            return self.assign_to_view(&basic, new.astype(dtype)?.into());
        }
        let is_combination =
            signature.args[1] == computed && signature.result == computed && (op == SUBTRACT || COMBINING_OPERATIONS.contains(&op));
        match value {
            Some(value) if is_combination && computed != dtype => {
                let mut wide = self.astype(computed)?;
                wide.combine_at_index(op, items, Some(value.into()))?;
                *self = wide.astype(dtype)?;
                Ok(())
            }
            // Subtracting a value equals adding its negation, without additional rounding.
            Some(value) if is_combination && op == SUBTRACT => self.scatter_at_index(name, items, Some(ADD), negative(value)?),
            Some(value) if is_combination => self.scatter_at_index(name, items, Some(op), value),
            value => self.combine_in_passes(op, items, value),
        }
    }

    /// Combines values with the selected elements by any elementwise operation. Pass n applies the n-th value of each element, so that
    /// several values of one element apply in order.
    fn combine_in_passes(&mut self, op: Op, items: &[IndexItem], value: Option<NdArray>) -> Result<()> {
        let (name, device, dtype) = (op.name(), self.device(), self.dtype());
        let count = |size: usize| with_device(device, || arange_as(0, size, 1, DType::I64));
        let selected = count(self.size())?.reshape(self.shape())?.index(items)?;
        let spread = |value: NdArray| {
            let stored = value.stored()?;
            check_scattered_value_axes(name, stored.layout().shape(), selected.shape())?;
            NdArray::from(stored.with_layout(broadcast_value_layout(name, stored.layout(), selected.shape())?)?).ravel()
        };
        let value = value.map(spread).transpose()?;
        let targets = selected.ravel()?;
        if targets.size() == 0 {
            return Ok(());
        }
        let order = targets.argsort(0)?;
        let (sorted, numbers) = (targets.take(&order, 0)?, count(targets.size())?);
        let begins = cummax(&where_(equal_run_start_mask(&sorted)?, &numbers, 0)?, 0)?;
        let repetition = numbers.subtract(begins)?;
        // Targets and values are sorted by repetition: first the first value of each target, then the second. So each pass reads one slice
        // of them.
        let by_round = repetition.argsort(0)?;
        let starts = flatnonzero(&equal_run_start_mask(&repetition.take(&by_round, 0)?)?)?.to_vec::<i64>()?;
        let (sorted, order) = (sorted.take(&by_round, 0)?, order.take(&by_round, 0)?);
        let value = value.map(|value| value.take(&order, 0)).transpose()?;
        let mut flat = self.copy()?.ravel()?;
        for (round, &start) in starts.iter().enumerate() {
            let end = starts.get(round + 1).map(|&end| end as isize);
            let slice = |a: &NdArray| a.index(&[Item::slice(start as isize, end, 1)]);
            let (targets, value) = (slice(&sorted)?, value.as_ref().map(slice).transpose()?);
            let args: Vec<Operand> = [Some(flat.take(&targets, 0)?), value].into_iter().flatten().map(Operand::from).collect();
            flat.scatter_at_index(name, &[IndexItem::Array(targets)], None, elementwise(op, &args)?.astype(dtype)?)?;
        }
        *self = flat.reshape(self.shape())?;
        Ok(())
    }
}

/// The operation by which [`scatter`] combines a value with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterMode {
    /// Replaces the element by the value. If an element receives several values, the last is stored.
    Assign,
    /// Adds the value to the element.
    Sum,
    /// Multiplies the element by the value.
    Prod,
    /// Stores the smaller of element and value.
    Min,
    /// Stores the larger of element and value.
    Max,
}

impl FromArgs for ScatterMode {
    fn from_args(args: &Args, name: &str) -> Result<ScatterMode> {
        Ok(match String::from_args(args, name)?.as_str() {
            "assign" => ScatterMode::Assign,
            "sum" => ScatterMode::Sum,
            "prod" => ScatterMode::Prod,
            "min" => ScatterMode::Min,
            "max" => ScatterMode::Max,
            other => return Err(Error::value(args.op(), format!("mode must be 'assign', 'sum', 'prod', 'min' or 'max', not '{other}'"))),
        })
    }
}

/// Returns a copy of `a` with values stored or combined at `indices` along an axis (`torch.index_add`, `jax.numpy.ndarray.at`).
///
/// The values have the shape of `a.take(&indices, axis)`, or broadcast to it. If several values are assigned to one element, the last is
/// stored. [`NdArray::update_at`] describes the order of combinations: each device gives the same bits on every run, and integers are
/// exact, but floats may differ in the last bits between devices. [`NdArray::assign`] and [`NdArray::update_at`] write in place.
///
/// # Errors
/// Indices that are not integers or are out of bounds, an axis out of bounds, a value that does not broadcast or that the dtype cannot
/// hold, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, ScatterMode, scatter};
/// # fn main() -> cuprum::Result<()> {
/// let (a, i) = (NdArray::from_slice(&[1.0, 1.0, 1.0])?, NdArray::from_slice(&[0, 2, 2])?);
/// assert_eq!(scatter(&a, &i, 10, 0, ScatterMode::Sum)?.to_vec::<f64>()?, [11.0, 1.0, 21.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("scatter(a, indices, values, axis=0, mode='assign')")]
pub fn scatter(
    a: &NdArray,
    #[read(Indices)] indices: &NdArray,
    values: impl Into<Operand>,
    #[read(isize)] axis: impl IntegerArgument,
    mode: ScatterMode,
) -> Result<NdArray> {
    let name = SCATTER.name();
    let axis = normalize_axis(name, axis.saturating_isize(), a.ndim())?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "indices must be integers", &[indices.dtype()]));
    }
    let mut items = vec![IndexItem::from(..); axis];
    items.push(IndexItem::from(indices));
    let mut out = a.clone();
    let combine = match mode {
        ScatterMode::Assign => {
            let value = out.convert_assigned_value(name, values.into())?;
            out.scatter_at_index(name, &items, None, value)?;
            return Ok(out);
        }
        ScatterMode::Sum => ADD,
        ScatterMode::Prod => MULTIPLY,
        ScatterMode::Min => MINIMUM,
        ScatterMode::Max => MAXIMUM,
    };
    out.update_at(combine, &items, values)?;
    Ok(out)
}
