//! Results on meshes have the same bits for any number of ranks.

use cuprum_backend_cpu as _;
use cuprum_core::random::Generator;
use cuprum_core::{Complex, DType, Device, NdArray, Result, arange, axis, concat, exp, s, where_, with_device};
use cuprum_distributed::Placement::Shard;
use cuprum_distributed::{Mesh, ShardedArray};

const RANKS: [usize; 7] = [1, 2, 3, 4, 5, 8, 12];

/// Returns random numbers of mixed magnitude, whose sums depend on the order of additions.
fn numbers(shape: &[usize], dtype: DType) -> Result<NdArray> {
    with_device(Device::CPU, || {
        let normal = Generator::new(7).normal(0.0, 4.0, shape, DType::F64)?;
        (exp(&normal)? * &normal).astype(dtype)
    })
}

/// Checks that `f` of an array sharded along each axis has the same bytes on every mesh.
fn check(name: &str, shape: &[usize], dtype: DType, f: impl Fn(&NdArray) -> Result<NdArray>) -> Result<()> {
    let a = numbers(shape, dtype)?;
    for axis in 0..shape.len() as isize {
        let mut first: Option<Vec<u8>> = None;
        for ranks in RANKS {
            let mesh = Mesh::loopback(ranks)?;
            let bytes = f(&a.shard(&mesh, [Shard(axis)])?)?.to_bytes()?;
            match &first {
                None => first = Some(bytes),
                Some(first) => assert!(*first == bytes, "{name} of {dtype} {shape:?} along axis {axis} on {ranks} ranks"),
            }
        }
    }
    Ok(())
}

#[test]
fn reductions() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::C64] {
        for shape in [&[1][..], &[7], &[191], &[200], &[385], &[5000], &[100_003], &[40, 3000], &[3000, 40], &[6, 50, 70]] {
            check("sum", shape, dtype, |a| a.sum(()))?;
            check("sum over the first axis", shape, dtype, |a| a.sum(0))?;
            check("mean over the last axis", shape, dtype, |a| a.mean(axis(-1).keepdims()))?;
            check("var", shape, dtype, |a| a.var(()))?;
        }
    }
    check("prod", &[300], DType::F32, |a| (a * 1e-2).prod(()))
}

#[test]
fn products_that_overflow_in_some_blocks() -> Result<()> {
    let a = with_device(Device::CPU, || arange(0, 40_000, 1))?;
    let one_zero = where_(a.equal(2)?, 0.0, 1e20)?;
    for ranks in RANKS {
        let mesh = Mesh::loopback(ranks)?;
        let product = |a: &NdArray| a.shard(&mesh, [Shard(0)])?.prod(())?.item_as::<f64>();
        assert_eq!(product(&one_zero)?, 0.0, "{ranks}");
        assert!(product(&where_(a.equal(30_000)?, f64::NAN, &one_zero)?)?.is_nan(), "{ranks}");
    }
    Ok(())
}

#[test]
fn scans() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        for shape in [&[1][..], &[193], &[100_003], &[40, 700], &[700, 40]] {
            check("cumsum", shape, dtype, |a| a.cumsum(0))?;
            check("cumsum over the last axis", shape, dtype, |a| a.cumsum(-1))?;
        }
    }
    Ok(())
}

#[test]
fn products_of_complex_infinities_start_without_a_factor() -> Result<()> {
    let values = [(f64::INFINITY, 0.0), (1.0, 0.0), (2.0, 0.0)].map(|(re, im)| Complex::new(re, im));
    let values = NdArray::from_slice(&values)?;
    for (ranks, repeats) in RANKS.into_iter().flat_map(|ranks| [1, 200].map(|repeats| (ranks, repeats))) {
        let a = concat(vec![values.clone(); repeats], 0)?;
        let product = a.shard(&Mesh::loopback(ranks)?, [Shard(0)])?.cumprod(0)?;
        let first = product.index(s![..2])?.to_vec::<Complex<f64>>()?;
        assert!(first[0].re == f64::INFINITY && first[0].im == 0.0 && first[1].im.is_nan(), "{first:?} on {ranks} ranks");
    }
    Ok(())
}

#[test]
fn expressions_over_rows() -> Result<()> {
    let softmax = |a: &NdArray| {
        let e = exp(&(a - a.max(axis(-1).keepdims())?))?;
        Ok(&e / e.sum(axis(-1).keepdims())?)
    };
    for shape in [&[400, 30][..], &[30, 400], &[7, 5]] {
        check("softmax", shape, DType::F32, softmax)?;
        check("normalization", shape, DType::F32, |a| {
            Ok((a - a.mean(axis(-1).keepdims())?) / (a.var(axis(-1).keepdims())? + 1e-5).sqrt()?)
        })?;
    }
    Ok(())
}

#[test]
fn random_numbers_are_those_of_one_device() -> Result<()> {
    for (shape, dtype) in [(&[1001][..], DType::F32), (&[1001], DType::F64), (&[77, 3], DType::F32), (&[3, 77], DType::F64)] {
        let draw = || Generator::new(3).normal(0.0, 1.0, shape, dtype)?.to_bytes();
        let want = with_device(Device::CPU, draw)?;
        for ranks in RANKS {
            assert!(with_device(Mesh::loopback(ranks)?.device(), draw)? == want, "{shape:?} {dtype} on {ranks} ranks");
        }
    }
    Ok(())
}
