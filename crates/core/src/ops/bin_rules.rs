//! Rules that choose the number of histogram bins, as in NumPy.

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::histogram::{Bins, histogram};
use crate::scalar::Scalar;

/// Maximum number of bins that a rule may choose.
const MAX_RULE_BINS: f64 = 1e8;

/// A rule that chooses the number of bins of equal width from the values (`numpy.histogram_bin_edges`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinRule {
    /// Bin width: the smaller of the widths of [`BinRule::Sturges`] and [`BinRule::FreedmanDiaconis`]. If the width of
    /// [`BinRule::FreedmanDiaconis`] is less than half the width of [`BinRule::Sqrt`], half the width of [`BinRule::Sqrt`] replaces it.
    Auto,
    /// Bin width: twice the interquartile range divided by the cube root of the number of values (Freedman and Diaconis, 1981).
    FreedmanDiaconis,
    /// Number of bins: that of [`BinRule::Sturges`], increased for skewed values (Doane, 1976).
    Doane,
    /// Bin width: the standard deviation times `(24 * sqrt(pi) / n)^(1/3)` for n values (Scott, 1979).
    Scott,
    /// Number of bins with the least squared error, which is estimated by cross-validation (Stone, 1984).
    Stone,
    /// Number of bins: twice the cube root of the number of values (Rice University).
    Rice,
    /// Number of bins: the binary logarithm of the number of values, plus 1 (Sturges, 1926).
    Sturges,
    /// Number of bins: the square root of the number of values.
    Sqrt,
}

impl BinRule {
    /// Returns the rule that NumPy calls `name`.
    ///
    /// # Errors
    /// A name that is not the name of a rule.
    pub(crate) fn from_name(op: &'static str, name: &str) -> Result<BinRule> {
        Ok(match name {
            "auto" => BinRule::Auto,
            "fd" => BinRule::FreedmanDiaconis,
            "doane" => BinRule::Doane,
            "scott" => BinRule::Scott,
            "stone" => BinRule::Stone,
            "rice" => BinRule::Rice,
            "sturges" => BinRule::Sturges,
            "sqrt" => BinRule::Sqrt,
            other => return Err(Error::value(op, format!("'{other}' is not a valid estimator for `bins`"))),
        })
    }

    /// Returns the number of bins for the values of `a` that are within `range`. Waits for the device.
    ///
    /// # Errors
    /// More bins than 1e8, and errors of evaluation.
    pub(crate) fn bin_count(self, op: &'static str, a: &NdArray, range: Option<(f64, f64)>) -> Result<usize> {
        let integers = !a.dtype().is_inexact();
        let mut values = a.ravel()?;
        let widened = |(low, high): (f64, f64)| if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let range = range.map(widened);
        if let Some((low, high)) = range {
            let inside = values.greater_equal(low)?.multiply(&values.less_equal(high)?)?;
            values = values.extract(&inside)?;
        }
        if values.size() == 0 {
            return Ok(1);
        }
        let values = values.astype(DType::F64)?;
        let number = |a: NdArray| a.item().map(Scalar::as_f64);
        let (least, greatest) = (number(values.min(())?)?, number(values.max(())?)?);
        let (low, high) = range.unwrap_or_else(|| widened((least, greatest)));
        let spread = greatest - least;
        let mut width = self.bin_width(&values, spread, (low, high))?;
        if integers && width < 1.0 && width != 0.0 {
            width = 1.0;
        }
        let count = if width > 0.0 { ((high - low) / width).ceil() } else { 1.0 };
        if count.is_nan() || count > MAX_RULE_BINS {
            return Err(Error::value(op, format!("the rule chooses {count:e} bins, more than {MAX_RULE_BINS:e}; give their number")));
        }
        Ok(count.max(1.0) as usize)
    }

    /// Returns the width of the bins, or 0 for one bin. `values` is float64 and not empty, and `spread` is the difference of its largest
    /// and smallest element.
    fn bin_width(self, values: &NdArray, spread: f64, range: (f64, f64)) -> Result<f64> {
        let n = values.size() as f64;
        let number = |a: NdArray| a.item().map(Scalar::as_f64);
        Ok(match self {
            BinRule::Sqrt => spread / n.sqrt(),
            BinRule::Sturges => spread / (n.log2() + 1.0),
            BinRule::Rice => spread / (2.0 * n.powf(1.0 / 3.0)),
            BinRule::Scott => (24.0 * std::f64::consts::PI.sqrt() / n).powf(1.0 / 3.0) * number(values.std(())?)?,
            BinRule::FreedmanDiaconis => 2.0 * interquartile_range(values)? * n.powf(-1.0 / 3.0),
            BinRule::Doane => {
                if n < 3.0 {
                    return Ok(0.0);
                }
                let deviation = number(values.std(())?)?;
                if deviation <= 0.0 {
                    return Ok(0.0);
                }
                let expected = (6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))).sqrt();
                let scaled = values.subtract(values.mean(())?)?.divide(deviation)?;
                let skewness = number(scaled.multiply(&scaled)?.multiply(&scaled)?.mean(())?)?;
                spread / (1.0 + n.log2() + (1.0 + skewness.abs() / expected).log2())
            }
            BinRule::Auto => {
                let (fd, sturges) = (BinRule::FreedmanDiaconis.bin_width(values, spread, range)?, spread / (n.log2() + 1.0));
                // As in NumPy, half the width of `Sqrt` replaces a smaller width of `FreedmanDiaconis`.
                fd.max(spread / n.sqrt() / 2.0).min(sturges)
            }
            BinRule::Stone => {
                if n <= 1.0 || spread == 0.0 {
                    return Ok(0.0);
                }
                let loss = |bins: usize| -> Result<f64> {
                    let (counts, _) = histogram(values, Bins::Range(bins, range.0, range.1), None, false)?;
                    let shares = counts.astype(DType::F64)?.divide(n)?;
                    let squares = number(shares.multiply(&shares)?.sum(())?)?;
                    Ok((2.0 - (n + 1.0) * squares) / (spread / bins as f64))
                };
                let most = (n.sqrt() as usize).max(100);
                let mut best = (1, f64::INFINITY);
                for bins in 1..=most {
                    let loss = loss(bins)?;
                    if loss < best.1 {
                        best = (bins, loss);
                    }
                }
                spread / best.0 as f64
            }
        })
    }
}

/// Returns the difference of the 75th and the 25th percentile, interpolated linearly.
fn interquartile_range(values: &NdArray) -> Result<f64> {
    let sorted = values.sort(())?;
    let last = sorted.size() - 1;
    let quantile = |q: f64| -> Result<f64> {
        let position = q * last as f64;
        let below = position.floor() as usize;
        let at = |n: usize| sorted.index(n.min(last))?.item().map(Scalar::as_f64);
        let (low, high, share) = (at(below)?, at(below + 1)?, position - below as f64);
        Ok(low + (high - low) * share)
    };
    Ok(quantile(0.75)? - quantile(0.25)?)
}
