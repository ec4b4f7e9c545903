//! Sorts, stable index sorts and binary searches, with NaN and signed zeros.

use std::cmp::Ordering;

use cuprum::{DType, NdArray, Side, axis};
use proptest::prelude::*;
use proptest::sample::select;

use crate::arrays::{REAL, check, check_cases, expect, samples_and_axis};
use crate::reference::from_front;

#[test]
fn sort_orders_each_row() {
    check(samples_and_axis(1..=4, REAL), |(sample, along)| {
        let expected = sample.values.map_rows(from_front(along, sample.values.ndim()), |row| {
            let mut sorted = row.to_vec();
            sorted.sort();
            sorted
        });
        expect(&sample.array()?.sort(along)?, sample.dtype, &expected)
    });
}

#[test]
fn argsort_keeps_the_order_of_equal_elements() {
    check(samples_and_axis(1..=4, REAL), |(mut sample, along)| {
        // Few different values, so that most are equal to others.
        sample.values = sample.values.map(|v| v.signum());
        let order = |row: &[i64], compare: fn(i64, i64) -> Ordering| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| compare(row[a], row[b]).then(a.cmp(&b)));
            order.into_iter().map(|n| n as i64).collect::<Vec<_>>()
        };
        let front = from_front(along, sample.values.ndim());
        let ascending = sample.values.map_rows(front, |row| order(row, |a, b| a.cmp(&b)));
        let descending = sample.values.map_rows(front, |row| order(row, |a, b| b.cmp(&a)));
        let array = sample.array()?;
        expect(&array.argsort(along)?, DType::I64, &ascending)?;
        expect(&array.argsort(axis(along).descending())?, DType::I64, &descending)
    });
}

/// Returns the order of floats in which NaN is greatest and zeros are equal.
fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) if a < b => Ordering::Less,
        (false, false) if a > b => Ordering::Greater,
        (false, false) => Ordering::Equal,
        (a, b) => a.cmp(&b),
    }
}

#[test]
fn float_sorts_have_nan_last_and_are_stable() {
    let value = select(&[f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY][..]);
    let lengths = prop_oneof![3 => 0..=9usize, 1 => 10..=400usize];
    let rows = (lengths, any::<bool>()).prop_flat_map(move |(n, single)| (prop::collection::vec(value.clone(), n), Just(single)));
    check(rows, |(row, is_single)| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| compare_floats(row[a], row[b]).then(a.cmp(&b)));
        let array = NdArray::from_slice(&row)?.astype(if is_single { DType::F32 } else { DType::F64 })?;
        let found = array.argsort(0)?.to_vec::<i64>()?;
        prop_assert_eq!(found, order.iter().map(|&n| n as i64).collect::<Vec<_>>());
        let sorted = array.sort(0)?.astype(DType::F64)?.to_vec::<f64>()?;
        prop_assert!(sorted.iter().zip(&order).all(|(&a, &n)| compare_floats(a, row[n]) == Ordering::Equal), "{sorted:?}");
        Ok(())
    });
}

#[test]
fn long_rows_sort_as_short_ones() {
    let dtypes = select(&[DType::U8, DType::I16, DType::I32, DType::I64, DType::F32][..]);
    let rows = (prop::collection::vec(0..=120i64, 1000..=5000), dtypes);
    check_cases(8, rows, |(row, dtype)| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by_key(|&n| (row[n], n));
        let array = NdArray::from_slice(&row)?.astype(dtype)?;
        prop_assert_eq!(array.argsort(0)?.to_vec::<i64>()?, order.iter().map(|&n| n as i64).collect::<Vec<_>>());
        let sorted = array.sort(0)?.astype(DType::I64)?.to_vec::<i64>()?;
        prop_assert_eq!(sorted, order.iter().map(|&n| row[n]).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn searchsorted_counts_the_elements_below() {
    let lists = (prop::collection::vec(-9..=9i64, 0..=40), prop::collection::vec(-11..=11i64, 0..=9));
    check((lists, any::<bool>()), |((mut row, values), is_right)| {
        row.sort();
        let below = |value: i64| row.iter().filter(|&&v| if is_right { v <= value } else { v < value }).count() as i64;
        let expected: Vec<i64> = values.iter().map(|&value| below(value)).collect();
        let side = if is_right { Side::Right } else { Side::Left };
        let found = NdArray::from_slice(&row)?.searchsorted(&NdArray::from_slice(&values)?, side)?;
        prop_assert_eq!(found.to_vec::<i64>()?, expected);
        Ok(())
    });
}
