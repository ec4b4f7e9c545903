//! Indices of arrays: basic items give views, arrays of integers and masks give copies, by NumPy's rules for advanced indexing.

use smallvec::SmallVec;

use crate::array::NdArray;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::index::{Item, NewAxis};
use crate::layout::{Dims, Layout, Strides, broadcast_shapes, check_ndim};
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{add, multiply, where_};
use crate::ops::take::check_index_bounds;
use crate::scalar::Scalar;

/// An item of an index: a basic item, or an array of integers or bools.
///
/// The macro [`s!`](crate::s) converts integers, ranges, arrays, vectors and slices to items.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// An integer, slice, new axis or ellipsis.
    Basic(Item),
    /// An integer array that indexes one axis, or a boolean mask that covers as many axes as the mask has.
    Array(NdArray),
    /// An index array made from a Rust list, or the error of its creation.
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
    /// Calls `f` with the index as a slice of items.
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R;
}
impl<T: Into<IndexItem>> IntoIndex for T {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(&[self.into()])
    }
}
impl IntoIndex for &[IndexItem] {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(self)
    }
}
impl IntoIndex for &Vec<IndexItem> {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(self)
    }
}
impl IntoIndex for &[Item] {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        f(&self.iter().map(|item| IndexItem::Basic(*item)).collect::<SmallVec<[IndexItem; 6]>>())
    }
}
impl IntoIndex for &Vec<Item> {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        self[..].with_index_items(f)
    }
}
impl<const N: usize> IntoIndex for &[Item; N] {
    #[inline]
    fn with_index_items<R>(self, f: impl FnOnce(&[IndexItem]) -> R) -> R {
        self[..].with_index_items(f)
    }
}

/// Returns the items of a basic index; `None` if an item is an array or list.
#[inline]
pub(crate) fn as_basic_items(items: &[IndexItem]) -> Option<SmallVec<[Item; 6]>> {
    items.iter().map(|item| if let IndexItem::Basic(item) = item { Some(*item) } else { None }).collect()
}

/// An index array, the axis that it indexes in [`AdvancedIndex::view`], and whether its indices have been checked to be in bounds.
struct AxisIndexArray {
    indices: NdArray,
    axis: usize,
    /// The axis of the original array that the indices address, for error messages.
    source_axis: usize,
    is_checked: bool,
}

/// An index with arrays, resolved by NumPy's rules: a view by the basic items, index arrays for axes of that view, and the position of the
/// axes of the index arrays in the result.
pub(super) struct AdvancedIndex {
    /// The view that the basic items select. The axes that index arrays address have their full extent.
    view: NdArray,
    arrays: SmallVec<[AxisIndexArray; 2]>,
    /// The common shape of the index arrays after broadcasting.
    shape: Dims,
    /// The axis of the result at which the axes of the index arrays begin.
    position: usize,
}

/// The function name that error messages of indexing show.
const INDEX_FUNCTION_NAME: &str = "index";

impl AdvancedIndex {
    /// Checks and resolves `items`. A mask becomes one index array for each of its axes, which waits for the device.
    pub(super) fn from_index_items(a: &NdArray, items: &[IndexItem]) -> Result<AdvancedIndex> {
        let mut resolved = SmallVec::<[Result<Item, NdArray>; 6]>::new(); // `Err` holds an index array
        for item in items {
            resolved.push(match item {
                IndexItem::Basic(item) => Ok(*item),
                IndexItem::Array(array) => Err(array.clone()),
                IndexItem::List(list) => Err(list.as_ref().clone()?.to_device(a.device())?),
            });
        }
        let axes_of = |item: &Result<Item, NdArray>| match item {
            Ok(Item::At(_) | Item::Slice { .. }) => 1,
            Ok(Item::NewAxis | Item::Ellipsis) => 0,
            Err(array) if array.dtype() == DType::Bool => array.ndim(),
            Err(_) => 1,
        };
        let used: usize = resolved.iter().map(axes_of).sum();
        let Some(omitted) = a.ndim().checked_sub(used) else {
            return Err(Error::value(
                INDEX_FUNCTION_NAME,
                format!("too many indices: array is {}-dimensional, but {used} were indexed", a.ndim()),
            ));
        };
        let mut basic = SmallVec::<[Item; 6]>::new();
        let mut arrays = SmallVec::<[AxisIndexArray; 2]>::new();
        let (mut source_axis, mut axis) = (0, 0); // the current axes of `a` and of the view
        // If an index contains arrays, NumPy treats its integers as index arrays, too. If another item separates the index arrays, their
        // axes come first in the result.
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
                        Item::Slice { .. } | Item::NewAxis => 1,
                        Item::Ellipsis => omitted,
                    };
                    source_axis += if matches!(item, Item::Ellipsis) { omitted } else { axes_of(&Ok(*item)) };
                }
                // A 0-d mask selects along a new axis of extent 1.
                Err(array) if array.dtype() == DType::Bool && array.ndim() == 0 => {
                    let [indices] = &index_item_to_arrays(&a.index(NewAxis)?, &array.reshape(1)?, 0)?[..] else { continue };
                    basic.push(Item::NewAxis);
                    arrays.push(AxisIndexArray { indices: indices.clone(), axis, source_axis, is_checked: true });
                    axis += 1;
                }
                Err(array) => {
                    for indices in index_item_to_arrays(a, array, source_axis)? {
                        basic.push(Item::slice(None, None, 1));
                        arrays.push(AxisIndexArray { indices, axis, source_axis, is_checked: array.dtype() == DType::Bool });
                        (source_axis, axis) = (source_axis + 1, axis + 1);
                    }
                }
            }
        }
        let shape =
            broadcast_shapes(INDEX_FUNCTION_NAME, &arrays.iter().map(|array| array.indices.shape()).collect::<SmallVec<[&[usize]; 2]>>())?;
        let view = a.index(&basic[..])?;
        check_ndim(INDEX_FUNCTION_NAME, view.ndim() - arrays.len() + shape.len())?;
        let position = if is_joined { position.unwrap_or(0) } else { 0 };
        Ok(AdvancedIndex { view, arrays, shape, position })
    }

    /// Returns the selected elements.
    pub(super) fn gather_selected_elements(mut self) -> Result<NdArray> {
        if let [array] = &self.arrays[..] {
            let (axis, size) = (array.axis, self.view.shape()[array.axis]);
            if self.view.size() == 0 && !array.is_checked {
                // `take` does not check the indices into some empty arrays, so they are checked here.
                check_index_bounds(INDEX_FUNCTION_NAME, &array.indices, array.source_axis, size)?;
            }
            let source_axis = array.source_axis;
            let taken = self.view.take(&array.indices, axis).map_err(|error| match error {
                Error::Index { index, size, .. } => Error::Index { op: INDEX_FUNCTION_NAME, index, axis: source_axis, size },
                error => error,
            })?;
            return self.move_index_axes_to_position(taken, axis);
        }
        self.check_and_normalize_indices(INDEX_FUNCTION_NAME)?;
        let shape = self.result_shape();
        if shape.contains(&0) {
            return full_on_device(self.view.device(), &shape, Scalar::Int(0), self.view.dtype());
        }
        let stored = self.view.stored()?;
        let SelectedRows { rows, indices, .. } = self.merge_indexed_axes(stored.layout())?;
        let taken = NdArray::from(stored.with_layout(rows)?).take(&indices, 0)?;
        self.move_index_axes_to_position(taken, 0)
    }

    /// Returns the shape of the selected elements.
    pub(super) fn result_shape(&self) -> Dims {
        let mut shape: Dims = self.axes_without_index_array().map(|axis| self.view.shape()[axis]).collect();
        shape.insert_many(self.position, self.shape.iter().copied());
        shape
    }

    /// Returns the axes of the view that no index array addresses.
    fn axes_without_index_array(&self) -> impl Iterator<Item = usize> {
        (0..self.view.ndim()).filter(|&axis| self.arrays.iter().all(|array| array.axis != axis))
    }

    /// Checks the indices, and replaces negative ones, which count from the end, by non-negative ones. Waits for the device.
    fn check_and_normalize_indices(&mut self, op: &'static str) -> Result<()> {
        for array in &mut self.arrays {
            let size = self.view.shape()[array.axis];
            // NumPy does not check indices if the index arrays broadcast to an empty shape.
            if !array.is_checked && !self.shape.contains(&0) {
                check_index_bounds(op, &array.indices, array.source_axis, size)?;
                let indices = array.indices.astype(DType::I64)?;
                array.indices = where_(indices.less(0)?, indices.add(size as i64)?, &indices)?;
                array.is_checked = true;
            }
        }
        Ok(())
    }

    /// Returns the indexed rows of the view. The bounds of a single index array are not checked here, because the kernel checks
    /// them. With several index arrays, the call waits for the device.
    ///
    /// # Errors
    /// An index out of bounds in one of several index arrays.
    pub(super) fn into_selected_rows(mut self, op: &'static str) -> Result<SelectedRows> {
        let is_distinct = self.arrays.iter().all(|array| array.is_checked);
        let layout = self.view.stored()?.layout().clone();
        let rows = if let [array] = &self.arrays[..] {
            let axes: Vec<isize> = std::iter::once(array.axis).chain(self.axes_without_index_array()).map(|axis| axis as isize).collect();
            let (indices, source_axis) = (array.indices.clone(), array.source_axis);
            SelectedRows { rows: layout.permute(&axes)?, indices, source_axis, position: self.position, is_distinct }
        } else {
            self.check_and_normalize_indices(op)?;
            self.merge_indexed_axes(&layout)?
        };
        Ok(SelectedRows { is_distinct, ..rows })
    }

    /// Returns the rows of the view with the indexed axes merged into one. The stride of the merged axis is the greatest common
    /// divisor of the strides of the indexed axes. The indices have been checked and are not negative.
    fn merge_indexed_axes(&self, layout: &Layout) -> Result<SelectedRows> {
        let of_axis = |axis: usize| (layout.shape()[axis], if layout.shape()[axis] > 1 { layout.strides()[axis] } else { 0 });
        let unit = self.arrays.iter().fold(0, |unit, array| gcd(unit, of_axis(array.axis).1.unsigned_abs())).max(1);
        let mut indices: Option<NdArray> = None;
        let (mut extent, mut offset) = (1, layout.offset());
        for array in &self.arrays {
            let (count, stride) = of_axis(array.axis);
            let (step, last) = (stride / unit as isize, count.saturating_sub(1));
            let term = multiply(&array.indices, step as i64)?;
            // With a negative stride, the last element has the lowest address. The merged axis begins at this element.
            let term = if step < 0 { add(term, (last * step.unsigned_abs()) as i64)? } else { term };
            offset -= if step < 0 { last * stride.unsigned_abs() } else { 0 };
            extent += last * step.unsigned_abs();
            indices = Some(match indices {
                Some(sum) => add(sum, term)?,
                None => term,
            });
        }
        let rest = || self.axes_without_index_array();
        let shape: Dims = std::iter::once(extent).chain(rest().map(|axis| layout.shape()[axis])).collect();
        let strides: Strides = std::iter::once(unit as isize).chain(rest().map(|axis| layout.strides()[axis])).collect();
        let indices = indices.ok_or_else(|| Error::value(INDEX_FUNCTION_NAME, "an index without arrays"))?;
        let rows = Layout::strided(&shape, &strides, offset)?;
        let source_axis = self.arrays.first().map_or(0, |array| array.source_axis);
        Ok(SelectedRows { rows, indices, source_axis, position: self.position, is_distinct: false })
    }

    /// Moves the axes of the index arrays from `axis` to their position in the result.
    fn move_index_axes_to_position(&self, taken: NdArray, axis: usize) -> Result<NdArray> {
        let count = self.shape.len();
        if axis == self.position { Ok(taken) } else { taken.moveaxis(axis..axis + count, self.position..self.position + count) }
    }
}

/// Rows of an array, selected by one index array.
pub(super) struct SelectedRows {
    /// A view of the array with the indexed axis moved to the front.
    pub rows: Layout,
    /// The index of each selected row along the first axis of `rows`.
    pub indices: NdArray,
    /// The axis of the array that the indices address, for error messages.
    pub source_axis: usize,
    /// The axis of the result at which the axes of the index array `indices` begin.
    pub position: usize,
    /// Whether all `indices` are known to differ.
    pub is_distinct: bool,
}

/// Returns the greatest common divisor; that of 0 and `b` is `b`.
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Converts `array`, an index item that begins at `axis` of `a`, to index arrays for one axis each. An integer array gives one index array.
/// A mask gives one for each of its axes.
fn index_item_to_arrays(a: &NdArray, array: &NdArray, axis: usize) -> Result<SmallVec<[NdArray; 2]>> {
    if a.device() != array.device() {
        let message = format!("the array is on {}, an index array on {}; use to_device", a.device(), array.device());
        return Err(Error::Device { op: INDEX_FUNCTION_NAME, message });
    }
    if array.dtype().is_int() {
        return Ok(SmallVec::from_elem(array.clone(), 1));
    }
    if array.dtype() != DType::Bool {
        if array.size() == 0 {
            return Ok(SmallVec::from_elem(array.astype(DType::I64)?, 1)); // NumPy's empty list is float64, but a valid index
        }
        return Err(Error::dtype(INDEX_FUNCTION_NAME, "index arrays hold integers or bools; use astype", &[array.dtype()]));
    }
    for (n, (&of_mask, &of_array)) in array.shape().iter().zip(&a.shape()[axis..]).enumerate() {
        // As in NumPy, a mask axis of extent 0 fits an axis of any extent.
        if of_mask != of_array && of_mask > 0 {
            let message = format!("the extent of axis {} is {of_array}, but that of the mask is {of_mask}", axis + n);
            return Err(Error::shape(INDEX_FUNCTION_NAME, message, &[a.shape(), array.shape()]));
        }
    }
    Ok(array.nonzero()?.into())
}

impl NdArray {
    /// Returns the selected elements (`a[1:, ::2, None]`, `a[mask]`, `a[rows, columns]`). The macro [`s!`](crate::s) writes an index; one
    /// item is an index, too.
    ///
    /// Integers, ranges, [`NewAxis`](crate::NewAxis) and [`Ellipsis`](crate::Ellipsis) give a view. With an array of integers or a mask,
    /// the result is a copy by NumPy's rules for advanced indexing. Index arrays broadcast together, and their axes replace the indexed
    /// axes. If other items separate the arrays, their axes come first. With a mask or several index arrays, the call waits for the device.
    ///
    /// # Errors
    /// Indices out of bounds, too many indices, a step of 0, several ellipses, index arrays that do not broadcast or are on another device,
    /// or a mask whose extents differ from those of the axes that it indexes (an extent of 0 is accepted).
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
        index.with_index_items(|items| match as_basic_items(items) {
            Some(basic) => self.view_with_layout(|layout| layout.index(&basic)),
            None => self.select_by_index_arrays(items),
        })
    }

    fn select_by_index_arrays(&self, items: &[IndexItem]) -> Result<NdArray> {
        // A single mask over the first axes needs no index arrays, because [`NdArray::extract`] selects by the mask.
        if let [IndexItem::Array(mask)] = items
            && mask.dtype() == DType::Bool
            && mask.ndim() > 0
            && self.shape().starts_with(mask.shape())
        {
            return self.extract(mask);
        }
        AdvancedIndex::from_index_items(self, items)?.gather_selected_elements()
    }
}
