//! Least squares by gradient descent: an application of the crate `ndarray` that three changed lines move to a GPU.
//!
//!     cargo run --release --features ndarray --example least_squares -- [rows] [columns] [steps]
//!
//! ```diff
//!  fn fit(x: Array2<f64>, y: Array1<f64>, steps: usize, rate: f64) -> Result<Array1<f64>> {
//! -    let mut w = Array1::zeros(x.ncols());
//! +    let (mut w, x, y) = (zeros(x.ncols(), DType::F64)?, NdArray::from_ndarray(x)?, NdArray::from_ndarray(y)?);
//!      for _ in 0..steps {
//! -        w = &w - x.t().dot(&(x.dot(&w) - &y)) * rate;
//! +        w = &w - x.t()?.dot(&(x.dot(&w)? - &y))? * rate;
//!      }
//! -    Ok(w)
//! +    Array1::try_from(w)
//!  }
//! ```
//!
//! Arrays move in and out without a copy on the host, and by one transfer each on a GPU. The program runs both versions and compares them.

use std::time::Instant;

use cuprum::{DType, Device, NdArray, Result, zeros};
use ndarray::{Array1, Array2};

fn fit_with_ndarray(x: Array2<f64>, y: Array1<f64>, steps: usize, rate: f64) -> Result<Array1<f64>> {
    let mut w = Array1::zeros(x.ncols());
    for _ in 0..steps {
        w = &w - x.t().dot(&(x.dot(&w) - &y)) * rate;
    }
    Ok(w)
}

fn fit(x: Array2<f64>, y: Array1<f64>, steps: usize, rate: f64) -> Result<Array1<f64>> {
    let (mut w, x, y) = (zeros(x.ncols(), DType::F64)?, NdArray::from_ndarray(x)?, NdArray::from_ndarray(y)?);
    for _ in 0..steps {
        w = &w - x.t()?.dot(&(x.dot(&w)? - &y))? * rate;
    }
    Array1::try_from(w)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut next = |default| arguments.next().and_then(std::result::Result::ok).unwrap_or(default);
    let (rows, columns, steps) = (next(2000), next(50), next(200));

    // Rows with known coefficients, which the fit has to find.
    let x = Array2::from_shape_fn((rows, columns), |(i, j)| ((i * (j + 3) + j * j) as f64 * 0.7).sin());
    let known = Array1::from_shape_fn(columns, |j| j as f64 - 0.5 * columns as f64);
    let y = x.dot(&known);
    let rate = 1.0 / rows as f64;

    let start = Instant::now();
    let want = fit_with_ndarray(x.clone(), y.clone(), steps, rate)?;
    let first = start.elapsed();
    let start = Instant::now();
    let found = fit(x, y, steps, rate)?;
    println!("{steps} steps: ndarray {first:.1?}, cuprum on {} {:.1?}", Device::current()?, start.elapsed());

    let largest = |a: Array1<f64>| a.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let (difference, error) = (largest(&found - &want), largest(&found - &known));
    println!("coefficients differ by {difference:.1e} between the versions, by {error:.1e} from the known ones");
    assert!(difference <= 1e-9 * largest(known.clone()), "the versions differ");
    assert!(error <= 1e-3 * largest(known), "the fit has not converged");
    Ok(())
}
