// Binds the loops of the linear support vector machines' dual. Python has checked every argument before.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bind_epochs.hpp"
#include "bindings.hpp"
#include "box_dual_state.hpp"
#include "kernels.hpp"

using namespace separatrix;

namespace {

template <class T>
using Optional = std::optional<Array<T>>;

const BoxDualSet& kernel_set() { return SEPARATRIX_CHOSEN(box_dual_set); }

Response response_of(const Array<const double>& f, const Optional<const double>& q,
                     const Optional<const std::int8_t>& codes, const Optional<const double>& numbers,
                     const Array<const double>& upper, const Optional<const double>& v0, double rho, double epsilon,
                     bool bounded) {
    const std::size_t count = f.size();
    expect_room(q, count, "q: one for every sample is needed");
    expect_room(codes, count, "codes: one for every sample is needed");
    expect_room(numbers, count, "numbers: one for every sample is needed");
    expect_room(upper, count, "upper: one for every sample is needed");
    expect_room(v0, count, "v0: one for every sample is needed");
    return {
        .count = static_cast<std::int64_t>(count),
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
    bind_epochs<T>(c, [](const auto& rows, BoxDualState<S>& state, const Visits& visits) {
        kernel_set().of<T, S>().of(rows)(rows, state, visits);
    });
}

// The plane's points; solvers/_extrapolation.py gives arrays of the state's own shapes.
template <class S>
PlanePoints<S> points_of(const BoxDualState<S>& state, const Array<const S>& old_v, const Array<S>& older_v,
                         const Array<const S>& old_w, const Array<const S>& older_w) {
    const auto rows = [&](const auto& array) { return static_cast<std::int64_t>(array.size()) / state.padded; };
    expect(rows(old_v) == rows(older_v), "older_v: one for every dual variable is needed");
    expect(rows(old_w) == rows(older_w), "older_w: one for every weight is needed");
    return {rows(old_v), rows(old_w), old_v.data(), older_v.data(), old_w.data(), older_w.data()};
}

template <class S>
void bind_plane(nb::class_<BoxDualState<S>>& c, PlaneKernels<S> BoxDualSet::* kernels) {
    using State = BoxDualState<S>;
    using Past = Array<const S>;
    c.def("plane_sums", [=](const State& self, const Past& old_v, const Array<S>& older_v, const Past& old_w,
                            const Past& older_w, const Array<double>& sums) {
        expect_room(sums, static_cast<std::size_t>(7 * self.padded), "sums: seven for every column are needed");
        const auto points = points_of(self, old_v, older_v, old_w, older_w);
        nb::gil_scoped_release release;
        (kernel_set().*kernels).sums(self, points, sums.data());
    });
    c.def("plane_point", [=](const State& self, const Past& old_v, const Array<S>& older_v, const Past& old_w,
                             const Past& older_w, const Array<const double>& tau, const Array<S>& moves,
                             const Array<double>& gains) {
        expect_room(tau, static_cast<std::size_t>(2 * self.padded), "tau: two for every column are needed");
        expect_room(gains, static_cast<std::size_t>(self.padded), "gains: one for every column is needed");
        expect_room(moves, old_v.size(), "moves: one for every dual variable is needed");
        const auto points = points_of(self, old_v, older_v, old_w, older_w);
        nb::gil_scoped_release release;
        (kernel_set().*kernels).point(self, points, tau.data(), moves.data(), gains.data());
    });
    c.def("plane_loss", [=](const State& self, const Past& changes, const Array<double>& gains) {
        expect_room(gains, static_cast<std::size_t>(self.padded), "gains: one for every column is needed");
        const auto features = static_cast<std::int64_t>(changes.size()) / self.padded;
        nb::gil_scoped_release release;
        (kernel_set().*kernels).loss(self, changes.data(), features, gains.data());
    });
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
    if constexpr (sizeof(S) == sizeof(float)) bind_plane<S>(c, &BoxDualSet::plane_single);
    else bind_plane<S>(c, &BoxDualSet::plane_double);
}

// The state and what Python need not see.
struct SmallNewtonOwner {
    SmallNewtonState state;
    std::vector<SmallColumn> each;
    std::vector<double> work, V0, gradient, kept, squares;
    std::vector<std::uint8_t> inside, formed;
    std::vector<std::int64_t> support;
};

void bind_small_newton(nb::module_& m) {
    using Owner = SmallNewtonOwner;
    nb::class_<Owner> c(m, "SmallNewton");
    c.def(
        "__init__",
        [](Owner* self, const Array<const double>& x, const Optional<const std::int32_t>& features,
           const Optional<const std::int64_t>& starts, const Optional<const std::int8_t>& codes,
           const Optional<const double>& numbers, const Array<const double>& upper, double epsilon, bool bounded,
           bool intercept, double square, const Array<double>& W, const Array<double>& b, const Array<double>& F,
           const Array<double>& V, const Optional<const double>& lambda, double rho, double tol, double steepest,
           double growth, double least_growth, double shortest, int patience) {
            new (self) Owner{};
            const std::size_t n = upper.shape(0), d = W.shape(1), columns = W.shape(0);
            self->work.resize((d + 1) * (2 * d + 9) + n);
            self->kept.resize(columns * (d + 1) * (d + 1));
            self->formed.resize(columns * n);
            self->support.resize(d + 1);
            self->squares.resize(d + 1);
            for (std::size_t i = 0; lambda && i < n; ++i) {
                const double curve = rho * upper.data()[i];
                const auto add = [&](std::size_t j, double value) { self->squares[j] += curve * value * value; };
                if (starts)
                    for (std::int64_t e = starts->data()[i]; e < starts->data()[i + 1]; ++e)
                        add(static_cast<std::size_t>(features->data()[e]), x.data()[e]);
                else
                    for (std::size_t j = 0; j < d; ++j) add(j, x.data()[i * d + j]);
                add(d, 1.0);
            }
            self->V0.resize(columns * n);
            self->gradient.resize(columns * d);
            self->inside.resize(columns * n);
            self->each.assign(columns, {.rho = rho, .growth = growth, .highest = rho, .least = HUGE_VAL, .least_rest = HUGE_VAL, .bound = -HUGE_VAL, .fresh = true});
            double total = 0;
            for (std::size_t i = 0; i < n; ++i) total += upper.data()[i];
            self->state = {
                .n = static_cast<std::int64_t>(n),
                .d = static_cast<std::int64_t>(d),
                .columns = static_cast<std::int64_t>(columns),
                .x = x.data(),
                .features = pointer(features),
                .starts = pointer(starts),
                .codes = pointer(codes),
                .numbers = pointer(numbers),
                .upper = upper.data(),
                .total = total,
                .epsilon = epsilon,
                .bounded = bounded,
                .intercept = intercept,
                .curve = square > 0 ? 1 / square : 0.0,
                .square = square,
                .W = W.data(),
                .b = b.data(),
                .F = F.data(),
                .V = V.data(),
                .V0 = self->V0.data(),
                .gradient = self->gradient.data(),
                .inside = self->inside.data(),
                .formed = self->formed.data(),
                .kept = self->kept.data(),
                .lambda = pointer(lambda),
                .squares = self->squares.data(),
                .support = self->support.data(),
                .each = self->each.data(),
                .work = self->work.data(),
                .rules = {tol, steepest, growth, least_growth, shortest, patience},
            };
        },
        nb::kw_only(), "x"_a, "features"_a.none(), "starts"_a.none(), "codes"_a.none(), "numbers"_a.none(), "upper"_a,
        "epsilon"_a, "bounded"_a, "intercept"_a,
        "square"_a, "W"_a, "b"_a, "F"_a, "V"_a, "lambda_"_a.none(), "rho"_a, "tol"_a, "steepest"_a, "growth"_a, "least_growth"_a,
        "shortest"_a, "patience"_a);
    c.def("measure", [](Owner& self) {
        nb::gil_scoped_release release;
        const SmallNewtonSums sums = kernel_set().small_measure(self.state);
        return std::make_tuple(sums.primal, sums.gap, sums.active, sums.stuck);
    });
    c.def("step", [](Owner& self) {
        nb::gil_scoped_release release;
        kernel_set().small_step(self.state);
    });
}

}  // namespace

void separatrix::bind_box_dual(nb::module_& m) {
    bind_state<float>(m, "BoxDualFloat32");
    bind_state<double>(m, "BoxDualFloat64");
    bind_small_newton(m);
    // respond(common…, v, inside) and search(common…, first, curve, start): the scores of one column, how they
    // change along a line and how far, and what defines its loss.
    m.def(
        "respond",
        [](const Array<const double>& f, const Optional<const double>& q, double t,
           const Optional<const std::int8_t>& codes, const Optional<const double>& numbers,
           const Array<const double>& upper, const Optional<const double>& v0, double rho, double epsilon,
           bool bounded, const Optional<double>& v, const Optional<std::uint8_t>& inside) {
            Response response = response_of(f, q, codes, numbers, upper, v0, rho, epsilon, bounded);
            expect_room(v, f.size(), "v: one for every sample is needed");
            expect_room(inside, f.size(), "inside: one for every sample is needed");
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
    m.def(
        "l1_model",
        [](const Array<const double>& H, const Array<const double>& lambda, const Array<double>& z,
           const Array<double>& g, double eta) {
            const std::size_t size = z.size();
            expect_room(H, size * size, "H: one for every pair is needed");
            expect_room(lambda, size, "lambda_: one for every weight is needed");
            expect_room(g, size, "g: one for every weight is needed");
            nb::gil_scoped_release release;
            std::vector<double> work(size * (size + 4));
            std::vector<std::int64_t> support(size);
            kernel_set().l1_model({static_cast<std::int64_t>(size), H.data(), lambda.data(), z.data(), g.data(),
                                   work.data(), support.data(), eta});
        },
        "H"_a, "lambda_"_a, "z"_a, "g"_a, "eta"_a);
    m.def(
        "l1_search",
        [](const Array<const double>& f, const Array<const double>& q, const Optional<const std::int8_t>& codes,
           const Array<const double>& upper, const Array<const double>& w, const Array<const double>& z,
           const Array<const double>& lambda, double start) {
            const Response response = response_of(f, q, codes, {}, upper, {}, 2.0, 0.0, false);
            expect_room(z, w.size(), "z: one for every weight is needed");
            expect_room(lambda, w.size(), "lambda_: one for every weight is needed");
            nb::gil_scoped_release release;
            return kernel_set().l1_search(response, w.data(), z.data(), lambda.data(),
                                          static_cast<std::int64_t>(w.shape(0)), start);
        },
        "f"_a, "q"_a, "codes"_a.none(), "upper"_a, "w"_a, "z"_a, "lambda_"_a, "start"_a);
}
