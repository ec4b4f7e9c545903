//! float16 and bfloat16: computed in float32 and rounded after each operation, one block of elements at a time.

use cuprum_core::{DType, bf16, f16};
use cuprum_cpu_base::simd::{FillLoop, Isa, run_fill_loop};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use half::slice::HalfFloatSliceExt;

use crate::elementwise_loops::Kernel;

/// Number of elements per block. The four blocks of an operation (three arguments and the result) fit L1.
const BLOCK_LEN: usize = 512;

/// Returns whether `dtype` is float16 or bfloat16, which are computed in float32.
#[inline]
pub fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

struct WidenBf16Loop<'a>(&'a [bf16]);

impl FillLoop for WidenBf16Loop<'_> {
    type Item = f32;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [f32]) {
        for (out, a) in out.iter_mut().zip(self.0) {
            *out = f32::from_bits((a.to_bits() as u32) << 16);
        }
    }
}

struct RoundToBf16Loop<'a>(&'a [f32]);

impl FillLoop for RoundToBf16Loop<'_> {
    type Item = bf16;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [bf16]) {
        for (out, a) in out.iter_mut().zip(self.0) {
            let bits = a.to_bits();
            // Rounds half to even: the carry depends on the dropped bits and the lowest kept bit. A NaN keeps a fraction bit set, so it
            // stays NaN.
            let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
            *out = bf16::from_bits(if a.is_nan() { (bits >> 16) as u16 | 0x40 } else { rounded });
        }
    }
}

/// Converts `values`, which are 16-bit floats or float32, to float32.
pub fn widen_half_to_float32(values: Elements, out: &mut [f32]) {
    match values.dtype() {
        DType::F16 => values.typed_slice::<f16>().convert_to_f32_slice(out),
        DType::BF16 => run_fill_loop(WidenBf16Loop(values.typed_slice()), out),
        _ => out.copy_from_slice(values.typed_slice()),
    }
}

/// Rounds float32 `values` to the 16-bit float type of `out`, ties to even.
pub fn round_float32_to_half(values: &[f32], out: ElementsMut) {
    match out.dtype() {
        DType::F16 => out.typed_slice::<f16>().convert_from_f32_slice(values),
        DType::BF16 => run_fill_loop(RoundToBf16Loop(values), out.typed_slice()),
        _ => out.typed_slice::<f32>().copy_from_slice(values),
    }
}

/// Runs `kernel`, which reads and writes float32, on arguments and an output that may be 16-bit floats. Arguments and outputs of other
/// dtypes, such as the condition of `where`, are passed to the kernel unchanged.
pub fn run_kernel_in_float32(kernel: Kernel, args: &[Elements], mut out: ElementsMut) {
    let mut wide = [[0f32; BLOCK_LEN]; 3];
    let mut result = [0f32; BLOCK_LEN];
    let n = out.len();
    for start in (0..n).step_by(BLOCK_LEN) {
        let len = BLOCK_LEN.min(n - start);
        for (block, arg) in wide.iter_mut().zip(args) {
            if is_half(arg.dtype()) {
                widen_half_to_float32(arg.slice(start, len), &mut block[..len]);
            }
        }
        let mut blocks = [Elements::of::<u8>(&[]); 3];
        for ((block, arg), values) in blocks.iter_mut().zip(args).zip(&wide) {
            *block = if is_half(arg.dtype()) { Elements::of(&values[..len]) } else { arg.slice(start, len) };
        }
        if is_half(out.dtype()) {
            kernel(&blocks[..args.len()], ElementsMut::of(&mut result[..len]));
            round_float32_to_half(&result[..len], out.slice(start, len));
        } else {
            kernel(&blocks[..args.len()], out.slice(start, len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_as_half_does() {
        let values: Vec<f32> =
            (0..20_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).chain([f32::NAN, f32::INFINITY, f32::MAX]).collect();
        let mut ours = vec![bf16::ZERO; values.len()];
        round_float32_to_half(&values, ElementsMut::of(&mut ours));
        for (v, o) in values.iter().zip(&ours) {
            assert!(o.to_bits() == bf16::from_f32(*v).to_bits() || v.is_nan() && o.is_nan(), "{v}");
        }
    }
}
