// Compiled once per instruction set like isa.cpp, but with products and sums fused where the
// processor can: the results are certified, not compared bit by bit.
#include "squared_link.hpp"
#include "sweep.hpp"
#include "sweep_kernels.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class Data, class T>
double dense(const Data* X, std::int64_t rows, std::int64_t stride, std::int64_t features, const SweepState& state) {
    if (state.codes) return sweep_dense<Data, T, LogisticLink<T>>(X, rows, stride, features, state);
    return sweep_dense<Data, T, SoftmaxLink<T>>(X, rows, stride, features, state);
}

template <class Data>
double squares(const Data* X, std::int64_t rows, std::int64_t stride, std::int64_t features, const SquaresState& state) {
    return sweep_dense<Data, double, SquaredLink>(X, rows, stride, features, state);
}

template <class Data, class Index>
double csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t rows, const SweepState& state) {
    if (state.codes) return sweep_csr<Data, Index, LogisticLink<double>>(data, indices, indptr, rows, state);
    return sweep_csr<Data, Index, SoftmaxLink<double>>(data, indices, indptr, rows, state);
}

template <class Data>
constexpr SweepKernels<Data> all_sweeps = {
    dense<Data, float>,       dense<Data, double>,      squares<Data>,      column_sums<Data>,
    csr<Data, std::int32_t>,  csr<Data, std::int64_t>,
    gram_csr<Data, std::int32_t>, gram_csr<Data, std::int64_t>,
};

const SweepSet table = {all_sweeps<float>, all_sweeps<double>};

}  // namespace

const SweepSet& sweeps() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
