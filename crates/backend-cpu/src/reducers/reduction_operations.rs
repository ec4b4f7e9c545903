//! Reduction operations, one [`Reducer`] each. The module `leaf_reduction` reduces a leaf (a block of consecutive elements), the module
//! `reduction_loops` merges the results of leaves in order.

use std::marker::PhantomData;

use cuprum_cpu_base::cache_hints::PrefetchState;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::user_operations::UserReduction;

use super::arithmetic::Arithmetic;
use super::leaf_reduction::{LANES, fold_values_in_lanes};
use super::ordered_products::multiply_in_order_until_final;
use super::reduction_loops::sum_products;
use super::{Reducer, SumProductsFunction};

/// The reducer of a user-defined reduction.
pub(crate) struct UserReducer<C>(PhantomData<C>);

impl<C: UserReduction> Reducer for UserReducer<C> {
    type In = C::Value;
    type Acc = C::Value;
    type Out = C::Value;
    const LEAVES_MAY_INTERLEAVE: bool = true;
    #[inline(always)]
    fn to_accumulator(value: C::Value, _: usize) -> C::Value {
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

/// Defines reducers whose accumulator type is the element type. Each entry has a name, a merge function, a finish function and overridden
/// trait items.
macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $merge:expr, |$acc:ident| $finish:expr, {$($more:item)*};)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name<T>(PhantomData<T>);
        impl<T: Arithmetic> Reducer for $name<T> {
            type In = T;
            type Acc = T;
            type Out = T;
            const HAS_LEAF_GROUP_LOOP: bool = !T::DTYPE.is_complex();
            #[inline(always)]
            fn to_accumulator(value: T, _index: usize) -> T { value }
            #[inline(always)]
            fn merge($a: T, $b: T) -> T { $merge }
            #[inline(always)]
            fn finish($acc: T) -> T { $finish }
            $($more)*
        }
    )*};
}
folds! {
    /// Sum; logical or for bool. As in NumPy, the sum of negative zeros is +0.0.
    Sum: |a, b| a.plus(b), |acc| acc.plus(T::ZERO), {
        const LEAVES_MAY_INTERLEAVE: bool = true;
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() >= 4;
        // Only float32 and float64 use `sum_products`, because `Evaluator::borrow_product_factors` returns the factors of products of these
        // dtypes only.
        const SUM_PRODUCTS_FUNCTION: Option<SumProductsFunction<Self>> = if T::DTYPE.is_float() { Some(sum_products) } else { None };
    };
    /// Product; logical and for bool. A float product that is zero, infinite or NaN is computed again in the order of the elements.
    Prod: |a, b| a.times(b), |acc| acc, {
        const LEAVES_MAY_INTERLEAVE: bool = !T::DTYPE.is_complex();
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() >= 4;
        #[inline(always)]
        fn depends_on_order(result: T) -> bool { result.is_zero_or_non_finite_float() }
        fn merge_in_order_until_final(acc: &mut Option<T>, values: &[T], result: T) -> bool { multiply_in_order_until_final(acc, values, result) }
    };
    /// Minimum; the first NaN if there is one.
    Min: |a, b| if b.is_at_least(a) | a.has_nan() { a } else { b }, |acc| acc, {
        const LEAVES_MAY_INTERLEAVE: bool = !T::DTYPE.is_complex();
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() != 2;
        #[inline(always)]
        fn reduce_leaf(_earlier: Option<T>, values: &[T], prefetch: Option<PrefetchState>, _first: usize) -> T {
            first_nan_or_extreme(values, fold_values_in_lanes(values, prefetch, |v| v, T::smaller))
        }
    };
    /// Maximum; the first NaN if there is one.
    Max: |a, b| if a.is_at_least(b) | a.has_nan() { a } else { b }, |acc| acc, {
        const LEAVES_MAY_INTERLEAVE: bool = !T::DTYPE.is_complex();
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() != 2;
        #[inline(always)]
        fn reduce_leaf(_earlier: Option<T>, values: &[T], prefetch: Option<PrefetchState>, _first: usize) -> T {
            first_nan_or_extreme(values, fold_values_in_lanes(values, prefetch, |v| v, T::larger))
        }
    };
    /// Minimum of the elements that are not NaN; the first NaN if all are NaN.
    MinNumber: |a, b| if b.is_at_least(a) | b.has_nan() { a } else { b }, |acc| acc, {
        const LEAVES_MAY_INTERLEAVE: bool = !T::DTYPE.is_complex();
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() != 2;
    };
    /// Maximum of the elements that are not NaN; the first NaN if all are NaN.
    MaxNumber: |a, b| if a.is_at_least(b) | b.has_nan() { a } else { b }, |acc| acc, {
        const LEAVES_MAY_INTERLEAVE: bool = !T::DTYPE.is_complex();
        const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() != 2;
    };
}

/// Returns the first NaN of `values`, or `extreme` if there is none. This second pass over values in cache is faster than comparisons that
/// propagate NaN in the first pass.
#[inline(always)]
fn first_nan_or_extreme<T: Arithmetic>(values: &[T], extreme: T) -> T {
    if values.iter().fold(false, |found, v| found | v.has_nan()) { first_nan(values) } else { extreme }
}

/// Returns the first NaN of `values`. The function is not inlined, as it is rarely called.
#[cold]
#[inline(never)]
fn first_nan<T: Arithmetic>(values: &[T]) -> T {
    values[index_of_first_where(values, |v| v.has_nan())]
}

/// The reducer that counts the elements that are true.
pub(crate) struct CountTrue;

impl Reducer for CountTrue {
    type In = bool;
    type Acc = i64;
    type Out = i64;
    #[inline(always)]
    fn to_accumulator(value: bool, _index: usize) -> i64 {
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
    fn reduce_leaf(_earlier: Option<i64>, values: &[bool], _ahead: Option<PrefetchState>, _first: usize) -> i64 {
        values.iter().map(|&v| v as u16).sum::<u16>() as i64 // a leaf's count fits 16 bits
    }
}

/// A reducer to the index of the first minimum (`R` is `Min`) or of the first maximum (`R` is `Max`), as in `argmin` and `argmax`.
pub(crate) struct ArgReducer<R>(PhantomData<R>);

/// The reducer of `argmin`: the index of the first minimum.
pub(crate) type ArgMin<T> = ArgReducer<Min<T>>;
/// The reducer of `argmax`: the index of the first maximum.
pub(crate) type ArgMax<T> = ArgReducer<Max<T>>;

impl<T: Arithmetic, R: Reducer<In = T, Acc = T>> Reducer for ArgReducer<R> {
    type In = T;
    type Acc = (T, i64);
    type Out = i64;
    const HAS_AVX512_VERSION: bool = R::HAS_AVX512_VERSION;
    const HAS_LEAF_GROUP_LOOP: bool = R::HAS_LEAF_GROUP_LOOP;
    // This number is larger than in other reducers, because the rows of a leaf are merged as plain values. That is faster than merging
    // accumulators (pairs of value and index).
    const ROWS_PER_LEAF: usize = 128;
    #[inline(always)]
    fn to_accumulator(value: T, index: usize) -> (T, i64) {
        (value, index as i64)
    }
    #[inline(always)]
    fn merge(a: (T, i64), b: (T, i64)) -> (T, i64) {
        let best = R::merge(a.0, b.0);
        if are_equal_or_both_nan(best, a.0) { a } else { b }
    }
    #[inline(always)]
    fn finish(acc: (T, i64)) -> i64 {
        acc.1
    }
    #[inline(always)]
    fn reduce_leaf(earlier: Option<(T, i64)>, values: &[T], prefetch: Option<PrefetchState>, first: usize) -> (T, i64) {
        Self::index_of_extreme_if_beats_earlier(earlier, R::reduce_leaf(None, values, prefetch, first), values, first)
    }
    #[inline(always)]
    fn reduce_leaf_group(earlier: Option<(T, i64)>, values: &[T], prefetch: Option<PrefetchState>, first: usize) -> (T, i64) {
        Self::index_of_extreme_if_beats_earlier(earlier, R::reduce_leaf_group(None, values, prefetch, first), values, first)
    }
    /// Merges several rows with values and row numbers in separate arrays, so that the loop over columns is vectorised. Returns `false`
    /// without merging for a single row, for fewer than [`MIN_VECTORISED_COLUMNS`] columns and for complex numbers.
    #[inline(always)]
    fn try_merge_rows(acc: &mut [(T, i64)], rows: &[&[T]], first: usize, begin: bool) -> bool {
        let Some((&head, mut rows)) = rows.split_first().filter(|(_, rows)| !rows.is_empty()) else { return false };
        let columns = acc.len();
        if T::DTYPE.is_complex() || columns < MIN_VECTORISED_COLUMNS || columns > head.len() {
            return false;
        }
        let (mut best, mut best_row) = (head[..columns].to_vec(), vec![0u32; columns]);
        let mut number = 1;
        while let Some((four, rest)) = rows.split_first_chunk::<4>() {
            Self::merge_rows_into_extremes(&mut best, &mut best_row, *four, number);
            (rows, number) = (rest, number + 4);
        }
        for &row in rows {
            Self::merge_rows_into_extremes(&mut best, &mut best_row, [row], number);
            number += 1;
        }
        for ((acc, &value), &row) in acc.iter_mut().zip(&best).zip(&best_row) {
            let new = (value, first as i64 + i64::from(row));
            *acc = if begin { new } else { Self::merge(*acc, new) };
        }
        true
    }
}

/// Minimum number of columns for which [`ArgReducer`] keeps values and row numbers in separate arrays.
const MIN_VECTORISED_COLUMNS: usize = 32;

impl<T: Arithmetic, R: Reducer<In = T, Acc = T>> ArgReducer<R> {
    /// Returns the extreme element `best` of `values` and its index, as [`ArgReducer::index_of_extreme`] does. If `earlier` is at least as
    /// extreme as `best`, the index is arbitrary, because the merge discards it.
    #[inline(always)]
    fn index_of_extreme_if_beats_earlier(earlier: Option<(T, i64)>, best: T, values: &[T], first: usize) -> (T, i64) {
        match earlier {
            Some((earlier, _)) if are_equal_or_both_nan(R::merge(earlier, best), earlier) => (best, first as i64),
            _ => Self::index_of_extreme(best, values, first),
        }
    }

    /// Merges rows into `best`, the extreme element of each column, and `best_row`, the row number of that element. The first of `rows` has
    /// row number `number`.
    #[inline(always)]
    fn merge_rows_into_extremes<const N: usize>(best: &mut [T], best_row: &mut [u32], mut rows: [&[T]; N], number: u32) {
        let (columns, best_row) = (best.len(), &mut best_row[..best.len()]);
        for row in &mut rows {
            *row = &row[..columns];
        }
        for column in 0..columns {
            let (mut value, mut at) = (best[column], best_row[column]);
            for (n, row) in rows.iter().enumerate() {
                let merged = R::merge(value, row[column]);
                at = if are_equal_or_both_nan(merged, value) { at } else { number + n as u32 };
                value = merged;
            }
            (best[column], best_row[column]) = (value, at);
        }
    }

    /// Returns the extreme element `best` of `values` and the index of that element in the reduction. `values[0]` has index `first`.
    #[inline(always)]
    fn index_of_extreme(best: T, values: &[T], first: usize) -> (T, i64) {
        let at = index_of_first_equal(values, best);
        (values[at], (first + at) as i64)
    }
}

/// Loop that searches a slice for the first element equal to a value, or for the first NaN if the value is NaN.
struct FindFirstEqualLoop<'a, T>(&'a [T], T);

impl<T: Arithmetic> SimdLoop for FindFirstEqualLoop<'_, T> {
    type Output = usize;
    const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() != 2;
    #[inline(always)]
    fn run(self) -> usize {
        let FindFirstEqualLoop(values, wanted) = self;
        if wanted.has_nan() { index_of_first_where(values, |v| v.has_nan()) } else { index_of_first_where(values, |v| v == wanted) }
    }
}

/// Returns the index of the first element equal to `wanted`, or of the first NaN if `wanted` is NaN. Returns 0 if there is none. The
/// function is not inlined, so that all reducers of a dtype share one compiled copy per SIMD level.
#[inline(never)]
fn index_of_first_equal<T: Arithmetic>(values: &[T], wanted: T) -> usize {
    dispatch_simd(FindFirstEqualLoop(values, wanted))
}

/// Returns the index of the first element that satisfies `test`, or 0 if there is none. Tests a few registers at a time.
#[inline(always)]
fn index_of_first_where<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> usize {
    for (i, chunk) in values.chunks(2 * LANES).enumerate() {
        if chunk.iter().fold(false, |found, &v| found | test(v)) {
            return 2 * LANES * i + chunk.iter().position(|&v| test(v)).unwrap_or(0);
        }
    }
    0
}

/// Returns whether `a` and `b` are equal, or both NaN.
#[inline(always)]
fn are_equal_or_both_nan<T: Arithmetic>(a: T, b: T) -> bool {
    a == b || (a.has_nan() && b.has_nan())
}
