//! QR decompositions of panels, by Householder reflections.
//!
//! The function `qr_in_place` of faer 0.24 omits a reflection if the norm of the rest of a column is below `16 * rows * epsilon` times the
//! norm of the column. By then, it has overwritten the head of the column, so the factors are wrong. Tall matrices have such columns. This
//! module computes every reflection as LAPACK's `larfg` does, and divides panels recursively (E. Elmroth, F. Gustavson, "Applying recursion
//! to serial and parallel QR factorization leads to better performance", 2000). The results have the form that faer's functions for blocks
//! of reflections take: `1 - v @ inv(t) @ vᴴ`, where the strict upper triangle of `t` is that of `vᴴ @ v`.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_transpose_on_the_left_in_place_scratch, apply_block_householder_transpose_on_the_left_in_place_with_conj,
};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, ColMut, Conj, MatMut, MatRef, Par, unzip, zip};
use num_traits::{Float, One, Zero};

use crate::matrix_element::Field;

/// Maximum number of elements of a panel that is decomposed column by column. Larger panels are divided.
const MAX_UNDIVIDED_ELEMENTS: usize = 48 * 48;

/// Returns the scratch memory that [`decompose_panel`] needs for panels of at most `columns` columns.
pub(crate) fn panel_scratch_size<T: Field>(rows: usize, columns: usize) -> StackReq {
    apply_block_householder_transpose_on_the_left_in_place_scratch::<T>(rows, columns, columns)
}

/// Replaces `panel` by its upper factor R, with the Householder vectors below the diagonal. Writes the coefficients of the vectors to the
/// upper triangle of `t`. The panel has at least as many rows as columns.
pub(crate) fn decompose_panel<T: Field>(mut panel: MatMut<'_, T>, mut t: MatMut<'_, T>, stack: &mut MemStack) {
    let (rows, width) = panel.shape();
    if width == 1 {
        t[(0, 0)] = T::from_real_part(make_reflection(panel.col_mut(0)));
        return;
    }
    if rows * width <= MAX_UNDIVIDED_ELEMENTS {
        for j in 0..width {
            let rest = panel.rb_mut().submatrix_mut(j, j, rows - j, width - j);
            let (mut column, right) = rest.split_at_col_mut(1);
            let mut coefficient = t.rb_mut().submatrix_mut(j, j, 1, 1);
            coefficient[(0, 0)] = T::from_real_part(make_reflection(column.rb_mut().col_mut(0)));
            apply_reflections(column.rb(), coefficient.rb(), right, stack);
        }
        let (top, bottom) = panel.rb().split_at_row(width);
        let upper = BlockStructure::UnitTriangularUpper;
        let (lower, full, one) = (BlockStructure::UnitTriangularLower, BlockStructure::Rectangular, T::one());
        triangular::matmul(t.rb_mut(), upper, Accum::Replace, top.adjoint(), upper, top, lower, one, Par::Seq);
        triangular::matmul(t, upper, Accum::Add, bottom.adjoint(), full, bottom, full, one, Par::Seq);
        return;
    }
    let half = width / 2;
    let (mut left, mut right) = panel.split_at_col_mut(half);
    let (mut t_left, mut t_above, _, mut t_right) = t.split_at_mut(half, half);
    decompose_panel(left.rb_mut(), t_left.rb_mut(), stack);
    apply_reflections(left.rb(), t_left.rb(), right.rb_mut(), stack);
    let mut right = right.subrows_mut(half, rows - half);
    decompose_panel(right.rb_mut(), t_right.rb_mut(), stack);
    let (left_top, left_bottom) = left.rb().subrows(half, rows - half).split_at_row(width - half);
    let (right_top, right_bottom) = right.rb().split_at_row(width - half);
    let (lower, full) = (BlockStructure::UnitTriangularLower, BlockStructure::Rectangular);
    triangular::matmul(t_above.rb_mut(), full, Accum::Replace, left_top.adjoint(), full, right_top, lower, T::one(), Par::Seq);
    matmul(t_above, Accum::Add, left_bottom.adjoint(), right_bottom, T::one(), Par::Seq);
}

/// Multiplies `right` by the adjoint of the reflections that `basis` and `t` describe.
fn apply_reflections<T: Field>(basis: MatRef<'_, T>, t: MatRef<'_, T>, right: MatMut<'_, T>, stack: &mut MemStack) {
    apply_block_householder_transpose_on_the_left_in_place_with_conj(basis, t, Conj::Yes, right, Par::Seq, stack);
}

/// Replaces the first element of `column` by the element of R, and the others by those of the Householder vector, whose first element is 1.
/// Returns the coefficient of the vector, half its squared norm. The coefficient is infinite if no reflection is necessary.
fn make_reflection<T: Field>(column: ColMut<'_, T>) -> T::Base {
    let (mut head, mut tail) = column.split_at_row_mut(1);
    let (one, smallest) = (T::Base::one(), T::Base::min_positive_value());
    let safe = smallest / <T::Base as Float>::epsilon();
    let mut size = tail.norm_l2();
    if size == T::Base::zero() {
        return <T::Base as Float>::infinity();
    }
    let norm = Float::hypot(head[0].magnitude(), size);
    // Near the limits of the range, reciprocals are inexact, and `norm` can be infinite.
    let scale = if norm < safe {
        one / safe
    } else if norm > one / safe {
        safe
    } else {
        one
    };
    if scale != one {
        head[0] = head[0].times_real(scale);
        zip!(tail.rb_mut()).for_each(|unzip!(v)| *v = v.times_real(scale));
        size = tail.norm_l2();
    }
    let length = head[0].magnitude();
    let norm = Float::hypot(length, size);
    // The phase of a subnormal complex number is inexact. The number is negligible, since `norm` is far larger.
    let phase = if length < smallest { T::one() } else { head[0].phase(length) };
    let first = phase.times_real(length + norm);
    let inverse = T::one().quotient(first);
    zip!(tail).for_each(|unzip!(v)| *v *= inverse);
    head[0] = (-phase.times_real(norm)).times_real(one / scale);
    let ratio = size / (length + norm);
    (one + ratio * ratio) / (one + one)
}
