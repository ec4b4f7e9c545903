// Elements of whole arrays at data-dependent indices, within expressions. An index out of bounds is stored and reported after
// all elements, so that several loads stay in flight.

namespace cuprum {

// The last index out of bounds, and the step of the program that found it; step 0 means none.
struct Noticed {
    u32 step;
    i64 index;
};

// Returns the element at an index; negative indices count from the end. For an index out of bounds, the first element
// is read.
template <u32 Step, class T, class Index> __device__ inline T taken(const T* all, Index index, Index length, Noticed& noticed) {
    const Index at = index < 0 ? index + length : index;
    const bool inside = static_cast<wrap_of<Index>>(at) < static_cast<wrap_of<Index>>(length);
    if (!inside) noticed = {Step, index};
    return all[inside ? at : 0];
}

}  // namespace cuprum
