//! Array layouts: shape, strides and offset, all in elements, and the views that need no copy. No code here accesses memory.

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// Extents, one per axis.
pub type Dims = SmallVec<[usize; 6]>;
/// Strides in elements, one per axis: negative for flipped axes, zero for broadcast axes.
pub type Strides = SmallVec<[isize; 6]>;

/// Maximum number of axes of an array, as in NumPy 2 (`NPY_MAXDIMS`).
pub const MAX_NDIM: usize = 64;

/// Shape, strides and offset (in elements) of an array within its buffer. Contiguity is computed once. The offset of a layout without
/// elements is 0.
///
/// ```
/// use cuprum_core::Layout;
/// let l = Layout::contiguous(&[2, 3])?;
/// assert_eq!(l.strides(), &[3, 1]);
/// assert!(l.transpose().is_f_contiguous());
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Dims,
    strides: Strides,
    offset: usize,
    c_contiguous: bool,
    f_contiguous: bool,
}

// `Clone` is not derived, because `SmallVec::clone` copies one element at a time.
impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout { shape: SmallVec::from_slice(&self.shape), strides: SmallVec::from_slice(&self.strides), ..*self }
    }
}

/// Returns an error if `ndim` exceeds [`MAX_NDIM`].
pub(crate) fn check_ndim(op: &'static str, ndim: usize) -> Result<()> {
    match ndim {
        0..=MAX_NDIM => Ok(()),
        _ => Err(Error::value(op, format!("maximum supported dimension for an ndarray is currently {MAX_NDIM}, found {ndim}"))),
    }
}

/// Returns the number of elements of `shape`.
///
/// # Errors
/// [`Error::Value`] for more than [`MAX_NDIM`] axes. [`Error::Shape`] if the size in bytes, at 16 per element, exceeds `isize::MAX`. As in
/// NumPy, if an extent is 0, this limit holds for the product of the other, nonzero extents.
pub fn checked_size(op: &'static str, shape: &[usize]) -> Result<usize> {
    check_ndim(op, shape.len())?;
    let too_large = || Error::shape(op, "array is too large", &[shape]);
    let size = shape.iter().filter(|&&n| n != 0).try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(too_large)?;
    match size > isize::MAX as usize / 16 {
        true => Err(too_large()),
        false if shape.contains(&0) => Ok(0),
        false => Ok(size),
    }
}

impl Layout {
    /// Returns the C-order layout of `shape`.
    ///
    /// # Errors
    /// The errors of [`checked_size`].
    pub fn contiguous(shape: &[usize]) -> Result<Layout> {
        checked_size("layout", shape)?;
        let strides = c_order_strides(shape);
        let f_contiguous = shape.len() < 2 || has_contiguous_strides(shape.iter().zip(&strides));
        Ok(Layout { shape: Dims::from_slice(shape), strides, offset: 0, c_contiguous: true, f_contiguous })
    }

    /// Returns a layout of `shape` without gaps. `order` lists the axes in memory order, the outermost first.
    ///
    /// # Errors
    /// The errors of [`checked_size`].
    pub fn contiguous_in_order(shape: &[usize], order: &[usize]) -> Result<Layout> {
        checked_size("layout", shape)?;
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        let mut step = 1isize;
        for &axis in order.iter().rev() {
            strides[axis] = step;
            step = step.saturating_mul(shape[axis].max(1) as isize);
        }
        Ok(Self::new_unchecked(shape.into(), strides, 0))
    }

    /// Returns a layout with the given strides and offset, in elements. [`StoredArray::new`](crate::StoredArray::new) checks that the
    /// layout stays inside the buffer.
    ///
    /// Axes of one element get stride 0. A layout without elements gets offset 0 and the strides of C order. In both cases the given
    /// strides address nothing, and arrays of other libraries may have any value there.
    ///
    /// # Errors
    /// The errors of [`checked_size`]. [`Error::Shape`] if the number of strides differs from the number of axes.
    pub fn strided(shape: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        let size = checked_size("layout", shape)?;
        if shape.len() != strides.len() {
            return Err(Error::shape("layout", format!("got {} strides", strides.len()), &[shape]));
        }
        let strides = match size {
            0 => c_order_strides(shape),
            _ => shape.iter().zip(strides).map(|(&n, &stride)| if n == 1 { 0 } else { stride }).collect(),
        };
        Ok(Self::new_unchecked(shape.into(), strides, offset))
    }

    fn new_unchecked(shape: Dims, strides: Strides, offset: usize) -> Layout {
        let c_contiguous = has_contiguous_strides(shape.iter().rev().zip(strides.iter().rev()));
        let f_contiguous = has_contiguous_strides(shape.iter().zip(strides.iter()));
        let offset = if shape.contains(&0) { 0 } else { offset };
        Layout { shape, strides, offset, c_contiguous, f_contiguous }
    }

    /// Returns the extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the strides in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Returns the position of the layout's first element in the buffer, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the elements are in C order without gaps.
    pub fn is_c_contiguous(&self) -> bool {
        self.c_contiguous
    }

    /// Returns whether the elements are in Fortran order without gaps.
    pub fn is_f_contiguous(&self) -> bool {
        self.f_contiguous
    }

    /// Returns the range of buffer elements that the layout covers, as `(lowest, highest + 1)`; `(0, 0)` if the layout has no elements.
    pub fn buffer_range(&self) -> (isize, isize) {
        if self.size() == 0 {
            return (0, 0);
        }
        let (mut lo, mut hi) = (self.offset as isize, self.offset as isize);
        for (&n, &s) in self.shape.iter().zip(&self.strides) {
            let span = (n as isize - 1).saturating_mul(s);
            if span < 0 { lo = lo.saturating_add(span) } else { hi = hi.saturating_add(span) }
        }
        (lo, hi.saturating_add(1))
    }

    /// Reverses the order of the axes (`numpy.ndarray.T`).
    pub fn transpose(&self) -> Layout {
        let order: Dims = (0..self.ndim()).rev().collect();
        self.permute_unchecked(&order)
    }

    /// Permutes the axes (`numpy.permute_dims`).
    ///
    /// # Errors
    /// [`Error::Axis`], [`Error::Value`] or [`Error::Shape`] if `axes` is not a permutation.
    pub fn permute(&self, axes: &[isize]) -> Result<Layout> {
        let order = normalize_axes("permute_dims", axes, self.ndim())?;
        if order.len() != self.ndim() {
            return Err(Error::shape("permute_dims", format!("got {} axes", axes.len()), &[&self.shape]));
        }
        Ok(self.permute_unchecked(&order))
    }

    fn permute_unchecked(&self, order: &[usize]) -> Layout {
        Self::new_unchecked(order.iter().map(|&a| self.shape[a]).collect(), order.iter().map(|&a| self.strides[a]).collect(), self.offset)
    }

    /// Broadcasts to `shape`: stretches axes of extent 1 and prepends axes, with stride 0 (`numpy.broadcast_to`).
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes are not compatible.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout> {
        let fail = || Error::shape("broadcast_to", "shape cannot be broadcast", &[&self.shape, shape]);
        checked_size("broadcast_to", shape)?;
        let lead = shape.len().checked_sub(self.ndim()).ok_or_else(fail)?;
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        for (axis, (&n, &s)) in self.shape.iter().zip(&self.strides).enumerate() {
            let want = shape[lead + axis];
            if n == want {
                strides[lead + axis] = s;
            } else if n != 1 {
                return Err(fail());
            }
        }
        Ok(Self::new_unchecked(shape.into(), strides, self.offset))
    }

    /// Inserts axes of extent 1 at the positions `axes` of the result (`numpy.expand_dims`).
    ///
    /// # Errors
    /// [`Error::Axis`] or [`Error::Value`] for an invalid or repeated axis, or too many axes.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<Layout> {
        let ndim = self.ndim() + axes.len();
        check_ndim("expand_dims", ndim)?;
        let new = normalize_axes("expand_dims", axes, ndim)?;
        let (mut shape, mut strides) = (Dims::new(), Strides::new());
        let mut old = 0;
        for axis in 0..ndim {
            if new.contains(&axis) {
                shape.push(1);
                strides.push(0);
            } else {
                shape.push(self.shape[old]);
                strides.push(self.strides[old]);
                old += 1;
            }
        }
        Ok(Self::new_unchecked(shape, strides, self.offset))
    }

    /// Inserts an axis of extent 1 before `axis`. The caller checks the axis and the number of axes.
    pub(crate) fn insert_axis(&self, axis: usize) -> Layout {
        let mut out = self.clone();
        out.shape.insert(axis, 1);
        out.strides.insert(axis, 0);
        out
    }

    /// Removes `axes`, whose extents are 1; `None` removes every axis of extent 1 (`numpy.squeeze`).
    ///
    /// # Errors
    /// [`Error::Axis`] for an invalid axis, [`Error::Shape`] for an axis of another extent.
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<Layout> {
        let drop: Dims = match axes {
            None => (0..self.ndim()).filter(|&a| self.shape[a] == 1).collect(),
            Some(axes) => normalize_axes("squeeze", axes, self.ndim())?,
        };
        if let Some(&axis) = drop.iter().find(|&&a| self.shape[a] != 1) {
            return Err(Error::shape("squeeze", format!("axis {axis} has an extent other than 1"), &[&self.shape]));
        }
        let keep = (0..self.ndim()).filter(|a| !drop.contains(a));
        Ok(Self::new_unchecked(keep.clone().map(|a| self.shape[a]).collect(), keep.map(|a| self.strides[a]).collect(), self.offset))
    }

    /// Restricts `axis` to the `len` elements `start, start + step, ...`. The caller checks the range.
    pub(crate) fn slice_axis(&self, axis: usize, start: usize, step: isize, len: usize) -> Layout {
        let mut out = self.clone();
        // The offset of an empty array is 0. Strides of an empty array may be saturated (clamped to `isize`), so a product with them could
        // overflow.
        if len > 0 && !self.shape.contains(&0) {
            out.offset = (self.offset as isize + start as isize * self.strides[axis]) as usize;
        }
        out.shape[axis] = len;
        // The stride of a single element is never used, and its product with a huge step would overflow in offset arithmetic.
        if len > 1 {
            out.strides[axis] = self.strides[axis].saturating_mul(step);
        }
        Self::new_unchecked(out.shape, out.strides, out.offset)
    }

    /// Fixes `axis` at `index` and removes the axis. The caller checks the index.
    pub(crate) fn index_axis(&self, axis: usize, index: usize) -> Layout {
        let mut out = self.slice_axis(axis, index, 1, 1);
        out.shape.remove(axis);
        out.strides.remove(axis);
        Self::new_unchecked(out.shape, out.strides, out.offset)
    }

    /// Reverses the elements along the given axes (`numpy.flip`).
    pub fn flip(&self, axes: &[usize]) -> Layout {
        axes.iter().fold(self.clone(), |l, &a| {
            let n = l.shape[a];
            l.slice_axis(a, n.saturating_sub(1), -1, n)
        })
    }

    /// Replaces `axis1` and `axis2` by their diagonal, which becomes the last axis (`numpy.diagonal`).
    ///
    /// # Errors
    /// [`Error::Axis`] or [`Error::Value`] for invalid or equal axes.
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<Layout> {
        let axes = normalize_axes("diagonal", &[axis1, axis2], self.ndim())?;
        let (rows, cols) = (self.shape[axes[0]] as isize, self.shape[axes[1]] as isize);
        let (r0, c0) = if offset >= 0 { (0, offset) } else { (offset.saturating_neg(), 0) };
        let len = (rows - r0).min(cols - c0).max(0);
        let start = if len > 0 && !self.shape.contains(&0) { r0 * self.strides[axes[0]] + c0 * self.strides[axes[1]] } else { 0 };
        let keep = (0..self.ndim()).filter(|a| !axes.contains(a));
        let mut shape: Dims = keep.clone().map(|a| self.shape[a]).collect();
        let mut strides: Strides = keep.map(|a| self.strides[a]).collect();
        shape.push(len as usize);
        strides.push(self.strides[axes[0]].saturating_add(self.strides[axes[1]])); // strides of empty arrays may overflow
        Ok(Self::new_unchecked(shape, strides, (self.offset as isize + start) as usize))
    }

    /// Returns the layout of the same elements in C order with `shape`, or `None` if that needs a copy (`numpy.reshape`).
    pub fn reshape(&self, shape: &[usize]) -> Option<Layout> {
        if checked_size("reshape", shape).ok()? != self.size() {
            return None;
        }
        if self.c_contiguous || self.size() == 0 {
            return Some(Self::new_unchecked(shape.into(), c_order_strides(shape), self.offset));
        }
        // Matches groups of old axes with groups of new axes of the same total size. The old axes of a group must be mergeable into one
        // axis with a constant stride.
        let old: SmallVec<[(usize, isize); 6]> =
            self.shape.iter().zip(&self.strides).filter(|(n, _)| **n != 1).map(|(&n, &s)| (n, s)).collect();
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        let (mut o, mut n) = (0, 0);
        while o < old.len() {
            let (o0, n0) = (o, n);
            let (mut old_size, mut new_size) = (old[o].0, *shape.get(n)?);
            (o, n) = (o + 1, n + 1);
            while old_size != new_size {
                if new_size < old_size {
                    new_size *= *shape.get(n)?;
                    n += 1;
                } else {
                    old_size *= old.get(o)?.0;
                    o += 1;
                }
            }
            if (o0 + 1..o).any(|k| old[k - 1].1 != old[k].1 * old[k].0 as isize) {
                return None;
            }
            let mut step = old[o - 1].1;
            for axis in (n0..n).rev() {
                strides[axis] = step;
                step *= shape[axis] as isize;
            }
        }
        Some(Self::new_unchecked(shape.into(), strides, self.offset))
    }

    /// Returns whether two different indices may address the same element of the buffer, as after broadcasting. Slices and
    /// permutations of contiguous layouts do not overlap.
    pub fn may_overlap(&self) -> bool {
        let mut axes: SmallVec<[(usize, usize); 6]> =
            self.shape.iter().zip(&self.strides).filter(|(n, _)| **n > 1).map(|(n, stride)| (stride.unsigned_abs(), *n)).collect();
        axes.sort_unstable();
        let mut reach = 0usize; // largest offset within the axes of smaller strides
        axes.iter().any(|&(stride, n)| {
            let overlaps = stride <= reach;
            reach = reach.saturating_add(stride.saturating_mul(n - 1));
            overlaps
        })
    }

    /// Returns this layout with its offset replaced by `offset`, unless it has no elements.
    pub fn with_offset(&self, offset: usize) -> Layout {
        Layout { offset: if self.shape.contains(&0) { 0 } else { offset }, ..self.clone() }
    }
}

/// Returns whether each stride is the product of the extents of all inner axes. `axes` yields extent and stride, the innermost axis first.
///
/// Strides of extent-1 axes are ignored, and empty arrays are contiguous.
fn has_contiguous_strides<'a>(axes: impl Iterator<Item = (&'a usize, &'a isize)> + Clone) -> bool {
    if axes.clone().any(|(&n, _)| n == 0) {
        return true;
    }
    let mut step = 1;
    for (&n, &s) in axes {
        if n != 1 && s != step {
            return false;
        }
        step *= n as isize;
    }
    true
}

fn c_order_strides(shape: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let mut step = 1isize;
    for axis in (0..shape.len()).rev() {
        strides[axis] = step;
        step = step.saturating_mul(shape[axis].max(1) as isize);
    }
    strides
}

/// Returns `axis` as a non-negative index.
///
/// # Errors
/// [`Error::Axis`] if `axis` is outside `-ndim..ndim`.
pub fn normalize_axis(op: &'static str, axis: isize, ndim: usize) -> Result<usize> {
    let n = ndim as isize;
    if axis >= -n && axis < n { Ok((if axis < 0 { axis + n } else { axis }) as usize) } else { Err(Error::Axis { op, axis, ndim }) }
}

/// Returns `axis` as [`normalize_axis`] does, for functions in which NumPy accepts axes 0 and -1 of a 0-d array.
pub(crate) fn normalize_axis_of_scalar(op: &'static str, axis: isize, ndim: usize) -> Result<usize> {
    normalize_axis(op, axis, ndim.max(1)).map_err(|_| Error::Axis { op, axis, ndim })
}

/// Returns `axes` as non-negative indices.
///
/// # Errors
/// [`Error::Axis`] for an axis out of bounds, [`Error::Value`] for a repeated axis.
pub fn normalize_axes(op: &'static str, axes: &[isize], ndim: usize) -> Result<Dims> {
    let mut out = Dims::new();
    for &axis in axes {
        let a = normalize_axis(op, axis, ndim)?;
        if out.contains(&a) {
            return Err(Error::value(op, format!("axis {axis} is given twice")));
        }
        out.push(a);
    }
    Ok(out)
}

/// Returns the shape that all of `shapes` broadcast to (`numpy.broadcast_shapes`).
///
/// # Errors
/// [`Error::Shape`] if the shapes are not compatible; errors of [`checked_size`].
pub fn broadcast_shapes(op: &'static str, shapes: &[&[usize]]) -> Result<Dims> {
    if let Some((first, rest)) = shapes.split_first()
        && rest.iter().all(|s| s == first)
    {
        return Ok(Dims::from_slice(first)); // the shape of existing arrays, whose size is valid
    }
    let ndim = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out: Dims = SmallVec::from_elem(1, ndim);
    for shape in shapes {
        let lead = ndim - shape.len();
        for (axis, &n) in shape.iter().enumerate() {
            let have = &mut out[lead + axis];
            if *have == 1 {
                *have = n;
            } else if n != 1 && n != *have {
                return Err(Error::shape(op, "operands could not be broadcast together with shapes", shapes));
            }
        }
    }
    checked_size(op, &out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshape_refuses_shapes_whose_size_overflows() {
        let layout = Layout::contiguous(&[2, 3]).unwrap();
        assert!(layout.reshape(&[usize::MAX, usize::MAX]).is_none());
        assert!(layout.reshape(&[1; 65]).is_none());
        assert_eq!(layout.reshape(&[3, 2]).unwrap().strides(), [2, 1]);
    }

    #[test]
    fn reshape_returns_views() {
        let l = Layout::contiguous(&[4, 6]).unwrap();
        assert_eq!(l.reshape(&[2, 2, 6]).unwrap().strides(), &[12, 6, 1]);
        let t = l.transpose();
        assert!(t.reshape(&[24]).is_none());
        assert_eq!(t.reshape(&[2, 3, 4]).unwrap().strides(), &[3, 1, 6]);
        assert_eq!(l.flip(&[0, 1]).reshape(&[24]).unwrap().strides(), &[-1]);
        assert!(Layout::contiguous(&[0, 3]).unwrap().reshape(&[3, 0, 7]).is_some());
    }

    #[test]
    fn reshape_accepts_trailing_ones() {
        let l = Layout::contiguous(&[4]).unwrap().slice_axis(0, 0, 2, 2);
        assert_eq!(l.reshape(&[2, 1, 1]).unwrap().shape(), &[2, 1, 1]);
        assert_eq!(l.reshape(&[1, 2]).unwrap().strides()[1], 2);
    }

    #[test]
    fn the_largest_size_is_accepted() {
        let limit = isize::MAX as usize / 16;
        assert_eq!(checked_size("zeros", &[limit]).unwrap(), limit);
        assert_eq!(checked_size("zeros", &[limit, 0]).unwrap(), 0);
        assert!(checked_size("zeros", &[limit + 1]).is_err() && checked_size("zeros", &[limit + 1, 0]).is_err());
    }

    #[test]
    fn contiguity_of_c_order() {
        let fortran = |shape: &[usize]| Layout::contiguous(shape).unwrap().is_f_contiguous();
        assert!(fortran(&[]) && fortran(&[5]) && fortran(&[5, 1]) && fortran(&[1, 5]) && fortran(&[2, 0, 3]));
        assert!(!fortran(&[2, 3]) && !fortran(&[2, 3, 4]));
    }

    #[test]
    fn layouts_without_elements_have_the_strides_of_c_order() {
        assert_eq!(Layout::strided(&[0, 3], &[7, 9], 0).unwrap().strides(), [3, 1]);
        assert_eq!(Layout::contiguous(&[2, 3]).unwrap().diagonal(5, 0, 1).unwrap().offset(), 0);
    }

    #[test]
    fn layouts_without_elements_have_offset_0() {
        let empty = Layout::contiguous(&[0, 1000]).unwrap();
        let views = [
            empty.index_axis(1, 999),
            empty.slice_axis(1, 999, 1, 1),
            empty.flip(&[1]),
            empty.diagonal(5, 0, 1).unwrap(),
            empty.with_offset(7),
            Layout::contiguous(&[2, 3]).unwrap().index_axis(0, 1).slice_axis(0, 2, 1, 0),
            Layout::strided(&[0, 3], &[3, 1], usize::MAX).unwrap(),
        ];
        assert!(views.iter().all(|view| view.offset() == 0), "{views:?}");
    }

    #[test]
    fn axes_of_one_element_do_not_overlap() {
        assert!(!Layout::strided(&[1, 3], &[0, 1], 0).unwrap().may_overlap());
        assert!(Layout::strided(&[2, 3], &[0, 1], 0).unwrap().may_overlap());
        assert!(Layout::strided(&[2, 3], &[2, 1], 0).unwrap().may_overlap());
    }

    #[test]
    fn broadcast_follows_numpy() {
        assert_eq!(&broadcast_shapes("add", &[&[3, 1], &[4]]).unwrap()[..], &[3, 4]);
        assert_eq!(&broadcast_shapes("add", &[&[0], &[1]]).unwrap()[..], &[0]);
        assert!(broadcast_shapes("add", &[&[3], &[4]]).is_err());
        let huge = usize::MAX / 2;
        assert!(Layout::contiguous(&[huge, huge]).is_err());
    }

    #[test]
    fn ndim_is_at_most_64() {
        let (max, more) = (vec![1; 64], vec![1; 65]);
        let l = Layout::contiguous(&max).unwrap();
        let message = "[expand_dims] maximum supported dimension for an ndarray is currently 64, found 65";
        assert_eq!(l.expand_dims(&[0]).unwrap_err().to_string(), message);
        assert!(Layout::contiguous(&more).is_err());
        assert!(Layout::contiguous_in_order(&more, &(0..65).collect::<Vec<_>>()).is_err());
        assert!(Layout::strided(&more, &[0; 65], 0).is_err());
        assert!(l.broadcast_to(&more).is_err() && l.reshape(&more).is_none());
        assert!(broadcast_shapes("add", &[&more, &[1]]).is_err());
        assert!(l.index(&[crate::index::Item::NewAxis]).is_err());
        assert_eq!(l.index(&[crate::index::Item::NewAxis, 0.into()]).unwrap().ndim(), 64, "only the ndim of the result counts");
        assert!(checked_size("zeros", &[0; 65]).is_err(), "the limit also holds for empty arrays");
    }

    #[test]
    fn strides_of_single_elements_do_not_overflow() {
        let huge = Layout::strided(&[2, 1, 3], &[3, isize::MAX, 1], 0).unwrap();
        assert_eq!(huge.strides(), &[3, 0, 1]);
        let one = Layout::contiguous(&[2, 4]).unwrap().slice_axis(1, 3, isize::MAX, 1);
        let offsets: Vec<isize> = crate::device::host_buffer::element_offsets(&one).collect();
        assert_eq!(offsets, [3, 7]);
    }

    #[test]
    fn diagonal_accepts_huge_strides() {
        let l = Layout::contiguous(&[0, 1, 1 << 58]).unwrap();
        assert_eq!(l.diagonal(0, 0, 1).unwrap().size(), 0);
        // The nonzero extents must have a valid product, even in an empty array.
        assert!(Layout::contiguous(&[1 << 40, 1 << 40, 0]).is_err());
    }

    #[test]
    fn extent_covers_flipped_and_diagonal_views() {
        let l = Layout::contiguous(&[3, 4]).unwrap().flip(&[1]);
        assert_eq!(l.buffer_range(), (0, 12));
        assert_eq!(l.diagonal(1, 0, 1).unwrap().shape(), &[3]);
        assert_eq!(Layout::contiguous(&[2, 3]).unwrap().diagonal(5, 0, 1).unwrap().size(), 0);
    }
}
