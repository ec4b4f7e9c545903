// Product of two matrices in compressed row format (CSR). Requires sparse.cuh.
//
// The product of a row has at most as many elements as there are products of an element of `a` with an element of `b`. This bound decides
// the size class of a row. A warp computes a small or medium row with a hash table in shared memory. A block computes a large row with one
// sum per column of `b` in global memory. A first pass counts the columns of each row, a second pass computes the elements.
//
// Every sum adds its terms in the order of the elements of `a`, as on the CPU. Columns of a row ascend.

using namespace cuprum;

constexpr int THREADS = 256, WARPS = THREADS / 32;

// Size classes of result rows, by the number of products of an element of `a` with an element of `b`.
constexpr u8 EMPTY = 0, SMALL = 1, MEDIUM = 2, LARGE = 3;
constexpr i64 MAX_SMALL = 128, MAX_MEDIUM = 512;
// Number of entries of the hash table for a small and for a medium row. At most half of them are used.
constexpr int SMALL_TABLE = 2 * MAX_SMALL, MEDIUM_TABLE = 2 * MAX_MEDIUM;

// Counters and flags in global memory that all kernels of a sparse product share. `has_class[c]` is not 0 if a row has size class `c`.
struct ProductCounters {
    u64 total;
    u64 large_rows;
    u64 next_counted, next_multiplied;
    u64 has_class[4];
};

// The product of two elements, rounded as on the CPU.
__device__ inline f32 multiply_rounded(f32 a, f32 b) { return mul_rn(a, b); }
__device__ inline f64 multiply_rounded(f64 a, f64 b) { return mul_rn(a, b); }
template <class X> __device__ inline complex<X> multiply_rounded(complex<X> a, complex<X> b) {
    return complex<X>(sub_rn(mul_rn(a.re, b.re), mul_rn(a.im, b.im)), add_rn(mul_rn(a.re, b.im), mul_rn(a.im, b.re)));
}
__device__ inline u32 multiply_rounded(u32 a, u32 b) { return is_same<T, bool> ? a & b : a * b; }
__device__ inline u64 multiply_rounded(u64 a, u64 b) { return a * b; }

template <class X> __device__ inline X shuffle(X x, int lane) {
    if constexpr (is_complex<X>) return X(__shfl_sync(~0u, x.re, lane), __shfl_sync(~0u, x.im, lane));
    else return __shfl_sync(~0u, x, lane);
}

__device__ inline int lane_number() { return threadIdx.x % 32; }
__device__ inline u32 lanes_below() { return (1u << lane_number()) - 1; }

template <class X> __device__ inline X scan_warp(X x) {
    #pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const X before = __shfl_up_sync(~0u, x, distance);
        if (lane_number() >= distance) x += before;
    }
    return x;
}

// Returns the sum of `x` over this thread and all threads of the block with lower indices. Sets `total` to the sum over all threads of the
// block. `shared` has WARPS elements.
template <class X> __device__ inline X scan_block(X x, X* shared, X& total) {
    const int warp = threadIdx.x / 32;
    X sum = scan_warp(x);
    if (lane_number() == 31) shared[warp] = sum;
    __syncthreads();
    total = X();
    #pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) sum += shared[w];
        total += shared[w];
    }
    __syncthreads();
    return sum;
}

// Determines the size class of each row, lists the large rows in `large`, and sets `counts` of empty rows to 0. One warp reads one row.
extern "C" __global__ void __launch_bounds__(THREADS)
classify_rows(u8* classes, i32* counts, i32* large, ProductCounters* counters, const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b,
              Fault* fault, u64 op) {
    InvalidCsrNumber bad = {}, bad_other = {};
    const i64 stride = static_cast<i64>(gridDim.x) * WARPS;
    for (i64 row = (static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x) / 32; row < a.rows; row += stride) {
        const RowRange range = a.row_range(row, bad);
        u64 products = 0;
        for (i64 at = range.begin + lane_number(); at < range.end; at += 32) {
            const RowRange other = b.row_range(a.column_of_element(at, bad), bad_other);
            products += static_cast<u64>(other.end - other.begin);
        }
        products = shuffle(scan_warp(products), 31);
        if (lane_number() != 0) continue;
        const u8 kind = products == 0 ? EMPTY : products <= MAX_SMALL ? SMALL : products <= MAX_MEDIUM ? MEDIUM : LARGE;
        classes[row] = kind;
        if (kind == EMPTY) counts[row] = 0;
        if (kind == LARGE) large[atomicAdd(&counters->large_rows, u64(1))] = static_cast<i32>(row);
        counters->has_class[kind] = 1;
    }
    a.report_invalid_number(bad, fault, op);
    b.report_invalid_number(bad_other, fault, op);
}

// A hash table of columns in shared memory, with linear probing. Unused entries are -1.
template <int Entries> struct ColumnHashTable {
    static constexpr int SHIFT = Entries == SMALL_TABLE ? 24 : 22;
    static_assert(Entries == 1 << (32 - SHIFT));
    i32* keys;

    __device__ void clear_entries() const {
        #pragma unroll
        for (int i = 0; i < Entries / 32; i++) keys[32 * i + lane_number()] = -1;
        __syncwarp();
    }
    // Returns the index of the entry of `column`, and sets `inserted` if the entry is new.
    __device__ int find_or_insert(i32 column, bool& inserted) const {
        u32 at = static_cast<u32>(column) * 0x9e3779b1u >> SHIFT;
        for (;; at = (at + 1) % Entries) {
            const i32 old = atomicCAS(&keys[at], -1, column);
            inserted = old == -1;
            if (inserted || old == column) return static_cast<int>(at);
        }
    }
};

// Calls `f` in all lanes of the warp for each group of 32 products of a row, in order. The arguments of `f` are whether the lane has a
// product, the column of the product, and its two factors. The row has less than 2^31 products.
template <class F> __device__ inline void for_each_product(const CsrMatrix& a, const CsrMatrix& b, i64 row, InvalidCsrNumber& bad, F f) {
    const RowRange range = a.row_range(row, bad);
    for (i64 base = range.begin; base < range.end; base += 32) {
        const i64 at = base + lane_number();
        RowRange other = {0, 0};
        Acc left = zero();
        if (at < range.end) {
            other = b.row_range(a.column_of_element(at, bad), bad);
            left = cast<Acc>(a.values[at]);
        }
        const int length = static_cast<int>(other.end - other.begin), end = scan_warp(length), total = shuffle(end, 31);
        for (int first = 0; first < total; first += 32) {
            const int number = first + lane_number();
            // Finds by bisection the lane whose element of `a` has product `number`: the first lane whose products end after `number`.
            int source = 0;
            #pragma unroll
            for (int step = 16; step > 0; step /= 2) {
                if (shuffle(end, source + step - 1) <= number) source += step;
            }
            source = source < 32 ? source : 31;
            const i64 start = shuffle(other.begin, source) - shuffle(end - length, source);
            const Acc factor = shuffle(left, source);
            const bool is_product = number < total;
            f(is_product, is_product ? static_cast<i32>(b.column_of_element(start + number, bad)) : -1, factor,
              is_product ? cast<Acc>(b.values[start + number]) : zero());
        }
    }
}

// Counts the distinct columns of each result row whose size class is `kind`. One warp counts one row.
template <int Entries> __device__ inline void count_distinct_columns(i32* counts, const u8* classes, u8 kind, const CsrMatrix& a, const CsrMatrix& b, Fault* fault, u64 op) {
    __shared__ i32 keys[WARPS][Entries];
    const ColumnHashTable<Entries> table = {keys[threadIdx.x / 32]};
    InvalidCsrNumber bad = {};
    const i64 stride = static_cast<i64>(gridDim.x) * WARPS;
    for (i64 row = (static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x) / 32; row < a.rows; row += stride) {
        if (classes[row] != kind) continue;
        table.clear_entries();
        int count = 0;
        for_each_product(a, b, row, bad, [&](bool is_product, i32 column, Acc, Acc) {
            bool inserted = false;
            if (is_product) table.find_or_insert(column, inserted);
            count += inserted;
        });
        count = scan_warp(count);
        if (lane_number() == 31) counts[row] = count;
        __syncwarp();
    }
    b.report_invalid_number(bad, fault, op);
}
extern "C" __global__ void __launch_bounds__(THREADS)
count_small_rows(i32* counts, const u8* classes, const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b, Fault* fault, u64 op) {
    count_distinct_columns<SMALL_TABLE>(counts, classes, SMALL, a, b, fault, op);
}
extern "C" __global__ void __launch_bounds__(THREADS)
count_medium_rows(i32* counts, const u8* classes, const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b, Fault* fault, u64 op) {
    count_distinct_columns<MEDIUM_TABLE>(counts, classes, MEDIUM, a, b, fault, op);
}

// Returns the next large row for this block, or -1 if there is none. `next` counts the rows that blocks have taken.
__device__ inline i64 next_large_row(const i32* large, const ProductCounters* counters, u64* next) {
    __shared__ i64 row;
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 number = atomicAdd(next, u64(1));
        row = number < counters->large_rows ? large[number] : -1;
    }
    __syncthreads();
    return row;
}

// Counts the distinct columns of the large result rows. Each block has a bit per column in `bits`. All bits are 0 before and after the
// kernel.
extern "C" __global__ void __launch_bounds__(THREADS)
count_large_rows(i32* counts, const i32* large, ProductCounters* counters, u32* bits, const __grid_constant__ CsrMatrix a,
                 const __grid_constant__ CsrMatrix b, Fault* fault, u64 op) {
    __shared__ i32 sums[WARPS];
    const i64 words = (b.columns + 31) / 32;
    u32* const own = bits + blockIdx.x * words;
    InvalidCsrNumber bad = {};
    for (i64 row; (row = next_large_row(large, counters, &counters->next_counted)) >= 0;) {
        const RowRange range = a.row_range(row, bad);
        for (i64 at = range.begin + threadIdx.x / 32; at < range.end; at += WARPS) {
            const RowRange other = b.row_range(a.column_of_element(at, bad), bad);
            for (i64 p = other.begin + lane_number(); p < other.end; p += 32) {
                const u32 column = static_cast<u32>(b.column_of_element(p, bad));
                atomicOr(&own[column / 32], 1u << column % 32);
            }
        }
        __syncthreads();
        i32 count = 0, total;
        for (i64 word = threadIdx.x; word < words; word += THREADS) {
            const u32 set = own[word];
            if (set == 0) continue;
            count += __popc(set);
            own[word] = 0;
        }
        scan_block(count, sums, total);
        if (threadIdx.x == 0) counts[row] = total;
    }
    b.report_invalid_number(bad, fault, op);
}

// Writes the sum of the counts of each group of THREADS rows to `block_sums`.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_counts(i64* block_sums, const i32* counts, i64 rows) {
    __shared__ i64 shared[WARPS];
    const i64 row = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    i64 total;
    scan_block(row < rows ? static_cast<i64>(counts[row]) : i64(0), shared, total);
    if (threadIdx.x == 0) block_sums[blockIdx.x] = total;
}

// Replaces each number in `block_sums` by the sum of all numbers before it. Sets `counters->total` to the sum of all. The grid has one
// block.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_block_sums(i64* block_sums, i64 blocks, ProductCounters* counters) {
    __shared__ i64 shared[WARPS];
    i64 before = 0;
    for (i64 first = 0; first < blocks; first += THREADS) {
        const i64 at = first + threadIdx.x, own = at < blocks ? block_sums[at] : 0;
        i64 total;
        const i64 sum = scan_block(own, shared, total);
        if (at < blocks) block_sums[at] = before + sum - own;
        before += total;
    }
    if (threadIdx.x == 0) counters->total = static_cast<u64>(before);
}

// Writes `indptr`: the index of the first element of each row, then the number of all elements.
extern "C" __global__ void __launch_bounds__(THREADS)
write_indptr(I* indptr, const i64* block_sums, const i32* counts, i64 rows) {
    __shared__ i64 shared[WARPS];
    const i64 row = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    i64 total;
    const i64 end = block_sums[blockIdx.x] + scan_block(row < rows ? static_cast<i64>(counts[row]) : i64(0), shared, total);
    if (row < rows) indptr[row + 1] = static_cast<I>(end);
    if (row == 0) indptr[0] = 0;
}

// The lanes of a warp that have the same key as this lane, and the number of such lanes before this lane.
struct EqualKeyLanes {
    u32 lanes;
    int rank;
};
__device__ inline EqualKeyLanes find_equal_key_lanes(i32 key) {
    const u32 lanes = __match_any_sync(~0u, key);
    return {lanes, __popc(lanes & lanes_below())};
}

// Adds `product` to `*sum` in each lane with `is_product`. Lanes with the same `sum` add one after another. `is_new` tells whether the
// sum has no term yet.
__device__ inline void add_products_in_order(bool is_product, const EqualKeyLanes& conflict, bool is_new, Acc product, Acc* sum) {
    for (int rank = 0;; rank++) {
        if (is_product && conflict.rank == rank) *sum = is_new && rank == 0 ? product : add(*sum, product);
        __syncwarp();
        if (!__any_sync(~0u, is_product && conflict.rank > rank)) return;
    }
}

// Sorts `count` numbers, a power of 2, by the threads of a warp.
__device__ inline void warp_bitonic_sort(u64* numbers, int count) {
    for (int size = 2; size <= count; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            for (int i = lane_number(); i < count / 2; i += 32) {
                const int low = (i & ~(distance - 1)) * 2 | (i & (distance - 1)), high = low | distance;
                const u64 x = numbers[low], y = numbers[high];
                if ((x > y) == ((low & size) == 0)) {
                    numbers[low] = y;
                    numbers[high] = x;
                }
            }
            __syncwarp();
        }
    }
}

// Computes the result rows whose size class is `kind`. One warp computes one row. Blocks have 32 * TableWarps threads.
template <int Entries, int TableWarps> __device__ inline void multiply_rows(I* indices, T* values, const I* indptr, const u8* classes, u8 kind, const CsrMatrix& a, const CsrMatrix& b) {
    __shared__ alignas(16) unsigned char key_storage[TableWarps][Entries * sizeof(i32)];
    __shared__ alignas(16) unsigned char sum_storage[TableWarps][Entries * sizeof(Acc)];
    const int warp = threadIdx.x / 32;
    const ColumnHashTable<Entries> table = {reinterpret_cast<i32*>(key_storage[warp])};
    u64* const order = reinterpret_cast<u64*>(key_storage[warp]);
    Acc* const sums = reinterpret_cast<Acc*>(sum_storage[warp]);
    InvalidCsrNumber bad = {};
    const i64 stride = static_cast<i64>(gridDim.x) * TableWarps;
    for (i64 row = static_cast<i64>(blockIdx.x) * TableWarps + warp; row < a.rows; row += stride) {
        if (classes[row] != kind) continue;
        table.clear_entries();
        for_each_product(a, b, row, bad, [&](bool is_product, i32 column, Acc left, Acc right) {
            bool inserted = false;
            const int slot = is_product ? table.find_or_insert(column, inserted) : -1;
            const EqualKeyLanes conflict = find_equal_key_lanes(slot);
            // The hash table entry is new if any lane with the same slot has just inserted it.
            const bool is_new = (__ballot_sync(~0u, inserted) & conflict.lanes) != 0;
            add_products_in_order(is_product, conflict, is_new, multiply_rounded(left, right), &sums[slot < 0 ? 0 : slot]);
        });
        // A list of the used hash table entries, sorted by column, replaces the keys in shared memory.
        i32 keys[Entries / 32];
        #pragma unroll
        for (int i = 0; i < Entries / 32; i++) keys[i] = table.keys[32 * i + lane_number()];
        __syncwarp();
        int count = 0;
        #pragma unroll
        for (int i = 0; i < Entries / 32; i++) {
            const u32 used = __ballot_sync(~0u, keys[i] >= 0);
            if (keys[i] >= 0) order[count + __popc(used & lanes_below())] = static_cast<u64>(keys[i]) << 32 | static_cast<u32>(32 * i + lane_number());
            count += __popc(used);
        }
        int padded = 1;
        while (padded < count) padded *= 2;
        for (int i = count + lane_number(); i < padded; i += 32) order[i] = ~u64(0);
        __syncwarp();
        warp_bitonic_sort(order, padded);
        const i64 begin = indptr[row];
        for (int i = lane_number(); i < count; i += 32) {
            indices[begin + i] = static_cast<I>(order[i] >> 32);
            values[begin + i] = cast<T>(sums[static_cast<u32>(order[i])]);
        }
        __syncwarp();
    }
}

// Size in bytes of the hash table of a warp.
template <int Entries> constexpr int TABLE_BYTES = Entries * static_cast<int>(sizeof(i32) + sizeof(Acc));
// Number of warps whose hash tables fit in 48 KiB of shared memory: 8, 4 or 2.
template <int Entries> constexpr int TABLE_WARPS = 8 * TABLE_BYTES<Entries> <= 48 << 10 ? 8 : 4 * TABLE_BYTES<Entries> <= 48 << 10 ? 4 : 2;

extern "C" __global__ void __launch_bounds__(32 * TABLE_WARPS<SMALL_TABLE>)
multiply_small_rows(I* indices, T* values, const I* indptr, const u8* classes, const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b) {
    multiply_rows<SMALL_TABLE, TABLE_WARPS<SMALL_TABLE>>(indices, values, indptr, classes, SMALL, a, b);
}
extern "C" __global__ void __launch_bounds__(32 * TABLE_WARPS<MEDIUM_TABLE>)
multiply_medium_rows(I* indices, T* values, const I* indptr, const u8* classes, const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b) {
    multiply_rows<MEDIUM_TABLE, TABLE_WARPS<MEDIUM_TABLE>>(indices, values, indptr, classes, MEDIUM, a, b);
}

// Computes the large rows. Each block has a bit and a sum per column in `bits` and `sums`. All bits are 0 before and after the kernel.
//
// The threads of a block expand up to BATCH products in order into shared memory. Then each warp adds the products of its own columns, so
// that the terms of a sum keep their order.
extern "C" __global__ void __launch_bounds__(THREADS)
multiply_large_rows(I* indices, T* values, const I* indptr, const i32* large, ProductCounters* counters, u32* bits, Acc* sums,
                    const __grid_constant__ CsrMatrix a, const __grid_constant__ CsrMatrix b) {
    constexpr int PER = 4, BATCH = PER * THREADS;
    __shared__ i64 shared[WARPS], ends[THREADS], starts[THREADS];
    __shared__ i32 columns[BATCH], counts[WARPS];
    __shared__ alignas(16) unsigned char storage[(THREADS + BATCH) * sizeof(Acc)];
    Acc* const factors = reinterpret_cast<Acc*>(storage);
    Acc* const products = factors + THREADS;
    const i64 words = (b.columns + 31) / 32;
    u32* const own_bits = bits + blockIdx.x * words;
    Acc* const own_sums = sums + blockIdx.x * b.columns;
    const u32 warp = threadIdx.x / 32;
    InvalidCsrNumber bad = {};
    for (i64 row; (row = next_large_row(large, counters, &counters->next_multiplied)) >= 0;) {
        const RowRange range = a.row_range(row, bad);
        for (i64 base = range.begin; base < range.end; base += THREADS) {
            const i64 at = base + threadIdx.x;
            RowRange other = {0, 0};
            if (at < range.end) {
                other = b.row_range(a.column_of_element(at, bad), bad);
                factors[threadIdx.x] = cast<Acc>(a.values[at]);
            }
            i64 total;
            const i64 length = other.end - other.begin, end = scan_block(length, shared, total);
            ends[threadIdx.x] = end;
            starts[threadIdx.x] = other.begin - (end - length);
            __syncthreads();
            for (i64 first = 0; first < total; first += BATCH) {
                #pragma unroll
                for (int k = 0; k < PER; k++) {
                    const i64 number = first + k * THREADS + threadIdx.x;
                    i32 column = -1;
                    if (number < total) {
                        // Finds by bisection the element of `a` that has product `number`: the first element whose products end after
                        // `number`.
                        int source = 0;
                        #pragma unroll
                        for (int step = THREADS / 2; step > 0; step /= 2) {
                            if (ends[source + step - 1] <= number) source += step;
                        }
                        const i64 p = starts[source] + number;
                        column = static_cast<i32>(b.column_of_element(p, bad));
                        products[k * THREADS + threadIdx.x] = multiply_rounded(factors[source], cast<Acc>(b.values[p]));
                    }
                    columns[k * THREADS + threadIdx.x] = column;
                }
                __syncthreads();
                for (int i = lane_number(); i < BATCH; i += 32) {
                    const i32 column = columns[i];
                    // Each of the eight warps adds the products of its own columns. Multiplicative hashing distributes the columns over the
                    // warps.
                    const bool is_own = column >= 0 && static_cast<u32>(column) * 0x9e3779b1u >> 29 == warp;
                    if (!__any_sync(~0u, is_own)) continue;
                    const EqualKeyLanes conflict = find_equal_key_lanes(is_own ? column : -1 - lane_number());
                    bool is_new = false;
                    if (is_own && conflict.rank == 0) {
                        const u32 bit = 1u << static_cast<u32>(column) % 32;
                        is_new = (atomicOr(&own_bits[static_cast<u32>(column) / 32], bit) & bit) == 0;
                    }
                    add_products_in_order(is_own, conflict, is_new, is_own ? products[i] : zero(), own_sums + (is_own ? column : 0));
                }
                __syncthreads();
            }
        }
        i64 position = indptr[row];
        for (i64 first = 0; first < words; first += THREADS) {
            const i64 word = first + threadIdx.x;
            u32 set = word < words ? own_bits[word] : 0;
            i32 total;
            const i32 count = __popc(set);
            i64 to = position + scan_block(count, counts, total) - count;
            position += total;
            if (set != 0) own_bits[word] = 0;
            for (; set != 0; set &= set - 1, to++) {
                const i64 column = 32 * word + __ffs(set) - 1;
                indices[to] = static_cast<I>(column);
                values[to] = cast<T>(own_sums[column]);
            }
        }
    }
}
