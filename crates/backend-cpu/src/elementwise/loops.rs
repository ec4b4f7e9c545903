//! The loops behind every row of the table: one function per arity, compiled for each row, dtype and SIMD level.

use cuprum_core::{DType, Element};

use crate::raw::{Elements, ElementsMut};
use crate::simd::{Loop, dispatch};

/// Applies an operation to as many elements of its arguments as the output holds. Arguments beyond the arity are ignored.
pub(crate) type Kernel = fn(&[Elements; 3], ElementsMut);

/// A kernel for certain dtypes, and the dtype it makes.
#[derive(Clone, Copy)]
pub(crate) struct Selected {
    /// The loop.
    pub kernel: Kernel,
    /// Argument dtypes; only those of the arity count.
    pub args: [DType; 3],
    /// dtype of the result.
    pub result: DType,
}

/// A scalar function of one argument.
pub(crate) trait Unary {
    type In: Element;
    type Out: Element;
    fn call(a: Self::In) -> Self::Out;
}

/// A scalar function of two arguments of one type.
pub(crate) trait Binary {
    type In: Element;
    type Out: Element;
    fn call(a: Self::In, b: Self::In) -> Self::Out;
}

struct UnaryLoop<'a, F: Unary>(&'a [F::In], &'a mut [F::Out]);

impl<F: Unary> Loop for UnaryLoop<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (out, &a) in self.1.iter_mut().zip(self.0) {
            *out = F::call(a);
        }
    }
}

struct BinaryLoop<'a, F: Binary>(&'a [F::In], &'a [F::In], &'a mut [F::Out]);

impl<F: Binary> Loop for BinaryLoop<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.2.iter_mut().zip(self.0).zip(self.1) {
            *out = F::call(a, b);
        }
    }
}

struct SelectLoop<'a, T>(&'a [bool], &'a [T], &'a [T], &'a mut [T]);

impl<T: Element> Loop for SelectLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (((out, &condition), &a), &b) in self.3.iter_mut().zip(self.0).zip(self.1).zip(self.2) {
            *out = if condition { a } else { b };
        }
    }
}

/// The loop of a function of one argument.
pub(crate) fn unary<F: Unary>() -> Selected {
    fn kernel<F: Unary>(args: &[Elements; 3], out: ElementsMut) {
        dispatch(UnaryLoop::<F>(args[0].typed(), out.typed()));
    }
    Selected { kernel: kernel::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE }
}

/// The loop of a function of two arguments.
pub(crate) fn binary<F: Binary>() -> Selected {
    fn kernel<F: Binary>(args: &[Elements; 3], out: ElementsMut) {
        dispatch(BinaryLoop::<F>(args[0].typed(), args[1].typed(), out.typed()));
    }
    Selected { kernel: kernel::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE }
}

/// `where`: the second argument where the first is true, else the third.
pub(crate) fn select<T: Element>() -> Selected {
    fn kernel<T: Element>(args: &[Elements; 3], out: ElementsMut) {
        dispatch(SelectLoop::<T>(args[0].typed(), args[1].typed(), args[2].typed(), out.typed()));
    }
    Selected { kernel: kernel::<T>, args: [DType::Bool, T::DTYPE, T::DTYPE], result: T::DTYPE }
}
