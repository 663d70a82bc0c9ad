// Binds the loop over small dual problems, what dual points mean, and sigmoids of scores to Python, which has checked
// every argument before.
#include <atomic>
#include <vector>

#include "bindings.hpp"
#include "dual_gap.hpp"
#include "dual_machines.hpp"
#include "kernels.hpp"
#include "platt.hpp"
#include "small_smo_state.hpp"

using namespace separatrix;

namespace {

// The problems, and which is the next one for whoever asks.
struct SmallSmoRun {
    SmallProblems problems;
    std::vector<std::int64_t> quota;
    std::atomic<std::int64_t> place{0};

    explicit SmallSmoRun(const SmallProblems& given)
        : problems(given), quota(static_cast<std::size_t>(given.count)) {
        problems.quota = quota.data();
    }

    static std::int64_t next(void* owner) {
        auto& self = *static_cast<SmallSmoRun*>(owner);
        for (;;) {
            const std::int64_t k = self.place.fetch_add(1);
            if (k >= self.problems.count) return -1;
            if (self.problems.status[k] <= 0) return k;
        }
    }
};

}  // namespace

void separatrix::bind_small_smo(nb::module_& m) {
    nb::class_<SmallSmoRun> run(m, "SmallSmo");
    run.def(
        "__init__",
        [](SmallSmoRun* self, const Array<const double>& values, const Array<const std::int64_t>& starts, const Array<const std::int64_t>& rows,
           const Array<const double>& signs, const Array<const double>& upper, const Array<double>& alpha,
           const Array<double>& gradient, std::int64_t copies, bool separate, std::int64_t largest, double tol, double coarse,
           std::int64_t most_steps, const Array<std::int64_t>& steps, const Array<double>& violation,
           const Array<double>& worst_curvature, const Array<std::int32_t>& status) {
            new (self) SmallSmoRun(SmallProblems{
                static_cast<std::int64_t>(starts.shape(0)) - 1, largest, copies, separate, starts.data(), rows.data(),
                signs.data(), upper.data(), values.data(), static_cast<std::int64_t>(values.shape(1)), alpha.data(),
                gradient.data(), tol, coarse, most_steps, steps.data(), violation.data(), worst_curvature.data(),
                status.data(), nullptr});
        },
        nb::kw_only(), "values"_a, "starts"_a, "rows"_a, "signs"_a, "upper"_a, "alpha"_a, "gradient"_a, "copies"_a,
        "separate"_a, "largest"_a, "tol"_a, "coarse"_a, "most_steps"_a, "steps"_a, "violation"_a, "worst_curvature"_a,
        "status"_a);
    // Begins again with the first problem that is not solved; no thread may be at work.
    run.def("rewind", [](SmallSmoRun& self) { self.place = 0; });
    // Works for some seconds at most; several threads may share the problems.
    run.def("run", [](SmallSmoRun& self, double seconds) {
        nb::gil_scoped_release release;
        SEPARATRIX_CHOSEN(small_smo_set).solve(self.problems, SmallSmoRun::next, &self, seconds_now() + seconds, seconds_now);
    });
    m.def(
        "dual_machines",
        [](const Array<const std::int64_t>& starts, const Array<const std::int64_t>& rows, const Array<const double>& signs,
           const Array<const double>& linear, const Array<const double>& upper, const Array<const double>& alpha,
           const Array<const double>& gradient, const Array<const double>& lengths, double unit,
           const Array<const double>& doubt, bool separate, const Array<double>& numbers, const Array<double>& variables) {
            const auto count = static_cast<std::int64_t>(starts.shape(0)) - 1, size = static_cast<std::int64_t>(rows.shape(0));
            double *to = numbers.data(), *each = variables.data();
            const DualPoints points{count, separate, starts.data(), rows.data(), signs.data(), linear.data(), upper.data(),
                                    alpha.data(), gradient.data(), lengths.data(), unit, doubt.data()};
            const DualMeanings meanings{to, to + count, to + 2 * count, to + 3 * count, to + 4 * count, to + 5 * count,
                                        to + 6 * count, to + 7 * count, to + 8 * count, to + 9 * count, each,
                                        each + size};
            nb::gil_scoped_release release;
            const DualMeaning meaning(points, meanings);
            for (std::int64_t k = 0; k < count; ++k) meaning.find(k);
        },
        "starts"_a, "rows"_a, "signs"_a, "linear"_a, "upper"_a, "alpha"_a, "gradient"_a, "lengths"_a, "unit"_a, "doubt"_a,
        "separate"_a, "numbers"_a, "variables"_a);
    m.def(
        "dual_gap",
        [](std::int64_t middle, const Array<const double>& signs, const Array<const double>& upper,
           const std::optional<Array<const double>>& price, const Array<const double>& linear,
           const Array<const double>& alpha, const Array<const double>& E) {
            const auto n = static_cast<std::int64_t>(alpha.shape(0));
            expect(middle >= 0 && middle <= n, "middle must be between 0 and the number of variables");
            for (const auto* each : {&signs, &upper, &linear, &E})
                expect_room(*each, alpha.size(), "signs, upper, linear and E need a number for every variable");
            expect_room(price, alpha.size(), "price: one for every variable is needed");
            const DualGapOf of(signs.data(), upper.data(), pointer(price), linear.data(), alpha.data(),
                               E.data());
            DualGap found;
            {
                nb::gil_scoped_release release;
                of.add(0, middle, found);
                of.add(middle, n, found);
            }
            return nb::make_tuple(found.gap, found.objective, found.freedom);
        },
        "middle"_a, "signs"_a, "upper"_a, "price"_a.none(), "linear"_a, "alpha"_a, "E"_a);
    m.def(
        "fit_sigmoids",
        [](const Array<const double>& scores, const Array<const bool>& positive, const Array<const std::int64_t>& starts,
           const std::optional<Array<const double>>& weights, const Array<double>& A, const Array<double>& B) {
            const std::int64_t* at = starts.data();
            const double *f = scores.data(), *s = pointer(weights);
            const bool* side = positive.data();
            double *to_A = A.data(), *to_B = B.data();
            const std::size_t count = A.size();
            expect_room(B, count, "B: one for every sigmoid is needed");
            expect_room(starts, count + 1, "starts: one more than sigmoids are needed");
            for (std::size_t k = 0; k < count; ++k) expect(0 <= at[k] && at[k] <= at[k + 1], "starts must ascend from 0");
            const auto last = static_cast<std::size_t>(at[count]);
            expect_room(scores, last, "scores: starts go beyond them");
            expect_room(positive, last, "positive: starts go beyond them");
            expect_room(weights, last, "weights: starts go beyond them");
            nb::gil_scoped_release release;
            for (std::size_t k = 0; k < count; ++k)
                Sigmoid(f + at[k], side + at[k], s ? s + at[k] : nullptr, at[k + 1] - at[k]).fit(to_A[k], to_B[k]);
        },
        "scores"_a, "positive"_a, "starts"_a, "weights"_a.none(), "A"_a, "B"_a);
}
