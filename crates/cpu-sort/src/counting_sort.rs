//! Counting sort, for rows with few distinct keys.

use cuprum_core::Result;
use cuprum_cpu_base::threads;

/// Maximum size of the key range (greatest minus least key, plus 1) that a counting sort takes. Its counters fit the second-level cache.
pub(super) const MAX_KEY_RANGE: u64 = 1 << 16;
/// Minimum number of elements per task.
const MIN_ELEMENTS_PER_TASK: usize = 1 << 16;

/// Sorts elements by counting each key. `key` maps an element to a key below `range`, and `element` maps a key back to an element. Writes
/// the first sorted elements, as many as `out` holds.
pub(super) fn counting_sort<T: Copy + Send + Sync>(
    row: &[T],
    range: usize,
    key: impl Fn(T) -> usize + Sync,
    element: impl Fn(usize) -> T + Sync,
    out: &mut [T],
) -> Result<()> {
    let cost = row.len().saturating_mul(2);
    let chunk = row.len().div_ceil(threads::threads_for_cost(cost)).clamp(MIN_ELEMENTS_PER_TASK, u32::MAX as usize);
    let counts = threads::map(
        row.chunks(chunk),
        cost,
        || (),
        |_, part| {
            // Four counters per key shorten the dependency chain between increments of one counter.
            let mut counts = vec![[0u32; 4]; range];
            let mut add = |v: T, set: usize| {
                if let Some(count) = counts.get_mut(key(v)) {
                    count[set] += 1;
                }
            };
            let (fours, rest) = part.as_chunks::<4>();
            for four in fours {
                (0..4).for_each(|set| add(four[set], set));
            }
            rest.iter().for_each(|&v| add(v, 0));
            counts.iter().map(|sets| sets.iter().map(|&n| n as usize).sum()).collect::<Vec<usize>>()
        },
    )?;
    // `ends[key]` becomes the index after the last element with that key in the sorted row.
    let mut ends = vec![0; range];
    counts.iter().for_each(|counts| ends.iter_mut().zip(counts).for_each(|(end, count)| *end += count));
    let mut at = 0;
    ends.iter_mut().for_each(|end| {
        at += *end;
        *end = at;
    });
    threads::for_each(
        out.chunks_mut(MIN_ELEMENTS_PER_TASK).enumerate(),
        cost,
        || (),
        |_, (i, mut out)| {
            let mut at = i * MIN_ELEMENTS_PER_TASK;
            let mut key = ends.partition_point(|&end| end <= at);
            while let (false, Some(&end)) = (out.is_empty(), ends.get(key)) {
                let (run, rest) = out.split_at_mut((end - at).min(out.len()));
                run.fill(element(key));
                (at, key, out) = (end, key + 1, rest);
            }
        },
    );
    Ok(())
}
