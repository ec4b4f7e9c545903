//! Sums of squared distances from the mean, for `var` and `std`.
//!
//! Rows of up to [`MAX_TWO_PASS_ROW_BYTES`] bytes take two passes in cache, with the same bits as a fused expression over rows
//! (`Program::push_squared_distance_sum`). Longer rows and columns take one pass. Leaves of the pairwise reduction tree use their own mean
//! and are merged by the formula of Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances",
//! 1979).

use std::marker::PhantomData;

use cuprum_core::Complex;
use cuprum_cpu_base::cache_hints::PrefetchState;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;
use cuprum_cpu_elementwise::complex::ComplexArithmetic;

use crate::program_evaluation::{CompiledProgram, Evaluator};
use crate::reducers::Reducer;
use crate::reducers::arithmetic::Arithmetic;
use crate::reducers::leaf_reduction::{LEAF_LEN, fold_values_in_lanes};
use crate::reducers::pairwise_tree::PairwiseTree;

/// Maximum size in bytes of a row that takes two passes. Two passes over longer rows stall on memory between rows: rows of 16 KiB take
/// 1.2 times the time of one pass, rows of 128 KiB 1.3 to 2.1 times (float32, AVX2, one thread).
pub(super) const MAX_TWO_PASS_ROW_BYTES: usize = 8 << 10;

/// Element types that have a mean, for `var` and `std`.
pub(crate) trait MeanElement: Arithmetic {
    /// The real type of the same precision, for scale factors and for squared distances from the mean.
    type Real: Arithmetic + std::ops::Add<Output = Self::Real>;
    /// Returns `self - b`.
    fn minus(self, b: Self) -> Self;
    /// Returns `self` times the real number `by`.
    fn scale_by(self, by: Self::Real) -> Self;
    /// Returns `self` divided by `count`, a number of elements.
    fn divided_by(self, count: usize) -> Self;
    /// Returns `times * |self|^2`. Intermediate values overflow only if the result overflows.
    fn scaled_square(self, times: Self::Real) -> Self::Real;
    /// Converts `count` to the real type: a number of elements, a quotient of two such numbers, or infinity.
    fn real_from_f64(count: f64) -> Self::Real;
}

macro_rules! number {
    ($($real:ty),*) => {$(
        impl MeanElement for $real {
            type Real = $real;
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn scale_by(self, by: $real) -> Self { self * by }
            #[inline(always)]
            fn divided_by(self, count: usize) -> Self { self / count as $real }
            #[inline(always)]
            fn scaled_square(self, times: $real) -> $real { self * times * self }
            #[inline(always)]
            fn real_from_f64(count: f64) -> $real { count as $real }
        }
        impl MeanElement for Complex<$real> {
            type Real = $real;
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn scale_by(self, by: $real) -> Self { Complex::new(self.re * by, self.im * by) }
            #[inline(always)]
            fn divided_by(self, count: usize) -> Self { self.divide(Complex::new(count as $real, 0.0)) }
            #[inline(always)]
            fn scaled_square(self, times: $real) -> $real { self.re * times * self.re + self.im * times * self.im }
            #[inline(always)]
            fn real_from_f64(count: f64) -> $real { count as $real }
        }
    )*};
}
number!(f32, f64);

/// Number of elements, their mean, and the sum of their squared distances from that mean.
#[derive(Clone, Copy)]
pub(crate) struct Moments<T: MeanElement> {
    count: f64,
    mean: T,
    squares: T::Real,
}

/// The reduction to the sum of squared distances from the mean.
pub(crate) struct SquaredDeviations<T>(PhantomData<T>);

impl<T: MeanElement> Reducer for SquaredDeviations<T> {
    type In = T;
    type Acc = Moments<T>;
    type Out = T::Real;
    const HAS_LEAF_GROUP_LOOP: bool = !T::DTYPE.is_complex();
    #[inline(always)]
    fn to_accumulator(value: T, _index: usize) -> Moments<T> {
        // A single value has the squared distance 0 from its mean, or NaN if the value is NaN or infinite, as in NumPy.
        Moments { count: 1.0, mean: value, squares: value.minus(value).scaled_square(T::real_from_f64(1.0)) }
    }
    #[inline(always)]
    fn merge(a: Moments<T>, b: Moments<T>) -> Moments<T> {
        let count = a.count + b.count;
        let (share, distance) = (b.count / count, b.mean.minus(a.mean));
        Moments {
            count,
            mean: a.mean.plus(distance.scale_by(T::real_from_f64(share))),
            squares: a.squares + b.squares + distance.scaled_square(T::real_from_f64(a.count * share)),
        }
    }
    #[inline(always)]
    fn finish(acc: Moments<T>) -> T::Real {
        // As in NumPy, the mean overflows if the sum overflows. All distances are then infinite.
        let sum = acc.mean.scale_by(T::real_from_f64(acc.count));
        if sum.minus(sum).has_nan() { acc.squares + T::real_from_f64(f64::INFINITY) } else { acc.squares }
    }
    #[inline(always)]
    fn reduce_leaf(_earlier: Option<Moments<T>>, values: &[T], prefetch: Option<PrefetchState>, _first: usize) -> Moments<T> {
        let count = values.len() as f64;
        let (sum, share) = (fold_values_in_lanes(values, prefetch, |v| v, T::plus), T::real_from_f64(1.0 / count));
        // If the sum overflowed, the elements are scaled before the summation, which keeps the mean finite. The distance between two
        // infinite means would be NaN.
        let is_beyond = sum.minus(sum).has_nan();
        let mean = if is_beyond { fold_values_in_lanes(values, None, |v| v.scale_by(share), T::plus) } else { sum.scale_by(share) };
        let squares = fold_values_in_lanes(values, None, |v| v.minus(mean).scaled_square(T::real_from_f64(1.0)), |a, b| a + b);
        Moments { count, mean, squares }
    }
}

/// Loop over consecutive rows of equal length in memory, with prefetching that starts at the first row.
struct TwoPassRowsLoop<'a, T: MeanElement> {
    values: &'a [T],
    len: usize,
    prefetch: Option<PrefetchState>,
    results: &'a mut [T::Real],
}

impl<T: MeanElement> SimdLoop for TwoPassRowsLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let TwoPassRowsLoop { values, len, prefetch, results } = self;
        for ((n, row), result) in values.chunks_exact(len).enumerate().zip(results) {
            let prefetch = |at: usize| prefetch.map(|from| from.advance::<T>(n * len + at));
            let sum = reduce_row_pairwise(row, |at, leaf| fold_values_in_lanes(leaf, prefetch(at), |v| v, T::plus), T::plus);
            let mean = sum.plus(T::ZERO).divided_by(len);
            let squares =
                |_, leaf: &[T]| fold_values_in_lanes(leaf, None, |v| v.minus(mean).scaled_square(T::real_from_f64(1.0)), |a, b| a + b);
            *result = reduce_row_pairwise(row, squares, |a, b| a + b).plus(T::Real::ZERO);
        }
    }
}

/// Reduces `row` pairwise. Calls `leaf` for each leaf (a block of consecutive elements) with the index of the leaf's first element and the
/// leaf's elements, and merges the results by `merge`.
#[inline(always)]
fn reduce_row_pairwise<T, A: Arithmetic>(row: &[T], leaf: impl Fn(usize, &[T]) -> A, merge: impl Fn(A, A) -> A) -> A {
    if row.len() <= LEAF_LEN {
        return leaf(0, row);
    }
    let mut tree = PairwiseTree::new();
    for (n, values) in row.chunks(LEAF_LEN).enumerate() {
        tree.push_leaf(leaf(n * LEAF_LEN, values), &merge);
    }
    tree.take_result(merge).unwrap_or(A::ZERO)
}

/// Reduces rows of `len` elements each into `out`, in two passes over each row.
pub(super) fn reduce_rows_in_two_passes<T: MeanElement>(compiled: &CompiledProgram, len: usize, out: &mut [T::Real]) {
    let tile = compiled.tile_len();
    let cost = out.len().saturating_mul(len).saturating_mul(compiled.cost_per_element());
    let together = (tile / len).max(1);
    let tasks = if threads::threads_for_cost(cost) == 1 { 1 } else { threads::threads_for_cost(cost) * 4 };
    let chunk = out.len().div_ceil(tasks).next_multiple_of(together);
    threads::for_each(
        out.chunks_mut(chunk).enumerate(),
        cost,
        || (Evaluator::new(compiled), Vec::new()),
        |(evaluator, row), (i, out)| {
            for (n, results) in out.chunks_mut(together).enumerate() {
                let (start, count) = ((i * chunk + n * together) * len, results.len() * len);
                if let Some((values, prefetch)) = evaluator.borrow_contiguous_values(start, count) {
                    dispatch_simd(TwoPassRowsLoop::<T> { values: values.typed_slice(), len, prefetch, results });
                } else if count <= tile {
                    let (values, prefetch) = evaluator.evaluate_and_get_prefetch(start, count);
                    dispatch_simd(TwoPassRowsLoop::<T> { values: values.typed_slice(), len, prefetch, results });
                } else {
                    row.clear();
                    for at in (0..len).step_by(tile) {
                        row.extend_from_slice(evaluator.evaluate(start + at, tile.min(len - at)).typed_slice::<T>());
                    }
                    dispatch_simd(TwoPassRowsLoop::<T> { values: row, len, prefetch: None, results });
                }
            }
        },
    );
}
