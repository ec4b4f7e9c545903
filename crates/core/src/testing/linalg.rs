//! Residual tests of the kernel family `Linalg`, as in LAPACK's test programs. Each test computes a ratio: the backward error, divided by
//! the machine epsilon, the extent and the norm of the matrix. The ratio must be below [`THRESHOLD`].

mod schur;

use num_complex::Complex;

use crate::array::NdArray;
use crate::call::{Form, QrMode, Triangle};
use crate::device::with_device;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::linalg::{
    cholesky, det, eig, eigh, eigvals, eigvalsh, inv, lu_factor, qr, qr_r, qr_raw, slogdet, solve, solve_triangular, svd, svd_hermitian,
    svdvals,
};
use crate::types::device::Device;

pub use self::schur::{check_functions, check_schur};

/// Upper bound of the ratios, as in LAPACK's test programs.
pub const THRESHOLD: f64 = 30.0;

/// The kind of the matrices of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixKind {
    /// Elements between -1 and 1.
    Random,
    /// Random, with rows and columns scaled over eight orders of magnitude.
    Graded,
    /// Random, with a rank of about half the extent.
    RankDeficient,
    /// Random, times a factor.
    Scaled(f64),
    /// Zeros.
    Zero,
    /// A block diagonal matrix of this number of blocks, whose elements are equal.
    BlocksOfOnes(usize),
    /// Copies of the identity of this extent, side by side and below one another.
    TiledIdentity(usize),
    /// The reciprocals of 1, 2, ... along each row and column, as in Hilbert's matrices.
    Hilbert,
    /// Ones, except for random differences of about 1,000 units of rounding.
    NearlyEqual,
    /// A column of increasing numbers, times powers.
    Vandermonde,
}

/// A matrix of a batch on the host, in double precision.
#[derive(Clone, Debug)]
struct HostMatrix {
    rows: usize,
    columns: usize,
    values: Vec<Complex<f64>>,
}

impl HostMatrix {
    fn from_fn(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> Complex<f64>) -> HostMatrix {
        let values = (0..rows * columns).map(|n| value(n / columns, n % columns)).collect();
        HostMatrix { rows, columns, values }
    }
    fn at(&self, i: usize, j: usize) -> Complex<f64> {
        self.values[i * self.columns + j]
    }
    fn adjoint(&self) -> HostMatrix {
        HostMatrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }
    fn times(&self, other: &HostMatrix) -> HostMatrix {
        HostMatrix::from_fn(self.rows, other.columns, |i, j| (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum())
    }
    fn minus(&self, other: &HostMatrix) -> HostMatrix {
        HostMatrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) - other.at(i, j))
    }
    fn triangle(&self, keep: impl Fn(usize, usize) -> bool) -> HostMatrix {
        HostMatrix::from_fn(self.rows, self.columns, |i, j| if keep(i, j) { self.at(i, j) } else { Complex::ZERO })
    }
    fn identity(n: usize) -> HostMatrix {
        HostMatrix::from_fn(n, n, |i, j| if i == j { Complex::ONE } else { Complex::ZERO })
    }
    fn columns_scaled(&self, factors: &[Complex<f64>]) -> HostMatrix {
        HostMatrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) * factors[j])
    }
    /// Returns the 1-norm.
    fn norm(&self) -> f64 {
        (0..self.columns).map(|j| (0..self.rows).map(|i| self.at(i, j).norm()).sum()).fold(0.0, nan_max)
    }
}

/// Returns the larger number, or NaN if one of the numbers is NaN.
fn nan_max(x: f64, y: f64) -> f64 {
    if x.is_nan() || x > y { x } else { y }
}

/// A deterministic sequence of numbers between -1 and 1.
struct NumberSequence(u64);

impl NumberSequence {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A test case: the device, and the dtype, number, extents and kind of the matrices.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The device.
    pub device: Device,
    /// float32, float64, complex64 or complex128.
    pub dtype: DType,
    /// Number of matrices.
    pub batch: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The kind of matrices.
    pub kind: MatrixKind,
}

impl Case {
    fn epsilon(&self) -> f64 {
        if self.dtype.real() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
    }

    /// Returns the matrix of the case with these real elements. A complex matrix has them times a complex number.
    fn structured(&self, element: impl Fn(usize, usize) -> f64) -> HostMatrix {
        let factor = if self.dtype.is_complex() { Complex::new(1.0, 2.0) } else { Complex::ONE };
        HostMatrix::from_fn(self.rows, self.columns, |i, j| factor * element(i, j))
    }

    /// Returns a batch of matrices of the case's kind, each modified by `change`. The batch is returned twice: as an array on the device,
    /// and as matrices on the host with the same elements. The array is not C-contiguous if the number of matrices is odd.
    fn matrices(
        &self,
        rows: usize,
        columns: usize,
        seed: u64,
        change: impl Fn(HostMatrix) -> HostMatrix,
    ) -> Result<(NdArray, Vec<HostMatrix>)> {
        let mut numbers = NumberSequence(seed + 17 * rows as u64 + 31 * columns as u64);
        let mut number = || {
            let re = numbers.next();
            Complex::new(re, if self.dtype.is_complex() { numbers.next() } else { 0.0 })
        };
        let mut values = Vec::new();
        for _ in 0..self.batch {
            let random = HostMatrix::from_fn(rows, columns, |_, _| number());
            let matrix = match self.kind {
                MatrixKind::Random => random,
                MatrixKind::Zero => random.triangle(|_, _| false),
                MatrixKind::Scaled(factor) => HostMatrix::from_fn(rows, columns, |i, j| random.at(i, j) * factor),
                MatrixKind::Graded => {
                    let power = |n: usize, extent: usize| 10f64.powf(-4.0 * n as f64 / extent as f64);
                    HostMatrix::from_fn(rows, columns, |i, j| random.at(i, j) * power(i, rows) * power(j, columns))
                }
                MatrixKind::RankDeficient => {
                    let half = columns.div_ceil(2);
                    HostMatrix::from_fn(rows, columns, |i, j| random.at(i, j % half))
                }
                MatrixKind::BlocksOfOnes(count) => self.structured(|i, j| f64::from(u8::from(i * count / rows == j * count / columns))),
                MatrixKind::TiledIdentity(extent) => self.structured(|i, j| f64::from(u8::from(i % extent == j % extent))),
                MatrixKind::Hilbert => self.structured(|i, j| 1.0 / (i + j + 1) as f64),
                MatrixKind::NearlyEqual => HostMatrix::from_fn(rows, columns, |i, j| 1.0 + 1000.0 * self.epsilon() * random.at(i, j)),
                MatrixKind::Vandermonde => self.structured(|i, j| ((i + 1) as f64 / rows as f64).powi(j as i32 + 1)),
            };
            values.extend(change(matrix).values);
        }
        let array = with_device(Device::CPU, || NdArray::from_vec(values, [self.batch, rows, columns]))?;
        let array = if self.dtype.is_complex() { array.astype(self.dtype)? } else { array.real()?.astype(self.dtype)? };
        // If the number of matrices is odd, the array has transposed strides, so that it is not C-contiguous.
        let on_device = match self.batch % 2 {
            0 => array.to_device(self.device)?,
            _ => array.swapaxes(1, 2)?.copy()?.to_device(self.device)?.swapaxes(1, 2)?,
        };
        Ok((on_device, copy_to_host(&array)?))
    }

    /// Checks that the ratio of `error` to the error bound for `scale` is below [`THRESHOLD`]. Returns an error text if it is not.
    fn check(&self, what: &str, error: f64, scale: f64) -> Result<(), String> {
        let bound = scale * self.epsilon() * self.rows.max(self.columns).max(1) as f64;
        let ratio = if error == 0.0 { 0.0 } else { error / bound };
        if ratio < THRESHOLD { Ok(()) } else { Err(format!("{what}: ratio {ratio:.3e} (error {error:.3e}) for {self:?}")) }
    }

    fn check_orthonormal(&self, what: &str, q: &HostMatrix) -> Result<(), String> {
        self.check(what, q.adjoint().times(q).minus(&HostMatrix::identity(q.columns)).norm(), 1.0)
    }
}

/// Tests QR decompositions and singular values of matrices with far more rows than columns, or far more columns than rows. The error bounds
/// grow with the square root of the larger extent, since those of [`check_rectangular`] exceed 1 for long matrices of single precision.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_long(case: Case) -> Result<(), String> {
    let (m, n) = (case.rows, case.columns);
    let (array, matrices) = case.matrices(m, n, 8, |a| a).map_err(text)?;
    let (q, r) = qr(&array, QrMode::Reduced).map_err(text)?;
    let (u, s, vh) = svd(&array, false).map_err(text)?;
    let alone = svdvals(&array).map_err(text)?;
    let [q, r, u, s, vh, alone] = [q, r, u, s, vh, alone].map(|x| copy_to_host(&x).map_err(text));
    let (q, r, u, s, vh, alone) = (q?, r?, u?, s?, vh?, alone?);
    let long = m.max(n) as f64;
    let check = |what: &str, error: f64, scale: f64| case.check(what, error * long.sqrt(), scale);
    for (index, a) in matrices.iter().enumerate() {
        // The norms of the smaller side.
        let norm = |x: HostMatrix| if m > n { x.norm() } else { x.adjoint().norm() };
        let gram = |x: &HostMatrix| x.adjoint().times(x).minus(&HostMatrix::identity(x.columns)).norm();
        check("qr", norm(a.minus(&q[index].times(&r[index]))), norm(a.clone()))?;
        let product = u[index].columns_scaled(&s[index].values).times(&vh[index]);
        check("svd", norm(a.minus(&product)), norm(a.clone()))?;
        let columns = s[index].columns as f64;
        check("q of qr", gram(&q[index]), columns)?;
        check("u of svd", gram(&u[index]), columns)?;
        check("vh of svd", gram(&vh[index].adjoint()), columns)?;
        check("svdvals", s[index].minus(&alone[index]).norm(), norm(a.clone()))?;
        if !s[index].values.is_sorted_by(|x, y| x.re >= y.re) {
            return Err(format!("svd: singular values are not descending for {case:?}"));
        }
    }
    Ok(())
}

/// Returns the matrices of a batch, copied to the host. In a 2-D array, each row is a matrix with one row.
fn copy_to_host(a: &NdArray) -> Result<Vec<HostMatrix>> {
    let (rows, columns) = match *a.shape() {
        [_, rows, columns] => (rows, columns),
        [_, columns] => (1, columns),
        _ => (1, 1),
    };
    let values = a.to_device(Device::CPU)?.astype(DType::C128)?.to_vec::<Complex<f64>>()?;
    let one = |values: &[Complex<f64>]| HostMatrix { rows, columns, values: values.to_vec() };
    Ok(if rows * columns == 0 { vec![one(&[]); a.shape()[0]] } else { values.chunks(rows * columns).map(one).collect() })
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// Tests the operations that need square matrices, except `eig` and `eigvals`. `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_square(case: Case) -> Result<(), String> {
    check_systems(case)?;
    check_hermitian(case)?;
    check_triangular(case)
}

/// Tests solutions, inverses and determinants: `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_systems(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let n = case.rows;
    let may_be_singular = matches!(case.kind, MatrixKind::RankDeficient | MatrixKind::Zero);
    let (array, matrices) = case.matrices(n, n, 1, |a| a).map_err(text)?;
    let (right, columns) = Case { kind: MatrixKind::Random, ..case }.matrices(n, 3, 2, |a| a).map_err(text)?;
    if !may_be_singular {
        let x = copy_to_host(&solve(&array, &right).map_err(text)?).map_err(text)?;
        let inverses = copy_to_host(&inv(&array).map_err(text)?).map_err(text)?;
        for (((a, b), x), inverse) in matrices.iter().zip(&columns).zip(&x).zip(&inverses) {
            case.check("solve", a.times(x).minus(b).norm(), a.norm() * x.norm())?;
            case.check("inv", a.times(inverse).minus(&HostMatrix::identity(n)).norm(), a.norm() * inverse.norm())?;
        }
    }
    let dets = copy_to_host(&det(&array).map_err(text)?.reshape((-1, 1)).map_err(text)?).map_err(text)?;
    let (sign, log) = slogdet(&array).map_err(text)?;
    let signs = copy_to_host(&sign.reshape((-1, 1)).map_err(text)?).map_err(text)?;
    let logs = copy_to_host(&log.reshape((-1, 1)).map_err(text)?).map_err(text)?;
    for (((a, det), sign), log) in matrices.iter().zip(&dets).zip(&signs).zip(&logs) {
        let (det, sign, log) = (det.values[0], sign.values[0], log.values[0].re);
        // Hadamard's bound is the scale of the error of a determinant. Determinants near the limits of the dtype's range are not compared.
        let bound: f64 = (0..n).map(|i| (0..n).map(|j| a.at(i, j).norm_sqr()).sum::<f64>().sqrt()).product();
        let expected = reference_determinant(a);
        let range = if case.dtype.real() == DType::F32 { 1e-30..1e30 } else { 1e-250..1e250 };
        if range.contains(&bound) && range.contains(&expected.norm().max(bound * 1e-6)) {
            case.check("det", (det - expected).norm(), bound)?;
            case.check("slogdet", (sign * log.exp() - expected).norm(), bound * (1.0 + log.abs()))?;
        }
        if sign != Complex::ZERO {
            case.check("the sign of slogdet", (sign.norm() - 1.0).abs(), 1.0)?;
        }
    }
    Ok(())
}

/// Returns the determinant by elimination in double precision.
fn reference_determinant(a: &HostMatrix) -> Complex<f64> {
    let (mut a, n) = (a.clone(), a.rows);
    let mut det = Complex::ONE;
    for j in 0..n {
        let pivot = (j..n).fold(j, |best, i| if a.at(i, j).norm() > a.at(best, j).norm() { i } else { best });
        if pivot != j {
            (0..n).for_each(|k| a.values.swap(j * n + k, pivot * n + k));
            det = -det;
        }
        let diagonal = a.at(j, j);
        det *= diagonal;
        if diagonal == Complex::ZERO {
            return det;
        }
        for i in j + 1..n {
            let factor = a.at(i, j) / diagonal;
            (j..n).for_each(|k| {
                let product = factor * a.at(j, k);
                a.values[i * n + k] -= product;
            });
        }
    }
    det
}

/// Tests Cholesky and eigenvalue decompositions of Hermitian matrices: `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_hermitian(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let n = case.rows;
    let symmetric = |a: HostMatrix| HostMatrix::from_fn(n, n, |i, j| (a.at(i, j) + a.at(j, i).conj()) * 0.5);
    for (triangle, garbage) in [(Triangle::Lower, 1), (Triangle::Upper, -1)] {
        // The operations must not read the other triangle. That triangle therefore holds wrong numbers.
        let hide = |a: HostMatrix| {
            let hidden = |i: usize, j: usize| if garbage > 0 { j > i } else { j < i };
            HostMatrix::from_fn(n, n, |i, j| if hidden(i, j) { a.at(i, j) + 0.5 } else { a.at(i, j) })
        };
        let (array, _) = case.matrices(n, n, 3, |a| hide(symmetric(a))).map_err(text)?;
        let (_, matrices) = case.matrices(n, n, 3, symmetric).map_err(text)?;
        let (w, v) = eigh(&array, triangle).map_err(text)?;
        let alone = copy_to_host(&eigvalsh(&array, triangle).map_err(text)?).map_err(text)?;
        if triangle == Triangle::Lower {
            check_hermitian_svd(&case, &array, &matrices)?;
        }
        let (w, v) = (copy_to_host(&w).map_err(text)?, copy_to_host(&v).map_err(text)?);
        for (((a, w), v), alone) in matrices.iter().zip(&w).zip(&v).zip(&alone) {
            let size = w.values.iter().map(|w| w.norm()).fold(a.norm(), nan_max);
            case.check("eigh", a.times(v).minus(&v.columns_scaled(&w.values)).norm(), size)?;
            case.check_orthonormal("the vectors of eigh", v)?;
            case.check("eigvalsh", w.minus(alone).norm(), size)?;
            if !w.values.is_sorted_by(|x, y| x.re <= y.re) {
                return Err(format!("eigh: eigenvalues are not ascending for {case:?}"));
            }
        }
        if matches!(case.kind, MatrixKind::Random | MatrixKind::Graded | MatrixKind::Scaled(_)) {
            let positive = |a: HostMatrix| {
                let size = a.norm();
                let a = symmetric(a);
                HostMatrix::from_fn(n, n, |i, j| a.at(i, j) + if i == j { 2.0 * size } else { 0.0 })
            };
            let (array, _) = case.matrices(n, n, 4, |a| hide(positive(a))).map_err(text)?;
            let (_, matrices) = case.matrices(n, n, 4, positive).map_err(text)?;
            let factors = copy_to_host(&cholesky(&array, triangle == Triangle::Upper).map_err(text)?).map_err(text)?;
            for (a, factor) in matrices.iter().zip(&factors) {
                let lower = if triangle == Triangle::Upper { factor.adjoint() } else { factor.clone() };
                case.check("cholesky", a.minus(&lower.times(&lower.adjoint())).norm(), a.norm())?;
                if lower.triangle(|i, j| j > i).norm() != 0.0 {
                    return Err(format!("cholesky: the other triangle is not zero for {case:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Tests the singular values of Hermitian `matrices`, which are the lower triangles of `array`.
fn check_hermitian_svd(case: &Case, array: &NdArray, matrices: &[HostMatrix]) -> Result<(), String> {
    let (u, s, vh) = svd_hermitian(array).map_err(text)?;
    let (u, s, vh) = (copy_to_host(&u).map_err(text)?, copy_to_host(&s).map_err(text)?, copy_to_host(&vh).map_err(text)?);
    for (((a, u), s), vh) in matrices.iter().zip(&u).zip(&s).zip(&vh) {
        let size = s.values.iter().map(|s| s.norm()).fold(a.norm(), nan_max);
        case.check("svd_hermitian", a.minus(&u.columns_scaled(&s.values).times(vh)).norm(), size)?;
        case.check_orthonormal("u of svd_hermitian", u)?;
        case.check_orthonormal("vh of svd_hermitian", &vh.adjoint())?;
        if !s.values.is_sorted_by(|x, y| x.re >= y.re) || s.values.iter().any(|s| s.re < 0.0) {
            return Err(format!("svd_hermitian: singular values are not descending for {case:?}"));
        }
    }
    Ok(())
}

/// Tests `eig` and `eigvals` on general square matrices. `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_eigen(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let (array, matrices) = case.matrices(case.rows, case.rows, 1, |a| a).map_err(text)?;
    let (w, v) = eig(&array).map_err(text)?;
    let alone = copy_to_host(&eigvals(&array).map_err(text)?).map_err(text)?;
    let (w, v) = (copy_to_host(&w).map_err(text)?, copy_to_host(&v).map_err(text)?);
    for (((a, w), v), alone) in matrices.iter().zip(&w).zip(&v).zip(&alone) {
        case.check("eig", a.times(v).minus(&v.columns_scaled(&w.values)).norm(), a.norm() * v.norm())?;
        for j in 0..v.columns {
            let norm = (0..v.rows).map(|i| v.at(i, j).norm_sqr()).sum::<f64>().sqrt();
            case.check("the norm of a vector of eig", (norm - 1.0).abs(), 1.0)?;
        }
        // Sums of eigenvalues are well-conditioned, eigenvalues are not.
        let trace = |w: &HostMatrix| w.values.iter().sum::<Complex<f64>>();
        case.check("eigvals", (trace(w) - trace(alone)).norm(), a.norm() * case.rows as f64)?;
    }
    Ok(())
}

/// Tests solutions of triangular systems in every form: `case.columns` and `case.kind` are ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_triangular(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let n = case.rows;
    // The matrix is full, with a dominant diagonal. The solver must read only one triangle.
    let dominant = |a: HostMatrix| HostMatrix::from_fn(n, n, |i, j| a.at(i, j) + if i == j { 4.0 } else { 0.0 });
    let case = Case { kind: MatrixKind::Random, ..case };
    let (array, matrices) = case.matrices(n, n, 5, dominant).map_err(text)?;
    let (right, columns) = case.matrices(n, 2, 6, |a| a).map_err(text)?;
    for triangle in [Triangle::Lower, Triangle::Upper] {
        for form in [Form::Plain, Form::Transposed, Form::Adjoint] {
            for unit in [false, true] {
                let x = solve_triangular(&array, &right, triangle, form, unit).map_err(text)?;
                for ((a, b), x) in matrices.iter().zip(&columns).zip(&copy_to_host(&x).map_err(text)?) {
                    let read = a.triangle(|i, j| if triangle == Triangle::Lower { j <= i } else { j >= i });
                    let read = HostMatrix::from_fn(n, n, |i, j| if unit && i == j { Complex::ONE } else { read.at(i, j) });
                    let read = match form {
                        Form::Plain => read,
                        Form::Adjoint => read.adjoint(),
                        Form::Transposed => HostMatrix::from_fn(n, n, |i, j| read.at(j, i)),
                    };
                    case.check("solve_triangular", read.times(x).minus(b).norm(), read.norm() * x.norm())?;
                }
            }
        }
    }
    Ok(())
}

/// Tests the decompositions of rectangular matrices: LU, QR, singular values.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_rectangular(case: Case) -> Result<(), String> {
    let (m, n) = (case.rows, case.columns);
    let k = m.min(n);
    let (array, matrices) = case.matrices(m, n, 7, |a| a).map_err(text)?;
    let (packed, pivots) = lu_factor(&array).map_err(text)?;
    let pivots = pivots.to_device(Device::CPU).and_then(|p| p.to_vec::<i32>()).map_err(text)?;
    for (index, (a, lu)) in matrices.iter().zip(&copy_to_host(&packed).map_err(text)?).enumerate() {
        let lower = HostMatrix::from_fn(m, k, |i, j| {
            if i == j {
                Complex::ONE
            } else if i > j {
                lu.at(i, j)
            } else {
                Complex::ZERO
            }
        });
        let upper = HostMatrix::from_fn(k, n, |i, j| if i <= j { lu.at(i, j) } else { Complex::ZERO });
        let mut order: Vec<usize> = (0..m).collect();
        for (i, &pivot) in pivots[index * k..(index + 1) * k].iter().enumerate() {
            let pivot =
                usize::try_from(pivot).ok().filter(|p| (i..m).contains(p)).ok_or(format!("lu_factor: pivot {pivot} for {case:?}"))?;
            order.swap(i, pivot);
        }
        let permuted = HostMatrix::from_fn(m, n, |i, j| a.at(order[i], j));
        case.check("lu_factor", permuted.minus(&lower.times(&upper)).norm(), a.norm())?;
    }
    let alone = copy_to_host(&qr_r(&array).map_err(text)?).map_err(text)?;
    for mode in [QrMode::Reduced, QrMode::Complete] {
        let (q, r) = qr(&array, mode).map_err(text)?;
        for (((a, q), r), alone) in matrices.iter().zip(&copy_to_host(&q).map_err(text)?).zip(&copy_to_host(&r).map_err(text)?).zip(&alone)
        {
            case.check("qr", a.minus(&q.times(r)).norm(), a.norm())?;
            case.check_orthonormal("q of qr", q)?;
            if r.triangle(|i, j| i > j).norm() != 0.0 {
                return Err(format!("qr: r is not triangular for {case:?}"));
            }
            let top = HostMatrix::from_fn(k, n, |i, j| r.at(i, j));
            case.check("r alone", alone.adjoint().times(alone).minus(&top.adjoint().times(&top)).norm(), a.norm() * a.norm())?;
        }
    }
    let (h, tau) = qr_raw(&array).map_err(text)?;
    let alone = copy_to_host(&qr_r(&array).map_err(text)?).map_err(text)?;
    for (((a, h), tau), alone) in matrices.iter().zip(&copy_to_host(&h).map_err(text)?).zip(&copy_to_host(&tau).map_err(text)?).zip(&alone)
    {
        let r = HostMatrix::from_fn(k, n, |i, j| if i <= j { h.at(j, i) } else { Complex::ZERO });
        // A device without a kernel for `qr_raw` may use different algorithms for `qr_raw` and `qr_r`. Corresponding rows of the two `r`
        // may then differ by a factor of magnitude 1.
        let difference = alone.adjoint().times(alone).minus(&r.adjoint().times(&r));
        case.check("r of qr_raw", difference.norm(), a.norm() * a.norm())?;
        // Applies the reflections in reverse order: q @ r.
        let mut product = HostMatrix::from_fn(m, n, |i, j| if i < k { r.at(i, j) } else { Complex::ZERO });
        for reflection in (0..k).rev() {
            let v = HostMatrix::from_fn(m, 1, |i, _| match i.cmp(&reflection) {
                std::cmp::Ordering::Less => Complex::ZERO,
                std::cmp::Ordering::Equal => Complex::ONE,
                std::cmp::Ordering::Greater => h.at(reflection, i),
            });
            let coefficients = v.adjoint().times(&product);
            let change = v.times(&coefficients);
            product = HostMatrix::from_fn(m, n, |i, j| product.at(i, j) - change.at(i, j) * tau.at(0, reflection));
        }
        case.check("qr_raw", a.minus(&product).norm(), a.norm())?;
    }
    let alone = copy_to_host(&svdvals(&array).map_err(text)?).map_err(text)?;
    for full in [false, true] {
        let (u, s, vh) = svd(&array, full).map_err(text)?;
        let (u, s, vh) = (copy_to_host(&u).map_err(text)?, copy_to_host(&s).map_err(text)?, copy_to_host(&vh).map_err(text)?);
        for ((((a, u), s), vh), alone) in matrices.iter().zip(&u).zip(&s).zip(&vh).zip(&alone) {
            let first = |x: &HostMatrix, rows: usize, columns: usize| HostMatrix::from_fn(rows, columns, |i, j| x.at(i, j));
            let product = first(u, m, k).columns_scaled(&s.values).times(&first(vh, k, n));
            case.check("svd", a.minus(&product).norm(), a.norm())?;
            case.check_orthonormal("u of svd", u)?;
            case.check_orthonormal("vh of svd", &vh.adjoint())?;
            case.check("svdvals", s.minus(alone).norm(), a.norm())?;
            if !s.values.is_sorted_by(|x, y| x.re >= y.re) || s.values.iter().any(|s| s.re < 0.0) {
                return Err(format!("svd: singular values are not descending for {case:?}"));
            }
        }
    }
    Ok(())
}
