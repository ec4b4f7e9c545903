//! Operations, one file per family: definitions of ops, result shapes and dtypes, public functions and methods, composites.
//!
//! These functions check, plan and dispatch. Kernels are in the backends.

pub mod assignment;
pub mod contract;
mod conversions;
pub mod creation;
pub mod einsum;
pub mod elementwise;
pub mod function;
pub mod histogram;
pub mod index;
pub mod indexing;
mod items;
mod iteration;
pub mod manipulation;
mod nested;
pub mod operators;
pub mod random;
pub mod reduce;
mod run;
pub mod scan;
pub mod search;
pub mod segments;
pub mod select;
pub mod sort;
mod table;
pub mod user_defined;
pub mod value;
pub mod views;

pub use iteration::AxisIter;
pub(crate) use run::{flat_prologue, one_device, ops, run, run_one};
pub use table::TABLE;
