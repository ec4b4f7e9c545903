//! Basic indexing: the [`s!`](crate::s) macro, and views of layouts.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::arguments::IntegerArgument;
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_NDIM};

/// An item of a basic index, as in NumPy's `a[...]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A single index, which drops the axis. Negative indices count from the end.
    At(isize),
    /// `start:stop:step`. Negative and omitted bounds are as in Python.
    Slice {
        /// First index.
        start: Option<isize>,
        /// Index before which the slice ends; `None` for the end of the axis or, if the step is negative, its start.
        stop: Option<isize>,
        /// Step of the slice, not 0.
        step: isize,
    },
    /// `None`: a new axis of extent 1.
    NewAxis,
    /// `...`: complete slices of all axes that no other item indexes.
    Ellipsis,
}

impl Item {
    /// Returns the item `start:stop:step`.
    pub fn slice(start: impl Into<Option<isize>>, stop: impl Into<Option<isize>>, step: isize) -> Item {
        Item::Slice { start: start.into(), stop: stop.into(), step }
    }
}

impl<T: IntegerArgument> From<T> for Item {
    #[inline]
    fn from(index: T) -> Item {
        Item::At(index.saturating_isize())
    }
}

/// A Rust range as an item of an index.
pub trait IndexRange {
    /// Converts the range to an [`Item`] of an index, with the given step. Negative bounds count from the end. An inclusive end is part of
    /// the slice.
    fn with_step(self, step: isize) -> Item;
}

/// Returns the exclusive end for the inclusive end of a range with `step`. `None` is the end of the axis or, if the step is negative, its
/// start.
fn exclusive_end(end: isize, step: isize) -> Option<isize> {
    match (end, step) {
        (-1, 1..) | (0, ..=-1) => None, // a range through the last (first) index has no exclusive end
        (_, ..=-1) => Some(end.saturating_sub(1)),
        _ => Some(end.saturating_add(1)),
    }
}

macro_rules! ranges {
    ($($range:ty, |$r:ident, $step:ident| $start:expr, $stop:expr;)*) => {$(
        impl<T: IntegerArgument> IndexRange for $range {
            #[inline]
            fn with_step(self, $step: isize) -> Item {
                let $r = self;
                Item::Slice { start: $start, stop: $stop, step: $step }
            }
        }
        impl<T: IntegerArgument> From<$range> for Item {
            #[inline]
            fn from(range: $range) -> Item {
                range.with_step(1)
            }
        }
    )*};
}
ranges! {
    Range<T>, |r, step| Some(r.start.saturating_isize()), Some(r.end.saturating_isize());
    RangeFrom<T>, |r, step| Some(r.start.saturating_isize()), None;
    RangeTo<T>, |r, step| None, Some(r.end.saturating_isize());
    RangeInclusive<T>, |r, step| Some(r.start().saturating_isize()), exclusive_end(r.end().saturating_isize(), step);
    RangeToInclusive<T>, |r, step| None, exclusive_end(r.end.saturating_isize(), step);
}
impl IndexRange for RangeFull {
    #[inline]
    fn with_step(self, step: isize) -> Item {
        Item::Slice { start: None, stop: None, step }
    }
}
impl From<RangeFull> for Item {
    #[inline]
    fn from(range: RangeFull) -> Item {
        range.with_step(1)
    }
}

/// Marker for a new axis in [`s!`](crate::s) (`numpy.newaxis`).
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;
impl From<NewAxis> for Item {
    fn from(_: NewAxis) -> Item {
        Item::NewAxis
    }
}

/// Marker for `...` in [`s!`](crate::s).
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;
impl From<Ellipsis> for Item {
    fn from(_: Ellipsis) -> Item {
        Item::Ellipsis
    }
}

/// Writes an index as in NumPy's `a[...]`, for [`NdArray::index`](crate::NdArray::index) and
/// [`NdArray::assign`](crate::NdArray::assign).
///
/// Items are integers of any type, ranges of integers, ranges with `; step`, [`NewAxis`] or `None`, and [`Ellipsis`]. Arrays, vectors and
/// slices of integers or bools are items of advanced indexing. Negative numbers count from the end: `1..-1` omits the first and the last
/// index.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Ellipsis, NdArray, NewAxis, s, zeros};
/// # fn main() -> cuprum::Result<()> {
/// let a = zeros((4, 5, 6), cuprum::DType::F32)?;
/// let (k, step) = (1i64, 2usize);
/// assert_eq!(a.index(s![k, ..;step, NewAxis, -1])?.shape(), [3, 1]);
/// assert_eq!(a.index(s![.., None, 0])?.shape(), [4, 1, 6]);
/// assert_eq!(a.index(s![1..-1, 2..=3])?.shape(), [2, 2, 6]);
/// assert_eq!(a.index(s![Ellipsis, ..;-1])?.shape(), [4, 5, 6]);
/// assert_eq!(a.index(s![vec![0, 2, 3], .., [1, 1, 5]])?.shape(), [3, 5]); // advanced indexing
/// assert_eq!(a.index(s![&a.equal(0)?])?.shape(), [120]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! s {
    () => { &([] as [$crate::IndexItem; 0])[..] };
    (@item [$($done:expr,)*]) => { &[$($done,)*][..] };
    (@item [$($done:expr,)*] None, $($rest:tt)*) => { $crate::s!(@item [$($done,)* $crate::s!(@one $crate::NewAxis),] $($rest)*) };
    (@item [$($done:expr,)*] None) => { $crate::s!(@item [$($done,)* $crate::s!(@one $crate::NewAxis),]) };
    (@item [$($done:expr,)*] $e:expr ; $step:expr, $($rest:tt)*) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::with_step($e, $step)),] $($rest)*)
    };
    (@item [$($done:expr,)*] $e:expr ; $step:expr) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::with_step($e, $step)),])
    };
    (@item [$($done:expr,)*] $e:expr, $($rest:tt)*) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $e),] $($rest)*)
    };
    (@item [$($done:expr,)*] $e:expr) => { $crate::s!(@item [$($done,)* $crate::s!(@one $e),]) };
    // Clippy rejects `1..-1` as an empty range. As an index it is valid, because -1 counts from the end.
    (@one $item:expr) => {{
        #[allow(clippy::reversed_empty_ranges)]
        let item = $crate::IndexItem::from($item);
        item
    }};
    ($($all:tt)*) => { $crate::s!(@item [] $($all)*) };
}

/// Converts a Rust range with a step to an [`Item`] of an index, for the expansion of `s![a..b; step]`.
pub fn with_step(range: impl IndexRange, step: impl IntegerArgument) -> Item {
    range.with_step(step.saturating_isize())
}

/// Returns the first index and the number of indices that `start:stop:step` selects from an axis of extent `len` (Python's
/// `slice.indices(len)`).
fn slice_indices(len: usize, start: Option<isize>, stop: Option<isize>, step: isize) -> (usize, usize) {
    let n = len as isize;
    let (lo, hi) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |v: isize| (if v < 0 { v.saturating_add(n) } else { v }).clamp(lo, hi);
    let first = start.map_or(if step > 0 { lo } else { hi }, clamp);
    let last = stop.map_or(if step > 0 { hi } else { lo }, clamp);
    let span = if step > 0 { last - first } else { first - last };
    let count = if span <= 0 { 0 } else { (span - 1) as usize / step.unsigned_abs() + 1 };
    (first.max(0) as usize, count)
}

impl Layout {
    /// Returns the view that the basic index `items` selects (`a[...]` with ints, slices, `None` and `...`).
    ///
    /// # Errors
    /// [`Error::Index`] for an index out of bounds. [`Error::Value`] for too many indices, a zero step, several ellipses, or a result with
    /// too many axes.
    pub fn index(&self, items: &[Item]) -> Result<Layout> {
        let op = "index";
        let used = items.iter().filter(|i| matches!(i, Item::At(_) | Item::Slice { .. })).count();
        if items.iter().filter(|i| matches!(i, Item::Ellipsis)).count() > 1 {
            return Err(Error::value(op, "an index can only have a single ellipsis ('...')"));
        }
        if used > self.ndim() {
            return Err(Error::value(op, format!("too many indices: array is {}-dimensional, but {used} were indexed", self.ndim())));
        }
        let ndim = items.iter().filter(|i| matches!(i, Item::NewAxis | Item::Slice { .. })).count() + self.ndim() - used;
        if ndim > MAX_NDIM {
            let message = format!("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have {ndim}");
            return Err(Error::value(op, message));
        }
        let mut layout = self.clone();
        let mut axis = 0; // axis of `layout` to which the next item applies
        let mut source = 0; // corresponding axis of `self`, for messages
        for item in items {
            match *item {
                Item::At(i) => {
                    let size = layout.shape()[axis];
                    let at = if i < 0 { i.saturating_add(size as isize) } else { i };
                    if at < 0 || at as usize >= size {
                        return Err(Error::Index { op, index: i as i64, axis: source, size });
                    }
                    layout = layout.index_axis(axis, at as usize);
                    source += 1;
                }
                Item::Slice { step: 0, .. } => return Err(Error::value(op, "slice step cannot be zero")),
                Item::Slice { start, stop, step } => {
                    let (first, count) = slice_indices(layout.shape()[axis], start, stop, step);
                    layout = layout.slice_axis(axis, first, step, count);
                    (axis, source) = (axis + 1, source + 1);
                }
                Item::NewAxis => {
                    layout = layout.insert_axis(axis);
                    axis += 1;
                }
                Item::Ellipsis => {
                    let skip = self.ndim() - used;
                    (axis, source) = (axis + skip, source + skip);
                }
            }
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_slices() {
        assert_eq!(slice_indices(10, None, None, -1), (9, 10));
        assert_eq!(slice_indices(10, Some(8), Some(2), -3), (8, 2));
        assert_eq!(slice_indices(10, Some(-3), None, 1), (7, 3));
        assert_eq!(slice_indices(10, Some(20), Some(30), 1), (10, 0));
        assert_eq!(slice_indices(0, None, None, -1).1, 0);
        assert_eq!(slice_indices(5, Some(isize::MIN), Some(isize::MAX), 2), (0, 3));
    }

    #[test]
    fn views() {
        let l = Layout::contiguous(&[4, 5]).unwrap();
        let v = l.index(&[(..).with_step(-1), (1..4).into()]).unwrap();
        assert_eq!((v.shape(), v.strides(), v.offset()), (&[4, 3][..], &[-5, 1][..], 16));
        assert!(l.index(&[4.into()]).is_err());
        assert!(l.index(&[0.into(), 0.into(), 0.into()]).is_err());
        assert_eq!(l.index(&[NewAxis.into(), Ellipsis.into(), (-1).into()]).unwrap().shape(), &[1, 4]);
        assert_eq!(l.index(&[(7..9).into()]).unwrap().size(), 0);
        assert!(l.index(&[usize::MAX.into()]).is_err() && l.index(&[u64::MAX.into()]).is_err());
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn inclusive_ranges_contain_their_end() {
        let indices = |item: Item| {
            let l = Layout::contiguous(&[6]).unwrap().index(&[item]).unwrap();
            (0..l.size() as isize).map(|n| l.offset() as isize + n * l.strides()[0]).collect::<Vec<_>>()
        };
        assert_eq!(indices((1..=3).into()), [1, 2, 3]);
        assert_eq!(indices((2..=-1).into()), [2, 3, 4, 5]);
        assert_eq!(indices((..=-2i64).into()), [0, 1, 2, 3, 4]);
        assert_eq!(indices((..=4usize).with_step(2)), [0, 2, 4]);
        assert_eq!(indices((4..=0).with_step(-2)), [4, 2, 0]);
        assert_eq!(indices((4..=1).with_step(-1)), [4, 3, 2, 1]);
        assert_eq!(indices((..=3).with_step(-1)), [5, 4, 3]);
        assert_eq!(indices((0..=isize::MAX).into()).len(), 6);
    }
}
