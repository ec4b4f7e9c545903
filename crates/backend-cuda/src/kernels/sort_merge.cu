// A stable merge of the two sorted parts of each row, divided into tiles of equal size by "merge path" (O. Green, R. McColl and D. A. Bader,
// "GPU merge path", 2012). Requires sort_keys.cuh. The host defines ELEMENT (the element type), THREADS (per block), ITEMS (elements per
// thread, an odd number, which avoids bank conflicts) and DESCENDING (1 for descending order, else 0).

using namespace cuprum;

constexpr int TILE = THREADS * ITEMS;

// Returns whether `right`, an element of the second part, comes before `left`, an element of the first part.
__device__ inline bool right_is_first(const ELEMENT& left, const ELEMENT& right) {
    return DESCENDING ? sort_key(left) < sort_key(right) : sort_key(right) < sort_key(left);
}

// Returns how many of the first `count` merged elements come from `left`.
template <class Index>
__device__ inline Index count_from_left(const ELEMENT* left, Index left_count, const ELEMENT* right, Index right_count, Index count) {
    Index low = count > right_count ? count - right_count : 0, high = count < left_count ? count : left_count;
    while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (right_is_first(left[middle], right[count - 1 - middle])) high = middle;
        else low = middle + 1;
    }
    return low;
}

// Writes, for each row and each tile, the number of elements of the row's first part that precede the tile in the merged row. A row has
// `tiles` + 1 such numbers; the last one is `at`, the size of the first part.
extern "C" __global__ void __launch_bounds__(256)
find_merge_tiles(i64* __restrict__ splits, const ELEMENT* __restrict__ in, i64 rows, i64 length, i64 at, i64 tiles) {
    const i64 per_row = tiles + 1;
    for (i64 n = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x; n < rows * per_row; n += static_cast<i64>(gridDim.x) * 256) {
        const ELEMENT* const row = in + n / per_row * length;
        const i64 end = n % per_row * TILE;
        splits[n] = count_from_left(row, at, row + at, length - at, end < length ? end : length);
    }
}

// Writes the merged rows to `out`. A block merges one tile at a time.
extern "C" __global__ void __launch_bounds__(THREADS)
merge_tiles(ELEMENT* __restrict__ out, const ELEMENT* __restrict__ in, const i64* __restrict__ splits, i64 rows, i64 length, i64 at, i64 tiles) {
    __shared__ ELEMENT tile[TILE];
    for (i64 n = blockIdx.x; n < rows * tiles; n += gridDim.x) {
        const i64 row = n / tiles, first = n % tiles * TILE;
        const i64 left = splits[row * (tiles + 1) + n % tiles], left_end = splits[row * (tiles + 1) + n % tiles + 1];
        const int count = static_cast<int>(length - first < TILE ? length - first : TILE), left_count = static_cast<int>(left_end - left);
        const ELEMENT* const from_left = in + row * length + left;
        const ELEMENT* const from_right = in + row * length + at + (first - left) - left_count;
        ELEMENT x[ITEMS];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            if (i < count) x[k] = (i < left_count ? from_left : from_right)[i];
        }
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + threadIdx.x;
            if (i < count) tile[i] = x[k];
        }
        __syncthreads();
        const int begin = threadIdx.x * ITEMS < count ? threadIdx.x * ITEMS : count;
        int i = count_from_left<int>(tile, left_count, tile + left_count, count - left_count, begin);
        int j = left_count + begin - i;
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const bool from_second = i >= left_count || (j < count && right_is_first(tile[i], tile[j]));
            const int next = from_second ? j++ : i++;
            x[k] = tile[next < TILE ? next : TILE - 1];
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
            if (i < count) out[row * length + first + i] = tile[i];
        }
        __syncthreads();
    }
}
