//! CUDA kernels of the family `Linalg`: matrix decompositions and solutions of linear systems. The kernels in `small_matrix_kernels` use
//! one thread or one thread block per matrix, those in `warp_kernels` a warp or a part of it; both serve small matrices.
//! `library_decomposition` calls cuSOLVER and cuBLAS for large matrices, for batches of middle-sized ones, and for eigenvalues of general
//! matrices.

#[allow(unsafe_code)] // cuSOLVER's C interface
pub mod cusolver;
mod decomposition_path;
mod library_decomposition;
mod linalg_problem;
mod small_matrix_kernels;
mod warp_kernels;

use cuprum_core::call::QrMode;
use cuprum_core::{Array, Call, DType, Linalg, Outcome, Result, Work, decline};

use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::error::CudaError;
use linalg_problem::LinalgProblem;

pub use self::decomposition_path::{DecompositionPath, with_decomposition_path};

/// Returns names and sources of the kernels, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    [
        small_matrix_kernels::sources_for_compile_check(),
        warp_kernels::sources_for_compile_check(),
        library_decomposition::sources_for_compile_check(),
    ]
    .concat()
}

/// Executes `call`, an operation of the kernel family `Linalg`, on the device.
pub(crate) fn run_linear_algebra(call: &Call) -> Result<Outcome> {
    let (&Work::Linalg(task), [a, ..]) = (&call.work, call.inputs) else { decline!("not a decomposition of matrices") };
    let dtype = a.dtype();
    if !matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) || call.inputs.iter().any(|b| b.dtype() != dtype) {
        decline!("matrices of {dtype}, or of several dtypes");
    }
    if call.outputs.iter().any(|spec| !spec.layout.is_c_contiguous()) {
        decline!("outputs that are not in C order");
    }
    if matches!(task, Linalg::Schur | Linalg::Function(_) | Linalg::Qr { mode: QrMode::Raw }) {
        decline!("the host computes Schur forms, functions of matrices and QR decompositions in LAPACK's form");
    }
    let Some(problem) = LinalgProblem::new(call, task) else { decline!("matrices with too many elements") };
    let context = device::context(call.device)?;
    let path = decomposition_path::choose_decomposition_path(&problem, || library_decomposition::has_svd_batches(context));
    if path == DecompositionPath::Warp {
        return warp_kernels::run_with_warp_kernels(call, &problem);
    }
    if path != DecompositionPath::Team {
        let is_only_way = matches!(task, Linalg::Eig { .. });
        match load_library_for_task(context, task) {
            Ok(()) => return library_decomposition::run_with_library(call, context, &problem, path == DecompositionPath::LibraryBatch),
            Err(CudaError::Missing(why)) if is_only_way => decline!("{why}"),
            Err(CudaError::Missing(_)) => {}
            Err(failure) => return Err(failure).with_call_context(call),
        }
    }
    small_matrix_kernels::run_with_team_kernels(call, &problem)
}

/// Loads the library that computes `task`. Returns [`CudaError::Missing`] if no library can compute it on this thread's stream.
fn load_library_for_task(context: &'static Context, task: Linalg) -> crate::Result<()> {
    if context.is_capturing() {
        return Err(CudaError::Missing("a routine of cuSOLVER cannot be captured into a graph".into()));
    }
    match task {
        Linalg::SolveTriangular { .. } => context.blas().map(|_| ()),
        Linalg::Eig { .. } => cusolver::check_supports_general_eigen(context),
        _ => cusolver::load_cusolver(context).and_then(|()| context.blas().map(|_| ())),
    }
}
