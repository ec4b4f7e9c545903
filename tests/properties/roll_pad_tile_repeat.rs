//! Elements moved along axes, added at the edges, and repeated.

use cuprum::{DType, Item, NdArray, PadMode, Scalar, pad, repeat, roll, tile};
use proptest::prelude::*;
use proptest::sample::select;

use crate::arrays::{ALL, axes, check, expect, fit, nonempty_samples, samples, samples_and_axis};
use crate::reference::{Reference, from_front};

fn rolled(model: &Reference, axis: usize, shift: isize) -> Reference {
    let extent = model.shape[axis];
    model.select_along(axis, extent, |n| (n as isize - shift).rem_euclid(extent as isize) as usize)
}

#[test]
fn roll_moves_the_flattened_elements() {
    check((samples(0..=4, ALL), -50..=50isize), |(sample, shift)| {
        let mut expected = rolled(&sample.values.flat(), 0, shift);
        expected.shape = sample.values.shape.clone();
        expect(&roll(&sample.array()?, &[shift], ())?, sample.dtype, &expected)
    });
}

#[test]
fn roll_adds_the_shifts_of_repeated_axes() {
    let cases = samples(1..=4, ALL).prop_flat_map(|sample| {
        let pair = (axes(sample.values.ndim()), -9..=9isize);
        (Just(sample), prop::collection::vec(pair, 1..=4), any::<bool>())
    });
    check(cases, |(sample, pairs, one_shift)| {
        let axes: Vec<isize> = pairs.iter().map(|(axis, _)| *axis).collect();
        let mut shifts: Vec<isize> = pairs.iter().map(|(_, shift)| *shift).collect();
        if one_shift {
            shifts.truncate(1);
        }
        let mut expected = sample.values.clone();
        for (n, &axis) in axes.iter().enumerate() {
            expected = rolled(&expected, from_front(axis, sample.values.ndim()), shifts[n.min(shifts.len() - 1)]);
        }
        expect(&roll(&sample.array()?, &shifts, &axes[..])?, sample.dtype, &expected)
    });
}

/// Widths before and after each axis.
fn widths() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..=6usize, 0..=6usize), 3)
}

/// Returns the sample's elements between added ones. `source` returns the index along an axis of `extent` elements.
fn padded(model: &Reference, widths: &[(usize, usize)], source: impl Fn(isize, isize) -> isize) -> Reference {
    (0..model.ndim()).fold(model.clone(), |model, axis| {
        let (before, after) = widths[axis];
        let extent = model.shape[axis];
        model.select_along(axis, before + extent + after, |n| source(n as isize - before as isize, extent as isize) as usize)
    })
}

#[test]
fn pad_adds_constants() {
    check((samples(1..=3, ALL), widths(), 0..=1i64), |(sample, widths, value)| {
        let (model, widths) = (&sample.values, &widths[..sample.values.ndim()]);
        let shape: Vec<usize> = model.shape.iter().zip(widths).map(|(extent, (before, after))| before + extent + after).collect();
        let expected = Reference::from_fn(&shape, |index| {
            let inner = index.iter().zip(widths).map(|(n, (before, _))| n.wrapping_sub(*before)).collect::<Vec<_>>();
            let is_inside = inner.iter().zip(&model.shape).all(|(n, extent)| n < extent);
            if is_inside { model.at(&inner) } else { value }
        });
        let mode = PadMode::from(if sample.dtype == DType::Bool { Scalar::Bool(value == 1) } else { Scalar::Int(value.into()) });
        expect(&pad(&sample.array()?, widths, mode)?, sample.dtype, &expected)
    });
}

#[test]
fn pad_extends_by_elements_of_the_array() {
    let modes = select(&[PadMode::Edge, PadMode::Wrap, PadMode::Reflect { odd: false }, PadMode::Symmetric { odd: false }][..]);
    check((nonempty_samples(1..=3, ALL), widths(), modes), |(sample, widths, mode)| {
        let widths = &widths[..sample.values.ndim()];
        let source = |n: isize, extent: isize| match mode {
            PadMode::Edge => n.clamp(0, extent - 1),
            PadMode::Wrap => n.rem_euclid(extent),
            PadMode::Reflect { .. } if extent == 1 => 0,
            PadMode::Reflect { .. } => {
                let n = n.rem_euclid(2 * extent - 2);
                if n < extent { n } else { 2 * extent - 2 - n }
            }
            _ => {
                let n = n.rem_euclid(2 * extent);
                if n < extent { n } else { 2 * extent - 1 - n }
            }
        };
        let expected = padded(&sample.values, widths, source);
        expect(&pad(&sample.array()?, widths, mode.clone())?, sample.dtype, &expected)
    });
}

#[test]
fn tile_repeats_the_array_along_axes() {
    check((samples(0..=3, ALL), prop::collection::vec(0..=3usize, 0..=4)), |(sample, reps)| {
        let model = &sample.values;
        let ndim = model.ndim().max(reps.len());
        let extended = |list: &[usize]| [&vec![1; ndim - list.len()][..], list].concat();
        let (extents, counts) = (extended(&model.shape), extended(&reps));
        let whole = Reference { shape: extents.clone(), data: model.data.clone() };
        let shape: Vec<usize> = extents.iter().zip(&counts).map(|(extent, count)| extent * count).collect();
        let expected =
            Reference::from_fn(&shape, |index| whole.at(&index.iter().zip(&extents).map(|(n, extent)| n % extent).collect::<Vec<_>>()));
        expect(&tile(&sample.array()?, &reps)?, sample.dtype, &expected)
    });
}

/// Returns each element along `axis` as often as its count.
fn repeated(model: &Reference, axis: usize, counts: impl Fn(usize) -> usize) -> Reference {
    let source: Vec<usize> = (0..model.shape[axis]).flat_map(|n| vec![n; counts(n)]).collect();
    model.select_along(axis, source.len(), |n| source[n])
}

#[test]
fn repeat_by_one_count_repeats_every_element() {
    check((samples_and_axis(1..=4, ALL), 0..=4usize), |((sample, axis), count)| {
        let array = sample.array()?;
        let expected = repeated(&sample.values, from_front(axis, sample.values.ndim()), |_| count);
        expect(&repeat(&array, count, axis)?, sample.dtype, &expected)?;
        expect(&repeat(&array, count, None)?, sample.dtype, &repeated(&sample.values.flat(), 0, |_| count))
    });
}

#[test]
fn repeat_by_counts_repeats_each_element() {
    check((samples_and_axis(1..=4, ALL), prop::collection::vec(0..=3i64, 70)), |((sample, axis), counts)| {
        let front = from_front(axis, sample.values.ndim());
        let extent = sample.values.shape[front];
        let expected = repeated(&sample.values, front, |n| counts[n] as usize);
        let counts = NdArray::from_slice(&counts[..extent])?;
        expect(&repeat(&sample.array()?, &counts, axis)?, sample.dtype, &expected)
    });
}

#[test]
fn padding_by_a_constant_keeps_the_array_inside() {
    check((samples(1..=3, ALL), 0..=4usize), |(sample, width)| {
        let array = sample.array()?;
        let mode = PadMode::from(if sample.dtype == DType::Bool { Scalar::Bool(false) } else { Scalar::Int(fit(sample.dtype, 3).into()) });
        let padded = pad(&array, &[(width, width)], mode)?;
        let items: Vec<Item> =
            sample.values.shape.iter().map(|&extent| Item::slice(width as isize, (width + extent) as isize, 1)).collect();
        expect(&padded.index(&items)?, sample.dtype, &sample.values)
    });
}
