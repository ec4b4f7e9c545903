//! CUDA kernels of the family `Copy`: copies between strided layouts. The kernels copy items, which are one element or several contiguous
//! elements, so their code depends on the item size but not on the dtype. If source and target are contiguous, the driver copies them.
//! Transposes go through tiles in shared memory. Rows that are contiguous in the target are written in chunks of 16 bytes. All other copies
//! use a strided kernel with the widest items that the alignment allows.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::plan::elementwise::{self, LoopPlan};
use cuprum_core::{Array, Call, Error, Outcome, Result, StoredArray, Work, decline};

use crate::codegen::{fits_32_bit_index, index_type, pack_axes};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::{Context, check_result, sys};
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static COPY_SOURCE: KernelSource = KernelSource { name: "copy.cu", text: include_str!("../kernels/copy.cu") };

/// Side length of a shared-memory tile in items, as in copy.cu.
const COPY_TILE_SIDE: usize = 32;
/// Size of the chunks that the kernel `copy_rows` writes, in bytes.
const COPY_CHUNK_BYTES: usize = 16;
/// Minimum size of a row, in bytes, that the kernel `copy_rows` writes in aligned chunks although the ends of the row are unaligned. In
/// shorter rows, too many chunks would be incomplete.
const MIN_CHUNKED_ROW_BYTES: usize = 8 * COPY_CHUNK_BYTES;

/// Returns the C++ type of items of `bytes` bytes: 1, 2, 4, 8 or 16.
pub(crate) const fn item_cpp_type(bytes: usize) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "Pack<u64, 2>",
    }
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every item size, both index types, and
/// several ranks.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(1, false, "1"), (2, true, "2"), (4, false, "0"), (4, false, "2"), (4, true, "5"), (8, true, "0"), (16, false, "1")];
    uses.map(|(item, wide, rank)| COPY_SOURCE.named_source(&[("ITEM", item_cpp_type(item)), ("INDEX", index_type(wide)), ("RANK", rank)]))
        .into()
}

/// Executes `call`, an operation of the kernel family `Copy`, on the device.
pub(crate) fn run_copy(call: &Call) -> Result<Outcome> {
    let (Work::Copy(call::Copy { regions }), [spec]) = (&call.work, call.outputs) else { decline!("not a copy to one output") };
    if call.inputs.iter().any(|a| a.dtype() != spec.dtype) || call.inputs.len() != regions.len() {
        decline!("an input of another dtype, or without a region");
    }
    let out = device::allocate_output(call, 0)?;
    for (input, region) in call.inputs.iter().zip(*regions) {
        let target = StoredArray::new(spec.dtype, region.clone(), out.clone() as Arc<dyn Buffer>)?;
        queue_copy(call, input, &target)?;
    }
    device::outcome_from_buffers(call, [out])
}

/// Queues a copy of the elements of `from` to `to`. The two arrays must have equal shapes and dtypes, and must not overlap.
pub(crate) fn queue_copy(call: &Call, from: &StoredArray, to: &StoredArray) -> Result<()> {
    let (source, target) = (device::pointer_to_read(from)?, device::pointer_to_read(to)?);
    if from.shape() != to.shape() || from.dtype() != to.dtype() {
        return Err(Error::shape(call.op.name(), "a part does not fit its region", &[from.shape(), to.shape()]));
    }
    if from.layout().size() == 0 {
        return Ok(());
    }
    let plan = LoopPlan::new(&[from.layout(), to.layout()]);
    StridedCopy::new(&plan, from.dtype().itemsize(), source, target).queue_copy(device::context(call.device)?).with_call_context(call)
}

/// A copy between strided layouts, as a loop over items.
#[derive(Debug, PartialEq)]
struct StridedCopy {
    /// Size of an item, in bytes.
    item: usize,
    /// Extents of the axes, outermost first.
    dims: Dims,
    /// Strides of the source, in items.
    from: Strides,
    /// Strides of the target, in items.
    to: Strides,
    source: u64,
    target: u64,
}

/// The method of a strided copy.
#[derive(Debug, PartialEq)]
enum CopyMethod {
    /// One driver copy of contiguous memory. The field is the number of bytes.
    Contiguous(usize),
    /// Transposition through shared-memory tiles. A tile spans two axes: the axis whose index is the field, and the last axis.
    Tiled(usize),
    /// The kernel that writes rows along the last axis in chunks of 16 bytes.
    Rows,
    /// The kernel `copy_strided`, for layouts that no other method supports.
    Strided,
}

impl StridedCopy {
    /// Returns the copy that `plan` describes, from the address `source` to the address `target`. `item` is the size of an element in
    /// bytes. If the innermost axis is contiguous, the copy has the widest items that alignment and extents allow.
    fn new(plan: &LoopPlan, item: usize, source: u64, target: u64) -> StridedCopy {
        let (mut dims, mut from, mut to) = (plan.dims.clone(), plan.strides[0].clone(), plan.strides[1].clone());
        if let Some((last, outer)) = from.len().checked_sub(1).map(|last| (last, [&from[..last], &to[..last]]))
            && (from[last], to[last]) == (1, 1)
        {
            let wide = widest_item_bytes(item, dims[last], outer.into_iter().flatten().copied(), [source, target]);
            let factor = wide / item;
            dims[last] /= factor;
            for strides in [&mut from, &mut to] {
                strides[..last].iter_mut().for_each(|s| *s /= factor as isize);
            }
            if dims[last] == 1 {
                dims.truncate(last);
                from.truncate(last);
                to.truncate(last);
            }
            return StridedCopy { item: wide, dims, from, to, source, target };
        }
        StridedCopy { item, dims, from, to, source, target }
    }

    fn select_copy_method(&self) -> CopyMethod {
        let Some(last) = self.dims.len().checked_sub(1) else { return CopyMethod::Contiguous(self.item) };
        if last == 0 && (self.from[0], self.to[0]) == (1, 1) {
            return CopyMethod::Contiguous(self.dims[0] * self.item);
        }
        let long = |axis: usize| self.dims[axis] >= COPY_TILE_SIDE / 2;
        let row_bytes = self.dims[last].saturating_mul(self.item);
        match elementwise::find_transposed_axis(&self.from) {
            Some(row) if self.to[last].unsigned_abs() == 1 && long(row) && long(last) => CopyMethod::Tiled(row),
            _ if self.to[last] == 1 && self.item < COPY_CHUNK_BYTES && (self.has_aligned_rows() || row_bytes >= MIN_CHUNKED_ROW_BYTES) => {
                CopyMethod::Rows
            }
            _ => CopyMethod::Strided,
        }
    }

    /// Returns whether each row of the target begins and ends at a multiple of [`COPY_CHUNK_BYTES`].
    fn has_aligned_rows(&self) -> bool {
        let Some((&inner, outer)) = self.dims.split_last() else { return false };
        widest_item_bytes(self.item, inner, self.to[..outer.len()].iter().copied(), [self.target; 2]) == COPY_CHUNK_BYTES
    }

    fn queue_copy(&self, context: &'static Context) -> crate::Result<()> {
        match self.select_copy_method() {
            CopyMethod::Contiguous(bytes) => {
                context.make_current()?;
                // SAFETY: both layouts were checked against their buffers, and `bytes` is the size of all their elements.
                check_result("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(self.target, self.source, bytes, context.stream()) })
            }
            CopyMethod::Tiled(row) => self.queue_tiled_copy(context, row),
            CopyMethod::Rows => self.queue_row_copy(context),
            CopyMethod::Strided => self.queue_strided_copy(context),
        }
    }

    /// Returns whether indices and offsets need 64 bits.
    fn needs_wide_index(&self) -> bool {
        !fits_32_bit_index(self.dims.iter().product(), &self.dims, [&self.from[..], &self.to[..]])
    }

    fn queue_strided_copy(&self, context: &'static Context) -> crate::Result<()> {
        let wide = self.needs_wide_index();
        let rank = self.dims.len().to_string();
        let defines = [("ITEM", item_cpp_type(self.item)), ("INDEX", index_type(wide)), ("RANK", rank.as_str())];
        let function = COPY_SOURCE.get_or_compile_kernel(context, "copy_strided", &defines)?;
        let count: usize = self.dims.iter().product();
        let axes = pack_axes(&self.dims, [&self.from[..], &self.to[..]], wide);
        let mut args = Args::new();
        args.push(&self.target).push(&self.source).push(&count).push_bytes(&axes);
        // SAFETY: the arguments match copy_strided. If INDEX is i32, the driver reads the low half of `count`, which fits in 32 bits.
        // Extents and strides stay inside both buffers.
        unsafe {
            function.launch(
                kernel_lookup::grid_for_items(count as u64, DEFAULT_THREADS_PER_BLOCK),
                [DEFAULT_THREADS_PER_BLOCK, 1, 1],
                0,
                args.pointers(),
            )
        }
    }

    fn queue_row_copy(&self, context: &'static Context) -> crate::Result<()> {
        let last = self.dims.len() - 1;
        let (outer, inner) = (&self.dims[..last], self.dims[last]);
        let wide = self.needs_wide_index();
        let rank = last.to_string();
        let defines = [("ITEM", item_cpp_type(self.item)), ("INDEX", index_type(wide)), ("RANK", rank.as_str())];
        let function = COPY_SOURCE.get_or_compile_kernel(context, "copy_rows", &defines)?;
        let chunk = COPY_CHUNK_BYTES / self.item;
        let chunks = if self.has_aligned_rows() { inner / chunk } else { (inner + 2 * chunk - 2) / chunk };
        let count = outer.iter().product::<usize>() * chunks;
        let axes = pack_axes(outer, [&self.from[..last], &self.to[..last]], wide);
        let mut args = Args::new();
        args.push(&self.target).push(&self.source).push(&count).push(&chunks).push(&inner).push(&self.from[last]).push_bytes(&axes);
        // SAFETY: the arguments match copy_rows. For its 32-bit parameters, the driver reads the low halves of 64-bit arguments, which fit
        // in 32 bits. Extents and strides stay inside both buffers. There are at most as many chunks as elements: aligned rows have no
        // incomplete chunk, and other rows are at least eight chunks long.
        unsafe {
            function.launch(
                kernel_lookup::grid_for_items(count as u64, DEFAULT_THREADS_PER_BLOCK),
                [DEFAULT_THREADS_PER_BLOCK, 1, 1],
                0,
                args.pointers(),
            )
        }
    }

    fn queue_tiled_copy(&self, context: &'static Context, row: usize) -> crate::Result<()> {
        let last = self.dims.len() - 1;
        let outer: Dims = (0..last).filter(|&axis| axis != row).collect();
        let dims: Dims = outer.iter().map(|&axis| self.dims[axis]).collect();
        let [from, to] = [&self.from, &self.to].map(|s| outer.iter().map(|&axis| s[axis]).collect::<Strides>());
        let wide = self.needs_wide_index();
        let rank = outer.len().to_string();
        let defines = [("ITEM", item_cpp_type(self.item)), ("INDEX", index_type(wide)), ("RANK", rank.as_str())];
        let function = COPY_SOURCE.get_or_compile_kernel(context, "copy_tiled", &defines)?;
        let (rows, columns) = (self.dims[row], self.dims[last]);
        let tiles = (dims.iter().product::<usize>() * rows.div_ceil(COPY_TILE_SIDE) * columns.div_ceil(COPY_TILE_SIDE)) as u64;
        let steps = [[self.from[row], self.from[last]], [self.to[row], self.to[last]]].map(|s| pack_index_pair(s, wide));
        let axes = pack_axes(&dims, [&from[..], &to[..]], wide);
        let mut args = Args::new();
        args.push(&self.target).push(&self.source).push(&tiles).push(&rows).push(&columns);
        args.push(&steps[0]).push(&steps[1]).push_bytes(&axes);
        // SAFETY: the arguments match copy_tiled. For its 32-bit parameters, the driver reads the low halves of 64-bit arguments, which fit
        // in 32 bits. Extents and strides stay inside both buffers.
        unsafe { function.launch(kernel_lookup::grid_for_items(tiles, 1), [32, 8, 1], 0, args.pointers()) }
    }
}

/// Returns `a` and `b` in the layout of a C++ struct of two INDEX values. INDEX has 64 bits if `wide`, else 32 bits.
fn pack_index_pair([a, b]: [isize; 2], wide: bool) -> [u64; 2] {
    if wide { [a as u64, b as u64] } else { [u64::from(a as u32) | u64::from(b as u32) << 32, 0] }
}

/// Returns the largest item size in bytes, up to 16, that divides the size of `inner` contiguous elements, all strides and both addresses.
/// `item` is the size of an element in bytes, and the smallest possible result. Strides are in elements.
pub(crate) fn widest_item_bytes(item: usize, inner: usize, strides: impl Iterator<Item = isize> + Clone, addresses: [u64; 2]) -> usize {
    let fits = |wide: usize| {
        (inner * item).is_multiple_of(wide)
            && strides.clone().all(|s| (s.unsigned_abs() * item).is_multiple_of(wide))
            && addresses.iter().all(|a| a.is_multiple_of(wide as u64))
    };
    [16, 8, 4, 2].into_iter().find(|&wide| wide > item && fits(wide)).unwrap_or(item)
}

#[cfg(test)]
mod tests {
    use cuprum_core::Layout;

    use super::*;

    fn strided(from: &Layout, to: &Layout, item: usize, source: u64) -> StridedCopy {
        StridedCopy::new(&LoopPlan::new(&[from, to]), item, source, 0)
    }

    #[test]
    fn copy_methods_follow_from_strides() {
        let c = |shape: &[usize]| Layout::contiguous(shape).unwrap();
        assert_eq!(strided(&c(&[3, 5]), &c(&[3, 5]), 4, 4).select_copy_method(), CopyMethod::Contiguous(60));
        assert_eq!(strided(&c(&[]), &c(&[]), 8, 0).select_copy_method(), CopyMethod::Contiguous(8));
        let turned = strided(&c(&[7, 100, 64]).permute(&[0, 2, 1]).unwrap(), &c(&[7, 64, 100]), 4, 0);
        assert_eq!((turned.select_copy_method(), &turned.dims[..]), (CopyMethod::Tiled(1), &[7, 64, 100][..]));
        let small = strided(&c(&[100, 4]).transpose(), &c(&[4, 100]), 4, 0);
        assert_eq!(small.select_copy_method(), CopyMethod::Rows);
        let flipped = strided(&c(&[100]).flip(&[0]), &c(&[100]), 4, 396);
        assert_eq!((flipped.select_copy_method(), flipped.from[0]), (CopyMethod::Rows, -1));
        let repeated = strided(&c(&[100]).broadcast_to(&[50, 100]).unwrap().transpose(), &c(&[100, 50]), 4, 0);
        assert_eq!(repeated.select_copy_method(), CopyMethod::Rows);
        let each_twice = |item: usize| strided(&Layout::strided(&[100, 2], &[1, 0], 0).unwrap(), &c(&[100, 2]), item, 0);
        assert_eq!((each_twice(8).select_copy_method(), each_twice(4).select_copy_method()), (CopyMethod::Rows, CopyMethod::Strided));
    }

    #[test]
    fn items_widen_with_alignment() {
        // The source is columns 0..8 of rows of 20 float32: 32 of every 80 bytes.
        let part = Layout::strided(&[6, 8], &[20, 1], 0).unwrap();
        let whole = Layout::contiguous(&[6, 8]).unwrap();
        let wide = strided(&part, &whole, 4, 0);
        assert_eq!((wide.item, &wide.dims[..], &wide.from[..], &wide.to[..]), (16, &[6, 2][..], &[5, 1][..], &[2, 1][..]));
        let turned = strided(
            &Layout::contiguous(&[70, 40, 4]).unwrap().permute(&[1, 0, 2]).unwrap(),
            &Layout::contiguous(&[40, 70, 4]).unwrap(),
            4,
            0,
        );
        assert_eq!((turned.item, &turned.dims[..], turned.select_copy_method()), (16, &[40, 70][..], CopyMethod::Tiled(0)));
        assert_eq!(strided(&part, &whole, 4, 8).item, 8);
        assert_eq!(strided(&part, &whole, 4, 4).item, 4);
        let odd = Layout::strided(&[6, 8], &[-22, 1], 110).unwrap();
        assert_eq!((strided(&odd, &whole, 4, 0).item, strided(&odd, &whole, 4, 0).from[0]), (8, -11));
        assert_eq!(strided(&whole.transpose(), &Layout::contiguous(&[8, 6]).unwrap(), 2, 0).item, 2);
    }

    #[test]
    fn steps_are_two_indices() {
        assert_eq!(pack_index_pair([-1, 7], true), [u64::MAX, 7]);
        assert_eq!(pack_index_pair([-1, 7], false), [0x7_ffff_ffff, 0]);
    }
}
