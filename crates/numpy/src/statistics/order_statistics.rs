//! The rows that a reduction processes, and their order statistics. Medians and quantiles use both.

use cuprum_core::layout::normalize_axes;
use cuprum_core::{AxisOptions, Device, Error, NdArray, Result, isnan, where_};

use crate::operand_and_slice_helpers::slice_axis;

/// An array whose reduced axes are merged into one last axis, and the shape of the result of the reduction.
pub(super) struct FlattenedRows {
    pub(super) rows: NdArray,
    pub(super) shape: Vec<usize>,
}

impl FlattenedRows {
    /// Moves the reduced axes of `a` to the end and merges them.
    pub(super) fn from_reduced_axes(op: &'static str, a: &NdArray, over: &AxisOptions) -> Result<FlattenedRows> {
        let axes = match over.axes() {
            None => (0..a.ndim()).collect(),
            Some(axes) => normalize_axes(op, axes, a.ndim())?,
        };
        let kept: Vec<usize> = (0..a.ndim()).filter(|axis| !axes.contains(axis)).collect();
        let mut reduced = axes.to_vec();
        reduced.sort_unstable();
        let order: Vec<isize> = kept.iter().chain(&reduced).map(|&axis| axis as isize).collect();
        let mut shape: Vec<usize> = kept.iter().map(|&axis| a.shape()[axis]).collect();
        let length = reduced.iter().map(|&axis| a.shape()[axis]).product();
        let result = match over.keeps_dims() {
            true => (0..a.ndim()).map(|axis| if axes.contains(&axis) { 1 } else { a.shape()[axis] }).collect(),
            false => shape.clone(),
        };
        shape.push(length);
        Ok(FlattenedRows { rows: a.transpose(&order)?.reshape(shape)?, shape: result })
    }

    /// Returns the number of elements of a row.
    pub(super) fn row_length(&self) -> usize {
        self.rows.shape()[self.rows.ndim() - 1]
    }

    /// Returns for each row whether it has a NaN. Returns `None` if the dtype has no NaN.
    pub(super) fn nan_row_mask(&self) -> Result<Option<NdArray>> {
        match self.rows.dtype().is_inexact() {
            true => isnan(&self.rows)?.any(-1).map(Some),
            false => Ok(None),
        }
    }

    /// Returns column `n` of `rows`.
    pub(super) fn take_column(rows: &NdArray, n: usize) -> Result<NdArray> {
        let last = rows.ndim() - 1;
        slice_axis(rows, last, n as isize, n as isize + 1, 1)?.squeeze(-1)
    }
}

/// Maximum number of partitions in [`order_statistics`] on the CPU. If more are needed, the rows are sorted.
const MAX_PARTITIONS_ON_CPU: usize = 3;
/// Maximum number of partitions in [`order_statistics`] on devices other than the CPU, where a partition takes as long as a sort.
const MAX_PARTITIONS_ON_ACCELERATORS: usize = 1;

/// Returns, for each of the ascending indices in `wanted`, the element at this index of each sorted row.
///
/// The first and last index are a minimum and a maximum. Other indices are found by partitions, each of which gives two neighbouring order
/// statistics. One sort replaces the partitions if their number exceeds [`MAX_PARTITIONS_ON_CPU`], or [`MAX_PARTITIONS_ON_ACCELERATORS`] on
/// devices other than the CPU.
pub(super) fn order_statistics(rows: &NdArray, wanted: &[usize]) -> Result<Vec<NdArray>> {
    let (last_axis, length) = (rows.ndim() - 1, rows.shape()[rows.ndim() - 1]);
    let mut inner: Vec<usize> = wanted.iter().copied().filter(|&n| n != 0 && n + 1 != length).collect();
    inner.dedup();
    let mut pivots = Vec::new();
    for &n in &inner {
        if pivots.last().is_none_or(|&pivot| n > pivot + 1) {
            pivots.push(n);
        }
    }
    let max_partitions = if rows.device() == Device::CPU { MAX_PARTITIONS_ON_CPU } else { MAX_PARTITIONS_ON_ACCELERATORS };
    if pivots.len() > max_partitions {
        let sorted = rows.sort(-1)?;
        return wanted.iter().map(|&n| FlattenedRows::take_column(&sorted, n)).collect();
    }
    let mut parts = Vec::with_capacity(pivots.len());
    partition_at_pivots(rows, 0, &pivots, &mut parts)?;
    let statistic = |&n: &usize| {
        if n == 0 {
            return rows.min(-1);
        }
        if n + 1 == length {
            return rows.max(-1);
        }
        match parts.iter().rev().find(|part| part.pivot <= n) {
            Some(part) if part.pivot == n => FlattenedRows::take_column(&part.elements, n - part.first),
            Some(part) => slice_axis(&part.elements, last_axis, (n - part.first) as isize, None, 1)?.min(-1),
            None => Err(Error::value("partition", "an order statistic was not selected")),
        }
    };
    wanted.iter().map(statistic).collect()
}

/// The result of partitioning a range of each row. `elements` has the elements whose index in the sorted row is `first` or higher. The
/// element with index `pivot` in the sorted row is at its final position; the elements before it are not larger.
struct RowPartition {
    pivot: usize,
    first: usize,
    elements: NdArray,
}

/// Partitions rows at each of the ascending `pivots`, and appends one [`RowPartition`] per pivot to `parts`, in ascending order of the
/// pivots. `rows` has the elements whose index in the sorted row is `first` or higher.
///
/// The rows are partitioned at the middle pivot first. The elements on each side of it are then partitioned separately, so that three
/// partitions read each element only twice.
fn partition_at_pivots(rows: &NdArray, first: usize, pivots: &[usize], parts: &mut Vec<RowPartition>) -> Result<()> {
    let (before, Some((&pivot, after))) = (&pivots[..pivots.len() / 2], pivots[pivots.len() / 2..].split_first()) else { return Ok(()) };
    let (last_axis, at) = (rows.ndim() - 1, (pivot - first) as isize);
    let elements = rows.partition(at, -1)?;
    if !before.is_empty() {
        partition_at_pivots(&slice_axis(&elements, last_axis, 0, at, 1)?, first, before, parts)?;
    }
    parts.push(RowPartition { pivot, first, elements: elements.clone() });
    if !after.is_empty() {
        partition_at_pivots(&slice_axis(&elements, last_axis, at + 1, None, 1)?, pivot + 1, after, parts)?;
    }
    Ok(())
}

/// Replaces the results of rows with NaN by NaN. `has_nan` is `None` if no row can have a NaN.
pub(super) fn replace_results_of_nan_rows(result: NdArray, has_nan: Option<NdArray>) -> Result<NdArray> {
    match has_nan {
        Some(has_nan) => where_(has_nan, f64::NAN, &result),
        None => Ok(result),
    }
}
