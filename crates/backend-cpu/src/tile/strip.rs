//! Runs of cheap operations, each on the result of the one before: a strip of elements goes through all of them in registers, and only
//! the last result is written. One loop for each would store and load every element between them.

use cuprum_core::ops::elementwise::{ADD, DIVIDE, MULTIPLY, SUBTRACT};
use cuprum_core::{DType, Element, Op};
use num_traits::Float;
use smallvec::SmallVec;

use crate::raw::{Elements, ElementsMut};
use crate::simd::{Fill, Isa, fill};

/// Most links of a run, so that its arguments find room without an allocation.
pub(super) const LONGEST: usize = 15;

/// An operation of a run, on the value so far and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Add,
    Subtract,
    /// The value so far is what is subtracted.
    SubtractFrom,
    Multiply,
    Divide,
    /// The value so far is what is divided by.
    DivideInto,
}

impl Link {
    /// An operation whose argument number `place`, of two, is the value so far.
    pub fn of(op: Op, place: usize) -> Option<Link> {
        match place {
            _ if op == ADD => Some(Link::Add),
            _ if op == MULTIPLY => Some(Link::Multiply),
            0 if op == SUBTRACT => Some(Link::Subtract),
            _ if op == SUBTRACT => Some(Link::SubtractFrom),
            0 if op == DIVIDE => Some(Link::Divide),
            _ if op == DIVIDE => Some(Link::DivideInto),
            _ => None,
        }
    }
}

/// Computes a run: the value that it begins with, and the other argument of each link. Of those shorter than the result the first element
/// stands for all.
pub(super) type Kernel = fn(&[Link], &[Elements], ElementsMut);

/// The kernel for a dtype.
pub(super) fn kernel(dtype: DType) -> Option<Kernel> {
    fn kernel<T: Element + Float>(links: &[Link], args: &[Elements], out: ElementsMut) {
        let Some((first, others)) = args.split_first() else { return };
        let mut typed = SmallVec::<[(Link, &[T]); LONGEST]>::new();
        for (&link, other) in links.iter().zip(others) {
            typed.push((link, other.typed()));
        }
        fill(Strips { first: first.typed(), links: &typed }, out.typed());
    }
    match dtype {
        DType::F32 => Some(kernel::<f32>),
        DType::F64 => Some(kernel::<f64>),
        _ => None,
    }
}

struct Strips<'a, T> {
    first: &'a [T],
    links: &'a [(Link, &'a [T])],
}

impl<T: Element + Float> Fill for Strips<'_, T> {
    type Item = T;
    /// The longest strips whose values stay in registers.
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        let most = I::KEPT / size_of::<T>();
        match out.len() {
            128.. if most >= 128 => self.strips::<128>(out),
            64.. if most >= 64 => self.strips::<64>(out),
            32.. if most >= 32 => self.strips::<32>(out),
            8.. => self.strips::<8>(out),
            _ => self.strips::<1>(out),
        }
    }
}

impl<T: Element + Float> Strips<'_, T> {
    /// Strips of `N` elements; the last one ends with the result, and computes again what the one before has in common with it.
    #[inline(always)]
    fn strips<const N: usize>(&self, out: &mut [T]) {
        let len = out.len();
        let Some(last) = len.checked_sub(N) else { return };
        let mut at = 0;
        while at < len {
            at = at.min(last);
            let mut values: [T; N] = strip(self.first, at, len);
            for &(link, other) in self.links {
                let others: [T; N] = strip(other, at, len);
                // A loop in each arm, by index and without a closure: what it computes stays in registers.
                macro_rules! each {
                    ($i:ident => $value:expr) => {
                        for $i in 0..N {
                            values[$i] = $value;
                        }
                    };
                }
                match link {
                    Link::Add => each!(i => values[i] + others[i]),
                    Link::Subtract => each!(i => values[i] - others[i]),
                    Link::SubtractFrom => each!(i => others[i] - values[i]),
                    Link::Multiply => each!(i => values[i] * others[i]),
                    Link::Divide => each!(i => values[i] / others[i]),
                    Link::DivideInto => each!(i => others[i] / values[i]),
                }
            }
            out[at..at + N].copy_from_slice(&values);
            at += N;
        }
    }
}

/// Elements of an argument from a place on.
#[inline(always)]
fn strip<T: Element, const N: usize>(arg: &[T], at: usize, len: usize) -> [T; N] {
    if arg.len() < len {
        return [arg.first().copied().unwrap_or_default(); N];
    }
    match arg.get(at..) {
        Some(rest) => rest.first_chunk().copied().unwrap_or([T::default(); N]),
        None => [T::default(); N],
    }
}
