//! Reductions over lists of axes, with and without `keepdims`, `where=` and `initial=`.

use cuprum::{AxisOptions, DType, axis, count_nonzero};
use proptest::prelude::*;

use crate::arrays::{Checked, REAL, Sample, WIDE, check, expect, samples, samples_and_axis, samples_of_shape};
use crate::reference::{Reference, from_front};

/// The axes of a reduction: `None` for all, else a list in any order, counted from the front or from the end.
type AxisList = Option<Vec<isize>>;

fn axis_lists(ndim: usize) -> impl Strategy<Value = AxisList> {
    let signs = prop::collection::vec(any::<bool>(), ndim);
    let some = (Just((0..ndim).collect::<Vec<usize>>()).prop_shuffle(), 0..=ndim, signs).prop_map(move |(order, count, signs)| {
        let written = |&axis: &usize| if signs[axis] { axis as isize } else { axis as isize - ndim as isize };
        Some(order[..count].iter().map(written).collect())
    });
    prop_oneof![1 => Just(None), 4 => some]
}

fn cases(dtypes: &'static [DType]) -> impl Strategy<Value = (Sample, AxisList, bool)> {
    samples(0..=4, dtypes).prop_flat_map(|sample| {
        let ndim = sample.values.ndim();
        (Just(sample), axis_lists(ndim), any::<bool>())
    })
}

fn options(axes: &AxisList, keepdims: bool) -> AxisOptions {
    let over = match axes {
        None => axis(()),
        Some(axes) => axis(&axes[..]),
    };
    if keepdims { over.keepdims() } else { over }
}

fn reduced_axes(sample: &Sample, axes: &AxisList) -> Vec<usize> {
    let ndim = sample.values.ndim();
    match axes {
        None => (0..ndim).collect(),
        Some(axes) => axes.iter().map(|&axis| from_front(axis, ndim)).collect(),
    }
}

/// The dtype of sums: 64-bit integers for bool and integers.
fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F32 | DType::F64 => dtype,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
        _ => DType::I64,
    }
}

#[test]
fn sums_add_the_elements_of_each_row() {
    check(cases(REAL), |(sample, axes, keepdims)| {
        let expected = sample.values.reduce(&reduced_axes(&sample, &axes), keepdims, |row| row.iter().sum());
        expect(&sample.array()?.sum(options(&axes, keepdims))?, sum_dtype(sample.dtype), &expected)
    });
}

#[test]
fn products_multiply_the_elements_of_each_row() {
    check(cases(REAL), |(mut sample, axes, keepdims)| {
        // Products of -1, 1 and a few factors of 2 are exact in every dtype.
        let small = |v: i64| if v == 5 { 2 * v.signum() } else { v.signum() };
        sample.values = sample.values.map(small);
        let over = reduced_axes(&sample, &axes);
        if sample.values.reduce(&over, false, |row| row.iter().filter(|v| v.abs() == 2).count()).data.iter().any(|&n| n > 60) {
            return Ok(());
        }
        let expected = sample.values.reduce(&over, keepdims, |row| row.iter().product());
        expect(&sample.array()?.prod(options(&axes, keepdims))?, sum_dtype(sample.dtype), &expected)
    });
}

#[test]
fn extremes_are_the_least_and_greatest_of_each_row() {
    check(cases(REAL), |(sample, axes, keepdims)| {
        let over = reduced_axes(&sample, &axes);
        let (array, options) = (sample.array()?, options(&axes, keepdims));
        if over.iter().any(|&axis| sample.values.shape[axis] == 0) {
            prop_assert!(array.min(options.clone()).is_err() && array.max(options).is_err());
            return Ok(());
        }
        let extreme = |f: fn(i64, i64) -> i64| sample.values.reduce(&over, keepdims, |row| row.iter().copied().reduce(f).unwrap_or(0));
        expect(&array.min(options.clone())?, sample.dtype, &extreme(i64::min))?;
        expect(&array.max(options)?, sample.dtype, &extreme(i64::max))
    });
}

#[test]
fn any_all_and_count_nonzero_test_each_row() {
    check(cases(REAL), |(mut sample, axes, keepdims)| {
        let over = reduced_axes(&sample, &axes);
        // Most elements are 0, or none is.
        let sparse = sample.values.data.first().is_some_and(|&v| v % 2 == 0);
        sample.values = sample.values.map(|v| if sparse { i64::from(v == 1) } else { v.signum().abs() });
        let (array, options) = (sample.array()?, options(&axes, keepdims));
        let expected = |f: fn(usize, usize) -> bool| {
            sample.values.reduce(&over, keepdims, |row| i64::from(f(row.iter().filter(|v| **v != 0).count(), row.len())))
        };
        expect(&array.any(options.clone())?, DType::Bool, &expected(|nonzero, _| nonzero > 0))?;
        expect(&array.all(options.clone())?, DType::Bool, &expected(|nonzero, length| nonzero == length))?;
        let counts = sample.values.reduce(&over, keepdims, |row| row.iter().filter(|v| **v != 0).count() as i64);
        expect(&count_nonzero(&array, options)?, DType::I64, &counts)
    });
}

#[test]
fn means_divide_the_sum_by_the_length() {
    check(cases(REAL), |(sample, axes, keepdims)| {
        let over = reduced_axes(&sample, &axes);
        let mean = sample.array()?.mean(options(&axes, keepdims))?;
        let sums = sample.values.reduce(&over, keepdims, |row| (row.iter().sum::<i64>(), row.len()));
        prop_assert_eq!(mean.shape(), &sums.shape[..]);
        if sample.dtype == DType::F32 {
            let expected: Vec<u32> = sums.data.iter().map(|&(sum, n)| canonical(sum as f32 / n as f32).to_bits()).collect();
            prop_assert_eq!(mean.to_vec::<f32>()?.into_iter().map(|v| canonical(v).to_bits()).collect::<Vec<_>>(), expected);
        } else {
            let expected: Vec<f64> = sums.data.iter().map(|&(sum, n)| sum as f64 / n as f64).collect();
            let means = mean.to_vec::<f64>()?;
            prop_assert!(means.iter().zip(&expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())), "{means:?} {expected:?}");
        }
        Ok(())
    });
}

/// Returns the value, with one representation of NaN.
fn canonical(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

/// Checks the index of the first element for which no other element is `better`.
fn check_index_of_extreme(better: fn(i64, i64) -> bool, f: fn(&cuprum::NdArray, AxisOptions) -> cuprum::Result<cuprum::NdArray>) {
    let cases = (samples_and_axis(1..=4, REAL), any::<bool>(), any::<bool>());
    check(cases, |((sample, axis), flattened, keepdims)| -> Checked {
        let ndim = sample.values.ndim();
        let axes = (!flattened).then_some(vec![axis]);
        let over: Vec<usize> = if flattened { (0..ndim).collect() } else { vec![from_front(axis, ndim)] };
        let result = f(&sample.array()?, options(&axes, keepdims));
        if over.iter().any(|&axis| sample.values.shape[axis] == 0) {
            prop_assert!(result.is_err());
            return Ok(());
        }
        let expected = sample.values.reduce(&over, keepdims, |row| {
            let mut found = 0;
            for n in 1..row.len() {
                if better(row[n], row[found]) {
                    found = n;
                }
            }
            found as i64
        });
        expect(&result?, DType::I64, &expected)
    });
}

#[test]
fn argmin_is_the_first_index_of_the_least_element() {
    check_index_of_extreme(|a, b| a < b, |a, over| a.argmin(over));
}

#[test]
fn argmax_is_the_first_index_of_the_greatest_element() {
    check_index_of_extreme(|a, b| a > b, |a, over| a.argmax(over));
}

#[test]
fn masks_and_initial_values_select_elements() {
    let cases = cases(WIDE).prop_flat_map(|(sample, axes, keepdims)| {
        let shape = sample.values.shape.clone();
        // The mask broadcasts along the first axis.
        let mask_shape = if shape.len() > 1 { shape[1..].to_vec() } else { shape };
        (Just(sample), Just(axes), Just(keepdims), samples_of_shape(mask_shape, &[DType::Bool]), -20..=20i64)
    });
    check(cases, |(sample, axes, keepdims, mask, initial)| {
        let (over, ndim) = (reduced_axes(&sample, &axes), sample.values.ndim());
        let pairs = Reference::from_fn(&sample.values.shape, |index| (sample.values.at(index), mask.values.at_broadcast(index) != 0));
        prop_assert_eq!(pairs.ndim(), ndim);
        let chosen = |row: &[(i64, bool)]| -> Vec<i64> { row.iter().filter(|(_, is_chosen)| *is_chosen).map(|(v, _)| *v).collect() };
        let sums = pairs.reduce(&over, keepdims, |row| initial + chosen(row).iter().sum::<i64>());
        let greatest = pairs.reduce(&over, keepdims, |row| chosen(row).into_iter().fold(initial, i64::max));
        let (array, mask) = (sample.array()?, mask.array()?);
        let options = options(&axes, keepdims).only_where(&mask).initial(initial);
        expect(&array.sum(options.clone())?, sum_dtype(sample.dtype), &sums)?;
        expect(&array.max(options)?, sample.dtype, &greatest)
    });
}
