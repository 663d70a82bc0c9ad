// Binds an epoch of coordinate descent, `run_dense` and `run_csr` of a state: it visits the positions begin to
// end of the order; gathered rows as in visits.hpp. Python keeps the arrays alive and has checked them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"
#include "visits.hpp"

namespace separatrix {

// `loop(rows, state, visits)` for rows of values of type T.
template <class T, class State, class Loop>
void bind_epochs(nanobind::class_<State>& c, Loop loop) {
    namespace nb = nanobind;
    using Order = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
    using Data = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
    const auto visit = [loop](State& state, const auto& rows, const Order& order, std::int64_t begin,
                              std::int64_t end, std::int64_t gathered) {
        const Visits visits{order.data(), begin, end, end - begin, gathered};
        nb::gil_scoped_release release;
        loop(rows, state, visits);
    };
    c.def("run_dense", [=](State& state, const nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>& X,
                           const Order& order, std::int64_t begin, std::int64_t end, std::int64_t gathered) {
        const DenseArray<T> rows{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
        visit(state, rows, order, begin, end, gathered);
    });
    const auto def_csr = [&]<class Index>(Index) {
        using Places = nb::ndarray<const Index, nb::c_contig, nb::device::cpu>;
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
