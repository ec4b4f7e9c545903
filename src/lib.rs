//! n-dimensional arrays with NumPy's semantics, on the best accelerator of the machine.
//!
//! One binary, built without a CUDA toolkit, runs everywhere and uses a GPU where it finds one. Accelerators form a chain; the first one
//! that accepts an operation runs it. The chain starts with the accelerators in `CUPRUM_ACCELERATORS` (`cub`, `cutensor`, or one of another
//! crate), by default all that are available. It ends with the device's own kernels.
//!
//! ```
//! use cuprum::{NdArray, arange, explain};
//! # fn main() -> cuprum::Result<()> {
//! let a = arange(0, 12, 1)?.reshape([3, 4])?.astype(cuprum::DType::F32)?;
//! let norms = (&a * &a).sum(-1)?.sqrt()?;          // the sum has run, in one pass over `a`
//! assert_eq!(norms.shape(), &[3]);
//! let (_, calls) = explain(|| norms.eval().cloned()); // which accelerator ran the call, which declined
//! assert_eq!(calls.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! - [`NdArray`] is a cheap handle to an immutable value, shared between threads.
//! - Elementwise operations are deferred and fused into one pass. [`with_fusion`] can disable fusion.
//! - [`Device`] and [`with_device`] select the device of new arrays; [`NdArray::to_device`] copies.
//! - [`with_accelerators`] and [`set_accelerators`] set the accelerator order; [`explain`] shows which accelerator ran each call.
//! - Every function returns a [`Result`]. Operators (`&a + &b`) panic where the named function (`add(&a, &b)?`) returns an error.
//!
//! # Features
//!
//! | feature | contains |
//! |---|---|
//! | `cpu`, `cuda`, `cub`, `cutensor` (default) | the backends |
//! | `linalg` (default) | matrix decompositions on the CPU |
//! | `eval` (default) | text expressions: [`eval`] |
//! | `distributed` (default) | arrays sharded over several devices or processes: `distributed` |
//! | `fft` (default) | Fourier transforms on the CPU: [`fft`](mod@fft) |
//! | `ndarray`, `nalgebra`, `faer` | conversions to and from arrays of these crates, most without a copy |
//! | `dlpack` | arrays of other libraries and languages |
//! | `approx` | `assert_relative_eq!(a, b)` and the like for arrays |
//! | `serde` | `Serialize` and `Deserialize` for arrays and dtypes |
//!
//! `docs/interop.md` says for each conversion whether it copies.
//!
//! # Where to find what
//!
//! | for | see |
//! |---|---|
//! | arrays: construction, views, reading | [`NdArray`], [`zeros`], [`arange`], [`s!`], [`Element`], [`DType`], [`Scalar`] |
//! | NumPy's functions | [`numpy_table`], [`linalg`], [`fft`](mod@fft), [`random`]; elementwise functions take arrays and numbers ([`Operand`]) |
//! | SciPy's special functions | `special` |
//! | axes and options of reductions | [`axis()`], [`AxisOptions`] |
//! | devices, memory, streams, graphs | [`Device`], [`Stream`], [`Event`], [`Graph`] |
//! | sparse arrays, iterative solvers | [`sparse`] |
//! | arrays on several devices or processes | `distributed` |
//! | files | [`io`] |
//! | accelerators and settings | [`explain`], [`with_accelerators`], [`settings`], [`tuning`], [`warm_up()`] |
//! | time and traces | [`profiler`] |
//! | kernels and functions of your own | `kernel!`, [`numpy`](macro@numpy), `cuda` |
//! | text expressions | `eval`, `expressions` |
//!
//! # For authors of accelerators and backends
//!
//! [`core`](mod@core) is the crate `cuprum-core`, the only one that an accelerator needs: see [`core::Accelerator`]. It has the op
//! constants ([`core::ops`]), calls and plans, buffers, drivers and the registry, beside everything that this page lists.
#![deny(unsafe_code)]

#[doc(no_inline)]
pub use cuprum_core as core;

// ---- arrays ----
#[doc(inline)]
pub use cuprum_core::{
    Array, Axes, AxisIter, Complex, DType, EinsumPath, Element, Ellipsis, Error, FromScalar, IndexItem, IntegerArgument, IntoElements,
    IntoIndex, IntoReshape, IntoShape, Item, Kind, NdArray, NewAxis, Operand, PrintOptions, Result, Scalar, array, array2string, bf16, f16,
    get_printoptions, s, set_printoptions, with_printoptions,
};

// ---- functions ----
#[doc(inline)]
pub use cuprum_core::ops::contract::{TensordotAxes, dot, inner, matmul, outer, tensordot, trace, vdot};
#[doc(inline)]
pub use cuprum_core::ops::elementwise::functions::*;
#[doc(inline)]
pub use cuprum_core::{
    AxisOption, AxisOptions, Bins, ScatterMode, Segments, Side, Unique, all, any, arange, arange_as, argmax, argmin, argpartition, argsort,
    argwhere, axis, bincount, broadcast_to, compress, concat, copy, count_nonzero, cummax, cummin, cumprod, cumsum, diagonal, digitize,
    einsum, einsum_path, empty, empty_like, expand_dims, extract, eye, flatnonzero, flip, full, full_like, histogram, histogram_bin_edges,
    linspace, max, mean, min, moveaxis, nanmax, nanmin, ndim, nonzero, ones, ones_like, partition, prod, random, ravel, reshape, scatter,
    searchsorted, segment_argsort, segment_max, segment_min, segment_prod, segment_sort, segment_sum, shape, size, sort, squeeze, stack,
    std, sum, swapaxes, take, take_along_axis, topk, transpose, unique, unique_all, unique_counts, unique_inverse, unique_values, var,
    zeros, zeros_like,
};
#[doc(inline)]
pub use cuprum_numpy::*;

// ---- devices, accelerators and settings ----
#[doc(inline)]
pub use cuprum_core::{
    CallRecord, Device, DeviceKind, Event, Graph, KernelLaunch, MatmulPrecision, MemoryStats, Stream, WarmUp, explain, fusion_enabled,
    matmul_precision, profiler, reproducible_sums, set_accelerators, set_fusion, set_matmul_precision, set_reproducible_sums, settings,
    tuning, warm_up, with_accelerators, with_device, with_fusion, with_matmul_precision, with_reproducible_sums, with_stream,
};

// ---- special functions ----
#[cfg(feature = "cpu")]
#[doc(inline)]
pub use cuprum_special as special;

// ---- files ----
#[doc(inline)]
pub use cuprum_io as io;

// ---- sparse arrays ----
#[doc(inline)]
pub use cuprum_sparse as sparse;

// ---- sharded arrays ----
#[cfg(feature = "distributed")]
#[doc(inline)]
pub use cuprum_distributed as distributed;

// ---- function calls by NumPy name, as in `eval` ----
#[doc(inline)]
pub use cuprum_core::{Args, Value, function};

/// Re-exports for the code that the macros generate.
#[doc(hidden)]
pub use cuprum_core::{Op, inventory};

/// Table of NumPy's functions and their names in this crate.
#[doc = include_str!("../docs/numpy.md")]
pub mod numpy_table {}

/// User-defined elementwise operations and reductions, written once in Rust for CPU and GPU.
///
/// Each function becomes an operation on arrays and numbers, which broadcasts, is deferred, and fuses like a built-in one. The CPU runs it
/// as vectorised machine code; CUDA compiles it into the kernel of the whole fused expression. [`eval`] finds the operation by the
/// function's name.
///
/// ```
/// use cuprum::{NdArray, linspace};
///
/// cuprum::kernel! {
///     /// Clamped line through the origin.
///     pub fn ramp<T: Float>(x: T, slope: T) -> T {
///         let y = slope * x;
///         if y < 0.0 { 0.0 } else { y.min(1.0) }
///     }
///
///     /// Larger of two numbers.
///     #[reduction(identity = MIN)]
///     pub fn largest<T: Number>(a: T, b: T) -> T {
///         a.max(b)
///     }
/// }
///
/// # fn main() -> cuprum::Result<()> {
/// let x = linspace(-1.0, 1.0, 5)?;
/// assert_eq!(ramp(&x, 3.0)?.to_vec::<f64>()?, [0.0, 0.0, 0.0, 1.0, 1.0]);
/// assert_eq!(largest((ramp(&x, 0.5)? - 2).abs()?, ())?.item()?, 2.0); // one pass over `x`
/// # Ok(())
/// # }
/// ```
///
/// # Function bodies
///
/// Supported are:
///
/// - `let`, assignment to `let mut`, `return`, `if`/`else` as statement and as value
/// - `for i in a..b` with `break` and `continue`; `while` and `loop` are not supported
/// - `+ - * / %`, comparisons, `&& || !`, `as`, and bit operations and shifts of integers
/// - constant tables before the functions, `const C: [f64; 3] = [..];` or `const C: [[f64; 3]; 2] = [[..], [..]];`, whose elements are
///   `C[i]` or `C[i][j]`, with indices clamped to the bounds
/// - polynomials by Horner's scheme with `mul_add`, lowest coefficient first: `x.polynomial([1.0, 0.5])`, `x.polynomial(C)` for a table,
///   and `x.polynomial(C[i])` for a row
/// - methods of Rust's numbers: `abs min max sqrt floor ceil trunc round_ties_even copysign mul_add sin cos tan asin acos atan atan2 sinh
///   cosh tanh asinh acosh atanh exp exp2 exp_m1 ln log2 log10 ln_1p cbrt hypot powf is_nan is_finite is_infinite`, and `powi` with a
///   literal exponent of 1 or more
/// - the constants `PI TAU LN_2 LN_10 SQRT_2 FRAC_1_SQRT_2 INFINITY NAN` and `std::f64::consts::E`
/// - calls of functions defined earlier in the block; a private function that is called, or has the attribute `#[helper]`, does not become
///   an operation
///
/// Anything else is a compile error at its position:
///
/// ```compile_fail
/// cuprum::kernel! {
///     pub fn shifted<T: Float>(x: T, n: i32) -> T {
///         x + n // mismatched types: expected the generic type (any Float), found `i32`; convert one with `as`
///     }
/// }
/// ```
///
/// # Types
///
/// The types are bool, i8 to i64, u8 to u64, f32, f64, and one generic type. `T: Float` is the promoted dtype of the arguments. For bool
/// and integer arguments, `T` is the float dtype that NumPy's functions such as `sqrt` return. `T: Integer` and `T: Number` keep the
/// promoted dtype. `T: Single` is float32 if all arguments cast safely to it, `T: Double` is float32 if all arguments are float32 arrays;
/// both are float64 otherwise. These are the rules of SciPy's special functions. A function that computes in float64 converts:
/// `(x as f64).exp() as T`. Types and bounds need no import. float16 and bfloat16 are computed in float32. Literals adopt the type of the
/// other operand. An argument of a parameter with a fixed type must cast safely to that type.
///
/// # Whole arrays and indices
///
/// A parameter `c: &[T]` is an entire array in C order, whatever the shapes of the other arguments. `c[i]` takes any integer type and
/// clamps the index to the bounds; `c.len()` is an i64. `index(0)` is the index of the current element along axis 0, an i64.
///
/// # Arithmetic
///
/// The arithmetic is the same on every device: integers wrap, integer division by zero gives zero, `as` saturates, and products and
/// sums are rounded separately (`mul_add` rounds once, `powi` multiplies squares). Functions such as `exp` differ in the last bits between
/// devices, as the array functions do.
///
/// # Reductions
///
/// A function of two arguments with `#[reduction(identity = ..)]` becomes a reduction over axes, like [`NdArray::sum`]. The identity is
/// a number, or `MIN` or `MAX` (infinities for floats). The function must be associative and commutative up to rounding, and return its
/// other argument if one is the identity. The order of evaluation depends only on the shape. Operations around the call are fused.
///
/// # Names
///
/// [`eval`] calls an operation by the name of its function. With [`#[numpy("path(parameters)")]`](macro@numpy) before the function, `eval`
/// calls the operation by that path and signature. With `#[rust_only]`, `eval` does not find the operation.
///
/// # Limits
///
/// At most eight arguments: a whole array counts as two, `index(..)` as one.
#[cfg(feature = "cpu")]
#[doc(inline)]
pub use cuprum_macros::kernel;

/// Declares a function under NumPy's name, so that [`eval`], `cuprum eval --functions` and other code that looks functions up by name find
/// it.
///
/// The attribute is written at the Rust definition, in any crate that depends on cuprum. It registers a [`Function`](function::Function):
/// NumPy's path and parameters, the first paragraph of the doc comment, and a call. The call reads each Rust parameter from the
/// arguments, and converts the result to a [`Value`]. Errors about arguments name the function ([`Error::with_function_name`]), whichever
/// function in its body finds them.
///
/// # Arguments
///
/// The first argument is `"path(parameters)"`. The path includes the namespace: `linalg.trace`. The parameters have Python's syntax with
/// literal defaults, `*` and `/`. Options follow in any order:
///
/// | option | meaning |
/// |---|---|
/// | `aliases("a", "linalg.b")` | other paths of the function |
/// | `method` | `ndarray` has a method of this name, whose first parameter is the array |
/// | `differs = ".."` | how values differ from NumPy's, for the lists of `docs/numpy.md` |
/// | `receiver = "x"` | parameter that a method of [`NdArray`] reads as `self`; the first one by default |
/// | `call = f` | `fn(&Args) -> Result<Value>` that replaces the generated call |
///
/// # Parameters
///
/// A Rust parameter reads the NumPy parameter of the same name. Its type implements [`FromArgs`](function::FromArgs), or is `&T`, `&[T]`,
/// `&str`, `Option<&T>` or `impl Into<T>` of such a type, or a list `impl IntoIterator<Item: AsRef<T>>`. One type can read several
/// parameters: [`AxisOptions`] reads `axis`, `keepdims` and others. Two attributes before a parameter change how it is read:
///
/// - `#[name("n")]` reads the NumPy parameter `n`.
/// - `#[read(T)]` reads the argument as `T`, for types such as `impl IntoShape` that cannot be read themselves.
///
/// The function returns a [`Result`] of a type that implements [`IntoValue`](function::IntoValue): an array, a vector of arrays, a
/// number, a bool, a dtype, or a tuple of these.
///
/// # Errors
///
/// The attribute causes a compile error if the function has no doc comment, if the signature is malformed, if an option is unknown, or if a
/// parameter cannot be read. A call through [`Function`](function::Function) returns NumPy's argument errors: missing, unexpected or
/// repeated arguments.
///
/// # Examples
///
/// ```
/// use cuprum::function::FromArgs;
/// use cuprum::{Args, Error, NdArray, Result, numpy};
///
/// /// How values outside an interval are mapped into it.
/// pub enum Mode {
///     Clamp,
///     Wrap,
/// }
///
/// impl FromArgs for Mode {
///     fn from_args(args: &Args, name: &str) -> Result<Mode> {
///         match String::from_args(args, name)?.as_str() {
///             "clamp" => Ok(Mode::Clamp),
///             "wrap" => Ok(Mode::Wrap),
///             other => Err(Error::value(args.op(), format!("'{name}' is 'clamp' or 'wrap', not '{other}'"))),
///         }
///     }
/// }
///
/// /// Maps every element into the interval from 0 to `limit`.
/// #[numpy("limited(a, limit=1.0, mode='clamp')", aliases("bounded"))]
/// pub fn limited(#[name("a")] values: &NdArray, limit: f64, mode: Mode) -> Result<NdArray> {
///     match mode {
///         Mode::Clamp => values.clip(0, limit),
///         Mode::Wrap => values.remainder(limit),
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let a = NdArray::from_slice(&[-0.5, 0.5, 2.25])?;
/// assert_eq!(limited(&a, 1.0, Mode::Clamp)?.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// let wrapped = cuprum::eval("bounded(a, mode='wrap')", [("a", &a)])?;
/// assert_eq!(wrapped.to_vec::<f64>()?, [0.5, 0.5, 0.25]);
/// let error = cuprum::eval("limited(a, mode='mirror')", [("a", &a)]).unwrap_err();
/// assert!(error.to_string().contains("'mode' is 'clamp' or 'wrap', not 'mirror'"));
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use cuprum_core::numpy;

#[cfg(feature = "eval")]
#[doc(inline)]
pub use cuprum_eval as expressions;
#[cfg(feature = "eval")]
#[doc(inline)]
pub use cuprum_eval::eval;

// A backend is linked, and thus registers its accelerators, only if the source names its crate.
#[cfg(feature = "cpu")]
#[doc(no_inline)]
pub use cuprum_backend_cpu as backend_cpu;
#[cfg(feature = "cub")]
#[doc(no_inline)]
pub use cuprum_backend_cub as backend_cub;
#[cfg(feature = "cuda")]
#[doc(no_inline)]
pub use cuprum_backend_cuda as backend_cuda;
#[cfg(feature = "cutensor")]
#[doc(no_inline)]
pub use cuprum_backend_cutensor as backend_cutensor;

/// User-defined CUDA kernels: source, machine code, and launches with checked arguments. See `docs/own-kernels.md` and
/// [`RawKernel`](cuda::RawKernel).
///
/// Also device memory that other libraries share with arrays: [`SharedPointer`](cuda::SharedPointer),
/// [`from_device_pointer`](cuda::from_device_pointer), and [`cudarc`](cuda::cudarc)'s slices. See `docs/dlpack.md`.
#[cfg(feature = "cuda")]
pub mod cuda {
    pub use cuprum_backend_cuda::interop::{
        ForeignStream, SharedPointer, SharedSlice, from_cuda_slice, from_device_pointer, raw_stream, wrap_device_memory,
    };
    pub use cuprum_backend_cuda::user_kernels::{
        Arg, ElementwiseKernel, FunctionAttributes, IntoExtents, Launch, RawGlobal, RawKernel, RawModule, RawSource, ReductionDefinition,
        ReductionKernel,
    };
    pub use cuprum_backend_cuda::{args, cudarc};
}

/// Exchange of arrays with other libraries by DLPack. See `docs/dlpack.md`.
#[cfg(feature = "dlpack")]
pub mod dlpack {
    pub use cuprum_dlpack::*;
}

/// Runs the examples of `docs/getting-started.md` as doctests.
#[cfg(all(doctest, feature = "cpu"))]
#[doc = include_str!("../docs/getting-started.md")]
pub struct GettingStartedPage;

/// Compiles the examples of `docs/streams.md` as doctests.
#[cfg(doctest)]
#[doc = include_str!("../docs/streams.md")]
pub struct StreamsPage;

/// Compiles the examples of `docs/numpy-for-rust-users.md` as doctests.
#[cfg(doctest)]
#[doc = include_str!("../docs/numpy-for-rust-users.md")]
pub struct NumpyIdiomsPage;

/// Compiles the examples of `docs/sparse.md` as doctests.
#[cfg(all(doctest, feature = "cpu"))]
#[doc = include_str!("../docs/sparse.md")]
pub struct SparsePage;

/// Compiles the examples of `README.md` as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmePage;

/// Compiles the examples of `CONTRIBUTING.md` as doctests.
#[cfg(doctest)]
#[doc = include_str!("../CONTRIBUTING.md")]
pub struct ContributingPage;

/// Compiles the examples of `docs/dlpack.md` as doctests.
#[cfg(all(doctest, feature = "dlpack", feature = "cuda"))]
#[doc = include_str!("../docs/dlpack.md")]
pub struct DlpackPage;

/// Registers every backend of this build. Repeated calls have no effect.
///
/// Only needed where the linker drops registrations: static libraries linked by another language's linker, and WebAssembly.
///
/// # Errors
/// [`Error::Setting`] if another accelerator has the name of a backend.
pub fn register_all() -> Result<()> {
    #[cfg(feature = "cpu")]
    cuprum_backend_cpu::register()?;
    #[cfg(feature = "cuda")]
    cuprum_backend_cuda::register()?;
    #[cfg(feature = "cub")]
    cuprum_backend_cub::register()?;
    #[cfg(feature = "cutensor")]
    cuprum_backend_cutensor::register()?;
    Ok(())
}
