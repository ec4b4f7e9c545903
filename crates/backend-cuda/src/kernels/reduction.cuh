// What reduction kernels from strings share; after the prelude. The host defines `cuprum_total`, `cuprum_reduce`, `cuprum_identity` and
// `cuprum_post`, out of the user's code.

// A contribution; without `has`, none.
struct cuprum_part {
    cuprum_total value;
    bool has;
    __device__ void add(const cuprum_part& other) {
        if (!other.has) return;
        value = has ? cuprum_reduce(value, other.value) : other.value;
        has = true;
    }
};
static_assert(sizeof(cuprum_part) == 2 * sizeof(cuprum_total), "as the host counts");

__device__ inline auto cuprum_result(const cuprum_part& all) { return cuprum_post(all.has ? all.value : cuprum_identity(all.value)); }

// Which elements a thread takes: every `lanes`-th from `begin` on, up to `end`, of a chunk of its row.
struct cuprum_place {
    unsigned long long row, chunk, begin, end;
    unsigned lane, step;  // and how far the threads of a row lie apart
    __device__ cuprum_place(unsigned long long rows, unsigned long long columns, unsigned long long length, unsigned long long chunks,
                            unsigned lanes, bool across) {
        const unsigned together = blockDim.x / lanes;
        lane = across ? threadIdx.x / together : threadIdx.x % lanes;
        step = across ? together : 1;
        row = blockIdx.x / chunks * together + (across ? threadIdx.x % together : threadIdx.x / lanes);
        chunk = blockIdx.x % chunks;
        begin = chunk * length + lane;
        end = columns < (chunk + 1) * length ? columns : (chunk + 1) * length;
    }
};

// Combines the parts of `lanes` threads that lie `step` apart; lane 0 has the result. All threads call.
__device__ inline void cuprum_together(cuprum_part& mine, unsigned lane, unsigned lanes, unsigned step) {
    // Raw bytes, because complex numbers have a constructor and shared memory may not.
    alignas(16) __shared__ unsigned char bytes[256 * sizeof(cuprum_part)];
    cuprum_part* all = reinterpret_cast<cuprum_part*>(bytes);
    all[threadIdx.x] = mine;
    for (unsigned distance = lanes / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (lane < distance) all[threadIdx.x].add(all[threadIdx.x + distance * step]);
    }
    mine = all[threadIdx.x];
}
