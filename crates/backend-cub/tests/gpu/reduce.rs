//! Reductions by CUB, compared with loops on the host.

use cuprum_core::{Complex, NdArray, add, broadcast_to, count_nonzero, f16, multiply, s};

use crate::{SIZES, close, numbers, on_device, served, served_array};

#[test]
fn sums_of_everything_at_every_size() {
    on_device(|| {
        for n in SIZES {
            let x = numbers(n);
            let want: f64 = x.iter().sum();
            let f64s = NdArray::from_slice(&x)?;
            close(&served::<f64>(|| f64s.sum(()))?, &[want], 1e-12 * n as f64, &format!("float64 {n}"));
            let single: Vec<f32> = x.iter().map(|x| *x as f32).collect();
            let want: f64 = single.iter().map(|x| f64::from(*x)).sum();
            let f32s = NdArray::from_slice(&single)?;
            close(&[served::<f32>(|| f32s.sum(()))?[0].into()], &[want], 1e-5 * (n as f64).sqrt().max(1.0), &format!("float32 {n}"));
            // A view that starts at the second element, so that loads are not aligned.
            let tail = f32s.index(s![1..])?;
            if n > 2 {
                let want = want - f64::from(single[0]);
                close(&[served::<f32>(|| tail.sum(()))?[0].into()], &[want], 1e-5 * (n as f64).sqrt().max(1.0), &format!("from 1 of {n}"));
            }
            let ints: Vec<i32> = (0..n).map(|i| (i as i32).wrapping_mul(2_654_435_761u32 as i32)).collect();
            let total: i64 = ints.iter().map(|x| i64::from(*x)).sum();
            let ints = NdArray::from_slice(&ints)?;
            assert_eq!(served::<i64>(|| ints.sum(()))?, [total], "{n}");
            assert_eq!(served::<i64>(|| multiply(&ints, 0).and_then(|z| add(z, 1)).and_then(|o| o.sum(())))?, [n as i64]);
        }
        Ok(())
    });
}

#[test]
fn extremes_their_indices_and_truth_values() {
    on_device(|| {
        for n in SIZES {
            let mut x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
            let (low, high) = (n / 3, n - 1);
            (x[low], x[high]) = (-7.0, 7.0);
            x[n - 1 - n / 5] = 7.0;
            let first_high = x.iter().position(|v| *v == 7.0).unwrap() as i64;
            let first_low = x.iter().position(|v| *v == -7.0).map(|i| i as i64);
            let a = NdArray::from_slice(&x)?;
            assert_eq!(served::<f32>(|| a.max(()))?, [7.0], "{n}");
            assert_eq!(served::<i64>(|| a.argmax(()))?, [first_high], "{n}");
            if let Some(at) = first_low {
                assert_eq!((served::<f32>(|| a.min(()))?[0], served::<i64>(|| a.argmin(()))?[0]), (-7.0, at), "{n}");
            }
            x[n / 2] = f32::NAN;
            let a = NdArray::from_slice(&x)?;
            for value in [served_array(|| a.min(()))?, served_array(|| a.max(()))?] {
                assert!(value.to_vec::<f32>()?[0].is_nan(), "{n}");
            }
            assert_eq!(served::<i64>(|| a.argmin(()))?, [(n / 2) as i64], "{n}");
            assert_eq!(served::<i64>(|| a.argmax(()))?, [(n / 2) as i64], "{n}");
            let mut bits = vec![false; n];
            bits[n - 1] = true;
            let b = NdArray::from_slice(&bits)?;
            assert_eq!((served::<bool>(|| b.any(()))?[0], served::<bool>(|| b.all(()))?[0]), (true, false), "{n}");
            assert_eq!(served::<i64>(|| count_nonzero(&b, ()))?, [1], "{n}");
        }
        Ok(())
    });
}

#[test]
fn rows_of_every_shape() {
    on_device(|| {
        let shapes = [(3, 7), (2, 2), (1000, 33), (1001, 32), (257, 128), (300, 129), (500, 2049), (300, 5000), (4, 100_000), (255, 9000)];
        for (rows, columns) in shapes {
            let x = numbers(rows * columns);
            let a = NdArray::from_vec(&x, [rows, columns])?;
            let what = format!("{rows} x {columns}");
            let sums: Vec<f64> = x.chunks(columns).map(|r| r.iter().sum()).collect();
            close(&served::<f64>(|| a.sum(-1))?, &sums, 1e-12 * columns as f64, &what);
            let squares: Vec<f64> = x.chunks(columns).map(|r| r.iter().map(|x| x * x).sum()).collect();
            close(&served::<f64>(|| multiply(&a, &a)?.sum(-1))?, &squares, 1e-12 * columns as f64, &what);
            let indices: Vec<i64> =
                x.chunks(columns).map(|r| (0..columns).rev().max_by(|&i, &j| r[i].total_cmp(&r[j])).unwrap() as i64).collect();
            assert_eq!(served::<i64>(|| a.argmax(-1))?, indices, "{what}");
            // Every other row in reverse order.
            let some: Vec<f64> = sums.iter().rev().step_by(2).copied().collect();
            let view = a.index(s![..;-2, ..])?;
            close(&served::<f64>(|| view.sum(1))?, &some, 1e-12 * columns as f64, &what);
        }
        // Rows along two axes, one of them broadcast, and a fused addition of a broadcast row.
        let x = numbers(5 * 40);
        let a = NdArray::from_vec(&x, [5, 1, 40])?;
        let row = NdArray::from_vec(numbers(40), [40])?;
        let want: Vec<f64> = (0..15).map(|i| (0..40).map(|c| x[i / 3 * 40 + c] + x[c]).sum()).collect();
        let wide = broadcast_to(&a, [5, 3, 40])?;
        close(&served::<f64>(|| add(&wide, &row)?.sum(-1))?, &want, 1e-11, "broadcast");
        Ok(())
    });
}

#[test]
fn dtypes_follow_numpy_rules() {
    on_device(|| {
        let halves = NdArray::from_slice(&vec![f16::from_f64(0.1); 4096])?;
        let want = f16::from_f64(4096.0 * f16::from_f64(0.1).to_f64());
        assert_eq!(served::<f16>(|| halves.sum(()))?, [want]);
        let zeros = NdArray::from_slice(&vec![-0.0f32; 1000])?;
        assert!(served::<f32>(|| zeros.sum(()))?[0].is_sign_positive(), "as in NumPy");
        let z = [Complex::new(f64::INFINITY, 1.0), Complex::new(2.0, -3.0)];
        assert_eq!(served::<Complex<f64>>(|| NdArray::from_slice(&z)?.sum(()))?, [Complex::new(f64::INFINITY, -2.0)]);
        let bytes = NdArray::from_slice(&(0..1000).map(|i| i as u8).collect::<Vec<_>>())?;
        assert_eq!(served::<u64>(|| bytes.sum(()))?, [(0..1000u64).map(|i| i % 256).sum::<u64>()]);
        assert_eq!((served::<u8>(|| bytes.max(()))?[0], served::<u8>(|| bytes.min(()))?[0]), (255, 0));
        let twos = NdArray::from_slice(&vec![2i64; 70])?;
        assert_eq!(served::<i64>(|| twos.prod(()))?, [0], "2^70 wraps");
        Ok(())
    });
}
