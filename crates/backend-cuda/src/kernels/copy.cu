// Copies between arrays with any strides. ITEM is an element type of 1 to 16 bytes, INDEX (i32 or i64) the type of offsets, RANK the number
// of axes in `Axes`. `Axes` has the outermost axis first, and holds the strides of the input, then those of the output.

using namespace cuprum;

extern "C" __global__ void __launch_bounds__(256)
copy_strided(ITEM* out, const ITEM* in, INDEX count, const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 2> at = axes.offsets(i);
        out[at.at[1]] = in[at.at[0]];
    }
}

// Copies rows that are contiguous in the output, `inner` elements each. The input has stride `step` along a row. Each thread writes one
// chunk of a row, 16 bytes with an aligned address, in one access. The first and last chunk of a row may be shorter. For this kernel, RANK
// is the number of axes besides the row. `count` is the number of chunks, with `chunks` per row.
extern "C" __global__ void __launch_bounds__(256)
copy_rows(ITEM* out, const ITEM* in, INDEX count, INDEX chunks, INDEX inner, INDEX step, const __grid_constant__ Axes<INDEX, RANK, 2> outer) {
    constexpr int CHUNK = 16 / sizeof(ITEM);
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const INDEX row = i / chunks;
        const Offsets<INDEX, 2> at = outer.offsets(row);
        ITEM* const to = out + at.at[1];
        const ITEM* const from = in + at.at[0];
        // Number of elements between the start of the row in the output and the last aligned address at or below this start.
        const int ahead = static_cast<int>(reinterpret_cast<u64>(to) / sizeof(ITEM) % CHUNK);
        const INDEX first = (i - row * chunks) * CHUNK - ahead;
        Pack<ITEM, CHUNK> chunk;
        #pragma unroll
        for (int k = 0; k < CHUNK; k++) {
            const INDEX j = first + k;
            if (j >= 0 && j < inner) chunk.at[k] = from[j * step];
        }
        if (first >= 0 && first + CHUNK <= inner) {
            *reinterpret_cast<Pack<ITEM, CHUNK>*>(to + first) = chunk;
        } else {
            #pragma unroll
            for (int k = 0; k < CHUNK; k++) {
                const INDEX j = first + k;
                if (j >= 0 && j < inner) to[j] = chunk.at[k];
            }
        }
    }
}

// Strides of an array, in elements, along the two axes that a tile covers: "row" and "column".
struct TileStrides {
    INDEX row, column;
};

// Transposes two axes through tiles in shared memory, so that reads and writes use full cache lines. `in` has stride 1 along the axis
// "row", `out` along the axis "column". For this kernel, RANK is the number of axes besides these two. Blocks have 32 x 8 threads.
extern "C" __global__ void __launch_bounds__(256)
copy_tiled(ITEM* out, const ITEM* in, i64 tiles, INDEX rows, INDEX columns, TileStrides from, TileStrides to,
           const __grid_constant__ Axes<INDEX, RANK, 2> outer) {
    constexpr INDEX SIDE = 32, STEP = 8;
    __shared__ ITEM tile[SIDE][SIDE + 1];
    const INDEX row_tiles = (rows + SIDE - 1) / SIDE, column_tiles = (columns + SIDE - 1) / SIDE;
    const INDEX x = threadIdx.x, y = threadIdx.y;
    for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        const i64 band = t / column_tiles;
        const INDEX column = static_cast<INDEX>(t - band * column_tiles) * SIDE;
        const INDEX number = static_cast<INDEX>(band / row_tiles);
        const INDEX row = static_cast<INDEX>(band - static_cast<i64>(number) * row_tiles) * SIDE;
        const Offsets<INDEX, 2> at = outer.offsets(number);
        #pragma unroll
        for (INDEX k = 0; k < SIDE; k += STEP) {
            const INDEX r = row + x, c = column + y + k;
            if (r < rows && c < columns) tile[y + k][x] = in[at.at[0] + r * from.row + c * from.column];
        }
        __syncthreads();
        #pragma unroll
        for (INDEX k = 0; k < SIDE; k += STEP) {
            const INDEX r = row + y + k, c = column + x;
            if (r < rows && c < columns) out[at.at[1] + r * to.row + c * to.column] = tile[x][y + k];
        }
        __syncthreads();
    }
}
