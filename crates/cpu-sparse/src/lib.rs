//! The CPU kernel for products and triangular solves of sparse matrices in CSR format (kernel family `Sparse`).
//!
//! Each task takes consecutive rows with about equally many elements. The boundaries of tasks depend only on the matrix, and the order of
//! the terms of a sum only on the row, so results do not depend on the number of threads. The interface is internal to
//! `cuprum-backend-cpu` and changes with it.
#![forbid(unsafe_code)]

mod csr_structure;
mod dense_product;
mod sampled_product;
mod sparse_element;
mod sparse_index;
mod sparse_product;
mod triangular_solve;

use cuprum_core::call::Sparse;
use cuprum_core::{Array, Call, Complex, DType, Outcome, Result, Work, decline};
use cuprum_cpu_base::typed_views::unsigned_dtype;

use self::sparse_element::SparseElement;
use self::sparse_index::SparseIndex;

/// Computes the outputs of `call`, an operation on sparse matrices.
pub fn compute_sparse_operation(call: &Call) -> Result<Outcome> {
    let (Work::Sparse(request), [_, indices, values, ..]) = (&call.work, call.inputs) else {
        decline!("not an operation on a sparse matrix")
    };
    // Sums and products of signed and unsigned integers have the same bits, so signed integers use the unsigned code.
    match unsigned_dtype(values.dtype()) {
        DType::Bool => compute_for_element_type::<bool>(call, request, indices.dtype()),
        DType::U8 => compute_for_element_type::<u8>(call, request, indices.dtype()),
        DType::U16 => compute_for_element_type::<u16>(call, request, indices.dtype()),
        DType::U32 => compute_for_element_type::<u32>(call, request, indices.dtype()),
        DType::U64 => compute_for_element_type::<u64>(call, request, indices.dtype()),
        DType::F32 => compute_for_element_type::<f32>(call, request, indices.dtype()),
        DType::F64 => compute_for_element_type::<f64>(call, request, indices.dtype()),
        DType::C64 => compute_for_element_type::<Complex<f32>>(call, request, indices.dtype()),
        DType::C128 => compute_for_element_type::<Complex<f64>>(call, request, indices.dtype()),
        other => decline!("values of {other}"),
    }
}

fn compute_for_element_type<T: SparseElement>(call: &Call, request: &Sparse, index: DType) -> Result<Outcome> {
    match index {
        DType::I32 => compute_for_index_type::<T, i32>(call, request),
        DType::I64 => compute_for_index_type::<T, i64>(call, request),
        other => decline!("indices of {other}"),
    }
}

fn compute_for_index_type<T: SparseElement, I: SparseIndex>(call: &Call, request: &Sparse) -> Result<Outcome> {
    match *request {
        Sparse::Multiply => dense_product::multiply_by_dense::<T, I>(call),
        Sparse::Product { columns } => sparse_product::multiply_sparse_matrices::<T, I>(call, columns),
        Sparse::Sample => sampled_product::compute_sampled_product::<T, I>(call),
        Sparse::SolveTriangular { triangle, unit_diagonal } => {
            triangular_solve::solve_triangular_system::<T, I>(call, triangle, unit_diagonal)
        }
    }
}
