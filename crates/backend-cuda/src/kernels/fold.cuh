// Folds: how reductions and scans combine elements. Requires type_limits.cuh.
//
// A fold has an accumulator type `Acc`, its `identity()`, and `operator()`, which combines two accumulators. `from_element(value, i)`
// makes an accumulator of element i of a row. `to_result<Out>(acc)` converts an accumulator to the result.

namespace cuprum {

template <class A> struct Sum {
    using Acc = A;
    // The identity is +0.0, because in NumPy a sum of negative zeros is positive.
    __device__ static Acc identity() { return cast<A>(i64(0)); }
    template <class T> __device__ static Acc from_element(T value, i64) { return cast<A>(value); }
    __device__ Acc operator()(const Acc& a, const Acc& b) const { return op::add(a, b); }
    template <class Out> __device__ static Out to_result(const Acc& acc) { return cast<Out>(acc); }
};

template <class A> struct Product {
    using Acc = A;
    __device__ static Acc identity() { return cast<A>(i64(1)); }
    template <class T> __device__ static Acc from_element(T value, i64) { return cast<A>(value); }
    __device__ Acc operator()(const Acc& a, const Acc& b) const { return op::multiply(a, b); }
    template <class Out> __device__ static Out to_result(const Acc& acc) { return cast<Out>(acc); }
};

// The fold of `min`. The result is NaN if any element is NaN, as in NumPy.
template <class A> struct Minimum {
    using Acc = A;
    __device__ static Acc identity() { return highest<A>(); }
    template <class T> __device__ static Acc from_element(T value, i64) { return cast<A>(value); }
    __device__ Acc operator()(const Acc& a, const Acc& b) const { return op::minimum(a, b); }
    template <class Out> __device__ static Out to_result(const Acc& acc) { return cast<Out>(acc); }
};

// The fold of `max`. The result is NaN if any element is NaN, as in NumPy.
template <class A> struct Maximum {
    using Acc = A;
    __device__ static Acc identity() { return lowest<A>(); }
    template <class T> __device__ static Acc from_element(T value, i64) { return cast<A>(value); }
    __device__ Acc operator()(const Acc& a, const Acc& b) const { return op::maximum(a, b); }
    template <class Out> __device__ static Out to_result(const Acc& acc) { return cast<Out>(acc); }
};

// The folds of `any` and `all` over bool elements, with 32-bit accumulators. Every fold has a template parameter; these two do not use
// theirs.
template <class> struct Any {
    using Acc = u32;
    __device__ static Acc identity() { return 0; }
    __device__ static Acc from_element(bool value, i64) { return value; }
    __device__ Acc operator()(Acc a, Acc b) const { return a | b; }
    template <class Out> __device__ static Out to_result(Acc acc) { return acc != 0; }
};

template <class> struct All {
    using Acc = u32;
    __device__ static Acc identity() { return 1; }
    __device__ static Acc from_element(bool value, i64) { return value; }
    __device__ Acc operator()(Acc a, Acc b) const { return a & b; }
    template <class Out> __device__ static Out to_result(Acc acc) { return acc != 0; }
};

template <class> struct Count {
    using Acc = i64;
    __device__ static Acc identity() { return 0; }
    __device__ static Acc from_element(bool value, i64) { return value; }
    __device__ Acc operator()(Acc a, Acc b) const { return a + b; }
    template <class Out> __device__ static Out to_result(Acc acc) { return acc; }
};

// Accumulator of argmin and argmax: a value and its index. A negative index means that there is no element yet.
template <class T> struct ValueAndIndex {
    T value;
    i64 at;
};

// The fold of argmin (if `Smallest`) and argmax (otherwise). NaN takes precedence over numbers. Then the smaller or larger value wins, then
// the smaller index. The result therefore does not depend on the order in which elements are combined.
template <class T, bool Smallest> struct ArgExtreme {
    using Acc = ValueAndIndex<T>;
    __device__ static Acc identity() { return Acc{cast<T>(0.0), -1}; }
    __device__ static Acc from_element(T value, i64 i) { return Acc{value, i}; }
    __device__ static bool takes_precedence(const T& a, const T& b) {
        if (op::isnan(a) || op::isnan(b)) return op::isnan(a) && !op::isnan(b);
        return Smallest ? op::less(a, b) : op::less(b, a);
    }
    __device__ Acc operator()(const Acc& a, const Acc& b) const {
        if (b.at < 0) return a;
        if (a.at < 0 || takes_precedence(b.value, a.value)) return b;
        return takes_precedence(a.value, b.value) || a.at < b.at ? a : b;
    }
    // Returns whether `value`, whose index is larger than the index in `acc`, replaces the value in `acc`. An equal value does not replace
    // it.
    __device__ static bool replaces_extreme(const T& value, const Acc& acc) {
        const bool worse = Smallest ? op::less_equal(acc.value, value) : op::less_equal(value, acc.value);
        return acc.at < 0 || (!worse && !op::isnan(acc.value));
    }
    template <class Out> __device__ static Out to_result(const Acc& acc) { return acc.at; }
};
template <class T> using ArgMin = ArgExtreme<T, true>;
template <class T> using ArgMax = ArgExtreme<T, false>;

// Whether `fold_elements` uses `Fold::replaces_extreme` to compare each element with the total, in ascending order of index, instead of
// combining accumulators. True for argmin and argmax: of equal values the first wins, so the indices need no comparison.
template <class Fold> constexpr bool folds_in_order = false;
template <class T, bool Smallest> constexpr bool folds_in_order<ArgExtreme<T, Smallest>> = true;

// Folds `values`, the elements of one thread with the ascending row indices `at`, into `total`.
template <class Fold, class T, class Index, int Count>
__device__ inline void fold_elements(typename Fold::Acc& total, const T (&values)[Count], const Index (&at)[Count]) {
    if constexpr (folds_in_order<Fold>) {
        #pragma unroll
        for (int k = 0; k < Count; k++) {
            if (Fold::replaces_extreme(values[k], total)) total = Fold::from_element(values[k], at[k]);
        }
    } else {
        typename Fold::Acc part = Fold::from_element(values[0], at[0]);
        #pragma unroll
        for (int k = 1; k < Count; k++) part = Fold()(part, Fold::from_element(values[k], at[k]));
        total = Fold()(total, part);
    }
}

}  // namespace cuprum
