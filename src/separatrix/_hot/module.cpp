// Binds the loops to Python; nothing else. Python has checked every argument before it comes here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "hash.hpp"
#include "kernels.hpp"
#include "random.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace separatrix;

namespace {

const KernelSet* chosen = nullptr;

template <class T>
const Kernels<T>& kernels() {
    if constexpr (std::is_same_v<T, float>) return chosen->single_precision;
    else return chosen->double_precision;
}

template <class T>
using Array = nb::ndarray<T, nb::device::cpu>;
using Indices = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
T* pointer(const std::optional<Array<T>>& array) { return array ? array->data() : nullptr; }

// The Python solver holds the arrays that the state points into for as long as it holds this object.
template <class T>
struct BoundPerceptron {
    PerceptronState<T> state{};
};

template <class T>
void bind_perceptron(nb::module_& m, const char* name) {
    using Bound = BoundPerceptron<T>;
    nb::class_<Bound>(m, name)
        .def("__init__",
             [](Bound* self, const Array<const std::int32_t>& classes,
                const std::optional<Array<const T>>& row_weights, const Array<const std::int8_t>& codes,
                const Array<const std::uint8_t>& wanted, const Array<T>& weights, const Array<T>& intercepts,
                const std::optional<Array<double>>& drift,
                const std::optional<Array<double>>& drift_intercepts, const Array<double>& clock,
                double decay, double truncation, const std::optional<Array<double>>& scale,
                const std::optional<Array<double>>& owed, const std::optional<Array<T>>& paid,
                const Array<std::int64_t>& updates, const Array<double>& judged, const Array<double>& tally,
                const Array<double>& remaining, const Array<T>& scores, bool joint, bool largest_wins,
                bool fit_intercept, double eta, double margin) {
                 new (self) Bound();
                 PerceptronState<T>& s = self->state;
                 s.classes = classes.data();
                 s.row_weights = pointer(row_weights);
                 s.codes = codes.data();
                 s.wanted = wanted.data();
                 s.n_classes = static_cast<std::int64_t>(codes.shape(0));
                 s.columns = static_cast<std::int64_t>(codes.shape(1));
                 s.total = static_cast<std::int64_t>(wanted.shape(1));
                 s.joint = joint;
                 s.largest_wins = largest_wins;
                 s.fit_intercept = fit_intercept;
                 s.eta = static_cast<T>(eta);
                 s.margin = static_cast<T>(margin);
                 s.weights = weights.data();
                 s.intercepts = intercepts.data();
                 s.drift = pointer(drift);
                 s.drift_intercepts = pointer(drift_intercepts);
                 s.clock = clock.data();
                 s.decay = decay;
                 s.truncation = truncation;
                 s.scale = pointer(scale);
                 s.owed = pointer(owed);
                 s.paid = pointer(paid);
                 s.updates = updates.data();
                 s.judged = judged.data();
                 s.tally = tally.data();
                 s.remaining = remaining.data();
                 s.scores = scores.data();
             },
             nb::kw_only(), "classes"_a, "row_weights"_a.none(), "codes"_a, "wanted"_a, "weights"_a,
             "intercepts"_a, "drift"_a.none(), "drift_intercepts"_a.none(), "clock"_a, "decay"_a,
             "truncation"_a, "scale"_a.none(), "owed"_a.none(), "paid"_a.none(), "updates"_a, "judged"_a,
             "tally"_a, "remaining"_a, "scores"_a, "joint"_a, "largest_wins"_a, "fit_intercept"_a, "eta"_a,
             "margin"_a)
        .def("run_dense",
             [](Bound& self, const nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>& X, const Order& order,
                const std::optional<Order>& fetch, std::int64_t begin, std::int64_t end, std::int64_t budget, std::int64_t gathered) {
                 const DenseArray<T> rows{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
                 const Visits visits{order.data(), fetch ? fetch->data() : nullptr, begin, end, budget, gathered};
                 nb::gil_scoped_release release;
                 return kernels<T>().perceptron_dense(rows, self.state, visits);
             })
        .def("run_csr",
             [](Bound& self, const Array<const T>& data, const Array<const std::int32_t>& indices,
                const Array<const std::int32_t>& indptr, std::int64_t n_features, const Order& order,
                const std::optional<Order>& fetch, std::int64_t begin, std::int64_t end, std::int64_t budget, std::int64_t gathered) {
                 const CsrArray<T, std::int32_t> rows{data.data(), indices.data(), indptr.data(), n_features};
                 const Visits visits{order.data(), fetch ? fetch->data() : nullptr, begin, end, budget, gathered};
                 nb::gil_scoped_release release;
                 return kernels<T>().perceptron_csr32(rows, self.state, visits);
             })
        .def("run_csr",
             [](Bound& self, const Array<const T>& data, const Array<const std::int64_t>& indices,
                const Array<const std::int64_t>& indptr, std::int64_t n_features, const Order& order,
                const std::optional<Order>& fetch, std::int64_t begin, std::int64_t end, std::int64_t budget, std::int64_t gathered) {
                 const CsrArray<T, std::int64_t> rows{data.data(), indices.data(), indptr.data(), n_features};
                 const Visits visits{order.data(), fetch ? fetch->data() : nullptr, begin, end, budget, gathered};
                 nb::gil_scoped_release release;
                 return kernels<T>().perceptron_csr64(rows, self.state, visits);
             });
}

}  // namespace

NB_MODULE(_hot, m) {
    chosen = find_kernels(nullptr);
    m.def("instruction_set", [] { return std::string(chosen->name); });
    m.def("instruction_sets", [] {
        std::vector<std::string> names;
        for (const char* name : {"baseline", "v3", "v4"})
            if (find_kernels(name)) names.emplace_back(name);
        return names;
    });
    m.def("use_instruction_set", [](const std::string& name) {
        const KernelSet* set = find_kernels(name.c_str());
        if (!set) throw nb::value_error(("this processor or build has no instruction set " + name).c_str());
        chosen = set;
    });
    m.def("shuffle", [](const Indices& order, std::uint64_t state) {
        shuffle(order.data(), static_cast<std::int64_t>(order.shape(0)), state);
        return state;
    });
    m.def("shuffle_blocks", [](const Order& samples, const Indices& order, const Indices& fetch,
                               std::int64_t block, std::int64_t group, std::uint64_t state) {
        const auto count = static_cast<std::int64_t>(samples.shape(0));
        std::vector<std::int64_t> ids(static_cast<std::size_t>((count + block - 1) / block));
        shuffle_blocks(samples.data(), count, order.data(), fetch.data(), ids.data(), block, group, state);
        return state;
    });
    m.def("hash_rows", [](const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& X,
                          const nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
        hash_rows(X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)), out.data());
    });
    m.def("hash_rows", [](const Array<const double>& data, const Order& indices, const Order& indptr,
                          const nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
        hash_rows(data.data(), indices.data(), indptr.data(), static_cast<std::int64_t>(out.shape(0)), out.data());
    });
    bind_perceptron<float>(m, "PerceptronFloat32");
    bind_perceptron<double>(m, "PerceptronFloat64");
}
