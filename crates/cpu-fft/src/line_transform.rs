//! Transforms of one line, a 1-D slice along the transformed axis, from contiguous memory to contiguous memory.

use std::sync::Arc;

use bytemuck::Pod;
use cuprum_core::{Error, Result};
use num_complex::Complex;
use realfft::{ComplexToReal, RealToComplex};
use rustfft::Fft;

use crate::plan_cache::{FftPlan, TransformFloat, TransformKind, get_or_create_plan};

/// A transform of lines of one length. A line is a 1-D slice along the transformed axis.
pub(crate) trait LineTransform<T>: Sync {
    /// Type of the elements before the transform.
    type In: Pod + Send + Sync;
    /// Type of the elements after the transform.
    type Out: Pod + Send + Sync;
    /// Returns the number of elements of a line (1-D slice) before the transform.
    fn input_len(&self) -> usize;
    /// Returns the number of elements of a line (1-D slice) after the transform.
    fn output_len(&self) -> usize;
    /// Returns the number of scratch elements that the transform needs.
    fn scratch_len(&self) -> usize;
    /// Transforms `input` into `output`. Overwrites `input` with arbitrary values.
    fn transform_line(&self, input: &mut [Self::In], output: &mut [Self::Out], scratch: &mut [Complex<T>]) -> Result<()>;
    /// Transforms `input` into `output`. Returns `false` without transforming if this kind of transform overwrites its input.
    fn try_transform_preserving_input(&self, _input: &[Self::In], _output: &mut [Self::Out], _scratch: &mut [Complex<T>]) -> bool {
        false
    }
    /// Multiplies `value`, an element after the transform, by `factor`.
    fn scale_output(value: &mut Self::Out, factor: T);
}

/// Returns the error for a plan of the wrong kind, or for lengths that rustfft or realfft refuses.
fn plan_error(what: impl std::fmt::Display) -> Error {
    Error::backend("cpu", "fft", what)
}

/// Transforms of complex numbers.
pub(crate) struct ComplexToComplex<T>(Arc<dyn Fft<T>>);

impl<T: TransformFloat> ComplexToComplex<T> {
    pub(crate) fn new_for_length(n: usize, inverse: bool) -> Result<ComplexToComplex<T>> {
        match get_or_create_plan(if inverse { TransformKind::Inverse } else { TransformKind::Forward }, n)? {
            FftPlan::Complex(fft) => Ok(ComplexToComplex(fft)),
            _ => Err(plan_error("not a complex plan")),
        }
    }

    /// Transforms each of the consecutive, contiguous lines in `lines` in place.
    pub(crate) fn transform_lines_in_place(&self, lines: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.0.process_with_scratch(lines, &mut scratch[..self.0.get_inplace_scratch_len()]);
    }
}

impl<T: TransformFloat> LineTransform<T> for ComplexToComplex<T> {
    type In = Complex<T>;
    type Out = Complex<T>;
    fn input_len(&self) -> usize {
        self.0.len()
    }
    fn output_len(&self) -> usize {
        self.0.len()
    }
    fn scratch_len(&self) -> usize {
        self.0.get_inplace_scratch_len().max(self.0.get_outofplace_scratch_len()).max(self.0.get_immutable_scratch_len())
    }
    fn transform_line(&self, input: &mut [Complex<T>], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> Result<()> {
        self.0.process_outofplace_with_scratch(input, output, &mut scratch[..self.0.get_outofplace_scratch_len()]);
        Ok(())
    }
    fn try_transform_preserving_input(&self, input: &[Complex<T>], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> bool {
        self.0.process_immutable_with_scratch(input, output, &mut scratch[..self.0.get_immutable_scratch_len()]);
        true
    }
    fn scale_output(value: &mut Complex<T>, factor: T) {
        *value = value.scale(factor);
    }
}

/// Transforms of real numbers, with only the results for non-negative frequencies (`rfft`).
pub(crate) struct RealToHalfSpectrum<T>(Arc<dyn RealToComplex<T>>);

impl<T: TransformFloat> RealToHalfSpectrum<T> {
    pub(crate) fn new_for_length(n: usize) -> Result<RealToHalfSpectrum<T>> {
        match get_or_create_plan(TransformKind::FromReal, n)? {
            FftPlan::FromReal(fft) => Ok(RealToHalfSpectrum(fft)),
            _ => Err(plan_error("not a plan from real numbers")),
        }
    }
}

impl<T: TransformFloat> LineTransform<T> for RealToHalfSpectrum<T> {
    type In = T;
    type Out = Complex<T>;
    fn input_len(&self) -> usize {
        self.0.len()
    }
    fn output_len(&self) -> usize {
        self.0.len() / 2 + 1
    }
    fn scratch_len(&self) -> usize {
        self.0.get_scratch_len()
    }
    fn transform_line(&self, input: &mut [T], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> Result<()> {
        self.0.process_with_scratch(input, output, &mut scratch[..self.0.get_scratch_len()]).map_err(plan_error)
    }
    fn scale_output(value: &mut Complex<T>, factor: T) {
        *value = value.scale(factor);
    }
}

/// Transforms of real numbers, with the results for all frequencies (`fft`). Results for negative frequencies are the conjugates of results
/// for positive frequencies.
pub(crate) struct RealToFullSpectrum<T> {
    half: RealToHalfSpectrum<T>,
    inverse: bool,
}

impl<T: TransformFloat> RealToFullSpectrum<T> {
    pub(crate) fn new_for_length(n: usize, inverse: bool) -> Result<RealToFullSpectrum<T>> {
        Ok(RealToFullSpectrum { half: RealToHalfSpectrum::new_for_length(n)?, inverse })
    }
}

impl<T: TransformFloat> LineTransform<T> for RealToFullSpectrum<T> {
    type In = T;
    type Out = Complex<T>;
    fn input_len(&self) -> usize {
        self.half.input_len()
    }
    fn output_len(&self) -> usize {
        self.half.input_len()
    }
    fn scratch_len(&self) -> usize {
        self.half.scratch_len()
    }
    fn transform_line(&self, input: &mut [T], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> Result<()> {
        let (half, mirrored) = output.split_at_mut(self.half.output_len());
        self.half.transform_line(input, half, scratch)?;
        for (to, from) in mirrored.iter_mut().rev().zip(&half[1..]) {
            *to = from.conj();
        }
        if self.inverse {
            // `0 - x` is the negative without a negative zero.
            output.iter_mut().for_each(|value| value.im = T::zero() - value.im);
        }
        Ok(())
    }
    fn scale_output(value: &mut Complex<T>, factor: T) {
        *value = value.scale(factor);
    }
}

/// Transforms of the non-negative frequencies of a Hermitian spectrum to real numbers (`irfft`).
pub(crate) struct HalfSpectrumToReal<T>(Arc<dyn ComplexToReal<T>>);

impl<T: TransformFloat> HalfSpectrumToReal<T> {
    pub(crate) fn new_for_length(n: usize) -> Result<HalfSpectrumToReal<T>> {
        match get_or_create_plan(TransformKind::ToReal, n)? {
            FftPlan::ToReal(fft) => Ok(HalfSpectrumToReal(fft)),
            _ => Err(plan_error("not a plan to real numbers")),
        }
    }
}

impl<T: TransformFloat> LineTransform<T> for HalfSpectrumToReal<T> {
    type In = Complex<T>;
    type Out = T;
    fn input_len(&self) -> usize {
        self.0.len() / 2 + 1
    }
    fn output_len(&self) -> usize {
        self.0.len()
    }
    fn scratch_len(&self) -> usize {
        self.0.get_scratch_len()
    }
    fn transform_line(&self, input: &mut [Complex<T>], output: &mut [T], scratch: &mut [Complex<T>]) -> Result<()> {
        // The spectrum of real numbers is real at frequency 0 and, for an even length, at half the length. NumPy ignores imaginary parts at
        // these frequencies. realfft would return an error if they are not zero.
        input[0].im = T::zero();
        if self.0.len().is_multiple_of(2) {
            input[self.0.len() / 2].im = T::zero();
        }
        self.0.process_with_scratch(input, output, &mut scratch[..self.0.get_scratch_len()]).map_err(plan_error)
    }
    fn scale_output(value: &mut T, factor: T) {
        *value = *value * factor;
    }
}
