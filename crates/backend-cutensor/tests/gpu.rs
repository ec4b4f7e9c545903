//! Compares calls that cuTENSOR serves with results computed here.

use cuprum_backend_cuda::testing;
use cuprum_backend_cutensor::CUTENSOR;
use cuprum_core::{
    Availability, Complex, DType, Element, MatmulPrecision, NdArray, Result, add, axis, bf16, broadcast_to, einsum, explain, f16, full,
    matmul, multiply, registry, subtract, with_accelerators, with_device, with_matmul_precision,
};

/// Runs a test on the first CUDA device with an accelerator order that names only cuTENSOR. The accelerator `cuda` follows it.
fn on_device(test: impl FnOnce() -> Result<()>) {
    if let Availability::Missing { why, help } = registry::availability(&CUTENSOR) {
        return testing::skip(1, format_args!("{why}; {help}"));
    }
    let Some(device) = testing::device() else { return };
    with_device(device, || with_accelerators("cutensor", test)).unwrap().unwrap();
}

/// Evaluates the array and returns its elements. cuTENSOR must serve the last call.
fn served<T: Element>(f: impl FnOnce() -> Result<NdArray>) -> Result<Vec<T>> {
    let (array, records) = explain(|| f().and_then(|a| a.eval().cloned()));
    let array = array?;
    let last = records.last().expect("a call");
    assert_eq!(last.served_by, Some("cutensor"), "{last}");
    array.to_vec()
}

fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + seed * 11 + i * i % 7) % 23) as f64 / 8.0 - 1.25).collect()
}

fn array<T: Element>(shape: &[usize], seed: usize, of: impl Fn(f64) -> T) -> Result<NdArray> {
    let values: Vec<T> = numbers(shape.iter().product(), seed).into_iter().map(of).collect();
    NdArray::from_vec(values, shape)
}

fn product(m: usize, n: usize, k: usize) -> Vec<f64> {
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    (0..m * n).map(|i| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum()).collect()
}

fn close(got: impl IntoIterator<Item = f64>, want: &[f64], tolerance: f64) {
    let got: Vec<f64> = got.into_iter().collect();
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "element {i}: {g}, not {w}");
    }
}

#[test]
fn matmul_of_every_dtype() {
    on_device(|| {
        let (m, n, k) = (33, 65, 47);
        let want = product(m, n, k);
        macro_rules! check {
            ($t:ty, $of:expr, $back:expr, $tolerance:expr) => {
                let (a, b) = (array::<$t>(&[m, k], 1, $of)?, array::<$t>(&[k, n], 2, $of)?);
                close(served::<$t>(|| matmul(&a, &b))?.into_iter().map($back), &want, $tolerance);
            };
        }
        check!(f32, |x| x as f32, f64::from, 1e-5);
        check!(f64, |x| x, |x| x, 1e-13);
        check!(f16, f16::from_f64, f16::to_f64, 2e-3);
        check!(bf16, bf16::from_f64, bf16::to_f64, 2e-2);
        check!(Complex<f32>, |x| Complex::new(0.0, x as f32), |z: Complex<f32>| -f64::from(z.re), 1e-5);
        check!(Complex<f64>, |x| Complex::new(0.0, x), |z: Complex<f64>| -z.re, 1e-13);
        Ok(())
    });
}

#[test]
fn contractions_without_copies() {
    on_device(|| {
        // The summed modes b and c have another order in each operand, and the output mixes modes of both.
        let (a, b) = (array(&[3, 4, 5, 6], 1, |x| x)?, array(&[5, 4, 7], 2, |x| x)?);
        let (x, y) = (numbers(360, 1), numbers(140, 2));
        let mut want = vec![0.0; 7 * 3 * 6];
        for (i, w) in want.iter_mut().enumerate() {
            let (e, a, d) = (i / 18, i / 6 % 3, i % 6);
            *w = (0..20).map(|p| x[((a * 4 + p / 5) * 5 + p % 5) * 6 + d] * y[(p % 5 * 4 + p / 5) * 7 + e]).sum();
        }
        close(served::<f64>(|| einsum("abcd,cbe->ead", [&a, &b]))?, &want, 1e-13);
        // One operand is broadcast along the batch.
        let a = broadcast_to(&array(&[1, 4, 5], 1, |x| x)?, [3, 4, 5])?;
        let b = array(&[3, 5, 2], 2, |x| x)?;
        let (x, y) = (numbers(20, 1), numbers(30, 2));
        let want: Vec<f64> = (0..24).map(|i| (0..5).map(|p| x[i / 2 % 4 * 5 + p] * y[i / 8 * 10 + p * 2 + i % 2]).sum()).collect();
        close(served::<f64>(|| matmul(&a, &b))?, &want, 1e-13);
        Ok(())
    });
}

#[test]
fn sums_and_products_over_axes() {
    on_device(|| {
        let (shape, x) = ([7, 9, 11], numbers(693, 3));
        let a = array(&shape, 3, |x| x)?;
        let over = |axes: [bool; 3]| {
            let mut want = std::collections::BTreeMap::new();
            for (i, v) in x.iter().enumerate() {
                let at = [i / 99, i / 11 % 9, i % 11];
                let key: Vec<usize> = (0..3).filter(|&d| !axes[d]).map(|d| at[d]).collect();
                *want.entry(key).or_insert(0.0) += v;
            }
            want.into_values().collect::<Vec<f64>>()
        };
        close(served::<f64>(|| a.sum(0))?, &over([true, false, false]), 1e-13);
        close(served::<f64>(|| a.sum([0, 2]))?, &over([true, false, true]), 1e-13);
        close(served::<f64>(|| a.sum(()))?, &over([true, true, true]), 1e-12);
        let f = array(&shape, 3, |x| x as f32)?;
        close(served::<f32>(|| f.sum(1))?.into_iter().map(f64::from), &over([false, true, false]), 1e-5);
        let powers = NdArray::from_vec((0..24).map(|i| if i % 5 == 0 { -2.0f64 } else { 0.5 }).collect::<Vec<_>>(), [4, 6])?;
        let want: Vec<f64> = (0..6).map(|c| (0..4).map(|r| if (r * 6 + c) % 5 == 0 { -2.0 } else { 0.5 }).product()).collect();
        close(served::<f64>(|| powers.prod(axis(0)))?, &want, 0.0);
        Ok(())
    });
}

#[test]
fn matmul_has_the_requested_precision() {
    on_device(|| {
        // The square of 1 + 2^-12 has bits that are lost if the factors are rounded.
        let ones = full([256, 256], 1.0 + 1.0 / 4096.0, DType::F32)?;
        let exact = 256.0 * (1.0 + 1.0 / 4096.0f64).powi(2);
        use MatmulPrecision::*;
        for (precision, close) in [(Float32, true), (TensorFloat32, false), (BFloat16, false)] {
            let product = with_matmul_precision(precision, || served::<f32>(|| matmul(&ones, &ones)))?;
            let error = (f64::from(product[0]) - exact).abs() / exact;
            assert_eq!(error < 1e-6, close, "{precision:?}: {error}");
        }
        Ok(())
    });
}

#[test]
fn complex_infinities_and_signed_zeros_are_preserved() {
    on_device(|| {
        let inf = f32::INFINITY;
        let values = [Complex::new(inf, 1.0f32), Complex::new(-0.0, -1.0), Complex::new(2.0, inf), Complex::new(-0.0, -1.0)];
        let a = NdArray::from_vec(values, [2, 2])?;
        assert_eq!(served::<Complex<f32>>(|| a.sum(0))?, [Complex::new(inf, inf), Complex::new(-0.0, -2.0)]);
        let copied = served::<Complex<f32>>(|| a.t()?.copy())?;
        assert_eq!(copied, [values[0], values[2], values[1], values[3]]);
        assert!(copied[2].re.is_sign_negative());
        let sum = served::<Complex<f32>>(|| add(&a, a.t()?))?;
        assert_eq!(sum, [Complex::new(inf, 2.0), Complex::new(2.0, inf), Complex::new(2.0, inf), Complex::new(-0.0, -2.0)]);
        Ok(())
    });
}

#[test]
fn elementwise_expressions_with_a_transposed_operand() {
    on_device(|| {
        macro_rules! check {
            ($t:ty, $of:expr) => {
                let (a, b) = (array::<$t>(&[37, 70], 1, $of)?, array::<$t>(&[70, 37], 2, $of)?);
                let (x, y) = (a.to_vec::<$t>()?, b.to_vec::<$t>()?);
                let pairs = || (0..37 * 70).map(|i| (x[i], y[i % 70 * 37 + i / 70]));
                let same = |got: Vec<$t>, want: Vec<$t>| assert!(got == want, "{}", stringify!($t));
                same(served(|| add(&a, b.t()?))?, pairs().map(|(x, y)| x + y).collect());
                same(served(|| subtract(&a, b.t()?))?, pairs().map(|(x, y)| x - y).collect());
                same(served(|| subtract(b.t()?, &a))?, pairs().map(|(x, y)| y - x).collect());
                same(served(|| multiply(&a, b.t()?))?, pairs().map(|(x, y)| x * y).collect());
                same(served(|| b.t()?.copy())?, pairs().map(|(_, y)| y).collect());
            };
        }
        check!(f32, |x| x as f32 / 3.0);
        check!(f64, |x| x / 3.0);
        check!(f16, |x| f16::from_f64(x / 3.0));
        check!(bf16, |x| bf16::from_f64(x / 3.0));
        let (a, b, c) = (array(&[37, 70], 1, |x| x / 3.0)?, array(&[70, 37], 2, |x| x / 7.0)?, array(&[37, 70], 3, |x| x / 5.0)?);
        let (x, y, z) = (a.to_vec::<f64>()?, b.to_vec::<f64>()?, c.to_vec::<f64>()?);
        let all = |f: fn(f64, f64, f64) -> f64| -> Vec<f64> { (0..37 * 70).map(|i| f(x[i], y[i % 70 * 37 + i / 70], z[i])).collect() };
        let same = |got: Vec<f64>, want: Vec<f64>| assert!(got == want);
        same(served(|| add(add(&a, b.t()?)?, &c))?, all(|x, y, z| x + y + z));
        same(served(|| subtract(subtract(&a, b.t()?)?, &c))?, all(|x, y, z| x - y - z));
        same(served(|| multiply(&c, subtract(&a, b.t()?)?))?, all(|x, y, z| z * (x - y)));
        same(served(|| multiply(multiply(&a, b.t()?)?, &c))?, all(|x, y, z| x * y * z));
        same(served(|| add(b.t()?.negative()?, &a))?, all(|x, y, _| -y + x));
        same(served(|| subtract(b.t()?.abs()?, a.abs()?))?, all(|x, y, _| y.abs() - x.abs()));
        same(served(|| multiply(multiply(b.t()?, 2.6)?, &a))?, all(|x, y, _| y * 2.6 * x));
        let c = array::<Complex<f64>>(&[5, 6, 7], 1, |x| Complex::new(x, -x))?;
        let want = c.to_vec::<Complex<f64>>()?;
        let got = served::<Complex<f64>>(|| c.transpose([2, 0, 1])?.copy())?;
        assert!((0..210).all(|i| got[i] == want[i % 30 * 7 + i / 30]));
        Ok(())
    });
}
