//! Kernel of the family `Histogram`: counts of values per bin, or sums of their weights.
//!
//! Each tile (a block of values in cache) becomes a tile of bin numbers, which are then counted. Threads count separately. Sums of
//! weights are split at indices that depend only on sizes and merged in order, so they do not depend on the number of threads.

use cuprum_core::call;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, HostVec, Output};
use cuprum_cpu_sort::sorted_search;
use std::ops::{Add, Mul, Sub};

use cuprum_core::{Binning, Call, DType, Element, Outcome, Result, Work, decline};

use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, MAX_TILE_LEN, ResultDestination};

/// Minimum number of values per task.
const MIN_VALUES_PER_TASK: usize = 1 << 16;
/// Minimum ratio of the values of a task to the number of bins. With fewer values, merging the task's counters would take longer than
/// counting.
const MIN_TASK_VALUES_PER_BIN: usize = 4;
/// Maximum number of bins for which a single task counts in counters of its own. With more bins, a single task counts directly into the
/// result.
const MAX_BINS_FOR_SINGLE_TASK_COUNTERS: usize = 1 << 12;
/// Maximum number of tasks of a sum of weights.
const MAX_WEIGHT_SUM_TASKS: usize = 64;
/// Number of counters per bin. Several counters shorten the dependency chain between increments.
const COUNTERS_PER_BIN: usize = 4;
/// Approximate cost of counting one value, in elementary operations.
const COST_PER_VALUE: usize = 4;

/// Computes the outputs of `call`, a histogram.
pub(crate) fn compute_histogram(call: &Call) -> Result<Outcome> {
    let Work::Histogram(call::Histogram { program, binning }) = &call.work else { decline!("not a histogram") };
    let (values, last) = call.program_inputs();
    let last = last.map(Elements::from_contiguous_array).transpose()?;
    let size = values.first().map_or(1, |v| v.layout().size());
    let nest = LoopNest::new(&[size], values, |k| values[k].layout().strides().into())?;
    let compiled = match CompiledProgram::new(program, nest, ResultDestination::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let bins = call.outputs[0].layout.size();
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements_mut()?;
    match (binning, last) {
        (Binning::Number { weighted: false }, None) => count_values_per_bin(&compiled, size, IdentityBinRule(bins), out.typed_slice())?,
        (Binning::Number { weighted: true }, Some(weights)) => sum_weights_per_bin(&compiled, weights.typed_slice(), out.typed_slice())?,
        (Binning::Edges { even }, Some(edges)) => match edges.dtype() {
            DType::F32 => count_between_edges::<f32>(&compiled, size, edges.typed_slice(), *even, out.typed_slice())?,
            DType::F64 => count_between_edges::<f64>(&compiled, size, edges.typed_slice(), *even, out.typed_slice())?,
            _ => decline!("edges that are neither float32 nor float64"),
        },
        _ => decline!("bins without edges or weights"),
    }
    call.outcome_from_buffers([output.into_buffer()])
}

/// A rule that maps each value to the number of its bin.
trait BinRule: Sync {
    /// Type of the values.
    type Value: Element;
    /// Writes the bin number of each value to `bins`, or the number of bins for a value outside all bins.
    fn find_bins(&self, values: &[Self::Value], bins: &mut [i64]);
}

/// The rule for values that are bin numbers themselves. Holds the number of bins.
struct IdentityBinRule(usize);

impl BinRule for IdentityBinRule {
    type Value = i64;
    fn find_bins(&self, values: &[i64], bins: &mut [i64]) {
        let outside = self.0 as u64;
        bins.iter_mut().zip(values).for_each(|(bin, &v)| *bin = (v as u64).min(outside) as i64);
    }
}

/// Writes to `out` the number of values in each bin.
fn count_values_per_bin<B: BinRule>(compiled: &CompiledProgram, size: usize, bins: B, out: &mut [i64]) -> Result<()> {
    let cost = size.saturating_mul(compiled.cost_per_element() + COST_PER_VALUE);
    // The counters have 32 bits, which limits the values per task.
    let chunk = size
        .div_ceil(threads::threads_for_cost(cost))
        .max(MIN_VALUES_PER_TASK)
        .max(MIN_TASK_VALUES_PER_BIN.saturating_mul(out.len()))
        .min(u32::MAX as usize);
    let tile = compiled.tile_len();
    out.fill(0);
    if size <= chunk && out.len() > MAX_BINS_FOR_SINGLE_TASK_COUNTERS {
        let (mut evaluator, mut found) = (Evaluator::new(compiled), [0; MAX_TILE_LEN]);
        for start in (0..size).step_by(tile) {
            let found = &mut found[..tile.min(size - start)];
            bins.find_bins(evaluator.evaluate(start, found.len()).typed_slice(), found);
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
            let mut counters = HostVec::<[u32; COUNTERS_PER_BIN]>::allocate(out.len() + 1)?;
            let counts = counters.as_mut_slice();
            counts.fill([0; COUNTERS_PER_BIN]);
            let mut found = [0; MAX_TILE_LEN];
            for start in (start..end).step_by(tile) {
                let found = &mut found[..tile.min(end - start)];
                bins.find_bins(evaluator.evaluate(start, found.len()).typed_slice(), found);
                let mut add = |bin: i64, set: usize| {
                    if let Some(count) = counts.get_mut(bin as usize) {
                        count[set] += 1;
                    }
                };
                let (fours, rest) = found.as_chunks::<COUNTERS_PER_BIN>();
                fours.iter().for_each(|four| (0..COUNTERS_PER_BIN).for_each(|set| add(four[set], set)));
                rest.iter().for_each(|&bin| add(bin, 0));
            }
            Ok(counters)
        },
    )?;
    for counts in counts {
        out.iter_mut().zip(counts?.as_mut_slice()).for_each(|(out, sets)| *out += sets.iter().map(|&n| n as i64).sum::<i64>());
    }
    Ok(())
}

/// Writes to `out` the sum of the weights in each bin. The values of the program `compiled` are bin numbers.
fn sum_weights_per_bin(compiled: &CompiledProgram, weights: &[f64], out: &mut [f64]) -> Result<()> {
    let size = weights.len();
    let tile = compiled.tile_len();
    let chunk = MIN_VALUES_PER_TASK.max(MIN_TASK_VALUES_PER_BIN.saturating_mul(out.len())).max(size.div_ceil(MAX_WEIGHT_SUM_TASKS));
    out.fill(0.0);
    if size <= chunk && out.len() > MAX_BINS_FOR_SINGLE_TASK_COUNTERS {
        add_weights_to_bins(&mut Evaluator::new(compiled), tile, 0, weights, out);
        return Ok(());
    }
    let chunk = chunk.next_multiple_of(tile);
    let sums = threads::map(
        (0..size).step_by(chunk),
        size.saturating_mul(compiled.cost_per_element() + COST_PER_VALUE),
        || Evaluator::new(compiled),
        |evaluator, start| {
            let mut sums = HostVec::<f64>::allocate(out.len())?;
            sums.as_mut_slice().fill(0.0);
            add_weights_to_bins(evaluator, tile, start, &weights[start..size.min(start + chunk)], sums.as_mut_slice());
            Ok(sums)
        },
    )?;
    for sums in sums {
        out.iter_mut().zip(sums?.as_mut_slice()).for_each(|(out, sum)| *out += *sum);
    }
    Ok(())
}

/// For each weight, finds the bin of the weight's value and adds the weight to the element of `sums` for that bin. The first weight belongs
/// to value number `start`.
fn add_weights_to_bins(evaluator: &mut Evaluator, tile: usize, start: usize, weights: &[f64], sums: &mut [f64]) {
    for (i, weights) in weights.chunks(tile).enumerate() {
        let numbers = evaluator.evaluate(start + i * tile, weights.len()).typed_slice::<i64>();
        for (&number, weight) in numbers.iter().zip(weights) {
            if let Some(sum) = sums.get_mut(number as usize) {
                *sum += weight;
            }
        }
    }
}

/// Writes to `out` the number of values between consecutive `edges`. `even` is whether the bins have equal width.
fn count_between_edges<T: EvenBinFloat>(compiled: &CompiledProgram, size: usize, edges: &[T], even: bool, out: &mut [i64]) -> Result<()> {
    match EvenBinRule::from_edges(edges).filter(|_| even) {
        Some(bins) => count_values_per_bin(compiled, size, bins, out),
        None => count_values_per_bin(compiled, size, UnevenBinRule(edges), out),
    }
}

/// The rule for bins between arbitrary edges: binary search.
struct UnevenBinRule<'a, T>(&'a [T]);

impl<T: EvenBinFloat> BinRule for UnevenBinRule<'_, T> {
    type Value = T;
    fn find_bins(&self, values: &[T], bins: &mut [i64]) {
        let Some((&last, left)) = self.0.split_last() else { return };
        sorted_search::insertion_indices(left, values, |edge, v| edge <= v, |v| v, bins);
        for (bin, &v) in bins.iter_mut().zip(values) {
            *bin = if *bin > 0 && v <= last { *bin - 1 } else { left.len() as i64 };
        }
    }
}

/// Float types of values that [`EvenBinRule`] maps to bins.
trait EvenBinFloat: Element + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Distance from 1 to the next number of the type.
    const EPSILON: Self;
    /// The smallest power of two from which on all numbers of the type are integers. Adding it to a smaller number rounds that number to an
    /// integer.
    const ROUNDING_OFFSET: Self;
    fn of(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn abs(self) -> Self;
    /// Returns `self - ROUNDING_OFFSET` as an integer. `self` is between [`EvenBinFloat::ROUNDING_OFFSET`] and twice this offset.
    fn remove_rounding_offset(self) -> i64;
}
macro_rules! float {
    ($($t:ident $whole:literal)*) => {$(
        impl EvenBinFloat for $t {
            const EPSILON: $t = $t::EPSILON;
            const ROUNDING_OFFSET: $t = (1u64 << $whole) as $t;
            fn of(x: f64) -> $t { x as $t }
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn abs(self) -> $t { $t::abs(self) }
            #[inline(always)]
            fn remove_rounding_offset(self) -> i64 { (self.to_bits() & ((1 << $whole) - 1)) as i64 }
        }
    )*};
}
float! { f32 23 f64 52 }

/// The rule for bins of equal width. The distance from the first edge gives the bin. Near an edge, rounding errors may give a neighbouring
/// bin, so such values are compared with the edges.
struct EvenBinRule<'a, T> {
    edges: &'a [T],
    first: T,
    last: T,
    bins: T,
    /// Number of bins per unit of distance.
    scale: T,
    /// Distance to an edge, in bins, within which rounding errors may give a neighbouring bin.
    near: T,
}

/// Marks a value near an edge in place of its bin number, which [`EvenBinRule::find_bin_near_edge`] then computes.
const NEAR_EDGE_MARKER: i64 = -1;

impl<'a, T: EvenBinFloat> EvenBinRule<'a, T> {
    /// Returns the rule for `edges`, or `None` if rounding errors may exceed one bin.
    fn from_edges(edges: &'a [T]) -> Option<EvenBinRule<'a, T>> {
        let (&first, &last) = (edges.first()?, edges.last()?);
        let bins = (edges.len() - 1) as f64;
        let (low, high, epsilon) = (first.to_f64(), last.to_f64(), T::EPSILON.to_f64());
        let scale = bins / (high - low);
        // An upper bound, in bins, of the rounding errors of the edges, of the difference `value - first`, of `scale` and of their product.
        let near = epsilon * (4.0 * bins + 4.0 * low.abs().max(high.abs()) * scale);
        let bounded = bins < T::ROUNDING_OFFSET.to_f64() / 4.0
            && near < 0.25
            && T::of(high - low).to_f64().is_finite()
            && T::of(scale).to_f64() > 0.0;
        bounded.then(|| EvenBinRule { edges, first, last, bins: T::of(bins), scale: T::of(scale), near: T::of(near) })
    }

    /// Returns the bin of `value`, which is near the lower edge of bin `nearest`.
    fn find_bin_near_edge(&self, value: T, nearest: usize) -> usize {
        let last_bin = self.edges.len() - 2;
        let guess = nearest.min(last_bin);
        let guess = if value < self.edges[guess] { guess.saturating_sub(1) } else { guess };
        if self.edges[guess] <= value && (value < self.edges[guess + 1] || guess == last_bin) {
            return guess;
        }
        self.edges[..=last_bin].partition_point(|edge| *edge <= value).saturating_sub(1)
    }

    /// Returns the distance of `value` from the first edge, in bins. Also returns that distance rounded to an integer, plus
    /// [`EvenBinFloat::ROUNDING_OFFSET`].
    #[inline(always)]
    fn distance_from_first_edge_in_bins(&self, value: T) -> (T, T) {
        let place = (value - self.first) * self.scale;
        (place, place + T::ROUNDING_OFFSET)
    }
}

/// Loop that computes bin numbers, with [`NEAR_EDGE_MARKER`] for values near an edge. Returns whether there are such values.
struct EvenBinRuleLoop<'a, T>(&'a EvenBinRule<'a, T>, &'a [T], &'a mut [i64]);

impl<T: EvenBinFloat> SimdLoop for EvenBinRuleLoop<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let EvenBinRuleLoop(even, values, bins) = self;
        let outside = even.bins.to_f64() as i64;
        let mut all = 0;
        for (bin, &value) in bins.iter_mut().zip(values) {
            let (place, nearest) = even.distance_from_first_edge_in_bins(value);
            let edge = nearest - T::ROUNDING_OFFSET;
            let found = nearest.remove_rounding_offset() - (place < edge) as i64;
            let found = if (place - edge).abs() <= even.near { NEAR_EDGE_MARKER } else { found };
            *bin = if value >= even.first && value <= even.last { found } else { outside };
            all |= *bin;
        }
        all < 0
    }
}

impl<T: EvenBinFloat> BinRule for EvenBinRule<'_, T> {
    type Value = T;
    fn find_bins(&self, values: &[T], bins: &mut [i64]) {
        if dispatch_simd(EvenBinRuleLoop(self, values, bins)) {
            for (bin, &value) in bins.iter_mut().zip(values).filter(|(bin, _)| **bin == NEAR_EDGE_MARKER) {
                *bin =
                    self.find_bin_near_edge(value, self.distance_from_first_edge_in_bins(value).1.remove_rounding_offset() as usize) as i64;
            }
        }
    }
}
