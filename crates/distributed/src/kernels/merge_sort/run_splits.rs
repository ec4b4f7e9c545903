//! Search for the positions that divide several sorted runs as their merged result is divided.

use cuprum_core::Result;

/// Number of elements of each run that one round of the search samples, for all boundaries together.
const SAMPLES_PER_ROUND: usize = 1 << 14;
/// Minimum number of samples of each run for one boundary, for each run. One round reduces a range of candidates at least by this factor.
const MIN_SAMPLES_PER_RUN: usize = 16;

/// The elements `start`, `start + step`, ... before `end` of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledRange {
    pub start: usize,
    pub end: usize,
    pub step: usize,
}

impl SampledRange {
    /// Returns the number of sampled elements.
    pub fn count(&self) -> usize {
        (self.end - self.start).div_ceil(self.step)
    }
}

/// Returns the keys of sampled elements, by boundary and run.
pub(super) type SampleKeys<'a> = dyn FnMut(&[Vec<SampledRange>]) -> Result<Vec<Vec<Vec<u64>>>> + 'a;

/// Returns `splits[boundary][run]`, the number of elements of each sorted run among the first `starts[boundary]` elements of the merged
/// runs. Elements with equal keys are in the order of the runs.
///
/// `lengths` are the lengths of the runs. `sample(ranges)` returns the keys of the elements `ranges[boundary][run]`.
pub(super) fn find_splits(lengths: &[usize], starts: &[usize], sample: &mut SampleKeys) -> Result<Vec<Vec<usize>>> {
    let per_boundary = (SAMPLES_PER_ROUND / starts.len().max(1)).max(MIN_SAMPLES_PER_RUN * (lengths.len() + 1));
    let whole = || lengths.iter().map(|&length| SampledRange { start: 0, end: length, step: 1 }).collect();
    let mut candidates: Vec<Vec<SampledRange>> = starts.iter().map(|_| whole()).collect();
    while candidates.iter().flatten().any(|range| range.start < range.end) {
        for range in candidates.iter_mut().flatten() {
            range.step = (range.end - range.start).div_ceil(per_boundary).max(1);
        }
        let keys = sample(&candidates)?;
        for ((of_runs, keys), start) in candidates.iter_mut().zip(&keys).zip(starts) {
            *of_runs = narrow_ranges(of_runs, keys, *start);
        }
    }
    Ok(candidates.iter().map(|of_runs| of_runs.iter().map(|range| range.start).collect()).collect())
}

/// Returns the ranges that still contain the splits of the first `start` merged elements. `ranges` contain these splits (both ends
/// included), and `keys` are those of the sampled elements.
///
/// The number of elements that precede a sample in the merged runs has a lower and an upper bound, which follow from the samples of each
/// run. Positions outside `ranges` count as the nearest end of the range, which does not change the comparison with `start`.
fn narrow_ranges(ranges: &[SampledRange], keys: &[Vec<u64>], start: usize) -> Vec<SampledRange> {
    let preceding = |run: usize, sample: usize| {
        let (mut least, mut most) = (0, 0);
        for (other, (range, other_keys)) in ranges.iter().zip(keys).enumerate() {
            let precedes = |key: &u64| *key < keys[run][sample] || (*key == keys[run][sample] && other < run);
            let count = if other == run { sample } else { other_keys.partition_point(precedes) };
            let position = range.start + count * range.step;
            least += if other == run || count == 0 { position } else { position - range.step + 1 };
            most += if other == run { position } else { position.min(range.end) };
        }
        (least, most)
    };
    let narrow = |(run, range): (usize, &SampledRange)| {
        let position = |sample: usize| range.start + sample * range.step;
        let before = partition_point(range.count(), |sample| preceding(run, sample).1 < start);
        let not_after = partition_point(range.count(), |sample| preceding(run, sample).0 < start);
        let low = if before == 0 { range.start } else { position(before - 1) + 1 };
        let high = if not_after == range.count() { range.end } else { position(not_after) };
        SampledRange { start: low, end: high, step: 1 }
    };
    ranges.iter().enumerate().map(narrow).collect()
}

/// Returns the number of leading indices below `count` for which `is_before` is true. Once it is false, it stays false.
fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the splits of a complete merge.
    fn reference_splits(runs: &[Vec<u64>], starts: &[usize]) -> Vec<Vec<usize>> {
        let mut merged: Vec<(u64, usize)> =
            runs.iter().enumerate().flat_map(|(run, keys)| keys.iter().map(move |key| (*key, run))).collect();
        merged.sort_unstable();
        let of_boundary = |start: &usize| (0..runs.len()).map(|run| merged[..*start].iter().filter(|(_, of)| *of == run).count()).collect();
        starts.iter().map(of_boundary).collect()
    }

    #[test]
    fn splits_equal_those_of_a_complete_merge() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for (run_count, longest, values) in
            [(1, 10, 5), (2, 0, 1), (2, 50_000, 1 << 31), (2, 60_000, 3), (3, 40_000, 1000), (8, 9_000, 1 << 31), (8, 300, 7)]
        {
            let mut runs: Vec<Vec<u64>> = (0..run_count).map(|_| (0..random(longest + 1)).map(|_| random(values)).collect()).collect();
            // One run whose elements all precede the others', and an empty one.
            runs.push(vec![0; 20_000]);
            runs.push(Vec::new());
            runs.iter_mut().for_each(|run| run.sort_unstable());
            let lengths: Vec<usize> = runs.iter().map(Vec::len).collect();
            let size: usize = lengths.iter().sum();
            let starts: Vec<usize> = (1..runs.len()).map(|boundary| boundary * size / runs.len()).chain([0, size]).collect();
            let mut rounds = 0;
            let splits = find_splits(&lengths, &starts, &mut |ranges| {
                rounds += 1;
                let of_run =
                    |(run, range): (&Vec<u64>, &SampledRange)| run[range.start..range.end].iter().step_by(range.step).copied().collect();
                Ok(ranges.iter().map(|of_runs| runs.iter().zip(of_runs).map(of_run).collect()).collect())
            })
            .unwrap();
            assert_eq!(splits, reference_splits(&runs, &starts), "{run_count} runs of up to {longest}");
            assert!(rounds <= 4, "{rounds} rounds");
        }
    }
}
