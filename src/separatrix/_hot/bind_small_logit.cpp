// Binds logistic regression on few data. Python has checked every argument before.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "kernels.hpp"
#include "small_logit_state.hpp"

using namespace separatrix;

namespace {

const SmallLogitSet& kernel_set() { return SEPARATRIX_CHOSEN(small_logit_set); }

// The state, the samples that it points into, and what Python need not see.
struct Owner {
    SmallLogitState state;
    Array<const double> x;
    std::vector<std::int32_t> classes;
    std::vector<std::int64_t> support;
    std::vector<double> memory;
};

}  // namespace

void separatrix::bind_small_logit(nb::module_& m) {
    nb::class_<Owner> c(m, "SmallLogit");
    c.def(
        "__init__",
        [](Owner* self, const Array<const double>& x, const Array<const std::int32_t>& classes,
           const std::optional<Array<const double>>& weights, bool intercept, double l1, double l2,
           const Array<const double>& coef, const Array<const double>& start) {
            const std::size_t n = x.shape(0), d = x.shape(1), K = coef.shape(0), size = d + intercept, count = K * size;
            const std::size_t stride = (n + 15) / 16 * 16, most = K > 2 ? K : 2;
            new (self) Owner{};
            self->x = x;
            self->classes.resize(stride);
            self->support.resize(count);
            const std::size_t H = count * count + 2 * K * K, U = count * count + 4 * count;
            self->memory.resize(stride * (2 + size + 3 * most + 2) + d + 7 * count + H + U);
            double* next = self->memory.data();
            const auto take = [&](std::size_t entries) { return std::exchange(next, next + entries); };
            SmallLogitState& s = self->state;
            s = {
                .n = static_cast<std::int64_t>(n),
                .d = static_cast<std::int64_t>(d),
                .columns = static_cast<std::int64_t>(K),
                .size = static_cast<std::int64_t>(size),
                .stride = static_cast<std::int64_t>(stride),
                .x = x.data(),
                .classes = self->classes.data(),
                .l1 = l1,
                .l2 = l2,
                .total = 0,
                .weights = take(stride),
                .sides = take(stride),
                .X = take(size * stride),
                .mean = take(d),
                .V = take(count),
                .F = take(most * stride),
                .Q = take(most * stride),
                .Z = take(most * stride),
                .scaled = take(2 * stride),
                .g = take(count),
                .H = take(H),
                .U = take(U),
                .scale = take(count),
                .D = take(count),
                .r = take(count),
                .rhs = take(count),
                .support = self->support.data(),
                .lambda = take(count),
                .loss = 0,
                .primal = 0,
                .bound = -HUGE_VAL,
                .gap = HUGE_VAL,
                .decrement = HUGE_VAL,
                .violation = 0,
                .factored = false,
            };
            for (std::size_t i = 0; i < stride; ++i) {
                self->classes[i] = i < n ? classes.data()[i] : 0;
                s.weights[i] = i >= n ? 0.0 : weights ? weights->data()[i] : 1.0;
                s.sides[i] = self->classes[i] ? 1.0 : -1.0;
                s.total += s.weights[i];
            }
            for (std::size_t a = 0; a < count; ++a) s.lambda[a] = a % size < d ? l1 : 0.0;
            for (std::size_t k = 0; k < K; ++k) {
                std::memcpy(s.V + k * size, coef.data() + k * d, d * sizeof(double));
                if (intercept) s.V[k * size + d] = start.data()[k];
            }
            nb::gil_scoped_release release;
            kernel_set().start(s);
        },
        nb::kw_only(), "x"_a, "classes"_a, "weights"_a.none(), "intercept"_a, "l1"_a, "l2"_a, "coef"_a, "start"_a);
    c.def(
        "step",
        [](Owner& self, bool anew) {
            nb::gil_scoped_release release;
            return kernel_set().step(self.state, anew);
        },
        "anew"_a);
    c.def("measure", [](Owner& self) {
        return std::make_tuple(self.state.primal, self.state.gap, self.state.decrement);
    });
    c.def(
        "parameters",
        [](Owner& self, const Array<double>& coef, const Array<double>& intercept) {
            const SmallLogitState& s = self.state;
            for (std::int64_t k = 0; k < s.columns; ++k) {
                const double* v = s.V + k * s.size;
                double b = s.size > s.d ? v[s.d] : 0.0;
                for (std::int64_t j = 0; j < s.d; ++j) {
                    coef.data()[k * s.d + j] = v[j];
                    b -= v[j] * s.mean[j];
                }
                intercept.data()[k] = b;
            }
        },
        "coef"_a, "intercept"_a);
    c.def(
        "evaluate",
        [](Owner& self, const Array<const double>& coef, const Array<const double>& intercept) {
            nb::gil_scoped_release release;
            kernel_set().evaluate(self.state, coef.data(), intercept.data());
            return std::make_tuple(self.state.primal, self.state.bound, self.state.violation);
        },
        "coef"_a, "intercept"_a);
}
