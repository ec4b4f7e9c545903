//! Host memory that arrays take, lend and return without a copy.

use cuprum_backend_cpu as _;
use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Complex, DType, Element, Error, Layout, NdArray, Result, bf16, f16, s};

use crate::on_cpu;

fn round_trip<T: Element>(values: [T; 6]) -> Result<()> {
    let mut vector = Vec::with_capacity(40);
    vector.extend(values);
    let address = vector.as_ptr();
    let a = NdArray::from_vec(vector, [2, 3])?;
    assert_eq!((a.dtype(), a.shape()), (T::DTYPE, &[2, 3][..]));
    assert_eq!((a.as_slice::<T>()?.as_ptr(), a.as_slice::<T>()?), (address, &values[..]), "{}", T::DTYPE);
    assert_eq!(a.index(s![1])?.as_slice::<T>()?, &values[3..]);
    let back = a.into_vec::<T>()?;
    assert_eq!((back.as_ptr(), back.capacity(), &back[..]), (address, 40, &values[..]), "{}", T::DTYPE);
    Ok(())
}

#[test]
fn vectors_of_every_element_type_move_in_and_out() {
    on_cpu(|| {
        round_trip([true, false, false, true, true, false])?;
        round_trip([1i8, 2, 3, 4, 5, 6])?;
        round_trip([1i16, 2, 3, 4, 5, 6])?;
        round_trip([1i32, 2, 3, 4, 5, 6])?;
        round_trip([1i64, 2, 3, 4, 5, 6])?;
        round_trip([1u8, 2, 3, 4, 5, 6])?;
        round_trip([1u16, 2, 3, 4, 5, 6])?;
        round_trip([1u32, 2, 3, 4, 5, 6])?;
        round_trip([1u64, 2, 3, 4, 5, 6])?;
        round_trip([1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(f16::from_f64))?;
        round_trip([1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(bf16::from_f64))?;
        round_trip([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        round_trip([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        round_trip([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(|re| Complex::new(re, -re)))?;
        round_trip([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].map(|re| Complex::new(re, -re)))
    });
}

#[test]
fn slices_and_rust_arrays_are_copied() {
    on_cpu(|| {
        let values = vec![1.0, 2.0, 3.0];
        for a in [NdArray::from_vec(&values, 3)?, NdArray::from_vec(&values[..], 3)?, NdArray::from_vec([1.0, 2.0, 3.0], 3)?] {
            assert_ne!(a.as_slice::<f64>()?.as_ptr(), values.as_ptr());
            assert_eq!(a.into_vec::<f64>()?, values, "memory of the pool is copied");
        }
        let boxed = values.clone().into_boxed_slice();
        let address = boxed.as_ptr();
        let back = NdArray::from_vec(boxed, [3, 1])?.into_vec::<f64>()?;
        assert_eq!(back.as_ptr(), address);
        Ok(())
    });
}

#[test]
fn shared_and_rearranged_arrays_return_copies() {
    on_cpu(|| {
        let make = || NdArray::from_vec(vec![1i64, 2, 3, 4, 5, 6], [2, 3]);
        let a = make()?;
        let shared = a.clone();
        let address = a.as_slice::<i64>()?.as_ptr();
        let (copy, last) = (a.into_vec::<i64>()?, shared.into_vec::<i64>()?);
        assert_eq!((copy.as_ptr() == address, last.as_ptr() == address), (false, true));

        assert_eq!(make()?.t()?.into_vec::<i64>()?, [1, 4, 2, 5, 3, 6]);
        assert_eq!(make()?.index(s![1])?.into_vec::<i64>()?, [4, 5, 6]);
        let a = make()?;
        let address = a.as_slice::<i64>()?.as_ptr();
        let first = a.index(s![0])?;
        drop(a);
        let first = first.into_vec::<i64>()?;
        assert_eq!((first.as_ptr(), &first[..], first.capacity()), (address, &[1, 2, 3][..], 6), "the start of the vector");
        Ok(())
    });
}

#[test]
fn a_result_in_place_returns_in_the_vector() {
    on_cpu(|| {
        let values = vec![1.5f64; 10_000];
        let address = values.as_ptr();
        let mut a = NdArray::from_vec(values, [100, 100])?;
        a += 1.0;
        a.assign(s![0, 0], 7.0)?;
        let back = a.into_vec::<f64>()?;
        assert_eq!((back.as_ptr(), back[0], back[9999]), (address, 7.0, 2.5));
        Ok(())
    });
}

#[test]
fn empty_vectors_and_scalars() {
    on_cpu(|| {
        let empty = NdArray::from_vec(Vec::<f64>::new(), [0, 3])?;
        assert_eq!((empty.as_slice::<f64>()?, empty.shape()), (&[][..], &[0, 3][..]));
        assert_eq!(empty.subtract(1.0)?.sum(())?.item()?, 0.0);
        assert!(empty.into_vec::<f64>()?.is_empty());
        let reserved = NdArray::from_vec(Vec::<bool>::with_capacity(9), 0)?;
        assert!(reserved.logical_not()?.to_vec::<bool>()?.is_empty());
        assert_eq!(reserved.into_vec::<bool>()?.capacity(), 9);
        let zero_dimensional = NdArray::from_vec(vec![5u8], ())?;
        assert_eq!((zero_dimensional.as_slice::<u8>()?, zero_dimensional.ndim()), (&[5][..], 0));
        assert_eq!(zero_dimensional.into_vec::<u8>()?, [5]);
        Ok(())
    });
}

#[test]
fn borrowed_elements_are_contiguous_and_of_the_dtype() {
    on_cpu(|| {
        let a = NdArray::from_vec(vec![1i32, 2, 3, 4, 5, 6], [2, 3])?;
        assert_eq!((&a + 1).as_slice::<i32>()?, [2, 3, 4, 5, 6, 7], "deferred");
        let message = |e: Error| e.to_string();
        let columns = message(a.t()?.as_slice::<i32>().unwrap_err());
        assert!(columns.contains("[as_slice] strides [1, 3] are not in C order; use contiguous"), "{columns}");
        assert_eq!(a.t()?.contiguous()?.as_slice::<i32>()?, [1, 4, 2, 5, 3, 6]);
        let dtype = message(a.as_slice::<f32>().unwrap_err());
        assert!(dtype.contains("[as_slice] array is int32, asked for float32; use astype"), "{dtype}");
        assert!(message(a.into_vec::<f32>().unwrap_err()).contains("[into_vec]"));
        let count = message(NdArray::from_vec(vec![1, 2, 3], [2, 2]).unwrap_err());
        assert!(count.contains("[from_vec] 3 values given, 4 needed for the shape: (2, 2)"), "{count}");
        Ok(())
    });
}

#[test]
fn arrays_of_vectors_end_on_any_thread() {
    on_cpu(|| {
        let arrays: Vec<NdArray> = (0..8).map(|i| NdArray::from_vec(vec![i as i64; 1000 * i + 1], 1000 * i + 1)).collect::<Result<_>>()?;
        std::thread::scope(|scope| {
            for (i, a) in arrays.into_iter().enumerate() {
                scope.spawn(move || match i % 2 {
                    0 => drop(a),
                    _ => assert_eq!(a.into_vec::<i64>().unwrap(), vec![i as i64; 1000 * i + 1]),
                });
            }
        });
        Ok(())
    });
}

#[test]
fn buffers_of_host_memory_become_arrays() {
    on_cpu(|| {
        let columns = HostBuffer::from_vec(vec![1u16, 2, 3, 4, 5, 6]);
        let address = columns.as_ptr();
        let a = NdArray::from_host_buffer(DType::U16, Layout::strided(&[3, 2], &[1, 3], 0)?, columns)?;
        assert_eq!((a.to_vec::<u16>()?, a.strides()?), (vec![1, 4, 2, 5, 3, 6], vec![1, 3]));
        assert_eq!(a.t()?.as_slice::<u16>()?.as_ptr().cast(), address);

        let outside = NdArray::from_host_buffer(DType::U16, Layout::contiguous(&[4])?, HostBuffer::from_vec(vec![1u16, 2, 3]));
        assert!(matches!(outside, Err(Error::Shape { .. })));
        let bytes = || HostBuffer::from_vec(vec![0u8, 1, 2, 1]);
        let not_bools = NdArray::from_host_buffer(DType::Bool, Layout::contiguous(&[4])?, bytes());
        assert!(not_bools.unwrap_err().to_string().contains("bytes other than 0 and 1"));
        let mut normalized = bytes();
        normalized.normalize_bools()?;
        let a = NdArray::from_host_buffer(DType::Bool, Layout::contiguous(&[4])?, normalized)?;
        assert_eq!(a.into_vec::<bool>()?, [false, true, true, true]);
        Ok(())
    });
}

#[test]
fn a_vector_returns_as_another_type_of_equal_layout_only() {
    let mut buffer = HostBuffer::from_vec(vec![1.0f32, -2.0]);
    assert!(buffer.take_vec::<u16>(2).is_none() && buffer.take_vec::<f64>(1).is_none(), "another alignment");
    assert!(buffer.take_vec::<f32>(3).is_none(), "too few elements");
    assert_eq!(buffer.take_vec::<u32>(2), Some(vec![1.0f32.to_bits(), (-2.0f32).to_bits()]));
    assert_eq!((buffer.nbytes(), buffer.as_bytes()), (0, &[][..]));
    let mut bytes = HostBuffer::from_vec(vec![0u8, 1, 2]);
    assert!(bytes.take_vec::<bool>(3).is_none(), "2 is no bool");
    let mut pooled = HostBuffer::from_slice(&[1.0f32]).unwrap();
    assert!(pooled.take_vec::<f32>(1).is_none(), "memory of the pool");
}
