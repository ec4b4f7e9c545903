//! Tests every kernel family against simple loops, over layouts, dtypes and numbers of threads.

mod contract;
mod create;
mod distributions;
#[cfg(feature = "fft")]
mod fft;
mod histogram;
#[cfg(feature = "linalg")]
mod linalg;
mod map;
mod memory;
mod random;
mod reduce;
mod scan;
mod search;
mod select;
mod sort;
mod support;
mod take;
