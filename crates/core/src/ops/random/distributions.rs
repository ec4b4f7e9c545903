//! Declares the distributions of single numbers. For each distribution, there is a method of [`Generator`] and a function that uses the
//! process-wide generator.

use cuprum_macros::numpy;

use super::distribution_parameters::device_of_parameters;
use super::eval_arguments::draw_with_size_argument;
use super::{Generator, SHARED_GENERATOR, distribution_formulas};
use crate::arguments::IntoShape;
use crate::array::NdArray;
use crate::device::with_device;
use crate::error::Result;
use crate::expr::Operand;
use crate::function::FromArgs;

/// Declares distributions. Each row of the input has the documentation, NumPy's signature, the name, the parameters and an example.
macro_rules! distributions {
    ($($(#[$($doc:tt)*])+ $signature:literal $name:ident($($parameter:ident),*), $example:literal;)*) => {
        /// # Distributions
        ///
        /// The parameters are numbers or arrays that must broadcast to `size`, the shape of the result. The size `()` stands for the shape
        /// that the parameters broadcast to. Numbers are float64 unless stated otherwise. As in NumPy, a location that is NaN gives NaN.
        /// Any other parameter that is NaN is an error. Parameters that are arrays are checked, which waits for the device.
        impl Generator {
            $(
                $(#[$($doc)*])+
                ///
                /// # Errors
                /// Parameters out of range or complex, parameters that do not broadcast to `size`, or too little memory.
                ///
                /// # Examples
                /// ```
                /// # use cuprum_backend_cpu as _;
                /// # extern crate cuprum_core as cuprum;
                /// use cuprum::random::default_rng;
                /// # fn main() -> cuprum::Result<()> {
                #[doc = $example]
                /// # Ok(())
                /// # }
                /// ```
                pub fn $name(&self, $($parameter: impl Into<Operand>,)* size: impl IntoShape) -> Result<NdArray> {
                    $(let $parameter: Operand = $parameter.into();)*
                    let size = size.into_shape();
                    let draw = || with_device(device_of_parameters(&[$(&$parameter),*])?, || distribution_formulas::$name(self, [$($parameter.clone()),*], &size));
                    draw().map_err(|error| error.with_function_name(stringify!($name)))
                }
            )*
        }

        $(
            $(#[$($doc)*])+
            ///
            /// The process-wide generator draws the numbers. [`Generator`] has a method of the same name.
            ///
            /// # Errors
            /// Parameters out of range or complex, parameters that do not broadcast to `size`, or too little memory.
            ///
            /// # Examples
            /// ```
            /// # use cuprum_backend_cpu as _;
            /// # extern crate cuprum_core as cuprum;
            /// use cuprum::random::default_rng;
            /// # fn main() -> cuprum::Result<()> {
            #[doc = $example]
            /// # Ok(())
            /// # }
            /// ```
            #[numpy($signature, differs = "Philox numbers, the same on every device", call = |args| {
                draw_with_size_argument(args, |generator, size| {
                    generator.$name($(<Operand as FromArgs>::from_args(args, stringify!($parameter))?,)* size)
                })
            })]
            pub fn $name($($parameter: impl Into<Operand>,)* size: impl IntoShape) -> Result<NdArray> {
                SHARED_GENERATOR.$name($($parameter,)* size)
            }
        )*
    };
}

distributions! {
    /// Returns numbers of the exponential distribution of mean `scale` (`numpy.random.exponential`).
    ///
    /// The method is inversion. `scale` must not be negative.
    "random.exponential(scale=1.0, size=None, seed=None)" exponential(scale),
    "let x = default_rng(7).exponential(2.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 2.0).abs() < 0.05);";

    /// Returns numbers of the Laplace distribution (`numpy.random.laplace`).
    ///
    /// The method is inversion. The density is `exp(-abs(x - loc) / scale) / (2 scale)`.
    "random.laplace(loc=0.0, scale=1.0, size=None, seed=None)" laplace(loc, scale),
    "let x = default_rng(7).laplace(3.0, 1.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 3.0).abs() < 0.05);";

    /// Returns numbers of the logistic distribution (`numpy.random.logistic`).
    ///
    /// The method is inversion. The distribution function is `1 / (1 + exp(-(x - loc) / scale))`.
    "random.logistic(loc=0.0, scale=1.0, size=None, seed=None)" logistic(loc, scale),
    "let x = default_rng(7).logistic(3.0, 1.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 3.0).abs() < 0.05);";

    /// Returns numbers of the Gumbel distribution (`numpy.random.gumbel`).
    ///
    /// The method is inversion. The distribution function is `exp(-exp(-(x - loc) / scale))`. The mean is `loc + 0.5772 scale`.
    "random.gumbel(loc=0.0, scale=1.0, size=None, seed=None)" gumbel(loc, scale),
    "let x = default_rng(7).gumbel(0.0, 1.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.5772).abs() < 0.05);";

    /// Returns numbers whose logarithm has the normal distribution of mean `mean` and deviation `sigma` (`numpy.random.lognormal`).
    ///
    /// The mean of the numbers is `exp(mean + sigma^2 / 2)`.
    "random.lognormal(mean=0.0, sigma=1.0, size=None, seed=None)" lognormal(mean, sigma),
    "let x = default_rng(7).lognormal(0.0, 0.5, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.1331).abs() < 0.02);";

    /// Returns numbers of the Rayleigh distribution (`numpy.random.rayleigh`).
    ///
    /// The method is inversion. The mean is `scale sqrt(pi / 2)`.
    "random.rayleigh(scale=1.0, size=None, seed=None)" rayleigh(scale),
    "let x = default_rng(7).rayleigh(1.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.2533).abs() < 0.02);";

    /// Returns numbers of the Pareto II distribution of shape `a` (`numpy.random.pareto`).
    ///
    /// The method is inversion. The distribution starts at 0. Its mean is `1 / (a - 1)` for `a > 1`.
    "random.pareto(a, size=None, seed=None)" pareto(a),
    "let x = default_rng(7).pareto(5.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.25).abs() < 0.02);";

    /// Returns numbers of the Weibull distribution of shape `a` and scale 1 (`numpy.random.weibull`).
    ///
    /// The method is inversion: each number is an exponential number to the power of `1 / a`.
    "random.weibull(a, size=None, seed=None)" weibull(a),
    "let x = default_rng(7).weibull(2.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.8862).abs() < 0.02);";

    /// Returns numbers in [0, 1) with the density `a x^(a - 1)` (`numpy.random.power`).
    ///
    /// The method is inversion. The mean is `a / (a + 1)`.
    "random.power(a, size=None, seed=None)" power(a),
    "let x = default_rng(7).power(3.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.75).abs() < 0.02);";

    /// Returns numbers of the triangular distribution from `left` to `right` with its peak at `mode` (`numpy.random.triangular`).
    ///
    /// The method is inversion. The mean is a third of the sum of the parameters.
    "random.triangular(left, mode, right, size=None, seed=None)" triangular(left, mode, right),
    "let x = default_rng(7).triangular(0.0, 1.0, 5.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 2.0).abs() < 0.02);";

    /// Returns numbers of the Cauchy distribution (`numpy.random.standard_cauchy`).
    ///
    /// A number is the quotient of two normal numbers. The distribution has no mean; its quartiles are -1, 0 and 1.
    "random.standard_cauchy(size=None, seed=None)" standard_cauchy(),
    "let x = default_rng(7).standard_cauchy(100_000)?;\nlet inside = cuprum::less(x.abs()?, 1.0)?.mean(())?.item_as::<f64>()?;\nassert!((inside - 0.5).abs() < 0.01);";

    /// Returns numbers of the gamma distribution (`numpy.random.gamma`).
    ///
    /// The method is rejection (Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 26, 2000). The mean is
    /// `shape * scale`.
    "random.gamma(shape, scale=1.0, size=None, seed=None)" gamma(shape, scale),
    "let x = default_rng(7).gamma(2.0, 3.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 6.0).abs() < 0.1);";

    /// Returns numbers of the beta distribution (`numpy.random.beta`).
    ///
    /// A number is `x / (x + y)` for gamma numbers `x` and `y` of shapes `a` and `b`. The mean is `a / (a + b)`.
    "random.beta(a, b, size=None, seed=None)" beta(a, b),
    "let x = default_rng(7).beta(2.0, 3.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.4).abs() < 0.02);";

    /// Returns numbers of the chi-square distribution with `df` degrees of freedom (`numpy.random.chisquare`).
    ///
    /// The numbers are gamma numbers of shape `df / 2` and scale 2. The mean is `df`.
    "random.chisquare(df, size=None, seed=None)" chisquare(df),
    "let x = default_rng(7).chisquare(3.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 3.0).abs() < 0.1);";

    /// Returns numbers of the noncentral chi-square distribution (`numpy.random.noncentral_chisquare`).
    ///
    /// Each number is a chi-square number with `df + 2 k` degrees of freedom, where `k` is a Poisson number of mean `nonc / 2`. The mean is
    /// `df + nonc`.
    "random.noncentral_chisquare(df, nonc, size=None, seed=None)" noncentral_chisquare(df, nonc),
    "let x = default_rng(7).noncentral_chisquare(3.0, 2.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 5.0).abs() < 0.1);";

    /// Returns numbers of the F distribution (`numpy.random.f`).
    ///
    /// Each number is the quotient of two chi-square numbers, which are first divided by their degrees of freedom. The mean is
    /// `dfden / (dfden - 2)` for `dfden > 2`.
    "random.f(dfnum, dfden, size=None, seed=None)" f(dfnum, dfden),
    "let x = default_rng(7).f(5.0, 12.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.2).abs() < 0.05);";

    /// Returns numbers of the noncentral F distribution (`numpy.random.noncentral_f`).
    ///
    /// Each number is the quotient of a noncentral chi-square number and a chi-square number, which are first divided by their degrees of
    /// freedom.
    "random.noncentral_f(dfnum, dfden, nonc, size=None, seed=None)" noncentral_f(dfnum, dfden, nonc),
    "let x = default_rng(7).noncentral_f(5.0, 12.0, 0.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.2).abs() < 0.05);";

    /// Returns numbers of Student's t distribution with `df` degrees of freedom (`numpy.random.standard_t`).
    ///
    /// Each number is a normal number divided by `sqrt(c / df)`, where `c` is a chi-square number with `df` degrees of freedom. The mean is
    /// 0 for `df > 1`.
    "random.standard_t(df, size=None, seed=None)" standard_t(df),
    "let x = default_rng(7).standard_t(9.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.0).abs() < 0.02);";

    /// Returns numbers of the inverse Gaussian distribution (`numpy.random.wald`).
    ///
    /// Each number is computed from a normal and a uniform number (Michael, Schucany and Haas, The American Statistician 30, 1976).
    "random.wald(mean, scale, size=None, seed=None)" wald(mean, scale),
    "let x = default_rng(7).wald(2.0, 4.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 2.0).abs() < 0.05);";

    /// Returns angles in [-pi, pi] of the von Mises distribution, the normal distribution on a circle (`numpy.random.vonmises`).
    ///
    /// The method is rejection (Best and Fisher, "Efficient simulation of the von Mises distribution", Applied Statistics 28, 1979).
    "random.vonmises(mu, kappa, size=None, seed=None)" vonmises(mu, kappa),
    "let x = default_rng(7).vonmises(0.5, 4.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 0.5).abs() < 0.02);";

    /// Returns int64 numbers of the Poisson distribution of mean `lam` (`numpy.random.poisson`).
    ///
    /// For a mean below 10, the method is a search of the cumulative distribution function. For other means, it is the rejection method
    /// PTRS (Hormann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12,
    /// 1993).
    "random.poisson(lam=1.0, size=None, seed=None)" poisson(lam),
    "let x = default_rng(7).poisson(4.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 4.0).abs() < 0.05);";

    /// Returns the numbers of successes of `n` trials with probability `p`, in int64 (`numpy.random.binomial`).
    ///
    /// If `n * min(p, 1 - p)` is below 10, the method is a search of the cumulative distribution function. Otherwise, it is the rejection
    /// method BTRS (Hormann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46, 1993).
    /// Fractions of `n` are truncated.
    "random.binomial(n, p, size=None, seed=None)" binomial(n, p),
    "let x = default_rng(7).binomial(10, 0.3, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 3.0).abs() < 0.05);";

    /// Returns the numbers of failures before `n` successes with probability `p`, in int64 (`numpy.random.negative_binomial`).
    ///
    /// Each number is a Poisson number whose mean is a gamma number. `n` need not be whole. The mean is `n (1 - p) / p`.
    "random.negative_binomial(n, p, size=None, seed=None)" negative_binomial(n, p),
    "let x = default_rng(7).negative_binomial(4.0, 0.5, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 4.0).abs() < 0.1);";

    /// Returns the numbers of trials up to the first success with probability `p`, in int64 (`numpy.random.geometric`).
    ///
    /// The method is inversion. A result above the range of int64 becomes the largest float64 number in that range.
    "random.geometric(p, size=None, seed=None)" geometric(p),
    "let x = default_rng(7).geometric(0.25, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 4.0).abs() < 0.1);";

    /// Returns int64 numbers of the logarithmic series distribution (`numpy.random.logseries`).
    ///
    /// The method is Kemp's (Applied Statistics 30, 1981). The probability of `k` is `-p^k / (k ln(1 - p))`.
    "random.logseries(p, size=None, seed=None)" logseries(p),
    "let x = default_rng(7).logseries(0.5, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.4427).abs() < 0.02);";

    /// Returns int64 numbers of the Zipf distribution, the power law with exponent `a` (`numpy.random.zipf`).
    ///
    /// The method is rejection (Devroye, "Non-Uniform Random Variate Generation", 1986, X.6.1). `a` must be above 1.
    "random.zipf(a, size=None, seed=None)" zipf(a),
    "let x = default_rng(7).zipf(4.0, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 1.1106).abs() < 0.02);";

    /// Returns the numbers of good items among `nsample` items drawn without replacement (`numpy.random.hypergeometric`).
    ///
    /// If fewer than 10 items are drawn or fewer than 10 items remain, the smaller of these two sets is drawn item by item. Otherwise, the
    /// method is the ratio of uniforms (Stadlober, Journal of Computational and Applied Mathematics 31, 1990). The result is int64. As in
    /// NumPy, `ngood` and `nbad` must be below 10^9.
    "random.hypergeometric(ngood, nbad, nsample, size=None, seed=None)" hypergeometric(ngood, nbad, nsample),
    "let x = default_rng(7).hypergeometric(30, 70, 20, 100_000)?;\nassert!((x.mean(())?.item_as::<f64>()? - 6.0).abs() < 0.05);";
}
