//! Conversion of an array of one element to a Rust number.

use super::expression_node::NdArray;
use crate::error::{Error, Result};
use crate::scalar_conversion::{FromScalar, for_each_number};

impl NdArray {
    /// Returns the only element of an array of size 1 as a number of type `T`. Waits for the device.
    ///
    /// A value converts to a type of the same or a higher kind, in the order bool, integers, floats, complex numbers. Floats are rounded to
    /// the nearest value of `T`. [`NdArray::item`] returns a [`Scalar`](crate::Scalar), which compares with every number type.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) for a value of a higher kind than `T`, such as a float for an integer type, or out of the
    /// range of `T`; the errors of [`NdArray::item`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.0, 2.0, 4.5])?;
    /// let total: f64 = a.sum(())?.item_as()?;
    /// let first = f32::try_from(a.index(cuprum::s![0])?)?;
    /// assert_eq!((total, first), (7.5, 1.0));
    /// assert!(a.max(())?.item()? < 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn item_as<T: FromScalar>(&self) -> Result<T> {
        T::from_scalar("item_as", self.item()?)
    }
}

macro_rules! try_from_array {
    ($($t:ty),*) => {$(
        impl TryFrom<&NdArray> for $t {
            type Error = Error;
            fn try_from(array: &NdArray) -> Result<$t> {
                array.item_as()
            }
        }
        impl TryFrom<NdArray> for $t {
            type Error = Error;
            fn try_from(array: NdArray) -> Result<$t> {
                array.item_as()
            }
        }
    )*};
}
for_each_number!(try_from_array);
