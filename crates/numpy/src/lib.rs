//! NumPy's functions that are compositions of core's operations, with one file for each page of NumPy's reference.
//!
//! Every function is declared by `#[numpy(..)]`, so that it can be called by name. Compositions need no kernels and run on every device.
#![forbid(unsafe_code)]

// Paths that `#[numpy(..)]` writes begin with the facade's name.
extern crate cuprum_core as cuprum;

mod common;
mod creation;
mod indexing;
pub mod linalg;
mod logic;
mod manipulation;
mod mathematics;
mod nan;
mod padding;
mod polynomials;
mod sets;
mod sorting;
mod statistics;
mod ufuncs;
mod windows;

pub use creation::{Indexing, Samples, asarray, asnumpy, diag, diagflat, geomspace, identity, logspace, meshgrid, tri, tril, triu, vander};
pub use indexing::{
    Bounds, Order, diag_indices, diag_indices_from, indices, ix_, piecewise, ravel_multi_index, select, sparse_indices, take_along_axis,
    tril_indices, tril_indices_from, triu_indices, triu_indices_from, unravel_index,
};
pub use logic::{Tolerance, allclose, array_equal, array_equiv, isclose, iscomplex, iscomplexobj, isneginf, isposinf, isreal, isrealobj};
pub use manipulation::{
    Block, Sections, append, array_split, atleast_1d, atleast_2d, atleast_3d, block, broadcast_arrays, broadcast_shapes, column_stack,
    delete, dsplit, dstack, fliplr, flipud, hsplit, hstack, insert, matrix_transpose, repeat, resize, roll, rollaxis, rot90, split, tile,
    trim_zeros, unstack, vsplit, vstack,
};
pub use mathematics::{
    ConvolutionMode, Spacing, convolve, correlate, cumulative_prod, cumulative_sum, diff, ediff1d, gradient, interp, nan_to_num, trapezoid,
    unwrap,
};
pub use nan::{nanargmax, nanargmin, nancumprod, nancumsum, nanmean, nanprod, nanstd, nansum, nanvar};
pub use padding::{PadMode, pad};
pub use polynomials::{poly, polyadd, polyder, polydiv, polyint, polymul, polysub, polyval};
pub use sets::{intersect1d, intersect1d_indices, isin, setdiff1d, setxor1d, union1d};
pub use sorting::{lexsort, sort_complex};
pub use statistics::{
    Covariance, QuantileMethod, average, average_and_weights, corrcoef, cov, histogram2d, histogramdd, median, nanmedian, nanpercentile,
    nanquantile, percentile, ptp, quantile,
};
pub use ufuncs::{angle, bitwise_count, fabs, float_power, heaviside, logaddexp, logaddexp2, real_if_close, signbit, sinc};
pub use windows::{bartlett, blackman, hamming, hanning};
