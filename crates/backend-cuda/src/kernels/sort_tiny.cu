// A stable sort of rows of at most 256 elements by comparing all pairs. Each thread counts the elements that precede its own in the sorted
// row. Requires sort_keys.cuh. The host defines ELEMENT, the element type.

using namespace cuprum;

using Key = decltype(sort_key(*static_cast<const ELEMENT*>(nullptr)));

// Sorts rows of `length` elements; each block sorts `together` rows at once. Writes the first `limit` sorted elements of each row to
// `values` and their indices to `indices`, unless they are null.
extern "C" __global__ void __launch_bounds__(256)
sort_tiny(const ELEMENT* __restrict__ in, ELEMENT* __restrict__ values, i64* __restrict__ indices, i64 rows, i32 length, i32 limit,
          i32 together, i32 descending) {
    __shared__ Key keys[256];
    const i32 mine = threadIdx.x / length, i = threadIdx.x % length, first = mine * length;
    for (i64 group = static_cast<i64>(blockIdx.x) * together; group < rows; group += static_cast<i64>(gridDim.x) * together) {
        const i64 row = group + mine;
        const bool has = mine < together && row < rows;
        ELEMENT x;
        Key key;
        if (has) {
            x = in[row * length + i];
            key = sort_key(x);
            if (descending) key = static_cast<Key>(~key);
            keys[threadIdx.x] = key;
        }
        __syncthreads();
        if (has) {
            i32 rank = 0;
            for (i32 j = 0; j < length; j++) {
                const Key other = keys[first + j];
                rank += j < i ? other <= key : other < key;
            }
            if (rank < limit) {
                if (values != nullptr) values[row * limit + rank] = x;
                if (indices != nullptr) indices[row * limit + rank] = i;
            }
        }
        __syncthreads();
    }
}
