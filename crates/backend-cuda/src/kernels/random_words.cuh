// The counter-based random generator Philox, for random.cu and random_samplers.cu.

using namespace cuprum;

// A Philox block: four random 32-bit words.
struct RandomWords {
    u32 w[4];
    __device__ u64 pair(int n) const { return w[2 * n] | static_cast<u64>(w[2 * n + 1]) << 32; }
};

// Returns the Philox block for a counter and a key, computed by Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). The four words of the counter are: the low half of `counter`, the high half of `counter`, `attempt`, and
// `stream`.
__device__ inline RandomWords philox(u64 counter, u32 attempt, u32 stream, u64 key) {
    u32 c[4] = {static_cast<u32>(counter), static_cast<u32>(counter >> 32), attempt, stream};
    u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
    #pragma unroll
    for (int round = 0; round < 10; round++) {
        const u32 low0 = 0xD2511F53u * c[0], high0 = __umulhi(0xD2511F53u, c[0]);
        const u32 low1 = 0xCD9E8D57u * c[2], high1 = __umulhi(0xCD9E8D57u, c[2]);
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c[0], c[1], c[2], c[3]}};
}
