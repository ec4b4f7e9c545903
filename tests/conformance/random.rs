//! Random numbers: streams that continue across calls, independence of shape, and moments.

use cuprum::random::Generator;
use cuprum::{DType, NdArray, Result, arange};

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
    // The last column is the FNV-1a hash of the bytes: the numbers of a seed are part of the interface, on every device.
    let draws: [(&str, Draw, u64); 19] = [
        ("standard_gamma", |g| g.standard_gamma(2.5, [1001], DType::F64), 0x85dc_6bb0_b8a5_c0c1),
        ("standard_gamma below 1", |g| g.standard_gamma(0.3, [1001], DType::F32), 0x2e6d_a512_ab69_c3b2),
        ("poisson of a small mean", |g| g.poisson(3.5, [1001]), 0xe2e9_566f_b0f0_8ae5),
        ("poisson", |g| g.poisson(1234.5, [1001]), 0x1245_2777_1512_2065),
        ("binomial of a small mean", |g| g.binomial(20, 0.3, [1001]), 0xecd1_8bc4_8f34_4c86),
        ("binomial", |g| g.binomial(100_000, 0.7, [1001]), 0xdf9d_5eb7_f190_da23),
        ("binomial of 2**50 trials", |g| g.binomial(1_i64 << 50, 0.3, [1001]), 0x27b5_1f58_2d85_ef19),
        ("hypergeometric of a small sample", |g| g.hypergeometric(30, 40, 5, [1001]), 0x52fb_f747_ec16_b446),
        ("hypergeometric", |g| g.hypergeometric(3000, 4000, 500, [1001]), 0xea0f_9686_459b_fa2a),
        ("geometric", |g| g.geometric(0.01, [1001]), 0xcaaf_6367_ef10_74fe),
        ("logseries", |g| g.logseries(0.9, [1001]), 0xb054_8745_29a1_d8b3),
        ("zipf", |g| g.zipf(1.5, [1001]), 0x0868_c28d_40fb_abea),
        ("negative_binomial", |g| g.negative_binomial(3.0, 0.1, [1001]), 0x3358_294a_09c0_7f4e),
        ("integers between arrays", |g| g.integers_between(0, arange(1, 1002, 1)?, false, (), DType::I64), 0xc9fd_7080_5245_af39),
        ("float64", |g| g.random([1001], DType::F64), 0xf9dc_c63e_01e6_ff23),
        ("float32", |g| g.uniform(-3.0, 7.5, [1001], DType::F32), 0xbe12_a6d0_e709_3ecc),
        ("float16", |g| g.uniform(0.0, 2.0, [1001], DType::F16), 0x3c29_07a9_6a00_a7c2),
        ("int32", |g| g.integers(-1000, 1000, [1001], DType::I32), 0x5a59_00d6_8956_32a9),
        ("int64 of a wide range", |g| g.integers(-(1 << 62), 1 << 62, [1001], DType::I64), 0x89d2_abff_0eb3_df3d),
    ];
    for (name, draw, recorded) in draws {
        checks.push(Check::plain(format!("random: {name} has the recorded bits"), move |_| {
            let bytes = draw(&Generator::new(77)).and_then(|a| a.to_bytes()).map_err(|e| e.to_string())?;
            let hash = fnv1a(&bytes);
            if hash == recorded { Ok(()) } else { Err(format!("the bytes have the hash {hash:#018x}, not {recorded:#018x}")) }
        }));
    }
    checks
}

/// Returns the FNV-1a hash of `bytes` (Fowler, Noll, Vo), 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
