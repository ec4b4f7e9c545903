//! Select compared with simple loops.

use cuprum_core::{DType, NdArray, arange, broadcast_to, equal, flatnonzero, greater, zeros};

use crate::support::{layouts, on_threads};

const SIZES: [usize; 9] = [1, 63, 64, 65, 2047, 2049, 32_768, 40_001, 300_017];

/// Conditions on an index that are always true, never true and sometimes true.
const CONDITIONS: [fn(usize) -> bool; 6] =
    [|_| true, |_| false, |i| i % 2 == 0, |i| i * 7919 % 13 < 4, |i| i % 5000 == 4999, |i| i / 1000 % 2 == 0];

#[test]
fn masks() {
    for n in SIZES {
        for holds in CONDITIONS {
            let mask = NdArray::from_vec((0..n).map(holds).collect::<Vec<_>>(), n).unwrap();
            let want: Vec<i64> = (0..n).filter(|&i| holds(i)).map(|i| i as i64).collect();
            assert!(on_threads(|| flatnonzero(&mask)).to_vec::<i64>().unwrap() == want, "indices of {n}");
            let a = arange(0, n as i64, 1).unwrap();
            assert!(on_threads(|| a.extract(&mask)).to_vec::<i64>().unwrap() == want, "values of {n}");
        }
    }
}

#[test]
fn every_dtype_keeps_its_bits() {
    let n = 70_001;
    for dtype in DType::ALL {
        let a = arange(0, n, 1).unwrap().remainder(101).unwrap().astype(dtype).unwrap();
        let (bytes, size) = (a.to_bytes().unwrap(), dtype.itemsize());
        for holds in CONDITIONS {
            let mask = NdArray::from_vec((0..n as usize).map(holds).collect::<Vec<_>>(), n as usize).unwrap();
            let got = on_threads(|| a.extract(&mask)).to_bytes().unwrap();
            let want: Vec<u8> = (0..n as usize).filter(|&i| holds(i)).flat_map(|i| &bytes[i * size..][..size]).copied().collect();
            assert!(got == want, "{dtype}");
        }
    }
}

#[test]
fn programs_and_layouts() {
    for (rows, columns) in [(1, 1), (3, 700), (300, 401)] {
        let value = |r: usize, c: usize| ((r * 31 + c * 17) % 100) as i32;
        let flat: Vec<i32> = (0..rows * columns).map(|i| value(i / columns, i % columns)).collect();
        for (name, a) in layouts(rows, columns, value) {
            let got = on_threads(|| a.extract(&greater(&a, 50)?)).to_vec::<i32>().unwrap();
            let want: Vec<i32> = flat.iter().copied().filter(|&v| v > 50).collect();
            assert!(got == want, "{name} {rows} x {columns}");
            let got = on_threads(|| flatnonzero(&equal((&a * 2 + 1).remainder(5)?, 0)?)).to_vec::<i64>().unwrap();
            let want: Vec<i64> = (0..flat.len() as i64).filter(|&i| (flat[i as usize] * 2 + 1) % 5 == 0).collect();
            assert!(got == want, "indices, {name} {rows} x {columns}");
        }
    }
    // Tests a broadcast condition, and an empty one.
    let a = arange(0, 5000, 1).unwrap();
    let yes = broadcast_to(&NdArray::scalar(true).unwrap(), [5000]).unwrap();
    assert_eq!(a.extract(&yes).unwrap().size(), 5000);
    assert_eq!(flatnonzero(&zeros(0, DType::F32).unwrap()).unwrap().size(), 0);
}
