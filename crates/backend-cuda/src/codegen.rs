//! Generates CUDA C++ for fused expressions (programs of the core crate): the prelude of every kernel, the code of one element, and the
//! kernel parameters as bytes. This module does not use the driver.
//!
//! A kernel's source is [`CUDA_PRELUDE`], then [`element_source`], then the kernel itself, all inside `namespace cuprum`. The
//! kernel takes a `Params` by value: input addresses, the address of the [error word](crate::device::error_word_address),
//! and scalars ([`pack_params`]). If inputs are strided, the kernel also takes an `Axes<Index, Rank, INPUTS>` (extents and
//! strides: [`pack_axes`]). Neither sizes nor scalar values are part of the source.
//!
//! | in C++ | meaning |
//! |---|---|
//! | `Offsets<Index, INPUTS>` | offset of each input, in elements; `Axes::offsets(number)` computes it from a C-order index |
//! | `load(p, offsets)` | values of the inputs at these offsets |
//! | `load_along(p, offsets, i)` | values `i` elements further along the innermost axis; inputs in [`InnermostAxisAccess::repeated`] ignore
//! `i` |
//! | `load_once(p, offsets, i)` | `load_along` with the evict-first cache hint, for data that is read once |
//! | `load_pack(p, offsets, i, values)` | several consecutive values, in accesses of up to 16 bytes if [`InnermostAxisAccess::aligned`] |
//! | `compute(p, values)` | all results, `.r0`, `.r1`, ... |
//! | `evaluate(p, values, bad_index)` | as `compute`, but stores an index out of bounds in `bad_index` for a later `report(p, bad_index)` |
//! | `stage`, `load_staged` | store and load inputs by tiles in shared memory; [`shared_memory_staging_source`] defines both |
//! | `element(p, i)`, `element(p, offsets, i)` | the first result (type `Result`), at index `i` of flat inputs or `i` elements after
//! `offsets` |

mod accumulator_code;
pub mod device_sources;
mod element_code;
mod expression_table;
mod kernel_key;
mod kernel_params;
pub(crate) mod reduction_code;
pub mod row_code;
pub mod test_programs;

pub use accumulator_code::AccumulatorCode;
pub use element_code::{
    InnermostAxisAccess, element_source, element_source_with_result, element_source_with_user_functions, shared_memory_staging_source,
};
pub use expression_table::{cpp_expression, has_cpp_expression, may_fault};
pub(crate) use kernel_key::KeyWithoutProgram;
pub use kernel_key::{KernelKey, SerializedKey};
pub use kernel_params::{Bytes, MAX_32_BIT_INDEX, fits_32_bit_index, pack_axes, pack_offsets, pack_params, reduction_fits_32_bit_index};
pub use reduction_code::FoldClass;

use cuprum_core::{DType, Op, Program};

/// C++ source at the top of every kernel: element types, conversions, elementwise operations and axes. Includes no headers.
pub const CUDA_PRELUDE: &str = concat!(
    include_str!("codegen/prelude/types.cuh"),
    include_str!("codegen/prelude/layout.cuh"),
    include_str!("codegen/prelude/arithmetic.cuh"),
    include_str!("codegen/prelude/functions.cuh"),
    include_str!("codegen/prelude/complex.cuh"),
);

/// The part of [`CUDA_PRELUDE`] that user-defined kernels get: element types, conversions and operations.
pub const USER_KERNEL_PRELUDE: &str = concat!(
    include_str!("codegen/prelude/types.cuh"),
    include_str!("codegen/prelude/arithmetic.cuh"),
    include_str!("codegen/prelude/functions.cuh"),
    include_str!("codegen/prelude/complex.cuh"),
);

/// Returns the kernel name that profilers show: `class` (such as `map`), then the operations of `program`. If there are more than four
/// operations, only their number follows.
pub fn kernel_name(class: &str, program: &Program) -> String {
    let ops: Vec<_> = program.ops().map(Op::name).collect();
    match ops.len() {
        0 => class.to_owned(),
        1..=4 => format!("{class}_{}", ops.join("_")),
        n => format!("{class}_{n}_operations"),
    }
}

/// Returns the C++ type of elements of `dtype`, a name in `namespace cuprum`.
pub const fn ctype(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "c64",
        DType::C128 => "c128",
    }
}

/// Returns the C++ type of offsets and element indices: 64 bits if `wide`, else 32.
pub const fn index_type(wide: bool) -> &'static str {
    if wide { "i64" } else { "i32" }
}
