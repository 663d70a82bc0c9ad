// What the bindings of all row solvers share: how arrays from Python become rows and visits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "bindings.hpp"
#include "kernels.hpp"

namespace separatrix {

template <class T>
const Kernels<T>& kernels() {
    if constexpr (std::is_same_v<T, float>) return chosen_kernels().single_precision;
    else return chosen_kernels().double_precision;
}

template <class T>
using Strided = nb::ndarray<T, nb::device::cpu>;
using Indices = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
DenseArray<T> dense_rows(const Matrix<const T>& X) {
    return {X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
}

template <class T, class Index>
CsrArray<T, Index> csr_rows(const Strided<const T>& data, const Strided<const Index>& indices,
                            const Strided<const Index>& indptr, std::int64_t n_features) {
    return {data.data(), indices.data(), indptr.data(), n_features};
}

// state.run_dense(X, order, begin, end, budget, gathered, judge): body(state, judge or null, rows, visits); also
// run_csr(data, indices, indptr, n_features, order, …). The Python solver holds the arrays that the states point into
// for as long as it holds the states.
template <class T, class State, class Body>
void def_run(nb::class_<State>& c, Body body) {
    using Judge = JudgeState<T>;
    c.def("run_dense",
          [body](State& state, const Matrix<const T>& X, const Order& order,
                 std::int64_t begin, std::int64_t end, std::int64_t budget, std::int64_t gathered,
                 Judge* judge) {
              const auto rows = dense_rows(X);
              const Visits visits{order.data(), begin, end, budget, gathered};
              nb::gil_scoped_release release;
              return body(state, judge, rows, visits);
          },
          "X"_a, "order"_a, "begin"_a, "end"_a, "budget"_a, "gathered"_a, "judge"_a.none() = nb::none());
    const auto def_csr = [&c, body]<class Index>(Index) {
        c.def("run_csr",
              [body](State& state, const Strided<const T>& data, const Strided<const Index>& indices,
                     const Strided<const Index>& indptr, std::int64_t n_features, const Order& order,
                     std::int64_t begin, std::int64_t end, std::int64_t budget, std::int64_t gathered,
                     Judge* judge) {
                  const auto rows = csr_rows<T, Index>(data, indices, indptr, n_features);
                  const Visits visits{order.data(), begin, end, budget, gathered};
                  nb::gil_scoped_release release;
                  return body(state, judge, rows, visits);
              },
              "data"_a, "indices"_a, "indptr"_a, "n_features"_a, "order"_a, "begin"_a, "end"_a, "budget"_a,
              "gathered"_a, "judge"_a.none() = nb::none());
    };
    def_csr(std::int32_t{});
    def_csr(std::int64_t{});
}

}  // namespace separatrix
