//! Selections by CUB, compared with filters on the host.

use cuprum_core::{Complex, DType, NdArray, broadcast_to, f16, flatnonzero, full, s};

use crate::{numbers, on_device, served};

/// Sizes near multiples of a warp and of tiles of `tile` elements.
fn edges(tile: usize) -> [usize; 9] {
    [1, 31, 33, tile - 1, tile, tile + 1, 2 * tile, 35 * tile + 7, 100_003]
}

#[test]
fn selections_at_every_size() {
    on_device(|| {
        for n in edges(384 * 16).into_iter().chain(edges(384 * 10)) {
            let x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
            let a = NdArray::from_slice(&x)?;
            // Selects all, none, half and 1 % of the elements.
            for above in [-2.0f32, 2.0, 0.0, 0.98] {
                let want: Vec<f32> = x.iter().copied().filter(|x| *x > above).collect();
                let indices: Vec<i64> = (0..n as i64).filter(|i| x[*i as usize] > above).collect();
                let what = format!("{} of {n}", want.len());
                assert!(served::<f32>(|| a.extract(&a.greater(above)?))? == want, "{what}");
                assert!(served::<i64>(|| flatnonzero(&a.greater(above)?))? == indices, "{what}");
                let mask = a.greater(above)?.eval()?.clone();
                assert!(served::<f32>(|| a.extract(&mask))? == want, "{what}");
                let wide = a.astype(DType::F64)?.eval()?.clone();
                let want: Vec<f64> = want.iter().map(|x| f64::from(*x)).collect();
                assert!(served::<f64>(|| wide.extract(&mask))? == want, "{what}");
            }
        }
        Ok(())
    });
}

#[test]
fn selections_of_every_element_size() {
    on_device(|| {
        let n = 10_007;
        let x = numbers(n);
        let mask: Vec<bool> = x.iter().map(|x| *x < 0.25).collect();
        let m = NdArray::from_slice(&mask)?;
        let chosen = |i: usize| mask[i];
        let bytes: Vec<u8> = (0..n).map(|i| i as u8).collect();
        let want: Vec<u8> = (0..n).filter(|i| chosen(*i)).map(|i| bytes[i]).collect();
        assert!(served::<u8>(|| NdArray::from_slice(&bytes)?.extract(&m))? == want);
        let halves: Vec<f16> = x.iter().map(|x| f16::from_f64(*x)).collect();
        let want: Vec<f16> = (0..n).filter(|i| chosen(*i)).map(|i| halves[i]).collect();
        assert!(served::<f16>(|| NdArray::from_slice(&halves)?.extract(&m))? == want);
        let complex: Vec<Complex<f64>> = x.iter().map(|x| Complex::new(*x, -x)).collect();
        let want: Vec<Complex<f64>> = (0..n).filter(|i| chosen(*i)).map(|i| complex[i]).collect();
        assert!(served::<Complex<f64>>(|| NdArray::from_slice(&complex)?.extract(&m))? == want);
        // A broadcast element, and a view with an offset.
        let ones = broadcast_to(&full(1, 1.0f64, DType::F64)?, 100)?;
        assert_eq!(served::<i64>(|| flatnonzero(&ones))?.len(), 100);
        let tail = NdArray::from_slice(&x)?.index(s![1..])?;
        let want: Vec<f64> = x[1..].iter().copied().filter(|x| *x > 0.5).collect();
        assert!(served::<f64>(|| tail.extract(&tail.greater(0.5)?))? == want);
        Ok(())
    });
}
