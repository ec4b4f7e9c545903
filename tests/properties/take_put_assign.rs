//! Reads and writes by index: negative and repeated indices, slices and index arrays.

use cuprum::{Bounds, DType, IndexItem, Item, NdArray, put, take_along_axis};
use proptest::prelude::*;
use proptest::sample::select;

use crate::arrays::{ALL, Sample, check, expect, fit, nonempty_samples, nonempty_shapes, samples_of_shape};
use crate::reference::{Reference, from_front, indices, position};

/// Index arrays of a given shape for an axis of `extent` elements, in one of the integer dtypes.
#[derive(Clone, Debug)]
struct IndexArray {
    values: Reference,
    dtype: DType,
}

impl IndexArray {
    fn array(&self) -> cuprum::Result<NdArray> {
        NdArray::from_vec(self.values.data.clone(), self.values.shape.clone())?.astype(self.dtype)
    }

    fn at(&self, index: &[usize], extent: usize) -> usize {
        from_front(self.values.at(index) as isize, extent)
    }
}

fn index_shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..=4usize, 0..=2)
}

fn index_arrays(shape: Vec<usize>, extent: usize) -> impl Strategy<Value = IndexArray> {
    let (size, n) = (shape.iter().product::<usize>(), extent as i64);
    // An int8 has no larger indices.
    let dtypes = select(if extent <= 127 { &[DType::I64, DType::I32, DType::I8][..] } else { &[DType::I64, DType::I32][..] });
    (prop::collection::vec(-n..n, size), dtypes)
        .prop_map(move |(data, dtype)| IndexArray { values: Reference { shape: shape.clone(), data }, dtype })
}

/// An array that has elements, one of its axes, and an index array of any shape for that axis.
fn takes() -> impl Strategy<Value = (Sample, isize, IndexArray)> {
    (nonempty_samples(1..=4, ALL), index_shapes(), any::<prop::sample::Index>(), any::<bool>()).prop_flat_map(
        |(sample, shape, axis, from_end)| {
            let ndim = sample.values.ndim();
            let axis = axis.index(ndim);
            let indices = index_arrays(shape, sample.values.shape[axis]);
            (Just(sample), Just(if from_end { axis as isize - ndim as isize } else { axis as isize }), indices)
        },
    )
}

#[test]
fn take_reads_negative_and_repeated_indices() {
    check(takes(), |(sample, axis, chosen)| {
        let model = &sample.values;
        let (front, count) = (from_front(axis, model.ndim()), chosen.values.ndim());
        let shape = [&model.shape[..front], &chosen.values.shape[..], &model.shape[front + 1..]].concat();
        let expected = Reference::from_fn(&shape, |index| {
            let n = chosen.at(&index[front..front + count], model.shape[front]);
            model.at(&[&index[..front], &[n], &index[front + count..]].concat())
        });
        expect(&sample.array()?.take(&chosen.array()?, axis)?, sample.dtype, &expected)
    });
}

#[test]
fn take_without_an_axis_reads_the_flattened_array() {
    let cases = (nonempty_samples(0..=3, ALL), index_shapes()).prop_flat_map(|(sample, shape)| {
        let size = sample.values.data.len();
        (Just(sample), index_arrays(shape, size))
    });
    check(cases, |(sample, chosen)| {
        let size = sample.values.data.len();
        let expected = Reference::from_fn(&chosen.values.shape, |index| sample.values.data[chosen.at(index, size)]);
        expect(&sample.array()?.take(&chosen.array()?, ())?, sample.dtype, &expected)
    });
}

#[test]
fn take_along_axis_reads_one_index_for_each_element() {
    let cases = (nonempty_shapes(1..=4), any::<prop::sample::Index>(), 0..=5usize).prop_flat_map(|(shape, axis, count)| {
        let axis = axis.index(shape.len());
        let mut of_indices = shape.clone();
        of_indices[axis] = count;
        let extent = shape[axis];
        (samples_of_shape(shape, ALL), Just(axis), index_arrays(of_indices, extent))
    });
    check(cases, |(sample, axis, chosen)| {
        let expected = Reference::from_fn(&chosen.values.shape, |index| {
            let mut source = index.to_vec();
            source[axis] = chosen.at(index, sample.values.shape[axis]);
            sample.values.at(&source)
        });
        expect(&take_along_axis(&sample.array()?, &chosen.array()?, axis as isize)?, sample.dtype, &expected)
    });
}

#[test]
fn pairs_of_index_arrays_read_elements() {
    let cases = nonempty_samples(2..=3, ALL).prop_flat_map(|sample| {
        let (rows, columns) = (sample.values.shape[0], sample.values.shape[1]);
        // The rows broadcast against the columns.
        (Just(sample), index_arrays(vec![3, 1], rows), index_arrays(vec![4], columns))
    });
    check(cases, |(sample, rows, columns)| {
        let model = &sample.values;
        let shape = [&[3, 4], &model.shape[2..]].concat();
        let expected = Reference::from_fn(&shape, |index| {
            let (row, column) = (rows.at(&[index[0], 0], model.shape[0]), columns.at(&[index[1]], model.shape[1]));
            model.at(&[&[row, column], &index[2..]].concat())
        });
        let items = [IndexItem::from(rows.array()?), IndexItem::from(columns.array()?)];
        expect(&sample.array()?.index(&items[..])?, sample.dtype, &expected)
    });
}

#[test]
fn put_stores_the_last_value_of_a_repeated_index() {
    let cases =
        (nonempty_samples(0..=3, ALL), 0..=12usize, prop::collection::vec(-9..=9i64, 1..=5)).prop_flat_map(|(sample, count, values)| {
            let size = sample.values.data.len();
            (Just(sample), index_arrays(vec![count], size), Just(values))
        });
    check(cases, |(sample, chosen, values)| {
        let mut expected = sample.values.clone();
        let size = expected.data.len();
        for n in 0..chosen.values.data.len() {
            expected.data[chosen.at(&[n], size)] = fit(sample.dtype, values[n % values.len()]);
        }
        let values: Vec<i64> = values.iter().map(|&v| fit(sample.dtype, v)).collect();
        let before = sample.array()?;
        let mut array = before.clone();
        put(&mut array, &chosen.array()?, &NdArray::from_slice(&values)?, Bounds::Raise)?;
        expect(&array, sample.dtype, &expected)?;
        expect(&before, sample.dtype, &sample.values)
    });
}

#[test]
fn assignment_to_slices_stores_broadcast_values() {
    let slice = || (-4..=4isize, 0..=5isize, prop_oneof![4 => Just(1isize), 1 => Just(2), 1 => Just(-1), 1 => Just(-2)]);
    let cases = (nonempty_samples(1..=4, ALL), prop::collection::vec(slice(), 1..=4), prop::collection::vec(-9..=9i64, 200), any::<bool>());
    check(cases, |(sample, slices, values, is_row)| {
        let ndim = sample.values.ndim();
        let slices = &slices[..slices.len().min(ndim)];
        // The indices that each slice selects: from a start, as many steps as fit in the axis.
        let mut chosen: Vec<Vec<usize>> = sample.values.shape.iter().map(|&extent| (0..extent).collect()).collect();
        let mut items = Vec::new();
        for (axis, &(start, count, step)) in slices.iter().enumerate() {
            let extent = sample.values.shape[axis] as isize;
            let first = start.rem_euclid(extent);
            chosen[axis] = (0..count).map(|n| first + n * step).filter(|n| (0..extent).contains(n)).map(|n| n as usize).collect();
            let stop = first + count * step;
            items.push(Item::slice(first, (stop >= 0).then_some(stop), step));
        }
        let selection: Vec<usize> = chosen.iter().map(Vec::len).collect();
        let value_shape = if is_row { selection[1..].to_vec() } else { selection.clone() };
        let values = Reference::from_fn(&value_shape, |index| {
            let at = position(&value_shape, index);
            fit(sample.dtype, values[at % values.len()])
        });
        let mut expected = sample.values.clone();
        for index in indices(&selection) {
            let target: Vec<usize> = index.iter().enumerate().map(|(axis, &n)| chosen[axis][n]).collect();
            expected.set(&target, values.at_broadcast(&index));
        }
        let before = sample.array()?;
        let mut array = before.clone();
        array.assign(&items, &NdArray::from_vec(values.data, values.shape)?)?;
        expect(&array, sample.dtype, &expected)?;
        expect(&before, sample.dtype, &sample.values)
    });
}

#[test]
fn assignment_by_an_index_array_stores_the_last_value() {
    let cases = (takes(), prop::collection::vec(-9..=9i64, 100));
    check(cases, |((sample, axis, chosen), values)| {
        let model = &sample.values;
        let (front, count) = (from_front(axis, model.ndim()), chosen.values.ndim());
        let shape = [&model.shape[..front], &chosen.values.shape[..], &model.shape[front + 1..]].concat();
        let values = Reference::from_fn(&shape, |index| fit(sample.dtype, values[position(&shape, index) % values.len()]));
        let mut expected = model.clone();
        for index in indices(&shape) {
            let n = chosen.at(&index[front..front + count], model.shape[front]);
            expected.set(&[&index[..front], &[n], &index[front + count..]].concat(), values.at(&index));
        }
        let mut items = vec![IndexItem::from(Item::slice(None, None, 1)); front];
        items.push(chosen.array()?.into());
        let mut array = sample.array()?;
        array.assign(&items, &NdArray::from_vec(values.data, values.shape)?)?;
        expect(&array, sample.dtype, &expected)
    });
}

#[test]
fn indices_out_of_bounds_are_errors() {
    check((nonempty_samples(1..=3, ALL), 0..=3i64, any::<bool>()), |(sample, beyond, is_negative)| {
        let extent = sample.values.shape[0] as i64;
        let index = NdArray::from_slice(&[0, if is_negative { -extent - 1 - beyond } else { extent + beyond }])?;
        let array = sample.array()?;
        let taken = array.take(&index, 0).and_then(|taken| taken.eval().map(|_| ()));
        prop_assert!(taken.is_err());
        let mut changed = array.clone();
        let assigned = changed.assign(&index, 1).and_then(|()| changed.eval().map(|_| ()));
        prop_assert!(assigned.is_err());
        Ok(())
    });
}
