// The parts of CCCL that the kernels use.
//
// All but one are documented, public interfaces (cub/block) with the same meaning from CCCL 2.7 to 3.6. CUB does not document
// BlockRadixRankMatchEarlyCounts, but its interface is the same in those versions.
//
// This file precedes the prelude, so that the prelude cannot affect CCCL's headers.

#include <cub/version.cuh>
#ifdef CUPRUM_CUB_BLOCK
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#endif

#if CUB_VERSION < 200700
#error "CCCL 2.7 or later is needed"
#endif

namespace cuprum {

#ifdef CUPRUM_CUB_BLOCK
template <class T, int Threads> using BlockScan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
template <class T, int Threads, int Items> using BlockExchange = cub::BlockExchange<T, Threads, Items>;
using NoValue = cub::NullType;
template <class Key, int Threads, int Items, class Value>
using BlockRadixSort = cub::BlockRadixSort<Key, Threads, Items, Value, 5>;

// Ranks the keys of a block by an 8-bit digit. Keys of equal digits keep the order of their warps, items and lanes.
//
// In thread d < 256, `digit_begin` receives the rank of the first key with digit d. Before the ranks are computed, thread d calls `counted`
// with the number of keys with digit d. `digit` has a member function `Digit(key)`, which returns the digit of a key.
template <int Threads> struct RadixRanks {
    using Rank = cub::BlockRadixRankMatchEarlyCounts<Threads, 8, false, cub::BLOCK_SCAN_WARP_SCANS>;
    using TempStorage = typename Rank::TempStorage;

    template <class Key, int Items, class Extractor, class Counted>
    __device__ static void rank_keys(TempStorage& storage, Key (&keys)[Items], int (&ranks)[Items], Extractor digit, int& digit_begin, const Counted& counted) {
        int begin[1];
        Rank(storage).RankKeys(keys, ranks, digit, begin, counted);
        digit_begin = begin[0];
    }
};
#endif

}  // namespace cuprum
