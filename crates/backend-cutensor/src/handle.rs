//! cuTENSOR on one device: library handle, creation of plans, execution. `unsafe` is allowed here for calls of the library.
//!
//! If the library refuses an operation, this accelerator declines the call, and the accelerator `cuda` serves it. A failed device is an
//! error.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::driver::{self, Context};
use cuprum_core::fault_injection::{FailurePoint, should_fail};
use cuprum_core::{Array, Call, DeclineReason, Error, Outcome, Result, StoredArray, registry, tuning};
use smallvec::SmallVec;

use crate::library::{self, CutensorLibrary};
use crate::operation::{CutensorOperation, CutensorOperationKind, OperandDescription};
use crate::plan_cache::{PlanCache, PlanKey};
use crate::scaling_factor::ScalingFactor;
use crate::sys::{self, AlgorithmAndRank, DataType, Operator, Status};

/// Name of the accelerator.
pub const ACCELERATOR_NAME: &str = "cutensor";

/// Key under which the tuning store keeps the name of the kernel that was measured as fastest.
const TUNING_STORE_KEY: &str = "cutensor's kernel";

/// Alignment of outputs and workspaces, in bytes. Also the upper bound of the alignments that descriptors state: cuTENSOR does not benefit
/// from a larger alignment.
const MAX_ALIGNMENT: u32 = 256;

/// An error status of a library function.
#[derive(Clone, Copy, Debug)]
struct CutensorStatusError {
    function: &'static str,
    status: Status,
}

type LibraryResult<T> = std::result::Result<T, CutensorStatusError>;

fn check_status(function: &'static str, status: Status) -> LibraryResult<()> {
    let status = if should_fail(FailurePoint::Library) { Status::INTERNAL_ERROR } else { status };
    if status == Status::SUCCESS { Ok(()) } else { Err(CutensorStatusError { function, status }) }
}

/// The reason why a cuTENSOR plan could not be created.
enum PlanError {
    Library(CutensorStatusError),
    /// An error to return to the caller, such as a failed allocation.
    Call(Error),
}

impl From<CutensorStatusError> for PlanError {
    fn from(error: CutensorStatusError) -> PlanError {
        PlanError::Library(error)
    }
}
impl From<Error> for PlanError {
    fn from(error: Error) -> PlanError {
        PlanError::Call(error)
    }
}

impl CutensorStatusError {
    /// Returns whether the library does not support the operation, so that another attempt would fail too.
    fn is_permanent(self) -> bool {
        let permanent = [
            Status::NOT_SUPPORTED,
            Status::ARCH_MISMATCH,
            Status::INVALID_VALUE,
            Status::INSUFFICIENT_WORKSPACE,
            Status::INSUFFICIENT_DRIVER,
            Status::LICENSE_ERROR,
        ];
        permanent.contains(&self.status)
    }

    /// Returns whether the cause may be too little free device memory.
    fn is_out_of_memory(self) -> bool {
        // `cutensorCreate` may report `NOT_INITIALIZED` or `CUDA_ERROR` if the driver has no memory for cuTENSOR's modules.
        [Status::ALLOC_FAILED, Status::NOT_INITIALIZED, Status::CUDA_ERROR].contains(&self.status)
    }

    /// Converts the error to a reason to decline the call. Returns an error instead if the device failed.
    fn to_decline_reason(self, handle: &DeviceHandle, call: &Call) -> Result<DeclineReason> {
        if !self.is_permanent()
            && let Err(e) = handle.context.is_current_stream_idle()
        {
            return Err(device::to_core_error(ACCELERATOR_NAME, call.op.name(), call.device, e));
        }
        tracing::debug!(function = self.function, status = %self.status, "cuTENSOR error");
        Ok(DeclineReason::with_text(|| format!("{}: {}", self.function, sys::describe_status(&handle.library.functions, self.status))))
    }
}

/// A cuTENSOR handle for one device, which lives as long as the process.
pub struct DeviceHandle {
    raw: sys::Handle,
    library: &'static CutensorLibrary,
    context: &'static Context,
    plans: PlanCache<LibraryResult<CutensorPlan>>,
    /// Lock that is held while kernels are measured, because concurrent measurements would disturb each other.
    measuring: Mutex<()>,
}

/// The handle of one device, or the reason why the library supports no handle for this device.
struct HandleSlot<T = DeviceHandle> {
    handle: OnceLock<T>,
    /// The permanent reason why there is no handle, if any. The lock is also held while the handle is created.
    refusal: Mutex<Option<String>>,
}

impl<T> Default for HandleSlot<T> {
    fn default() -> HandleSlot<T> {
        HandleSlot { handle: OnceLock::new(), refusal: Mutex::default() }
    }
}

impl<T> HandleSlot<T> {
    /// Returns the handle, which the first call creates with `create`. The error of `create` is a reason, and whether the reason is
    /// permanent. After a temporary reason, such as a lack of device memory, the next call tries again.
    fn get_or_create(&self, create: impl FnOnce() -> std::result::Result<T, (String, bool)>) -> std::result::Result<&T, DeclineReason> {
        if let Some(handle) = self.handle.get() {
            return Ok(handle);
        }
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = self.handle.get() {
            return Ok(handle);
        }
        if let Some(reason) = &*refusal {
            return Err(DeclineReason::with_text(|| reason.clone()));
        }
        create().map(|handle| self.handle.get_or_init(|| handle)).map_err(|(reason, is_permanent)| {
            if is_permanent {
                *refusal = Some(reason.clone());
            }
            DeclineReason::with_text(|| reason)
        })
    }
}

// SAFETY: cutensor.h marks every function that is called with a handle here as thread-safe.
unsafe impl Send for DeviceHandle {}
// SAFETY: cutensor.h marks every function that is called with a handle here as thread-safe.
unsafe impl Sync for DeviceHandle {}

impl DeviceHandle {
    /// Returns the handle of the call's device, which is created at the first call.
    ///
    /// # Errors
    /// Returns the reason if the handle cannot be created.
    fn get_for_device(call: &Call) -> std::result::Result<&'static DeviceHandle, DeclineReason> {
        static DEVICE_HANDLES: OnceLock<Vec<HandleSlot>> = OnceLock::new();
        let count = || driver::probe_driver().map_or(0, |d| d.devices.len());
        let slots = DEVICE_HANDLES.get_or_init(|| (0..count()).map(|_| HandleSlot::default()).collect());
        let ordinal = call.device.ordinal();
        let slot = slots.get(ordinal).ok_or(DeclineReason::new("no such device"))?;
        slot.get_or_create(|| {
            let library = library::get_or_load().map_err(|e| (e.to_string(), false))?;
            let context = Context::get(ordinal).map_err(|e| (e.to_string(), false))?;
            DeviceHandle::create_handle(library, context)
                .map_err(|e| (e.to_string(), false))?
                .map_err(|e| (format!("{}: {}", e.function, sys::describe_status(&library.functions, e.status)), e.is_permanent()))
        })
    }

    /// Creates the handle of a device. If the device has no memory for it, returns the pool's free blocks to the device and tries once
    /// more.
    fn create_handle(
        library: &'static CutensorLibrary,
        context: &'static Context,
    ) -> std::result::Result<LibraryResult<DeviceHandle>, CudaError> {
        let create = || {
            context.set_current()?; // the library creates the handle in the thread's current context
            let mut raw = ptr::null_mut();
            // SAFETY: the context of the device is current; the out-pointer is valid.
            let status = unsafe { (library.functions.create)(&mut raw) };
            Ok::<_, CudaError>(check_status("cutensorCreate", status).map(|()| raw))
        };
        let mut created = create()?;
        if created.is_err_and(CutensorStatusError::is_out_of_memory) {
            context.trim()?;
            created = create()?;
        }
        Ok(created.map(|raw| DeviceHandle { raw, library, context, plans: PlanCache::default(), measuring: Mutex::new(()) }))
    }

    /// Creates the descriptor of an operand.
    fn new_tensor_descriptor(&self, tensor: &OperandDescription, data: DataType, alignment: u32) -> LibraryResult<CutensorObject> {
        let mut raw = ptr::null_mut();
        let modes = tensor.modes.len() as u32;
        // SAFETY: extents and strides have `modes` elements each and are copied.
        let status = unsafe {
            let create = self.library.functions.create_tensor_descriptor;
            create(self.raw, &mut raw, modes, tensor.extents.as_ptr(), tensor.strides.as_ptr(), data, alignment)
        };
        check_status("cutensorCreateTensorDescriptor", status)?;
        Ok(CutensorObject { raw, destroy: self.library.functions.destroy_tensor_descriptor })
    }

    /// Creates the descriptor of an operation.
    fn new_operation_descriptor(&self, key: &PlanKey) -> LibraryResult<CutensorObject> {
        let CutensorOperation { kind, data, inputs, output } = &key.operation;
        let functions = &self.library.functions;
        let compute = key
            .operation
            .compute_descriptor(&self.library.computes)
            .ok_or(CutensorStatusError { function: "CUTENSOR_COMPUTE_DESC", status: Status::NOT_SUPPORTED })?;
        let descriptors: LibraryResult<SmallVec<[CutensorObject; 3]>> =
            inputs.iter().chain([output]).zip(&key.alignments).map(|(t, &a)| self.new_tensor_descriptor(t, *data, a)).collect();
        let descriptors = descriptors?;
        let (identity, mut raw) = (Operator::Identity, ptr::null_mut());
        // SAFETY: the descriptors are alive, and each mode array has the length that its descriptor states. C has the descriptor and the
        // modes of D. The library copies all arguments.
        let (function, status) = unsafe {
            match (kind, &inputs[..], &descriptors[..]) {
                (CutensorOperationKind::Contract(_), [a, b], [da, db, d]) => {
                    let (a, b, out) = (a.modes.as_ptr(), b.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_contraction;
                    let status =
                        create(self.raw, &mut raw, da.raw, a, identity, db.raw, b, identity, d.raw, out, identity, d.raw, out, compute);
                    ("cutensorCreateContraction", status)
                }
                (CutensorOperationKind::Reduce(op), [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_reduction;
                    let status = create(self.raw, &mut raw, da.raw, a, identity, d.raw, out, identity, d.raw, out, *op, compute);
                    ("cutensorCreateReduction", status)
                }
                (CutensorOperationKind::Binary { op, unary: [unary_a, unary_c] }, [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_elementwise_binary;
                    let status = create(self.raw, &mut raw, da.raw, a, *unary_a, d.raw, out, *unary_c, d.raw, out, *op, compute);
                    ("cutensorCreateElementwiseBinary", status)
                }
                (CutensorOperationKind::Trinary { inner, outer, unary: [unary_a, unary_b, unary_c] }, [a, b], [da, db, d]) => {
                    let (a, b, out) = (a.modes.as_ptr(), b.modes.as_ptr(), output.modes.as_ptr());
                    let create = functions.create_elementwise_trinary;
                    let (a, b, c) = ((da.raw, a, *unary_a), (db.raw, b, *unary_b), (d.raw, out, *unary_c));
                    let status =
                        create(self.raw, &mut raw, a.0, a.1, a.2, b.0, b.1, b.2, c.0, c.1, c.2, d.raw, out, *inner, *outer, compute);
                    ("cutensorCreateElementwiseTrinary", status)
                }
                (CutensorOperationKind::Permute, [a], [da, d]) => {
                    let (a, out) = (a.modes.as_ptr(), output.modes.as_ptr());
                    let status = (functions.create_permutation)(self.raw, &mut raw, da.raw, a, identity, d.raw, out, compute);
                    ("cutensorCreatePermutation", status)
                }
                _ => ("operands", Status::INVALID_VALUE),
            }
        };
        check_status(function, status)?;
        Ok(CutensorObject { raw, destroy: functions.destroy_operation_descriptor })
    }

    /// Makes the device's context current. Must be called directly before a function of the library, because an allocation in between may
    /// make another context current to free memory of another device.
    fn make_context_current(&self) -> LibraryResult<()> {
        self.context.set_current().map_err(|_| CutensorStatusError { function: "cuCtxSetCurrent", status: Status::CUDA_ERROR })
    }

    /// Creates the plan of the operation in `key` that uses the kernel `variant` of the library.
    fn create_plan(&self, key: &PlanKey, variant: AlgorithmAndRank) -> LibraryResult<CutensorPlan> {
        self.make_context_current()?;
        let functions = &self.library.functions;
        let operation = self.new_operation_descriptor(key)?;
        let mut scalar: c_int = 0;
        let (scalar_ptr, scalar_size) = ((&raw mut scalar).cast(), size_of::<c_int>());
        // SAFETY: the descriptor is alive. The scalar type attribute is a cudaDataType_t, an enum with the size of an int.
        let status =
            unsafe { (functions.operation_get_attribute)(self.raw, operation.raw, sys::OPERATION_SCALAR_TYPE, scalar_ptr, scalar_size) };
        check_status("cutensorOperationDescriptorGetAttribute", status)?;
        let unknown = CutensorStatusError { function: "the scalar type", status: Status::NOT_SUPPORTED };
        let scalar = DataType::from_raw(scalar).ok_or(unknown)?;

        let mut raw = ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        let status = unsafe { (functions.create_plan_preference)(self.raw, &mut raw, variant.algorithm, sys::JIT_MODE_NONE) };
        check_status("cutensorCreatePlanPreference", status)?;
        let preference = CutensorObject { raw, destroy: functions.destroy_plan_preference };
        if variant.rank > 0 {
            let rank = std::ptr::from_ref(&variant.rank).cast();
            // SAFETY: the preference is alive. The kernel rank attribute is an int32.
            let status = unsafe {
                (functions.plan_preference_set_attribute)(self.raw, preference.raw, sys::PREFERENCE_KERNEL_RANK, rank, size_of::<i32>())
            };
            check_status("cutensorPlanPreferenceSetAttribute", status)?;
        }

        let mut limit = 0u64;
        // SAFETY: the descriptor and the preference are alive, and the out-pointer is valid.
        let status =
            unsafe { (functions.estimate_workspace_size)(self.raw, operation.raw, preference.raw, sys::WORKSPACE_DEFAULT, &mut limit) };
        check_status("cutensorEstimateWorkspaceSize", status)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the descriptor and the preference are alive, the out-pointer is valid, and the context is current.
        let status = unsafe { (functions.create_plan)(self.raw, &mut raw, operation.raw, preference.raw, limit) };
        check_status("cutensorCreatePlan", status)?;
        let plan = CutensorObject { raw, destroy: functions.destroy_plan };

        let mut workspace = 0u64;
        let (out, size) = ((&raw mut workspace).cast(), size_of::<u64>());
        // SAFETY: the plan is alive. The workspace size attribute is a uint64_t.
        let status = unsafe { (functions.plan_get_attribute)(self.raw, plan.raw, sys::PLAN_REQUIRED_WORKSPACE, out, size) };
        check_status("cutensorPlanGetAttribute", status)?;
        Ok(CutensorPlan { object: plan, scalar, workspace })
    }

    /// Creates the plan of an operation.
    ///
    /// A large contraction uses the kernel that the tuning store has for the call. If the store has none, and the user named an accelerator
    /// order, the kernels in [`AlgorithmAndRank::CONTRACTION_KERNEL_CANDIDATES`] are measured. Otherwise the library chooses, although its
    /// choice may take up to twice as long (`docs/notes/cutensor-algorithms.md`).
    fn create_fastest_plan(
        &self,
        key: &PlanKey,
        call: &Call,
        inputs: [u64; 3],
        factors: &[f64],
    ) -> std::result::Result<CutensorPlan, PlanError> {
        let default = || Ok(self.create_plan(key, AlgorithmAndRank::DEFAULT)?);
        if !key.operation.is_large_contraction() {
            return default();
        }
        if let Some(known) = tuning::find_fastest_algorithm(call, TUNING_STORE_KEY)? {
            // Creating the plan may fail, because the kernel may have been measured with arrays of another alignment.
            let known = AlgorithmAndRank::from_name(&known).map(|variant| self.create_plan(key, variant));
            return known.and_then(std::result::Result::ok).map_or_else(default, Ok);
        }
        if !tuning::may_measure() || !registry::is_accelerator_order_set() || call.stream.is_capturing() {
            return default();
        }
        let _exclusive = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut plans, mut times, mut is_complete) = (SmallVec::<[(CutensorPlan, f64); 2]>::new(), Vec::new(), true);
        for variant in AlgorithmAndRank::CONTRACTION_KERNEL_CANDIDATES {
            let measured = self.create_plan(key, variant).map_err(PlanError::from).and_then(|plan| {
                let time = self.measure_plan(key, &plan, call, inputs, factors)?;
                Ok((plan, time))
            });
            match measured {
                Ok((plan, time)) => {
                    times.push((variant.to_string(), time));
                    plans.push((plan, time));
                }
                // If a candidate lacks memory, the comparison of the candidates is incomplete and its result is not stored. A later call
                // may repeat the comparison with more free memory.
                Err(PlanError::Call(Error::OutOfMemory { .. })) => is_complete = false,
                Err(PlanError::Library(error)) => is_complete &= error.is_permanent(),
                Err(error) => return Err(error),
            }
        }
        if is_complete {
            tuning::store_measurements(call, TUNING_STORE_KEY, times)?;
        }
        plans.sort_by(|a, b| a.1.total_cmp(&b.1));
        plans.into_iter().next().map_or_else(default, |(plan, _)| Ok(plan))
    }

    /// Returns the device time of a plan in microseconds, for the inputs of the call and a temporary output. The first run is not measured.
    fn measure_plan(
        &self,
        key: &PlanKey,
        plan: &CutensorPlan,
        call: &Call,
        inputs: [u64; 3],
        factors: &[f64],
    ) -> std::result::Result<f64, PlanError> {
        let workspace = device::allocate(call, plan.workspace as usize)?;
        let (_output, written) = allocate_aligned_output(call, &key.operation)?;
        let at = OperandAddresses { inputs, output: written, workspace: workspace.pointer() };
        // SAFETY: the caller has checked that the inputs are inside their buffers, and `allocate_aligned_output` has checked the output.
        // Buffers are freed in stream order, after the launch.
        let launch = || unsafe { self.launch_plan(key.operation.kind, plan, factors, &at) };
        launch()?;
        let driver = cuprum_core::device::driver(call.device)?;
        let before = driver.record_event(call.stream)?;
        launch()?;
        Ok(driver.record_event(call.stream)?.millis_since(before.as_ref())? * 1e3)
    }

    /// Queues the kernels of a plan. `factors` scale the operands in order, except that the two factors of a contraction scale A * B and C.
    ///
    /// # Safety
    /// Until the kernels have run, the addresses must be valid for all elements of the plan's operands, and the workspace for its size.
    unsafe fn launch_plan(
        &self,
        kind: CutensorOperationKind,
        plan: &CutensorPlan,
        factors: &[f64],
        addresses: &OperandAddresses,
    ) -> LibraryResult<()> {
        self.make_context_current()?;
        let functions = &self.library.functions;
        let factor = |n: usize| ScalingFactor::from_f64(factors.get(n).copied().unwrap_or(0.0), plan.scalar);
        let factors = [factor(0), factor(1), factor(2)];
        let [alpha, beta, gamma] = factors.each_ref().map(|f| std::ptr::from_ref(f).cast::<c_void>());
        let (raw, plan_raw, stream) = (self.raw, plan.object.raw, self.context.stream().cast());
        let OperandAddresses { inputs: [first, second, third], output, workspace } = *addresses;
        // SAFETY: handle and plan are alive, and the factors have the scalar type of the plan. The caller guarantees that the addresses are
        // valid for the operands and the workspace.
        let (function, status) = unsafe {
            match kind {
                CutensorOperationKind::Contract(_) => {
                    let run = functions.contract;
                    let size = plan.workspace;
                    let status = run(raw, plan_raw, alpha, first, second, beta, output, output, workspace, size, stream);
                    ("cutensorContract", status)
                }
                CutensorOperationKind::Reduce(_) => {
                    let run = functions.reduce;
                    let status = run(raw, plan_raw, alpha, first, beta, output, output, workspace, plan.workspace, stream);
                    ("cutensorReduce", status)
                }
                CutensorOperationKind::Binary { .. } => {
                    let run = functions.elementwise_binary_execute;
                    ("cutensorElementwiseBinaryExecute", run(raw, plan_raw, alpha, first, beta, second, output, stream))
                }
                CutensorOperationKind::Trinary { .. } => {
                    let run = functions.elementwise_trinary_execute;
                    let status = run(raw, plan_raw, alpha, first, beta, second, gamma, third, output, stream);
                    ("cutensorElementwiseTrinaryExecute", status)
                }
                CutensorOperationKind::Permute => ("cutensorPermute", (functions.permute)(raw, plan_raw, alpha, first, output, stream)),
            }
        };
        check_status(function, status)
    }
}

/// Device addresses of a launch. `inputs` are in the order of the operands; unused addresses are 0.
struct OperandAddresses {
    inputs: [u64; 3],
    output: u64,
    workspace: u64,
}

/// A cuTENSOR descriptor, plan preference or plan. Dropping a `CutensorObject` destroys the cuTENSOR object.
struct CutensorObject {
    raw: *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void) -> Status,
}

// SAFETY: the objects live in host memory, and cutensor.h marks their creation, use and destruction as thread-safe.
unsafe impl Send for CutensorObject {}
// SAFETY: cutensor.h marks the use of the objects as thread-safe, and no function here changes an object after its creation.
unsafe impl Sync for CutensorObject {}

impl Drop for CutensorObject {
    fn drop(&mut self) {
        // SAFETY: the object was created by the counterpart of `destroy`, and is destroyed only here.
        unsafe { (self.destroy)(self.raw) };
    }
}

/// A cuTENSOR plan: the kernel that the library has chosen for an operation.
struct CutensorPlan {
    object: CutensorObject,
    /// Scalar type of the plan's scaling factors.
    scalar: DataType,
    /// Size of the plan's workspace, in bytes.
    workspace: u64,
}

/// Returns the alignment of an address in bytes, at most [`MAX_ALIGNMENT`].
fn address_alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(MAX_ALIGNMENT.trailing_zeros())
}

/// Returns the device address of the operand that starts `byte_offset` bytes into `buffer`. Returns an error if an element of `tensor` is
/// outside `buffer`.
fn checked_operand_address(
    buffer: &CudaBuffer,
    byte_offset: usize,
    tensor: &OperandDescription,
    data: DataType,
) -> std::result::Result<u64, CudaError> {
    buffer.memory().checked_address(byte_offset, tensor.span_in_elements().saturating_mul(data.size_in_bytes()))
}

/// Allocates the output. Returns its buffer and address.
fn allocate_aligned_output(call: &Call, operation: &CutensorOperation) -> Result<(Arc<CudaBuffer>, u64)> {
    let output = device::allocate_output(call, 0)?;
    let written = checked_operand_address(&output, 0, &operation.output, operation.data)
        .map_err(|e| device::to_core_error(ACCELERATOR_NAME, call.op.name(), call.device, e))?;
    match address_alignment(written) < MAX_ALIGNMENT {
        true => Err(Error::backend(ACCELERATOR_NAME, call.op.name(), format!("new memory is not aligned to {MAX_ALIGNMENT} bytes"))),
        false => Ok((output, written)),
    }
}

/// Runs a call as `operation` on the arrays A and, depending on the kind, B and C.
///
/// `factors` scale the arrays in order, except that the two factors of a contraction scale A * B and C.
pub fn run_operation(call: &Call, operation: CutensorOperation, arrays: &[&StoredArray], factors: &[f64]) -> Result<Outcome> {
    let handle = match DeviceHandle::get_for_device(call) {
        Ok(handle) => handle,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let failed = |e: CudaError| device::to_core_error(ACCELERATOR_NAME, call.op.name(), call.device, e);
    let (kind, data) = (operation.kind, operation.data);
    let mut inputs = [0u64; 3];
    for (n, (array, at)) in arrays.iter().zip(&mut inputs).enumerate() {
        let buffer = device::memory_to_read(array)?;
        let tensor = operation.inputs.get(n).unwrap_or(&operation.output);
        let offset = array.layout().offset() * array.dtype().itemsize();
        *at = checked_operand_address(buffer, offset, tensor, data).map_err(failed)?;
    }
    let descriptor_count = operation.inputs.len();
    let mut alignments: SmallVec<[u32; 3]> = inputs.iter().take(descriptor_count).map(|a| address_alignment(*a)).collect();
    // The operand C of an elementwise operation has the descriptor of the output D. This descriptor must state an alignment that both
    // operands have.
    let alignment_of_c = inputs.iter().take(arrays.len()).skip(descriptor_count).map(|a| address_alignment(*a));
    alignments.push(alignment_of_c.fold(MAX_ALIGNMENT, u32::min));
    let key = PlanKey { operation, alignments };
    let plan = handle.plans.get_or_make(&key, || match handle.create_fastest_plan(&key, call, inputs, factors) {
        Ok(plan) => Ok(Ok(plan)),
        Err(PlanError::Library(error)) if error.is_permanent() => Ok(Err(error)),
        Err(error) => Err(error),
    });
    let plan = match plan.as_deref() {
        Ok(Ok(plan)) => plan,
        Ok(Err(error)) | Err(PlanError::Library(error)) => return Ok(Outcome::Declined(error.to_decline_reason(handle, call)?)),
        Err(PlanError::Call(error)) => return Err(error.clone()),
    };
    let workspace = match device::allocate(call, plan.workspace as usize) {
        Ok(workspace) => workspace,
        Err(Error::OutOfMemory { requested, .. }) => cuprum_core::decline!("not enough memory for a workspace of {requested} bytes"),
        Err(e) => return Err(e),
    };
    let (output, written) = allocate_aligned_output(call, &key.operation)?;
    let at = OperandAddresses { inputs, output: written, workspace: workspace.pointer() };
    // SAFETY: all elements of each tensor are inside its buffer. Buffers are freed in stream order, and the launch is queued before any of
    // them is dropped.
    match unsafe { handle.launch_plan(kind, plan, factors, &at) } {
        Ok(()) => device::outcome_from_buffers(call, [output]),
        Err(error) => Ok(Outcome::Declined(error.to_decline_reason(handle, call)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_powers_of_two_up_to_256() {
        assert_eq!([0x1000, 0x1010, 0x1004, 0x1080, 0x7f00_0000].map(address_alignment), [256, 16, 4, 128, 256]);
    }

    #[test]
    fn a_handle_is_created_again_after_a_temporary_failure() {
        let slot = HandleSlot::<u32>::default();
        let run = |result: std::result::Result<u32, (&str, bool)>| {
            slot.get_or_create(|| result.map_err(|(reason, is_permanent)| (reason.into(), is_permanent))).copied().ok()
        };
        assert_eq!([Err(("no memory", false)), Ok(5), Err(("kept", true))].map(run), [None, Some(5), Some(5)]);
        let slot = HandleSlot::<u32>::default();
        assert!(slot.get_or_create(|| Err(("no such architecture".into(), true))).is_err());
        assert!(slot.get_or_create(|| Ok(5)).is_err());
        let error = |status| CutensorStatusError { function: "x", status };
        assert!(error(Status::ALLOC_FAILED).is_out_of_memory() && !error(Status::INTERNAL_ERROR).is_out_of_memory());
        assert!(error(Status::INSUFFICIENT_DRIVER).is_permanent());
    }

    #[test]
    fn only_permanent_errors_are_cached() {
        let error = |status| CutensorStatusError { function: "x", status };
        assert!(error(Status::NOT_SUPPORTED).is_permanent() && error(Status::ARCH_MISMATCH).is_permanent());
        assert!(!error(Status::CUDA_ERROR).is_permanent() && !error(Status::ALLOC_FAILED).is_permanent());
    }
}
