//! Requests of the kernel family `Contract`: contractions of two arrays, such as matrix products.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::{Array, StoredArray};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Family;
use crate::plan::contract::{ContractPlan, Mode};
use crate::precision::matmul_precision;

/// A contraction: `out[..] = sum(a[..] * b[..])`, summed over the modes that `out` lacks. It has two inputs and one output.
///
/// A mode is a subscript as in `numpy.einsum`. Modes in `a`, `b` and `out` are batch modes.
#[derive(Clone, Copy)]
pub struct Contract<'a> {
    /// The modes (einsum subscripts) of inputs and output, grouped into batch, m, n and k as for a batched matrix product.
    pub plan: &'a ContractPlan,
}

impl KernelRequest for Contract<'_> {
    fn family(&self) -> Family {
        Family::Contract
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        let letters = |modes: &[Mode]| modes.iter().map(|&mode| char::from(b'a'.saturating_add(mode))).collect::<String>();
        format!("'{},{}->{}'", letters(&self.plan.a), letters(&self.plan.b), letters(&self.plan.out))
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        let dtype = inputs.first().map_or(DType::F64, Array::dtype);
        signature.hash_value(matmul_precision()?.of(dtype));
        for modes in [&self.plan.a, &self.plan.b, &self.plan.out] {
            signature.hash_value(modes);
        }
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
