// Words by which the blocks of a kernel tell one another what they have. Each says all there is to know, so that no other
// write needs to be seen before or after it.

namespace cuprum {

__device__ inline u64 load_relaxed(const u64* from) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ inline u32 load_relaxed(const u32* from) {
    u32 word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
__device__ inline void store_relaxed(u64* to, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ inline void store_relaxed(u32* to, u32 word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

}  // namespace cuprum
