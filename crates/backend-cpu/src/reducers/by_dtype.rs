//! Selection of reduction loops by dtype.

/// Returns the function `$run::<$reducer<T>>` for the type `T` of a dtype. `number` takes all dtypes but bool, `inexact` floats, `any`
/// all.
macro_rules! by_dtype {
    ($dtype:expr, number, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, inexact, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, any, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    (@ $dtype:expr, $run:ident, $reducer:ident, $($t:ty),*) => {
        match $dtype {
            $(<$t as Element>::DTYPE => Some($run::<$reducer<$t>> as _),)*
            _ => None,
        }
    };
}

pub(crate) use by_dtype;
