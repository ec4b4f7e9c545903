//! Functions of square matrices, such as logarithms and square roots, computed from the complex Schur form in double precision.

use cuprum_core::call::MatrixFunction;
use cuprum_core::error::LinAlgFailure::{self, NotFinite, Singular};
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::Output;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use num_traits::Zero;

use crate::double_precision::Widen;
use crate::matrix_batch::{MatrixBatch, MatrixFailure};
use crate::matrix_element::{C, Field, square_root};
use crate::matrix_logarithm::{LogarithmScratch, triangular_logarithm};
use crate::matrix_square_root::triangular_square_root;
use crate::matrix_stack::{MatrixStack, store_converted_in_c_order};
use crate::power_of_two_scale::PowerOfTwoScale;
use crate::schur_form::{SchurForm, SchurScratch};

/// The Schur decomposition of one matrix in complex numbers: the triangular form and the unitary basis.
struct ComplexSchurForm {
    t: Vec<C>,
    z: Vec<C>,
    /// Whether the function of the matrix is a real matrix.
    has_real_values: bool,
}

/// A double-precision element type of matrices to which matrix functions can be applied.
pub(crate) trait MatrixFunctionElement: Sized + Copy {
    /// Whether the type is real.
    const IS_REAL: bool;
    fn into_complex(self) -> C;
}

impl MatrixFunctionElement for f64 {
    const IS_REAL: bool = true;
    fn into_complex(self) -> C {
        self.into()
    }
}

impl MatrixFunctionElement for C {
    const IS_REAL: bool = false;
    fn into_complex(self) -> C {
        self
    }
}

impl ComplexSchurForm {
    /// Sets `self` to the Schur form `t` with the unitary matrix `z`, converted to complex numbers. The 2-by-2 diagonal blocks of a real
    /// form become triangular.
    fn set_from_schur_form<W: MatrixFunctionElement>(&mut self, t: &[W], z: &[W], n: usize) {
        let copy = |to: &mut [C], from: &[W]| to.iter_mut().zip(from).for_each(|(to, v)| *to = v.into_complex());
        copy(&mut self.t, t);
        copy(&mut self.z, z);
        let is_block = |t: &[C], i: usize| i + 1 < n && t[i * n + i + 1] != C::ZERO;
        let follows_block = |t: &[C], i: usize| i > 0 && t[(i - 1) * n + i] != C::ZERO;
        let is_positive = |i: usize| is_block(&self.t, i) || follows_block(&self.t, i) || self.t[i * n + i].re >= 0.0;
        self.has_real_values = W::IS_REAL && (0..n).all(is_positive);
        (0..n).for_each(|i| {
            if is_block(&self.t, i) {
                self.triangularize_block(n, i);
            }
        });
        // Replaces imaginary parts of -0.0 by 0.0, so that eigenvalues on a branch cut are on the upper side of the cut.
        self.t.iter_mut().step_by(n + 1).filter(|v| v.im == 0.0).for_each(|v| v.im = 0.0);
    }

    /// Zeroes the element below the diagonal in column `i` by a unitary transformation of two rows and two columns.
    fn triangularize_block(&mut self, n: usize, i: usize) {
        let [a, b, c, d] = [(i, i), (i, i + 1), (i + 1, i), (i + 1, i + 1)].map(|(row, column)| self.t[column * n + row]);
        let half = (a - d) * 0.5;
        // The block [[a, b], [c, d]] has the eigenvector (shift, c) for the eigenvalue d + shift.
        let shift = half + square_root(half * half + b * c);
        let length = shift.norm().hypot(c.norm());
        let (x, y) = (shift / length, c / length);
        let columns = |matrix: &mut [C], rows: usize| {
            for row in 0..rows {
                let (p, q) = (matrix[i * n + row], matrix[(i + 1) * n + row]);
                (matrix[i * n + row], matrix[(i + 1) * n + row]) = (p * x + q * y, q * x.conj() - p * y.conj());
            }
        };
        columns(&mut self.t, i + 2);
        columns(&mut self.z, n);
        for column in i..n {
            let (p, q) = (self.t[column * n + i], self.t[column * n + i + 1]);
            (self.t[column * n + i], self.t[column * n + i + 1]) = (p * x.conj() + q * y.conj(), q * x - p * y);
        }
        self.t[i * n + i + 1] = C::ZERO;
    }
}

/// Replaces `b` by `a @ b`, or by `b @ aᴴ` if `adjoint` is set. `product` is scratch memory.
fn multiply_in_place(a: &[C], b: &mut [C], product: &mut [C], n: usize, adjoint: bool) {
    let matrix = |values| MatRef::from_column_major_slice(values, n, n);
    let to = MatMut::from_column_major_slice_mut(product, n, n);
    if adjoint {
        matmul(to, Accum::Replace, matrix(&*b), matrix(a).adjoint(), C::ONE, Par::Seq);
    } else {
        matmul(to, Accum::Replace, matrix(a), matrix(&*b), C::ONE, Par::Seq);
    }
    b.copy_from_slice(product);
}

/// Computes `function` of each matrix.
pub(crate) fn compute_matrix_function<T: Widen<Wide: SchurForm + MatrixFunctionElement>>(
    call: &Call,
    function: MatrixFunction,
) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n).saturating_mul(100));
    let team = batch.threads_per_matrix();
    let mut output = Output::allocate(call, 0)?;
    let items = output.elements_mut()?.typed_slice::<T::Eigenvalue>().chunks_mut(batch.per_task * n * n);
    let scratch = || {
        let real = (batch.allocate_zeros::<T::Wide>(n * n)?, batch.allocate_zeros::<T::Wide>(n * n)?);
        let form = ComplexSchurForm { t: batch.allocate_zeros(n * n)?, z: batch.allocate_zeros(n * n)?, has_real_values: false };
        let result = (batch.allocate_zeros::<C>(n * n)?, batch.allocate_zeros::<C>(n * n)?);
        let logarithm = matches!(function, MatrixFunction::Logarithm).then(|| LogarithmScratch::allocate(&batch, n)).transpose()?;
        Ok((SchurScratch::allocate(&batch, n)?, real, form, result, logarithm))
    };
    batch.for_each_task(items, scratch, |(schur, (t, z), form, (result, product), logarithm), first, to| {
        for (index, to) in (first..).zip(to.chunks_mut(n * n)) {
            let failed = |failure: LinAlgFailure| MatrixFailure::Matrix(index, failure);
            a.copy_converted(team, index, t, T::widen);
            let is_triangular = t.chunks(n).enumerate().all(|(j, column)| column[j + 1..].iter().all(|v| *v == T::Wide::zero()));
            let Some(mut scale) = PowerOfTwoScale::scale_into_lapack_range(t) else { return Err(failed(NotFinite)) };
            // A triangular matrix is its own Schur form. Its eigenvalues are exact, so the matrix is used without scaling if a scaled
            // diagonal element is subnormal or zero.
            if is_triangular {
                if t.iter().step_by(n + 1).any(|v| v.magnitude() < f64::MIN_POSITIVE) {
                    a.copy_converted(team, index, t, T::widen);
                    scale = PowerOfTwoScale::identity();
                }
            } else {
                schur.compute_schur_form(t, z, n).map_err(failed)?;
            }
            form.set_from_schur_form(t, z, n);
            let exists = match logarithm {
                Some(scratch) => triangular_logarithm(&form.t, result, n, scratch),
                None => triangular_square_root(&form.t, result, n),
            };
            if !exists {
                return Err(failed(Singular));
            }
            if !is_triangular {
                multiply_in_place(&form.z, result, product, n, false);
                multiply_in_place(&form.z, result, product, n, true);
            }
            let root = scale.sqrt_of_scale();
            match function {
                MatrixFunction::Logarithm => result.iter_mut().step_by(n + 1).for_each(|v| *v += 2.0 * root.ln()),
                MatrixFunction::SquareRoot => result.iter_mut().for_each(|v| *v *= root),
            }
            if form.has_real_values {
                result.iter_mut().for_each(|v| v.im = 0.0);
            }
            store_converted_in_c_order(team, result, n, to, T::narrow_complex);
        }
        Ok(())
    })?;
    call.outcome_from_buffers([output.into_buffer()])
}
