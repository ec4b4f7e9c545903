//! Residual tests of Schur decompositions, square roots and logarithms.

use num_complex::Complex;

use super::{Case, HostMatrix, MatrixKind, copy_to_host, nan_max, text};
use crate::ops::linalg::{logm, schur, sqrtm};

/// Tests Schur decompositions of general square matrices. `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_schur(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let n = case.rows;
    let (array, matrices) = case.matrices(n, n, 1, |a| a).map_err(text)?;
    let (t, z) = schur(&array).map_err(text)?;
    if t.dtype() != case.dtype || z.dtype() != case.dtype {
        return Err(format!("schur: dtypes {} and {} for {case:?}", t.dtype(), z.dtype()));
    }
    let (t, z) = (copy_to_host(&t).map_err(text)?, copy_to_host(&z).map_err(text)?);
    for ((a, t), z) in matrices.iter().zip(&t).zip(&z) {
        case.check("schur", a.minus(&z.times(t).times(&z.adjoint())).norm(), a.norm())?;
        case.check_orthonormal("z of schur", z)?;
        check_form(&case, t)?;
    }
    Ok(())
}

/// Tests that `t` is triangular, except for standard blocks of conjugate eigenvalues of a real matrix.
fn check_form(case: &Case, t: &HostMatrix) -> Result<(), String> {
    let n = t.rows;
    let below = |i: usize| i + 1 < n && t.at(i + 1, i) != Complex::ZERO;
    let is_block = |i: usize| {
        let product = t.at(i, i + 1).re * t.at(i + 1, i).re;
        // The product of the two off-diagonal elements may underflow to 0, so their signs are compared.
        let signs_differ = t.at(i, i + 1).re.signum() != t.at(i + 1, i).re.signum() && product <= 0.0;
        !case.dtype.is_complex() && t.at(i, i) == t.at(i + 1, i + 1) && signs_differ && !below(i + 1) && (i == 0 || !below(i - 1))
    };
    let is_lower_zero = t.triangle(|i, j| i > j + 1).norm() == 0.0;
    if is_lower_zero && (0..n).all(|i| !below(i) || is_block(i)) { Ok(()) } else { Err(format!("schur: no Schur form for {case:?}")) }
}

/// Tests square roots and logarithms of matrices with eigenvalues in the right half-plane, and square roots of general ones.
/// `case.columns` is ignored.
///
/// # Errors
/// A text that names the operation, the ratio and the case.
pub fn check_functions(case: Case) -> Result<(), String> {
    let case = Case { columns: case.rows, ..case };
    let n = case.rows;
    if case.kind == MatrixKind::Zero {
        let (array, _) = case.matrices(n, n, 1, |a| a).map_err(text)?;
        let is_zero = copy_to_host(&sqrtm(&array).map_err(text)?).map_err(text)?.iter().all(|x| x.norm() == 0.0);
        return if is_zero && logm(&array).is_err() { Ok(()) } else { Err(format!("sqrtm or logm of zeros for {case:?}")) };
    }
    // A dominant diagonal moves the eigenvalues to the right half-plane.
    let dominant = |a: HostMatrix| {
        let size = a.norm();
        HostMatrix::from_fn(n, n, |i, j| a.at(i, j) + if i == j { 2.0 * size } else { 0.0 })
    };
    for change in [&dominant as &dyn Fn(HostMatrix) -> HostMatrix, &|a| a] {
        let (array, matrices) = case.matrices(n, n, 1, change).map_err(text)?;
        let roots = match sqrtm(&array) {
            Ok(roots) => roots,
            // A matrix of deficient rank may have no root.
            Err(_) if case.kind == MatrixKind::RankDeficient => continue,
            Err(error) => return Err(text(error)),
        };
        for (a, x) in matrices.iter().zip(&copy_to_host(&roots).map_err(text)?) {
            // The bound of the recurrence is in the Frobenius norm (N. J. Higham, "Functions of Matrices", equation 6.8).
            case.check("sqrtm", frobenius_norm(&a.minus(&x.times(x))), nan_max(frobenius_norm(a), frobenius_norm(x).powi(2)))?;
        }
    }
    let (array, matrices) = case.matrices(n, n, 1, dominant).map_err(text)?;
    let logs = logm(&array).map_err(text)?;
    if !case.dtype.is_complex() && logs.dtype() != case.dtype {
        return Err(format!("logm: dtype {} for {case:?}", logs.dtype()));
    }
    for (a, x) in matrices.iter().zip(&copy_to_host(&logs).map_err(text)?) {
        // The exponential of a shifted logarithm has a norm near 1.
        let shift = a.norm().ln();
        let shifted = HostMatrix::from_fn(n, n, |i, j| x.at(i, j) - if i == j { shift } else { 0.0 });
        let power = exponential(&shifted);
        let power = HostMatrix::from_fn(n, n, |i, j| power.at(i, j) * a.norm());
        // The error of an element of the logarithm is relative to the norm of the logarithm. The exponential multiplies this error by the
        // norm of the matrix.
        case.check("logm", a.minus(&power).norm(), a.norm() * (1.0 + x.norm()))?;
    }
    Ok(())
}

fn frobenius_norm(a: &HostMatrix) -> f64 {
    // Scaling keeps the squares of large elements finite.
    let largest = a.norm();
    if largest == 0.0 { 0.0 } else { largest * a.values.iter().map(|v| (v / largest).norm_sqr()).sum::<f64>().sqrt() }
}

/// Returns the exponential by halvings, the Taylor series and squarings.
fn exponential(x: &HostMatrix) -> HostMatrix {
    const HALVINGS: i32 = 12;
    let n = x.rows;
    let x = HostMatrix::from_fn(n, n, |i, j| x.at(i, j) * 0.5f64.powi(HALVINGS));
    let mut term = HostMatrix::identity(n);
    // Squares 1 + sum as sum * (2 + sum), which keeps the digits of small sums.
    let mut sum = HostMatrix::from_fn(n, n, |_, _| Complex::ZERO);
    for k in 1..=20 {
        let next = term.times(&x);
        term = HostMatrix::from_fn(n, n, |i, j| next.at(i, j) / k as f64);
        sum = HostMatrix::from_fn(n, n, |i, j| sum.at(i, j) + term.at(i, j));
    }
    for _ in 0..HALVINGS {
        let square = sum.times(&sum);
        sum = HostMatrix::from_fn(n, n, |i, j| square.at(i, j) + sum.at(i, j) * 2.0);
    }
    HostMatrix::from_fn(n, n, |i, j| sum.at(i, j) + if i == j { 1.0 } else { 0.0 })
}
