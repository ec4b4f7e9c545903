//! `where(mask, number, a)` in the memory of `a`, the program of an assignment such as `a[mask] = 0`. One loop over the memory takes less
//! time than the general evaluation, which computes tiles in scratch memory and copies them.

use std::sync::Arc;

use cuprum_core::ops::elementwise::WHERE;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, Element, Program, Result, StepKind, StoredArray};
use cuprum_cpu_base::simd::{FillLoop, Isa, run_fill_loop};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};
use cuprum_cpu_base::with_bits;

/// Number of elements that one task fills.
const ELEMENTS_PER_TASK: usize = 1 << 16;

/// The mask and the only element of the value of a masked fill.
pub(super) struct MaskedFill<'a> {
    mask: Elements<'a>,
    value: Elements<'a>,
}

/// Stores a value in the elements for which the mask is true.
struct StoreWhereTrue<'a, T>(&'a [bool], T);

impl<T: Element> FillLoop for StoreWhereTrue<'_, T> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        // The copies `value` and `old` let the compiler select between registers instead of between addresses.
        let StoreWhereTrue(mask, value) = self;
        for (out, &chosen) in out.iter_mut().zip(mask) {
            let old = *out;
            *out = if chosen { value } else { old };
        }
    }
}

impl<'a> MaskedFill<'a> {
    /// Returns the masked fill, `where(mask, number, a)` in the memory of `a`, if `program` is one. Returns `None` for other programs and
    /// for arrays that are not contiguous.
    pub fn of(call: &'a Call, program: &Program, plan: &LoopPlan) -> Result<Option<MaskedFill<'a>>> {
        let ([spec], Some(last), true) = (call.outputs, program.steps.last(), plan.dims.len() == 1) else { return Ok(None) };
        if last.kind != StepKind::Apply(WHERE) || usize::from(program.outputs[0]) + 1 != program.steps.len() {
            return Ok(None);
        }
        // Returns the input that is argument `n`, if its stride is `stride`.
        let input = |n: usize, stride: isize| match program.steps[usize::from(last.args[n])].kind {
            StepKind::Input(k) => call.inputs.get(usize::from(k)).filter(|_| plan.strides[usize::from(k)][..] == [stride]),
            _ => None,
        };
        let (Some(mask), Some(value), Some(target)) = (input(0, 1), input(1, 0), input(2, 1)) else { return Ok(None) };
        let is_in_place = spec.target_buffer().is_some_and(|buffer| Arc::ptr_eq(buffer, target.buffer()))
            && target.layout().offset() == spec.layout.offset()
            && plan.strides[call.inputs.len()][..] == [1];
        // The loop writes through a mutable slice of the target, which must not overlap the mask or the value.
        let is_separate = [mask, value].iter().all(|other| !Arc::ptr_eq(other.buffer(), target.buffer()));
        if mask.dtype() != DType::Bool || [value, target].iter().any(|a| a.dtype() != spec.dtype) || !is_in_place || !is_separate {
            return Ok(None);
        }
        let elements = |array: &'a StoredArray, len: usize| Ok(Elements::from_whole_buffer(array)?.slice(array.layout().offset(), len));
        Ok(Some(MaskedFill { mask: elements(mask, plan.size)?, value: elements(value, 1)? }))
    }

    /// Stores the value in those elements of `output`, from index `start` on, for which the mask is true.
    pub fn store_where_true(&self, output: &mut Output, start: usize) -> Result<()> {
        let (mask, value, elements) = (self.mask, self.value, output.elements_mut()?);
        let elements = elements.split_at(start).1.split_at(mask.len()).0;
        let dtype = elements.dtype();
        threads::for_each(
            elements.chunks(ELEMENTS_PER_TASK).enumerate(),
            mask.len(),
            || (),
            |_, (task, run)| {
                let mask = mask.slice(task * ELEMENTS_PER_TASK, run.len());
                with_bits!(dtype, T => {
                    let store = StoreWhereTrue(mask.typed_slice::<bool>(), value.typed_slice::<T>()[0]);
                    run_fill_loop(store, run.typed_slice::<T>())
                });
            },
        );
        Ok(())
    }
}
