// The perceptron family, one pass over rows in a given order.
//
// Joint rule (all classes learn together), sample (x, c), rate eta, margin b:
//     for each rival k != c:  if a_k·x + b > a_c·x:  a_k -= eta x
//     if any rival was pushed down:                   a_c += eta x
// Column rule (binary problems side by side), code y in {-1, +1} of the sample in that column:
//     if y f(x) <= 0  or  y f(x) < b:                 w += eta y x
//
// A row of weight s is presented ceil(s) times in a row, the last time with the fractional step,
// so that weight 2 is the same as the row twice. Where the weights are to be judged, a second set
// of columns holds the weights of the last pass's end, and their errors are counted while the row
// is in the cache: choosing the best pass costs no second reading of the data.
#pragma once

#include <cstdint>

#include "perceptron_state.hpp"
#include "rows.hpp"
#include "visits.hpp"

namespace separatrix {

namespace SEPARATRIX_ISA {
namespace {

template <bool PENALISED, class Rows, class T = typename Rows::value_type>
class PerceptronPass {
public:
    PerceptronPass(const Rows& rows, PerceptronState<T>& state) : rows_(rows), s_(state) {}

    // Returns the position where it stopped: before the end only when the repeated presentations
    // of one heavy row used up the budget (s.remaining holds what is left of it).
    std::int64_t run(const Visits& visits) {
        constexpr std::int64_t AHEAD = 16;
        std::int64_t budget = visits.budget;
        double& left = *s_.remaining;
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            if (visits.fetch) rows_.prefetch(visits.fetch[at]);
            else if (at + AHEAD < visits.end) rows_.prefetch(visits.row(at + AHEAD));
            const std::int64_t i = visits.row(at), sample = visits.order[at];
            const std::int64_t c = s_.classes[sample];
            bool to_judge = false;
            if (left <= 0) {
                left = s_.row_weights ? static_cast<double>(s_.row_weights[sample]) : 1.0;
                to_judge = s_.total > s_.columns;
            }
            while (left > 0) {
                const double weight = left < 1.0 ? left : 1.0;
                score(i, c);
                if (to_judge) judge(c, left);
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
    void score(std::int64_t i, std::int64_t c) {
        const std::uint8_t* wanted = s_.wanted + c * s_.total;
        if (PENALISED && s_.truncation > 0)
            for (std::int64_t k = 0; k < s_.columns; ++k)
                if (wanted[k]) settle(i, k);
        rows_.scores(i, s_.weights, s_.total, wanted, s_.scores);
        if (PENALISED)
            for (std::int64_t k = 0; k < s_.columns; ++k)
                s_.scores[k] = static_cast<T>(s_.scores[k] * s_.scale[k]);
        for (std::int64_t k = 0; k < s_.total; ++k) s_.scores[k] += s_.intercepts[k];
    }

    bool learn_jointly(std::int64_t i, std::int64_t c, double weight) {
        const T* f = s_.scores;
        const T own = f[c];
        double deepest = 0;
        bool wrong = false, mistaken = false;
        if (PENALISED)
            for (std::int64_t k = 0; k < s_.columns; ++k) shrink(k, weight);
        for (std::int64_t k = 0; k < s_.columns; ++k) {
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
        const std::int8_t* codes = s_.codes + c * s_.columns;
        const std::uint8_t* wanted = s_.wanted + c * s_.total;
        bool any = false;
        for (std::int64_t k = 0; k < s_.columns; ++k) {
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

    // column k += sign * eta * weight * (1, x_i)
    void step(std::int64_t i, std::int64_t k, int sign, double weight) {
        const T amount = sign * s_.eta * static_cast<T>(weight);
        if (PENALISED)
            rows_.add(i, static_cast<T>(amount / s_.scale[k]), s_.weights, s_.total, k);
        else
            rows_.add(i, amount, s_.weights, s_.total, k);
        if (s_.fit_intercept) s_.intercepts[k] += amount;
        if (s_.drift) {
            const double weighted = *s_.clock * amount;
            rows_.add(i, weighted, s_.drift, s_.columns, k);
            if (s_.fit_intercept) s_.drift_intercepts[k] += weighted;
        }
        ++s_.updates[k];
    }

    // Errors of the frozen columns on a row of the given weight.
    void judge(std::int64_t c, double weight) {
        const T* f = s_.scores + s_.columns;
        if (s_.largest_wins) {
            for (std::int64_t k = 0; k < s_.columns; ++k) {
                if (k == c) continue;
                if (f[k] > f[c] || (f[k] == f[c] && k < c) || f[k] + s_.margin > f[c]) {
                    s_.judged[0] += weight;
                    return;
                }
            }
            return;
        }
        const std::int8_t* codes = s_.codes + c * s_.columns;
        for (std::int64_t k = 0; k < s_.columns; ++k) {
            if (codes[k] == 0) continue;
            const bool mistaken = codes[k] > 0 ? f[k] < T(0) : f[k] >= T(0);
            if (mistaken || codes[k] * f[k] < s_.margin) s_.judged[k] += weight;
        }
    }

    // Penalised weights are kept as scale * weights, so that shrinking them all costs one product.
    void shrink(std::int64_t k, double weight) {
        const double keep = 1.0 - s_.decay * weight;
        s_.scale[k] *= keep > 0 ? keep : 0.0;
        s_.owed[k] += s_.truncation * weight;
        if (s_.scale[k] < 1e-9) {
            for (std::int64_t j = 0; j < rows_.n_features; ++j) {
                T& w = s_.weights[rows_.position(j, s_.total, k)];
                w = static_cast<T>(w * s_.scale[k]);
            }
            s_.scale[k] = 1.0;
        }
    }

    // Lets the weights that row i touches pay what they owe to L1 (cumulative truncation of
    // Tsuruoka, Tsujii and Ananiadou, 2009). The others pay at the end of the pass.
    void settle(std::int64_t i, std::int64_t k) {
        const double scale = s_.scale[k], owed = s_.owed[k];
        rows_.each(i, s_.total, k, [&](std::int64_t at) {
            const double before = s_.weights[at], paid = s_.paid[at];
            double after = before;
            if (before > 0) {
                after = before - (owed + paid) / scale;
                if (after < 0) after = 0;
            } else if (before < 0) {
                after = before + (owed - paid) / scale;
                if (after > 0) after = 0;
            }
            s_.weights[at] = static_cast<T>(after);
            s_.paid[at] = static_cast<T>(paid + scale * (after - before));
        });
    }

    const Rows& rows_;
    PerceptronState<T>& s_;
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
