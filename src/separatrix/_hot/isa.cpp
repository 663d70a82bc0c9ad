// Compiled once per instruction set, with SEPARATRIX_ISA naming the namespace. Only code from the
// unnamed namespaces of rows.hpp and perceptron.hpp is used here: an inline function shared with
// another translation unit could otherwise be linked in the wider instruction set for all.
#include "kernels.hpp"
#include "perceptron.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class Rows, class T = typename Rows::value_type>
std::int64_t perceptron(const Rows& rows, PerceptronState<T>& state, const Visits& visits) {
    if (state.scale) return PerceptronPass<true, Rows>(rows, state).run(visits);
    return PerceptronPass<false, Rows>(rows, state).run(visits);
}

template <class T>
std::int64_t dense(const DenseArray<T>& a, PerceptronState<T>& state, const Visits& visits) {
    return perceptron(DenseRows<T>{a.data, a.row_stride, a.n_features}, state, visits);
}

template <class T, class Index>
std::int64_t csr(const CsrArray<T, Index>& a, PerceptronState<T>& state, const Visits& visits) {
    return perceptron(CsrRows<T, Index>{a.data, a.indices, a.indptr, a.n_features}, state, visits);
}

#define SEPARATRIX_TEXT(x) #x
#define SEPARATRIX_NAME(x) SEPARATRIX_TEXT(x)

const KernelSet table = {
    SEPARATRIX_NAME(SEPARATRIX_ISA),
    {dense<float>, csr<float, std::int32_t>, csr<float, std::int64_t>},
    {dense<double>, csr<double, std::int32_t>, csr<double, std::int64_t>},
};

}  // namespace

const KernelSet& kernels() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
