//! Where values belong in sorted arrays.

use crate::array::NdArray;
use crate::call;
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::subtract;
use crate::ops::value::{Args, Value};
use crate::s;
use cuprum_macros::numpy;

super::rows! { Search after select:
    SEARCHSORTED "searchsorted" 2;
    DIGITIZE "digitize" 2;
}

/// On which side of equal elements a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Side {
    /// Before them.
    #[default]
    Left,
    /// After them.
    Right,
}

fn searchsorted_by_name(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let sorted = match args.get("sorter") {
        Some(_) => a.take(&args.array("sorter")?, 0)?,
        None => a,
    };
    sorted.searchsorted(&args.array("v")?, side(args)?).map(Value::Array)
}

fn side(args: &Args) -> Result<Side> {
    match args.get("side") {
        None => Ok(Side::Left),
        Some(Value::Str(s)) if s == "left" => Ok(Side::Left),
        Some(Value::Str(s)) if s == "right" => Ok(Side::Right),
        Some(_) => Err(Error::value(args.op(), "side is 'left' or 'right'")),
    }
}

impl NdArray {
    /// Places (int64, in the shape of `values`) at which values would be put into this sorted 1-D array so that it stays sorted
    /// (`numpy.searchsorted`); dtypes are promoted. In an array that is not sorted the places mean nothing.
    ///
    /// Errors: an array that is not 1-D.
    ///
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
    #[numpy("searchsorted(a, v, side='left', sorter=None)", method, call = searchsorted_by_name)]
    pub fn searchsorted(&self, values: &NdArray, side: Side) -> Result<NdArray> {
        let name = SEARCHSORTED.name();
        let device = super::one_device(SEARCHSORTED, self, values)?;
        if self.ndim() != 1 {
            return Err(Error::shape(name, "the sorted array must be 1-D", &[self.shape()]));
        }
        if self.size() == 0 {
            return super::creation::full_on(device, values.shape(), 0.into(), DType::I64);
        }
        let dtype = self.dtype().promote(values.dtype());
        let inputs = [self.astype(dtype)?.contiguous()?.stored()?, values.astype(dtype)?.contiguous()?.stored()?];
        let places = OutputSpec::contiguous(DType::I64, values.shape())?;
        super::run_one(SEARCHSORTED, device, &inputs, places, Work::Search(call::Search { after_equal: side == Side::Right }))
    }

    /// The bin (int64) that each element falls in (`numpy.digitize`): i for `bins[i - 1] <= x < bins[i]`, or
    /// `bins[i - 1] < x <= bins[i]` if `right`; with falling edges `bins[i - 1] > x >= bins[i]`, or `bins[i - 1] >= x > bins[i]`.
    ///
    /// NaN is greater than every number, so that it may be the last of rising edges or the first of falling ones.
    ///
    /// Errors: edges that are not 1-D, or neither rise nor fall. Waits for the device, to look at them.
    #[numpy("digitize(x, bins, right=False)")]
    pub fn digitize(&self, bins: &NdArray, right: bool) -> Result<NdArray> {
        let name = DIGITIZE.name();
        super::one_device(DIGITIZE, self, bins)?;
        if bins.ndim() != 1 {
            return Err(Error::shape(name, "edges must be 1-D", &[bins.shape()]));
        }
        if self.dtype().is_complex() || bins.dtype().is_complex() {
            return Err(Error::dtype(name, "not defined for complex", &[self.dtype(), bins.dtype()]));
        }
        let side = if right { Side::Left } else { Side::Right };
        let order = match rises(bins)? {
            true => Some(Direction::Rising),
            false => direction(&bins.astype(DType::F64)?.to_vec()?),
        };
        match order {
            Some(Direction::Rising) => bins.searchsorted(self, side),
            Some(Direction::Falling) => subtract(bins.size() as i64, bins.flip(None)?.searchsorted(self, side)?),
            None => Err(Error::value(name, "edges must rise or fall")),
        }
    }
}

/// The order of the edges of bins.
#[derive(Debug, PartialEq)]
enum Direction {
    Rising,
    Falling,
}

/// The order of edges, by NumPy's rule (`_monotonicity`), which counts a pair with a NaN as in order. The first pair of different edges
/// decides between rising and falling; a pair with a NaN counts as falling there.
fn direction(edges: &[f64]) -> Option<Direction> {
    let different = edges.windows(2).position(|pair| pair[0] != pair[1]);
    let Some(first) = different else { return Some(Direction::Rising) };
    let is_rising = edges[first] < edges[first + 1];
    let mut later = edges[first + 1..].windows(2);
    match is_rising {
        true => (!later.any(|pair| pair[0] > pair[1])).then_some(Direction::Rising),
        false => (!later.any(|pair| pair[0] < pair[1])).then_some(Direction::Falling),
    }
}

/// Whether no element of a 1-D array is less than the one before.
pub(crate) fn rises(a: &NdArray) -> Result<bool> {
    if a.size() < 2 {
        return Ok(true);
    }
    let rising = a.index(s![..-1])?.less_equal(a.index(s![1..])?)?;
    Ok(rising.all(())?.item()?.as_bool())
}
