//! Histograms by CUB, compared with a binary search on the host.

use cuprum_core::{DType, NdArray, bincount, histogram};

use crate::{numbers, on_device, served};

#[test]
fn histograms_match_a_binary_search() {
    on_device(|| {
        let oracle = |x: &[f64], edges: &[f64]| {
            let mut counts = vec![0i64; edges.len() - 1];
            for v in x.iter().filter(|v| **v >= edges[0] && **v <= edges[edges.len() - 1]) {
                counts[edges[..edges.len() - 1].partition_point(|e| e <= v) - 1] += 1;
            }
            counts
        };
        for n in [1, 1000, 8192, 8193, 300_007] {
            let mut x = numbers(n);
            (x[n / 2], x[n / 3]) = (f64::NAN, 0.5);
            x[n - 1] = 1.0;
            let a = NdArray::from_slice(&x)?;
            let f = a.astype(DType::F32)?.eval()?.clone();
            let singles: Vec<f64> = f.to_vec::<f32>()?.into_iter().map(f64::from).collect();
            for bins in [1, 2, 10, 256, 5000, 20_000] {
                let what = format!("{n} in {bins}");
                let edges = cuprum_core::histogram_bin_edges(&a, (bins, -1.0, 1.0))?.to_vec::<f64>()?;
                assert!(served::<i64>(|| Ok(histogram(&a, (bins, -1.0, 1.0), None, false)?.0))? == oracle(&x, &edges), "float64 {what}");
                let edges = cuprum_core::histogram_bin_edges(&f, (bins, -0.3, 1.0))?.to_vec::<f32>()?;
                let edges: Vec<f64> = edges.into_iter().map(f64::from).collect();
                assert!(
                    served::<i64>(|| Ok(histogram(&f, (bins, -0.3, 1.0), None, false)?.0))? == oracle(&singles, &edges),
                    "float32 {what}"
                );
                // Uneven edges, some of them equal.
                let edges: Vec<f64> = (0..=bins).map(|i| (i / 2 * 2) as f64 / bins as f64 - 0.5).map(|e| e * e * e * 4.0).collect();
                let e = NdArray::from_slice(&edges)?;
                assert!(served::<i64>(|| Ok(histogram(&a, &e, None, false)?.0))? == oracle(&x, &edges), "edges {what}");
            }
        }
        Ok(())
    });
}

#[test]
fn bincount_counts_integers() {
    on_device(|| {
        for (n, bins) in [(1, 1), (1000, 3), (100_003, 256), (100_003, 12_000), (50_000, 40_000)] {
            let x: Vec<i32> = numbers(n).iter().map(|x| ((x.abs() * bins as f64) as i32).min(bins - 1)).collect();
            let mut want = vec![0i64; bins as usize];
            x.iter().for_each(|v| want[*v as usize] += 1);
            let a = NdArray::from_slice(&x)?;
            assert!(served::<i64>(|| bincount(&a, None, bins as usize))? == want, "{n} in {bins}");
        }
        Ok(())
    });
}
