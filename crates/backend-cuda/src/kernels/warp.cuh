// Warp shuffles of values of any size, and accesses that bypass the L1 cache.

namespace cuprum {

template <class T> struct Words {
    static constexpr int COUNT = (sizeof(T) + 3) / 4;
    u32 at[COUNT] = {};
    __device__ explicit Words(const T& x) { memcpy(at, &x, sizeof(T)); }
    __device__ operator T() const {
        T x;
        memcpy(&x, at, sizeof(T));
        return x;
    }
};

// Returns a copy of `x` in which `move` has replaced each word.
template <class T, class Move> __device__ inline T each_word(const T& x, const Move& move) {
    Words<T> w(x);
    #pragma unroll
    for (int k = 0; k < Words<T>::COUNT; k++) w.at[k] = move(w.at[k]);
    return w;
}

// Shuffles: return the value of the thread `distance` below, `distance` above, or in `lane`. All 32 threads of the warp
// call these.
template <class T> __device__ inline T shuffle_up(const T& x, unsigned distance) {
    return each_word(x, [=](u32 word) { return __shfl_up_sync(0xffffffffu, word, distance); });
}
template <class T> __device__ inline T shuffle_down(const T& x, unsigned distance) {
    return each_word(x, [=](u32 word) { return __shfl_down_sync(0xffffffffu, word, distance); });
}
template <class T> __device__ inline T shuffle(const T& x, int lane) {
    return each_word(x, [=](u32 word) { return __shfl_sync(0xffffffffu, word, lane); });
}

// A value in global memory that blocks exchange. `volatile` accesses bypass the L1 caches, which are not coherent.
template <class T> struct Slot {
    u32 words[Words<T>::COUNT];
    __device__ void store(const T& x) volatile {
        Words<T> w(x);
        #pragma unroll
        for (int k = 0; k < Words<T>::COUNT; k++) words[k] = w.at[k];
    }
    __device__ T load() const volatile {
        T x;
        u32 w[Words<T>::COUNT];
        #pragma unroll
        for (int k = 0; k < Words<T>::COUNT; k++) w[k] = words[k];
        memcpy(&x, w, sizeof(T));
        return x;
    }
};

}  // namespace cuprum
