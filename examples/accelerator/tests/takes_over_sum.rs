//! Linking registers the accelerator. It serves float64 sums and declines other calls.

use cuprum::{NdArray, Result, explain, hypot, s, with_accelerators};
use cuprum_example_accelerator as _;

#[test]
fn serves_float64_sums_and_declines_the_rest() -> Result<()> {
    cuprum::with_device(cuprum::Device::CPU, || {
        let a = NdArray::from_slice(&[1.0f64, 1e100, 1.0, -1e100])?;
        let (exact, calls) = explain(|| with_accelerators("exact", || a.sum(())?.item()));
        assert_eq!(exact??, 2.0);
        assert_eq!(calls[0].served_by, Some("exact"));

        let (plain, _) = explain(|| with_accelerators("", || a.sum(())?.item()));
        assert_eq!(plain??, 0.0, "pairwise sums lose the ones");

        let (_, calls) = explain(|| with_accelerators("exact", || (&a * 2.0).sum(())?.item()));
        assert_eq!(calls[0].served_by, Some("cpu"));
        assert!(calls[0].declined[0].1.contains("fused expression"), "{:?}", calls[0]);

        let ints = NdArray::from_slice(&[1i64, 2])?;
        let (_, calls) = explain(|| with_accelerators("exact", || ints.sum(())?.item()));
        assert_eq!(calls[0].declined, [("exact", "does not take the dtype int64".to_string())]);
        Ok(())
    })
}

#[test]
fn serves_single_hypots_and_declines_fused_ones() -> Result<()> {
    cuprum::with_device(cuprum::Device::CPU, || {
        let values: Vec<f64> = (1..1000).map(|i| f64::from(i) * 1.1).chain([0.0, 1e200, 1e-200, f64::INFINITY, f64::NAN]).collect();
        let (x, y) = (NdArray::from_slice(&values)?, NdArray::from_slice(&values)?.index(s![..;-1])?.copy()?);
        let (exact, calls) = explain(|| with_accelerators("exact", || hypot(&x, &y)?.to_vec::<f64>()));
        assert_eq!(calls[0].served_by, Some("exact"));
        for (got, want) in exact??.iter().zip(with_accelerators("", || hypot(&x, &y)?.to_vec::<f64>())??) {
            assert!(got.to_bits().abs_diff(want.to_bits()) <= 1 || got.is_nan() && want.is_nan(), "{got} and {want}");
        }
        let (_, calls) = explain(|| with_accelerators("exact", || hypot(&x, hypot(&x, &y)?)?.to_vec::<f64>()));
        assert!(calls[0].declined[0].1.contains("fused expression"), "{:?}", calls[0]);
        Ok(())
    })
}
