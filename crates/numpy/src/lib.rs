//! NumPy's functions that are compositions of operations of the crate `cuprum_core`, with one module for each page of NumPy's reference.
//!
//! Functions declared by `#[numpy(..)]` can also be called from `eval`, by their NumPy names. Compositions need no kernels and run on every
//! device.
#![forbid(unsafe_code)]

// The code that `#[numpy(..)]` generates refers to the facade crate, `cuprum`.
extern crate cuprum_core as cuprum;

mod array_text;
mod binary_operations;
mod composed_ufuncs;
mod coordinate_grids;
mod creation;
mod data_types;
pub mod fft;
mod float_spacing_and_i0;
mod functional_programming;
mod indexing;
mod inserting_data;
mod kron_cross_and_matvec;
pub mod linalg;
mod logic_functions;
mod manipulation;
mod mathematics;
mod memory_layout;
mod nan_functions;
mod number_text;
mod operand_and_slice_helpers;
mod padding;
mod polynomials;
mod roots_and_polyfit;
mod set_routines;
mod sorting;
mod statistics;
mod type_classes;
pub mod ufunc;
mod window_functions;

pub use array_text::{array_repr, array_str};
pub use binary_operations::{BitOrder, base_repr, binary_repr, packbits, unpackbits};
pub use composed_ufuncs::{angle, bitwise_count, fabs, float_power, heaviside, logaddexp, logaddexp2, real_if_close, signbit, sinc};
pub use coordinate_grids::{GridPart, GridRange, c_, mgrid, ogrid, r_};
pub use creation::{
    Indexing, Samples, array_, asarray, asarray_chkfinite, asfortranarray, asnumpy, diag, diagflat, fromiter, geomspace, identity,
    isfortran, logspace, meshgrid, tri, tril, triu, vander,
};
pub use data_types::{
    Casting, FloatInfo, IntegerInfo, TypeSource, can_cast, common_type, finfo, iinfo, isdtype, isscalar, min_scalar_type, promote_types,
    result_type,
};
pub use float_spacing_and_i0::{i0, nextafter, spacing};
pub use functional_programming::{apply_along_axis, apply_over_axes, fromfunction, mask_indices, vectorize};
pub use indexing::{
    Bounds, Order, choose, diag_indices, diag_indices_from, indices, ix_, piecewise, ravel_multi_index, select, sparse_indices,
    tril_indices, tril_indices_from, triu_indices, triu_indices_from, unravel_index,
};
pub use inserting_data::{copyto, fill_diagonal, place, put, put_along_axis, putmask};
pub use kron_cross_and_matvec::{CrossAxes, cross, kron, matvec, vecmat};
pub use logic_functions::{
    Tolerance, allclose, array_equal, array_equiv, isclose, iscomplex, iscomplexobj, isneginf, isposinf, isreal, isrealobj,
};
pub use manipulation::{
    Block, Sections, append, array_split, atleast_1d, atleast_2d, atleast_3d, block, broadcast_arrays, broadcast_shapes, column_stack,
    delete, dsplit, dstack, fliplr, flipud, hsplit, hstack, insert, matrix_transpose, repeat, resize, roll, rollaxis, rot90, split, tile,
    trim_zeros, unstack, vsplit, vstack,
};
pub use mathematics::{
    ConvolutionMode, Spacing, convolve, correlate, cumulative_prod, cumulative_sum, diff, ediff1d, gradient, interp, nan_to_num, trapezoid,
    unwrap,
};
pub use memory_layout::{Requirement, ascontiguousarray, from_dlpack, may_share_memory, require, shares_memory};
pub use nan_functions::{nanargmax, nanargmin, nancumprod, nancumsum, nanmean, nanprod, nanstd, nansum, nanvar};
pub use number_text::{FloatStyle, TrimZeros, format_float_positional, format_float_scientific, fromstring};
pub use padding::{PadMode, pad};
pub use polynomials::{poly, polyadd, polyder, polydiv, polyint, polymul, polysub, polyval};
pub use roots_and_polyfit::{polyfit, polyfit_covariance, polyfit_details, roots};
pub use set_routines::{intersect1d, intersect1d_indices, isin, setdiff1d, setxor1d, union1d, unique_along};
pub use sorting::{lexsort, sort_complex};
pub use statistics::{
    CovarianceOptions, QuantileMethod, Quantiles, average, average_and_weights, corrcoef, cov, histogram2d, histogramdd, median, nanmedian,
    nanpercentile, nanquantile, percentile, ptp, quantile,
};
pub use type_classes::{TypeClass, issubdtype, iterable, mintypecode, typename};
pub use window_functions::{bartlett, blackman, hamming, hanning, kaiser};
