//! Distributions of vectors. The last axis of a result holds the components of each vector.

use cuprum_macros::numpy;

use super::distribution_formulas::tiny_gamma_shape_factor;
use super::distribution_parameters::{
    HYPERGEOMETRIC_COUNT_INTERVAL, NOT_NAN_INTERVAL, NOT_NEGATIVE_INTERVAL, PROBABILITY_INTERVAL, checked_integer_parameter,
    checked_real_parameter, checked_trial_count, device_of_parameters, drawn_array_shape, reject_unless_all_true,
    unrestricted_real_parameter,
};
use super::eval_arguments::draw_with_size_argument;
use super::{Generator, SHARED_GENERATOR};
use crate::arguments::IntoShape;
use crate::array::NdArray;
use crate::call::Sampler;
use crate::device::with_device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::function::FromArgs;
use crate::index::Item;
use crate::layout::checked_size;
use crate::ops::contract::matmul;
use crate::ops::elementwise::{abs, add, divide, equal, exp, less_equal, maximum, minimum, multiply, sqrt, subtract, where_};
use crate::ops::linalg::{Triangle, eigh};
use crate::ops::manipulation::stack;
use crate::ops::reduce::AxisOptions;

/// Returns component `k` of each vector in the last axis of `a`.
fn vector_component(a: &NdArray, k: usize) -> Result<NdArray> {
    a.index(&[Item::Ellipsis, Item::At(k as isize)][..])
}

/// Returns a parameter as an array. A number becomes a 0-d float64 array.
fn parameter_to_array(value: Operand) -> Result<NdArray> {
    match value {
        Operand::Array(a) => Ok(a),
        Operand::Scalar(number) => NdArray::scalar_as(number, DType::F64),
    }
}

/// Returns the length of the vectors in the last axis of `a`.
fn vector_length(a: &NdArray, name: &str) -> Result<usize> {
    a.shape().last().copied().ok_or_else(|| Error::value("random", format!("{name} must be at least 1-dimensional")))
}

fn draw_multinomial_vectors(g: &Generator, n: Operand, pvals: Operand, size: &[usize]) -> Result<NdArray> {
    let (n, is_exact) = checked_trial_count(n, "n")?;
    let pvals = parameter_to_array(checked_real_parameter(pvals, "pvals", &PROBABILITY_INTERVAL)?)?;
    let length = vector_length(&pvals, "pvals")?;
    if length == 0 {
        return Err(Error::value("random", "pvals must have at least 1 dimension and the last dimension must be greater than 0."));
    }
    // As in NumPy, the last probability is not read, because it is 1 minus the sum of the others.
    let sums = pvals.index(&[Item::Ellipsis, Item::slice(None, -1, 1)][..])?.sum(AxisOptions::from(-1))?;
    reject_unless_all_true(less_equal(&sums, 1.0 + 1e-12)?, "sum(pvals[:-1]) > 1.0")?;
    let shape = drawn_array_shape(&[n.clone(), vector_component(&pvals, 0)?.into()], size)?;
    let (mut left, mut rest, mut columns) = (n, Operand::from(1.0), Vec::new());
    for k in 0..length - 1 {
        let p = vector_component(&pvals, k)?;
        // Rounding can make the conditional probability greater than 1, and the remaining probability zero or negative.
        let conditional = where_(less_equal(&rest, 0.0)?, 0.0, minimum(divide(&p, &rest)?, 1.0)?)?;
        let count = g.draw_binomial(&[left.clone(), maximum(conditional, 0.0)?.into()], is_exact, &shape)?.eval()?.clone();
        rest = subtract(rest, p)?.into();
        left = subtract(left, &count)?.eval()?.clone().into();
        columns.push(count);
    }
    let last = parameter_to_array(left)?.broadcast_to(&shape[..])?.astype(DType::I64)?;
    columns.push(last);
    stack(&columns, -1)
}

fn draw_hypergeometric_vectors(g: &Generator, colors: Operand, nsample: Operand, size: &[usize]) -> Result<NdArray> {
    let colors = parameter_to_array(checked_integer_parameter(colors, "colors", &HYPERGEOMETRIC_COUNT_INTERVAL)?)?;
    if colors.ndim() != 1 {
        return Err(Error::value("random", "colors must be a one-dimensional sequence of nonnegative integers"));
    }
    let nsample = checked_integer_parameter(nsample, "nsample", &NOT_NEGATIVE_INTERVAL)?;
    let colors = colors.to_vec::<f64>()?;
    let mut total: f64 = colors.iter().sum();
    if total >= 1e9 {
        return Err(Error::value("random", "sum(colors) must be less than 10**9"));
    }
    reject_unless_all_true(less_equal(&nsample, total)?, "nsample > sum(colors)")?;
    let shape = drawn_array_shape(std::slice::from_ref(&nsample), size)?;
    let (mut left, mut columns) = (nsample, Vec::new());
    for (k, color) in colors.iter().enumerate() {
        total -= color;
        let count = if k + 1 < colors.len() {
            g.draw_from_sampler(Sampler::Hypergeometric, &[(*color).into(), total.into(), left.clone()], &shape, DType::I64)?
        } else {
            parameter_to_array(left.clone())?.broadcast_to(&shape[..])?.astype(DType::I64)?
        };
        left = subtract(left, count.astype(DType::F64)?)?.eval()?.clone().into();
        columns.push(count);
    }
    if columns.is_empty() {
        return NdArray::from_vec(Vec::<i64>::new(), [&shape[..], &[0]].concat());
    }
    stack(&columns, -1)
}

fn draw_dirichlet_vectors(g: &Generator, alpha: Operand, size: &[usize]) -> Result<NdArray> {
    let alpha = parameter_to_array(checked_real_parameter(alpha, "alpha", &NOT_NEGATIVE_INTERVAL)?)?;
    if alpha.ndim() != 1 {
        return Err(Error::value("random", "alpha must be a one-dimensional sequence of nonnegative numbers"));
    }
    let shape = [size, alpha.shape()].concat();
    if alpha.size() == 0 {
        return alpha.broadcast_to(&shape[..])?.copy();
    }
    let alpha = multiply(&alpha, tiny_gamma_shape_factor(&alpha.max(())?)?)?;
    let logarithms = g.draw_log_gamma(&alpha.into(), &shape)?;
    let largest = logarithms.max(AxisOptions::from(-1).keepdims())?;
    let weights = exp(subtract(logarithms, &largest)?)?;
    let shares = divide(&weights, weights.sum(AxisOptions::from(-1).keepdims())?)?;
    // As in NumPy, the vector is zero if all elements of `alpha` are zero.
    where_(equal(largest, f64::NEG_INFINITY)?, 0.0, shares)
}

fn draw_normal_vectors(g: &Generator, mean: Operand, cov: Operand, size: &[usize]) -> Result<NdArray> {
    let (mean, cov) = (
        parameter_to_array(unrestricted_real_parameter(mean, "mean")?)?,
        parameter_to_array(checked_real_parameter(cov, "cov", &NOT_NAN_INTERVAL)?)?,
    );
    let error = |message: &str| Err(Error::value("random", message));
    let &[n] = mean.shape() else { return error("mean must be 1 dimensional") };
    if cov.ndim() != 2 || cov.shape()[0] != cov.shape()[1] {
        return error("cov must be 2 dimensional and square");
    }
    if cov.shape()[0] != n {
        return error("mean and cov must have same length");
    }
    let shape = [size, &[n]].concat();
    if n == 0 {
        return g.draw_normal(&shape);
    }
    // As in NumPy, the tolerance for asymmetries and negative eigenvalues is 1e-8, relative to the largest eigenvalue if that is above 1.
    let (values, vectors) = eigh(&cov, Triangle::Lower)?;
    let largest = abs(&values)?.max(())?.item_as::<f64>()?;
    let tolerance = 1e-8 * largest.max(1.0);
    let asymmetry = abs(subtract(&cov, cov.t()?)?)?.max(())?.item_as::<f64>()?;
    let least = values.min(())?.item_as::<f64>()?;
    if !(asymmetry <= tolerance && least >= -tolerance) {
        return error("covariance is not symmetric positive-semidefinite.");
    }
    let factor = multiply(vectors, sqrt(maximum(values, 0.0)?)?)?.eval()?.clone();
    let count = checked_size("multivariate_normal", &shape)? / n;
    let numbers = g.draw_normal(&[count, n])?;
    add(matmul(&numbers, &factor.t()?)?.reshape(&shape[..])?, mean)
}

/// Declares distributions of vectors, as `distributions!` does for numbers.
macro_rules! vector_distributions {
    ($($(#[$($doc:tt)*])+ $signature:literal $name:ident($($parameter:ident),*) $vectors:ident, $example:literal;)*) => {
        /// # Distributions of vectors
        ///
        /// The last axis of the result holds the components of each vector. `size` is the shape without that axis.
        impl Generator {
            $(
                $(#[$($doc)*])+
                ///
                /// # Errors
                /// Parameters out of range or of a wrong shape, or too little memory.
                ///
                /// # Examples
                /// ```
                /// # use cuprum_backend_cpu as _;
                /// # extern crate cuprum_core as cuprum;
                /// use cuprum::{array, random::default_rng};
                /// # fn main() -> cuprum::Result<()> {
                #[doc = $example]
                /// # Ok(())
                /// # }
                /// ```
                pub fn $name(&self, $($parameter: impl Into<Operand>,)* size: impl IntoShape) -> Result<NdArray> {
                    $(let $parameter: Operand = $parameter.into();)*
                    let size = size.into_shape();
                    let draw = || with_device(device_of_parameters(&[$(&$parameter),*])?, || $vectors(self, $($parameter.clone(),)* &size));
                    draw().map_err(|error| error.with_function_name(stringify!($name)))
                }
            )*
        }

        $(
            $(#[$($doc)*])+
            ///
            /// The process-wide generator draws the vectors. [`Generator`] has a method of the same name.
            ///
            /// # Errors
            /// Parameters out of range or of a wrong shape, or too little memory.
            ///
            /// # Examples
            /// ```
            /// # use cuprum_backend_cpu as _;
            /// # extern crate cuprum_core as cuprum;
            /// use cuprum::{array, random::default_rng};
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

vector_distributions! {
    /// Returns how often each of several outcomes occurs in `n` trials, in int64 (`numpy.random.multinomial`).
    ///
    /// The last axis of `pvals` holds the probabilities of the outcomes. The probability of the last outcome is 1 minus the sum of the
    /// others. The counts are drawn one after another from binomial distributions.
    "random.multinomial(n, pvals, size=None, seed=None)" multinomial(n, pvals) draw_multinomial_vectors,
    "let x = default_rng(7).multinomial(20, array![0.2, 0.3, 0.5], 1000)?;\nassert_eq!(x.shape(), [1000, 3]);\nassert!(x.sum(1)?.to_vec::<i64>()?.iter().all(|n| *n == 20));";

    /// Returns the numbers of items of each color among `nsample` items drawn without replacement, in int64
    /// (`numpy.random.Generator.multivariate_hypergeometric`).
    ///
    /// `colors` holds the number of items of each color. The counts are drawn one after another from hypergeometric distributions.
    "random.multivariate_hypergeometric(colors, nsample, size=None, seed=None)" multivariate_hypergeometric(colors, nsample) draw_hypergeometric_vectors,
    "let x = default_rng(7).multivariate_hypergeometric(array![16, 8, 4], 6, 1000)?;\nassert_eq!(x.shape(), [1000, 3]);\nassert!(x.sum(1)?.to_vec::<i64>()?.iter().all(|n| *n == 6));";

    /// Returns vectors of the Dirichlet distribution: numbers that are not negative and whose sum is 1 (`numpy.random.dirichlet`).
    ///
    /// A vector consists of gamma numbers of the shapes `alpha`, divided by their sum. It is computed from the logarithms of these numbers.
    "random.dirichlet(alpha, size=None, seed=None)" dirichlet(alpha) draw_dirichlet_vectors,
    "let x = default_rng(7).dirichlet(array![1.0, 2.0, 3.0], 1000)?;\nassert_eq!(x.shape(), [1000, 3]);\nassert!(x.sum(1)?.to_vec::<f64>()?.iter().all(|sum| (sum - 1.0).abs() < 1e-12));";

    /// Returns vectors of the multivariate normal distribution (`numpy.random.multivariate_normal`).
    ///
    /// `cov` is the covariance, a symmetric matrix without negative eigenvalues. Vectors of standard normal numbers are multiplied by a
    /// square root of `cov`, which is computed from its eigenvalues and eigenvectors. An asymmetry or a negative eigenvalue whose magnitude
    /// exceeds a tolerance is an error; NumPy warns. The tolerance is 1e-8, relative to the largest eigenvalue if that is above 1.
    "random.multivariate_normal(mean, cov, size=None, seed=None)" multivariate_normal(mean, cov) draw_normal_vectors,
    "let x = default_rng(7).multivariate_normal(array![1.0, 2.0], array![[2.0, 1.0], [1.0, 2.0]], 100_000)?;\nassert_eq!(x.shape(), [100_000, 2]);\nassert!((x.mean(())?.item_as::<f64>()? - 1.5).abs() < 0.02);";
}
