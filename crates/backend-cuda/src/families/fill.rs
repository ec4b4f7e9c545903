//! CUDA kernels of the family `Fill`. Constants are written by the driver's memset if their bytes repeat a pattern of 1, 2 or 4 bytes, else
//! by a kernel. Kernels also write ranges, linear spaces and the diagonals of identity matrices.

use cuprum_core::{Call, DType, Fill, Kind, Outcome, OutputSpec, Result, Scalar, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static FILL_SOURCE: KernelSource = KernelSource { name: "fill.cu", text: include_str!("../kernels/fill.cu") };

/// Returns names and sources of the kernels, for compile checks without a device. The list covers one per dtype.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    DType::ALL.iter().map(|d| FILL_SOURCE.named_source(&[("T", ctype(*d))])).collect()
}

/// Executes `call`, an operation of the kernel family `Fill`, on the device.
pub(crate) fn run_fill(call: &Call) -> Result<Outcome> {
    let (Work::Fill(fill), [spec]) = (&call.work, call.outputs) else { decline!("not a fill of one output") };
    let counted = matches!(fill, Fill::Arange { .. } | Fill::Linspace { .. });
    if counted && !spec.layout.is_c_contiguous() {
        decline!("a range that is not in C order");
    }
    if matches!(fill, Fill::Eye { .. }) && spec.layout.ndim() != 2 {
        decline!("a diagonal of an array that is not 2-D");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    queue_fill(context, *fill, spec, &out).with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

fn queue_fill(context: &'static Context, fill: Fill, spec: &OutputSpec, out: &CudaBuffer) -> crate::Result<()> {
    let (dtype, size) = (spec.dtype, spec.layout.size());
    match fill {
        // A bool array whose values are undefined is set to zeros, because bytes other than 0 and 1 are not valid bools.
        Fill::Undefined if dtype == DType::Bool => context.fill(out.memory(), 0, [0], size),
        Fill::Undefined => Ok(()),
        Fill::Constant(value) => fill_constant(context, out, dtype, size, value),
        Fill::Arange { start, second, step } => {
            let [start, second, step] = [start, second, step].map(|s| widen_scalar(s, dtype));
            let (pointer, count) = (out.pointer(), size as u64);
            let mut args = Args::new();
            args.push(&pointer).push(&count).push(&start).push(&second).push(&step);
            launch_fill_kernel(context, "fill_arange", dtype, count, &mut args)
        }
        Fill::Linspace { start, stop, step, count, endpoint } => {
            let last = if endpoint { (count as u64).wrapping_sub(1) } else { u64::MAX };
            let [start, stop, step] = [start, stop, step].map(|s| s.to_bytes(DType::C128));
            let (pointer, count) = (out.pointer(), size as u64);
            let mut args = Args::new();
            args.push(&pointer).push(&count).push(&last).push(&start).push(&step).push(&stop);
            launch_fill_kernel(context, "fill_linspace", dtype, count, &mut args)
        }
        Fill::Eye { k } => {
            context.fill(out.memory(), 0, [0], out.memory().len())?;
            let [rows, columns] = *spec.layout.shape() else { return Ok(()) };
            let (row, column, count) = locate_diagonal(rows, columns, k);
            let [down, right] = *spec.layout.strides() else { return Ok(()) };
            let first = row as isize * down + column as isize * right;
            let pointer = out.pointer() + first.unsigned_abs() as u64 * dtype.itemsize() as u64;
            fill_strided(context, dtype, pointer, count as u64, (down + right) as i64, Scalar::Int(1))
        }
    }
}

/// Returns the bytes of `value` as `Wide`, the type in which the kernels in fill.cu compute ranges of `dtype`.
fn widen_scalar(value: Scalar, dtype: DType) -> [u8; 16] {
    match dtype.kind() {
        // Integers are passed as 64 bits for every integer dtype, because the kernels' conversion to `dtype` keeps the low bits.
        Kind::Bool | Kind::Signed | Kind::Unsigned => {
            let whole = value.as_int().unwrap_or(value.as_f64() as i128);
            Scalar::Int(whole).to_bytes(DType::U64)
        }
        Kind::Float if dtype != DType::F64 => value.to_bytes(DType::F32),
        _ => value.to_bytes(dtype),
    }
}

/// Returns the row and the column of the first element of diagonal `k` of a matrix, and the number of elements of the diagonal.
fn locate_diagonal(rows: usize, columns: usize, k: i64) -> (usize, usize, usize) {
    let away = usize::try_from(k.unsigned_abs()).unwrap_or(usize::MAX);
    let (row, column) = if k < 0 { (away, 0) } else { (0, away) };
    match (rows.checked_sub(row), columns.checked_sub(column)) {
        (Some(below), Some(beside)) => (row, column, below.min(beside)),
        _ => (0, 0, 0),
    }
}

fn fill_constant(context: &'static Context, out: &CudaBuffer, dtype: DType, size: usize, value: Scalar) -> crate::Result<()> {
    let (bytes, item) = (value.to_bytes(dtype), dtype.itemsize());
    let repeats = |n: usize| bytes[..item].chunks(n).all(|c| *c == bytes[..n]);
    let [a, b, c, d, ..] = bytes;
    match (1..=4).find(|&n| item % n == 0 && repeats(n)) {
        Some(1) => context.fill(out.memory(), 0, [a], size * item),
        Some(2) => context.fill(out.memory(), 0, [a, b], size * item / 2),
        Some(4) => context.fill(out.memory(), 0, [a, b, c, d], size * item / 4),
        _ => fill_strided(context, dtype, out.pointer(), size as u64, 1, value),
    }
}

/// Queues a kernel that writes `value` to `count` elements. The first element is at the address `pointer`, and each next one is `step`
/// elements further.
fn fill_strided(context: &'static Context, dtype: DType, pointer: u64, count: u64, step: i64, value: Scalar) -> crate::Result<()> {
    let value = value.to_bytes(dtype);
    launch_fill_kernel(context, "fill_constant", dtype, count, Args::new().push(&pointer).push(&count).push(&step).push(&value))
}

fn launch_fill_kernel(context: &'static Context, name: &str, dtype: DType, count: u64, args: &mut Args) -> crate::Result<()> {
    let function = FILL_SOURCE.get_or_compile_kernel(context, name, &[("T", ctype(dtype))])?;
    // SAFETY: callers pass the parameters of their kernel in fill.cu. These are an address in the output, from which `count` elements
    // follow, then values of the declared sizes (16 bytes hold any T).
    unsafe {
        function.launch(
            kernel_lookup::grid_for_items(count, DEFAULT_THREADS_PER_BLOCK),
            [DEFAULT_THREADS_PER_BLOCK, 1, 1],
            0,
            args.pointers(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_computed_wide() {
        assert_eq!(widen_scalar(Scalar::Int(-1), DType::I8)[..9], [255, 255, 255, 255, 255, 255, 255, 255, 0]);
        assert_eq!(widen_scalar(Scalar::Float(-2.7), DType::Bool)[..8], (-2i64).to_le_bytes());
        assert_eq!(widen_scalar(Scalar::Float(0.1), DType::F16)[..4], 0.1f32.to_le_bytes());
        assert_eq!(widen_scalar(Scalar::Int(2), DType::C64)[..8], [0, 0, 0, 64, 0, 0, 0, 0]);
    }

    #[test]
    fn diagonals_start_at_the_edge() {
        assert_eq!(locate_diagonal(3, 4, 0), (0, 0, 3));
        assert_eq!(locate_diagonal(3, 4, 1), (0, 1, 3));
        assert_eq!(locate_diagonal(3, 4, 2), (0, 2, 2));
        assert_eq!(locate_diagonal(3, 4, -1), (1, 0, 2));
        assert_eq!(locate_diagonal(3, 4, 4).2, 0);
        assert_eq!(locate_diagonal(3, 4, 5).2, 0);
        assert_eq!(locate_diagonal(3, 4, i64::MIN).2, 0);
        assert_eq!(locate_diagonal(3, 4, i64::MAX).2, 0);
    }
}
