use cuprum_core::{Complex, DType, NdArray, array, zeros};
use faer::{Mat, MatRef, mat};

use crate::on_host;

#[test]
fn matrices_are_copied_both_ways() {
    on_host(|| {
        let matrix = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let a = NdArray::from_faer(matrix.as_ref())?;
        assert_eq!(a, array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(NdArray::try_from(matrix.transpose())?, a.t()?);
        assert_eq!(Mat::<f64>::try_from(&a)?, matrix);
        assert_eq!(Mat::<f64>::try_from(&a.t()?)?, matrix.transpose());
        let z = array![[Complex::new(1.0, -2.0)]];
        assert_eq!(NdArray::from_faer(Mat::<Complex<f64>>::try_from(&z)?.as_ref())?, z);
        assert_eq!(Mat::<f32>::try_from(&zeros([0, 3], DType::F32)?)?.ncols(), 3);
        Ok(())
    });
}

#[test]
fn views_borrow_memory_in_c_order() {
    on_host(|| {
        let a = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let view = MatRef::<f32>::try_from(&a)?;
        assert_eq!((view.as_ptr(), view[(1, 0)]), (a.as_slice::<f32>()?.as_ptr(), 4.0));
        assert!(MatRef::<f32>::try_from(&a.t()?).unwrap_err().to_string().contains("not in C order"));
        Ok(())
    });
}

#[test]
fn wrong_dimensions_and_types_are_errors() {
    on_host(|| {
        assert_eq!(Mat::<i32>::try_from(&array![1, 2]).unwrap_err().to_string(), "[Mat] an array of 1 dimensions, asked for 2: (2,)");
        assert!(Mat::<f32>::try_from(&array![[1, 2]]).is_err() && MatRef::<f32>::try_from(&array![[1, 2]]).is_err());
        Ok(())
    });
}
