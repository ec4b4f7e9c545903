//! A new operation with a CPU kernel and a CUDA kernel: `moving_sum(a, width)`, sums of adjacent elements of a 1-D float64 array.
//!
//! Dispatch, tracing, `explain` and `eval` treat `moving_sum` like a built-in operation. Elementwise operations and reductions are simpler
//! to add: see `cuprum::kernel!`.
//!
//!     cargo run --release --example custom_op

use cuprum::core::call;
use std::sync::Arc;

use cuprum::core::host_buffer::HostBuffer;
use cuprum::core::op::{Cost, OpDef};
use cuprum::core::{Accelerator, Availability, Call, Family, Kernel, Outcome, OutputSpec, Registration, Work, decline, dispatch};
use cuprum::cuda::{RawKernel, args};
use cuprum::inventory::submit;
use cuprum::{DType, Device, Error, NdArray, Op, Result, Stream, arange_as, empty, explain, numpy, with_device};

/// The definition of the operation, in the form of the library's own op table.
static MOVING_SUM_DEF: OpDef = OpDef {
    name: "moving_sum",
    family: Family::Custom,
    arity: 1,
    index: u16::MAX,
    rule: None,
    cost: Cost::Cheap,
    composite: None,
    body: None,
    reduction: None,
};
const MOVING_SUM: Op = Op(&MOVING_SUM_DEF);

/// The width of the sum, which the kernels get besides the input array.
struct Width(usize);

/// Returns the sums of `width` adjacent elements of a 1-D array: shape `(n - width + 1,)` for `n` elements.
#[numpy("moving_sum(a, width)")] // makes it available in `eval`
fn moving_sum(a: &NdArray, width: usize) -> Result<NdArray> {
    if a.ndim() != 1 || width == 0 || width > a.size() {
        return Err(Error::value("moving_sum", format!("width {width} is invalid for shape {:?}", a.shape())));
    }
    let inputs = [a.astype(DType::F64)?.contiguous()?.stored()?];
    let outputs = [OutputSpec::contiguous(DType::F64, &[a.size() - width + 1])?];
    let (device, stream) = (a.device(), Stream::current(a.device()));
    let work = Work::Custom(call::Custom(&Width(width)));
    let done = dispatch::run_call(&Call { op: MOVING_SUM, device, stream, inputs: &inputs, outputs: &outputs, work })?;
    done.into_iter().next().map(NdArray::from).ok_or_else(|| Error::value("moving_sum", "the kernel returned no output"))
}

/// The accelerators of this operation, one for the CPU and one for CUDA devices. Both decline every other operation.
static ON_CPU: Accelerator = Accelerator {
    name: "moving-cpu",
    device: "cpu",
    rank: 50,
    summary: "moving sums",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Custom, on_cpu).only_ops(&[MOVING_SUM])],
    base: None,
};
static ON_CUDA: Accelerator = Accelerator {
    name: "moving-cuda",
    device: "cuda",
    kernels: &[Kernel::new(Family::Custom, on_cuda).only_ops(&[MOVING_SUM])],
    base: None,
    ..ON_CPU
};
submit! { Registration(&ON_CPU) }
submit! { Registration(&ON_CUDA) }

fn width(call: &Call) -> Option<usize> {
    let Work::Custom(call::Custom(work)) = call.work else { return None };
    work.downcast_ref::<Width>().map(|w| w.0)
}

fn on_cpu(call: &Call) -> Result<Outcome> {
    let Some(width) = width(call) else { decline!("the call has no width") };
    let a = NdArray::from(call.inputs[0].clone()).to_vec::<f64>()?;
    let mut sums = Vec::with_capacity(a.len() - width + 1);
    for window in a.windows(width) {
        sums.push(window.iter().sum::<f64>());
    }
    call.outcome_from_buffers([Arc::new(HostBuffer::from_slice(&sums)?) as _])
}

fn on_cuda(call: &Call) -> Result<Outcome> {
    let Some(width) = width(call) else { decline!("the call has no width") };
    let (a, outputs) = (NdArray::from(call.inputs[0].clone()), call.outputs[0].layout.size());
    let mut sums = with_device(call.device, || empty(outputs, DType::F64))?;
    let kernel = RawKernel::compile(
        r#"extern "C" __global__ void moving_sum(const double* a, double* sums, unsigned long long n, unsigned long long width) {
            unsigned long long i = blockIdx.x * 1ull * blockDim.x + threadIdx.x;
            if (i >= n) return;
            double sum = 0;
            for (unsigned long long k = 0; k < width; k++) sum += a[i + k];
            sums[i] = sum;
        }"#,
        "moving_sum",
    )?;
    // SAFETY: thread i < n reads `width` elements of `a` from i on, which exist because `a` has `n + width - 1` elements.
    unsafe { kernel.launch(kernel.launch_for_items(outputs)?, args![&a, &mut sums, outputs as u64, width as u64]) }?;
    let stored = sums.stored()?;
    call.outcome_from_buffers([stored.buffer().clone()])
}

fn main() -> Result<()> {
    for device in Device::all() {
        let a = with_device(device, || arange_as(0, 10, 1, DType::F64))?;
        let (means, calls) = explain(|| cuprum::eval("moving_sum(a, 3) / 3", [("a", &a)]));
        let means = means.map_err(|e| Error::value("custom_op", e.to_string()))?.to_vec::<f64>()?;
        println!("{device}: {means:?}");
        calls.iter().for_each(|call| println!("    {call}"));
        if means != [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] {
            return Err(Error::value("custom_op", "wrong moving means"));
        }
    }
    Ok(())
}
