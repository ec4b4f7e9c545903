//! Every accepted form of numbers, axes, shapes and lists of arrays.

// The tests call forms that clippy would simplify.
#![allow(clippy::bool_comparison, clippy::nonminimal_bool, clippy::neg_cmp_op_on_partial_ord, clippy::needless_borrows_for_generic_args)]
#![allow(clippy::needless_borrow, clippy::op_ref, clippy::redundant_closure, clippy::reversed_empty_ranges)]

use cuprum::function::Function;
use cuprum::*;

fn matrix() -> NdArray {
    arange(0, 6, 1).unwrap().reshape((2, 3)).unwrap()
}

fn i64s(a: &NdArray) -> Vec<i64> {
    a.to_vec().unwrap()
}

#[test]
fn numbers_are_read_from_arrays() -> Result<()> {
    let a = matrix();
    let total = a.sum(())?;
    let (int, float, single): (i64, f64, f32) = (total.item_as()?, total.item_as()?, total.item_as()?);
    assert_eq!((int, float, single), (15, 15.0, 15.0));
    assert_eq!((total.item_as::<u8>()?, total.item_as::<usize>()?, total.item_as::<i128>()?), (15, 15, 15));
    assert_eq!((total.item_as::<f16>()?, total.item_as::<bf16>()?), (f16::from_f32(15.0), bf16::from_f32(15.0)));
    assert_eq!(total.item_as::<Complex<f64>>()?, Complex::new(15.0, 0.0));
    assert!(a.any(())?.item_as::<bool>()?);

    assert_eq!((f64::try_from(&total)?, i32::try_from(total.clone())?), (15.0, 15));
    let item = total.item()?;
    let (as_int, as_complex): (u16, Complex<f32>) = (item.try_into()?, item.try_into()?);
    assert_eq!((as_int, as_complex), (15, Complex::new(15.0, 0.0)));

    let message = |result: Result<i8>| result.unwrap_err().to_string();
    assert!(message((&total * 100).item_as()).contains("[item_as] 1500 is out of range for i8"));
    assert!(message(a.mean(())?.item_as()).contains("2.5 is a float, which i8 cannot hold"));
    assert!(message(a.item_as()).contains("size 1"));
    assert!(total.item_as::<bool>().is_err() && (total * Complex::new(0.0, 1.0)).item_as::<f64>().is_err());
    Ok(())
}

#[test]
fn scalars_compare_with_numbers() -> Result<()> {
    let change = NdArray::scalar(0.25)?.item()?;
    let tolerance = 1e-3f64;
    assert!(!(change < tolerance) && change > 0.2f32 && change >= 0.25 && change <= 1 && change < 1u8);
    assert!(change == 0.25 && 0.25 == change && change != 1i64 && change < f16::ONE && change != Complex::new(0.25, 1.0));
    assert!(matrix().max(())?.item()? == 5usize && 5i8 == matrix().max(())?.item()?);
    assert!(matrix().all(())?.item()? == false);
    assert!(change < matrix().max(())?.item()?);
    Ok(())
}

/// Applies each operator to a number of each type as left and right operand, by value and by reference.
macro_rules! operands {
    ($a:expr, $($number:expr),* $(,)?) => {$({
        let (a, number) = (&$a, $number);
        let by_value = [a + number, number + a, number + a.clone(), a.clone() + number, a * number, number * a, a - number, number - a];
        let reference = &number;
        let by_reference =
            [a + reference, reference + a, reference + a.clone(), a.clone() + reference, a * reference, reference * a, a - reference, reference - a];
        for (value, reference) in by_value.iter().zip(&by_reference) {
            assert_eq!(value.dtype(), reference.dtype());
            assert_eq!(value.to_bytes()?, reference.to_bytes()?);
        }
        let one = NdArray::scalar(number)?.astype(by_value[0].dtype())?;
        assert_eq!((number - a).to_bytes()?, subtract(one, a)?.astype(by_value[0].dtype())?.to_bytes()?);
    })*};
}

#[test]
fn numbers_of_every_type_are_operands() -> Result<()> {
    let a = matrix().astype(DType::F64)?;
    let norm = a.sum(())?.item()?;
    operands!(a, 2i8, 2i16, 2i32, 2i64, 2i128, 2isize, 2u8, 2u16, 2u32, 2u64, 2usize, 0.5f32, 0.5f64, norm);
    operands!(a, f16::from_f32(0.5), bf16::from_f32(0.5), Complex::new(1.0f32, 2.0), Complex::new(1.0f64, 2.0));
    let bits = matrix();
    assert_eq!(i64s(&(1u8 << &bits)), [1, 2, 4, 8, 16, 32]);
    assert_eq!(i64s(&(7i64 & &bits)), i64s(&(&bits & 7)));
    let inverse: NdArray = 1.0 / &a.index(s![1])?;
    assert_eq!(inverse.to_vec::<f64>()?, [1.0 / 3.0, 0.25, 0.2]);
    assert_eq!((true | a.greater(0)?).dtype(), DType::Bool);
    let weights = [0.5f64, 2.0];
    assert_eq!(weights.iter().map(|w| (w * &a).shape().len()).sum::<usize>(), 4);
    Ok(())
}

#[test]
fn axes() -> Result<()> {
    let a = matrix();
    let (both, first) = (vec![0usize, 1], 0usize);
    let slice: &[i64] = &[0, 1];
    let all = [
        a.sum(())?,
        a.sum(None)?,
        a.sum((0, 1))?,
        a.sum((0usize, -1i64))?,
        a.sum([0, 1])?,
        a.sum(&[0u8, 1])?,
        a.sum(slice)?,
        a.sum(&both)?,
        a.sum(both)?,
        a.sum(0..2)?,
        a.sum(0..=1)?,
        a.sum(-2..0)?,
        a.sum(axis((0, 1)))?,
    ];
    assert!(all.iter().all(|total| total.item().unwrap() == 15));
    let rows = [a.sum(0)?, a.sum(first)?, a.sum(0i64)?, a.sum(-2isize)?, a.sum(0u32)?, a.sum((0,))?, a.sum(Some(0))?, a.sum([0])?];
    assert!(rows.iter().all(|sums| i64s(sums) == [3, 5, 7]));
    assert_eq!(a.sum([0usize; 0])?.shape(), [2, 3]);
    assert!(a.sum(usize::MAX).is_err() && a.sum((0, 0)).is_err() && a.sum(0..usize::MAX).is_err());

    assert_eq!((a.mean(axis(first).keepdims())?.shape(), a.argmax(first)?.shape()), (&[1, 3][..], &[3][..]));
    assert_eq!((i64s(&a.cumsum(first)?), i64s(&a.sort(first)?)), (vec![0, 1, 2, 3, 5, 7], vec![0, 1, 2, 3, 4, 5]));
    assert_eq!((cummax(&a, first)?.shape(), cummin(&a, ())?.shape()), (&[2, 3][..], &[6][..]));
    assert_eq!(i64s(&a.take(&NdArray::from_slice(&[1])?, first)?), [3, 4, 5]);
    assert_eq!(i64s(&a.take(&NdArray::from_slice(&[1])?, None)?), [1]);
    assert_eq!(i64s(&a.compress(&NdArray::from_slice(&[true, false])?, first)?), [0, 1, 2]);
    assert_eq!(linalg::norm(&a, (), first)?.shape(), [3]);
    assert_eq!(topk(&a, 1, 1usize, true)?.0.shape(), [2, 1]);

    assert_eq!((a.expand_dims(1)?.shape(), a.expand_dims((0, -1))?.shape()), (&[2, 1, 3][..], &[1, 2, 3, 1][..]));
    assert_eq!((i64s(&a.flip(0)?), i64s(&flip(&a, ())?)), (vec![3, 4, 5, 0, 1, 2], vec![5, 4, 3, 2, 1, 0]));
    assert_eq!((a.expand_dims(0)?.squeeze(0)?.shape(), a.expand_dims(0)?.squeeze(())?.shape()), (&[2, 3][..], &[2, 3][..]));
    assert_eq!(
        (a.transpose((1, 0))?.shape(), a.transpose(())?.shape(), a.transpose([1usize, 0])?.shape()),
        (&[3, 2][..], &[3, 2][..], &[3, 2][..])
    );
    assert_eq!((a.moveaxis(0, -1)?.shape(), moveaxis(&a, [0, 1], (1usize, 0))?.shape()), (&[3, 2][..], &[3, 2][..]));
    assert_eq!(
        (a.swapaxes(0usize, -1)?.shape(), a.diagonal(0, 0usize, 1)?.shape(), a.trace(0, 0, 1)?.shape()),
        (&[3, 2][..], &[2][..], &[][..])
    );
    let products =
        [tensordot(&a, &a.t()?, 1)?, tensordot(&a, &a.t()?, first + 1)?, tensordot(&a, &a, (1, 1))?, tensordot(&a, &a, ([1], [-1]))?];
    assert!(products.iter().all(|p| i64s(p) == [5, 14, 14, 50]));
    assert!(tensordot(&a, &a, -1).is_err() && a.expand_dims(()).is_err() && stack([&a], usize::MAX).is_err());
    Ok(())
}

#[test]
fn shapes() -> Result<()> {
    let (extents, dims) = (vec![2usize, 3], matrix().shape().to_vec());
    let slice: &[usize] = &[2, 3];
    for a in [
        zeros((2, 3), DType::I64)?,
        zeros([2, 3], DType::I64)?,
        zeros(&[2usize, 3], DType::I64)?,
        zeros(slice, DType::I64)?,
        zeros(&extents, DType::I64)?,
        zeros(extents, DType::I64)?,
        ones(&dims, DType::I64)?,
        full(matrix().shape(), 7, DType::I64)?,
        empty((2, 3), DType::I64)?,
        NdArray::from_vec([1, 2, 3, 4, 5, 6], (2, 3))?,
        NdArray::scalar(1)?.broadcast_to((2, 3))?,
        random::random((2, 3), DType::F64)?,
        matrix().reshape((2, 3))?,
        matrix().reshape((2, -1))?,
        matrix().reshape((2usize, -1))?,
        matrix().reshape([-1, 3])?,
        matrix().reshape(&[2i64, 3])?,
        matrix().reshape(&dims)?,
        matrix().reshape(dims)?,
        matrix().reshape(slice)?,
    ] {
        assert_eq!(a.shape(), [2, 3]);
    }
    assert_eq!(
        (zeros(5, DType::I8)?.shape(), zeros((5,), DType::I8)?.shape(), zeros((), DType::I8)?.shape()),
        (&[5][..], &[5][..], &[][..])
    );
    assert_eq!((matrix().reshape(-1)?.shape(), matrix().reshape(6u8)?.shape()), (&[6][..], &[6][..]));
    assert_eq!(zeros((1, 1, 1, 1, 1, 1, 1, 2), DType::I8)?.ndim(), 8);
    assert!(zeros(usize::MAX, DType::I8).is_err() && matrix().reshape(usize::MAX).is_err() && matrix().reshape((-1, -1)).is_err());
    Ok(())
}

#[test]
fn lists_of_arrays() -> Result<()> {
    let (a, b) = (matrix(), &matrix() + 6);
    let owned = vec![a.clone(), b.clone()];
    let references = [&a, &b];
    for joined in [
        concat(&owned, 0)?,
        concat(owned.iter(), 0)?,
        concat(&owned[..], 0)?,
        concat(owned.clone(), 0)?,
        concat(references, 0)?,
        concat(&references, 0)?,
        concat([a.clone(), b.clone()], 0usize)?,
        concat(&[&a, &b], -2)?,
        concat((0..2).map(|i| &a + 6 * i), 0)?,
        vstack([&a, &b])?,
        vstack(&owned)?,
    ] {
        assert_eq!(i64s(&joined), (0..12).collect::<Vec<_>>());
    }
    assert_eq!(concat([&a, &b], ())?.shape(), [12]);
    assert_eq!((stack(&[&a, &b], 0)?.shape(), stack(&owned, 2usize)?.shape()), (&[2, 2, 3][..], &[2, 3, 2][..]));
    assert_eq!(hstack(&owned)?.shape(), [2, 6]);
    let products =
        [einsum("ij,kj->ik", [&a, &b])?, einsum("ij,kj->ik", &[&a, &b])?, einsum("ij,kj->ik", &owned)?, einsum("ij,kj->ik", owned)?];
    assert!(products.iter().all(|p| i64s(p) == i64s(&matmul(&a, &b.t().unwrap()).unwrap())));
    assert!(stack(Vec::<NdArray>::new(), 0).is_err() && concat([&a, &b], (0, 1)).is_err());
    assert!(concat(std::iter::repeat(&a), 0).unwrap_err().to_string().contains("at most"), "an endless list ends");
    Ok(())
}

/// Joins by a list argument, for the generated call.
///
/// # Errors
/// The errors of `concat`.
#[numpy("joined_for_test(arrays, axis=None)")]
fn joined_for_test(arrays: impl IntoIterator<Item: AsRef<NdArray>>, #[name("axis")] along: impl Into<Axes>) -> Result<NdArray> {
    concat(arrays, along)
}

#[test]
fn declared_functions_read_lists_and_axes() -> Result<()> {
    let (a, joined) = (matrix(), Function::find("joined_for_test").unwrap());
    let list = || Value::tuple([(&a).into(), (&a).into()]);
    assert_eq!(joined.call(vec![list()], vec![])?.array("test")?.shape(), [12]);
    assert_eq!(joined.call(vec![list(), (-1).into()], vec![])?.array("test")?.shape(), [2, 6]);
    let error = joined.call(vec![list(), Value::tuple([0.into(), 1.into()])], vec![]).unwrap_err().to_string();
    assert!(error.contains("takes one axis"), "{error}");
    assert_eq!(joined_for_test([&a, &a], 0)?.shape(), [4, 3]);
    assert_eq!(eval("concat((a, a), axis=None)", [("a", &a)]).unwrap().shape(), [12]);
    assert_eq!(eval("stack([a, a], 2)", [("a", &a)]).unwrap().shape(), [2, 3, 2]);
    assert!(eval("expand_dims(a, None)", [("a", &a)]).is_err());
    Ok(())
}

#[test]
fn options_that_a_function_lacks_are_errors() -> Result<()> {
    let a = matrix();
    let why = |result: Result<NdArray>| result.unwrap_err().to_string();
    assert_eq!(a.var(axis(-1).correction(1))?.to_vec::<f64>()?, [1.0, 1.0]);
    assert_eq!(a.std(axis(()).correction(1.0f32).keepdims())?.shape(), [1, 1]);
    assert_eq!(a.sum(axis(0).dtype(DType::F32).keepdims())?.dtype(), DType::F32);
    assert_eq!(a.sum(axis(0).dtype(DType::Bool))?.dtype(), DType::Bool);
    assert_eq!(why(a.sum(axis(0).correction(1))), "[sum] takes no option 'correction'");
    assert_eq!(why(a.argmin(axis(0).dtype(DType::I32))), "[argmin] takes no option 'dtype'");
    assert_eq!(why(a.cumsum(axis(0).keepdims())), "[cumsum] takes no option 'keepdims'");
    assert_eq!(why(a.max(axis(0).descending())), "[max] takes no option 'descending'");
    assert_eq!(why(a.argsort(axis(0).dtype(DType::I32))), "[argsort] takes no option 'dtype'");
    assert_eq!(why(nansum(&a, axis(0).correction(1))), "[nansum] takes no option 'correction'");
    assert_eq!(why(linalg::norm(&a, (), axis(0).dtype(DType::F32))), "[norm] takes no option 'dtype'");
    Ok(())
}

#[test]
fn iteration() -> Result<()> {
    let a = &matrix() * 2;
    assert_eq!(a.rows()?.map(|row| i64s(&row)).collect::<Vec<_>>(), [[0, 2, 4], [6, 8, 10]]);
    assert_eq!(a.axis_iter(-1)?.rev().map(|column| i64s(&column)).collect::<Vec<_>>(), [[4, 10], [2, 8], [0, 6]]);
    assert_eq!((a.rows()?.len(), a.axis_iter(1usize)?.nth(1).map(|column| i64s(&column))), (2, Some(vec![2, 8])));
    assert_eq!(i64s(&stack(a.rows()?, 0)?), i64s(&a));
    assert_eq!((zeros((0, 3), DType::F32)?.rows()?.count(), zeros((3, 0), DType::F32)?.rows()?.count()), (0, 3));
    assert!(a.axis_iter(2).is_err() && a.sum(())?.rows().unwrap_err().to_string().contains("[rows] axis 0"));
    Ok(())
}

mod without_operator_traits {
    use cuprum::{NdArray, Result};

    #[test]
    fn add_is_fallible() -> Result<()> {
        let (a, other) = (super::matrix(), NdArray::from_slice(&[1, 2])?);
        assert_eq!(super::i64s(&a.add(1)?.subtract(1)?), super::i64s(&a));
        assert!(a.add(&other).is_err() && (&a).add(&other).is_err());
        Ok(())
    }
}

mod with_operator_traits {
    use std::ops::{Add, Mul};

    use cuprum::{NdArray, Result};

    fn twice<'a, T>(x: &'a T) -> T
    where
        &'a T: Add<Output = T>,
    {
        x + x
    }

    fn generic_add<T: Add<i32>>(x: T) -> T::Output {
        x.add(1)
    }

    #[test]
    fn operators_are_not_ambiguous() -> Result<()> {
        let a = super::matrix();
        let from_trait: NdArray = a.clone().add(1);
        let from_reference: NdArray = (&a).add(1)?;
        assert_eq!(super::i64s(&from_trait), super::i64s(&from_reference));
        assert_eq!(super::i64s(&generic_add(a.clone())), super::i64s(&generic_add(&a)));
        assert_eq!(super::i64s(&twice(&a)), super::i64s(&a.mul(2)));
        Ok(())
    }
}

#[test]
fn basic_indices() -> Result<()> {
    let a = arange(0, 24, 1)?.reshape((2, 3, 4))?;
    let (k, n, step) = (1i64, 2usize, 2u8);
    assert_eq!(i64s(&a.index(s![k, 0..=1, ..;step])?), [12, 14, 16, 18]);
    assert_eq!(i64s(&a.index(s![0, ..=n;2, 0])?), [0, 8]);
    assert_eq!(i64s(&a.index(s![1u8, n, -2..=-1])?), [22, 23]);
    assert_eq!((a.index(s![.., NewAxis, Ellipsis, n])?.shape(), a.index(s![])?.shape()), (&[2, 1, 3][..], &[2, 3, 4][..]));
    assert_eq!((a.index(k)?.shape(), a.index(..n - 1)?.shape(), a.index(1..=-1)?.shape()), (&[3, 4][..], &[1, 3, 4][..], &[1, 3, 4][..]));
    let interior = s![0, 1..-1, 1..-1];
    assert_eq!((i64s(&a.index(interior)?), i64s(&a.index(interior)?)), (vec![5, 6], vec![5, 6]));
    let items = [Item::At(0), Item::slice(None, None, -1)];
    assert_eq!(i64s(&a.index(&items)?.index(s![0])?), [8, 9, 10, 11]);
    assert!(a.index(u64::MAX).is_err() && a.index(s![0, 0, 0, 0]).is_err() && a.index(s![..;0]).is_err());
    Ok(())
}

#[test]
fn indices_with_arrays() -> Result<()> {
    let a = arange(0, 24, 1)?.reshape((2, 3, 4))?;
    let (rows, columns) = (NdArray::from_slice(&[1i32, 0])?, vec![3u8, 0]);
    assert_eq!(i64s(&a.index(s![&rows, 0, columns.clone()])?), [15, 0]);
    assert_eq!(i64s(&a.index(s![0, [0, -1], &columns])?), [3, 8]);
    assert_eq!(i64s(&a.index(s![&[1], 2, ..])?), [20, 21, 22, 23]);
    assert_eq!((a.index(&rows)?.shape(), a.index(s![.., [true, false, true]])?.shape()), (&[2, 3, 4][..], &[2, 2, 4][..]));
    assert_eq!(i64s(&a.index(&a.greater(21)?)?), [22, 23]);
    assert_eq!(i64s(&a.index(s![&a.greater(21)?])?), [22, 23]);
    assert_eq!(a.index(s![Vec::<i64>::new(), .., 0])?.shape(), [0, 3]);

    let message = |result: Result<NdArray>| result.unwrap_err().to_string();
    assert_eq!(message(a.index(s![[0, 1], [0, 3]])), "[index] index 3 is out of bounds for axis 1 with size 3");
    assert_eq!(message(a.index(s![0, [3]])), "[index] index 3 is out of bounds for axis 1 with size 3");
    assert!(message(a.index(s![[0.5]])).contains("index arrays hold integers or bools"));
    assert!(message(a.index(s![[0, 1], [0, 1, 2]])).contains("could not be broadcast"));
    assert!(message(a.index(s![.., [true, false]])).contains("the extent of axis 1 is 3, but that of the mask is 2"));
    assert!(a.index(s![&rows, &rows, &rows, &rows]).is_err());
    assert_eq!(
        (a.index(&NdArray::scalar(true)?)?.shape(), a.index(&NdArray::scalar(false)?)?.shape()),
        (&[1, 2, 3, 4][..], &[0, 2, 3, 4][..])
    );
    Ok(())
}

#[test]
fn assignment_by_arrays() -> Result<()> {
    let a = matrix();
    let assigned = |index: &[IndexItem], value: Operand| -> Result<Vec<i64>> {
        let mut copy = a.clone();
        copy.assign(index, value)?;
        copy.to_vec()
    };
    assert_eq!(assigned(s![&a.greater(3)?], 0.into())?, [0, 1, 2, 3, 0, 0]);
    assert_eq!(assigned(s![[false, true]], 7.into())?, [0, 1, 2, 7, 7, 7]);
    assert_eq!(assigned(s![&a.less(2)?], NdArray::from_slice(&[8, 9])?.into())?, [8, 9, 2, 3, 4, 5]);
    assert_eq!(assigned(s![.., [0, -1]], NdArray::from_slice(&[8, 9])?.into())?, [8, 1, 9, 8, 4, 9]);
    assert_eq!(
        assigned(s![[1, 0, 1], [2, 1, 2]], NdArray::from_slice(&[7, 8, 9])?.into())?,
        [0, 8, 2, 3, 4, 9],
        "the last value is stored"
    );
    assert_eq!(assigned(s![Vec::<i64>::new()], 1.into())?, i64s(&a));
    let mut columns = a.clone();
    columns.assign(s![.., 0..=1], &NdArray::from_slice(&[10, 20])?.expand_dims(1)?)?;
    assert_eq!((i64s(&columns), i64s(&a)), (vec![10, 10, 2, 20, 20, 5], vec![0, 1, 2, 3, 4, 5]));
    assert!(assigned(s![[2]], 0.into()).is_err() && assigned(s![[0, 1]], NdArray::from_slice(&[1, 2])?.into()).is_err());
    Ok(())
}
