// The perceptron family, one pass over rows in a given order.
//
// Joint rule (all classes learn together), sample (x, c), rate eta, margin b:
//     for each rival k != c:  if a_k·x + b > a_c·x:  a_k -= eta x
//     if any rival was pushed down:                   a_c += eta x
// Column rule (binary problems side by side), code y in {-1, +1} of the sample in that column:
//     if y f(x) <= 0  or  y f(x) < b:                 w += eta y x
//
// A row of weight s is presented ceil(s) times in a row, the last time with the fractional step,
// so that weight 2 is the same as the row twice. Judging counts the errors of fixed weights, those of
// the last pass's end, over the same visits, within the learning pass or beside it, while the rows are
// in the cache: it costs no second reading of the data.
//
// Only decisions change weights and counts. CSR rows are therefore scored in their quickest order, with a
// bound of the difference to the order of dense rows; where that could change a decision, in this one.
#pragma once

#include <cstdint>

#include "perceptron_state.hpp"
#include "rows.hpp"
#include "truncation.hpp"
#include "visits.hpp"

namespace separatrix {

namespace SEPARATRIX_ISA {
namespace {

// Whether a score of its column is an error for a sample of this code. No branch: it cannot be foreseen.
template <class T>
inline bool is_error(int code, T f, T margin) {
    const bool mistaken = code > 0 ? f < T(0) : f >= T(0);
    return (code != 0) & (mistaken | (code * f < margin));
}

// Counts the errors of the scores that s.scores holds for a row of class c.
template <class T>
inline void count_errors(JudgeState<T>& s, std::int64_t c, double weight) {
    const T* f = s.scores;
    if (s.largest_wins) {
        bool wrong = false;
        for (std::int64_t k = 0; k < s.columns; ++k)
            wrong |= k != c && (f[k] > f[c] || (f[k] == f[c] && k < c) || f[k] + s.margin > f[c]);
        if (wrong) s.errors[0] += weight;
        return;
    }
    const std::int8_t* codes = s.codes + c * s.columns;
    for (std::int64_t k = 0; k < s.columns; ++k)
        s.errors[k] += is_error(codes[k], f[k], s.margin) ? weight : 0.0;
}

inline float distance(float a, float b) { return __builtin_fabsf(a - b); }
inline double distance(double a, double b) { return __builtin_fabs(a - b); }

// Whether scores that are off by at most `bound` still decide as they should: each column by its sign and
// the margin, or by which of them is the largest. False for what is not a number.
template <class T>
inline bool is_clear(T f, T margin, T bound) {
    const T size = distance(f, T(0));
    return (size > bound) & (distance(size, margin) > bound);
}
template <class T>
inline bool signs_are_clear(const T* f, const std::uint8_t* wanted, std::int64_t columns, T margin, T bound) {
    bool clear = true;
    for (std::int64_t k = 0; k < columns; ++k) clear &= (wanted[k] == 0) | is_clear(f[k], margin, bound);
    return clear;
}
template <class T>
inline bool largest_is_clear(const T* f, std::int64_t columns, std::int64_t c, T margin, T bound) {
    bool clear = true;
    for (std::int64_t k = 0; k < columns; ++k)
        clear &= (k == c) | ((distance(f[k], f[c]) > 4 * bound) & (distance(f[k] + margin, f[c]) > 4 * bound));
    return clear;
}

// Scores of fixed weights, summed in the order of dense rows.
template <class Rows, class T = typename Rows::value_type>
inline void judge_scores(const Rows& rows, JudgeState<T>& s, std::int64_t i, std::int64_t c) {
    rows.scores(i, s.weights, s.stride, s.columns, s.wanted + c * s.columns, s.scores);
    for (std::int64_t k = 0; k < s.columns; ++k) s.scores[k] += s.intercepts[k];
}

// The largest of the numbers' magnitudes and of one more.
template <class T>
inline T largest_of(const T* values, std::int64_t count, T largest) {
    for (std::int64_t k = 0; k < count; ++k) {
        const T size = distance(values[k], T(0));
        largest = size > largest ? size : largest;
    }
    return largest;
}

// Scores of fixed weights that are off by at most `bound` and still lack the intercepts: finished, or computed anew in
// the order of dense rows where the difference could change a decision.
template <class Rows, class T = typename Rows::value_type>
inline void finish_judge_scores(const Rows& rows, JudgeState<T>& s, std::int64_t i, std::int64_t c, T bound) {
    for (std::int64_t k = 0; k < s.columns; ++k) s.scores[k] += s.intercepts[k];
    if (!(s.largest_wins ? largest_is_clear(s.scores, s.columns, c, s.margin, bound)
                         : signs_are_clear(s.scores, s.wanted + c * s.columns, s.columns, s.margin, bound)))
        judge_scores(rows, s, i, c);
}

// Adds the errors of fixed weights over the visits to s.errors.
template <class Rows, class T = typename Rows::value_type>
void judge(const Rows& rows, JudgeState<T>& s, const Visits& visits) {
    const T constant = largest_of(s.intercepts, s.columns, s.margin);
    const bool ahead = jumps(visits);
    for (std::int64_t at = visits.begin; at < visits.end; ++at) {
        if (ahead) prefetch(rows, visits, at);
        const std::int64_t i = visits.row(at), sample = visits.order[at], c = s.classes[sample];
        if constexpr (Rows::FEATURE_MAJOR)
            finish_judge_scores(
                rows, s, i, c,
                rows.bounded_scores(i, s.weights, s.stride, s.columns, *s.largest, 2 * constant, s.scores));
        else
            judge_scores(rows, s, i, c);
        count_errors(s, c, s.row_weights ? static_cast<double>(s.row_weights[sample]) : 1.0);
    }
}

// COLUMNS: their number where it is known beforehand (one, the binary case), else 0.
template <bool PENALISED, int COLUMNS, class Rows, class T = typename Rows::value_type>
class PerceptronPass {
public:
    // judge: null, or the fixed weights to judge on the way
    PerceptronPass(const Rows& rows, PerceptronState<T>& state, JudgeState<T>* judge)
        : rows_(rows), s_(state), judge_(judge), columns_(COLUMNS ? COLUMNS : state.columns) {}

    // Returns the position where it stopped: before the end only when the repeated presentations
    // of one heavy row used up the budget (s.remaining holds what is left of it).
    std::int64_t run(const Visits& visits) {
        std::int64_t budget = visits.budget;
        double& left = *s_.remaining;
        const bool ahead = jumps(visits);
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            if (ahead) prefetch(rows_, visits, at);
            const std::int64_t i = visits.row(at), sample = visits.order[at];
            const std::int64_t c = s_.classes[sample];
            bool to_judge = false;
            if (left <= 0) {
                left = s_.row_weights ? static_cast<double>(s_.row_weights[sample]) : 1.0;
                to_judge = judge_ != nullptr;
            }
            while (left > 0) {
                const double weight = left < 1.0 ? left : 1.0;
                score(i, c, to_judge);
                if (to_judge) count_errors(*judge_, c, left);
                to_judge = false;
                const bool wrong = s_.joint ? learn_jointly(i, c, weight) : learn_columns(i, c, weight);
                left -= weight;
                *s_.clock += weight;
                if (!wrong && !PENALISED) {
                    // Nothing changed, so the remaining presentations would be right as well.
                    *s_.clock += left;
                    left = 0;
                }
                if (--budget <= 0 && left > 0) return at;
            }
        }
        return visits.end;
    }

private:
    // Scores of row i, and those of the judged weights if they are wanted too.
    void score(std::int64_t i, std::int64_t c, bool to_judge) {
        if (PENALISED && s_.truncation > 0)
            for (std::int64_t k = 0; k < columns_; ++k)
                if (s_.wanted[c * columns_ + k]) settle(i, k);
        if constexpr (Rows::FEATURE_MAJOR) {
            quick_score(i, c, to_judge);
        } else if constexpr (COLUMNS == 1 && !PENALISED) {
            if (!to_judge) return exact_score(i, c);
            T both[2];
            rows_.two_scores(i, s_.weights, judge_->weights, both);
            s_.scores[0] = both[0] + s_.intercepts[0];
            judge_->scores[0] = both[1] + judge_->intercepts[0];
        } else {
            if (to_judge) judge_scores(rows_, *judge_, i, c);
            exact_score(i, c);
        }
    }

    void quick_score(std::int64_t i, std::int64_t c, bool to_judge) {
        T* const f = s_.scores;
        T constant = largest_of(s_.intercepts, columns_, s_.margin);
        if (to_judge) constant = largest_of(judge_->intercepts, columns_, constant);
        const std::int64_t count = to_judge ? 2 * columns_ : columns_;
        const T bound = rows_.bounded_scores(i, s_.weights, s_.stride, count, s_.largest, 2 * constant, f);
        finish(f);
        if (!(s_.joint ? largest_is_clear(f, columns_, c, s_.margin, bound)
                       : signs_are_clear(f, s_.wanted + c * columns_, columns_, s_.margin, bound)))
            exact_score(i, c);
        if (to_judge) finish_judge_scores(rows_, *judge_, i, c, bound);
    }

    void exact_score(std::int64_t i, std::int64_t c) {
        rows_.scores(i, s_.weights, s_.stride, columns_, s_.wanted + c * columns_, s_.scores);
        finish(s_.scores);
    }

    // Products with the stored weights become scores.
    void finish(T* f) {
        for (std::int64_t k = 0; k < columns_; ++k) {
            if (PENALISED) f[k] = static_cast<T>(f[k] * s_.scale[k]);
            f[k] += s_.intercepts[k];
        }
    }

    bool learn_jointly(std::int64_t i, std::int64_t c, double weight) {
        const T* f = s_.scores;
        const T own = f[c];
        double deepest = 0;
        bool wrong = false, mistaken = false;
        if (PENALISED)
            for (std::int64_t k = 0; k < columns_; ++k) shrink(k, weight);
        for (std::int64_t k = 0; k < columns_; ++k) {
            if (k == c) continue;
            // Among equal scores the first class wins.
            if (f[k] > own || (f[k] == own && k < c)) mistaken = true;
            if (f[k] + s_.margin > own) {
                const double depth = static_cast<double>(f[k] + s_.margin) - own;
                if (depth > deepest) deepest = depth;
                step(i, k, -1, weight);
                wrong = true;
            }
        }
        if (wrong) step(i, c, +1, weight);
        s_.tally[MISTAKES] += mistaken;
        s_.tally[MARGIN_ERRORS] += wrong;
        s_.tally[CRITERION] += weight * deepest;
        return wrong;
    }

    bool learn_columns(std::int64_t i, std::int64_t c, double weight) {
        const std::int8_t* codes = s_.codes + c * columns_;
        const std::uint8_t* wanted = s_.wanted + c * columns_;
        bool any = false;
        for (std::int64_t k = 0; k < columns_; ++k) {
            if (!wanted[k]) continue;
            if (PENALISED) shrink(k, weight);
            const T m = codes[k] * s_.scores[k];
            if (m < s_.margin) s_.tally[CRITERION] += weight * (static_cast<double>(s_.margin) - m);
            const bool mistaken = m <= T(0);
            if (!mistaken && !(m < s_.margin)) continue;
            s_.tally[MISTAKES] += mistaken;
            s_.tally[MARGIN_ERRORS] += 1;
            step(i, k, codes[k], weight);
            any = true;
        }
        return any;
    }

    // column k += sign * eta * weight * (intercept_step, x_i)
    void step(std::int64_t i, std::int64_t k, int sign, double weight) {
        const T amount = sign * s_.eta * static_cast<T>(weight);
        // What is stored is the weight divided by its scale; it shrinks until the next step.
        const double scale = PENALISED ? s_.scale[k] : 1.0;
        const T stored = PENALISED ? static_cast<T>(amount / scale) : amount;
        if constexpr (Rows::FEATURE_MAJOR)
            s_.largest = larger(s_.largest, static_cast<T>(rows_.add(i, stored, s_.weights, s_.stride, k) * scale));
        else
            rows_.add(i, stored, s_.weights, s_.stride, k);
        if (s_.fit_intercept) s_.intercepts[k] += amount * s_.intercept_step;
        if (s_.drift) {
            const double weighted = *s_.clock * amount;
            rows_.add(i, weighted, s_.drift, columns_, k);
            if (s_.fit_intercept) s_.drift_intercepts[k] += weighted * s_.intercept_step;
        }
        ++s_.updates[k];
    }

    // Penalised weights are kept as scale * weights, so that shrinking them all costs one product.
    void shrink(std::int64_t k, double weight) {
        const double keep = 1.0 - s_.decay * weight;
        s_.scale[k] *= keep > 0 ? keep : 0.0;
        s_.owed[k] += s_.truncation * weight;
        if (s_.scale[k] < 1e-9) {
            for (std::int64_t j = 0; j < rows_.n_features; ++j) {
                T& w = s_.weights[rows_.position(j, s_.stride, k)];
                w = static_cast<T>(w * s_.scale[k]);
            }
            s_.scale[k] = 1.0;
        }
    }

    // Lets the weights that row i touches pay what they owe to L1 (cumulative truncation of
    // Tsuruoka, Tsujii and Ananiadou, 2009). The others pay at the end of the pass.
    void settle(std::int64_t i, std::int64_t k) {
        const double scale = s_.scale[k], owed = s_.owed[k];
        rows_.each(i, s_.stride, k, [&](std::int64_t at) {
            pay(s_.weights[at], s_.paid[at], owed, scale, 1.0 / scale);
        });
    }

    static T larger(T a, T b) { return a > b ? a : b; }

    const Rows rows_;
    PerceptronState<T>& s_;
    JudgeState<T>* const judge_;
    const std::int64_t columns_;
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
