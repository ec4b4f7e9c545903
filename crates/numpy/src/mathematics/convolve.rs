//! Convolution and correlation of 1-D arrays: `convolve` and `correlate`.

use cuprum_core::dispatch::any_kernel_has_capability;
use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    Array, Capability, DType, Device, Error, Family, Item, Layout, NdArray, Result, StoredArray, concat, flip, greater_equal, isfinite,
    less, matmul, multiply, numpy, where_,
};

use crate::operand_and_slice_helpers::{index_range, new_filled_array, with_at_least_ndim};

/// The part of a convolution to return (`mode=` of `numpy.convolve`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConvolutionMode {
    /// All points where the arrays overlap.
    #[default]
    Full,
    /// The central points, as many as the longer array has elements.
    Same,
    /// The points where the arrays overlap completely.
    Valid,
}

impl FromArgs for ConvolutionMode {
    fn from_args(args: &Args, name: &str) -> Result<ConvolutionMode> {
        match args.value(name) {
            Some(Value::Str(mode)) if mode == "full" => Ok(ConvolutionMode::Full),
            Some(Value::Str(mode)) if mode == "same" => Ok(ConvolutionMode::Same),
            Some(Value::Str(mode)) if mode == "valid" => Ok(ConvolutionMode::Valid),
            _ => Err(Error::value(args.op(), "mode must be one of 'valid', 'same', or 'full'")),
        }
    }
}

/// Maximum number of multiplications in one contraction on a device that copies the windows of the signal to memory.
const MAX_PRODUCTS_WITH_COPIED_WINDOWS: usize = 1 << 22;
/// Maximum number of multiplications in one contraction that reads the windows in place. More would exceed the maximum size of an array.
const MAX_PRODUCTS_WITH_WINDOW_VIEWS: usize = if usize::BITS == 64 { (1_u64 << 48) as usize } else { i32::MAX as usize };

/// Returns the dot products of `kernel` with all windows of `signal`, which is padded with zeros as `mode` requires. `kernel` must not be
/// longer than `signal`.
fn sum_window_products(name: &'static str, signal: &NdArray, kernel: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    let dtype = signal.dtype().promote(kernel.dtype());
    let m = kernel.size();
    let (before, after) = match mode {
        ConvolutionMode::Full => (m - 1, m - 1),
        ConvolutionMode::Same => (m / 2, m - m / 2 - 1),
        ConvolutionMode::Valid => (0, 0),
    };
    let zeros = |n: usize| new_filled_array(signal, &[n], 0, dtype);
    let (n, signal) = (signal.size(), signal.astype(dtype)?);
    let padded = if m > 1 && mode != ConvolutionMode::Valid { concat(&[zeros(before)?, signal, zeros(after)?], 0)? } else { signal };
    let stored = padded.contiguous()?.stored()?;
    let count = stored.layout().size() + 1 - m;
    let column = kernel.astype(dtype)?.contiguous()?;
    // Contractions on the CPU read windows of float32 and float64 in place.
    let reads_in_place = match stored.device() {
        Device::CPU => matches!(dtype, DType::F32 | DType::F64),
        device => any_kernel_has_capability(Capability::OverlappingWindows, Family::Contract, device)?,
    };
    let max_products = if reads_in_place { MAX_PRODUCTS_WITH_WINDOW_VIEWS } else { MAX_PRODUCTS_WITH_COPIED_WINDOWS };
    // Consecutive windows are shifted by one element, so the view of all windows has stride 1 along both axes.
    let rows = (max_products / m).max(1);
    let mut parts = Vec::with_capacity(count.div_ceil(rows));
    for start in (0..count).step_by(rows) {
        let windows = Layout::strided(&[rows.min(count - start), m], &[1, 1], stored.layout().offset() + start)?;
        let windows = NdArray::from(stored.with_layout(windows)?);
        parts.push(matmul(&windows, &column)?);
    }
    let mut sums = match &parts[..] {
        [whole] => whole.clone(),
        [] => return Err(Error::value(name, "the arrays have no overlap")),
        parts => concat(parts, 0)?,
    };
    drop(parts);
    // On other devices than the CPU, reading whether the kernel is finite would wait for the device.
    let is_exact = before == 0 || !dtype.is_inexact() || (stored.device() == Device::CPU && isfinite(&column)?.all(())?.item()?.as_bool());
    if is_exact {
        return Ok(sums);
    }
    // The product of a padding zero and an infinity or NaN is NaN. The sums of windows with padding are therefore computed again, without
    // the padding.
    let (first, last) = (0, count - before);
    sums.assign(
        Item::slice(None, before as isize, 1),
        window_products_skipping_padding(&stored, first, before, &column, |at| greater_equal(at, before))?,
    )?;
    sums.assign(
        Item::slice(last as isize, None, 1),
        window_products_skipping_padding(&stored, last, before, &column, |at| less(at, before + n - last))?,
    )?;
    Ok(sums)
}

/// Returns the dot products of `kernel` with `count` consecutive windows of `padded`, beginning with window `start`. Elements of the
/// padding do not take part. `is_inside` receives indices of elements relative to `start`, and returns whether they are outside the
/// padding.
fn window_products_skipping_padding(
    padded: &StoredArray,
    start: usize,
    count: usize,
    kernel: &NdArray,
    is_inside: impl FnOnce(&NdArray) -> Result<NdArray>,
) -> Result<NdArray> {
    let m = kernel.size();
    let windows = |of: &StoredArray, start: usize| -> Result<NdArray> {
        let layout = Layout::strided(&[count, m], &[1, 1], of.layout().offset() + start)?;
        Ok(NdArray::from(of.with_layout(layout)?))
    };
    let is_inside = is_inside(&windows(&index_range(padded.device(), count + m - 1)?.stored()?, 0)?)?;
    // Products of 16-bit floats are computed in float32. Only the sum is rounded, as in a contraction.
    let dtype = kernel.dtype();
    let work = if dtype.itemsize() == 2 { DType::F32 } else { dtype };
    let products = multiply(windows(padded, start)?.astype(work)?, kernel.astype(work)?)?;
    where_(is_inside, products, 0)?.sum(-1)?.astype(dtype)
}

/// Returns both arrays as 1-D arrays: a 0-d array becomes one element. Arrays of more dimensions and empty arrays are errors.
fn as_1d_signals(name: &'static str, a: &NdArray, v: &NdArray) -> Result<(NdArray, NdArray)> {
    let (a, v) = (with_at_least_ndim(a, 1)?, with_at_least_ndim(v, 1)?);
    if a.ndim() > 1 || v.ndim() > 1 {
        return Err(Error::shape(name, "object too deep for desired array; the arrays must be 1-D", &[a.shape(), v.shape()]));
    }
    for (array, which) in [(&a, "a"), (&v, "v")] {
        if array.size() == 0 {
            return Err(Error::shape(name, format!("{which} cannot be empty"), &[array.shape()]));
        }
    }
    Ok((a, v))
}

/// Returns the discrete convolution of two 1-D arrays (`numpy.convolve`).
///
/// The longer array is padded with zeros, unless the mode is [`ConvolutionMode::Valid`]. A strided view has all sliding windows of this
/// array. One contraction multiplies the windows by the reversed shorter array; long arrays take several contractions. The result has the
/// promoted dtype.
///
/// Passes over memory: one that adds the zeros, and one contraction. The contraction reads the windows in place on a GPU, and on the CPU
/// for float32 and float64. Windows of other dtypes are copied in blocks. The points where floating-point arrays overlap in part are
/// computed again without the zeros; on the CPU only if the shorter array has an infinity or NaN.
///
/// # Errors
/// Empty arrays, arrays of more than one dimension, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{ConvolutionMode, NdArray, convolve};
/// # fn main() -> cuprum::Result<()> {
/// let (a, v) = (NdArray::from_slice(&[1.0, 2.0, 3.0])?, NdArray::from_slice(&[0.0, 1.0, 0.5])?);
/// assert_eq!(convolve(&a, &v, ConvolutionMode::Full)?.to_vec::<f64>()?, [0.0, 1.0, 2.5, 4.0, 1.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("convolve(a, v, mode='full')")]
pub fn convolve(a: &NdArray, v: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    let (a, v) = as_1d_signals("convolve", a, v)?;
    let (longer, shorter) = if v.size() > a.size() { (&v, &a) } else { (&a, &v) };
    sum_window_products("convolve", longer, &flip(shorter, None)?, mode)
}

/// Returns the cross-correlation of two 1-D arrays, `sum(a[n + k] * conj(v[n]))` for each `k` (`numpy.correlate`).
///
/// The method is that of [`convolve`], but the shorter array is not reversed. NumPy's default mode is [`ConvolutionMode::Valid`].
///
/// Passes over memory: those of [`convolve`].
///
/// # Errors
/// Empty arrays, arrays that are not 1-D, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{ConvolutionMode, array, correlate};
/// # fn main() -> cuprum::Result<()> {
/// let c = correlate(&array![1.0, 2.0, 3.0], &array![0.0, 1.0, 0.5], ConvolutionMode::Valid)?;
/// assert_eq!(c, array![3.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("correlate(a, v, mode='valid')")]
pub fn correlate(a: &NdArray, v: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    if a.ndim() == 0 || v.ndim() == 0 {
        return Err(Error::shape(
            "correlate",
            "object of too small depth for desired array; the arrays must be 1-D",
            &[a.shape(), v.shape()],
        ));
    }
    let (a, v) = as_1d_signals("correlate", a, v)?;
    let v = v.conj()?;
    match v.size() > a.size() {
        true => flip(&sum_window_products("correlate", &v, &a, mode)?, None),
        false => sum_window_products("correlate", &a, &v, mode),
    }
}
