//! Dispatch: runs a call on the first kernel of its chain that accepts it. Also [`explain`] and the tracing spans of calls.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::thread::LocalKey;

use smallvec::SmallVec;

use crate::array::{Array, NdArray, StoredArray};
use crate::buffer::HostBuffer;
use crate::call::{Call, Outcome, OutputSpec, Outputs};
use crate::device::{Device, Stream, driver, with_device};
use crate::dtype::DType;
use crate::error::{Error, Result, shape_text};
use crate::op::Family;
use crate::profiler::trace;
use crate::registry::{self, Accelerator, ChainEntry, OpFilter};
use crate::settings::{self, HostFallback};
use crate::tuning::{self, Advice};

/// Record of one dispatched call.
#[derive(Clone, Debug)]
pub struct Record {
    /// NumPy name of the operation. For a fused expression, the name of its last operation.
    pub op: &'static str,
    /// The family of kernels.
    pub family: Family,
    /// The device of the call.
    pub device: Device,
    /// Dtypes of the inputs, or of the outputs if there are no inputs.
    pub dtypes: Vec<DType>,
    /// Shapes of the inputs: broadcast for Map, Reduce, Rows and Scan, flattened for Select and Histogram.
    pub shapes: Vec<Vec<usize>>,
    /// The fused expression, if the call has one.
    pub expression: Option<String>,
    /// Minimum number of bytes read and written.
    pub bytes: usize,
    /// The accelerator that ran the call; `None` if all declined or one failed.
    pub served_by: Option<&'static str>,
    /// Accelerators that declined, with their reasons.
    pub declined: Vec<(&'static str, String)>,
    /// Under the order `auto`: the accelerator tried first, with the reason (see [`tuning`]).
    pub chosen: Option<String>,
    /// The kernel, if the record is of a launch that bypassed dispatch ([`record_launch`]).
    pub launch: Option<KernelLaunch>,
}

/// A kernel launch that bypassed dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// Name of the kernel.
    pub kernel: String,
    /// Grid size: blocks along x, y and z.
    pub grid: [u32; 3],
    /// Block size: threads along x, y and z.
    pub block: [u32; 3],
}

impl Record {
    #[cold]
    fn of_call(call: &Call, state: &mut DispatchState) -> Record {
        Record {
            op: call.op.name(),
            family: call.family(),
            device: call.device,
            dtypes: dtypes(call),
            shapes: shapes(call),
            expression: call.program().map(ToString::to_string),
            bytes: call.bytes(),
            served_by: state.served_by,
            declined: std::mem::take(&mut state.declined),
            chosen: state.chosen.take(),
            launch: None,
        }
    }

    /// Returns the record of a graph launch with `nodes` nodes.
    pub(crate) fn of_graph(device: Device, nodes: usize) -> Record {
        Record {
            op: "graph",
            family: Family::Custom,
            device,
            dtypes: Vec::new(),
            shapes: Vec::new(),
            expression: Some(format!("{nodes} nodes")),
            bytes: 0,
            served_by: registry::base_of(device.kind().name()).map(|base| base.name),
            declined: Vec::new(),
            chosen: None,
            launch: None,
        }
    }

    /// Returns the record of a user-requested kernel launch on `arrays`, for [`record_launch`].
    pub fn of_launch<'a>(
        op: &'static str,
        accelerator: &'static str,
        device: Device,
        launch: KernelLaunch,
        arrays: impl IntoIterator<Item = &'a NdArray>,
    ) -> Record {
        let arrays: SmallVec<[&NdArray; 4]> = arrays.into_iter().collect();
        Record {
            op,
            family: Family::Custom,
            device,
            dtypes: arrays.iter().map(|a| a.dtype()).collect(),
            shapes: arrays.iter().map(|a| a.shape().to_vec()).collect(),
            expression: None,
            bytes: arrays.iter().map(|a| a.nbytes()).sum(),
            served_by: Some(accelerator),
            declined: Vec::new(),
            chosen: None,
            launch: Some(launch),
        }
    }

    /// Returns the fused expression, or `None` if it is the identity.
    pub(crate) fn computes(&self) -> Option<&str> {
        self.expression.as_deref().filter(|e| *e != "a0")
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtypes: Vec<_> = self.dtypes.iter().map(|d| d.name()).collect();
        let shapes: Vec<_> = self.shapes.iter().map(|s| shape_text(s)).collect();
        write!(f, "{} [{:?}]", self.op, self.family)?;
        if !dtypes.is_empty() {
            write!(f, " {} {}", dtypes.join(","), shapes.join(","))?;
        }
        write!(f, " on {}: {}", self.device, self.served_by.unwrap_or("no accelerator"))?;
        if let Some(e) = self.computes() {
            write!(f, "\n    computes {e}")?;
        }
        if let Some(KernelLaunch { kernel, grid, block }) = &self.launch {
            write!(f, "\n    launches {kernel}, blocks {grid:?} of threads {block:?}")?;
        }
        if let Some(chosen) = &self.chosen {
            write!(f, "\n    auto: {chosen}")?;
        }
        for (name, why) in &self.declined {
            write!(f, "\n    {name} declined: {why}")?;
        }
        Ok(())
    }
}

thread_local! {
    static RECORDS: RefCell<Option<Vec<Record>>> = const { RefCell::new(None) };
    static WANTS_REASONS: Cell<bool> = const { Cell::new(false) };
    static BLOCKS_ON_COMPILATION: Cell<bool> = const { Cell::new(false) };
}

/// Sets a thread-local flag until the guard is dropped.
struct FlagGuard {
    flag: &'static LocalKey<Cell<bool>>,
    previous: bool,
}

impl FlagGuard {
    fn new(flag: &'static LocalKey<Cell<bool>>) -> FlagGuard {
        FlagGuard { flag, previous: flag.replace(true) }
    }
}

impl Drop for FlagGuard {
    fn drop(&mut self) {
        self.flag.set(self.previous);
    }
}

/// Whether declined kernels should format their reasons.
pub(crate) fn wants_reasons() -> bool {
    WANTS_REASONS.get()
}

/// Whether kernels should compile now instead of declining, because no other accelerator has accepted the call.
pub(crate) fn blocks_on_compilation() -> bool {
    BLOCKS_ON_COMPILATION.get()
}

/// Runs `f` with kernels that compile in the foreground, as under [`Compile::Wait`](settings::Compile::Wait).
pub(crate) fn with_blocking_compilation<R>(f: impl FnOnce() -> R) -> R {
    let _blocking = FlagGuard::new(&BLOCKS_ON_COMPILATION);
    f()
}

/// Runs `f` and returns its result with the record of every call that this thread dispatched, in order.
///
/// Deferred arrays that `f` builds but does not evaluate are not included: call [`NdArray::eval`] inside.
pub fn explain<R>(f: impl FnOnce() -> R) -> (R, Vec<Record>) {
    struct Restore(Option<Vec<Record>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDS.replace(self.0.take());
        }
    }
    let (_guard, _restore) = (FlagGuard::new(&WANTS_REASONS), Restore(RECORDS.replace(Some(Vec::new()))));
    let result = f();
    let records = RECORDS.take().unwrap_or_default();
    (result, records)
}

/// Runs a call on the first kernel of its chain that accepts it.
///
/// # Errors
/// The error of the kernel that failed. [`Error::Unsupported`] with all reasons if every kernel declines and no fallback applies.
pub fn run(call: &Call) -> Result<Outputs> {
    if call.outputs.iter().all(|o| o.layout.size() == 0) {
        return empty_outputs(call);
    }
    if wants_reasons() || trace::is_on() || tracing::level_enabled!(tracing::Level::DEBUG) {
        return run_observed(call);
    }
    let mut state = DispatchState::new(false);
    let served = run_chain(call, &mut state);
    finish(call, served, &mut state)
}

/// [`run`] with observers: `explain`, the trace or a `tracing` subscriber.
#[cold]
fn run_observed(call: &Call) -> Result<Outputs> {
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
        span.record("bytes", call.bytes());
        span.record("shapes", tracing::field::debug(shapes(call)));
        span.record("dtypes", tracing::field::debug(dtypes(call)));
    }
    let mut state = DispatchState::new(wants_reasons());
    let watch = trace::begin(call.stream);
    let served = run_chain(call, &mut state);
    let record = (state.wants_reasons || watch.is_some()).then(|| Record::of_call(call, &mut state));
    if state.wants_reasons {
        push_record(record.clone());
    }
    if let Some(name) = state.served_by {
        span.record("served_by", name);
    }
    let outputs = finish(call, served, &mut state);
    trace::end(watch, record.as_ref(), outputs.as_ref().err());
    outputs
}

/// Returns the outputs of a served call, or runs the fallback if every kernel declined.
fn finish(call: &Call, served: Result<bool>, state: &mut DispatchState) -> Result<Outputs> {
    match (served?, state.failed.take()) {
        (true, _) => Ok(std::mem::take(&mut state.outputs)),
        (false, None) => run_fallback(call),
        // A failed trial explains better than `Unsupported` why no accelerator serves the call.
        (false, Some(failed)) => run_fallback(call).map_err(|e| if matches!(e, Error::Unsupported { .. }) { failed } else { e }),
    }
}

/// Records a launch that bypassed dispatch, so that [`explain`] and `CUPRUM_TRACE` show it. For backends.
///
/// Runs `work` and returns its result. `describe` is called only if the record is needed.
pub fn record_launch<R>(stream: Stream, describe: impl FnOnce() -> Record, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let explaining = wants_reasons();
    if !explaining && !trace::is_on() {
        return work();
    }
    let mut record = describe();
    let watch = trace::begin(stream);
    let result = work();
    if result.is_err() {
        record.served_by = None;
    }
    trace::end(watch, Some(&record), result.as_ref().err());
    if explaining {
        push_record(Some(record));
    }
    result
}

/// Appends a record to those of the innermost [`explain`].
fn push_record(record: Option<Record>) {
    RECORDS.with_borrow_mut(|records| {
        if let Some(list) = records {
            list.extend(record);
        }
    });
}

/// State of one call on its way through the chain.
struct DispatchState {
    wants_reasons: bool,
    /// The accelerator that ran the call.
    served_by: Option<&'static str>,
    /// Outputs of the call. Stored here, because returning them through several functions costs more than a small call.
    outputs: Outputs,
    /// Whether a kernel declined for a temporary reason.
    declined_temporarily: bool,
    declined: Vec<(&'static str, String)>,
    chosen: Option<String>,
    /// Error of an accelerator that failed on trial. Returned if no other accelerator serves the call.
    failed: Option<Error>,
}

impl DispatchState {
    fn new(wants_reasons: bool) -> DispatchState {
        DispatchState {
            wants_reasons,
            served_by: None,
            outputs: Outputs::new(),
            declined_temporarily: false,
            declined: Vec::new(),
            chosen: None,
            failed: None,
        }
    }

    fn declined(&mut self, accelerator: &Accelerator, why: &str) {
        if self.wants_reasons {
            self.declined.push((accelerator.name, why.to_string()));
        }
    }
}

/// Tries one kernel. Returns whether it served the call.
fn try_kernel(call: &Call, entry: &ChainEntry, state: &mut DispatchState) -> Result<bool> {
    if let Err(why) = filter(entry, call) {
        state.declined(entry.accelerator, why);
        return Ok(false);
    }
    match (entry.kernel.run)(call)? {
        Outcome::Done(outputs) => {
            (state.served_by, state.outputs) = (Some(entry.accelerator.name), outputs);
            Ok(true)
        }
        Outcome::Declined(reason) => {
            state.declined_temporarily |= reason.is_retryable();
            state.declined(entry.accelerator, reason.text());
            Ok(false)
        }
    }
}

/// Tries the kernels of the chain, in its order or in the measured one.
fn run_chain(call: &Call, state: &mut DispatchState) -> Result<bool> {
    let chains = registry::chains()?;
    let chain = chains.get(call.family(), call.device.kind());
    let advice = if chains.is_auto() { tuning::advise(call, chain)? } else { None };
    let served = match advice {
        Some(advice) => run_advised(call, chain, &advice, state),
        None => try_kernels(call, chain, state),
    };
    match served {
        Ok(false) if state.declined_temporarily => retry_blocking(call, chain, state),
        served => served,
    }
}

/// Tries kernels in order. Returns whether one served the call.
fn try_kernels<'a>(call: &Call, chain: impl IntoIterator<Item = &'a ChainEntry>, state: &mut DispatchState) -> Result<bool> {
    for entry in chain {
        if try_kernel(call, entry, state)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Retries all kernels in blocking mode, after each has declined and at least one for a temporary reason.
fn retry_blocking(call: &Call, chain: &[ChainEntry], state: &mut DispatchState) -> Result<bool> {
    state.declined.clear();
    let _blocking = FlagGuard::new(&BLOCKS_ON_COMPILATION);
    try_kernels(call, chain, state)
}

/// Tries the accelerator chosen by [`tuning`] first, then the rest of the chain. Times the call during a trial.
///
/// An accelerator that fails on trial is excluded from further trials. Its error is returned if no other kernel accepts the call.
fn run_advised(call: &Call, chain: &'static [ChainEntry], advice: &Advice, state: &mut DispatchState) -> Result<bool> {
    if state.wants_reasons {
        state.chosen = Some(advice.text());
    }
    let is_first = |entry: &&ChainEntry| std::ptr::eq(entry.accelerator, advice.accelerator);
    let watch = advice.start(call)?;
    match try_kernels(call, chain.iter().filter(is_first), state) {
        Ok(true) => {
            advice.served(call, watch)?;
            return Ok(true);
        }
        Err(error) if advice.is_trial() && !is_data_error(&error, call) => {
            tracing::warn!(accelerator = advice.accelerator.name, %error, op = call.op.name(), "failed on trial; the rest of the chain is tried");
            state.declined(advice.accelerator, &format!("failed: {error}"));
            // Out of memory may be temporary.
            if !matches!(error, Error::OutOfMemory { .. }) {
                advice.refused();
            }
            state.failed = Some(error);
        }
        other => {
            other?;
            // A temporary reason does not exclude the accelerator from later calls.
            if !state.declined_temporarily {
                advice.refused();
            }
        }
    }
    try_kernels(call, chain.iter().filter(|entry| !is_first(entry)), state)
}

/// Whether an error is about the data of this or an earlier call. Such an error is not the accelerator's fault and is reported once.
fn is_data_error(error: &Error, call: &Call) -> bool {
    match error {
        Error::Index { .. } => true,
        Error::Value { op, .. } => *op != call.op.name(),
        _ => false,
    }
}

/// Whether a kernel of the device lists this operation in its filter, as opposed to accepting the whole family.
///
/// If not, core composes the operation of others.
pub(crate) fn is_named(op: crate::op::Op, device: Device) -> Result<bool> {
    let chain = registry::chains()?.get(op.family(), device.kind());
    Ok(chain.iter().any(|entry| entry.kernel.ops.names(op)))
}

/// Whether a device has a kernel of this family.
pub(crate) fn has_family(family: Family, device: Device) -> Result<bool> {
    Ok(!registry::chains()?.get(family, device.kind()).is_empty())
}

/// Applies the static filter of a kernel: operations and dtypes.
fn filter(entry: &ChainEntry, call: &Call) -> std::result::Result<(), &'static str> {
    let kernel = entry.kernel;
    if !matches!(kernel.ops, OpFilter::All) {
        let mut fused = call.program().into_iter().flat_map(|p| p.ops().chain(p.folds())).peekable();
        let fits = match call.family() {
            Family::Map | Family::Rows if fused.peek().is_some() => fused.all(|op| kernel.ops.takes(op)),
            _ => kernel.ops.takes(call.op),
        };
        if !fits {
            return Err("does not take this operation");
        }
    }
    let takes = |d: DType| kernel.dtypes.contains(d);
    let fits =
        if call.inputs.is_empty() { call.outputs.iter().all(|o| takes(o.dtype)) } else { call.inputs.iter().all(|a| takes(a.dtype())) };
    if fits { Ok(()) } else { Err("does not take this dtype") }
}

/// Handles a call that every kernel declined: composite, host fallback, then an error that lists every reason.
#[cold]
fn run_fallback(call: &Call) -> Result<Outputs> {
    // For these calls `expr` handles `Unsupported`: it runs the composite of a Map with its scalars, and the reductions of Rows one by one.
    let is_composed = call.op.0.composite.is_some() && call.op.family() != Family::Gather;
    let has_later_fallback = call.program().is_some() && is_composed || call.family() == Family::Rows;
    let policy = if has_later_fallback { HostFallback::Error } else { settings::host_fallback()? };
    if let Some(composite) = call.op.0.composite.filter(|_| call.program().is_none()) {
        return composite(call.inputs);
    }
    match policy {
        HostFallback::Error => {}
        _ if call.device == Device::CPU => {}
        policy => {
            if policy == HostFallback::Warn {
                tracing::warn!(op = call.op.name(), device = %call.device, "computed on the host: no accelerator of the device takes it");
            }
            return on_host(call);
        }
    }
    // Try again with reasons formatted. Declining has no side effect.
    let guard = FlagGuard::new(&WANTS_REASONS);
    let mut tried = Vec::new();
    for entry in registry::chains()?.get(call.family(), call.device.kind()) {
        match filter(entry, call) {
            Err(why) => tried.push((entry.accelerator.name, why.to_string())),
            Ok(()) => {
                if let Ok(Outcome::Declined(reason)) = (entry.kernel.run)(call) {
                    tried.push((entry.accelerator.name, reason.text().to_string()));
                }
            }
        }
    }
    drop(guard);
    // Returns the error of a device that is not available. Otherwise the base may lack kernels of the family.
    driver(call.device)?;
    if let Some(base) = registry::base_of(call.device.kind().name())
        && base.kernels.iter().all(|k| k.family != call.family())
    {
        tried.push((base.name, format!("has no {:?} kernels", call.family())));
    }
    Err(Error::Unsupported { op: call.op.name(), dtypes: dtypes(call), shapes: shapes(call), device: call.device, tried })
}

/// Runs the call on the host: copies inputs to the host and outputs back.
fn on_host(call: &Call) -> Result<Outputs> {
    let inputs: Result<SmallVec<[StoredArray; 4]>> = call
        .inputs
        .iter()
        .map(|a| {
            let bytes = HostBuffer::downloaded(a.dtype(), a.buffer().as_ref(), 0, a.buffer().nbytes())?;
            StoredArray::new(a.dtype(), a.layout().clone(), Arc::new(bytes))
        })
        .collect();
    let inputs = inputs?;
    let host = Call {
        op: call.op,
        device: Device::CPU,
        stream: Stream::current(Device::CPU),
        inputs: &inputs,
        outputs: call.outputs,
        work: call.work,
    };
    let outputs = with_device(Device::CPU, || run(&host))?;
    outputs.into_iter().map(|a| NdArray::from(a).to_device(call.device)?.stored()).collect()
}

/// Returns outputs without elements, which need no kernel.
fn empty_outputs(call: &Call) -> Result<Outputs> {
    let driver = driver(call.device)?;
    let make = |o: &OutputSpec| StoredArray::new(o.dtype, o.layout.clone(), driver.allocate(0, call.stream)?);
    call.outputs.iter().map(make).collect()
}

/// Returns the dtypes of the inputs, or of the outputs if there are no inputs.
fn dtypes(call: &Call) -> Vec<DType> {
    if call.inputs.is_empty() { call.outputs.iter().map(|o| o.dtype).collect() } else { call.inputs.iter().map(|a| a.dtype()).collect() }
}

/// Returns the shapes of the inputs, or of the outputs if there are no inputs.
fn shapes(call: &Call) -> Vec<Vec<usize>> {
    if call.inputs.is_empty() {
        call.outputs.iter().map(|o| o.layout.shape().to_vec()).collect()
    } else {
        call.inputs.iter().map(|a| a.shape().to_vec()).collect()
    }
}
