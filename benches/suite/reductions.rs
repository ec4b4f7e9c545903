//! User-defined reductions from source strings. This module may contain unsafe code (`docs/unsafe.md`).
#![allow(unsafe_code)]

use std::sync::LazyLock;

use cuprum::cuda::{ReductionDefinition, ReductionKernel};
use cuprum::{NdArray, Result};

static NORM: LazyLock<Result<ReductionKernel>> = LazyLock::new(|| {
    ReductionKernel::new(ReductionDefinition {
        inputs: "T x",
        output: "T y",
        map: "x * x",
        reduce: "a + b",
        post: "y = sqrt(a)",
        identity: "0",
        name: "norm",
    })
});

/// Returns Euclidean norms along an axis, or of the whole array for `None`.
pub fn norm(a: &NdArray, axis: Option<isize>) -> Result<NdArray> {
    let axes = axis.map(|axis| [axis]);
    // SAFETY: the kernel's source code reads only its element and assigns its output.
    unsafe { NORM.as_ref().map_err(Clone::clone)?.call(&[a.into()], axes.as_ref().map(|axes| &axes[..])) }
}
