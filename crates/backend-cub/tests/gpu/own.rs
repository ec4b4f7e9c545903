//! Reductions that are not core's, by CUB and by the base on a real device, against float64 sums written out here: kernels from strings,
//! whose results lie in memory that was full of other things.

use cuprum_backend_cuda::raw::{Reduction, ReductionKernel};
use cuprum_core::{Complex, DType, NdArray, Operand, Record, Result, explain, s, with_accelerators};

use crate::{numbers, on_device};

const NORM: Reduction =
    Reduction { inputs: "T x", output: "float64 y", map: "x * x", reduce: "a + b", post: "y = sqrt(a)", identity: "0", name: "norm" };

/// The result under an order, in memory that held ones before, and what the chain did for the kernel.
fn called(order: &str, kernel: &ReductionKernel, args: &[Operand], axes: Option<&[isize]>) -> Result<(NdArray, Record)> {
    drop(NdArray::full([1 << 16], -1, DType::I8)?);
    // SAFETY: the code of every kernel here reads inside its arrays and writes nothing but its result.
    let (array, records) = with_accelerators(order, || explain(|| unsafe { kernel.call(args, axes) }))?;
    let record = records.into_iter().find(|r| r.op == "ReductionKernel").expect("a call of the kernel");
    Ok((array?, record))
}

/// The result, which CUB must give, the same bits again; and which the base gives too.
fn by_both(kernel: &ReductionKernel, args: &[Operand], axes: Option<&[isize]>) -> Result<[NdArray; 2]> {
    let (ours, record) = called("cub", kernel, args, axes)?;
    assert_eq!(record.served_by, Some("cub"), "{record}");
    assert!(called("cub", kernel, args, axes)?.0.to_bytes()? == ours.to_bytes()?, "another result at another time");
    let (base, record) = called("", kernel, args, axes)?;
    assert_eq!(record.served_by, Some("cuda"), "{record}");
    assert_eq!((ours.shape(), ours.dtype()), (base.shape(), base.dtype()));
    Ok([ours, base])
}

fn close(got: &NdArray, want: &[f64], tolerance: f64, what: &str) -> Result<()> {
    let got = got.astype(DType::F64)?.to_vec::<f64>()?;
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "{what}, element {i}: {g}, not {w}");
    }
    Ok(())
}

#[test]
fn everything_at_every_size() {
    on_device(|| {
        let kernel = ReductionKernel::new(NORM)?;
        for n in [2usize, 31, 257, 4095, 4097, 100_003, 5_000_001] {
            let x = numbers(n);
            let want = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            for array in [NdArray::from_vec(x.clone(), [n])?, NdArray::from_vec([vec![3.0], x.clone()].concat(), [n + 1])?.index(s![1..])?]
            {
                for result in by_both(&kernel, &[(&array).into()], None)? {
                    close(&result, &[want], 1e-12, &format!("{n}"))?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn rows_of_every_length() {
    on_device(|| {
        let kernel = ReductionKernel::new(NORM)?;
        for (rows, columns) in [(100_000, 3), (1000, 100), (333, 999), (300, 2048), (500, 5000), (3, 100_000)] {
            let x = numbers(rows * columns);
            let want: Vec<f64> = x.chunks(columns).map(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
            let array = NdArray::from_vec(x, [rows, columns])?;
            for result in by_both(&kernel, &[(&array).into()], Some(&[-1]))? {
                close(&result, &want, 1e-12, &format!("{rows} rows of {columns}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn numbers_raw_arrays_and_every_dtype() {
    on_device(|| {
        let parts = Reduction {
            inputs: "T x, float64 scale, raw float64 table, float32 y",
            output: "T z",
            map: "x * T(scale) + T(table[1]) * T(y)",
            reduce: "a > b ? a : b",
            post: "z = a",
            identity: "",
            name: "most",
        };
        let kernel = ReductionKernel::new(parts)?;
        let small: Vec<f64> = (0..60_000).map(|i| f64::from(i * 7919 % 31)).collect();
        let line: Vec<f64> = (0..600).map(|i| f64::from(i % 3)).collect();
        let want: Vec<f64> =
            small.chunks(600).map(|row| row.iter().zip(&line).map(|(x, y)| 2.0 * x + 5.0 * y).fold(0.0, f64::max)).collect();
        let (x, y) = (NdArray::from_vec(small, [100, 600])?, NdArray::from_vec(line, [600])?.astype(DType::F32)?);
        let table = NdArray::from_slice(&[1.0, 5.0])?;
        for dtype in DType::ALL.into_iter().filter(|d| !d.is_complex() && *d != DType::Bool) {
            let args = [x.astype(dtype)?.into(), 2.0.into(), (&table).into(), (&y).into()];
            for result in by_both(&kernel, &args, Some(&[1]))? {
                assert_eq!(result.dtype(), dtype);
                close(&result, &want, 0.0, dtype.name())?;
            }
        }
        let any = Reduction { inputs: "T x", output: "T y", map: "x", reduce: "a || b", post: "y = a", identity: "false", name: "any_of" };
        let truths = NdArray::from_vec((0..4000).map(|i| i / 1000 == 2 && i % 7 == 0).collect::<Vec<bool>>(), [4, 1000])?;
        for result in by_both(&ReductionKernel::new(any)?, &[truths.into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<bool>()?, [false, false, true, false]);
        }
        let sum = Reduction { map: "x", reduce: "cuprum::op::add(a, b)", post: "y = a", identity: "", output: "T y", name: "sum", ..NORM };
        let ones = NdArray::full([3, 5001], Complex::new(1.0, -2.0), DType::C128)?;
        for result in by_both(&ReductionKernel::new(sum)?, &[ones.into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<Complex<f64>>()?, [Complex::new(5001.0, -10002.0); 3]);
        }
        Ok(())
    });
}

#[test]
fn an_identity_is_the_result_of_no_elements() {
    on_device(|| {
        // Not neutral: it must not enter the sums.
        let kernel =
            ReductionKernel::new(Reduction { output: "float64 y", map: "x", post: "y = a", identity: "7", name: "total", ..NORM })?;
        let ones = NdArray::ones([40, 3000], DType::F64)?;
        for result in by_both(&kernel, &[(&ones).into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<f64>()?, [3000.0; 40]);
        }
        let none = NdArray::zeros([2, 0], DType::F64)?;
        assert_eq!(called("cub", &kernel, &[none.into()], Some(&[1]))?.0.to_vec::<f64>()?, [7.0, 7.0]);
        Ok(())
    });
}

#[test]
fn what_cub_declines_the_base_serves() {
    on_device(|| {
        let kernel = ReductionKernel::new(NORM)?;
        let x = NdArray::from_vec(numbers(3000), [30, 100])?;
        let including = ReductionKernel::new(NORM)?.option("-I/nowhere");
        // Code in which a name of CUB's kernels is a macro compiles with the base's alone.
        let macros = ReductionKernel::new(NORM)?.preamble("#define reduce_share nothing here");
        let cases: [(&str, &ReductionKernel, NdArray, &[isize]); 5] = [
            ("the reduced axis is not the last: column", &kernel, x.clone(), &[0]),
            ("not contiguous along the reduced axis", &kernel, x.index(s![.., ..;2])?, &[1]),
            ("one element per result", &kernel, x.index(s![.., ..1])?.contiguous()?, &[1]),
            ("its code includes files, which the base looks for", &including, x.clone(), &[1]),
            ("does not compile with", &macros, x.clone(), &[1]),
        ];
        for (why, kernel, x, axes) in cases {
            let (result, record) = called("cub", kernel, &[(&x).into()], Some(axes))?;
            assert!(
                record.served_by == Some("cuda") && record.declined.iter().any(|(who, w)| *who == "cub" && w.contains(why)),
                "{record}"
            );
            let squares = (&x * &x).sum(axes[0])?.sqrt()?;
            close(&result, &squares.to_vec::<f64>()?, 1e-12, why)?;
        }
        let wrong = ReductionKernel::new(Reduction { map: "x * nothing", ..NORM })?;
        let error = called("cub", &wrong, &[(&x).into()], Some(&[1])).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("norm.cu") && error.contains("nothing"), "{error}");
        Ok(())
    });
}
