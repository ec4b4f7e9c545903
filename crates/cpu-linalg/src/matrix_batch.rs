//! Loops over the matrices of a batch, and their scratch memory.

use std::mem::MaybeUninit;

use bytemuck::AnyBitPattern;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Call, Element, Error, Result};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{HostVec, add_op_to_out_of_memory_error};
use faer::dyn_stack::StackReq;

use crate::column_blocks::ThreadsPerMatrix;

/// Minimum work of one task, in elementary operations such as additions.
const MIN_COST_PER_TASK: usize = 1 << 15;

/// The matrices of a call, divided into tasks of consecutive matrices.
pub(crate) struct MatrixBatch<'a> {
    call: &'a Call<'a>,
    count: usize,
    /// Number of matrices in each task except the last.
    pub(crate) per_task: usize,
    cost: usize,
}

impl<'a> MatrixBatch<'a> {
    /// Divides the `count` matrices of `call` into tasks. The work for one matrix is `cost` elementary operations.
    pub(crate) fn new(call: &'a Call<'a>, count: usize, cost: usize) -> MatrixBatch<'a> {
        MatrixBatch { call, count, per_task: (MIN_COST_PER_TASK / cost.max(1)).max(1), cost: cost.saturating_mul(count) }
    }

    /// Returns the threads that compute one matrix: all threads if there are fewer matrices than threads, otherwise the calling thread.
    pub(crate) fn threads_per_matrix(&self) -> ThreadsPerMatrix {
        if self.count < threads::max_threads() { ThreadsPerMatrix::All } else { ThreadsPerMatrix::One }
    }

    /// Calls `body` for every task on several threads. `body` receives the scratch memory of the thread (from `scratch`), the index of the
    /// task's first matrix, and the task's element of `items`. Returns the error of the matrix with the lowest index.
    pub(crate) fn for_each_task<I: Send, S>(
        &self,
        items: impl ExactSizeIterator<Item = I> + Send,
        scratch: impl Fn() -> Result<S> + Sync,
        body: impl Fn(&mut S, usize, I) -> Result<(), MatrixFailure> + Sync,
    ) -> Result<()> {
        let outcomes = threads::map(
            items.enumerate(),
            self.cost,
            || None,
            |kept: &mut Option<S>, (task, item)| {
                let scratch = match kept {
                    Some(scratch) => scratch,
                    None => kept.insert(scratch()?),
                };
                body(scratch, task * self.per_task, item).map_err(|failure| match failure {
                    MatrixFailure::Matrix(matrix, failure) => Error::LinAlg { op: self.call.op.name(), failure, matrix, batch: self.count },
                    MatrixFailure::Other(error) => error,
                })
            },
        )?;
        outcomes.into_iter().collect()
    }

    /// Returns `len` elements with arbitrary values, in memory from the array allocator.
    pub(crate) fn allocate_values<T: AnyBitPattern>(&self, len: usize) -> Result<HostVec<T>> {
        HostVec::allocate(len).map_err(|error| add_op_to_out_of_memory_error(self.call.op.name(), error))
    }

    /// Returns `len` zeros.
    pub(crate) fn allocate_zeros<T: Element + Default>(&self, len: usize) -> Result<Vec<T>> {
        let mut values = Vec::new();
        try_reserve(self.call.op.name(), &mut values, len)?;
        values.resize(len, T::default());
        Ok(values)
    }

    /// Allocates scratch memory of the given size, which a function of faer requires.
    pub(crate) fn allocate_scratch(&self, size: StackReq) -> Result<FaerWorkspace> {
        allocate_scratch(self.call.op.name(), size)
    }
}

/// The workspace of a function of faer.
pub(crate) type FaerWorkspace = HostVec<MaybeUninit<u8>>;

/// Allocates scratch memory of the given size, which a function of faer requires, for operation `op`.
pub(crate) fn allocate_scratch(op: &'static str, size: StackReq) -> Result<FaerWorkspace> {
    HostVec::allocate(size.unaligned_bytes_required()).map_err(|error| add_op_to_out_of_memory_error(op, error))
}

/// The reason why a matrix has no result.
pub(crate) enum MatrixFailure {
    /// The index of the matrix in the batch, and the reason: its result does not exist, or an iteration did not converge.
    Matrix(usize, LinAlgFailure),
    /// An error that does not depend on the values of the matrices, such as failed allocation.
    Other(Error),
}

impl From<Error> for MatrixFailure {
    fn from(error: Error) -> MatrixFailure {
        MatrixFailure::Other(error)
    }
}
