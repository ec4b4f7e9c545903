//! CUDA kernels of the family `Fft`: transforms by cuFFT, which reads and writes strided arrays if its interface can describe them. Other
//! arrays are copied to C order, with the transformed axes last. If the input is an expression, or is scaled or padded, it is first
//! computed into new memory.

#[allow(unsafe_code)] // cuFFT's C interface
pub mod cufft;

use std::any::Any;
use std::sync::Arc;

use cuprum_core::call;
use cuprum_core::call::{Fft, FftKind, OutputSpec};
use cuprum_core::device::Buffer;
use cuprum_core::layout::{Dims, Layout};
use cuprum_core::ops::elementwise::MULTIPLY;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, DeclineReason, Error, Outcome, Result, Scalar, StepKind, StoredArray, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, ctype};
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::error::CudaError;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};
use crate::families::{copy, map};
use cufft::{BatchLayout, CufftPlanShape, TransformType};

static FFT_SOURCE: KernelSource = KernelSource { name: "fft.cu", text: include_str!("../kernels/fft.cu") };

/// Maximum number of axes of a cuFFT plan.
const MAX_CUFFT_RANK: usize = 3;
/// Maximum number of cuFFT calls for one operation. If a layout needs more, the array is copied so that one call suffices.
const MAX_CUFFT_CALLS: usize = 64;

/// Returns names and sources of the kernels, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    [DType::F32, DType::F64].map(|dtype| FFT_SOURCE.named_source(&[("T", ctype(dtype))])).into()
}

/// Executes `call`, an operation of the kernel family `Fft`, on the device.
pub fn run_fft(call: &Call) -> Result<Outcome> {
    let (Work::Fft(fft), [spec]) = (&call.work, call.outputs) else { decline!("not a Fourier transform") };
    if let Some(op) = fft.program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let context = device::context(call.device)?;
    match cufft::load_cufft(context) {
        Err(CudaError::Missing(why)) => decline!("{why}"),
        loaded => loaded.with_call_context(call)?,
    }
    let transforms = FftCall { call, context, inverse: fft.inverse, is_double: spec.dtype.real() == DType::F64 };
    let (values, is_owned) = match transforms.prepare_input(fft)? {
        Ok(values) => values,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut axes: SmallVec<[(usize, usize); 4]> = fft.axes.iter().copied().zip(fft.lengths.iter().copied()).collect();
    let half = if fft.kind == FftKind::Complex { None } else { axes.pop() };
    axes.sort_unstable();
    axes.retain(|(_, n)| *n > 1); // a transform of one point changes nothing
    let out = match (fft.kind, half) {
        (FftKind::RealToComplex, Some(half)) => {
            let out = transforms.allocate_array(spec.dtype, spec.layout.clone())?;
            let kind = if transforms.is_double { TransformType::D2Z } else { TransformType::R2C };
            axes.push(half);
            // Transforms all axes with one plan if cuFFT supports that. Otherwise, the transform from real to complex numbers along the
            // axis `half` comes first. The transforms along the other axes follow, in place.
            if axes.len() > MAX_CUFFT_RANK || !transforms.try_queue_transforms_without_copy(kind, &values, &out, &axes)? {
                transforms.queue_transforms(kind, &values, &out, &[half])?;
                axes.pop();
                transforms.queue_complex_transforms(&out, &out, &axes)?;
            }
            out
        }
        (FftKind::ComplexToReal, Some(half)) => {
            // cuFFT overwrites the input of a transform to real numbers, so this transform needs a copy of the caller's array.
            let spectrum = if is_owned { values } else { transforms.copy_to_c_order(&values)? };
            transforms.queue_complex_transforms(&spectrum, &spectrum, &axes)?;
            transforms.clear_ignored_imaginary_parts(&spectrum, half)?;
            let out = transforms.allocate_array(spec.dtype, spec.layout.clone())?;
            let kind = if transforms.is_double { TransformType::Z2D } else { TransformType::C2R };
            transforms.queue_transforms(kind, &spectrum, &out, &[half])?;
            out
        }
        _ => {
            let out = if is_owned { values.clone() } else { transforms.allocate_array(spec.dtype, spec.layout.clone())? };
            transforms.queue_complex_transforms(&values, &out, &axes)?;
            out
        }
    };
    let buffer: Arc<dyn Any + Send + Sync> = out.buffer().clone();
    let buffer = buffer.downcast::<CudaBuffer>().map_err(|_| Error::backend("cuda", call.op.name(), "the result is not in GPU memory"))?;
    device::outcome_from_buffers(call, [buffer])
}

/// A call of the family `Fft`: the parameters that all its transforms share.
struct FftCall<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    inverse: bool,
    is_double: bool,
}

impl FftCall<'_> {
    fn allocate_array(&self, dtype: DType, layout: Layout) -> Result<StoredArray> {
        let buffer = device::allocate(self.call, layout.size().saturating_mul(dtype.itemsize()))?;
        StoredArray::new(dtype, layout, buffer as Arc<dyn Buffer>)
    }

    /// Returns a copy of `array` in C order.
    fn copy_to_c_order(&self, array: &StoredArray) -> Result<StoredArray> {
        let copy = self.allocate_array(array.dtype(), Layout::contiguous(array.shape())?)?;
        copy::queue_copy(self.call, array, &copy)?;
        Ok(copy)
    }

    /// Returns the input of the transforms: the result of `fft.program`, multiplied by the normalisation factor and padded with zeros. The
    /// flag is true if the result is in new memory in C order, and false if it is the caller's array. The inner error is the reason why
    /// this kernel family does not compute the transform.
    fn prepare_input(&self, fft: &Fft) -> Result<std::result::Result<(StoredArray, bool), DeclineReason>> {
        let given = fft.program.output_dtype(0);
        let dtype = if fft.kind == FftKind::Complex { given.promote(DType::C64) } else { given };
        let (mut values, mut is_owned) = match self.call.inputs {
            [only] if fft.program.is_identity() && dtype == given && fft.scale == 1.0 => (only.clone(), false),
            inputs => {
                let mut program = fft.program.clone();
                let mut root = program.outputs[0];
                if dtype != given {
                    root = program.push_step(StepKind::Cast, dtype, &[root]);
                }
                if fft.scale != 1.0 {
                    let factor = program.push_param(Scalar::Float(fft.scale), dtype);
                    root = program.push_step(StepKind::Apply(MULTIPLY), dtype, &[root, factor]);
                }
                program.outputs[0] = root;
                let outputs = [OutputSpec::contiguous(dtype, fft.shape)?];
                let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|a| a.layout()).chain([&outputs[0].layout]).collect();
                let plan = LoopPlan::new(&layouts);
                let work = Work::Map(call::Map { program: &program, plan: &plan });
                let Call { op, device, stream, .. } = *self.call;
                match map::run_map(&Call { op, device, stream, inputs, outputs: &outputs, work })? {
                    Outcome::Declined(reason) => return Ok(Err(reason)),
                    Outcome::Done(mut results) => match results.pop() {
                        Some(values) => (values, true),
                        None => return Err(Error::backend("cuda", op.name(), "a map without a result")),
                    },
                }
            }
        };
        let mut full: Dims = fft.shape.into();
        fft.axes.iter().enumerate().for_each(|(i, &axis)| full[axis] = fft.used_input_extent(i));
        if full[..] != *fft.shape {
            let layout = Layout::contiguous(&full)?;
            let region = Layout::strided(fft.shape, layout.strides(), 0)?;
            let padded = self.allocate_array(dtype, layout)?;
            let memory = device::memory_to_read(&padded)?.memory();
            self.context.fill(memory, 0, [0u8; 4], memory.len() / 4).with_call_context(self.call)?;
            copy::queue_copy(self.call, &values, &padded.with_layout(region)?)?;
            (values, is_owned) = (padded, true);
        }
        Ok(Ok((values, is_owned)))
    }

    /// Queues complex transforms of `from` along `axes`, which are in ascending order. The results go to `to`, which is in C order and may
    /// be the same array as `from`.
    fn queue_complex_transforms(&self, from: &StoredArray, to: &StoredArray, axes: &[(usize, usize)]) -> Result<()> {
        let kind = if self.is_double { TransformType::Z2Z } else { TransformType::C2C };
        let is_same = Arc::ptr_eq(from.buffer(), to.buffer());
        let mut groups = axes.rchunks(MAX_CUFFT_RANK);
        let in_library = match groups.next() {
            _ if is_same => return axes.rchunks(MAX_CUFFT_RANK).try_for_each(|group| self.queue_transforms(kind, to, to, group)),
            Some(group) => self.try_queue_transforms_without_copy(kind, from, to, group)?,
            None => false,
        };
        if !in_library {
            copy::queue_copy(self.call, from, to)?;
            groups = axes.rchunks(MAX_CUFFT_RANK);
        }
        groups.try_for_each(|group| self.queue_transforms(kind, to, to, group))
    }

    /// Queues transforms of `from` along `axes`, with results in `to`. If cuFFT cannot describe the layouts, transforms a copy in which the
    /// transformed axes are the last ones.
    fn queue_transforms(&self, kind: TransformType, from: &StoredArray, to: &StoredArray, axes: &[(usize, usize)]) -> Result<()> {
        if self.try_queue_transforms_without_copy(kind, from, to, axes)? {
            return Ok(());
        }
        let ndim = from.layout().ndim();
        let others = (0..ndim).filter(|a| axes.iter().all(|(axis, _)| axis != a));
        let order: SmallVec<[isize; 6]> = others.chain(axes.iter().map(|(axis, _)| *axis)).map(|a| a as isize).collect();
        let moved = |array: &StoredArray| array.with_layout(array.layout().permute(&order)?);
        let source = self.copy_to_c_order(&moved(from)?)?;
        let target = moved(to)?;
        let result = match from.dtype() == to.dtype() {
            true => source.clone(),
            false => self.allocate_array(to.dtype(), Layout::contiguous(target.shape())?)?,
        };
        let last: SmallVec<[(usize, usize); 4]> = axes.iter().enumerate().map(|(i, (_, n))| (ndim - axes.len() + i, *n)).collect();
        if !self.try_queue_transforms_without_copy(kind, &source, &result, &last)? {
            return Err(Error::backend("cuda", self.call.op.name(), "cuFFT takes no contiguous array"));
        }
        copy::queue_copy(self.call, &result, &target)
    }

    /// Queues transforms of `from` along `axes`, with results in `to`, without copying the arrays. Returns `false` if cuFFT cannot describe
    /// the layouts.
    fn try_queue_transforms_without_copy(
        &self,
        kind: TransformType,
        from: &StoredArray,
        to: &StoredArray,
        axes: &[(usize, usize)],
    ) -> Result<bool> {
        let (input, output) = (device::pointer_to_read(from)?, device::pointer_to_read(to)?);
        // cuFFT requires real input to be aligned like complex numbers.
        let is_aligned = input.is_multiple_of(2 * from.dtype().real().itemsize() as u64);
        let Some(batches) = CufftCalls::plan_cufft_calls(kind, from.layout(), to.layout(), axes).filter(|_| is_aligned) else {
            return Ok(false);
        };
        let plan = self.context.get_or_make_fft_plan(&batches.shape).with_call_context(self.call)?;
        let work = if plan.work_bytes() > 0 { Some(device::allocate(self.call, plan.work_bytes())?) } else { None };
        let work = work.as_ref().map_or(0, |buffer| buffer.pointer());
        for [a, b] in batches.cufft_call_offsets() {
            let at = |address: u64, offset: i64, dtype: DType| address.wrapping_add_signed(offset * dtype.itemsize() as i64);
            let (input, output) = (at(input, a, from.dtype()), at(output, b, to.dtype()));
            // SAFETY: the plan's extents and strides come from layouts that were checked against their buffers. The arrays live until the
            // work is queued, and the work area is freed in stream order. Calls on one stream use the work area one after the other.
            unsafe { plan.execute(input, output, work, self.inverse) }.with_call_context(self.call)?;
        }
        Ok(true)
    }

    /// Queues a kernel that sets some imaginary parts of `spectrum` to 0: those that NumPy ignores in a transform to `n` real numbers along
    /// `axis`. `spectrum` is in C order.
    fn clear_ignored_imaginary_parts(&self, spectrum: &StoredArray, (axis, n): (usize, usize)) -> Result<()> {
        let shape = spectrum.shape();
        let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let sizes = [outer, shape[axis], inner, if n % 2 == 0 { n / 2 } else { 0 }].map(|n| n as i64);
        let address = device::pointer_to_read(spectrum)?;
        let queue = || {
            let dtype = spectrum.dtype().real();
            let function = FFT_SOURCE.get_or_compile_kernel(self.context, "clear_ignored_imaginary_parts", &[("T", ctype(dtype))])?;
            let mut args = Args::new();
            args.push(&address).push(&sizes);
            // SAFETY: the arguments match clear_ignored_imaginary_parts. The indices stay inside `spectrum`, a C-ordered array of the
            // extents that are passed.
            unsafe {
                function.launch(
                    kernel_lookup::grid_for_items((outer * inner) as u64, DEFAULT_THREADS_PER_BLOCK),
                    [DEFAULT_THREADS_PER_BLOCK, 1, 1],
                    0,
                    args.pointers(),
                )
            }
        };
        queue().with_call_context(self.call)
    }
}

/// The cuFFT calls that transform one array. All calls use the plan for `shape`, at different offsets in the input and output.
#[derive(Debug, PartialEq)]
struct CufftCalls {
    shape: CufftPlanShape,
    /// The axes over which the cuFFT calls loop: for each axis its extent, its stride in the input, and its stride in the output.
    loops: SmallVec<[(usize, [i64; 2]); 4]>,
}

impl CufftCalls {
    /// Plans the calls for transforms along `axes`, pairs of axis and length. Returns `None` if cuFFT cannot describe the layouts, or if
    /// the transforms need more than [`MAX_CUFFT_CALLS`] calls.
    fn plan_cufft_calls(kind: TransformType, from: &Layout, to: &Layout, axes: &[(usize, usize)]) -> Option<CufftCalls> {
        if axes.is_empty() || axes.len() > MAX_CUFFT_RANK {
            return None;
        }
        let (mut input, mut output) = (cufft_batch_layout(from, axes)?, cufft_batch_layout(to, axes)?);
        // The axes that are not transformed become loops. Adjacent axes are merged if the strides of input and output allow it.
        let mut loops = SmallVec::<[(usize, [i64; 2]); 4]>::new();
        for axis in (0..from.ndim()).filter(|a| axes.iter().all(|(axis, _)| axis != a)) {
            let (extent, strides) = (from.shape()[axis], [from.strides()[axis] as i64, to.strides()[axis] as i64]);
            match loops.last_mut() {
                _ if extent == 1 => {}
                Some((outer, steps)) if (0..2).all(|side| steps[side] == strides[side] * extent as i64) => {
                    *outer *= extent;
                    *steps = strides;
                }
                _ => loops.push((extent, strides)),
            }
        }
        let mut batch = 1;
        if let Some(largest) = (0..loops.len()).max_by_key(|&i| loops[i].0) {
            let (extent, strides) = loops.remove(largest);
            (batch, input.distance, output.distance) = (extent as i64, strides[0], strides[1]);
        }
        let calls: usize = loops.iter().map(|(extent, _)| *extent).product();
        let is_positive = input.distance > 0 && output.distance > 0;
        // In a transform to or from real numbers, cuFFT requires input and output of each call to be aligned like complex numbers.
        let is_real = !matches!(kind, TransformType::C2C | TransformType::Z2Z);
        let is_aligned = !is_real || loops.iter().all(|(_, strides)| strides.iter().all(|s| s % 2 == 0));
        if calls > MAX_CUFFT_CALLS || !is_positive || !is_aligned {
            return None;
        }
        let mut lengths = [1; MAX_CUFFT_RANK];
        axes.iter().zip(&mut lengths).for_each(|((_, n), length)| *length = *n as i64);
        Some(CufftCalls { shape: CufftPlanShape { kind, rank: axes.len(), lengths, input, output, batch }, loops })
    }

    /// Returns the offsets in the input and in the output, in elements, for each cuFFT call.
    fn cufft_call_offsets(&self) -> impl Iterator<Item = [i64; 2]> + '_ {
        let calls: usize = self.loops.iter().map(|(extent, _)| *extent).product();
        (0..calls).map(|number| {
            let (mut at, mut rest) = ([0, 0], number);
            for (extent, strides) in self.loops.iter().rev() {
                let i = (rest % extent) as i64;
                rest /= extent;
                at = [at[0] + i * strides[0], at[1] + i * strides[1]];
            }
            at
        })
    }
}

/// Returns cuFFT's description of the elements of one transform along `axes` of an array. The field `distance` is 1, a placeholder for a
/// batch of one transform.
///
/// Returns `None` if cuFFT cannot describe the strides. cuFFT requires positive strides. Each stride must be a multiple of the stride of
/// the next transformed axis, and at least that stride times the extent of the next transformed axis.
fn cufft_batch_layout(layout: &Layout, axes: &[(usize, usize)]) -> Option<BatchLayout> {
    let (shape, strides) = (layout.shape(), layout.strides());
    let &(last, _) = axes.last()?;
    let mut side = BatchLayout { embed: [1; MAX_CUFFT_RANK], stride: strides[last] as i64, distance: 1 };
    side.embed[0] = shape[axes[0].0] as i64;
    for (i, pair) in axes.windows(2).enumerate() {
        let (outer, inner) = (strides[pair[0].0] as i64, strides[pair[1].0] as i64);
        if inner <= 0 || outer % inner != 0 || outer / inner < shape[pair[1].0] as i64 {
            return None;
        }
        side.embed[i + 1] = outer / inner;
    }
    (side.stride > 0).then_some(side)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contiguous(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    fn complex(from: &Layout, to: &Layout, axes: &[(usize, usize)]) -> Option<CufftCalls> {
        CufftCalls::plan_cufft_calls(TransformType::C2C, from, to, axes)
    }

    #[test]
    fn one_call_covers_the_rows_or_columns_of_a_matrix() {
        let a = contiguous(&[40, 60]);
        let rows = complex(&a, &a, &[(1, 60)]).unwrap();
        assert_eq!((rows.shape.input.stride, rows.shape.input.distance, rows.shape.batch), (1, 60, 40));
        let columns = complex(&a, &a, &[(0, 40)]).unwrap();
        assert_eq!((columns.shape.input.stride, columns.shape.input.distance, columns.shape.batch), (60, 1, 60));
        let view = contiguous(&[60, 40]).transpose();
        let turned = complex(&view, &a, &[(1, 60)]).unwrap();
        assert_eq!((turned.shape.input.stride, turned.shape.input.distance), (40, 1));
        assert_eq!((turned.shape.output.stride, turned.shape.output.distance), (1, 60));
        assert_eq!(turned.cufft_call_offsets().collect::<Vec<_>>(), [[0, 0]]);
    }

    #[test]
    fn several_axes_are_one_plan_where_strides_nest() {
        let a = contiguous(&[4, 5, 6]);
        let outer = complex(&a, &a, &[(0, 4), (1, 5)]).unwrap();
        assert_eq!((outer.shape.input.embed, outer.shape.input.stride, outer.shape.input.distance), ([4, 5, 1], 6, 1));
        let apart = complex(&a, &a, &[(0, 4), (2, 6)]).unwrap();
        assert_eq!((apart.shape.input.embed, apart.shape.input.stride), ([4, 30, 1], 1));
        assert_eq!((apart.shape.input.distance, apart.shape.batch), (6, 5));
        let all = complex(&a, &a, &[(0, 4), (1, 5), (2, 6)]).unwrap();
        assert_eq!((all.shape.rank, all.shape.input.embed, all.shape.batch), (3, [4, 5, 6], 1));
        assert_eq!(complex(&a.transpose(), &contiguous(&[6, 5, 4]), &[(0, 6), (1, 5)]), None);
        assert_eq!(complex(&a.flip(&[1]), &a, &[(2, 6)]), None);
        assert_eq!(complex(&contiguous(&[6]).broadcast_to(&[4, 6]).unwrap(), &contiguous(&[4, 6]), &[(1, 6)]), None);
    }

    #[test]
    fn calls_loop_over_axes_that_do_not_merge() {
        let a = contiguous(&[3, 8, 5]);
        let middle = complex(&a, &a, &[(1, 8)]).unwrap();
        assert_eq!((middle.shape.batch, middle.shape.input.stride, middle.shape.input.distance), (5, 5, 1));
        assert_eq!(middle.cufft_call_offsets().collect::<Vec<_>>(), [[0, 0], [40, 40], [80, 80]]);
        let many = contiguous(&[1000, 8, 1000]);
        assert_eq!(complex(&many, &many, &[(1, 8)]), None);
    }

    #[test]
    fn halves_differ_in_extent_on_both_sides() {
        let (real, half) = (contiguous(&[3, 7, 10]), contiguous(&[3, 7, 6]));
        let both = CufftCalls::plan_cufft_calls(TransformType::R2C, &real, &half, &[(1, 7), (2, 10)]).unwrap();
        assert_eq!((both.shape.lengths, both.shape.input.embed, both.shape.output.embed), ([7, 10, 1], [7, 10, 1], [7, 6, 1]));
        assert_eq!((both.shape.input.distance, both.shape.output.distance, both.shape.batch), (70, 42, 3));
        // The calls would be at odd offsets, which are not aligned.
        let (real, half) = (contiguous(&[3, 9, 5]), contiguous(&[3, 5, 5]));
        assert_eq!(CufftCalls::plan_cufft_calls(TransformType::R2C, &real, &half, &[(1, 9)]), None);
        assert!(complex(&real, &real, &[(1, 9)]).is_some());
    }

    #[test]
    fn the_source_has_the_kernel() {
        assert!(sources_for_compile_check().iter().all(|(_, text)| text.contains("clear_ignored_imaginary_parts")));
    }
}
