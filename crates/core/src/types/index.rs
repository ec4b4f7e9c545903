//! Basic indexing: the [`s!`](crate::s) macro, and views of layouts.

use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_NDIM};

/// An item of a basic index, as in NumPy's `a[...]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A single index, which drops the axis. Negative indices count from the end.
    At(isize),
    /// `start:stop:step`. Negative and omitted bounds are as in Python.
    Range {
        /// First index.
        start: Option<isize>,
        /// Index before which to stop.
        stop: Option<isize>,
        /// Step, which must not be 0.
        step: isize,
    },
    /// `None`: a new axis of extent 1.
    NewAxis,
    /// `...`: as many complete axes as needed.
    Ellipsis,
}

impl Item {
    /// Returns the item `start:stop:step`.
    pub fn range(start: impl Into<Option<isize>>, stop: impl Into<Option<isize>>, step: isize) -> Item {
        Item::Range { start: start.into(), stop: stop.into(), step }
    }
}

impl From<isize> for Item {
    fn from(i: isize) -> Item {
        Item::At(i)
    }
}
impl From<i32> for Item {
    fn from(i: i32) -> Item {
        Item::At(i as isize)
    }
}
impl From<usize> for Item {
    fn from(i: usize) -> Item {
        Item::At(i as isize)
    }
}
impl From<std::ops::RangeFull> for Item {
    fn from(_: std::ops::RangeFull) -> Item {
        Item::range(None, None, 1)
    }
}
macro_rules! from_ranges {
    ($($t:ty),*) => {$(
        impl From<std::ops::Range<$t>> for Item {
            fn from(r: std::ops::Range<$t>) -> Item { Item::range(r.start as isize, r.end as isize, 1) }
        }
        impl From<std::ops::RangeFrom<$t>> for Item {
            fn from(r: std::ops::RangeFrom<$t>) -> Item { Item::range(r.start as isize, None, 1) }
        }
        impl From<std::ops::RangeTo<$t>> for Item {
            fn from(r: std::ops::RangeTo<$t>) -> Item { Item::range(None, r.end as isize, 1) }
        }
    )*};
}
from_ranges!(i32, isize, usize);

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

/// Writes a basic index as in NumPy: ints, ranges, ranges with `; step`, [`NewAxis`] and [`Ellipsis`].
///
/// # Examples
/// ```
/// use cuprum_core::{Ellipsis, Layout, NewAxis, s};
/// let l = Layout::contiguous(&[4, 5, 6])?;
/// assert_eq!(l.index(s![1, ..;2, NewAxis, -1])?.shape(), &[3, 1]);
/// assert_eq!(l.index(s![Ellipsis, ..;-1])?.strides(), &[30, 6, -1]);
/// assert_eq!(l.index(s![1..-1, 2..])?.shape(), &[2, 3, 6]);
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    (@item [$($done:expr,)*]) => { &[$($done,)*][..] };
    (@item [$($done:expr,)*] $e:expr ; $step:expr, $($rest:tt)*) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::with_step($e, $step)),] $($rest)*)
    };
    (@item [$($done:expr,)*] $e:expr ; $step:expr) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::with_step($e, $step)),])
    };
    (@item [$($done:expr,)*] $e:expr, $($rest:tt)*) => {
        $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::Item::from($e)),] $($rest)*)
    };
    (@item [$($done:expr,)*] $e:expr) => { $crate::s!(@item [$($done,)* $crate::s!(@one $crate::index::Item::from($e)),]) };
    // Clippy rejects `1..-1` as an empty range. As an index it is valid, because -1 counts from the end.
    (@one $item:expr) => {{
        #[allow(clippy::reversed_empty_ranges)]
        let item = $item;
        item
    }};
    ($($all:tt)*) => { $crate::s!(@item [] $($all)*) };
}

/// Returns the item of `range` with `step`, for the expansion of `s![a..b; step]`.
pub fn with_step(range: impl Into<Item>, step: isize) -> Item {
    match range.into() {
        Item::Range { start, stop, .. } => Item::Range { start, stop, step },
        other => other,
    }
}

/// Returns the first index and the number of indices that `start:stop:step` selects of `len` (Python's `slice.indices(len)`).
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
    /// Indices out of bounds, too many indices, a zero step, several ellipses, or too many axes in the result.
    pub fn index(&self, items: &[Item]) -> Result<Layout> {
        let op = "index";
        let used = items.iter().filter(|i| matches!(i, Item::At(_) | Item::Range { .. })).count();
        if items.iter().filter(|i| matches!(i, Item::Ellipsis)).count() > 1 {
            return Err(Error::value(op, "an index can only have a single ellipsis ('...')"));
        }
        if used > self.ndim() {
            return Err(Error::value(op, format!("too many indices: array is {}-dimensional, but {used} were indexed", self.ndim())));
        }
        let ndim = items.iter().filter(|i| matches!(i, Item::NewAxis | Item::Range { .. })).count() + self.ndim() - used;
        if ndim > MAX_NDIM {
            let message = format!("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have {ndim}");
            return Err(Error::value(op, message));
        }
        let mut layout = self.clone();
        let mut axis = 0; // current axis of `layout`
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
                Item::Range { step: 0, .. } => return Err(Error::value(op, "slice step cannot be zero")),
                Item::Range { start, stop, step } => {
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
        let v = l.index(s![..;-1, 1..4]).unwrap();
        assert_eq!((v.shape(), v.strides(), v.offset()), (&[4, 3][..], &[-5, 1][..], 16));
        assert!(l.index(s![4]).is_err());
        assert!(l.index(s![0, 0, 0]).is_err());
        assert_eq!(l.index(s![NewAxis, Ellipsis, -1]).unwrap().shape(), &[1, 4]);
        assert_eq!(l.index(s![7..2]).unwrap().size(), 0);
    }
}
