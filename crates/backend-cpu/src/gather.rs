//! Gather: elements at given indices along an axis.

use cuprum_core::array::Array;
use cuprum_core::{Call, Element, Error, Outcome, Result, Work, decline, with_dtype};

use crate::raw::{Elements, Output};
use crate::threads;

/// Elements per task, about.
const CHUNK: usize = 1 << 15;

/// The Gather kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Gather { axis }, [source, indices]) = (&call.work, call.inputs) else { decline!("not a take of an array by indices") };
    let layout = source.layout();
    let extent = layout.shape()[*axis];
    let first = indices.layout().offset();
    let indices = Elements::buffer(indices)?.slice(first, indices.layout().size()).typed::<i64>();
    if let Some(&index) = indices.iter().find(|&&i| i < -(extent as i64) || i >= extent as i64) {
        return Err(Error::Index { op: call.op.name(), index, axis: *axis, size: extent });
    }
    // Offsets of what lies outside and inside the axis, in C order; the axis itself is stepped through.
    let part = |axes: std::ops::Range<usize>| offsets(&layout.shape()[axes.clone()], &layout.strides()[axes]);
    let (outer, inner) = (part(0..*axis), part(*axis + 1..layout.ndim()));
    let (start, stride) = (layout.offset() as isize, layout.strides()[*axis]);
    let at = |i: i64| (if i < 0 { i + extent as i64 } else { i }) as isize * stride;

    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements()?;
    let buffer = Elements::buffer(source)?;
    let rows_per_task = (CHUNK / inner.len()).max(1);
    let cost = elements.len().saturating_mul(4); // a random read costs more than a cheap operation
    let tasks = elements.chunks(rows_per_task * inner.len()).into_iter().enumerate();
    with_dtype!(buffer.dtype(), T => {
        let values = buffer.typed::<T>();
        threads::for_each(tasks, cost, || (), |_, (task, run)| {
            for (row, out) in run.typed::<T>().chunks_exact_mut(inner.len()).enumerate() {
                let row = task * rows_per_task + row;
                copy_row(values, start + outer[row / indices.len()] + at(indices[row % indices.len()]), &inner, out);
            }
        });
    });
    call.done([output.finish()])
}

fn copy_row<T: Element>(values: &[T], from: isize, inner: &[isize], out: &mut [T]) {
    for (out, &offset) in out.iter_mut().zip(inner) {
        *out = values[(from + offset) as usize];
    }
}

/// Offsets of all points of some axes, in C order; one point without axes.
fn offsets(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    shape.iter().zip(strides).fold(vec![0], |outer, (&n, &s)| outer.iter().flat_map(|o| (0..n as isize).map(move |i| o + i * s)).collect())
}
