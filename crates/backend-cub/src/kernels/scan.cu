// Inclusive scan of contiguous rows in a single pass over memory: decoupled look-back (Merrill and Garland,
// "Single-pass parallel prefix scan with decoupled look-back", 2016) among the tiles of a row. The host defines `Fold`, `Out`,
// `ITEMS` (elements of a thread) and `RANK` (axes of the rows).
//
// Unlike the paper's, this look-back has one result whatever the timing, for floats too. A tile's prefix is a left fold:
// it starts from the nearest finished prefix P(j) and adds the totals of tiles j+1, j+2, ... in this order. P(j) was made
// the same way, so by induction every prefix is (((T0 + T1) + T2) + ...), rounded at the same places, whatever j was met.

namespace cuprum {

using Acc = Fold::Acc;
using Index = i64;
constexpr int THREADS = 256;
constexpr int WARP = 32;
constexpr int TILE = THREADS * ITEMS;
// Tiles that a lane of the first warp looks back at.
constexpr int LOOK = 2;
constexpr int WINDOW = WARP * LOOK;

// ---- tile states: status and value, 32 bits of each in one 64-bit word, so that no word is ever half written ----

constexpr u32 EMPTY = 0, TOTAL = 1, PREFIX = 2;
constexpr int WORDS = (sizeof(Acc) + 3) / 4;

struct States {
    u64* words;
    u32 tiles;  // of all rows: how far a state's words lie apart

    __device__ void publish(u32 tile, u32 status, const Acc& value) const {
        u32 parts[WORDS] = {};
        memcpy(parts, &value, sizeof(Acc));
        #pragma unroll
        for (int w = 0; w < WORDS; w++) store_relaxed(words + u64(w) * tiles + tile, u64(status) << 32 | parts[w]);
    }

    // The status; EMPTY as long as words of different statuses are met.
    __device__ u32 read(i64 tile, Acc& value) const {
        u32 parts[WORDS], status = 0;
        bool whole = true;
        #pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const u64 word = load_relaxed(words + u64(w) * tiles + tile);
            parts[w] = static_cast<u32>(word);
            const u32 here = static_cast<u32>(word >> 32);
            whole = whole && (w == 0 || here == status);
            status = here;
        }
        memcpy(&value, parts, sizeof(Acc));
        return whole ? status : EMPTY;
    }
};

template <class T> __device__ inline T shuffle(T value, int lane) {
    u32 parts[WORDS] = {};
    memcpy(parts, &value, sizeof(T));
    #pragma unroll
    for (int w = 0; w < WORDS; w++) parts[w] = __shfl_sync(0xffffffffu, parts[w], lane);
    memcpy(&value, parts, sizeof(T));
    return value;
}

// The fold of all tiles before `tile` (not the first), by a whole warp.
__device__ inline Acc look_back(const States& states, u32 tile, int lane) {
    // Lane by lane, each with LOOK neighbours, in the order of tiles.
    const i64 first = static_cast<i64>(tile) - WINDOW + lane * LOOK;
    Acc values[LOOK];
    int from;
    while (true) {
        int newest = -1;
        bool whole = true;
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const u32 status = first + k >= 0 ? states.read(first + k, values[k]) : EMPTY;
            if (status == PREFIX) {
                newest = k;
                whole = true;
            }
            whole = whole && status != EMPTY;
        }
        // The last lane with a prefix; what follows it in that lane, and all lanes after it, must be there.
        const u32 finished = __ballot_sync(0xffffffffu, newest >= 0), ready = __ballot_sync(0xffffffffu, whole);
        if (finished != 0) {
            const int start = WARP - 1 - __clz(finished);
            if ((~ready >> start) == 0) {
                from = start * LOOK + __shfl_sync(0xffffffffu, newest, start);
                break;
            }
        }
        __nanosleep(40);
    }
    const Fold fold;
    Acc prefix;
    #pragma unroll
    for (int k = 0; k < LOOK; k++) {
        const Acc found = shuffle(values[k], from / LOOK);
        if (from % LOOK == k) prefix = found;
    }
    for (int i = from / LOOK; i < WARP; i++) {
        #pragma unroll
        for (int k = 0; k < LOOK; k++) {
            const Acc total = shuffle(values[k], i);
            if (i * LOOK + k > from) prefix = fold(prefix, total);
        }
    }
    return prefix;
}

// `ticket` and the words of `states` are 0 before; with one tile a row neither is used.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_rows(Params p, Axes<Index, RANK, INPUTS> axes, Out* out, i64 count, u32* ticket, u64* words, u32 tiles, u32 rows) {
    using Exchange = BlockExchange<Acc, THREADS, ITEMS>;
    using Scan = BlockScan<Acc, THREADS>;
    __shared__ union Storage {
        typename Exchange::TempStorage exchange;
        typename Scan::TempStorage scan;
    } storage;
    __shared__ u32 shared_tile;
    __shared__ Acc shared_prefix;
    const Fold fold;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    // Tiles are taken in order, so those that a tile waits for are running or done.
    u32 row = blockIdx.x, tile = 0;
    if (tiles > 1) {
        if (threadIdx.x == 0) shared_tile = atomicAdd(ticket, 1u);
        __syncthreads();
        row = shared_tile / tiles;
        tile = shared_tile % tiles;
    }
    const Offsets<Index, INPUTS> at = axes.offsets(row);
    Out* const to = out + row * count;
    const i64 base = static_cast<i64>(tile) * TILE, left = count - base;
    const int mine = warp * WARP * ITEMS + lane;
    const bool full = left >= TILE;

    Acc items[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = mine + k * WARP;
        items[k] = full || i < left ? Fold::enter(element(p, at, base + i), 0) : Fold::identity();
    }
    Exchange(storage.exchange).WarpStripedToBlocked(items);
    __syncthreads();
    Acc total;
    Scan(storage.scan).InclusiveScan(items, items, fold, total);

    if (tiles > 1) {
        const States states{words + u64(row) * tiles, rows * tiles};
        if (tile == 0) {
            if (threadIdx.x == 0) states.publish(0, PREFIX, total);
        } else {
            if (warp == 0) {
                if (lane == 0) states.publish(tile, TOTAL, total);
                const Acc prefix = look_back(states, tile, lane);
                if (lane == 0) {
                    states.publish(tile, PREFIX, fold(prefix, total));
                    shared_prefix = prefix;
                }
            }
            __syncthreads();
            const Acc prefix = shared_prefix;
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) items[k] = fold(prefix, items[k]);
        }
    }
    __syncthreads();
    Exchange(storage.exchange).BlockedToWarpStriped(items);
    #pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = mine + k * WARP;
        if (full || i < left) to[base + i] = Fold::leave<Out>(items[k]);
    }
}

}  // namespace cuprum
