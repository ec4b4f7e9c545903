// Stores values at rows that indices select. Requires resolve_index.cuh.
//
// ITEM is an element type of 1 to 16 bytes. INDEX_ELEMENT, the element type of the index array, and INDEX, the type of offsets, are i32 or
// i64. RANK is the number of axes of the values.

using namespace cuprum;

// Sets `owners[row]` to 0 for each selected row. The elements of `owners` for other rows stay uninitialised.
extern "C" __global__ void __launch_bounds__(256)
scatter_clear_owners(u64* owners, const INDEX_ELEMENT* indices, i64 count, i64 rows) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const i64 row = resolve_index(indices[i], rows);
        if (row >= 0) owners[row] = 0;
    }
}

// Sets `owners[row]`, for each selected row, to 1 plus the position of the last index that selects the row.
extern "C" __global__ void __launch_bounds__(256)
scatter_write_owners(u64* owners, const INDEX_ELEMENT* indices, i64 count, i64 rows) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const i64 row = resolve_index(indices[i], rows);
        if (row >= 0) atomicMax(owners + row, static_cast<u64>(i) + 1);
    }
}

// Stores the `count` elements of `in` in the rows of `out` that `indices` select. `axes` holds the strides of `in`, those of `out` without
// its indexed axis, and those of `indices`. `rows` and `step` are the extent and stride of the indexed axis. If several indices select a
// row, the last one stores its values, provided that `owners` is not null. An index out of bounds is recorded in `fault`, and its values
// are not stored.
extern "C" __global__ void __launch_bounds__(256)
scatter_store(ITEM* out, const ITEM* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, const u64* owners, Fault* fault,
              u64 op, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 index = indices[at.at[2]], row = resolve_index(index, rows);
        if (row < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(rows));
        } else if (owners == nullptr || owners[row] == static_cast<u64>(at.at[2]) + 1) {
            out[at.at[1] + row * step] = in[at.at[0]];
        }
    }
}
