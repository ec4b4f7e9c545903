// Gathers elements along the last axis of an array of rows. A block copies a row to shared memory, which has no cache lines, so that reads
// at random indices take fewer cycles. Requires resolve_index.cuh.
//
// ITEM is an element type of 1 to 16 bytes. INDEX_ELEMENT is i32 or i64. THREADS is the number of threads of a block.

using namespace cuprum;

// The rows of a gather. Strides are numbers of elements.
struct GatherRows {
    i64 rows;
    // Number of elements of a row of `in`, and of a row of `out`.
    i64 extent, count;
    // Distances between rows of `in`, elements of a row of `in`, and rows of `indices`, which is 0 if all rows have the same indices.
    i64 row_stride, step, index_stride;
};

// Writes the rows of `out`. A block has dynamic shared memory for one row of `in`. An index out of bounds is recorded in `fault`, and its
// element of `out` is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
gather_rows(ITEM* out, const ITEM* in, const INDEX_ELEMENT* indices, const __grid_constant__ GatherRows shape, Fault* fault, u64 op) {
    extern __shared__ __align__(16) unsigned char shared[];
    ITEM* const row = reinterpret_cast<ITEM*>(shared);
    // An index out of bounds is reported after the loop: a call in the loop would delay the next loads.
    bool is_out_of_bounds = false;
    i64 invalid = 0;
    for (i64 r = blockIdx.x; r < shape.rows; r += gridDim.x) {
        const ITEM* const source = in + r * shape.row_stride;
        const INDEX_ELEMENT* const chosen = indices + r * shape.index_stride;
        ITEM* const target = out + r * shape.count;
        __syncthreads();
#pragma unroll 4
        for (i64 i = threadIdx.x; i < shape.extent; i += THREADS) row[i] = source[i * shape.step];
        __syncthreads();
#pragma unroll 4
        for (i64 i = threadIdx.x; i < shape.count; i += THREADS) {
            const i64 index = chosen[i], position = resolve_index(index, shape.extent);
            ITEM value{};
            if (position < 0) {
                is_out_of_bounds = true;
                invalid = index;
            } else {
                value = row[position];
            }
            target[i] = value;
        }
    }
    if (is_out_of_bounds) report_fault(fault, 1, op, invalid, static_cast<u64>(shape.extent));
}
