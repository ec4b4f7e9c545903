//! Loops of the table of elementwise operations: one generic function per arity, compiled for each operation, dtype and SIMD level.

use std::hint::select_unpredictable;

use cuprum_core::{DType, Element, Scalar};
use cuprum_cpu_base::simd::{BaselineIsa, FillLoop, Isa, run_fill_loop};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, convert_scalar_to_bits};
use cuprum_cpu_base::with_bits;

/// A loop that applies an elementwise operation to its arguments, for as many elements as the output slice holds.
pub type Kernel = fn(&[Elements], ElementsMut);

/// A kernel selected for an operation and dtype, with its argument and result dtypes.
#[derive(Clone, Copy)]
pub struct SelectedKernel {
    /// The loop over elements.
    pub kernel: Kernel,
    /// Argument dtypes; entries beyond the arity are unused.
    pub args: [DType; 3],
    /// Result dtype.
    pub result: DType,
    /// Whether arguments may be shorter than the result. A shorter argument is read cyclically; all shorter arguments must have one
    /// common length.
    pub cycles_args: bool,
}

impl SelectedKernel {
    /// Changes the argument dtypes to `dtype`, whose elements the kernel reads as integers of the same size. If arguments and result had
    /// the same dtype, also changes the result dtype.
    pub(crate) fn with_argument_dtype(mut self, dtype: DType) -> SelectedKernel {
        if self.result == self.args[0] {
            self.result = dtype;
        }
        self.args = [dtype; 3];
        self
    }
}

/// A scalar function of one argument, from which a loop is compiled.
pub(crate) trait UnaryFunction {
    type In: Element;
    type Out: Element;
    /// Applies the function by code without branches, which the compiler vectorises.
    fn apply<I: Isa>(a: Self::In) -> Self::Out;
    /// Whether `apply` gives wrong results for some arguments. A second pass calls `apply_to_rare_argument` for them.
    const HAS_RARE_ARGUMENTS: bool = false;
    /// Whether `apply` compiles to no vector instructions, so that one compiled copy of its loop suffices.
    const IS_SCALAR_ONLY: bool = false;
    /// Returns whether the argument needs `apply_to_rare_argument` instead of `apply`.
    #[inline(always)]
    fn is_rare_argument(_: Self::In) -> bool {
        false
    }
    /// Applies the function to an argument for which [`UnaryFunction::is_rare_argument`] holds.
    fn apply_to_rare_argument(a: Self::In) -> Self::Out {
        Self::apply::<BaselineIsa>(a)
    }
}

/// A scalar function of two arguments of one type, from which a loop is compiled.
pub(crate) trait BinaryFunction {
    type In: Element;
    type Out: Element;
    /// Whether `apply` compiles to no vector instructions, so that one compiled copy of its loop suffices.
    const IS_SCALAR_ONLY: bool;
    fn apply<I: Isa>(a: Self::In, b: Self::In) -> Self::Out;
}

/// Returns whether unary loops over `dtype` are also compiled for AVX-512. Loops over 16-bit elements are not: processors with AVX-512 run
/// the version for AVX2.
const fn has_avx512_version(dtype: DType) -> bool {
    dtype.itemsize() != 2
}

struct UnaryLoop<'a, F: UnaryFunction>(&'a [F::In]);

impl<F: UnaryFunction> FillLoop for UnaryLoop<'_, F> {
    type Item = F::Out;
    const HAS_AVX512_VERSION: bool = has_avx512_version(F::In::DTYPE) && has_avx512_version(F::Out::DTYPE);
    const IS_SCALAR_ONLY: bool = F::IS_SCALAR_ONLY;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [F::Out]) {
        for (out, &a) in out.iter_mut().zip(self.0) {
            *out = F::apply::<I>(a);
        }
        if F::HAS_RARE_ARGUMENTS {
            let mut any = false;
            for &a in self.0 {
                any |= F::is_rare_argument(a);
            }
            if any {
                recompute_rare_arguments::<F>(self.0, out);
            }
        }
    }
}

/// Recomputes by [`UnaryFunction::apply_to_rare_argument`] the elements whose argument is rare ([`UnaryFunction::is_rare_argument`]), for
/// which the vectorised loop gives wrong results.
#[cold]
#[inline(never)]
fn recompute_rare_arguments<F: UnaryFunction>(values: &[F::In], out: &mut [F::Out]) {
    for (out, &a) in out.iter_mut().zip(values) {
        if F::is_rare_argument(a) {
            *out = F::apply_to_rare_argument(a);
        }
    }
}

/// Returns the number of elements per pass over `args`: the length of the shortest argument, but at most `out_len`, the length of the
/// result.
#[inline(always)]
fn cycle_length<const N: usize>(out_len: usize, args: [usize; N]) -> usize {
    args.into_iter().fold(out_len, usize::min).max(1)
}

/// Returns `arg` from index `start` on. Returns the whole of `arg` if it ends before `start`, because shorter arguments are read
/// cyclically.
#[inline(always)]
fn cyclic_tail_from<T>(arg: &[T], start: usize) -> &[T] {
    if start < arg.len() { &arg[start..] } else { arg }
}

struct BinaryLoop<'a, F: BinaryFunction>(&'a [F::In], &'a [F::In]);

impl<F: BinaryFunction> FillLoop for BinaryLoop<'_, F> {
    type Item = F::Out;
    const IS_SCALAR_ONLY: bool = F::IS_SCALAR_ONLY;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [F::Out]) {
        let cycle_length = cycle_length(out.len(), [self.0.len(), self.1.len()]);
        for (i, out) in out.chunks_mut(cycle_length).enumerate() {
            let (a, b) = (cyclic_tail_from(self.0, i * cycle_length), cyclic_tail_from(self.1, i * cycle_length));
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = F::apply::<I>(a, b);
            }
        }
    }
}

struct WhereLoop<'a, T>(&'a [bool], &'a [T], &'a [T]);

impl<T: Element> FillLoop for WhereLoop<'_, T> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        let cycle_length = cycle_length(out.len(), [self.0.len(), self.1.len(), self.2.len()]);
        for (i, out) in out.chunks_mut(cycle_length).enumerate() {
            let (conditions, a, b) = (
                cyclic_tail_from(self.0, i * cycle_length),
                cyclic_tail_from(self.1, i * cycle_length),
                cyclic_tail_from(self.2, i * cycle_length),
            );
            for (((out, &condition), &a), &b) in out.iter_mut().zip(conditions).zip(a).zip(b) {
                // `select_unpredictable` loads `a` and `b`. With `if`, LLVM would select one of their addresses and load from it, which
                // compiles to gathers.
                *out = select_unpredictable(condition, a, b);
            }
        }
    }
}

/// Returns the kernel of the unary function `F`.
pub(crate) fn unary_kernel<F: UnaryFunction>() -> SelectedKernel {
    fn run_unary_loop<F: UnaryFunction>(args: &[Elements], out: ElementsMut) {
        run_fill_loop(UnaryLoop::<F>(args[0].typed_slice()), out.typed_slice());
    }
    SelectedKernel { kernel: run_unary_loop::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE, cycles_args: false }
}

/// Returns the kernel of the binary function `F`.
pub(crate) fn binary_kernel<F: BinaryFunction>() -> SelectedKernel {
    fn run_binary_loop<F: BinaryFunction>(args: &[Elements], out: ElementsMut) {
        run_fill_loop(BinaryLoop::<F>(args[0].typed_slice(), args[1].typed_slice()), out.typed_slice());
    }
    SelectedKernel { kernel: run_binary_loop::<F>, args: [F::In::DTYPE; 3], result: F::Out::DTYPE, cycles_args: true }
}

/// Returns the kernel of `where` for `dtype`, whose elements have the same size as `T`. The kernel selects the second argument where the
/// first is true, and the third elsewhere.
pub(crate) fn where_kernel<T: Element>(dtype: DType) -> SelectedKernel {
    fn run_where_loop<T: Element>(args: &[Elements], out: ElementsMut) {
        run_fill_loop(WhereLoop::<T>(args[0].typed_slice(), args[1].typed_slice(), args[2].typed_slice()), out.typed_slice());
    }
    SelectedKernel { kernel: run_where_loop::<T>, args: [DType::Bool, dtype, dtype], result: dtype, cycles_args: true }
}

struct SplatLoop<T>(T);

impl<T: Element> FillLoop for SplatLoop<T> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        out.fill(self.0);
    }
}

/// Fills `out` with `value`, converted as by `astype`.
pub fn splat(value: Scalar, out: ElementsMut) {
    let dtype = out.dtype();
    with_bits!(dtype, T => match out.typed_slice() {
        [one] => *one = convert_scalar_to_bits::<T>(value, dtype),
        all => run_fill_loop(SplatLoop(convert_scalar_to_bits::<T>(value, dtype)), all),
    })
}
