//! The memory layout of arrays, and whether arrays share memory.

use cuprum_core::function::create_with_device_and_order;
use cuprum_core::host_buffer::try_reserve;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Device, Error, Layout, NdArray, Result, numpy};
use std::sync::Arc;

use crate::creation::{argument_as_array, reject_copy_if_forbidden};

fn ascontiguousarray_from_args(args: &Args) -> Result<Value> {
    ascontiguousarray(&argument_as_array(args, "a")?, None).map(Value::Array)
}

/// Returns the array in C order without gaps (`numpy.ascontiguousarray`): the same array if it has this layout, else a copy. A 0-d array
/// becomes 1-D.
///
/// # Errors
/// Errors of evaluation, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, ones};
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::ascontiguousarray(&ones([2, 3], DType::F64)?.t()?, None)?;
/// assert_eq!(a.strides()?, [2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("ascontiguousarray(a, dtype=None)", call = ascontiguousarray_from_args)]
pub fn ascontiguousarray(a: &NdArray, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
    let a = dtype.into().map_or(Ok(a.clone()), |dtype| a.astype(dtype))?;
    if a.ndim() == 0 { a.reshape(1) } else { a.contiguous() }
}

/// Returns whether the elements fill a contiguous range of memory, in any order of the axes.
fn fills_contiguous_memory(layout: &Layout) -> bool {
    let (low, high) = layout.buffer_range();
    !layout.may_overlap() && high - low == layout.size() as isize
}

/// Returns whether the bytes between the first and the last element of two arrays overlap (`numpy.may_share_memory`).
///
/// Arrays behave as values, so shared memory affects only run time and memory use, never results. Deferred arrays are evaluated.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, may_share_memory, s};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![1, 2, 3, 4];
/// assert!(may_share_memory(&a, &a.index(s![..;2])?)?);
/// assert!(!may_share_memory(&a, &a.copy()?)?);
/// # Ok(())
/// # }
/// ```
#[numpy("may_share_memory(a, b, /, max_work=0)")]
pub fn may_share_memory(a: &NdArray, b: &NdArray) -> Result<bool> {
    let (first, second) = (a.stored()?, b.stored()?);
    if !Arc::ptr_eq(first.buffer(), second.buffer()) {
        return Ok(false);
    }
    let bytes = |layout: &Layout, itemsize: usize| {
        let (low, high) = layout.buffer_range();
        (low.saturating_mul(itemsize as isize), high.saturating_mul(itemsize as isize))
    };
    let (low, high) = bytes(first.layout(), a.dtype().itemsize());
    let (other_low, other_high) = bytes(second.layout(), b.dtype().itemsize());
    Ok(low.max(other_low) < high.min(other_high))
}

/// Returns whether two arrays have a byte in common (`numpy.shares_memory`).
///
/// The call compares the positions of all elements on the host if the arrays have gaps and may share memory. Deferred arrays are evaluated.
///
/// # Errors
/// Errors of evaluation, or too little memory for the positions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, s, shares_memory};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![1, 2, 3, 4];
/// let (even, odd) = (a.index(s![..;2])?, a.index(s![1..;2])?);
/// assert!(shares_memory(&a, &even)? && !shares_memory(&even, &odd)?);
/// # Ok(())
/// # }
/// ```
#[numpy("shares_memory(a, b, /, max_work=-1)")]
pub fn shares_memory(a: &NdArray, b: &NdArray) -> Result<bool> {
    if !may_share_memory(a, b)? {
        return Ok(false);
    }
    let (first, second) = (a.stored()?, b.stored()?);
    if fills_contiguous_memory(first.layout()) && fills_contiguous_memory(second.layout()) {
        return Ok(true);
    }
    let (first, second) = (element_byte_ranges(first.layout(), a.dtype())?, element_byte_ranges(second.layout(), b.dtype())?);
    // Both lists of byte ranges are sorted. Within a list, all ranges have the same length, and two of them are either equal or disjoint.
    let (mut i, mut j) = (0, 0);
    while let (Some(&(low, high)), Some(&(other_low, other_high))) = (first.get(i), second.get(j)) {
        if low < other_high && other_low < high {
            return Ok(true);
        }
        if high <= other_low { i += 1 } else { j += 1 }
    }
    Ok(false)
}

/// Returns the half-open byte range of each element, sorted.
fn element_byte_ranges(layout: &Layout, dtype: DType) -> Result<Vec<(isize, isize)>> {
    let mut starts = Vec::new();
    try_reserve("shares_memory", &mut starts, layout.size())?;
    let itemsize = dtype.itemsize() as isize;
    starts.push((layout.offset() as isize * itemsize, (layout.offset() as isize + 1) * itemsize));
    // `starts` has the byte ranges of the elements with index 0 along this axis and all later axes. For each further index along this axis,
    // shifted copies of these ranges are appended.
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        let known = starts.len();
        for index in 1..extent as isize {
            let shift = index * stride * itemsize;
            starts.extend_from_within(..known);
            let from = starts.len() - known;
            starts[from..].iter_mut().for_each(|(low, high)| (*low, *high) = (*low + shift, *high + shift));
        }
    }
    starts.sort_unstable();
    Ok(starts)
}

/// A property of an array that [`require`] ensures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// C order without gaps.
    COrder,
    /// Fortran order without gaps.
    FortranOrder,
    /// Memory that is not a view of a larger array.
    OwnData,
}

fn require_from_args(args: &Args) -> Result<Value> {
    let names: Vec<String> = match args.get("requirements") {
        None => Vec::new(),
        Some(Value::Str(text)) => text.chars().map(String::from).collect(),
        Some(value) => {
            let text = |item: &Value| match item {
                Value::Str(text) => Ok(text.to_uppercase()),
                other => Err(Error::value(args.op(), format!("requirements are strings, not {}", other.type_name()))),
            };
            value.items().unwrap_or_default().iter().map(text).collect::<Result<_>>()?
        }
    };
    let mut requirements = Vec::new();
    for name in &names {
        requirements.push(match name.to_uppercase().as_str() {
            "C" | "C_CONTIGUOUS" | "CONTIGUOUS" => Requirement::COrder,
            "F" | "F_CONTIGUOUS" | "FORTRAN" => Requirement::FortranOrder,
            "O" | "OWNDATA" => Requirement::OwnData,
            // Arrays of this library always meet these requirements: they are aligned, their elements can be assigned, and there are no
            // subclasses.
            "A" | "ALIGNED" | "W" | "WRITEABLE" | "E" | "ENSUREARRAY" => continue,
            other => return Err(Error::value(args.op(), format!("unknown requirement '{other}'"))),
        });
    }
    require(&argument_as_array(args, "a")?, None, &requirements).map(Value::Array)
}

/// Returns an array with the required dtype and memory properties (`numpy.require`): the same array if it has them, else a copy.
///
/// Every array meets NumPy's other requirements: arrays are aligned, and their elements can be assigned.
///
/// # Errors
/// Both orders at once, or errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, Requirement, ones, require};
/// # fn main() -> cuprum::Result<()> {
/// let a = require(&ones([2, 3], DType::F32)?, Some(DType::F64), &[Requirement::FortranOrder])?;
/// assert_eq!((a.dtype(), a.strides()?), (DType::F64, vec![1, 2]));
/// # Ok(())
/// # }
/// ```
#[numpy("require(a, dtype=None, requirements=None)", call = require_from_args)]
pub fn require(a: &NdArray, dtype: Option<DType>, requirements: &[Requirement]) -> Result<NdArray> {
    let needs = |wanted: Requirement| requirements.contains(&wanted);
    let a = match dtype {
        Some(dtype) => a.astype(dtype)?,
        None => a.clone(),
    };
    let ordered = match (needs(Requirement::COrder), needs(Requirement::FortranOrder)) {
        (true, true) => return Err(Error::value("require", "Cannot specify both \"C\" and \"F\" order")),
        (true, false) => a.contiguous()?,
        (false, true) => a.t()?.contiguous()?.t()?,
        (false, false) => a,
    };
    let owns_data = |a: &NdArray| -> Result<bool> {
        let stored = a.stored()?;
        Ok(fills_contiguous_memory(stored.layout()) && stored.buffer().nbytes() == a.nbytes())
    };
    if needs(Requirement::OwnData) && !owns_data(&ordered)? { ordered.copy() } else { Ok(ordered) }
}

fn from_dlpack_from_args(args: &Args) -> Result<Value> {
    let created = create_with_device_and_order(args, || args.array("x"))?;
    reject_copy_if_forbidden(args, "x", created)
}

/// Returns an array of the same elements on a device (`numpy.from_dlpack`): the same array if it is already there and no copy is requested.
///
/// Arrays of other libraries are imported by the crate `cuprum-dlpack`, which the feature `dlpack` includes.
///
/// # Errors
/// Errors of evaluation and of the copy.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Device, array};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![1.0, 2.0];
/// assert_eq!(cuprum::from_dlpack(&a, Device::CPU)?, a);
/// # Ok(())
/// # }
/// ```
#[numpy("from_dlpack(x, /, *, device=None, copy=None)", differs = "arrays of cuprum in `eval`", call = from_dlpack_from_args)]
pub fn from_dlpack(x: &NdArray, device: impl Into<Option<Device>>) -> Result<NdArray> {
    device.into().map_or(Ok(x.clone()), |device| x.to_device(device))
}
