//! Matrix-vector products as reductions of `matrix * vector`. The matrix is read only once, so memory bandwidth bounds the speed. Sums
//! are pairwise and independent of the number of threads.

use cuprum_core::array::Array;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::ops::elementwise::MULTIPLY;
use cuprum_core::plan::contract::Gemm;
use cuprum_core::{DType, Program, Result, StepKind, StoredArray};
use cuprum_cpu_base::cache_hints::benefits_from_prefetch;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use smallvec::SmallVec;

use super::sliding_windows::multiply_sliding_windows;
use crate::program_evaluation::{CompiledProgram, LoopNest, ResultDestination};
use crate::reduce::{Arithmetic, ReductionLoopOrder, dot_products, try_sum_program_values};

/// Minimum number of products per result for the functions of this module. For shorter sums, the fixed cost per result dominates.
const MIN_PRODUCTS_PER_RESULT: usize = 16;

/// Number of matrix rows that are summed at the same time on processors that benefit from prefetching. Other processors take half as many,
/// because rows a power of two apart share a set of the first-level cache, which has eight ways.
const INTERLEAVED_LINES: usize = 8;

/// Computes the product `g` if one operand is a vector, the sums are long enough, and the results are contiguous from the start of `c`. In
/// all other cases, and for bool, returns `false` without writing.
pub(super) fn try_multiply_matrix_vector(g: &Gemm, a: &StoredArray, b: &StoredArray, c_offset: usize, mut c: ElementsMut) -> Result<bool> {
    let dtype = a.dtype();
    if (g.m > 1 && g.n > 1) || dtype == DType::Bool || c_offset != 0 {
        return Ok(false);
    }
    // The matrix has `len` lines (rows or columns), one per result. A result is the sum of the products of a line with the vector, along
    // the summed axis k.
    let (len, line, k, c_line) = match g.n {
        1 => (g.m, [g.a[0], 0], [g.a[1], g.b[0]], g.c[0]),
        _ => (g.n, [0, g.b[1]], [g.a[1], g.b[0]], g.c[1]),
    };
    let matrix = if g.n == 1 { 0 } else { 1 };
    let has_plain_lines = g.batch.is_empty() && k == [1, 1] && line[matrix] >= 0 && matches!(dtype, DType::F32 | DType::F64);
    // Matrix rows that start one element apart are overlapping windows of a signal.
    let has_windows = has_plain_lines && line[matrix] == 1 && len > 1;
    if g.k < MIN_PRODUCTS_PER_RESULT && !has_windows {
        return Ok(false);
    }
    let mut step = 1;
    let in_order = (len == 1 || c_line == 1) && {
        step *= len as isize;
        g.batch.iter().zip(&g.batch_strides[2]).rev().all(|(&n, &s)| (n == 1 || s == step, step *= n as isize).0)
    };
    if !in_order {
        return Ok(false);
    }
    // The inner loop runs along the axis in which the matrix is contiguous, so that memory is read in order.
    let by_columns = g.batch.is_empty() && len > 1 && line[matrix].unsigned_abs() < k[matrix].unsigned_abs();
    let dims: Dims = match by_columns {
        true => [g.k, len].into_iter().collect(),
        false => g.batch.iter().copied().chain([len, g.k]).collect(),
    };
    let strides = |n: usize| -> Strides {
        match by_columns {
            true => [k[n], line[n]].into_iter().collect(),
            false => g.batch_strides[n].iter().copied().chain([line[n], k[n]]).collect(),
        }
    };
    if has_windows || (has_plain_lines && len >= 4 * threads::max_threads()) {
        let (m, v) = if matrix == 0 { (a, b) } else { (b, a) };
        let pitch = line[matrix] as usize;
        let m = Elements::from_whole_buffer(m)?.slice(m.layout().offset(), (len - 1) * pitch + g.k);
        let v = Elements::from_whole_buffer(v)?.slice(v.layout().offset(), g.k);
        match dtype {
            DType::F32 if has_windows => multiply_sliding_windows::<f32>(m.typed_slice(), v.typed_slice(), c.slice(0, len).typed_slice()),
            DType::F64 if has_windows => multiply_sliding_windows::<f64>(m.typed_slice(), v.typed_slice(), c.slice(0, len).typed_slice()),
            DType::F32 => dot_each_line::<f32>(m.typed_slice(), v.typed_slice(), pitch, c.slice(0, len).typed_slice()),
            _ => dot_each_line::<f64>(m.typed_slice(), v.typed_slice(), pitch, c.slice(0, len).typed_slice()),
        }
        return Ok(true);
    }
    let mut program = Program::default();
    let args = [0, 1].map(|n| program.push_step(StepKind::Input(n), dtype, &[]));
    let value = program.push_step(StepKind::Apply(MULTIPLY), dtype, &args);
    program.outputs.push(value);
    let inputs: SmallVec<[StoredArray; 2]> = [a.clone(), b.clone()].into_iter().collect();
    let Ok(compiled) = CompiledProgram::new(&program, LoopNest::new(&dims, &inputs, strides)?, ResultDestination::Read) else {
        return Ok(false);
    };
    let results = c.len();
    let order = if by_columns { ReductionLoopOrder::Columns(g.k) } else { ReductionLoopOrder::Rows(g.k) };
    try_sum_program_values(&compiled, dtype, &order, c.slice(0, results))
}

/// Writes to `out` the dot product of `vector` with each line of `matrix`. The lines are contiguous and start `pitch` elements apart.
fn dot_each_line<T: Arithmetic>(matrix: &[T], vector: &[T], pitch: usize, out: &mut [T]) {
    match benefits_from_prefetch() {
        true => dot_interleaved_lines::<T, INTERLEAVED_LINES>(matrix, vector, pitch, out),
        false => dot_interleaved_lines::<T, { INTERLEAVED_LINES / 2 }>(matrix, vector, pitch, out),
    }
}

fn dot_interleaved_lines<T: Arithmetic, const N: usize>(matrix: &[T], vector: &[T], pitch: usize, out: &mut [T]) {
    let cost = out.len().saturating_mul(vector.len());
    let per_task = out.len().div_ceil(threads::threads_for_cost(cost) * 16).next_multiple_of(N);
    threads::for_each(
        out.chunks_mut(per_task).enumerate(),
        cost,
        || (),
        |_, (task, out)| {
            let line = |i: usize| &matrix[(task * per_task + i) * pitch..][..vector.len()];
            let (groups, rest) = out.as_chunks_mut::<N>();
            for (n, group) in groups.iter_mut().enumerate() {
                let lines = std::array::from_fn(|i| line(n * N + i));
                *group = dot_products(lines, vector);
            }
            let first = groups.len() * N;
            for (i, out) in rest.iter_mut().enumerate() {
                [*out] = dot_products([line(first + i)], vector);
            }
        },
    );
}
