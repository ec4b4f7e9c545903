//! `CUPRUM_TRACE=file.json`: every call of the program in the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome
//! (chrome://tracing) open. Host threads and devices are rows; a call is a bar on its thread, from its begin to its return, and one on
//! its device, between events before and after it, with op, shapes, dtypes, accelerator and memory in use.
//!
//! Device times are read a while after the calls, so that tracing waits for a device only where the program does, when many calls
//! are behind, and in [`flush`]. The file is a complete JSON text after every write.
//!
//! Format: "Trace Event Format", Google, docs of catapult.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use serde_json::{Value, json};

use crate::call::Call;
use crate::device::{Device, Event, driver};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::settings;

const VARIABLE: &str = "CUPRUM_TRACE";
/// Calls whose device times are read later, at the most.
const BEHIND: usize = 256;
/// The row group of host threads; devices follow.
const HOST: u64 = 0;
/// Events of one anchor lie this close, in microseconds: times between events are float32 milliseconds.
const ANCHOR_REACH: f64 = 4e6;

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
    device: Device,
    before: Box<dyn Event>,
    after: Box<dyn Event>,
}

/// A point of a device's time that is known on the host's clock, in microseconds of the trace.
struct Anchor {
    device: Device,
    event: Box<dyn Event>,
    at: f64,
}

struct Trace {
    path: PathBuf,
    file: File,
    /// Where the next event goes: before the closing bracket.
    end: u64,
    pending: VecDeque<Ended>,
    anchors: Vec<Anchor>,
    /// Rows that have a name in the file.
    named: Vec<(u64, u64)>,
}

/// Time starts here.
fn microseconds() -> f64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e6
}

fn open() -> Result<Option<Mutex<Trace>>> {
    let Some(path) = settings::env(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from) else { return Ok(None) };
    let created = File::create(&path).and_then(|mut file| file.write_all(b"[\n]\n").map(|()| file));
    let file = created.map_err(|e| Error::Setting { variable: VARIABLE, message: format!("{}: {e}", path.display()) })?;
    microseconds();
    Ok(Some(Mutex::new(Trace { path, file, end: 2, pending: VecDeque::new(), anchors: Vec::new(), named: Vec::new() })))
}

fn opened() -> &'static Result<Option<Mutex<Trace>>> {
    static TRACE: OnceLock<Result<Option<Mutex<Trace>>>> = OnceLock::new();
    TRACE.get_or_init(open)
}

/// The file is made here; an error if it cannot be.
pub(crate) fn check() -> Result<()> {
    opened().as_ref().map(|_| ()).map_err(Error::clone)
}

fn with_trace(f: impl FnOnce(&mut Trace) -> Result<()>) {
    let Ok(Some(trace)) = opened() else { return };
    let mut trace = trace.lock().unwrap_or_else(|e| e.into_inner());
    if let Err(error) = f(&mut trace) {
        tracing::warn!(%error, file = %trace.path.display(), "a part of the trace is lost");
    }
}

/// Whether calls are traced.
pub fn is_on() -> bool {
    matches!(opened(), Ok(Some(_)))
}

/// Writes what is known, waiting for the devices. Reading a value and synchronising a device do it too, and a thread that ends.
pub fn flush() {
    if is_on() {
        with_trace(Trace::settle_all);
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
    before: Option<Box<dyn Event>>,
}

/// Starts the watch of a call, if calls are traced.
pub(crate) fn begin(call: &Call) -> Option<Begun> {
    if !is_on() {
        return None;
    }
    let event = || driver(call.device)?.record_event(call.stream);
    if call.device != Device::CPU {
        with_trace(|trace| trace.anchor(call));
    }
    let before = if call.device == Device::CPU { None } else { event().ok() };
    Some(Begun { at: microseconds(), before })
}

/// The call has returned, served by an accelerator or by nobody.
pub(crate) fn end(begun: Option<Begun>, call: &Call, served_by: Option<&str>) {
    let Some(Begun { at, before }) = begun else { return };
    let device = || driver(call.device);
    let after = || device()?.record_event(call.stream);
    let on_device = before.and_then(|before| Some(OnDevice { device: call.device, before, after: after().ok()? }));
    let duration = microseconds() - at;
    let memory = device().and_then(|d| d.memory_stats()).map_or(Value::Null, |stats| json!(stats.used));
    let (dtypes, shapes) = dispatch::dtypes_and_shapes(call);
    let details = json!({
        "accelerator": served_by,
        "device": call.device.to_string(),
        "shapes": shapes,
        "dtypes": dtypes.iter().map(|d| d.name()).collect::<Vec<_>>(),
        "expression": call.program().filter(|p| !p.is_identity()).map(ToString::to_string),
        "bytes": call.bytes(),
        "memory_used": memory,
    });
    let category = format!("{:?}", call.family());
    let ended = Ended { name: call.op.name().into(), category, thread: thread(), begin: at, duration, details, on_device };
    with_trace(|trace| trace.push(ended));
}

/// A range of the host that is being traced; written when it is dropped.
pub(super) struct HostRange {
    name: String,
    at: f64,
}

/// Begins a range, if calls are traced.
pub(super) fn host_range(name: &str) -> Option<HostRange> {
    is_on().then(|| HostRange { name: name.into(), at: microseconds() })
}

impl Drop for HostRange {
    fn drop(&mut self) {
        let (name, duration) = (std::mem::take(&mut self.name), microseconds() - self.at);
        let ended =
            Ended { name, category: "range".into(), thread: thread(), begin: self.at, duration, details: json!({}), on_device: None };
        with_trace(|trace| trace.push(ended));
    }
}

impl Trace {
    fn push(&mut self, ended: Ended) -> Result<()> {
        self.pending.push_back(ended);
        if self.pending.len() <= BEHIND {
            return Ok(());
        }
        // The older half has run, most likely; the younger may not have.
        self.settle(BEHIND / 2)
    }

    fn settle_all(&mut self) -> Result<()> {
        self.settle(self.pending.len())
    }

    /// Writes the oldest calls.
    fn settle(&mut self, count: usize) -> Result<()> {
        let mut lines = Vec::new();
        for ended in self.pending.drain(..count.min(self.pending.len())).collect::<Vec<_>>() {
            self.lines(ended, &mut lines)?;
        }
        let written = self.write(&lines);
        written.map_err(|e| Error::io(self.path.clone(), e))
    }

    fn write(&mut self, lines: &[Value]) -> std::io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let separator = if self.end > 2 { ",\n" } else { "" };
        let text = separator.to_string() + &lines.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text.as_bytes())?;
        self.end += text.len() as u64;
        self.file.write_all(b"\n]\n")
    }

    /// The bars of a call, after the names of their rows where those are new.
    fn lines(&mut self, ended: Ended, lines: &mut Vec<Value>) -> Result<()> {
        let Ended { name, category, thread, begin, duration, details, on_device } = ended;
        let bar = |group: u64, row: u64, begin: f64, duration: f64| json!({"name": name, "cat": category, "ph": "X", "pid": group, "tid": row, "ts": begin, "dur": duration, "args": details});
        self.name_row(HOST, thread, "host", &format!("thread {thread}"), lines);
        lines.push(bar(HOST, thread, begin, duration));
        if let Some(OnDevice { device, before, after }) = on_device {
            let group = 1 + (device.kind().index() as u64) * 64 + device.ordinal() as u64;
            let on_device = after.millis_since(before.as_ref())? * 1e3;
            let begin = self.device_time(device, before)?;
            self.name_row(group, 0, &device.to_string(), "stream 0", lines);
            lines.push(bar(group, 0, begin, on_device));
        }
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

    /// Sees that the device's time is known on the host's clock: the device is waited for once.
    fn anchor(&mut self, call: &Call) -> Result<()> {
        if self.anchors.iter().any(|a| a.device == call.device) {
            return Ok(());
        }
        let driver = driver(call.device)?;
        driver.synchronize()?;
        let event = driver.record_event(call.stream)?;
        driver.synchronize()?;
        self.anchors.push(Anchor { device: call.device, event, at: microseconds() });
        Ok(())
    }

    /// Where an event lies on the host's clock.
    fn device_time(&mut self, device: Device, event: Box<dyn Event>) -> Result<f64> {
        let anchor = self.anchors.iter_mut().find(|a| a.device == device);
        let anchor = anchor.ok_or_else(|| Error::value("trace", format!("no time of {device} is known")))?;
        let since = event.millis_since(anchor.event.as_ref())? * 1e3;
        let at = anchor.at + since;
        if since > ANCHOR_REACH {
            *anchor = Anchor { device, event, at };
        }
        Ok(at)
    }
}
