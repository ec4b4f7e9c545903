//! The methods that sparse arrays of all formats share: [`Sparse`].

use cuprum_core::ops::linalg::Triangle;
use cuprum_core::{Array, DType, IntoIndex, NdArray, Result, Scalar, numpy};

use crate::{BsrArray, CooArray, CscArray, CsrArray, DiaArray, Format, SparseArray};
use crate::{eval_methods, format_conversion, products_and_triangular_solve, slicing};

/// Conversions, products and slices of sparse arrays of every format. [`SparseMath`](crate::SparseMath) has the arithmetic.
///
/// Arrays are two-dimensional. Their elements are bool, integers, float32, float64 or complex numbers. Elements that are not stored are
/// zeros. Repeated elements of one position are added. The dtypes of results follow NumPy's rules.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CooArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let a = CooArray::new(&array![1.0, 2.0], &array![0, 1], &array![1, 0], [2, 2])?;
/// let b = a.to_csr()?.matmul_sparse(&a)?;
/// assert_eq!(b.to_dense()?, array![[2.0, 0.0], [0.0, 2.0]]);
/// # Ok(())
/// # }
/// ```
pub trait Sparse: Array {
    /// Returns the array as a [`SparseArray`], which shares its memory.
    fn to_sparse(&self) -> SparseArray;

    /// Returns the number of stored elements, stored zeros and repeated elements included (`.nnz`).
    fn nnz(&self) -> usize {
        self.size()
    }

    /// Returns the storage format (`.format`).
    fn format(&self) -> Format {
        self.to_sparse().format()
    }

    /// Returns the array in compressed format by rows (`.tocsr()`). The first call makes a copy, which later calls share.
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_csr()?.indices(), &array![0i32, 0, 1]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.tocsr(self, copy=False)", call = eval_methods::to_csr)]
    fn to_csr(&self) -> Result<CsrArray> {
        format_conversion::to_csr(&self.to_sparse())
    }

    /// Returns the array in compressed format by columns (`.tocsc()`). The first call makes a copy, which later calls share.
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_csc()?.indices(), &array![0i32, 1, 1]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.tocsc(self, copy=False)", call = eval_methods::to_csc)]
    fn to_csc(&self) -> Result<CscArray> {
        format_conversion::to_csc(&self.to_sparse())
    }

    /// Returns the array in coordinate format (`.tocoo()`).
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_coo()?.row(), &array![0i32, 1, 1]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.tocoo(self, copy=True)", call = eval_methods::to_coo)]
    fn to_coo(&self) -> Result<CooArray> {
        format_conversion::to_coo(&self.to_sparse())
    }

    /// Returns the array in blocks of `block` rows and columns (`.tobsr(blocksize=block)`).
    ///
    /// # Errors
    /// A shape that is not a multiple of `block`, or a block extent of 0.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_bsr([2, 2])?.data(), &array![[[1.0, 0.0], [2.0, 3.0]]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.tobsr(self, blocksize=None, copy=False)", call = eval_methods::to_bsr)]
    fn to_bsr(&self, block: [usize; 2]) -> Result<BsrArray> {
        format_conversion::to_bsr(&self.to_sparse(), Some(block))
    }

    /// Returns the array as diagonals (`.todia()`). Each diagonal that contains an element takes memory for all columns.
    ///
    /// # Errors
    /// Too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_dia()?.offsets(), &array![-1i32, 0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.todia(self, copy=False)", call = eval_methods::to_dia)]
    fn to_dia(&self) -> Result<DiaArray> {
        format_conversion::to_dia(&self.to_sparse())
    }

    /// Returns the array in another format (`.asformat(format)`). A conversion to BSR from another format gives blocks of one element.
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Format, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_format(Format::Coo)?.format(), Format::Coo);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.asformat(self, format, copy=False)", call = eval_methods::to_format)]
    fn to_format(&self, format: Format) -> Result<SparseArray> {
        format_conversion::to_format(&self.to_sparse(), format)
    }

    /// Returns the dense array (`.toarray()`).
    ///
    /// # Errors
    /// A shape that is too large for memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.to_dense()?, array![[1.0, 0.0], [2.0, 3.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.toarray(self, order=None)", call = eval_methods::to_dense)]
    fn to_dense(&self) -> Result<NdArray> {
        format_conversion::to_dense(&self.to_sparse())
    }

    /// Returns the transpose (`.T`). CSR becomes CSC and CSC becomes CSR without a copy. COO swaps its row and column indices.
    ///
    /// In `eval`, `axes` is `None` or (1, 0). For a COO array, (0, 1) returns the array unchanged.
    ///
    /// # Errors
    /// Errors of the device, such as too little memory.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Format, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.transpose()?.format(), Format::Csc);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.transpose(self, axes=None, copy=False)", call = eval_methods::transpose)]
    fn transpose(&self) -> Result<SparseArray> {
        format_conversion::transpose(&self.to_sparse())
    }

    /// Returns the array with elements converted to `dtype` (`.astype(dtype)`).
    ///
    /// # Errors
    /// float16 and bfloat16.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::{Array, DType, array};
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.astype(DType::F32)?.dtype(), DType::F32);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.astype(self, dtype)", call = eval_methods::astype)]
    fn astype(&self, dtype: DType) -> Result<SparseArray> {
        format_conversion::astype(&self.to_sparse(), dtype)
    }

    /// Returns the product with a dense vector (n) or matrix (n, k) (`a @ b`).
    ///
    /// Formats other than CSR use a CSR copy, which is computed once and cached. The order of each sum is fixed, so results do not depend
    /// on the number of threads.
    ///
    /// # Errors
    /// A first extent of `b` other than the number of columns, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.matmul(&array![1.0, 2.0])?, array![1.0, 8.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    #[numpy("sparray.dot(self, other)", call = eval_methods::dot)]
    fn matmul(&self, b: &NdArray) -> Result<NdArray> {
        products_and_triangular_solve::matmul_dense(&self.to_sparse(), b)
    }

    /// Returns the product `b @ a` of a dense vector (m) or matrix (k, m) and this array.
    ///
    /// Formats other than CSC use a CSC copy, which is computed once and cached.
    ///
    /// # Errors
    /// A last extent of `b` other than the number of rows, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.rmatmul(&array![1.0, 2.0])?, array![5.0, 6.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn rmatmul(&self, b: &NdArray) -> Result<NdArray> {
        products_and_triangular_solve::matmul_dense_by_sparse(&self.to_sparse(), b)
    }

    /// Returns the product of two sparse arrays (`a @ b`).
    ///
    /// Two CSC arrays give CSC. Two BSR arrays with blocks of shapes (r, k) and (k, c) give BSR. All others give CSR. Indices ascend, and
    /// sums that are zero are stored. The call waits for the device.
    ///
    /// # Errors
    /// Extents that do not match, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.matmul_sparse(&a)?.to_dense()?, array![[1.0, 0.0], [8.0, 9.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn matmul_sparse(&self, b: &impl Sparse) -> Result<SparseArray>
    where
        Self: Sized,
    {
        products_and_triangular_solve::matmul_two_sparse(&self.to_sparse(), &b.to_sparse())
    }

    /// Returns the elements of the dense product `x @ y` at the positions of this array's elements, in CSR format.
    ///
    /// Only the products at these positions are computed. The values of this array are not used.
    ///
    /// # Errors
    /// Factors that are not (rows, k) and (k, columns), or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// let (x, y) = (array![[1.0], [2.0]], array![[10.0, 100.0]]);
    /// assert_eq!(a.sampled_matmul(&x, &y)?.to_dense()?, array![[10.0, 0.0], [20.0, 200.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn sampled_matmul(&self, x: &NdArray, y: &NdArray) -> Result<SparseArray> {
        products_and_triangular_solve::sampled_product(&self.to_sparse(), x, y)
    }

    /// Returns the solution `x` of `a @ x = b` for a triangular array (`scipy.sparse.linalg.spsolve_triangular`).
    ///
    /// `b` is (n) or (n, k). Elements outside `triangle` are not read. Integers and bools are converted to float64.
    ///
    /// # Errors
    /// [`Error::LinAlg`](cuprum_core::Error::LinAlg) for a zero on the diagonal, unless `unit_diagonal`. An array that is not square,
    /// or extents that do not match.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::ops::linalg::Triangle;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.solve_triangular(&array![1.0, 8.0], Triangle::Lower, false)?, array![1.0, 2.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn solve_triangular(&self, b: &NdArray, triangle: Triangle, unit_diagonal: bool) -> Result<NdArray> {
        products_and_triangular_solve::solve_triangular(&self.to_sparse(), b, triangle, unit_diagonal)
    }

    /// Returns the rows and columns that an index selects (`a[rows, columns]`). The result is always 2-D.
    ///
    /// The index of an axis is an integer, a slice, or a 1-D array of integers or bools. CSC arrays give CSC, others CSR. SciPy drops an
    /// axis that is indexed by an integer.
    ///
    /// # Errors
    /// An index out of bounds, a mask of another length than its axis, more than two indices, or index arrays for both axes.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::s;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.index(s![1, ..])?.to_dense()?, array![[2.0, 3.0]]);
    /// assert_eq!(a.index(s![.., array![1, 0]])?.to_dense()?, array![[0.0, 1.0], [3.0, 2.0]]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn index(&self, index: impl IntoIndex) -> Result<SparseArray>
    where
        Self: Sized,
    {
        index.with_index_items(|items| slicing::select_rows_and_columns(&self.to_sparse(), items))
    }

    /// Returns the elements at `(rows[n], columns[n])` as a dense array (`a[rows, columns]`). `rows` and `columns` broadcast.
    ///
    /// # Errors
    /// Indices out of bounds, shapes that do not broadcast, or a shape of more than 2^63 positions.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.values_at(&array![0, 1], &array![1])?, array![0.0, 3.0]);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn values_at(&self, rows: &NdArray, columns: &NdArray) -> Result<NdArray> {
        slicing::values_at(&self.to_sparse(), rows, columns)
    }

    /// Returns the element in a row and a column (`a[row, column]`). Negative numbers count from the end.
    ///
    /// # Errors
    /// An index out of bounds.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::{CsrArray, Sparse};
    /// let a = CsrArray::from_dense(&array![[1.0, 0.0], [2.0, 3.0]])?;
    /// assert_eq!(a.get(1, -1)?.as_f64(), 3.0);
    /// # Ok::<(), cuprum::Error>(())
    /// ```
    fn get(&self, row: isize, column: isize) -> Result<Scalar> {
        slicing::element_as_scalar(&self.to_sparse(), row, column)
    }
}

impl Sparse for SparseArray {
    fn to_sparse(&self) -> SparseArray {
        self.clone()
    }
}

macro_rules! formats {
    ($($Format:ty),*) => {$(
        impl Sparse for $Format {
            fn to_sparse(&self) -> SparseArray {
                self.clone().into()
            }
        }
    )*};
}
formats!(CsrArray, CscArray, CooArray, BsrArray, DiaArray);
