//! Rejection sampling: each element reads its own Philox counters, one per attempt.
//!
//! `random_samplers.cu` performs the same operations in the same order, so that results have equal bits on every device.

use super::philox;
use super::reproducible_math::{exp, expm1_of_negative, log, log_factorial, log1p, stirling_correction};

/// Maximum number of attempts of a rejection method for an element. Valid parameters accept at least a third of all attempts. The limit
/// ends the loops for parameters such as infinities.
const MAX_REJECTION_ATTEMPTS: u32 = 1 << 12;

/// Largest result of the discrete distributions: the largest float64 number below 2^63.
const MAX_DISCRETE_RESULT: f64 = 9223372036854774784.0;

/// The attempts of a rejection method for one element. Each attempt takes four random words.
pub struct RejectionAttempts {
    pub key: u64,
    /// Low half of the Philox counter: the number of the element's counter block.
    pub block: u64,
    pub stream: u32,
    /// Number of the next attempt of the rejection method.
    pub next: u32,
    /// Random words of attempt 0. They are computed for several elements at once.
    pub first: [u32; 4],
}

impl RejectionAttempts {
    #[inline(always)]
    fn next_attempt_words(&mut self) -> [u32; 4] {
        let attempt = self.next;
        self.next += 1;
        if attempt == 0 { self.first } else { philox(self.key, [self.block as u32, (self.block >> 32) as u32, attempt, self.stream]) }
    }

    fn is_exhausted(&self) -> bool {
        self.next >= MAX_REJECTION_ATTEMPTS
    }

    /// Returns two uniform numbers of 53 bits in [0, 1).
    #[inline(always)]
    fn next_uniform_pair(&mut self) -> [f64; 2] {
        let [a, b, c, d] = self.next_attempt_words();
        [super::uniform_f64_from_words(a, b), super::uniform_f64_from_words(c, d)]
    }

    /// Returns three uniform numbers in [0, 1), of 42, 42 and 44 bits.
    #[inline(always)]
    fn next_uniform_triple(&mut self) -> [f64; 3] {
        let [a, b, c, d] = self.next_attempt_words();
        let join = |low: u32, high: u32, digits: i32| super::join_u32_words(low, high) as f64 * 2f64.powi(-digits);
        [join(a, d & 1023, 42), join(b, d >> 10 & 1023, 42), join(c, d >> 20, 44)]
    }

    /// Returns a standard normal number and an independent uniform number, by Marsaglia's polar method (1964).
    #[inline(always)]
    fn next_normal_and_uniform(&mut self) -> [f64; 2] {
        loop {
            let [u, v, w] = self.next_uniform_triple();
            let (x, y) = (u + u - 1.0, v + v - 1.0);
            let square = x * x + y * y;
            if (square < 1.0 && square > 0.0) || self.is_exhausted() {
                return [x * (-2.0 * log(square) / square).sqrt(), w];
            }
        }
    }
}

/// A distribution whose parameters are checked and whose derived constants are computed once for all elements.
pub trait DistributionSampler {
    /// Computes the constants.
    fn from_parameters(parameters: [f64; 3]) -> Self;
    /// Draws one number. Discrete distributions return an integer as a float.
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64;
}

/// Gamma distribution of scale 1 (Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 26, 2000).
pub struct Gamma {
    shape: f64,
    d: f64,
    c: f64,
}

impl DistributionSampler for Gamma {
    fn from_parameters([shape, ..]: [f64; 3]) -> Gamma {
        let d = if shape < 1.0 { shape + 1.0 } else { shape } - 0.3333333333333333;
        Gamma { shape, d, c: 1.0 / (9.0 * d).sqrt() }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        if self.shape == 0.0 {
            return 0.0;
        }
        let gamma = loop {
            let [normal, uniform] = attempts.next_normal_and_uniform();
            let root = 1.0 + self.c * normal;
            if root > 0.0 {
                let (cube, square) = (root * root * root, normal * normal);
                if uniform < 1.0 - 0.0331 * (square * square) || log(uniform) < 0.5 * square + self.d * (1.0 - cube + log(cube)) {
                    break self.d * cube;
                }
            }
            if attempts.is_exhausted() {
                return f64::NAN;
            }
        };
        if self.shape < 1.0 {
            let [uniform, _] = attempts.next_uniform_pair();
            gamma * exp(log(1.0 - uniform) / self.shape)
        } else {
            gamma
        }
    }
}

/// Poisson distribution. For small means, inverts the cumulative distribution function by a linear search. Other means use PTRS (Hormann,
/// "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12, 1993).
pub struct Poisson {
    mean: f64,
    /// For small means `e^-mean`, the probability of 0. For other means, the logarithm of the mean.
    power: f64,
    a: f64,
    b: f64,
    log_inverse_alpha: f64,
    v_r: f64,
}

impl DistributionSampler for Poisson {
    fn from_parameters([mean, ..]: [f64; 3]) -> Poisson {
        let b = 0.931 + 2.53 * mean.sqrt();
        let is_small = mean < 10.0;
        Poisson {
            mean,
            power: if is_small { exp(-mean) } else { log(mean) },
            a: -0.059 + 0.02483 * b,
            b,
            log_inverse_alpha: if is_small { 0.0 } else { log(1.1239 + 1.1328 / (b - 3.4)) },
            v_r: 0.9277 - 3.6224 / (b - 2.0),
        }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        if self.mean < 10.0 {
            let [uniform, _] = attempts.next_uniform_pair();
            let (mut k, mut term, mut sum) = (0.0, self.power, self.power);
            while uniform >= sum {
                k += 1.0;
                term = term * self.mean / k;
                if sum + term == sum {
                    break;
                }
                sum += term;
            }
            return k;
        }
        loop {
            let [u, v] = attempts.next_uniform_pair();
            let u = u - 0.5;
            let distance = 0.5 - u.abs();
            let k = ((2.0 * self.a / distance + self.b) * u + self.mean + 0.43).floor();
            if (distance >= 0.07 && v <= self.v_r) || attempts.is_exhausted() {
                return k;
            }
            if k < 0.0 || (distance < 0.013 && v > distance) {
                continue;
            }
            let left = log(v) + self.log_inverse_alpha - log(self.a / (distance * distance) + self.b);
            if left <= k * self.power - self.mean - log_factorial(k) {
                return k;
            }
        }
    }
}

/// Binomial distribution. For small means, inverts the cumulative distribution function by a linear search. Other means use BTRS (Hormann,
/// "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46, 1993).
pub struct Binomial {
    n: f64,
    /// The smaller of the probabilities of success and failure.
    p: f64,
    is_swapped: bool,
    is_small: bool,
    odds: f64,
    /// The probability of 0 successes. Used for small means only.
    none: f64,
    a: f64,
    b: f64,
    c: f64,
    v_r: f64,
    alpha: f64,
    mode: f64,
    /// The part of the acceptance bound of the rejection method that does not depend on the candidate `k`.
    bound: f64,
}

/// Maximum number of trials for which the acceptance bound is computed directly. Above it, the rounding error of the terms of the bound is
/// about 1e-4 or more, so [`binomial_log_weight`] replaces them.
const MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND: f64 = (1_u64 << 40) as f64;

/// Returns the logarithm of the probability of `k` successes in `n` trials, up to a constant. The terms of the size of `n` cancel
/// analytically (Loader, "Fast and accurate computation of binomial probabilities", 2000).
#[inline(always)]
fn binomial_log_weight(n: f64, p: f64, k: f64) -> f64 {
    let (successes, failures) = (n * p, n * (1.0 - p));
    let (distance, rest) = (k - successes, n - k);
    let terms = (k + 0.5) * log1p((distance + 1.0) / successes) + (rest + 0.5) * log1p((1.0 - distance) / failures);
    -terms - stirling_correction(k) - stirling_correction(rest)
}

impl DistributionSampler for Binomial {
    fn from_parameters([n, given, _]: [f64; 3]) -> Binomial {
        let is_swapped = given > 0.5;
        let p = if is_swapped { 1.0 - given } else { given };
        let (q, odds) = (1.0 - p, p / (1.0 - p));
        let is_small = n * p < 10.0;
        let deviation = (n * p * q).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let mode = ((n + 1.0) * p).floor();
        Binomial {
            n,
            p,
            is_swapped,
            is_small,
            odds,
            none: if is_small { exp(n * log1p(-p)) } else { 0.0 },
            a: -0.0873 + 0.0248 * b + 0.01 * p,
            b,
            c: n * p + 0.5,
            v_r: 0.92 - 4.2 / b,
            alpha: (2.83 + 5.1 / b) * deviation,
            mode,
            bound: if is_small {
                0.0
            } else if n > MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND {
                -binomial_log_weight(n, p, mode)
            } else {
                (mode + 0.5) * log((mode + 1.0) / (odds * (n - mode + 1.0))) + stirling_correction(mode) + stirling_correction(n - mode)
            },
        }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        let successes = if self.is_small { self.draw_with_small_mean(attempts) } else { self.draw_with_large_mean(attempts) };
        if self.is_swapped { self.n - successes } else { successes }
    }
}

impl Binomial {
    #[inline(always)]
    fn draw_with_small_mean(&self, attempts: &mut RejectionAttempts) -> f64 {
        if self.p == 0.0 {
            return 0.0;
        }
        let [uniform, _] = attempts.next_uniform_pair();
        let (mut k, mut term, mut sum) = (0.0, self.none, self.none);
        while uniform >= sum && k < self.n {
            term = term * (self.n - k) / (k + 1.0) * self.odds;
            if sum + term == sum {
                break;
            }
            k += 1.0;
            sum += term;
        }
        k
    }

    #[inline(always)]
    fn draw_with_large_mean(&self, attempts: &mut RejectionAttempts) -> f64 {
        loop {
            let [u, v] = attempts.next_uniform_pair();
            let u = u - 0.5;
            let distance = 0.5 - u.abs();
            let k = ((2.0 * self.a / distance + self.b) * u + self.c).floor();
            if (distance >= 0.07 && v <= self.v_r) || attempts.is_exhausted() {
                return k;
            }
            if k < 0.0 || k > self.n {
                continue;
            }
            let left = log(v * self.alpha / (self.a / (distance * distance) + self.b));
            if self.n > MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND {
                if left <= self.bound + binomial_log_weight(self.n, self.p, k) {
                    return k;
                }
                continue;
            }
            let rest = self.n - k + 1.0;
            let ratios = (self.n + 1.0) * log((self.n - self.mode + 1.0) / rest) + (k + 0.5) * log(self.odds * rest / (k + 1.0));
            if left <= self.bound + ratios - stirling_correction(k) - stirling_correction(self.n - k) {
                return k;
            }
        }
    }
}

/// Hypergeometric distribution. Small samples are drawn one item at a time; larger samples use the ratio of uniforms (Stadlober, "The ratio
/// of uniforms approach for generating discrete random variates", Journal of Computational and Applied Mathematics 31, 1990).
pub struct Hypergeometric {
    good: f64,
    bad: f64,
    sample: f64,
    /// Number of items that are drawn: the smaller of `sample` and the number of items outside the sample.
    drawn: f64,
    less: f64,
    more: f64,
    center: f64,
    width: f64,
    limit: f64,
    log_weight: f64,
}

impl DistributionSampler for Hypergeometric {
    fn from_parameters([good, bad, sample]: [f64; 3]) -> Hypergeometric {
        let total = good + bad;
        let drawn = sample.min(total - sample);
        let (less, more) = (good.min(bad), good.max(bad));
        let (center, width, limit, log_weight) = if drawn < 10.0 {
            (0.0, 0.0, 0.0, 0.0)
        } else {
            let (p, q) = (less / total, more / total);
            let center = drawn * p + 0.5;
            let deviation = ((total - drawn) * drawn * p * q / (total - 1.0) + 0.5).sqrt();
            let mode = ((drawn + 1.0) * (less + 1.0) / (total + 2.0)).floor();
            let limit = (drawn.min(less) + 1.0).min((center + 16.0 * deviation).floor());
            let log_weight =
                log_factorial(mode) + log_factorial(less - mode) + log_factorial(drawn - mode) + log_factorial(more - drawn + mode);
            (center, 1.7155277699214135 * deviation + 0.8989161620588988, limit, log_weight)
        };
        Hypergeometric { good, bad, sample, drawn, less, more, center, width, limit, log_weight }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        if self.drawn < 10.0 { self.draw_one_by_one(attempts) } else { self.draw_by_ratio_of_uniforms(attempts) }
    }
}

impl Hypergeometric {
    /// Draws the sample one item at a time, or the items outside the sample if they are fewer.
    #[inline(always)]
    fn draw_one_by_one(&self, attempts: &mut RejectionAttempts) -> f64 {
        let (mut good, mut total, mut taken) = (self.good, self.good + self.bad, 0.0);
        while taken < self.drawn {
            let [uniform, _] = attempts.next_uniform_pair();
            if uniform * total < good {
                good -= 1.0;
            }
            total -= 1.0;
            taken += 1.0;
        }
        if self.drawn < self.sample { good } else { self.good - good }
    }

    #[inline(always)]
    fn draw_by_ratio_of_uniforms(&self, attempts: &mut RejectionAttempts) -> f64 {
        let candidate = loop {
            let [u, v] = attempts.next_uniform_pair();
            let x = self.center + self.width * (v - 0.5) / u;
            if attempts.is_exhausted() {
                break 0.0;
            }
            // If `u` is 0, `x` is infinite or NaN, which this test also rejects.
            if !(x >= 0.0 && x < self.limit) {
                continue;
            }
            let k = x.floor();
            let weight = self.log_weight
                - (log_factorial(k)
                    + log_factorial(self.less - k)
                    + log_factorial(self.drawn - k)
                    + log_factorial(self.more - self.drawn + k));
            if u * (4.0 - u) - 3.0 <= weight {
                break k;
            }
            if u * (u - weight) < 1.0 && 2.0 * log(u) <= weight {
                break k;
            }
        };
        let good = if self.good > self.bad { self.drawn - candidate } else { candidate };
        if self.drawn < self.sample { self.good - good } else { good }
    }
}

/// Geometric distribution by inversion (Devroye, "Non-Uniform Random Variate Generation", 1986, X.2).
pub struct Geometric {
    log_failure: f64,
}

impl DistributionSampler for Geometric {
    fn from_parameters([p, ..]: [f64; 3]) -> Geometric {
        Geometric { log_failure: log1p(-p) }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        let [uniform, _] = attempts.next_uniform_pair();
        (log(1.0 - uniform) / self.log_failure).ceil().clamp(1.0, MAX_DISCRETE_RESULT)
    }
}

/// Logarithmic series distribution (Kemp, "Efficient generation of logarithmically distributed pseudo-random variables", Applied
/// Statistics 30, 1981).
pub struct LogSeries {
    p: f64,
    log_failure: f64,
}

impl DistributionSampler for LogSeries {
    fn from_parameters([p, ..]: [f64; 3]) -> LogSeries {
        LogSeries { p, log_failure: log1p(-p) }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        let [u, v] = attempts.next_uniform_pair();
        let v = v.max(5.551115123125783e-17);
        if v >= self.p {
            return 1.0;
        }
        let q = -expm1_of_negative(self.log_failure * (1.0 - u));
        if v <= q * q {
            (1.0 + log(v) / log(q)).floor().clamp(1.0, MAX_DISCRETE_RESULT)
        } else if v >= q {
            1.0
        } else {
            2.0
        }
    }
}

/// Zipf distribution by rejection from a Pareto distribution (Devroye, "Non-Uniform Random Variate Generation", 1986, X.6.1).
pub struct Zipf {
    exponent: f64,
    /// `2^exponent`.
    power: f64,
    /// Smallest uniform number `u` that is inverted. For this number, `u^(-1 / exponent)` is [`MAX_DISCRETE_RESULT`], the largest result.
    least: f64,
}

impl DistributionSampler for Zipf {
    fn from_parameters([a, ..]: [f64; 3]) -> Zipf {
        let exponent = a - 1.0;
        Zipf { exponent, power: exp(exponent * std::f64::consts::LN_2), least: exp(-exponent * log(MAX_DISCRETE_RESULT)) }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        // An exponent above 1000 always gives the result 1, because the probability of 2 is below 2^-1000.
        if self.exponent > 1000.0 {
            return 1.0;
        }
        loop {
            let [u, v] = attempts.next_uniform_pair();
            let u = u * self.least + (1.0 - u);
            let x = exp(-log(u) / self.exponent).floor();
            if attempts.is_exhausted() {
                return 1.0;
            }
            if !(1.0..=MAX_DISCRETE_RESULT).contains(&x) {
                continue;
            }
            let t = exp(self.exponent * log1p(1.0 / x));
            if v * x * (t - 1.0) / (self.power - 1.0) <= t / self.power {
                return x;
            }
        }
    }
}

/// Tangent of half the angle of the von Mises distribution of mean 0 (Best and Fisher, "Efficient simulation of the von Mises
/// distribution", Applied Statistics 28, 1979). A point in the unit disk replaces the cosine of a uniform angle.
pub struct TangentOfHalfVonMisesAngle {
    kappa: f64,
    /// `(1 + rho^2) / (2 rho)`.
    r: f64,
    /// `(r - 1) / (r + 1)`, where `r` is the field `r`, computed without cancellation.
    ratio: f64,
}

impl DistributionSampler for TangentOfHalfVonMisesAngle {
    fn from_parameters([kappa, ..]: [f64; 3]) -> TangentOfHalfVonMisesAngle {
        let tau = 1.0 + (1.0 + 4.0 * (kappa * kappa)).sqrt();
        // For small kappa, the formula for rho loses digits by cancellation. The approximation kappa / 2 is then more accurate.
        let rho = if kappa < 1e-5 { 0.5 * kappa } else { (tau - (tau + tau).sqrt()) / (kappa + kappa) };
        let (above, below) = (1.0 + rho, 1.0 - rho);
        TangentOfHalfVonMisesAngle { kappa, r: (1.0 + rho * rho) / (rho + rho), ratio: below * below / (above * above) }
    }

    #[inline(always)]
    fn draw(&self, attempts: &mut RejectionAttempts) -> f64 {
        if self.kappa > 1e6 {
            let [normal, _] = attempts.next_normal_and_uniform();
            return 0.5 * normal / self.kappa.sqrt();
        }
        loop {
            let [u, v, w] = attempts.next_uniform_triple();
            let (x, y) = (u + u - 1.0, v + v - 1.0);
            let (x2, y2) = (x * x, y * y);
            let square = x2 + y2;
            if attempts.is_exhausted() {
                return f64::NAN;
            }
            if !(square < 1.0 && square > 0.0) {
                continue;
            }
            // `z` is the cosine of twice the point's polar angle, so (1 - z) / (1 + z) equals y2 / x2.
            let tangent = (self.ratio * (y2 / x2)).sqrt();
            let signed = if y < 0.0 { -tangent } else { tangent };
            if self.kappa < 1e-8 {
                return signed;
            }
            let z = (x2 - y2) / square;
            let difference = self.kappa * (self.r - (1.0 + self.r * z) / (self.r + z));
            if difference * (2.0 - difference) > w || log(difference / w) + 1.0 - difference >= 0.0 {
                return signed;
            }
        }
    }
}
