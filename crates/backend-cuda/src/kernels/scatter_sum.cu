// Adds values to rows that indices select. Sums have the same bits in any order of additions. Requires atomic_update.cuh and
// resolve_index.cuh.
//
// ELEMENT is a float or complex type. INDEX_ELEMENT, the element type of the index array, and INDEX, the type of offsets, are i32 or i64.
// RANK is the number of axes of the loop.
//
// All values for one element of the output are added as integers. A value becomes two integers: a multiple of a
// unit (a power of two), and the remainder as a multiple of a smaller unit. Each part (real or imaginary) of an element has its own two
// integer sums, in `sums` and `rests`, in C order of the output's elements.
//
// If the exponents of all values are close to each other, the units follow from the largest exponent of all values, and the integers are
// exact. Else they follow from the largest exponent of the values for the same part of an element, in `exponents`: 0 for no value, 1 if
// all values are -0.0, else 2 plus the largest exponent field. `exponents`, `sums`, `rests` and `range` must be zeroed.

using namespace cuprum;

using Real = real_of<ELEMENT>;
constexpr int PARTS = is_complex<ELEMENT> ? 2 : 1;
// The number of bits of the significand of `Real`.
constexpr int DIGITS = is_same<Real, f64> ? 53 : 24;

// The number in `exponents` for an element all of whose values are -0.0.
constexpr u32 NEGATIVE_ZEROS = 1;
// The exponent field of a double with NaN or an infinity.
constexpr u32 NOT_FINITE = 2047;
// If a value is NaN or infinite, `sums` holds a combination of the following flags instead of an integer.
constexpr u64 POSITIVE_INFINITY = 1, NEGATIVE_INFINITY = 2, NOT_A_NUMBER = 4;

__device__ inline f64 to_double(Real x) { return static_cast<f64>(static_cast<wide_of<Real>>(x)); }
__device__ inline u32 exponent_field(f64 x) { return static_cast<u32>(__double2hiint(x)) >> 20 & 0x7ff; }
__device__ inline bool is_negative_zero(f64 x) { return __double_as_longlong(x) == static_cast<i64>(u64(1) << 63); }
// Returns the largest exponent field of an element's values, where `number` is the element's number in `exponents`.
__device__ inline u32 largest_field(u32 number) { return number == NEGATIVE_ZEROS ? 0 : number - 2; }

__device__ inline f64 power_of_two(int exponent) { return bits_to_f64(static_cast<u64>(exponent + 1023) << 52); }
// Returns x * 2^exponent, for |exponent| <= 2000. Two factors are needed, because 2^exponent may be outside the range of float64.
__device__ inline f64 scale(f64 x, int exponent) { return x * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2); }
// Returns an exponent e such that 2^e exceeds the magnitude of every value whose exponent field is at most `field`.
__device__ inline int upper_exponent(u32 field) { return static_cast<int>(field > 0 ? field : 1) - 1022; }

// Properties of the values and of the output that decide whether the integers of all values have the same units.
struct ExponentRange {
    // The largest exponent field of all values.
    u32 largest;
    // 2047 minus the smallest exponent field of all nonzero values. The difference starts at 0 and grows, as the other members do.
    u32 smallest_from_top;
    // 1 if an element of the output is -0.0. Adding values whose sum is 0 must change it to 0.0, unless all of these values are -0.0.
    // Only `exponents` records that case.
    u32 has_negative_zero;

    // Returns whether two integers represent every value exactly if the units follow from `bits` and the largest exponent of all values.
    __device__ bool has_common_units(u64 bits) const {
        const int width = static_cast<int>(largest + smallest_from_top) - 2047;
        return largest != NOT_FINITE && has_negative_zero == 0 && width + DIGITS <= 2 * static_cast<int>(bits);
    }
};

// Replaces `*at` with the maximum of `*at` and the values of all threads of the warp.
__device__ inline void store_warp_maximum(u32* at, u32 value) {
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const u32 other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = value < other ? other : value;
    }
    if (threadIdx.x % 32 == 0 && *at < value) atomic_maximum(at, value);
}

// Writes the largest and the smallest exponent field of all values to `range`.
extern "C" __global__ void __launch_bounds__(256)
scatter_find_exponent_range(ExponentRange* range, const ELEMENT* in, INDEX count, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    u32 largest = 0, smallest_from_top = 0;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const ELEMENT value = in[axes.offsets(i).at[0]];
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

// Writes `exponents` for each part (real or imaginary) of each element, unless the integers of all values have the same units
// (`has_common_units`). Values whose index is out of bounds are skipped.
extern "C" __global__ void __launch_bounds__(256)
scatter_exponents(u32* exponents, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step,
                  const ExponentRange* range, u64 bits, Fault*, u64, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    if (range->has_common_units(bits)) return;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
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

// Adds the values, as integers, to `sums` and `rests`. `bits` is the number of bits for the largest value, chosen so that the sum of all
// values fits. An index out of bounds is recorded in `fault`.
extern "C" __global__ void __launch_bounds__(256)
scatter_add(u64* sums, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, u64* rests,
            const u32* exponents, const ExponentRange* range, u64 bits, Fault* fault, u64 op,
            const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const bool has_common_units = range->has_common_units(bits);
    const u32 largest = range->largest;
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
            const u32 field = has_common_units ? largest : largest_field(exponents[first + part]);
            u64* const sum = sums + first + part;
            if (field == NOT_FINITE) {
                if (exponent_field(x) != NOT_FINITE) continue;
                atomic_or(sum, x != x ? NOT_A_NUMBER : x > 0 ? POSITIVE_INFINITY : NEGATIVE_INFINITY);
                continue;
            }
            const f64 scaled = scale(x, static_cast<int>(bits) - upper_exponent(field));
            const f64 whole = trunc(scaled);
            const i64 rest = __double2ll_rn((scaled - whole) * power_of_two(static_cast<int>(bits)));
            if (whole != 0) atomic_add(sum, static_cast<u64>(__double2ll_rn(whole)));
            if (rest != 0) atomic_add(rests + first + part, static_cast<u64>(rest));
        }
    }
}

// Adds the sums to the elements of `out` that have received values. `axes` holds the strides of `out`, then those of a contiguous
// array of the same shape, which locate the sums.
extern "C" __global__ void __launch_bounds__(256)
scatter_store_sums(ELEMENT* out, const u32* exponents, const u64* sums, const u64* rests, INDEX count, const ExponentRange* range, u64 bits,
                   const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    const bool has_common_units = range->has_common_units(bits);
    const u32 largest = range->largest;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 2> at = axes.offsets(i);
        const i64 first = static_cast<i64>(at.at[1]) * PARTS;
        if (!has_common_units && exponents[first] == 0) continue;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const u64 sum = sums[first + part], rest = rests[first + part];
            u32 field = largest;
            if (has_common_units) {
                if (sum == 0 && rest == 0) continue;
            } else {
                if (exponents[first + part] == NEGATIVE_ZEROS) continue;  // because the sum 0 would change -0.0 to 0.0
                field = largest_field(exponents[first + part]);
            }
            f64 total;
            if (field == NOT_FINITE) {
                const bool is_infinite = sum == POSITIVE_INFINITY || sum == NEGATIVE_INFINITY;
                const u64 bits_of_total = is_infinite ? 0x7ff0000000000000ull : 0x7ff8000000000000ull;
                total = bits_to_f64(bits_of_total | (sum == NEGATIVE_INFINITY ? u64(1) << 63 : 0));
            } else {
                // Carries multiples of 2^bits from `rest` to `sum`. The rest is then at most half a unit of the sum, so that large integers
                // of opposite signs cancel exactly.
                const i64 carry = (static_cast<i64>(rest) + (i64(1) << (bits - 1))) >> bits;
                total = static_cast<f64>(static_cast<i64>(sum) + carry);
                total += static_cast<f64>(static_cast<i64>(rest - (static_cast<u64>(carry) << bits))) * power_of_two(-static_cast<int>(bits));
                total = scale(total, upper_exponent(field) - static_cast<int>(bits));
            }
            Real* const to = reinterpret_cast<Real*>(out + at.at[0]) + part;
            *to = static_cast<Real>(to_double(*to) + total);
        }
    }
}
