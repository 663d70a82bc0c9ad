// Binds an epoch of coordinate descent, `run_dense` and `run_csr` of a state: it visits the positions begin to
// end of the order; gathered rows as in visits.hpp. Python keeps the arrays alive and has checked them.
#pragma once

#include "arrays.hpp"
#include "bindings.hpp"
#include "visits.hpp"

namespace separatrix {

// `loop(rows, state, visits)` for rows of values of type T.
template <class T, class State, class Loop>
void bind_epochs(nb::class_<State>& c, Loop loop) {
    using Order = Array<const std::int64_t>;
    using Data = Array<const T>;
    const auto visit = [loop](State& state, const auto& rows, const Order& order, std::int64_t begin,
                              std::int64_t end, std::int64_t gathered) {
        const Visits visits{order.data(), begin, end, end - begin, gathered};
        nb::gil_scoped_release release;
        loop(rows, state, visits);
    };
    c.def("run_dense", [=](State& state, const Matrix<const T>& X,
                           const Order& order, std::int64_t begin, std::int64_t end, std::int64_t gathered) {
        const DenseArray<T> rows{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
        visit(state, rows, order, begin, end, gathered);
    });
    const auto def_csr = [&]<class Index>(Index) {
        using Places = Array<const Index>;
        c.def("run_csr", [=](State& state, const Data& data, const Places& indices, const Places& indptr,
                             std::int64_t d, const Order& order, std::int64_t begin, std::int64_t end,
                             std::int64_t gathered) {
            const CsrArray<T, Index> rows{data.data(), indices.data(), indptr.data(), d};
            visit(state, rows, order, begin, end, gathered);
        });
    };
    def_csr(std::int32_t{});
    def_csr(std::int64_t{});
}

}  // namespace separatrix
