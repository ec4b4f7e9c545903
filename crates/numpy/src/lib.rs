//! NumPy's functions that are compositions of core's operations, with one file for each page of NumPy's reference.
//!
//! Every function is declared by `#[numpy(..)]`, so that it can be called by name. Compositions need no kernels and run on every device.
#![forbid(unsafe_code)]

// Paths that `#[numpy(..)]` writes begin with the facade's name.
extern crate cuprum_core as cuprum;

mod common;
pub mod creation;
pub mod indexing;
pub mod linalg;
pub mod logic;
pub mod manipulation;
pub mod nan;
pub mod padding;
pub mod statistics;
pub mod windows;

pub use creation::{Indexing, Samples, asarray, asnumpy, diag, diagflat, geomspace, identity, logspace, meshgrid, tri, tril, triu, vander};
pub use indexing::{
    Bounds, Order, diag_indices, diag_indices_from, indices, ix_, piecewise, ravel_multi_index, select, sparse_indices, take_along_axis,
    tril_indices, tril_indices_from, triu_indices, triu_indices_from, unravel_index,
};
pub use logic::{Tolerance, allclose, array_equal, array_equiv, isclose};
pub use manipulation::{
    Block, Sections, append, array_split, atleast_1d, atleast_2d, atleast_3d, block, broadcast_arrays, broadcast_shapes, column_stack,
    delete, dsplit, dstack, fliplr, flipud, hsplit, hstack, insert, matrix_transpose, repeat, resize, roll, rollaxis, rot90, split, tile,
    trim_zeros, unstack, vsplit, vstack,
};
pub use nan::{nanprod, nansum};
pub use padding::{PadMode, pad};
pub use statistics::{median, ptp};
pub use windows::{bartlett, blackman, hamming, hanning};
