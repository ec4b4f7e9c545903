//! Sparse arrays in `.npz` files, in SciPy's layout.

use std::path::Path;

use cuprum_core::{Array, DType, Error, NdArray, Result, with_device};
use cuprum_io::{Npz, save_npz_with_texts};

use crate::{BsrArray, CooArray, CscArray, CsrArray, DiaArray, Format, Sparse, SparseArray};

/// Writes a sparse array to a `.npz` file (`scipy.sparse.save_npz`), which SciPy reads as a sparse array.
///
/// The file appears under its name only when it is complete.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be written, and errors of the device.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, Sparse, load_npz, save_npz};
/// let path = std::env::temp_dir().join(format!("cuprum-doc-sparse-{}.npz", std::process::id()));
/// let a = CsrArray::from_dense(&array![[1.0, 0.0], [0.0, 2.0]])?;
/// save_npz(&path, &a, true)?;
/// assert_eq!(load_npz(&path)?.to_dense()?, a.to_dense()?);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), cuprum::Error>(())
/// ```
pub fn save_npz(path: impl AsRef<Path>, a: &impl Sparse, compressed: bool) -> Result<()> {
    let a = a.to_sparse();
    let shape: Vec<i64> = a.shape().iter().map(|&n| n as i64).collect();
    let (shape, is_array) = with_device(cuprum_core::Device::CPU, || -> Result<_> {
        Ok((NdArray::from_slice(&shape)?, NdArray::scalar_as(true, DType::Bool)?))
    })?;
    let mut arrays = match &a {
        SparseArray::Csr(a) => vec![("indices", a.indices()), ("indptr", a.indptr())],
        SparseArray::Csc(a) => vec![("indices", a.indices()), ("indptr", a.indptr())],
        SparseArray::Bsr(a) => vec![("indices", a.indices()), ("indptr", a.indptr())],
        SparseArray::Coo(a) => vec![("row", a.row()), ("col", a.column())],
        SparseArray::Dia(a) => vec![("offsets", a.offsets())],
    };
    arrays.extend([("shape", &shape), ("data", a.data()), ("_is_array", &is_array)]);
    save_npz_with_texts(path, &arrays, &[("format", a.format().name())], compressed)
}

/// Reads a sparse array from a `.npz` file onto the current device (`scipy.sparse.load_npz`). SciPy's sparse arrays and matrices can both
/// be read.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, damaged or of another layout. The errors of the constructors for invalid components, and
/// [`Error::OutOfMemory`].
///
/// # Examples
/// See [`save_npz`].
pub fn load_npz(path: impl AsRef<Path>) -> Result<SparseArray> {
    let path = path.as_ref();
    let file = Npz::open(path)?;
    if !file.names().any(|name| name == "format") {
        return Err(Error::io(path, "the file has no sparse array: no array is named 'format'"));
    }
    let format = Format::parse(&file.read_text("format")?).map_err(|e| Error::io(path, e))?;
    let shape = file.read("shape")?;
    if !shape.dtype().is_int() || shape.shape() != [2] {
        return Err(Error::io(path, format!("'shape' must be two integers, not {} of shape {:?}", shape.dtype(), shape.shape())));
    }
    let extents = shape.astype(DType::I64)?.to_vec::<i64>()?;
    let [Ok(rows), Ok(columns)] = [usize::try_from(extents[0]), usize::try_from(extents[1])] else {
        return Err(Error::io(path, format!("'shape' has a negative extent: ({}, {})", extents[0], extents[1])));
    };
    let (data, shape) = (file.read("data")?, [rows, columns]);
    let made = match format {
        Format::Csr => CsrArray::new(&data, &file.read("indices")?, &file.read("indptr")?, shape)?.into(),
        Format::Csc => CscArray::new(&data, &file.read("indices")?, &file.read("indptr")?, shape)?.into(),
        Format::Bsr => BsrArray::new(&data, &file.read("indices")?, &file.read("indptr")?, shape)?.into(),
        Format::Dia => DiaArray::new(&data, &file.read("offsets")?, shape)?.into(),
        Format::Coo => {
            let [row, column] = match file.names().any(|name| name == "coords") {
                true => {
                    let coordinates = file.read("coords")?;
                    if coordinates.ndim() != 2 || coordinates.shape()[0] != 2 {
                        return Err(Error::io(path, format!("'coords' must be (2, n), not {:?}", coordinates.shape())));
                    }
                    [coordinates.index(0)?, coordinates.index(1)?]
                }
                false => [file.read("row")?, file.read("col")?],
            };
            CooArray::new(&data, &row, &column, shape)?.into()
        }
    };
    Ok(made)
}
