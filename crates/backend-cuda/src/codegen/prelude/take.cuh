// NumPy's `take` as part of a fused expression. A thread records an index out of bounds, and reports it only after the thread has processed
// all its elements. Several loads thus stay in flight.

namespace cuprum {

// The last index out of bounds that a thread has found, and the number of the program step that used the index. Step 0 means that
// no index was out of bounds.
struct BadIndex {
    u32 step;
    i64 index;
};

// Returns `table[index]`; a negative `index` counts from the end. If `index` is out of bounds, records the index in `bad_index` and returns
// the first element.
template <u32 Step, class T, class Index> __device__ inline T take_element(const T* table, Index index, Index length, BadIndex& bad_index) {
    const Index at = index < 0 ? index + length : index;
    const bool inside = static_cast<wrap_of<Index>>(at) < static_cast<wrap_of<Index>>(length);
    if (!inside) bad_index = {Step, index};
    return table[inside ? at : 0];
}

}  // namespace cuprum
