//! What cuTENSOR is asked for, as plain values: operands by mode, extent and stride, the operator, the precision.
//! Pure arithmetic on a [`Call`]; what cannot be put in cuTENSOR's words is a [`Reason`]. Its rules (`cutensor.h`):
//! extents and strides are positive, a mode stands in an operand at most once, elements of an operand do not overlap.

use std::hash::{Hash, Hasher};

use cuprum_core::{Array, Call, DType, Layout, MatmulPrecision, Reason, StoredArray};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::sys::{ComputeDescriptor, Computes, DataType, Operator};

/// The most modes of one operand (the library's documented limit).
const MAX_MODES: usize = 64;

/// An operand: its modes with their extents and strides in elements. Modes of extent 1 are left out.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tensor {
    /// Names of the modes.
    pub modes: SmallVec<[i32; 6]>,
    /// Extents, by place.
    pub extents: SmallVec<[i64; 6]>,
    /// Strides, by place.
    pub strides: SmallVec<[i64; 6]>,
}

impl Tensor {
    /// An operand of these (mode, extent, stride); what has extent 1 or stride 0 is left out: a mode that an elementwise
    /// operand lacks is broadcast.
    pub fn new(axes: impl IntoIterator<Item = (usize, usize, isize)>) -> Tensor {
        let mut tensor = Tensor::default();
        for (mode, extent, stride) in axes.into_iter().filter(|(_, n, s)| *n != 1 && *s != 0) {
            tensor.push(mode as i32, extent as i64, stride as i64);
        }
        tensor
    }

    fn push(&mut self, mode: i32, extent: i64, stride: i64) {
        self.modes.push(mode);
        self.extents.push(extent);
        self.strides.push(stride);
    }

    /// Elements from the first to one past the last.
    pub fn span(&self) -> usize {
        let steps = self.extents.iter().zip(&self.strides).map(|(n, s)| (n - 1).saturating_mul(*s));
        1 + steps.fold(0i64, i64::saturating_add).unsigned_abs() as usize
    }

    /// The mode whose elements are neighbours in memory.
    fn innermost(&self) -> Option<i32> {
        self.strides.iter().position(|&s| s == 1).map(|i| self.modes[i])
    }

    /// Its neighbours in memory lie along another mode than the output's, so that reading or writing must jump: what a
    /// plain loop is slow at.
    pub fn lies_across(&self, output: &Tensor) -> bool {
        match (self.innermost(), output.innermost()) {
            (Some(own), Some(other)) => own != other && self.modes.contains(&other),
            _ => false,
        }
    }

    /// The same memory seen as pairs of real numbers: one more mode, of extent 2.
    fn as_real_pairs(&self, mode: i32) -> Tensor {
        let mut pairs = self.clone();
        pairs.strides.iter_mut().for_each(|s| *s *= 2);
        pairs.push(mode, 2, 1);
        pairs
    }

    /// Two indices lead to one element, or might: strides do not clear each other.
    fn overlaps(&self) -> bool {
        let mut axes: SmallVec<[(i64, i64); 6]> = self.strides.iter().copied().zip(self.extents.iter().copied()).collect();
        axes.sort_unstable();
        axes.windows(2).any(|w| w[1].0 < w[0].0.saturating_mul(w[0].1))
    }
}

/// The kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `D = A * B`, summed over the modes that D lacks; what float32 is multiplied in.
    Contract(MatmulPrecision),
    /// `D = A`, reduced over the modes that D lacks.
    Reduce(Operator),
    /// `D = A op C`, each after an operator of its own; C lies as D does.
    Binary {
        /// Joins A and C.
        op: Operator,
        /// Of A and C.
        unary: [Operator; 2],
    },
    /// `D = (A inner B) outer C`, each after an operator of its own; C lies as D does.
    Trinary {
        /// Joins A and B.
        inner: Operator,
        /// Joins that and C.
        outer: Operator,
        /// Of A, B and C.
        unary: [Operator; 3],
    },
    /// `D = A`.
    Permute,
}

/// A request in cuTENSOR's words; equal requests share a plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    /// What to do.
    pub kind: Kind,
    /// Type of every operand.
    pub data: DataType,
    /// A and, for a contraction or three operands, B.
    pub inputs: SmallVec<[Tensor; 2]>,
    /// D (and C, where there is one).
    pub output: Tensor,
}

impl Operation {
    /// With complex operands seen as pairs of real numbers, for work that treats the parts alike.
    ///
    /// cuTENSOR scales every operand by a factor of its own type; `(1 + 0i) * x` in complex arithmetic turns an infinite
    /// part into NaN beside it, a real factor of 1 changes nothing.
    pub fn by_real_parts(mut self) -> Operation {
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

    /// What would break cuTENSOR's rules for operands, whatever the kind.
    pub fn check(self) -> Result<Operation, Reason> {
        let tensors = || self.inputs.iter().chain([&self.output]);
        if tensors().any(|t| t.modes.len() > MAX_MODES) {
            return Err(Reason::new("more than 64 modes"));
        }
        if let Some(n) = self.inputs.iter().position(Tensor::overlaps) {
            return Err(Reason::with(|| format!("elements of input {n} overlap in memory")));
        }
        Ok(self)
    }

    /// What sums and products are computed in, if the library has it.
    pub fn compute(&self, computes: &Computes) -> Option<ComputeDescriptor> {
        match (self.data, self.kind) {
            (DataType::F64 | DataType::C128, _) => computes.f64,
            (_, Kind::Contract(MatmulPrecision::TensorFloat32)) => computes.tf32,
            (_, Kind::Contract(MatmulPrecision::BFloat16)) => computes.bf16,
            _ => computes.f32,
        }
    }

    /// A contraction that takes long enough for another algorithm to matter: 2^24 products and more.
    pub fn is_worth_measuring(&self) -> bool {
        let summed =
            self.inputs.first().into_iter().flat_map(|a| a.modes.iter().zip(&a.extents)).filter(|(m, _)| !self.output.modes.contains(m));
        let products = self.output.extents.iter().chain(summed.map(|(_, n)| n)).fold(1i64, |product, n| product.saturating_mul(*n));
        matches!(self.kind, Kind::Contract(_)) && products >= 1 << 24
    }

    /// Hash, with the alignment of each operand: what a plan is found by.
    pub fn fingerprint(&self, alignments: &[u32]) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        alignments.hash(&mut hasher);
        hasher.finish()
    }
}

/// cuTENSOR's name of a dtype.
pub fn data_type(dtype: DType) -> Result<DataType, Reason> {
    Ok(match dtype {
        DType::F16 => DataType::F16,
        DType::BF16 => DataType::Bf16,
        DType::F32 => DataType::F32,
        DType::F64 => DataType::F64,
        DType::C64 => DataType::C64,
        DType::C128 => DataType::C128,
        DType::Bool => return Err(Reason::new("bool: cuTENSOR has no boolean type")),
        _ => return Err(Reason::with(|| format!("{dtype}: cuTENSOR has no integer types"))),
    })
}

/// The common type of a call's inputs and its first output.
pub fn common_type(call: &Call) -> Result<DataType, Reason> {
    let dtypes = call.inputs.iter().map(|a| a.dtype()).chain(call.outputs.iter().map(|o| o.dtype));
    let mut common = None;
    for dtype in dtypes {
        let data = data_type(dtype)?;
        if common.is_some_and(|c| c != data) {
            return Err(Reason::new("inputs and output differ in dtype"));
        }
        common = Some(data);
    }
    common.ok_or(Reason::new("no operands"))
}

/// Declines an array that is walked backwards.
pub fn forward_only(inputs: &[StoredArray]) -> Result<(), Reason> {
    for (n, layout) in inputs.iter().map(|a| a.layout()).enumerate() {
        if let Some(axis) = axis_where(layout, |s| s < 0) {
            return Err(Reason::with(|| format!("negative stride along axis {axis} of input {n}")));
        }
    }
    Ok(())
}

/// The first axis of more than one element whose stride is so.
pub fn axis_where(layout: &Layout, wanted: impl Fn(isize) -> bool) -> Option<usize> {
    layout.shape().iter().zip(layout.strides()).position(|(&n, &s)| n > 1 && wanted(s))
}

#[cfg(test)]
mod tests {
    use cuprum_core::explain;

    use super::*;

    fn permute(input: Tensor, output: Tensor, data: DataType) -> Operation {
        Operation { kind: Kind::Permute, data, inputs: [input].into_iter().collect(), output }
    }

    #[test]
    fn extents_of_one_and_broadcast_modes_are_left_out() {
        let t = Tensor::new([(0, 3, 20), (1, 1, 7), (2, 4, 0), (3, 5, 1)]);
        assert_eq!((&t.modes[..], &t.extents[..], &t.strides[..]), (&[0, 3][..], &[3, 5][..], &[20, 1][..]));
        assert_eq!(t.innermost(), Some(3));
        let out = Tensor::new([(0, 3, 5), (3, 5, 1)]);
        assert!(!t.lies_across(&out));
        assert!(Tensor::new([(0, 3, 1), (3, 5, 3)]).lies_across(&out));
        assert!(!Tensor::new([(0, 3, 1)]).lies_across(&out), "broadcast along the innermost axis");
        assert!(!Tensor::new([(0, 3, 20), (3, 5, 2)]).lies_across(&out), "strided");
        assert_eq!(Tensor::new([(0, 1, 1)]), Tensor::default());
    }

    #[test]
    fn complex_becomes_pairs() {
        let op = permute(Tensor::new([(0, 3, 1), (1, 4, 3)]), Tensor::new([(0, 3, 4), (1, 4, 1)]), DataType::C64).by_real_parts();
        assert_eq!(op.data, DataType::F32);
        assert_eq!(op.inputs[0], Tensor::new([(0, 3, 2), (1, 4, 6), (2, 2, 1)]));
        assert_eq!(op.output, Tensor::new([(0, 3, 8), (1, 4, 2), (2, 2, 1)]));
        let real = permute(Tensor::default(), Tensor::default(), DataType::F32);
        assert_eq!(real.clone().by_real_parts(), real);
    }

    #[test]
    fn overlaps_are_found() {
        let windows = permute(Tensor::new([(0, 5, 1), (1, 3, 1)]), Tensor::new([(0, 5, 3), (1, 3, 1)]), DataType::F32);
        let (refused, _) = explain(|| windows.check());
        assert_eq!(refused.err().map(|r| r.text().to_owned()).as_deref(), Some("elements of input 0 overlap in memory"));
        let gaps = permute(Tensor::new([(0, 5, 100), (1, 3, 7)]), Tensor::new([(0, 5, 3), (1, 3, 1)]), DataType::F32);
        assert!(gaps.check().is_ok());
        let many = Tensor::new((0..65).map(|m| (m, 2, 1isize << m.min(60))));
        assert!(permute(many.clone(), many, DataType::F32).check().is_err());
    }

    #[test]
    fn keys_see_everything() {
        let base = permute(Tensor::new([(0, 3, 1), (1, 4, 3)]), Tensor::new([(0, 3, 4), (1, 4, 1)]), DataType::F32);
        let mut others = vec![base.clone(); 4];
        others[0].data = DataType::F64;
        others[1].kind = Kind::Reduce(Operator::Add);
        others[2].inputs[0].strides[1] = 6;
        others[3].output.extents[0] = 8;
        assert!(others.iter().all(|o| *o != base && o.fingerprint(&[256]) != base.fingerprint(&[256])));
        assert_ne!(base.fingerprint(&[256]), base.fingerprint(&[128]));
        assert_eq!(base.fingerprint(&[256, 8]), base.clone().fingerprint(&[256, 8]));
    }

    #[test]
    fn large_contractions_are_worth_measuring() {
        let product = |m: usize, k: usize, n: usize| {
            let (n, stride) = (n, n as isize);
            let inputs = [Tensor::new([(0, m, k as isize), (1, k, 1)]), Tensor::new([(1, k, stride), (2, n, 1)])];
            let output = Tensor::new([(0, m, stride), (2, n, 1)]);
            Operation { kind: Kind::Contract(MatmulPrecision::Float32), data: DataType::F32, inputs: inputs.into_iter().collect(), output }
        };
        assert!(product(256, 256, 256).is_worth_measuring());
        assert!(!product(256, 255, 256).is_worth_measuring());
        let permuted = permute(Tensor::new([(0, 1 << 24, 1)]), Tensor::new([(0, 1 << 24, 1)]), DataType::F32);
        assert!(!permuted.is_worth_measuring());
    }

    #[test]
    fn integers_are_named() {
        let (refused, _) = explain(|| data_type(DType::I64));
        assert_eq!(refused.err().map(|r| r.text().to_owned()).as_deref(), Some("int64: cuTENSOR has no integer types"));
    }
}
