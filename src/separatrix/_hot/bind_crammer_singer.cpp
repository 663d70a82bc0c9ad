// Binds the Crammer-Singer loop to Python. Python has checked every argument before it comes here.
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <vector>

#include "bind_epochs.hpp"
#include "bindings.hpp"
#include "crammer_singer_state.hpp"
#include "kernels.hpp"

using namespace separatrix;

namespace {

const CrammerSingerSet& kernel_set() { return SEPARATRIX_CHOSEN(crammer_singer_set); }

template <class S, class T>
void bind_rows(nb::class_<CrammerSingerState<S>>& c) {
    bind_epochs<T>(c, [](const auto& rows, CrammerSingerState<S>& state, const Visits& visits) {
        kernel_set().of<T, S>().of(rows)(rows, state, visits);
    });
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

// The state and what Python need not see.
struct SmallJointOwner {
    SmallJoint state;
    std::vector<double> mu0, work;
};

void bind_small_joint(nb::module_& m) {
    using Owner = SmallJointOwner;
    nb::class_<Owner> c(m, "SmallJoint");
    c.def(
        "__init__",
        [](Owner* self, const Array<const double>& x, const Array<const std::int32_t>& classes,
           const Array<const double>& cost, const Array<double>& W, const Array<double>& mu, double rho, double tol) {
            new (self) Owner{};
            const std::size_t n = x.shape(0), D = x.shape(1), K = mu.shape(1), size = D * K;
            self->mu0.assign(mu.data(), mu.data() + n * K);
            self->work.resize(2 * n * K + size * size + 4 * size + K);
            self->state = {
                .n = static_cast<std::int64_t>(n),
                .features = static_cast<std::int64_t>(D),
                .columns = static_cast<std::int64_t>(K),
                .x = x.data(),
                .classes = classes.data(),
                .cost = cost.data(),
                .tol = tol,
                .W = W.data(),
                .mu = mu.data(),
                .mu0 = self->mu0.data(),
                .work = self->work.data(),
                .rho = rho,
                .growth = 4.0,
                .primal = 0.0,
                .dual = 0.0,
                .inner = 0,
                .steps = 0,
            };
        },
        nb::kw_only(), "x"_a, "classes"_a, "cost"_a, "W"_a, "mu"_a, "rho"_a, "tol"_a);
    c.def("run", [](Owner& self, std::int64_t steps) {
        nb::gil_scoped_release release;
        kernel_set().small_joint(self.state, steps);
    });
    c.def("measure", [](const Owner& self) {
        return std::make_tuple(self.state.primal, self.state.dual, self.state.steps);
    });
}

}  // namespace

void separatrix::bind_crammer_singer(nb::module_& m) {
    bind_small_joint(m);
    bind_state<float>(m, "CrammerSingerFloat32");
    bind_state<double>(m, "CrammerSingerFloat64");
}
