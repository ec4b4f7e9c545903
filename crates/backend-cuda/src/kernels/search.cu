// Searches in a sorted array (NumPy's searchsorted and isin). Requires sort_keys.cuh. ELEMENT is the element type. RESULT is 0 for
// insertion points before equal elements, 1 for those after equal elements (side='right'), 2 for whether an equal element is found, and 3
// for whether none is found. ITEMS is the number of values per thread.
//
// Each block copies every `step`-th key of the sorted array to shared memory and searches these samples first. The number of loop
// iterations depends on sizes only, so that the searches of one thread are interleaved.
//
// The samples form a search tree in level order: the keys that the searches compare in one iteration are adjacent. In sorted order, the
// distance between these keys would be a power of two, and many of them would be in the same bank of shared memory.

using namespace cuprum;

using Key = decltype(sort_key(ELEMENT()));
using Result = choose<(RESULT < 2), i64, bool>::type;

constexpr int THREADS = 1024;
constexpr i64 TILE = THREADS * ITEMS;

// Returns whether a sorted element with the key `here` precedes the insertion point of a value with the key `key`.
__device__ inline bool is_before(const Key& here, const Key& key) { return RESULT == 1 ? here <= key : here < key; }

// Returns whether an element is NaN, and thus equal to no element.
template <class T> __device__ inline bool is_nan(T x) {
    if constexpr (is_complex<T>) return x.re != x.re || x.im != x.im;
    else if constexpr (is_half<T>) return is_nan(static_cast<f32>(x));
    else return x != x;
}

// Returns the number of bits of `n`, which is the number of iterations of a search in `n` elements.
__device__ inline int bit_count(u32 n) { return 32 - __clz(n); }

// Writes the results of `count` values. The number of keys in shared memory is the smallest power of 2 that exceeds `size / step`,
// the number of samples.
extern "C" __global__ void __launch_bounds__(THREADS)
search_sorted(Result* __restrict__ out, const ELEMENT* __restrict__ sorted, i64 size, i64 step, const ELEMENT* __restrict__ values, i64 count) {
    extern __shared__ uint4 shared[];
    Key* const samples = reinterpret_cast<Key*>(shared);
    const u32 sample_count = static_cast<u32>(size / step);
    // A sample is the last of `step` consecutive elements. If the sample precedes an insertion point, so do these elements.
    const int levels = bit_count(sample_count), steps = bit_count(static_cast<u32>(step - 1));
    for (u32 n = threadIdx.x + 1; n <= sample_count; n += THREADS) {
        const int height = __ffs(n) - 1;  // of the tree's node for sample n, counted from 1
        samples[(1u << (levels - 1 - height)) + (n >> (height + 1))] = sort_key(sorted[n * step - 1]);
    }
    __syncthreads();
    for (i64 tile = blockIdx.x * TILE; tile < count; tile += gridDim.x * TILE) {
        Key key[ITEMS];
        u32 low[ITEMS];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const i64 i = tile + k * THREADS + threadIdx.x;
            key[k] = sort_key(values[i < count ? i : count - 1]);
            low[k] = 0;
        }
        for (int height = levels - 1; height >= 0; height--) {
            const u32 level = 1u << (levels - 1 - height);
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const u32 next = low[k] + (1u << height);
                if (next <= sample_count && is_before(samples[level + (next >> (height + 1))], key[k])) low[k] = next;
            }
        }
        i64 base[ITEMS];
        u32 length[ITEMS];
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            base[k] = low[k] * step;
            length[k] = static_cast<u32>(min(step - 1, size - base[k]));
            low[k] = 0;
        }
        for (int height = steps - 1; height >= 0; height--) {
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                const u32 next = low[k] + (1u << height);
                if (next <= length[k] && is_before(sort_key(sorted[base[k] + next - 1]), key[k])) low[k] = next;
            }
        }
        #pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const i64 i = tile + k * THREADS + threadIdx.x;
            if (i >= count) continue;
            const i64 point = base[k] + low[k];
            if constexpr (RESULT < 2) {
                out[i] = point;
            } else {
                const Key here = sort_key(sorted[point < size ? point : size - 1]);
                const bool found = here <= key[k] && key[k] <= here && !is_nan(values[i]);
                out[i] = found == (RESULT == 2);
            }
        }
    }
}

// Returns the insertion point of a value with the key `key`: the number of sorted elements before it.
__device__ inline i64 insertion_point(const ELEMENT* sorted, i64 size, const Key& key) {
    i64 low = 0;
    while (size > 0) {
        const i64 half = (size + 1) / 2;
        if (is_before(sort_key(sorted[low + half - 1]), key)) low += half;
        size -= half;
    }
    return low;
}

constexpr int LOG_FILTER_BITS = 19, FILTER_WORDS = (1 << LOG_FILTER_BITS) / 32;

// Returns the index of the filter bit for a key: a hash of all bits of the key.
__device__ inline u32 filter_bit(u64 key) { return static_cast<u32>(key * 0x9e3779b97f4a7c15ull >> (64 - LOG_FILTER_BITS)); }
__device__ inline u32 filter_bit(const u128& key) { return filter_bit(key.high * 0xff51afd7ed558ccdull ^ key.low); }

// Writes, for each of `count` values, whether the sorted array has an equal element. Most values have none. Each block therefore has a
// filter (a hashed bit set) of all elements of the sorted array, and searches only the values whose bit is set. The block first lists these
// values, so that all threads of a warp then search.
constexpr int PER_THREAD = 8, FIND_MEMBERS_TILE_LENGTH = PER_THREAD * THREADS;
extern "C" __global__ void __launch_bounds__(THREADS)
find_members(Result* __restrict__ out, const ELEMENT* __restrict__ sorted, i64 size, const ELEMENT* __restrict__ values, i64 count) {
    extern __shared__ uint4 shared[];
    u32* const filter = reinterpret_cast<u32*>(shared);
    u16* const listed = reinterpret_cast<u16*>(filter + FILTER_WORDS);
    __shared__ u32 length;
    for (int i = threadIdx.x; i < FILTER_WORDS; i += THREADS) filter[i] = 0;
    __syncthreads();
    for (i64 n = threadIdx.x; n < size; n += THREADS) {
        const u32 bit = filter_bit(sort_key(sorted[n]));
        atomicOr(&filter[bit / 32], 1u << bit % 32);
    }
    for (i64 tile = static_cast<i64>(blockIdx.x) * FIND_MEMBERS_TILE_LENGTH; tile < count; tile += static_cast<i64>(gridDim.x) * FIND_MEMBERS_TILE_LENGTH) {
        __syncthreads();
        if (threadIdx.x == 0) length = 0;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const int own = k * THREADS + threadIdx.x;
            bool is_listed = false;
            if (tile + own < count) {
                const ELEMENT value = values[tile + own];
                const u32 bit = filter_bit(sort_key(value));
                is_listed = (filter[bit / 32] >> bit % 32 & 1) != 0 && !is_nan(value);
                if (!is_listed) out[tile + own] = RESULT == 3;
            }
            const u32 lanes = __ballot_sync(~0u, is_listed);
            u32 first = 0;
            if (threadIdx.x % 32 == 0 && lanes != 0) first = atomicAdd(&length, static_cast<u32>(__popc(lanes)));
            first = __shfl_sync(~0u, first, 0);
            if (is_listed) listed[first + __popc(lanes & ((1u << threadIdx.x % 32) - 1))] = static_cast<u16>(own);
        }
        __syncthreads();
        for (u32 n = threadIdx.x; n < length; n += THREADS) {
            const i64 i = tile + listed[n];
            const Key key = sort_key(values[i]);
            const i64 point = insertion_point(sorted, size, key);
            out[i] = (point < size && sort_key(sorted[point]) <= key) == (RESULT == 2);
        }
    }
}
