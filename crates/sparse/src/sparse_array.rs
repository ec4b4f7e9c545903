//! A sparse array of any format: [`SparseArray`] and [`Format`].

use cuprum_core::{Array, DType, Device, Error, NdArray, Result};

use crate::{BsrArray, CooArray, CscArray, CsrArray, DiaArray};

/// The storage format of a sparse array, by SciPy's names (`.format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Compressed rows: [`CsrArray`].
    Csr,
    /// Compressed columns: [`CscArray`].
    Csc,
    /// Coordinates: [`CooArray`].
    Coo,
    /// Blocks in compressed rows: [`BsrArray`].
    Bsr,
    /// Diagonals: [`DiaArray`].
    Dia,
}

impl Format {
    /// Returns SciPy's name, such as `csr`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csr => "csr",
            Format::Csc => "csc",
            Format::Coo => "coo",
            Format::Bsr => "bsr",
            Format::Dia => "dia",
        }
    }

    /// Parses the name of a format, such as `csr`.
    ///
    /// # Errors
    /// An unknown name.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_sparse as sparse;
    /// assert_eq!(sparse::Format::parse("csc")?, sparse::Format::Csc);
    /// # Ok::<(), cuprum_core::Error>(())
    /// ```
    pub fn parse(name: &str) -> Result<Format> {
        let all = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::Dia];
        let found = all.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| Error::value("asformat", format!("format '{name}' is unknown; use 'csr', 'csc', 'coo', 'bsr' or 'dia'")))
    }
}

/// A sparse array of any format. Functions whose result format depends on their arguments return this type.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CscArray, Format, Sparse, SparseArray, SparseMath};
/// # fn main() -> cuprum::Result<()> {
/// let a = CscArray::from_dense(&array![[0.0, 1.0], [2.0, 0.0]])?;
/// let sum: SparseArray = a.add(&a)?;
/// assert_eq!(sum.format(), Format::Csc);
/// assert_eq!(sum.to_dense()?, array![[0.0, 2.0], [4.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum SparseArray {
    /// Compressed rows.
    Csr(CsrArray),
    /// Compressed columns.
    Csc(CscArray),
    /// Coordinates.
    Coo(CooArray),
    /// Blocks in compressed rows.
    Bsr(BsrArray),
    /// Diagonals.
    Dia(DiaArray),
}

macro_rules! formats {
    ($($variant:ident($Format:ty)),*) => {
        $(
            impl From<$Format> for SparseArray {
                fn from(a: $Format) -> SparseArray {
                    SparseArray::$variant(a)
                }
            }
        )*

        impl SparseArray {
            fn as_dyn_array(&self) -> &dyn Array {
                match self { $(SparseArray::$variant(a) => a,)* }
            }
        }

        impl Array for SparseArray {
            fn dtype(&self) -> DType {
                self.as_dyn_array().dtype()
            }
            fn shape(&self) -> &[usize] {
                self.as_dyn_array().shape()
            }
            fn device(&self) -> Device {
                self.as_dyn_array().device()
            }
            fn to_device(&self, device: Device) -> Result<SparseArray> {
                Ok(match self { $(SparseArray::$variant(a) => a.to_device(device)?.into(),)* })
            }
            /// Returns the number of stored elements. SciPy defines `size` in the same way.
            fn size(&self) -> usize {
                self.as_dyn_array().size()
            }
            /// Returns the total size in bytes of the arrays that store the elements and their positions.
            fn nbytes(&self) -> usize {
                self.as_dyn_array().nbytes()
            }
        }
    };
}
formats!(Csr(CsrArray), Csc(CscArray), Coo(CooArray), Bsr(BsrArray), Dia(DiaArray));

impl SparseArray {
    /// Returns the format.
    pub fn format(&self) -> Format {
        match self {
            SparseArray::Csr(_) => Format::Csr,
            SparseArray::Csc(_) => Format::Csc,
            SparseArray::Coo(_) => Format::Coo,
            SparseArray::Bsr(_) => Format::Bsr,
            SparseArray::Dia(_) => Format::Dia,
        }
    }

    /// Returns the array of stored values. For BSR and DIA, it includes zeros.
    pub(crate) fn data(&self) -> &NdArray {
        match self {
            SparseArray::Csr(a) => a.data(),
            SparseArray::Csc(a) => a.data(),
            SparseArray::Coo(a) => a.data(),
            SparseArray::Bsr(a) => a.data(),
            SparseArray::Dia(a) => a.data(),
        }
    }

    /// Returns the array with the values `data`, in the same format and structure.
    pub(crate) fn with_data(&self, data: NdArray) -> Result<SparseArray> {
        Ok(match self {
            SparseArray::Csr(a) => CsrArray::from_compressed(a.inner.with_data(data)?).into(),
            SparseArray::Csc(a) => CscArray::from_compressed(a.inner.with_data(data)?).into(),
            SparseArray::Coo(a) => CooArray::from_parts_unchecked(data, a.row().clone(), a.column().clone(), self.extents())?.into(),
            SparseArray::Bsr(a) => a.with_data(data)?.into(),
            SparseArray::Dia(a) => a.with_data(data)?.into(),
        })
    }

    /// Returns the shape: rows and columns.
    pub(crate) fn extents(&self) -> [usize; 2] {
        [self.shape()[0], self.shape()[1]]
    }
}
