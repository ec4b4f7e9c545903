// Indices along an axis, as NumPy interprets them.

namespace cuprum {

// Returns the position that `index` selects along an axis of `extent` elements, or -1 if `index` is out of bounds. Negative indices count
// from the end.
__device__ inline i64 resolve_index(i64 index, i64 extent) {
    if (index < -extent || index >= extent) return -1;
    return index < 0 ? index + extent : index;
}

}  // namespace cuprum
