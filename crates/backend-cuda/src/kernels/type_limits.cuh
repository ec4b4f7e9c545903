// Identities of `op::maximum` and `op::minimum`: the lowest and highest value of each type.

namespace cuprum {

// Returns the smallest value of type T, which is -infinity for floats. `highest` returns the largest value, which is infinity for floats.
template <class T> __device__ inline T lowest() {
    if constexpr (is_same<T, bool>) return false;
    else if constexpr (is_int<T>) return int_min<T>();
    else if constexpr (is_complex<T>) return T(lowest<real_of<T>>(), lowest<real_of<T>>());
    else return cast<T>(bits_to_f32(0xff800000u));
}
template <class T> __device__ inline T highest() {
    if constexpr (is_same<T, bool>) return true;
    else if constexpr (is_int<T>) return int_max<T>();
    else if constexpr (is_complex<T>) return T(highest<real_of<T>>(), highest<real_of<T>>());
    else return cast<T>(bits_to_f32(0x7f800000u));
}

}  // namespace cuprum
