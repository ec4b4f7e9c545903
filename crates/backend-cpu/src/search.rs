//! Search: where values would go in a sorted array.

use cuprum_core::array::Array;
use cuprum_core::{Call, Outcome, Result, StoredArray, Work, decline, with_dtype};

use crate::raw::{Elements, Output};
use crate::sort::Ordered;
use crate::threads;

/// Values per task.
const CHUNK: usize = 1 << 13;

/// The Search kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Search { after_equal }, [sorted, values]) = (&call.work, call.inputs) else { decline!("not a search in an array") };
    let elements = |array: &'_ StoredArray| (array.layout().offset(), array.layout().size());
    let ((at, len), (first, count)) = (elements(sorted), elements(values));
    let (sorted, values) = (Elements::buffer(sorted)?.slice(at, len), Elements::buffer(values)?.slice(first, count));
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements()?.typed::<i64>();
    with_dtype!(sorted.dtype(), T => search::<T>(sorted.typed(), values.typed(), *after_equal, out));
    call.done([output.finish()])
}

fn search<T: Ordered>(sorted: &[T], values: &[T], after_equal: bool, out: &mut [i64]) {
    let steps = sorted.len().ilog2() as usize + 1;
    let tasks: Vec<_> = values.chunks(CHUNK).zip(out.chunks_mut(CHUNK)).collect();
    threads::for_each(
        tasks.into_iter(),
        values.len().saturating_mul(4 * steps),
        || (),
        |_, (values, out)| {
            for (value, out) in values.iter().zip(out) {
                let key = value.key();
                *out = sorted.partition_point(|v| if after_equal { v.key() <= key } else { v.key() < key }) as i64;
            }
        },
    );
}
