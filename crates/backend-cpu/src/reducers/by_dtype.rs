//! Selection of reduction loops by dtype.

/// Returns the function `$run::<$reducer<T>>` for the type `T` of a dtype. `number` takes all dtypes but bool, and signed integers as
/// unsigned ones, for wrapping arithmetic. `inexact` takes floats, `any` all dtypes; its optional second reducer is that of bool.
macro_rules! by_dtype {
    ($dtype:expr, number, $run:ident, $reducer:ident) => {
        by_dtype!(@ cuprum_cpu_base::views::unsigned_of($dtype), $run, $reducer, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, inexact, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, any, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, any, $run:ident, $reducer:ident, $of_bool:ident) => {
        match $dtype {
            DType::Bool => Some($run::<$of_bool<bool>> as _),
            dtype => by_dtype!(@ dtype, $run, $reducer, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>),
        }
    };
    (@ $dtype:expr, $run:ident, $reducer:ident, $($t:ty),*) => {
        match $dtype {
            $(<$t as Element>::DTYPE => Some($run::<$reducer<$t>> as _),)*
            _ => None,
        }
    };
}

pub(crate) use by_dtype;
