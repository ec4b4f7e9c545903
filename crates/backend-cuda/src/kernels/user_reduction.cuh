// Combination of user-defined reductions from strings. Follows the prelude. The host defines `cuprum_total`, `cuprum_reduce`,
// `cuprum_identity` and `cuprum_post` from the user's code. The identity is the result of an empty reduction. It may
// change a result that it is combined with, so it is never combined.

// A partial result. `has` is false if it has no elements.
struct cuprum_part {
    cuprum_total value;
    bool has;
};
static_assert(sizeof(cuprum_part) == 2 * sizeof(cuprum_total), "as the host counts");

__device__ inline cuprum_part cuprum_empty_part() { return {cuprum_total(), false}; }
__device__ inline cuprum_part cuprum_combine(const cuprum_part& a, const cuprum_part& b) {
    if (!a.has) return b;
    if (!b.has) return a;
    return {cuprum_reduce(a.value, b.value), true};
}
__device__ inline auto cuprum_result(const cuprum_part& all) { return cuprum_post(all.has ? all.value : cuprum_identity(all.value)); }
