// Dual coordinate descent for softmax regression, one sample and all its classes at a time.
//
//     min over W, b:  C Σ_i s_i [logsumexp_k f_k(x_i) − f_{c_i}(x_i)] + ½‖W‖²,   f_k(x) = w_k·x + b_k
//
// Dual variables: mu_i in the simplex, alpha_i = C s_i (t_i − mu_i), W = Σ alpha_i x_iᵀ. With
// q = C s_i ‖x_i‖² the best mu of one sample, all others fixed, solves
//
//     log mu_k + q mu_k = h_k − Z,   h_k = f_k + q mu_old,k,   Σ_k mu_k = 1,
//
// found by Newton steps on log mu and Z together (Yu, Huang and Lin, 2011, solve the same problem class
// by class). The rows stand for x − m and have sigma added to all their inner products, which changes
// nothing where Σ alpha = 0, the condition of a free intercept, and makes the descent much faster.
#pragma once

#include <cstdint>

#include "padded_rows.hpp"
#include "rows.hpp"
#include "softmax_dual_state.hpp"
#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::uint8_t NEW = 255;
constexpr int LONGEST_SLEEP = 7;

template <class S, class Rows>
class SoftmaxDualPass {
    using B = Block<S>;
    using V = typename B::Values;
    static constexpr S TINY = sizeof(S) == 4 ? S(1e-30) : S(1e-290);

    const Rows& rows;
    SoftmaxDualState<S>& state;
    const std::int64_t padded;
    S *const score, *const old_mu, *const mu, *const nu, *const residual, *const valid;

public:
    SoftmaxDualPass(const Rows& rows_, SoftmaxDualState<S>& state_)
        : rows(rows_), state(state_), padded(state_.padded), score(state_.scratch),
          old_mu(score + padded), mu(old_mu + padded), nu(mu + padded), residual(nu + padded),
          valid(residual + padded) {
        for (std::int64_t k = 0; k < padded; ++k) valid[k] = k < state.columns ? S(1) : S(0);
    }

    void run(const Visits& visits) {
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            const std::int64_t i = visits.order[at];
            if (at + 2 < visits.end) rows.prefetch(visits.row(at + 2));
            std::uint8_t& sleep = state.asleep[i];
            const int rest = sleep & 15;
            if (sleep != NEW && rest > 0) {
                --sleep;
                continue;
            }
            const double gain = state.columns == 1 ? visit_pair(i, pairs_of(rows, visits.row(at)))
                                                   : visit(i, pairs_of(rows, visits.row(at)));
            // Samples without use twice in a row sleep longer each time: the high bits say how long.
            int length = sleep == NEW ? 0 : sleep >> 4;
            length = gain < state.negligible ? (length < LONGEST_SLEEP ? length + 1 : length) : 0;
            sleep = static_cast<std::uint8_t>(length << 4 | (length > 1 ? length - 1 : 0));
            state.tally[0] += gain;
            state.tally[2] += 1;
        }
    }

private:
    template <class Body>
    void each(Body body) {
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) body(k);
    }

    // One sample's step; returns the gain of the dual that it predicts.
    template <class Pairs>
    double visit(std::int64_t i, const Pairs& row) {
        const S scale = static_cast<S>(state.scale[i]), dot = static_cast<S>(state.mean_dots[i]);
        const S shrink = static_cast<S>(state.shrink), q = scale * shrink * static_cast<S>(state.norms[i]);
        const std::int64_t own = state.classes[i];
        S* stored = state.nu + i * padded;
        each([&](std::int64_t k) {
            B::store(score + k, B::load(state.offsets + k) - dot * B::load(state.sums + k));
        });
        add_scores(row, state.weights, padded, score);
        for (std::int64_t k = state.columns; k < padded; ++k) score[k] = 0;
        double gain;
        if (state.asleep[i] == NEW) {
            each([&](std::int64_t k) { B::store(old_mu + k, V{}); });
            old_mu[own] = 1;
            if (!(q < S(4)) || !from_scores(q)) solve(q);
            normalise();
            gain = 0;  // From alpha = 0, where the dual is 0, to here: exact.
            for (std::int64_t k = 0; k < state.columns; ++k) {
                const S step = old_mu[k] - mu[k];
                gain -= scale * (mu[k] * nu[k] + step * (score[k] + S(0.5) * q * step));
            }
        } else {
            gain = 0.5 * scale * newton(q, stored);
            if (gain < 0.1 * state.negligible) return gain;
            if (too_far || !polish(q)) solve(q);
            normalise();
        }
        each([&](std::int64_t k) {
            const V m = B::load(mu + k), old = B::load(old_mu + k), step = shrink * scale * (old - m);
            B::store(state.spread + k, B::load(state.spread + k) + scale * (m * (S(1) - m) - old * (S(1) - old)));
            B::store(stored + k, B::load(nu + k));
            B::store(residual + k, step);
            B::store(state.sums + k, B::load(state.sums + k) + step);
            B::store(state.offsets + k,
                     B::load(state.offsets + k) + (static_cast<S>(state.constant) - dot) * step);
        });
        add_outer(row, residual, padded, state.weights, 0, padded);
        state.tally[1] += 1;
        return gain;
    }

    // A first Newton step from the stored nu; returns Σ mu d (f − nu − Z), twice the gain over C s.
    double newton(S q, const S* stored) {
        V weight{}, weighted{};
        each([&](std::int64_t k) {
            const V n = B::load(stored + k), m = B::exp(n), y = B::load(score + k) - n;
            const V w = m / (S(1) + q * m);
            weight += w;
            weighted += w * y;
            B::store(nu + k, n);
            B::store(old_mu + k, m);
        });
        const S Z = B::sum(weighted) / B::sum(weight);
        V gain{}, rise = B::all(S(-1));
        each([&](std::int64_t k) {
            const V n = B::load(nu + k), m = B::load(old_mu + k), y = B::load(score + k) - n - Z;
            const V d = B::load(valid + k) * y / (S(1) + q * m), moved = B::exp(n + d);
            gain += m * d * y;
            // A large rise matters only to a probability that becomes noticeable.
            rise = B::upper(rise, B::lower(d, (S(10) + S(10) * q) * moved));
            B::store(nu + k, n + d);
            B::store(mu + k, moved);
        });
        shift = Z;
        too_far = B::largest(rise) > S(1);
        mask_tail();
        return B::sum(gain);
    }

    S shift = 0;           // Z
    bool too_far = false;  // whether the first Newton step was too long to be trusted

    void mask_tail() {
        for (std::int64_t k = state.columns; k < padded; ++k) {
            mu[k] = old_mu[k] = 0;
            nu[k] = S(-100);
        }
    }

    void normalise() {
        V total{};
        each([&](std::int64_t k) { total += B::load(mu + k); });
        const S sum = B::sum(total), log_sum = log_of(sum), factor = S(1) / sum;
        each([&](std::int64_t k) {
            B::store(nu + k, B::load(nu + k) - log_sum);
            B::store(mu + k, B::load(mu + k) * factor);
        });
    }

    // Joint Newton steps on nu and Z until they are small; false if they are not going to be.
    bool polish(S q) {
        constexpr S ENOUGH = sizeof(S) == 4 ? S(1e-5) : S(1e-10);
        for (int round = 0; round < 5; ++round) {
            V weight{}, weighted{}, total{};
            each([&](std::int64_t k) {
                const V m = B::load(mu + k);
                const V r = B::load(score + k) + q * (B::load(old_mu + k) - m) - shift - B::load(nu + k);
                const V w = m / (S(1) + q * m);
                weight += w;
                weighted += w * r;
                total += m;
                B::store(residual + k, r);
            });
            const S change = (B::sum(weighted) + (B::sum(total) - S(1))) / B::sum(weight);
            if (!(change < S(1) && change > S(-1))) return false;
            V size{};
            each([&](std::int64_t k) {
                const V m = B::load(mu + k), d = (B::load(residual + k) - change) / (S(1) + q * m);
                const V n = B::load(nu + k) + d;
                size += m * d * d;
                B::store(nu + k, n);
                B::store(mu + k, B::exp(n));
            });
            shift += change;
            mask_tail();
            if (B::sum(size) < ENOUGH) return true;
        }
        return false;
    }

    // A first solution for short rows, from the probabilities of the present scores.
    bool from_scores(S q) {
        shift = log_sum_exp();
        each([&](std::int64_t k) {
            const V n = B::load(score + k) - shift;
            B::store(nu + k, n);
            B::store(mu + k, B::exp(n));
        });
        mask_tail();
        return polish(q);
    }

    S log_sum_exp() {
        S most = score[0];
        for (std::int64_t k = 1; k < state.columns; ++k) most = score[k] > most ? score[k] : most;
        for (std::int64_t k = state.columns; k < padded; ++k) score[k] = most - S(80);
        V parts{};
        each([&](std::int64_t k) { parts += B::exp(B::load(score + k) - most); });
        return most + log_of(B::sum(parts));
    }

    // nu, mu and Z from anywhere: Z by Newton's method kept within a bracket, nu by Newton from a start
    // that is near for every q: with u = h − Z + log q, q mu solves w + log w = u.
    void solve(S q) {
        const S log_q = log_of(q > TINY ? q : TINY);
        for (std::int64_t k = state.columns; k < padded; ++k) old_mu[k] = 0;
        S highest = score[0] + q * old_mu[0];
        for (std::int64_t k = 1; k < state.columns; ++k) {
            const S h = score[k] + q * old_mu[k];
            highest = h > highest ? h : highest;
        }
        S low = highest - q, high = highest + log_of(static_cast<S>(state.columns));
        S Z = log_sum_exp();
        Z = Z < low ? low : Z > high ? high : Z;
        constexpr S ENOUGH = sizeof(S) == 4 ? S(1e-3) : S(1e-7);
        for (int round = 0; round < 60; ++round) {
            for (std::int64_t k = state.columns; k < padded; ++k) score[k] = Z - S(80);
            V total{}, slope{};
            each([&](std::int64_t k) {
                const V y = B::load(score + k) + q * B::load(old_mu + k) - Z, u = y + log_q;
                const V e = B::exp(B::lower(u, B::all(S(1))));
                const V large = u - B::rough_log(B::upper(u, B::all(S(1))));
                V n = y - B::choose(u > B::all(S(1)), large, e / (S(1) + e)), m = B::exp(n);
                for (int step = 0; step < 3; ++step) {
                    n += (y - n - q * m) / (S(1) + q * m);
                    m = B::exp(n);
                }
                B::store(nu + k, n);
                B::store(mu + k, m);
                total += m;
                slope += m / (S(1) + q * m);
            });
            const S sum = B::sum(total), error = sum - S(1);
            (error > 0 ? low : high) = Z;
            // Σ mu is convex in Z: Newton from the left never overshoots; from the right its logarithm
            // is nearly linear.
            S step = (error > 0 ? error : log_of(sum > TINY ? sum : TINY) * sum) / B::sum(slope);
            S next = Z + step;
            if (!(next > low && next < high)) next = low + (high - low) / 2;
            step = next - Z;
            if (step < ENOUGH && step > -ENOUGH) break;
            Z = next;
        }
        mask_tail();
    }

    // Two classes in one column: logit(mu) + q mu = q mu_old − y f for the probability mu of the wrong
    // class; alpha = C s y mu.
    template <class Pairs>
    double visit_pair(std::int64_t i, const Pairs& row) {
        const S scale = static_cast<S>(state.scale[i]), dot = static_cast<S>(state.mean_dots[i]);
        const S shrink = static_cast<S>(state.shrink), q = scale * shrink * static_cast<S>(state.norms[i]);
        const S y = state.classes[i] ? S(1) : S(-1);
        const S f = single_score(row, state.weights) + (state.offsets[0] - dot * state.sums[0]);
        const bool fresh = state.asleep[i] == NEW;
        const S before = fresh ? S(0) : logistic(state.nu[i]), goal = q * before - y * f;
        // The root lies between goal − q and goal.
        S low = goal - q, high = goal, eta = fresh ? goal : state.nu[i];
        eta = eta < low ? low : eta > high ? high : eta;
        for (int round = 0; round < 60; ++round) {
            const S m = logistic(eta), r = goal - eta - q * m;
            if (r > 0) low = eta; else high = eta;
            const S step = r / (S(1) + q * m * (S(1) - m));
            S next = eta + step;
            if (!(next > low && next < high) || round % 4 == 3) next = low + (high - low) / 2;
            const S change = next - eta;
            eta = next;
            if ((change < 0 ? -change : change) < (sizeof(S) == 4 ? S(1e-4) : S(1e-8))) break;
        }
        const S mu_new = logistic(eta), move = mu_new - before;
        const double gain = fresh ? scale * (-y * f * mu_new - S(0.5) * q * mu_new * mu_new + entropy(mu_new))
                                  : 0.5 * scale * move * (-y * f - state.nu[i]);
        if (!fresh && gain < 0.1 * state.negligible) return gain;
        const S step = shrink * scale * y * move;
        state.nu[i] = eta;
        state.sums[0] += step;
        state.offsets[0] += (static_cast<S>(state.constant) - dot) * step;
        state.spread[0] += scale * (mu_new * (S(1) - mu_new) - before * (S(1) - before));
        add_single(row, step, state.weights);
        state.tally[1] += 1;
        return gain;
    }

    static S entropy(S m) {
        const S other = S(1) - m;
        return -(m > TINY ? m * log_of(m) : S(0)) - (other > TINY ? other * log_of(other) : S(0));
    }

    static S logistic(S eta) {
        if constexpr (sizeof(S) == 4) {
            const S e = __builtin_expf(eta < 0 ? eta : -eta);
            return (eta < 0 ? e : S(1)) / (S(1) + e);
        } else {
            const S e = __builtin_exp(eta < 0 ? eta : -eta);
            return (eta < 0 ? e : S(1)) / (S(1) + e);
        }
    }
};

// scores[i] = row i times weights; both padded.
template <class S, class Rows>
void all_scores(const Rows& rows, const S* weights, std::int64_t padded, std::int64_t count, S* scores) {
    if (padded == 1) {
        for (std::int64_t i = 0; i < count; ++i) scores[i] = single_score(pairs_of(rows, i), weights);
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        S* out = scores + i * padded;
        for (std::int64_t k = 0; k < padded; ++k) out[k] = 0;
        add_scores(pairs_of(rows, i), weights, padded, out);
    }
}

// weights[j][k] += Σ_i x_ij R[i][k] for the columns begin … end − 1: threads share the columns.
template <class S, class Rows>
void add_transposed(const Rows& rows, const S* R, std::int64_t padded, std::int64_t count, std::int64_t begin,
                    std::int64_t end, S* weights) {
    for (std::int64_t i = 0; i < count; ++i) {
        const S* step = R + i * padded;
        // Rows that add nothing, often most of them, are not read.
        std::int64_t k = begin;
        while (k < end && step[k] == 0) ++k;
        if (k == end) continue;
        const auto row = pairs_of(rows, i);
        if (padded == 1) {
            add_single(row, step[0], weights);
        } else {
            add_outer(row, step, padded, weights, begin, end);
        }
    }
}

// P[i] = softmax(scores[i] + offsets), 0 in the padding; returns Σ weights[i] times the loss of sample i.
inline double softmax_rows(const double* scores, const double* offsets, const std::int32_t* classes,
                           const double* weights, std::int64_t count, std::int64_t columns,
                           std::int64_t padded, double* P) {
    using B = Block<double>;
    double loss = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double* f = scores + i * padded;
        double* p = P + i * padded;
        double most = f[0] + offsets[0];
        for (std::int64_t k = 1; k < columns; ++k) most = f[k] + offsets[k] > most ? f[k] + offsets[k] : most;
        const double own = f[classes[i]] + offsets[classes[i]] - most;
        for (std::int64_t k = 0; k < padded; k += B::WIDTH)
            B::store(p + k, B::exp(B::load(f + k) + B::load(offsets + k) - most));
        double total = 0;
        for (std::int64_t k = 0; k < columns; ++k) total += p[k];
        for (std::int64_t k = 0; k < columns; ++k) p[k] /= total;
        for (std::int64_t k = columns; k < padded; ++k) p[k] = 0;
        // Where the own class is the largest, the loss is log1p of the others: no digit is lost.
        double others = 0;
        for (std::int64_t k = 0; k < columns; ++k) others += k == classes[i] ? 0 : p[k];
        loss += weights[i] * (others < 0.5 ? -__builtin_log1p(-others) : log_of(total) - own);
    }
    return loss;
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
