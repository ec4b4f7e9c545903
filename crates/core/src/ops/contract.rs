//! Contractions of two operands over shared axes: `matmul`, `dot`, `tensordot` and related functions.

use crate::call;
use smallvec::SmallVec;

use crate::arguments::{Axes, IntegerArgument};
use crate::array::NdArray;
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::index::Item;
use crate::layout::{Dims, check_ndim};
use crate::op::Op;
use crate::ops::python_value::{Args, Value};
use crate::plan::contract::{ContractPlan, Mode};
use cuprum_macros::{free_functions, numpy};

super::ops! { Contract after scan:
    MATMUL "matmul" 2;
    DOT "dot" 2;
    VDOT "vdot" 2;
    INNER "inner" 2;
    OUTER "outer" 2;
    TENSORDOT "tensordot" 2;
    EINSUM "einsum" 0;
    TRACE "trace" 1;
}

/// An operand of a contraction: an array and the mode (label) of each axis.
#[derive(Clone)]
pub(crate) struct LabeledOperand {
    pub array: NdArray,
    pub modes: SmallVec<[Mode; 6]>,
}

/// Computes `out[..] = sum a[..] * b[..]` over the modes that are not in `out`, in the promoted dtype.
///
/// `extents` holds the extent of each mode. The axis of an operand for a mode has that extent, or extent 1.
pub(crate) fn contract_pair(op: Op, a: LabeledOperand, b: LabeledOperand, out: &[Mode], extents: &[usize]) -> Result<NdArray> {
    let device = super::common_device(op, &a.array, &b.array)?;
    let dtype = a.array.dtype().promote(b.array.dtype());
    let a = simplify_contraction_operand(a, &b.modes, out, extents, dtype)?;
    let b = simplify_contraction_operand(b, &a.modes, out, extents, dtype)?;
    // `a` is simplified again, because simplifying `b` can drop a mode of extent 1 that `a` also has. `a` is then summed over that mode.
    let a = simplify_contraction_operand(a, &b.modes, out, extents, dtype)?;
    check_ndim(op.name(), out.len())?;
    let shape: Dims = out.iter().map(|&x| extents[x as usize]).collect();
    let summed = a.modes.iter().any(|x| !out.contains(x));
    if !summed {
        // NumPy's sum of products starts from +0, so a product of -0 becomes +0.
        let product = super::elementwise::multiply(align_axes_with_output(&a, out)?, align_axes_with_output(&b, out)?)?;
        let sum = if dtype.is_inexact() { super::elementwise::add(product, 0)? } else { product };
        return sum.broadcast_to(shape)?.astype(dtype);
    }
    if a.array.size() == 0 || b.array.size() == 0 || shape.contains(&0) {
        return super::creation::full_on_device(a.array.device(), &shape, crate::scalar::Scalar::Int(0), dtype);
    }
    // Both operands may lack a mode of extent 1 that `out` has. The result is then computed without the mode and reshaped to `shape`.
    let present: SmallVec<[Mode; 6]> = out.iter().copied().filter(|x| a.modes.contains(x) || b.modes.contains(x)).collect();
    let plan = ContractPlan::new(&a.modes, &b.modes, &present, extents);
    let inner: Dims = present.iter().map(|&x| extents[x as usize]).collect();
    let inputs = [a.array.astype(dtype)?.stored()?, b.array.astype(dtype)?.stored()?];
    let result = super::dispatch_single_output(
        op,
        device,
        &inputs,
        OutputSpec::contiguous(dtype, &inner)?,
        Work::Contract(call::Contract { plan: &plan }),
    )?;
    if present.len() == out.len() { Ok(result) } else { result.reshape(shape) }
}

/// Takes diagonals of repeated modes of `x`, drops modes of extent 1 that broadcasting would stretch, and sums modes that are neither
/// in `other` nor in `out`.
pub(crate) fn simplify_contraction_operand(
    mut x: LabeledOperand,
    other: &[Mode],
    out: &[Mode],
    extents: &[usize],
    dtype: DType,
) -> Result<LabeledOperand> {
    while let Some((i, j)) = find_repeated_mode(&x.modes) {
        let mode = x.modes[i];
        x.array = x.array.diagonal(0, i, j)?;
        x.modes.remove(j);
        x.modes.remove(i);
        x.modes.push(mode);
    }
    let mut axis = 0;
    while axis < x.modes.len() {
        let extent = x.array.shape()[axis];
        if extent == 1 && (extents[x.modes[axis] as usize] != 1 || !out.contains(&x.modes[axis])) {
            x.array = x.array.index(&[&vec![Item::slice(None, None, 1); axis][..], &[Item::At(0)]].concat())?;
            x.modes.remove(axis);
        } else {
            axis += 1;
        }
    }
    let unshared: SmallVec<[usize; 6]> =
        (0..x.modes.len()).filter(|&i| !other.contains(&x.modes[i]) && !out.contains(&x.modes[i])).collect();
    if !unshared.is_empty() {
        x.array = match dtype {
            DType::Bool => x.array.any(&unshared)?,
            _ => x.array.sum(super::reduce::axis(&unshared).dtype(dtype))?,
        };
        let mut at = 0;
        x.modes.retain(|_| {
            at += 1;
            !unshared.contains(&(at - 1))
        });
    }
    Ok(x)
}

/// Returns the positions of the first pair of equal modes (einsum subscripts). Returns `None` if all modes differ.
fn find_repeated_mode(modes: &[Mode]) -> Option<(usize, usize)> {
    (0..modes.len()).find_map(|i| modes[i + 1..].iter().position(|m| *m == modes[i]).map(|j| (i, i + 1 + j)))
}

/// Returns the array of `x` with its axes in the order of `out`. A mode that `x` lacks becomes an axis of extent 1.
pub(crate) fn align_axes_with_output(x: &LabeledOperand, out: &[Mode]) -> Result<NdArray> {
    let order: Dims = out.iter().filter_map(|m| x.modes.iter().position(|y| y == m)).collect();
    let missing: Dims = (0..out.len()).filter(|&i| !x.modes.contains(&out[i])).collect();
    x.array.transpose(order)?.expand_dims(missing)
}

/// Returns `array` as an operand whose axes have the given modes.
fn label_axes_with_modes(array: &NdArray, modes: impl IntoIterator<Item = usize>) -> LabeledOperand {
    LabeledOperand { array: array.clone(), modes: modes.into_iter().map(|m| m as Mode).collect() }
}

/// Returns the matrix product of two arrays (`numpy.matmul`, Python's `@`).
///
/// The product is over the last two axes; leading axes broadcast. A 1-D operand is a row vector on the left and a column vector on the
/// right. The result has the promoted dtype. Integers wrap. For bool, the product is "and", and the sum is "or". float32 is not computed in
/// reduced precision such as TF32.
///
/// # Errors
/// A 0-d operand, summed extents that differ, leading axes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, matmul};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1.0f64, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(matmul(&a, &a.t()?)?.to_vec::<f64>()?, [5.0, 11.0, 11.0, 25.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("matmul(x1, x2, /, out=None, *, casting='same_kind', order='K', dtype=None)", aliases("linalg.matmul"))]
pub fn matmul(#[name("x1")] a: &NdArray, #[name("x2")] b: &NdArray) -> Result<NdArray> {
    let name = MATMUL.name();
    if a.ndim() == 0 || b.ndim() == 0 {
        return Err(Error::shape(name, "operands must have at least one dimension; use multiply", &[a.shape(), b.shape()]));
    }
    let (last, first) = (a.ndim() - 1, b.ndim().saturating_sub(2));
    let ka = a.shape()[last];
    if ka != b.shape()[first] {
        return Err(summed_extents_error(name, a, b, (last, first)));
    }
    let (batch_a, batch_b) = (&a.shape()[..a.ndim().saturating_sub(2)], &b.shape()[..b.ndim().saturating_sub(2)]);
    let batch = crate::layout::broadcast_shapes(name, &[batch_a, batch_b])
        .map_err(|_| Error::shape(name, "leading axes cannot be broadcast together", &[a.shape(), b.shape()]))?;
    let nb = batch.len();
    let (m, n, k) = (nb, nb + 1, nb + 2);
    let mut extents = batch;
    extents.extend([if a.ndim() > 1 { a.shape()[a.ndim() - 2] } else { 1 }, if b.ndim() > 1 { b.shape()[b.ndim() - 1] } else { 1 }, ka]);
    let mut out: SmallVec<[Mode; 6]> = (0..nb as Mode).collect();
    let left = if a.ndim() > 1 {
        out.push(m as Mode);
        label_axes_with_modes(a, (nb - batch_a.len()..nb).chain([m, k]))
    } else {
        label_axes_with_modes(a, [k])
    };
    let right = if b.ndim() > 1 {
        out.push(n as Mode);
        label_axes_with_modes(b, (nb - batch_b.len()..nb).chain([k, n]))
    } else {
        label_axes_with_modes(b, [k])
    };
    contract_pair(MATMUL, left, right, &out, &extents)
}

/// Returns the sum of products over the last axis of `a` and the second-to-last axis of `b` (`numpy.dot`).
///
/// If `b` is 1-D, its only axis is summed. With a 0-d operand this is [`multiply`](crate::ops::elementwise::multiply()).
///
/// # Errors
/// Summed extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 2.0, 3.0])?;
/// assert_eq!(a.dot(&a)?.item()?, 14.0);
/// # Ok(())
/// # }
/// ```
#[numpy("dot(a, b, out=None)", method)]
pub fn dot(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return super::elementwise::multiply(a, b);
    }
    compute_tensordot(DOT, a, b, &[a.ndim() - 1], &[b.ndim().saturating_sub(2)])
}

/// Returns the 0-d sum of `conj(a) * b` over all elements, in C order (`numpy.vdot`).
///
/// # Errors
/// Arrays of different sizes or on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, vdot};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![[1.0, 0.0], [0.0, 1.0]]);
/// assert_eq!(vdot(&a, &b)?.item()?, 5.0);
/// # Ok(())
/// # }
/// ```
#[numpy("vdot(a, b)")]
pub fn vdot(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    if a.size() != b.size() {
        return Err(Error::shape(VDOT.name(), "sizes differ", &[a.shape(), b.shape()]));
    }
    let a = if a.dtype().is_complex() { a.conj()? } else { a.clone() };
    compute_tensordot(VDOT, &a.ravel()?, &b.ravel()?, &[0], &[0])
}

/// Returns the sum of products over the last axis of both arrays (`numpy.inner`).
///
/// The result has the other axes of `a`, then those of `b`. With a 0-d operand this is
/// [`multiply`](crate::ops::elementwise::multiply()).
///
/// # Errors
/// Last axes of different extents, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, inner};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1.0, 2.0], [3.0, 4.0]];
/// assert_eq!(inner(&a, &array![1.0, 10.0])?, array![21.0, 43.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("inner(a, b)")]
pub fn inner(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return super::elementwise::multiply(a, b);
    }
    compute_tensordot(INNER, a, b, &[a.ndim() - 1], &[b.ndim() - 1])
}

/// Returns the products of all pairs of elements as a deferred 2-D array of shape `[a.size(), b.size()]` (`numpy.outer`).
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, outer};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(outer(&array![1, 2], &array![10, 20, 30])?, array![[10, 20, 30], [20, 40, 60]]);
/// # Ok(())
/// # }
/// ```
#[numpy("outer(a, b, out=None)")]
pub fn outer(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    super::elementwise::multiply(a.ravel()?.expand_dims(1)?, b.ravel()?.expand_dims(0)?)
}

fn tensordot_from_args(args: &Args) -> Result<Value> {
    let (a, b) = (args.array("a")?, args.array("b")?);
    let pair = match args.get("axes") {
        // As in NumPy, the two rows of an array `axes` are the summed axes of `a` and of `b`.
        Some(rows @ Value::Array(array)) if array.ndim() > 0 => Some(rows.to_arrays("tensordot")?.into_iter().map(Value::Array).collect()),
        axes => axes.and_then(Value::items).map(<[Value]>::to_vec),
    };
    match pair.as_deref() {
        None => tensordot(&a, &b, args.int_or("axes", 2)?),
        Some([x, y]) => tensordot(&a, &b, (x.to_axes("tensordot")?, y.to_axes("tensordot")?)),
        Some(_) => Err(Error::value("tensordot", "axes must be an int or a pair of sequences")),
    }
    .map(Value::Array)
}

/// The `axes` argument of [`tensordot`]: a number of axes, or a pair of [`Axes`], one for each operand.
pub trait TensordotAxes {
    /// Returns the summed axes of `a` and of `b`, counted from the front.
    ///
    /// # Errors
    /// Axes that are out of bounds or repeated.
    fn resolve(self, a: &NdArray, b: &NdArray) -> Result<(Dims, Dims)>;
}
impl<T: IntegerArgument> TensordotAxes for T {
    fn resolve(self, a: &NdArray, b: &NdArray) -> Result<(Dims, Dims)> {
        let n = self.saturating_isize();
        let count = usize::try_from(n).map_err(|_| Error::value("tensordot", "the number of axes must be non-negative"))?;
        if count > a.ndim() || count > b.ndim() {
            return Err(Error::shape("tensordot", format!("cannot sum over {count} axes"), &[a.shape(), b.shape()]));
        }
        Ok(((a.ndim() - count..a.ndim()).collect(), (0..count).collect()))
    }
}
impl<A: Into<Axes>, B: Into<Axes>> TensordotAxes for (A, B) {
    fn resolve(self, a: &NdArray, b: &NdArray) -> Result<(Dims, Dims)> {
        Ok((self.0.into().resolve("tensordot", a.ndim())?, self.1.into().resolve("tensordot", b.ndim())?))
    }
}

/// Returns the sum of products over given axes of both arrays (`numpy.tensordot`).
///
/// `axes` is a number n, for the last n axes of `a` and the first n of `b`, or a pair with the axes of each array, such as `(1, 0)` or
/// `([2, 3], [1, 0])`. The result has the remaining axes of `a`, then those of `b`.
///
/// # Errors
/// Axes out of bounds, summed extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, tensordot};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1.0, 2.0], [3.0, 4.0]];
/// assert_eq!(tensordot(&a, &a, 1)?, array![[7.0, 10.0], [15.0, 22.0]]); // a matrix product
/// assert_eq!(tensordot(&a, &a, 2)?.item()?, 30.0);
/// # Ok(())
/// # }
/// ```
#[numpy("tensordot(a, b, axes=2)", aliases("linalg.tensordot"), call = tensordot_from_args)]
pub fn tensordot(a: &NdArray, b: &NdArray, axes: impl TensordotAxes) -> Result<NdArray> {
    let (x, y) = axes.resolve(a, b)?;
    compute_tensordot(TENSORDOT, a, b, &x, &y)
}

/// Returns the error for a product whose summed axes, `x` of `a` and `y` of `b`, have different extents.
#[cold]
fn summed_extents_error(op: &'static str, a: &NdArray, b: &NdArray, (x, y): (usize, usize)) -> Error {
    let (m, n) = (a.shape()[x], b.shape()[y]);
    let message = format!("the summed axes differ: axis {x} of the first array has {m} elements, axis {y} of the second {n}");
    Error::shape(op, message, &[a.shape(), b.shape()])
}

/// Computes `op`, a sum of products over `axes_a` of `a` and `axes_b` of `b`, as [`tensordot`] does.
fn compute_tensordot(op: Op, a: &NdArray, b: &NdArray, axes_a: &[usize], axes_b: &[usize]) -> Result<NdArray> {
    let name = op.name();
    if axes_a.len() != axes_b.len() {
        let message = format!("{} axes of the first array are summed, but {} of the second", axes_a.len(), axes_b.len());
        return Err(Error::shape(name, message, &[a.shape(), b.shape()]));
    }
    if let Some((&x, &y)) = axes_a.iter().zip(axes_b).find(|(x, y)| a.shape()[**x] != b.shape()[**y]) {
        return Err(summed_extents_error(name, a, b, (x, y)));
    }
    let mut extents: Dims = a.shape().into();
    let mut modes_b = SmallVec::<[usize; 6]>::new();
    for (axis, &extent) in b.shape().iter().enumerate() {
        match axes_b.iter().position(|&y| y == axis) {
            Some(i) => modes_b.push(axes_a[i]),
            None => {
                modes_b.push(extents.len());
                extents.push(extent);
            }
        }
    }
    let out: SmallVec<[Mode; 6]> = (0..a.ndim())
        .filter(|x| !axes_a.contains(x))
        .chain(modes_b.iter().copied().filter(|&m| m >= a.ndim()))
        .map(|m| m as Mode)
        .collect();
    contract_pair(op, label_axes_with_modes(a, 0..a.ndim()), label_axes_with_modes(b, modes_b), &out, &extents)
}

fn trace_from_args(args: &Args) -> Result<Value> {
    let over = super::reduce::axis(-1);
    let over = args.dtype("dtype")?.map_or(over.clone(), |dtype| over.dtype(dtype));
    let diagonal = args.array("a")?.diagonal(args.int_or("offset", 0)?, args.int_or("axis1", 0)?, args.int_or("axis2", 1)?);
    diagonal.and_then(|diagonal| diagonal.sum(over)).map(Value::Array).map_err(|e| e.with_function_name(args.op()))
}

/// # Matrix products
///
/// [`einsum`](crate::einsum), [`tensordot`], [`inner`], [`outer`] and [`vdot`] are free functions, not methods.
#[free_functions]
impl NdArray {
    /// Returns the matrix product with `other` (`numpy.matmul`). See [`matmul`].
    ///
    /// # Errors
    /// The errors of [`matmul`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(a.matmul(&a)?.to_vec::<i32>()?, [7, 10, 15, 22]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn matmul(&self, other: &NdArray) -> Result<NdArray> {
        matmul(self, other)
    }

    /// Returns the sum of products over the last axis of this array and the second-to-last of `other` (`numpy.dot`). See [`dot`].
    ///
    /// # Errors
    /// The errors of [`dot`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.0, 2.0, 3.0])?;
    /// assert_eq!(a.dot(&a)?.item()?, 14.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dot(&self, other: &NdArray) -> Result<NdArray> {
        dot(self, other)
    }

    /// Returns the sum of the diagonal of axes `axis1` and `axis2` (`numpy.trace`).
    ///
    /// `offset` selects a diagonal above (positive) or below (negative) the main one.
    ///
    /// # Errors
    /// Axes that are out of bounds or equal.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(a.trace(0, 0, 1)?.item()?, 5);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None)", method, call = trace_from_args)]
    pub fn trace(
        &self,
        offset: isize,
        #[read(isize)] axis1: impl IntegerArgument,
        #[read(isize)] axis2: impl IntegerArgument,
    ) -> Result<NdArray> {
        self.diagonal(offset, axis1, axis2)?.sum(-1)
    }
}
