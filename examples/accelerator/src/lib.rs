//! An accelerator in its own crate, as a third party would write it: `exact`, compensated sums and `hypot` of float64 arrays on the CPU.
//!
//! Algorithms: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974; C. F. Borges,
//! "An Improved Algorithm for hypot(a,b)", ACM TOMS 47, 2020. Other calls go to the next accelerator of the chain.
//!
//! The kernel declares no capabilities, so it receives neither user-defined operations nor expressions that read arrays by index.
//!
//! The crate depends only on `cuprum-core`. An application links it with `use cuprum_example_accelerator as _;`, and can then select it
//! with `CUPRUM_ACCELERATORS=exact` or `with_accelerators`.

use std::sync::Arc;

use cuprum_core::call;
use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::ops::elementwise::HYPOT;
use cuprum_core::ops::reduce::SUM;
use cuprum_core::plan::reduce::ReducePattern;
use cuprum_core::{
    Accelerator, Availability, Call, DType, DTypeSet, Family, Kernel, Outcome, Registration, Result, StoredArray, Work, decline,
};

/// The accelerator: a name, the device it serves, and its kernels.
pub static EXACT: Accelerator = Accelerator {
    name: "exact",
    device: "cpu",
    rank: 50,
    summary: "compensated sums and hypot of float64",
    probe: || Availability::Ready("always".into()),
    kernels: &[
        Kernel::new(Family::Reduce, sum).only_ops(&[SUM]).only_dtypes(DTypeSet::of(&[DType::F64])),
        Kernel::new(Family::Map, map).only_ops(&[HYPOT]).only_dtypes(DTypeSet::of(&[DType::F64])),
    ],
    base: None,
};

cuprum_core::inventory::submit! { Registration(&EXACT) }

/// Sums a contiguous float64 array. Declines every other call before any side effect.
fn sum(call: &Call) -> Result<Outcome> {
    let Work::Reduce(call::Reduce { program, plan, .. }) = &call.work else { decline!("not a reduction") };
    if plan.pattern != ReducePattern::All {
        decline!("only sums over all elements of a contiguous array, not {:?}", plan.pattern);
    }
    if !program.is_identity() {
        decline!("a fused expression: {program}");
    }
    let Some(elements) = flat_elements(&call.inputs[0], plan.reduced_size) else { decline!("not in aligned host memory") };
    let output: Arc<dyn Buffer> = Arc::new(HostBuffer::from_slice(&[neumaier(elements.iter().copied())])?);
    call.outcome_from_buffers([output])
}

/// Computes `hypot` of contiguous float64 arrays. The declaration lists one operation, but a fused expression may apply it several times.
fn map(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { program, plan }) = &call.work else { decline!("not an elementwise loop") };
    if program.single_op() != Some(HYPOT) {
        decline!("a fused expression: {program}");
    }
    if plan.dims.len() > 1 || plan.strides.iter().flatten().any(|&stride| stride != 1) {
        decline!("only contiguous arrays of one shape");
    }
    let [x, y] = call.inputs else { decline!("not two arrays") };
    let (Some(x), Some(y)) = (flat_elements(x, plan.size), flat_elements(y, plan.size)) else { decline!("not in aligned host memory") };
    let mut values = Vec::new();
    if values.try_reserve_exact(plan.size).is_err() {
        decline!("too little memory for {} elements", plan.size);
    }
    values.extend(x.iter().zip(y).map(|(&x, &y)| hypot(x, y)));
    let output: Arc<dyn Buffer> = Arc::new(HostBuffer::from_vec(values));
    call.outcome_from_buffers([output])
}

/// Returns the `count` elements of an array that a kernel has found to be contiguous, if they are in aligned host memory.
fn flat_elements(array: &StoredArray, count: usize) -> Option<&[f64]> {
    array.buffer().as_any().downcast_ref::<HostBuffer>()?.typed_elements(array.layout().offset(), count)
}

/// Returns `sqrt(x * x + y * y)` with one correction of the rounding errors, by fused multiply-adds.
fn hypot(x: f64, y: f64) -> f64 {
    // Arguments whose squares overflow or underflow, infinities and NaN are left to the standard library.
    if [x, y].iter().any(|v| !(1e-150..1e150).contains(&v.abs())) {
        return x.hypot(y);
    }
    let (large, small) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    let root = large.mul_add(large, small * small).sqrt();
    let (root_squared, large_squared) = (root * root, large * large);
    let error =
        small.mul_add(-small, root_squared - large_squared) + root.mul_add(root, -root_squared) - large.mul_add(large, -large_squared);
    root - error / (2.0 * root)
}

fn neumaier(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for v in values {
        let next = sum + v;
        lost += if sum.abs() >= v.abs() { (sum - next) + v } else { (v - next) + sum };
        sum = next;
    }
    if lost.is_finite() { sum + lost } else { sum }
}
