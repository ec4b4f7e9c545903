//! Typed views of untyped memory: element ranges whose type is a run-time [`DType`], output buffers, scratch blocks, and
//! disjoint parts of one output for several threads. All functions are safe to call. Lengths and element types,
//! which the compiler checks for slices, are asserted here.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::AnyBitPattern;
use cuprum_core::array::Array;
use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Call, DType, Element, Error, Result, Scalar, StoredArray};

use crate::cache_hints::{CACHE_LINE_BYTES, CacheLine, NonTemporalStores, PrefetchState};

/// Returns the unsigned integer dtype of the same size for a signed integer dtype, and any other dtype unchanged. Wrapping sums,
/// differences and products, bit operations and equality have the same bits for signed and unsigned integers.
pub const fn unsigned_dtype(dtype: DType) -> DType {
    match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        other => other,
    }
}

/// Returns the unsigned integer dtype of the same size as an integer or float dtype. Bool and complex dtypes are returned unchanged. Loops
/// that only move elements are compiled for these dtypes.
pub const fn bit_pattern_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::U16,
        DType::F32 => DType::U32,
        DType::F64 => DType::U64,
        other => unsigned_dtype(other),
    }
}

/// Evaluates an expression in which `$T` is the element type of a dtype's [`bit_pattern_dtype`].
#[macro_export]
macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $crate::typed_views::bit_pattern_dtype($dtype) {
            cuprum_core::DType::Bool => $crate::with_bits!(@ bool, $T => $body),
            cuprum_core::DType::U8 => $crate::with_bits!(@ u8, $T => $body),
            cuprum_core::DType::U16 => $crate::with_bits!(@ u16, $T => $body),
            cuprum_core::DType::U32 => $crate::with_bits!(@ u32, $T => $body),
            cuprum_core::DType::C64 => $crate::with_bits!(@ cuprum_core::Complex<f32>, $T => $body),
            cuprum_core::DType::C128 => $crate::with_bits!(@ cuprum_core::Complex<f64>, $T => $body),
            // The dtypes that are not listed above have 8 bytes per element, which `typed_slice` asserts.
            _ => $crate::with_bits!(@ u64, $T => $body),
        }
    };
    (@ $t:ty, $T:ident => $body:expr) => {{
        type $T = $t;
        $body
    }};
}

/// A shared slice of elements whose type is known at run time.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    ptr: *const u8,
    len: usize,
    dtype: DType,
    /// Whether the bytes of bool are known to be 0 or 1. If false, [`Elements::typed_slice`] reads them first.
    has_valid_bools: bool,
    life: PhantomData<&'a [u8]>,
}

// SAFETY: an `Elements` is a shared slice of plain data, which may be sent to another thread like a `&[T]`.
unsafe impl Send for Elements<'_> {}
// SAFETY: an `Elements` is a shared slice of plain data, which several threads may read like a `&[T]`.
unsafe impl Sync for Elements<'_> {}

impl<'a> Elements<'a> {
    /// Returns a view of the slice `values`, with the dtype of `T`.
    #[inline]
    pub fn of<T: Element>(values: &'a [T]) -> Elements<'a> {
        Elements { ptr: values.as_ptr().cast(), len: values.len(), dtype: T::DTYPE, has_valid_bools: true, life: PhantomData }
    }

    /// Returns a view of the whole buffer of `array`, from the buffer's start (not from the array's offset).
    pub fn from_whole_buffer(array: &'a StoredArray) -> Result<Elements<'a>> {
        let host = as_host_buffer(array.buffer())?;
        let dtype = array.dtype();
        if dtype == DType::Bool && !host.has_valid_bools() {
            return Err(Error::backend("cpu", "buffer", "a bool array has bytes other than 0 and 1"));
        }
        check_alignment(host, dtype)?;
        Ok(Elements { ptr: host.as_ptr(), len: host.nbytes() / dtype.itemsize(), dtype, has_valid_bools: true, life: PhantomData })
    }

    /// Returns a view of the elements of the C-contiguous array `array`.
    #[inline]
    pub fn from_contiguous_array(array: &'a StoredArray) -> Result<Elements<'a>> {
        Ok(Elements::from_whole_buffer(array)?.slice(array.layout().offset(), array.layout().size()))
    }

    /// Returns the element type.
    #[inline]
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns a view of the `len` elements from index `start` on.
    #[inline]
    pub fn slice(self, start: usize, len: usize) -> Elements<'a> {
        assert!(start <= self.len && len <= self.len - start, "{start}+{len} of {}", self.len);
        // SAFETY: the assertion above has checked `start + len <= self.len`.
        Elements { ptr: unsafe { self.ptr.add(start * self.dtype.itemsize()) }, len, ..self }
    }

    /// Returns the prefetching state for a loop over these elements, or `None` unless the processor benefits from prefetching.
    #[inline]
    pub fn prefetch_state(self) -> Option<PrefetchState> {
        PrefetchState::at(self.ptr)
    }

    /// Returns the prefetching state for a loop over these elements. A second loop then reads the memory that follows the elements
    /// ([`PrefetchState::new_for_first_of_two_loops`]).
    #[inline]
    pub fn prefetch_state_for_first_of_two_loops(self) -> PrefetchState {
        PrefetchState::new_for_first_of_two_loops(self.ptr, self.len * self.dtype.itemsize())
    }

    /// Returns the elements as a slice of `T`.
    ///
    /// # Panics
    /// Panics unless `T` is the type of the dtype or of its [`bit_pattern_dtype`]. Panics if the dtype is bool and a byte is neither 0 nor
    /// 1, as in memory that has not been written as bool.
    pub fn typed_slice<T: Element>(self) -> &'a [T] {
        if T::DTYPE != self.dtype && T::DTYPE != bit_pattern_dtype(self.dtype) {
            panic_wrong_dtype(self.dtype, T::DTYPE);
        }
        if T::DTYPE == DType::Bool {
            self.assert_valid_bools();
        }
        // SAFETY: `ptr` comes from a slice, buffer or scratch block that holds `len` values of `dtype`, which is T's dtype or has the size
        // and alignment of the integer T. All three live for 'a, and are not written meanwhile. `from_whole_buffer` has checked that the
        // memory is aligned for the dtype, and `assert_valid_bools` that the bytes of bool are 0 or 1.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }

    /// Panics if the dtype is bool and a byte is neither 0 nor 1.
    fn assert_valid_bools(self) {
        if self.dtype == DType::Bool && !self.has_valid_bools {
            // SAFETY: `ptr` points to `len` initialised bytes, as in `typed_slice`.
            let bytes = unsafe { std::slice::from_raw_parts(self.ptr, self.len) };
            assert!(bytes.iter().fold(0, |bits, byte| bits | byte) <= 1, "elements read as bool have not been written as bool");
        }
    }
}

/// An iterator over consecutive parts of an [`ElementsMut`].
pub struct ElementChunksMut<'a> {
    rest: ElementsMut<'a>,
    chunk: usize,
}

impl<'a> Iterator for ElementChunksMut<'a> {
    type Item = ElementsMut<'a>;
    #[inline]
    fn next(&mut self) -> Option<ElementsMut<'a>> {
        if self.rest.len == 0 {
            return None;
        }
        let mid = self.chunk.min(self.rest.len);
        let (part, rest) = std::mem::take(&mut self.rest).split_at(mid);
        self.rest = rest;
        Some(part)
    }
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.rest.len.div_ceil(self.chunk);
        (len, Some(len))
    }
}

impl ExactSizeIterator for ElementChunksMut<'_> {}

/// An exclusive slice of elements whose type is known at run time.
pub struct ElementsMut<'a> {
    ptr: *mut u8,
    len: usize,
    dtype: DType,
    /// The counter [`Output::written_bools`] of the output that contains these elements. `None` if the elements are not an output or not
    /// bool.
    written_bools: Option<&'a AtomicUsize>,
    /// Number of elements at the start of this view that borrowed views have taken. The borrowed views count these elements in
    /// `written_bools`, so this view does not.
    lent: usize,
    life: PhantomData<&'a mut [u8]>,
}

// SAFETY: an `ElementsMut` is an exclusive slice of plain data, which may be sent to another thread like a `&mut [T]`.
unsafe impl Send for ElementsMut<'_> {}

impl Default for ElementsMut<'_> {
    fn default() -> Self {
        ElementsMut::at(std::ptr::dangling_mut::<u64>().cast(), DType::U8, 0)
    }
}

impl<'a> ElementsMut<'a> {
    /// Returns an exclusive view of the slice `values`, with the dtype of `T`.
    #[inline]
    pub fn of<T: Element>(values: &'a mut [T]) -> ElementsMut<'a> {
        ElementsMut::at(values.as_mut_ptr().cast(), T::DTYPE, values.len())
    }

    /// Returns a view of the `len` elements of `dtype` at `ptr`, which the caller borrows exclusively for 'a.
    #[inline]
    fn at(ptr: *mut u8, dtype: DType, len: usize) -> ElementsMut<'a> {
        ElementsMut { ptr, len, dtype, written_bools: None, lent: 0, life: PhantomData }
    }

    /// Returns the element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Splits into the first `mid` elements and the rest.
    #[inline]
    pub fn split_at(self, mid: usize) -> (ElementsMut<'a>, ElementsMut<'a>) {
        assert!(mid <= self.len, "{mid} of {}", self.len);
        // SAFETY: the assertion above has checked that `mid` is at most the length.
        let rest = unsafe { self.ptr.add(mid * self.dtype.itemsize()) };
        let lent = self.lent.min(mid);
        (ElementsMut { len: mid, lent, ..self }, ElementsMut { ptr: rest, len: self.len - mid, lent: self.lent - lent, ..self })
    }

    /// Returns an iterator over parts of `chunk` elements; the last part may be shorter.
    #[inline]
    pub fn chunks(self, chunk: usize) -> ElementChunksMut<'a> {
        ElementChunksMut { rest: self, chunk: chunk.max(1) }
    }

    /// Reborrows the slice for a shorter lifetime.
    #[inline]
    pub fn reborrow(&mut self) -> ElementsMut<'_> {
        self.slice(0, self.len)
    }

    /// Returns an exclusive view of the `len` elements from index `start` on.
    ///
    /// The elements count as written bools only if slices are taken in order and without gaps.
    #[inline]
    pub fn slice(&mut self, start: usize, len: usize) -> ElementsMut<'_> {
        assert!(start <= self.len && len <= self.len - start, "{start}+{len} of {}", self.len);
        // SAFETY: the assertion above has checked `start + len <= self.len`.
        let ptr = unsafe { self.ptr.add(start * self.dtype.itemsize()) };
        let lent = if self.lent == start { 0 } else { len };
        self.lent += len - lent;
        ElementsMut { ptr, len, lent, ..*self }
    }

    /// Returns a shared view of the same elements.
    #[inline]
    pub fn as_elements(&self) -> Elements<'_> {
        Elements { ptr: self.ptr, len: self.len, dtype: self.dtype, has_valid_bools: false, life: PhantomData }
    }

    /// Adds the number of elements to the output's counter `written_bools`, except elements that borrowed views count (`lent`). Called once
    /// the bytes of the elements are 0 or 1.
    #[inline]
    fn count_written_bools(&mut self) {
        if let Some(written) = self.written_bools.take() {
            written.fetch_add(self.len - self.lent, Ordering::Relaxed);
        }
    }

    /// Returns the elements as a mutable slice of `T`, with the same condition on `T` as [`Elements::typed_slice`]. For bool, first clears
    /// all bits of each byte but the lowest, because newly allocated memory holds arbitrary bytes.
    pub fn typed_slice<T: Element>(mut self) -> &'a mut [T] {
        if T::DTYPE != self.dtype && T::DTYPE != bit_pattern_dtype(self.dtype) {
            panic_wrong_dtype(self.dtype, T::DTYPE);
        }
        if T::DTYPE == DType::Bool {
            // SAFETY: `ptr` points to `len` initialised bytes. A previous owner of the memory may have left bytes other than 0 and 1;
            // `keep_lowest_bit_of_bytes` makes them valid bools.
            keep_lowest_bit_of_bytes(unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) });
            self.count_written_bools();
        }
        // SAFETY: the conditions on `ptr` and `len` are those of `Elements::typed_slice`, and access is exclusive. Output and scratch
        // memory is initialised. Any bytes are valid for every type but bool, for which `keep_lowest_bit_of_bytes` makes them valid.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.len) }
    }

    /// Copies `source`, which has the same dtype and length, into these elements.
    #[inline]
    pub fn copy_from(&mut self, source: Elements) {
        assert!(self.dtype == source.dtype && self.len == source.len, "copy of {} to {}", source.len, self.len);
        source.assert_valid_bools();
        self.count_written_bools();
        // SAFETY: both pointers are valid for `len` elements of the same dtype; `self` is exclusive, so the ranges do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source.ptr, self.ptr, self.len * self.dtype.itemsize()) };
    }

    /// Copies every `step`th element of `source`, from the first one on, into these elements. `source` has the same dtype.
    pub fn copy_every_nth(self, step: usize, source: Elements) {
        with_bits!(self.dtype, T => {
            let source = source.typed_slice::<T>();
            self.typed_slice::<T>().iter_mut().zip(source.iter().step_by(step)).for_each(|(to, &from)| *to = from);
        })
    }

    /// Copies `source`, which has the same dtype and length, into these elements with the non-temporal stores of `stores`.
    pub fn copy_non_temporal_from(&mut self, source: Elements, stores: &NonTemporalStores) {
        assert!(self.dtype == source.dtype && self.len == source.len, "copy of {} to {}", source.len, self.len);
        source.assert_valid_bools();
        self.count_written_bools();
        // SAFETY: both pointers are valid for `len` elements of the same dtype; `self` is exclusive, so the ranges do not overlap.
        unsafe { stores.copy_bytes(source.ptr, self.ptr, self.len * self.dtype.itemsize()) };
    }
}

/// Panics because elements of `dtype` were requested as elements of the dtype `requested`. Not inlined, because every kernel calls
/// `typed_slice` for each argument.
#[cold]
#[inline(never)]
fn panic_wrong_dtype(dtype: DType, requested: DType) -> ! {
    panic!("elements of {dtype} requested as {requested}")
}

/// Clears all bits but the lowest of each byte.
#[inline(never)]
fn keep_lowest_bit_of_bytes(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte &= 1);
}

fn as_host_buffer(buffer: &Arc<dyn Buffer>) -> Result<&HostBuffer> {
    buffer.as_any().downcast_ref().ok_or_else(|| Error::backend("cpu", "buffer", "an input is not in host memory"))
}

/// Returns an error if the memory is not aligned for `dtype`. Only memory that another library allocated can be misaligned.
#[inline]
fn check_alignment(host: &HostBuffer, dtype: DType) -> Result<()> {
    if host.is_aligned_for(dtype) { Ok(()) } else { Err(misaligned_error(host, dtype)) }
}

#[cold]
fn misaligned_error(host: &HostBuffer, dtype: DType) -> Error {
    let message = format!("memory at {:p} is not aligned for {dtype} ({} bytes); copy it to a new array", host.as_ptr(), dtype.alignment());
    Error::backend("cpu", "buffer", message)
}

/// Adds the name of the operation to `error` if `error` is an out-of-memory error. Returns other errors unchanged.
pub fn add_op_to_out_of_memory_error(op: &'static str, error: Error) -> Error {
    match error {
        Error::OutOfMemory { device, requested, used, limit, .. } => Error::OutOfMemory { op, device, requested, used, limit },
        e => e,
    }
}

/// Memory for one output of an operation, or for intermediate values.
pub struct Output {
    buffer: Arc<dyn Buffer>,
    dtype: DType,
    size: usize,
    /// Number of elements that are known to be 0 or 1, if the dtype is bool. Views of the elements ([`ElementsMut`]) add the elements that
    /// they have made bools, each element at most once.
    written_bools: AtomicUsize,
    /// Whether every byte was already 0 or 1 when this output was created.
    has_valid_bools: bool,
}

impl Output {
    /// Allocates output `n` of `call`. If the output has a target (an existing buffer that the call writes to), returns all elements of
    /// that buffer without an allocation.
    pub fn allocate(call: &Call, n: usize) -> Result<Output> {
        let buffer = call.allocate_output(n)?;
        let dtype = call.outputs[n].dtype;
        let (host, target) = (as_host_buffer(&buffer)?, call.outputs[n].target_buffer());
        let size = match target {
            Some(target) => target.nbytes() / dtype.itemsize(),
            None => call.outputs[n].layout.size(),
        };
        if host.nbytes() < size * dtype.itemsize() {
            return Err(Error::backend("cpu", call.op.name(), "an output buffer is too small"));
        }
        // `into_buffer` later marks the whole buffer as valid bools, although the call may write only some of its elements. The elements
        // that the buffer already holds must therefore be valid.
        let has_valid_bools = dtype == DType::Bool && target.is_some();
        if has_valid_bools && !host.has_valid_bools() {
            return Err(Error::backend("cpu", call.op.name(), "a bool target has bytes other than 0 and 1"));
        }
        Ok(Output { has_valid_bools, ..Output::of(buffer, dtype, size) })
    }

    /// Allocates output `n` of `call` with `size` elements, for outputs whose length only the kernel knows.
    pub fn allocate_with_length(call: &Call, n: usize, size: usize) -> Result<Output> {
        Output::allocate_scratch(call, call.outputs[n].dtype, size)
    }

    /// Allocates `size` elements for intermediate values of `call`. An error names the operation of `call`.
    pub fn allocate_scratch(call: &Call, dtype: DType, size: usize) -> Result<Output> {
        Output::allocate_temporary(dtype, size).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))
    }

    /// Allocates `size` elements for intermediate values. Errors of this function name no operation.
    pub fn allocate_temporary(dtype: DType, size: usize) -> Result<Output> {
        let buffer = HostBuffer::uninit(size.saturating_mul(dtype.itemsize()))?;
        Ok(Output::of(Arc::new(buffer), dtype, size))
    }

    /// Allocates output `n` of `call`, filled with zeros. Memory that the operating system has just zeroed is not written again.
    pub fn allocate_zeroed(call: &Call, n: usize) -> Result<Output> {
        let (dtype, size) = (call.outputs[n].dtype, call.outputs[n].layout.size());
        let buffer =
            HostBuffer::zeroed(size.saturating_mul(dtype.itemsize())).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
        Ok(Output { has_valid_bools: true, ..Output::of(Arc::new(buffer), dtype, size) })
    }

    fn of(buffer: Arc<dyn Buffer>, dtype: DType, size: usize) -> Output {
        Output { buffer, dtype, size, written_bools: AtomicUsize::new(0), has_valid_bools: false }
    }

    /// Returns all elements of the output for writing.
    pub fn elements_mut(&mut self) -> Result<ElementsMut<'_>> {
        let host = as_host_buffer(&self.buffer)?;
        check_alignment(host, self.dtype)?;
        let ptr = host.as_mut_ptr();
        self.written_bools.store(0, Ordering::Relaxed); // views of earlier calls may have counted the same elements
        let written_bools = (self.dtype == DType::Bool).then_some(&self.written_bools);
        Ok(ElementsMut { written_bools, ..ElementsMut::at(ptr, self.dtype, self.size) })
    }

    /// Returns the output's buffer. The caller must have written every element.
    ///
    /// If views of all elements have been written as bool, the buffer is known to hold bools. Otherwise the next user of the buffer as bool
    /// reads all bytes first.
    pub fn into_buffer(self) -> Arc<dyn Buffer> {
        if self.dtype == DType::Bool
            && (self.has_valid_bools || self.written_bools.into_inner() == self.size)
            && let Ok(host) = as_host_buffer(&self.buffer)
            && host.nbytes() == self.size
        {
            // SAFETY: every byte of the buffer is an element. Each element was 0 or 1 when the memory was taken, or has been counted once
            // by a view that has made it a bool. Later writes are writes of bools, or copies of elements that are bools.
            unsafe { host.assume_valid_bools() };
        }
        self.buffer
    }
}

/// Scratch memory, aligned for every dtype and always initialised.
#[derive(Default)]
pub struct Scratch(Vec<CacheLine>);

impl Scratch {
    /// Returns whether no scratch memory has been reserved.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Grows the scratch memory to at least `bytes` bytes.
    pub fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(CACHE_LINE_BYTES);
        if self.0.len() < lines {
            self.0.resize(lines, CacheLine::ZERO);
        }
    }

    #[inline]
    fn has_capacity_for(&self, dtype: DType, len: usize) -> bool {
        len.saturating_mul(dtype.itemsize()) <= self.0.len() * CACHE_LINE_BYTES
    }

    /// Returns the first `len` elements of the scratch memory. The caller has written them through [`Scratch::elements_mut`] with the
    /// same dtype.
    #[inline]
    pub fn elements(&self, dtype: DType, len: usize) -> Elements<'_> {
        assert!(self.has_capacity_for(dtype, len), "{len} of {dtype} in {} lines", self.0.len());
        Elements { ptr: self.0.as_ptr().cast(), len, dtype, has_valid_bools: false, life: PhantomData }
    }

    /// Returns the first `len` elements of the scratch memory for writing.
    #[inline]
    pub fn elements_mut(&mut self, dtype: DType, len: usize) -> ElementsMut<'_> {
        assert!(self.has_capacity_for(dtype, len), "{len} of {dtype} in {} lines", self.0.len());
        ElementsMut::at(self.0.as_mut_ptr().cast(), dtype, len)
    }
}

/// Scratch memory divided into blocks of equal size. One block can be written while the others are read.
#[derive(Default)]
pub struct ScratchBlocks {
    scratch: Scratch,
    /// Number of cache lines between the starts of consecutive blocks.
    pitch: usize,
    count: usize,
}

impl ScratchBlocks {
    /// Resizes to `count` blocks of at least `bytes` bytes each. One extra cache line per block keeps the
    /// blocks out of the same cache sets.
    pub fn resize(&mut self, count: usize, bytes: usize) {
        (self.count, self.pitch) = (count, bytes.div_ceil(CACHE_LINE_BYTES) + 1);
        self.scratch.reserve(count * self.pitch * CACHE_LINE_BYTES);
    }

    /// Returns the first `len` elements of block number `block` for writing.
    #[inline]
    pub fn elements_mut(&mut self, block: usize, dtype: DType, len: usize) -> ElementsMut<'_> {
        self.write_block_and_read_others(block, dtype, len).0
    }

    /// Returns the first `len` elements of block number `block` for writing, and the other blocks for reading.
    #[inline]
    pub fn write_block_and_read_others(&mut self, block: usize, dtype: DType, len: usize) -> (ElementsMut<'_>, ReadBlocks<'_>) {
        let others =
            ReadBlocks { start: self.scratch.0.as_mut_ptr(), pitch: self.pitch, count: self.count, excluded: block, life: PhantomData };
        let ptr = others.block_address(block, dtype, len);
        (ElementsMut::at(ptr, dtype, len), others)
    }

    /// Returns all blocks of the scratch memory for reading.
    #[inline]
    pub fn read_all_blocks(&self) -> ReadBlocks<'_> {
        let start = self.scratch.0.as_ptr().cast_mut();
        ReadBlocks { start, pitch: self.pitch, count: self.count, excluded: usize::MAX, life: PhantomData }
    }
}

/// Shared view of all blocks of a [`ScratchBlocks`], except the one that is being written (`excluded`).
#[derive(Clone, Copy)]
pub struct ReadBlocks<'a> {
    start: *mut CacheLine,
    pitch: usize,
    count: usize,
    excluded: usize,
    life: PhantomData<&'a [CacheLine]>,
}

impl<'a> ReadBlocks<'a> {
    /// Returns the first `len` elements of block number `block`, which the caller has written with the same dtype.
    #[inline]
    pub fn elements(self, block: usize, dtype: DType, len: usize) -> Elements<'a> {
        assert!(block != self.excluded, "block {block} is being written");
        Elements { ptr: self.block_address(block, dtype, len), len, dtype, has_valid_bools: false, life: PhantomData }
    }

    /// Returns the address of block number `block`, after checking that `len` elements fit in a block.
    #[inline]
    fn block_address(self, block: usize, dtype: DType, len: usize) -> *mut u8 {
        let block_bytes = self.pitch * CACHE_LINE_BYTES;
        assert!(
            block < self.count && len.saturating_mul(dtype.itemsize()) <= block_bytes,
            "{len} of {dtype} in block {block} of {block_bytes} bytes"
        );
        // SAFETY: `ScratchBlocks::resize` reserved `count` blocks of `pitch` cache lines, and the assertion has checked
        // `block < count`.
        unsafe { self.start.add(block * self.pitch).cast() }
    }
}

/// A vector of plain-data records in memory from the array allocator. Its initial values are arbitrary.
pub struct HostVec<R> {
    block: Option<HostBuffer>,
    len: usize,
    life: PhantomData<R>,
}

impl<R> Default for HostVec<R> {
    fn default() -> Self {
        HostVec { block: None, len: 0, life: PhantomData }
    }
}

impl<R: AnyBitPattern> HostVec<R> {
    /// Allocates `len` records. Returns an error if memory runs out.
    pub fn allocate(len: usize) -> Result<HostVec<R>> {
        Ok(HostVec { block: Some(HostBuffer::uninit(len.saturating_mul(size_of::<R>()))?), len, life: PhantomData })
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns all records.
    pub fn as_mut_slice(&mut self) -> &mut [R] {
        match &self.block {
            // SAFETY: the block holds `len` records, is aligned for `R`, and is owned by this value. The memory is initialised, and any
            // bits are a valid `R`.
            Some(block) => unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), self.len) },
            None => &mut [],
        }
    }
}

impl<R: AnyBitPattern> Deref for HostVec<R> {
    type Target = [R];

    fn deref(&self) -> &[R] {
        match &self.block {
            // SAFETY: as in `as_mut_slice`; shared access to this value only reads the memory.
            Some(block) => unsafe { std::slice::from_raw_parts(block.as_ptr().cast(), self.len) },
            None => &[],
        }
    }
}

impl<R: AnyBitPattern> DerefMut for HostVec<R> {
    fn deref_mut(&mut self) -> &mut [R] {
        self.as_mut_slice()
    }
}

/// Converts `value` to the element type `T`, as `astype` does.
pub fn convert_scalar<T: Element>(value: Scalar) -> T {
    convert_scalar_to_bits(value, T::DTYPE)
}

/// Converts `value` to `dtype`, as `astype` does. `T` is the type of the dtype or of its [`bit_pattern_dtype`].
pub fn convert_scalar_to_bits<T: Element>(value: Scalar, dtype: DType) -> T {
    assert!(T::DTYPE == dtype || T::DTYPE == bit_pattern_dtype(dtype), "{dtype} taken as {}", T::DTYPE);
    let bytes = value.to_bytes(dtype);
    // SAFETY: the array of 16 bytes begins with a value of `dtype`, which is T's dtype or has the size of the integer T. No element
    // type is longer than 16 bytes.
    unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic = "have not been written as bool"]
    fn scratch_bytes_are_not_read_as_bools() {
        let mut scratch = Scratch::default();
        scratch.reserve(64);
        scratch.elements_mut(DType::U8, 4).typed_slice::<u8>().fill(3);
        scratch.elements(DType::Bool, 4).typed_slice::<bool>();
    }

    #[test]
    #[should_panic = "have not been written as bool"]
    fn scratch_bytes_are_not_copied_as_bools() {
        let mut blocks = ScratchBlocks::default();
        blocks.resize(2, 64);
        blocks.elements_mut(0, DType::U8, 4).typed_slice::<u8>().fill(3);
        let (mut to, others) = blocks.write_block_and_read_others(1, DType::Bool, 4);
        to.copy_from(others.elements(0, DType::Bool, 4));
    }

    #[test]
    fn an_output_holds_bools_once_every_element_is_written_as_bool() {
        let is_known = |write: fn(ElementsMut)| {
            let mut bytes = Output::allocate_temporary(DType::U8, 10).unwrap();
            bytes.elements_mut().unwrap().typed_slice::<u8>().fill(3);
            let mut output = Output { dtype: DType::Bool, ..bytes };
            write(output.elements_mut().unwrap());
            as_host_buffer(&output.into_buffer()).unwrap().has_valid_bools()
        };
        assert!(is_known(|all| all.typed_slice::<bool>().fill(true)));
        assert!(is_known(|all| all.chunks(3).for_each(|part| part.typed_slice::<bool>().fill(true))));
        assert!(is_known(|mut all| {
            for start in [0, 4, 8] {
                let mut part = all.slice(start, 4.min(10 - start));
                let part_len = part.len();
                part.reborrow().copy_from(Elements::of(&[true; 4][..part_len]));
            }
        }));
        assert!(!is_known(|_| ()));
        assert!(!is_known(|mut all| (0..2).for_each(|_| all.slice(0, 5).typed_slice::<bool>().fill(true))));
        assert!(!is_known(|mut all| {
            all.slice(0, 5).typed_slice::<bool>().fill(true);
            all.split_at(5).0.typed_slice::<bool>().fill(true);
        }));
    }
}
