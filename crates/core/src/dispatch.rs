//! The chain: each kernel in order, until one does the work. Also what listens to it: `explain`, and tracing spans.

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
use crate::registry::{self, Accelerator, Link, OpFilter};
use crate::settings::{self, HostFallback};
use crate::tuning::{self, Advice};

/// What the chain did with one call.
#[derive(Clone, Debug)]
pub struct Record {
    /// NumPy name of the operation; of a fused expression, its last one.
    pub op: &'static str,
    /// The shape of kernel.
    pub family: Family,
    /// The device.
    pub device: Device,
    /// Input dtypes.
    pub dtypes: Vec<DType>,
    /// Input shapes, broadcast for Map, Reduce, Rows and Scan, flattened for Select and Histogram.
    pub shapes: Vec<Vec<usize>>,
    /// The fused expression, for the families that have one.
    pub expression: Option<String>,
    /// Bytes read and written at the least.
    pub bytes: usize,
    /// Who did it; `None` if everyone declined or it failed.
    pub served_by: Option<&'static str>,
    /// Who declined before, and why.
    pub declined: Vec<(&'static str, String)>,
    /// Under the order `auto`: who was asked first, and why (see [`tuning`]).
    pub chosen: Option<String>,
    /// Of what was launched beside the chain ([`beside_chain`]): which kernel.
    pub launch: Option<KernelLaunch>,
}

/// A kernel that was launched beside the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// Its name.
    pub kernel: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
}

impl Record {
    #[cold]
    fn of_call(call: &Call, story: &mut Story) -> Record {
        Record {
            op: call.op.name(),
            family: call.family(),
            device: call.device,
            dtypes: dtypes(call),
            shapes: shapes(call),
            expression: call.program().map(ToString::to_string),
            bytes: call.bytes(),
            served_by: story.served_by,
            declined: std::mem::take(&mut story.declined),
            chosen: story.chosen.take(),
            launch: None,
        }
    }

    /// Of all the work of a graph, launched at once.
    pub(crate) fn of_graph(device: Device, nodes: usize) -> Record {
        Record {
            op: "graph",
            family: Family::Custom,
            device,
            dtypes: Vec::new(),
            shapes: Vec::new(),
            expression: Some(format!("{nodes} pieces of work")),
            bytes: 0,
            served_by: registry::base_of(device.kind().name()).map(|base| base.name),
            declined: Vec::new(),
            chosen: None,
            launch: None,
        }
    }

    /// Of a kernel that an accelerator launches on these arrays because the user said so, for [`beside_chain`].
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

    /// The fused expression, if it computes anything.
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
        write!(f, " on {}: {}", self.device, self.served_by.unwrap_or("nobody"))?;
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
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// A flag of this thread, up until this is dropped.
struct Raised {
    flag: &'static LocalKey<Cell<bool>>,
    was: bool,
}

impl Raised {
    fn new(flag: &'static LocalKey<Cell<bool>>) -> Raised {
        Raised { flag, was: flag.replace(true) }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.flag.set(self.was);
    }
}

/// Whether reasons are worth formatting.
pub(crate) fn listening() -> bool {
    LISTENING.get()
}

/// Whether kernels are asked once more and should take the call even if that takes a while: nobody else has.
pub(crate) fn waiting() -> bool {
    WAITING.get()
}

/// Runs `f` with kernels that take calls even if compiling them takes a while ([`Compile::Wait`](settings::Compile::Wait)).
pub(crate) fn with_waiting<R>(f: impl FnOnce() -> R) -> R {
    let _waiting = Raised::new(&WAITING);
    f()
}

/// Runs `f` and returns what the chain did for each call of this thread, in order.
///
/// Deferred arrays that `f` only builds do not run in it: `eval()` them inside.
pub fn explain<R>(f: impl FnOnce() -> R) -> (R, Vec<Record>) {
    struct Restore(Option<Vec<Record>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDS.replace(self.0.take());
        }
    }
    let (_listening, _restore) = (Raised::new(&LISTENING), Restore(RECORDS.replace(Some(Vec::new()))));
    let result = f();
    let records = RECORDS.take().unwrap_or_default();
    (result, records)
}

/// Gives a call to the first kernel of its chain that takes it.
pub fn run(call: &Call) -> Result<Outputs> {
    if call.outputs.iter().all(|o| o.layout.size() == 0) {
        return empty_outputs(call);
    }
    if listening() || trace::is_on() || tracing::level_enabled!(tracing::Level::DEBUG) {
        return run_and_tell(call);
    }
    let mut story = Story::new(false);
    let served = serve_by_chain(call, &mut story);
    outputs(call, served, &mut story)
}

/// [`run`] where somebody may listen: `explain`, the trace, a subscriber.
#[cold]
fn run_and_tell(call: &Call) -> Result<Outputs> {
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
    let mut story = Story::new(listening());
    let watch = trace::begin(call.stream);
    let served = serve_by_chain(call, &mut story);
    let record = (story.listening || watch.is_some()).then(|| Record::of_call(call, &mut story));
    if story.listening {
        keep(record.clone());
    }
    if let Some(name) = story.served_by {
        span.record("served_by", name);
    }
    let outputs = outputs(call, served, &mut story);
    trace::end(watch, record.as_ref(), outputs.as_ref().err());
    outputs
}

/// What a call whose chain has been asked returns.
fn outputs(call: &Call, served: Result<bool>, story: &mut Story) -> Result<Outputs> {
    match (served?, story.failed.take()) {
        (true, _) => Ok(std::mem::take(&mut story.outputs)),
        (false, None) => unserved(call),
        // The failure is the reason why nobody serves it.
        (false, Some(failed)) => unserved(call).map_err(|e| if matches!(e, Error::Unsupported { .. }) { failed } else { e }),
    }
}

/// Queues work that is no call, such as a kernel of the user's, and tells of it where calls are told of: [`explain`] and
/// `CUPRUM_TRACE`. For backends; `describe` is asked only if somebody listens.
pub fn beside_chain<R>(stream: Stream, describe: impl FnOnce() -> Record, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let listening = listening();
    if !listening && !trace::is_on() {
        return work();
    }
    let mut record = describe();
    let watch = trace::begin(stream);
    let result = work();
    if result.is_err() {
        record.served_by = None;
    }
    trace::end(watch, Some(&record), result.as_ref().err());
    if listening {
        keep(Some(record));
    }
    result
}

/// Puts a record with those of the innermost [`explain`].
fn keep(record: Option<Record>) {
    RECORDS.with_borrow_mut(|records| {
        if let Some(list) = records {
            list.extend(record);
        }
    });
}

/// What became of a call, and what is told of it if somebody listens.
struct Story {
    listening: bool,
    /// Who did it.
    served_by: Option<&'static str>,
    /// What it made; here, because to hand them from caller to caller costs more than some calls.
    outputs: Outputs,
    /// Somebody declined for a passing reason.
    passing: bool,
    declined: Vec<(&'static str, String)>,
    chosen: Option<String>,
    /// What an accelerator on trial failed with: the call's error if nobody else takes it.
    failed: Option<Error>,
}

impl Story {
    fn new(listening: bool) -> Story {
        Story { listening, served_by: None, outputs: Outputs::new(), passing: false, declined: Vec::new(), chosen: None, failed: None }
    }

    fn declined(&mut self, accelerator: &Accelerator, why: &str) {
        if self.listening {
            self.declined.push((accelerator.name, why.to_string()));
        }
    }
}

/// Asks one kernel; says whether it has served.
fn ask(call: &Call, link: &Link, story: &mut Story) -> Result<bool> {
    if let Err(why) = filter(link, call) {
        story.declined(link.accelerator, why);
        return Ok(false);
    }
    match (link.kernel.run)(call)? {
        Outcome::Done(outputs) => {
            (story.served_by, story.outputs) = (Some(link.accelerator.name), outputs);
            Ok(true)
        }
        Outcome::Declined(reason) => {
            story.passing |= reason.is_retryable();
            story.declined(link.accelerator, reason.text());
            Ok(false)
        }
    }
}

/// Asks the kernels of the chain, in its order or the one that was measured.
fn serve_by_chain(call: &Call, story: &mut Story) -> Result<bool> {
    let chains = registry::chains()?;
    let links = chains.get(call.family(), call.device.kind());
    let advice = if chains.measures() { tuning::advise(call, links)? } else { None };
    let served = match advice {
        Some(advice) => serve_advised(call, links, &advice, story),
        None => serve(call, links, story),
    };
    match served {
        Ok(false) if story.passing => serve_waiting(call, links, story),
        served => served,
    }
}

/// Asks kernels in order.
fn serve<'a>(call: &Call, links: impl IntoIterator<Item = &'a Link>, story: &mut Story) -> Result<bool> {
    for link in links {
        if ask(call, link, story)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Asks kernels once more when all have declined, one of them for a passing reason.
fn serve_waiting(call: &Call, links: &[Link], story: &mut Story) -> Result<bool> {
    story.declined.clear();
    let _waiting = Raised::new(&WAITING);
    serve(call, links, story)
}

/// Asks the kernels of one accelerator first, and times them if that is wanted. One that fails on trial is out: another serves,
/// or its error is the call's.
fn serve_advised(call: &Call, links: &'static [Link], advice: &Advice, story: &mut Story) -> Result<bool> {
    if story.listening {
        story.chosen = Some(advice.text());
    }
    let is_first = |link: &&Link| std::ptr::eq(link.accelerator, advice.accelerator);
    let watch = advice.start(call)?;
    match serve(call, links.iter().filter(is_first), story) {
        Ok(true) => {
            advice.served(call, watch)?;
            return Ok(true);
        }
        Err(error) if advice.is_trial() && !is_of_data(&error, call) => {
            tracing::warn!(accelerator = advice.accelerator.name, %error, op = call.op.name(), "failed on trial; another serves");
            story.declined(advice.accelerator, &format!("failed: {error}"));
            // Memory may be there the next time.
            if !matches!(error, Error::OutOfMemory { .. }) {
                advice.refused();
            }
            story.failed = Some(error);
        }
        other => {
            other?;
            // Who declines for a reason that passes may serve the next call.
            if !story.passing {
                advice.refused();
            }
        }
    }
    serve(call, links.iter().filter(|link| !is_first(link)), story)
}

/// Whether an error tells of data, of an earlier call's perhaps, which is found when somebody waits: not the accelerator's, and told once.
fn is_of_data(error: &Error, call: &Call) -> bool {
    match error {
        Error::Index { .. } => true,
        Error::Value { op, .. } => *op != call.op.name(),
        _ => false,
    }
}

/// Whether a kernel of the device takes this operation by name. Those that take whole families are not meant: core has
/// another way for what only some devices do in one call.
pub(crate) fn is_named(op: crate::op::Op, device: Device) -> Result<bool> {
    let links = registry::chains()?.get(op.family(), device.kind());
    Ok(links.iter().any(|link| link.kernel.ops.names(op)))
}

/// Whether a device has a kernel of this family.
pub(crate) fn has_family(family: Family, device: Device) -> Result<bool> {
    Ok(!registry::chains()?.get(family, device.kind()).is_empty())
}

/// The static filter of a kernel.
fn filter(link: &Link, call: &Call) -> std::result::Result<(), &'static str> {
    let kernel = link.kernel;
    if !matches!(kernel.ops, OpFilter::All) {
        let mut fused = call.program().into_iter().flat_map(|p| p.ops().chain(p.folds())).peekable();
        let fits = match call.family() {
            Family::Map | Family::Rows if fused.peek().is_some() => fused.all(|op| kernel.ops.takes(op)),
            _ => kernel.ops.takes(call.op),
        };
        if !fits {
            return Err("not one of its operations");
        }
    }
    let takes = |d: DType| kernel.dtypes.contains(d);
    let fits =
        if call.inputs.is_empty() { call.outputs.iter().all(|o| takes(o.dtype)) } else { call.inputs.iter().all(|a| takes(a.dtype())) };
    if fits { Ok(()) } else { Err("not one of its dtypes") }
}

/// Everybody declined: the composite body, then the policy, then an error that lists every reason.
#[cold]
fn unserved(call: &Call) -> Result<Outputs> {
    // The composite of a Map needs its scalars too: `expr`, which knows them, runs it on the error, and reductions one by one on that of rows.
    let core_goes_on = call.program().is_some() && call.op.0.composite.is_some() || call.family() == Family::Rows;
    let policy = if core_goes_on { HostFallback::Error } else { settings::host_fallback()? };
    if let Some(composite) = call.op.0.composite.filter(|_| call.program().is_none()) {
        let inputs: Vec<NdArray> = call.inputs.iter().map(|a| NdArray::from(a.clone())).collect();
        return Ok(SmallVec::from_elem(composite(&inputs)?.stored()?, 1));
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
    // Ask again, now listening, for the reasons; declining has no side effect.
    let listening = Raised::new(&LISTENING);
    let mut tried = Vec::new();
    for link in registry::chains()?.get(call.family(), call.device.kind()) {
        match filter(link, call) {
            Err(why) => tried.push((link.accelerator.name, why.to_string())),
            Ok(()) => {
                if let Ok(Outcome::Declined(reason)) = (link.kernel.run)(call) {
                    tried.push((link.accelerator.name, reason.text().to_string()));
                }
            }
        }
    }
    drop(listening);
    // A device that is not there says so itself. One that is there may lack the family, unlike its accelerators.
    driver(call.device)?;
    if let Some(base) = registry::base_of(call.device.kind().name())
        && base.kernels.iter().all(|k| k.family != call.family())
    {
        tried.push((base.name, format!("has no {:?} kernels", call.family())));
    }
    Err(Error::Unsupported { op: call.op.name(), dtypes: dtypes(call), shapes: shapes(call), device: call.device, tried })
}

/// The call on the host: inputs copied there, outputs copied back.
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

/// Outputs without elements need no kernel.
fn empty_outputs(call: &Call) -> Result<Outputs> {
    let driver = driver(call.device)?;
    let make = |o: &OutputSpec| StoredArray::new(o.dtype, o.layout.clone(), driver.allocate(0, call.stream)?);
    call.outputs.iter().map(make).collect()
}

/// dtypes of the inputs; of the outputs where there is no input.
fn dtypes(call: &Call) -> Vec<DType> {
    if call.inputs.is_empty() { call.outputs.iter().map(|o| o.dtype).collect() } else { call.inputs.iter().map(|a| a.dtype()).collect() }
}

/// As [`dtypes`].
fn shapes(call: &Call) -> Vec<Vec<usize>> {
    if call.inputs.is_empty() {
        call.outputs.iter().map(|o| o.layout.shape().to_vec()).collect()
    } else {
        call.inputs.iter().map(|a| a.shape().to_vec()).collect()
    }
}
