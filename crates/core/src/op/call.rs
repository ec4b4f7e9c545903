//! Calls: planned requests to kernels, and the kernels' answers. Each family's file defines its request.

mod contract;
mod copy;
mod custom_operation;
mod decline_reason;
mod elementwise_map;
mod fft;
mod fill;
mod gather;
mod histogram;
mod kernel_modes;
mod kernel_outcome;
mod kernel_request;
mod linalg;
mod output_spec;
mod random;
mod reduce;
mod row_program;
mod scan;
mod scatter;
mod search;
mod segment_reduction;
mod select;
mod sort;
mod sparse;
mod tuning_signature;

use std::sync::Arc;

use smallvec::SmallVec;

pub use self::contract::Contract;
pub use self::copy::Copy;
pub use self::custom_operation::Custom;
pub use self::decline_reason::DeclineReason;
pub use self::elementwise_map::Map;
pub use self::fft::{Fft, FftKind};
pub use self::fill::Fill;
pub use self::gather::{Gather, GatherIndices};
pub use self::histogram::{Binning, Histogram};
pub(crate) use self::kernel_modes::{KernelModeGuard, blocks_on_compilation, wants_decline_reasons};
pub use self::kernel_outcome::Outcome;
pub use self::kernel_request::KernelRequest;
pub use self::linalg::{Form, Linalg, MatrixFunction, QrMode, SingularVectors, Triangle};
pub use self::output_spec::OutputSpec;
pub use self::random::{Distribution, Random, Sampler, UniformScaling};
pub use self::reduce::Reduce;
pub use self::row_program::RowProgram;
pub use self::scan::Scan;
pub use self::scatter::{RowAssignment, Scatter};
pub use self::search::{Search, SearchResultKind};
pub use self::segment_reduction::SegmentReduction;
pub use self::select::Select;
pub use self::sort::{Merge, SegmentSort, Sort};
pub use self::sparse::Sparse;
pub use self::tuning_signature::TuningSignature;
pub use crate::array::Outputs;
use crate::array::{Array, StoredArray};
use crate::device::{Buffer, Device, Stream, driver};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{Capabilities, Capability, Family, Op};
use crate::program::Program;

/// A planned request to a kernel: operation, device, inputs, outputs, and the data that are specific to the kernel family. A call is
/// planned once, for all accelerators.
pub struct Call<'a> {
    /// The operation that error messages and `explain` show. For a fused expression, the last operation of the expression.
    pub op: Op,
    /// The device of all inputs and outputs.
    pub device: Device,
    /// The stream on which the kernel runs.
    pub stream: Stream,
    /// Stored inputs: the inputs of the program, then the extra input of the kernel family if there is one
    /// ([`KernelRequest::has_input_outside_program`]).
    pub inputs: &'a [StoredArray],
    /// dtype and layout of each output.
    pub outputs: &'a [OutputSpec],
    /// The part of the call that is specific to its kernel family.
    pub work: Work<'a>,
}

/// Declares [`Work`] from a list of variants, request types and doc comments.
macro_rules! work {
    ($($name:ident($request:ty): $doc:literal;)*) => {
        /// The part of a call that is specific to its kernel family, one variant per kind of request. The struct in a variant documents the
        /// contract with kernels.
        #[derive(Clone, Copy)]
        pub enum Work<'a> {
            $(#[doc = $doc] $name($request),)*
        }

        impl<'a> Work<'a> {
            /// Returns the request as a [`KernelRequest`], the interface that the requests of all families share.
            pub fn as_request(&self) -> &(dyn KernelRequest + 'a) {
                match self { $(Work::$name(request) => request,)* }
            }

            /// Returns the kernel family of the request.
            #[inline]
            fn family(&self) -> Family {
                match self { $(Work::$name(request) => request.family(),)* }
            }

            /// Returns the fused program of the call. Returns `None` for kernel families without a program.
            #[inline]
            fn program(&self) -> Option<&Program> {
                match self { $(Work::$name(request) => request.program(),)* }
            }
        }
    };
}

work! {
    Map(Map<'a>): "An elementwise loop.";
    Reduce(Reduce<'a>): "A reduction over axes.";
    Rows(RowProgram<'a>): "An expression that contains reductions along rows.";
    Scan(Scan<'a>): "A running reduction along an axis.";
    Contract(Contract<'a>): "A contraction of two arrays: sums of products, such as a matrix product.";
    Fill(Fill): "An array computed without inputs.";
    Copy(Copy<'a>): "A copy of one array, or a join of several.";
    Random(Random): "Random numbers.";
    Sort(Sort): "A sort of rows.";
    SegmentSort(SegmentSort): "A sort within segments.";
    Merge(Merge): "A merge of two sorted arrays.";
    Select(Select<'a>): "The elements at which a condition is true.";
    Search(Search): "A binary search.";
    Histogram(Histogram<'a>): "Counts of values in bins.";
    Gather(Gather): "Elements selected by index.";
    Scatter(Scatter<'a>): "Writes to elements selected by index.";
    Segments(SegmentReduction<'a>): "A reduction of segments.";
    Linalg(Linalg): "A decomposition of matrices or a solution of linear systems.";
    Fft(Fft<'a>): "A Fourier transform.";
    Sparse(Sparse): "A product or a triangular solution of sparse matrices.";
    Custom(Custom<'a>): "The request of an operation that another crate defines.";
}

impl Call<'_> {
    /// Returns the kernel family of the request.
    pub fn family(&self) -> Family {
        self.work.family()
    }

    /// Returns the capabilities that a kernel needs for this call.
    pub fn required_capabilities(&self) -> Capabilities {
        let steps = self.program().into_iter().flat_map(|program| &program.steps).map(|step| step.kind.required_capability());
        let with = |needed: Capabilities, c: Option<Capability>| c.map_or(needed, |c| needed.union(Capabilities::of(&[c])));
        // The program of a call of the families `Map` and `Rows` already contains `op`, so its steps determine the capabilities. (In a row
        // program, a variance is several steps.)
        let alone = if matches!(self.family(), Family::Map | Family::Rows) { None } else { self.op.required_capability() };
        let range = self.writes_target_range().then_some(Capability::OutputRanges);
        let request = with(with(Capabilities::NONE, self.work.as_request().required_capability()), range);
        steps.fold(with(request, alone), with)
    }

    /// Returns the fused program of the call. Returns `None` for kernel families without a program.
    pub fn program(&self) -> Option<&Program> {
        self.work.program()
    }

    /// Returns the inputs of the fused program, and the extra input that the kernel reads itself, if there is one
    /// ([`KernelRequest::has_input_outside_program`]).
    pub fn program_inputs(&self) -> (&[StoredArray], Option<&StoredArray>) {
        match self.inputs.split_last() {
            Some((last, inputs)) if self.work.as_request().has_input_outside_program() => (inputs, Some(last)),
            _ => (self.inputs, None),
        }
    }

    /// Returns the memory for output `n`: the existing buffer that the call names as the target, or new device memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], with this call's operation.
    ///
    /// # Panics
    /// If `n` is not the index of an output.
    pub fn allocate_output(&self, n: usize) -> Result<Arc<dyn Buffer>> {
        let spec = &self.outputs[n];
        if let Some(target) = spec.target_buffer() {
            return Ok(target.clone());
        }
        let bytes = spec.layout.size().saturating_mul(spec.dtype.itemsize());
        driver(self.device)?.allocate(bytes, self.stream).map_err(|e| match e {
            crate::Error::OutOfMemory { device, requested, used, limit, .. } => {
                crate::Error::OutOfMemory { op: self.op.name(), device, requested, used, limit }
            }
            e => e,
        })
    }

    /// Returns whether an output is written to an existing buffer ([`OutputSpec::target_buffer`]).
    pub fn has_output_targets(&self) -> bool {
        self.outputs.iter().any(|output| output.target.is_some())
    }

    /// Returns whether the call is an elementwise loop that writes a range of an existing buffer.
    fn writes_target_range(&self) -> bool {
        self.has_output_targets() && self.family() == Family::Map && self.outputs.iter().any(OutputSpec::is_part_of_target_buffer)
    }

    /// Returns whether the call writes some elements of an existing buffer and keeps the others.
    pub(crate) fn updates_part_of_target(&self) -> bool {
        self.has_output_targets() && (self.work.as_request().updates_part_of_target() || self.writes_target_range())
    }

    /// Returns the specifications of the outputs, with new buffers instead of existing ones.
    pub(crate) fn outputs_with_new_buffers(&self) -> SmallVec<[OutputSpec; 1]> {
        self.outputs.iter().map(|output| OutputSpec::new(output.dtype, output.layout.clone())).collect()
    }

    /// Returns [`Outcome::Done`] with one array per output: the buffer in the dtype and layout of the output's specification.
    ///
    /// # Errors
    /// [`Error::Value`] if the number of buffers differs from the number of outputs, or if a buffer is too small for its layout.
    pub fn outcome_from_buffers(&self, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let mut outputs = Outputs::new(); // `collect` would move the large arrays more often
        for (n, buffer) in buffers.into_iter().enumerate() {
            let Some(spec) = self.outputs.get(n) else { return Err(self.wrong_output_buffers_error(&format!("more than {n} buffers"))) };
            let nbytes = buffer.nbytes();
            let array = StoredArray::new(spec.dtype, spec.layout.clone(), buffer);
            outputs.push(array.map_err(|error| {
                let is_short = nbytes < spec.layout.size().saturating_mul(spec.dtype.itemsize());
                if is_short { self.wrong_output_buffers_error(&format!("a buffer of {nbytes} bytes for output {n}")) } else { error }
            })?);
        }
        if outputs.len() < self.outputs.len() {
            return Err(self.wrong_output_buffers_error(&format!("{} buffers", outputs.len())));
        }
        Ok(Outcome::Done(outputs))
    }

    /// Returns the error for a kernel that returned wrong output buffers. `returned` describes these buffers.
    #[cold]
    fn wrong_output_buffers_error(&self, returned: &str) -> Error {
        let sizes: Vec<usize> = self.outputs.iter().map(|o| o.layout.size().saturating_mul(o.dtype.itemsize())).collect();
        let message = format!("a kernel on {} returned {returned}; the call needs buffers of {sizes:?} bytes", self.device);
        Error::value(self.op.name(), message)
    }

    /// Like [`Call::outcome_from_buffers`], for 1-D outputs whose length the kernel determines, as in the family `Select`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a buffer is too small for `length`.
    pub fn outcome_with_length(&self, length: usize, buffers: impl IntoIterator<Item = Arc<dyn Buffer>>) -> Result<Outcome> {
        let layout = Layout::contiguous(&[length])?;
        let arrays = self.outputs.iter().zip(buffers).map(|(spec, buffer)| StoredArray::new(spec.dtype, layout.clone(), buffer));
        Ok(Outcome::Done(arrays.collect::<Result<Outputs>>()?))
    }

    /// Returns the minimum memory traffic in bytes: the size of all distinct input elements and all output elements.
    pub fn min_memory_traffic(&self) -> usize {
        let input = |a: &StoredArray| {
            let distinct: usize = a.layout().shape().iter().zip(a.layout().strides()).filter(|(_, s)| **s != 0).map(|(n, _)| *n).product();
            distinct.saturating_mul(a.dtype().itemsize())
        };
        let output = |o: &OutputSpec| o.layout.size().saturating_mul(o.dtype.itemsize());
        self.inputs.iter().map(input).sum::<usize>().saturating_add(self.outputs.iter().map(output).sum())
    }
}

impl TuningSignature {
    /// Returns the tuning signature of `call`.
    pub(crate) fn hash_call(call: &Call) -> Result<u64> {
        let mut signature = TuningSignature::default();
        signature.hash_value(call.family() as u8);
        signature.hash_op(call.op);
        signature.hash_value(call.device.ordinal());
        call.inputs.iter().for_each(|a| signature.hash_value(a.dtype() as u8));
        call.outputs.iter().for_each(|o| signature.hash_value(o.dtype as u8));
        if let Some(program) = call.program() {
            signature.hash_program(program);
        }
        call.work.as_request().add_to_tuning_signature(call.inputs, call.outputs, &mut signature)?;
        Ok(signature.into_hash())
    }

    /// Returns the tuning signature of `call`, combined with `choice`, the name of a decision within an accelerator, such as the tile size
    /// of a matrix product.
    pub(crate) fn hash_call_with_choice(call: &Call, choice: &str) -> Result<u64> {
        let mut signature = TuningSignature::default();
        signature.hash_value((TuningSignature::hash_call(call)?, choice));
        Ok(signature.into_hash())
    }
}
