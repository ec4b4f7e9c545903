//! Where inputs lie under a loop nest, and how runs of their points are read or gathered.

use cuprum_core::array::Array;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::plan::elementwise::transposed_axis;
use cuprum_core::{Element, Result, StoredArray, with_dtype};
use smallvec::SmallVec;

use crate::raw::{Elements, ElementsMut, copy_strided};
use crate::transpose::{Rows, SIDE, transpose};

/// Where inputs lie under a loop nest, outermost axis first. Points are numbered in loop order.
pub(crate) struct Nest<'a> {
    pub(super) dims: Dims,
    pub(super) inputs: SmallVec<[Source<'a>; 4]>,
}

/// Rows that a band holds: neighbouring rows of an input that is contiguous across them are gathered together.
pub(crate) const BAND: usize = 2 * SIDE;

/// One input under the nest.
pub(super) struct Source<'a> {
    pub buffer: Elements<'a>,
    pub offset: isize,
    strides: Strides,
    pub access: Access,
}

/// How an input is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Point i lies at `offset + i`.
    Flat,
    /// Every point is the one element at `offset`.
    Single,
    /// Anything else.
    Strided,
}

impl<'a> Nest<'a> {
    /// The nest of `dims` over arrays with the given strides, an entry per array.
    pub fn new(dims: &[usize], arrays: &'a [StoredArray], strides: impl Fn(usize) -> Strides) -> Result<Nest<'a>> {
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
                    _ if single => Access::Single,
                    _ if flat => Access::Flat,
                    _ => Access::Strided,
                };
                Ok(Source { buffer: Elements::buffer(array)?, offset: array.layout().offset() as isize, strides, access })
            })
            .collect();
        Ok(Nest { dims: dims.into(), inputs: inputs? })
    }

    /// Extent of the innermost axis.
    pub fn inner(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// Number of points.
    pub fn size(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether some input is walked in long strides, so that neighbouring rows should be computed together.
    pub fn is_scattered(&self) -> bool {
        self.inputs.iter().any(|s| s.access == Access::Strided && s.strides.last().is_some_and(|s| s.unsigned_abs() > 1))
    }
}

impl<'a> Source<'a> {
    /// Its first `len` elements, for who sees it whole.
    pub fn whole(&self, len: usize) -> Elements<'a> {
        let (at, all) = (self.offset as usize, self.buffer.len());
        self.buffer.slice(at.min(all), len.min(all.saturating_sub(at)))
    }

    /// Whether it is contiguous from row to row, and in long steps along them: rows are gathered a band at a time.
    pub fn is_turned(&self) -> bool {
        let rows = transposed_axis(&self.strides).filter(|axis| axis + 2 == self.strides.len());
        self.access == Access::Strided && rows.is_some_and(|axis| self.strides[axis] == 1)
    }

    /// Copies a band: `rows` rows from point `start` on, `len` points of each, `pitch` apart in `out`. `false` if it is not one.
    pub fn gather_band(&self, dims: &[usize], start: usize, rows: usize, len: usize, pitch: usize, out: ElementsMut) -> bool {
        let (at, _) = self.locate(dims, start);
        let along = self.strides.last().copied().unwrap_or(0);
        let (from, to) = (Rows { start: at as usize, stride: along }, Rows { start: 0, stride: pitch as isize });
        with_dtype!(self.buffer.dtype(), T => transpose(self.buffer.typed::<T>(), from, out.typed::<T>(), to, rows, len))
    }

    /// The run `start..start + len` where it lies, if it is contiguous there.
    pub fn direct(&self, dims: &[usize], start: usize, len: usize) -> Option<Elements<'a>> {
        match self.access {
            Access::Flat => Some(self.buffer.slice((self.offset + start as isize) as usize, len)),
            Access::Strided if self.strides.last() == Some(&1) => {
                let (at, left) = self.locate(dims, start);
                (len <= left).then(|| self.buffer.slice(at as usize, len))
            }
            _ => None,
        }
    }

    /// Place of a point in the buffer, and how many points its row still has.
    fn locate(&self, dims: &[usize], point: usize) -> (isize, usize) {
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

    /// Copies the run that begins at `start` to `out`.
    pub fn gather(&self, dims: &[usize], start: usize, out: ElementsMut) {
        with_dtype!(self.buffer.dtype(), T => self.gather_typed::<T>(dims, start, out.typed()))
    }

    fn gather_typed<T: Element>(&self, dims: &[usize], start: usize, out: &mut [T]) {
        let source = self.buffer.typed::<T>();
        let Some((&inner, outer)) = dims.split_last() else {
            out.fill(source[self.offset as usize]);
            return;
        };
        let (&stride, outer_strides) = self.strides.split_last().unwrap_or((&0, &[]));
        // Index of the first row, counted up like an odometer.
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
