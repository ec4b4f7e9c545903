//! Sort: rows in NumPy's order, their values, the places they came from, or both.
//!
//! Elements become unsigned integers that order as they do (`key`), which a radix sort puts in order (`radix`) together with
//! their places where those are asked for. Keys become elements again, so values are not fetched from their places.

mod complex;
mod count;
mod key;
mod network;
mod partition;
mod radix;
mod record;
mod rows;

use cuprum_core::array::Array;
use cuprum_core::{Call, Complex, Outcome, Result, Sort, Work, bf16, decline, f16, with_dtype};
use smallvec::SmallVec;

pub(crate) use self::key::Ordered;
use self::rows::Results;
use crate::raw::{Elements, Output};

/// Elements that a kernel sorts the rows of.
trait Sortable: Ordered {
    /// Sorts each row of `len` elements into the results.
    fn sort_rows(from: &[Self], len: usize, descending: bool, results: Results<Self>) -> Result<()>;
}
macro_rules! sortable {
    ($sort:path: $($t:ty),*) => {$(
        impl Sortable for $t {
            fn sort_rows(from: &[$t], len: usize, descending: bool, results: Results<$t>) -> Result<()> {
                $sort(from, len, descending, results)
            }
        }
    )*};
}
sortable!(rows::sort: bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
sortable!(complex::sort: Complex<f32>, Complex<f64>);

/// The Sort kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Sort(Sort { descending, values, indices }), [input]) = (&call.work, call.inputs) else { decline!("not a sort of an array") };
    let layout = input.layout();
    let extent = |shape: &[usize]| shape.last().copied().unwrap_or(1);
    let (len, keep) = (extent(layout.shape()), call.outputs.first().map_or(0, |o| extent(o.layout.shape())));
    let elements = Elements::contiguous(input)?;
    let mut outputs = (0..call.outputs.len()).map(|n| Output::allocate(call, n)).collect::<Result<SmallVec<[Output; 2]>>>()?;
    if elements.len() > 0 && keep > 0 {
        let mut left = outputs.iter_mut();
        let mut next = |asked: bool| if asked { left.next().map(Output::elements).transpose() } else { Ok(None) };
        let (values, places) = (next(*values)?, next(*indices)?);
        with_dtype!(elements.dtype(), T => {
            let results = Results { keep, values: values.map(|v| v.typed::<T>()), places: places.map(|p| p.typed()) };
            T::sort_rows(elements.typed(), len, *descending, results)?
        });
    }
    call.done(outputs.into_iter().map(Output::finish))
}
