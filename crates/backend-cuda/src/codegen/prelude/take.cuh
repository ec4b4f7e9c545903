// Elements of whole arrays at indices of the data, within expressions. An index outside its array is kept and reported when the elements are
// done, so that loads of several stay under way together.

namespace cuprum {

// The last index that was outside, and the step of the program that met it; step 0 is none.
struct Noticed {
    u32 step;
    i64 index;
};

// Negative indices count from the end; in place of one outside the first element is read.
template <u32 Step, class T, class Index> __device__ inline T taken(const T* all, Index index, Index length, Noticed& noticed) {
    const Index at = index < 0 ? index + length : index;
    const bool inside = static_cast<wrap_of<Index>>(at) < static_cast<wrap_of<Index>>(length);
    if (!inside) noticed = {Step, index};
    return all[inside ? at : 0];
}

}  // namespace cuprum
