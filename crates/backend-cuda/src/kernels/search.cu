// Binary search for insertion points in a sorted array (NumPy's searchsorted). Requires sort_keys.cuh. ELEMENT is the element type. AFTER
// is 1 for insertion after equal elements (side='right'), else 0. ITEMS is the number of values per thread.
//
// Each block copies every `step`-th key of the sorted array to shared memory and searches these samples first. The number of loop
// iterations depends on sizes only, so that the searches of one thread are interleaved.
//
// The samples form a search tree in level order: the keys that the searches compare in one iteration are adjacent. In sorted order, the
// distance between these keys would be a power of two, and many of them would be in the same bank of shared memory.

using namespace cuprum;

using Key = decltype(sort_key(ELEMENT()));

constexpr int THREADS = 1024;
constexpr i64 TILE = THREADS * ITEMS;

// Returns whether a sorted element with the key `here` precedes the insertion point of a value with the key `key`.
__device__ inline bool is_before(const Key& here, const Key& key) { return AFTER ? here <= key : here < key; }

// Returns the number of bits of `n`, which is the number of iterations of a search in `n` elements.
__device__ inline int bit_count(u32 n) { return 32 - __clz(n); }

// Writes the insertion points of `count` values. The number of keys in shared memory is the smallest power of 2 that exceeds `size / step`,
// the number of samples.
extern "C" __global__ void __launch_bounds__(THREADS)
search_sorted(i64* __restrict__ out, const ELEMENT* __restrict__ sorted, i64 size, i64 step, const ELEMENT* __restrict__ values, i64 count) {
    extern __shared__ uint4 shared[];
    Key* const samples = reinterpret_cast<Key*>(shared);
    const u32 sample_count = static_cast<u32>(size / step);
    // A sample is the last of `step` consecutive elements. If the sample precedes an insertion point, so do the other elements.
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
            if (i < count) out[i] = base[k] + low[k];
        }
    }
}
