//! Requests of the kernel family `Fft`: discrete Fourier transforms.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::Family;
use crate::program::Program;

/// A discrete Fourier transform of the values of `program` (one result) along `axes`, multiplied by `scale`.
///
/// Along an axis of length n, `X[k]` is the sum of `x[j] * exp(-2 * pi * i * j * k / n)`, with a positive exponent if `inverse`. If the
/// length of the transform along an axis exceeds the extent, the values are padded with zeros at the end. The output is in C order. Along
/// `axes` its extents are `lengths`, except as [`FftKind`] states. Along other axes its extents are the extents of `shape`.
#[derive(Clone, Copy)]
pub struct Fft<'a> {
    /// The fused program that computes the values to transform, in float32, float64, complex64 or complex128. Its inputs are broadcast to
    /// `shape`.
    pub program: &'a Program,
    /// Whether the values and the results are real or complex.
    pub kind: FftKind,
    /// Whether the transform is an inverse, with positive exponents. It is false for [`FftKind::RealToComplex`] and true for
    /// [`FftKind::ComplexToReal`].
    pub inverse: bool,
    /// Shape of the values that are transformed. No extent is 0.
    pub shape: &'a [usize],
    /// The transformed axes, at least one. They are distinct.
    pub axes: &'a [usize],
    /// The length of the transform along each axis of `axes`. It is at least the extent of `shape` along that axis.
    pub lengths: &'a [usize],
    /// The factor by which the result is multiplied.
    pub scale: f64,
}

/// Whether the values and the results of a transform are real or complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex results of complex values. If the program's result is real, the imaginary parts are 0.
    Complex,
    /// Complex results of real values. Along the last of `axes`, the output has only the `n / 2 + 1` elements of non-negative frequency,
    /// for a transform of length n.
    RealToComplex,
    /// Real results of complex values. Along the last of `axes`, the values are the elements of non-negative frequency, at most
    /// `n / 2 + 1`, of a Hermitian spectrum of length n.
    ///
    /// The other axes are transformed first. The transform along the last axis then ignores the imaginary parts at frequency 0 and, if n is
    /// even, at n / 2.
    ComplexToReal,
}

impl Fft<'_> {
    /// Returns the number of input elements that the transform along `axes[i]` uses; shorter inputs are extended by zeros. This is
    /// the transform's length, or `n / 2 + 1` along the last axis of [`FftKind::ComplexToReal`].
    pub fn used_input_extent(&self, i: usize) -> usize {
        let is_half = self.kind == FftKind::ComplexToReal && i + 1 == self.axes.len();
        if is_half { self.lengths[i] / 2 + 1 } else { self.lengths[i] }
    }
}

impl KernelRequest for Fft<'_> {
    fn family(&self) -> Family {
        Family::Fft
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        format!("s={:?}, axes={:?}", self.lengths, self.axes)
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_value((self.kind, self.inverse, self.axes));
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
