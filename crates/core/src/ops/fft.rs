//! Discrete Fourier transforms (`numpy.fft`).
//!
//! A transform along several axes is one call. A deferred input is fused into the call: the kernel computes its elements, without a
//! temporary array where possible.

use smallvec::SmallVec;

use crate::arguments::{Axes, IntegerArgument};
use crate::array::NdArray;
use crate::call;
use crate::call::{FftKind, OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::index::Item;
use crate::layout::{Dims, checked_size, normalize_axis};
use crate::op::{Family, Op};
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::conj;
use crate::ops::python_value::{Args, Value};
use crate::rounding::to_f16;
use cuprum_macros::numpy;

super::ops! { Fft after linalg:
    FFT "fft" 1;
    IFFT "ifft" 1;
    RFFT "rfft" 1;
    IRFFT "irfft" 1;
    FFTN "fftn" 1;
    IFFTN "ifftn" 1;
    RFFTN "rfftn" 1;
    IRFFTN "irfftn" 1;
}

/// The direction of transform that is divided by the number of points (`norm=`). A transform and its inverse with the same
/// normalisation cancel each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The inverse transform is divided by the number of points n.
    #[default]
    Backward,
    /// Both transforms are divided by the square root of n, so that they preserve the sum of squared magnitudes.
    Ortho,
    /// The forward transform is divided by n.
    Forward,
}

impl FromArgs for Norm {
    fn from_args(args: &Args, name: &str) -> Result<Norm> {
        let text = match args.value(name) {
            None | Some(Value::None) => return Ok(Norm::Backward),
            Some(Value::Str(text)) => text.as_str(),
            Some(other) => other.type_name(),
        };
        match text {
            "backward" => Ok(Norm::Backward),
            "ortho" => Ok(Norm::Ortho),
            "forward" => Ok(Norm::Forward),
            other => Err(Error::value(args.op(), format!("'{name}' is 'backward', 'ortho' or 'forward', not '{other}'"))),
        }
    }
}

impl Norm {
    /// Returns the normalisation with the directions exchanged: `Backward` for `Forward` and vice versa.
    fn with_swapped_direction(self) -> Norm {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Ortho => Norm::Ortho,
            Norm::Forward => Norm::Backward,
        }
    }

    /// Returns the factor by which the result of a forward transform of `n` points is multiplied. `round` is applied to `n` and to each
    /// intermediate result.
    fn normalization_factor(self, n: usize, round: fn(f64) -> f64) -> f64 {
        match self {
            Norm::Backward => 1.0,
            Norm::Ortho => round(1.0 / round(round(n as f64).sqrt())),
            Norm::Forward => round(1.0 / round(n as f64)),
        }
    }
}

/// A transformed axis, and the length of the transform along it.
type AxisLength = (usize, usize);

/// The kind, direction and normalisation of a transform. The axes are arguments of its methods.
#[derive(Clone, Copy)]
struct FourierTransform {
    op: Op,
    kind: FftKind,
    inverse: bool,
    norm: Norm,
}

impl FourierTransform {
    fn new_forward(op: Op, norm: Norm) -> FourierTransform {
        FourierTransform { op, kind: FftKind::Complex, inverse: false, norm }
    }

    fn new_inverse(op: Op, norm: Norm) -> FourierTransform {
        FourierTransform { op, kind: FftKind::Complex, inverse: true, norm }
    }

    fn new_real_to_complex(op: Op, norm: Norm) -> FourierTransform {
        FourierTransform { op, kind: FftKind::RealToComplex, inverse: false, norm }
    }

    fn new_complex_to_real(op: Op, norm: Norm) -> FourierTransform {
        FourierTransform { op, kind: FftKind::ComplexToReal, inverse: true, norm }
    }

    /// Returns the default length of a transform along an axis of the given extent. `None` if there are no points to transform.
    fn default_transform_length(&self, extent: usize, is_last: bool) -> Option<usize> {
        let is_half = self.kind == FftKind::ComplexToReal && is_last;
        if is_half { extent.checked_sub(1)?.checked_mul(2) } else { Some(extent) }.filter(|n| *n > 0)
    }

    /// Transforms along one axis.
    fn transform_along_axis(self, a: &NdArray, n: Option<usize>, axis: isize) -> Result<NdArray> {
        let name = self.op.name();
        let axis = normalize_axis(name, axis, a.ndim())?;
        let length = n.filter(|n| *n > 0).or_else(|| if n.is_none() { self.default_transform_length(a.shape()[axis], true) } else { None });
        self.transform_resolved_axes(a, &[(axis, length.ok_or_else(|| empty_transform_error(name, a, n, axis))?)])
    }

    /// Transforms along several axes. `s` holds the length of the transform along each axis, where -1 stands for the extent. An
    /// axis may occur repeatedly.
    fn transform_along_axes(self, a: &NdArray, s: Option<&[isize]>, axes: &Axes) -> Result<NdArray> {
        let (name, ndim) = (self.op.name(), a.ndim());
        let axes: Dims = match (axes.as_slice(), s) {
            (Some(axes), _) => axes.iter().map(|&axis| normalize_axis(name, axis, ndim)).collect::<Result<_>>()?,
            (None, None) => (0..ndim).collect(),
            (None, Some(s)) => (1..=s.len()).rev().map(|n| normalize_axis(name, -(n as isize), ndim)).collect::<Result<_>>()?,
        };
        if let Some(s) = s.filter(|s| s.len() != axes.len()) {
            return Err(Error::value(name, format!("{} lengths in `s` do not match {} axes", s.len(), axes.len())));
        }
        if axes.is_empty() && self.kind != FftKind::Complex {
            return Err(Error::value(name, "transforms real numbers along at least one axis"));
        }
        let length = |(i, &axis): (usize, &usize)| {
            let extent = a.shape()[axis];
            let length = match s.map(|s| s[i]) {
                None => self.default_transform_length(extent, i + 1 == axes.len()),
                Some(-1) => Some(extent).filter(|n| *n > 0),
                Some(n) => usize::try_from(n).ok().filter(|n| *n > 0),
            };
            Ok((axis, length.ok_or_else(|| empty_transform_error(name, a, None, axis))?))
        };
        let axes: SmallVec<[AxisLength; 4]> = axes.iter().enumerate().map(length).collect::<Result<_>>()?;
        self.transform_resolved_axes(a, &axes)
    }

    /// Transforms along `axes`, from the last to the first, or from the first to the last if the result is real.
    fn transform_resolved_axes(self, a: &NdArray, axes: &[AxisLength]) -> Result<NdArray> {
        let mut groups = group_distinct_axes(axes);
        let mut result = a.clone();
        let (half, kind) = if self.kind == FftKind::ComplexToReal {
            groups.reverse();
            (groups.len().saturating_sub(1), self.kind)
        } else {
            (0, self.kind)
        };
        for (i, group) in groups.iter().enumerate() {
            let kind = if i == half { kind } else { FftKind::Complex };
            result = FourierTransform { kind, ..self }.dispatch_transform(&result, group, axes.len() == 1)?;
        }
        Ok(result)
    }

    /// Returns the dtype to which an input of `dtype` is converted for the kernel.
    fn fft_kernel_input_dtype(&self, dtype: DType) -> Result<DType> {
        let (real, complex) = match dtype {
            DType::F16 | DType::BF16 | DType::F32 | DType::C64 => (DType::F32, DType::C64),
            _ => (DType::F64, DType::C128),
        };
        match self.kind {
            FftKind::RealToComplex if dtype.is_complex() => {
                Err(Error::dtype(self.op.name(), "takes real numbers; the transforms `fft` and `fftn` take complex ones", &[dtype]))
            }
            FftKind::ComplexToReal => Ok(complex),
            _ if dtype.is_complex() => Ok(complex),
            _ => Ok(real),
        }
    }

    /// Returns the factor by which the result is multiplied: a product of one factor per axis. As in NumPy, for a float16 array the factor
    /// of the axis that is transformed first is rounded to float16.
    fn result_scale_factor(&self, dtype: DType, axes: &[AxisLength]) -> f64 {
        let norm = if self.inverse { self.norm.with_swapped_direction() } else { self.norm };
        let first = if self.kind == FftKind::ComplexToReal { 0 } else { axes.len() - 1 };
        let factor = |(i, &(_, n)): (usize, &AxisLength)| match dtype == DType::F16 && i == first {
            true => norm.normalization_factor(n, |x| to_f16(x).to_f64()),
            false => norm.normalization_factor(n, |x| x),
        };
        axes.iter().enumerate().map(factor).product()
    }

    /// Plans and dispatches a transform along distinct axes. `is_alone` is true if the only axis that the caller transforms is that in
    /// `group`.
    fn dispatch_transform(self, a: &NdArray, group: &[AxisLength], is_alone: bool) -> Result<NdArray> {
        let FourierTransform { op, kind, inverse, .. } = self;
        let dtype = self.fft_kernel_input_dtype(a.dtype())?;
        let (axes, lengths): (Dims, Dims) = group.iter().copied().unzip();
        let mut shape: Dims = a.shape().into();
        group.iter().for_each(|&(axis, n)| shape[axis] = n);
        let half = axes.last().copied().unwrap_or(0);
        let (out_dtype, n) = (if kind == FftKind::ComplexToReal { dtype.real() } else { dtype.promote(DType::C64) }, shape[half]);
        if kind == FftKind::RealToComplex {
            shape[half] = n / 2 + 1;
        }
        // As in NumPy, a complex-to-real transform of a float16 array gives float16 along one axis, and float32 along several axes.
        let is_half_precision = matches!(a.dtype(), DType::F16 | DType::BF16);
        let result_dtype = if is_half_precision && is_alone && kind == FftKind::ComplexToReal { a.dtype() } else { out_dtype };
        if a.size() == 0 || checked_size(op.name(), &shape)? == 0 {
            return full_on_device(a.device(), &shape, 0.into(), result_dtype);
        }
        let full = |axis: usize, n: usize| if kind == FftKind::ComplexToReal && axis == half { n / 2 + 1 } else { n };
        let mut items: SmallVec<[Item; 6]> = SmallVec::from_elem(Item::slice(None, None, 1), a.ndim());
        group.iter().for_each(|&(axis, n)| items[axis] = Item::slice(None, full(axis, n).min(a.shape()[axis]) as isize, 1));
        let is_cropped = group.iter().any(|&(axis, n)| full(axis, n) < a.shape()[axis]);
        let a = if is_cropped { &a.index(&items[..])? } else { a };
        let scale = self.result_scale_factor(a.dtype(), group);
        let result = a.with_fused_input(Family::Fft, dtype, |program, inputs| {
            let request = call::Fft { program, kind, inverse, shape: a.shape(), axes: &axes, lengths: &lengths, scale };
            super::dispatch_single_output(op, a.device(), inputs, OutputSpec::contiguous(out_dtype, &shape)?, Work::Fft(request))
        })?;
        result.astype(result_dtype)
    }
}

/// Splits `axes` into consecutive groups without repeated axes. Returns the last group first, or no groups if there are no axes.
fn group_distinct_axes(axes: &[AxisLength]) -> SmallVec<[&[AxisLength]; 2]> {
    let (mut groups, mut end) = (SmallVec::new(), axes.len());
    for start in (0..axes.len()).rev() {
        let is_repeated = start > 0 && axes[start..end].iter().any(|(axis, _)| *axis == axes[start - 1].0);
        if start == 0 || is_repeated {
            groups.push(&axes[start..end]);
            end = start;
        }
    }
    groups
}

/// Returns the error for a transform without points along `axis`.
fn empty_transform_error(op: &'static str, a: &NdArray, n: Option<usize>, axis: usize) -> Error {
    let length = n.map_or_else(|| format!("axis {axis}"), |n| format!("n = {n} on axis {axis}"));
    Error::shape(op, format!("{length} gives no points to transform; the length must be at least 1"), &[a.shape()])
}

/// Returns the discrete Fourier transform along an axis (`numpy.fft.fft`).
///
/// `n` is the length of the transform, by default the extent. A longer axis is cropped, a shorter axis is padded with zeros at the end.
/// The result is complex64 for float16, bfloat16, float32 and complex64, and complex128 for other dtypes.
///
/// # Errors
/// An axis out of bounds, or no points to transform.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, NdArray};
/// use cuprum::ops::fft::{Norm, fft};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 2.0, 3.0, 4.0])?;
/// let spectrum = fft(&a, None, -1, Norm::Backward)?.to_vec::<Complex<f64>>()?;
/// assert_eq!(spectrum[0], Complex::new(10.0, 0.0));
/// assert_eq!(spectrum[1], Complex::new(-2.0, 2.0));
/// # Ok(())
/// # }
/// ```
#[numpy("fft.fft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn fft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_forward(FFT, norm).transform_along_axis(a, n, axis.saturating_isize())
}

/// Returns the inverse discrete Fourier transform along an axis (`numpy.fft.ifft`).
///
/// `n` is the length of the transform, by default the extent. A longer axis is cropped, a shorter axis is padded with zeros at the end.
/// The dtypes are those of [`fft`].
///
/// # Errors
/// An axis out of bounds, or no points to transform.
#[numpy("fft.ifft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn ifft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_inverse(IFFT, norm).transform_along_axis(a, n, axis.saturating_isize())
}

/// Returns the non-negative frequencies of the Fourier transform of real numbers along an axis (`numpy.fft.rfft`).
///
/// `n` is the length of the transform, by default the extent. A longer axis is cropped, a shorter axis is padded with zeros at the end.
/// The result has the extent `n / 2 + 1` along the axis.
///
/// # Errors
/// Complex numbers, an axis out of bounds, or no points to transform.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, NdArray};
/// use cuprum::ops::fft::{Norm, rfft};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 2.0, 3.0, 4.0])?;
/// let half = rfft(&a, None, -1, Norm::Backward)?;
/// assert_eq!(half.to_vec::<Complex<f64>>()?, [(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0)].map(|(x, y)| Complex::new(x, y)));
/// # Ok(())
/// # }
/// ```
#[numpy("fft.rfft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn rfft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_real_to_complex(RFFT, norm).transform_along_axis(a, n, axis.saturating_isize())
}

/// Returns the real inverse of [`rfft`] along an axis (`numpy.fft.irfft`).
///
/// `n` is the length of the result, by default `2 * (m - 1)` for an axis of extent m. The first `n / 2 + 1` elements are used, and missing
/// ones are zeros. The imaginary part at frequency 0, and at n / 2 if n is even, is ignored. The result is float32 for float32 and
/// complex64, and float64 for float64, complex128, bool and integers. float16 and bfloat16 keep their dtype.
///
/// # Errors
/// An axis out of bounds, or no points to transform.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, NdArray};
/// use cuprum::ops::fft::{Norm, irfft, rfft};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 2.0, 3.0])?;
/// let half = rfft(&a, None, -1, Norm::Backward)?;
/// let same = irfft(&half, Some(3), -1, Norm::Backward)?;
/// assert!(same.subtract(&a)?.abs()?.max(())?.item()?.as_f64() < 1e-15);
/// # Ok(())
/// # }
/// ```
#[numpy("fft.irfft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn irfft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_complex_to_real(IRFFT, norm).transform_along_axis(a, n, axis.saturating_isize())
}

/// Returns the Fourier transform along an axis of a Hermitian signal, given by its first half (`numpy.fft.hfft`). The result is real.
///
/// The lengths and dtypes are those of [`irfft`].
///
/// # Errors
/// An axis out of bounds, or no points to transform.
#[numpy("fft.hfft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn hfft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_complex_to_real(IRFFT, norm.with_swapped_direction()).transform_along_axis(&conj(a)?, n, axis.saturating_isize())
}

/// Returns the first half of the inverse Fourier transform of real numbers, the inverse of [`hfft`] (`numpy.fft.ihfft`).
///
/// The lengths and dtypes are those of [`rfft`].
///
/// # Errors
/// The errors of [`rfft`].
#[numpy("fft.ihfft(a, n=None, axis=-1, norm=None, out=None)")]
pub fn ihfft(a: &NdArray, n: Option<usize>, #[read(isize)] axis: impl IntegerArgument, norm: Norm) -> Result<NdArray> {
    conj(FourierTransform::new_real_to_complex(RFFT, norm.with_swapped_direction()).transform_along_axis(a, n, axis.saturating_isize())?)
}

/// Returns the discrete Fourier transform along several axes (`numpy.fft.fftn`).
///
/// `s` holds the length of the transform along each axis of `axes`, where -1 stands for the extent. A longer axis is cropped, and a shorter
/// axis is padded with zeros at the end. With `()` for `axes`, the last `s.len()` axes are transformed, or all axes if `s` is `None`. A
/// repeated axis is transformed repeatedly. The dtypes are those of [`fft`]. If `axes` is empty, the array is returned unchanged.
///
/// # Errors
/// Axes out of bounds, a number of lengths other than that of axes, or no points to transform.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, NdArray};
/// use cuprum::ops::fft::{Norm, fftn};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
/// let spectrum = fftn(&a, None, (), Norm::Backward)?;
/// assert_eq!(spectrum.to_vec::<Complex<f64>>()?, [10.0, -2.0, -4.0, 0.0].map(Complex::from));
/// # Ok(())
/// # }
/// ```
#[numpy("fft.fftn(a, s=None, axes=None, norm=None, out=None)")]
pub fn fftn(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_forward(FFTN, norm).transform_along_axes(a, s, &axes.into())
}

/// Returns the inverse discrete Fourier transform along several axes, the inverse of [`fftn`] (`numpy.fft.ifftn`).
///
/// # Errors
/// The errors of [`fftn`].
#[numpy("fft.ifftn(a, s=None, axes=None, norm=None, out=None)")]
pub fn ifftn(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_inverse(IFFTN, norm).transform_along_axes(a, s, &axes.into())
}

/// Returns the Fourier transform of real numbers along several axes (`numpy.fft.rfftn`).
///
/// Along the last axis of `axes`, the result has only the non-negative frequencies, as in [`rfft`]. The arguments are those of [`fftn`].
///
/// # Errors
/// Complex numbers, no axes, and the errors of [`fftn`].
#[numpy("fft.rfftn(a, s=None, axes=None, norm=None, out=None)")]
pub fn rfftn(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_real_to_complex(RFFTN, norm).transform_along_axes(a, s, &axes.into())
}

/// Returns the real inverse of [`rfftn`] (`numpy.fft.irfftn`).
///
/// The last length in `s` is the extent of the result along the last axis of `axes`, by default `2 * (m - 1)` for an input extent of m. The
/// dtypes are those of [`irfft`], except that float16 and bfloat16 give float32 if there are several axes.
///
/// # Errors
/// No axes, and the errors of [`fftn`].
#[numpy("fft.irfftn(a, s=None, axes=None, norm=None, out=None)")]
pub fn irfftn(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    FourierTransform::new_complex_to_real(IRFFTN, norm).transform_along_axes(a, s, &axes.into())
}

/// Returns the discrete Fourier transform along two axes, by default the last two (`numpy.fft.fft2`).
///
/// The function is [`fftn`] with other default axes. Rust has no default arguments, so Rust callers pass `(-2, -1)`.
///
/// # Errors
/// The errors of [`fftn`].
#[numpy("fft.fft2(a, s=None, axes=(-2, -1), norm=None, out=None)")]
pub fn fft2(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    fftn(a, s, axes, norm)
}

/// Returns the inverse discrete Fourier transform along two axes, by default the last two (`numpy.fft.ifft2`).
///
/// The function is [`ifftn`] with other default axes. Rust has no default arguments, so Rust callers pass `(-2, -1)`.
///
/// # Errors
/// The errors of [`ifftn`].
#[numpy("fft.ifft2(a, s=None, axes=(-2, -1), norm=None, out=None)")]
pub fn ifft2(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    ifftn(a, s, axes, norm)
}

/// Returns the Fourier transform of real numbers along two axes, by default the last two (`numpy.fft.rfft2`).
///
/// The function is [`rfftn`] with other default axes. Rust has no default arguments, so Rust callers pass `(-2, -1)`.
///
/// # Errors
/// The errors of [`rfftn`].
#[numpy("fft.rfft2(a, s=None, axes=(-2, -1), norm=None, out=None)")]
pub fn rfft2(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    rfftn(a, s, axes, norm)
}

/// Returns the real inverse of [`rfft2`] along two axes, by default the last two (`numpy.fft.irfft2`).
///
/// The function is [`irfftn`] with other default axes. Rust has no default arguments, so Rust callers pass `(-2, -1)`.
///
/// # Errors
/// The errors of [`irfftn`].
#[numpy("fft.irfft2(a, s=None, axes=(-2, -1), norm=None, out=None)")]
pub fn irfft2(a: &NdArray, s: Option<&[isize]>, axes: impl Into<Axes>, norm: Norm) -> Result<NdArray> {
    irfftn(a, s, axes, norm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_axes_start_a_new_group() {
        let of = |axes: &[usize]| {
            let axes: Vec<AxisLength> = axes.iter().map(|&axis| (axis, 4)).collect();
            group_distinct_axes(&axes).iter().map(|group| group.iter().map(|(axis, _)| *axis).collect()).collect::<Vec<Vec<usize>>>()
        };
        assert_eq!(of(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(of(&[0, 1, 2]), [[0, 1, 2]]);
        assert_eq!(of(&[0, 0]), [[0], [0]]);
        assert_eq!(of(&[1, 0, 1, 2]), [vec![0, 1, 2], vec![1]]);
    }

    #[test]
    fn factors_of_float16_are_rounded_to_it() {
        let scale = |dtype, axes: &[AxisLength]| FourierTransform::new_forward(FFT, Norm::Forward).result_scale_factor(dtype, axes);
        assert_eq!(scale(DType::F64, &[(0, 3)]), 1.0 / 3.0);
        assert_eq!(scale(DType::F16, &[(0, 3)]), to_f16(1.0 / 3.0).to_f64());
        assert_eq!(scale(DType::F16, &[(0, 3), (1, 2)]), 1.0 / 6.0);
    }
}
