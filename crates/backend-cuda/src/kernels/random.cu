// Random numbers from a counter. T is the output's type. One thread draws one block of four words.

using namespace cuprum;

struct Words {
    u32 w[4];
    __device__ u64 pair(int n) const { return w[2 * n] | static_cast<u64>(w[2 * n + 1]) << 32; }
};

// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
__device__ inline Words philox(u64 counter, u64 key) {
    u32 c[4] = {static_cast<u32>(counter), static_cast<u32>(counter >> 32), 0, 0};
    u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
    #pragma unroll
    for (int round = 0; round < 10; round++) {
        const u32 low0 = 0xD2511F53u * c[0], high0 = __umulhi(0xD2511F53u, c[0]);
        const u32 low1 = 0xCD9E8D57u * c[2], high1 = __umulhi(0xCD9E8D57u, c[2]);
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c[0], c[1], c[2], c[3]}};
}

// Numbers are made in R: float64 for itself, float32 for the narrower ones.
using R = choose<is_same<T, f64>, f64, f32>::type;
constexpr int UNIFORMS = is_same<T, f64> ? 2 : 4;

// [0, 1) with 53 or 24 random bits, exact.
__device__ inline R uniform(const Words& words, int n) {
    if constexpr (is_same<R, f64>) return static_cast<f64>(words.pair(n) >> 11) * 0x1p-53;
    else return static_cast<f32>(words.w[n] >> 8) * 0x1p-24f;
}

// The N numbers of a block, as far as the output goes.
template <int N> __device__ inline void store(T* out, u64 block, u64 count, const Pack<T, N>& values) {
    const u64 at = block * N;
    if (at + N <= count) {
        store_aligned<N>(out + at, values);
    } else {
        for (int n = 0; at + n < count; n++) out[at + n] = values.at[n];
    }
}

extern "C" __global__ void __launch_bounds__(256)
random_uniform(T* out, u64 count, u64 key, u64 first_block, R low, R high, u32 is_unit) {
    const u64 blocks = (count + UNIFORMS - 1) / UNIFORMS, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const Words words = philox(first_block + b, key);
        Pack<T, UNIFORMS> values;
        #pragma unroll
        for (int n = 0; n < UNIFORMS; n++) {
            const R u = uniform(words, n);
            values.at[n] = cast<T>(is_unit ? u : add_rn(low, mul_rn(u, sub_rn(high, low))));
        }
        store(out, b, count, values);
    }
}

__device__ inline f32 log_of(f32 x) { return logf(x); }
__device__ inline f64 log_of(f64 x) { return log(x); }
__device__ inline f32 root_of(f32 x) { return sqrtf(x); }
__device__ inline f64 root_of(f64 x) { return sqrt(x); }
__device__ inline void sine_and_cosine(f32 x, f32* s, f32* c) { sincosf(x, s, c); }
__device__ inline void sine_and_cosine(f64 x, f64* s, f64* c) { sincos(x, s, c); }

// Box and Muller's transform: two normal numbers from two uniform ones.
extern "C" __global__ void __launch_bounds__(256) random_normal(T* out, u64 count, u64 key, u64 first_block, R mean, R deviation) {
    const u64 blocks = (count + UNIFORMS - 1) / UNIFORMS, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const Words words = philox(first_block + b, key);
        Pack<T, UNIFORMS> values;
        #pragma unroll
        for (int n = 0; n < UNIFORMS; n += 2) {
            const R radius = root_of(mul_rn(R(-2), log_of(R(1) - uniform(words, n))));
            R s, c;
            sine_and_cosine(mul_rn(static_cast<R>(6.283185307179586), uniform(words, n + 1)), &s, &c);
            values.at[n] = cast<T>(add_rn(mean, mul_rn(deviation, mul_rn(radius, c))));
            values.at[n + 1] = cast<T>(add_rn(mean, mul_rn(deviation, mul_rn(radius, s))));
        }
        store(out, b, count, values);
    }
}

// low + high half of (64 random bits * span); span 0 is 2^64.
extern "C" __global__ void __launch_bounds__(256) random_integers(T* out, u64 count, u64 key, u64 first_block, u64 low, u64 span) {
    const u64 blocks = (count + 1) / 2, stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 b = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        const Words words = philox(first_block + b, key);
        Pack<T, 2> values;
        #pragma unroll
        for (int n = 0; n < 2; n++) {
            const u64 bits = words.pair(n);
            values.at[n] = cast<T>(low + (span == 0 ? bits : __umul64hi(bits, span)));
        }
        store(out, b, count, values);
    }
}
