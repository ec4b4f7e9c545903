// Matrix products of arrays with any strides and element type: c[i, j] = sum of a[i, p] * b[p, j] over p, for each batch index.
//
// T is the element type. For signed integers, however, T is the unsigned type of the same size, whose products and sums have the same bits.
// BATCH is the number of batch axes.

using namespace cuprum;

// Accumulator type: float for the 16-bit floats, an unsigned type of at least 32 bits for integers and bool, else T.
using Acc = choose<is_half<T>, f32, choose<is_complex<T> || is_float<T>, T, wrap_of<T>>::type>::type;

// Converts an element to an accumulator. The accumulator of a bool is 0 or 1.
__device__ inline Acc load(T x) { return cast<Acc>(x); }
__device__ inline T to_element(Acc x) { return cast<T>(x); }
__device__ inline Acc zero() { return cast<Acc>(T()); }

__device__ inline f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
__device__ inline f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }
template <class X> __device__ inline complex<X> multiply_add(complex<X> a, complex<X> b, complex<X> c) {
    return complex<X>(multiply_add(-a.im, b.im, multiply_add(a.re, b.re, c.re)), multiply_add(a.im, b.re, multiply_add(a.re, b.im, c.im)));
}
__device__ inline u32 multiply_add(u32 a, u32 b, u32 c) {
    if constexpr (is_same<T, bool>) return c | (a & b);
    else return c + a * b;
}
__device__ inline u64 multiply_add(u64 a, u64 b, u64 c) { return c + a * b; }

template <class X> __device__ inline X add(X a, X b) {
    if constexpr (is_same<T, bool>) return a | b;
    else if constexpr (is_complex<X>) return X(a.re + b.re, a.im + b.im);
    else return a + b;
}
template <class X> __device__ inline X shuffle_down(X x, int distance) {
    if constexpr (is_complex<X>) return X(__shfl_down_sync(~0u, x.re, distance), __shfl_down_sync(~0u, x.im, distance));
    else return __shfl_down_sync(~0u, x, distance);
}
__device__ inline Acc warp_sum(Acc sum) {
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum = add(sum, shuffle_down(sum, distance));
    return sum;
}

// Extents m, n and k of a matrix product, and the row and column strides of each matrix in elements.
struct ProductLayout {
    i64 m, n, k;
    i64 a[2], b[2], c[2];
};

using BatchAxes = Axes<i64, BATCH, 3>;

// Computes tiles of 64 x 64 results, with one block of 256 threads per tile and 4 x 4 results per thread.
extern "C" __global__ void __launch_bounds__(256)
contract_tiled(T* c, const T* a, const T* b, const __grid_constant__ ProductLayout s, i64 batches, const __grid_constant__ BatchAxes batch) {
    constexpr int SIDE = 64, DEPTH = 16, PER = 4;
    __shared__ alignas(16) unsigned char storage[2 * DEPTH * (SIDE + 1) * sizeof(Acc)];
    Acc (*tile_a)[SIDE + 1] = reinterpret_cast<Acc (*)[SIDE + 1]>(storage);
    Acc (*tile_b)[SIDE + 1] = tile_a + DEPTH;
    const int thread = threadIdx.x, x = thread % 16, y = thread / 16;
    const i64 down = (s.m + SIDE - 1) / SIDE, across = (s.n + SIDE - 1) / SIDE, tiles = down * across * batches;
    // Whether adjacent threads load elements that are adjacent along k, instead of along m (for `a`) or n (for `b`). Loads along
    // an axis of stride 1 are coalesced.
    const bool a_by_depth = s.a[1] == 1, b_by_depth = s.b[0] == 1;
    for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        const i64 number = t / (down * across), inside = t - number * (down * across);
        const i64 row = inside / across * SIDE, column = inside % across * SIDE;
        const Offsets<i64, 3> at = batch.offsets(number);
        Acc sums[PER][PER];
        #pragma unroll
        for (int r = 0; r < PER; r++) {
            #pragma unroll
            for (int q = 0; q < PER; q++) sums[r][q] = zero();
        }
        for (i64 depth = 0; depth < s.k; depth += DEPTH) {
            #pragma unroll
            for (int r = 0; r < PER; r++) {
                const int ai = a_by_depth ? thread / 16 + 16 * r : thread % 64, ap = a_by_depth ? thread % 16 : thread / 64 + 4 * r;
                const i64 i = row + ai, p = depth + ap;
                tile_a[ap][ai] = i < s.m && p < s.k ? load(a[at.at[0] + i * s.a[0] + p * s.a[1]]) : zero();
                const int bj = b_by_depth ? thread / 16 + 16 * r : thread % 64, bp = b_by_depth ? thread % 16 : thread / 64 + 4 * r;
                const i64 j = column + bj, q = depth + bp;
                tile_b[bp][bj] = j < s.n && q < s.k ? load(b[at.at[1] + q * s.b[0] + j * s.b[1]]) : zero();
            }
            __syncthreads();
            #pragma unroll
            for (int p = 0; p < DEPTH; p++) {
                Acc left[PER], right[PER];
                #pragma unroll
                for (int r = 0; r < PER; r++) {
                    left[r] = tile_a[p][y + 16 * r];
                    right[r] = tile_b[p][x + 16 * r];
                }
                #pragma unroll
                for (int r = 0; r < PER; r++) {
                    #pragma unroll
                    for (int q = 0; q < PER; q++) sums[r][q] = multiply_add(left[r], right[q], sums[r][q]);
                }
            }
            __syncthreads();
        }
        #pragma unroll
        for (int r = 0; r < PER; r++) {
            #pragma unroll
            for (int q = 0; q < PER; q++) {
                const i64 i = row + y + 16 * r, j = column + x + 16 * q;
                if (i < s.m && j < s.n) c[at.at[2] + i * s.c[0] + j * s.c[1]] = to_element(sums[r][q]);
            }
        }
    }
}

// The offsets for one result: the offset of a row in `a`, of a column in `b`, and of the result in `c`. Results are numbered in C order by
// batch, row and column.
struct ResultOffsets {
    i64 a, b, c;
};
__device__ inline ResultOffsets result_offsets(i64 number, const ProductLayout& s, const BatchAxes& batch) {
    const i64 line = number / s.n, j = number - line * s.n, n = line / s.m, i = line - n * s.m;
    const Offsets<i64, 3> at = batch.offsets(n);
    return {at.at[0] + i * s.a[0], at.at[1] + j * s.b[1], at.at[2] + i * s.c[0] + j * s.c[1]};
}

// Computes products with few results and long sums. The sum over k of each result has `splits` parts, and one warp computes each part.
// A single part is written to `c`. Several parts are written to `partial`, and `contract_add_partial_sums` adds them.
extern "C" __global__ void __launch_bounds__(256)
contract_dot(T* c, Acc* partial, const T* a, const T* b, const __grid_constant__ ProductLayout s, i64 results, i64 splits,
             const __grid_constant__ BatchAxes batch) {
    const int lane = threadIdx.x % 32;
    const i64 span = (s.k + splits - 1) / splits, stride = static_cast<i64>(gridDim.x) * (blockDim.x / 32);
    for (i64 w = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; w < results * splits; w += stride) {
        const i64 number = w / splits, begin = (w - number * splits) * span, end = begin + span < s.k ? begin + span : s.k;
        const ResultOffsets at = result_offsets(number, s, batch);
        Acc total = zero();
        for (i64 start = begin + lane; start < end; start += 16 * 32) {
            Acc run = zero();
            #pragma unroll
            for (int k = 0; k < 16; k++) {
                const i64 p = start + 32 * k;
                if (p < end) run = multiply_add(load(a[at.a + p * s.a[1]]), load(b[at.b + p * s.b[0]]), run);
            }
            total = add(total, run);
        }
        total = warp_sum(total);
        if (lane == 0) {
            if (splits == 1) c[at.c] = to_element(total);
            else partial[w] = total;
        }
    }
}

// Adds the `splits` partial sums of each result, which `partial` holds, and writes the result to `c`. One warp computes one result.
extern "C" __global__ void __launch_bounds__(256)
contract_add_partial_sums(T* c, const Acc* partial, const __grid_constant__ ProductLayout s, i64 results, i64 splits, const __grid_constant__ BatchAxes batch) {
    const int lane = threadIdx.x % 32;
    const i64 stride = static_cast<i64>(gridDim.x) * (blockDim.x / 32);
    for (i64 number = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; number < results; number += stride) {
        Acc total = zero();
        for (i64 k = lane; k < splits; k += 32) total = add(total, partial[number * splits + k]);
        total = warp_sum(total);
        if (lane == 0) c[result_offsets(number, s, batch).c] = to_element(total);
    }
}

// Multiplies all windows of `a` by the vector `b`: c[i] = sum of a[i + p] * b[p] for p below `k`, for each i below `count`. Arrays are
// contiguous, and `a` has count + k - 1 elements.
//
// A block computes a tile of results from a segment of `a` in shared memory, for up to DEPTH elements of `b` at a time. Each thread
// computes PER adjacent results, so that it loads each element of the segment once for PER products. The products of DEPTH elements of `b`
// are summed first, which bounds the rounding error of long sums.
extern "C" __global__ void __launch_bounds__(256)
contract_sliding_windows(T* c, const T* a, const T* b, i64 count, i64 k) {
    constexpr int THREADS = 256, PER = sizeof(Acc) > 8 ? 4 : 8, TILE = THREADS * PER, DEPTH = 128, LENGTH = TILE + DEPTH;
    __shared__ alignas(16) unsigned char storage[(LENGTH + LENGTH / 32 + 1 + DEPTH) * sizeof(Acc)];
    Acc* const segment = reinterpret_cast<Acc*>(storage);
    Acc* const taps = segment + LENGTH + LENGTH / 32 + 1;
    // One unused element after every 32 avoids bank conflicts: adjacent threads read elements that are PER apart.
    const auto skewed = [](int i) { return i + (i >> 5); };
    const int first = threadIdx.x * PER;
    const i64 length = count + k - 1;
    for (i64 tile = blockIdx.x * static_cast<i64>(TILE); tile < count; tile += gridDim.x * static_cast<i64>(TILE)) {
        Acc totals[PER];
        #pragma unroll
        for (int r = 0; r < PER; r++) totals[r] = zero();
        for (i64 start = 0; start < k; start += DEPTH) {
            const int depth = static_cast<int>(k - start < DEPTH ? k - start : DEPTH);
            for (int i = threadIdx.x; i < TILE + depth - 1; i += THREADS) {
                const i64 at = tile + start + i;
                segment[skewed(i)] = at < length ? load(a[at]) : zero();
            }
            if (threadIdx.x < depth) taps[threadIdx.x] = load(b[start + threadIdx.x]);
            __syncthreads();
            Acc sums[PER], window[2 * PER];
            #pragma unroll
            for (int r = 0; r < PER; r++) {
                sums[r] = zero();
                window[r] = segment[skewed(first + r)];
            }
            int p = 0;
            for (; p + PER <= depth; p += PER) {
                #pragma unroll
                for (int r = 0; r < PER; r++) window[PER + r] = segment[skewed(first + p + PER + r)];
                #pragma unroll
                for (int q = 0; q < PER; q++) {
                    const Acc tap = taps[p + q];
                    #pragma unroll
                    for (int r = 0; r < PER; r++) sums[r] = multiply_add(window[q + r], tap, sums[r]);
                }
                #pragma unroll
                for (int r = 0; r < PER; r++) window[r] = window[PER + r];
            }
            for (; p < depth; p++) {
                #pragma unroll
                for (int r = 0; r < PER; r++) sums[r] = multiply_add(segment[skewed(first + p + r)], taps[p], sums[r]);
            }
            #pragma unroll
            for (int r = 0; r < PER; r++) totals[r] = add(totals[r], sums[r]);
            __syncthreads();
        }
        // The results pass through shared memory, so that adjacent threads write adjacent elements.
        #pragma unroll
        for (int r = 0; r < PER; r++) segment[skewed(first + r)] = totals[r];
        __syncthreads();
        for (int i = threadIdx.x; i < TILE && tile + i < count; i += THREADS) c[tile + i] = to_element(segment[skewed(i)]);
        __syncthreads();
    }
}
