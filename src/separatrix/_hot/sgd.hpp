// Stochastic gradient descent on  alpha R(w) + (1/n) sum_i s_i l(y_i, w·x_i + b),  one pass over rows in a
// given order, all columns (binary problems side by side, or one regression) on one reading of a row:
//
//     f = w·x + b;   g = s l'(f)                      (clipped at ±1e12 before the weight s multiplies it)
//     w = (1 - eta l2) w - eta g x;   b -= eta g      (L2 part of the penalty: decay)
//     the weights of x pay what they owe to L1        (cumulative truncation, Tsuruoka et al., 2009)
//
// This is the order of scikit-learn's loop. Weights are kept as scale * weights, so that the decay costs one
// product; the mean of all weights is kept as a drift (Bottou, 2012; see SgdState), so that a sparse step
// stays sparse. Passive-aggressive steps (Crammer et al., 2006) put min(eta0, l / ‖x‖²) or
// l / (‖x‖² + 1 / (2 eta0)) in place of eta |g|.
#pragma once

#include <cstdint>

#include "rows.hpp"
#include "sgd_losses.hpp"
#include "sgd_state.hpp"
#include "truncation.hpp"
#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// COLUMNS: their number where it is known beforehand (one, the binary case), else 0.
// PLAIN: one column whose samples all have weight 1, without average, L1 and passive-aggressive steps, as most binary
// fits are. Of rows with few values, what they do not need would take a third of the time.
template <int COLUMNS, bool PLAIN, class Rows, class T = typename Rows::value_type>
class SgdPass {
public:
    SgdPass(const Rows& rows, SgdState<T>& state)
        : rows_(rows), s_(state), loss_(SgdLosses::FUNCTIONS<T>[state.loss]) {}

    // Everything within the loop, so that what changes with every visit of a plain column stays in registers.
    [[gnu::flatten]] void run(const Visits& visits) {
        const bool ahead = jumps(visits);
        SgdPass pass(rows_, s_);  // a copy, of which nobody else knows
        pass.begin();
        for (std::int64_t at = visits.begin; at < visits.end; ++at) pass.visit(visits, at, ahead);
        pass.end();
    }

private:
    static constexpr double LARGEST_SLOPE = 1e12;
    static constexpr double SMALLEST_SCALE = 1e-6;

    void begin() {
        clock_ = *s_.clock;
        if constexpr (PLAIN) scale_ = *s_.scale, intercept_ = *s_.intercepts, losses_ = *s_.losses;
    }
    void end() {
        *s_.clock = clock_;
        if constexpr (PLAIN)
            *s_.scale = scale_, *s_.intercepts = intercept_, *s_.losses = losses_ + logarithms_.sum();
    }

    std::int64_t columns() const { return COLUMNS ? COLUMNS : s_.columns; }
    double& scale(std::int64_t k) { return PLAIN ? scale_ : s_.scale[k]; }
    double& intercept(std::int64_t k) { return PLAIN ? intercept_ : s_.intercepts[k]; }
    bool aggressive() const { return !PLAIN && (s_.rate == Rate::PA1 || s_.rate == Rate::PA2); }

    void visit(const Visits& visits, std::int64_t at, bool ahead) {
        const std::int64_t i = visits.row(at), sample = visits.order[at];
        const std::int64_t start = s_.classes ? s_.classes[sample] * columns() : 0;
        const T* targets = s_.targets + (s_.classes ? start : sample);
        const T* factors = !PLAIN && s_.factors ? s_.factors + start : nullptr;
        const double weight = !PLAIN && s_.row_weights ? static_cast<double>(s_.row_weights[sample]) : 1.0;
        const double norm = aggressive() ? rows_.squared_norm(i) : 0.0;
        if (aggressive() && s_.rate == Rate::PA1 && norm == 0.0) return;

        const double common = step_size();
        T own_score, own_step;  // of one column: no way through memory, the next row waits for it
        T* const scores = COLUMNS == 1 ? &own_score : s_.scores;
        T* const steps = COLUMNS == 1 ? &own_step : s_.steps;
        rows_.quick_scores(i, s_.weights, columns(), s_.active, scores);
        // Now that nothing else is being loaded: before the scores it would take turns with the weights.
        if (ahead) prefetch(rows_, visits, at);
        if constexpr (COLUMNS == 1) {
            const double margin = own_score * scale(0) + intercept(0);
            const Point point = SgdLosses::at(s_.loss, margin, targets[0], s_.epsilon);
            own_step = step(0, point, factors ? weight * factors[0] : weight, common, norm);
        } else {
            for (std::int64_t k = 0; k < columns(); ++k)
                s_.margins[k] = scores[k] * s_.scale[k] + s_.intercepts[k];
            loss_(s_.margins, targets, columns(), s_.epsilon, s_.values, s_.slopes);
            for (std::int64_t k = 0; k < columns(); ++k)
                steps[k] = step(k, {s_.values[k], s_.slopes[k], 0.0}, factors ? weight * factors[k] : weight, common,
                                norm);
        }
        add(i, steps, s_.weights);
        if constexpr (!PLAIN) {
            if (s_.drift && clock_ >= s_.average_from) average(i, steps);
            if (s_.l1 > 0) truncate(i);
        }
        clock_ += 1;
    }

    // Column k in a visit: returns what multiple of the row its stored weights are to move by.
    T step(std::int64_t k, const Point& point, double weight, double common, double norm) {
        if (!PLAIN && !s_.active[k]) return 0;
        const double eta = s_.rate == Rate::COLUMN ? s_.eta[k] : common;
        if constexpr (PLAIN) losses_ += point.value, logarithms_.add(point.logged);
        else s_.losses[k] += weight * point.loss();
        if (s_.l2 > 0) shrink(k, eta);
        if (!PLAIN && s_.l1 > 0) s_.owed[k] += s_.l1 * eta;
        // The quotient does not need the slope: the processor has it by the time that the slope is known.
        const double pull = aggressive() ? -weight : -weight * eta, stored_pull = pull / scale(k);
        double slope = point.slope;
        slope = slope > LARGEST_SLOPE ? LARGEST_SLOPE : slope < -LARGEST_SLOPE ? -LARGEST_SLOPE : slope;
        if (aggressive()) slope = aggression(point.value, slope, norm);
        if (slope == 0) return 0;
        if (s_.fit_intercept) intercept(k) += pull * slope * s_.intercept_decay;
        return static_cast<T>(stored_pull * slope);
    }

    double step_size() const {
        const double t = clock_;
        if (s_.rate == Rate::INVERSE) return 1.0 / (s_.alpha * (s_.t0 + t - 1));
        if (s_.rate != Rate::POWER) return s_.eta0;
        if (s_.power == 0.5) return s_.eta0 / __builtin_sqrt(t);
        if (s_.power == 0.25) return s_.eta0 / __builtin_sqrt(__builtin_sqrt(t));
        return s_.eta0 / __builtin_pow(t, s_.power);
    }

    // The passive-aggressive step, with the sign of the slope.
    double aggression(double loss, double slope, double norm) const {
        if (slope == 0) return 0;
        const double most = s_.eta0;
        const double size = s_.rate == Rate::PA2 ? loss / (norm + 0.5 / most)
                                                 : (loss / norm < most ? loss / norm : most);
        return slope > 0 ? size : -size;
    }

    void shrink(std::int64_t k, double eta) {
        const double keep = 1.0 - s_.l2 * eta;
        scale(k) *= keep > 0 ? keep : 0.0;
        if (scale(k) >= SMALLEST_SCALE) return;
        multiply_in(rows_, s_, columns(), k, scale(k));
        scale(k) = 1.0;
    }

    // Rare, so kept out of the loop; by itself, so that nothing of the loop goes through memory for it.
    [[gnu::noinline]] static void multiply_in(const Rows rows, SgdState<T>& s, std::int64_t columns, std::int64_t k,
                                              double scale) {
        for (std::int64_t j = 0; j < rows.n_features; ++j) {
            const std::int64_t at = rows.position(j, columns, k);
            if (s.drift) s.drift[at] -= s.area[k] * s.weights[at];
            s.weights[at] = static_cast<T>(s.weights[at] * scale);
        }
        if (s.drift) s.area[k] = 0.0;
    }

    // column k += steps[k] * row i: all columns in one sweep, unless only one moves
    template <class W>
    void add(std::int64_t i, const W* steps, W* weights) {
        int moving = 0;
        std::int64_t mover = 0;
        for (std::int64_t k = 0; k < columns(); ++k)
            if (steps[k] != W(0)) ++moving, mover = k;
        if (moving == 1) rows_.add(i, steps[mover], weights, columns(), mover);
        else if (moving > 1) rows_.add_all(i, steps, weights, columns());
    }

    // Adds the weights as they are now to their sum: those before this step count `area` times less of it.
    void average(std::int64_t i, const T* steps) {
        double* const drifts = s_.slopes;
        for (std::int64_t k = 0; k < columns(); ++k) {
            drifts[k] = s_.area[k] * steps[k];
            if (!s_.active[k]) continue;
            s_.area[k] += s_.scale[k];
            s_.intercept_sums[k] += s_.intercepts[k];
        }
        add(i, drifts, s_.drift);
    }

    // Lets the weights of the row's features pay to L1: all of dense rows, those that CSR rows store.
    void truncate(std::int64_t i) {
        const std::int64_t count = columns();
        T* const weights = s_.weights;
        T* const paid = s_.paid;
        double* const drift = s_.drift;
        const double* const owed = s_.owed;
        const double* const scale = s_.scale;
        double* const share = s_.margins;
        double* const area = s_.values;
        for (std::int64_t k = 0; k < count; ++k) {
            share[k] = s_.active[k] ? 1.0 / scale[k] : 0.0;
            area[k] = drift ? s_.area[k] : 0.0;
        }
        if (Rows::FEATURE_MAJOR && COLUMNS != 1) {
            rows_.each_stored(i, count, 0, [=](std::int64_t first) {
                if (drift)
                    for (std::int64_t k = 0; k < count; ++k)
                        drift[first + k] +=
                            area[k] * pay(weights[first + k], paid[first + k], owed[k], scale[k], share[k]);
                else
#pragma GCC ivdep
                    for (std::int64_t k = 0; k < count; ++k)
                        pay(weights[first + k], paid[first + k], owed[k], scale[k], share[k]);
            });
            return;
        }
        for (std::int64_t k = 0; k < count; ++k) {
            if (share[k] == 0) continue;
            const double o = owed[k], s = scale[k], h = share[k], a = area[k];
            if (a == 0)
                rows_.each_stored(i, count, k, [=](std::int64_t at) { pay(weights[at], paid[at], o, s, h); });
            else
                rows_.each_stored(i, count, k, [=](std::int64_t at) {
                    drift[at] += a * pay(weights[at], paid[at], o, s, h);
                });
        }
    }

    const Rows rows_;
    SgdState<T>& s_;
    const LossFunction<T> loss_;
    double clock_ = 0, scale_ = 1, intercept_ = 0, losses_ = 0;  // the last three of a plain column
    LogProduct logarithms_;                                      // likewise, part of its losses
};

template <class Rows, class T = typename Rows::value_type>
void descend(const Rows& rows, SgdState<T>& s, const Visits& visits) {
    if (s.columns != 1) return SgdPass<0, false, Rows>(rows, s).run(visits);
    const bool plain = !s.row_weights && !s.factors && !s.drift && !(s.l1 > 0) && s.active[0];
    if (plain && s.rate != Rate::PA1 && s.rate != Rate::PA2) return SgdPass<1, true, Rows>(rows, s).run(visits);
    SgdPass<1, false, Rows>(rows, s).run(visits);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
