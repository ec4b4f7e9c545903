//! Dispatch of calls, with their tracing spans. Each kernel family has a chain of kernels on each kind of device. A call runs on the first
//! kernel in the chain that accepts it.

use std::fmt;

use smallvec::SmallVec;

use super::call_record::{CallRecord, call_dtypes, call_shapes};
use super::explain::{linear_solve_hint, push_explain_record};
use super::trace;
use crate::array::{Array, StoredArray};
use crate::call::{Call, DeclineReason, KernelModeGuard, Outcome, OutputSpec, Outputs, Sparse, Work, wants_decline_reasons};
use crate::device::{Device, Stream, driver, with_device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Capabilities, Capability, Family, Op};
use crate::program::{Step, StepKind};
use crate::registry::{self, Accelerator, KernelChainEntry, OpFilter};
use crate::settings::{self, HostFallback};
use crate::tuning::{self, TuningAdvice};

/// Runs `call` on the first kernel that accepts it. Kernels are tried in the order of the device's chain of accelerators.
///
/// # Errors
/// The error of the kernel that failed. [`Error::Unsupported`] with all reasons if every kernel declines and no fallback applies.
pub fn run_call(call: &Call) -> Result<Outputs> {
    if call.outputs.iter().all(|o| o.layout.size() == 0) {
        return empty_outputs(call);
    }
    if wants_decline_reasons() || trace::is_tracing() || tracing::level_enabled!(tracing::Level::DEBUG) {
        return run_observed_call(call);
    }
    let mut state = DispatchState::new(call, false);
    let served = run_kernel_chain(call, &mut state);
    return_outputs_or_run_fallback(call, served, &mut state)
}

/// Runs a call as [`run_call`] does and reports it to observers: `explain`, the trace, or a `tracing` subscriber.
#[cold]
fn run_observed_call(call: &Call) -> Result<Outputs> {
    let span = tracing::debug_span!(
        "call",
        op = call.op.name(),
        family = ?call.family(),
        device = %call.device,
        bytes = tracing::field::Empty,
        shapes = tracing::field::Empty,
        dtypes = tracing::field::Empty,
        served_by = tracing::field::Empty,
    );
    let _entered = span.enter();
    if !span.is_disabled() {
        span.record("bytes", call.min_memory_traffic());
        span.record("shapes", tracing::field::debug(call_shapes(call)));
        span.record("dtypes", tracing::field::debug(call_dtypes(call)));
    }
    let mut state = DispatchState::new(call, wants_decline_reasons());
    let watch = trace::begin_traced_call(call.stream);
    let served = run_kernel_chain(call, &mut state);
    let record = (state.wants_decline_reasons || watch.is_some()).then(|| CallRecord {
        served_by: state.served_by,
        declined: std::mem::take(&mut state.declined),
        chosen: state.chosen.take(),
        hint: if state.wants_decline_reasons { linear_solve_hint(call, &state.outputs) } else { None },
        ..CallRecord::from_call(call)
    });
    if state.wants_decline_reasons {
        push_explain_record(record.clone());
    }
    if let Some(name) = state.served_by {
        span.record("served_by", name);
    }
    let outputs = return_outputs_or_run_fallback(call, served, &mut state);
    trace::end_traced_call(watch, record.as_ref(), outputs.as_ref().err());
    outputs
}

/// Returns the outputs if `served` is `Ok(true)`: a kernel ran the call. If every kernel declined (`Ok(false)`), runs the fallback.
fn return_outputs_or_run_fallback(call: &Call, served: Result<bool>, state: &mut DispatchState) -> Result<Outputs> {
    match (served?, state.trial_error.take()) {
        (true, _) => Ok(std::mem::take(&mut state.outputs)),
        (false, None) => run_fallback(call),
        // An accelerator failed while autotuning measured it on this call. If no other kernel serves the call, its error is more
        // informative than `Unsupported`.
        (false, Some(trial_error)) => run_fallback(call).map_err(|e| if matches!(e, Error::Unsupported { .. }) { trial_error } else { e }),
    }
}

/// State of one call while dispatch tries the kernels of the chain of accelerators.
struct DispatchState {
    /// Capabilities that the call needs.
    needed: Capabilities,
    wants_decline_reasons: bool,
    /// The accelerator that ran the call; `None` while no accelerator has run it.
    served_by: Option<&'static str>,
    /// Outputs of the call. Stored here, because returning them through several functions would take longer than a small call.
    outputs: Outputs,
    /// Whether a kernel declined for a temporary reason.
    declined_temporarily: bool,
    declined: Vec<(&'static str, String)>,
    chosen: Option<String>,
    /// Error of an accelerator that failed while autotuning measured it on this call. Returned instead of [`Error::Unsupported`] if no
    /// other accelerator serves the call.
    trial_error: Option<Error>,
}

impl DispatchState {
    fn new(call: &Call, wants_decline_reasons: bool) -> DispatchState {
        DispatchState {
            needed: call.required_capabilities(),
            wants_decline_reasons,
            served_by: None,
            outputs: Outputs::new(),
            declined_temporarily: false,
            declined: Vec::new(),
            chosen: None,
            trial_error: None,
        }
    }

    fn record_decline(&mut self, accelerator: &Accelerator, why: &str) {
        if self.wants_decline_reasons {
            self.declined.push((accelerator.name, why.to_string()));
        }
    }
}

/// Tries the kernel of `entry`. Returns whether the kernel served the call.
fn try_kernel(call: &Call, entry: &KernelChainEntry, state: &mut DispatchState) -> Result<bool> {
    if let Err(why) = check_kernel_declaration(entry, call, state.needed) {
        if state.wants_decline_reasons {
            state.record_decline(entry.accelerator, &why.to_string());
        }
        return Ok(false);
    }
    let outcome = run_kernel(call, entry).inspect_err(|error| {
        if state.wants_decline_reasons {
            state.record_decline(entry.accelerator, &format!("failed: {error}"));
        }
    });
    match outcome? {
        Outcome::Done(outputs) => {
            check_outputs(call, &outputs, entry)?;
            (state.served_by, state.outputs) = (Some(entry.accelerator.name), outputs);
            Ok(true)
        }
        Outcome::Declined(reason) => {
            state.declined_temporarily |= reason.is_retryable();
            state.record_decline(entry.accelerator, reason.text());
            Ok(false)
        }
    }
}

/// Returns an error if the outputs of a kernel differ in number, dtype, shape or device from those that `call` requests.
#[inline]
fn check_outputs(call: &Call, outputs: &Outputs, entry: &KernelChainEntry) -> Result<()> {
    // For these kinds of work, the kernel determines the extents of the outputs, so the requested shapes are not compared.
    let has_any_shape = matches!(call.work, Work::Select(_) | Work::Custom(_) | Work::Sparse(Sparse::Product { .. }));
    let matches_spec = |(output, spec): (&StoredArray, &OutputSpec)| {
        output.dtype() == spec.dtype && output.device() == call.device && (has_any_shape || output.layout().shape() == spec.layout.shape())
    };
    if outputs.len() == call.outputs.len() && outputs.iter().zip(call.outputs).all(matches_spec) {
        return Ok(());
    }
    Err(wrong_outputs_error(call, outputs, entry))
}

#[cold]
fn wrong_outputs_error(call: &Call, outputs: &Outputs, entry: &KernelChainEntry) -> Error {
    let returned: Vec<_> = outputs.iter().map(|a| (a.dtype(), a.shape(), a.device())).collect();
    let requested: Vec<_> = call.outputs.iter().map(|o| (o.dtype, o.layout.shape())).collect();
    Error::backend(
        entry.accelerator.name,
        call.op.name(),
        format!("a kernel returned {returned:?}; the call needs {requested:?} on {}", call.device),
    )
}

/// Runs the kernel of `entry`. The caller has checked that the kernel declares the operations and dtypes of `call`.
#[inline]
fn run_kernel(call: &Call, entry: &KernelChainEntry) -> Result<Outcome> {
    if entry.kernel.targets || !call.has_output_targets() { (entry.kernel.run)(call) } else { run_kernel_with_new_outputs(call, entry) }
}

/// Runs a kernel that cannot write to existing buffers, with new output buffers. Declines a call that updates a part of a buffer.
#[cold]
fn run_kernel_with_new_outputs(call: &Call, entry: &KernelChainEntry) -> Result<Outcome> {
    if call.updates_part_of_target() {
        return Ok(Outcome::Declined(DeclineReason::new("does not write to an existing array")));
    }
    (entry.kernel.run)(&Call { outputs: &call.outputs_with_new_buffers(), ..*call })
}

/// Tries the kernels of the chain of accelerators in order. Under the order `auto`, kernels of the accelerator that tuning recommends are
/// tried first. Returns whether a kernel served the call.
fn run_kernel_chain(call: &Call, state: &mut DispatchState) -> Result<bool> {
    let chains = registry::current_chains()?;
    if chains.has_auto_order() && call.has_output_targets() && !call.updates_part_of_target() {
        // While tuning measures a call, the call writes to a new buffer instead of its target, an existing buffer. A failing kernel could
        // otherwise overwrite a target that is also an input of the next kernel.
        return run_kernel_chain(&Call { outputs: &call.outputs_with_new_buffers(), ..*call }, state);
    }
    let chain = chains.chain_of_family(call.family(), call.device.kind());
    let advice = if chains.has_auto_order() { tuning::recommend_accelerator(call, chain)? } else { None };
    let served = match advice {
        Some(advice) => try_kernels_with_tuning_advice(call, chain, &advice, state),
        None => try_kernels(call, chain, state),
    };
    match served {
        Ok(false) if state.declined_temporarily => retry_with_blocking_compilation(call, chain, state),
        served => served,
    }
}

/// Tries the kernels of `chain` in order. Returns whether one served the call.
fn try_kernels<'a>(call: &Call, chain: impl IntoIterator<Item = &'a KernelChainEntry>, state: &mut DispatchState) -> Result<bool> {
    for entry in chain {
        if try_kernel(call, entry, state)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Retries the kernels of `chain` after all have declined, at least one for a temporary reason. In this retry, kernels are compiled before
/// they run instead of in the background. Returns whether a kernel served the call.
fn retry_with_blocking_compilation(call: &Call, chain: &[KernelChainEntry], state: &mut DispatchState) -> Result<bool> {
    state.declined.clear();
    let _blocking = KernelModeGuard::enable_foreground_compilation();
    try_kernels(call, chain, state)
}

/// Tries the accelerator that [`tuning`] recommends, then the other accelerators of the chain. If the call is part of a trial, which
/// measures accelerators to find the fastest, the call may be timed.
///
/// An accelerator that fails or declines during a trial is excluded from the trial, unless it ran out of memory or declined for a temporary
/// reason. The error of a failed accelerator is returned if no other kernel accepts the call.
fn try_kernels_with_tuning_advice(
    call: &Call,
    chain: &'static [KernelChainEntry],
    advice: &TuningAdvice,
    state: &mut DispatchState,
) -> Result<bool> {
    if state.wants_decline_reasons {
        state.chosen = Some(advice.describe_advice());
    }
    let is_first = |entry: &&KernelChainEntry| std::ptr::eq(entry.accelerator, advice.accelerator);
    let watch = advice.start_call_timer(call)?;
    match try_kernels(call, chain.iter().filter(is_first), state) {
        Ok(true) => {
            advice.record_served_call(call, watch)?;
            return Ok(true);
        }
        Err(error) if advice.is_trial_run() && !is_data_error(&error, call) => {
            tracing::warn!(accelerator = advice.accelerator.name, %error, op = call.op.name(), "failed on trial; the rest of the chain is tried");
            // A failed allocation may succeed later, so autotuning continues to measure the accelerator.
            if !matches!(error, Error::OutOfMemory { .. }) {
                advice.record_refusal();
            }
            state.trial_error = Some(error);
        }
        other => {
            other?;
            // An accelerator that declines for a temporary reason, such as a kernel still compiling, is measured again by autotuning.
            if !state.declined_temporarily {
                advice.record_refusal();
            }
        }
    }
    try_kernels(call, chain.iter().filter(|entry| !is_first(entry)), state)
}

/// Returns whether the data of this or an earlier call caused `error`, such as an index out of bounds or a singular matrix.
///
/// For such an error, other kernels are not tried and tuning does not exclude the accelerator, since the accelerator did not fail.
fn is_data_error(error: &Error, call: &Call) -> bool {
    match error {
        Error::Index { .. } | Error::LinAlg { .. } => true,
        Error::Value { op, .. } => *op != call.op.name(),
        _ => false,
    }
}

/// Returns whether a kernel of `family` on `device` declares `capability`, under the accelerator order of this thread.
///
/// # Errors
/// [`Error::Setting`] if the accelerator order is invalid.
pub fn any_kernel_has_capability(capability: Capability, family: Family, device: Device) -> Result<bool> {
    Ok(kernel_capabilities(family, device)?.contains(capability))
}

/// Returns the capabilities that at least one kernel of `family` on `device` declares.
pub(crate) fn kernel_capabilities(family: Family, device: Device) -> Result<Capabilities> {
    Ok(registry::current_chains()?.capabilities(family, device.kind()))
}

/// The part of a kernel's declaration that excludes a call. Formatted only if the reason is read.
enum UnsupportedByDeclaration {
    Capability(Capability),
    Operation(Op),
    DType(DType),
}

impl fmt::Display for UnsupportedByDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsupportedByDeclaration::Capability(missing) => f.write_str(missing.reason_if_missing()),
            UnsupportedByDeclaration::Operation(op) => write!(f, "does not take the operation {}", op.name()),
            UnsupportedByDeclaration::DType(dtype) => write!(f, "does not take the dtype {dtype}"),
        }
    }
}

/// Checks that the kernel's declaration (the `needed` capabilities, its operations and its dtypes) accepts `call`. `Err` is the reason to
/// decline.
fn check_kernel_declaration(
    entry: &KernelChainEntry,
    call: &Call,
    needed: Capabilities,
) -> std::result::Result<(), UnsupportedByDeclaration> {
    let kernel = entry.kernel;
    if let Some(missing) = needed.first_missing_in(kernel.capabilities) {
        return Err(UnsupportedByDeclaration::Capability(missing));
    }
    if !matches!(kernel.ops, OpFilter::All) {
        let is_declared = |kind: StepKind| kind.required_capability().is_some();
        let listed = |step: &Step| match step.kind {
            StepKind::Fold(op) => Some(op),
            StepKind::Apply(op) if !is_declared(step.kind) => Some(op),
            _ => None,
        };
        let mut fused = call.program().into_iter().flat_map(|p| p.steps.iter().filter_map(listed)).peekable();
        let excluded = match call.family() {
            Family::Map | Family::Rows if fused.peek().is_some() => fused.find(|op| !kernel.ops.accepts(*op)),
            Family::Map | Family::Rows => (!is_declared(StepKind::Apply(call.op)) && !kernel.ops.accepts(call.op)).then_some(call.op),
            _ => (call.op.required_capability().is_none() && !kernel.ops.accepts(call.op)).then_some(call.op),
        };
        if let Some(op) = excluded {
            return Err(UnsupportedByDeclaration::Operation(op));
        }
    }
    let is_excluded = |dtype: &DType| !kernel.dtypes.contains(*dtype);
    let excluded = match call.inputs.is_empty() {
        true => call.outputs.iter().map(|o| o.dtype).find(is_excluded),
        false => call.inputs.iter().map(|a| a.dtype()).find(is_excluded),
    };
    excluded.map_or(Ok(()), |dtype| Err(UnsupportedByDeclaration::DType(dtype)))
}

/// Handles a call that every kernel declined. If the operation is defined as a composition of other operations, runs the composition.
/// Otherwise runs the call on the host if the setting [`HostFallback`] allows it, or returns an error with every reason.
#[cold]
fn run_fallback(call: &Call) -> Result<Outputs> {
    // Fused calls of the families `Map` and `Rows` have a later fallback in the module `expr`, which handles `Error::Unsupported`. For
    // `Map`, `expr` composes other operations and adds scalar arguments that dispatch does not have. For `Rows`, `expr` runs each reduction
    // as a separate call.
    let is_composed = call.op.0.composite.is_some() && call.op.family() != Family::Gather;
    let has_later_fallback = call.program().is_some() && is_composed || call.family() == Family::Rows;
    let policy = if has_later_fallback { HostFallback::Error } else { settings::host_fallback()? };
    if let Some(composite) = call.op.0.composite.filter(|_| call.program().is_none()) {
        return composite(call.inputs, call.work.as_request().composite_parameters());
    }
    match policy {
        HostFallback::Error => {}
        _ if call.device == Device::CPU || call.updates_part_of_target() => {}
        policy => {
            if policy == HostFallback::Warn {
                tracing::warn!(op = call.op.name(), device = %call.device, "computed on the host: no accelerator of the device takes it");
            }
            return run_on_host(call);
        }
    }
    // Every kernel has declined and runs again only to format its reason. That is safe, because declining has no side effect.
    let (guard, needed) = (KernelModeGuard::enable_reason_formatting(), call.required_capabilities());
    let mut tried = Vec::new();
    for entry in registry::current_chains()?.chain_of_family(call.family(), call.device.kind()) {
        match check_kernel_declaration(entry, call, needed) {
            Err(why) => tried.push((entry.accelerator.name, why.to_string())),
            Ok(()) => {
                if let Ok(Outcome::Declined(reason)) = run_kernel(call, entry) {
                    tried.push((entry.accelerator.name, reason.text().to_string()));
                }
            }
        }
    }
    drop(guard);
    // If the device cannot be used, returns the device's error. Otherwise the reasons name the device's base accelerator (the fallback for
    // every call) even if that accelerator has no kernels of the family.
    driver(call.device).map_err(|e| e.with_function_name(call.op.name()))?;
    if let Some(base) = registry::base_accelerator_of_kind(call.device.kind().name())
        && base.kernels.iter().all(|k| k.family != call.family())
    {
        let advice = match (base.name, call.family()) {
            ("cpu", Family::Linalg) => "; enable the feature `linalg` of the crate `cuprum`",
            ("cpu", Family::Fft) => "; enable the feature `fft` of the crate `cuprum`",
            _ => "",
        };
        tried.push((base.name, format!("has no {:?} kernels{advice}", call.family())));
    }
    Err(Error::Unsupported { op: call.op.name(), dtypes: call_dtypes(call), shapes: call_shapes(call), device: call.device, tried })
}

/// Runs the call on the host: copies inputs to the host and outputs back.
fn run_on_host(call: &Call) -> Result<Outputs> {
    let inputs = call.inputs.iter().map(StoredArray::copy_to_host).collect::<Result<SmallVec<[StoredArray; 4]>>>()?;
    let host = Call {
        op: call.op,
        device: Device::CPU,
        stream: Stream::current(Device::CPU),
        inputs: &inputs,
        outputs: &call.outputs_with_new_buffers(),
        work: call.work,
    };
    let outputs = with_device(Device::CPU, || run_call(&host))?;
    outputs.iter().map(|a| a.upload(call.device, call.stream)).collect()
}

/// Returns the outputs of a call whose outputs have no elements, so that no kernel has to run.
fn empty_outputs(call: &Call) -> Result<Outputs> {
    let driver = driver(call.device)?;
    let make = |o: &OutputSpec| StoredArray::new(o.dtype, o.layout.clone(), driver.allocate(0, call.stream)?);
    call.outputs.iter().map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Fill;
    use crate::device::DeviceKind;
    use crate::registry::{Availability, Kernel};

    static ENTRY: KernelChainEntry = KernelChainEntry {
        accelerator: &Accelerator {
            name: "other",
            device: "cpu",
            rank: 0,
            summary: "",
            probe: || Availability::Ready(String::new()),
            kernels: &[],
            base: None,
        },
        kernel: &Kernel::new(Family::Fill, |_| Ok(Outcome::Done(Outputs::new()))),
    };

    #[test]
    fn outputs_on_another_device_are_errors() {
        let specification = OutputSpec::contiguous(DType::F64, &[2]).unwrap();
        let buffer = std::sync::Arc::new(crate::host_buffer::HostBuffer::zeroed(16).unwrap());
        let outputs: Outputs = [StoredArray::new(DType::F64, specification.layout.clone(), buffer).unwrap()].into_iter().collect();
        let check = |device: Device| {
            let (stream, work) = (Stream::current(Device::CPU), Work::Fill(Fill::Undefined));
            let op = crate::ops::creation::EMPTY;
            check_outputs(&Call { op, device, stream, inputs: &[], outputs: std::slice::from_ref(&specification), work }, &outputs, &ENTRY)
        };
        check(Device::CPU).unwrap();
        assert!(check(Device::new(DeviceKind::CPU, 1)).is_err());
    }
}
