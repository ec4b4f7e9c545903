//! Sorting, searching and counting.

use cuprum_core::layout::normalize_axis;
use cuprum_core::{DType, Error, NdArray, Result, numpy, take_along_axis};

use crate::operand_and_slice_helpers::new_filled_array;

/// Returns the int64 indices that sort by several keys along an axis (`numpy.lexsort`). The last key is the primary one.
///
/// Passes over memory: a stable sort and two gathers for each key.
///
/// # Errors
/// No keys, keys of different shapes, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (first, last) = (NdArray::from_slice(&[2, 1, 3])?, NdArray::from_slice(&[1, 0, 0])?);
/// assert_eq!(cuprum::lexsort(&[first, last], -1)?.to_vec::<i64>()?, [1, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[numpy("lexsort(keys, axis=-1)")]
pub fn lexsort(keys: impl IntoIterator<Item: AsRef<NdArray>>, axis: isize) -> Result<NdArray> {
    let name = "lexsort";
    let keys: Vec<NdArray> = keys.into_iter().map(|key| key.as_ref().clone()).collect();
    let Some((first, rest)) = keys.split_first() else {
        return Err(Error::value(name, "need sequence of keys with len > 0 in lexsort"));
    };
    if let Some(other) = rest.iter().find(|key| key.shape() != first.shape()) {
        return Err(Error::shape(name, "all keys need to be the same shape", &[first.shape(), other.shape()]));
    }
    if first.ndim() == 0 {
        normalize_axis(name, axis, 1)?;
        return new_filled_array(first, &[], 0, DType::I64);
    }
    let axis = normalize_axis(name, axis, first.ndim())? as isize;
    let mut order = first.argsort(axis)?;
    for key in rest {
        let next = take_along_axis(key, &order, axis)?.argsort(axis)?;
        order = take_along_axis(&order, &next, axis)?;
    }
    Ok(order)
}

/// Returns the array sorted along the last axis, as complex numbers (`numpy.sort_complex`).
///
/// Integers of at most 16 bits give complex64, other real dtypes complex128.
///
/// Passes over memory: a sort, and one that converts the dtype.
///
/// # Errors
/// A 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Complex, array, sort_complex};
/// # fn main() -> cuprum::Result<()> {
/// let sorted = sort_complex(&array![2.0, 1.0])?;
/// assert_eq!(sorted, array![Complex::new(1.0, 0.0), Complex::new(2.0, 0.0)]);
/// # Ok(())
/// # }
/// ```
#[numpy("sort_complex(a)")]
pub fn sort_complex(a: &NdArray) -> Result<NdArray> {
    let sorted = a.sort(-1)?;
    match a.dtype() {
        DType::C64 | DType::C128 => Ok(sorted),
        DType::I8 | DType::I16 | DType::U8 | DType::U16 => sorted.astype(DType::C64),
        _ => sorted.astype(DType::C128),
    }
}
