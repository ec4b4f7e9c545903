//! Sums of squared distances from the mean.
//!
//! Rows of up to [`READ_TWICE`] bytes are read twice while they are in cache, to the bits of a fused expression over rows
//! (`Program::push_squared_distances`). Longer ones and columns take one pass: each leaf by its own mean, leaves merged by the formula of
//! Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979), in the tree of all
//! reductions.

use std::marker::PhantomData;

use cuprum_core::Complex;

use super::lanes::{LEAF, fold};
use super::ops::{Reducer, Value};
use super::tree::Tree;
use crate::cache::Ahead;
use crate::elementwise::complex::ComplexArithmetic;
use crate::simd::{Loop, dispatch};
use crate::threads;
use crate::tile::{Compiled, Evaluator};

/// Bytes of the longest row that is read twice. Loops over longer ones wait for memory between rows: rows of 16 KiB took 1.2 times as long
/// so as in one pass, those of 128 KiB 1.3 to 2.1 times (float32, AVX2, one thread).
pub(super) const READ_TWICE: usize = 8 << 10;

/// Elements with a mean.
pub(crate) trait Number: Value {
    /// Type of distances.
    type Real: Value + std::ops::Add<Output = Self::Real>;
    /// Difference.
    fn minus(self, b: Self) -> Self;
    /// Multiplied by a real number.
    fn scaled(self, by: Self::Real) -> Self;
    /// Divided by a number of elements.
    fn over(self, count: usize) -> Self;
    /// Squared distance from 0, times a real number. It overflows only if the result does.
    fn square(self, times: Self::Real) -> Self::Real;
    /// A count, or a share of one, as a real number.
    fn real(count: f64) -> Self::Real;
}

macro_rules! number {
    ($($real:ty),*) => {$(
        impl Number for $real {
            type Real = $real;
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn scaled(self, by: $real) -> Self { self * by }
            #[inline(always)]
            fn over(self, count: usize) -> Self { self / count as $real }
            #[inline(always)]
            fn square(self, times: $real) -> $real { self * times * self }
            #[inline(always)]
            fn real(count: f64) -> $real { count as $real }
        }
        impl Number for Complex<$real> {
            type Real = $real;
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn scaled(self, by: $real) -> Self { Complex::new(self.re * by, self.im * by) }
            #[inline(always)]
            fn over(self, count: usize) -> Self { self.divide(Complex::new(count as $real, 0.0)) }
            #[inline(always)]
            fn square(self, times: $real) -> $real { self.re * times * self.re + self.im * times * self.im }
            #[inline(always)]
            fn real(count: f64) -> $real { count as $real }
        }
    )*};
}
number!(f32, f64);

/// Number of elements, their mean, and the sum of their squared distances from it.
#[derive(Clone, Copy)]
pub(crate) struct Moments<T: Number> {
    count: f64,
    mean: T,
    squares: T::Real,
}

/// The sum of squared distances from the mean.
pub(crate) struct Deviation<T>(PhantomData<T>);

impl<T: Number> Reducer for Deviation<T> {
    type In = T;
    type Acc = Moments<T>;
    type Out = T::Real;
    #[inline(always)]
    fn start(value: T, _index: usize) -> Moments<T> {
        // The distance from itself, so that NaN and infinity are NaN.
        Moments { count: 1.0, mean: value, squares: value.minus(value).square(T::real(1.0)) }
    }
    #[inline(always)]
    fn merge(a: Moments<T>, b: Moments<T>) -> Moments<T> {
        let count = a.count + b.count;
        let (share, distance) = (b.count / count, b.mean.minus(a.mean));
        Moments {
            count,
            mean: a.mean.plus(distance.scaled(T::real(share))),
            squares: a.squares + b.squares + distance.square(T::real(a.count * share)),
        }
    }
    #[inline(always)]
    fn finish(acc: Moments<T>) -> T::Real {
        // NumPy's mean overflows where the sum does, and no value is near it then.
        let sum = acc.mean.scaled(T::real(acc.count));
        if sum.minus(sum).not_a_number() { acc.squares + T::real(f64::INFINITY) } else { acc.squares }
    }
    #[inline(always)]
    fn leaf(values: &[T], ahead: Option<Ahead>, _first: usize) -> Moments<T> {
        let count = values.len() as f64;
        let (sum, share) = (fold(values, ahead, |v| v, T::plus), T::real(1.0 / count));
        // Only the sum may be infinite. Two such means would have no distance.
        let is_beyond = sum.minus(sum).not_a_number();
        let mean = if is_beyond { fold(values, None, |v| v.scaled(share), T::plus) } else { sum.scaled(share) };
        let squares = fold(values, None, |v| v.minus(mean).square(T::real(1.0)), |a, b| a + b);
        Moments { count, mean, squares }
    }
}

/// Rows of one length that lie one after the other, and where to look ahead of the first.
struct RowsLoop<'a, T: Number> {
    values: &'a [T],
    len: usize,
    ahead: Option<Ahead>,
    results: &'a mut [T::Real],
}

impl<T: Number> Loop for RowsLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let RowsLoop { values, len, ahead, results } = self;
        for ((n, row), result) in values.chunks_exact(len).enumerate().zip(results) {
            let ahead = |at: usize| ahead.map(|from| from.after::<T>(n * len + at));
            let sum = in_leaves(row, |at, leaf| fold(leaf, ahead(at), |v| v, T::plus), T::plus);
            let mean = sum.plus(T::ZERO).over(len);
            let squares = |_, leaf: &[T]| fold(leaf, None, |v| v.minus(mean).square(T::real(1.0)), |a, b| a + b);
            *result = in_leaves(row, squares, |a, b| a + b).plus(T::Real::ZERO);
        }
    }
}

/// The leaves of a row, each with the place of its first element, merged by the tree of all reductions.
#[inline(always)]
fn in_leaves<T, A: Value>(row: &[T], leaf: impl Fn(usize, &[T]) -> A, merge: impl Fn(A, A) -> A) -> A {
    if row.len() <= LEAF {
        return leaf(0, row);
    }
    let mut tree = Tree::new();
    for (n, values) in row.chunks(LEAF).enumerate() {
        tree.push(leaf(n * LEAF, values), &merge);
    }
    tree.take(merge).unwrap_or(A::ZERO)
}

/// Reduces rows of `len` points each into `out`, in two passes.
pub(super) fn reduce_rows<T: Number>(compiled: &Compiled, len: usize, out: &mut [T::Real]) {
    let tile = compiled.tile();
    let cost = out.len().saturating_mul(len).saturating_mul(compiled.cost());
    let together = (tile / len).max(1);
    let tasks = if threads::worth(cost) == 1 { 1 } else { threads::worth(cost) * 4 };
    let chunk = out.len().div_ceil(tasks).next_multiple_of(together);
    threads::for_each(
        out.chunks_mut(chunk).enumerate(),
        cost,
        || (Evaluator::new(compiled), Vec::new()),
        |(evaluator, row), (i, out)| {
            for (n, results) in out.chunks_mut(together).enumerate() {
                let (start, count) = ((i * chunk + n * together) * len, results.len() * len);
                if let Some((values, ahead)) = evaluator.in_place(start, count) {
                    dispatch(RowsLoop::<T> { values: values.typed(), len, ahead, results });
                } else if count <= tile {
                    let (values, ahead) = evaluator.read_with_ahead(start, count);
                    dispatch(RowsLoop::<T> { values: values.typed(), len, ahead, results });
                } else {
                    row.clear();
                    for at in (0..len).step_by(tile) {
                        row.extend_from_slice(evaluator.read(start + at, tile.min(len - at)).typed::<T>());
                    }
                    dispatch(RowsLoop::<T> { values: row, len, ahead: None, results });
                }
            }
        },
    );
}
