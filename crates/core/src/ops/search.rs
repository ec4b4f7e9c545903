//! Binary search in sorted arrays.

use crate::array::NdArray;
use crate::call;
use crate::call::{OutputSpec, SearchResultKind, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::ops::elementwise::subtract;
use crate::ops::python_value::{Args, Value};
use crate::s;
use crate::scalar::Scalar;
use cuprum_macros::{free_functions, numpy};

super::ops! { Search after select:
    SEARCHSORTED "searchsorted" 2;
    DIGITIZE "digitize" 2;
    ISIN "isin" 2;
}

/// The side of equal elements on which a value is inserted (`side=` of `numpy.searchsorted`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Side {
    /// Before equal elements.
    #[default]
    Left,
    /// After equal elements.
    Right,
}

fn searchsorted_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let sorted = match args.get("sorter") {
        Some(_) => {
            let sorter = args.indices("sorter")?;
            if sorter.shape() != a.shape() {
                return Err(Error::shape(args.op(), "sorter.size must equal a.size", &[sorter.shape(), a.shape()]));
            }
            a.take(&sorter, 0).and_then(|a| a.eval().cloned()).map_err(|e| match e {
                Error::Index { op: "take", index, axis, size } => Error::Index { op: args.op(), index, axis, size },
                e => e,
            })?
        }
        None => a,
    };
    sorted.searchsorted(&args.array("v")?, read_side_argument(args)?).map(Value::Array)
}

/// Returns the argument `side` in `args`; [`Side::Left`] if it is missing.
fn read_side_argument(args: &Args) -> Result<Side> {
    match args.get("side") {
        None => Ok(Side::Left),
        Some(Value::Str(s)) if s == "left" => Ok(Side::Left),
        Some(Value::Str(s)) if s == "right" => Ok(Side::Right),
        Some(_) => Err(Error::value(args.op(), "side is 'left' or 'right'")),
    }
}

/// # Searching
///
/// [`digitize`] is a free function, not a method.
#[free_functions]
impl NdArray {
    /// Returns the indices at which values would be inserted to keep this sorted 1-D array sorted (`numpy.searchsorted`).
    ///
    /// The result is int64, in the shape of `values`. Both arrays are converted to their promoted dtype. The result is unspecified if
    /// this array is not sorted.
    ///
    /// # Errors
    /// An array that is not 1-D, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, Side};
    /// # fn main() -> cuprum::Result<()> {
    /// let (a, v) = (NdArray::from_slice(&[1, 2, 2, 5])?, NdArray::from_slice(&[2, 6])?);
    /// assert_eq!(a.searchsorted(&v, Side::Left)?.to_vec::<i64>()?, [1, 4]);
    /// assert_eq!(a.searchsorted(&v, Side::Right)?.to_vec::<i64>()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("searchsorted(a, v, side='left', sorter=None)", method, call = searchsorted_from_args)]
    pub fn searchsorted(&self, values: &NdArray, side: Side) -> Result<NdArray> {
        let result = if side == Side::Right { SearchResultKind::AfterEqual } else { SearchResultKind::BeforeEqual };
        search_sorted_array(SEARCHSORTED, self, values, result)
    }
}

/// Returns for each element of `values` whether the sorted 1-D array `sorted` has an equal element, or whether it has none if `invert`.
/// `isin` sorts its argument and calls this function.
///
/// NaN is equal to no element. Both arrays are converted to their promoted dtype. The result is unspecified if `sorted` is not sorted.
///
/// # Errors
/// An array that is not 1-D, or arrays on different devices.
pub fn is_in_sorted(values: &NdArray, sorted: &NdArray, invert: bool) -> Result<NdArray> {
    search_sorted_array(ISIN, sorted, values, if invert { SearchResultKind::IsMissing } else { SearchResultKind::IsFound })
}

/// Searches the elements of `values` in the sorted 1-D array `sorted`.
fn search_sorted_array(op: Op, sorted: &NdArray, values: &NdArray, result: SearchResultKind) -> Result<NdArray> {
    let device = super::common_device(op, sorted, values)?;
    if sorted.ndim() != 1 {
        return Err(Error::shape(op.name(), "the sorted array must be 1-D", &[sorted.shape()]));
    }
    let (dtype, absent) = match result {
        SearchResultKind::BeforeEqual | SearchResultKind::AfterEqual => (DType::I64, Scalar::from(0)),
        SearchResultKind::IsFound | SearchResultKind::IsMissing => (DType::Bool, Scalar::from(result == SearchResultKind::IsMissing)),
    };
    if sorted.size() == 0 {
        return super::creation::full_on_device(device, values.shape(), absent, dtype);
    }
    let common = sorted.dtype().promote(values.dtype());
    let inputs = [sorted.astype(common)?.contiguous()?.stored()?, values.astype(common)?.contiguous()?.stored()?];
    let output = OutputSpec::contiguous(dtype, values.shape())?;
    super::dispatch_single_output(op, device, &inputs, output, Work::Search(call::Search { result }))
}

/// Returns the int64 index of the bin that each element belongs to (`numpy.digitize`).
///
/// Index i means `bins[i - 1] <= x < bins[i]`, or `bins[i - 1] < x <= bins[i]` if `right`. With decreasing edges it means
/// `bins[i - 1] > x >= bins[i]`, or `bins[i - 1] >= x > bins[i]`. NaN is greater than every number, so it may be the last of
/// increasing edges or the first of decreasing ones. The call waits for the device to read the edges.
///
/// # Errors
/// Edges that are not 1-D or not monotonic, complex values or edges, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, digitize};
/// # fn main() -> cuprum::Result<()> {
/// let bins = array![0.0, 1.0, 2.0];
/// assert_eq!(digitize(&array![-1.0, 0.5, 1.0, 9.0], &bins, false)?, array![0i64, 1, 2, 3]);
/// assert_eq!(digitize(&array![1.0], &bins, true)?, array![1i64]);
/// # Ok(())
/// # }
/// ```
#[numpy("digitize(x, bins, right=False)")]
pub fn digitize(x: &NdArray, bins: &NdArray, right: bool) -> Result<NdArray> {
    let name = DIGITIZE.name();
    super::common_device(DIGITIZE, x, bins)?;
    if bins.ndim() != 1 {
        return Err(Error::shape(name, "edges must be 1-D", &[bins.shape()]));
    }
    if x.dtype().is_complex() || bins.dtype().is_complex() {
        return Err(Error::dtype(name, "not defined for complex", &[x.dtype(), bins.dtype()]));
    }
    let side = if right { Side::Left } else { Side::Right };
    let order = match is_non_decreasing(bins)? {
        true => Some(BinEdgeOrder::Rising),
        false => bin_edge_order(&bins.astype(DType::F64)?.to_vec()?),
    };
    match order {
        Some(BinEdgeOrder::Rising) => bins.searchsorted(x, side),
        Some(BinEdgeOrder::Falling) => subtract(bins.size() as i64, bins.flip(())?.searchsorted(x, side)?),
        None => Err(Error::value(name, "edges must be monotonically increasing or decreasing")),
    }
}

/// The order of bin edges: rising (never decreasing) or falling (never increasing).
#[derive(Debug, PartialEq)]
enum BinEdgeOrder {
    Rising,
    Falling,
}

/// Returns the order of edges by NumPy's rule (`_monotonicity`), or `None` if they are not monotonic.
///
/// A comparison with NaN is false, so a pair with NaN is never out of order. The first pair of different edges decides between rising and
/// falling. If that pair contains NaN, it counts as falling.
fn bin_edge_order(edges: &[f64]) -> Option<BinEdgeOrder> {
    let different = edges.windows(2).position(|pair| pair[0] != pair[1]);
    let Some(first) = different else { return Some(BinEdgeOrder::Rising) };
    let is_rising = edges[first] < edges[first + 1];
    let mut later = edges[first + 1..].windows(2);
    match is_rising {
        true => (!later.any(|pair| pair[0] > pair[1])).then_some(BinEdgeOrder::Rising),
        false => (!later.any(|pair| pair[0] < pair[1])).then_some(BinEdgeOrder::Falling),
    }
}

/// Returns whether a 1-D array never decreases.
pub(crate) fn is_non_decreasing(a: &NdArray) -> Result<bool> {
    if a.size() < 2 {
        return Ok(true);
    }
    let rising = a.index(s![..-1])?.less_equal(a.index(s![1..])?)?;
    Ok(rising.all(())?.item()?.as_bool())
}
