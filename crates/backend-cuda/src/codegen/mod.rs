//! From a core program to CUDA C++: the prelude every kernel starts with, the code of one element, and the bytes of
//! kernel parameters. Text only: nothing here touches the driver.
//!
//! A kernel's source is [`PRELUDE`], then [`element()`], then the kernel itself, all inside `namespace cuprum`. The
//! kernel takes by value a `Params` (input addresses, the error word, scalars: [`pack_params`]) and, where inputs are not flat, an
//! `Axes<Index, Rank, INPUTS>` (extents and strides, [`pack_axes`]); so neither sizes nor constants are source text.
//!
//! | in C++ | is |
//! |---|---|
//! | `Offsets<Index, INPUTS>` | where each input stands, in elements; `Axes::offsets(number)` makes one from a C-order number |
//! | `load(p, offsets)` | the inputs' values there |
//! | `load_along(p, offsets, i)` | the values `i` further along the innermost axis, where inputs have stride 1, or 0 if [`Access::repeated`] |
//! | `load_once(p, offsets, i)` | the same, of lines that nobody reads again: they are the first to leave the caches |
//! | `load_pack(p, offsets, i, values)` | as many in a row, in 16-byte accesses when [`Access::aligned`] |
//! | `compute(p, values)` | all results, `.r0`, `.r1`, ... |
//! | `evaluate(p, values, noticed)` | the same, but that a bad index is kept in `noticed`, a `Noticed`, for `report(p, noticed)` to tell of: loads of several elements stay under way together |
//! | `stage`, `load_staged` | inputs through tiles of shared memory, where [`staging()`] is put in too |
//! | `element(p, i)`, `element(p, offsets, i)` | the first result, a `Result`, of flat inputs, or along the innermost axis |

pub mod check;
mod combination;
mod element;
mod params;
pub mod parts;
pub(crate) mod reductions;
pub mod rows;
mod table;

pub use combination::Combination;
pub use element::{Access, element, element_and, element_of, staging};
pub(crate) use params::Flags;
pub use params::{Bytes, KernelKey, MAX_NARROW, WrittenKey, fits_narrow, pack_axes, pack_offsets, pack_params, reduction_fits_narrow};
pub use table::{expression, has_row, may_fault};

use cuprum_core::{DType, Op, Program};

/// CUDA C++ that every kernel starts with: element types, conversions, the operations of core's elementwise table, axes.
/// Needs no headers.
pub const PRELUDE: &str = concat!(
    include_str!("prelude/types.cuh"),
    include_str!("prelude/layout.cuh"),
    include_str!("prelude/arithmetic.cuh"),
    include_str!("prelude/functions.cuh"),
    include_str!("prelude/complex.cuh"),
);

/// The part of [`PRELUDE`] that kernels of other authors have a use for: element types, conversions and operations.
pub const OPERATIONS: &str = concat!(
    include_str!("prelude/types.cuh"),
    include_str!("prelude/arithmetic.cuh"),
    include_str!("prelude/functions.cuh"),
    include_str!("prelude/complex.cuh"),
);

/// A kernel's name for profilers: its class, then the operations, or how many when they are many.
pub fn kernel_name(class: &str, program: &Program) -> String {
    let ops: Vec<_> = program.ops().map(Op::name).collect();
    match ops.len() {
        0 => class.to_owned(),
        1..=4 => format!("{class}_{}", ops.join("_")),
        n => format!("{class}_{n}_operations"),
    }
}

/// The C++ type of an element, a name inside `namespace cuprum`.
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

/// The C++ type of offsets and element numbers: 64 bits wide or not.
pub const fn index_type(wide: bool) -> &'static str {
    if wide { "i64" } else { "i32" }
}
