//! Covariance and correlation matrices: `cov` and `corrcoef`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, add, concat, divide, equal, expand_dims, less, matmul, multiply, numpy, subtract};

use crate::operand_and_slice_helpers::{new_filled_array, slice_axis, with_at_least_ndim};
use crate::statistics::average::average_and_weights;

/// Options of [`cov`].
#[derive(Clone, Debug)]
pub struct CovarianceOptions {
    /// Whether rows are variables and columns observations; true by default.
    pub rowvar: bool,
    /// The number subtracted from the number of observations to get the divisor; 1 by default.
    pub ddof: i64,
    /// The number of times that each observation counts.
    pub fweights: Option<NdArray>,
    /// The weight of each observation.
    pub aweights: Option<NdArray>,
    /// Float or complex dtype of the computation; at least float64 by default.
    pub dtype: Option<DType>,
}

impl Default for CovarianceOptions {
    fn default() -> CovarianceOptions {
        CovarianceOptions { rowvar: true, ddof: 1, fweights: None, aweights: None, dtype: None }
    }
}

impl FromArgs for CovarianceOptions {
    /// Reads the arguments `rowvar`, `bias`, `ddof`, `fweights`, `aweights` and `dtype`.
    fn from_args(args: &Args, _name: &str) -> Result<CovarianceOptions> {
        // As in NumPy, a list of weights must hold real numbers. An array of weights is converted to float64.
        let weights = |name: &str| match args.get(name) {
            Some(list) if list.items().is_some() => list.array_as(args.op(), Some(DType::F64)).map(Some),
            value => value.map(|value| value.array(args.op())).transpose(),
        };
        let bias = args.bool_or("bias", false)?;
        let ddof = args.scalar_or("ddof", i64::from(!bias))?;
        let ddof = ddof.as_int().and_then(|n| i64::try_from(n).ok()).ok_or_else(|| Error::value(args.op(), "ddof must be integer"))?;
        Ok(CovarianceOptions {
            rowvar: args.bool_or("rowvar", true)?,
            ddof,
            fweights: weights("fweights")?,
            aweights: weights("aweights")?,
            dtype: args.dtype("dtype")?,
        })
    }
}

/// Converts an array of at most two dimensions to a matrix of `dtype`. A 1-D array becomes one row.
fn to_observation_matrix(op: &'static str, m: &NdArray, dtype: DType) -> Result<NdArray> {
    match m.ndim() > 2 {
        true => Err(Error::shape(op, "m has more than 2 dimensions", &[m.shape()])),
        false => with_at_least_ndim(&m.astype(dtype)?, 2),
    }
}

/// Returns the weights of `observations` observations in float64, after a check of their number and sign. `which` names the weights in
/// errors.
fn check_observation_weights(which: &str, weights: &NdArray, observations: usize) -> Result<NdArray> {
    let name = "cov";
    if weights.ndim() > 1 {
        return Err(Error::shape(name, format!("cannot handle multidimensional {which}"), &[weights.shape()]));
    }
    if weights.shape() != [observations] {
        return Err(Error::shape(name, format!("incompatible numbers of samples and {which}"), &[weights.shape(), &[observations]]));
    }
    let weights = weights.astype(DType::F64)?;
    if less(&weights, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(name, format!("{which} cannot be negative")));
    }
    Ok(weights)
}

/// Returns the covariance matrix of the rows of `m`, and of the rows of `y`, which are further variables (`numpy.cov`).
///
/// The result is float64 or complex128, unless a dtype is given; 0-d for one variable.
///
/// Passes over memory: one for the means, one that subtracts them, and one contraction.
///
/// # Errors
/// Arrays of more than two dimensions, different numbers of observations in `m` and `y`, a dtype that is neither float nor complex, or
/// weights that are negative or not one for each observation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{CovarianceOptions, NdArray, cov};
/// # fn main() -> cuprum::Result<()> {
/// let m = NdArray::from_vec([0.0, 1.0, 2.0, 2.0, 1.0, 0.0], [2, 3])?;
/// assert_eq!(cov(&m, None, &CovarianceOptions::default())?.to_vec::<f64>()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None)")]
pub fn cov(m: &NdArray, y: Option<&NdArray>, options: &CovarianceOptions) -> Result<NdArray> {
    let name = "cov";
    let natural = || DType::promote_all([m.dtype(), y.map_or(DType::Bool, NdArray::dtype), DType::F64]).unwrap_or(DType::F64);
    let dtype = options.dtype.unwrap_or_else(natural);
    let mut x = to_observation_matrix(name, m, dtype)?;
    // As in NumPy, `rowvar=False` does not transpose a 1-D `m` or a `y` with a single row: each is one variable.
    if !options.rowvar && m.ndim() != 1 {
        x = x.t()?;
    }
    if x.shape()[0] == 0 {
        return new_filled_array(m, &[0, 0], 0, DType::F64);
    }
    if !dtype.is_inexact() {
        return Err(Error::dtype(name, "the dtype of the computation must be a float or complex dtype", &[dtype]));
    }
    if let Some(y) = y {
        let y = to_observation_matrix(name, y, dtype)?;
        let y = if !options.rowvar && y.shape()[0] != 1 { y.t()? } else { y };
        x = concat(&[x, y], 0)?;
    }
    let observations = x.shape()[1];
    let frequencies = options.fweights.as_ref().map(|w| check_observation_weights("fweights", w, observations)).transpose()?;
    if let Some(w) = &frequencies
        && !equal(w, w.rint()?)?.all(())?.item()?.as_bool()
    {
        return Err(Error::value(name, "fweights must be integer"));
    }
    let importances = options.aweights.as_ref().map(|w| check_observation_weights("aweights", w, observations)).transpose()?;
    let weights = match (&frequencies, &importances) {
        (Some(f), Some(a)) => Some(multiply(f, a)?),
        (f, a) => f.as_ref().or(a.as_ref()).cloned(),
    };
    let (mean, sum) = average_and_weights(&x, weights.as_ref(), 1)?;
    let sum = slice_axis(&sum, 0, 0, 1, 1)?.squeeze(None)?;
    let ddof = options.ddof as f64;
    let divisor = match &weights {
        None => observations as f64 - ddof,
        Some(_) if options.ddof == 0 => sum.item()?.as_f64(),
        Some(w) => match &importances {
            None => sum.item()?.as_f64() - ddof,
            Some(a) => sum.item()?.as_f64() - ddof * multiply(w, a)?.sum(())?.item()?.as_f64() / sum.item()?.as_f64(),
        },
    };
    let divisor = if divisor > 0.0 { divisor } else { 0.0 };
    let centered = subtract(&x, expand_dims(&mean, [1])?)?.eval()?.clone();
    let weighted = match &weights {
        None => centered.clone(),
        Some(w) => multiply(&centered, w)?.astype(dtype)?,
    };
    let products = matmul(&centered, &weighted.t()?.conj()?)?;
    multiply(products, 1.0 / divisor)?.squeeze(None)
}

/// Returns the matrix of correlation coefficients of the rows of `x`, and of the rows of `y`, which are further variables
/// (`numpy.corrcoef`).
///
/// Rows are variables and columns are observations if `rowvar`, else the reverse.
///
/// Passes over memory: those of [`cov`]; the result is small.
///
/// # Errors
/// The errors of [`cov`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, corrcoef, s};
/// # fn main() -> cuprum::Result<()> {
/// let r = corrcoef(&array![[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]], None, true, None)?;
/// assert!((r.index(s![0, 1])?.item_as::<f64>()? + 1.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[numpy("corrcoef(x, y=None, rowvar=True, *, dtype=None)", call = corrcoef_from_args)]
pub fn corrcoef(x: &NdArray, y: Option<&NdArray>, rowvar: bool, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
    let options = CovarianceOptions { rowvar, dtype: dtype.into(), ..CovarianceOptions::default() };
    let c = cov(x, y, &options)?;
    if c.ndim() < 2 {
        return divide(&c, &c);
    }
    let deviations = c.diagonal(0, 0, 1)?.real()?.sqrt()?;
    let c = divide(divide(&c, expand_dims(&deviations, [1])?)?, expand_dims(&deviations, [0])?)?;
    match c.dtype().is_complex() {
        false => c.clip(-1, 1),
        true => add(c.real()?.clip(-1, 1)?, multiply(c.imag()?.clip(-1, 1)?, cuprum_core::Complex::new(0.0, 1.0))?)?.astype(c.dtype()),
    }
}

fn corrcoef_from_args(args: &Args) -> Result<Value> {
    let y = args.get("y").map(|y| y.array(args.op())).transpose()?;
    corrcoef(&args.array("x")?, y.as_ref(), args.bool_or("rowvar", true)?, args.dtype("dtype")?).map(Value::Array)
}
