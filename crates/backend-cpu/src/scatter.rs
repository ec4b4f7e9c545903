//! Kernel of the family `Scatter`: stores values in the target rows that indices select, or combines the values with those rows.
//!
//! Indices are checked before the first write to the target. Each task owns a range of the target's memory and applies the values for its
//! rows in the order of the indices. The result equals that of a sequential loop over the values, for any number of threads. Several tasks
//! for rows of more than one element each read all indices. Indices of single elements are first partitioned by the tasks' row ranges.

use std::sync::atomic::{AtomicBool, Ordering};

use cuprum_core::call::RowAssignment;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, Complex, DType, Element, Error, Layout, Outcome, Result, StoredArray, Work, bf16, decline, f16};
use cuprum_cpu_base::cache_hints::{CACHE_LINE_BYTES, prefetch_at_distance, prefetch_cache_line};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Output, unsigned_dtype};
use cuprum_cpu_base::with_bits;

use self::range_partition::{INDICES_PER_CHUNK, PartitionedValues};
use crate::reducers::arithmetic::Arithmetic;

mod range_partition;

/// Number of indices in a block. Prefetches of single elements are one block ahead.
const INDEX_BLOCK_LEN: usize = 256;
/// Number of indices and values in a block that is prefetched [`SEQUENTIAL_PREFETCH_DISTANCE_IN_LINES`] cache lines ahead.
const SEQUENTIAL_PREFETCH_BLOCK_LEN: usize = 64;
/// Number of cache lines by which prefetches of indices and values precede their use. Random accesses between the sequential ones delay the
/// hardware prefetcher.
const SEQUENTIAL_PREFETCH_DISTANCE_IN_LINES: usize = 64;
/// Number of rows by which a prefetch precedes the update of a row.
const PREFETCH_DISTANCE_IN_ROWS: usize = 8;
/// Maximum number of bytes of a row and of its values that are prefetched. The hardware prefetcher loads the rest of longer rows.
const MAX_PREFETCHED_ROW_BYTES: usize = 1 << 10;
/// Approximate cost of one access to an element at a random index, in elementary operations.
const COST_PER_ELEMENT: usize = 4;
/// Maximum number of threads for rows shorter than [`MIN_LONG_ROW_LEN`]. Every thread reads all indices, so more threads do not help if
/// rows are short.
const MAX_THREADS_FOR_SHORT_ROWS: usize = 8;
/// Minimum number of elements of a long row, for which reading an index costs little compared with writing the row.
const MIN_LONG_ROW_LEN: usize = 32;
/// Minimum number of indices of single elements that are partitioned.
const MIN_PARTITIONED_INDICES: usize = if cfg!(miri) { 1 << 8 } else { 1 << 15 };
/// Minimum number of threads for which a partition of [`MIN_PARTITIONED_INDICES`] or more is faster than a loop on one thread.
const MIN_PARTITION_THREADS: usize = 4;
/// Minimum number of indices that fewer threads partition, if the target exceeds [`MAX_BYTES_WITHOUT_PREFETCH`].
const MIN_INDICES_FOR_FEW_THREADS: usize = if cfg!(miri) { 1 << 9 } else { 1 << 20 };
/// Maximum size in bytes of a target whose single elements are updated without prefetching. Such a target stays in the cache.
const MAX_BYTES_WITHOUT_PREFETCH: usize = 4 << 20;
/// Maximum size in bytes of a target range of a partition, unless there would be more than [`MAX_PARTITION_RANGES`]. The range fits the
/// second-level cache.
const PARTITION_RANGE_BYTES: usize = 1 << 18;
/// Minimum number of tasks per thread. Tasks take several ranges if more tasks than this remain.
const MIN_TASKS_PER_THREAD: usize = 8;
/// Maximum number of target ranges of a partition. More ranges would have few indices of each chunk.
const MAX_PARTITION_RANGES: usize = 1 << 11;

/// Computes the output of `call`, which stores values in the target rows that indices select, or combines the values with those rows.
pub(crate) fn compute_scatter(call: &Call) -> Result<Outcome> {
    let (Work::Scatter(work), [indices, values, ..], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a scatter of values by indices")
    };
    if work.rows == RowAssignment::Grouped || spec.target_buffer().is_none() {
        decline!("values grouped by row, or no target");
    }
    let scatter = ScatterLayout::from_region_and_values(work.region, values)?;
    let indices = Elements::from_contiguous_array(indices)?;
    let check = |invalid: Option<i64>| match invalid {
        Some(index) => Err(Error::Index { op: call.op.name(), index, axis: 0, size: scatter.extent }),
        None => Ok(()),
    };
    let mut output = Output::allocate(call, 0)?;
    let (from, to) = (Elements::from_whole_buffer(values)?, output.elements_mut()?);
    let Some(combine) = work.combine else {
        with_bits!(spec.dtype, T => check(scatter.combine_into_selected_rows(indices, from.typed_slice::<T>(), to, |_, new| new)?))?;
        return call.outcome_from_buffers([output.into_buffer()]);
    };
    macro_rules! by_dtype {
        ($dtype:expr, $f:ident, $($t:ty),*) => {
            check(match $dtype {
                DType::F16 => scatter.combine_into_selected_rows(indices, from.typed_slice(), to, |a: f16, b: f16| f16::from_f32($f(a.to_f32(), b.to_f32()))),
                DType::BF16 => scatter.combine_into_selected_rows(indices, from.typed_slice(), to, |a: bf16, b: bf16| bf16::from_f32($f(a.to_f32(), b.to_f32()))),
                $(dtype if dtype == <$t as Element>::DTYPE => scatter.combine_into_selected_rows(indices, from.typed_slice::<$t>(), to, $f::<$t>),)*
                _ => decline!("no loop for {}", spec.dtype),
            }?)?
        };
    }
    let same_bits = unsigned_dtype(spec.dtype);
    if combine == ADD {
        by_dtype!(same_bits, add_values, bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
    } else if combine == MULTIPLY {
        by_dtype!(same_bits, multiply_values, bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
    } else if combine == MINIMUM {
        by_dtype!(spec.dtype, smaller, bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
    } else if combine == MAXIMUM {
        by_dtype!(spec.dtype, larger, bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
    } else {
        decline!("no loop for {}", combine.name());
    }
    call.outcome_from_buffers([output.into_buffer()])
}

#[inline(always)]
fn add_values<T: Arithmetic>(a: T, b: T) -> T {
    a.plus(b)
}
#[inline(always)]
fn multiply_values<T: Arithmetic>(a: T, b: T) -> T {
    a.times(b)
}
/// Returns the smaller value, or the first NaN.
#[inline(always)]
fn smaller<T: Arithmetic>(a: T, b: T) -> T {
    if b.is_at_least(a) | a.has_nan() { a } else { b }
}
/// Returns the larger value, or the first NaN.
#[inline(always)]
fn larger<T: Arithmetic>(a: T, b: T) -> T {
    if a.is_at_least(b) | a.has_nan() { a } else { b }
}

/// Returns whether every index is valid for an axis of `extent` rows.
fn are_all_valid(indices: Elements, extent: usize) -> bool {
    let extent = extent as i64;
    let is_valid = |index: i64| (-extent..extent).contains(&index);
    match indices.dtype() {
        DType::I32 => indices.typed_slice::<i32>().iter().fold(true, |valid, &i| valid & is_valid(i.into())),
        _ => indices.typed_slice::<i64>().iter().fold(true, |valid, &i| valid & is_valid(i)),
    }
}

/// Returns the first of `indices` that is out of bounds for an axis of `extent` elements, or `None` if all are valid.
fn first_invalid_index(indices: Elements, extent: usize) -> Option<i64> {
    let mut chunks =
        (0..indices.len()).step_by(INDICES_PER_CHUNK).map(|start| indices.slice(start, INDICES_PER_CHUNK.min(indices.len() - start)));
    let good = AtomicBool::new(true);
    threads::for_each(
        chunks.clone(),
        indices.len(),
        || (),
        |_, chunk| {
            if !are_all_valid(chunk, extent) {
                good.store(false, Ordering::Relaxed);
            }
        },
    );
    if good.into_inner() {
        return None;
    }
    let chunk = chunks.find(|&chunk| !are_all_valid(chunk, extent))?;
    let invalid = (0..chunk.len()).map(|k| chunk.slice(k, 1)).find(|&index| !are_all_valid(index, extent))?;
    Some(match invalid.dtype() {
        DType::I32 => invalid.typed_slice::<i32>()[0].into(),
        _ => invalid.typed_slice::<i64>()[0],
    })
}

/// Returns the row number of a valid index along an axis of `extent` rows. A negative index counts from the end.
#[inline(always)]
fn resolve_row_index(index: i64, extent: usize) -> usize {
    (if index < 0 { index + extent as i64 } else { index }) as usize
}

/// Calls `f` with the position and the row number of each of `indices`, which must be valid for an axis of `extent` rows.
#[inline(always)]
fn for_each_row(indices: Elements, extent: usize, mut f: impl FnMut(usize, usize)) {
    match indices.dtype() {
        DType::I32 => indices.typed_slice::<i32>().iter().enumerate().for_each(|(k, &i)| f(k, resolve_row_index(i.into(), extent))),
        _ => indices.typed_slice::<i64>().iter().enumerate().for_each(|(k, &i)| f(k, resolve_row_index(i, extent))),
    }
}

/// Loop extents, offsets and strides of a scatter. Offsets and strides are in elements.
struct ScatterLayout {
    /// Number of rows of the target array. `first` is the offset of row 0, and `stride` the distance between rows.
    extent: usize,
    first: usize,
    stride: isize,
    /// Offset of the first value. `value_stride` is the distance between the values of consecutive indices.
    first_value: isize,
    value_stride: isize,
    /// Extents of the axes of a row, the largest target stride first. The fields `target` and `values` hold the strides along these axes.
    dims: Dims,
    target: Strides,
    values: Strides,
}

/// The range of target memory that one thread writes: some rows, and a part of each row.
struct ScatterTask<'a> {
    rows: std::ops::Range<usize>,
    /// The part of each row: an index range along the first axis of the row, or `0..1` if rows are single elements.
    row_part: std::ops::Range<usize>,
    /// Offset of the first element of `memory` in the target array.
    begin: usize,
    memory: ElementsMut<'a>,
}

impl ScatterLayout {
    fn from_region_and_values(region: &Layout, values: &StoredArray) -> Result<ScatterLayout> {
        let row = |layout: &Layout| Layout::strided(&layout.shape()[1..], &layout.strides()[1..], 0);
        let LoopPlan { dims, strides, .. } = LoopPlan::new(&[&row(values.layout())?, &row(region)?]);
        Ok(ScatterLayout {
            extent: region.shape()[0],
            first: region.offset(),
            stride: region.strides()[0],
            first_value: values.layout().offset() as isize,
            value_stride: values.layout().strides()[0],
            dims,
            values: strides[0].clone(),
            target: strides[1].clone(),
        })
    }

    /// Returns the length, in elements, of the memory range that a row covers along its axes from `axis` on.
    fn row_memory_len(&self, axis: usize) -> usize {
        let last: isize = self.dims[axis..].iter().zip(&self.target[axis..]).map(|(&n, &stride)| (n as isize - 1) * stride).sum();
        last as usize + 1
    }

    /// Returns the base-2 logarithm of the number of rows per task if the indices of `count` single elements of `itemsize` bytes are to be
    /// partitioned. Returns `None` if a row has several elements, or if one thread without a partition is faster.
    fn partition_range_bits(&self, count: usize, itemsize: usize) -> Option<u32> {
        let threads = threads::threads_for_cost(count.saturating_mul(COST_PER_ELEMENT));
        let row_bytes = self.stride.unsigned_abs().saturating_mul(itemsize).max(1);
        let is_large = count >= MIN_INDICES_FOR_FEW_THREADS && row_bytes.saturating_mul(self.extent) > MAX_BYTES_WITHOUT_PREFETCH;
        let min_threads = if is_large { 2 } else { MIN_PARTITION_THREADS };
        if !self.dims.is_empty() || count < MIN_PARTITIONED_INDICES || threads < min_threads {
            return None;
        }
        let most = (PARTITION_RANGE_BYTES / row_bytes).min(self.extent / (2 * threads)).max(self.extent / MAX_PARTITION_RANGES);
        Some(most.clamp(1, u32::MAX as usize).ilog2())
    }

    /// Divides a scatter with `count` indices into tasks whose memory ranges do not overlap, ordered by ascending address. Tasks for single
    /// elements have `1 << task_bits` rows each; without `task_bits`, there is one task.
    fn split_into_tasks<'a>(&self, count: usize, task_bits: Option<u32>, memory: ElementsMut<'a>) -> Vec<ScatterTask<'a>> {
        let row_size: usize = self.dims.iter().product();
        let wanted = match self.dims.is_empty() {
            true => 1,
            false => threads::threads_for_cost(count.saturating_mul(row_size).saturating_mul(COST_PER_ELEMENT)),
        };
        let (distance, row_span) = (self.stride.unsigned_abs(), self.row_memory_len(0));
        // Computes the lowest offset of a range of rows.
        let lowest_offset = |rows: &std::ops::Range<usize>| match self.stride < 0 {
            true => self.first - (rows.end - 1) * distance,
            false => self.first + rows.start * distance,
        };
        let lowest = lowest_offset(&(0..self.extent));
        let all_rows = (self.extent - 1) * distance;
        let whole = self.dims.first().copied().unwrap_or(1);
        let mut tasks = Vec::new();
        let mut add = |rows: std::ops::Range<usize>, row_part: std::ops::Range<usize>, begin: usize, end: usize| {
            tasks.push((rows, row_part, begin, end));
        };
        if distance >= row_span && (wanted > 1 || task_bits.is_some()) {
            let parts = if row_size < MIN_LONG_ROW_LEN { wanted.min(MAX_THREADS_FOR_SHORT_ROWS) } else { wanted };
            let step = task_bits.map_or(self.extent.div_ceil(parts), |bits| 1 << bits);
            let mut ranges: Vec<_> = (0..self.extent).step_by(step).map(|low| low..self.extent.min(low + step)).collect();
            if self.stride < 0 {
                ranges.reverse();
            }
            for rows in ranges {
                let begin = lowest_offset(&rows);
                let end = begin + (rows.len() - 1) * distance + row_span;
                add(rows, 0..whole, begin, end);
            }
        } else if let Some(&outer) = self.target.first().filter(|&&outer| wanted > 1 && outer as usize >= all_rows + self.row_memory_len(1))
        {
            let step = whole.div_ceil(wanted);
            for low in (0..whole).step_by(step) {
                let high = whole.min(low + step);
                let begin = lowest + low * outer as usize;
                add(0..self.extent, low..high, begin, begin + (high - low - 1) * outer as usize + all_rows + self.row_memory_len(1));
            }
        } else {
            add(0..self.extent, 0..whole, lowest, lowest + all_rows + row_span);
        }
        let (mut rest, mut position) = (memory, 0);
        let divided = tasks.into_iter().map(|(rows, row_part, begin, end)| {
            let (part, after) = std::mem::take(&mut rest).split_at(begin - position).1.split_at(end - begin);
            (rest, position) = (after, end);
            ScatterTask { rows, row_part, begin, memory: part }
        });
        divided.collect()
    }

    /// Replaces each element of the rows that `indices` select by `f(element, value)`, in the order of the indices. Returns the first index
    /// that is out of bounds; nothing is then written.
    fn combine_into_selected_rows<T: Element>(
        &self,
        indices: Elements,
        values: &[T],
        target: ElementsMut,
        f: impl Fn(T, T) -> T + Sync,
    ) -> Result<Option<i64>> {
        if let Some(range_bits) = self.partition_range_bits(indices.len(), size_of::<T>()) {
            return self.combine_into_partitioned_rows(range_bits, indices, values, target, f);
        }
        if let Some(index) = first_invalid_index(indices, self.extent) {
            return Ok(Some(index));
        }
        let tasks = self.split_into_tasks(indices.len(), None, target);
        let cost = indices.len().saturating_mul(self.dims.iter().product::<usize>()).saturating_mul(COST_PER_ELEMENT);
        threads::for_each(tasks.into_iter(), cost, || (), |_, task| self.combine_into_task_rows(task, indices, values, &f));
        Ok(None)
    }

    /// Computes [`combine_into_selected_rows`](Self::combine_into_selected_rows) for rows of single elements, after a partition of the
    /// values by ranges of `1 << range_bits` rows.
    fn combine_into_partitioned_rows<T: Element>(
        &self,
        range_bits: u32,
        indices: Elements,
        values: &[T],
        target: ElementsMut,
        f: impl Fn(T, T) -> T + Sync,
    ) -> Result<Option<i64>> {
        let mut sorted = PartitionedValues::allocate(T::DTYPE, indices.len())?;
        let Some(chunks) =
            sorted.partition_by_row_range(indices, self.extent, range_bits, (values, self.first_value, self.value_stride))?
        else {
            return Ok(first_invalid_index(indices, self.extent));
        };
        let (rows, values) = sorted.rows_and_values::<T>()?;
        let cost = indices.len().saturating_mul(COST_PER_ELEMENT);
        let ranges_per_task = (self.extent >> range_bits) / threads::threads_for_cost(cost) / MIN_TASKS_PER_THREAD;
        let tasks = self.split_into_tasks(indices.len(), Some(range_bits + ranges_per_task.max(1).ilog2()), target);
        let row_bytes = self.stride.unsigned_abs().saturating_mul(size_of::<T>()).max(1);
        let lines = self.extent.saturating_mul(row_bytes.min(CACHE_LINE_BYTES)) / CACHE_LINE_BYTES;
        // Prefetches the target if there is at least one value per cache line, because then most lines change.
        let prefetches = indices.len() >= lines;
        let (range_len, rows_per_line) = (1 << range_bits, (CACHE_LINE_BYTES / row_bytes).max(1));
        threads::for_each(
            tasks.into_iter(),
            cost,
            || (),
            |_, task| {
                let target = task.memory.typed_slice::<T>();
                let offset = |row: usize| self.first as isize + row as isize * self.stride - task.begin as isize;
                for start in task.rows.clone().step_by(range_len) {
                    let (range, first) = (start >> range_bits, offset(start));
                    // The rows of the next range are prefetched in parts, one part for each chunk.
                    let later = if prefetches { start + range_len..task.rows.end.min(start + 2 * range_len) } else { 0..0 };
                    let rows_per_chunk = later.len().div_ceil(chunks.len());
                    for (chunk, starts) in chunks.iter().enumerate() {
                        for row in later.clone().skip(chunk * rows_per_chunk).take(rows_per_chunk).step_by(rows_per_line) {
                            prefetch_cache_line(target.as_ptr().wrapping_offset(offset(row)));
                        }
                        let part =
                            chunk * INDICES_PER_CHUNK + starts[range] as usize..chunk * INDICES_PER_CHUNK + starts[range + 1] as usize;
                        let (rows, values) = (&rows[part.clone()], &values[part]);
                        for (k, (&row, &value)) in rows.iter().zip(values).enumerate() {
                            if let Some(&later) = rows.get(k + PREFETCH_DISTANCE_IN_ROWS) {
                                prefetch_cache_line(target.as_ptr().wrapping_offset(first + later as isize * self.stride));
                            }
                            let element = &mut target[(first + row as isize * self.stride) as usize];
                            *element = f(*element, value);
                        }
                    }
                }
            },
        );
        Ok(None)
    }

    fn combine_into_task_rows<T: Element>(&self, task: ScatterTask, indices: Elements, values: &[T], f: &impl Fn(T, T) -> T) {
        let ScatterTask { rows, row_part, begin, memory } = task;
        let target = memory.typed_slice::<T>();
        let mut dims = self.dims.clone();
        let origin = self.first as isize - begin as isize;
        let (mut to, mut from) = (origin, self.first_value);
        if let Some(extent) = dims.first_mut() {
            *extent = row_part.len();
            (to, from) = (to + row_part.start as isize * self.target[0], from + row_part.start as isize * self.values[0]);
        }
        // The axes of a row whose stride is larger than the distance between rows become loops outside the loop over indices.
        let outer = self.target.iter().take_while(|stride| stride.unsigned_abs() > self.stride.unsigned_abs()).count();
        let inner = RowAxes { dims: &dims[outer..], target: &self.target[outer..], values: &self.values[outer..] };
        RowAxes { dims: &dims[..outer], target: &self.target[..outer], values: &self.values[..outer] }.for_each_element(
            to,
            from,
            &mut |to, from| {
                if inner.dims.is_empty() && rows.len() == self.extent {
                    return self.combine_into_single_elements(indices, (target, to), (values, from), f);
                }
                let mut numbers = [0; INDEX_BLOCK_LEN];
                for start in (0..indices.len()).step_by(INDEX_BLOCK_LEN) {
                    let numbers = &mut numbers[..INDEX_BLOCK_LEN.min(indices.len() - start)];
                    for_each_row(indices.slice(start, numbers.len()), self.extent, |k, row| numbers[k] = row);
                    let from = from + start as isize * self.value_stride;
                    self.combine_into_rows(numbers, &rows, inner, (target, to), (values, from), f);
                }
            },
        );
    }

    /// Replaces the element that each of `indices` selects by `f(element, value)`. `to` and `from` are the offsets of row 0 and of the
    /// first value. In a large target, the elements of each block of indices are prefetched before those of the block before are updated.
    #[inline(always)]
    fn combine_into_single_elements<T: Element>(
        &self,
        indices: Elements,
        (target, to): (&mut [T], isize),
        (values, from): (&[T], isize),
        f: &impl Fn(T, T) -> T,
    ) {
        let at = |row: usize| to + row as isize * self.stride;
        let (memory, prefetches) = (target.as_ptr(), size_of_val(target) > MAX_BYTES_WITHOUT_PREFETCH);
        let has_unit_strides = (self.stride, self.value_stride) == (1, 1);
        let mut update = |start: usize, len: usize| {
            let indices = indices.slice(start, len);
            match indices.dtype() {
                DType::I32 => prefetch_at_distance(indices.typed_slice::<i32>(), SEQUENTIAL_PREFETCH_DISTANCE_IN_LINES),
                _ => prefetch_at_distance(indices.typed_slice::<i64>(), SEQUENTIAL_PREFETCH_DISTANCE_IN_LINES),
            }
            if has_unit_strides {
                let (target, values) = (&mut target[to as usize..], &values[from as usize + start..][..len]);
                prefetch_at_distance(values, SEQUENTIAL_PREFETCH_DISTANCE_IN_LINES);
                return for_each_row(indices, self.extent, |k, row| target[row] = f(target[row], values[k]));
            }
            for_each_row(indices, self.extent, |k, row| {
                let element = &mut target[at(row) as usize];
                *element = f(*element, values[(from + (start + k) as isize * self.value_stride) as usize]);
            });
        };
        if !prefetches {
            let starts = (0..indices.len()).step_by(SEQUENTIAL_PREFETCH_BLOCK_LEN);
            return starts.for_each(|start| update(start, SEQUENTIAL_PREFETCH_BLOCK_LEN.min(indices.len() - start)));
        }
        for start in (0..indices.len()).step_by(INDEX_BLOCK_LEN) {
            let len = INDEX_BLOCK_LEN.min(indices.len() - start);
            let later = indices.slice(start + len, INDEX_BLOCK_LEN.min(indices.len() - start - len));
            for_each_row(later, self.extent, |_, row| prefetch_cache_line(memory.wrapping_offset(at(row))));
            update(start, len);
        }
    }

    /// Replaces each element of the rows in `numbers` that are inside `rows` by `f(element, value)`. `inner` are the axes of a row, and
    /// `to` and `from` the offsets of row 0 and of the first value.
    #[inline(always)]
    fn combine_into_rows<T: Element>(
        &self,
        numbers: &[usize],
        rows: &std::ops::Range<usize>,
        inner: RowAxes,
        (target, to): (&mut [T], isize),
        (values, from): (&[T], isize),
        f: &impl Fn(T, T) -> T,
    ) {
        // Collects the positions of the row numbers that are inside `rows`. Uses no branches, because they would often be mispredicted.
        let (mut chosen, mut count) = ([0u16; INDEX_BLOCK_LEN], 0);
        for (k, number) in numbers.iter().enumerate() {
            chosen[count % INDEX_BLOCK_LEN] = k as u16;
            count += usize::from(rows.contains(number));
        }
        let chosen = &chosen[..count];
        let prefetched_len = match (inner.values.last(), inner.target.last()) {
            (Some(1), Some(1)) => inner.dims.last().map_or(0, |&n| n.min(MAX_PREFETCHED_ROW_BYTES / size_of::<T>())),
            _ => 0,
        };
        for (n, &k) in chosen.iter().enumerate() {
            let first_value = |k: u16| from + k as isize * self.value_stride;
            if let Some(&later) = chosen.get(n + PREFETCH_DISTANCE_IN_ROWS) {
                let first = first_value(later) as usize;
                let row = target.as_ptr().wrapping_offset(to + numbers[usize::from(later)] as isize * self.stride);
                for i in (0..prefetched_len).step_by(CACHE_LINE_BYTES / size_of::<T>()) {
                    prefetch_cache_line(values.as_ptr().wrapping_add(first + i));
                    prefetch_cache_line(row.wrapping_add(i));
                }
            }
            let to = to + numbers[usize::from(k)] as isize * self.stride;
            inner.for_each_innermost_line(to, first_value(k), &mut |n, (to, step), (from, value_step)| {
                combine_strided_run(n, (&mut target[to as usize..], step), (values, from, value_step), f)
            });
        }
    }
}

/// Replaces `n` elements of `target` that are `step` apart by `f(element, value)`. The values start at index `from` of `values` and are
/// `value_step` apart.
#[inline(always)]
fn combine_strided_run<T: Element>(
    n: usize,
    (target, step): (&mut [T], isize),
    (values, from, value_step): (&[T], isize, isize),
    f: &impl Fn(T, T) -> T,
) {
    let first = from as usize;
    match (step, value_step) {
        (1, 1) => target[..n].iter_mut().zip(&values[first..first + n]).for_each(|(element, &value)| *element = f(*element, value)),
        (1, 0) => {
            let value = values[first];
            target[..n].iter_mut().for_each(|element| *element = f(*element, value));
        }
        _ => {
            for i in 0..n {
                let element = &mut target[i * step as usize];
                *element = f(*element, values[(from + i as isize * value_step) as usize]);
            }
        }
    }
}

/// Extents and strides of some axes of a row, for nested loops over their elements.
#[derive(Clone, Copy)]
struct RowAxes<'a> {
    dims: &'a [usize],
    target: &'a [isize],
    values: &'a [isize],
}

impl RowAxes<'_> {
    /// Calls `f` for each element of the row with the element's offset in the target and in the values. `to` and `from` are the offsets of
    /// the row's first element in the target and in the values.
    fn for_each_element(self, to: isize, from: isize, f: &mut dyn FnMut(isize, isize)) {
        let (Some((&n, dims)), [step, target @ ..], [value_step, values @ ..]) = (self.dims.split_first(), self.target, self.values) else {
            return f(to, from);
        };
        for i in 0..n as isize {
            RowAxes { dims, target, values }.for_each_element(to + i * step, from + i * value_step, f);
        }
    }

    /// Calls `f` for each line of elements along the innermost axis: with the line's length, with its offset and stride in the target, and
    /// with its offset and stride in the values. `to` and `from` are the offsets of the row's first element in the target and in the
    /// values.
    #[inline(always)]
    fn for_each_innermost_line(self, to: isize, from: isize, f: &mut impl FnMut(usize, (isize, isize), (isize, isize))) {
        let (Some((&n, dims)), Some((&step, target)), Some((&value_step, values))) =
            (self.dims.split_last(), self.target.split_last(), self.values.split_last())
        else {
            return f(1, (to, 1), (from, 1));
        };
        match dims {
            [] => f(n, (to, step), (from, value_step)),
            _ => RowAxes { dims, target, values }.for_each_element(to, from, &mut |to, from| f(n, (to, step), (from, value_step))),
        }
    }
}
