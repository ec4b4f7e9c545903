//! Device functions that several families and accelerators use. Each source lists its prerequisite includes at the top.

use cuprum_core::Binning;

/// Relaxed loads and stores for communication between blocks.
pub const RELAXED: &str = include_str!("../kernels/relaxed.cuh");
/// Decoupled look-back for counts: the number of elements in all tiles before a tile. Requires [`RELAXED`].
pub const LOOK_BACK: &str = include_str!("../kernels/count_look_back.cuh");
/// Loops over a block's range of a row.
pub const SHARE: &str = include_str!("../kernels/block_range.cuh");
/// Warp shuffles of values of any size.
pub const WARP: &str = include_str!("../kernels/warp.cuh");
/// Decoupled look-back for any fold, with a result that does not depend on timing. Requires [`WARP`] and [`RELAXED`].
pub const FOLD_BACK: &str = include_str!("../kernels/fold_look_back.cuh");
/// The smallest and the largest value of a type.
pub const EXTREMES: &str = include_str!("../kernels/extremes.cuh");
/// Folds for reductions of rows and segments, and for scans. Requires [`EXTREMES`].
pub const FOLD: &str = include_str!("../kernels/fold.cuh");
/// Elements as unsigned keys in NumPy's sort order.
pub const ORDER: &str = include_str!("../kernels/sort_keys.cuh");
/// The histogram bin of a value.
pub const BINS: &str = include_str!("../kernels/histogram_bins.cuh");

/// Returns the enumerator of `Rule` in [`BINS`].
pub const fn binning_rule(binning: Binning) -> &'static str {
    match binning {
        Binning::Number { .. } => "NUMBER",
        Binning::Edges { even: true } => "EVEN",
        Binning::Edges { even: false } => "EDGES",
    }
}

/// Returns the number of tile states for a row of `tiles` tiles, as in [`FOLD_BACK`] and [`LOOK_BACK`].
pub const fn states_of_row(tiles: usize) -> usize {
    tiles + tiles.div_ceil(32)
}
