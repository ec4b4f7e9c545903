//! The trait that the requests of all kernel families implement.

use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::{Capability, Family, Parameters};
use crate::program::Program;

/// The part of a call that is specific to its kernel family, such as the axes of a reduction.
pub trait KernelRequest {
    /// Returns the kernel family of the request. Dispatch tries the kernels of this family.
    fn family(&self) -> Family;

    /// Returns the fused program of the call. Returns `None` for kernel families without a program.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// Returns whether the last input of the call is read by the kernel itself, and not by the fused elementwise program.
    ///
    /// Examples of such inputs are the values of a selection, the edges or weights of a histogram, and the offsets of segments.
    fn has_input_outside_program(&self) -> bool {
        false
    }

    /// Returns the parameters of the composition of other operations that computes the request if every kernel declines. Returns `None` if
    /// the composition needs only the inputs.
    fn composite_parameters(&self) -> Option<&Parameters> {
        None
    }

    /// Returns whether the call updates a part of an existing buffer ([`OutputSpec::target_buffer`]), so that a new buffer cannot replace
    /// it.
    fn updates_part_of_target(&self) -> bool {
        false
    }

    /// Returns the capability that the request itself needs, in addition to the capabilities that the operation and the program need.
    fn required_capability(&self) -> Option<Capability> {
        None
    }

    /// Returns the options that distinguish calls of one operation, written as in NumPy: `axis=1, keepdims`. Empty if there are none.
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        String::new()
    }

    /// Adds to `signature` the extents and strides that distinguish calls of this family. By default, adds the extents and strides of all
    /// layouts.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) if a setting that the signature includes is invalid.
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
