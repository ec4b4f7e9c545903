//! Bayesian logistic regression by random-walk Metropolis sampling, with all chains in one array. The posterior means are compared with
//! integrals over a grid.
//!
//!     cargo run --release --example bayes -- [chains]

use cuprum::random::Generator;
use cuprum::special::expit;
use cuprum::{DType, NdArray, Result, array, axis, linspace, logaddexp, matmul, meshgrid, ones, stack, where_, zeros};

const OBSERVATIONS: usize = 100;
/// Standard deviation of the normal prior of each coefficient.
const PRIOR: f64 = 2.5;
/// Standard deviation of a proposed step.
const STEP: f64 = 0.45;
/// Steps that are discarded, and steps whose positions are averaged.
const WARM_UP: usize = 100;
const KEPT: usize = 300;

fn main() -> Result<()> {
    let chains: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(64);
    let (x, y) = data()?;
    let means = sample(&x, &y, chains)?;
    let exact = posterior_mean_on_grid(&x, &y)?;
    let estimate = means.mean(0)?;
    // The chains are independent, so the means of the chains give the standard error.
    let error = means.std(axis(0).correction(1))? / (chains as f64).sqrt();
    println!("posterior means {estimate:.3} with standard errors {error:.3}; integrals over a grid {exact:.3}");
    let deviation = ((&estimate - &exact) / error).abs()?.max(())?.item_as::<f64>()?;
    assert!(deviation < 4.0, "the means are {deviation:.1} standard errors from the integrals");
    Ok(())
}

/// Returns observations (n, 2), a constant and a covariate, and their binary outcomes.
fn data() -> Result<(NdArray, NdArray)> {
    let generator = Generator::new(11);
    let covariate = generator.normal(0.0, 1.0, OBSERVATIONS, DType::F64)?;
    let x = stack([&ones(OBSERVATIONS, DType::F64)?, &covariate], 1)?;
    let probability = expit(matmul(&x, &array![-0.5, 1.5])?)?;
    let y = generator.random(OBSERVATIONS, DType::F64)?.less(&probability)?.astype(DType::F64)?;
    Ok((x, y))
}

/// Returns the logarithm of the posterior density, up to a constant, at each row of `coefficients` (k, 2).
fn log_posterior(x: &NdArray, y: &NdArray, coefficients: &NdArray) -> Result<NdArray> {
    let z = matmul(coefficients, &x.t()?)?;
    let likelihood = (&z * y - logaddexp(0.0, &z)?).sum(1)?;
    Ok(likelihood - (coefficients * coefficients).sum(1)? / (2.0 * PRIOR * PRIOR))
}

/// Returns the mean position of each chain, (chains, 2).
fn sample(x: &NdArray, y: &NdArray, chains: usize) -> Result<NdArray> {
    let generator = Generator::new(12);
    let mut position = zeros([chains, 2], DType::F64)?;
    let mut density = log_posterior(x, y, &position)?;
    let mut sum = zeros([chains, 2], DType::F64)?;
    for step in 0..WARM_UP + KEPT {
        let proposal = &position + generator.normal(0.0, STEP, [chains, 2], DType::F64)?;
        let proposed = log_posterior(x, y, &proposal)?;
        let accepts = generator.random(chains, DType::F64)?.log()?.less(&proposed - &density)?;
        position = where_(accepts.expand_dims(1)?, &proposal, &position)?;
        density = where_(&accepts, &proposed, &density)?;
        if step >= WARM_UP {
            sum += &position;
        }
    }
    Ok(sum / KEPT as f64)
}

/// Returns the posterior mean by sums over a grid of 121 x 121 points, which covers the density.
fn posterior_mean_on_grid(x: &NdArray, y: &NdArray) -> Result<NdArray> {
    let axes = [linspace(-2.5, 1.5, 121)?, linspace(-0.5, 4.5, 121)?];
    let grid = meshgrid(axes, Default::default(), false)?;
    let points = stack([grid[0].reshape(-1)?, grid[1].reshape(-1)?], 1)?;
    let log_density = log_posterior(x, y, &points)?;
    let density = (&log_density - log_density.max(())?).exp()?;
    Ok((&points * density.expand_dims(1)?).sum(0)? / density.sum(())?)
}
