//! Sort compared with a comparison sort in NumPy's order.

use std::cmp::Ordering;

use cuprum_core::ops::segments::{SEGMENT_ARGSORT, SEGMENT_SORT};
use cuprum_core::ops::sort::unique_with_indices;
use cuprum_core::{
    Complex, DType, Element, NdArray, Op, arange, axis, bf16, f16, flip, segment_argsort, segment_sort, topk, unique, unique_all,
    unique_counts, unique_values, zeros,
};

use crate::support::on_threads;

/// Row lengths at every boundary: short rows, one block, several blocks.
const LENGTHS: [usize; 10] = [1, 2, 20, 191, 193, 4099, 32_768, 32_769, 70_001, 300_001];

/// Element types with NumPy's documented sort order.
trait Ranked: Element {
    fn rank(&self, other: &Self) -> Ordering;
    /// Returns a value made of the 64 random bits `bits`, with many repeats and some special values.
    fn draw(bits: u64) -> Self;
}
macro_rules! ranked {
    (ints $($t:ty)*) => {$(
        impl Ranked for $t {
            fn rank(&self, other: &Self) -> Ordering { self.cmp(other) }
            fn draw(bits: u64) -> Self { if bits % 3 == 0 { (bits >> 60) as $t } else { (bits >> 8) as $t } }
        }
    )*};
    (floats $($t:ty: $v:ident => $wide:expr, $from:expr;)*) => {$(
        impl Ranked for $t {
            fn rank(&self, other: &Self) -> Ordering {
                let wide = |$v: $t| -> f64 { $wide };
                let (a, b) = (wide(*self), wide(*other));
                a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(&b).unwrap_or(Ordering::Equal))
            }
            fn draw(bits: u64) -> Self {
                let odd = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0, 1e-40, -5e-324];
                let $v = match bits % 7 {
                    0 => odd[(bits >> 8) as usize % odd.len()],
                    1 => (bits >> 60) as f64 - 8.0,
                    _ => ((bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 100.0,
                };
                $from
            }
        }
    )*};
}
ranked! { ints i8 i16 i32 i64 u8 u16 u32 u64 }
ranked! { floats
    f16: v => v.to_f64(), f16::from_f64(v);
    bf16: v => v.to_f64(), bf16::from_f64(v);
    f32: v => v as f64, v as f32;
    f64: v => v, v;
}
impl Ranked for bool {
    fn rank(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
    fn draw(bits: u64) -> Self {
        bits >> 63 == 1
    }
}
impl<T: Ranked + PartialOrd> Ranked for Complex<T>
where
    Complex<T>: Element,
{
    fn rank(&self, other: &Self) -> Ordering {
        let nan = |z: &Self| 2 * is_nan(&z.re) as u8 + is_nan(&z.im) as u8;
        nan(self).cmp(&nan(other)).then(self.re.rank(&other.re)).then(self.im.rank(&other.im))
    }
    fn draw(bits: u64) -> Self {
        Complex::new(T::draw(bits.rotate_left(32)), T::draw(bits))
    }
}

fn is_nan<T: PartialOrd>(v: &T) -> bool {
    v.partial_cmp(v).is_none()
}

/// Returns reproducible random bits.
fn bits(i: usize) -> u64 {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the indices that sort `row`.
fn order<T: Ranked>(row: &[T], descending: bool) -> Vec<i64> {
    let mut indices: Vec<i64> = (0..row.len() as i64).collect();
    let at = |i: &i64| &row[*i as usize];
    match descending {
        true => indices.sort_by(|a, b| at(b).rank(at(a))),
        false => indices.sort_by(|a, b| at(a).rank(at(b))),
    }
    indices
}

/// Returns the byte representations of the elements of `row`, sorted.
fn multiset<T: Element>(row: &[T]) -> Vec<Vec<u8>> {
    let bytes = NdArray::from_slice(row).unwrap().to_bytes().unwrap();
    let mut all: Vec<Vec<u8>> = bytes.chunks(T::DTYPE.itemsize()).map(|b| b.to_vec()).collect();
    all.sort();
    all
}

/// Sorts the rows of `values` by every sort function and compares the results with the reference order.
fn check<T: Ranked>(rows: usize, len: usize, values: Vec<T>) {
    let name = format!("{} {rows} x {len}", T::DTYPE);
    let a = NdArray::from_vec(values.clone(), [rows, len]).unwrap();
    for descending in [false, true] {
        let last = || if descending { axis(-1).descending() } else { axis(-1) };
        let want: Vec<i64> = values.chunks(len).flat_map(|row| order(row, descending)).collect();
        let indices = on_threads(|| a.argsort(last())).to_vec::<i64>().unwrap();
        assert!(indices == want, "{name}, indices, descending: {descending}");
        let sorted = on_threads(|| a.sort(last())).to_vec::<T>().unwrap();
        for (n, row) in sorted.chunks(len).enumerate() {
            let from = &values[n * len..][..len];
            let same = row.iter().zip(&want[n * len..]).all(|(v, &p)| v.rank(&from[p as usize]) == Ordering::Equal);
            assert!(same, "{name}, values, descending: {descending}");
            assert!(len > 5000 || multiset(row) == multiset(from), "{name} keeps its bits");
        }
        // Long rows are slow to check, so they are partitioned at one index only.
        let partitions: &[usize] = if len < 10_000 { &[0, len / 3, len - 1] } else { &[len / 3][usize::from(descending)..] };
        partitions.iter().for_each(|&k| check_partition(&a, &values, k, descending, &want));
        let counts: &[usize] = if len < 10_000 { &[1, len / 5, len / 3, len - 1, len] } else { &[len / 5, len / 3] };
        for &k in counts {
            let (top, at) = topk(&a, k, -1, descending).unwrap();
            let first: Vec<i64> = want.chunks(len).flat_map(|row| &row[..k]).copied().collect();
            assert!(at.to_vec::<i64>().unwrap() == first, "{name}, indices of {k}, descending: {descending}");
            let (top, want) = (top.to_bytes().unwrap(), a.take_along(&at));
            assert!(top == want, "{name}, values of {k}, descending: {descending}");
        }
    }
}

/// With few distinct values, the selection before the sort permutes many equal elements.
#[test]
fn selected_elements_with_few_distinct_values() {
    for len in [1000, 2000, 8000, 30_000] {
        let values: Vec<i64> = (0..len).map(|i| (bits(i) % 3) as i64 - 1).collect();
        check(1, len, values.iter().map(|&v| v as f32).collect::<Vec<_>>());
        check(1, len, values.iter().map(|&v| v << 60).collect::<Vec<_>>());
        check(1, len, values);
    }
}

/// Checks that element `k` of each partitioned row is element `k` of the sorted row, and that no element is on the wrong side of it.
/// `want` are the sorting indices.
fn check_partition<T: Ranked>(a: &NdArray, values: &[T], k: usize, descending: bool, want: &[i64]) {
    let len = a.shape()[1];
    let last = || if descending { axis(-1).descending() } else { axis(-1) };
    let indices = on_threads(|| a.argpartition(k as isize, last())).to_vec::<i64>().unwrap();
    let got = on_threads(|| a.partition(k as isize, last())).to_vec::<T>().unwrap();
    for (n, from) in values.chunks(len).enumerate() {
        let what = format!("{} of {len}, element {k}, descending: {descending}", T::DTYPE);
        let (indices, got) = (&indices[n * len..][..len], &got[n * len..][..len]);
        let mut all = indices.to_vec();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..len as i64), "{what}: not all indices");
        let taken: Vec<T> = indices.iter().map(|p| from[*p as usize]).collect();
        let pivot = &from[want[n * len + k] as usize];
        for row in [got, &taken] {
            let side = |v: &T| if descending { pivot.rank(v) } else { v.rank(pivot) };
            assert!(row[k].rank(pivot) == Ordering::Equal, "{what}");
            assert!(row[..k].iter().all(|v| side(v) != Ordering::Greater), "{what}, before it");
            assert!(row[k..].iter().all(|v| side(v) != Ordering::Less), "{what}, after it");
        }
        assert!(len > 5000 || multiset(got) == multiset(from), "{what}: bits differ");
    }
}

/// Reference implementation of `take_along_axis`.
trait TakeAlong {
    fn take_along(&self, indices: &NdArray) -> Vec<u8>;
}
impl TakeAlong for NdArray {
    fn take_along(&self, indices: &NdArray) -> Vec<u8> {
        let (rows, len, size) = (self.shape()[0], self.shape()[1], self.dtype().itemsize());
        let bytes = self.to_bytes().unwrap();
        let indices = indices.to_vec::<i64>().unwrap();
        let each = indices.len() / rows;
        let at = indices.iter().enumerate().map(|(i, &p)| i / each.max(1) * len + p as usize);
        at.flat_map(|i| bytes[i * size..][..size].to_vec()).collect()
    }
}

fn every_length<T: Ranked>() {
    for len in LENGTHS {
        let rows = if len < 300 { 700 / len + 1 } else { 1 };
        let values: Vec<T> = (0..rows * len).map(|i| T::draw(bits(i))).collect();
        check(rows, len, values);
    }
}

macro_rules! every_length {
    ($($name:ident: $($t:ty),+;)*) => {$(
        #[test]
        fn $name() {
            $(every_length::<$t>();)+
        }
    )*};
}
every_length! {
    bools_and_short_integers: bool, u8, i8, u16, i16;
    long_integers: u32, i32, u64, i64;
    floats: f16, bf16, f32, f64;
    complex_numbers: Complex<f32>, Complex<f64>;
}

#[test]
fn adversarial_orders() {
    for len in [40, 3000, 70_000, 400_000] {
        // Key patterns: equal, ascending, descending, sawtooth, one outlier, clustered, few high bits with random low bits, powers of 2.
        let cases: [fn(usize, usize) -> i64; 8] = [
            |_, _| 7,
            |i, _| i as i64,
            |i, n| (n - i) as i64,
            |i, _| (i % 17) as i64,
            |i, n| if i == n / 2 { i64::MIN } else { (bits(i) % 1000) as i64 },
            |i, _| if i % 10 == 0 { bits(i) as i64 } else { (bits(i) % 3) as i64 + (1 << 40) },
            |i, _| (bits(i) % 64) as i64 + ((bits(i) % 3) << 60) as i64,
            |i, _| 1 << (bits(i) % 63),
        ];
        for case in cases {
            let values: Vec<i64> = (0..len).map(|i| case(i, len)).collect();
            let narrow: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            check(1, len, narrow);
            // Complex keys consist of two of these values; the orders are the same.
            if len < 100_000 {
                let complex: Vec<Complex<f64>> = values.iter().map(|&v| Complex::new((v % 5) as f64, -(v as f64))).collect();
                check(1, len, complex);
            }
            check(1, len, values);
        }
    }
}

#[test]
fn other_axes_and_empty_arrays() {
    let a = NdArray::from_vec(vec![3, 1, 2, 0, 5, 4], [2, 3]).unwrap();
    assert_eq!(a.sort(0).unwrap().to_vec::<i32>().unwrap(), [0, 1, 2, 3, 5, 4]);
    assert_eq!(a.sort(()).unwrap().to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(a.t().unwrap().argsort(-1).unwrap().to_vec::<i64>().unwrap(), [1, 0, 0, 1, 0, 1]);
    for shape in [[0, 4], [4, 0]] {
        let none = zeros(shape, DType::F32).unwrap();
        assert_eq!(none.sort(-1).unwrap().shape(), shape);
        assert_eq!(none.argsort(0).unwrap().shape(), shape);
    }
    assert_eq!(topk(&a, 0, -1, true).unwrap().0.shape(), [2, 0]);
    let window = flip(&arange(0, 100, 1).unwrap(), None).unwrap().reshape([10, 10]).unwrap().index(cuprum_core::s![2..5, 3..7]).unwrap();
    assert_eq!(window.sort(-1).unwrap().to_vec::<i64>().unwrap()[..4], [73, 74, 75, 76]);
}

#[test]
fn segments_by_kernel_and_by_composite() {
    let few_long = [vec![5000, 3, 5], [9, 0, 40].repeat(50), vec![4096, 0, 4097], vec![2; 70], vec![300_000]].concat();
    let many_long = [vec![4100; 40], vec![1, 0, 7]].concat();
    let short = (0..900).map(|n| n % 61).collect::<Vec<i64>>();
    for lengths in [few_long, many_long, short, vec![0, 0], vec![7; 30]] {
        let offsets: Vec<i64> = std::iter::once(0).chain(lengths.iter().scan(0, |at, n| (*at += n, Some(*at)).1)).collect();
        let values: Vec<f32> =
            (0..offsets[lengths.len()]).map(|i| if i % 97 == 5 { f32::NAN } else { (i * 7919 % 1009) as f32 - 400.0 }).collect();
        let mut wanted: Vec<i64> = (0..values.len() as i64).collect();
        for w in offsets.windows(2) {
            let at = |i: &i64| values[*i as usize];
            wanted[w[0] as usize..w[1] as usize]
                .sort_by(|a, b| at(a).is_nan().cmp(&at(b).is_nan()).then(at(a).partial_cmp(&at(b)).unwrap_or(Ordering::Equal)));
        }
        let (a, o) = (NdArray::from_slice(&values).unwrap(), NdArray::from_slice(&offsets).unwrap());
        let sorted = a.take(&NdArray::from_slice(&wanted).unwrap(), 0).unwrap().to_bytes().unwrap();
        assert_eq!(on_threads(|| segment_argsort(&a, &o)).to_vec::<i64>().unwrap(), wanted);
        assert!(on_threads(|| segment_sort(&a, &o)).to_bytes().unwrap() == sorted);
        let complex = a.astype(DType::C64).unwrap();
        assert_eq!(on_threads(|| segment_argsort(&complex, &o)).to_vec::<i64>().unwrap(), wanted);
        // The composition of other operations that runs where no kernel accepts the call.
        let composed =
            |op: Op| NdArray::from((op.0.composite.unwrap())(&[a.stored().unwrap(), o.stored().unwrap()], None).unwrap().remove(0));
        assert_eq!(composed(SEGMENT_ARGSORT).to_vec::<i64>().unwrap(), wanted);
        assert!(composed(SEGMENT_SORT).to_bytes().unwrap() == sorted);
    }
}

/// As in NumPy, NaN are distinct in the functions of the array API, but not in `unique`.
#[test]
fn distinct_nan() {
    let bits = |a: &NdArray| a.to_vec::<f64>().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let a = NdArray::from_slice(&[f64::NAN, 1.0, f64::NAN, 1.0]).unwrap();
    let expected = [1.0f64, f64::NAN, f64::NAN].map(f64::to_bits);
    assert_eq!(bits(&unique(&a).unwrap()), expected[..2]);
    assert_eq!(bits(&unique_values(&a).unwrap()), expected);
    let (values, counts) = unique_counts(&a).unwrap();
    assert_eq!((bits(&values), counts.to_vec::<i64>().unwrap()), (expected.to_vec(), vec![2, 1, 1]));
    let all = unique_all(&a).unwrap();
    assert_eq!((bits(&all.values), all.counts.to_vec::<i64>().unwrap()), (expected.to_vec(), vec![2, 1, 1]));
    assert_eq!((all.indices.to_vec::<i64>().unwrap(), all.inverse.to_vec::<i64>().unwrap()), (vec![1, 0, 2], vec![1, 0, 2, 0]));
    let merged = unique_with_indices(&a, true).unwrap();
    assert_eq!((merged.counts.to_vec::<i64>().unwrap(), merged.inverse.to_vec::<i64>().unwrap()), (vec![2, 2], vec![1, 0, 1, 0]));
}
