//! Indexing of arrays, tuples and lists by evaluated items.

pub(crate) use cuprum_core::ops::python_value::IndexPart;
use cuprum_core::ops::python_value::Value;
use cuprum_core::{DType, Error, IndexItem, Item, NdArray, Scalar};

use crate::unlocated_error::{Unlocated, UnlocatedError};

/// Converts the value of an item between the brackets to an index part.
pub(crate) fn value_to_index_part(value: &Value) -> Unlocated<IndexPart> {
    let bad = |what: &str| {
        UnlocatedError::index_error(format!("{what} cannot be an index"))
            .with_help("an index is an integer, a slice, `...`, `None`, an array of integers or a boolean mask")
    };
    match value {
        Value::Scalar(truth @ Scalar::Bool(_)) => Ok(IndexPart::Array(NdArray::scalar_as(*truth, DType::Bool)?)),
        Value::Scalar(Scalar::Int(i)) => isize::try_from(*i)
            .map(|i| IndexPart::Basic(Item::At(i)))
            .map_err(|_| UnlocatedError::index_error(format!("index {i} is out of bounds"))),
        Value::None => Ok(IndexPart::Basic(Item::NewAxis)),
        Value::Array(a) if a.dtype() == DType::Bool => Ok(IndexPart::Array(a.clone())),
        Value::Array(a) if a.dtype().is_int() && a.ndim() == 0 => value_to_index_part(&Value::Scalar(a.item()?)),
        Value::Array(a) if a.dtype().is_int() => Ok(IndexPart::Array(a.clone())),
        Value::Array(a) => Err(bad(&format!("an array of {}", a.dtype()))),
        // As in NumPy, a tuple within a tuple of indices counts as an index array.
        Value::List(_) | Value::Tuple(_) => {
            let array = value.array("index")?;
            value_to_index_part(&Value::Array(if array.size() == 0 { array.astype(DType::I64)? } else { array }))
        }
        other => Err(bad(&format!("{} '{}'", indefinite_article(other), other.type_name()))),
    }
}

fn indefinite_article(value: &Value) -> &'static str {
    if value.type_name().starts_with(['a', 'i']) { "an" } else { "a" }
}

/// Converts the start, stop or step of a slice. Returns `None` if `value` is Python's `None`.
pub(crate) fn value_to_slice_bound(value: &Value) -> Unlocated<Option<isize>> {
    match value {
        Value::None => Ok(None),
        Value::Array(a) if a.ndim() > 0 => {
            Err(UnlocatedError::type_error("a bound of a slice is an integer or None, not an array with axes"))
        }
        // An integer too large for `isize` is clamped, which changes nothing: all bounds outside the axis are equivalent.
        value => match value.int("index") {
            Ok(v) => Ok(Some(v.clamp(isize::MIN as i128 / 2, isize::MAX as i128 / 2) as isize)),
            Err(_) => Err(UnlocatedError::index_error(format!(
                "the start, stop and step of a slice are integers or None, not '{}'",
                value.type_name()
            ))),
        },
    }
}

/// Converts the parts of an index to items. Index arrays are copied to the array's device.
pub(crate) fn convert_index_parts(array: &NdArray, parts: &[IndexPart]) -> Unlocated<Vec<IndexItem>> {
    let item = |part: &IndexPart| match part {
        IndexPart::Basic(item) => Ok(IndexItem::Basic(*item)),
        IndexPart::Array(indices) => Ok(IndexItem::Array(indices.to_device(array.device())?)),
    };
    Ok(parts.iter().map(item).collect::<Result<Vec<_>, Error>>()?)
}

/// Converts an error of `NdArray::index` or `NdArray::assign`. Shape errors of the index become index errors.
pub(crate) fn convert_index_error(error: Error) -> UnlocatedError {
    match error {
        Error::Shape { op: "index", message, .. } => UnlocatedError::index_error(message),
        error => error.into(),
    }
}

/// Returns `array[parts]`.
pub(crate) fn index_array(array: &NdArray, parts: &[IndexPart]) -> Unlocated<NdArray> {
    array.index(&convert_index_parts(array, parts)?).map_err(convert_index_error)
}

/// Indexes a tuple or list by `parts`, which must be one int or one slice.
pub(crate) fn index_sequence(items: &[Value], parts: &[IndexPart]) -> Unlocated<SequenceSelection> {
    match parts {
        [IndexPart::Basic(Item::At(i))] => {
            let at = if *i < 0 { i.checked_add(items.len() as isize) } else { Some(*i) };
            at.and_then(|at| items.get(usize::try_from(at).ok()?))
                .map(|v| SequenceSelection::One(v.clone()))
                .ok_or_else(|| UnlocatedError::index_error(format!("index {i} is out of range for a sequence of {} items", items.len())))
        }
        [IndexPart::Basic(range @ Item::Slice { .. })] => {
            let positions = cuprum_core::Layout::contiguous(&[items.len()])?.index(&[*range])?;
            let (first, step) = (positions.offset() as isize, positions.strides().first().copied().unwrap_or(1));
            let at = |n: usize| items.get((first + n as isize * step) as usize).cloned();
            Ok(SequenceSelection::Many((0..positions.size()).filter_map(at).collect()))
        }
        _ => Err(UnlocatedError::index_error("tuples and lists are indexed by one integer or slice")
            .with_help("for more, make it an array: `array(...)`")),
    }
}

/// The result of indexing a tuple or list: one item, or the items of a slice.
pub(crate) enum SequenceSelection {
    One(Value),
    Many(Vec<Value>),
}
