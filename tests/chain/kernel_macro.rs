//! `cuprum::kernel!`: results compared with Rust, fusion, reductions, calls by name, and CUDA compilation.

#[path = "../../crates/backend-cuda/tests/parts/mod.rs"]
mod parts;

use cuprum::core::body;
use cuprum::core::{Program, StepKind};
use cuprum::{DType, Device, NdArray, Op, Result, arange_as, axis, count_nonzero, explain, linspace, ones, with_device, zeros};

/// Emits functions twice: in `kernel!`, and as Rust functions `rust::NAME::of` with the generic type given after `=`.
macro_rules! kernels_and_rust {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident $(<$T:ident: $bound:ident = $of:ty>)? ($($parameter:ident: $type:ty),*) -> $result:ty { $($body:tt)* }
    )*) => {
        cuprum::kernel! { $(
            $(#[$doc])*
            pub fn $name $(<$T: $bound>)? ($($parameter: $type),*) -> $result { $($body)* }
        )* }
        #[allow(clippy::assign_op_pattern, clippy::manual_clamp)] // these forms are under test
        mod rust { $(
            pub mod $name {
                $(type $T = $of;)?
                pub fn of($($parameter: $type),*) -> $result { $($body)* }
            }
        )* }
    };
}

kernels_and_rust! {
    /// Number of steps until a point leaves the circle.
    pub fn escape<T: Float = f32>(re: T, im: T, limit: i32) -> i32 {
        let mut x = re;
        let mut y = im;
        let mut steps = 0;
        for _ in 0..limit {
            let xx = x * x;
            let yy = y * y;
            if xx + yy > 4.0 {
                break;
            }
            y = 2.0 * x * y + im;
            x = xx - yy + re;
            steps += 1;
        }
        steps
    }

    /// Nested loops, returns and conversions.
    pub fn everything(x: f64, n: i64) -> f64 {
        let mut sum = 0.0;
        for i in 0..n {
            if i == 3 {
                continue;
            }
            let mut part = if i % 2 == 0 { x } else { -x };
            for j in 0..i {
                part = part * 0.5 + (j as f64).sqrt();
                if part > 1e6 { return part; }
            }
            sum += part.max(-1.0).sin() + part.powi(2);
        }
        sum
    }

    /// Breaks, continues and masked assignments of a loop over several elements in lockstep.
    pub fn lanes(x: f64, n: i64, skip: i64) -> f64 {
        let mut sum = x;
        let mut steps = 0i64;
        for i in 0..n {
            if i == skip {
                sum += 100.0;
                continue;
            }
            if sum > 50.0 {
                if sum > 1000.0 { break; } else { sum = sum * 3.0; }
                steps += 10;
            } else if sum < -50.0 {
                sum = -sum;
            } else {
                sum = sum + x.abs() + 1.0;
            }
            steps += 1;
            let wave = (sum * 1e7).sin();
            sum += wave;
        }
        let scaled = sum * 2.0;
        if steps > 3 { scaled } else { -scaled }
    }

    /// Every method of floats.
    pub fn methods<T: Float = f64>(x: T) -> T {
        let p = x.abs() + 0.5;
        let q = x.min(0.9).max(-0.9);
        let rounded = x.floor() + x.ceil() * 2.0 + x.trunc() * 4.0 + x.round_ties_even() * 8.0;
        let powers = p.sqrt() + p.cbrt() + p.powf(q) + x.powi(3) + x.exp() + q.exp2() + q.exp_m1();
        let logs = p.ln() + p.log2() + p.log10() + p.ln_1p();
        let angles = x.sin() + x.cos() + q.tan() + q.asin() + q.acos() + x.atan() + x.atan2(p) + x.hypot(p);
        let hyperbolic = x.sinh() + x.cosh() + x.tanh() + x.asinh() + (p + 1.0).acosh() + q.atanh();
        let tests = if x.is_nan() || x.is_infinite() || !x.is_finite() { 100.0 } else { p.copysign(x).mul_add(p, x) };
        rounded + powers + logs + angles + hyperbolic + tests
    }
}

cuprum::kernel! {
    const POWERS: [f64; 3] = [0.5, -1.0, 2.0];
    const STEPS: [[i32; 2]; 3] = [[1, -2], [3, 4], [-5, 6]];
    const ROWS: [[f64; 2]; 2] = [[1.0, 10.0], [2.0, 20.0]];

    #[helper]
    fn unused(x: f64) -> f64 {
        x
    }

    #[helper]
    fn parabola(x: f64) -> f64 {
        x.polynomial(POWERS)
    }

    /// A polynomial in float64.
    pub fn quadratic<T: Double>(x: T) -> T {
        parabola(x as f64) as T
    }

    /// A float64 computation with an argument of a fixed type.
    pub fn shifted<T: Double>(x: T, by: f32) -> T {
        parabola(x as f64 + by as f64) as T
    }

    /// A polynomial with a row of coefficients, and one with a list.
    pub fn linear<T: Single>(x: T, n: i64) -> T {
        let listed = (x as f64 + 1.0).polynomial([0.25, 4.0]);
        ((x as f64).polynomial(ROWS[n]) + listed) as T
    }

    /// An element of a table.
    pub fn step(row: i64, column: i32) -> i32 {
        STEPS[row][column] + POWERS[column] as i32
    }

    /// Twice a number, under another name.
    #[cuprum::numpy("tests.doubled(x, /, out=None, *, where=True)")]
    pub fn double<T: Float>(x: T) -> T {
        x + x
    }
}

#[test]
fn tables_and_polynomials() {
    let x = on_cpu(|| NdArray::from_slice(&[-1.0, 0.5]));
    assert_eq!(values(&quadratic(&x).unwrap()), [3.5, 0.5]);
    assert_eq!(values(&linear(&x, 0).unwrap()), [-9.0 + 0.25, 6.0 + 6.25]);
    assert_eq!(values(&linear(&x, 7).unwrap()), [-18.0 + 0.25, 12.0 + 6.25]); // a row outside is the nearest one
    let row = on_cpu(|| NdArray::from_slice(&[-9i64, 0, 1, 2, 9]));
    assert_eq!(step(&row, 1).unwrap().to_vec::<i32>().unwrap(), [-3, -3, 3, 5, 5]);
    assert_eq!(step(&row, 9).unwrap().to_vec::<i32>().unwrap(), [0, 0, 6, 8, 8]);
}

#[test]
fn floats_of_scipys_functions() {
    let dtypes = |f: &dyn Fn(&NdArray) -> Result<NdArray>| {
        let of = |dtype| f(&on_cpu(|| ones(3, dtype))).unwrap().dtype();
        [DType::Bool, DType::I16, DType::I32, DType::F16, DType::BF16, DType::F32, DType::F64].map(of)
    };
    let (single, double) = (DType::F32, DType::F64);
    assert_eq!(dtypes(&|x| quadratic(x)), [double, double, double, double, double, single, double]);
    assert_eq!(dtypes(&|x| linear(x, 1)), [single, single, double, single, single, single, double]);
    assert_eq!(quadratic(2.0).unwrap().dtype(), double);
    assert!(quadratic(on_cpu(|| ones(3, DType::C64))).unwrap_err().to_string().contains("real numbers"));
}

#[test]
fn declared_kernels_have_their_own_path() {
    let x = on_cpu(|| NdArray::from_slice(&[1.5, 2.0]));
    assert_eq!(values(&cuprum::eval("tests.doubled(x)", [("x", &x)]).unwrap()), [3.0, 4.0]);
    assert!(cuprum::eval("double(x, 1)", [("x", &x)]).is_err());
    assert!(cuprum::eval("unused(x)", [("x", &x)]).is_err(), "a helper is not an operation");
}

cuprum::kernel! {
    /// Twice a number, or its half.
    pub fn twice_or_half<T: Number>(x: T, twice: bool) -> T {
        if twice { x * 2 } else { x / 2 }
    }

    fn square<T: Number>(x: T) -> T {
        x * x
    }

    /// Index of the centre that is nearest to a point of the plane.
    pub fn nearest<T: Float>(x: T, y: T, centres: &[T]) -> i32 {
        let mut best = 0;
        let mut distance = INFINITY;
        for c in 0..centres.len() / 2 {
            let d = square(x - centres[2 * c]) + square(y - centres[2 * c + 1]);
            if d < distance {
                distance = d;
                best = c as i32;
            }
        }
        best
    }

    /// The element if it is above the diagonal, else 0.
    pub fn above<T: Number>(x: T) -> T {
        if index(1) > index(0) { x } else { 0 }
    }

    /// Larger of two numbers.
    #[reduction(identity = MIN)]
    pub fn largest<T: Number>(a: T, b: T) -> T {
        a.max(b)
    }

    /// Sum with an identity that is out of range for 8-bit integers.
    #[reduction(identity = 300)]
    pub fn from_300<T: Number>(a: T, b: T) -> T {
        a + b
    }

    /// Hash of the results of every integer operation. Integers wrap, and division by zero gives zero.
    pub fn integers<T: Integer>(a: T, b: T) -> T {
        let mut h = a + b;
        h = h * 31 + (a - b);
        h = h * 31 + a * b;
        h = h * 31 + a / b;
        h = h * 31 + a % b;
        h = h * 31 + (a & b);
        h = h * 31 + (a | b);
        h = h * 31 + (a ^ b);
        h = h * 31 + !a;
        h = h * 31 + (a << b);
        h = h * 31 + (a >> b);
        h = h * 31 + -a;
        h = h * 31 + a.abs();
        h = h * 31 + a.min(b) * 3 + a.max(b);
        h = h * 31 + a.powi(5);
        if a < b || a == 3 && !(b >= a) { h } else { h + 1 }
    }

    /// Hash of an integer converted to each of the other types.
    pub fn integer_as<T: Integer>(a: T) -> i64 {
        let mut h = a as i8 as i64;
        h = h * 31 + (a as i16 as i64);
        h = h * 31 + (a as i32 as i64);
        h = h * 31 + (a as i64);
        h = h * 31 + (a as u8 as i64);
        h = h * 31 + (a as u16 as i64);
        h = h * 31 + (a as u32 as i64);
        h = h * 31 + (a as u64 as i64);
        h = h * 31 + (a as f32 as i64);
        h = h * 31 + (a as f64 as u64 as i64);
        h * 31 + (a as bool as i64)
    }

    /// Hash of a float converted to each of the other types.
    pub fn float_as<T: Float>(x: T) -> i64 {
        let mut h = x as i8 as i64;
        h = h * 31 + (x as i16 as i64);
        h = h * 31 + (x as i32 as i64);
        h = h * 31 + (x as i64);
        h = h * 31 + (x as u8 as i64);
        h = h * 31 + (x as u16 as i64);
        h = h * 31 + (x as u32 as i64);
        h = h * 31 + (x as u64 as i64);
        h = h * 31 + (x as f32 as i64);
        h = h * 31 + (x as f64 as i64);
        h * 31 + (x as bool as i64)
    }

    /// Operations that are exact or correctly rounded.
    pub fn exact<T: Float>(x: T, y: T) -> T {
        let powers = x.powi(13) + y.powi(3) / x.powi(2);
        let parts = (x % y).copysign(-0) + x.floor() * y.ceil() + x.trunc() - y.round_ties_even();
        powers * x.min(y) + parts.mul_add(x.max(y), (x * x + y * y).sqrt()) - x.abs()
    }

    /// The element nearest to an index.
    pub fn picked<T: Integer>(all: &[f64], at: T) -> f64 {
        all[at]
    }

    /// Signed zeros of floats, and the zero of an integer.
    pub fn signs(x: f64, n: i32) -> f64 {
        x.copysign(-0) + (n * -0) as f64 + 1.0.copysign(-0.0)
    }

    /// Sine, including large arguments.
    pub fn own_sine<T: Float>(x: T) -> T {
        x.sin()
    }
}

fn on_cpu<R>(f: impl FnOnce() -> Result<R>) -> R {
    with_device(Device::CPU, f).unwrap()
}

fn values(a: &NdArray) -> Vec<f64> {
    a.astype(DType::F64).unwrap().to_vec().unwrap()
}

#[test]
fn loops_with_breaks() {
    let (re, im) = on_cpu(|| {
        let re = linspace(-2.0, 0.5, 203)?.astype(DType::F32)?;
        Ok((re, linspace(-1.2, 1.2, 101)?.astype(DType::F32)?.reshape([101, 1])?))
    });
    let steps = escape(&re, &im, 100).unwrap();
    assert_eq!((steps.shape(), steps.dtype()), (&[101, 203][..], DType::I32));
    let (re, im) = (re.to_vec::<f32>().unwrap(), im.to_vec::<f32>().unwrap());
    let expected: Vec<f64> =
        im.iter().flat_map(|&y| re.iter().map(move |&x| (x, y))).map(|(x, y)| rust::escape::of(x, y, 100).into()).collect();
    assert_eq!(values(&steps), expected);
}

#[test]
fn kernels_fuse_with_adjacent_operations() {
    let a = on_cpu(|| arange_as(0, 3000, 1, DType::F64));
    let flags = a.greater(10).unwrap();
    let (sum, calls) = explain(|| twice_or_half(&a + 1, &flags).unwrap().multiply(3).unwrap().sum(()).unwrap().item().unwrap());
    let expected: f64 = (0..3000).map(|i| f64::from(i) + 1.0).map(|x| 3.0 * if x > 11.0 { x * 2.0 } else { x / 2.0 }).sum();
    assert_eq!(sum.as_f64(), expected);
    let told: Vec<_> = calls.iter().map(|c| (c.op, c.served_by)).collect();
    assert_eq!(told, [("sum", Some("cpu"))], "one pass");
    let half = twice_or_half(on_cpu(|| arange_as(0, 5, 1, DType::F16)), true).unwrap();
    assert_eq!((half.dtype(), values(&half)), (DType::F16, vec![0.0, 2.0, 4.0, 6.0, 8.0]));
    let ints = twice_or_half(on_cpu(|| NdArray::from_slice(&[7i8, -128, 100])), false).unwrap();
    assert_eq!((ints.dtype(), values(&ints)), (DType::I8, vec![3.0, -64.0, 50.0]));
}

#[test]
fn float64_computations_of_float32() {
    for n in [0, 1, 255, 256, 257, 5000] {
        let x = on_cpu(|| linspace(-2.0, 2.0, n)?.astype(DType::F32));
        let wide = x.astype(DType::F64).unwrap();
        let (got, want) = (quadratic(&x).unwrap(), quadratic(&wide).unwrap().astype(DType::F32).unwrap());
        assert_eq!((got.dtype(), values(&got)), (DType::F32, values(&want)), "{n} elements");
        let by = on_cpu(|| NdArray::from_slice(&[0.5f32]));
        let (got, want) = (shifted(&x, &by).unwrap(), quadratic(&wide + 0.5).unwrap().astype(DType::F32).unwrap());
        assert_eq!(values(&got.astype(DType::F32).unwrap()), values(&want), "{n} elements");
    }
}

#[cfg(feature = "distributed")]
#[test]
fn whole_array_parameters_on_a_mesh() {
    use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
    let mesh = Mesh::loopback(3).unwrap();
    let (x, centres) = on_cpu(|| Ok((linspace(0.0, 9.0, 300)?, linspace(0.0, 9.0, 24)?.reshape([12, 2])?)));
    let shard = |a: &NdArray| a.shard(&mesh, [Shard(0)]).unwrap();
    let found = nearest(shard(&x), 0.0, shard(&centres)).unwrap();
    assert_eq!(values(&found), values(&nearest(&x, 0.0, &centres).unwrap()));
    let count = count_nonzero(&nearest(shard(&x), 0.0, shard(&centres)).unwrap().equal(2).unwrap(), ()).unwrap();
    assert_eq!(values(&count), values(&count_nonzero(&nearest(&x, 0.0, &centres).unwrap().equal(2).unwrap(), ()).unwrap()));
}

#[test]
fn whole_array_parameters() {
    let (x, centres) = on_cpu(|| Ok((linspace(0.0, 9.0, 1000)?, NdArray::from_slice(&[9.0, 0.0, 1.0, 0.0, 5.0, 0.5])?.reshape([3, 2])?)));
    let found = nearest(&x, 0.0, &centres).unwrap();
    let expected = values(&x)
        .iter()
        .map(|&x| {
            if x < 3.03 {
                1.0
            } else if x > 7.03 {
                0.0
            } else {
                2.0
            }
        })
        .collect::<Vec<f64>>();
    let wrong = values(&found).iter().zip(&expected).filter(|(a, b)| a != b).count();
    assert!(wrong <= 8, "{wrong} differences near the borders");
    // Whole arrays that are transposed or have an offset.
    let turned = on_cpu(|| NdArray::from_slice(&[9.0, 1.0, 5.0, 0.0, 0.0, 0.5])?.reshape([2, 3])).t().unwrap();
    assert_eq!(values(&nearest(&x, 0.0, &turned).unwrap()), values(&found));
    let later = nearest(&x, 0.0, centres.index(cuprum::s![1..]).unwrap()).unwrap();
    assert_eq!(values(&later), values(&found).iter().zip(values(&x)).map(|(_, x)| if x < 3.03125 { 0.0 } else { 1.0 }).collect::<Vec<_>>());
    // One array as both a whole-array and an elementwise argument, and a kernel as the condition of a selection.
    let own = nearest(&x, 0.0, &x).unwrap();
    assert_eq!(own.shape(), x.shape());
    let chosen = x.extract(&nearest(&x, 0.0, &centres).unwrap().equal(2).unwrap()).unwrap();
    assert_eq!(chosen.size(), values(&found).iter().filter(|&&v| v == 2.0).count());
    // The kernel's result is a fused input of a reduction.
    let (count, calls) = explain(|| count_nonzero(&nearest(&x, 0.0, &centres).unwrap().equal(2).unwrap(), ()).unwrap().item().unwrap());
    assert_eq!(calls.len(), 1);
    assert_eq!(count.as_f64() as usize, values(&found).iter().filter(|&&v| v == 2.0).count());
}

#[test]
fn indices_of_the_element() {
    let a = on_cpu(|| ones([4, 5], DType::I16));
    assert_eq!(above(&a).unwrap().sum(axis(1)).unwrap().to_vec::<i64>().unwrap(), [4, 3, 2, 1]);
    let error = above(on_cpu(|| ones(4, DType::I16))).unwrap_err().to_string();
    assert!(error.contains("index(1) is out of bounds for 1 axes"), "{error}");
}

#[test]
fn reductions() {
    let a = on_cpu(|| arange_as(-50_000, 40_000, 1, DType::F32)?.reshape([300, 300]));
    assert_eq!(largest(a.abs().unwrap(), ()).unwrap().item().unwrap().as_f64(), 50_000.0);
    let (rows, calls) = explain(|| largest((&a + 1).abs().unwrap(), axis(1).keepdims()).unwrap());
    assert_eq!((rows.shape(), calls.len()), (&[300, 1][..], 1));
    assert_eq!(rows.to_vec::<f32>().unwrap()[1], 49_699.0);
    assert_eq!(values(&largest(a.abs().unwrap(), 0).unwrap())[..2], [50_000.0, 49_999.0]);
    let none = on_cpu(|| zeros([0, 2], DType::I32));
    assert_eq!(values(&largest(&none, 0).unwrap()), [f64::from(i32::MIN); 2]);
    assert_eq!(values(&largest(on_cpu(|| NdArray::from_slice(&[-3.0])), ()).unwrap()), [-3.0], "one element");
    let why = from_300(on_cpu(|| ones(3, DType::I8)), ()).unwrap_err().to_string();
    assert!(why.contains("300"), "{why}");
}

#[test]
fn loops_match_rust() {
    let x = on_cpu(|| linspace(-3.0, 5e6, 700));
    let ours = values(&everything(&x, 9).unwrap());
    for (x, ours) in values(&x).into_iter().zip(ours) {
        let expected = rust::everything::of(x, 9);
        assert!((ours - expected).abs() <= 1e-13 * expected.abs().max(1.0), "{x}: {ours}, {expected}");
    }
    let large = on_cpu(|| NdArray::from_slice(&[1e22, 2.0, 1e300, -1e18]));
    let exact: Vec<f64> = [1e22f64, 2.0, 1e300, -1e18].iter().map(|x| x.sin()).collect();
    assert!(values(&own_sine(&large).unwrap()).iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-15));
}

/// Returns integers at the limits of a dtype and near its number of bits.
fn edges(dtype: DType) -> NdArray {
    let top = 1i128 << (8 * dtype.itemsize() - 1);
    let small = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 33, 63, 65, 100, -1, -2, -7];
    let values: Vec<i64> = small.into_iter().chain([top - 1, top, 1 - top, top / 2, 2 * top - 1]).map(|n| n as i64).collect();
    on_cpu(|| NdArray::from_slice(&values)?.astype(dtype))
}

const INTEGERS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

#[test]
fn integer_operations_match_rust() {
    fn rust(a: i32, b: i32) -> i32 {
        let or_zero = |quotient: Option<i32>, of_lowest| quotient.unwrap_or(if b == 0 { 0 } else { of_lowest });
        let power = a.wrapping_mul(a).wrapping_mul(a.wrapping_mul(a)).wrapping_mul(a);
        let terms = [
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            or_zero(a.checked_div(b), i32::MIN),
            or_zero(a.checked_rem(b), 0),
            a & b,
            a | b,
            a ^ b,
            !a,
            a.wrapping_shl(b as u32),
            a.wrapping_shr(b as u32),
            a.wrapping_neg(),
            a.wrapping_abs(),
            a.min(b).wrapping_mul(3).wrapping_add(a.max(b)),
            power,
        ];
        let h = terms.into_iter().fold(a.wrapping_add(b), |h, term| h.wrapping_mul(31).wrapping_add(term));
        if a < b || a == 3 && b < a { h } else { h.wrapping_add(1) }
    }
    let a = edges(DType::I32);
    let ours = integers(a.reshape([-1, 1]).unwrap(), &a).unwrap().to_vec::<i32>().unwrap();
    let a = a.to_vec::<i32>().unwrap();
    let pairs = a.iter().flat_map(|&x| a.iter().map(move |&y| (x, y)));
    for ((x, y), ours) in pairs.zip(ours) {
        assert_eq!(ours, rust(x, y), "{x}, {y}");
    }
}

#[test]
fn indices_out_of_bounds_are_clamped() {
    let all = on_cpu(|| NdArray::from_slice(&[10.0, 20.0, 30.0]));
    let at = |indices: NdArray| values(&picked(&all, &indices).unwrap());
    assert_eq!(at(on_cpu(|| NdArray::from_slice(&[0u64, 2, 3, 1 << 63, u64::MAX]))), [10.0, 30.0, 30.0, 30.0, 30.0]);
    assert_eq!(at(on_cpu(|| NdArray::from_slice(&[i64::MIN, -1, 1, 3, i64::MAX]))), [10.0, 10.0, 20.0, 30.0, 30.0]);
    assert_eq!(at(on_cpu(|| NdArray::from_slice(&[-128i8, 1, 127]))), [10.0, 20.0, 30.0]);
}

#[test]
fn powers_and_zeros_are_exact() {
    let x = 1.0f64 / 3.0;
    let square = x * x;
    let (fourth, eighth) = (square * square, square * square * (square * square));
    let powers = x * fourth * eighth + x * square / square;
    let parts = -0.0 + x.floor() * x.ceil() + x.trunc() - x.round_ties_even();
    let expected = powers * x + parts.mul_add(x, (square + square).sqrt()) - x;
    assert_eq!(exact(x, x).unwrap().item().unwrap().as_f64().to_bits(), expected.to_bits());
    assert_eq!(values(&signs(on_cpu(|| NdArray::from_slice(&[2.0, -3.0])), 7).unwrap()), [-3.0, -4.0]);
}

/// Operations that are documented as identical on every device have the same bits on CUDA as on the CPU.
#[test]
fn cuda_agrees_with_the_cpu() {
    let Some(device) = cuprum::backend_cuda::testing::device() else { return };
    let agree = |what: &str, inputs: &[&NdArray], kernel: &dyn Fn(&[NdArray]) -> Result<NdArray>| {
        let there: Vec<NdArray> = inputs.iter().map(|a| a.to_device(device).unwrap()).collect();
        let here: Vec<NdArray> = inputs.iter().map(|&a| a.clone()).collect();
        let (on_device, calls) = explain(|| kernel(&there).and_then(|a| a.eval().cloned()).unwrap());
        assert_eq!((on_device.device(), calls.last().and_then(|c| c.served_by)), (device, Some("cuda")), "{what}");
        let (ours, cpu) = (on_device.to_device(Device::CPU).unwrap(), kernel(&here).unwrap());
        // The bits of NaN can differ.
        let differs = |a: &NdArray, b: &NdArray| {
            let (a_bytes, b_bytes) = (a.to_bytes().unwrap(), b.to_bytes().unwrap());
            let (a, b, size) = (values(a), values(b), a.dtype().itemsize());
            let alike = |n: &usize| a_bytes[n * size..][..size] == b_bytes[n * size..][..size] || a[*n].is_nan() && b[*n].is_nan();
            (0..a.len()).find(|n| !alike(n)).map(|n| (n, a[n], b[n]))
        };
        assert_eq!((ours.shape(), ours.dtype()), (cpu.shape(), cpu.dtype()), "{what}");
        assert_eq!(differs(&ours, &cpu), None, "{what}: an element, on the device, on the CPU");
    };
    let ten = on_cpu(|| arange_as(0, 10, 1, DType::F64));
    for dtype in INTEGERS {
        let a = edges(dtype);
        let column = a.reshape([-1, 1]).unwrap();
        agree(&format!("integers of {dtype}"), &[&column, &a], &|a| integers(&a[0], &a[1]));
        agree(&format!("casts of {dtype}"), &[&a], &|a| integer_as(&a[0]));
        agree(&format!("indices of {dtype}"), &[&ten, &a], &|a| picked(&a[0], &a[1]));
    }
    let ends = [127.5, 128.0, -129.0, 255.9, 65_536.5, 2_147_483_647.0, 2_147_483_648.0, 4_294_967_296.0, 9.2e18, 1.9e19, 1e300, 1e-30];
    let special = [0.0, 0.5, 1.5, 2.5, f64::NAN, f64::INFINITY];
    let floats: Vec<f64> = ends.into_iter().chain(special).flat_map(|x| [x, -x]).collect();
    for dtype in [DType::F32, DType::F64] {
        let x = on_cpu(|| NdArray::from_slice(&floats)?.astype(dtype));
        let column = x.reshape([-1, 1]).unwrap();
        agree(&format!("casts of {dtype}"), &[&x], &|a| float_as(&a[0]));
        agree(&format!("exact operations of {dtype}"), &[&column, &x], &|a| exact(&a[0], &a[1]));
        let (re, im) = on_cpu(|| {
            let re = linspace(-2.0, 0.5, 203)?.astype(dtype)?;
            Ok((re, linspace(-1.2, 1.2, 101)?.astype(dtype)?.reshape([101, 1])?))
        });
        agree(&format!("a loop in {dtype}"), &[&re, &im], &|a| escape(&a[0], &a[1], 100));
    }
    agree("signs", &[&ten], &|a| signs(&a[0], 7));
}

#[test]
fn lockstep_loops_match_rust() {
    for len in [1, 31, 33, 65, 2049] {
        let x = on_cpu(|| linspace(-80.0, 1200.0, len));
        let bounds = on_cpu(|| arange_as(0, len, 1, DType::I64)?.remainder(9));
        // Loop bounds that are equal for all elements, and bounds that differ.
        for n in [cuprum::Operand::from(7), (&bounds).into()] {
            let ours = values(&lanes(&x, n.clone(), 2).unwrap());
            for (k, (x, ours)) in values(&x).into_iter().zip(ours).enumerate() {
                let n = if let cuprum::Operand::Scalar(_) = n { 7 } else { k as i64 % 9 };
                let expected = rust::lanes::of(x, n, 2);
                assert!((ours - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{x} {n}: {ours}, {expected}");
            }
        }
    }
}

#[test]
fn methods_match_rust() {
    let x = on_cpu(|| linspace(-4.3, 5.1, 301));
    let ours = values(&methods(&x).unwrap());
    for (x, ours) in values(&x).into_iter().zip(ours) {
        let expected = rust::methods::of(x);
        assert!((ours - expected).abs() <= 1e-13 * expected.abs().max(10.0), "{x}: {ours}, {expected}");
    }
}

#[test]
fn a_value_does_not_depend_on_its_neighbours() {
    let sines = |values: &[f64]| own_sine(on_cpu(|| NdArray::from_slice(values))).unwrap().to_vec::<f64>().unwrap();
    let small: Vec<f64> = (0..500).map(|i| f64::from(i) * 0.37).collect();
    let with_large: Vec<f64> = small.iter().copied().chain([1e22]).collect();
    assert_eq!(sines(&small), sines(&with_large)[..500]);
}

#[test]
fn invalid_calls_are_errors() {
    let (a, c) = on_cpu(|| Ok((ones(3, DType::F64)?, ones(3, DType::C128)?)));
    let why = |r: Result<NdArray>| r.unwrap_err().to_string();
    assert!(why(escape(&c, 1.0, 5)).contains("real numbers"));
    assert!(why(escape(&a, 1.0, 2.5)).contains("`limit` must be int32, which cannot hold 2.5 (dtypes: float64)"));
    assert!(why(escape(&a, 1.0, &a)).contains("`limit` must be int32; use astype"));
    assert!(why(nearest(&a, 1.0, 2.0)).contains("`centres` must be an array"));
    assert!(why(nearest(&a, 1.0, on_cpu(|| ones(0, DType::F64)))).contains("`centres` must not be empty"));
    assert!(why(integers(&a, 1)).contains("takes integers"));
    assert!(why(escape(&a, on_cpu(|| ones(4, DType::F64)), 5)).contains("broadcast"));
}

#[test]
fn kernels_are_called_by_name() {
    let a = on_cpu(|| NdArray::from_slice(&[1.0f32, -8.0]));
    let named = |text: &str| values(&cuprum::eval(text, [("a", &a)]).unwrap());
    assert_eq!(named("twice_or_half(a, True) + 1"), [3.0, -15.0]);
    assert_eq!(named("largest(abs(a), axis=0)"), [8.0]);
    let error = cuprum::eval("twice_or_half(a)", [("a", &a)]).unwrap_err().to_string();
    assert!(error.contains("argument 'twice' is missing; its parameters are (x, twice)"), "{error}");
}

/// Returns a program that applies one operation to inputs of its parameter dtypes, with `generic` for the generic type.
fn program(op: Op, generic: DType) -> Program {
    let body = op.0.body.unwrap();
    let dtype = |of: body::BodyDType| if let body::BodyDType::Fixed(dtype) = of { dtype } else { generic };
    let mut p = Program::default();
    let mut args = Vec::new();
    for (n, parameter) in body.parameters.iter().enumerate() {
        args.push(p.push_step(StepKind::Input(n as u16), dtype(parameter.of), &[]));
        if parameter.kind == body::ParameterKind::Whole {
            args.push(p.push_param(1.into(), DType::I64));
        }
    }
    let out = p.push_step(StepKind::Apply(op), dtype(body.result), &args);
    p.outputs.push(out);
    p
}

#[test]
fn cuda_compiles_every_body() {
    use cuprum::backend_cuda::codegen::{self, InnermostAxisAccess};
    use cuprum::backend_cuda::nvrtc::CompileRequest;
    let Some(compiler) = cuprum::backend_cuda::testing::compiler() else { return };
    let mut requests = Vec::new();
    for op in cuprum::inventory::iter::<body::DeclaredOperation>().map(|declared| declared.0) {
        let dtypes: &[DType] = match op.0.body.unwrap().bound {
            body::GenericBound::Float | body::GenericBound::Single | body::GenericBound::Double => &[DType::F32, DType::F64],
            body::GenericBound::Integer => &[DType::I8, DType::U64],
            body::GenericBound::Number => &[DType::I16, DType::F64],
        };
        for &dtype in dtypes {
            let body = op.0.body.unwrap();
            let (element, value) = match op.reduction() {
                None => (codegen::element_source(&program(op, dtype), InnermostAxisAccess::default()), "cuprum::element(p, 0)".to_owned()),
                // A reduction combines two elements.
                Some(_) => {
                    let element =
                        codegen::element_source_with_user_functions(&Program::identity(dtype), InnermostAxisAccess::default(), Some(body));
                    (element, format!("cuprum::{}(cuprum::element(p, 0), cuprum::element(p, 1))", body.source.last().unwrap().0))
                }
            };
            let element = element.unwrap();
            let kernel = format!("extern \"C\" __global__ void kernel(cuprum::Params p, cuprum::Result* out) {{ out[0] = {value}; }}");
            requests.push((op.name(), dtype, [codegen::CUDA_PRELUDE, &element, &kernel].concat()));
        }
    }
    assert!(requests.len() >= 16, "{}", requests.len());
    for (name, dtype, source) in parts::part("kernel_macro::cuda_compiles_every_body", requests) {
        let made = compiler.compile(&CompileRequest { name, source: &source, ..CompileRequest::default() }, 90);
        let made = made.unwrap_or_else(|e| panic!("{name} of {dtype}: {e}"));
        assert_eq!(made.log, "", "{name} of {dtype}");
    }
}
