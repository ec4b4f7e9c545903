//! Kernel of the family `Fill`: constants, ranges and identity matrices.

use cuprum_core::rounding::{to_bf16, to_f16};
use cuprum_core::{Call, Complex, DType, Element, Fill, Kind, Outcome, Result, Scalar, Work, bf16, decline, f16, with_dtype};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{ElementsMut, Output, convert_scalar_to_bits};
use cuprum_cpu_base::with_bits;
use cuprum_cpu_elementwise::elementwise_loops::splat;

/// Number of output elements that one task fills.
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// Computes the output of `call`, which fills an array with a constant, a range or an identity matrix.
pub(crate) fn fill_output(call: &Call) -> Result<Outcome> {
    let Work::Fill(fill) = &call.work else { decline!("not a fill") };
    let dtype = call.outputs[0].dtype;
    let is_zero = |s: Scalar| s.to_bytes(dtype) == [0; 16];
    let mut output = match fill {
        Fill::Undefined => Output::allocate_zeroed(call, 0)?,
        Fill::Constant(value) if is_zero(*value) => Output::allocate_zeroed(call, 0)?,
        _ => Output::allocate(call, 0)?,
    };
    let elements = output.elements_mut()?;
    match *fill {
        Fill::Undefined => {}
        Fill::Constant(value) if is_zero(value) => {}
        Fill::Constant(value) => for_each_chunk(elements, |_, run| splat(value, run)),
        Fill::Arange { start, second, step } => fill_arange(elements, start, second, step),
        Fill::Linspace { start, stop, step, count, endpoint } => fill_linspace(elements, start, stop, step, count, endpoint),
        Fill::Eye { k } => {
            let columns = call.outputs[0].layout.shape().get(1).copied().unwrap_or(1).max(1);
            fill_eye(elements, columns, k);
        }
    }
    call.outcome_from_buffers([output.into_buffer()])
}

/// Calls `body` on several threads for chunks of `elements`, with the index of the chunk's first element.
fn for_each_chunk(elements: ElementsMut, body: impl Fn(usize, ElementsMut) + Sync) {
    let cost = elements.len();
    threads::for_each(elements.chunks(ELEMENTS_PER_TASK).enumerate(), cost, || (), |_, (i, run)| body(i * ELEMENTS_PER_TASK, run));
}

/// Element types to which complex128 values are converted.
pub(crate) trait FromComplex128: Element {
    /// Converts `value` to this type with one rounding. Conversion to integers truncates and saturates.
    fn from_complex128(value: Complex<f64>) -> Self;
}
macro_rules! from_complex128 {
    ($($t:ty: $v:ident => $e:expr),* $(,)?) => {$(
        impl FromComplex128 for $t {
            #[inline(always)]
            fn from_complex128($v: Complex<f64>) -> $t { $e }
        }
    )*};
}
from_complex128! {
    bool: v => v.re != 0.0 || v.im != 0.0,
    i8: v => v.re as i8, i16: v => v.re as i16, i32: v => v.re as i32, i64: v => v.re as i64,
    u8: v => v.re as u8, u16: v => v.re as u16, u32: v => v.re as u32, u64: v => v.re as u64,
    f16: v => to_f16(v.re), bf16: v => to_bf16(v.re), f32: v => v.re as f32, f64: v => v.re,
    Complex<f32>: v => Complex::new(v.re as f32, v.im as f32), Complex<f64>: v => v,
}

/// Writes `start` to element 0, `second` to element 1 and `start + i * step` to each further element `i`. Computes in 128-bit integers
/// (wrapping) for integers and bool, in float64 for float64 and complex128, and in float32 for all other dtypes.
fn fill_arange(elements: ElementsMut, start: Scalar, second: Scalar, step: Scalar) {
    let dtype = elements.dtype();
    match dtype.kind() {
        Kind::Bool | Kind::Signed | Kind::Unsigned => {
            let (start, step) = (start.as_int().unwrap_or(start.as_f64() as i128), step.as_int().unwrap_or(step.as_f64() as i128));
            for_each_chunk(elements, |first, run| {
                let at = |i: usize| Scalar::Int(start.wrapping_add(step.wrapping_mul((first + i) as i128)));
                with_bits!(dtype, T => {
                    run.typed_slice::<T>().iter_mut().enumerate().for_each(|(i, v)| *v = convert_scalar_to_bits(at(i), dtype))
                });
            });
        }
        _ if matches!(dtype, DType::F64 | DType::C128) => {
            let (start, second, step) = (start.as_complex(), second.as_complex(), step.as_complex());
            fill_sequence_with_first_two(elements, [start, second], |i| start + step * i as f64);
        }
        _ => {
            let narrow = |s: Scalar| Complex::new(s.as_complex().re as f32, s.as_complex().im as f32);
            let widen = |v: Complex<f32>| Complex::new(v.re as f64, v.im as f64);
            let (start, second, step) = (narrow(start), narrow(second), narrow(step));
            fill_sequence_with_first_two(elements, [widen(start), widen(second)], |i| widen(start + step * i as f32));
        }
    }
}

/// Writes `first_two` to elements 0 and 1 and `at(i)` to each further element `i`.
fn fill_sequence_with_first_two(elements: ElementsMut, first_two: [Complex<f64>; 2], at: impl Fn(usize) -> Complex<f64> + Sync) {
    for_each_chunk(elements, |first, mut run| {
        fill_complex_sequence(run.reborrow(), |i| at(first + i));
        if first == 0 {
            fill_complex_sequence(run.slice(0, run.len().min(2)), |i| first_two[i]);
        }
    });
}

fn fill_complex_sequence(run: ElementsMut, at: impl Fn(usize) -> Complex<f64>) {
    with_dtype!(run.dtype(), T => run.typed_slice::<T>().iter_mut().enumerate().for_each(|(i, v)| *v = T::from_complex128(at(i))));
}

fn fill_linspace(elements: ElementsMut, start: Scalar, stop: Scalar, step: Scalar, count: usize, endpoint: bool) {
    let (start, stop, step) = (start.as_complex(), stop.as_complex(), step.as_complex());
    for_each_chunk(elements, |first, run| {
        fill_complex_sequence(run, |i| {
            let n = first + i;
            if endpoint && n + 1 == count { stop } else { Complex::new(start.re + step.re * n as f64, start.im + step.im * n as f64) }
        })
    });
}

fn fill_eye(elements: ElementsMut, columns: usize, k: i64) {
    for_each_chunk(elements, |first, run| {
        let dtype = run.dtype();
        with_bits!(dtype, T => {
            let values = run.typed_slice::<T>();
            values.fill(T::default());
            let one: T = convert_scalar_to_bits(Scalar::Int(1), dtype);
            // If the diagonal element of a row is in this chunk, sets it to 1.
            for row in first / columns..(first + values.len()).div_ceil(columns) {
                let column = row as i128 + k as i128;
                if (0..columns as i128).contains(&column)
                    && let Some(v) = (row * columns + column as usize).checked_sub(first).and_then(|at| values.get_mut(at))
                {
                    *v = one;
                }
            }
        });
    });
}
