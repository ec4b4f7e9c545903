// What the kernels use of CCCL, in one place. Every name here is documented, public interface (cub/block, cub/warp) that
// has kept its meaning from CCCL 2.7 to 3.6; an internal one, should a kernel need it, belongs here with its versions.
//
// This comes before the prelude, whose own names live in namespace cuprum.

#include <cub/version.cuh>
#ifdef CUPRUM_REDUCE
#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>
#endif
#ifdef CUPRUM_SCAN
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_scan.cuh>
#endif

#if CUB_VERSION < 200700
#error "CCCL 2.7 or later is needed"
#endif

namespace cuprum {

#ifdef CUPRUM_REDUCE
// Raking through warp shuffles: the order of combination is fixed by the number of threads.
template <class T, int Threads> using BlockReduce = cub::BlockReduce<T, Threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
template <class T, int Lanes> using WarpReduce = cub::WarpReduce<T, Lanes>;
#endif
#ifdef CUPRUM_SCAN
template <class T, int Threads> using BlockScan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
template <class T, int Threads, int Items> using BlockExchange = cub::BlockExchange<T, Threads, Items>;
#endif

}  // namespace cuprum
