//! Joins along existing and new axes, and splits.

use cuprum::{NdArray, array_split, concat, split, stack};
use proptest::prelude::*;

use crate::arrays::{ALL, Sample, check, expect, samples_and_axis, samples_of_shape, shapes};
use crate::reference::{Reference, from_front};

/// Samples of one dtype, and an axis. The extents differ only along the axis.
fn joinable() -> impl Strategy<Value = (Vec<Sample>, isize)> {
    (shapes(1..=4), any::<prop::sample::Index>(), prop::collection::vec(0..=4usize, 1..=4), any::<bool>(), 0..ALL.len()).prop_flat_map(
        |(shape, axis, extents, from_end, dtype)| {
            let axis = axis.index(shape.len());
            let of_extent = |extent: usize| {
                let mut shape = shape.clone();
                shape[axis] = extent;
                samples_of_shape(shape, &ALL[dtype..=dtype])
            };
            let written = if from_end { axis as isize - shape.len() as isize } else { axis as isize };
            (extents.into_iter().map(of_extent).collect::<Vec<_>>(), Just(written))
        },
    )
}

fn arrays(samples: &[Sample]) -> cuprum::Result<Vec<NdArray>> {
    samples.iter().map(Sample::array).collect()
}

#[test]
fn concat_joins_the_arrays_in_order() {
    check(joinable(), |(samples, axis)| {
        let front = from_front(axis, samples[0].values.ndim());
        // The array and the index in it for each index of the result along the axis.
        let source: Vec<(usize, usize)> =
            samples.iter().enumerate().flat_map(|(n, sample)| (0..sample.values.shape[front]).map(move |at| (n, at))).collect();
        let mut shape = samples[0].values.shape.clone();
        shape[front] = source.len();
        let expected = Reference::from_fn(&shape, |index| {
            let (n, at) = source[index[front]];
            let mut from = index.to_vec();
            from[front] = at;
            samples[n].values.at(&from)
        });
        expect(&concat(&arrays(&samples)?, axis)?, samples[0].dtype, &expected)
    });
}

#[test]
fn stack_joins_along_a_new_axis() {
    let cases = (shapes(0..=3), 1..=4usize, 0..ALL.len(), any::<prop::sample::Index>()).prop_flat_map(|(shape, count, dtype, axis)| {
        let axis = axis.index(shape.len() + 1);
        (prop::collection::vec(samples_of_shape(shape, &ALL[dtype..=dtype]), count), Just(axis))
    });
    check(cases, |(samples, axis)| {
        let mut shape = samples[0].values.shape.clone();
        shape.insert(axis, samples.len());
        let expected = Reference::from_fn(&shape, |index| {
            let mut from = index.to_vec();
            let n = from.remove(axis);
            samples[n].values.at(&from)
        });
        expect(&stack(&arrays(&samples)?, axis)?, samples[0].dtype, &expected)
    });
}

/// Returns the elements `start..stop` along an axis.
fn part(model: &Reference, axis: usize, start: usize, stop: usize) -> Reference {
    model.select_along(axis, stop.saturating_sub(start), |n| start + n)
}

#[test]
fn array_split_gives_the_first_parts_one_more() {
    check((samples_and_axis(1..=4, ALL), 1..=7usize), |((sample, axis), count)| {
        let front = from_front(axis, sample.values.ndim());
        let extent = sample.values.shape[front];
        let parts = array_split(&sample.array()?, count, axis)?;
        prop_assert_eq!(parts.len(), count);
        let mut start = 0;
        for (n, found) in parts.iter().enumerate() {
            let length = extent / count + usize::from(n < extent % count);
            expect(found, sample.dtype, &part(&sample.values, front, start, start + length))?;
            start += length;
        }
        prop_assert_eq!(split(&sample.array()?, count, axis).is_ok(), extent % count == 0);
        Ok(())
    });
}

#[test]
fn split_at_indices_is_a_list_of_slices() {
    check((samples_and_axis(1..=4, ALL), prop::collection::vec(-6..=8isize, 0..=4)), |((sample, axis), cuts)| {
        let front = from_front(axis, sample.values.ndim());
        let extent = sample.values.shape[front] as isize;
        let clamped = |cut: isize| (if cut < 0 { cut + extent } else { cut }).clamp(0, extent) as usize;
        let parts = split(&sample.array()?, &cuts[..], axis)?;
        prop_assert_eq!(parts.len(), cuts.len() + 1);
        for (n, found) in parts.iter().enumerate() {
            let start = if n == 0 { 0 } else { clamped(cuts[n - 1]) };
            let stop = if n == cuts.len() { extent as usize } else { clamped(cuts[n]) };
            expect(found, sample.dtype, &part(&sample.values, front, start, stop))?;
        }
        Ok(())
    });
}
