//! `a[...]` once its parts are values: views by ints, slices, `None` and `...`; `take` for an array of indices; a boolean mask.

use cuprum_core::ops::indexing::{TAKE, check_bounds};
use cuprum_core::ops::value::Value;
use cuprum_core::{DType, Item, NdArray, Scalar};

use crate::fault::{Checked, Fault};

/// One part of an index, worked out.
#[derive(Clone)]
pub(crate) enum Part {
    /// An int, slice, new axis or ellipsis.
    Basic(Item),
    /// Indices along one axis.
    Array(NdArray),
    /// Where it is true, along as many axes as it has.
    Mask(NdArray),
}

/// What a value between the brackets selects.
pub(crate) fn part(value: &Value) -> Checked<Part> {
    let bad = |what: &str| {
        Fault::index(format!("{what} cannot be an index"))
            .help("an index is an integer, a slice, `...`, `None`, an array of integers or a boolean mask")
    };
    match value {
        Value::Scalar(Scalar::Bool(_)) => Err(bad("a single truth value")),
        Value::Scalar(Scalar::Int(i)) => {
            isize::try_from(*i).map(|i| Part::Basic(Item::At(i))).map_err(|_| Fault::index(format!("index {i} is out of bounds")))
        }
        Value::None => Ok(Part::Basic(Item::NewAxis)),
        Value::Array(a) if a.dtype() == DType::Bool && a.ndim() == 0 => Err(bad("a single truth value")),
        Value::Array(a) if a.dtype() == DType::Bool => Ok(Part::Mask(a.clone())),
        Value::Array(a) if a.dtype().is_int() && a.ndim() == 0 => part(&Value::Scalar(a.item()?)),
        Value::Array(a) if a.dtype().is_int() => Ok(Part::Array(a.clone())),
        Value::Array(a) => Err(bad(&format!("an array of {}", a.dtype()))),
        Value::List(_) => {
            let array = value.array("index")?;
            part(&Value::Array(if array.size() == 0 { array.astype(DType::I64)? } else { array }))
        }
        other => Err(bad(&format!("{} '{}'", article(other), other.type_name()))),
    }
}

fn article(value: &Value) -> &'static str {
    if value.type_name().starts_with(['a', 'i']) { "an" } else { "a" }
}

/// One end of a slice.
pub(crate) fn bound(value: &Value) -> Checked<Option<isize>> {
    match value {
        Value::None => Ok(None),
        // Past the ends all bounds are alike.
        value => match value.int("index") {
            Ok(v) => Ok(Some(v.clamp(isize::MIN as i128 / 2, isize::MAX as i128 / 2) as isize)),
            Err(_) => Err(Fault::index(format!("the ends and the step of a slice are integers or None, not '{}'", value.type_name()))),
        },
    }
}

/// `array[parts]`.
pub(crate) fn index_array(array: &NdArray, parts: &[Part]) -> Checked<NdArray> {
    if let [Part::Mask(mask)] = parts {
        return Ok(array.extract(&mask.to_device(array.device())?)?);
    }
    let places: Vec<usize> = (0..parts.len()).filter(|&i| !matches!(parts[i], Part::Basic(_))).collect();
    let basic: Vec<Item> = parts
        .iter()
        .map(|p| match p {
            Part::Basic(item) => *item,
            Part::Array(_) | Part::Mask(_) => Item::range(None, None, 1),
        })
        .collect();
    let view = array.index(&basic)?;
    let place = match &places[..] {
        [] => return Ok(view),
        [place] => *place,
        _ => {
            return Err(Fault::index("more than one index array is not in this version")
                .help("compute the positions in the flattened array: `take(a, i * a.shape[1] + j)`"));
        }
    };
    let axis = axis_of(&view, &basic, place);
    let indices = match &parts[place] {
        Part::Mask(mask) => chosen(mask, view.shape()[axis])?,
        Part::Array(indices) => indices.clone(),
        Part::Basic(_) => return Ok(view),
    };
    if view.size() == 0 {
        check_bounds(TAKE, &indices, axis, view.shape()[axis])?; // `take` lets them pass where an axis before this one is empty
    }
    let taken = view.take(&indices.to_device(view.device())?, axis as isize)?;
    // NumPy: an int beside an index array counts as one too, and axes of separated index arrays come first.
    let advanced = |i: usize| matches!(basic[i], Item::At(_)) || i == place;
    let first = (0..basic.len()).find(|&i| advanced(i)).unwrap_or(place);
    let last = (0..basic.len()).rfind(|&i| advanced(i)).unwrap_or(place);
    if (first..=last).all(advanced) {
        return Ok(taken);
    }
    let source: Vec<isize> = (axis..axis + indices.ndim()).map(|a| a as isize).collect();
    let front: Vec<isize> = (0..indices.ndim() as isize).collect();
    Ok(taken.moveaxis(&source, &front)?)
}

/// The indices at which a mask along an axis of this extent is true.
fn chosen(mask: &NdArray, extent: usize) -> Checked<NdArray> {
    if mask.ndim() > 1 {
        return Err(Fault::index("a mask of several axes beside other indices is not in this version")
            .help("index in two steps: first the mask alone, then the rest"));
    }
    if mask.size() != extent {
        return Err(Fault::index(format!("a mask of {} elements does not fit an axis of {extent}", mask.size())));
    }
    Ok(mask.flatnonzero()?)
}

/// Which axis of `view`, an array indexed by `basic`, the item at `place` has become.
fn axis_of(view: &NdArray, basic: &[Item], place: usize) -> usize {
    let kept = |items: &[Item]| items.iter().filter(|i| matches!(i, Item::Range { .. } | Item::NewAxis)).count();
    match basic[..place].contains(&Item::Ellipsis) {
        false => kept(&basic[..place]),
        true => view.ndim().saturating_sub(kept(&basic[place..])),
    }
}

/// `items[parts]` of a tuple or list: one int or one slice.
pub(crate) fn index_sequence(items: &[Value], parts: &[Part]) -> Checked<Picked> {
    match parts {
        [Part::Basic(Item::At(i))] => {
            let at = if *i < 0 { i.checked_add(items.len() as isize) } else { Some(*i) };
            at.and_then(|at| items.get(usize::try_from(at).ok()?))
                .map(|v| Picked::One(v.clone()))
                .ok_or_else(|| Fault::index(format!("index {i} is out of range for a sequence of {} items", items.len())))
        }
        [Part::Basic(range @ Item::Range { .. })] => {
            let positions = cuprum_core::Layout::contiguous(&[items.len()])?.index(&[*range])?;
            let (first, step) = (positions.offset() as isize, positions.strides().first().copied().unwrap_or(1));
            let at = |n: usize| items.get((first + n as isize * step) as usize).cloned();
            Ok(Picked::Some((0..positions.size()).filter_map(at).collect()))
        }
        _ => Err(Fault::index("tuples and lists are indexed by one integer or slice").help("for more, make it an array: `array(...)`")),
    }
}

/// What an index picks from a sequence.
pub(crate) enum Picked {
    One(Value),
    Some(Vec<Value>),
}
