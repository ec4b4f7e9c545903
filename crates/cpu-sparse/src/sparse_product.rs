//! Products of two sparse matrices, row by row with a dense accumulator (Gustavson, "Two fast algorithms for sparse matrices",
//! ACM Transactions on Mathematical Software 4, 1978).

use std::ops::Range;

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Call, Element, Error, Layout, Outcome, Result, StoredArray, decline};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::views::{Elements, Output};

use crate::csr_structure::CsrStructure;
use crate::element::SparseElement;
use crate::index::Index;

/// Maximum spread of the column indices of a row that are sorted by a scan over their range. The spread is the size of this range divided
/// by the number of indices. Rows with a larger spread or at most 16 elements are sorted by comparisons.
const MAX_SPREAD_FOR_SCAN_SORT: usize = 8;

/// Computes the product of two sparse matrices.
pub(crate) fn run<T: SparseElement, I: Index>(call: &Call, columns: usize) -> Result<Outcome> {
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
    let total = complete.iter().map(|part| part.indices.len()).sum::<usize>();
    let indptr = write_indptr::<T, I>(call, factors.a.row_count(), &complete, total)?;
    let indices = concatenate_parts(call, 1, total, complete.iter().map(|part| &part.indices[..]))?;
    let values = concatenate_parts(call, 2, total, complete.iter().map(|part| &part.values[..]))?;
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
struct ProductRows<T, I> {
    /// Number of elements of each row.
    counts: Vec<usize>,
    indices: Vec<I>,
    values: Vec<T>,
}

/// The sums of one row of the product, with one sum for each column.
struct RowAccumulator<T> {
    /// For each column, the value of `row` when the column's sum was last written. The sum is valid only if this value equals the current
    /// `row`.
    written_by: Vec<u32>,
    sums: Vec<T>,
    row: u32,
}

impl<T: SparseElement> RowAccumulator<T> {
    fn new() -> RowAccumulator<T> {
        RowAccumulator { written_by: Vec::new(), sums: Vec::new(), row: 0 }
    }

    /// Starts the next row. All sums become invalid.
    fn start_row(&mut self, op: &'static str, columns: usize) -> Result<()> {
        if self.sums.is_empty() {
            try_reserve(op, &mut self.sums, columns)?;
            try_reserve(op, &mut self.written_by, columns)?;
            self.sums.resize(columns, T::ZERO);
            self.written_by.resize(columns, 0);
        }
        self.row = self.row.wrapping_add(1);
        if self.row == 0 {
            self.written_by.fill(0);
            self.row = 1;
        }
        Ok(())
    }
}

impl<T: SparseElement, I: Index> ProductFactors<'_, T, I> {
    /// Computes the given rows of the product.
    fn multiply_rows(&self, op: &'static str, rows: Range<usize>, accumulator: &mut RowAccumulator<T>) -> Result<ProductRows<T, I>> {
        let mut part = ProductRows { counts: Vec::new(), indices: Vec::new(), values: Vec::new() };
        try_reserve(op, &mut part.counts, rows.len())?;
        for row in rows {
            accumulator.start_row(op, self.columns)?;
            let start = part.indices.len();
            self.add_row_products(op, row, accumulator, &mut part.indices)?;
            let indices = &mut part.indices[start..];
            sort_column_indices(indices, accumulator);
            try_reserve(op, &mut part.values, indices.len())?;
            part.values.extend(indices.iter().map(|column| accumulator.sums[column.to_usize()]));
            part.counts.push(indices.len());
        }
        Ok(part)
    }

    /// Adds the terms of one row of the product to the accumulator. Appends the index of each column to `columns` when the first term of
    /// that column is added.
    fn add_row_products(&self, op: &'static str, row: usize, accumulator: &mut RowAccumulator<T>, columns: &mut Vec<I>) -> Result<()> {
        let RowAccumulator { written_by, sums, row: current } = accumulator;
        let at = self.a.row_range(row);
        for (inner, &left) in self.a.indices[at.clone()].iter().zip(&self.a_values[at]) {
            let b_row = inner.to_usize();
            if b_row >= self.b.row_count() {
                return Err(Error::Index { op, index: inner.to_i64(), axis: 1, size: self.b.row_count() });
            }
            let at = self.b.row_range(b_row);
            try_reserve(op, columns, at.len())?;
            for (&column, &right) in self.b.indices[at.clone()].iter().zip(&self.b_values[at]) {
                let place = column.to_usize();
                let (Some(by), Some(sum)) = (written_by.get_mut(place), sums.get_mut(place)) else {
                    return Err(Error::Index { op, index: column.to_i64(), axis: 1, size: self.columns });
                };
                let product = left.times(right);
                if *by == *current {
                    *sum = sum.plus(product);
                } else {
                    (*by, *sum) = (*current, product);
                    columns.push(column);
                }
            }
        }
        Ok(())
    }
}

/// Sorts the column indices of a row in ascending order.
fn sort_column_indices<T, I: Index>(columns: &mut [I], accumulator: &RowAccumulator<T>) {
    let bounds = columns.iter().fold((usize::MAX, 0), |(low, high), c| (low.min(c.to_usize()), high.max(c.to_usize())));
    let (low, high) = bounds;
    if columns.len() > 16 && (high - low) / MAX_SPREAD_FOR_SCAN_SORT < columns.len() {
        let written = accumulator.written_by[low..=high].iter().zip(low..).filter(|(by, _)| **by == accumulator.row);
        let ordered = written.filter_map(|(_, column)| I::from_usize(column));
        columns.iter_mut().zip(ordered).for_each(|(slot, column)| *slot = column);
    } else {
        columns.sort_unstable();
    }
}

/// Returns the first output, `indptr`: the index of the first element of each row, then the total number of elements.
fn write_indptr<T, I: Index>(call: &Call, rows: usize, parts: &[ProductRows<T, I>], total: usize) -> Result<StoredArray> {
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
fn concatenate_parts<'p, E: Element>(call: &Call, n: usize, total: usize, parts: impl Iterator<Item = &'p [E]>) -> Result<StoredArray> {
    let mut output = Output::allocate_with_length(call, n, total)?;
    let mut rest = output.elements_mut()?.typed_slice::<E>();
    let mut tasks = Vec::new();
    for part in parts {
        let (target, after) = rest.split_at_mut(part.len());
        try_reserve(call.op.name(), &mut tasks, 1)?;
        tasks.push((target, part));
        rest = after;
    }
    threads::for_each(tasks.into_iter(), total, || (), |_, (target, part)| target.copy_from_slice(part));
    StoredArray::new(call.outputs[n].dtype, Layout::contiguous(&[total])?, output.into_buffer())
}
