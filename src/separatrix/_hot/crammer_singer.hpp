// Dual coordinate descent for the joint (Crammer-Singer) linear SVM, one sample and all its classes at a time.
//
//     min over W:  ½‖W‖² + Σ_i C_i max_k (h_ik − h_{i c_i}),   h_ik = w_k·x_i + [k ≠ c_i]
//
// Dual variables: mu_i in the simplex, alpha_i = C_i (t_i − mu_i), W = Σ alpha_i x_iᵀ. With q = C_i ‖x_i‖² the best
// mu of one sample, all others fixed, is the projection of D/q onto the simplex, D = h + q mu_old:
//
//     mu_k = max(0, D_k − beta)/q,   Σ_k mu_k = 1
//
// (Keerthi et al., 2008). beta rises to its value in a few rounds over the classes that are still above it (Michelot,
// 1986), which needs no sorting and suits registers. The gap of a sample, C_i (max_k h_ik − mu_i·h_i), falls out.
#pragma once

#include <cstdint>

#include "crammer_singer_state.hpp"
#include "padded_rows.hpp"
#include "rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class S, class Rows>
class CrammerSingerPass {
    using B = Block<S>;
    using V = typename B::Values;
    static constexpr int LONGEST_SLEEP = 15;
    static constexpr S LOWEST = S(-1e30);

    const Rows& rows;
    CrammerSingerState<S>& state;
    const std::int64_t padded;
    S *const h, *const step, *const bias;

public:
    CrammerSingerPass(const Rows& rows_, CrammerSingerState<S>& state_)
        : rows(rows_), state(state_), padded(state_.padded), h(state_.scratch), step(h + padded),
          bias(state_.weights + rows_.n_features * padded) {}

    void run(const Visits& visits) {
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            const std::int64_t i = visits.order[at];
            if (at + 2 < visits.end) rows.prefetch(visits.row(at + 2));
            std::uint8_t& sleep = state.asleep[i];
            if (sleep & 15) {
                --sleep;
                continue;
            }
            const double gap = visit(i, pairs_of(rows, visits.row(at)));
            // Samples without use twice in a row sleep longer each time: the high bits say how long.
            int length = sleep >> 4;
            length = gap <= state.negligible ? (length < LONGEST_SLEEP ? length + 1 : length) : 0;
            sleep = static_cast<std::uint8_t>(length << 4 | (length > 1 ? length - 1 : 0));
            state.tally[1] += gap;
            state.tally[3] += 1;
        }
    }

private:
    template <class Body>
    void each(Body body) {
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) body(k);
    }

    // One sample's step; returns its gap before.
    template <class Pairs>
    double visit(std::int64_t i, const Pairs& row) {
        const S cost = static_cast<S>(state.cost[i]), q = cost * static_cast<S>(state.norms[i]);
        const S constant = static_cast<S>(state.constant);
        S* mu = state.mu + i * padded;
        each([&](std::int64_t k) { B::store(h + k, S(1) + constant * B::load(bias + k)); });
        h[state.classes[i]] -= S(1);
        add_scores(row, state.weights, padded, h);
        for (std::int64_t k = state.columns; k < padded; ++k) h[k] = LOWEST;
        V most = B::all(LOWEST), highest = most;
        each([&](std::int64_t k) {
            const V value = B::load(h + k);
            most = B::upper(most, value);
            highest = B::upper(highest, value + q * B::load(mu + k));
        });
        const S top = B::largest(most), start = B::largest(highest);
        V shortfall{};
        each([&](std::int64_t k) { shortfall += B::load(mu + k) * (top - B::load(h + k)); });
        const double gap = static_cast<double>(cost) * B::sum(shortfall);
        if (gap <= 0.1 * state.negligible) return gap > 0 ? gap : 0;

        const S beta = threshold(mu, q, start);
        V total{};
        each([&](std::int64_t k) {
            const V excess = B::load(h + k) + q * B::load(mu + k) - start - beta;
            const V value = B::choose(excess > V{}, excess, V{});
            total += value;
            B::store(step + k, value);
        });
        const S factor = S(1) / B::sum(total);
        V linear{}, square{};
        each([&](std::int64_t k) {
            const V old = B::load(mu + k), fresh = factor * B::load(step + k), d = fresh - old;
            linear += d * B::load(h + k);
            square += d * d;
            B::store(mu + k, fresh);
            B::store(step + k, -cost * d);
        });
        each([&](std::int64_t k) { B::store(bias + k, B::load(bias + k) + constant * B::load(step + k)); });
        add_outer(row, step, padded, state.weights, 0, padded);
        state.tally[0] += static_cast<double>(cost) * (B::sum(linear) - S(0.5) * q * B::sum(square));
        state.tally[2] += 1;
        return gap;
    }

    // beta − top with Σ_k max(0, D_k − beta) = q: only classes within q of the highest can be above it.
    S threshold(const S* mu, S q, S top) {
        S beta = -q;
        for (;;) {
            V sum{}, number{};
            each([&](std::int64_t k) {
                const V D = B::load(h + k) + q * B::load(mu + k) - top;
                const auto above = D > B::all(beta);
                sum += B::choose(above, D, V{});
                number += B::choose(above, B::all(S(1)), V{});
            });
            const S count = B::sum(number);
            if (count == S(0)) break;  // q is below the last place of the highest score
            const S next = (B::sum(sum) - q) / count;
            if (!(next > beta)) break;
            beta = next;
        }
        return beta;
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
