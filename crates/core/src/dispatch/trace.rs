//! `CUPRUM_TRACE=file.json`: writes the calls of the program in the Trace Event Format, for Perfetto (ui.perfetto.dev) and Chrome
//! (chrome://tracing).
//!
//! Host threads and GPU streams are rows. Each call is a bar in the row of its thread, from call to return. A call on a GPU is also a bar
//! in the row of its stream, between an event before the call and an event after it. A call of a rank of a mesh is also a bar in the row of
//! the rank, with the times of the stream on a GPU. Bars carry op, shapes, dtypes, accelerator and memory in use.
//!
//! Device times are read after the call has returned, so that tracing rarely waits for a device. Tracing waits in three cases: when many
//! calls are pending, when the reference time of a device is renewed every few seconds, and in [`flush`]. The file is valid JSON after
//! every write. A child process that inherits the variable needs another file.
//!
//! Format: "Trace Event Format", Google, documentation of catapult.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::call_record::CallRecord;
use crate::device::{Device, DeviceEvent, Stream, SynchronizeHook, driver};
use crate::error::{Error, Result};
use crate::settings::{self, SettingCheck};

const TRACE_VARIABLE: &str = "CUPRUM_TRACE";
/// Maximum number of pending calls: calls whose device times are not read yet.
const MAX_PENDING_CALLS: usize = 256;
/// Number of the row group of host threads in the trace viewer. Each device has a row group with a higher number.
const HOST_ROW_GROUP: u64 = 0;
/// Number of the row group of the ranks of meshes.
const RANK_ROW_GROUP: u64 = 1;
/// Maximum age, in microseconds, of a [`ClockAnchor`] that converts the times of new events. Event times are float32 milliseconds,
/// which lose precision over time.
const CLOCK_ANCHOR_VALIDITY_MICROS: f64 = 4e6;
/// Age, in microseconds, at which a [`ClockAnchor`] is dropped. All calls that refer to it have been written by then.
const CLOCK_ANCHOR_RETENTION_MICROS: f64 = 3600e6;

/// A finished call or [`TracedHostRange`] that is not yet written to the file.
struct FinishedTraceSpan {
    name: String,
    category: String,
    thread: u64,
    /// The rank that made the call, or `None` if the call belongs to no mesh.
    rank: Option<usize>,
    begin: f64,
    duration: f64,
    details: Value,
    on_device: Option<DeviceEventSpan>,
}

/// The stream of a call, and the events before and after the call.
struct DeviceEventSpan {
    stream: Stream,
    before: Box<dyn DeviceEvent>,
    after: Box<dyn DeviceEvent>,
}

/// A reference time of a device: an event whose host time is known, in microseconds since the start of the trace. Converts device times to
/// host times.
struct ClockAnchor {
    device: Device,
    event: Arc<dyn DeviceEvent>,
    at: f64,
}

/// State of the file that `CUPRUM_TRACE` names: its writer, the pending calls and the reference times. Lock order: `output` before
/// `pending` and `anchors`.
struct Trace {
    path: PathBuf,
    pending: Mutex<VecDeque<FinishedTraceSpan>>,
    anchors: Mutex<Vec<ClockAnchor>>,
    output: Mutex<TraceFile>,
}

struct TraceFile {
    file: File,
    /// Offset in the trace file, in bytes, of the closing bracket of the JSON list. The next event overwrites the bracket.
    end: u64,
    /// Rows of the trace viewer whose names have been written, as (group number, row number).
    named_rows: Vec<(u64, u64)>,
}

impl ClockAnchor {
    /// Returns whether this anchor may convert the times of events that are recorded on `device` at the host time `now`.
    fn can_convert_new_events(&self, device: Device, now: f64) -> bool {
        self.device == device && now - self.at < CLOCK_ANCHOR_VALIDITY_MICROS
    }

    /// Returns whether a pending call may still refer to this anchor at the host time `now`.
    fn may_be_used_by_pending_calls(&self, now: f64) -> bool {
        now - self.at < CLOCK_ANCHOR_RETENTION_MICROS
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the microseconds since the first call of this function. The first call is made when the trace is opened.
fn micros_since_trace_start() -> f64 {
    static TRACE_START: OnceLock<Instant> = OnceLock::new();
    TRACE_START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e6
}

fn open_trace() -> Result<Option<Trace>> {
    let Some(path) = settings::env(TRACE_VARIABLE).map(PathBuf::from) else { return Ok(None) };
    let message = |e| format!("{}: {e}", path.display());
    let trace = Trace::create_trace_file(path.clone()).map_err(|e| Error::Setting { variable: TRACE_VARIABLE, message: message(e) })?;
    micros_since_trace_start();
    Ok(Some(trace))
}

fn global_trace() -> &'static Result<Option<Trace>> {
    static GLOBAL_TRACE: OnceLock<Result<Option<Trace>>> = OnceLock::new();
    GLOBAL_TRACE.get_or_init(|| open_trace().inspect_err(|error| tracing::warn!(%error, "calls are not traced")))
}

inventory::submit! {
    SettingCheck { variable: TRACE_VARIABLE, needs_devices: false, run: check_trace_variable }
}

inventory::submit! {
    SynchronizeHook(flush)
}

/// Opens the trace file if `CUPRUM_TRACE` is set, and returns the error if that fails.
fn check_trace_variable() -> Result<()> {
    global_trace().as_ref().map(|_| ()).map_err(Error::clone)
}

fn active_trace() -> Option<&'static Trace> {
    global_trace().as_ref().ok().and_then(|trace| trace.as_ref())
}

/// Returns whether calls are traced.
pub fn is_tracing() -> bool {
    active_trace().is_some()
}

/// Writes all pending calls, waiting for the devices.
///
/// Also called when a device is synchronised, when a value is read from a GPU, and at the end of a thread that made calls.
pub fn flush() {
    if let Some(trace) = active_trace() {
        trace.write_oldest_calls(usize::MAX);
    }
}

/// Returns this thread's number in the trace. Also registers a thread-local that flushes the trace when the thread ends.
fn trace_thread_number() -> u64 {
    struct FlushTraceOnThreadExit;
    impl Drop for FlushTraceOnThreadExit {
        fn drop(&mut self) {
            flush();
        }
    }
    static TRACED_THREAD_COUNT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static TRACE_THREAD_NUMBER: Cell<u64> = Cell::new(TRACED_THREAD_COUNT.fetch_add(1, Ordering::Relaxed));
        static FLUSH_TRACE_ON_THREAD_EXIT: FlushTraceOnThreadExit = const { FlushTraceOnThreadExit };
    }
    // `try_with`, because destructors may call this function while the thread ends, after the thread-locals are destroyed.
    let _ = FLUSH_TRACE_ON_THREAD_EXIT.try_with(|_| ());
    TRACE_THREAD_NUMBER.try_with(Cell::get).unwrap_or(u64::MAX)
}

thread_local! {
    /// The mesh rank whose work this thread is running; `None` outside of [`with_rank`].
    static CURRENT_RANK: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `f`, the work of a rank of a mesh. In the trace, the calls that `f` makes are also bars in the row of the rank.
///
/// # Examples
/// ```
/// use cuprum_core::profiler::trace::with_rank;
///
/// assert_eq!(with_rank(1, || 2 + 2), 4);
/// ```
pub fn with_rank<R>(rank: usize, f: impl FnOnce() -> R) -> R {
    struct RestoreRankOnDrop(Option<usize>);
    impl Drop for RestoreRankOnDrop {
        fn drop(&mut self) {
            CURRENT_RANK.set(self.0);
        }
    }
    let _restore = RestoreRankOnDrop(CURRENT_RANK.replace(Some(rank)));
    f()
}

/// A traced call that has begun but not yet ended.
pub(crate) struct UnfinishedTracedCall {
    at: f64,
    stream: Stream,
    before: Option<Box<dyn DeviceEvent>>,
}

/// Starts timing a call on `stream`. Returns `None` if calls are not traced.
pub(crate) fn begin_traced_call(stream: Stream) -> Option<UnfinishedTracedCall> {
    let trace = active_trace()?;
    let before = match stream.device == Device::CPU {
        true => None,
        // Work that is captured into a graph does not run now, so it has no device time.
        false if stream.is_capturing() => None,
        false => trace.record_anchored_event(stream).inspect_err(|error| tracing::warn!(%error, "the device is not traced")).ok(),
    };
    Some(UnfinishedTracedCall { at: micros_since_trace_start(), stream, before })
}

/// Records the end of the call for which [`begin_traced_call`] returned `begun`. `record` describes the call, and `error` is its error, if
/// it failed. Does nothing if `begun` or `record` is `None`.
pub(crate) fn end_traced_call(begun: Option<UnfinishedTracedCall>, record: Option<&CallRecord>, error: Option<&Error>) {
    let (Some(trace), Some(UnfinishedTracedCall { at, stream, before }), Some(record)) = (active_trace(), begun, record) else { return };
    let device = || driver(record.device);
    let after = || device()?.record_event(stream);
    let on_device = before.and_then(|before| Some(DeviceEventSpan { stream, before, after: after().ok()? }));
    let duration = micros_since_trace_start() - at;
    let memory = device().and_then(|d| d.memory_stats()).map_or(Value::Null, |stats| json!(stats.used));
    let details = json!({
        "accelerator": record.served_by,
        "device": record.device.to_string(),
        "shapes": record.shapes,
        "dtypes": record.dtypes.iter().map(|d| d.name()).collect::<Vec<_>>(),
        "expression": record.fused_expression(),
        "grid": record.launch.as_ref().map(|l| l.grid),
        "block": record.launch.as_ref().map(|l| l.block),
        "bytes": record.bytes,
        "memory_used": memory,
        "error": error.map(ToString::to_string),
    });
    let name = record.launch.as_ref().map_or(record.op, |l| &l.kernel).into();
    let category = format!("{:?}", record.family);
    let (thread, rank) = (trace_thread_number(), CURRENT_RANK.get());
    trace.push_finished_span(FinishedTraceSpan { name, category, thread, rank, begin: at, duration, details, on_device });
}

/// A named range of a host thread in the trace. The range ends when the value is dropped.
pub(crate) struct TracedHostRange {
    name: String,
    at: f64,
}

/// Starts a range of this thread with `name`, if calls are traced.
pub(crate) fn begin_traced_host_range(name: &str) -> Option<TracedHostRange> {
    is_tracing().then(|| TracedHostRange { name: name.into(), at: micros_since_trace_start() })
}

impl Drop for TracedHostRange {
    fn drop(&mut self) {
        let (name, duration) = (std::mem::take(&mut self.name), micros_since_trace_start() - self.at);
        let ended = FinishedTraceSpan {
            name,
            category: "range".into(),
            thread: trace_thread_number(),
            rank: None,
            begin: self.at,
            duration,
            details: json!({}),
            on_device: None,
        };
        if let Some(trace) = active_trace() {
            trace.push_finished_span(ended);
        }
    }
}

impl Trace {
    /// Creates the file at `path`, with an empty list of events.
    fn create_trace_file(path: PathBuf) -> std::io::Result<Trace> {
        let mut file = File::create(&path)?;
        file.write_all(b"[\n]\n")?;
        let output = Mutex::new(TraceFile { file, end: 2, named_rows: Vec::new() });
        Ok(Trace { path, pending: Mutex::default(), anchors: Mutex::default(), output })
    }

    /// Records an event on `stream`. First records a [`ClockAnchor`] for the device, unless the device has one younger than
    /// [`CLOCK_ANCHOR_VALIDITY_MICROS`].
    fn record_anchored_event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        let (device, now) = (stream.device, micros_since_trace_start());
        let driver = driver(device)?;
        let mut anchors = lock_ignoring_poison(&self.anchors);
        if !anchors.iter().any(|a| a.can_convert_new_events(device, now)) {
            let event = driver.record_event(stream)?;
            event.millis_since(event.as_ref())?; // waits until the device has reached the event
            anchors.retain(|a| a.may_be_used_by_pending_calls(now));
            anchors.push(ClockAnchor { device, event: event.into(), at: micros_since_trace_start() });
        }
        driver.record_event(stream)
    }

    fn push_finished_span(&self, ended: FinishedTraceSpan) {
        let behind = {
            let mut pending = lock_ignoring_poison(&self.pending);
            pending.push_back(ended);
            pending.len()
        };
        if behind > MAX_PENDING_CALLS {
            // The oldest calls have probably finished on the device, so that reading their times does not wait.
            self.write_oldest_calls(MAX_PENDING_CALLS / 2);
        }
    }

    /// Writes the oldest `count` pending calls to the trace file. Waits for the device if it has not finished these calls.
    fn write_oldest_calls(&self, count: usize) {
        let written = {
            let mut output = lock_ignoring_poison(&self.output);
            let ended: Vec<FinishedTraceSpan> = {
                let mut pending = lock_ignoring_poison(&self.pending);
                let count = count.min(pending.len());
                pending.drain(..count).collect()
            };
            let mut lines = Vec::new();
            let timed = ended.into_iter().map(|e| self.push_trace_events(e, &mut output, &mut lines)).fold(Ok(()), Result::and);
            output.write_events(&lines).map_err(|e| Error::io(self.path.clone(), e)).and(timed)
        };
        if let Err(error) = written {
            tracing::warn!(%error, file = %self.path.display(), "some calls are missing from the trace");
        }
    }

    /// Appends the trace events (bars) of `ended`, a finished call or range, to `lines`. The first event of a row is preceded by an event
    /// with the row's name, unless `output` has that name already.
    ///
    /// The bar in the row of the host thread is appended even if reading the device times fails.
    fn push_trace_events(&self, ended: FinishedTraceSpan, output: &mut TraceFile, lines: &mut Vec<Value>) -> Result<()> {
        let FinishedTraceSpan { name, category, thread, rank, begin, duration, details, on_device } = ended;
        let bar = |group: u64, row: u64, begin: f64, duration: f64| json!({"name": name, "cat": category, "ph": "X", "pid": group, "tid": row, "ts": begin, "dur": duration, "args": details});
        output.push_row_name(HOST_ROW_GROUP, thread, "host", &format!("thread {thread}"), lines);
        lines.push(bar(HOST_ROW_GROUP, thread, begin, duration));
        let (mut begin, mut duration) = (begin, duration);
        if let Some(DeviceEventSpan { stream: Stream { device, id }, before, after }) = on_device {
            duration = after.millis_since(before.as_ref())? * 1e3;
            begin = self.event_time_on_host(device, before.as_ref(), begin)?;
            let (group, row) = (device_row_group(device), u64::from(id));
            output.push_row_name(group, row, &device.to_string(), &format!("stream {id}"), lines);
            lines.push(bar(group, row, begin, duration));
        }
        if let Some(rank) = rank {
            output.push_row_name(RANK_ROW_GROUP, rank as u64, "mesh", &format!("rank {rank}"), lines);
            lines.push(bar(RANK_ROW_GROUP, rank as u64, begin, duration));
        }
        Ok(())
    }

    /// Returns the host time of `event` in microseconds. `recorded` is the host time at which the event was queued.
    fn event_time_on_host(&self, device: Device, event: &dyn DeviceEvent, recorded: f64) -> Result<f64> {
        let newest =
            lock_ignoring_poison(&self.anchors).iter().rfind(|a| a.device == device && a.at <= recorded).map(|a| (a.at, a.event.clone()));
        let (at, anchor) = newest.ok_or_else(|| Error::value("trace", format!("no reference time for {device}")))?;
        Ok(at + event.millis_since(anchor.as_ref())? * 1e3)
    }
}

/// Returns the number of the row group of `device` in the trace viewer, distinct from the numbers of other devices, of host threads and of
/// ranks.
fn device_row_group(device: Device) -> u64 {
    const ROW_GROUPS_PER_DEVICE_KIND: u64 = 1 << 16;
    2 + device.kind().index() as u64 * ROW_GROUPS_PER_DEVICE_KIND + device.ordinal() as u64
}

impl TraceFile {
    fn write_events(&mut self, lines: &[Value]) -> std::io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let separator = if self.end > 2 { ",\n" } else { "" };
        let text = separator.to_string() + &lines.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all([&text, "\n]\n"].concat().as_bytes())?;
        self.end += text.len() as u64;
        Ok(())
    }

    fn push_row_name(&mut self, group: u64, row: u64, group_name: &str, row_name: &str, lines: &mut Vec<Value>) {
        let named = |kind: &str, name: &str| json!({"name": kind, "ph": "M", "pid": group, "tid": row, "args": {"name": name}});
        if self.named_rows.contains(&(group, row)) {
            return;
        }
        if self.named_rows.iter().all(|(g, _)| *g != group) {
            lines.push(named("process_name", group_name));
        }
        lines.push(named("thread_name", row_name));
        self.named_rows.push((group, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event at a fixed time, in milliseconds.
    struct FakeEvent(f64);

    impl DeviceEvent for FakeEvent {
        fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
            Ok(self.0 - earlier.as_any().downcast_ref::<FakeEvent>().unwrap().0)
        }
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }

    fn anchor(device: Device, at: f64, event: f64) -> ClockAnchor {
        ClockAnchor { device, event: Arc::new(FakeEvent(event)), at }
    }

    fn two_devices() -> [Device; 2] {
        let kind = crate::DeviceKind::intern("trace-test").unwrap();
        [0, 1].map(|ordinal| Device::new(kind, ordinal))
    }

    #[test]
    fn anchors_expire() {
        let [first, second] = two_devices();
        let of_first = anchor(first, 1e6, 0.0);
        assert!(of_first.can_convert_new_events(first, 1e6) && of_first.can_convert_new_events(first, 4.9e6));
        assert!(!of_first.can_convert_new_events(first, 5e6) && !of_first.can_convert_new_events(second, 1e6));
        assert!(
            of_first.may_be_used_by_pending_calls(3600.9e6)
                && !of_first.may_be_used_by_pending_calls(3601e6)
                && !of_first.may_be_used_by_pending_calls(3700e6)
        );
    }

    #[test]
    fn device_times_use_the_newest_anchor_before_the_event() {
        let folder = tempfile::tempdir().unwrap();
        let (trace, [first, second]) = (Trace::create_trace_file(folder.path().join("trace.json")).unwrap(), two_devices());
        lock_ignoring_poison(&trace.anchors).extend([anchor(first, 1000.0, 5.0), anchor(second, 1500.0, 0.0), anchor(first, 9000.0, 13.0)]);
        assert_eq!(trace.event_time_on_host(first, &FakeEvent(7.0), 2000.0).unwrap(), 3000.0);
        assert_eq!(trace.event_time_on_host(first, &FakeEvent(13.5), 9100.0).unwrap(), 9500.0);
        assert_eq!(trace.event_time_on_host(second, &FakeEvent(1.0), 2000.0).unwrap(), 2500.0);
        assert!(trace.event_time_on_host(second, &FakeEvent(1.0), 1400.0).is_err());
    }

    #[test]
    fn half_of_the_pending_calls_are_written_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace::create_trace_file(folder.path().join("trace.json")).unwrap();
        let span = || FinishedTraceSpan {
            name: "sum".into(),
            category: "Reduce".into(),
            thread: 0,
            rank: None,
            begin: 0.0,
            duration: 1.0,
            details: json!({}),
            on_device: None,
        };
        let written = || {
            let events: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&trace.path).unwrap()).unwrap();
            events.iter().filter(|e| e["ph"] == "X").count()
        };
        (0..MAX_PENDING_CALLS).for_each(|_| trace.push_finished_span(span()));
        assert_eq!((written(), lock_ignoring_poison(&trace.pending).len()), (0, MAX_PENDING_CALLS));
        trace.push_finished_span(span());
        assert_eq!((written(), lock_ignoring_poison(&trace.pending).len()), (MAX_PENDING_CALLS / 2, MAX_PENDING_CALLS / 2 + 1));
        trace.write_oldest_calls(usize::MAX);
        assert_eq!((written(), lock_ignoring_poison(&trace.pending).len()), (MAX_PENDING_CALLS + 1, 0));
    }

    #[test]
    fn each_device_has_a_group_of_its_own() {
        let kinds = [Device::CPU.kind(), crate::DeviceKind::intern("trace-test").unwrap()];
        let devices = kinds.into_iter().flat_map(|kind| [0, 1, 2, 63, 64, u16::MAX].map(|ordinal| Device::new(kind, ordinal)));
        let mut groups: Vec<u64> = devices.map(device_row_group).chain([HOST_ROW_GROUP, RANK_ROW_GROUP]).collect();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), 14);
    }
}
