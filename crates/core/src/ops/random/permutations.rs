//! Random order and choice: `choice`, `permutation`, `permuted`, `shuffle`, `bytes`.

use cuprum_macros::numpy;

use super::eval_arguments::with_seeded_generator;
use super::{Generator, INTEGERS, SHARED_GENERATOR};
use crate::arguments::{Axes, IntegerArgument, IntoShape};
use crate::array::NdArray;
use crate::call::Distribution;
use crate::device::{Device, with_device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_buffer::try_reserve;
use crate::index::Item;
use crate::layout::{checked_size, normalize_axis};
use crate::ops::creation::arange;
use crate::ops::elementwise::{add, divide, log, minimum, multiply, subtract};
use crate::ops::manipulation::concat;
use crate::ops::python_value::{Args, Value};
use crate::ops::reduce::count_nonzero;
use crate::ops::search::Side;
use crate::ops::sort::unique_all;
use crate::scalar::Scalar;

/// Returns the population of a choice: `0..n` if the first argument is an integer n, else the argument as an array.
fn read_population_argument(args: &Args, name: &str) -> Result<NdArray> {
    let value = args.get(name).ok_or_else(|| Error::value(args.op(), format!("argument '{name}' is missing")))?;
    match value {
        Value::Scalar(Scalar::Int(_)) => arange(0, value.int(args.op())?.max(0), 1),
        other => other.array(args.op()),
    }
}

fn choice_from_args(args: &Args) -> Result<Value> {
    let (replace, axis) = (args.bool_or("replace", true)?, args.int_or("axis", 0)?);
    let p = args.get("p").map(|p| p.array(args.op())).transpose()?;
    let size = super::eval_arguments::read_size_argument(args)?;
    with_seeded_generator(args, |generator| match args.get("a") {
        Some(Value::Scalar(Scalar::Int(n))) => {
            let n = i64::try_from(*n).map_err(|_| Error::value(args.op(), "a does not fit int64"))?;
            generator.choice(n, &size, replace, p.as_ref(), axis)
        }
        _ => generator.choice(&args.array("a")?, &size, replace, p.as_ref(), axis),
    })
    .map(Value::Array)
}

fn permuted_from_args(args: &Args) -> Result<Value> {
    let x = args.array("x")?;
    let axis: Axes = args.get("axis").map(|axis| axis.to_isize(args.op())).transpose()?.into();
    with_seeded_generator(args, |generator| generator.permuted(&x, axis)).map(Value::Array)
}

/// The elements of a choice or permutation: an array, or an integer n for the integers `0..n`.
pub trait Population {
    /// Returns n if the elements are the integers `0..n`, so that a choice needs no array of them.
    fn integer_population_size(&self) -> Option<i64> {
        None
    }

    /// Returns the elements as an array.
    ///
    /// # Errors
    /// Too little memory.
    fn into_population_array(self) -> Result<NdArray>;
}

impl Population for NdArray {
    fn into_population_array(self) -> Result<NdArray> {
        Ok(self)
    }
}

impl Population for &NdArray {
    fn into_population_array(self) -> Result<NdArray> {
        Ok(self.clone())
    }
}

impl<T: IntegerArgument> Population for T {
    fn integer_population_size(&self) -> Option<i64> {
        Some(self.saturating_isize().max(0) as i64)
    }

    fn into_population_array(self) -> Result<NdArray> {
        arange(0, self.saturating_isize().max(0) as i64, 1)
    }
}

/// Largest number of elements for which a choice without replacement always sorts a random key of each element.
const MAX_KEY_SORT_POPULATION: usize = 1 << 20;

impl Generator {
    /// Returns random 64-bit numbers.
    fn draw_random_u64(&self, shape: &[usize]) -> Result<NdArray> {
        self.draw_random_array(INTEGERS, shape, DType::U64, Distribution::Integers { low: 0, span: 0 })
    }

    /// Returns the int64 integers `0..count` in random order, by sorting random 64-bit keys. With a probability below `count^2 / 2^65`, two
    /// keys are equal. Integers with equal keys keep their order.
    fn draw_permutation(&self, count: usize) -> Result<NdArray> {
        self.draw_random_u64(&[count])?.argsort(0)
    }

    /// Returns `count` distinct int64 integers below `extent` in random order. Draws integers until enough of them are distinct.
    fn draw_distinct_integers(&self, extent: i64, count: usize) -> Result<NdArray> {
        let mut chosen = self.integers(0, extent, count, DType::I64)?;
        loop {
            chosen = chosen.take(&unique_all(&chosen)?.indices.sort(0)?, 0)?;
            let missing = count.saturating_sub(chosen.size());
            if missing == 0 {
                return Ok(chosen);
            }
            chosen = concat([&chosen, &self.integers(0, extent, missing, DType::I64)?], 0)?;
        }
    }

    /// Returns random elements of `a`, or random slices along `axis` (`numpy.random.Generator.choice`). An integer n, or a 0-d array of an
    /// integer, stands for `0..n`.
    ///
    /// With `replace`, an element can be chosen more than once. `p` holds the probability of each element. By default, all probabilities
    /// are equal. The size `()` chooses one element. Without replacement, the chosen elements are in random order. A choice without
    /// replacement sorts one random key per element. To choose at most half of more than 2^20 elements, it instead draws indices and drops
    /// repeated ones. With `p`, the keys are exponential numbers divided by the probabilities (Efraimidis and Spirakis, "Weighted random
    /// sampling with a reservoir", 2006).
    ///
    /// # Errors
    /// An empty `a` unless nothing is chosen. Without replacement, a `size` of more elements than the axis has. Probabilities that are
    /// negative, have another length than the axis, or whose sum differs from 1 by more than the square root of the machine epsilon of
    /// their dtype.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{array, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = array![10, 20, 30];
    /// let chosen = default_rng(7).choice(&a, 3, false, None, 0)?;
    /// assert_eq!(chosen.sort(0)?, a);
    /// let p = array![0.0, 0.0, 1.0];
    /// assert_eq!(default_rng(7).choice(&a, 2, true, Some(&p), 0)?, array![30, 30]);
    /// assert_eq!(default_rng(7).choice(5, 5, false, None, 0)?.sort(0)?, array![0i64, 1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn choice(&self, a: impl Population, size: impl IntoShape, replace: bool, p: Option<&NdArray>, axis: isize) -> Result<NdArray> {
        const OP: &str = "choice";
        let size = size.into_shape();
        let (mut integers, mut array) = (a.integer_population_size(), None);
        if integers.is_none() {
            let a = a.into_population_array()?;
            if a.ndim() == 0 && (a.dtype().is_int() || a.dtype() == DType::Bool) {
                let n = a.item()?.as_int().unwrap_or(0);
                integers = Some(i64::try_from(n.max(0)).map_err(|_| Error::value(OP, "a does not fit int64"))?);
            }
            array = Some(a);
        }
        let device = array.as_ref().map_or_else(Device::current, |a| Ok(a.device()))?;
        // If the elements are the integers `0..n`, the chosen indices are the result, and no array of elements is needed.
        let array = array.filter(|_| integers.is_none());
        let choose = || {
            let axis = normalize_axis(OP, axis, array.as_ref().map_or(1, NdArray::ndim))?;
            let extent = array.as_ref().map_or(integers.unwrap_or(0) as usize, |a| a.shape()[axis]);
            let count = checked_size(OP, &size)?;
            if extent == 0 && count > 0 {
                return Err(Error::value(OP, "a cannot be empty unless no samples are taken"));
            }
            let p = p.map(|p| check_probabilities(p, extent)).transpose()?;
            if !replace && count > extent {
                return Err(Error::value(OP, "Cannot take a larger sample than population when replace is False"));
            }
            let indices = match (p, replace) {
                _ if count == 0 => arange(0, 0, 1)?,
                (None, true) => self.integers(0, extent as i64, count, DType::I64)?,
                (Some(p), true) => {
                    let sums = p.cumsum(0)?;
                    let total = sums.index(-1)?;
                    let u = self.random(count, DType::F64)?;
                    minimum(divide(sums, total)?.searchsorted(&u, Side::Right)?, extent - 1)?
                }
                (None, false) if extent > MAX_KEY_SORT_POPULATION && count <= extent / 2 => {
                    self.draw_distinct_integers(extent as i64, count)?
                }
                (None, false) => self.draw_permutation(extent)?.index(&[Item::from(0..count as isize)])?,
                (Some(p), false) => {
                    let possible = count_nonzero(&p, ())?.item_as::<i64>()?;
                    if (possible as usize) < count {
                        return Err(Error::value(OP, "Fewer non-zero entries in p than size"));
                    }
                    // The keys are compared by their logarithms. Quotients by very small probabilities would overflow to infinity, as
                    // quotients by 0 do.
                    subtract(log(self.draw_exponential(&[extent])?)?, log(p)?)?.argsort(0)?.index(&[Item::from(0..count as isize)])?
                }
            };
            let indices = indices.reshape(&size[..])?;
            array.as_ref().map_or_else(|| Ok(indices.clone()), |a| a.take(&indices, axis))
        };
        with_device(device, choose).map_err(|error| error.with_function_name(OP))
    }

    /// Returns the slices of `x` along `axis` in random order (`numpy.random.Generator.permutation`).
    ///
    /// The slices themselves are unchanged. [`Generator::permuted`] reorders the elements of each slice independently.
    ///
    /// # Errors
    /// An axis out of bounds, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{arange, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let x = arange(0, 100, 1)?;
    /// let shuffled = default_rng(7).permutation(&x, 0)?;
    /// assert_ne!(shuffled, x);
    /// assert_eq!(shuffled.sort(0)?, x);
    /// # Ok(())
    /// # }
    /// ```
    pub fn permutation(&self, x: impl Population, axis: isize) -> Result<NdArray> {
        const OP: &str = "permutation";
        let x = x.into_population_array()?;
        let permute = || {
            let axis = normalize_axis(OP, axis, x.ndim())?;
            x.take(&self.draw_permutation(x.shape()[axis])?, axis)
        };
        with_device(x.device(), permute).map_err(|error| error.with_function_name(OP))
    }

    /// Brings the slices of `x` along `axis` into random order, as [`Generator::permutation`] does (`numpy.random.Generator.shuffle`).
    ///
    /// # Errors
    /// An axis out of bounds, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{arange, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut x = arange(0, 100, 1)?;
    /// default_rng(7).shuffle(&mut x, 0)?;
    /// assert_eq!(x, default_rng(7).permutation(&arange(0, 100, 1)?, 0)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn shuffle(&self, x: &mut NdArray, axis: isize) -> Result<()> {
        *x = self.permutation(&*x, axis).map_err(|error| error.with_function_name("shuffle"))?;
        Ok(())
    }

    /// Returns `x` with the elements of each slice along `axis` in random order, or all elements in random order without an axis
    /// (`numpy.random.Generator.permuted`).
    ///
    /// # Errors
    /// A 0-d array, an axis out of bounds, several axes, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{arange, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let x = arange(0, 24, 1)?.reshape((2, 12))?;
    /// assert_eq!(default_rng(7).permuted(&x, 1)?.sort(1)?, x);
    /// # Ok(())
    /// # }
    /// ```
    pub fn permuted(&self, x: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
        const OP: &str = "permuted";
        let axis = axis.into();
        let permute = || match axis.at_most_one_axis(OP)? {
            None if x.ndim() == 0 => Err(Error::shape(OP, "a 0-d array cannot be permuted", &[x.shape()])),
            None => x.ravel()?.take(&self.draw_permutation(x.size())?, 0)?.reshape(x.shape()),
            Some(axis) => {
                let axis = normalize_axis(OP, axis, x.ndim())?;
                let rows = x.moveaxis(axis, -1)?.contiguous()?;
                let (shape, extent) = (rows.shape().to_vec(), x.shape()[axis]);
                if x.size() == 0 {
                    return Ok(x.clone());
                }
                let count = x.size() / extent;
                let order = self.draw_random_u64(&[count, extent])?.argsort(1)?;
                let starts = multiply(arange(0, count as i64, 1)?, extent as i64)?.reshape((count, 1))?;
                rows.ravel()?.take(&add(order, starts)?.ravel()?, 0)?.reshape(&shape[..])?.moveaxis(-1, axis)
            }
        };
        with_device(x.device(), permute).map_err(|error| error.with_function_name(OP))
    }

    /// Returns random bytes (`numpy.random.Generator.bytes`).
    ///
    /// # Errors
    /// Too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::random::default_rng;
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(default_rng(7).bytes(10)?.len(), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(&self, length: usize) -> Result<Vec<u8>> {
        self.draw_byte_array(length)?.to_vec::<u8>()
    }

    /// Returns an array of random bytes: the 64-bit numbers of the generator, each with its low byte first.
    fn draw_byte_array(&self, length: usize) -> Result<NdArray> {
        let device = Device::current()?;
        let words = self.draw_random_u64(&[length.div_ceil(8)]).map_err(|error| error.with_function_name("bytes"))?;
        let mut bytes = Vec::new();
        try_reserve("bytes", &mut bytes, length)?;
        bytes.extend(words.to_vec::<u64>()?.into_iter().flat_map(u64::to_le_bytes).take(length));
        with_device(Device::CPU, || NdArray::from_vec(bytes, length))?.to_device(device)
    }
}

/// Returns the probabilities of `extent` elements in float64, or an error if they are not valid.
fn check_probabilities(p: &NdArray, extent: usize) -> Result<NdArray> {
    let error = |message: &str| Err(Error::value("choice", message));
    if p.ndim() != 1 {
        return error("p must be 1-dimensional");
    }
    if p.size() != extent {
        return error("a and p must have same size");
    }
    if p.dtype().is_complex() {
        return Err(Error::dtype("choice", "p must be real", &[p.dtype()]));
    }
    let tolerance = match p.dtype() {
        DType::BF16 => 2f64.powi(-7),
        DType::F16 => 2f64.powi(-10),
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
    .sqrt();
    let p = p.astype(DType::F64)?;
    if extent == 0 {
        return Ok(p);
    }
    let (least, sum) = (p.min(())?.item_as::<f64>()?, p.sum(())?.item_as::<f64>()?);
    if least.is_nan() {
        return error("Probabilities contain NaN");
    }
    if least < 0.0 {
        return error("Probabilities are not non-negative");
    }
    if sum.is_nan() || (sum - 1.0).abs() > tolerance {
        return error("Probabilities do not sum to 1.");
    }
    Ok(p)
}

/// Returns random elements of `a`, drawn by the process-wide generator (`numpy.random.choice`). See [`Generator::choice`].
///
/// # Errors
/// The errors of [`Generator::choice`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, random::choice};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(choice(&array![1, 2, 3], 3, false, None, 0)?.sort(0)?, array![1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("random.choice(a, size=None, replace=True, p=None, axis=0, seed=None)", differs = "Philox numbers, the same on every device", call = choice_from_args)]
pub fn choice(a: impl Population, size: impl IntoShape, replace: bool, p: Option<&NdArray>, axis: isize) -> Result<NdArray> {
    SHARED_GENERATOR.choice(a, size, replace, p, axis)
}

/// Returns the slices of `x` along an axis in random order (`numpy.random.permutation`). See [`Generator::permutation`].
///
/// # Errors
/// The errors of [`Generator::permutation`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, random::permutation};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(permutation(&array![3, 1, 2], 0)?.sort(0)?, array![1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("random.permutation(x, axis=0, seed=None)", differs = "Philox numbers, the same on every device", call = |args| {
    let (x, axis) = (read_population_argument(args, "x")?, args.int_or("axis", 0)?);
    with_seeded_generator(args, |generator| generator.permutation(&x, axis)).map(Value::Array)
})]
pub fn permutation(x: impl Population, axis: isize) -> Result<NdArray> {
    SHARED_GENERATOR.permutation(x, axis)
}

/// Brings the slices of `x` along an axis into random order (`numpy.random.shuffle`). See [`Generator::shuffle`].
///
/// # Errors
/// The errors of [`Generator::shuffle`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, random::shuffle};
/// # fn main() -> cuprum::Result<()> {
/// let mut x = array![1, 2, 3];
/// shuffle(&mut x, 0)?;
/// assert_eq!(x.sort(0)?, array![1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("random.shuffle(x, axis=0, seed=None)", differs = "Philox numbers, the same on every device", call = |args| {
    let (x, axis) = (args.array("x")?, args.int_or("axis", 0)?);
    with_seeded_generator(args, |generator| generator.permutation(&x, axis)).map(Value::Array)
})]
pub fn shuffle(x: &mut NdArray, axis: isize) -> Result<()> {
    SHARED_GENERATOR.shuffle(x, axis)
}

/// Returns `x` with the elements of each slice along an axis in random order (`numpy.random.Generator.permuted`). See
/// [`Generator::permuted`].
///
/// # Errors
/// The errors of [`Generator::permuted`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, random::permuted};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(permuted(&array![[1, 2], [3, 4]], 1)?.sort(1)?, array![[1, 2], [3, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("random.permuted(x, axis=None, seed=None)", differs = "Philox numbers, the same on every device", call = permuted_from_args)]
pub fn permuted(x: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
    SHARED_GENERATOR.permuted(x, axis)
}

/// Returns random bytes (`numpy.random.bytes`). In `eval`, the result is an array of uint8.
///
/// # Errors
/// The errors of [`Generator::bytes`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random::bytes;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(bytes(10)?.len(), 10);
/// # Ok(())
/// # }
/// ```
#[numpy("random.bytes(length, seed=None)", differs = "Philox numbers, the same on every device; an array of uint8", call = |args| {
    let length = args.int_or("length", 0)?;
    let length = usize::try_from(length).map_err(|_| Error::value(args.op(), "negative dimensions are not allowed"))?;
    with_seeded_generator(args, |generator| generator.draw_byte_array(length)).map(Value::Array)
})]
pub fn bytes(length: usize) -> Result<Vec<u8>> {
    SHARED_GENERATOR.bytes(length)
}
