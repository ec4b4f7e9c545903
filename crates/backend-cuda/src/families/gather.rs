//! Family Gather: elements at indices along an axis. Each thread copies one item, which holds several contiguous elements if
//! alignment allows.

use cuprum_core::call;
use cuprum_core::layout::{Dims, Layout, Strides};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, Outcome, Result, StoredArray, Work, decline};

use crate::codegen::{ctype, fits_narrow, index_type, pack_axes};
use crate::compile::module::Args;
use crate::device::{self, InCall};
use crate::driver::Context;
use crate::families::copy::{item_type, widest_item};
use crate::families::kernel::{self, DEFAULT_THREADS, KernelSource};

static GATHER_SOURCE: KernelSource = KernelSource { name: "gather.cu", text: include_str!("../kernels/gather.cu") };

/// Returns names and sources of the kernels, for compile checks without a device: every item size, both index types, several
/// ranks.
pub fn sources_for_checks() -> Vec<(String, String)> {
    let uses = [(1, "i64", false, "1"), (2, "i32", true, "2"), (4, "i64", false, "0"), (8, "i64", true, "3"), (16, "i32", false, "2")];
    let listed = |(item, index, wide, rank)| {
        GATHER_SOURCE.named_source(&[("ITEM", item_type(item)), ("INDEX_ELEMENT", index), ("INDEX", index_type(wide)), ("RANK", rank)])
    };
    uses.map(listed).into()
}

/// Runs a call of family Gather.
pub(crate) fn run_call(call: &Call) -> Result<Outcome> {
    let (&Work::Gather(call::Gather { axis }), [values, indices], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a gather of one array by another");
    };
    if !matches!(indices.dtype(), DType::I32 | DType::I64) || !indices.layout().is_c_contiguous() || !spec.layout.is_c_contiguous() {
        decline!("indices that are not contiguous int32 or int64, or an output that is not in C order");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let take = GatherLoop::new(values, axis, indices.layout().size(), [device::pointer_to_read(values)?, out.pointer()])?;
    let op = device::fault_operation_id(call.op, axis);
    take.queue_gather(context, device::pointer_to_read(indices)?, indices.dtype(), op).in_call(call)?;
    device::done(call, [out])
}

/// The loop of a gather over the items of its output. Operand 0 is the input without the indexed axis, operand 1 the indices.
#[derive(Debug, PartialEq)]
struct GatherLoop {
    item: usize,
    dims: Dims,
    strides: [Strides; 2],
    /// Extent of the indexed axis, against which the kernel checks each index.
    size: usize,
    step: isize,
    addresses: [u64; 2],
}

impl GatherLoop {
    fn new(values: &StoredArray, axis: usize, indices: usize, addresses: [u64; 2]) -> Result<GatherLoop> {
        let layout = values.layout();
        let with = |list: &[isize], at_axis: isize| -> Strides {
            list.iter().enumerate().map(|(a, &s)| if a == axis { at_axis } else { s }).collect()
        };
        let mut shape: Dims = layout.shape().into();
        shape[axis] = indices;
        let source = Layout::strided(&shape, &with(layout.strides(), 0), 0)?;
        let index_layout = Layout::strided(&shape, &with(&Strides::from_elem(0, shape.len()), 1), 0)?;
        let LoopPlan { mut dims, strides, .. } = LoopPlan::new(&[&source, &index_layout, &Layout::contiguous(&shape)?]);
        let (mut source, index_strides) = (strides[0].clone(), strides[1].clone());
        let (mut item, mut step) = (values.dtype().itemsize(), layout.strides()[axis]);
        if let Some(last) = dims.len().checked_sub(1)
            && (source[last], index_strides[last]) == (1, 0)
        {
            let others = source[..last].iter().copied().chain([step]);
            let wide = widest_item(item, dims[last], others, addresses);
            let factor = wide / item;
            dims[last] /= factor;
            source[..last].iter_mut().for_each(|s| *s /= factor as isize);
            (item, step) = (wide, step / factor as isize);
        }
        Ok(GatherLoop { item, dims, strides: [source, index_strides], size: layout.shape()[axis], step, addresses })
    }

    fn queue_gather(&self, context: &'static Context, indices: u64, index_dtype: DType, op: u64) -> crate::Result<()> {
        let count: usize = self.dims.iter().product();
        let strides = [&self.strides[0][..], &self.strides[1][..]];
        let wide = !fits_narrow(count, &self.dims, strides);
        let rank = self.dims.len().to_string();
        let defines =
            [("ITEM", item_type(self.item)), ("INDEX_ELEMENT", ctype(index_dtype)), ("INDEX", index_type(wide)), ("RANK", rank.as_str())];
        let function = GATHER_SOURCE.kernel(context, "gather_take", &defines)?;
        let axes = pack_axes(&self.dims, strides, wide);
        let [source, target] = self.addresses;
        let fault = context.fault_pointer()?;
        let mut args = Args::new();
        args.push(&target).push(&source).push(&indices).push(&count).push(&self.size).push(&self.step);
        args.push(&fault).push(&op).push_bytes(&axes);
        // SAFETY: the arguments match gather_take (a 32-bit `count` is the lower half). The axes stay inside the input, and the
        // kernel checks every index against `size`.
        unsafe { function.launch(kernel::grid_for_items(count as u64, DEFAULT_THREADS), [DEFAULT_THREADS, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuprum_core::buffer::HostBuffer;

    use super::*;

    fn array(shape: &[usize]) -> StoredArray {
        let layout = Layout::contiguous(shape).unwrap();
        StoredArray::new(DType::F32, layout.clone(), Arc::new(HostBuffer::zeroed(layout.size() * 4).unwrap())).unwrap()
    }

    #[test]
    fn loops_walk_the_output() {
        // Rows of 6 floats have 24 bytes, so items have 8 bytes and not 16.
        let rows = GatherLoop::new(&array(&[10, 6]), 0, 3, [0, 0]).unwrap();
        assert_eq!((rows.item, &rows.dims[..], rows.size, rows.step), (8, &[3, 3][..], 10, 3));
        assert_eq!(rows.strides.each_ref().map(|s| s.to_vec()), [vec![0, 1], vec![1, 0]]);
        assert_eq!(GatherLoop::new(&array(&[10, 6]), 0, 3, [4, 0]).unwrap().item, 4);
        let columns = GatherLoop::new(&array(&[10, 6]), 1, 4, [0, 0]).unwrap();
        assert_eq!((columns.item, &columns.dims[..], columns.size, columns.step), (4, &[10, 4][..], 6, 1));
        assert_eq!(columns.strides.each_ref().map(|s| s.to_vec()), [vec![6, 0], vec![0, 1]]);
        // With a single index, the index axis is dropped, and every element reads index 0.
        let one = GatherLoop::new(&array(&[10, 6]), 1, 1, [0, 0]).unwrap();
        assert_eq!((&one.dims[..], one.strides.each_ref().map(|s| s.to_vec())), (&[10][..], [vec![6], vec![0]]));
    }

    #[test]
    fn flipped_views_step_backwards() {
        let a = array(&[10, 8]);
        let flipped = a.with_layout(a.layout().flip(&[0])).unwrap();
        let take = GatherLoop::new(&flipped, 0, 5, [0, 0]).unwrap();
        assert_eq!((take.item, take.step, &take.dims[..]), (16, -2, &[5, 2][..]));
    }
}
