//! Scatter on the CPU: assignments and combinations by index, compared with loops over the values.

use cuprum_backend_cpu::with_threads;
use cuprum_core::ops::elementwise::{ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, POWER, SUBTRACT};
use cuprum_core::{DType, Error, NdArray, Op, ScatterMode, arange_as, s, scatter, zeros};

use crate::on_cpu;

/// Returns `count` deterministic numbers below `limit`.
fn numbers(count: usize, limit: usize, seed: u64) -> Vec<i64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit
    };
    (0..count).map(|_| next() as i64).collect()
}

fn loop_over(a: &mut [f64], rows: usize, indices: &[i64], values: &[f64], f: impl Fn(f64, f64) -> f64) {
    let width = a.len() / rows;
    for (k, &index) in indices.iter().enumerate() {
        let row = if index < 0 { index + rows as i64 } else { index } as usize;
        for c in 0..width {
            let element = &mut a[row * width + c];
            *element = f(*element, values[k * width + c]);
        }
    }
}

#[test]
fn values_apply_in_order_for_any_number_of_threads() {
    type Combination = (Op, fn(f64, f64) -> f64);
    let combinations: [Combination; 6] = [
        (ADD, |a, b| a + b),
        (SUBTRACT, |a, b| a - b),
        (MULTIPLY, |a, b| a * b),
        (MINIMUM, f64::min),
        (MAXIMUM, f64::max),
        (DIVIDE, |a, b| a / b),
    ];
    on_cpu(|| {
        for (rows, width, count) in [(1000, 1, 100_000), (300, 7, 9000), (40, 64, 3000), (5, 1, 3), (3, 50_000, 4)] {
            let indices: Vec<i64> = numbers(count, 2 * rows, 5).into_iter().map(|i| i - rows as i64).collect();
            let values: Vec<f64> = numbers(count * width, 1000, 9).into_iter().map(|v| 0.9 + v as f64 / 1e4).collect();
            let start: Vec<f64> = numbers(rows * width, 100, 3).into_iter().map(|v| v as f64 / 7.0).collect();
            let shape = if width == 1 { vec![rows] } else { vec![rows, width] };
            let of_values = if width == 1 { vec![count] } else { vec![count, width] };
            let (index, value) = (NdArray::from_slice(&indices)?, NdArray::from_vec(values.clone(), of_values)?);
            let slow = count * width > 20_000;
            for (op, f) in combinations.into_iter().filter(|(op, _)| *op != DIVIDE || !slow) {
                let mut want = start.clone();
                loop_over(&mut want, rows, &indices, &values, f);
                for threads in [1, 3, 16] {
                    let mut a = NdArray::from_vec(start.clone(), shape.clone())?;
                    with_threads(threads, || a.update_at(op, &index, &value))??;
                    assert_eq!(a.to_vec::<f64>()?, want, "{op:?} {shape:?} on {threads} threads");
                }
            }
            let mut want = start.clone();
            loop_over(&mut want, rows, &indices, &values, |_, b| b);
            let mut a = NdArray::from_vec(start, shape)?;
            a.assign(&index, &value)?;
            assert_eq!(a.to_vec::<f64>()?, want);
        }
        Ok(())
    });
}

#[test]
fn single_elements_of_any_stride_are_updated_in_order() {
    let (rows, count) = (1000, 100_000);
    let indices: Vec<i64> = numbers(count, 2 * rows, 5).into_iter().map(|i| i - rows as i64).collect();
    let values: Vec<f64> = numbers(count, 1000, 9).into_iter().map(|v| 0.9 + v as f64 / 1e4).collect();
    on_cpu(|| {
        let (index, value) = (NdArray::from_slice(&indices)?, NdArray::from_slice(&values)?.flip(())?);
        let mut want = vec![1.0; rows];
        let reversed_values: Vec<f64> = values.iter().rev().copied().collect();
        loop_over(&mut want, rows, &indices, &reversed_values, |a, b| a + b);
        for (threads, reversed) in [(1, false), (1, true), (16, false), (16, true)] {
            let mut a = zeros([rows, 2], DType::F64)?;
            a.assign(s![.., 1], 1.0)?;
            if reversed {
                a = a.flip(0)?;
            }
            with_threads(threads, || a.update_at(ADD, s![&index, 1], &value))??;
            assert_eq!(a.index(s![.., 1])?.to_vec::<f64>()?, want, "{threads} threads, reversed: {reversed}");
            assert_eq!(a.index(s![.., 0])?.to_vec::<f64>()?, vec![0.0; rows]);
        }
        Ok(())
    });
}

#[test]
fn many_elements_of_a_large_array_are_updated_in_order() {
    // Two threads partition so many indices. Most cache lines of the first array are changed, and few of the second.
    let (count, large) = if cfg!(miri) { (600, 1100) } else { ((1 << 20) + 77, 1_100_000) };
    for rows in [large, 5 * large] {
        let indices: Vec<i64> = numbers(count, 2 * rows, 5).into_iter().map(|i| i - rows as i64).collect();
        let values: Vec<f64> = numbers(count, 1000, 9).into_iter().map(|v| v as f64).collect();
        on_cpu(|| {
            let (mut index, value) = (NdArray::from_slice(&indices)?, NdArray::from_slice(&values)?);
            let (mut last, mut sums) = (vec![1.0; rows], vec![1.0; rows]);
            loop_over(&mut last, rows, &indices, &values, |_, b| b);
            loop_over(&mut sums, rows, &indices, &values, |a, b| a + b / 1024.0);
            for (threads, reversed) in [(1, false), (2, false), (2, true), (16, false)] {
                let mut a = zeros([rows, 2], DType::F64)?;
                a.assign(s![.., 1], 1.0)?;
                if reversed {
                    a = a.flip(0)?;
                }
                let mut added = a.copy()?;
                with_threads(threads, || a.assign(s![&index, 1], &value))??;
                with_threads(threads, || added.update_at(ADD, s![&index, 1], value.divide(1024)?))??;
                assert!(added.index(s![.., 1])?.to_vec::<f64>()? == sums, "{threads} threads, reversed: {reversed}");
                assert!(a.index(s![.., 1])?.to_vec::<f64>()? == last, "{threads} threads, reversed: {reversed}");
                assert!(a.index(s![.., 0])?.to_vec::<f64>()? == vec![0.0; rows]);
            }
            // An invalid index in the last chunk changes nothing.
            index.assign(count - 1, rows)?;
            let mut a = zeros(rows, DType::F64)?;
            let done = with_threads(2, || a.update_at(ADD, &index, &value))?;
            assert!(matches!(done, Err(Error::Index { op: "add", index, .. }) if index == rows as i64), "{done:?}");
            assert!(a.to_vec::<f64>()?.iter().all(|&x| x == 0.0));
            Ok(())
        });
    }
}

#[test]
fn rows_of_any_layout_are_written_in_place() {
    on_cpu(|| {
        let base = arange_as(0, 2 * 3 * 4 * 5, 1, DType::I32)?.reshape([2, 3, 4, 5])?.copy()?;
        let index = NdArray::from_slice(&[1i64, -1, 0])?;
        for axes in [[0isize, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            for axis in 0..4 {
                for reversed in [false, true] {
                    let mut a = base.transpose(&axes[..])?.copy()?.transpose(&axes[..])?;
                    if reversed {
                        a = a.flip(())?;
                    }
                    let mut items = vec![cuprum_core::IndexItem::from(..); axis];
                    items.push((&index).into());
                    let old = a.to_vec::<i32>()?;
                    let selected = a.index(&items)?;
                    let value = arange_as(1000, 1000 + selected.size() as i64, 1, DType::I32)?.reshape(selected.shape())?;
                    // Each row is selected at most once if the axis has three elements or more.
                    let distinct = a.shape()[axis] > 2;
                    a.assign(&items, &value)?;
                    assert!(!distinct || a.index(&items)? == value, "{axes:?} {axis}");
                    let mut b = NdArray::from_vec(old.clone(), a.shape().to_vec())?;
                    b.assign(&items, &value)?;
                    assert_eq!(a.to_vec::<i32>()?, b.to_vec::<i32>()?, "{axes:?} {axis} {reversed}");
                    let changed = old.iter().zip(a.to_vec::<i32>()?).filter(|(old, new)| *old != new).count();
                    assert!(changed <= selected.size() && changed > 0);
                }
            }
        }
        let mut a = zeros([4, 6], DType::F32)?;
        let pointer = a.as_slice::<f32>()?.as_ptr();
        a.assign(s![&index, 1..;2], 3)?;
        a.assign(s![[0, 1], [2, 5]], &NdArray::from_slice(&[8f32, 9.0])?)?;
        a.update_at(ADD, s![.., [0, 0]], 1)?;
        assert_eq!(a.as_slice::<f32>()?.as_ptr(), pointer, "written in place");
        assert_eq!(a.index(s![0..2])?.to_vec::<f32>()?, [2.0, 3.0, 8.0, 3.0, 0.0, 3.0, 2.0, 3.0, 0.0, 3.0, 0.0, 9.0]);
        Ok(())
    });
}

#[test]
fn separated_index_arrays_merge_into_one_axis() {
    on_cpu(|| {
        let a = arange_as(0, 60, 1, DType::I64)?.reshape([3, 4, 5])?;
        let (i, j) = (NdArray::from_vec(vec![0i64, 2, 1, 0], [2, 2])?, NdArray::from_slice(&[4i64, -5])?);
        for view in [a.clone(), a.flip(0)?, a.t()?.copy()?.t()?] {
            let picked = view.index(s![&i, .., &j])?;
            let host = view.to_vec::<i64>()?;
            let want: Vec<i64> = [(0, 4), (2, 0), (1, 4), (0, 0)]
                .iter()
                .flat_map(|(i, j)| (0..4).map(move |k| (i, k, j)))
                .map(|(i, k, j)| host[i * 20 + k * 5 + j])
                .collect();
            assert_eq!((picked.shape(), picked.to_vec::<i64>()?), (&[2, 2, 4][..], want));
            let mut written = view.clone();
            written.assign(s![&i, .., &j], &picked.negative()?)?;
            assert_eq!(written.index(s![&i, .., &j])?.to_vec::<i64>()?, picked.negative()?.to_vec::<i64>()?);
            let signs = written.multiply(&view)?.less(0)?.astype(DType::I64)?.sum(())?.item()?;
            assert_eq!(signs.as_int(), Some(picked.not_equal(0)?.astype(DType::I64)?.sum(())?.item()?.as_int().unwrap()));
        }
        Ok(())
    });
}

#[test]
fn masks_and_functions_of_one_argument() {
    on_cpu(|| {
        let mut a = arange_as(0, 6, 1, DType::I32)?.reshape([2, 3])?.copy()?;
        let mask = a.greater(2)?;
        a.assign(&mask, &NdArray::from_slice(&[7, 8, 9])?)?;
        a.update_at(ADD, &a.less(2)?, 10)?;
        assert_eq!(a.to_vec::<i32>()?, [10, 11, 2, 7, 8, 9]);
        a.apply_at(NEGATIVE, s![[0, 0, 1], [0, 0, 2]])?;
        assert_eq!(a.to_vec::<i32>()?, [10, 11, 2, 7, 8, -9], "twice negated, once negated");
        a.update_at(POWER, s![[1, 1], [0, 0]], 2)?;
        assert_eq!(a.index(s![1, 0])?.item()?, 2401i32);
        a.update_at(SUBTRACT, s![0], 1)?;
        assert_eq!(a.index(0)?.to_vec::<i32>()?, [9, 10, 1]);
        let mut root = NdArray::from_slice(&[2f64, 1e300])?;
        root.update_at(DIVIDE, &zeros(20_000, DType::I64)?, &NdArray::from_vec([0.5, 2.0].repeat(10_000), 20_000)?)?;
        assert_eq!(root.to_vec::<f64>()?, [2.0, 1e300], "as many passes as indices");
        let shared = a.clone();
        a.update_at(ADD, &NdArray::from_slice(&[-1])?, 1)?;
        assert_eq!((shared.index(s![1, 2])?.item()?, a.index(s![1, 2])?.item()?), ((-9i32).into(), (-8i32).into()));
        Ok(())
    });
}

#[test]
fn errors_keep_the_array() {
    on_cpu(|| {
        let mut a = arange_as(0, 4, 1, DType::I32)?.copy()?;
        let index = |i: &[i64]| NdArray::from_slice(i);
        assert!(matches!(a.assign(&index(&[0, 4])?, 9), Err(Error::Index { op: "assign", index: 4, axis: 0, size: 4 })));
        assert!(matches!(a.update_at(ADD, &index(&[-5])?, 1), Err(Error::Index { op: "add", index: -5, .. })));
        assert!(matches!(a.update_at(ADD, &index(&[0])?, 1.5), Err(Error::DType { op: "add", .. })));
        assert!(a.update_at(ADD, &index(&[0, 1])?, &index(&[1, 2, 3])?).is_err());
        assert!(a.update_at(NEGATIVE, &index(&[0])?, 1).is_err() && a.apply_at(ADD, &index(&[0])?).is_err());
        assert!(scatter(&a, &index(&[0])?, 1, 1, ScatterMode::Sum).is_err());
        assert!(scatter(&a, &NdArray::from_slice(&[0.0])?, 1, 0, ScatterMode::Sum).is_err());
        let mut empty = zeros([0, 3], DType::I32)?;
        assert!(empty.assign(&index(&[0])?, 1).is_err());
        empty.assign(&index(&[])?, 1)?;
        assert_eq!(a.to_vec::<i32>()?, [0, 1, 2, 3]);
        let mut halves = NdArray::from_slice(&[1f32, 2.0])?;
        halves.update_at(ADD, &index(&[1, 1])?, &NdArray::from_slice(&[0.25f64, 0.5])?)?;
        assert_eq!((halves.dtype(), halves.to_vec::<f32>()?), (DType::F32, vec![1.0, 2.75]));
        Ok(())
    });
}
