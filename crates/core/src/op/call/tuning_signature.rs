//! Hashes of calls for autotuning ([`TuningSignature`]). Calls with equal hashes share their measurements.
//!
//! A hash covers family, operation, device ordinal, dtypes, fused program, and classes of extents (powers of two) and strides (0, 1,
//! other).

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::output_spec::OutputSpec;
use crate::array::StoredArray;
use crate::layout::Layout;
use crate::op::Op;
use crate::program::{Program, StepKind};

/// A hash of a call. All processes of one cuprum version compute the same hash for the same call.
#[derive(Default)]
pub struct TuningSignature(FxHasher);

impl TuningSignature {
    /// Adds `value` to the hash. Calls that differ in the value have different signatures.
    pub fn hash_value(&mut self, value: impl Hash) {
        value.hash(&mut self.0);
    }

    /// Adds to the hash the number of bits of each extent, and the class (0, 1 or other) of each stride. Extents between the same two
    /// powers of two are not distinguished.
    pub fn hash_axes(&mut self, extents: &[usize], strides: &[impl AsRef<[isize]>]) {
        self.hash_value(extents.len());
        extents.iter().for_each(|&n| self.hash_value(usize::BITS - n.leading_zeros()));
        let class = |stride: isize| if matches!(stride, 0 | 1) { stride as u8 } else { 2 };
        strides.iter().flat_map(|s| s.as_ref()).for_each(|&s| self.hash_value(class(s)));
    }

    /// Adds the layouts of all inputs and outputs to the hash.
    pub fn hash_layouts(&mut self, inputs: &[StoredArray], outputs: &[OutputSpec]) {
        let mut layout = |l: &Layout| self.hash_axes(l.shape(), &[l.strides()]);
        inputs.iter().for_each(|a| layout(a.layout()));
        outputs.iter().for_each(|o| layout(&o.layout));
    }

    /// Adds an operation to the hash. Operations of other crates share one index, so their names are hashed instead.
    pub(super) fn hash_op(&mut self, op: Op) {
        if op.is_defined_in_another_crate() { self.hash_value(op.name()) } else { self.hash_value(op.index()) }
    }

    /// Adds the steps and outputs of a program to the hash, without the values of its scalar parameters.
    pub(super) fn hash_program(&mut self, program: &Program) {
        for step in &program.steps {
            self.hash_value(step.kind.cache_key_tag());
            if let StepKind::Apply(applied) = step.kind {
                self.hash_op(applied);
            }
            self.hash_value((step.dtype as u8, step.args()));
        }
        self.hash_value(&program.outputs);
    }

    /// Returns the hash.
    pub(super) fn into_hash(self) -> u64 {
        self.0.finish()
    }
}
