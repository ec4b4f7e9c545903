//! Running sums, products and extremes.

use cuprum::{DType, cummax, cummin};
use proptest::prelude::*;

use crate::arrays::{REAL, WIDE, check, expect, samples_and_axis};
use crate::reference::{Reference, from_front};

/// Returns the running results of `f` along a row.
fn running(row: &[i64], f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let mut results: Vec<i64> = Vec::new();
    for &value in row {
        results.push(results.last().map_or(value, |&last| f(last, value)));
    }
    results
}

/// Returns the running results along an axis, or of the flattened array for `None`.
fn scanned(model: &Reference, axis: Option<isize>, f: impl Fn(i64, i64) -> i64) -> Reference {
    match axis {
        Some(axis) => model.map_rows(from_front(axis, model.ndim()), |row| running(row, &f)),
        None => model.flat().map_rows(0, |row| running(row, &f)),
    }
}

#[test]
fn cumsum_adds_along_an_axis() {
    check((samples_and_axis(1..=4, REAL), any::<bool>()), |((sample, axis), flattened)| {
        let axis = (!flattened).then_some(axis);
        let dtype = match sample.dtype {
            DType::F32 | DType::F64 => sample.dtype,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
            _ => DType::I64,
        };
        expect(&sample.array()?.cumsum(axis)?, dtype, &scanned(&sample.values, axis, |a, b| a + b))
    });
}

#[test]
fn cumprod_multiplies_along_an_axis() {
    check((samples_and_axis(1..=4, WIDE), any::<bool>()), |((mut sample, axis), flattened)| {
        sample.values = sample.values.map(|v| if v == 0 { 1 } else { v.signum() });
        let axis = (!flattened).then_some(axis);
        let dtype = if matches!(sample.dtype, DType::I32 | DType::I64) { DType::I64 } else { sample.dtype };
        expect(&sample.array()?.cumprod(axis)?, dtype, &scanned(&sample.values, axis, |a, b| a * b))
    });
}

#[test]
fn cummax_and_cummin_keep_the_extreme_along_an_axis() {
    check(samples_and_axis(1..=4, REAL), |(sample, axis)| {
        let array = sample.array()?;
        expect(&cummax(&array, axis)?, sample.dtype, &scanned(&sample.values, Some(axis), i64::max))?;
        expect(&cummin(&array, axis)?, sample.dtype, &scanned(&sample.values, Some(axis), i64::min))
    });
}
