// The joint (Crammer-Singer) machine on few data by semismooth Newton steps and the method of multipliers: as in
// small_newton.hpp, with the simplex in place of the box. With h = W x + 1 − t each sample's loss is replaced by
//
//     C_i max over mu in the simplex: [mu·h − h_c − ‖mu − mu0‖²/(2 rho)],   mu = project(mu0 + rho h),
//
// its envelope around the last dual variables mu0. On the classes S that mu uses, its Hessian in h is
// C_i rho (I − 11ᵀ/|S|). Once the smoothed problem is solved well enough, mu0 = mu, and rho grows.
#pragma once

#include <cstdint>

#include "crammer_singer_state.hpp"
#include "l1_model.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

class SmallJointNewton {
    static constexpr double MOST_GROWTH = 10, LEAST_GROWTH = 1.5, SHORT = 0.02, STEEPEST = 1e9;

    SmallJoint& s;
    const std::int64_t n, D, K, size;
    double *const h, *const change, *const H, *const gradient, *const move, *const room, *const sums;
    double value = 0;  // of the smoothed losses

public:
    explicit SmallJointNewton(SmallJoint& state)
        : s(state), n(state.n), D(state.features), K(state.columns), size(D * K), h(state.work), change(h + n * K),
          H(change + n * K), gradient(H + size * size), move(gradient + size), room(move + size),
          sums(room + 2 * size) {}

    // Takes some steps, fewer where the gap is within tol before, and leaves objective and bound of the last.
    void run(std::int64_t steps) {
        scores(s.W, h);
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t k = 0; k < K; ++k) h[i * K + k] += k != s.classes[i];
        value = smooth(0, s.mu);
        for (std::int64_t step = 0;; ++step) {
            const double rest = measure(), gap = s.primal - s.dual;
            if (gap <= s.tol * s.primal || step >= steps) return;
            // (Where C is large the gap tells little: weights and dual variables must also agree.)
            if (rest <= 0.1 * gap && rest <= 0.05 * dot(s.W, s.W, size) && s.rho < STEEPEST) {
                // The easier the last smoothed problem was, the more the kink narrows in the next.
                const double grown = s.growth * (s.inner <= 1 ? 2 : s.inner <= 3 ? 1 : 0.5);
                s.growth = grown > MOST_GROWTH ? MOST_GROWTH : grown < LEAST_GROWTH ? LEAST_GROWTH : grown;
                for (std::int64_t e = 0; e < n * K; ++e) s.mu0[e] = s.mu[e];
                s.rho *= s.growth;
                s.inner = 0;
                value = smooth(0, s.mu);
                measure();
            }
            newton_step();
            s.inner += 1;
            s.steps += 1;
        }
    }

private:
    static double dot(const double* a, const double* b, std::int64_t count) {
        double total = 0;
        for (std::int64_t j = 0; j < count; ++j) total += a[j] * b[j];
        return total;
    }

    void scores(const double* W, double* out) const {
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t k = 0; k < K; ++k) out[i * K + k] = dot(s.x + i * D, W + k * D, D);
    }

    // mu of the scores h + t change; returns the sum of the smoothed losses.
    double smooth(double t, double* mu) const {
        double total = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double* before = s.mu0 + i * K;
            double* own = mu + i * K;
            double* const score = sums;
            for (std::int64_t k = 0; k < K; ++k) {
                score[k] = t == 0 ? h[i * K + k] : h[i * K + k] + t * change[i * K + k];
                own[k] = before[k] + s.rho * score[k];
            }
            // beta rises until what is above it sums to 1 (Michelot, 1986)
            double beta = -1e300;
            for (;;) {
                double sum = -1;
                std::int64_t count = 0;
                for (std::int64_t k = 0; k < K; ++k)
                    if (own[k] > beta) sum += own[k], ++count;
                if (!count || !(sum / static_cast<double>(count) > beta)) break;
                beta = sum / static_cast<double>(count);
            }
            double linear = -score[s.classes[i]], square = 0, all = 0;
            for (std::int64_t k = 0; k < K; ++k) all += own[k] = own[k] > beta ? own[k] - beta : 0;
            // Large scores leave rounding: what is on the simplex proves a bound.
            for (std::int64_t k = 0; k < K; ++k) {
                own[k] /= all;
                linear += own[k] * score[k];
                square += (own[k] - before[k]) * (own[k] - before[k]);
            }
            total += s.cost[i] * (linear - square / (2 * s.rho));
        }
        return total;
    }

    // Objective, bound and gradient; returns what Newton's method can still take away in the smoothed problem.
    double measure() {
        double losses = 0, linear = 0, bound = 0, rest = 0;
        for (std::int64_t e = 0; e < size; ++e) gradient[e] = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double *mu = s.mu + i * K, *f = h + i * K, *x = s.x + i * D;
            const std::int64_t c = s.classes[i];
            double top = f[0];
            for (std::int64_t k = 0; k < K; ++k) {
                top = f[k] > top ? f[k] : top;
                const double alpha = s.cost[i] * ((k == c) - mu[k]);
                if (alpha != 0)
                    for (std::int64_t j = 0; j < D; ++j) gradient[k * D + j] -= alpha * x[j];
            }
            losses += s.cost[i] * (top - f[c]);
            linear += s.cost[i] * (1 - mu[c]);
        }
        for (std::int64_t e = 0; e < size; ++e) {
            bound += gradient[e] * gradient[e];
            gradient[e] += s.W[e];
            rest += gradient[e] * gradient[e];
        }
        s.primal = losses + 0.5 * dot(s.W, s.W, size);
        s.dual = linear - 0.5 * bound;
        return 0.5 * rest;
    }

    void newton_step() {
        form();
        for (std::int64_t e = 0; e < size; ++e) move[e] = -gradient[e];
        solve_positive(H, size, 0, move, room);
        scores(move, change);
        const double square = 0.5 * dot(s.W, s.W, size), first = dot(s.W, move, size);
        const double curve = 0.5 * dot(move, move, size), slope = dot(gradient, move, size);
        const double before = square + value, noise = 1e-13 * (before < 0 ? -before : before);
        double t = 1, after = value;
        for (;; t *= 0.5) {
            after = smooth(t, s.mu);
            if (square + t * (first + t * curve) + after <= before + 1e-4 * t * slope + noise) break;
            if (t < 1e-6) break;
        }
        for (std::int64_t e = 0; e < size; ++e) s.W[e] += t * move[e];
        for (std::int64_t e = 0; e < n * K; ++e) h[e] += t * change[e];
        value = after;
        if (t >= SHORT) return;
        // So few samples lie inside the kink that their piece tells little.
        s.rho /= s.growth > 4 ? s.growth : 4;
        s.growth = LEAST_GROWTH;
        value = smooth(0, s.mu);
    }

    // The lower triangle of I + Σ C_i rho (I − 11ᵀ/|S|) ⊗ x xᵀ.
    void form() {
        for (std::int64_t e = 0; e < size * size; ++e) H[e] = 0;
        for (std::int64_t e = 0; e < size; ++e) H[e * size + e] = 1;
        for (std::int64_t i = 0; i < n; ++i) {
            const double *mu = s.mu + i * K, *x = s.x + i * D;
            double used = 0;
            for (std::int64_t k = 0; k < K; ++k) used += mu[k] > 0;
            if (used < 2) continue;
            for (std::int64_t k = 0; k < K; ++k) {
                if (!(mu[k] > 0)) continue;
                for (std::int64_t l = 0; l <= k; ++l) {
                    if (!(mu[l] > 0)) continue;
                    const double factor = s.cost[i] * s.rho * ((k == l) - 1 / used);
                    for (std::int64_t a = 0; a < D; ++a) {
                        double* row = H + (k * D + a) * size + l * D;
                        const double xa = factor * x[a];
                        const std::int64_t end = k == l ? a + 1 : D;
                        for (std::int64_t e = 0; e < end; ++e) row[e] += xa * x[e];
                    }
                }
            }
        }
    }
};

inline void small_joint(SmallJoint& state, std::int64_t steps) { SmallJointNewton(state).run(steps); }

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
