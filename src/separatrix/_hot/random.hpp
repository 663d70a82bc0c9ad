// Random orders of visit: SplitMix64 (Steele, Lea and Flood, 2014) with Lemire's bounded numbers, so
// that an order depends on the seed alone.
#pragma once

#include <cstdint>

namespace separatrix {

inline std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Fisher–Yates. Bounds below 2^32 take one 32-bit product; larger ones the remainder of 64 bits:
// in both the bias is below count / 2^32, invisible in any order that fits a machine.
inline void shuffle(std::int64_t* order, std::int64_t count, std::uint64_t& state) {
    for (std::int64_t last = count - 1; last > 0; --last) {
        const std::uint64_t bound = static_cast<std::uint64_t>(last) + 1;
        const std::uint64_t random = next_random(state);
        const std::uint64_t pick =
            bound <= 0xffffffffULL ? ((random >> 32) * bound) >> 32 : random % bound;
        const std::int64_t held = order[last];
        order[last] = order[pick];
        order[pick] = held;
    }
}

// The permutation that scikit-learn's stochastic gradient descent draws from a seed, applied to an order: it goes
// through the places upwards with Marsaglia's 32-bit xorshift (2003), of which 31 bits count. Applied to the order of
// the last pass it gives that of the next.
inline void permute(std::int64_t* order, std::int64_t count, std::uint32_t seed) {
    std::uint32_t bits = seed ? seed : 1;
    for (std::int64_t at = 0; at + 1 < count; ++at) {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        const std::int64_t pick = at + static_cast<std::int64_t>(bits & 0x7fffffffU) % (count - at);
        const std::int64_t held = order[at];
        order[at] = order[pick];
        order[pick] = held;
    }
}

// A random order for data larger than the caches, where single rows from all over the memory would
// make every visit wait for it: blocks of neighbours in random order, `streams` of them visited in
// turns. Each is read in the order of memory, which processors foresee for several streams at once,
// and neighbours, which often are alike, do not follow each other.
inline void shuffle_blocks(const std::int64_t* samples, std::int64_t count, std::int64_t* order,
                           std::int64_t* block_ids, std::int64_t block, std::int64_t streams,
                           std::uint64_t& state) {
    const std::int64_t blocks = (count + block - 1) / block;
    for (std::int64_t b = 0; b < blocks; ++b) block_ids[b] = b;
    shuffle(block_ids, blocks, state);
    std::int64_t at = 0;
    if (streams == 1) {  // whole blocks, one after the other
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::int64_t first = block_ids[b] * block, last = first + block < count ? first + block : count;
            for (std::int64_t i = first; i < last; ++i) order[at++] = samples[i];
        }
        return;
    }
    for (std::int64_t first = 0; first < blocks; first += streams)
        for (std::int64_t t = 0; t < block; ++t)
            for (std::int64_t b = first; b < blocks && b < first + streams; ++b) {
                const std::int64_t i = block_ids[b] * block + t;
                if (i < count) order[at++] = samples[i];
            }
}

}  // namespace separatrix
