//! Conversions between formats, to dense arrays, and transposes.

use cuprum_core::{DType, NdArray, Result};

use crate::compressed::CompressedMatrix;
use crate::{BsrArray, CooArray, CscArray, CsrArray, DiaArray, Format, SparseArray};

/// Converts an array to CSR storage.
pub(crate) fn to_compressed_rows(a: &SparseArray) -> Result<CompressedMatrix> {
    match a {
        SparseArray::Csr(a) => Ok(a.inner.clone()),
        SparseArray::Csc(a) => a.inner.compressed_along_other_axis(),
        SparseArray::Coo(a) => a.to_compressed(0),
        SparseArray::Bsr(a) => a.to_compressed(),
        SparseArray::Dia(a) => a.to_compressed(),
    }
}

pub(crate) fn to_csr(a: &SparseArray) -> Result<CsrArray> {
    Ok(CsrArray::from_compressed(to_compressed_rows(a)?))
}

pub(crate) fn to_csc(a: &SparseArray) -> Result<CscArray> {
    match a {
        SparseArray::Csc(a) => Ok(a.clone()),
        other => Ok(CscArray::from_compressed(to_compressed_rows(other)?.compressed_along_other_axis()?)),
    }
}

pub(crate) fn to_coo(a: &SparseArray) -> Result<CooArray> {
    let shape = a.extents();
    match a {
        SparseArray::Coo(a) => Ok(a.clone()),
        SparseArray::Csc(a) => {
            let columns = a.inner.major_indices()?.astype(a.inner.indices.dtype())?;
            CooArray::from_parts_unchecked(a.inner.data.clone(), a.inner.indices.clone(), columns, shape)
        }
        other => {
            let rows = to_compressed_rows(other)?;
            CooArray::from_parts_unchecked(
                rows.data.clone(),
                rows.major_indices()?.astype(rows.indices.dtype())?,
                rows.indices.clone(),
                shape,
            )
        }
    }
}

pub(crate) fn to_bsr(a: &SparseArray, block: Option<[usize; 2]>) -> Result<BsrArray> {
    match (a, block) {
        (SparseArray::Bsr(a), None) => Ok(a.clone()),
        (SparseArray::Bsr(a), Some(block)) if a.block_shape() == block => Ok(a.clone()),
        (other, block) => BsrArray::from_compressed(&to_compressed_rows(other)?, block.unwrap_or([1, 1])),
    }
}

pub(crate) fn to_dia(a: &SparseArray) -> Result<DiaArray> {
    match a {
        SparseArray::Dia(a) => Ok(a.clone()),
        other => DiaArray::from_compressed(&to_compressed_rows(other)?),
    }
}

/// Converts the array to `format`. If `format` is BSR, an array of another format gets blocks of shape (1, 1).
pub(crate) fn to_format(a: &SparseArray, format: Format) -> Result<SparseArray> {
    Ok(match format {
        Format::Csr => to_csr(a)?.into(),
        Format::Csc => to_csc(a)?.into(),
        Format::Coo => to_coo(a)?.into(),
        Format::Bsr => to_bsr(a, None)?.into(),
        Format::Dia => to_dia(a)?.into(),
    })
}

pub(crate) fn to_dense(a: &SparseArray) -> Result<NdArray> {
    match a {
        SparseArray::Csc(a) => a.inner.to_dense("toarray")?.t()?.contiguous(),
        other => to_compressed_rows(other)?.to_dense("toarray"),
    }
}

/// Returns the transpose. CSR becomes CSC and CSC becomes CSR without a copy.
pub(crate) fn transpose(a: &SparseArray) -> Result<SparseArray> {
    let shape = a.extents();
    Ok(match a {
        SparseArray::Csr(a) => CscArray::from_compressed(a.inner.clone()).into(),
        SparseArray::Csc(a) => CsrArray::from_compressed(a.inner.clone()).into(),
        SparseArray::Coo(a) => {
            CooArray::from_parts_unchecked(a.data().clone(), a.column().clone(), a.row().clone(), [shape[1], shape[0]])?.into()
        }
        SparseArray::Bsr(a) => a.transpose_blocks()?.into(),
        SparseArray::Dia(a) => {
            // Element (i, j) of diagonal k is stored at index j of its row in `data`. In the transpose, it belongs to diagonal -k and is
            // stored at index i. The diagonals are therefore rebuilt from a CSR copy.
            let rows = a.to_compressed()?;
            DiaArray::from_compressed(&rows.compressed_along_other_axis()?)?.into()
        }
    })
}

pub(crate) fn astype(a: &SparseArray, dtype: DType) -> Result<SparseArray> {
    crate::index_and_value_arrays::check_value_dtype("astype", dtype)?;
    if a.data().dtype() == dtype { Ok(a.clone()) } else { a.with_data(a.data().astype(dtype)?) }
}
