//! Arrays that files of the targets contain, and their comparison with what a reader returns.

use cuprum::{DType, NdArray};

use super::bytes::Bytes;

/// A dtype, a shape, and the elements in C order and little-endian byte order.
pub struct Tensor {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub elements: Vec<u8>,
}

impl Tensor {
    /// Returns an array of one of `dtypes`, with arbitrary bytes as elements.
    pub fn described(bytes: &mut Bytes, dtypes: &[DType]) -> Tensor {
        let (dtype, shape) = (bytes.choose(dtypes), bytes.shape());
        let (first, step) = (bytes.next(), bytes.next() | 1);
        let nbytes = shape.iter().product::<usize>() * dtype.itemsize();
        let elements = (0..nbytes).map(|i| first.wrapping_add(step.wrapping_mul(i as u8))).collect();
        Tensor { dtype, shape, elements }
    }

    /// Returns the elements in a file's order: big-endian if `big_endian`, in Fortran order if `fortran`.
    pub fn encoded(&self, big_endian: bool, fortran: bool) -> Vec<u8> {
        let item = self.dtype.itemsize();
        let size = self.elements.len() / item;
        let position = |at: usize| if fortran { fortran_position(&self.shape, at) } else { at };
        let mut out = vec![0; self.elements.len()];
        for at in 0..size {
            let element = &mut out[position(at) * item..][..item];
            element.copy_from_slice(&self.elements[at * item..][..item]);
            if big_endian {
                element.chunks_exact_mut(self.dtype.real().itemsize()).for_each(<[u8]>::reverse);
            }
        }
        out
    }

    /// Panics unless `array` has this dtype, shape and elements.
    pub fn check(&self, array: &NdArray) {
        assert_eq!((array.dtype(), array.shape()), (self.dtype, &self.shape[..]));
        let bools = |&byte: &u8| u8::from(byte != 0);
        let wanted = if self.dtype == DType::Bool { self.elements.iter().map(bools).collect() } else { self.elements.clone() };
        assert_eq!(array.to_bytes().unwrap(), wanted, "elements of {} {:?}", self.dtype, self.shape);
    }
}

/// Returns the position in Fortran order of the element at position `at` in C order.
fn fortran_position(shape: &[usize], mut at: usize) -> usize {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = at % shape[axis];
        at /= shape[axis];
    }
    shape.iter().zip(index).rev().fold(0, |position, (&n, i)| position * n + i)
}

/// Panics unless both arrays have the same dtype, shape and bytes.
pub fn check_same(left: &NdArray, right: &NdArray) {
    assert_eq!((left.dtype(), left.shape()), (right.dtype(), right.shape()));
    assert_eq!(left.to_bytes().unwrap(), right.to_bytes().unwrap());
}
