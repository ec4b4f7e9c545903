//! The Poisson equation on a square by conjugate gradients: -u_xx - u_yy = f with u = 0 on the boundary, by five-point differences.
//! Checks the solution against the exact one, and draws it as a PNG.
//!
//!     cargo run --release --example poisson -- [side] [out.png]
//!
//! Without a picture, the PNG is written to a temporary folder and removed.

use std::f64::consts::PI;
use std::path::{Path, PathBuf};

use cuprum::io::{ImageOptions, save_image};
use cuprum::sparse::{CsrArray, SolverOptions, Sparse, SparseMath, cg, diags_array, eye_array, kron};
use cuprum::{DType, Error, NdArray, Result, arange, array};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let side = args.next().and_then(|a| a.parse().ok()).unwrap_or(128);
    match args.next().map(PathBuf::from) {
        Some(picture) => solve(side, &picture),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-poisson-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            solve(side, &folder.join("poisson.png"))?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

fn solve(side: usize, picture: &Path) -> Result<()> {
    let step = 1.0 / (side + 1) as f64;
    let matrix = laplacian(side)?;

    // The interior points of the grid, and a right-hand side whose exact solution is known.
    let along = arange(1, side as i64 + 1, 1)?.astype(DType::F64)? * step;
    let (x, y) = (along.reshape((1, -1))?, along.reshape((-1, 1))?);
    let (bump, wave) = (&x - x.power(3)?, (&y * (2.0 * PI)).sin()?);
    let exact = &bump * &wave;
    let right = (&x * 6.0 + &bump * (4.0 * PI * PI)) * &wave * (step * step);

    let solution = cg(&matrix, &right.ravel()?, &SolverOptions { rtol: 1e-10, ..Default::default() })?;
    assert!(solution.has_converged, "the residual is {}", solution.residual_norm);
    let u = solution.x.reshape([side, side])?;
    let error = (&u - &exact).abs()?.max(())?.item()?.as_f64();
    println!("{} unknowns, {} elements: {} iterations on {}", side * side, matrix.nnz(), solution.iterations, u.device());
    println!("largest error {error:.2e}, step squared {:.2e}", step * step);
    // The error of five-point differences is proportional to the square of the step.
    assert!(error < 5.0 * step * step, "the error is {error}");
    draw(&u, picture)
}

/// Returns the matrix of five-point differences for a grid of `side` by `side` interior points.
fn laplacian(side: usize) -> Result<CsrArray> {
    let second = diags_array(&[array![-1.0], array![2.0], array![-1.0]], &[-1, 0, 1], Some([side, side]), DType::F64)?;
    let identity = eye_array(side, side, 0, DType::F64)?;
    kron(&identity, &second)?.add(&kron(&second, &identity)?)?.to_csr()
}

/// Draws the solution: red for positive values, blue for negative ones.
fn draw(u: &NdArray, picture: &Path) -> Result<()> {
    let level = u / u.abs()?.max(())?;
    let white = 1.0 - level.abs()?;
    let red = cuprum::maximum(&white, level.greater(0)?)?;
    let blue = cuprum::maximum(&white, level.less(0)?)?;
    save_image(picture, &cuprum::stack(&[red, white, blue], -1)?, &ImageOptions::default())
}
