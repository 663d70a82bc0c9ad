// Binds several passes in one call: run_dense and run_csr of these states take the most passes for the budget and
// return how many were made. Python keeps alive the arrays and the learners that they point to.
#include "small_passes.hpp"

#include <string>

#include "bind_rows.hpp"

using namespace separatrix;

namespace {

using Numbers = Strided<double>;
using Random = std::optional<Strided<std::uint64_t>>;

template <class T>
Weights<T> weights_of(const Strided<T>& a) {
    return {a.data(), static_cast<std::int64_t>(a.shape(0)), static_cast<std::int64_t>(a.shape(1)), a.stride(0), a.stride(1)};
}

SmallVisits visits_of(const Indices& order, const Random& random, double seconds) {
    return {order.data(), static_cast<std::int64_t>(order.shape(0)), pointer(random), seconds};
}

template <class T>
void bind_passes(nb::module_& m, const std::string& suffix) {
    using OfPerceptron = PerceptronPasses<T>;
    nb::class_<OfPerceptron> perceptron(m, ("PerceptronPasses" + suffix).c_str());
    perceptron.def(
        "__init__",
        [](OfPerceptron* self, PerceptronState<T>* learner, const Indices& order, const Random& random, double seconds,
           const Strided<std::uint8_t>& wanted, bool begun, const Strided<T>& weights, const Strided<T>& frozen,
           const Strided<T>& pocket, const Strided<T>& frozen_intercepts, const Strided<T>& pocket_intercepts,
           const Numbers& errors, const Numbers& pocket_errors, const Numbers& records) {
            new (self) OfPerceptron{
                .learner = learner,
                .visits = visits_of(order, random, seconds),
                .wanted = wanted.data(),
                .n_classes = static_cast<std::int64_t>(wanted.shape(0)),
                .begun = begun,
                .weights = weights_of(weights),
                .frozen = weights_of(frozen),
                .pocket = weights_of(pocket),
                .frozen_intercepts = frozen_intercepts.data(),
                .pocket_intercepts = pocket_intercepts.data(),
                .errors = errors.data(),
                .pocket_errors = pocket_errors.data(),
                .one_error = pocket_errors.shape(0) == 1,
                .records = records.data(),
            };
        },
        nb::kw_only(), "learner"_a, "order"_a, "random"_a.none(), "seconds"_a, "wanted"_a, "begun"_a, "weights"_a,
        "frozen"_a, "pocket"_a, "frozen_intercepts"_a, "pocket_intercepts"_a, "errors"_a, "pocket_errors"_a,
        "records"_a);
    def_run<T>(perceptron, [](OfPerceptron& passes, JudgeState<T>* judge, const auto& rows, const Visits& wanted) {
        return passes.run(judge, wanted.budget, [&](JudgeState<T>* asked, const Visits& visits) {
            kernels<T>().of(rows).perceptron(rows, *passes.learner, asked, visits);
        });
    });

    using OfSgd = SgdPasses<T>;
    nb::class_<OfSgd> sgd(m, ("SgdPasses" + suffix).c_str());
    sgd.def(
        "__init__",
        [](OfSgd* self, SgdState<T>* learner, const Indices& order, const Random& random, double seconds,
           const Strided<T>& weights, const std::optional<Numbers>& drift, const Numbers& records) {
            new (self) OfSgd{
                .learner = learner,
                .visits = visits_of(order, random, seconds),
                .weights = weights_of(weights),
                .drift = drift ? weights_of(*drift) : Weights<double>{},
                .records = records.data(),
            };
        },
        nb::kw_only(), "learner"_a, "order"_a, "random"_a.none(), "seconds"_a, "weights"_a, "drift"_a.none(),
        "records"_a);
    def_run<T>(sgd, [](OfSgd& passes, JudgeState<T>*, const auto& rows, const Visits& wanted) {
        return passes.run(wanted.budget,
                          [&](const Visits& visits) { kernels<T>().of(rows).sgd(rows, *passes.learner, visits); });
    });
}

}  // namespace

void separatrix::bind_small_passes(nb::module_& m) {
    bind_passes<float>(m, "Float32");
    bind_passes<double>(m, "Float64");
}
