// Random numbers by rejection sampling. Each attempt for an element reads its own Philox block. T is the output's element type, SAMPLER the
// struct of the distribution.
//
// Every function performs the operations of the CPU backend's modules `reproducible_math` and `samplers` in the same order, so that results
// have equal bits on every device. `Real` rounds each operation, so none becomes a fused multiply-add. The CPU modules state the sources of
// the algorithms and the ranges of the arguments.

// A float64 number. Each operation is rounded, and none is fused with another.
struct Real {
    f64 value;
    Real() = default;
    __device__ Real(f64 x) : value(x) {}
};
__device__ inline Real operator+(Real a, Real b) { return __dadd_rn(a.value, b.value); }
__device__ inline Real operator-(Real a, Real b) { return __dsub_rn(a.value, b.value); }
__device__ inline Real operator*(Real a, Real b) { return __dmul_rn(a.value, b.value); }
__device__ inline Real operator/(Real a, Real b) { return __ddiv_rn(a.value, b.value); }
__device__ inline Real operator-(Real a) { return -a.value; }
__device__ inline bool operator<(Real a, Real b) { return a.value < b.value; }
__device__ inline bool operator<=(Real a, Real b) { return a.value <= b.value; }
__device__ inline bool operator>(Real a, Real b) { return a.value > b.value; }
__device__ inline bool operator>=(Real a, Real b) { return a.value >= b.value; }
__device__ inline bool operator==(Real a, Real b) { return a.value == b.value; }
__device__ inline Real square_root(Real x) { return __dsqrt_rn(x.value); }
__device__ inline Real round_down(Real x) { return ::floor(x.value); }
__device__ inline Real round_up(Real x) { return ::ceil(x.value); }
__device__ inline Real absolute(Real x) { return ::fabs(x.value); }
__device__ inline Real lesser(Real a, Real b) { return ::fmin(a.value, b.value); }
__device__ inline Real greater(Real a, Real b) { return ::fmax(a.value, b.value); }

constexpr u64 NAN_BITS = 0x7ff8000000000000ull, INFINITY_BITS = 0x7ff0000000000000ull;
constexpr u64 SQRT_HALF_BITS = 0x3fe6a09e667f3bcdull, ONE_BITS = 0x3ff0000000000000ull, MANTISSA_MASK = 0x000fffffffffffffull;
constexpr f64 LN_2_HIGH = 0.6931471805592082, LN_2_LOW = 7.371002565167799e-13;
constexpr f64 MAX_DISCRETE_RESULT = 9223372036854774784.0;
constexpr u32 MAX_ATTEMPTS = 1 << 12;

__device__ inline Real from_bits(u64 bits) { return __longlong_as_double(static_cast<i64>(bits)); }
__device__ inline u64 bits_of(Real x) { return static_cast<u64>(__double_as_longlong(x.value)); }

__device__ inline Real reproducible_log(Real x) {
    if (!(x >= 0.0)) return from_bits(NAN_BITS);
    if (x == 0.0) return -from_bits(INFINITY_BITS);
    if (x == from_bits(INFINITY_BITS)) return x;
    const bool is_subnormal = x < 2.2250738585072014e-308;
    const Real normal = is_subnormal ? x * 18014398509481984.0 : x;
    const u64 shifted = bits_of(normal) + (ONE_BITS - SQRT_HALF_BITS);
    const Real exponent = static_cast<f64>(static_cast<i64>(shifted >> 52) - (is_subnormal ? 1077 : 1023));
    const Real m = from_bits((shifted & MANTISSA_MASK) + SQRT_HALF_BITS);
    const Real s = (m - 1.0) / (m + 1.0);
    const Real z = s * s;
    Real series = 0.047619047619047616;
    series = series * z + 0.05263157894736842;
    series = series * z + 0.058823529411764705;
    series = series * z + 0.06666666666666667;
    series = series * z + 0.07692307692307693;
    series = series * z + 0.09090909090909091;
    series = series * z + 0.1111111111111111;
    series = series * z + 0.14285714285714285;
    series = series * z + 0.2;
    series = series * z + 0.3333333333333333;
    const Real twice = s + s;
    return exponent * LN_2_HIGH + (twice + (twice * (z * series) + exponent * LN_2_LOW));
}

// Returns 2^n for n from -1022 to 1023.
__device__ inline Real power_of_two(i64 n) { return from_bits(static_cast<u64>(n + 1023) << 52); }

__device__ inline Real reproducible_exp(Real x) {
    if (!(x == x)) return x;
    if (x > 709.79) return from_bits(INFINITY_BITS);
    if (x < -745.2) return 0.0;
    const Real turns = round_down(x * 1.4426950408889634 + 0.5);
    const Real r = (x - turns * LN_2_HIGH) - turns * LN_2_LOW;
    Real series = 1.6059043836821613e-10;
    series = series * r + 2.08767569878681e-09;
    series = series * r + 2.505210838544172e-08;
    series = series * r + 2.755731922398589e-07;
    series = series * r + 2.7557319223985893e-06;
    series = series * r + 2.48015873015873e-05;
    series = series * r + 0.0001984126984126984;
    series = series * r + 0.001388888888888889;
    series = series * r + 0.008333333333333333;
    series = series * r + 0.041666666666666664;
    series = series * r + 0.16666666666666666;
    series = series * r + 0.5;
    series = series * r + 1.0;
    series = series * r + 1.0;
    const i64 whole = static_cast<i64>(turns.value), half = whole >> 1;
    return series * power_of_two(half) * power_of_two(whole - half);
}

__device__ inline Real reproducible_log1p(Real x) {
    const Real sum = Real(1.0) + x;
    return sum == 1.0 ? x : reproducible_log(sum) * (x / (sum - 1.0));
}

__device__ inline Real expm1_of_negative(Real x) {
    const Real power = reproducible_exp(x);
    if (power == 1.0) return x;
    const Real difference = power - 1.0;
    return difference == -1.0 ? Real(-1.0) : difference * (x / reproducible_log(power));
}

__device__ inline Real stirling_correction(Real k) {
    if (k < 10.0) {
        constexpr f64 first[10] = {0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093, 0.016644691189821193,
                                   0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733, 0.00833056343336287};
        return first[static_cast<int>(greater(k, 0.0).value)];
    }
    const Real next = k + 1.0;
    const Real square = next * next;
    return (Real(0.08333333333333333) - (Real(0.002777777777777778) - Real(0.0007936507936507937) / square) / square) / next;
}

__device__ inline Real log_factorial(Real k) {
    if (k < 2.0) return 0.0;
    const Real next = k + 1.0;
    return (k + 0.5) * reproducible_log(next) - next + 0.9189385332046728 + stirling_correction(k);
}

struct Uniforms {
    Real u, v, w;
};

// The random words for one element of the output: one Philox block per attempt of the rejection sampling.
struct RejectionAttempts {
    u64 key, block;
    u32 stream, next = 0;

    __device__ RandomWords words() { return philox(block, next++, stream, key); }
    __device__ bool is_exhausted() const { return next >= MAX_ATTEMPTS; }

    __device__ Uniforms uniform_pair() {
        const RandomWords words = this->words();
        return {static_cast<f64>(words.pair(0) >> 11) * 0x1p-53, static_cast<f64>(words.pair(1) >> 11) * 0x1p-53, 0.0};
    }

    __device__ Uniforms uniform_triple() {
        const RandomWords words = this->words();
        const u64 last = words.w[3];
        return {static_cast<f64>(words.w[0] | (last & 1023) << 32) * 0x1p-42, static_cast<f64>(words.w[1] | (last >> 10 & 1023) << 32) * 0x1p-42,
                static_cast<f64>(words.w[2] | (last >> 20) << 32) * 0x1p-44};
    }

    // Returns a standard normal number in the field `u`, and an independent uniform number in the field `w`.
    __device__ Uniforms normal_and_uniform() {
        for (;;) {
            const Uniforms at = uniform_triple();
            const Real x = at.u + at.u - 1.0, y = at.v + at.v - 1.0;
            const Real square = x * x + y * y;
            if ((square < 1.0 && square > 0.0) || is_exhausted())
                return {x * square_root(Real(-2.0) * reproducible_log(square) / square), 0.0, at.w};
        }
    }
};

struct Gamma {
    Real shape, d, c;
    __device__ Gamma(Real shape, Real, Real) : shape(shape) {
        d = (shape < 1.0 ? shape + 1.0 : shape) - 0.3333333333333333;
        c = Real(1.0) / square_root(Real(9.0) * d);
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        if (shape == 0.0) return 0.0;
        Real gamma;
        for (;;) {
            const Uniforms at = attempts.normal_and_uniform();
            const Real root = Real(1.0) + c * at.u;
            if (root > 0.0) {
                const Real cube = root * root * root, square = at.u * at.u;
                if (at.w < Real(1.0) - Real(0.0331) * (square * square)
                    || reproducible_log(at.w) < Real(0.5) * square + d * (Real(1.0) - cube + reproducible_log(cube))) {
                    gamma = d * cube;
                    break;
                }
            }
            if (attempts.is_exhausted()) return from_bits(NAN_BITS);
        }
        return shape < 1.0 ? gamma * reproducible_exp(reproducible_log(Real(1.0) - attempts.uniform_pair().u) / shape) : gamma;
    }
};

struct Poisson {
    Real mean, power, a, b, log_inverse_alpha, v_r;
    __device__ Poisson(Real mean, Real, Real) : mean(mean) {
        const bool is_small = mean < 10.0;
        b = Real(0.931) + Real(2.53) * square_root(mean);
        power = is_small ? reproducible_exp(-mean) : reproducible_log(mean);
        a = Real(-0.059) + Real(0.02483) * b;
        log_inverse_alpha = is_small ? Real(0.0) : reproducible_log(Real(1.1239) + Real(1.1328) / (b - 3.4));
        v_r = Real(0.9277) - Real(3.6224) / (b - 2.0);
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        if (mean < 10.0) {
            const Real uniform = attempts.uniform_pair().u;
            Real k = 0.0, term = power, sum = power;
            while (uniform >= sum) {
                k = k + 1.0;
                term = term * mean / k;
                if (sum + term == sum) break;
                sum = sum + term;
            }
            return k;
        }
        for (;;) {
            const Uniforms at = attempts.uniform_pair();
            const Real u = at.u - 0.5, v = at.v;
            const Real distance = Real(0.5) - absolute(u);
            const Real k = round_down((Real(2.0) * a / distance + b) * u + mean + 0.43);
            if ((distance >= 0.07 && v <= v_r) || attempts.is_exhausted()) return k;
            if (k < 0.0 || (distance < 0.013 && v > distance)) continue;
            const Real left = reproducible_log(v) + log_inverse_alpha - reproducible_log(a / (distance * distance) + b);
            if (left <= k * power - mean - log_factorial(k)) return k;
        }
    }
};

// With more trials than this number, the acceptance bound is computed by `binomial_log_weight`, in which large terms cancel analytically.
constexpr f64 MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND = 1099511627776.0;

// Returns the logarithm of the probability of `k` successes in `n` trials, up to a constant. The terms of the size of `n` cancel
// analytically.
__device__ inline Real binomial_log_weight(Real n, Real p, Real k) {
    const Real successes = n * p, failures = n * (Real(1.0) - p);
    const Real distance = k - successes, rest = n - k;
    const Real terms = (k + 0.5) * reproducible_log1p((distance + 1.0) / successes) + (rest + 0.5) * reproducible_log1p((Real(1.0) - distance) / failures);
    return -terms - stirling_correction(k) - stirling_correction(rest);
}

struct Binomial {
    Real n, p, odds, none, a, b, c, v_r, alpha, mode, bound;
    bool is_swapped, is_small;
    __device__ Binomial(Real n, Real given, Real) : n(n) {
        is_swapped = given > 0.5;
        p = is_swapped ? Real(1.0) - given : given;
        const Real q = Real(1.0) - p;
        odds = p / (Real(1.0) - p);
        is_small = n * p < 10.0;
        const Real deviation = square_root(n * p * q);
        b = Real(1.15) + Real(2.53) * deviation;
        mode = round_down((n + 1.0) * p);
        none = is_small ? reproducible_exp(n * reproducible_log1p(-p)) : Real(0.0);
        a = Real(-0.0873) + Real(0.0248) * b + Real(0.01) * p;
        c = n * p + 0.5;
        v_r = Real(0.92) - Real(4.2) / b;
        alpha = (Real(2.83) + Real(5.1) / b) * deviation;
        bound = 0.0;
        if (!is_small && n > MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND) bound = -binomial_log_weight(n, p, mode);
        else if (!is_small)
            bound = (mode + 0.5) * reproducible_log((mode + 1.0) / (odds * (n - mode + 1.0))) + stirling_correction(mode) + stirling_correction(n - mode);
    }
    __device__ Real draw_with_small_mean(RejectionAttempts& attempts) const {
        if (p == 0.0) return 0.0;
        const Real uniform = attempts.uniform_pair().u;
        Real k = 0.0, term = none, sum = none;
        while (uniform >= sum && k < n) {
            term = term * (n - k) / (k + 1.0) * odds;
            if (sum + term == sum) break;
            k = k + 1.0;
            sum = sum + term;
        }
        return k;
    }
    __device__ Real draw_with_large_mean(RejectionAttempts& attempts) const {
        for (;;) {
            const Uniforms at = attempts.uniform_pair();
            const Real u = at.u - 0.5, v = at.v;
            const Real distance = Real(0.5) - absolute(u);
            const Real k = round_down((Real(2.0) * a / distance + b) * u + c);
            if ((distance >= 0.07 && v <= v_r) || attempts.is_exhausted()) return k;
            if (k < 0.0 || k > n) continue;
            const Real left = reproducible_log(v * alpha / (a / (distance * distance) + b));
            if (n > MAX_TRIALS_FOR_DIRECT_ACCEPTANCE_BOUND) {
                if (left <= bound + binomial_log_weight(n, p, k)) return k;
                continue;
            }
            const Real rest = n - k + 1.0;
            const Real ratios = (n + 1.0) * reproducible_log((n - mode + 1.0) / rest) + (k + 0.5) * reproducible_log(odds * rest / (k + 1.0));
            if (left <= bound + ratios - stirling_correction(k) - stirling_correction(n - k)) return k;
        }
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        const Real successes = is_small ? draw_with_small_mean(attempts) : draw_with_large_mean(attempts);
        return is_swapped ? n - successes : successes;
    }
};

struct Hypergeometric {
    Real good, bad, sample, drawn, less, more, center, width, limit, log_weight;
    __device__ Hypergeometric(Real good, Real bad, Real sample) : good(good), bad(bad), sample(sample) {
        const Real total = good + bad;
        drawn = lesser(sample, total - sample);
        less = lesser(good, bad);
        more = greater(good, bad);
        center = width = limit = log_weight = 0.0;
        if (!(drawn < 10.0)) {
            const Real p = less / total, q = more / total;
            center = drawn * p + 0.5;
            const Real deviation = square_root((total - drawn) * drawn * p * q / (total - 1.0) + 0.5);
            const Real mode = round_down((drawn + 1.0) * (less + 1.0) / (total + 2.0));
            limit = lesser(lesser(drawn, less) + 1.0, round_down(center + Real(16.0) * deviation));
            log_weight = log_factorial(mode) + log_factorial(less - mode) + log_factorial(drawn - mode) + log_factorial(more - drawn + mode);
            width = Real(1.7155277699214135) * deviation + 0.8989161620588988;
        }
    }
    __device__ Real draw_one_by_one(RejectionAttempts& attempts) const {
        Real left = good, total = good + bad, taken = 0.0;
        while (taken < drawn) {
            const Real uniform = attempts.uniform_pair().u;
            if (uniform * total < left) left = left - 1.0;
            total = total - 1.0;
            taken = taken + 1.0;
        }
        return drawn < sample ? left : good - left;
    }
    __device__ Real draw_by_ratio_of_uniforms(RejectionAttempts& attempts) const {
        Real candidate = 0.0;
        for (;;) {
            const Uniforms at = attempts.uniform_pair();
            const Real u = at.u, x = center + width * (at.v - 0.5) / u;
            if (attempts.is_exhausted()) break;
            if (!(x >= 0.0 && x < limit)) continue;
            const Real k = round_down(x);
            const Real weight = log_weight
                - (log_factorial(k) + log_factorial(less - k) + log_factorial(drawn - k) + log_factorial(more - drawn + k));
            if (u * (Real(4.0) - u) - 3.0 <= weight || (u * (u - weight) < 1.0 && Real(2.0) * reproducible_log(u) <= weight)) {
                candidate = k;
                break;
            }
        }
        const Real good_drawn = good > bad ? drawn - candidate : candidate;
        return drawn < sample ? good - good_drawn : good_drawn;
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        return drawn < 10.0 ? draw_one_by_one(attempts) : draw_by_ratio_of_uniforms(attempts);
    }
};

struct Geometric {
    Real log_failure;
    __device__ Geometric(Real p, Real, Real) : log_failure(reproducible_log1p(-p)) {}
    __device__ Real draw(RejectionAttempts& attempts) const {
        const Real uniform = attempts.uniform_pair().u;
        return lesser(greater(round_up(reproducible_log(Real(1.0) - uniform) / log_failure), 1.0), MAX_DISCRETE_RESULT);
    }
};

struct LogSeries {
    Real p, log_failure;
    __device__ LogSeries(Real p, Real, Real) : p(p), log_failure(reproducible_log1p(-p)) {}
    __device__ Real draw(RejectionAttempts& attempts) const {
        const Uniforms at = attempts.uniform_pair();
        const Real v = greater(at.v, 5.551115123125783e-17);
        if (v >= p) return 1.0;
        const Real q = -expm1_of_negative(log_failure * (Real(1.0) - at.u));
        if (v <= q * q) return lesser(greater(round_down(Real(1.0) + reproducible_log(v) / reproducible_log(q)), 1.0), MAX_DISCRETE_RESULT);
        return v >= q ? 1.0 : 2.0;
    }
};

struct Zipf {
    Real exponent, power, least;
    __device__ Zipf(Real a, Real, Real) {
        exponent = a - 1.0;
        power = reproducible_exp(exponent * 0.6931471805599453);
        least = reproducible_exp(-exponent * reproducible_log(MAX_DISCRETE_RESULT));
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        if (exponent > 1000.0) return 1.0;
        for (;;) {
            const Uniforms at = attempts.uniform_pair();
            const Real u = at.u * least + (Real(1.0) - at.u);
            const Real x = round_down(reproducible_exp(-reproducible_log(u) / exponent));
            if (attempts.is_exhausted()) return 1.0;
            if (!(x >= 1.0 && x <= MAX_DISCRETE_RESULT)) continue;
            const Real t = reproducible_exp(exponent * reproducible_log1p(Real(1.0) / x));
            if (at.v * x * (t - 1.0) / (power - 1.0) <= t / power) return x;
        }
    }
};

struct TangentOfHalfVonMisesAngle {
    Real kappa, r, ratio;
    __device__ TangentOfHalfVonMisesAngle(Real kappa, Real, Real) : kappa(kappa) {
        const Real tau = Real(1.0) + square_root(Real(1.0) + Real(4.0) * (kappa * kappa));
        const Real rho = kappa < 1e-5 ? Real(0.5) * kappa : (tau - square_root(tau + tau)) / (kappa + kappa);
        const Real above = Real(1.0) + rho, below = Real(1.0) - rho;
        r = (Real(1.0) + rho * rho) / (rho + rho);
        ratio = below * below / (above * above);
    }
    __device__ Real draw(RejectionAttempts& attempts) const {
        if (kappa > 1e6) return Real(0.5) * attempts.normal_and_uniform().u / square_root(kappa);
        for (;;) {
            const Uniforms at = attempts.uniform_triple();
            const Real x = at.u + at.u - 1.0, y = at.v + at.v - 1.0;
            const Real x2 = x * x, y2 = y * y;
            const Real square = x2 + y2;
            if (attempts.is_exhausted()) return from_bits(NAN_BITS);
            if (!(square < 1.0 && square > 0.0)) continue;
            const Real tangent = square_root(ratio * (y2 / x2));
            const Real result = y < 0.0 ? -tangent : tangent;
            if (kappa < 1e-8) return result;
            const Real z = (x2 - y2) / square;
            const Real difference = kappa * (r - (Real(1.0) + r * z) / (r + z));
            if (difference * (Real(2.0) - difference) > at.w || reproducible_log(difference / at.w) + 1.0 - difference >= 0.0) return result;
        }
    }
};

// Writes random numbers of the distribution SAMPLER. Each parameter is an array of `count` elements, or a single number if its array is
// null.
extern "C" __global__ void __launch_bounds__(256)
random_samples(T* out, u64 count, u64 key, u64 first_block, u32 stream, const f64* first, const f64* second, const f64* third, f64 a, f64 b, f64 c) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const SAMPLER sampler(first ? first[i] : a, second ? second[i] : b, third ? third[i] : c);
        RejectionAttempts attempts = {key, first_block + i, stream};
        out[i] = cast<T>(sampler.draw(attempts).value);
    }
}
