//! CUDA kernels of the family `Scan`: cumulative sums, products and extremes along an axis, with the input expression fused.
//!
//! A line is a 1-D slice along the scanned axis. One thread scans each line if lines are short, or adjacent and many. If lines are few and
//! long, they are split into tiles that use decoupled look-back. Otherwise one block scans each line. The order of combination depends on
//! the shape alone.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::op::{Op, ReductionDef};
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::{Call, DType, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, InnermostAxisAccess, KernelKey, device_sources, test_programs};
use crate::compile::module::{Args, Function};
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};

const SCAN_COMMON_SOURCE: &str = include_str!("../kernels/scan.cuh");
const LOOK_BACK_SOURCE: &str = include_str!("../kernels/scan_look_back.cu");
/// Maximum length in elements of a line (a 1-D slice along the scanned axis) that one block scans faster than several blocks.
const MAX_SINGLE_BLOCK_LENGTH: usize = 1 << 15;
/// Maximum number of axes besides the scanned axis, after adjacent axes are merged.
const MAX_UNSCANNED_AXES: usize = 8;

/// The algorithm of a scan. A line is a 1-D slice along the scanned axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScanStrategy {
    /// One thread scans each line (a 1-D slice along the scanned axis).
    ThreadPerLine,
    /// One block scans each line (a 1-D slice along the scanned axis).
    BlockPerLine,
    /// One block scans each tile of a line (a 1-D slice along the scanned axis), with decoupled look-back.
    LookBack,
}

/// Returns the algorithm for `plan`. The choice depends on the shape alone, so the order of combination does not depend on the device.
fn select_strategy(plan: &ScanPlan) -> ScanStrategy {
    let side_by_side = plan.out_line_strides.last() == Some(&1);
    if plan.len <= 32 || (side_by_side && plan.line_count >= 2048) {
        ScanStrategy::ThreadPerLine
    } else if plan.line_count >= 256 || plan.len <= MAX_SINGLE_BLOCK_LENGTH {
        ScanStrategy::BlockPerLine
    } else {
        ScanStrategy::LookBack
    }
}

/// Returns the size of the C++ accumulator type `Acc` for `dtype`, in bytes. 16-bit floats accumulate in float32.
fn accumulator_size(dtype: DType) -> usize {
    if matches!(dtype, DType::F16 | DType::BF16) { 4 } else { dtype.itemsize() }
}

/// Returns the number of elements per tile of a scan with decoupled look-back, as in `scan_look_back.cu`.
fn look_back_tile_length(dtype: DType) -> usize {
    DEFAULT_THREADS_PER_BLOCK as usize * (128 / accumulator_size(dtype).max(4))
}

/// Returns the elementwise operation with which `reduction` combines two values, or `None` if that operation has no C++ expression.
fn combining_operation(reduction: &ReductionDef) -> Option<Op> {
    reduction.elementwise_combination().filter(|op| codegen::cpp_expression(*op).is_some())
}

fn cuda_source(program: &Expression, combine: Op, rank: usize, wide: bool, look_back: bool) -> std::result::Result<String, &'static str> {
    let element = codegen::element_source(program, InnermostAxisAccess::default())?;
    let combine = codegen::cpp_expression(combine).ok_or(combine.name())?.with_arguments(["(a)", "(b)"]);
    let defines = format!("using Index = cuprum::{};\n#define RANK {rank}\n#define COMBINE(a, b) {combine}\n", codegen::index_type(wide));
    let kernels = if look_back {
        [device_sources::RELAXED_ATOMICS_SOURCE, device_sources::FOLD_LOOK_BACK_SOURCE, LOOK_BACK_SOURCE].concat()
    } else {
        include_str!("../kernels/scan.cu").into()
    };
    Ok([codegen::CUDA_PRELUDE, &element, &defines, device_sources::WARP_SHUFFLE_SOURCE, SCAN_COMMON_SOURCE, &kernels].concat())
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers the operations over every dtype, with
/// several ranks and both index widths.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        let (op, rank, wide) = ([ADD, MULTIPLY, MAXIMUM, MINIMUM][n % 4], [0, 1, 3][n % 3], n % 2 == 1);
        for look_back in [false, true] {
            if let Ok(text) = cuda_source(&Expression::identity(dtype), op, rank, wide, look_back) {
                list.push((format!("scan<{}, {dtype}, {rank}, {}, sweep: {look_back}>", op.name(), codegen::index_type(wide)), text));
            }
        }
    }
    for look_back in [false, true] {
        if let Ok(text) = cuda_source(&test_programs::take_program(DType::F64, DType::I32), ADD, 1, false, look_back) {
            list.push((format!("scan<add of take, sweep: {look_back}>"), text));
        }
    }
    list
}

/// Executes `call`, an operation of the kernel family `Scan`, on the device.
pub fn run_scan(call: &Call) -> Result<Outcome> {
    let (Work::Scan(call::Scan { program, reduction, plan, .. }), [spec]) = (&call.work, call.outputs) else {
        decline!("not a scan of one output")
    };
    let Some(combine) = combining_operation(reduction) else { decline!("no CUDA scan for {}", call.op.name()) };
    let rank = plan.lines.len();
    if rank > MAX_UNSCANNED_AXES {
        decline!("{rank} axes around the scanned one, after merging");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let context = device::context(call.device)?;
    let inputs = device::pointers_to_read(call.inputs)?;
    let out = device::allocate_output(call, 0)?;
    let strategy = select_strategy(plan);
    // The buffer starts with the ticket counter, from which blocks take tile numbers. The look-back states of the tiles follow.
    let tiles = plan.len.div_ceil(look_back_tile_length(spec.dtype));
    let state_words = 1 + plan.line_count * device_sources::look_back_state_count(tiles) * accumulator_size(spec.dtype).div_ceil(4);
    let states = if strategy == ScanStrategy::LookBack { Some(device::allocate(call, 8 * state_words)?) } else { None };
    let scan = ScanLaunch { context, program, plan, combine, inputs: &inputs, out: out.pointer() };
    scan.queue_scan(strategy, tiles, states.as_deref()).with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// The arguments of one launch of a scan kernel.
struct ScanLaunch<'a> {
    context: &'static Context,
    program: &'a Expression,
    plan: &'a ScanPlan,
    combine: Op,
    inputs: &'a [u64],
    out: u64,
}

impl ScanLaunch<'_> {
    /// Returns the strides along the scanned axis, in elements: the strides of the inputs, then the stride of the output.
    fn scan_axis_strides(&self) -> SmallVec<[isize; 5]> {
        self.plan.axis_strides.iter().copied().chain([self.plan.out_axis_stride]).collect()
    }

    /// Returns whether indices and offsets need 64 bits.
    fn needs_wide_index(&self) -> bool {
        let (plan, steps) = (self.plan, self.scan_axis_strides());
        // The extents of all axes. The scanned axis is the last one.
        let dims: SmallVec<[usize; 8]> = plan.lines.iter().copied().chain([plan.len]).collect();
        let lines = plan.line_strides.iter().chain([&plan.out_line_strides]);
        let all: SmallVec<[SmallVec<[isize; 8]>; 5]> = lines.zip(&steps).map(|(l, s)| l.iter().copied().chain([*s]).collect()).collect();
        let size = plan.line_count.saturating_mul(plan.len);
        !codegen::fits_32_bit_index(size, &dims, all.iter().map(|s| &s[..]))
    }

    fn kernel_function(&self, name: &'static str, wide: bool, look_back: bool) -> crate::Result<Arc<Function>> {
        let rank = self.plan.lines.len();
        let key = KernelKey::new(name, self.program).with_number(rank as u64).with_number(wide as u64).with_op(self.combine);
        kernel_lookup::get_or_generate_kernel(self.context, key, || {
            Ok((name.to_owned(), cuda_source(self.program, self.combine, rank, wide, look_back)?))
        })
    }

    fn queue_scan(&self, strategy: ScanStrategy, tiles: usize, states: Option<&CudaBuffer>) -> crate::Result<()> {
        let (plan, wide) = (self.plan, self.needs_wide_index());
        let params = codegen::pack_params(self.program, self.inputs, device::error_word_address(self.context, self.program)?);
        let lines = codegen::pack_axes(&plan.lines, plan.line_strides.iter().chain([&plan.out_line_strides]).map(|s| &s[..]), wide);
        let step = codegen::pack_offsets(&self.scan_axis_strides(), wide);
        let (line_count, length, tiles) = (plan.line_count as u64, plan.len as u64, tiles as u64);
        let all_tiles = line_count * tiles;
        let block = [DEFAULT_THREADS_PER_BLOCK, 1, 1];
        let mut args = Args::new();
        args.push_bytes(&params).push_bytes(&lines).push_bytes(&step).push(&self.out);
        if let (ScanStrategy::LookBack, Some(states)) = (strategy, states) {
            self.context.fill(states.memory(), 0, [0u8; 4], states.memory().len() / 4)?;
            let (ticket, words) = (states.pointer(), states.pointer() + 8);
            args.push(&length).push(&tiles).push(&all_tiles).push(&ticket).push(&words);
            let function = self.kernel_function("scan_sweep", wide, true)?;
            let grid = [u32::try_from(all_tiles).unwrap_or(u32::MAX), 1, 1];
            // SAFETY: the arguments match scan_sweep in scan_look_back.cu. The grid has one block per tile. `states` has zeroed look-back
            // states for each tile of each line, and for each span of 32 tiles. The plan keeps every line inside inputs and output.
            return unsafe { function.launch(grid, block, 0, args.pointers()) };
        }
        args.push(&line_count).push(&length);
        let (name, grid) = match strategy {
            ScanStrategy::ThreadPerLine => ("scan_serial", kernel_lookup::grid_for_items(line_count, DEFAULT_THREADS_PER_BLOCK)),
            _ => ("scan_blocks", [u32::try_from(line_count).unwrap_or(u32::MAX).min(1 << 20), 1, 1]),
        };
        let function = self.kernel_function(name, wide, false)?;
        // SAFETY: the arguments match scan_serial and scan_blocks in scan.cu. The plan keeps every line inside inputs and output.
        unsafe { function.launch(grid, block, 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::Layout;

    fn plan(shape: &[usize], axis: usize) -> ScanPlan {
        let layout = Layout::contiguous(shape).unwrap();
        ScanPlan::new(shape, &[&layout], axis)
    }

    #[test]
    fn the_strategy_follows_from_the_shape() {
        assert_eq!(select_strategy(&plan(&[100, 5000], 0)), ScanStrategy::ThreadPerLine);
        assert_eq!(select_strategy(&plan(&[1_000_000, 4], 1)), ScanStrategy::ThreadPerLine);
        assert_eq!(select_strategy(&plan(&[5000, 1000], 1)), ScanStrategy::BlockPerLine);
        assert_eq!(select_strategy(&plan(&[10_000], 0)), ScanStrategy::BlockPerLine);
        assert_eq!(select_strategy(&plan(&[100_000_000], 0)), ScanStrategy::LookBack);
        assert_eq!(select_strategy(&plan(&[3, 10_000_000], 1)), ScanStrategy::LookBack);
    }

    #[test]
    fn tiles_are_32_kib() {
        assert_eq!([DType::I8, DType::F16, DType::F32, DType::I64, DType::C128].map(look_back_tile_length), [8192, 8192, 8192, 4096, 2048]);
    }

    #[test]
    fn sources_are_complete() {
        let list = sources_for_compile_check();
        assert_eq!(list.len(), 2 * DType::ALL.len() + 2);
        assert!(list.iter().all(|(_, text)| text.contains("combine_lower_threads") && text.contains("struct Params")));
    }
}
