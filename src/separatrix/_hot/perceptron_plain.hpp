// The perceptron's column rule, as most binary fits have it: one column, samples that all have weight 1, no
// penalty and no average. The same steps as in perceptron.hpp, with all that changes from row to row in
// registers: of rows with few values, what they do not need would take a third of the time.
#pragma once

#include <cstdint>

#include "csr_column.hpp"
#include "perceptron.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
inline bool is_plain(const PerceptronState<T>& s) {
    return s.columns == 1 && !s.joint && !s.row_weights && !s.scale && !s.drift && *s.remaining <= 0;
}
template <class T>
inline bool is_plain(const JudgeState<T>& s) {
    return s.columns == 1 && !s.largest_wins && !s.row_weights;
}

// judge() of one column of sparse rows.
template <class Rows, class T = typename Rows::value_type>
[[gnu::flatten]] void judge_plainly(const Rows& all, JudgeState<T>& s, const Visits& visits) {
    const Rows rows = all;
    const T margin = s.margin, intercept = s.intercepts[0], largest = *s.largest;
    const T constant = 2 * largest_of(s.intercepts, 1, margin);
    std::int64_t errors = 0;
    const bool ahead = jumps(visits);
    for (std::int64_t at = visits.begin; at < visits.end; ++at) {
        if (ahead) prefetch(rows, visits, at);
        const std::int64_t i = visits.row(at), c = s.classes[visits.order[at]];
        T f;
        const T bound = bounded_column_scores<1>(rows, i, s.weights, s.stride, largest, constant, &f);
        f += intercept;
        if (!is_clear(f, margin, bound)) {
            rows.scores(i, s.weights, s.stride, 1, nullptr, &f);
            f += intercept;
        }
        errors += is_error(s.codes[c], f, margin);
    }
    s.errors[0] += static_cast<double>(errors);
}

// JUDGED: the errors of the judge's weights are counted on the way.
template <bool JUDGED, class Rows, class T = typename Rows::value_type>
[[gnu::flatten]] void learn_plainly(const Rows& all, PerceptronState<T>& s, JudgeState<T>* judge,
                                    const Visits& visits) {
    const Rows rows = all;  // a copy, of which nobody else knows
    const T eta = s.eta, margin = s.margin, intercept_step = s.fit_intercept ? s.intercept_step : T(0);
    const T judged_intercept = JUDGED ? judge->intercepts[0] : T(0);
    T* const weights = s.weights;
    const std::int64_t stride = s.stride;
    T intercept = s.intercepts[0], largest = s.largest;
    std::int64_t mistakes = 0, updates = 0, errors = 0;
    double criterion = s.tally[CRITERION];
    const bool ahead = jumps(visits);
    for (std::int64_t at = visits.begin; at < visits.end; ++at) {
        if (ahead) prefetch(rows, visits, at);
        const std::int64_t i = visits.row(at), c = s.classes[visits.order[at]];
        const int code = s.wanted[c] ? s.codes[c] : 0;
        T f[2];
        if constexpr (Rows::FEATURE_MAJOR) {
            const T both[] = {intercept, judged_intercept};
            const T constant = 2 * largest_of(both, 1 + JUDGED, margin);
            const T bound =
                bounded_column_scores<1 + JUDGED>(rows, i, weights, stride, largest, constant, f);
            f[0] += intercept;
            if (!is_clear(f[0], margin, bound)) {
                rows.scores(i, weights, stride, 1, nullptr, f);
                f[0] += intercept;
            }
            if (JUDGED) {
                f[1] += judged_intercept;
                if (!is_clear(f[1], margin, bound)) {
                    rows.scores(i, judge->weights, stride, 1, nullptr, f + 1);
                    f[1] += judged_intercept;
                }
            }
        } else {
            if constexpr (JUDGED) rows.two_scores(i, weights, judge->weights, f);
            else rows.scores(i, weights, stride, 1, nullptr, f);
            f[0] += intercept;
            f[1] += judged_intercept;
        }
        if (JUDGED) errors += is_error(code, f[1], margin);
        const T m = code * f[0];
        const bool mistaken = m <= T(0);
        if (code == 0 || (!mistaken && !(m < margin))) continue;
        if (m < margin) criterion += static_cast<double>(margin) - m;
        mistakes += mistaken;
        ++updates;
        const T amount = code * eta;
        if constexpr (Rows::FEATURE_MAJOR) {
            const T met = rows.add(i, amount, weights, stride, 0);
            largest = met > largest ? met : largest;
        } else {
            rows.add(i, amount, weights, stride, 0);
        }
        intercept += amount * intercept_step;
    }
    s.intercepts[0] = intercept;
    s.largest = largest;
    s.tally[MISTAKES] += static_cast<double>(mistakes);
    s.tally[MARGIN_ERRORS] += static_cast<double>(updates);
    s.tally[CRITERION] = criterion;
    s.updates[0] += updates;
    *s.clock += static_cast<double>(visits.end - visits.begin);
    if (JUDGED) judge->errors[0] += static_cast<double>(errors);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
