// Elements as unsigned integers in NumPy's order: -0.0 equal to 0.0, NaN last and all equal; complex numbers without NaN first, then
// those with a NaN imaginary part, then those with a NaN real part, then those with both, each by real, then by imaginary part.

namespace cuprum {

struct u128 {
    u64 high, low;
    __device__ friend bool operator<(const u128& a, const u128& b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
    __device__ friend bool operator<=(const u128& a, const u128& b) { return !(b < a); }
    __device__ friend u128 operator~(const u128& a) { return u128{~a.high, ~a.low}; }
};
// 8 bits from `shift` on, a multiple of 8.
__device__ inline u32 byte_at(const u128& key, u32 shift) {
    return static_cast<u32>((shift < 64 ? key.low >> shift : key.high >> (shift - 64)) & 0xff);
}
template <class U> __device__ inline u32 byte_at(U key, u32 shift) { return static_cast<u32>(key >> shift) & 0xff; }

// From the bits of a float, given those of its sign and of infinity: negative infinity becomes 0, every NaN the largest number.
template <class U> __device__ inline U float_order(U bits, U sign, U infinity) {
    const U size = bits & static_cast<U>(~sign);
    if (size > infinity) return static_cast<U>(~U(0));
    if (size == 0) bits = 0;
    const U rising = static_cast<U>(bits & sign ? ~bits : bits | sign);
    return static_cast<U>(rising - static_cast<U>(~(sign | infinity)));
}
__device__ inline u32 order_bits(f32 x) { return float_order<u32>(__float_as_uint(x), 0x80000000u, 0x7f800000u); }
__device__ inline u64 order_bits(f64 x) {
    return float_order<u64>(static_cast<u64>(__double_as_longlong(x)), 0x8000000000000000ull, 0x7ff0000000000000ull);
}

__device__ inline u8 order(bool x) { return x; }
__device__ inline u8 order(u8 x) { return x; }
__device__ inline u16 order(u16 x) { return x; }
__device__ inline u32 order(u32 x) { return x; }
__device__ inline u64 order(u64 x) { return x; }
__device__ inline u8 order(i8 x) { return static_cast<u8>(x ^ 0x80); }
__device__ inline u16 order(i16 x) { return static_cast<u16>(x ^ 0x8000); }
__device__ inline u32 order(i32 x) { return static_cast<u32>(x) ^ 0x80000000u; }
__device__ inline u64 order(i64 x) { return static_cast<u64>(x) ^ 0x8000000000000000ull; }
__device__ inline u16 order(f16 x) { return float_order<u16>(x.bits, 0x8000, 0x7c00); }
__device__ inline u16 order(bf16 x) { return float_order<u16>(x.bits, 0x8000, 0x7f80); }
__device__ inline u32 order(f32 x) { return order_bits(x); }
__device__ inline u64 order(f64 x) { return order_bits(x); }

// NaN is ~0, and the numbers after infinity are free for the classes with NaN.
template <class U, class T> __device__ inline void complex_order(const complex<T>& x, U& high, U& low) {
    const U nan = ~U(0), re = order_bits(x.re), im = order_bits(x.im);
    high = re == nan ? (im == nan ? nan : nan - 1) : im == nan ? nan - 2 : re;
    low = re == nan ? (im == nan ? U(0) : im) : im == nan ? re : im;
}
__device__ inline u64 order(c64 x) {
    u32 high, low;
    complex_order(x, high, low);
    return static_cast<u64>(high) << 32 | low;
}
__device__ inline u128 order(c128 x) {
    u128 key;
    complex_order(x, key.high, key.low);
    return key;
}

}  // namespace cuprum
