//! Linking registers the accelerator. It serves float64 sums and declines other calls.

use cuprum::{NdArray, Result, explain, with_accelerators};
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
        assert_eq!(calls[0].declined, [("exact", "does not take this dtype".to_string())]);
        Ok(())
    })
}
