// The kernel of an expression over rows that contains reductions along the rows, such as softmax. A team of threads shares each row.
// Requires rows.cuh, then the generated function `compute_row`.

namespace cuprum {

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
KERNEL(const __grid_constant__ Params p, const __grid_constant__ Axes<Index, RANK, OPERANDS> axes, const __grid_constant__ Outputs out,
       const u64 rows, const u64 length) {
    __shared__ TeamScratch scratch;
    constexpr int TEAMS = BLOCK / TEAM;
    const int rank = threadIdx.x % TEAM;
    for (u64 base = static_cast<u64>(blockIdx.x) * TEAMS; base < rows; base += static_cast<u64>(gridDim.x) * TEAMS) {
        // A team (the threads that share a row) past the last row repeats the last row, because all threads of a warp must take part in the
        // shuffles.
        const u64 mine = base + threadIdx.x / TEAM, row = mine < rows ? mine : rows - 1;
        compute_row(p, out, axes.offsets(static_cast<Index>(row)), rank, static_cast<int>(length), mine < rows, scratch);
        // Without this barrier, the totals of the next row could overwrite totals that are still being read. If the expression has several
        // reductions, the barriers in `combine_in_team` suffice.
        if constexpr (TEAM > 32 && FOLDS < 2) __syncthreads();
    }
}

}  // namespace cuprum
