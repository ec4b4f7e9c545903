// Adds values to rows that indices select. Sums have the same bits in any order of additions. Requires resolve_index.cuh.
//
// ELEMENT is a float or complex type. INDEX_ELEMENT, the element type of the index array, and INDEX, the type of offsets, are i32 or i64.
// RANK is the number of axes of the loop.
//
// All values for one element of the output are added as integers, in units that the largest exponent among these values determines. A
// float64 value becomes two integers, of which the second counts smaller units. Each part (real or imaginary) of an element has its own
// exponent and integer sums. `exponents` and `sums` hold these numbers in C order of the output's elements, and must be zeroed. An entry of
// `exponents` is 0 for no value, 1 if all values are -0.0, else 2 plus the largest exponent field.

using namespace cuprum;

using Real = real_of<ELEMENT>;
constexpr int PARTS = is_complex<ELEMENT> ? 2 : 1;
constexpr int WORDS = is_same<Real, f64> ? 2 : 1;

// The number in `exponents` if all values are -0.0.
constexpr u32 NEGATIVE_ZEROS = 1;
// The exponent field of a double with NaN or an infinity.
constexpr u32 NOT_FINITE = 2047;
// If a value is NaN or infinite, `sums` holds a combination of these flags instead of an integer.
constexpr u64 POSITIVE_INFINITY = 1, NEGATIVE_INFINITY = 2, NOT_A_NUMBER = 4;

__device__ inline f64 to_double(Real x) { return static_cast<f64>(static_cast<wide_of<Real>>(x)); }
__device__ inline u32 exponent_field(f64 x) { return static_cast<u32>(__double2hiint(x)) >> 20 & 0x7ff; }
__device__ inline bool is_negative_zero(f64 x) { return __double_as_longlong(x) == static_cast<i64>(u64(1) << 63); }
// Returns the largest exponent field of the values, given their number in `exponents`.
__device__ inline u32 largest_field(u32 number) { return number == NEGATIVE_ZEROS ? 0 : number - 2; }

__device__ inline f64 power_of_two(int exponent) { return bits_to_f64(static_cast<u64>(exponent + 1023) << 52); }
// Returns x * 2^exponent, for |exponent| <= 2000. Two factors are needed, because 2^exponent may be outside the range of float64.
__device__ inline f64 scale(f64 x, int exponent) { return x * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2); }
// Returns an exponent e such that 2^e exceeds the magnitude of every value whose exponent field is at most `field`.
__device__ inline int upper_exponent(u32 field) { return static_cast<int>(field > 0 ? field : 1) - 1022; }

// Writes `exponents` for each part (real or imaginary) of each element. An index out of bounds is recorded in `fault`.
extern "C" __global__ void __launch_bounds__(256)
scatter_exponents(u32* exponents, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, Fault* fault, u64 op,
                  const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 index = indices[at.at[2]], row = resolve_index(index, rows);
        if (row < 0) {
            report_fault(fault, 1, op, index, static_cast<u64>(rows));
            continue;
        }
        const ELEMENT value = in[at.at[0]];
        u32* const to = exponents + (at.at[1] + row * step) * PARTS;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const f64 x = to_double(reinterpret_cast<const Real*>(&value)[part]);
            const u32 number = is_negative_zero(x) ? NEGATIVE_ZEROS : exponent_field(x) + 2;
            if (to[part] < number) atomicMax(to + part, number);
        }
    }
}

// Adds the values, as integers, to `sums`. `bits` is the number of bits for the largest value, chosen so that the sum of all values fits.
extern "C" __global__ void __launch_bounds__(256)
scatter_add(u64* sums, const ELEMENT* in, const INDEX_ELEMENT* indices, INDEX count, i64 rows, i64 step, const u32* exponents, u64 bits,
            Fault*, u64, const __grid_constant__ Axes<INDEX, RANK, 3> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 3> at = axes.offsets(i);
        const i64 row = resolve_index(indices[at.at[2]], rows);
        if (row < 0) continue;
        const ELEMENT value = in[at.at[0]];
        const i64 first = (at.at[1] + row * step) * PARTS;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const f64 x = to_double(reinterpret_cast<const Real*>(&value)[part]);
            const u32 field = largest_field(exponents[first + part]);
            u64* const sum = sums + (first + part) * WORDS;
            if (field == NOT_FINITE) {
                if (exponent_field(x) != NOT_FINITE) continue;
                atomicOr(sum, x != x ? NOT_A_NUMBER : x > 0 ? POSITIVE_INFINITY : NEGATIVE_INFINITY);
                continue;
            }
            const f64 scaled = scale(x, static_cast<int>(bits) - upper_exponent(field));
            if constexpr (WORDS == 1) {
                atomicAdd(sum, static_cast<u64>(__double2ll_rn(scaled)));
            } else {
                const f64 whole = trunc(scaled);
                const i64 rest = __double2ll_rn((scaled - whole) * power_of_two(static_cast<int>(bits)));
                if (whole != 0) atomicAdd(sum, static_cast<u64>(__double2ll_rn(whole)));
                if (rest != 0) atomicAdd(sum + 1, static_cast<u64>(rest));
            }
        }
    }
}

// Adds the sums to the elements of `out` that have received values. `axes` holds the strides of `out`, then the strides of contiguous
// elements, which locate the sums.
extern "C" __global__ void __launch_bounds__(256)
scatter_store_sums(ELEMENT* out, const u32* exponents, const u64* sums, INDEX count, u64 bits,
                   const __grid_constant__ Axes<INDEX, RANK, 2> axes) {
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const Offsets<INDEX, 2> at = axes.offsets(i);
        const i64 first = static_cast<i64>(at.at[1]) * PARTS;
        if (exponents[first] == 0) continue;
        #pragma unroll
        for (int part = 0; part < PARTS; part++) {
            if (exponents[first + part] == NEGATIVE_ZEROS) continue;  // because the sum 0 would change -0.0 to 0.0
            const u64* const sum = sums + (first + part) * WORDS;
            const u32 field = largest_field(exponents[first + part]);
            f64 total;
            if (field == NOT_FINITE) {
                const bool is_infinite = sum[0] == POSITIVE_INFINITY || sum[0] == NEGATIVE_INFINITY;
                const u64 bits_of_total = is_infinite ? 0x7ff0000000000000ull : 0x7ff8000000000000ull;
                total = bits_to_f64(bits_of_total | (sum[0] == NEGATIVE_INFINITY ? u64(1) << 63 : 0));
            } else {
                total = static_cast<f64>(static_cast<i64>(sum[0]));
                if constexpr (WORDS == 2) total += static_cast<f64>(static_cast<i64>(sum[1])) * power_of_two(-static_cast<int>(bits));
                total = scale(total, upper_exponent(field) - static_cast<int>(bits));
            }
            Real* const to = reinterpret_cast<Real*>(out + at.at[0]) + part;
            *to = static_cast<Real>(to_double(*to) + total);
        }
    }
}
