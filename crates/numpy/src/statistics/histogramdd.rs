//! Histograms of several dimensions: `histogramdd` and `histogram2d`.

use cuprum_core::function::IntoValue;
use cuprum_core::host_buffer::check_memory_available;
use cuprum_core::layout::{MAX_NDIM, checked_size};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    Bins, DType, Device, Error, NdArray, Result, Side, add, bincount, divide, equal, expand_dims, greater_equal, histogram_bin_edges, less,
    logical_and, multiply, numpy, stack, subtract, where_,
};

use crate::operand_and_slice_helpers::{new_filled_array, slice_axis};

/// Returns the number of points in each bin of a grid, and the edges along each dimension (`numpy.histogramdd`).
///
/// `sample` has one row for each point. In `eval`, it may also be a list with one array of coordinates for each dimension. `bins` has one
/// element for each dimension, as in [`histogram`](cuprum_core::histogram). The counts are float64. With weights, they are sums of weights.
/// With `density`, they are divided by their sum and by the size of the bin.
///
/// Passes over memory: a binary search along each dimension, and one weighted count.
///
/// # Errors
/// A length of `bins` other than the number of dimensions, weights that are not one for each point, and the errors of `histogram`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, histogramdd};
/// # fn main() -> cuprum::Result<()> {
/// let points = array![[0.1, 0.1], [0.2, 0.9], [0.8, 0.9]];
/// let bins = [(2, 0.0, 1.0).into(), (2, 0.0, 1.0).into()];
/// let (counts, edges) = histogramdd(&points, &bins, None, false)?;
/// assert_eq!((counts, edges[1].clone()), (array![[1.0, 1.0], [0.0, 1.0]], array![0.0, 0.5, 1.0]));
/// # Ok(())
/// # }
/// ```
#[numpy("histogramdd(sample, bins=10, range=None, density=None, weights=None)", call = histogramdd_from_args)]
pub fn histogramdd(sample: &NdArray, bins: &[Bins], weights: Option<&NdArray>, density: bool) -> Result<(NdArray, Vec<NdArray>)> {
    let name = "histogramdd";
    let [points, dimensions] = *sample.shape() else { return Err(Error::shape(name, "the sample must be 2-D", &[sample.shape()])) };
    if bins.len() != dimensions {
        return Err(Error::value(name, format!("The dimension of bins must be equal to the dimension of the sample x: {dimensions}")));
    }
    if let Some(weights) = weights
        && weights.shape() != [points]
    {
        return Err(Error::shape(name, "weights must have one element for each point", &[weights.shape(), sample.shape()]));
    }
    // Checks the number of cells before the edges are allocated, so that an excessive number is an error.
    let known_count = |bins: &Bins| match bins {
        Bins::Count(count) | Bins::Range(count, ..) => *count,
        Bins::Edges(edges) => edges.size().saturating_sub(1),
        Bins::Rule(..) => 1,
    };
    let cells = checked_size(name, &bins.iter().map(known_count).collect::<Vec<_>>())?;
    if sample.device() == Device::CPU {
        check_memory_available(name, cells.saturating_mul(DType::F64.itemsize()))?;
    }
    let mut all_edges = Vec::with_capacity(dimensions);
    let (mut shape, mut flat, mut is_inside) = (Vec::with_capacity(dimensions), None::<NdArray>, None::<NdArray>);
    for (n, bins) in bins.iter().enumerate() {
        let x = slice_axis(sample, 1, n as isize, n as isize + 1, 1)?.squeeze(1)?;
        let edges = match bins {
            Bins::Edges(edges) => edges.clone(),
            // As in NumPy, the edges of the bins are float64 if equal bins divide a given range, or if there are no points.
            bins if matches!(bins, Bins::Range(..)) || x.size() == 0 => histogram_bin_edges(&x.astype(DType::F64)?, bins.clone())?,
            bins => histogram_bin_edges(&x, bins.clone())?,
        };
        if edges.ndim() != 1 || edges.size() < 1 {
            return Err(Error::shape(name, format!("`bins[{n}]` must be a scalar or 1d array"), &[edges.shape()]));
        }
        if matches!(bins, Bins::Edges(_)) && edges.size() > 1 {
            let steps = subtract(slice_axis(&edges, 0, 1, None, 1)?, slice_axis(&edges, 0, None, -1, 1)?)?;
            if less(&steps, 0)?.any(())?.item()?.as_bool() {
                return Err(Error::value(name, format!("`bins[{n}]` must be monotonically increasing, when an array")));
            }
        }
        let count = edges.size() - 1;
        let last = slice_axis(&edges, 0, -1, None, 1)?;
        // As in NumPy, the last bin of a histogram includes its upper edge.
        let after = edges.searchsorted(&x, Side::Right)?;
        let bin = subtract(where_(equal(&x, &last)?, count, after)?, 1)?;
        let inside = logical_and(greater_equal(&bin, 0)?, less(&bin, count)?)?;
        flat = Some(match flat {
            None => bin,
            Some(flat) => add(multiply(flat, count)?, bin)?,
        });
        is_inside = Some(match is_inside {
            None => inside,
            Some(all) => logical_and(all, inside)?,
        });
        shape.push(count);
        all_edges.push(edges);
    }
    let (Some(flat), Some(is_inside)) = (flat, is_inside) else { return Err(Error::value(name, "the sample has no dimensions")) };
    let size = checked_size(name, &shape)?;
    let weights = match weights {
        Some(weights) => weights.astype(DType::F64)?,
        None => new_filled_array(sample, &[points], 1, DType::F64)?,
    };
    let counted = where_(&is_inside, weights, 0.0)?;
    let numbers = where_(&is_inside, flat, 0)?;
    let counts = match points > 0 && size > 0 {
        true => bincount(&numbers, Some(&counted), size)?.reshape(&shape[..])?,
        false => new_filled_array(sample, &shape, 0, DType::F64)?,
    };
    if !density {
        return Ok((counts, all_edges));
    }
    let mut result = counts.clone();
    for (n, edges) in all_edges.iter().enumerate() {
        let widths = subtract(slice_axis(edges, 0, 1, None, 1)?, slice_axis(edges, 0, None, -1, 1)?)?;
        let mut along = vec![1isize; dimensions];
        along[n] = -1;
        result = divide(result, widths.reshape(along)?)?;
    }
    Ok((divide(result, counts.sum(())?)?, all_edges))
}

/// Reads the bins of each dimension.
fn read_bins_per_dimension(args: &Args, dimensions: usize) -> Result<Vec<Bins>> {
    let op = args.op();
    let ranges: Vec<Option<(f64, f64)>> = match args.get("range").and_then(Value::items) {
        None => vec![None; dimensions],
        Some(items) => {
            let pair = |value: &Value| match value {
                Value::None => Ok(None),
                value => match &value.array(op)?.astype(DType::F64)?.to_vec::<f64>()?[..] {
                    &[low, high] => Ok(Some((low, high))),
                    _ => Err(Error::value(op, "a range is a pair of numbers")),
                },
            };
            items.iter().map(pair).collect::<Result<_>>()?
        }
    };
    if ranges.len() != dimensions {
        return Err(Error::value(op, "range argument must have one entry per dimension"));
    }
    let counted = |count: isize, range: Option<(f64, f64)>| {
        let count = usize::try_from(count).ok().filter(|n| *n > 0);
        let count = count.ok_or_else(|| Error::value(op, "the number of bins must be positive"))?;
        Ok(range.map_or(Bins::Count(count), |(low, high)| Bins::Range(count, low, high)))
    };
    let each = |value: &Value, range: Option<(f64, f64)>| match value {
        Value::Scalar(_) => counted(value.to_isize(op)?, range),
        value => match value.array(op)? {
            edges if edges.ndim() == 0 => counted(value.to_isize(op)?, range),
            edges => Ok(Bins::Edges(edges)),
        },
    };
    match args.value("bins") {
        Some(value) if value.items().is_some_and(|items| items.len() == dimensions) => {
            value.items().unwrap_or_default().iter().zip(ranges).map(|(value, range)| each(value, range)).collect()
        }
        Some(value @ (Value::Scalar(_) | Value::Array(_))) if !matches!(value, Value::Array(a) if a.ndim() > 0) => {
            ranges.into_iter().map(|range| each(value, range)).collect()
        }
        _ => Err(Error::value(op, format!("The dimension of bins must be equal to the dimension of the sample x: {dimensions}"))),
    }
}

fn histogramdd_from_args(args: &Args) -> Result<Value> {
    let sample = match args.get("sample") {
        // A list of numbers is a sample of one dimension, like a 1-D array.
        Some(value) if value.items().is_some_and(|items| items.iter().any(|item| !matches!(item, Value::Scalar(_)))) => {
            stack(&args.arrays("sample")?, 1).map_err(|error| error.with_function_name(args.op()))?
        }
        _ => match args.array("sample")? {
            sample if sample.ndim() == 1 => expand_dims(&sample, [1])?,
            sample => sample,
        },
    };
    let dimensions = sample.shape().get(1).copied().unwrap_or(0);
    // The array of counts has one axis for each dimension, so more dimensions than the maximum number of axes are an error.
    checked_size(args.op(), &vec![1; dimensions.min(MAX_NDIM + 1)])?;
    let weights = args.get("weights").map(|w| w.array(args.op())).transpose()?;
    let (counts, edges) =
        histogramdd(&sample, &read_bins_per_dimension(args, dimensions)?, weights.as_ref(), args.bool_or("density", false)?)?;
    Ok(Value::tuple([Value::Array(counts), Value::tuple(edges.into_iter().map(Value::Array))]))
}

fn histogram2d_from_args(args: &Args) -> Result<Value> {
    let (x, y) = (args.array("x")?, args.array("y")?);
    // A sequence of `bins` whose length is neither 1 nor 2 holds the bin edges for both dimensions.
    let bins = match args.value("bins") {
        Some(value @ (Value::Tuple(_) | Value::List(_))) if value.items().is_some_and(|items| !matches!(items.len(), 1 | 2)) => {
            vec![Bins::Edges(value.array(args.op())?); 2]
        }
        Some(Value::Array(edges)) if edges.ndim() == 1 && !matches!(edges.size(), 1 | 2) => vec![Bins::Edges(edges.clone()); 2],
        _ => read_bins_per_dimension(args, 2)?,
    };
    let [first, second] = &bins[..] else { return Err(Error::value(args.op(), "two dimensions need two bins")) };
    let weights = args.get("weights").map(|w| w.array(args.op())).transpose()?;
    histogram2d(&x, &y, (first.clone(), second.clone()), weights.as_ref(), args.bool_or("density", false)?).map(IntoValue::into_value)
}

/// Returns the number of points in each bin of a grid, and the edges along both dimensions (`numpy.histogram2d`).
///
/// The counts are float64. With weights, they are sums of weights. With `density`, they are divided by their sum and by the size of the
/// bin. See [`histogramdd`].
///
/// # Errors
/// Coordinates of different lengths or not 1-D, and the errors of [`histogramdd`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, histogram2d};
/// # fn main() -> cuprum::Result<()> {
/// let (x, y) = (array![0.1, 0.2, 0.8], array![0.1, 0.9, 0.9]);
/// let (counts, ..) = histogram2d(&x, &y, ((2, 0.0, 1.0).into(), (2, 0.0, 1.0).into()), None, false)?;
/// assert_eq!(counts, array![[1.0, 1.0], [0.0, 1.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy("histogram2d(x, y, bins=10, range=None, density=None, weights=None)", call = histogram2d_from_args)]
pub fn histogram2d(
    x: &NdArray,
    y: &NdArray,
    bins: (Bins, Bins),
    weights: Option<&NdArray>,
    density: bool,
) -> Result<(NdArray, NdArray, NdArray)> {
    let name = "histogram2d";
    if x.ndim() != 1 || x.shape() != y.shape() {
        return Err(Error::shape(name, "x and y must have the same length.", &[x.shape(), y.shape()]));
    }
    let dtype = x.dtype().promote(y.dtype());
    let sample = stack(&[x.astype(dtype)?, y.astype(dtype)?], 1)?;
    let (counts, edges) = histogramdd(&sample, &[bins.0, bins.1], weights, density)?;
    match <[NdArray; 2]>::try_from(edges) {
        Ok([first, second]) => Ok((counts, first, second)),
        Err(_) => Err(Error::value(name, "two dimensions have two lists of edges")),
    }
}
