//! CUDA kernels of the family `Sparse`: products of matrices in compressed row format (CSR) with dense vectors, dense matrices and each
//! other. In products with dense arrays, a team of up to 32 threads shares each short row. A warp or a whole block shares each longer row.
//!
//! This family has no kernels for sampled products and triangular solves. Dispatch runs these operations as compositions of other
//! operations.

mod sparse_product;

use cuprum_core::call::Sparse;
use cuprum_core::{Array, Call, DType, DeclineReason, Outcome, Result, StoredArray, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource};

static SPARSE_SOURCE: KernelSource =
    KernelSource { name: "sparse.cu", text: concat!(include_str!("../kernels/sparse.cuh"), include_str!("../kernels/sparse.cu")) };

/// Maximum number of blocks in the y dimension of a grid.
const MAX_GRID_Y: usize = 65_535;

/// Returns the dtype in which products and sums of `dtype` are computed. Signed integers use the unsigned type of the same size, whose
/// overflow is defined to wrap.
fn wrapping_arithmetic_dtype(dtype: DType) -> DType {
    match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        other => other,
    }
}

/// The number of threads that share a row, and the number of columns that each thread computes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SparseKernelConfig {
    team: usize,
    per: usize,
}

impl SparseKernelConfig {
    /// Returns the kernel configuration for the product of a vector and a sparse matrix with `elements` stored elements and `rows` rows. In
    /// a row of mean length, each thread multiplies about 4 elements, or 2 if rows are long, so that more threads load elements at once.
    fn config_for_vector_product(elements: usize, rows: usize) -> SparseKernelConfig {
        let mean = elements / rows.max(1);
        let per_thread = if mean < 32 { 4 } else { 2 };
        SparseKernelConfig { team: 1 << (mean / per_thread).clamp(1, 32).ilog2(), per: 1 }
    }

    /// Returns the kernel configuration for the product of a sparse matrix and a dense matrix of `width` columns.
    fn config_for_matrix_product(width: usize) -> SparseKernelConfig {
        let team = width.next_power_of_two().min(32);
        SparseKernelConfig { team, per: (width / team).next_power_of_two().clamp(1, 4) }
    }

    fn kernel_defines(self, dtype: DType, index: DType) -> [(&'static str, &'static str); 4] {
        let number = |n: usize| ["1", "2", "4", "8", "16", "32"][(n.max(1).ilog2() as usize).min(5)];
        [("T", ctype(wrapping_arithmetic_dtype(dtype))), ("I", ctype(index)), ("TEAM", number(self.team)), ("PER", number(self.per))]
    }
}

/// Returns the maximum length of rows that one team of threads multiplies by a dense matrix. With several teams per row, rows of about
/// equal length take longer, but one team takes too long for the longest rows of skewed matrices.
fn max_row_length_per_team(elements: usize, rows: usize) -> usize {
    (2 * (elements / rows.max(1)).clamp(16, 128)).next_power_of_two()
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype, and several shapes.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let shapes = [(1, 1), (8, 1), (32, 4), (2, 1), (32, 2), (16, 1), (4, 1)].into_iter().cycle();
    let listed = compile_check_dtypes().zip(shapes);
    let dense = listed
        .map(|((dtype, index), (team, per))| SPARSE_SOURCE.named_source(&SparseKernelConfig { team, per }.kernel_defines(dtype, index)));
    dense.chain(sparse_product::sources_for_compile_check()).collect()
}

/// Returns the dtypes and index types of the sources that are compiled in checks without a device: every dtype, and both index types.
fn compile_check_dtypes() -> impl Iterator<Item = (DType, DType)> {
    let dtypes = DType::ALL.into_iter().filter(|d| !matches!(d, DType::F16 | DType::BF16) && wrapping_arithmetic_dtype(*d) == *d);
    dtypes.zip([DType::I32, DType::I64].into_iter().cycle())
}

/// Returns the macro definitions of kernels that depend on the dtypes alone.
fn dtype_defines(dtype: DType, index: DType) -> [(&'static str, &'static str); 2] {
    [("T", ctype(wrapping_arithmetic_dtype(dtype))), ("I", ctype(index))]
}

/// Checks the dtypes and layouts of the inputs of a product of a matrix with `b`. The first inputs are `indptr` and `indices`. The error is
/// the reason why this kernel family does not compute the product.
fn check_product_inputs(inputs: &[StoredArray], values: DType, b: DType) -> std::result::Result<(), DeclineReason> {
    if matches!(values, DType::F16 | DType::BF16) || values != b {
        return Err(DeclineReason::new("values of 16-bit floats, or of two dtypes"));
    }
    if !matches!(inputs[1].dtype(), DType::I32 | DType::I64) || inputs[0].dtype() != inputs[1].dtype() {
        return Err(DeclineReason::new("indices that are neither int32 nor int64"));
    }
    if inputs.iter().any(|a| !a.layout().is_c_contiguous()) {
        return Err(DeclineReason::new("an array that is not contiguous"));
    }
    Ok(())
}

/// Executes `call`, an operation of the kernel family `Sparse`, on the device.
pub fn run_sparse_operation(call: &Call) -> Result<Outcome> {
    if let Work::Sparse(Sparse::Product { columns }) = call.work {
        return sparse_product::run_sparse_product(call, columns);
    }
    let (Work::Sparse(Sparse::Multiply), [indptr, indices, values, b], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("a sampled product or a triangular solve");
    };
    if let Err(reason) = check_product_inputs(call.inputs, values.dtype(), b.dtype()) {
        return Ok(Outcome::Declined(reason));
    }
    if spec.dtype != b.dtype() || !spec.layout.is_c_contiguous() {
        decline!("an output of another dtype or layout");
    }
    let (columns, width) = match b.shape() {
        [columns] => (*columns, None),
        [columns, width] => (*columns, Some(*width)),
        _ => decline!("a dense array of more than two axes"),
    };
    let (rows, count) = (indptr.layout().size().saturating_sub(1), indices.layout().size());
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let mut addresses = [out.pointer(), 0, 0, 0, 0];
    for (address, input) in addresses[1..].iter_mut().zip(call.inputs) {
        *address = device::pointer_to_read(input)?;
    }
    let op = device::fault_operation_id(call.op, 1);
    let queue = || {
        let (name, shape) = match width {
            None => ("csr_times_vector", SparseKernelConfig::config_for_vector_product(count, rows)),
            Some(width) => ("csr_times_matrix", SparseKernelConfig::config_for_matrix_product(width)),
        };
        let function = SPARSE_SOURCE.get_or_compile_kernel(context, name, &shape.kernel_defines(values.dtype(), indices.dtype()))?;
        let fault = context.fault_pointer()?;
        let teams = DEFAULT_THREADS_PER_BLOCK as usize / shape.team;
        let across = width.map_or(1, |width| width.div_ceil(shape.team * shape.per).min(MAX_GRID_Y));
        let down = u32::try_from(rows.div_ceil(teams)).unwrap_or(u32::MAX).clamp(1, i32::MAX.unsigned_abs());
        let mut args = Args::new();
        for address in &addresses {
            args.push(address);
        }
        let max_row_length_per_team = max_row_length_per_team(count, rows);
        args.push(&rows).push(&columns).push(&count);
        if let Some(width) = &width {
            args.push(width).push(&max_row_length_per_team);
        }
        args.push(&fault).push(&op);
        // SAFETY: the arguments match the kernel. `indptr` has `rows + 1` elements, `indices` and `values` have `count`, `b` has `columns`
        // rows, the output has `rows` rows, and both have `width` elements per row (1 for vectors). The kernel checks every number in
        // `indptr` and `indices`.
        unsafe { function.launch([down, across as u32, 1], [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    };
    queue().with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_mean_length_and_the_width() {
        assert_eq!(SparseKernelConfig::config_for_vector_product(100, 100).team, 1);
        assert_eq!(SparseKernelConfig::config_for_vector_product(24_000, 1000).team, 4);
        assert_eq!(SparseKernelConfig::config_for_vector_product(32_000, 1000).team, 16);
        assert_eq!(SparseKernelConfig::config_for_vector_product(usize::MAX, 1).team, 32);
        assert_eq!(SparseKernelConfig::config_for_vector_product(5, 0).team, 1);
        assert_eq!(SparseKernelConfig::config_for_matrix_product(1), SparseKernelConfig { team: 1, per: 1 });
        assert_eq!(SparseKernelConfig::config_for_matrix_product(20), SparseKernelConfig { team: 32, per: 1 });
        assert_eq!(SparseKernelConfig::config_for_matrix_product(64), SparseKernelConfig { team: 32, per: 2 });
        assert_eq!(SparseKernelConfig::config_for_matrix_product(1000), SparseKernelConfig { team: 32, per: 4 });
    }
}
