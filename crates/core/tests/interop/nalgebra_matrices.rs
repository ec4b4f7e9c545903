use cuprum_core::{DType, NdArray, array, zeros};
use nalgebra::{DMatrix, DVector, Matrix2x3};

use crate::on_host;

#[test]
fn matrices_and_vectors_move_in_and_out() {
    on_host(|| {
        let matrix = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let (want, address) = (matrix.clone(), matrix.as_ptr());
        let a = NdArray::from(matrix);
        assert_eq!(a, array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!((a.strides()?, a.t()?.as_slice::<f64>()?.as_ptr()), (vec![1, 2], address));
        let copy = DMatrix::<f64>::try_from(&a)?;
        assert_eq!((copy.as_ptr() == address, &copy), (false, &want));
        let back = DMatrix::<f64>::try_from(a)?;
        assert_eq!((back.as_ptr(), back), (address, want));

        let vector = DVector::from_vec(vec![1u8, 2, 3]);
        let address = vector.as_ptr();
        let a = NdArray::from(vector);
        assert_eq!(a, array![1, 2, 3]);
        assert_eq!(DVector::<u8>::try_from(&a)?, DVector::from_vec(vec![1, 2, 3]));
        let back = DVector::<u8>::try_from(a)?;
        assert_eq!((back.as_ptr(), back), (address, DVector::from_vec(vec![1, 2, 3])));
        Ok(())
    });
}

#[test]
fn other_storage_is_copied() {
    on_host(|| {
        let matrix = Matrix2x3::new(1, 2, 3, 4, 5, 6);
        assert_eq!(NdArray::from_nalgebra(&matrix)?, array![[1, 2, 3], [4, 5, 6]]);
        assert_eq!(NdArray::from_nalgebra(&matrix.columns(1, 2))?, array![[2, 3], [5, 6]]);
        assert_eq!(NdArray::from_nalgebra(&matrix.column(0))?, array![[1], [4]]);
        assert_eq!(DMatrix::<i32>::try_from(array![[1, 2, 3], [4, 5, 6]])?, matrix, "C order");
        assert_eq!(DMatrix::<f32>::try_from(zeros([0, 3], DType::F32)?)?.shape(), (0, 3));
        Ok(())
    });
}

#[test]
fn wrong_dimensions_and_types_are_errors() {
    on_host(|| {
        let error = DMatrix::<i32>::try_from(array![1, 2]).unwrap_err().to_string();
        assert_eq!(error, "[DMatrix] an array of 1 dimensions, asked for 2: (2,)");
        assert!(DMatrix::<i32>::try_from(&array![1, 2]).is_err() && DMatrix::<f32>::try_from(array![[1, 2]]).is_err());
        assert!(DVector::<i32>::try_from(array![[1, 2]]).is_err() && DVector::<f32>::try_from(&array![1, 2]).is_err());
        Ok(())
    });
}
