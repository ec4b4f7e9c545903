// Relaxed atomic loads and stores of words of 32 or 64 bits, by which blocks communicate. Each word holds a value together with its status,
// so a reader does not depend on the visibility of other writes.

namespace cuprum {

// Loads `*from` with relaxed semantics at device scope. Word is u32 or u64.
template <class Word> __device__ inline Word load_relaxed(const Word* from) {
    Word word;
    if constexpr (sizeof(Word) == 8) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
template <class Word> __device__ inline void store_relaxed(Word* to, Word word) {
    if constexpr (sizeof(Word) == 8) asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
    else asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

}  // namespace cuprum
