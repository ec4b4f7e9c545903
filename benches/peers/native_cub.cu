// CUB without bindings, compiled by nvcc, for the suite `gpu` of `workloads`. Prints a JSON line per workload, as gpu.py does.
//
//     nvcc -O3 -std=c++17 -arch=native --extended-lambda -o native_cub native_cub.cu
//     ./native_cub [--only sum,sort] [--repeat 20] [--list]
//
// Needs CCCL 3.0 or later. Outputs are overwritten before the calls and checked on the host afterwards. A wrong result prints an `error`
// and no time. `gpu_us` is the median device time between two events, after 5 warm-up calls. Scratch memory is allocated outside the
// measured time, which favours these results.
#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

using i64 = std::int64_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
template <class T> using Host = std::vector<T>;

constexpr i64 N = i64(1) << 27;
constexpr i64 SIDE = 11584;
constexpr u64 SEED = 0x9e3779b97f4a7c15;

[[noreturn]] void fail(const char* what, const char* why, int line) {
    std::fprintf(stderr, "native_cub.cu:%d: %s: %s\n", line, what, why);
    std::exit(2);
}
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t status = (call);                                                      \
        if (status != cudaSuccess) fail(#call, cudaGetErrorString(status), __LINE__);           \
    } while (0)

template <class T> class DeviceArray {
public:
    explicit DeviceArray(i64 count) : count_(count) { CHECK(cudaMalloc(&at_, bytes())); }
    ~DeviceArray() { cudaFree(at_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* get() const { return at_; }
    void poison() const { CHECK(cudaMemset(at_, 0xa5, bytes())); }
    void from(const Host<T>& host) const { CHECK(cudaMemcpy(at_, host.data(), bytes(), cudaMemcpyHostToDevice)); }
    Host<T> host() const { return host(count_); }
    Host<T> host(i64 count) const {
        Host<T> out(count);
        CHECK(cudaMemcpy(out.data(), at_, sizeof(T) * count, cudaMemcpyDeviceToHost));
        return out;
    }

private:
    size_t bytes() const { return sizeof(T) * static_cast<size_t>(count_); }
    T* at_ = nullptr;
    i64 count_;
};

__host__ __device__ u64 mix(u64 x) {  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

__global__ void fill_uniform(float* to, i64 count) {
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = (mix(SEED * (i + 1)) >> 40) * 0x1p-24f;
}

// Uniform numbers in [0, 1).
struct Uniform : DeviceArray<float> {
    explicit Uniform(i64 count) : DeviceArray(count) {
        fill_uniform<<<1024, 256>>>(get(), count);
        CHECK(cudaGetLastError());
    }
};

struct Options {
    std::vector<std::string> only;
    int repeat = 20;
    bool list = false;
};

struct Timing {
    double median, min;
};

// Times `call(scratch, size)`, a device-wide algorithm of CUB.
template <class Call> Timing timed(const Options& options, const Call& call) {
    size_t size = 0;
    CHECK(call(nullptr, size));
    const DeviceArray<char> scratch(static_cast<i64>(std::max<size_t>(size, 1)));
    cudaEvent_t before, after;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    std::vector<double> times;
    for (int n = -5; n < options.repeat; n++) {
        CHECK(cudaEventRecord(before));
        CHECK(call(scratch.get(), size));
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, before, after));
        if (n >= 0) times.push_back(ms * 1e3);
    }
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times.front()};
}

// Result of a workload: time, bytes that limit it (0: none), and a description of a wrong result (empty: correct).
struct Result {
    Timing us;
    double bytes;
    std::string error;
};

std::string near(double got, double want, double tolerance, const char* what) {
    if (std::abs(got - want) <= tolerance * std::abs(want)) return {};
    char text[160];
    std::snprintf(text, sizeof text, "%s is %.9g, expected %.9g", what, got, want);
    return text;
}

// Checks the sums of `segments` ranges of `values`. Returns a description of the first wrong sum.
std::string check_sums(const Host<float>& got, const Host<float>& values, i64 segments, const std::function<i64(i64)>& begin) {
    for (i64 s = 0; s < segments; s++) {
        const double want = std::accumulate(values.begin() + begin(s), values.begin() + begin(s + 1), 0.0);
        const std::string wrong = near(got[s], want, 1e-5, "a sum");
        if (!wrong.empty()) return wrong;
    }
    return {};
}

Result sum(const Options& o, i64 count) {
    const Uniform in(count);
    const DeviceArray<float> out(1);
    out.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) { return cub::DeviceReduce::Sum(scratch, size, in.get(), out.get(), count); });
    return {us, 4.0 * count, check_sums(out.host(), in.host(), 1, [=](i64 s) { return s * count; })};
}

Result sum_rows(const Options& o, i64 rows, i64 columns) {
    const Uniform in(rows * columns);
    const DeviceArray<float> out(rows);
    out.poison();
    const auto begin = thrust::make_transform_iterator(thrust::counting_iterator<i64>(0), [=] __host__ __device__(i64 row) { return row * columns; });
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceSegmentedReduce::Sum(scratch, size, in.get(), out.get(), rows, begin, begin + 1);
    });
    return {us, 4.0 * rows * columns, check_sums(out.host(), in.host(), rows, [=](i64 row) { return row * columns; })};
}

// A million segments: 16 of 4 Mi values, which are half of all, the others of 64 values.
Result segment_sum(const Options& o) {
    constexpr i64 SEGMENTS = 1 << 20, SHORT = 64, LONG = 1 << 22, EVERY = SEGMENTS / 16;
    Host<i64> offsets(SEGMENTS + 1);
    for (i64 i = 0; i <= SEGMENTS; i++) offsets[i] = SHORT * i + (LONG - SHORT) * ((i + EVERY - 1) / EVERY);
    const DeviceArray<i64> device_offsets(SEGMENTS + 1);
    device_offsets.from(offsets);
    const Uniform in(offsets.back());
    const DeviceArray<float> out(SEGMENTS);
    out.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceSegmentedReduce::Sum(scratch, size, in.get(), out.get(), SEGMENTS, device_offsets.get(), device_offsets.get() + 1);
    });
    return {us, 4.0 * offsets.back(), check_sums(out.host(), in.host(), SEGMENTS, [&](i64 s) { return offsets[s]; })};
}

Result argmax(const Options& o) {
    const Uniform in(N);
    const DeviceArray<float> value(1);
    const DeviceArray<i64> index(1);
    index.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceReduce::ArgMax(scratch, size, in.get(), value.get(), index.get(), N);
    });
    const Host<float> values = in.host();
    const i64 want = std::max_element(values.begin(), values.end()) - values.begin();
    return {us, 4.0 * N, index.host()[0] == want ? "" : "not the index of the first maximum"};
}

Result cumsum(const Options& o) {
    const Uniform in(N);
    const DeviceArray<float> out(N);
    out.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) { return cub::DeviceScan::InclusiveSum(scratch, size, in.get(), out.get(), N); });
    const Host<float> values = in.host(), got = out.host();
    std::string wrong;
    double want = 0;
    for (i64 i = 0; i < N && wrong.empty(); i++) {
        want += values[i];
        wrong = near(got[i], want, 1e-4, "a running sum");
    }
    return {us, 8.0 * N, wrong};
}

Result sort(const Options& o) {
    constexpr i64 COUNT = N / 2;
    const Uniform in(COUNT);
    const DeviceArray<float> out(COUNT);
    out.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) { return cub::DeviceRadixSort::SortKeys(scratch, size, in.get(), out.get(), COUNT); });
    const Host<float> values = in.host(), got = out.host();
    const auto sum_of_bits = [](const Host<float>& floats) {
        return std::accumulate(floats.begin(), floats.end(), u64(0), [](u64 sum, float x) {
            u32 bits;
            std::memcpy(&bits, &x, sizeof bits);
            return sum + mix(bits);
        });
    };
    const bool right = std::is_sorted(got.begin(), got.end()) && sum_of_bits(got) == sum_of_bits(values);
    return {us, 0, right ? "" : "not sorted"};
}

// Sorts pairs of keys and 32-bit indices. The indices are initialised outside the measured time.
Result argsort(const Options& o) {
    constexpr i64 COUNT = N / 2;
    const Uniform in(COUNT);
    const DeviceArray<float> keys(COUNT);
    const DeviceArray<u32> indices(COUNT), sorted(COUNT);
    Host<u32> numbers(COUNT);
    std::iota(numbers.begin(), numbers.end(), 0u);
    indices.from(numbers);
    sorted.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceRadixSort::SortPairs(scratch, size, in.get(), keys.get(), indices.get(), sorted.get(), COUNT);
    });
    const Host<float> values = in.host();
    const Host<u32> got = sorted.host();
    bool right = true;
    for (i64 i = 0; i < COUNT && right; i++) {
        right = got[i] < COUNT;
        if (right && i > 0) {  // indices that rise among equal keys form a permutation
            const float before = values[got[i - 1]], here = values[got[i]];
            right = before < here || (before == here && got[i - 1] < got[i]);
        }
    }
    return {us, 0, right ? "" : "not a stable argsort"};
}

Result histogram(const Options& o) {
    constexpr int BINS = 256;
    const Uniform in(N);
    const DeviceArray<int> out(BINS);
    out.poison();
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceHistogram::HistogramEven(scratch, size, in.get(), out.get(), BINS + 1, 0.0f, 1.0f, static_cast<int>(N));
    });
    Host<int> want(BINS);
    for (const float x : in.host()) want[static_cast<int>(x * BINS)]++;
    return {us, 4.0 * N, out.host() == want ? "" : "wrong counts"};
}

// Equivalent of `a[a > 0.5]`.
Result mask(const Options& o) {
    const Uniform in(N);
    const DeviceArray<float> out(N);
    const DeviceArray<i64> count(1);
    out.poison();
    const auto wanted = [] __host__ __device__(float x) { return x > 0.5f; };
    const Timing us = timed(o, [&](void* scratch, size_t& size) {
        return cub::DeviceSelect::If(scratch, size, in.get(), out.get(), count.get(), N, wanted);
    });
    const Host<float> values = in.host();
    Host<float> want;
    std::copy_if(values.begin(), values.end(), std::back_inserter(want), wanted);
    const bool right = count.host()[0] == static_cast<i64>(want.size()) && out.host(static_cast<i64>(want.size())) == want;
    return {us, 0, right ? "" : "wrong elements"};
}

struct Workload {
    const char* name;
    std::function<Result(const Options&)> run;
};

const Workload WORKLOADS[] = {
    {"sum_256cube_f32", [](const Options& o) { return sum(o, 1 << 24); }},
    {"sum_f32_128M", [](const Options& o) { return sum(o, N); }},
    {"sum_axis1_f32_11k", [](const Options& o) { return sum_rows(o, SIDE, SIDE); }},
    {"sum_axis1_thin_4Mx32_f32", [](const Options& o) { return sum_rows(o, 1 << 22, 32); }},
    {"segment_sum_skewed_f32_128M", segment_sum},
    {"argmax_f32_128M", argmax},
    {"cumsum_f32_128M", cumsum},
    {"histogram_f32_128M_256", histogram},
    {"sort_f32_64M", sort},
    {"argsort_f32_64M", argsort},
    {"mask_f32_128M", mask},
};

Options options(int count, char** args) {
    Options o;
    for (int n = 1; n < count; n++) {
        const std::string name = args[n];
        const char* value = n + 1 < count ? args[n + 1] : "";
        if (name == "--list") {
            o.list = true;
        } else if (name == "--repeat" && std::atoi(value) > 0) {
            o.repeat = std::atoi(value);
            n++;
        } else if (name == "--only") {
            const std::string parts = value;
            for (size_t begin = 0, end; begin <= parts.size(); begin = end + 1) {
                end = std::min(parts.find(',', begin), parts.size());
                o.only.push_back(parts.substr(begin, end - begin));
            }
            n++;
        } else {
            fail(args[n], "usage: native_cub [--only NAME,...] [--repeat N] [--list]", __LINE__);
        }
    }
    return o;
}

void show(const char* name, const Result& line) {
    if (!line.error.empty()) {
        std::printf("{\"peer\": \"native\", \"workload\": \"%s\", \"error\": \"%s\"}\n", name, line.error.c_str());
        return;
    }
    std::printf("{\"peer\": \"native\", \"workload\": \"%s\", \"gpu_us\": %.2f, \"min_us\": %.2f", name, line.us.median, line.us.min);
    if (line.bytes > 0) std::printf(", \"GB_s\": %.2f", line.bytes / line.us.median / 1e3);
    std::printf("}\n");
}

}  // namespace

int main(int count, char** args) {
    const Options o = options(count, args);
    for (const Workload& workload : WORKLOADS) {
        const auto matches = [&](const std::string& part) { return std::string(workload.name).find(part) != std::string::npos; };
        if (!o.only.empty() && std::none_of(o.only.begin(), o.only.end(), matches)) continue;
        if (o.list) {
            std::puts(workload.name);
            continue;
        }
        show(workload.name, workload.run(o));
        std::fflush(stdout);
    }
}
