// Inner products of the plane through three points of dual coordinate descent, and its best point within the box:
// solvers/_extrapolation.py says what for. Sums are of double precision, in the rows' order.
#pragma once

#include <cstdint>
#include <type_traits>

#include "box_dual_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Rows whose sums stay in registers before they are added to memory's.
constexpr std::int64_t PLANE_ROWS = 256;

// Calls visit(row, column, place) for every row and each LANES columns, which end in end(column): for one block
// of rows after the other, which the nearest caches hold while all columns are taken.
template <int LANES, class Begin, class Visit, class End>
void by_columns(std::int64_t count, std::int64_t padded, Begin begin, Visit visit, End end) {
    for (std::int64_t first = 0; first < count; first += PLANE_ROWS) {
        const std::int64_t last = first + PLANE_ROWS < count ? first + PLANE_ROWS : count;
        for (std::int64_t k = 0; k < padded; k += LANES) {
            begin();
            for (std::int64_t i = first; i < last; ++i) visit(i, k, i * padded + k);
            end(k);
        }
    }
}

template <class Do>
void by_lanes(std::int64_t padded, Do run) {
    if (padded == 1) run(std::integral_constant<int, 1>{});
    else run(std::integral_constant<int, 8>{});
}

// sums, [7][padded]: curvatures of both directions now − old and old − older (first, mixed, second), slopes along
// them, and sums of the dual variables of both.
template <class S>
void plane_sums(const BoxDualState<S>& state, const PlanePoints<S>& points, double* sums) {
    const std::int64_t padded = state.padded;
    by_lanes(padded, [&](auto lanes) {
        constexpr int LANES = lanes;
        double part[7][LANES];
        const auto begin = [&] {
            for (auto& row : part)
                for (double& value : row) value = 0;
        };
        const auto end = [&](std::int64_t k) {
            for (int s = 0; s < 7; ++s)
                for (int l = 0; l < LANES; ++l) sums[s * padded + k + l] += part[s][l];
        };
        by_columns<LANES>(points.samples, padded, begin, [&](std::int64_t i, std::int64_t k, std::int64_t at) {
            const double delta = state.delta[i], number = state.numbers ? state.numbers[i] : 0.0;
            const S* targets = state.targets + state.classes[i] * padded + k;
            for (int l = 0; l < LANES; ++l) {
                const double now = state.v[at + l], old = points.old_v[at + l];
                const double a = now - old, b = old - points.older_v[at + l];
                const double sign = now > 0 ? state.epsilon : now < 0 ? -state.epsilon : 0.0;
                const double slope = targets[l] + number - delta * now - sign;
                part[0][l] += delta * a * a;
                part[1][l] += delta * a * b;
                part[2][l] += delta * b * b;
                part[3][l] += slope * a;
                part[4][l] += slope * b;
                part[5][l] += a;
                part[6][l] += b;
            }
        }, end);
        by_columns<LANES>(points.features, padded, begin, [&](std::int64_t, std::int64_t, std::int64_t at) {
            for (int l = 0; l < LANES; ++l) {
                const double now = state.weights[at + l], old = points.old_w[at + l];
                const double a = now - old, b = old - points.older_w[at + l];
                part[0][l] += a * a;
                part[1][l] += a * b;
                part[2][l] += b * b;
                part[3][l] -= now * a;
                part[4][l] -= now * b;
            }
        }, end);
    });
}

// Writes v + tau[0] (v − old) + tau[1] (old − older), clipped to the box, over older_v and how far that is from v
// to moves; adds what the dual gains, but for weights and offsets, to gains.
template <class S>
void plane_point(const BoxDualState<S>& state, const PlanePoints<S>& points, const double* tau, S* moves, double* gains) {
    const std::int64_t padded = state.padded;
    for (std::int64_t i = 0; i < points.samples; ++i) {
        const double delta = state.delta[i], number = state.numbers ? state.numbers[i] : 0.0, U = state.upper[i];
        const std::int64_t at = i * padded, own = state.classes[i] * padded;
        for (std::int64_t k = 0; k < padded; ++k) {
            const double now = state.v[at + k], old = points.old_v[at + k];
            const double low = U * state.low[own + k], high = U * state.high[own + k];
            double z = now + tau[k] * (now - old) + tau[padded + k] * (old - points.older_v[at + k]);
            z = z < low ? low : z > high ? high : z;
            // Beyond 0 the loss is another if ε > 0: its kink is an end, too.
            z = state.epsilon > 0 && z * now < 0 ? 0 : z;
            points.older_v[at + k] = static_cast<S>(z);
            z = points.older_v[at + k];
            moves[at + k] = static_cast<S>(z - now);
            const double sizes = (z < 0 ? -z : z) - (now < 0 ? -now : now);
            gains[k] += (z - now) * (state.targets[own + k] + number - 0.5 * delta * (z + now)) - state.epsilon * sizes;
        }
    }
}

// Takes from gains what the weights lose by these changes: Σ change (w + ½ change).
template <class S>
void plane_loss(const BoxDualState<S>& state, const S* changes, std::int64_t features, double* gains) {
    const std::int64_t padded = state.padded;
    by_lanes(padded, [&](auto lanes) {
        constexpr int LANES = lanes;
        double part[LANES];
        by_columns<LANES>(features, padded, [&] { for (double& value : part) value = 0; },
                          [&](std::int64_t, std::int64_t, std::int64_t at) {
            for (int l = 0; l < LANES; ++l) {
                const double change = changes[at + l];
                part[l] += change * (state.weights[at + l] + 0.5 * change);
            }
        }, [&](std::int64_t k) {
            for (int l = 0; l < LANES; ++l) gains[k + l] -= part[l];
        });
    });
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
