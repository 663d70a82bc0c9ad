// How far a point of one dual problem is from its optimum, in the form of smo_state.hpp: E = s (Qa + p), and a price
// where the two variables of a sample are one. Asked after every solved problem of a fit, of which there may be many.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace separatrix {

struct DualGap {
    double gap = 0, objective = 0;
    double freedom = 0;  // sum of the finite bounds of free variables
};

class DualGapOf {
    static constexpr double INF = std::numeric_limits<double>::infinity();

    const double *signs, *upper, *price, *linear, *alpha, *E;

    bool is_free(std::int64_t v) const { return alpha[v] != 0 && std::fabs(alpha[v]) < upper[v]; }

    // E of a free variable is the mean of these, else the middle of the interval that optimality leaves.
    double level(std::int64_t begin, std::int64_t end) const {
        double sum = 0, least = INF, most = -INF;
        std::int64_t free = 0;
        for (std::int64_t v = begin; v < end; ++v) {
            const double a = alpha[v], u = upper[v], p = price ? price[v] : 0.0;
            if (is_free(v)) {
                sum += E[v] + (a > 0 ? p : -p);
                ++free;
                continue;
            }
            const bool grows = price || signs[v] > 0 ? a < u : a > 0, falls = price ? a > -u : signs[v] > 0 ? a > 0 : a < u;
            if (grows) least = std::fmin(least, E[v] + (a < 0 ? -p : p));
            if (falls) most = std::fmax(most, E[v] + (a > 0 ? p : -p));
        }
        if (free > 0) return sum / static_cast<double>(free);
        if (least == INF) least = most;
        if (most == -INF) most = least;
        return std::isfinite(least) ? 0.5 * (least + most) : 0.0;
    }

    // a max(0, v) + (u − a) max(0, −v)
    static double part(double a, double u, double v) { return v > 0 ? a * v : (u == INF ? a : u - a) * -v; }

public:
    DualGapOf(const double* signs, const double* upper, const double* price, const double* linear, const double* alpha,
              const double* E)
        : signs(signs), upper(upper), price(price), linear(linear), alpha(alpha), E(E) {}

    void add(std::int64_t begin, std::int64_t end, DualGap& to) const {
        const double middle = level(begin, end);
        for (std::int64_t v = begin; v < end; ++v) {
            const double a = alpha[v], u = upper[v], e = E[v] - middle;
            to.objective += 0.5 * a * signs[v] * (E[v] + linear[v]);
            if (price) {
                to.objective += price[v] * std::fabs(a);
                to.gap += part(a > 0 ? a : 0.0, u, e + price[v]) + part(a < 0 ? -a : 0.0, u, price[v] - e);
            } else {
                to.gap += part(a, u, signs[v] * e);
            }
            if (u < INF && is_free(v)) to.freedom += u;
        }
    }
};

}  // namespace separatrix
