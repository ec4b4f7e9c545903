//! Types of the native (CPU) code that `cuprum::kernel!` generates for user-defined operations.

use cuprum_core::{DType, Element};

use crate::views::{Elements, ElementsMut};

/// A function that returns the native loop of a user-defined elementwise operation for the dtype of its generic type parameter. It returns
/// `None` if the operation does not take the dtype.
pub struct NativeLoops(pub fn(DType) -> Option<Loop>);

/// A native loop that computes the output elements of one tile. Its parameters are the arguments of the operation, in the order of the
/// user's source, and the output. Elementwise arguments are slices of the tile; whole-array arguments start at the first element of the
/// array.
pub type Loop = fn(&[Elements], ElementsMut);

/// A user-defined reduction by an associative and commutative function.
pub trait Combine: 'static {
    /// Type of the elements, the partial results and the result.
    type Value: Element;
    /// Combines two partial results.
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;
}
