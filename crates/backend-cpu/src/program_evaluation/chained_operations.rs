//! Chained operations, evaluated in registers. A strip (a few registers of elements) passes through all operations, and only the last
//! result is stored.

use cuprum_core::ops::elementwise::{ADD, DIVIDE, MULTIPLY, SUBTRACT};
use cuprum_core::{DType, Element, Op};
use cuprum_cpu_base::simd::{FillLoop, Isa, run_fill_loop};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use num_traits::Float;
use smallvec::SmallVec;

/// Maximum number of chained operations. With this limit, the list of arguments needs no allocation.
pub(super) const MAX_CHAIN_OPS: usize = 15;

/// A chained binary operation. Its operands are the current value of the chain and another argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainOp {
    Add,
    Subtract,
    /// The other argument minus the current value of the chain.
    SubtractFrom,
    Multiply,
    Divide,
    /// The other argument divided by the current value of the chain.
    DivideInto,
}

impl ChainOp {
    /// Returns the chained form of the binary `op` whose argument number `position` (0 or 1) is the current value. Returns `None` if `op`
    /// cannot be chained.
    pub fn of(op: Op, position: usize) -> Option<ChainOp> {
        match position {
            _ if op == ADD => Some(ChainOp::Add),
            _ if op == MULTIPLY => Some(ChainOp::Multiply),
            0 if op == SUBTRACT => Some(ChainOp::Subtract),
            _ if op == SUBTRACT => Some(ChainOp::SubtractFrom),
            0 if op == DIVIDE => Some(ChainOp::Divide),
            _ if op == DIVIDE => Some(ChainOp::DivideInto),
            _ => None,
        }
    }
}

/// A function that computes chained operations. The arguments are the initial value, then one per operation. An argument that is shorter
/// than the result stands for copies of its first element.
pub(super) type ChainFunction = fn(&[ChainOp], &[Elements], ElementsMut);

/// Returns the function that computes chained operations in `dtype`. Returns `None` if operations in this dtype are not chained.
pub(super) fn select_chain_function(dtype: DType) -> Option<ChainFunction> {
    fn compute_chain<T: Element + Float>(ops: &[ChainOp], args: &[Elements], out: ElementsMut) {
        let Some((first, others)) = args.split_first() else { return };
        let mut typed = SmallVec::<[(ChainOp, &[T]); MAX_CHAIN_OPS]>::new();
        for (&op, other) in ops.iter().zip(others) {
            typed.push((op, other.typed_slice()));
        }
        run_fill_loop(ChainedOperationsLoop { first: first.typed_slice(), ops: &typed }, out.typed_slice());
    }
    match dtype {
        DType::F32 => Some(compute_chain::<f32>),
        DType::F64 => Some(compute_chain::<f64>),
        _ => None,
    }
}

struct ChainedOperationsLoop<'a, T> {
    first: &'a [T],
    ops: &'a [(ChainOp, &'a [T])],
}

impl<T: Element + Float> FillLoop for ChainedOperationsLoop<'_, T> {
    type Item = T;
    /// Computes the chain in strips of elements, which are as long as the registers of level `I` allow.
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        let most = I::ACCUMULATOR_REGISTER_BYTES / size_of::<T>();
        match out.len() {
            128.. if most >= 128 => self.compute_in_strips::<128>(out),
            64.. if most >= 64 => self.compute_in_strips::<64>(out),
            32.. if most >= 32 => self.compute_in_strips::<32>(out),
            8.. => self.compute_in_strips::<8>(out),
            _ => self.compute_in_strips::<1>(out),
        }
    }
}

impl<T: Element + Float> ChainedOperationsLoop<'_, T> {
    /// Evaluates the chained operations in strips of `N` elements. The last strip ends at the end of `out` and may overlap the strip before
    /// it.
    #[inline(always)]
    fn compute_in_strips<const N: usize>(&self, out: &mut [T]) {
        let len = out.len();
        let Some(last) = len.checked_sub(N) else { return };
        let mut at = 0;
        while at < len {
            at = at.min(last);
            let mut values: [T; N] = load_strip(self.first, at, len);
            for &(op, other) in self.ops {
                let others: [T; N] = load_strip(other, at, len);
                // A separate loop in each arm of the `match`, over indices and without a closure, keeps `values` in registers.
                macro_rules! each {
                    ($i:ident => $value:expr) => {
                        for $i in 0..N {
                            values[$i] = $value;
                        }
                    };
                }
                match op {
                    ChainOp::Add => each!(i => values[i] + others[i]),
                    ChainOp::Subtract => each!(i => values[i] - others[i]),
                    ChainOp::SubtractFrom => each!(i => others[i] - values[i]),
                    ChainOp::Multiply => each!(i => values[i] * others[i]),
                    ChainOp::Divide => each!(i => values[i] / others[i]),
                    ChainOp::DivideInto => each!(i => others[i] / values[i]),
                }
            }
            out[at..at + N].copy_from_slice(&values);
            at += N;
        }
    }
}

/// Returns `N` elements of `arg` from index `at` on, or `N` copies of its first element if it is shorter than `len`.
#[inline(always)]
fn load_strip<T: Element, const N: usize>(arg: &[T], at: usize, len: usize) -> [T; N] {
    if arg.len() < len {
        return [arg.first().copied().unwrap_or_default(); N];
    }
    match arg.get(at..) {
        Some(rest) => rest.first_chunk().copied().unwrap_or([T::default(); N]),
        None => [T::default(); N],
    }
}
