// What dual points of support vector machines mean, problem by problem: solvers/machines.py states the formulas. NumPy
// would take some forty calls for them, which on small data cost as much as the fit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace separatrix {

// Problems one after the other in the same arrays: the variables of problem k are starts[k] … starts[k + 1] − 1.
struct DualPoints {
    std::int64_t count;
    bool separate;                         // whether the sums over either sign are kept
    const std::int64_t *starts, *rows;
    const double *signs, *linear, *upper, *alpha, *gradient;
    const double* lengths;                 // √|k(x, x)| of each sample
    double unit;                           // how far kernel values are from exact, in units of √(k(x, x) k(z, z))
    const double* doubt;                   // of each problem, what else its gradient may be wrong by
};

// Numbers per problem, and coef and slack per variable.
struct DualMeanings {
    double *intercept, *rho, *square, *primal, *dual, *gap, *relative_gap, *rounding, *vanishes, *indefinite;
    double *coef, *slack;
};

class DualMeaning {
    // Part of the summed lengths below which a difference of vectors is no more than rounding.
    static constexpr double CANCELLED = 1e-9;
    // How far below 0 w'w is beyond any rounding: of kernel values in single precision, too.
    static constexpr double BELOW = 1e-6;
    // Of a² k(x, x), what the rounding of products may have made of the sums.
    static constexpr double ROUNDING = 2 * std::numeric_limits<double>::epsilon();
    static constexpr double INF = std::numeric_limits<double>::infinity();

    const DualPoints& p;
    const DualMeanings& to;

    // What a variable adds to the gap.
    static double part(double a, double u, double h) { return h > 0 ? a * h : (a - u) * h; }

    // Whether the second half of the variables are the other deviations of the first half's samples: ν-regression.
    bool twice(std::int64_t begin, std::int64_t end) const {
        const std::int64_t *first = p.rows + begin, *second = first + (end - begin) / 2;
        return p.separate && (end - begin) % 2 == 0 && std::equal(first, second, second);
    }

    // The mean over the free variables of a sign (0: of both), else the middle of the interval that optimality leaves.
    double level(std::int64_t begin, std::int64_t end, int sign) const {
        double sum = 0, free = 0, low = -INF, high = INF;
        for (std::int64_t v = begin; v < end; ++v) {
            const bool up = p.signs[v] > 0;
            if (sign != 0 && up != (sign > 0)) continue;
            const double value = sign != 0 || up ? p.gradient[v] : -p.gradient[v], a = p.alpha[v], u = p.upper[v];
            if (a > 0 && a < u) {
                sum += value;
                free += 1;
            } else if (u > 0) {  // a sample without weight says nothing of the level
                // With s = −1 a variable that grows moves s a down: its bounds change places.
                const bool below = (a >= u) == (sign != 0 || up);
                if (below) low = value > low ? value : low;
                else high = value < high ? value : high;
            }
        }
        if (free > 0) return sum / free;
        if (!std::isfinite(low)) low = high;
        if (!std::isfinite(high)) high = low;
        return std::isfinite(low) ? 0.5 * (low + high) : 0.0;
    }

public:
    DualMeaning(const DualPoints& points, const DualMeanings& meanings) : p(points), to(meanings) {}

    void find(std::int64_t k) const {
        const std::int64_t begin = p.starts[k], end = p.starts[k + 1];
        double b, rho = 0;
        if (p.separate) {
            const double first = level(begin, end, 1), second = level(begin, end, -1);
            rho = 0.5 * (first + second);
            b = 0.5 * (second - first);
        } else b = -level(begin, end, 0);
        const bool hard = end > begin && p.upper[begin] == INF;
        double products = 0, constant = 0, gap = 0, worst = 0, length = 0, rounding = 0, wider = 0;
        double total = 0, longest = 0;
        bool ones = true, zeros = true;  // p = −1 or p = 0 throughout
        // What both deviations of a sample have in common is in no weight and in no dual value, only in their fixed
        // sum: the gap has ε times it, and errors of scores do not reach it.
        const std::int64_t half = twice(begin, end) ? (end - begin) / 2 : 0;
        const auto common = [&](std::int64_t v) {
            return half == 0 ? 0.0 : std::fmin(p.alpha[v], p.alpha[v < begin + half ? v + half : v - half]);
        };
        for (std::int64_t v = begin; v < end; ++v) {
            const double a = p.alpha[v] - common(v), own = p.lengths[p.rows[v]], term = a * own;
            total += a;
            longest = own > longest ? own : longest;
            length += term;
            rounding += term * term;
        }
        const double score_error = p.unit * std::sqrt(rounding);  // of a sample whose own kernel value is 1
        for (std::int64_t v = begin; v < end; ++v) {
            const double shared = common(v), a = p.alpha[v] - shared, g = p.gradient[v];
            const double h = g + p.signs[v] * b - rho, slack = h < 0 ? -h : 0.0;
            products += a * g;
            constant += a * p.linear[v];
            if (!hard) {  // convex in h, so the worst of an interval is at one of its ends
                const double error = p.doubt[k] + score_error * p.lengths[p.rows[v]];
                const double u = p.upper[v], at = part(a, u, h);
                gap += at - rho * shared;
                wider += std::fmax(part(a, u, h - error), part(a, u, h + error)) - at;
            }
            worst = slack > worst ? slack : worst;
            ones &= p.linear[v] == -1.0;
            zeros &= p.linear[v] == 0.0;
            to.coef[v] = p.signs[v] * p.alpha[v] + 0.0;  // no −0.0
            to.slack[v] = slack;
        }
        const double square = products - constant;
        rounding = ROUNDING * rounding + wider + (square < 0 ? -2 * square : 0.0);  // no length is negative
        gap += rounding;
        const double dual = -0.5 * (products + constant + rounding);
        double primal = dual + gap;
        if (hard) {  // the weights are stretched until no sample violates the margin
            primal = worst < 1 && ones ? 0.5 * square / ((1 - worst) * (1 - worst)) : INF;
            gap = primal - dual;
        }
        const double size = std::fmax(std::fabs(primal), std::fabs(dual));
        to.intercept[k] = b + 0.0;
        to.rho[k] = rho;
        to.square[k] = square;
        to.primal[k] = primal;
        to.dual[k] = dual;
        to.gap[k] = gap;
        to.relative_gap[k] = gap == 0 ? 0.0 : size > 0 && size < INF && !std::isnan(gap) ? gap / size : INF;
        to.rounding[k] = rounding;
        // Samples at the origin add no length: what is left of others, then, is less than any rounding.
        const double traces = 0.25 * ROUNDING * ROUNDING * total * total * longest * longest;
        const bool indefinite = square < -std::fmax(BELOW * length * length, traces);
        // Only the sum of fixed totals can come to nothing; a machine with a linear term is free to be 0.
        to.vanishes[k] = zeros && !indefinite && square <= std::fmax(CANCELLED * length * length, traces);
        to.indefinite[k] = indefinite;
    }
};

}  // namespace separatrix
