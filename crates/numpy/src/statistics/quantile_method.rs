//! Estimates of a quantile between order statistics: `QuantileMethod`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::Args;
use cuprum_core::{Error, NdArray, Result, add, equal, logical_and, multiply, remainder, subtract, where_};

/// The estimate of a quantile between order statistics (`method=` of `numpy.quantile`), by Hyndman and Fan (1996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantileMethod {
    /// Method 1: the inverse of the empirical distribution function.
    InvertedCdf,
    /// Method 2: as `InvertedCdf`, with averages at discontinuities.
    AveragedInvertedCdf,
    /// Method 3: the nearest observation.
    ClosestObservation,
    /// Method 4: linear interpolation of the empirical distribution function.
    InterpolatedInvertedCdf,
    /// Method 5: linear interpolation between the midpoints of the steps of the empirical distribution function.
    Hazen,
    /// Method 6: linear interpolation, with the `k`-th of `n` order statistics at probability `k / (n + 1)`.
    Weibull,
    /// Method 7: linear interpolation between the order statistics.
    #[default]
    Linear,
    /// Method 8: approximately median-unbiased.
    MedianUnbiased,
    /// Method 9: approximately unbiased for normal distributions.
    NormalUnbiased,
    /// The lower of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Lower,
    /// The upper of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Higher,
    /// The mean of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Midpoint,
    /// The nearer of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Nearest,
}

use QuantileMethod::*;

const QUANTILE_METHODS: [(&str, QuantileMethod); 13] = [
    ("inverted_cdf", InvertedCdf),
    ("averaged_inverted_cdf", AveragedInvertedCdf),
    ("closest_observation", ClosestObservation),
    ("interpolated_inverted_cdf", InterpolatedInvertedCdf),
    ("hazen", Hazen),
    ("weibull", Weibull),
    ("linear", Linear),
    ("median_unbiased", MedianUnbiased),
    ("normal_unbiased", NormalUnbiased),
    ("lower", Lower),
    ("higher", Higher),
    ("midpoint", Midpoint),
    ("nearest", Nearest),
];

impl FromArgs for QuantileMethod {
    fn from_args(args: &Args, name: &str) -> Result<QuantileMethod> {
        let text: String = FromArgs::from_args(args, name)?;
        let found = QUANTILE_METHODS.iter().find(|(method, _)| *method == text).map(|(_, method)| *method);
        let names = || QUANTILE_METHODS.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| Error::value(args.op(), format!("'{text}' is not a valid method. Use one of: {}", names())))
    }
}

/// Neighbouring order statistics of a quantile, and the weight of the upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantilePosition {
    pub(super) lower: usize,
    pub(super) upper: usize,
    /// Weight of the element at `upper` in the interpolation. `None` if the quantile is exactly the element at `lower`.
    pub(super) weight: Option<f64>,
}

impl QuantileMethod {
    /// Returns whether each quantile is an element of the array, without interpolation or averaging.
    pub(super) fn is_discrete(self) -> bool {
        matches!(self, InvertedCdf | ClosestObservation | Lower | Higher | Nearest)
    }

    /// Returns the fractional index of quantile `q` in `n` sorted elements. `round` rounds to the dtype of the probabilities.
    fn fractional_index(self, n: f64, q: f64, round: impl Fn(f64) -> f64) -> f64 {
        let by_plotting_position = |alpha: f64, beta: f64| {
            let shift = round(alpha + round(q * (1.0 - alpha - beta)));
            round(round(round(n * q) + shift) - 1.0)
        };
        let linear = round((n - 1.0) * q);
        // As NumPy's `_discrete_interpolation_to_boundaries`: rounds a fractional index to an integer. `to_lower` receives the fraction and
        // the index, and returns whether the index is rounded down. Otherwise it is rounded up.
        let discrete = |index: f64, to_lower: &dyn Fn(f64, f64) -> bool| {
            let previous = index.floor();
            if to_lower(index - previous, index) { previous } else { previous + 1.0 }.max(0.0)
        };
        match self {
            InvertedCdf => discrete(round(round(n * q) - 1.0), &|fraction, _| fraction == 0.0),
            ClosestObservation => {
                discrete(round(round(round(n * q) - 1.0) - 0.5), &|fraction, index| fraction == 0.0 && index.floor().rem_euclid(2.0) == 1.0)
            }
            AveragedInvertedCdf => round(round(n * q) - 1.0),
            InterpolatedInvertedCdf => by_plotting_position(0.0, 1.0),
            Hazen => by_plotting_position(0.5, 0.5),
            Weibull => by_plotting_position(0.0, 0.0),
            Linear => linear,
            MedianUnbiased => by_plotting_position(1.0 / 3.0, 1.0 / 3.0),
            NormalUnbiased => by_plotting_position(3.0 / 8.0, 3.0 / 8.0),
            Lower => linear.floor(),
            Higher => linear.ceil(),
            Midpoint => round(0.5 * round(linear.floor() + linear.ceil())),
            Nearest => linear.round_ties_even(),
        }
    }

    /// Returns the position of quantile `q` in `n` sorted elements. `is_integer` states that the argument `q` of the call has an integer
    /// dtype. `round` rounds to the dtype of the probabilities.
    pub(super) fn quantile_position(self, n: usize, q: f64, is_integer: bool, round: impl Fn(f64) -> f64) -> QuantilePosition {
        let last = n - 1;
        let index = self.fractional_index(n as f64, q, &round);
        if self.is_discrete() || (self == Linear && is_integer) {
            let at = (index.max(0.0) as usize).min(last);
            return QuantilePosition { lower: at, upper: at, weight: None };
        }
        let floor = index.floor();
        // As in NumPy, an index beyond the ends selects the first or the last element. NumPy denotes the last element by the index -1, so
        // its interpolation weight is the distance of the index from -1.
        let (lower, upper, base) = match index {
            i if i >= last as f64 => (last, last, -1.0),
            i if i < 0.0 => (0, 0, 0.0),
            _ => (floor as usize, floor as usize + 1, floor),
        };
        let fraction = round(index - base);
        let weight = match self {
            AveragedInvertedCdf => {
                if fraction == 0.0 {
                    0.5
                } else {
                    1.0
                }
            }
            Midpoint => {
                if index.rem_euclid(1.0) == 0.0 {
                    0.0
                } else {
                    0.5
                }
            }
            _ => fraction,
        };
        QuantilePosition { lower, upper, weight: Some(weight) }
    }
}

impl QuantileMethod {
    /// Returns the fractional index of quantile `q` in each sorted row, as a deferred array. `n` holds the number of elements of each row.
    pub(super) fn deferred_fractional_index(self, n: &NdArray, q: f64) -> Result<NdArray> {
        let by_plotting_position = |alpha: f64, beta: f64| subtract(add(multiply(n, q)?, alpha + q * (1.0 - alpha - beta))?, 1.0);
        let linear = multiply(subtract(n, 1)?, q)?;
        let below = subtract(multiply(n, q)?, 1.0)?;
        match self {
            InvertedCdf => {
                let floor = below.floor()?;
                where_(equal(&floor, &below)?, &floor, add(&floor, 1)?)
            }
            ClosestObservation => {
                let index = subtract(&below, 0.5)?;
                let floor = index.floor()?;
                let is_odd = equal(remainder(&floor, 2)?, 1)?;
                where_(logical_and(equal(&floor, &index)?, is_odd)?, &floor, add(&floor, 1)?)
            }
            AveragedInvertedCdf => Ok(below),
            InterpolatedInvertedCdf => by_plotting_position(0.0, 1.0),
            Hazen => by_plotting_position(0.5, 0.5),
            Weibull => by_plotting_position(0.0, 0.0),
            Linear => Ok(linear),
            MedianUnbiased => by_plotting_position(1.0 / 3.0, 1.0 / 3.0),
            NormalUnbiased => by_plotting_position(3.0 / 8.0, 3.0 / 8.0),
            Lower => linear.floor(),
            Higher => linear.ceil(),
            Midpoint => multiply(0.5, add(linear.floor()?, linear.ceil()?)?),
            Nearest => linear.rint(),
        }
    }
}
