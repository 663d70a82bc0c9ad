// The table of compiled loops; one per instruction set, chosen once when the module is loaded.
#pragma once

#include <cstdint>

#include "perceptron_state.hpp"
#include "visits.hpp"

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


template <class T>
struct Kernels {
    std::int64_t (*perceptron_dense)(const DenseArray<T>&, PerceptronState<T>&, const Visits&);
    std::int64_t (*perceptron_csr32)(const CsrArray<T, std::int32_t>&, PerceptronState<T>&, const Visits&);
    std::int64_t (*perceptron_csr64)(const CsrArray<T, std::int64_t>&, PerceptronState<T>&, const Visits&);
};

struct KernelSet {
    const char* name;
    Kernels<float> single_precision;
    Kernels<double> double_precision;
};

namespace baseline { const KernelSet& kernels(); }
namespace v3 { const KernelSet& kernels(); }
namespace v4 { const KernelSet& kernels(); }

// The best set this processor runs, or the named one; null if it cannot run the named one.
const KernelSet* find_kernels(const char* name_or_null);

}  // namespace separatrix
