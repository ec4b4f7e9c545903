//! Properties of array functions over random shapes, memory layouts, dtypes and arguments.
//!
//! The expected results come from loops over `Vec`s with explicit index arithmetic (`reference.rs`). The seed is fixed.
//! `PROPTEST_CASES` sets the number of cases of each property, `PROPTEST_RNG_SEED` another seed.

mod arrays;
mod elementwise;
mod join_and_split;
mod layouts;
mod matmul;
mod reductions;
mod reference;
mod roll_pad_tile_repeat;
mod scans;
mod sort_and_search;
mod take_put_assign;
