//! Views: slices, permuted, inserted, reversed and broadcast axes, in chains; reshapes.

use cuprum::{Item, NdArray, Result, s};
use proptest::prelude::*;

use crate::arrays::{ALL, Sample, check, expect, samples};
use crate::reference::{Reference, from_front, indices};

/// Start, stop and step of a slice. The bounds may be outside the axis.
type Slice = (Option<isize>, Option<isize>, isize);

/// One view of an array. Numbers that are too large for its shape count modulo the number of choices.
#[derive(Clone, Debug)]
enum View {
    Transpose(Vec<usize>),
    Slices(Vec<Slice>),
    Element(usize, isize),
    NewAxis(usize),
    Flip(Vec<bool>),
    MoveAxis(usize, usize),
    Broadcast(usize, usize),
}

fn slices() -> impl Strategy<Value = Slice> {
    let bound = || prop::option::weighted(0.7, -7..=7isize);
    (bound(), bound(), prop_oneof![4 => Just(1), 1 => Just(-1), 1 => 2..=3isize, 1 => -3..=-2isize])
}

fn views() -> impl Strategy<Value = View> {
    prop_oneof![
        3 => prop::collection::vec(0..100usize, 6).prop_map(View::Transpose),
        4 => prop::collection::vec(slices(), 1..=3).prop_map(View::Slices),
        1 => (0..100usize, -50..50isize).prop_map(|(axis, n)| View::Element(axis, n)),
        1 => (0..100usize).prop_map(View::NewAxis),
        1 => prop::collection::vec(any::<bool>(), 6).prop_map(View::Flip),
        1 => (0..100usize, 0..100usize).prop_map(|(from, to)| View::MoveAxis(from, to)),
        1 => (0..100usize, 1..=3usize).prop_map(|(axis, extent)| View::Broadcast(axis, extent)),
    ]
}

/// Returns the indices along an axis of `extent` elements that a slice selects, as Python does.
fn selected((start, stop, step): Slice, extent: usize) -> Vec<usize> {
    let n = extent as isize;
    let from_front = |bound: isize| if bound < 0 { bound + n } else { bound };
    let (first, end) = match step > 0 {
        true => (start.map_or(0, |v| from_front(v).clamp(0, n)), stop.map_or(n, |v| from_front(v).clamp(0, n))),
        false => (start.map_or(n - 1, |v| from_front(v).clamp(-1, n - 1)), stop.map_or(-1, |v| from_front(v).clamp(-1, n - 1))),
    };
    let (mut found, mut at) = (vec![], first);
    while if step > 0 { at < end } else { at > end } {
        found.push(at as usize);
        at += step;
    }
    found
}

/// Applies a view to an array and to its reference.
fn apply(view: &View, array: &NdArray, model: &Reference) -> Result<(NdArray, Reference)> {
    let ndim = model.ndim();
    if ndim == 0 && !matches!(view, View::NewAxis(_)) {
        return Ok((array.clone(), model.clone()));
    }
    Ok(match view {
        View::Transpose(keys) => {
            let mut order: Vec<usize> = (0..ndim).collect();
            order.sort_by_key(|&axis| keys[axis % keys.len()]);
            // Every second axis counts from the end.
            let written: Vec<isize> =
                order.iter().map(|&axis| if axis % 2 == 0 { axis as isize } else { axis as isize - ndim as isize }).collect();
            (array.transpose(written)?, model.transpose(&order))
        }
        View::Slices(slices) => {
            let slices = &slices[..slices.len().min(ndim)];
            let items: Vec<Item> = slices.iter().map(|&(start, stop, step)| Item::slice(start, stop, step)).collect();
            let mut sliced = model.clone();
            for (axis, &slice) in slices.iter().enumerate() {
                let found = selected(slice, model.shape[axis]);
                sliced = sliced.select_along(axis, found.len(), |n| found[n]);
            }
            (array.index(&items)?, sliced)
        }
        &View::Element(axis, n) => {
            let axis = axis % ndim;
            let extent = model.shape[axis];
            if extent == 0 {
                return Ok((array.clone(), model.clone()));
            }
            let n = n.rem_euclid(2 * extent as isize) - extent as isize;
            let mut items = vec![Item::slice(None, None, 1); axis];
            items.push(Item::At(n));
            let mut one = model.select_along(axis, 1, |_| from_front(n, extent));
            one.shape.remove(axis);
            (array.index(&items)?, one)
        }
        &View::NewAxis(axis) => {
            let axis = axis % (ndim + 1);
            let mut with_axis = model.clone();
            with_axis.shape.insert(axis, 1);
            (array.expand_dims(axis)?, with_axis)
        }
        View::Flip(flags) => {
            let axes: Vec<isize> = (0..ndim).filter(|axis| flags[axis % flags.len()]).map(|axis| axis as isize).collect();
            let flipped = axes.iter().fold(model.clone(), |model, &axis| {
                let extent = model.shape[axis as usize];
                model.select_along(axis as usize, extent, |n| extent - 1 - n)
            });
            (array.flip(axes)?, flipped)
        }
        &View::MoveAxis(from, to) => {
            let (from, to) = (from % ndim, to % ndim);
            let mut order: Vec<usize> = (0..ndim).filter(|&axis| axis != from).collect();
            order.insert(to, from);
            (array.moveaxis([from as isize], [to as isize])?, model.transpose(&order))
        }
        &View::Broadcast(axis, extent) => {
            let mut shape = model.shape.clone();
            match shape.iter().enumerate().filter(|(_, n)| **n == 1).nth(axis % ndim) {
                Some((found, _)) => shape[found] = extent,
                None if ndim < 5 => shape.insert(0, extent),
                None => {}
            }
            (array.broadcast_to(&shape)?, model.broadcast_to(&shape))
        }
    })
}

#[test]
fn chains_of_views_have_the_selected_elements() {
    check((samples(0..=4, ALL), prop::collection::vec(views(), 1..=5)), |(sample, views)| {
        let (mut array, mut model) = (sample.array()?, sample.values.clone());
        for view in &views {
            (array, model) = apply(view, &array, &model)?;
            if model.data.len() > 4000 {
                break;
            }
        }
        expect(&array, sample.dtype, &model)?;
        expect(&array.copy()?, sample.dtype, &model)
    });
}

/// Arrays, and shapes with the same number of elements. One extent may be -1.
fn reshapes() -> impl Strategy<Value = (Sample, Vec<usize>, Vec<isize>)> {
    let choices = (prop::collection::vec(0..100usize, 12), 0..=4usize, prop::option::weighted(0.5, 0..100usize));
    (samples(0..=4, ALL), choices).prop_map(|(sample, (choices, ndim, unknown))| {
        let mut rest = sample.values.data.len();
        if rest == 0 {
            return (sample, vec![3, 0], vec![3, 0]);
        }
        let ndim = if rest == 1 { ndim } else { ndim.max(1) };
        let (mut shape, mut choices, mut factor) = (vec![1usize; ndim], choices.into_iter().cycle(), 2);
        while rest > 1 {
            if rest % factor == 0 {
                rest /= factor;
                shape[choices.next().unwrap_or(0) % ndim] *= factor;
            } else {
                factor += 1;
            }
        }
        let mut written: Vec<isize> = shape.iter().map(|&extent| extent as isize).collect();
        if let Some(unknown) = unknown.filter(|_| ndim > 0) {
            written[unknown % ndim] = -1;
        }
        (sample, shape, written)
    })
}

#[test]
fn reshapes_keep_the_elements_in_c_order() {
    check(reshapes(), |(sample, shape, written)| {
        let reshaped = Reference { shape, data: sample.values.data.clone() };
        expect(&sample.array()?.reshape(written)?, sample.dtype, &reshaped)?;
        expect(&sample.array()?.ravel()?, sample.dtype, &sample.values.flat())
    });
}

#[test]
fn reshapes_to_another_size_are_errors() {
    check(samples(0..=3, ALL), |sample| {
        prop_assert!(sample.array()?.reshape([sample.values.data.len() + 1]).is_err());
        Ok(())
    });
}

#[test]
fn diagonals_have_equal_indices() {
    check((samples(2..=4, ALL), -5..=5isize), |(sample, offset)| {
        let model = &sample.values;
        let (rows, columns, last) = (model.shape[0] as isize, model.shape[1] as isize, model.ndim() - 2);
        let (row, column) = ((-offset).max(0), offset.max(0));
        let length = (rows - row).min(columns - column).max(0) as usize;
        let mut shape = model.shape[2..].to_vec();
        shape.push(length);
        let diagonal = Reference::from_fn(&shape, |index| {
            let n = index[last];
            model.at(&[&[n + row as usize, n + column as usize], &index[..last]].concat())
        });
        expect(&sample.array()?.diagonal(offset, 0, 1)?, sample.dtype, &diagonal)
    });
}

#[test]
fn every_element_is_at_its_index() {
    check(samples(3..=3, ALL), |sample| {
        let array = sample.array()?;
        for index in indices(&sample.values.shape).into_iter().step_by(7) {
            let element = array.index(s![index[0], index[1], index[2]])?;
            expect(&element, sample.dtype, &Reference { shape: vec![], data: vec![sample.values.at(&index)] })?;
        }
        Ok(())
    });
}
