//! Calls: a planned request to a kernel, and the kernel's answer. One file per family states what the family asks for.

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

use smallvec::SmallVec;

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
pub use self::signature::Signature;
pub use self::sort::{SegmentSort, Sort};
use crate::array::{Array, StoredArray};
use crate::device::{Buffer, Device, Stream, driver};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Family, Op};
use crate::program::Program;

/// A planned request: everything a kernel needs, worked out once for every accelerator.
pub struct Call<'a> {
    /// The NumPy-level operation, for messages and `explain`; of a fused expression, its last one.
    pub op: Op,
    /// The device; all inputs are on it.
    pub device: Device,
    /// The stream on which the kernel runs.
    pub stream: Stream,
    /// Stored inputs: those of the program, then those that the family names.
    pub inputs: &'a [StoredArray],
    /// Specification of each array that the kernel returns.
    pub outputs: &'a [OutputSpec],
    /// The request.
    pub work: Work<'a>,
}

/// dtype and layout of an output. The layout has offset 0 and no gaps.
#[derive(Clone, Debug)]
pub struct OutputSpec {
    /// Element type.
    pub dtype: DType,
    /// Where elements go in the new buffer.
    pub layout: Layout,
}

impl OutputSpec {
    /// An output in C order. Errors: more elements than memory can hold.
    pub fn contiguous(dtype: DType, shape: &[usize]) -> Result<OutputSpec> {
        Ok(OutputSpec { dtype, layout: Layout::contiguous(shape)? })
    }
}

/// The parts of a request that every family has.
pub trait Request {
    /// The family, which selects the chain.
    fn family(&self) -> Family;

    /// The fused program, for families that have one.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// Whether the last input belongs to the family rather than to the program: the values of a selection, the edges or weights of a
    /// histogram, the offsets of segments.
    fn has_extra_input(&self) -> bool {
        false
    }

    /// Adds what distinguishes calls of this family to a tuning signature. By default: the layouts.
    ///
    /// # Errors
    /// A setting that cannot be read.
    fn sign(&self, call: &Call, signature: &mut Signature) -> Result<()> {
        signature.add_layouts(call);
        Ok(())
    }
}

/// Declares [`Work`]: one line for each kind of request.
macro_rules! work {
    ($($name:ident($request:ty): $doc:literal;)*) => {
        /// The request, by family. Each struct states its contract.
        #[derive(Clone, Copy)]
        pub enum Work<'a> {
            $(#[doc = $doc] $name($request),)*
        }

        impl<'a> Work<'a> {
            /// The parts that every family has.
            pub fn request(&self) -> &(dyn Request + 'a) {
                match self { $(Work::$name(request) => request,)* }
            }
        }
    };
}

work! {
    Map(Map<'a>): "Elementwise loops.";
    Reduce(Reduce<'a>): "Reductions over axes.";
    Rows(Rows<'a>): "Expressions that contain reductions along rows.";
    Scan(Scan<'a>): "Running reductions along an axis.";
    Contract(Contract<'a>): "Products that sum over shared modes.";
    Fill(Fill): "Arrays made from nothing.";
    Copy(Copy<'a>): "Copies and joins.";
    Random(Random): "Random numbers.";
    Sort(Sort): "Sorts of rows.";
    SegmentSort(SegmentSort): "Sorts within segments.";
    Select(Select<'a>): "Elements at which a condition holds.";
    Search(Search): "Positions in a sorted array.";
    Histogram(Histogram<'a>): "Counts of values in bins.";
    Gather(Gather): "Elements by index.";
    Segments(Segments<'a>): "Reductions of segments.";
    Custom(Custom<'a>): "Requests of other crates' operations.";
}

/// Arrays that a kernel returns.
pub type Outputs = SmallVec<[StoredArray; 1]>;

/// A kernel's answer. Failing is an `Err`; not being able to is [`Outcome::Declined`], before any side effect.
pub enum Outcome {
    /// The outputs, in the order of [`Call::outputs`].
    Done(Outputs),
    /// Somebody else must do it.
    Declined(Reason),
}

/// Why a kernel declined. Text is made only when somebody listens.
pub struct Reason {
    text: Cow<'static, str>,
    is_temporary: bool,
}

impl Reason {
    /// A fixed reason.
    pub fn new(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), is_temporary: false }
    }

    /// A reason that will soon be gone, such as a kernel that is being compiled. If nobody else takes the call, the kernel is asked
    /// once more, under [`Compile::Wait`](crate::settings::Compile::Wait).
    pub fn temporary(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), is_temporary: true }
    }

    /// A reason worth formatting, made only inside [`explain`](crate::explain) or for an error.
    pub fn with(text: impl FnOnce() -> String) -> Reason {
        let text = if crate::dispatch::wants_reasons() { Cow::Owned(text()) } else { Cow::Borrowed("declined") };
        Reason { text, is_temporary: false }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it will soon be gone.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Reason {
        Reason::new(text)
    }
}

/// `return decline!("why")` or `decline!("n is {n}")`: leaves a kernel with [`Outcome::Declined`].
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
    /// The family of the request.
    pub fn family(&self) -> Family {
        self.work.request().family()
    }

    /// The fused program, for families that have one.
    pub fn program(&self) -> Option<&Program> {
        self.work.request().program()
    }

    /// The program's inputs, plus the trailing extra input if the family has one.
    pub fn program_inputs(&self) -> (&[StoredArray], Option<&StoredArray>) {
        match self.inputs.split_last() {
            Some((last, inputs)) if self.work.request().has_extra_input() => (inputs, Some(last)),
            _ => (self.inputs, None),
        }
    }

    /// New device memory for output `n`.
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

    /// `Done` with one buffer per output, each in its specified layout.
    pub fn done(&self, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let mut outputs = Outputs::new(); // pushed one by one: a large value passes through fewer hands than in `collect`
        for (spec, buffer) in self.outputs.iter().zip(buffers) {
            outputs.push(StoredArray::new(spec.dtype, spec.layout.clone(), buffer)?);
        }
        Ok(Outcome::Done(outputs))
    }

    /// [`Call::done`] for outputs of one axis whose length only the kernel knows (Select).
    pub fn done_with_length(&self, length: usize, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let layout = Layout::contiguous(&[length])?;
        let arrays = self.outputs.iter().zip(buffers).map(|(spec, buffer)| StoredArray::new(spec.dtype, layout.clone(), buffer));
        Ok(Outcome::Done(arrays.collect::<Result<Outputs>>()?))
    }

    /// Bytes read and written at the least: each input element and each output element once.
    pub fn bytes(&self) -> usize {
        let input = |a: &StoredArray| {
            let distinct: usize = a.layout().shape().iter().zip(a.layout().strides()).filter(|(_, s)| **s != 0).map(|(n, _)| *n).product();
            distinct.saturating_mul(a.dtype().itemsize())
        };
        let output = |o: &OutputSpec| o.layout.size().saturating_mul(o.dtype.itemsize());
        self.inputs.iter().map(input).sum::<usize>().saturating_add(self.outputs.iter().map(output).sum())
    }
}
