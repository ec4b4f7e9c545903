//! Kernel parameters as bytes in the layout of C++ structs.

use cuprum_core::plan::reduce::ReducePlan;
use cuprum_core::{Program, StepKind};
use smallvec::SmallVec;

/// Bytes of a C++ struct that a kernel receives by value.
pub type Bytes = SmallVec<[u8; 256]>;

/// Exclusive upper bound of element indices in 32-bit arithmetic. The bound is below 2^30, so that an index plus a grid stride does not
/// overflow.
pub const MAX_32_BIT_INDEX: usize = 0x3f00_0000;

/// Returns the bytes of the C++ struct `Params` of `program`: the addresses `inputs`, the address `fault`, then the scalars. `fault` is the
/// address of the launch's error word, from [`error_word_address`](crate::device::error_word_address). `fault` is `None` if
/// [`may_fault`](super::may_fault) returns false for `program`.
pub fn pack_params(program: &Program, inputs: &[u64], fault: Option<u64>) -> Bytes {
    let mut out = Bytes::new();
    for address in inputs.iter().chain(&fault) {
        out.extend_from_slice(&address.to_le_bytes());
    }
    for step in &program.steps {
        if let StepKind::Param(n) = step.kind {
            out.resize(out.len().next_multiple_of(16), 0);
            let value = program.params.get(n as usize).map_or([0; 16], |s| s.to_bytes(step.dtype));
            out.extend_from_slice(&value);
        }
    }
    if out.is_empty() {
        out.extend_from_slice(&[0; 8]);
    }
    out
}

/// Returns whether 32-bit indices suffice for a loop of `size` elements over operands with extents `dims`. `strides` has the strides of
/// each operand.
pub fn fits_32_bit_index<'a, S: IntoIterator<Item = &'a isize>>(
    size: usize,
    dims: impl IntoIterator<Item = &'a usize> + Clone,
    strides: impl IntoIterator<Item = S>,
) -> bool {
    // The sum of |stride| * (extent - 1) over all axes bounds every partial sum of offsets, so no partial sum overflows.
    let span = |s: S| {
        let axes = dims.clone().into_iter().zip(s);
        axes.fold(0usize, |sum, (&n, &s)| sum.saturating_add(n.saturating_sub(1).saturating_mul(s.unsigned_abs())))
    };
    size < MAX_32_BIT_INDEX
        && dims.clone().into_iter().all(|&n| n < MAX_32_BIT_INDEX)
        && strides.into_iter().all(|s| span(s) < MAX_32_BIT_INDEX)
}

/// Returns whether 32-bit indices suffice for all axes of the reduction `plan`, as [`fits_32_bit_index`] does for a loop.
pub fn reduction_fits_32_bit_index(plan: &ReducePlan) -> bool {
    let strides = plan.kept_strides.iter().zip(&plan.reduced_strides).map(|(kept, reduced)| kept.iter().chain(reduced));
    fits_32_bit_index(plan.kept_size.saturating_mul(plan.reduced_size), plan.kept.iter().chain(&plan.reduced), strides)
}

/// Returns the bytes of the C++ struct `Axes<Index, Rank, N>`: the extents `dims`, then the strides of each of `N` inputs. The outermost
/// axis is first. Indices have 64 bits if `wide`, else 32. After each 32-bit extent come the constants for a fast division by the extent.
pub fn pack_axes<'a>(dims: &[usize], strides: impl IntoIterator<Item = &'a [isize]>, wide: bool) -> Bytes {
    let mut out = Bytes::new();
    if dims.is_empty() {
        out.extend_from_slice(&[0; 8]);
        return out;
    }
    for &n in dims {
        if wide {
            out.extend_from_slice(&(n.max(1) as u64).to_le_bytes());
        } else {
            for field in divisor_fields(n.max(1) as u32) {
                out.extend_from_slice(&field.to_le_bytes());
            }
        }
    }
    let before = out.len();
    for &s in strides.into_iter().flat_map(|s| s.iter().take(dims.len())) {
        if wide { out.extend_from_slice(&(s as i64).to_le_bytes()) } else { out.extend_from_slice(&(s as i32).to_le_bytes()) }
    }
    if out.len() == before {
        out.resize(before + dims.len() * if wide { 8 } else { 4 }, 0);
    }
    out
}

/// Returns the bytes of the C++ struct `Offsets<Index, N>`, one offset per input. Offsets have 64 bits if `wide`, else 32.
pub fn pack_offsets(offsets: &[isize], wide: bool) -> Bytes {
    let mut out = Bytes::new();
    for &o in if offsets.is_empty() { &[0] } else { offsets } {
        if wide { out.extend_from_slice(&(o as i64).to_le_bytes()) } else { out.extend_from_slice(&(o as i32).to_le_bytes()) }
    }
    out
}

/// Returns the fields of the C++ struct `Divisor<i32>`: value, multiplier and shift.
/// For `n < 2^31`, `n / value == (mulhi(n, multiplier) + n) >> shift`.
fn divisor_fields(value: u32) -> [u32; 3] {
    let shift = u32::BITS - (value - 1).leading_zeros();
    let magic = ((1u64 << 32) * ((1u64 << shift) - u64::from(value)) / u64::from(value) + 1) as u32;
    [value, magic, shift]
}

#[cfg(test)]
mod tests {
    use super::super::{may_fault, test_programs};
    use super::*;
    use cuprum_core::{DType, Scalar};

    #[test]
    fn division_by_multiplication() {
        let edges = |v: u32| [0, 1, v - 1, v, v.saturating_add(1), v.saturating_mul(2).saturating_sub(1), 0x7000_0000, 0x7fff_ffff];
        let values = (1..3000).chain([4095, 65535, 65536, 65537, 1_000_003, 0x3fff_ffff, 0x4000_0001, 0x6fff_ffff, 0x7fff_ffff]);
        for v in values {
            let [value, magic, shift] = divisor_fields(v);
            for n in edges(v).into_iter().chain((0..0x7fff_ffff).step_by(0x0123_4567)).filter(|n| *n <= 0x7fff_ffff) {
                let high = ((u64::from(n) * u64::from(magic)) >> 32) as u32;
                assert_eq!((high + n) >> shift, n / value, "{n} / {v}");
            }
        }
    }

    #[test]
    fn structs_are_laid_out_as_in_c() {
        let packed = |p: &Program, inputs: &[u64]| pack_params(p, inputs, may_fault(p).then_some(9));
        let mut p = Program::identity(DType::F32);
        assert_eq!(&packed(&p, &[0x0102])[..], &[2, 1, 0, 0, 0, 0, 0, 0]);
        p.params.push(Scalar::Int(7));
        p.push_step(StepKind::Param(0), DType::I16, &[]);
        let bytes = packed(&p, &[1]);
        assert_eq!((bytes.len(), bytes[16], bytes[17]), (32, 7, 0));
        assert_eq!(packed(&Program::default(), &[]).len(), 8);
        let bytes = packed(&test_programs::take_program(DType::F32, DType::I64), &[1, 2, 3]);
        assert_eq!((bytes.len(), bytes[24], bytes[32]), (48, 9, 1), "addresses, the error word, the length");

        let strides: [&[isize]; 2] = [&[-6, 1], &[0, 1]];
        let narrow = pack_axes(&[5, 6], strides, false);
        assert_eq!(narrow.len(), 2 * 12 + 4 * 4);
        assert_eq!(&narrow[24..28], &(-6i32).to_le_bytes());
        assert_eq!(pack_axes(&[5, 6], strides, true).len(), 2 * 8 + 4 * 8);
        assert_eq!(pack_axes(&[5, 6], [], true).len(), 2 * 8 + 2 * 8);
        assert_eq!(pack_axes(&[], [&[][..]], true).len(), 8);
    }

    #[test]
    fn large_spans_are_wide() {
        assert!(fits_32_bit_index(1000, &[10, 100], [&[100, -1][..]]));
        assert!(!fits_32_bit_index(MAX_32_BIT_INDEX, &[MAX_32_BIT_INDEX], [&[0][..]]));
        assert!(!fits_32_bit_index(4, &[2, 2], [&[1 << 31, 1][..]]));
        assert!(!fits_32_bit_index(4, &[2, 2], [&[-(1 << 31), 1][..]]));
    }
}
