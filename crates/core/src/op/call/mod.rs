//! Calls: planned requests to kernels, and the kernels' answers. Each family's file defines its request.

mod contract;
mod copy;
mod custom;
mod fill;
mod gather;
mod histogram;
mod map;
mod random;
mod reduce;
mod rows;
mod scan;
mod search;
mod segments;
mod select;
mod signature;
mod sort;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::contract::Contract;
pub use self::copy::Copy;
pub use self::custom::Custom;
pub use self::fill::Fill;
pub use self::gather::Gather;
pub use self::histogram::{Binning, Histogram};
pub use self::map::Map;
pub use self::random::{Distribution, Random};
pub use self::reduce::Reduce;
pub use self::rows::Rows;
pub use self::scan::Scan;
pub use self::search::Search;
pub use self::segments::Segments;
pub use self::select::Select;
pub use self::signature::TuningSignature;
pub use self::sort::{SegmentSort, Sort};
pub use crate::array::Outputs;
use crate::array::{Array, StoredArray};
use crate::device::{Buffer, Device, Stream, driver};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Family, Op};
use crate::program::Program;

/// A planned request: all that a kernel needs. It is planned once for all accelerators.
pub struct Call<'a> {
    /// The NumPy-level operation, for messages and `explain`. For a fused expression, its last operation.
    pub op: Op,
    /// The device of all inputs and outputs.
    pub device: Device,
    /// The stream on which the kernel runs.
    pub stream: Stream,
    /// Stored inputs: the program's, then the family's extra input.
    pub inputs: &'a [StoredArray],
    /// dtype and layout of each output.
    pub outputs: &'a [OutputSpec],
    /// The request of the family.
    pub work: Work<'a>,
}

/// The dtype and layout of an output. The layout has offset 0 and no gaps.
#[derive(Clone, Debug)]
pub struct OutputSpec {
    /// Element type.
    pub dtype: DType,
    /// Layout of the elements in the new buffer.
    pub layout: Layout,
}

impl OutputSpec {
    /// Returns the specification of an output in C order.
    ///
    /// # Errors
    /// A size that overflows.
    pub fn contiguous(dtype: DType, shape: &[usize]) -> Result<OutputSpec> {
        Ok(OutputSpec { dtype, layout: Layout::contiguous(shape)? })
    }
}

/// The interface of a request that all families share.
pub trait Request {
    /// Returns the family, which selects the chain of kernels.
    fn family(&self) -> Family;

    /// Returns the fused program, for families that have one.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// Returns whether the last input belongs to the family rather than to the program.
    ///
    /// Examples are the values of a selection, the edges or weights of a histogram, and the offsets of segments.
    fn has_extra_input(&self) -> bool {
        false
    }

    /// Adds to a tuning signature what distinguishes calls of this family. The default adds the layouts.
    ///
    /// # Errors
    /// A setting that cannot be read.
    fn sign(&self, call: &Call, signature: &mut TuningSignature) -> Result<()> {
        signature.add_layouts(call);
        Ok(())
    }
}

/// Declares [`Work`], with one line per kind of request.
macro_rules! work {
    ($($name:ident($request:ty): $doc:literal;)*) => {
        /// The request, by family. Each struct states its contract.
        #[derive(Clone, Copy)]
        pub enum Work<'a> {
            $(#[doc = $doc] $name($request),)*
        }

        impl<'a> Work<'a> {
            /// Returns the interface that all families share.
            pub fn request(&self) -> &(dyn Request + 'a) {
                match self { $(Work::$name(request) => request,)* }
            }
        }
    };
}

work! {
    Map(Map<'a>): "An elementwise loop.";
    Reduce(Reduce<'a>): "A reduction over axes.";
    Rows(Rows<'a>): "An expression that contains reductions along rows.";
    Scan(Scan<'a>): "A running reduction along an axis.";
    Contract(Contract<'a>): "A sum of products over shared modes.";
    Fill(Fill): "An array computed without inputs.";
    Copy(Copy<'a>): "A copy or join.";
    Random(Random): "Random numbers.";
    Sort(Sort): "A sort of rows.";
    SegmentSort(SegmentSort): "A sort within segments.";
    Select(Select<'a>): "The elements at which a condition is true.";
    Search(Search): "A binary search.";
    Histogram(Histogram<'a>): "Counts of values in bins.";
    Gather(Gather): "Elements selected by index.";
    Segments(Segments<'a>): "A reduction of segments.";
    Custom(Custom<'a>): "A request of another crate's operation.";
}

/// A kernel's answer. A failure is an `Err`. A kernel that does not support a call declines before any side effect.
pub enum Outcome {
    /// The outputs, in the order of [`Call::outputs`].
    Done(Outputs),
    /// The kernel does not take the call; dispatch tries the next one.
    Declined(Reason),
}

/// The reason why a kernel declined. The text is formatted only for `explain` and errors.
pub struct Reason {
    text: Cow<'static, str>,
    retryable: bool,
}

impl Reason {
    /// Creates a reason with a fixed text.
    pub fn new(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), retryable: false }
    }

    /// Creates a reason that is temporary, such as a kernel still compiling.
    ///
    /// If all other kernels decline, dispatch retries the kernel under [`Compile::Wait`](crate::settings::Compile::Wait).
    pub fn retryable(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), retryable: true }
    }

    /// Creates a reason with a formatted text. `text` is called only inside [`explain`](crate::explain) or for an error.
    pub fn with(text: impl FnOnce() -> String) -> Reason {
        let text = if crate::dispatch::wants_reasons() { Cow::Owned(text()) } else { Cow::Borrowed("declined") };
        Reason { text, retryable: false }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the reason is temporary.
    pub(crate) fn is_retryable(&self) -> bool {
        self.retryable
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Reason {
        Reason::new(text)
    }
}

/// Returns from a kernel with [`Outcome::Declined`]: `decline!("why")` or `decline!("n is {n}")`.
#[macro_export]
macro_rules! decline {
    ($fixed:literal) => {
        return Ok($crate::Outcome::Declined($crate::Reason::with(|| format!($fixed))))
    };
    ($($t:tt)*) => {
        return Ok($crate::Outcome::Declined($crate::Reason::with(|| format!($($t)*))))
    };
}

impl Call<'_> {
    /// Returns the family of the request.
    pub fn family(&self) -> Family {
        self.work.request().family()
    }

    /// Returns the fused program, for families that have one.
    pub fn program(&self) -> Option<&Program> {
        self.work.request().program()
    }

    /// Returns the program's inputs, and the family's extra input if it has one.
    pub fn program_inputs(&self) -> (&[StoredArray], Option<&StoredArray>) {
        match self.inputs.split_last() {
            Some((last, inputs)) if self.work.request().has_extra_input() => (inputs, Some(last)),
            _ => (self.inputs, None),
        }
    }

    /// Allocates device memory for output `n`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), with this call's operation.
    ///
    /// # Panics
    /// If `n` is not the index of an output.
    pub fn allocate_output(&self, n: usize) -> Result<Arc<dyn Buffer>> {
        let spec = &self.outputs[n];
        let bytes = spec.layout.size().saturating_mul(spec.dtype.itemsize());
        driver(self.device)?.allocate(bytes, self.stream).map_err(|e| match e {
            crate::Error::OutOfMemory { device, requested, used, limit, .. } => {
                crate::Error::OutOfMemory { op: self.op.name(), device, requested, used, limit }
            }
            e => e,
        })
    }

    /// Returns [`Outcome::Done`] with one buffer per output, each in its specified layout.
    ///
    /// # Errors
    /// A buffer that is too small for its layout.
    pub fn done(&self, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let mut outputs = Outputs::new(); // `collect` would move the large arrays more often
        for (spec, buffer) in self.outputs.iter().zip(buffers) {
            outputs.push(StoredArray::new(spec.dtype, spec.layout.clone(), buffer)?);
        }
        Ok(Outcome::Done(outputs))
    }

    /// Like [`Call::done`], for 1-D outputs whose length the kernel determines (Select).
    ///
    /// # Errors
    /// A buffer that is too small for `length`.
    pub fn done_with_length(&self, length: usize, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let layout = Layout::contiguous(&[length])?;
        let arrays = self.outputs.iter().zip(buffers).map(|(spec, buffer)| StoredArray::new(spec.dtype, layout.clone(), buffer));
        Ok(Outcome::Done(arrays.collect::<Result<Outputs>>()?))
    }

    /// Returns the minimum memory traffic in bytes: each distinct input element and each output element once.
    pub fn bytes(&self) -> usize {
        let input = |a: &StoredArray| {
            let distinct: usize = a.layout().shape().iter().zip(a.layout().strides()).filter(|(_, s)| **s != 0).map(|(n, _)| *n).product();
            distinct.saturating_mul(a.dtype().itemsize())
        };
        let output = |o: &OutputSpec| o.layout.size().saturating_mul(o.dtype.itemsize());
        self.inputs.iter().map(input).sum::<usize>().saturating_add(self.outputs.iter().map(output).sum())
    }
}
