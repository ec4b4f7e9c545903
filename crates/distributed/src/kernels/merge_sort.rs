//! Sort of one row that is divided among ranks.
//!
//! Each rank sorts its part. A search then finds where the parts of the result begin in each sorted part. One exchange brings each rank the
//! elements of its part of the result, as one sorted run from each rank, and the rank merges the runs. The result equals the result of a
//! sort on one device: elements that compare equal have equal bits, or may be in any order.

mod run_splits;

use std::iter::once;
use std::ops::Range;

use cuprum_core::call::Sort;
use cuprum_core::{
    Array, Call, DType, Device, Kind, NdArray, Outcome, OutputSpec, Result, StoredArray, Work, concat, decline, full, s, with_device,
};

use self::run_splits::{SampledRange, find_splits};
use crate::mesh::Mesh;
use crate::piece_assembly::PieceAssembly;
use crate::piece_exchange::{Piece, exchange_pieces};
use crate::placement::{DividedAxes, region_of_rank};
use crate::rank_calls::{decline_with_reason, run_on_rank, sharded_outcome};
use crate::redistribute::{all_gather, to_c_contiguous};
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
    let sort_on_rank = |local: usize, row: &StoredArray, merge_at: Option<usize>| -> Result<std::result::Result<StoredArray, String>> {
        if row.size() == 0 {
            return Ok(Ok(row.clone()));
        }
        let output = OutputSpec::contiguous(dtype, row.shape())?;
        let work = Work::Sort(Sort { merge_at, ..*request });
        let outputs = run_on_rank(mesh, local, call, std::slice::from_ref(row), &[output], work)?;
        Ok(outputs.and_then(|outputs| outputs.into_iter().next().ok_or_else(|| "the kernel returned no output".into())))
    };
    let mut sorted = Vec::new();
    for (local, part) in fetch_local_parts(mesh, input, &cuts)?.iter().enumerate() {
        match sort_on_rank(local, &to_c_contiguous(part)?, None)? {
            Ok(part) => sorted.push(NdArray::from(part)),
            Err(reason) => return decline_with_reason(reason),
        }
    }
    let owned: Vec<Range<usize>> = (0..mesh.size()).map(|rank| region_of_rank(mesh, &[size], &cuts, rank)[0].clone()).collect();
    let lengths: Vec<usize> = owned.iter().map(Range::len).collect();
    let starts: Vec<usize> = owned[1..].iter().map(|range| range.start).collect();
    let splits = find_splits(&lengths, &starts, &mut |ranges| gather_samples(mesh, &sorted, ranges, request.descending))?;
    // `runs[from][to]` is the range of elements, in the sorted part of rank `from`, that belong to the result's part of rank `to`.
    let runs: Vec<Vec<Range<usize>>> = (0..mesh.size())
        .map(|from| {
            let edge = |boundary: usize| match boundary {
                0 => 0,
                last if last == mesh.size() => lengths[from],
                _ => splits[boundary - 1][from],
            };
            (0..mesh.size()).map(|to| edge(to)..edge(to + 1)).collect()
        })
        .collect();
    let mut parts = Vec::new();
    for (local, (rank, part)) in mesh.local_ranks().zip(exchange_runs(mesh, dtype, &runs, &sorted)?).enumerate() {
        let mut lengths: Vec<usize> = runs.iter().map(|of_rank| of_rank[rank].len()).filter(|length| *length > 0).collect();
        let mut part = to_c_contiguous(&part)?;
        // Each round merges pairs of adjacent runs.
        while lengths.len() > 1 {
            let (mut merged, mut first) = (Vec::new(), 0);
            for pair in lengths.chunks(2) {
                let length: usize = pair.iter().sum();
                let row = mesh.with_rank_device(local, || {
                    NdArray::from(part.clone()).index(s![first as isize..(first + length) as isize])?.stored()
                })?;
                match if pair.len() == 1 { Ok(row) } else { sort_on_rank(local, &row, Some(pair[0]))? } {
                    Ok(row) => merged.push(NdArray::from(row)),
                    Err(reason) => return decline_with_reason(reason),
                }
                first += length;
            }
            lengths = lengths.chunks(2).map(|pair| pair.iter().sum()).collect();
            part =
                if merged.len() == 1 { merged.remove(0).stored()? } else { mesh.with_rank_device(local, || concat(&merged, 0)?.stored())? };
        }
        parts.push(part);
    }
    sharded_outcome(mesh, call, &cuts, vec![parts])
}

/// Returns the sort keys of sampled elements of all ranks: `keys[boundary][rank]` has the keys of the elements `ranges[boundary][rank]` of
/// the rank's sorted part.
fn gather_samples(mesh: Mesh, sorted: &[NdArray], ranges: &[Vec<SampledRange>], descending: bool) -> Result<Vec<Vec<Vec<u64>>>> {
    let dtype = sorted[0].dtype();
    // Each rank sends an equal number of elements for a boundary. Zeros fill the places after the samples of a short range.
    let padded: Vec<usize> = ranges.iter().map(|of_ranks| of_ranks.iter().map(SampledRange::count).max().unwrap_or(0)).collect();
    let of_rank = |(local, rank): (usize, usize)| {
        mesh.with_rank_device(local, || {
            let mut samples = Vec::new();
            for (of_ranks, padded) in ranges.iter().zip(&padded) {
                let SampledRange { start, end, step } = of_ranks[rank];
                samples.push(sorted[local].index(s![start as isize..end as isize;step as isize])?);
                samples.push(full(padded - of_ranks[rank].count(), 0, dtype)?);
            }
            concat(&samples, 0)?.stored()
        })
    };
    let samples = mesh.local_ranks().enumerate().map(of_rank).collect::<Result<Vec<_>>>()?;
    let length = padded.iter().sum();
    let keys = with_device(Device::CPU, || sort_keys(&all_gather(mesh, dtype, length, samples)?, descending))?;
    let mut first = 0;
    let of_boundary = |(of_ranks, padded): (&Vec<SampledRange>, &usize)| {
        let of_rank = |(rank, range): (usize, &SampledRange)| keys[rank * length + first..][..range.count()].to_vec();
        let of_boundary = of_ranks.iter().enumerate().map(of_rank).collect();
        first += padded;
        of_boundary
    };
    Ok(ranges.iter().zip(&padded).map(of_boundary).collect())
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

/// Sends the elements `runs[from][to]` of the sorted part of each rank `from` to each rank `to`. Returns, for each rank of this process,
/// the elements that it receives, in the order of the senders.
fn exchange_runs(mesh: Mesh, dtype: DType, runs: &[Vec<Range<usize>>], sorted: &[NdArray]) -> Result<Vec<StoredArray>> {
    let first_rank = mesh.local_ranks().start;
    // Position, in the receiver's array, of the first element from a sender.
    let start = |from: usize, to: usize| runs[..from].iter().map(|of_rank| of_rank[to].len()).sum::<usize>();
    let mut pieces = Vec::new();
    for (from, of_rank) in runs.iter().enumerate() {
        for (to, run) in of_rank.iter().enumerate().filter(|(_, run)| !run.is_empty()) {
            let region = once(start(from, to)..start(from, to) + run.len()).collect();
            pieces.push(Piece { from, to, region, slot: to.wrapping_sub(first_rank) });
        }
    }
    let assembly = |(local, rank): (usize, usize)| PieceAssembly::new(mesh, local, dtype, once(0..start(mesh.size(), rank)).collect());
    let assemblies = mesh.local_ranks().enumerate().map(assembly).collect();
    let view = |Piece { from, to, region, .. }: &Piece| {
        let shift = runs[*from][*to].start as isize - start(*from, *to) as isize;
        sorted[from - first_rank].index(s![region[0].start as isize + shift..region[0].end as isize + shift])
    };
    exchange_pieces(mesh, "all_to_all", dtype, pieces, assemblies, &view)
}
