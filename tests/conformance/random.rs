//! Random numbers: streams that continue across calls, independence of shape, and moments.

use cuprum::random::Generator;
use cuprum::{DType, Device, NdArray, Result, arange, with_device};

use crate::checks::{Check, same};

pub fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::plain("random: a stream goes on, and a seed starts it again", |_| {
            let draw = || {
                let g = Generator::new(11);
                let (first, second) = (g.random([8], DType::F64)?, g.random([8], DType::F64)?);
                let whole = Generator::new(11).random([16], DType::F64)?;
                Ok::<_, cuprum::Error>(([first.to_bytes()?, second.to_bytes()?].concat(), whole.to_bytes()?))
            };
            let (parts, whole) = draw().map_err(|e| e.to_string())?;
            same(parts, whole)
        }),
        Check::plain("random: the shape does not matter", |_| {
            let draw = |shape: &[usize]| Generator::new(5).random(shape, DType::F32)?.to_bytes();
            same(draw(&[3, 4, 5]).map_err(|e| e.to_string())?, draw(&[60]).map_err(|e| e.to_string())?)
        }),
        Check::plain("random: moments", |_| {
            let moments = |a: NdArray| Ok::<_, cuprum::Error>((a.mean(())?.item()?.as_f64(), a.var(())?.item()?.as_f64()));
            let n = [100_000];
            let uniform = moments(Generator::new(1).uniform(-1.0, 3.0, n, DType::F64).map_err(|e| e.to_string())?);
            let normal = moments(Generator::new(2).normal(2.0, 3.0, n, DType::F64).map_err(|e| e.to_string())?);
            // The tolerance is five standard errors. The seeds are fixed, so the result is deterministic.
            for (what, got, (mean, var), kurtosis) in [("uniform", uniform, (1.0, 16.0 / 12.0), 1.8), ("normal", normal, (2.0, 9.0), 3.0)] {
                let (m, v) = got.map_err(|e| e.to_string())?;
                let count = n[0] as f64;
                if (m - mean).abs() > 5.0 * f64::sqrt(var / count) || (v - var).abs() > 5.0 * var * f64::sqrt((kurtosis - 1.0) / count) {
                    return Err(format!("{what}: mean {m}, variance {v}; not {mean}, {var}"));
                }
            }
            Ok(())
        }),
    ];
    type Draw = fn(&Generator) -> Result<NdArray>;
    // Rejection methods compare logarithms, which every device computes by the same operations.
    let draws: [(&str, Draw); 17] = [
        ("standard_gamma", |g| g.standard_gamma(2.5, [1001], DType::F64)),
        ("standard_gamma below 1", |g| g.standard_gamma(0.3, [1001], DType::F32)),
        ("poisson of a small mean", |g| g.poisson(3.5, [1001])),
        ("poisson", |g| g.poisson(1234.5, [1001])),
        ("binomial of a small mean", |g| g.binomial(20, 0.3, [1001])),
        ("binomial", |g| g.binomial(100_000, 0.7, [1001])),
        ("hypergeometric of a small sample", |g| g.hypergeometric(30, 40, 5, [1001])),
        ("hypergeometric", |g| g.hypergeometric(3000, 4000, 500, [1001])),
        ("geometric", |g| g.geometric(0.01, [1001])),
        ("logseries", |g| g.logseries(0.9, [1001])),
        ("zipf", |g| g.zipf(1.5, [1001])),
        ("negative_binomial", |g| g.negative_binomial(3.0, 0.1, [1001])),
        ("integers between arrays", |g| g.integers_between(0, arange(1, 1002, 1)?, false, (), DType::I64)),
        ("float64", |g| g.random([1001], DType::F64)),
        ("float32", |g| g.uniform(-3.0, 7.5, [1001], DType::F32)),
        ("float16", |g| g.uniform(0.0, 2.0, [1001], DType::F16)),
        ("int32", |g| g.integers(-1000, 1000, [1001], DType::I32)),
    ];
    for (name, draw) in draws {
        checks.push(Check::plain(format!("random: {name} has the same bits as on the host"), move |_| {
            let bytes = || draw(&Generator::new(77)).and_then(|a| a.to_bytes()).map_err(|e| e.to_string());
            same(bytes()?, with_device(Device::CPU, bytes)?)
        }));
    }
    checks
}
