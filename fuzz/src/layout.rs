//! The fuzz target of views and of the arithmetic of `s![]`, with positions of elements as a reference.

use cuprum::core::Layout;
use cuprum::core::layout::MAX_NDIM;
use cuprum::{Ellipsis, IndexItem, Item, NdArray, NewAxis, s};

use super::bytes::Bytes;

/// Maximum number of elements of a view that is compared with the reference.
const COMPARED: usize = 1 << 10;

/// The reference of a view: its shape, and the position of each element in the buffer, in C order.
#[derive(Clone, Debug)]
struct View {
    shape: Vec<usize>,
    positions: Vec<usize>,
}

impl View {
    fn contiguous(shape: &[usize]) -> View {
        View { shape: shape.to_vec(), positions: (0..shape.iter().product()).collect() }
    }

    /// Returns the view of `shape` whose element at an index is the element of this view at `source` of the index.
    fn map(&self, shape: Vec<usize>, source: impl Fn(&[usize]) -> Vec<usize>) -> View {
        let size = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut positions = Vec::with_capacity(size);
        for _ in 0..size {
            let at = source(&index).iter().zip(&self.shape).fold(0, |at, (&i, &n)| at * n + i);
            positions.push(self.positions[at]);
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        View { shape, positions }
    }

    fn permute(&self, order: &[usize]) -> View {
        let shape = order.iter().map(|&axis| self.shape[axis]).collect();
        self.map(shape, |index| (0..order.len()).map(|axis| index[order.iter().position(|&from| from == axis).unwrap()]).collect())
    }

    fn broadcast_to(&self, shape: &[usize]) -> Option<View> {
        let lead = shape.len().checked_sub(self.shape.len())?;
        let fits = |(&n, &wanted)| n == wanted || n == 1;
        if !self.shape.iter().zip(&shape[lead..]).all(fits) {
            return None;
        }
        let at = |axis: usize, i: usize| if self.shape[axis] == 1 { 0 } else { i };
        Some(self.map(shape.to_vec(), |index| index[lead..].iter().enumerate().map(|(axis, &i)| at(axis, i)).collect()))
    }

    /// Returns the same elements with another shape of this size.
    fn reshape(&self, shape: Vec<usize>) -> View {
        View { shape, positions: self.positions.clone() }
    }

    fn diagonal(&self, offset: isize, axis1: usize, axis2: usize) -> View {
        let (rows, columns) = (self.shape[axis1] as i128, self.shape[axis2] as i128);
        let (row, column) = ((-(offset as i128)).max(0), (offset as i128).max(0));
        let len = (rows - row).min(columns - column).max(0) as usize;
        let rest: Vec<usize> = (0..self.shape.len()).filter(|&axis| axis != axis1 && axis != axis2).collect();
        let shape = rest.iter().map(|&axis| self.shape[axis]).chain([len]).collect();
        self.map(shape, |index| {
            let (&last, others) = index.split_last().unwrap();
            let mut from = vec![0; self.shape.len()];
            rest.iter().zip(others).for_each(|(&axis, &i)| from[axis] = i);
            from[axis1] = last + row as usize;
            from[axis2] = last + column as usize;
            from
        })
    }

    /// Returns the view that basic items select, by Python's definition of slices. `None` is an error.
    fn index(&self, items: &[Wanted]) -> Option<View> {
        let used = items.iter().filter(|item| matches!(item, Wanted::Indices(..) | Wanted::At(_))).count();
        let skipped = self.shape.len().checked_sub(used)?;
        if items.iter().filter(|item| matches!(item, Wanted::Ellipsis)).count() > 1 {
            return None;
        }
        let mut shape = Vec::new();
        // For each axis of this view, the indices that remain, and whether the result has the axis.
        let mut axes: Vec<(Vec<usize>, Option<usize>)> = Vec::new();
        let all = |axis: usize| (0..self.shape[axis]).collect::<Vec<_>>();
        for item in items.iter().chain(if items.contains(&Wanted::Ellipsis) { None } else { Some(&Wanted::Ellipsis) }) {
            match item {
                Wanted::NewAxis => shape.push(1),
                Wanted::Ellipsis => {
                    for _ in 0..skipped {
                        axes.push((all(axes.len()), Some(shape.len())));
                        shape.push(self.shape[axes.len() - 1]);
                    }
                }
                Wanted::At(at) => {
                    let n = self.shape[axes.len()] as i128;
                    let at = if *at < 0 { at + n } else { *at };
                    axes.push((vec![(0..n).contains(&at).then_some(at as usize)?], None));
                }
                Wanted::Indices(slice) => {
                    let indices = slice.indices(self.shape[axes.len()])?;
                    axes.push((indices, Some(shape.len())));
                    shape.push(axes.last()?.0.len());
                }
            }
        }
        Some(self.map(shape, |index| axes.iter().map(|(indices, axis)| indices[axis.map_or(0, |axis| index[axis])]).collect()))
    }
}

/// An item of an index, as the reference sees it.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    At(i128),
    Indices(Slice),
    NewAxis,
    Ellipsis,
}

/// The indices `start, start + step, ...` before `stop`, or up to `stop` if it is inclusive.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    start: Option<i128>,
    stop: Option<i128>,
    is_inclusive: bool,
    step: i128,
}

impl Slice {
    /// Returns the selected indices of an axis of extent `n`, or `None` for a step of zero.
    fn indices(&self, n: usize) -> Option<Vec<usize>> {
        let n = n as i128;
        let normal = |v: i128| if v < 0 { v + n } else { v };
        let is_before = |i: i128| match self.stop.map(normal) {
            None => true,
            Some(stop) if self.is_inclusive && i == stop => true,
            Some(stop) if self.step > 0 => i < stop,
            Some(stop) => i > stop,
        };
        let start = match (self.start.map(normal), self.step) {
            (_, 0) => return None,
            (start, 1..) => start.unwrap_or(0).max(0),
            (start, _) => start.unwrap_or(n - 1).min(n - 1),
        };
        let indices = std::iter::successors(Some(start), |i| Some(i + self.step));
        Some(indices.take_while(|&i| (0..n).contains(&i) && is_before(i)).map(|i| i as usize).collect())
    }
}

/// Returns whether a shape has few elements, zero extents left out.
fn is_small(shape: &[usize]) -> bool {
    shape.iter().filter(|&&n| n > 0).try_fold(1usize, |size, &n| size.checked_mul(n)).is_some_and(|size| size <= COMPARED)
}

/// Applies a chain of views to a layout, and an index to an array of the last view. Every view has the elements that its definition names.
pub fn layout(data: &[u8]) {
    let bytes = &mut Bytes::new(data);
    let shape = bytes.shape();
    let mut layout = Layout::contiguous(&shape).unwrap();
    let mut view = View::contiguous(&shape);
    let size = layout.size();
    while !bytes.is_empty() {
        let Some((next, wanted)) = step(bytes, &layout, &view) else { continue };
        check(&next, &wanted, size);
        (layout, view) = (next, wanted);
    }
    if shape.iter().all(|&n| n > 0) {
        index_array(data, &shape);
    }
}

/// Returns the next view and its reference. Returns `None` if the operation is an error, or has too many elements to compare.
fn step(bytes: &mut Bytes, layout: &Layout, view: &View) -> Option<(Layout, View)> {
    let ndim = layout.ndim();
    let axis = |number: isize| {
        let at = if number < 0 { number as i128 + ndim as i128 } else { number as i128 };
        (0..ndim as i128).contains(&at).then_some(at as usize)
    };
    let (result, wanted) = match bytes.below(9) {
        0 => (Ok(layout.transpose()), Some(view.permute(&(0..ndim).rev().collect::<Vec<_>>()))),
        1 => {
            let (items, wanted): (Vec<Item>, Vec<Wanted>) = (0..bytes.below(5)).map(|_| index_item(bytes)).unzip();
            (layout.index(&items), view.index(&wanted))
        }
        2 => {
            let axes: Vec<isize> = (0..bytes.below(5)).map(|_| bytes.number()).collect();
            let order: Option<Vec<usize>> = axes.iter().map(|&number| axis(number)).collect();
            let order = order.filter(|order| order.len() == ndim && (0..ndim).all(|axis| order.contains(&axis)));
            (layout.permute(&axes), order.map(|order| view.permute(&order)))
        }
        3 => {
            let mut shape: Vec<usize> = view.shape.iter().map(|&n| if n == 1 { bytes.below(4) } else { n }).collect();
            for _ in 0..bytes.below(3) {
                shape.insert(0, bytes.number().unsigned_abs());
            }
            if !is_small(&shape) {
                let _ = layout.broadcast_to(&shape);
                return None;
            }
            (layout.broadcast_to(&shape), view.broadcast_to(&shape))
        }
        4 => {
            let number = bytes.number();
            let at = if number < 0 { number as i128 + ndim as i128 + 1 } else { number as i128 };
            let wanted = (0..=ndim as i128).contains(&at).then(|| {
                let mut shape = view.shape.clone();
                shape.insert(at as usize, 1);
                view.reshape(shape)
            });
            (layout.expand_dims(&[number]), wanted)
        }
        5 => {
            let numbers: Vec<isize> = (0..bytes.below(3)).map(|_| bytes.number()).collect();
            let axes: Option<Vec<usize>> = numbers.iter().map(|&number| axis(number)).collect();
            let is_unique = |axes: &Vec<usize>| axes.iter().enumerate().all(|(i, axis)| !axes[..i].contains(axis));
            let axes = axes.filter(is_unique).filter(|axes| axes.iter().all(|&axis| view.shape[axis] == 1));
            let keep = |axes: Vec<usize>| (0..ndim).filter(|axis| !axes.contains(axis)).map(|axis| view.shape[axis]).collect();
            (layout.squeeze(Some(&numbers)), axes.map(|axes| view.reshape(keep(axes))))
        }
        6 => {
            let (offset, first, second) = (bytes.number(), bytes.number(), bytes.number());
            let axes = axis(first).zip(axis(second)).filter(|(first, second)| first != second);
            (layout.diagonal(offset, first, second), axes.map(|(first, second)| view.diagonal(offset, first, second)))
        }
        7 => {
            let axes: Vec<usize> = (0..ndim).filter(|_| bytes.below(2) == 1).collect();
            let flipped = |index: &[usize]| -> Vec<usize> {
                index.iter().enumerate().map(|(axis, &i)| if axes.contains(&axis) { view.shape[axis] - 1 - i } else { i }).collect()
            };
            (Ok(layout.flip(&axes)), Some(view.map(view.shape.clone(), flipped)))
        }
        _ => {
            let shape = reshaped(bytes, view.positions.len());
            let fits = is_small(&shape) && shape.iter().product::<usize>() == view.positions.len();
            let Some(next) = layout.reshape(&shape) else {
                assert!(!fits || !is_strided(&shape, &view.positions), "{layout:?} to {shape:?} needs no copy");
                return None;
            };
            if !is_small(&shape) {
                return None;
            }
            (Ok(next), fits.then(|| view.reshape(shape)))
        }
    };
    match (result, wanted.filter(|view| view.shape.len() <= MAX_NDIM)) {
        (Ok(next), Some(wanted)) => Some((next, wanted)),
        (Err(_), None) => None,
        (Ok(next), None) => panic!("{next:?} from {layout:?} where an error is due"),
        (Err(error), Some(wanted)) => panic!("{error} from {layout:?}, expected {wanted:?}"),
    }
}

/// Returns a shape that most often has `size` elements.
fn reshaped(bytes: &mut Bytes, mut size: usize) -> Vec<usize> {
    let mut shape = Vec::new();
    for _ in 0..bytes.below(4) {
        let n = match bytes.below(8) {
            0 => bytes.number().unsigned_abs(),
            n if size > 0 && size.is_multiple_of(n) => n,
            _ => 1,
        };
        size = size.checked_div(n).unwrap_or(0);
        shape.push(n);
    }
    shape.insert(bytes.below(shape.len() + 1), size);
    shape
}

/// Returns whether strides exist with which an array of `shape` has its elements at `positions`.
fn is_strided(shape: &[usize], positions: &[usize]) -> bool {
    let mut inner = positions.len();
    let strides: Vec<(usize, isize)> = shape
        .iter()
        .map(|&n| {
            inner /= n.max(1);
            (n, if n > 1 && !positions.is_empty() { positions[inner] as isize - positions[0] as isize } else { 0 })
        })
        .collect();
    positions.iter().enumerate().all(|(mut at, &position)| {
        let mut found = positions[0] as isize;
        for &(n, stride) in strides.iter().rev() {
            found += (at % n) as isize * stride;
            at /= n;
        }
        found == position as isize
    })
}

/// Panics unless `layout` has the elements of `view`, inside a buffer of `size` elements.
fn check(layout: &Layout, view: &View, size: usize) {
    assert_eq!(layout.shape(), view.shape, "{layout:?}");
    let (lo, hi) = layout.buffer_range();
    let Some(&first) = view.positions.first() else {
        assert_eq!((layout.size(), lo, hi), (0, 0, 0), "{layout:?}");
        return;
    };
    let (low, high) = (view.positions.iter().min().unwrap(), view.positions.iter().max().unwrap());
    assert_eq!((lo, hi), (*low as isize, *high as isize + 1), "{layout:?}");
    assert!(hi as usize <= size, "{layout:?} leaves a buffer of {size}");
    let strides = layout.strides();
    View::contiguous(&view.shape).positions.iter().zip(&view.positions).for_each(|(&at, &position)| {
        let (mut at, mut found) = (at, layout.offset() as i128);
        for (&n, &stride) in view.shape.iter().zip(strides).rev() {
            found += (at % n) as i128 * stride as i128;
            at /= n;
        }
        assert_eq!(found, position as i128, "{layout:?}");
    });
    let in_order = |positions: &[usize]| positions.iter().enumerate().all(|(i, &position)| position == first + i);
    assert_eq!(layout.is_c_contiguous(), in_order(&view.positions), "{layout:?}");
    let reversed = view.permute(&(0..view.shape.len()).rev().collect::<Vec<_>>());
    assert_eq!(layout.is_f_contiguous(), in_order(&reversed.positions), "{layout:?}");
    if !layout.may_overlap() {
        let mut sorted = view.positions.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), view.positions.len(), "{layout:?} overlaps");
    }
}

/// Returns an item of `s![]` from Rust integers and ranges of several types, with its reference.
fn index_item(bytes: &mut Bytes) -> (Item, Wanted) {
    let form = bytes.next();
    let (start, stop, step) = (bytes.number(), bytes.number(), bytes.rarely(1, &[2, -1, -2, 0, isize::MIN, isize::MAX, -3, 3]));
    let slice =
        |start: Option<i128>, stop: Option<i128>, is_inclusive| Wanted::Indices(Slice { start, stop, is_inclusive, step: step as i128 });
    /// Returns the basic item of an index of one item.
    fn single(items: &[IndexItem]) -> Item {
        match items {
            [IndexItem::Basic(item)] => *item,
            _ => unreachable!("one basic item"),
        }
    }
    macro_rules! of_type {
        ($t:ty) => {{
            // Saturating conversions choose limits of the type.
            let convert = |v: isize| <$t>::try_from(v).unwrap_or(if v < 0 { <$t>::MIN } else { <$t>::MAX });
            let (a, b) = (convert(start), convert(stop));
            let (wide_a, wide_b) = (Some(a as i128), Some(b as i128));
            match form % 8 {
                0 => (single(s![a]), Wanted::At(a as i128)),
                1 => (single(s![a..b; step]), slice(wide_a, wide_b, false)),
                2 => (single(s![a..; step]), slice(wide_a, None, false)),
                3 => (single(s![..b; step]), slice(None, wide_b, false)),
                4 => (single(s![a..=b; step]), slice(wide_a, wide_b, true)),
                5 => (single(s![..=b; step]), slice(None, wide_b, true)),
                6 => (single(s![..; step]), slice(None, None, false)),
                _ => match form / 8 % 2 {
                    0 => (single(s![NewAxis]), Wanted::NewAxis),
                    _ => (single(s![Ellipsis]), Wanted::Ellipsis),
                },
            }
        }};
    }
    match form / 16 % 5 {
        0 => of_type!(isize),
        1 => of_type!(i8),
        2 => of_type!(u64),
        3 => of_type!(i64),
        _ => of_type!(u16),
    }
}

/// Indexes an array by `s![]` items and one index array, and compares the elements.
fn index_array(data: &[u8], shape: &[usize]) {
    let bytes = &mut Bytes::new(data.get(1 + shape.len()..).unwrap_or_default());
    let Some((&rows, rest)) = shape.split_first() else { return };
    let view = View::contiguous(shape);
    let array = NdArray::from_vec(view.positions.iter().map(|&at| at as i64).collect::<Vec<_>>(), shape).unwrap();
    let (item, wanted) = index_item(bytes);
    let found = array.index(s![item]);
    match (found, view.index(&[wanted])) {
        (Ok(found), Some(wanted)) => check_elements(&found, &wanted.shape, &wanted.positions),
        (Err(_), None) => {}
        (found, wanted) => panic!("{:?} instead of {wanted:?}", found.map(|found| found.shape().to_vec())),
    }
    let indices: Vec<i64> = (0..bytes.below(5)).map(|_| bytes.number() as i64).collect();
    let row = |&i: &i64| {
        let at = if i < 0 { i128::from(i) + rows as i128 } else { i128::from(i) };
        (0..rows as i128).contains(&at).then_some(at as usize)
    };
    let wanted: Option<Vec<usize>> = indices.iter().map(row).collect();
    match (array.index(s![&indices]), wanted) {
        (Ok(found), Some(wanted)) => {
            let width: usize = rest.iter().product();
            let positions: Vec<usize> = wanted.iter().flat_map(|row| row * width..(row + 1) * width).collect();
            let shape: Vec<usize> = [&[wanted.len()], rest].concat();
            check_elements(&found, &shape, &positions);
        }
        (Err(_), None) => {}
        (found, wanted) => panic!("{:?} instead of {wanted:?}", found.map(|found| found.shape().to_vec())),
    }
}

fn check_elements(array: &NdArray, shape: &[usize], positions: &[usize]) {
    assert_eq!(array.shape(), shape);
    let elements: Vec<i64> = array.to_vec().unwrap();
    assert!(
        elements.iter().zip(positions).all(|(&element, &position)| element == position as i64),
        "{elements:?} instead of {positions:?}"
    );
}
