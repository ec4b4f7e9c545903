// Conversion of values to scaled integers and back, for scatter_sum.cu and scatter_bucket_sum.cu. The scale (unit) is common to all values,
// or differs by element of the output.
//
// ELEMENT is a float or complex type.

using namespace cuprum;

using Real = real_of<ELEMENT>;
// An upper bound of the number of bits of the significand of `Real`.
constexpr int DIGITS = is_same<Real, f64> ? 53 : 24;

// The exponent field of a double with NaN or an infinity.
constexpr u32 NOT_FINITE = 2047;

__device__ inline f64 to_double(Real x) { return static_cast<f64>(static_cast<wide_of<Real>>(x)); }
__device__ inline u32 exponent_field(f64 x) { return static_cast<u32>(__double2hiint(x)) >> 20 & 0x7ff; }

__device__ inline f64 power_of_two(int exponent) { return bits_to_f64(static_cast<u64>(exponent + 1023) << 52); }
// Returns x * 2^exponent, for |exponent| <= 2000. Two factors are needed, because 2^exponent may be outside the range of float64.
__device__ inline f64 scale(f64 x, int exponent) { return x * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2); }
// Returns an exponent e such that 2^e exceeds the magnitude of every float64 value whose exponent field is at most `field`.
__device__ inline int upper_exponent(u32 field) { return static_cast<int>(field > 0 ? field : 1) - 1022; }

// A value as two integers: a multiple of 2^(exponent - bits), and a remainder as a multiple of 2^(exponent - 2 * bits). `bits` is at most
// 50.
struct ScaledValue {
    i64 whole, rest;
    // True if the value's magnitude is below 2^exponent and the two integers represent the value exactly. False for NaN.
    bool is_exact;
};
__device__ inline ScaledValue scale_to_integers(f64 x, u64 bits, int exponent) {
    // Adding 1.5 * 2^52 to a number of at most 2^51 rounds it to an integer, and the low bits of the sum are that integer.
    constexpr f64 ROUNDING = 6755399441055744.0;
    const f64 unit = power_of_two(static_cast<int>(bits));
    const f64 scaled = scale(x, static_cast<int>(bits) - exponent), shifted = scaled + ROUNDING;
    const f64 rest = (scaled - (shifted - ROUNDING)) * unit, shifted_rest = rest + ROUNDING;
    const i64 offset = __double_as_longlong(ROUNDING);
    // A nonzero `x` is not represented exactly if its scaled value underflows to 0.
    const bool is_exact = fabs(scaled) < unit && shifted_rest - ROUNDING == rest && (scaled != 0 || x == 0);
    return {__double_as_longlong(shifted) - offset, __double_as_longlong(shifted_rest) - offset, is_exact};
}

// The number of values whose exponents are sampled, as a power of two.
constexpr int SAMPLE_BITS = 14;
// Number of binary digits by which values may exceed the largest sampled value, if they are added in units common to all values.
constexpr int HEADROOM = 3;

// Properties of the values and of the output that decide whether values are converted to integers in units common to all values.
struct ExponentRange {
    // The largest exponent field of the sampled values.
    u32 largest;
    // 2047 minus the smallest exponent field of the nonzero sampled values. A difference can start at 0 and be updated by an atomic
    // maximum.
    u32 smallest_from_top;
    // 1 if an element of the output is -0.0. Adding a sum of 0 must change such an element to 0.0, unless all its values are -0.0. Common
    // units are then not used, because only `exponents` shows whether all values are -0.0.
    u32 has_negative_zero;
    // 1 if, in units common to all values, two integers do not represent some value exactly.
    u32 has_inexact_value;
    // 1 if the kernels of scatter_bucket_sum.cu add the values, 0 if the kernel scatter_add adds them. Only read if all values have
    // common units.
    u32 adds_by_bucket;

    // Returns whether two integers are likely to represent every value exactly in units common to all values. False once an inexact value
    // has been recorded. `bits` is the number of bits of an integer (`scaled_value_bits` in reproducible_sum.rs).
    __device__ bool has_common_units(u64 bits) const {
        // The sample has 2^SAMPLE_BITS of up to 2^(62 - bits) values. The smallest magnitude of all values is therefore assumed to be up
        // to 2^unsampled_bits times smaller than that of the sample.
        const int unsampled_bits = 62 - static_cast<int>(bits) - SAMPLE_BITS;
        const int width = static_cast<int>(largest + smallest_from_top) - 2047 + HEADROOM + (unsampled_bits > 0 ? unsampled_bits : 0);
        return largest != NOT_FINITE && has_negative_zero == 0 && has_inexact_value == 0 && width + DIGITS <= 2 * static_cast<int>(bits);
    }

    // Returns the exponent e of the units that are common to all values. Integers in these units represent only values of a magnitude below
    // 2^e.
    __device__ int common_exponent() const { return upper_exponent(largest) + HEADROOM; }
};
