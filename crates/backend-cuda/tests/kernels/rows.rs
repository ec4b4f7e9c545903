//! Expressions over rows and their own reductions on a real device: one pass over each row, against float64 on the host.

use cuprum_backend_cuda as _;
use cuprum_core::random::Generator;
use cuprum_core::{
    AxisOptions, CallRecord, Complex, DType, Family, Graph, NdArray, Result, axis, bf16, broadcast_to, exp, explain, f16, log, s,
    with_fusion,
};

use crate::try_on_device;

/// Lengths near the sizes of packs, warps and blocks, and the maximum.
const LENGTHS: [usize; 12] = [2, 3, 31, 32, 33, 127, 1000, 4096, 4097, 11585, 16384, 32768];

fn rows() -> AxisOptions {
    axis(-1).keepdims()
}

fn softmax(x: &NdArray) -> Result<NdArray> {
    let e = exp(x - x.max(rows())?)?;
    let sum = e.sum(rows())?;
    Ok(e / sum)
}

fn log_softmax(x: &NdArray) -> Result<NdArray> {
    let d = x - x.max(rows())?;
    let sum = exp(&d)?.sum(rows())?;
    Ok(d - log(sum)?)
}

fn normal(x: &NdArray) -> Result<NdArray> {
    Ok((x - x.mean(rows())?) / x.std(rows())?)
}

fn layer_norm(x: &NdArray, gamma: &NdArray, beta: &NdArray) -> Result<NdArray> {
    let variance = x.var(rows())?;
    Ok((x - x.mean(rows())?) / (variance + 1e-5).sqrt()? * gamma + beta)
}

fn min_max(x: &NdArray) -> Result<NdArray> {
    let (min, max) = (x.min(rows())?, x.max(rows())?);
    Ok((x - &min) / (max - &min))
}

fn logsumexp(x: &NdArray) -> Result<NdArray> {
    let max = x.max(rows())?;
    Ok(log(exp(x - &max)?.sum(rows())?)? + max)
}

/// Runs `f` and returns its value with the records of all calls.
fn run(f: impl FnOnce() -> Result<NdArray>) -> Result<(NdArray, Vec<CallRecord>)> {
    let (value, records) = explain(|| f().and_then(|a| a.eval().cloned()));
    Ok((value?, records))
}

/// Runs `f` like [`run`], and checks that it is a single call of the kernel family `Rows`.
fn in_one_pass(f: impl FnOnce() -> Result<NdArray>) -> Result<NdArray> {
    let (value, records) = run(f)?;
    let families: Vec<Family> = records.iter().map(|r| r.family).collect();
    assert_eq!(families, [Family::Rows], "{records:#?}");
    assert_eq!(records[0].served_by, Some("cuda"), "{records:#?}");
    Ok(value)
}

fn floats(a: &NdArray) -> Result<Vec<f64>> {
    a.astype(DType::F64)?.to_vec::<f64>()
}

/// Applies a host function to each row of `x`.
fn by_row(x: &NdArray, f: impl Fn(&[f64]) -> Vec<f64>) -> Result<Vec<f64>> {
    let length = *x.shape().last().unwrap_or(&1);
    Ok(floats(x)?.chunks(length).flat_map(f).collect())
}

fn host_softmax(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = row.iter().map(|v| (v - max).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|v| v / sum).collect()
}

fn mean_and_variance(row: &[f64]) -> (f64, f64) {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    (mean, row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / row.len() as f64)
}

/// Checks that `got` has NaN and infinities where `want` has them, and that other values differ by at most `tolerance` times the larger of
/// the value and `scale`.
fn assert_close(what: &str, got: &NdArray, want: &[f64], tolerance: f64, scale: f64) -> Result<()> {
    let got = floats(got)?;
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g == w || g.is_nan() && w.is_nan();
        assert!(same || (g - w).abs() <= tolerance * w.abs().max(scale), "{what}, element {i}: {g}, not {w}");
    }
    Ok(())
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 => 2e-5,
        _ => 1e-12,
    }
}

#[test]
fn softmax_of_rows_of_any_length() {
    try_on_device(|_| {
        for (n, length) in LENGTHS.into_iter().enumerate() {
            let dtypes: &[DType] = match n % 3 {
                0 => &[DType::F32, DType::F16],
                1 => &[DType::F32, DType::BF16],
                _ => &[DType::F32, DType::F64],
            };
            for &dtype in dtypes.iter().filter(|d| **d != DType::F64 || length <= 16384) {
                let x = Generator::new(n as u64).normal(1.0, 3.0, [5, length], dtype)?;
                let got = in_one_pass(|| softmax(&x))?;
                assert_eq!((got.dtype(), got.shape()), (dtype, x.shape()));
                assert_close(&format!("softmax {dtype} {length}"), &got, &by_row(&x, host_softmax)?, tolerance(dtype), 1e-3)?;
            }
        }
        Ok(())
    });
}

#[test]
fn normalise_rows() {
    try_on_device(|_| {
        for (n, length) in [31, 1000, 4096, 11585].into_iter().enumerate() {
            let x = Generator::new(n as u64).normal(100.0, 2.0, [7, length], DType::F32)?;
            let [gamma, beta] = [11, 12].map(|seed| Generator::new(seed).normal(0.0, 1.0, [length], DType::F32));
            let (gamma, beta) = (gamma?, beta?);
            let (g, b) = (floats(&gamma)?, floats(&beta)?);
            let got = in_one_pass(|| layer_norm(&x, &gamma, &beta))?;
            let want = by_row(&x, |row| {
                let (mean, variance) = mean_and_variance(row);
                row.iter().zip(g.iter().zip(&b)).map(|(v, (g, b))| (v - mean) / (variance + 1e-5).sqrt() * g + b).collect()
            })?;
            assert_close("layer norm", &got, &want, 1e-4, 1.0)?;
            let want = by_row(&x, |row| {
                let (mean, variance) = mean_and_variance(row);
                row.iter().map(|v| (v - mean) / variance.sqrt()).collect()
            })?;
            assert_close("(a - mean) / std", &in_one_pass(|| normal(&x))?, &want, 1e-4, 1.0)?;
            let want = by_row(&x, |row| {
                let (low, high) = (row.iter().copied().fold(f64::MAX, f64::min), row.iter().copied().fold(f64::MIN, f64::max));
                row.iter().map(|v| (v - low) / (high - low)).collect()
            })?;
            assert_close("min-max", &in_one_pass(|| min_max(&x))?, &want, 1e-5, 1.0)?;
            let want = by_row(&x, |row| {
                let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
                row.iter().map(|v| v / norm).collect()
            })?;
            assert_close("a / norm", &in_one_pass(|| Ok(&x / x.square()?.sum(rows())?.sqrt()?))?, &want, 1e-5, 1e-3)?;
            let want = by_row(&x, |row| host_softmax(row).iter().map(|v| v.ln()).collect())?;
            assert_close("log-softmax", &in_one_pass(|| log_softmax(&x))?, &want, 1e-5, 1.0)?;
            let logs = |row: &[f64]| {
                let max = row.iter().copied().fold(f64::MIN, f64::max);
                vec![row.iter().map(|v| (v - max).exp()).sum::<f64>().ln() + max]
            };
            let got = in_one_pass(|| logsumexp(&x))?;
            assert_eq!(got.shape(), &[7, 1]);
            assert_close("logsumexp", &got, &by_row(&x, logs)?, 1e-6, 1.0)?;
        }
        Ok(())
    });
}

#[test]
fn variances_along_rows() {
    try_on_device(|_| {
        for (n, length) in LENGTHS.into_iter().enumerate() {
            let dtype = [DType::F32, DType::F64, DType::F16][n % 3];
            let x = Generator::new(n as u64).normal(10.0, 1.0, [140, length], dtype)?;
            let want = by_row(&x, |row| vec![mean_and_variance(row).1])?;
            assert_close(&format!("var {dtype} {length}"), &x.var(-1)?, &want, tolerance(dtype), 1e-3)?;
            let want: Vec<f64> = want.iter().map(|v| (v * length as f64 / (length as f64 - 1.0)).sqrt()).collect();
            assert_close(&format!("std {dtype} {length}"), &x.std(rows().correction(1.0))?, &want, tolerance(dtype), 1e-3)?;
        }
        let parts = Generator::new(5).normal(0.0, 1.0, [300, 2 * 1001], DType::F32)?.to_vec::<f32>()?;
        let values: Vec<Complex<f32>> = parts.chunks(2).map(|c| Complex::new(c[0], c[1])).collect();
        let z = NdArray::from_vec(&values, [300, 1001])?;
        let want: Vec<f64> = values
            .chunks(1001)
            .map(|row| {
                let (re, im): (Vec<f64>, Vec<f64>) = row.iter().map(|z| (f64::from(z.re), f64::from(z.im))).unzip();
                mean_and_variance(&re).1 + mean_and_variance(&im).1
            })
            .collect();
        assert_close("var complex64", &z.var(-1)?, &want, 1e-5, 1e-3)?;
        let moved = in_one_pass(|| Ok(&z - z.mean(rows())?))?;
        let sum = moved.sum(-1)?.to_vec::<Complex<f32>>()?;
        assert!(sum.iter().all(|z| z.norm() < 1e-2), "{sum:?}");
        Ok(())
    });
}

#[test]
fn nan_and_infinity() {
    try_on_device(|_| {
        let mut values = vec![0.5f32; 4 * 1000];
        values[7] = f32::NAN;
        values[1005] = f32::INFINITY;
        values[2999] = f32::NEG_INFINITY;
        let x = NdArray::from_vec(&values, [4, 1000])?;
        let got = in_one_pass(|| softmax(&x))?.to_vec::<f32>()?;
        assert!(got[..1000].iter().all(|v| v.is_nan()), "a row with NaN");
        assert!(got[1000..2000].iter().all(|v| v.is_nan()), "infinity minus infinity is in the sum");
        assert!(got[2999] == 0.0 && (got[2000] - 1.0 / 999.0).abs() < 1e-6);
        assert!(got[3000..].iter().all(|v| (v - 1e-3).abs() < 1e-7));
        let all = in_one_pass(|| Ok(x.max(rows())? - x.min(rows())?))?.to_vec::<f32>()?;
        assert!(all[0].is_nan() && all[1] == f32::INFINITY && all[2] == f32::INFINITY && all[3] == 0.0, "{all:?}");
        let empty = NdArray::from_vec(&values[..0], [0, 8])?;
        assert_eq!(softmax(&empty)?.to_vec::<f32>()?, [0f32; 0]);
        let one = NdArray::from_vec(&values[10..14], [4, 1])?;
        assert_eq!(softmax(&one)?.to_vec::<f32>()?, [1.0; 4]);
        Ok(())
    });
}

#[test]
fn integers_and_bools() {
    try_on_device(|_| {
        let x = Generator::new(3).integers(-50, 50, [40, 333], DType::I32)?;
        let host = x.to_vec::<i32>()?;
        let got = in_one_pass(|| Ok((&x - x.min(rows())?) * x.greater(40)?.any(rows())?))?.to_vec::<i32>()?;
        let want: Vec<i32> = host
            .chunks(333)
            .flat_map(|row| {
                let (low, any) = (row.iter().copied().min().unwrap_or(0), row.iter().any(|v| *v > 40) as i32);
                row.iter().map(move |v| (v - low) * any).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(got, want);
        let got = in_one_pass(|| Ok(&x - x.sum(rows())?))?;
        assert_eq!(got.dtype(), DType::I64, "sums of int32 are int64");
        let want: Vec<i64> = host
            .chunks(333)
            .flat_map(|row| {
                let sum: i64 = row.iter().map(|v| i64::from(*v)).sum();
                row.iter().map(move |v| i64::from(*v) - sum).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(got.to_vec::<i64>()?, want);
        Ok(())
    });
}

#[test]
fn any_outer_axes() {
    try_on_device(|_| {
        let big = Generator::new(1).normal(0.0, 1.0, [9, 6, 5, 70], DType::F32)?;
        let views = [
            big.transpose([2, 0, 1, 3])?,
            big.index(s![1..;2, .., ..;-1, 3..68])?,
            big.index(s![0, 0, 0])?,
            broadcast_to(&big.index(s![2, .., 1])?, [4, 6, 70])?,
        ];
        for x in &views {
            let want = by_row(&x.copy()?, host_softmax)?;
            assert_close(&format!("{:?} {:?}", x.shape(), x.strides()), &in_one_pass(|| softmax(x))?, &want, 1e-5, 1e-3)?;
        }
        let both = axis([2, 3]).keepdims();
        let two = in_one_pass(|| Ok(&big - big.mean(both.clone())?))?;
        let plain = with_fusion(false, || (&big - big.mean(both)?).to_vec::<f32>())?;
        assert!(two.to_vec::<f32>()?.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-6), "rows of two axes");
        // Rows of a transposed array are strided: each reduction is a separate call.
        let (t, records) = run(|| softmax(&big.index(s![0, 0])?.t()?))?;
        let want = by_row(&big.index(s![0, 0])?.t()?.copy()?, host_softmax)?;
        assert_close("transposed", &t, &want, 1e-5, 1e-3)?;
        assert!(records.iter().any(|r| r.family == Family::Rows && r.served_by.is_none()), "{records:#?}");
        Ok(())
    });
}

#[test]
fn live_intermediate_values_are_kept() {
    try_on_device(|_| {
        let x = Generator::new(2).normal(0.0, 1.0, [50, 700], DType::F32)?;
        let (mean, std) = (x.mean(rows())?, x.std(rows())?);
        let y = in_one_pass(|| Ok((&x - &mean) / &std))?;
        assert!(!mean.is_deferred() && !std.is_deferred(), "numbers of rows come with the pass");
        let want = by_row(&x, |row| vec![mean_and_variance(row).0])?;
        assert_close("mean", &mean, &want, 1e-5, 1.0)?;
        let want = by_row(&x, |row| vec![mean_and_variance(row).1.sqrt()])?;
        assert_close("std", &std, &want, 1e-5, 1.0)?;
        assert!(y.to_vec::<f32>()?.iter().all(|v| v.is_finite()));
        // Alone, it is a call of the kernel family `Reduce`.
        let (max, records) = run(|| x.max(rows()))?;
        assert_eq!((max.shape(), records.len(), records[0].family), (&[50, 1][..], 1, Family::Reduce));
        let (_, records) = run(|| Ok(&max + x.max(rows())?.max(())?))?;
        assert!(records.iter().all(|r| r.family != Family::Rows), "{records:#?}");
        Ok(())
    });
}

#[test]
fn with_and_without_fusion() {
    try_on_device(|_| {
        let x = Generator::new(8).normal(0.0, 2.0, [33, 515], DType::F32)?;
        let ways: [fn(&NdArray) -> Result<NdArray>; 5] = [softmax, log_softmax, normal, min_max, logsumexp];
        for f in ways {
            let fused = floats(&f(&x)?)?;
            let (alone, records) = explain(|| with_fusion(false, || f(&x)));
            assert!(records.iter().all(|r| r.family != Family::Rows));
            assert_close("fusion off", &alone?, &fused, 2e-5, 1e-2)?;
        }
        Ok(())
    });
}

#[test]
fn in_a_graph() {
    try_on_device(|_| {
        let x = Generator::new(4).normal(0.0, 1.0, [64, 1000], DType::F32)?;
        softmax(&x)?.eval()?;
        let (graph, y) = Graph::capture(|| softmax(&x))?;
        assert_eq!(graph.nodes(), 1, "one launch");
        let next = Generator::new(5).normal(0.0, 1.0, [64, 1000], DType::F32)?;
        graph.update(&x, &next)?;
        graph.launch()?;
        assert_close("replayed", &y, &by_row(&next, host_softmax)?, 1e-5, 1e-3)
    });
}

#[test]
fn sixteen_bits_keep_their_dtype_between_operations() {
    try_on_device(|_| {
        let x = Generator::new(6).normal(0.0, 1.0, [20, 777], DType::F16)?;
        let fused = softmax(&x)?.to_vec::<f16>()?;
        let alone = with_fusion(false, || softmax(&x)?.to_vec::<f16>())?;
        let ulps = |a: f16, b: f16| (i32::from(a.to_bits()) - i32::from(b.to_bits())).abs();
        assert!(fused.iter().zip(&alone).all(|(&a, &b)| ulps(a, b) <= 1), "sums are float32, of rounded values");
        let x = Generator::new(6).normal(0.0, 1.0, [20, 777], DType::BF16)?;
        assert_eq!(softmax(&x)?.to_vec::<bf16>()?.len(), 20 * 777);
        Ok(())
    });
}

#[test]
fn rows_too_long_for_registers_are_reduced_separately() {
    try_on_device(|_| {
        let x = Generator::new(7).normal(0.0, 1.0, [3, 32768], DType::F64)?;
        let (got, records) = run(|| softmax(&x))?;
        assert_close("float64, 32768", &got, &by_row(&x, host_softmax)?, 1e-12, 1e-6)?;
        assert!(records.iter().any(|r| r.family == Family::Reduce), "{records:#?}");
        let long = Generator::new(7).normal(0.0, 1.0, [2, 40_000], DType::F32)?;
        let (_, records) = run(|| softmax(&long))?;
        assert!(records.iter().all(|r| r.family != Family::Rows), "not even asked for");
        Ok(())
    });
}
