// Products of sparse rows with each other. Look-ups, not arithmetic, take the time: one build serves all processors.
#pragma once

#include <algorithm>
#include <cstdint>

namespace separatrix {

template <class Index>
struct SparsePart {
    const double* data;
    const Index* indices;  // rising within a row
    const Index* indptr;
};

// out[t][k − lo] += Σ_j x_tj x_kj for k from lo to hi: some rows times others, the columns of all being at hand.
// One row of products at a time stays in the caches.
template <class Index>
void add_gram_rows(const SparsePart<Index>& rows, const SparsePart<Index>& columns, std::int64_t count, Index lo,
                   Index hi, double* out) {
    for (std::int64_t t = 0; t < count; ++t, out += hi - lo) {
        for (std::int64_t p = rows.indptr[t]; p < rows.indptr[t + 1]; ++p) {
            const double x = rows.data[p];
            const Index *k = columns.indices + columns.indptr[rows.indices[p]],
                        *end = columns.indices + columns.indptr[rows.indices[p] + 1];
            k = std::lower_bound(k, end, lo);
            const double* value = columns.data + (k - columns.indices);
            for (; k < end && *k < hi; ++k, ++value) out[*k - lo] += x * *value;
        }
    }
}

}  // namespace separatrix
