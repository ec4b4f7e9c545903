//! Broadcasting elementwise functions: `where`, `clip`, arithmetic and comparisons.

use cuprum::{DType, NdArray, Operand, add, clip, less, maximum, multiply, subtract, where_};
use proptest::prelude::*;

use crate::arrays::{ALL, REAL, Sample, WIDE, check, expect, samples_of_shape, shapes};
use crate::reference::{Reference, broadcast_shape};

/// Shapes that broadcast to `shape`: without leading axes, and with axes of extent 1.
fn broadcastable(shape: Vec<usize>) -> impl Strategy<Value = Vec<usize>> {
    let ndim = shape.len();
    (0..=ndim, prop::collection::vec(prop::bool::weighted(0.25), ndim)).prop_map(move |(dropped, ones)| {
        let dropped = if dropped == ndim { 0 } else { dropped };
        shape.iter().zip(&ones).skip(dropped).map(|(&extent, &one)| if one { 1 } else { extent }).collect()
    })
}

/// Two or three samples whose shapes broadcast, the first one of `first` dtypes and the others of one of `dtypes`.
fn operands(count: usize, first: &'static [DType], dtypes: &'static [DType]) -> impl Strategy<Value = Vec<Sample>> {
    (shapes(0..=4), 0..dtypes.len()).prop_flat_map(move |(shape, dtype)| {
        let operand = move |n: usize, shape: Vec<usize>| {
            let dtypes = if n == 0 { first } else { &dtypes[dtype..=dtype] };
            broadcastable(shape).prop_flat_map(move |shape| samples_of_shape(shape, dtypes))
        };
        (0..count).map(|n| operand(n, shape.clone())).collect::<Vec<_>>()
    })
}

fn common_shape(samples: &[Sample]) -> Vec<usize> {
    broadcast_shape(&samples.iter().map(|sample| &sample.values.shape[..]).collect::<Vec<_>>())
}

#[test]
fn where_selects_by_the_condition() {
    check(operands(3, &[DType::Bool, DType::I32, DType::F64], ALL), |samples| {
        let [condition, x, y] = &samples[..] else { unreachable!("three operands") };
        let expected = Reference::from_fn(&common_shape(&samples), |index| {
            if condition.values.at_broadcast(index) != 0 { x.values.at_broadcast(index) } else { y.values.at_broadcast(index) }
        });
        expect(&where_(condition.array()?, x.array()?, y.array()?)?, x.dtype, &expected)
    });
}

#[test]
fn clip_limits_by_arrays() {
    let dtype = 0..REAL.len();
    let cases = dtype.prop_flat_map(|dtype| {
        let dtypes = &REAL[dtype..=dtype];
        (operands(3, dtypes, dtypes), any::<bool>(), any::<bool>())
    });
    check(cases, |(samples, has_low, has_high)| {
        let [x, low, high] = &samples[..] else { unreachable!("three operands") };
        let used: Vec<Sample> = [Some(x), has_low.then_some(low), has_high.then_some(high)].into_iter().flatten().cloned().collect();
        // Bool has no bounds that are not arrays, and needs at least one.
        if x.dtype == DType::Bool && used.len() == 1 {
            return Ok(());
        }
        let expected = Reference::from_fn(&common_shape(&used), |index| {
            let mut value = x.values.at_broadcast(index);
            if has_low {
                value = value.max(low.values.at_broadcast(index));
            }
            if has_high {
                value = value.min(high.values.at_broadcast(index));
            }
            value
        });
        let bound = |used: bool, sample: &Sample| used.then(|| sample.array().map(Operand::from)).transpose();
        expect(&clip(x.array()?, bound(has_low, low)?, bound(has_high, high)?)?, x.dtype, &expected)
    });
}

#[test]
fn clip_limits_by_numbers() {
    check((operands(1, WIDE, WIDE), -9..=9i64, -9..=9i64), |(samples, low, high)| {
        let expected = samples[0].values.map(|v| v.max(low).min(high));
        expect(&clip(samples[0].array()?, Some(low.into()), Some(high.into()))?, samples[0].dtype, &expected)
    });
}

#[test]
fn arithmetic_broadcasts() {
    let cases = (0..WIDE.len()).prop_flat_map(|dtype| operands(2, &WIDE[dtype..=dtype], &WIDE[dtype..=dtype]));
    check(cases, |samples| {
        let [x, y] = &samples[..] else { unreachable!("two operands") };
        let (a, b, shape) = (x.array()?, y.array()?, common_shape(&samples));
        let model =
            |f: fn(i64, i64) -> i64| Reference::from_fn(&shape, |index| f(x.values.at_broadcast(index), y.values.at_broadcast(index)));
        expect(&add(&a, &b)?, x.dtype, &model(|a, b| a + b))?;
        expect(&subtract(&a, &b)?, x.dtype, &model(|a, b| a - b))?;
        expect(&maximum(&a, &b)?, x.dtype, &model(i64::max))?;
        expect(&less(&a, &b)?, DType::Bool, &model(|a, b| i64::from(a < b)))?;
        let fused: NdArray = add(multiply(&a, &b)?, multiply(&b, 3)?)?;
        expect(&fused, x.dtype, &model(|a, b| a * b + b * 3))
    });
}
