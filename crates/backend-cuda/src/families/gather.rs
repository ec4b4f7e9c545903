//! CUDA kernels of the family `Gather`: reads elements at given indices along an axis. Each thread copies one item, which has several
//! contiguous elements if alignment allows. Rows that many indices address are copied to shared memory.

mod shared_memory_gather;

use cuprum_core::call::{self, GatherIndices};
use cuprum_core::layout::{Dims, Layout, Strides};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, Outcome, Result, StoredArray, Work, decline};

use crate::codegen::{ctype, index_type};
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::copy::item_cpp_type;
use crate::families::indexed_loop::IndexedLoop;
use crate::families::kernel_lookup::KernelSource;

use self::shared_memory_gather::SharedMemoryGather;

static GATHER_SOURCE: KernelSource =
    KernelSource { name: "gather.cu", text: concat!(include_str!("../kernels/resolve_index.cuh"), include_str!("../kernels/gather.cu")) };

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every item size, both index types, and
/// several ranks.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(1, "i64", false, "1"), (2, "i32", true, "2"), (4, "i64", false, "0"), (8, "i64", true, "3"), (16, "i32", false, "2")];
    let listed = |(item, index, wide, rank)| {
        GATHER_SOURCE.named_source(&[("ITEM", item_cpp_type(item)), ("INDEX_ELEMENT", index), ("INDEX", index_type(wide)), ("RANK", rank)])
    };
    uses.into_iter().map(listed).chain(shared_memory_gather::sources_for_compile_check()).collect()
}

/// Executes `call`, an operation of the kernel family `Gather`, on the device.
pub(crate) fn run_gather(call: &Call) -> Result<Outcome> {
    let (Work::Gather(work), [values, indices], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a gather of one array by another");
    };
    if !matches!(indices.dtype(), DType::I32 | DType::I64) || !spec.layout.is_c_contiguous() {
        decline!("indices that are not int32 or int64, or an output that is not in C order");
    }
    if work.indices == GatherIndices::ReplaceAxis && !indices.layout().is_c_contiguous() {
        decline!("indices that are not contiguous");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let gather = plan_gather(values, indices.layout(), work, [device::pointer_to_read(values)?, out.pointer()])?;
    let op = device::fault_operation_id(call.op, work.axis);
    queue_gather(context, &gather, device::pointer_to_read(indices)?, indices.dtype(), op).with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// Plans the loop of a gather over the items of its output. Operand 0 is the input, with stride 0 along the indexed axis. Operand 1 is the
/// indices.
fn plan_gather(values: &StoredArray, indices: &Layout, gather: &call::Gather, addresses: [u64; 2]) -> Result<IndexedLoop<2>> {
    let (layout, axis) = (values.layout(), gather.axis);
    let with = |list: &[isize], at_axis: isize| -> Strides {
        list.iter().enumerate().map(|(a, &s)| if a == axis { at_axis } else { s }).collect()
    };
    let mut shape: Dims = layout.shape().into();
    let index_layout = match gather.indices {
        GatherIndices::ReplaceAxis => {
            shape[axis] = indices.size();
            Layout::strided(&shape, &with(&Strides::from_elem(0, shape.len()), 1), 0)?
        }
        GatherIndices::PerElement => {
            shape[axis] = indices.shape()[axis];
            Layout::strided(&shape, indices.strides(), 0)?
        }
    };
    let source = Layout::strided(&shape, &with(layout.strides(), 0), 0)?;
    let LoopPlan { dims, strides, .. } = LoopPlan::new(&[&source, &index_layout, &Layout::contiguous(&shape)?]);
    let mut gather = IndexedLoop {
        item: values.dtype().itemsize(),
        dims,
        strides: [strides[0].clone(), strides[1].clone()],
        extent: layout.shape()[axis],
        step: layout.strides()[axis],
        addresses,
    };
    gather.widen_items();
    Ok(gather)
}

fn queue_gather(context: &'static Context, gather: &IndexedLoop<2>, indices: u64, index_dtype: DType, op: u64) -> crate::Result<()> {
    if let Some(rows) = SharedMemoryGather::from_indexed_loop_if_faster(gather, context.info()) {
        // SAFETY: the axes stay inside the input, and the kernel checks every index.
        return unsafe { rows.queue_shared_memory_gather(context, indices, index_dtype, op) };
    }
    let rank = gather.dims.len().to_string();
    let item = item_cpp_type(gather.item);
    let defines =
        [("ITEM", item), ("INDEX_ELEMENT", ctype(index_dtype)), ("INDEX", index_type(gather.needs_wide_index())), ("RANK", &rank[..])];
    let function = GATHER_SOURCE.get_or_compile_kernel(context, "gather_take", &defines)?;
    // SAFETY: gather_take has the parameters that `queue_kernel` lists, without `extra`. The axes stay inside the input, and the kernel
    // checks every index.
    unsafe { gather.queue_kernel(context, &function, 1, indices, &[], op) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuprum_core::host_buffer::HostBuffer;

    use super::*;

    fn array(shape: &[usize]) -> StoredArray {
        let layout = Layout::contiguous(shape).unwrap();
        StoredArray::new(DType::F32, layout.clone(), Arc::new(HostBuffer::zeroed(layout.size() * 4).unwrap())).unwrap()
    }

    fn plan_take(values: &StoredArray, axis: usize, indices: usize, addresses: [u64; 2]) -> IndexedLoop<2> {
        let gather = call::Gather { axis, indices: GatherIndices::ReplaceAxis };
        plan_gather(values, &Layout::contiguous(&[indices]).unwrap(), &gather, addresses).unwrap()
    }

    #[test]
    fn loops_walk_the_output() {
        // Rows of 6 floats have 24 bytes, so items have 8 bytes and not 16.
        let rows = plan_take(&array(&[10, 6]), 0, 3, [0, 0]);
        assert_eq!((rows.item, &rows.dims[..], rows.extent, rows.step), (8, &[3, 3][..], 10, 3));
        assert_eq!(rows.strides.each_ref().map(|s| s.to_vec()), [vec![0, 1], vec![1, 0]]);
        assert_eq!(plan_take(&array(&[10, 6]), 0, 3, [4, 0]).item, 4);
        let columns = plan_take(&array(&[10, 6]), 1, 4, [0, 0]);
        assert_eq!((columns.item, &columns.dims[..], columns.extent, columns.step), (4, &[10, 4][..], 6, 1));
        assert_eq!(columns.strides.each_ref().map(|s| s.to_vec()), [vec![6, 0], vec![0, 1]]);
        // With a single index, the index axis is dropped, and every element reads index 0.
        let one = plan_take(&array(&[10, 6]), 1, 1, [0, 0]);
        assert_eq!((&one.dims[..], one.strides.each_ref().map(|s| s.to_vec())), (&[10][..], [vec![6], vec![0]]));
    }

    #[test]
    fn flipped_views_step_backwards() {
        let a = array(&[10, 8]);
        let flipped = a.with_layout(a.layout().flip(&[0])).unwrap();
        let gather = plan_take(&flipped, 0, 5, [0, 0]);
        assert_eq!((gather.item, gather.step, &gather.dims[..]), (16, -2, &[5, 2][..]));
    }

    #[test]
    fn indices_of_each_element_keep_their_strides() {
        let gather = call::Gather { axis: 1, indices: GatherIndices::PerElement };
        let transposed = Layout::contiguous(&[4, 10]).unwrap().transpose();
        let per_element = plan_gather(&array(&[10, 6]), &transposed, &gather, [0, 0]).unwrap();
        assert_eq!((per_element.item, &per_element.dims[..], per_element.extent, per_element.step), (4, &[10, 4][..], 6, 1));
        assert_eq!(per_element.strides.each_ref().map(|s| s.to_vec()), [vec![6, 0], vec![1, 10]]);
    }
}
