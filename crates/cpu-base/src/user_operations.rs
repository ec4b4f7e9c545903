//! Types of the native (CPU) code that `cuprum::kernel!` generates for user-defined operations.

use cuprum_core::{DType, Element};

use crate::typed_views::{Elements, ElementsMut};

/// A function that returns the native loop of a user-defined elementwise operation. Its argument is the dtype that replaces the operation's
/// generic type parameter. It returns `None` if the operation does not take that dtype.
pub struct NativeLoopSelector(pub fn(DType) -> Option<Loop>);

/// A native loop that computes the output elements of one tile, a short range of consecutive elements. Its parameters are the arguments of
/// the operation, in the order of the user's source, and then the output. Elementwise arguments are slices of the tile. Whole-array
/// arguments start at the first element of the array.
pub type Loop = fn(&[Elements], ElementsMut);

/// A user-defined reduction by an associative and commutative function.
pub trait UserReduction: 'static {
    /// Type of the elements, the partial results and the result.
    type Value: Element;
    /// Combines two partial results.
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;
}
