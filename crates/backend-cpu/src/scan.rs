//! Scan: the prologue is evaluated into the output, which is then summed up in place: along contiguous rows, or row upon row
//! where the axis is not the last.
//!
//! A long row is cut into blocks of a fixed length, so the order of combination, and with it every bit, is the same on any
//! number of threads.

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::Op;
use cuprum_core::ops::scan::{CUMPROD, CUMSUM};
use cuprum_core::{Call, Complex, Element, Outcome, Result, Work, bf16, decline, f16, with_dtype};
use smallvec::SmallVec;

use crate::raw::{ElementsMut, Output, column_blocks};
use crate::threads;
use crate::tile::{Compiled, Evaluator, Nest};

/// Elements of a row that one thread sums up in one go.
const BLOCK: usize = 1 << 15;
/// Columns that one thread takes where the axis is not the last: a few cache lines.
const COLUMNS: usize = 1 << 10;

/// The Scan kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let Work::Scan { program, plan } = &call.work else { decline!("not a scan") };
    let Some(combine) = Combine::of(call.op) else { decline!("{} is not a running sum or product", call.op.name()) };
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
    let compiled = match Compiled::new(program, Nest::new(&dims, call.inputs, strides)?, true) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut output = Output::allocate(call, 0)?;
    evaluate(&compiled, output.elements()?);
    let inner = if plan.len == 1 { 1 } else { inner };
    with_dtype!(call.outputs[0].dtype, T => scan::<T>(output.elements()?.typed(), plan.len, inner, combine));
    call.done([output.finish()])
}

/// The prologue at every point, in the output's order.
fn evaluate(compiled: &Compiled, mut out: ElementsMut) {
    let (size, tile) = (out.len(), compiled.tile());
    let cost = size.saturating_mul(compiled.cost());
    let chunk = size.div_ceil(threads::worth(cost) * 4).next_multiple_of(tile);
    threads::for_each(
        out.reborrow().chunks(chunk).into_iter().enumerate(),
        cost,
        || Evaluator::new(compiled),
        |evaluator, (i, mut run)| {
            for at in (0..run.len()).step_by(tile) {
                let len = tile.min(run.len() - at);
                let mut part: SmallVec<[ElementsMut; 1]> = SmallVec::new();
                part.push(run.slice(at, len));
                evaluator.write(i * chunk + at, len, &mut part);
            }
        },
    );
}

/// What neighbours are combined with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    Sum,
    Product,
}

impl Combine {
    fn of(op: Op) -> Option<Combine> {
        [(CUMSUM, Combine::Sum), (CUMPROD, Combine::Product)].into_iter().find(|(o, _)| *o == op).map(|(_, c)| c)
    }
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
            fn total(self) -> $total { let f: fn($t) -> $total = $in; f(self) }
            fn element(total: $total) -> $t { let f: fn($total) -> $t = $out; f(total) }
            fn sum($a: $total, $b: $total) -> $total { $sum }
            fn product($a: $total, $b: $total) -> $total { $product }
        }
    )*};
    (ints $($t:ty)*) => { running! { $($t as $t: a, b => a.wrapping_add(b), a.wrapping_mul(b), |x| x, |x| x;)* } };
}
running! { ints i8 i16 i32 i64 u8 u16 u32 u64 }
running! {
    bool as bool: a, b => a | b, a & b, |x| x, |x| x;
    f32 as f64: a, b => a + b, a * b, |x| x as f64, |x| x as f32;
    f64 as f64: a, b => a + b, a * b, |x| x, |x| x;
    f16 as f32: a, b => a + b, a * b, f16::to_f32, f16::from_f32;
    bf16 as f32: a, b => a + b, a * b, bf16::to_f32, bf16::from_f32;
    Complex<f32> as Complex<f64>: a, b => a + b, a * b, |z| Complex::new(z.re as f64, z.im as f64), |z| Complex::new(z.re as f32, z.im as f32);
    Complex<f64> as Complex<f64>: a, b => a + b, a * b, |x| x, |x| x;
}

/// Scans `values` in place: stretches of `len` rows of `inner` elements, each element over those above it.
fn scan<T: Running>(values: &mut [T], len: usize, inner: usize, combine: Combine) {
    let f = match combine {
        Combine::Sum => T::sum,
        Combine::Product => T::product,
    };
    let cost = values.len();
    if inner == 1 {
        let rows = values.len() / len.max(1);
        if len > 2 * BLOCK && rows < 64 {
            values.chunks_mut(len).for_each(|row| long_row(row, f));
        } else {
            let per_task = (BLOCK / len).max(1) * len;
            threads::for_each(
                values.chunks_mut(per_task),
                cost,
                || (),
                |_, part| {
                    part.chunks_mut(len).for_each(|row| {
                        from_here(row, None, f);
                    });
                },
            );
        }
        return;
    }
    let blocks: Vec<_> = values.chunks_mut(len * inner).flat_map(|stretch| column_blocks(stretch, inner, COLUMNS)).collect();
    threads::for_each(
        blocks.into_iter(),
        cost,
        || (),
        |_, mut block| {
            // Totals beside the output, so that the 16-bit floats are not rounded at every step.
            let mut totals: Vec<T::Total> = block.row(0).iter().map(|v| v.total()).collect();
            for row in 1..len {
                for (total, v) in totals.iter_mut().zip(block.row(row)) {
                    *total = f(*total, v.total());
                    *v = T::element(*total);
                }
            }
        },
    );
}

/// Scans a run that continues from `carry`; returns its last total.
fn from_here<T: Running>(run: &mut [T], carry: Option<T::Total>, f: fn(T::Total, T::Total) -> T::Total) -> Option<T::Total> {
    run.iter_mut().fold(carry, |carry, v| {
        let total = carry.map_or(v.total(), |c| f(c, v.total()));
        *v = T::element(total);
        Some(total)
    })
}

/// One long row: totals of its blocks, running totals of those, then every block from its carry.
fn long_row<T: Running>(row: &mut [T], f: fn(T::Total, T::Total) -> T::Total) {
    let cost = row.len();
    let totals = threads::map(row.chunks(BLOCK), cost, || (), |_, block| block.iter().map(|v| v.total()).reduce(f));
    let mut carry = None;
    let carries: Vec<Option<T::Total>> = totals
        .into_iter()
        .map(|total| {
            let before = carry;
            carry = match (carry, total) {
                (Some(c), Some(t)) => Some(f(c, t)),
                (c, t) => c.or(t),
            };
            before
        })
        .collect();
    let blocks: Vec<_> = row.chunks_mut(BLOCK).zip(carries).collect();
    threads::for_each(
        blocks.into_iter(),
        cost,
        || (),
        |_, (block, carry)| {
            from_here(block, carry, f);
        },
    );
}
