// A stable merge of two sorted arrays, divided into tiles of equal size by "merge path" (O. Green, R. McColl and D. A. Bader, "GPU merge
// path", 2012). Requires sort_keys.cuh. The host defines ELEMENT (the element type), THREADS (per block), ITEMS (elements per thread, an
// odd number, which avoids bank conflicts) and DESCENDING (1 for descending order, else 0).

using namespace cuprum;

constexpr int TILE = THREADS * ITEMS;

using Key = decltype(sort_key(*static_cast<const ELEMENT*>(nullptr)));

// Returns whether an element of the right array with the key `right` comes before an element of the left array with the key `left`.
__device__ inline bool right_is_first(const Key& left, const Key& right) { return DESCENDING ? left < right : right < left; }

// Returns how many of the first `count` merged elements come from `left`.
template <class Index>
__device__ inline Index count_from_left(const ELEMENT* left, Index left_count, const ELEMENT* right, Index right_count, Index count) {
    Index low = count > right_count ? count - right_count : 0, high = count < left_count ? count : left_count;
    while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (right_is_first(sort_key(left[middle]), sort_key(right[count - 1 - middle]))) high = middle;
        else low = middle + 1;
    }
    return low;
}

// Writes, for each tile, the number of elements of `left` that precede the tile in the merged array. The last of the `tiles` + 1 numbers is
// `left_count`.
extern "C" __global__ void __launch_bounds__(THREADS)
find_merge_tiles(i64* __restrict__ splits, const ELEMENT* __restrict__ left, i64 left_count, const ELEMENT* __restrict__ right,
                 i64 right_count, i64 tiles) {
    const i64 size = left_count + right_count;
    for (i64 n = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x; n <= tiles; n += static_cast<i64>(gridDim.x) * THREADS) {
        splits[n] = count_from_left(left, left_count, right, right_count, n * TILE < size ? n * TILE : size);
    }
}

// Writes the `size` merged elements to `out`. A block merges one tile at a time.
extern "C" __global__ void __launch_bounds__(THREADS)
merge_tiles(ELEMENT* __restrict__ out, const ELEMENT* __restrict__ left, const ELEMENT* __restrict__ right, const i64* __restrict__ splits,
            i64 size, i64 tiles) {
    __shared__ ELEMENT tile[TILE];
    for (i64 n = blockIdx.x; n < tiles; n += gridDim.x) {
        const i64 first = n * TILE, from_left = splits[n];
        const int count = static_cast<int>(size - first < TILE ? size - first : TILE), left_count = static_cast<int>(splits[n + 1] - from_left);
        const ELEMENT* const left_part = left + from_left;
        const ELEMENT* const right_part = right + (first - from_left) - left_count;
        ELEMENT x[ITEMS];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            if (i < count) x[k] = (i < left_count ? left_part : right_part)[i];
        }
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) tile[k * THREADS + threadIdx.x] = x[k];
        __syncthreads();
        // Each thread merges ITEMS elements. It holds the next element of each array and that element's key.
        const int begin = threadIdx.x * ITEMS < count ? threadIdx.x * ITEMS : count;
        int i = count_from_left<int>(tile, left_count, tile + left_count, count - left_count, begin), j = left_count + begin - i;
        ELEMENT next_left = tile[i < TILE ? i : 0], next_right = tile[j < TILE ? j : 0];
        Key left_key = sort_key(next_left), right_key = sort_key(next_right);
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const bool takes_right = i >= left_count || (j < count && right_is_first(left_key, right_key));
            x[k] = takes_right ? next_right : next_left;
            const int next = takes_right ? ++j : ++i;
            const ELEMENT loaded = tile[next < TILE ? next : 0];
            if (takes_right) {
                next_right = loaded;
                right_key = sort_key(loaded);
            } else {
                next_left = loaded;
                left_key = sort_key(loaded);
            }
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            if (begin + k < count) tile[begin + k] = x[k];
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            if (i < count) out[first + i] = tile[i];
        }
        __syncthreads();
    }
}
