//! Tests every kernel family against simple loops, over layouts, dtypes and numbers of threads.

mod contract;
mod create;
mod histogram;
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
