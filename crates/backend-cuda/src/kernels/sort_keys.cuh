// Unsigned keys whose order is NumPy's sort order of the elements. -0.0 equals 0.0. All NaN are equal, and come last.
//
// Complex numbers without NaN come first, then those with a NaN imaginary part, with a NaN real part, and with both. Within each of these
// groups, numbers are ordered by the real part, then by the imaginary part.

namespace cuprum {

// A 128-bit unsigned number: the key of a complex128.
struct u128 {
    u64 high, low;
    __device__ friend bool operator<(const u128& a, const u128& b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
    __device__ friend bool operator<=(const u128& a, const u128& b) { return !(b < a); }
    __device__ friend u128 operator~(const u128& a) { return u128{~a.high, ~a.low}; }
};
// Returns bits `shift`..`shift + 8` of a key. `shift` is a multiple of 8.
__device__ inline u32 byte_at(const u128& key, u32 shift) {
    return static_cast<u32>((shift < 64 ? key.low >> shift : key.high >> (shift - 64)) & 0xff);
}
template <class U> __device__ inline u32 byte_at(U key, u32 shift) { return static_cast<u32>(key >> shift) & 0xff; }

// Bit patterns of the float type T, whose size is that of Key: the sign bit, infinity, and the number of NaN patterns of one sign.
template <class T, class Key> struct FloatBits {
    static constexpr int MANTISSA = is_same<T, f16> ? 10 : is_same<T, bf16> ? 7 : is_same<T, f64> ? 52 : 23;
    static constexpr Key SIGN = static_cast<Key>(Key(1) << (8 * sizeof(Key) - 1));
    static constexpr Key INFINITE = static_cast<Key>(SIGN - (Key(1) << MANTISSA));
    static constexpr Key NANS = static_cast<Key>(SIGN - 1 - INFINITE);
};

// Returns the key of an element of a real type T from its bits. Each bit pattern has its own key, and `decode_key` inverts the function.
//
// Negative floats come below the others, in reversed order of their bits. All keys are then lowered by the number of negative NaN, so
// that the keys of negative NaN wrap around to the top.
template <class T, class Key> __device__ inline Key encode_key(Key bits) {
    if constexpr (is_float<T>) {
        using F = FloatBits<T, Key>;
        const Key rising = static_cast<Key>(bits & F::SIGN ? ~bits : bits | F::SIGN);
        return static_cast<Key>(rising - F::NANS);
    } else if constexpr (is_signed<T>) {
        return static_cast<Key>(bits ^ Key(1) << (8 * sizeof(Key) - 1));
    } else {
        return bits;
    }
}
template <class T, class Key> __device__ inline Key decode_key(Key key) {
    if constexpr (is_float<T>) {
        using F = FloatBits<T, Key>;
        const Key rising = static_cast<Key>(key + F::NANS);
        return static_cast<Key>(rising & F::SIGN ? rising ^ F::SIGN : ~rising);
    } else {
        return encode_key<T>(key);
    }
}

template <class T, class Key> __device__ inline Key encode_canonical_key(Key bits);

// Computes the key of a complex number as two words, from the bits of its parts, which have type T. If a part is NaN, the high word is
// above the keys of all real parts that are numbers, and encodes which of the parts are NaN.
template <class T, class Key> __device__ inline void encode_complex(Key re_bits, Key im_bits, Key& high, Key& low) {
    const Key re = encode_canonical_key<T>(re_bits), im = encode_canonical_key<T>(im_bits), nan = encode_canonical_key<T>(~Key(0));
    high = re == nan ? nan + (im == nan ? 2 : 1) : im == nan ? nan : re;
    low = re == nan ? (im == nan ? Key(0) : im) : im == nan ? re : im;
}

// Returns the key of an element from its bits. Equal elements have equal keys: zeros of either sign, NaN of any bits. T is not complex128,
// whose key has two words.
template <class T, class Key> __device__ inline Key encode_canonical_key(Key bits) {
    if constexpr (is_float<T>) {
        using F = FloatBits<T, Key>;
        const Key magnitude = static_cast<Key>(bits & ~F::SIGN);
        return encode_key<T>(static_cast<Key>(magnitude > F::INFINITE ? F::SIGN - 1 : magnitude == 0 ? 0 : bits));
    } else if constexpr (is_same<T, c64>) {
        u32 high, low;
        encode_complex<f32>(static_cast<u32>(bits), static_cast<u32>(bits >> 32), high, low);
        return u64(high) << 32 | low;
    } else {
        return encode_key<T>(bits);
    }
}

template <int Bytes> struct Unsigned;
template <> struct Unsigned<1> { using type = u8; };
template <> struct Unsigned<2> { using type = u16; };
template <> struct Unsigned<4> { using type = u32; };
template <> struct Unsigned<8> { using type = u64; };

// Returns the unsigned sort key of an element. Equal elements have equal keys.
template <class T> __device__ inline auto sort_key(const T& x) {
    if constexpr (is_same<T, c128>) {
        u64 parts[2];
        memcpy(parts, &x, sizeof(T));
        u128 key;
        encode_complex<f64>(parts[0], parts[1], key.high, key.low);
        return key;
    } else {
        typename Unsigned<sizeof(T)>::type bits;
        memcpy(&bits, &x, sizeof(T));
        return encode_canonical_key<T>(bits);
    }
}

}  // namespace cuprum
