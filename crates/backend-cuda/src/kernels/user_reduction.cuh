// Combination of partial results by the user's code in a `ReductionKernel`. Requires the prelude.
//
// The host defines the accumulator type `cuprum_total` and the functions `cuprum_reduce`, `cuprum_identity` and `cuprum_post` from the
// user's code. The user's identity is the result of an empty reduction only. This identity may not be neutral, so it is never combined with
// other values.

// The partial result of some elements. `has` is false if there are no elements.
struct cuprum_partial {
    cuprum_total value;
    bool has;
};
static_assert(sizeof(cuprum_partial) == 2 * sizeof(cuprum_total), "the host assumes this size");

__device__ inline cuprum_partial cuprum_empty_partial() { return {cuprum_total(), false}; }
__device__ inline cuprum_partial cuprum_combine(const cuprum_partial& a, const cuprum_partial& b) {
    if (!a.has) return b;
    if (!b.has) return a;
    return {cuprum_reduce(a.value, b.value), true};
}
__device__ inline auto cuprum_result(const cuprum_partial& all) { return cuprum_post(all.has ? all.value : cuprum_identity(all.value)); }
