// Kernels between strings: what Python gives, and the loops that are compiled once per instruction set.
#pragma once

#include <cstdint>

#include "tables.hpp"

namespace separatrix {

// Strings as code points, one after the other; string i is codes[starts[i]] … codes[starts[i + 1] - 1].
struct Strings {
    const std::int32_t* codes;
    const std::int64_t* starts;

    const std::int32_t* text(std::int64_t i) const { return codes + starts[i]; }
    std::int64_t length(std::int64_t i) const { return starts[i + 1] - starts[i]; }
};

// Pairs of strings, by number.
struct StringPairs {
    const std::int64_t* first;
    const std::int64_t* second;
    std::int64_t count;
};

// out[k] = Σ_u w(|u|) · (occurrences of u in string first[k]) · (those in second[k]) over all substrings u, where
// weights[l] = w(1) + … + w(l) and characters are below `alphabet`. Pairs with equal seconds should be neighbours:
// each time it changes, an automaton is built of it.
void substring_kernel(const Strings& strings, const StringPairs& pairs, std::int64_t alphabet, const double* weights,
                      double* out);

// The loops of the subsequence kernel on pairs that lie side by side in a register.
struct SubsequenceSet {
    // Bytes of scratch memory for strings of these lengths.
    std::int64_t (*scratch)(std::int64_t rows, std::int64_t columns, std::int64_t order);
    // out[k] = Σ λ^(gaps in both strings) over all pairs of equal subsequences of `order` characters.
    void (*run)(const Strings& strings, const StringPairs& pairs, std::int64_t order, double decay, void* scratch,
                double* out);
};

SEPARATRIX_TABLE(SubsequenceSet, subsequence_set)

}  // namespace separatrix
