//! Sources, loop plans and launches of the scatter kernels that store or combine values.

use cuprum_core::call::RowAssignment;
use cuprum_core::layout::{Dims, Layout, Strides};
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, DType, Op, Result, StoredArray};

use crate::codegen::{cpp_expression, ctype, index_type};
use crate::compile::module::Args;
use crate::device::CudaBuffer;
use crate::driver::Context;
use crate::families::copy::item_cpp_type;
use crate::families::indexed_loop::IndexedLoop;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static STORE_SOURCE: KernelSource = KernelSource {
    name: "scatter.cu",
    text: concat!(include_str!("../../kernels/resolve_index.cuh"), include_str!("../../kernels/scatter.cu")),
};
static COMBINE_SOURCE: KernelSource = KernelSource {
    name: "scatter_combine.cu",
    text: concat!(
        include_str!("../../codegen/prelude/arithmetic.cuh"),
        include_str!("../../codegen/prelude/functions.cuh"),
        include_str!("../../codegen/prelude/complex.cuh"),
        include_str!("../../kernels/atomic_update.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_combine.cu"),
    ),
};

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every item size, and every combination
/// with every dtype.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let stores = [(1, "i64", false, "1"), (2, "i32", true, "2"), (4, "i64", false, "0"), (8, "i64", true, "3"), (16, "i32", false, "2")];
    let stores = stores.map(|(item, index, wide, rank)| {
        STORE_SOURCE.named_source(&[("ITEM", item_cpp_type(item)), ("INDEX_ELEMENT", index), ("INDEX", index_type(wide)), ("RANK", rank)])
    });
    let every = [ADD, MULTIPLY, MINIMUM, MAXIMUM].into_iter().flat_map(|op| DType::ALL.map(|dtype| (op, dtype)));
    let combinations = every.enumerate().filter_map(|(n, (op, dtype))| {
        let grouped = [RowAssignment::Grouped, RowAssignment::Distinct][n % 2];
        let is_by_group = dtype.is_inexact() && (op != ADD || dtype.real().itemsize() == 2);
        let combination = CombineMacros::macros_for_operation(op, dtype, if is_by_group { grouped } else { RowAssignment::Indexed })?;
        let (index, wide, rank) = [("i64", false, "1"), ("i32", true, "2"), ("i32", false, "0")][n % 3];
        Some(COMBINE_SOURCE.named_source(&combination.macro_definitions(index, index_type(wide), rank)))
    });
    stores.into_iter().chain(combinations).collect()
}

/// The macro definitions for scatter_combine.cu that depend on operation and dtype.
pub(super) struct CombineMacros {
    element: &'static str,
    combine: String,
    /// The function of atomic_update.cuh for the combination, and the type of its arguments: an integer type, or the type of a part (real
    /// or imaginary) of the element. `None` if there is no such function.
    atomic: Option<(&'static str, &'static str)>,
    rows: RowAssignment,
}

impl CombineMacros {
    /// Returns the definitions for the operation `op`, or `None` if `op` has no C++ expression.
    pub fn macros_for_operation(op: Op, dtype: DType, rows: RowAssignment) -> Option<CombineMacros> {
        let combine = cpp_expression(op)?.with_arguments(["a", "b"]);
        let word = match (dtype, op == ADD) {
            (DType::I32, false) => Some("i32"),
            (DType::I64, false) => Some("i64"),
            (DType::I32 | DType::U32, _) => Some("u32"),
            (DType::I64 | DType::U64, _) => Some("u64"),
            (DType::F32 | DType::C64, true) => Some("f32"),
            (DType::F64 | DType::C128, true) => Some("f64"),
            _ => None,
        };
        let functions = [(ADD, "atomic_add"), (MINIMUM, "atomic_minimum"), (MAXIMUM, "atomic_maximum")];
        let function = functions.into_iter().find(|(combined, _)| *combined == op).map(|(_, function)| function);
        Some(CombineMacros { element: ctype(dtype), combine, atomic: function.zip(word), rows })
    }

    fn macro_definitions<'a>(&'a self, index_element: &'a str, index: &'a str, rank: &'a str) -> Vec<(&'static str, &'a str)> {
        let mut defines = vec![
            ("ELEMENT", self.element),
            ("COMBINE(a, b)", &self.combine[..]),
            ("INDEX_ELEMENT", index_element),
            ("INDEX", index),
            ("RANK", rank),
        ];
        match (self.rows, self.atomic) {
            (RowAssignment::Grouped, _) => defines.push(("GROUPED", "1")),
            (RowAssignment::Distinct, _) => defines.push(("DISTINCT", "1")),
            (RowAssignment::Indexed, Some((function, word))) => defines.extend([("ATOMIC", function), ("WORD", word)]),
            (RowAssignment::Indexed, None) => {}
        }
        defines
    }
}

/// Plans the loop of a scatter with `count` indices, over the items that the kernel writes. Operand 0 is the values. Operand 1 is the
/// target, with stride 0 along the indexed axis. Operand 2 is the index array, with one index for each value or group of values.
/// `may_widen` allows items that have several elements.
pub(super) fn plan_scatter(
    values: &StoredArray,
    region: &Layout,
    rows: RowAssignment,
    count: usize,
    addresses: [u64; 2],
    may_widen: bool,
) -> Result<IndexedLoop<3>> {
    let (from, to) = (values.layout(), region);
    let with_first = |strides: &[isize], first: isize| -> Strides { std::iter::once(first).chain(strides[1..].iter().copied()).collect() };
    let mut shape: Dims = to.shape().into();
    shape[0] = count;
    // The values of a group are at arbitrary positions along the first axis. The loop has stride 0 along this axis, and the kernel adds the
    // positions.
    let source = if rows == RowAssignment::Grouped { with_first(from.strides(), 0) } else { from.strides().into() };
    let source = Layout::strided(&shape, &source, 0)?;
    let target = Layout::strided(&shape, &with_first(to.strides(), 0), 0)?;
    let index = Layout::strided(&shape, &with_first(&Strides::from_elem(0, shape.len()), 1), 0)?;
    let LoopPlan { dims, strides, .. } = LoopPlan::new(&[&source, &target, &index, &Layout::contiguous(&shape)?]);
    let mut scatter = IndexedLoop {
        item: values.dtype().itemsize(),
        dims,
        strides: [strides[0].clone(), strides[1].clone(), strides[2].clone()],
        extent: to.shape()[0],
        step: to.strides()[0],
        addresses,
    };
    if may_widen {
        scatter.widen_items();
    }
    Ok(scatter)
}

/// The arguments that the kernels of one scatter share.
pub(super) struct ScatterLaunch {
    pub context: &'static Context,
    pub scatter: IndexedLoop<3>,
    pub indices: u64,
    pub index_dtype: DType,
    pub op: u64,
}

impl ScatterLaunch {
    /// Queues kernels that find, for each row, the last of the `count` indices that selects the row. The kernels set `owners[row]` to the
    /// position of this index plus 1.
    pub fn queue_last_index_search(&self, owners: &CudaBuffer, count: usize) -> crate::Result<()> {
        // The two kernels that find the indices are compiled with the macros of the kernel that stores the values, so that all three
        // kernels share one entry of the disk cache.
        let rank = self.scatter.dims.len().to_string();
        let defines = self.store_macro_definitions(&rank);
        let owners = owners.pointer();
        for name in ["scatter_clear_owners", "scatter_write_owners"] {
            let function = STORE_SOURCE.get_or_compile_kernel(self.context, name, &defines)?;
            let mut args = Args::new();
            args.push(&owners).push(&self.indices).push(&count).push(&self.scatter.extent);
            // SAFETY: the arguments match both kernels. `owners` has an element for each row, and the kernels check every index.
            unsafe {
                function.launch(
                    kernel_lookup::grid_for_items(count as u64, DEFAULT_THREADS_PER_BLOCK),
                    [DEFAULT_THREADS_PER_BLOCK, 1, 1],
                    0,
                    args.pointers(),
                )?
            };
        }
        Ok(())
    }

    fn store_macro_definitions<'a>(&self, rank: &'a str) -> [(&'static str, &'a str); 4] {
        let (item, index) = (item_cpp_type(self.scatter.item), index_type(self.scatter.needs_wide_index()));
        [("ITEM", item), ("INDEX_ELEMENT", ctype(self.index_dtype)), ("INDEX", index), ("RANK", rank)]
    }

    pub fn queue_store(&self, owners: u64) -> crate::Result<()> {
        let rank = self.scatter.dims.len().to_string();
        let function = STORE_SOURCE.get_or_compile_kernel(self.context, "scatter_store", &self.store_macro_definitions(&rank))?;
        // SAFETY: scatter_store has the parameters that `queue_kernel` lists, with `owners` as `extra`. The axes stay inside values and
        // target, and the kernel checks every index.
        unsafe { self.scatter.queue_kernel(self.context, &function, 1, self.indices, &[owners], self.op) }
    }

    /// Queues a kernel that combines values with the elements of the target. For [`RowAssignment::Grouped`], `groups` holds the address of
    /// the positions of the values, the address of the group offsets, and the distance between consecutive values in elements. For other
    /// assignments, `groups` is `None`.
    pub fn queue_combine(&self, combination: &CombineMacros, groups: Option<[u64; 3]>) -> crate::Result<()> {
        let rank = self.scatter.dims.len().to_string();
        let defines = combination.macro_definitions(ctype(self.index_dtype), index_type(self.scatter.needs_wide_index()), &rank);
        let name = if groups.is_some() { "scatter_grouped" } else { "scatter_combine" };
        let function = COMBINE_SOURCE.get_or_compile_kernel(self.context, name, &defines)?;
        // SAFETY: the kernels have the parameters that `queue_kernel` lists. scatter_grouped has `groups` as `extra`. The axes stay inside
        // values and target, and the kernels check every index. The core crate computes the positions and offsets of groups from the
        // indices. Memory blocks are aligned to at least a word, so a word that is updated atomically belongs to one array.
        unsafe { self.scatter.queue_kernel(self.context, &function, 1, self.indices, groups.as_ref().map_or(&[], |g| &g[..]), self.op) }
    }
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

    #[test]
    fn loops_walk_the_values() {
        let region = Layout::contiguous(&[10, 6]).unwrap();
        let of = |rows, may_widen| plan_scatter(&array(&[3, 6]), &region, rows, 3, [0, 0], may_widen).unwrap();
        // Rows of 6 floats have 24 bytes, so items have 8 bytes and not 16.
        let stored = of(RowAssignment::Indexed, true);
        assert_eq!((stored.item, &stored.dims[..], stored.extent, stored.step), (8, &[3, 3][..], 10, 3));
        assert_eq!(stored.strides.each_ref().map(|s| s.to_vec()), [vec![3, 1], vec![0, 1], vec![1, 0]]);
        let combined = of(RowAssignment::Indexed, false);
        assert_eq!((combined.item, &combined.dims[..], combined.step), (4, &[3, 6][..], 6));
        let grouped = of(RowAssignment::Grouped, false);
        assert_eq!(grouped.strides.each_ref().map(|s| s.to_vec()), [vec![0, 1], vec![0, 1], vec![1, 0]]);
    }

    #[test]
    fn integers_use_atomic_functions() {
        let atomic = |op, dtype| CombineMacros::macros_for_operation(op, dtype, RowAssignment::Indexed).unwrap().atomic;
        assert_eq!(atomic(ADD, DType::I64), Some(("atomic_add", "u64")));
        assert_eq!(atomic(MINIMUM, DType::I32), Some(("atomic_minimum", "i32")));
        assert_eq!([atomic(MULTIPLY, DType::I32), atomic(ADD, DType::I16), atomic(MAXIMUM, DType::Bool)], [None; 3]);
    }
}
