//! Functions that the CPU suite and the GPU suite measure with arrays of different sizes.
//!
//! Workloads that assign write to their first input in place. They return another input, because a second handle of the first input would
//! make the next call copy that array.

use cuprum::random::Generator;
use cuprum::ufunc::ADD;
use cuprum::{
    Bounds, ConvolutionMode, CovarianceOptions, DType, NdArray, PadMode, QuantileMethod, Result, convolve, cov, interp, linspace, nanmean,
    pad, percentile, put, roll, s, select, where_, with_reproducible_sums,
};

use super::{f32s, f64s};

/// Returns random integers below `high`.
pub fn integers(seed: u64, high: usize, shape: &[usize]) -> Result<NdArray> {
    Generator::new(seed).integers(0, high as i64, shape, DType::I64)
}

/// Returns uniform numbers, a tenth of which are NaN.
pub fn with_nans(shape: &[usize]) -> Result<Vec<NdArray>> {
    let a = f32s([shape])?.remove(0);
    Ok(vec![where_(a.less(0.1)?, f32::NAN, &a)?.eval()?.clone()])
}

/// Returns a square matrix, and a matrix with the shape of its interior (all elements except those at the edges).
pub fn matrix_and_inner(side: usize) -> Result<Vec<NdArray>> {
    f32s([&[side, side], &[side - 2, side - 2]])
}

/// Assigns to all elements of a matrix except those at its edges.
pub fn assign_inner(x: &mut [NdArray]) -> Result<NdArray> {
    let value = x[1].clone();
    x[0].assign(s![1..-1, 1..-1], &value)?;
    Ok(value)
}

/// Assigns to every other element.
pub fn assign_every_other(x: &mut [NdArray]) -> Result<NdArray> {
    let value = x[1].clone();
    x[0].assign(s![..;2], &value)?;
    Ok(value)
}

/// Returns an array, and a mask of half of its elements.
pub fn array_and_mask(count: usize) -> Result<Vec<NdArray>> {
    let mut arrays = f32s([&[count], &[count]])?;
    arrays[1] = arrays[1].greater(0.5)?;
    Ok(arrays)
}

/// Assigns a number to the elements that a mask selects.
pub fn assign_masked(x: &mut [NdArray]) -> Result<NdArray> {
    let mask = x[1].clone();
    x[0].assign(&mask, 0)?;
    x[0].eval()?;
    Ok(mask)
}

/// Returns an array, a mask that selects half of its elements, and a value for each selected element.
pub fn array_mask_and_values(count: usize) -> Result<Vec<NdArray>> {
    let mut arrays = array_and_mask(count)?;
    arrays.push(arrays[0].extract(&arrays[1])?);
    Ok(arrays)
}

/// Assigns values to the elements that a mask selects.
pub fn assign_masked_values(x: &mut [NdArray]) -> Result<NdArray> {
    let (mask, values) = (x[1].clone(), x[2].clone());
    x[0].assign(&mask, &values)?;
    Ok(mask)
}

/// Returns an array of `extent` elements or rows, and `count` random indices and values or rows to store in it.
pub fn scattered(extent: usize, count: usize, row: &[usize]) -> Result<Vec<NdArray>> {
    let (target, values) = ([&[extent], row].concat(), [&[count], row].concat());
    let mut arrays = f32s([&target, &values])?;
    arrays.insert(1, integers(7, extent, &[count])?);
    Ok(arrays)
}

/// Adds values at indices.
pub fn scatter_add(x: &mut [NdArray]) -> Result<NdArray> {
    let (indices, values) = (x[1].clone(), x[2].clone());
    x[0].update_at(ADD, &indices, &values)?;
    Ok(indices)
}

/// Adds values at indices in any order.
pub fn scatter_add_unordered(x: &mut [NdArray]) -> Result<NdArray> {
    with_reproducible_sums(false, || scatter_add(x))
}

/// Stores values at indices.
pub fn put_values(x: &mut [NdArray]) -> Result<NdArray> {
    let (indices, values) = (x[1].clone(), x[2].clone());
    put(&mut x[0], &indices, &values, Bounds::Raise)?;
    Ok(indices)
}

/// Adds one zero at each end of both axes.
pub fn pad_zeros(x: &[NdArray]) -> Result<NdArray> {
    pad(&x[0], &[(1, 1)], 0)
}

/// Mirrors three elements at each end of both axes.
pub fn pad_reflected(x: &[NdArray]) -> Result<NdArray> {
    pad(&x[0], &[(3, 3)], PadMode::Reflect { odd: false })
}

/// Rolls both axes by one element.
pub fn roll_both(x: &[NdArray]) -> Result<NdArray> {
    roll(&x[0], &[1, 1], [0, 1])
}

/// Returns random numbers, and three percentages.
pub fn numbers_and_percentages(count: usize) -> Result<Vec<NdArray>> {
    Ok(vec![f32s([&[count]])?.remove(0), NdArray::from_slice(&[5.0, 50.0, 95.0])?])
}

/// Computes percentiles of all elements.
pub fn percentiles(x: &[NdArray]) -> Result<NdArray> {
    percentile(&x[0], &x[1], (), QuantileMethod::Linear)
}

/// Computes the mean of all numbers that are not NaN.
pub fn mean_of_numbers(x: &[NdArray]) -> Result<NdArray> {
    nanmean(&x[0], ())
}

/// Convolves a signal with a short window.
pub fn convolve_full(x: &[NdArray]) -> Result<NdArray> {
    convolve(&x[0], &x[1], ConvolutionMode::Full)
}

/// Returns `count` numbers at which to interpolate, and the 1000 points of a function.
pub fn points(count: usize) -> Result<Vec<NdArray>> {
    let mut arrays = f64s([&[count], &[1000]])?;
    arrays.insert(1, linspace(0, 1, 1000)?);
    Ok(arrays)
}

/// Interpolates linearly between points.
pub fn interpolate(x: &[NdArray]) -> Result<NdArray> {
    interp(&x[0], &x[1], &x[2], None, None, None)
}

/// Selects one of three expressions for each element.
pub fn select_of_three(x: &[NdArray]) -> Result<NdArray> {
    let a = &x[0];
    select(&[a.less(0.25)?, a.less(0.5)?], [a, &(a * 2)], a * 3)
}

/// Computes the covariance of rows.
pub fn covariance(x: &[NdArray]) -> Result<NdArray> {
    cov(&x[0], None, &CovarianceOptions::default())
}
