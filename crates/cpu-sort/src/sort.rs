//! Kernel of the family `Sort`: sorts rows and segments in NumPy's order, and returns values, indices or both.
//!
//! Elements are mapped to unsigned integers of the same order (`sort_key`) and combined with their indices if indices are requested. The
//! resulting records are sorted by a quicksort in SIMD registers (`register_sort`) or a radix sort (`radix_sort`), which splits long rows
//! among threads. Long rows whose keys have a small range are sorted by counting (`counting_sort`), and very short rows may use a sorting
//! network (`sorting_network`). Sorted records of real numbers are mapped back to elements, so no gather of values is needed. Complex
//! values are gathered by their sorted indices (`complex_sort`).

use bytemuck::{cast_slice, cast_slice_mut};
use cuprum_core::call;
use cuprum_core::{Call, Complex, Outcome, Result, Sort, Work, bf16, decline, f16, with_dtype};
use cuprum_cpu_base::typed_views::{Elements, Output};
use smallvec::SmallVec;

use crate::key_coding::KeyOrder;
use crate::row_sort::{RowDivision, SortOutputs};
use crate::sort_key::{Ordered, RealElement};
use crate::{complex_sort, row_sort};

/// Element types that the kernel of the family `Sort` takes.
trait Sortable: Ordered {
    /// Sorts each row of `from`, in descending order if `descending`, and writes the requested outputs.
    fn sort_rows(from: &[Self], rows: RowDivision, descending: bool, results: SortOutputs<Self>) -> Result<()>;
}
macro_rules! sortable {
    ($sort:path: $($t:ty),*) => {$(
        impl Sortable for $t {
            fn sort_rows(from: &[$t], rows: RowDivision, descending: bool, results: SortOutputs<$t>) -> Result<()> {
                $sort(from, rows, descending, results)
            }
        }
    )*};
    (signed $($t:ty as $unsigned:ty),*) => {$(
        impl Sortable for $t {
            fn sort_rows(from: &[$t], rows: RowDivision, descending: bool, results: SortOutputs<$t>) -> Result<()> {
                let SortOutputs { keep, base, nth, values, indices } = results;
                let results = SortOutputs { keep, base, nth, values: values.map(cast_slice_mut::<$t, $unsigned>), indices };
                row_sort::sort_real_rows(cast_slice(from), rows, KeyOrder::new(1 << (<$t>::BITS - 1), descending), results)
            }
        }
    )*};
}
sortable!(sort_unsigned_or_float_rows: bool, u8, u16, u32, u64, f16, bf16, f32, f64);
sortable!(signed i8 as u8, i16 as u16, i32 as u32, i64 as u64);
sortable!(complex_sort::sort_complex_rows: Complex<f32>, Complex<f64>);

/// Sorts rows of a real type other than a signed integer type, so the [`KeyOrder`] has no sign bit.
fn sort_unsigned_or_float_rows<T: RealElement>(from: &[T], rows: RowDivision, descending: bool, results: SortOutputs<T>) -> Result<()> {
    row_sort::sort_real_rows(from, rows, KeyOrder::new(0, descending), results)
}

/// Computes the outputs of `call`, a sort of rows or segments.
pub fn compute_sort(call: &Call) -> Result<Outcome> {
    if let Work::SegmentSort(call::SegmentSort { indices, .. }) = call.work {
        return sort_segments(call, indices);
    }
    let (Work::Sort(Sort { descending, values, indices, nth }), [input]) = (&call.work, call.inputs) else {
        decline!("not a sort of an array")
    };
    let layout = input.layout();
    let extent = |shape: &[usize]| shape.last().copied().unwrap_or(1);
    let (len, keep) = (extent(layout.shape()), call.outputs.first().map_or(0, |o| extent(o.layout.shape())));
    if nth.is_some_and(|nth| nth >= len || keep < len) {
        decline!("element {nth:?} of rows of {len}, {keep} asked for");
    }
    let elements = Elements::from_contiguous_array(input)?;
    let mut outputs = (0..call.outputs.len()).map(|n| Output::allocate(call, n)).collect::<Result<SmallVec<[Output; 2]>>>()?;
    if elements.len() > 0 && keep > 0 {
        let mut left = outputs.iter_mut();
        let mut next = |asked: bool| if asked { left.next().map(Output::elements_mut).transpose() } else { Ok(None) };
        let (values, indices) = (next(*values)?, next(*indices)?);
        with_dtype!(elements.dtype(), T => {
            let results = SortOutputs { keep, base: 0, nth: *nth, values: values.map(|v| v.typed_slice::<T>()), indices: indices.map(|p| p.typed_slice()) };
            T::sort_rows(elements.typed_slice(), RowDivision::Uniform(len), *descending, results)?
        });
    }
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}

/// Executes `call`, which sorts each segment of an array separately. Writes indices in place of values if `indices` is true.
fn sort_segments(call: &Call, indices: bool) -> Result<Outcome> {
    let [input, offsets] = call.inputs else { decline!("not an array and offsets") };
    let (elements, offsets) = (Elements::from_contiguous_array(input)?, Elements::from_contiguous_array(offsets)?.typed_slice::<i64>());
    let is_cut = offsets.first() == Some(&0) && offsets.last().and_then(|&end| usize::try_from(end).ok()) == Some(elements.len());
    if !is_cut || !offsets.is_sorted() {
        decline!("offsets that do not cut the whole array");
    }
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements_mut()?;
    with_dtype!(elements.dtype(), T => {
        let (values, indices) = if indices { (None, Some(out.typed_slice::<i64>())) } else { (Some(out.typed_slice::<T>()), None) };
        let results = SortOutputs { keep: elements.len(), base: 0, nth: None, values, indices };
        T::sort_rows(elements.typed_slice(), RowDivision::Offsets(offsets), false, results)?
    });
    call.outcome_from_buffers([output.into_buffer()])
}
