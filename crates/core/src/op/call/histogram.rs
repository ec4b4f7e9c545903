//! Requests of the kernel family `Histogram`: counts of values in bins.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::Family;
use crate::program::Program;

/// A request for the number of values in each bin.
#[derive(Clone, Copy)]
pub struct Histogram<'a> {
    /// The fused program that computes the values to count (one result). Its inputs are 1-D with stride 1, or 0 for a repeated element.
    ///
    /// If [`Binning`] requires edges or weights, the last input of the call holds them. That input is not an input of the program.
    pub program: &'a Program,
    /// The rule that assigns values to the bins.
    pub binning: Binning,
}

/// The rule that assigns values to the bins of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binning {
    /// Each value is an int64 and is itself the index of its bin. Every value is a valid index.
    ///
    /// With `weighted`, the last input (1-D, contiguous, float64) holds weights. Each output element is then the
    /// float64 sum of the weights in its bin, added in a deterministic order.
    Number {
        /// Whether the last input holds a weight for each value.
        weighted: bool,
    },
    /// The last input (1-D, contiguous, of the values' dtype, float32 or float64) holds non-decreasing edges.
    ///
    /// Bin i holds `edges[i] <= value < edges[i + 1]`, and the last bin also holds its right edge. NaN and values outside are not counted.
    Edges {
        /// Whether the edges are evenly spaced. The bin index computed from the first and the last edge then differs from the true
        /// index by at most one.
        even: bool,
    },
}

impl KernelRequest for Histogram<'_> {
    fn family(&self) -> Family {
        Family::Histogram
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_input_outside_program(&self) -> bool {
        self.binning != Binning::Number { weighted: false }
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_value(self.binning);
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
