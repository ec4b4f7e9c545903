//! An accelerator in its own crate, as a third party would write it: `exact`, compensated summation of float64 arrays on the CPU.
//!
//! Algorithm: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974.
//! Other calls go to the next accelerator of the chain.
//!
//! The kernel declares no capabilities, so it receives neither user-defined operations nor expressions that read arrays by index.
//!
//! The crate depends only on `cuprum-core`. An application links it with `use cuprum_example_accelerator as _;`, and can then select it
//! with `CUPRUM_ACCELERATORS=exact` or `with_accelerators`.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::buffer::HostBuffer;
use cuprum_core::device::Buffer;
use cuprum_core::ops::reduce::SUM;
use cuprum_core::plan::reduce::ReducePattern;
use cuprum_core::{Accelerator, Availability, Call, DType, DTypeSet, Device, Family, Kernel, Outcome, Registration, Result, Work, decline};

/// The accelerator: a name, the device it serves, and its kernels.
pub static EXACT: Accelerator = Accelerator {
    name: "exact",
    device: "cpu",
    rank: 50,
    summary: "compensated float64 sums",
    probe: || Availability::Ready("always".into()),
    kernels: &[Kernel::new(Family::Reduce, sum).ops(&[SUM]).dtypes(DTypeSet::of(&[DType::F64]))],
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
    let input = &call.inputs[0];
    let Some(host) = input.buffer().as_any().downcast_ref::<HostBuffer>() else { decline!("not in host memory") };
    let start = input.layout().offset() * size_of::<f64>();
    let Some(bytes) = host.as_bytes().get(start..start + plan.reduced_size * size_of::<f64>()) else {
        decline!("the layout exceeds the buffer")
    };
    let total = neumaier(bytes.chunks_exact(8).filter_map(|b| b.try_into().ok()).map(f64::from_le_bytes));
    debug_assert_eq!(call.device, Device::CPU);
    let output: Arc<dyn Buffer> = Arc::new(HostBuffer::from_slice(&[total])?);
    call.done([output])
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
