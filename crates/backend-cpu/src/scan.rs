//! Kernel of the family `Scan`: running sums, products and extremes, computed together with the fused program in one pass over the output.
//!
//! A contiguous row is scanned in runs of [`RUN_LEN`] elements, several at once. The scans of runs are then combined in order. In long
//! rows, blocks of runs are combined in the same way. Each element is `carry of the block + (carry of the run + sum within the run)`. The
//! split depends only on the row's length, so the bits do not depend on the number of threads. The carry of a run or block equals the total
//! at the last element before it, so running sums of positive numbers never decrease.
//!
//! After the first infinity, NaN or zero product of a row, and from the first run whose product is subnormal, elements are computed
//! sequentially in the row's own dtype, as in NumPy. The partial results of runs cover fewer elements and may have a wider dtype, so they
//! could be finite where NumPy's result is infinite or NaN.

use cuprum_core::call;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::strided::split_into_column_blocks;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{ElementsMut, Output, unsigned_dtype};
use std::marker::PhantomData;

use cuprum_core::host_buffer::try_collect;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::Op;
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::{Call, Complex, DType, Element, Outcome, Result, Work, bf16, decline, f16};

use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, ResultDestination};
use crate::reducers::arithmetic::Arithmetic;

/// Number of consecutive elements in a run. Each run is scanned sequentially, and the results of runs are then combined.
const RUN_LEN: usize = 64;
/// Number of runs (of [`RUN_LEN`] elements each) that are scanned at once, for instruction-level parallelism.
const INTERLEAVED_RUNS: usize = 8;
/// Number of elements in a block: the part of a long row that one task scans.
const LONG_ROW_BLOCK_LEN: usize = 1 << 15;
/// Minimum number of columns per task if the scanned axis is not the last one: a few cache lines.
const MIN_COLUMNS_PER_TASK: usize = 64;

/// Computes the output of `call`, a running sum, product, minimum or maximum along an axis.
pub(crate) fn compute_scan(call: &Call) -> Result<Outcome> {
    let Work::Scan(call::Scan { program, reduction, plan, .. }) = &call.work else { decline!("not a scan") };
    // The loops follow the memory order of the output: axes outside the scanned axis, the scanned axis, axes inside the scanned axis.
    let inner = plan.out_axis_stride as usize;
    let Some(split) = (0..=plan.lines.len()).rev().find(|&d| plan.lines[d..].iter().product::<usize>() >= inner || plan.len == 1) else {
        decline!("lines that do not follow the output")
    };
    let split = if plan.len == 1 { plan.lines.len() } else { split };
    let dims: Dims = plan.lines[..split].iter().chain([&plan.len]).chain(&plan.lines[split..]).copied().collect();
    let strides = |k: usize| -> Strides {
        let lines = &plan.line_strides[k];
        lines[..split].iter().chain([&plan.axis_strides[k]]).chain(&lines[split..]).copied().collect()
    };
    let compiled = match CompiledProgram::new(program, LoopNest::new(&dims, call.inputs, strides)?, ResultDestination::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements_mut()?;
    let inner = if plan.len == 1 { 1 } else { inner };
    let Some(run) = reduction.elementwise_combination().and_then(|by| select_scan_function(by, call.outputs[0].dtype)) else {
        decline!("{} is not a running sum, product or extreme", call.op.name())
    };
    run(&compiled, elements, plan.len, inner)?;
    call.outcome_from_buffers([output.into_buffer()])
}

/// Signature of [`scan_matrices`].
type ScanFunction = fn(&CompiledProgram, ElementsMut, usize, usize) -> Result<()>;

/// Returns the function that scans elements of `dtype` by the elementwise operation `op`. Sums and products read signed integers as
/// unsigned integers, which have the same bits. Extremes of bool are logical operations.
fn select_scan_function(op: Op, dtype: DType) -> Option<ScanFunction> {
    macro_rules! select {
        ($dtype:expr, $combine:ident: $($t:ty)*) => {
            match $dtype {
                $(<$t as Element>::DTYPE => Some(scan_matrices::<$t, $combine> as ScanFunction),)*
                _ => None,
            }
        };
        ($dtype:expr, wrapping $combine:ident) => {
            select!(unsigned_dtype($dtype), $combine: bool u8 u16 u32 u64 f16 bf16 f32 f64 Complex<f32> Complex<f64>)
        };
        ($dtype:expr, ordered $combine:ident) => {
            select!($dtype, $combine: i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 Complex<f32> Complex<f64>)
        };
    }
    let is_bool = dtype == DType::Bool;
    match op {
        op if op == ADD || op == MAXIMUM && is_bool => select!(dtype, wrapping Sum),
        op if op == MULTIPLY || op == MINIMUM && is_bool => select!(dtype, wrapping Product),
        op if op == MAXIMUM => select!(dtype, ordered Max),
        op if op == MINIMUM => select!(dtype, ordered Min),
        _ => None,
    }
}

/// Element types of scans, with their accumulator types.
trait ScanElement: Element {
    /// Accumulator type of sums and products: float32 for 16-bit floats, float64 for float32.
    type Total: Arithmetic;
    /// Accumulator type of minima and maxima: float32 for 16-bit floats, the element type for all others. The accumulator loses no bits,
    /// because minima and maxima are exact.
    type Exact: Arithmetic;
    fn to_sum_accumulator(self) -> Self::Total;
    fn from_sum_accumulator(total: Self::Total) -> Self;
    fn to_extreme_accumulator(self) -> Self::Exact;
    fn from_extreme_accumulator(exact: Self::Exact) -> Self;
    /// Type of the results of [`ScanElement::non_finite_flag`]: an unsigned integer as wide as the float, so that the tests vectorise.
    type HighestBitFlag: HighestBitFlag;
    /// Returns a flag whose highest bit is set if the value, or one of its parts, is infinite or NaN.
    fn non_finite_flag(self) -> Self::HighestBitFlag;
    /// Returns a flag whose highest bit is set if the value is a float or complex zero. For integers the highest bit is never set.
    fn zero_flag(self) -> Self::HighestBitFlag;
}

/// Result of testing a float by bitwise operations: the highest bit is set if the test succeeds. The other bits are arbitrary.
trait HighestBitFlag: Copy + Default + std::ops::BitOr<Output = Self> {
    fn is_highest_bit_set(self) -> bool;
}
macro_rules! test_bits {
    ($($t:ty)*) => {$(
        impl HighestBitFlag for $t {
            #[inline(always)]
            fn is_highest_bit_set(self) -> bool { self > <$t>::MAX >> 1 }
        }
    )*};
}
test_bits! { u8 u16 u32 u64 }

/// Returns the bits of the float `v` without its sign bit.
macro_rules! magnitude {
    ($v:expr) => {{
        let bits = $v.to_bits();
        bits << 1 >> 1
    }};
}
macro_rules! running {
    ($($t:ty as $total:ty, $exact:ty: $v:ident => $in:expr, $out:expr; $exact_in:expr, $exact_out:expr; $marks:ty: $beyond:expr, $vanished:expr;)*) => {$(
        impl ScanElement for $t {
            type HighestBitFlag = $marks;
            #[inline(always)]
            fn non_finite_flag(self) -> $marks { let $v = self; let _ = $v; $beyond }
            #[inline(always)]
            fn zero_flag(self) -> $marks { let $v = self; let _ = $v; $vanished }
            type Total = $total;
            type Exact = $exact;
            #[inline(always)]
            fn to_sum_accumulator(self) -> $total { let $v = self; $in }
            #[inline(always)]
            fn from_sum_accumulator($v: $total) -> $t { $out }
            #[inline(always)]
            fn to_extreme_accumulator(self) -> $exact { let $v = self; $exact_in }
            #[inline(always)]
            fn from_extreme_accumulator($v: $exact) -> $t { $exact_out }
        }
    )*};
    (exact $($t:ty)*) => { running! { $($t as $t, $t: v => v, v; v, v; u8: 0, 0;)* } };
}
running! { exact bool i8 i16 i32 i64 u8 u16 u32 u64 }
running! {
    // The last two expressions of each line set the highest bit for infinity and NaN, and for zero. Adding 1 to an exponent of all ones
    // (infinity, NaN) carries into the highest bit. Subtracting 1 from the bits of zero sets it.
    f64 as f64, f64: v => v, v; v, v; u64: magnitude!(v) + (1 << 52), magnitude!(v).wrapping_sub(1);
    f32 as f64, f32: v => v as f64, v as f32; v, v; u32: magnitude!(v) + (1 << 23), magnitude!(v).wrapping_sub(1);
    f16 as f32, f32: v => v.to_f32(), f16::from_f32(v); v.to_f32(), f16::from_f32(v);
        u16: magnitude!(v) + (1 << 10), magnitude!(v).wrapping_sub(1);
    bf16 as f32, f32: v => v.to_f32(), bf16::from_f32(v); v.to_f32(), bf16::from_f32(v);
        u16: magnitude!(v) + (1 << 7), magnitude!(v).wrapping_sub(1);
    Complex<f64> as Complex<f64>, Complex<f64>: v => v, v; v, v;
        u64: v.re.non_finite_flag() | v.im.non_finite_flag(), (magnitude!(v.re) | magnitude!(v.im)).wrapping_sub(1);
    Complex<f32> as Complex<f64>, Complex<f32>: v => Complex::new(v.re as f64, v.im as f64), Complex::new(v.re as f32, v.im as f32); v, v;
        u32: v.re.non_finite_flag() | v.im.non_finite_flag(), (magnitude!(v.re) | magnitude!(v.im)).wrapping_sub(1);
}

/// A scan operation (sum, product, maximum or minimum) on elements `T`, with its accumulator.
trait ScanOperation<T: Element>: 'static {
    /// Whether the loops are also compiled for AVX-512. If false, processors with AVX-512 run the version for AVX2, which suffices for
    /// rarely used dtypes.
    const HAS_AVX512_VERSION: bool = T::DTYPE.itemsize() >= 4;
    type Total: Copy + Default + Send + Sync;
    fn to_accumulator(value: T) -> Self::Total;
    fn to_element(total: Self::Total) -> T;
    fn combine_accumulators(a: Self::Total, b: Self::Total) -> Self::Total;
    type HighestBitFlag: HighestBitFlag;
    /// Returns a flag whose highest bit is set if `result` is sticky: an infinity, a NaN or a zero product.
    fn needs_sequential_flag(result: T) -> Self::HighestBitFlag;
    /// Returns whether `result` is sticky: an infinity, a NaN or a zero product. Later elements must then be computed sequentially.
    #[inline(always)]
    fn needs_sequential_scan(result: T) -> bool {
        Self::needs_sequential_flag(result).is_highest_bit_set()
    }
    /// Returns whether any of `results` is sticky: an infinity, a NaN or a zero product. Later elements must then be computed sequentially.
    #[inline(always)]
    fn any_needs_sequential_scan(results: &[T]) -> bool {
        results.iter().fold(Self::HighestBitFlag::default(), |marks, v| marks | Self::needs_sequential_flag(*v)).is_highest_bit_set()
    }
    /// Returns whether `total`, the total of a run ([`RUN_LEN`] consecutive elements), is subnormal or zero, and has thus lost digits.
    /// NumPy's running result covers more elements and may keep these digits.
    #[inline(always)]
    fn has_lost_digits(_total: Self::Total) -> bool {
        false
    }
    /// Returns `b` combined with `carry`, the accumulator of all preceding elements. Returns `b` alone if `carry` is `None`.
    #[inline(always)]
    fn combine_with_carry(carry: Option<Self::Total>, b: Self::Total) -> Self::Total {
        match carry {
            Some(carry) => Self::combine_accumulators(carry, b),
            None => b,
        }
    }
}
macro_rules! combine {
    ($($(#[$doc:meta])* $name:ident in $total:ident by $in:ident, $out:ident: |$a:ident, $b:ident| $join:expr, |$v:ident| $marks:expr $(, |$total_value:ident| $lost:expr)?;)*) => {$(
        $(#[$doc])*
        struct $name;
        impl<T: ScanElement> ScanOperation<T> for $name {
            type Total = T::$total;
            #[inline(always)]
            fn to_accumulator(value: T) -> T::$total { value.$in() }
            #[inline(always)]
            fn to_element(total: T::$total) -> T { T::$out(total) }
            #[inline(always)]
            fn combine_accumulators($a: T::$total, $b: T::$total) -> T::$total { $join }
            type HighestBitFlag = T::HighestBitFlag;
            #[inline(always)]
            fn needs_sequential_flag($v: T) -> T::HighestBitFlag { $marks }
            $(
                #[inline(always)]
                fn has_lost_digits($total_value: T::$total) -> bool { $lost }
            )?
        }
    )*};
}
combine! {
    /// Running sum; logical or for bool.
    Sum in Total by to_sum_accumulator, from_sum_accumulator: |a, b| a.plus(b), |v| v.non_finite_flag();
    /// Running product; logical and for bool.
    Product in Total by to_sum_accumulator, from_sum_accumulator: |a, b| a.times(b), |v| v.non_finite_flag() | v.zero_flag(),
        |total| total.is_subnormal() || total.is_zero_or_non_finite_float() && total == T::Total::ZERO;
    /// Running maximum. From the first NaN on, results are that NaN.
    Max in Exact by to_extreme_accumulator, from_extreme_accumulator: |a, b| if a.is_at_least(b) | a.has_nan() { a } else { b },
        |_v| T::HighestBitFlag::default();
    /// Running minimum. From the first NaN on, results are that NaN.
    Min in Exact by to_extreme_accumulator, from_extreme_accumulator: |a, b| if b.is_at_least(a) | a.has_nan() { a } else { b },
        |_v| T::HighestBitFlag::default();
}

/// Scans along the first axis of consecutive matrices of `len` rows and `inner` columns each.
fn scan_matrices<T: ScanElement, C: ScanOperation<T>>(
    compiled: &CompiledProgram,
    out: ElementsMut,
    len: usize,
    inner: usize,
) -> Result<()> {
    let out = out.typed_slice::<T>();
    let cost = out.len().saturating_mul(compiled.cost_per_element() + 2);
    if inner > 1 {
        return scan_columns::<T, C>(compiled, out, len, inner, cost);
    }
    let rows = out.len() / len;
    if len > 2 * LONG_ROW_BLOCK_LEN && rows < 64 {
        for (row, out) in out.chunks_mut(len).enumerate() {
            scan_long_row::<T, C>(compiled, row * len, out, cost / rows)?;
        }
        return Ok(());
    }
    let per_task = (LONG_ROW_BLOCK_LEN / len).max(1) * len;
    threads::for_each(
        out.chunks_mut(per_task).enumerate(),
        cost,
        || ScanEvaluator::<T, C>::new(compiled),
        |scanner, (i, part)| {
            for (row, out) in part.chunks_mut(len).enumerate() {
                scan_block::<T, C>(scanner, i * per_task + row * len, out, None, &mut None);
            }
        },
    );
    Ok(())
}

/// Running totals of [`INTERLEAVED_RUNS`] runs of [`RUN_LEN`] elements. The totals of a run include only the elements of that run.
type RunScans<A> = [[A; RUN_LEN]; INTERLEAVED_RUNS];

/// A thread's evaluator of the fused program, with a buffer for the running totals of runs ([`RunScans`]).
struct ScanEvaluator<'c, 'a, T: ScanElement, C: ScanOperation<T>> {
    evaluator: Evaluator<'c, 'a>,
    tile: usize,
    sums: Box<RunScans<C::Total>>,
}

impl<'c, 'a, T: ScanElement, C: ScanOperation<T>> ScanEvaluator<'c, 'a, T, C> {
    fn new(compiled: &'c CompiledProgram<'a>) -> ScanEvaluator<'c, 'a, T, C> {
        let sums = Box::new([[C::to_accumulator(T::default()); RUN_LEN]; INTERLEAVED_RUNS]);
        ScanEvaluator { evaluator: Evaluator::new(compiled), tile: compiled.tile_len(), sums }
    }
}

/// Writes the running results to `out`, whose first element is element `start` of the array. `carry` is the total of the row's elements
/// before `start`. Returns the total of the elements of `out` alone.
///
/// `last` becomes `Some` at the first sticky result of the row ([`ScanOperation::needs_sequential_scan`]), or in the first run ([`RUN_LEN`]
/// consecutive elements) whose total has lost digits ([`ScanOperation::has_lost_digits`]). From there on, elements are computed
/// sequentially, `last` holds the previous result, and totals are not used.
fn scan_block<T: ScanElement, C: ScanOperation<T>>(
    scanner: &mut ScanEvaluator<T, C>,
    start: usize,
    out: &mut [T],
    carry: Option<C::Total>,
    last: &mut Option<T>,
) -> Option<C::Total> {
    let mut before = None;
    for (i, out) in out.chunks_mut(scanner.tile).enumerate() {
        let values = scanner.evaluator.evaluate(start + i * scanner.tile, out.len()).typed_slice::<T>();
        for (values, out) in values.chunks(RUN_LEN * INTERLEAVED_RUNS).zip(out.chunks_mut(RUN_LEN * INTERLEAVED_RUNS)) {
            if last.is_some() {
                scan_sequentially::<T, C>(values, out, last);
                continue;
            }
            dispatch_simd(ScanRunsLoop::<T, C>(values, &mut scanner.sums, PhantomData));
            let (total, is_sticky, inexact) = dispatch_simd(CombineRunsLoop::<T, C>(&scanner.sums, out, carry, before, PhantomData));
            let first_sticky = if is_sticky { out.iter().position(|v| C::needs_sequential_scan(*v)) } else { None };
            if let Some(first) = first_sticky.into_iter().chain(inexact).min() {
                let earlier = before.map(|b| C::combine_with_carry(carry, b)).or(carry).map(C::to_element);
                *last = first.checked_sub(1).map_or(earlier, |place| Some(out[place]));
                scan_sequentially::<T, C>(&values[first..], &mut out[first..], last);
            }
            before = total;
        }
    }
    before
}

/// Scans `values` one by one, continuing from the previous result `last`, and updates `last`. Each result is rounded to the dtype.
fn scan_sequentially<T: ScanElement, C: ScanOperation<T>>(values: &[T], out: &mut [T], last: &mut Option<T>) {
    for (v, out) in values.iter().zip(out) {
        *out = last.map_or(*v, |last| C::to_element(C::combine_accumulators(C::to_accumulator(last), C::to_accumulator(*v))));
        *last = Some(*out);
    }
}

/// Returns the total of `len` elements from `start` on, combined in the same order as in [`scan_block`]. `None` if `len` is 0.
fn compute_block_total<T: ScanElement, C: ScanOperation<T>>(
    scanner: &mut ScanEvaluator<T, C>,
    start: usize,
    len: usize,
) -> Option<C::Total> {
    let mut before = None;
    for at in (0..len).step_by(scanner.tile) {
        let values = scanner.evaluator.evaluate(start + at, scanner.tile.min(len - at)).typed_slice::<T>();
        for values in values.chunks(RUN_LEN * INTERLEAVED_RUNS) {
            dispatch_simd(ScanRunsLoop::<T, C>(values, &mut scanner.sums, PhantomData));
            for (run, sums) in values.chunks(RUN_LEN).zip(scanner.sums.iter()) {
                before = Some(C::combine_with_carry(before, sums[run.len() - 1]));
            }
        }
    }
    before
}

/// Loop that scans up to [`INTERLEAVED_RUNS`] runs (of [`RUN_LEN`] elements each) separately. Reads the elements from the first field and
/// writes the running totals to the second field.
struct ScanRunsLoop<'a, T: ScanElement, C: ScanOperation<T>>(&'a [T], &'a mut RunScans<C::Total>, PhantomData<C>);

impl<T: ScanElement, C: ScanOperation<T>> SimdLoop for ScanRunsLoop<'_, T, C> {
    type Output = ();
    const HAS_AVX512_VERSION: bool = C::HAS_AVX512_VERSION;
    #[inline(always)]
    fn run(self) {
        let (runs, rest) = self.0.as_chunks::<RUN_LEN>();
        if runs.len() < INTERLEAVED_RUNS || !rest.is_empty() {
            for (run, sums) in self.0.chunks(RUN_LEN).zip(self.1) {
                let mut running = None;
                for (v, sum) in run.iter().zip(sums) {
                    *sum = C::combine_with_carry(running, C::to_accumulator(*v));
                    running = Some(*sum);
                }
            }
            return;
        }
        let sums = self.1;
        let mut running = [C::to_accumulator(runs[0][0]); INTERLEAVED_RUNS];
        for r in 0..INTERLEAVED_RUNS {
            running[r] = C::to_accumulator(runs[r][0]);
            sums[r][0] = running[r];
        }
        for i in 1..RUN_LEN {
            for r in 0..INTERLEAVED_RUNS {
                running[r] = C::combine_accumulators(running[r], C::to_accumulator(runs[r][i]));
                sums[r][i] = running[r];
            }
        }
    }
}

/// Loop that combines the running totals of runs ([`RunScans`]) with all earlier elements of the row, and writes the results. The fields
/// are the running totals, the output, the carry of the block, and the total of the block's earlier runs. Returns the new total of the
/// block, whether an output is sticky ([`ScanOperation::needs_sequential_scan`]), and the start of the first run whose total, or whose
/// total with the earlier runs, has lost digits ([`ScanOperation::has_lost_digits`]).
struct CombineRunsLoop<'a, T: ScanElement, C: ScanOperation<T>>(
    &'a RunScans<C::Total>,
    &'a mut [T],
    Option<C::Total>,
    Option<C::Total>,
    PhantomData<C>,
);

impl<T: ScanElement, C: ScanOperation<T>> SimdLoop for CombineRunsLoop<'_, T, C> {
    type Output = (Option<C::Total>, bool, Option<usize>);
    const HAS_AVX512_VERSION: bool = C::HAS_AVX512_VERSION;
    #[inline(always)]
    fn run(self) -> (Option<C::Total>, bool, Option<usize>) {
        let CombineRunsLoop(sums, out, carry, mut before, _) = self;
        let mut inexact = None;
        for (n, (out, sums)) in out.chunks_mut(RUN_LEN).zip(sums).enumerate() {
            match (carry, before) {
                (None, None) => write_converted_totals::<T, C>(out, sums, |s| s),
                (None, Some(one)) | (Some(one), None) => write_converted_totals::<T, C>(out, sums, |s| C::combine_accumulators(one, s)),
                (Some(c), Some(b)) => {
                    write_converted_totals::<T, C>(out, sums, |s| C::combine_accumulators(c, C::combine_accumulators(b, s)))
                }
            }
            let total = sums[out.len() - 1];
            let block_total = C::combine_with_carry(before, total);
            if C::has_lost_digits(total) | C::has_lost_digits(block_total) {
                inexact.get_or_insert(n * RUN_LEN);
            }
            before = Some(block_total);
        }
        (before, C::any_needs_sequential_scan(out), inexact)
    }
}

#[inline(always)]
fn write_converted_totals<T: ScanElement, C: ScanOperation<T>>(out: &mut [T], sums: &[C::Total], make: impl Fn(C::Total) -> C::Total) {
    for (out, &sum) in out.iter_mut().zip(sums) {
        *out = C::to_element(make(sum));
    }
}

/// Scans one long row, which begins at element `start`, into `out`. Threads first sum each block, then scan each block from the total of
/// the blocks before it. A single thread makes one pass over the blocks, with the same bits.
fn scan_long_row<T: ScanElement, C: ScanOperation<T>>(compiled: &CompiledProgram, start: usize, out: &mut [T], cost: usize) -> Result<()> {
    let join = |carry: Option<C::Total>, total: Option<C::Total>| match total {
        Some(total) => Some(C::combine_with_carry(carry, total)),
        None => carry,
    };
    if threads::threads_for_cost(cost) == 1 {
        let mut scanner = ScanEvaluator::<T, C>::new(compiled);
        let (mut carry, mut last) = (None, None);
        for (i, block) in out.chunks_mut(LONG_ROW_BLOCK_LEN).enumerate() {
            let total = scan_block::<T, C>(&mut scanner, start + i * LONG_ROW_BLOCK_LEN, block, carry, &mut last);
            carry = join(carry, total);
        }
        return Ok(());
    }
    let len = out.len();
    let totals = threads::map(
        (0..len.div_ceil(LONG_ROW_BLOCK_LEN)).map(|i| i * LONG_ROW_BLOCK_LEN),
        cost,
        || ScanEvaluator::<T, C>::new(compiled),
        |scanner, at| compute_block_total::<T, C>(scanner, start + at, LONG_ROW_BLOCK_LEN.min(len - at)),
    )?;
    let mut carry = None;
    let carries = totals.into_iter().map(|total| {
        let next = join(carry, total);
        std::mem::replace(&mut carry, next)
    });
    let blocks: Vec<_> = out.chunks_mut(LONG_ROW_BLOCK_LEN).zip(carries).enumerate().collect();
    let ends = threads::map(
        blocks.into_iter(),
        cost,
        || ScanEvaluator::<T, C>::new(compiled),
        |scanner, (i, (block, carry))| {
            let mut last = None;
            scan_block::<T, C>(scanner, start + i * LONG_ROW_BLOCK_LEN, block, carry, &mut last);
            last
        },
    )?;
    // After a block with a sticky result (an infinity, a NaN or a zero product), the rest of the row is computed sequentially.
    if let Some((block, mut last)) = ends.into_iter().enumerate().find(|(_, last)| last.is_some()) {
        let rest = (block + 1) * LONG_ROW_BLOCK_LEN;
        if rest < len {
            scan_block::<T, C>(&mut ScanEvaluator::new(compiled), start + rest, &mut out[rest..], None, &mut last);
        }
    }
    Ok(())
}

struct AccumulateRowLoop<'a, T: ScanElement, C: ScanOperation<T>>(&'a mut [C::Total], &'a [T], &'a mut [T], PhantomData<C>);

impl<T: ScanElement, C: ScanOperation<T>> SimdLoop for AccumulateRowLoop<'_, T, C> {
    type Output = ();
    const HAS_AVX512_VERSION: bool = C::HAS_AVX512_VERSION;
    #[inline(always)]
    fn run(self) {
        let AccumulateRowLoop(totals, values, out, _) = self;
        let mut marks = C::HighestBitFlag::default();
        for ((total, v), out) in totals.iter_mut().zip(values).zip(out.iter_mut()) {
            *total = C::combine_accumulators(*total, C::to_accumulator(*v));
            *out = C::to_element(*total);
            marks = marks | C::needs_sequential_flag(*out);
        }
        if marks.is_highest_bit_set() {
            for (total, out) in totals.iter_mut().zip(out).filter(|(_, out)| C::needs_sequential_scan(**out)) {
                *total = C::to_accumulator(*out);
            }
        }
    }
}

/// Scans along an axis that is not the last, row by row for a block of columns. The accumulators are separate from the output, so that
/// 16-bit floats are not rounded at each row.
fn scan_columns<T: ScanElement, C: ScanOperation<T>>(
    compiled: &CompiledProgram,
    out: &mut [T],
    len: usize,
    inner: usize,
    cost: usize,
) -> Result<()> {
    let stretches = out.len() / (len * inner);
    let wanted = (threads::threads_for_cost(cost) * 4).div_ceil(stretches);
    let width = inner.div_ceil(wanted).max(MIN_COLUMNS_PER_TASK).min(compiled.tile_len()).min(inner);
    let blocks_across = inner.div_ceil(width);
    let blocks = out.chunks_mut(len * inner).flat_map(|stretch| split_into_column_blocks(stretch, inner, width)).enumerate();
    let blocks = try_collect("scan", blocks)?;
    // If a block spans whole rows, as many rows as fit a tile are evaluated at once.
    let together = if width == inner { (compiled.tile_len() / width).max(1) } else { 1 };
    threads::for_each(
        blocks.into_iter(),
        cost,
        || (Evaluator::new_for_row_bands(compiled), Vec::<C::Total>::new()),
        |(evaluator, totals), (n, mut block)| {
            let (stretch, left) = (n / blocks_across, n % blocks_across * width);
            let width = width.min(inner - left);
            totals.clear();
            for row in (0..len).step_by(together) {
                let rows = together.min(len - row);
                let values = evaluator.evaluate((stretch * len + row) * inner + left, rows * width).typed_slice::<T>();
                for (i, values) in values.chunks_exact(width).enumerate() {
                    let out = block.row(row + i);
                    if totals.is_empty() {
                        totals.extend(values.iter().map(|v| C::to_accumulator(*v)));
                        out.copy_from_slice(values);
                    } else {
                        dispatch_simd(AccumulateRowLoop::<T, C>(totals, values, out, PhantomData));
                    }
                }
            }
        },
    );
    Ok(())
}
