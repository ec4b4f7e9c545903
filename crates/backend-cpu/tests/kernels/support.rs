//! Inputs in unusual layouts, and a check that results do not depend on the number of threads.

use cuprum_backend_cpu::with_threads;
use cuprum_core::{DType, Device, Element, NdArray, Result, flip, s, with_device};

/// Returns arrays of shape `rows x columns` with elements `value(row, column)`, each in another memory layout, with the layout's name.
pub fn layouts<T: Element>(rows: usize, columns: usize, value: impl Fn(usize, usize) -> T) -> Vec<(&'static str, NdArray)> {
    let make = |shape: [usize; 2], f: &dyn Fn(usize, usize) -> T| {
        let values: Vec<T> = (0..shape[0]).flat_map(|r| (0..shape[1]).map(move |c| (r, c))).map(|(r, c)| f(r, c)).collect();
        NdArray::from_vec(values, shape).unwrap()
    };
    let junk = T::default();
    vec![
        ("contiguous", make([rows, columns], &value)),
        ("transposed", make([columns, rows], &|r, c| value(c, r)).t().unwrap()),
        ("reversed", flip(&make([rows, columns], &|r, c| value(rows - 1 - r, columns - 1 - c)), None).unwrap()),
        (
            "every other",
            make([2 * rows, 2 * columns + 1], &|r, c| if r % 2 == 0 && c % 2 == 1 { value(r / 2, c / 2) } else { junk })
                .index(s![..;2, 1..;2])
                .unwrap(),
        ),
        (
            "a window",
            make([rows + 2, columns + 3], &|r, c| {
                if r >= 1 && r <= rows && c >= 2 && c < columns + 2 { value(r - 1, c - 2) } else { junk }
            })
            .index(s![1..-1, 2..-1])
            .unwrap(),
        ),
    ]
}

/// Runs `f` with 1 and with 4 threads, checks that the results have the same bits, and returns them.
pub fn on_threads(f: impl Fn() -> Result<NdArray>) -> NdArray {
    let run = |threads| with_threads(threads, || with_device(Device::CPU, || f().and_then(|a| a.copy()))).unwrap().unwrap();
    let (one, four) = (run(1), run(4));
    assert_eq!(one.dtype(), four.dtype());
    assert!(one.to_bytes().unwrap() == four.to_bytes().unwrap(), "1 and 4 threads differ");
    one
}

/// Returns `f(row, column)` for all elements of a matrix, in C order.
pub fn matrix<T>(rows: usize, columns: usize, f: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))).map(|(r, c)| f(r, c)).collect()
}

/// Returns the values of an array as float64.
pub fn as_f64(a: &NdArray) -> Vec<f64> {
    a.astype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}
