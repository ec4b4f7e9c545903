//! Eigenvalues of Hermitian matrices and singular values, by the Lanczos method with thick restarts.

use cuprum_core::error::LinAlgFailure;
use cuprum_core::function::FromArgs;
use cuprum_core::ops::linalg::{QrMode, Triangle, eigh, qr, svd};
use cuprum_core::{Args, DType, Device, Error, NdArray, Result, Value, conj, numpy, random, s, stack, with_device};

use crate::SparseArray;
use crate::eval_arguments::call_with_named_errors;
use crate::index_and_value_arrays::evaluate_contiguous;
use crate::solve::{LinearOperator, machine_epsilon, solver_dtype, vector_norm};

/// The eigenvalues that [`eigsh`] returns (`which=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// The largest magnitudes (`'LM'`).
    #[default]
    LargestMagnitude,
    /// The smallest magnitudes (`'SM'`). The method converges slowly to these.
    SmallestMagnitude,
    /// The largest values (`'LA'`).
    LargestAlgebraic,
    /// The smallest values (`'SA'`).
    SmallestAlgebraic,
}

/// Options of [`eigsh`] and [`svds`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LanczosOptions<'a> {
    /// Number of Lanczos vectors that the method keeps: `min(n, max(2 * k + 1, 20))` by default.
    pub ncv: Option<usize>,
    /// Maximum number of restarts of each run of the method: ten times the number of rows by default.
    pub maxiter: Option<usize>,
    /// Relative accuracy of the eigenvalues or singular values. The default 0 means the precision of the dtype.
    pub tol: f64,
    /// Starting vector of the iteration. The default is random, from a fixed seed.
    pub v0: Option<&'a NdArray>,
}

/// Returns `k` eigenvalues of a Hermitian matrix (n, n) in ascending order, and their eigenvectors (n, k) (`scipy.sparse.linalg.eigsh`).
///
/// `k` is less than n. The eigenvectors have the dtype of the matrix. The eigenvalues have the corresponding real dtype. Integers are
/// converted to float64. All vectors are orthogonalised against each other. [`eigh`] computes the eigenvalues of the small projected
/// matrix.
///
/// The values include the copies of repeated eigenvalues. After the values have converged, another run of the method starts from a random
/// vector that is orthogonal to their eigenvectors. Runs repeat until one gives no value that `which` prefers. A run misses a preferred
/// value with a probability of about 1e-4 or less.
///
/// Source: Wu and Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM Journal on Matrix Analysis and
/// Applications 22, 2000.
///
/// # Errors
/// [`Error::LinAlg`] if the values have not converged after the maximum number of restarts, or if a product is not finite. A matrix that is
/// not square, `k` or `ncv` out of range, a starting vector of zeros, float16 and bfloat16, and errors of the products.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::DType;
/// use cuprum::sparse::{LanczosOptions, Which, diags_array, eigsh};
/// let a = diags_array(&[cuprum::arange(1.0, 101.0, 1.0)?], &[0], Some([100, 100]), DType::F64)?;
/// let (values, vectors) = eigsh(&a, 2, Which::LargestAlgebraic, &LanczosOptions::default())?;
/// assert!((values.to_vec::<f64>()?[1] - 100.0).abs() < 1e-9);
/// assert_eq!(vectors.shape(), [100, 2]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.eigsh(A, k=6, *, which='LM', v0=None, ncv=None, maxiter=None, tol=0, return_eigenvectors=True)", call = |args: &Args| call_with_named_errors(args, eigsh_from_args))]
pub fn eigsh(a: &dyn LinearOperator, k: usize, which: Which, options: &LanczosOptions) -> Result<(NdArray, NdArray)> {
    const OP: &str = "eigsh";
    let [n, columns] = a.extents();
    if n != columns {
        return Err(Error::shape(OP, "the matrix must be square", &[&[n, columns]]));
    }
    if k == 0 || k >= n {
        return Err(Error::value(OP, format!("k must be from 1 to {}, not {k}; eigh returns all eigenvalues", n.saturating_sub(1))));
    }
    let dtype = solver_dtype(OP, a.element_type())?;
    let ncv = options.ncv.unwrap_or((2 * k).saturating_add(1).max(20)).min(n);
    if ncv <= k {
        return Err(Error::value(OP, format!("ncv must be greater than k = {k}, not {ncv}")));
    }
    let start = starting_vector(OP, a, n, dtype, options)?;
    let size = vector_norm(&start)?;
    if size == 0.0 || !size.is_finite() {
        return Err(Error::value(OP, "the norm of v0 must be finite and not zero"));
    }
    let mut basis = KrylovBasis::with_starting_vector(a, dtype, evaluate_contiguous(&start.divide(size)?)?);
    let epsilon = machine_epsilon(dtype);
    let rule = StoppingRule {
        which,
        k,
        epsilon,
        accuracy: if options.tol > 0.0 { options.tol } else { epsilon },
        maxiter: options.maxiter.unwrap_or(n.saturating_mul(10)).max(1),
    };
    // A run finds only one eigenvector of each repeated eigenvalue. Each further run starts from a random vector orthogonal to the `k`
    // chosen eigenvectors, and finds further ones. It also determines value `k + 1`. If this value is accurate, the run has probably missed
    // no preferred value.
    let mut known: Option<Vec<f64>> = None;
    for _ in 0..n {
        let wanted = k + usize::from(known.is_some());
        let found = basis.run_lanczos(ncv.max(wanted + 1).min(n), wanted, &rule)?;
        let is_complete = basis.spans_whole_space();
        let chosen = basis.lock_ritz_vectors(&found, k)?;
        if is_complete || known.is_some_and(|known| !rule.is_improvement(&chosen, &known, largest_magnitude(&found.values))) {
            let mut order: Vec<i64> = (0..k as i64).collect();
            order.sort_by(|i, j| chosen[*i as usize].total_cmp(&chosen[*j as usize]));
            let (chosen, order) =
                with_device(start.device(), || Ok::<_, Error>((NdArray::from_vec(chosen, k)?, NdArray::from_vec(order, k)?)))?;
            let values = evaluate_contiguous(&chosen.take(&order, 0)?.astype(dtype.real())?)?;
            return Ok((values, evaluate_contiguous(&stack(&basis.vectors, 1)?.take(&order, 1)?)?));
        }
        known = Some(chosen);
    }
    Err(Error::LinAlg { op: OP, failure: LinAlgFailure::EigenvaluesDiverge, matrix: 0, batch: 1 })
}

/// Returns the starting vector of the iteration. It is not normalised.
fn starting_vector(op: &'static str, a: &dyn LinearOperator, n: usize, dtype: DType, options: &LanczosOptions) -> Result<NdArray> {
    match options.v0 {
        Some(v) if v.shape() != [n] => Err(Error::shape(op, "v0 has one element for each row", &[v.shape()])),
        Some(v) => evaluate_contiguous(&v.astype(dtype)?),
        None => with_device(a.vector_device()?, || {
            evaluate_contiguous(&random::default_rng(0).uniform(-1.0, 1.0, n, dtype.real())?.astype(dtype)?)
        }),
    }
}

/// Eigenvalues and eigenvectors of the projection of the matrix.
struct RitzPairs {
    /// The eigenvalues in ascending order.
    values: Vec<f64>,
    /// The eigenvectors as columns.
    vectors: NdArray,
    /// The indices of `values` in the order of preference.
    order: Vec<usize>,
}

/// The conditions that end a Lanczos run.
struct StoppingRule {
    which: Which,
    k: usize,
    epsilon: f64,
    accuracy: f64,
    maxiter: usize,
}

impl StoppingRule {
    /// Required accuracy of the eigenvalue that follows the `k` preferred ones, relative to its distance from the last of these. The same
    /// number is approximately the probability that a run misses a preferred eigenvalue.
    const NEXT_EIGENVALUE_ACCURACY: f64 = 1e-4;

    /// Returns the sort key of an eigenvalue. `which` prefers eigenvalues with low keys.
    fn preference_key(&self, value: f64) -> f64 {
        match self.which {
            Which::LargestMagnitude => -value.abs(),
            Which::SmallestMagnitude => value.abs(),
            Which::LargestAlgebraic => -value,
            Which::SmallestAlgebraic => value,
        }
    }

    /// Returns the error up to which an eigenvalue counts as accurate. `scale` is the largest magnitude of all eigenvalues.
    fn eigenvalue_tolerance(&self, value: f64, scale: f64) -> f64 {
        let wanted = self.accuracy * value.abs().max(self.epsilon.powf(2.0 / 3.0) * scale.max(f64::MIN_POSITIVE));
        // The rounding errors of the projection limit the accuracy, however small the eigenvalue is.
        wanted.max(8.0 * self.epsilon * scale)
    }

    /// Returns whether the values `found` are preferred over the values `known`. `scale` is the largest magnitude of all values.
    fn is_improvement(&self, found: &[f64], known: &[f64], scale: f64) -> bool {
        let sorted = |values: &[f64]| {
            let mut keys: Vec<f64> = values.iter().map(|value| self.preference_key(*value)).collect();
            keys.sort_by(f64::total_cmp);
            keys
        };
        // The found and the known values have rounding errors, so a difference within the tolerance is no improvement.
        sorted(found).into_iter().zip(sorted(known)).any(|(new, old)| new < old - 4.0 * self.eigenvalue_tolerance(old, scale))
    }

    /// Returns how many of the first `wanted` pairs, in the order of preference, are accurate. `errors` are the residual norms of the Ritz
    /// vectors.
    fn count_accurate_pairs(&self, found: &RitzPairs, wanted: usize, errors: &[f64]) -> usize {
        let scale = largest_magnitude(&found.values);
        let is_accurate = |&position: &usize| {
            let at = found.order[position];
            let mut tolerance = self.eigenvalue_tolerance(found.values[at], scale);
            if position == self.k {
                let distance = self.preference_key(found.values[at]) - self.preference_key(found.values[found.order[position - 1]]);
                tolerance = tolerance.max(Self::NEXT_EIGENVALUE_ACCURACY * distance);
            }
            errors[at] <= tolerance
        };
        (0..wanted).filter(is_accurate).count()
    }
}

fn largest_magnitude(values: &[f64]) -> f64 {
    values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()))
}

/// The Krylov basis: orthonormal vectors, and the projection of the matrix onto their span.
struct KrylovBasis<'a> {
    a: &'a dyn LinearOperator,
    dtype: DType,
    vectors: Vec<NdArray>,
    /// The lower triangle of the projected matrix, one row for each basis vector.
    projection: Vec<Vec<f64>>,
    /// The vector that extends the basis next, or `None` if the basis spans the whole space.
    next: Option<NdArray>,
    /// The seed of the next random vector.
    seed: u64,
}

impl<'a> KrylovBasis<'a> {
    fn with_starting_vector(a: &'a dyn LinearOperator, dtype: DType, first: NdArray) -> KrylovBasis<'a> {
        KrylovBasis { a, dtype, vectors: Vec::new(), projection: Vec::new(), next: Some(first), seed: 1 }
    }

    /// Returns whether the basis spans the whole space, so that the eigenvalues of the projection are those of the matrix.
    fn spans_whole_space(&self) -> bool {
        self.next.is_none()
    }

    /// Extends the basis to `count` vectors. Returns the norm of the residual vector.
    fn extend_basis(&mut self, count: usize) -> Result<f64> {
        let mut residual = 0.0;
        while self.vectors.len() < count {
            let Some(vector) = self.next.take() else { break };
            let (rest, before) = self.add_basis_vector(vector)?;
            residual = vector_norm(&rest)?;
            if !residual.is_finite() {
                return Err(Error::LinAlg { op: "eigsh", failure: LinAlgFailure::NotFinite, matrix: 0, batch: 1 });
            }
            // If the basis spans the whole space, the residual consists of rounding errors. The condition `residual > before * epsilon` may
            // hold even then, because the product may underflow to 0.
            let spans_space = self.vectors.len() >= self.a.extents()[0];
            if residual > before * machine_epsilon(self.dtype) && residual > 0.0 && !spans_space {
                self.next = Some(evaluate_contiguous(&rest.divide(residual)?)?);
            } else {
                self.next = self.random_orthogonal_vector()?;
                residual = 0.0;
            }
        }
        Ok(residual)
    }

    /// Adds a unit vector that is orthogonal to the basis. Returns the residual of its product with the matrix, and the norm of the
    /// product.
    fn add_basis_vector(&mut self, vector: NdArray) -> Result<(NdArray, f64)> {
        self.vectors.push(vector.clone());
        let product = evaluate_contiguous(&self.a.matvec(&vector)?.astype(self.dtype)?)?;
        let before = vector_norm(&product)?;
        let (rest, row) = self.subtract_projections(product)?;
        self.projection.push(row);
        Ok((rest, before))
    }

    /// Returns `vector` without its projections onto the basis vectors, and the real parts of the coefficients of the projections.
    fn subtract_projections(&self, vector: NdArray) -> Result<(NdArray, Vec<f64>)> {
        let (mut rest, mut sums) = (vector, vec![0.0; self.vectors.len()]);
        if self.vectors.is_empty() {
            return Ok((rest, sums));
        }
        let basis = stack(&self.vectors, 0)?;
        // Two passes of Gram-Schmidt orthogonalise to the precision of the dtype ("twice is enough", Parlett 1980).
        for _ in 0..2 {
            let projections = if self.dtype.is_complex() { conj(&basis)?.matmul(&rest)? } else { basis.matmul(&rest)? };
            let projections = evaluate_contiguous(&projections)?;
            rest = evaluate_contiguous(&rest.subtract(projections.matmul(&basis)?)?)?;
            let parts = projections.real()?.astype(DType::F64)?.to_vec::<f64>()?;
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        Ok((rest, sums))
    }

    /// Returns a random unit vector that is orthogonal to the basis, or `None` if the basis spans the space.
    fn random_orthogonal_vector(&mut self) -> Result<Option<NdArray>> {
        let n = self.a.extents()[0];
        if self.vectors.len() >= n {
            return Ok(None);
        }
        let generator = random::default_rng(self.seed);
        self.seed += 1;
        let uniform = || generator.uniform(-1.0, 1.0, n, self.dtype.real())?.astype(self.dtype)?.eval().cloned();
        let (vector, _) = self.subtract_projections(with_device(self.a.vector_device()?, uniform)?)?;
        let size = vector_norm(&vector)?;
        Ok(if size > 0.0 { Some(evaluate_contiguous(&vector.divide(size)?)?) } else { None })
    }

    /// Extends and restarts the basis until the first `wanted` Ritz pairs in the order of preference are accurate, or the basis spans the
    /// whole space. The basis has at most `size` vectors.
    fn run_lanczos(&mut self, size: usize, wanted: usize, rule: &StoppingRule) -> Result<RitzPairs> {
        for _ in 0..rule.maxiter {
            let residual = self.extend_basis(size)?;
            let found = self.compute_ritz_pairs(rule)?;
            if self.spans_whole_space() {
                return Ok(found);
            }
            // The coefficients of a Ritz vector in the basis are an eigenvector of the projection. The residual norm of the Ritz vector is
            // `residual` times the magnitude of the last component of that eigenvector.
            let mut errors = found.vectors.index(s![-1, ..])?.abs()?.astype(DType::F64)?.to_vec::<f64>()?;
            errors.iter_mut().for_each(|last| *last *= residual);
            let accurate = rule.count_accurate_pairs(&found, wanted, &errors);
            if accurate == wanted {
                return Ok(found);
            }
            // As in ARPACK, a restart keeps more than the requested vectors once values have converged.
            self.restart_from_ritz_vectors(&found, (wanted + accurate.min((size - wanted) / 2) + usize::from(wanted == 1)).min(size - 1))?;
        }
        Err(Error::LinAlg { op: "eigsh", failure: LinAlgFailure::EigenvaluesDiverge, matrix: 0, batch: 1 })
    }

    /// Returns the eigenvalues and eigenvectors of the projection.
    fn compute_ritz_pairs(&self, rule: &StoppingRule) -> Result<RitzPairs> {
        let count = self.vectors.len();
        let mut matrix = vec![0.0; count * count];
        for (i, row) in self.projection.iter().enumerate() {
            for (j, &value) in row.iter().enumerate() {
                // The rows of `self.projection` hold only the lower triangle. The matrix is symmetric.
                matrix[i * count + j] = value;
                matrix[j * count + i] = value;
            }
        }
        let matrix = with_device(self.a.vector_device()?, || NdArray::from_vec(matrix, [count, count]))?;
        let (values, vectors) = eigh(&matrix, Triangle::Lower)?;
        let values: Vec<f64> = values.to_vec()?;
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|i, j| rule.preference_key(values[*i]).total_cmp(&rule.preference_key(values[*j])));
        Ok(RitzPairs { values, vectors, order })
    }

    /// Returns linear combinations of the basis vectors, as rows. The columns of `vectors` with the indices `chosen` hold the coefficients.
    fn combine_basis_vectors(&self, vectors: &NdArray, chosen: &[usize]) -> Result<NdArray> {
        let numbers: Vec<i64> = chosen.iter().map(|i| *i as i64).collect();
        let numbers = with_device(vectors.device(), || NdArray::from_slice(&numbers))?;
        let weights = vectors.take(&numbers, 1)?.astype(self.dtype)?;
        weights.t()?.matmul(&stack(&self.vectors, 0)?)?.eval().cloned()
    }

    /// Replaces the basis by the first `count` Ritz vectors in the order of preference.
    fn restart_from_ritz_vectors(&mut self, found: &RitzPairs, count: usize) -> Result<()> {
        let kept = &found.order[..count];
        let combined = self.combine_basis_vectors(&found.vectors, kept)?;
        self.vectors = (0..count).map(|i| evaluate_contiguous(&combined.index(i)?)).collect::<Result<_>>()?;
        self.projection = kept
            .iter()
            .enumerate()
            .map(|(i, &at)| {
                let mut row = vec![0.0; i + 1];
                row[i] = found.values[at];
                row
            })
            .collect();
        Ok(())
    }

    /// Replaces the basis by the first `count` Ritz vectors in the order of preference, orthonormalised. A random vector extends the basis
    /// next. Returns the eigenvalues, computed from the vectors. The eigenvalues of the projection would contain the rounding errors of all
    /// restarts.
    fn lock_ritz_vectors(&mut self, found: &RitzPairs, count: usize) -> Result<Vec<f64>> {
        let combined = self.combine_basis_vectors(&found.vectors, &found.order[..count])?;
        self.vectors.clear();
        self.projection.clear();
        for i in 0..count {
            let (vector, _) = self.subtract_projections(evaluate_contiguous(&combined.index(i)?)?)?;
            self.add_basis_vector(evaluate_contiguous(&vector.divide(vector_norm(&vector)?)?)?)?;
        }
        self.next = self.random_orthogonal_vector()?;
        Ok(self.projection.iter().enumerate().map(|(i, row)| row[i]).collect())
    }
}

/// Returns `u` (m, k), the `k` largest singular values (k) in ascending order, and `vh` (k, n) (`scipy.sparse.linalg.svds`).
///
/// `k` is less than the smaller extent of the matrix (m, n). The singular vectors of one side span the same space as eigenvectors of `a.H @
/// a` or `a @ a.H`, whichever is smaller. In float64, singular values below 1e-8 times the largest one, and their vectors, are
/// inaccurate. Copies of repeated values are found as in [`eigsh`]. The columns of `u` and the rows of `vh` are orthonormal, also for a
/// matrix of lower rank. The operator `a` must provide products with its conjugate transpose ([`LinearOperator::rmatvec`]).
///
/// # Errors
/// The errors of [`eigsh`].
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, LanczosOptions, svds};
/// let a = CsrArray::from_dense(&array![[3.0, 0.0, 0.0], [0.0, 0.0, 5.0]])?;
/// let (u, values, vh) = svds(&a, 1, &LanczosOptions::default())?;
/// assert!((values.to_vec::<f64>()?[0] - 5.0).abs() < 1e-12);
/// assert_eq!((u.shape(), vh.shape()), (&[2, 1][..], &[1, 3][..]));
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.svds(A, k=6, ncv=None, tol=0, *, v0=None, maxiter=None, return_singular_vectors=True)", call = |args: &Args| call_with_named_errors(args, svds_from_args))]
pub fn svds(a: &dyn LinearOperator, k: usize, options: &LanczosOptions) -> Result<(NdArray, NdArray, NdArray)> {
    const OP: &str = "svds";
    let [m, n] = a.extents();
    if k == 0 || k >= m.min(n) {
        return Err(Error::value(OP, format!("k must be from 1 to {}, not {k}; svd returns all values", m.min(n).saturating_sub(1))));
    }
    let is_tall = m >= n;
    let gram = GramOperator::from_operator(OP, a, is_tall)?;
    let (_, basis) = eigsh(&gram, k, Which::LargestAlgebraic, options).map_err(|e| e.with_function_name(OP))?;
    // The columns of `basis` span the singular vectors of one side. The singular value decomposition of their products with `a` gives the
    // values and the vectors of both sides. The vectors of singular values that are zero are orthonormal too.
    let products = (0..k).map(|i| {
        let vector = evaluate_contiguous(&basis.index(s![.., i])?)?;
        let product = if is_tall { a.matvec(&vector)? } else { a.rmatvec(&vector)? };
        evaluate_contiguous(&product.astype(basis.dtype())?.multiply(gram.scale)?)
    });
    let decompose = || {
        let (q, r) = qr(&stack(products.collect::<Result<Vec<_>>>()?, 1)?, QrMode::Reduced)?;
        let (left, values, right) = svd(&r, false)?;
        Ok((
            q.matmul(&left.index(s![.., ..;-1])?)?,
            values.index(s![..;-1])?,
            basis.matmul(&conjugate_transpose(&right.index(s![..;-1])?)?)?,
        ))
    };
    let (other, values, vectors) = decompose().map_err(|e: Error| e.with_function_name(OP))?;
    let (u, v) = if is_tall { (other, vectors) } else { (vectors, other) };
    Ok((evaluate_contiguous(&u)?, evaluate_contiguous(&values.divide(gram.scale)?)?, evaluate_contiguous(&conjugate_transpose(&v)?)?))
}

/// Returns the conjugate transpose of a matrix.
fn conjugate_transpose(a: &NdArray) -> Result<NdArray> {
    if a.dtype().is_complex() { conj(a.t()?) } else { a.t() }
}

/// The Gram matrix of `scale * a` as a linear operator: `scale**2 * a.H @ a` if `a` is tall, else `scale**2 * a @ a.H`.
struct GramOperator<'a> {
    a: &'a dyn LinearOperator,
    is_tall: bool,
    /// A power of two by which `a` is multiplied. With it, the squares of the singular values stay within the range of the dtype.
    scale: f64,
}

impl<'a> GramOperator<'a> {
    /// Creates the operator. `scale` is based on an estimate of the norm of `a`: the norm of its product with a random unit vector.
    fn from_operator(op: &'static str, a: &'a dyn LinearOperator, is_tall: bool) -> Result<GramOperator<'a>> {
        let unscaled = GramOperator { a, is_tall, scale: 1.0 };
        let dtype = solver_dtype(op, a.element_type())?;
        let probe = starting_vector(op, a, unscaled.extents()[0], dtype, &LanczosOptions::default())?;
        let probe = evaluate_contiguous(&probe.divide(vector_norm(&probe)?)?)?;
        let size = vector_norm(&evaluate_contiguous(&if is_tall { a.matvec(&probe)? } else { a.rmatvec(&probe)? })?)?;
        let limit = if dtype.real() == DType::F32 { 126.0 } else { 1022.0 };
        let scale = if size > 0.0 { 2f64.powi(-size.log2().round().clamp(-limit, limit) as i32) } else { 1.0 };
        Ok(GramOperator { scale, ..unscaled })
    }
}

impl LinearOperator for GramOperator<'_> {
    fn extents(&self) -> [usize; 2] {
        let [m, n] = self.a.extents();
        [m.min(n); 2]
    }
    fn element_type(&self) -> DType {
        self.a.element_type()
    }
    fn vector_device(&self) -> Result<Device> {
        self.a.vector_device()
    }
    fn matvec(&self, v: &NdArray) -> Result<NdArray> {
        let scaled = |product: NdArray| product.multiply(self.scale);
        scaled(if self.is_tall { self.a.rmatvec(&scaled(self.a.matvec(v)?)?) } else { self.a.matvec(&scaled(self.a.rmatvec(v)?)?) }?)
    }
    fn rmatvec(&self, v: &NdArray) -> Result<NdArray> {
        self.matvec(v)
    }
}

fn lanczos_options_from_args<'a>(args: &Args, v0: Option<&'a NdArray>) -> Result<LanczosOptions<'a>> {
    let count = |name: &str| args.get(name).map(|_| usize::from_args(args, name)).transpose();
    Ok(LanczosOptions { ncv: count("ncv")?, maxiter: count("maxiter")?, tol: args.scalar_or("tol", 0.0)?.as_f64(), v0 })
}

fn eigsh_from_args(args: &Args) -> Result<Value> {
    let a = SparseArray::from_args(args, "A")?;
    let which = match args.value("which") {
        Some(Value::Str(name)) if name == "LM" => Which::LargestMagnitude,
        Some(Value::Str(name)) if name == "SM" => Which::SmallestMagnitude,
        Some(Value::Str(name)) if name == "LA" => Which::LargestAlgebraic,
        Some(Value::Str(name)) if name == "SA" => Which::SmallestAlgebraic,
        _ => return Err(Error::value(args.op(), "which must be 'LM', 'SM', 'LA' or 'SA'")),
    };
    let v0 = args.get("v0").map(|v| v.array(args.op())).transpose()?;
    let (values, vectors) = eigsh(&a, args.int_or("k", 6)?.max(0) as usize, which, &lanczos_options_from_args(args, v0.as_ref())?)?;
    Ok(match args.bool_or("return_eigenvectors", true)? {
        true => Value::tuple([values.into(), vectors.into()]),
        false => values.into(),
    })
}

fn svds_from_args(args: &Args) -> Result<Value> {
    let a = SparseArray::from_args(args, "A")?;
    let v0 = args.get("v0").map(|v| v.array(args.op())).transpose()?;
    let (u, values, vh) = svds(&a, args.int_or("k", 6)?.max(0) as usize, &lanczos_options_from_args(args, v0.as_ref())?)?;
    Ok(match args.bool_or("return_singular_vectors", true)? {
        true => Value::tuple([u.into(), values.into(), vh.into()]),
        false => values.into(),
    })
}
