//! CUDA kernels of the family `Contract`: strided, batched matrix products. cuBLAS computes most products of floats and complex numbers.
//! The kernels of this crate compute products of integers and bool, inner products, products of a vector with overlapping windows, and
//! products that cuBLAS refuses. Without cuBLAS, they compute all products. An operand whose axes do not form a matrix is first copied to a
//! layout in which they do.

#[allow(unsafe_code)] // cuBLAS's C interface
pub mod cublas;

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::layout::{Layout, Strides};
use cuprum_core::plan::contract::{ContractPlan, Gemm};
use cuprum_core::{Array, Call, DType, MatmulPrecision, Outcome, Result, StoredArray, Work, decline, matmul_precision};
use smallvec::SmallVec;

use crate::codegen::{ctype, pack_axes};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::error::CudaError;
use crate::families::copy;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};
use cublas::{BlasType, DeviceCublas, Transpose};

static CONTRACT_SOURCE: KernelSource = KernelSource { name: "contract.cu", text: include_str!("../kernels/contract.cu") };

/// Number of rows and columns of an output tile of the kernel `contract_tiled`.
const OUTPUT_TILE_SIDE: usize = 64;
/// Minimum number of results per block of the kernel `contract_sliding_windows`.
const MIN_RESULTS_PER_WINDOW_BLOCK: usize = 4 * DEFAULT_THREADS_PER_BLOCK as usize;
/// Intended length of a partial sum of the kernel `contract_dot`, in products. Partial sums are longer if [`MAX_PARTIAL_SUMS`] limits their
/// number.
const PARTIAL_SUM_LENGTH: usize = 2048;
/// Maximum number of partial sums per result. If there are more results than this number, each result is a single sum.
const MAX_PARTIAL_SUMS: usize = 4096;
/// Maximum number of cuBLAS calls for one contraction. If a contraction needs more, operands are packed so that fewer calls suffice.
const MAX_BLAS_CALLS: usize = 32;

/// Returns the C++ type of elements of `dtype`. Signed integers use unsigned types, whose overflow is defined to wrap.
fn wrapping_cpp_type(dtype: DType) -> &'static str {
    ctype(match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        other => other,
    })
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every element type, with several numbers
/// of batch axes.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let types = DType::ALL.iter().filter(|d| wrapping_cpp_type(**d) == ctype(**d)).enumerate();
    types.map(|(i, d)| CONTRACT_SOURCE.named_source(&[("T", ctype(*d)), ("BATCH", ["0", "1", "2"][i % 3])])).collect()
}

/// Executes `call`, an operation of the kernel family `Contract`, on the device.
pub(crate) fn run_contraction(call: &Call) -> Result<Outcome> {
    let (Work::Contract(call::Contract { plan }), [a, b], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a contraction of two arrays");
    };
    let dtype = spec.dtype;
    if a.dtype() != dtype || b.dtype() != dtype {
        decline!("operands whose dtype is not the result's");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let c = StoredArray::new(dtype, spec.layout.clone(), out.clone() as Arc<dyn Buffer>)?;
    if let Some(product) = plan.as_gemm(a.layout(), b.layout(), c.layout()).filter(reads_overlapping_windows) {
        launch_window_product(context, &product, [&c, a, b])?.with_call_context(call)?;
        return device::outcome_from_buffers(call, [out]);
    }
    let is_done = match cublas_if_faster(context, plan, dtype).with_call_context(call)? {
        Some((blas, kind)) => {
            let Some(arranged) =
                PackedOperands::choose_operands_to_pack(plan, a, b, &c, |gemm| column_major_and_batch_axis(gemm).is_some())
            else {
                decline!("the axes do not form a matrix product");
            };
            let precision = matmul_precision()?;
            arranged.try_run_with_packed_operands(call, |gemm, addresses| {
                let queued =
                    cublas::none_if_refused(queue_blas_products(blas, kind, precision, gemm, addresses)).with_call_context(call)?;
                Ok(queued.is_some())
            })?
        }
        None => false,
    };
    // If cuBLAS refuses one of several calls, other calls may be queued already. The kernels of this crate overwrite the results of these
    // calls, because they write every element of the output.
    if !is_done {
        let Some(arranged) = PackedOperands::choose_operands_to_pack(plan, a, b, &c, |_| true) else {
            decline!("the axes do not form a matrix product")
        };
        arranged.try_run_with_packed_operands(call, |gemm, addresses| {
            launch_product_kernel(call, context, dtype, gemm, addresses).map(|()| true)
        })?;
    }
    device::outcome_from_buffers(call, [out])
}

/// Returns whether `gemm` multiplies all overlapping windows of a contiguous array by one contiguous vector.
fn reads_overlapping_windows(gemm: &Gemm) -> bool {
    let is_vector = gemm.n == 1 && gemm.batch.is_empty() && gemm.b[0] == 1 && gemm.c[0] == 1;
    is_vector && gemm.a == [1, 1] && gemm.m > 1 && gemm.k > 1
}

/// Launches the kernel for overlapping windows. `arrays` are the arrays c, a and b of the product c = a @ b.
fn launch_window_product(context: &'static Context, gemm: &Gemm, arrays: [&StoredArray; 3]) -> Result<crate::Result<()>> {
    let dtype = wrapping_cpp_type(arrays[0].dtype());
    let [c, a, b] = [device::pointer_to_read(arrays[0])?, device::pointer_to_read(arrays[1])?, device::pointer_to_read(arrays[2])?];
    let launch = || {
        let function = CONTRACT_SOURCE.get_or_compile_kernel(context, "contract_sliding_windows", &[("T", dtype), ("BATCH", "0")])?;
        let mut args = Args::new();
        args.push(&c).push(&a).push(&b).push(&gemm.m).push(&gemm.k);
        let grid = kernel_lookup::grid_for_items(gemm.m.div_ceil(MIN_RESULTS_PER_WINDOW_BLOCK) as u64, 1);
        // SAFETY: the arguments match contract_sliding_windows. The layouts were checked against their buffers: `a` has m + k - 1 elements
        // from its offset on, `b` has k and `c` has m.
        unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    };
    Ok(launch())
}

/// Returns cuBLAS if it is installed, supports the device and `dtype`, and is faster than this crate's kernels. Otherwise returns `None`.
/// cuBLAS is slower for inner products, because it computes each in a single block.
fn cublas_if_faster(
    context: &'static Context,
    plan: &ContractPlan,
    dtype: DType,
) -> crate::Result<Option<(&'static DeviceCublas, BlasType)>> {
    let kind = match dtype {
        DType::F16 => BlasType::F16,
        DType::BF16 => BlasType::Bf16,
        DType::F32 => BlasType::F32,
        DType::F64 => BlasType::F64,
        DType::C64 => BlasType::C64,
        DType::C128 => BlasType::C128,
        _ => return Ok(None),
    };
    if plan.total_extent(&plan.m) * plan.total_extent(&plan.n) == 1 {
        return Ok(None);
    }
    match cublas::none_if_refused(context.blas()) {
        Err(CudaError::Missing(why)) => {
            tracing::debug!(%why, "matrix product without cuBLAS");
            Ok(None)
        }
        found => Ok(found?.map(|blas| (blas, kind))),
    }
}

/// The operands of a matrix product, in layouts that the product accepts. Operands in other layouts are packed, that is, copied.
struct PackedOperands<'a> {
    /// The arrays a, b and c as given.
    arrays: [&'a StoredArray; 3],
    /// The layouts in which the product reads a and b and writes c.
    layouts: [Layout; 3],
    /// For each of a, b and c, whether a temporary copy takes its place in the product.
    packed: [bool; 3],
    gemm: Gemm,
}

impl<'a> PackedOperands<'a> {
    /// Chooses the operands to pack, so that `fits` accepts the matrix product and the fewest elements are copied. Returns `None` if `fits`
    /// accepts no choice.
    fn choose_operands_to_pack(
        plan: &ContractPlan,
        a: &'a StoredArray,
        b: &'a StoredArray,
        c: &'a StoredArray,
        fits: impl Fn(&Gemm) -> bool,
    ) -> Option<PackedOperands<'a>> {
        let arrays = [a, b, c];
        let (layouts, packed, gemm) = find_packing_that_fits(plan, arrays.map(StoredArray::layout), fits)?;
        Some(PackedOperands { arrays, layouts, packed, gemm })
    }

    /// Calls `product` with the addresses of a, b and c. Operands that the plan marks for packing are copied to temporary arrays first. If
    /// c is marked, the result is copied to c afterwards. Returns `false` if `product` returns `false`, and the output is then not
    /// computed. The temporary arrays are freed in stream order, after the work that uses them.
    fn try_run_with_packed_operands(&self, call: &Call, product: impl FnOnce(&Gemm, [u64; 3]) -> Result<bool>) -> Result<bool> {
        let mut operands = SmallVec::<[StoredArray; 3]>::new();
        for (n, array) in self.arrays.iter().enumerate() {
            if !self.packed[n] {
                operands.push((*array).clone());
                continue;
            }
            let memory = device::allocate(call, array.layout().size().saturating_mul(array.dtype().itemsize()))?;
            let temporary = StoredArray::new(array.dtype(), self.layouts[n].clone(), memory)?;
            if n < 2 {
                copy::queue_copy(call, array, &temporary)?;
            }
            operands.push(temporary);
        }
        let [a, b, c] = [&operands[0], &operands[1], &operands[2]];
        let is_done = product(&self.gemm, [device::pointer_to_read(a)?, device::pointer_to_read(b)?, device::pointer_to_read(c)?])?;
        if is_done && self.packed[2] {
            copy::queue_copy(call, c, self.arrays[2])?;
        }
        Ok(is_done)
    }
}

type Packing = ([Layout; 3], [bool; 3], Gemm);

/// Chooses which of the operands a, b and c to pack. Returns their layouts, whether each operand is packed, and the product. Returns `None`
/// if `fits` accepts the product for no choice. Tries all choices, in ascending order of the number of packed elements.
fn find_packing_that_fits(plan: &ContractPlan, given: [&Layout; 3], fits: impl Fn(&Gemm) -> bool) -> Option<Packing> {
    let orders = [plan.packed_operand_axis_order(false), plan.packed_operand_axis_order(true), plan.packed_output_axis_order()];
    let mut choices: [[bool; 3]; 8] = std::array::from_fn(|i| [i & 1 != 0, i & 2 != 0, i & 4 != 0]);
    let cost = |choice: &[bool; 3]| -> usize { (0..3).filter(|&n| choice[n]).map(|n| given[n].size()).sum() };
    choices.sort_by_key(cost);
    choices.into_iter().find_map(|packed| {
        let layout = |n: usize| {
            if packed[n] { Layout::contiguous_in_order(given[n].shape(), &orders[n]).ok() } else { Some(given[n].clone()) }
        };
        let layouts = [layout(0)?, layout(1)?, layout(2)?];
        let gemm = plan.as_gemm(&layouts[0], &layouts[1], &layouts[2]).filter(&fits)?;
        Some((layouts, packed, gemm))
    })
}

/// A matrix product in cuBLAS's column-major convention.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ColumnMajorProduct {
    /// Whether cuBLAS computes the transposed product b^T a^T, with b as its first operand.
    swapped: bool,
    transpose: (Transpose, Transpose),
    m: usize,
    n: usize,
    lda: i64,
    ldb: i64,
    ldc: i64,
}

/// Returns the leading dimension of a matrix. `down` is the stride between consecutive elements of a column, `along` the stride between
/// consecutive elements of a row. Returns `None` if cuBLAS does not accept the matrix as column-major.
fn column_major_leading_dimension(rows: usize, columns: usize, [down, along]: [isize; 2]) -> Option<i64> {
    let least = rows.max(1) as i64;
    let lead = if columns == 1 { least } else { along as i64 };
    ((down == 1 || rows == 1) && lead >= least).then_some(lead)
}

/// Returns the transpose flag and leading dimension of a matrix. `down` is the stride between consecutive elements of a column, `along` the
/// stride between consecutive elements of a row. Returns `None` if cuBLAS does not accept the matrix.
fn blas_operand_layout(rows: usize, columns: usize, [down, along]: [isize; 2]) -> Option<(Transpose, i64)> {
    let plain = column_major_leading_dimension(rows, columns, [down, along]).map(|lead| (Transpose::No, lead));
    plain.or_else(|| column_major_leading_dimension(columns, rows, [along, down]).map(|lead| (Transpose::Yes, lead)))
}

fn column_major_product(gemm: &Gemm) -> Option<ColumnMajorProduct> {
    let &Gemm { m, n, k, a, b, c, .. } = gemm;
    let transposed = |[x, y]: [isize; 2]| [y, x];
    let product = |swapped: bool, m: usize, n: usize, a: [isize; 2], b: [isize; 2], c: [isize; 2]| {
        let ((ta, lda), (tb, ldb)) = (blas_operand_layout(m, k, a)?, blas_operand_layout(k, n, b)?);
        Some(ColumnMajorProduct { swapped, transpose: (ta, tb), m, n, lda, ldb, ldc: column_major_leading_dimension(m, n, c)? })
    };
    // Tries b^T a^T first, because its column-major result is the row-major result of a b.
    product(true, n, m, transposed(b), transposed(a), transposed(c)).or_else(|| product(false, m, n, a, b, c))
}

/// Returns the column-major form of `gemm`, and the batch axis that a single cuBLAS call covers, if any. The other batch axes need one call
/// for each combination of their indices. Returns `None` if cuBLAS does not accept the strides, or if there are more than
/// [`MAX_BLAS_CALLS`] calls.
fn column_major_and_batch_axis(gemm: &Gemm) -> Option<(ColumnMajorProduct, Option<usize>)> {
    let form = column_major_product(gemm)?;
    let [a, b, c] = &gemm.batch_strides;
    let steps = |axis: &usize| a[*axis] >= 0 && b[*axis] >= 0 && c[*axis] > 0;
    let axis = (0..gemm.batch.len()).filter(steps).max_by_key(|&axis| gemm.batch[axis]);
    let count: usize = (0..gemm.batch.len()).filter(|&d| Some(d) != axis).map(|d| gemm.batch[d]).product();
    (count <= MAX_BLAS_CALLS).then_some((form, axis))
}

/// Returns the cuBLAS calls that compute `gemm` on operands at the addresses `a`, `b` and `c`, or `None` if [`column_major_and_batch_axis`]
/// returns `None`.
fn make_blas_calls(dtype: BlasType, precision: MatmulPrecision, gemm: &Gemm, [a, b, c]: [u64; 3]) -> Option<SmallVec<[cublas::Gemm; 1]>> {
    let (form, axis) = column_major_and_batch_axis(gemm)?;
    let item = match dtype {
        BlasType::F16 | BlasType::Bf16 => 2,
        BlasType::F32 => 4,
        BlasType::F64 | BlasType::C64 => 8,
        BlasType::C128 => 16,
    };
    let (first, second) = if form.swapped { (1, 0) } else { (0, 1) };
    let stride = |operand: usize| axis.map_or(0, |axis| gemm.batch_strides[operand][axis] as i64);
    let outer: SmallVec<[usize; 6]> = (0..gemm.batch.len()).filter(|&d| Some(d) != axis).collect();
    let count: usize = outer.iter().map(|&d| gemm.batch[d]).product();
    let product = |number: usize| {
        let (mut at, mut rest) = ([a, b, c], number);
        for &d in outer.iter().rev() {
            let i = (rest % gemm.batch[d]) as i64;
            rest /= gemm.batch[d];
            for (operand, address) in at.iter_mut().enumerate() {
                *address = address.wrapping_add_signed(gemm.batch_strides[operand][d] as i64 * i * item);
            }
        }
        cublas::Gemm {
            dtype,
            transpose: form.transpose,
            m: form.m as i64,
            n: form.n as i64,
            k: gemm.k as i64,
            alpha: (1.0, 0.0),
            a: at[first],
            lda: form.lda,
            stride_a: stride(first),
            b: at[second],
            ldb: form.ldb,
            stride_b: stride(second),
            beta: (0.0, 0.0),
            c: at[2],
            ldc: form.ldc,
            stride_c: stride(2),
            batch: axis.map_or(1, |axis| gemm.batch[axis] as i64),
            precision,
        }
    };
    Some((0..count).map(product).collect())
}

fn queue_blas_products(
    blas: &DeviceCublas,
    dtype: BlasType,
    precision: MatmulPrecision,
    gemm: &Gemm,
    addresses: [u64; 3],
) -> crate::Result<()> {
    let products = make_blas_calls(dtype, precision, gemm, addresses);
    for product in products.ok_or_else(|| CudaError::Invalid(format!("not a cuBLAS product: {gemm:?}")))? {
        // SAFETY: extents and strides come from layouts that were checked against the operands' buffers. The buffers live until
        // this work is queued.
        unsafe { blas.gemm_strided_batched_ex(&product) }?;
    }
    Ok(())
}

/// Returns the extents and strides of `gemm` in the layout of the C++ struct `ProductLayout` in contract.cu.
fn product_layout_fields(gemm: &Gemm) -> [i64; 9] {
    let extents = [gemm.m, gemm.n, gemm.k].map(|n| n as i64);
    let strides = [gemm.a, gemm.b, gemm.c].map(|s| s.map(|s| s as i64));
    let mut out = [0; 9];
    out[..3].copy_from_slice(&extents);
    out[3..].copy_from_slice(strides.as_flattened());
    out
}

/// Returns whether the kernel with one warp per result (`contract_dot`) is faster than the kernel with output tiles (`contract_tiled`). One
/// warp per result is faster for few results, and for products of a matrix with few vectors if both operands are contiguous along k.
fn prefers_warp_per_result(gemm: &Gemm) -> bool {
    let along_k = gemm.a[1] == 1 && gemm.b[0] == 1;
    gemm.m.saturating_mul(gemm.n) <= OUTPUT_TILE_SIDE || (gemm.m.min(gemm.n) <= 4 && along_k)
}

/// Returns the number of parts into which each of `results` sums of `k` products is split, so that enough warps run at once.
fn partial_sum_count(k: usize, results: usize) -> usize {
    if results > MAX_PARTIAL_SUMS { 1 } else { k.div_ceil(PARTIAL_SUM_LENGTH).min(MAX_PARTIAL_SUMS) }
}

fn launch_product_kernel(call: &Call, context: &'static Context, dtype: DType, gemm: &Gemm, [a, b, c]: [u64; 3]) -> Result<()> {
    let rank = gemm.batch.len().to_string();
    let defines = [("T", wrapping_cpp_type(dtype)), ("BATCH", rank.as_str())];
    let strides: [&Strides; 3] = gemm.batch_strides.each_ref();
    let (sizes, batch) = (product_layout_fields(gemm), pack_axes(&gemm.batch, strides.map(|s| &s[..]), true));
    let batches: usize = gemm.batch.iter().product();
    let mut args = Args::new();
    if !prefers_warp_per_result(gemm) {
        let tiles = (batches * gemm.m.div_ceil(OUTPUT_TILE_SIDE) * gemm.n.div_ceil(OUTPUT_TILE_SIDE)) as u64;
        let function = CONTRACT_SOURCE.get_or_compile_kernel(context, "contract_tiled", &defines).with_call_context(call)?;
        args.push(&c).push(&a).push(&b).push(&sizes).push(&batches).push_bytes(&batch);
        // SAFETY: the arguments match contract_tiled. Extents and strides come from layouts that were checked against their buffers.
        return unsafe { function.launch(kernel_lookup::grid_for_items(tiles, 1), [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
            .with_call_context(call);
    }
    let results = batches * gemm.m * gemm.n;
    let splits = partial_sum_count(gemm.k, results);
    // 16 bytes are the size of the largest accumulator, a complex128.
    let memory = if splits > 1 { Some(device::allocate(call, results * splits * 16)?) } else { None };
    let partial = memory.as_ref().map_or(0, |buffer| buffer.pointer());
    let function = CONTRACT_SOURCE.get_or_compile_kernel(context, "contract_dot", &defines).with_call_context(call)?;
    args.push(&c).push(&partial).push(&a).push(&b).push(&sizes).push(&results).push(&splits).push_bytes(&batch);
    let grid = kernel_lookup::grid_for_items(32 * (results * splits) as u64, DEFAULT_THREADS_PER_BLOCK);
    // SAFETY: the arguments match contract_dot. If splits > 1, `partial` holds results * splits accumulators.
    unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }.with_call_context(call)?;
    if splits > 1 {
        let function = CONTRACT_SOURCE.get_or_compile_kernel(context, "contract_add_partial_sums", &defines).with_call_context(call)?;
        let mut args = Args::new();
        args.push(&c).push(&partial).push(&sizes).push(&results).push(&splits).push_bytes(&batch);
        // SAFETY: the arguments match contract_add_partial_sums. `partial` holds the partial sums, which the previous kernel writes.
        unsafe {
            function.launch(
                kernel_lookup::grid_for_items(32 * results as u64, DEFAULT_THREADS_PER_BLOCK),
                [DEFAULT_THREADS_PER_BLOCK, 1, 1],
                0,
                args.pointers(),
            )
        }
        .with_call_context(call)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
