//! Sums of squared distances from the mean in one pass: each leaf by its own mean, leaves merged by the formula of Chan,
//! Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979), in the tree of
//! all reductions.

use std::marker::PhantomData;

use cuprum_core::{Complex, Element};

use super::lanes::fold;
use super::ops::{Reducer, Value};
use crate::cache::Ahead;

/// Elements with a mean.
pub(crate) trait Number: Value {
    /// Type of distances.
    type Real: Element + std::ops::Add<Output = Self::Real>;
    /// Difference.
    fn minus(self, b: Self) -> Self;
    /// Multiplied by a real number.
    fn scaled(self, by: Self::Real) -> Self;
    /// Squared distance from 0, times a real number.
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
            fn square(self, times: $real) -> $real { self * self * times }
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
            fn square(self, times: $real) -> $real { (self.re * self.re + self.im * self.im) * times }
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
        acc.squares
    }
    #[inline(always)]
    fn leaf(values: &[T], ahead: Option<Ahead>, _first: usize) -> Moments<T> {
        let count = values.len() as f64;
        let mean = fold(values, ahead, |v| v, T::plus).scaled(T::real(1.0 / count));
        let squares = fold(values, None, |v| v.minus(mean).square(T::real(1.0)), |a, b| a + b);
        Moments { count, mean, squares }
    }
}
