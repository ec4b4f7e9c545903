// Decoupled look-back between the tiles of a radix pass: the number of elements with a digit in all tiles before a tile. Requires
// count_look_back.cuh and sort_radix.cuh.

namespace cuprum {

// Returns the number of elements with digit threadIdx.x in all tiles before `tile`. `states` has the look-back states of all tiles, RADIX
// words per tile.
template <class Word> __device__ inline Word digit_count_in_earlier_tiles(const Word* states, i64 tile) {
    using S = LookBackState<Word>;
    constexpr int TILES_PER_READ = 4;
    Word before = 0;
    for (i64 nearest = tile - 1;; nearest -= TILES_PER_READ) {
        Word words[TILES_PER_READ];
        #pragma unroll
        for (int k = 0; k < TILES_PER_READ; k++) {
            words[k] = nearest - k >= 0 ? load_relaxed(states + (nearest - k) * RADIX + threadIdx.x) : S::PREFIX;
        }
        #pragma unroll
        for (int k = 0; k < TILES_PER_READ; k++) {
            while (S::is_empty(words[k])) words[k] = load_relaxed(states + (nearest - k) * RADIX + threadIdx.x);
            before += words[k] & S::COUNT;
            if (S::is_prefix(words[k])) return before;
        }
    }
}

}  // namespace cuprum
