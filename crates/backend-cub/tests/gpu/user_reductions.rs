//! Compares reductions of user code, run by CUB and by the accelerator `cuda`, with float64 results computed here.

use cuprum_backend_cuda::user_kernels::{ReductionDefinition, ReductionKernel};
use cuprum_core::{CallRecord, Complex, DType, NdArray, Operand, Result, explain, full, ones, s, with_accelerators, zeros};

use crate::{numbers, on_device};

const NORM: ReductionDefinition = ReductionDefinition {
    inputs: "T x",
    output: "float64 y",
    map: "x * x",
    reduce: "a + b",
    post: "y = sqrt(a)",
    identity: "0",
    name: "norm",
};

/// Calls a kernel under an accelerator order. Returns the result and the record of the call.
///
/// The result is likely to reuse a freed buffer of other values, which exposes elements that the kernel does not write.
fn called(order: &str, kernel: &ReductionKernel, args: &[Operand], axes: Option<&[isize]>) -> Result<(NdArray, CallRecord)> {
    drop(full([1 << 16], -1, DType::I8)?);
    // SAFETY: the code of every kernel in this file reads only within its arrays, and writes only its result.
    let (array, records) = with_accelerators(order, || explain(|| unsafe { kernel.call(args, axes) }))?;
    let record = records.into_iter().find(|r| r.op == "ReductionKernel").expect("a call of the kernel");
    Ok((array?, record))
}

/// Calls a kernel twice by CUB, which must give the same bits, and once by the accelerator `cuda`. Returns both results.
fn by_both(kernel: &ReductionKernel, args: &[Operand], axes: Option<&[isize]>) -> Result<[NdArray; 2]> {
    let (by_cub, record) = called("cub", kernel, args, axes)?;
    assert_eq!(record.served_by, Some("cub"), "{record}");
    assert!(called("cub", kernel, args, axes)?.0.to_bytes()? == by_cub.to_bytes()?, "results differ between runs");
    let (base, record) = called("", kernel, args, axes)?;
    assert_eq!(record.served_by, Some("cuda"), "{record}");
    assert_eq!((by_cub.shape(), by_cub.dtype()), (base.shape(), base.dtype()));
    Ok([by_cub, base])
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
fn scalars_raw_arrays_and_every_dtype() {
    on_device(|| {
        let parts = ReductionDefinition {
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
        let any = ReductionDefinition {
            inputs: "T x",
            output: "T y",
            map: "x",
            reduce: "a || b",
            post: "y = a",
            identity: "false",
            name: "any_of",
        };
        let truths = NdArray::from_vec((0..4000).map(|i| i / 1000 == 2 && i % 7 == 0).collect::<Vec<bool>>(), [4, 1000])?;
        for result in by_both(&ReductionKernel::new(any)?, &[truths.into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<bool>()?, [false, false, true, false]);
        }
        let sum = ReductionDefinition {
            map: "x",
            reduce: "cuprum::op::add(a, b)",
            post: "y = a",
            identity: "",
            output: "T y",
            name: "sum",
            ..NORM
        };
        let ones = full([3, 5001], Complex::new(1.0, -2.0), DType::C128)?;
        for result in by_both(&ReductionKernel::new(sum)?, &[ones.into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<Complex<f64>>()?, [Complex::new(5001.0, -10002.0); 3]);
        }
        Ok(())
    });
}

#[test]
fn the_identity_is_the_result_of_an_empty_reduction() {
    on_device(|| {
        // 7 is not neutral for addition, so it must not enter the sums.
        let kernel = ReductionKernel::new(ReductionDefinition {
            output: "float64 y",
            map: "x",
            post: "y = a",
            identity: "7",
            name: "total",
            ..NORM
        })?;
        let ones = ones([40, 3000], DType::F64)?;
        for result in by_both(&kernel, &[(&ones).into()], Some(&[1]))? {
            assert_eq!(result.to_vec::<f64>()?, [3000.0; 40]);
        }
        let none = zeros([2, 0], DType::F64)?;
        assert_eq!(called("cub", &kernel, &[none.into()], Some(&[1]))?.0.to_vec::<f64>()?, [7.0, 7.0]);
        Ok(())
    });
}

#[test]
fn the_base_accelerator_serves_declined_calls() {
    on_device(|| {
        let kernel = ReductionKernel::new(NORM)?;
        let x = NdArray::from_vec(numbers(3000), [30, 100])?;
        let including = ReductionKernel::new(NORM)?.with_option("-I/nowhere");
        // A macro that redefines a function of cub's kernels breaks their compilation. The kernels of the accelerator `cuda` still compile.
        let macros = ReductionKernel::new(NORM)?.with_preamble("#define reduce_thread_shares nothing here");
        let cases: [(&str, &ReductionKernel, NdArray, &[isize]); 5] = [
            ("the reduced axis is not the last one", &kernel, x.clone(), &[0]),
            ("not contiguous along the reduced axis", &kernel, x.index(s![.., ..;2])?, &[1]),
            ("one element per result", &kernel, x.index(s![.., ..1])?.contiguous()?, &[1]),
            ("its code includes files, which only the base accelerator finds", &including, x.clone(), &[1]),
            ("does not compile with", &macros, x.clone(), &[1]),
        ];
        for (why, kernel, x, axes) in cases {
            let (result, record) = called("cub", kernel, &[(&x).into()], Some(axes))?;
            assert!(
                record.served_by == Some("cuda") && record.declined.iter().any(|(accelerator, w)| *accelerator == "cub" && w.contains(why)),
                "{record}"
            );
            let squares = (&x * &x).sum(axes[0])?.sqrt()?;
            close(&result, &squares.to_vec::<f64>()?, 1e-12, why)?;
        }
        let wrong = ReductionKernel::new(ReductionDefinition { map: "x * nothing", ..NORM })?;
        let error = called("cub", &wrong, &[(&x).into()], Some(&[1])).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("norm.cu") && error.contains("nothing"), "{error}");
        Ok(())
    });
}
