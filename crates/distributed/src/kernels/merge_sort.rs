//! Sort of one row that is divided among ranks.
//!
//! Each rank sorts its part. A search then finds where the parts of the result begin in each sorted part. One exchange brings each rank the
//! elements of its part of the result, as one sorted run from each rank, and the rank merges the runs. The result equals the result of a
//! sort on one device: elements that compare equal have equal bits, or may be in any order.

mod run_splits;

use std::iter::once;
use std::ops::Range;

use cuprum_core::call::{Merge, Sort};
use cuprum_core::{
    Array, Call, DType, Device, Error, Kind, NdArray, Outcome, OutputSpec, Result, StoredArray, Work, concat, decline, full, s, with_device,
};

use self::run_splits::{SampledRange, find_splits};
use crate::mesh::Mesh;
use crate::piece_assembly::PieceAssembly;
use crate::piece_exchange::{Piece, exchange_pieces};
use crate::placement::{DividedAxes, Region, region_of_rank};
use crate::rank_calls::{decline_with_reason, run_on_rank, sharded_outcome};
use crate::redistribute::{all_gather, to_c_contiguous};
use crate::sharded_buffer::zero_size_array;
use crate::sharded_views::fetch_local_parts;

/// Sorts the values of a 1-D array that is divided among the ranks.
pub(super) fn sort_divided_row(mesh: Mesh, call: &Call, request: &Sort) -> Result<Outcome> {
    let (input, [output]) = (&call.inputs[0], call.outputs) else { decline!("values and indices of a divided row") };
    let (dtype, size) = (input.dtype(), input.shape()[0]);
    if request.indices || request.nth.is_some() || output.layout.shape() != input.shape() {
        decline!("indices or a part of a sorted row that is divided");
    }
    if dtype.is_complex() || mesh.shape().len() != 1 {
        decline!("complex numbers, or a grid of ranks");
    }
    let cuts = DividedAxes::from_elem(Some(0), 1);
    let mut sorted = Vec::new();
    for (local, part) in fetch_local_parts(mesh, input, &cuts)?.iter().enumerate() {
        match sort_on_rank(mesh, local, call, to_c_contiguous(part)?, request)? {
            Ok(part) => sorted.push(NdArray::from(part)),
            Err(reason) => return decline_with_reason(reason),
        }
    }
    let owned: Vec<Range<usize>> = (0..mesh.size()).map(|rank| region_of_rank(mesh, &[size], &cuts, rank)[0].clone()).collect();
    let lengths: Vec<usize> = owned.iter().map(Range::len).collect();
    let starts: Vec<usize> = owned[1..].iter().map(|range| range.start).collect();
    let splits = find_splits(&lengths, &starts, &mut |ranges| gather_samples(mesh, &sorted, ranges, request.descending))?;
    let mut parts = Vec::new();
    for (local, runs) in exchange_runs(mesh, dtype, &lengths, &splits, &sorted)?.into_iter().enumerate() {
        match merge_runs_on_rank(mesh, local, call, runs, request)? {
            Ok(part) => parts.push(to_c_contiguous(&part)?),
            Err(reason) => return decline_with_reason(reason),
        }
    }
    sharded_outcome(mesh, call, &cuts, vec![parts])
}

/// An array, or the reason why the device of a rank declines the call that computes the array.
type ArrayOrReason = std::result::Result<StoredArray, String>;

/// Executes `work`, whose output has as many elements as `inputs` together, on the device of rank number `local` of this process.
fn call_on_rank(mesh: Mesh, local: usize, call: &Call, inputs: &[StoredArray], work: Work) -> Result<ArrayOrReason> {
    let output = OutputSpec::contiguous(call.outputs[0].dtype, &[inputs.iter().map(Array::size).sum()])?;
    let outputs = run_on_rank(mesh, local, call, inputs, &[output], work)?;
    Ok(outputs.and_then(|outputs| outputs.into_iter().next().ok_or_else(|| "the kernel returned no output".into())))
}

/// Sorts an array on the device of rank number `local` of this process.
fn sort_on_rank(mesh: Mesh, local: usize, call: &Call, array: StoredArray, request: &Sort) -> Result<ArrayOrReason> {
    if array.size() == 0 { Ok(Ok(array)) } else { call_on_rank(mesh, local, call, &[array], Work::Sort(*request)) }
}

/// Merges sorted runs on the device of rank number `local` of this process. Each round merges pairs of adjacent runs.
fn merge_runs_on_rank(mesh: Mesh, local: usize, call: &Call, mut runs: Vec<StoredArray>, request: &Sort) -> Result<ArrayOrReason> {
    let merge_pair = |pair: &[StoredArray]| {
        if pair.len() == 1 {
            return Ok(Ok(pair[0].clone()));
        }
        let work = Work::Merge(Merge { descending: request.descending });
        if let Ok(merged) = call_on_rank(mesh, local, call, pair, work)? {
            return Ok(Ok(merged));
        }
        let joined = mesh.with_rank_device(local, || concat(pair.iter().cloned().map(NdArray::from), 0)?.stored())?;
        sort_on_rank(mesh, local, call, joined, request)
    };
    while runs.len() > 1 {
        match runs.chunks(2).map(merge_pair).collect::<Result<std::result::Result<Vec<_>, String>>>()? {
            Ok(merged) => runs = merged,
            Err(reason) => return Ok(Err(reason)),
        }
    }
    match runs.pop() {
        Some(run) => Ok(Ok(run)),
        None => zero_size_array(mesh.local_devices()[local], call.outputs[0].dtype, &[0]).map(Ok),
    }
}

/// Returns the sort keys of sampled elements of all ranks: `keys[boundary][rank]` has the keys of the elements `ranges[boundary][rank]` of
/// the rank's sorted part.
fn gather_samples(mesh: Mesh, sorted: &[NdArray], ranges: &[Vec<SampledRange>], descending: bool) -> Result<Vec<Vec<Vec<u64>>>> {
    let dtype = sorted[0].dtype();
    let samples_of_rank = |(local, rank): (usize, usize)| {
        let slice = |of_ranks: &Vec<SampledRange>| {
            let SampledRange { start, end, step } = of_ranks[rank];
            sorted[local].index(s![start as isize..end as isize;step as isize])
        };
        let slices = ranges.iter().map(slice).collect::<Result<Vec<_>>>()?;
        if let [one] = &slices[..] { Ok(one.clone()) } else { concat(&slices, 0) }
    };
    let local_ranks = || mesh.local_ranks().enumerate();
    let all: Vec<NdArray> = if mesh.local_ranks().len() == mesh.size() {
        let on_host = |(local, rank)| mesh.with_rank_device(local, || samples_of_rank((local, rank))?.to_device(Device::CPU));
        local_ranks().map(on_host).collect::<Result<_>>()?
    } else {
        // Each process sends an equal number of elements. Zeros follow the samples of a rank that has fewer than others.
        let count = |rank: usize| ranges.iter().map(|of_ranks| of_ranks[rank].count()).sum::<usize>();
        let length = (0..mesh.size()).map(count).max().unwrap_or(0);
        let padded = |(local, rank): (usize, usize)| {
            mesh.with_rank_device(local, || concat(&[samples_of_rank((local, rank))?, full(length - count(rank), 0, dtype)?], 0)?.stored())
        };
        let all = all_gather(mesh, dtype, length, local_ranks().map(padded).collect::<Result<_>>()?)?.reshape([mesh.size(), length])?;
        (0..mesh.size()).map(|rank| all.index(s![rank as isize])).collect::<Result<_>>()?
    };
    let mut keys: Vec<Vec<Vec<u64>>> = vec![Vec::new(); ranges.len()];
    for (rank, samples) in all.iter().enumerate() {
        let of_rank = with_device(Device::CPU, || sort_keys(samples, descending))?;
        let mut rest = &of_rank[..];
        for (of_boundary, of_ranks) in keys.iter_mut().zip(ranges) {
            let missing = || Error::value("sort", "a rank has sent too few samples");
            let (of_range, others) = rest.split_at_checked(of_ranks[rank].count()).ok_or_else(missing)?;
            of_boundary.push(of_range.to_vec());
            rest = others;
        }
    }
    Ok(keys)
}

/// Returns numbers in the order in which a sort puts the elements of `array`, whose dtype is real. Elements that compare equal have equal
/// numbers, and so have all NaN.
fn sort_keys(array: &NdArray, descending: bool) -> Result<Vec<u64>> {
    const SIGN: u64 = 1 << 63;
    let ascending: Vec<u64> = if array.dtype().is_inexact() {
        let key = |value: f64| match value.to_bits() {
            _ if value.is_nan() => u64::MAX,
            _ if value == 0.0 => SIGN,
            bits if bits & SIGN != 0 => !bits,
            bits => bits | SIGN,
        };
        array.astype(DType::F64)?.to_vec::<f64>()?.into_iter().map(key).collect()
    } else if array.dtype().kind() == Kind::Signed {
        array.astype(DType::I64)?.to_vec::<i64>()?.into_iter().map(|value| value as u64 ^ SIGN).collect()
    } else {
        array.astype(DType::U64)?.to_vec::<u64>()?
    };
    Ok(if descending { ascending.into_iter().map(|key| !key).collect() } else { ascending })
}

/// Sends the elements of each sorted part to the ranks to which they belong in the result. Returns, for each rank of this process, the runs
/// that it receives, in the order of the senders. Runs without elements are omitted.
///
/// `lengths` are the lengths of the sorted parts, and `splits` is the result of [`find_splits`].
fn exchange_runs(mesh: Mesh, dtype: DType, lengths: &[usize], splits: &[Vec<usize>], sorted: &[NdArray]) -> Result<Vec<Vec<StoredArray>>> {
    let edge = |boundary: usize, from: usize| match boundary {
        0 => 0,
        boundary => splits.get(boundary - 1).map_or(lengths[from], |of_ranks| of_ranks[from]),
    };
    let (mut pieces, mut assemblies, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
    for to in 0..mesh.size() {
        for from in 0..mesh.size() {
            let region: Region = once(edge(to, from)..edge(to + 1, from)).collect();
            if region[0].is_empty() {
                continue;
            }
            pieces.push(Piece { from, to, region: region.clone(), slot: assemblies.len() });
            if mesh.local_ranks().contains(&to) {
                let local = to - mesh.local_ranks().start;
                assemblies.push(PieceAssembly::new(mesh, local, dtype, region));
                receivers.push(local);
            }
        }
    }
    let view = |piece: &Piece| {
        let range = &piece.region[0];
        sorted[piece.from - mesh.local_ranks().start].index(s![range.start as isize..range.end as isize])
    };
    // Each run is an array of its own, so that no run is copied after its transfer.
    let received = exchange_pieces(mesh, "all_to_all", dtype, pieces, usize::MAX, assemblies, &view)?;
    let mut runs: Vec<Vec<StoredArray>> = mesh.local_ranks().map(|_| Vec::new()).collect();
    for (run, local) in received.into_iter().zip(receivers) {
        runs[local].push(run);
    }
    Ok(runs)
}
