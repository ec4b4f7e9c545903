//! Solutions of triangular systems.

use cuprum_core::call::{Form, Triangle};
use cuprum_core::error::LinAlgFailure::Singular;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::Output;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_unit_upper_triangular_in_place,
    solve_upper_triangular_in_place,
};
use faer::prelude::ReborrowMut;
use faer::traits::math_utils::recip;
use faer::{MatMut, MatRef, Par};
use num_traits::Float;

use crate::matrix_batch::{MatrixBatch, MatrixFailure};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_in_c_order};

/// Replaces the columns of `x` by the solutions of the triangular system of `a`. faer multiplies by the reciprocals of the diagonal
/// elements. If one of the reciprocals is infinite or subnormal, this function divides instead of calling faer.
pub(crate) fn solve_triangular_in_place<T: Field>(a: MatRef<'_, T>, is_lower: bool, mut x: MatMut<'_, T>) {
    let n = a.nrows();
    let has_exact_reciprocal = |v: &T| !v.max_part_magnitude().is_finite() || recip(v).max_part_magnitude().is_normal();
    if (0..n).all(|i| has_exact_reciprocal(&a[(i, i)])) {
        return match is_lower {
            true => solve_lower_triangular_in_place(a, x, Par::Seq),
            false => solve_upper_triangular_in_place(a, x, Par::Seq),
        };
    }
    for column in 0..x.ncols() {
        let mut x = x.rb_mut().col_mut(column);
        for step in 0..n {
            let (j, rest) = if is_lower { (step, step + 1..n) } else { (n - 1 - step, 0..n - 1 - step) };
            let value = x[j].quotient(a[(j, j)]);
            x[j] = value;
            for i in rest {
                x[i] -= a[(i, j)] * value;
            }
        }
    }
}

/// Solves triangular systems.
pub(crate) fn solve_triangular_systems<T: Field>(call: &Call, triangle: Triangle, form: Form, unit_diagonal: bool) -> Result<Outcome> {
    let (a, b) = (MatrixStack::<T>::new(&call.inputs[0])?, MatrixStack::<T>::new(&call.inputs[1])?);
    let (n, k) = (a.rows, b.columns);
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(k));
    let team = batch.threads_per_matrix();
    let mut output = Output::allocate(call, 0)?;
    let solutions = output.elements_mut()?.typed_slice::<T>();
    let is_lower = (triangle == Triangle::Lower) == (form == Form::Plain);
    batch.for_each_task(
        solutions.chunks_mut(batch.per_task * n * k),
        || Ok((batch.allocate_values::<T>(n * n)?, batch.allocate_values::<T>(n * k)?)),
        |(matrix, x), first, solutions| {
            for (index, solution) in (first..).zip(solutions.chunks_mut(n * k)) {
                match form {
                    Form::Plain => a.copy_matrix(team, index, matrix),
                    Form::Transposed => a.copy_transposed(team, index, matrix),
                    Form::Adjoint => a.copy_adjoint_converted(team, index, matrix, |v| v),
                }
                if !unit_diagonal && matrix.iter().step_by(n + 1).any(|v| *v == T::zero()) {
                    return Err(MatrixFailure::Matrix(index, Singular));
                }
                b.copy_matrix(team, index, x);
                let right = MatMut::from_column_major_slice_mut(x, n, k);
                let matrix = MatRef::from_column_major_slice(matrix, n, n);
                team.for_each_block(right, n.saturating_mul(n).saturating_mul(k) / 8, |_, right| match (is_lower, unit_diagonal) {
                    (true, true) => solve_unit_lower_triangular_in_place(matrix, right, Par::Seq),
                    (false, true) => solve_unit_upper_triangular_in_place(matrix, right, Par::Seq),
                    (lower, false) => solve_triangular_in_place(matrix, lower, right),
                });
                store_in_c_order(team, x, n, solution);
            }
            Ok(())
        },
    )?;
    call.outcome_from_buffers([output.into_buffer()])
}
