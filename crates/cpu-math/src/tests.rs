//! Accuracy tests at every SIMD level that this processor has. Reference values have a higher precision: the standard library's float64
//! functions for float32, and `astro-float` for float64. Errors are in ulps of the exact result.

use std::f64::consts as k;

use astro_float_num::{BigFloat, Consts, RoundingMode};
use cuprum_cpu_base::simd::{FillLoop, Isa, SimdLevel, run_fill_loop_at_level, simd_level};

/// Returns the SIMD levels that this processor and this build support.
fn levels() -> impl Iterator<Item = SimdLevel> {
    let all = [
        SimdLevel::Baseline,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::V3,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::V4,
    ];
    all.into_iter().filter(|&l| l <= simd_level())
}

/// A function under test in one float format, with its name and its loop.
struct Case<T> {
    name: &'static str,
    run: fn(SimdLevel, &[T], &[T], &mut [T]),
    binary: bool,
    max_ulp: f64,
}

macro_rules! cases {
    ($type:ty; $($name:ident($($arg:ident),+) < $max_ulp:expr;)+) => {
        vec![$({
            struct Body<'a>(&'a [$type], &'a [$type]);
            impl FillLoop for Body<'_> {
                type Item = $type;
                #[inline(always)]
                fn run<I: Isa>(self, out: &mut [$type]) {
                    for ((out, &a), &b) in out.iter_mut().zip(self.0).zip(self.1) {
                        let (_, _) = (a, b);
                        *out = cases!(@call $name, a, b, $($arg),+);
                    }
                }
            }
            Case {
                name: stringify!($name),
                run: |level, a, b, out| run_fill_loop_at_level(level, Body(a, b), out),
                binary: [$(stringify!($arg)),+].len() == 2,
                max_ulp: $max_ulp,
            }
        }),+]
    };
    (@call $name:ident, $a:ident, $b:ident, angle) => { with_large!($name, $a) };
    (@call $name:ident, $a:ident, $b:ident, x) => { super::$name::<I, _>($a) };
    (@call $name:ident, $a:ident, $b:ident, x, y) => { super::$name::<I, _>($a, $b) };
}

/// A loop body that evaluates a trigonometric function as the backend's loops do, with the scalar function for large arguments.
macro_rules! with_large {
    (sin, $a:ident) => {
        if super::is_large_argument($a) { super::sin_large($a) } else { super::sin::<I, _>($a) }
    };
    (cos, $a:ident) => {
        if super::is_large_argument($a) { super::cos_large($a) } else { super::cos::<I, _>($a) }
    };
    (tan, $a:ident) => {
        if super::is_large_argument($a) { super::tan_large($a) } else { super::tan::<I, _>($a) }
    };
}

macro_rules! all_cases {
    ($type:ty) => {
        cases! { $type;
            exp(x) < 1.1; exp2(x) < 1.6; expm1(x) < 1.5;
            log(x) < 1.0; log2(x) < 1.0; log10(x) < 1.0; log1p(x) < 1.0;
            sin(angle) < 1.0; cos(angle) < 1.0; tan(angle) < 1.0;
            asin(x) < 1.5; acos(x) < 1.5; atan(x) < 1.5; atan2(x, y) < 2.0;
            sinh(x) < 1.5; cosh(x) < 1.5; tanh(x) < 2.0;
            asinh(x) < 2.0; acosh(x) < 2.0; atanh(x) < 2.0;
            pow(x, y) < 2.0; cbrt(x) < 1.0; hypot(x, y) < 1.5;
        }
    };
}

/// A reproducible random number generator (SplitMix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Returns a uniform random number in 0..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns the function called `name` at `x` and `y` in float64, by the standard library or by formulas with spare precision.
fn reference(name: &str, x: f64, y: f64) -> f64 {
    match name {
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "expm1" => x.exp_m1(),
        "log" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "log1p" => x.ln_1p(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "atan2" => x.atan2(y),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asinh" => libm::asinh(x),
        "acosh" => {
            if x < 1.0 {
                f64::NAN
            } else {
                libm::acosh(x)
            }
        }
        "atanh" => libm::atanh(x),
        "cbrt" => x.cbrt(),
        "hypot" => x.hypot(y),
        "pow" => x.powf(y),
        _ => panic!("no reference for {name}"),
    }
}

/// Returns the error of the float32 result `got` in ulps. Infinity if the kind of result (NaN, infinity, sign of zero) is wrong.
fn error_f32(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if nearest.is_nan() || got.is_nan() {
        return if nearest.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == nearest {
        // Equality also accepts a correct overflow: both numbers are infinite although the exact value is not.
        let same_zero = got != 0.0 || got.is_sign_negative() == nearest.is_sign_negative();
        return if !same_zero {
            f64::INFINITY
        } else if got.is_infinite() {
            0.0
        } else {
            (got as f64 - exact).abs() / ulp_f32(exact)
        };
    }
    let finite = |v: f32| if v.is_infinite() { 2f64.powi(128).copysign(v as f64) } else { v as f64 };
    (finite(got) - if exact.is_infinite() { finite(nearest) } else { exact }).abs() / ulp_f32(exact)
}

fn ulp_f32(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi((exponent - 23).clamp(-149, 104))
}

/// Tests float32 functions on every `stride`th bit pattern, and binary functions on as many random pairs. Tests only the function `name` if
/// it is given.
fn sweep_f32(stride: usize, name: Option<&str>) {
    let cases: Vec<_> = all_cases!(f32).into_iter().filter(|case| name.is_none_or(|name| case.name == name)).collect();
    assert!(!cases.is_empty(), "no function {name:?}");
    let mut failures = vec![];
    let mut noise = Noise(1);
    for case in &cases {
        let mut worst = (0.0, 0f32, 0f32, 0f32);
        for start in (0..1u64 << 32).step_by(stride << 14) {
            let first: Vec<f32> = (0..1u64 << 14).map(|i| f32::from_bits((start + i * stride as u64) as u32)).collect();
            let any = |noise: &mut Noise| f32::from_bits(noise.next() as u32);
            let first = if case.binary { first.iter().map(|_| any(&mut noise)).collect() } else { first };
            let second: Vec<f32> = first.iter().map(|&x| if case.binary { partner_f32(case.name, x, &mut noise) } else { 0.0 }).collect();
            let exact: Vec<f64> = first.iter().zip(&second).map(|(&x, &y)| reference(case.name, x as f64, y as f64)).collect();
            for level in levels() {
                let mut got = vec![0f32; first.len()];
                (case.run)(level, &first, &second, &mut got);
                for i in 0..first.len() {
                    let error = error_f32(got[i], exact[i]);
                    if error > worst.0 {
                        worst = (error, first[i], second[i], got[i]);
                    }
                }
            }
        }
        println!("{:6} f32 {:.3} ulp at {:e}, {:e}: {:e}", case.name, worst.0, worst.1, worst.2, worst.3);
        if worst.0 >= case.max_ulp {
            failures.push(format!("{}: {worst:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn partner_f32(name: &str, x: f32, noise: &mut Noise) -> f32 {
    let any = f32::from_bits(noise.next() as u32);
    match (name, noise.next() % 4) {
        (_, 0) => any,
        // Exponents whose powers are finite and not zero, or close to these limits.
        ("pow", _) => ((noise.unit() - 0.5) * 220.0 / (x.abs() as f64).ln()) as f32,
        // A second argument of comparable magnitude.
        _ => (x as f64 * ((noise.unit() - 0.5) * 20.0).exp2()).copysign(any as f64) as f32,
    }
}

/// An exact result: infinite, NaN, zero, or a number with its first 128 bits.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Nan,
    Zero {
        negative: bool,
    },
    Infinite {
        negative: bool,
    },
    /// The number `mantissa * 2^(exponent - 128)`, where the first bit of `mantissa` is set.
    Number {
        negative: bool,
        mantissa: u128,
        exponent: i32,
    },
}

impl Exact {
    fn of(x: &BigFloat) -> Exact {
        let negative = x.is_negative();
        match x.as_raw_parts() {
            _ if x.is_inf() => Exact::Infinite { negative },
            _ if x.is_nan() => Exact::Nan,
            _ if x.is_zero() => Exact::Zero { negative },
            Some((words, _, _, exponent, _)) => {
                let word = |i: usize| words.len().checked_sub(i).map_or(0, |at| words[at] as u128);
                Exact::Number { negative, mantissa: word(1) << 64 | word(2), exponent }
            }
            None => Exact::Nan,
        }
    }

    fn of_f64(x: f64) -> Exact {
        Exact::of(&big(x)).signed(x.is_sign_negative())
    }

    fn signed(self, sign: bool) -> Exact {
        match self {
            Exact::Nan => Exact::Nan,
            Exact::Zero { .. } => Exact::Zero { negative: sign },
            Exact::Infinite { .. } => Exact::Infinite { negative: sign },
            Exact::Number { mantissa, exponent, .. } => Exact::Number { negative: sign, mantissa, exponent },
        }
    }

    /// Returns the error of the float64 result `got` in ulps. Infinity if the kind of result (NaN, infinity, sign of zero) is wrong.
    fn error(self, got: f64) -> f64 {
        let wrong = |yes: bool| if yes { f64::INFINITY } else { 0.0 };
        match self {
            Exact::Nan => wrong(!got.is_nan()),
            Exact::Zero { negative } => wrong(got != 0.0 || got.is_sign_negative() != negative),
            Exact::Infinite { negative } => wrong(!got.is_infinite() || got.is_sign_negative() != negative),
            Exact::Number { .. } if got.is_nan() => f64::INFINITY,
            Exact::Number { negative, exponent, .. } if exponent > 1024 => wrong(!got.is_infinite() || got.is_sign_negative() != negative),
            Exact::Number { negative, mantissa, exponent } => {
                // Both the exact value and `got` are converted to units of 2^-60 ulp.
                let last = (exponent - 53).max(-1074);
                let exact = mantissa.checked_shr((15 + last - (exponent - 53)) as u32).unwrap_or(0);
                let bits = got.abs().to_bits();
                let (bits, place) = match bits >> 52 {
                    0 => (bits, -1074),
                    e => (bits & ((1 << 52) - 1) | 1 << 52, e as i32 - 1075),
                };
                let place = place - last;
                if !(-40..=40).contains(&place) || (got != 0.0 && got.is_sign_negative() != negative) {
                    return f64::INFINITY;
                }
                // An overflow of 2^128 units means an error of many ulps.
                let result = bits as f64 * 2f64.powi(place);
                if (result - exact as f64 * 2f64.powi(-60)).abs() > 1e6 {
                    return f64::INFINITY;
                }
                let result = if place >= 0 { (bits as u128) << (60 + place) } else { (bits as u128) << 60 >> -place };
                result.abs_diff(exact) as f64 * 2f64.powi(-60)
            }
        }
    }
}

/// Evaluates functions with at least 128 bits of precision.
struct Reference {
    constants: Consts,
}

const BITS: usize = 192;
const NEAREST: RoundingMode = RoundingMode::ToEven;

impl Reference {
    fn exact(&mut self, name: &str, x: f64, y: f64) -> Exact {
        // The standard library decides which results are NaN, zero or infinite.
        let std = reference(name, x, y);
        let trivial = !x.is_finite() || x == 0.0 || std.is_nan() || (BINARY.contains(&name) && (!y.is_finite() || y == 0.0));
        if trivial || (std == 1.0 && name == "pow" && x.abs() == 1.0) {
            return if std.is_infinite() || std.is_nan() || std == 0.0 { Exact::of_f64(std) } else { self.constant(name, std) };
        }
        let value = self.value(name, x, y);
        match Exact::of(&value) {
            // The standard library decides the sign of a zero.
            Exact::Zero { .. } => Exact::of_f64(0f64.copysign(std)),
            exact => exact,
        }
    }

    /// Returns the exact result at a zero or an infinity, close to `std`: a multiple of pi/4, or an integer.
    fn constant(&mut self, name: &str, std: f64) -> Exact {
        let multiple = std / k::FRAC_PI_4;
        if name.starts_with('a') && multiple == multiple.round() {
            let pi = self.constants.pi(BITS, NEAREST);
            return Exact::of(&pi.mul(&big(multiple / 4.0), BITS, NEAREST));
        }
        Exact::of_f64(std)
    }

    fn value(&mut self, name: &str, x: f64, y: f64) -> BigFloat {
        let c = &mut self.constants;
        let (a, b, one) = (big(x), big(y), big(1.0));
        let p = BITS;
        // For tiny `x`, `1 + x` and `e^x - 1` would need many more bits. Two terms of their series are precise enough.
        let tiny = x.abs() < 2f64.powi(-70);
        let half_square = a.mul(&a, p, NEAREST).mul(&big(0.5), p, NEAREST);
        match name {
            "exp" => a.exp(p, NEAREST, c),
            "exp2" => {
                let ln_2 = c.ln_2(p, NEAREST);
                a.mul(&ln_2, p, NEAREST).exp(p, NEAREST, c)
            }
            "expm1" if tiny => a.add(&half_square, p, NEAREST),
            "expm1" => a.exp(2 * p, NEAREST, c).sub(&one, p, NEAREST),
            "log" => a.ln(p, NEAREST, c),
            "log2" => a.log2(p, NEAREST, c),
            "log10" => a.log10(p, NEAREST, c),
            "log1p" if tiny => a.sub(&half_square, p, NEAREST),
            "log1p" => a.add(&one, 1200, NEAREST).ln(p, NEAREST, c),
            "sin" => a.sin(p, NEAREST, c),
            "cos" => a.cos(p, NEAREST, c),
            "tan" => a.tan(p, NEAREST, c),
            "asin" => a.asin(p, NEAREST, c),
            "acos" => a.acos(p, NEAREST, c),
            "atan" => a.atan(p, NEAREST, c),
            "atan2" => {
                let angle = a.div(&b, p, NEAREST).atan(p, NEAREST, c);
                match (y < 0.0, x < 0.0) {
                    (false, _) => angle,
                    (true, false) => angle.add(&c.pi(p, NEAREST), p, NEAREST),
                    (true, true) => angle.sub(&c.pi(p, NEAREST), p, NEAREST),
                }
            }
            "sinh" => a.sinh(p, NEAREST, c),
            "cosh" => a.cosh(p, NEAREST, c),
            "tanh" if x.abs() > 100.0 => big(1f64.copysign(x)),
            "tanh" => a.tanh(p, NEAREST, c),
            "asinh" => a.asinh(p, NEAREST, c),
            "acosh" => a.acosh(p, NEAREST, c),
            "atanh" => a.atanh(p, NEAREST, c),
            "cbrt" => a.cbrt(p, NEAREST),
            "hypot" => a.mul(&a, 256, NEAREST).add(&b.mul(&b, 256, NEAREST), 256, NEAREST).sqrt(p, NEAREST),
            "pow" => {
                let size = a.abs().ln(p, NEAREST, c).mul(&b, p, NEAREST).exp(p, NEAREST, c);
                if x < 0.0 && y % 2.0 != 0.0 { size.neg() } else { size }
            }
            _ => panic!("no reference for {name}"),
        }
    }
}

const BINARY: &[&str] = &["pow", "atan2", "hypot"];

fn big(x: f64) -> BigFloat {
    // Subnormal numbers are scaled up first, because `astro-float` keeps their leading zeros.
    let up = 2f64.powi(if x.abs() < f64::MIN_POSITIVE { 100 } else { 0 });
    let mut big = BigFloat::from_f64(x * up, 64);
    if let (true, Some(exponent)) = (up > 1.0, big.exponent()) {
        big.set_exponent(exponent - 100);
    }
    big
}

/// Returns float64 arguments that are known to be difficult.
fn hard_f64() -> Vec<f64> {
    let mut values = vec![0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, f64::MAX, 1.0, 0.5, 2.0, 10.0, 1000.0];
    // Numbers nearest to a multiple of pi/2 (Muller, "Elementary Functions", table 11.1), and other known hard cases.
    values.extend([6381956970095103.0 * 2f64.powi(797), 5.319372648326541e255, 1e22, 2.608703490803001e9, 710.4758600739439]);
    values.extend([709.782712893384, -745.1332191019411, -745.1332191019412, 1023.9999999999999, -1074.5, -1075.0, k::FRAC_1_SQRT_2]);
    values.extend([1e9, 999_999_999.999_999_9, k::LN_2, k::LN_2 / 2.0, k::FRAC_PI_2, k::PI, 3.0 * k::FRAC_PI_4, k::FRAC_PI_4, k::E]);
    values.extend((1..40).map(|i| 10f64.powi(i)).chain((-40..40).map(|i| 2f64.powi(i))).chain((1..200).map(|i| i as f64 * k::FRAC_PI_2)));
    let around = |v: f64| [v, f64::from_bits(v.to_bits() + 1), f64::from_bits(v.to_bits().wrapping_sub(1))];
    values.iter().flat_map(|&v| around(v)).flat_map(|v| [v, -v]).collect()
}

/// Returns arguments of float64 functions: the hard ones, `per_binade` in each binade, and 40 times as many in the binades of common
/// numbers.
fn arguments_f64(noise: &mut Noise, per_binade: usize) -> Vec<f64> {
    let mut values = hard_f64();
    for exponent in 0..2047u64 {
        let common = (1023 - 40..1023 + 12).contains(&exponent);
        for _ in 0..per_binade * if common { 40 } else { 1 } {
            values.push(f64::from_bits(noise.next() & !(0x7ff << 52) | exponent << 52));
        }
    }
    values
}

fn partner_f64(name: &str, x: f64, noise: &mut Noise) -> f64 {
    let hard = [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, f64::INFINITY, f64::NAN, 4503599627370497.0, 9007199254740992.0, 1e300];
    let any = f64::from_bits(noise.next());
    match (name, noise.next() % 8) {
        (_, 0) => any,
        (_, 1) => hard[noise.next() as usize % hard.len()].copysign(any),
        ("pow", 2) => ((noise.unit() - 0.5) * 60.0).round(),
        // Exponents whose powers are finite and not zero, or close to these limits.
        ("pow", _) => (noise.unit() - 0.5) * 1500.0 / x.abs().ln(),
        // A second argument of comparable magnitude.
        _ => (x * ((noise.unit() - 0.5) * 20.0).exp2()).copysign(any),
    }
}

/// Tests every float64 function on the hard arguments and on `per_binade` random arguments in each binade.
fn sweep_f64(per_binade: usize) {
    let cases = all_cases!(f64);
    let mut failures = vec![];
    let mut noise = Noise(2);
    let mut reference = Reference { constants: Consts::new().unwrap() };
    for case in &cases {
        let first = arguments_f64(&mut noise, per_binade);
        let second: Vec<f64> = first.iter().map(|&x| if case.binary { partner_f64(case.name, x, &mut noise) } else { 0.0 }).collect();
        let exact: Vec<Exact> = first.iter().zip(&second).map(|(&x, &y)| reference.exact(case.name, x, y)).collect();
        let mut worst = (0.0, 0f64, 0f64, 0f64);
        for level in levels() {
            let mut got = vec![0f64; first.len()];
            (case.run)(level, &first, &second, &mut got);
            for i in 0..first.len() {
                let error = exact[i].error(got[i]);
                if error > worst.0 {
                    worst = (error, first[i], second[i], got[i]);
                }
            }
        }
        println!("{:6} f64 {:.3} ulp at {:e}, {:e}: {:e}", case.name, worst.0, worst.1, worst.2, worst.3);
        if worst.0 >= case.max_ulp {
            failures.push(format!("{}: {worst:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Tests `pow`, `atan2` and `hypot` on pairs of the special values of C99's Annex F: zeros, infinities, NaN, and integer, odd and
/// fractional exponents.
#[test]
fn pairs_of_special_values() {
    let inf = f64::INFINITY;
    let sizes = [0.0, 5e-324, 1e-310, 0.5, 1.0, 1.5, 2.0, 3.0, 1e10, 9007199254740991.0, 9007199254740992.0, f64::MAX, inf, f64::NAN];
    let values: Vec<f64> = sizes.iter().flat_map(|&v| [v, -v]).collect();
    let x: Vec<f64> = values.iter().flat_map(|&v| values.iter().map(move |_| v)).collect();
    let y: Vec<f64> = values.iter().flat_map(|_| values.clone()).collect();
    for case in all_cases!(f64).iter().filter(|c| c.binary) {
        for level in levels() {
            let mut got = vec![0.0; x.len()];
            (case.run)(level, &x, &y, &mut got);
            for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
                let want = reference(case.name, x, y);
                let close = (got - want).abs() <= 4.0 * f64::EPSILON * want.abs() && got.is_sign_negative() == want.is_sign_negative();
                assert!(
                    close || (got.is_nan() && want.is_nan()) || got.to_bits() == want.to_bits(),
                    "{}({x:e}, {y:e}) = {got:e}, not {want:e}",
                    case.name
                );
            }
        }
    }
    let narrow = |v: &[f64]| -> Vec<f32> { v.iter().map(|&v| v as f32).collect() };
    let (x, y) = (narrow(&x), narrow(&y));
    for case in all_cases!(f32).iter().filter(|c| c.binary) {
        for level in levels() {
            let mut got = vec![0.0; x.len()];
            (case.run)(level, &x, &y, &mut got);
            for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
                let error = error_f32(got, reference(case.name, x as f64, y as f64));
                assert!(error < case.max_ulp, "{}({x:e}, {y:e}) = {got:e}: {error} ulp", case.name);
            }
        }
    }
}

#[test]
fn float64() {
    sweep_f64(1);
}

#[test]
#[ignore = "many more points: minutes in a release build"]
fn float64_long() {
    sweep_f64(50);
}

#[test]
fn float32() {
    sweep_f32(1 << 14, None);
}

/// Tests unary functions on every float32 and binary functions on as many pairs. To run these tests:
/// `cargo test --release -p cuprum-cpu-math --lib -- --ignored --nocapture float32_exhaustive`.
mod float32_exhaustive {
    macro_rules! functions {
        ($($name:ident)*) => {$(
            #[test]
            #[ignore = "minutes in a release build"]
            fn $name() {
                super::sweep_f32(1, Some(stringify!($name)));
            }
        )*};
    }
    functions! {
        exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh pow cbrt hypot
    }
}
