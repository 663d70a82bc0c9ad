// The table of compiled loops; one per instruction set, chosen once when the module is loaded.
#pragma once

#include <cstdint>

#include "perceptron_state.hpp"
#include "sgd_state.hpp"
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


// The loops over one kind of rows.
template <class T, class Rows>
struct RowKernels {
    std::int64_t (*perceptron)(const Rows&, PerceptronState<T>&, JudgeState<T>* judge, const Visits&);
    void (*judge)(const Rows&, JudgeState<T>&, const Visits&);
    void (*sgd)(const Rows&, SgdState<T>&, const Visits&);
};

template <class T>
struct Kernels {
    RowKernels<T, DenseArray<T>> dense;
    RowKernels<T, CsrArray<T, std::int32_t>> csr32;
    RowKernels<T, CsrArray<T, std::int64_t>> csr64;

    const auto& of(const DenseArray<T>&) const { return dense; }
    const auto& of(const CsrArray<T, std::int32_t>&) const { return csr32; }
    const auto& of(const CsrArray<T, std::int64_t>&) const { return csr64; }
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
