//! `CUPRUM_TRACE=file.json`: the calls of the program in the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome
//! (chrome://tracing) open. Host threads and GPUs are rows; a call is a bar on its thread, from its begin to its return, and one on
//! its GPU, between events before and after it, with op, shapes, dtypes, accelerator and memory in use.
//!
//! Device times are read a while after the calls, so that tracing waits for a device only where the program does, when many calls
//! are behind, once every few seconds, and in [`flush`]. The file is a complete JSON text after every write. A child process that
//! inherits the variable would write the same file: give it another.
//!
//! Format: "Trace Event Format", Google, docs of catapult.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::device::{Device, DeviceEvent, Stream, driver};
use crate::dispatch::Record;
use crate::error::{Error, Result};
use crate::settings;

const VARIABLE: &str = "CUPRUM_TRACE";
/// Calls whose device times are read later, at the most.
const BEHIND: usize = 256;
/// The row group of host threads; devices follow.
const HOST: u64 = 0;
/// An anchor serves calls for this long, in microseconds: times between events are float32 milliseconds.
const ANCHOR_REACH: f64 = 4e6;
/// And is kept for so long: calls that are older have been written.
const ANCHOR_LIFE: f64 = 3600e6;

/// A call that has returned, or a range that has ended.
struct Ended {
    name: String,
    category: String,
    thread: u64,
    begin: f64,
    duration: f64,
    details: Value,
    on_device: Option<OnDevice>,
}

/// Events before and after a call.
struct OnDevice {
    stream: Stream,
    before: Box<dyn DeviceEvent>,
    after: Box<dyn DeviceEvent>,
}

/// A point of a device's time that is known on the host's clock, in microseconds of the trace.
struct Anchor {
    device: Device,
    event: Arc<dyn DeviceEvent>,
    at: f64,
}

/// What is known of calls and devices, and the file. Who takes several locks takes the output's first.
struct Trace {
    path: PathBuf,
    pending: Mutex<VecDeque<Ended>>,
    anchors: Mutex<Vec<Anchor>>,
    output: Mutex<Output>,
}

struct Output {
    file: File,
    /// Where the next event goes: before the closing bracket.
    end: u64,
    /// Rows that have a name in the file.
    named: Vec<(u64, u64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time starts here.
fn microseconds() -> f64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e6
}

fn open() -> Result<Option<Trace>> {
    let Some(path) = settings::env(VARIABLE).map(PathBuf::from) else { return Ok(None) };
    let created = File::create(&path).and_then(|mut file| file.write_all(b"[\n]\n").map(|()| file));
    let file = created.map_err(|e| Error::Setting { variable: VARIABLE, message: format!("{}: {e}", path.display()) })?;
    microseconds();
    let output = Mutex::new(Output { file, end: 2, named: Vec::new() });
    Ok(Some(Trace { path, pending: Mutex::default(), anchors: Mutex::default(), output }))
}

fn opened() -> &'static Result<Option<Trace>> {
    static TRACE: OnceLock<Result<Option<Trace>>> = OnceLock::new();
    TRACE.get_or_init(|| open().inspect_err(|error| tracing::warn!(%error, "calls are not traced")))
}

/// The file is made here; an error if it cannot be.
pub(crate) fn check() -> Result<()> {
    opened().as_ref().map(|_| ()).map_err(Error::clone)
}

fn trace() -> Option<&'static Trace> {
    opened().as_ref().ok().and_then(|trace| trace.as_ref())
}

/// Whether calls are traced.
pub fn is_on() -> bool {
    trace().is_some()
}

/// Writes what is known, waiting for the devices. Synchronising a device does it too, reading a value of a GPU, and a thread that made
/// calls when it ends.
pub fn flush() {
    if let Some(trace) = trace() {
        trace.settle(usize::MAX);
    }
}

/// A number for this thread, and a flush at its end.
fn thread() -> u64 {
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            flush();
        }
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = Cell::new(COUNT.fetch_add(1, Ordering::Relaxed));
        static AT_END: AtEnd = const { AtEnd };
    }
    // While a thread ends its own values may be gone.
    let _ = AT_END.try_with(|_| ());
    NUMBER.try_with(Cell::get).unwrap_or(u64::MAX)
}

/// A call that has begun.
pub(crate) struct Begun {
    at: f64,
    stream: Stream,
    before: Option<Box<dyn DeviceEvent>>,
}

/// Starts the watch of a call, if calls are traced.
pub(crate) fn begin(stream: Stream) -> Option<Begun> {
    let trace = trace()?;
    let before = match stream.device == Device::CPU {
        true => None,
        // What is written into a graph has not run.
        false if stream.is_capturing() => None,
        false => trace.event(stream).inspect_err(|error| tracing::warn!(%error, "the device is not traced")).ok(),
    };
    Some(Begun { at: microseconds(), stream, before })
}

/// The call has returned, or failed.
pub(crate) fn end(begun: Option<Begun>, record: Option<&Record>, error: Option<&Error>) {
    let (Some(trace), Some(Begun { at, stream, before }), Some(record)) = (trace(), begun, record) else { return };
    let device = || driver(record.device);
    let after = || device()?.record_event(stream);
    let on_device = before.and_then(|before| Some(OnDevice { stream, before, after: after().ok()? }));
    let duration = microseconds() - at;
    let memory = device().and_then(|d| d.memory_stats()).map_or(Value::Null, |stats| json!(stats.used));
    let details = json!({
        "accelerator": record.served_by,
        "device": record.device.to_string(),
        "shapes": record.shapes,
        "dtypes": record.dtypes.iter().map(|d| d.name()).collect::<Vec<_>>(),
        "expression": record.computes(),
        "grid": record.launch.as_ref().map(|l| l.grid),
        "block": record.launch.as_ref().map(|l| l.block),
        "bytes": record.bytes,
        "memory_used": memory,
        "error": error.map(ToString::to_string),
    });
    let name = record.launch.as_ref().map_or(record.op, |l| &l.kernel).into();
    let category = format!("{:?}", record.family);
    trace.push(Ended { name, category, thread: thread(), begin: at, duration, details, on_device });
}

/// A range of the host that is being traced; written when it is dropped.
pub(crate) struct HostRange {
    name: String,
    at: f64,
}

/// Begins a range, if calls are traced.
pub(crate) fn host_range(name: &str) -> Option<HostRange> {
    is_on().then(|| HostRange { name: name.into(), at: microseconds() })
}

impl Drop for HostRange {
    fn drop(&mut self) {
        let (name, duration) = (std::mem::take(&mut self.name), microseconds() - self.at);
        let ended =
            Ended { name, category: "range".into(), thread: thread(), begin: self.at, duration, details: json!({}), on_device: None };
        if let Some(trace) = trace() {
            trace.push(ended);
        }
    }
}

impl Trace {
    /// An event on a stream, after one whose time is known on the host's clock.
    fn event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        let (device, now) = (stream.device, microseconds());
        let driver = driver(device)?;
        let mut anchors = lock(&self.anchors);
        if !anchors.iter().any(|a| a.device == device && now - a.at < ANCHOR_REACH) {
            let event = driver.record_event(stream)?;
            event.millis_since(event.as_ref())?; // waits for it
            anchors.retain(|a| now - a.at < ANCHOR_LIFE);
            anchors.push(Anchor { device, event: event.into(), at: microseconds() });
        }
        driver.record_event(stream)
    }

    fn push(&self, ended: Ended) {
        let behind = {
            let mut pending = lock(&self.pending);
            pending.push_back(ended);
            pending.len()
        };
        if behind > BEHIND {
            // The older half has run, most likely; the younger may not have.
            self.settle(BEHIND / 2);
        }
    }

    /// Writes the oldest calls, at most so many.
    fn settle(&self, count: usize) {
        let written = {
            let mut output = lock(&self.output);
            let ended: Vec<Ended> = {
                let mut pending = lock(&self.pending);
                let count = count.min(pending.len());
                pending.drain(..count).collect()
            };
            let mut lines = Vec::new();
            let timed = ended.into_iter().map(|e| self.lines(e, &mut output, &mut lines)).fold(Ok(()), Result::and);
            output.write(&lines).map_err(|e| Error::io(self.path.clone(), e)).and(timed)
        };
        if let Err(error) = written {
            tracing::warn!(%error, file = %self.path.display(), "a part of the trace is lost");
        }
    }

    /// The bars of a call, after the names of their rows where those are new. The one on the host is there whatever the device says.
    fn lines(&self, ended: Ended, output: &mut Output, lines: &mut Vec<Value>) -> Result<()> {
        let Ended { name, category, thread, begin, duration, details, on_device } = ended;
        let bar = |group: u64, row: u64, begin: f64, duration: f64| json!({"name": name, "cat": category, "ph": "X", "pid": group, "tid": row, "ts": begin, "dur": duration, "args": details});
        output.name_row(HOST, thread, "host", &format!("thread {thread}"), lines);
        lines.push(bar(HOST, thread, begin, duration));
        let Some(OnDevice { stream: Stream { device, id }, before, after }) = on_device else { return Ok(()) };
        let on_device = after.millis_since(before.as_ref())? * 1e3;
        let begin = self.device_time(device, before.as_ref(), begin)?;
        let group = 1 + (device.kind().index() as u64) * 64 + device.ordinal() as u64;
        let row = u64::from(id);
        output.name_row(group, row, &device.to_string(), &format!("stream {id}"), lines);
        lines.push(bar(group, row, begin, on_device));
        Ok(())
    }

    /// Where an event that was recorded at about `recorded` lies on the host's clock.
    fn device_time(&self, device: Device, event: &dyn DeviceEvent, recorded: f64) -> Result<f64> {
        let newest = lock(&self.anchors).iter().rfind(|a| a.device == device && a.at <= recorded).map(|a| (a.at, a.event.clone()));
        let (at, anchor) = newest.ok_or_else(|| Error::value("trace", format!("no time of {device} is known")))?;
        Ok(at + event.millis_since(anchor.as_ref())? * 1e3)
    }
}

impl Output {
    fn write(&mut self, lines: &[Value]) -> std::io::Result<()> {
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

    fn name_row(&mut self, group: u64, row: u64, group_name: &str, row_name: &str, lines: &mut Vec<Value>) {
        let named = |kind: &str, name: &str| json!({"name": kind, "ph": "M", "pid": group, "tid": row, "args": {"name": name}});
        if self.named.contains(&(group, row)) {
            return;
        }
        if self.named.iter().all(|(g, _)| *g != group) {
            lines.push(named("process_name", group_name));
        }
        lines.push(named("thread_name", row_name));
        self.named.push((group, row));
    }
}
