// Compiled once per instruction set like isa.cpp, but with products and sums fused where the
// processor can: the results are certified, not compared bit by bit.
#include "scores_state.hpp"
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

template <class Data, class T>
double squares(const Data* X, std::int64_t rows, std::int64_t stride, std::int64_t features, const SquaresState& state) {
    return sweep_dense<Data, T, SquaredLink<T>>(X, rows, stride, features, state);
}

// Not a link at all: keeps the scores.
template <class T>
struct NoLink {
    const ScoresState<T>& state;

    double apply(std::int64_t first, std::int64_t rows, const T* scores) const {
        T* to = state.scores + first * state.columns;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t k = 0; k < state.columns; ++k) *to++ = scores[k * state.stride + i];
        return 0;
    }
};

template <class T>
void scores(const T* X, std::int64_t rows, std::int64_t stride, std::int64_t features, const ScoresState<T>& state) {
    sweep_dense<T, T, NoLink<T>>(X, rows, stride, features, state);
}

template <class Data, class Index>
double csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t rows, const SweepState& state) {
    if (state.codes) return sweep_csr<Data, Index, LogisticLink<double>>(data, indices, indptr, rows, state);
    return sweep_csr<Data, Index, SoftmaxLink<double>>(data, indices, indptr, rows, state);
}

template <class Data>
constexpr SweepKernels<Data> all_sweeps = {
    dense<Data, float>,       dense<Data, double>,
    squares<Data, float>,     squares<Data, double>,    column_sums<Data>,
    csr<Data, std::int32_t>,  csr<Data, std::int64_t>,
    gram_csr<Data, std::int32_t>, gram_csr<Data, std::int64_t>,
};

const SweepSet table = {all_sweeps<float>, all_sweeps<double>};
const ScoresSet scores_table = {scores<float>, scores<double>};

}  // namespace

const SweepSet& sweeps() { return table; }
const ScoresSet& dense_scores() { return scores_table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
