//! Loop nests over strided inputs, and access to ranges of their elements in loop order.

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::plan::elementwise::find_transposed_axis;
use cuprum_core::{Element, Result, StoredArray};
use cuprum_cpu_base::strided::copy_strided;
use cuprum_cpu_base::transpose::{ContiguousRowLayout, TRANSPOSE_BLOCK_SIDE, try_transpose};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use cuprum_cpu_base::with_bits;
use smallvec::SmallVec;

/// A loop nest: its extents, outermost axis first, and its strided inputs. Elements are numbered in loop order.
pub(crate) struct LoopNest<'a> {
    pub(super) dims: Dims,
    pub(super) inputs: SmallVec<[LoopNestInput<'a>; 4]>,
}

/// Number of neighbouring rows that are gathered at once if an input is contiguous across rows.
pub(crate) const ROWS_PER_BAND: usize = 2 * TRANSPOSE_BLOCK_SIDE;

/// One input of a loop nest: buffer, offset and strides.
pub(super) struct LoopNestInput<'a> {
    pub buffer: Elements<'a>,
    pub offset: isize,
    strides: Strides,
    pub access: AccessPattern,
}

/// Access pattern of an input in loop order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessPattern {
    /// Contiguous: loop index `i` reads element `offset + i` of the buffer.
    Flat,
    /// Broadcast: every loop index reads the element at `offset`.
    Single,
    /// Neither contiguous nor constant. The elements are gathered into a contiguous buffer.
    Strided,
}

impl<'a> LoopNest<'a> {
    /// Creates a loop nest with the extents `dims` over `arrays`; `strides(k)` are the strides of array `k`.
    pub fn new(dims: &[usize], arrays: &'a [StoredArray], strides: impl Fn(usize) -> Strides) -> Result<LoopNest<'a>> {
        let inputs: Result<_> = arrays
            .iter()
            .enumerate()
            .map(|(k, array)| {
                let strides = strides(k);
                let mut step = 1;
                let mut flat = true;
                for (&n, &s) in dims.iter().zip(&strides).rev() {
                    flat &= n == 1 || s == step;
                    step *= n as isize;
                }
                let single = dims.iter().zip(&strides).all(|(&n, &s)| n == 1 || s == 0);
                let access = match () {
                    _ if single => AccessPattern::Single,
                    _ if flat => AccessPattern::Flat,
                    _ => AccessPattern::Strided,
                };
                Ok(LoopNestInput { buffer: Elements::from_whole_buffer(array)?, offset: array.layout().offset() as isize, strides, access })
            })
            .collect();
        Ok(LoopNest { dims: dims.into(), inputs: inputs? })
    }

    /// Returns the extent of the innermost axis.
    pub fn innermost_extent(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// Returns the number of elements: the product of the extents.
    pub fn size(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns whether some input has a stride above 1 along rows. Neighbouring rows are then computed together, so that each cache line of
    /// the input is read once.
    pub fn has_strided_rows(&self) -> bool {
        self.inputs.iter().any(|s| s.access == AccessPattern::Strided && s.strides.last().is_some_and(|s| s.unsigned_abs() > 1))
    }
}

impl<'a> LoopNestInput<'a> {
    /// Returns the first `len` elements of the input, for user-defined operations that take the whole array.
    pub fn first_elements(&self, len: usize) -> Elements<'a> {
        let (at, all) = (self.offset as usize, self.buffer.len());
        self.buffer.slice(at.min(all), len.min(all.saturating_sub(at)))
    }

    /// Returns whether the input is contiguous across rows and strided along rows, so that several rows are gathered at once.
    pub fn is_transposed(&self) -> bool {
        let rows = find_transposed_axis(&self.strides).filter(|axis| axis + 2 == self.strides.len());
        self.access == AccessPattern::Strided && rows.is_some_and(|axis| self.strides[axis] == 1)
    }

    /// Copies `rows` rows of `len` elements to `out`, where rows start `pitch` elements apart. The first element is number `start` of the
    /// loop nest with extents `dims`, in C order. Returns `false` without copying if the rows are not inside the buffer.
    pub fn try_gather_band(&self, dims: &[usize], start: usize, rows: usize, len: usize, pitch: usize, out: ElementsMut) -> bool {
        let (at, _) = self.locate_loop_index(dims, start);
        let along = self.strides.last().copied().unwrap_or(0);
        let (from, to) =
            (ContiguousRowLayout { start: at as usize, stride: along }, ContiguousRowLayout { start: 0, stride: pitch as isize });
        with_bits!(self.buffer.dtype(), T => try_transpose(self.buffer.typed_slice::<T>(), from, out.typed_slice::<T>(), to, rows, len))
    }

    /// Returns the elements `start..start + len` in place, if they are contiguous in memory.
    pub fn contiguous_elements_in_range(&self, dims: &[usize], start: usize, len: usize) -> Option<Elements<'a>> {
        match self.access {
            AccessPattern::Flat => Some(self.buffer.slice((self.offset + start as isize) as usize, len)),
            AccessPattern::Strided if self.strides.last() == Some(&1) => {
                let (at, left) = self.locate_loop_index(dims, start);
                (len <= left).then(|| self.buffer.slice(at as usize, len))
            }
            _ => None,
        }
    }

    /// Returns the buffer index of the element with loop index `point`, and the number of elements from `point` to the end of the row.
    fn locate_loop_index(&self, dims: &[usize], point: usize) -> (isize, usize) {
        let (mut at, mut rest, mut left) = (self.offset, point, 1);
        for (axis, (&n, &s)) in dims.iter().zip(&self.strides).enumerate().rev() {
            let i = rest % n;
            rest /= n;
            at += i as isize * s;
            if axis + 1 == dims.len() {
                left = n - i;
            }
        }
        (at, left)
    }

    /// Copies the elements from loop index `start` on into `out`.
    pub fn gather_elements(&self, dims: &[usize], start: usize, out: ElementsMut) {
        with_bits!(self.buffer.dtype(), T => self.gather_elements_typed::<T>(dims, start, out.typed_slice()))
    }

    fn gather_elements_typed<T: Element>(&self, dims: &[usize], start: usize, out: &mut [T]) {
        let source = self.buffer.typed_slice::<T>();
        let Some((&inner, outer)) = dims.split_last() else {
            // The buffer of an array without elements may be empty.
            if let Some(&element) = source.get(self.offset as usize) {
                out.fill(element);
            }
            return;
        };
        let (&stride, outer_strides) = self.strides.split_last().unwrap_or((&0, &[]));
        // `index` is the multi-index of the current row over all axes but the last. The loop increments `index` row by row.
        let mut index: Dims = SmallVec::from_elem(0, outer.len());
        let mut rest = start / inner;
        for (i, &n) in index.iter_mut().zip(outer).rev() {
            *i = rest % n;
            rest /= n;
        }
        let mut row = self.offset + index.iter().zip(outer_strides).map(|(&i, &s)| i as isize * s).sum::<isize>();
        let mut column = start % inner;
        let mut out = out;
        while !out.is_empty() {
            let len = (inner - column).min(out.len());
            let (head, tail) = out.split_at_mut(len);
            copy_strided(source, row + column as isize * stride, stride, head);
            (out, column) = (tail, 0);
            for axis in (0..outer.len()).rev() {
                index[axis] += 1;
                row += outer_strides[axis];
                if index[axis] < outer[axis] {
                    break;
                }
                row -= outer_strides[axis] * outer[axis] as isize;
                index[axis] = 0;
            }
        }
    }
}
