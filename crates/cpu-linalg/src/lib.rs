//! The CPU kernel for matrix decompositions and linear systems (kernel family `Linalg`), built on the crate `faer`.
//!
//! Each task takes some matrices of a batch. A thread copies one matrix at a time into column-major scratch memory, decomposes it there,
//! and copies the factors to the outputs. If there are fewer matrices than threads, LU, Cholesky and QR decompositions and triangular
//! solutions use all threads for each matrix, by blocks of columns. The blocks depend only on the shape of the matrix, so results do not
//! depend on the number of threads.
//!
//! The interface is internal to `cuprum-backend-cpu` and changes with it.
#![forbid(unsafe_code)]

mod balance;
mod cholesky;
mod column_blocks;
mod complex_qr_iteration;
mod double_precision;
mod eigen;
mod eigenvectors;
mod householder_panel;
mod lu;
mod matrix_batch;
mod matrix_element;
mod matrix_function;
mod matrix_logarithm;
mod matrix_square_root;
mod matrix_stack;
mod power_of_two_scale;
mod qr;
mod schur;
mod schur_form;
mod svd;
mod triangular;

use cuprum_core::{Array, Call, Complex, DType, Linalg, Outcome, Result, Work, decline};

use self::double_precision::Widen;
use self::matrix_function::MatrixFunctionElement;
use self::schur_form::SchurForm;

/// Computes the outputs of `call`, a matrix decomposition, matrix function or solution of linear systems.
pub fn compute_linalg_operation(call: &Call) -> Result<Outcome> {
    let (&Work::Linalg(task), [a, ..]) = (&call.work, call.inputs) else { decline!("not a decomposition of matrices") };
    if call.inputs.iter().any(|b| b.dtype() != a.dtype()) {
        decline!("matrices of different dtypes");
    }
    match a.dtype() {
        DType::F32 => compute_for_element_type::<f32>(call, task),
        DType::F64 => compute_for_element_type::<f64>(call, task),
        DType::C64 => compute_for_element_type::<Complex<f32>>(call, task),
        DType::C128 => compute_for_element_type::<Complex<f64>>(call, task),
        other => decline!("matrices of {other}"),
    }
}

fn compute_for_element_type<T: Widen<Wide: SchurForm + MatrixFunctionElement>>(call: &Call, task: Linalg) -> Result<Outcome> {
    match task {
        Linalg::Solve => lu::solve_linear_systems::<T>(call),
        Linalg::SolveTriangular { triangle, form, unit_diagonal } => {
            triangular::solve_triangular_systems::<T>(call, triangle, form, unit_diagonal)
        }
        Linalg::Inverse => lu::invert_matrices::<T>(call),
        Linalg::Determinant { log } => lu::compute_determinants::<T>(call, log),
        Linalg::Cholesky { triangle } => cholesky::compute_factors::<T>(call, triangle),
        Linalg::Lu => lu::decompose_lu::<T>(call),
        Linalg::Qr { mode } => qr::decompose_qr::<T>(call, mode),
        Linalg::Svd { vectors } => svd::decompose_svd::<T>(call, vectors),
        Linalg::Eigh { triangle, vectors } => eigen::decompose_hermitian::<T>(call, triangle, vectors),
        Linalg::Eig { vectors } => eigen::decompose_general::<T>(call, vectors),
        Linalg::Schur => schur::decompose_schur::<T>(call),
        Linalg::Function(function) => matrix_function::compute_matrix_function::<T>(call, function),
    }
}
