//! Scan: running sums, products and extremes along an axis, with the prologue expression inlined.
//!
//! Many lanes side by side, and short ones, take a thread each; others a block each. Few long lanes are cut into chunks of a
//! length fixed by the shape: totals of the chunks, running totals, then every chunk with its carry (two reads, one write).

use std::sync::Arc;

use cuprum_core::op::Op;
use cuprum_core::ops::scan::{CUMMAX, CUMMIN, CUMPROD, CUMSUM};
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::{Call, DType, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, Access, KernelKey};
use crate::device::{self, CudaBuffer, InCall};
use crate::driver::Context;
use crate::kernel::{self, THREADS};
use crate::module::{Args, Function};

const KERNELS: &str = concat!(include_str!("kernels/warp.cuh"), include_str!("kernels/scan.cu"));
/// Elements that a block scans at a time; chunks are whole numbers of these.
const TILE: usize = 2048;
/// Most axes around the scanned one that kernels are generated for.
const MAX_RANK: usize = 8;

/// The ways through a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// A thread a lane.
    Serial,
    /// A block a lane.
    Blocks,
    /// A block a chunk of this many elements.
    Chunks(usize),
}

/// By shape alone, so that the order of combination is too.
fn way(plan: &ScanPlan) -> Way {
    let side_by_side = plan.out_lane_strides.last() == Some(&1);
    if plan.len <= 32 || (side_by_side && plan.lane_count >= 2048) {
        Way::Serial
    } else if plan.lane_count >= 256 || plan.len <= 16 * TILE {
        Way::Blocks
    } else {
        let chunks = (2048 / plan.lane_count).max(2);
        Way::Chunks(plan.len.div_ceil(chunks).next_multiple_of(TILE).max(8 * TILE))
    }
}

/// The operation of the prelude that combines two values.
fn combine(op: Op) -> Option<&'static str> {
    [(CUMSUM, "add"), (CUMPROD, "multiply"), (CUMMAX, "maximum"), (CUMMIN, "minimum")]
        .into_iter()
        .find(|(o, _)| *o == op)
        .map(|(_, name)| name)
}

fn source(program: &Expression, combine: &str, rank: usize, wide: bool) -> std::result::Result<String, &'static str> {
    let element = codegen::element(program, Access::default())?;
    let defines = format!("using Index = cuprum::{};\n#define RANK {rank}\n#define COMBINE {combine}\n", codegen::index_type(wide));
    Ok([codegen::PRELUDE, &element, &defines, KERNELS].concat())
}

/// Programs of this family for compiling without a device: the operations over every dtype, some ranks, both widths.
pub fn sources() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        let (op, rank, wide) = (["add", "multiply", "maximum", "minimum"][n % 4], [0, 1, 3][n % 3], n % 2 == 1);
        if let Ok(text) = source(&Expression::identity(dtype), op, rank, wide) {
            list.push((format!("scan<{op}, {dtype}, {rank}, {}>", codegen::index_type(wide)), text));
        }
    }
    list
}

/// The kernel of family Scan.
pub fn run(call: &Call) -> Result<Outcome> {
    let (Work::Scan { program, plan }, [spec]) = (&call.work, call.outputs) else { decline!("not a scan of one output") };
    let Some(combine) = combine(call.op) else { decline!("{} is not a running sum, product or extreme", call.op.name()) };
    let rank = plan.lanes.len();
    if rank > MAX_RANK {
        decline!("{rank} axes around the scanned one, after collapsing");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_row(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let context = device::context(call.device)?;
    let inputs: Result<SmallVec<[u64; 4]>> = call.inputs.iter().map(device::pointer).collect();
    let out = device::allocate_output(call, 0)?;
    let way = way(plan);
    let chunks = if let Way::Chunks(length) = way { plan.len.div_ceil(length) } else { 1 };
    // What the kernel calls Sum: float32 for the 16-bit floats.
    let sum_bytes = if matches!(spec.dtype, DType::F16 | DType::BF16) { 4 } else { spec.dtype.itemsize() };
    let totals = match way {
        Way::Chunks(_) => Some(device::allocate(call, plan.lane_count * chunks * sum_bytes)?),
        _ => None,
    };
    let scan = Scan { context, program, plan, op: call.op, combine, inputs: &inputs?, out: out.pointer() };
    scan.queue(way, chunks, totals.as_deref()).in_call(call)?;
    device::done(call, [out])
}

/// One scan on its way to the stream.
struct Scan<'a> {
    context: &'static Context,
    program: &'a Expression,
    plan: &'a ScanPlan,
    op: Op,
    combine: &'static str,
    inputs: &'a [u64],
    out: u64,
}

impl Scan<'_> {
    /// Strides along the scanned axis as an operand of one axis each: inputs, then the output.
    fn steps(&self) -> SmallVec<[isize; 5]> {
        self.plan.axis_strides.iter().copied().chain([self.plan.out_axis_stride]).collect()
    }

    fn is_wide(&self) -> bool {
        let (plan, steps) = (self.plan, self.steps());
        // The whole loop: the lanes' axes and the scanned one.
        let dims: SmallVec<[usize; 8]> = plan.lanes.iter().copied().chain([plan.len]).collect();
        let lanes = plan.lane_strides.iter().chain([&plan.out_lane_strides]);
        let all: SmallVec<[SmallVec<[isize; 8]>; 5]> = lanes.zip(&steps).map(|(l, s)| l.iter().copied().chain([*s]).collect()).collect();
        let size = plan.lane_count.saturating_mul(plan.len);
        !codegen::fits_narrow(size, &dims, all.iter().map(|s| &s[..]))
    }

    fn function(&self, name: &str, wide: bool) -> crate::Result<Arc<Function>> {
        let rank = self.plan.lanes.len();
        let key = KernelKey::new(name, self.program).with(rank as u64).with(wide as u64).with(self.op.index() as u64);
        kernel::generated(self.context, &key, || Ok((name.to_owned(), source(self.program, self.combine, rank, wide)?)))
    }

    fn queue(&self, way: Way, chunks: usize, totals: Option<&CudaBuffer>) -> crate::Result<()> {
        let (plan, wide) = (self.plan, self.is_wide());
        let params = codegen::pack_params(self.program, self.inputs);
        let lanes = codegen::pack_axes(&plan.lanes, plan.lane_strides.iter().chain([&plan.out_lane_strides]).map(|s| &s[..]), wide);
        let mut step = codegen::Bytes::new();
        for s in self.steps() {
            if wide { step.extend_from_slice(&(s as i64).to_le_bytes()) } else { step.extend_from_slice(&(s as i32).to_le_bytes()) }
        }
        let (lane_count, length) = (plan.lane_count as u64, plan.len as u64);
        let chunk_length = if let Way::Chunks(length) = way { length as u64 } else { length };
        let (chunks, carries) = (chunks as u64, totals.map_or(0, CudaBuffer::pointer));
        let one_a_block = [u32::try_from(lane_count * chunks).unwrap_or(u32::MAX).min(1 << 20), 1, 1];
        let block = [THREADS, 1, 1];
        let with_structs = || {
            let mut args = Args::new();
            args.push_bytes(&params).push_bytes(&lanes).push_bytes(&step);
            args
        };
        if way == Way::Serial {
            let function = self.function("scan_serial", wide)?;
            let mut args = with_structs();
            args.push(&self.out).push(&lane_count).push(&length);
            // SAFETY: the arguments are those of scan_serial in scan.cu; the plan keeps every lane inside inputs and output.
            return unsafe { function.launch(kernel::grid(lane_count, THREADS), block, 0, args.pointers()) };
        }
        if carries != 0 {
            let function = self.function("scan_totals", wide)?;
            let mut args = with_structs();
            args.push(&carries).push(&lane_count).push(&length).push(&chunk_length).push(&chunks);
            // SAFETY: as above, of scan_totals; `carries` has lane_count * chunks sums.
            unsafe { function.launch(one_a_block, block, 0, args.pointers()) }?;
            let function = self.function("scan_carries", wide)?;
            let mut args = Args::new();
            args.push(&carries).push(&lane_count).push(&chunks);
            // SAFETY: as above, of scan_carries.
            unsafe { function.launch(kernel::grid(lane_count, THREADS), block, 0, args.pointers()) }?;
        }
        let function = self.function("scan_chunks", wide)?;
        let mut args = with_structs();
        args.push(&self.out).push(&carries).push(&lane_count).push(&length).push(&chunk_length).push(&chunks);
        // SAFETY: as above, of scan_chunks; without chunks, carries is null and each lane is one chunk.
        unsafe { function.launch(one_a_block, block, 0, args.pointers()) }
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
    fn the_way_follows_from_the_shape() {
        assert_eq!(way(&plan(&[100, 5000], 0)), Way::Serial);
        assert_eq!(way(&plan(&[1_000_000, 4], 1)), Way::Serial);
        assert_eq!(way(&plan(&[5000, 1000], 1)), Way::Blocks);
        assert_eq!(way(&plan(&[10_000], 0)), Way::Blocks);
        assert!(matches!(way(&plan(&[100_000_000], 0)), Way::Chunks(n) if n % TILE == 0 && n >= 8 * TILE));
        assert!(matches!(way(&plan(&[3, 10_000_000], 1)), Way::Chunks(_)));
    }

    #[test]
    fn every_listed_source_is_whole() {
        let list = sources();
        assert_eq!(list.len(), DType::ALL.len());
        assert!(list.iter().all(|(_, text)| text.contains("scan_chunks") && text.contains("struct Params")));
    }
}
