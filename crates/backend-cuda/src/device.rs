//! Implementation of the core crate's device interface for CUDA: memory, host copies, synchronisation, timing. The module also has helpers
//! for kernel functions of this and other crates, such as the device addresses of a [`Call`]'s inputs.
//!
//! Work is queued on the calling thread's current stream ([`Context::stream`]). The functions [`pointer_to_read`] and [`memory_to_read`]
//! make that stream wait for work on other streams that writes the array. The array may be dropped once the work that reads the array is
//! queued.

use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use cuprum_core::device::{Buffer, DeviceDriver, DeviceEvent, DeviceInfo, MemoryStats};
use cuprum_core::error::{LinAlgFailure, shape_text};
use cuprum_core::graph::DeviceGraph;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Array, Call, Device, Error, Op, Outcome, Program, Result, StoredArray, Stream};
use smallvec::SmallVec;

use crate::codegen;
use crate::compile::minimal_launch;
use crate::compile::program;
use crate::driver::{self, Context, DeviceBuffer, fault, recent_work};
use crate::error::CudaError;
use crate::families::fft::cufft;
use crate::families::linalg::cusolver;

/// The name of the device kind `cuda`, which is also the name of the accelerator [`CUDA`](crate::accelerator::CUDA).
pub(crate) const DEVICE_KIND_NAME: &str = "cuda";

/// Device memory of an array. The memory is freed once the last owner is dropped and all streams have completed their last use of it.
#[derive(Debug)]
pub struct CudaBuffer {
    memory: DeviceBuffer,
    device: Device,
}

impl CudaBuffer {
    /// Allocates `bytes` bytes of uninitialised memory on `device`, aligned to 256 bytes, in stream order on this thread's current stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is too little memory, and other errors of the driver. All errors name the function `op`.
    pub fn allocate(op: &'static str, device: Device, bytes: usize) -> Result<Arc<CudaBuffer>> {
        let memory = context(device)?.alloc_on_current_stream(bytes).map_err(|e| to_core_error("cuda", op, device, e))?;
        Ok(Arc::new(CudaBuffer { memory, device }))
    }

    /// Wraps `memory` as a buffer of the core crate.
    pub(crate) fn from_device_buffer(memory: DeviceBuffer) -> Arc<CudaBuffer> {
        let device = memory.context().device();
        Arc::new(CudaBuffer { memory, device })
    }

    /// Returns `buffer` as a CUDA buffer, or `None` if it is not memory of a CUDA device.
    pub fn of(buffer: &dyn Buffer) -> Option<&CudaBuffer> {
        buffer.as_any().downcast_ref()
    }

    /// Returns the device address of the first byte, or 0 if the buffer is empty.
    pub fn pointer(&self) -> u64 {
        self.memory.pointer()
    }

    /// Returns the underlying device memory, which the driver's copies and fills take.
    pub fn memory(&self) -> &DeviceBuffer {
        &self.memory
    }
}

impl Buffer for CudaBuffer {
    fn device(&self) -> Device {
        self.device
    }
    fn nbytes(&self) -> usize {
        self.memory.len()
    }
    fn is_writable(&self) -> bool {
        !self.memory.belongs_to_graph() && !self.is_foreign()
    }
    fn is_foreign(&self) -> bool {
        self.memory.is_owned_by_other_library()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns the CUDA context of `device`: its streams, memory and kernels.
pub fn context(device: Device) -> Result<&'static Context> {
    Context::get(device.ordinal()).map_err(|e| to_core_error("cuda", "device", device, e))
}

/// Returns the context of `device`, or an error that names the function `op` if `device` is not a CUDA device.
pub(crate) fn cuda_context(op: &'static str, device: Device) -> Result<&'static Context> {
    if device.kind().name() != DEVICE_KIND_NAME {
        return Err(Error::Device { op, message: format!("{device} is not a CUDA device") });
    }
    context(device)
}

/// Returns a closure that launches a minimal kernel on this thread's stream. The host time of the launch is a lower bound for the host time
/// of any operation on `device`. The kernel runs for `micros` microseconds, to imitate the device time of an operation.
///
/// ```no_run
/// use cuprum_backend_cuda::device::minimal_launch_closure;
/// use cuprum_core::{Device, profiler};
/// # fn main() -> cuprum_core::Result<()> {
/// let device = Device::parse("cuda")?;
/// let launch = minimal_launch_closure(device, 40)?;
/// let times = profiler::benchmark_on(&[device], profiler::BenchmarkLimits::default(), launch)?.1;
/// println!("a launch after a wait takes {:.1} us", times.host_times().median);
/// # Ok(())
/// # }
/// ```
pub fn minimal_launch_closure(device: Device, micros: u32) -> Result<impl Fn() -> Result<()>> {
    let failed = move |e| to_core_error("cuda", "device", device, e);
    let launch = minimal_launch::minimal_launcher(context(device)?, micros).map_err(failed)?;
    Ok(move || launch().map_err(failed))
}

/// Returns the memory of `array` for reading. Work that is queued on this thread's stream afterwards runs after the work that writes
/// `array`, even if that work is on another stream.
///
/// # Errors
/// [`Error::Device`] if `array` is not in CUDA memory.
#[inline]
pub fn memory_to_read(array: &StoredArray) -> Result<&CudaBuffer> {
    let buffer = cuda_buffer(array)?;
    let stream = buffer.memory.prepare_read().map_err(|e| to_core_error("cuda", "array", buffer.device, e))?;
    if buffer.memory.must_be_kept_by_capture(stream) {
        buffer.memory.context().keep_array_alive(array.buffer(), false);
    }
    Ok(buffer)
}

fn cuda_buffer(array: &StoredArray) -> Result<&CudaBuffer> {
    CudaBuffer::of(array.buffer().as_ref()).ok_or_else(|| {
        let message = format!("an array on {} was given to a CUDA kernel", array.device());
        Error::Device { op: "cuda", message }
    })
}

/// Returns the device address of element 0 of `array`, whose memory is `buffer`.
pub(crate) fn element_0_address(buffer: &CudaBuffer, array: &StoredArray) -> u64 {
    buffer.pointer() + (array.layout().offset() * array.dtype().itemsize()) as u64
}

/// Returns the address of element 0 of `array` for reading, like [`memory_to_read`]. With negative strides, other elements may have lower
/// addresses.
///
/// # Errors
/// [`Error::Device`] if `array` is not in CUDA memory.
#[inline]
pub fn pointer_to_read(array: &StoredArray) -> Result<u64> {
    memory_to_read(array).map(|buffer| element_0_address(buffer, array))
}

/// Calls [`pointer_to_read`] for each of `arrays` and returns the addresses.
pub fn pointers_to_read(arrays: &[StoredArray]) -> Result<SmallVec<[u64; 8]>> {
    let mut addresses = SmallVec::new();
    for array in arrays {
        addresses.push(pointer_to_read(array)?);
    }
    Ok(addresses)
}

/// Returns the device address of an error word ([`Context::fault_pointer`]), in which a kernel of `program` reports an index out of bounds.
/// Returns `None` if the program does not index arrays, so that its kernels cannot fault.
pub fn error_word_address(context: &'static Context, program: &Program) -> crate::Result<Option<u64>> {
    if codegen::may_fault(program) { context.fault_pointer().map(Some) } else { Ok(None) }
}

/// Returns the address of element 0 of `array`, which must have no other owner, for writing. Work that is queued on this thread's stream
/// afterwards runs after all earlier uses of `array`.
pub fn pointer_to_write(array: &StoredArray) -> Result<u64> {
    let buffer = cuda_buffer(array)?;
    let stream = buffer.memory.prepare_write().map_err(|e| to_core_error("cuda", "array", buffer.device, e))?;
    if buffer.memory.must_be_kept_by_capture(stream) {
        buffer.memory.context().keep_array_alive(array.buffer(), true);
    }
    Ok(element_0_address(buffer, array))
}

/// Allocates `bytes` bytes of temporary device memory for `call`. The buffer may be dropped once the work that uses it is queued.
pub fn allocate(call: &Call, bytes: usize) -> Result<Arc<CudaBuffer>> {
    CudaBuffer::allocate(call.op.name(), call.device, bytes)
}

/// Returns the memory of output `n` of `call`: the output's target buffer if it has one, else new memory of the output's size. Work that is
/// queued on this thread's stream afterwards runs after all earlier uses of the target buffer.
pub fn allocate_output(call: &Call, n: usize) -> Result<Arc<CudaBuffer>> {
    let spec = &call.outputs[n];
    if let Some(target) = spec.target_buffer() {
        return target_as_cuda_buffer(target);
    }
    allocate(call, spec.layout.size().saturating_mul(spec.dtype.itemsize()))
}

/// Returns the address of the first element of output `n` of `call` in `buffer`. The address is a multiple of 16.
pub fn output_address(call: &Call, n: usize, buffer: &CudaBuffer) -> u64 {
    let spec = &call.outputs[n];
    buffer.pointer() + (spec.layout.offset() * spec.dtype.itemsize()) as u64
}

#[cold]
fn target_as_cuda_buffer(target: &Arc<dyn Buffer>) -> Result<Arc<CudaBuffer>> {
    let any: Arc<dyn Any + Send + Sync> = target.clone();
    let buffer = any
        .downcast::<CudaBuffer>()
        .map_err(|_| Error::Device { op: "cuda", message: format!("an output on {} was given to a CUDA kernel", target.device()) })?;
    let stream = buffer.memory.prepare_write().map_err(|e| to_core_error("cuda", "array", buffer.device, e))?;
    if buffer.memory.must_be_kept_by_capture(stream) {
        buffer.memory.context().keep_array_alive(target, true);
    }
    Ok(buffer)
}

/// Runs the kernel function `run` on `call`, with an error word of its own. If `run` fails after a launch, later operations of the thread
/// thus do not depend on that launch.
#[inline]
pub fn run_operation(call: &Call, run: fn(&Call) -> Result<Outcome>) -> Result<Outcome> {
    fault::run_with_own_error_word(|| run(call))
}

/// Returns [`Outcome::Done`] with `buffers`, one for each output of `call`. The work that writes the buffers must be queued already.
pub fn outcome_from_buffers(call: &Call, buffers: impl IntoIterator<Item = Arc<CudaBuffer>>) -> Result<Outcome> {
    let mut outputs = SmallVec::<[Arc<CudaBuffer>; 2]>::new();
    buffers.into_iter().for_each(|buffer| outputs.push(buffer));
    record_output_writes(call, &outputs);
    call.outcome_from_buffers(outputs.into_iter().map(|b| b as Arc<dyn Buffer>))
}

/// Records that the queued work of `call` writes `outputs` and reads the inputs of `call`. Later work on other streams waits according to
/// this record, and readers of `outputs` receive the faults of the work.
pub(crate) fn record_output_writes(call: &Call, outputs: &[Arc<CudaBuffer>]) {
    recent_work::record_operation(call.op);
    DeviceBuffer::record_queued_writes(outputs.iter().map(|b| &b.memory));
    DeviceBuffer::record_dependencies(outputs.iter().map(|b| &b.memory), input_buffers(call));
}

/// Records, after a launch outside dispatch, that the arrays in `written` depend on the arrays in `used`. A fault that affects an array in
/// `used` then also affects the arrays in `written`.
pub(crate) fn record_dependencies(written: &[StoredArray], used: &[StoredArray]) {
    fn memory(arrays: &[StoredArray]) -> impl Iterator<Item = &DeviceBuffer> {
        arrays.iter().filter_map(|array| CudaBuffer::of(array.buffer().as_ref())).map(|buffer| &buffer.memory)
    }
    DeviceBuffer::record_dependencies(memory(written), memory(used));
}

/// Returns the device memory of each input of `call`.
fn input_buffers<'a>(call: &'a Call) -> impl Iterator<Item = &'a DeviceBuffer> {
    call.inputs.iter().filter_map(|array| CudaBuffer::of(array.buffer().as_ref())).map(|buffer| &buffer.memory)
}

/// Returns the 64-bit number at the start of `buffer`. Blocks until the device has computed the number, and returns the device's errors.
pub fn read_output_length(call: &Call, buffer: &CudaBuffer) -> Result<usize> {
    let mut bytes = [0; 8];
    buffer.memory.context().copy_to_host(&mut bytes, &buffer.memory, 0).with_call_context(call)?;
    let length = u64::from_le_bytes(bytes);
    usize::try_from(length).map_err(|_| Error::value(call.op.name(), format!("a kernel counted {length} elements")))
}

/// Maximum size, in bytes, of an output buffer that is kept even if most of it is unused.
const MAX_UNTRIMMED_BYTES: usize = 1 << 20;

/// Returns `Outcome::Done` with the first `length` elements of each buffer, one buffer per output ([`Call::outcome_with_length`]). A buffer
/// of more than 1 MiB of which at most a quarter is used is replaced by a smaller copy.
pub fn outcome_with_length(call: &Call, length: usize, buffers: impl IntoIterator<Item = Arc<CudaBuffer>>) -> Result<Outcome> {
    recent_work::record_operation(call.op);
    let fitted = call.outputs.iter().zip(buffers).map(|(spec, buffer)| {
        let bytes = length.saturating_mul(spec.dtype.itemsize());
        if buffer.nbytes() <= MAX_UNTRIMMED_BYTES || bytes > buffer.nbytes() / 4 {
            return Ok(buffer as Arc<dyn Buffer>);
        }
        // If there is no memory for the smaller copy, the large buffer becomes the output.
        let exact = match allocate(call, bytes) {
            Err(Error::OutOfMemory { .. }) => return Ok(buffer as Arc<dyn Buffer>),
            exact => exact?,
        };
        Context::copy(&exact.memory, 0, &buffer.memory, 0, bytes).with_call_context(call)?;
        Ok(exact as Arc<dyn Buffer>)
    });
    let fitted: SmallVec<[Arc<dyn Buffer>; 2]> = fitted.collect::<Result<_>>()?;
    let outputs = || fitted.iter().filter_map(|b| CudaBuffer::of(b.as_ref())).map(|b| &b.memory);
    DeviceBuffer::record_queued_writes(outputs());
    DeviceBuffer::record_dependencies(outputs(), input_buffers(call));
    call.outcome_with_length(length, fitted)
}

/// Conversion of this crate's `Result` to core's `Result`, whose errors name the operation and device of a call.
pub trait WithCallContext<T> {
    /// Converts an error to the core crate's error, which names the operation and device of `call`.
    fn with_call_context(self, call: &Call) -> Result<T>;
}

impl<T> WithCallContext<T> for crate::Result<T> {
    #[inline]
    fn with_call_context(self, call: &Call) -> Result<T> {
        self.map_err(|e| call_failure_error(call, e))
    }
}

/// Returns the core crate's error for `failure`, an error of the driver or a library. The message includes the dtypes and shapes of the
/// inputs of `call`.
#[cold]
fn call_failure_error(call: &Call, failure: CudaError) -> Error {
    match to_core_error("cuda", call.op.name(), call.device, failure) {
        Error::Backend { accelerator, op, message } => {
            let of = |a: &StoredArray| format!("{} {}", a.dtype(), shape_text(a.shape()));
            let inputs: Vec<String> = call.inputs.iter().map(of).collect();
            Error::Backend { accelerator, op, message: format!("{message} (called with {})", inputs.join(", ")) }
        }
        other => other,
    }
}

/// Returns a number that encodes `op` and `axis`. Kernels write the number to an error word, so that the error message can name both.
pub fn fault_operation_id(op: Op, axis: usize) -> u64 {
    op.index() as u64 | (axis as u64) << 32
}

/// Fault code for a segment offset that is out of bounds or smaller than the offset before it.
pub const SEGMENT_OFFSET_OUT_OF_BOUNDS: u64 = 2;

/// The lowest fault code that encodes a [`LinAlgFailure`].
const FIRST_LINALG_FAULT_CODE: u64 = 16;
/// Failures of linear algebra, in the order of their fault codes, which begin at [`FIRST_LINALG_FAULT_CODE`].
const LINALG_FAILURES: [LinAlgFailure; 5] = [
    LinAlgFailure::Singular,
    LinAlgFailure::NotPositiveDefinite,
    LinAlgFailure::EigenvaluesDiverge,
    LinAlgFailure::SvdDiverges,
    LinAlgFailure::NotFinite,
];

/// Returns the fault code for `failure`, such as a singular matrix. A kernel that reports this code stores the index of the matrix as the
/// value of the fault, and the batch size as the length.
pub(crate) fn linalg_fault_code(failure: LinAlgFailure) -> u64 {
    FIRST_LINALG_FAULT_CODE + LINALG_FAILURES.iter().position(|f| *f == failure).unwrap_or(0) as u64
}

/// Returns the core crate's error for `error`. The error for a fault of a kernel names the operation that caused the fault. All other
/// errors name `op`.
#[cold]
pub fn to_core_error(accelerator: &'static str, op: &'static str, device: Device, error: CudaError) -> Error {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match error {
        CudaError::OutOfMemory { requested, used, limit } => {
            Error::OutOfMemory { op, device, requested: size(requested), used: size(used), limit: Some(size(limit)) }
        }
        CudaError::DeviceFault { code, op: operation_id, value, length } => error_from_fault(code, operation_id, value, size(length)),
        // The lost device may differ from `device`, because a copy between two devices reports the loss of either device.
        CudaError::DeviceLost { device: lost, cause } => Error::DeviceLost { op, device: Device::new(device.kind(), lost as u16), cause },
        other => Error::backend(accelerator, op, other),
    }
}

fn error_from_fault(code: u64, operation_id: u64, value: i64, size: usize) -> Error {
    let index = (operation_id & 0xffff_ffff) as usize;
    let op = Op::all().find(|op| op.index() == index).map_or("index", Op::name);
    let axis = (operation_id >> 32) as usize;
    let linalg_failure = code.checked_sub(FIRST_LINALG_FAULT_CODE).and_then(|n| LINALG_FAILURES.get(n as usize));
    match code {
        fault::INDEX_OUT_OF_BOUNDS => Error::Index { op, index: value, axis, size },
        SEGMENT_OFFSET_OUT_OF_BOUNDS => {
            Error::value(op, format!("offset {value} is outside 0..={size}, or smaller than the one before it"))
        }
        _ => match linalg_failure {
            Some(&failure) => Error::LinAlg { op, failure, matrix: usize::try_from(value).unwrap_or(0), batch: size },
            None => Error::value(op, format!("a kernel reported fault {code}: value {value}, size {size}")),
        },
    }
}

/// An open CUDA device, which implements the core crate's trait [`DeviceDriver`].
pub(crate) struct CudaDevice {
    context: &'static Context,
    device: Device,
}

impl CudaDevice {
    pub(crate) fn open(device: Device) -> Result<CudaDevice> {
        Ok(CudaDevice { context: context(device)?, device })
    }

    fn error_converter(&self, op: &'static str) -> impl Fn(CudaError) -> Error {
        let device = self.device;
        move |e| to_core_error("cuda", op, device, e)
    }
}

impl DeviceDriver for CudaDevice {
    fn allocate(&self, nbytes: usize, _stream: Stream) -> Result<Arc<dyn Buffer>> {
        let memory = self.context.alloc_on_current_stream(nbytes).map_err(self.error_converter("allocate"))?;
        Ok(Arc::new(CudaBuffer { memory, device: self.device }))
    }

    fn upload(&self, bytes: &[u8], stream: Stream) -> Result<Arc<dyn Buffer>> {
        // During a graph capture, the upload runs on the default stream, outside the graph. Every launch of the graph then reads the data
        // as a constant.
        if stream.is_capturing() {
            return Stream::default_of(self.device).scope(|| self.upload(bytes, Stream::default_of(self.device)));
        }
        let memory = self.context.alloc_on_current_stream(bytes.len()).map_err(self.error_converter("to_device"))?;
        self.context.copy_to_device(&memory, 0, bytes).map_err(self.error_converter("to_device"))?;
        Ok(Arc::new(CudaBuffer { memory, device: self.device }))
    }

    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()> {
        let source = CudaBuffer::of(buffer).ok_or_else(|| Error::value("download", "not a CUDA buffer"))?;
        self.context.copy_to_host(out, &source.memory, byte_offset).map_err(self.error_converter("download"))
    }

    fn synchronize(&self) -> Result<()> {
        self.context.synchronize().map_err(self.error_converter("synchronize"))
    }

    fn new_stream(&self) -> Result<u32> {
        self.context.new_stream().map_err(self.error_converter("stream"))
    }

    fn synchronize_stream(&self, stream: Stream) -> Result<()> {
        self.context.synchronize_stream(stream.id).map_err(self.error_converter("synchronize"))
    }

    fn record_event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        let event = driver::Event::with_timing(self.context).map_err(self.error_converter("event"))?;
        event.record_on_stream(stream.id).map_err(self.error_converter("event"))?;
        Ok(Box::new(CudaEvent { event, device: self.device }))
    }

    fn wait_event(&self, stream: Stream, event: &dyn DeviceEvent) -> Result<()> {
        match event.as_any().downcast_ref::<CudaEvent>() {
            Some(other) => other.event.make_stream_wait(self.context, stream.id).map_err(self.error_converter("event")),
            None => event.synchronize(), // the host waits for an event of another kind of device
        }
    }

    fn begin_capture(&self) -> Result<Stream> {
        let id = self.context.begin_capture().map_err(self.error_converter("graph"))?;
        Ok(Stream { device: self.device, id })
    }

    fn end_capture(&self, stream: Stream) -> Result<Box<dyn DeviceGraph>> {
        let graph = self.context.end_capture(stream.id).map_err(self.error_converter("graph"))?;
        Ok(Box::new(CudaGraph { graph, device: self.device }))
    }

    fn abandon_capture(&self, stream: Stream) {
        self.context.abandon_capture(stream.id);
    }

    fn copy_between_buffers(&self, to: (&dyn Buffer, usize), from: (&dyn Buffer, usize), nbytes: usize, stream: Stream) -> Result<()> {
        let (Some(target), Some(source)) = (CudaBuffer::of(to.0), CudaBuffer::of(from.0)) else {
            return Err(Error::value("graph", "not CUDA buffers"));
        };
        let copy = || Context::copy(&target.memory, to.1, &source.memory, from.1, nbytes);
        stream.scope(copy).map_err(self.error_converter("graph"))
    }

    fn compiled_program_count(&self) -> Option<usize> {
        Some(program::compile_stats().compiles as usize)
    }

    fn begin_profiler_range(&self, name: &str) -> Option<Box<dyn Any>> {
        driver::profiler::NvtxRange::begin_range(name).map(|range| Box::new(range) as Box<dyn Any>)
    }

    fn set_profiling(&self, on: bool) -> Result<()> {
        driver::profiler::set_recording(self.context, on).map_err(self.error_converter("profile"))
    }

    fn info(&self) -> DeviceInfo {
        let info = self.context.info();
        let (major, minor) = info.compute_capability;
        let driver = self.context.driver_version();
        let mut details = vec![("compute capability", format!("{major}.{minor}")), ("driver", format!("CUDA {}.{}", driver.0, driver.1))];
        if let Ok(compiler) = self.context.compiler() {
            details.push(("NVRTC", compiler.path().display().to_string()));
        }
        let location = |found: std::result::Result<PathBuf, String>| found.map_or_else(|why| why, |path| path.display().to_string());
        details.push(("cuFFT", location(cufft::locate_cufft(driver.0))));
        details.push(("cuSOLVER", location(cusolver::locate_cusolver(driver.0))));
        DeviceInfo {
            name: info.name.clone(),
            units: info.sm_count as usize,
            memory_total: info.total_memory as usize,
            memory_used: self.context.memory_stats().map_or(0, |m| m.used),
            details,
        }
    }

    fn memory_stats(&self) -> Result<MemoryStats> {
        self.context.memory_stats().map_err(self.error_converter("memory_stats"))
    }

    fn reset_peak_memory(&self) -> Result<()> {
        self.context.reset_peak_memory();
        Ok(())
    }

    fn set_memory_limit(&self, limit: Option<usize>) -> Result<()> {
        self.context.set_memory_limit(limit);
        Ok(())
    }

    fn free_cached_memory(&self) -> Result<()> {
        self.context.trim().map_err(self.error_converter("free_all"))
    }

    fn allocate_pinned(&self, nbytes: usize) -> Result<HostBuffer> {
        driver::allocate_pinned(self.context, nbytes).map_err(self.error_converter("pin_memory"))
    }

    fn copy_from_other_device(&self, source: &Arc<dyn Buffer>, bytes: Range<usize>, stream: Stream) -> Option<Result<Arc<dyn Buffer>>> {
        if driver::is_pinned(source.as_ref()) {
            // `copy_from_pinned` copies whole buffers only.
            if bytes != (0..source.nbytes()) {
                return None;
            }
            let upload = || {
                let memory = self.context.alloc_on_current_stream(source.nbytes())?;
                self.context.copy_from_pinned(&memory, source)?;
                Ok(Arc::new(CudaBuffer { memory, device: self.device }) as Arc<dyn Buffer>)
            };
            // During a graph capture, the copy runs on the default stream, outside the graph. Every launch of the graph then reads the data
            // as a constant.
            let uploaded = if stream.is_capturing() { Stream::default_of(self.device).scope(upload) } else { upload() };
            return Some(uploaded.map_err(self.error_converter("to_device")));
        }
        let source = CudaBuffer::of(source.as_ref())?;
        let copy = || {
            self.context.check_not_capturing("a copy from another device")?;
            let memory = self.context.alloc_on_current_stream(bytes.len())?;
            Context::copy(&memory, 0, &source.memory, bytes.start, bytes.len())?;
            Ok(Arc::new(CudaBuffer { memory, device: self.device }) as Arc<dyn Buffer>)
        };
        Some(copy().map_err(self.error_converter("to_device")))
    }
}

/// A captured CUDA graph, which implements the core crate's trait [`DeviceGraph`].
struct CudaGraph {
    graph: driver::Graph,
    device: Device,
}

impl DeviceGraph for CudaGraph {
    fn launch_graph(&self, stream: Stream) -> Result<()> {
        fn memory_of(buffer: &dyn Buffer) -> Option<&DeviceBuffer> {
            CudaBuffer::of(buffer).map(|b| &b.memory)
        }
        self.graph.launch(stream.id, memory_of).map_err(|e| to_core_error("cuda", "graph", self.device, e))
    }
    fn keeps_buffer_alive(&self, buffer: &dyn Buffer) -> bool {
        self.graph.keeps_alive(buffer)
    }
    fn node_count(&self) -> usize {
        self.graph.node_count()
    }
}

/// A CUDA event with timing, which implements the core crate's trait [`DeviceEvent`].
struct CudaEvent {
    event: driver::Event,
    device: Device,
}

impl DeviceEvent for CudaEvent {
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
        let other = earlier.as_any().downcast_ref::<CudaEvent>().filter(|o| o.device == self.device);
        let other = other.ok_or_else(|| Error::value("event", "events of different devices"))?;
        let elapsed = || {
            other.event.synchronize()?;
            self.event.synchronize()?;
            self.event.elapsed_ms(&other.event)
        };
        elapsed().map(f64::from).map_err(|e| to_core_error("cuda", "event", self.device, e))
    }
    fn synchronize(&self) -> Result<()> {
        self.event.synchronize().map_err(|e| to_core_error("cuda", "event", self.device, e))
    }
    fn is_reached(&self) -> Result<bool> {
        self.event.is_reached().map_err(|e| to_core_error("cuda", "event", self.device, e))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use cuprum_core::DeviceKind;
    use cuprum_core::Work;
    use cuprum_core::ops::scan::CUMSUM;
    use cuprum_core::ops::take::TAKE;
    use cuprum_core::testing::calls;

    use super::*;

    #[test]
    fn errors_keep_what_the_foundations_know() {
        let device = Device::new(DeviceKind::intern("cuda").unwrap(), 1);
        let convert = |e| to_core_error("cuda", "matmul", device, e);
        let memory = convert(CudaError::OutOfMemory { requested: 10, used: 20, limit: 25 });
        assert!(matches!(memory, Error::OutOfMemory { op: "matmul", requested: 10, used: 20, limit: Some(25), device: d } if d == device));
        let fault = CudaError::DeviceFault { code: fault::INDEX_OUT_OF_BOUNDS, op: fault_operation_id(TAKE, 2), value: -9, length: 4 };
        assert!(matches!(convert(fault), Error::Index { op: "take", index: -9, axis: 2, size: 4 }));
        let sums = CudaError::DeviceFault { code: SEGMENT_OFFSET_OUT_OF_BOUNDS, op: fault_operation_id(TAKE, 0), value: 7, length: 4 };
        assert!(matches!(convert(sums), Error::Value { op: "take", message } if message.contains("offset 7 is outside 0..=4")));
        let driver = |code| CudaError::Driver { call: "cuLaunchKernel", code, name: "NAME".into() };
        assert!(
            matches!(convert(driver(1)), Error::Backend { accelerator: "cuda", op: "matmul", message } if message == "cuLaunchKernel failed: NAME (1)")
        );
        let lost = convert(CudaError::DeviceLost { device: 1, cause: "cuLaunchKernel failed: NAME (700)".into() });
        assert!(matches!(&lost, Error::DeviceLost { op: "matmul", device: d, cause } if *d == device && cause.contains("700")));
        assert!(lost.to_string().starts_with("[matmul] cuda:1 is lost: cuLaunchKernel failed: NAME (700)"), "{lost}");
        assert_eq!(recent_work::describe_recent_work(), "this thread had queued nothing");
        (0..9).for_each(|n| recent_work::record_operation([TAKE, CUMSUM][n % 2]));
        recent_work::record_user_kernel(&"poke".into());
        assert!(recent_work::describe_recent_work().ends_with("the latest first: the kernel `poke`, take, cumsum, take"));
    }

    #[test]
    fn failed_calls_say_what_they_were_made_with() {
        let device = Device::new(DeviceKind::intern("cuda").unwrap(), 0);
        let [a, b] = [&[3usize, 4][..], &[4]]
            .map(|shape| calls::array(device, cuprum_core::DType::F32, cuprum_core::Layout::contiguous(shape).unwrap()).unwrap());
        let work = Work::Gather(cuprum_core::call::Gather { axis: 0, indices: cuprum_core::call::GatherIndices::ReplaceAxis });
        let error = calls::with_call(TAKE, &[a, b], &[], work, |call| {
            let failed: crate::Result<()> = Err(CudaError::Driver { call: "cuLaunchKernel", code: 1, name: "NAME".into() });
            failed.with_call_context(call).unwrap_err().to_string()
        });
        assert_eq!(error, "[take] cuda failed: cuLaunchKernel failed: NAME (1) (called with float32 (3, 4), float32 (4,))");
    }

    #[test]
    fn host_arrays_are_refused() {
        let host = cuprum_core::host_buffer::HostBuffer::zeroed(8).unwrap();
        let layout = cuprum_core::Layout::contiguous(&[2]).unwrap();
        let array = StoredArray::new(cuprum_core::DType::F32, layout, Arc::new(host)).unwrap();
        assert!(matches!(pointer_to_read(&array), Err(Error::Device { message, .. }) if message.contains("cpu")));
    }
}
