// Element types and conversions between them. Needs no headers, only NVRTC's built-ins.
//
// CUDA's math functions have their documented accuracy only if the compiler may contract a * b + c into one rounding. Other code
// must not be contracted: add_rn, sub_rn and mul_rn prevent it. An expression then has the same value on GPU and CPU, whether or
// not it is fused with other expressions.

namespace cuprum {

using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;

// ---- floats from bit patterns, because the macros of <cmath> for infinity and NaN need a header ----

__device__ inline f32 bits_to_f32(u32 bits) { return __uint_as_float(bits); }
__device__ inline f64 bits_to_f64(u64 bits) { return __longlong_as_double(static_cast<i64>(bits)); }

// ---- + - * that are never contracted ----

__device__ inline f32 add_rn(f32 a, f32 b) { return __fadd_rn(a, b); }
__device__ inline f64 add_rn(f64 a, f64 b) { return __dadd_rn(a, b); }
__device__ inline f32 sub_rn(f32 a, f32 b) { return __fsub_rn(a, b); }
__device__ inline f64 sub_rn(f64 a, f64 b) { return __dsub_rn(a, b); }
__device__ inline f32 mul_rn(f32 a, f32 b) { return __fmul_rn(a, b); }
__device__ inline f64 mul_rn(f64 a, f64 b) { return __dmul_rn(a, b); }

// ---- float16 and bfloat16: 16 bits in memory, float in registers, rounded after every operation ----

struct f16 {
    u16 bits;
    f16() = default;
    __device__ explicit f16(f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    // A double is converted to f16 directly, because rounding it to float first can miss the nearest value.
    __device__ explicit f16(f64 x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
    __device__ explicit operator f32() const {
        f32 x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

struct bf16 {
    u16 bits;
    bf16() = default;
    __device__ explicit bf16(f32 x) {
        u32 b = __float_as_uint(x);
        // Rounds the float to its upper 16 bits, to nearest even. NaN keeps its sign and becomes quiet.
        bits = x != x ? static_cast<u16>(b >> 16 | 0x40u) : static_cast<u16>((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
    }
    // The double is first rounded to float by "round to odd", which keeps inexactness in the last bit. The final rounding to bf16
    // is then correct.
    __device__ explicit bf16(f64 x) : bf16(round_to_odd(x)) {}
    // Integers that float cannot represent exactly are rounded to float by "round to odd" first. The final rounding to bf16 is then
    // correct.
    template <class Int> __device__ static bf16 from_wide_int(Int x) {
        f32 toward_zero;
        if constexpr (is_same<Int, i32>) toward_zero = __int2float_rz(x);
        else if constexpr (is_same<Int, u32>) toward_zero = __uint2float_rz(x);
        else if constexpr (is_same<Int, i64>) toward_zero = __ll2float_rz(x);
        else toward_zero = __ull2float_rz(x);
        return bf16(static_cast<Int>(toward_zero) == x ? toward_zero : __uint_as_float(__float_as_uint(toward_zero) | 1u));
    }
    __device__ explicit operator f32() const { return __uint_as_float(static_cast<u32>(bits) << 16); }

private:
    __device__ static f32 round_to_odd(f64 x) {
        f32 toward_zero = __double2float_rz(x);
        bool exact = static_cast<f64>(toward_zero) == x || x != x;
        return exact ? toward_zero : __uint_as_float(__float_as_uint(toward_zero) | 1u);
    }
};

// ---- complex: the real part first, aligned to the size of both parts ----

template <class T> struct alignas(2 * sizeof(T)) complex {
    T re, im;
    complex() = default;
    __device__ constexpr complex(T real, T imag) : re(real), im(imag) {}
};
using c64 = complex<f32>;
using c128 = complex<f64>;

// ---- traits ----

template <class T> constexpr bool is_half = is_same<T, f16> || is_same<T, bf16>;
template <class T> constexpr bool is_complex = is_same<T, c64> || is_same<T, c128>;
template <class T> constexpr bool is_float = is_half<T> || is_same<T, f32> || is_same<T, f64>;
template <class T> constexpr bool is_signed = is_same<T, i8> || is_same<T, i16> || is_same<T, i32> || is_same<T, i64>;
template <class T> constexpr bool is_unsigned = is_same<T, u8> || is_same<T, u16> || is_same<T, u32> || is_same<T, u64>;
template <class T> constexpr bool is_int = is_signed<T> || is_unsigned<T>;

template <bool condition, class A, class B> struct choose { using type = A; };
template <class A, class B> struct choose<false, A, B> { using type = B; };

template <class T> struct real_part { using type = T; };
template <class T> struct real_part<complex<T>> { using type = T; };
template <class T> using real_of = typename real_part<T>::type;

// The type in which values of type T are computed: float for 16-bit floats, else T.
template <class T> using wide_of = typename choose<is_half<T>, f32, T>::type;
// The unsigned type in which integers of type T are computed, so that results wrap. Signed overflow would be undefined, also in the int to
// which C++ promotes smaller types, so the type is at least as wide as int.
template <class T> using wrap_of = typename choose<sizeof(T) == 8, u64, u32>::type;

// ---- cast<To>(x): NumPy's astype. Floats are truncated to integers and saturate at the limits of To. NaN becomes 0. ----

template <class T> __device__ constexpr T int_min() { return is_signed<T> ? static_cast<T>(u64(1) << (8 * sizeof(T) - 1)) : T(0); }
template <class T> __device__ constexpr T int_max() { return static_cast<T>(~int_min<T>()); }

template <class To> __device__ inline To float_to_int(f64 x) {
    // NaN is a separate case, because PTX does not always convert NaN to 0. The conversion instruction saturates values that are out of
    // range.
    if (x != x) return To(0);
    if constexpr (is_same<To, i64>) return __double2ll_rz(x);
    else if constexpr (is_same<To, u64>) return __double2ull_rz(x);
    else if constexpr (is_signed<To>) {
        i32 v = __double2int_rz(x);
        return static_cast<To>(v < int_min<To>() ? int_min<To>() : v > int_max<To>() ? int_max<To>() : v);
    } else {
        u32 v = __double2uint_rz(x);
        return static_cast<To>(v > int_max<To>() ? int_max<To>() : v);
    }
}
template <class To> __device__ inline To float_to_int(f32 x) {
    if (x != x) return To(0);
    if constexpr (is_same<To, i64>) return __float2ll_rz(x);
    else if constexpr (is_same<To, u64>) return __float2ull_rz(x);
    else if constexpr (is_signed<To>) {
        i32 v = __float2int_rz(x);
        return static_cast<To>(v < int_min<To>() ? int_min<To>() : v > int_max<To>() ? int_max<To>() : v);
    } else {
        u32 v = __float2uint_rz(x);
        return static_cast<To>(v > int_max<To>() ? int_max<To>() : v);
    }
}

template <class To, class From> __device__ inline To cast(From x) {
    if constexpr (is_same<To, From>) return x;
    else if constexpr (is_complex<From>) {
        if constexpr (is_same<To, bool>) return x.re != 0 || x.im != 0;
        else if constexpr (is_complex<To>) return To(cast<real_of<To>>(x.re), cast<real_of<To>>(x.im));
        else return cast<To>(x.re);
    }
    else if constexpr (is_complex<To>) return To(cast<real_of<To>>(x), 0);
    else if constexpr (is_half<From>) return cast<To>(static_cast<f32>(x));
    else if constexpr (is_same<To, bool>) return x != 0;
    else if constexpr (is_half<To>) {
        if constexpr (is_same<From, f64>) return To(x);
        else if constexpr (is_same<To, bf16> && is_int<From> && sizeof(From) >= 4) return bf16::from_wide_int(x);
        else return To(static_cast<f32>(x));
    }
    else if constexpr (is_int<To> && is_float<From>) return float_to_int<To>(x);
    else return static_cast<To>(x);
}

// Converts 16-bit floats to float, and returns all other types unchanged.
template <class T> __device__ inline wide_of<T> widen(T x) { return cast<wide_of<T>>(x); }

// ---- the error word of a launch: 32 bytes of mapped host memory, in which kernels record the first fault ----

struct Fault { u64 code, op; i64 value; u64 length; };

// Writes a fault to the error word `word` of the launch, unless the error word already has one. The kernel then continues without an access
// out of bounds.
__device__ __noinline__ inline void report_fault(Fault* word, u64 code, u64 op, i64 value, u64 length) {
    if (atomicCAS(&word->code, u64(0), ~u64(0)) != 0) return;
    volatile Fault* out = word;
    out->op = op;
    out->value = value;
    out->length = length;
    __threadfence_system();
    out->code = code;
}

}  // namespace cuprum
