//! LU decompositions with partial pivoting, and the solutions, inverses and determinants that use them.

use cuprum_core::error::LinAlgFailure::Singular;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::{HostVec, Output};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, ColMut, MatMut, MatRef, Par};
use num_traits::{Float, One, Zero};

use crate::column_blocks::ThreadsPerMatrix;
use crate::double_precision::Widen;
use crate::matrix_batch::{MatrixBatch, MatrixFailure};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_in_c_order};
use crate::triangular::solve_triangular_in_place;

/// Maximum number of columns of a matrix that is decomposed one column at a time. Wider matrices are split recursively.
const MAX_PANEL_COLUMNS: usize = 16;

/// Computes the LU decomposition of `a` in place: the unit lower factor below the diagonal, the upper factor on and above the diagonal. Row
/// i was interchanged with row `pivots[i]`. As in LAPACK, a column without a non-zero pivot is not eliminated, so that the product of the
/// factors is `a` also for a singular matrix.
#[inline(never)]
fn decompose_lu_in_place<T: Field>(mut a: MatMut<'_, T>, pivots: &mut [usize], team: ThreadsPerMatrix) {
    let (m, n) = a.shape();
    if n > m {
        let (mut left, right) = a.split_at_col_mut(m);
        decompose_lu_in_place(left.rb_mut(), pivots, team);
        return eliminate_right_columns(left.rb(), pivots, right, team);
    }
    if n <= MAX_PANEL_COLUMNS {
        return decompose_lu_panel(a, pivots);
    }
    let half = (n / 2).next_multiple_of(MAX_PANEL_COLUMNS).min(n - 1);
    let (mut left, mut right) = a.rb_mut().split_at_col_mut(half);
    let (first, second) = pivots.split_at_mut(half);
    decompose_lu_in_place(left.rb_mut(), first, team);
    eliminate_right_columns(left.rb(), first, right.rb_mut(), team);
    decompose_lu_in_place(right.subrows_mut(half, m - half), second, team);
    let cost = half.saturating_mul(n - half).saturating_mul(8);
    team.for_each_block(left.subrows_mut(half, m - half), cost, |_, columns| apply_pivots(columns, second));
    second.iter_mut().for_each(|pivot| *pivot += half);
}

/// Applies the elimination of the decomposed columns `left` to the columns on their right.
fn eliminate_right_columns<T: Field>(left: MatRef<'_, T>, pivots: &[usize], right: MatMut<'_, T>, team: ThreadsPerMatrix) {
    let (m, half) = left.shape();
    let (l_top, l_bottom) = left.split_at_row(half);
    let cost = m.saturating_mul(half).saturating_mul(right.ncols()) / 4;
    team.for_each_block(right, cost, |_, mut block| {
        apply_pivots(block.rb_mut(), pivots);
        let (mut top, bottom) = block.split_at_row_mut(half);
        solve_unit_lower_triangular_in_place(l_top, top.rb_mut(), Par::Seq);
        matmul(bottom, Accum::Add, l_bottom, top.rb(), -T::one(), Par::Seq);
    });
}

/// Decomposes a matrix of at most [`MAX_PANEL_COLUMNS`] columns like [`decompose_lu_in_place`], one column at a time.
fn decompose_lu_panel<T: Field>(mut a: MatMut<'_, T>, pivots: &mut [usize]) {
    let (m, n) = a.shape();
    for j in 0..n {
        let mut pivot = j;
        let mut largest = a[(j, j)].sum_of_part_magnitudes();
        for i in j + 1..m {
            let size = a[(i, j)].sum_of_part_magnitudes();
            if size > largest {
                (pivot, largest) = (i, size);
            }
        }
        pivots[j] = pivot;
        if pivot != j {
            swap_rows(a.rb_mut(), j, pivot);
        }
        let diagonal = a[(j, j)];
        if diagonal == T::zero() {
            continue;
        }
        // A reciprocal is less exact than divisions, and overflows for subnormal pivots.
        for i in j + 1..m {
            a[(i, j)] = a[(i, j)].quotient(diagonal);
        }
        if m * n <= MAX_PANEL_COLUMNS * MAX_PANEL_COLUMNS {
            for column in j + 1..n {
                let factor = a[(j, column)];
                for i in j + 1..m {
                    let product = a[(i, j)] * factor;
                    a[(i, column)] -= product;
                }
            }
        } else {
            let (_, right, below, rest) = a.rb_mut().split_at_mut(j + 1, j + 1);
            matmul(rest, Accum::Add, below.rb().col(j).as_mat(), right.rb().row(j).as_mat(), -T::one(), Par::Seq);
        }
    }
}

fn swap_rows<T: Field>(mut a: MatMut<'_, T>, i: usize, j: usize) {
    for column in 0..a.ncols() {
        let (x, y) = (a[(i, column)], a[(j, column)]);
        (a[(i, column)], a[(j, column)]) = (y, x);
    }
}

/// Interchanges row i with row `pivots[i]`, for i in ascending order. The elements of each column of `a` are contiguous.
fn apply_pivots<T: Field>(a: MatMut<'_, T>, pivots: &[usize]) {
    for column in a.col_iter_mut().filter_map(ColMut::try_as_col_major_mut) {
        let column = column.as_slice_mut();
        pivots.iter().enumerate().for_each(|(i, &pivot)| column.swap(i, pivot));
    }
}

/// Returns whether the upper factor of a decomposition has a zero on its diagonal.
fn is_singular<T: Field>(factors: MatRef<'_, T>) -> bool {
    (0..factors.nrows()).any(|i| factors[(i, i)] == T::zero())
}

/// Replaces the right-hand sides in the columns of `x` by the solutions of the system with these LU factors and pivots.
fn solve_factored<T: Field>(factors: MatRef<'_, T>, pivots: &[usize], x: MatMut<'_, T>, team: ThreadsPerMatrix) {
    let cost = x.nrows().saturating_mul(x.nrows()).saturating_mul(x.ncols()) / 4;
    team.for_each_block(x, cost, |_, mut block| {
        apply_pivots(block.rb_mut(), pivots);
        solve_unit_lower_triangular_in_place(factors, block.rb_mut(), Par::Seq);
        solve_triangular_in_place(factors, false, block);
    });
}

/// Writes the inverse of the matrix with these LU factors and pivots to `x`.
fn invert_factored<T: Field>(factors: MatRef<'_, T>, pivots: &[usize], mut x: MatMut<'_, T>, team: ThreadsPerMatrix) {
    let n = x.nrows();
    team.for_each_block(x.rb_mut(), n.saturating_mul(n).saturating_mul(n) / 3, |first, mut block| {
        block.fill(T::zero());
        block.rb_mut().subrows_mut(first, n - first).diagonal_mut().fill(T::one());
        // Columns of the inverse of the lower factor are zero above the diagonal, so the first solution starts at row `first`.
        let lower = factors.submatrix(first, first, n - first, n - first);
        solve_unit_lower_triangular_in_place(lower, block.rb_mut().subrows_mut(first, n - first), Par::Seq);
        solve_triangular_in_place(factors, false, block);
    });
    // The factors belong to the matrix with interchanged rows. Interchanging the columns of that matrix's inverse gives the inverse of the
    // original matrix.
    for (i, &pivot) in pivots.iter().enumerate().rev() {
        if i != pivot {
            let (left, right) = x.rb_mut().split_at_col_mut(pivot);
            swap_columns(left.col_mut(i), right.col_mut(0));
        }
    }
}

fn swap_columns<T: Field>(x: ColMut<'_, T>, y: ColMut<'_, T>) {
    for (x, y) in x.iter_mut().zip(y.iter_mut()) {
        std::mem::swap(x, y);
    }
}

/// Scratch memory: a matrix, its right-hand sides, and its pivots.
type Scratch<T> = (HostVec<T>, HostVec<T>, Vec<usize>);

fn allocate_lu_scratch<T: Field>(batch: &MatrixBatch, n: usize, columns: usize) -> Result<Scratch<T>> {
    let mut pivots = Vec::new();
    cuprum_core::host_buffer::try_reserve("lu", &mut pivots, n)?;
    pivots.resize(n, 0);
    Ok((batch.allocate_values(n * n)?, batch.allocate_values(n * columns)?, pivots))
}

/// Returns the approximate number of operations of one decomposition of extent `n` and of the solution for `columns` right-hand sides.
fn operation_count(n: usize, columns: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n / 3 + columns + 1)
}

/// Solves linear systems.
pub(crate) fn solve_linear_systems<T: Field>(call: &Call) -> Result<Outcome> {
    let (a, b) = (MatrixStack::<T>::new(&call.inputs[0])?, MatrixStack::<T>::new(&call.inputs[1])?);
    solve_systems(call, &a, Some(&b))
}

/// Inverts matrices.
pub(crate) fn invert_matrices<T: Field>(call: &Call) -> Result<Outcome> {
    solve_systems(call, &MatrixStack::<T>::new(&call.inputs[0])?, None)
}

/// Solves the systems of the matrices `a` with the right-hand sides `b`, or inverts the matrices if there are no right-hand sides.
fn solve_systems<T: Field>(call: &Call, a: &MatrixStack<T>, b: Option<&MatrixStack<T>>) -> Result<Outcome> {
    let n = a.rows;
    let columns = b.map_or(n, |b| b.columns);
    let batch = MatrixBatch::new(call, a.len(), operation_count(n, columns));
    let team = batch.threads_per_matrix();
    let mut output = Output::allocate(call, 0)?;
    let solutions = output.elements_mut()?.typed_slice::<T>();
    batch.for_each_task(
        solutions.chunks_mut(batch.per_task * n * columns),
        || allocate_lu_scratch::<T>(&batch, n, columns),
        |(matrix, x, pivots), first, solutions| {
            for (index, solution) in (first..).zip(solutions.chunks_mut(n * columns)) {
                a.copy_matrix(team, index, matrix);
                let mut factors = MatMut::from_column_major_slice_mut(matrix, n, n);
                decompose_lu_in_place(factors.rb_mut(), pivots, team);
                if is_singular(factors.rb()) {
                    return Err(MatrixFailure::Matrix(index, Singular));
                }
                match b {
                    Some(b) => {
                        b.copy_matrix(team, index, x);
                        solve_factored(factors.rb(), pivots, MatMut::from_column_major_slice_mut(x, n, columns), team);
                    }
                    None => invert_factored(factors.rb(), pivots, MatMut::from_column_major_slice_mut(x, n, n), team),
                }
                store_in_c_order(team, x, n, solution);
            }
            Ok(())
        },
    )?;
    call.outcome_from_buffers([output.into_buffer()])
}

/// Computes LU decompositions: both factors packed into one matrix, and the pivots.
pub(crate) fn decompose_lu<T: Field>(call: &Call) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let batch = MatrixBatch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k));
    let team = batch.threads_per_matrix();
    let (mut factors, mut pivots) = (Output::allocate(call, 0)?, Output::allocate(call, 1)?);
    let items = factors.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * m * n);
    let items = items.zip(pivots.elements_mut()?.typed_slice::<i32>().chunks_mut(batch.per_task * k));
    batch.for_each_task(
        items,
        || Ok((batch.allocate_values::<T>(m * n)?, allocate_lu_scratch::<T>(&batch, k, 0)?.2)),
        |(matrix, order), first, (factors, pivots)| {
            let results = factors.chunks_mut(m * n).zip(pivots.chunks_mut(k));
            for (index, (factors, pivots)) in (first..).zip(results) {
                a.copy_matrix(team, index, matrix);
                decompose_lu_in_place(MatMut::from_column_major_slice_mut(matrix, m, n), order, team);
                store_in_c_order(team, matrix, m, factors);
                pivots.iter_mut().zip(order.iter()).for_each(|(to, &pivot)| *to = i32::try_from(pivot).unwrap_or(i32::MAX));
            }
            Ok(())
        },
    )?;
    call.outcome_from_buffers([factors.into_buffer(), pivots.into_buffer()])
}

/// Computes determinants, or their signs and logarithms. Products and logarithms of the pivots are in double precision.
pub(crate) fn compute_determinants<T: Widen>(call: &Call, log: bool) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), operation_count(n, 0));
    let team = batch.threads_per_matrix();
    let mut values = Output::allocate(call, 0)?;
    let scratch = || Ok((allocate_lu_scratch::<T>(&batch, n, 0)?, batch.allocate_values::<T::Wide>(n)?));
    let decompose = |(matrix, _, pivots): &mut Scratch<T>, diagonal: &mut [T::Wide], index: usize| {
        a.copy_matrix(team, index, matrix);
        decompose_lu_in_place(MatMut::from_column_major_slice_mut(matrix, n, n), pivots, team);
        let interchanges = pivots.iter().enumerate().filter(|&(i, &pivot)| i != pivot).count();
        diagonal.iter_mut().zip(matrix.iter().step_by(n + 1)).for_each(|(to, v)| *to = v.widen());
        if interchanges % 2 == 0 { T::Wide::one() } else { -T::Wide::one() }
    };
    let chunks = values.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task);
    if log {
        let mut logs = Output::allocate(call, 1)?;
        batch.for_each_task(
            chunks.zip(logs.elements_mut()?.typed_slice::<T::Base>().chunks_mut(batch.per_task)),
            scratch,
            |(scratch, diagonal), first, (signs, logs)| {
                for (index, (to_sign, to_log)) in (first..).zip(signs.iter_mut().zip(logs)) {
                    let (sign, log) = sign_and_log_of_product(decompose(scratch, diagonal, index), diagonal);
                    (*to_sign, *to_log) = (T::narrow(sign), T::narrow_real(log));
                }
                Ok(())
            },
        )?;
        return call.outcome_from_buffers([values.into_buffer(), logs.into_buffer()]);
    }
    batch.for_each_task(chunks, scratch, |(scratch, diagonal), first, values| {
        for (index, value) in (first..).zip(values) {
            *value = T::narrow(product_without_overflow(decompose(scratch, diagonal, index), diagonal));
        }
        Ok(())
    })?;
    call.outcome_from_buffers([values.into_buffer()])
}

/// Returns `sign` times the product of `values`. If a partial product overflows or underflows, computes the result as the exponential of
/// a sum of logarithms, as NumPy does.
fn product_without_overflow<T: Field>(sign: T, values: &[T]) -> T {
    let direct = values.iter().try_fold(sign, |product, &v| {
        let product = product * v;
        let size = product.max_part_magnitude();
        (size >= T::Base::min_positive_value() && size.is_finite()).then_some(product)
    });
    if let Some(direct) = direct {
        return direct;
    }
    let (sign, log) = sign_and_log_of_product(sign, values);
    sign.times_real(Float::exp(log))
}

/// Returns the product of `sign` and the phases `v / |v|` of all `values`, and the sum of the logarithms of their magnitudes.
fn sign_and_log_of_product<T: Field>(mut sign: T, values: &[T]) -> (T, T::Base) {
    let mut log = T::Base::zero();
    for value in values {
        let size = value.magnitude();
        if size == T::Base::zero() {
            return (T::zero(), T::Base::neg_infinity());
        }
        sign *= value.phase(size);
        log += Float::ln(size);
    }
    (sign, log)
}
