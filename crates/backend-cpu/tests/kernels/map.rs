//! Map: layouts, fusion, dtypes.

use cuprum_backend_cpu::has_kernel;
use cuprum_core::op::{ArgumentType, Family};
use cuprum_core::{Complex, DType, NdArray, Op, arange_as, bf16, f16, full, linspace, maximum, s, where_, with_dtype, with_fusion, zeros};

use crate::support::{as_f64, layouts, matrix, on_threads};

/// Checks that every operation of the core crate's table has a kernel or is a composition of other operations.
#[test]
fn every_operation_has_a_kernel() {
    let missing: Vec<_> = Op::all().filter(|o| o.family() == Family::Map && o.0.composite.is_none() && !has_kernel(*o)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Checks that every dtype that an operation allows has a kernel, which returns the result dtype of the operation's rule.
#[test]
fn every_dtype_runs() {
    for op in Op::all().filter(|o| o.family() == Family::Map && has_kernel(*o)) {
        for dtype in DType::ALL {
            let rule = op.0.rule.unwrap();
            let Ok(signature) = rule.resolve_dtypes(op.name(), &vec![ArgumentType::Array(dtype); op.arity()]) else { continue };
            let a = NdArray::from_slice(&[0i32, 1, 2, 3]).unwrap().astype(dtype).unwrap();
            let args: Vec<_> = (0..op.arity()).map(|_| (&a).into()).collect();
            let out = cuprum_core::expr::elementwise(op, &args).unwrap();
            assert_eq!(out.dtype(), signature.result, "{op:?} {dtype}");
            let bytes = out.to_bytes().unwrap_or_else(|e| panic!("{op:?} {dtype}: {e}"));
            assert_eq!(bytes.len(), 4 * signature.result.itemsize());
        }
    }
}

#[test]
fn layouts_and_sizes() {
    for (rows, columns) in [(1, 1), (3, 5), (7, 700), (700, 7), (300, 1000), (2, 70_000)] {
        let a = |r: usize, c: usize| (r * 3 + c) as f32;
        let b = |r: usize, c: usize| (r + c * 2) as f32 / 2.0;
        let want = matrix(rows, columns, |r, c| (a(r, c) + 1.5) * b(r, c) - a(r, c));
        for (name_a, x) in layouts(rows, columns, a) {
            for (name_b, y) in layouts(rows, columns, b) {
                let got = on_threads(|| (&x + 1.5).multiply(&y)?.subtract(&x));
                assert!(got.to_vec::<f32>().unwrap() == want, "{name_a}, {name_b}, {rows} x {columns}");
            }
        }
    }
}

#[test]
fn broadcasting_and_scalars() {
    let (rows, columns) = (130, 519);
    let a = NdArray::from_vec(matrix(rows, columns, |r, c| (r * columns + c) as i64), [rows, columns]).unwrap();
    let row = NdArray::from_vec((0..columns as i64).collect::<Vec<_>>(), [columns]).unwrap();
    let column = NdArray::from_vec((0..rows as i64).collect::<Vec<_>>(), [rows, 1]).unwrap();
    let single = NdArray::scalar(7).unwrap();
    let got = on_threads(|| Ok(a.multiply(&row)? + &column - &single + 2));
    let want = matrix(rows, columns, |r, c| ((r * columns + c) * c + r) as i64 - 7 + 2);
    assert_eq!(got.to_vec::<i64>().unwrap(), want);
    let zero_d = &single + 1;
    assert_eq!((zero_d.shape(), zero_d.to_vec::<i64>().unwrap()), (&[][..], vec![8]));
    let empty = zeros([3, 0], DType::F32).unwrap() + 1.0;
    assert_eq!((empty.shape(), empty.to_vec::<f32>().unwrap()), (&[3, 0][..], vec![]));
}

#[test]
fn higher_ranks() {
    let a = NdArray::from_vec((0..2 * 3 * 4 * 5).map(|i| i as f64).collect::<Vec<_>>(), [2, 3, 4, 5]).unwrap();
    let p = a.transpose([2, 0, 3, 1]).unwrap();
    let q = NdArray::from_vec((0..4 * 2 * 5 * 3).map(|i| i as f64).collect::<Vec<_>>(), [4, 2, 5, 3]).unwrap();
    let got = on_threads(|| Ok(&p + &q));
    let (x, y) = (p.to_vec::<f64>().unwrap(), q.to_vec::<f64>().unwrap());
    assert_eq!(got.to_vec::<f64>().unwrap(), x.iter().zip(&y).map(|(a, b)| a + b).collect::<Vec<_>>());
}

/// Checks that a shared subexpression that the caller holds becomes a second output of one pass.
#[test]
fn several_outputs() {
    let x = NdArray::from_vec((0..5000).map(|i| i as f64 / 100.0).collect::<Vec<_>>(), [5000]).unwrap();
    let e = x.exp().unwrap();
    let y = &e + 1.0 + &x;
    let (y, e) = (y.to_vec::<f64>().unwrap(), e.to_vec::<f64>().unwrap());
    for (i, (y, e)) in y.iter().zip(&e).enumerate() {
        let x = i as f64 / 100.0;
        assert!((e - x.exp()).abs() <= f64::EPSILON * x.exp() && *y == e + 1.0 + x, "{x}: {e}, {y}");
    }
}

#[test]
fn fused_equals_step_by_step() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64] {
        let x = linspace(-3.0, 3.0, 3001).unwrap().astype(dtype).unwrap();
        let run = || on_threads(|| (&x * 2.5 + 1.0).multiply(&x)?.subtract(&x)?.divide(3.0)?.exp());
        let (fused, stepped) = (with_fusion(true, run), with_fusion(false, run));
        assert_eq!(fused.to_bytes().unwrap(), stepped.to_bytes().unwrap(), "{dtype}");
    }
}

/// Tests chains of elementary operations in registers: all strip lengths, the current value as either operand, values that several
/// operations read, chains that read results of other chains, and chains above the maximum length.
#[test]
fn chains_equal_step_by_step() {
    for dtype in [DType::F32, DType::F64] {
        for size in (1..=140).chain([255, 256, 257, 1024, 2047, 2049, 5000]) {
            let x = linspace(0.5, 3.0, size).unwrap().astype(dtype).unwrap();
            let y = linspace(-2.0, 7.3, size).unwrap().astype(dtype).unwrap();
            let one = full(1, 1.7, dtype).unwrap();
            let run = || {
                let both_sides = (7.0 - (3.0 * (&x + 1.0) / &y - &x)) / 3.0;
                let of_runs = (&y * 2.0 - 1.0) * (&x / 0.7 + &one) + (0.3 - (1.0 / &x));
                let shared = &both_sides * &y - &both_sides;
                let long = (0..40).fold(of_runs - shared, |sum, n| (sum + n) * 0.99);
                maximum(&long, &y)
            };
            let (fused, stepped) = (with_fusion(true, run).unwrap(), with_fusion(false, run).unwrap());
            assert_eq!(fused.to_bytes().unwrap(), stepped.to_bytes().unwrap(), "{size} of {dtype}");
        }
    }
}

#[test]
fn exponents_that_bfloat16_cannot_represent() {
    let x = NdArray::from_slice(&[bf16::from_bits(1), bf16::from_bits(2)]).unwrap();
    // `x` holds 2^-133 and 2^-132.
    let scaled = cuprum_core::ldexp(&x, NdArray::from_slice(&[257, 255]).unwrap()).unwrap();
    let want = [bf16::from_f32(2f32.powi(124)), bf16::from_f32(2f32.powi(123))];
    assert_eq!(scaled.to_vec::<bf16>().unwrap(), want);
}

#[test]
fn halves_round_after_each_operation() {
    let values: Vec<f16> = (0..2000).map(|i| f16::from_f32(i as f32 * 0.37 - 300.0)).collect();
    let x = NdArray::from_slice(&values).unwrap();
    let got = ((&x * 1.1) + 0.3).to_vec::<f16>().unwrap();
    let (k, c) = (f16::from_f32(1.1).to_f32(), f16::from_f32(0.3).to_f32());
    for (v, g) in values.iter().zip(got) {
        assert_eq!(g, f16::from_f32(f16::from_f32(v.to_f32() * k).to_f32() + c));
    }
    let b: Vec<bf16> = (0..700).map(|i| bf16::from_f32(i as f32)).collect();
    let y = NdArray::from_slice(&b).unwrap();
    let picked = where_(y.greater(350.0).unwrap(), &y, maximum(&y, 100.0).unwrap()).unwrap().to_vec::<bf16>().unwrap();
    for (v, g) in b.iter().zip(picked) {
        assert_eq!(g.to_f32(), if v.to_f32() > 350.0 { v.to_f32() } else { v.to_f32().max(100.0) });
    }
}

#[test]
fn conversions_between_all_dtypes() {
    for from in DType::ALL {
        let a = NdArray::from_slice(&[0i8, 1, 2, 100]).unwrap().astype(from).unwrap();
        for to in DType::ALL {
            let want: Vec<f64> = match (from, to) {
                (DType::Bool, _) | (_, DType::Bool) => vec![0.0, 1.0, 1.0, 1.0],
                _ => vec![0.0, 1.0, 2.0, 100.0],
            };
            let got = a.astype(to).unwrap();
            let got = if to.is_complex() { as_f64(&got.real().unwrap()) } else { as_f64(&got) };
            assert_eq!(got, want, "{from} to {to}");
        }
    }
}

#[test]
fn conversions_at_the_edges() {
    let inf = f64::INFINITY;
    let a = NdArray::from_slice(&[f64::NAN, inf, -inf, 1e10, -1.9, 255.9, -0.5]).unwrap();
    assert_eq!(a.astype(DType::I8).unwrap().to_vec::<i8>().unwrap(), [0, 127, -128, 127, -1, 127, 0]);
    assert_eq!(a.astype(DType::U8).unwrap().to_vec::<u8>().unwrap(), [0, 255, 0, 255, 0, 255, 0]);
    assert_eq!(a.astype(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true; 7]);
    let wide = NdArray::from_slice(&[300i32, -1, i32::MIN]).unwrap();
    assert_eq!(wide.astype(DType::U8).unwrap().to_vec::<u8>().unwrap(), [44, 255, 0]);
    assert_eq!(wide.astype(DType::U64).unwrap().to_vec::<u64>().unwrap(), [300, u64::MAX, i32::MIN as u64]);
    let z = NdArray::from_slice(&[Complex::new(1.5f64, 9.0), Complex::new(0.0, f64::NAN)]).unwrap();
    assert_eq!(z.astype(DType::F32).unwrap().to_vec::<f32>().unwrap(), [1.5, 0.0]);
    assert_eq!(z.astype(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true, true]);
    // A float64 just above the midpoint of two float16 values: the conversion must round once, not twice.
    let tie = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    let h = NdArray::from_slice(&[tie]).unwrap().astype(DType::F16).unwrap().to_vec::<f16>().unwrap();
    assert_eq!(h[0].to_f64(), 1.0 + 2f64.powi(-10));
}

#[test]
fn identity_of_every_dtype_keeps_bits() {
    // Bool has no `positive`, so its identity is a copy.
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
        let n = 1000;
        let bytes: Vec<u8> = (0..n * dtype.itemsize()).map(|i| (i * 37 % 251) as u8).collect();
        let a = NdArray::from_bytes(dtype, [10, 100], &bytes).unwrap().t().unwrap();
        let same = a.positive().unwrap();
        assert_eq!(same.to_bytes().unwrap(), a.to_bytes().unwrap(), "{dtype}");
        with_dtype!(dtype, T => assert_eq!(same.to_vec::<T>().unwrap().len(), n));
    }
}

#[test]
fn row_major_with_transposed_operands() {
    for (rows, columns) in [(16, 64), (33, 70), (100, 2500), (2500, 100), (17, 5000)] {
        let value = |r: usize, c: usize| (r * 7 + c) as f64 % 251.0;
        let double: Vec<f64> = matrix(rows, columns, |r, c| 2.0 * value(r, c));
        let views = layouts(rows, columns, value);
        for dtype in [DType::U16, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64, DType::C128] {
            // Conversion keeps the memory order, so that a transposed view stays transposed.
            let like: Vec<(&str, NdArray)> = views.iter().map(|(name, a)| (*name, a.astype(dtype).unwrap())).collect();
            let plain = &like[0].1;
            for (name, a) in &like {
                assert!(as_f64(&on_threads(|| Ok(plain + a))) == double, "{dtype} {name} {rows} x {columns}");
                assert!(as_f64(&on_threads(|| Ok(a + plain))) == double, "{dtype} {name} {rows} x {columns}");
            }
            let transposed = plain.t().unwrap().copy().unwrap().t().unwrap();
            assert!(as_f64(&on_threads(|| Ok(plain + &transposed))) == double, "{dtype} {rows} x {columns}");
            assert!(
                as_f64(&on_threads(|| transposed.contiguous())).iter().zip(&double).all(|(x, d)| 2.0 * x == *d),
                "{dtype} {rows} x {columns}"
            );
        }
    }
}

/// Tests results from 16 MiB on, which use non-temporal stores: rows of whole and of partial lines, read in place and transposed.
#[test]
fn large_results() {
    for (rows, columns) in [(2051usize, 2050usize), (2080, 2048)] {
        let a = arange_as(0, (rows * columns) as i64, 1, DType::I32).unwrap().reshape([rows, columns]).unwrap();
        let row = arange_as(0, rows as i64, 1, DType::I32).unwrap();
        let right = |got: NdArray, shape: [usize; 2], value: &dyn Fn(usize, usize) -> i32| {
            assert_eq!(got.shape(), shape);
            let got = got.to_vec::<i32>().unwrap();
            assert!((0..shape[0]).all(|r| (0..shape[1]).all(|c| got[r * shape[1] + c] == value(r, c))), "{rows} x {columns}");
        };
        let at = |r: usize, c: usize| (r * columns + c) as i32;
        right(on_threads(|| Ok(&a * 3 + 1)), [rows, columns], &|r, c| at(r, c) * 3 + 1);
        right(on_threads(|| Ok(a.t()? + &row)), [columns, rows], &|r, c| at(c, r) + c as i32);
        right(on_threads(|| a.t()?.contiguous()), [columns, rows], &|r, c| at(c, r));
        right(on_threads(|| a.index(s![1.., 3..])?.t()?.contiguous()), [columns - 3, rows - 1], &|r, c| at(c + 1, r + 3));
    }
}

#[test]
fn inverse_hyperbolic_cosine_of_zero_and_nan() {
    let z = NdArray::from_slice(&[Complex::new(0.0, f64::NAN)]).unwrap();
    let result = z.acosh().unwrap().to_vec::<Complex<f64>>().unwrap()[0];
    assert!(result.re.is_nan() && result.im == std::f64::consts::FRAC_PI_2, "{result}");
}

#[test]
fn assignments_by_a_mask_change_only_the_masked_elements() {
    let size = 200_003;
    let chosen: Vec<bool> = (0..size).map(|i| i * i % 7 < 3).collect();
    let mask = NdArray::from_vec(chosen.clone(), size).unwrap();
    for dtype in DType::ALL {
        let old = arange_as(0, size, 1, DType::I64).and_then(|a| a.remainder(100)?.astype(dtype)).unwrap();
        let (old_bytes, width) = (old.to_bytes().unwrap(), dtype.itemsize());
        let one = full(1, 1, dtype).unwrap().to_bytes().unwrap();
        let assigned = on_threads(|| {
            let mut target = old.copy()?;
            target.assign(&mask, 1)?;
            Ok(target)
        });
        let want: Vec<u8> = (0..size).flat_map(|i| if chosen[i] { &one[..] } else { &old_bytes[i * width..][..width] }).copied().collect();
        assert!(assigned.to_bytes().unwrap() == want, "{dtype}");
        // The target is a part of a larger buffer.
        let mut whole = old.copy().unwrap();
        whole.assign(s![1..], 0).unwrap();
        whole.eval().unwrap();
        let mut part = whole.index(s![3..]).unwrap();
        drop(whole);
        part.assign(mask.index(s![3..]).unwrap(), 1).unwrap();
        let want: Vec<f64> = chosen[3..].iter().map(|&c| f64::from(c)).collect();
        assert!(part.astype(DType::F64).unwrap().to_vec::<f64>().unwrap() == want, "{dtype}");
    }
    // The mask is the target, and the target has another memory layout than the mask.
    let mut target = NdArray::from_vec(chosen.clone(), size).unwrap();
    let itself = target.clone();
    target.assign(&itself, false).unwrap();
    drop(itself);
    assert!(!target.to_vec::<bool>().unwrap().contains(&true));
    let value = |r: usize, c: usize| (r * 300 + c) as f32;
    for (name, a) in layouts(200, 300, value) {
        let got = on_threads(|| {
            let mut target = a.clone();
            target.assign(&a.greater(100)?, 7)?;
            Ok(target)
        });
        let want = matrix(200, 300, |r, c| if value(r, c) > 100.0 { 7.0 } else { value(r, c) });
        assert!(got.to_vec::<f32>().unwrap() == want, "{name}");
    }
}
