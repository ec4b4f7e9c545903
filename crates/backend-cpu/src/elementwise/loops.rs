//! The loops behind every row of the table: one function per arity, compiled for each row, dtype and SIMD level.

use cuprum_core::{DType, Element, Scalar, with_dtype};

use crate::raw::{Elements, ElementsMut, element};
use crate::simd::{Base, Fill, Isa, fill};

/// Applies an operation to as many elements of its arguments as the output holds.
pub(crate) type Kernel = fn(&[Elements], ElementsMut);

/// A kernel for certain dtypes, and the dtype it makes.
#[derive(Clone, Copy)]
pub(crate) struct Selected {
    /// The loop.
    pub kernel: Kernel,
    /// Argument dtypes; only those of the arity count.
    pub args: [DType; 3],
    /// dtype of the result.
    pub result: DType,
    /// Whether an argument may be shorter than the result: it is then taken again from its beginning, as often as needed. Arguments that
    /// are shorter are of one length.
    pub in_turns: bool,
}

/// A scalar function of one argument.
pub(crate) trait Unary {
    type In: Element;
    type Out: Element;
    /// The function as straight-line code.
    fn call<I: Isa>(a: Self::In) -> Self::Out;
    /// Whether there are arguments that `call` leaves to `rare`.
    const RARE: bool = false;
    /// Whether this is one.
    #[inline(always)]
    fn is_rare(_: Self::In) -> bool {
        false
    }
    /// The function where that is so.
    fn rare(a: Self::In) -> Self::Out {
        Self::call::<Base>(a)
    }
}

/// A scalar function of two arguments of one type.
pub(crate) trait Binary {
    type In: Element;
    type Out: Element;
    fn call<I: Isa>(a: Self::In, b: Self::In) -> Self::Out;
}

struct UnaryLoop<'a, F: Unary>(&'a [F::In]);

impl<F: Unary> Fill for UnaryLoop<'_, F> {
    type Item = F::Out;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [F::Out]) {
        for (out, &a) in out.iter_mut().zip(self.0) {
            *out = F::call::<I>(a);
        }
        if F::RARE {
            let mut any = false;
            for &a in self.0 {
                any |= F::is_rare(a);
            }
            if any {
                fill_rare::<F>(self.0, out);
            }
        }
    }
}

/// A scalar pass over the elements that the loop before left out.
#[cold]
#[inline(never)]
fn fill_rare<F: Unary>(values: &[F::In], out: &mut [F::Out]) {
    for (out, &a) in out.iter_mut().zip(values) {
        if F::is_rare(a) {
            *out = F::rare(a);
        }
    }
}

/// Elements computed in one go: all, or as many as the shorter arguments have.
#[inline(always)]
fn turn<const N: usize>(all: usize, args: [usize; N]) -> usize {
    args.into_iter().fold(all, usize::min).max(1)
}

/// An argument from a place on; from its beginning if it ends there.
#[inline(always)]
fn from<T>(arg: &[T], place: usize) -> &[T] {
    if place < arg.len() { &arg[place..] } else { arg }
}

struct BinaryLoop<'a, F: Binary>(&'a [F::In], &'a [F::In]);

impl<F: Binary> Fill for BinaryLoop<'_, F> {
    type Item = F::Out;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [F::Out]) {
        let turn = turn(out.len(), [self.0.len(), self.1.len()]);
        for (i, out) in out.chunks_mut(turn).enumerate() {
            let (a, b) = (from(self.0, i * turn), from(self.1, i * turn));
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = F::call::<I>(a, b);
            }
        }
    }
}

struct SelectLoop<'a, T>(&'a [bool], &'a [T], &'a [T]);

impl<T: Element> Fill for SelectLoop<'_, T> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        let turn = turn(out.len(), [self.0.len(), self.1.len(), self.2.len()]);
        for (i, out) in out.chunks_mut(turn).enumerate() {
            let (conditions, a, b) = (from(self.0, i * turn), from(self.1, i * turn), from(self.2, i * turn));
            for (((out, &condition), &a), &b) in out.iter_mut().zip(conditions).zip(a).zip(b) {
                *out = if condition { a } else { b };
            }
        }
    }
}

/// The loop of a function of one argument.
pub(crate) fn unary<F: Unary>() -> Selected {
    fn kernel<F: Unary>(args: &[Elements], out: ElementsMut) {
        fill(UnaryLoop::<F>(args[0].typed()), out.typed());
    }
    Selected { kernel: kernel::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE, in_turns: false }
}

/// The loop of a function of two arguments.
pub(crate) fn binary<F: Binary>() -> Selected {
    fn kernel<F: Binary>(args: &[Elements], out: ElementsMut) {
        fill(BinaryLoop::<F>(args[0].typed(), args[1].typed()), out.typed());
    }
    Selected { kernel: kernel::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE, in_turns: true }
}

/// `where`: the second argument where the first is true, else the third.
pub(crate) fn select<T: Element>() -> Selected {
    fn kernel<T: Element>(args: &[Elements], out: ElementsMut) {
        fill(SelectLoop::<T>(args[0].typed(), args[1].typed(), args[2].typed()), out.typed());
    }
    Selected { kernel: kernel::<T>, args: [DType::Bool, T::DTYPE, T::DTYPE], result: T::DTYPE, in_turns: true }
}

struct Same<T>(T);

impl<T: Element> Fill for Same<T> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        out.fill(self.0);
    }
}

/// Fills a run with a scalar, converted as `astype` would.
pub(crate) fn splat(value: Scalar, out: ElementsMut) {
    with_dtype!(out.dtype(), T => match out.typed() {
        [one] => *one = element::<T>(value),
        all => fill(Same(element::<T>(value)), all),
    })
}
