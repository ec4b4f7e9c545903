//! Selection of reduction loops by operation and dtype.

/// Expands to the function `$run::<$reducer<T>>` for the element type `T` of the dtype, or to `None` for other dtypes. The second argument
/// selects the supported dtypes:
///
/// - `number`: all but bool. Signed integers are treated as unsigned integers, for wrapping arithmetic.
/// - `inexact`: floats and complex numbers.
/// - `any`: all. The optional second reducer replaces the first one for bool.
///
/// None of these lists includes 16-bit floats.
macro_rules! by_dtype {
    ($dtype:expr, number, $run:ident, $reducer:ident) => {
        by_dtype!(@ cuprum_cpu_base::typed_views::unsigned_dtype($dtype), $run, $reducer, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
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

/// Expands to the function `$run::<R<T>>`, where the reducer `R` computes the reduction of elements `T` of the dtype. Expands to `None` if
/// the reduction returns an index or does not support the dtype.
///
/// 16-bit floats are not supported; callers reduce them in float32. Integers have no NaN, so their `fmin` equals their `minimum`.
macro_rules! by_reduction {
    ($reduction:expr, $dtype:expr, $run:ident) => {
        match $reduction.elementwise_combination() {
            _ if $reduction.returns_index => None,
            Some(by) if by == ADD => by_dtype!($dtype, number, $run, Sum),
            Some(by) if by == MULTIPLY => by_dtype!($dtype, number, $run, Prod),
            Some(by) if by == MINIMUM || by == FMIN && !$dtype.is_inexact() => by_dtype!($dtype, any, $run, Min, Prod),
            Some(by) if by == MAXIMUM || by == FMAX && !$dtype.is_inexact() => by_dtype!($dtype, any, $run, Max, Sum),
            Some(by) if by == FMIN => by_dtype!($dtype, inexact, $run, MinNumber),
            Some(by) if by == FMAX => by_dtype!($dtype, inexact, $run, MaxNumber),
            Some(by) if by == LOGICAL_OR && $dtype == DType::Bool => Some($run::<Sum<bool>> as _),
            Some(by) if by == LOGICAL_AND && $dtype == DType::Bool => Some($run::<Prod<bool>> as _),
            _ => None,
        }
    };
}

pub(crate) use by_reduction;
