//! Scan: running sums and products, computed with the prologue in one pass over the output.
//!
//! Along contiguous rows, runs of [`RUN`] elements are summed up side by side, then runs one after the other, then, in long
//! rows, blocks: every element is `carry of the block + (carry of the run + sum within the run)`. Where a row is cut depends
//! on its length alone, so every bit is the same on any number of threads; and as each level continues from the last
//! element before it, sums of positive numbers never decrease.

use std::marker::PhantomData;

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::Op;
use cuprum_core::ops::scan::{CUMPROD, CUMSUM};
use cuprum_core::{Call, Complex, Element, Outcome, Result, Work, bf16, decline, f16, with_dtype};

use crate::raw::{ElementsMut, Output, column_blocks};
use crate::simd::{Loop, dispatch};
use crate::threads;
use crate::tile::{Compiled, Evaluator, Nest, Results};

/// Elements that are summed up one after the other.
const RUN: usize = 64;
/// Runs that are summed up side by side, to keep additions in flight.
const SIDE_BY_SIDE: usize = 8;
/// Elements of a block of a long row.
const BLOCK: usize = 1 << 15;
/// Fewest columns that one thread takes where the axis is not the last: a few cache lines.
const COLUMNS: usize = 64;

/// The Scan kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let Work::Scan { program, plan } = &call.work else { decline!("not a scan") };
    let is_sum = call.op == CUMSUM;
    if !is_sum && call.op != CUMPROD {
        decline!("{} is not a running sum or product", Op::name(call.op));
    }
    // The loop in the output's order: lanes that lie outside the axis, the axis, lanes inside it.
    let inner = plan.out_axis_stride as usize;
    let Some(split) = (0..=plan.lanes.len()).rev().find(|&d| plan.lanes[d..].iter().product::<usize>() >= inner || plan.len == 1) else {
        decline!("lanes that do not follow the output")
    };
    let split = if plan.len == 1 { plan.lanes.len() } else { split };
    let dims: Dims = plan.lanes[..split].iter().chain([&plan.len]).chain(&plan.lanes[split..]).copied().collect();
    let strides = |k: usize| -> Strides {
        let lanes = &plan.lane_strides[k];
        lanes[..split].iter().chain([&plan.axis_strides[k]]).chain(&lanes[split..]).copied().collect()
    };
    let compiled = match Compiled::new(program, Nest::new(&dims, call.inputs, strides)?, Results::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements()?;
    let inner = if plan.len == 1 { 1 } else { inner };
    with_dtype!(call.outputs[0].dtype, T => match is_sum {
        true => scan::<T, Sum>(&compiled, elements, plan.len, inner),
        false => scan::<T, Product>(&compiled, elements, plan.len, inner),
    });
    call.done([output.finish()])
}

/// An element as running totals are kept: the 16-bit floats in float32, float32 in float64, so that long rows lose nothing.
trait Running: Element {
    type Total: Copy + Send + Sync;
    fn total(self) -> Self::Total;
    fn element(total: Self::Total) -> Self;
    fn sum(a: Self::Total, b: Self::Total) -> Self::Total;
    fn product(a: Self::Total, b: Self::Total) -> Self::Total;
}
macro_rules! running {
    ($($t:ty as $total:ty: $a:ident, $b:ident => $sum:expr, $product:expr, $in:expr, $out:expr;)*) => {$(
        impl Running for $t {
            type Total = $total;
            #[inline(always)]
            fn total(self) -> $total { let $a = self; $in }
            #[inline(always)]
            fn element($a: $total) -> $t { $out }
            #[inline(always)]
            fn sum($a: $total, $b: $total) -> $total { $sum }
            #[inline(always)]
            fn product($a: $total, $b: $total) -> $total { $product }
        }
    )*};
    (ints $($t:ty)*) => { running! { $($t as $t: a, b => a.wrapping_add(b), a.wrapping_mul(b), a, a;)* } };
}
running! { ints i8 i16 i32 i64 u8 u16 u32 u64 }
running! {
    bool as bool: a, b => a | b, a & b, a, a;
    f32 as f64: a, b => a + b, a * b, a as f64, a as f32;
    f64 as f64: a, b => a + b, a * b, a, a;
    f16 as f32: a, b => a + b, a * b, a.to_f32(), f16::from_f32(a);
    bf16 as f32: a, b => a + b, a * b, a.to_f32(), bf16::from_f32(a);
    Complex<f32> as Complex<f64>: a, b => a + b, a * b, Complex::new(a.re as f64, a.im as f64), Complex::new(a.re as f32, a.im as f32);
    Complex<f64> as Complex<f64>: a, b => a + b, a * b, a, a;
}

/// What neighbours are combined with.
trait Combine: 'static {
    fn join<T: Running>(a: T::Total, b: T::Total) -> T::Total;
    /// As [`Combine::join`], where there may be nothing before.
    #[inline(always)]
    fn after<T: Running>(carry: Option<T::Total>, b: T::Total) -> T::Total {
        match carry {
            Some(carry) => Self::join::<T>(carry, b),
            None => b,
        }
    }
}
struct Sum;
impl Combine for Sum {
    #[inline(always)]
    fn join<T: Running>(a: T::Total, b: T::Total) -> T::Total {
        T::sum(a, b)
    }
}
struct Product;
impl Combine for Product {
    #[inline(always)]
    fn join<T: Running>(a: T::Total, b: T::Total) -> T::Total {
        T::product(a, b)
    }
}

/// Scans stretches of `len` rows of `inner` elements, each element over those above it.
fn scan<T: Running, C: Combine>(compiled: &Compiled, out: ElementsMut, len: usize, inner: usize) {
    let out = out.typed::<T>();
    let cost = out.len().saturating_mul(compiled.cost() + 2);
    if inner > 1 {
        return columns::<T, C>(compiled, out, len, inner, cost);
    }
    let rows = out.len() / len;
    if len > 2 * BLOCK && rows < 64 {
        for (row, out) in out.chunks_mut(len).enumerate() {
            long_row::<T, C>(compiled, row * len, out, cost / rows);
        }
        return;
    }
    let per_task = (BLOCK / len).max(1) * len;
    threads::for_each(
        out.chunks_mut(per_task).enumerate(),
        cost,
        || Scanner::new(compiled),
        |scanner, (i, part)| {
            for (row, out) in part.chunks_mut(len).enumerate() {
                from_here::<T, C>(scanner, i * per_task + row * len, out, None);
            }
        },
    );
}

/// Sums of [`SIDE_BY_SIDE`] runs, each from the run's first element on.
type Sums<T> = [[<T as Running>::Total; RUN]; SIDE_BY_SIDE];

/// One thread's evaluator, with room for the sums within runs.
struct Scanner<'c, 'a, T: Running> {
    evaluator: Evaluator<'c, 'a>,
    tile: usize,
    sums: Box<Sums<T>>,
}

impl<'c, 'a, T: Running> Scanner<'c, 'a, T> {
    fn new(compiled: &'c Compiled<'a>) -> Scanner<'c, 'a, T> {
        let sums = Box::new([[T::default().total(); RUN]; SIDE_BY_SIDE]);
        Scanner { evaluator: Evaluator::new(compiled), tile: compiled.tile(), sums }
    }
}

/// Scans a run of points from `start` on, each combined with what was `carry`ed to the run; returns the run's own total.
fn from_here<T: Running, C: Combine>(scanner: &mut Scanner<T>, start: usize, out: &mut [T], carry: Option<T::Total>) -> Option<T::Total> {
    let mut before = None;
    for (i, out) in out.chunks_mut(scanner.tile).enumerate() {
        let values = scanner.evaluator.read(start + i * scanner.tile, out.len()).typed::<T>();
        for (values, out) in values.chunks(RUN * SIDE_BY_SIDE).zip(out.chunks_mut(RUN * SIDE_BY_SIDE)) {
            dispatch(Within::<T, C>(values, &mut scanner.sums, PhantomData));
            before = dispatch(Across::<T, C>(&scanner.sums, out, carry, before, PhantomData));
        }
    }
    before
}

/// The total of a run of points, added up as [`from_here`] does.
fn total<T: Running, C: Combine>(scanner: &mut Scanner<T>, start: usize, len: usize) -> Option<T::Total> {
    let mut before = None;
    for at in (0..len).step_by(scanner.tile) {
        let values = scanner.evaluator.read(start + at, scanner.tile.min(len - at)).typed::<T>();
        for values in values.chunks(RUN * SIDE_BY_SIDE) {
            dispatch(Within::<T, C>(values, &mut scanner.sums, PhantomData));
            for (run, sums) in values.chunks(RUN).zip(scanner.sums.iter()) {
                before = Some(C::after::<T>(before, sums[run.len() - 1]));
            }
        }
    }
    before
}

/// Sums within each of up to [`SIDE_BY_SIDE`] runs.
struct Within<'a, T: Running, C>(&'a [T], &'a mut Sums<T>, PhantomData<C>);

impl<T: Running, C: Combine> Loop for Within<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (runs, rest) = self.0.as_chunks::<RUN>();
        if runs.len() < SIDE_BY_SIDE || !rest.is_empty() {
            for (run, sums) in self.0.chunks(RUN).zip(self.1) {
                let mut running = None;
                for (v, sum) in run.iter().zip(sums) {
                    *sum = C::after::<T>(running, v.total());
                    running = Some(*sum);
                }
            }
            return;
        }
        let sums = self.1;
        let mut running = [runs[0][0].total(); SIDE_BY_SIDE];
        for r in 0..SIDE_BY_SIDE {
            running[r] = runs[r][0].total();
            sums[r][0] = running[r];
        }
        for i in 1..RUN {
            for r in 0..SIDE_BY_SIDE {
                running[r] = C::join::<T>(running[r], runs[r][i].total());
                sums[r][i] = running[r];
            }
        }
    }
}

/// Elements from the sums within runs, the carry of the block and the total of the block's runs before. Returns that total
/// with these runs.
struct Across<'a, T: Running, C>(&'a Sums<T>, &'a mut [T], Option<T::Total>, Option<T::Total>, PhantomData<C>);

impl<T: Running, C: Combine> Loop for Across<'_, T, C> {
    type Output = Option<T::Total>;
    #[inline(always)]
    fn run(self) -> Option<T::Total> {
        let Across(sums, out, carry, mut before, _) = self;
        for (out, sums) in out.chunks_mut(RUN).zip(sums) {
            match (carry, before) {
                (None, None) => put(out, sums, |s| s),
                (None, Some(b)) => put(out, sums, |s| C::join::<T>(b, s)),
                (Some(c), None) => put(out, sums, |s| C::join::<T>(c, s)),
                (Some(c), Some(b)) => put(out, sums, |s| C::join::<T>(c, C::join::<T>(b, s))),
            }
            before = Some(C::after::<T>(before, sums[out.len() - 1]));
        }
        before
    }
}

#[inline(always)]
fn put<T: Running>(out: &mut [T], sums: &[T::Total], make: impl Fn(T::Total) -> T::Total) {
    for (out, &sum) in out.iter_mut().zip(sums) {
        *out = T::element(make(sum));
    }
}

/// One long row: totals of its blocks, running totals of those, then every block from its carry. One thread goes through
/// the blocks once, to the same bits.
fn long_row<T: Running, C: Combine>(compiled: &Compiled, start: usize, out: &mut [T], cost: usize) {
    let join = |carry: Option<T::Total>, total: Option<T::Total>| match total {
        Some(total) => Some(C::after::<T>(carry, total)),
        None => carry,
    };
    if threads::worth(cost) == 1 {
        let mut scanner = Scanner::new(compiled);
        let mut carry = None;
        for (i, block) in out.chunks_mut(BLOCK).enumerate() {
            let total = from_here::<T, C>(&mut scanner, start + i * BLOCK, block, carry);
            carry = join(carry, total);
        }
        return;
    }
    let len = out.len();
    let totals = threads::map(
        (0..len.div_ceil(BLOCK)).map(|i| i * BLOCK),
        cost,
        || Scanner::new(compiled),
        |scanner, at| total::<T, C>(scanner, start + at, BLOCK.min(len - at)),
    );
    let mut carry = None;
    let carries = totals.into_iter().map(|total| {
        let next = join(carry, total);
        std::mem::replace(&mut carry, next)
    });
    let blocks: Vec<_> = out.chunks_mut(BLOCK).zip(carries).enumerate().collect();
    threads::for_each(
        blocks.into_iter(),
        cost,
        || Scanner::new(compiled),
        |scanner, (i, (block, carry))| {
            from_here::<T, C>(scanner, start + i * BLOCK, block, carry);
        },
    );
}

struct Down<'a, T: Running, C>(&'a mut [T::Total], &'a [T], &'a mut [T], PhantomData<C>);

impl<T: Running, C: Combine> Loop for Down<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((total, v), out) in self.0.iter_mut().zip(self.1).zip(self.2) {
            *total = C::join::<T>(*total, v.total());
            *out = T::element(*total);
        }
    }
}

/// The axis is not the last: row upon row, a block of columns at a time, totals beside the output so that the 16-bit floats
/// are not rounded at every step.
fn columns<T: Running, C: Combine>(compiled: &Compiled, out: &mut [T], len: usize, inner: usize, cost: usize) {
    let stretches = out.len() / (len * inner);
    let wanted = (threads::worth(cost) * 4).div_ceil(stretches);
    let width = inner.div_ceil(wanted).max(COLUMNS).min(compiled.tile()).min(inner);
    let blocks_across = inner.div_ceil(width);
    let blocks: Vec<_> = out.chunks_mut(len * inner).flat_map(|stretch| column_blocks(stretch, inner, width)).enumerate().collect();
    // Whole rows are evaluated several at a time, as many as a tile holds.
    let together = if width == inner { (compiled.tile() / width).max(1) } else { 1 };
    threads::for_each(
        blocks.into_iter(),
        cost,
        || (Evaluator::in_bands(compiled), Vec::<T::Total>::new()),
        |(evaluator, totals), (n, mut block)| {
            let (stretch, left) = (n / blocks_across, n % blocks_across * width);
            let width = width.min(inner - left);
            totals.clear();
            for row in (0..len).step_by(together) {
                let rows = together.min(len - row);
                let values = evaluator.read((stretch * len + row) * inner + left, rows * width).typed::<T>();
                for (i, values) in values.chunks_exact(width).enumerate() {
                    let out = block.row(row + i);
                    if totals.is_empty() {
                        totals.extend(values.iter().map(|v| v.total()));
                        out.copy_from_slice(values);
                    } else {
                        dispatch(Down::<T, C>(totals, values, out, PhantomData));
                    }
                }
            }
        },
    );
}
