// Selects the first few elements of each row in sorted order, without sorting the row, by radix selection.
//
// Each pass counts the values of one digit, starting with the most significant one, over the elements that may be the last selected element
// (the candidates). Passes end when all remaining candidates are selected. The digits of the index follow those of the key, so that no two
// elements are equal, and the first of equal keys are selected. Finally each selected element is compared with all other selected elements,
// which gives its rank. Source: Alabi and others, "Fast k-selection algorithms for graphics processing units", 2012.
//
// Requires block.cuh, block_range.cuh and sort_keys.cuh. The host defines the names that sort_keys.cuh requires, and `EXACT`. With EXACT,
// passes determine all digits of the last selected key, even if no other candidate is left.

namespace cuprum {

constexpr int THREADS = 512;
constexpr int BINS = 2048;
// Maximum number of selected elements per row.
constexpr int MAX_SELECTED = 1024;

enum SelectionStatus : u32 { NOT_YET, BY_KEYS, BY_INDICES };

// State of the selection in one row, zeroed before the first pass. An element is selected if its bits are not greater than those of the
// last selected element. Bits below `begin_bit` are ignored.
struct SelectState {
    u64 key, index;  // the known digits of the last selected element
    u64 before;      // number of elements that come, in sort order, before all candidates for the last selected element
    u32 decided, begin_bit, gathered, ticket;
};

// Determines one digit (bits begin_bit..end_bit) of the last selected element of each row, which is element `limit - 1` of the sorted row.
// The digit belongs to the element's index if `of_indices`, else to its key. A block counts one chunk, and the last block of a row finds
// the digit. `counts` has BINS counters per row, which are 0 before and after the kernel.
extern "C" __global__ void __launch_bounds__(THREADS)
select_digit(const Key* __restrict__ from, SelectState* rows, u64* counts, i64 columns, u64 limit, i64 chunk, u32 chunks, u32 of_indices,
             u32 begin_bit, u32 end_bit) {
    __shared__ u32 bins[BINS];
    __shared__ u64 sums[THREADS / 32];
    __shared__ bool is_last;
    const u32 row = blockIdx.x / chunks;
    SelectState& state = rows[row];
    if (state.decided != NOT_YET) return;
    const u64 known_key = state.key, known_index = state.index, wanted = limit - state.before;
    for (int d = threadIdx.x; d < BINS; d += THREADS) bins[d] = 0;
    __syncthreads();

    const u32 mask = (1u << (end_bit - begin_bit)) - 1;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in_block_range<THREADS>(from + row * columns, begin, end, [&](Key bits, i64 index) {
        const u64 key = sort_key_of(bits);
        if (of_indices && key != known_key) return;
        const u64 digits = of_indices ? static_cast<u64>(index) : key, known = of_indices ? known_index : known_key;
        if (end_bit < 64 && digits >> end_bit != known >> end_bit) return;
        atomicAdd(bins + (static_cast<u32>(digits >> begin_bit) & mask), 1u);
    });
    __syncthreads();
    u64* row_counts = counts + static_cast<u64>(row) * BINS;
    for (int d = threadIdx.x; d < BINS; d += THREADS) {
        if (bins[d] > 0) atomicAdd(row_counts + d, static_cast<u64>(bins[d]));
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&state.ticket, 1u) == chunks - 1;
    __syncthreads();
    if (!is_last) return;

    __threadfence();
    constexpr int BINS_PER_THREAD = BINS / THREADS;
    u64 own[BINS_PER_THREAD], inclusive[1] = {0};
    #pragma unroll
    for (int k = 0; k < BINS_PER_THREAD; k++) {
        own[k] = __ldcg(row_counts + threadIdx.x * BINS_PER_THREAD + k);
        row_counts[threadIdx.x * BINS_PER_THREAD + k] = 0;
        inclusive[0] += own[k];
    }
    u64 before = inclusive[0];
    scan_block<THREADS>(sums, inclusive, [](u64 a, u64 b) { return a + b; });
    before = inclusive[0] - before;
    #pragma unroll
    for (int k = 0; k < BINS_PER_THREAD; k++) {
        if (before < wanted && wanted <= before + own[k]) {
            const u64 digit = static_cast<u64>(threadIdx.x * BINS_PER_THREAD + k) << begin_bit;
            if (of_indices) state.index = known_index | digit;
            else state.key = known_key | digit;
            state.before = limit - wanted + before;
            state.begin_bit = begin_bit;
            if (!EXACT && own[k] == wanted - before) state.decided = of_indices ? BY_INDICES : BY_KEYS;
            state.ticket = 0;
        }
        before += own[k];
    }
}

// Writes the indices of the `limit` selected elements of each row to `chosen`, in no particular order.
extern "C" __global__ void __launch_bounds__(THREADS)
gather_top_elements(const Key* __restrict__ from, SelectState* rows, i64* chosen, i64 columns, u64 limit, i64 chunk, u32 chunks) {
    const u32 row = blockIdx.x / chunks;
    SelectState& state = rows[row];
    const u64 last_key = state.key, last_index = state.index;
    const u32 begin_bit = state.begin_bit;
    const bool by_keys = state.decided == BY_KEYS;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in_block_range<THREADS>(from + row * columns, begin, end, [&](Key bits, i64 index) {
        const u64 key = sort_key_of(bits);
        const bool is_selected = by_keys ? key >> begin_bit <= last_key >> begin_bit
                                         : key < last_key || (key == last_key && static_cast<u64>(index) >> begin_bit <= last_index >> begin_bit);
        if (!is_selected) return;
        const u32 slot = atomicAdd(&state.gathered, 1u);
        if (slot < limit) chosen[row * limit + slot] = index;
    });
}

// Writes the selected elements of each row in sorted order, one block per row. `values` or `indices` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
rank_top_elements(const Key* __restrict__ from, const i64* chosen, Key* values, i64* indices, i64 columns, u32 limit) {
    __shared__ u64 keys[MAX_SELECTED];
    __shared__ i64 at[MAX_SELECTED];
    const u64 row = blockIdx.x;
    const Key* elements = from + row * columns;
    for (u32 i = threadIdx.x; i < limit; i += THREADS) {
        at[i] = chosen[row * limit + i];
        keys[i] = sort_key_of(elements[at[i]]);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < limit; i += THREADS) {
        u64 rank = row * limit;
        for (u32 j = 0; j < limit; j++) rank += keys[j] < keys[i] || (keys[j] == keys[i] && at[j] < at[i]);
        if (values != nullptr) values[rank] = elements[at[i]];
        if (indices != nullptr) indices[rank] = at[i];
    }
}

}  // namespace cuprum
