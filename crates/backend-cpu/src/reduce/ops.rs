//! What is computed: one [`Reducer`] per operation. A leaf is reduced in fixed lanes, leaves are merged in order.

use std::hint::black_box;
use std::marker::PhantomData;

use cuprum_core::{Complex, Element};

use super::tree::Tree;
use crate::cache::{Ahead, gains_by_asking, prefetch_behind};
use crate::own::Combine;
use crate::simd::{Loop, dispatch};

/// Elements reduced in one go, before the tree begins. A power of two; tiles are multiples of it.
pub(crate) const LEAF: usize = 512;

/// Accumulators side by side within a leaf: enough for SIMD registers to work at their full rate. Fixed, whatever the
/// processor, so that every one computes the same sum.
const LANES: usize = 32;

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

/// What a reduction makes of products, if it is a sum: [`push_leaves`] of them, or, where there are results, [`reduce_rows`].
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

/// A leaf in [`LANES`] accumulators, for operations that do not look at the index.
#[inline(always)]
fn lanes<R: Reducer>(values: &[R::In], ahead: Option<Ahead>) -> R::Acc {
    fold(values, ahead, |v| R::start(v, 0), R::merge)
}

/// `start` of every value, merged in [`LANES`] accumulators; asks for as much memory `ahead` as it reads.
#[inline(always)]
pub(super) fn fold<T: Copy, A: Copy>(values: &[T], ahead: Option<Ahead>, start: impl Fn(T) -> A, merge: impl Fn(A, A) -> A) -> A {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let Some((head, chunks)) = chunks.split_first() else {
        let mut acc = start(values[0]);
        for &v in &values[1..] {
            acc = merge(acc, start(v));
        }
        return acc;
    };
    // Loops over whole arrays by index: the accumulators stay in registers. Those of the rest are another array, as its
    // changing length would put them on the stack.
    let ask = |chunk: usize| ahead.iter().for_each(|from| from.after::<T>(chunk * LANES).ask::<T>(LANES));
    let mut acc = [start(head[0]); LANES];
    ask(0);
    for i in 0..LANES {
        acc[i] = start(head[i]);
    }
    for (n, chunk) in chunks.iter().enumerate() {
        ask(n + 1);
        for i in 0..LANES {
            acc[i] = merge(acc[i], start(chunk[i]));
        }
    }
    if !rest.is_empty() {
        acc = with_rest(acc, rest, start, &merge);
    }
    across(acc, merge)
}

/// The accumulators with fewer values than there are lanes.
#[inline(never)]
fn with_rest<T: Copy, A: Copy>(mut acc: [A; LANES], rest: &[T], start: impl Fn(T) -> A, merge: impl Fn(A, A) -> A) -> [A; LANES] {
    for (acc, &v) in acc.iter_mut().zip(rest) {
        *acc = merge(*acc, start(v));
    }
    acc
}

/// Accumulators where whole registers are stored at once.
#[repr(align(64))]
struct Aligned<A>([A; LANES]);

/// All lanes merged: each half with the other.
///
/// The lanes come from memory, as far as the compiler knows. Else it makes pairs of them, from the last merge backwards, and keeps pairs
/// in the whole loop before: groups of leaves took twice as long.
#[inline(always)]
fn across<A: Copy>(acc: [A; LANES], merge: impl Fn(A, A) -> A) -> A {
    let Aligned(acc) = black_box(Aligned(acc));
    macro_rules! halve {
        ($acc:ident, $n:literal) => {{
            let mut half = [$acc[0]; $n];
            for i in 0..$n {
                half[i] = merge($acc[i], $acc[i + $n]);
            }
            half
        }};
    }
    let acc = halve!(acc, 16);
    let acc = halve!(acc, 8);
    let acc = halve!(acc, 4);
    let acc = halve!(acc, 2);
    merge(acc[0], acc[1])
}

/// Leaves that are gone through side by side.
pub(super) const TOGETHER: usize = 4;

/// Their elements.
pub(super) const GROUP: usize = TOGETHER * LEAF;

/// As the tree merges leaves that follow each other, the first of which has a multiple of [`TOGETHER`] before it.
#[inline(always)]
fn merge_group<R: Reducer>([a, b, c, d]: [R::Acc; TOGETHER]) -> R::Acc {
    R::merge(R::merge(a, b), R::merge(c, d))
}

/// The `n`th leaf of a group. A function, as a closure would not be compiled for the level of the loop that it stands in.
#[inline(always)]
fn leaf_of<R: Reducer>(values: &[R::In], n: usize, ahead: Option<Ahead>, first: usize) -> R::Acc {
    let (at, ahead) = (n * LEAF, ahead.map(|from| from.after::<R::In>(n * LEAF)));
    R::leaf(&values[at..at + LEAF], ahead, first + at)
}

/// Leaves as [`lanes`] reduces each, side by side, where the processor [`gains_by_asking`].
#[inline(always)]
fn side_by_side<R: Reducer>(leaves: [&[R::In]; TOGETHER]) -> [R::Acc; TOGETHER] {
    // Loops, here and below: `map` of arrays is a call for each element.
    let mut acc = [[R::start(leaves[0][0], 0); LANES]; TOGETHER];
    for (acc, leaf) in acc.iter_mut().zip(&leaves) {
        let chunk = &leaf.as_chunks::<LANES>().0[0];
        prefetch_behind(chunk, 32);
        for i in 0..LANES {
            acc[i] = R::start(chunk[i], 0);
        }
    }
    for c in 1..LEAF / LANES {
        for (acc, leaf) in acc.iter_mut().zip(&leaves) {
            let chunk = &leaf.as_chunks::<LANES>().0[c];
            prefetch_behind(chunk, 32);
            merge_chunk::<R>(acc, chunk);
        }
    }
    let [a, b, c, d] = acc;
    [across(a, R::merge), across(b, R::merge), across(c, R::merge), across(d, R::merge)]
}

/// Leaves of [`LEAF`] elements from different places in memory: two threads of an Intel Xeon summed 64 MiB so in 1.14 ms, leaf by leaf
/// in 1.31.
struct LeavesLoop<'a, R: Reducer>([&'a [R::In]; TOGETHER]);

impl<R: Reducer> Loop for LeavesLoop<'_, R> {
    type Output = [R::Acc; TOGETHER];
    #[inline(always)]
    fn run(self) -> [R::Acc; TOGETHER] {
        side_by_side::<R>(self.0)
    }
}

/// Merges a value into each accumulator; copied out and in as in [`add_products`].
#[inline(always)]
fn merge_chunk<R: Reducer>(acc: &mut [R::Acc; LANES], chunk: &[R::In; LANES]) {
    let mut merged = *acc;
    for i in 0..LANES {
        merged[i] = R::merge(merged[i], R::start(chunk[i], 0));
    }
    *acc = merged;
}

/// [`Reducer::leaf`] of several leaves of [`LEAF`] elements, for a reducer that is [`Reducer::PLAIN`].
pub(crate) fn leaves<R: Reducer>(leaves: [&[R::In]; TOGETHER]) -> [R::Acc; TOGETHER] {
    dispatch(LeavesLoop::<R>(leaves))
}

/// Scalar products of several lines with one vector.
///
/// The lines, which are expected to come from memory, are gone through side by side: one thread read 256 MiB so at 23 GB/s, line by
/// line at 14, or at 19 where it asked [`Ahead`].
struct LinesLoop<'a, T, const N: usize>([&'a [T]; N], &'a [T]);

impl<T: Value, const N: usize> Loop for LinesLoop<'_, T, N> {
    type Output = [T; N];
    #[inline(always)]
    fn run(self) -> [T; N] {
        match gains_by_asking() {
            true => self.products::<true>(),
            false => self.products::<false>(),
        }
    }
}

impl<T: Value, const N: usize> LinesLoop<'_, T, N> {
    #[inline(always)]
    fn products<const ASK: bool>(self) -> [T; N] {
        let LinesLoop(lines, vector) = self;
        let mut tree = Tree::new();
        for (n, vector) in vector.chunks(LEAF).enumerate() {
            let mut leaves = lines;
            for line in &mut leaves {
                *line = &line[n * LEAF..][..vector.len()];
            }
            tree.push(leaves_of_products::<T, N, ASK>(leaves, vector), plus_each);
        }
        tree.take(plus_each).unwrap_or([T::NOTHING; N])
    }
}

/// A leaf of each line, of one length, each summed as [`fold`] sums the products.
#[inline(always)]
fn leaves_of_products<T: Value, const N: usize, const ASK: bool>(mut lines: [&[T]; N], vector: &[T]) -> [T; N] {
    let mut sums = [T::NOTHING; N];
    if vector.len() < LEAF {
        for (sum, line) in sums.iter_mut().zip(lines) {
            *sum = fold_products(line, vector, Ahead::at(line.as_ptr().cast()));
        }
        return sums;
    }
    // Lengths that the compiler knows: what is left of the loop are products and sums in registers.
    for line in &mut lines {
        *line = &line[..LEAF];
    }
    let mut acc = [[T::NOTHING; LANES]; N];
    for (c, v) in vector[..LEAF].as_chunks().0.iter().enumerate() {
        for n in 0..N {
            let line = &lines[n].as_chunks().0[c];
            if ASK {
                prefetch_behind(line, 8);
            }
            add_products(&mut acc[n], line, v);
        }
    }
    for n in 0..N {
        sums[n] = across(acc[n], T::plus);
    }
    sums
}

#[inline(always)]
fn plus_each<T: Value, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = a.plus(b);
    }
    a
}

/// Adds a product to each accumulator. They are copied out and in, so that the compiler sees that no operand overlaps them.
#[inline(always)]
fn add_products<T: Value>(acc: &mut [T; LANES], line: &[T; LANES], v: &[T; LANES]) {
    let mut sums = *acc;
    for i in 0..LANES {
        sums[i] = sums[i].plus(line[i].times(v[i]));
    }
    *acc = sums;
}

/// Scalar products of lines with a vector of the same length, to the same bits as the reductions of their products.
pub(crate) fn scalar_products<T: Value, const N: usize>(lines: [&[T]; N], vector: &[T]) -> [T; N] {
    dispatch(LinesLoop(lines, vector))
}

/// [`fold`] of the products of as many values of both, at least one; asks for memory `ahead` in the first.
#[inline(always)]
fn fold_products<T: Value>(a: &[T], b: &[T], ahead: Option<Ahead>) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    if a.is_empty() {
        return a_rest.iter().zip(b_rest).fold(T::NOTHING, |sum, (a, b)| sum.plus(a.times(*b)));
    }
    let ask = |chunk: usize| ahead.iter().for_each(|from| from.after::<T>(chunk * LANES).ask::<T>(LANES));
    let mut acc = [T::NOTHING; LANES];
    for c in 0..a.len().min(b.len()) {
        ask(c);
        add_products(&mut acc, &a[c], &b[c]);
    }
    if !a_rest.is_empty() {
        acc = with_products(acc, a_rest, b_rest);
    }
    across(acc, T::plus)
}

/// The accumulators with fewer products than there are lanes, apart as [`with_rest`] is.
#[inline(never)]
fn with_products<T: Value>(mut acc: [T; LANES], a: &[T], b: &[T]) -> [T; LANES] {
    for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(b)) {
        *acc = acc.plus(a.times(*b));
    }
    acc
}

/// Where leaves come from, by the place of their first element; that is the `first`th of its reduction.
trait Leaves<R: Reducer> {
    /// [`Reducer::group`].
    fn group(&self, earlier: Option<R::Acc>, at: usize, first: usize) -> R::Acc;
    /// [`Reducer::leaf`], or [`Reducer::leaf_after`].
    fn leaf(&self, earlier: Option<R::Acc>, at: usize, len: usize, first: usize) -> R::Acc;
}

/// Values, and where to look ahead of the first.
struct Values<'a, T>(&'a [T], Option<Ahead>);

impl<R: Reducer> Leaves<R> for Values<'_, R::In> {
    #[inline(always)]
    fn group(&self, earlier: Option<R::Acc>, at: usize, first: usize) -> R::Acc {
        R::group(earlier, &self.0[at..at + GROUP], self.1.map(|from| from.after::<R::In>(at)), first)
    }
    #[inline(always)]
    fn leaf(&self, earlier: Option<R::Acc>, at: usize, len: usize, first: usize) -> R::Acc {
        let (values, ahead) = (&self.0[at..at + len], self.1.map(|from| from.after::<R::In>(at)));
        match earlier {
            Some(earlier) => R::leaf_after(earlier, values, ahead, first),
            None => R::leaf(values, ahead, first),
        }
    }
}

/// Products of the values of both, and where to look ahead of the first.
struct Products<'a, T>([&'a [T]; 2], Option<Ahead>);

impl<T: Value> Leaves<Sum<T>> for Products<'_, T> {
    #[inline(always)]
    fn group(&self, _earlier: Option<T>, at: usize, _first: usize) -> T {
        let mut parts = [T::NOTHING; TOGETHER];
        for (n, part) in parts.iter_mut().enumerate() {
            *part = self.leaf(None, at + n * LEAF, LEAF, 0);
        }
        merge_group::<Sum<T>>(parts)
    }
    #[inline(always)]
    fn leaf(&self, _earlier: Option<T>, at: usize, len: usize, _first: usize) -> T {
        let Products([a, b], ahead) = self;
        fold_products(&a[at..at + len], &b[at..at + len], ahead.map(|from| from.after::<T>(at)))
    }
}

struct RowsLoop<'a, R: Reducer, L> {
    leaves: L,
    /// Elements in all.
    count: usize,
    row: usize,
    /// Where the first of them is in its reduction.
    first: usize,
    tree: &'a mut Tree<R::Acc>,
    results: &'a mut [R::Out],
}

impl<R: Reducer, L: Leaves<R>> Loop for RowsLoop<'_, R, L> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let RowsLoop { leaves, count, row, first, tree, results } = self;
        let mut results = results.iter_mut();
        'rows: for start in (0..count).step_by(row.max(1)) {
            let (mut at, end) = (start, count.min(start + row));
            while end - at >= GROUP {
                tree.push_run(TOGETHER.ilog2(), leaves.group(tree.first().copied(), at, first + at - start), R::merge);
                at += GROUP;
            }
            while at < end {
                let len = LEAF.min(end - at);
                let leaf = leaves.leaf(tree.first().copied(), at, len, first + at - start);
                if len == row
                    && let Some(result) = results.next()
                {
                    *result = R::finish(leaf); // no tree for a single leaf
                    continue 'rows;
                }
                tree.push(leaf, R::merge);
                at += len;
            }
            if let Some(result) = results.next()
                && let Some(acc) = tree.take(R::merge)
            {
                *result = R::finish(acc);
            }
        }
    }
}

/// The next leaves of a tree, groups of them together: it holds a multiple of a group, unless these are fewer than one.
pub(super) fn push_leaves<R: Reducer>(tree: &mut Tree<R::Acc>, values: &[R::In], ahead: Option<Ahead>, first: usize) {
    let (leaves, count) = (Values(values, ahead), values.len());
    dispatch(RowsLoop::<R, _> { leaves, count, row: count, first, tree, results: &mut [] });
}

/// Reduces rows of this length each that lie one after the other.
pub(super) fn reduce_rows<R: Reducer>(values: &[R::In], row: usize, ahead: Option<Ahead>, results: &mut [R::Out]) {
    let (leaves, count, tree) = (Values(values, ahead), values.len(), &mut Tree::new());
    dispatch(RowsLoop::<R, _> { leaves, count, row, first: 0, tree, results });
}

/// [`push_leaves`] of products of as many values of both, or, where there are results, [`reduce_rows`] of them.
fn sum_products<T: Value>(tree: &mut Tree<T>, factors: [&[T]; 2], row: usize, ahead: Option<Ahead>, results: &mut [T]) {
    let count = factors[0].len().min(factors[1].len());
    dispatch(RowsLoop::<Sum<T>, _> { leaves: Products(factors, ahead), count, row, first: 0, tree, results });
}

struct ColumnsLoop<'a, R: Reducer> {
    acc: &'a mut [R::Acc],
    rows: &'a [&'a [R::In]],
    /// Where the first of them is in its reduction.
    first: usize,
    begin: bool,
}

impl<R: Reducer> Loop for ColumnsLoop<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ColumnsLoop { acc, rows, first, begin } = self;
        let (fours, rest) = rows.as_chunks::<TOGETHER>();
        for (n, &four) in fours.iter().enumerate() {
            match begin && n == 0 {
                true => take_rows::<R, TOGETHER, true>(acc, four, first),
                false => take_rows::<R, TOGETHER, false>(acc, four, first + n * TOGETHER),
            }
        }
        for (n, &row) in (fours.len() * TOGETHER..).zip(rest) {
            match begin && n == 0 {
                true => take_rows::<R, 1, true>(acc, [row], first),
                false => take_rows::<R, 1, false>(acc, [row], first + n),
            }
        }
    }
}

/// Takes rows into accumulators, together, as each accumulator is written so often; the first is the `first`th of its reduction.
#[inline(always)]
fn take_rows<R: Reducer, const N: usize, const BEGIN: bool>(acc: &mut [R::Acc], mut rows: [&[R::In]; N], first: usize) {
    for row in &mut rows {
        *row = &row[..acc.len()];
    }
    for (i, acc) in acc.iter_mut().enumerate() {
        let mut merged = *acc;
        for (n, row) in rows.iter().enumerate() {
            let value = R::start(row[i], first + n);
            merged = if BEGIN && n == 0 { value } else { R::merge(merged, value) };
        }
        *acc = merged;
    }
}

struct MergeLoop<'a, R: Reducer>(&'a mut [R::Acc], &'a [R::Acc]);

impl<R: Reducer> Loop for MergeLoop<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (a, &b) in self.0.iter_mut().zip(self.1) {
            *a = R::merge(*a, b);
        }
    }
}

/// Takes one more element into each of as many reductions from each of several rows, the first of which is the `first`th, and may `begin`
/// the reductions.
pub(super) fn reduce_columns<R: Reducer>(acc: &mut Vec<R::Acc>, rows: &[&[R::In]], first: usize, begin: bool) {
    if begin
        && let Some(&row) = rows.first()
        && row.len() > acc.len()
    {
        acc.resize(row.len(), R::start(row[0], first));
    }
    dispatch(ColumnsLoop::<R> { acc, rows, first, begin });
}

/// Merges as many pairs of partial results, `acc`'s first.
pub(crate) fn merge_each<R: Reducer>(acc: &mut [R::Acc], later: &[R::Acc]) {
    dispatch(MergeLoop::<R>(acc, later));
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
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $merge:expr, $identity:expr, {$($more:item)*};)*) => {$(
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
            fn finish(acc: T) -> T { acc }
            $($more)*
        }
        impl<T: Value> Identity for $name<T> {
            const IDENTITY: T = $identity;
        }
    )*};
}
folds! {
    /// Sum; of bool, "any".
    Sum: |a, b| a.plus(b), T::ZERO, {
        const OF_PRODUCTS: Option<OfProducts<Self>> = Some(sum_products);
    };
    /// Product; of bool, "all".
    Prod: |a, b| a.times(b), T::ONE, {};
    /// Smallest; the first NaN if there is one.
    Min: |a, b| if b.at_least(a) | a.not_a_number() { a } else { b }, T::HIGHEST, {
        #[inline(always)]
        fn leaf(values: &[T], ahead: Option<Ahead>, _first: usize) -> T {
            extreme::<Self>(values, fold(values, ahead, |v| v, T::smaller))
        }
    };
    /// Largest; the first NaN if there is one.
    Max: |a, b| if a.at_least(b) | a.not_a_number() { a } else { b }, T::LOWEST, {
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
