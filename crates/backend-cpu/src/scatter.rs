//! Kernel of the family `Scatter`: stores values in the target rows that indices select, or combines the values with those rows.
//!
//! Indices are checked before the first write. Each thread owns a range of the target's memory, reads all indices, and applies the values
//! for its rows in the order of the indices. The result equals that of a sequential loop over the values, for any number of threads.

use std::sync::atomic::{AtomicBool, Ordering};

use cuprum_core::call::RowAssignment;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, Complex, DType, Element, Error, Layout, Outcome, Result, StoredArray, Work, bf16, decline, f16};
use cuprum_cpu_base::cache_hints::prefetch_cache_line;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::views::{Elements, ElementsMut, Output, unsigned_dtype};
use cuprum_cpu_base::with_bits;

use crate::reducers::arithmetic::Arithmetic;

/// Number of indices that are converted to row numbers at a time.
const INDEX_BLOCK_LEN: usize = 256;
/// Prefetch distance for rows of one element, in indices.
const PREFETCH_DISTANCE: usize = 16;
/// Maximum size, in bytes, of a target that is updated without prefetching. A target of this size stays in the cache.
const MAX_BYTES_WITHOUT_PREFETCH: usize = 1 << 18;
/// Approximate cost of one access to an element at a random index, in elementary operations.
const COST_PER_ELEMENT: usize = 4;
/// Maximum number of threads for rows shorter than [`MIN_LONG_ROW_LEN`]. Every thread reads all indices, so more threads do not help if
/// rows are short.
const MAX_THREADS_FOR_SHORT_ROWS: usize = 8;
/// Minimum number of elements of a long row, for which reading an index costs little compared with writing the row.
const MIN_LONG_ROW_LEN: usize = 32;

/// Computes the outputs of `call`, an operation of the kernel family `Scatter`.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Scatter(work), [indices, values, ..], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a scatter of values by indices")
    };
    if work.rows == RowAssignment::Grouped || spec.target_buffer().is_none() {
        decline!("values grouped by row, or no target");
    }
    let scatter = ScatterLayout::from_region_and_values(work.region, values)?;
    let indices = Elements::from_contiguous_array(indices)?;
    if let Some(index) = first_invalid_index(indices, scatter.extent) {
        return Err(Error::Index { op: call.op.name(), index, axis: 0, size: scatter.extent });
    }
    let mut output = Output::allocate(call, 0)?;
    let (from, to) = (Elements::from_whole_buffer(values)?, output.elements_mut()?);
    let Some(combine) = work.combine else {
        with_bits!(spec.dtype, T => scatter.run(indices, from.typed_slice::<T>(), to, |_, new| new));
        return call.outcome_from_buffers([output.into_buffer()]);
    };
    macro_rules! by_dtype {
        ($dtype:expr, $f:ident, $($t:ty),*) => {
            match $dtype {
                DType::F16 => scatter.run(indices, from.typed_slice(), to, |a: f16, b: f16| f16::from_f32($f(a.to_f32(), b.to_f32()))),
                DType::BF16 => scatter.run(indices, from.typed_slice(), to, |a: bf16, b: bf16| bf16::from_f32($f(a.to_f32(), b.to_f32()))),
                $(dtype if dtype == <$t as Element>::DTYPE => scatter.run(indices, from.typed_slice::<$t>(), to, $f::<$t>),)*
                _ => decline!("no loop for {}", spec.dtype),
            }
        };
    }
    let same_bits = unsigned_dtype(spec.dtype);
    if combine == ADD {
        by_dtype!(same_bits, sum, bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
    } else if combine == MULTIPLY {
        by_dtype!(same_bits, product, bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
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
fn sum<T: Arithmetic>(a: T, b: T) -> T {
    a.plus(b)
}
#[inline(always)]
fn product<T: Arithmetic>(a: T, b: T) -> T {
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

/// Returns the first of `indices` that is out of bounds for an axis of `extent` elements, or `None` if all are valid.
fn first_invalid_index(indices: Elements, extent: usize) -> Option<i64> {
    let extent = extent as i64;
    let is_valid = |index: i64| (-extent..extent).contains(&index);
    let good = AtomicBool::new(true);
    let blocks = (0..indices.len()).step_by(1 << 15);
    threads::for_each(
        blocks,
        indices.len(),
        || (),
        |_, start| {
            let part = indices.slice(start, (1 << 15).min(indices.len() - start));
            let all_valid = match part.dtype() {
                DType::I32 => part.typed_slice::<i32>().iter().fold(true, |good, &i| good & is_valid(i.into())),
                _ => part.typed_slice::<i64>().iter().fold(true, |good, &i| good & is_valid(i)),
            };
            if !all_valid {
                good.store(false, Ordering::Relaxed);
            }
        },
    );
    if good.into_inner() {
        return None;
    }
    match indices.dtype() {
        DType::I32 => indices.typed_slice::<i32>().iter().map(|&i| i.into()).find(|&i| !is_valid(i)),
        _ => indices.typed_slice::<i64>().iter().copied().find(|&i| !is_valid(i)),
    }
}

/// Converts valid indices along an axis of `extent` rows to row numbers, and writes them to `numbers`. A negative index counts from the
/// end.
fn convert_indices_to_row_numbers(indices: Elements, extent: usize, numbers: &mut [usize]) {
    let from_start = |index: i64| if index < 0 { index + extent as i64 } else { index } as usize;
    match indices.dtype() {
        DType::I32 => numbers.iter_mut().zip(indices.typed_slice::<i32>()).for_each(|(number, &i)| *number = from_start(i.into())),
        _ => numbers.iter_mut().zip(indices.typed_slice::<i64>()).for_each(|(number, &i)| *number = from_start(i)),
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
    first_transformed_axis: std::ops::Range<usize>,
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

    /// Divides a scatter with `count` indices into tasks whose memory ranges do not overlap, ordered by ascending address.
    fn split_into_tasks<'a>(&self, count: usize, memory: ElementsMut<'a>) -> Vec<ScatterTask<'a>> {
        let row_size: usize = self.dims.iter().product();
        let wanted = threads::threads_for_cost(count.saturating_mul(row_size).saturating_mul(COST_PER_ELEMENT));
        let (distance, row_span) = (self.stride.unsigned_abs(), self.row_memory_len(0));
        // Computes the offset of the row with the lowest address.
        let lowest = if self.stride < 0 { self.first - (self.extent - 1) * distance } else { self.first };
        let all_rows = (self.extent - 1) * distance;
        let whole = self.dims.first().copied().unwrap_or(1);
        let mut tasks = Vec::new();
        let mut add = |rows: std::ops::Range<usize>, first_transformed_axis: std::ops::Range<usize>, begin: usize, end: usize| {
            tasks.push((rows, first_transformed_axis, begin, end));
        };
        if distance >= row_span && wanted > 1 {
            let parts = if row_size < MIN_LONG_ROW_LEN { wanted.min(MAX_THREADS_FOR_SHORT_ROWS) } else { wanted };
            let step = self.extent.div_ceil(parts);
            for low in (0..self.extent).step_by(step) {
                let high = self.extent.min(low + step);
                let rows = if self.stride < 0 { self.extent - high..self.extent - low } else { low..high };
                add(rows, 0..whole, lowest + low * distance, lowest + (high - 1) * distance + row_span);
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
        let divided = tasks.into_iter().map(|(rows, first_transformed_axis, begin, end)| {
            let (part, after) = std::mem::take(&mut rest).split_at(begin - position).1.split_at(end - begin);
            (rest, position) = (after, end);
            ScatterTask { rows, first_transformed_axis, begin, memory: part }
        });
        divided.collect()
    }

    /// Replaces each element of the rows that `indices` select by `f(element, value)`, in the order of the indices.
    fn run<T: Element>(&self, indices: Elements, values: &[T], target: ElementsMut, f: impl Fn(T, T) -> T + Sync) {
        let tasks = self.split_into_tasks(indices.len(), target);
        let cost = indices.len().saturating_mul(self.dims.iter().product::<usize>()).saturating_mul(COST_PER_ELEMENT);
        threads::for_each(tasks.into_iter(), cost, || (), |_, task| self.run_task(task, indices, values, &f));
    }

    fn run_task<T: Element>(&self, task: ScatterTask, indices: Elements, values: &[T], f: &impl Fn(T, T) -> T) {
        let ScatterTask { rows, first_transformed_axis, begin, memory } = task;
        let target = memory.typed_slice::<T>();
        let mut dims = self.dims.clone();
        let origin = self.first as isize - begin as isize;
        let (mut to, mut from) = (origin, self.first_value);
        if let Some(extent) = dims.first_mut() {
            *extent = first_transformed_axis.len();
            (to, from) = (
                to + first_transformed_axis.start as isize * self.target[0],
                from + first_transformed_axis.start as isize * self.values[0],
            );
        }
        // The axes of a row whose stride is larger than the distance between rows become loops outside the loop over indices.
        let outer = self.target.iter().take_while(|stride| stride.unsigned_abs() > self.stride.unsigned_abs()).count();
        let inner = RowAxes { dims: &dims[outer..], target: &self.target[outer..], values: &self.values[outer..] };
        RowAxes { dims: &dims[..outer], target: &self.target[..outer], values: &self.values[..outer] }.for_each_element(
            to,
            from,
            &mut |to, from| {
                let mut numbers = [0; INDEX_BLOCK_LEN];
                for start in (0..indices.len()).step_by(INDEX_BLOCK_LEN) {
                    let numbers = &mut numbers[..INDEX_BLOCK_LEN.min(indices.len() - start)];
                    convert_indices_to_row_numbers(indices.slice(start, numbers.len()), self.extent, numbers);
                    let from = from + start as isize * self.value_stride;
                    if inner.dims.is_empty() {
                        self.update_single_element_rows(numbers, &rows, (target, to), (values, from), f);
                        continue;
                    }
                    for (k, number) in numbers.iter().enumerate().filter(|(_, number)| rows.contains(number)) {
                        let (to, from) = (to + *number as isize * self.stride, from + k as isize * self.value_stride);
                        inner.for_each_innermost_line(to, from, &mut |n, (to, step), (from, value_step)| {
                            update_strided_elements(n, (&mut target[to as usize..], step), (values, from, value_step), f)
                        });
                    }
                }
            },
        );
    }

    /// Scatters rows of one element each: replaces the element by `f(element, value)` for each row number in `numbers` that is inside
    /// `rows`. `to` and `from` are the offsets of row 0 and of the first value.
    #[inline(always)]
    fn update_single_element_rows<T: Element>(
        &self,
        numbers: &[usize],
        rows: &std::ops::Range<usize>,
        (target, to): (&mut [T], isize),
        (values, from): (&[T], isize),
        f: &impl Fn(T, T) -> T,
    ) {
        if (self.stride, self.value_stride) == (1, 1) {
            let target = &mut target[(to + rows.start as isize) as usize..][..rows.len()];
            let values = &values[from as usize..][..numbers.len()];
            return match rows.len() == self.extent {
                true => update_elements(target, numbers.iter().copied().zip(values.iter().copied()), f),
                false => update_elements_in_range(target, numbers, rows.start, values, f),
            };
        }
        let at = |number: usize| to + number as isize * self.stride;
        // Collects the positions of the row numbers that are inside `rows`. Uses no branches, because they would often be mispredicted.
        let (mut chosen, mut count) = ([0u16; INDEX_BLOCK_LEN], 0);
        for (k, number) in numbers.iter().enumerate() {
            chosen[count.min(INDEX_BLOCK_LEN - 1)] = k as u16;
            count += usize::from(rows.contains(number));
        }
        let chosen = &chosen[..count];
        for (n, &k) in chosen.iter().enumerate() {
            if let Some(&later) = chosen.get(n + PREFETCH_DISTANCE) {
                prefetch_cache_line(target.as_ptr().wrapping_offset(at(numbers[usize::from(later)])));
            }
            let k = usize::from(k);
            let element = &mut target[at(numbers[k]) as usize];
            *element = f(*element, values[(from + k as isize * self.value_stride) as usize]);
        }
    }
}

/// Replaces elements of `target` by `f(element, value)`, for pairs of an index and a value. Indices outside `target` are skipped.
#[inline(always)]
fn update_elements<T: Element>(target: &mut [T], pairs: impl Iterator<Item = (usize, T)> + Clone, f: &impl Fn(T, T) -> T) {
    // Prefetching does not pay off if the target is in the cache.
    if size_of_val(target) <= MAX_BYTES_WITHOUT_PREFETCH {
        for (index, value) in pairs {
            if let Some(element) = target.get_mut(index) {
                *element = f(*element, value);
            }
        }
        return;
    }
    let mut later = pairs.clone();
    for (index, _) in later.by_ref().take(PREFETCH_DISTANCE) {
        prefetch_cache_line(target.as_ptr().wrapping_add(index));
    }
    for (index, value) in pairs {
        if let Some((index, _)) = later.next() {
            prefetch_cache_line(target.as_ptr().wrapping_add(index));
        }
        if let Some(element) = target.get_mut(index) {
            *element = f(*element, value);
        }
    }
}

/// Works like [`update_elements`] for a target whose first element has row number `first`. First removes row numbers outside the target.
/// The removal uses no branches, because they would often be mispredicted.
#[inline(always)]
fn update_elements_in_range<T: Element>(target: &mut [T], numbers: &[usize], first: usize, values: &[T], f: &impl Fn(T, T) -> T) {
    let (mut indices, mut positions, mut count) = ([0; INDEX_BLOCK_LEN], [0u16; INDEX_BLOCK_LEN], 0);
    for (k, number) in numbers.iter().enumerate() {
        let index = number.wrapping_sub(first);
        (indices[count % INDEX_BLOCK_LEN], positions[count % INDEX_BLOCK_LEN]) = (index, k as u16);
        count += usize::from(index < target.len());
    }
    update_elements(target, indices[..count].iter().zip(&positions).map(|(&index, &k)| (index, values[usize::from(k)])), f);
}

/// Replaces `n` elements of `target` that are `step` apart by `f(element, value)`. The values start at index `from` of `values` and are
/// `value_step` apart.
#[inline(always)]
fn update_strided_elements<T: Element>(
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
