//! Distributions as expressions of uniform and normal numbers and of numbers drawn by rejection.

use super::distribution_parameters::{
    ABOVE_ONE_INTERVAL, HYPERGEOMETRIC_COUNT_INTERVAL, MAX_POISSON_MEAN, NOT_NEGATIVE_INTERVAL, POISSON_MEAN_INTERVAL, POSITIVE_INTERVAL,
    POSITIVE_PROBABILITY_INTERVAL, PROBABILITY_BELOW_ONE_INTERVAL, PROBABILITY_INTERVAL, checked_integer_parameter, checked_real_parameter,
    checked_trial_count, drawn_array_shape, reject_unless_all_true, unrestricted_real_parameter,
};
use super::{Generator, NORMAL, RANDOM};
use crate::array::NdArray;
use crate::call::{Distribution, Sampler};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Operand;
use crate::ops::elementwise::{
    add, atan, divide, exp, expm1, floor, fmod, greater, greater_equal, isnan, less, less_equal, log, log1p, logical_and, logical_not,
    maximum, minimum, multiply, negative, not_equal, power as raise, sqrt, square, subtract, where_,
};

/// The number that replaces a uniform random 0, whose logarithm would be infinite. It is half the distance between neighbouring uniform
/// float64 numbers.
const ZERO_UNIFORM_REPLACEMENT: f64 = 5.551115123125783e-17;

/// If the shape parameters of two gamma-distributed random numbers are below this bound, the quotient of the numbers is 0 or infinite. The
/// probability of each depends only on the quotient of the shape parameters.
const MAX_TINY_GAMMA_SHAPE: f64 = 1e-300;
/// Factor by which shape parameters below [`MAX_TINY_GAMMA_SHAPE`] are multiplied, 2^200. The logarithms of the gamma-distributed numbers
/// are then finite.
const TINY_GAMMA_SHAPE_FACTOR: f64 = 1.6069380442589903e60;

impl Generator {
    /// Returns uniform float64 numbers in [0, 1).
    pub(super) fn draw_unit_uniform(&self, shape: &[usize]) -> Result<NdArray> {
        self.draw_uniform(RANDOM, 0.0, 1.0, shape, DType::F64)
    }

    /// Returns standard normal float64 numbers.
    pub(super) fn draw_normal(&self, shape: &[usize]) -> Result<NdArray> {
        self.draw_random_array(NORMAL, shape, DType::F64, Distribution::Normal { mean: 0.0, std: 1.0 })
    }

    /// Returns exponentially distributed float64 numbers of mean 1, by inversion.
    pub(super) fn draw_exponential(&self, shape: &[usize]) -> Result<NdArray> {
        negative(log1p(negative(self.draw_unit_uniform(shape)?)?)?)
    }

    /// Returns float64 numbers of the gamma distribution of scale 1.
    pub(super) fn draw_gamma(&self, shape: &Operand, size: &[usize]) -> Result<NdArray> {
        self.draw_from_sampler(Sampler::StandardGamma, std::slice::from_ref(shape), size, DType::F64)
    }

    /// Returns logarithms of numbers of the gamma distribution of scale 1.
    ///
    /// A gamma number of shape `a + 1`, multiplied by `u^(1 / a)` for a uniform number `u`, has shape `a` (Marsaglia and Tsang, 2000). The
    /// logarithm of the product is finite even if the product underflows.
    pub(super) fn draw_log_gamma(&self, shape: &Operand, size: &[usize]) -> Result<NdArray> {
        let larger = self.draw_gamma(&add_to_operand(shape, 1.0)?, size)?;
        subtract(log(larger)?, divide(self.draw_exponential(size)?, shape)?)
    }

    /// Returns int64 numbers of a discrete distribution.
    fn draw_discrete(&self, sampler: Sampler, parameters: &[Operand], size: &[usize]) -> Result<NdArray> {
        self.draw_from_sampler(sampler, parameters, size, DType::I64)
    }

    /// Returns int64 numbers of the binomial distribution for a number of trials and a probability. `is_exact` is true if float64
    /// represents all numbers of trials without rounding.
    pub(super) fn draw_binomial(&self, parameters: &[Operand; 2], is_exact: bool, size: &[usize]) -> Result<NdArray> {
        let counts = self.draw_discrete(Sampler::Binomial, parameters, size)?;
        let [n, p] = parameters;
        if is_exact { Ok(counts) } else { where_(greater_equal(p, 1.0)?, n, minimum(counts, n)?) }
    }
}

/// Returns `value + number`. The result is a number if `value` is one, else an array.
fn add_to_operand(value: &Operand, number: f64) -> Result<Operand> {
    match value {
        Operand::Scalar(s) => Ok((s.as_f64() + number).into()),
        Operand::Array(a) => Ok(add(a, number)?.into()),
    }
}

/// Returns `value * factor`. The result is a number if `value` is one, else an array.
fn multiply_operand(value: &Operand, factor: f64) -> Result<Operand> {
    match value {
        Operand::Scalar(s) => Ok((s.as_f64() * factor).into()),
        Operand::Array(a) => Ok(multiply(a, factor)?.into()),
    }
}

/// Returns [`TINY_GAMMA_SHAPE_FACTOR`] if `largest`, the largest shape parameter, is below [`MAX_TINY_GAMMA_SHAPE`], and 1 otherwise.
/// Distributions that use only quotients of gamma-distributed numbers multiply all shape parameters by this factor.
pub(super) fn tiny_gamma_shape_factor(largest: &NdArray) -> Result<NdArray> {
    where_(less(largest, MAX_TINY_GAMMA_SHAPE)?, TINY_GAMMA_SHAPE_FACTOR, 1.0)
}

/// Returns `location + scale * numbers`.
fn scale_and_shift(numbers: NdArray, location: &Operand, scale: &Operand) -> Result<NdArray> {
    add(multiply(numbers, scale)?, location)
}

/// Checks the location and the scale of a distribution. Evaluates to these two parameters and the shape of the result.
macro_rules! location_and_scale {
    ($location:ident, $scale:ident, $size:ident) => {{
        let pair = [unrestricted_real_parameter($location, "loc")?, checked_real_parameter($scale, "scale", &NOT_NEGATIVE_INTERVAL)?];
        let shape = drawn_array_shape(&pair, $size)?;
        (pair, shape)
    }};
}

/// Checks the only parameter of a distribution. Evaluates to the parameter and the shape of the result.
macro_rules! one_parameter {
    ($value:ident, $interval:ident, $size:ident) => {{
        let value = [checked_real_parameter($value, stringify!($value), &$interval)?];
        let shape = drawn_array_shape(&value, $size)?;
        let [value] = value;
        (value, shape)
    }};
}

pub(super) fn exponential(g: &Generator, [scale]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (scale, shape) = one_parameter!(scale, NOT_NEGATIVE_INTERVAL, size);
    multiply(g.draw_exponential(&shape)?, scale)
}

pub(super) fn laplace(g: &Generator, [loc, scale]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let ([loc, scale], shape) = location_and_scale!(loc, scale, size);
    let u = maximum(g.draw_unit_uniform(&shape)?, ZERO_UNIFORM_REPLACEMENT)?;
    let twice = add(&u, &u)?;
    let upper = negative(log(subtract(2.0, &twice)?)?)?;
    scale_and_shift(where_(less_equal(0.5, u)?, upper, log(twice)?)?, &loc, &scale)
}

pub(super) fn logistic(g: &Generator, [loc, scale]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let ([loc, scale], shape) = location_and_scale!(loc, scale, size);
    let u = maximum(g.draw_unit_uniform(&shape)?, ZERO_UNIFORM_REPLACEMENT)?;
    scale_and_shift(subtract(log(&u)?, log1p(negative(u)?)?)?, &loc, &scale)
}

pub(super) fn gumbel(g: &Generator, [loc, scale]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let ([loc, scale], shape) = location_and_scale!(loc, scale, size);
    let u = maximum(g.draw_unit_uniform(&shape)?, ZERO_UNIFORM_REPLACEMENT)?;
    scale_and_shift(negative(log(negative(log1p(negative(u)?)?)?)?)?, &loc, &scale)
}

pub(super) fn lognormal(g: &Generator, [mean, sigma]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [unrestricted_real_parameter(mean, "mean")?, checked_real_parameter(sigma, "sigma", &NOT_NEGATIVE_INTERVAL)?];
    let shape = drawn_array_shape(&pair, size)?;
    exp(scale_and_shift(g.draw_normal(&shape)?, &pair[0], &pair[1])?)
}

pub(super) fn rayleigh(g: &Generator, [scale]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (scale, shape) = one_parameter!(scale, NOT_NEGATIVE_INTERVAL, size);
    let e = g.draw_exponential(&shape)?;
    multiply(sqrt(add(&e, &e)?)?, scale)
}

pub(super) fn pareto(g: &Generator, [a]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (a, shape) = one_parameter!(a, POSITIVE_INTERVAL, size);
    expm1(divide(g.draw_exponential(&shape)?, a)?)
}

pub(super) fn weibull(g: &Generator, [a]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (a, shape) = one_parameter!(a, NOT_NEGATIVE_INTERVAL, size);
    // As in NumPy, all numbers are 0 for the shape parameter `a = 0`, which is the limit of the distribution.
    let numbers = raise(g.draw_exponential(&shape)?, divide(1.0, &a)?)?;
    where_(less_equal(a, 0.0)?, 0.0, numbers)
}

pub(super) fn power(g: &Generator, [a]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (a, shape) = one_parameter!(a, POSITIVE_INTERVAL, size);
    raise(g.draw_unit_uniform(&shape)?, divide(1.0, a)?)
}

pub(super) fn triangular(g: &Generator, [left, mode, right]: [Operand; 3], size: &[usize]) -> Result<NdArray> {
    let ends = [
        unrestricted_real_parameter(left, "left")?,
        unrestricted_real_parameter(mode, "mode")?,
        unrestricted_real_parameter(right, "right")?,
    ];
    let shape = drawn_array_shape(&ends, size)?;
    let [left, mode, right] = &ends;
    // NaN passes these checks, because a comparison with NaN is false.
    reject_unless_all_true(logical_not(greater(left, mode)?)?, "left > mode")?;
    reject_unless_all_true(logical_not(greater(mode, right)?)?, "mode > right")?;
    reject_unless_all_true(not_equal(left, right)?, "left == right")?;
    let u = g.draw_unit_uniform(&shape)?;
    let (base, lower, upper) = (subtract(right, left)?, subtract(mode, left)?, subtract(right, mode)?);
    let rising = add(left, sqrt(multiply(&u, multiply(&base, &lower)?)?)?)?;
    let falling = subtract(right, sqrt(multiply(subtract(1.0, &u)?, multiply(&base, upper)?)?)?)?;
    where_(less_equal(u, divide(lower, base)?)?, rising, falling)
}

pub(super) fn standard_cauchy(g: &Generator, []: [Operand; 0], size: &[usize]) -> Result<NdArray> {
    divide(g.draw_normal(size)?, g.draw_normal(size)?)
}

pub(super) fn gamma(g: &Generator, [shape, scale]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair =
        [checked_real_parameter(shape, "shape", &NOT_NEGATIVE_INTERVAL)?, checked_real_parameter(scale, "scale", &NOT_NEGATIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    multiply(g.draw_gamma(&pair[0], &size)?, &pair[1])
}

/// Returns numbers of the beta distribution: `x / (x + y)` for gamma numbers `x` and `y`, computed from their logarithms.
pub(super) fn beta(g: &Generator, [a, b]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [checked_real_parameter(a, "a", &POSITIVE_INTERVAL)?, checked_real_parameter(b, "b", &POSITIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    let pair = match &pair {
        [Operand::Scalar(a), Operand::Scalar(b)] if a.as_f64().max(b.as_f64()) >= MAX_TINY_GAMMA_SHAPE => pair,
        [Operand::Scalar(_), Operand::Scalar(_)] => {
            [multiply_operand(&pair[0], TINY_GAMMA_SHAPE_FACTOR)?, multiply_operand(&pair[1], TINY_GAMMA_SHAPE_FACTOR)?]
        }
        [a, b] => {
            let factor = tiny_gamma_shape_factor(&maximum(a, b)?)?;
            [multiply(a, &factor)?.into(), multiply(b, factor)?.into()]
        }
    };
    let (x, y) = (g.draw_log_gamma(&pair[0], &size)?, g.draw_log_gamma(&pair[1], &size)?);
    divide(1.0, add(1.0, exp(subtract(y, x)?)?)?)
}

pub(super) fn chisquare(g: &Generator, [df]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (df, shape) = one_parameter!(df, POSITIVE_INTERVAL, size);
    draw_chisquare(g, &df, &shape)
}

/// Returns numbers of the chi-square distribution for checked degrees of freedom.
fn draw_chisquare(g: &Generator, df: &Operand, size: &[usize]) -> Result<NdArray> {
    multiply(g.draw_gamma(&multiply_operand(df, 0.5)?, size)?, 2.0)
}

/// Returns numbers of the noncentral chi-square distribution: a Poisson mixture of chi-square distributions (Johnson, Kotz and
/// Balakrishnan, "Continuous Univariate Distributions", volume 2, 29.2). Where `nonc` is too large for the Poisson distribution, the number
/// is the sum of the square of a normal number of mean `sqrt(nonc)` and a chi-square number of `df - 1` degrees of freedom. For `df` below
/// 1, the chi-square number is replaced by 0, because it is below the rounding error.
fn draw_noncentral_chisquare(g: &Generator, df: &Operand, nonc: &Operand, size: &[usize]) -> Result<NdArray> {
    let mixture = |nonc: &Operand| {
        let mixed = g.draw_discrete(Sampler::Poisson, &[multiply_operand(nonc, 0.5)?], size)?.astype(DType::F64)?;
        draw_chisquare(g, &add(df, multiply(mixed, 2.0)?)?.into(), size)
    };
    let largest = match nonc {
        Operand::Scalar(number) => number.as_f64(),
        Operand::Array(a) if a.size() == 0 => 0.0,
        Operand::Array(a) => a.max(())?.item_as()?,
    };
    if largest <= MAX_POISSON_MEAN {
        return mixture(nonc);
    }
    let rest = draw_chisquare(g, &maximum(subtract(df, 1.0)?, 0.0)?.into(), size)?;
    let shifted = add(square(add(g.draw_normal(size)?, sqrt(nonc)?)?)?, rest)?;
    where_(less_equal(nonc, MAX_POISSON_MEAN)?, mixture(&minimum(nonc, MAX_POISSON_MEAN)?.into())?, shifted)
}

pub(super) fn noncentral_chisquare(g: &Generator, [df, nonc]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [checked_real_parameter(df, "df", &POSITIVE_INTERVAL)?, checked_real_parameter(nonc, "nonc", &NOT_NEGATIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    draw_noncentral_chisquare(g, &pair[0], &pair[1], &size)
}

pub(super) fn f(g: &Generator, [dfnum, dfden]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [checked_real_parameter(dfnum, "dfnum", &POSITIVE_INTERVAL)?, checked_real_parameter(dfden, "dfden", &POSITIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    let (above, below) = (draw_chisquare(g, &pair[0], &size)?, draw_chisquare(g, &pair[1], &size)?);
    divide(divide(above, &pair[0])?, divide(below, &pair[1])?)
}

pub(super) fn noncentral_f(g: &Generator, [dfnum, dfden, nonc]: [Operand; 3], size: &[usize]) -> Result<NdArray> {
    let all = [
        checked_real_parameter(dfnum, "dfnum", &POSITIVE_INTERVAL)?,
        checked_real_parameter(dfden, "dfden", &POSITIVE_INTERVAL)?,
        checked_real_parameter(nonc, "nonc", &NOT_NEGATIVE_INTERVAL)?,
    ];
    let size = drawn_array_shape(&all, size)?;
    let (above, below) = (draw_noncentral_chisquare(g, &all[0], &all[2], &size)?, draw_chisquare(g, &all[1], &size)?);
    divide(divide(above, &all[0])?, divide(below, &all[1])?)
}

pub(super) fn standard_t(g: &Generator, [df]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (df, shape) = one_parameter!(df, POSITIVE_INTERVAL, size);
    let half = multiply_operand(&df, 0.5)?;
    let gamma = g.draw_gamma(&half, &shape)?;
    multiply(g.draw_normal(&shape)?, sqrt(divide(&half, gamma)?)?)
}

/// Returns numbers of the inverse Gaussian distribution (Michael, Schucany and Haas, "Generating random variates using transformations with
/// multiple roots", The American Statistician 30, 1976).
pub(super) fn wald(g: &Generator, [mean, scale]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [checked_real_parameter(mean, "mean", &POSITIVE_INTERVAL)?, checked_real_parameter(scale, "scale", &POSITIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    let [mean, scale] = &pair;
    // The two roots of the method's quadratic equation, divided by the mean, are `factor` and `1 / factor`. This form avoids products of
    // parameters, which could overflow.
    let y = multiply(divide(mean, scale)?, square(g.draw_normal(&size)?)?)?;
    let root = multiply(sqrt(&y)?, sqrt(add(&y, 4.0)?)?)?;
    let factor = add(multiply(add(y, root)?, 0.5)?, 1.0)?;
    let is_smaller = less_equal(g.draw_unit_uniform(&size)?, divide(1.0, add(divide(1.0, &factor)?, 1.0)?)?)?;
    where_(is_smaller, divide(mean, &factor)?, multiply(mean, &factor)?)
}

pub(super) fn vonmises(g: &Generator, [mu, kappa]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    const TWO_PI: f64 = std::f64::consts::TAU;
    /// Smallest `kappa` for which the von Mises distribution is sampled. For smaller values, the backends draw uniform angles.
    const MIN_SAMPLED_KAPPA: f64 = 1e-8;
    let pair = [unrestricted_real_parameter(mu, "mu")?, checked_real_parameter(kappa, "kappa", &NOT_NEGATIVE_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    // The remainder is exact, so the sampled angle is not lost in the rounding of a sum with a large `mu`.
    let mu = match &pair[0] {
        Operand::Scalar(mu) => Operand::from(mu.as_f64() % TWO_PI),
        Operand::Array(mu) => fmod(mu, TWO_PI)?.into(),
    };
    // As in NumPy, a `mu` that is not finite has no effect where `kappa` is so small that the distribution is uniform.
    let mu = match (&mu, &pair[1]) {
        (Operand::Scalar(mu), _) if !mu.as_f64().is_nan() => (*mu).into(),
        (_, Operand::Scalar(kappa)) if kappa.as_f64() >= MIN_SAMPLED_KAPPA => mu,
        (mu, kappa) => where_(logical_and(isnan(mu)?, less(kappa, MIN_SAMPLED_KAPPA)?)?, 0.0, mu)?.into(),
    };
    let tangent = g.draw_from_sampler(Sampler::TangentOfHalfVonMisesAngle, &pair[1..], &size, DType::F64)?;
    let angle = add(multiply(atan(tangent)?, 2.0)?, mu)?;
    let turns = floor(divide(add(&angle, std::f64::consts::PI)?, TWO_PI)?)?;
    // The subtraction can round to a number just outside of [-pi, pi].
    minimum(maximum(subtract(angle, multiply(turns, TWO_PI)?)?, -std::f64::consts::PI)?, std::f64::consts::PI)
}

pub(super) fn poisson(g: &Generator, [lam]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (lam, shape) = one_parameter!(lam, POISSON_MEAN_INTERVAL, size);
    g.draw_discrete(Sampler::Poisson, &[lam], &shape)
}

pub(super) fn binomial(g: &Generator, [n, p]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let (n, is_exact) = checked_trial_count(n, "n")?;
    let pair = [n, checked_real_parameter(p, "p", &PROBABILITY_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    g.draw_binomial(&pair, is_exact, &size)
}

pub(super) fn negative_binomial(g: &Generator, [n, p]: [Operand; 2], size: &[usize]) -> Result<NdArray> {
    let pair = [checked_real_parameter(n, "n", &POSITIVE_INTERVAL)?, checked_real_parameter(p, "p", &POSITIVE_PROBABILITY_INTERVAL)?];
    let size = drawn_array_shape(&pair, size)?;
    // The mean of the Poisson numbers is checked after the multiplication, because a large gamma number can make it too large.
    let odds = divide(subtract(1.0, &pair[1])?, &pair[1])?;
    let mean = checked_real_parameter(multiply(g.draw_gamma(&pair[0], &size)?, odds)?.into(), "mean", &POISSON_MEAN_INTERVAL)?;
    g.draw_discrete(Sampler::Poisson, &[mean], &size)
}

pub(super) fn geometric(g: &Generator, [p]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (p, shape) = one_parameter!(p, POSITIVE_PROBABILITY_INTERVAL, size);
    g.draw_discrete(Sampler::Geometric, &[p], &shape)
}

pub(super) fn logseries(g: &Generator, [p]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (p, shape) = one_parameter!(p, PROBABILITY_BELOW_ONE_INTERVAL, size);
    g.draw_discrete(Sampler::LogSeries, &[p], &shape)
}

pub(super) fn zipf(g: &Generator, [a]: [Operand; 1], size: &[usize]) -> Result<NdArray> {
    let (a, shape) = one_parameter!(a, ABOVE_ONE_INTERVAL, size);
    g.draw_discrete(Sampler::Zipf, &[a], &shape)
}

pub(super) fn hypergeometric(g: &Generator, [ngood, nbad, nsample]: [Operand; 3], size: &[usize]) -> Result<NdArray> {
    let all = [
        checked_integer_parameter(ngood, "ngood", &HYPERGEOMETRIC_COUNT_INTERVAL)?,
        checked_integer_parameter(nbad, "nbad", &HYPERGEOMETRIC_COUNT_INTERVAL)?,
        checked_integer_parameter(nsample, "nsample", &NOT_NEGATIVE_INTERVAL)?,
    ];
    let size = drawn_array_shape(&all, size)?;
    reject_unless_all_true(less_equal(&all[2], add(&all[0], &all[1])?)?, "ngood + nbad < nsample")?;
    g.draw_discrete(Sampler::Hypergeometric, &all, &size)
}
