//! Transforms of a long line on several threads. A line of `rows * columns` elements is a matrix in C order: its columns are transformed,
//! multiplied by roots of unity, and its rows are transformed (Bailey, "FFTs in external or hierarchical memory", 1990).

use cuprum_core::Result;
use cuprum_core::layout::Layout;
use cuprum_cpu_base::typed_views::HostVec;
use num_complex::Complex;

use crate::axis_pass::{StridedSource, transform_lines, transform_lines_and_finish_each};
use crate::line_transform::ComplexToComplex;
use crate::plan_cache::TransformFloat;

/// Minimum length of a line that several threads share. The decision depends only on the length and the number of lines, so results do not
/// depend on the number of threads.
const MIN_SPLIT_LINE_LENGTH: usize = if cfg!(miri) { 1 << 8 } else { 1 << 17 };
/// Maximum number of lines for which the threads share each line. More lines are transformed one per thread.
const MAX_SPLIT_LINES: usize = 4;
/// Maximum ratio of columns to rows of the matrix as which a long line is transformed.
const MAX_COLUMNS_PER_ROW: usize = 16;

/// A complex transform of a line, as transforms of the columns and of the rows of a matrix.
pub(crate) struct SplitTransform<T> {
    of_columns: ComplexToComplex<T>,
    of_rows: ComplexToComplex<T>,
    rows: usize,
    columns: usize,
    roots: RootsOfUnity,
}

impl<T: TransformFloat> SplitTransform<T> {
    /// Returns the transform of lines of `n` elements, or `None` if `lines` such lines are not split.
    pub fn new_for_length(n: usize, lines: usize, inverse: bool) -> Result<Option<SplitTransform<T>>> {
        if n < MIN_SPLIT_LINE_LENGTH || lines > MAX_SPLIT_LINES {
            return Ok(None);
        }
        let Some(rows) = (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows)).filter(|rows| n / rows <= rows * MAX_COLUMNS_PER_ROW)
        else {
            return Ok(None);
        };
        let columns = n / rows;
        let of_columns = ComplexToComplex::new_for_length(rows, inverse)?;
        let of_rows = ComplexToComplex::new_for_length(columns, inverse)?;
        Ok(Some(SplitTransform { of_columns, of_rows, rows, columns, roots: RootsOfUnity::new(n, inverse)? }))
    }

    /// Allocates memory for a transformed line whose columns are transformed.
    pub fn allocate_columns(&self) -> Result<HostVec<Complex<T>>> {
        HostVec::allocate(self.rows * self.columns)
    }

    /// Reads a line as a matrix, transforms the columns of the matrix, and multiplies the results by roots of unity. The line begins at
    /// index `offset` of `buffer` and has the stride `stride`.
    pub fn transform_columns(&self, buffer: &[Complex<T>], offset: usize, stride: isize, to: &mut [Complex<T>]) -> Result<()> {
        let layout = Layout::strided(&[self.rows, self.columns], &[self.columns as isize * stride, stride], offset)?;
        transform_lines_and_finish_each(&self.of_columns, StridedSource { buffer, layout: &layout }, 0, to, T::one(), |column, values| {
            self.roots.multiply_by_powers(column, values);
        })
    }

    /// Transforms the rows of the matrix `from`, whose columns have been transformed already. Multiplies the results by `factor` and writes
    /// them to the line `out`.
    pub fn transform_rows(&self, from: &[Complex<T>], out: &mut [Complex<T>], factor: T) -> Result<()> {
        let transposed = Layout::strided(&[self.columns, self.rows], &[1, self.columns as isize], 0)?;
        transform_lines(&self.of_rows, StridedSource { buffer: from, layout: &transposed }, 0, out, factor)
    }
}

/// The powers of a primitive `n`-th root of unity. Each is the product of two of about `2 * sqrt(n)` numbers in memory.
struct RootsOfUnity {
    n: usize,
    /// The powers `0..1 << shift`.
    fine: Vec<Complex<f64>>,
    /// The powers whose exponents are multiples of `1 << shift`.
    coarse: Vec<Complex<f64>>,
    shift: u32,
}

impl RootsOfUnity {
    fn new(n: usize, inverse: bool) -> Result<RootsOfUnity> {
        let shift = n.ilog2() / 2;
        let sign = if inverse { 1.0 } else { -1.0 };
        let root = |power: usize| Complex::cis(sign * std::f64::consts::TAU * power as f64 / n as f64);
        let list = |count: usize, step: usize| -> Result<Vec<Complex<f64>>> {
            let mut list = Vec::new();
            cuprum_core::host_buffer::try_reserve("fft", &mut list, count)?;
            list.extend((0..count).map(|i| root(i * step)));
            Ok(list)
        };
        Ok(RootsOfUnity { n, fine: list(1 << shift, 1)?, coarse: list((n >> shift) + 1, 1 << shift)?, shift })
    }

    /// Returns the root to the power `power`, which is less than `n`.
    fn root_to_power(&self, power: usize) -> Complex<f64> {
        self.coarse[power >> self.shift] * self.fine[power & ((1 << self.shift) - 1)]
    }

    /// Multiplies element `i` of `values` by the root to the power `i * step`.
    fn multiply_by_powers<T: TransformFloat>(&self, step: usize, values: &mut [Complex<T>]) {
        const BLOCK_LEN: usize = 32;
        let convert = |root: Complex<f64>| {
            let part = |x: f64| T::from_f64(x).unwrap_or_else(T::zero);
            Complex::new(part(root.re), part(root.im))
        };
        let within: [Complex<T>; BLOCK_LEN] = std::array::from_fn(|i| convert(self.root_to_power(i * step % self.n)));
        for (block, values) in values.chunks_mut(BLOCK_LEN).enumerate() {
            let first = convert(self.root_to_power(block * BLOCK_LEN * step % self.n));
            values.iter_mut().zip(&within).for_each(|(value, root)| *value = *value * (first * root));
        }
    }
}
