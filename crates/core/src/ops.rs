//! Operations, one file per family: definitions of ops, result shapes and dtypes, public functions and methods, and compositions of other
//! operations.
//!
//! The functions check their arguments, plan calls and dispatch them. Kernels are in the backends.

pub mod assignment;
mod axis_iteration;
pub mod bin_rules;
mod bit_views;
mod bound_arguments;
mod collection_conversions;
pub mod contract;
pub mod creation;
mod creation_options;
mod dispatch_call;
pub mod einsum;
pub mod elementwise;
pub mod fft;
pub mod function;
pub mod histogram;
pub mod index;
pub mod linalg;
pub mod linspace;
pub mod manipulation;
mod nested_lists;
mod op_table;
pub mod operators;
mod parameter_lists;
pub mod python_value;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod scatter;
pub mod search;
pub mod segments;
pub mod select;
mod sequence_items;
pub mod sort;
pub mod sparse;
pub mod take;
pub mod user_defined_operations;
pub mod views;

pub use axis_iteration::AxisIter;
pub(crate) use dispatch_call::{common_device, dispatch_call, dispatch_single_output, fuse_flattened_input, ops};
pub use op_table::OP_TABLE;
