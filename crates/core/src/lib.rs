//! The core crate of cuprum: arrays, operations, and the dispatch of calls to kernels.
//!
//! Applications use the facade crate `cuprum`; authors of accelerators use this crate. The core has no GPU code, no thread pool and no
//! SIMD. Backends register [`Accelerator`]s, and [`dispatch`] tries their kernels in order.
#![deny(unsafe_code)]

// Macro-generated paths start with the facade's name, so that name must resolve inside this crate too.
extern crate self as cuprum;

// Layers, lowest first, as blocks of modules. A module imports only from its own layer and the layers listed before it.
// A `pub use` that keeps a public path may name a later layer. scripts/check_imports.py checks the order.
pub mod fault_injection;

mod types;

pub mod settings;

pub mod device;

pub mod array;

pub mod op;

pub mod dispatch;

pub mod expr;

pub mod ops;

pub mod fmt;
pub mod profiler;

pub mod graph;
pub mod testing;
pub mod warm_up;

mod interop;

use device::host_pool;
pub use device::{host_buffer, stream};
pub use dispatch::{registry, tuning};
pub use op::{body, call, plan, program};
pub use ops::function;
pub use settings::precision;
pub use types::{arguments, dtype, error, index, layout, rounding, scalar, scalar_conversion};

pub use arguments::{Axes, IntegerArgument, IntoReshape, IntoShape};
pub use array::{Array, IntoElements, NdArray, StoredArray};
pub use call::{Binning, Call, DeclineReason, Distribution, Fill, Linalg, Outcome, OutputSpec, Outputs, Random, Sort, Work};
pub use cuprum_macros::numpy;
pub use device::{Device, DeviceKind, MemoryStats, with_device};
pub use dispatch::{CallRecord, KernelLaunch, explain};
pub use dtype::{DType, DTypeSet, Element, Kind};
pub use error::{Error, LinAlgFailure, Result};
pub use expr::{Operand, fusion_enabled, with_fusion};
pub use fmt::{PrintOptions, array2string, get_printoptions, set_printoptions, with_printoptions};
pub use graph::Graph;
pub use half::{bf16, f16};
pub use index::{Ellipsis, Item, NewAxis};
pub use layout::Layout;
pub use num_complex::Complex;
pub use op::{Capability, Family, Op};
pub use ops::AxisIter;
pub use ops::bin_rules::BinRule;
pub use ops::contract::{dot, inner, matmul, outer, tensordot, trace, vdot};
pub use ops::creation::{arange, arange_as, empty, empty_like, eye, full, full_like, ones, ones_like, zeros, zeros_like};
pub use ops::einsum::{EinsumPath, einsum, einsum_path};
pub use ops::elementwise::*;
pub use ops::histogram::{Bins, bincount, histogram, histogram_bin_edges};
pub use ops::index::{IndexItem, IntoIndex};
pub use ops::linspace::linspace;
pub use ops::manipulation::{assemble_from_parts, concat, copy, stack};
pub use ops::python_value::{Args, Value};
pub use ops::random;
pub use ops::reduce::{
    AxisOption, AxisOptions, all, any, argmax, argmin, axis, count_nonzero, max, mean, min, nanmax, nanmin, prod, std, sum, var,
};
pub use ops::scan::{cummax, cummin, cumprod, cumsum};
pub use ops::scatter::{ScatterMode, scatter};
pub use ops::search::{Side, digitize, searchsorted};
pub use ops::segments::{Segments, segment_argsort, segment_max, segment_min, segment_prod, segment_sort, segment_sum};
pub use ops::select::{argwhere, compress, extract, flatnonzero, nonzero};
pub use ops::sort::{
    Unique, argpartition, argsort, partition, sort, topk, unique, unique_all, unique_counts, unique_inverse, unique_values,
};
pub use ops::take::{take, take_along_axis};
pub use ops::views::{
    broadcast_to, diagonal, expand_dims, flip, moveaxis, ndim, ravel, reshape, shape, size, squeeze, swapaxes, transpose,
};
pub use precision::{MatmulPrecision, matmul_precision, set_matmul_precision, with_matmul_precision};
pub use program::{Program, Step, StepKind};
pub use registry::{
    Accelerator, Availability, DeviceProvider, Kernel, OpFilter, Registration, register, set_accelerators, with_accelerators,
};
pub use scalar::Scalar;
pub use scalar_conversion::FromScalar;
pub use settings::reproducible_sums::{reproducible_sums, set_reproducible_sums, with_reproducible_sums};
pub use settings::set_fusion;
pub use stream::{Event, Stream, with_stream};
pub use warm_up::{WarmUp, warm_up};

/// Registration for backends: `cuprum_core::inventory::submit! { Registration(&ACCELERATOR) }`.
pub use inventory;
