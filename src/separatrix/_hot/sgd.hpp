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
#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// COLUMNS: their number where it is known beforehand (one, the binary case), else 0.
template <int COLUMNS, class Rows, class T = typename Rows::value_type>
class SgdPass {
public:
    SgdPass(const Rows& rows, SgdState<T>& state)
        : rows_(rows), s_(state), columns_(COLUMNS ? COLUMNS : state.columns),
          loss_(LOSS_FUNCTIONS<T>[state.loss]) {}

    void run(const Visits& visits) {
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            prefetch(rows_, visits, at);
            visit(visits.row(at), visits.order[at]);
        }
    }

private:
    static constexpr double LARGEST_SLOPE = 1e12;
    static constexpr double SMALLEST_SCALE = 1e-6;

    void visit(std::int64_t i, std::int64_t sample) {
        const std::int64_t start = s_.classes ? s_.classes[sample] * columns_ : 0;
        const T* targets = s_.targets + (s_.classes ? start : sample);
        const T* factors = s_.factors ? s_.factors + start : nullptr;
        const double weight = s_.row_weights ? static_cast<double>(s_.row_weights[sample]) : 1.0;
        const bool aggressive = s_.rate == Rate::PA1 || s_.rate == Rate::PA2;
        const double norm = aggressive ? rows_.squared_norm(i) : 0.0;
        if (s_.rate == Rate::PA1 && norm == 0.0) return;

        rows_.scores(i, s_.weights, columns_, s_.active, s_.scores);
        for (std::int64_t k = 0; k < columns_; ++k)
            s_.margins[k] = s_.scores[k] * s_.scale[k] + s_.intercepts[k];
        loss_(s_.margins, targets, columns_, s_.epsilon, s_.values, s_.slopes);

        const double common = step_size();
        int moving = 0;
        std::int64_t mover = 0;
        for (std::int64_t k = 0; k < columns_; ++k) {
            s_.steps[k] = 0;
            if (!s_.active[k]) continue;
            const double s = factors ? weight * factors[k] : weight;
            const double eta = s_.rate == Rate::COLUMN ? s_.eta[k] : common;
            s_.losses[k] += s * s_.values[k];
            double slope = s_.slopes[k];
            slope = slope > LARGEST_SLOPE ? LARGEST_SLOPE : slope < -LARGEST_SLOPE ? -LARGEST_SLOPE : slope;
            const double step = -s * (aggressive ? aggression(k, slope, norm) : eta * slope);
            if (s_.l2 > 0) shrink(k, eta);
            if (s_.l1 > 0) s_.owed[k] += s_.l1 * eta;
            if (step == 0) continue;
            s_.steps[k] = static_cast<T>(step / s_.scale[k]);
            if (s_.fit_intercept) s_.intercepts[k] += step * s_.intercept_decay;
            mover = k;
            ++moving;
        }
        // All columns in one sweep where that reads the row (CSR: looks its features up) fewer times.
        if (moving == 1) rows_.add(i, s_.steps[mover], s_.weights, columns_, mover);
        else if (moving > 1) rows_.add_all(i, s_.steps, s_.weights, columns_);
        if (s_.drift && *s_.clock >= s_.average_from) average(i);
        if (s_.l1 > 0) truncate(i);
        *s_.clock += 1;
    }

    double step_size() const {
        const double t = *s_.clock;
        if (s_.rate == Rate::INVERSE) return 1.0 / (s_.alpha * (s_.t0 + t - 1));
        if (s_.rate != Rate::POWER) return s_.eta0;
        if (s_.power == 0.5) return s_.eta0 / __builtin_sqrt(t);
        if (s_.power == 0.25) return s_.eta0 / __builtin_sqrt(__builtin_sqrt(t));
        return s_.eta0 / __builtin_pow(t, s_.power);
    }

    // The passive-aggressive step, with the sign of the slope.
    double aggression(std::int64_t k, double slope, double norm) const {
        const double loss = s_.values[k];
        if (slope == 0) return 0;
        const double most = s_.eta0;
        const double size = s_.rate == Rate::PA2 ? loss / (norm + 0.5 / most)
                                                 : (loss / norm < most ? loss / norm : most);
        return slope > 0 ? size : -size;
    }

    void shrink(std::int64_t k, double eta) {
        const double keep = 1.0 - s_.l2 * eta;
        s_.scale[k] *= keep > 0 ? keep : 0.0;
        if (s_.scale[k] >= SMALLEST_SCALE) return;
        const double scale = s_.scale[k], area = s_.drift ? s_.area[k] : 0.0;
        for (std::int64_t j = 0; j < rows_.n_features; ++j) {
            const std::int64_t at = rows_.position(j, columns_, k);
            if (s_.drift) s_.drift[at] -= area * s_.weights[at];
            s_.weights[at] = static_cast<T>(s_.weights[at] * scale);
        }
        if (s_.drift) s_.area[k] = 0.0;
        s_.scale[k] = 1.0;
    }

    // Adds the weights as they are now to their sum: those before this step count `area` times less of it.
    void average(std::int64_t i) {
        for (std::int64_t k = 0; k < columns_; ++k) {
            if (!s_.active[k]) continue;
            const double area = s_.area[k];
            if (s_.steps[k] != 0 && area != 0)
                rows_.add(i, area * s_.steps[k], s_.drift, columns_, k);
            s_.area[k] = area + s_.scale[k];
            s_.intercept_sums[k] += s_.intercepts[k];
        }
    }

    void truncate(std::int64_t i) {
        for (std::int64_t k = 0; k < columns_; ++k) {
            if (!s_.active[k]) continue;
            const double owed = s_.owed[k], scale = s_.scale[k], area = s_.drift ? s_.area[k] : 0.0;
            rows_.each_stored(i, columns_, k, [&](std::int64_t at) {
                const double change = pay(s_.weights[at], s_.paid[at], owed, scale);
                if (area != 0) s_.drift[at] += area * change;
            });
        }
    }

    const Rows rows_;
    SgdState<T>& s_;
    const std::int64_t columns_;
    const LossFunction<T> loss_;
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
