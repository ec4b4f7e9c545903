//! Indexing of arrays, tuples and lists by evaluated items: views for ints, slices, `None` and `...`; `take` for an integer array;
//! masks.

use cuprum_core::ops::indexing::{TAKE, check_bounds};
use cuprum_core::ops::value::Value;
use cuprum_core::{DType, Item, NdArray, Scalar, flatnonzero, moveaxis};

use crate::unlocated_error::{Unlocated, UnlocatedError};

/// One evaluated item of an index expression.
#[derive(Clone)]
pub(crate) enum IndexPart {
    /// An int, slice, new axis or ellipsis, which gives a view.
    Basic(Item),
    /// An integer array that indexes one axis.
    Array(NdArray),
    /// A boolean mask, which covers as many axes of the indexed array as the mask has.
    Mask(NdArray),
}

/// Converts the value of an item between the brackets to an index part.
pub(crate) fn index_part(value: &Value) -> Unlocated<IndexPart> {
    let bad = |what: &str| {
        UnlocatedError::index_error(format!("{what} cannot be an index"))
            .help("an index is an integer, a slice, `...`, `None`, an array of integers or a boolean mask")
    };
    match value {
        Value::Scalar(Scalar::Bool(_)) => Err(bad("a single truth value")),
        Value::Scalar(Scalar::Int(i)) => isize::try_from(*i)
            .map(|i| IndexPart::Basic(Item::At(i)))
            .map_err(|_| UnlocatedError::index_error(format!("index {i} is out of bounds"))),
        Value::None => Ok(IndexPart::Basic(Item::NewAxis)),
        Value::Array(a) if a.dtype() == DType::Bool && a.ndim() == 0 => Err(bad("a single truth value")),
        Value::Array(a) if a.dtype() == DType::Bool => Ok(IndexPart::Mask(a.clone())),
        Value::Array(a) if a.dtype().is_int() && a.ndim() == 0 => index_part(&Value::Scalar(a.item()?)),
        Value::Array(a) if a.dtype().is_int() => Ok(IndexPart::Array(a.clone())),
        Value::Array(a) => Err(bad(&format!("an array of {}", a.dtype()))),
        Value::List(_) => {
            let array = value.array("index")?;
            index_part(&Value::Array(if array.size() == 0 { array.astype(DType::I64)? } else { array }))
        }
        other => Err(bad(&format!("{} '{}'", article(other), other.type_name()))),
    }
}

fn article(value: &Value) -> &'static str {
    if value.type_name().starts_with(['a', 'i']) { "an" } else { "a" }
}

/// Converts the start, stop or step of a slice. Returns `None` if it is Python's `None`.
pub(crate) fn slice_bound(value: &Value) -> Unlocated<Option<isize>> {
    match value {
        Value::None => Ok(None),
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

/// Returns `array[parts]`.
pub(crate) fn index_array(array: &NdArray, parts: &[IndexPart]) -> Unlocated<NdArray> {
    if let [IndexPart::Mask(mask)] = parts {
        return Ok(array.extract(&mask.to_device(array.device())?)?);
    }
    let array_items: Vec<usize> = (0..parts.len()).filter(|&i| !matches!(parts[i], IndexPart::Basic(_))).collect();
    let basic: Vec<Item> = parts
        .iter()
        .map(|p| match p {
            IndexPart::Basic(item) => *item,
            IndexPart::Array(_) | IndexPart::Mask(_) => Item::range(None, None, 1),
        })
        .collect();
    let view = array.index(&basic)?;
    let position = match &array_items[..] {
        [] => return Ok(view),
        [position] => *position,
        _ => {
            return Err(UnlocatedError::index_error("more than one index array is not in this version")
                .help("compute indices into the flattened array: `take(a, i * a.shape[1] + j)`"));
        }
    };
    let axis = axis_in_view(&view, &basic, position);
    let indices = match &parts[position] {
        IndexPart::Mask(mask) => mask_indices(mask, view.shape()[axis])?,
        IndexPart::Array(indices) => indices.clone(),
        IndexPart::Basic(_) => return Ok(view),
    };
    if view.size() == 0 {
        check_bounds(TAKE, &indices, axis, view.shape()[axis])?; // `take` does not check the indices into an empty array
    }
    let taken = view.take(&indices.to_device(view.device())?, axis as isize)?;
    // NumPy's rule: next to an index array, an int is an advanced index too. If advanced indices are not adjacent, their axes come first
    // in the result.
    let advanced = |i: usize| matches!(basic[i], Item::At(_)) || i == position;
    let first = (0..basic.len()).find(|&i| advanced(i)).unwrap_or(position);
    let last = (0..basic.len()).rfind(|&i| advanced(i)).unwrap_or(position);
    if (first..=last).all(advanced) {
        return Ok(taken);
    }
    let source: Vec<isize> = (axis..axis + indices.ndim()).map(|a| a as isize).collect();
    let front: Vec<isize> = (0..indices.ndim() as isize).collect();
    Ok(moveaxis(&taken, &source, &front)?)
}

/// Returns the indices of the true elements of `mask`, which covers an axis of length `extent`.
fn mask_indices(mask: &NdArray, extent: usize) -> Unlocated<NdArray> {
    if mask.ndim() > 1 {
        return Err(UnlocatedError::index_error("a mask of several axes together with other indices is not in this version")
            .help("index in two steps: first the mask alone, then the rest"));
    }
    if mask.size() != extent {
        return Err(UnlocatedError::index_error(format!("a mask of {} elements does not fit an axis of {extent}", mask.size())));
    }
    Ok(flatnonzero(mask)?)
}

/// Returns the axis of `view` that item number `position` of `basic` selects. `view` is the array indexed by `basic`.
fn axis_in_view(view: &NdArray, basic: &[Item], position: usize) -> usize {
    let kept = |items: &[Item]| items.iter().filter(|i| matches!(i, Item::Range { .. } | Item::NewAxis)).count();
    match basic[..position].contains(&Item::Ellipsis) {
        false => kept(&basic[..position]),
        true => view.ndim().saturating_sub(kept(&basic[position..])),
    }
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
        [IndexPart::Basic(range @ Item::Range { .. })] => {
            let positions = cuprum_core::Layout::contiguous(&[items.len()])?.index(&[*range])?;
            let (first, step) = (positions.offset() as isize, positions.strides().first().copied().unwrap_or(1));
            let at = |n: usize| items.get((first + n as isize * step) as usize).cloned();
            Ok(SequenceSelection::Many((0..positions.size()).filter_map(at).collect()))
        }
        _ => Err(UnlocatedError::index_error("tuples and lists are indexed by one integer or slice")
            .help("for more, make it an array: `array(...)`")),
    }
}

/// The result of indexing a tuple or list: one item, or the items of a slice.
pub(crate) enum SequenceSelection {
    One(Value),
    Many(Vec<Value>),
}
