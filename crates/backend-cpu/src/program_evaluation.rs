//! Evaluation of fused programs in tiles: blocks of consecutive elements, short enough that all intermediate values stay in L1.
//!
//! Contiguous inputs are read in place; other inputs are first gathered into scratch blocks. The kernel families `Map`, `Rows` and `Fft`
//! write results to outputs ([`ResultDestination`]). The families `Reduce`, `Scan`, `Select` and `Histogram` read the results of each tile
//! from scratch memory.

mod chained_operations;
mod compiled_program;
mod evaluator;
mod execution_plan;
mod instruction;
mod loop_nest;
mod single_tile_program;

use std::cell::RefCell;

use cuprum_cpu_base::typed_views::ScratchBlocks;

pub(crate) use self::compiled_program::CompiledProgram;
pub(crate) use self::evaluator::Evaluator;
pub(crate) use self::execution_plan::{MAX_TILE_LEN, ResultDestination};
pub(crate) use self::loop_nest::{LoopNest, ROWS_PER_BAND};
pub(crate) use self::single_tile_program::SingleTileProgram;

thread_local! {
    /// Scratch blocks of this thread's last evaluation, which its next evaluation reuses.
    static SPARE_SCRATCH_BLOCKS: RefCell<ScratchBlocks> = RefCell::default();
}
