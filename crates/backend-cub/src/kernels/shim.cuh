// What the kernels use of CCCL, in one place. Every name here but one is documented, public interface (cub/block)
// that has kept its meaning from CCCL 2.7 to 3.6. The one is BlockRadixRankMatchEarlyCounts, which CUB does not document; its
// interface is the same in those versions.
//
// This comes before the prelude, whose own names live in namespace cuprum.

#include <cub/version.cuh>
#ifdef CUPRUM_BLOCKS
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#endif

#if CUB_VERSION < 200700
#error "CCCL 2.7 or later is needed"
#endif

namespace cuprum {

#ifdef CUPRUM_BLOCKS
template <class T, int Threads> using BlockScan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
template <class T, int Threads, int Items> using BlockExchange = cub::BlockExchange<T, Threads, Items>;
using NoValue = cub::NullType;
template <class Key, int Threads, int Items, class Value>
using BlockRadixSort = cub::BlockRadixSort<Key, Threads, Items, Value, 5>;

// Ranks of a block's keys by a digit of 8 bits, in the order of their warps, items and lanes; each of the first 256 threads
// gets the rank of its digit's first key, and `counted` is called with how many there are, before ranks are known. `digit` has
// a member `Digit(key)`.
template <int Threads> struct RadixRanks {
    using Rank = cub::BlockRadixRankMatchEarlyCounts<Threads, 8, false, cub::BLOCK_SCAN_WARP_SCANS>;
    using TempStorage = typename Rank::TempStorage;

    template <class Key, int Items, class Extractor, class Counted>
    __device__ static void rank(TempStorage& storage, Key (&keys)[Items], int (&ranks)[Items], Extractor digit, int& of_digit, const Counted& counted) {
        int begin[1];
        Rank(storage).RankKeys(keys, ranks, digit, begin, counted);
        of_digit = begin[0];
    }
};
#endif

}  // namespace cuprum
