//! What is computed: one [`Reducer`] per operation. A leaf is reduced in fixed lanes (`lanes`), leaves are merged in order (`loops`).

use std::marker::PhantomData;

use cuprum_core::{Complex, Element};

use super::lanes::{LANES, TOGETHER, fold, lanes, leaf_of, merge_group};
use super::loops::sum_products;
use super::tree::Tree;
use crate::cache::Ahead;
use crate::own::Combine;

/// A reduction: of elements to an accumulator, of accumulators to one, to a result.
pub(crate) trait Reducer: Sized + 'static {
    /// Element.
    type In: Element;
    /// State of a partial result.
    type Acc: Copy + Send + Sync;
    /// Result.
    type Out: Element;

    /// Whether a leaf is a merge of its elements' `start` in lanes and nothing else, so that several may be gone through side by side.
    const PLAIN: bool = false;

    /// How products of elements are reduced without being written anywhere, to the same bits.
    const OF_PRODUCTS: Option<OfProducts<Self>> = None;

    /// One element, the `index`th of its reduction.
    fn start(value: Self::In, index: usize) -> Self::Acc;
    /// Two partial results; those of `a` come before those of `b`.
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result.
    fn finish(acc: Self::Acc) -> Self::Out;

    /// 1 to [`LEAF`] elements, the first of them the `first`th of its reduction.
    #[inline(always)]
    fn leaf(values: &[Self::In], ahead: Option<Ahead>, _first: usize) -> Self::Acc {
        lanes::<Self>(values, ahead)
    }

    /// As [`Reducer::leaf`], where a partial result of earlier elements of the same reduction may make it easier.
    #[inline(always)]
    fn leaf_after(_earlier: Self::Acc, values: &[Self::In], ahead: Option<Ahead>, first: usize) -> Self::Acc {
        Self::leaf(values, ahead, first)
    }

    /// As [`Reducer::leaf_after`] of each of [`TOGETHER`] leaves that follow each other, merged as the tree merges them.
    #[inline(always)]
    fn group(_earlier: Option<Self::Acc>, values: &[Self::In], ahead: Option<Ahead>, first: usize) -> Self::Acc {
        let mut parts = [Self::start(values[0], first); TOGETHER];
        for (n, part) in parts.iter_mut().enumerate() {
            *part = leaf_of::<Self>(values, n, ahead, first);
        }
        merge_group::<Self>(parts)
    }
}

/// What a reduction makes of products, if it is a sum: [`sum_products`], by a tree, factors, the length of a row, where to look ahead, and results.
pub(super) type OfProducts<R> =
    fn(&mut Tree<<R as Reducer>::Acc>, [&[<R as Reducer>::In]; 2], usize, Option<Ahead>, &mut [<R as Reducer>::Out]);

/// A reduction of another crate's.
pub(crate) struct Combined<C>(PhantomData<C>);

impl<C: Combine> Reducer for Combined<C> {
    type In = C::Value;
    type Acc = C::Value;
    type Out = C::Value;
    const PLAIN: bool = true;
    #[inline(always)]
    fn start(value: C::Value, _: usize) -> C::Value {
        value
    }
    #[inline(always)]
    fn merge(a: C::Value, b: C::Value) -> C::Value {
        C::combine(a, b)
    }
    fn finish(acc: C::Value) -> C::Value {
        acc
    }
}

/// Elements as reductions see them.
pub(crate) trait Value: Element {
    /// Wrapping sum; "or" of bool.
    fn plus(self, b: Self) -> Self;
    /// Wrapping product; "and" of bool.
    fn times(self, b: Self) -> Self;
    /// Whether it is NaN, or has a part that is.
    fn not_a_number(self) -> bool;
    /// Greater or equal; false with NaN. Complex by real part, then imaginary.
    fn at_least(self, b: Self) -> bool;
    /// What no value exceeds.
    const HIGHEST: Self;
    /// What exceeds no value.
    const LOWEST: Self;
    /// The larger; itself if both are equal, or one is no number.
    #[inline(always)]
    fn larger(self, b: Self) -> Self {
        if b.at_least(self) & !self.at_least(b) { b } else { self }
    }
    /// The smaller; itself if both are equal, or one is no number.
    #[inline(always)]
    fn smaller(self, b: Self) -> Self {
        if self.at_least(b) & !b.at_least(self) { b } else { self }
    }
    /// What changes nothing that it is added to: -0.0 of floats.
    const NOTHING: Self;
    /// The sum of no values.
    const ZERO: Self;
    /// The product of no values.
    const ONE: Self;
}

macro_rules! value {
    ($($t:ty: |$a:ident, $b:ident| $plus:expr, $times:expr, $nan:expr, $at_least:expr, $highest:expr, $lowest:expr, $nothing:expr, $zero:expr, $one:expr $(, larger $larger:expr, $smaller:expr)?;)*) => {$(
        impl Value for $t {
            #[inline(always)]
            fn plus(self, $b: Self) -> Self { let $a = self; $plus }
            #[inline(always)]
            fn times(self, $b: Self) -> Self { let $a = self; $times }
            #[inline(always)]
            fn not_a_number(self) -> bool { let $a = self; let _ = $a; $nan }
            #[inline(always)]
            fn at_least(self, $b: Self) -> bool { let $a = self; $at_least }
            const HIGHEST: Self = $highest;
            const LOWEST: Self = $lowest;
            const NOTHING: Self = $nothing;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            $(
                #[inline(always)]
                fn larger(self, $b: Self) -> Self { let $a = self; $larger }
                #[inline(always)]
                fn smaller(self, $b: Self) -> Self { let $a = self; $smaller }
            )?
        }
    )*};
}
macro_rules! ints {
    ($($t:ty),*) => { value! { $($t: |a, b| a.wrapping_add(b), a.wrapping_mul(b), false, a >= b, <$t>::MAX, <$t>::MIN, 0, 0, 1;)* } };
}
ints!(i8, i16, i32, i64, u8, u16, u32, u64);
value! {
    bool: |a, b| a | b, a & b, false, a | !b, true, false, false, false, true;
    f32: |a, b| a + b, a * b, a.is_nan(), a >= b, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.0,
        larger if b > a { b } else { a }, if b < a { b } else { a };
    f64: |a, b| a + b, a * b, a.is_nan(), a >= b, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0,
        larger if b > a { b } else { a }, if b < a { b } else { a };
    Complex<f32>: |a, b| a + b, a * b, a.re.is_nan() | a.im.is_nan(), complex_at_least(a, b),
        Complex::new(f32::HIGHEST, f32::HIGHEST), Complex::new(f32::LOWEST, f32::LOWEST), Complex::new(-0.0, -0.0), Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
    Complex<f64>: |a, b| a + b, a * b, a.re.is_nan() | a.im.is_nan(), complex_at_least(a, b),
        Complex::new(f64::HIGHEST, f64::HIGHEST), Complex::new(f64::LOWEST, f64::LOWEST), Complex::new(-0.0, -0.0), Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
}

/// [`Value::at_least`] of complex numbers.
#[inline(always)]
fn complex_at_least<T: PartialOrd>(a: Complex<T>, b: Complex<T>) -> bool {
    let ordered = a.im >= b.im || a.im < b.im; // neither is NaN
    ordered && (a.re > b.re || (a.re == b.re && a.im >= b.im))
}

/// A reduction of no elements has a result, too.
pub(crate) trait Identity: Reducer {
    /// That result.
    const IDENTITY: Self::Out;
}

/// Reductions whose accumulator is an element: name, how two merge, the result of none, and what else they have.
macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $merge:expr, |$acc:ident| $finish:expr, $identity:expr, {$($more:item)*};)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name<T>(PhantomData<T>);
        impl<T: Value> Reducer for $name<T> {
            type In = T;
            type Acc = T;
            type Out = T;
            const PLAIN: bool = true;
            #[inline(always)]
            fn start(value: T, _index: usize) -> T { value }
            #[inline(always)]
            fn merge($a: T, $b: T) -> T { $merge }
            #[inline(always)]
            fn finish($acc: T) -> T { $finish }
            $($more)*
        }
        impl<T: Value> Identity for $name<T> {
            const IDENTITY: T = $identity;
        }
    )*};
}
folds! {
    /// Sum; of bool, "any". NumPy starts from 0.0, so that a sum of negative zeros is positive.
    Sum: |a, b| a.plus(b), |acc| acc.plus(T::ZERO), T::ZERO, {
        const OF_PRODUCTS: Option<OfProducts<Self>> = Some(sum_products);
    };
    /// Product; of bool, "all".
    Prod: |a, b| a.times(b), |acc| acc, T::ONE, {};
    /// Smallest; the first NaN if there is one.
    Min: |a, b| if b.at_least(a) | a.not_a_number() { a } else { b }, |acc| acc, T::HIGHEST, {
        #[inline(always)]
        fn leaf(values: &[T], ahead: Option<Ahead>, _first: usize) -> T {
            extreme::<Self>(values, fold(values, ahead, |v| v, T::smaller))
        }
    };
    /// Largest; the first NaN if there is one.
    Max: |a, b| if a.at_least(b) | a.not_a_number() { a } else { b }, |acc| acc, T::LOWEST, {
        #[inline(always)]
        fn leaf(values: &[T], ahead: Option<Ahead>, _first: usize) -> T {
            extreme::<Self>(values, fold(values, ahead, |v| v, T::larger))
        }
    };
}

/// The extreme value of a leaf, given that of its numbers: comparisons that ask for NaN wait longer for one another than a second look
/// at what is in the first-level cache takes.
#[inline(always)]
fn extreme<R: Reducer>(values: &[R::In], of_numbers: R::Acc) -> R::Acc
where
    R::In: Value,
{
    if values.iter().fold(false, |found, v| found | v.not_a_number()) { lanes::<R>(values, None) } else { of_numbers }
}

/// Number of true elements.
pub(crate) struct Count;

impl Reducer for Count {
    type In = bool;
    type Acc = i64;
    type Out = i64;
    #[inline(always)]
    fn start(value: bool, _index: usize) -> i64 {
        value as i64
    }
    #[inline(always)]
    fn merge(a: i64, b: i64) -> i64 {
        a + b
    }
    #[inline(always)]
    fn finish(acc: i64) -> i64 {
        acc
    }
    #[inline(always)]
    fn leaf(values: &[bool], _ahead: Option<Ahead>, _first: usize) -> i64 {
        values.iter().map(|&v| v as u16).sum::<u16>() as i64 // a leaf's count fits 16 bits
    }
}

/// Index of the first element that `R` (Min or Max) picks.
pub(crate) struct Arg<R>(PhantomData<R>);

/// Index of the first smallest element.
pub(crate) type ArgMin<T> = Arg<Min<T>>;
/// Index of the first largest element.
pub(crate) type ArgMax<T> = Arg<Max<T>>;

impl<T: Value, R: Reducer<In = T, Acc = T>> Reducer for Arg<R> {
    type In = T;
    type Acc = (T, i64);
    type Out = i64;
    #[inline(always)]
    fn start(value: T, index: usize) -> (T, i64) {
        (value, index as i64)
    }
    #[inline(always)]
    fn merge(a: (T, i64), b: (T, i64)) -> (T, i64) {
        let best = R::merge(a.0, b.0);
        if same(best, a.0) { a } else { b }
    }
    #[inline(always)]
    fn finish(acc: (T, i64)) -> i64 {
        acc.1
    }
    #[inline(always)]
    fn leaf(values: &[T], ahead: Option<Ahead>, first: usize) -> (T, i64) {
        Self::place(R::leaf(values, ahead, first), values, first)
    }
    #[inline(always)]
    fn leaf_after(earlier: (T, i64), values: &[T], ahead: Option<Ahead>, first: usize) -> (T, i64) {
        Self::place_after(Some(earlier), R::leaf(values, ahead, first), values, first)
    }
    #[inline(always)]
    fn group(earlier: Option<(T, i64)>, values: &[T], ahead: Option<Ahead>, first: usize) -> (T, i64) {
        Self::place_after(earlier, R::group(None, values, ahead, first), values, first)
    }
}

impl<T: Value, R: Reducer<In = T, Acc = T>> Arg<R> {
    /// The best element and where it is, which does not matter if it does not beat an earlier one: then it wins over no result that holds
    /// that one.
    #[inline(always)]
    fn place_after(earlier: Option<(T, i64)>, best: T, values: &[T], first: usize) -> (T, i64) {
        match earlier {
            Some((earlier, _)) if same(R::merge(earlier, best), earlier) => (best, first as i64),
            _ => Self::place(best, values, first),
        }
    }

    /// The best element and where it is.
    #[inline(always)]
    fn place(best: T, values: &[T], first: usize) -> (T, i64) {
        let at = if best.not_a_number() { first_where(values, |v| v.not_a_number()) } else { first_where(values, |v| v == best) };
        (values[at], (first + at) as i64)
    }
}

/// The first element that a test holds for, looked for a few registers at a time; 0 if there is none.
#[inline(always)]
fn first_where<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> usize {
    for (i, chunk) in values.chunks(2 * LANES).enumerate() {
        if chunk.iter().fold(false, |found, &v| found | test(v)) {
            return 2 * LANES * i + chunk.iter().position(|&v| test(v)).unwrap_or(0);
        }
    }
    0
}

/// Whether two picks are one: equal, or both NaN.
#[inline(always)]
fn same<T: Value>(a: T, b: T) -> bool {
    a == b || (a.not_a_number() && b.not_a_number())
}
