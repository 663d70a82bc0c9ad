// Semismooth Newton steps and the method of multipliers (solvers/semismooth_newton.py tells the method) for data so
// few that a step in Python would take longer to call than to compute.
#pragma once

#include "box_dual.hpp"
#include "l1_model.hpp"
#include "small_newton_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// How far to go from w to z, at most all the way: where the slope of the objective, which rises from start < 0, is
// about 0. r: the loss, and how its scores change on the way.
inline double l1_search(Response r, const double* w, const double* z, const double* lambda, std::int64_t size,
                        double start) {
    constexpr double ENOUGH = 0.01;
    double low = 0, high = 1, t = 1;
    for (int step = 0; step < 60; ++step) {
        r.t = t;
        const ResponseSums sums = respond(r);
        double slope = -sums.slope;
        for (std::int64_t j = 0; j < size; ++j) {
            // From the left: a weight that becomes 0 at the end comes from its old side.
            const double move = z[j] - w[j], now = t == 1 ? z[j] : w[j] + t * move;
            slope += lambda[j] * (now > 0 ? move : now < 0 ? -move : move < 0 ? move : -move);
        }
        if (slope != slope) return low;
        if (t == 1 ? slope <= ENOUGH * -start : (slope < 0 ? -slope : slope) <= ENOUGH * -start) return t;
        (slope < 0 ? low : high) = t;
        t -= slope / sums.bend;
        if (!(t > low && t < high)) t = low > 0 ? 0.5 * (low + high) : 0.2 * high;
        if (high - low < 1e-9 * high) return low;
    }
    return low;
}

// The derivative of the penalty's and the smooth part's sum at w towards z.
inline double l1_slope(const double* g, const double* w, const double* z, const double* lambda, std::int64_t size) {
    double slope = 0;
    for (std::int64_t j = 0; j < size; ++j) {
        const double move = z[j] - w[j];
        slope += g[j] * move + lambda[j] * (w[j] > 0 ? move : w[j] < 0 ? -move : move < 0 ? -move : move);
    }
    return slope;
}

class SmallNewton {
    SmallNewtonState& s;
    static constexpr int TOGETHER = 4;
    const std::int64_t n, d, size;  // size: features and intercept
    // H; room for a model's factors; a step, where it leads, the model's gradient; how the scores change
    double *const H, *const room, *const move, *const end, *const slopes, *const change;

public:
    explicit SmallNewton(SmallNewtonState& state)
        : s(state), n(state.n), d(state.d), size(d + state.intercept), H(state.work), room(H + size * size),
          move(room + size * size + 4 * size), end(move + size), slopes(end + size), change(slopes + size) {}

    // Judges the columns that have moved, moves multipliers where it is time, and says which columns go on.
    SmallNewtonSums measure() {
        SmallNewtonSums sums{};
        for (std::int64_t k = 0; k < s.columns; ++k) {
            SmallColumn& c = s.each[k];
            const SmallNewtonRules& rules = s.rules;
            if (c.fresh) judge(k);
            c.fresh = false;
            if (waits(c) && c.rest <= 0.1 * enough(c) && c.rho < rules.steepest) {
                if (s.bounded) __builtin_memcpy(s.V0 + k * n, s.V + k * n, static_cast<std::size_t>(n) * sizeof(double));
                // The easier the last smoothed problem was, the more the kink narrows in the next.
                const double growth = c.growth * (c.inner <= 1 ? 2.0 : c.inner <= 3 ? 1.0 : 0.5);
                c.growth = growth < rules.least_growth  ? rules.least_growth
                           : growth > rules.most_growth ? rules.most_growth
                                                        : growth;
                c.rho = c.rho * c.growth < rules.steepest ? c.rho * c.growth : rules.steepest;
                c.inner = 0;
                if (c.rho > c.highest) {
                    c.highest = c.rho;
                    c.least_rest = __builtin_huge_val();
                }
                judge(k);
            }
            c.idle = c.gap < 0.9 * c.least || c.rest < 0.9 * c.least_rest ? 0 : c.idle + 1;
            c.least = c.gap < c.least ? c.gap : c.least;
            c.least_rest = c.rest < c.least_rest ? c.rest : c.least_rest;
            const bool tired = c.idle > rules.patience;
            c.active = waits(c) && !tired;
            sums.stuck |= waits(c) && tired;
            sums.active |= c.active;
            sums.primal += c.primal;
            sums.gap += c.gap;
        }
        return sums;
    }

    void step() {
        for (std::int64_t k = 0; k < s.columns; ++k)
            if (s.each[k].active) step(k);
    }

private:
    // How exactly a smoothed problem must be solved before multipliers move: where the gap is above the bound itself,
    // large weights on few samples make it so, or a large C, and multipliers as inexact would lead away.
    static double enough(const SmallColumn& c) {
        const double bound = c.primal - c.gap, least = 0.01 * c.gap < c.penalty ? 0.01 * c.gap : c.penalty;
        return bound < least ? least : bound < c.gap ? bound : c.gap;
    }

    bool waits(const SmallColumn& c) const { return !(c.gap <= s.rules.tol * c.primal); }

    Response response(std::int64_t k) const {
        Response r{};
        r.count = n;
        r.f = s.F + k * n;
        r.codes = s.codes ? s.codes + k * n : nullptr;
        r.numbers = s.numbers;
        r.upper = s.upper;
        r.v0 = s.bounded ? s.V0 + k * n : nullptr;
        r.rho = s.each[k].rho;
        r.epsilon = s.epsilon;
        r.bounded = s.bounded;
        return r;
    }

    void judge(std::int64_t k) {
        SmallColumn& c = s.each[k];
        const double* w = s.W + k * d;
        double *g = s.gradient + k * d, *v = s.V + k * n;
        Response r = response(k);
        r.v = v;
        r.inside = s.inside + k * n;
        const ResponseSums found = respond(r);
        double sum = 0;
        for (std::int64_t j = 0; j < d; ++j) g[j] = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (v[i] == 0) continue;
            sum += v[i];
            if (s.starts) {
                for (std::int64_t e = s.starts[i], end = s.starts[i + 1]; e < end; ++e) g[s.features[e]] += v[i] * s.x[e];
            } else {
                for (std::int64_t j = 0; j < d; ++j) g[j] += v[i] * s.x[i * d + j];
            }
        }
        if (s.lambda) {
            judge_l1(k, found, sum);
            return;
        }
        double norm = 0, products = 0, rest = 0;
        for (std::int64_t j = 0; j < d; ++j) {
            products += g[j] * g[j];
            g[j] = w[j] - g[j];
            norm += w[j] * w[j];
            rest += g[j] * g[j];
        }
        const double b = s.intercept ? s.b[k] : 0;
        c.penalty = 0.5 * norm;
        c.primal = c.penalty + found.loss + 0.5 * s.curve * b * b;
        // The best bound for a multiple of v, at most 1.
        const double quadratic = 0.5 * products + 0.5 * s.square * sum * sum + (s.bounded ? 0.0 : found.square);
        const double linear = found.linear > 0 ? found.linear : 0;
        const double tau = linear < 2 * quadratic ? linear / (2 * quadratic) : 1;
        const double gap = c.primal - tau * (found.linear - tau * quadratic);
        c.gap = gap < 0 ? 0 : gap;
        c.slope = s.intercept ? s.curve * b - sum : 0;
        c.rest = 0.5 * rest + 0.5 * s.square * c.slope * c.slope;
        if (s.intercept && s.square == 0) {
            // What it will cost to make the dual variables sum to 0.
            const double unbalanced = size_of(c.slope) * (1 + size_of(b));
            c.rest += unbalanced;
            c.gap += unbalanced;
        }
    }

    // The same with an L1 penalty: v must be so small that no |Σ v x_j| is above λ_j.
    void judge_l1(std::int64_t k, const ResponseSums& found, double sum) {
        SmallColumn& c = s.each[k];
        double* g = s.gradient + k * d;
        const double b = s.intercept ? s.b[k] : 0;
        double sizes = s.intercept ? s.lambda[d] * size_of(b) : 0, tau = 1;
        const auto limit = [&](double product, double lambda) {
            if (size_of(product) * tau > lambda) tau = lambda / size_of(product);
        };
        for (std::int64_t j = 0; j < d; ++j) {
            sizes += s.lambda[j] * size_of(s.W[k * d + j]);
            limit(g[j], s.lambda[j]);
            g[j] = -g[j];
        }
        if (s.intercept && s.lambda[d] > 0) limit(sum, s.lambda[d]);
        c.slope = -sum;
        c.penalty = sizes;
        c.primal = found.loss + sizes;
        const double linear = found.linear > 0 ? found.linear : 0;
        if (linear < 2 * tau * found.square) tau = linear / (2 * found.square);
        const double bound = tau * (found.linear - tau * found.square);
        const bool free = s.intercept && s.lambda[d] == 0;
        c.bound = free || bound > c.bound ? bound : c.bound;
        c.gap = c.primal > c.bound ? c.primal - c.bound : 0;
        if (free) c.gap += size_of(sum) * (1 + size_of(b));  // what it will cost to make v sum to 0
        c.rest = c.primal;
    }

    void step(std::int64_t k) {
        SmallColumn& c = s.each[k];
        double *w = s.W + k * d, *f = s.F + k * n;
        form(k);
        const double t = s.lambda ? l1_step(k) : newton_step(k);
        for (std::int64_t j = 0; j < d; ++j) w[j] = s.lambda && t == 1 ? end[j] : w[j] + t * move[j];
        if (s.intercept) s.b[k] = s.lambda && t == 1 ? end[d] : s.b[k] + t * move[d];
        if (t > 0)
            for (std::int64_t i = 0; i < n; ++i) f[i] += t * change[i];
        c.inner += 1;
        c.fresh = true;
        if (s.lambda) {
            // After a step that was too long the next one is damped, a little at first: where fewer samples are free
            // than weights, next to nothing bends the model, and much damping would take the rest of the step too.
            constexpr double FIRST = 1e-14;
            if (t < 0.2) c.damping = c.damping > 0 ? 100 * c.damping : FIRST;
            else if (t > 0.5) c.damping = c.damping > FIRST ? 0.1 * c.damping : 0;
        } else if (t < (s.bounded ? s.rules.shortest : 0.01 * s.rules.shortest)) {
            // So few samples lie inside the kink that their piece tells little.
            c.rho /= c.growth > 4 ? c.growth : 4;
            c.growth = s.rules.least_growth;
        }
    }

    // Finds a step and how far to go along it.
    double newton_step(std::int64_t k) {
        const SmallColumn& c = s.each[k];
        const double *g = s.gradient + k * d, *w = s.W + k * d;
        for (std::int64_t j = 0; j < d; ++j) {
            move[j] = -g[j];
            H[j * size + j] += 1;
        }
        if (s.intercept) {
            move[d] = -c.slope;
            double& last = H[size * size - 1];
            last += s.curve;
            // Where no sample is free, a free intercept has no curvature: the line search finds its length.
            if (last == 0) last = 1e-3 * c.rho * s.total;
        }
        solve_positive(H, size, 0, move, room);
        const double q = s.intercept ? move[d] : 0;
        double start = c.slope * q, first = s.curve * s.b[k] * q, curve = s.curve * q * q;
        for (std::int64_t j = 0; j < d; ++j) {
            start += g[j] * move[j];
            first += w[j] * move[j];
            curve += move[j] * move[j];
        }
        if (!(start < 0)) return 0;
        return search(changed(k), first, curve, start);
    }

    double l1_step(std::int64_t k) {
        const SmallColumn& c = s.each[k];
        const double* w = s.W + k * d;
        for (std::int64_t a = 0; a < size; ++a) {
            end[a] = a < d ? w[a] : s.b[k];
            slopes[a] = a < d ? s.gradient[k * d + a] : c.slope;
            H[a * size + a] += c.damping * s.squares[a];
            for (std::int64_t e = 0; e < a; ++e) H[e * size + a] = H[a * size + e];
        }
        L1Model{size, H, s.lambda, end, slopes, room, s.support}.solve(c.idle ? 1e-12 : 1e-6);
        double* const before = room;
        for (std::int64_t a = 0; a < size; ++a) {
            before[a] = a < d ? w[a] : s.b[k];
            slopes[a] = a < d ? s.gradient[k * d + a] : c.slope;
            move[a] = end[a] - before[a];
        }
        const double start = l1_slope(slopes, before, end, s.lambda, size);
        if (!(start < 0)) return 0;
        return l1_search(changed(k), before, end, s.lambda, size, start);
    }

    // The loss along the step: how the scores change.
    Response changed(std::int64_t k) {
        const double q = s.intercept ? move[d] : 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (s.starts) {
                double sum = q;
                for (std::int64_t e = s.starts[i], end = s.starts[i + 1]; e < end; ++e) sum += s.x[e] * move[s.features[e]];
                change[i] = sum;
            } else {
                change[i] = q + dot(s.x + i * d, move, d);
            }
        }
        Response r = response(k);
        r.q = change;
        return r;
    }

    // H ← the free samples' products, lower triangle. From one step to the next few samples change sides: only these
    // are added or taken away, unless what is left is rounded with much larger numbers.
    void form(std::int64_t k) {
        constexpr double ROUNDED = 1e-3;
        SmallColumn& c = s.each[k];
        double* kept = s.kept + k * size * size;
        const std::uint8_t* now = s.inside + k * n;
        std::uint8_t* formed = s.formed + k * n;
        std::int64_t changes = 0, free = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            changes += now[i] != formed[i];
            free += now[i];
        }
        bool anew = changes >= free;
        // At first all columns have the same free samples.
        if (anew && k > 0 && __builtin_memcmp(now, formed - n, static_cast<std::size_t>(n)) == 0) {
            __builtin_memcpy(kept, kept - size * size, static_cast<std::size_t>(size * size) * sizeof(double));
            __builtin_memcpy(formed, now, static_cast<std::size_t>(n));
            anew = false;
        }
        for (int attempt = 0; attempt < 2; ++attempt, anew = true) {
            if (anew) {
                for (std::int64_t a = 0; a < size * size; ++a) kept[a] = 0;
                for (std::int64_t i = 0; i < n; ++i) formed[i] = 0;
            }
            for (std::int64_t a = 0; a < size; ++a) move[a] = ROUNDED * kept[a * size + a];
            const double* x[TOGETHER];
            double weights[TOGETHER];
            int count = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                if (now[i] == formed[i]) continue;
                formed[i] = now[i];
                const double weight = now[i] ? s.upper[i] : -s.upper[i];
                if (s.starts) {
                    add_sparse(i, weight, kept);
                    continue;
                }
                x[count] = s.x + i * d;
                weights[count] = weight;
                if (++count < TOGETHER) continue;
                add_products(x, weights, kept);
                count = 0;
            }
            for (int l = count; count && l < TOGETHER; ++l) {
                x[l] = x[0];
                weights[l] = 0;
            }
            if (count) add_products(x, weights, kept);
            bool sound = true;
            for (std::int64_t a = 0; a < size; ++a) sound &= kept[a * size + a] >= move[a];
            if (anew || sound) break;
        }
        for (std::int64_t a = 0; a < size * size; ++a) H[a] = c.rho * kept[a];
    }

    // Adds the products of a few samples at once: each number of the matrix is read and written once for all of them.
    void add_products(const double* const* x, const double* weights, double* to) const {
        static_assert(TOGETHER == 4);
        const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        for (std::int64_t a = 0; a < size; ++a) {
            const auto left = [&](int l) { return a < d ? weights[l] * x[l][a] : weights[l]; };
            const double l0 = left(0), l1 = left(1), l2 = left(2), l3 = left(3);
            double* row = to + a * size;
            for (std::int64_t e = 0, end = a < d ? a + 1 : d; e < end; ++e)
                row[e] += (l0 * x0[e] + l1 * x1[e]) + (l2 * x2[e] + l3 * x3[e]);
            if (a == d) row[d] += (l0 + l1) + (l2 + l3);
        }
    }

    // The same for one sparse sample, whose features are in order.
    void add_sparse(std::int64_t i, double weight, double* to) const {
        const std::int64_t begin = s.starts[i], end = s.starts[i + 1];
        for (std::int64_t a = begin; a < end; ++a) {
            const double left = weight * s.x[a];
            double* row = to + s.features[a] * size;
            for (std::int64_t e = begin; e <= a; ++e) row[s.features[e]] += left * s.x[e];
        }
        if (!s.intercept) return;
        double* row = to + d * size;
        for (std::int64_t e = begin; e < end; ++e) row[s.features[e]] += weight * s.x[e];
        row[d] += weight;
    }

    static double dot(const double* a, const double* b, std::int64_t count) {
        using R = Register<double>;
        R::Values sum{}, other{};
        std::int64_t j = 0;
        for (; j + 2 * R::COUNT <= count; j += 2 * R::COUNT) {
            sum += R::load(a + j) * R::load(b + j);
            other += R::load(a + j + R::COUNT) * R::load(b + j + R::COUNT);
        }
        double rest = 0;
        for (; j < count; ++j) rest += a[j] * b[j];
        return sum_of<double>(sum + other) + rest;
    }

    static double size_of(double x) { return x < 0 ? -x : x; }
};

inline SmallNewtonSums small_measure(SmallNewtonState& state) { return SmallNewton(state).measure(); }
inline void small_step(SmallNewtonState& state) { SmallNewton(state).step(); }

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
