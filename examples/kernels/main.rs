//! `cuprum::kernel!`: Mandelbrot, a 5-point stencil, Black-Scholes, a k-means step and a softmax, each from one source.
//! Runs them on every device and compares the results with NumPy.
//!
//!     cargo run --release --example kernels

use cuprum::{DType, Device, NdArray, Result, arange_as, explain, linspace, with_device};

mod operations;
use operations::{black_scholes, heat_step, mandelbrot, nearest_centre, softmax};

/// A computation with a scalar result, which is compared with NumPy's.
struct Check {
    name: &'static str,
    compute: fn() -> Result<NdArray>,
    /// NumPy 2.4's float64 result of the expression in the entry's comment.
    numpy: f64,
    /// Maximum relative difference due to rounding.
    tolerance: f64,
}

/// Returns `arange(n) / n`.
fn ramp(n: usize) -> Result<NdArray> {
    arange_as(0, n, 1, DType::F64)?.divide(n)
}

static CHECKS: &[Check] = &[
    // `mandelbrot` with array operations: x in linspace(-2, 0.5, 300), y in linspace(-1.2, 1.2, 200), 100 steps.
    // Fused multiply-adds change the number of steps of points that escape late, hence the wide tolerance.
    Check {
        name: "mandelbrot",
        compute: || mandelbrot(linspace(-2.0, 0.5, 300)?, linspace(-1.2, 1.2, 200)?.reshape([200, 1])?, 100)?.sum(()),
        numpy: 1_761_864.0,
        tolerance: 1e-4,
    },
    // f = sin(6 x) * cos(4 y); (f + 0.2 * (north + south + west + east - 4 f)) ** 2, summed
    Check {
        name: "heat step",
        compute: || heat_step(&(&(ramp(400)? * 6).sin()? * &(ramp(300)? * 4).cos()?.reshape([300, 1])?), 0.2)?.square()?.sum(()),
        numpy: 34949.32558275516,
        tolerance: 1e-12,
    },
    // spot = 50 + 100 x, strike = 100, years = 0.1 + x, interest = 0.05, volatility = 0.2 + 0.1 x
    Check {
        name: "black scholes",
        compute: || {
            let x = ramp(10_000)?;
            black_scholes(&x * 100 + 50, 100.0, &x + 0.1, 0.05, &x * 0.1 + 0.2)?.sum(())
        },
        numpy: 166422.91886596673,
        tolerance: 1e-12,
    },
    // points (x, x ** 2), centres (0, 0.5), (0.5, 0), (1, 1), (0.2, 0.2); argmin of squared distances, squared, summed
    Check {
        name: "k-means",
        compute: || {
            let x = ramp(10_000)?;
            let centres = NdArray::from_slice(&[0.0, 0.5, 0.5, 0.0, 1.0, 1.0, 0.2, 0.2])?.reshape([4, 2])?;
            nearest_centre(&x, x.square()?, &centres)?.square()?.sum(())
        },
        numpy: 48_787.0,
        tolerance: 0.0,
    },
    // a = sin(50 x).reshape(100, 100); e = exp(a - a.max(1)); (e / e.sum(1)) ** 2, summed
    Check {
        name: "softmax",
        compute: || softmax(&(ramp(10_000)? * 50).sin()?.reshape([100, 100])?)?.square()?.sum(()),
        numpy: 1.0102433756784048,
        tolerance: 1e-12,
    },
];

fn main() -> Result<()> {
    let mut wrong = 0;
    for device in Device::all() {
        println!("{device}");
        for check in CHECKS {
            let (found, calls) = explain(|| with_device(device, || (check.compute)()?.item()));
            let found = found?.as_f64();
            let fits = (found - check.numpy).abs() <= check.tolerance * check.numpy.abs();
            wrong += usize::from(!fits);
            let passes = calls.iter().filter(|call| call.served_by.is_some()).count();
            println!("    {:<14} {found:<20} {} in {passes} calls", check.name, if fits { "as NumPy" } else { "WRONG" });
        }
    }
    if wrong > 0 {
        return Err(cuprum::Error::value("kernels", format!("{wrong} results differ from NumPy")));
    }
    Ok(())
}
