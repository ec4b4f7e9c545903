//! Kernel of the family `Select`: the elements where a condition is true (boolean mask), and their indices (`nonzero`).
//!
//! The condition is computed once, in tiles, into a bitmap. The number of set bits per chunk gives each task its output range.

use cuprum_core::call;
use cuprum_core::{Call, Element, Outcome, Result, Work, decline};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, HostVec, Output, add_op_to_out_of_memory_error};
use cuprum_cpu_base::with_bits;
use smallvec::SmallVec;

use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, ResultDestination};

/// Number of elements of the condition per task. It is a multiple of every tile length.
const ELEMENTS_PER_TASK: usize = 1 << 15;
/// Number of elements of the condition per 64-bit word of the bitmap.
const BITS_PER_BITMAP_WORD: usize = u64::BITS as usize;

/// Computes the outputs of `call`, which selects the elements, or the indices of elements, for which a condition is true.
pub(crate) fn compute_selection(call: &Call) -> Result<Outcome> {
    let Work::Select(call::Select { program, values, indices }) = &call.work else { decline!("not a selection") };
    let (conditions, source) = call.program_inputs();
    let size = call.outputs[0].layout.size();
    let nest = LoopNest::new(&[size], conditions, |k| conditions[k].layout().strides().into())?;
    let compiled = match CompiledProgram::new(program, nest, ResultDestination::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut words =
        HostVec::<u64>::allocate(size.div_ceil(BITS_PER_BITMAP_WORD)).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
    let words = words.as_mut_slice();
    let counts = mark_selected_in_bitmap(&compiled, size, words).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
    let total = counts.iter().sum();

    let mut outputs =
        (0..call.outputs.len()).map(|n| Output::allocate_with_length(call, n, total)).collect::<Result<SmallVec<[_; 2]>>>()?;
    let mut outputs_iter = outputs.iter_mut();
    if let (Some(source), Some(output)) = (source, if *values { outputs_iter.next() } else { None }) {
        let source = Elements::from_contiguous_array(source)?;
        with_bits!(source.dtype(), T => {
            let source = source.typed_slice::<T>();
            write_selected_elements::<T>(words, &counts, output.elements_mut()?, |point| source[point]);
        });
    }
    if let (true, Some(output)) = (*indices, outputs_iter.next()) {
        write_selected_elements::<i64>(words, &counts, output.elements_mut()?, |point| point as i64);
    }
    call.outcome_with_length(total, outputs.into_iter().map(Output::into_buffer))
}

/// Sets the bit in `words` of every element for which the condition is true. Returns the number of set bits per chunk of
/// [`ELEMENTS_PER_TASK`] elements.
fn mark_selected_in_bitmap(compiled: &CompiledProgram, size: usize, words: &mut [u64]) -> Result<Vec<usize>> {
    let tile = compiled.tile_len();
    threads::map(
        words.chunks_mut(ELEMENTS_PER_TASK / BITS_PER_BITMAP_WORD).enumerate(),
        size.saturating_mul(compiled.cost_per_element()),
        || Evaluator::new(compiled),
        |evaluator, (chunk, words)| {
            for (i, words) in words.chunks_mut(tile / BITS_PER_BITMAP_WORD).enumerate() {
                let start = chunk * ELEMENTS_PER_TASK + i * tile;
                let holds = evaluator.evaluate(start, tile.min(size - start)).typed_slice::<bool>();
                for (word, holds) in words.iter_mut().zip(holds.chunks(BITS_PER_BITMAP_WORD)) {
                    *word = pack_bools(holds);
                }
            }
            words.iter().map(|w| w.count_ones() as usize).sum()
        },
    )
}

/// Packs up to 64 bools into a word, the first bool in the lowest bit.
#[inline(always)]
fn pack_bools(holds: &[bool]) -> u64 {
    let (eights, rest) = holds.as_chunks::<8>();
    // The multiplication moves the lowest bits of eight bytes, each 0 or 1, to adjacent bits of the product's highest byte.
    let eight = |bytes: &[bool; 8]| u64::from_le_bytes(bytes.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let word = rest.iter().rev().fold(0, |word, &h| word << 1 | h as u64);
    eights.iter().rev().fold(word, |word, bytes| word << 8 | eight(bytes))
}

/// Writes `value(i)` to `out` for the index `i` of every set bit of `words`, in order. `counts` has the number of set bits per chunk of
/// [`ELEMENTS_PER_TASK`] elements.
fn write_selected_elements<T: Element>(words: &[u64], counts: &[usize], mut out: ElementsMut, value: impl Fn(usize) -> T + Sync) {
    let mut tasks = Vec::with_capacity(counts.len());
    for (chunk, (words, &count)) in words.chunks(ELEMENTS_PER_TASK / BITS_PER_BITMAP_WORD).zip(counts).enumerate() {
        let (part, rest) = out.split_at(count);
        out = rest;
        tasks.push((chunk, words, part));
    }
    threads::for_each(
        tasks.into_iter(),
        words.len() * BITS_PER_BITMAP_WORD,
        || (),
        |_, (chunk, words, part)| {
            let mut out = part.typed_slice::<T>().iter_mut();
            for (i, &word) in words.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let Some(out) = out.next() else { return };
                    *out = value(chunk * ELEMENTS_PER_TASK + i * BITS_PER_BITMAP_WORD + left.trailing_zeros() as usize);
                    left &= left - 1;
                }
            }
        },
    );
}
