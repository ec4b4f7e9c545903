//! Compressed formats: [`CsrArray`] by rows, and [`CscArray`] by columns.

use cuprum_core::{Array, DType, Device, NdArray, Result};

use crate::compressed::CompressedMatrix;
use crate::coo::CooArray;
use crate::index_and_value_arrays::index_dtype_for_extents;

/// A sparse array in compressed row format (`scipy.sparse.csr_array`).
///
/// Row i has the elements `data[indptr[i]..indptr[i + 1]]` in the columns `indices[indptr[i]..indptr[i + 1]]`. Products with dense arrays,
/// reductions and slices of rows are fastest in this format. Columns may be in any order within a row. If columns repeat within a row,
/// operations add their elements. A clone shares all memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let a = CsrArray::new(&array![1.0, 2.0, 3.0], &array![0, 2, 1], &array![0, 2, 3], [2, 3])?;
/// assert_eq!(a.to_dense()?, array![[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]);
/// assert_eq!(a.matmul(&array![1.0, 1.0, 1.0])?, array![3.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CsrArray {
    pub(crate) inner: CompressedMatrix,
    shape: [usize; 2],
}

/// A sparse array in compressed column format (`scipy.sparse.csc_array`).
///
/// Column j has the elements `data[indptr[j]..indptr[j + 1]]` in the rows `indices[indptr[j]..indptr[j + 1]]`. Slices of columns are
/// fastest in this format. Products with dense arrays use a CSR copy, which is computed once and cached. A clone shares all memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CscArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let a = CscArray::new(&array![1.0, 2.0, 3.0], &array![0, 1, 0], &array![0, 1, 2, 3], [2, 3])?;
/// assert_eq!(a.to_dense()?, array![[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CscArray {
    /// The elements by column: the matrix compressed along axis 1.
    pub(crate) inner: CompressedMatrix,
    shape: [usize; 2],
}

macro_rules! compressed_format {
    ($Format:ident, $name:literal, [$major:literal, $minor:literal], $lines:literal, $doc_example:literal, $parts_example:literal) => {
        impl $Format {
            #[doc = concat!("Returns the array with the given components (`scipy.sparse.", $name, "((data, indices, indptr), shape=shape)`).")]
            ///
            #[doc = concat!("`data` and `indices` have one element each per stored element, `indptr` has one more than there are ", $lines, ".")]
            /// `indices` and `indptr` keep their dtype if both are int32 or both are int64. Other integers become int32 if they fit, else
            /// int64. `data` is bool, an integer, float32, float64 or complex.
            ///
            /// # Errors
            /// [`Error::Index`](cuprum_core::Error::Index) for an index out of bounds. [`Error::Value`](cuprum_core::Error::Value) for
            /// `indptr` that has another length, does not begin with 0, decreases, or does not end with the number of elements. Arrays that
            /// are not 1-D, lengths that differ, float16 and bfloat16, arrays on different devices.
            ///
            /// # Examples
            /// ```
            /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
            #[doc = $doc_example]
            /// ```
            pub fn new(data: &NdArray, indices: &NdArray, indptr: &NdArray, shape: [usize; 2]) -> Result<$Format> {
                Ok($Format::from_compressed(CompressedMatrix::new($name, data, indices, indptr, [shape[$major], shape[$minor]])?))
            }

            /// Returns the stored elements (`.data`).
            pub fn data(&self) -> &NdArray {
                &self.inner.data
            }

            #[doc = concat!("Returns the index of each stored element within its line (`.indices`). The lines are the ", $lines, ".")]
            pub fn indices(&self) -> &NdArray {
                &self.inner.indices
            }

            #[doc = concat!("Returns the positions at which the ", $lines, " begin and end in `data` and `indices` (`.indptr`).")]
            pub fn indptr(&self) -> &NdArray {
                &self.inner.indptr
            }

            #[doc = concat!("Returns the array without elements (`scipy.sparse.", $name, "(shape, dtype=dtype)`), on the current device.")]
            /// No element is stored, so every element is zero.
            ///
            /// # Errors
            /// float16 and bfloat16, or too little memory for `indptr`.
            pub fn zeros(shape: [usize; 2], dtype: DType) -> Result<$Format> {
                crate::index_and_value_arrays::check_value_dtype($name, dtype)?;
                let device = Device::current()?;
                let index = index_dtype_for_extents(&shape);
                Ok($Format::from_compressed(CompressedMatrix::zeros(device, [shape[$major], shape[$minor]], dtype, index)?))
            }

            /// Returns the nonzero elements of a 2-D array. A 1-D array counts as one row.
            ///
            /// # Errors
            /// An array whose number of axes is not 1 or 2, float16 and bfloat16.
            pub fn from_dense(a: &NdArray) -> Result<$Format> {
                Ok($Format::from_compressed(CooArray::from_dense(a)?.to_compressed($major)?))
            }

            /// Returns whether the indices ascend within each row (CSR) or column (CSC) (`.has_sorted_indices`).
            ///
            /// # Errors
            /// Errors of the device.
            pub fn has_sorted_indices(&self) -> Result<bool> {
                self.inner.is_sorted()
            }

            /// Returns whether the indices ascend without repetition within each row (CSR) or column (CSC) (`.has_canonical_format`).
            ///
            /// # Errors
            /// Errors of the device.
            pub fn has_canonical_format(&self) -> Result<bool> {
                self.inner.is_canonical()
            }

            /// Returns the array with ascending indices within each row (CSR) or column (CSC) (`.sorted_indices()`).
            ///
            /// # Errors
            /// Errors of the device, such as too little memory.
            pub fn sorted_indices(&self) -> Result<$Format> {
                Ok($Format::from_compressed(self.inner.sort_indices()?))
            }

            /// Returns the array with ascending indices and repeated elements added (`.sum_duplicates()`).
            ///
            /// # Errors
            /// Errors of the device, such as too little memory.
            #[doc = concat!("\n# Examples\n```\n# use cuprum_backend_cpu as _;\n# mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } }\n", $parts_example, "\n```")]
            pub fn sum_duplicates(&self) -> Result<$Format> {
                Ok($Format::from_compressed(self.inner.to_canonical()?))
            }

            pub(crate) fn from_compressed(inner: CompressedMatrix) -> $Format {
                let extents = [inner.major, inner.minor];
                $Format { inner, shape: [extents[$major], extents[$minor]] }
            }
        }

        impl Array for $Format {
            fn dtype(&self) -> DType {
                self.inner.data.dtype()
            }
            fn shape(&self) -> &[usize] {
                &self.shape
            }
            fn device(&self) -> Device {
                self.inner.device()
            }
            fn to_device(&self, device: Device) -> Result<$Format> {
                Ok($Format::from_compressed(self.inner.to_device(device)?))
            }
            /// Returns the number of stored elements. SciPy defines `size` in the same way.
            fn size(&self) -> usize {
                self.inner.nnz()
            }
            /// Returns the total size of `data`, `indices` and `indptr` in bytes.
            fn nbytes(&self) -> usize {
                self.inner.nbytes()
            }
        }
    };
}

compressed_format!(
    CsrArray,
    "csr_array",
    [0, 1],
    "rows",
    "use cuprum::array;\nuse cuprum::sparse::CsrArray;\n# fn main() -> cuprum::Result<()> {\nlet error = CsrArray::new(&array![1.0], &array![3], &array![0, 1], [1, 3]).unwrap_err();\nassert!(error.to_string().contains(\"index 3 is out of bounds\"));\n# Ok(())\n# }",
    "use cuprum::array;\nuse cuprum::sparse::CsrArray;\n# fn main() -> cuprum::Result<()> {\nlet a = CsrArray::new(&array![1.0, 2.0, 4.0], &array![1, 0, 1], &array![0, 3], [1, 2])?;\nassert_eq!(a.sum_duplicates()?.data(), &array![2.0, 5.0]);\n# Ok(())\n# }"
);
compressed_format!(
    CscArray,
    "csc_array",
    [1, 0],
    "columns",
    "use cuprum::array;\nuse cuprum::sparse::CscArray;\n# fn main() -> cuprum::Result<()> {\nlet error = CscArray::new(&array![1.0], &array![0], &array![0, 2], [3, 1]).unwrap_err();\nassert!(error.to_string().contains(\"must end with the number of elements\"));\n# Ok(())\n# }",
    "use cuprum::array;\nuse cuprum::sparse::CscArray;\n# fn main() -> cuprum::Result<()> {\nlet a = CscArray::new(&array![1.0, 2.0, 4.0], &array![1, 0, 1], &array![0, 3], [2, 1])?;\nassert_eq!(a.sum_duplicates()?.indices(), &array![0, 1]);\n# Ok(())\n# }"
);
