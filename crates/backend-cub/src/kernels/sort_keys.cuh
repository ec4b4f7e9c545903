// Unsigned sort keys of elements, in the requested direction. Requires backend-cuda's sort_keys.cuh.
//
// The host defines `Element`, `Key` (unsigned), `WORDS`, `PAIRS` (whether indices move with the keys) and `DESCENDING`. `WORDS` is the
// number of keys per element: two for complex128, the less significant one first, else one of the element's size.

namespace cuprum {

// The largest key.
inline constexpr Key LAST_KEY = static_cast<Key>(~Key(0));

// The type that holds the bits of an element in memory.
template <int WordCount> struct BitsOf {
    using type = Key;
};
template <> struct BitsOf<2> {
    struct alignas(16) type {
        Key re, im;
    };
};
using Bits = BitsOf<WORDS>::type;

// Returns the key of an element. With PAIRS, equal elements have equal keys (-0.0 and 0.0, all NaNs). Without PAIRS, each bit pattern has
// its own key, because the sorted keys are decoded to elements.
template <class T> __device__ inline Key sort_key_of(const T& bits, u32 word = 0) {
    Key key;
    if constexpr (sizeof(T) > sizeof(Key)) {
        Key high, low;
        encode_complex<f64>(bits.re, bits.im, high, low);
        key = word == 0 ? low : high;
    } else {
        key = PAIRS ? encode_canonical_key<Element>(bits) : encode_key<Element>(bits);
    }
    return DESCENDING ? static_cast<Key>(~key) : key;
}

// Decodes a key to the bits of its element. Requires that PAIRS is false, because with PAIRS elements of different bits may have equal
// keys.
__device__ inline Key bits_of(Key key) { return decode_key<Element>(DESCENDING ? static_cast<Key>(~key) : key); }

}  // namespace cuprum
