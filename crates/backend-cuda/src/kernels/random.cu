// Random numbers from Philox, a counter-based generator. T is the output's element type.

// R is the type in which numbers are computed: float64 if T is float64, else float32.
using R = choose<is_same<T, f64>, f64, f32>::type;
// Number of uniform numbers of type R from one Philox block (four random 32-bit words).
constexpr int UNIFORMS = is_same<T, f64> ? 2 : 4;

// Number of random bits of a uniform number: the significand bits of T, so that the conversion to T is exact.
constexpr int UNIFORM_BITS = is_same<T, f64> ? 53 : is_same<T, f16> ? 11 : is_same<T, bf16> ? 8 : 24;

// Returns uniform number `n` of the Philox block `words`: a number in [0, 1) with at most BITS random bits.
template <int BITS> __device__ inline R uniform_number(const RandomWords& words, int n) {
    if constexpr (is_same<R, f64>) return static_cast<f64>(words.pair(n) >> 11) * 0x1p-53;
    else return static_cast<f32>((words.w[n] & (~0u << (32 - BITS))) >> 8) * 0x1p-24f;
}

// Stores the N numbers from Philox block `block`, counted from the start of the output. Numbers past the end of the output are dropped.
template <int N> __device__ inline void store_philox_block(T* out, u64 block, u64 count, const Pack<T, N>& values) {
    const u64 at = block * N;
    if (at + N <= count) {
        store_aligned<N>(out + at, values);
    } else {
        #pragma unroll
        for (int n = 0; n < N; n++) {
            if (at + n < count) out[at + n] = values.at[n];
        }
    }
}

// Writes uniform numbers, scaled as the core crate's struct UniformScaling defines.
extern "C" __global__ void __launch_bounds__(256)
random_uniform(T* out, u64 count, u64 key, u64 first_block, u32 stream, R low, R span, R factor, R limit) {
    const u64 blocks = (count + UNIFORMS - 1) / UNIFORMS, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const RandomWords words = philox(first_block + b, 0, stream, key);
        Pack<T, UNIFORMS> values;
        #pragma unroll
        for (int n = 0; n < UNIFORMS; n++) {
            const R scaled = mul_rn(factor, add_rn(low, mul_rn(uniform_number<UNIFORM_BITS>(words, n), span)));
            values.at[n] = cast<T>(scaled < limit ? scaled : limit);
        }
        store_philox_block(out, b, count, values);
    }
}

// Terms of the Box-Muller transform for two uniform numbers u and v: radius = sqrt(-2 ln(1 - u)), and the cosine and sine of 2 pi v.
template <class X> struct BoxMullerTerms {
    X radius, cosine, sine;
};

// Returns the Box-Muller terms in float32. The upper 24 bits of the random words `first` and `second` are the two uniform numbers. For all
// 2^24 inputs, the error is at most 1 ulp for the radius, and 2 ulp for cosine and sine. Unlike CUDA's functions, this function has no slow
// path. The polynomials are weighted least-squares fits.
__device__ inline BoxMullerTerms<f32> box_muller_terms(u32 first, u32 second) {
    // Computes ln(rest) from rest = 2^exponent * (1 + f), with f from -1/3 to 1/3. The polynomial q approximates ln(1 + f) as f + f^2 q(f).
    const f32 rest = 1 - static_cast<f32>(first >> 8) * 0x1p-24f;
    const u32 shifted = (__float_as_uint(rest) - 0x3f2aaaabu) & 0xff800000u;
    const f32 f = __uint_as_float(__float_as_uint(rest) - shifted) - 1;
    f32 q = -0.12889069318771362f;
    q = __fmaf_rn(q, f, 0.13986897468566895f);
    q = __fmaf_rn(q, f, -0.1218489333987236f);
    q = __fmaf_rn(q, f, 0.14005306363105774f);
    q = __fmaf_rn(q, f, -0.16680438816547394f);
    q = __fmaf_rn(q, f, 0.2001044601202011f);
    q = __fmaf_rn(q, f, -0.24999798834323883f);
    q = __fmaf_rn(q, f, 0.3333321511745453f);
    q = __fmaf_rn(q, f, -0.5f);
    const f32 logarithm = __fmaf_rn(__fmul_rn(q, f), f, f);
    const f32 square = __fmaf_rn(static_cast<f32>(static_cast<i32>(shifted)), -2 * 0.693147180559945f * 0x1p-23f, -2 * logarithm);
    // Computes `root`, the square root of `square`, from an approximate reciprocal square root and one Newton step. The root of 0 is 0.
    f32 inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(fmaxf(square, 0x1p-126f)));
    f32 root = __fmul_rn(square, inverse);
    root = __fmaf_rn(__fmaf_rn(-root, root, square), __fmul_rn(0.5f, inverse), root);

    // Splits the angle, exactly in fixed point, into the nearest quarter turn and a remainder. The polynomials approximate the sine and
    // cosine of the remainder.
    const u32 turns = second & 0xffffff00u, quarter = turns + 0x20000000u;
    const f32 angle = static_cast<f32>(static_cast<i32>(turns << 2)) * (6.283185307179586f * 0x1p-34f), x = angle * angle;
    f32 s = -0.0001951878803083673f;
    s = __fmaf_rn(s, x, 0.008332191966474056f);
    s = __fmaf_rn(s, x, -0.16666655242443085f);
    s = __fmaf_rn(__fmul_rn(s, x), angle, angle);
    f32 c = 2.443066296109464e-05f;
    c = __fmaf_rn(c, x, -0.00138873013202101f);
    c = __fmaf_rn(c, x, 0.04166664555668831f);
    c = __fmaf_rn(c, x, -0.5f);
    c = __fmaf_rn(c, x, 1.0f);
    const bool is_odd = quarter & 0x40000000u;
    const u32 sine = __float_as_uint(is_odd ? c : s) ^ (quarter & 0x80000000u);
    const u32 cosine = __float_as_uint(is_odd ? s : c) ^ ((quarter + 0x40000000u) & 0x80000000u);
    return {root, __uint_as_float(cosine), __uint_as_float(sine)};
}

// Returns the Box-Muller terms of pair `n` of the uniform numbers from the Philox block `words`.
template <class X> __device__ inline BoxMullerTerms<X> box_muller_terms_of_pair(const RandomWords& words, int n) {
    if constexpr (is_same<X, f32>) {
        return box_muller_terms(words.w[2 * n], words.w[2 * n + 1]);
    } else {
        BoxMullerTerms<f64> out;
        out.radius = ::sqrt(mul_rn(-2.0, ::log(1 - static_cast<f64>(uniform_number<53>(words, 0)))));
        ::sincos(mul_rn(6.283185307179586, static_cast<f64>(uniform_number<53>(words, 1))), &out.sine, &out.cosine);
        return out;
    }
}

// Writes normally distributed numbers. The Box-Muller transform computes two normal numbers from two uniform numbers.
extern "C" __global__ void __launch_bounds__(256)
random_normal(T* out, u64 count, u64 key, u64 first_block, u32 stream, R mean, R deviation) {
    const u64 blocks = (count + UNIFORMS - 1) / UNIFORMS, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const RandomWords words = philox(first_block + b, 0, stream, key);
        Pack<T, UNIFORMS> values;
        #pragma unroll
        for (int n = 0; n < UNIFORMS; n += 2) {
            const BoxMullerTerms<R> at = box_muller_terms_of_pair<R>(words, n / 2);
            values.at[n] = cast<T>(add_rn(mean, mul_rn(deviation, mul_rn(at.radius, at.cosine))));
            values.at[n + 1] = cast<T>(add_rn(mean, mul_rn(deviation, mul_rn(at.radius, at.sine))));
        }
        store_philox_block(out, b, count, values);
    }
}

// Random numbers of 128 bits consist of halves from two Philox blocks. This constant is the distance between the counters of the block with
// the high halves and the block with the low halves.
constexpr u64 LOW_HALF_BLOCK_OFFSET = 1ull << 63;

// Writes random integers from `low` up to, but not including, `low + span`. Each is `low` plus the upper 64 bits of the product of `span`
// and a random number: of 64 bits for spans up to 2^32, and of 128 bits for larger spans. A span of 0 means 2^64.
extern "C" __global__ void __launch_bounds__(256)
random_integers(T* out, u64 count, u64 key, u64 first_block, u32 stream, u64 low, u64 span) {
    const u64 blocks = (count + 1) / 2, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const RandomWords words = philox(first_block + b, 0, stream, key);
        u64 offsets[2];
        #pragma unroll
        for (int n = 0; n < 2; n++) offsets[n] = span == 0 ? words.pair(n) : __umul64hi(words.pair(n), span);
        if (span > 1ull << 32) {
            const RandomWords low_words = philox(first_block + b + LOW_HALF_BLOCK_OFFSET, 0, stream, key);
            #pragma unroll
            for (int n = 0; n < 2; n++) {
                const u64 rest = words.pair(n) * span;
                offsets[n] += rest + __umul64hi(low_words.pair(n), span) < rest;
            }
        }
        Pack<T, 2> values;
        #pragma unroll
        for (int n = 0; n < 2; n++) values.at[n] = cast<T>(low + offsets[n]);
        store_philox_block(out, b, count, values);
    }
}
