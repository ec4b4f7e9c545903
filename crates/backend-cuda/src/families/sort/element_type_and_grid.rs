//! The C++ element type of a dtype and the grid of blocks, for the kernels of the family `Sort`.

use cuprum_core::DType;

use crate::codegen::ctype;

/// Returns the C++ type of elements of `dtype`.
pub(super) fn cpp_element_type(dtype: DType) -> &'static str {
    if dtype == DType::Bool { "u8" } else { ctype(dtype) }
}

/// Returns a grid of `count` blocks, but not more than CUDA allows.
pub(super) fn grid_of_blocks(count: usize) -> [u32; 3] {
    [u32::try_from(count).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs()), 1, 1]
}
