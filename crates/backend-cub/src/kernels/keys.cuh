// Keys of a sort, in the direction asked for, after order.cuh. The host defines `Element`, `Key` (unsigned), `WORDS` (how many keys an
// element has: two for complex128, of which the first counts for less, else one of the element's size), `PAIRS` (whether places travel
// with the keys) and `DESCENDING`.

namespace cuprum {

// No key comes after it.
inline constexpr Key LAST_KEY = static_cast<Key>(~Key(0));

// An element as it is read.
template <int Words> struct BitsOf {
    using type = Key;
};
template <> struct BitsOf<2> {
    struct alignas(16) type {
        Key re, im;
    };
};
using Bits = BitsOf<WORDS>::type;

// Where places tell equal elements apart, they must have equal keys; where the keys become elements again, they must not.
template <class T> __device__ inline Key key_of(const T& bits, u32 word = 0) {
    Key key;
    if constexpr (sizeof(T) > sizeof(Key)) {
        Key high, low;
        encode_complex<f64>(bits.re, bits.im, high, low);
        key = word == 0 ? low : high;
    } else {
        key = PAIRS ? encode_equal<Element>(bits) : encode<Element>(bits);
    }
    return DESCENDING ? static_cast<Key>(~key) : key;
}
__device__ inline Key bits_of(Key key) { return decode<Element>(DESCENDING ? static_cast<Key>(~key) : key); }

}  // namespace cuprum
