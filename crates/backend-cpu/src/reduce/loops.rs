//! What goes over memory, at the best SIMD level: rows, columns, and lines beside a vector.

use super::lanes::{GROUP, LANES, LEAF, TOGETHER, across, add_products, fold_products, merge_group};
use super::ops::{Reducer, Sum, Value};
use super::tree::Tree;
use crate::cache::{Ahead, gains_by_asking, prefetch_behind};
use crate::simd::{Loop, dispatch};

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
        // From 0.0, as `Sum::finish`.
        plus_each(tree.take(plus_each).unwrap_or([T::ZERO; N]), [T::ZERO; N])
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

/// Scalar products of lines with a vector of the same length, to the same bits as the reductions of their products.
pub(crate) fn scalar_products<T: Value, const N: usize>(lines: [&[T]; N], vector: &[T]) -> [T; N] {
    dispatch(LinesLoop(lines, vector))
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

/// Rows of one length, or what is next of a single one, by a tree of their own: each result empties it, and what is pushed without one stays.
struct RowsLoop<'a, R: Reducer, L> {
    leaves: L,
    /// Elements in all.
    count: usize,
    /// Elements of a row.
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
pub(super) fn sum_products<T: Value>(tree: &mut Tree<T>, factors: [&[T]; 2], row: usize, ahead: Option<Ahead>, results: &mut [T]) {
    let count = factors[0].len().min(factors[1].len());
    dispatch(RowsLoop::<Sum<T>, _> { leaves: Products(factors, ahead), count, row, first: 0, tree, results });
}

/// Rows whose every element goes to a reduction of its own.
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
    // What is begun in a spare one overwrites what it holds.
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
