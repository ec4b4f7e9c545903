// Adds values to rows that indices select. Sums have the same bits in any order of additions. Requires atomic_update.cuh,
// resolve_index.cuh and scatter_sum.cuh.
//
// ELEMENT is a float or complex type. INDEX_ELEMENT, the element type of the index array, and INDEX, the type of offsets, are i32 or i64.
// RANK is the number of axes of the loop.
//
// All values for one element of the output are added as integers. A value becomes two integers: a multiple of a
// unit (a power of two), and the remainder as a multiple of a smaller unit. Each part (real or imaginary) of an element has its own two
// integer sums, in `sums` and `rests`, in C order of the output's elements.
//
// The values are first added in common units, which follow from the exponents of a sample. If two integers represent every value exactly
// in these units, the sums are exact. They are rounded once, so that the result depends neither on the sample nor on the units. Else `sums`
// and `rests` are cleared, and the values are added again in units per element. These follow from the largest exponent of the values for
// the same part of an element, in `exponents`: 0 for no value, 1 if all values are -0.0, else 2 plus the largest exponent field.
// `exponents`, `sums`, `rests` and `range` must be zeroed.

using namespace cuprum;

// The number of parts (real and imaginary) of an element.
constexpr int PARTS = is_complex<ELEMENT> ? 2 : 1;
// The number in `exponents` that marks an element all of whose values are -0.0.
constexpr u32 NEGATIVE_ZEROS = 1;
// If a value is NaN or infinite, `sums` holds a combination of the following flags instead of an integer.
constexpr u64 POSITIVE_INFINITY = 1, NEGATIVE_INFINITY = 2, NOT_A_NUMBER = 4;

__device__ inline bool is_negative_zero(f64 x) { return __double_as_longlong(x) == static_cast<i64>(u64(1) << 63); }
// Returns the largest exponent field of an element's values, where `number` is the element's number in `exponents`.
__device__ inline u32 largest_field(u32 number) { return number == NEGATIVE_ZEROS ? 0 : number - 2; }

// Returns (high * 2^bits + low) * 2^exponent, rounded once. The integer in parentheses fits in 127 bits.
__device__ inline f64 round_scaled_integers(i64 high, i64 low, int bits, int exponent) {
    u64 lower = static_cast<u64>(high) << bits;
    i64 upper = high >> (64 - bits);
    lower += static_cast<u64>(low);
    upper += (low < 0 ? -1 : 0) + (lower < static_cast<u64>(low) ? 1 : 0);
    const bool is_negative = upper < 0;
    if (is_negative) {
        lower = 0 - lower;
        upper = ~upper + (lower == 0 ? 1 : 0);
    }
    u64 leading = lower;
    if (upper != 0) {
        // Keeps the upper 64 bits. The lowest kept bit is set if any dropped bit is set, so that the later conversion to 53 bits rounds
        // correctly.
        const int dropped = 64 - __clzll(upper);
        const bool has_dropped_bits = (lower & ((u64(1) << dropped) - 1)) != 0;
        leading = static_cast<u64>(upper) << (64 - dropped) | lower >> dropped | (has_dropped_bits ? 1 : 0);
        exponent += dropped;
    }
    const f64 magnitude = __ull2double_rn(leading);
    return scale(is_negative ? -magnitude : magnitude, exponent);
}

// Replaces `*at` with the maximum of `*at` and the values of all threads of the warp.
__device__ inline void store_warp_maximum(u32* at, u32 value) {
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const u32 other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = value < other ? other : value;
    }
    if (threadIdx.x % 32 == 0 && *at < value) atomic_maximum(at, value);
}

// Writes the largest and the smallest exponent field of about 2^SAMPLE_BITS values (2/3 to 2 times as many), or of all values if they are
// fewer, to `range`. The grid has 2^SAMPLE_BITS threads.
extern "C" __global__ void __launch_bounds__(256)
scatter_sample_exponents(ExponentRange* range, const ELEMENT* in, INDEX count, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    u32 largest = 0, smallest_from_top = 0;
    // An odd distance between sampled values reaches all columns of a matrix whose number of columns is a power of two.
    const i64 distance = static_cast<i64>(count) >> SAMPLE_BITS | 1;
    const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (i64 i = thread * distance; i < count; i += distance << SAMPLE_BITS) {
        const ELEMENT value = in[axes.offsets(static_cast<INDEX>(i)).at[0]];
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const f64 x = to_double(reinterpret_cast<const Real*>(&value)[part]);
            const u32 field = exponent_field(x);
            largest = largest < field ? field : largest;
            if (x != 0 && smallest_from_top < 2047 - field) smallest_from_top = 2047 - field;
        }
    }
    store_warp_maximum(&range->largest, largest);
    store_warp_maximum(&range->smallest_from_top, smallest_from_top);
}

// Writes to `range` whether an element of `out` is -0.0.
extern "C" __global__ void __launch_bounds__(256)
scatter_find_negative_zeros(ExponentRange* range, const ELEMENT* out, INDEX count, const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    bool found = false;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const ELEMENT value = out[axes.offsets(i).at[0]];
        #pragma unroll
        for (int part = 0; part < PARTS; part++) found |= is_negative_zero(to_double(reinterpret_cast<const Real*>(&value)[part]));
    }
    if (found) range->has_negative_zero = 1;
}

// If values are not added in units common to all values (see `has_common_units`), clears the `words` words of `sums` and the rests, and
// writes `exponents` for each part (real or imaginary) of each element. Values whose index is out of bounds are skipped.
extern "C" __global__ void __launch_bounds__(256)
scatter_exponents(u32* exponents, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step,
                  const ExponentRange* range, u64 bits, u64* sums, u64 words, Fault*, u64,
                  const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    if (range->has_common_units(bits)) return;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) sums[i] = 0;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 row = resolve_index(indices[at.at[2]], rows);
        if (row < 0) continue;
        const ELEMENT value = in[at.at[0]];
        u32* const to = exponents + (at.at[1] + row * step) * PARTS;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const f64 x = to_double(reinterpret_cast<const Real*>(&value)[part]);
            const u32 number = is_negative_zero(x) ? NEGATIVE_ZEROS : exponent_field(x) + 2;
            if (to[part] < number) atomic_maximum(to + part, number);
        }
    }
}

// Adds the values, as integers, to `sums` and `rests`. `adds_common_units` selects the pass: in units common to all values, or in units per
// element. A pass that does not apply returns early. A value without exact integers in common units is recorded in `range`. `bits` is the
// number of bits for the largest value, chosen so that the sum of all values fits. An index out of bounds is recorded in `fault`.
extern "C" __global__ void __launch_bounds__(256)
scatter_add(u64* sums, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, u64* rests,
            const u32* exponents, ExponentRange* range, u64 bits, u64 adds_common_units, Fault* fault, u64 op,
            const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const bool is_common = adds_common_units != 0;
    if (range->has_common_units(bits) != is_common || (is_common && range->adds_by_bucket != 0)) return;
    const int common_exponent = range->common_exponent();
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 index = indices[at.at[2]], row = resolve_index(index, rows);
        if (row < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(rows));
            continue;
        }
        const ELEMENT value = in[at.at[0]];
        const i64 first = (at.at[1] + row * step) * PARTS;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const f64 x = to_double(reinterpret_cast<const Real*>(&value)[part]);
            u64* const sum = sums + first + part;
            int exponent = common_exponent;
            if (!is_common) {
                const u32 field = largest_field(exponents[first + part]);
                if (field == NOT_FINITE) {
                    if (exponent_field(x) != NOT_FINITE) continue;
                    atomic_or(sum, x != x ? NOT_A_NUMBER : x > 0 ? POSITIVE_INFINITY : NEGATIVE_INFINITY);
                    continue;
                }
                exponent = upper_exponent(field);
            }
            const ScaledValue scaled = scale_to_integers(x, bits, exponent);
            if (is_common && !scaled.is_exact) {
                range->has_inexact_value = 1;
                continue;
            }
            if (scaled.whole != 0) atomic_add(sum, static_cast<u64>(scaled.whole));
            if (scaled.rest != 0) atomic_add(rests + first + part, static_cast<u64>(scaled.rest));
        }
    }
}

// Adds the sums to the elements of `out` that have received values. `axes` holds the strides of `out`, then those of `sums`, a contiguous
// array of the same shape.
extern "C" __global__ void __launch_bounds__(256)
scatter_store_sums(ELEMENT* out, const u32* exponents, const u64* sums, const u64* rests, INDEX count, const ExponentRange* range, u64 bits,
                   const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    const bool is_common = range->has_common_units(bits);
    const int common_exponent = range->common_exponent();
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 2> at = axes.offsets(i);
        const i64 first = static_cast<i64>(at.at[1]) * PARTS;
        if (!is_common && exponents[first] == 0) continue;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const u64 sum = sums[first + part], rest = rests[first + part];
            int exponent = common_exponent;
            bool is_finite = true;
            if (is_common) {
                if (sum == 0 && rest == 0) continue;
            } else {
                if (exponents[first + part] == NEGATIVE_ZEROS) continue;  // because the sum 0 would change -0.0 to 0.0
                const u32 field = largest_field(exponents[first + part]);
                exponent = upper_exponent(field);
                is_finite = field != NOT_FINITE;
            }
            f64 total;
            if (is_finite) {
                const int width = static_cast<int>(bits);
                total = round_scaled_integers(static_cast<i64>(sum), static_cast<i64>(rest), width, exponent - 2 * width);
            } else {
                const bool is_infinite = sum == POSITIVE_INFINITY || sum == NEGATIVE_INFINITY;
                const u64 bits_of_total = is_infinite ? 0x7ff0000000000000ull : 0x7ff8000000000000ull;
                total = bits_to_f64(bits_of_total | (sum == NEGATIVE_INFINITY ? u64(1) << 63 : 0));
            }
            Real* const to = reinterpret_cast<Real*>(out + at.at[0]) + part;
            *to = static_cast<Real>(to_double(*to) + total);
        }
    }
}
