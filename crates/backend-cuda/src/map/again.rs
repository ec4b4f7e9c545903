//! Flat maps that this thread has launched before, found again by their structure without a lock, a key or an allocation:
//! the way of a small call is shorter than that of finding out which kernel it needs. All else goes to [`map::run`].

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::{Array, Call, Device, Outcome, Program as Expression, Result, Work};
use smallvec::SmallVec;

use crate::codegen::{self, Access, MAX_NARROW};
use crate::device::{self, InCall};
use crate::kernel::{self, THREADS};
use crate::map;
use crate::module::{Args, Function};

/// Most inputs and outputs of the maps that are kept.
const MAX_OPERANDS: usize = 8;
/// Maps that a thread keeps; of two with one place the later stays.
const PLACES: usize = 128;

/// A map with 32-bit indices whose inputs all have stride 1 or 0, and its kernel.
struct Known {
    program: Expression,
    device: Device,
    access: Access,
    width: usize,
    function: Arc<Function>,
}

thread_local! {
    static KNOWN: RefCell<Vec<Option<Box<Known>>>> = const { RefCell::new(Vec::new()) };
}

/// The kernel of family Map, by way of what this thread has launched before.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    again(call).unwrap_or_else(|| map::run(call))
}

/// Keeps the kernel of a flat map with 32-bit indices, `width` elements to a thread.
pub(crate) fn remember(program: &Expression, device: Device, access: Access, width: usize, function: &Arc<Function>) {
    let known = Known { program: program.clone(), device, access, width, function: function.clone() };
    // A thread that is ending, or a map inside a map, does without.
    let _ = KNOWN.try_with(|all| {
        if let Ok(mut all) = all.try_borrow_mut() {
            all.resize_with(PLACES, || None);
            all[place(program)] = Some(Box::new(known));
        }
    });
}

/// Launches a map as before; `None`, and nothing done, if it is not known.
fn again(call: &Call) -> Option<Result<Outcome>> {
    let Work::Map { program, plan } = call.work else { return None };
    let (count, results) = (call.inputs.len(), call.outputs.len());
    if count > MAX_OPERANDS || results > MAX_OPERANDS || plan.size >= MAX_NARROW || !plan.is_flat() {
        return None;
    }
    let is_repeated = |k: usize| plan.strides[k].first() == Some(&0);
    if (count..count + results).any(is_repeated) {
        return None;
    }
    let repeated = (0..count).filter(|&k| is_repeated(k)).fold(0, |bits, k| bits | 1 << k);
    let find = |all: &RefCell<Vec<Option<Box<Known>>>>| {
        let all = all.try_borrow().ok()?;
        let known = all.get(place(program))?.as_deref()?;
        if known.device != call.device || known.access.repeated != repeated || !known.program.same_structure(program) {
            return None;
        }
        let (mut inputs, mut aligned) = ([0; MAX_OPERANDS], true);
        for (k, array) in call.inputs.iter().enumerate() {
            inputs[k] = device::pointer(array).ok()?;
            let pack = (array.dtype().itemsize() * known.width).min(16) as u64;
            aligned &= repeated >> k & 1 == 1 || inputs[k].is_multiple_of(pack);
        }
        (aligned == known.access.aligned).then(|| known.launch(call, program, &inputs[..count], plan.size as u64))
    };
    KNOWN.try_with(find).ok().flatten()
}

impl Known {
    /// `program` has this structure, and scalars of its own.
    fn launch(&self, call: &Call, program: &Expression, inputs: &[u64], size: u64) -> Result<Outcome> {
        let params = codegen::pack_params(program, inputs, || device::context(call.device)?.fault_pointer().in_call(call))?;
        let (mut outputs, mut to) = (SmallVec::<[_; 2]>::new(), [0; MAX_OPERANDS]);
        for (n, address) in to.iter_mut().enumerate().take(call.outputs.len()) {
            let buffer = device::allocate_output(call, n)?;
            *address = buffer.pointer();
            outputs.push(buffer);
        }
        let mut args = Args::new();
        args.push_bytes(&params).push(&to).push(&size);
        let grid = kernel::grid(size.div_ceil(self.width as u64), THREADS);
        // SAFETY: the arguments are those of map_flat.cuh, for the program and the access that the kernel was made for; every
        // input that is not repeated has `size` elements from its address on, as the plan says, and so has each output.
        unsafe { self.function.launch(grid, [THREADS, 1, 1], 0, args.pointers()) }.in_call(call)?;
        device::done(call, outputs)
    }
}

/// Where a structure is kept.
fn place(program: &Expression) -> usize {
    program.fingerprint() as usize % PLACES
}
