//! Kernel of the family `Fft`: computes the values of the fused expression and transforms them. If the transform works in place, the values
//! are computed directly into the output.
//!
//! The transforms themselves are in `cuprum-cpu-fft`, which the feature `fft` adds.

#[cfg(not(feature = "fft"))]
use cuprum_core::{Call, Outcome, Result, decline};

#[cfg(feature = "fft")]
pub(crate) use fft_enabled::compute_fft;

/// Declines every call, because this build lacks the feature `fft`.
#[cfg(not(feature = "fft"))]
pub(crate) fn compute_fft(_call: &Call) -> Result<Outcome> {
    decline!("built without the feature `fft`")
}

#[cfg(feature = "fft")]
mod fft_enabled {
    use cuprum_core::call::{Fft, FftKind};
    use cuprum_core::layout::{Dims, Layout};
    use cuprum_core::{Array, Call, DeclineReason, Outcome, Program, Result, StoredArray, Work, decline};
    use cuprum_cpu_base::threads;
    use cuprum_cpu_base::typed_views::{ElementsMut, Output};
    use cuprum_cpu_fft::{first_transformed_axis, fourier_transform};

    use crate::copy::copy_to_region;
    use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, ResultDestination};

    /// Minimum number of values per task.
    const MIN_VALUES_PER_TASK: usize = 1 << 13;

    /// Computes the output of `call`, a Fourier transform.
    pub(crate) fn compute_fft(call: &Call) -> Result<Outcome> {
        let (Work::Fft(fft), [_]) = (&call.work, call.outputs) else { decline!("not a Fourier transform") };
        let mut output = Output::allocate(call, 0)?;
        let is_identity = fft.program.is_identity();
        let full = padded_shape(fft);
        let is_padded = full[..] != *fft.shape;
        if !is_identity && !is_padded && fft.kind == FftKind::Complex && fft.program.output_dtype(0).is_complex() {
            if let Err(reason) = try_evaluate_program(fft.program, fft.shape, call.inputs, output.elements_mut()?)? {
                return Ok(Outcome::Declined(reason));
            }
            fourier_transform(call, fft, None, output.elements_mut()?)?;
            return call.outcome_from_buffers([output.into_buffer()]);
        }
        let mut values = match call.inputs {
            [only] if is_identity => only.clone(),
            inputs => {
                let dtype = fft.program.output_dtype(0);
                let layout = Layout::contiguous(fft.shape)?;
                let mut memory = Output::allocate_scratch(call, dtype, layout.size())?;
                if let Err(reason) = try_evaluate_program(fft.program, fft.shape, inputs, memory.elements_mut()?)? {
                    return Ok(Outcome::Declined(reason));
                }
                StoredArray::new(dtype, layout, memory.into_buffer())?
            }
        };
        let is_padded_elsewhere = (0..full.len()).any(|axis| full[axis] != fft.shape[axis] && Some(axis) != first_transformed_axis(fft));
        if is_padded_elsewhere {
            values = pad_with_zeros(call, &values, &full)?;
        }
        fourier_transform(call, fft, Some(&values), output.elements_mut()?)?;
        call.outcome_from_buffers([output.into_buffer()])
    }

    /// Returns the extents of the values after zero padding to the lengths of the transform.
    fn padded_shape(fft: &Fft) -> Dims {
        let mut shape: Dims = fft.shape.into();
        fft.axes.iter().enumerate().for_each(|(i, &axis)| shape[axis] = fft.used_input_extent(i));
        shape
    }

    /// Returns a copy of `values`, padded with zeros at the end of each axis to the extents `shape`.
    fn pad_with_zeros(call: &Call, values: &StoredArray, shape: &[usize]) -> Result<StoredArray> {
        let layout = Layout::contiguous(shape)?;
        let region = Layout::strided(values.layout().shape(), layout.strides(), 0)?;
        let mut memory = Output::allocate_scratch(call, values.dtype(), layout.size())?;
        cuprum_cpu_base::with_bits!(values.dtype(), T => memory.elements_mut()?.typed_slice::<T>().fill(T::default()));
        copy_to_region(values, &region, memory.elements_mut()?)?;
        StoredArray::new(values.dtype(), layout, memory.into_buffer())
    }

    /// Computes the values of `program` over `shape` into `out`, in C order. The inner error is the reason to decline the call: `program`
    /// has an operation without a CPU kernel.
    fn try_evaluate_program(
        program: &Program,
        shape: &[usize],
        inputs: &[StoredArray],
        out: ElementsMut,
    ) -> Result<std::result::Result<(), DeclineReason>> {
        let nest = LoopNest::new(shape, inputs, |k| inputs[k].layout().strides().into())?;
        let compiled = match CompiledProgram::new(program, nest, ResultDestination::Written) {
            Ok(compiled) => compiled,
            Err(reason) => return Ok(Err(reason)),
        };
        let (tile, cost) = (compiled.tile_len(), out.len().saturating_mul(compiled.cost_per_element()));
        let chunk = MIN_VALUES_PER_TASK.next_multiple_of(tile);
        threads::for_each(
            out.chunks(chunk).enumerate(),
            cost,
            || Evaluator::new(&compiled),
            |evaluator, (i, mut part)| {
                for at in (0..part.len()).step_by(tile) {
                    let len = tile.min(part.len() - at);
                    evaluator.evaluate_into(i * chunk + at, len, &mut [part.slice(at, len)]);
                }
            },
        );
        Ok(Ok(()))
    }
}
