//! cuTENSOR on one device: the handle, plans made from requests, and their execution. A named unsafe room.
//!
//! Whatever the library refuses is a [`Reason`] to decline, so that the base does the call; only a device that can do
//! nothing any more is an error.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::driver::{self, Context};
use cuprum_core::{Array, Call, Error, Outcome, Reason, Result, StoredArray, registry, tuning};
use smallvec::SmallVec;

use crate::NAME;
use crate::library::{self, Library};
use crate::operation::{Kind, Operation, Tensor};
use crate::plan_cache::{Key, PlanCache};
use crate::sys::{self, DataType, Operator, Status, Variant};

/// What the choice of a kernel is kept under.
const CHOICE: &str = "cutensor's kernel";

/// Alignment of new memory, and of workspaces, in bytes: the most that cuTENSOR makes use of.
const ALIGNMENT: u32 = 256;

/// A refused call of the library: its name and what it returned.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    call: &'static str,
    status: Status,
}

type Refusable<T> = std::result::Result<T, Refusal>;

fn check(call: &'static str, status: Status) -> Refusable<()> {
    if status == Status::SUCCESS { Ok(()) } else { Err(Refusal { call, status }) }
}

/// Why there is no plan.
enum Failure {
    Refused(Refusal),
    /// Something else went wrong: the call's own error.
    Error(Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl Refusal {
    /// The status says that this request cannot be done, and would say so again.
    fn is_final(self) -> bool {
        let finals = [Status::NOT_SUPPORTED, Status::ARCH_MISMATCH, Status::INVALID_VALUE, Status::INSUFFICIENT_WORKSPACE];
        finals.contains(&self.status)
    }

    /// A reason to decline; an error if it was the device that broke.
    fn reason(self, handle: &Handle, call: &Call) -> Result<Reason> {
        if !self.is_final()
            && let Err(e) = handle.context.is_idle()
        {
            return Err(device::error(NAME, call.op.name(), call.device, e));
        }
        tracing::debug!(call = self.call, status = %self.status, "refused");
        Ok(Reason::with(|| format!("{}: {}", self.call, sys::describe(&handle.library.functions, self.status))))
    }
}

/// The library on one device. Lives as long as the process.
pub struct Handle {
    raw: sys::Handle,
    library: &'static Library,
    context: &'static Context,
    plans: PlanCache<Refusable<Plan>>,
    /// Held while kernels are timed.
    measuring: Mutex<()>,
}

// SAFETY: cutensor.h marks every call made with a handle here as thread-safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// The handle of a call's device, made at the first call; `Err` is the reason why there is none.
    fn of(call: &Call) -> std::result::Result<&'static Handle, Reason> {
        static SLOTS: OnceLock<Vec<OnceLock<std::result::Result<Handle, String>>>> = OnceLock::new();
        let count = || driver::probe().map_or(0, |d| d.devices.len());
        let slots = SLOTS.get_or_init(|| (0..count()).map(|_| OnceLock::new()).collect());
        let ordinal = call.device.ordinal();
        let slot = slots.get(ordinal).ok_or(Reason::new("no such device"))?;
        let made = slot.get_or_init(|| Handle::make(ordinal).map_err(|e| e.to_string()));
        made.as_ref().map_err(|e| Reason::with(|| e.clone()))
    }

    fn make(ordinal: usize) -> std::result::Result<Handle, CudaError> {
        let library = library::shared()?;
        let context = Context::get(ordinal)?;
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the context of the device is current; the out-pointer is valid.
        let status = unsafe { (library.functions.create)(&mut raw) };
        check("cutensorCreate", status)
            .map_err(|r| CudaError::Missing(format!("{}: {}", r.call, sys::describe(&library.functions, r.status))))?;
        Ok(Handle { raw, library, context, plans: PlanCache::default(), measuring: Mutex::new(()) })
    }

    fn descriptor(&self, tensor: &Tensor, data: DataType, alignment: u32) -> Refusable<Owned> {
        let mut raw = ptr::null_mut();
        let modes = tensor.modes.len() as u32;
        // SAFETY: extents and strides have `modes` elements each and are copied.
        let status = unsafe {
            let create = self.library.functions.create_tensor_descriptor;
            create(self.raw, &mut raw, modes, tensor.extents.as_ptr(), tensor.strides.as_ptr(), data, alignment)
        };
        check("cutensorCreateTensorDescriptor", status)?;
        Ok(Owned { raw, destroy: self.library.functions.destroy_tensor_descriptor })
    }

    fn describe(&self, key: &Key) -> Refusable<Owned> {
        let Operation { kind, data, inputs, output } = &key.operation;
        let functions = &self.library.functions;
        let compute = key
            .operation
            .compute(&self.library.computes)
            .ok_or(Refusal { call: "CUTENSOR_COMPUTE_DESC", status: Status::NOT_SUPPORTED })?;
        let descriptors: Refusable<SmallVec<[Owned; 3]>> =
            inputs.iter().chain([output]).zip(&key.alignments).map(|(t, &a)| self.descriptor(t, *data, a)).collect();
        let descriptors = descriptors?;
        let (same, mut raw) = (Operator::Identity, ptr::null_mut());
        // SAFETY: the descriptors are alive, each goes with the modes of its tensor, D's stand for C as well; all is
        // copied.
        let (call, status) = unsafe {
            match (kind, &inputs[..], &descriptors[..]) {
                (Kind::Contract(_), [a, b], [da, db, d]) => {
                    let (a, b, out) = (a.modes.as_ptr(), b.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_contraction;
                    let status = create(self.raw, &mut raw, da.raw, a, same, db.raw, b, same, d.raw, out, same, d.raw, out, compute);
                    ("cutensorCreateContraction", status)
                }
                (Kind::Reduce(op), [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_reduction;
                    let status = create(self.raw, &mut raw, da.raw, a, same, d.raw, out, same, d.raw, out, *op, compute);
                    ("cutensorCreateReduction", status)
                }
                (Kind::Binary { op, unary: [of_a, of_c] }, [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_elementwise_binary;
                    let status = create(self.raw, &mut raw, da.raw, a, *of_a, d.raw, out, *of_c, d.raw, out, *op, compute);
                    ("cutensorCreateElementwiseBinary", status)
                }
                (Kind::Trinary { inner, outer, unary: [of_a, of_b, of_c] }, [a, b], [da, db, d]) => {
                    let (a, b, out) = (a.modes.as_ptr(), b.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_elementwise_trinary;
                    let (a, b, c) = ((da.raw, a, *of_a), (db.raw, b, *of_b), (d.raw, out, *of_c));
                    let status =
                        create(self.raw, &mut raw, a.0, a.1, a.2, b.0, b.1, b.2, c.0, c.1, c.2, d.raw, out, *inner, *outer, compute);
                    ("cutensorCreateElementwiseTrinary", status)
                }
                (Kind::Permute, [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let status = (functions.create_permutation)(self.raw, &mut raw, da.raw, a, same, d.raw, out, compute);
                    ("cutensorCreatePermutation", status)
                }
                _ => ("operands", Status::INVALID_VALUE),
            }
        };
        check(call, status)?;
        Ok(Owned { raw, destroy: functions.destroy_operation_descriptor })
    }

    /// Makes the device's context current, right before the library is called: an allocation may have freed memory of another device.
    fn bind(&self) -> Refusable<()> {
        self.context.bind().map_err(|_| Refusal { call: "cuCtxSetCurrent", status: Status::CUDA_ERROR })
    }

    /// Makes a plan by one of the library's kernels.
    fn plan(&self, key: &Key, variant: Variant) -> Refusable<Plan> {
        self.bind()?;
        let functions = &self.library.functions;
        let operation = self.describe(key)?;
        let mut scalar: c_int = 0;
        let (scalar_ptr, scalar_size) = ((&raw mut scalar).cast(), size_of::<c_int>());
        // SAFETY: the descriptor is alive; this attribute is a cudaDataType_t, an enum of int size.
        let status =
            unsafe { (functions.operation_get_attribute)(self.raw, operation.raw, sys::OPERATION_SCALAR_TYPE, scalar_ptr, scalar_size) };
        check("cutensorOperationDescriptorGetAttribute", status)?;
        let unknown = Refusal { call: "the scalar type", status: Status::NOT_SUPPORTED };
        let scalar = DataType::from_raw(scalar).ok_or(unknown)?;

        let mut raw = ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        let status = unsafe { (functions.create_plan_preference)(self.raw, &mut raw, variant.algorithm, sys::JIT_MODE_NONE) };
        check("cutensorCreatePlanPreference", status)?;
        let preference = Owned { raw, destroy: functions.destroy_plan_preference };
        if variant.rank > 0 {
            let rank = std::ptr::from_ref(&variant.rank).cast();
            // SAFETY: the preference is alive; this attribute is an int32.
            let status = unsafe {
                (functions.plan_preference_set_attribute)(self.raw, preference.raw, sys::PREFERENCE_KERNEL_RANK, rank, size_of::<i32>())
            };
            check("cutensorPlanPreferenceSetAttribute", status)?;
        }

        let mut limit = 0u64;
        // SAFETY: both descriptors are alive, the out-pointer is valid.
        let status =
            unsafe { (functions.estimate_workspace_size)(self.raw, operation.raw, preference.raw, sys::WORKSPACE_DEFAULT, &mut limit) };
        check("cutensorEstimateWorkspaceSize", status)?;
        let mut raw = ptr::null_mut();
        // SAFETY: as above; the context is current.
        let status = unsafe { (functions.create_plan)(self.raw, &mut raw, operation.raw, preference.raw, limit) };
        check("cutensorCreatePlan", status)?;
        let plan = Owned { raw, destroy: functions.destroy_plan };

        let mut workspace = 0u64;
        let (out, size) = ((&raw mut workspace).cast(), size_of::<u64>());
        // SAFETY: the plan is alive; this attribute is a uint64_t.
        let status = unsafe { (functions.plan_get_attribute)(self.raw, plan.raw, sys::PLAN_REQUIRED_WORKSPACE, out, size) };
        check("cutensorPlanGetAttribute", status)?;
        Ok(Plan { owned: plan, scalar, workspace })
    }

    /// Returns the plan for a request. A large contraction uses the stored winner of its signature, which is measured if the
    /// user named the order. Otherwise the library chooses (`docs/notes/cutensor-algorithms.md`).
    fn best_plan(&self, key: &Key, call: &Call, inputs: [u64; 3], factors: &[f64]) -> std::result::Result<Plan, Failure> {
        let default = || Ok(self.plan(key, Variant::DEFAULT)?);
        if !key.operation.is_worth_measuring() {
            return default();
        }
        if let Some(known) = tuning::recall(call, CHOICE)? {
            // It was measured on arrays of another alignment, maybe, and may refuse these.
            let known = Variant::named(&known).map(|variant| self.plan(key, variant));
            return known.and_then(std::result::Result::ok).map_or_else(default, Ok);
        }
        if !tuning::may_measure() || !registry::order_is_named() || call.stream.is_capturing() {
            return default();
        }
        // Threads that measure at the same time would measure each other.
        let _alone = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut plans, mut times, mut all_ran) = (SmallVec::<[(Plan, f64); 2]>::new(), Vec::new(), true);
        for variant in Variant::MEASURED {
            let measured = self.plan(key, variant).map_err(Failure::from).and_then(|plan| {
                let time = self.measure(key, &plan, call, inputs, factors)?;
                Ok((plan, time))
            });
            match measured {
                Ok((plan, time)) => {
                    times.push((variant.to_string(), time));
                    plans.push((plan, time));
                }
                // There may be room the next time.
                Err(Failure::Error(Error::OutOfMemory { .. })) => all_ran = false,
                Err(Failure::Refused(refusal)) => all_ran &= refusal.is_final(),
                Err(error) => return Err(error),
            }
        }
        if all_ran {
            tuning::keep(call, CHOICE, times)?;
        }
        plans.sort_by(|a, b| a.1.total_cmp(&b.1));
        plans.into_iter().next().map_or_else(default, |(plan, _)| Ok(plan))
    }

    /// Microseconds that a plan takes on the device for the call's own inputs, the second time, into memory of its own.
    fn measure(&self, key: &Key, plan: &Plan, call: &Call, inputs: [u64; 3], factors: &[f64]) -> std::result::Result<f64, Failure> {
        let workspace = device::allocate(call, plan.workspace as usize)?;
        let (_output, written) = new_output(call, &key.operation)?;
        let at = Addresses { inputs, output: written, workspace: workspace.pointer() };
        // SAFETY: the inputs' addresses were checked by the caller, the output's by `new_output`; buffers are freed in stream order.
        let launch = || unsafe { self.launch(key.operation.kind, plan, factors, &at) };
        launch()?;
        let driver = cuprum_core::device::driver(call.device)?;
        let before = driver.record_event(call.stream)?;
        launch()?;
        Ok(driver.record_event(call.stream)?.millis_since(before.as_ref())? * 1e3)
    }

    /// Queues a plan. `factors` scale the operands that its kind takes, in order; of a contraction A * B and C.
    ///
    /// # Safety
    /// The addresses must be valid for what the plan's operands touch, and the workspace for the plan's size, until the
    /// kernels have run.
    unsafe fn launch(&self, kind: Kind, plan: &Plan, factors: &[f64], at: &Addresses) -> Refusable<()> {
        self.bind()?;
        let functions = &self.library.functions;
        let factor = |n: usize| Factor::new(factors.get(n).copied().unwrap_or(0.0), plan.scalar);
        let factors = [factor(0), factor(1), factor(2)];
        let [alpha, beta, gamma] = factors.each_ref().map(|f| std::ptr::from_ref(f).cast::<c_void>());
        let (raw, plan_raw, stream) = (self.raw, plan.owned.raw, self.context.stream().cast());
        let Addresses { inputs: [first, second, third], output, workspace } = *at;
        // SAFETY: the handle and plan are alive, the factors are of the plan's scalar type, the caller vouches for the
        // addresses.
        let (call, status) = unsafe {
            match kind {
                Kind::Contract(_) => {
                    let run = functions.contract;
                    let size = plan.workspace;
                    let status = run(raw, plan_raw, alpha, first, second, beta, output, output, workspace, size, stream);
                    ("cutensorContract", status)
                }
                Kind::Reduce(_) => {
                    let run = functions.reduce;
                    let status = run(raw, plan_raw, alpha, first, beta, output, output, workspace, plan.workspace, stream);
                    ("cutensorReduce", status)
                }
                Kind::Binary { .. } => {
                    let run = functions.elementwise_binary_execute;
                    ("cutensorElementwiseBinaryExecute", run(raw, plan_raw, alpha, first, beta, second, output, stream))
                }
                Kind::Trinary { .. } => {
                    let run = functions.elementwise_trinary_execute;
                    let status = run(raw, plan_raw, alpha, first, beta, second, gamma, third, output, stream);
                    ("cutensorElementwiseTrinaryExecute", status)
                }
                Kind::Permute => ("cutensorPermute", (functions.permute)(raw, plan_raw, alpha, first, output, stream)),
            }
        };
        check(call, status)
    }
}

/// Device addresses of a launch; inputs in the order of the operands, as many as there are.
struct Addresses {
    inputs: [u64; 3],
    output: u64,
    workspace: u64,
}

/// Something of the library that is destroyed on drop.
struct Owned {
    raw: *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void) -> Status,
}

// SAFETY: descriptors and plans are host objects; cutensor.h marks making, using and destroying them as thread-safe.
unsafe impl Send for Owned {}
// SAFETY: as above; nothing here changes one after it was made.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by us with the function that goes with `destroy`, destroyed only here.
        unsafe { (self.destroy)(self.raw) };
    }
}

/// A kernel chosen for a request, with the workspace it needs.
struct Plan {
    owned: Owned,
    /// Type of the scaling factors.
    scalar: DataType,
    /// Bytes.
    workspace: u64,
}

/// A scaling factor in the form that a plan wants.
#[repr(C, align(16))]
struct Factor([u8; 16]);

impl Factor {
    fn new(value: f64, scalar: DataType) -> Factor {
        let mut bytes = [0; 16];
        match scalar {
            DataType::F64 | DataType::C128 => bytes[..8].copy_from_slice(&value.to_ne_bytes()),
            DataType::F32 | DataType::C64 => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
            DataType::F16 => bytes[..2].copy_from_slice(&cuprum_core::f16::from_f64(value).to_ne_bytes()),
            DataType::Bf16 => bytes[..2].copy_from_slice(&cuprum_core::bf16::from_f64(value).to_ne_bytes()),
        }
        Factor(bytes)
    }
}

/// The alignment to promise for an address, in bytes.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(ALIGNMENT.trailing_zeros())
}

/// The address of an operand, if all that the tensor touches lies inside its buffer.
fn address(buffer: &CudaBuffer, byte_offset: usize, tensor: &Tensor, data: DataType) -> std::result::Result<u64, CudaError> {
    buffer.memory().range(byte_offset, tensor.span().saturating_mul(data.size()))
}

/// New memory for the output, and its address.
fn new_output(call: &Call, operation: &Operation) -> Result<(Arc<CudaBuffer>, u64)> {
    let output = device::allocate_output(call, 0)?;
    let written =
        address(&output, 0, &operation.output, operation.data).map_err(|e| device::error(NAME, call.op.name(), call.device, e))?;
    match alignment(written) < ALIGNMENT {
        true => Err(Error::backend(NAME, call.op.name(), format!("new memory is not aligned to {ALIGNMENT} bytes"))),
        false => Ok((output, written)),
    }
}

/// Does a call as `operation` on these arrays: A, then B and C where there are such. `factors` scale them, of a contraction A * B
/// and C.
pub fn run(call: &Call, operation: Operation, arrays: &[&StoredArray], factors: &[f64]) -> Result<Outcome> {
    let handle = match Handle::of(call) {
        Ok(handle) => handle,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let failed = |e: CudaError| device::error(NAME, call.op.name(), call.device, e);
    let (kind, data) = (operation.kind, operation.data);
    let mut inputs = [0u64; 3];
    for (n, (array, at)) in arrays.iter().zip(&mut inputs).enumerate() {
        let buffer = device::memory(array)?;
        let tensor = operation.inputs.get(n).unwrap_or(&operation.output);
        let offset = array.layout().offset() * array.dtype().itemsize();
        *at = address(buffer, offset, tensor, data).map_err(failed)?;
    }
    let own = operation.inputs.len();
    let mut alignments: SmallVec<[u32; 3]> = inputs.iter().take(own).map(|a| alignment(*a)).collect();
    // C of an elementwise operation shares D's descriptor, and so its alignment.
    let of_c = inputs.iter().take(arrays.len()).skip(own).map(|a| alignment(*a));
    alignments.push(of_c.fold(ALIGNMENT, u32::min));
    let key = Key { operation, alignments };
    let plan = handle.plans.get_or_make(&key, || match handle.best_plan(&key, call, inputs, factors) {
        Ok(plan) => Ok(Ok(plan)),
        Err(Failure::Refused(refusal)) if refusal.is_final() => Ok(Err(refusal)),
        Err(failure) => Err(failure),
    });
    let plan = match plan.as_deref() {
        Ok(Ok(plan)) => plan,
        Ok(Err(refusal)) | Err(Failure::Refused(refusal)) => return Ok(Outcome::Declined(refusal.reason(handle, call)?)),
        Err(Failure::Error(error)) => return Err(error.clone()),
    };
    let workspace = match device::allocate(call, plan.workspace as usize) {
        Ok(workspace) => workspace,
        Err(Error::OutOfMemory { requested, .. }) => cuprum_core::decline!("no room for a workspace of {requested} bytes"),
        Err(e) => return Err(e),
    };
    let (output, written) = new_output(call, &key.operation)?;
    let at = Addresses { inputs, output: written, workspace: workspace.pointer() };
    // SAFETY: each address was checked against its buffer for all that its tensor touches; buffers are freed in stream
    // order, and the launch is queued on that stream before any of them can be dropped.
    match unsafe { handle.launch(kind, plan, factors, &at) } {
        Ok(()) => device::done(call, [output]),
        Err(refusal) => Ok(Outcome::Declined(refusal.reason(handle, call)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_in_every_type() {
        let bytes = |value, scalar| Factor::new(value, scalar).0;
        assert_eq!(bytes(-1.0, DataType::F32)[..8], [0, 0, 0x80, 0xbf, 0, 0, 0, 0]);
        assert_eq!(bytes(1.0, DataType::C64)[..8], [0, 0, 0x80, 0x3f, 0, 0, 0, 0]);
        assert_eq!(bytes(1.0, DataType::C128)[..8], 1.0f64.to_ne_bytes());
        assert_eq!(bytes(1.0, DataType::F16)[..2], [0, 0x3c]);
        assert_eq!(bytes(1.0, DataType::Bf16)[..2], [0x80, 0x3f]);
    }

    #[test]
    fn alignments_are_powers_of_two_up_to_256() {
        assert_eq!([0x1000, 0x1010, 0x1004, 0x1080, 0x7f00_0000].map(alignment), [256, 16, 4, 128, 256]);
    }

    #[test]
    fn only_plain_refusals_are_kept() {
        let refusal = |status| Refusal { call: "x", status };
        assert!(refusal(Status::NOT_SUPPORTED).is_final() && refusal(Status::ARCH_MISMATCH).is_final());
        assert!(!refusal(Status::CUDA_ERROR).is_final() && !refusal(Status::ALLOC_FAILED).is_final());
    }
}
