// Hashes of rows by content: equal rows, dense or sparse, get equal hashes wherever they stand.
#pragma once

#include <cstdint>
#include <cstring>

#include "random.hpp"

namespace separatrix {

// One entry's share; the shares of a row are summed, so that their order does not matter, and zeros
// have none, so that dense and sparse rows agree.
inline std::uint64_t hash_entry(double value, std::int64_t column) {
    if (value == 0.0) return 0;
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    std::uint64_t state = bits ^ (static_cast<std::uint64_t>(column) * 0xd6e8feb86659fd93ULL);
    return next_random(state);
}

inline void hash_rows(const double* X, std::int64_t n_rows, std::int64_t n_columns, std::uint64_t* out) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
        std::uint64_t sum = 0;
        for (std::int64_t j = 0; j < n_columns; ++j) sum += hash_entry(X[i * n_columns + j], j);
        out[i] = sum;
    }
}

inline void hash_rows(const double* data, const std::int64_t* indices, const std::int64_t* indptr,
                      std::int64_t n_rows, std::uint64_t* out) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
        std::uint64_t sum = 0;
        for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) sum += hash_entry(data[p], indices[p]);
        out[i] = sum;
    }
}

}  // namespace separatrix
