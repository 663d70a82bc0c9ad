// Binds the loops to Python; nothing else. Python has checked every argument before it comes here.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind_rows.hpp"
#include "bindings.hpp"
#include "hash.hpp"
#include "random.hpp"

using namespace separatrix;

namespace {

const KernelSet* chosen = nullptr;

template <class T>
void bind_perceptron(nb::module_& m, const std::string& suffix) {
    using State = PerceptronState<T>;
    nb::class_<State> learner(m, ("Perceptron" + suffix).c_str());
    learner.def(
        "__init__",
        [](State* self, const Strided<const std::int32_t>& classes,
           const std::optional<Strided<const T>>& row_weights, const Strided<const std::int8_t>& codes,
           const Strided<const std::uint8_t>& wanted, const Strided<T>& weights, const Strided<T>& intercepts,
           const std::optional<Strided<double>>& drift, const std::optional<Strided<double>>& drift_intercepts,
           const Strided<double>& clock, double decay, double truncation,
           const std::optional<Strided<double>>& scale, const std::optional<Strided<double>>& owed,
           const std::optional<Strided<T>>& paid, const Strided<std::int64_t>& updates,
           const Strided<double>& tally, const Strided<double>& remaining, const Strided<T>& scores, bool joint,
           bool fit_intercept, double intercept_step, double eta, double margin, double largest) {
            new (self) State{
                .classes = classes.data(),
                .row_weights = pointer(row_weights),
                .codes = codes.data(),
                .wanted = wanted.data(),
                .columns = static_cast<std::int64_t>(codes.shape(1)),
                .stride = weights.stride(0),
                .joint = joint,
                .fit_intercept = fit_intercept,
                .intercept_step = static_cast<T>(intercept_step),
                .eta = static_cast<T>(eta),
                .margin = static_cast<T>(margin),
                .weights = weights.data(),
                .intercepts = intercepts.data(),
                .largest = static_cast<T>(largest),
                .drift = pointer(drift),
                .drift_intercepts = pointer(drift_intercepts),
                .clock = clock.data(),
                .decay = decay,
                .truncation = truncation,
                .scale = pointer(scale),
                .owed = pointer(owed),
                .paid = pointer(paid),
                .updates = updates.data(),
                .tally = tally.data(),
                .remaining = remaining.data(),
                .scores = scores.data(),
            };
        },
        nb::kw_only(), "classes"_a, "row_weights"_a.none(), "codes"_a, "wanted"_a, "weights"_a,
        "intercepts"_a, "drift"_a.none(), "drift_intercepts"_a.none(), "clock"_a, "decay"_a, "truncation"_a,
        "scale"_a.none(), "owed"_a.none(), "paid"_a.none(), "updates"_a, "tally"_a, "remaining"_a,
        "scores"_a, "joint"_a, "fit_intercept"_a, "intercept_step"_a, "eta"_a, "margin"_a,
        "largest"_a);

    using Judge = JudgeState<T>;
    nb::class_<Judge> judge(m, ("Judge" + suffix).c_str());
    judge.def(
        "__init__",
        [](Judge* self, const Strided<const std::int32_t>& classes,
           const std::optional<Strided<const T>>& row_weights, const Strided<const std::int8_t>& codes,
           const Strided<const std::uint8_t>& wanted, const Strided<const T>& weights,
           const Strided<const T>& intercepts, const Strided<const T>& largest,
           const Strided<double>& errors, const Strided<T>& scores, bool largest_wins, double margin) {
            new (self) Judge{
                .classes = classes.data(),
                .row_weights = pointer(row_weights),
                .codes = codes.data(),
                .wanted = wanted.data(),
                .columns = static_cast<std::int64_t>(codes.shape(1)),
                .stride = weights.stride(0),
                .largest_wins = largest_wins,
                .margin = static_cast<T>(margin),
                .weights = weights.data(),
                .intercepts = intercepts.data(),
                .largest = largest.data(),
                .errors = errors.data(),
                .scores = scores.data(),
            };
        },
        nb::kw_only(), "classes"_a, "row_weights"_a.none(), "codes"_a, "wanted"_a, "weights"_a,
        "intercepts"_a, "largest"_a, "errors"_a, "scores"_a, "largest_wins"_a, "margin"_a);
    def_run<T>(judge, [](Judge& state, Judge*, const auto& rows, const Visits& visits) {
        kernels<T>().of(rows).judge(rows, state, visits);
        return visits.end;
    });
    def_run<T>(learner, [](State& state, Judge* beside, const auto& rows, const Visits& visits) {
        return kernels<T>().of(rows).perceptron(rows, state, beside, visits);
    });
}

}  // namespace

const KernelSet& separatrix::chosen_kernels() { return *chosen; }

NB_MODULE(_hot, m) {
    // What a callback or a global of the user still holds when the interpreter ends is no leak to report.
    nb::set_leak_warnings(false);
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
        nb::gil_scoped_release release;
        shuffle(order.data(), static_cast<std::int64_t>(order.shape(0)), state);
        return state;
    });
    m.def("permute", [](const Indices& order, std::uint32_t seed) {
        nb::gil_scoped_release release;
        permute(order.data(), static_cast<std::int64_t>(order.shape(0)), seed);
    });
    m.def("shuffle_blocks", [](const Order& samples, const Indices& order, std::int64_t block,
                               std::int64_t streams, std::uint64_t state) {
        expect(block > 0 && streams > 0, "block and streams must be positive");
        expect_room(order, samples.size(), "order: a place for every sample is needed");
        nb::gil_scoped_release release;
        const auto count = static_cast<std::int64_t>(samples.shape(0));
        std::vector<std::int64_t> ids(static_cast<std::size_t>((count + block - 1) / block));
        shuffle_blocks(samples.data(), count, order.data(), ids.data(), block, streams, state);
        return state;
    });
    m.def("hash_rows", [](const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& X,
                          const nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
        expect_room(out, X.shape(0), "out: a place for every row is needed");
        nb::gil_scoped_release release;
        hash_rows(X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)), out.data());
    });
    m.def("hash_rows", [](const Strided<const double>& data, const Order& indices, const Order& indptr,
                          const nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
        expect_csr(data, indices, indptr, out.size());
        nb::gil_scoped_release release;
        hash_rows(data.data(), indices.data(), indptr.data(), static_cast<std::int64_t>(out.shape(0)), out.data());
    });
    bind_perceptron<float>(m, "Float32");
    bind_perceptron<double>(m, "Float64");
    bind_sgd(m);
    bind_sweep(m);
    bind_box_dual(m);
    bind_coordinate(m);
    bind_crammer_singer(m);
    bind_softmax_dual(m);
    bind_gram(m);
    bind_machine_sums(m);
    bind_neighbors(m);
    bind_small_logit(m);
    bind_small_passes(m);
    bind_small_smo(m);
    bind_smo(m);
    bind_strings(m);
    bind_delimited(m);
    bind_svmlight(m);
}
