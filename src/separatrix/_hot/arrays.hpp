// Samples in memory, as the bindings hand them over.
#pragma once

#include <cstdint>

namespace separatrix {

template <class T>
struct DenseArray {
    const T* data;
    std::int64_t row_stride, n_features;
};

template <class T, class Index>
struct CsrArray {
    const T* data;
    const Index* indices;
    const Index* indptr;
    std::int64_t n_features;
};

}  // namespace separatrix
