//! Arithmetic and reductions of sparse arrays: [`SparseMath`].

use cuprum_core::ops::elementwise::{ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NOT_EQUAL, SUBTRACT};
use cuprum_core::{Axes, NdArray, Op, Result, Scalar, numpy};

use crate::reductions::NormOrder;
use crate::{Sparse, SparseArray};
use crate::{elementwise, eval_methods, reductions, slicing};

/// Arithmetic and reductions of sparse arrays of every format.
///
/// Two sparse arrays broadcast as dense ones do. The result is in CSC format if both are, else in CSR format. The dtypes of results follow
/// NumPy's rules, with float32 in place of float16 and bfloat16.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
/// let a = CsrArray::from_dense(&array![[1.0, 0.0], [0.0, 2.0]])?;
/// let row = CsrArray::from_dense(&array![[10.0, 0.0]])?;
/// assert_eq!(a.add(&row)?.to_dense()?, array![[11.0, 0.0], [10.0, 2.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
pub trait SparseMath: Sparse {
    /// Returns the elementwise `add` of two sparse arrays (`a + b`). Results that are zero are not stored.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.add(&a)?.to_dense()?, array![[2.0, 0.0], [4.0, 6.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn add(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(ADD, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elementwise `subtract` of two sparse arrays (`a - b`). Results that are zero are not stored.
    ///
    /// As in SciPy, the difference of two bool arrays is true where they differ.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.subtract(&a)?.to_dense()?, array![[0.0, 0.0], [0.0, 0.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn subtract(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(SUBTRACT, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elementwise `multiply` of two sparse arrays (`a * b`). Results that are zero are not stored.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.multiply(&a)?.to_dense()?, array![[1.0, 0.0], [4.0, 9.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.multiply(self, other)", call = eval_methods::multiply)]
    fn multiply(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(MULTIPLY, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elementwise `maximum` of two sparse arrays (`a.maximum(b)`). Results that are zero are not stored.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.maximum(&a)?.to_dense()?, array![[1.0, 0.0], [2.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.maximum(self, other)", call = eval_methods::maximum)]
    fn maximum(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(MAXIMUM, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elementwise `minimum` of two sparse arrays (`a.minimum(b)`). Results that are zero are not stored.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.minimum(&a)?.to_dense()?, array![[1.0, 0.0], [2.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.minimum(self, other)", call = eval_methods::minimum)]
    fn minimum(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(MINIMUM, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elementwise `not_equal` of two sparse arrays (`a != b`). Results that are zero are not stored.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that the operation does not take, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.not_equal(&a)?.to_dense()?, array![[false, false], [false, false]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn not_equal(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(NOT_EQUAL, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns `op(self, b)` elementwise, for an operation of two arguments that maps two zeros to zero, such as `greater`.
    ///
    /// # Errors
    /// An operation that does not map two zeros to zero, such as `equal`; shapes that do not broadcast; arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::ops::elementwise::GREATER;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// let b = CsrArray::from_dense(&array![[0.5, 0.0], [2.0, 0.0]])?;
    /// assert_eq!(a.elementwise(GREATER, &b)?.to_dense()?, array![[true, false], [false, true]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn elementwise(&self, op: Op, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_sparse(op, &self.to_sparse(), &b.to_sparse())
    }

    /// Returns `op(self)` elementwise, for an operation of one argument that maps zero to zero, such as `sqrt`.
    ///
    /// # Errors
    /// An operation that does not map zero to zero, such as `cos`.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::ops::elementwise::SQUARE;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.map(SQUARE)?.to_dense()?, array![[1.0, 0.0], [4.0, 9.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn map(&self, op: Op) -> Result<SparseArray> {
        elementwise::apply_unary(op, &self.to_sparse())
    }

    /// Returns the complex conjugate (`a.conj()`). Arrays of real numbers or bool are returned unchanged.
    ///
    /// # Errors
    /// Errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// use cuprum::{Complex, array};
    /// let a = CsrArray::from_dense(&array![[Complex::new(1.0, 2.0), Complex::ZERO]])?;
    /// assert_eq!(a.conj()?.to_dense()?, array![[Complex::new(1.0, -2.0), Complex::ZERO]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[doc(alias = "conjugate")]
    #[numpy("sparray.conj(self, copy=True)", aliases("sparray.conjugate"), call = eval_methods::conj)]
    fn conj(&self) -> Result<SparseArray> {
        elementwise::conjugate(&self.to_sparse())
    }

    /// Returns the sum of this array and a dense array, as a dense array (`a + b`).
    ///
    /// # Errors
    /// Shapes that do not broadcast, more than two axes, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.add_dense(&array![1.0, 1.0])?, array![[2.0, 1.0], [3.0, 4.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn add_dense(&self, b: &NdArray) -> Result<NdArray> {
        elementwise::apply_binary_with_dense(ADD, &self.to_sparse(), b)
    }

    /// Returns the elementwise product with a dense array (`a * b`), computed only at the stored elements of this array. Other elements are
    /// zero.
    ///
    /// # Errors
    /// Shapes that do not broadcast, more than two axes, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.multiply_dense(&array![10.0, 1.0])?.to_dense()?, array![[10.0, 0.0], [20.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn multiply_dense(&self, b: &NdArray) -> Result<SparseArray> {
        elementwise::multiply_or_divide_by_dense(MULTIPLY, &self.to_sparse(), b)
    }

    /// Returns the elementwise quotient by a dense array (`a / b`), computed only at the stored elements of this array. Other elements are
    /// zero, even for `0 / 0`.
    ///
    /// # Errors
    /// Shapes that do not broadcast, more than two axes, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.divide_dense(&array![2.0, 1.0])?.to_dense()?, array![[0.5, 0.0], [1.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn divide_dense(&self, b: &NdArray) -> Result<SparseArray> {
        elementwise::multiply_or_divide_by_dense(DIVIDE, &self.to_sparse(), b)
    }

    /// Returns each element multiplied by a number (`a * s`). Zeros that are not stored remain zero, even if the number is infinite or NaN.
    ///
    /// # Errors
    /// A number that the dtype cannot hold.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.scale(2)?.to_dense()?, array![[2.0, 0.0], [4.0, 6.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn scale(&self, factor: impl Into<Scalar>) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::apply_binary_with_scalar(MULTIPLY, &self.to_sparse(), factor.into(), false)
    }

    /// Returns the stored elements raised to a power (`a ** exponent`). Repeated elements are added first. Zeros that are not stored remain
    /// zero, even for a negative exponent.
    ///
    /// # Errors
    /// The exponent 0, for which zeros become one, and a negative int as the exponent of integers.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.power(2)?.to_dense()?, array![[1.0, 0.0], [4.0, 9.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.power(self, n, dtype=None)", call = eval_methods::power)]
    fn power(&self, exponent: impl Into<Scalar>) -> Result<SparseArray>
    where
        Self: Sized,
    {
        elementwise::power_of_stored_elements(&self.to_sparse(), exponent.into())
    }

    /// Returns the array without stored zeros (`.eliminate_zeros()`).
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.scale(0)?.eliminate_zeros()?.nnz(), 0);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn eliminate_zeros(&self) -> Result<SparseArray> {
        elementwise::eliminate_zeros(&self.to_sparse())
    }

    /// Returns the sum of all elements, or the sums along an axis (`.sum(axis)`), as a dense array.
    ///
    /// Integers and bools are added in int64 or uint64, as NumPy does.
    ///
    /// # Errors
    /// An axis out of bounds.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.sum(1)?, array![1.0, 5.0]);
    /// assert_eq!(a.sum(())?.item()?, 6.0);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.sum(self, axis=None, dtype=None)", call = eval_methods::sum)]
    fn sum(&self, axis: impl Into<Axes>) -> Result<NdArray>
    where
        Self: Sized,
    {
        reductions::sum(&self.to_sparse(), axis)
    }

    /// Returns the mean of all elements, or the means along an axis (`.mean(axis)`), as a dense array.
    ///
    /// # Errors
    /// An axis out of bounds.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.mean(0)?, array![1.5, 1.5]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.mean(self, axis=None, dtype=None)", call = eval_methods::mean)]
    fn mean(&self, axis: impl Into<Axes>) -> Result<NdArray>
    where
        Self: Sized,
    {
        reductions::mean(&self.to_sparse(), axis)
    }

    /// Returns the largest element, or the largest elements along an axis (`.max(axis)`), as a dense array. If an element is NaN, the
    /// result is NaN.
    ///
    /// SciPy returns a sparse array for an axis.
    ///
    /// # Errors
    /// An axis out of bounds, or an axis without elements.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.max(0)?, array![2.0, 3.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.max(self, axis=None)", call = eval_methods::max)]
    fn max(&self, axis: impl Into<Axes>) -> Result<NdArray>
    where
        Self: Sized,
    {
        reductions::minimum_or_maximum(&self.to_sparse(), axis, true)
    }

    /// Returns the smallest element, or the smallest elements along an axis (`.min(axis)`), as a dense array. If an element is NaN, the
    /// result is NaN.
    ///
    /// SciPy returns a sparse array for an axis.
    ///
    /// # Errors
    /// An axis out of bounds, or an axis without elements.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.min(0)?, array![1.0, 0.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.min(self, axis=None)", call = eval_methods::min)]
    fn min(&self, axis: impl Into<Axes>) -> Result<NdArray>
    where
        Self: Sized,
    {
        reductions::minimum_or_maximum(&self.to_sparse(), axis, false)
    }

    /// Returns the int64 number of nonzero elements, of the array or along an axis (`.count_nonzero(axis)`).
    ///
    /// # Errors
    /// An axis out of bounds.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.count_nonzero(1)?, array![1i64, 2]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.count_nonzero(self, axis=None)", call = eval_methods::count_nonzero)]
    fn count_nonzero(&self, axis: impl Into<Axes>) -> Result<NdArray>
    where
        Self: Sized,
    {
        reductions::nonzero_count(&self.to_sparse(), axis)
    }

    /// Returns the diagonal `k` as a dense array (`.diagonal(k)`). A positive `k` is above the main diagonal.
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.diagonal(0)?, array![1.0, 3.0]);
    /// assert_eq!(a.diagonal(-1)?, array![2.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.diagonal(self, k=0)", call = eval_methods::diagonal)]
    fn diagonal(&self, k: i64) -> Result<NdArray> {
        reductions::diagonal(&self.to_sparse(), k)
    }

    /// Returns a norm of the array, or of each row or column (`scipy.sparse.linalg.norm`).
    ///
    /// # Errors
    /// An axis out of bounds.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, NormOrder, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.norm(NormOrder::One, None)?.item()?, 3.0);
    /// assert_eq!(a.norm(NormOrder::Infinity, Some(1))?, array![1.0, 3.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn norm(&self, order: NormOrder, axis: Option<isize>) -> Result<NdArray> {
        reductions::norm(&self.to_sparse(), order, axis)
    }

    /// Returns the elements on and below diagonal `k` (`scipy.sparse.tril`).
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.tril(-1)?.to_dense()?, array![[0.0, 0.0], [2.0, 0.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn tril(&self, k: i64) -> Result<SparseArray> {
        slicing::extract_triangle(&self.to_sparse(), k, true)
    }

    /// Returns the elements on and above diagonal `k` (`scipy.sparse.triu`).
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse, SparseMath};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.triu(0)?.to_dense()?, array![[1.0, 0.0], [0.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn triu(&self, k: i64) -> Result<SparseArray> {
        slicing::extract_triangle(&self.to_sparse(), k, false)
    }
}

impl<T: Sparse> SparseMath for T {}
