// A quadratic model with an L1 penalty, its matrix at hand:
//
//     min over z:  g·(z − w) + ½ (z − w)·H·(z − w) + Σ_j λ_j |z_j|
//
// by coordinate descent, which finds the weights that are not 0, in turn with Newton steps on these, which find their
// values.
#pragma once

#include <cstdint>

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// right ← A⁻¹ right by Cholesky's factors of A ([size][size], lower triangle, overwritten), scaled to unit diagonal and
// with `more` added to it. work: 2 size
inline void solve_positive(double* A, std::int64_t size, double more, double* right, double* work) {
    constexpr double SINGULAR = 1e-13, NEVER = 1e150;
    double *const scale = work, *const column = work + size;
    for (std::int64_t a = 0; a < size; ++a) {
        const double own = A[a * size + a];
        scale[a] = own > 0 ? 1 / __builtin_sqrt(own) : 1;
        for (std::int64_t e = 0; e <= a; ++e) A[a * size + e] *= scale[a] * scale[e];
        A[a * size + a] += more;
        right[a] *= scale[a];
    }
    for (std::int64_t j = 0; j < size; ++j) {
        // A direction that rounding hides stays as it is.
        double& pivot = A[j * size + j];
        pivot = pivot > SINGULAR ? __builtin_sqrt(pivot) : NEVER;
        const double inverse = 1 / pivot, solved = right[j] *= inverse;
        for (std::int64_t a = j + 1; a < size; ++a) {
            double* row = A + a * size;
            const double l = column[a] = row[j] *= inverse;
            right[a] -= l * solved;
            for (std::int64_t e = j + 1; e <= a; ++e) row[e] -= l * column[e];
        }
    }
    for (std::int64_t a = size - 1; a >= 0; --a) {
        const double* row = A + a * size;
        const double solved = right[a] /= row[a];
        for (std::int64_t e = 0; e < a; ++e) right[e] -= row[e] * solved;
    }
    for (std::int64_t a = 0; a < size; ++a) right[a] *= scale[a];
}

struct L1Model {
    std::int64_t size;
    const double *H, *lambda;  // H whole
    double *z, *g;             // w at first; the smooth part's gradient at z
    double* work;              // size² + 4 size
    std::int64_t* support;     // size
    bool emptied = false;      // whether the last step on the support ended where a weight became 0

    // Ends when neither a sweep nor a Newton step makes the model fall by more than eta times all that it fell.
    void solve(double eta) {
        double total = 0;
        for (std::int64_t round = 0; round < 100 + size; ++round) {
            bool still = false;
            for (std::int64_t i = 0, sweeps = 3 + size / 8; i < sweeps && !still; ++i) {
                const double fallen = sweep();
                total += fallen;
                still = !(fallen > eta * total);
            }
            // A weight that has become 0 stays so until the others have their values: a sweep would bring it back.
            double fallen = 0;
            for (std::int64_t left = size; left > 0; --left) {
                const double now = on_support();
                fallen += now;
                if (!emptied || !(now > 0)) break;
            }
            total += fallen;
            if (still && !(fallen > eta * total)) return;
        }
    }

    double sweep() {
        double fallen = 0;
        for (std::int64_t j = 0; j < size; ++j) {
            const double *row = H + j * size, a = row[j], old = z[j];
            const double u = a * old - g[j], l1 = lambda[j];
            const double best = !(a > 0) ? (l1 > 0 ? 0.0 : old) : u > l1 ? (u - l1) / a : u < -l1 ? (u + l1) / a : 0.0;
            const double move = best - old;
            if (move == 0) continue;
            z[j] = best;
            fallen += 0.5 * a * move * move;
            for (std::int64_t e = 0; e < size; ++e) g[e] += move * row[e];
        }
        return fallen;
    }

    // A Newton step for the weights that are not 0; returns how far the model falls. Where H does not bend, RIDGE makes
    // the step long, and it ends where a weight becomes 0.
    double on_support() {
        constexpr double RIDGE = 1e-10;
        double *const A = work, *const move = A + size * size, *const residual = move + size;
        std::int64_t m = 0;
        for (std::int64_t j = 0; j < size; ++j)
            if (z[j] != 0 || lambda[j] == 0) support[m++] = j;
        for (std::int64_t a = 0; a < m; ++a) {
            const std::int64_t j = support[a];
            for (std::int64_t e = 0; e <= a; ++e) A[a * m + e] = H[j * size + support[e]];
            residual[a] = g[j] + (z[j] > 0 ? lambda[j] : z[j] < 0 ? -lambda[j] : 0.0);
            move[a] = -residual[a];
        }
        solve_positive(A, m, RIDGE, move, residual + size);
        double slope = 0, curve = 0;
        for (std::int64_t a = 0; a < m; ++a) {
            const std::int64_t j = support[a];
            double product = 0;
            for (std::int64_t e = 0; e < m; ++e) product += H[j * size + support[e]] * move[e];
            curve += product * move[a];
            slope += residual[a] * move[a];
        }
        emptied = false;
        if (!(slope < 0)) return 0;
        if (!(curve > 0)) curve = -slope;  // rounding hides it: RIDGE alone says how long the step is
        // Along the step the slope rises, and where a weight changes its sign it jumps: go to where it is 0.
        double t = 0, passed = 0;
        std::int64_t zero = -1;
        for (std::int64_t crossings = 0; crossings <= m; ++crossings) {
            double next = __builtin_huge_val();
            std::int64_t which = -1;
            for (std::int64_t a = 0; a < m; ++a) {
                const double at = -z[support[a]] / move[a];
                if (lambda[support[a]] > 0 && at > t && at < next) {
                    next = at;
                    which = a;
                }
            }
            if (which < 0 || -slope / curve <= next) {
                t = -slope / curve;
                break;
            }
            t = next;
            const double jump = 2 * lambda[support[which]] * (move[which] < 0 ? -move[which] : move[which]);
            slope += jump;
            passed += jump * t;
            if (slope + curve * t >= 0) {
                zero = which;
                break;
            }
        }
        emptied = zero >= 0;
        for (std::int64_t a = 0; a < m; ++a) {
            const std::int64_t j = support[a];
            const double moved = a == zero ? -z[j] : t * move[a];
            z[j] = a == zero ? 0.0 : z[j] + moved;
            for (std::int64_t e = 0; e < size; ++e) g[e] += moved * H[j * size + e];
        }
        return passed - t * (slope + 0.5 * t * curve);
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
