//! Tuning signatures: calls of equal signature share a measurement.
//!
//! A signature covers family, operation, dtypes, fused program, and classes of extents (powers of two) and strides (0, 1, other).

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::Call;
use crate::array::Array;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::Op;
use crate::program::{Program, StepKind};

/// A hash of a call that is equal in all processes of one version.
#[derive(Default)]
pub struct TuningSignature(FxHasher);

impl TuningSignature {
    /// Returns the signature of a call.
    pub(crate) fn of(call: &Call) -> Result<u64> {
        let mut signature = TuningSignature::default();
        signature.add(call.family() as u8);
        signature.add_op(call.op);
        signature.add(call.device.ordinal());
        call.inputs.iter().for_each(|a| signature.add(a.dtype() as u8));
        call.outputs.iter().for_each(|o| signature.add(o.dtype as u8));
        if let Some(program) = call.program() {
            signature.add_program(program);
        }
        call.work.request().sign(call, &mut signature)?;
        Ok(signature.0.finish())
    }

    /// Returns the signature of a call combined with a choice of an accelerator, such as a tile size.
    pub(crate) fn of_choice(call: &Call, choice: &str) -> Result<u64> {
        let mut signature = TuningSignature::default();
        signature.add((TuningSignature::of(call)?, choice));
        Ok(signature.0.finish())
    }

    /// Adds a value that distinguishes calls.
    pub fn add(&mut self, value: impl Hash) {
        value.hash(&mut self.0);
    }

    /// Adds the size class of each extent and the class of each stride.
    pub fn add_axes(&mut self, extents: &[usize], strides: &[impl AsRef<[isize]>]) {
        self.add(extents.len());
        extents.iter().for_each(|&n| self.add(usize::BITS - n.leading_zeros()));
        let class = |stride: isize| if matches!(stride, 0 | 1) { stride as u8 } else { 2 };
        strides.iter().flat_map(|s| s.as_ref()).for_each(|&s| self.add(class(s)));
    }

    /// Adds the layouts of all inputs and outputs.
    pub fn add_layouts(&mut self, call: &Call) {
        let mut layout = |l: &Layout| self.add_axes(l.shape(), &[l.strides()]);
        call.inputs.iter().for_each(|a| layout(a.layout()));
        call.outputs.iter().for_each(|o| layout(&o.layout));
    }

    /// Adds an operation. Operations of other crates share one index, so their name is hashed.
    fn add_op(&mut self, op: Op) {
        if op.is_foreign() { self.add(op.name()) } else { self.add(op.index()) }
    }

    /// Adds the structure of a program, without its parameters.
    fn add_program(&mut self, program: &Program) {
        for step in &program.steps {
            self.add(step.kind.code());
            if let StepKind::Apply(applied) = step.kind {
                self.add_op(applied);
            }
            self.add((step.dtype as u8, step.args()));
        }
        self.add(&program.outputs);
    }
}
