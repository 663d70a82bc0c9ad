// Semismooth Newton steps and the method of multipliers (solvers/semismooth_newton.py tells the method) for data so
// few that a step in Python would take longer to call than to compute.
#pragma once

#include "box_dual.hpp"
#include "small_newton_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

class SmallNewton {
    SmallNewtonState& s;
    const std::int64_t n, d, size;  // size: features and intercept
    double *const H, *const scale, *const move, *const change;

public:
    explicit SmallNewton(SmallNewtonState& state)
        : s(state), n(state.n), d(state.d), size(d + state.intercept), H(state.work), scale(H + size * size),
          move(scale + size), change(move + size) {}

    // Judges the columns that have moved, moves multipliers where it is time, and says which columns go on.
    SmallNewtonSums measure() {
        SmallNewtonSums sums{};
        for (std::int64_t k = 0; k < s.columns; ++k) {
            SmallColumn& c = s.each[k];
            const SmallNewtonRules& rules = s.rules;
            if (c.fresh) judge(k);
            c.fresh = false;
            if (waits(c) && c.rest <= 0.1 * c.gap && c.rho < rules.steepest) {
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
            for (std::int64_t j = 0; j < d; ++j) g[j] += v[i] * s.x[i * d + j];
        }
        double norm = 0, products = 0, rest = 0;
        for (std::int64_t j = 0; j < d; ++j) {
            products += g[j] * g[j];
            g[j] = w[j] - g[j];
            norm += w[j] * w[j];
            rest += g[j] * g[j];
        }
        const double b = s.intercept ? s.b[k] : 0;
        c.primal = 0.5 * norm + found.loss + 0.5 * s.curve * b * b;
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

    void step(std::int64_t k) {
        SmallColumn& c = s.each[k];
        double *w = s.W + k * d, *f = s.F + k * n;
        const double* g = s.gradient + k * d;
        form(k);
        for (std::int64_t j = 0; j < d; ++j) move[j] = -g[j];
        if (s.intercept) move[d] = -c.slope;
        solve();
        const double q = s.intercept ? move[d] : 0;
        double start = c.slope * q, first = s.curve * s.b[k] * q, curve = s.curve * q * q;
        for (std::int64_t j = 0; j < d; ++j) {
            start += g[j] * move[j];
            first += w[j] * move[j];
            curve += move[j] * move[j];
        }
        double t = 0;
        if (start < 0) {
            for (std::int64_t i = 0; i < n; ++i) {
                double sum = q;
                for (std::int64_t j = 0; j < d; ++j) sum += s.x[i * d + j] * move[j];
                change[i] = sum;
            }
            Response r = response(k);
            r.q = change;
            t = search(r, first, curve, start);
            for (std::int64_t j = 0; j < d; ++j) w[j] += t * move[j];
            for (std::int64_t i = 0; i < n; ++i) f[i] += t * change[i];
            s.b[k] += t * q;
        }
        c.inner += 1;
        c.fresh = true;
        if (t < (s.bounded ? s.rules.shortest : 0.01 * s.rules.shortest)) {
            // So few samples lie inside the kink that their piece tells little.
            c.rho /= c.growth > 4 ? c.growth : 4;
            c.growth = s.rules.least_growth;
        }
    }

    // The lower triangle of the Hessian: the free samples' products and the penalty.
    void form(std::int64_t k) {
        const SmallColumn& c = s.each[k];
        for (std::int64_t a = 0; a < size * size; ++a) H[a] = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (!s.inside[k * n + i]) continue;
            const double sigma = c.rho * s.upper[i], *x = s.x + i * d;
            for (std::int64_t a = 0; a < size; ++a) {
                const double left = a < d ? sigma * x[a] : sigma;
                double* row = H + a * size;
                for (std::int64_t e = 0, end = a < d ? a + 1 : d; e < end; ++e) row[e] += left * x[e];
                if (a == d) row[d] += sigma;
            }
        }
        for (std::int64_t j = 0; j < d; ++j) H[j * size + j] += 1;
        if (!s.intercept) return;
        double& last = H[size * size - 1];
        last += s.curve;
        // Where no sample is free, a free intercept has no curvature: the line search finds its length.
        if (last == 0) last = 1e-3 * c.rho * s.total;
    }

    // move ← H⁻¹ move by Cholesky's factors of H, scaled to unit diagonal
    void solve() {
        constexpr double SINGULAR = 1e-13, NEVER = 1e150;
        for (std::int64_t a = 0; a < size; ++a) scale[a] = 1 / __builtin_sqrt(H[a * size + a]);
        for (std::int64_t a = 0; a < size; ++a) {
            double* row = H + a * size;
            for (std::int64_t e = 0; e <= a; ++e) {
                const double* other = H + e * size;
                double sum = row[e] * scale[a] * scale[e];
                for (std::int64_t l = 0; l < e; ++l) sum -= row[l] * other[l];
                // A direction that rounding hides stays as it is.
                row[e] = e < a ? sum / other[e] : sum > SINGULAR ? __builtin_sqrt(sum) : NEVER;
            }
            double sum = move[a] * scale[a];
            for (std::int64_t l = 0; l < a; ++l) sum -= row[l] * move[l];
            move[a] = sum / row[a];
        }
        for (std::int64_t a = size - 1; a >= 0; --a) {
            move[a] /= H[a * size + a];
            for (std::int64_t l = 0; l < a; ++l) move[l] -= H[a * size + l] * move[a];
        }
        for (std::int64_t a = 0; a < size; ++a) move[a] *= scale[a];
    }

    static double size_of(double x) { return x < 0 ? -x : x; }
};

inline SmallNewtonSums small_measure(SmallNewtonState& state) { return SmallNewton(state).measure(); }
inline void small_step(SmallNewtonState& state) { SmallNewton(state).step(); }

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
