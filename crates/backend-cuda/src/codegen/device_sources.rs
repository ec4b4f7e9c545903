//! C++ device functions for the kernels of several operation families, in this crate and in `cuprum-backend-cub`. Each source lists its
//! prerequisite includes at the top.

use cuprum_core::Binning;

/// C++ source of relaxed atomic loads and stores, for communication between thread blocks.
pub const RELAXED_ATOMICS_SOURCE: &str = include_str!("../kernels/relaxed.cuh");
/// C++ source of the decoupled look-back for counts: the number of elements in all tiles before a tile. Requires
/// [`RELAXED_ATOMICS_SOURCE`].
pub const COUNT_LOOK_BACK_SOURCE: &str = include_str!("../kernels/count_look_back.cuh");
/// C++ source of the loop with which a thread block visits a range of a row.
pub const BLOCK_RANGE_LOOP_SOURCE: &str = include_str!("../kernels/block_range.cuh");
/// C++ source of warp shuffles for values of any size.
pub const WARP_SHUFFLE_SOURCE: &str = include_str!("../kernels/warp.cuh");
/// C++ source of the decoupled look-back for any fold: the fold of all tiles before a tile. The order of combination, and with it the
/// result, does not depend on timing, even for floats. Requires [`WARP_SHUFFLE_SOURCE`] and [`RELAXED_ATOMICS_SOURCE`].
pub const FOLD_LOOK_BACK_SOURCE: &str = include_str!("../kernels/fold_look_back.cuh");
/// C++ source of the smallest and the largest value of each element type.
pub const TYPE_LIMITS_SOURCE: &str = include_str!("../kernels/type_limits.cuh");
/// C++ source of the function objects (folds) that combine elements in reductions and scans. Requires [`TYPE_LIMITS_SOURCE`].
pub const FOLD_SOURCE: &str = include_str!("../kernels/fold.cuh");
/// C++ source that maps elements to unsigned integers in NumPy's sort order.
pub const SORT_KEY_ENCODING_SOURCE: &str = include_str!("../kernels/sort_keys.cuh");
/// C++ source of the function object that returns the histogram bin of a value.
pub const HISTOGRAM_BINS_SOURCE: &str = include_str!("../kernels/histogram_bins.cuh");

/// Returns the enumerator of the C++ enum `BinRule` (see [`HISTOGRAM_BINS_SOURCE`]) for `binning`.
pub const fn bin_rule_enumerator(binning: Binning) -> &'static str {
    match binning {
        Binning::Number { .. } => "NUMBER",
        Binning::Edges { even: true } => "EVEN",
        Binning::Edges { even: false } => "EDGES",
    }
}

/// Returns the number of look-back states that [`COUNT_LOOK_BACK_SOURCE`] and [`FOLD_LOOK_BACK_SOURCE`] need for a row of `tiles` tiles:
/// one for each tile, and one for each span of 32 tiles.
pub const fn look_back_state_count(tiles: usize) -> usize {
    tiles + tiles.div_ceil(32)
}
