//! Histogram: counts of values in bins.

use super::Request;
use super::{Call, Signature};
use crate::error::Result;
use crate::op::Family;
use crate::program::Program;

/// Number of values in each bin; see [`Binning`].
#[derive(Clone, Copy)]
pub struct Histogram<'a> {
    /// The values (one result), over all inputs that [`Binning`] does not name. Each is 1-D with stride 1, or 0 for a repeated element.
    pub program: &'a Program,
    /// The rule that assigns values to bins.
    pub binning: Binning,
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

impl Request for Histogram<'_> {
    fn family(&self) -> Family {
        Family::Histogram
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_extra_input(&self) -> bool {
        self.binning != Binning::Number { weighted: false }
    }
    fn sign(&self, call: &Call, signature: &mut Signature) -> Result<()> {
        signature.add(self.binning);
        signature.add_layouts(call);
        Ok(())
    }
}
