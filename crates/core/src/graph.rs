//! Graphs: work that is captured once and launched many times, each at the cost of one launch.

use std::fmt;
use std::sync::Arc;

use crate::array::NdArray;
pub use crate::device::DeviceGraph;
use crate::device::{Device, driver};
use crate::dispatch::{CallRecord, record_launch};
use crate::error::{Error, Result};
use crate::profiler::Evaluate;
use crate::registry;
use crate::stream::Stream;

/// Captured work of a device that can be launched repeatedly without the host cost of each call: a CUDA graph.
///
/// Every launch reads the arrays that the captured closure read, and overwrites the arrays that the closure returned. [`Graph::update`]
/// replaces the value of an input. The values of all other arrays stay unchanged, except those of deferred expressions: an expression of
/// such an array reads it when the expression is evaluated. Call [`NdArray::eval`] before a launch or update to keep the value.
///
/// ```no_run
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Graph, NdArray, full, matmul, ones};
/// # fn main() -> cuprum::Result<()> {
/// let (w, x) = (ones([512, 512], DType::F32)?, ones([512, 512], DType::F32)?);
/// let step = || matmul(&w, &x)?.tanh()?.sum(-1);
/// step()?.eval()?;                                  // a first run compiles kernels and loads libraries
/// let (graph, y) = Graph::capture(step)?;           // `y` has a value
/// for batch in 0..100 {
///     graph.update(&x, &full([512, 512], batch as f32, DType::F32)?)?;
///     graph.launch()?;                              // `y` has a new value
///     println!("{}", y.index(cuprum::s![0])?.item()?);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Limits
///
/// - Uploads in the closure (`from_slice`, arrays of scalars) and host code, such as branches, run only once. Random numbers are the same
///   at every launch.
/// - Some operations in the closure are errors: reading a value, waiting, recording an event, copying to another device, and results whose
///   size depends on data (`nonzero`, selections). The device and its streams stay usable. Arrays of the failed capture report its error.
/// - Work on other streams and threads runs as usual and must not use arrays of the capture.
pub struct Graph {
    inner: Box<dyn DeviceGraph>,
    device: Device,
}

impl Graph {
    /// Captures the work that `f` queues on the current device, and launches it once, so that the returned arrays have values.
    ///
    /// Returned deferred arrays are evaluated in the capture, other deferred arrays are not.
    ///
    /// # Errors
    /// Errors of `f`; an error if an operation cannot be captured, or if the device has no graphs, such as the CPU.
    pub fn capture<R: Evaluate>(f: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        Graph::capture_on(Device::current()?, f)
    }

    /// Captures the work that `f` queues on `device`, as [`Graph::capture`] does for the current device.
    ///
    /// # Errors
    /// The errors of [`Graph::capture`].
    pub fn capture_on<R: Evaluate>(device: Device, f: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        struct AbandonCaptureOnDrop(Option<Stream>);
        impl Drop for AbandonCaptureOnDrop {
            fn drop(&mut self) {
                if let Some(stream) = self.0
                    && let Ok(driver) = driver(stream.device)
                {
                    driver.abandon_capture(stream);
                }
            }
        }
        let current = Stream::current(device);
        if current.is_capturing() {
            return Err(Error::value("graph", "a graph cannot be captured within another"));
        }
        let driver = driver(device)?;
        let stream = driver.begin_capture()?;
        let mut abandon = AbandonCaptureOnDrop(Some(stream));
        let result = stream.scope(|| f().and_then(|result| result.evaluate().map(|()| result)))?;
        abandon.0 = None;
        let graph = Graph { inner: driver.end_capture(stream)?, device };
        graph.launch_on_stream(current)?;
        Ok((graph, result))
    }

    /// Queues the graph on this thread's current stream of the device, after work on other streams that uses the
    /// graph's arrays.
    ///
    /// No other thread may use the graph's arrays at the same time. Deferred expressions of the arrays that the closure returned see the
    /// new values, unless they have been evaluated before ([`NdArray::eval`]).
    ///
    /// # Errors
    /// [`Error::Value`] during a capture; errors of the device.
    pub fn launch(&self) -> Result<()> {
        self.launch_on_stream(self.stream_for_launch()?)
    }

    fn launch_on_stream(&self, stream: Stream) -> Result<()> {
        let base = || registry::base_accelerator_of_kind(self.device.kind().name()).map(|base| base.name);
        record_launch(stream, || CallRecord::from_graph_launch(self.device, self.nodes(), base()), || self.inner.launch_graph(stream))
    }

    /// Copies `values` into `input`, an array that the graph reads, for later launches.
    ///
    /// All handles and views of `input` see the new values, and so do deferred expressions that have not been evaluated before
    /// ([`NdArray::eval`]).
    ///
    /// # Errors
    /// [`Error::Shape`] if the graph does not read `input`, the shapes differ, or `input` is not in C order. [`Error::DType`] if the
    /// dtypes differ. [`Error::Value`] if `input` is memory of another library, to which cuprum never writes.
    pub fn update(&self, input: &NdArray, values: &NdArray) -> Result<()> {
        let refused = |why: &str| Err(Error::shape("graph", why, &[input.shape(), values.shape()]));
        let target = input.stored()?;
        if !self.inner.keeps_buffer_alive(target.buffer().as_ref()) {
            return refused("the graph does not read the array to update");
        }
        if target.buffer().is_foreign() {
            let why = "the array to update is memory of another library, which is never written; copy the array before the capture";
            return Err(Error::value("graph", why));
        }
        if input.shape() != values.shape() || !target.layout().is_c_contiguous() {
            return refused("an update needs an array in C order and values of the same shape");
        }
        if input.dtype() != values.dtype() {
            return Err(Error::dtype("graph", "an update needs values of the dtype of the array", &[input.dtype(), values.dtype()]));
        }
        let stream = self.stream_for_launch()?;
        let mut values = values.to_device(self.device)?.contiguous()?;
        if Arc::ptr_eq(values.stored()?.buffer(), target.buffer()) {
            values = values.copy()?; // `values` and `input` may overlap in their common buffer
        }
        let values = values.stored()?;
        let item = input.dtype().itemsize();
        let [to, from] = [&target, &values].map(|a| (a.buffer().as_ref(), a.layout().offset() * item));
        driver(self.device)?.copy_between_buffers(to, from, input.nbytes(), stream)
    }

    /// Returns the device of the graph.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the number of kernels, copies and fills in the graph.
    pub fn nodes(&self) -> usize {
        self.inner.node_count()
    }

    fn stream_for_launch(&self) -> Result<Stream> {
        let stream = Stream::current(self.device);
        if stream.is_capturing() {
            return Err(Error::value("graph", "a graph cannot be launched or updated while another is captured"));
        }
        Ok(stream)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes on {})", self.nodes(), self.device)
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use super::*;
    use crate::array::StoredArray;
    use crate::device::Buffer;
    use crate::dtype::DType;
    use crate::layout::Layout;

    /// Four bytes of another library.
    struct ForeignBuffer;

    impl Buffer for ForeignBuffer {
        fn device(&self) -> Device {
            Device::CPU
        }
        fn nbytes(&self) -> usize {
            4
        }
        fn is_foreign(&self) -> bool {
            true
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    /// A graph that keeps every buffer.
    struct KeepingGraph;

    impl DeviceGraph for KeepingGraph {
        fn launch_graph(&self, _: Stream) -> Result<()> {
            Ok(())
        }
        fn keeps_buffer_alive(&self, _: &dyn Buffer) -> bool {
            true
        }
        fn node_count(&self) -> usize {
            0
        }
    }

    #[test]
    fn an_update_does_not_write_to_memory_of_another_library() -> Result<()> {
        let graph = Graph { inner: Box::new(KeepingGraph), device: Device::CPU };
        let array = NdArray::from(StoredArray::new(DType::U8, Layout::contiguous(&[4])?, Arc::new(ForeignBuffer))?);
        let text = graph.update(&array, &array).unwrap_err().to_string();
        assert!(text.contains("copy the array before the capture"), "{text}");
        Ok(())
    }
}
