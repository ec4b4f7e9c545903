//! Segment sums: some lanes of a warp each, a block for the long ones.

use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use crate::codegen::ctype;
use crate::device::{self, InCall};
use crate::driver::Context;
use crate::kernel::{self, Source, THREADS};
use crate::module::Args;

static SOURCE: Source = Source { name: "segment.cu", text: include_str!("kernels/segment.cu") };

/// Element and accumulator of a sum that this kernel does; integers as their unsigned twins, which wrap alike.
fn types(value: DType, acc: DType, team: &'static str) -> Option<[(&'static str, &'static str); 3]> {
    let (t, a) = match (value, acc) {
        (DType::I64 | DType::U64, a) if a == value => ("u64", "u64"),
        (DType::F16 | DType::BF16, DType::F32) => (ctype(value), "f32"),
        (DType::F32 | DType::F64 | DType::C64 | DType::C128, a) if a == value => (ctype(value), ctype(value)),
        _ => return None,
    };
    Some([("T", t), ("A", a), ("TEAM", team)])
}

/// Threads that share a segment: about 4 values each.
fn team(values: usize, segments: usize) -> &'static str {
    match values / segments.max(1) / 4 {
        0 | 1 => "1",
        2 | 3 => "2",
        4..=7 => "4",
        8..=15 => "8",
        16..=31 => "16",
        _ => "32",
    }
}

/// Every program of this family, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    let teams = ["1", "4", "32"].into_iter().cycle();
    let pairs = DType::ALL.iter().flat_map(|&value| DType::ALL.iter().map(move |&acc| (value, acc)));
    let pairs = pairs.filter(|(value, acc)| types(*value, *acc, "1").is_some()).zip(teams).filter_map(|((v, a), team)| types(v, a, team));
    pairs.map(|defines| SOURCE.listed(&defines)).collect()
}

/// The kernel of the operation `segment_sum`.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (&Work::SegmentSum { acc }, [values, offsets], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a segment sum of one array by its offsets");
    };
    let (length, segments) = (values.layout().size(), spec.layout.size());
    let team = team(length, segments);
    let Some(defines) = types(values.dtype(), acc, team).filter(|_| spec.dtype == values.dtype()) else {
        decline!("sums of {} in {acc}", values.dtype());
    };
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() || values.layout().ndim() != 1 {
        decline!("offsets that are not contiguous int64, or values that are not 1-D");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let addresses = [out.pointer(), device::pointer(values)?, device::pointer(offsets)?];
    let step = values.layout().strides()[0];
    queue(context, &defines, addresses, step, length, segments, device::fault_word(call.op, 0)).in_call(call)?;
    device::done(call, [out])
}

fn queue(
    context: &'static Context,
    defines: kernel::Defines,
    [out, values, offsets]: [u64; 3],
    step: isize,
    length: usize,
    segments: usize,
    op: u64,
) -> crate::Result<()> {
    let function = SOURCE.kernel(context, "segment_sum", defines)?;
    let fault = context.fault_pointer()?;
    let mut args = Args::new();
    args.push(&out).push(&values).push(&step).push(&length).push(&offsets).push(&segments).push(&fault).push(&op);
    let threads = team(length, segments).parse::<u64>().unwrap_or(32) * segments as u64;
    // SAFETY: the parameters of segment_sum; there are `segments` results and one offset more, and the kernel checks each
    // against `length`.
    unsafe { function.launch(kernel::grid(threads, THREADS), [THREADS, 1, 1], 0, args.pointers()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sum_of_core_has_types() {
        for d in DType::ALL.map(DType::sum_dtype) {
            let acc = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
            assert!(types(d, acc, "1").is_some(), "{d}");
        }
        assert_eq!(types(DType::I32, DType::I32, "1"), None);
        assert_eq!(types(DType::F64, DType::F32, "1"), None);
    }
}
