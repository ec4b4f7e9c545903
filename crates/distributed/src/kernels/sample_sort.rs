//! Sample sort of one row that is divided among ranks.
//!
//! Samples of all ranks give splitters, which divide the values into one bucket per rank. Each rank sends the elements of a bucket to the
//! rank that sorts this bucket. The sorted buckets then move to the ranks that own their positions. The result equals the result of a sort
//! on one device: elements that compare equal have equal bits, or may be in any order. If many elements are equal, one rank sorts all of
//! them and needs memory for them.

use std::iter::once;

use cuprum_core::call::Sort;
use cuprum_core::random::Generator;
use cuprum_core::{Array, Call, DType, Device, NdArray, Outcome, OutputSpec, Result, Work, decline, full, s, where_, with_device, zeros};

use crate::mesh::Mesh;
use crate::piece_assembly::PieceAssembly;
use crate::piece_exchange::{Piece, exchange_pieces};
use crate::placement::{DividedAxes, region_of_rank};
use crate::rank_calls::{decline_with_reason, run_on_rank, sharded_outcome};
use crate::redistribute::{all_gather, to_c_contiguous};
use crate::sharded_views::fetch_local_parts;

/// Number of samples that each rank draws uniformly from its elements. If the elements are distinct, buckets exceed the mean size by a few
/// percent.
const SAMPLES_PER_RANK: usize = 4096;

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
    let parts: Vec<NdArray> = fetch_local_parts(mesh, input, &cuts)?.into_iter().map(NdArray::from).collect();
    let splitters = choose_splitters(mesh, &parts, dtype)?;
    let pieces = split_into_buckets(mesh, &parts, &splitters, request.descending)?;
    let exchange_counts = gather_exchange_counts(mesh, &pieces)?;
    let buckets = exchange_elements(mesh, dtype, &exchange_counts, &|local, to| Ok(pieces[local][to].clone()))?;
    let mut sorted = Vec::new();
    for (local, bucket) in buckets.into_iter().enumerate() {
        let output = OutputSpec::contiguous(dtype, bucket.shape())?;
        if bucket.size() == 0 {
            sorted.push(bucket);
            continue;
        }
        let bucket = mesh.with_rank_device(local, || bucket.contiguous()?.stored())?;
        match run_on_rank(mesh, local, call, &[bucket], &[output], Work::Sort(*request))? {
            Ok(outputs) => sorted.extend(outputs.into_iter().map(NdArray::from)),
            Err(reason) => return decline_with_reason(reason),
        }
    }
    // Ranges of positions in the sorted array, by rank: `held` is the range of the rank's sorted bucket, and `owned` is the range of the
    // rank's part of the result.
    let start = |rank: usize| -> usize { (0..rank).map(|to| exchange_counts.iter().map(|of_rank| of_rank[to]).sum::<usize>()).sum() };
    let held: Vec<std::ops::Range<usize>> = (0..mesh.size()).map(|rank| start(rank)..start(rank + 1)).collect();
    let owned: Vec<std::ops::Range<usize>> = (0..mesh.size()).map(|rank| region_of_rank(mesh, &[size], &cuts, rank)[0].clone()).collect();
    let common = |from: usize, to: usize| held[from].start.max(owned[to].start)..held[from].end.min(owned[to].end);
    let moved: Vec<Vec<usize>> = (0..mesh.size()).map(|from| (0..mesh.size()).map(|to| common(from, to).len()).collect()).collect();
    let first_rank = mesh.local_ranks().start;
    let range = |local: usize, to: usize| {
        let from = local + first_rank;
        let (start, range) = (held[from].start, common(from, to));
        let (low, high) = (range.start.saturating_sub(start) as isize, range.end.saturating_sub(start) as isize);
        sorted[local].index(s![low..high.max(low)])
    };
    let parts = exchange_elements(mesh, dtype, &moved, &range)?;
    let parts = parts.iter().map(|part| to_c_contiguous(&part.stored()?)).collect::<Result<Vec<_>>>()?;
    sharded_outcome(mesh, call, &cuts, vec![parts])
}

/// Returns the values that divide the row into one bucket per rank, in ascending order, on the host.
fn choose_splitters(mesh: Mesh, parts: &[NdArray], dtype: DType) -> Result<NdArray> {
    let samples = parts.iter().enumerate().map(|(local, part)| {
        mesh.with_rank_device(local, || match part.size() {
            // The splitters only balance the buckets, and any values are valid. A rank without elements therefore contributes zeros.
            0 => zeros(SAMPLES_PER_RANK, dtype)?.stored(),
            size => part.take(&Generator::new(0).integers(0, size as i64, SAMPLES_PER_RANK, DType::I64)?, 0)?.stored(),
        })
    });
    let samples = all_gather(mesh, dtype, SAMPLES_PER_RANK, samples.collect::<Result<Vec<_>>>()?)?;
    with_device(Device::CPU, || {
        let positions: Vec<i64> = (1..mesh.size()).map(|bucket| (bucket * SAMPLES_PER_RANK) as i64).collect();
        let chosen = samples.reshape(-1)?.sort(-1)?.take(&NdArray::from_slice(&positions)?, 0)?;
        if !dtype.is_inexact() {
            return Ok(chosen);
        }
        // NaN compares false with everything, so infinity replaces a splitter that is NaN. Infinities and NaN are then in the last bucket.
        let infinity = full(chosen.shape(), f64::INFINITY, dtype)?;
        where_(chosen.isnan()?, infinity, &chosen)
    })
}

/// Splits the elements of each rank of this process into buckets, in the order of the ranks that sort the buckets.
fn split_into_buckets(mesh: Mesh, parts: &[NdArray], splitters: &NdArray, descending: bool) -> Result<Vec<Vec<NdArray>>> {
    let ranks = mesh.size();
    let of_rank = |(local, part): (usize, &NdArray)| {
        mesh.with_rank_device(local, || {
            let splitters = splitters.to_device(mesh.local_devices()[local])?;
            let is_below = |bucket: usize| part.less(&splitters.index(s![bucket as isize])?);
            let bucket = |bucket: usize| match bucket {
                _ if ranks == 1 => Ok(part.clone()),
                0 => part.extract(&is_below(0)?),
                last if last == ranks - 1 => part.extract(&is_below(last - 1)?.logical_not()?),
                middle => part.extract(&(is_below(middle - 1)?.logical_not()? & is_below(middle)?)),
            };
            (0..ranks).map(|rank| bucket(if descending { ranks - 1 - rank } else { rank })).collect()
        })
    };
    parts.iter().enumerate().map(of_rank).collect()
}

/// Returns `exchange_counts[from][to]`, the number of elements that rank `from` sends to rank `to`, for all ranks of the mesh.
fn gather_exchange_counts(mesh: Mesh, pieces: &[Vec<NdArray>]) -> Result<Vec<Vec<usize>>> {
    let of_rank = |(local, of_rank): (usize, &Vec<NdArray>)| {
        let exchange_counts: Vec<i64> = of_rank.iter().map(|piece| piece.size() as i64).collect();
        mesh.with_rank_device(local, || NdArray::from_slice(&exchange_counts)?.to_device(mesh.local_devices()[local])?.stored())
    };
    let parts = pieces.iter().enumerate().map(of_rank).collect::<Result<Vec<_>>>()?;
    let exchange_counts = all_gather(mesh, DType::I64, mesh.size(), parts)?.to_vec::<i64>()?;
    Ok(exchange_counts.chunks(mesh.size()).map(|of_rank| of_rank.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect()).collect())
}

/// Sends `piece(local, to)` from each rank of this process to each rank `to`. Returns, for each rank of this process, the elements that it
/// receives, in the order of the senders. `exchange_counts[from][to]` is the number of elements from rank `from` to rank `to`.
fn exchange_elements(
    mesh: Mesh,
    dtype: DType,
    exchange_counts: &[Vec<usize>],
    piece: &dyn Fn(usize, usize) -> Result<NdArray>,
) -> Result<Vec<NdArray>> {
    let first_rank = mesh.local_ranks().start;
    // Position, in the receiver's array, of the first element from a sender.
    let start = |from: usize, to: usize| exchange_counts[..from].iter().map(|of_rank| of_rank[to]).sum::<usize>();
    let mut pieces = Vec::new();
    for (from, of_rank) in exchange_counts.iter().enumerate() {
        for (to, &count) in of_rank.iter().enumerate().filter(|(_, count)| **count > 0) {
            let region = once(start(from, to)..start(from, to) + count).collect();
            pieces.push(Piece { from, to, region, slot: to.wrapping_sub(first_rank) });
        }
    }
    let assembly = |(local, rank): (usize, usize)| PieceAssembly::new(mesh, local, dtype, once(0..start(mesh.size(), rank)).collect());
    let assemblies = mesh.local_ranks().enumerate().map(assembly).collect();
    let view = |Piece { from, to, region, .. }: &Piece| {
        let (first, range) = (start(*from, *to), &region[0]);
        piece(from - first_rank, *to)?.index(s![(range.start - first) as isize..(range.end - first) as isize])
    };
    Ok(exchange_pieces(mesh, "all_to_all", dtype, pieces, assemblies, &view)?.into_iter().map(NdArray::from).collect())
}
