//! Products of two sparse matrices, row by row with a dense accumulator (Gustavson, "Two fast algorithms for sparse matrices",
//! ACM Transactions on Mathematical Software 4, 1978).

use std::ops::Range;

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Call, Element, Error, Layout, Outcome, Result, StoredArray, decline};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};
use cuprum_cpu_sort::key_sort::sort_keys;

use crate::csr_structure::CsrStructure;
use crate::sparse_element::SparseElement;
use crate::sparse_index::SparseIndex;

/// Minimum number of columns of a row that are sorted by scanning the range from the least to the greatest column. Fewer columns, and
/// columns that are far apart, are sorted by [`sort_keys`].
const MIN_SCANNED_COLUMNS: usize = 16;
/// Maximum length of the range of columns that is scanned, in multiples of the number of columns in the row.
const MAX_SCANNED_RANGE: usize = 2;

/// Computes the output of `call`, the product of two sparse matrices.
pub(crate) fn multiply_sparse_matrices<T: SparseElement, I: SparseIndex>(call: &Call, columns: usize) -> Result<Outcome> {
    let [a_indptr, a_indices, a_values, b_indptr, b_indices, b_values] = call.inputs else { decline!("not a product of two matrices") };
    let name = call.op.name();
    let factors = ProductFactors {
        a: CsrStructure::<I>::new(name, a_indptr, a_indices)?,
        b: CsrStructure::<I>::new(name, b_indptr, b_indices)?,
        a_values: Elements::from_contiguous_array(a_values)?.typed_slice::<T>(),
        b_values: Elements::from_contiguous_array(b_values)?.typed_slice::<T>(),
        columns,
    };
    let tasks = factors.a.split_rows_into_tasks(name)?;
    let mean = factors.b.indices.len() / factors.b.row_count().max(1) + 1;
    let cost = factors.a.pass_cost().saturating_mul(mean).saturating_mul(4);
    let parts =
        threads::map(tasks.into_iter(), cost, RowAccumulator::new, |accumulator, rows| factors.multiply_rows(name, rows, accumulator))?;
    let mut complete = Vec::new();
    try_reserve(name, &mut complete, parts.len())?;
    for part in parts {
        complete.push(part?);
    }
    let total = complete.iter().flat_map(|part| &part.counts).sum::<usize>();
    let indptr = write_indptr::<I>(call, factors.a.row_count(), &complete, total)?;
    let indices = concatenate_row_parts::<I>(call, 1, total, complete.iter_mut().map(|part| &mut part.indices))?;
    let values = concatenate_row_parts::<T>(call, 2, total, complete.iter_mut().map(|part| &mut part.values))?;
    Ok(Outcome::Done([indptr, indices, values].into_iter().collect()))
}

struct ProductFactors<'a, T, I> {
    a: CsrStructure<'a, I>,
    b: CsrStructure<'a, I>,
    a_values: &'a [T],
    b_values: &'a [T],
    columns: usize,
}

/// The result of one task: consecutive rows of the product.
struct ProductRows {
    /// Number of elements of each row.
    counts: Vec<usize>,
    indices: Output,
    values: Output,
}

/// The sums of one row of the product, with one sum for each column, and memory that a thread uses for all of its tasks.
struct RowAccumulator<T, I: SparseIndex> {
    /// For each column, the value of the counter `row` at the last write to the column's sum. The sum is valid only if this value equals
    /// the current `row`.
    written_by: Vec<u32>,
    sums: Vec<T>,
    row: u32,
    /// The columns whose sums are valid.
    columns: Vec<I::Unsigned>,
    /// Memory of [`sort_keys`].
    scratch: Vec<I::Unsigned>,
    /// Column indices of the elements in the task's completed rows. `task_values` holds the values of the same elements.
    task_indices: Vec<I>,
    task_values: Vec<T>,
}

impl<T: SparseElement, I: SparseIndex> RowAccumulator<T, I> {
    fn new() -> RowAccumulator<T, I> {
        RowAccumulator {
            written_by: Vec::new(),
            sums: Vec::new(),
            row: 0,
            columns: Vec::new(),
            scratch: Vec::new(),
            task_indices: Vec::new(),
            task_values: Vec::new(),
        }
    }

    /// Starts the next row. All sums become invalid.
    fn start_row(&mut self, op: &'static str, columns: usize) -> Result<()> {
        if self.sums.is_empty() {
            try_reserve(op, &mut self.sums, columns)?;
            try_reserve(op, &mut self.written_by, columns)?;
            self.sums.resize(columns, T::ZERO);
            self.written_by.resize(columns, 0);
        }
        self.columns.clear();
        self.row = self.row.wrapping_add(1);
        if self.row == 0 {
            self.written_by.fill(0);
            self.row = 1;
        }
        Ok(())
    }

    /// Sorts the columns of the current row, and appends their indices and sums to the elements of the task. Returns the number of appended
    /// elements.
    fn append_completed_row(&mut self, op: &'static str) -> Result<usize> {
        self.sort_columns(op)?;
        let columns = self.columns.iter().map(|&column| I::from_unsigned(column));
        try_reserve(op, &mut self.task_indices, columns.len())?;
        try_reserve(op, &mut self.task_values, columns.len())?;
        self.task_indices.extend(columns.clone());
        self.task_values.extend(columns.map(|column| self.sums[column.to_usize()]));
        Ok(self.columns.len())
    }

    /// Sorts the columns of the current row in ascending order.
    fn sort_columns(&mut self, op: &'static str) -> Result<()> {
        let columns = self.columns.iter().map(|&column| I::from_unsigned(column).to_usize());
        let (low, high) = columns.fold((usize::MAX, 0), |(low, high), column| (low.min(column), high.max(column)));
        if self.columns.len() < MIN_SCANNED_COLUMNS || (high - low) / MAX_SCANNED_RANGE >= self.columns.len() {
            return sort_keys(op, &mut self.columns, &mut self.scratch);
        }
        let written = self.written_by[low..=high].iter().zip(low..).filter(|(by, _)| **by == self.row);
        let ordered = written.filter_map(|(_, column)| I::from_usize(column));
        self.columns.iter_mut().zip(ordered).for_each(|(slot, column)| *slot = column.to_unsigned());
        Ok(())
    }
}

impl<T: SparseElement, I: SparseIndex> ProductFactors<'_, T, I> {
    /// Computes the given rows of the product.
    fn multiply_rows(&self, op: &'static str, rows: Range<usize>, accumulator: &mut RowAccumulator<T, I>) -> Result<ProductRows> {
        let mut counts = Vec::new();
        try_reserve(op, &mut counts, rows.len())?;
        accumulator.task_indices.clear();
        accumulator.task_values.clear();
        for row in rows {
            accumulator.start_row(op, self.columns)?;
            self.add_row_products(op, row, accumulator)?;
            counts.push(accumulator.append_completed_row(op)?);
        }
        let (indices, values) = (&accumulator.task_indices, &accumulator.task_values);
        let mut part = ProductRows {
            counts,
            indices: Output::allocate_temporary(I::DTYPE, indices.len())?,
            values: Output::allocate_temporary(T::DTYPE, values.len())?,
        };
        part.indices.elements_mut()?.typed_slice::<I>().copy_from_slice(indices);
        part.values.elements_mut()?.typed_slice::<T>().copy_from_slice(values);
        Ok(part)
    }

    /// Adds the terms of one row of the product to the accumulator.
    fn add_row_products(&self, op: &'static str, row: usize, accumulator: &mut RowAccumulator<T, I>) -> Result<()> {
        let RowAccumulator { written_by, sums, row: current, columns, .. } = accumulator;
        let at = self.a.row_range(row);
        let (a_indices, a_values) = (&self.a.indices[at.clone()], &self.a_values[at]);
        let mut term_count = 0;
        for inner in a_indices {
            if inner.to_usize() >= self.b.row_count() {
                return Err(Error::Index { op, index: inner.to_i64(), axis: 1, size: self.b.row_count() });
            }
            term_count += self.b.row_range(inner.to_usize()).len();
        }
        try_reserve(op, columns, term_count)?;
        columns.resize(term_count, I::Unsigned::default());
        // Slices and values instead of fields, which the compiler would load again after each store.
        let (written_by, sums, current, b_indices) = (&mut written_by[..], &mut sums[..], *current, self.b.indices);
        let (new_columns, size) = (&mut columns[..], self.columns);
        let mut count = 0;
        for (inner, &left) in a_indices.iter().zip(a_values) {
            let at = self.b.row_range(inner.to_usize());
            for (&column, &right) in b_indices[at.clone()].iter().zip(&self.b_values[at]) {
                let place = column.to_usize();
                let (Some(by), Some(sum)) = (written_by.get_mut(place), sums.get_mut(place)) else {
                    return Err(Error::Index { op, index: column.to_i64(), axis: 1, size });
                };
                let product = left.times(right);
                // Without branches: whether a column is new is hard to predict.
                let is_new = *by != current;
                *sum = if is_new { product } else { sum.plus(product) };
                *by = current;
                new_columns[count] = column.to_unsigned();
                count += usize::from(is_new);
            }
        }
        columns.truncate(count);
        Ok(())
    }
}

/// Returns the first output, `indptr`: the index of the first element of each row, then the total number of elements.
fn write_indptr<I: SparseIndex>(call: &Call, rows: usize, parts: &[ProductRows], total: usize) -> Result<StoredArray> {
    let too_many = || Error::value(call.op.name(), format!("{total} elements need int64 indices"));
    I::from_usize(total).ok_or_else(too_many)?;
    let mut output = Output::allocate_with_length(call, 0, rows + 1)?;
    let indptr = output.elements_mut()?.typed_slice::<I>();
    let mut position = 0;
    let ends = parts.iter().flat_map(|part| &part.counts);
    if let Some(first) = indptr.first_mut() {
        *first = I::default();
    }
    for (slot, count) in indptr.iter_mut().skip(1).zip(ends) {
        position += count;
        *slot = I::from_usize(position).ok_or_else(too_many)?;
    }
    StoredArray::new(I::DTYPE, Layout::contiguous(&[rows + 1])?, output.into_buffer())
}

/// Returns output `n` of the call: the concatenation of `parts`, which have `total` elements.
fn concatenate_row_parts<'p, E: Element>(
    call: &Call,
    n: usize,
    total: usize,
    parts: impl Iterator<Item = &'p mut Output>,
) -> Result<StoredArray> {
    let mut output = Output::allocate_with_length(call, n, total)?;
    let mut rest = output.elements_mut()?.typed_slice::<E>();
    let mut tasks = Vec::new();
    for part in parts {
        let part: &[E] = part.elements_mut()?.typed_slice();
        let (target, after) = rest.split_at_mut(part.len());
        try_reserve(call.op.name(), &mut tasks, 1)?;
        tasks.push((target, part));
        rest = after;
    }
    threads::for_each(tasks.into_iter(), total, || (), |_, (target, part)| target.copy_from_slice(part));
    StoredArray::new(call.outputs[n].dtype, Layout::contiguous(&[total])?, output.into_buffer())
}
