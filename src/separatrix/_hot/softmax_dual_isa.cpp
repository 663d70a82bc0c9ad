// The softmax dual's loops, compiled once per instruction set like isa.cpp, but with fused
// multiply-adds: their iterates may differ in the last bits, their certified answers agree.
#include "kernels.hpp"
#include "softmax_dual.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class S, class Array>
void pass(const Array& array, SoftmaxDualState<S>& state, const Visits& visits) {
    const auto rows = rows_of(array);
    SoftmaxDualPass<S, decltype(rows)>(rows, state).run(visits);
}

template <class S, class Array>
void scores(const Array& array, const S* weights, std::int64_t padded, std::int64_t count, S* out) {
    all_scores<S>(rows_of(array), weights, padded, count, out);
}

template <class S, class Array>
void transposed(const Array& array, const S* R, std::int64_t padded, std::int64_t count, std::int64_t begin,
                std::int64_t end, S* weights) {
    add_transposed<S>(rows_of(array), R, padded, count, begin, end, weights);
}

template <class S, class Array>
constexpr typename SoftmaxDualLoops<S>::template Over<Array> row_kernels = {pass<S, Array>, scores<S, Array>,
                                                                              transposed<S, Array>};

template <class T, class S>
constexpr SoftmaxDualKernels<T, S> kernels_of = {
    row_kernels<S, DenseArray<T>>,
    row_kernels<S, CsrArray<T, std::int32_t>>,
    row_kernels<S, CsrArray<T, std::int64_t>>,
};

const SoftmaxDualSet table = {{kernels_of<float, float>, kernels_of<float, double>, kernels_of<double, float>,
                               kernels_of<double, double>},
                              softmax_rows};

}  // namespace

const SoftmaxDualSet& softmax_dual_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
