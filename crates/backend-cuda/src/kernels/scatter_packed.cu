// Stores values of at most 4 bytes in rows that have one element each. If several values go to a row, the last one remains. Requires
// atomic_update.cuh and resolve_index.cuh.
//
// ITEM is an element type of 1, 2 or 4 bytes. INDEX_ELEMENT, the element type of the index array, is i32 or i64.
//
// A word holds the position of a value plus 1 in its upper half, and the value in its lower half. The last value of a row thus has the
// largest word of the row. One atomic maximum per value replaces a pass that finds positions and another that reads values by position.

using namespace cuprum;

// For each row, writes the largest word of its values to `words`, which must be zeroed. A word holds the position of a value plus 1 in its
// upper half, and the value in its lower half. `step` is the stride of `in`, in elements. An index out of bounds is recorded in `fault`.
extern "C" __global__ void __launch_bounds__(256)
scatter_write_largest_words(u64* words, const ITEM* in, const INDEX_ELEMENT* indices, i64 count, i64 rows, i64 step, Fault* fault, u64 op) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 n = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += stride) {
        // Later values have larger words, so values are processed from last to first. Most remaining values then find a larger word in
        // memory, and need no atomic operation.
        const i64 i = count - 1 - n, index = indices[i], row = resolve_index(index, rows);
        if (row < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(rows));
            continue;
        }
        const u64 word = static_cast<u64>(i + 1) << 32 | in[i * step];
        if (words[row] < word) atomic_maximum(words + row, word);
    }
}

// Stores the lower half of `words[row]`, a value, to row `row` of `out`, unless the word is 0. `step` is the distance between rows of
// `out`, in elements.
extern "C" __global__ void __launch_bounds__(256)
scatter_unpack_words(ITEM* out, const u64* words, i64 rows, i64 step) {
    const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 row = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += stride) {
        const u64 word = words[row];
        if (word != 0) out[row * step] = static_cast<ITEM>(word);
    }
}
