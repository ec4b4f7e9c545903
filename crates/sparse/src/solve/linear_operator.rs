//! Linear operators: matrices, or functions that compute the product of a matrix with a vector.

use cuprum_core::{DType, Device, NdArray, Result, conj};

use crate::Sparse;

/// A matrix that is defined by its products with vectors (`scipy.sparse.linalg.LinearOperator`).
///
/// Sparse arrays and 2-D dense arrays are linear operators. [`FnOperator`] makes one from a function.
pub trait LinearOperator {
    /// Returns the numbers of rows and columns.
    fn extents(&self) -> [usize; 2];
    /// Returns the dtype of the matrix.
    fn element_type(&self) -> DType;
    /// Returns the device of the vectors that the operator multiplies. The default is the current device.
    ///
    /// # Errors
    /// No device is available.
    fn vector_device(&self) -> Result<Device> {
        Device::current()
    }
    /// Returns the product `a @ v` with a vector of as many elements as the matrix has columns.
    ///
    /// # Errors
    /// Errors of the product.
    fn matvec(&self, v: &NdArray) -> Result<NdArray>;
    /// Returns the product `conj(a).T @ v` with a vector of as many elements as the matrix has rows.
    ///
    /// # Errors
    /// Errors of the product, and operators that cannot multiply by their conjugate transpose.
    fn rmatvec(&self, v: &NdArray) -> Result<NdArray>;
}

impl<S: Sparse> LinearOperator for S {
    fn extents(&self) -> [usize; 2] {
        [self.shape()[0], self.shape()[1]]
    }
    fn element_type(&self) -> DType {
        self.dtype()
    }
    fn vector_device(&self) -> Result<Device> {
        Ok(self.device())
    }
    fn matvec(&self, v: &NdArray) -> Result<NdArray> {
        self.matmul(v)
    }
    fn rmatvec(&self, v: &NdArray) -> Result<NdArray> {
        if self.dtype().is_complex() { conj(self.rmatmul(&conj(v)?)?) } else { self.rmatmul(v) }
    }
}

impl LinearOperator for NdArray {
    fn extents(&self) -> [usize; 2] {
        let extent = |axis: usize| self.shape().get(axis).copied().unwrap_or(0);
        if self.ndim() == 2 { [extent(0), extent(1)] } else { [0, 0] }
    }
    fn element_type(&self) -> DType {
        self.dtype()
    }
    fn vector_device(&self) -> Result<Device> {
        Ok(self.device())
    }
    fn matvec(&self, v: &NdArray) -> Result<NdArray> {
        NdArray::matmul(self, v)
    }
    fn rmatvec(&self, v: &NdArray) -> Result<NdArray> {
        conj(self.t()?)?.matmul(v)
    }
}

/// A function that multiplies a vector by the matrix of a [`FnOperator`], or by its conjugate transpose.
type ProductFn = Box<dyn Fn(&NdArray) -> Result<NdArray> + Send + Sync>;

/// A linear operator that calls functions to compute its products.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::{DType, array};
/// use cuprum::sparse::{FnOperator, SolverOptions, cg};
/// let twice = FnOperator::new([2, 2], DType::F64, |v| v.multiply(2.0));
/// let solution = cg(&twice, &array![2.0, 4.0], &SolverOptions::default())?;
/// assert!(solution.has_converged);
/// # Ok::<(), cuprum::Error>(())
/// ```
pub struct FnOperator {
    extents: [usize; 2],
    dtype: DType,
    multiply: ProductFn,
    multiply_adjoint: Option<ProductFn>,
}

impl FnOperator {
    /// Creates an operator of the shape `extents` that calls `multiply` for its product with a vector.
    pub fn new(extents: [usize; 2], dtype: DType, multiply: impl Fn(&NdArray) -> Result<NdArray> + Send + Sync + 'static) -> FnOperator {
        FnOperator { extents, dtype, multiply: Box::new(multiply), multiply_adjoint: None }
    }

    /// Sets the function that computes products with the conjugate transpose.
    #[must_use]
    pub fn with_adjoint(self, multiply_adjoint: impl Fn(&NdArray) -> Result<NdArray> + Send + Sync + 'static) -> FnOperator {
        FnOperator { multiply_adjoint: Some(Box::new(multiply_adjoint)), ..self }
    }
}

impl LinearOperator for FnOperator {
    fn extents(&self) -> [usize; 2] {
        self.extents
    }
    fn element_type(&self) -> DType {
        self.dtype
    }
    fn matvec(&self, v: &NdArray) -> Result<NdArray> {
        (self.multiply)(v)
    }
    fn rmatvec(&self, v: &NdArray) -> Result<NdArray> {
        match &self.multiply_adjoint {
            Some(multiply) => multiply(v),
            None => Err(cuprum_core::Error::value("rmatvec", "the operator has no product of its conjugate transpose; use with_adjoint")),
        }
    }
}
