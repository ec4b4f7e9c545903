// Relaxed atomic updates of global memory at device scope, which return nothing.
//
// CUDA's functions, such as atomicAdd, return the old value. In kernels that also compare and swap, which report_fault does, ptxas of
// CUDA 13 loads this value although it is not used, and the kernels take 1.3 times as long (docs/notes/scatter-sums.md).
//
// The addition of f32 flushes subnormal inputs and results to zero, as the PTX manual says of red.add.f32 on global memory.

namespace cuprum {

#define CUPRUM_ATOMIC_UPDATE(name, operation, type, constraint)                                                               \
    __device__ inline void name(type* at, type value) {                                                                       \
        asm volatile("red.relaxed.gpu.global." operation " [%0], %1;" ::"l"(at), constraint(value) : "memory");               \
    }
CUPRUM_ATOMIC_UPDATE(atomic_add, "add.u32", u32, "r")
CUPRUM_ATOMIC_UPDATE(atomic_add, "add.u64", u64, "l")
CUPRUM_ATOMIC_UPDATE(atomic_add, "add.f32", f32, "f")
CUPRUM_ATOMIC_UPDATE(atomic_add, "add.f64", f64, "d")
CUPRUM_ATOMIC_UPDATE(atomic_minimum, "min.s32", i32, "r")
CUPRUM_ATOMIC_UPDATE(atomic_minimum, "min.s64", i64, "l")
CUPRUM_ATOMIC_UPDATE(atomic_minimum, "min.u32", u32, "r")
CUPRUM_ATOMIC_UPDATE(atomic_minimum, "min.u64", u64, "l")
CUPRUM_ATOMIC_UPDATE(atomic_maximum, "max.s32", i32, "r")
CUPRUM_ATOMIC_UPDATE(atomic_maximum, "max.s64", i64, "l")
CUPRUM_ATOMIC_UPDATE(atomic_maximum, "max.u32", u32, "r")
CUPRUM_ATOMIC_UPDATE(atomic_maximum, "max.u64", u64, "l")
CUPRUM_ATOMIC_UPDATE(atomic_or, "or.b64", u64, "l")
#undef CUPRUM_ATOMIC_UPDATE

}  // namespace cuprum
