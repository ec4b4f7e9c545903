// NumPy's `take` within expressions. An index out of bounds is recorded, and reported only after all elements of a thread, so
// that several loads stay in flight.

namespace cuprum {

// The last index out of bounds, and the step of the program that found it; step 0 means none.
struct Noticed {
    u32 step;
    i64 index;
};

// Returns `all[index]`; a negative `index` counts from the end. If `index` is out of bounds, records it in `noticed` and
// returns the first element.
template <u32 Step, class T, class Index> __device__ inline T taken(const T* all, Index index, Index length, Noticed& noticed) {
    const Index at = index < 0 ? index + length : index;
    const bool inside = static_cast<wrap_of<Index>>(at) < static_cast<wrap_of<Index>>(length);
    if (!inside) noticed = {Step, index};
    return all[inside ? at : 0];
}

}  // namespace cuprum
