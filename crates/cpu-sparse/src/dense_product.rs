//! Products of a sparse matrix with a dense vector or matrix.

use std::ops::Range;

use cuprum_core::{Call, Outcome, Result, decline};
use cuprum_cpu_base::simd::{self, SimdLoop};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};

use crate::csr_structure::{CsrStructure, FirstOutOfBoundsIndex, split_output_by_task};
use crate::sparse_element::SparseElement;
use crate::sparse_index::SparseIndex;

/// Number of partial sums of a long row. Element n of the row is added to partial sum n modulo `PARTIAL_SUMS`.
const PARTIAL_SUMS: usize = 4;
/// Minimum number of elements of a row that is summed in `PARTIAL_SUMS` partial sums. Shorter rows use one sum, because the CPU overlaps
/// the additions of consecutive rows.
const MIN_LONG_ROW_LEN: usize = 32;
/// Number of consecutive rows of equal length that are multiplied together, if they are short.
const ROWS_PER_GROUP: usize = 4;
/// Number of columns of the dense matrix that one pass over a sparse row multiplies. The sums of these columns stay in registers.
const WIDE_COLUMN_TILE: usize = 16;
const NARROW_COLUMN_TILE: usize = 4;

/// Computes the output of `call`, the product of a sparse matrix with a dense vector or matrix.
pub(crate) fn multiply_by_dense<T: SparseElement, I: SparseIndex>(call: &Call) -> Result<Outcome> {
    let [indptr, indices, values, b] = call.inputs else { decline!("not a product with a dense array") };
    let name = call.op.name();
    let structure = CsrStructure::<I>::new(name, indptr, indices)?;
    let (values, b) = (Elements::from_contiguous_array(values)?.typed_slice::<T>(), Elements::from_contiguous_array(b)?);
    let (columns, width) = match call.inputs[3].shape() {
        [columns] => (*columns, 1),
        [columns, width] => (*columns, *width),
        _ => decline!("a dense array of more than two axes"),
    };
    let b = b.typed_slice::<T>();
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements_mut()?.typed_slice::<T>();
    let tasks = structure.split_rows_into_tasks(name)?;
    let parts = split_output_by_task(name, &tasks, width, out)?;
    let out_of_bounds = FirstOutOfBoundsIndex::new();
    let matrix = CsrMatrix { structure, values, columns, out_of_bounds: &out_of_bounds };
    threads::for_each(
        parts.into_iter(),
        structure.pass_cost().saturating_mul(width),
        || (),
        |_, (rows, out)| match width {
            1 => simd::dispatch_simd(MatrixVectorTask { matrix: &matrix, rows, x: b, out }),
            _ => simd::dispatch_simd(MatrixMatrixTask { matrix: &matrix, rows, b, width, out }),
        },
    );
    out_of_bounds.to_result(name, columns)?;
    call.outcome_from_buffers([output.into_buffer()])
}

struct CsrMatrix<'a, T, I> {
    structure: CsrStructure<'a, I>,
    values: &'a [T],
    columns: usize,
    out_of_bounds: &'a FirstOutOfBoundsIndex,
}

impl<'a, T: SparseElement, I: SparseIndex> CsrMatrix<'a, T, I> {
    /// Returns the column indices and the values of a row.
    #[inline(always)]
    fn row_elements(&self, row: usize) -> (&'a [I], &'a [T]) {
        let at = self.structure.row_range(row);
        (&self.structure.indices[at.clone()], &self.values[at])
    }

    /// Returns whether all column indices of the elements in `rows` are valid. If not, records an invalid index.
    #[inline(always)]
    fn check_column_indices(&self, rows: &Range<usize>) -> bool {
        let at = self.structure.row_range(rows.start).start..self.structure.row_range(rows.end - 1).end;
        self.out_of_bounds.check_indices(self.columns, &self.structure.indices[at])
    }
}

/// A task of a matrix-vector product: computes the products of some rows with a vector.
struct MatrixVectorTask<'a, 'o, T, I> {
    matrix: &'a CsrMatrix<'a, T, I>,
    rows: Range<usize>,
    x: &'a [T],
    out: &'o mut [T],
}

impl<T: SparseElement, I: SparseIndex> SimdLoop for MatrixVectorTask<'_, '_, T, I> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MatrixVectorTask { matrix, rows, x, out } = self;
        if !matrix.check_column_indices(&rows) {
            return out.fill(T::ZERO);
        }
        let term = |index: &I, value: &T| value.times(x[index.to_usize()]);
        let (groups, last) = out.as_chunks_mut::<ROWS_PER_GROUP>();
        let mut row = rows.start;
        for out in groups {
            let elements: [_; ROWS_PER_GROUP] = std::array::from_fn(|n| matrix.row_elements(row + n));
            let [(i0, v0), (i1, v1), (i2, v2), (i3, v3)] = elements;
            if i0.len() < MIN_LONG_ROW_LEN && elements.iter().all(|(indices, _)| indices.len() == i0.len()) {
                // The sums of the rows are independent, so the CPU overlaps their additions, and the rows share the loop's instructions.
                let mut sums = [T::ZERO; ROWS_PER_GROUP];
                let (first, second) = (i0.iter().zip(v0).zip(i1.iter().zip(v1)), i2.iter().zip(v2).zip(i3.iter().zip(v3)));
                for (((i0, v0), (i1, v1)), ((i2, v2), (i3, v3))) in first.zip(second) {
                    let terms = [term(i0, v0), term(i1, v1), term(i2, v2), term(i3, v3)];
                    sums = std::array::from_fn(|n| sums[n].plus(terms[n]));
                }
                *out = sums;
            } else {
                out.iter_mut().zip(elements).for_each(|(out, (indices, values))| *out = multiply_row(indices, values, x));
            }
            row += ROWS_PER_GROUP;
        }
        for (row, out) in (row..).zip(last) {
            let (indices, values) = matrix.row_elements(row);
            *out = multiply_row(indices, values, x);
        }
    }
}

/// Returns the scalar product of a row and the vector `x`.
#[inline(always)]
fn multiply_row<T: SparseElement, I: SparseIndex>(indices: &[I], values: &[T], x: &[T]) -> T {
    let term = |(index, value): (&I, &T)| value.times(x[index.to_usize()]);
    if indices.len() < MIN_LONG_ROW_LEN {
        return indices.iter().zip(values).fold(T::ZERO, |sum, pair| sum.plus(term(pair)));
    }
    let mut sums = [T::ZERO; PARTIAL_SUMS];
    let (blocks, tail) = indices.as_chunks::<PARTIAL_SUMS>();
    let (value_blocks, tail_values) = values.as_chunks::<PARTIAL_SUMS>();
    for pair in blocks.iter().zip(value_blocks) {
        sums = std::array::from_fn(|lane| sums[lane].plus(term((&pair.0[lane], &pair.1[lane]))));
    }
    for (sum, pair) in sums.iter_mut().zip(tail.iter().zip(tail_values)) {
        *sum = sum.plus(term(pair));
    }
    sums[0].plus(sums[2]).plus(sums[1].plus(sums[3]))
}

/// A task of a matrix-matrix product: multiplies some rows by a dense matrix of `width` columns in C order.
struct MatrixMatrixTask<'a, 'o, T, I> {
    matrix: &'a CsrMatrix<'a, T, I>,
    rows: Range<usize>,
    b: &'a [T],
    width: usize,
    out: &'o mut [T],
}

impl<T: SparseElement, I: SparseIndex> SimdLoop for MatrixMatrixTask<'_, '_, T, I> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MatrixMatrixTask { matrix, rows, b, width, out } = self;
        if !matrix.check_column_indices(&rows) {
            return out.fill(T::ZERO);
        }
        for (row, out) in rows.zip(out.chunks_exact_mut(width)) {
            let (indices, values) = matrix.row_elements(row);
            let dense = DenseMatrix { b, width };
            let mut column = 0;
            while column + WIDE_COLUMN_TILE <= width {
                out[column..column + WIDE_COLUMN_TILE]
                    .copy_from_slice(&dense.multiply_row_by_columns::<I, WIDE_COLUMN_TILE>(indices, values, column));
                column += WIDE_COLUMN_TILE;
            }
            while column + NARROW_COLUMN_TILE <= width {
                out[column..column + NARROW_COLUMN_TILE]
                    .copy_from_slice(&dense.multiply_row_by_columns::<I, NARROW_COLUMN_TILE>(indices, values, column));
                column += NARROW_COLUMN_TILE;
            }
            while column < width {
                out[column..column + 1].copy_from_slice(&dense.multiply_row_by_columns::<I, 1>(indices, values, column));
                column += 1;
            }
        }
    }
}

/// A dense matrix in C order.
struct DenseMatrix<'a, T> {
    b: &'a [T],
    width: usize,
}

impl<T: SparseElement> DenseMatrix<'_, T> {
    /// Multiplies one row of the sparse matrix by columns `column..column + W` of the dense matrix. Returns the `W` sums.
    #[inline(always)]
    fn multiply_row_by_columns<I: SparseIndex, const W: usize>(&self, indices: &[I], values: &[T], column: usize) -> [T; W] {
        let mut sums = [T::ZERO; W];
        for (index, &value) in indices.iter().zip(values) {
            let start = index.to_usize() * self.width + column;
            let row = &self.b[start..start + W];
            for lane in 0..W {
                sums[lane] = sums[lane].plus(value.times(row[lane]));
            }
        }
        sums
    }
}
