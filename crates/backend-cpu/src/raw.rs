//! Untyped memory: runs of elements whose type is known by a [`DType`], output buffers being filled, scratch blocks, and
//! the disjoint parts of one output that threads fill at the same time. Everything offered here is safe to call: what the
//! compiler checks for slices, lengths and element types, is asserted here. Plans have shown it before.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use cuprum_core::array::Array;
use cuprum_core::buffer::HostBuffer;
use cuprum_core::device::Buffer;
use cuprum_core::{Call, DType, Element, Error, Result, Scalar, StoredArray, with_dtype};

use crate::cache::{Ahead, LINE, Line, NonTemporal};
use crate::transpose::{Rows, transpose, transpose_streamed};

/// A run of elements for reading.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    ptr: *const u8,
    len: usize,
    dtype: DType,
    life: PhantomData<&'a [u8]>,
}

// SAFETY: it is a shared slice of plain values.
unsafe impl Send for Elements<'_> {}
// SAFETY: as above.
unsafe impl Sync for Elements<'_> {}

impl<'a> Elements<'a> {
    /// The values of a slice.
    pub fn of<T: Element>(values: &'a [T]) -> Elements<'a> {
        Elements { ptr: values.as_ptr().cast(), len: values.len(), dtype: T::DTYPE, life: PhantomData }
    }

    /// The whole buffer of an array, from its start (not from the array's offset).
    pub fn buffer(array: &'a StoredArray) -> Result<Elements<'a>> {
        let host = host(array.buffer())?;
        let dtype = array.dtype();
        if dtype == DType::Bool && !host.holds_bools() {
            return Err(Error::backend("cpu", "buffer", "a bool array has bytes other than 0 and 1"));
        }
        Ok(Elements { ptr: host.as_ptr(), len: host.nbytes() / dtype.itemsize(), dtype, life: PhantomData })
    }

    /// The elements of a C-contiguous array.
    pub fn contiguous(array: &'a StoredArray) -> Result<Elements<'a>> {
        Ok(Elements::buffer(array)?.slice(array.layout().offset(), array.layout().size()))
    }

    /// Their type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// Their number.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Part of the run.
    pub fn slice(self, start: usize, len: usize) -> Elements<'a> {
        assert!(start <= self.len && len <= self.len - start, "{start}+{len} of {}", self.len);
        // SAFETY: `start` is inside the run, or its end.
        Elements { ptr: unsafe { self.ptr.add(start * self.dtype.itemsize()) }, len, ..self }
    }

    /// For a loop over the run, where the processor gains by asking.
    pub(crate) fn ahead(self) -> Option<Ahead> {
        Ahead::at(self.ptr)
    }

    /// For a loop over what was computed from the run, which goes on behind it.
    pub(crate) fn ahead_of_next(self) -> Ahead {
        Ahead::behind(self.ptr, self.len * self.dtype.itemsize())
    }

    /// The values as a slice of their Rust type.
    pub fn typed<T: Element>(self) -> &'a [T] {
        assert!(T::DTYPE == self.dtype, "{} read as {}", self.dtype, T::DTYPE);
        // SAFETY: made from a slice, a buffer or a scratch block that holds `len` values of `dtype`, which is T's; all
        // three are aligned for it, live for 'a, and are not written meanwhile. `buffer` has checked the bytes of bool.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

/// Parts of a run of elements, in order.
pub struct Chunks<'a> {
    rest: ElementsMut<'a>,
    chunk: usize,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = ElementsMut<'a>;
    fn next(&mut self) -> Option<ElementsMut<'a>> {
        if self.rest.len == 0 {
            return None;
        }
        let mid = self.chunk.min(self.rest.len);
        let (part, rest) = std::mem::take(&mut self.rest).split_at(mid);
        self.rest = rest;
        Some(part)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.rest.len.div_ceil(self.chunk);
        (len, Some(len))
    }
}

impl ExactSizeIterator for Chunks<'_> {}

/// A run of elements for writing; the only access to them while it lives.
pub struct ElementsMut<'a> {
    ptr: *mut u8,
    len: usize,
    dtype: DType,
    life: PhantomData<&'a mut [u8]>,
}

// SAFETY: it is an exclusive slice of plain values.
unsafe impl Send for ElementsMut<'_> {}

impl Default for ElementsMut<'_> {
    fn default() -> Self {
        ElementsMut { ptr: std::ptr::dangling_mut::<u64>().cast(), len: 0, dtype: DType::U8, life: PhantomData }
    }
}

impl<'a> ElementsMut<'a> {
    /// The values of a slice.
    pub fn of<T: Element>(values: &'a mut [T]) -> ElementsMut<'a> {
        ElementsMut { ptr: values.as_mut_ptr().cast(), len: values.len(), dtype: T::DTYPE, life: PhantomData }
    }

    /// Their type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Their number.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Two parts, the first of `mid` elements.
    pub fn split_at(self, mid: usize) -> (ElementsMut<'a>, ElementsMut<'a>) {
        assert!(mid <= self.len, "{mid} of {}", self.len);
        // SAFETY: `mid` is inside the run, or its end.
        let rest = unsafe { self.ptr.add(mid * self.dtype.itemsize()) };
        (ElementsMut { len: mid, ..self }, ElementsMut { ptr: rest, len: self.len - mid, ..self })
    }

    /// Parts of `chunk` elements, the last one shorter.
    pub fn chunks(self, chunk: usize) -> Chunks<'a> {
        Chunks { rest: self, chunk: chunk.max(1) }
    }

    /// The same run for a shorter time.
    pub fn reborrow(&mut self) -> ElementsMut<'_> {
        ElementsMut { ptr: self.ptr, len: self.len, dtype: self.dtype, life: PhantomData }
    }

    /// Part of the run.
    pub fn slice(&mut self, start: usize, len: usize) -> ElementsMut<'_> {
        self.reborrow().split_at(start).1.split_at(len).0
    }

    /// The run for reading.
    pub fn as_elements(&self) -> Elements<'_> {
        Elements { ptr: self.ptr, len: self.len, dtype: self.dtype, life: PhantomData }
    }

    /// The values as a slice of their Rust type. Fresh output memory holds any values.
    pub fn typed<T: Element>(self) -> &'a mut [T] {
        assert!(T::DTYPE == self.dtype, "{} written as {}", self.dtype, T::DTYPE);
        if T::DTYPE == DType::Bool {
            // SAFETY: `len` initialised bytes. Those that an earlier owner of the memory left may be no bool: here they become one.
            unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }.iter_mut().for_each(|byte| *byte &= 1);
        }
        // SAFETY: as in `Elements::typed`, with exclusive access; blocks and scratch are initialised, and any bytes are a value of
        // any type but bool.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.len) }
    }

    /// Copies values of the same type and number.
    pub fn copy_from(&mut self, source: Elements) {
        assert!(self.dtype == source.dtype && self.len == source.len, "copy of {} to {}", source.len, self.len);
        // SAFETY: both hold `len` elements; `self` is exclusive, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source.ptr, self.ptr, self.len * self.dtype.itemsize()) };
    }

    /// Copies the first of every `step` values of the same type.
    pub(crate) fn copy_every(self, step: usize, source: Elements) {
        with_dtype!(self.dtype, T => {
            let source = source.typed::<T>();
            self.typed::<T>().iter_mut().zip(source.iter().step_by(step)).for_each(|(to, &from)| *to = from);
        })
    }

    /// As [`ElementsMut::copy_from`], past the caches.
    pub(crate) fn stream_from(&mut self, source: Elements, stores: &NonTemporal) {
        assert!(self.dtype == source.dtype && self.len == source.len, "copy of {} to {}", source.len, self.len);
        // SAFETY: as in `copy_from`.
        unsafe { stores.copy(source.ptr, self.ptr, self.len * self.dtype.itemsize()) };
    }
}

fn host(buffer: &Arc<dyn Buffer>) -> Result<&HostBuffer> {
    buffer.as_any().downcast_ref().ok_or_else(|| Error::backend("cpu", "buffer", "an input is not in host memory"))
}

/// An error of the allocator with the call's operation in it.
pub(crate) fn for_op(call: &Call, error: Error) -> Error {
    match error {
        Error::OutOfMemory { device, requested, used, limit, .. } => {
            Error::OutOfMemory { op: call.op.name(), device, requested, used, limit }
        }
        e => e,
    }
}

/// An output of a call: new memory that nobody else knows yet.
pub(crate) struct Output {
    buffer: Arc<dyn Buffer>,
    dtype: DType,
    size: usize,
}

impl Output {
    /// Memory for output `n`.
    pub fn allocate(call: &Call, n: usize) -> Result<Output> {
        let buffer = call.allocate_output(n)?;
        let (dtype, size) = (call.outputs[n].dtype, call.outputs[n].layout.size());
        if host(&buffer)?.nbytes() < size * dtype.itemsize() {
            return Err(Error::backend("cpu", call.op.name(), "an output buffer is too small"));
        }
        Ok(Output { buffer, dtype, size })
    }

    /// Memory for the first `size` elements of output `n`, where only the kernel knows how many there are.
    pub fn with_length(call: &Call, n: usize, size: usize) -> Result<Output> {
        Output::beside(call, call.outputs[n].dtype, size)
    }

    /// Memory for values on the way to an output.
    pub fn beside(call: &Call, dtype: DType, size: usize) -> Result<Output> {
        Output::temporary(dtype, size).map_err(|e| for_op(call, e))
    }

    /// As [`Output::beside`], where the call is not known.
    pub fn temporary(dtype: DType, size: usize) -> Result<Output> {
        let buffer = HostBuffer::uninit(size.saturating_mul(dtype.itemsize()))?;
        Ok(Output { buffer: Arc::new(buffer), dtype, size })
    }

    /// Memory for output `n`, filled with zeros; pages that the system hands out zeroed are not touched.
    pub fn zeroed(call: &Call, n: usize) -> Result<Output> {
        let (dtype, size) = (call.outputs[n].dtype, call.outputs[n].layout.size());
        let buffer = HostBuffer::zeroed(size.saturating_mul(dtype.itemsize())).map_err(|e| for_op(call, e))?;
        Ok(Output { buffer: Arc::new(buffer), dtype, size })
    }

    /// All elements, to be written.
    pub fn elements(&mut self) -> Result<ElementsMut<'_>> {
        let ptr = host(&self.buffer)?.as_mut_ptr();
        Ok(ElementsMut { ptr, len: self.size, dtype: self.dtype, life: PhantomData })
    }

    /// The buffer, every element written.
    pub fn finish(self) -> Arc<dyn Buffer> {
        if self.dtype == DType::Bool
            && let Ok(host) = host(&self.buffer)
            && host.nbytes() == self.size
        {
            // SAFETY: every element has been written through a slice of `bool`, or copied from one, and these are all bytes.
            unsafe { host.assume_bools() };
        }
        self.buffer
    }
}

/// A block of scratch memory, aligned for every dtype and always initialised.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Line>);

impl Scratch {
    /// Whether it has never been used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes room for `bytes`.
    pub fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(LINE);
        if self.0.len() < lines {
            self.0.resize(lines, Line::ZERO);
        }
    }

    fn holds(&self, dtype: DType, len: usize) -> bool {
        len.saturating_mul(dtype.itemsize()) <= self.0.len() * LINE
    }

    /// The first `len` elements for reading, written before through [`Scratch::elements_mut`] with the same dtype.
    pub fn elements(&self, dtype: DType, len: usize) -> Elements<'_> {
        assert!(self.holds(dtype, len), "{len} of {dtype} in {} lines", self.0.len());
        Elements { ptr: self.0.as_ptr().cast(), len, dtype, life: PhantomData }
    }

    /// The first `len` elements for writing.
    pub fn elements_mut(&mut self, dtype: DType, len: usize) -> ElementsMut<'_> {
        assert!(self.holds(dtype, len), "{len} of {dtype} in {} lines", self.0.len());
        ElementsMut { ptr: self.0.as_mut_ptr().cast(), len, dtype, life: PhantomData }
    }
}

/// Blocks of scratch of one size, of which one is written while the others are read.
#[derive(Default)]
pub(crate) struct Blocks {
    scratch: Scratch,
    /// Lines from block to block.
    pitch: usize,
    count: usize,
}

impl Blocks {
    /// Cuts it into so many blocks with room for `bytes` each. They begin a line off multiples of a page, which sets of caches share.
    pub fn cut(&mut self, count: usize, bytes: usize) {
        (self.count, self.pitch) = (count, bytes.div_ceil(LINE) + 1);
        self.scratch.reserve(count * self.pitch * LINE);
    }

    /// The first elements of a block, for writing.
    pub fn elements_mut(&mut self, block: usize, dtype: DType, len: usize) -> ElementsMut<'_> {
        self.beside(block, dtype, len).0
    }

    /// The first elements of a block for writing, and all other blocks.
    pub fn beside(&mut self, block: usize, dtype: DType, len: usize) -> (ElementsMut<'_>, Others<'_>) {
        let others = Others { start: self.scratch.0.as_mut_ptr(), pitch: self.pitch, count: self.count, without: block, life: PhantomData };
        let ptr = others.locate(block, dtype, len);
        (ElementsMut { ptr, len, dtype, life: PhantomData }, others)
    }

    /// All blocks.
    pub fn all(&self) -> Others<'_> {
        let start = self.scratch.0.as_ptr().cast_mut();
        Others { start, pitch: self.pitch, count: self.count, without: usize::MAX, life: PhantomData }
    }
}

/// Blocks for reading: all of them, or all but one.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a> {
    start: *mut Line,
    pitch: usize,
    count: usize,
    without: usize,
    life: PhantomData<&'a [Line]>,
}

impl<'a> Others<'a> {
    /// The first elements of a block, written before with the same dtype.
    #[inline]
    pub fn elements(self, block: usize, dtype: DType, len: usize) -> Elements<'a> {
        assert!(block != self.without, "block {block} is being written");
        Elements { ptr: self.locate(block, dtype, len), len, dtype, life: PhantomData }
    }

    /// Where a block begins, which has room for so many elements.
    #[inline]
    fn locate(self, block: usize, dtype: DType, len: usize) -> *mut u8 {
        let room = self.pitch * LINE;
        assert!(block < self.count && len.saturating_mul(dtype.itemsize()) <= room, "{len} of {dtype} in block {block} of {room} bytes");
        // SAFETY: `Blocks::cut` made room for `count` blocks of `pitch` lines, and this is one of them.
        unsafe { self.start.add(block * self.pitch).cast() }
    }
}

/// A block of host memory for plain integers, from the allocator of arrays. Records are any at first.
pub(crate) struct Room<R> {
    block: Option<HostBuffer>,
    len: usize,
    life: PhantomData<R>,
}

impl<R> Default for Room<R> {
    fn default() -> Self {
        Room { block: None, len: 0, life: PhantomData }
    }
}

impl<R: Pod> Room<R> {
    /// Room for `len` records. Errors: not enough memory.
    pub fn new(len: usize) -> Result<Room<R>> {
        Ok(Room { block: Some(HostBuffer::uninit(len.saturating_mul(size_of::<R>()))?), len, life: PhantomData })
    }

    /// How many records there is room for.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All records.
    pub fn records(&mut self) -> &mut [R] {
        match &self.block {
            // SAFETY: the block holds `len` records, is aligned for any of them, and is this value's own; it is initialised, and any bits are
            // a record.
            Some(block) => unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), self.len) },
            None => &mut [],
        }
    }
}

/// Copies `out.len()` elements that lie `stride` apart in `source`, from index `start` on.
pub(crate) fn copy_strided<T: Copy>(source: &[T], start: isize, stride: isize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let last = start + stride * (out.len() as isize - 1);
    assert!(start.min(last) >= 0 && (start.max(last) as usize) < source.len(), "{start}..={last} of {}", source.len());
    match stride {
        1 => out.copy_from_slice(&source[start as usize..start as usize + out.len()]),
        0 => out.fill(source[start as usize]),
        _ => {
            let mut at = start;
            for value in out {
                // SAFETY: `at` goes evenly from `start` to `last`, both inside `source`.
                *value = unsafe { *source.get_unchecked(at as usize) };
                at += stride;
            }
        }
    }
}

/// A block of columns of a matrix; other threads may hold other columns of the same matrix.
pub(crate) struct ColumnsMut<'a, T> {
    ptr: *mut T,
    rows: usize,
    row_stride: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive view of plain values.
unsafe impl<T: Send> Send for ColumnsMut<'_, T> {}

impl<T> ColumnsMut<'_, T> {
    /// The block's part of a row.
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: by construction every row of the block lies in the matrix, and no other block holds these columns.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(row * self.row_stride), self.width) }
    }
}

/// Cuts a C-contiguous matrix of rows of `row_len` elements into blocks of `width` columns.
pub(crate) fn column_blocks<T>(matrix: &mut [T], row_len: usize, width: usize) -> Vec<ColumnsMut<'_, T>> {
    if matrix.is_empty() {
        return Vec::new();
    }
    assert!(row_len > 0 && matrix.len().is_multiple_of(row_len), "{} in rows of {row_len}", matrix.len());
    let (rows, width) = (matrix.len() / row_len, width.clamp(1, row_len));
    let ptr = matrix.as_mut_ptr();
    (0..row_len)
        .step_by(width)
        // SAFETY: the column lies in the first row.
        .map(|c| ColumnsMut { ptr: unsafe { ptr.add(c) }, rows, row_stride: row_len, width: width.min(row_len - c), life: PhantomData })
        .collect()
}

/// A scalar converted to an element type, as `astype` would.
pub(crate) fn element<T: Element>(value: Scalar) -> T {
    let bytes = value.to_bytes(T::DTYPE);
    // SAFETY: the first bytes are a value of T; no element is longer than 16 bytes.
    unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
}

/// Two axes of a copy: extents, and the steps of source and target along rows and columns.
pub(crate) struct Grid {
    pub height: usize,
    pub width: usize,
    pub source: [isize; 2],
    pub target: [isize; 2],
    /// Whether the whole copy is so large that it should pass by the caches.
    pub streamed: bool,
}

impl Grid {
    /// Lowest and highest place touched from `start` with these steps.
    fn reach(&self, start: isize, steps: [isize; 2]) -> (isize, isize) {
        let spans = [steps[0] * (self.height as isize - 1), steps[1] * (self.width as isize - 1)];
        let (low, high): (isize, isize) = (spans.iter().map(|s| s.min(&0)).sum(), spans.iter().map(|s| s.max(&0)).sum());
        (start + low, start + high)
    }
}

/// Copies a grid of elements: whole rows where both sides are contiguous, turned where they are so in different
/// directions, else in blocks whose lines stay in L1.
pub(crate) fn copy_grid<T: Copy>(source: &[T], from: isize, target: &mut [T], to: isize, grid: &Grid) {
    const SIDE: usize = 32;
    if grid.height == 0 || grid.width == 0 {
        return;
    }
    for (start, steps, len) in [(from, grid.source, source.len()), (to, grid.target, target.len())] {
        let (low, high) = grid.reach(start, steps);
        assert!(low >= 0 && (high as usize) < len, "{low}..={high} of {len}");
    }
    let (s, t) = (source.as_ptr().wrapping_offset(from), target.as_mut_ptr().wrapping_offset(to));
    if grid.source[1] == 1 && grid.target[1] == 1 {
        for row in 0..grid.height as isize {
            // SAFETY: `reach` shows that every row lies inside both slices; they are different memory.
            unsafe { std::ptr::copy_nonoverlapping(s.offset(row * grid.source[0]), t.offset(row * grid.target[0]), grid.width) };
        }
        return;
    }
    let rows = |start: isize, stride| Rows { start: start as usize, stride };
    let turn = if grid.streamed { transpose_streamed } else { transpose };
    if grid.source[0] == 1
        && grid.target[1] == 1
        && turn(source, rows(from, grid.source[1]), target, rows(to, grid.target[0]), grid.height, grid.width)
    {
        return;
    }
    for top in (0..grid.height).step_by(SIDE) {
        for left in (0..grid.width).step_by(SIDE) {
            for row in top as isize..grid.height.min(top + SIDE) as isize {
                for column in left as isize..grid.width.min(left + SIDE) as isize {
                    // SAFETY: as above, element by element.
                    unsafe {
                        *t.offset(row * grid.target[0] + column * grid.target[1]) =
                            *s.offset(row * grid.source[0] + column * grid.source[1])
                    };
                }
            }
        }
    }
}
