//! Fourier transforms and sorts of sharded arrays: the results of one device, and the collective operations that they need.

use cuprum_backend_cpu as _;
use cuprum_core::ops::fft::{Norm, fft2, fftn, ifft2, irfft2, rfft, rfft2};
use cuprum_core::random::Generator;
use cuprum_core::{DType, NdArray, Result, axis, explain};
use cuprum_distributed::Placement::Shard;
use cuprum_distributed::{Mesh, ShardedArray};

fn numbers(shape: &[usize]) -> Result<NdArray> {
    Generator::new(3).normal(0.0, 1.0, shape, DType::F64)
}

/// Returns the names of the collective operations of `f`.
fn collectives(f: impl FnOnce() -> Result<NdArray>) -> Result<(NdArray, Vec<&'static str>)> {
    let (result, calls) = explain(f);
    Ok((result?, calls.iter().filter(|c| c.served_by == Some("loopback")).map(|c| c.op).collect()))
}

fn assert_near(got: &NdArray, want: &NdArray, what: &str) -> Result<()> {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{what}");
    let got = got.to_device(want.device())?;
    let error = (got - want).abs()?.max(())?.item()?.as_f64();
    assert!(error < 1e-10, "{what}: error {error:e}");
    Ok(())
}

/// A transform by name.
type Transform = (&'static str, fn(&NdArray) -> Result<NdArray>);

const TRANSFORMS: [Transform; 8] = [
    ("fft2", |a| fft2(a, None, [-2, -1], Norm::Backward)),
    ("fft2 padded and cut", |a| fft2(a, Some(&[15, 5]), [0, 1], Norm::Forward)),
    ("fft2 of a product", |a| fft2(&(a * 2.0), None, [1, 0], Norm::Ortho)),
    ("ifft2", |a| ifft2(&(a * a), None, [0, 1], Norm::Backward)),
    ("rfft2", |a| rfft2(a, None, [-2, -1], Norm::Backward)),
    ("rfft2 of the first axis last", |a| rfft2(a, None, [1, 0], Norm::Backward)),
    ("irfft2", |a| irfft2(a, None, [-2, -1], Norm::Backward)),
    ("irfft2 to an odd length", |a| irfft2(a, Some(&[7, 9]), [1, 0], Norm::Forward)),
];

#[test]
fn transforms_over_all_axes_exchange_once() -> Result<()> {
    let a = numbers(&[12, 10])?;
    for (name, transform) in TRANSFORMS {
        let want = transform(&a)?;
        for (ranks, axis) in [(1, 0), (2, 0), (2, 1), (3, 0), (4, 1), (16, 0)] {
            let mesh = Mesh::loopback(ranks)?;
            let sharded = a.shard(&mesh, [Shard(axis)])?;
            let (got, moves) = collectives(|| transform(&sharded)?.eval().cloned())?;
            assert_near(&got, &want, &format!("{name} on {ranks} ranks, axis {axis}"))?;
            // The input moves too if the first step needs another divided axis.
            assert!(moves.len() <= 2 && !moves.contains(&"all_gather"), "{name} on {ranks} ranks: {moves:?}");
        }
    }
    Ok(())
}

#[test]
fn transforms_along_other_axes_are_local() -> Result<()> {
    let a = numbers(&[8, 6, 10])?;
    let mesh = Mesh::loopback(2)?;
    let sharded = a.shard(&mesh, [Shard(0)])?;
    let (got, moves) = collectives(|| rfft(&sharded, None, -1, Norm::Backward)?.eval().cloned())?;
    assert_near(&got, &rfft(&a, None, -1, Norm::Backward)?, "rfft")?;
    assert!(moves.is_empty() && got.placements() == Some(vec![Shard(0)]), "{moves:?}");
    // One exchange gives each rank whole lines along the divided axis.
    let (got, moves) = collectives(|| fftn(&sharded, None, [0, 1], Norm::Backward)?.eval().cloned())?;
    assert_near(&got, &fftn(&a, None, [0, 1], Norm::Backward)?, "fftn")?;
    assert_eq!((moves, got.placements()), (vec!["all_to_all"], Some(vec![Shard(2)])));
    Ok(())
}

#[test]
fn sorts_of_rows_do_not_gather() -> Result<()> {
    let a = numbers(&[9, 20])?;
    for (ranks, axis) in [(2, 0), (3, 1), (4, 1)] {
        let mesh = Mesh::loopback(ranks)?;
        let sharded = a.shard(&mesh, [Shard(axis)])?;
        for (got, want) in [(sharded.sort(-1)?, a.sort(-1)?), (sharded.argsort(1)?, a.argsort(1)?), (sharded.sort(0)?, a.sort(0)?)] {
            assert!(got.to_bytes()? == want.to_bytes()?, "{ranks} ranks, axis {axis}");
        }
        let (_, moves) = collectives(|| sharded.sort(-1)?.eval().cloned())?;
        assert!(!moves.contains(&"all_gather") && (axis == 1 || moves.is_empty()), "{ranks} ranks, axis {axis}: {moves:?}");
    }
    Ok(())
}

#[test]
fn a_divided_row_is_sorted_in_parts() -> Result<()> {
    let floats = numbers(&[5000])?;
    let mut special = floats.copy()?;
    special.assign(cuprum_core::s![..;3], f64::NAN)?;
    special.assign(cuprum_core::s![1..;7], f64::INFINITY)?;
    special.assign(cuprum_core::s![2..;11], -0.0)?;
    let integers = Generator::new(4).integers(i64::MIN, i64::MAX, 3000, DType::I64)?;
    let large = cuprum_core::where_(integers.greater(0)?, &integers, i64::MAX - 5)?;
    let few = Generator::new(5).integers(0, 3, 2000, DType::U8)?;
    for (n, row) in [floats, special, integers, large, few.clone(), few.equal(1)?, numbers(&[3])?, numbers(&[0])?].iter().enumerate() {
        for ranks in [1, 2, 3, 8] {
            let mesh = Mesh::loopback(ranks)?;
            let sharded = row.shard(&mesh, [Shard(0)])?;
            for order in [axis(-1), axis(-1).descending()] {
                let (got, want) = (sharded.sort(order.clone())?, row.sort(order)?);
                assert!(row.size() == 0 || got.placements() == Some(vec![Shard(0)]), "row {n} on {ranks} ranks");
                // Zeros of both signs are equal, so values are compared.
                let got = got.to_device(row.device())?;
                let equal = got.equal(&want)? | (got.not_equal(&got)? & want.not_equal(&want)?);
                assert!(equal.all(())?.item_as::<bool>()?, "row {n} on {ranks} ranks");
            }
            let (_, moves) = collectives(|| sharded.sort(-1)?.eval().cloned())?;
            assert!(row.size() == 0 || ranks == 1 || moves.contains(&"all_to_all"), "row {n} on {ranks} ranks: {moves:?}");
        }
    }
    Ok(())
}
