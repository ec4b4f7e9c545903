//! Sort, Select, Search, Histogram, running extremes and 32-bit indices on a real device, against plain loops on the host.

use std::cmp::Ordering;

use cuprum_backend_cuda as _;
use cuprum_core::ops::search::is_in_sorted;
use cuprum_core::{
    Complex, DType, Element, NdArray, Side, arange_as, axis, bf16, bincount, broadcast_to, cummax, cummin, explain, f16, flatnonzero, full,
    histogram, s, segment_argsort, segment_sort, topk, zeros,
};

use crate::on_device;

/// Returns reproducible pseudo-random bits (splitmix64) for the index `i`.
fn bits(seed: u64, i: usize) -> u64 {
    let mut z = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add((i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// An element type: how to make a value from random bits, and NumPy's sort order.
trait Ordered: Element {
    fn make(bits: u64) -> Self;
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            // Either few distinct values, so that many are equal, or any value.
            fn make(bits: u64) -> Self {
                if bits % 3 == 0 { (bits >> 32) as $t % 5 } else { (bits >> 8) as $t }
            }
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Ordered for bool {
    fn make(bits: u64) -> Self {
        bits >> 40 & 1 == 1
    }
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

fn float_order(a: f64, b: f64) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(&b).unwrap_or(Ordering::Equal))
}

macro_rules! floats {
    ($($t:ty, $u:ty, $wide:expr);*) => {$(
        impl Ordered for $t {
            // Special values (zeros, infinities and NaN of both signs), few distinct values, or any bits.
            fn make(bits: u64) -> Self {
                let sign = bits as $u << (<$u>::BITS - 1);
                let special = |x: f64| <$t>::from_bits(<$t as From<f16>>::from(f16::from_f64(x)).to_bits() | sign);
                match bits >> 1 & 15 {
                    0 => special(0.0),
                    1 => special(f64::INFINITY),
                    2 => <$t>::from_bits(special(f64::NAN).to_bits() | (bits >> 8) as $u & 7),
                    3..=7 => special((bits >> 8 & 7) as f64 * 0.5),
                    _ => <$t>::from_bits((bits >> (64 - <$u>::BITS)) as $u),
                }
            }
            fn order(&self, other: &Self) -> Ordering {
                float_order($wide(*self), $wide(*other))
            }
        }
    )*};
}
floats!(f32, u32, f64::from; f64, u64, |x| x);

/// The 16-bit floats, which lack some conversions of the larger floats.
macro_rules! halves {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            fn make(bits: u64) -> Self {
                match bits >> 1 & 7 {
                    0 => <$t>::from_f64(if bits & 1 == 0 { 0.0 } else { -0.0 }),
                    1 => <$t>::from_f64((bits >> 8 & 7) as f64 * 0.5),
                    2 => <$t>::from_bits(<$t>::NAN.to_bits() | ((bits & 1) as u16) << 15 | (bits >> 8) as u16 & 7),
                    _ => <$t>::from_bits((bits >> 48) as u16),
                }
            }
            fn order(&self, other: &Self) -> Ordering {
                float_order(self.to_f64(), other.to_f64())
            }
        }
    )*};
}
halves!(f16, bf16);

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Ordered for Complex<$t> {
            fn make(bits: u64) -> Self {
                Complex::new(<$t>::make(bits), <$t>::make(bits.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            }
            fn order(&self, other: &Self) -> Ordering {
                let class = |z: &Self| (z.re.is_nan(), z.im.is_nan());
                class(self).cmp(&class(other)).then(self.re.order(&other.re)).then(self.im.order(&other.im))
            }
        }
    )*};
}
complexes!(f32, f64);

/// Calls a generic function for every dtype.
macro_rules! for_all {
    ($f:ident($($arg:expr),*)) => {{
        $f::<bool>($($arg),*);
        $f::<i8>($($arg),*);
        $f::<i16>($($arg),*);
        $f::<i32>($($arg),*);
        $f::<i64>($($arg),*);
        $f::<u8>($($arg),*);
        $f::<u16>($($arg),*);
        $f::<u32>($($arg),*);
        $f::<u64>($($arg),*);
        $f::<f16>($($arg),*);
        $f::<bf16>($($arg),*);
        $f::<f32>($($arg),*);
        $f::<f64>($($arg),*);
        $f::<Complex<f32>>($($arg),*);
        $f::<Complex<f64>>($($arg),*);
    }};
}

fn values<T: Ordered>(count: usize, seed: u64) -> Vec<T> {
    (0..count).map(|i| T::make(bits(seed, i))).collect()
}

fn array<T: Element>(values: &[T], shape: &[usize]) -> NdArray {
    NdArray::from_slice(values).unwrap().reshape(shape).unwrap()
}

fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
    if values.is_empty() { Vec::new() } else { NdArray::from_slice(values).unwrap().to_bytes().unwrap() }
}

/// Returns the indices that sort each row stably.
fn places<T: Ordered>(values: &[T], len: usize, descending: bool) -> Vec<Vec<i64>> {
    let row = |row: &[T]| {
        let mut places: Vec<i64> = (0..row.len() as i64).collect();
        let at = |i: &i64| &row[*i as usize];
        if descending {
            places.sort_by(|a, b| at(b).order(at(a)))
        } else {
            places.sort_by(|a, b| at(a).order(at(b)))
        }
        places
    };
    if len == 0 { Vec::new() } else { values.chunks(len).map(row).collect() }
}

fn check_sort<T: Ordered>(rows: usize, len: usize) {
    let values = values::<T>(rows * len, (rows * 31 + len) as u64);
    let a = array(&values, &[rows, len]);
    for descending in [false, true] {
        let over = || if descending { axis(-1).descending() } else { axis(-1) };
        let what = format!("{} {rows} x {len}, descending: {descending}", T::DTYPE);
        let wanted = places(&values, len, descending);
        let gathered = |limit: usize| {
            let row = |(n, row): (usize, &Vec<i64>)| row[..limit].iter().map(|i| values[n * len + *i as usize]).collect::<Vec<T>>();
            wanted.iter().enumerate().flat_map(row).collect::<Vec<T>>()
        };
        let sorted = a.sort(over()).unwrap();
        assert!(sorted.to_bytes().unwrap() == bytes(&gathered(len)), "{what}");
        let argsorted = a.argsort(over()).unwrap();
        assert!(argsorted.to_bytes().unwrap() == bytes(&wanted.concat()), "argsort {what}");
        for k in [len, len / 3, 1] {
            if k > 0 && k <= len {
                let (top, at) = topk(&a, k, -1, descending).unwrap();
                assert!(top.to_bytes().unwrap() == bytes(&gathered(k)), "topk {k} {what}");
                let heads: Vec<i64> = wanted.iter().flat_map(|row| row[..k].to_vec()).collect();
                assert!(at.to_bytes().unwrap() == bytes(&heads), "places of topk {k} {what}");
            }
        }
    }
}

fn sort_of_few<T: Ordered>() {
    for (rows, len) in [(0, 5), (5, 0), (1, 1), (700, 1), (1000, 2), (333, 7), (100, 31), (65, 32), (33, 33), (17, 64), (5, 127), (3, 128)]
    {
        check_sort::<T>(rows, len);
    }
}

#[test]
fn sorts_of_tiny_rows() {
    on_device(|_| for_all!(sort_of_few()));
}

fn sort_of_some<T: Ordered>() {
    for (rows, len) in [(1, 129), (4, 200), (2, 512), (3, 513), (2, 1000), (1, 1025), (2, 1920), (1, 1921), (1, 4096), (1, 4224)] {
        check_sort::<T>(rows, len);
    }
}

#[test]
fn sorts_of_rows_that_fit_a_block() {
    on_device(|_| for_all!(sort_of_some()));
}

fn sort_of_many<T: Ordered>() {
    for (rows, len) in [(1, 4225), (1, 8064), (1, 8065), (1, 16_128), (1, 30_001), (3, 9000)] {
        check_sort::<T>(rows, len);
    }
}

#[test]
fn sorts_of_long_rows() {
    on_device(|_| for_all!(sort_of_many()));
}

/// Checks `segment_sort` and `segment_argsort` for segments of these lengths. With `by_kernel`, every segment fits a block, so a single
/// call serves each sort.
fn check_segments<T: Ordered>(lengths: &[usize], by_kernel: bool) {
    let offsets: Vec<i64> = std::iter::once(0).chain(lengths.iter().scan(0, |at, n| (*at += *n as i64, Some(*at)).1)).collect();
    let count = offsets[lengths.len()] as usize;
    let values = values::<T>(count, count as u64 + 3);
    let mut wanted: Vec<i64> = (0..count as i64).collect();
    for w in offsets.windows(2) {
        wanted[w[0] as usize..w[1] as usize].sort_by(|a, b| values[*a as usize].order(&values[*b as usize]));
    }
    let sorted: Vec<T> = wanted.iter().map(|i| values[*i as usize]).collect();
    let (a, o) = (array(&values, &[count]), array(&offsets, &[offsets.len()]));
    let what = format!("{} of {} segments, {count} elements", T::DTYPE, lengths.len());
    // The pool reuses memory, so outputs start with old values.
    for dtype in [T::DTYPE, DType::I64] {
        drop(full(count, 1, dtype).unwrap().eval().unwrap().clone());
    }
    let ((places, got), records) = explain(|| (segment_argsort(&a, &o).unwrap(), segment_sort(&a, &o).unwrap()));
    assert!(places.to_bytes().unwrap() == bytes(&wanted), "places, {what}");
    assert!(got.to_bytes().unwrap() == bytes(&sorted), "{what}");
    let served: Vec<bool> =
        records.iter().filter(|r| r.op == "segment_sort" || r.op == "segment_argsort").map(|r| r.served_by == Some("cuda")).collect();
    assert_eq!(served == [true; 2], by_kernel, "{what}: {records:?}");
}

fn segments_of_few<T: Ordered>() {
    check_segments::<T>(&[1, 0, 5], true);
    check_segments::<T>(&(0..129).collect::<Vec<_>>(), true);
    check_segments::<T>(&[vec![0; 3000], vec![32; 100], vec![0, 0, 7]].concat(), true);
    check_segments::<T>(&[vec![128; 9], vec![1; 2000], vec![3], [1, 2, 3, 0].repeat(900)].concat(), true);
    // Segments that end at multiples of the tile size 1024, and near them.
    for n in [1023, 1024, 1025] {
        check_segments::<T>(&[vec![1; n - 100], vec![100, 2]].concat(), true);
        check_segments::<T>(&[vec![31; n / 31], vec![n % 31 + 1, 100]].concat(), true);
    }
    check_segments::<T>(&[127, 128, 129, 511, 512, 513, 1535, 1536, 1537, 1920, 0, 1, 300], true);
    check_segments::<T>(&(0..3000).map(|n| if n % 500 == 7 { 1000 + n / 10 } else { n % 61 }).collect::<Vec<_>>(), true);
}

#[test]
fn sorts_within_segments() {
    on_device(|_| for_all!(segments_of_few()));
}

#[test]
fn sorts_within_long_segments() {
    on_device(|_| {
        // A few long segments: first, between short ones, and last; then many; then segments of medium length, which fit a block.
        let few = [vec![70_000, 3, 5], [9, 0, 40].repeat(50), vec![20_000, 0, 10_000], vec![2; 700], vec![50_000]].concat();
        check_segments::<f32>(&few, false);
        check_segments::<Complex<f64>>(&few, false);
        check_segments::<i64>(&[9000; 40].into_iter().chain([1, 2, 3]).collect::<Vec<_>>(), false);
        check_segments::<u8>(&[4097, 6000, 100, 0, 3], true);
        check_segments::<f64>(&[4224, 4223, 100, 0, 3], true);
        // Equal lengths, which are sorted as rows.
        check_segments::<f32>(&[100; 300], false);
    });
}

#[test]
fn sorts_skip_digits_that_are_constant() {
    on_device(|_| {
        let n = 20_000;
        for shift in [0, 8, 24, 40, 56] {
            let values: Vec<i64> = (0..n).map(|i| ((bits(5, i) & 0xff) as i64) << shift).collect();
            let mut wanted = values.clone();
            wanted.sort();
            let a = NdArray::from_slice(&values).unwrap();
            assert!(a.sort(-1).unwrap().to_vec::<i64>().unwrap() == wanted, "{shift}");
            let order = a.argsort(-1).unwrap().to_vec::<i64>().unwrap();
            assert_eq!(order, places(&values, n, false)[0], "{shift}");
        }
        let same = full([3, n], 7, DType::I32).unwrap();
        assert!(same.sort(-1).unwrap().to_vec::<i32>().unwrap().iter().all(|v| *v == 7));
        let order = same.argsort(-1).unwrap().to_vec::<i64>().unwrap();
        assert!(order.iter().enumerate().all(|(i, p)| *p == (i % n) as i64));
        let (_, first) = topk(&same, 3, -1, true).unwrap();
        assert_eq!(first.to_vec::<i64>().unwrap(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        // Rows that differ in the digits that are constant.
        let mixed: Vec<i64> = (0..3 * n).map(|i| ((bits(6, i) & 0xffff) as i64) << (16 * (i / n))).collect();
        let a = array(&mixed, &[3, n]);
        assert_eq!(a.argsort(-1).unwrap().to_vec::<i64>().unwrap(), places(&mixed, n, false).concat());
        let sorted = a.sort(-1).unwrap().to_vec::<i64>().unwrap();
        assert!(sorted.chunks(n).all(|row| row.is_sorted()));
    });
}

#[test]
fn large_sorts_agree_with_themselves() {
    on_device(|_| {
        let n = 3_000_001;
        let values = values::<f32>(n, 9);
        let a = NdArray::from_slice(&values).unwrap();
        let wanted = places(&values, n, false).concat();
        let sorted: Vec<f32> = wanted.iter().map(|i| values[*i as usize]).collect();
        for _ in 0..5 {
            assert!(a.argsort(-1).unwrap().to_vec::<i64>().unwrap() == wanted);
            assert!(a.sort(-1).unwrap().to_bytes().unwrap() == bytes(&sorted));
        }
        let rows = a.index(s![..3_000_000]).unwrap().reshape([30, 100_000]).unwrap();
        let order = rows.argsort(-1).unwrap().to_vec::<i64>().unwrap();
        assert!(order == places(&values[..3_000_000], 100_000, false).concat());
        // Sorts along the first axis.
        let columns = rows.t().unwrap().argsort(0).unwrap().t().unwrap();
        assert!(columns.to_vec::<i64>().unwrap() == order);
    });
}

fn check_select<T: Ordered>(n: usize, one_in: u64) {
    let values = values::<T>(n, n as u64);
    let chosen: Vec<bool> = (0..n).map(|i| one_in > 0 && bits(3, i).is_multiple_of(one_in)).collect();
    let (a, mask) = (NdArray::from_slice(&values).unwrap(), NdArray::from_slice(&chosen).unwrap());
    let wanted: Vec<T> = values.iter().zip(&chosen).filter(|(_, c)| **c).map(|(v, _)| *v).collect();
    let got = a.extract(&mask).unwrap();
    assert!(got.shape() == [wanted.len()] && got.to_bytes().unwrap() == bytes(&wanted), "{} {n}, one in {one_in}", T::DTYPE);
    let places: Vec<i64> = (0..n as i64).filter(|i| chosen[*i as usize]).collect();
    assert!(flatnonzero(&mask).unwrap().to_vec::<i64>().unwrap() == places, "places of {n}, one in {one_in}");
}

fn select<T: Ordered>() {
    for n in [1, 31, 33, 2047, 2048, 2049, 4096, 4097, 8191, 8192, 8193, 50_000] {
        for one_in in [0, 1, 2, 1000] {
            check_select::<T>(n, one_in);
        }
    }
}

#[test]
fn select_elements() {
    on_device(|_| for_all!(select()));
}

#[test]
fn selections_of_expressions() {
    on_device(|_| {
        let n = 30_000;
        let values: Vec<f64> = (0..n).map(|i| (bits(1, i) % 1000) as f64 - 500.0).collect();
        let a = NdArray::from_slice(&values).unwrap();
        let wanted: Vec<f64> = values.iter().copied().filter(|v| v * 2.0 + 1.0 > 300.0).collect();
        let doubled = cuprum_core::add(a.multiply(2.0).unwrap(), 1.0).unwrap();
        assert_eq!(a.extract(&doubled.greater(300.0).unwrap()).unwrap().to_vec::<f64>().unwrap(), wanted);
        // A repeated operand, and one that starts in the middle.
        let limit = broadcast_to(&NdArray::from_slice(&[100.0]).unwrap(), [n - 1]).unwrap();
        let tail = a.index(s![1..]).unwrap();
        let wanted: Vec<i64> = (0..n as i64 - 1).filter(|i| values[*i as usize + 1] > 100.0).collect();
        assert_eq!(flatnonzero(&tail.greater(&limit).unwrap()).unwrap().to_vec::<i64>().unwrap(), wanted);
        assert_eq!(flatnonzero(&zeros([0], DType::Bool).unwrap()).unwrap().shape(), [0]);
        assert_eq!(flatnonzero(&full([5], 3, DType::I16).unwrap()).unwrap().to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn large_selections_agree_with_themselves() {
    on_device(|_| {
        let n = 5_000_011;
        let values: Vec<i32> = (0..n).map(|i| bits(2, i) as i32).collect();
        let a = NdArray::from_slice(&values).unwrap();
        for limit in [i32::MIN, -2_000_000_000, 0, 2_147_000_000] {
            let wanted: Vec<i32> = values.iter().copied().filter(|v| *v > limit).collect();
            for _ in 0..3 {
                assert!(a.extract(&a.greater(limit).unwrap()).unwrap().to_vec::<i32>().unwrap() == wanted, "{limit}");
            }
        }
    });
}

fn search<T: Ordered>() {
    let mut sorted = values::<T>(1000, 1);
    sorted.sort_by(|a, b| a.order(b));
    let wanted = values::<T>(3000, 2);
    let v = array(&wanted, &[30, 100]);
    for size in [1, 2, 7, 1000] {
        let part = &sorted[..size];
        let a = NdArray::from_slice(part).unwrap();
        for (side, equal) in [(Side::Left, false), (Side::Right, true)] {
            let before = |x: &T| part.partition_point(|y| matches!(y.order(x), Ordering::Less) || equal && y.order(x).is_eq()) as i64;
            let got = a.searchsorted(&v, side).unwrap();
            assert_eq!(got.shape(), [30, 100]);
            assert!(got.to_vec::<i64>().unwrap() == wanted.iter().map(before).collect::<Vec<_>>(), "{} {size} {side:?}", T::DTYPE);
        }
    }
}

#[test]
fn search_sorted_values() {
    on_device(|_| for_all!(search()));
}

/// Members of few and of many values. With many values, the kernel that filters them runs.
fn find_members<T: Ordered>() {
    let mut sorted = values::<T>(5000, 1);
    sorted.sort_by(|a, b| a.order(b));
    let mut wanted = values::<T>(600_001, 2);
    wanted[77] = sorted[5];
    let (few, many) = (array(&wanted[..1000], &[1000]), array(&wanted, &[wanted.len()]));
    for size in [1, 33, 5000] {
        let a = NdArray::from_slice(&sorted[..size]).unwrap();
        // NaN is equal to no element.
        let found = |x: &T| {
            let at = sorted[..size].partition_point(|y| matches!(y.order(x), Ordering::Less));
            sorted[..size].get(at).is_some_and(|y| y == x)
        };
        for invert in [false, true] {
            let expected: Vec<bool> = wanted.iter().map(|x| found(x) != invert).collect();
            assert!(is_in_sorted(&few, &a, invert).unwrap().to_vec::<bool>().unwrap() == expected[..1000], "{} {size}", T::DTYPE);
            assert!(is_in_sorted(&many, &a, invert).unwrap().to_vec::<bool>().unwrap() == expected, "{} {size} {invert}", T::DTYPE);
        }
    }
}

#[test]
fn members_of_sorted_arrays() {
    on_device(|_| for_all!(find_members()));
}

/// Returns the bin of each value by the definition of `Binning::Edges`, in a loop.
fn counted(values: &[f64], edges: &[f64]) -> Vec<i64> {
    let mut counts = vec![0; edges.len() - 1];
    let last = edges[edges.len() - 1];
    for v in values.iter().filter(|v| **v >= edges[0] && **v <= last) {
        let bin = if *v == last { counts.len() - 1 } else { edges.partition_point(|e| e <= v) - 1 };
        counts[bin] += 1;
    }
    counts
}

#[test]
fn count_histograms() {
    on_device(|_| {
        let n = 20_000;
        // The counters of 12,288 bins take 48 KiB, to which static shared memory adds.
        for (bins, low, high) in [
            (1, 0.0, 1.0),
            (10, 0.0, 1.0),
            (10, -0.3, 0.7),
            (300, -1e-3, 1e-3),
            (5000, 0.0, 1.0),
            (12_288, 0.0, 1.0),
            (60_000, 0.0, 1.0),
            (7, -3e38, 3e38),
        ] {
            for single in [true, false] {
                let rounded = |x: f64| if single { f64::from(x as f32) } else { x };
                // Many values equal an edge, or are the next float above or below it.
                let value = |i: usize| match bits(4, i) % 8 {
                    0..=2 => rounded(low + (high / 2.0 - low / 2.0) / bins as f64 * (bits(5, i) % (2 * bins + 1)) as f64),
                    3 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, rounded(low), rounded(high), rounded(high * 1.0001)][i % 6],
                    _ => rounded(low + (high / 2.0 - low / 2.0) * 2.0 * (bits(6, i) >> 11) as f64 / (1u64 << 53) as f64),
                };
                let values: Vec<f64> = (0..n).map(value).collect();
                let a = NdArray::from_slice(&values).unwrap();
                let a = if single { a.astype(DType::F32).unwrap() } else { a };
                let (counts, edges) = histogram(&a, (bins as usize, low, high), None, false).unwrap();
                let found = edges.astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                let wanted = counted(&values, &found);
                assert!(counts.to_vec::<i64>().unwrap() == wanted, "{bins} even, single: {single}");
                let (counts, _) = histogram(&a, &edges, None, false).unwrap();
                assert!(counts.to_vec::<i64>().unwrap() == wanted, "{bins} edges, single: {single}");
            }
        }
    });
}

#[test]
fn histograms_of_uneven_edges_and_expressions() {
    on_device(|_| {
        let values: Vec<f64> = (0..10_000).map(|i| (bits(7, i) % 200) as f64 * 0.25 - 20.0).collect();
        let a = NdArray::from_slice(&values).unwrap();
        for edges in [vec![0.0, 1.0], vec![-5.0, -5.0, 0.0, 0.25, 7.0, 7.0, 30.0], vec![-1.0, 0.0, 0.0], vec![3.0, 3.0]] {
            let (counts, _) = histogram(&a, &NdArray::from_slice(&edges).unwrap(), None, false).unwrap();
            assert_eq!(counts.to_vec::<i64>().unwrap(), counted(&values, &edges), "{edges:?}");
        }
        let squared: Vec<f64> = values.iter().map(|v| v * v).collect();
        let (counts, edges) = histogram(&a.multiply(&a).unwrap(), (50, 0.0, 200.0), None, false).unwrap();
        assert_eq!(counts.to_vec::<i64>().unwrap(), counted(&squared, &edges.to_vec::<f64>().unwrap()));
        // A composition of other operations computes weighted counts.
        let (sums, _) = histogram(&a, (4, -20.0, 30.0), Some(&a), false).unwrap();
        let mut wanted = [0.0; 4];
        values.iter().for_each(|v| wanted[((v + 20.0) / 12.5).min(3.0) as usize] += v);
        assert_eq!(sums.to_vec::<f64>().unwrap(), wanted);
    });
}

#[test]
fn counts_of_numbers() {
    on_device(|_| {
        for (n, bins) in [(1, 1), (5000, 3), (100_000, 256), (30_000, 12_345), (30_000, 100_000)] {
            let values: Vec<i64> = (0..n).map(|i| (bits(8, i) % bins) as i64).collect();
            let mut wanted = vec![0i64; (*values.iter().max().unwrap() + 1).max(5) as usize];
            values.iter().for_each(|v| wanted[*v as usize] += 1);
            let a = NdArray::from_slice(&values).unwrap();
            assert!(bincount(&a, None, 5).unwrap().to_vec::<i64>().unwrap() == wanted, "{n} {bins}");
            let narrow = a.astype(DType::I32).unwrap();
            assert!(bincount(&narrow, None, 5).unwrap().to_vec::<i64>().unwrap() == wanted, "{n} {bins}");
        }
        let same = full([1_000_000], 2, DType::U8).unwrap();
        assert_eq!(bincount(&same, None, 0).unwrap().to_vec::<i64>().unwrap(), [0, 0, 1_000_000]);
    });
}

#[test]
fn running_extremes() {
    on_device(|_| {
        for n in [1, 33, 2048, 5000, 40_000, 100_003] {
            let ints = values::<i32>(n, 1);
            let a = NdArray::from_slice(&ints).unwrap();
            let wanted: Vec<i32> = ints.iter().scan(i32::MIN, |m, v| (*m = (*m).max(*v), Some(*m)).1).collect();
            assert!(cummax(&a, 0).unwrap().to_vec::<i32>().unwrap() == wanted, "{n}");
            // All results from the first NaN on are NaN.
            let mut floats: Vec<f64> = (0..n).map(|i| (bits(2, i) % 100_000) as f64).collect();
            floats[n * 3 / 4] = f64::NAN;
            let got = cummin(&NdArray::from_slice(&floats).unwrap(), 0).unwrap().to_vec::<f64>().unwrap();
            let mut least = f64::INFINITY;
            for (i, (got, v)) in got.iter().zip(&floats).enumerate() {
                least = least.min(*v);
                assert!(if i < n * 3 / 4 { *got == least } else { got.is_nan() }, "{n} {i}");
            }
        }
        let m = array(&values::<i16>(3000, 3), &[30, 100]);
        let transposed = cummin(&m.t().unwrap(), 1).unwrap().t().unwrap();
        assert_eq!(cummin(&m, 0).unwrap().to_vec::<i16>().unwrap(), transposed.to_vec::<i16>().unwrap());
    });
}

#[test]
fn scans_of_long_lanes() {
    on_device(|_| {
        for n in [32_769, 40_959, 40_960, 40_961, 300_007] {
            let halves: Vec<f64> = (0..3 * n).map(|i| (bits(1, i) % 64) as f64 * 0.5 - 16.0).collect();
            let a = array(&halves, &[3, n]);
            let sums = |row: &[f64]| row.iter().scan(0.0, |sum, v| (*sum += v, Some(*sum)).1).collect::<Vec<f64>>();
            let wanted: Vec<f64> = halves.chunks(n).flat_map(sums).collect();
            assert!(a.cumsum(1).unwrap().to_vec::<f64>().unwrap() == wanted, "{n}");
            assert!(a.t().unwrap().cumsum(0).unwrap().t().unwrap().to_vec::<f64>().unwrap() == wanted, "columns of {n}");
            let complex: Vec<Complex<f64>> = halves[..n].iter().map(|v| Complex::new(*v, -v)).collect();
            let got = NdArray::from_slice(&complex).unwrap().cumsum(0).unwrap().to_vec::<Complex<f64>>().unwrap();
            assert!(got.iter().zip(&wanted).all(|(z, w)| *z == Complex::new(*w, -w)), "complex, {n}");
            let bytes: Vec<i8> = values(n, 2);
            let most: Vec<i8> = bytes.iter().scan(i8::MIN, |m, v| (*m = (*m).max(*v), Some(*m)).1).collect();
            assert!(cummax(&NdArray::from_slice(&bytes).unwrap(), 0).unwrap().to_vec::<i8>().unwrap() == most, "{n}");
            let doubled = a.index(s![0, ..;-1]).unwrap().multiply(2.0).unwrap();
            let backwards: Vec<f64> = halves[..n].iter().rev().map(|v| v * 2.0).collect();
            assert!(doubled.cumsum(0).unwrap().to_vec::<f64>().unwrap() == sums(&backwards), "an expression, {n}");
        }
    });
}

#[test]
fn large_scans_agree_with_themselves() {
    on_device(|_| {
        let values: Vec<f32> = (0..10_000_019).map(|i| (bits(1, i) >> 40) as f32 * 1e-7).collect();
        let a = NdArray::from_slice(&values).unwrap();
        let first = a.cumsum(0).unwrap().to_bytes().unwrap();
        let last = a.cumsum(0).unwrap().index(s![-1]).unwrap().item().unwrap().as_f64();
        let wanted: f64 = values.iter().map(|v| f64::from(*v)).sum();
        assert!((last - wanted).abs() < 1e-4 * wanted, "{last} {wanted}");
        for _ in 0..5 {
            assert!(a.cumsum(0).unwrap().to_bytes().unwrap() == first);
        }
    });
}

#[test]
fn narrow_indices() {
    on_device(|_| {
        let a = arange_as(0, 1000, 1, DType::F32).unwrap().reshape([10, 100]).unwrap();
        let wide: Vec<i64> = (0..57).map(|i| i * 7 % 20 - 10).collect();
        let narrow: Vec<i32> = wide.iter().map(|i| *i as i32).collect();
        let (wide, narrow) = (NdArray::from_slice(&wide).unwrap(), NdArray::from_slice(&narrow).unwrap());
        for axis in [0, 1] {
            let (x, y) = (a.take(&wide, axis).unwrap(), a.take(&narrow, axis).unwrap());
            assert_eq!(x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
        }
        let bad = NdArray::from_slice(&[10i32]).unwrap();
        assert!(a.take(&bad, 0).unwrap().to_bytes().is_err());
    });
}
