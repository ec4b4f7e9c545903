// Warp shuffles of values of any size, and memory slots by which blocks exchange values.

namespace cuprum {

// A value of type T as 32-bit words, which shuffles move one by one.
template <class T> struct WordArray {
    static constexpr int COUNT = (sizeof(T) + 3) / 4;
    u32 at[COUNT] = {};
    __device__ explicit WordArray(const T& x) { memcpy(at, &x, sizeof(T)); }
    __device__ operator T() const {
        T x;
        memcpy(&x, at, sizeof(T));
        return x;
    }
};

// Returns a copy of `x` in which each 32-bit word w is replaced by move(w).
template <class T, class Move> __device__ inline T map_words(const T& x, const Move& move) {
    WordArray<T> w(x);
    #pragma unroll
    for (int k = 0; k < WordArray<T>::COUNT; k++) w.at[k] = move(w.at[k]);
    return w;
}

// `shuffle_up` returns the value of `x` in the lane `distance` below this lane, `shuffle_down` in the lane `distance` above, `shuffle` in
// lane `lane`. All 32 lanes of the warp must call these functions.
template <class T> __device__ inline T shuffle_up(const T& x, unsigned distance) {
    return map_words(x, [=](u32 word) { return __shfl_up_sync(0xffffffffu, word, distance); });
}
template <class T> __device__ inline T shuffle_down(const T& x, unsigned distance) {
    return map_words(x, [=](u32 word) { return __shfl_down_sync(0xffffffffu, word, distance); });
}
template <class T> __device__ inline T shuffle(const T& x, int lane) {
    return map_words(x, [=](u32 word) { return __shfl_sync(0xffffffffu, word, lane); });
}

// A slot in global memory through which one block passes a value of type T to another. `volatile` accesses bypass the L1 caches, which are
// not coherent.
template <class T> struct Slot {
    u32 words[WordArray<T>::COUNT];
    __device__ void store_volatile(const T& x) volatile {
        WordArray<T> w(x);
        #pragma unroll
        for (int k = 0; k < WordArray<T>::COUNT; k++) words[k] = w.at[k];
    }
    __device__ T load_volatile() const volatile {
        T x;
        u32 w[WordArray<T>::COUNT];
        #pragma unroll
        for (int k = 0; k < WordArray<T>::COUNT; k++) w[k] = words[k];
        memcpy(&x, w, sizeof(T));
        return x;
    }
};

}  // namespace cuprum
