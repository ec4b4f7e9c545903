//! Graphs: work that is written down once and launched many times, at the cost of one launch.

use std::fmt;
use std::sync::Arc;

use crate::array::{Array, NdArray};
use crate::device::{Buffer, Device, driver};
use crate::dispatch::{Record, beside_chain};
use crate::error::{Error, Result};
use crate::profiler::Evaluate;
use crate::stream::Stream;

/// A backend's [`Graph`]: what was captured, and all that it needs to be run again.
pub trait DeviceGraph: Send + Sync {
    /// Queues it on a stream, behind all that the arrays in it are waiting for.
    fn launch(&self, stream: Stream) -> Result<()>;
    /// Whether it holds this memory.
    fn holds(&self, buffer: &dyn Buffer) -> bool;
    /// How many pieces of work it has.
    fn nodes(&self) -> usize;
}

/// Work of a device that was captured, to be launched again and again without what it costs to issue it: a CUDA graph.
///
/// A graph works on the arrays that it was captured with. Every launch reads those that the closure read and writes those that it
/// returned, in place: they are the one kind of array whose value changes. [`Graph::update`] gives one that is read another value.
///
/// ```no_run
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Graph, NdArray, matmul};
/// # fn main() -> cuprum::Result<()> {
/// let (w, x) = (NdArray::ones([512, 512], DType::F32)?, NdArray::ones([512, 512], DType::F32)?);
/// let step = || matmul(&w, &x)?.tanh()?.sum(-1);
/// step()?.eval()?;                                  // once as usual: kernels are compiled, libraries are ready
/// let (graph, y) = Graph::capture(step)?;           // `y` has its value
/// for batch in 0..100 {
///     graph.update(&x, &NdArray::full([512, 512], batch as f32, DType::F32)?)?;
///     graph.launch()?;                              // `y` has another
///     println!("{}", y.index(cuprum::s![0])?.item()?);
/// }
/// # Ok(())
/// # }
/// ```
///
/// What does not go into a graph:
/// - what is uploaded in the closure (`from_slice`, a scalar's array) is uploaded once, and so is every choice that the host makes:
///   random numbers are drawn anew from the same place of their stream;
/// - reading a value, waiting, recording an event, copying to another device, and results whose size is found by computing (`nonzero`,
///   selections) are errors, after which the device and its streams are as before. Arrays that were to be computed in the failed
///   capture have no value and say so;
/// - work on other streams, or of other threads, runs as usual and must not use what is being captured.
pub struct Graph {
    inner: Box<dyn DeviceGraph>,
    device: Device,
}

impl Graph {
    /// Captures what `f` queues on the current device, and launches it once, so that the arrays returned have values. Deferred arrays
    /// among them run in the capture; other deferred arrays that `f` leaves behind do not.
    ///
    /// Errors: those of `f`; what cannot be captured; a device without graphs, such as the CPU.
    pub fn capture<R: Evaluate>(f: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        Graph::capture_on(Device::current()?, f)
    }

    /// [`Graph::capture`] of the work of one device.
    pub fn capture_on<R: Evaluate>(device: Device, f: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        struct Abandon(Option<Stream>);
        impl Drop for Abandon {
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
        let mut unless_ended = Abandon(Some(stream));
        let result = stream.scope(|| f().and_then(|result| result.evaluate().map(|()| result)))?;
        unless_ended.0 = None;
        let graph = Graph { inner: driver.end_capture(stream)?, device };
        graph.launch_on(current)?;
        Ok((graph, result))
    }

    /// Queues the work again, on this thread's stream of the device. It waits there for all that uses its arrays on other streams.
    /// Nobody may queue work with these arrays at the same time, on another thread.
    pub fn launch(&self) -> Result<()> {
        self.launch_on(self.stream()?)
    }

    fn launch_on(&self, stream: Stream) -> Result<()> {
        beside_chain(stream, || Record::of_graph(self.device, self.nodes()), || self.inner.launch(stream))
    }

    /// Copies `values` into `input`, an array that the graph reads, for the launches to come. Whoever else holds `input`, or a view of
    /// it, sees the new values too.
    ///
    /// Errors: an array that is not the graph's; another shape, dtype or device; an array with gaps, such as a view of some columns.
    pub fn update(&self, input: &NdArray, values: &NdArray) -> Result<()> {
        let refused = |why: &str| Err(Error::shape("graph", why, &[input.shape(), values.shape()]));
        let target = input.stored()?;
        if !self.inner.holds(target.buffer().as_ref()) {
            return refused("the array to update is not one that the graph reads");
        }
        if input.shape() != values.shape() || !target.layout().is_c_contiguous() {
            return refused("an update takes an array in C order and values of its shape");
        }
        if input.dtype() != values.dtype() {
            return Err(Error::dtype("graph", "an update takes values of the array's dtype", &[input.dtype(), values.dtype()]));
        }
        let stream = self.stream()?;
        let mut values = values.to_device(self.device)?.contiguous()?;
        if Arc::ptr_eq(values.stored()?.buffer(), target.buffer()) {
            values = values.copy()?; // they may overlap
        }
        let values = values.stored()?;
        let item = input.dtype().itemsize();
        let [to, from] = [&target, &values].map(|a| (a.buffer().as_ref(), a.layout().offset() * item));
        driver(self.device)?.copy_within(to, from, input.nbytes(), stream)
    }

    /// The device that it runs on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// How many kernels, copies and fills it has.
    pub fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn stream(&self) -> Result<Stream> {
        let stream = Stream::current(self.device);
        if stream.is_capturing() {
            return Err(Error::value("graph", "a graph cannot be launched or updated while another is captured"));
        }
        Ok(stream)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} pieces of work on {})", self.nodes(), self.device)
    }
}
