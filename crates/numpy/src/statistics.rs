//! Statistics: order statistics, averages, correlations and histograms.

mod average;
mod covariance;
mod histogramdd;
mod median;
mod order_statistics;
mod ptp;
mod quantile;
mod quantile_method;

use cuprum_core::layout::normalize_axes;
use cuprum_core::{AxisOptions, Error, NdArray, Result};

pub use average::*;
pub use covariance::*;
pub use histogramdd::*;
pub use median::*;
pub use ptp::*;
pub use quantile::*;
pub use quantile_method::*;

/// Reshapes the weights that `average` or `quantile` receives, so that they broadcast with `a`. Weights are an error if their shape is
/// neither that of `a` nor that of the reduced axes.
fn reshape_weights(op: &'static str, a: &NdArray, weights: &NdArray, over: &AxisOptions) -> Result<NdArray> {
    let axes = over.axes().map(|axes| normalize_axes(op, axes, a.ndim())).transpose()?;
    if weights.shape() == a.shape() {
        return Ok(weights.clone());
    }
    let Some(axes) = axes else {
        let message = "Axis must be specified when shapes of a and weights differ.";
        return Err(Error::shape(op, message, &[a.shape(), weights.shape()]));
    };
    let wanted: Vec<usize> = axes.iter().map(|&axis| a.shape()[axis]).collect();
    if weights.shape() != wanted {
        let message = "Shape of weights must be consistent with shape of a along specified axis.";
        return Err(Error::shape(op, message, &[a.shape(), weights.shape()]));
    }
    let mut order: Vec<isize> = (0..axes.len() as isize).collect();
    order.sort_by_key(|&n| axes[n as usize]);
    let shape: Vec<usize> = (0..a.ndim()).map(|axis| if axes.contains(&axis) { a.shape()[axis] } else { 1 }).collect();
    weights.transpose(&order)?.reshape(shape)
}
