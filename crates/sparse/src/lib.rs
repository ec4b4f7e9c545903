//! Sparse arrays with the semantics of `scipy.sparse`: five formats, arithmetic, products, solvers, eigenvalues and files.
//!
//! An array is a value of [`CsrArray`], [`CscArray`], [`CooArray`], [`BsrArray`] or [`DiaArray`], or of [`SparseArray`] for any format.
//! The trait [`Sparse`] has the methods that all of them share. Components are [`NdArray`]s on one device, which may be a GPU.
//! Arrays are immutable, and clones share their memory.
//!
//! | for | see |
//! |---|---|
//! | construction | [`CsrArray::new`], [`CsrArray::from_dense`], [`CooArray::new`], [`eye_array`], [`diags_array`], [`random_array`], [`vstack`], [`hstack`], [`kron`] |
//! | arithmetic, products, reductions, slices | [`Sparse`], [`SparseMath`] |
//! | linear systems | [`cg`], [`gmres`], [`bicgstab`], [`lsqr`], [`Sparse::solve_triangular`] |
//! | eigenvalues, singular values | [`eigsh`], [`svds`] |
//! | graphs | [`connected_components`], [`shortest_path`] |
//! | files | [`load_npz`], [`save_npz`], [`read_matrix_market`], [`write_matrix_market`] |
//!
//! `docs/sparse.md` compares the formats, their costs and their limits.
//!
//! # Examples
//! ```
//! # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
//! use cuprum::array;
//! use cuprum::sparse::{CsrArray, Sparse, SparseMath};
//! # fn main() -> cuprum::Result<()> {
//! let a = CsrArray::from_dense(&array![[4.0, 1.0], [0.0, 2.0]])?;
//! assert_eq!(a.nnz(), 3);
//! assert_eq!(a.matmul(&array![1.0, 2.0])?, array![6.0, 4.0]);
//! assert_eq!(a.sum(0)?, array![4.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`NdArray`]: cuprum_core::NdArray
#![forbid(unsafe_code)]

// The code that `#[numpy(..)]` generates refers to the facade crate, `cuprum`.
extern crate cuprum_core as cuprum;

mod bsr;
mod compressed;
mod construction;
mod coo;
mod csr;
mod dia;
mod eigenvalues;
mod elementwise;
mod eval_arguments;
mod eval_methods;
mod eval_value;
mod format_conversion;
mod graph_algorithms;
mod index_and_value_arrays;
mod matrix_market;
mod npz;
mod products_and_triangular_solve;
mod reductions;
mod scipy_functions;
mod slicing;
mod solve;
mod sparse_array;
mod sparse_math;
mod sparse_trait;

pub use bsr::BsrArray;
pub use construction::{diags_array, eye_array, hstack, kron, random_array, vstack};
pub use coo::CooArray;
pub use csr::{CscArray, CsrArray};
pub use dia::DiaArray;
pub use eigenvalues::{LanczosOptions, Which, eigsh, svds};
pub use graph_algorithms::{connected_components, shortest_path};
pub use matrix_market::{parse_matrix_market, read_matrix_market, write_matrix_market};
pub use npz::{load_npz, save_npz};
pub use reductions::NormOrder;
pub use scipy_functions::{bsr_array, coo_array, csc_array, csr_array, dia_array, issparse, tril, triu};
pub use solve::{FnOperator, LeastSquares, LinearOperator, LsqrOptions, Solution, SolverOptions, bicgstab, cg, gmres, lsqr};
pub use sparse_array::{Format, SparseArray};
pub use sparse_math::SparseMath;
pub use sparse_trait::Sparse;

/// Linear systems, eigenvalues and singular values, under SciPy's path.
pub mod linalg {
    pub use crate::eigenvalues::{eigsh, svds};
    pub use crate::scipy_functions::{norm, spsolve_triangular};
    pub use crate::solve::{bicgstab, cg, gmres, lsqr};
}

/// Graphs, under SciPy's path.
pub mod csgraph {
    pub use crate::graph_algorithms::{connected_components, shortest_path};
}
