//! Histogram compared with simple loops.

use cuprum_core::{DType, NdArray, arange, bincount, full, histogram, linspace};

use crate::support::on_threads;

const SIZES: [usize; 6] = [1, 2047, 2049, 33_000, 70_001, 400_003];

/// Returns the number of values in each bin, by comparison of each value with every edge.
fn counts(values: &[f64], edges: &[f64]) -> Vec<i64> {
    let bins = edges.len() - 1;
    let mut counts = vec![0; bins];
    for &v in values {
        let holds = |&i: &usize| edges[i] <= v && (v < edges[i + 1] || (i + 1 == bins && v == edges[bins]));
        if let Some(bin) = (0..bins).find(holds) {
            counts[bin] += 1;
        }
    }
    counts
}

/// Returns random values, values on and next to edges, values outside, and NaN.
fn values(n: usize, edges: &[f64], narrow: bool) -> Vec<f64> {
    let beside = |e: f64, up: bool| match (narrow, up) {
        (true, true) => (e as f32).next_up() as f64,
        (true, false) => (e as f32).next_down() as f64,
        (false, true) => e.next_up(),
        (false, false) => e.next_down(),
    };
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    (0..n)
        .map(|i| match i % 9 {
            0 => edges[i / 9 % edges.len()],
            1 => beside(edges[i / 9 % edges.len()], true),
            2 => beside(edges[i / 9 % edges.len()], false),
            3 if i % 27 == 3 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, low - 1.0, high + 1.0][i / 27 % 5],
            _ => {
                let v = low + (high - low) * ((i * 7919 % 10_007) as f64 / 10_007.0);
                if narrow { v as f32 as f64 } else { v }
            }
        })
        .collect()
}

#[test]
fn even_bins() {
    for dtype in [DType::F32, DType::F64] {
        for (bins, low, high) in [(1, 0.0, 1.0), (10, 0.0, 1.0), (256, -0.3, 0.7), (1000, 1e6, 1e6 + 300.0), (3, -1e-30, 1e30)] {
            for n in SIZES.into_iter().filter(|&n| n * bins <= 1 << 24) {
                let edges = linspace(low, high, bins + 1).unwrap().astype(dtype).unwrap();
                let at = edges.astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                let values = values(n, &at, dtype == DType::F32);
                let a = NdArray::from_slice(&values).unwrap().astype(dtype).unwrap();
                let got = on_threads(|| Ok(histogram(&a, (bins, low, high), None, false)?.0)).to_vec::<i64>().unwrap();
                assert_eq!(got, counts(&values, &at), "{dtype}, {bins} bins, {n} values");
            }
        }
    }
}

/// 16-bit edges are rounded so much that the distance from the first edge does not determine the bin.
#[test]
fn bins_of_16_bits() {
    for dtype in [DType::F16, DType::BF16] {
        let a = linspace(0.0, 1.0, 4001).unwrap().astype(dtype).unwrap();
        let (got, edges) = histogram(&a, 10, None, false).unwrap();
        let wide = |a: &NdArray| a.astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(got.to_vec::<i64>().unwrap(), counts(&wide(&a), &wide(&edges)), "{dtype}");
    }
}

#[test]
fn uneven_bins() {
    for dtype in [DType::F32, DType::F64] {
        for bins in [1, 2, 5, 77, 300] {
            let at: Vec<f64> = (0..=bins).map(|i| (i as f64 * i as f64 / 8.0) - 3.0).collect();
            let edges = NdArray::from_slice(&at).unwrap().astype(dtype).unwrap();
            for n in SIZES.into_iter().filter(|&n| n * bins <= 1 << 24) {
                let values = values(n, &at, dtype == DType::F32);
                let a = NdArray::from_slice(&values).unwrap().astype(dtype).unwrap();
                let got = on_threads(|| Ok(histogram(&a, &edges, None, false)?.0)).to_vec::<i64>().unwrap();
                assert_eq!(got, counts(&values, &at), "{dtype}, {bins} bins, {n} values");
            }
        }
    }
    // Bins of width 0 are empty, except the last one.
    let edges = NdArray::from_slice(&[0.0, 1.0, 1.0, 2.0, 2.0]).unwrap();
    let a = NdArray::from_slice(&[0.0, 1.0, 1.5, 2.0]).unwrap();
    assert_eq!(histogram(&a, &edges, None, false).unwrap().0.to_vec::<i64>().unwrap(), [1, 0, 2, 1]);
}

#[test]
fn bincount_with_weights() {
    for (n, bins) in SIZES.into_iter().flat_map(|n| [1usize, 7, 256, 70_000].map(|bins| (n, bins))) {
        let numbers: Vec<i64> = (0..n).map(|i| (i * 7919 % bins) as i64).collect();
        let a = NdArray::from_slice(&numbers).unwrap();
        let mut want = vec![0; bins];
        numbers.iter().for_each(|&i| want[i as usize] += 1);
        let got = on_threads(|| bincount(&a, None, bins)).to_vec::<i64>().unwrap();
        assert!(got == want, "{n} in {bins}");
        let weights: Vec<f64> = (0..n).map(|i| 1.0 / (1 + i % 97) as f64).collect();
        let mut want = vec![0.0; bins];
        numbers.iter().zip(&weights).for_each(|(&i, w)| want[i as usize] += w);
        let weights = NdArray::from_slice(&weights).unwrap();
        let got = on_threads(|| bincount(&a, Some(&weights), bins)).to_vec::<f64>().unwrap();
        assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() <= 1e-9 * w), "weights of {n} in {bins}");
    }
}

#[test]
fn fused_values_and_totals() {
    let n = 100_000;
    let a = arange(0, n, 1).unwrap().astype(DType::F32).unwrap();
    let got = on_threads(|| Ok(histogram(&((&a * 2.0 + 1.0).remainder(10.0)?), (10, 0.0, 10.0), None, false)?.0)).to_vec::<i64>().unwrap();
    assert_eq!(got, [0, 20_000, 0, 20_000, 0, 20_000, 0, 20_000, 0, 20_000]);
    let same = full([5000], 0.5, DType::F64).unwrap();
    assert_eq!(histogram(&same, (4, 0.0, 1.0), None, false).unwrap().0.to_vec::<i64>().unwrap(), [0, 0, 5000, 0]);
    let (density, edges) = histogram(&a, 4, None, true).unwrap();
    let widths = edges.index(cuprum_core::s![1..]).unwrap() - edges.index(cuprum_core::s![..-1]).unwrap();
    let total = (density * widths).sum(()).unwrap().item().unwrap().as_f64();
    assert!((total - 1.0).abs() < 1e-12);
}

#[test]
fn ranges_too_narrow_for_the_bins() {
    let f16s = NdArray::from_slice(&[1.0, 1.01]).unwrap().astype(DType::F16).unwrap();
    let wide = NdArray::from_slice(&[1e17]).unwrap();
    for result in [histogram(&wide, 10, None, false), histogram(&wide, 5000, None, false), histogram(&f16s, (100, 1.0, 1.01), None, false)]
    {
        assert!(result.unwrap_err().to_string().contains("Too many bins for data range"));
    }
    assert!(histogram(&NdArray::from_slice(&[1e17, 1e17 + 160.0]).unwrap(), 10, None, false).is_ok());
}
