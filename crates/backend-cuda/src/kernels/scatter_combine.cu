// Combines values with the elements of rows that indices select. Requires arithmetic.cuh, atomic_update.cuh
// and resolve_index.cuh.
//
// ELEMENT is the element type, COMBINE(a, b) the C++ expression of the new element from the old one and a value. If ATOMIC is defined, it
// is the name of a function that applies COMBINE atomically. The function operates on WORD, a type of the size of ELEMENT or of its
// real and imaginary parts. If GROUPED is defined, the kernel is `scatter_grouped`, else `scatter_combine`. INDEX_ELEMENT, the element type
// of the index array, and INDEX, the type of offsets, are i32 or i64. RANK is the number of axes of the loop.

using namespace cuprum;

__device__ inline ELEMENT combine(ELEMENT a, ELEMENT b) { return COMBINE(a, b); }

#ifndef GROUPED
// Replaces `*at` with the combination of `*at` and `value`. The update is atomic unless DISTINCT is defined, which states that no two
// values go to the same element.
__device__ inline void combine_into_element(ELEMENT* at, ELEMENT value) {
#if defined(DISTINCT)
    *at = combine(*at, value);
#elif defined(ATOMIC)
    #pragma unroll
    for (int part = 0; part < static_cast<int>(sizeof(ELEMENT) / sizeof(WORD)); part++)
        ATOMIC(reinterpret_cast<WORD*>(at) + part, reinterpret_cast<const WORD*>(&value)[part]);
#else
    // An element of 1 or 2 bytes is updated as a part of an aligned 32-bit word. The word's other bytes, some of which may follow the
    // array, keep their values.
    using Word = typename choose<sizeof(ELEMENT) == 8, u64, u32>::type;
    const u64 address = reinterpret_cast<u64>(at);
    Word* const word = reinterpret_cast<Word*>(address & ~static_cast<u64>(sizeof(Word) - 1));
    const u32 part = static_cast<u32>(address & (sizeof(Word) - 1));
    Word seen = *reinterpret_cast<volatile Word*>(word), expected;
    do {
        expected = seen;
        Word next = seen;
        ELEMENT element;
        memcpy(&element, reinterpret_cast<const char*>(&seen) + part, sizeof(ELEMENT));
        element = combine(element, value);
        memcpy(reinterpret_cast<char*>(&next) + part, &element, sizeof(ELEMENT));
        if (next == seen) return;
        seen = atomicCAS(word, expected, next);
    } while (seen != expected);
#endif
}

// Combines the `count` elements of `in` with elements of `out`, in any order. `axes` holds the strides of `in`, those of `out` without its
// indexed axis, and those of `indices`. `rows` and `step` are the extent and stride of the indexed axis. An index out of bounds is recorded
// in `fault`, and its values are not used.
extern "C" __global__ void __launch_bounds__(256)
scatter_combine(ELEMENT* out, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, Fault* fault, u64 op,
                const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 index = indices[at.at[2]], row = resolve_index(index, rows);
        if (row < 0) report_fault(fault, 1, op, index, static_cast<u64>(rows));
        else combine_into_element(out + at.at[1] + row * step, in[at.at[0]]);
    }
}
#else
// Combines groups of values with rows of `out`. Group g selects row `indices[g]`, and no two groups select the same row. The values of
// group g are combined in order. They are at the positions `order[starts[g]..starts[g + 1]]` along an axis of `in` with the stride
// `value_step`. `count` is the total number of elements of the selected rows. `axes` holds three sets of strides: those of `in` without the
// axis of the values, those of `out` without the axis of the rows, and those of the groups.
extern "C" __global__ void __launch_bounds__(256)
scatter_grouped(ELEMENT* out, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, const i64* order,
                const i64* starts, i64 value_step, Fault* fault, u64 op, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 index = indices[at.at[2]], row = resolve_index(index, rows);
        if (row < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(rows));
            continue;
        }
        ELEMENT* const to = out + at.at[1] + row * step;
        ELEMENT result = *to;
        const i64 end = starts[at.at[2] + 1];
        #pragma unroll 4
        for (i64 k = starts[at.at[2]]; k < end; k++) result = combine(result, in[at.at[0] + order[k] * value_step]);
        *to = result;
    }
}
#endif
