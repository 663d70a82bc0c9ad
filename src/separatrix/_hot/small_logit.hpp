// Proximal Newton steps of logistic and softmax regression (solvers/small_logit.py tells the method) for data so few
// that a step in Python would take longer to call than to compute.
#pragma once

#include "l1_model.hpp"
#include "links.hpp"
#include "small_logit_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr double RIDGE = 1e-11;     // what the scaled Hessian's diagonal is raised by
constexpr double BALANCED = 1e-12;  // sum of a column's residuals, as a share of all weights, that a bound allows for
constexpr double EVEN = 1e-15;      // and that is as good as 0
constexpr double ROUNDING = 1e-13;  // of the objective
constexpr double NEAR = 1e-2;       // relative distance from the minimum, as estimated, from which on bounds matter
constexpr double FLAT = 0.55;       // share of what the slope promises that is gained where the model bends too much
constexpr std::int64_t PIECE = 512; // samples whose products are summed at a time

inline double larger(double a, double b) { return a > b ? a : b; }
inline double magnitude(double a) { return a < 0 ? -a : a; }

// Adds Σ_i left[a][i] right[b][i] over so many samples, a multiple of the registers' lanes; rows of left stand close.
template <int A, int B>
inline void products(const double* left, const double* right, std::int64_t samples, std::int64_t stride, double* out,
                     std::int64_t out_stride) {
    using R = Register<double>;
    R::Values sum[A][B] = {};
    for (std::int64_t i = 0; i < samples; i += R::COUNT) {
        R::Values loaded[B];
        for (int b = 0; b < B; ++b) loaded[b] = R::load(right + b * stride + i);
        for (int a = 0; a < A; ++a) {
            const auto l = R::load(left + a * samples + i);
            for (int b = 0; b < B; ++b) sum[a][b] += l * loaded[b];
        }
    }
    for (int a = 0; a < A; ++a)
        for (int b = 0; b < B; ++b) out[a * out_stride + b] += sum_of<double>(sum[a][b]);
}

template <int A>
inline void products(const double* left, const double* right, std::int64_t count, std::int64_t samples,
                     std::int64_t stride, double* out, std::int64_t out_stride) {
    std::int64_t b = 0;
    for (; b + 4 <= count; b += 4) products<A, 4>(left, right + b * stride, samples, stride, out + b, out_stride);
    for (; b < count; ++b) products<A, 1>(left, right + b * stride, samples, stride, out + b, out_stride);
}

// U with UᵀU = the matrix, scaled to unit diagonal and raised by a little; written over it.
inline void factorise(double* U, std::int64_t m, std::int64_t stride, double* scale, const double* matrix) {
    for (std::int64_t a = 0; a < m; ++a) {
        const double h = matrix[a * stride + a];
        scale[a] = h > 1e-290 ? 1 / __builtin_sqrt(h) : 0.0;  // a feature that never varies: no step
    }
    for (double ridge = RIDGE;; ridge *= 100) {
        for (std::int64_t a = 0; a < m; ++a) {
            for (std::int64_t e = a; e < m; ++e) U[a * stride + e] = matrix[a * stride + e] * scale[a] * scale[e];
            U[a * stride + a] = 1 + ridge;
        }
        bool definite = true;
        for (std::int64_t j = 0; j < m && definite; ++j) {
            double* row = U + j * stride;
            definite = row[j] > 0 || !(ridge < 1);
            const double inverse = 1 / __builtin_sqrt(row[j]);
            for (std::int64_t e = j; e < m; ++e) row[e] *= inverse;
            for (std::int64_t i = j + 1; i < m; ++i) {
                const double factor = row[i];
                if (factor == 0) continue;
                double* other = U + i * stride;
                for (std::int64_t e = i; e < m; ++e) other[e] -= factor * row[e];
            }
        }
        if (definite) return;
    }
}

inline void solve(const double* U, std::int64_t m, std::int64_t stride, const double* scale, double* y) {
    for (std::int64_t a = 0; a < m; ++a) y[a] *= scale[a];
    for (std::int64_t j = 0; j < m; ++j) {
        const double* row = U + j * stride;
        y[j] /= row[j];
        for (std::int64_t e = j + 1; e < m; ++e) y[e] -= row[e] * y[j];
    }
    for (std::int64_t j = m - 1; j >= 0; --j) {
        const double* row = U + j * stride;
        double sum = y[j];
        for (std::int64_t e = j + 1; e < m; ++e) sum -= row[e] * y[e];
        y[j] = sum / row[j];
    }
    for (std::int64_t a = 0; a < m; ++a) y[a] *= scale[a];
}

class SmallLogit {
    SmallLogitState& s;
    const std::int64_t n, d, K, size, N, m;
    using R = Register<double>;

public:
    explicit SmallLogit(SmallLogitState& state)
        : s(state), n(s.n), d(s.d), K(s.columns), size(s.size), N(s.stride), m(K * size) {}

    // Centres the features, as the intercept lets us, and judges the parameters at hand.
    void start() {
        for (std::int64_t j = 0; j < d; ++j) {
            double* column = s.X + j * N;
            double sum = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                column[i] = s.x[i * d + j];
                sum += s.weights[i] * column[i];
            }
            s.mean[j] = size > d ? sum / s.total : 0.0;
            for (std::int64_t i = 0; i < n; ++i) column[i] -= s.mean[j];
            for (std::int64_t k = 0; k < K && size > d; ++k) s.V[k * size + d] += s.V[k * size + j] * s.mean[j];
        }
        if (size > d)
            for (std::int64_t i = 0; i < n; ++i) s.X[d * N + i] = 1;
        scores(s.V, s.F);
        judge(s.l1 > 0);
    }

    // One step, with a new Hessian or the last one; returns false where none lowers the objective.
    bool step(bool anew) {
        if (anew || !s.factored) form();
        double slope = 0, promised = 0;
        if (s.l1 > 0) {
            minimise_model();
        } else {
            if (anew || !s.factored) factorise(s.U, m, m, s.scale, s.H);
            s.factored = true;
            for (std::int64_t a = 0; a < m; ++a) s.D[a] = -slope_of(a);
            solve(s.U, m, m, s.scale, s.D);
            remove_common(s.D);
        }
        for (std::int64_t a = 0; a < m; ++a) {
            slope += slope_of(a) * s.D[a];
            if (penalised(a)) promised += s.l1 * (magnitude(s.V[a] + s.D[a]) - magnitude(s.V[a]));
        }
        promised += slope;
        if (!(promised < 0)) return false;
        scores(s.D, s.Z);
        const double t = search(promised);
        if (t == 0) return false;
        for (std::int64_t a = 0; a < m; ++a) s.V[a] += t * s.D[a];
        for (std::int64_t i = 0; i < K * N; ++i) s.F[i] += t * s.Z[i];
        if (s.l1 > 0 && K > 1) shift_classes();
        judge(s.l1 > 0);
        return true;
    }

    // Judges parameters of the features as they are: primal and violation there, bound at their best intercepts.
    void evaluate(const double* coef, const double* intercept) {
        for (std::int64_t k = 0; k < K; ++k) {
            double* f = s.F + k * N;
            const double b = size > d ? intercept[k] : 0.0;
            for (std::int64_t i = 0; i < n; ++i) {
                double sum = b;
                for (std::int64_t j = 0; j < d; ++j) sum += s.x[i * d + j] * coef[k * d + j];
                f[i] = sum;
            }
            double middle = b;
            for (std::int64_t j = 0; j < d; ++j) {
                s.V[k * size + j] = coef[k * d + j];
                middle += coef[k * d + j] * s.mean[j];
            }
            if (size > d) s.V[k * size + d] = middle;
        }
        s.loss = loss(0, true);
        gradient();
        const double primal = s.loss + penalty(0);
        double violation = 0;
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t j = 0; j < size; ++j) {
                const std::int64_t a = k * size + j;
                double G = slope_of(a);
                if (j < d && size > d) G += s.mean[j] * s.g[k * size + d];
                violation = larger(violation, !penalised(a)  ? magnitude(G)
                                              : s.V[a] > 0   ? magnitude(G + s.l1)
                                              : s.V[a] < 0   ? magnitude(G - s.l1)
                                                             : larger(magnitude(G) - s.l1, 0));
            }
        judge(true);
        s.primal = primal;
        s.violation = violation;
    }

private:
    bool penalised(std::int64_t a) const { return a % size < d; }
    // The derivative of all but the L1 norm.
    double slope_of(std::int64_t a) const { return s.g[a] + (penalised(a) ? s.l2 * s.V[a] : 0.0); }

    double penalty(double t) const {
        double ones = 0, squares = 0;
        for (std::int64_t a = 0; a < m; ++a) {
            if (!penalised(a)) continue;
            const double v = s.V[a] + (t ? t * s.D[a] : 0.0);
            ones += magnitude(v);
            squares += v * v;
        }
        return s.l1 * ones + 0.5 * s.l2 * squares;
    }

    void scores(const double* V, double* out) const {
        for (std::int64_t k = 0; k < K; ++k) {
            double* f = out + k * N;
            for (std::int64_t i = 0; i < N; ++i) f[i] = 0;
            for (std::int64_t a = 0; a < size; ++a) {
                const double v = V[k * size + a], *x = s.X + a * N;
                if (v == 0) continue;
                for (std::int64_t i = 0; i < N; ++i) f[i] += v * x[i];
            }
        }
    }

    // Σ s ℓ at the scores F + tZ; keeps the residuals p − t where asked to.
    double loss(double t, bool keep) {
        auto value = R::all(0);
        for (std::int64_t i = 0; i < N; i += R::COUNT) {
            const auto w = R::load(s.weights + i);
            const auto at = [&](std::int64_t k) {
                const auto f = R::load(s.F + k * N + i);
                return t ? f + t * R::load(s.Z + k * N + i) : f;
            };
            if (K == 1) {
                const auto y = R::load(s.sides + i), margin = y * at(0);
                const auto negative = margin < 0.0;
                const auto z = exp_negative<double>(negative ? margin : -margin);
                value += w * (log1p_unit<double>(z) - (negative ? margin : R::all(0)));
                if (keep) R::store(s.Q + i, -y * (negative ? R::all(1) : z) / (z + 1.0));
                continue;
            }
            auto largest = at(0);
            for (std::int64_t k = 1; k < K; ++k) {
                const auto f = at(k);
                largest = f > largest ? f : largest;
            }
            auto sum = R::all(0);
            for (std::int64_t k = 0; k < K; ++k) {
                const auto e = exp_negative<double>(at(k) - largest);
                if (keep) R::store(s.Q + k * N + i, e);
                sum += e;
            }
            double own[R::COUNT];
            for (int l = 0; l < R::COUNT; ++l) {
                const std::int64_t place = s.classes[i + l] * N + i + l;
                own[l] = s.F[place] + (t ? t * s.Z[place] : 0.0);
            }
            value += w * (log_above_one<double>(sum) + (largest - R::load(own)));
            if (!keep) continue;
            for (std::int64_t k = 0; k < K; ++k) R::store(s.Q + k * N + i, R::load(s.Q + k * N + i) / sum);
            for (int l = 0; l < R::COUNT; ++l) s.Q[s.classes[i + l] * N + i + l] -= 1;
        }
        return sum_of<double>(value);
    }

    void gradient() {
        for (std::int64_t k = 0; k < K; ++k) {
            for (std::int64_t i = 0; i < N; ++i) s.scaled[i] = s.weights[i] * s.Q[k * N + i];
            for (std::int64_t a = 0; a < size; ++a) s.g[k * size + a] = 0;
            products<1>(s.scaled, s.X, size, N, N, s.g + k * size, size);
        }
    }

    void decrease() {
        for (std::int64_t a = 0; a < m; ++a) s.rhs[a] = slope_of(a);
        solve(s.U, m, m, s.scale, s.rhs);
        remove_common(s.rhs);
        s.decrement = 0;
        for (std::int64_t a = 0; a < m; ++a) s.decrement += 0.5 * s.rhs[a] * slope_of(a);
    }

    // Sets objective, gradient and decrement; near the minimum, or if so wanted, best intercepts and bound, too.
    void judge(bool wanted) {
        s.loss = loss(0, true);
        s.gap = __builtin_huge_val();
        if (!wanted) {
            gradient();
            s.primal = s.loss + penalty(0);
            if (!s.factored) return;
            decrease();
            if (!(s.decrement <= NEAR * magnitude(s.primal))) return;
        }
        const bool balanced = size == d || balance();
        gradient();
        s.primal = s.loss + penalty(0);
        // A bound holds for residuals that sum to 0; what they lack, intercepts as large as these could make use of.
        double largest = 0, over = 0, rest = 0, uneven = 0;
        for (std::int64_t a = 0; a < m; ++a) {
            if (!penalised(a)) {
                uneven += magnitude(s.g[a] * s.V[a]);
                continue;
            }
            const double g = magnitude(s.g[a]), G = slope_of(a), beyond = larger(g - s.l1, 0);
            largest = larger(largest, g);
            over += beyond * beyond;
            rest += G * G;
        }
        if (balanced && s.l1 > 0) {
            const double feasible = largest > s.l1 ? s.l1 / largest : 1.0;
            s.bound = larger(s.bound, entropy(feasible) - uneven);
            if (s.l2 > 0 && feasible < 1) s.bound = larger(s.bound, entropy(1) - over / (2 * s.l2) - uneven);
            s.gap = larger(s.primal - s.bound, 0);
        } else if (balanced && s.l2 > 0) {
            s.gap = rest / (2 * s.l2) + uneven;
            s.bound = s.primal - s.gap;
        }
        if (s.factored) decrease();
    }

    // Newton's steps on the intercepts alone, until the residuals of each column sum to 0; returns whether they do.
    bool balance() {
        double *B = s.H, *h = s.D, *U = s.H + K * K, *scale = s.r;  // free between steps
        double last = __builtin_huge_val();
        for (int round = 0; round < 8; ++round) {
            double worst = 0;
            for (std::int64_t k = 0; k < K; ++k) {
                h[k] = 0;
                products<1, 1>(s.weights, s.Q + k * N, N, N, h + k, 1);
                worst = larger(worst, magnitude(h[k]));
            }
            if (worst <= EVEN * s.total || (worst <= BALANCED * s.total && !(worst < 0.5 * last))) return true;
            last = worst;
            for (std::int64_t k = 0; k < K; ++k)
                for (std::int64_t l = 0; l <= k; ++l) {
                    curvature(k, l);
                    double sum = 0;
                    for (std::int64_t i = 0; i < N; ++i) sum += s.scaled[i];
                    B[k * K + l] = B[l * K + k] = sum;
                }
            factorise(U, K, K, scale, B);
            solve(U, K, K, scale, h);
            double mean = 0;
            for (std::int64_t k = 0; k < K && K > 1; ++k) mean += h[k] / static_cast<double>(K);
            for (std::int64_t k = 0; k < K; ++k) shift(k, mean - h[k]);
            const double before = s.loss;
            s.loss = loss(0, true);
            if (s.loss <= before + ROUNDING * magnitude(before)) continue;
            for (std::int64_t k = 0; k < K; ++k) shift(k, h[k] - mean);
            s.loss = loss(0, true);
            break;
        }
        return last <= BALANCED * s.total;
    }

    void shift(std::int64_t k, double by) {
        s.V[k * size + d] += by;
        for (std::int64_t i = 0; i < n; ++i) s.F[k * N + i] += by;
    }

    // scaled ← the weights of the products of columns k and l in the Hessian
    void curvature(std::int64_t k, std::int64_t l) {
        const double *q = s.Q + k * N, *o = s.Q + l * N;
        if (k == l) {
            for (std::int64_t i = 0; i < N; ++i) {
                const double p = q[i] < 0 ? -q[i] : q[i];
                s.scaled[i] = s.weights[i] * p * (1 - p);
            }
        } else {
            for (std::int64_t i = 0; i < N; ++i) {
                const double p = q[i] < 0 ? 1 + q[i] : q[i], other = o[i] < 0 ? 1 + o[i] : o[i];
                s.scaled[i] = -s.weights[i] * p * other;
            }
        }
    }

    // H = Σ s (diag p − p pᵀ) ⊗ x xᵀ + λ₂
    void form() {
        double *v = s.scaled, *left = s.Z;  // the change of the scores comes later
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t l = 0; l <= k; ++l) {
                curvature(k, l);
                double* block = s.H + k * size * m + l * size;
                for (std::int64_t a = 0; a < size; ++a)
                    for (std::int64_t e = 0; e < size; ++e) block[a * m + e] = 0;
                for (std::int64_t first = 0; first < N; first += PIECE) {
                    const std::int64_t count = N - first < PIECE ? N - first : PIECE;
                    const double* X = s.X + first;
                    for (std::int64_t a = 0; a < size; a += 2) {
                        const int rows = a + 1 < size ? 2 : 1;
                        for (int r = 0; r < rows; ++r)
                            for (std::int64_t i = 0; i < count; ++i)
                                left[r * count + i] = v[first + i] * X[(a + r) * N + i];
                        if (rows == 2) products<2>(left, X, a + 2, count, N, block + a * m, m);
                        else products<1>(left, X, a + 1, count, N, block + a * m, m);
                    }
                }
                for (std::int64_t a = 0; a < size; ++a)
                    for (std::int64_t e = 0; e <= a; ++e) {
                        const double h = block[a * m + e] + (k == l && a == e && a < d ? s.l2 : 0.0);
                        s.H[(k * size + a) * m + l * size + e] = s.H[(k * size + e) * m + l * size + a] = h;
                        s.H[(l * size + a) * m + k * size + e] = s.H[(l * size + e) * m + k * size + a] = h;
                    }
            }
    }

    // What all classes have in common changes nothing, unless it is penalised.
    void remove_common(double* step) const {
        if (K == 1) return;
        for (std::int64_t a = s.l2 > 0 ? d : 0; a < size; ++a) {
            double mean = 0;
            for (std::int64_t k = 0; k < K; ++k) mean += step[k * size + a] / static_cast<double>(K);
            for (std::int64_t k = 0; k < K; ++k) step[k * size + a] -= mean;
        }
    }

    // D ← argmin of slope·D + ½ DᵀHD + λ₁‖V + D‖₁
    void minimise_model() {
        for (std::int64_t a = 0; a < m; ++a) {
            s.D[a] = s.V[a];
            s.r[a] = slope_of(a);
        }
        L1Model{m, s.H, s.lambda, s.D, s.r, s.U, s.support}.solve(1e-13);
        for (std::int64_t a = 0; a < m; ++a) s.D[a] -= s.V[a];
    }

    // How far to go along D: 1 is the whole step, 0 where nothing is gained.
    double search(double promised) {
        const double before = s.primal, rounding = ROUNDING * magnitude(before);
        for (double t = 1; t > 1e-12; t *= 0.5) {
            double reached = loss(t, false) + penalty(t);
            if (!(reached <= before + 1e-4 * t * promised + rounding)) continue;
            // Where probabilities move away from even ones the Hessian falls, and the best step is a longer one.
            while (s.l1 == 0 && t >= 1 && t < 64 && reached < before + FLAT * t * promised) {
                const double further = loss(1.6 * t, false) + penalty(1.6 * t);
                if (!(further < reached)) break;
                reached = further;
                t *= 1.6;
            }
            return t;
        }
        return 0;
    }

    // Moves the weights of each feature by what all classes can share: between the two middle ones Σ |w − c| is
    // least, and the loss does not see it.
    void shift_classes() {
        for (std::int64_t j = 0; j < d; ++j) {
            double* sorted = s.rhs;
            for (std::int64_t k = 0; k < K; ++k) {
                std::int64_t at = k;
                for (; at > 0 && sorted[at - 1] > s.V[k * size + j]; --at) sorted[at] = sorted[at - 1];
                sorted[at] = s.V[k * size + j];
            }
            const double low = sorted[(K - 1) / 2], high = sorted[K / 2];
            const double by = low > 0 ? low : high < 0 ? high : 0.0;
            if (by == 0) continue;
            double change = 0;
            for (std::int64_t k = 0; k < K; ++k) {
                const double w = s.V[k * size + j], moved = w - by;
                change += s.l1 * (magnitude(moved) - magnitude(w)) + 0.5 * s.l2 * (moved * moved - w * w);
            }
            if (!(change < 0)) continue;
            for (std::int64_t k = 0; k < K; ++k) {
                s.V[k * size + j] -= by;
                for (std::int64_t i = 0; i < n; ++i) s.F[k * N + i] -= by * s.X[j * N + i];
            }
        }
    }

    // The dual's Σ s H(q) for q = t + τ (p − t)
    double entropy(double tau) const {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            double own = 0, bits = 0;
            for (std::int64_t k = 0; k < K; ++k) {
                const double q = s.Q[k * N + i];
                if (K > 1 && k == s.classes[i]) continue;
                const double other = tau * magnitude(q);
                own += other;
                if (other > 0) bits -= other * __builtin_log(other);
            }
            if (own < 1) bits -= (1 - own) * __builtin_log1p(-own);
            sum += s.weights[i] * bits;
        }
        return sum;
    }
};

inline void small_logit_start(SmallLogitState& state) { SmallLogit(state).start(); }
inline bool small_logit_step(SmallLogitState& state, bool anew) { return SmallLogit(state).step(anew); }
inline void small_logit_evaluate(SmallLogitState& state, const double* coef, const double* intercept) {
    SmallLogit(state).evaluate(coef, intercept);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
