//! Placements: every pair of a reshard, uneven extents, views, and the collective operations that `explain` shows.

use cuprum_backend_cpu as _;
use cuprum_core::{
    CallRecord, Complex, DType, Device, Family, IndexItem, NdArray, Result, arange, concat, explain, matmul, ones, s, with_device,
};
use cuprum_distributed::Placement::{Partial, Replicate, Shard};
use cuprum_distributed::{Mesh, PartialOp, Placement, ShardedArray};

fn numbers(shape: &[usize]) -> Result<NdArray> {
    with_device(Device::CPU, || arange(0, shape.iter().product::<usize>() as i64, 1)?.astype(DType::F64)?.reshape(shape))
}

fn placements(ndim: isize) -> Vec<Placement> {
    let partial = [PartialOp::Sum, PartialOp::Prod, PartialOp::Min, PartialOp::Max].map(Partial);
    (0..ndim).map(Shard).chain([Replicate]).chain(partial).collect()
}

#[test]
fn reshard_keeps_the_elements_for_all_pairs_of_placements() -> Result<()> {
    for shape in [&[7, 5][..], &[1, 400], &[0, 3], &[200], &[2, 3, 4]] {
        let want = numbers(shape)?.to_bytes()?;
        for ranks in [1, 2, 3, 8] {
            let mesh = Mesh::loopback(ranks)?;
            for from in placements(shape.len() as isize) {
                for to in placements(shape.len() as isize) {
                    let a = numbers(shape)?.shard(&mesh, [from])?;
                    let b = a.reshard([to])?;
                    assert_eq!(b.placements(), Some(vec![to]), "{shape:?} {from} -> {to}");
                    assert!(b.to_bytes()? == want && a.to_bytes()? == want, "{shape:?} on {ranks} ranks: {from} -> {to}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn pending_reductions_keep_special_values() -> Result<()> {
    let inf = f64::INFINITY;
    let complex = [(inf, 5.0), (-inf, -5.0), (1.0, inf), (-0.0, -0.0), (-0.0, 2.0)].map(|(re, im)| Complex::new(re, im));
    let ops = || [PartialOp::Sum, PartialOp::Prod, PartialOp::Min, PartialOp::Max].map(Partial);
    for dtype in DType::ALL {
        let values = if dtype.is_complex() {
            NdArray::from_slice(&complex)?
        } else if dtype.is_inexact() {
            NdArray::from_slice(&[-0.0, 1.0, inf, -inf])?
        } else {
            NdArray::from_slice(&[0, 1, 100])?
        };
        let values = values.astype(dtype)?;
        for (ranks, placement) in [1, 2, 8, 9].into_iter().flat_map(|ranks| ops().map(|op| (ranks, op))) {
            let read = values.shard(&Mesh::loopback(ranks)?, [placement])?.to_bytes()?;
            assert_eq!(read, values.to_bytes()?, "{dtype}, {placement} on {ranks} ranks");
        }
        for (a, b) in ops().into_iter().flat_map(|a| ops().map(|b| (a, b))) {
            let read = values.shard(&Mesh::loopback_grid(&[2, 3])?, [a, b])?.to_bytes()?;
            assert_eq!(read, values.to_bytes()?, "{dtype}, {a} and {b}");
        }
    }
    Ok(())
}

type View = fn(&NdArray) -> Result<NdArray>;

#[test]
fn reshard_of_views() -> Result<()> {
    let views: [(&str, View); 9] = [
        ("transposed", |a| a.t()),
        ("row", |a| a.index(s![3, ..])),
        ("element", |a| a.index(s![7, 4])),
        ("every third row from the last", |a| a.index(s![..;-3, 1..])),
        ("columns", |a| a.index(s![.., 2..7;2])),
        ("new axis", |a| a.index(s![.., None, ..5])),
        ("repeated", |a| a.index(s![.., None, ..])?.broadcast_to([12, 4, 10])),
        ("diagonal", |a| a.diagonal(1, 0, 1)),
        ("no rows", |a| a.index(s![5..5, ..])),
    ];
    let a = numbers(&[12, 10])?;
    for (name, view) in views {
        let want = view(&a)?.to_bytes()?;
        for ranks in [1, 2, 5] {
            let mesh = Mesh::loopback(ranks)?;
            for from in placements(2) {
                let view = view(&a.shard(&mesh, [from])?)?;
                for to in placements(view.ndim() as isize) {
                    let b = view.reshard([to])?;
                    assert_eq!(b.placements(), Some(vec![to]), "{name}: {from} -> {to}");
                    assert!(b.to_bytes()? == want, "{name} on {ranks} ranks: {from} -> {to}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn reshard_of_elements_on_grids() -> Result<()> {
    let mesh = Mesh::loopback_grid(&[2, 2])?;
    for from in [[Shard(0), Shard(1)], [Shard(1), Replicate], [Shard(0), Shard(0)], [Partial(PartialOp::Sum), Shard(0)]] {
        let a = numbers(&[4, 6])?.shard(&mesh, from)?;
        for (to, row) in placements(0).into_iter().flat_map(|to| [(to, 0), (to, 3)]) {
            let element = a.index(s![row, 5])?.reshard([Replicate, to])?;
            assert_eq!(element.placements(), Some(vec![Replicate, to]), "{from:?} -> {to}");
            assert_eq!(element.item()?, numbers(&[4, 6])?.index(s![row, 5])?.item()?, "{from:?} -> {to}");
        }
    }
    Ok(())
}

/// Shape, mesh and placements of an array, a view, and the placements and the extents of the local shards of the view.
type ShardCase<'a> = (&'a [usize], &'a Mesh, &'a [Placement], View, &'a [Placement], &'a [&'a [usize]]);

#[test]
fn local_shards_have_the_extents_of_the_placements() -> Result<()> {
    let (mesh, grid) = (Mesh::loopback(2)?, Mesh::loopback_grid(&[2, 2])?);
    let whole: View = |a| a.copy();
    let flat: View = |a| a.reshape([-1]);
    let cases: [ShardCase; 12] = [
        (&[1, 4], &mesh, &[Shard(0)], |a| Ok(a.clone()), &[Shard(0)], &[&[0, 4], &[1, 4]]),
        (&[4, 1], &mesh, &[Shard(1)], |a| Ok(a.clone()), &[Shard(1)], &[&[4, 0], &[4, 1]]),
        (&[1], &mesh, &[Shard(0)], |a| a.index(s![..1]), &[Shard(0)], &[&[0], &[1]]),
        (&[1], &mesh, &[Shard(0)], |a| a.index(s![..;-1]), &[Shard(0)], &[&[0], &[1]]),
        (&[1, 4], &mesh, &[Shard(0)], |a| a.view_as(DType::I64), &[Shard(0)], &[&[0, 4], &[1, 4]]),
        (&[0, 3], &mesh, &[Shard(0)], |a| Ok(a.clone()), &[Shard(0)], &[&[0, 3], &[0, 3]]),
        (&[6, 4], &mesh, &[Shard(0)], whole, &[Shard(0)], &[&[3, 4], &[3, 4]]),
        (&[6, 4], &mesh, &[Shard(0)], flat, &[Shard(0)], &[&[12], &[12]]),
        (&[6, 4], &mesh, &[Shard(0)], |a| a.reshape([-1])?.index(s![..;3]), &[Shard(0)], &[&[4], &[4]]),
        (&[6, 4], &mesh, &[Shard(0)], |a| a.view_as(DType::I8), &[Shard(0)], &[&[3, 32], &[3, 32]]),
        (&[6, 4], &grid, &[Shard(0), Shard(1)], flat, &[Shard(0), Shard(0)], &[&[6][..]; 4]),
        (&[6, 4], &grid, &[Partial(PartialOp::Sum), Shard(1)], flat, &[Partial(PartialOp::Sum), Shard(0)], &[&[12][..]; 4]),
    ];
    for (shape, mesh, placements, view, of_view, shapes) in cases {
        let a = view(&numbers(shape)?.shard(mesh, placements)?)?;
        assert_eq!(a.placements().as_deref(), Some(of_view), "{shape:?} {placements:?}");
        let shards = a.local_shards()?;
        assert_eq!(shards.iter().map(|shard| shard.shape()).collect::<Vec<_>>(), shapes, "{shape:?} {placements:?}");
    }
    Ok(())
}

#[test]
fn transposition_of_a_large_array_exchanges_half_of_it() -> Result<()> {
    let mesh = Mesh::loopback(2)?;
    let a = numbers(&[1920, 1152])?;
    let sharded = a.shard(&mesh, [Shard(0)])?;
    let (result, calls) = explain(|| sharded.t()?.reshard([Shard(0)]));
    assert!(result?.to_bytes()? == a.t()?.to_bytes()?);
    assert_eq!(collectives(&calls), [("all_to_all", 1920 * 1152 * 8 / 2)]);
    Ok(())
}

#[test]
fn reshard_on_grids() -> Result<()> {
    let shape = [5, 9];
    let want = numbers(&shape)?.to_bytes()?;
    for grid in [[2, 2], [1, 3], [3, 2]] {
        let mesh = Mesh::loopback_grid(&grid)?;
        let pairs = placements(2).into_iter().flat_map(|a| placements(2).into_iter().map(move |b| [a, b])).collect::<Vec<_>>();
        for from in pairs.iter().step_by(3) {
            for to in pairs.iter().step_by(2) {
                let is_mixed = |p: &[Placement; 2]| matches!(p, [Partial(a), Partial(b)] if a != b);
                if is_mixed(from) || is_mixed(to) {
                    continue; // the combinations of two different operations do not commute
                }
                let a = numbers(&shape)?.shard(&mesh, from)?.reshard(to)?;
                assert!(a.to_bytes()? == want, "{grid:?}: {from:?} -> {to:?}");
                let sum = (&a + &a).sum(1)?;
                assert!(sum.to_bytes()? == (numbers(&shape)? * 2.0).sum(1)?.to_bytes()?, "{grid:?}: {from:?} -> {to:?}");
            }
        }
    }
    Ok(())
}

/// Returns the collective operations with their bytes.
fn collectives(calls: &[CallRecord]) -> Vec<(&'static str, usize)> {
    let is_collective = |call: &&CallRecord| call.served_by == Some("loopback");
    calls.iter().filter(is_collective).map(|call| (call.op, call.bytes)).collect()
}

#[test]
fn shifted_slices_exchange_halos() -> Result<()> {
    let mesh = Mesh::loopback(4)?;
    let a = numbers(&[1920, 8])?.shard(&mesh, [Shard(0)])?;
    let (result, calls) = explain(|| (a.index(s![1.., ..])? - a.index(s![..-1, ..])?).eval().cloned());
    let result = result?;
    assert_eq!(result.placements(), Some(vec![Shard(0)]));
    assert!(result.to_vec::<f64>()?.iter().all(|d| *d == 8.0));
    // Both slices have blocks of ten rows. Three ranks receive one row of eight elements from the next rank.
    assert_eq!(collectives(&calls), [("halo_exchange", 3 * 8 * 8)]);
    Ok(())
}

#[test]
fn stencils_copy_borders_only() -> Result<()> {
    let mesh = Mesh::loopback(3)?;
    let a = numbers(&[1000, 64])?.shard(&mesh, [Shard(0)])?;
    let stencil = |a: &NdArray| -> Result<NdArray> {
        let inner = s![1..-1, 1..-1];
        let sum = a.index(s![..-2, 1..-1])? + a.index(s![2.., 1..-1])? + a.index(s![1..-1, ..-2])? + a.index(s![1..-1, 2..])?;
        (sum - a.index(inner)? * 4.0).eval().cloned()
    };
    let (result, calls) = explain(|| stencil(&a));
    assert!(result?.to_bytes()? == stencil(&numbers(&[1000, 64])?)?.to_bytes()?);
    let copied: usize = calls.iter().filter(|call| call.family == Family::Copy).map(|call| call.bytes).sum();
    assert!(copied < 100 * 64 * 8, "{copied} bytes in copies");
    Ok(())
}

#[test]
fn shifted_strided_and_reversed_slices() -> Result<()> {
    let dense = numbers(&[611])?;
    let slices: [Vec<IndexItem>; 6] = [
        s![0..200].to_vec(),
        s![1..201].to_vec(),
        s![400..600].to_vec(),
        s![0..600;3].to_vec(),
        s![11..611;3].to_vec(),
        s![199..;-1].to_vec(),
    ];
    for ranks in [1, 2, 3, 5] {
        let sharded = dense.shard(&Mesh::loopback(ranks)?, [Shard(0)])?;
        for (x, y) in slices.iter().flat_map(|x| slices.iter().map(move |y| (x, y))) {
            let sum = |a: &NdArray| (a.index(&x[..])? * 3.0 - a.index(&y[..])?).eval().cloned();
            assert!(sum(&sharded)?.to_bytes()? == sum(&dense)?.to_bytes()?, "{ranks} ranks, {x:?} and {y:?}");
        }
    }
    Ok(())
}

#[test]
fn views_of_other_dtypes_are_copied() -> Result<()> {
    let mesh = Mesh::loopback(3)?;
    let numbers = numbers(&[30, 4])?;
    let complex = numbers.astype(DType::C64)?;
    for (source, dtype) in [(numbers.greater(50)?, DType::U8), (complex, DType::U64), (numbers.clone(), DType::I64), (numbers, DType::C64)]
    {
        let copied = |a: &NdArray| a.view_as(dtype)?.t()?.copy()?.to_bytes();
        assert!(copied(&source.shard(&mesh, [Shard(0)])?)? == copied(&source)?, "{} as {dtype}", source.dtype());
    }
    Ok(())
}

#[test]
fn assignments_to_views_of_other_dtypes() -> Result<()> {
    let indices = with_device(Device::CPU, || NdArray::from_slice(&[1, 7, 15]))?;
    let sources = [(DType::C128, DType::F64), (DType::F64, DType::C128), (DType::F64, DType::I64), (DType::U8, DType::I16)];
    for (source, dtype) in sources {
        for (start, stop) in [(0, 20), (0, 40), (2, 20)] {
            for (ranks, method) in [1, 2, 3].into_iter().flat_map(|ranks| (0..4).map(move |method| (ranks, method))) {
                let mesh = Mesh::loopback(ranks)?;
                let assigned = |base: &NdArray, on_mesh: bool| -> Result<Vec<u8>> {
                    let place = |a: NdArray| if on_mesh { a.shard(&mesh, [Shard(0)]) } else { Ok(a) };
                    let mut view = place(base.copy()?)?.view_as(dtype)?.index(s![start..stop])?;
                    let shorter = place(with_device(Device::CPU, || arange(0, view.size() as i64, 1))?)?;
                    match method {
                        0 => view.assign(s![3..17], 5)?,
                        1 => view.assign(&place(indices.copy()?)?, 5)?,
                        2 => view.assign(&shorter.greater(10)?, 5)?,
                        _ => view.update_at(cuprum_core::ops::elementwise::ADD, &place(indices.copy()?)?, 5)?,
                    }
                    view.to_bytes()
                };
                let base = numbers(&[40])?.astype(source)?;
                assert!(assigned(&base, true)? == assigned(&base, false)?, "{source} as {dtype}, {start}..{stop}, {ranks}, {method}");
            }
        }
    }
    Ok(())
}

#[test]
fn local_shards_of_views_with_pending_reductions() -> Result<()> {
    let views: [(&str, View); 5] = [
        ("rows", |a| a.index(s![1..3])),
        ("reshaped", |a| a.reshape([4, 6])),
        ("transposed", |a| a.t()),
        ("narrower", |a| a.view_as(DType::I32)),
        ("merged", |a| a.reshape([24])),
    ];
    let partial = Partial(PartialOp::Sum);
    for (name, view) in views {
        for (mesh, placements, rank) in [
            (Mesh::loopback(2)?, &[partial][..], 1),
            (Mesh::loopback_grid(&[2, 1])?, &[partial, Shard(1)], 1),
            (Mesh::loopback_grid(&[2, 2])?, &[partial, Replicate], 3),
        ] {
            let whole = numbers(&[6, 4])?;
            let view_of_mesh = view(&whole.shard(&mesh, placements)?)?;
            let shards = view_of_mesh.local_shards()?;
            let (kept, identity) = (view(&whole)?, view(&with_device(Device::CPU, || cuprum_core::full([6, 4], -0.0, DType::F64))?)?);
            assert_eq!((shards[0].shape(), shards[0].dtype()), (kept.shape(), kept.dtype()), "{name}, {placements:?}");
            assert!(shards[0].to_bytes()? == kept.to_bytes()?, "{name}, {placements:?}");
            assert!(shards[rank].to_bytes()? == identity.to_bytes()?, "{name}, {placements:?}");
        }
        // Each rank receives elements only from ranks with the same coordinate along the partial mesh axis.
        let grid = Mesh::loopback_grid(&[2, 2])?;
        let shards = view(&numbers(&[6, 4])?.shard(&grid, [partial, Shard(1)])?)?.local_shards()?;
        let sum_of = |range: std::ops::Range<usize>| -> Result<Vec<bool>> {
            shards[range].iter().map(|shard| Ok(shard.to_bytes()?.iter().all(|byte| matches!(byte, 0 | 0x80)))).collect()
        };
        assert_eq!((sum_of(0..2)?, sum_of(2..4)?), (vec![false; 2], vec![true; 2]), "{name}");
    }
    Ok(())
}

#[test]
fn large_sums_of_products_are_divided() -> Result<()> {
    let mesh = Mesh::loopback(4)?;
    let (a, b) = (numbers(&[512, 12])? % 5.0, numbers(&[12, 256])? % 7.0);
    let product = matmul(&a.shard(&mesh, [Shard(1)])?, &b.shard(&mesh, [Shard(0)])?)?;
    assert_eq!(product.placements(), Some(vec![Shard(0)]));
    assert!(product.to_bytes()? == matmul(&a, &b)?.to_bytes()?);
    let small = matmul(&a.index(s![..8])?.shard(&mesh, [Shard(1)])?, &b.shard(&mesh, [Shard(0)])?)?;
    assert_eq!(small.placements(), Some(vec![Replicate]));
    assert!(small.to_bytes()? == matmul(&a.index(s![..8])?, &b)?.to_bytes()?);
    Ok(())
}

#[test]
fn partial_arrays_combine_by_parts() -> Result<()> {
    let mesh = Mesh::loopback(2)?;
    let partial = numbers(&[100, 10])?.shard(&mesh, [Partial(PartialOp::Sum)])?;
    let (result, calls) = explain(|| partial.reshard([Shard(0)]));
    assert!(result?.to_bytes()? == numbers(&[100, 10])?.to_bytes()?);
    // Each rank receives half of the other one's values.
    assert_eq!(collectives(&calls), [("all_to_all", 100 * 10 * 8)]);
    Ok(())
}

#[test]
fn aligned_operations_do_not_communicate() -> Result<()> {
    let mesh = Mesh::loopback(3)?;
    let a = numbers(&[400, 6])?.shard(&mesh, [Shard(0)])?;
    let (result, calls) = explain(|| {
        let b = (&a * 2.0 + &a).t()?;
        let row_sums = b.sum(0)?;
        (b * &row_sums).eval()?;
        a.cumsum(1)
    });
    assert_eq!(result?.placements(), Some(vec![Shard(0)]));
    assert_eq!(collectives(&calls), []);
    Ok(())
}

#[test]
fn collectives_have_names_and_bytes() -> Result<()> {
    let mesh = Mesh::loopback(2)?;
    let a = ones([384, 4], DType::F32)?.to_device(Device::CPU)?.shard(&mesh, [Shard(0)])?;
    let names = |f: &dyn Fn() -> Result<NdArray>| -> Result<Vec<(&'static str, usize)>> {
        let (result, calls) = explain(|| f()?.eval().cloned());
        result?;
        Ok(collectives(&calls))
    };
    assert_eq!(names(&|| a.reshard([Shard(1)]))?, [("all_to_all", 384 * 4 * 4 / 2)]);
    // The ranks share one device, so that one of them holds the whole array.
    assert_eq!(names(&|| a.reshard([Replicate]))?.len(), 1);
    assert_eq!(names(&|| a.reshard([Replicate]))?[0].0, "all_gather");
    assert_eq!(names(&|| a.reshard([Replicate])?.reshard([Shard(1)]))?.len(), 1);
    assert_eq!(names(&|| a.sum(0))?[0].0, "all_gather");
    Ok(())
}

#[test]
fn new_arrays_are_divided_along_their_longest_axis() -> Result<()> {
    let mesh = Mesh::loopback(4)?;
    with_device(mesh.device(), || {
        assert_eq!(ones([3, 100], DType::F32)?.placements(), Some(vec![Shard(1)]));
        assert_eq!(ones([100, 100], DType::F32)?.placements(), Some(vec![Shard(0)]));
        assert_eq!(ones([3, 2], DType::F32)?.placements(), Some(vec![Replicate]));
        assert_eq!(arange(5, 1005, 2)?.local_shards()?.len(), 4);
        assert_eq!(arange(5, 1005, 2)?.to_vec::<i64>()?, (5..1005).step_by(2).collect::<Vec<i64>>());
        assert_eq!(cuprum_core::eye(9, 9, 2, DType::F32)?.sum(())?.item()?, 7.0);
        Ok(())
    })
}

#[test]
fn joins_and_assignments_stay_sharded() -> Result<()> {
    let mesh = Mesh::loopback(3)?;
    let mut a = numbers(&[300, 4])?.shard(&mesh, [Shard(0)])?;
    a.assign(s![10..250, 1], -1.0)?;
    assert_eq!(a.placements(), Some(vec![Shard(0)]));
    let mut want = numbers(&[300, 4])?;
    want.assign(s![10..250, 1], -1.0)?;
    assert!(a.to_bytes()? == want.to_bytes()?);
    let joined = concat([&a, &(&a + 1.0)], 0)?;
    assert_eq!(joined.placements(), Some(vec![Shard(0)]));
    assert!(joined.to_bytes()? == concat([&want, &(&want + 1.0)], 0)?.to_bytes()?);
    Ok(())
}

#[test]
fn products_keep_rows_and_columns_sharded() -> Result<()> {
    let (m, n, k) = (30, 20, 25);
    let (a, b) = (numbers(&[m, k])?, numbers(&[k, n])?);
    let want = a.matmul(&b)?.to_vec::<f64>()?;
    let mesh = Mesh::loopback(3)?;
    for (of_a, of_b, of_product) in
        [(Shard(0), Replicate, Shard(0)), (Replicate, Shard(1), Shard(1)), (Shard(1), Shard(0), Replicate), (Shard(0), Shard(0), Shard(0))]
    {
        let product = a.shard(&mesh, [of_a])?.matmul(&b.shard(&mesh, [of_b])?)?;
        assert_eq!(product.placements(), Some(vec![of_product]), "{of_a} @ {of_b}");
        assert_eq!(product.to_vec::<f64>()?, want, "{of_a} @ {of_b}");
    }
    let grid = Mesh::loopback_grid(&[2, 2])?;
    let blocks = [Shard(0), Shard(1)];
    let product = a.shard(&grid, blocks)?.matmul(&b.shard(&grid, blocks)?)?;
    assert_eq!(product.placements(), Some(blocks.to_vec()));
    assert_eq!(product.to_vec::<f64>()?, want);
    Ok(())
}

#[test]
fn invalid_arguments_are_errors() -> Result<()> {
    let mesh = Mesh::loopback(2)?;
    let a = numbers(&[4, 4])?;
    let message = |result: Result<NdArray>| result.map(|_| String::new()).unwrap_or_else(|e| e.to_string());
    assert!(message(a.shard(&mesh, [Shard(2)])).contains("axis 2 is out of bounds"));
    assert!(message(a.shard(&mesh, [Shard(0), Replicate])).contains("2 placements are given for a mesh of 1 axes"));
    assert!(message(a.reshard([Shard(0)])).contains("is not a mesh"));
    let other = a.shard(&mesh, [Shard(0)])?;
    assert!(message(cuprum_core::add(&other, &a)).contains("arrays are on"));
    // The index belongs to the axis, not to the flattened array.
    let offsets = with_device(Device::CPU, || NdArray::from_slice(&[0, 5, 5, 9]))?.shard(&mesh, [Replicate])?;
    let outside = message(cuprum_core::segment_sum(&numbers(&[3, 130])?.shard(&mesh, [Shard(0)])?, &offsets));
    assert!(outside.contains("index 5 is out of bounds for axis 0 with size 3"), "{outside}");
    assert!(Mesh::loopback(0).is_err() && Mesh::loopback_grid(&[]).is_err() && Mesh::over_devices(&[]).is_err());
    assert!(Mesh::loopback(usize::MAX).is_err() && Mesh::loopback_grid(&[usize::MAX, 3]).is_err());
    assert!(Mesh::over_devices(&[mesh.device()]).is_err());
    assert!(Mesh::grid_over_devices(&[2, 2], &[Device::CPU]).is_err());
    Ok(())
}
