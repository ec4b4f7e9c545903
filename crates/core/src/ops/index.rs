//! Indices of arrays: basic items give views, arrays of integers and masks give copies, by NumPy's rules for advanced indexing.

use smallvec::SmallVec;

use crate::array::NdArray;
use crate::device::with_device;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::index::Item;
use crate::layout::{Dims, Layout, broadcast_shapes, check_ndim};
use crate::ops::creation::{arange_as, full_on};
use crate::ops::elementwise::{add, multiply, where_};
use crate::ops::indexing::check_bounds;
use crate::scalar::Scalar;

/// An item of an index: a basic item, or an array of integers or bools.
///
/// The macro [`s!`](crate::s) converts integers, ranges, arrays, vectors and slices to items.
#[derive(Clone)]
pub enum IndexItem {
    /// An integer, slice, new axis or ellipsis.
    Basic(Item),
    /// An integer array that indexes one axis, or a mask over as many axes as it has.
    Array(NdArray),
    /// An index array of a Rust list, or the error of its creation.
    List(Box<Result<NdArray>>),
}

impl<T: Into<Item>> From<T> for IndexItem {
    #[inline]
    fn from(item: T) -> IndexItem {
        IndexItem::Basic(item.into())
    }
}
impl From<NdArray> for IndexItem {
    fn from(array: NdArray) -> IndexItem {
        IndexItem::Array(array)
    }
}
impl From<&NdArray> for IndexItem {
    fn from(array: &NdArray) -> IndexItem {
        IndexItem::Array(array.clone())
    }
}
impl<T: Element> From<&[T]> for IndexItem {
    fn from(list: &[T]) -> IndexItem {
        IndexItem::List(Box::new(NdArray::from_slice(list)))
    }
}
impl<T: Element> From<Vec<T>> for IndexItem {
    fn from(list: Vec<T>) -> IndexItem {
        IndexItem::from(&list[..])
    }
}
impl<T: Element> From<&Vec<T>> for IndexItem {
    fn from(list: &Vec<T>) -> IndexItem {
        IndexItem::from(&list[..])
    }
}
impl<T: Element, const N: usize> From<[T; N]> for IndexItem {
    fn from(list: [T; N]) -> IndexItem {
        IndexItem::from(&list[..])
    }
}
impl<T: Element, const N: usize> From<&[T; N]> for IndexItem {
    fn from(list: &[T; N]) -> IndexItem {
        IndexItem::from(&list[..])
    }
}

/// The index argument of [`NdArray::index`] and [`NdArray::assign`]: the result of [`s!`](crate::s), or one item.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    note = "an index is `s![..]`, an integer, a range of integers, an array of integers or a mask"
)]
pub trait IntoIndex {
    /// Calls `f` with the items.
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R;
}
impl<T: Into<IndexItem>> IntoIndex for T {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(&[self.into()])
    }
}
impl IntoIndex for &[IndexItem] {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(self)
    }
}
impl IntoIndex for &Vec<IndexItem> {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(self)
    }
}
impl IntoIndex for &[Item] {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(&self.iter().map(|item| IndexItem::Basic(*item)).collect::<SmallVec<[IndexItem; 6]>>())
    }
}
impl IntoIndex for &Vec<Item> {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        self[..].with_items(f)
    }
}
impl<const N: usize> IntoIndex for &[Item; N] {
    #[inline]
    fn with_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        self[..].with_items(f)
    }
}

/// Returns the items if all are basic.
#[inline]
pub(crate) fn basic_items(items: &[IndexItem]) -> Option<SmallVec<[Item; 6]>> {
    items.iter().map(|item| if let IndexItem::Basic(item) = item { Some(*item) } else { None }).collect()
}

/// An index array, the axis that it indexes in [`AdvancedIndex::view`], and whether its indices are known to be in bounds.
struct AxisIndices {
    indices: NdArray,
    axis: usize,
    /// The axis of the indexed array, for errors.
    source: usize,
    is_checked: bool,
}

/// An index with arrays, by NumPy's rules: a view by the basic items, index arrays of that view's axes, and the position of their axes in
/// the result.
struct AdvancedIndex {
    /// The array indexed by the basic items. Indexed axes are complete.
    view: NdArray,
    arrays: SmallVec<[AxisIndices; 2]>,
    /// Shape that the index arrays broadcast to.
    shape: Dims,
    /// First axis of the index arrays in the result.
    position: usize,
}

/// The name of the operation in errors.
const NAME: &str = "index";

impl AdvancedIndex {
    /// Checks and resolves `items`. A mask becomes one index array for each of its axes, which waits for the device.
    fn new(a: &NdArray, items: &[IndexItem]) -> Result<AdvancedIndex> {
        let mut resolved = SmallVec::<[Result<Item, NdArray>; 6]>::new(); // `Err` is an array
        for item in items {
            resolved.push(match item {
                IndexItem::Basic(item) => Ok(*item),
                IndexItem::Array(array) => Err(array.clone()),
                IndexItem::List(list) => Err(list.as_ref().clone()?.to_device(a.device())?),
            });
        }
        let axes_of = |item: &Result<Item, NdArray>| match item {
            Ok(Item::At(_) | Item::Range { .. }) => 1,
            Ok(Item::NewAxis | Item::Ellipsis) => 0,
            Err(array) if array.dtype() == DType::Bool => array.ndim(),
            Err(_) => 1,
        };
        let used: usize = resolved.iter().map(axes_of).sum();
        let Some(omitted) = a.ndim().checked_sub(used) else {
            return Err(Error::value(NAME, format!("too many indices: array is {}-dimensional, but {used} were indexed", a.ndim())));
        };
        let mut basic = SmallVec::<[Item; 6]>::new();
        let mut arrays = SmallVec::<[AxisIndices; 2]>::new();
        let (mut source, mut axis) = (0, 0); // the current axes of `a` and of the view
        // NumPy counts integers next to index arrays as index arrays. If another item separates them, their axes come first.
        let (mut position, mut is_separated, mut is_joined) = (None, false, true);
        for item in &resolved {
            let is_advanced = matches!(item, Ok(Item::At(_)) | Err(_));
            if is_advanced {
                is_joined &= !is_separated;
                position.get_or_insert(axis);
            } else {
                is_separated |= position.is_some();
            }
            match item {
                Ok(item) => {
                    basic.push(*item);
                    axis += match item {
                        Item::At(_) => 0,
                        Item::Range { .. } | Item::NewAxis => 1,
                        Item::Ellipsis => omitted,
                    };
                    source += if matches!(item, Item::Ellipsis) { omitted } else { axes_of(&Ok(*item)) };
                }
                Err(array) => {
                    for indices in indices_of(a, array, source)? {
                        basic.push(Item::range(None, None, 1));
                        arrays.push(AxisIndices { indices, axis, source, is_checked: array.dtype() == DType::Bool });
                        (source, axis) = (source + 1, axis + 1);
                    }
                }
            }
        }
        let shape = broadcast_shapes(NAME, &arrays.iter().map(|array| array.indices.shape()).collect::<SmallVec<[&[usize]; 2]>>())?;
        let view = a.index(&basic[..])?;
        check_ndim(NAME, view.ndim() - arrays.len() + shape.len())?;
        let position = if is_joined { position.unwrap_or(0) } else { 0 };
        Ok(AdvancedIndex { view, arrays, shape, position })
    }

    /// Returns the selected elements.
    fn gather(mut self) -> Result<NdArray> {
        if let [array] = &self.arrays[..] {
            let (axis, size) = (array.axis, self.view.shape()[array.axis]);
            if self.view.size() == 0 && !array.is_checked {
                check_bounds(NAME, &array.indices, array.source, size)?; // `take` does not check the indices into some empty arrays
            }
            let source = array.source;
            let taken = self.view.take(&array.indices, axis).map_err(|error| match error {
                Error::Index { index, size, .. } => Error::Index { op: NAME, index, axis: source, size },
                error => error,
            })?;
            return self.place(taken, axis);
        }
        for array in &mut self.arrays {
            let size = self.view.shape()[array.axis];
            // NumPy does not check indices that broadcast to none.
            if !array.is_checked && !self.shape.contains(&0) {
                check_bounds(NAME, &array.indices, array.source, size)?;
                let indices = array.indices.astype(DType::I64)?;
                array.indices = where_(indices.less(0)?, indices.add(size as i64)?, &indices)?;
            }
        }
        let is_indexed = |axis: usize| self.arrays.iter().any(|array| array.axis == axis);
        let rest: Dims = (0..self.view.ndim()).filter(|&axis| !is_indexed(axis)).collect();
        let extents = |axes: &[usize]| axes.iter().map(|&axis| self.view.shape()[axis]).collect::<Dims>();
        let mut shape = extents(&rest);
        shape.insert_many(self.position, self.shape.iter().copied());
        if shape.contains(&0) {
            return full_on(self.view.device(), &shape, Scalar::Int(0), self.view.dtype());
        }
        if let Some((merged, linear, axis)) = self.merged()? {
            let taken = merged.take(&linear, axis)?;
            return self.place(taken, axis);
        }
        // The elements are taken from the buffer, at offsets that are sums of indices times strides.
        let stored = self.view.stored()?;
        let layout = stored.layout();
        let (begin, end) = layout.extent();
        let flat = NdArray::from(stored.with_layout(Layout::strided(&[(end - begin) as usize], &[1], begin as usize)?)?);
        let mut offsets: Option<NdArray> = None;
        let mut sum = |indices: NdArray, axis: usize| -> Result<()> {
            let term = multiply(indices, layout.strides()[axis] as i64)?;
            offsets = Some(match offsets.take() {
                Some(sum) => add(sum, term)?,
                None => add(term, (layout.offset() as isize - begin) as i64)?,
            });
            Ok(())
        };
        for array in &self.arrays {
            let mut aligned = vec![1; shape.len()];
            let end = self.position + self.shape.len();
            aligned[end - array.indices.ndim()..end].copy_from_slice(array.indices.shape());
            sum(array.indices.reshape(aligned)?, array.axis)?;
        }
        for (n, &axis) in rest.iter().enumerate() {
            let mut aligned = vec![1; shape.len()];
            let at = if n < self.position { n } else { n + self.shape.len() };
            aligned[at] = self.view.shape()[axis];
            let count = with_device(self.view.device(), || arange_as(0, aligned[at], 1, DType::I64))?;
            sum(count.reshape(aligned)?, axis)?;
        }
        match offsets {
            Some(offsets) => flat.take(&offsets, 0),
            None => Ok(self.view),
        }
    }

    /// Returns the view with the indexed axes merged into one, the index into this axis, and the axis. `None` if the axes are apart, or
    /// if merging them needs a copy.
    fn merged(&self) -> Result<Option<(NdArray, NdArray, usize)>> {
        let (first, count) = (self.arrays[0].axis, self.arrays.len());
        if self.arrays[count - 1].axis + 1 - first != count {
            return Ok(None);
        }
        let mut shape: Dims = self.view.shape().into();
        let size: usize = shape.drain(first..first + count).product();
        shape.insert(first, size);
        if self.view.stored()?.layout().reshape(&shape).is_none() {
            return Ok(None);
        }
        let mut linear = self.arrays[0].indices.clone();
        for array in &self.arrays[1..] {
            linear = linear.multiply(self.view.shape()[array.axis] as i64)?.add(&array.indices)?;
        }
        Ok(Some((self.view.reshape(shape)?, linear, first)))
    }

    /// Moves the axes of the index arrays from `axis` to their position in the result.
    fn place(&self, taken: NdArray, axis: usize) -> Result<NdArray> {
        let count = self.shape.len();
        if axis == self.position { Ok(taken) } else { taken.moveaxis(axis..axis + count, self.position..self.position + count) }
    }
}

/// Returns the index arrays of `array`, an item for the axes of `a` from `axis` on: itself, or one for each axis of a mask.
fn indices_of(a: &NdArray, array: &NdArray, axis: usize) -> Result<SmallVec<[NdArray; 2]>> {
    if a.device() != array.device() {
        let message = format!("the array is on {}, an index array on {}; use to_device", a.device(), array.device());
        return Err(Error::Device { op: NAME, message });
    }
    if array.dtype().is_int() {
        return Ok(SmallVec::from_elem(array.clone(), 1));
    }
    if array.dtype() != DType::Bool {
        if array.size() == 0 {
            return Ok(SmallVec::from_elem(array.astype(DType::I64)?, 1)); // an empty list is float64
        }
        return Err(Error::dtype(NAME, "index arrays hold integers or bools; use astype", &[array.dtype()]));
    }
    if array.ndim() == 0 {
        return Err(Error::value(NAME, "a mask needs at least one axis"));
    }
    for (n, (&of_mask, &of_array)) in array.shape().iter().zip(&a.shape()[axis..]).enumerate() {
        if of_mask != of_array {
            let message = format!("the extent of axis {} is {of_array}, but that of the mask is {of_mask}", axis + n);
            return Err(Error::shape(NAME, message, &[a.shape(), array.shape()]));
        }
    }
    Ok(array.nonzero()?.into())
}

impl NdArray {
    /// Returns the selected elements (`a[1:, ::2, None]`, `a[mask]`, `a[rows, columns]`). The macro [`s!`](crate::s) writes an index; one
    /// item is an index, too.
    ///
    /// Integers, ranges, [`NewAxis`](crate::NewAxis) and [`Ellipsis`](crate::Ellipsis) give a view. With an array of integers or a mask
    /// the result is a copy by NumPy's rules for advanced indexing: index arrays broadcast together, and their axes replace the indexed
    /// ones, or come first if other items separate the arrays. Masks, and more than one array, wait for the device.
    ///
    /// # Errors
    /// Indices out of bounds, too many indices, a step of 0, several ellipses, index arrays that do not broadcast or are on another
    /// device, a mask of another shape than the axes that it indexes.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, s};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(a.index(s![.., ..;-1])?.to_vec::<i32>()?, [3, 2, 1, 6, 5, 4]);
    /// assert_eq!(a.index(1)?.to_vec::<i32>()?, [4, 5, 6]);
    /// assert_eq!(a.index(s![[0, 1, 1], [2, 0, 1]])?.to_vec::<i32>()?, [3, 4, 5]);
    /// assert_eq!(a.index(&a.greater(4)?)?.to_vec::<i32>()?, [5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self, index: impl IntoIndex) -> Result<NdArray> {
        index.with_items(|items| match basic_items(items) {
            Some(basic) => self.view(|layout| layout.index(&basic)),
            None => self.index_by_arrays(items),
        })
    }

    fn index_by_arrays(&self, items: &[IndexItem]) -> Result<NdArray> {
        // A mask of the first axes alone needs no index array for each axis.
        if let [IndexItem::Array(mask)] = items
            && mask.dtype() == DType::Bool
            && mask.ndim() > 0
            && self.shape().starts_with(mask.shape())
        {
            return self.extract(mask);
        }
        AdvancedIndex::new(self, items)?.gather()
    }
}
