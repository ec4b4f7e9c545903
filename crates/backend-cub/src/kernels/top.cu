// The first few of each sorted row without sorting it, by radix selection: pass by pass, from the most significant digit on, the
// digits are counted of the elements that may be the last one asked for, until all that may be are (as in Alabi and others, "Fast
// k-selection algorithms for graphics processing units", 2012). Digits of places follow those of keys: no two elements are
// alike, and of equal ones the first are taken. What is chosen then finds its rank by comparing all pairs.
//
// Stands after block.cuh, share.cuh and keys.cuh; the host defines what the latter names, and `EXACT`: whether the key of the last one
// is looked for to its end, even where no other element is in question.

namespace cuprum {

constexpr int THREADS = 512;
constexpr int BINS = 2048;
// Elements that are asked for, at the most.
constexpr int MOST = 1024;

enum Decided : u32 { NOT_YET, BY_KEYS, BY_PLACES };

// How far a row has come; 0 before. Those asked for come before the last one in the digits from `shift` on, or are like it there.
struct Progress {
    u64 key, place;  // the digits known of the last one
    u64 taken;       // how many come before all that may be the last one
    u32 decided, shift, gathered, ticket;
};

// Finds the digit in bits `shift` to `upper` of the last one's key, or place, in each row of which a block takes one of `chunks`.
// `counts`, BINS for each row, are 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS)
top_digit(const Key* __restrict__ from, Progress* rows, u64* counts, i64 columns, u64 limit, i64 chunk, u32 chunks, u32 of_places, u32 shift, u32 upper) {
    __shared__ u32 bins[BINS];
    __shared__ u64 sums[THREADS / 32];
    __shared__ bool last;
    const u32 row = blockIdx.x / chunks;
    Progress& mine = rows[row];
    if (mine.decided != NOT_YET) return;
    const u64 key_known = mine.key, place_known = mine.place, wanted = limit - mine.taken;
    for (int d = threadIdx.x; d < BINS; d += THREADS) bins[d] = 0;
    __syncthreads();

    const u32 mask = (1u << (upper - shift)) - 1;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in<THREADS>(from + row * columns, begin, end, [&](Key bits, i64 place) {
        const u64 key = key_of(bits);
        if (of_places && key != key_known) return;
        const u64 digits = of_places ? static_cast<u64>(place) : key, known = of_places ? place_known : key_known;
        if (upper < 64 && digits >> upper != known >> upper) return;
        atomicAdd(bins + (static_cast<u32>(digits >> shift) & mask), 1u);
    });
    __syncthreads();
    u64* of_row = counts + static_cast<u64>(row) * BINS;
    for (int d = threadIdx.x; d < BINS; d += THREADS) {
        if (bins[d] > 0) atomicAdd(of_row + d, static_cast<u64>(bins[d]));
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&mine.ticket, 1u) == chunks - 1;
    __syncthreads();
    if (!last) return;

    __threadfence();
    constexpr int EACH = BINS / THREADS;
    u64 own[EACH], upto[1] = {0};
    #pragma unroll
    for (int k = 0; k < EACH; k++) {
        own[k] = __ldcg(of_row + threadIdx.x * EACH + k);
        of_row[threadIdx.x * EACH + k] = 0;
        upto[0] += own[k];
    }
    u64 before = upto[0];
    scan_block<THREADS>(sums, upto, [](u64 a, u64 b) { return a + b; });
    before = upto[0] - before;
    #pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (before < wanted && wanted <= before + own[k]) {
            const u64 digit = static_cast<u64>(threadIdx.x * EACH + k) << shift;
            if (of_places) mine.place = place_known | digit;
            else mine.key = key_known | digit;
            mine.taken = limit - wanted + before;
            mine.shift = shift;
            if (!EXACT && own[k] == wanted - before) mine.decided = of_places ? BY_PLACES : BY_KEYS;
            mine.ticket = 0;
        }
        before += own[k];
    }
}

// Puts the places of those asked for into `chosen`, `limit` a row, in no order.
extern "C" __global__ void __launch_bounds__(THREADS)
top_gather(const Key* __restrict__ from, Progress* rows, i64* chosen, i64 columns, u64 limit, i64 chunk, u32 chunks) {
    const u32 row = blockIdx.x / chunks;
    Progress& mine = rows[row];
    const u64 last_key = mine.key, last_place = mine.place;
    const u32 shift = mine.shift;
    const bool by_keys = mine.decided == BY_KEYS;
    const i64 begin = static_cast<i64>(blockIdx.x % chunks) * chunk, end = columns - begin < chunk ? columns : begin + chunk;
    for_each_in<THREADS>(from + row * columns, begin, end, [&](Key bits, i64 place) {
        const u64 key = key_of(bits);
        const bool is_asked_for = by_keys ? key >> shift <= last_key >> shift
                                          : key < last_key || (key == last_key && static_cast<u64>(place) >> shift <= last_place >> shift);
        if (!is_asked_for) return;
        const u32 slot = atomicAdd(&mine.gathered, 1u);
        if (slot < limit) chosen[row * limit + slot] = place;
    });
}

// Brings the chosen ones into order, a block a row. `values` or `places` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
top_rank(const Key* __restrict__ from, const i64* chosen, Key* values, i64* places, i64 columns, u32 limit) {
    __shared__ u64 keys[MOST];
    __shared__ i64 at[MOST];
    const u64 row = blockIdx.x;
    const Key* elements = from + row * columns;
    for (u32 i = threadIdx.x; i < limit; i += THREADS) {
        at[i] = chosen[row * limit + i];
        keys[i] = key_of(elements[at[i]]);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < limit; i += THREADS) {
        u64 rank = row * limit;
        for (u32 j = 0; j < limit; j++) rank += keys[j] < keys[i] || (keys[j] == keys[i] && at[j] < at[i]);
        if (values != nullptr) values[rank] = elements[at[i]];
        if (places != nullptr) places[rank] = at[i];
    }
}

}  // namespace cuprum
