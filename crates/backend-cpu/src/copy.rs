//! Kernel of the family `Copy`: copies each input to its region of the output. A copy is split into pieces that write disjoint memory
//! ranges. A piece is copied by rows where both sides are contiguous, and by square blocks otherwise.

use cuprum_core::call;
use cuprum_core::layout::{Dims, Layout, Strides};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, DType, Element, Outcome, Result, StoredArray, Work, decline};
use cuprum_cpu_base::cache_hints::{MIN_NON_TEMPORAL_BYTES, NonTemporalStores};
use cuprum_cpu_base::strided::{StridedCopy2d, copy_strided_2d};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Output};
use cuprum_cpu_base::with_bits;

/// Computes the output of `call`, which copies each input to a region of the output, as `concatenate` does.
pub(crate) fn copy_inputs_to_regions(call: &Call) -> Result<Outcome> {
    let Work::Copy(call::Copy { regions }) = &call.work else { decline!("not a copy") };
    let mut output = Output::allocate(call, 0)?;
    // If each region follows the previous one in memory, each gets its own part of the output, and bools are known to be written once.
    let ranges: Vec<_> = regions.iter().map(Layout::buffer_range).collect();
    if ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
        let (mut rest, mut position) = (output.elements_mut()?, 0);
        for ((input, region), (start, end)) in call.inputs.iter().zip(*regions).zip(ranges) {
            let (start, end) = (start as usize, end as usize);
            let (part, after) = rest.split_at(start - position).1.split_at(end - start);
            (rest, position) = (after, end);
            copy_to_region(input, &region.with_offset(region.offset() - start), part)?;
        }
    } else {
        for (input, region) in call.inputs.iter().zip(*regions) {
            copy_to_region(input, region, output.elements_mut()?)?;
        }
    }
    call.outcome_from_buffers([output.into_buffer()])
}

/// Extents and strides of the loops of a strided copy, outermost axis of the target first.
struct CopyNest {
    dims: Dims,
    source: Strides,
    target: Strides,
}

/// Copies all elements of `input` to the elements of `out` that `region` describes.
pub(crate) fn copy_to_region(input: &StoredArray, region: &Layout, out: ElementsMut) -> Result<()> {
    let plan = LoopPlan::new(&[input.layout(), region]);
    let nest = CopyNest { source: plan.strides[0].clone(), target: plan.strides[1].clone(), dims: plan.dims };
    if plan.size == 0 {
        return Ok(());
    }
    let source = Elements::from_whole_buffer(input)?;
    let pieces = split_into_pieces(&nest, threads::threads_for_cost(plan.size) * 4);
    // The target range of a piece ends before the target range of the next piece begins, so each piece can get its own part of `out`.
    let mut rest = out;
    let mut position = 0;
    let mut tasks = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let start = region.offset() + piece.target;
        rest = rest.split_at(start - position).1;
        let len = piece.extent.min(rest.len());
        let (part, after) = rest.split_at(len);
        (rest, position) = (after, start + len);
        tasks.push((piece, part));
    }
    let first = input.layout().offset() as isize;
    let streamed = plan.size.saturating_mul(source.dtype().itemsize()) >= MIN_NON_TEMPORAL_BYTES;
    threads::for_each(
        tasks.into_iter(),
        plan.size,
        || (),
        |_, (piece, mut part)| {
            let start = first + piece.source;
            // Contiguous bools are copied without `typed_slice`, which would first clear the upper bits of each byte of new memory.
            if part.dtype() == DType::Bool && piece.is_contiguous() {
                let run = source.slice(start as usize, part.len());
                if streamed { part.copy_non_temporal_from(run, &NonTemporalStores::default()) } else { part.copy_from(run) }
            } else {
                with_bits!(source.dtype(), T => copy_piece(source.typed_slice::<T>(), start, part.typed_slice::<T>(), &piece.nest, streamed))
            }
        },
    );
    Ok(())
}

/// A part of a copy that writes one range of the target's memory.
struct CopyPiece {
    nest: CopyNest,
    /// Source offset of the first element of the piece, relative to the first element of the whole copy.
    source: isize,
    /// Target offset of the first element of the piece, relative to the first element of the whole copy.
    target: usize,
    /// Number of target elements from the piece's first to its last, including gaps.
    extent: usize,
}

impl CopyPiece {
    /// Returns whether the piece is one run of contiguous elements in both source and target.
    fn is_contiguous(&self) -> bool {
        self.nest.dims.is_empty() || (self.nest.source[..] == [1] && self.nest.target[..] == [1])
    }
}

/// Splits the copy `nest` along its outermost axes into about `wanted` pieces, in the order of their target memory.
fn split_into_pieces(nest: &CopyNest, wanted: usize) -> Vec<CopyPiece> {
    let mut depth = 0; // number of outer axes that are split completely
    let mut outer = 1;
    while depth + 1 < nest.dims.len() && outer * nest.dims[depth] < wanted {
        outer *= nest.dims[depth];
        depth += 1;
    }
    let Some(&extent) = nest.dims.get(depth) else {
        let whole = CopyNest { dims: Dims::new(), source: Strides::new(), target: Strides::new() };
        return vec![CopyPiece { nest: whole, source: 0, target: 0, extent: 1 }];
    };
    let step = extent.div_ceil(wanted.div_ceil(outer).max(1)).max(1);
    let mut pieces = Vec::with_capacity(outer * extent.div_ceil(step));
    for task in 0..outer {
        let (mut source, mut target, mut rest) = (0, 0, task);
        for axis in (0..depth).rev() {
            let i = (rest % nest.dims[axis]) as isize;
            rest /= nest.dims[axis];
            source += i * nest.source[axis];
            target += i * nest.target[axis];
        }
        for start in (0..extent).step_by(step) {
            let mut dims: Dims = nest.dims[depth..].into();
            dims[0] = step.min(extent - start);
            let target_strides: Strides = nest.target[depth..].into();
            let last: isize = dims.iter().zip(&target_strides).map(|(&n, &s)| (n as isize - 1) * s).sum();
            pieces.push(CopyPiece {
                source: source + start as isize * nest.source[depth],
                target: (target + start as isize * nest.target[depth]) as usize,
                extent: last as usize + 1,
                nest: CopyNest { dims, source: nest.source[depth..].into(), target: target_strides },
            });
        }
    }
    pieces
}

/// Copies the elements of one [`CopyPiece`] with the loops `nest`, from index `from` of `source` to the start of `target`. The axes with
/// the least target stride and with the least source stride form a [`StridedCopy2d`]. Loops run over the other axes. `streamed` permits
/// non-temporal stores.
fn copy_piece<T: Element>(source: &[T], from: isize, target: &mut [T], nest: &CopyNest, streamed: bool) {
    let ndim = nest.dims.len();
    let Some(columns) = ndim.checked_sub(1) else {
        target[0] = source[from as usize];
        return;
    };
    let rows = (0..columns).min_by_key(|&axis| (nest.source[axis].unsigned_abs(), std::cmp::Reverse(axis)));
    let axis = |axis: Option<usize>| axis.map_or((1, 0, 0), |a| (nest.dims[a], nest.source[a], nest.target[a]));
    let ((height, row_source, row_target), (width, column_source, column_target)) = (axis(rows), axis(Some(columns)));
    let grid = StridedCopy2d { height, width, source: [row_source, column_source], target: [row_target, column_target], streamed };
    let others: Dims = (0..columns).filter(|a| Some(*a) != rows).collect();
    let count: usize = others.iter().map(|&a| nest.dims[a]).product();
    for n in 0..count {
        let (mut s, mut t, mut rest) = (from, 0, n);
        for &a in others.iter().rev() {
            let i = (rest % nest.dims[a]) as isize;
            rest /= nest.dims[a];
            s += i * nest.source[a];
            t += i * nest.target[a];
        }
        copy_strided_2d(source, s, target, t, &grid);
    }
}
