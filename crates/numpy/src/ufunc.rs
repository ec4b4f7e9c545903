//! Methods of NumPy's ufuncs for elementwise operations: `reduce`, `accumulate`, `reduceat`, `outer` and `at`.
//!
//! `numpy.subtract.reduce(a, axis=1)` is `ufunc::reduce(&a, 1, SUBTRACT)`. Operations with a dedicated reduction or scan use it, such as
//! `sum` for `add`. In reductions and scans, the operation must have two arguments, and a result of their dtype.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::op::ArgumentType;
pub use cuprum_core::ops::elementwise::{
    ADD, BITWISE_AND, BITWISE_OR, BITWISE_XOR, DIVIDE, FLOOR_DIVIDE, FMAX, FMIN, GCD, HYPOT, LCM, LEFT_SHIFT, LOGICAL_AND, LOGICAL_OR,
    LOGICAL_XOR, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, POWER, REMAINDER, RIGHT_SHIFT, SUBTRACT,
};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::ops::segments::segment_sum_keeping_negative_zero;
use cuprum_core::{
    AxisOptions, DType, Device, Error, IndexItem, IntoIndex, Kind, NdArray, NewAxis, Op, Operand, Result, Scalar, Segments, add,
    axis as along, concat, cummax, cummin, expr, nanmax, nanmin, numpy, segment_max, segment_min, segment_prod, stack, where_,
};

use crate::manipulation::repeat;
use crate::operand_and_slice_helpers::{check_indices_cast_safely, index_range, new_filled_array, operand_to_array, slice_axis};

/// Associative operations, whose operands may be regrouped, each with its identity (`None` without one). [`identity`] and
/// [`is_associative`] add `bitwise_and` and `hypot`.
const ASSOCIATIVE_OPERATIONS: [(Op, Option<i64>); 13] = [
    (ADD, Some(0)),
    (MULTIPLY, Some(1)),
    (MAXIMUM, None),
    (MINIMUM, None),
    (FMAX, None),
    (FMIN, None),
    (LOGICAL_AND, Some(1)),
    (LOGICAL_OR, Some(0)),
    (LOGICAL_XOR, Some(0)),
    (BITWISE_OR, Some(0)),
    (BITWISE_XOR, Some(0)),
    (GCD, Some(0)),
    (LCM, None),
];

/// Returns whether the operands of `op` may be regrouped.
fn is_associative(op: Op) -> bool {
    [BITWISE_AND, HYPOT].contains(&op) || ASSOCIATIVE_OPERATIONS.iter().any(|(listed, _)| *listed == op)
}

/// Returns the identity of `op` in `dtype`, or `None` if `op` has none.
fn operation_identity(op: Op, dtype: DType) -> Option<i128> {
    match op {
        op if op == HYPOT => Some(0),
        // All bits are set.
        op if op == BITWISE_AND => {
            Some(if dtype.kind() == Kind::Signed { -1 } else { dtype.int_range().map_or(1, |(_, highest)| highest) })
        }
        op => ASSOCIATIVE_OPERATIONS.iter().find(|(listed, _)| *listed == op)?.1.map(i128::from),
    }
}

/// Converts `a` to the dtype in which `op` combines the elements. Returns an error if `op`
/// does not take two arguments, or if its result dtype differs from its operand dtype.
fn cast_to_operand_dtype(a: &NdArray, op: Op, dtype: Option<DType>) -> Result<NdArray> {
    let name = op.name();
    let rule = op.0.rule.filter(|_| op.arity() == 2).ok_or_else(|| Error::value(name, "only supported for functions of two arguments"))?;
    let wanted = match dtype {
        Some(dtype) => dtype,
        None if op == ADD || op == MULTIPLY => a.dtype().sum_dtype(),
        None => a.dtype(),
    };
    let signature = rule.resolve_dtypes(name, &[ArgumentType::Array(wanted), ArgumentType::Array(wanted)])?;
    // As in NumPy, a given dtype that has no loop of the operation is an error.
    if let Some(dtype) = dtype.filter(|dtype| *dtype != signature.result) {
        return Err(Error::dtype(name, format!("the operation has no loop that computes {dtype}"), &[dtype]));
    }
    if signature.args[0] != signature.result || signature.args[1] != signature.result {
        let message = format!("the result {} cannot be an operand of {}", signature.result, signature.args[0]);
        return Err(Error::dtype(name, message, &[wanted]));
    }
    a.astype(signature.result)
}

fn apply_elementwise_to_arrays(op: Op, a: NdArray, b: NdArray) -> Result<NdArray> {
    expr::elementwise(op, &[a.into(), b.into()])
}

/// Reduces an array by an elementwise operation (`numpy.ufunc.reduce`): `reduce(&a, 0, ADD)` is `a.sum(0)`.
///
/// In `eval`, the axis is 0 by default. Operations that are not associative, such as `subtract`, apply to the elements in order.
///
/// Passes over memory: that of the reduction for `add`, `multiply`, `minimum`, `maximum`, `fmin`, `fmax`, `logical_and` and `logical_or`;
/// two for other associative operations; one for each element along the axis for operations that are not associative.
///
/// # Errors
/// An operation that does not take two arguments, or whose result dtype differs from its operand dtype or the given dtype; several axes for
/// an operation that is not associative; no elements, or a mask without an initial value, for an operation without identity; the errors of
/// [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// use cuprum::ufunc::{self, ADD, SUBTRACT};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([5, 3, 1, 9, 2, 2], [2, 3])?;
/// assert_eq!(ufunc::reduce(&a, 1, ADD)?.to_vec::<i64>()?, [9, 13]);
/// assert_eq!(ufunc::reduce(&a, 1, SUBTRACT)?.to_vec::<i32>()?, [1, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("ufunc.reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True, *, ufunc)")]
pub fn reduce(array: &NdArray, #[name("axis")] over: impl Into<AxisOptions>, ufunc: Op) -> Result<NdArray> {
    let over = over.into();
    let in_dtype = || cast_to_operand_dtype(array, ufunc, over.requested_dtype());
    match ufunc {
        op if op == ADD => array.sum(over),
        op if op == MULTIPLY => array.prod(over),
        op if op == MINIMUM => in_dtype()?.min(over.clone().clear_dtype()),
        op if op == MAXIMUM => in_dtype()?.max(over.clone().clear_dtype()),
        op if op == FMIN => nanmin(&in_dtype()?, over.clone().clear_dtype()),
        op if op == FMAX => nanmax(&in_dtype()?, over.clone().clear_dtype()),
        op if op == LOGICAL_AND || op == LOGICAL_OR => {
            if over.requested_initial().is_some() {
                return reduce_by_halves(&in_dtype()?, &over, op);
            }
            if over.requested_dtype().is_some() {
                in_dtype()?;
            }
            let over = over.clone().clear_dtype();
            if op == LOGICAL_AND { array.all(over) } else { array.any(over) }
        }
        op => reduce_by_halves(&in_dtype()?, &over, op),
    }
}

/// Reduces by an operation that has no dedicated reduction: combines the two halves of the axis elementwise until one element remains. An
/// operation that is not associative is applied to the elements in order, and so is one with a mask but without identity. `a` has the dtype
/// of the operands.
fn reduce_by_halves(a: &NdArray, over: &AxisOptions, op: Op) -> Result<NdArray> {
    let (name, dtype) = (op.name(), a.dtype());
    let axes = over.resolve_axes(name, a.ndim())?;
    if axes.len() > 1 && !is_associative(op) {
        return Err(Error::value(name, "the operation is not reorderable, so at most one axis may be specified"));
    }
    let initial = match over.requested_initial() {
        Some(initial) => Some(new_filled_array(a, &[], initial.to_checked_element(name, dtype)?, dtype)?),
        None => None,
    };
    // `gcd` and `hypot` replace an element by its absolute value, also if the other operand is the identity.
    let takes_absolute_value = [GCD, HYPOT].contains(&op);
    let (mut x, mut mask) = (a.clone(), None);
    if let Some(given) = over.mask() {
        let broadcast = given.broadcast_to(a.shape());
        let unfit = |_| Error::shape(name, "the mask `where` does not broadcast to the array", &[a.shape(), given.shape()]);
        let broadcast = broadcast.map_err(unfit)?;
        match operation_identity(op, dtype) {
            // Elements outside the mask are replaced by the identity. This would change an `initial` value in `gcd` and `hypot`, which take
            // absolute values.
            Some(neutral) if initial.is_none() || !takes_absolute_value => {
                x = where_(broadcast, &x, new_filled_array(a, &[], neutral, dtype)?)?
            }
            _ if initial.is_some() => mask = Some(broadcast),
            _ => return Err(Error::value(name, "the operation has no identity, so `where` needs `initial`")),
        }
    }
    // Moves the reduced axes to the end and merges them into one axis.
    let kept: Vec<usize> = (0..a.ndim()).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<isize> = kept.iter().chain(&axes).map(|&axis| axis as isize).collect();
    let count: usize = axes.iter().map(|&axis| a.shape()[axis]).product();
    let mut shape: Vec<usize> = kept.iter().map(|&axis| a.shape()[axis]).collect();
    let merge = |x: &NdArray| x.transpose(&order[..])?.reshape(to_isize_extents(&[&shape[..], &[count]].concat()));
    let (x, mask) = (merge(&x)?, mask.as_ref().map(merge).transpose()?);
    let last = x.ndim() - 1;
    let at = |x: &NdArray, n: usize| slice_axis(x, last, n as isize, n as isize + 1, 1)?.reshape(to_isize_extents(&shape));
    let mut result = match (count, initial) {
        (0, Some(initial)) => initial.broadcast_to(shape.clone())?,
        (0, None) => match operation_identity(op, dtype) {
            Some(value) => new_filled_array(a, &shape, value, dtype)?,
            None => return Err(Error::shape(name, "zero-size array to a reduction which has no identity", &[a.shape()])),
        },
        _ if shape.contains(&0) => new_filled_array(a, &shape, 0, dtype)?,
        (1, None) if takes_absolute_value => apply_elementwise_to_arrays(op, new_filled_array(a, &[], 0, dtype)?, at(&x, 0)?)?,
        (count, initial) if is_associative(op) && mask.is_none() => {
            let (mut x, mut count, mut rest) = (x.clone(), count, initial);
            while count > 1 {
                if count % 2 == 1 {
                    let odd = at(&x, count - 1)?;
                    rest = Some(match rest {
                        Some(rest) => apply_elementwise_to_arrays(op, rest, odd)?,
                        None => odd,
                    });
                }
                let half = count / 2;
                let (low, high) = (slice_axis(&x, last, 0, half as isize, 1)?, slice_axis(&x, last, half as isize, 2 * half as isize, 1)?);
                (x, count) = (apply_elementwise_to_arrays(op, low, high)?, half);
            }
            let first = at(&x, 0)?;
            match rest {
                Some(rest) => apply_elementwise_to_arrays(op, first, rest)?,
                None => first,
            }
        }
        (count, initial) => {
            // As in NumPy, 16-bit floats are subtracted or divided in float32, and only the result is rounded.
            let is_widened = matches!(dtype, DType::F16 | DType::BF16) && [SUBTRACT, DIVIDE].contains(&op);
            let x = if is_widened { x.astype(DType::F32)? } else { x };
            let (mut result, from) = match initial {
                Some(initial) => (initial.astype(x.dtype())?, 0),
                None => (at(&x, 0)?, 1),
            };
            for n in from..count {
                let next = apply_elementwise_to_arrays(op, result.clone(), at(&x, n)?)?;
                result = match &mask {
                    Some(mask) => where_(at(mask, n)?, next, &result)?,
                    None => next,
                };
            }
            result.astype(dtype)?
        }
    };
    if over.keeps_dims() {
        shape = a.shape().iter().enumerate().map(|(axis, &n)| if axes.contains(&axis) { 1 } else { n }).collect();
        result = result.reshape(to_isize_extents(&shape))?;
    }
    Ok(result)
}

fn to_isize_extents(shape: &[usize]) -> Vec<isize> {
    shape.iter().map(|&n| n as isize).collect()
}

/// Returns the argument `axis`. `None` is the only axis of a 1-D array.
fn read_axis_argument(args: &Args, array: &NdArray) -> Result<isize> {
    match (args.is_none("axis"), array.ndim()) {
        (false, _) => FromArgs::from_args(args, "axis"),
        (true, 0 | 1) => Ok(0),
        (true, _) => Err(Error::value(args.op(), "does not allow multiple axes")),
    }
}

fn accumulate_from_args(args: &Args) -> Result<Value> {
    let array = args.array("array")?;
    let (axis, dtype) = (read_axis_argument(args, &array)?, args.dtype("dtype")?);
    accumulate(&array, axis, dtype, FromArgs::from_args(args, "ufunc")?).map(Value::Array)
}

fn reduceat_from_args(args: &Args) -> Result<Value> {
    let array = args.array("array")?;
    let (axis, dtype) = (read_axis_argument(args, &array)?, args.dtype("dtype")?);
    reduceat(&array, &args.indices("indices")?, axis, dtype, FromArgs::from_args(args, "ufunc")?).map(Value::Array)
}

/// Maximum number of results that [`accumulate`] keeps as separate arrays.
const MAX_SEPARATE_ACCUMULATE_RESULTS: usize = 1 << 12;

/// Returns the running results of an elementwise operation along an axis (`numpy.ufunc.accumulate`): `accumulate(&a, 0, None, ADD)` is
/// `a.cumsum(0)`.
///
/// Passes over memory: that of the scan for `add`, `multiply`, `minimum` and `maximum`; as many as the base-2 logarithm of the extent for
/// other associative operations; one for each element along the axis for operations that are not associative.
///
/// # Errors
/// A 0-d array, an axis out of bounds, or an operation that does not take two arguments or whose result dtype differs from its operand
/// dtype.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// use cuprum::ufunc::{self, MAXIMUM, SUBTRACT};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3, 5, 1])?;
/// assert_eq!(ufunc::accumulate(&a, 0, None, MAXIMUM)?.to_vec::<i32>()?, [3, 5, 5]);
/// assert_eq!(ufunc::accumulate(&a, 0, None, SUBTRACT)?.to_vec::<i32>()?, [3, -2, -3]);
/// # Ok(())
/// # }
/// ```
#[numpy("ufunc.accumulate(array, axis=0, dtype=None, out=None, *, ufunc)", call = accumulate_from_args)]
pub fn accumulate(array: &NdArray, axis: isize, dtype: Option<DType>, ufunc: Op) -> Result<NdArray> {
    let name = ufunc.name();
    if array.ndim() == 0 {
        return Err(Error::value(name, "cannot accumulate on a scalar"));
    }
    let axis = normalize_axis(name, axis, array.ndim())?;
    let a = cast_to_operand_dtype(array, ufunc, dtype)?;
    let (over, count) = (along(axis), a.shape()[axis]);
    match ufunc {
        op if op == ADD => return a.cumsum(over.dtype(a.dtype())),
        op if op == MULTIPLY => return a.cumprod(over.dtype(a.dtype())),
        op if op == MAXIMUM => return cummax(&a, axis),
        op if op == MINIMUM => return cummin(&a, axis),
        _ => {}
    }
    let part = |x: &NdArray, from: usize, to: usize| slice_axis(x, axis, from as isize, to as isize, 1);
    if a.size() == 0 {
        return Ok(a);
    }
    if is_associative(ufunc) {
        let (mut x, mut step) = (a, 1);
        while step < count {
            let later = apply_elementwise_to_arrays(ufunc, part(&x, 0, count - step)?, part(&x, step, count)?)?;
            x = concat([&part(&x, 0, step)?, &later], axis)?;
            step *= 2;
        }
        return x.contiguous();
    }
    // Results are joined in groups, because `concat` takes a limited number of arrays and each array has a fixed overhead.
    let mut last = part(&a, 0, 1)?;
    let (mut groups, mut group) = (Vec::new(), vec![last.clone()]);
    for n in 1..count {
        last = apply_elementwise_to_arrays(ufunc, last, part(&a, n, n + 1)?)?;
        group.push(last.clone());
        if group.len() == MAX_SEPARATE_ACCUMULATE_RESULTS {
            groups.push(concat(&group, axis)?);
            group.clear();
        }
    }
    groups.extend((!group.is_empty()).then(|| concat(&group, axis)).transpose()?);
    concat(&groups, axis)
}

/// Reduces segments of an axis by an elementwise operation (`numpy.ufunc.reduceat`). Segment `i` begins at `indices[i]` and ends at
/// `indices[i + 1]`, the last one at the end of the axis. If an index is not smaller than the next, the result of its segment is the
/// element at this index.
///
/// [`segment_sum`](cuprum_core::segment_sum) and the other segment reductions take offsets, and give the identity for empty segments.
///
/// Passes over memory: that of a segment reduction for `add`, `multiply`, `minimum` and `maximum`, and a gather if the indices do not
/// increase; a reduction for each segment for other operations. The call waits for the device.
///
/// # Errors
/// Indices that are uint64, not integers or out of bounds, and the errors of [`reduce`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// use cuprum::ufunc::{self, ADD};
/// # fn main() -> cuprum::Result<()> {
/// let (a, starts) = (NdArray::from_slice(&[1, 2, 3, 4])?, NdArray::from_slice(&[0, 2, 1])?);
/// assert_eq!(ufunc::reduceat(&a, &starts, 0, None, ADD)?.to_vec::<i64>()?, [3, 3, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("ufunc.reduceat(array, indices, axis=0, dtype=None, out=None, *, ufunc)", call = reduceat_from_args)]
pub fn reduceat(array: &NdArray, indices: &NdArray, axis: isize, dtype: Option<DType>, ufunc: Op) -> Result<NdArray> {
    let name = ufunc.name();
    let axis = normalize_axis(name, axis, array.ndim())?;
    if indices.ndim() != 1 || !indices.dtype().is_int() {
        return Err(Error::dtype(name, "the indices must be a 1-D array of integers", &[indices.dtype()]));
    }
    check_indices_cast_safely(name, indices)?;
    let a = cast_to_operand_dtype(array, ufunc, dtype)?;
    let extent = a.shape()[axis] as i64;
    let starts = indices.astype(DType::I64)?.to_vec::<i64>()?;
    if let Some(&index) = starts.iter().find(|index| !(0..extent).contains(*index)) {
        return Err(Error::Index { op: name, index, axis, size: extent as usize });
    }
    let ends = starts.iter().skip(1).copied().chain([extent]);
    let segments: Vec<(i64, i64)> = starts.iter().zip(ends).map(|(&from, to)| (from, if to > from { to } else { from + 1 })).collect();
    if segments.is_empty() {
        return slice_axis(&a, axis, 0, 0, 1);
    }
    type Reduction = fn(&NdArray, Segments) -> Result<NdArray>;
    let reductions: [(Op, Reduction); 4] = [
        (ADD, |a, segments| segment_sum_keeping_negative_zero(a, segments)),
        (MULTIPLY, |a, segments| segment_prod(a, segments)),
        (MINIMUM, |a, segments| segment_min(a, segments)),
        (MAXIMUM, |a, segments| segment_max(a, segments)),
    ];
    let Some((_, reduction)) = reductions.into_iter().find(|(op, _)| *op == ufunc) else {
        let of_segment = |&(from, to): &(i64, i64)| {
            let segment = slice_axis(&a, axis, from as isize, to as isize, 1)?;
            // A segment of a single element is returned unchanged, whereas `reduce` takes the absolute value for `gcd` and `hypot`.
            if to == from + 1 { segment.squeeze(axis as isize) } else { reduce(&segment, along(axis).dtype(a.dtype()), ufunc) }
        };
        return stack(&segments.iter().map(of_segment).collect::<Result<Vec<_>>>()?, axis as isize);
    };
    let on_device = |values: &[i64]| NdArray::from_slice(values)?.to_device(a.device());
    if segments.windows(2).all(|pair| pair[0].1 == pair[1].0) {
        let offsets: Vec<i64> = starts.iter().copied().chain([extent]).collect();
        return reduction(&a, Segments::along(&on_device(&offsets)?, axis as isize))?.astype(a.dtype());
    }
    // Gathers the elements of the segments one segment after the other. Element `k` of segment `i` is at `starts[i] + k`.
    let mut offsets = vec![0];
    for (from, to) in &segments {
        offsets.push(offsets[offsets.len() - 1] + to - from);
    }
    let total = offsets[offsets.len() - 1];
    let lengths: Vec<i64> = segments.iter().map(|(from, to)| to - from).collect();
    let shifts: Vec<i64> = segments.iter().zip(&offsets).map(|((from, _), offset)| from - offset).collect();
    let positions = add(repeat(&on_device(&shifts)?, &on_device(&lengths)?, None)?, index_range(a.device(), total as usize)?)?;
    let gathered = a.take(&positions, axis)?;
    reduction(&gathered, Segments::along(&on_device(&offsets)?, axis as isize))?.astype(a.dtype())
}

/// Applies an elementwise operation of two arguments to all pairs of elements (`numpy.ufunc.outer`). The shape of the result is that of
/// `a` followed by that of `b`.
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// An operation that does not take two arguments, a number outside the range of 64-bit integers, and the errors of the operation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// use cuprum::ufunc::{self, ADD};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[10, 20])?, NdArray::from_slice(&[1, 2, 3])?);
/// let sums = ufunc::outer(&a, &b, ADD)?;
/// assert_eq!((sums.shape(), sums.to_vec::<i32>()?), (&[2, 3][..], vec![11, 12, 13, 21, 22, 23]));
/// # Ok(())
/// # }
/// ```
#[numpy("ufunc.outer(A, B, /, *, ufunc)")]
pub fn outer(#[name("A")] a: impl Into<Operand>, #[name("B")] b: impl Into<Operand>, ufunc: Op) -> Result<NdArray> {
    let (a, b) = (a.into(), b.into());
    if ufunc.arity() != 2 {
        return Err(Error::value(ufunc.name(), "outer needs a function of two arguments"));
    }
    let device = match [&a, &b] {
        [Operand::Array(array), _] | [_, Operand::Array(array)] => array.device(),
        _ => Device::current()?,
    };
    let (a, b) = (operand_to_array(ufunc.name(), device, &a)?, operand_to_array(ufunc.name(), device, &b)?);
    let a = a.reshape(to_isize_extents(&[a.shape(), &vec![1; b.ndim()]].concat()))?;
    apply_elementwise_to_arrays(ufunc, a, b)
}

/// An index argument of a function that `eval` calls by its name: an array or number, or a tuple of them.
pub(crate) struct IndexArgument(Vec<IndexItem>);

impl IntoIndex for IndexArgument {
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(&self.0)
    }
}

impl FromArgs for IndexArgument {
    fn from_args(args: &Args, name: &str) -> Result<IndexArgument> {
        let item = |value: &Value| -> Result<IndexItem> {
            Ok(match value {
                Value::Scalar(Scalar::Int(_)) => IndexItem::from(value.to_isize(args.op())?),
                Value::None => IndexItem::from(NewAxis),
                value => {
                    let array = value.array(args.op())?;
                    // An empty list is a valid index, although its conversion to an array gives float64.
                    if array.dtype().is_inexact() && (value.items().is_none() || array.size() > 0) {
                        let message = "arrays used as indices must be of integer or boolean type";
                        return Err(Error::dtype(args.op(), message, &[array.dtype()]));
                    }
                    IndexItem::from(array)
                }
            })
        };
        Ok(IndexArgument(match args.value(name) {
            Some(Value::Tuple(items)) => items.iter().map(item).collect::<Result<_>>()?,
            Some(value) => vec![item(value)?],
            None => return Err(Error::value(args.op(), format!("argument '{name}' is missing"))),
        }))
    }
}

/// Applies an elementwise operation to the elements that an index selects, several times to an element whose index is repeated
/// (`numpy.ufunc.at`).
///
/// This function calls [`NdArray::update_at`] if `b` is given, and [`NdArray::apply_at`] otherwise. The former documents the order of the
/// updates.
///
/// # Errors
/// The errors of [`NdArray::update_at`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// use cuprum::ufunc::{self, ADD, NEGATIVE};
/// # fn main() -> cuprum::Result<()> {
/// let (mut a, i) = (NdArray::from_slice(&[1, 2, 3])?, NdArray::from_slice(&[0, 0, 2])?);
/// ufunc::at(&mut a, &i, Some(10.into()), ADD)?;
/// ufunc::at(&mut a, &i, None, NEGATIVE)?;
/// assert_eq!(a.to_vec::<i32>()?, [21, 2, -13]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "ufunc.at(a, indices, b=None, /, *, ufunc)",
    differs = "numbers that do not convert to the dtype of the array by the rule `same_kind` are an error"
)]
pub fn at(a: &mut NdArray, #[read(IndexArgument)] indices: impl IntoIndex, b: Option<Operand>, ufunc: Op) -> Result<()> {
    match b {
        Some(b) => a.update_at(ufunc, indices, b),
        None => a.apply_at(ufunc, indices),
    }
}
