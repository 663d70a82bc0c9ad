// Coordinate descent for   min_D  <G, D> + ½ D·H·D + l1 ‖W + D‖₁ + (l2/2) ‖W + D‖²
//
// either with H itself at hand (gram_descent) or with H = Σ_i x_i x_iᵀ ⊗ H_i behind the columns of X
// (column_descent), where H_i = h_i for one score column and s_i (diag p_i - p_i p_iᵀ) for softmax.
// There the scores Z = X D of the step are kept, and for softmax m_i = p_i · Z_i, so that
//     (H_i Z_i)_k = s_i p_ik (Z_ik - m_i).
// All classes of a feature share one reading of its column. Where several of them move at once, they
// do so with twice their curvature, because diag p - p pᵀ ≼ 2 diag(p (1 - p)) (diagonal dominance).
#pragma once

#include <cstdint>

#include "coordinate_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr int FEW = 16;  // classes of a feature that are handled one by one, at most
constexpr int SUMS = 8;  // partial sums of a dense dot product: the same bits in every instruction set

// argmin over w of ½ a (w - w0)² + g (w - w0) + l1 |w| + ½ l2 w²
inline double prox(double w0, double g, double a, double l1, double l2) {
    const double total = a + l2;
    if (!(total > 0)) return l1 > 0 ? 0.0 : w0;
    const double u = a * w0 - g;
    return u > l1 ? (u - l1) / total : u < -l1 ? (u + l1) / total : 0.0;
}

// The model falls by at least this much when a coordinate moves to its minimum.
inline double fall(double move, double curvature) { return 0.5 * curvature * move * move; }

// H (blocks, size, size), gradient of the model (blocks, size), kept up to date. A block is done when a
// sweep makes the model fall by at most tol times all that it fell so far (falls). Returns the largest
// such ratio of the last sweeps.
inline double gram_descent(const double* H, double* gradient, const double* weights, double* step,
                           double* falls, std::int64_t blocks, std::int64_t size, double l1, double l2,
                           std::int64_t sweeps, double tol) {
    double worst = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
        const double* h = H + block * size * size;
        double* g = gradient + block * size;
        const double* w = weights + block * size;
        double* d = step + block * size;
        double ratio = 0;
        for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) {
            double fallen = 0;
            for (std::int64_t j = 0; j < size; ++j) {
                const double* row = h + j * size;
                const double now = w[j] + d[j];
                const double move = prox(now, g[j], row[j], l1, l2) - now;
                if (move == 0) continue;
                fallen += fall(move, row[j] + l2);
                d[j] += move;
                for (std::int64_t l = 0; l < size; ++l) g[l] += move * row[l];
            }
            falls[block] += fallen;
            ratio = fallen > 0 ? fallen / falls[block] : 0.0;
            if (ratio <= tol) break;
        }
        if (ratio > worst) worst = ratio;
    }
    return worst;
}

template <class T, class Body>
inline void each(const DenseColumns<T>& X, std::int64_t j, Body body) {
    const T* x = X.data + j * X.n;
    for (std::int64_t i = 0; i < X.n; ++i) body(i, static_cast<double>(x[i]));
}
template <class T, class Body>
inline void each(const SparseColumns<T>& X, std::int64_t j, Body body) {
    for (std::int64_t e = X.starts[j], end = X.starts[j + 1]; e < end; ++e)
        body(static_cast<std::int64_t>(X.rows[e]), static_cast<double>(X.data[e]));
}

// Σ_i x_ij q_i Z_i for one score column
template <class T>
inline double weighted_dot(const DenseColumns<T>& X, std::int64_t j, const double* q, const double* Z) {
    const T* x = X.data + j * X.n;
    double sum[SUMS] = {};
    std::int64_t i = 0;
    for (; i + SUMS <= X.n; i += SUMS)
        for (int l = 0; l < SUMS; ++l) sum[l] += static_cast<double>(x[i + l]) * q[i + l] * Z[i + l];
    for (int l = 0; i < X.n; ++i, ++l) sum[l] += static_cast<double>(x[i]) * q[i] * Z[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}
template <class T>
inline double weighted_dot(const SparseColumns<T>& X, std::int64_t j, const double* q, const double* Z) {
    double sum = 0;
    each(X, j, [&](std::int64_t i, double x) { sum += x * q[i] * Z[i]; });
    return sum;
}

template <int GROUP, class Columns>
inline void group_gradient(const Columns& X, std::int64_t j, const CoordinateState& s, std::int64_t first,
                           double* out) {
    double sum[GROUP] = {};
    each(X, j, [&](std::int64_t i, double x) {
        const double* q = s.q + i * s.width + first;
        const double* z = s.Z + i * s.width + first;
        const double m = s.mean[i];
        for (int k = 0; k < GROUP; ++k) sum[k] += x * q[k] * (z[k] - m);
    });
    for (int k = 0; k < GROUP; ++k) out[first + k] = sum[k];
}

template <class Columns>
inline void joint_gradient(const Columns& X, std::int64_t j, const CoordinateState& s, double* out) {
    std::int64_t first = 0;
    for (; first + 16 <= s.width; first += 16) group_gradient<16>(X, j, s, first, out);
    if (s.width - first >= 8) group_gradient<8>(X, j, s, first, out), first += 8;
    if (s.width - first >= 4) group_gradient<4>(X, j, s, first, out);
}

template <class Columns>
inline double single_move(const Columns& X, std::int64_t column, std::int64_t j, CoordinateState& s) {
    const double g = s.gradient[j] + weighted_dot(X, column, s.q, s.Z);
    const double now = s.weights[j] + s.step[j];
    const double move = prox(now, g, s.curvature[j], s.l1, s.l2) - now;
    if (move == 0) return 0;
    s.step[j] += move;
    each(X, column, [&](std::int64_t i, double x) { s.Z[i] += move * x; });
    return fall(move, s.curvature[j] + s.l2);
}

// All classes of a feature, or, if partial, the active ones (moved last time or a weight other than 0).
// Few classes are read and written one by one, many side by side.
template <class Columns>
inline double joint_move(const Columns& X, std::int64_t column, std::int64_t j, CoordinateState& s,
                         std::uint8_t* active, bool partial) {
    const std::int64_t width = s.width, at = j * width, few = width / 4;
    double* g = s.scratch;
    double* move = s.scratch + width;
    std::int64_t listed[FEW], count = 0;
    if (partial)
        for (std::int64_t k = 0; k < width && count <= few; ++k)
            if (active[at + k]) { if (count < few && count < FEW) listed[count] = k; ++count; }
    const bool single = partial && count <= few && count <= FEW;
    if (single) {
        for (std::int64_t l = 0; l < count; ++l) {
            const std::int64_t k = listed[l];
            double sum = 0;
            each(X, column, [&](std::int64_t i, double x) {
                sum += x * s.q[i * width + k] * (s.Z[i * width + k] - s.mean[i]);
            });
            g[k] = sum;
        }
    } else {
        joint_gradient(X, column, s, g);
        count = width;
    }
    std::int64_t movers = 0, moving[FEW];
    for (std::int64_t l = 0; l < count; ++l) {
        const std::int64_t k = single ? listed[l] : l;
        g[k] += s.gradient[at + k];
        const double now = s.weights[at + k] + s.step[at + k];
        move[k] = prox(now, g[k], s.curvature[at + k], s.l1, s.l2) - now;
        active[at + k] = move[k] != 0 || now != 0;
        if (move[k] != 0) { if (movers < FEW) moving[movers] = k; ++movers; }
    }
    if (movers == 0) return 0;
    double fallen = 0;
    const double factor = movers > 1 ? 2 : 1;
    for (std::int64_t l = 0; l < count; ++l) {
        const std::int64_t k = single ? listed[l] : l;
        if (move[k] == 0) continue;
        const double now = s.weights[at + k] + s.step[at + k], a = factor * s.curvature[at + k];
        move[k] = prox(now, g[k], a, s.l1, s.l2) - now;
        s.step[at + k] += move[k];
        fallen += fall(move[k], a + s.l2);
    }
    if (movers <= FEW && movers <= few) {
        for (std::int64_t l = 0; l < movers; ++l) {
            const std::int64_t k = moving[l];
            const double d = move[k];
            each(X, column, [&](std::int64_t i, double x) {
                s.Z[i * width + k] += d * x;
                s.mean[i] += s.p[i * width + k] * (d * x);
            });
        }
        return fallen;
    }
    each(X, column, [&](std::int64_t i, double x) {
        double* z = s.Z + i * width;
        const double* p = s.p + i * width;
        double shift = 0;
        for (std::int64_t k = 0; k < width; ++k) {
            z[k] += move[k] * x;
            shift += p[k] * move[k];
        }
        s.mean[i] += shift * x;
    });
    return fallen;
}

// The intercepts' exact minimum for the present step; returns how far the model fell.
inline double move_intercepts(CoordinateState& s) {
    double* g = s.scratch;
    double* move = s.scratch + s.width;
    for (std::int64_t k = 0; k < s.width; ++k) g[k] = s.intercept_gradient[k];
    for (std::int64_t i = 0; i < s.n; ++i) {
        const double m = s.joint ? s.mean[i] : 0.0;
        for (std::int64_t k = 0; k < s.width; ++k) g[k] += s.q[i * s.width + k] * (s.Z[i * s.width + k] - m);
    }
    double fallen = 0;
    for (std::int64_t k = 0; k < s.width; ++k) {
        double sum = 0;
        for (std::int64_t l = 0; l < s.width; ++l) sum -= s.intercept_inverse[k * s.width + l] * g[l];
        move[k] = sum;
        fallen -= 0.5 * g[k] * sum;
        s.intercept_step[k] += sum;
    }
    for (std::int64_t i = 0; i < s.n; ++i) {
        double shift = 0;
        for (std::int64_t k = 0; k < s.width; ++k) {
            s.Z[i * s.width + k] += move[k];
            if (s.joint) shift += s.p[i * s.width + k] * move[k];
        }
        if (s.joint) s.mean[i] += shift;
    }
    return fallen;
}

// One sweep over the features listed in order (columns[j]: where feature j stands in X). active[j, k]
// tells afterwards whether that weight moved or is other than 0; a partial sweep leaves the others out.
// Returns how far the model fell.
template <class Columns>
inline double column_sweep(const Columns& X, const std::int64_t* columns, CoordinateState& s,
                           const std::int64_t* order, std::int64_t count, std::uint8_t* active, bool partial) {
    double fallen = s.fit_intercept ? move_intercepts(s) : 0.0;
    for (std::int64_t o = 0; o < count; ++o) {
        const std::int64_t j = order[o];
        if (s.joint) {
            fallen += joint_move(X, columns[j], j, s, active, partial);
        } else {
            const double here = single_move(X, columns[j], j, s);
            active[j] = here > 0 || s.weights[j] + s.step[j] != 0;
            fallen += here;
        }
    }
    return fallen;
}

// out[j, k] = Σ_i x_ij² h_ik
template <class Columns>
inline void column_curvature(const Columns& X, const std::int64_t* columns, std::int64_t count,
                             const double* h, std::int64_t width, double* out) {
    for (std::int64_t j = 0; j < count; ++j) {
        double* sum = out + j * width;
        for (std::int64_t k = 0; k < width; ++k) sum[k] = 0;
        each(X, columns[j], [&](std::int64_t i, double x) {
            for (std::int64_t k = 0; k < width; ++k) sum[k] += x * x * h[i * width + k];
        });
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
