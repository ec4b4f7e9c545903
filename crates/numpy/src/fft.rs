//! Fourier transforms (`numpy.fft`).

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use cuprum_core::function::create_with_device_and_order;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    Axes, Complex, DType, Error, IntegerArgument, NdArray, Result, add, arange_as, concat, equal, exp, floor_divide, less, logical_and,
    logical_or, multiply, negative, numpy, remainder, subtract, where_,
};

use crate::ConvolutionMode;
use crate::operand_and_slice_helpers::{index_range, new_filled_array, slice_axis};

pub use cuprum_core::ops::fft::{Norm, fft, fft2, fftn, hfft, ifft, ifft2, ifftn, ihfft, irfft, irfft2, irfftn, rfft, rfft2, rfftn};

/// Returns the distance between consecutive frequencies of `n` samples with spacing `d`.
fn frequency_step(name: &'static str, n: i64, d: f64) -> Result<f64> {
    let length = n as f64 * d;
    if length == 0.0 {
        return Err(Error::value(name, format!("{n} samples of spacing {d} have no frequencies")));
    }
    Ok(1.0 / length)
}

fn frequencies_from_args(args: &Args, frequencies: fn(i64, f64) -> Result<NdArray>) -> Result<Value> {
    let (n, d) = (args.int_or("n", 0)? as i64, args.scalar_or("d", 1.0)?.as_f64());
    create_with_device_and_order(args, || match args.dtype("dtype")? {
        Some(dtype) => frequencies(n, d)?.astype(dtype),
        None => frequencies(n, d),
    })
}

/// Returns the frequencies of the elements of [`fft()`](fft), in cycles per unit of the sample spacing `d` (`numpy.fft.fftfreq`).
///
/// The result is float64, of `n` elements: the non-negative frequencies, then the negative ones.
///
/// # Errors
/// `n` below 1, or a spacing of 0.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::fft::fftfreq(4, 0.5)?.to_vec::<f64>()?, [0.0, 0.5, -1.0, -0.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("fft.fftfreq(n, d=1.0, device=None, *, dtype=None)", call = |args| frequencies_from_args(args, fftfreq))]
pub fn fftfreq(n: i64, d: f64) -> Result<NdArray> {
    let step = frequency_step("fftfreq", n, d)?;
    if n < 0 {
        return Err(Error::value("fftfreq", format!("the number of samples must be positive, is {n}")));
    }
    let number = arange_as(0, n, 1, DType::I64)?;
    multiply(where_(less(&number, (n + 1) / 2)?, &number, subtract(&number, n)?)?, step)
}

/// Returns the frequencies of the elements of [`rfft`], in cycles per unit of the sample spacing `d` (`numpy.fft.rfftfreq`).
///
/// The result is float64, of `n / 2 + 1` elements.
///
/// # Errors
/// `n` of 0, or a spacing of 0.
#[numpy("fft.rfftfreq(n, d=1.0, device=None, *, dtype=None)", call = |args| frequencies_from_args(args, rfftfreq))]
pub fn rfftfreq(n: i64, d: f64) -> Result<NdArray> {
    let step = frequency_step("rfftfreq", n, d)?;
    multiply(arange_as(0, n.div_euclid(2) + 1, 1, DType::I64)?, step)
}

/// Rolls each of `axes` by half its extent, rounded down, times `sign`.
fn roll_by_half_extent(name: &'static str, x: &NdArray, axes: &Axes, sign: isize) -> Result<NdArray> {
    let axes: Vec<isize> = match axes.as_slice() {
        None => (0..x.ndim() as isize).collect(),
        Some(axes) => axes.to_vec(),
    };
    let half = |&axis: &isize| -> Result<isize> { Ok(sign * (x.shape()[normalize_axis(name, axis, x.ndim())?] / 2) as isize) };
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let shifts = axes.iter().map(half).collect::<Result<Vec<_>>>()?;
    crate::roll(x, &shifts, axes)
}

/// Returns the array with frequency 0 moved from the start to the middle of each axis (`numpy.fft.fftshift`).
///
/// Passes over memory: one.
///
/// # Errors
/// An axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::fft::{fftfreq, fftshift};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(fftshift(&fftfreq(4, 0.25)?, ())?.to_vec::<f64>()?, [-2.0, -1.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("fft.fftshift(x, axes=None)")]
pub fn fftshift(x: &NdArray, axes: impl Into<Axes>) -> Result<NdArray> {
    roll_by_half_extent("fftshift", x, &axes.into(), 1)
}

/// Returns the array with frequency 0 moved from the middle to the start of each axis, the inverse of [`fftshift`]
/// (`numpy.fft.ifftshift`).
///
/// Passes over memory: one.
///
/// # Errors
/// An axis out of bounds.
#[numpy("fft.ifftshift(x, axes=None)")]
pub fn ifftshift(x: &NdArray, axes: impl Into<Axes>) -> Result<NdArray> {
    roll_by_half_extent("ifftshift", x, &axes.into(), -1)
}

/// Calls `visit` with the numbers `product * p1**a * p2**b * ..` for the given `primes`. Each exponent increases from 0 until the number is
/// at least `target`.
fn visit_prime_products(target: usize, product: usize, primes: &[usize], visit: &mut dyn FnMut(usize)) {
    let Some((prime, rest)) = primes.split_first() else { return visit(product) };
    let mut next = Some(product);
    while let Some(product) = next {
        visit_prime_products(target, product, rest, visit);
        next = if product < target { product.checked_mul(*prime) } else { None };
    }
}

/// Returns the smallest length of at least `target` whose transform is fast (`scipy.fft.next_fast_len`).
///
/// The prime factors of this length are at most 11, or at most 5 for transforms of real numbers (`real`).
///
/// # Errors
/// A `target` of 0, or above the largest length.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::fft::next_fast_len(10_007, false)?, 10_080);
/// assert_eq!(cuprum::fft::next_fast_len(7, true)?, 8);
/// # Ok(())
/// # }
/// ```
#[numpy("fft.next_fast_len(target, real=False)")]
pub fn next_fast_len(target: usize, real: bool) -> Result<usize> {
    if target == 0 {
        return Err(Error::value("next_fast_len", "the target length must be positive"));
    }
    let mut best = None;
    let primes: &[usize] = if real { &[5, 3] } else { &[11, 7, 5, 3] };
    visit_prime_products(target, 1, primes, &mut |product| {
        let length = target.div_ceil(product).checked_next_power_of_two().and_then(|factor| product.checked_mul(factor));
        best = length.into_iter().chain(best).min();
    });
    best.ok_or_else(|| Error::value("next_fast_len", format!("{target} is too long")))
}

/// The basis functions of a trigonometric transform: cosines or sines.
#[derive(Clone, Copy, PartialEq)]
enum BasisFunction {
    Cosine,
    Sine,
}

/// Returns `lines[.., start:stop:step]` along the last axis.
fn slice_last_axis(lines: &NdArray, start: impl Into<Option<isize>>, stop: impl Into<Option<isize>>, step: isize) -> Result<NdArray> {
    slice_axis(lines, lines.ndim() - 1, start, stop, step)
}

/// Returns the lines (1-D slices along the last axis) with their elements in reverse order.
fn reverse_last_axis(lines: &NdArray) -> Result<NdArray> {
    slice_last_axis(lines, None, None, -1)
}

/// Returns an array of zeros with the shape of `lines`, except for an extent of 1 along the last axis.
fn zero_column(lines: &NdArray) -> Result<NdArray> {
    let mut shape = lines.shape().to_vec();
    shape[lines.ndim() - 1] = 1;
    new_filled_array(lines, &shape, 0, lines.dtype())
}

/// Returns `exp(i * pi * (k * step + start))` for k from 0 to `n - 1`, in the complex dtype that corresponds to the dtype of
/// `lines`.
fn phase_factors(lines: &NdArray, n: usize, step: f64, start: f64) -> Result<NdArray> {
    let angle = add(multiply(index_range(lines.device(), n)?, step * PI)?, start * PI)?;
    exp(multiply(angle, Complex::new(0.0, 1.0))?)?.astype(lines.dtype().promote(DType::C64))
}

/// Returns `n` numbers, alternately 1 and -1, in the dtype and on the device of `lines`.
fn alternating_signs(lines: &NdArray, n: usize) -> Result<NdArray> {
    subtract(1, multiply(remainder(index_range(lines.device(), n)?, 2)?, 2)?)?.astype(lines.dtype())
}

/// Returns the unnormalised cosine transforms of real lines (1-D slices along the last axis), by Fourier transforms of the same or twice
/// the length.
///
/// Type II follows Makhoul (1980): it transforms the elements with even index, followed by those with odd index in reverse order.
fn cosine_transform(lines: &NdArray, kind: i64) -> Result<NdArray> {
    let n = lines.shape()[lines.ndim() - 1];
    match kind {
        1 => {
            let mirrored = reverse_last_axis(&slice_last_axis(lines, 1, -1, 1)?)?;
            rfft(&concat(&[lines.clone(), mirrored], -1)?, None, -1, Norm::Backward)?.real()
        }
        2 => {
            let order = concat(&[slice_last_axis(lines, None, None, 2)?, reverse_last_axis(&slice_last_axis(lines, 1, None, 2)?)?], -1)?;
            let spectrum = fft(&order, None, -1, Norm::Backward)?;
            multiply(multiply(spectrum, phase_factors(lines, n, -0.5 / n as f64, 0.0)?)?.real()?, 2)
        }
        3 => {
            let mirrored = concat(&[zero_column(lines)?, reverse_last_axis(&slice_last_axis(lines, 1, None, 1)?)?], -1)?;
            let pairs = subtract(lines, multiply(mirrored, Complex::new(0.0, 1.0))?)?;
            let spectrum = multiply(pairs, phase_factors(lines, n, 0.5 / n as f64, 0.0)?)?;
            let order = irfft(&spectrum, Some(n), -1, Norm::Forward)?;
            let number = index_range(lines.device(), n)?;
            let half = floor_divide(&number, 2)?;
            let odd = remainder(&number, 2)?.equal(1)?;
            order.take(&where_(odd, subtract(n as i64 - 1, &half)?, &half)?, -1)
        }
        _ => {
            let turned = multiply(lines, phase_factors(lines, n, -0.5 / n as f64, 0.0)?)?;
            let spectrum = slice_last_axis(&fft(&turned, Some(2 * n), -1, Norm::Backward)?, None, n as isize, 1)?;
            multiply(multiply(spectrum, phase_factors(lines, n, -0.5 / n as f64, -0.25 / n as f64)?)?.real()?, 2)
        }
    }
}

/// Returns the unnormalised sine transforms of real lines (1-D slices along the last axis). Types II to IV are cosine transforms with
/// reversed lines and alternating signs.
fn sine_transform(lines: &NdArray, kind: i64) -> Result<NdArray> {
    let n = lines.shape()[lines.ndim() - 1];
    match kind {
        1 => {
            let zero = zero_column(lines)?;
            let odd = concat(&[zero.clone(), lines.clone(), zero, negative(reverse_last_axis(lines)?)?], -1)?;
            negative(slice_last_axis(&rfft(&odd, None, -1, Norm::Backward)?, 1, -1, 1)?.imag()?)
        }
        2 => reverse_last_axis(&cosine_transform(&multiply(lines, alternating_signs(lines, n)?)?, 2)?),
        _ => multiply(cosine_transform(&reverse_last_axis(lines)?, kind)?, alternating_signs(lines, n)?),
    }
}

/// Multiplies the first element of each line (if `first`) and the last one (if `end`) by `factor`.
fn scale_first_and_last(lines: &NdArray, (first, end): (bool, bool), factor: f64) -> Result<NdArray> {
    let n = lines.shape()[lines.ndim() - 1];
    let number = index_range(lines.device(), n)?;
    let is_end = logical_or(logical_and(first, equal(&number, 0)?)?, logical_and(end, equal(&number, n as i64 - 1)?)?)?;
    multiply(lines, where_(is_end, factor, 1.0)?.astype(lines.dtype())?)
}

/// A discrete cosine or sine transform.
#[derive(Clone, Copy)]
struct TrigonometricTransform {
    name: &'static str,
    basis: BasisFunction,
    inverse: bool,
}

impl TrigonometricTransform {
    fn transform_axis(self, x: &NdArray, kind: i64, n: Option<usize>, axis: isize, norm: Norm) -> Result<NdArray> {
        let name = self.name;
        if !(1..=4).contains(&kind) {
            return Err(Error::value(name, format!("the type is 1, 2, 3 or 4, not {kind}")));
        }
        let axis = normalize_axis(name, axis, x.ndim())?;
        let n = n.unwrap_or(x.shape()[axis]);
        let least = if (self.basis, kind) == (BasisFunction::Cosine, 1) { 2 } else { 1 };
        if n < least {
            return Err(Error::shape(name, format!("type {kind} needs at least {least} points, not {n}"), &[x.shape()]));
        }
        if x.dtype().is_complex() {
            let part = |part: NdArray| self.transform_axis(&part, kind, Some(n), axis as isize, norm);
            return add(part(x.real()?)?, multiply(part(x.imag()?)?, Complex::new(0.0, 1.0))?);
        }
        let dtype = if matches!(x.dtype(), DType::F16 | DType::BF16 | DType::F32) { DType::F32 } else { DType::F64 };
        let mut lines = slice_last_axis(&x.moveaxis(axis, -1)?, None, n as isize, 1)?.astype(dtype)?;
        if lines.shape()[x.ndim() - 1] < n {
            let mut zeros = lines.shape().to_vec();
            zeros[x.ndim() - 1] = n - zeros[x.ndim() - 1];
            lines = concat(&[lines.clone(), new_filled_array(&lines, &zeros, 0, dtype)?], -1)?;
        }
        self.transform_lines(&lines, kind, n, norm)?.moveaxis(-1, axis)
    }

    /// Returns the transform of type `kind` of the array `lines` along its last axis, which has `n` elements.
    fn transform_lines(self, lines: &NdArray, kind: i64, n: usize, norm: Norm) -> Result<NdArray> {
        let kind = match (self.inverse, kind) {
            (true, 2) => 3,
            (true, 3) => 2,
            _ => kind,
        };
        let length = match (self.basis, kind) {
            (BasisFunction::Cosine, 1) => 2.0 * (n as f64 - 1.0),
            (BasisFunction::Sine, 1) => 2.0 * (n as f64 + 1.0),
            _ => 2.0 * n as f64,
        };
        let factor = match (norm, self.inverse) {
            (Norm::Ortho, _) => length.sqrt().recip(),
            (Norm::Backward, true) | (Norm::Forward, false) => length.recip(),
            _ => 1.0,
        };
        // `ends` states, for the first and for the last element, whether the norm of its basis function differs from that of the other
        // basis functions. An orthonormal transform scales such an element.
        let ends = match (self.basis, kind) {
            (BasisFunction::Cosine, 1) => (true, true),
            (BasisFunction::Cosine, 2 | 3) => (true, false),
            (BasisFunction::Sine, 2 | 3) => (false, true),
            _ => (false, false),
        };
        let is_ortho = norm == Norm::Ortho && ends != (false, false);
        let lines = if is_ortho && kind != 2 { scale_first_and_last(lines, ends, SQRT_2)? } else { lines.clone() };
        let result = if self.basis == BasisFunction::Cosine { cosine_transform(&lines, kind)? } else { sine_transform(&lines, kind)? };
        let result = if is_ortho && kind != 3 { scale_first_and_last(&result, ends, FRAC_1_SQRT_2)? } else { result };
        if factor == 1.0 { Ok(result) } else { multiply(result, factor) }
    }
}

/// Declares the functions of trigonometric transforms: name, NumPy's signature, transform. All functions have the same parameters.
macro_rules! trigonometric_transforms {
    ($($(#[$doc:meta])* $name:ident $signature:literal $transform:expr;)*) => {$(
        $(#[$doc])*
        #[numpy($signature)]
        pub fn $name(
            x: &NdArray,
            #[name("type")] kind: i64,
            n: Option<usize>,
            #[read(isize)] axis: impl IntegerArgument,
            norm: Norm,
        ) -> Result<NdArray> {
            $transform.transform_axis(x, kind, n, axis.saturating_isize(), norm)
        }
    )*};
}

trigonometric_transforms! {
    /// Returns the discrete cosine transform of type `kind`, 1 to 4, along an axis (`scipy.fft.dct`).
    ///
    /// `n` crops the axis or appends zeros. [`Norm::Ortho`] makes the matrix of the transform orthogonal. The result is float32 for
    /// float16, bfloat16 and float32, and float64 for other real dtypes. The real and imaginary parts of complex numbers are transformed
    /// separately.
    ///
    /// # Errors
    /// An unknown type, an axis out of bounds, or fewer points than the type needs: 2 for type 1, and 1 for the others.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
    /// use cuprum::fft::{Norm, dct, idct};
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.0, 2.0, 3.0, 4.0])?;
    /// let spectrum = dct(&a, 2, None, -1, Norm::Ortho)?;
    /// assert!((spectrum.to_vec::<f64>()?[0] - 5.0).abs() < 1e-14);
    /// let same = idct(&spectrum, 2, None, -1, Norm::Ortho)?;
    /// assert!(same.subtract(&a)?.abs()?.max(())?.item()?.as_f64() < 1e-14);
    /// # Ok(())
    /// # }
    /// ```
    dct "fft.dct(x, type=2, n=None, axis=-1, norm=None)" TrigonometricTransform { name: "dct", basis: BasisFunction::Cosine, inverse: false };

    /// Returns the inverse of the discrete cosine transform of type `kind` along an axis (`scipy.fft.idct`).
    ///
    /// # Errors
    /// The errors of [`dct`].
    idct "fft.idct(x, type=2, n=None, axis=-1, norm=None)" TrigonometricTransform { name: "idct", basis: BasisFunction::Cosine, inverse: true };

    /// Returns the discrete sine transform of type `kind`, 1 to 4, along an axis (`scipy.fft.dst`).
    ///
    /// The arguments and dtypes are those of [`dct`].
    ///
    /// # Errors
    /// The errors of [`dct`], except that one point suffices for every type.
    dst "fft.dst(x, type=2, n=None, axis=-1, norm=None)" TrigonometricTransform { name: "dst", basis: BasisFunction::Sine, inverse: false };

    /// Returns the inverse of the discrete sine transform of type `kind` along an axis (`scipy.fft.idst`).
    ///
    /// # Errors
    /// The errors of [`dst`].
    idst "fft.idst(x, type=2, n=None, axis=-1, norm=None)" TrigonometricTransform { name: "idst", basis: BasisFunction::Sine, inverse: true };
}

/// Returns the convolution of two arrays along axes, all by default, by Fourier transforms (`scipy.signal.fftconvolve`).
///
/// The other axes are broadcast. Mode `same` returns the central part of the size of `in1`, and `valid` the part where the arrays overlap
/// completely, which requires one array to be at least as large as the other along every axis. The result is float32 or complex64 if both
/// arrays are float16, bfloat16, float32 or complex64, and float64 or complex128 otherwise. If an array is empty, the result is an
/// empty 1-D array.
///
/// # Errors
/// Different numbers of axes, extents that cannot be broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{ConvolutionMode, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 2.0, 3.0])?;
/// let b = NdArray::from_slice(&[1.0, 1.0])?;
/// let c = cuprum::fft::fftconvolve(&a, &b, ConvolutionMode::Full, ())?;
/// assert!(c.subtract(&NdArray::from_slice(&[1.0, 3.0, 5.0, 3.0])?)?.abs()?.max(())?.item()?.as_f64() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("fft.fftconvolve(in1, in2, mode='full', axes=None)")]
pub fn fftconvolve(in1: &NdArray, in2: &NdArray, mode: ConvolutionMode, axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "fftconvolve";
    if in1.ndim() != in2.ndim() {
        return Err(Error::shape(name, "the arrays must have the same number of axes", &[in1.shape(), in2.shape()]));
    }
    let axes = axes.into().resolve(name, in1.ndim())?;
    if in1.size() == 0 || in2.size() == 0 {
        return new_filled_array(in1, &[0], 0, DType::F64);
    }
    // Only axes with several elements in both arrays need Fourier transforms. The product broadcasts the other axes.
    let axes: Vec<usize> = axes.into_iter().filter(|&a| in1.shape()[a] != 1 && in2.shape()[a] != 1).collect();
    let is_shorter = |a: &usize| in1.shape()[*a] < in2.shape()[*a];
    let is_swapped = mode == ConvolutionMode::Valid && axes.iter().any(is_shorter);
    if is_swapped && axes.iter().any(|&a| in1.shape()[a] > in2.shape()[a]) {
        let message = "mode 'valid' takes one array that is at least as large as the other along every axis";
        return Err(Error::shape(name, message, &[in1.shape(), in2.shape()]));
    }
    let (a, b) = if is_swapped { (in2, in1) } else { (in1, in2) };
    let is_complex = a.dtype().is_complex() || b.dtype().is_complex();
    // As in SciPy, the product is computed in the precision of the Fourier transforms: float32 for 16-bit floats, and float64 for integers.
    let of_transform = |dtype| match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        dtype if dtype.is_inexact() => dtype,
        _ => DType::F64,
    };
    let common = of_transform(a.dtype()).promote(of_transform(b.dtype()));
    let (a, b) = (a.astype(common)?, b.astype(common)?);
    let mut result = if axes.is_empty() {
        multiply(&a, &b)?
    } else {
        let full = |axis: &usize| a.shape()[*axis] + b.shape()[*axis] - 1;
        let lengths: Vec<isize> = axes.iter().map(|axis| Ok(next_fast_len(full(axis), !is_complex)? as isize)).collect::<Result<_>>()?;
        let of = |x: &NdArray| match is_complex {
            true => fftn(x, Some(&lengths), &axes, Norm::Backward),
            false => rfftn(x, Some(&lengths), &axes, Norm::Backward),
        };
        let product = multiply(of(&a)?, of(&b)?)?;
        match is_complex {
            true => ifftn(&product, Some(&lengths), &axes, Norm::Backward)?,
            false => irfftn(&product, Some(&lengths), &axes, Norm::Backward)?,
        }
    };
    for axis in 0..a.ndim() {
        let (m, n, is_transformed) = (a.shape()[axis], b.shape()[axis], axes.contains(&axis));
        let full = if is_transformed { m + n - 1 } else { m.max(n) };
        let length = match mode {
            ConvolutionMode::Same => m,
            ConvolutionMode::Valid if is_transformed => m - n + 1,
            _ => full,
        };
        let start = (full - length) / 2;
        result = slice_axis(&result, axis, start as isize, (start + length) as isize, 1)?;
    }
    Ok(result)
}
