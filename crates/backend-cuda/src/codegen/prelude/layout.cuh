// Array layouts as kernel parameters: axes, conversion of linear indices to offsets, and vectors of elements.

namespace cuprum {

// Division by a number that is constant during a kernel. This version, for 64-bit numbers, is an ordinary division.
template <class Index> struct Divisor {
    u64 value;
    __device__ u64 quotient(u64 n) const { return n / value; }
};

// Division by a 32-bit number, as a multiplication and a shift. The quotient is exact for `n` and `value` below 2^31 (Granlund and
// Montgomery, "Division by invariant integers using multiplication", 1994).
template <> struct Divisor<i32> {
    u32 value, magic, shift;
    __device__ u32 quotient(u32 n) const { return (__umulhi(n, magic) + n) >> shift; }
};

// Offsets of one element in each of the kernel's N operands, in elements.
template <class Index, int N> struct Offsets {
    Index at[N > 0 ? N : 1];
};

// The axes of a loop over N operands: Rank extents, outermost first, and the strides of each operand. Index is i32 if every extent and
// offset fits in 32 bits, else i64.
template <class Index, int Rank, int N> struct Axes {
    Divisor<Index> extents[Rank];
    Index strides[N > 0 ? N : 1][Rank];

    // Returns the offsets, in each operand, of the element with the C-order index `number`.
    __device__ Offsets<Index, N> offsets(Index number) const {
        Offsets<Index, N> out;
        #pragma unroll
        for (int k = 0; k < N; k++) out.at[k] = 0;
        #pragma unroll
        for (int axis = Rank - 1; axis >= 0; axis--) {
            Index i = number;
            if (axis > 0) {
                Index outer = static_cast<Index>(extents[axis].quotient(number));
                i = number - outer * static_cast<Index>(extents[axis].value);
                number = outer;
            }
            #pragma unroll
            for (int k = 0; k < N; k++) out.at[k] += i * strides[k][axis];
        }
        return out;
    }
};

// The axes of a loop over a single element (rank 0). A separate definition is needed, because C++ has no empty arrays.
template <class Index, int N> struct Axes<Index, 0, N> {
    u64 unused;
    __device__ Offsets<Index, N> offsets(Index) const {
        Offsets<Index, N> out;
        #pragma unroll
        for (int k = 0; k < N; k++) out.at[k] = 0;
        return out;
    }
};

template <class Index, int N> __device__ inline Offsets<Index, N> operator+(Offsets<Index, N> a, const Offsets<Index, N>& b) {
    #pragma unroll
    for (int k = 0; k < N; k++) a.at[k] += b.at[k];
    return a;
}

// Prefetches the cache line that contains the address `at` into the L2 cache.
__device__ inline void prefetch_line(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// Prefetches the elements `from[begin..end]` into the L2 cache. Each of the block's `Threads` threads fetches a share.
template <int Threads, class T, class Index> __device__ inline void prefetch_lines(const T* from, Index begin, Index end) {
    constexpr int LINE = 128 / sizeof(T);
    for (Index i = begin + static_cast<int>(threadIdx.x) * LINE; i < end; i += Threads * LINE) prefetch_line(from + i);
}

// Returns the prefetch distance, in tiles of `bytes` bytes, for kernels whose blocks take a tile and then wait for earlier tiles. The
// distance is 24 KiB per multiprocessor, which an H100's memory transfers in about 3 us. Without prefetch, registers limit the bytes in
// flight. At twice the distance, cache lines are evicted before their use.
__device__ inline u32 prefetch_distance_in_tiles(u32 bytes) {
    u32 multiprocessors;
    asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
    const u32 tiles = multiprocessors * 24576 / bytes;
    return tiles > 0 ? tiles : 1;
}

// A pack of `Width` adjacent elements, which are loaded or stored together in accesses of up to 16 bytes.
template <class T, int Width> struct alignas(sizeof(T) * Width < 16 ? sizeof(T) * Width : 16) Pack {
    T at[Width];
};

// The unsigned type (or vector type) with which a kernel loads or stores `Bytes` bytes in one access.
template <int Bytes> struct AccessWord { using type = u8; };
template <> struct AccessWord<2> { using type = u16; };
template <> struct AccessWord<4> { using type = u32; };
template <> struct AccessWord<8> { using type = uint2; };
template <> struct AccessWord<16> { using type = uint4; };

// Loads `*from` with the evict-first hint (`ld.global.cs`). The threads of a warp should read full sectors in one instruction,
// since the rest of a sector may be evicted.
template <class T> __device__ inline T load_streaming(const T* from) {
    using W = typename AccessWord<sizeof(T)>::type;
    const W word = __ldcs(reinterpret_cast<const W*>(from));
    T out;
    memcpy(&out, &word, sizeof(W));
    return out;
}

// Loads `Width` elements in accesses of alignof(Pack<T, Width>) bytes. `from` must be aligned to that many bytes.
template <int Width, class T> __device__ inline Pack<T, Width> load_aligned(const T* from) {
    using P = Pack<T, Width>;
    using W = typename AccessWord<alignof(P)>::type;
    P out;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(P) / sizeof(W)); k++) {
        const W word = reinterpret_cast<const W*>(from)[k];
        memcpy(reinterpret_cast<char*>(&out) + k * sizeof(W), &word, sizeof(W));
    }
    return out;
}
template <int Width, class T> __device__ inline void store_aligned(T* to, const Pack<T, Width>& pack) {
    using W = typename AccessWord<alignof(Pack<T, Width>)>::type;
    #pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(pack) / sizeof(W)); k++) {
        W word;
        memcpy(&word, reinterpret_cast<const char*>(&pack) + k * sizeof(W), sizeof(W));
        reinterpret_cast<W*>(to)[k] = word;
    }
}

}  // namespace cuprum
