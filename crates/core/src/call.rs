//! What a kernel is asked to do, and what it may answer.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::{Array, StoredArray};
use crate::device::{Buffer, Device, Stream, driver};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Family, Op};
use crate::plan::contract::ContractPlan;
use crate::plan::elementwise::LoopPlan;
use crate::plan::reduce::ReducePlan;
use crate::plan::rows::RowsPlan;
use crate::plan::scan::ScanPlan;
use crate::program::Program;
use crate::scalar::Scalar;

/// A planned request: everything a kernel needs, worked out once for every accelerator.
pub struct Call<'a> {
    /// The NumPy-level operation, for messages and `explain`; of a fused expression, its last one.
    pub op: Op,
    /// Where it runs; all inputs lie there.
    pub device: Device,
    /// The queue it goes to.
    pub stream: Stream,
    /// Stored inputs. For Map, Reduce, Rows and Scan: the program's inputs, broadcast to the loop shape. For Select and Histogram: the
    /// program's inputs, then what [`Work`] says.
    pub inputs: &'a [StoredArray],
    /// What the kernel must return, one for each.
    pub outputs: &'a [OutputSpec],
    /// What to do.
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

/// The work, by family.
pub enum Work<'a> {
    /// Evaluate `program` at every point of the loop.
    Map {
        /// What to compute; result n goes to output n.
        program: &'a Program,
        /// Collapsed loop over inputs, then outputs.
        plan: &'a LoopPlan,
    },
    /// Reduce the values of `program` (one result) over the plan's reduced axes. `var` asks for the sum of squared distances
    /// from the mean, of kernels that name it alone.
    Reduce {
        /// The prologue; its result has the dtype that values enter the reduction with.
        program: &'a Program,
        /// Collapsed axes, kept and reduced.
        plan: &'a ReducePlan,
        /// dtype to accumulate in (float32 for float16 and bfloat16 sums).
        acc: DType,
    },
    /// Evaluate `program`, whose [`Fold`](crate::StepKind::Fold)s are reductions along rows, at every point of the loop, reading each row
    /// once: softmax and the like. Core asks only devices that have such kernels, and runs each reduction on its own if all decline.
    Rows {
        /// What to compute; result n goes to output n.
        program: &'a Program,
        /// Rows over inputs, then outputs. An output that does not step along a row has one number for each.
        plan: &'a RowsPlan,
    },
    /// Inclusive scan of the values of `program` (one result) along one axis.
    Scan {
        /// The prologue; its result has the output dtype.
        program: &'a Program,
        /// The axis and the loop around it.
        plan: &'a ScanPlan,
    },
    /// `out[modes] = sum over shared modes of a * b`; see [`ContractPlan`].
    Contract {
        /// Modes and their grouping into batch, m, n and k.
        plan: &'a ContractPlan,
    },
    /// Make values from nothing.
    Fill(Fill),
    /// Copy input n to region n of the output; the regions do not overlap and together fill it.
    Copy {
        /// Where each input goes within the output's buffer.
        regions: &'a [Layout],
    },
    /// Draw random numbers; see [`Random`].
    Random(Random),
    /// Sort rows; see [`Sort`].
    Sort(Sort),
    /// The elements at which a condition holds, in C order. `program` (one bool result) is the condition over all inputs but, with
    /// `values`, the last. Every input is 1-D with stride 1 (or 0 for a repeated one; never the values). Outputs are the chosen
    /// values if `values`, then their places (int64) if `places`; [`OutputSpec`] gives the largest possible length, and the
    /// kernel returns arrays of the true one ([`Call::done_with_length`]).
    Select {
        /// The condition.
        program: &'a Program,
        /// Whether the chosen elements of the last input are asked for.
        values: bool,
        /// Whether the places of chosen elements are asked for.
        places: bool,
    },
    /// Where each element of C-contiguous `inputs[1]` would go in `inputs[0]` (1-D, contiguous, sorted as [`Sort`] says, of the
    /// same dtype): int64, before equal elements, or after them if `after_equal`.
    Search {
        /// `side='right'`.
        after_equal: bool,
    },
    /// How many values fall in each bin; see [`Binning`].
    Histogram {
        /// The values (one result), over all inputs that [`Binning`] does not name. Each is 1-D with stride 1, or 0 if repeated.
        program: &'a Program,
        /// Which bin a value falls in.
        binning: Binning,
    },
    /// `out = take(inputs[0], inputs[1], axis)`; `inputs[1]` is C-contiguous int32 or int64. An index outside the axis is an error found at run time.
    Gather {
        /// The axis of `inputs[0]` that the indices address.
        axis: usize,
    },
    /// Reduce each segment `offsets[i]..offsets[i + 1]` of the values of `program` (one result of the output's dtype), over all inputs but
    /// the last, each 1-D with stride 1, or 0 if repeated. The last is the offsets: C-contiguous int64, non-decreasing. An empty segment
    /// gives the identity: 0 of sums, 1 of products; of minima the dtype's largest value (infinity, true), of maxima its smallest. Offsets
    /// outside the values are an error found at run time.
    Segments {
        /// The values.
        program: &'a Program,
        /// `sum`, `prod`, `min` or `max`.
        reduction: Op,
        /// dtype to accumulate in.
        acc: DType,
    },
    /// Sort each segment `inputs[1][i]..inputs[1][i + 1]` of `inputs[0]` (1-D, C-contiguous) in the order of [`Sort`], ascending, where equal
    /// elements keep theirs. The offsets are C-contiguous int64 and have been looked at: they rise from 0 to the number of elements. The
    /// output is the sorted elements, or their places in `inputs[0]` (int64) if `places`.
    SegmentSort {
        /// Whether places are asked for, not elements.
        places: bool,
        /// No segment is longer.
        longest: usize,
    },
    /// Work of another crate's op; both sides know the type behind it.
    Custom(&'a (dyn Any + Send + Sync)),
}

/// Values made from nothing, in the output's dtype. Element i is counted in C order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Anything (`empty`); the kernel may leave memory as it is if reading it is harmless, else zeros.
    Undefined,
    /// One value (`full`, `zeros`, `ones`).
    Constant(Scalar),
    /// `start + i * step`, computed in the output's dtype; integers wrap (`arange`).
    Arange {
        /// Element 0.
        start: Scalar,
        /// Difference of neighbours.
        step: Scalar,
    },
    /// `start + i * step`, computed in float64 (complex128 for complex) and converted; the last element of `count` is `stop` exactly when `endpoint`.
    Linspace {
        /// Element 0.
        start: Scalar,
        /// End of the range.
        stop: Scalar,
        /// Difference of neighbours.
        step: Scalar,
        /// Number of elements.
        count: usize,
        /// Whether `stop` is the last element.
        endpoint: bool,
    },
    /// 1 where column = row + k of a 2-D output, else 0 (`eye`).
    Eye {
        /// The diagonal.
        k: i64,
    },
}

/// A stable sort of each row (the last axis) of C-contiguous `inputs[0]`, in NumPy's order: false before true; -0.0 equal to 0.0;
/// NaN last, whatever its sign and payload; complex numbers without NaN first, then those with a NaN imaginary part, then those
/// with a NaN real part, then those with both, each by its real part, then its imaginary part. Descending is the exact reverse
/// of that order (NaN first), where equal elements keep theirs.
///
/// Outputs are the sorted values if `values` (where equal ones of different bits, zeros and NaNs, may come in any order), then
/// each one's place in its row (int64) if `indices`. The last extent of the outputs may be shorter than the input's: then only so
/// many first elements of each sorted row are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Largest first.
    pub descending: bool,
    /// Whether sorted values are asked for.
    pub values: bool,
    /// Whether places are asked for.
    pub indices: bool,
    /// If only this element of each sorted row needs to be in its place, with none before it that sorting puts behind it, and none behind
    /// it that sorting puts before it. The last extents are the same then, and rows that are sorted wholly will do.
    pub nth: Option<usize>,
}

/// Which bin of a histogram a value falls in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binning {
    /// The value (int64) is the number of its bin; other values do not occur. With `weighted`, the last input (1-D, contiguous,
    /// float64) holds what each value counts, and the output is float64: sums of a fixed order.
    Number {
        /// Whether values count by weight.
        weighted: bool,
    },
    /// The last input (1-D, contiguous, of the values' dtype: float32 or float64) holds the edges, rising. Bin i holds
    /// `edges[i] <= value < edges[i + 1]`, the last bin its right edge too; NaN and values outside count nowhere.
    Edges {
        /// Edges are those of `linspace`: computing the bin from the first and the last gives at most its neighbour.
        even: bool,
    },
}

/// Philox 4x32-10 draws (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// Block `b` of the call is `philox4x32_10(counter = first_block + b as 128-bit little-endian words (low 64 bits; high 0), key)`,
/// words `w0..w3`. Elements use blocks in order, as each [`Distribution`] says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The 64-bit seed: low word is key 0, high word key 1.
    pub key: u64,
    /// Counter of the call's first block.
    pub first_block: u64,
    /// What to draw.
    pub distribution: Distribution,
}

/// How words become numbers; the same bits on every device, but for `Normal`, whose functions may differ in the last place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// `[0, 1)`: float64 is `((w_lo | w_hi << 32) >> 11) * 2^-53`, two elements a block, from (w0, w1) and (w2, w3);
    /// float32 (float16 and bfloat16 through it) is `(w >> 8) * 2^-24`, four elements a block.
    /// Then `low + u * (high - low)` in the output's dtype, without fused multiply-add, unless low = 0 and high = 1.
    Uniform {
        /// Lower end, included.
        low: f64,
        /// Upper end, excluded before rounding.
        high: f64,
    },
    /// Box-Muller, two elements a pair of uniforms: float64 one pair a block; float32 two pairs a block.
    /// `u1 = 1 - uniform(first)`, `u2 = uniform(second)`; elements `r cos(2 pi u2)`, `r sin(2 pi u2)` with `r = sqrt(-2 ln u1)`.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// `low + high 64 bits of (w as 64-bit) * span`, two elements a block, from (w0, w1) and (w2, w3), low word first;
    /// `span` 0 stands for 2^64.
    Integers {
        /// Smallest value.
        low: i128,
        /// Number of values.
        span: u64,
    },
}

impl Distribution {
    /// How many elements one block of four words gives for this dtype.
    pub fn per_block(self, dtype: DType) -> usize {
        match self {
            Distribution::Integers { .. } => 2,
            _ if dtype == DType::F64 => 2,
            _ => 4,
        }
    }
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
    passing: bool,
}

impl Reason {
    /// A fixed reason.
    pub fn new(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), passing: false }
    }

    /// A reason that will soon be gone, such as a kernel that is being compiled. If nobody else takes the call, the kernel is asked
    /// once more, under [`Compile::Wait`](crate::settings::Compile::Wait).
    pub fn passing(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), passing: true }
    }

    /// A reason worth formatting, made only inside [`explain`](crate::explain) or for an error.
    pub fn with(text: impl FnOnce() -> String) -> Reason {
        let text = if crate::dispatch::listening() { Cow::Owned(text()) } else { Cow::Borrowed("declined") };
        Reason { text, passing: false }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it will soon be gone.
    pub(crate) fn is_passing(&self) -> bool {
        self.passing
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
    /// The family of the work.
    pub fn family(&self) -> Family {
        match self.work {
            Work::Map { .. } => Family::Map,
            Work::Reduce { .. } | Work::Segments { .. } => Family::Reduce,
            Work::Rows { .. } => Family::Rows,
            Work::Scan { .. } => Family::Scan,
            Work::Contract { .. } => Family::Contract,
            Work::Fill(_) => Family::Fill,
            Work::Copy { .. } => Family::Copy,
            Work::Random(_) => Family::Random,
            Work::Sort(_) | Work::SegmentSort { .. } => Family::Sort,
            Work::Select { .. } => Family::Select,
            Work::Search { .. } => Family::Search,
            Work::Histogram { .. } => Family::Histogram,
            Work::Gather { .. } => Family::Gather,
            Work::Custom(_) => Family::Custom,
        }
    }

    /// The program of the families that have one.
    pub fn program(&self) -> Option<&Program> {
        match &self.work {
            Work::Map { program, .. }
            | Work::Reduce { program, .. }
            | Work::Rows { program, .. }
            | Work::Scan { program, .. }
            | Work::Select { program, .. }
            | Work::Histogram { program, .. }
            | Work::Segments { program, .. } => Some(program),
            _ => None,
        }
    }

    /// The inputs of the program, and the one behind them: the values of a selection, the edges or weights of a histogram, the
    /// offsets of segments.
    pub fn program_inputs(&self) -> (&[StoredArray], Option<&StoredArray>) {
        let has_last = match self.work {
            Work::Select { values, .. } => values,
            Work::Histogram { binning, .. } => binning != Binning::Number { weighted: false },
            Work::Segments { .. } => true,
            _ => false,
        };
        match self.inputs.split_last() {
            Some((last, inputs)) if has_last => (inputs, Some(last)),
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
