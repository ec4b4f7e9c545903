//! [`Kernel`]: a function that runs calls of one kernel family, with a declaration of the calls that it takes.

use crate::call::{Call, Outcome};
use crate::dtype::DTypeSet;
use crate::error::Result;
use crate::op::{Capabilities, Capability, Family, Op};

/// The operations that a kernel takes. A kernel takes a fused expression only if it takes all operations in it.
///
/// The filter does not apply to operations that need a [`Capability`]. A kernel takes these if it declares the capability
/// ([`Kernel::with_capabilities`]).
#[derive(Clone, Copy, Debug)]
pub enum OpFilter {
    /// Every operation of the family.
    All,
    /// Only these operations.
    Only(&'static [Op]),
}

impl OpFilter {
    /// Returns whether the filter accepts `op`.
    pub fn accepts(self, op: Op) -> bool {
        match self {
            OpFilter::All => true,
            OpFilter::Only(ops) => ops.contains(&op),
        }
    }
}

/// A function that runs calls of one kernel family, with a declaration of the operations, dtypes and capabilities of the calls that it
/// takes. Dispatch checks the declaration before it calls the function.
///
/// By default a kernel takes every operation and dtype of its family, and fused expressions of this crate's elementwise operations. A
/// kernel that also takes other calls, such as user-defined operations, declares a [`Capability`] for them.
///
/// ```
/// # use cuprum_core::{Call, DType, DTypeSet, Family, Kernel, Outcome, Result, decline, ops::reduce::SUM};
/// fn sum(call: &Call) -> Result<Outcome> {
///     decline!("not today")
/// }
/// const KERNELS: &[Kernel] = &[Kernel::new(Family::Reduce, sum).only_ops(&[SUM]).only_dtypes(DTypeSet::of(&[DType::F64]))];
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The family of the kernel.
    pub family: Family,
    /// Operations that the kernel takes.
    pub ops: OpFilter,
    /// Input dtypes that the kernel takes. A call without inputs is filtered by its output dtypes.
    pub dtypes: DTypeSet,
    /// Capabilities that the kernel declares. Dispatch passes a call to the kernel only if the kernel declares every capability that the
    /// call needs.
    pub capabilities: Capabilities,
    /// Whether the kernel writes outputs to existing buffers if the call requests that
    /// ([`OutputSpec::target_buffer`](crate::OutputSpec::target_buffer)).
    pub targets: bool,
    /// Runs the call, or declines before it has any side effect.
    pub run: fn(&Call) -> Result<Outcome>,
}

impl Kernel {
    /// Returns a kernel that takes every operation and dtype of `family`, and has no capabilities.
    pub const fn new(family: Family, run: fn(&Call) -> Result<Outcome>) -> Kernel {
        Kernel { family, ops: OpFilter::All, dtypes: DTypeSet::ALL, capabilities: Capabilities::NONE, targets: false, run }
    }
    /// Restricts the kernel to `ops`.
    pub const fn only_ops(self, ops: &'static [Op]) -> Kernel {
        Kernel { ops: OpFilter::Only(ops), ..self }
    }
    /// Restricts the kernel to `dtypes`.
    pub const fn only_dtypes(self, dtypes: DTypeSet) -> Kernel {
        Kernel { dtypes, ..self }
    }
    /// Declares that the kernel has the capabilities in `list`.
    pub const fn with_capabilities(self, list: &[Capability]) -> Kernel {
        Kernel { capabilities: Capabilities::of(list), ..self }
    }
    /// Declares that the kernel writes outputs to existing buffers if the call requests that
    /// ([`OutputSpec::target_buffer`](crate::OutputSpec::target_buffer)).
    pub const fn writes_targets(self) -> Kernel {
        Kernel { targets: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, decline};

    #[test]
    fn kernels_keep_their_declaration() {
        use crate::ops::elementwise::{ADD, EXP};
        let kernel = Kernel::new(Family::Map, |_| decline!("never"))
            .only_ops(&[ADD])
            .only_dtypes(DTypeSet::of(&[DType::F32]))
            .with_capabilities(&[Capability::FusedTake])
            .writes_targets();
        assert!(kernel.ops.accepts(ADD) && !kernel.ops.accepts(EXP));
        assert!(kernel.dtypes.contains(DType::F32) && !kernel.dtypes.contains(DType::F64));
        assert!(kernel.capabilities.contains(Capability::FusedTake) && !kernel.capabilities.contains(Capability::Variance));
        assert!(kernel.targets && !Kernel::new(Family::Map, |_| decline!("never")).targets);
    }
}
