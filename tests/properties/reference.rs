//! Arrays over a `Vec` in C order. Every function visits all indices and computes each position from its index.

/// An array in C order, the model that results are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference<T = i64> {
    pub shape: Vec<usize>,
    pub data: Vec<T>,
}

/// Returns all indices of `shape` in C order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &extent in shape {
        all = all.into_iter().flat_map(|index| (0..extent).map(move |n| [&index[..], &[n]].concat())).collect();
    }
    all
}

/// Returns the position of `index` in the C order of `shape`.
pub fn position(shape: &[usize], index: &[usize]) -> usize {
    assert_eq!(shape.len(), index.len());
    index.iter().zip(shape).fold(0, |position, (&n, &extent)| {
        assert!(n < extent, "index {index:?} is outside {shape:?}");
        position * extent + n
    })
}

/// Returns the axis counted from the front.
pub fn from_front(axis: isize, ndim: usize) -> usize {
    if axis < 0 { (axis + ndim as isize) as usize } else { axis as usize }
}

/// Returns the common shape of arrays that broadcast.
pub fn broadcast_shape(shapes: &[&[usize]]) -> Vec<usize> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let extent = |axis: usize| {
        let along = shapes.iter().filter(|shape| shape.len() + axis >= ndim).map(|shape| shape[axis + shape.len() - ndim]);
        along.reduce(|a, b| if a == 1 { b } else { a }).unwrap_or(1)
    };
    (0..ndim).map(extent).collect()
}

impl<T: Copy> Reference<T> {
    pub fn from_fn(shape: &[usize], mut element: impl FnMut(&[usize]) -> T) -> Reference<T> {
        Reference { shape: shape.to_vec(), data: indices(shape).iter().map(|index| element(index)).collect() }
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    pub fn at(&self, index: &[usize]) -> T {
        self.data[position(&self.shape, index)]
    }

    pub fn set(&mut self, index: &[usize], value: T) {
        self.data[position(&self.shape, index)] = value;
    }

    pub fn flat(&self) -> Reference<T> {
        Reference { shape: vec![self.data.len()], data: self.data.clone() }
    }

    pub fn map<U: Copy>(&self, f: impl Fn(T) -> U) -> Reference<U> {
        Reference { shape: self.shape.clone(), data: self.data.iter().map(|&value| f(value)).collect() }
    }

    /// Returns the element at an index of an array that this one is broadcast to.
    pub fn at_broadcast(&self, index: &[usize]) -> T {
        let own = &index[index.len() - self.ndim()..];
        self.at(&own.iter().zip(&self.shape).map(|(&n, &extent)| if extent == 1 { 0 } else { n }).collect::<Vec<_>>())
    }

    pub fn broadcast_to(&self, shape: &[usize]) -> Reference<T> {
        Reference::from_fn(shape, |index| self.at_broadcast(index))
    }

    pub fn transpose(&self, axes: &[usize]) -> Reference<T> {
        let shape: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        Reference::from_fn(&shape, |index| {
            let mut source = vec![0; index.len()];
            axes.iter().zip(index).for_each(|(&axis, &n)| source[axis] = n);
            self.at(&source)
        })
    }

    /// Returns the array with another extent along `axis`. Element `n` along it comes from `source(n)`.
    pub fn select_along(&self, axis: usize, extent: usize, source: impl Fn(usize) -> usize) -> Reference<T> {
        let mut shape = self.shape.clone();
        shape[axis] = extent;
        Reference::from_fn(&shape, |index| {
            let mut from = index.to_vec();
            from[axis] = source(index[axis]);
            self.at(&from)
        })
    }

    /// Reduces each row along `axes` by `f`. A row has its elements in C order.
    pub fn reduce<U: Copy>(&self, axes: &[usize], keepdims: bool, f: impl Fn(&[T]) -> U) -> Reference<U> {
        let extents = |reduced: bool| -> Vec<usize> {
            self.shape.iter().enumerate().map(|(axis, &n)| if axes.contains(&axis) == reduced { n } else { 1 }).collect()
        };
        let (kept, inner) = (extents(false), indices(&extents(true)));
        let result = Reference::from_fn(&kept, |outer| {
            let at = |index: &Vec<usize>| self.at(&outer.iter().zip(index).map(|(a, b)| a + b).collect::<Vec<_>>());
            f(&inner.iter().map(at).collect::<Vec<T>>())
        });
        let dropped = (0..self.ndim()).filter(|axis| keepdims || !axes.contains(axis)).map(|axis| kept[axis]).collect();
        Reference { shape: dropped, data: result.data }
    }

    /// Replaces each row along `axis` by `f` of it, which has the same length.
    pub fn map_rows<U: Copy>(&self, axis: usize, f: impl Fn(&[T]) -> Vec<U>) -> Reference<U> {
        Reference::from_fn(&self.shape, |index| {
            let along = |n: usize| {
                let mut other = index.to_vec();
                other[axis] = n;
                self.at(&other)
            };
            f(&(0..self.shape[axis]).map(along).collect::<Vec<T>>())[index[axis]]
        })
    }
}
