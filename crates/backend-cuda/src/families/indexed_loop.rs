//! The loop of kernels that read or write an array at indices along one of its axes: the kernel families `Gather` and `Scatter`.

use cuprum_core::layout::{Dims, Strides};

use crate::codegen::{Bytes, fits_32_bit_index, pack_axes};
use crate::compile::module::{Args, Function};
use crate::driver::Context;
use crate::families::copy::widest_item_bytes;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};

/// A loop over the items that a gather or scatter copies or combines. The last operand is the index array, with one index for each value or
/// group of values. The other operands are arrays of items. The array that is indexed has stride 0 along the indexed axis, because the
/// kernel adds the index times `step` to the offset.
#[derive(Debug, PartialEq)]
pub(super) struct IndexedLoop<const OPERANDS: usize> {
    /// Size of an item in bytes. An item is one element, or several contiguous elements.
    pub item: usize,
    /// Extents of the axes, outermost first.
    pub dims: Dims,
    /// Strides of each operand along `dims`, in items.
    pub strides: [Strides; OPERANDS],
    /// Extent of the indexed axis, against which the kernel checks each index.
    pub extent: usize,
    /// Stride of the indexed array along the indexed axis, in items of `item` bytes.
    pub step: isize,
    /// Addresses of the first item of the source and of the target.
    pub addresses: [u64; 2],
}

impl<const OPERANDS: usize> IndexedLoop<OPERANDS> {
    /// Combines contiguous elements of the innermost axis into items of up to 16 bytes, as far as alignment allows.
    pub fn widen_items(&mut self) {
        let (Some(last), Some((indices, arrays))) = (self.dims.len().checked_sub(1), self.strides.split_last_mut()) else { return };
        if indices[last] != 0 || arrays.iter().any(|s| s[last] != 1) {
            return;
        }
        let others = arrays.iter().flat_map(|s| s[..last].iter().copied()).chain([self.step]);
        let wide = widest_item_bytes(self.item, self.dims[last], others, self.addresses);
        let factor = wide / self.item;
        self.dims[last] /= factor;
        arrays.iter_mut().for_each(|array| array[..last].iter_mut().for_each(|s| *s /= factor as isize));
        (self.item, self.step) = (wide, self.step / factor as isize);
    }

    /// Returns the number of items of the loop.
    pub fn item_count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns whether indices and offsets need 64 bits.
    pub fn needs_wide_index(&self) -> bool {
        !fits_32_bit_index(self.item_count(), &self.dims, self.stride_slices())
    }

    /// Returns extents and strides as the `Axes` argument of a kernel.
    pub fn pack_axes_argument(&self) -> Bytes {
        pack_axes(&self.dims, self.stride_slices(), self.needs_wide_index())
    }

    fn stride_slices(&self) -> [&[isize]; OPERANDS] {
        self.strides.each_ref().map(|s| &s[..])
    }

    /// Queues a kernel on this thread's stream, with one thread for each `items_per_thread` items. `op` identifies the operation in the
    /// report of an index out of bounds.
    ///
    /// # Safety
    /// The parameters of the kernel are target, source, indices, number of items, extent, step, the values in `extra`, error word, `op`,
    /// and axes. The number of items has 64 bits if [`IndexedLoop::needs_wide_index`] returns true, else 32 bits. The addresses stay valid
    /// until the kernel has run. The loop stays inside the arrays if each index is inside the extent, which the kernel checks.
    pub unsafe fn queue_kernel(
        &self,
        context: &'static Context,
        function: &Function,
        items_per_thread: usize,
        indices: u64,
        extra: &[u64],
        op: u64,
    ) -> crate::Result<()> {
        let (count, axes) = (self.item_count(), self.pack_axes_argument());
        let ([source, target], fault) = (&self.addresses, context.fault_pointer()?);
        let mut args = Args::new();
        args.push(target).push(source).push(&indices).push(&count).push(&self.extent).push(&self.step);
        for value in extra {
            args.push(value);
        }
        args.push(&fault).push(&op).push_bytes(&axes);
        let grid = kernel_lookup::grid_for_items(count.div_ceil(items_per_thread) as u64, DEFAULT_THREADS_PER_BLOCK);
        // SAFETY: the caller guarantees that the arguments match the kernel and that its accesses are valid. For a 32-bit number of items,
        // the driver reads the low half of `count`.
        unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    }
}
