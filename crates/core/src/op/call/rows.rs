//! Rows: expressions that contain reductions along rows.

use super::{Call, Request, Signature};
use crate::error::Result;
use crate::op::Family;
use crate::plan::rows::RowsPlan;
use crate::program::Program;

/// Evaluate `program` at every point of the loop, reading each row once: softmax, layer normalisation and the like. Each
/// [`Fold`](crate::StepKind::Fold) of the program is a reduction along the row.
///
/// Core calls only devices that have such kernels. If all decline, each reduction runs as a call of its own.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The expression; result n goes to output n.
    pub program: &'a Program,
    /// Rows over inputs, then outputs. An output without a stride along the row has one element for each row.
    pub plan: &'a RowsPlan,
}

impl Request for Rows<'_> {
    fn family(&self) -> Family {
        Family::Rows
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn sign(&self, _call: &Call, signature: &mut Signature) -> Result<()> {
        signature.add_axes(&self.plan.outer, &self.plan.outer_strides);
        signature.add_axes(&[self.plan.length], &[&self.plan.row_strides[..]]);
        Ok(())
    }
}
