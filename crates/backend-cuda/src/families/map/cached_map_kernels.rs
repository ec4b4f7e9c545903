//! Fast path for contiguous elementwise kernels that this thread has launched before. All other calls go to
//! [`map::run_map`](super::run_map).

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::{Array, Call, Device, Outcome, Program as Expression, Result, Work};
use smallvec::SmallVec;

use crate::codegen::{self, InnermostAxisAccess, KernelKey, MAX_32_BIT_INDEX};
use crate::compile::module::{Args, Function};
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};
use crate::launch_cache::LaunchCache;

/// Maximum number of inputs, and maximum number of outputs, of a call on the fast path.
const MAX_CACHED_MAP_OPERANDS: usize = 8;

/// A compiled kernel with 32-bit indices whose inputs all have stride 1 or 0.
struct CachedMapKernel {
    /// Whether the kernel uses vector loads, for which inputs must be aligned.
    aligned: bool,
    /// Number of elements per thread and iteration.
    width: usize,
    function: Arc<Function>,
}

thread_local! {
    static MAP_KERNEL_CACHE: LaunchCache<CachedMapKernel> = const { LaunchCache::new() };
}

/// Runs `call`, a call of the kernel family `Map`. If the launch cache of this thread has a suitable kernel, launches that kernel.
/// Otherwise calls the general function of the family, [`map::run_map`](super::run_map).
pub(crate) fn run_map_with_cache(call: &Call) -> Result<Outcome> {
    try_launch_cached_map(call).unwrap_or_else(|| super::run_map(call))
}

/// Adds `function`, the kernel of a contiguous map with 32-bit indices and `width` elements per thread, to this thread's launch cache.
pub(super) fn cache_map_kernel(program: &Expression, device: Device, access: InnermostAxisAccess, width: usize, function: &Arc<Function>) {
    let known = CachedMapKernel { aligned: access.aligned, width, function: function.clone() };
    LaunchCache::insert(&MAP_KERNEL_CACHE, &map_cache_key(program, device, access.repeated), known);
}

fn map_cache_key(program: &Expression, device: Device, repeated: u64) -> KernelKey<'_> {
    KernelKey::new("map_flat", program).with_number(device.ordinal() as u64).with_number(repeated)
}

/// Looks up a kernel for `call` in this thread's launch cache and launches it. Returns `None` without launching anything if the cache has
/// no suitable kernel.
fn try_launch_cached_map(call: &Call) -> Option<Result<Outcome>> {
    let Work::Map(call::Map { program, plan }) = call.work else { return None };
    let (count, results) = (call.inputs.len(), call.outputs.len());
    if count > MAX_CACHED_MAP_OPERANDS || results > MAX_CACHED_MAP_OPERANDS || plan.size >= MAX_32_BIT_INDEX || !plan.is_flat() {
        return None;
    }
    let is_repeated = |k: usize| plan.strides[k].first() == Some(&0);
    if (count..count + results).any(is_repeated) {
        return None;
    }
    let repeated = (0..count).filter(|&k| is_repeated(k)).fold(0, |bits, k| bits | 1 << k);
    let launch = |known: &CachedMapKernel| {
        let (mut inputs, mut aligned) = ([0; MAX_CACHED_MAP_OPERANDS], true);
        for (k, array) in call.inputs.iter().enumerate() {
            inputs[k] = device::pointer_to_read(array).ok()?;
            let pack = (array.dtype().itemsize() * known.width).min(16) as u64;
            aligned &= repeated >> k & 1 == 1 || inputs[k].is_multiple_of(pack);
        }
        (aligned == known.aligned).then(|| known.launch_kernel(call, program, &inputs[..count], plan.size as u64))
    };
    LaunchCache::find(&MAP_KERNEL_CACHE, &map_cache_key(program, call.device, repeated), launch).flatten()
}

impl CachedMapKernel {
    /// Launches the kernel with the scalars of `program`. The kernel was compiled for a program that has the same structure but may have
    /// other scalars.
    fn launch_kernel(&self, call: &Call, program: &Expression, inputs: &[u64], size: u64) -> Result<Outcome> {
        let fault = device::error_word_address(self.function.context(), program).with_call_context(call)?;
        let params = codegen::pack_params(program, inputs, fault);
        let (mut outputs, mut to) = (SmallVec::<[_; 2]>::new(), [0; MAX_CACHED_MAP_OPERANDS]);
        for (n, address) in to.iter_mut().enumerate().take(call.outputs.len()) {
            let buffer = device::allocate_output(call, n)?;
            *address = device::output_address(call, n, &buffer);
            outputs.push(buffer);
        }
        let mut args = Args::new();
        args.push_bytes(&params).push(&to).push(&size);
        let grid = kernel_lookup::grid_for_items(size.div_ceil(self.width as u64), DEFAULT_THREADS_PER_BLOCK);
        // SAFETY: the arguments match map_flat.cuh for the program and access pattern that the kernel was compiled for. Each input
        // has `size` contiguous elements from its address, or one element if it is repeated (stride 0). Each output has `size` elements.
        unsafe { self.function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }.with_call_context(call)?;
        device::outcome_from_buffers(call, outputs)
    }
}
