//! Values for which products, powers or norms overflow or underflow, and arrays without elements.

use cuprum_backend_cpu as _;
use cuprum_core::ops::linalg::svdvals;
use cuprum_core::random::Generator;
use cuprum_core::{
    AxisOptions, Complex, DType, Error, NdArray, Result, arange, array, atanh, concat, full, linspace, ones, s, sin, stack, zeros,
};
use cuprum_numpy::fft::fftconvolve;
use cuprum_numpy::linalg::{Norm, cond, expm, lstsq, norm, vecdot};
use cuprum_numpy::ufunc::{ADD, DIVIDE, SUBTRACT, reduce, reduceat};
use cuprum_numpy::{ConvolutionMode, vander};

/// Checks that the elements of `expm(a)` have small relative errors.
fn check_exponential(a: &NdArray, expected: &[f64], tolerance: f64) -> Result<()> {
    for (k, (got, want)) in expm(a)?.to_vec::<f64>()?.into_iter().zip(expected).enumerate() {
        let error = if got == *want { 0.0 } else { (got - want).abs() / want.abs() };
        assert!(error <= tolerance, "expm({a}): element {k} is {got:e}, not {want:e}");
    }
    Ok(())
}

#[test]
fn exponentials_of_large_triangular_matrices() -> Result<()> {
    const E: f64 = std::f64::consts::E;
    check_exponential(&array![[-1e17, 0.0], [0.0, 1.0]], &[0.0, 0.0, 0.0, E], 1e-15)?;
    check_exponential(&array![[1e5, 0.0], [0.0, 1.0]], &[f64::INFINITY, 0.0, 0.0, E], 1e-15)?;
    check_exponential(&array![[1e5, 1.0], [0.0, 1.0]], &[f64::INFINITY, f64::INFINITY, 0.0, E], 1e-15)?;
    check_exponential(&array![[0.0, 1e300], [0.0, 0.0]], &[1.0, 1e300, 0.0, 1.0], 1e-15)?;
    check_exponential(&array![[1.0, 1e300], [0.0, 1.0]], &[E, E * 1e300, 0.0, E], 1e-15)?;
    check_exponential(&array![[1.0, 1e10], [0.0, 1.0]], &[E, E * 1e10, 0.0, E], 1e-15)?;
    check_exponential(&array![[1.0, 0.0], [1e10, 2.0]], &[E, 0.0, 1e10 * (E * E - E), E * E], 1e-15)?;
    check_exponential(&array![[-1e308, 1e308], [0.0, 0.0]], &[0.0, 1.0, 0.0, 1.0], 1e-15)?;
    let a = array![[1.0, 2.0, 3.0], [0.0, -50.0, 2.0], [0.0, 0.0, 30.0]];
    let expected =
        [[E, 0.10659928739055079, 1123922326677.2842], [0.0, 1.9287498479639178e-22, 267161864538.11155], [0.0, 0.0, 10686474581524.463]];
    check_exponential(&a, expected.as_flattened(), 1e-13)?;
    Ok(())
}

#[test]
fn exponentials_of_batches() -> Result<()> {
    // Full, triangular, diagonal and nilpotent matrices, of which each needs another number of halvings.
    let matrices = [
        array![[50.0, 60.0], [-60.0, -50.5]],
        array![[1.0, 1e10], [0.0, 2.0]],
        array![[-1e17, 0.0], [0.0, 1.0]],
        array![[1e8, 1e8], [-1e8, -1e8]],
        array![[0.5, 0.25], [0.0, 0.25]],
    ];
    let together = expm(&stack(&matrices, 0)?)?.to_vec::<f64>()?;
    for (a, together) in matrices.iter().zip(together.chunks(4)) {
        assert_eq!(expm(a)?.to_vec::<f64>()?, together, "{a}");
        check_exponential(&a.t()?, &[together[0], together[2], together[1], together[3]], 1e-11)?;
    }
    check_exponential(&matrices[0], &[1.324817863399944, 1.396686692817603, -1.396686692817603, -1.0146323470695413], 1e-12)?;
    let single = expm(&array![[1f32, 1e10], [0.0, 2.0]])?;
    assert_eq!(single.dtype(), DType::F32);
    assert!((single.to_vec::<f32>()?[1] / 4.670_774_3e10 - 1.0).abs() < 1e-6);
    let turn = Complex::new(0.0, 1e3);
    let complex = expm(&NdArray::from_vec(vec![turn, Complex::ONE, Complex::ZERO, Complex::ZERO], [2, 2])?)?.to_vec::<Complex<f64>>()?;
    assert!((complex[1] - (turn.exp() - 1.0) / turn).norm() < 1e-18 && (complex[0] - turn.exp()).norm() < 1e-15);
    Ok(())
}

#[test]
fn tolerances_of_least_squares_outside_0_to_1() -> Result<()> {
    for rcond in [-1.0, 0.0, 1.0, 2.0] {
        let fit = lstsq(&ones((3, 2), DType::F64)?, &ones(3, DType::F64)?, Some(rcond))?;
        assert!(fit.rank == 1 && fit.solution.to_vec::<f64>()?.iter().all(|x| (x - 0.5).abs() < 1e-15));
    }
    Ok(())
}

/// A large tall system is reduced to a triangular one.
#[test]
fn least_squares_of_large_tall_systems() -> Result<()> {
    let random = |seed, shape: [usize; 2]| Generator::new(seed).normal(0.0, 1.0, shape, DType::F64);
    let i = Complex::new(0.0, 1.0);
    let (real, complex) = (random(1, [400, 60])?, (random(2, [400, 60])? + random(3, [400, 60])? * i).eval()?.clone());
    // The last column is the sum of two others, so the rank is 59.
    let deficient = concat(&[&real.index(s![.., ..59])?, &(real.index(s![.., ..1])? + real.index(s![.., 1..2])?).eval()?.clone()], 1)?;
    for (a, rank) in [(&real, 60), (&complex, 60), (&deficient, 59), (&(&real * 1e200).eval()?.clone(), 60)] {
        let b = random(4, [400, 3])?;
        let fit = lstsq(a, &b, None)?;
        let largest = |x: NdArray| Ok::<f64, Error>(x.abs()?.max(())?.item()?.as_f64());
        let scale = largest(a.clone())?;
        // The residuals are orthogonal to the columns.
        let residuals = (&b - a.matmul(&fit.solution)?).eval()?.clone();
        let projection = largest(a.conj()?.t()?.matmul(&residuals)?)?;
        assert!(fit.rank == rank && projection / scale < 1e-11, "rank {}, {projection:e}", fit.rank);
        let values = svdvals(a)?;
        assert!(largest(values.subtract(&fit.singular_values)?)? < 1e-12 * largest(values)?);
        if rank == 60 {
            let sums = residuals.abs()?.square()?.sum(0)?;
            assert!(largest(sums.subtract(&fit.residuals)?)? < 1e-10);
        }
    }
    // The solution of least norm is orthogonal to the null space, whose vector is (1, 1, 0, .., 0, -1).
    let x = lstsq(&deficient, &random(4, [400, 1])?, None)?.solution.to_vec::<f64>()?;
    assert!((x[0] + x[1] - x[59]).abs() < 1e-13);
    Ok(())
}

#[test]
fn least_squares_of_float32_in_double_precision() -> Result<()> {
    let x = linspace(0.0, 1.0, 50)?.astype(DType::F32)?;
    let (a, b) = (vander(&x, 10, false)?.astype(DType::F32)?, sin(x.multiply(5.0)?)?.astype(DType::F32)?);
    let fit = lstsq(&a, &b, None)?;
    assert_eq!(fit.rank, 10);
    assert!((fit.residuals.to_vec::<f32>()?[0] / 1.939e-10 - 1.0).abs() < 0.01);
    assert_eq!([&fit.solution, &fit.residuals, &fit.singular_values].map(NdArray::dtype), [DType::F32; 3]);
    let fit = lstsq(&a.astype(DType::C64)?, &b, None)?;
    assert_eq!([&fit.solution, &fit.residuals, &fit.singular_values].map(NdArray::dtype), [DType::C64, DType::F32, DType::F32]);
    assert_eq!(fit.rank, 10);
    Ok(())
}

#[test]
fn sums_of_products_of_16_bit_floats_are_rounded_once() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        let number = |x: f64| full((), x, dtype);
        // In float16, the products are infinite.
        let (x, y) = (array![258.0, 256.0].astype(dtype)?, array![256.0, -256.0].astype(dtype)?);
        assert_eq!(vecdot(&x, &y, -1)?, number(512.0)?);
        assert_eq!(vecdot(&x, &array![-1i8, 1], -1)?, number(-2.0)?);
        // In bfloat16, the square is rounded to 1.0078125.
        let x = full(128, 1.0 + 2f64.powi(-7), dtype)?;
        let sum = 128.0 * (1.0 + 2f64.powi(-7)).powi(2);
        assert_eq!((vecdot(&x, &x, 0)?, norm(&x, (), ())?), (number(sum)?, number(sum)?.sqrt()?));
    }
    let x = full((100, 100), 1e-4, DType::F16)?;
    let root = full((), 0.01, DType::F16)?;
    assert_eq!(norm(&x, Norm::Frobenius, AxisOptions::from(()).keepdims())?, root.reshape((1, 1))?);
    let x = x.ravel()?;
    assert_eq!((norm(&x, (), ())?, norm(&x, 2, ())?), (root.clone(), root));
    // Along an axis, NumPy rounds the squares.
    assert_eq!(norm(&x, 2, 0)?, full((), 0.0, DType::F16)?);
    Ok(())
}

#[test]
fn condition_numbers_of_no_matrices() -> Result<()> {
    let a = zeros((0, 2, 2), DType::F64)?;
    assert_eq!((cond(&a, ())?.shape(), cond(&a, 1)?.shape()), (&[0][..], &[0][..]));
    assert!(cond(&zeros((2, 0, 0), DType::F64)?, ()).is_err());
    Ok(())
}

#[test]
fn convolutions_that_broadcast_are_centred() -> Result<()> {
    let same = |a: &NdArray, b: &NdArray| fftconvolve(a, b, ConvolutionMode::Same, ());
    assert_eq!(same(&array![1.0], &ones(4, DType::F64)?)?, array![1.0]);
    let result = same(&array![[0.0, 1.0, 2.0]], &array![[0.0], [1.0], [2.0]])?;
    assert_eq!(result, array![[0.0, 1.0, 2.0]]);
    Ok(())
}

#[test]
fn differences_and_quotients_of_16_bit_floats_are_rounded_once() -> Result<()> {
    let a = arange(0, 2000, 1)?.remainder(7)?.divide(8.0)?.add(0.1)?;
    for dtype in [DType::F16, DType::BF16] {
        let a = a.astype(dtype)?;
        for op in [SUBTRACT, DIVIDE] {
            let expected = reduce(&a.astype(DType::F32)?, 0, op)?.astype(dtype)?;
            assert_eq!(reduce(&a, 0, op)?, expected);
            assert_eq!(reduceat(&a, &array![0i64], 0, None, op)?.squeeze(0)?, expected);
            assert_eq!((reduce(&a, 0, op)?.dtype(), expected.dtype()), (dtype, dtype));
        }
    }
    assert_eq!(reduce(&a.astype(DType::F16)?, 0, SUBTRACT)?.item_as::<f64>()?, -949.5);
    Ok(())
}

#[test]
fn sums_of_negative_zeros_by_segment_are_negative() -> Result<()> {
    let starts = array![0i64, 1, 3, 2];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let a = array![-0.0, -0.0, -0.0, 0.0, -0.0].astype(dtype)?;
        let sums = reduceat(&a, &starts, 0, None, ADD)?;
        let negative: Vec<bool> = sums.astype(DType::F64)?.to_vec::<f64>()?.iter().map(|sum| sum.is_sign_negative()).collect();
        assert_eq!((sums.dtype(), negative), (dtype, vec![true, true, false, false]));
    }
    let (zero, rest) = (Complex::new(-0.0, 1.0), Complex::new(-0.0, -1.0));
    let sums = reduceat(&array![zero, rest, -rest], &array![0i64, 2], 0, None, ADD)?.to_vec::<Complex<f64>>()?;
    assert_eq!(format!("{sums:?}"), format!("{:?}", [Complex::new(-0.0, 0.0), -rest]));
    Ok(())
}

#[test]
fn inverse_hyperbolic_tangent_close_to_its_pole() -> Result<()> {
    let y = f64::MIN_POSITIVE.sqrt();
    let result = atanh(array![Complex::new(1.0, y)])?.to_vec::<Complex<f64>>()?[0];
    assert!((result.re - 256.0 * std::f64::consts::LN_2).abs() < 1e-12 && (result.im - std::f64::consts::FRAC_PI_4).abs() < 1e-15);
    Ok(())
}
