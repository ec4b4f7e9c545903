//! Conversions of arguments: axes and shapes from numbers, tuples, arrays, slices, vectors and ranges.

use std::ops::{Range, RangeInclusive};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::{Dims, MAX_NDIM, normalize_axes, normalize_axis, normalize_axis_of_scalar};

/// A Rust integer type of axis, extent and index arguments: `i8` to `i64`, `u8` to `u64`, `isize` and `usize`.
pub trait IntegerArgument: Copy + sealed::Sealed {
    /// Returns the value as an `isize`. A value out of range becomes the nearest `isize`, which is out of bounds for every axis, extent and
    /// index.
    fn saturating_isize(self) -> isize;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer_arguments {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl IntegerArgument for $t {
            #[inline]
            #[allow(unused_comparisons)]
            fn saturating_isize(self) -> isize {
                isize::try_from(self).unwrap_or(if self < 0 { isize::MIN } else { isize::MAX })
            }
        }
    )*};
}
integer_arguments!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// Signed integers, one per axis.
type Integers = SmallVec<[isize; 6]>;

fn to_isizes<T: IntegerArgument>(values: &[T]) -> Integers {
    values.iter().map(|v| v.saturating_isize()).collect()
}

/// Axes as a caller gives them. Negative axes count from the end.
///
/// Functions take `impl Into<Axes>`: an integer, a tuple, array, slice, vector or range of integers, or `()` or `None` for all axes.
///
/// # Examples
/// ```
/// use cuprum_core::Axes;
/// let last_two = vec![-2i64, -1];
/// for axes in [Axes::from((1, 2)), Axes::from([1, 2]), Axes::from(1..3), Axes::from(&last_two)] {
///     assert_eq!(axes.resolve("example", 3)?[..], [1, 2]);
/// }
/// assert_eq!(Axes::from(()).resolve("example", 3)?[..], [0, 1, 2]);
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// All axes, or the flattened array for functions along one axis (`axis=None`).
    #[default]
    All,
    /// One axis, as a number. Reductions accept 0 and -1 for a 0-d array.
    One(isize),
    /// A list of axes, possibly empty.
    Several(SmallVec<[isize; 6]>),
}

impl Axes {
    /// Returns the axes counted from the front, in the given order.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis out of bounds, [`Error::Value`] for a repeated axis.
    pub fn resolve(&self, op: &'static str, ndim: usize) -> Result<Dims> {
        match self {
            Axes::All => Ok((0..ndim).collect()),
            Axes::One(axis) => normalize_axes(op, &[*axis], ndim),
            Axes::Several(axes) => normalize_axes(op, axes, ndim),
        }
    }

    /// Like [`Axes::resolve`], for functions in which NumPy accepts the numbers 0 and -1 as an axis of a 0-d array. A list with such a
    /// number is an error.
    pub(crate) fn resolve_axes_allowing_scalar(&self, op: &'static str, ndim: usize) -> Result<Dims> {
        match self {
            &Axes::One(axis) if ndim == 0 => normalize_axis_of_scalar(op, axis, ndim).map(|_| Dims::new()),
            _ => self.resolve(op, ndim),
        }
    }

    /// Returns the axes as the caller gives them, negative ones included; `None` for all axes.
    pub fn as_slice(&self) -> Option<&[isize]> {
        match self {
            Axes::All => None,
            Axes::One(axis) => Some(std::slice::from_ref(axis)),
            Axes::Several(axes) => Some(axes),
        }
    }

    /// Returns the only axis as the caller gives it, which may be negative; `None` for the flattened array.
    ///
    /// # Errors
    /// [`Error::Value`] for a list that does not have exactly one axis.
    pub fn at_most_one_axis(&self, op: &'static str) -> Result<Option<isize>> {
        match self.as_slice() {
            None => Ok(None),
            Some(&[axis]) => Ok(Some(axis)),
            Some(axes) => Err(Error::value(op, format!("takes one axis, or none for the flattened array, not {}", axes.len()))),
        }
    }

    /// Returns the only axis, counted from the front, or `None` for the flattened array.
    pub(crate) fn resolve_one_axis(&self, op: &'static str, ndim: usize) -> Result<Option<usize>> {
        self.at_most_one_axis(op)?.map(|axis| normalize_axis(op, axis, ndim)).transpose()
    }

    /// Like [`Axes::resolve_one_axis`], for functions that treat axis 0 or -1 of a 0-d array as the flattened array.
    pub(crate) fn resolve_one_axis_allowing_scalar(&self, op: &'static str, ndim: usize) -> Result<Option<usize>> {
        match *self {
            Axes::One(axis) if ndim == 0 => normalize_axis_of_scalar(op, axis, ndim).map(|_| None),
            _ => self.resolve_one_axis(op, ndim),
        }
    }
}

impl From<()> for Axes {
    #[inline]
    fn from(_: ()) -> Axes {
        Axes::All
    }
}
impl From<Option<isize>> for Axes {
    #[inline]
    fn from(axis: Option<isize>) -> Axes {
        axis.map_or(Axes::All, Axes::One)
    }
}
impl<T: IntegerArgument> From<T> for Axes {
    #[inline]
    fn from(axis: T) -> Axes {
        Axes::One(axis.saturating_isize())
    }
}
impl<T: IntegerArgument> From<Range<T>> for Axes {
    fn from(axes: Range<T>) -> Axes {
        // A longer range of axes is stored only up to its first `MAX_NDIM + 1` axes. That is enough, because every function rejects a list
        // of more than `MAX_NDIM` axes.
        Axes::Several((axes.start.saturating_isize()..axes.end.saturating_isize()).take(MAX_NDIM + 1).collect())
    }
}
impl<T: IntegerArgument> From<RangeInclusive<T>> for Axes {
    fn from(axes: RangeInclusive<T>) -> Axes {
        Axes::Several((axes.start().saturating_isize()..=axes.end().saturating_isize()).take(MAX_NDIM + 1).collect())
    }
}

/// Shape arguments: an extent, or a tuple, array, slice or vector of extents; `()` for a 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// use cuprum_core::{DType, zeros};
/// let extents = vec![2, 3];
/// for a in [zeros([2, 3], DType::F32)?, zeros((2, 3), DType::F32)?, zeros(&extents, DType::F32)?, zeros(extents, DType::F32)?] {
///     assert_eq!(a.shape(), [2, 3]);
/// }
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    note = "a shape is a `usize`, or a tuple, array, slice or vector of `usize`; `()` is the shape of a 0-d array"
)]
pub trait IntoShape: IntoReshape {
    /// Returns the extents.
    fn into_shape(self) -> Dims;
}

/// Shape arguments of [`NdArray::reshape`](crate::NdArray::reshape): the forms of [`IntoShape`] with any integer type, since one extent
/// may be -1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    note = "a shape is an integer, or a tuple, array, slice or vector of integers; `()` is the shape of a 0-d array"
)]
pub trait IntoReshape {
    /// Returns the extents as the caller gives them, -1 included.
    fn into_reshape(self) -> SmallVec<[isize; 6]>;
}

impl IntoShape for () {
    #[inline]
    fn into_shape(self) -> Dims {
        Dims::new()
    }
}
impl IntoReshape for () {
    #[inline]
    fn into_reshape(self) -> Integers {
        Integers::new()
    }
}
impl IntoShape for usize {
    #[inline]
    fn into_shape(self) -> Dims {
        Dims::from_slice(&[self])
    }
}
impl<T: IntegerArgument> IntoReshape for T {
    #[inline]
    fn into_reshape(self) -> Integers {
        Integers::from_slice(&[self.saturating_isize()])
    }
}

/// Implements the conversions of list types. Each line of the macro's input has three parts: the list type with `usize` elements, the same
/// type with elements of any integer type, and an expression that gives the elements as a slice.
macro_rules! lists {
    ($(<$(const $N:ident)?> $shape:ty, $any:ty, |$list:ident| $elements:expr;)*) => {$(
        impl<$(const $N: usize)?> IntoShape for $shape {
            #[inline]
            fn into_shape(self) -> Dims {
                let $list = &self;
                Dims::from_slice($elements)
            }
        }
        impl<T: IntegerArgument, $(const $N: usize)?> IntoReshape for $any {
            #[inline]
            fn into_reshape(self) -> Integers {
                let $list = &self;
                to_isizes($elements)
            }
        }
        impl<T: IntegerArgument, $(const $N: usize)?> From<$any> for Axes {
            #[inline]
            fn from(axes: $any) -> Axes {
                let $list = &axes;
                Axes::Several(to_isizes($elements))
            }
        }
    )*};
}
lists! {
    <const N> [usize; N], [T; N], |list| &list[..];
    <const N> &[usize; N], &[T; N], |list| &list[..];
    <> &[usize], &[T], |list| list;
    <> Vec<usize>, Vec<T>, |list| list;
    <> &Vec<usize>, &Vec<T>, |list| list;
    <> Dims, SmallVec<[T; 6]>, |list| list;
    <> &Dims, &SmallVec<[T; 6]>, |list| list;
}

/// Implements the conversions of tuples. In axes and arguments of `reshape`, the elements of a tuple may have different integer types.
macro_rules! tuples {
    ($(($($t:ident $extent:ident),+);)*) => {$(
        impl IntoShape for ($($extent,)+) {
            #[inline]
            #[allow(non_snake_case)]
            fn into_shape(self) -> Dims {
                let ($($t,)+) = self;
                Dims::from_slice(&[$($t),+])
            }
        }
        impl<$($t: IntegerArgument),+> IntoReshape for ($($t,)+) {
            #[inline]
            #[allow(non_snake_case)]
            fn into_reshape(self) -> Integers {
                let ($($t,)+) = self;
                Integers::from_slice(&[$($t.saturating_isize()),+])
            }
        }
        impl<$($t: IntegerArgument),+> From<($($t,)+)> for Axes {
            #[inline]
            fn from(axes: ($($t,)+)) -> Axes {
                Axes::Several(axes.into_reshape())
            }
        }
    )*};
}
tuples! {
    (A usize);
    (A usize, B usize);
    (A usize, B usize, C usize);
    (A usize, B usize, C usize, D usize);
    (A usize, B usize, C usize, D usize, E usize);
    (A usize, B usize, C usize, D usize, E usize, F usize);
    (A usize, B usize, C usize, D usize, E usize, F usize, G usize);
    (A usize, B usize, C usize, D usize, E usize, F usize, G usize, H usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_out_of_range_are_out_of_bounds() {
        assert_eq!(Axes::from(usize::MAX), Axes::One(isize::MAX));
        assert_eq!(Axes::from([u64::MAX, 1]).as_slice(), Some(&[isize::MAX, 1][..]));
        assert!(Axes::from(usize::MAX).resolve("sum", 2).is_err());
        assert!(Axes::from(0..usize::MAX).resolve("sum", 2).is_err());
        assert_eq!(Axes::from(-2..=-1).resolve("sum", 3).unwrap()[..], [1, 2]);
        assert_eq!((usize::MAX, -1).into_reshape()[..], [isize::MAX, -1]);
    }

    #[test]
    fn one_axis_is_a_number_or_a_list_of_one() {
        assert_eq!(Axes::from((1,)).resolve_one_axis("sort", 2).unwrap(), Some(1));
        assert_eq!(Axes::from(None).resolve_one_axis("sort", 2).unwrap(), None);
        assert!(Axes::from((0, 1)).resolve_one_axis("sort", 2).is_err());
        assert_eq!(Axes::from(-1).resolve_one_axis_allowing_scalar("sort", 0).unwrap(), None);
        assert!(Axes::from([0; 0]).resolve_one_axis("sort", 2).is_err());
    }
}
