//! Kernels of the CPU backend for the family `Fft`: rustfft's transforms over strided arrays of any rank, on several threads.
//!
//! The kernels read arrays in memory. Kernels that read fused expressions are in `cuprum-backend-cpu`. The interface is internal to that
//! crate and changes with it.
#![deny(unsafe_code)]

mod axis_pass;
mod line_transform;
mod long_line;
mod plan_cache;

use bytemuck::Pod;
use cuprum_core::call::{Fft, FftKind};
use cuprum_core::host_buffer::element_offsets;
use cuprum_core::layout::{Dims, Layout};
use cuprum_core::{Array, Call, DType, Element, Error, Result, StoredArray};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, HostVec, add_op_to_out_of_memory_error};
use num_complex::Complex;

use self::axis_pass::{StridedSource, transform_in_place, transform_lines};
use self::line_transform::{ComplexToComplex, HalfSpectrumToReal, RealToFullSpectrum, RealToHalfSpectrum};
use self::long_line::SplitTransform;
use self::plan_cache::TransformFloat;

/// Transforms `values` into `out`, the output of `call`. If `values` is `None`, transforms the complex values in `out` in place.
///
/// Only the axis that the first pass transforms ([`first_transformed_axis`]) may be longer in the transform than in `values`. The missing
/// values are zeros.
///
/// # Errors
/// Returns an error if scratch memory cannot be allocated, or if the output of `call` is not float32, float64 or complex.
pub fn fourier_transform(call: &Call, request: &Fft, values: Option<&StoredArray>, out: ElementsMut) -> Result<()> {
    let shape = call.outputs[0].layout.shape();
    let done = match call.outputs[0].dtype.real() {
        DType::F32 => transform_typed::<f32>(request, shape, values, out),
        DType::F64 => transform_typed::<f64>(request, shape, values, out),
        other => Err(Error::dtype(call.op.name(), "has no transform of this dtype", &[other])),
    };
    done.map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))
}

/// Returns the axis that the first pass transforms, or `None` if there is none. For [`FftKind::RealToComplex`] it is the halved axis, along
/// which only non-negative frequencies exist. For other kinds it is the last axis with a complex transform. If there is no such axis, it is
/// the halved axis.
pub fn first_transformed_axis(request: &Fft) -> Option<usize> {
    match request.kind {
        FftKind::Complex => request.axes.iter().copied().max(),
        FftKind::RealToComplex => request.axes.last().copied(),
        FftKind::ComplexToReal => request.axes.split_last().map(|(half, others)| others.iter().copied().max().unwrap_or(*half)),
    }
}

/// Transforms `values`, or the values in `out` if `values` is `None`, into `out` of extents `shape`. `T` is the type of real numbers and of
/// the parts of complex numbers.
fn transform_typed<T: TransformFloat>(request: &Fft, shape: &[usize], values: Option<&StoredArray>, out: ElementsMut) -> Result<()>
where
    Complex<T>: Element + Pod,
{
    let Some((&half, others)) = request.axes.split_last() else { return Ok(()) };
    let n = request.lengths[others.len()];
    let scale = T::from_f64(request.scale).unwrap_or_else(T::one);
    match (request.kind, values) {
        (FftKind::ComplexToReal, Some(values)) => {
            let transform = HalfSpectrumToReal::<T>::new_for_length(n)?;
            let (buffer, layout) = (Elements::from_whole_buffer(values)?.typed_slice::<Complex<T>>(), values.layout());
            if others.is_empty() {
                return transform_lines(&transform, StridedSource { buffer, layout }, half, out.typed_slice(), scale);
            }
            let mut extents: Dims = shape.into();
            extents[half] = values.layout().shape()[half];
            let spectrum = Layout::contiguous(&extents)?;
            let mut memory = HostVec::<Complex<T>>::allocate(spectrum.size())?;
            let to = memory.as_mut_slice();
            transform_complex_axes(
                request,
                others,
                Some(TransformInput::Complex(StridedSource { buffer, layout })),
                &extents,
                to,
                T::one(),
            )?;
            transform_lines(&transform, StridedSource { buffer: to, layout: &spectrum }, half, out.typed_slice(), scale)
        }
        (FftKind::RealToComplex, Some(values)) => {
            let source = StridedSource { buffer: Elements::from_whole_buffer(values)?.typed_slice::<T>(), layout: values.layout() };
            let to = out.typed_slice::<Complex<T>>();
            let first = if others.is_empty() { scale } else { T::one() };
            transform_lines(&RealToHalfSpectrum::<T>::new_for_length(n)?, source, half, to, first)?;
            transform_complex_axes(request, others, None, shape, to, scale)
        }
        (FftKind::Complex, values) => {
            let values = match values {
                Some(a) if a.dtype().is_complex() => Some(TransformInput::Complex(StridedSource {
                    buffer: Elements::from_whole_buffer(a)?.typed_slice(),
                    layout: a.layout(),
                })),
                Some(a) => Some(TransformInput::TransformFloat(StridedSource {
                    buffer: Elements::from_whole_buffer(a)?.typed_slice(),
                    layout: a.layout(),
                })),
                None => None,
            };
            transform_complex_axes(request, request.axes, values, shape, out.typed_slice(), scale)
        }
        (_, None) => Err(Error::backend("cpu", "fft", "a transform of real numbers has no values")),
    }
}

/// The input values of a transform with complex results.
enum TransformInput<'a, T> {
    TransformFloat(StridedSource<'a, T>),
    Complex(StridedSource<'a, Complex<T>>),
}

/// Transforms along `axes`, the last axis first. The first pass reads `values`, or `out` if `values` is `None`. The other passes transform
/// `out` in place. The extents of `out` are `shape`.
fn transform_complex_axes<T: TransformFloat>(
    request: &Fft,
    axes: &[usize],
    values: Option<TransformInput<T>>,
    shape: &[usize],
    out: &mut [Complex<T>],
    scale: T,
) -> Result<()> {
    let mut order: Dims = axes.into();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut values = values;
    for (i, &axis) in order.iter().enumerate() {
        let (n, scale) = (shape[axis], if i + 1 == order.len() { scale } else { T::one() });
        match values.take() {
            Some(TransformInput::TransformFloat(source)) => {
                transform_lines(&RealToFullSpectrum::<T>::new_for_length(n, request.inverse)?, source, axis, out, scale)?;
            }
            Some(TransformInput::Complex(source)) => {
                if source.layout.shape()[axis] == n && try_transform_long_lines(Some(&source), request.inverse, shape, axis, out, scale)? {
                    continue;
                }
                transform_lines(&ComplexToComplex::<T>::new_for_length(n, request.inverse)?, source, axis, out, scale)?;
            }
            None => {
                if !try_transform_long_lines(None, request.inverse, shape, axis, out, scale)? {
                    transform_in_place(&ComplexToComplex::<T>::new_for_length(n, request.inverse)?, shape, axis, out, scale)?
                }
            }
        }
    }
    Ok(())
}

/// Transforms lines (1-D slices) along the last axis that are long enough for several threads to share a line, from `source` or in place.
/// Returns `false` without transforming for other lines.
fn try_transform_long_lines<T: TransformFloat>(
    source: Option<&StridedSource<Complex<T>>>,
    inverse: bool,
    shape: &[usize],
    axis: usize,
    out: &mut [Complex<T>],
    scale: T,
) -> Result<bool> {
    let n = shape[axis];
    if axis + 1 != shape.len() {
        return Ok(false);
    }
    let Some(transform) = SplitTransform::<T>::new_for_length(n, out.len() / n.max(1), inverse)? else { return Ok(false) };
    let mut memory = transform.allocate_columns()?;
    let columns = memory.as_mut_slice();
    let Some(StridedSource { buffer, layout }) = source else {
        for line in out.chunks_exact_mut(n) {
            transform.transform_columns(line, 0, 1, columns)?;
            transform.transform_rows(columns, line, scale)?;
        }
        return Ok(true);
    };
    let starts = Layout::strided(&layout.shape()[..axis], &layout.strides()[..axis], layout.offset())?;
    for (line, start) in out.chunks_exact_mut(n).zip(element_offsets(&starts)) {
        transform.transform_columns(buffer, start as usize, layout.strides()[axis], columns)?;
        transform.transform_rows(columns, line, scale)?;
    }
    Ok(true)
}
