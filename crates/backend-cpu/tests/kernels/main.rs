//! Every family of kernels against plain loops, over layouts, dtypes and numbers of threads.

mod contract;
mod create;
mod map;
mod random;
mod reduce;
mod scan;
mod support;
mod take;
