// Binds the Crammer-Singer loop to Python. Python has checked every argument before it comes here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings.hpp"
#include "crammer_singer_state.hpp"
#include "kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace separatrix;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Order = Array<const std::int64_t>;

const CrammerSingerSet& kernel_set() { return SEPARATRIX_CHOSEN(crammer_singer_set); }

// Rows visited: positions begin to end of the order; gathered rows as in visits.hpp.
template <class S, class T>
void bind_rows(nb::class_<CrammerSingerState<S>>& c) {
    using State = CrammerSingerState<S>;
    const auto visit = [](State& state, const auto& rows, const Order& order, std::int64_t begin,
                          std::int64_t end, std::int64_t gathered) {
        const Visits visits{order.data(), begin, end, end - begin, gathered};
        nb::gil_scoped_release release;
        kernel_set().of<T, S>().of(rows)(rows, state, visits);
    };
    c.def("run_dense", [=](State& state, const nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>& X,
                           const Order& order, std::int64_t begin, std::int64_t end, std::int64_t gathered) {
        const DenseArray<T> rows{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
        visit(state, rows, order, begin, end, gathered);
    });
    const auto def_csr = [&]<class Index>(Index) {
        c.def("run_csr", [=](State& state, const Array<const T>& data, const Array<const Index>& indices,
                             const Array<const Index>& indptr, std::int64_t d, const Order& order,
                             std::int64_t begin, std::int64_t end, std::int64_t gathered) {
            const CsrArray<T, Index> rows{data.data(), indices.data(), indptr.data(), d};
            visit(state, rows, order, begin, end, gathered);
        });
    };
    def_csr(std::int32_t{});
    def_csr(std::int64_t{});
}

template <class S>
void bind_state(nb::module_& m, const char* name) {
    using State = CrammerSingerState<S>;
    nb::class_<State> c(m, name);
    c.def(
        "__init__",
        [](State* self, const Array<const std::int32_t>& classes, const Array<const double>& cost,
           const Array<const double>& norms, std::int64_t columns, double constant, const Array<S>& weights,
           const Array<S>& mu, const Array<std::uint8_t>& asleep, const Array<S>& scratch,
           const Array<double>& tally) {
            new (self) State{
                .classes = classes.data(),
                .cost = cost.data(),
                .norms = norms.data(),
                .columns = columns,
                .padded = static_cast<std::int64_t>(weights.shape(1)),
                .constant = constant,
                .weights = weights.data(),
                .mu = mu.data(),
                .asleep = asleep.data(),
                .scratch = scratch.data(),
                .tally = tally.data(),
                .negligible = 0.0,
            };
        },
        nb::kw_only(), "classes"_a, "cost"_a, "norms"_a, "columns"_a, "constant"_a, "weights"_a, "mu"_a, "asleep"_a,
        "scratch"_a, "tally"_a);
    c.def_rw("negligible", &State::negligible);
    bind_rows<S, float>(c);
    bind_rows<S, double>(c);
}

}  // namespace

void separatrix::bind_crammer_singer(nb::module_& m) {
    bind_state<float>(m, "CrammerSingerFloat32");
    bind_state<double>(m, "CrammerSingerFloat64");
}
