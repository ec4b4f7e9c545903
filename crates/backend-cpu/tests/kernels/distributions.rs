//! Distributions of random numbers against distribution functions that SciPy computes (`scripts/random_tables.py`), at a fixed seed.

use cuprum_core::random::{Generator, default_rng};
use cuprum_core::{Complex, DType, Error, NdArray, Operand, Result, bf16, f16};

use crate::support::{as_f64, on_threads};

const TABLE: &str = include_str!("distributions.txt");
const COUNT: usize = 100_000;
const SEED: u64 = 20_260_723;

/// Draws `count` numbers of the call `name(p)` of the table.
fn draw(g: &Generator, name: &str, p: &[f64], n: usize) -> Result<NdArray> {
    match (name, p) {
        ("random", []) => g.random(n, DType::F64),
        ("uniform", &[a, b]) => g.uniform(a, b, n, DType::F64),
        ("normal", &[a, b]) => g.normal(a, b, n, DType::F64),
        ("standard_normal", []) => g.normal(0.0, 1.0, n, DType::F64),
        ("standard_exponential", []) => g.standard_exponential(n, DType::F64),
        ("standard_gamma", &[a]) => g.standard_gamma(a, n, DType::F64),
        ("exponential", &[a]) => g.exponential(a, n),
        ("laplace", &[a, b]) => g.laplace(a, b, n),
        ("logistic", &[a, b]) => g.logistic(a, b, n),
        ("gumbel", &[a, b]) => g.gumbel(a, b, n),
        ("lognormal", &[a, b]) => g.lognormal(a, b, n),
        ("rayleigh", &[a]) => g.rayleigh(a, n),
        ("pareto", &[a]) => g.pareto(a, n),
        ("weibull", &[a]) => g.weibull(a, n),
        ("power", &[a]) => g.power(a, n),
        ("triangular", &[a, b, c]) => g.triangular(a, b, c, n),
        ("standard_cauchy", []) => g.standard_cauchy(n),
        ("gamma", &[a, b]) => g.gamma(a, b, n),
        ("beta", &[a, b]) => g.beta(a, b, n),
        ("chisquare", &[a]) => g.chisquare(a, n),
        ("noncentral_chisquare", &[a, b]) => g.noncentral_chisquare(a, b, n),
        ("f", &[a, b]) => g.f(a, b, n),
        ("noncentral_f", &[a, b, c]) => g.noncentral_f(a, b, c, n),
        ("standard_t", &[a]) => g.standard_t(a, n),
        ("wald", &[a, b]) => g.wald(a, b, n),
        ("vonmises", &[a, b]) => g.vonmises(a, b, n),
        ("poisson", &[a]) => g.poisson(a, n),
        ("binomial", &[a, b]) => g.binomial(a, b, n),
        ("negative_binomial", &[a, b]) => g.negative_binomial(a, b, n),
        ("geometric", &[a]) => g.geometric(a, n),
        ("logseries", &[a]) => g.logseries(a, n),
        ("zipf", &[a]) => g.zipf(a, n),
        ("hypergeometric", &[a, b, c]) => g.hypergeometric(a, b, c, n),
        _ => panic!("{name} {p:?} is not a call of the table"),
    }
}

/// Calls `check` with the name, the parameters and the numbers of each line of the table.
fn for_each_case(mut check: impl FnMut(&str, &[f64], &[f64])) {
    for line in TABLE.lines() {
        let (call, numbers) = line.split_once('\t').unwrap();
        let (name, parameters) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
        let parse = |text: &str| text.trim().parse::<f64>().unwrap();
        let parameters: Vec<f64> = parameters.split(',').filter(|p| !p.is_empty()).map(parse).collect();
        let numbers: Vec<f64> = numbers.split('\t').map(parse).collect();
        check(name, &parameters, &numbers);
    }
}

#[test]
fn numbers_have_their_distribution() {
    let mut cases = 0;
    let mut failed = Vec::new();
    for_each_case(|name, parameters, numbers| {
        let &[bound, mean, variance, edges, ref rest @ ..] = numbers else { panic!("{name}") };
        let (edges, probabilities) = rest.split_at(edges as usize);
        let drawn = as_f64(&on_threads(|| draw(&default_rng(SEED), name, parameters, COUNT)));
        let mut counts = vec![0.0; probabilities.len()];
        drawn.iter().for_each(|x| counts[edges.partition_point(|edge| edge < x)] += 1.0);
        let (mut chi_square, mut gap, mut below, mut got) = (0.0, 0.0f64, 0.0, 0.0);
        for (count, p) in counts.iter().zip(probabilities) {
            let expected = p * COUNT as f64;
            chi_square += if expected > 0.0 { (count - expected).powi(2) / expected } else { count * 1e9 };
            (below, got) = (below + p, got + count / COUNT as f64);
            gap = gap.max((below - got).abs());
        }
        // The probability that the largest gap of the distribution functions exceeds 2.7 / sqrt(n) is below 1e-6 (Kolmogorov).
        if drawn.iter().any(|x| x.is_nan()) || chi_square > bound || gap > 2.7 / (COUNT as f64).sqrt() {
            failed.push(format!("{name}{parameters:?}: chi-square {chi_square} (bound {bound}), gap {gap}"));
        }
        let got = drawn.iter().sum::<f64>() / COUNT as f64;
        // Heavy tails converge slowly, so the mean is compared where the variance is small too.
        if variance.is_finite() && (got - mean).abs() > 6.0 * (variance / COUNT as f64).sqrt() {
            failed.push(format!("{name}{parameters:?}: mean {got} is not {mean}, variance {variance}"));
        }
        cases += 1;
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(cases > 70, "{cases}");
}

/// An element depends on its counter only: neither on the elements drawn with it, nor on whether a parameter is a number or an array.
#[test]
fn elements_depend_on_their_counters_only() {
    let bits = |a: NdArray| a.to_bytes().unwrap();
    for_each_case(|name, parameters, _| {
        let whole = draw(&default_rng(SEED), name, parameters, 1000).unwrap();
        let prefix = draw(&default_rng(SEED), name, parameters, 500).unwrap();
        // Functions that draw several arrays start each at the next free counter.
        if !["standard_cauchy", "f", "standard_t", "wald", "beta", "noncentral_chisquare", "noncentral_f", "negative_binomial"]
            .contains(&name)
        {
            assert!(bits(whole.index(cuprum_core::s![..500]).unwrap()) == bits(prefix), "{name}{parameters:?}");
        }
    });
    let n = 1000;
    let array = |x: f64| NdArray::from_vec(vec![x; n], n).unwrap();
    let pairs: [(NdArray, NdArray); 8] = [
        (default_rng(1).poisson(3.0, n).unwrap(), default_rng(1).poisson(array(3.0), n).unwrap()),
        (default_rng(1).poisson(300.0, n).unwrap(), default_rng(1).poisson(array(300.0), ()).unwrap()),
        (default_rng(1).binomial(50, 0.3, n).unwrap(), default_rng(1).binomial(50, array(0.3), ()).unwrap()),
        (default_rng(1).hypergeometric(50, 40, 30, n).unwrap(), default_rng(1).hypergeometric(array(50.0), 40, 30, n).unwrap()),
        (default_rng(1).gamma(0.5, 2.0, n).unwrap(), default_rng(1).gamma(array(0.5), array(2.0), n).unwrap()),
        (default_rng(1).zipf(2.5, n).unwrap(), default_rng(1).zipf(array(2.5), n).unwrap()),
        (default_rng(1).vonmises(0.0, 2.5, n).unwrap(), default_rng(1).vonmises(0.0, array(2.5), n).unwrap()),
        (default_rng(1).integers(-5, 9, n, DType::I64).unwrap(), {
            let (low, high) = (NdArray::from_vec(vec![-5i64; n], n).unwrap(), NdArray::from_vec(vec![9i64; n], n).unwrap());
            default_rng(1).integers_between(low, high, false, (), DType::I64).unwrap()
        }),
    ];
    for (k, (number, array)) in pairs.into_iter().enumerate() {
        assert!(bits(number) == bits(array), "pair {k}");
    }
}

#[test]
fn parameters_broadcast_and_are_checked() {
    let g = default_rng(3);
    let column = NdArray::from_vec(vec![1.0, 100.0], (2, 1)).unwrap();
    let row = NdArray::from_vec(vec![0.0, 0.5, 1.0], 3).unwrap();
    assert_eq!(g.binomial(&column, &row, ()).unwrap().shape(), [2, 3]);
    assert_eq!(g.binomial(&column, &row, (4, 2, 3)).unwrap().shape(), [4, 2, 3]);
    let sure = g.binomial(&column, &row, ()).unwrap().to_vec::<i64>().unwrap();
    assert_eq!((sure[0], sure[2], sure[3], sure[5]), (0, 1, 0, 100));
    let errors: Vec<(&str, Result<NdArray>)> = vec![
        ("scale < 0", g.exponential(-1.0, 3)),
        ("scale < 0", g.exponential(f64::NAN, 3)),
        ("scale < 0", g.exponential(NdArray::from_slice(&[1.0, -1.0]).unwrap(), ())),
        ("lam < 0", g.poisson(-1.0, 3)),
        ("lam < 0", g.poisson(1e19, 3)),
        ("p < 0, p > 1 or p contains NaNs", g.binomial(3, 1.5, 3)),
        ("n < 0", g.binomial(-3, 0.5, 3)),
        ("n > 2**63 - 1", g.binomial(10i128.pow(19), 1.0, 3)),
        ("n > 2**63 - 1", g.multinomial(NdArray::from_slice(&[u64::MAX]).unwrap(), NdArray::from_slice(&[0.5, 0.5]).unwrap(), 3)),
        ("p <= 0", g.geometric(0.0, 3)),
        ("p >= 1", g.logseries(1.0, 3)),
        ("a <= 1", g.zipf(1.0, 3)),
        ("a <= 0", g.pareto(0.0, 3)),
        ("shape < 0", g.gamma(-1.0, 1.0, 3)),
        ("mode > right", g.triangular(0.0, 2.0, 1.0, 3)),
        ("left == right", g.triangular(1.0, 1.0, 1.0, 3)),
        ("ngood + nbad < nsample", g.hypergeometric(3, 4, 8, 3)),
        ("not compatible with broadcast", g.normal(&row, 1.0, 2, DType::F64)),
        ("must be a real number", g.exponential(cuprum_core::Complex::new(1.0, 1.0), 3)),
        ("must be a real number", g.uniform(0.0, cuprum_core::Complex::new(1.0, 1.0), 3, DType::F64)),
        ("out of bounds", g.uniform(NdArray::from_slice(&[-1e6]).unwrap(), 0.0, 1, DType::F16)),
        ("must be a real number", g.normal(cuprum_core::Complex::new(1.0, 1.0), 1.0, 3, DType::F64)),
        ("nonc < 0", g.noncentral_chisquare(1.0, -1.0, 3)),
        ("sum(pvals[:-1]) > 1.0", g.multinomial(5, NdArray::from_slice(&[0.7, 0.7, 0.1]).unwrap(), 3)),
        ("nsample > sum(colors)", g.multivariate_hypergeometric(NdArray::from_slice(&[2, 3]).unwrap(), 6, 3)),
        ("low >= high", g.integers_between(NdArray::from_slice(&[3i64]).unwrap(), 3, false, (), DType::I64)),
        ("high is out of bounds for int8", g.integers_between(0, NdArray::from_slice(&[129i64]).unwrap(), false, (), DType::I8)),
        ("larger sample", g.choice(&row, 4, false, None, 0)),
        ("do not sum to 1", g.choice(&row, 4, true, Some(&row), 0)),
        ("same size", g.choice(&row, 4, true, Some(&NdArray::from_slice(&[1.0]).unwrap()), 0)),
        ("p must be real", g.choice(&row, 4, true, Some(&NdArray::from_slice(&[Complex::new(0.5, 0.0); 3]).unwrap()), 0)),
        ("Fewer non-zero", g.choice(&row, 2, false, Some(&NdArray::from_slice(&[1.0, 0.0, 0.0]).unwrap()), 0)),
    ];
    for (message, result) in errors {
        let error: Error = result.err().unwrap_or_else(|| panic!("no error: {message}"));
        assert!(error.to_string().contains(message), "{error} does not contain {message}");
    }
    // The edges of the ranges are valid.
    assert!(as_f64(&g.gamma(0.0, 1.0, 9).unwrap()).iter().all(|x| *x == 0.0));
    assert!(as_f64(&g.weibull(0.0, 9).unwrap()).iter().all(|x| *x == 0.0));
    assert!(as_f64(&g.poisson(0.0, 9).unwrap()).iter().all(|x| *x == 0.0));
    assert!(as_f64(&g.logseries(0.0, 9).unwrap()).iter().all(|x| *x == 1.0));
    assert!(as_f64(&g.hypergeometric(0, 9, 3, 9).unwrap()).iter().all(|x| *x == 0.0));
    assert!(as_f64(&g.hypergeometric(90, 0, 30, 9).unwrap()).iter().all(|x| *x == 30.0));
    assert!(as_f64(&g.poisson(9e18, 9).unwrap()).iter().all(|x| (x / 9e18 - 1.0).abs() < 1e-6));
    assert!(g.exponential(1.0, (0, 3)).unwrap().shape() == [0, 3]);
    assert!(g.integers(5, 0, (0, 3), DType::I64).unwrap().shape() == [0, 3]);
    let bools = default_rng(1).integers(0, 2, 99, DType::Bool).unwrap();
    let count: f64 = as_f64(&bools).iter().sum();
    assert!(bools.dtype() == DType::Bool && (20.0..80.0).contains(&count));
    assert!(g.integers(0, 3, 9, DType::Bool).is_err());
    assert!(as_f64(&g.wald(1.0, f64::INFINITY, 9).unwrap()).iter().all(|x| *x == 1.0));
    assert!(as_f64(&g.wald(1e160, 1.0, 99).unwrap()).iter().all(|x| *x < 1e6));
    assert_eq!(as_f64(&g.dirichlet(NdArray::from_slice(&[0.0, 1.0]).unwrap(), ()).unwrap()), [0.0, 1.0]);
    assert_eq!(as_f64(&g.dirichlet(NdArray::from_slice(&[0.0, 0.0]).unwrap(), 2).unwrap()), [0.0; 4]);
    assert!(g.normal(0.0, -0.0, 3, DType::F64).is_err() && g.rayleigh(-0.0, 3).is_err());
    let small = NdArray::from_slice(&[0.0, 1e-320, 1.0]).unwrap();
    for seed in 0..20 {
        let chosen = default_rng(seed).choice(3, 2, false, Some(&small), 0).unwrap();
        assert_eq!(chosen.sort(0).unwrap().to_vec::<i64>().unwrap(), [1, 2]);
    }
    let tenths = NdArray::from_slice(&[0.1f32; 10]).unwrap();
    assert_eq!(g.multinomial(10, &tenths, ()).unwrap().sum(()).unwrap().item().unwrap(), 10);
}

#[test]
fn uniform_numbers_are_below_array_bounds() {
    // Each range holds one number of the dtype, its lower end.
    type FromBits = fn(u64) -> f64;
    let dtypes: [(DType, u32, FromBits); 4] = [
        (DType::F16, f16::MANTISSA_DIGITS, |bits| f16::from_bits(bits as u16).into()),
        (DType::BF16, bf16::MANTISSA_DIGITS, |bits| bf16::from_bits(bits as u16).into()),
        (DType::F32, f32::MANTISSA_DIGITS, |bits| f32::from_bits(bits as u32).into()),
        (DType::F64, f64::MANTISSA_DIGITS, f64::from_bits),
    ];
    for (dtype, digits, to_number) in dtypes {
        let exponents = 0..(1u64 << (8 * dtype.itemsize() as u32 - digits)) - 1;
        let last = (1u64 << (digits - 1)) - 1;
        let bits = exponents.flat_map(|e| [0, 1, 2, last / 2, last - 2, last - 1].map(|mantissa| (e << (digits - 1)) + mantissa));
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for pair in bits.map(|bits| [to_number(bits), to_number(bits + 1)]) {
            low.extend([pair[0], -pair[1]]);
            high.extend([pair[1], -pair[0]]);
        }
        let [low, high] = [low, high].map(|ends| NdArray::from_slice(&ends).unwrap());
        let drawn = default_rng(3).uniform(&low, &high, (8, low.size()), dtype).unwrap().astype(DType::F64).unwrap();
        assert!(drawn.equal(&low).unwrap().all(()).unwrap().item().unwrap().as_bool(), "{dtype}");
    }
}

#[test]
fn extreme_parameters() {
    let (g, n) = (default_rng(3), 1000);
    let pair = |a: f64| NdArray::from_slice(&[a, a]).unwrap();
    for drawn in [g.beta(3e-320, 1e-320, n), g.beta(pair(3e-310), 1e-310, (n, 2)), g.beta(3e-299, 1e-299, n)] {
        let drawn = as_f64(&drawn.unwrap());
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!(drawn.iter().all(|x| [0.0, 1.0].contains(x)) && (mean - 0.75).abs() < 0.06, "{mean}");
    }
    let shares = as_f64(&g.dirichlet(NdArray::from_slice(&[3e-320, 1e-320]).unwrap(), n).unwrap());
    assert!(shares.chunks(2).all(|pair| pair[0] + pair[1] == 1.0), "{shares:?}");
    // The mean and the standard deviation are about `nonc` and 2 sqrt(nonc).
    let far = NdArray::from_slice(&[2.0, 1e20]).unwrap();
    let drawn = as_f64(&g.noncentral_chisquare(3.0, &far, (n, 2)).unwrap());
    assert!(drawn.chunks(2).all(|pair| pair[0] < 100.0 && (pair[1] / 1e20 - 1.0).abs() < 1e-9));
    let deviation = (drawn.chunks(2).map(|pair| ((pair[1] - 1e20) / 2e10).powi(2)).sum::<f64>() / n as f64).sqrt();
    assert!((deviation - 1.0).abs() < 0.1, "{deviation}");
    assert!(as_f64(&g.noncentral_chisquare(0.5, 1e20, 9).unwrap()).iter().all(|x| (x / 1e20 - 1.0).abs() < 1e-9));
    assert!(as_f64(&g.noncentral_f(2.0, 1e15, 1e20, 9).unwrap()).iter().all(|x| (x / 5e19 - 1.0).abs() < 1e-6));
}

#[test]
fn locations_may_be_nan() {
    let g = default_rng(3);
    let nan = NdArray::from_slice(&[f64::NAN, 1.0]).unwrap();
    for (name, drawn) in [
        ("normal", g.normal(&nan, 1.0, (), DType::F64)),
        ("lognormal", g.lognormal(&nan, 1.0, ())),
        ("laplace", g.laplace(&nan, 1.0, ())),
        ("logistic", g.logistic(&nan, 1.0, ())),
        ("gumbel", g.gumbel(&nan, 1.0, ())),
        ("vonmises", g.vonmises(&nan, 1.0, ())),
        ("triangular", g.triangular(0.0, &nan, 2.0, ())),
    ] {
        let drawn = as_f64(&drawn.unwrap());
        assert!(drawn[0].is_nan() && drawn[1].is_finite(), "{name}: {drawn:?}");
    }
    assert!(as_f64(&g.lognormal(f64::NAN, 1.0, 3).unwrap()).iter().all(|x| x.is_nan()));
}

#[test]
fn angles_around_large_and_non_finite_means() {
    let mean = 1e17f64 % std::f64::consts::TAU; // 1.24
    let array = |x: f64| Operand::from(NdArray::from_slice(&[x]).unwrap());
    for mu in [Operand::from(1e17), array(1e17)] {
        let drawn = as_f64(&default_rng(3).vonmises(mu, 1e4, 1000).unwrap());
        assert!(drawn.iter().all(|x| (x - mean).abs() < 0.06) && drawn[0] != drawn[1], "{drawn:?}");
    }
    let (zero, one) = (Operand::from(0.0), Operand::from(1.0));
    for mu in [f64::NAN.into(), array(f64::INFINITY)] {
        for (kappa, is_uniform) in [(zero.clone(), true), (array(0.0), true), (one.clone(), false), (array(1.0), false)] {
            let drawn = as_f64(&default_rng(3).vonmises(mu.clone(), kappa, 9).unwrap());
            assert!(drawn.iter().all(|x| x.is_finite() == is_uniform), "{drawn:?}");
        }
    }
}

#[test]
fn bounds_of_other_dtypes() {
    let g = default_rng(3);
    let (low, high) = (NdArray::from_slice(&[8u64]).unwrap(), NdArray::from_slice(&[9u64]).unwrap());
    assert_eq!(g.integers_between(&low, &high, false, (), DType::U64).unwrap().to_vec::<u64>().unwrap(), [8]);
    assert_eq!(g.integers_between(&low, 9.7, false, (), DType::I64).unwrap().to_vec::<i64>().unwrap(), [8]);
    let far = NdArray::from_slice(&[u64::MAX]).unwrap();
    for (high, message) in [(far.into(), "out of bounds for int64"), (Operand::from(f64::NAN), "finite"), (1e300.into(), "out of bounds")] {
        let error = g.integers_between(&low, high, false, (), DType::U64).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn choices_of_many_integers() {
    let (g, n) = (default_rng(3), 10_000_000_000i64);
    assert!(g.choice(n, 3, true, None, 0).unwrap().max(()).unwrap().item().unwrap() > 1_000_000);
    let extent = (1i64 << 20) + 2;
    for (n, count) in [(n, 2000usize), (extent, extent as usize / 2), (extent, extent as usize / 2 + 1)] {
        let chosen = g.choice(n, count, false, None, 0).unwrap();
        let distinct = cuprum_core::unique(&chosen).unwrap();
        assert!(distinct.size() == count && distinct.index(0).unwrap().item().unwrap() >= 0, "{n} {count}");
        assert!(distinct.index(-1).unwrap().item().unwrap() < n as f64 && chosen != distinct, "{n} {count}");
    }
    let size = NdArray::scalar(5i64).unwrap();
    assert_eq!(g.choice(&size, 5, false, None, 0).unwrap().sort(0).unwrap().to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(default_rng(3).choice(&size, 9, true, None, 0).unwrap(), default_rng(3).choice(5, 9, true, None, 0).unwrap());
    assert!(g.choice(5, 2, false, None, 1).is_err() && g.choice(-1, 1, true, None, 0).is_err());
}

#[test]
fn binomial_numbers_of_many_trials_have_the_variance() {
    let count = 20_000;
    for (n, p) in [(10i64.pow(18), 0.5), (10i64.pow(18), 2e-17), (i64::MAX, 0.9), (1 << 41, 0.3)] {
        let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
        let drawn = as_f64(&default_rng(3).binomial(n, p, count).unwrap());
        let deviations: Vec<f64> = drawn.iter().map(|x| (x - mean) / variance.sqrt()).collect();
        let moment = |power: i32| deviations.iter().map(|d| d.powi(power)).sum::<f64>() / count as f64;
        assert!(moment(1).abs() < 0.035 && (moment(2) - 1.0).abs() < 0.055, "{n} {p}: {} {}", moment(1), moment(2));
    }
}

#[test]
fn numbers_of_trials_beyond_float64() {
    let g = default_rng(3);
    let n = (1i64 << 53) + 1;
    assert_eq!(g.binomial(n, 1.0, 2).unwrap().to_vec::<i64>().unwrap(), [n; 2]);
    assert_eq!(g.binomial(NdArray::from_slice(&[n, 3]).unwrap(), 1.0, 2).unwrap().to_vec::<i64>().unwrap(), [n, 3]);
    let halves = NdArray::from_slice(&[0.5, 0.5]).unwrap();
    for counts in g.multinomial(i64::MAX, &halves, 9).unwrap().to_vec::<i64>().unwrap().chunks(2) {
        assert_eq!(counts[0].checked_add(counts[1]), Some(i64::MAX));
        assert!(counts.iter().all(|&count| (count as f64 / 2f64.powi(62) - 1.0).abs() < 1e-6), "{counts:?}");
    }
}

#[test]
fn integers_between_arrays_use_every_bit() {
    let n = 1000;
    let low = NdArray::from_vec((0..n as i64).map(|i| -i * i).collect::<Vec<_>>(), n).unwrap();
    let high = NdArray::from_vec((0..n as i64).map(|i| i64::MAX - i).collect::<Vec<_>>(), n).unwrap();
    let drawn = default_rng(5).integers_between(&low, &high, true, (), DType::I64).unwrap().to_vec::<i64>().unwrap();
    let words = cuprum_core::testing::philox::PhiloxStream(5);
    for (i, x) in drawn.iter().enumerate() {
        let (low, high) = (-((i * i) as i64), i64::MAX - i as i64);
        let span = (i128::from(high) - i128::from(low) + 1) as u64;
        assert_eq!(*x, low.wrapping_add(words.below(i, span) as i64), "{i}");
    }
}

#[test]
fn orders_and_choices_are_fair() {
    let g = default_rng(11);
    let x = cuprum_core::arange(0, 5, 1).unwrap();
    let (mut first, trials) = ([[0.0; 5]; 5], 4000);
    for _ in 0..trials {
        for (position, item) in g.permutation(&x, 0).unwrap().to_vec::<i64>().unwrap().into_iter().enumerate() {
            first[position][item as usize] += 1.0;
        }
    }
    // Deviations are at most five standard errors.
    let bound = 5.0 * (f64::from(trials) * 0.16).sqrt();
    assert!(first.iter().flatten().all(|count| (count - f64::from(trials) / 5.0).abs() < bound), "{first:?}");
    let p = NdArray::from_slice(&[0.1, 0.0, 0.2, 0.3, 0.4]).unwrap();
    let chosen = as_f64(&g.choice(&x, COUNT, true, Some(&p), 0).unwrap());
    let first_of_two = (0..trials).map(|_| g.choice(&x, 2, false, Some(&p), 0).unwrap().to_vec::<i64>().unwrap());
    let first_of_two: Vec<i64> = first_of_two.map(|pair| pair[0]).collect();
    for (item, p) in [0.1, 0.0, 0.2, 0.3, 0.4].into_iter().enumerate() {
        let share = chosen.iter().filter(|x| **x == item as f64).count() as f64 / COUNT as f64;
        assert!((share - p).abs() < 0.01, "{item}: {share}");
        let share = first_of_two.iter().filter(|x| **x == item as i64).count() as f64 / f64::from(trials);
        assert!((share - p).abs() < 0.04, "{item} first: {share}");
    }
    let square = cuprum_core::arange(0, 12, 1).unwrap().reshape((3, 4)).unwrap();
    for axis in [0, 1] {
        assert_eq!(g.permuted(&square, axis).unwrap().sort(axis).unwrap(), square);
    }
    assert_eq!(g.permuted(&square, ()).unwrap().ravel().unwrap().sort(0).unwrap(), square.ravel().unwrap());
    assert_eq!(g.choice(&square, 2, false, None, 1).unwrap().shape(), [3, 2]);
    assert_eq!(g.choice(&square, (), true, None, 0).unwrap().shape(), [4]);
}

#[test]
fn vectors_have_their_moments() {
    let g = default_rng(13);
    let mean = |a: &NdArray| as_f64(&a.astype(DType::F64).unwrap().mean(0).unwrap());
    let near = |got: Vec<f64>, want: &[f64], tolerance: f64| {
        assert!(got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < tolerance), "{got:?} {want:?}");
    };
    let p = NdArray::from_slice(&[0.2, 0.3, 0.5]).unwrap();
    near(mean(&g.multinomial(20, &p, COUNT).unwrap()), &[4.0, 6.0, 10.0], 0.05);
    near(mean(&g.dirichlet(NdArray::from_slice(&[0.01, 1.0, 2.99]).unwrap(), COUNT).unwrap()), &[0.0025, 0.25, 0.7475], 0.005);
    let colors = NdArray::from_slice(&[10, 20, 30]).unwrap();
    near(mean(&g.multivariate_hypergeometric(&colors, 12, COUNT).unwrap()), &[2.0, 4.0, 6.0], 0.05);
    let cov = NdArray::from_vec(vec![2.0, -1.0, -1.0, 1.0], (2, 2)).unwrap();
    let x = g.multivariate_normal(NdArray::from_slice(&[1.0, -1.0]).unwrap(), &cov, COUNT).unwrap();
    near(mean(&x), &[1.0, -1.0], 0.02);
    let centered = cuprum_core::subtract(&x, x.mean(0).unwrap()).unwrap();
    let got = cuprum_core::matmul(&centered.t().unwrap(), &centered).unwrap();
    near(as_f64(&got).into_iter().map(|v| v / COUNT as f64).collect(), &[2.0, -1.0, -1.0, 1.0], 0.05);
    let singular = NdArray::from_vec(vec![1.0, 1.0, 1.0, 1.0], (2, 2)).unwrap();
    let pair = as_f64(&g.multivariate_normal(NdArray::from_slice(&[0.0, 0.0]).unwrap(), &singular, 1).unwrap());
    assert!((pair[0] - pair[1]).abs() < 1e-6);
    let invalid = NdArray::from_vec(vec![1.0, 2.0, 2.0, 1.0], (2, 2)).unwrap();
    assert!(g.multivariate_normal(NdArray::from_slice(&[0.0, 0.0]).unwrap(), &invalid, 1).is_err());
}

#[test]
fn streams_differ() {
    let numbers = |g: &Generator| g.random(100, DType::F64).unwrap().to_vec::<f64>().unwrap();
    let g = default_rng(7);
    let mut streams = vec![numbers(&g.jumped(1).unwrap()), numbers(&g.jumped(2).unwrap())];
    streams.extend(g.spawn(2).unwrap().iter().chain(&g.spawn(1).unwrap()).map(numbers));
    streams.push(numbers(&g));
    assert_eq!(streams[5], numbers(&default_rng(7)));
    assert_eq!(streams[0], numbers(&default_rng(7).jumped(1).unwrap()));
    assert_eq!(streams[2], numbers(&default_rng(7).spawn(1).unwrap()[0]));
    for (i, a) in streams.iter().enumerate() {
        assert!(streams[..i].iter().all(|b| a != b), "{i}");
    }
    assert!(g.jumped(u32::MAX).unwrap().jumped(1).is_err());
    assert!(matches!(g.spawn(usize::MAX), Err(Error::OutOfMemory { .. })));
}

#[test]
fn exponential_numbers_of_16_bits_are_rounded_float32_numbers() {
    let draw = |dtype| default_rng(SEED).standard_exponential(COUNT, dtype).unwrap();
    let wide = draw(DType::F32);
    for dtype in [DType::F16, DType::BF16] {
        assert_eq!(as_f64(&draw(dtype)), as_f64(&wide.astype(dtype).unwrap()), "{dtype}");
    }
    let error = default_rng(SEED).standard_exponential(1, DType::I16).unwrap_err();
    assert!(error.to_string().contains("a real floating dtype is needed"), "{error}");
}
