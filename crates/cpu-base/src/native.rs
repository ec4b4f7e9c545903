//! Types of the native (CPU) code that `cuprum::kernel!` generates for user-defined operations.

use cuprum_core::{DType, Element};

use crate::views::{Elements, ElementsMut};

/// Selects the native loop of a user-defined elementwise operation by the dtype of its generic type. `None` if the
/// operation does not take the dtype.
pub struct NativeLoops(pub fn(DType) -> Option<Loop>);

/// A native loop that computes the output elements of one tile. Arguments are in the order of the body's source; whole-array arguments
/// start with their first element.
pub type Loop = fn(&[Elements], ElementsMut);

/// A user-defined reduction by an associative and commutative function.
pub trait Combine: 'static {
    /// The one type of elements, partial results and result.
    type Value: Element;
    /// Combines two partial results.
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;
}
