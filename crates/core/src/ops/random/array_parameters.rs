//! Random numbers of distributions whose parameters are arrays.

use super::distribution_parameters::{
    FINITE_INTERVAL, NOT_NEGATIVE_INTERVAL, checked_real_parameter, device_of_parameters, drawn_array_shape, reject_unless_all_true,
    truncate_to_integer, unrestricted_real_parameter,
};
use super::{Generator, INTEGERS, SAMPLES, UNIFORM, integer_dtype_range};
use crate::arguments::IntoShape;
use crate::array::NdArray;
use crate::call::{Distribution, Sampler};
use crate::device::with_device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::ops::creation::empty;
use crate::ops::elementwise::{
    abs, add, bitwise_and, divide, equal, isfinite, less, less_equal, maximum, minimum, multiply, not_equal, right_shift, subtract, where_,
};
use crate::{bf16, f16};

/// Returns a number or an array as an array of `dtype`.
fn operand_to_array(value: &Operand, dtype: DType) -> Result<NdArray> {
    match value {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(number) => NdArray::scalar_as(*number, dtype),
    }
}

/// Returns the largest number of the dtype below each element of `a`, which has a floating dtype and is finite.
fn next_smaller_float(a: &NdArray) -> Result<NdArray> {
    let (digits, smallest): (u32, f64) = match a.dtype() {
        DType::F16 => (f16::MANTISSA_DIGITS, f16::MIN_POSITIVE_SUBNORMAL.into()),
        DType::BF16 => (bf16::MANTISSA_DIGITS, bf16::MIN_POSITIVE_SUBNORMAL.into()),
        DType::F32 => (f32::MANTISSA_DIGITS, f32::from_bits(1).into()),
        _ => (f64::MANTISSA_DIGITS, f64::from_bits(1)),
    };
    // Subtracts slightly more than half a unit in the last place, and rounds (Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor
    // and successor in rounding to nearest", 2009). Small numbers are scaled up, because half a unit in their last place would be subnormal
    // in float64.
    let relative_step = 2f64.powi(-(digits as i32)) * (1.0 + 2f64.powi(1 - digits as i32));
    let a64 = a.astype(DType::F64)?;
    let scale = where_(less(abs(&a64)?, 1e-200)?, 2f64.powi(200), 1.0)?;
    let scaled = multiply(a64, &scale)?;
    let step = maximum(multiply(abs(&scaled)?, relative_step)?, multiply(&scale, 0.75 * smallest)?)?;
    divide(subtract(scaled, step)?, scale)?.astype(a.dtype())
}

impl Generator {
    /// Draws numbers of a distribution. The caller has checked the parameters, which broadcast to `shape`.
    pub(super) fn draw_from_sampler(&self, sampler: Sampler, parameters: &[Operand], shape: &[usize], dtype: DType) -> Result<NdArray> {
        let mut numbers = [0.0; 3];
        let device = device_of_parameters(&parameters.iter().collect::<Vec<_>>())?;
        let mut inputs = Vec::new();
        if parameters.iter().any(|p| matches!(p, Operand::Array(_))) {
            for parameter in parameters {
                let array = match parameter {
                    Operand::Array(a) => a.astype(DType::F64)?.broadcast_to(shape)?.contiguous()?,
                    Operand::Scalar(number) => crate::ops::creation::full_on_device(device, shape, *number, DType::F64)?,
                };
                inputs.push(array.stored()?);
            }
        } else {
            for (number, parameter) in numbers.iter_mut().zip(parameters) {
                if let Operand::Scalar(given) = parameter {
                    *number = given.as_f64();
                }
            }
        }
        self.draw_with_parameter_arrays(SAMPLES, device, &inputs, shape, dtype, Distribution::Sampled { sampler, parameters: numbers })
    }

    /// Draws uniform numbers in `[low, high)`, where `low` and `high` are arrays.
    pub(super) fn draw_uniform_between(&self, low: Operand, high: Operand, size: &[usize], dtype: DType) -> Result<NdArray> {
        Self::check_float_dtype(UNIFORM, dtype)?;
        let ends = [checked_real_parameter(low, "low", &FINITE_INTERVAL)?, checked_real_parameter(high, "high", &FINITE_INTERVAL)?];
        let shape = drawn_array_shape(&ends, size)?;
        let span = subtract(&ends[1], &ends[0])?;
        reject_unless_all_true(isfinite(&span)?, "high - low range exceeds valid bounds")?;
        with_device(device_of_parameters(&[&ends[0], &ends[1]])?, || {
            let numbers = add(multiply(self.draw_unit_uniform(&shape)?, span)?, &ends[0])?.astype(dtype)?;
            let [low, high] = [operand_to_array(&ends[0], dtype)?, operand_to_array(&ends[1], dtype)?];
            reject_unless_all_true(bitwise_and(isfinite(&low)?, isfinite(&high)?)?, "the range is out of bounds for the dtype")?;
            // Rounding can give the number `high`, which the range excludes.
            let below = next_smaller_float(&high)?;
            where_(less(low, high)?, minimum(&numbers, below)?, numbers)
        })
    }

    /// Draws normal numbers of the mean `mean` and the standard deviation `std`, which are arrays.
    pub(super) fn draw_normal_around(&self, mean: Operand, std: Operand, size: &[usize], dtype: DType) -> Result<NdArray> {
        let pair = [unrestricted_real_parameter(mean, "loc")?, checked_real_parameter(std, "scale", &NOT_NEGATIVE_INTERVAL)?];
        let shape = drawn_array_shape(&pair, size)?;
        with_device(device_of_parameters(&[&pair[0], &pair[1]])?, || {
            add(multiply(self.draw_normal(&shape)?, &pair[1])?, &pair[0])?.astype(dtype)
        })
    }

    /// Returns uniform integers from `low` up to, but not including, `high`, or up to `high` with `endpoint`
    /// (`numpy.random.Generator.integers`).
    ///
    /// The bounds are numbers, whose fractions are truncated, or arrays of integers. They must fit int64 and broadcast to `size`. The size
    /// `()` stands for the shape that they broadcast to. [`Generator::integers`] draws the same numbers for the same bounds.
    ///
    /// # Errors
    /// An empty range, a dtype that is neither an integer nor bool or that cannot hold the range, bounds that are not integers, or too
    /// little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, array, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let sides = array![1i64, 6, 20];
    /// let dice = default_rng(7).integers_between(1, &sides, true, (), DType::I64)?.to_vec::<i64>()?;
    /// assert!(dice[0] == 1 && dice[1] <= 6 && dice[2] <= 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn integers_between(
        &self,
        low: impl Into<Operand>,
        high: impl Into<Operand>,
        endpoint: bool,
        size: impl IntoShape,
        dtype: DType,
    ) -> Result<NdArray> {
        let op = INTEGERS.name();
        let (low, high, size) = (low.into(), high.into(), size.into_shape());
        let (least, most) = integer_dtype_range(dtype)?;
        let device = device_of_parameters(&[&low, &high])?;
        if size.contains(&0) {
            return with_device(device, || empty(size, dtype)); // as in NumPy, without checks of the bounds
        }
        let empty_range = if endpoint { "low > high" } else { "low >= high" };
        // Returns the bound `value` minus `reduction`, which is 0 or 1.
        let bound = |value: Operand, name: &str, reduction: i64| match value {
            Operand::Scalar(number) => {
                let number = truncate_to_integer(number, name)?.checked_sub(reduction.into()).and_then(|n| i64::try_from(n).ok());
                let number = number.ok_or_else(|| Error::value(op, format!("{name} is out of bounds for int64")))?;
                NdArray::scalar_as(number, DType::I64)
            }
            Operand::Array(a) if a.dtype().is_int() || a.dtype() == DType::Bool => {
                if a.dtype() == DType::U64 {
                    reject_unless_all_true(less_equal(&a, i64::MAX)?, &format!("{name} is out of bounds for int64"))?;
                }
                let a = a.astype(DType::I64)?;
                if reduction == 0 {
                    return Ok(a);
                }
                reject_unless_all_true(not_equal(&a, i64::MIN)?, empty_range)?; // the difference would wrap
                subtract(a, reduction)
            }
            Operand::Array(_) => Err(Error::value(op, format!("'{name}' must have integers that fit int64"))),
        };
        with_device(device, || {
            let (low, last) = (bound(low, "low", 0)?, bound(high, "high", if endpoint { 0 } else { 1 })?);
            let shape = drawn_array_shape(&[low.clone().into(), last.clone().into()], &size)?;
            // `widest` is an upper bound of the number of integers between any element of `low` and any element of `last`.
            let mut widest = 0;
            if low.size() > 0 && last.size() > 0 {
                let (smallest, largest) = (low.min(())?.item()?.as_int(), last.max(())?.item()?.as_int());
                if smallest.is_none_or(|n| n < least) {
                    return Err(Error::value(op, format!("low is out of bounds for {dtype}")));
                }
                if largest.is_none_or(|n| n > most) {
                    return Err(Error::value(op, format!("high is out of bounds for {dtype}")));
                }
                reject_unless_all_true(less_equal(&low, &last)?, empty_range)?;
                widest = largest.unwrap_or(most) - smallest.unwrap_or(least) + 1;
            }
            let low = low.astype(DType::U64)?;
            let span = add(subtract(last.astype(DType::U64)?, &low)?, 1)?;
            let has_wide_span = widest > 1 << 32;
            let (bits, low_bits) = self.draw_u128_halves(&shape, has_wide_span)?;
            // Returns the upper 64 bits of `x * span`. The factors are split into 32-bit halves, because no operation returns a 128-bit
            // product.
            let halves = |x: &NdArray| Ok::<_, Error>((right_shift(x, 32)?, bitwise_and(x, 0xffff_ffff_u32)?));
            let (c, d) = halves(&span)?;
            let upper_product = |x: &NdArray| {
                let (a, b) = halves(x)?;
                let middle = add(multiply(&a, &d)?, right_shift(multiply(&b, &d)?, 32)?)?;
                let (upper, lower) = halves(&middle)?;
                let other = right_shift(add(multiply(&b, &c)?, lower)?, 32)?;
                add(add(multiply(&a, &c)?, upper)?, other)
            };
            let mut scaled = upper_product(&bits)?;
            if let Some(low_bits) = low_bits {
                // Adds the carry from the product of `span` and the low half of the random number.
                let lower_product = multiply(&bits, &span)?;
                let has_carry = less(add(&lower_product, upper_product(&low_bits)?)?, lower_product)?;
                scaled = add(scaled, bitwise_and(has_carry, less(1u64 << 32, &span)?)?)?;
            }
            // For a range of 2^64 values, `span` wraps to 0. The random bits are then used without scaling.
            add(where_(equal(span, 0)?, bits, scaled)?, low)?.astype(dtype)
        })
        .map_err(|error| error.with_function_name(op))
    }
}
