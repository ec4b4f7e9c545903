//! Descriptions of cuTENSOR operations as plain values: operands, operators and precision. cuTENSOR calls an axis a mode. A mode is
//! identified by a number, and operands that have the same mode are indexed together along it.
//!
//! cuTENSOR's rules (`cutensor.h`): extents and strides are positive, an operand has each mode at most once, and elements of an operand do
//! not overlap. This accelerator declines a [`Call`] that breaks these rules, with a [`DeclineReason`].

use std::hash::{Hash, Hasher};

use cuprum_core::{Array, Call, DType, DeclineReason, Layout, MatmulPrecision, StoredArray};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::sys::{ComputeDescriptor, ComputeDescriptors, DataType, Operator};

/// Maximum number of modes of an operand (the library's documented limit).
const MAX_OPERAND_MODES: usize = 64;

/// An operand: its modes, with their extents and strides in elements. Modes of extent 1 or stride 0 are left out.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OperandDescription {
    /// The modes, which are arbitrary numbers. Equal modes of different operands have equal extents.
    pub modes: SmallVec<[i32; 6]>,
    /// Extent of each mode.
    pub extents: SmallVec<[i64; 6]>,
    /// Stride of each mode, in elements.
    pub strides: SmallVec<[i64; 6]>,
}

impl OperandDescription {
    /// Returns the description of an operand with the (mode, extent, stride) triples `axes`. Modes of extent 1 or stride 0 are left out,
    /// because cuTENSOR broadcasts an elementwise operand along modes that the operand lacks.
    pub fn from_axes(axes: impl IntoIterator<Item = (usize, usize, isize)>) -> OperandDescription {
        let mut tensor = OperandDescription::default();
        for (mode, extent, stride) in axes.into_iter().filter(|(_, n, s)| *n != 1 && *s != 0) {
            tensor.push_mode(mode as i32, extent as i64, stride as i64);
        }
        tensor
    }

    fn push_mode(&mut self, mode: i32, extent: i64, stride: i64) {
        self.modes.push(mode);
        self.extents.push(extent);
        self.strides.push(stride);
    }

    /// Returns the number of elements from the first to the last one in memory, inclusive.
    pub fn span_in_elements(&self) -> usize {
        let steps = self.extents.iter().zip(&self.strides).map(|(n, s)| (n - 1).saturating_mul(*s));
        1 + steps.fold(0i64, i64::saturating_add).unsigned_abs() as usize
    }

    /// Returns the mode of stride 1, or `None` if the operand has none.
    fn innermost_mode(&self) -> Option<i32> {
        self.strides.iter().position(|&s| s == 1).map(|i| self.modes[i])
    }

    /// Returns whether this operand and the output have different innermost modes, so that a simple loop has strided reads or writes.
    pub fn is_transposed_to(&self, output: &OperandDescription) -> bool {
        match (self.innermost_mode(), output.innermost_mode()) {
            (Some(own), Some(other)) => own != other && self.modes.contains(&other),
            _ => false,
        }
    }

    /// Returns the operand with complex elements replaced by pairs of real numbers, along an additional mode of extent 2.
    fn as_real_pairs(&self, mode: i32) -> OperandDescription {
        let mut pairs = self.clone();
        pairs.strides.iter_mut().for_each(|s| *s *= 2);
        pairs.push_mode(mode, 2, 1);
        pairs
    }

    /// Returns whether different indices may refer to the same element.
    fn has_overlapping_elements(&self) -> bool {
        let mut axes: SmallVec<[(i64, i64); 6]> = self.strides.iter().copied().zip(self.extents.iter().copied()).collect();
        axes.sort_unstable();
        axes.windows(2).any(|w| w[1].0 < w[0].0.saturating_mul(w[0].1))
    }
}

/// The kind of an operation, with its operators. A, B and C are inputs, D is the output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CutensorOperationKind {
    /// `D = A * B`, summed over the modes that D lacks. The field is the precision of float32 products.
    Contract(MatmulPrecision),
    /// `D = A`, reduced over the modes that D lacks.
    Reduce(Operator),
    /// `D = unary(A) op unary(C)`. C has the strides of D.
    Binary {
        /// Combines A and C.
        op: Operator,
        /// Unary operators that are applied to A and C.
        unary: [Operator; 2],
    },
    /// `D = (unary(A) inner unary(B)) outer unary(C)`. C has the strides of D.
    Trinary {
        /// The operator that combines A and B.
        inner: Operator,
        /// The operator that combines the result of `inner` with C.
        outer: Operator,
        /// Unary operators that are applied to A, B and C.
        unary: [Operator; 3],
    },
    /// `D = A`.
    Permute,
}

/// An operation that cuTENSOR can run. Equal operations share a plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CutensorOperation {
    /// Kind and operators.
    pub kind: CutensorOperationKind,
    /// Element type of all operands.
    pub data: DataType,
    /// The inputs: operand A, and operand B if the kind of operation has one.
    pub inputs: SmallVec<[OperandDescription; 2]>,
    /// The output, operand D. Operand C has the same modes, extents and strides.
    pub output: OperandDescription,
}

impl CutensorOperation {
    /// Replaces complex elements by pairs of real numbers. Valid for operations that treat both parts in the same way.
    ///
    /// cuTENSOR scales every operand by a factor of the same type. In complex arithmetic, `(1 + 0i) * x` makes one part NaN if the other is
    /// infinite. A real factor of 1 preserves both parts.
    pub fn with_real_pairs(mut self) -> CutensorOperation {
        let real = match self.data {
            DataType::C64 => DataType::F32,
            DataType::C128 => DataType::F64,
            _ => return self,
        };
        let used = self.inputs.iter().chain([&self.output]).flat_map(|t| t.modes.iter());
        let mode = used.max().map_or(0, |m| m + 1);
        self.data = real;
        self.inputs = self.inputs.iter().map(|t| t.as_real_pairs(mode)).collect();
        self.output = self.output.as_real_pairs(mode);
        self
    }

    /// Returns the operation, or a reason to decline if an operand breaks cuTENSOR's rules.
    pub fn check_operands(self) -> Result<CutensorOperation, DeclineReason> {
        let tensors = || self.inputs.iter().chain([&self.output]);
        if tensors().any(|t| t.modes.len() > MAX_OPERAND_MODES) {
            return Err(DeclineReason::new("more than 64 modes"));
        }
        if let Some(n) = self.inputs.iter().position(OperandDescription::has_overlapping_elements) {
            return Err(DeclineReason::with_text(|| format!("elements of input {n} overlap in memory")));
        }
        Ok(self)
    }

    /// Returns the descriptor of the arithmetic's precision, or `None` if the library does not export that precision.
    pub fn compute_descriptor(&self, computes: &ComputeDescriptors) -> Option<ComputeDescriptor> {
        match (self.data, self.kind) {
            (DataType::F64 | DataType::C128, _) => computes.f64,
            (_, CutensorOperationKind::Contract(MatmulPrecision::TensorFloat32)) => computes.tf32,
            (_, CutensorOperationKind::Contract(MatmulPrecision::BFloat16)) => computes.bf16,
            _ => computes.f32,
        }
    }

    /// Returns whether this is a contraction of at least 2^24 products, for which the choice of the algorithm matters.
    pub fn is_large_contraction(&self) -> bool {
        let summed =
            self.inputs.first().into_iter().flat_map(|a| a.modes.iter().zip(&a.extents)).filter(|(m, _)| !self.output.modes.contains(m));
        let products = self.output.extents.iter().chain(summed.map(|(_, n)| n)).fold(1i64, |product, n| product.saturating_mul(*n));
        matches!(self.kind, CutensorOperationKind::Contract(_)) && products >= 1 << 24
    }

    /// Returns a hash of the operation and of the alignment of each operand.
    pub fn fingerprint(&self, alignments: &[u32]) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        alignments.hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns cuTENSOR's type for a dtype.
pub fn cutensor_data_type(dtype: DType) -> Result<DataType, DeclineReason> {
    Ok(match dtype {
        DType::F16 => DataType::F16,
        DType::BF16 => DataType::Bf16,
        DType::F32 => DataType::F32,
        DType::F64 => DataType::F64,
        DType::C64 => DataType::C64,
        DType::C128 => DataType::C128,
        DType::Bool => return Err(DeclineReason::new("bool: cuTENSOR has no boolean type")),
        _ => return Err(DeclineReason::with_text(|| format!("{dtype}: cuTENSOR has no integer types"))),
    })
}

/// Returns the common type of all inputs and outputs of a call.
pub fn common_data_type(call: &Call) -> Result<DataType, DeclineReason> {
    let dtypes = call.inputs.iter().map(|a| a.dtype()).chain(call.outputs.iter().map(|o| o.dtype));
    let mut common = None;
    for dtype in dtypes {
        let data = cutensor_data_type(dtype)?;
        if common.is_some_and(|c| c != data) {
            return Err(DeclineReason::new("inputs and output differ in dtype"));
        }
        common = Some(data);
    }
    common.ok_or(DeclineReason::new("no operands"))
}

/// Returns a reason to decline if one of `inputs` has a negative stride.
pub fn check_positive_strides(inputs: &[StoredArray]) -> Result<(), DeclineReason> {
    for (n, layout) in inputs.iter().map(|a| a.layout()).enumerate() {
        if let Some(axis) = find_axis_by_stride(layout, |s| s < 0) {
            return Err(DeclineReason::with_text(|| format!("negative stride along axis {axis} of input {n}")));
        }
    }
    Ok(())
}

/// Returns the first axis of more than one element for whose stride `wanted` returns true, or `None` if there is none.
pub fn find_axis_by_stride(layout: &Layout, wanted: impl Fn(isize) -> bool) -> Option<usize> {
    layout.shape().iter().zip(layout.strides()).position(|(&n, &s)| n > 1 && wanted(s))
}

#[cfg(test)]
mod tests {
    use cuprum_core::explain;

    use super::*;

    fn permute(input: OperandDescription, output: OperandDescription, data: DataType) -> CutensorOperation {
        CutensorOperation { kind: CutensorOperationKind::Permute, data, inputs: [input].into_iter().collect(), output }
    }

    #[test]
    fn extents_of_1_and_broadcast_modes_are_left_out() {
        let t = OperandDescription::from_axes([(0, 3, 20), (1, 1, 7), (2, 4, 0), (3, 5, 1)]);
        assert_eq!((&t.modes[..], &t.extents[..], &t.strides[..]), (&[0, 3][..], &[3, 5][..], &[20, 1][..]));
        assert_eq!(t.innermost_mode(), Some(3));
        let out = OperandDescription::from_axes([(0, 3, 5), (3, 5, 1)]);
        assert!(!t.is_transposed_to(&out));
        assert!(OperandDescription::from_axes([(0, 3, 1), (3, 5, 3)]).is_transposed_to(&out));
        assert!(!OperandDescription::from_axes([(0, 3, 1)]).is_transposed_to(&out), "broadcast along the innermost axis");
        assert!(!OperandDescription::from_axes([(0, 3, 20), (3, 5, 2)]).is_transposed_to(&out), "strided");
        assert_eq!(OperandDescription::from_axes([(0, 1, 1)]), OperandDescription::default());
    }

    #[test]
    fn complex_elements_become_real_pairs() {
        let op = permute(
            OperandDescription::from_axes([(0, 3, 1), (1, 4, 3)]),
            OperandDescription::from_axes([(0, 3, 4), (1, 4, 1)]),
            DataType::C64,
        )
        .with_real_pairs();
        assert_eq!(op.data, DataType::F32);
        assert_eq!(op.inputs[0], OperandDescription::from_axes([(0, 3, 2), (1, 4, 6), (2, 2, 1)]));
        assert_eq!(op.output, OperandDescription::from_axes([(0, 3, 8), (1, 4, 2), (2, 2, 1)]));
        let real = permute(OperandDescription::default(), OperandDescription::default(), DataType::F32);
        assert_eq!(real.clone().with_real_pairs(), real);
    }

    #[test]
    fn overlaps_are_found() {
        let windows = permute(
            OperandDescription::from_axes([(0, 5, 1), (1, 3, 1)]),
            OperandDescription::from_axes([(0, 5, 3), (1, 3, 1)]),
            DataType::F32,
        );
        let (refused, _) = explain(|| windows.check_operands());
        assert_eq!(refused.err().map(|r| r.text().to_owned()).as_deref(), Some("elements of input 0 overlap in memory"));
        let gaps = permute(
            OperandDescription::from_axes([(0, 5, 100), (1, 3, 7)]),
            OperandDescription::from_axes([(0, 5, 3), (1, 3, 1)]),
            DataType::F32,
        );
        assert!(gaps.check_operands().is_ok());
        let many = OperandDescription::from_axes((0..65).map(|m| (m, 2, 1isize << m.min(60))));
        assert!(permute(many.clone(), many, DataType::F32).check_operands().is_err());
    }

    #[test]
    fn fingerprints_depend_on_every_field() {
        let base = permute(
            OperandDescription::from_axes([(0, 3, 1), (1, 4, 3)]),
            OperandDescription::from_axes([(0, 3, 4), (1, 4, 1)]),
            DataType::F32,
        );
        let mut others = vec![base.clone(); 4];
        others[0].data = DataType::F64;
        others[1].kind = CutensorOperationKind::Reduce(Operator::Add);
        others[2].inputs[0].strides[1] = 6;
        others[3].output.extents[0] = 8;
        assert!(others.iter().all(|o| *o != base && o.fingerprint(&[256]) != base.fingerprint(&[256])));
        assert_ne!(base.fingerprint(&[256]), base.fingerprint(&[128]));
        assert_eq!(base.fingerprint(&[256, 8]), base.clone().fingerprint(&[256, 8]));
    }

    #[test]
    fn large_contractions_have_2_to_the_24_products() {
        let product = |m: usize, k: usize, n: usize| {
            let (n, stride) = (n, n as isize);
            let inputs = [
                OperandDescription::from_axes([(0, m, k as isize), (1, k, 1)]),
                OperandDescription::from_axes([(1, k, stride), (2, n, 1)]),
            ];
            let output = OperandDescription::from_axes([(0, m, stride), (2, n, 1)]);
            CutensorOperation {
                kind: CutensorOperationKind::Contract(MatmulPrecision::Float32),
                data: DataType::F32,
                inputs: inputs.into_iter().collect(),
                output,
            }
        };
        assert!(product(256, 256, 256).is_large_contraction());
        assert!(!product(256, 255, 256).is_large_contraction());
        let permuted =
            permute(OperandDescription::from_axes([(0, 1 << 24, 1)]), OperandDescription::from_axes([(0, 1 << 24, 1)]), DataType::F32);
        assert!(!permuted.is_large_contraction());
    }

    #[test]
    fn integers_decline() {
        let (refused, _) = explain(|| cutensor_data_type(DType::I64));
        assert_eq!(refused.err().map(|r| r.text().to_owned()).as_deref(), Some("int64: cuTENSOR has no integer types"));
    }
}
