//! Every family of kernels against plain loops, over layouts, dtypes and numbers of threads.

mod create;
mod map;
mod reduce;
mod support;
