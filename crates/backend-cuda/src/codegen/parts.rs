//! Device functions that kernels of several families and accelerators build on. Each says in its head what it stands after.

use cuprum_core::Binning;

/// Loads and stores by which blocks speak to one another.
pub const RELAXED: &str = include_str!("../kernels/relaxed.cuh");
/// Counts of the tiles before a tile. After [`RELAXED`].
pub const LOOK_BACK: &str = include_str!("../kernels/count_look_back.cuh");
/// A block's share of a row, element by element.
pub const SHARE: &str = include_str!("../kernels/block_range.cuh");
/// Values of any size between the threads of a warp.
pub const WARP: &str = include_str!("../kernels/warp.cuh");
/// The fold of the tiles of a row before a tile, rounded alike whatever the timing. After [`WARP`] and [`RELAXED`].
pub const FOLD_BACK: &str = include_str!("../kernels/fold_look_back.cuh");
/// The least and the greatest value of a type.
pub const EXTREMES: &str = include_str!("../kernels/extremes.cuh");
/// What reductions of rows and of segments, and scans, combine with. After [`EXTREMES`].
pub const FOLD: &str = include_str!("../kernels/fold.cuh");
/// Elements as unsigned keys in NumPy's order.
pub const ORDER: &str = include_str!("../kernels/sort_keys.cuh");
/// Which bin of a histogram a value falls in.
pub const BINS: &str = include_str!("../kernels/histogram_bins.cuh");

/// The enumerator of `Rule` in [`BINS`].
pub const fn binning_rule(binning: Binning) -> &'static str {
    match binning {
        Binning::Number { .. } => "NUMBER",
        Binning::Edges { even: true } => "EVEN",
        Binning::Edges { even: false } => "EDGES",
    }
}

/// States of a row of `tiles`, in words of a value's size, as in [`FOLD_BACK`] and [`LOOK_BACK`].
pub const fn states_of_row(tiles: usize) -> usize {
    tiles + tiles.div_ceil(32)
}
