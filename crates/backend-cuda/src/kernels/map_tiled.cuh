// An elementwise expression in which some inputs ("crossed") are contiguous along another axis than the outputs. The crossed inputs
// are read through tiles in shared memory, so that every access is contiguous.
//
// Requires: Index, RANK (axes besides the two of a tile), SIDE; the generated code of an element; StagedTiles, stage(), load_staged();
// Outputs, store().

namespace cuprum {

// Extents and strides of the two axes of a tile. The outputs have stride 1 along the axis "along". The crossed inputs, which are read
// through shared memory, have stride 1 along the axis "across".
struct TileAxes {
    Index along, across;              // extents
    Offsets<Index, INPUTS> one_along, one_across;  // strides of the inputs
    Index out_across;                 // stride of the outputs along "across"; their stride along "along" is 1
};

// Computes the expression in tiles of SIDE x SIDE elements, with one block of 256 threads per tile. `outer` has the axes of the loop
// besides the two axes of a tile, with the strides of the inputs and, last, of the outputs.
extern "C" __global__ void __launch_bounds__(256)
KERNEL(const Params p, const Axes<Index, RANK, INPUTS + 1> outer, const TileAxes tile_axes, const Outputs out, const u64 tiles) {
    constexpr int STEP = 256 / SIDE;
    __shared__ StagedTiles staged;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const Index tiles_along = (tile_axes.along + SIDE - 1) / SIDE, tiles_across = (tile_axes.across + SIDE - 1) / SIDE;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 band = tile / static_cast<u64>(tiles_along);
        const Index first_along = static_cast<Index>(tile - band * static_cast<u64>(tiles_along)) * SIDE;
        const Index number = static_cast<Index>(band / static_cast<u64>(tiles_across));
        const Index first_across = static_cast<Index>(band - static_cast<u64>(number) * static_cast<u64>(tiles_across)) * SIDE;
        const Offsets<Index, INPUTS + 1> base = outer.offsets(number);
        const auto at = [&](Index along, Index across) {
            Offsets<Index, INPUTS> offsets;
            #pragma unroll
            for (int k = 0; k < INPUTS; k++) offsets.at[k] = base.at[k] + along * tile_axes.one_along.at[k] + across * tile_axes.one_across.at[k];
            return offsets;
        };
        #pragma unroll
        for (int k = 0; k < SIDE; k += STEP) {
            const Index along = first_along + y + k, across = first_across + x;
            if (along < tile_axes.along && across < tile_axes.across) stage(staged, p, at(along, across), y + k, x);
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < SIDE; k += STEP) {
            const Index along = first_along + x, across = first_across + y + k;
            if (along < tile_axes.along && across < tile_axes.across) {
                const Results results = compute(p, load_staged(staged, p, at(along, across), x, y + k));
                store(out, base.at[INPUTS] + along + across * tile_axes.out_across, results);
            }
        }
        __syncthreads();
    }
}

}  // namespace cuprum
