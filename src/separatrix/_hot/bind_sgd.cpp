// Binds stochastic gradient descent to Python.
#include <string>

#include "bind_rows.hpp"

using namespace separatrix;

namespace {

template <class T>
void bind_state(nb::module_& m, const std::string& suffix) {
    using State = SgdState<T>;
    using Numbers = Strided<double>;
    nb::class_<State> learner(m, ("Sgd" + suffix).c_str());
    learner.def(
        "__init__",
        [](State* self, const std::optional<Strided<const std::int32_t>>& classes, const Strided<const T>& targets,
           const std::optional<Strided<const T>>& factors, const std::optional<Strided<const T>>& row_weights,
           int loss, double epsilon, double l2, double l1, bool fit_intercept, double intercept_decay, int rate,
           double eta0, double power, double alpha, double t0, const Strided<T>& weights,
           const Numbers& intercepts, const Numbers& scale, const Strided<const std::uint8_t>& active,
           const Strided<const double>& eta, const Numbers& owed, const std::optional<Strided<T>>& paid,
           const Numbers& clock, double average_from, const std::optional<Numbers>& drift, const Numbers& area,
           const Numbers& intercept_sums, const Numbers& losses, const Strided<T>& scores, const Strided<T>& steps,
           const Numbers& margins, const Numbers& values, const Numbers& slopes) {
            new (self) State{
                .classes = pointer(classes),
                .targets = targets.data(),
                .factors = pointer(factors),
                .row_weights = pointer(row_weights),
                .columns = static_cast<std::int64_t>(intercepts.shape(0)),
                .loss = loss,
                .epsilon = epsilon,
                .l2 = l2,
                .l1 = l1,
                .fit_intercept = fit_intercept,
                .intercept_decay = intercept_decay,
                .rate = static_cast<Rate>(rate),
                .eta0 = eta0,
                .power = power,
                .alpha = alpha,
                .t0 = t0,
                .weights = weights.data(),
                .intercepts = intercepts.data(),
                .scale = scale.data(),
                .active = active.data(),
                .eta = eta.data(),
                .owed = owed.data(),
                .paid = pointer(paid),
                .clock = clock.data(),
                .average_from = average_from,
                .drift = pointer(drift),
                .area = area.data(),
                .intercept_sums = intercept_sums.data(),
                .losses = losses.data(),
                .scores = scores.data(),
                .steps = steps.data(),
                .margins = margins.data(),
                .values = values.data(),
                .slopes = slopes.data(),
            };
        },
        nb::kw_only(), "classes"_a.none(), "targets"_a, "factors"_a.none(), "row_weights"_a.none(), "loss"_a,
        "epsilon"_a, "l2"_a, "l1"_a, "fit_intercept"_a, "intercept_decay"_a, "rate"_a, "eta0"_a, "power"_a,
        "alpha"_a, "t0"_a, "weights"_a, "intercepts"_a, "scale"_a, "active"_a, "eta"_a, "owed"_a,
        "paid"_a.none(), "clock"_a, "average_from"_a, "drift"_a.none(), "area"_a, "intercept_sums"_a,
        "losses"_a, "scores"_a, "steps"_a, "margins"_a, "values"_a, "slopes"_a);
    def_run<T>(learner, [](State& state, JudgeState<T>*, const auto& rows, const Visits& visits) {
        kernels<T>().of(rows).sgd(rows, state, visits);
        return visits.end;
    });
}

}  // namespace

void separatrix::bind_sgd(nb::module_& m) {
    bind_state<float>(m, "Float32");
    bind_state<double>(m, "Float64");
}
