// Unsigned keys in the order of the elements that they stand for: NaN last, whatever its sign.

namespace cuprum {

// Of the bits of a float with `Key`'s size: the sign, infinity, and how many NaN of one sign there are.
template <class T, class Key> struct FloatBits {
    static constexpr int MANTISSA = is_same<T, f16> ? 10 : is_same<T, bf16> ? 7 : is_same<T, f64> ? 52 : 23;
    static constexpr Key SIGN = static_cast<Key>(Key(1) << (8 * sizeof(Key) - 1));
    static constexpr Key INFINITE = static_cast<Key>(SIGN - (Key(1) << MANTISSA));
    static constexpr Key NANS = static_cast<Key>(SIGN - 1 - INFINITE);
};

// One key for each element, so that `decode` finds it again. Negative floats are reversed below the others; then all keys move
// down by the number of negative NaN, which thereby come round to the top.
template <class T, class Key> __device__ inline Key encode(Key bits) {
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
template <class T, class Key> __device__ inline Key decode(Key key) {
    if constexpr (is_float<T>) {
        using F = FloatBits<T, Key>;
        const Key rising = static_cast<Key>(key + F::NANS);
        return static_cast<Key>(rising & F::SIGN ? rising ^ F::SIGN : ~rising);
    } else {
        return encode<T>(key);
    }
}

// One key for all elements that are equal: zeros of either sign, NaN of any bits.
template <class T, class Key> __device__ inline Key encode_equal(Key bits) {
    if constexpr (is_float<T>) {
        using F = FloatBits<T, Key>;
        const Key magnitude = static_cast<Key>(bits & ~F::SIGN);
        return encode<T>(static_cast<Key>(magnitude > F::INFINITE ? F::SIGN - 1 : magnitude == 0 ? 0 : bits));
    } else if constexpr (is_same<T, c64>) {
        // Numbers by their parts; above them, first those with a NaN imaginary part by the real one, then those with a NaN
        // real part by the imaginary one, then those with both.
        const u32 re = encode_equal<f32>(static_cast<u32>(bits)), im = encode_equal<f32>(static_cast<u32>(bits >> 32));
        const u32 nan = encode_equal<f32>(~u32(0));
        const u32 high = re == nan ? nan + (im == nan ? 2 : 1) : im == nan ? nan : re;
        const u32 low = re == nan ? (im == nan ? 0 : im) : im == nan ? re : im;
        return u64(high) << 32 | low;
    } else {
        return encode<T>(bits);
    }
}

}  // namespace cuprum
