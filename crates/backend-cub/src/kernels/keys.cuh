// Keys of a sort, in the direction asked for, after order.cuh. The host defines `Element`, `Key` (unsigned, of its size), `PAIRS`
// (whether places travel with the keys) and `DESCENDING`.

namespace cuprum {

// No key comes after it.
inline constexpr Key LAST_KEY = static_cast<Key>(~Key(0));

// Where places tell equal elements apart, they must have equal keys; where the keys become elements again, they must not.
__device__ inline Key key_of(Key bits) {
    const Key key = PAIRS ? encode_equal<Element>(bits) : encode<Element>(bits);
    return DESCENDING ? static_cast<Key>(~key) : key;
}
__device__ inline Key bits_of(Key key) { return decode<Element>(DESCENDING ? static_cast<Key>(~key) : key); }

}  // namespace cuprum
