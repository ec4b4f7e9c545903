//! Family Random: random numbers by the generator Philox 4x32-10. Each thread computes the numbers of one counter value at a time. The
//! random bits are the same on every device.

use cuprum_core::call::UniformScaling;
use cuprum_core::{Call, DType, Distribution, Outcome, Random, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, InCall};
use crate::driver::Context;
use crate::families::kernel::{self, DEFAULT_THREADS, KernelSource};

static RANDOM_SOURCE: KernelSource = KernelSource { name: "random.cu", text: include_str!("../kernels/random.cu") };

/// Returns names and sources of the kernels, for compile checks without a device: one per dtype.
pub fn sources_for_checks() -> Vec<(String, String)> {
    DType::ALL.iter().filter(|d| d.is_int() || d.is_float()).map(|d| RANDOM_SOURCE.named_source(&[("T", ctype(*d))])).collect()
}

/// Runs a call of family Random.
pub(crate) fn run_call(call: &Call) -> Result<Outcome> {
    let (Work::Random(random), [spec]) = (&call.work, call.outputs) else { decline!("not a draw of one output") };
    if !spec.layout.is_c_contiguous() {
        decline!("an output that is not in C order");
    }
    let dtype = spec.dtype;
    let takes = if matches!(random.distribution, Distribution::Integers { .. }) { dtype.is_int() } else { dtype.is_float() };
    if !takes {
        decline!("{dtype} is not drawn from this distribution");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    queue_random(context, random, dtype, out.pointer(), spec.layout.size() as u64).in_call(call)?;
    device::done(call, [out])
}

fn queue_random(context: &'static Context, random: &Random, dtype: DType, pointer: u64, count: u64) -> crate::Result<()> {
    // Converts to the kernel's type `R`: float64 for float64 outputs, else float32.
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
        // Wrapping casts suffice, because the kernel uses only the low bits that fit the output's dtype.
        Distribution::Integers { low, span } => ("random_integers", vec![integer(low as u64), integer(span)]),
    };
    let mut args = Args::new();
    args.push(&pointer).push(&count).push(&random.key).push(&random.first_block);
    values.iter().for_each(|value| {
        args.push(value);
    });
    let function = RANDOM_SOURCE.kernel(context, name, &[("T", ctype(dtype))])?;
    let blocks = count.div_ceil(random.distribution.elements_per_block(dtype) as u64);
    // SAFETY: the arguments match the kernel in random.cu: an output with `count` elements, then values at least as long as
    // the parameters.
    unsafe { function.launch(kernel::grid_for_items(blocks, DEFAULT_THREADS), [DEFAULT_THREADS, 1, 1], 0, args.pointers()) }
}
