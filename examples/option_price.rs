//! Price of a European call option by Monte Carlo simulation, with a confidence interval, against the formula of Black and Scholes.
//!
//!     cargo run --release --example option_price -- [paths]

use cuprum::random::default_rng;
use cuprum::{DType, Result, maximum};

/// Price of the stock, strike price, risk-free rate and volatility per year, and years to expiry.
const STOCK: f64 = 100.0;
const STRIKE: f64 = 105.0;
const RATE: f64 = 0.03;
const VOLATILITY: f64 = 0.2;
const YEARS: f64 = 1.0;
/// Price by the formula of Black and Scholes (1973).
const EXACT: f64 = 7.128_064_669_261_74;

fn main() -> Result<()> {
    let paths = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let normal = default_rng(7).normal(0.0, 1.0, paths, DType::F64)?;
    let deviation = VOLATILITY * YEARS.sqrt();
    let growth = ((RATE - 0.5 * VOLATILITY * VOLATILITY) * YEARS + &normal * deviation).exp()?;
    let payoff = maximum(growth * STOCK - STRIKE, 0.0)? * (-RATE * YEARS).exp();
    let price = payoff.mean(())?.item_as::<f64>()?;
    let error = payoff.std(())?.item_as::<f64>()? / (paths as f64).sqrt();
    // 99 % of the intervals of 2.576 standard errors contain the price.
    let (low, high) = (price - 2.576 * error, price + 2.576 * error);
    println!("{price:.4}, from {low:.4} to {high:.4} at 99 % confidence; the exact price is {EXACT:.4}");
    assert!(low <= EXACT && EXACT <= high, "the exact price is outside of the interval");
    Ok(())
}
