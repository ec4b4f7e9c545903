//! CUDA kernels of the family `Random`: random numbers by the generator Philox 4x32-10. In sampler kernels, each thread computes one number
//! at a time. In other kernels, each thread computes all numbers of one Philox counter value at a time. The random bits are the same on
//! every device.

use cuprum_core::call::{Sampler, UniformScaling};
use cuprum_core::{Array, Call, DType, Distribution, Outcome, Random, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static RANDOM_SOURCE: KernelSource =
    KernelSource { name: "random.cu", text: concat!(include_str!("../kernels/random_words.cuh"), include_str!("../kernels/random.cu")) };
static SAMPLERS_SOURCE: KernelSource = KernelSource {
    name: "random_samplers.cu",
    text: concat!(include_str!("../kernels/random_words.cuh"), include_str!("../kernels/random_samplers.cu")),
};

/// Returns the name of the struct of `sampler` in `random_samplers.cu`.
fn sampler_struct_name(sampler: Sampler) -> &'static str {
    match sampler {
        Sampler::StandardGamma => "Gamma",
        Sampler::Poisson => "Poisson",
        Sampler::Binomial => "Binomial",
        Sampler::Hypergeometric => "Hypergeometric",
        Sampler::Geometric => "Geometric",
        Sampler::LogSeries => "LogSeries",
        Sampler::Zipf => "Zipf",
        Sampler::TangentOfHalfVonMisesAngle => "TangentOfHalfVonMisesAngle",
    }
}

/// Returns the macro definitions of the kernel that draws numbers of `dtype` with `sampler`.
fn sampler_defines(sampler: Sampler, dtype: DType) -> [(&'static str, &'static str); 2] {
    [("T", ctype(dtype)), ("SAMPLER", sampler_struct_name(sampler))]
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers one source per dtype, and one per
/// sampler.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let draws = DType::ALL.iter().filter(|d| d.is_int() || d.is_float()).map(|d| RANDOM_SOURCE.named_source(&[("T", ctype(*d))]));
    let samples = Sampler::ALL.into_iter().map(|sampler| {
        let dtype = if sampler.is_discrete() { DType::I64 } else { DType::F64 };
        SAMPLERS_SOURCE.named_source(&sampler_defines(sampler, dtype))
    });
    draws.chain(samples).collect()
}

/// Executes `call`, an operation of the kernel family `Random`, on the device.
pub(crate) fn run_random_generation(call: &Call) -> Result<Outcome> {
    let (Work::Random(random), [spec]) = (&call.work, call.outputs) else { decline!("not a draw of one output") };
    if !spec.layout.is_c_contiguous() {
        decline!("an output that is not in C order");
    }
    let dtype = spec.dtype;
    if !random.distribution.supports_dtype(dtype) {
        decline!("{dtype} is not drawn from this distribution");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let count = spec.layout.size() as u64;
    if let Distribution::Sampled { sampler, parameters } = random.distribution {
        if call.inputs.iter().any(|a| a.dtype() != DType::F64 || !a.layout().is_c_contiguous()) {
            decline!("parameters that are not float64 in C order");
        }
        let mut addresses = [0u64; 3];
        for (address, input) in addresses.iter_mut().zip(call.inputs) {
            *address = device::pointer_to_read(input)?;
        }
        queue_sampler_kernel(context, random, (sampler, dtype), out.pointer(), count, addresses, parameters).with_call_context(call)?;
    } else {
        queue_random_numbers(context, random, dtype, out.pointer(), count).with_call_context(call)?;
    }
    device::outcome_from_buffers(call, [out])
}

/// Queues the kernel of `sampler`, which writes `count` numbers at the address `pointer`. Parameter n of the distribution is the array at
/// `addresses[n]`, or the number `parameters[n]` if that address is 0.
fn queue_sampler_kernel(
    context: &'static Context,
    random: &Random,
    (sampler, dtype): (Sampler, DType),
    pointer: u64,
    count: u64,
    addresses: [u64; 3],
    parameters: [f64; 3],
) -> crate::Result<()> {
    let function = SAMPLERS_SOURCE.get_or_compile_kernel(context, "random_samples", &sampler_defines(sampler, dtype))?;
    let mut args = Args::new();
    args.push(&pointer).push(&count).push(&random.key).push(&random.first_block).push(&random.stream);
    addresses.iter().for_each(|address| {
        args.push(address);
    });
    parameters.iter().for_each(|parameter| {
        args.push(parameter);
    });
    // SAFETY: the arguments match random_samples. The output has `count` elements. Each parameter array has `count` elements, or its
    // address is null.
    unsafe {
        function.launch(
            kernel_lookup::grid_for_items(count, DEFAULT_THREADS_PER_BLOCK),
            [DEFAULT_THREADS_PER_BLOCK, 1, 1],
            0,
            args.pointers(),
        )
    }
}

fn queue_random_numbers(context: &'static Context, random: &Random, dtype: DType, pointer: u64, count: u64) -> crate::Result<()> {
    // Converts `x` to the kernel's type `R`, which is float64 for float64 outputs and else float32, and returns the bytes of the result.
    let real = |x: f64| cuprum_core::Scalar::Float(x).to_bytes(if dtype == DType::F64 { DType::F64 } else { DType::F32 });
    let integer = |x: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&x.to_ne_bytes());
        bytes
    };
    let (name, values) = match random.distribution {
        Distribution::Uniform(UniformScaling { low, span, factor, limit }) => {
            ("random_uniform", [low, span, factor, limit].map(real).to_vec())
        }
        Distribution::Normal { mean, std } => ("random_normal", vec![real(mean), real(std)]),
        // A cast of `low` to u64 suffices, because the kernel uses only as many low bits as the output's dtype has.
        Distribution::Integers { low, span } => ("random_integers", vec![integer(low as u64), integer(span)]),
        // Nothing to queue here: `run_random_generation` queues the kernels of samplers with `queue_sampler_kernel`.
        Distribution::Sampled { .. } => return Ok(()),
    };
    let mut args = Args::new();
    args.push(&pointer).push(&count).push(&random.key).push(&random.first_block).push(&random.stream);
    values.iter().for_each(|value| {
        args.push(value);
    });
    let function = RANDOM_SOURCE.get_or_compile_kernel(context, name, &[("T", ctype(dtype))])?;
    let blocks = count.div_ceil(random.distribution.elements_per_philox_block(dtype) as u64);
    // SAFETY: the arguments match the kernel in random.cu. The output has `count` elements. Each of `values` has 16 bytes, and the kernel's
    // parameter has at most 16.
    unsafe {
        function.launch(
            kernel_lookup::grid_for_items(blocks, DEFAULT_THREADS_PER_BLOCK),
            [DEFAULT_THREADS_PER_BLOCK, 1, 1],
            0,
            args.pointers(),
        )
    }
}
