// Binds the loops of the linear support vector machines' dual. Python has checked every argument before.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>

#include "bindings.hpp"
#include "box_dual_state.hpp"
#include "kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace separatrix;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Optional = std::optional<Array<T>>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
T* pointer(const Optional<T>& array) { return array ? array->data() : nullptr; }

const BoxDualSet& kernel_set() {
#if defined(SEPARATRIX_X86_SETS)
    if (std::strcmp(chosen_kernels().name, "v4") == 0) return v4::box_dual_set();
    if (std::strcmp(chosen_kernels().name, "v3") == 0) return v3::box_dual_set();
#endif
    return baseline::box_dual_set();
}

template <class T, class S>
const BoxDualKernels<T, S>& kernels() {
    const BoxDualSet& set = kernel_set();
    if constexpr (std::is_same_v<T, float>) {
        if constexpr (std::is_same_v<S, float>) return set.single_single;
        else return set.single_double;
    } else {
        if constexpr (std::is_same_v<S, float>) return set.double_single;
        else return set.double_double;
    }
}

Response response_of(const Array<const double>& f, const Optional<const double>& q,
                     const Optional<const std::int8_t>& codes, const Optional<const double>& numbers,
                     const Array<const double>& upper, const Optional<const double>& v0, double rho, double epsilon,
                     bool bounded) {
    return {
        .count = static_cast<std::int64_t>(f.shape(0)),
        .f = f.data(),
        .q = pointer(q),
        .t = 0,
        .codes = pointer(codes),
        .numbers = pointer(numbers),
        .upper = upper.data(),
        .v0 = pointer(v0),
        .rho = rho,
        .epsilon = epsilon,
        .bounded = bounded,
        .v = nullptr,
        .inside = nullptr,
    };
}

template <class S, class T>
void bind_rows(nb::class_<BoxDualState<S>>& c) {
    using State = BoxDualState<S>;
    using Order = Array<const std::int64_t>;
    const auto visit = [](State& state, const auto& rows, const Order& order, std::int64_t begin, std::int64_t end,
                          std::int64_t gathered) {
        const Visits visits{order.data(), begin, end, end - begin, gathered};
        nb::gil_scoped_release release;
        kernels<T, S>().of(rows)(rows, state, visits);
    };
    c.def("run_dense", [=](State& state, const Matrix<T>& X, const Order& order, std::int64_t begin,
                           std::int64_t end, std::int64_t gathered) {
        visit(state, DenseArray<T>{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))}, order, begin,
              end, gathered);
    });
    const auto def_csr = [&]<class Index>(Index) {
        c.def("run_csr", [=](State& state, const Array<const T>& data, const Array<const Index>& indices,
                             const Array<const Index>& indptr, std::int64_t d, const Order& order,
                             std::int64_t begin, std::int64_t end, std::int64_t gathered) {
            visit(state, CsrArray<T, Index>{data.data(), indices.data(), indptr.data(), d}, order, begin, end,
                  gathered);
        });
    };
    def_csr(std::int32_t{});
    def_csr(std::int64_t{});
}

template <class S>
void bind_state(nb::module_& m, const char* name) {
    using State = BoxDualState<S>;
    nb::class_<State> c(m, name);
    c.def(
        "__init__",
        [](State* self, const Array<const std::int32_t>& classes, const Array<const double>& upper,
           const Array<const double>& delta, const Array<const double>& norms,
           const Optional<const double>& numbers, const Array<const S>& targets, const Array<const S>& low,
           const Array<const S>& high, double epsilon, double constant, const Array<S>& weights,
           const Array<S>& v, const Array<S>& offsets, const Array<std::uint8_t>& asleep,
           const Array<S>& scratch, const Array<double>& tally) {
            new (self) State{
                .classes = classes.data(),
                .upper = upper.data(),
                .delta = delta.data(),
                .norms = norms.data(),
                .numbers = pointer(numbers),
                .targets = targets.data(),
                .low = low.data(),
                .high = high.data(),
                .padded = static_cast<std::int64_t>(weights.shape(1)),
                .epsilon = epsilon,
                .constant = constant,
                .weights = weights.data(),
                .v = v.data(),
                .offsets = offsets.data(),
                .asleep = asleep.data(),
                .scratch = scratch.data(),
                .tally = tally.data(),
                .negligible = 0.0,
            };
        },
        nb::kw_only(), "classes"_a, "upper"_a, "delta"_a, "norms"_a, "numbers"_a.none(), "targets"_a, "low"_a,
        "high"_a, "epsilon"_a, "constant"_a, "weights"_a, "v"_a, "offsets"_a, "asleep"_a, "scratch"_a, "tally"_a);
    c.def_rw("negligible", &State::negligible);
    bind_rows<S, float>(c);
    bind_rows<S, double>(c);
}

}  // namespace

void separatrix::bind_box_dual(nb::module_& m) {
    bind_state<float>(m, "BoxDualFloat32");
    bind_state<double>(m, "BoxDualFloat64");
    // respond(common…, v, inside) and search(common…, first, curve, start): the scores of one column, how they
    // change along a line and how far, and what defines its loss.
    m.def(
        "respond",
        [](const Array<const double>& f, const Optional<const double>& q, double t,
           const Optional<const std::int8_t>& codes, const Optional<const double>& numbers,
           const Array<const double>& upper, const Optional<const double>& v0, double rho, double epsilon,
           bool bounded, const Optional<double>& v, const Optional<std::uint8_t>& inside) {
            Response response = response_of(f, q, codes, numbers, upper, v0, rho, epsilon, bounded);
            response.t = t;
            response.v = pointer(v);
            response.inside = pointer(inside);
            nb::gil_scoped_release release;
            const ResponseSums sums = kernel_set().respond(response);
            return std::make_tuple(sums.slope, sums.bend, sums.loss, sums.linear, sums.square);
        },
        "f"_a, "q"_a.none(), "t"_a, "codes"_a.none(), "numbers"_a.none(), "upper"_a, "v0"_a.none(), "rho"_a,
        "epsilon"_a, "bounded"_a, "v"_a.none(), "inside"_a.none());
    m.def(
        "search",
        [](const Array<const double>& f, const Array<const double>& q, const Optional<const std::int8_t>& codes,
           const Optional<const double>& numbers, const Array<const double>& upper,
           const Optional<const double>& v0, double rho, double epsilon, bool bounded, double first, double curve,
           double start) {
            const Response response = response_of(f, q, codes, numbers, upper, v0, rho, epsilon, bounded);
            nb::gil_scoped_release release;
            return kernel_set().search(response, first, curve, start);
        },
        "f"_a, "q"_a, "codes"_a.none(), "numbers"_a.none(), "upper"_a, "v0"_a.none(), "rho"_a, "epsilon"_a,
        "bounded"_a, "first"_a, "curve"_a, "start"_a);
}
