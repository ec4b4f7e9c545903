//! Assignment to elements, augmented assignment, and unpacking.

use cuprum_core::ops::python_value::Value;
use cuprum_core::{Error, Item, NdArray, Operand, with_device};

use crate::ast::{Expr, ExprKind, Index};
use crate::error::EvalError;
use crate::evaluate::Evaluator;
use crate::indexing::{IndexPart, convert_index_error, convert_index_parts, index_array};
use crate::library_names;
use crate::operators::BinaryOp;
use crate::span::Span;
use crate::unlocated_error::{Unlocated, UnlocatedError};
use crate::value_operators::apply_binary_value_operator;

/// An assignment target `name[..]` or `name[..][..]` with evaluated indices.
pub(crate) struct ElementTarget<'e> {
    name: &'e str,
    /// One list of index parts per pair of brackets.
    indices: Vec<Vec<IndexPart>>,
}

impl<'e> ElementTarget<'e> {
    /// Returns the name of the variable.
    pub(crate) fn variable_name(&self) -> &'e str {
        self.name
    }

    /// Returns whether the index selects a view even if it selects one element: `x[...]` is a 0-d array in NumPy, `x[0]` a scalar.
    fn has_ellipsis(&self) -> bool {
        let is_ellipsis = |part: &IndexPart| matches!(part, IndexPart::Basic(Item::Ellipsis));
        self.indices.last().is_some_and(|parts| parts.iter().any(is_ellipsis))
    }
}

impl Evaluator<'_> {
    /// Evaluates the indices of the assignment target `base[index]`. `base` is a variable that holds an array, or an indexed variable such
    /// as `x[0]`.
    pub(crate) fn evaluate_element_target<'e>(&mut self, base: &'e Expr, index: &Index) -> Result<ElementTarget<'e>, EvalError> {
        let mut target = match &base.kind {
            ExprKind::Name(name) => ElementTarget { name, indices: Vec::new() },
            ExprKind::Index { base, index } => {
                let target = self.evaluate_element_target(base, index)?;
                if target.indices.iter().flatten().any(|part| matches!(part, IndexPart::Array(_))) {
                    let message = "a mask or an index array selects a copy, so an assignment to its elements has no effect";
                    let help = "write one index: `x[mask] = value`";
                    return self.error_at_span(index.span, UnlocatedError::type_error(message).with_help(help));
                }
                target
            }
            _ => {
                let error = UnlocatedError::type_error("only elements of a variable can be assigned");
                return self.error_at_span(base.span, error.with_help("index the variable itself: `x[index] = value`"));
            }
        };
        target.indices.push(self.evaluate_index_parts(index)?);
        match self.variables.get(target.name) {
            Some(Value::Array(_)) => Ok(target),
            Some(other) => {
                let error = UnlocatedError::type_error(format!("elements of '{}' cannot be assigned", other.type_name()));
                self.error_at_span(base.span, error.with_help("make it an array first: `x = array(x)`"))
            }
            None => {
                self.error_at_span(base.span, library_names::unknown_name_error(target.name, self.variables.keys().map(String::as_str)))
            }
        }
    }

    /// Assigns `value` to the elements that `target` selects. Other variables with the same array keep their values.
    pub(crate) fn assign_elements(&mut self, target: &ElementTarget, span: Span, value: Value) -> Result<(), EvalError> {
        // The array is changed inside the variable, because a second handle to the array would make the assignment copy it.
        let result = match self.variables.get_mut(target.name) {
            Some(Value::Array(array)) => {
                let is_list = matches!(value, Value::List(_) | Value::Tuple(_));
                assigned_value_to_operand(value, array).and_then(|value| {
                    if is_list && has_more_axes_than_view(&value, array, &target.indices) {
                        return Err(UnlocatedError::value_error("setting an array element with a sequence"));
                    }
                    assign_at_nested_indices(array, &target.indices, value)
                })
            }
            _ => Err(UnlocatedError::type_error("only elements of an array can be assigned")),
        };
        result.map_err(|error| error.at(self.source, span))
    }

    /// Stores `value` in the elements of a variable that `base[index]` selects. `value` is the result of a function that updates this
    /// argument in place, such as `add.at(a[0], i, 1)`. Returns false if the variable holds no array, or if the index selects no view: a
    /// mask, an index array, or a single element.
    pub(crate) fn try_assign_to_view(&mut self, base: &Expr, index: &Index, value: &Value) -> Result<bool, EvalError> {
        let Ok(target) = self.evaluate_element_target(base, index) else { return Ok(false) };
        let Some(Value::Array(array)) = self.variables.get(target.name) else { return Ok(false) };
        let view = target.indices.iter().try_fold(array.clone(), |array, parts| index_array(&array, parts));
        let is_view = target.indices.iter().flatten().all(|part| !matches!(part, IndexPart::Array(_)));
        if !is_view || !view.is_ok_and(|view| view.ndim() > 0 || target.has_ellipsis()) {
            return Ok(false);
        }
        self.assign_elements(&target, index.span, value.clone())?;
        self.assigned.record(target.name);
        Ok(true)
    }

    /// Executes `base[index] op= value` and returns the name of the variable. Indices are evaluated once.
    pub(crate) fn augmented_assign_elements<'e>(
        &mut self,
        (base, index): (&'e Expr, &Index),
        span: Span,
        (op, op_span): (BinaryOp, Span),
        value: &Expr,
    ) -> Result<&'e str, EvalError> {
        let target = self.evaluate_element_target(base, index)?;
        let selected = match self.variables.get(target.name) {
            Some(Value::Array(array)) => target.indices.iter().try_fold(array.clone(), |array, parts| index_array(&array, parts)),
            _ => Err(UnlocatedError::type_error("only elements of an array can be updated")),
        };
        let old = selected.map_err(|error| error.at(self.source, span))?;
        let right = self.evaluate(value)?;
        let advice = "convert the array first: `x = x.astype(dtype)`";
        let new = match old.ndim() > 0 || target.has_ellipsis() {
            true => augmented_assign_array(op, old, right, advice),
            false => apply_binary_value_operator(op, old.into(), right),
        };
        let new = new.map_err(|error| error.at(self.source, op_span))?;
        self.assign_elements(&target, span, new)?;
        Ok(target.name)
    }
}

/// Converts `value` to the operand of an assignment to elements of `array`. Lists and tuples become arrays of the dtype of `array`.
fn assigned_value_to_operand(value: Value, array: &NdArray) -> Unlocated<Operand> {
    match value {
        Value::Scalar(scalar) => Ok(scalar.into()),
        Value::Array(value) => Ok(value.into()),
        Value::List(_) | Value::Tuple(_) => Ok(with_device(array.device(), || value.array_as("assign", Some(array.dtype())))?.into()),
        other => {
            let message = format!("'{}' cannot be assigned to elements of an array of {}", other.type_name(), array.dtype());
            Err(UnlocatedError::type_error(message))
        }
    }
}

/// Returns whether `value` has more axes than the view that `array[first][second]..` selects, if this view has axes. Returns false if an
/// index selects a copy or is invalid.
fn has_more_axes_than_view(value: &Operand, array: &NdArray, indices: &[Vec<IndexPart>]) -> bool {
    let Operand::Array(value) = value else { return false };
    if indices.iter().flatten().any(|part| matches!(part, IndexPart::Array(_))) {
        return false;
    }
    let view = indices.iter().try_fold(array.clone(), |array, parts| index_array(&array, parts));
    view.is_ok_and(|view| view.ndim() > 0 && value.ndim() > view.ndim())
}

/// Executes `array[first][second].. = value`. All indices but the last select views.
fn assign_at_nested_indices(array: &mut NdArray, indices: &[Vec<IndexPart>], value: Operand) -> Unlocated<()> {
    let Some((first, rest)) = indices.split_first() else { return Ok(()) };
    let value = if rest.is_empty() {
        value
    } else {
        let mut view = index_array(array, first)?;
        assign_at_nested_indices(&mut view, rest, value)?;
        view.into()
    };
    let items = convert_index_parts(array, first)?;
    array.assign(&items, value).map_err(convert_index_error)
}

/// Unpacks a tuple, a list or an array (along its first axis) into `count` values.
pub(crate) fn unpack_values(value: Value, count: usize) -> Unlocated<Vec<Value>> {
    let parts = match value {
        Value::Tuple(items) | Value::List(items) if items.len() == count => items.to_vec(),
        Value::Tuple(items) | Value::List(items) => {
            return Err(UnlocatedError::value_error(format!("cannot unpack {} values into {count} names", items.len())));
        }
        Value::Array(a) if a.ndim() > 0 => {
            if a.shape()[0] != count {
                return Err(UnlocatedError::value_error(format!("cannot unpack an axis of {} into {count} names", a.shape()[0])));
            }
            (0..count as isize).map(|i| a.index(&[Item::At(i)]).map(Value::Array)).collect::<Result<_, _>>()?
        }
        other => return Err(UnlocatedError::type_error(format!("'{}' cannot be unpacked", other.type_name()))),
    };
    Ok(parts)
}

/// Computes `old op= right`. An array keeps its dtype and shape, as with NumPy's in-place operators; a 0-d array may change both.
///
/// `advice` is the help text of the error if the array cannot store the result.
pub(crate) fn compute_augmented_assignment(op: BinaryOp, old: Value, right: Value, advice: &str) -> Unlocated<Value> {
    match old {
        Value::Array(array) if array.ndim() > 0 => augmented_assign_array(op, array, right, advice),
        old => apply_binary_value_operator(op, old, right),
    }
}

/// Computes `array op= right` in the dtype and the shape of `array`.
fn augmented_assign_array(op: BinaryOp, array: NdArray, right: Value, advice: &str) -> Unlocated<Value> {
    let result = match apply_binary_value_operator(op, array.clone().into(), right)? {
        Value::Array(result) => result,
        other => return Ok(other),
    };
    if result.shape() != array.shape() {
        let shapes = [array.shape(), result.shape()];
        let message = format!("{}= would change the shape", op.symbol());
        return Err(UnlocatedError::from(Error::shape("update", message, &shapes)).with_help(advice));
    }
    if !result.dtype().can_cast_same_kind(array.dtype()) {
        let message = format!("{}= cannot store {} in an array of {}", op.symbol(), result.dtype(), array.dtype());
        return Err(UnlocatedError::type_error(message).with_help(advice));
    }
    Ok(result.astype(array.dtype())?.into())
}
