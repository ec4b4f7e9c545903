//! Operators on arrays, references and numbers: `+ - * / %`, `& | ^ << >>`, unary `-` and `!`, assignment forms, and `==`.
//!
//! The assignment forms keep the array's dtype and shape and write in place where they can ([`NdArray::update`]).
//!
//! # Panics
//! Operators except `==` panic with the error's message if shapes do not broadcast or an operation is not defined for a dtype. Each has a
//! fallible named form (`add(&a, &b)?`).

use std::ops;

use crate::array::NdArray;
use crate::error::Result;
use crate::expr::Operand;
use crate::ops::elementwise as e;
use crate::scalar::Scalar;
use crate::scalar_conversion::for_each_number;

/// Returns an operator's result, or panics with the error's message. Rust's operator traits cannot return an error.
#[track_caller]
fn unwrap_operator_result<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        #[allow(clippy::panic)]
        Err(err) => panic!("{err}"),
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident $Assign:ident $assign:ident $function:path;)*) => {$(
        impl<T: Into<Operand>> ops::$Trait<T> for &NdArray {
            type Output = NdArray;
            #[track_caller]
            fn $method(self, other: T) -> NdArray { unwrap_operator_result($function(self, other)) }
        }
        impl<T: Into<Operand>> ops::$Trait<T> for NdArray {
            type Output = NdArray;
            #[track_caller]
            fn $method(self, other: T) -> NdArray { unwrap_operator_result($function(self, other)) }
        }
        impl<T: Into<Operand>> ops::$Assign<T> for NdArray {
            #[track_caller]
            fn $assign(&mut self, other: T) { unwrap_operator_result(self.update(|a| $function(a, other))) }
        }
    )*};
}

/// Implements the operators with a number as the left operand.
macro_rules! left_operands {
    ($($t:ty),*) => {$(
        left_operators! { $t:
            Add add e::add; Sub sub e::subtract; Mul mul e::multiply; Div div e::divide; Rem rem e::remainder;
            BitAnd bitand e::bitwise_and; BitOr bitor e::bitwise_or; BitXor bitxor e::bitwise_xor; Shl shl e::left_shift; Shr shr e::right_shift;
        }
    )*};
}
macro_rules! left_operators {
    ($t:ty: $($Trait:ident $method:ident $function:path;)*) => {$(
        left_operators!(@impl $Trait $method $function, $t, NdArray);
        left_operators!(@impl $Trait $method $function, $t, &NdArray);
        left_operators!(@impl $Trait $method $function, &$t, NdArray);
        left_operators!(@impl $Trait $method $function, &$t, &NdArray);
    )*};
    // `#[inline]` leaves code generation to the crates that use an operator, so that this crate compiles fast despite the many combinations
    // of operand types.
    (@impl $Trait:ident $method:ident $function:path, $number:ty, $array:ty) => {
        impl ops::$Trait<$array> for $number {
            type Output = NdArray;
            #[inline]
            #[track_caller]
            fn $method(self, other: $array) -> NdArray { unwrap_operator_result($function(self, other)) }
        }
    };
}
for_each_number!(left_operands);
left_operands!(Scalar);

operators! {
    Add add AddAssign add_assign e::add;
    Sub sub SubAssign sub_assign e::subtract;
    Mul mul MulAssign mul_assign e::multiply;
    Div div DivAssign div_assign e::divide;
    Rem rem RemAssign rem_assign e::remainder;
    BitAnd bitand BitAndAssign bitand_assign e::bitwise_and;
    BitOr bitor BitOrAssign bitor_assign e::bitwise_or;
    BitXor bitxor BitXorAssign bitxor_assign e::bitwise_xor;
    Shl shl ShlAssign shl_assign e::left_shift;
    Shr shr ShrAssign shr_assign e::right_shift;
}

/// Compares shapes and elements, as `numpy.array_equal` does.
///
/// dtypes may differ: an int32 1 equals a float64 1.0, after promotion. NaN is not equal to any value, so an array with NaN is not
/// equal to itself. An array on another device is copied to the device of the left one. An array whose evaluation fails is not
/// equal to any array; [`equal`](crate::equal) returns the error. Equal numbers in different layouts are equal.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// assert_eq!(array![1, 2], array![1.0, 2.0]);
/// assert_ne!(array![1, 2], array![[1, 2]]);
/// assert_ne!(array![f64::NAN], array![f64::NAN]);
/// ```
impl PartialEq for NdArray {
    fn eq(&self, other: &NdArray) -> bool {
        let equal = || e::equal(self, other.to_device(self.device())?)?.all(())?.item();
        self.shape() == other.shape() && equal().is_ok_and(|equal| equal.as_bool())
    }
}

macro_rules! prefix {
    ($($Trait:ident $method:ident $function:path;)*) => {$(
        impl ops::$Trait for NdArray {
            type Output = NdArray;
            #[track_caller]
            fn $method(self) -> NdArray { unwrap_operator_result($function(self)) }
        }
        impl ops::$Trait for &NdArray {
            type Output = NdArray;
            #[track_caller]
            fn $method(self) -> NdArray { unwrap_operator_result($function(self)) }
        }
    )*};
}
prefix! {
    Neg neg e::negative;
    Not not e::bitwise_invert;
}
