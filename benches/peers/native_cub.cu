// What CUB does by itself, compiled by nvcc, in the suite `gpu` of `workloads`: one JSON line a workload, as gpu.py prints them.
//
//     nvcc -O3 -std=c++17 -arch=native --extended-lambda -o native_cub native_cub.cu
//     ./native_cub [--only sum,sort] [--repeat 20] [--list]
//
// CCCL 3.0 or later. Outputs are poisoned before the calls and checked on the host after them: a result that is wrong is a line with an
// `error` and no time. `gpu_us` is the median device time between two events; 5 calls before do not count. Working memory is allocated
// outside the timing, which favours this peer.
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

[[noreturn]] void stop(const char* what, const char* why, int line) {
    std::fprintf(stderr, "native_cub.cu:%d: %s: %s\n", line, what, why);
    std::exit(2);
}
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t status = (call);                                                      \
        if (status != cudaSuccess) stop(#call, cudaGetErrorString(status), __LINE__);           \
    } while (0)

template <class T> class Memory {
public:
    explicit Memory(i64 count) : count_(count) { CHECK(cudaMalloc(&at_, bytes())); }
    ~Memory() { cudaFree(at_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

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

__host__ __device__ u64 mixed(u64 x) {  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

__global__ void fill_uniform(float* to, i64 count) {
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = (mixed(SEED * (i + 1)) >> 40) * 0x1p-24f;
}

// Numbers in [0, 1).
struct Uniform : Memory<float> {
    explicit Uniform(i64 count) : Memory(count) {
        fill_uniform<<<1024, 256>>>(get(), count);
        CHECK(cudaGetLastError());
    }
};

struct Options {
    std::vector<std::string> only;
    int repeat = 20;
    bool list = false;
};

struct Measured {
    double median, least;
};

// Times `call(working memory, its size)`, a device-wide algorithm of CUB.
template <class Call> Measured timed(const Options& options, const Call& call) {
    size_t size = 0;
    CHECK(call(nullptr, size));
    const Memory<char> working(static_cast<i64>(std::max<size_t>(size, 1)));
    cudaEvent_t before, after;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    std::vector<double> times;
    for (int n = -5; n < options.repeat; n++) {
        CHECK(cudaEventRecord(before));
        CHECK(call(working.get(), size));
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

// What a workload gives: a time, the bytes that limit it (0: none), and what is wrong with its result (empty: nothing).
struct Line {
    Measured us;
    double bytes;
    std::string error;
};

std::string near(double got, double want, double tolerance, const char* what) {
    if (std::abs(got - want) <= tolerance * std::abs(want)) return {};
    char text[160];
    std::snprintf(text, sizeof text, "%s is %.9g instead of %.9g", what, got, want);
    return text;
}

// The first complaint about sums of `segments` ranges of `values`.
std::string check_sums(const Host<float>& got, const Host<float>& values, i64 segments, const std::function<i64(i64)>& begin) {
    for (i64 s = 0; s < segments; s++) {
        const double want = std::accumulate(values.begin() + begin(s), values.begin() + begin(s + 1), 0.0);
        const std::string wrong = near(got[s], want, 1e-5, "a sum");
        if (!wrong.empty()) return wrong;
    }
    return {};
}

Line sum(const Options& o, i64 count) {
    const Uniform in(count);
    const Memory<float> out(1);
    out.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) { return cub::DeviceReduce::Sum(work, size, in.get(), out.get(), count); });
    return {us, 4.0 * count, check_sums(out.host(), in.host(), 1, [=](i64 s) { return s * count; })};
}

Line sum_rows(const Options& o, i64 rows, i64 columns) {
    const Uniform in(rows * columns);
    const Memory<float> out(rows);
    out.poison();
    const auto begin = thrust::make_transform_iterator(thrust::counting_iterator<i64>(0), [=] __host__ __device__(i64 row) { return row * columns; });
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceSegmentedReduce::Sum(work, size, in.get(), out.get(), rows, begin, begin + 1);
    });
    return {us, 4.0 * rows * columns, check_sums(out.host(), in.host(), rows, [=](i64 row) { return row * columns; })};
}

// Segments of 64 values, 16 of them of 4 Mi: as many values in these as in all the others.
Line segment_sum(const Options& o) {
    constexpr i64 SEGMENTS = 1 << 20, SHORT = 64, LONG = 1 << 22, EVERY = SEGMENTS / 16;
    Host<i64> offsets(SEGMENTS + 1);
    for (i64 i = 0; i <= SEGMENTS; i++) offsets[i] = SHORT * i + (LONG - SHORT) * ((i + EVERY - 1) / EVERY);
    const Memory<i64> places(SEGMENTS + 1);
    places.from(offsets);
    const Uniform in(offsets.back());
    const Memory<float> out(SEGMENTS);
    out.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceSegmentedReduce::Sum(work, size, in.get(), out.get(), SEGMENTS, places.get(), places.get() + 1);
    });
    return {us, 4.0 * offsets.back(), check_sums(out.host(), in.host(), SEGMENTS, [&](i64 s) { return offsets[s]; })};
}

Line argmax(const Options& o) {
    const Uniform in(N);
    const Memory<float> value(1);
    const Memory<i64> place(1);
    place.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceReduce::ArgMax(work, size, in.get(), value.get(), place.get(), N);
    });
    const Host<float> values = in.host();
    const i64 want = std::max_element(values.begin(), values.end()) - values.begin();
    return {us, 4.0 * N, place.host()[0] == want ? "" : "another place than that of the first largest"};
}

Line cumsum(const Options& o) {
    const Uniform in(N);
    const Memory<float> out(N);
    out.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) { return cub::DeviceScan::InclusiveSum(work, size, in.get(), out.get(), N); });
    const Host<float> values = in.host(), got = out.host();
    std::string wrong;
    double want = 0;
    for (i64 i = 0; i < N && wrong.empty(); i++) {
        want += values[i];
        wrong = near(got[i], want, 1e-4, "a running sum");
    }
    return {us, 8.0 * N, wrong};
}

Line sort(const Options& o) {
    constexpr i64 COUNT = N / 2;
    const Uniform in(COUNT);
    const Memory<float> out(COUNT);
    out.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) { return cub::DeviceRadixSort::SortKeys(work, size, in.get(), out.get(), COUNT); });
    const Host<float> values = in.host(), got = out.host();
    const auto sum_of_bits = [](const Host<float>& floats) {
        return std::accumulate(floats.begin(), floats.end(), u64(0), [](u64 sum, float x) {
            u32 bits;
            std::memcpy(&bits, &x, sizeof bits);
            return sum + mixed(bits);
        });
    };
    const bool right = std::is_sorted(got.begin(), got.end()) && sum_of_bits(got) == sum_of_bits(values);
    return {us, 0, right ? "" : "not the elements in order"};
}

// Keys and their places, of 32 bits, which stand in memory before; the numbers are not repeated.
Line argsort(const Options& o) {
    constexpr i64 COUNT = N / 2;
    const Uniform in(COUNT);
    const Memory<float> keys(COUNT);
    const Memory<u32> places(COUNT), sorted(COUNT);
    Host<u32> numbers(COUNT);
    std::iota(numbers.begin(), numbers.end(), 0u);
    places.from(numbers);
    sorted.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceRadixSort::SortPairs(work, size, in.get(), keys.get(), places.get(), sorted.get(), COUNT);
    });
    const Host<float> values = in.host();
    const Host<u32> got = sorted.host();
    bool right = true;
    for (i64 i = 0; i < COUNT && right; i++) {
        right = got[i] < COUNT;
        if (right && i > 0) {  // places that rise among equal ones are a permutation
            const float before = values[got[i - 1]], here = values[got[i]];
            right = before < here || (before == here && got[i - 1] < got[i]);
        }
    }
    return {us, 0, right ? "" : "not the places in order"};
}

Line histogram(const Options& o) {
    constexpr int BINS = 256;
    const Uniform in(N);
    const Memory<int> out(BINS);
    out.poison();
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceHistogram::HistogramEven(work, size, in.get(), out.get(), BINS + 1, 0.0f, 1.0f, static_cast<int>(N));
    });
    Host<int> want(BINS);
    for (const float x : in.host()) want[static_cast<int>(x * BINS)]++;
    return {us, 4.0 * N, out.host() == want ? "" : "other counts"};
}

// As in `a[a > 0.5]`.
Line mask(const Options& o) {
    const Uniform in(N);
    const Memory<float> out(N);
    const Memory<i64> count(1);
    out.poison();
    const auto wanted = [] __host__ __device__(float x) { return x > 0.5f; };
    const Measured us = timed(o, [&](void* work, size_t& size) {
        return cub::DeviceSelect::If(work, size, in.get(), out.get(), count.get(), N, wanted);
    });
    const Host<float> values = in.host();
    Host<float> want;
    std::copy_if(values.begin(), values.end(), std::back_inserter(want), wanted);
    const bool right = count.host()[0] == static_cast<i64>(want.size()) && out.host(static_cast<i64>(want.size())) == want;
    return {us, 0, right ? "" : "other elements"};
}

struct Workload {
    const char* name;
    std::function<Line(const Options&)> run;
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
            stop(args[n], "usage: native_cub [--only NAME,...] [--repeat N] [--list]", __LINE__);
        }
    }
    return o;
}

void show(const char* name, const Line& line) {
    if (!line.error.empty()) {
        std::printf("{\"peer\": \"native\", \"workload\": \"%s\", \"error\": \"%s\"}\n", name, line.error.c_str());
        return;
    }
    std::printf("{\"peer\": \"native\", \"workload\": \"%s\", \"gpu_us\": %.2f, \"min_us\": %.2f", name, line.us.median, line.us.least);
    if (line.bytes > 0) std::printf(", \"GB_s\": %.2f", line.bytes / line.us.median / 1e3);
    std::printf("}\n");
}

}  // namespace

int main(int count, char** args) {
    const Options o = options(count, args);
    for (const Workload& workload : WORKLOADS) {
        const auto asked_for = [&](const std::string& part) { return std::string(workload.name).find(part) != std::string::npos; };
        if (!o.only.empty() && std::none_of(o.only.begin(), o.only.end(), asked_for)) continue;
        if (o.list) {
            std::puts(workload.name);
            continue;
        }
        show(workload.name, workload.run(o));
        std::fflush(stdout);
    }
}
