//! Capabilities: optional features of calls. A kernel receives calls that use a feature only if it declares the capability.

/// An optional feature of calls. Only kernels that declare the capability by
/// [`Kernel::with_capabilities`](crate::Kernel::with_capabilities) receive calls that use the feature.
///
/// On a device without a kernel that declares a capability, the result is computed by other calls, which do not need the capability.
/// User-defined operations are the exception: on such a device, they are errors. A kernel's filter by operation
/// ([`OpFilter`](crate::OpFilter)) does not apply to operations that need a capability, except to the reductions of
/// [row programs](Capability::RowPrograms).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Capability {
    /// Programs that contain [`FUSED_TAKE`](crate::ops::take::FUSED_TAKE), which reads an array by index. `take` is deferred only for
    /// devices with a kernel that declares this capability.
    FusedTake,
    /// [Row programs](crate::op::ReductionDef::in_rows), whose steps include [`StepKind::Fold`](crate::StepKind::Fold), a reduction along
    /// the row. Reductions with `keepdims` are deferred only for devices with a kernel that declares this capability.
    RowPrograms,
    /// Calls of the operation `var`, which request the sum of squared distances from the mean. Without the capability, a variance is
    /// computed in two passes.
    Variance,
    /// Programs and reductions that contain the code of user-defined operations ([`OperationBody`](crate::body::OperationBody)).
    UserDefined,
    /// Scatters whose result depends on the order in which several values for one row of the target are applied, such as sums of floats. A
    /// kernel with this capability applies the values in order. Without such a kernel, the values are grouped by row before the call,
    /// unless a kernel that declares [`Capability::ReproducibleScatterSum`] sums them.
    OrderedScatter,
    /// Scatters that add floats or complex numbers to rows of the target, with several values for a row. A kernel with this capability may
    /// add the values of an element in any order, but the result has the same bits on every run. Without this capability and
    /// [`Capability::OrderedScatter`], the values are grouped by row before the call.
    ReproducibleScatterSum,
    /// Scatters that add float32, float64 or complex numbers to rows of the target, with several values for a row, in any order: the last
    /// bits of a sum may vary between runs. They are requested only if [reproducible sums](crate::set_reproducible_sums) are not required.
    UnorderedScatterSum,
    /// Elementwise loops that write a range of an existing buffer ([`OutputSpec`](crate::OutputSpec)).
    OutputRanges,
    /// Contractions that read overlapping windows of an array in place, such as those of `convolve`. Kernels without this capability copy
    /// the windows, so `convolve` then contracts a group of windows at a time.
    OverlappingWindows,
}

impl Capability {
    /// All capabilities, in declaration order.
    pub const ALL: [Capability; 9] = [
        Capability::FusedTake,
        Capability::RowPrograms,
        Capability::Variance,
        Capability::UserDefined,
        Capability::OrderedScatter,
        Capability::ReproducibleScatterSum,
        Capability::UnorderedScatterSum,
        Capability::OutputRanges,
        Capability::OverlappingWindows,
    ];

    /// Returns the reason why a kernel without this capability declines.
    pub(crate) fn reason_if_missing(self) -> &'static str {
        match self {
            Capability::FusedTake => "does not declare fused take",
            Capability::RowPrograms => "does not declare row programs",
            Capability::Variance => "does not declare variances",
            Capability::UserDefined => "does not declare user-defined operations",
            Capability::OrderedScatter => "does not declare scatters that depend on order",
            Capability::ReproducibleScatterSum => "does not declare reproducible sums",
            Capability::UnorderedScatterSum => "does not declare sums in any order",
            Capability::OutputRanges => "does not declare ranges of existing buffers",
            Capability::OverlappingWindows => "does not declare overlapping windows",
        }
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities(u16);

impl Capabilities {
    /// The empty set.
    pub const NONE: Capabilities = Capabilities(0);

    /// The set of all capabilities.
    pub const ALL: Capabilities = Capabilities::of(&Capability::ALL);

    /// Returns the set of the capabilities in `list`.
    pub const fn of(list: &[Capability]) -> Capabilities {
        let (mut bits, mut n) = (0, 0);
        while n < list.len() {
            bits |= 1 << list[n] as u8;
            n += 1;
        }
        Capabilities(bits)
    }

    /// Returns whether the set contains a capability.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }

    /// Returns the set of all members of `self` and `other`.
    pub const fn union(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }

    /// Returns the first capability of `self` that `other` lacks. Returns `None` if `other` has all of them.
    pub(crate) fn first_missing_in(self, other: Capabilities) -> Option<Capability> {
        let missing = Capabilities(self.0 & !other.0);
        if missing == Capabilities::NONE { None } else { Capability::ALL.into_iter().find(|&c| missing.contains(c)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_their_members() {
        let set = Capabilities::of(&[Capability::FusedTake, Capability::Variance]);
        assert_eq!(Capability::ALL.map(|c| set.contains(c)), [true, false, true, false, false, false, false, false, false]);
        assert_eq!(set.first_missing_in(Capabilities::of(&[Capability::FusedTake])), Some(Capability::Variance));
        assert_eq!(set.first_missing_in(set.union(Capabilities::of(&[Capability::UserDefined]))), None);
    }
}
