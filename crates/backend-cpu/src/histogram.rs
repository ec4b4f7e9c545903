//! Histogram: how many values fall in each bin, or the sums of their weights.
//!
//! A tile of values becomes a tile of bin numbers, which are then counted. Every thread has counters of its own; sums of weights
//! are cut at places fixed by sizes alone and merged in order, so that they do not depend on the number of threads.

use cuprum_core::call;
use std::ops::{Add, Mul, Sub};

use cuprum_core::array::Array;
use cuprum_core::{Binning, Call, DType, Element, Outcome, Result, Work, decline};

use crate::raw::{Elements, Output, Room};
use crate::search;
use crate::simd::{Loop, dispatch};
use crate::threads;
use crate::tile::{Compiled, Evaluator, MAX_TILE, Nest, Results};

/// Fewest points of a task.
const CHUNK: usize = 1 << 16;
/// Points of a task for each bin, at the least.
const PER_BIN: usize = 4;
/// Bins from which one task counts into the result itself: counters of its own would cost more memory than the result.
const MANY: usize = 1 << 12;
/// Most tasks of a sum of weights.
const SUMS: usize = 64;
/// Counters of a bin, as an increment waits for the one before of the same counter.
const SETS: usize = 4;
/// Cheap operations that a point costs, about.
const COST: usize = 4;

/// The Histogram kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let Work::Histogram(call::Histogram { program, binning }) = &call.work else { decline!("not a histogram") };
    let (values, last) = call.program_inputs();
    let last = last.map(Elements::contiguous).transpose()?;
    let size = values.first().map_or(1, |v| v.layout().size());
    let nest = Nest::new(&[size], values, |k| values[k].layout().strides().into())?;
    let compiled = match Compiled::new(program, nest, Results::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let bins = call.outputs[0].layout.size();
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements()?;
    match (binning, last) {
        (Binning::Number { weighted: false }, None) => count(&compiled, size, Numbers(bins), out.typed())?,
        (Binning::Number { weighted: true }, Some(weights)) => sum(&compiled, weights.typed(), out.typed())?,
        (Binning::Edges { even }, Some(edges)) => match edges.dtype() {
            DType::F32 => between::<f32>(&compiled, size, edges.typed(), *even, out.typed())?,
            DType::F64 => between::<f64>(&compiled, size, edges.typed(), *even, out.typed())?,
            _ => decline!("edges that are neither float32 nor float64"),
        },
        _ => decline!("bins without edges or weights"),
    }
    call.done([output.finish()])
}

/// What makes bin numbers of values.
trait Bins: Sync {
    /// The values' type.
    type Value: Element;
    /// Writes the bin of each value; the number of bins for those outside.
    fn find(&self, values: &[Self::Value], bins: &mut [i64]);
}

/// Values that are bin numbers.
struct Numbers(usize);

impl Bins for Numbers {
    type Value = i64;
    fn find(&self, values: &[i64], bins: &mut [i64]) {
        let outside = self.0 as u64;
        bins.iter_mut().zip(values).for_each(|(bin, &v)| *bin = (v as u64).min(outside) as i64);
    }
}

/// Counts the values in each bin.
fn count<B: Bins>(compiled: &Compiled, size: usize, bins: B, out: &mut [i64]) -> Result<()> {
    let cost = size.saturating_mul(compiled.cost() + COST);
    // Counters are of 32 bits.
    let chunk = size.div_ceil(threads::worth(cost)).max(CHUNK).max(PER_BIN.saturating_mul(out.len())).min(u32::MAX as usize);
    let tile = compiled.tile();
    out.fill(0);
    if size <= chunk && out.len() > MANY {
        let (mut evaluator, mut found) = (Evaluator::new(compiled), [0; MAX_TILE]);
        for start in (0..size).step_by(tile) {
            let found = &mut found[..tile.min(size - start)];
            bins.find(evaluator.read(start, found.len()).typed(), found);
            found.iter().for_each(|&bin| out.get_mut(bin as usize).into_iter().for_each(|count| *count += 1));
        }
        return Ok(());
    }
    let counts = threads::map(
        (0..size).step_by(chunk.next_multiple_of(tile)),
        cost,
        || Evaluator::new(compiled),
        |evaluator, start| {
            let end = size.min(start + chunk.next_multiple_of(tile));
            let mut room = Room::<[u32; SETS]>::new(out.len() + 1)?;
            let counts = room.records();
            counts.fill([0; SETS]);
            let mut found = [0; MAX_TILE];
            for start in (start..end).step_by(tile) {
                let found = &mut found[..tile.min(end - start)];
                bins.find(evaluator.read(start, found.len()).typed(), found);
                let mut add = |bin: i64, set: usize| {
                    if let Some(count) = counts.get_mut(bin as usize) {
                        count[set] += 1;
                    }
                };
                let (fours, rest) = found.as_chunks::<SETS>();
                fours.iter().for_each(|four| (0..SETS).for_each(|set| add(four[set], set)));
                rest.iter().for_each(|&bin| add(bin, 0));
            }
            Ok(room)
        },
    )?;
    for counts in counts {
        out.iter_mut().zip(counts?.records()).for_each(|(out, sets)| *out += sets.iter().map(|&n| n as i64).sum::<i64>());
    }
    Ok(())
}

/// Adds up the weights of the values, which are bin numbers, in each bin.
fn sum(compiled: &Compiled, weights: &[f64], out: &mut [f64]) -> Result<()> {
    let size = weights.len();
    let tile = compiled.tile();
    let chunk = CHUNK.max(PER_BIN.saturating_mul(out.len())).max(size.div_ceil(SUMS));
    out.fill(0.0);
    if size <= chunk && out.len() > MANY {
        add_weights(&mut Evaluator::new(compiled), tile, 0, weights, out);
        return Ok(());
    }
    let chunk = chunk.next_multiple_of(tile);
    let sums = threads::map(
        (0..size).step_by(chunk),
        size.saturating_mul(compiled.cost() + COST),
        || Evaluator::new(compiled),
        |evaluator, start| {
            let mut sums = Room::<f64>::new(out.len())?;
            sums.records().fill(0.0);
            add_weights(evaluator, tile, start, &weights[start..size.min(start + chunk)], sums.records());
            Ok(sums)
        },
    )?;
    for sums in sums {
        out.iter_mut().zip(sums?.records()).for_each(|(out, sum)| *out += *sum);
    }
    Ok(())
}

/// Adds weights to the bins that the values from `start` on name.
fn add_weights(evaluator: &mut Evaluator, tile: usize, start: usize, weights: &[f64], sums: &mut [f64]) {
    for (i, weights) in weights.chunks(tile).enumerate() {
        let numbers = evaluator.read(start + i * tile, weights.len()).typed::<i64>();
        for (&number, weight) in numbers.iter().zip(weights) {
            if let Some(sum) = sums.get_mut(number as usize) {
                *sum += weight;
            }
        }
    }
}

/// Counts the values between edges.
fn between<T: Float>(compiled: &Compiled, size: usize, edges: &[T], even: bool, out: &mut [i64]) -> Result<()> {
    match Even::new(edges).filter(|_| even) {
        Some(bins) => count(compiled, size, bins, out),
        None => count(compiled, size, Uneven(edges), out),
    }
}

/// Bins between any edges.
struct Uneven<'a, T>(&'a [T]);

impl<T: Float> Bins for Uneven<'_, T> {
    type Value = T;
    fn find(&self, values: &[T], bins: &mut [i64]) {
        let Some((&last, left)) = self.0.split_last() else { return };
        search::places(left, values, |edge, v| edge <= v, |v| v, bins);
        for (bin, &v) in bins.iter_mut().zip(values) {
            *bin = if *bin > 0 && v <= last { *bin - 1 } else { left.len() as i64 };
        }
    }
}

/// A floating type, with what [`Even`] computes.
trait Float: Element + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// From it on, numbers are whole.
    const WHOLE: Self;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn abs(self) -> Self;
    /// How far a number from [`Float::WHOLE`] to its double is above it.
    fn above_whole(self) -> i64;
}
macro_rules! float {
    ($($t:ident $whole:literal)*) => {$(
        impl Float for $t {
            const EPSILON: $t = $t::EPSILON;
            const WHOLE: $t = (1u64 << $whole) as $t;
            fn of(x: f64) -> $t { x as $t }
            fn wide(self) -> f64 { self as f64 }
            #[inline(always)]
            fn abs(self) -> $t { $t::abs(self) }
            #[inline(always)]
            fn above_whole(self) -> i64 { (self.to_bits() & ((1 << $whole) - 1)) as i64 }
        }
    )*};
}
float! { f32 23 f64 52 }

/// Even bins: a value's bin follows from its distance to the first edge, unless it is so near to an edge that rounding may
/// decide; then the edges beside it are looked at.
struct Even<'a, T> {
    edges: &'a [T],
    first: T,
    last: T,
    bins: T,
    /// Bins per distance.
    scale: T,
    /// Distance to an edge, in bins, up to which rounding may decide.
    near: T,
}

/// Marks a value near to an edge, in place of its bin.
const NEAR: i64 = -1;

impl<'a, T: Float> Even<'a, T> {
    /// `None` where rounding decides about whole bins.
    fn new(edges: &'a [T]) -> Option<Even<'a, T>> {
        let (&first, &last) = (edges.first()?, edges.last()?);
        let bins = (edges.len() - 1) as f64;
        let (low, high, epsilon) = (first.wide(), last.wide(), T::EPSILON.wide());
        let scale = bins / (high - low);
        // Rounding of edges, of the difference, the factor and the product.
        let near = epsilon * (4.0 * bins + 4.0 * low.abs().max(high.abs()) * scale);
        let bounded = bins < T::WHOLE.wide() / 4.0 && near < 0.25 && T::of(high - low).wide().is_finite() && T::of(scale).wide() > 0.0;
        bounded.then(|| Even { edges, first, last, bins: T::of(bins), scale: T::of(scale), near: T::of(near) })
    }

    /// The bin of a value that is near to the lower edge of bin `beside`.
    fn decide(&self, value: T, beside: usize) -> usize {
        let last_bin = self.edges.len() - 2;
        let guess = beside.min(last_bin);
        let guess = if value < self.edges[guess] { guess.saturating_sub(1) } else { guess };
        if self.edges[guess] <= value && (value < self.edges[guess + 1] || guess == last_bin) {
            return guess;
        }
        self.edges[..=last_bin].partition_point(|edge| *edge <= value).saturating_sub(1)
    }

    /// A value's distance to the first edge in bins, and the nearest whole number with [`Float::WHOLE`] added.
    #[inline(always)]
    fn place(&self, value: T) -> (T, T) {
        let place = (value - self.first) * self.scale;
        (place, place + T::WHOLE)
    }
}

/// The bins of values, or [`NEAR`].
struct EvenLoop<'a, T>(&'a Even<'a, T>, &'a [T], &'a mut [i64]);

impl<T: Float> Loop for EvenLoop<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let EvenLoop(even, values, bins) = self;
        let outside = even.bins.wide() as i64;
        let mut all = 0;
        for (bin, &value) in bins.iter_mut().zip(values) {
            let (place, nearest) = even.place(value);
            let edge = nearest - T::WHOLE;
            let found = nearest.above_whole() - (place < edge) as i64;
            let found = if (place - edge).abs() <= even.near { NEAR } else { found };
            *bin = if value >= even.first && value <= even.last { found } else { outside };
            all |= *bin;
        }
        all < 0
    }
}

impl<T: Float> Bins for Even<'_, T> {
    type Value = T;
    fn find(&self, values: &[T], bins: &mut [i64]) {
        if dispatch(EvenLoop(self, values, bins)) {
            for (bin, &value) in bins.iter_mut().zip(values).filter(|(bin, _)| **bin == NEAR) {
                *bin = self.decide(value, self.place(value).1.above_whole() as usize) as i64;
            }
        }
    }
}
