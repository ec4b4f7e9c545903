use cuprum_core::{Complex, DType, Element, NdArray, Result, array, bf16, broadcast_to, f16, flip, s, zeros};
use ndarray::{Array, Array1, Array2, Array3, ArrayD, ArrayView2, Axis, Dimension, Ix2, Ix6, IxDyn, ShapeBuilder, arr0, s as nd};

use crate::on_host;

/// Moves `array` in and out. Checks that neither step copies, and that the elements agree.
fn round_trip<T: Element, D: Dimension>(array: Array<T, D>) -> Result<()> {
    let (want, address) = (array.to_owned(), array.as_ptr());
    let values: Vec<T> = array.iter().copied().collect();
    let text = format!("{:?}", array.raw_dim());
    let is_empty = array.is_empty();
    let a = NdArray::from_ndarray(array)?;
    assert_eq!((a.dtype(), a.shape()), (T::DTYPE, want.shape()), "{text}");
    assert_eq!(a.to_vec::<T>()?, values, "{text}");
    let view = a.view_ndarray::<T>()?;
    assert_eq!(view, want.view().into_dyn(), "{text}");
    assert!(view.as_ptr() == address || is_empty, "{text}: a view is a copy");
    let back: Array<T, D> = a.try_into()?;
    assert_eq!(back, want, "{text}");
    assert!(back.as_ptr() == address || is_empty, "{text}: copied");
    Ok(())
}

#[test]
fn arrays_of_every_layout_move_in_and_out() {
    on_host(|| {
        let cube = || Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as f64);
        round_trip(cube())?;
        round_trip(cube().reversed_axes())?;
        round_trip(cube().permuted_axes([1, 0, 2]))?;
        round_trip(Array2::from_shape_vec((2, 3).f(), vec![1, 2, 3, 4, 5, 6]).unwrap())?;
        for axis in 0..3 {
            let mut reversed = cube();
            reversed.invert_axis(Axis(axis));
            round_trip(reversed)?;
        }
        let mut all = cube().reversed_axes();
        (0..3).for_each(|axis| all.invert_axis(Axis(axis)));
        round_trip(all)?;
        round_trip(cube().slice_move(nd![.., ..2, ..;2]))?;
        round_trip(cube().slice_move(nd![..;-1, .., ..;-3]))?;
        round_trip(Array2::<f32>::zeros((0, 5)))?;
        round_trip(Array2::<f32>::zeros((5, 0)).reversed_axes())?;
        round_trip(arr0(7u8))?;
        round_trip(Array1::from_vec(vec![true, false]))?;
        round_trip(ArrayD::<i16>::from_elem(IxDyn(&[1, 2, 1, 2, 1, 2, 2]), 3))?;
        round_trip(Array::<u16, Ix6>::from_elem((1, 2, 3, 1, 2, 2), 9))
    });
}

#[test]
fn every_element_type_has_its_dtype() {
    on_host(|| {
        round_trip(ndarray::array![1i8, -2])?;
        round_trip(ndarray::array![1u32])?;
        round_trip(ndarray::array![1i64])?;
        round_trip(ndarray::array![1u64])?;
        round_trip(ndarray::array![f16::ONE])?;
        round_trip(ndarray::array![bf16::ONE])?;
        round_trip(ndarray::array![Complex::new(1.0f32, 2.0)])?;
        round_trip(ndarray::array![Complex::new(1.0f64, 2.0)])
    });
}

#[test]
fn arrays_that_begin_within_their_memory_return_as_copies() {
    on_host(|| {
        let part = ndarray::array![[1, 2, 3], [4, 5, 6]].slice_move(nd![1.., 1..]);
        let (want, address) = (part.to_owned(), part.as_ptr());
        let a = NdArray::from_ndarray(part)?;
        assert_eq!(a.view_ndarray::<i32>()?.as_ptr(), address, "not copied in");
        let back = a.into_ndarray::<i32>()?;
        assert_eq!((back.as_ptr() == address, back), (false, want.into_dyn()));
        Ok(())
    });
}

#[test]
fn shared_arrays_and_results_return_as_copies() {
    on_host(|| {
        let matrix = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
        let a = NdArray::from(matrix.clone());
        let b = a.clone();
        assert_ne!(a.into_ndarray::<f64>()?.as_ptr(), b.view_ndarray::<f64>()?.as_ptr());
        assert_eq!((&b * 2.0).into_ndarray::<f64>()?, (&matrix * 2.0).into_dyn(), "memory of the pool");
        assert_eq!(b.t()?.to_ndarray::<f64>()?, matrix.t().to_owned().into_dyn());
        let repeated = broadcast_to(&b, [3, 2, 2])?;
        drop(b);
        assert_eq!(repeated.view_ndarray::<f64>()?, matrix.broadcast((3, 2, 2)).unwrap().into_dyn());
        assert_eq!(repeated.into_ndarray::<f64>()?, matrix.broadcast((3, 2, 2)).unwrap().to_owned().into_dyn());
        let in_place = NdArray::from_ndarray(Array2::from_elem((100, 100), 1.0))?;
        let address = in_place.view_ndarray::<f64>()?.as_ptr();
        let computed = (in_place * 3.0).into_ndarray::<f64>()?;
        assert_eq!((computed.as_ptr(), computed[[99, 99]]), (address, 3.0), "computed in place");
        Ok(())
    });
}

#[test]
fn views_are_copied_in_any_layout() {
    on_host(|| {
        let cube = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
        let check = |view: ndarray::ArrayViewD<i64>| -> Result<()> {
            let a = NdArray::from_view(&view)?;
            assert_eq!((a.shape(), a.to_vec::<i64>()?), (view.shape(), view.iter().copied().collect()));
            assert_eq!(NdArray::try_from(view.view())?, a);
            Ok(())
        };
        check(cube.view().into_dyn())?;
        check(cube.t().into_dyn())?;
        check(cube.slice(nd![..;-1, .., ..;-1]).into_dyn())?;
        check(cube.slice(nd![.., 1.., ..;2]).into_dyn())?;
        check(cube.slice(nd![.., 3.., ..]).into_dyn())?;
        check(cube.broadcast((2, 2, 3, 4)).unwrap().into_dyn())?;
        assert_eq!(NdArray::from_view(&cube.t())?.strides()?, [1, 4, 12], "keeps the order in memory");
        assert_eq!(NdArray::try_from(&cube)?.index(s![0, 0])?, array![0, 1, 2, 3]);
        Ok(())
    });
}

#[test]
fn views_of_arrays_borrow_their_memory() {
    on_host(|| {
        let a = array![[1, 2, 3], [4, 5, 6]];
        let address = a.as_slice::<i32>()?.as_ptr();
        let view: ArrayView2<i32> = (&a).try_into()?;
        assert_eq!((view.as_ptr(), view[[1, 2]]), (address, 6));
        let reversed = flip(&a, None)?;
        assert_eq!(reversed.view_ndarray::<i32>()?, ndarray::array![[6, 5, 4], [3, 2, 1]].into_dyn());
        assert_eq!(a.index(s![.., 1])?.view_ndarray::<i32>()?, ndarray::array![2, 5].into_dyn());
        assert_eq!(zeros([3, 0], DType::F32)?.t()?.view_ndarray::<f32>()?.shape(), [0, 3]);
        Ok(())
    });
}

#[test]
fn wrong_types_and_dimensions_are_errors() {
    on_host(|| {
        let a = array![[1, 2, 3], [4, 5, 6]];
        let dtype = a.view_ndarray::<f32>().unwrap_err().to_string();
        assert!(dtype.contains("[view_ndarray] array is int32, asked for float32"), "{dtype}");
        assert!(a.clone().into_ndarray::<i64>().is_err() && a.to_ndarray::<i64>().is_err());
        let dimensions = Array1::<i32>::try_from(&a).unwrap_err().to_string();
        assert_eq!(dimensions, "[to_ndarray] an array of 2 dimensions, asked for 1: (2, 3)");
        assert!(ndarray::ArrayView1::<i32>::try_from(&a).is_err());
        assert_eq!(Array::<i32, Ix2>::try_from(a)?[[1, 0]], 4);
        let many = ArrayD::<u8>::zeros(vec![1; 65]);
        assert!(NdArray::from_view(&many).is_err() && NdArray::from_ndarray(many.clone()).is_err());
        assert!(NdArray::from(many).to_vec::<u8>().is_err());
        Ok(())
    });
}
